# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A good inventory, and ways to spoil it: the ground that the preflight's tests stand on.

Inventories are real YAML, read by Ansible's own inventory code and templated with the roles' own
defaults by the action plugin's own code; only the hosts' facts are made up.
"""

from __future__ import annotations

import copy
import dataclasses
import pathlib

import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.vault import VaultSecret
from ansible.template import Templar
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.storage import as_uuid
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.addresses import (
    is_address,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.host_facts import (
    IDENTITY_KEYS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import (
    ROLES,
    Inventory,
    masked_settings,
    misspelt,
    raw_of,
    with_assigned_ids,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.judge import judge
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    facts_request,
    names_to_resolve,
    read_member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.tables import (
    load_versions,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    DEPLOY,
    Controller,
    Snapshot,
)

GIB = 2**30
# At random, in a run; and of the KRaft cluster that it begins.
DRAWN = "5c1f0a"
FRESH_CLUSTER_ID = as_uuid(f"{DRAWN} orders-prod".encode())
VERSIONS = load_versions(ROLES)

UNPROTECTED = (
    *("security.plaintext", "security.zookeeper_open"),
    *("security.controller_open", "security.controller_plaintext"),
)

GOOD = """
all:
  vars:
    kafka_cluster_name: orders-prod
    ansible_connection: ssh
  children:
    zookeeper:
      hosts:
        zookeeper-1: {ansible_host: 192.0.2.11}
        zookeeper-2: {ansible_host: 192.0.2.12}
        zookeeper-3: {ansible_host: 192.0.2.13}
    kafka:
      vars:
        kafka_topics:
          - {name: orders, partitions: 12, replication_factor: 3, retention: 7d}
          - {name: customers, partitions: 3, cleanup: compact}
      hosts:
        kafka-1: {ansible_host: kafka-1.example.com}
        kafka-2: {ansible_host: kafka-2.example.com}
        kafka-3: {ansible_host: kafka-3.example.com}
"""


def merge(base, overlay):
    """`overlay` laid over `base`, mappings key by key; a key written `=key` replaces, null removes."""
    result = copy.deepcopy(base)
    for key, value in (overlay or {}).items():
        if isinstance(key, str) and key.startswith("="):
            result[key[1:]] = value
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merge(result[key], value)
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result


def directory(path, **more):
    """Facts of a data directory that is not there yet, on a file system of its own."""
    facts = {
        "path": path,
        "real_path": path,
        "identity": path,
        "exists": False,
        "is_file": False,
        "blocked_by": "",
        "mount_point": "/var/lib",
        "file_system": "ext4",
        "disk": "8:1",
        "read_only": False,
        "creatable": True,
        "free_bytes": 80 * GIB,
        "total_bytes": 100 * GIB,
        "readable": True,
        "partitions": 0,
        "topics": [],
        "foreign": [],
        "owners": [],
        "closed": [],
        "own": None,
        "new_mount": False,
    }
    facts.update(more)
    return facts


def place(path):
    """Facts of a directory that is not there yet, below directories that everybody may pass."""
    return {"real_path": path, "closed": [], "own": None, "new_mount": False}


def stopped(request):
    """Facts of an instance that was never started."""
    return {
        "places": {name: place(path) for name, path in request["places"].items()},
        "instance": request["instance"],
        "config_dir": request["config_dir"],
        "started": {
            "recorded": False,
            "pid": None,
            "alive": False,
            "stale": False,
            "fingerprint": None,
        },
        # whatever a test lays there was started by this collection
        "ours": True,
        "current": None,
        "release": None,
        "releases": [],
        "account": None,
    }


def good_facts(member, names):
    """Facts of a host on which nothing is installed and nothing is wrong."""
    request = facts_request(member, [])
    bound = [*(each.bind for each in member.listeners), member.text("zookeeper_bind")]
    facts = {
        "machine": {
            "boot": "boot-" + member.name,
            "network": "net-" + member.name,
            "filesystem": "fs-" + member.name,
        },
        "clock": 0.0,
        "user": 0,
        "memory_bytes": 24 * GIB,
        "limits": {"open_files": 1048576, "max_map_count": 262144},
        "ephemeral_ports": {"first": 32768, "last": 60999, "reserved": [[41000, 41999]]},
        "addresses": ["127.0.0.1", "192.0.2.1", *(each for each in bound if is_address(each))],
        "container": "",
        "systemd": True,
        "firewall": {"firewalld": "running", "nft": True, "ours": []},
        "selinux": False,
        "java": {
            "home": "/usr/lib/jvm/17",
            "version": "17.0.15",
            "source": "PATH",
            "seen": [],
            "place": place("/usr/lib/jvm/17"),
        },
        "kafka": None,
        "zookeeper": None,
        "lock": None,
        "lock_of_disks": None,
        "marks": [],
        "missing_packages": [],
        "ports": [],
        "names": {name: {"addresses": ["192.0.2.99"], "error": None} for name in names},
    }
    if "kafka" in request:
        paths = request["kafka"]["log_dirs"]
        facts["kafka"] = dict(
            stopped(request["kafka"]),
            answered=None,
            staged=None,
            overrides={},
            log_dirs=[
                dict(
                    directory(path),
                    meta=None,
                    meta_broken="",
                    meta_unreadable=False,
                    quorum_state=False,
                )
                for path in paths
            ],
            other_log_dirs=[],
        )
    if "zookeeper" in request:
        wanted = request["zookeeper"]
        facts["zookeeper"] = dict(
            stopped(wanted),
            data={
                "myid": None,
                "myid_unreadable": False,
                "has_data": False,
                "readable": True,
                "snapshot": False,
                "data_dir": directory(wanted["data_dir"]),
                "data_log_dir": directory(wanted["data_log_dir"]),
            },
            former_data=None,
        )
    return facts


def set_at(tree, path, value):
    """Set `a.b.0.c` in nested dicts and lists; a list of one more grows."""
    if path in ("kafka/answered", "kafka/staged"):
        assert set(value or ()) <= set(IDENTITY_KEYS), f"no host tells this: {value}"
    keys = path.split("/")
    for key in keys[:-1]:
        tree = tree[int(key)] if isinstance(tree, list) else tree[key]
    if isinstance(tree, list):
        index = int(keys[-1])
        tree[index : index + 1] = [value]
    else:
        tree[keys[-1]] = value


def gather(document, directory_path):
    """(raws without facts, action inventory, group names) of an inventory document."""
    path = pathlib.Path(directory_path) / "hosts.yml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return gather_files(path)


def gather_files(path, secrets=None):
    """The same of an inventory file or directory; `secrets`: a vault's password."""
    loader = DataLoader()
    if secrets:
        loader.set_vault_secrets([("default", VaultSecret(secrets.encode()))])
    manager = InventoryManager(loader=loader, sources=[str(path)])
    variables = VariableManager(loader=loader, inventory=manager)
    hostvars = HostVars(inventory=manager, variable_manager=variables, loader=loader)
    task_vars = {
        "inventory_hostname": "localhost",
        "groups": {
            name: [each.name for each in group.get_hosts()]
            for name, group in manager.groups.items()
        },
        "hostvars": hostvars,
        "ansible_playbook_python": "/usr/bin/python3",
        "inventory_dir": str(path),
    }
    inventory = Inventory(Templar(loader=loader, variables=task_vars), loader, task_vars)
    raws = []
    for host in hostvars:
        gathered = inventory.gather(host)
        if gathered["runs_kafka"] or gathered["is_server"]:
            gathered["settings"] = masked_settings(gathered["settings"])
            raws.append(raw_of(host, gathered))
    return with_assigned_ids(inventory, raws), inventory, task_vars["groups"]


def verdict_of(
    document,
    directory_path,
    facts=None,
    snapshot=None,
    raw=None,
    accept=(),
    controller=None,
    unprotected=False,
    purpose=DEPLOY,
    replaced=None,
    leaving=None,
    reconciles=True,
    **more,
):
    """The verdict over an inventory document.

    `facts`: {host: {path/to/fact: value}} over good facts, "all" for every host; `snapshot`:
    arguments of Snapshot; `raw`: {host: {field: value}} over the raw members; `unprotected`: with the
    warnings that the good inventory, which needs no certificates, would have everywhere; `purpose`: of
    the run, see world.PURPOSES; `more`: what else `judge` takes.
    """
    return judge_gathered(
        gather(document, directory_path),
        facts,
        snapshot,
        raw,
        accept,
        controller,
        unprotected,
        purpose,
        replaced,
        leaving,
        reconciles,
        **more,
    )


def judge_gathered(
    gathered,
    facts=None,
    snapshot=None,
    raw=None,
    accept=(),
    controller=None,
    unprotected=False,
    purpose=DEPLOY,
    replaced=None,
    leaving=None,
    reconciles=True,
    **more,
):
    """The verdict over what `gather` or `gather_files` returned; see `verdict_of`."""
    raws, inventory, groups = gathered
    members = {each.name: read_member(each)[0] for each in raws}
    names = sorted({name for member in members.values() for name in names_to_resolve(member)})
    judged = []
    for each in raws:
        known = good_facts(members[each.name], names)
        for scope in ("all", each.name):
            for path, value in ((facts or {}).get(scope) or {}).items():
                set_at(known, path, copy.deepcopy(value))
        fields = dict(each.__dict__, facts=known)
        fields.update((raw or {}).get(each.name) or {})
        judged.append(type(each)(**fields))
    snapshots = {}
    if snapshot:
        cluster = judged[0].settings["kafka_cluster_name"]
        snapshots[cluster] = Snapshot(**snapshot)
    verdict = judge(
        judged,
        VERSIONS,
        controller=controller or Controller(),
        snapshots=snapshots,
        host_names=frozenset(inventory._task_vars["hostvars"]),
        group_names=frozenset(groups),
        misspelt=misspelt(inventory, judged),
        accept=accept,
        purpose=purpose,
        commands={"finalize": "FINALIZE", "upgrade": "UPGRADE", "rollback": "ROLLBACK"},
        replaced=replaced,
        leaving=leaving,
        reconciles=reconciles,
        **more,
        drawn=DRAWN,
    )
    if unprotected:
        return verdict
    findings = tuple(each for each in verdict.findings if each.check not in UNPROTECTED)
    return dataclasses.replace(verdict, findings=findings)


def good():
    """The good inventory as a fresh document."""
    return yaml.safe_load(GOOD)

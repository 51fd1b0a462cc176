# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Read-only probes of one host: all facts together, those of the machine and of its instances here.

Runs on managed hosts with Python 3.9 and nothing else. Nothing here writes or binds a port. A JVM is
started only to try its options, or to ask for its version where no file has it. Functions take the
root of /proc as an argument, so that tests can make one up.
"""

from __future__ import annotations

import grp
import importlib.util
import json
import os
import pwd
import re
import resource
import socket
import subprocess
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils import java
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    parse_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.file_contexts import is_enabled
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import read_text
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.overrides import (
    read_overrides,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    HIDDEN,
    is_secret,
    masked_url,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.disk_facts import (
    former_data_facts,
    log_directory_facts,
    place_facts,
    zookeeper_data_facts,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.network_facts import (
    ephemeral_ports,
    local_addresses,
    port_holders,
    resolve_names,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.held import (
    holder_of,
    lock_beside,
    marks_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply.installed import (
    complete_releases,
)

IDENTITY_KEYS = ("broker.id", "node.id", "process.roles", "log.dirs")
JVM_TIMEOUT_SECONDS = 20.0
FIREWALLD_TIMEOUT_SECONDS = 10.0
# firewalld keeps what it has deleted as .xml.old
OURS = re.compile(r"kafkaops-[0-9a-f]{8}\.(?:nft|xml)")
PROGRAMS = ("usr/sbin", "sbin", "usr/bin")
# Lines of a JVM that say nothing about the reason.
JVM_EPILOGUE = ("Error: Could not create", "Error: A fatal exception", "Picked up ")


def _instance_spec(properties: str, **paths: Dict[str, Any]) -> Dict[str, Any]:
    """Argument spec of one instance: the common part, and the paths of the product."""
    return dict(
        type="dict",
        options=dict(
            instance=dict(type="str", required=True),
            config_dir=dict(type="path", required=True),
            properties=dict(type="str", default=properties),
            started=dict(type="path", required=True),
            jvm_options=dict(type="list", elements="str", default=[]),
            install_dir=dict(type="path"),
            account=dict(type="str"),
            places=dict(type="dict", default={}),
            taken_over=dict(
                type="dict",
                options=dict(
                    config=dict(type="path", required=True),
                    version=dict(type="str", required=True),
                ),
            ),
            **paths,
        ),
    )


# What the module host_info takes.
ARGUMENTS: Dict[str, Any] = dict(
    kafka=_instance_spec(
        "server.properties", log_dirs=dict(type="list", elements="path", required=True)
    ),
    zookeeper=_instance_spec(
        "zoo.cfg",
        data_dir=dict(type="path", required=True),
        data_log_dir=dict(type="path", required=True),
    ),
    lock=dict(
        type="dict",
        options=dict(
            directory=dict(type="path", required=True),
            cluster=dict(type="str", required=True),
            instances=dict(type="list", elements="path", default=[]),
        ),
    ),
    names=dict(type="list", elements="str", default=[]),
    packages=dict(type="list", elements="str", default=[]),
    java_home=dict(type="str", default=""),
    java_minimum=dict(type="int", default=java.MINIMUM),
    java_maximum=dict(type="int", default=java.MAXIMUM),
)


def started_process(started_file: str, proc: str = "/proc") -> Dict[str, Any]:
    """The process that the launcher recorded: {pid, alive, stale}.

    A pid alone proves nothing: it may belong to another process by now, so its start time has to
    be the recorded one, too.
    """
    state = {"recorded": False, "pid": None, "alive": False, "stale": False, "fingerprint": None}
    # After every stop a record stays behind, and that is well; stale is one that could mislead.
    text = read_text(started_file)
    if text is None:
        return state
    try:
        record = json.loads(text)
        pid, start_time = int(record["pid"]), int(record["start_ticks"])
    except (ValueError, KeyError, TypeError):
        return dict(state, recorded=True, stale=True)
    now = start_ticks(pid, proc)
    return dict(
        state,
        recorded=True,
        pid=pid,
        alive=now == start_time,
        stale=now is not None and now != start_time,
        fingerprint=record.get("fingerprint"),
    )


def memory_bytes(proc: str = "/proc", groups: str = "/sys/fs/cgroup") -> Optional[int]:
    """Physical memory, or the limit of a control group that we are in where that is smaller (a container)."""
    match = re.search(
        r"^MemTotal:\s+(\d+) kB", read_text(os.path.join(proc, "meminfo")) or "", re.M
    )
    total = int(match.group(1)) * 1024 if match else None
    limits = [_limit(path) for path in _memory_limits(proc, groups)]
    return min((each for each in [total, *limits] if each is not None), default=None)


def _memory_limits(proc: str, groups: str) -> Iterator[str]:
    """Files with the limits of our control group and of all above it, as either version of them has it."""
    for line in (read_text(os.path.join(proc, "self/cgroup")) or "").splitlines():
        _number, _colon, rest = line.partition(":")
        controllers, _colon, path = rest.partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        mount, name = (
            (os.path.join(groups, "memory"), "memory.limit_in_bytes")
            if controllers
            else (groups, "memory.max")
        )
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for depth in range(len(parts) + 1):
            yield os.path.join(mount, *parts[:depth], name)


def _limit(path: str) -> Optional[int]:
    """The number in a file; None where it has none, which is no limit."""
    text = (read_text(path) or "").strip()
    return int(text) if text.isdigit() else None


def machine_keys(proc: str = "/proc") -> Dict[str, str]:
    """Two inventory names are one machine if they share a network or a root file system.

    Not /etc/machine-id: containers of one image often share it. The boot id with the inode of the
    network name space is exact for ports; the boot id with the root's device and inode for files. `boot` is that id
    alone, by which the numbers of devices are told from those of other machines.
    """
    boot = (read_text(os.path.join(proc, "sys/kernel/random/boot_id")) or "").strip()
    try:
        network = str(os.stat(os.path.join(proc, "self/ns/net")).st_ino)
    except OSError:
        network = socket.gethostname()
    root = os.stat("/")
    return {
        "boot": boot,
        "network": f"{boot}/{network}",
        "filesystem": f"{boot}/{root.st_dev}:{root.st_ino}",
    }


def limits(proc: str = "/proc") -> Dict[str, Optional[int]]:
    """Hard limit of open files (None: unlimited) and vm.max_map_count (None: not known)."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    maps = (read_text(os.path.join(proc, "sys/vm/max_map_count")) or "").strip()
    return {
        "open_files": None if hard == resource.RLIM_INFINITY else hard,
        "max_map_count": int(maps) if maps.isdigit() else None,
    }


def container(root: str = "/") -> str:
    """The engine whose container this host is, or "". Sources: systemd's container interface, Docker, Podman."""
    told = (read_text(os.path.join(root, "run/systemd/container")) or "").strip()
    if told:
        return told
    marks = ((".dockerenv", "docker"), ("run/.containerenv", "podman"))
    return next((name for mark, name in marks if os.path.exists(os.path.join(root, mark))), "")


def systemd(root: str = "/") -> bool:
    """Whether systemd is process 1 of this host, as sd_booted(3) tells it."""
    return os.path.isdir(os.path.join(root, "run/systemd/system"))


def firewall(root: str = "/") -> Dict[str, Any]:
    """{firewalld: running, stopped or "" where it is not installed; nft: whether it is there; ours: names}."""
    there = {
        program: any(os.path.exists(os.path.join(root, place, program)) for place in PROGRAMS)
        for program in ("firewall-cmd", "nft")
    }
    state = ""
    if there["firewall-cmd"]:
        try:
            asked = subprocess.run(
                ["systemctl", "is-active", "--quiet", "firewalld.service"],
                stdin=subprocess.DEVNULL,
                timeout=FIREWALLD_TIMEOUT_SECONDS,
                check=False,
            )
            state = "running" if asked.returncode == 0 else "stopped"
        except (OSError, subprocess.SubprocessError):
            state = "stopped"
    ours = set()
    for place in ("etc/kafkaops", "etc/firewalld/policies"):
        try:
            names = os.listdir(os.path.join(root, place))
        except OSError:
            continue
        ours |= {os.path.splitext(name)[0] for name in names if OURS.fullmatch(name)}
    return {"firewalld": state, "nft": there["nft"], "ours": sorted(ours)}


def readable_properties(text: str) -> Dict[str, str]:
    """What a properties file says; without the lines with an escape that is none (`\\uno`).

    Who has edited the file by hand must not hide the id and the directories in its other lines.
    """
    found: Dict[str, str] = {}
    for line in text.splitlines():
        try:
            found.update(parse_properties(line))
        except ValueError:
            continue
    return found


def identity_in(generation: str, properties: str) -> Optional[Dict[str, str]]:
    """The node's id, roles and directories in the configuration of one generation, None without it."""
    text = read_text(os.path.join(generation, properties))
    if text is None:
        return None
    found = readable_properties(text)
    return {key: found[key] for key in IDENTITY_KEYS if key in found}


def account_facts(name: str) -> Optional[Dict[str, Any]]:
    """{name, group, uid, gids} of an account of this host, None where there is none."""
    try:
        found = pwd.getpwnam(name)
        group = grp.getgrgid(found.pw_gid).gr_name
    except (KeyError, ValueError):  # ValueError: what could not be a name
        return None
    gids = sorted(os.getgrouplist(name, found.pw_gid))
    return {"name": name, "group": group, "uid": found.pw_uid, "gids": gids}


def instance_facts(
    instance: Dict[str, Any], proc: str = "/proc", java_home: Optional[str] = None
) -> Dict[str, Any]:
    """What is known of one instance's last start, and of the configuration and release in force.

    `java_home`: the Java of the next start, None for that of the last one.
    """
    config_dir = instance["config_dir"]
    started = started_process(instance["started"], proc)
    generation = _in_force(config_dir, started)
    text = read_text(os.path.join(generation, instance["properties"]))
    meaning = None
    try:
        meaning = json.loads(read_text(os.path.join(generation, "meaning.json")) or "{}")
        release = os.path.basename(str(meaning.get("release") or "")) or None
    except (ValueError, AttributeError):
        release = None
    # Until a start of ours was answered, what is in force is what others have installed.
    ours = started["alive"] or os.path.lexists(os.path.join(config_dir, "answered"))
    former = None if ours else _former(instance)
    if former:
        text, release = former
    tried = instance.get("jvm_options") or []
    runs = meaning if started["alive"] and isinstance(meaning, dict) else {}
    options = [*(runs.get("jvm_options") or []), *(runs.get("default_options") or [])]
    # A process that runs with this Java and these options needs no further trial.
    same_java = bool(runs) and java_home in (None, runs.get("java_home"))
    same_options = same_java and set(tried) <= set(options)
    return {
        "instance": instance["instance"],
        "untried_java": not same_java,
        "untried_jvm_options": [] if same_options else tried,
        "config_dir": config_dir,
        "ours": ours,
        "started": started,
        "current": readable_properties(text) if text is not None else None,
        "release": release,
        "releases": (
            complete_releases(instance["install_dir"]) if instance.get("install_dir") else []
        ),
        "account": account_facts(instance.get("account") or ""),
        "places": {
            name: place_facts(path) for name, path in (instance.get("places") or {}).items()
        },
    }


def _former(instance: Dict[str, Any]) -> Optional[Tuple[Optional[str], Optional[str]]]:
    """(configuration, release) of what others have installed, both None where the file cannot be read.

    None where no data of theirs is there, as on a host that joins later: the variable may stand in group_vars.
    """
    named = instance.get("taken_over")
    if not named:
        return None
    text = read_text(named["config"])
    told = readable_properties(text) if text is not None else {}
    places = [*(instance.get("log_dirs") or ()), *told.get("log.dirs", "").split(",")]
    places += [instance.get("data_dir"), told.get("dataDir")]
    for place in filter(None, places):
        for name in ("meta.properties", "version-2"):
            if os.path.lexists(os.path.join(place.strip(), name)):
                return (text, f"former-{named['version']}") if text is not None else (None, None)
    return None


def _in_force(config_dir: str, started: Dict[str, Any]) -> str:
    """The directory of the generation of the running process, or of what ran last.

    That is where `current` leads to, unless the turn to it was cut off before it was started once: then `fallback` has
    what start.yml starts, and nobody has written or spoken as `current` says.
    """
    current, fallback = (os.path.join(config_dir, link) for link in ("current", "fallback"))
    if started["alive"]:
        running = os.path.join(config_dir, "generations", str(started["fingerprint"]))
        return running if os.path.isdir(running) else current
    begun = started["fingerprint"] == os.path.basename(os.path.realpath(current))
    return fallback if os.path.isdir(fallback) and not begun else current


def jvm_refusal(home: str, options: List[str]) -> Optional[str]:
    """What the JVM in `home` says to these options; None if it starts with them, or takes too long to tell."""
    # A JVM that gets no memory would leave its report in the working directory, or where the options say.
    harmless = ["-XX:-AlwaysPreTouch", "-XX:ErrorFile=/dev/null"]
    try:
        done = subprocess.run(
            [os.path.join(home, "bin", "java"), *options, *harmless, "-version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=JVM_TIMEOUT_SECONDS,
            check=False,
        )
    except OSError as error:
        return str(error)  # built for another kind of machine, for example
    except subprocess.SubprocessError:
        return None
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stdout.decode("utf-8", "replace").splitlines()]
    told = [line for line in lines if line and not line.startswith(JVM_EPILOGUE)]
    return " ".join(told[:3])[:400] or f"exit code {done.returncode}"


def masked_properties(properties: Optional[Dict[str, str]]) -> Optional[Dict[str, str]]:
    """The same properties, secrets hidden: facts travel through results and logs.

    Not by masking.masked: addresses are used, and `secret-1:9092` is one of a host with that name.
    """
    if properties is None:
        return None
    return {
        key: HIDDEN if value and is_secret(key) else masked_url(value)
        for key, value in properties.items()
    }


def lock_holder(spec: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """Which run holds the lock of the cluster here; None for nobody, and for what may not be read.

    `under`: another name of the cluster, under which that run holds it, else "".
    """
    if not spec:
        return None
    try:
        holder = holder_of(spec["directory"], spec["cluster"], spec.get("instances") or ())
    except OSError:
        return None
    if holder is None:
        return None
    return {
        **holder.to_dict(),
        "under": "" if holder.cluster == spec["cluster"] else holder.cluster,
    }


def lock_of_disks(spec: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """Which run moves replicas between the disks of the cluster, as of `lock_holder`."""
    return (
        lock_holder({**spec, "cluster": lock_beside(spec["cluster"]), "instances": ()})
        if spec
        else None
    )


def missing_packages(names: Iterable[str]) -> List[str]:
    """Which of these packages this Python does not find; none is imported."""
    return [name for name in names if importlib.util.find_spec(name) is None]


def host_facts(
    spec: Dict[str, Any],
    proc: str = "/proc",
    refusal: Callable[[str, List[str]], Optional[str]] = jvm_refusal,
    sockets: Callable[[], Optional[List[Dict[str, Any]]]] = lambda: None,
) -> Dict[str, Any]:
    """Everything the preflight wants to know of one host, for one inventory name.

    `spec`: {kafka: {config_dir, properties, started, instance, log_dirs} or None,
    zookeeper: {..., data_dir, data_log_dir} or None, names: [str], java_home: str,
    java_minimum: int, java_maximum: int, lock: {directory, cluster} or None}. `sockets` returns those of this
    machine where somebody has looked for them already.
    """
    facts: Dict[str, Any] = {
        "machine": machine_keys(proc),
        "clock": time.time(),
        "user": os.geteuid(),
        "memory_bytes": memory_bytes(proc),
        "limits": limits(proc),
        "ephemeral_ports": ephemeral_ports(proc),
        "addresses": local_addresses(proc),
        "container": container(),
        "systemd": systemd(),
        "firewall": firewall(),
        "selinux": is_enabled(),
        "java": java.find(
            spec.get("java_minimum") or 0,
            spec.get("java_maximum") or 999,
            spec.get("java_home") or "",
        ),
        "kafka": None,
        "zookeeper": None,
        "lock": lock_holder(spec.get("lock")),
        "lock_of_disks": lock_of_disks(spec.get("lock")),
        "marks": list(marks_of((spec.get("lock") or {}).get("instances") or ())),
    }
    pids, paths = [], []
    home, tries = facts["java"]["home"], []
    facts["java"]["place"] = place_facts(home) if home else None
    refusals: Dict[Tuple[str, ...], Optional[str]] = {}
    for product in ("kafka", "zookeeper"):
        wanted = spec.get(product)
        if not wanted:
            continue
        found = instance_facts(wanted, proc, home)
        tries.append(found.pop("untried_java"))
        pids.append(found["started"]["pid"] if found["started"]["alive"] else None)
        # What we start names a generation. The directory itself, such as /etc/kafka, may have files of others, too.
        for name in ("current", "generations"):
            paths.append(os.path.join(wanted["config_dir"], name))
        if product == "kafka":
            for link, fact in (("answered", "answered"), ("next", "staged")):
                place = os.path.join(wanted["config_dir"], link)
                found[fact] = identity_in(place, wanted["properties"])
            found["log_dirs"] = [log_directory_facts(path) for path in wanted["log_dirs"]]
            noted = read_overrides(wanted["config_dir"])
            found["overrides"] = (
                {key: list(values) for key, values in noted.settings.items()} if noted else {}
            )
            running_with = (found["current"] or {}).get("log.dirs", "")
            dropped = [
                path.strip()
                for path in running_with.split(",")
                if path.strip() and path.strip() not in wanted["log_dirs"]
            ]
            found["other_log_dirs"] = [log_directory_facts(path) for path in dropped]
        else:
            directories = wanted["data_dir"], wanted["data_log_dir"]
            found["data"] = zookeeper_data_facts(*directories)
            found["former_data"] = former_data_facts(
                found["current"] or {}, *directories, runs=found["started"]["alive"]
            )
        found["current"] = masked_properties(found["current"])
        untried = tuple(found.pop("untried_jvm_options"))
        if untried and home:
            if untried not in refusals:
                refusals[untried] = refusal(home, list(untried))
            found["jvm_refusal"] = refusals[untried]
        facts[product] = found
    # What starts with options starts without; where it does not, they may not be to blame.
    if home and tries and all(tries) and None not in refusals.values():
        facts["java"]["refusal"] = refusal(home, [])
    facts["ports"] = port_holders([pid for pid in pids if pid], paths, proc, sockets())
    facts["names"] = resolve_names(spec.get("names") or [])
    facts["missing_packages"] = missing_packages(spec.get("packages") or [])
    return facts

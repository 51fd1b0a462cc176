# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The README from top to bottom, by somebody who has just cloned it, with the inventory as it stands there.

The tests go through one day in the order in which they stand.
"""

from __future__ import annotations

import json
import os
import shutil

import pytest
import yaml

from tests.support.node_containers import inside
from tests.support.nodes import changed
from tests.support.stranger import (
    HOSTS,
    Stranger,
    container,
    readme_inventory,
    remove_hosts,
    start_hosts,
)

if os.geteuid() != 0:
    pytest.skip("only root can become somebody else", allow_module_level=True)

INVENTORY = ("-i", "my-inventory.yml")
# alone on hosts of their own; tests/local goes through all of them
TAG = "configure"
# of the two small local clusters
PORT_OFFSET = 22600
# Of inventories/production all stands as it is; only where these hosts are is another matter, and how small they are.
HERE = {"kafka_heap": "512m", "zookeeper_heap": "128m", "flow_validation_records": 20000}


@pytest.fixture(scope="module")
def stranger():
    """Return the user, with the README's inventory beside the playbooks, and six hosts that run."""
    remove_hosts()
    user = Stranger()
    try:
        start_hosts(user.key)
        (user.checkout / "my-inventory.yml").write_text(readme_inventory())
        yield user
    finally:
        try:
            user.close()
        finally:
            remove_hosts()


def verdicts(stranger, cluster):
    """Return the verdicts of a cluster by the names of their runs."""
    folder = stranger.home / ".local" / "share" / "kafkaops" / "reports" / cluster
    return {
        path.parent.name: json.loads(path.read_text())
        for path in folder.glob("*/verdict.json")
        if not path.parent.is_symlink()
    }


def test_the_inventory_is_that_of_the_readme():
    """With become for all, and six hosts of their own: what a stranger copies."""
    inventory = yaml.safe_load(readme_inventory())["all"]
    assert inventory["vars"]["ansible_become"] is True and len(HOSTS) == 6
    assert list(inventory["children"]["zookeeper"]["hosts"]) == ["zk[1:3].example.org"]
    assert list(inventory["children"]["kafka"]["hosts"]) == ["kafka[1:3].example.org"]


def test_the_user_has_no_rights(stranger):
    """Neither sudo nor the password of anybody."""
    probe = stranger.checkout / "probe.yml"
    probe.write_text(
        "- {hosts: localhost, gather_facts: false, become: true, tasks: [{ansible.builtin.command: id}]}\n"
    )
    said = stranger.play("probe.yml", code=2)
    assert "sudo" in said, said
    probe.unlink()


def test_fetch_without_hosts(stranger):
    """The names of the hosts mean nothing on this controller; the cache is empty."""
    assert not (stranger.home / ".cache").exists()
    said = stranger.play("playbooks/fetch.yml", *INVENTORY, online=True, names=False)
    assert sum(changed(said).values()) > 0
    # nothing is left to fetch, so that the registries are not asked any more
    said = stranger.play("playbooks/fetch.yml", *INVENTORY, names=False)
    assert sum(changed(said).values()) == 0


def test_without_the_cache_nothing_would_be_offline(stranger):
    """Otherwise the tests below would prove nothing."""
    empty = str(stranger.home / "empty")
    said = stranger.play("playbooks/fetch.yml", *INVENTORY, code=2, KAFKAOPS_CACHE=empty)
    assert "[fetch.failed]" in said, said
    shutil.rmtree(empty, ignore_errors=True)


def test_preflight(stranger):
    said = stranger.play("playbooks/preflight.yml", *INVENTORY)
    assert set(changed(said).values()) == {0} and set(changed(said)) == set(HOSTS)


def test_the_plan_with_an_empty_cache(stranger):
    """--check has nothing to copy yet; it says what it would do, and does nothing."""
    empty = stranger.home / "empty"
    said = stranger.play(
        "site.yml", *INVENTORY, "--check", "--diff", online=True, KAFKAOPS_CACHE=str(empty)
    )
    assert all(changed(said).values()), said
    assert "+zookeeper.connect=" in said and "servers of ZooKeeper 3.9.5" in said
    assert not empty.exists()
    for name in HOSTS:
        inside(container(name), "! ls -d /opt/kafka /opt/zookeeper /etc/kafka")


def test_deployed_and_proven_offline(stranger):
    said = stranger.play("site.yml", *INVENTORY)
    assert "PASS" in said and "3 brokers of Kafka 3.9.2, 3 servers of ZooKeeper 3.9.5" in said
    (verdict,) = verdicts(stranger, "prod").values()
    assert verdict["verdict"] == "pass" and verdict["cluster_id"]
    for name in HOSTS:
        left = inside(container(name), "ls -A /opt/*/ /var/tmp | grep -e incoming -e tgz || true")
        assert left == ""


def test_status(stranger):
    said = stranger.play("playbooks/status.yml", *INVENTORY)
    assert all(f"{name} " in said for name in HOSTS), said
    assert "Every partition has all of its replicas in sync." in said


def test_the_second_run_changes_nothing_and_trusts_the_verdict(stranger):
    said = stranger.play("site.yml", *INVENTORY)
    assert set(changed(said).values()) == {0}, said
    assert len(verdicts(stranger, "prod")) == 1


def test_a_tag_alone(stranger):
    said = stranger.play("site.yml", *INVENTORY, "--tags", TAG)
    assert set(changed(said).values()) == {0}, said


def test_the_verdict_of_another_cluster_is_not_trusted(stranger):
    """Two inventories with one cluster name on one controller: ours is proven again, offline, too."""
    reports = stranger.home / ".local" / "share" / "kafkaops" / "reports" / "prod"
    latest = reports / "latest" / "verdict.json"
    ours = latest.read_text()
    latest.write_text(json.dumps({**json.loads(ours), "cluster_id": "another"}))
    said = stranger.play("site.yml", *INVENTORY, "--tags", "validate")
    # Ansible wraps long lines
    assert "about the cluster another" in " ".join(said.split()) and "PASS" in said
    assert sorted(each["verdict"] for each in verdicts(stranger, "prod").values()) == ["pass"] * 2


def test_two_clusters_in_one_inventory(stranger):
    """Each gets a verdict of its own; here on the controller, as small as they can be."""
    inventory = stranger.checkout / "two"
    inventory.mkdir()
    (inventory / "group_vars").symlink_to("../inventories/local/group_vars")
    groups = {
        kind: {
            "hosts": {
                f"{kind}-1": {"local_cluster_name": "left"},
                f"{kind}-2": {"local_cluster_name": "right"},
            }
        }
        for kind in ("zookeeper", "kafka")
    }
    groups["kafka"]["vars"] = {
        "flow_validation_records": 2000,
        "kafka_topics": [{"name": "orders"}],
    }
    (inventory / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups}}))
    both = ("-i", "two", "-e", f"local_port_offset={PORT_OFFSET}")
    said = stranger.play("site.yml", *both)
    found = [list(verdicts(stranger, name).values()) for name in ("left", "right")]
    assert [[each["verdict"] for each in runs] for runs in found] == [["pass"], ["pass"]], said
    assert found[0][0]["cluster_id"] != found[1][0]["cluster_id"]
    for name in ("left", "right"):
        assert said.count(f"cluster    {name}: 1 broker of Kafka ") == 1, said
    assert said.count("bootstrap  127.0.0.1:") == 2, said
    stranger.play("playbooks/stop.yml", *both)


@pytest.mark.soak
def test_the_example_for_production_as_it_stands(stranger):
    """Passwords over TLS, ACLs, a vault and a listener for each audience, on hosts that had another cluster.

    Its firewall is not set: a container's belongs to the engine (molecule/alternatives has firewalls).
    """
    stranger.play("playbooks/teardown.yml", *INVENTORY, "-e", "confirm=prod")
    hosts = {name: {"ansible_host": address, **HERE} for name, address in HOSTS.items()}
    (stranger.checkout / "here.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    password = stranger.checkout / "vault-password"
    password.write_text("example\n")
    vault = ("--vault-password-file", str(password))
    production = ("-i", "inventories/production", "-i", "here.yml", *vault)
    said = stranger.play("site.yml", *production)
    assert "PASS" in said and "3 brokers of Kafka 3.9.2, 3 servers of ZooKeeper 3.9.5" in said
    (verdict,) = verdicts(stranger, "production").values()
    assert verdict["verdict"] == "pass" and verdict["counts"]["acked"] > 0
    said = stranger.play("site.yml", *production)
    assert set(changed(said).values()) == {0}, said


def test_nothing_on_the_controller_belongs_to_root(stranger):
    foreign = [path for path in stranger.home.rglob("*") if path.lstat().st_uid != stranger.uid]
    ours = {"my-inventory.yml", "two", "group_vars", "hosts.yml", "here.yml", "vault-password"}
    assert [path for path in foreign if path.name not in ours] == []

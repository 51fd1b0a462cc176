# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On hosts with systemd: another release, back, there again, and for good, while records flow."""

from __future__ import annotations

import pytest

from tests.support.load import Load
from tests.support.node_containers import inside
from tests.support.nodes import ADDRESSES, CHECKOUT, changed, host, main_process, play, three

CLEANUP = str(CHECKOUT / "molecule" / "cleanup.yml")
OLD, NEW = "3.8.1", "3.9.2"
OLD_ZOOKEEPER, NEW_ZOOKEEPER = "3.8.6", "3.9.5"
RATE = 19  # of Load: some 4,000 records a second in all
cluster = three()


def wants(kafka, zookeeper):
    """The options of a playbook that give the releases."""
    return ("-e", f"kafka_version={kafka}", "-e", f"zookeeper_version={zookeeper}")


def releases(unit):
    """The releases that the nodes' instances run from, by their processes."""
    found = set()
    known = {"kafka": (OLD, NEW), "zookeeper": (OLD_ZOOKEEPER, NEW_ZOOKEEPER)}[unit]
    for name in ADDRESSES:
        pid = main_process(host(name), unit)
        words = inside(name, f"tr '\\0' ' ' < /proc/{pid}/cmdline")
        found |= {version for version in known if f"-{version}" in words}
    return found


@pytest.mark.soak
def test_releases_change_while_records_flow():
    play(CLEANUP, inventory="faults")
    old, new = wants(OLD, OLD_ZOOKEEPER), wants(NEW, OLD_ZOOKEEPER)
    play("site.yml", "-e", "flow_validation=never", *old, inventory="faults")
    assert (releases("kafka"), releases("zookeeper")) == ({OLD}, {OLD_ZOOKEEPER})
    everybody = sorted(name for name in cluster.addresses if name.startswith("kafka"))
    for what, playbook, versions, release in (
        ("upgrade", "rolling_upgrade.yml", new, NEW),
        ("rollback", "rollback.yml", old, OLD),
        ("upgrade again", "rolling_upgrade.yml", new, NEW),
    ):
        with Load(cluster, "orders", what, RATE) as load:
            play(playbook, *versions, inventory="faults")
        assert sorted(load.watch.check()) == everybody
        assert releases("kafka") == {release}
        again = play(playbook, *versions, inventory="faults")
        assert set(changed(again).values()) == {0}, again
    with Load(cluster, "orders", "finalising", RATE) as load:
        finalize = ("-e", "kafka_finalize=true")
        play("rolling_upgrade.yml", *finalize, *new, inventory="faults")
    assert sorted(load.watch.check()) == everybody
    play("rollback.yml", *old, inventory="faults", code=2)
    assert releases("kafka") == {NEW}

    servers = sorted(name for name in cluster.addresses if name.startswith("zookeeper"))
    for what, playbook, version in (
        ("upgrade of ZooKeeper", "rolling_upgrade.yml", NEW_ZOOKEEPER),
        ("rollback of ZooKeeper", "rollback.yml", OLD_ZOOKEEPER),
    ):
        with Load(cluster, "orders", what, RATE) as load:
            play(playbook, *wants(NEW, version), inventory="faults")
        assert sorted(load.watch.check()) == servers
        assert releases("zookeeper") == {version} and releases("kafka") == {NEW}

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On hosts with systemd: one broker anew, another release, back, and there again, while records flow."""

from __future__ import annotations

import contextlib

import pytest

from tests.local.watching import InSync
from tests.support.nodes import (
    ADDRESSES,
    CHECKOUT,
    Cluster,
    changed,
    host,
    inside,
    main_process,
    play,
)
from tests.support.outside import wait_until
from tests.support.traffic import Traffic

CLEANUP = str(CHECKOUT / "molecule" / "cleanup.yml")
OLD, NEW = "3.8.1", "3.9.2"
cluster = Cluster({number: f"{ip}:9092" for number, ip in enumerate(ADDRESSES.values(), 1)})


def wants(version):
    """The options of a playbook that give Kafka's release."""
    return ("-e", f"kafka_version={version}")


def releases():
    """The releases that the nodes' brokers run from, by their processes."""
    found = set()
    for name in ADDRESSES:
        pid = main_process(host(name), "kafka")
        words = inside(name, f"tr '\\0' ' ' < /proc/{pid}/cmdline; ls -l /proc/{pid}/cwd")
        found |= {version for version in (OLD, NEW) if f"kafka_2.13-{version}" in words}
    return found


@contextlib.contextmanager
def under_load(what):
    """Records flow meanwhile; none is lost, and never are fewer than two replicas in sync."""
    wait_until(cluster.is_whole, 180, "whole before")
    with Traffic(cluster, "orders", at_once=10) as traffic, InSync(cluster, "orders") as in_sync:
        wait_until(lambda: traffic.acknowledged, 60, "acknowledgements")
        yield
        enough = len(traffic.acknowledged) + 500
        wait_until(lambda: len(traffic.acknowledged) > enough, 120, "acknowledgements afterwards")
    print(
        f"\n{what}: {len(traffic.acknowledged)} records, longest pause of a partition"
        f" {traffic.longest_pause:.2f} s, fewest in sync {in_sync.fewest} in {in_sync.looks} looks",
        flush=True,
    )
    assert not traffic.failed and traffic.lost() == []
    assert in_sync.looks and in_sync.fewest >= 2
    wait_until(cluster.is_whole, 180, "whole")


@pytest.mark.soak
def test_releases_change_while_records_flow():
    play(CLEANUP, inventory="faults")
    play("site.yml", "-e", "flow_validation=never", *wants(OLD), inventory="faults")
    assert releases() == {OLD}
    pids = {name: main_process(host(name), "kafka") for name in ADDRESSES}
    with under_load("one broker restarted"):
        play("rolling_restart.yml", "-e", "broker=2", *wants(OLD), inventory="faults")
    now = {name: main_process(host(name), "kafka") for name in ADDRESSES}
    assert [name for name in ADDRESSES if now[name] != pids[name]] == [list(ADDRESSES)[1]]
    for playbook, version in (
        ("rolling_upgrade.yml", NEW),
        ("rollback.yml", OLD),
        ("rolling_upgrade.yml", NEW),
    ):
        with under_load(f"{playbook} to {version}"):
            play(playbook, *wants(version), inventory="faults")
        assert releases() == {version}
        again = play(playbook, *wants(version), inventory="faults")
        assert set(changed(again).values()) == {0}, again
    with under_load("finalising"):
        finalize = ("-e", "kafka_finalize=true")
        play("rolling_upgrade.yml", *finalize, *wants(NEW), inventory="faults")
    play("rollback.yml", *wants(OLD), inventory="faults", code=2)
    assert releases() == {NEW}

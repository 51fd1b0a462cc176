# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZooKeeper and a broker share a core and 2 GiB: nothing was killed for want of memory, half of it is page cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import node_containers, verdict_schema
from tests.support.nodes import ADDRESSES, Cluster, host, main_process, play

NAME = "ko-node-1"
GIB = 2**30
UNITS = {"kafka": "512m", "zookeeper": "128m"}
cluster = Cluster({1: f"{ADDRESSES[NAME]}:9092"})


def group_of(name):
    """The directory of a node's control group for memory, on this machine; of either version."""
    mine = node_containers.get(name).id
    groups = Path("/sys/fs/cgroup")
    places = [groups / "memory/docker" / mine, groups / "docker" / mine]
    places += [base / f"system.slice/docker-{mine}.scope" for base in (groups / "memory", groups)]
    return next(place for place in places if place.is_dir())


def numbers(file):
    """A file of lines with a name and a number as a dict."""
    pairs = (line.split() for line in file.read_text().splitlines())
    return {name: int(number) for name, number in pairs}


def test_it_is_a_small_host():
    """Else the tests below would say nothing."""
    group = group_of(NAME)
    limit = next(
        file for file in (group / "memory.limit_in_bytes", group / "memory.max") if file.exists()
    )
    assert int(limit.read_text()) == 2 * GIB
    assert host(NAME).check_output("nproc") == "1"


@pytest.mark.parametrize("unit", UNITS)
def test_what_runs_has_a_small_heap_and_never_ended(unit):
    node = host(NAME)
    words = node.file(f"/proc/{main_process(node, unit)}/cmdline").content_string.split("\0")
    assert {f"-Xms{UNITS[unit]}", f"-Xmx{UNITS[unit]}", "-XX:+UseSerialGC"} <= set(words)
    assert node.check_output(f"systemctl show -p NRestarts --value {unit}") == "0"


def test_the_broker_has_the_buffers_of_a_small_host():
    found = cluster.effective(1)
    assert found["log.cleaner.dedupe.buffer.size"] == "16777216"
    assert found["queued.max.request.bytes"] == "104857600" and found["num.io.threads"] == "4"


def test_a_million_records_were_proven_and_nobody_was_killed():
    home = Path(os.environ.get("KAFKAOPS_HOME") or Path.home() / ".local" / "share" / "kafkaops")
    verdict = verdict_schema.read(home / "reports" / "small" / "latest" / "verdict.json")
    assert verdict["verdict"] == "pass" and verdict["counts"]["acked"] == 1_000_000
    group = group_of(NAME)
    events = group / "memory.events"
    kills = numbers(events if events.exists() else group / "memory.oom_control")["oom_kill"]
    assert kills == 0


def test_half_of_the_memory_is_left_to_the_page_cache():
    found = numbers(group_of(NAME) / "memory.stat")
    used = found.get("total_rss", found.get("anon"))
    print(
        f"\nall processes {used / GIB:.2f} GiB, page cache {found.get('total_cache', found.get('file')) / GIB:.2f}"
    )
    assert used < GIB


def test_without_the_profile_it_is_refused_with_the_remedy():
    said = play("preflight.yml", "-e", "kafkaops_profile=production", inventory="small", code=2)
    assert "[memory.heap] ko-node-1: kafka_heap + zookeeper_heap=7.0 GiB" in said, said
    assert "set kafkaops_profile: small" in said and "the machine has 2.0 GiB" in said
    said = play("preflight.yml", inventory="small")
    assert "memory." not in said

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that Kafka takes while it runs: no process restarts, and the override goes with the next restart."""

from __future__ import annotations

import json
import re

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource

from tests.local.watching import changed
from tests.support.outside import wait_until
from tests.support.watching import cluster_is_whole

NEVER = ("-e", "flow_validation=never")
DYNAMIC = "num.io.threads"
READ_ONLY = "queued.max.requests"


def described(cluster, broker, key=DYNAMIC):
    """Return (value, source) of a setting, as the broker itself tells it."""
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
    admin = cluster.admin()  # it must live as long as its answer is waited for
    (future,) = admin.describe_configs([resource]).values()
    entry = future.result(30)[key]
    return entry.value, ConfigSource(entry.source)


def of_all(cluster, key=DYNAMIC):
    """Return the set of what all brokers tell of a setting."""
    return {described(cluster, broker, key) for broker in cluster.brokers.values()}


def override(cluster, broker, key, value):
    """Set an override behind the collection's back; None takes it away."""
    kind = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(key, value, incremental_operation=kind)
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker), incremental_configs=[entry])
    admin = cluster.admin()
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(30)


def properties(cluster, name):
    """Return the server.properties that a next start of the broker reads."""
    return (cluster.instance(name) / "conf" / "current" / "server.properties").read_text()


@pytest.fixture(scope="module")
def at_rest(cluster):
    """The shared cluster, whole, with nothing pending; settings of these tests stay."""
    cluster.deploy()
    wait_until(lambda: cluster_is_whole(cluster), 60, "whole")
    return cluster


def test_a_dynamic_setting_changes_without_a_restart(at_rest):
    """Shown by --check, made by the run, not pending for status."""
    cluster, before = at_rest, at_rest.processes()
    cluster.set_brokers({DYNAMIC: 12})
    looked = cluster.play("site.yml", *NEVER, "--check", "--diff")
    told = " ".join(looked.text.split())
    assert told.count("num.io.threads 8 -> 12: changed without a restart") == 3, looked.text
    assert "may stop now" not in told, "no broker needs to"
    assert of_all(cluster) == {("8", ConfigSource.DEFAULT_CONFIG)}

    run = cluster.deploy()
    told = " ".join(run.text.split())
    assert told.count("num.io.threads 8 -> 12: changed without a restart") == 3, run.text
    assert cluster.processes() == before, "nothing restarted"
    assert of_all(cluster) == {("12", ConfigSource.DYNAMIC_BROKER_CONFIG)}
    for name in cluster.brokers:
        assert f"{DYNAMIC}=12" in properties(cluster, name), "a next start has it from its file"
    again = cluster.deploy()
    assert again.changed() == 0, again.text
    status = cluster.play("status.yml").text
    assert "Restart pending" not in status and "config.dynamic_override" not in status, status


@pytest.mark.soak
def test_the_next_restart_takes_the_override_away(at_rest):
    """Too far for a running broker, and a setting that it reads only at its start: both need the restart."""
    cluster, before = at_rest, at_rest.processes()
    cluster.set_brokers({DYNAMIC: 40, READ_ONLY: 444})
    cluster.play("rolling_restart.yml")
    assert changed(before, cluster.processes()) == set(cluster.brokers)
    assert of_all(cluster) == {("40", ConfigSource.STATIC_BROKER_CONFIG)}
    for name in cluster.brokers:
        assert not (cluster.instance(name) / "conf" / "overrides.json").exists()
    assert cluster.deploy().changed() == 0


@pytest.mark.soak
def test_what_somebody_else_has_set_is_told_and_left_alone(at_rest):
    """As a finding with the command that takes it away; our own change of that key becomes a restart."""
    cluster = at_rest
    victim = cluster.name_of(2)
    override(cluster, 2, "num.network.threads", "4")
    try:
        wait_until(
            lambda: described(cluster, 2, "num.network.threads")[0] == "4", 30, "the override"
        )
        told = " ".join(cluster.play("status.yml").text.split())
        assert re.search(
            rf"\[config.dynamic_override\] {victim}: num.network.threads=4", told
        ), told
        assert "--entity-name 2 --delete-config num.network.threads" in told
        wanted = '{"kafka_config": {"num.network.threads": 5}}'
        run = cluster.play("site.yml", *NEVER, "--check", "--limit", victim, "-e", wanted)
        told = " ".join(run.text.split())
        assert "was set by somebody else" in told and "may stop now" in told, run.text
        assert cluster.deploy().changed() == 0
        assert described(cluster, 2, "num.network.threads")[0] == "4", "never taken away"
    finally:
        override(cluster, 2, "num.network.threads", None)


@pytest.mark.soak
def test_a_run_that_was_killed_in_between_converges(at_rest):
    """Noted and set, not yet taken for started with it: as a kill between the two steps leaves it."""
    cluster, before = at_rest, at_rest.processes()
    started = {name: properties(cluster, name) for name in cluster.brokers}
    have = int(described(cluster, 1)[0])
    for name, broker in cluster.brokers.items():
        record = {"settings": {DYNAMIC: [str(have + 2)]}, "fingerprint": "", "pid": 0}
        path = cluster.instance(name) / "conf" / "overrides.json"
        path.write_text(json.dumps({**record, "started_at": 0}))
        override(cluster, broker, DYNAMIC, str(have + 2))
    wait_until(lambda: {value for value, dummy in of_all(cluster)} == {str(have + 2)}, 30, "set")
    # Nobody wants it any more: what was noted is taken away, and nothing else touched.
    cluster.deploy()
    assert {value for value, _source in of_all(cluster)} == {str(have)}
    assert ConfigSource.DYNAMIC_BROKER_CONFIG not in {source for _value, source in of_all(cluster)}
    assert cluster.processes() == before
    assert {name: properties(cluster, name) for name in cluster.brokers} == started
    assert cluster.deploy().changed() == 0

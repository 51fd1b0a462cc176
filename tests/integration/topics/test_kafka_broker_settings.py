# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_broker_settings against real brokers: what they take while they run, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource

from tests.support.outside import wait_until
from tests.support.run_module import run_module

ROOT = Path(__file__).resolve().parents[3]
TABLE = ROOT / "roles" / "kafka" / "files" / "config-keys" / "3.9.2.json"
KEYS = json.loads(TABLE.read_text())["broker"]
THREADS = "num.io.threads"  # 4 in the files of these brokers
STATIC, DYNAMIC = ConfigSource.STATIC_BROKER_CONFIG, ConfigSource.DYNAMIC_BROKER_CONFIG


def change(cluster, *brokers, check=False):
    """The module."""
    arguments = {"bootstrap_servers": cluster.bootstrap_servers, "brokers": list(brokers)}
    return run_module("kafka_broker_settings", {**arguments, "keys": KEYS}, check)


def asked(broker, key, before, after, **own):
    """What one broker is to have."""
    return {"id": broker, "settings": {key: {"before": before, "after": after}}, "own": own}


def left(broker, key, value, file):
    """An override of ours that a restart has left."""
    return {"id": broker, "own": {key: {"values": [value], "file": file}}}


@pytest.fixture
def described(admin):
    """Return (value, source) of a setting, as the broker tells it."""

    def ask(broker, key=THREADS):
        resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
        (future,) = admin.describe_configs([resource]).values()
        entry = future.result(30)[key]
        return entry.value, ConfigSource(entry.source)

    return ask


@pytest.fixture
def override(admin, described):
    """Set an override as somebody else would; all of them are gone at the end."""
    made = []

    def put(broker, key, value):
        kind = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry(key, value, incremental_operation=kind)
        resource = ConfigResource(
            ConfigResource.Type.BROKER, str(broker), incremental_configs=[entry]
        )
        (future,) = admin.incremental_alter_configs([resource]).values()
        future.result(30)
        if value is not None:
            made.append((broker, key))
            wait_until(lambda: described(broker, key)[0] == value, 30, "in effect")

    yield put
    for broker, key in made:
        put(broker, key, None)


def test_all_brokers_in_one_call_and_back(cluster, described):
    brokers = [asked(number, THREADS, "4", "6") for number in (1, 2, 3)]
    looked = change(cluster, *brokers, check=True)
    assert looked.changed and described(1) == ("4", STATIC)
    done = change(cluster, *brokers)
    assert done.outcomes == looked.outcomes and all(each["live"] for each in done.outcomes)
    assert {described(number) for number in (1, 2, 3)} == {("6", DYNAMIC)}
    mine = {THREADS: {"values": ["6"], "file": "4"}}
    again = change(cluster, *[asked(number, THREADS, "4", "6", **mine) for number in (1, 2, 3)])
    assert not again.changed and again.outcomes[0]["own"] == {THREADS: "6"}
    seen = run_module(
        "kafka_cluster_info", {"bootstrap_servers": cluster.bootstrap_servers, "overrides": True}
    )
    assert seen.overrides == [
        {"broker": number, "name": THREADS, "value": "6"} for number in (1, 2, 3)
    ]
    assert change(cluster, *[left(number, THREADS, "6", "4") for number in (1, 2, 3)]).changed
    assert {described(number) for number in (1, 2, 3)} == {("4", STATIC)}


def test_a_long_way_back_is_gone_in_steps(cluster, override, described):
    """At once Kafka refuses it: should be at least half the current value."""
    for value in ("8", "16", "32"):
        override(1, THREADS, value)
    assert change(cluster, left(1, THREADS, "32", "4")).outcomes[0]["live"]
    assert described(1) == ("4", STATIC)


def test_what_kafka_refuses_is_a_reason_in_its_own_words(cluster, described):
    done = change(
        cluster,
        asked(1, "log.cleaner.dedupe.buffer.size", None, "1000"),
        asked(2, THREADS, "4", "5"),
        asked(9, THREADS, "4", "5"),
    )
    first, second, third = done.outcomes
    assert not first["live"] and first["reasons"][0].startswith("Kafka refuses it: "), first
    assert described(1, "log.cleaner.dedupe.buffer.size")[1] == ConfigSource.DEFAULT_CONFIG
    assert second["live"] and described(2) == ("5", DYNAMIC)
    assert not third["live"] and "its settings are unknown" in third["reasons"][0]
    change(cluster, left(2, THREADS, "5", "4"))
    assert described(2) == ("4", STATIC)


def test_what_somebody_else_has_set_stays(cluster, override, described):
    override(1, THREADS, "5")
    done = change(cluster, asked(1, THREADS, "4", "6"))
    assert not done.changed and "somebody else" in done.outcomes[0]["reasons"][0]
    assert not change(cluster, left(1, THREADS, "6", "4")).changed
    assert described(1) == ("5", DYNAMIC)

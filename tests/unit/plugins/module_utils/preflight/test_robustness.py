# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No inventory, however broken, may break the preflight: it has to tell all mistakes at once."""

from __future__ import annotations

import datetime
import json
import tempfile

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import (
    masked_settings,
    misspelt,
    raw_of,
    with_assigned_ids,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.jvm import options_to_try
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    facts_request,
    names_to_resolve,
    read_member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.running_cluster import (
    question,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.variables import declared
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import World
from tests.unit.plugins.module_utils.preflight import good_inventory as ground

with tempfile.TemporaryDirectory() as DIRECTORY:
    RAWS, INVENTORY, GROUPS = ground.gather(ground.good(), DIRECTORY)
KEEP = object()
FACTS = {raw.name: ground.good_facts(ground.read_member(raw)[0], []) for raw in RAWS}
# Every variable of every role, whether the good inventory has it or not.
VARIABLES = sorted({name for raw in RAWS for name in raw.settings} | set(declared()))
EXTRA = ["kafka_finalize", "ansible_host", "ansible_port", "ansible_connection"]
TOPIC = {"name": "orders", "partitions": "many", "replication_factor": [], "retention_size": {}}
LISTENER = {"name": 7, "port": "x", "protocol": None, "bind": [], "advertised": {}, "audience": 3}
BOUND = {"name": "A", "port": 1, "bind": "fe80:::1", "advertised": "1:2:3"}
# Variables whose values have parts, each right as it stands.
RICH = {
    "kafka_acls": [
        {"principal": "User:a", "topic": ["o", "p"], "operations": ["read"], "host": "*"},
        {"principal": "User:b", "topic": "o", "grant": ["read"], "group": "g", "state": "present"},
    ],
    "kafka_acls_purge": {"principals": ["User:a"], "resources": ["topic:o"], "maximum": 3},
    "kafka_client_security": {"security_protocol": "SASL_SSL", "sasl_username": "u"},
    "kafka_config": {"num.io.threads": 8, "log.retention.hours": 1},
    "kafka_dynamic_configs": [
        {"scope": "broker", "brokers": [1], "settings": {"num.io.threads": 3}},
        {"scope": "cluster", "secrets": {"ssl.keystore.password": "x"}, "state": "present"},
    ],
    "kafka_environment": {"A": "b"},
    "kafka_jvm_options": ["-Xss1m"],
    "kafka_loggers": {"a": "INFO"},
    "kafka_plugins": [{"name": "x.jar", "src": "/a.jar", "sha512": "0" * 128}],
    "kafka_quotas": [
        {"user": "a", "limits": {"producer_byte_rate": "1MB", "request_percentage": 50}},
        {"ip": "192.0.2.1", "limits": {"connection_creation_rate": None}, "state": "present"},
    ],
    "kafka_quotas_purge": {"patterns": ["user=a"], "maximum": 3},
    "kafka_retention_policies": [{"match": "o.*", "keep_for": "7d", "keep_up_to": "4GiB"}],
    "kafka_sasl": {"mechanisms": ["PLAIN"], "inter_broker_user": "k", "users": {"k": "p"}},
    "kafka_ssl": {"certificate": "x", "key": "y", "ca": "z", "client_auth": "required"},
    "kafka_topics": [
        {"name": "o", "partitions": 3, "replication_factor": 3, "config": {"cleanup.policy": "x"}}
    ],
    "kafka_unit_options": {"Service": {"TasksMax": 1, "Environment": ["A=1"]}},
    "kafka_users": [
        {"name": "a", "password": "b", "mechanisms": ["SCRAM-SHA-512"], "iterations": 8192},
        {"name": "c", "state": "absent"},
    ],
    "zookeeper_config": {"tickTime": 2000},
}
JUNK = st.one_of(
    st.sampled_from(
        [None, "", " ", "x", "a:b:c", "http://x:1", "0", -1, 0, 2**70, 3.5, True, False]
    ),
    st.sampled_from(
        [float("inf"), float("nan"), "fe80:::1", "1:2:3", "[::1]", "[", "%", "::%", "{{"]
    ),
    st.dates() | st.datetimes(),
    st.sampled_from(
        [[], [None], [[]], [1], [""], [TOPIC], [LISTENER], [BOUND], ["SASL_SSL"], {}, {"": ""}]
    ),
    st.sampled_from(
        [
            [{True: 1}],
            [{None: None}],
            {"a": {"b": []}},
            {1: 2},
            {None: None},
            {"mechanisms": {"x": 1}},
            TOPIC,
            LISTENER,
        ]
    ),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    ),
)


def _places(value, place=()):
    """The paths of all parts of a value, itself included."""
    yield place
    parts = value if isinstance(value, dict) else range(len(value) if type(value) is list else 0)
    for key, part in ((key, value[key]) for key in parts):
        yield from _places(part, (*place, key))


PLACES = [place for name in sorted(RICH) for place in _places(RICH[name], (name,))]
# What YAML makes a key of: on:, 1:, ~:, 2026-01-01:
KEYS = st.sampled_from(
    [True, 1, None, 3.5, float("nan"), datetime.date(2026, 1, 1), "", "x", "a\nb"]
)


def _spoilt(value, place, junk, key):
    """A copy of the value in which `place` is junk; with a `key` that is none, under that key."""
    if not place:
        return junk
    head, rest = place[0], place[1:]
    copy = dict(value) if isinstance(value, dict) else list(value)
    if key is not KEEP and not rest and isinstance(copy, dict):
        copy[key] = copy.pop(head)
    else:
        copy[head] = _spoilt(value[head], rest, junk, key)
    return copy


def verdict_with(junk, host=None):
    """The verdict over the good inventory with some settings replaced, on one host or on all."""
    spoilt = []
    for raw in RAWS:
        hit = host is None or raw.name == host
        changed = dict(raw.settings, **junk) if hit else raw.settings
        spoilt.append(type(raw)(**dict(raw.__dict__, settings=changed, facts=FACTS[raw.name])))
    return ground.judge(spoilt, ground.VERSIONS)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(st.sampled_from(VARIABLES + EXTRA), JUNK, max_size=4),
    st.sampled_from([None, *(raw.name for raw in RAWS)]),
)
def test_junk_for_any_variable_is_judged(junk, host):
    verdict = verdict_with(junk, host)
    for finding in verdict.findings:
        assert "\n" not in finding.line()
        assert finding.subjects


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(PLACES), JUNK, st.just(KEEP) | KEYS)
def test_junk_for_a_part_of_a_variable_is_judged(place, junk, key):
    """An odd value, or an odd key, deep inside of what is right otherwise."""
    name, below = place[0], place[1:]
    together = {"kafka_authorizer": True, name: _spoilt(RICH[name], below, junk, key)}
    for finding in verdict_with(together).findings:
        assert "\n" not in finding.line()
        assert finding.subjects


def test_every_part_of_a_variable_with_what_breaks_conversions():
    for name, *below in PLACES:
        for junk in (float("inf"), [{True: 1}]):
            verdict_with({name: _spoilt(RICH[name], tuple(below), junk, KEEP)})
        if below:
            verdict_with({name: _spoilt(RICH[name], tuple(below), None, True)})


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(st.sampled_from(VARIABLES + EXTRA), JUNK, min_size=1, max_size=4),
    st.sampled_from(["kafka-1", "zookeeper-1"]),
)
@example({"kafka_client_security": ["a"]}, "kafka-1")
@example({"kafka_ssl": ["a"], "kafka_sasl": {"users": ["a"]}}, "kafka-1")
@example({"kafka_listeners": [LISTENER, None, "x"], "kafka_jvm_options": [None, 3]}, "kafka-1")
@example({"zookeeper_jvm_options": {"a": 1}, "zookeeper_address": [1]}, "zookeeper-1")
@example({"kafka_group": ["a"], "zookeeper_group": {"a": 1}}, "zookeeper-1")
def test_junk_for_any_variable_reaches_the_judge(junk, host):
    """The way there: templates, what a host and a running cluster are asked, the report."""
    gathered = INVENTORY.gather(host, junk)
    gathered["settings"] = masked_settings(gathered["settings"])
    raw = raw_of(host, gathered)
    member, _findings = read_member(raw)
    request = facts_request(member, sorted(names_to_resolve(member)))
    # module arguments and results are JSON
    json.dumps(
        [gathered, request, [options_to_try(member, each) for each in ("kafka", "zookeeper")]]
    )
    for cluster in World((member,)).clusters:
        for brokers in (list(cluster.brokers), []):
            if cluster.brokers and member.listeners:
                question(cluster, brokers, list(cluster.servers), {host: junk})
    with_assigned_ids(INVENTORY, [raw])
    misspelt(INVENTORY, [raw])


@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.soak)])
def test_junk_for_each_variable_alone(share):
    """Every variable once with every odd value, what random sampling may miss; a third of the values in each run."""
    odd = [
        None,
        "",
        "x",
        -1,
        3.5,
        True,
        [],
        [None],
        {},
        {"a": 1},
        [TOPIC],
        [LISTENER],
        [BOUND],
        "1:2:3",
        float("inf"),
        TOPIC,
        LISTENER,
    ]
    for number, variable in enumerate(VARIABLES + EXTRA):
        for value in odd[number % share :: share]:
            verdict_with({variable: value})


def test_the_order_of_hosts_makes_no_difference():
    spoil = {"kafka_config": {"num.partitons": 1}, "zookeeper_client_port": 9092}
    spoilt = [type(raw)(**dict(raw.__dict__, settings=dict(raw.settings, **spoil))) for raw in RAWS]
    one = ground.judge(spoilt, ground.VERSIONS)
    other = ground.judge(list(reversed(spoilt)), ground.VERSIONS)
    assert one.findings == other.findings
    assert one.result == other.result
    assert one.findings

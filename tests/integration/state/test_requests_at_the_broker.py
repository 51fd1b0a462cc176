# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ten items and a thousand take as many requests, as the brokers themselves have logged them.

Constant means: by batches. A request changes up to 500 items, so a thousand take two, or three where they go out over
several connections; what is read takes as many requests for any number. How often a run looks until a change is
everywhere is a matter of time, so what is read is compared in runs that change nothing. Exceptions by the protocol are
named where they are. Outside the soak there are 160 items: enough for all connections.
"""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from tests.support.request_log import RequestLog

FEW = 10
# Requests for one where there are many, in batches of 500 at most, over at most three connections.
BATCHES = 3
# One replica each, also where the cluster asks for two in sync.
ALONE = {"partitions": 1, "replication_factor": 1, "config": {"min.insync.replicas": 1}}

pytestmark = pytest.mark.parametrize(
    "secured, many",
    [
        ("kraft", 160),
        pytest.param("kraft", 1000, marks=pytest.mark.soak),
        pytest.param("zookeeper", 1000, marks=pytest.mark.soak),
    ],
    indirect=["secured"],
)


@pytest.fixture(name="log")
def request_log(secured):
    """The request logs of the cluster."""
    with RequestLog(secured) as found:
        yield found


@pytest.fixture(name="asked")
def requests_of_a_run(secured, log):
    """Return a call that runs a module and returns (its result, the requests that the brokers have logged)."""

    def call(module, **options):
        log.take()
        result = secured.run(module, **options)
        assert not result.failed, result.msg
        return result, log.take()

    return call


def constant(told, step, kinds=None):
    """Whether many items took no more of each kind of request in a step than FEW, for each batch; None: of all."""
    (count,) = {count for count, _step in told} - {FEW}
    few, many = told[FEW, step], told[count, step]
    print(f"\n{step}: {FEW}: {dict(few)}, {count}: {dict(many)}")
    if kinds is not None:
        assert any(few[kind] for kind in kinds), "it has changed something"
    for kind in kinds or {*few, *many}:
        # each connection of librdkafka asks for metadata a few times
        own = 3 * BATCHES if kind == "METADATA" else 0
        assert many[kind] <= max(few[kind], 1) * BATCHES + own, (step, kind)


def names_of(name, count):
    """So many names, in order."""
    return [f"{name}.n{count}.{number:04}" for number in range(count)]


def topics(names):
    """What a declared list of topics goes through: (step, options, the requests that change something)."""
    there = [{"name": each, "retention": "7d", **ALONE} for each in names]
    other = [{**each, "retention": "14d"} for each in there]
    gone = [{"name": each, "state": "absent"} for each in names]
    yield "create", {"topics": there}, ["CREATE_TOPICS"]
    yield "unchanged", {"topics": there}, []
    yield "change", {"topics": other}, ["INCREMENTAL_ALTER_CONFIGS"]
    yield "remove", {"topics": gone, "allow": ["delete"]}, ["DELETE_TOPICS"]


def acls(names):
    """ACLs of a user for each name."""
    there = [{"principal": "reader", "operations": ["read"], "topic": each} for each in names]
    gone = [{**each, "state": "absent"} for each in there]
    yield "create", {"acls": there}, ["CREATE_ACLS"]
    yield "unchanged", {"acls": there}, []
    yield "remove", {"acls": gone}, ["DELETE_ACLS"]


def quotas(names):
    """A limit for a user of each name."""
    there = [{"user": each, "limits": {"producer_byte_rate": "1MiB"}} for each in names]
    other = [{"user": each, "limits": {"producer_byte_rate": "2MiB"}} for each in names]
    gone = [{"user": each, "state": "absent"} for each in names]
    yield "create", {"quotas": there}, ["ALTER_CLIENT_QUOTAS"]
    yield "unchanged", {"quotas": there}, []
    yield "change", {"quotas": other}, ["ALTER_CLIENT_QUOTAS"]
    yield "remove", {"quotas": gone}, ["ALTER_CLIENT_QUOTAS"]


def users(names):
    """A password for each name. Whether one is right only a login tells, so that is one for each, if asked for."""
    there = [
        {"name": each, "password": "geheim", "mechanisms": ["SCRAM-SHA-256"]} for each in names
    ]
    gone = [{"name": each, "state": "absent"} for each in names]
    yield "create", {"users": there}, ["ALTER_USER_SCRAM_CREDENTIALS"]
    yield "unchanged", {"users": there, "update_password": "on_create"}, []
    yield "remove", {"users": gone}, ["ALTER_USER_SCRAM_CREDENTIALS"]


def configs(names):
    """A setting for each name; brokers take what a plug-in may read, and tell no value of it."""
    options = {"plugin_prefixes": ["my."], "update_secrets": "on_create"}
    for step, value, kinds in (
        ("create", "1", ["INCREMENTAL_ALTER_CONFIGS"]),
        ("unchanged", "2", []),
        ("remove", None, ["INCREMENTAL_ALTER_CONFIGS"]),
    ):
        settings = {f"my.{each}": value for each in names}
        yield step, {"configs": [{"scope": "cluster", "secrets": settings}], **options}, kinds


LIVES = {
    "kafka_topics": topics,
    "kafka_acls": acls,
    "kafka_quotas": quotas,
    "kafka_users": users,
    "kafka_configs": configs,
}
# What reads the same things, with options by which it finds all of them.
READERS = {
    "kafka_topics": ("kafka_topics_info", {}),
    "kafka_acls": ("kafka_acls_info", {}),
    "kafka_quotas": ("kafka_quotas_info", {}),
    "kafka_users": ("kafka_users_info", {}),
    "kafka_configs": ("kafka_configs_info", {}),
}


@pytest.mark.parametrize("module", sorted(LIVES))
def test_declared_lists(asked, module, name, many):
    """Created, left alone, changed, read and removed."""
    told, changing = {}, {}
    for count in (FEW, many):
        for step, options, kinds in LIVES[module](names_of(name, count)):
            result, told[count, step] = asked(module, operation_timeout=300, **options)
            assert result.changed is bool(kinds), (step, result.values)
            changing[step] = kinds
            if step == "unchanged":
                reader, all_of_them = READERS[module]
                _result, told[count, reader] = asked(reader, **all_of_them)
    for step, kinds in changing.items():
        constant(told, step, kinds or None)
    constant(told, READERS[module][0])


def fill(settings, names):
    """Two records in each topic."""
    failed = []
    producer = Producer({**settings, "acks": "all"})
    for each in 2 * names:
        producer.produce(
            each, b"x", partition=0, on_delivery=lambda error, _m: failed.append(error)
        )
    assert producer.flush(120) == 0 and not any(failed)


def test_records_of_topics(secured, asked, name, many):
    """Policies of retention, sizes of disks, records that are deleted, and what groups have read."""
    told = {}
    for count in (FEW, many):
        names = names_of(name, count)
        new = [{"name": each, **ALONE} for each in names]
        assert secured.run("kafka_topics", topics=new, operation_timeout=300).changed
        settings = secured.client_settings()
        fill(settings, names)
        match = rf"{name}\.n{count}\..*"
        policies = {"policies": [{"match": match, "keep_for": "1d"}], "disk_budget": "100%"}
        cut = {**policies, "allow": ["retention_cut"]}
        result, told[count, "retention cut"] = asked("kafka_retention", **cut)
        assert len(result.plan["changes"]) == count
        result, told[count, "retention unchanged"] = asked("kafka_retention", **policies)
        assert not result.changed
        _result, told[count, "kafka_log_dirs_info"] = asked("kafka_log_dirs_info")
        _result, told[count, "kafka_topics_info"] = asked("kafka_topics_info", patterns=[match])
        moved = [{"name": f"{name}.g{each}", "topics": [each], "offset": 1} for each in names]
        result, told[count, "groups moved"] = asked("kafka_consumer_groups", groups=moved)
        assert len(result.plan["changes"]) == count
        result, told[count, "groups unchanged"] = asked("kafka_consumer_groups", groups=moved)
        assert not result.changed
        lag, told[count, "kafka_consumer_groups_info"] = asked(
            "kafka_consumer_groups_info", match=rf"{name}\.g.*"
        )
        assert len(lag.groups) >= count
        gone = [{"name": each["name"], "state": "absent"} for each in moved]
        result, told[count, "groups deleted"] = asked(
            "kafka_consumer_groups", groups=gone, allow=["delete"]
        )
        assert result.changed
        shorter = [{"name": each, "before_offset": 1} for each in names]
        result, told[count, "records deleted"] = asked(
            "kafka_records", topics=shorter, allow=["delete_records"]
        )
        assert result.records == count
        away = [{"name": each, "state": "absent"} for each in names]
        secured.run("kafka_topics", topics=away, allow=["delete"], operation_timeout=300)
    constant(told, "retention cut", ["INCREMENTAL_ALTER_CONFIGS", "DESCRIBE_LOG_DIRS"])
    constant(told, "records deleted", ["DELETE_RECORDS"])
    constant(told, "groups deleted", ["DELETE_GROUPS"])
    for step in (
        "retention unchanged",
        "kafka_log_dirs_info",
        "kafka_topics_info",
        "groups unchanged",
        "kafka_consumer_groups_info",
    ):
        constant(told, step)
    # The protocol has no commit for several groups; sent all at once, and one for each.
    for count in (FEW, many):
        assert told[count, "groups moved"]["OFFSET_COMMIT"] <= count * 2

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_configs and kafka_configs_info against real clusters, compared with Kafka's own tool."""

from __future__ import annotations

import json
import re
import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclOperation,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.client import (
    ConfigsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.resource import Configs
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    Connection,
    parse_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import reconcile
from tests.support.outside import create_topics, wait_until
from tests.support.rights import right_on_the_cluster

TOOL = "kafka.admin.ConfigCommand"
THREADS, ROLL, AGE = "num.io.threads", "log.roll.ms", "log.retention.ms"
LOGGER = "kafka.request.logger"
RATE = "leader.replication.throttled.rate"
PASSWORD = "listener.name.login.ssl.keystore.password"


def told(secured):
    """What Kafka's own tool says is set in the cluster: (broker, "" for all; name) -> value."""
    found, where = {}, None
    for line in secured.tool(TOOL, "--describe", "--entity-type", "brokers").splitlines():
        match = re.match(r"Dynamic configs for broker (\d+)|Default configs for brokers", line)
        if match:
            where = match[1] or ""
            continue
        pair = re.match(r"\s+(\S+?)=(\S*) sensitive", line)
        if pair and (where, pair[1]) != ("", "min.insync.replicas"):
            found[(where, pair[1])] = pair[2]
    return found


def loggers_of(secured, broker=1):
    """The levels of a broker's loggers, by our info module."""
    found = secured.run("kafka_configs_info", loggers=True, brokers=[broker])
    return found.loggers[0]["levels"]


@pytest.fixture
def clean(secured):
    """The cluster, which has no setting of its own before and after the test."""
    yield secured
    named = [THREADS, ROLL, AGE, RATE, "background.threads"]
    done = secured.run(
        "kafka_configs",
        configs=[
            {"scope": "cluster", "state": "absent", "settings": dict.fromkeys(named)},
            {
                "scope": "broker",
                "brokers": [1],
                "state": "absent",
                "settings": dict.fromkeys(named),
            },
        ],
        allow=["retention_cut"],
    )
    assert not done.failed, done.msg


def resource_of(secured, configs, kind=Configs):
    """Our client, to count what it sends, and the resource of these items."""
    said = secured.arguments()
    client = ConfigsClient(
        Connection(
            parse_addresses(said["bootstrap_servers"].split(",")),
            *(said[each] for each in ("security_protocol", "sasl_mechanism")),
            *(said[each] for each in ("sasl_username", "sasl_password")),
        )
    )
    plain = {"config_mode": "merge", "allow": [], "update_secrets": "always", "plugin_prefixes": []}
    resource = kind(client, {"configs": configs, **plain})
    resource.connect()
    return resource


def test_set_change_and_take_away(clean, name):
    brokers = range(1, clean.bare.brokers + 1)
    configs = [
        {"scope": "cluster", "settings": {THREADS: 5, ROLL: "6d"}},
        {"scope": "broker", "brokers": [1], "settings": {THREADS: "6"}},
        {"scope": "loggers", "settings": {LOGGER: "error"}},
    ]
    looked = clean.run("kafka_configs", check=True, configs=configs)
    assert looked.changed and len(looked.plan["changes"]) == 2 + len(brokers), looked.values
    assert not told(clean)
    done = clean.run("kafka_configs", configs=configs)
    assert done.changed and not done.failed, done.values
    assert (done.plan, done.diff, done.settings) == (looked.plan, looked.diff, looked.settings)
    again = clean.run("kafka_configs", configs=configs)
    assert not again.changed and again.settings == done.settings
    assert f"{THREADS}: broker 1 has an override of its own" in str(again.warnings)
    expected = {("", THREADS): "5", ("", ROLL): "518400000", ("1", THREADS): "6"}
    assert told(clean) == expected
    assert all(loggers_of(clean, each)[LOGGER] == "ERROR" for each in brokers)

    (one,) = (each for each in done.settings if (each["broker"], each["name"]) == (1, THREADS))
    assert (one["value"], one["source"]) == ("6", "broker")
    values = [(each["source"], each["value"]) for each in one["overridden"]]
    assert values == [("cluster", "5"), ("static", "4"), ("default", "8")]

    # What is read can be declared, and changes nothing.
    read = clean.run("kafka_configs_info")
    taken = clean.run("kafka_configs", configs=read.configs, config_mode="replace")
    assert not taken.changed and not taken.failed, taken.values
    if len(brokers) > 1:
        assert {"name": THREADS, "values": {"1": "6", "2": "5", "3": "5"}} in read.differing

    less = [
        {"scope": "broker", "brokers": [1], "state": "absent", "settings": {THREADS: 1}},
        {"scope": "cluster", "settings": {ROLL: None}},
        {"scope": "loggers", "settings": {LOGGER: None}},
    ]
    removed = clean.run("kafka_configs", configs=less)
    assert removed.changed and not removed.failed, removed.values
    assert told(clean) == {("", THREADS): "5"}
    assert all(loggers_of(clean, each)[LOGGER] == "INFO" for each in brokers)
    assert not clean.run("kafka_configs", configs=less).changed


def test_what_others_have_set_stays(clean, admin):
    """A throttle, and a key that Kafka took although it does not know it."""
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in ((RATE, "1000000"), ("background.threads", "11"))
    ]
    there = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=entries)
    (future,) = admin.incremental_alter_configs([there]).values()
    future.result(30)

    def seen():
        return len(clean.run("kafka_configs_info", brokers=[1], names=[RATE]).settings) == 1

    wait_until(seen, 30, "the throttle is in force")
    item = {"scope": "broker", "brokers": [1], "settings": {THREADS: 5}}
    assert clean.run("kafka_configs", configs=[item]).changed
    expected = {("1", RATE): "1000000", ("1", "background.threads"): "11", ("1", THREADS): "5"}
    assert told(clean) == expected
    replaced = clean.run("kafka_configs", configs=[item], config_mode="replace")
    assert replaced.changed and list(replaced.diff["before"]["broker 1"]) == ["background.threads"]
    found = clean.run("kafka_configs_info", brokers=[1]).configs
    (left,) = (each["settings"] for each in found if each["scope"] == "broker")
    assert left == {RATE: "1000000", THREADS: "5"}


def test_replace_leaves_what_the_controllers_need(clean):
    """Kafka 4.1 and later put min.insync.replicas there themselves, and refuse to be without it."""
    done = clean.run(
        "kafka_configs",
        configs=[{"scope": "cluster", "settings": {THREADS: 5}}],
        config_mode="replace",
    )
    assert done.changed and not done.failed, done.msg
    assert told(clean) == {("", THREADS): "5"}


def test_what_endangers_records_needs_consent_and_says_how_many(clean, admin, name):
    # A refusal names only some of the topics: those of other tests are in its way.
    others = [each for each in admin.list_topics(timeout=30).topics if each.startswith("name-")]
    for future in admin.delete_topics(others).values() if others else ():
        future.result(30)
    topic = NewTopic(name, 1, clean.bare.brokers)
    own = NewTopic(f"{name}-own", 1, clean.bare.brokers, config={"retention.ms": "-1"})
    create_topics(clean.client_settings(), [topic, own])
    producer = Producer(clean.client_settings())
    for _number in range(7):
        # An hour and a half old: younger than the default of 7 days, older than an hour.
        stamp = int(time.time() * 1000) - 5400000
        producer.produce(name, b"x", timestamp=stamp)
        producer.produce(f"{name}-own", b"x", timestamp=stamp)
    producer.flush(30)
    configs = [{"scope": "cluster", "settings": {AGE: "1h"}}]
    refused = clean.run("kafka_configs", configs=configs)
    assert refused.failed and refused.checks == [("retention.cut", "cluster default")]
    assert "from 7d to 1h: 7 records" in refused.msg and "allow: [retention_cut]" in refused.msg
    assert re.search(rf"{name}[.,]", refused.msg) and f"{name}-own" not in refused.msg
    assert not told(clean)
    done = clean.run("kafka_configs", configs=configs, allow=["retention_cut"], check=True)
    assert done.changed and "7 records" in done.diff["after"]["cluster default"]["at stake"]
    for future in admin.delete_topics([name, f"{name}-own"]).values():
        future.result(30)


def test_what_is_wrong_is_said_before_anything_is_changed(clean):
    configs = [
        {"scope": "cluster", "settings": {THREADS: 5, "num.io.thread": 5, "broker.id": 3}},
        {"scope": "cluster", "settings": {"ssl.keystore.password": "geheim77"}},
        {"scope": "broker", "brokers": [9], "settings": {THREADS: 5}},
        {"scope": "loggers", "brokers": [1], "settings": {"no.such": "DEBUG", LOGGER: "LOUD"}},
    ]
    refused = clean.run("kafka_configs", configs=configs)
    assert refused.failed and not refused.changed and not told(clean)
    assert sorted(each[0] for each in refused.checks) == [
        "config.bad_value",
        "config.unknown_key",
        "configs.read_only",
        "configs.secret",
        "configs.unknown_broker",
        "configs.unknown_logger",
    ]
    assert "geheim77" not in refused.msg


def test_what_the_brokers_refuse_is_refused_before_the_first_change(clean):
    """More than double the threads: no table of ours says so."""
    configs = [
        {"scope": "cluster", "settings": {ROLL: "6d"}},
        {"scope": "broker", "brokers": [1], "settings": {THREADS: 100}},
    ]
    for check in (True, False):
        failed = clean.run("kafka_configs", configs=configs, check=check)
        assert failed.failed and not failed.changed
        (item,) = failed.failed_items
        assert item["name"] == "broker 1" and "double" in item["error"]
    assert not clean.run("kafka_configs_info", names=[THREADS, ROLL]).settings


def test_the_rest_is_done_where_one_is_refused(clean):
    """The brokers refuse one only when it is made: here by leaving out that they are asked before."""

    class Unasked(Configs):
        """Does not ask before."""

        def validate(self, changes, deadline):
            return []

    configs = [
        {"scope": "cluster", "settings": {ROLL: "6d"}},
        {"scope": "broker", "brokers": [1], "settings": {THREADS: 100}},
    ]
    outcome = reconcile(resource_of(clean, configs, Unasked), False, 30)
    assert [each.subject for each in outcome.changed] == ["cluster default"]
    (failure,) = outcome.failures
    assert failure.subject == "broker 1" and failure.code == "INVALID_REQUEST"
    assert not outcome.unsettled and not outcome.check_error
    assert told(clean) == {("", ROLL): "518400000"}


def test_secrets_are_set_and_never_shown(on_kraft):
    item = {"scope": "broker", "brokers": [1], "secrets": {PASSWORD: "geheim77"}}
    done = on_kraft.run("kafka_configs", configs=[item])
    assert done.changed and not done.failed, done.values
    assert done.diff["after"] == {"broker 1": {PASSWORD: "(hidden)"}}
    assert on_kraft.run("kafka_configs", configs=[item]).changed, "nobody can compare it"
    kept = on_kraft.run("kafka_configs", configs=[item], update_secrets="on_create")
    assert not kept.changed
    found = on_kraft.run("kafka_configs_info", names=[".*password"], include="all")
    assert [each["value"] for each in found.settings if each["name"] == PASSWORD] == ["(hidden)"]
    assert PASSWORD not in str(found.configs)
    gone = on_kraft.run("kafka_configs", configs=[{**item, "state": "absent"}])
    assert gone.changed and not gone.failed
    for result in (done, kept, found, gone):
        assert "geheim77" not in json.dumps(result.values)


def test_who_has_no_right_is_told_which(clean, admin):
    configs = [{"scope": "cluster", "settings": {ROLL: "6d"}}]
    failed = clean.run("kafka_configs", user="nobody", configs=configs)
    assert failed.failed and "grant it DescribeConfigs on the cluster" in failed.msg

    def refused():
        """What the module says once the brokers know of the right."""
        result = clean.run("kafka_configs", user="team", configs=configs)
        assert result.failed and not result.changed
        return result.values.get("failed_items")

    with right_on_the_cluster(admin, "team", AclOperation.DESCRIBE_CONFIGS):
        (item,) = wait_until(refused, 30, "it may read")
    assert item["code"] == "CLUSTER_AUTHORIZATION_FAILED"
    assert "AlterConfigs on the cluster" in item["error"]


@pytest.mark.parametrize("count", [2, 60])
def test_the_number_of_requests_is_that_of_the_brokers(clean, count):
    # Which loggers exist differs: that of the controller, for one.
    each = [set(loggers_of(clean, number + 1)) for number in range(clean.bare.brokers)]
    names = sorted(set.intersection(*each))[:count]
    configs = [{"scope": "loggers", "settings": dict.fromkeys(names, "ERROR")}]
    resource = resource_of(clean, configs)
    outcome = reconcile(resource, False, 30)
    back = [{"scope": "loggers", "settings": dict.fromkeys(names, "INFO")}]
    assert not reconcile(resource_of(clean, back), False, 30).failures
    assert not outcome.failures and not outcome.unsettled and outcome.changed
    brokers, requests = clean.bare.brokers, resource.client.requests
    assert requests["alter_settings"] == 2 * brokers
    assert requests["describe_settings"] <= 4 * brokers

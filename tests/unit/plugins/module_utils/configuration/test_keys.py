# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys and values against the tables that the products themselves print."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.keys import (
    KeyTable,
    check_key,
    check_mapping,
    nearest,
    value_problem,
)
from tests.unit.plugins.module_utils.preflight.good_inventory import VERSIONS

TABLE = VERSIONS.broker_tables["3.9.2"]
FINE = {
    "num.partitions": 6,
    "num.io.threads": "8",
    "auto.create.topics.enable": True,
    "delete.topic.enable": "FALSE",
    "log.retention.ms": -1,
    "log.cleaner.io.buffer.load.factor": 0.9,
    "log.cleanup.policy": ["compact", "delete"],
    "compression.type": "zstd",
    "compression.gzip.level": 6,
    "inter.broker.protocol.version": "3.8",
    "log.message.timestamp.type": "LogAppendTime",
    "listener.name.internal.num.network.threads": 4,
    "listener.name.internal.scram-sha-512.sasl.jaas.config": "x",
    "allow.everyone.if.no.acl.found": False,
    "metric.reporters": "",
}
# key, value, check, what the reason or the remedy has to say
WRONG = [
    ("num.partitons", 6, "config.unknown_key", "num.partitions"),
    ("num_partitions", 6, "config.unknown_key", "num.partitions"),
    ("completely.different", 6, "config.unknown_key", "kafka_plugin_prefixes"),
    (7, 6, "config.unknown_key", "string"),
    ("num.partitions", 0, "config.bad_value", "at least 1"),
    ("num.partitions", "six", "config.bad_value", "whole number"),
    ("num.partitions", 2**31, "config.bad_value", "int"),
    ("num.partitions", None, "config.bad_value", "leave the key out"),
    ("num.partitions", {"a": 1}, "config.bad_value", "mapping"),
    ("num.partitions", [1], "config.bad_value", "list"),
    ("num.partitions", 1.5, "config.bad_value", "whole number"),
    ("auto.create.topics.enable", "yes", "config.bad_value", "true or false"),
    ("log.retention.bytes", "10GiB", "config.bad_value", "10737418240"),
    ("log.retention.ms", "7d", "config.bad_value", "604800000"),
    ("log.retention.hours", "7d", "config.bad_value", "168"),
    ("log.cleaner.io.buffer.load.factor", "most", "config.bad_value", "number"),
    ("log.cleanup.policy", "compact,forget", "config.bad_value", "forget"),
    ("compression.type", "gzp", "config.bad_value", "gzip"),
    ("listener.name.internal.num.network.threads", 0, "config.bad_value", "at least 1"),
    ("inter.broker.protocol.version", "9.9", "config.bad_value", "9.9"),
    ("port", 9092, "config.removed_key", "kafka_listeners"),
    ("advertised.port", 9092, "config.removed_key", "kafka_listeners"),
    ("host.name", "a", "config.removed_key", "kafka_listeners"),
    ("broker.id", 1, "config.owned_key", "kafka_broker_id"),
    ("process.roles", "broker", "config.owned_key", "leave it out"),
    ("log.dirs", "/srv", "config.owned_key", "kafka_log_dirs"),
    ("zookeeper.connect", "a:1", "config.owned_key", "kafka_zookeeper_chroot"),
    ("rsm.config.bucket", "a", "config.plugin_key", "rsm.config."),
    ("listener.name.internal.plugin.key", "a", "config.plugin_key", "listener"),
    ("log.message.timestamp.difference.max.ms", 1, "config.deprecated_key", "deprecated"),
]


@pytest.mark.parametrize("key", FINE)
def test_legal_keys_pass(key):
    assert check_key(key, FINE[key], TABLE) is None


@pytest.mark.parametrize("key, value, check, told", WRONG)
def test_wrong_keys_and_values(key, value, check, told):
    problem = check_key(key, value, TABLE)
    assert problem is not None
    assert problem.check == check
    assert told in problem.reason + " " + problem.remedy


@pytest.mark.parametrize("version", sorted(VERSIONS.broker_tables))
def test_every_default_of_the_product_passes_its_own_table(version):
    """The tables are the products' own: what they call default must be legal here."""
    table = VERSIONS.broker_tables[version]
    judged = {}
    for key, about in table.keys.items():
        default = about.get("default")
        if default in (None, "null", '""', "") or key in table.owned or key in table.removed:
            continue
        problem = check_key(key, default, table)
        if problem is not None and problem.check != "config.deprecated_key":
            judged[key] = (default, problem)
    assert judged == {}


def test_a_key_that_another_version_removed_is_still_a_key():
    assert check_key("zookeeper.set.acl", True, TABLE) is None
    problem = check_key("zookeeper.set.acl", True, VERSIONS.broker_tables["4.3.1"])
    assert problem.check == "config.removed_key"


@pytest.mark.parametrize(
    "key, value, check",
    [
        ("tickTime", 2000, None),
        ("weight.1", 2, None),
        ("4lw.commands.whitelist", "*", None),
        ("tickTime", "soon", "config.bad_value"),
        ("ticktime", 2000, "config.unknown_key"),
        ("dataDir", "/srv", "config.owned_key"),
        ("server.1", "a:1:2", "config.owned_key"),
        ("znode.container.maxNeverUsedIntervalMs", 1, "config.removed_key"),
    ],
)
def test_zookeeper_keys(key, value, check):
    problem = check_key(key, value, VERSIONS.zookeeper_table)
    assert (problem and problem.check) == check


def test_check_mapping_names_only_what_is_wrong():
    assert sorted(check_mapping({"num.partitions": 1, "num.partitionz": 1}, TABLE)) == [
        "num.partitionz"
    ]


def test_prefixes_of_ones_own_plug_ins_pass_with_a_note():
    table = KeyTable("x", {}, {}, {}, prefixes=("cruise.",))
    assert check_key("cruise.control.a", 1, table).check == "config.plugin_key"


def test_nearest_suggests_nothing_far_fetched():
    assert nearest("num.partitons", ["num.partitions", "log.dirs"]) == "num.partitions"
    assert nearest("foo", ["num.partitions", "log.dirs"]) is None


@pytest.mark.parametrize("version", sorted(VERSIONS.topic_keys))
def test_no_default_of_a_topic_setting_is_refused(version):
    """The brokers' own values are the first that must pass."""
    assert VERSIONS.topic_keys[version]
    for key, about in VERSIONS.topic_keys[version].items():
        default = about.get("default")
        if default:
            assert value_problem(key, default, about) is None, key

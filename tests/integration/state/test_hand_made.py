# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that people made with Kafka's own tools, names and all, is taken over: export, no change, drift."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import NewTopic

from tests.support.adopted import Adopted, hosts_of

TOPICS = ("yes", "1e3", "null", "0123", "17", "0x1F", "12.5", "2020-01-01", "-dash", "off")
OTHERS = 500
CONFIG = "kafka.admin.ConfigCommand"
TOPIC = "org.apache.kafka.tools.TopicCommand"
# Whoever may make a quota or an ACL chooses such names; a template in them would run on the controller. Without
# a slash, which ZooKeeper takes in no name of a resource: the path is in a variable of the environment.
TEMPLATE = "{{ lookup('pipe', 'touch $HAND_MADE_MARK') }}"
LIMITS = "producer_byte_rate=1048576,request_percentage=12.5"
QUOTAS = (
    ("users", "{% raw %}", "clients", TEMPLATE),
    ("users", "null", "clients", "~"),
    ("users", "yes", "clients", None),
    ("users", None, "clients", "1e3"),
    ("users", None),
    ("clients", "nightly report, ü \\ 'q' #1: x"),
    ("clients", "two\nlines"),
)
RIGHTS = (
    ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "hand.eu_1"),
    (
        *("--allow-principal", "User:alice", "--operation", "All", "--topic", "hand."),
        *("--resource-pattern-type", "prefixed"),
    ),
    (
        *("--deny-principal", "User:*", "--deny-host", "192.0.2.9"),
        *("--operation", "Write", "--topic", "*"),
    ),
    (
        *("--allow-principal", 'User:CN=Jürgen "x", OU={{ 6*7 }}', "--operation", "Read"),
        *("--group", TEMPLATE),
    ),
    (
        *("--allow-principal", "Role:1e3", "--operation", "Write"),
        *("--transactional-id", "null"),
    ),
)
USERS = ("alice", "none\n---\nkafka_topics: []")
ONE_LINE_IN_THE_TEXT = "SCRAM-SHA-256=[iterations=4096,password=pw]"
# Each of Kafka's tools is a JVM: some forty of them for a cluster.
pytestmark = pytest.mark.soak


def entity(words):
    """Options of ConfigCommand for pairs of kind and name; None is the default of the kind."""
    options = []
    for kind, name in zip(words[::2], words[1::2]):
        options += ["--entity-type", kind]
        options += ["--entity-default"] if name is None else ["--entity-name", name]
    return options


def make_by_hand(cluster, admin):
    """Topics, settings, rights, quotas and users, by Kafka's own tools; 500 topics more by a client."""
    replicas = 1 if cluster.bare.kraft else 2
    names = [*TOPICS, *(f"hand-{number}" for number in range(OTHERS))]
    topics = [NewTopic(name, 1, replicas) for name in names]
    for future in admin.create_topics(topics, request_timeout=60).values():
        future.result(120)
    settings = ("retention.ms=604800000", "cleanup.policy=compact,delete", "segment.bytes=1048576")
    words = [word for each in settings for word in ("--config", each)]
    cluster.tool(TOPIC, "--create", "--topic", "hand.eu_1", "--partitions", "3", *words)

    def config(options, added):
        cluster.tool(CONFIG, "--alter", *options, "--add-config", added)

    config(entity(("topics", "17")), "retention.ms=-1,unclean.leader.election.enable=true")
    config(entity(("brokers", None)), "log.cleaner.backoff.ms=14000")
    config(entity(("brokers", "1")), "num.io.threads=5,leader.replication.throttled.rate=1000000")
    for words in QUOTAS:
        config(entity(words), LIMITS)
    config(entity(("ips", "192.0.2.7")), "connection_creation_rate=10")
    for name in USERS:
        config(entity(("users", name)), ONE_LINE_IN_THE_TEXT)
    for words in RIGHTS:
        cluster.acl_tool("--add", "--force", *words)


def take_away(cluster):
    """The brokers' settings and all quotas: other tests share the cluster."""
    gone = [
        {"scope": "cluster", "settings": {"log.cleaner.backoff.ms": None}},
        {"scope": "broker", "brokers": [1], "settings": {"num.io.threads": None}},
    ]
    assert not cluster.run("kafka_configs", configs=gone).failed
    everything = {"patterns": [".*"], "maximum": 1000}
    assert not cluster.run("kafka_quotas", quotas=[], purge=everything).failed


def seen(cluster):
    """All of it as Kafka's own tools print it; lines in order."""
    told = [
        cluster.tool(TOPIC, "--describe"),
        cluster.tool(CONFIG, "--describe", *entity(("brokers", None))),
        cluster.tool(CONFIG, "--describe", "--entity-type", "users", "--entity-type", "clients"),
        cluster.tool(CONFIG, "--describe", "--entity-type", "clients"),
        cluster.acl_tool("--list"),
    ]
    return [sorted(text.splitlines()) for text in told]


def test_what_people_made_is_taken_over(secured, admin, tmp_path, monkeypatch):
    cluster = secured
    mark = tmp_path / "a-template-was-evaluated"
    monkeypatch.setenv("HAND_MADE_MARK", str(mark))
    make_by_hand(cluster, admin)
    inventory = Adopted(tmp_path / "inventory", hosts_of(cluster))
    before = seen(cluster)

    inventory.export()
    applied = inventory.play("state.yml")
    kinds = ("topics", "settings", "rights", "quotas")
    assert applied.lines == dict.fromkeys(kinds, "as declared"), applied.text
    assert applied.changed == 0 and seen(cluster) == before

    options = entity(("topics", "17"))
    cluster.tool(CONFIG, "--alter", *options, "--add-config", "retention.ms=86400000")
    cluster.tool(
        CONFIG, "--alter", *entity(("users", None)), "--add-config", "consumer_byte_rate=7"
    )
    cluster.tool(
        CONFIG, "--alter", *entity(("clients", "two\nlines")), "--add-config", f"{LIMITS}9"
    )
    read = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "hand.eu_1")
    cluster.acl_tool("--remove", "--force", *read)
    told = inventory.play("state.yml", "--check", "--diff")
    assert told.lines == {
        "topics": "1 would change: 17 (configure)",
        "settings": "as declared",
        "rights": "1 would change: allow User:alice read topic hand.eu_1 (create)",
        "quotas": told.lines["quotas"],
    }, told.text
    assert told.lines["quotas"].startswith("1 would change: client-id=")
    assert "two" in told.lines["quotas"]

    mended = inventory.play("state.yml")
    assert mended.lines["settings"] == "as declared" and mended.changed == 3, mended.text
    cluster.tool(
        CONFIG, "--alter", *entity(("users", None)), "--delete-config", "consumer_byte_rate"
    )
    assert seen(cluster) == before
    assert not mark.exists()
    take_away(cluster)

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kafka_cluster_info tells of topics that are named, and what it asks for that."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.info import (
    describe_cluster,
    described_directories,
    described_last_copies,
    described_moves,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.health import Eligible
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    ConfigEntry,
    Directory,
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

PARTS = tuple(Partition(index, 1, (1, 2, 3), (1, 2, 3)) for index in range(2))


class Client:
    """A cluster with the topics `names`; one of them may vanish while it is asked."""

    def __init__(self, *names, vanished=(), defaults=None):
        self.names, self.vanished, self.defaults = names, vanished, defaults
        self.brokers_asked = []

    def fetch_metadata(self):
        topics = {name: Topic(name, PARTS) for name in self.names}
        return Snapshot("AAAA", 1, (Broker(1, "k", 9092),), topics)

    def fetch_racks(self):
        return {}

    def fetch_configs(self, names):
        entry = ConfigEntry("retention.ms", "1000", "topic")
        return {name: {"retention.ms": entry} for name in names if name not in self.vanished}

    def fetch_broker_config(self, broker):
        self.brokers_asked.append(broker)
        return self.defaults


def test_nobody_asks_for_topics():
    client = Client("orders")
    assert "topics" not in describe_cluster(client)
    assert client.brokers_asked == []


@pytest.mark.parametrize(
    "defaults, fallback",
    [
        ({"log.retention.hours": ConfigEntry("log.retention.hours", "168")}, "604800000"),
        (None, None),  # this user may not see them
    ],
)
def test_those_that_exist_are_told_with_what_they_fall_back_to(defaults, fallback):
    client = Client("orders", "other", defaults=defaults)
    (told,) = describe_cluster(client, ["orders", "new"])["topics"]
    assert (told["name"], told["replicas"]) == ("orders", [3, 3])
    assert told["config"] == {
        "retention.ms": {"value": "1000", "source": "topic", "fallback": fallback}
    }
    assert client.brokers_asked == [1]


def test_what_a_name_would_collide_with_is_told_and_what_vanished_is_not():
    client = Client("a.b", "gone", "other", vanished=["gone"])
    told = describe_cluster(client, ["a_b", "gone"])["topics"]
    assert [each["name"] for each in told] == ["a.b"]


def test_where_none_of_them_exists_no_broker_is_asked():
    client = Client("other")
    assert describe_cluster(client, ["orders"])["topics"] == [] and client.brokers_asked == []


class Controller:
    """Answers for reassignments: what it is told, or an error."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def fetch_moving_partitions(self, places):
        self.asked.append(places)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Disks:
    """Answers for log directories."""

    def fetch_directories(self, brokers, places):
        assert (list(brokers), places) == ([1, 2], [("k1", 1), ("k2", 2)])
        return {2: [Directory("/b", {}, False), Directory("/a", {}, True, 9, 0)], 1: [GOOD_DISK]}


def test_each_log_directory_is_told_with_what_is_wrong_with_it():
    told = described_directories(Disks(), {"brokers": BROKERS})
    assert [(each["broker"], each["path"], each["online"]) for each in told] == [
        (1, "/good", True),
        (2, "/b", False),
        (2, "/a", True),
    ]
    assert told[0]["problem"] == "" and told[0]["usable_bytes"] == 10**6
    assert "[directories.failed] broker 2: its log directory /b is offline" in told[1]["problem"]
    assert "rolling_restart.yml -e broker=ID" in told[1]["problem"]
    # replace_broker.yml leaves a broker that runs alone, as one with another directory does
    stop, replace = (
        f"playbooks/{name}" for name in ("stop.yml -e broker=ID", "replace_broker.yml -e")
    )
    assert 0 < told[1]["problem"].find(stop) < told[1]["problem"].find(replace)
    assert "no space is left on the disk of its log directory /a" in told[2]["problem"]


GOOD_DISK = Directory("/good", {}, True, 10**7, 10**6)
SILENT = AdminError(Problem("cluster.read", "it does not answer", "run it again"))
BROKERS = [{"id": 1, "host": "k1", "port": 1}, {"id": 2, "host": "k2", "port": 2}]


@pytest.mark.parametrize(
    "answer, lagging, asked, told",
    [
        ([("t", 0)], [], [], {"partitions": [], "problem": ""}),
        (
            [("t", 0)],
            ["t-0"],
            [[("k2", 2)]],
            {"partitions": [{"topic": "t", "partition": 0}], "problem": ""},
        ),
        (SILENT, ["t-0"], [[("k2", 2)]], {"partitions": [], "problem": "it does not answer"}),
    ],
    ids=["all in sync", "moving", "silent"],
)
def test_the_controller_says_what_is_moved_where_something_lags(answer, lagging, asked, told):
    client = Controller(answer)
    described = {"under_replicated": lagging, "brokers": BROKERS, "controller": 2}
    assert described_moves(client, described, True) == told
    assert client.asked == asked


def test_without_leave_a_silent_controller_is_an_error():
    described = {"under_replicated": ["t-0"], "brokers": BROKERS, "controller": 2}
    with pytest.raises(AdminError, match="it does not answer"):
        described_moves(Controller(SILENT), described)


UNCLEAN = "unclean.leader.election.enable"


class Eligibles:
    """Answers who is eligible: what it is told, or an error. Any replica may lead the topics `unclean`."""

    def __init__(self, answer, unclean=(), told=True):
        self.answer, self.unclean, self.told, self.asked = answer, unclean, told, []

    def fetch_configs(self, topics):
        if not self.told:
            raise SILENT
        return {
            name: {UNCLEAN: ConfigEntry(UNCLEAN, str(name in self.unclean).lower(), "topic")}
            for name in topics
        }

    def fetch_broker_settings(self, brokers, key):
        assert key == UNCLEAN
        return dict.fromkeys(brokers, "false")

    def fetch_eligible(self, topics, places):
        self.asked.append((list(topics), places))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def offline(topic, replicas, isr):
    """A partition without a leader."""
    return {"topic": topic, "partition": 0, "leader": None, "replicas": replicas, "isr": isr}


@pytest.mark.parametrize(
    "parts, answer, asked, last",
    [
        ([offline("alone", [3], [3]), offline("other", [1], [])], {}, [], ["alone"]),
        (
            [offline("empty", [1, 3], []), offline("led", [1, 3], []), offline("gone", [3], [])],
            {("empty", 0): Eligible((3,)), ("led", 0): Eligible((1,), (3,))},
            ["empty", "gone", "led"],
            ["empty", "gone"],
        ),
        ([offline("empty", [1, 3], [])], SILENT, ["empty"], ["empty"]),
    ],
    ids=["an ISR tells", "who is eligible tells", "silent"],
)
def test_the_last_copies_that_a_broker_may_have(parts, answer, asked, last):
    client = Eligibles(answer)
    told = described_last_copies(client, {"offline": parts, "brokers": BROKERS}, 3)
    assert [each["topic"] for each in told] == last
    assert client.asked == ([(asked, [("k1", 1), ("k2", 2)])] if asked else [])


@pytest.mark.parametrize(
    "told, last",
    [(True, ["unclean"]), (False, ["clean", "unclean"])],
    ids=["the settings tell", "nobody tells"],
)
def test_where_any_replica_may_lead_an_empty_one_does(told, last):
    """Broker 1 was the last one in sync, and is down: it is waited for, unless 3 may lead without what 1 has."""
    parts = [offline("clean", [1, 3], [1]), offline("unclean", [1, 3], [1])]
    parts.append(offline("elsewhere", [1, 2], [1]))
    client = Eligibles({}, unclean=("unclean", "elsewhere"), told=told)
    found = described_last_copies(client, {"offline": parts, "brokers": BROKERS}, 3)
    assert [each["topic"] for each in found] == last

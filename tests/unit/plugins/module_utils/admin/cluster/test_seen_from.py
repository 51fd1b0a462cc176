# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which addresses are tried, and the sentence for each thing that can be wrong there."""

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.wire import Seen, covers
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.seen_from import (
    Target,
    problems,
    targets,
)

OTHERS = {"INTERNAL": "b1:9091"}
TARGET = Target("CLIENTS", "SASL_SSL", 1, "kafka-1", "b1", 9092, ("clients",), OTHERS)
WELL = {"cluster_id": "abc", "brokers": {1: "b1:9092", 2: "b2:9092"}, "answered_by": 1}


@pytest.mark.parametrize(
    "changes, told",
    [
        ({}, ""),
        ({"answered_by": None}, ""),  # without the right to ask
        (
            {"failed": "name", "detail": "no"},
            "[reach.name] app-1: listener CLIENTS of kafka-1=b1:9092: no.",
        ),
        ({"failed": "port", "detail": "no"}, "[reach.port] "),
        ({"failed": "certificate", "detail": "it is for b2"}, "[reach.certificate] "),
        ({"failed": "protocol", "detail": "no"}, "[reach.protocol] "),
        ({"failed": "login", "detail": "no"}, "[reach.login] "),
        (
            {"cluster_id": "xyz"},
            "[reach.cluster] app-1: listener CLIENTS of kafka-1=b1:9092: another cluster answers, xyz, not abc.",
        ),
        (
            {"answered_by": 2},
            "[reach.broker] app-1: listener CLIENTS of kafka-1=b1:9092: broker 2 answers, not broker 1.",
        ),
        ({"brokers": {1: "10.0.0.1:9092"}}, "clients are told 10.0.0.1:9092 for broker 1"),
        # a mapping of the port that leads to another listener: no deployment mends it
        (
            {"brokers": {1: "b1:9091"}},
            "[reach.listener] app-1: listener CLIENTS of kafka-1=b1:9092: listener INTERNAL answers, whose clients "
            "are told b1:9091. Remedy: correct the port mapping",
        ),
        ({"brokers": {2: "b2:9092"}}, "clients are not told of broker 1"),
    ],
)
def test_each_thing_that_is_wrong_has_its_sentence(changes, told):
    found = [
        each.line() for each in problems("app-1", [(TARGET, Seen(**{**WELL, **changes}))], "abc")
    ]
    assert len(found) == bool(told)
    assert told in "".join(found)


def test_a_cluster_whose_id_nobody_knows_is_not_judged_by_it():
    assert not list(problems("app-1", [(TARGET, Seen(**WELL))], ""))


@pytest.mark.parametrize(
    "audience, tried",
    [
        (["brokers"], 0),
        (["admin", "brokers"], 0),
        ([], 0),
        (["clients", "admin"], 1),
        (["partners"], 1),
    ],
)
def test_listeners_that_clients_use_are_tried(audience, tried):
    listener = {
        "name": "A",
        "port": 9092,
        "protocol": "SSL",
        "bind": "",
        "advertised": "b1",
        "audience": audience,
    }
    found = targets([{"host": "kafka-1", "id": "1", "listeners": [listener]}])
    clients = [each for each in audience if each not in ("admin", "brokers")]
    assert found == [Target("A", "SSL", 1, "kafka-1", "b1", 9092, tuple(clients))] * tried


def test_a_target_knows_whose_it_is_and_what_else_its_broker_announces():
    listeners = [
        {"name": "INTERNAL", "port": 9091, "bind": "fd00::1", "audience": ["brokers"]},
        {"name": "PARTNERS", "port": 9094, "advertised": "b1", "audience": ["partners", "admin"]},
    ]
    (found,) = targets([{"host": "kafka-1", "id": "1", "listeners": listeners}])
    assert found.audience == ("partners",) and found.others == {"INTERNAL": "[fd00::1]:9091"}


@pytest.mark.parametrize(
    "failed, hinted",
    [("name", True), ("port", True), ("protocol", False), ("certificate", False), ("login", False)],
)
def test_what_only_some_can_reach_has_another_remedy_on_a_host_of_others(failed, hinted):
    (found,) = problems("app-1", [(TARGET, Seen(failed, "no"))], "abc")
    hint = "if no client here belongs to the audience clients, name the audiences of this host in"
    assert (hint in found.remedy) == hinted


@pytest.mark.parametrize(
    "of_host, tried",
    [
        ([], ["CLIENTS", "PARTNERS"]),
        (["clients"], ["CLIENTS"]),
        (["partners"], ["PARTNERS"]),
        (["partners", "clients"], ["CLIENTS", "PARTNERS"]),
        # inside is not where clients are
        (["brokers"], []),
    ],
)
def test_a_host_tries_the_listeners_of_its_audiences_alone(of_host, tried):
    listeners = [
        {"name": "CLIENTS", "port": 9092, "advertised": "b1", "audience": ["brokers", "clients"]},
        {"name": "PARTNERS", "port": 9094, "advertised": "b1", "audience": ["partners"]},
    ]
    found = targets([{"host": "kafka-1", "id": "1", "listeners": listeners}], of_host)
    assert [each.listener for each in found] == tried


@pytest.mark.parametrize(
    "names, host, covered",
    [
        (("b1", "b2"), "b1", True),
        (("B1.example.org",), "b1.example.org.", True),
        (("*.example.org",), "b1.example.org", True),
        (("*.example.org",), "b1.x.example.org", False),
        (("*.example.org",), "example.org", False),
        (("127.0.0.1",), "127.0.0.1", True),
        ((), "b1", False),
    ],
)
def test_names_of_a_certificate(names, host, covered):
    assert covers(names, host) is covered

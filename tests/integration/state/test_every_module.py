# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each module of the action group does where it cannot begin: one sentence says what it is, nothing changes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.run_module import Background, Result, run_module

CHECKOUT = Path(__file__).resolve().parents[3]
GROUP = yaml.safe_load((CHECKOUT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
MODULES = GROUP["action_groups"]["kafka"]
# The least with which each of them has something to do; nothing here is ever reached.
OPTIONS = {
    # plans, so that nothing begins that must be ended
    "kafka_benchmark": {"cluster": "c", "part": "plan"},
    "kafka_acls": {"acls": [{"principal": "a", "topic": "t", "operations": ["read"]}]},
    "kafka_broker_settings": {
        "brokers": [{"id": 1, "settings": {"num.io.threads": {"before": "8", "after": "9"}}}],
        "keys": {"num.io.threads": {"update_mode": "cluster-wide", "default": "8"}},
    },
    "kafka_configs": {"configs": [{"scope": "cluster", "settings": {"num.io.threads": 9}}]},
    "kafka_consumer_groups": {"groups": [{"name": "g", "to": "earliest"}]},
    "kafka_drill": {"part": "clean"},
    "kafka_features": {"levels": {"metadata.version": 30}},
    "kafka_leader_election": {},
    "kafka_partition_advice": {},
    "kafka_quotas": {"quotas": [{"user": "u", "limits": {"producer_byte_rate": 1}}]},
    "kafka_reassignment": {"spread": True},
    "kafka_records": {"topics": [{"name": "t", "all": True}], "allow": ["delete_records"]},
    "kafka_retention": {"policies": [{"match": ".*", "keep_for": "1d"}]},
    "kafka_topics": {"topics": [{"name": "t"}]},
    "kafka_voters": {"voters": [{"id": 1}]},
    "kafka_users": {"users": [{"name": "u", "password": "geheim"}]},
}
# Forks, and so needs a process without clients: a lock that a thread of theirs holds is never let go in the child.
FORKS = {"kafka_benchmark"}
# Works only on a cluster that it has made itself, and throws away.
OF_ITS_OWN = {"kafka_guarantee"}
# Waits until its own deadline; tests/integration/topics/test_kafka_broker_gate.py has the same cases.
WAITS = {"kafka_broker_gate"}
READY = sorted(set(MODULES) - OF_ITS_OWN - WAITS)
WRONG = {
    "unreachable": ({"bootstrap_servers": "127.0.0.1:1"}, "[connection.unreachable] 127.0.0.1:1"),
    "credentials": ({"sasl_password": "battery staple"}, "wrong credentials"),
    "protocol": ({"security_protocol": "SASL_SSL", "ssl_ca": None}, "wrong protocol"),
    "foreign": ({"cluster_id": "AAAAAAAAAAAAAAAAAAAAAA"}, "[cluster.foreign]"),
}


# Who is let in is decided by one connection, whatever is done through it: each module for itself in soak.
TRIED = ("kafka_topics", "kafka_cluster_info", "kafka_reassignment")


@pytest.mark.parametrize(
    "secured, module, case",
    [
        pytest.param(
            *(mode, module, case),
            marks=[pytest.mark.soak]
            * (
                (case in ("credentials", "protocol") and module not in TRIED)
                or (mode == "zookeeper" and module != "kafka_quotas")
            ),
        )
        for mode in ("kraft", "zookeeper")
        for module in READY
        for case in sorted(WRONG)
    ],
    indirect=["secured"],
)
def test_what_is_in_the_way_is_said_in_one_sentence(secured, module, case):
    wrong, words = WRONG[case]
    options = {**secured.arguments(), **OPTIONS.get(module, {}), **wrong}
    given = {key: value for key, value in options.items() if value is not None}
    if module in FORKS:
        values = Background(module, given).end()
        result = Result(bool(values.get("failed")), values)
    else:
        result = run_module(module, given)
    assert not result.values.get("changed"), result.values
    if (module, case) == ("kafka_broker_settings", "foreign"):
        # site.yml asks it first, and restarts where it says that nothing was done
        assert [each["live"] for each in result.outcomes] == [False]
        return
    assert result.failed, result.values
    assert words in result.msg and "Remedy: " in result.msg, result.msg
    assert "\n" not in result.msg and "Traceback" not in result.msg
    assert "battery staple" not in str(result.values)


def test_no_module_is_left_out():
    assert OF_ITS_OWN | WAITS < set(MODULES) and set(OPTIONS) <= set(READY)
    infos = {each for each in READY if each.endswith("_info")}
    assert set(READY) == set(OPTIONS) | infos

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run found different, as text; and a running cluster as variables."""

from __future__ import annotations

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.declared import (
    SHOWN,
    state_lines,
    state_variables,
)


def result(*changes):
    """What a module returns that planned these (subject, kind)."""
    return {"plan": {"changes": [{"subject": name, "kind": kind} for name, kind in changes]}}


def test_each_kind_that_ran_has_a_line():
    lines = state_lines(
        {
            "users": {"skipped": True},
            "topics": result(("orders", "create"), ("clicks", "configure")),
            "rights": result(),
        }
    )
    assert lines == [
        "topics     2 changed: orders (create), clicks (configure)",
        "rights     as declared",
    ]


def test_in_check_mode_nothing_was_changed():
    assert state_lines({"quotas": result(("user=app", "set"))}, checked=True) == [
        "quotas     1 would change: user=app (set)"
    ]


def test_a_long_line_is_cut():
    many = [(f"t{number}", "create") for number in range(SHOWN + 3)]
    (line,) = state_lines({"topics": result(*many)})
    assert line.endswith(f"t{SHOWN - 1} (create) and 3 more")


def test_nothing_is_declared():
    assert state_lines({"topics": {}}) == ["nothing of its state is declared"]


def topic(name, internal=False, **config):
    """A topic as kafka_topics_info returns it; config: key to (value, source)."""
    return {
        "name": name,
        "internal": internal,
        "partitions": 3,
        "replication_factor": 2,
        "config": {
            key: {"value": value, "source": source} for key, (value, source) in config.items()
        },
    }


def test_only_what_a_topic_has_of_its_own_is_exported():
    own = {"retention.ms": ("1000", "topic"), "segment.ms": ("5", "static")}
    passing = {"leader.replication.throttled.replicas": ("0:1", "topic")}
    there = {
        "topics": [
            topic("orders", **own),
            topic("plain", **passing),
            topic("__consumer_offsets", internal=True),
        ],
        "configs": [
            {"scope": "cluster", "settings": {"num.io.threads": "4"}},
            {
                "scope": "broker",
                "brokers": [1],
                "settings": {"leader.replication.throttled.rate": "1"},
            },
        ],
        "quotas": [],
        "acls": [{"topic": "orders"}],
    }
    size = {"partitions": 3, "replication_factor": 2}
    assert state_variables(there) == {
        "kafka_topics": [
            {"name": "orders", **size, "config": {"retention.ms": "1000"}},
            {"name": "plain", **size},
        ],
        "kafka_dynamic_configs": [{"scope": "cluster", "settings": {"num.io.threads": "4"}}],
        "kafka_acls": [{"topic": "orders"}],
        "kafka_quotas": [],
    }

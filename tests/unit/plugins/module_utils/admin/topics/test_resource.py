# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_topics without a cluster: options, consents, and what a failure's code means."""

from __future__ import annotations

import socket

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Failure
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.dangers import CONSENTS
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.resource import (
    TOPIC_OPTIONS,
    Topics,
    policy_from,
)
from tests.support.run_module import run_module


def parameters(**options):
    """A module's parameters, as they are if nothing is given."""
    plain = {name: option.get("default") for name, option in TOPIC_OPTIONS.items()}
    return {**plain, **options}


@pytest.fixture
def nobody():
    """host:port where nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize("text, reason", [(None, "No such file"), ("a: b", "must be a list")])
def test_a_file_that_holds_no_topics_is_refused(tmp_path, nobody, text, reason):
    path = tmp_path / "topics.yml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    result = run_module("kafka_topics", {"src": str(path), "bootstrap_servers": [nobody]})
    assert result.failed and result.msg.startswith(f"[topics.src] src={path}: ")
    assert reason in result.msg


def test_consents_reach_the_policy():
    assert policy_from(parameters(allow=["delete"])).allow == {"delete"}
    assert policy_from(parameters()).allow == frozenset()


@pytest.mark.parametrize(
    "allow",
    [["everything"], "everything", ["retention"], "no_retention_cut", "undelete", "delete x"],
)
def test_a_consent_that_does_not_exist_is_refused(nobody, allow):
    """Also one that merely contains the name of a consent."""
    result = run_module(
        "kafka_topics",
        {"bootstrap_servers": nobody, "topics": [{"name": "x"}], "allow": allow},
    )
    assert result.failed and "value of allow must be one or more of" in result.msg
    assert all(consent in result.msg for consent in CONSENTS)


@pytest.mark.parametrize("allow", ["retention_cut", "retention_cut,delete", list(CONSENTS)])
def test_a_consent_may_be_a_text_as_of_the_command_line(nobody, allow):
    result = run_module(
        "kafka_topics",
        {"bootstrap_servers": nobody, "topics": [{"name": "x"}], "allow": allow},
    )
    assert result.failed and result.msg.startswith("[connection.unreachable]")


@pytest.mark.parametrize("name, shown", [(True, "true"), (83, "83"), (750, "750"), (1.0, "1.0")])
def test_a_name_that_is_not_a_text_reaches_the_refusal(nobody, name, shown):
    """As task arguments hand it over: Ansible must not turn it into a text before."""
    result = run_module(
        "kafka_topics",
        {
            "bootstrap_servers": nobody,
            "topics": [{"name": name}],
            "assume_empty_if_unreachable": True,
        },
        check=True,
    )
    assert result.failed and f"[topics.bad_name] topics[0]: name={shown}" in result.msg
    assert result.msg.count("write the name in quotes") == 1


@pytest.mark.parametrize(
    "module, options",
    [
        ("kafka_topics", {"topics": []}),
        ("kafka_leader_election", {}),
        ("kafka_broker_settings", {"brokers": [], "keys": {}}),
        ("kafka_configs", {"configs": []}),
        ("kafka_quotas", {"quotas": []}),
        ("kafka_reassignment", {"drain": [1]}),
    ],
)
@pytest.mark.parametrize("seconds", [0, -1, 1e12, float("inf"), float("nan")])
def test_the_operation_timeout_has_a_range(nobody, module, options, seconds):
    result = run_module(
        module, {"bootstrap_servers": nobody, "operation_timeout": seconds, **options}
    )
    assert result.failed and "[options.range] operation_timeout=" in result.msg


@pytest.mark.parametrize(
    "failure, stale",
    [
        (Failure("x", "Thema gibt es schon", "create", "TOPIC_ALREADY_EXISTS"), True),
        (Failure("x", "Topic 'x' is marked for deletion.", "create", "TOPIC_ALREADY_EXISTS"), True),
        # Only the code counts: brokers send sentences of their own.
        (Failure("x", "already exists", "create", "POLICY_VIOLATION"), False),
        (Failure("x", "wer?", "configure", "UNKNOWN_TOPIC_OR_PART"), True),
        (Failure("x", "Unknown topic or partition", "grow", "INVALID_PARTITIONS"), False),
        (Failure("x", "no answer", "create"), False),
    ],
)
def test_brokers_that_disagree_are_known_by_their_codes(failure, stale):
    topics = Topics(None, [], parameters(), check_mode=False)
    assert bool(topics.stale(failure)) is stale

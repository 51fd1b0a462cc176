# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an action answers itself or sends the module makes no difference, logins and TLS included."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.asking import asked_here
from tests.support.here_and_sent import both
from tests.support.run_module import Modules, run_module

MODULE = "kafkaops.cluster.kafka_topics"

PASSWORD, WRONG = "correct horse", "battery staple"


def tasks(servers, name):
    """Tasks that change nothing, that would change something, and that fail; of a topic that is there."""
    reached, nobody = {"bootstrap_servers": servers}, {
        "bootstrap_servers": "127.0.0.1:1",
        "timeout": 3,
    }
    there = {"name": name, "partitions": 2, "replication_factor": 3}
    return {
        "same": {**reached, "topics": [there]},
        "gone": {**reached, "topics": [{"name": f"{name}-never", "state": "absent"}]},
        "refused": {**reached, "topics": [{**there, "partitions": 1}]},
        "unknown": {**reached, "topics": [{**there, "config": {"retention.sm": 1}}]},
        "unreached": {**nobody, "topics": [there]},
        "lenient": {
            **nobody,
            "topics": [there],
            "assume_empty_if_unreachable": True,
            "expected_brokers": 3,
        },
    }


def told(results):
    """The results without what differs from one call of a module to the next."""
    return {
        name: {key: value for key, value in result.items() if key != "invocation"}
        for name, result in results.items()
    }


@pytest.mark.parametrize("options", [(), ("--check",)], ids=["done", "checked"])
def test_the_action_returns_what_the_module_returns(cluster, name, tmp_path, options):
    modules = Modules(cluster.bootstrap_servers)
    modules.topics([{"name": name, "partitions": 2, "replication_factor": 3}])
    found = tasks(cluster.bootstrap_servers, name)
    _output, here, sent = both(tmp_path, MODULE, found, *options)
    assert told(here) == told(sent)
    assert not here["same"]["changed"] and not here["same"].get("failed")
    assert here["lenient"]["changed"] == bool(options)


def test_what_the_action_changes_is_what_the_module_changes(cluster, name, tmp_path):
    """Created, other settings, removed: also of a list that is long."""
    reached = {"bootstrap_servers": cluster.bootstrap_servers}
    names = [f"{name}-{{{{ inventory_hostname }}}}-{number}" for number in range(120)]
    new = [{"name": each, "partitions": 1, "replication_factor": 3} for each in names]
    asked = {
        "new": {**reached, "topics": new},
        "again": {**reached, "topics": new},
        "longer": {**reached, "topics": [{**each, "retention": "8d"} for each in new]},
        "gone": {
            **reached,
            "topics": [{"name": each, "state": "absent"} for each in names],
            "allow": ["delete"],
        },
    }
    output, here, sent = both(tmp_path, MODULE, asked)
    assert [here[each]["changed"] for each in asked] == [True, False, True, True], output
    assert len(here["longer"]["plan"]["changes"]) == len(names)
    text = json.dumps(told(here)).replace(f"{name}-here", f"{name}-sent")
    assert json.loads(text) == told(sent)


def test_what_is_not_for_the_action_is_left_to_the_module(cluster, name, tmp_path):
    """Arguments that are refused, in Ansible's words."""
    reached = {"bootstrap_servers": cluster.bootstrap_servers}
    topic = {"name": name, "partitions": 2, "replication_factor": 3}
    asked = {
        "wrong": {**reached, "topics": [topic], "config_mode": "both"},
        "missing": reached,
    }
    output, here, sent = both(tmp_path, MODULE, asked, unsendable=False)
    assert here["wrong"]["failed"] and here["missing"]["failed"], output
    assert told(here) == told(sent)


def secured(cluster, certificate, listener):
    """Connection options of a listener with logins, which the brokers of inventories/local do not have."""
    found = {
        "bootstrap_servers": cluster.listener_address(listener),
        "security_protocol": {"LOGIN": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"}[listener],
        "sasl_mechanism": "PLAIN",
        "sasl_username": "admin",
        "sasl_password": PASSWORD,
        "timeout": 10,
    }
    return {**found, **({"ssl_ca": certificate.certificate} if listener == "BOTH" else {})}


@pytest.mark.parametrize("listener", ["LOGIN", "BOTH"])
def test_a_secured_cluster_is_asked_here_as_by_the_module(
    cluster, certificate, name, tmp_path, listener
):
    """And no secret is in what is printed, at the highest verbosity that shows arguments."""
    reached = secured(cluster, certificate, listener)
    there = {"name": name, "partitions": 2, "replication_factor": 3}
    Modules(cluster.bootstrap_servers).topics([there])
    asked = {
        "same": {**reached, "topics": [there]},
        "refused": {**reached, "topics": [{**there, "partitions": 1}]},
        "wrong": {**reached, "sasl_password": WRONG, "topics": [there]},
        "plain": {"bootstrap_servers": reached["bootstrap_servers"], "topics": [there]},
    }
    output, here, sent = both(tmp_path, MODULE, asked, "-vvv")
    assert told(here) == told(sent)
    assert not here["same"]["changed"] and not here["same"].get("failed"), output
    assert "[connection.credentials]" in here["wrong"]["msg"]
    assert all(here[each]["failed"] for each in ("refused", "wrong", "plain"))
    for secret in (PASSWORD, WRONG):
        assert secret not in output + json.dumps([here, sent])


@pytest.mark.parametrize("listener", ["LOGIN", "BOTH"])
@pytest.mark.parametrize("password", [PASSWORD, WRONG])
def test_the_preflight_asks_a_secured_cluster_here_as_by_the_module(
    cluster, certificate, listener, password
):
    reached = {**secured(cluster, certificate, listener), "sasl_password": password}
    asking = {**reached, "bootstrap_servers": [reached["bootstrap_servers"]], "timeout": 5}
    here, module = dict(asked_here(asking)), run_module("kafka_cluster_info", asking)
    assert here.pop("failed", False) == module.failed == (password == WRONG)
    assert here == {key: module.values[key] for key in here}
    assert password == WRONG or [each["id"] for each in here["brokers"]] == [1, 2, 3]
    assert password not in json.dumps(here)

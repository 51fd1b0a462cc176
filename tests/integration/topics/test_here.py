# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the action of kafka_topics answers itself or sends the module makes no difference."""

from __future__ import annotations

import json

import pytest

from tests.support.here_and_sent import both
from tests.support.run_module import Modules

MODULE = "kafkaops.cluster.kafka_topics"


def tasks(servers, name):
    """Two tasks that change nothing, one that would, and five that fail; of a topic that is there."""
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
        "wrong": {**reached, "topics": [there], "config_mode": "both"},
        "missing": reached,
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
    # arguments that are refused are said by the module, in Ansible's words
    bad = {each: found.pop(each) for each in ("wrong", "missing")}
    _output, here, sent = both(tmp_path, MODULE, found, *options)
    assert told(here) == told(sent)
    assert not here["same"]["changed"] and not here["same"].get("failed")
    assert here["lenient"]["changed"] == bool(options)
    (tmp_path / "bad").mkdir()
    _output, here, sent = both(tmp_path / "bad", MODULE, bad, *options, unsendable=False)
    assert told(here) == told(sent)
    assert all(each["failed"] for each in here.values())


def test_a_change_is_shown_here_and_made_by_the_module(cluster, name, tmp_path):
    """A killed run leaves a module to its end."""
    new = {"name": name + "-{{ inventory_hostname }}", "partitions": 2, "replication_factor": 3}
    asked = {"new": {"bootstrap_servers": cluster.bootstrap_servers, "topics": [new]}}
    for number, options in enumerate([("--check",), ()]):
        place = tmp_path / str(number)
        place.mkdir()
        output, here, sent = both(place, MODULE, asked, *options, unsendable=bool(options))
        assert here["new"]["changed"] and sent["new"]["changed"], output
        text = json.dumps(told(here)).replace(f"{name}-here", f"{name}-sent")
        assert json.loads(text) == told(sent)

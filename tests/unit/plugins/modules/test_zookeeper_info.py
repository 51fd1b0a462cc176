# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What zookeeper_info does with the verdict: in check mode it shows it, and a hopeless server is not waited for."""

from __future__ import annotations

import functools
import json

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.ensemble_gate import (
    EnsembleGate,
)
from ansible_collections.kafkaops.cluster.plugins.modules import zookeeper_info
from tests.support.outside import free_port
from tests.support.run_module import run_module


class Ended(Exception):
    """The module has ended, with its result."""


@pytest.fixture
def run(monkeypatch):
    """Run the module with servers as they are made up, and with a clock of its own."""
    clock = [0.0]

    def sleep(seconds):
        clock[0] += seconds

    def ended(kind):
        def end(_module, **result):
            raise Ended(json.dumps({"kind": kind, "seconds": clock[0], **result}))

        return end

    monkeypatch.setattr(basic.AnsibleModule, "exit_json", ended("exit"))
    monkeypatch.setattr(basic.AnsibleModule, "fail_json", ended("fail"))
    warnings = []
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda _module, text: warnings.append(text))

    def call(states, check_mode=False, **arguments):
        warnings.clear()
        clock[0] = 0.0
        made_up = {
            "ask": lambda _servers: states(clock[0]),
            "clock": lambda: clock[0],
            "sleep": sleep,
        }
        monkeypatch.setattr(
            zookeeper_info, "EnsembleGate", functools.partial(EnsembleGate, **made_up)
        )
        servers = [{"id": each["id"], "address": "z"} for each in states(0)]
        given = {"servers": servers, "wait": True, "_ansible_check_mode": check_mode, **arguments}
        with patch_module_args(given), pytest.raises(Ended) as caught:
            zookeeper_info.main()
        return json.loads(str(caught.value)), list(warnings)

    return call


def state(number, role, error=None, synced=None):
    return {
        "id": number,
        "address": "z",
        "port": 2181,
        "role": role,
        "serving": role is not None,
        "synced_followers": synced,
        "error": error,
        "listed": None,
        "runs": True,
    }


LOOKING = "it runs, but has no quorum"
ONE_DOWN = [state(1, "leader", synced=1), state(2, "follower"), state(3, None, "refused")]


def test_check_mode_looks_once_and_shows_what_is_missing(run):
    result, _warnings = run(lambda _now: ONE_DOWN, check_mode=True, stopping=2, timeout=120)
    assert (result["kind"], result["seconds"]) == ("exit", 0)
    (line,) = result["lines"]
    assert line.startswith("server 2 may not stop yet: server 3 at z:2181: refused; 1 of 3 serve")
    result, _warnings = run(lambda _now: ONE_DOWN, stopping=2, timeout=120)
    assert (result["kind"], result["seconds"] >= 120) == ("fail", True)


def test_a_server_that_has_no_quorum_for_long_is_not_waited_for(run):
    """An election is soon over, and so is the reading of a database."""
    looking = [state(number, None, LOOKING) for number in (1, 2)] + [state(3, None, "refused")]
    result, _warnings = run(lambda _now: looking, stopping=2, timeout=120)
    assert result["kind"] == "exit" and 20 <= result["seconds"] < 21 and result["idle"]
    whole = [state(1, "leader", synced=2), state(2, "follower"), state(3, "follower")]
    result, _warnings = run(
        lambda now: looking if now < 5 else whole, stopping=2, quiet_seconds=1, timeout=120
    )
    assert result["kind"] == "exit" and 6 <= result["seconds"] < 7 and not result["idle"]


def test_one_good_look_between_two_elections_is_not_enough(run):
    whole = [state(1, "leader", synced=2), state(2, "follower"), state(3, "follower")]
    looking = [state(1, None, "refused"), state(2, None, "refused"), state(3, None, "refused")]

    def flapping(now):
        return whole if int(now * 5) % 4 == 0 else looking

    result, _warnings = run(flapping, stopping=2, quiet_seconds=1, timeout=30)
    assert result["kind"] == "fail"


def test_an_ensemble_of_one_warns_before_it_stops(run):
    alone = [state(1, "standalone")]
    result, warnings = run(lambda _now: alone, stopping=1)
    assert warnings == ["The ensemble does not serve while server 1 restarts: it is the only one."]
    result, warnings = run(lambda _now: alone, check_mode=True, stopping=1)
    assert result["lines"] == [
        "server 1 may stop now; the ensemble does not serve while server 1 restarts: it is the only one"
    ]
    assert warnings == [], "it is in the line"


@pytest.mark.parametrize(
    "options, line",
    [
        ({}, "[ensemble.not_ready] waited 0 s for ZooKeeper: server 1 at 127.0.0.1:"),
        ({"stopping": 1}, "[gate.waiting] server 1: waited 0 s, and it may not be stopped yet: "),
        (
            {"stopping": 3},
            "[options.servers] stopping=3: no entry of servers has this id. Remedy: name a server by its id.",
        ),
        (
            {"servers": []},
            "[options.servers] servers: the list is empty. Remedy: name at least one",
        ),
        ({"timeout": -4}, "[options.range] timeout=-4: must not be negative. Remedy: give the sec"),
    ],
)
def test_a_failure_has_an_id_and_a_remedy(options, line):
    servers = [{"id": each, "address": "127.0.0.1", "port": free_port()} for each in (1, 2)]
    result = run_module(
        "zookeeper_info", {"servers": servers, "wait": True, "timeout": 0, **options}
    )
    assert result.failed and result.msg.startswith(line), result.msg
    assert ". Remedy: " in result.msg

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the action answers itself makes no difference: the same tasks here and by the module."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.kafkaops.cluster.plugins.action.jvm_instance import ActionModule
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from tests.support.here_and_sent import both
from tests.support.outside import free_port
from tests.support.small_service import write_java

SECRET = "correct-horse"
SETTINGS = {
    "name": "one",
    "manager": "supervisor",
    **{f"{each}_dir": "{{ place }}/%s" % each for each in ("config", "state", "log", "supervisor")},
}
STAGED = {
    **SETTINGS,
    "generation": {
        "release": "{{ place }}/kafka_2.13-3.9.2",
        "java_home": "/usr/lib/java",
        "main_class": "Main",
        "classpath": "{{ 'libs' }}/*",
        # values and a key that are no texts
        "environment": {"THREADS": "{{ 4 + 4 }}", 1: True},
        "files": {"server.properties": "{{ 'broker.id=' ~ 1 }}\n"},
    },
    "secrets": {"files": {"server.properties": f"password={SECRET}\n"}},
}
TASKS = {
    "first": STAGED,
    "second": STAGED,
    "look": {**SETTINGS, "state": "probe", "explain": True},
    "no_room": {**STAGED, "config_dir": "/proc/none"},
}
# In check mode these neither start nor stop anything.
FORETOLD = {
    state: {**SETTINGS, "state": state} for state in ("started", "stopped", "removed", "deleted")
}


@pytest.mark.parametrize("options", [(), ("--check",)], ids=["done", "checked"])
def test_the_action_returns_what_the_module_returns(tmp_path, options):
    tasks = {**TASKS, **(FORETOLD if options else {})}
    output, here, sent = both(tmp_path, "kafkaops.cluster.jvm_instance", tasks, *options)
    assert SECRET not in output
    for each in (*here.values(), *sent.values()):
        each.pop("fingerprint", None)  # the directory is part of what it stands for
    assert here == sent
    assert here["first"]["changed"] and here["second"]["changed"] == bool(options)
    assert "broker.id=1" in json.dumps(here["first"]["diff"])
    assert not options or here["no_room"]["changed"] and here["started"]["changed"]
    assert not options or here["deleted"]["deleted"] == []
    assert options or here["no_room"]["failed"]


# A small service, which listens at a port of its host.
SERVED = {
    **SETTINGS,
    "ready": [{"host": "127.0.0.1", "port": "{{ ports[inventory_hostname] }}"}],
}
SMALL = {
    **SERVED,
    "generation": {
        **STAGED["generation"],
        "java_home": "{{ place }}/java",
        "environment": {},
        "arguments": ["{conf}/server.properties"],
        "files": {"server.properties": "port={{ ports[inventory_hostname] }}\n"},
    },
}


def small_services(place):
    """Make what both hosts start; skips where there is no supervisord."""
    pytest.importorskip("supervisor")
    for name in ("here", "sent"):
        (place / name).mkdir()
        write_java(str(place / name))


@pytest.mark.soak
def test_a_process_is_stopped_only_with_leave_of_the_gate(tmp_path):
    """Nobody can be asked, so that it is not; with consent to everything, it is. Its own start is not asked for."""
    small_services(tmp_path)
    settings = SERVED
    nobody, port = f"127.0.0.1:{free_port()}", free_port()
    # Where the brokers are, tells the environment of the play.
    gate = {
        "broker": 1,
        "timeout": 1,
        "wait_seconds": 1,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "one",
        "sasl_password": SECRET,
    }
    anyway = {**gate, "accept_unavailable": ["all"]}
    servers = [{"id": each, "address": "127.0.0.1", "port": port} for each in (1, 2, 3)]
    ensemble = {"servers": servers, "stopping": 1, "timeout": 0}
    tasks = {
        "staged": SMALL,
        "started": {**settings, "state": "started", "gate": gate},
        "wrong": {**settings, "state": "stopped", "gate": {"brokers": "one"}},
        "kept": {**settings, "state": "started", "restart": True, "gate": gate},
        "unknown": {**settings, "state": "stopped", "gate": {**ensemble, "stopping": 4}},
        "without": {**settings, "state": "started", "restart": True, "gate": ensemble},
        "runs": {**settings, "state": "probe"},
        "alone": {
            **settings,
            "state": "started",
            "restart": True,
            "gate": {**ensemble, "servers": servers[:1]},
        },
        "restarted": {**settings, "state": "started", "restart": True, "gate": anyway},
        "stopped": {**settings, "state": "removed", "gate": anyway},
    }
    output, here, sent = both(
        tmp_path,
        "kafkaops.cluster.jvm_instance",
        tasks,
        "-vvv",
        unsendable=False,
        environment={"KAFKA_BOOTSTRAP_SERVERS": nobody},
        ports={name: free_port() for name in ("here", "sent")},
    )
    assert SECRET not in output
    for found in (here, sent):
        assert found["started"]["changed"] and "looked_ms" not in found["started"], found
        assert found["wrong"]["failed"] and "gate: " in found["wrong"]["msg"]
        assert found["kept"]["failed"] and nobody in found["kept"]["msg"], found["kept"]
        assert found["runs"]["pid"] == found["started"]["pid"]
        assert "stopping=4: no entry of servers has this id" in found["unknown"]["msg"]
        assert found["without"]["failed"] and "[gate.waiting] server 1: " in found["without"]["msg"]
        assert f"server 2 at 127.0.0.1:{port}: " in found["without"]["msg"], found["without"]
        for before, after in (("runs", "alone"), ("alone", "restarted")):
            again = found[after]
            assert again["changed"] and again["pid"] != found[before]["pid"], after
            assert again["looked_ms"] <= again["took"]["from_ms"]
        assert found["stopped"]["changed"] and found["stopped"]["looked_ms"]
    assert "broker 1: it may not stop any more: " in output
    assert "server 1: it may not stop any more: " in output


# Who asks where the first question was asked elsewhere, or by a process that is not this one.
ELSEWHERE = {
    "another machine": ({"host": "admin"}, {}),
    "another Python": ({"host": "localhost", "python": "{{ python }}"}, {}),
    "an environment for new processes": (None, {"LD_LIBRARY_PATH": "/nonexistent"}),
}


@pytest.mark.soak
@pytest.mark.parametrize("case", ELSEWHERE)
def test_who_has_asked_before_is_asked_once_more_by_a_module(tmp_path, case):
    """Where this process cannot ask as they did: of another network, with other libraries."""
    small_services(tmp_path)
    asks, environment = ELSEWHERE[case]
    nobody, port, told = f"127.0.0.1:{free_port()}", free_port(), tmp_path / "told"
    gate = {"broker": 1, "timeout": 1, "wait_seconds": 1, "sasl_password": SECRET}
    gate.update({"asks": asks} if asks else {}, sasl_username="one", sasl_mechanism="PLAIN")
    gate.update(security_protocol="SASL_PLAINTEXT")
    servers = [{"id": each, "address": "127.0.0.1", "port": port} for each in (1, 2, 3)]
    ensemble = {"servers": servers, "stopping": 1, "timeout": 0, **({"asks": asks} if asks else {})}
    again = {**SERVED, "state": "started", "restart": True}
    output, here, sent = both(
        tmp_path,
        "kafkaops.cluster.jvm_instance",
        {
            "staged": SMALL,
            "started": {**SERVED, "state": "started"},
            "kept": {**again, "gate": gate},
            "without": {**again, "gate": ensemble},
            "runs": {**SERVED, "state": "probe"},
            "alone": {**again, "gate": {**ensemble, "servers": servers[:1]}},
            "stopped": {
                **SERVED,
                "state": "removed",
                "gate": {**gate, "accept_unavailable": ["all"]},
            },
        },
        unsendable=False,
        environment={"KAFKA_BOOTSTRAP_SERVERS": nobody, **environment},
        beside={"admin": {"ansible_connection": "far", "far_told": "{{ told }}"}},
        told=str(told),
        python=str(tmp_path / "python"),
        ports={name: free_port() for name in ("here", "sent")},
    )
    assert SECRET not in output
    for found in (here, sent):
        assert found["kept"]["failed"] and nobody in found["kept"]["msg"], found["kept"]
        assert "Remedy: " in found["kept"]["msg"]
        assert found["without"]["failed"] and "[gate.waiting] server 1: " in found["without"]["msg"]
        assert found["runs"]["pid"] == found["started"]["pid"]
        assert found["alone"]["changed"] and found["alone"]["pid"] != found["runs"]["pid"]
        assert found["alone"]["looked_ms"] <= found["alone"]["took"]["from_ms"]
        assert found["stopped"]["changed"] and found["stopped"]["looked_ms"]
    assert told.exists() == (case == "another machine")


SERVES = {
    "role": "follower",
    "serving": True,
    "error": None,
    "listed": None,
    "runs": True,
    "synced_followers": None,
}


class Admin:
    """Another machine, which asks ZooKeeper: one of `answers` a look, the last one for good. Errors are raised."""

    name = "admin"

    def __init__(self, *answers):
        self.answers = list(answers)

    def is_controller(self):
        return False

    def connected(self):
        return self.run

    def run(self, _module, arguments):
        found = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        leads = {2: {"role": "leader", "synced_followers": 2}}
        return {
            **found,
            "servers": [
                {**each, **SERVES, **leads.get(each["id"], {})} for each in arguments["servers"]
            ],
        }


class Stopping(ActionModule):
    """Stops a server after one last look; notes what each of them said."""

    def __init__(self):
        self.said, self.lines = [], []
        self._display = SimpleNamespace(display=self.lines.append)

    def _attempt(self, at_hand, task_vars):
        with at_hand() as look:
            self.said.append(look())
        return {"stopped": True}, self.said[-1]


LOST = AnsibleConnectionFailure("no route to host")


def without_one(*answers, timeout=20):
    """(the action, a function that runs it) of a stop of server 1, where `answers` come from another machine."""
    servers = [{"id": each, "address": "z", "port": 2181} for each in (1, 2, 3)]
    question = {"servers": servers, "stopping": 1, "timeout": timeout}
    action, admin = Stopping(), Admin(*answers)
    return action, lambda: action._behind_the_gate_of_servers(question, admin, {})


@pytest.mark.parametrize(
    "lost, told",
    [
        (LOST, "admin cannot be asked: no route to host"),
        ({"failed": True, "msg": "no room on /tmp"}, "no room on /tmp"),
    ],
)
def test_who_cannot_ask_the_servers_right_before_the_stop_asks_again(lost, told):
    """As of a broker: a connection may break for a moment, and the server runs on meanwhile."""
    action, run = without_one(lost, lost, {})
    assert run() == {"stopped": True}
    assert [bool(each) for each in action.said] == [True, False]
    assert all(f"server {each} at z:2181: {told}" in action.said[0] for each in (1, 2, 3))
    assert told in action.lines[0]


def test_who_can_never_ask_the_servers_says_why():
    _action, run = without_one(LOST, timeout=0)
    with pytest.raises(
        ProblemError, match="gate.waiting.*server 2 at z:2181: admin cannot be asked: no route"
    ):
        run()

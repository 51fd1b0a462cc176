# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action's own part: whose name a lock is taken in. What the playbooks make of it: tests/local/test_lock.py."""

from __future__ import annotations

import multiprocessing
import os
import signal

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.kafkaops.cluster.plugins.action import run_lock as action
from tests.support.outside import wait_until

FORK = multiprocessing.get_context("fork")


def _worker(parent, sender):
    """What Ansible's worker does: ask who its run is, while that lives and afterwards."""
    sender.send(action._this_run("c").id)
    wait_until(lambda: os.getppid() != parent, 60, "its run has ended")
    try:
        sender.send(action._this_run("c").id)
    except AnsibleActionFail as error:
        sender.send(str(error))


def _run_of_ansible(sender):
    FORK.Process(target=_worker, args=(os.getpid(), sender)).start()
    signal.pause()


def test_a_worker_acts_in_the_name_of_its_run_and_no_longer_when_that_is_killed():
    receiver, sender = FORK.Pipe(duplex=False)
    run = FORK.Process(target=_run_of_ansible, args=(sender,))
    run.start()
    assert receiver.poll(60)
    assert receiver.recv().split(":")[1] == str(run.pid)
    os.kill(run.pid, signal.SIGKILL)
    run.join()
    assert receiver.poll(60)
    assert "has ended" in receiver.recv()


@pytest.mark.parametrize(
    "settings, address",
    [
        ({"ansible_connection": "local", "ansible_host": "x"}, "local"),
        ({"ansible_host": "192.0.2.1"}, "192.0.2.1:"),
        ({"ansible_host": "192.0.2.1", "ansible_port": 2222}, "192.0.2.1:2222"),
        ({}, "kafka-1:"),
    ],
)
def test_names_are_one_machine_if_they_are_reached_alike(settings, address):
    assert action._address("kafka-1", settings) == address


@pytest.mark.parametrize(
    "of_host, expected",
    [
        ({}, []),
        ({"kafkaops_preflight_collected": {"unreachable_reason": "off"}}, []),
        ({"kafkaops_preflight_collected": {"facts": None}}, []),
        ({"kafkaops_preflight_collected": {"facts": {"lock": None}}}, []),
        ({"kafkaops_preflight_collected": {"facts": {"lock": {"owner": "a:1:2"}}}}, ["a:1:2"]),
    ],
)
def test_who_held_the_lock_when_the_preflight_looked(of_host, expected):
    assert action._seen(of_host) == expected


def test_the_marks_that_the_preflight_has_found():
    marks = {"facts": {"marks": ["a:1:2 x"]}}
    of_hosts = {"a": {"kafkaops_preflight_collected": marks}, "b": {}}
    of_hosts["c"] = {"kafkaops_preflight_collected": {"facts": None}}
    assert action._marks(of_hosts) == {"a": ["a:1:2 x"]}


def test_why_a_host_did_not_answer():
    assert action._reason(PermissionError(13, "Permission denied", "/var/x")) == (
        "/var/x: Permission denied"
    )
    assert action._reason(action.AnsibleConnectionFailure("no route\n")) == (
        "it cannot be reached: no route"
    )

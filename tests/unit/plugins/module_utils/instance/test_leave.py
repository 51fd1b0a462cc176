# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leave to stop: asked for by the module in one thread, given or not by the controller in another, by a real shell."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance import leave
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.leave import (
    Answering,
    Place,
    wait_for_leave,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError


@pytest.fixture
def place(tmp_path):
    """A directory whose name has to be quoted."""
    path = tmp_path / "it's [a] conf"
    path.mkdir()
    return Place(str(path), "0f1e")


def shell(command):
    """Whether a command succeeds in the host's shell."""
    return subprocess.run(["/bin/sh", "-c", command], check=False).returncode == 0


def at_hand(look):
    """A context of a look, as the gatekeeper makes it."""
    return lambda: contextlib.nullcontext(look)


def test_leave_is_given_at_the_moment_at_which_it_is_asked_for(place):
    looks = []

    def look():
        looks.append(os.listdir(place.config_dir))
        return []

    with Answering(shell, place, at_hand(look)) as answering:
        wait_for_leave(place, "kafka-1")
    assert looks == [[".asks-to-stop-0f1e"]], "not before it was asked for, and once"
    assert answering.reasons == [] and answering.looked_ms
    assert os.listdir(place.config_dir) == []


def test_with_a_reason_there_is_no_leave(place):
    with Answering(shell, place, at_hand(lambda: ["t0-0 is below"])) as answering:
        with pytest.raises(ProblemError, match=r"\[instance.no_leave\] kafka-1: .*not stopped"):
            wait_for_leave(place, "kafka-1")
    assert answering.reasons == ["t0-0 is below"]
    assert os.listdir(place.config_dir) == []


def test_where_nobody_answers_there_is_no_leave_and_later_none_can_be_given(place):
    """The run was killed, say. Its controller, if it lives after all, comes too late."""
    now = [0.0]

    def sleep(seconds):
        now[0] += seconds

    with pytest.raises(ProblemError, match="for 60 s nobody has said whether it may be stopped"):
        wait_for_leave(place, "kafka-1", lambda: now[0], sleep)
    assert now[0] >= leave.WAIT_SECONDS and os.listdir(place.config_dir) == []
    assert not shell(place.grant()) and os.listdir(place.config_dir) == []


def test_leave_of_another_time_counts_for_nothing(place):
    """What a killed module has left, granted or not, is removed."""
    for left in (Place(place.config_dir, "dead").may, place.may, place.asks):
        with open(left, "w", encoding="utf-8"):
            pass
    now = [0.0]

    def sleep(seconds):
        now[0] += seconds

    with pytest.raises(ProblemError, match="instance.no_leave"):
        wait_for_leave(place, "kafka-1", lambda: now[0], sleep)
    assert os.listdir(place.config_dir) == []


def test_a_look_that_takes_longer_than_the_module_waits_is_a_reason(place):
    with Answering(shell, place, at_hand(lambda: shell(place.refuse()) and [])) as answering:
        with pytest.raises(ProblemError, match="instance.no_leave"):
            wait_for_leave(place, "kafka-1")
    assert answering.reasons == ["the look at the cluster took too long"]


def test_a_module_that_stops_nothing_asks_for_nothing(place):
    with Answering(shell, place, at_hand(lambda: pytest.fail("asked"))) as answering:
        pass
    assert (answering.reasons, answering.looked_ms) == ([], None)


def test_a_failure_of_who_answers_is_no_leave_and_is_told(place):
    looked, now = threading.Event(), [0.0]

    def broken():
        looked.set()
        raise RuntimeError("lost the host")

    def clock():
        # time passes for the module when the look has failed, however late that is
        now[0] += leave.WAIT_SECONDS * looked.is_set()
        return now[0]

    with pytest.raises(RuntimeError, match="lost the host"):
        with Answering(shell, place, at_hand(broken)):
            with pytest.raises(ProblemError, match="instance.no_leave"):
                wait_for_leave(place, "kafka-1", clock)

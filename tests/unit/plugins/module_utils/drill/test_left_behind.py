# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drill has made is removed by another process where the drill cannot, and by nobody where it has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    drill_client,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.left_behind import (
    LASTING_SECONDS,
    led_in_the_end,
    removed_in_the_end,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from tests.support import collection_finder
from tests.support.outside import wait_until
from tests.support.still_time import Time
from tests.support.wire_broker import WireBroker

CHECKOUT = os.path.dirname(os.path.dirname(collection_finder.__file__)).rpartition("/")[0]
DRILL = textwrap.dedent("""
    import sys, time
    sys.path.insert(0, {checkout!r})
    from tests.support import collection_finder
    collection_finder.install()
    from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.left_behind import removed_by_another
    removed, end = sys.argv[1:]
    def remove():
        open(removed, "w").close()
    with removed_by_another(remove) as left:
        print("made", flush=True)
        if end == "killed":
            time.sleep(600)
        if end == "failed":
            raise ValueError
        if end == "left":
            left()
    """)


def drill(tmp_path, end):
    """Run a drill to this end; returns what says that it was removed."""
    removed = tmp_path / "removed"
    words = [sys.executable, "-c", DRILL.format(checkout=CHECKOUT)]
    process = subprocess.Popen(
        [*words, str(removed), end],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "made\n"
    if end == "killed":
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)
    return removed


def watchers(tmp_path):
    """Processes that were forked from a drill of this directory."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as handle:
                if os.fsencode(tmp_path / "removed") in handle.read():
                    found.append(name)
        except OSError:
            continue
    return found


def test_what_a_killed_drill_has_made_is_removed(tmp_path):
    removed = drill(tmp_path, "killed")
    wait_until(removed.exists, 30, "it is removed")
    wait_until(lambda: not watchers(tmp_path), 30, "nobody watches any more")


def test_a_drill_that_has_ended_well_leaves_nobody(tmp_path):
    removed = drill(tmp_path, "good")
    wait_until(lambda: not watchers(tmp_path), 30, "nobody watches any more")
    assert not removed.exists()


@pytest.mark.parametrize("end", ["failed", "left"])
def test_what_a_drill_could_not_remove_itself_is_removed(tmp_path, end):
    removed = drill(tmp_path, end)
    wait_until(removed.exists, 30, "it is removed")
    wait_until(lambda: not watchers(tmp_path), 30, "nobody watches any more")


NO_ANSWER = {"reachable": False}


def removing(*results):
    """A removal with these results, one after the other: the details of an error, or None for success."""
    left = list(results)

    def remove():
        details = left.pop(0)
        if details is not None:
            raise AdminError(Problem("drill.failed", "topic x: timed out", "wait"), **details)

    return remove, left


@pytest.mark.parametrize(
    "topics, groups, gone",
    [
        ([None], [None], True),
        # no quorum: the controller answers, and changes nothing
        ([{}, NO_ANSWER, {}, None], [None], True),
        ([{}, None], [NO_ANSWER, None], True),
        # somebody reads with them again, who has begun since
        ([None], [{}], False),
    ],
)
def test_what_cannot_be_removed_yet_is_tried_again(topics, groups, gone):
    (of_topics, topics_left), (of_groups, groups_left) = removing(*topics), removing(*groups)
    time = Time()
    assert removed_in_the_end(of_topics, of_groups, time.clock, time.sleep) is gone
    assert topics_left == groups_left == []


def test_it_is_tried_for_a_quarter_of_an_hour():
    time, (of_topics, left) = Time(), removing(*[{}] * 1000)
    assert not removed_in_the_end(of_topics, lambda: None, time.clock, time.sleep)
    assert left and 900 <= time.now < 930


@pytest.mark.parametrize(
    "looks, given, seconds",
    [
        # it leads still in the eyes of others, has died, comes back, and is in sync with one partition after the other
        ([True, True, None, False, False, True], True, 10 + LASTING_SECONDS),
        ([True], True, LASTING_SECONDS),
        ([False], False, 900),
        ([None], False, 900),
    ],
)
def test_leadership_is_given_back_until_that_lasts(looks, given, seconds):
    """`looks`: whether all lead that shall, None: nobody answers; the last one stays so."""
    time, left = Time(), list(looks)

    def give_back():
        led = left.pop(0) if len(left) > 1 else left[0]
        if led is None:
            raise AdminError(Problem("admin.x", "nobody answers", "wait"), reachable=False)
        return led

    assert led_in_the_end(give_back, lambda: False, time.clock, time.sleep) is given
    assert seconds <= time.now < seconds + 5


def test_leadership_is_left_to_another_drill_that_has_begun():
    """It has given leadership back before it moves it anew."""
    time, asked = Time(), []
    led_in_the_end(
        lambda: asked.append(time.now) or False, lambda: time.now > 5, time.clock, time.sleep
    )
    assert max(asked) <= 5 and time.now < 10


class Late(WireBroker):
    """A broker that makes a topic a second after it has removed others: it was asked for before."""

    def _DeleteTopics(self, asked):
        if "kafkaops-drill-x" in self.topics:
            late = lambda: self.topics.update({"kafkaops-drill-x-2": [1, {}]})  # noqa: E731
            threading.Timer(1, late).start()
        return super()._DeleteTopics(asked)


@pytest.mark.parametrize("seconds, left", [(0.0, ["kafkaops-drill-x-2"]), (2.0, [])])
def test_a_topic_that_is_made_late_is_removed_too(seconds, left):
    with Late() as broker:
        broker.topics.update({"kafkaops-drill-x": [1, {}], "mine": [1, {}]})
        host, _colon, port = broker.address.partition(":")
        client = drill_client(Connection(((host, int(port)),), timeout=5))
        client.remove_topics(["kafkaops-drill-x"], seconds)
        wait_until(lambda: broker.requests["DeleteTopics"] > 1 or left, 10, "it is removed")
        wait_until(lambda: sorted(broker.topics) == [*left, "mine"], 10, "all is as it was")

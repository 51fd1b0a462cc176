# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which steps replicas move between directories: batches, limits, what a killed run leaves.

The brokers here are a model, with a clock of our own: what real ones do is in tests/integration/topics.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import DISK_OPTIONS
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.log_dirs import (
    Disks,
    disks_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    Directory,
    Snapshot,
    UnderWay,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_disks import (
    DISK_RATE,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_replicas import (
    Running,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.disks import (
    DiskReassignment,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.moving import OPTIONS
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import reconcile

PATHS = ("/d1", "/d2", "/d3")


class Killed(Exception):
    """The run ends here."""


class Model:
    """Two brokers with three directories each, whose copies take a second; it notes what it saw."""

    def __init__(self, seconds=1.0):
        self.where = {(broker, ("t", n)): "/d1" for broker in (1, 2) for n in range(9)}
        self.targets, self.ends, self.rates = {}, {}, {}
        self.joining, self.silent, self.stuck = {}, set(), set()
        # (broker, directory) to when it goes offline, and those that have.
        self.dies, self.offline = {}, set()
        self.now, self.seconds = 0.0, seconds
        self.most, self.unlimited = 0, []
        self.kill_after = None
        self.shy = self.blinks = False
        # Brokers whose copies go on, a byte in each so many seconds; the others look as if they stood still.
        self.copies = {}
        # Bytes of each replica, and whether producers write as much as is copied.
        self.size, self.grows = 5, False
        # Bytes that the disk of each directory has left, by a time; not told.
        self.left = lambda path, now: None
        self.rights = frozenset({"DESCRIBE", "ALTER", "ALTER_CONFIGS"})

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def _request(self):
        if self.kill_after is not None:
            self.kill_after -= 1
            if self.kill_after < 0:
                raise Killed
        for place in [place for place, end in self.ends.items() if end <= self.now]:
            self.where[place] = self.targets.pop(place)
            del self.ends[place]
        self.offline |= {place for place, time in self.dies.items() if time <= self.now}
        for place, target in [*self.targets.items()]:
            if {(place[0], self.where[place]), (place[0], target)} & self.offline:
                del self.targets[place], self.ends[place]

    def fetch_metadata(self):
        return Snapshot("id", 1, (Broker(1, "h", 1), Broker(2, "h", 1)), {})

    def fetch_own_rights(self):
        return self.rights

    def fetch_running(self):
        return self.joining

    def fetch_disks(self, brokers):
        self._request()
        directories = {
            broker: tuple(
                Directory(
                    path,
                    {
                        p[1]: self.size
                        for p, at in self.where.items()
                        if p[0] == broker and at == path and (broker, path) not in self.offline
                    },
                    (broker, path) not in self.offline,
                    None if self.left(path, self.now) is None else 10**6,
                    self.left(path, self.now),
                )
                for path in PATHS
            )
            for broker in brokers
        }
        under_way = {
            place: UnderWay(
                self.where[place],
                target,
                self.size + self._copied(place[0]) * self.grows,
                2 + self._copied(place[0]),
            )
            for place, target in self.targets.items()
            if place[0] in brokers and not (self.blinks and self.ends[place] - self.now <= 1)
        }
        return Disks(directories, under_way)

    def _copied(self, broker):
        return int(self.now / self.copies[broker]) if broker in self.copies else 0

    def look_at_disks(self, brokers, _topics):
        return self.fetch_disks([broker for broker in brokers if broker not in self.silent])

    def move_between_disks(self, wanted):
        self._request()
        for place, path in wanted.items():
            self.targets.pop(place, None)
            self.ends.pop(place, None)
            if place in self.stuck or (place[0], path) in self.offline:
                continue
            if self.where[place] != path:
                self.targets[place] = path
                self.ends[place] = self.now + self.seconds
                if place[0] not in self.rates:
                    self.unlimited.append(place)
        self.most = max(self.most, len(self.targets))
        return {}

    def fetch_disk_rates(self, brokers):
        self._request()
        told = {} if self.shy else self.rates
        return {broker: rate for broker, rate in told.items() if broker in brokers}

    def look_at_disk_rates(self, brokers):
        rates = self.fetch_disk_rates(brokers)
        return {broker: rates.get(broker) for broker in brokers if broker not in self.silent}

    def set_disk_rates(self, rates):
        self._request()
        self.rates = {b: rate for b, rate in {**self.rates, **rates}.items() if rate is not None}


def run(model, seconds=1000.0, lines=None, check=False, over=str, **options):
    defaults = {name: option.get("default") for name, option in {**OPTIONS, **DISK_OPTIONS}.items()}
    params = {**defaults, "disks": [1, 2], **options}
    tell = (lines if lines is not None else []).append
    resource = DiskReassignment(model, params, tell, model.clock, model.sleep, over)
    return reconcile(resource, check, seconds, model.clock, model.sleep), resource


def counts(model, broker):
    return [sum(p[0] == broker and at == path for p, at in model.where.items()) for path in PATHS]


def test_never_more_than_a_batch_moves_all_of_it_under_the_limit_on_both_brokers():
    model = Model()
    outcome, resource = run(model, batch=3, throttle="1MiB")
    assert not outcome.failures and len(outcome.changed) == 12
    assert model.most == 3 and model.unlimited == [] and model.rates == {}
    assert counts(model, 1) == counts(model, 2) == [3, 3, 3]
    results = resource.results(outcome)
    assert (results["bytes"], results["copies"]) == (60, 12)
    assert results["took"]["from_ms"] <= results["took"]["to_ms"]
    assert not run(model, batch=3)[0].plan


def test_check_mode_plans_the_same_and_touches_nothing():
    model = Model()
    planned, _resource = run(model, check=True)
    assert model.rates == {} and model.most == 0
    assert run(model)[0].plan == planned.plan
    change = planned.plan.changes[0]
    assert (change.kind, change.subject, change.note) == ("move", "broker 1: t-0", "5 B")
    assert (change.before, change.after) == ({"directory": "/d1"}, {"directory": "/d2"})


@pytest.mark.parametrize(
    "rights, throttle, refused",
    [
        ({"DESCRIBE"}, "unlimited", True),
        ({"DESCRIBE", "ALTER"}, "1MiB", True),
        ({"DESCRIBE", "ALTER"}, "unlimited", False),
    ],
)
def test_who_may_not_is_told_before_anything_moves(rights, throttle, refused):
    model = Model()
    model.rights = frozenset(rights)
    for check in (True, False):
        outcome, _resource = run(model, check=check, throttle=throttle)
        found = [each.check for each in outcome.plan.refusals]
        assert found == (["reassignment.rights"] if refused else [])
    assert (model.most == 0) is refused and model.rates == {}


def test_a_directory_is_emptied_on_the_brokers_that_are_named_and_no_others():
    model = Model()
    assert not run(model, disks=[2], drain_directories=["/d1"], throttle="unlimited")[0].failures
    assert sorted(counts(model, 2)) == [0, 4, 5] and counts(model, 1) == [9, 0, 0]
    assert model.unlimited and model.rates == {}


def test_a_limit_that_the_brokers_do_not_tell_yet_is_removed():
    model = Model()
    model.shy = True
    assert not run(model)[0].failures and model.rates == {}


def test_it_says_now_and_then_how_far_it_is():
    lines = []
    model = Model(seconds=20.0)
    run(model, lines=lines, batch=2)
    assert lines[0] == "0 of 12 replicas moved, 56 B left" and len(lines) > 3


def test_a_broker_that_does_not_answer_for_a_while_is_waited_for():
    lines = []
    model = Model(seconds=2.0)
    model.silent = {2}
    outcome, _resource = run(model, seconds=20.0, lines=lines)
    assert {failure.code for failure in outcome.failures} == {"timeout"}
    assert lines[-1].endswith("waiting for broker 2, which does not answer")
    model.silent = set()
    assert not run(model)[0].failures and counts(model, 2) == [3, 3, 3]


def test_at_the_deadline_what_moves_goes_on_under_its_limit():
    model = Model(seconds=100.0)
    outcome, _resource = run(model, seconds=10.0, batch=2)
    assert {failure.code for failure in outcome.failures} == {"timeout"}
    assert len(model.targets) == 2 and set(model.rates) == {1, 2}


@pytest.mark.parametrize("seconds, copies", [(60.0, {}), (5000.0, {1: 90.0, 2: 90.0})])
def test_what_still_arrives_moves_the_deadline(seconds, copies):
    """A full disk of 8 TB takes two days at 50 MiB/s."""
    model = Model(seconds=seconds)
    model.copies, model.size = copies, 1000
    outcome, _resource = run(model, seconds=100.0, batch=4)
    assert not outcome.failures and model.now >= 3 * seconds
    assert counts(model, 1) == counts(model, 2) == [3, 3, 3]


def test_what_only_keeps_up_with_producers_does_not_move_the_deadline():
    model = Model(seconds=5000.0)
    model.copies, model.size, model.grows = {1: 90.0, 2: 90.0}, 1000, True
    outcome, _resource = run(model, seconds=1000.0)
    assert {failure.code for failure in outcome.failures} == {"timeout"}
    assert 1000 <= model.now < 1100


@pytest.mark.parametrize(
    "copies, silent, rate, stalled",
    [
        ({1: 90.0}, (), "1MiB", True),
        ({1: 90.0}, (), "unlimited", True),
        # under a low rate it takes its time, and who does not answer may be starting
        ({1: 90.0}, (), "100KiB", False),
        ({1: 90.0}, (2,), "1MiB", False),
        ({1: 90.0, 2: 119.0}, (), "1MiB", False),
    ],
)
def test_a_broker_that_answers_and_copies_nothing_ends_the_run_and_is_named(
    copies, silent, rate, stalled
):
    model = Model(seconds=900.0)
    model.copies = copies
    really = model.look_at_disks
    model.look_at_disks = lambda brokers, topics: really(
        [b for b in brokers if b not in silent or model.now > 800], topics
    )
    outcome, _resource = run(model, seconds=86400.0, throttle=rate)
    if not stalled:
        assert not outcome.failures and counts(model, 2) == [3, 3, 3]
        return
    assert {failure.code for failure in outcome.failures} == {"stopped"}
    assert 120 <= model.now < 140 and len(model.targets) == 12
    failure = outcome.failures[0]
    assert "[reassignment.stalled] broker 2 has copied nothing for 120 s" in failure.error
    assert "t-0, t-1" in failure.error and "still under way" in failure.error
    assert set(model.rates) == (set() if rate == "unlimited" else {1, 2})


@pytest.mark.parametrize(
    "grows, rate, remedy",
    [
        (True, "1MiB", "its disks, its network or those of the leaders carry no more"),
        (True, "unlimited", "its disks, its network or those of the leaders carry no more"),
        (False, "1MiB", ""),
    ],
)
def test_a_run_ends_whose_copies_only_keep_up_with_producers(grows, rate, remedy):
    """Bytes arrive all the time, and none of the moves would ever end."""
    model, lines = Model(seconds=2500.0), []
    model.copies, model.size, model.grows = {1: 90.0, 2: 90.0}, 1000, grows
    outcome, _resource = run(model, seconds=86400.0, lines=lines, throttle=rate)
    assert any("broker 1 comes no nearer: " in line for line in lines) is grows
    if not grows:
        assert not outcome.failures
        return
    assert {failure.code for failure in outcome.failures} == {"stopped"}
    assert 1800 <= model.now < 1900 and len(model.targets) == 12
    failure = outcome.failures[0]
    assert "[reassignment.outpaced] broker 1 has come no nearer to what it copies for 1800" in (
        failure.error
    )
    assert remedy in failure.error and "still under way; run the task again" in failure.error


@pytest.mark.parametrize("batch", [1, 4])
def test_nothing_more_moves_to_a_disk_that_something_else_has_filled_since(batch):
    """As replicas do that come from other brokers; the other directories get theirs."""
    model = Model(seconds=10.0)
    model.size = 1000
    # A twentieth of it stays free.
    model.left = lambda path, now: 50500 if path == "/d2" and now > 5 else 99000
    outcome, _resource = run(model, batch=batch)
    full = [each for each in outcome.failures if each.code == "directory_full"]
    assert full and full == outcome.failures
    assert all("[reassignment.no_room] /d2" in e.error for e in full)
    assert 0 < counts(model, 1)[1] + counts(model, 2)[1] <= batch
    assert counts(model, 1)[2] == counts(model, 2)[2] == 3 and model.rates == {}
    assert len(full) + len(outcome.changed) == 12


def test_after_a_move_that_somebody_has_ended_nothing_more_begins():
    model = Model()
    model.stuck = {(1, ("t", 0))}
    outcome, _resource = run(model, batch=2, throttle="unlimited")
    ended, *rest = outcome.failures
    assert (ended.subject, ended.code) == ("broker 1: t-0", "changed")
    assert "it stays in /d1" in ended.error
    assert {each.code for each in rest} == {"stopped"} and model.targets == {}
    assert len(outcome.changed) == 1 and len(rest) == 10
    # The next run begins it again, and what was left.
    model.stuck = set()
    assert not run(model)[0].failures and counts(model, 1) == [3, 3, 3]


def test_what_is_seen_as_neither_at_its_very_end_holds_up_nothing():
    model = Model(seconds=2.0)
    model.blinks = True
    outcome, _resource = run(model, seconds=100.0, batch=2)
    assert not outcome.failures and counts(model, 1) == counts(model, 2) == [3, 3, 3]


@pytest.mark.parametrize("batch", [3, 20])
@pytest.mark.parametrize("path", ["/d1", "/d2", "/d3"])
def test_what_a_directory_that_fails_has_kept_from_arriving_is_told_and_its_broker_gets_no_more(
    path, batch
):
    model = Model(seconds=2.0)
    model.ends = {(2, ("t", 8)): 9.0}
    model.targets = {(2, ("t", 8)): "/d2"}
    model.dies = {(2, path): 5.0 if batch == 3 else 1.0}
    outcome, _resource = run(model, batch=batch, drain_directories=["/d1"], throttle="1MiB")
    missing = {
        f"broker 2: t-{n}" for (b, (_t, n)), at in model.where.items() if (b, at) == (2, "/d1")
    }
    assert missing and {each.code for each in outcome.failures} == {"directory_failed"}
    # Besides: what has arrived in the very moment, and nobody can tell.
    subjects = {each.subject for each in outcome.failures}
    assert subjects >= missing | {f"broker 2: {path}"}
    assert all(subject.startswith("broker 2: ") for subject in subjects)
    told = " ".join(each.error for each in outcome.failures)
    assert f"[reassignment.offline_directory] {path} " in told and "somebody" not in told
    # The disks of the other broker are sound.
    assert counts(model, 1)[0] == 0 and model.rates == {} and model.targets == {}
    assert missing.isdisjoint(each.subject for each in outcome.changed)


def test_a_directory_that_fails_when_all_has_left_it_is_not_called_empty():
    model = Model(seconds=2.0)
    model.dies = {(2, "/d1"): 2.0}
    outcome, _resource = run(model, drain_directories=["/d1"], throttle="1MiB")
    assert counts(model, 1)[0] == counts(model, 2)[0] == 0
    (failure,) = outcome.failures
    assert (failure.subject, failure.code) == ("broker 2: /d1", "directory_failed")
    assert len(outcome.changed) == 18


@pytest.mark.parametrize(
    "second, throttle", [(1.0, "1MiB"), (3.0, "1MiB"), (1.0, "unlimited"), (4.0, "unlimited")]
)
def test_who_is_cancelled_by_another_run_begins_nothing_more(second, throttle):
    model = Model(seconds=2.0)
    really, kept = model._request, []

    def request():
        if model.now >= second and not kept:
            kept.append({})
            assert not run(model, state="cancelled")[0].failures
            kept[0] = dict(model.where)
        really()

    model._request = request
    outcome, _resource = run(model, batch=2, throttle=throttle)
    assert model.where == kept[0] and model.targets == {} and model.rates == {}
    assert {each.code for each in outcome.failures} <= {"changed", "stopped"}
    told = " ".join(each.error for each in outcome.failures)
    assert "somebody else has ended" in told or "somebody else has taken the limit away" in told
    assert throttle == "unlimited" or model.unlimited == []


def test_whose_run_has_ended_begins_nothing_more_and_leaves_what_is_under_way():
    model = Model(seconds=2.0)
    outcome, _resource = run(model, batch=2, over=lambda: "it is over" if model.now > 3 else "")
    assert {each.code for each in outcome.failures} == {"stopped"}
    assert len(outcome.changed) == 2 and len(model.targets) == 2 and set(model.rates) == {1, 2}


@given(st.integers(0, 40), st.booleans())
def test_killed_anywhere_and_run_again(requests, drain):
    """The second run ends where one that was not killed would, and without a limit."""
    asked = {"drain_directories": ["/d1"]} if drain else {}
    model = Model()
    model.kill_after = requests
    try:
        run(model, batch=3, **asked)
    except Killed:
        pass
    model.kill_after = None
    outcome, _resource = run(model, batch=3, **asked)
    assert not outcome.plan.refusals and not outcome.failures
    assert model.rates == {} and model.targets == {}
    assert sorted(counts(model, 1)) == ([0, 4, 5] if drain else [3, 3, 3])
    assert not run(model, batch=3, **asked)[0].plan


@given(st.integers(0, 40))
def test_killed_anywhere_and_cancelled(requests):
    model = Model()
    model.kill_after = requests
    try:
        run(model, batch=3)
    except Killed:
        pass
    model.kill_after = None
    moving = {place[0] for place, end in model.ends.items() if end > model.now}
    outcome, _resource = run(model, state="cancelled")
    assert not outcome.failures
    # Kafka leaves something behind that only a restart cures.
    assert [f"-e broker={broker}" for broker in sorted(moving)] == [
        warning[warning.index("-e broker=") :] for warning in outcome.plan.warnings
    ]
    assert model.rates == {} and model.targets == {}
    assert not run(model, state="cancelled")[0].plan


@pytest.mark.parametrize(
    "options, joining, check, words",
    [
        ({"disks": [1, 7]}, {}, "reassignment.unknown_broker", "broker 7"),
        ({"disks": []}, {}, "reassignment.unknown_broker", "no broker is named"),
        ({"disks": [7], "state": "cancelled"}, {}, "reassignment.unknown_broker", "1, 2"),
        ({}, {("u", 3): Running((1, 2), (2,), ())}, "reassignment.running", "broker 2: "),
        ({"drain_directories": ["/d4"]}, {}, "reassignment.unknown_directory", "/d1, /d2, /d3"),
    ],
)
def test_refusals(options, joining, check, words):
    model = Model()
    model.joining = joining
    outcome, _resource = run(model, **options)
    assert [problem.check for problem in outcome.plan.refusals] == [check]
    assert words in outcome.plan.refusals[0].line()
    assert model.most == 0 and model.rates == {}


def test_replicas_that_are_copied_to_other_brokers_do_not_matter():
    model = Model()
    model.joining = {("u", 3): Running((1, 9), (9,), ())}
    assert not run(model)[0].plan.refusals


@pytest.mark.parametrize("tolerance", [-1, 101])
def test_a_tolerance_that_is_none(tolerance):
    with pytest.raises(AdminError, match="options.range.*tolerance"):
        run(Model(), tolerance=tolerance)


def test_a_limit_that_a_killed_run_has_left_goes_when_nothing_is_to_move():
    model = Model()
    model.where = {(1, ("t", 0)): "/d1"}
    model.rates = {1: "1024", 2: "1024"}
    outcome, _resource = run(model, disks=[1])
    assert [(each.kind, each.before) for each in outcome.changed] == [
        ("unthrottle", {DISK_RATE: "1024"})
    ]
    assert model.rates == {2: "1024"}


def test_what_a_broker_tells_of_its_directories():
    def entry(path, *parts, error=0, **more):
        topics = [
            {
                "name": "t",
                "partitions": [
                    {"partition_index": n, "partition_size": size, "is_future_key": future}
                    for n, size, future in parts
                ],
            }
        ]
        return {"log_dir": path, "error_code": error, "topics": topics, **more}

    found = disks_of(
        [
            {
                "broker": 1,
                "log_dirs": [
                    entry("/d2", (0, 3, True), (1, 7, False), total_bytes=100, usable_bytes=60),
                    entry("/d1", (0, 9, False), total_bytes=-1, usable_bytes=-1),
                    entry("/d3", error=56),
                ],
            }
        ]
    )
    assert found.directories[1] == (
        Directory("/d1", {("t", 0): 9}),
        Directory("/d2", {("t", 1): 7}, True, 100, 60),
        Directory("/d3", {}, False),
    )
    assert found.under_way == {(1, ("t", 0)): UnderWay("/d1", "/d2", 9, 3)}
    assert found.where((1, ("t", 0))) == "/d1" and found.where((2, ("t", 0))) is None

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the streaming proof makes of rows, and when it raises an alarm; without Spark."""

import argparse
import fcntl
import json
import os
import re
import subprocess
import sys
import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest
from flow.messages.failure import CannotRun
from flow.watch import alarm, service, tell, topic
from flow.watch.account import (
    POINTS,
    Account,
    Row,
    Standing,
    added,
    outcome,
    quantiles,
    state_of,
    watermark_of,
)
from flow.watch.canary import Canary, acknowledged_before

from tests.support.outside import wait_until

WATCH = Path(service.__file__).parents[2] / "watch.py"
NOW = 1_800_000_000.0
BOUNDS = alarm.Bounds(latency=25, silence=120, hold=3600)


def row(sequence, offset=None, read=None, producer=0, partition=2, attempt=1):
    """One that was acknowledged after 4 ms at `offset`, and appended after 2 ms at `read`."""
    sent = 10**15 + sequence * 500_000
    return Row(
        *(producer, attempt, partition, sequence, sent),
        offset=offset,
        acknowledged_us=None if offset is None else sent + 4000,
        read_offset=read,
        appended_us=None if read is None else sent + 2000,
    )


def counted(account):
    return {kind: count for kind, count in account.counts.items() if count}


@pytest.mark.parametrize(
    "rows, expected",
    [
        ([], {}),
        ([row(0, 10, 10)], {"arrived": 1}),
        ([row(0, 10, 10), row(1, 11, 11)], {"arrived": 2}),
        ([row(0, 10)], {"lost": 1}),
        # the broker had dropped one before it in its batch
        ([row(1, 11, 10)], {"arrived": 1}),
        ([row(0, None, 10)], {"unconfirmed": 1}),
        ([row(0, 10, 10), row(0, 10, 11)], {"arrived": 1, "duplicate": 1}),
        ([row(0, 10, 10), row(0, 10, 10, partition=1)], {"arrived": 2}),
        # each start of the canary has sequences of its own
        ([row(0, 10, 10), row(0, 12, 12, attempt=2)], {"arrived": 2}),
        # a sentinel moves the watermark, and is no record of the proof
        ([row(0, 10, 10, producer=1), row(1, 11, producer=1)], {}),
    ],
)
def test_each_row_of_the_join_is_counted_once(rows, expected):
    account = Account()
    account.take(1, 0, rows, NOW)
    assert counted(account) == expected


def test_a_duplicate_is_seen_across_batches_and_restarts():
    account = Account()
    account.take(1, 0, [row(n, n, n) for n in (0, 1, 3)], NOW)
    account = Account.from_json(json.loads(json.dumps(account.to_json())))
    account.take(1, 1, [row(1, 1, 4), row(2, 2, 2)], NOW)
    assert counted(account) == {"arrived": 4, "duplicate": 1}
    (witness,) = account.witnesses["duplicate"]
    assert (witness["partition"], witness["offset"], witness["sequence"]) == (2, 4, 1)
    assert account.seen == {"1:2": [[0, 3]]}


def test_a_batch_that_spark_repeats_counts_once():
    account = Account()
    assert account.take(1, 7, [row(0, 10)], NOW)
    assert account.take(1, 7, [row(0, 10)], NOW + 5) is None
    assert account.take(1, 6, [row(1, 11)], NOW + 5) is None
    # a new checkpoint begins with 0
    assert account.take(2, 0, [row(1, 11)], NOW + 5)
    assert account.counts["lost"] == 2 and account.last_lost == NOW + 5


def test_what_an_account_remembers_is_bounded():
    account = Account()
    for attempt in range(5):
        rows = [row(n, n, n, attempt=attempt) for n in range(0, 3000, 2)]
        account.take(1, attempt, rows, NOW)
        account.take(1, attempt, [], NOW)
    assert set(account.seen) == {"2:2", "3:2", "4:2"}
    assert max(map(len, account.seen.values())) == 1000
    for number in range(5000):
        account.note({"at": number})
    moments = [point["at"] for point in account.course]
    assert len(moments) <= POINTS and moments == sorted(moments)
    assert (moments[0], moments[-1]) == (0, 4999)


@pytest.mark.parametrize(
    "ranges, number, expected",
    [
        ([], 5, [[5, 5]]),
        ([[0, 9]], 5, None),
        ([[0, 9]], 9, None),
        ([[0, 4], [7, 9]], 7, None),
        ([[7, 9]], 6, [[6, 9]]),
        ([[0, 4]], 5, [[0, 5]]),
        ([[0, 4]], 6, [[0, 4], [6, 6]]),
        ([[0, 4], [6, 9]], 5, [[0, 9]]),
        ([[3, 4]], 0, [[0, 0], [3, 4]]),
    ],
)
def test_ranges_grow_together(ranges, number, expected):
    before = json.loads(json.dumps(ranges))
    assert added(ranges, number) == (expected is not None)
    assert ranges == (expected or before)


@pytest.mark.parametrize(
    "values, expected",
    [
        ([], None),
        ([3], (3, 3, 3)),
        ([4, 1, 3, 2], (2, 4, 4)),
        (range(1, 201), (100, 198, 200)),
    ],
)
def test_quantiles(values, expected):
    found = quantiles(list(values))
    assert (found and (found["p50_ms"], found["p99_ms"], found["max_ms"])) == expected


def facts(**more):
    return alarm.Facts(
        **{
            "now": NOW,
            "topic": "t",
            "acknowledged": {0: NOW - 1, 1: NOW - 119},
            "last_counted": NOW - 119,
            "p99_ms": 25_000.0,
            "within": 60,
            **more,
        }
    )


@pytest.mark.parametrize(
    "more, expected",
    [
        ({}, set()),
        ({"p99_ms": None}, set()),
        ({"p99_ms": 25_001.0}, {"latency"}),
        # given up is later than any p99
        ({"last_unknown": NOW - 119, "unknown": 3}, {"latency"}),
        ({"last_unknown": NOW - 121, "unknown": 3}, set()),
        ({"acknowledged": {0: NOW, 1: NOW - 121}}, {"silence"}),
        ({"last_counted": NOW - 121}, {"blindness"}),
        ({"last_decided": NOW - 121}, {"blindness"}),
        ({"last_decided": NOW - 119}, set()),
        ({"last_lost": NOW - 3599}, {"loss"}),
        ({"last_lost": NOW - 3601}, set()),
        ({"unwritten": {"/x/watch.prom": "no such directory"}}, {"unwritten"}),
    ],
)
def test_alarms(more, expected):
    assert set(alarm.alarms(facts(**more), BOUNDS)) == expected


class Query:
    """A query of Spark that dies 8 s after its start, as one does whose topic has a batch that nobody can read."""

    lastProgress = None

    def __init__(self, time):
        self._time, self._born = time, time.time()

    @property
    def isActive(self):
        return self._time.time() - self._born < 8

    def exception(self):
        return "org.apache.kafka.common.errors.CorruptRecordException: record is corrupt"


class Clock(threading.Event):
    """Time that passes while somebody waits for this event; it is set when there was enough of it."""

    def __init__(self, seconds):
        super().__init__()
        self._now, self._end = NOW, NOW + seconds

    def time(self):
        return self._now

    monotonic = time

    def wait(self, timeout=None):
        self._now += timeout
        if self._now >= self._end:
            self.set()
        return self.is_set()


def watching(tmp_path, clock):
    """A watch to whose canary all is well."""
    bounds = {"latency_bound": 30, "silence_bound": 120, "alarm_hold": 3600}
    places = {"state": str(tmp_path), "output": str(tmp_path), "metrics": ""}
    given = {**bounds, **places, "bootstrap_servers": "", "within": 60, "every": 5}
    options = argparse.Namespace(**given)
    plan = {"topic": "kafkaops-watch", "generation": 1, "cluster_id": "x", "since": NOW}
    watch = service.Watch(options, None, None, (None, None), plan, clock)
    watch._canary = SimpleNamespace(
        trouble=None,
        acknowledged=9,
        unknown=0,
        last_unknown=0.0,
        attempt=1,
        last_acknowledged={0: NOW + 300},
    )
    return watch


def watched(monkeypatch, tmp_path, clock, query):
    """A watch whose time is over, with queries of this kind, and the status that it has left."""
    monkeypatch.setattr(service, "time", clock)
    monkeypatch.setattr(service.join, "start", lambda *_: query(clock))
    watch = watching(tmp_path, clock)
    watch._start_query()
    watch._until(lambda: False)
    return watch, json.loads((tmp_path / "status.json").read_text())


def test_who_watches_with_a_query_that_dies_again_and_again_is_blind(monkeypatch, tmp_path):
    clock = Clock(300)
    watch, status = watched(monkeypatch, tmp_path, clock, Query)
    assert status["restarts"] > 10 and list(status["alarms"]) == [alarm.BLINDNESS]
    # a batch that is counted ends it
    watch._take(1, [row(0, 10, 10)])
    watch._tell()
    assert json.loads((tmp_path / "status.json").read_text())["alarms"] == {}


class Idle(Query):
    """A query that lives, and gets no batch done."""

    isActive = True


def test_a_status_is_young_while_the_process_lives(monkeypatch, tmp_path):
    """Where no batch comes to its end, as without a broker: who reads it sees the alarm, and that it is of now."""
    clock = Clock(1000)
    watch, status = watched(monkeypatch, tmp_path, clock, Idle)
    assert set(status["alarms"]) >= {alarm.BLINDNESS}
    assert clock.time() - status["updated"] < 100 < status["old_after_seconds"] == 300


def test_batches_that_decide_nothing_are_blind_while_something_is_to_be_decided(
    monkeypatch, tmp_path
):
    """As where rows of both sides come too late for Spark's watermark, for whatever reason."""
    clock = Clock(10_000)
    monkeypatch.setattr(service, "time", clock)
    watch = watching(tmp_path, clock)
    arrived = [row(number, 10 + number, 10 + number) for number in range(9)]
    watch._take(0, arrived)
    watch._canary.acknowledged = 9

    def batches(first, count):
        for number in range(first, first + count):
            clock._now += 5
            watch._canary.last_acknowledged = {0: clock._now}
            watch._take(number, [])
        return set(watch._now()[1])

    # all is decided
    assert batches(1, 60) == set()
    watch._canary.acknowledged = 12
    assert batches(61, 20) == set()
    assert batches(81, 20) == {alarm.BLINDNESS}
    watch._take(101, [row(number, 10 + number, 10 + number) for number in (9, 10)])
    assert batches(102, 1) == set()


def test_who_is_killed_again_and_again_is_blind_as_well(monkeypatch, tmp_path):
    """Each process lives for less than the two minutes after which it would say that it sees nothing."""
    monkeypatch.setattr(service.join, "start", lambda *_: Query(clock))
    clock = Clock(300)
    monkeypatch.setattr(service, "time", clock)
    watching(tmp_path, clock)._take(1, [row(0, 10, 10)])
    for seconds in (70, 70):
        clock._end = clock._now + seconds
        watch = watching(tmp_path, clock)
        watch._start_query()
        clock.clear()
        watch._until(lambda: False)
    status = json.loads((tmp_path / "status.json").read_text())
    assert list(status["alarms"]) == [alarm.BLINDNESS]
    # a watch that was ended in order has not been blind meanwhile
    watch._options.duration, watch._options.renew = 0, 3600
    monkeypatch.setattr(watch, "_begin", lambda: None)
    watch._canary.end = lambda: None
    watch._query.stop = lambda: None
    watch.run()
    clock._now += 1000
    assert watching(tmp_path, clock)._now()[1].get(alarm.BLINDNESS) is None


@pytest.mark.parametrize("gone", ["watch.prom", "status.json"])
def test_a_file_that_cannot_be_written_is_an_alarm_in_the_others(tmp_path, capsys, gone):
    """It does not freeze them at what they said before."""
    clock = Clock(300)
    watch = watching(tmp_path, clock)
    watch._options.metrics = str(tmp_path / "watch.prom")
    watch._tell()
    (tmp_path / gone).unlink()
    (tmp_path / gone).mkdir()  # whoever the user is, no file takes its place
    watch._account.last_lost = clock.time()
    watch._tell()
    watch._tell()  # the next look, which finds an alarm more
    said = capsys.readouterr().err
    assert f"WARNING unwritten: {tmp_path / gone} cannot be written" in said
    assert said.count("WARNING unwritten") == 1
    if gone == "watch.prom":
        status = json.loads((tmp_path / "status.json").read_text())
        assert set(status["alarms"]) == {"loss", "unwritten"}
        assert "FAIL" in (tmp_path / "status.html").read_text()
    else:
        text = (tmp_path / "watch.prom").read_text()
        assert re.search(r'alarm="loss".* 1\n', text)
        assert re.search(r'alarm="unwritten".* 1\n', text)
    assert not list(tmp_path.glob("*.part")), "no draft stays"
    (tmp_path / gone).rmdir()
    watch._tell()
    watch._tell()
    assert "INFO unwritten: is over" in capsys.readouterr().err
    assert list(json.loads((tmp_path / "status.json").read_text())["alarms"]) == ["loss"]


@pytest.mark.parametrize("folder, code", [("there", 0), ("missing", 3)])
def test_a_folder_for_metrics_that_is_not_there_is_refused_before(tmp_path, folder, code):
    (tmp_path / "there").mkdir()
    command = [sys.executable, WATCH, "--bootstrap-servers=b:1", f"--state={tmp_path}"]
    command += [f"--output={tmp_path}", f"--metrics={tmp_path / folder}/watch.prom", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code
    assert (f"--metrics: {tmp_path / folder} " in done.stderr) is bool(code)


@pytest.mark.parametrize(
    "within, bound, code",
    [("60s", "29s", 0), ("60s", "30s", 3), ("10s", "25s", 3), ("10s", "", 0)],
)
def test_a_bound_that_no_acknowledgement_can_reach_is_refused(tmp_path, within, bound, code):
    """A record is given up after half of --within: nothing was ever later than a bound above it."""
    command = [sys.executable, WATCH, "--bootstrap-servers=b:1", f"--state={tmp_path}", "--check"]
    command += [f"--output={tmp_path}", f"--within={within}", f"--latency-bound={bound}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code
    assert ("--latency-bound must be less than half of --within" in done.stderr) is bool(code)


def test_a_record_that_is_given_up_is_late(tmp_path):
    """By a real producer, whose broker is not there."""
    settings = {
        "client": {"bootstrap.servers": "127.0.0.1:1", "log_level": 0},
        "run_id": "00" * 16,
        "topic": "t",
        "partitions": 1,
        "record_size": 100,
        "delivery_timeout": 1,
        "transaction_records": 0,
    }
    began = time.time()
    canary = Canary(settings, 10, str(tmp_path / "ledger"), str(tmp_path / "position.json"))
    assert (canary.unknown, canary.last_unknown) == (0, 0.0)
    canary.start()
    wait_until(lambda: canary.unknown > 2, 20, "records are given up")
    canary.end()
    assert canary.last_unknown >= began + 1 and canary.acknowledged == 0
    late = {"last_unknown": NOW - 7, "unknown": 1200, "p99_ms": 26_000.0}
    assert alarm.alarms(facts(**late), BOUNDS)["latency"] == (
        "acknowledgements of t take 26 s (p99), more than 25 s; a record of t was not acknowledged within 30 s,"
        " the last one 7 s ago; 1,200 in all"
    )


def test_an_alarm_names_what_it_is_about():
    lost = [{"partition": 1, "offset": 7, "sequence": 5}]
    said = alarm.alarms(facts(last_lost=NOW, lost=lost, lost_in_all=1), BOUNDS)["loss"]
    assert said == (
        "1 acknowledged record of t did not arrive within 60 s; the latest: partition 1 offset 7 sequence 5"
    )
    said = alarm.alarms(facts(last_lost=NOW, lost=lost * 9, lost_in_all=1200), BOUNDS)["loss"]
    assert said.startswith("1,200 acknowledged records of t") and said.count("offset") == 3
    said = alarm.alarms(facts(acknowledged={4: NOW - 200, 5: NOW, 6: NOW - 300}), BOUNDS)
    assert said["silence"] == "partitions 4, 6 of t: no record was acknowledged for 300 s"


@pytest.mark.parametrize(
    "before, now, expected",
    [
        ({}, {}, []),
        ({}, {"loss": "a"}, [("critical", "loss", "a")]),
        ({"loss": "a"}, {"loss": "b"}, []),
        (
            {"loss": "a"},
            {"latency": "c"},
            [("warning", "latency", "c"), ("info", "loss", "is over")],
        ),
    ],
)
def test_only_changes_are_logged(before, now, expected):
    assert alarm.changes(before, now) == expected


def test_state_is_the_sum_of_sparks_operators():
    one = {"numRowsTotal": 5, "memoryUsedBytes": 100, "numRowsDroppedByWatermark": 1}
    assert state_of([one, {**one, "numRowsTotal": 2}]) == (7, 200, 2)
    assert state_of([]) == (0, 0, 0)


@pytest.mark.parametrize(
    "names, expected",
    [
        ([], 0),
        (["000000000000012.json", "000000000000009.json"], 12),
        ([".000000000000099.json.part", "000000000000012.json", "other"], 12),
    ],
)
def test_the_count_goes_on_by_the_names_of_the_ledgers_files(tmp_path, names, expected):
    for name in names:
        (tmp_path / name).touch()
    assert acknowledged_before(str(tmp_path)) == expected
    assert acknowledged_before(str(tmp_path / "none")) == 0


@pytest.mark.parametrize("name", ["orders", "kafkaops-watching", "kafkaops-flow-1", ""])
def test_topics_of_others_are_refused(name):
    with pytest.raises(CannotRun):
        topic.refuse_foreign(name)
    topic.refuse_foreign("kafkaops-watch")
    topic.refuse_foreign("kafkaops-watch-2")


class Answering:
    """A cluster whose topic's partitions end at 1000; `silent`: no broker tells where they end.

    `heard`: of so many partitions the broker knows that is asked, unless it `comes` to know those that it is asked for.
    """

    silent = False
    heard, comes = 99, True
    brokers = (1, 2, 3)
    refuses = ""

    def __init__(self):
        self.replicas = [(1, 2, 3), (2, 3, 1), (3, 1, 2)]

    def describe(self):
        return SimpleNamespace(cluster_id="x", brokers=dict.fromkeys(self.brokers))

    def has_topic(self, name):
        return True

    def topic_id(self, name):
        return "T"

    def layout(self, name):
        return {number: {"replicas": each} for number, each in enumerate(self.replicas)}

    def add_partitions(self, name, total, assignment):
        if self.refuses:
            raise CannotRun(self.refuses)
        self.replicas += map(tuple, assignment)
        assert len(self.replicas) == total

    def positions(self, name, wait=0, known=()):
        if self.silent:
            raise CannotRun("no broker answers")
        told = range(len(self.replicas))[: max(self.heard, len(known) if self.comes else 0)]
        return {number: SimpleNamespace(end=1000) for number in told}


class Emptied(Answering):
    """A cluster whose topic somebody has deleted."""

    def __init__(self):
        super().__init__()
        self.made = []

    def has_topic(self, name):
        return bool(self.made)

    def create_topic(self, name, layout, config):
        self.made.append(name)


def test_a_topic_that_was_deleted_is_not_made_again_behind_the_operators_back(tmp_path):
    cluster = Emptied()
    # nothing was there before
    assert topic.own(cluster, "kafkaops-watch", None, None, str(tmp_path)) == 3
    topic.plan(str(tmp_path), cluster, "kafkaops-watch", 3, 100)
    assert topic.own(cluster, "kafkaops-watch", None, None, str(tmp_path)) == 3
    emptied = Emptied()
    with pytest.raises(CannotRun, match="kafkaops-watch was deleted since"):
        topic.own(emptied, "kafkaops-watch", None, None, str(tmp_path))
    assert not emptied.made
    # of another topic the directory knows nothing; `plan` refuses it
    assert topic.own(Emptied(), "kafkaops-watch-2", None, None, str(tmp_path)) == 3


def a_generation(tmp_path, record_size=100, silent=False, decided=10_000):
    """A watch of which 10,420 records were acknowledged, as it starts again with a plan of its own."""
    cluster = Answering()
    if not (tmp_path / "plan.json").exists():
        plan = topic.plan(str(tmp_path), cluster, "kafkaops-watch", 3, 100)
        (tmp_path / f"generation-{plan['generation']:06d}" / "ledger").mkdir(parents=True)
        account = Account(plan["generation"], 120_000)
        account.counts["arrived"] = decided
        (tmp_path / "account.json").write_text(json.dumps(account.to_json()))
        (tmp_path / "position.json").write_text(json.dumps({"acknowledged": 10_420}))
    plan = topic.plan(str(tmp_path), cluster, "kafkaops-watch", 3, record_size)
    watch = watching(tmp_path, Clock(300))
    watch._plan, watch._cluster = plan, cluster
    cluster.silent = silent
    return watch


def generations(tmp_path):
    return sorted(each.name for each in tmp_path.glob("generation-*"))


def test_a_generation_stays_until_the_next_one_is_known(tmp_path):
    """Else the same one would begin with a new checkpoint, whose first batches count as repeated."""
    watch = a_generation(tmp_path, silent=True)
    with pytest.raises(CannotRun):
        watch._renew()
    assert generations(tmp_path) == ["generation-000001"]
    assert json.loads((tmp_path / "plan.json").read_text())["generation"] == 1
    watch._cluster.silent = False
    watch._renew()
    assert generations(tmp_path) == []
    assert json.loads((tmp_path / "plan.json").read_text())["generation"] == 2
    assert watch._account.take(2, 0, [row(0, 10)], NOW).counts["lost"] == 1


def test_what_a_killed_renewal_has_left_goes_at_the_next_start(tmp_path):
    watch = a_generation(tmp_path)
    topic.renewed(str(tmp_path), watch._cluster, watch._plan)  # and killed
    watch = a_generation(tmp_path)
    watch._begin_anew_if_need_be()
    assert watch._plan["generation"] == 2 and generations(tmp_path) == []


@pytest.mark.parametrize("record_size, generation", [(100, 1), (200, 2)])
def test_another_size_of_records_gives_up_what_was_undecided_and_says_so(
    tmp_path, capsys, record_size, generation
):
    a_generation(tmp_path)
    watch = a_generation(tmp_path, record_size)
    watch._begin_anew_if_need_be()
    told = json.loads((tmp_path / "plan.json").read_text())
    assert (told["generation"], told["record_size"]) == (generation, record_size)
    assert watch._plan == told
    said = "WARNING undecided: what became of 420 acknowledged records is not known"
    assert (said in capsys.readouterr().err) is (generation == 2)
    assert watch._account.given_up == 420 * (generation == 2)
    assert generations(tmp_path) == (["generation-000001"] if generation == 1 else [])
    # it is not for good
    again = a_generation(tmp_path, record_size)
    again._begin_anew_if_need_be()
    assert again._plan["generation"] == generation


@pytest.mark.parametrize(
    "brokers, replicas, expected",
    [
        ((1, 2, 3), [(1, 2), (2, 3), (3, 1)], []),
        ((1, 2, 3, 4), [(1, 2), (2, 3), (3, 1)], [[4, 1]]),
        ((5, 1, 4), [(1, 4, 5)], [[4, 5, 1], [5, 1, 4]]),
        # one that is down is not among the brokers, and what it leads stays
        ((1, 2), [(1, 2, 3), (2, 3, 1), (3, 1, 2)], []),
        # a cluster that had one broker keeps one replica
        ((1, 2), [(1,)], [[2]]),
        ((1, 2), [], []),
    ],
)
def test_the_partitions_that_a_topic_lacks_are_led_by_brokers_that_lead_none(
    brokers, replicas, expected
):
    assert topic.lacking(brokers, replicas) == expected


def test_each_start_watches_the_brokers_that_came_later(tmp_path):
    cluster = Answering()
    own = (cluster, "kafkaops-watch", None, None, str(tmp_path))
    assert topic.own(*own) == 3
    topic.plan(str(tmp_path), cluster, "kafkaops-watch", 3, 100)
    cluster.brokers = (1, 2, 3, 4)
    assert topic.own(*own) == 4
    assert cluster.replicas[3] == (4, 1, 2)
    assert topic.plan(str(tmp_path), cluster, "kafkaops-watch", 4, 100)["renew"]
    assert topic.own(*own) == 4


def test_a_broker_that_cannot_be_watched_is_named_and_the_others_are_watched(tmp_path, capsys):
    cluster = Answering()
    cluster.brokers, cluster.refuses = (1, 2, 3, 4), "allow this user Alter on it"
    assert topic.own(cluster, "kafkaops-watch", None, None, str(tmp_path)) == 3
    said = capsys.readouterr().err
    assert "lead no partition of kafkaops-watch, so that they are not watched: 4: allow" in said


def test_the_next_generation_watches_the_brokers_that_came_later_too(tmp_path):
    cluster = Answering()
    told = topic.plan(str(tmp_path), cluster, "kafkaops-watch", 3, 100)
    assert topic.grown(cluster, told) == told
    cluster.brokers = (1, 2, 3, 4)
    grown = topic.renewed(str(tmp_path), cluster, topic.grown(cluster, told))
    assert (grown["partitions"], len(grown["first_offsets"])) == (4, 4)
    cluster.brokers, cluster.silent = (1, 2, 3, 4, 5), True
    assert topic.grown(cluster, grown) == grown


@pytest.mark.parametrize("comes", [True, False])
def test_no_generation_begins_without_a_partition_that_is_written_to(tmp_path, comes):
    """The broker that is asked may not have heard of a new one yet; what is written there would count as lost."""
    cluster = Answering()
    told = topic.plan(str(tmp_path), cluster, "kafkaops-watch", 3, 100)
    cluster.brokers = (1, 2, 3, 4)
    told = topic.grown(cluster, told)
    cluster.heard, cluster.comes = 3, comes
    if comes:
        found = topic.renewed(str(tmp_path), cluster, told)
        assert sorted(found["first_offsets"]) == ["0", "1", "2", "3"] and found["generation"] == 2
        return
    with pytest.raises(CannotRun, match=r"no broker told of partitions \[3\] of kafkaops-watch"):
        topic.renewed(str(tmp_path), cluster, told)
    assert json.loads((tmp_path / "plan.json").read_text())["generation"] == 1


BEFORE = Standing(acknowledged=1000, lost=2, given_up=7)


@pytest.mark.parametrize(
    "now, verdict, why",
    [
        (Standing(1400, 2, 7), "pass", ""),
        (Standing(1400, 2, 7, pending=-1), "pass", ""),
        (Standing(1400, 3, 7), "fail", "lost: 1"),
        (Standing(1400, 3, 7, pending=9), "fail", "lost: 1"),
        (Standing(1400, 2, 7, 420), "inconclusive", "420 acknowledged records is not known"),
        (Standing(1400, 2, 10, 4), "inconclusive", "what became of 7 acknowledged"),
        (Standing(1000, 2, 7), "inconclusive", "no record was acknowledged"),
    ],
)
def test_the_outcome_of_a_watch_is_what_it_has_added(now, verdict, why):
    found, said = outcome(BEFORE, now)
    assert found == verdict and why in said


class Stream(Idle):
    """A query whose watermark is where the newest record was, and a minute behind; it never goes back."""

    def __init__(self, clock):
        super().__init__(clock)
        self._newest = 0.0

    def sent(self, at):
        self._newest = max(self._newest, at)

    def stop(self):
        pass

    @property
    def lastProgress(self):
        at = datetime.fromtimestamp(max(0.0, self._newest - 60), timezone.utc)
        watermark = at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        return {
            "batchId": int(self._time.monotonic() - NOW) // 20,
            "eventTime": {"watermark": watermark},
            "stateOperators": [],
            "durationMs": {},
        }


@pytest.mark.parametrize(
    "decided, lost, earlier, code, said",
    [
        (400, 0, 0, 0, ""),
        (400, 0, 3, 0, ""),
        (399, 1, 3, 1, ""),
        (0, 0, 0, 2, "WARNING undecided: what became of 400 acknowledged records is not known"),
    ],
)
def test_a_watch_with_an_end_tells_by_its_exit_code_what_it_has_seen_itself(
    monkeypatch, tmp_path, capsys, decided, lost, earlier, code, said
):
    """Neither a loss of last week, nor that nothing is lost of what nobody knows."""

    class Deciding(Stream):
        """Its one batch has so many of the records that were acknowledged meanwhile."""

        def __init__(self, clock):
            super().__init__(clock)
            rows = [row(number, 10 + number, 10 + number) for number in range(decided)]
            watch._take(1, rows + [row(9000 + number, 10) for number in range(lost)])

    class Writing:
        trouble, unknown, attempt, acknowledged = None, 0, 1, 10_000 + earlier + 400
        last_unknown = 0.0

        def __init__(self, *_):
            self.last_acknowledged = {0: NOW}

        def start(self):
            pass

        end = start

        def send_sentinel(self, ahead):
            pass

    clock = Clock(10**6)
    monkeypatch.setattr(service, "time", clock)
    monkeypatch.setattr(service, "Canary", Writing)
    monkeypatch.setattr(service.join, "start", lambda *_: Deciding(clock))
    a_generation(tmp_path)
    account = Account(1, 0)
    account.counts.update(arrived=10_000, lost=earlier)
    (tmp_path / "account.json").write_text(json.dumps(account.to_json()))
    told = {"acknowledged": 10_000 + earlier}
    (tmp_path / "position.json").write_text(json.dumps(told))
    watch = a_generation(tmp_path)
    watch._stop = clock
    for name, value in {"rate": 2, "duration": 30, "renew": 10**6}.items():
        setattr(watch._options, name, value)
    assert watch.run() == code
    assert said in capsys.readouterr().err


class ClockSetBack(Clock):
    """After so many seconds it is so many earlier; what is monotonic goes on."""

    def __init__(self, seconds, after, back):
        super().__init__(seconds)
        self._after, self._back = NOW + after, back

    def time(self):
        return self._now - self._back * (self._now >= self._after)

    def monotonic(self):
        return self._now


@pytest.mark.parametrize("back, generation", [(0, 1), (50, 1), (600, 2), (10**8, 2)])
def test_after_its_clock_was_set_back_it_judges_again_by_itself(
    monkeypatch, tmp_path, capsys, back, generation
):
    """Behind the watermark all is too late, for as long as the clock was set back by: it begins anew."""
    clock, streams = ClockSetBack(400, 200, back), []
    monkeypatch.setattr(service, "time", clock)
    monkeypatch.setattr(
        service.join, "start", lambda *_: streams.append(Stream(clock)) or streams[-1]
    )

    class Writing:
        """Sends at each look; one of them waits for its fate."""

        trouble, unknown, attempt, acknowledged = None, 0, 1, 10_420
        last_unknown = 0.0

        def __init__(self, *_):
            self.sentinels = []
            self.begun = clock.monotonic()

        def start(self):
            pass

        end = start

        @property
        def last_acknowledged(self):
            streams[-1].sent(clock.time())
            return {0: clock.time()}

        def send_sentinel(self, ahead):
            streams[-1].sent(clock.time() + ahead)

    monkeypatch.setattr(service, "Canary", Writing)
    watch = a_generation(tmp_path)
    watch._stop = clock
    for name, value in {"rate": 2, "duration": 0, "renew": 10**6}.items():
        setattr(watch._options, name, value)
    watch.run()
    assert (watch._plan["generation"], len(streams)) == (generation, generation)
    assert watch._account.given_up == 420 * (generation == 2)
    said = capsys.readouterr().err
    anew = f"WARNING clock: it was set back by about {back:,} s; begin anew" in said
    undecided = "WARNING undecided: what became of 420 acknowledged records is not known" in said
    assert anew is undecided is (generation == 2), said
    assert watch._clock_is_behind() is False
    told = json.loads((tmp_path / "status.json").read_text())
    assert (told["ended"]["why"], told["generation"]) == ("", generation)


def test_moments_of_a_clock_that_was_set_back_hide_no_blindness(monkeypatch, tmp_path):
    """They are in the future, so that for as long nothing would seem to be late."""
    clock = ClockSetBack(10_000, 100, 3600)
    monkeypatch.setattr(service, "time", clock)
    watch = watching(tmp_path, clock)
    clock._now += 99
    watch._take(1, [row(0, 10, 10)])
    clock._now += 2
    assert alarm.BLINDNESS not in watch._now()[1]
    clock._now += 121
    watch._canary.last_acknowledged = {0: clock.time()}
    assert set(watch._now()[1]) == {alarm.BLINDNESS}


@pytest.mark.parametrize(
    "told, seconds",
    [
        ({}, 0.0),
        ({"watermark": "1970-01-01T00:00:00.000Z"}, 0.0),
        ({"watermark": "2027-01-15T08:00:00.250Z", "max": "2027-01-15T08:01:00.250Z"}, NOW + 0.25),
    ],
)
def test_the_watermark_is_that_of_sparks_progress(told, seconds):
    assert watermark_of(told) == seconds


def status(**more):
    quick = {"p50_ms": 2.0, "p99_ms": 4.0, "max_ms": 5.0}
    counts = {"acknowledged": 5, "pending": 1, "arrived": 4, "lost": 0}
    return {
        "cluster_id": "c",
        "topic": "<t>",
        "since": NOW - 60,
        "updated": NOW,
        "within_seconds": 60,
        "old_after_seconds": 300,
        "alarms": {},
        "counts": counts,
        "attempt": 1,
        "restarts": 0,
        "latency": {"acknowledgement": quick, "append": None},
        "state": {"rows": 12, "bytes": 2**20},
        "batch": {"number": 3, "duration_ms": 700},
        "witnesses": {"lost": [], "duplicate": []},
        "course": [
            {"at": NOW + n, "p99_ms": n or None, "state_rows": 9, "batch_ms": 5, "lost": 0}
            for n in range(3)
        ],
        **more,
    }


def test_metrics():
    text = tell.prometheus(status(alarms={"loss": "said"}))
    assert text.endswith("\n") and "append_latency" not in text
    common = 'cluster_id="c",topic="<t>"'
    assert f'kafkaops_watch_alarm{{{common},alarm="loss",severity="critical"}} 1\n' in text
    assert f'kafkaops_watch_alarm{{{common},alarm="latency",severity="warning"}} 0\n' in text
    assert f'kafkaops_watch_records_total{{{common},outcome="arrived"}} 4\n' in text
    assert f'acknowledgement_latency_seconds{{{common},quantile="0.99"}} 0.004\n' in text
    assert f"kafkaops_watch_pending_records{{{common}}} 1\n" in text and 'e="pending"' not in text
    assert f"kafkaops_watch_state_rows{{{common}}} 12\n" in text
    assert "# TYPE kafkaops_watch_records_total counter\n" in text
    assert "# TYPE kafkaops_watch_state_rows gauge\n" in text


@pytest.mark.parametrize(
    "more, said",
    [
        (
            {},
            "PASS</strong><span>4 of 5 acknowledged records have arrived, 1 still waited for, none lost",
        ),
        ({"alarms": {"loss": "1 <b> lost"}}, "FAIL</strong><span>1 &lt;b&gt; lost"),
        ({"counts": {**status()["counts"], "lost": 2}}, "no alarm now; 2 records were lost before"),
        ({"course": []}, "Streaming proof"),
    ],
)
def test_the_page_says_it(more, said):
    page = tell.page(status(**more))
    assert said in page and "<t>" not in page
    assert not re.search(r"(?:src|href)=|url\(", page.replace("url(#hatch)", ""))
    assert ("State over time" in page) == bool(status(**more)["course"])


def test_a_process_that_has_ended_says_so_in_all_that_it_has_written():
    why = "topic <t> was deleted"
    over = tell.ended(status(alarms={"loss": "1 lost"}), NOW + 9, why)
    assert over["ended"] == {"at": NOW + 9, "why": why} and over["updated"] == NOW
    assert set(over["alarms"]) == {alarm.LOSS, alarm.BLINDNESS}
    assert over["alarms"][alarm.BLINDNESS].endswith(
        f"does not run, so that a loss would not be seen: {why}"
    )
    assert "FAIL</strong>" in tell.page(over) and "does not run" in tell.page(over)
    labels = 'kafkaops_watch_running{cluster_id="c",topic="<t>"}'
    assert f"{labels} 0\n" in tell.prometheus(over)
    assert f"{labels} 1\n" in tell.prometheus(status())
    ordered = tell.ended(status(), NOW + 9, "")
    assert ordered["alarms"] == {}
    assert "ended in order 2027-01-15 08:00:09 UTC, so nothing is watched" in tell.page(ordered)
    # what runs says how one sees that it does not any more; a status of an earlier release has no such field
    assert "where it is older than 5 minutes, nothing is watched" in tell.page(status())
    assert "older than" not in tell.page(ordered) + tell.page(over)


def started(tmp_path, **environment):
    """The program, started where nobody answers; its exit code, and what it says."""
    command = [sys.executable, WATCH, "--bootstrap-servers=127.0.0.1:1", "--timeout=1"]
    command += [f"--state={tmp_path / 'state'}", f"--output={tmp_path}"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stderr


def test_a_process_that_cannot_start_says_so_where_it_was_watched_before(tmp_path):
    """Each start of it fails, as without Java: nobody reads the status of before as if it were today's."""
    gone = {"JAVA_HOME": str(tmp_path / "none"), "PATH": str(tmp_path)}
    code, said = started(tmp_path, **gone)
    assert code == 3 and "Java" in said, said
    assert not (tmp_path / "status.json").exists(), "nothing was told before"
    before = status(updated=NOW)
    (tmp_path / "status.json").write_text(json.dumps(before))
    with (tmp_path / "state" / "lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another process watches" in started(tmp_path, **gone)[1]
        assert json.loads((tmp_path / "status.json").read_text()) == before, "that one runs"
    started(tmp_path, **gone)
    told = json.loads((tmp_path / "status.json").read_text())
    assert "Java" in told["ended"]["why"] and told["ended"]["why"] in told["alarms"]["blindness"]
    assert told["updated"] == NOW
    assert "FAIL" in (tmp_path / "status.html").read_text()
    metrics = (tmp_path / "watch.prom").read_text()
    assert re.search(r"^kafkaops_watch_running\{.*\} 0$", metrics, re.MULTILINE)
    assert re.search(r'alarm="blindness".* 1$', metrics, re.MULTILINE)


def test_the_page_lists_what_was_lost_the_latest_first():
    lost = [
        {"seen": NOW + n, "partition": 1, "offset": 70 + n, "attempt": 1, "sequence": n}
        for n in (1, 2)
    ]
    page = tell.page(status(witnesses={"lost": lost, "duplicate": []}))
    assert page.index(">72<") < page.index(">71<") and "Duplicates" not in page

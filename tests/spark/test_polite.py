# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that is polite: at a rate, for a while; and what it tells of the cluster meanwhile."""

import json
import math
import time
from types import SimpleNamespace

import job
import pytest
from flow.prepare import leadership, surroundings
from flow.prepare.cluster import Cluster
from flow.prepare.leadership import Change, Watch
from flow.present import settings
from flow.record import files, timing
from flow.record.ledger import Attempt
from flow.record.partition import Partition
from flow.write import pacing, produce
from flow.write.ending import ending
from flow.write.notes import end_of, notes_of
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.disturbing import make_whole, run_and_disturb

RUN = ["run", "--bootstrap-servers=a:1", "--ledger=l", "--output=o"]


@pytest.mark.parametrize(
    "options, rate, records, duration",
    [
        ([], 0, 100_000, 0),
        (["--rate=50"], 50, 100_000, 0),
        (["--duration=10m"], pacing.POLITE_RATE, 600 * pacing.POLITE_RATE, 600),
        (["--duration=90s", "--rate=20", "--records=7"], 20, 1800, 90),
        (["--duration=2h"], 1000, 7_200_000, 7200),
    ],
)
def test_a_duration_decides_how_many_records_are_written(options, rate, records, duration):
    chosen = job.arguments([*RUN, *options])
    assert (chosen.rate, chosen.records, chosen.duration) == (rate, records, duration)


@pytest.mark.parametrize(
    "options, words",
    [
        (["--duration=600"], "'600' is not a clear duration; write 90s, 10m, 2h or 1d"),
        (["--duration=forever"], "write 90s, 10m"),
        (["--duration=0m"], "not a clear duration"),
        (["--duration=31d"], "--duration must be 30d at the most"),
        (["--duration=5m", "--transactional"], "leave one of them out"),
        (["--broker-version=one=3.9.2"], "must be ID=RELEASE"),
        (["--producer-property=sasl.password=geheim"], "into the file of --command-config"),
        (["--producer-property=ssl.key.pem=geheim"], "seen by every user of this machine"),
    ],
)
def test_durations_versions_and_settings_that_cannot_be_meant(options, words, capsys):
    with pytest.raises(SystemExit) as ended:
        job.arguments([*RUN, *options])
    told = capsys.readouterr().err
    assert ended.value.code == 3 and words in told and "geheim" not in told


def test_what_writes_nothing_has_no_duration(capsys):
    with pytest.raises(SystemExit):
        job.arguments(["verify", *RUN[1:], "--duration=5m"])
    assert "verify writes nothing" in capsys.readouterr().err


@given(
    rate=st.floats(1, 10**5),
    turns=st.lists(st.tuples(st.integers(1, 500), st.floats(0, 3)), min_size=1, max_size=20),
)
def test_no_stretch_of_time_is_written_faster_than_twice_the_rate(rate, turns):
    """Nor is the whole faster than the rate, whatever holds up single turns."""
    pace, now, sent, moments = pacing.Pace(rate, 0.0), 0.0, 0, []
    for records, held_up in turns:
        now += held_up
        moments.append((now, sent))
        sent += records
        pace.sent(records, now)
        now += max(0.0, pace.left(now))
        assert sent <= rate * now * (1 + 1e-9) + 1e-6
    moments.append((now, sent))
    for number, (since, before) in enumerate(moments):
        for then, after in moments[number + 1 :]:
            assert after - before <= pacing.CATCH_UP * rate * (then - since) * (1 + 1e-6) + 1e-6


def test_what_was_held_up_is_made_up_for():
    pace, now, sent = pacing.Pace(1000, 0.0), 5.0, 0  # nothing went for five seconds
    while now < 12:
        pace.sent(100, now)
        sent += 100
        now += max(0.0, pace.left(now))
    assert sent == pytest.approx(12_000, abs=200)


def test_of_few_records_each_one_is_timed_and_of_a_flood_one_in_many():
    assert produce.latency_every({"records": 10**8, "rate": 1000}) == 1
    assert produce.latency_every({"records": 20_000, "rate": 0}) == 1
    assert produce.latency_every({"records": 10**8, "rate": 0}) == produce.LATENCY_EVERY


@given(st.lists(st.lists(st.floats(0, 100), max_size=50), min_size=1, max_size=4))
def test_latencies_of_several_producers_are_one_distribution_within_a_class(of_producers):
    total = timing.Latencies()
    for seconds in of_producers:
        mine = timing.Latencies(4)
        for each in [*seconds, None, -1.0]:
            mine.add(each)
        kept = json.loads(json.dumps(mine.to_json()))
        assert bool(kept) is bool(seconds)
        if kept:
            total.merge(timing.Latencies(**kept))
    every = sorted(each * 1000 for seconds in of_producers for each in seconds)
    told = total.told()
    assert (told is None) == (not every)
    if told:
        assert told["records"] == len(every) and told["sampled_every"] == 4
        for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99), ("p99_9_ms", 0.999)):
            exact = every[math.ceil(share * len(every)) - 1]
            assert exact - 0.002 <= told[name] <= max(1.0, exact * 2**0.25) + 0.002
        assert told["max_ms"] == pytest.approx(every[-1], abs=0.002)


def test_latencies_of_a_long_run_need_no_more_room():
    told = timing.Latencies()
    for number in range(200_000):
        told.add(number / 1000)
    assert len(told.classes) < 80


def place(number, leader, isr):
    return Partition(number, leader, (1, 2, 3), isr, 0, 0)


BEFORE = {n: place(n, 1, (1, 2, 3)) for n in range(3)}


def test_changes_that_are_alike_are_one():
    was = leadership.standing(BEFORE)
    now = {0: (2, (2, 3)), 1: (2, (3, 2)), 2: (None, (1, 2, 3)), 9: (1, (1,))}
    assert leadership.changes(5, was, now) == [
        Change(5, "leader", (0, 1), (1,), (2,)),
        Change(5, "in_sync", (0, 1), (1, 2, 3), (2, 3)),
        Change(5, "leader", (2,), (1,), ()),
    ]


def test_a_look_asks_for_the_topic_of_the_run_alone(monkeypatch):
    """A cluster may have ten thousand others, and a look comes every second."""
    asked = Cluster({"bootstrap.servers": "127.0.0.1:1"}, 1)
    partition = SimpleNamespace(leader=2, replicas=[1, 2, 3], isrs=[2, 3], error=None)
    known = SimpleNamespace(partitions={0: partition}, error=None)
    names = []

    def list_topics(topic=None, timeout=None):
        assert timeout
        names.append(topic)
        return SimpleNamespace(topics={topic: known})

    offsets = {0: (0, 5)}
    monkeypatch.setattr(asked, "_admin", SimpleNamespace(list_topics=list_topics))
    monkeypatch.setattr(asked, "_offsets", lambda *_more: offsets)
    watch = Watch(asked, "t", {0: place(0, 1, (1, 2, 3))})
    watch.look()
    assert set(names) == {"t"}
    assert [each.what for each in watch.seen] == ["leader", "in_sync"]
    assert watch.places[0].leader == 2


def test_the_watch_keeps_unclean_elections_and_a_bounded_number_of_changes():
    watch = Watch(None, "t", BEFORE)
    whole = leadership.standing(BEFORE)
    watch.note({**whole, 1: (None, (1,))})
    watch.note({**whole, 1: (3, (3,))})  # out of sync, while nobody led: those before had all
    watch.note({1: (2, (2, 3))})  # it was not among those in sync
    assert [(each.partition, each.leader) for each in watch.elections] == [(1, 2)]
    for turn in range(500):
        watch.note({0: (1 + turn % 2, (1, 2, 3))})
    told = watch.told()
    assert len(told["changes"]) == leadership.MOST_CHANGES
    assert told["left_out"] > 250
    watch.note({})  # nobody answered
    assert watch.told() == told


@pytest.mark.parametrize(
    "asked, mode",
    [
        ({1: {"process.roles": "", "zookeeper.connect": "z:2181"}}, "zookeeper"),
        ({1: {"process.roles": "broker", "zookeeper.connect": None}}, "kraft"),
        ({1: {"zookeeper.connect": "z:1"}, 2: {"process.roles": "broker"}}, None),
        ({}, None),
    ],
)
def test_the_mode_is_what_all_brokers_say(asked, mode):
    told = surroundings.told(
        {1: "a:1", 2: "b:1"}, asked, {"cleanup.policy": "delete"}, {2: "3.9.2"}
    )
    assert told["mode"] == mode
    assert [each["version"] for each in told["brokers"]] == [None, "3.9.2"]


def test_settings_hold_no_secret():
    options = vars(job.arguments([*RUN, "--duration=1m", "--producer-property=linger.ms=7"]))
    options["producer_property"].append("sasl.password=geheim")
    told = settings.told(options, {"sasl.password": "geheim", "sasl.mechanism": "PLAIN"}, "h")
    assert "geheim" not in str(told)
    assert told["producer_properties"] == {"linger.ms": "7"}
    assert (told["rate"], told["duration_seconds"]) == (1000, 60)


def test_a_run_for_a_while_tells_latencies_and_who_led(spark, cluster, tmp_path):
    """A broker dies meanwhile: the page and the verdict show when leaders moved."""
    begun = []

    def disturb():
        begun.append(time.monotonic())
        time.sleep(2)
        cluster.broker_instances[3].kill()
        make_whole(cluster)

    more = ["--duration=15s", "--rate=600", "--groups=0", "--broker-version=1=3.9.2"]
    code, verdict = run_and_disturb(cluster, tmp_path, disturb, more=more)
    assert (code, verdict["verdict"]) == (0, "pass"), verdict["summary"]
    assert 0.7 * 15 * 600 < verdict["counts"]["acked"] <= 15 * 600
    assert verdict["timings"]["produce"] > 12
    took = verdict["timing"]["acknowledgement_latency"]
    assert took["records"] == verdict["counts"]["acked"] and took["sampled_every"] == 1
    assert 0 < took["p50_ms"] < took["p99_9_ms"] <= took["max_ms"]
    seen = {(each["what"], tuple(each["after"])) for each in verdict["leadership"]["changes"]}
    assert ("in_sync", (1, 2)) in seen
    assert any(what == "leader" and 3 not in after for what, after in seen)
    assert verdict["cluster"]["mode"] == "zookeeper"
    first, second, _third = verdict["cluster"]["brokers"]
    assert (first["version"], second["version"]) == ("3.9.2", None)
    assert first["protocol"].startswith("3.9")
    page = (tmp_path / "report.html").read_text()
    assert "Leaders and replicas in sync" in page and "class='change'" in page
    assert "acknowledged after, p99.9" in page
    metrics = (tmp_path / "verdict.prom").read_text()
    assert "kafkaops_flow_acknowledgement_latency_seconds{" in metrics
    assert (tmp_path / "verdict.junit.xml").read_text().startswith("<?xml")


def hurries(**settings):
    """Whether a produce task waits for nothing, of a run that nobody has told to end."""
    waited = []
    task = produce._Task.__new__(produce._Task)
    task._pace = SimpleNamespace(sent=lambda *_more: None, left=lambda _now: 0.01 * (not waited))
    task._settings, task._end, task._listen = settings, settings.pop("end", None), waited.append
    task._keep_the_rate([(0, range(9))])
    return not waited


@pytest.mark.parametrize(
    ("repeated", "end", "hurrying"),
    [(False, None, False), (False, 50, False), (True, None, False), (True, 50, True)],
)
def test_a_repeated_attempt_hurries_when_all_others_end(repeated, end, hurrying):
    """It has begun with the first record again, hours behind them."""
    assert hurries(repeated=repeated, end=end) is hurrying


def test_a_repeated_attempt_hurries_when_the_time_is_over(tmp_path):
    """The others are at the end of the plan then, so that nobody is told to end."""
    files.new_ledger(str(tmp_path))
    options = SimpleNamespace(ledger=str(tmp_path), until="", duration=0.1, beside=0, rate=100.0)
    plan = SimpleNamespace(records=1000, partitions=10)
    directory = str(tmp_path / files.ATTEMPTS)
    fastest = Attempt(0, 1, False, {0: 100}, run_id="aa" * 8, position=99)
    notes_of({"directory": directory}).save(fastest)
    with ending(options, plan) as early:
        ends_at = early.ends_at()
        assert not hurries(repeated=True, ends_at=ends_at + 60)
        time.sleep(max(0.0, ends_at - time.time()) + 0.5)
    assert end_of(str(tmp_path)) is None and early.records() == 1000
    assert hurries(repeated=True, ends_at=ends_at)
    assert not hurries(repeated=False, ends_at=ends_at)
    options.duration = 0
    assert ending(options, plan).ends_at() == float("inf")

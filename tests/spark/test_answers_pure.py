# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the judge makes of brokers' answers, without Kafka and Spark: of files that differ, of brokers that have just
started and know nothing yet, of a log that was cut, and of replicas that fall behind.
"""

import dataclasses
from types import SimpleNamespace

import pytest
from flow import inspection
from flow.judge import judge, verdict
from flow.messages.failure import CannotRun
from flow.prepare import applied, cluster
from flow.record import transactions
from flow.record.ledger import Row
from flow.record.partition import Partition
from flow.record.schema import ACKED
from flow.steps.stopwatch import Stopwatch

from tests.spark.test_edges_pure import KEPT, all_apply, judging, partitions, plan_of

MIN_ISR, STAMPED = "min.insync.replicas", "message.timestamp.type"


def place(number, leader=1, isr=(1, 2, 3), start=0, end=10, epoch=1):
    return Partition(number, leader, (1, 2, 3), isr, start, end, epoch)


def planned_with(of_each, **more):
    """A plan whose brokers applied these settings."""
    told = [{"broker": number, "topic_settings": each} for number, each in of_each.items()]
    return plan_of(cluster={"brokers": told}, **more)


# -- brokers whose own files differ


UNEVEN = {1: {MIN_ISR: "2"}, 2: {MIN_ISR: "2"}, 3: {MIN_ISR: "1", STAMPED: "x"}}


def test_what_brokers_agree_on():
    config = {MIN_ISR: "2", STAMPED: "y", "retention.ms": "7"}
    assert applied.agreed(config, {}) == config
    assert applied.agreed(config, UNEVEN) == {**config, MIN_ISR: "1", STAMPED: "x"}
    assert applied.agreed({}, UNEVEN) == {MIN_ISR: "1"}
    assert applied.numbers(UNEVEN, MIN_ISR) == {1: 2, 2: 2, 3: 1}
    assert applied.differing(UNEVEN, MIN_ISR) == "2 at brokers 1, 2, 1 at broker 3"
    assert applied.differing(UNEVEN, STAMPED) == applied.differing({}, STAMPED) == ""
    assert applied.holders(partitions(9), [1, 3, 4]) == [1, 3]
    assert applied.when_planned(planned_with(UNEVEN).cluster) == UNEVEN
    assert applied.when_planned({}) == {}


def standing(moment, of_brokers, *places):
    least = min(of_brokers.values(), default=2)
    return verdict.Standing(
        moment, {p.partition: p for p in places or [place(0)]}, least, of_brokers
    )


@pytest.mark.parametrize(
    ("was", "now", "planned", "reasons"),
    [
        ({1: 2, 2: 2}, {1: 2, 2: 2}, 2, []),
        ({1: 2, 2: 1}, {1: 2, 2: 1}, 2, ["then: effective X is 1 at broker 2, planned is 2"]),
        ({1: 1, 2: 1}, {1: 1, 2: 1}, 2, ["then: effective X is 1, planned is 2"]),
        # by the first moment of which it is known who applies it
        ({}, {1: 2, 2: 1}, 2, ["now: effective X is 1 at broker 2, planned is 2"]),
        ({1: 2, 2: 2}, {1: 2, 2: 1}, 0, ["now: effective X is 1 at broker 2, and was 2 then"]),
        ({1: 2, 2: 2}, {1: 1, 2: 1}, 0, ["now: effective X is 1, and was 2 then"]),
        # nothing fell: who has the lower one was not there before
        ({1: 2}, {1: 2, 2: 1}, 0, []),
        ({1: 2, 2: 1}, {1: 2}, 0, []),
        # a ledger of an older version knows one value, of one broker
        ({}, {1: 2, 2: 1}, 0, []),
        ({}, {1: 1, 2: 1}, 0, ["now: effective X is 1, and was 2 then"]),
        ({1: 2}, {}, 0, []),
    ],
)
def test_the_least_that_a_broker_applies_is_held_against_the_plan(was, now, planned, reasons):
    moments = [standing("then", was), standing("now", now)]
    found = verdict.durability(moments, 3, planned, [1, 2, 3], set(), [1, 2, 3]).check
    told = [each["reason"].replace(MIN_ISR, "X") for each in found.witnesses]
    assert (told, found.count) == (reasons, len(reasons))


def test_so_many_are_in_sync_as_the_leader_wants():
    """Broker 3 takes a write with one, broker 1 with two."""
    led = [
        place(0, leader=1, isr=(1,)),
        place(1, leader=3, isr=(3,)),
        place(2, leader=None, isr=()),
    ]
    found = verdict.durability([standing("now", {1: 2, 3: 1}, *led)], 3, 0).check
    assert [each["partition"] for each in found.witnesses] == [0, 2]


def durable(monkeypatch, told, **asked):
    """Judge._durability where brokers tell this of the topic."""
    monkeypatch.setattr(judge.java_admin, "reassigned", lambda *_more: set())
    monkeypatch.setattr(judge.room, "held", lambda *_more: {})
    monkeypatch.setattr(judge, "_IN_SYNC_SECONDS", 0)
    monkeypatch.setattr(judge, "_AGAIN_SECONDS", 0)
    now = partitions(10)
    layout = {n: {"replicas": p.replicas, "isr": p.isr, "leader": 1} for n, p in now.items()}
    known = {
        **all_apply({MIN_ISR: "2"}),
        "layout": lambda _topic, known, wait: layout,
        "settings_applied": lambda _topic, brokers, _names, _s: {b: told[b] for b in brokers if b in told},
    }  # fmt: skip
    asked = SimpleNamespace(**{**known, **asked})
    options = {"min_isr": 2, "replication_factor": 3}
    return judging(asked, plan_of(), **options)._durability(now)[0]


def test_the_controllers_value_is_not_the_others(monkeypatch):
    found = durable(monkeypatch, UNEVEN)
    why = f"when the records were read: effective {MIN_ISR} is 1 at broker 3, planned is 2"
    assert [each["reason"] for each in found.check.witnesses] == [why] and not found.unclear


def test_a_broker_that_does_not_tell_its_minimum_leaves_it_open(monkeypatch):
    found = durable(monkeypatch, {1: {MIN_ISR: "2"}, 2: {MIN_ISR: "2"}})
    assert not found.check.count
    assert [each[:40] for each in found.unclear] == ["broker 3 did not tell which min.insync.r"]


@pytest.mark.parametrize(
    ("of_three", "was_of_three", "why"),
    [
        ("604800000", "604800000", None),
        ("1000", "1000", "retention.ms=1000 at broker 3"),
        # as it was when the run wrote, at this broker
        ("604800000", "1000", "retention.ms=604800000, which was 1000 when they were written, at broker 3"),
    ],
)  # fmt: skip
def test_what_one_broker_deletes_by_its_own_file_is_no_loss(
    monkeypatch, of_three, was_of_three, why
):
    """Its followers' first offsets follow, whatever they keep themselves; broker 3 holds partition 1 alone."""
    common = {"retention.ms": "604800000", "retention.bytes": "-1"}
    of_each = {
        1: common,
        2: {**common, "retention.bytes": "-2"},
        3: {**common, "retention.ms": of_three},
    }
    was = {**of_each, 3: {**common, "retention.ms": was_of_three}}
    monkeypatch.setattr(judge.room, "sizes", lambda *_more: {})
    asked = SimpleNamespace(**{
        **all_apply(common),
        "settings_applied": lambda _topic, brokers, _names, _s: {b: of_each[b] for b in brokers},
    })  # fmt: skip
    now = {0: dataclasses.replace(place(0, start=5), replicas=(1, 2)), 1: place(1, start=5)}
    started = judge.datetime.now().astimezone().replace(microsecond=0).isoformat()
    plan = planned_with(was, created=False, keeps={**KEPT, **common}, started=started)
    of_it = dataclasses.replace(judging(asked, plan))
    monkeypatch.setattr(judge.Judge, "_age_seconds", lambda _self: 600.0)
    assert of_it._deleted_by({0: 5, 1: 5}, now) == ({1: why} if why else {})


@pytest.mark.parametrize("telling", [(), (1,), (3,), (1, 3)])
def test_where_no_holder_tells_the_topics_own_settings_say_what_it_deletes(monkeypatch, telling):
    """Each partition is on one broker alone, which may be silent."""
    hour = {"retention.ms": "3600000", "retention.bytes": "-1"}
    monkeypatch.setattr(judge.room, "sizes", lambda *_more: {})
    monkeypatch.setattr(judge.Judge, "_age_seconds", lambda _self: 10_800.0)
    asked = SimpleNamespace(**{
        **all_apply(hour),
        "settings_applied": lambda _topic, _brokers, _names, _s: dict.fromkeys(telling, hour),
    })  # fmt: skip
    now = {n: dataclasses.replace(place(n, start=5), replicas=(b,)) for n, b in ((0, 1), (1, 3))}
    of_it = judging(asked, plan_of(created=False, keeps={**KEPT, **hour}))
    assert of_it._deleted_by({0: 5, 1: 5}, now) == dict.fromkeys((0, 1), "retention.ms=3600000")


@pytest.mark.parametrize("of_three", ["CreateTime", "LogAppendTime"])
def test_another_kind_of_timestamps_at_one_broker_is_no_damage(monkeypatch, of_three):
    def results(self, *_more):
        timed = "timestampType" in self._sent.whole
        checks = [verdict.Check(n, int(n == "corrupt" and timed)) for n in verdict.MEANING]
        return judge.Results(checks, partitions(10), {}, set(), None)

    settings = {**KEPT, STAMPED: "CreateTime"}
    asked = {
        **all_apply(settings),
        "positions": lambda *_more, **_options: partitions(10),
        "settings_applied": lambda _topic, brokers, _names, _s: {
            b: {**settings, STAMPED: of_three if b == 3 else "CreateTime"} for b in brokers
        },
    }
    monkeypatch.setattr(judge.Judge, "_results", results)
    plan = plan_of(keeps=KEPT, beside=True, timestamp_type="CreateTime")
    found = judging(SimpleNamespace(**asked), plan).results()
    if of_three == "CreateTime":
        assert any(each.count for each in found.checks) and not found.unclear
        return
    assert not any(each.count for each in found.checks)
    (said,) = found.unclear
    assert "(CreateTime at brokers 1, 2, LogAppendTime at broker 3), so" in said


# -- brokers that have just started


class Starting(cluster.Cluster):
    """Its brokers know of these partitions at one look after the other, and of the last at each further one."""

    def __init__(self, *looks):
        import confluent_kafka

        self._kafka, self._timeout, self.looks = confluent_kafka, 60, list(looks)

    def _layout(self, topic):
        known = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return {n: {"leader": 1, "replicas": (1,), "isr": (1,)} for n in known}

    def _offsets(self, topic, layout, spec, committed=False):
        return {n: (3 if committed and n else 7, 1) for n in layout}


def test_a_layout_without_partitions_that_are_known_is_asked_for_again():
    assert sorted(Starting([], [1], [0, 1]).layout("t", [0, 1], 30)) == [0, 1]
    assert Starting([], [0]).layout("t") == {}
    assert sorted(Starting([1]).layout("t", [0, 1], 0.01)) == [1]


def test_open_transactions_are_waited_for_though_no_partition_is_known_at_first(monkeypatch):
    ends, stable = Starting([], [0], [0, 1], [], [0, 1]).stable_ends("t", 0, [0, 1])
    assert ends == {0: 7, 1: 7} and stable[1] == 3
    assert [each["partition"] for each in transactions.still_open(ends, stable, 1)] == [1]
    assert Starting([0, 1]).stable_ends("t", 0, [0, 1], {0: 5, 1: 9, 2: 4})[0] == {0: 5, 1: 7}
    monkeypatch.setattr(cluster, "ABSENT_SECONDS", 0.01)
    with pytest.raises(CannotRun, match=r"no broker tells of partitions \[1\] of t any more; wait"):
        Starting([0]).stable_ends("t", 0, [0, 1])


def test_nothing_is_said_of_transactions_in_a_partition_that_nobody_knows():
    assert transactions.still_open({0: 10}, {}, 3.0) == []


def test_a_topic_that_is_gone_is_not_asked_for_its_transactions():
    """A transactional run in a topic of others, which they have deleted since."""
    asked = SimpleNamespace(
        positions=lambda *_more, **_options: {}, why_unseen=lambda _topic: cluster.GONE
    )
    plan = plan_of(created=False, transaction_records=5, transaction_timeout=130.0)
    of_it = dataclasses.replace(judging(asked, plan), watch=Stopwatch())
    with pytest.raises(CannotRun, match="is not there any more: somebody has deleted it"):
        of_it.results()


def test_the_partitions_of_a_killed_run_are_waited_for_too():
    asked = SimpleNamespace(positions=lambda _topic, wait, known: {"known": sorted(known)})
    assert judging(asked, plan_of(after={}))._now() == {"known": [0, 1]}


def in_sync(monkeypatch, looks, held=None, **options):
    """(Judge._in_sync where brokers tell one of these layouts (partition -> in sync) a second, seconds it took)."""
    seconds, now = [], partitions(10)

    def layout(_topic, known, wait):
        assert set(known) == set(now) and wait == cluster.ABSENT_SECONDS
        told = looks(len(seconds))
        seconds.append(1)
        return {n: {"replicas": (1, 2, 3), "isr": isr} for n, isr in told.items()}

    clock = SimpleNamespace(monotonic=lambda: float(len(seconds)), sleep=lambda _seconds: None)
    monkeypatch.setattr(judge, "time", clock)
    monkeypatch.setattr(judge.java_admin, "reassigned", lambda *_more: set())
    asked_of = held or (lambda _at, _replica: 5)
    monkeypatch.setattr(
        judge.room,
        "held",
        lambda *more: {
            (n, b): asked_of(len(seconds), (n, b)) for n, bs in more[4].items() for b in bs
        },
    )
    asked = SimpleNamespace(layout=layout, **all_apply({MIN_ISR: "2"}))
    of_it = judging(asked, min_isr=2, replication_factor=3, **options)
    return of_it, now, seconds


def test_partitions_of_which_no_broker_tells_are_not_called_whole(monkeypatch):
    of_it, now, _seconds = in_sync(monkeypatch, lambda _at: {})
    found, settled, _registered = of_it._durability(now)
    assert settled == {} and not found.check.count
    assert [each[:52] for each in found.unclear] == [
        "no broker told any more of partitions 0, 1, whose re"
    ]
    of_it, now, _seconds = in_sync(monkeypatch, lambda _at: {1: (1, 2, 3)})
    assert "of partition 0, whose" in of_it._durability(now)[0].unclear[0]


def test_a_partition_that_is_gone_when_a_topic_was_inspected_is_told():
    before = {0: place(0, start=2), 1: place(1, start=2, end=9)}
    now = {0: place(0, start=6, end=12)}
    (witness,) = inspection._borders(before, now)
    assert (witness["partition"], witness["records"]) == (1, 7)
    assert witness["reason"] == "the partition is gone"
    (fallen,) = inspection._borders(before, {0: place(0, end=8), 1: place(1, start=2, end=9)})
    assert (fallen["reason"], fallen["records"]) == ("the end offset fell from 10 to 8", 2)
    assert inspection._gone(set()) == []
    assert "no broker told any more of partitions 1, 2 when" in inspection._gone({2, 1})[0]


# -- a log that was cut before the first record


def test_records_that_stand_where_others_were_cut_off_are_read():
    before, after = {0: place(0, end=1000, isr=(1, 2))}, {0: place(0, 3, end=1400, epoch=2)}
    rows = [Row(0, 0, 0, ACKED, 0, 499, 900, 1399)]
    plan = plan_of(created=False, before=before, after=after, partitions=1)
    of_it = dataclasses.replace(judging(None, plan), rows=rows)
    assert of_it._spans(after, []) == {0: (900, 1400)}
    cut, *_more = verdict.gaps_at_the_borders(before, after, after, acknowledged=of_it._first)
    assert (cut["records"], cut["offset"]) == (100, 900)
    assert (
        cut["reason"] == "the log was cut from 1000 to 900 or less, before the run's first record"
    )
    assert of_it._elections(after, set()) == {
        0: "broker 3 took the lead, when only 1, 2 had everything"
    }
    # the successor had everything: that is not called an election that was not clean
    clean = dataclasses.replace(
        of_it, plan=dataclasses.replace(plan, after={0: place(0, 2, end=1400)})
    )
    assert clean._elections(after, set()) == {}


def test_what_was_acknowledged_behind_the_end_that_a_leader_told_is_read():
    """In a topic of others, whose later records are left out."""
    before, after = {0: place(0, end=0)}, {0: place(0, end=90)}
    rows = [Row(0, 0, 0, ACKED, 0, 99, 0, 99)]
    plan = plan_of(created=False, before=before, after=after, partitions=1)
    of_it = dataclasses.replace(judging(None, plan), rows=rows)
    assert of_it._spans({0: place(0, end=500)}, []) == {0: (0, 100)}
    assert of_it._spans({0: place(0, end=95)}, []) == {0: (0, 95)}


# -- counts


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        (8000, 10_000, [("rose to 8000", 10)]),  # others have written on, and somebody has deleted
        (103, 10_000, [("rose to 103", 3)]),
        (50, 40, [("fell from 110 to 40", 10)]),
        (50, 105, [("fell from 110 to 105", 5)]),
    ],
)
def test_no_more_is_missed_at_a_border_than_the_run_has(start, end, told):
    before, after = {0: place(0, end=100)}, {0: place(0, end=110)}
    found = verdict.gaps_at_the_borders(before, after, {0: place(0, start=start, end=end)})
    assert [
        (each["reason"].split("offset ")[1].split(",")[0], each["records"]) for each in found
    ] == told


@pytest.mark.parametrize(
    ("began", "ended"),
    [
        # inspected: all has expired, and the disk is replaced
        (place(0, start=1000, end=1000), 0),
        # all records of the run were refused
        (place(0, end=1000), 900),
    ],
)
def test_an_end_that_fell_is_missed_where_the_run_wrote_nothing(began, ended):
    (found,) = verdict.gaps_at_the_borders({0: began}, {0: began}, {0: place(0, end=ended)})
    assert found["reason"] == f"the end offset fell from 1000 to {ended}"
    assert judge.told(verdict.Check("gap"), [found]).count == 1


def test_a_partition_that_is_gone_misses_what_the_run_wrote():
    before, after = {0: place(0, end=100), 1: place(1, end=5)}, {
        0: place(0, end=110),
        1: place(1, end=5),
    }
    found = verdict.gaps_at_the_borders(before, after, {})
    assert [each["records"] for each in found] == [10, 1]
    # nor does anything of the run go with what rises where it wrote nothing
    assert (
        verdict.gaps_at_the_borders(
            before, after, {0: place(0, end=110), 1: place(1, start=9, end=9)}
        )
        == []
    )


REFUSED = {"partition": 1, "offset": 500, "reason": "refuses"}
HOLE = {
    "partition": 1,
    "offset": 500,
    "records": 100,
    "reason": "offsets 500 to 599 cannot be decoded",
}


@pytest.mark.parametrize(
    ("found", "complaints", "count", "witnesses"),
    [
        (0, [REFUSED, HOLE], 100, [HOLE]),
        (0, [REFUSED], 1, [REFUSED]),
        (3, [REFUSED], 3, [REFUSED]),  # its records, read without the checksum
        (3, [REFUSED, {**HOLE, "offset": 700}], 103, [REFUSED, {**HOLE, "offset": 700}]),
        (0, [REFUSED, {**HOLE, "partition": 2}], 101, [REFUSED, {**HOLE, "partition": 2}]),
        (0, [REFUSED, REFUSED], 1, [REFUSED]),  # no hole was found: the partition is left out
        (0, [{**REFUSED, "partition": None, "offset": None}, HOLE], 101, None),
    ],
)  # fmt: skip
def test_a_batch_that_cannot_be_decoded_counts_once_by_its_records(
    found, complaints, count, witnesses
):
    check = judge.complained(verdict.Check("corrupt", found), complaints)
    assert check.count == count
    assert check.witnesses == (complaints if witnesses is None else witnesses)


# -- replicas that fall behind one after another


def behind(*brokers):
    return dict.fromkeys((0, 1), tuple(b for b in (1, 2, 3) if b not in brokers))


def test_a_replica_that_falls_behind_later_is_measured_from_then_on(monkeypatch):
    """Broker 2 is behind at first, and broker 3 from the third second on; it has not grown in half a minute."""
    of_it, now, seconds = in_sync(monkeypatch, lambda at: behind(2) if at < 3 else behind(3))
    found, _registered, grown = of_it._in_sync(now, 2)
    assert found[0].isr == (1, 2) and grown == {(0, 3): False, (1, 3): False}
    assert 33 <= len(seconds) <= 36
    of_it, now, _seconds = in_sync(
        monkeypatch, lambda at: behind(2) if at < 3 else behind(3), lambda at, _replica: at
    )
    assert set(of_it._in_sync(now, 2)[2].values()) == {True}


def test_a_replica_that_comes_and_goes_is_not_waited_for_without_end(monkeypatch):
    """It has been in sync in this half minute, and is not accused."""
    of_it, now, seconds = in_sync(monkeypatch, lambda at: behind(3) if at % 4 else behind())
    found, registered, grown = of_it._in_sync(now, 2)
    assert len(seconds) == 1 and grown == {}
    of_it, now, seconds = in_sync(monkeypatch, lambda at: behind(2) if at % 20 < 10 else behind(3))
    found, registered, grown = of_it._in_sync(now, 2)
    assert 90 <= len(seconds) <= 92 and set(grown.values()) == {True}
    judged = verdict.durability(
        [verdict.Standing("now", found, 2)], 3, 2, registered, set(), progress_of=grown
    )
    assert not judged.check.count and "catching up" in judged.unclear[0]

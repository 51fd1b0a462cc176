# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Naming: what runs prove is not looked at, what they do not prove is named, each partition by itself."""

from types import SimpleNamespace

import pytest
from flow.engine import executors
from flow.judge import checks, naming, runs, verdict
from flow.record import files, schema
from flow.record.ledger import Row
from flow.record.schema import ABORTED, ACKED, FAILED, UNKNOWN
from flow.record.transactions import Layout
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.test_checks import (
    CASES,
    PLAN,
    RUN,
    SIZE,
    Log,
    as_one_topic,
    refused,
    timed_out,
    two_attempts,
    unchanged,
)

# -- runs, without Spark


def run(shift, first, last, records=None, partition=0, attempt=7, home=None):
    home = partition if home is None else home
    return runs.Run(
        partition, 0, attempt, home, shift, records or last - first + 1, first, last
    )  # fmt: skip


DAMAGED = runs.Run(0, None, None, None, None, 1, None, None)
# sequence 4 was refused, and behind it a leader was lost: 5 to 7 are unknown
ROWS = [
    Row(0, 7, 0, ACKED, 0, 3, 100, 103),
    Row(0, 7, 0, FAILED, 4, 4),
    Row(0, 7, 0, UNKNOWN, 5, 7),
    Row(0, 7, 0, ACKED, 8, 9, 105, 106),
]
SPAN = {0: (100, 107)}
AS_IT_IS = [run(100, 0, 3), run(99, 5, 5), run(97, 8, 9)]


@pytest.mark.parametrize(
    "found, good",
    [
        (AS_IT_IS, True),
        ([run(100, 0, 3), run(99, 6, 6), run(97, 8, 9)], False),  # 6 at 105, which is 8's
        ([run(100, 0, 3), run(97, 7, 9)], True),  # 7 at 104: the one unknown that is there
        ([run(100, 0, 3), run(97, 8, 9)], False),  # an offset is empty
        ([run(100, 0, 3), run(99, 5, 5), run(98, 8, 9)], False),  # not where it was acknowledged
        ([run(100, 0, 4), run(97, 8, 9)], False),  # 4 was refused, and is there
        ([run(100, 0, 3, records=3), run(99, 5, 5), run(97, 8, 9)], False),  # one of 0 to 3 is gone
        ([*AS_IT_IS, DAMAGED], False),
        ([*AS_IT_IS, run(200, 5, 5)], False),  # twice
        ([run(100, 0, 3), run(99, 5, 5, attempt=8), run(97, 8, 9)], False),  # nobody knows of it
        ([run(100, 0, 3), run(99, 5, 5, home=1), run(97, 8, 9)], False),
        ([], False),
    ],
)
def test_runs_prove_only_what_is_so(found, good):
    assert runs.proven(found, ROWS, SPAN, dense=True) == ({0} if good else set())


def test_with_transactions_offsets_may_be_empty_and_aborted_records_are_explained():
    rows = [Row(0, 7, 0, ACKED, 0, 3, 100, 103), Row(0, 7, 0, ABORTED, 4, 7, None, None, "X")]
    assert runs.proven([run(100, 0, 3)], rows, {0: (100, 110)}, dense=False) == {0}
    # whether they may be seen is the check atomicity's to say
    assert runs.proven([run(100, 0, 3), run(101, 4, 7)], rows, {0: (100, 110)}, dense=False) == {0}
    assert runs.proven([run(101, 0, 3)], rows, {0: (100, 110)}, dense=False) == set()


@pytest.mark.parametrize(
    "found, wrong",
    [
        (AS_IT_IS, set()),
        ([run(100, 0, 3, records=3), run(99, 5, 5)], set()),  # a hole is no disorder
        ([run(100, 0, 3), run(101, 3, 5)], {0}),
        ([run(100, 4, 7), run(105, 0, 3)], {0}),
        ([run(100, 0, 3), run(101, 3, 5, attempt=8)], set()),
        ([run(100, 0, 3), run(300, 3, 3, partition=5, home=0)], {0, 5}),
        ([run(100, 0, 3), DAMAGED], set()),
    ],
)
def test_where_records_may_be_twice_or_out_of_order(found, wrong):
    assert runs.disordered(found) == wrong


SMALL = st.integers(0, 7)


@given(
    log=st.lists(st.tuples(SMALL, st.booleans()), max_size=8),
    outcomes=st.lists(st.sampled_from([ACKED, FAILED, UNKNOWN]), min_size=8, max_size=8),
    shift=st.integers(-2, 2),
)
def test_what_runs_prove_every_single_record_confirms(log, outcomes, shift):
    """log: at offset n stands that sequence, intact or not; the ledger acknowledges at some offsets."""
    stands = {offset: sequence for offset, (sequence, intact) in enumerate(log) if intact}
    places, at = {}, shift
    for sequence, outcome in enumerate(outcomes):
        places[sequence] = at
        at += outcome == ACKED
    rows = [
        Row(0, 7, 0, outcome, n, n, *((places[n],) * 2 if outcome == ACKED else ()))
        for n, outcome in enumerate(outcomes)
    ]
    groups = {}
    for offset, sequence in stands.items():
        groups.setdefault(offset - sequence, []).append(sequence)
    found = [run(s, min(ns), max(ns), len(ns)) for s, ns in groups.items()]
    found += [DAMAGED] * (len(stands) < len(log))
    acked = [n for n, outcome in enumerate(outcomes) if outcome == ACKED]
    in_order = [stands[offset] for offset in sorted(stands)]
    nothing_wrong = (
        all(stands.get(places[n]) == n for n in acked)
        and all(outcomes[n] != FAILED for n in in_order)
        and in_order == sorted(set(in_order))
        and len(stands) == len(log)
    )
    good = runs.proven(found, rows, {0: (0, len(log))}, dense=True) == {0}
    assert not good or nothing_wrong
    # and the other way: of what is in order only a run with a hole is left to look at
    if nothing_wrong and all(each.whole for each in found):
        assert good
    if 0 not in runs.disordered(found):
        assert in_order == sorted(set(in_order))


# -- with Spark


def judged(spark, logs, layout=None):
    """naming.Named of all logs as one topic, every partition in doubt."""
    rows, spans, kafka = as_one_topic(spark, logs)
    records = schema.with_fields(kafka, RUN, SIZE).cache()
    try:
        with naming.sorting(spark, len(rows)):
            work = naming.Naming(spark, PLAN, rows, [], layout)
            return work.named(records, set(spans), spans, ())
    finally:
        records.unpersist()


def places(check):
    """(partition, offset) of every record that the witnesses of a check name."""
    return {
        (w["partition"], offset)
        for w in check.witnesses
        for offset in range(w["offset"], w.get("last_offset", w["offset"]) + 1)
    }


@pytest.fixture(scope="module")
def all_cases(spark):
    """The cases of test_checks side by side, each on partitions of its own: naming.Named."""
    logs = [Log(base=10 * i) for i in range(len(CASES))]
    for log, (change, _expected) in zip(logs, CASES):
        change(log)
    return judged(spark, logs)


def test_each_case_is_counted_as_if_it_were_alone(all_cases):
    for name, check in all_cases.checks.items():
        expected = {
            (10 * number + partition, offset)
            for number, (_change, wanted) in enumerate(CASES)
            for partition, offset, _sequence in wanted.get(name, ())
        }
        assert check.count == len(expected), (name, check.witnesses)
        assert places(check) <= expected


def test_disturbed_and_healthy_partitions_are_proven_by_their_runs(all_cases):
    hurt = {number // 10 for number in all_cases.hurt}
    whole = {number for number, (change, _e) in enumerate(CASES)
             if change in (timed_out, refused, two_attempts, unchanged)}  # fmt: skip
    assert hurt == set(range(len(CASES))) - whole


def test_displaced_records_are_told_though_another_partition_has_lost_one(spark):
    """What is wrong in a partition moves the records behind it, and not those of another one."""
    hurt, moved, lost_too = Log(base=0), Log(base=10), Log(base=20)
    del hurt.values[1][105]
    for log in (moved, lost_too):
        # somebody's record was there first, and is gone: all are one offset further than acknowledged
        log.values[0] = {offset + 1: value for offset, value in log.values[0].items()}
        log.intended[log.base] = (101, 111)
    del lost_too.values[0][106]
    found = judged(spark, [hurt, moved, lost_too]).checks
    assert {name: check.count for name, check in found.items() if check.count} == {
        "loss": 2,
        "gap": 2,
        "order": 10,
    }
    assert places(found["order"]) == {(10, offset) for offset in range(101, 111)}
    assert "was acknowledged at offset 100" in found["order"].witnesses[0]["reason"]


def test_a_partition_that_a_record_came_from_is_not_told_as_displaced(spark):
    log = Log(base=0)
    log.values[1][110] = log.values[0].pop(103)
    for offset in range(104, 110):
        log.values[0][offset - 1] = log.values[0].pop(offset)
    log.intended = {0: (100, 109), 1: (100, 111)}
    found = judged(spark, [log]).checks
    assert {name: check.count for name, check in found.items() if check.count} == {"order": 1}
    assert places(found["order"]) == {(1, 110)}


def test_all_partitions_with_violations_are_known_though_few_are_witnesses(spark):
    logs = [Log(base=10 * i, partitions=1) for i in range(verdict.WITNESSES + 5)]
    for log in logs[1:]:
        del log.values[0][103]
    found = judged(spark, logs)
    assert len(found.checks["loss"].witnesses) == verdict.WITNESSES
    assert found.places["loss"] == found.places["gap"] == {log.base for log in logs[1:]}


def test_more_runs_than_can_be_taken_are_looked_at_one_by_one(spark, monkeypatch):
    monkeypatch.setattr(runs, "MOST", 3)
    logs = [Log(base=10 * i) for i in range(2)]
    del logs[1].values[0][103]
    found = judged(spark, logs)
    assert found.hurt == {0, 1, 10, 11}
    assert {name: c.count for name, c in found.checks.items() if c.count} == {"loss": 1, "gap": 1}


def in_transactions(records_of_each, log, partition, aborted=()):
    """The log's partition as committed transactions with their markers; the ledger goes with it."""
    values, rows = {}, []
    for number in range(0, 10, records_of_each):
        last = min(number + records_of_each, 10) - 1
        if number // records_of_each in aborted:
            rows.append(log.row(partition, ABORTED, number, last, None, None, "X"))
            continue
        marker = number // records_of_each
        for sequence in range(number, last + 1):
            values[100 + sequence + marker] = log.record(partition, sequence)
        rows.append(
            log.row(partition, ACKED, number, last, 100 + number + marker, 100 + last + marker)
        )
    log.values[partition] = values
    log.rows = [row for row in log.rows if row.partition != log.base + partition] + rows


def test_only_the_hurt_partition_of_a_transactional_run_is_looked_at(spark):
    """An aborted record is shown in one partition, another one has lost a committed one."""
    log = Log(base=0, partitions=4)
    for partition in range(4):
        in_transactions(2, log, partition, aborted=(3,))
    log.values[1][100 + 6 + 3] = log.record(1, 6)  # of number 3
    del log.values[2][100 + 9 + 4]
    log.intended = dict.fromkeys(range(4), (100, 115))
    found = judged(spark, [log], Layout(2, 4, 1, 40))
    assert {name: check.count for name, check in found.checks.items() if check.count} == {
        "loss": 1,
        "gap": 1,
        "atomicity": 1,
    }
    assert places(found.checks["atomicity"]) == {(1, 109)}
    assert found.hurt == {2}


def test_ranges_of_all_lengths_are_joined_as_by_hand(spark):
    """Blocks must neither lose nor repeat what ranges hold that touch several of them."""
    lengths = [1, 1, 500, 1, 2, 70, 1, 3, 1000, 1]
    rows, first = [], 0
    for number, length in enumerate(lengths):
        outcome = (ACKED, FAILED)[number % 3 == 2]
        place = () if outcome == FAILED else (first + number, first + number + length - 1)
        rows.append(Row(0, 7, 0, outcome, first, first + length - 1, *place))
        first += length
    ledger = files.rows_frame(spark, PLAN, rows)
    records = spark.range(first + 50).selectExpr(
        "0 as partition", "id as sequence", "id + 1 as offset", "id % 7 != 0 as intact", "true as ours",
        "true as beside", "'' as differing", "0 as producer", "7 as attempt", "0 as home",
    )  # fmt: skip
    told = {n for row in rows if row.outcome == ACKED
            for n in range(row.first_sequence, row.last_sequence + 1)}  # fmt: skip
    unexplained = sorted(n for n in range(first + 50) if n % 7 and n not in told)
    strange = [row.sequence for row in checks.phantom(records, ledger).collect()]
    assert sorted(n for n in strange if n is not None) == unexplained
    at = {n: row.first_offset - row.first_sequence + n for row in rows if row.outcome == ACKED
          for n in range(row.first_sequence, row.last_sequence + 1)}  # fmt: skip
    moved = sorted(n for n, offset in at.items() if n % 7 and offset != n + 1)
    assert sorted(row.sequence for row in checks.displaced(records, ledger).collect()) == moved
    # every third offset is empty: of the ranges' offsets each is told once
    some = records.where("offset % 3 != 0")
    spans = spark.createDataFrame([(0, 0, 3000)], "partition int, first bigint, end bigint")
    empty = [
        offset
        for row in checks.missing(some, ledger, spans).collect()
        for offset in range(row.offset, row.offset + row.records)
    ]
    there = {row.offset for row in some.select("offset").collect()}
    assert sorted(empty) == sorted(offset for offset in at.values() if offset not in there)
    bad = {row.offset for row in checks.corrupt(records, ledger).collect()}
    assert bad == {n + 1 for n in range(first + 50) if n % 7 == 0}


def test_many_records_are_sorted_by_many_tasks_and_the_settings_come_back(spark):
    names = ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions")

    def now():
        return [spark.conf.get(name) for name in names]

    before = now()
    with naming.sorting(spark, 10_000):
        assert now() == before
    with pytest.raises(ZeroDivisionError), naming.sorting(spark, 100_000_000):
        assert now() == ["true", "200"]
        raise ZeroDivisionError
    assert now() == before


@pytest.mark.parametrize(
    ("chosen", "used", "sorted_by"), [(None, "8", "200"), ("3", None, None)], ids=["job", "person"]
)
def test_how_many_parts_a_person_has_chosen_stays(chosen, used, sorted_by):
    told = {} if chosen is None else {executors.PARTS: chosen}
    now = {"spark.sql.adaptive.enabled": "false", executors.PARTS: chosen}
    context = SimpleNamespace(
        defaultParallelism=8, getConf=lambda: SimpleNamespace(contains=lambda name: name in told)
    )
    conf = SimpleNamespace(get=now.get, set=now.__setitem__)
    spark = SimpleNamespace(sparkContext=context, conf=conf)
    executors.use(spark)
    assert now[executors.PARTS] == (used or chosen)
    with naming.sorting(spark, 100_000_000):
        assert now == {
            "spark.sql.adaptive.enabled": "true", executors.PARTS: sorted_by or chosen
        }  # fmt: skip
    assert now[executors.PARTS] == (used or chosen)

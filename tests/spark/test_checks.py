# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each way in which records can go wrong is caught by its own check and named, without Kafka."""

import dataclasses
from types import SimpleNamespace

import pytest
from flow.judge import checks, reading
from flow.record import files, schema, timing
from flow.record.ledger import Acknowledged, Row
from flow.record.schema import ACKED, FAILED, UNKNOWN

RUN = "00112233445566778899aabbccddeeff"
SIZE = 64
PLAN = SimpleNamespace(run_id=RUN, topic="t")
CLOCK = timing.Clock(timing.APPENDED, 10, 1)
FIRST_OFFSET = 100  # not 0, so that an offset is never right by accident


class Log:
    """A few partitions as offset -> value, and the ledger that goes with them.

    Partitions are numbered from 0 here and from `base` in the records, so that all cases of this
    file can be judged in one go, each on partitions of its own.
    """

    def __init__(self, base=0, partitions=2, records=10):
        self.base = base
        self.values = {
            p: {FIRST_OFFSET + s: self.record(p, s) for s in range(records)}
            for p in range(partitions)
        }
        end = FIRST_OFFSET + records - 1
        self.rows = [
            self.row(p, ACKED, 0, records - 1, FIRST_OFFSET, end) for p in range(partitions)
        ]
        self.intended = self.spans()

    def record(self, partition, sequence, producer=0, attempt=7, run=RUN):
        where = (producer, attempt, self.base + partition)
        return schema.pack(bytes.fromhex(run), *where, sequence, 1, schema.payload_of(SIZE))

    def row(self, partition, *rest, attempt=7):
        return Row(0, attempt, self.base + partition, *rest)

    def spans(self):
        return {self.base + p: (FIRST_OFFSET, max(v) + 1) for p, v in self.values.items()}


def source(spark, rows):
    """(partition, offset, value) as Spark's Kafka source gives them; offset o was appended at o ms."""
    frame = spark.createDataFrame(rows, "partition int, offset bigint, value binary")
    return frame.selectExpr("*", "timestamp_millis(offset) as timestamp")


def as_one_topic(spark, logs):
    """(ledger rows, partition -> (first offset, end offset), records as of `source`) of all logs."""
    rows = [row for log in logs for row in log.rows]
    spans = {}
    for log in logs:
        now = log.spans()
        spans |= {p: (s, max(e, now[p][1])) for p, (s, e) in log.intended.items()}
    kafka = source(
        spark,
        [
            (log.base + p, o, bytearray(value))
            for log in logs
            for p, values in log.values.items()
            for o, value in values.items()
        ],
    )
    return rows, spans, kafka


def judge(spark, logs):
    """Judge all logs as one topic: (suspicious partitions, check id -> {(partition, offset,
    sequence)}).
    """
    rows, spans, kafka = as_one_topic(spark, logs)
    counted = checks.summary(schema.with_header(kafka, RUN, SIZE, CLOCK)).collect()
    doubtful = checks.suspicious(checks.groups(counted), rows, spans)
    # The quick pass comes to the same, and never vouches for a partition that is doubtful itself.
    writing = checks.writers(rows)
    agreement = schema.with_agreement(kafka, RUN, SIZE, writing, CLOCK)
    quick = checks.confirmed(checks.confirmation(agreement).collect(), writing)
    done = {group.partition for group in quick}
    slow = [group for group in checks.groups(counted) if group.partition not in done]
    assert checks.suspicious(quick + slow, rows, spans) == doubtful
    assert done, "healthy partitions need no second look"
    records = schema.with_fields(kafka, RUN, SIZE).cache()
    ledger = files.rows_frame(spark, PLAN, rows)
    frames = {name: check(records, ledger) for name, check in checks.EXACT.items()}
    borders = spark.createDataFrame(
        [(p, *s) for p, s in spans.items()], "partition int, first bigint, end bigint"
    )
    frames["gap"] = checks.gap(records, borders)
    found = {
        name: {(r.partition, r.offset, r.sequence) for r in frame.collect()}
        for name, frame in frames.items()
    }
    records.unpersist()
    return doubtful, found


def dropped(log):
    del log.values[1][105]


def dropped_first(log):
    del log.values[0][100]


def dropped_last(log):
    del log.values[1][109]


def damaged_payload(log):
    value = bytearray(log.values[0][103])
    value[60] ^= 1
    log.values[0][103] = bytes(value)


def damaged_run_id(log):
    value = bytearray(log.values[0][103])
    value[5] ^= 0x80
    log.values[0][103] = bytes(value)


def shortened(log):
    log.values[0][103] = log.values[0][103][:-1]


def emptied(log):
    log.values[0][103] = b""


def swapped(log):
    one = log.values[0]
    one[103], one[104] = one[104], one[103]


def repeated(log):
    log.values[0][110] = log.values[0][104]


def overwritten(log):
    log.values[0][105] = log.values[0][104]


def moved(log):
    log.values[1][110] = log.values[0].pop(109)


def foreign(log):
    log.values[1][110] = b"somebody else's"


def foreign_of_right_size(log):
    log.values[1][110] = log.record(1, 10, run="ff" * 16)


def invented_sequence(log):
    log.values[1][110] = log.record(1, 10)


def invented_producer(log):
    log.values[1][110] = log.record(1, 0, producer=9)


def invented_attempt(log):
    log.values[1][110] = log.record(1, 0, attempt=8)


MUTATIONS = [
    (dropped, {"loss": [(1, 105, 5)], "gap": [(1, 105, None)]}),
    (dropped_first, {"loss": [(0, 100, 0)], "gap": [(0, 100, None)]}),
    (dropped_last, {"loss": [(1, 109, 9)], "gap": [(1, 109, None)]}),
    (damaged_payload, {"corrupt": [(0, 103, 3)]}),
    (damaged_run_id, {"corrupt": [(0, 103, 3)]}),
    (shortened, {"corrupt": [(0, 103, 3)]}),
    (emptied, {"corrupt": [(0, 103, 3)]}),
    (swapped, {"order": [(0, 104, 3)]}),
    (repeated, {"duplicate": [(0, 110, 4)]}),
    (overwritten, {"duplicate": [(0, 105, 4)], "loss": [(0, 105, 5)]}),
    (moved, {"order": [(1, 110, 9)], "gap": [(0, 109, None)]}),
    (foreign, {"phantom": [(1, 110, None)]}),
    (foreign_of_right_size, {"phantom": [(1, 110, None)]}),
    (invented_sequence, {"phantom": [(1, 110, 10)]}),
    (invented_producer, {"phantom": [(1, 110, 0)]}),
    (invented_attempt, {"phantom": [(1, 110, 0)]}),
]


def unchanged(log):
    pass


def timed_out(log):
    """Sequences 4 and 5 are unknown; 5 did get into the log."""
    log.rows[0:1] = [
        log.row(0, ACKED, 0, 3, 100, 103),
        log.row(0, UNKNOWN, 4, 5),
        log.row(0, ACKED, 6, 9, 105, 108),
    ]
    values = [v for o, v in log.values[0].items() if o != 104]
    log.values[0] = {FIRST_OFFSET + i: v for i, v in enumerate(values)}
    log.intended = log.spans()


def refused(log):
    """Sequence 9 was refused and is not there."""
    log.rows[0:1] = [log.row(0, ACKED, 0, 8, 100, 108), log.row(0, FAILED, 9, 9)]
    del log.values[0][109]
    log.intended = log.spans()


def two_attempts(log):
    """An attempt died after five records, of which it had noted three; another wrote all ten, in
    between.
    """
    mine, theirs = Acknowledged(), []
    values = {}
    for i in range(15):
        offset = FIRST_OFFSET + i
        if i < 10 and i % 2:
            values[offset] = log.record(0, i // 2, attempt=3)
            theirs.append((i // 2, offset))
        else:
            sequence = len(values) - len(theirs)
            values[offset] = log.record(0, sequence)
            mine.add(sequence, offset)
    log.values[0] = values
    old = Acknowledged()
    for sequence, offset in theirs[:3]:
        old.add(sequence, offset)
    log.rows = [r for r in log.rows if r.partition != log.base]
    log.rows += [log.row(0, ACKED, *r) for r in mine.merged()]
    log.rows += [log.row(0, ACKED, *r, attempt=3) for r in old.merged()]
    log.rows.append(log.row(0, UNKNOWN, 3, 9, attempt=3))


def refused_but_there(log):
    log.rows[0:1] = [log.row(0, ACKED, 0, 8, 100, 108), log.row(0, FAILED, 9, 9)]


CASES = [
    *MUTATIONS,
    (refused_but_there, {"phantom": [(0, 109, 9)]}),
    *((healthy, {}) for healthy in (timed_out, refused, two_attempts, unchanged)),
]


@pytest.fixture(scope="module")
def judged(spark):
    """Case -> (suspicious partitions, findings), numbered as in the case."""
    logs = [Log(base=10 * i) for i in range(len(CASES))]
    for log, (change, _) in zip(logs, CASES):
        change(log)
    doubtful, found = judge(spark, logs)
    return {
        change: (
            {p - log.base for p in doubtful if p // 10 == log.base // 10},
            {
                name: sorted((p - log.base, o, s) for p, o, s in rows if p // 10 == log.base // 10)
                for name, rows in found.items()
                if any(p // 10 == log.base // 10 for p, _, _ in rows)
            },
        )
        for log, (change, _) in zip(logs, CASES)
    }


@pytest.mark.parametrize("case,expected", CASES, ids=[c.__name__ for c, _ in CASES])
def test_case_is_judged_exactly(judged, case, expected):
    doubtful, found = judged[case]
    places = {p for rows in expected.values() for p, _, _ in rows}
    assert places <= doubtful  # else a run would never look closer
    assert found == expected


def test_healthy_is_proven_by_counting_alone(judged):
    assert judged[unchanged][0] == set()
    assert judged[timed_out][0] == {0}  # what is unknown is looked at, its neighbour is not


def test_foreign_bytes_do_not_multiply_groups(spark):
    log = Log(partitions=1)
    log.values[0].update({200 + i: i.to_bytes(4, "big") * 16 for i in range(300)})
    rows = [(0, o, bytearray(v)) for o, v in log.values[0].items()]
    kafka = source(spark, rows)
    clock = timing.Clock(timing.CREATED, 1000, 1)
    assert checks.summary(schema.with_header(kafka, RUN, SIZE, clock)).count() == 2


@pytest.mark.parametrize(
    "sizes, cores, most",
    [
        ([100_000], 2, 250_000),  # not worth a second task
        ([10_000_000], 2, 1_250_000),
        ([10_000_000, 10], 2, 1_250_002),
        ([833_333] * 12, 2, 1_250_000),  # as many tasks as partitions
        ([100_000_000], 2, 5_000_000),
        ([10_000_000], 64, 250_000),
        ([], 2, 250_000),
    ],
)
def test_a_task_is_neither_large_nor_tiny(sizes, cores, most):
    spans = {number: (7, 7 + size) for number, size in enumerate(sizes)}
    assert reading.records_of_a_task(spans, cores) == most


def test_a_partition_that_nothing_came_from_is_suspicious():
    rows = [Row(0, 7, 0, ACKED, 0, 9, 0, 9)]
    assert checks.suspicious([], rows, {0: (0, 10)}) == {0}
    assert checks.suspicious([], rows, {}) == {0}  # the partition is gone


GROUP = {"partition": 0, "producer": 0, "attempt": 7, "home": 0}
WHOLE = {"records": 10, "first_offset": 50, "last_offset": 59, "first_sequence": 0}
WHOLE |= {"last_sequence": 9, "low_shift": 50, "high_shift": 50}


@pytest.mark.parametrize(
    "read,rows,doubtful",
    [
        ({}, [Row(0, 7, 0, ACKED, 0, 9, 50, 59)], set()),
        # an attempt that died: what it had not noted yet is there, and explained
        ({}, [Row(0, 7, 0, ACKED, 0, 3, 50, 53), Row(0, 7, 0, UNKNOWN, 4, 99)], set()),
        ({}, [Row(0, 7, 0, UNKNOWN, 0, 99)], set()),
        ({}, [Row(0, 7, 0, ACKED, 0, 8, 50, 58)], {0}),  # one too many
        ({}, [Row(0, 7, 0, ACKED, 0, 10, 50, 60)], {0}),  # one too few
        ({}, [Row(0, 7, 0, ACKED, 0, 9, 51, 60)], {0}),  # elsewhere
        ({}, [Row(0, 6, 0, ACKED, 0, 9, 50, 59)], {0}),  # another attempt's
        ({"high_shift": 51}, [Row(0, 7, 0, ACKED, 0, 9, 50, 59)], {0}),
        ({"records": 9}, [Row(0, 7, 0, ACKED, 0, 9, 50, 59)], {0}),
        ({"home": 1}, [Row(0, 7, 0, ACKED, 0, 9, 50, 59)], {0}),
    ],
)
def test_counting_proves_only_what_is_so(read, rows, doubtful):
    group = checks.Group(**GROUP, **WHOLE)
    group = dataclasses.replace(group, **read)
    assert checks.suspicious([group], rows, {0: (50, 50 + group.records)}) == doubtful


def test_displaced_records_are_told(spark):
    log = Log(partitions=1)
    rows = [(0, o + 1, bytearray(v)) for o, v in log.values[0].items()]
    kafka = source(spark, rows)
    records = schema.with_fields(kafka, RUN, SIZE)
    found = checks.displaced(records, files.rows_frame(spark, PLAN, log.rows)).collect()
    assert len(found) == 10
    assert found[0].reason.startswith("was acknowledged at offset")


def latencies(spark, kind, waits_us, sampled_every=1):
    """timing.Observed of a partition whose records waited so long, by either pass."""
    clock = timing.Clock(kind, 10, sampled_every)
    place = (0, 7, 0)  # producer, attempt, partition
    values = [
        schema.pack(bytes.fromhex(RUN), *place, s, 10**12 + s * 1000 - wait, b"x" * (SIZE - 48))
        for s, wait in enumerate(waits_us)
    ]
    rows = [(0, s, bytearray(v)) for s, v in enumerate(values)]
    rows.append((0, len(rows), bytearray(b"somebody else's")))
    frame = spark.createDataFrame(rows, "partition int, offset bigint, value binary")
    frame = frame.selectExpr("*", "timestamp_millis(1000000000 + offset) as timestamp")
    writing = {0: (0, 7, 0)}
    quick = checks.confirmation(schema.with_agreement(frame, RUN, SIZE, writing, clock)).collect()
    slow = checks.summary(schema.with_header(frame, RUN, SIZE, clock)).collect()
    seen = timing.observe(clock, quick)
    assert timing.observe(clock, slow) == seen
    assert not checks.confirmed(quick, writing), "the foreign record"
    return seen


def test_spark_and_python_put_a_latency_into_the_same_class(spark):
    around = [round(timing.class_edges_ms(n)[1] * 1000) + d for n in range(70) for d in (-1, 0, 1)]
    waits = [-5_000_000, -1001, -1000, -1, 0, 999, 1000, 1001, *around]
    seen = latencies(spark, timing.APPENDED, waits)
    expected = {}
    for wait in waits:
        number = next(
            n for n in range(-1, 80) if wait < (timing.class_edges_ms(n)[1] * 1000 if n >= 0 else -1000)
        )  # fmt: skip
        expected[number] = expected.get(number, 0) + 1
    assert seen.latencies == expected
    assert (seen.least_us, seen.most_us) == (-5_000_000, max(waits))


def test_what_is_read_is_put_into_buckets_of_time(spark):
    seen = latencies(spark, timing.APPENDED, [2000] * 25, sampled_every=4)
    assert {n - 10**8: b.records for n, b in seen.partitions[0].items()} == {0: 10, 1: 10, 2: 5}
    assert seen.partitions[0][10**8 + 1] == timing.Bucket(10, 10**9 + 10, 10**9 + 19)
    assert sum(seen.latencies.values()) == 7  # offsets 0, 4, ... 24


def test_a_producers_own_timestamp_gives_no_latency(spark):
    seen = latencies(spark, timing.CREATED, [2000] * 25)
    assert not seen.latencies and len(seen.partitions[0]) == 3


# -- what stands beside a value


def test_what_differs_beside_a_value_is_named(spark):
    """Of each kind of sequences, with one thing changed after another."""
    run, day, rows, expected = bytes.fromhex(RUN), 86_400, [], {}
    for kind in range(4):
        sequence = kind * schema.BESIDE_EVERY
        key, headers = schema.beside(run, sequence)
        value = schema.pack(run, 0, 7, 0, sequence, 1, schema.payload_of(SIZE))
        whole = {"key": key, "headers": headers, "moment": day, "kind": 1}
        for changed, said in (
            ({}, None),
            ({"key": b"other"}, "key"),
            ({"headers": [("other", b"")]}, "headers"),
            ({"moment": 4 * day}, "timestamp"),
            ({"kind": 0}, "timestamp"),
            ({"key": b"other", "moment": 0}, "key, timestamp"),
        ):
            is_now = {**whole, **changed}
            expected[len(rows)] = said and f"not as it was sent: {said}"
            rows.append((0, len(rows), value, *is_now.values()))
    frame = spark.createDataFrame(
        rows,
        "partition int, offset bigint, value binary, key binary,"
        " headers array<struct<key: string, value: binary>>, moment bigint, timestampType int",
    ).selectExpr("*", "timestamp_seconds(moment) as timestamp")
    sent = schema.as_sent(RUN, (day / 2, 2 * day))
    records = schema.with_fields(frame, RUN, SIZE, sent).cache()
    ledger = files.rows_frame(spark, PLAN, [])
    found = {each.offset: each.reason for each in checks.corrupt(records, ledger).collect()}
    assert found == {n: said for n, said in expected.items() if said}
    counted = schema.with_header(frame, RUN, SIZE, CLOCK, sent).where("header is not null")
    assert {row.offset for row in counted.collect()} == {n for n in expected if not expected[n]}
    records.unpersist()


# -- what cannot be read


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    "damaged, found",
    [
        ([], []),
        ([(0, 1)], [(0, 1)]),
        ([(10, 20), (20, 25), (90, 100)], [(10, 25), (90, 100)]),
        ([(n, n + 3) for n in range(0, 99, 9)], [(n, n + 3) for n in range(0, 99, 9)]),
        ([(0, 100)], [(0, 100)]),
        ([(0, 100), (120, 1000)], [(0, 100), (120, 1000)]),  # a short good batch between two
        ([(0, 400), (401, 402), (403, 999)], [(0, 400), (401, 402), (403, 999)]),
    ],
)
def test_all_holes_of_a_partition_are_found_in_one_go(damaged, found, named):
    """Each offset of a batch that is damaged cannot be read, and none behind it before it is jumped over. Kafka's
    consumer mostly says where the batch begins."""
    asked = []

    def reach(offset, end):
        asked.append(offset)
        at = [first if first > offset else offset for first, last in damaged if last > offset]
        return min([end, *at])

    def batch_of(offset):
        (begins,) = [first for first, last in damaged if first <= offset < last]
        return begins if named else None

    assert reading.holes_between(0, 1000, reach, batch_of) == found
    assert len(asked) < (25 * len(damaged) + 2 if named else 3000)


def test_a_partition_in_which_all_is_damaged_is_not_looked_at_without_an_end():
    asked = []

    def reach(offset, end):
        asked.append(offset)
        return offset if offset < 10**6 else end

    assert reading.holes_between(0, 2 * 10**6, reach, lambda _at: None) == [(0, 10**6)]
    assert len(asked) < 3 * reading._LOOKS


_JAVA = "org.apache.kafka.common.KafkaException: "


@pytest.mark.parametrize(
    "text, place",
    [
        (f"{_JAVA}Encountered corrupt message when fetching offset 7 for topic-partition a-b-1-2", (2, 7)),
        (f"{_JAVA}Received exception when fetching the next record from a-1-0. If needed, please seek past"
         " the record\nCaused by: Record batch for partition a-1-0 at offset 33 is invalid, cause:", (0, 33)),
        ("Record batch for partition a-1-4 at offset 33 is invalid, cause: Record is corrupt", (4, 33)),
        ("org.apache.kafka.common.errors.CorruptRecordException: Record is corrupt from x-9", (None, None)),
    ],
)  # fmt: skip
def test_the_place_that_a_consumer_complains_of(text, place):
    assert reading._DAMAGED.search(text)
    assert reading._place_of(text) == place


class Rows:
    """A Spark job that fails at the first place that it cannot read; `passes` counts what was begun."""

    def __init__(self, damaged):
        self.damaged, self.passes = damaged, []

    def of(self, spans, check_crcs):
        self.passes.append(check_crcs)
        self.spans = spans
        return self

    def collect(self):
        for number, span in self.spans.items():
            for first, end in zip(span[::2], span[1::2]):
                for at in self.damaged.get(number, ()):
                    if first <= at < end:
                        what = "Encountered corrupt message when fetching offset"
                        raise RuntimeError(f"{what} {at} for topic-partition t-{number}")
        return []


def test_many_holes_of_a_partition_cost_two_passes_more_and_another_reading_none():
    damaged = Rows({0: range(3, 90, 10)})
    holes = [(at, at + 1) for at in range(3, 90, 10)]
    spans = {0: (0, 100), 1: (0, 100)}
    rows, complaints, left, crcs = reading.collect(damaged.of, spans, lambda _n, _span: holes)
    assert (rows, crcs, damaged.passes) == ([], False, [True, False, False])
    assert [c["offset"] for c in complaints[1:]] == [first for first, _end in holes]
    assert reading.length(left[0]) == 100 - len(holes) and left[1] == (0, 100)
    assert reading.collect(damaged.of, left, None, crcs) == ([], [], left, False)
    assert damaged.passes[3:] == [False]


def test_where_no_hole_can_be_found_the_partition_is_left_out():
    _rows, complaints, left, _crcs = reading.collect(Rows({0: [3]}).of, {0: (0, 9), 1: (0, 9)})
    assert left == {1: (0, 9)} and [c["partition"] for c in complaints] == [0, 0]

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Reading with Spark's Kafka source, so that a damaged or shortened topic becomes a finding and
not a crash.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import time
from typing import Callable, Optional

from flow.messages import stack_trace
from flow.messages.failure import UNLOADED, CannotRun, with_remedy
from flow.prepare import java_admin

# What Kafka's consumer says when the bytes that a broker serves are not a valid batch
_DAMAGED = re.compile(
    r"CorruptRecordException|InvalidRecordException|Record is corrupt"
    r"|Record batch .{0,80}is invalid"
    r"|Received exception when fetching the next record|is less than the minimum record overhead"
    r"|Encountered corrupt message when fetching offset"
)
# It says so, too, where Java cannot unpack a batch whatever its bytes are: Kafka makes one exception of all that
# goes wrong there, a library that cannot be loaded and a want of memory among it.
_NOT_UNPACKED = re.compile(rf"{UNLOADED}|OutOfMemoryError")
# the same of a batch whose head is damaged, so that not even its leader can make anything of it
_REFUSED = re.compile(r"corrupt message when fetching offset (\d+) for topic-partition \S+-(\d+)")
# what the source yields, for topics that hold nothing and for expressions that nobody has tried yet
COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,"
    " timestampType int, headers array<struct<key: string, value: binary>>"
)
_BATCH = re.compile(r"partition \S+-(\d+) at offset (\d+)")
_PLACE = re.compile(r"(?:from|partition) (\S+)-(\d+)(?:[^\d]+offset (\d+))?")


_SEE_TO_IT = "see to that, then judge again"
# At offsets of one partition, after which damaged batches are no longer looked at one by one: whole ones between them,
# shorter than they are, count as damaged then.
_LOOKS = 5000
_CONSUMER_SECONDS = 30  # without anything new, until a broker counts as silent

# Of a partition, in one answer; a task holds two such answers at most.
_FETCH_BYTES = 4 * 2**20
# A task's records: enough that what a task costs by itself (its consumer has to find the offset) does
# not count, few enough that the last task does not run alone for long, and that progress is seen.
LEAST_OF_A_TASK, MOST_OF_A_TASK = 250_000, 5_000_000


def is_damage(said: str) -> bool:
    """Whether what a consumer says, with its causes, is that the bytes which a broker serves are damaged."""
    return bool(_DAMAGED.search(said)) and not _NOT_UNPACKED.search(said)


def records_of_a_task(spans: dict, cores: int) -> int:
    """The most records that one task should read; a partition with more is read by several.

    spans: partition -> (first offset, end offset). Four tasks for each core, so that one large
    partition, or few of them, keep every core busy to the end.
    """
    total = sum(end - first for first, end in spans.values())
    return min(max(-(-total // (4 * cores)), LEAST_OF_A_TASK), MOST_OF_A_TASK)


def length(span: tuple) -> int:
    """How many offsets a span has. A span is (first offset, end offset), and further such pairs behind
    what cannot be read.
    """
    return sum(end - first for first, end in _pairs(span))


def _pairs(span: tuple) -> list:
    return list(zip(span[::2], span[1::2]))


def without(span: tuple, first: int, end: int) -> tuple:
    """The span without these offsets; empty if nothing is left of it."""
    left: list = []
    for low, high in _pairs(span):
        for part in ((low, min(high, first)), (max(low, end), high)):
            if part[1] > part[0]:
                left += part
    return tuple(left)


def rows(
    spark,
    topic: str,
    spans: dict,
    client: dict,
    servers: str,
    check_crcs: bool = True,
    headers: bool = False,
):
    """The topic's records as Spark reads them; spans: partition -> span (see `length`)."""
    wanted = {n: _pairs(span) for n, span in spans.items() if length(span)}
    if not wanted:
        return spark.createDataFrame([], COLUMNS)
    layers = []
    for number in range(max(map(len, wanted.values()))):
        layer = {n: pairs[number] for n, pairs in wanted.items() if len(pairs) > number}
        layers.append(_layer(spark, topic, layer, client, servers, check_crcs, headers))
    return functools.reduce(lambda one, other: one.unionByName(other), layers)


def _layer(spark, topic: str, wanted: dict, client: dict, servers: str, check_crcs: bool,
           headers: bool):  # fmt: skip
    """`rows` of one pair of offsets for each partition."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    options = {
        **{f"kafka.{key}": value for key, value in client.items()},
        "assign": json.dumps({topic: sorted(wanted)}),
        "startingOffsets": json.dumps({topic: {str(n): s[0] for n, s in wanted.items()}}),
        "endingOffsets": json.dumps({topic: {str(n): s[1] for n, s in wanted.items()}}),
        # what is missing is judged from the ledger: an exception would hide the rest
        "failOnDataLoss": "false",
        # a bounded read waits at the end of every partition; the default half second adds up
        "kafka.fetch.max.wait.ms": "10",
        # Spark's source asks the consumer anew for every so many records: with the default 500, half
        # of the time of reading small records goes into asking
        "kafka.max.poll.records": "50000",
        # and each time it asks the broker twice where the partition begins and ends: so all records of
        # an answer at once, and large answers
        "kafka.max.partition.fetch.bytes": str(_FETCH_BYTES),
        # of which half can arrive while the records before it are judged; Kafka's default is 64 KiB
        "kafka.receive.buffer.bytes": str(_FETCH_BYTES // 2),
        "kafka.check.crcs": str(check_crcs).lower(),
        "includeHeaders": str(headers).lower(),
        "maxRecordsPerPartition": str(
            records_of_a_task(wanted, spark.sparkContext.defaultParallelism)
        ),
    }
    return reader.options(**options).load()


def holes(spark, topic: str, partition: int, span: tuple, client: dict, servers: str) -> list:
    """[(first, end), ...] of the offsets in the span that Kafka's consumer cannot hand out, though it
    does not look at its own checksums: each of one batch as a rule. Empty if it can hand out all.

    CannotRun where Java's consumer is out of reach, or brokers do not answer.
    """
    from py4j.protocol import Py4JJavaError

    settings = {
        **client,
        "check.crcs": "false",
        "enable.auto.commit": "false",
        "auto.offset.reset": "none",
        "max.poll.records": "50000",
    }
    with (
        java_admin.consumer(spark, servers, settings) as (jvm, consumer),
        java_admin.consumer(spark, servers, {**settings, "check.crcs": "true"}) as (_jvm, checking),
    ):
        place = jvm.org.apache.kafka.common.TopicPartition(topic, partition)
        places = jvm.java.util.Collections.singletonList(place)
        consumer.assign(places)
        checking.assign(places)
        half_a_second = jvm.java.time.Duration.ofMillis(500)

        def reach(offset: int, end: int) -> int:
            """How far it comes from there: `end`, or the first offset that it cannot hand out."""
            consumer.seek(place, offset)
            deadline = time.monotonic() + _CONSUMER_SECONDS
            while (at := consumer.position(place)) < end:
                try:
                    consumer.poll(half_a_second)
                except Py4JJavaError as error:
                    if not is_damage(str(error)):
                        raise
                    return consumer.position(place)
                if consumer.position(place) > at:
                    deadline = time.monotonic() + _CONSUMER_SECONDS
                elif time.monotonic() > deadline:
                    raise CannotRun(f"nothing came of partition {partition} of {topic}")
            return end

        def batch_of(offset: int) -> Optional[int]:
            """As for holes_between: a consumer that looks at checksums says which batch has a wrong one."""
            checking.seek(place, offset)
            deadline = time.monotonic() + _CONSUMER_SECONDS
            while checking.position(place) == offset and time.monotonic() < deadline:
                try:
                    checking.poll(half_a_second)
                except Py4JJavaError as error:
                    named = _BATCH.search(str(error))
                    return int(named[2]) if named and int(named[1]) == partition else None
            return None

        return [
            hole
            for first, end in _pairs(span)
            for hole in holes_between(first, end, reach, batch_of)
        ]


def holes_between(first: int, end: int, reach: Callable, batch_of: Callable) -> list:
    """[(first, end), ...] of the offsets in between that cannot be read; reach: (offset, end) -> how far
    reading comes from there, `end` or the first offset that it does not get; batch_of: offset that cannot be read ->
    the first one of its batch, None where nobody says.
    """
    found: list = []
    looks = itertools.count()

    def beyond(bad: int) -> tuple:
        """(the first offset behind that batch, whether it can be read; `end` can)."""
        exact = next(looks) < _LOOKS

        def same(at: int) -> bool:
            next(looks)
            if reach(at, min(at + 1, end)) > at:
                return False
            if not exact:
                return True
            begins = batch_of(at)
            return begins is not None and begins <= bad

        at = first_without(bad, end, same)
        return at, at == end or reach(at, min(at + 1, end)) > at

    while (bad := reach(first, end)) < end:
        first, readable = beyond(bad)
        while not readable:  # another batch that is damaged
            first, readable = beyond(first)
        found.append((bad, first))
    return found


def epochs_at(spark, topic: str, offsets: dict, client: dict, servers: str) -> dict:
    """partition -> leader epoch under which what stands there was written; offsets: partition -> offset.
    Left out is what cannot be read or has none. CannotRun where Java's consumer is out of reach.
    """
    from py4j.protocol import Py4JJavaError

    settings = {**client, "enable.auto.commit": "false", "auto.offset.reset": "none"}
    found = {}
    with java_admin.consumer(spark, servers, settings) as (jvm, consumer):
        for partition, offset in sorted(offsets.items()):
            place = jvm.org.apache.kafka.common.TopicPartition(topic, partition)
            consumer.assign(jvm.java.util.Collections.singletonList(place))
            consumer.seek(place, offset)
            deadline = time.monotonic() + _CONSUMER_SECONDS
            while consumer.position(place) <= offset and time.monotonic() < deadline:
                try:
                    records = consumer.poll(jvm.java.time.Duration.ofMillis(500)).records(place)
                except Py4JJavaError:  # a damaged batch says nothing
                    break
                if records.size() and records.get(0).offset() == offset:
                    epoch = records.get(0).leaderEpoch()
                    if epoch.isPresent():
                        found[partition] = epoch.get()
    return found


def first_without(low: int, end: int, same: Callable) -> int:
    """The first offset behind `low` that is not the `same`, `end` if there is none: what is the same stands together
    from `low` on. It asks few times.
    """
    step = 1
    while low + step < end and same(low + step):
        low, step = low + step, 2 * step
    high = min(low + step, end)
    while high - low > 1:
        middle = (low + high) // 2
        if same(middle):
            low = middle
        else:
            high = middle
    return high


def collect(
    frame_of: Callable, spans: dict, find: Optional[Callable] = None, check_crcs: bool = True
) -> tuple:
    """Run `frame_of(spans, check_crcs)` and collect it: (rows as dictionaries, what the
    consumer complained about, spans read, whether Kafka's own CRCs were checked).

    If the consumer refuses a batch, that is a finding. The batch is then read without Kafka's own
    CRC test (as from the beginning without `check_crcs`), so that the records' CRCs say which ones are
    damaged. What cannot be read even so, such as a compressed batch, is left out: by `find` (partition,
    span) -> `holes`, which costs no more than the batches; else the partition.
    """
    complaints: list = []
    left = dict(spans)
    while True:
        try:
            # dictionaries, because a Row looks for each of its names anew
            rows_read = [row.asDict() for row in frame_of(left, check_crcs).collect()]
            return rows_read, complaints, left, check_crcs
        except Exception as error:
            text = str(error)
            why = stack_trace.reason(text)
            unread = f"Spark could not read the topic: {with_remedy(error, _SEE_TO_IT)}"
            if not is_damage(text):
                raise CannotRun(unread) from error
            partition, offset = _place_of(text)
            if check_crcs:
                check_crcs = False
                reason = f"Kafka's consumer refuses it: {why}"
                complaints.append({"partition": partition, "offset": offset, "reason": reason})
                continue
            if partition not in left:
                raise CannotRun(unread) from error
            found = (find(partition, left[partition]) if find else None) or []
            if not found:
                del left[partition]
                reason = f"Kafka's consumer refuses it: {why}"
                complaints.append({"partition": partition, "offset": offset, "reason": reason})
            for first, end in found:
                left[partition] = without(left[partition], first, end)
                complaints.append(
                    {
                        "partition": partition,
                        "offset": first,
                        "records": end - first,
                        "reason": f"offsets {first} to {end - 1} cannot be decoded: {why}",
                    }
                )


def _place_of(text: str) -> tuple:
    """(partition, offset) that a consumer complains of, None each where it does not say."""
    if refused := _REFUSED.search(text):
        return int(refused[2]), int(refused[1])
    begin, batch = text.find("Received exception"), _BATCH.search(text)
    place = _PLACE.search(text, begin) if begin >= 0 else None
    if not place:
        return (int(batch[1]), int(batch[2])) if batch else (None, None)
    partition, offset = int(place[2]), place[3]
    if offset is None and batch and int(batch[1]) == partition:
        offset = batch[2]  # the batch's first
    return partition, None if offset is None else int(offset)

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Reading with Spark's Kafka source, so that a damaged or shortened topic becomes a finding and
not a crash.
"""

from __future__ import annotations

import json
import re
from typing import Callable

from flow.messages import stack_trace
from flow.messages.failure import CannotRun

# What Kafka's consumer says when the bytes that a broker serves are not a valid batch
_DAMAGED = re.compile(
    r"CorruptRecordException|InvalidRecordException|Record is corrupt"
    r"|Record batch .{0,80}is invalid"
    r"|Received exception when fetching the next record|is less than the minimum record overhead"
)
# what the source yields, for topics that hold nothing and for expressions that nobody has tried yet
COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,"
    " timestampType int, headers array<struct<key: string, value: binary>>"
)
_PLACE = re.compile(r"(?:from|partition) (\S+)-(\d+)(?:[^\d]+offset (\d+))?")


# Of a partition, in one answer; a task holds two such answers at most.
_FETCH_BYTES = 4 * 2**20
# A task's records: enough that what a task costs by itself (its consumer has to find the offset) does
# not count, few enough that the last task does not run alone for long, and that progress is seen.
LEAST_OF_A_TASK, MOST_OF_A_TASK = 250_000, 5_000_000


def records_of_a_task(spans: dict, cores: int) -> int:
    """The most records that one task should read; a partition with more is read by several.

    spans: partition -> (first offset, end offset). Four tasks for each core, so that one large
    partition, or few of them, keep every core busy to the end.
    """
    total = sum(end - first for first, end in spans.values())
    return min(max(-(-total // (4 * cores)), LEAST_OF_A_TASK), MOST_OF_A_TASK)


def rows(
    spark,
    topic: str,
    spans: dict,
    client: dict,
    servers: str,
    check_crcs: bool = True,
    headers: bool = False,
):
    """The topic's records as Spark reads them; spans: partition -> (first offset, end offset)."""
    wanted = {n: span for n, span in spans.items() if span[1] > span[0]}
    if not wanted:
        return spark.createDataFrame([], COLUMNS)
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
        "kafka.max.poll.records": "10000",
        # and each time it asks the broker twice where the partition begins and ends: of small records
        # several polls' worth come at once
        "kafka.max.partition.fetch.bytes": str(_FETCH_BYTES),
        "kafka.check.crcs": str(check_crcs).lower(),
        "includeHeaders": str(headers).lower(),
        "maxRecordsPerPartition": str(
            records_of_a_task(wanted, spark.sparkContext.defaultParallelism)
        ),
    }
    return reader.options(**options).load()


def collect(frame_of: Callable, spans: dict) -> tuple:
    """Run `frame_of(spans, check_crcs)` and collect it: (rows as dictionaries, what the
    consumer complained about, spans read, whether Kafka's own CRCs were checked).

    If the consumer refuses a batch, that is a finding. The batch is then read without Kafka's own
    CRC test, so that the records' CRCs say which ones are damaged; a partition that cannot be read
    even so is left out.
    """
    complaints: list = []
    left = dict(spans)
    check_crcs = True
    while True:
        try:
            # dictionaries, because a Row looks for each of its names anew
            rows_read = [row.asDict() for row in frame_of(left, check_crcs).collect()]
            return rows_read, complaints, left, check_crcs
        except Exception as error:
            text = str(error)
            why = stack_trace.reason(text)
            if not _DAMAGED.search(text):
                raise CannotRun(f"Spark could not read the topic: {why}") from error
            place = _PLACE.search(text[text.find("Received exception") :])
            partition = int(place.group(2)) if place else None
            complaints.append(
                {
                    "partition": partition,
                    "offset": int(place.group(3)) if place and place.group(3) else None,
                    "reason": f"Kafka's consumer refuses it: {why}",
                }
            )
            if check_crcs:
                check_crcs = False
            elif partition in left:
                del left[partition]
            else:
                raise CannotRun(f"Spark could not read the topic: {why}") from error

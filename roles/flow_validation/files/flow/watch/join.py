# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The stream-stream outer join of the ledger and the topic.

Both sides carry the time when the canary sent the record, the very same number, and both have a
watermark on it. It is among the columns of the join, so a row leaves the state as soon as the watermark
has passed it: joined before, or with the other side missing. Spark takes the lower of the two
watermarks. So nothing is called lost while one side stands still, as when no broker answers.
"""

from __future__ import annotations

import json
from typing import Callable, List

from flow.record import schema
from flow.watch.account import Row
from flow.watch.canary import LEDGER_DDL

# Of a session for a stream. State is small, and each of Spark's partitions costs four stores of it.
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    # Spark looks with a regular expression whether a batch in Python was interrupted by the end of the
    # query, and the stack trace that it looks through is long.
    "spark.driver.extraJavaOptions": "-Xss8m",
}
_KEYS = ("producer", "attempt", "partition", "sequence")


def start(
    spark,
    plan: dict,
    client: dict,
    servers: str,
    places: dict,
    delay_seconds: float,
    every_seconds: float,
    take: Callable[[int, List[Row]], None],
):
    """The running query. `plan`: run_id, topic, record_size, first_offsets (partition -> offset); `places`:
    ledger and checkpoint; `take`: is called with each batch's number and rows.
    """
    delay = f"{round(delay_seconds * 1000)} milliseconds"
    sent = (
        spark.readStream.schema(LEDGER_DDL)
        .option("cleanSource", "delete")
        .json(places["ledger"])
        .selectExpr("*", "timestamp_micros(sent_us) as moment")
        .withWatermark("moment", delay)
    )
    first = {plan["topic"]: plan["first_offsets"]}
    source = {
        **{f"kafka.{key}": value for key, value in client.items()},
        "kafka.bootstrap.servers": servers,
        "assign": json.dumps({plan["topic"]: sorted(map(int, plan["first_offsets"]))}),
        "startingOffsets": json.dumps(first),
        # what is missing is found by the ledger, and named
        "failOnDataLoss": "false",
    }
    topic = spark.readStream.format("kafka").options(**source).load()
    came = (
        schema.as_arrived(topic, plan["run_id"], plan["record_size"])
        .selectExpr("*", "timestamp_micros(sent_us) as moment")
        .withWatermark("moment", delay)
    )
    one, other = sent.alias("one"), came.alias("other")
    same = " and ".join(f"one.{name} = other.{name}" for name in (*_KEYS, "moment"))
    joined = _joined(one, other, same)

    def counted(frame, number: int) -> None:
        take(number, [Row(*row) for row in frame.collect()])

    return (
        joined.writeStream.foreachBatch(counted)
        .outputMode("append")
        .option("checkpointLocation", places["checkpoint"])
        .trigger(processingTime=f"{round(every_seconds * 1000)} milliseconds")
        .start()
    )


def _joined(one, other, same: str):
    from pyspark.sql.functions import expr

    either = [f"coalesce(one.{name}, other.{name}) as {name}" for name in (*_KEYS, "sent_us")]
    return one.join(other, expr(same), "full_outer").selectExpr(
        *either, "one.offset", "one.acknowledged_us", "other.read_offset", "other.appended_us"
    )

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts the views of each page in windows of a minute: Structured Streaming as a small data pipeline.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION-OF-YOUR-SPARK \\
        page_views.py client.properties TOPIC FOLDER

client.properties is what playbooks/client.yml has written. A record is JSON such as
{"page": "/prices", "at": "2026-11-25T13:00:07Z"}. Counts go to FOLDER/counts as JSON lines, one a window and page.

What matters here:
* Windows go by the time in the record, not by when it arrives. A view that is more than ten minutes late is left out:
  that is the watermark, without which Spark would have to remember every window for ever.
* A window is written once, when the watermark has passed its end, so nothing is counted twice.
* FOLDER/checkpoint has the offsets and the open windows: killed and started again, it goes on where it was.
* --once processes what is there and ends, for a scheduler; otherwise it runs until SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import signal
import threading

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

FIELDS = "page STRING, at TIMESTAMP"


def options_of(spark: SparkSession, path: str) -> dict:
    """The client settings as Spark takes them; Java reads its own format."""
    properties = spark._jvm.java.util.Properties()
    reader = spark._jvm.java.io.FileReader(path)
    properties.load(reader)
    reader.close()
    return {f"kafka.{key}": properties.getProperty(key) for key in properties.stringPropertyNames()}


def counted(records: DataFrame) -> DataFrame:
    """Views by window and page; records that are no JSON of this form are left out."""
    view = F.from_json(F.col("value").cast("string"), FIELDS).alias("view")
    views = records.select(view).select("view.*").where("page IS NOT NULL AND at IS NOT NULL")
    window = F.window("at", "1 minute").alias("window")
    by_page = views.withWatermark("at", "10 minutes").groupBy(window, "page")
    return by_page.count().select(
        "window.start", "window.end", "page", F.col("count").alias("views")
    )


def end_by_signal(stopped: threading.Event) -> None:
    """Set `stopped` at SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())


def main() -> None:
    """Start the query, and end it when a signal says so."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("settings", help="client.properties")
    parser.add_argument("topic")
    parser.add_argument("folder")
    parser.add_argument("--once", action="store_true", help="process what is there, and end")
    arguments = parser.parse_args()

    stopped = threading.Event()
    end_by_signal(stopped)
    spark = SparkSession.builder.appName("page_views").getOrCreate()
    end_by_signal(stopped)  # PySpark has taken Ctrl-C for itself
    records = (
        spark.readStream.format("kafka")
        .options(**options_of(spark, arguments.settings))
        .option("subscribe", arguments.topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        counted(records)
        .writeStream.format("json")
        .outputMode("append")
        .option("path", f"{arguments.folder}/counts")
        .option("checkpointLocation", f"{arguments.folder}/checkpoint")
        .trigger(**({"availableNow": True} if arguments.once else {"processingTime": "10 seconds"}))
        .start()
    )
    while query.isActive and not stopped.wait(0.2):
        pass
    query.stop()
    if query.exception():
        raise query.exception()
    spark.stop()


if __name__ == "__main__":
    main()

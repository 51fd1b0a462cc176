# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What naming costs where counting proves nothing, by the number of ranges that the ledger has.

    python -m tests.benchmarks.naming [--records 2000000] [--ranges 1,400,814,1600,8000] [--only NAME,...]

Without Kafka: records and ledger are made, kept on disk as the judge keeps them, and each check looks
at all of them. A transactional run of ten million records in twelve partitions has 814 ranges in each.
`runs` is what proves disturbed and healthy partitions instead. Printed are seconds of CPU of each check, on
all cores together, and their sum as a ratio to that of the first number of ranges: naming that is linear
in the ranges keeps it near 1.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from types import SimpleNamespace

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "roles" / "flow_validation" / "files"))
PLAN = SimpleNamespace(run_id="00" * 16, topic="made")
WRITER = (0, 7)  # producer, attempt


def ledger_of(partitions: int, of_each: int, ranges: int) -> list:
    """Rows with so many acknowledged ranges in each partition; one offset is free between two."""
    from flow.record.ledger import Row
    from flow.record.schema import ACKED

    length = of_each // ranges
    rows = []
    for partition in range(partitions):
        for number in range(ranges):
            first = number * length
            last = of_each - 1 if number == ranges - 1 else first + length - 1
            place = (first + number, last + number)
            rows.append(Row(*WRITER, partition, ACKED, first, last, *place))
    return rows


def records_of(spark, partitions: int, of_each: int, ranges: int):
    """The records that such a ledger tells of, as schema.with_fields gives them."""
    length = of_each // ranges
    shift = f"least(sequence div {length}L, {ranges - 1}L)"
    made = spark.range(partitions * of_each, numPartitions=partitions)
    return made.selectExpr(
        f"cast(id div {of_each}L as int) as partition", f"id % {of_each}L as sequence"
    ).selectExpr(
        "partition", f"sequence + {shift} as offset", "true as intact", "true as ours",
        "true as beside", f"{WRITER[0]} as producer", f"{WRITER[1]} as attempt",
        "partition as home", "sequence",
    )  # fmt: skip


def cpu_seconds(process: int) -> float:
    """What a process has used so far; the machine may be busy with something else."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def looks(records, ledger, spans) -> dict:
    """name -> DataFrame of violations."""
    from flow.judge import checks

    frames = {name: check(records, ledger) for name, check in checks.EXACT.items()}
    frames["missing"] = checks.missing(records, ledger, spans)
    frames["displaced"] = checks.displaced(records, ledger)
    return frames


def measure(spark, partitions: int, of_each: int, ranges: int, only: list) -> dict:
    """name of a check -> seconds of CPU."""
    from flow.judge import runs
    from flow.record import files
    from pyspark import StorageLevel

    rows = ledger_of(partitions, of_each, ranges)
    ledger = files.rows_frame(spark, PLAN, rows)
    records = records_of(spark, partitions, of_each, ranges).persist(StorageLevel.DISK_ONLY)
    records.count()
    spans = spark.createDataFrame(
        [(n, 0, of_each + ranges - 1) for n in range(partitions)],
        "partition int, first bigint, end bigint",
    )
    seconds: dict = {}
    java = spark.sparkContext._gateway.proc.pid
    for name, frame in looks(records, ledger, spans).items():
        if only and name not in only:
            continue
        started = cpu_seconds(java)
        found = frame.agg({"records": "sum"}).first()[0]
        seconds[name] = cpu_seconds(java) - started
        if found:
            sys.exit(f"{name} found {found} in records that are as the ledger says")
    if not only or "runs" in only:
        started = cpu_seconds(java)
        known = runs.collected(records)
        whole = dict.fromkeys(range(partitions), (0, of_each + ranges - 1))
        if runs.proven(known, rows, whole, dense=False) != set(whole):
            sys.exit("runs do not prove records that are as the ledger says")
        seconds["runs"] = cpu_seconds(java) - started
    records.unpersist(blocking=True)
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--ranges", default="1,400,814,1600,8000")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    from flow.engine import session

    with session.work_directory() as work:
        spark = session.start("local[*]", session.prepare_java(""), work, 10**9)
        of_each = options.records // options.partitions
        measure(spark, options.partitions, of_each // 10, 1, only)  # warms the JVM
        least = None
        for ranges in map(int, options.ranges.split(",")):
            seconds = measure(spark, options.partitions, of_each, ranges, only)
            least = least or sum(seconds.values())
            each = ", ".join(f"{name} {took:.1f}" for name, took in seconds.items())
            total = sum(seconds.values())
            print(
                f"{ranges:6} ranges: {total:6.1f} s, ratio {total / least:4.1f} ({each})",
                flush=True,
            )
        session.stop()


if __name__ == "__main__":
    main()

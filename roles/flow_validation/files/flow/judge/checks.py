# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The checks: DataFrames in, DataFrames of violations out. Built-in expressions only, no Python
per record.

Three passes, each only where the one before proved nothing:

`confirmation` compares each record with what the ledger says must stand at its offset. Where one
producer wrote a partition in one go, all of it can be said without taking a record apart.
`summary` counts by producer: where the number of records is the ledger's and (offset - sequence)
is one constant, the read records *are* the ledger's records, each once, in order. `suspicious`
finds where that does not hold, and only there the exact checks run, which name every violation.

records: partition, offset, intact, ours, beside, producer, attempt, home, sequence
    (schema.with_fields)
ledger:  the columns of schema.LEDGER_COLUMNS
violation: partition, offset, producer, attempt, sequence, records, reason
    (`records` is how many records one row stands for; what cannot be known is null)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Iterable, Optional

from flow.record.ledger import Row, complement
from flow.record.schema import ABORTED, ACKED, UNKNOWN, unpack_header
from flow.record.transactions import Layout, on_purpose, open_ended

KEY = ["home", "producer", "attempt", "sequence"]
_SAME_RECORD = (
    "home = l_partition and producer = l_producer and attempt = l_attempt"
    " and sequence between first_sequence and last_sequence"
)
_MOMENT = ("bucket", "latency_class")  # schema._timed; both have few values, whatever is read
_EXPLODE = 65536  # sequences an array holds while ranges are unfolded: bounds the memory of a task


@dataclass(frozen=True)
class Group:
    """What was read of one producer's attempt in one partition; `home` None: records that are not
    intact.
    """

    partition: int
    producer: Optional[int]
    attempt: Optional[int]
    home: Optional[int]
    records: int
    first_offset: int
    last_offset: int
    first_sequence: Optional[int]
    last_sequence: Optional[int]
    low_shift: Optional[int]  # least and greatest offset - sequence
    high_shift: Optional[int]


def writers(ledger: Iterable[Row]) -> dict:
    """partition -> (producer, attempt, offset - sequence), where the ledger leaves only one.

    Acknowledged by one attempt, all with one shift; what else it says of the partition (unknown,
    failed) is weighed by `suspicious` all the same.
    """
    seen: dict = {}
    for row in ledger:
        if row.outcome == ACKED and row.first_offset is not None:
            writer = (row.producer, row.attempt, row.first_offset - row.first_sequence)
            seen.setdefault(row.partition, set()).add(writer)
    return {partition: found.pop() for partition, found in seen.items() if len(found) == 1}


def _times() -> list:
    """What `timing.observe` adds up, beside the columns of `_MOMENT`."""
    from pyspark.sql import functions as F

    return [
        F.expr("min(micros) div 1000").alias("first_ms"),
        F.expr("max(micros) div 1000").alias("last_ms"),
        F.min("latency").alias("least_latency"),
        F.max("latency").alias("most_latency"),
    ]


def confirmation(records):
    """`schema.with_agreement` rows -> rows for each partition: how many there are and agree.

    Several rows a partition, by `_MOMENT`: the same pass tells when records were appended.
    """
    from pyspark.sql import functions as F

    return records.groupBy("partition", *_MOMENT).agg(
        F.count("*").alias("records"),
        F.sum(F.col("agrees").cast("bigint")).alias("agreeing"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        *_times(),
    )


def _merged(rows: Iterable, keys: tuple, sums: tuple, least: tuple, most: tuple) -> dict:
    """Rows with the same keys as one: key values -> column -> value; null where all are."""
    found: dict = {}
    for row in rows:
        key = tuple(bytes(v) if isinstance(v := row[k], bytearray) else v for k in keys)
        old = found.get(key)
        if old is None:
            found[key] = {name: row[name] for name in sums + least + most}
            continue
        for name in sums:
            old[name] += row[name]
        for names, choose in ((least, min), (most, max)):
            for name in names:
                values = [v for v in (old[name], row[name]) if v is not None]
                old[name] = choose(values) if values else None
    return found


def confirmed(rows: Iterable, writing: dict) -> list:
    """Collected rows of `confirmation` -> Groups of the partitions in which every record agrees."""
    found = []
    merged = _merged(
        rows, ("partition",), ("records", "agreeing"), ("first_offset",), ("last_offset",)
    )
    for (partition,), row in merged.items():
        if row["agreeing"] != row["records"]:
            continue
        producer, attempt, shift = writing[partition]
        first, last = row["first_offset"], row["last_offset"]
        found.append(
            Group(
                partition=partition,
                producer=producer,
                attempt=attempt,
                home=partition,
                records=row["records"],
                first_offset=first,
                last_offset=last,
                first_sequence=first - shift,
                last_sequence=last - shift,
                low_shift=shift,
                high_shift=shift,
            )
        )
    return found


def summary(counted):
    """One pass over the records: `schema.with_header` rows -> rows for each header, by `_MOMENT`."""
    from pyspark.sql import functions as F

    shift = F.col("offset") - F.col("sequence")
    return counted.groupBy("partition", "header", *_MOMENT).agg(
        F.count("*").alias("records"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.min("sequence").alias("first_sequence"),
        F.max("sequence").alias("last_sequence"),
        F.min(shift).alias("low_shift"),
        F.max(shift).alias("high_shift"),
        *_times(),
    )


def groups(rows: Iterable) -> list:
    """Collected rows of `summary` -> Groups."""
    found = []
    least = ("first_offset", "first_sequence", "low_shift")
    most = ("last_offset", "last_sequence", "high_shift")
    merged = _merged(rows, ("partition", "header"), ("records",), least, most)
    for (partition, header), data in merged.items():
        producer, attempt, home = (None,) * 3 if header is None else unpack_header(header)
        found.append(
            Group(partition=partition, producer=producer, attempt=attempt, home=home, **data)
        )
    return found


def suspicious(read: Iterable[Group], ledger: Iterable[Row], spans: dict) -> set:
    """Partitions where counting does not prove that everything is in order.

    spans: partition -> (first offset, end offset) that should have been read.
    The proof for one producer in one partition: n records were read, all with the same
    offset - sequence = c. Offsets differ, so the n sequences differ; they lie in the one
    acknowledged
    range of n sequences; so they are that range, and they rise with the offset.
    """
    expected: dict = {}
    for row in ledger:
        if row.outcome in (ACKED, UNKNOWN):
            expected.setdefault((row.partition, row.producer, row.attempt), []).append(row)
    doubtful, total, seen = set(), {}, set()
    for group in read:
        total[group.partition] = total.get(group.partition, 0) + group.records
        rows = expected.get((group.partition, group.producer, group.attempt))
        if group.home != group.partition or rows is None or not _proven(group, rows):
            doubtful.add(group.partition)
            if group.home is not None and group.home in spans:
                doubtful.add(group.home)
        else:
            seen.add((group.partition, group.producer, group.attempt))
    for key, rows in expected.items():
        if key not in seen and any(r.outcome == ACKED for r in rows):
            doubtful.add(key[0])
    for partition, (start, end) in spans.items():
        if total.get(partition, 0) != end - start:
            doubtful.add(partition)
    return doubtful


def _proven(group: Group, rows: list) -> bool:
    """Whether counting shows that the group is its ledger rows, each record once and in order.

    One shift and as many records as the sequences span: the group is a run without holes, in order.
    It must hold all that was acknowledged, where it was acknowledged; the rest must be unknown.
    """
    first, last = group.first_sequence, group.last_sequence
    if first is None or last is None:
        return False
    if group.low_shift != group.high_shift or group.records != last - first + 1:
        return False
    acked = [r for r in rows if r.outcome == ACKED]
    in_place = all(
        first <= r.first_sequence
        and r.last_sequence <= last
        and r.first_offset - r.first_sequence == group.low_shift
        for r in acked
    )
    ranges = [(r.first_sequence, r.last_sequence) for r in rows]
    return in_place and all(end < first for dummy, end in complement(ranges, last + 1))


def violations(frame, reason: str, records: str = "1"):
    """Rows of a frame as violations; `reason` and `records` are expressions."""
    columns = ("partition", "offset", "producer", "attempt", "sequence")
    chosen = [
        f"cast({c if c in frame.columns else 'null'} as bigint) as {c}" for c in columns
    ]  # fmt: skip
    return frame.selectExpr(*chosen, f"cast({records} as bigint) as records", f"{reason} as reason")


def in_ranges(violations):
    """Violations as before, with `last_offset`: those of single records with one reason that stand
    side by side, of one producer and in its sequence, are one row.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    single = violations.where("records = 1 and offset is not null")
    others = violations.where("records != 1 or offset is null")
    one = ["partition", "producer", "attempt", "reason"]
    along = Window.partitionBy(*one).orderBy("offset")
    joined = (
        single.withColumn("place", F.row_number().over(along))
        .withColumn("run", F.expr("offset - place"))
        .withColumn("shift", F.expr("offset - sequence"))
        .groupBy(*one, "run", "shift")
        .agg(
            F.min("offset").alias("offset"),
            F.min("sequence").alias("sequence"),
            F.sum("records").alias("records"),
            F.max("offset").alias("last_offset"),
        )
    )
    columns = ["partition", "offset", "producer", "attempt", "sequence", "records", "reason"]
    whole = others.selectExpr(*columns, "cast(null as bigint) as last_offset")
    return joined.select(*columns, "last_offset").unionByName(whole)


def _ranges(ledger, outcomes: list, along: str) -> tuple:
    """(the ledger's ranges, once for each block of `along` that they touch, as `l_block`; how many
    numbers a block has). `along`: "sequence" or "offset".

    So a join has an equal key, and compares a record with the ranges of its block alone. A block is as
    long as the ranges are on average. Then the ranges become at most three times as many rows, and all
    records together, each read once, are compared with at most three ranges each on average: a block's
    length times all rows is no more than three times what the ranges hold.
    """
    from pyspark.sql import functions as F

    chosen = ledger.where(F.col("outcome").isin(*outcomes))
    length = chosen.selectExpr("sum(last_sequence - first_sequence + 1) div count(*)").first()[0]
    block = max(1, length or 1)
    touched = f"sequence(first_{along} div {block}L, last_{along} div {block}L)"
    ranges = chosen.selectExpr(
        "producer as l_producer", "attempt as l_attempt", "partition as l_partition",
        "first_sequence", "last_sequence", "first_offset", "last_offset",
        f"explode({touched}) as l_block",
    )  # fmt: skip
    return F.broadcast(ranges), block


def _with_rows(records, ledger, outcomes: list, how: str = "inner"):
    """Records joined with the ledger's row that holds their sequence."""
    from pyspark.sql import functions as F

    ranges, block = _ranges(ledger, outcomes, "sequence")
    same = F.expr(f"{_SAME_RECORD} and sequence div {block}L = l_block")
    return records.join(ranges, same, how)


def _damaged(records, ledger):
    """Records that are not intact, each with the acknowledged record that stands at its offset, if
    any.
    """
    from pyspark.sql import functions as F

    ranges, block = _ranges(ledger, [ACKED], "offset")
    bad = records.where("not intact").select("partition", "offset", "ours")
    at = F.expr(
        f"partition = l_partition and offset div {block}L = l_block"
        " and offset between first_offset and last_offset"
    )
    return bad.join(ranges, at, "left").selectExpr(
        "partition", "offset", "ours", "l_producer as producer", "l_attempt as attempt",
        "first_sequence + (offset - first_offset) as sequence",
    )  # fmt: skip


def _taken(overwritten: Collection[int]) -> str:
    """Foreign bytes of partitions in which others have written over what was acknowledged."""
    return f"not ours and partition in ({', '.join(map(str, sorted(overwritten)))})"


def corrupt(records, ledger, overwritten: Collection[int] = ()):
    """Not intact, and it must be one of ours: it stands where one was acknowledged or carries the
    run id. Or it is, and what stands beside its value is not what was sent.
    """
    found = _damaged(records, ledger).where("producer is not null or ours")
    if overwritten:
        found = found.where(f"not ({_taken(overwritten)})")
    changed = records.where("intact and not beside")
    return violations(found, "'CRC, length or run id is wrong'").unionByName(
        violations(changed, "concat('not as it was sent: ', differing)")
    )


def phantom(records, ledger, overwritten: Collection[int] = ()):
    """Nothing in the ledger explains it: bytes of somebody else, or a sequence that was never
    sent.
    """
    found = foreign(records, ledger, overwritten)
    return found.unionByName(unexplained(records, ledger))


def foreign(records, ledger, overwritten: Collection[int] = ()):
    """Bytes of somebody else, where nothing of this run was acknowledged."""
    strange = "producer is null and not ours"
    if overwritten:
        strange = f"({strange}) or ({_taken(overwritten)})"
    found = _damaged(records, ledger).where(strange)
    return violations(found, "'not a record of this run'")


def unexplained(records, ledger, overwritten: Collection[int] = ()):
    """A sequence that was never sent."""
    explained = [ACKED, UNKNOWN, ABORTED]  # of aborted ones: see `atomicity`
    found = _with_rows(records.where("intact"), ledger, explained, "left_anti")
    return violations(found, "'no ledger row explains it'")


def loss(records, ledger, overwritten: Collection[int] = ()):
    """Acknowledged, and read nowhere. What stands damaged at its offset is corrupt, not lost."""
    ranges = ledger.where(f"outcome = '{ACKED}'").selectExpr(
        "partition as home", "producer", "attempt", "first_offset - first_sequence as shift",
        "last_sequence",
        f"explode(sequence(first_sequence, last_sequence, {_EXPLODE}L)) as low",
    )  # fmt: skip
    acked = ranges.selectExpr(
        "home", "producer", "attempt", "shift",
        f"explode(sequence(low, least(low + {_EXPLODE - 1}L, last_sequence))) as sequence",
    ).selectExpr("*", "home as partition", "sequence + shift as offset")  # fmt: skip
    missing = acked.join(records.where("intact").select(*KEY), KEY, "left_anti")
    damaged = records.where("not intact")
    if overwritten:
        damaged = damaged.where(f"not ({_taken(overwritten)})")
    damaged = damaged.select("partition", "offset")
    lost = missing.join(damaged, ["partition", "offset"], "left_anti")
    return violations(lost, "'acknowledged, not read'")


def duplicate(records, ledger, overwritten: Collection[int] = ()):
    """One sequence at two places: every place but the first counts."""
    return repeated(records.where("intact"), KEY)


def resent(records, ledger, renewed: list):
    """Records that their producer has sent again itself, as `KEY` and `again` (how many times).

    renewed: ledger.renewed. What was acknowledged is the last copy, or none: it was for want of an
    acknowledgement that it was sent again. A copy behind an acknowledged one is not the client's.
    """
    from pyspark.sql import functions as F

    may = records.sparkSession.createDataFrame(renewed, "producer int, attempt int")
    places = (
        records.where("intact and home = partition")
        .groupBy("partition", *KEY)
        .agg(F.count("*").alias("places"), F.max("offset").alias("last"))
        .where("places > 1")
        .join(F.broadcast(may), ["producer", "attempt"])
    )
    return (
        _with_rows(places, ledger, [ACKED], "left")
        .where("l_producer is null or last = first_offset + (sequence - first_sequence)")
        .selectExpr(*KEY, "places - 1 as again")
    )


def repeated(records, key: list):
    """Records whose `key` columns were at an earlier place before."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    several = records.groupBy(*key).count().where("count > 1").select(*key)
    place = Window.partitionBy(*key).orderBy("partition", "offset")
    again = (
        records.join(several, key)
        .withColumn("first_partition", F.first("partition").over(place))
        .withColumn("first_offset", F.first("offset").over(place))
        .withColumn("place", F.row_number().over(place))
        .where("place > 1")
    )
    reason = "concat('first read at partition ', first_partition, ' offset ', first_offset)"
    return violations(again, reason)


def order(records, ledger, overwritten: Collection[int] = ()):
    """The sequence falls from one offset to the next, or a record came out of another partition.

    Only the first place of each sequence counts: a repetition is a duplicate, not disorder.
    """
    from pyspark.sql import functions as F

    whole = records.where("intact")
    moved = whole.where("home != partition")
    once = (
        whole.where("home = partition").groupBy(*KEY).agg(F.min("offset").alias("offset"))
    ).withColumn("partition", F.col("home"))
    return fallen(once, ["home", "producer", "attempt"]).unionByName(
        violations(moved, "concat('was sent to partition ', home)")
    )


def fallen(records, within: list):
    """Records whose sequence is less than that of the one before, by offset, with the same `within`."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    along = Window.partitionBy(*within).orderBy("offset")
    found = records.withColumn("before", F.lag("sequence").over(along)).where("sequence < before")
    return violations(found, "concat('stands behind sequence ', before)")


def displaced(records, ledger):
    """Read at another offset than the one that was acknowledged.

    Told only where no other check explains it: whatever else is wrong moves records, too.
    """
    whole = records.where("intact and home = partition")
    found = _with_rows(whole, ledger, [ACKED]).where(
        "offset != first_offset + (sequence - first_sequence)"
    )
    reason = "concat('was acknowledged at offset ', first_offset + (sequence - first_sequence))"
    return violations(found, reason)


def gap(records, spans):
    """Offsets between first and end that nothing was read from. spans: partition, first, end."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    borders = spans.selectExpr("partition", "first - 1 as offset").unionByName(
        spans.selectExpr("partition", "end as offset")
    )
    along = Window.partitionBy("partition").orderBy("offset")
    holes = (
        records.select("partition", "offset")
        .unionByName(borders)
        .withColumn("before", F.lag("offset").over(along))
        .where("offset > before + 1")
        .selectExpr("partition", "before + 1 as offset", "offset - before - 1 as missing")
    )
    reason = "concat('offsets ', offset, ' to ', offset + missing - 1, ' hold nothing')"
    return violations(holes, reason, "missing")


def atomicity(records, ledger, rows: Iterable[Row], layout: Layout):
    """Records, as who reads committed ones gets them, of a transaction that was aborted; and
    transactions of which some records are there and others are not.

    The latter only where the ledger (`rows`) does not know how the transaction ended: in one that
    was committed, a record that is not there is lost.
    """
    from pyspark.sql import functions as F

    number = f"sequence div {layout.records}L"
    whole = records.where("intact and home = partition").withColumn("number", F.expr(number))
    of_aborted = _with_rows(whole, ledger, [ABORTED])
    told = violations(of_aborted, "concat('its transaction, ', number, ', was aborted')")
    sizes = whole.sparkSession.createDataFrame(
        [
            (*who, number, size, on_purpose(number))
            for *who, number, size in open_ended(rows, layout)
        ],
        "producer int, attempt int, number bigint, size bigint, purpose boolean",
    )
    seen = (
        whole.join(F.broadcast(sizes), ["producer", "attempt", "number"])
        .groupBy("producer", "attempt", "number", "size", "purpose")
        .agg(
            F.countDistinct("partition", "sequence").alias("seen"),
            F.min(F.struct("partition", "offset", "sequence")).alias("first"),
        )
        .selectExpr("*", "first.partition", "first.offset", "first.sequence")
    )
    forbidden = violations(
        seen.where("purpose"), "concat('its transaction, ', number, ', was to be aborted')", "seen"
    )
    torn = violations(
        seen.where("not purpose and seen < size"),
        "concat('of its transaction, ', number, ', ', seen, ' of ', size, ' records are there')",
        "size - seen",
    )
    return told.unionByName(forbidden).unionByName(torn)


def missing(records, ledger, spans):
    """`gap` where transactions are: only offsets at which a record of the run was acknowledged.

    Markers and aborted records, of the run or of others, leave offsets out, which no client is told of.
    """
    from pyspark.sql import functions as F

    ranges, block = _ranges(ledger, [ACKED], "offset")
    holes = gap(records, spans).selectExpr(
        "partition as hole_partition", "offset as low", "offset + records - 1 as high"
    )
    holes = holes.selectExpr(
        "*", f"explode(sequence(low div {block}L, high div {block}L)) as block"
    )
    # what both have in common, in the block in which it begins: once
    at = F.expr(
        "hole_partition = l_partition and block = l_block and low <= last_offset"
        f" and high >= first_offset and block = greatest(low, first_offset) div {block}L"
    )
    empty = holes.join(ranges, at).selectExpr(
        "l_partition as partition", "greatest(low, first_offset) as offset",
        "least(high, last_offset) as end",
    )  # fmt: skip
    reason = (
        "concat('offsets ', offset, ' to ', end, ' hold nothing, where records were acknowledged')"
    )
    return violations(empty, reason, "end - offset + 1")


EXACT = {
    "loss": loss,
    "phantom": phantom,
    "corrupt": corrupt,
    "duplicate": duplicate,
    "order": order,
}

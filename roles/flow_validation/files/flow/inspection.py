# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What can be said of a topic without a ledger, by expressions that say what a record means.

The checks are those of `checks`, on other columns:

records: partition, offset, chosen, id, by, sequence, intact   (fields)
    null where nobody gave an expression, or where a record is not chosen
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from datetime import datetime, timezone
from typing import Collection, Mapping, Optional, Sequence

from flow.judge import checks, judge, naming, reading, verdict
from flow.messages import progress, stack_trace
from flow.messages.failure import CannotRun
from flow.prepare import applied, java_admin, room
from flow.prepare.cluster import ABSENT_SECONDS, CLEANUP_POLICY, GONE, MIN_ISR, TIMESTAMP_TYPE
from flow.present import conclusion, sentence

SCHEMA_VERSION = 1
_SETTINGS_SECONDS = 5.0  # for the topic's settings at all brokers together

# id -> what it says when nothing is wrong
MEANING = {
    "gap": "No offset between first and last is empty.",
    "duplicate": "No id stands at two places.",
    "order": "Within a partition and a value of --by the sequence never falls.",
    "loss": "Within a value of --by no number of the sequence is left out.",
    "corrupt": "Every record is intact.",
    "durability": "All partitions have the planned number of replicas, min.insync.replicas is as planned.",
    "emptiness": "There was something to judge.",
}
_SAYS = {
    "gap": "no offset empty",
    "duplicate": "no id twice",
    "order": "in order",
    "loss": "none left out",
    "corrupt": "all intact",
}
_ORDERED = (
    "tinyint", "smallint", "int", "bigint", "float", "double", "decimal",
    "date", "timestamp", "timestamp_ntz",
)  # fmt: skip
_WHOLE = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class Expressions:
    """Spark SQL over the columns of `reading.COLUMNS`; None: not given."""

    id: Optional[str] = None
    sequence: Optional[str] = None
    by: str = "key"
    intact: Optional[str] = None
    where: Optional[str] = None
    contiguous: bool = False
    transactional: bool = False

    @classmethod
    def of(cls, options) -> "Expressions":
        """The options of the same names."""
        return cls(**{field.name: getattr(options, field.name) for field in fields_of(cls)})

    def given(self) -> dict:
        """name -> expression of those that mean something here."""
        by = self.by if self.sequence else None
        named = {"where": self.where, "id": self.id, "sequence": self.sequence, "by": by}
        return {k: v for k, v in {**named, "intact": self.intact}.items() if v}


@dataclass(frozen=True)
class Counted:
    """What one pass over a partition counted; `unjudged`: no id or sequence although it should;
    `key_bytes`: of ids, and of what sequences belong to, as texts.
    """

    records: int
    chosen: int
    unjudged: int
    damaged: int
    key_bytes: int


def refuse_wrong(spark, expressions: Expressions) -> None:
    """Raise CannotRun with a sentence if Spark cannot make sense of an expression."""
    nothing = spark.createDataFrame([], reading.COLUMNS)
    kinds = {}
    for name, expression in expressions.given().items():
        try:
            # beside a column, so that an aggregate is refused
            tried = nothing.selectExpr("offset", f"if(true, ({expression}), null) as it")
            kinds[name] = tried.schema["it"].dataType.simpleString()
        except Exception as error:
            raise CannotRun(f"--{name}: {stack_trace.first_line(str(error))}") from error
    for name in ("where", "intact"):
        if kinds.get(name, "boolean") != "boolean":
            raise CannotRun(f"--{name}: it must be true or false, and is {kinds[name]}")
    for name in ("id", "by"):
        if kinds.get(name, "").startswith("map"):
            raise CannotRun(f"--{name}: maps cannot be compared")
    kind = kinds.get("sequence", "bigint")
    ordered = _WHOLE if expressions.contiguous else _ORDERED
    if kind.partition("(")[0] not in ordered:
        what = "a whole number, so that one can be missing" if expressions.contiguous else "ordered"
        raise CannotRun(
            f"--sequence: it must be {what}, and is {kind}; cast it: try_cast(... as bigint)"
        )


def fields(kafka_rows, expressions: Expressions):
    """Kafka source rows -> one row a record with what the expressions say."""
    chosen = f"coalesce(({expressions.where or 'true'}), false) as chosen"
    return kafka_rows.selectExpr("*", chosen).selectExpr(
        "partition",
        "offset",
        "chosen",
        f"if(chosen, ({expressions.id or 'null'}), null) as id",
        f"if(chosen, ({expressions.by}), null) as by",
        f"if(chosen, ({expressions.sequence or 'null'}), null) as sequence",
        f"if(chosen, coalesce(({expressions.intact or 'true'}), false), true) as intact",
    )


def summary(records, expressions: Expressions):
    """`fields` rows -> a row for each partition: the columns of Counted."""
    from pyspark.sql import functions as F

    needed = [name for name in ("id", "sequence") if getattr(expressions, name)]
    missing = " or ".join(f"{name} is null" for name in needed) or "false"
    keys = [name for name, of in (("id", "id"), ("by", "sequence")) if getattr(expressions, of)]
    lengths = (f"coalesce(octet_length(string({name})), 0)" for name in keys)
    return records.groupBy("partition").agg(
        F.count("*").alias("records"),
        F.expr("count_if(chosen)").alias("chosen"),
        F.expr(f"count_if(chosen and ({missing}))").alias("unjudged"),
        F.expr("count_if(not intact)").alias("damaged"),
        F.expr(f"sum(bigint({' + '.join(lengths) or '0'}))").alias("key_bytes"),
    )


def duplicate(records):
    """One id at two places: every place but the first counts."""
    return checks.repeated(records.where("id is not null"), ["id"])


def order(records):
    """Within partition and `by` the sequence falls from one offset to the next; a repetition is a
    duplicate, not disorder.
    """
    again = duplicate(records).select("partition", "offset")
    once = records.where("sequence is not null").join(again, ["partition", "offset"], "left_anti")
    return checks.fallen(once, ["partition", "by"])


def loss(records, expired: bool = False):
    """Within `by` the sequence leaves numbers out; told at the record that follows. expired: the first records of
    partitions went by the topic's settings. Then only what stands in one partition is told: the numbers of others
    may have been among those.
    """
    found = _numbers_left_out(records, expired)
    if expired:
        found = found.where("one_place")
    whose = "coalesce(string(by), 'none')"
    reason = (
        f"concat('numbers ', before + 1, ' to ', sequence - 1, ' of ', {whose}, ' are left out')"
    )
    return checks.violations(found, reason, "sequence - before - 1")


def may_have_expired(records) -> int:
    """How many numbers `loss` does not tell of, since they may have expired."""
    found = _numbers_left_out(records, True).where("not one_place")
    return found.selectExpr("bigint(sum(sequence - before - 1))").first()[0] or 0


def _numbers_left_out(records, places: bool):
    """Records before which numbers are left out, with the last one `before`; with `places` also whether all
    records of their `by` stand in `one_place`, a partition.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_all = Window.partitionBy("by")
    along = of_all.orderBy("sequence", "partition", "offset")
    numbered = records.where("sequence is not null")
    if places:
        at = F.col("partition")
        numbered = numbered.withColumn(
            "one_place", F.min(at).over(of_all) == F.max(at).over(of_all)
        )
    before = numbered.withColumn("before", F.lag("sequence").over(along))
    return before.where("sequence > before + 1")


def corrupt(records):
    """The expression does not call it whole."""
    return checks.violations(records.where("not intact"), "'--intact is not true of it'")


def gap(spark, records, spans: dict):
    """Offsets of these spans (partition -> (first, end)) that nothing was read from."""
    from pyspark.sql import functions as F

    frame = spark.createDataFrame(
        [(number, *span) for number, span in sorted(spans.items())],
        "partition int, first bigint, end bigint",
    )
    inside = records.join(F.broadcast(frame), "partition").where("offset >= first")
    return checks.gap(inside, frame)


EXACT = {"duplicate": duplicate, "order": order, "loss": loss, "corrupt": corrupt}


def left_out(expressions: Expressions, policy: str) -> dict:
    """check id -> why it is not judged; policy: the topic's cleanup.policy."""
    why = {}
    if expressions.transactional:
        why["gap"] = "--transactional: aborted records and markers leave offsets out"
    elif "compact" in policy:
        why["gap"] = f"cleanup.policy is {policy}: compaction leaves offsets out"
    if "compact" in policy:
        why["loss"] = f"cleanup.policy is {policy}: compaction leaves numbers out"
    if not expressions.id:
        why["duplicate"] = "no --id"
    if not expressions.sequence:
        why["order"] = "no --sequence"
    if not (expressions.sequence and expressions.contiguous):
        why["loss"] = "no --sequence that is --contiguous"
    if not expressions.intact:
        why["corrupt"] = "no --intact"
    return why


def decide(
    found: list, counts: dict, topic: str, leaders: Mapping, unclear: Sequence[str] = ()
) -> tuple:
    """(verdict, one sentence). A violation decides, then what could not be judged. leaders:
    partition -> broker that leads it; unclear: sentences about what could not be judged.
    """
    if any(check.status == verdict.FAIL for check in found):
        told = [conclusion.with_topic(check.to_json(), topic) for check in found]
        return verdict.FAIL, sentence.of_failure(topic, told, leaders, inspected=True)
    open_ = list(unclear)
    if counts["unjudged"]:
        some = f"{counts['unjudged']:,} of {counts['chosen']:,}"
        open_.insert(0, f"{some} records have no id or sequence")
    if open_:
        return verdict.INCONCLUSIVE, f"nothing wrong was found, but {'; '.join(open_)}"
    said = ", ".join(_SAYS[check.id] for check in found if check.id in _SAYS)
    said = said or "every batch has its checksum; nothing more was asked"
    return verdict.PASS, f"{counts['chosen']:,} records: {said}"


@dataclass(frozen=True)
class _Seen:
    """What reading and judging a topic gave: partition -> partition.Partition after it, partition ->
    Counted, check id -> verdict.Check, check id -> why it was not judged.
    """

    now: dict
    counted: dict
    found: dict
    why: dict
    empty: int = 0  # offsets without a record, as markers of transactions leave them, too
    holes: Sequence = ()  # witnesses of those
    open: Sequence = ()  # sentences about what could not be judged

    def total(self, what: str) -> int:
        """The sum of a column of Counted."""
        return sum(getattr(each, what) for each in self.counted.values())


def inspect(spark, options, cluster, before: dict, topic_id: str, for_java, watch) -> dict:
    """Read the topic `options.topic` up to `before` (partition -> partition.Partition) and judge it;
    returns the document of inspection.json. topic_id: of that moment, "" where the cluster gives none.
    """
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    expressions = Expressions.of(options)
    refuse_wrong(spark, expressions)
    config = cluster.effective_config(options.topic, (MIN_ISR, TIMESTAMP_TYPE, CLEANUP_POLICY))
    why = left_out(expressions, config[CLEANUP_POLICY])
    try:
        seen = _look(spark, options, expressions, cluster, before, why, for_java, watch)
    except Exception as error:  # Spark has words of its own for that
        if cluster.why_unseen(options.topic) == GONE:
            raise CannotRun(_deleted(options.topic)) from error
        raise
    if topic_id and cluster.topic_id(options.topic) not in ("", topic_id):
        raise CannotRun(f"{_deleted(options.topic)}, and is another one since; inspect that one")
    found, why = dict(seen.found), seen.why
    registered = cluster.describe().brokers
    asked = applied.holders(seen.now, registered)
    of_each = cluster.settings_applied(options.topic, asked, (MIN_ISR,), _SETTINGS_SECONDS)
    config = applied.agreed(config, of_each)
    durable = _durability(spark, options, cluster, seen.now, (config, of_each), for_java)
    silent = verdict.untold(set(asked) - set(of_each))
    found["durability"] = durable.check
    counts = {
        "read": seen.total("records"),
        "chosen": seen.total("chosen"),
        "unjudged": seen.total("unjudged"),
    }
    unclear = [*durable.unclear, *silent, *seen.open]
    if counts["read"] and not counts["chosen"]:  # the expression's doing, not the cluster's
        del found["emptiness"]
        why = {**why, "emptiness": "--where is true of no record"}
        unclear.append(
            f"--where is true of none of {counts['read']:,} records; give another, or none"
        )
    elif not counts["chosen"]:
        found["emptiness"] = verdict.Check("emptiness", 1, [{"reason": "no record to judge"}])
    if seen.empty:
        why = {**why, "gap": "offsets are empty, as markers of transactions leave them"}
        unclear.append(
            f"{seen.empty:,} offsets hold nothing, the first {_first_place(seen.holes)}: if transactions are"
            " written to the topic, their markers stand there, and --transactional leaves them out;"
            " if none are, records are gone"
        )
    judged = [found[name] for name in MEANING if name in found]
    last = {**before, **seen.now}  # of a partition that is gone as it was
    leaders = {number: place.leader for number, place in last.items()}
    kind, said = decide(judged, counts, options.topic, leaders, unclear)
    passed = kind == verdict.PASS
    return {
        "schema_version": SCHEMA_VERSION,
        "cluster_id": cluster.describe().cluster_id,
        "verdict": kind,
        "summary": said,
        "started": started,
        "ended": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "what_now": sentence.what_now_of_others(vars(options), options.topic, passed),
        "checks": [conclusion.with_topic(check.to_json(), options.topic) for check in judged],
        "not_judged": [{"id": name, "reason": reason} for name, reason in why.items()],
        "expressions": expressions.given(),
        "counts": counts,
        "topic": {
            "name": options.topic,
            "partitions": len(before),
            "replication_factor": len(before[min(before)].replicas),
            "min_insync_replicas": int(config[MIN_ISR]),
            "message_timestamp_type": config[TIMESTAMP_TYPE],
            "cleanup_policy": config[CLEANUP_POLICY],
        },
        "partitions": [
            {
                "partition": number,
                "leader": last[number].leader,
                "replicas": list(last[number].replicas),
                "isr": list(last[number].isr),
                "start": place.start,
                "end": place.end,
                "read": _read(seen.counted, number),
            }
            for number, place in sorted(before.items())
        ],
        "versions": conclusion.versions(spark),
        "timings": watch.total(),
    }


def _look(spark, options, expressions, cluster, before, why, for_java, watch) -> _Seen:
    """Read the topic once to count, and again to compare records with each other where that is asked
    for or where counting does not prove that no offset is empty.
    """
    from pyspark import StorageLevel

    topic, committed = options.topic, expressions.transactional
    spans = {number: (place.start, place.end) for number, place in before.items()}
    if committed:
        for_java = {**for_java, "isolation.level": "read_committed"}

    def records(spans, check_crcs):
        servers = options.bootstrap_servers
        rows = reading.rows(spark, topic, spans, for_java, servers, check_crcs, headers=True)
        return fields(rows, expressions)

    total = sum(end - start for start, end in spans.values())
    count = progress.tasks_done(spark, total)
    with watch.step("read and count"), progress.following(options.output, "read", total, count):
        collected, complaints, readable, check_crcs = reading.collect(
            lambda spans, check_crcs: summary(records(spans, check_crcs), expressions),
            spans,
            lambda number, span: reading.holes(
                spark, topic, number, span, for_java, options.bootstrap_servers
            ),
        )
    counted = {row.pop("partition"): Counted(**row) for row in collected}
    found = {name: verdict.Check(name) for name in MEANING if name not in why}
    exact = [name for name in EXACT if name in found]
    if not any(each.damaged for each in counted.values()):
        exact = [name for name in exact if name != "corrupt"]
    empty = verdict.Check("gap")
    holes = any(_read(counted, n) != span[-1] - span[0] for n, span in readable.items() if span)
    with watch.step("compare records"):
        kept = None
        if exact or (holes and "gap" in found):
            _refuse_comparing_without_room(spark, counted.values())
            kept = records(readable, check_crcs).persist(StorageLevel.DISK_ONLY)
            kept.count()  # all of it, so that the positions asked for next are of a later moment
        now = cluster.positions(topic, wait=ABSENT_SECONDS, committed=committed, known=before)
        if not now:
            raise CannotRun(_deleted(topic))
        open_ = _others_of(before, now)
        if "gap" not in found:  # by which they would be told
            open_ += _gone(set(before) - set(now))
        expired = len(before) > 1 and any(place.start for place in before.values())
        if kept is not None:
            found.update({name: naming.tally(name, EXACT[name](kept))[0] for name in exact})
        if kept is not None and expired and found.get("loss", verdict.Check("loss")).count:
            found["loss"] = naming.tally("loss", loss(kept, expired))[0]
            open_ += _of_expired(may_have_expired(kept))
        if kept is not None and "gap" in found:
            # what retention took meanwhile is not missed
            left = {
                n: (min(max(span[0], now[n].start), span[-1]), span[-1])
                for n, span in readable.items()
                if span and n in now
            }
            empty = naming.tally("gap", gap(spark, kept, left))[0]
        if kept is not None:
            kept.unpersist()
    border = _borders(before, now) if "gap" in found else []
    if border:
        found["gap"] = judge.told(empty, border)
    elif (
        empty.count
    ):  # markers of transactions are no records either, and no client is told of them
        del found["gap"]
    if complaints:
        old = found.get("corrupt", verdict.Check("corrupt"))
        found["corrupt"] = judge.complained(old, complaints)
        why = {name: reason for name, reason in why.items() if name != "corrupt"}
    if border:
        return _Seen(now, counted, found, why, open=open_)
    return _Seen(now, counted, found, why, empty.count, empty.witnesses, open_)


def _borders(before: dict, now: dict) -> list:
    """verdict.gaps_at_the_borders of a topic that may let go of its first records meanwhile."""
    whole = {n: replace(place, end=place.start) for n, place in before.items()}
    return verdict.gaps_at_the_borders(whole, before, now, expired=set(before))


def _gone(numbers: Collection[int]) -> list:
    """A sentence about partitions of which no broker told when all was read; none if there are none."""
    if not numbers:
        return []
    named = f"partition{'s' * (len(numbers) > 1)} {', '.join(map(str, sorted(numbers)))}"
    return [f"no broker told any more of {named} when the topic had been read; inspect it again"]


def _deleted(topic: str) -> str:
    return f"topic {topic} was deleted while it was read"


def _others_of(before: dict, now: dict) -> list:
    """A sentence about partitions that were not known when it began."""
    more = sorted(set(now) - set(before))
    if not more:
        return []
    named = f"partition{'s' * (len(more) > 1)} {', '.join(map(str, more))}"
    return [f"{named} came to be known only while the topic was read; inspect it again"]


def _of_expired(numbers: int) -> list:
    """A sentence about so many numbers that are left out, and may have expired."""
    if not numbers:
        return []
    return [
        f"{numbers:,} numbers are left out, which may have stood among the first records of partitions, and those were"
        " deleted; give a --by whose records stand in one partition each, or --where without the oldest"
    ]


def _first_place(holes: Sequence) -> str:
    first = holes[0]
    return f"at offset {first['offset']:,} of partition {first['partition']}"


def _durability(spark, options, cluster, now: dict, told: tuple, for_java) -> verdict.Judged:
    """Of this moment. Where nobody planned how many replicas there are to be, all partitions are to have
    as many as the one with the most, of those that nobody reassigns.

    told: (the topic's settings, broker -> those that it applies).
    """
    config, of_each = told
    absent: set = set()
    topic, servers = options.topic, options.bootstrap_servers
    numbers = {len(place.replicas) for place in now.values()}
    wanted = options.replication_factor
    moving: Optional[set] = set()
    if len(numbers) > 1 or (wanted and max(numbers) > wanted):
        moving = java_admin.reassigned(spark, servers, for_java, topic, options.timeout)
        # what ended before that was asked is over by now
        layout = cluster.layout(topic, known=now, wait=ABSENT_SECONDS)
        absent = set(now) - set(layout)
        now = {n: replace(p, replicas=layout[n]["replicas"], isr=layout[n]["isr"])
               for n, p in now.items() if n in layout}  # fmt: skip
    calm = [len(p.replicas) for n, p in now.items() if n not in (moving or ())]
    planned = wanted or max(calm, default=0)
    least = applied.numbers(of_each, MIN_ISR)
    standing = verdict.Standing("now", now, int(config[MIN_ISR]), least)
    found = verdict.durability([standing], planned, options.min_isr or 1, moving=moving)
    return replace(found, unclear=[*found.unclear, *_gone(absent)])


def _refuse_comparing_without_room(spark, counted) -> None:
    """CannotRun if Spark's disk cannot hold what comparing takes: a full one helps nobody."""
    records, key_bytes = (sum(getattr(c, n) for c in counted) for n in ("records", "key_bytes"))
    short = room.short_for_comparing(spark, records, key_bytes)
    if short:
        raise CannotRun(f"{short}; --where leaves records out")


def _read(counted: dict, partition: int) -> int:
    return counted[partition].records if partition in counted else 0

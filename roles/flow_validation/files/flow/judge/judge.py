# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Reads the topic and applies the checks."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Collection, Optional

from flow.judge import checks, continuity, expiry, naming, reading, verdict
from flow.messages import progress, stopping
from flow.messages.failure import CannotRun, with_remedy
from flow.messages.output import note
from flow.prepare import applied, java_admin, leadership, listeners, room
from flow.prepare.cluster import ABSENT_SECONDS, GONE, HIDDEN, MIN_ISR, TIMESTAMP_TYPE
from flow.record import files, ledger, schema, timing, transactions

# Seconds beyond transaction.timeout.ms and two looks of the brokers, until they must have aborted a transaction.
_TRANSACTION_GRACE = 30
# What a broker allows by default (transaction.max.timeout.ms), in milliseconds.
_LONGEST_TRANSACTION_MS = 900_000
# How often a broker looks for transactions that nobody ends, by default.
_LOOKS_FOR_TRANSACTIONS_MS = 10_000
# Between the plan of a run and its first record: Spark may have to wait for its executors.
_BEGINNING_SECONDS = 600
# For replicas of brokers that are there to come into sync behind a disturbance.
_IN_SYNC_SECONDS = 30
# Until those are no longer waited for that come into sync and fall out of it again.
_UNSTEADY_SECONDS = 3 * _IN_SYNC_SECONDS
_AGAIN_SECONDS = 0.5
# How often it begins anew where a topic deletes what is being read.
_ROUNDS = 3
# By which a broker's clock may be wrong: what it stamps further away nobody has appended during the run.
_WRONG_CLOCK_SECONDS = 86_400
_SETTINGS_SECONDS = 5.0  # for settings of all brokers together


@dataclass(frozen=True)
class Results:
    """What judging found."""

    checks: list  # verdict.Check of what was judged, in the order of verdict.MEANING
    now: dict  # partition -> partition.Partition at the moment of reading
    read: dict  # partition -> records read
    doubtful: set  # partitions that were looked at record by record
    seen: timing.Observed  # when records were appended
    resent: int = 0  # copies that producers wrote themselves
    probes: list = field(default_factory=list)  # probes.Outcomes; their checks are in `checks`
    others: int = 0  # records of others between those of the run, in a topic that is shared
    unclear: list = field(default_factory=list)  # sentences about what could not be judged


@dataclass(frozen=True)
class _Counted:
    """What the passes found that count records instead of naming them."""

    read: dict  # partition -> records
    doubtful: set  # partitions in which counting does not prove that all is in order
    readable: dict  # partition -> (first, end) of what can be read at all
    complaints: list  # batches that Kafka's consumer refuses, as witnesses
    check_crcs: bool  # whether it may look at its own checksums
    seen: timing.Observed
    writers: frozenset = frozenset()  # (producer, attempt) whose records were seen


@dataclass(frozen=True)
class Judge:
    """Judges one run.

    options: the command line's; plan: the run's files.Plan; groups: its continuity.Groups;
    for_java: client settings for Spark; rows: the ledger; attempts: what it was made of.
    """

    spark: Any
    options: Any
    plan: files.Plan
    cluster: Any
    groups: continuity.Groups
    for_java: dict
    rows: list
    attempts: list
    watch: Any
    timestamps: bool = True  # whether they are what they were when the run was planned

    @property
    def _layout(self):
        return self.plan.transactions()

    def results(self) -> Results:
        """Read the topic and apply every check; anew, where the topic has deleted by its settings what was
        being read.
        """
        now, hanging = self._now(), []
        if self._layout and now:
            hanging = self._hanging(now)
            now = self._now()  # with what was written while that was waited for
        for _round in range(_ROUNDS):
            found = self._of_what_is_left(now, hanging)
            if not now or all(each.status == verdict.PASS for each in found.checks):
                return found
            asked = (*expiry.LETTING_GO, TIMESTAMP_TYPE)
            settings = self.cluster.effective_config(self.plan.topic, asked)
            of_each = self._applied(now, asked)
            settings = applied.agreed(settings, of_each)
            stamped = self._otherwise_stamped(settings, of_each)
            if self.timestamps and stamped and _is_wrong("corrupt", found):
                return self._without_timestamps(stamped)
            for each in (settings, *of_each.values()):
                if expiry.forgets(each):
                    return self._without_the_forgotten(found, each)
            if not self._shared and not expiry.changed(self.plan.keeps, settings):
                return found
            first = {n: max(at, now[n].start) for n, at in self._first.items() if n in now}
            now = self._now()
            why = self._deleted_by(expiry.begins_later(first, now), now)
            if not why:
                return found
        raise self._too_late(why)

    def _applied(self, now: dict, names: tuple) -> dict:
        """broker -> the topic's settings as it applies them, of those that hold replicas, are there and tell."""
        if not now:
            return {}
        brokers = applied.holders(now, self.cluster.describe().brokers)
        return self.cluster.settings_applied(self.plan.topic, brokers, names, _SETTINGS_SECONDS)

    def _otherwise_stamped(self, settings: dict, of_each: dict) -> str:
        """Why records may have timestamps of another kind than the plan says; "" if none may. settings: of the topic
        now, and `_applied`.
        """
        was = applied.when_planned(self.plan.cluster)
        for each, when in ((of_each, ""), (was, " when the run began")):
            if told := applied.differing(each, TIMESTAMP_TYPE):
                return f"the brokers differ in the topic's {TIMESTAMP_TYPE} ({told}){when}"
        stamped = settings.get(TIMESTAMP_TYPE, self.plan.timestamp_type)
        if stamped == self.plan.timestamp_type:
            return ""
        return f"the topic has {TIMESTAMP_TYPE}={stamped}, and had {self.plan.timestamp_type} when the run began"

    def _without_timestamps(self, why: str) -> Results:
        """`results` without those timestamps, which may be of another kind than the plan says."""
        found = replace(self, timestamps=False).results()
        found.unclear.append(f"{why}, so the records' timestamps are not judged")
        return found

    def _of_what_is_left(self, now: dict, hanging: list) -> Results:
        """`results` as of this moment, without what the topic has deleted by its settings: those of a topic of
        others, or of the run's own that somebody has changed.
        """
        begins = expiry.begins_later(self._first, now)
        why = self._deleted_by(begins, now)
        begins = {n: at for n, at in begins.items() if n in why}
        if not why:
            return self._results(now, hanging, set())
        if self._layout:  # which transactions are whole, nobody can know
            raise self._too_late(why)
        left = expiry.left(self.rows, begins)
        found = replace(self, rows=left)._results(now, hanging, set(begins))
        gone = ledger.counts(self.rows)[schema.ACKED] - ledger.counts(left)[schema.ACKED]
        found.unclear.append(
            f"{gone:,} acknowledged records were deleted by the topic's {_settings_of(why)} before they were judged;"
            " judge sooner, or give a topic that keeps them longer"
        )
        return found

    def _without_the_forgotten(self, found: Results, settings: dict) -> Results:
        """What was found without those checks that fail where the topic throws records away, which it does."""
        kept = [
            each
            for each in found.checks
            if each.status == verdict.PASS or each.id not in expiry.OF_FORGETTING
        ]
        dropped = [each.id for each in found.checks if each not in kept]
        was = self.plan.keeps.get(expiry.POLICY, "another")
        said = (
            f"the topic has {expiry.POLICY}={settings[expiry.POLICY]}, which was {was} when it was written, and throws"
            f" records away by it, so {', '.join(dropped)} cannot be judged; begin a new run"
        )
        return replace(found, checks=kept, unclear=[*found.unclear, said]) if dropped else found

    def _too_late(self, why: dict) -> CannotRun:
        return CannotRun(
            f"the topic {self.plan.topic} deletes records by its {_settings_of(why)} before they can be judged; give a"
            " topic that keeps them longer, or one of the run's own"
        )

    @property
    def _first(self) -> dict:
        """partition -> where the run's records begin: where the log ended, unless that was cut off again before the
        first record.
        """
        least = {n: ranges[0][0] for n, ranges in self._acknowledged.items()}
        return {n: min(end, least.get(n, end)) for n, end in self.plan.first_offsets().items()}

    @property
    def _acknowledged(self) -> dict:
        """ledger.acknowledged_offsets, of those of which an offset is known."""
        return ledger.acknowledged_offsets(row for row in self.rows if row.first_offset is not None)

    @property
    def _shared(self) -> bool:
        """Whether the topic is somebody else's, who may write to it as well."""
        return not self.plan.created

    def _age_seconds(self) -> float:
        """Since the plan of the run was made, before its first record."""
        return time.time() - datetime.fromisoformat(self.plan.started).timestamp()

    def _deleted_by(self, begins: dict, now: dict) -> dict:
        """expiry.reasons of those partitions of this topic, now."""
        if not begins:
            return {}
        topic, options = self.plan.topic, self.options
        names = (*expiry.SETTINGS, expiry.TIERED)
        settings = self.cluster.effective_config(topic, names)
        of_each = self._applied({n: now[n] for n in begins}, names)
        replicas = {number: list(now[number].isr) for number in begins}
        sizes: Optional[dict] = None
        # Of a topic with remote storage the brokers' disks have a part only of what its limit is for.
        if settings.get(expiry.TIERED) != "true":
            with contextlib.suppress(CannotRun):  # who may not ask is told that it stays open
                sizes = room.sizes(
                    self.spark,
                    options.bootstrap_servers,
                    self.for_java,
                    topic,
                    replicas,
                    options.timeout,
                )
        age, planned = self._age_seconds(), applied.when_planned(self.plan.cluster)
        found: dict = {}
        # of those of which no holder has told its settings, the topic's own speak
        silent = [n for n in begins if not set(now[n].replicas) & set(of_each)]
        if silent:
            kept, stamped = self.plan.keeps, self.plan.timestamp_type
            found = expiry.reasons(settings, age, silent, sizes, kept, stamped)
        for broker, each in of_each.items():
            held = [n for n in begins if broker in now[n].replicas]
            was = {**self.plan.keeps, **planned.get(broker, {})}
            apart = any(applied.differing(of_each, name) for name in names)
            stamped = was.get(TIMESTAMP_TYPE, self.plan.timestamp_type)
            for number, why in expiry.reasons(each, age, held, sizes, was, stamped).items():
                found.setdefault(number, f"{why} at broker {broker}" if apart else why)
        return found

    def _now(self) -> dict:
        """partition -> Partition of this moment."""
        found = self.cluster.positions(self.plan.topic, wait=ABSENT_SECONDS, known=self.plan.before)
        if not found and (why := self._why_absent()):
            raise CannotRun(why)
        return found

    def _why_absent(self) -> str:
        """Why a topic of which brokers tell nothing cannot be judged; "" where that is held against the
        cluster: the run's own went while the run itself went on.
        """
        topic, why = self.plan.topic, self.cluster.why_unseen(self.plan.topic)
        if why == HIDDEN:
            return (
                f"this user may not see the topic {topic} (TOPIC_AUTHORIZATION_FAILED), so nothing is judged; allow it"
                " Describe and Read on the topic, or give the --command-config and the listener by which it was written"
            )
        if self.options.mode == "run" and why == GONE and not self._shared:
            return ""
        if why == GONE:
            return (
                f"the topic {topic} is not there any more: somebody has deleted it since it was written, so"
                " there is nothing left to judge; begin a new run"
            )
        return f"no broker told of the topic {topic}; wait until the brokers answer again, then judge again"

    def _results(self, now: dict, hanging: list, expired: set) -> Results:
        """`results` as of this moment; expired: partitions whose first records went by the topic's settings."""
        unclear: list = []
        with stopping.threads(1) as other:  # groups mostly wait: for members, and for brokers
            wanted = self.plan.groups and self.options.groups  # --groups=0: not judged
            handed = other.submit(self._deliveries, now) if wanted else None
            spans = self._spans(now, hanging)
            counted = self._counted(spans)
            lost = self._lost_attempts(counted.writers)
            unclear += _of_lost(lost)
            judging = replace(
                self,
                attempts=[*self.attempts, *lost],
                rows=[*self.rows, *(row for each in lost for row in each.rows())],
            )
            named = judging._named(spans, counted, now)
        found = named.checks
        border = verdict.gaps_at_the_borders(
            self.plan.before, self.plan.after, now, expired, self._first
        )
        found["gap"] = told(found["gap"], [*self._created_again(), *border])
        found["corrupt"] = complained(found["corrupt"], counted.complaints)
        if self._layout:
            found["atomicity"] = told(found["atomicity"], hanging)
        if handed:
            deliveries, forgotten = self._remembered(handed.result(), expired)
            unclear += forgotten
            if deliveries:
                wrong = {each["partition"] for each in [*counted.complaints, *border, *hanging]}
                doubtful = named.touched | wrong - {None}
                check = continuity.check(self.plan.first_offsets(), deliveries, doubtful)
                not_known = continuity.unclear(deliveries, doubtful)
                unclear += not_known
                if check.count or not not_known:  # half a proof is none
                    found["continuity"] = check
        durable, settled, registered = self._durability(now)
        covered = self._coverage(now, settled, registered)
        found.update({"coverage": covered.check, "emptiness": self._emptiness(counted.read)})
        unclear += covered.unclear + listeners.unclear(self.plan.listeners) + durable.unclear
        hurt = {each["partition"] for each in border}
        hurt |= named.places.get("loss", set()) | named.places.get("gap", set())
        unclean = [
            {"partition": n, "reason": f"an unclean election: {why}; what was acknowledged is lost"}
            for n, why in self._elections(now, counted.doubtful).items()
            if n in hurt
        ]
        old = durable.check
        found["durability"] = verdict.Check(
            "durability", old.count + len(unclean), unclean + old.witnesses
        )
        judged = [found[name] for name in verdict.MEANING if name in found]
        return Results(
            judged,
            now,
            counted.read,
            named.hurt,
            counted.seen,
            named.resent,
            others=named.others,
            unclear=unclear,
        )

    def _lost_attempts(self, writers: Collection[tuple]) -> list:
        """ledger.Attempts whose records are there, (producer, attempt) of `writers`, and whose file is not.

        Of a run that came to its end every row is known, so there are none. Of one that was killed the
        files are the ledger; each was written before the attempt's first record, but may have got lost.
        """
        plan = self.plan
        if plan.ledger_rows is not None:
            return []
        known = {(each.producer, each.attempt) for each in self.attempts}
        shares = {n: ledger.share(plan.partitions, plan.producers, n, plan.records)
                  for n in range(plan.producers)}  # fmt: skip
        return [
            ledger.Attempt(producer, attempt, False, shares[producer])
            for producer, attempt in sorted(set(writers) - known)
            if producer in shares
        ]

    def _created_again(self) -> list:
        """A witness if the topic is not the one that was written to, though it has its name."""
        wrote, reads = self.plan.topic_id, self.cluster.topic_id(self.plan.topic)
        if not (wrote and reads) or wrote == reads:
            return []
        reason = f"the topic was deleted and created again: its id was {wrote} and is {reads}"
        return [{"records": 1, "reason": reason}]

    def _elections(self, now: dict, doubtful: set) -> dict:
        """partition -> why an election that was not clean is suspected there, or certain.

        Certain: at an offset of the run stands what was written under a later leader than the run's
        last. Suspected: a leader had not been in sync, while it was written; or between then and `now`, which
        may be days, and the end has fallen; or before the first record, which stands where others' did. Where the end
        is as far as it was, nothing was cut off.
        """
        last, before = self.plan.last_seen(), self.plan.before
        early = {n for n, first in self._first.items() if first < before[n].end}
        begun = [leadership.standing({n: m[n] for n in early if n in m}) for m in (before, last)]
        cut = {
            n
            for n, was in last.items()
            if n in now and (now[n].end < was.end or was.epoch is None)  # then nothing is certain
        }
        moments = [
            {n: (place.leader, place.isr) for n, place in moment.items() if n in cut}
            for moment in (last, now)
        ]
        known = [
            leadership.Election(each["partition"], each["leader"], tuple(each["in_sync"]))
            for each in self.plan.elections
        ]
        found = {
            each.partition: f"broker {each.leader} took the lead, when only"
            f" {', '.join(map(str, each.in_sync))} had everything"
            for each in [*leadership.unclean(begun), *known, *leadership.unclean(moments)]
        }
        return {**found, **self._written_later(now, doubtful)}

    def _written_later(self, now: dict, doubtful: set) -> dict:
        """The certain ones of `_elections`."""
        seen = self.plan.last_seen()
        last = {
            n: min(was.end, now[n].end) - 1
            for n, was in seen.items()
            if n in doubtful and n in now and was.epoch is not None
        }
        last = {n: offset for n, offset in last.items() if offset >= now[n].start}
        if not last:
            return {}
        topic, servers = self.plan.topic, self.options.bootstrap_servers
        try:
            epochs = reading.epochs_at(self.spark, topic, last, self.for_java, servers)
        except CannotRun:  # nothing is said without it
            return {}
        return {
            n: f"offset {last[n]} was written again under leader epoch {epoch}, and the run's last was"
            f" {seen[n].epoch}"
            for n, epoch in epochs.items()
            if epoch > seen[n].epoch
        }

    def _hanging(self, now: dict) -> list:
        """Witnesses of transactions that nobody ends. CannotRun if others may be writing them."""
        topic = self.plan.topic
        with self.watch.step("wait for open transactions"):
            # of a producer that died the cluster ends them after a while, and looks every so often
            looks = self._of_brokers(expiry.LOOKS_FOR_TRANSACTIONS)
            every = max(looks, default=_LOOKS_FOR_TRANSACTIONS_MS) / 1000
            grace = _TRANSACTION_GRACE + 2 * every
            limit = self.plan.transaction_timeout + grace
            # where others write, there may always be an open one behind the run's own records
            upto = {n: was.end for n, was in self.plan.after.items()} if self._shared else None
            ends, stable = self.cluster.stable_ends(topic, limit, list(now), upto)
        found = transactions.still_open(ends, stable, limit)
        if found and not looks:
            raise CannotRun(
                f"{_open_at(found[0], limit)}, and hides the run's records behind it. No broker tells how often"
                f" it looks for them ({expiry.LOOKS_FOR_TRANSACTIONS}): allow this user DescribeConfigs on the cluster,"
                f" then `job.py verify --ledger {self.options.ledger}` judges the run"
            )
        if not (found and self._shared):
            return found
        longest, age = self._longest_transaction(), self._age_seconds()
        begun_before = age - self.plan.produce_seconds - _BEGINNING_SECONDS
        # whoever began it, it must be over
        if upto and begun_before > longest + grace:
            return found
        raise CannotRun(
            f"{_open_at(found[0], limit)}, and hides the run's records behind it. Others write to {topic}, and the"
            f" brokers let a transaction take {longest:.0f} s: when it has ended,"
            f" `job.py verify --ledger {self.options.ledger}` judges the run; or give a topic of its own"
        )

    def _longest_transaction(self) -> float:
        """Seconds that brokers let a transaction take."""
        told = self._of_brokers(expiry.LONGEST_TRANSACTION)
        return max(told, default=_LONGEST_TRANSACTION_MS) / 1000

    def _of_brokers(self, name: str) -> list:
        """The values of this setting, a number, at the brokers that tell it."""
        brokers = list(self.plan.brokers)
        told = self.cluster.settings_of_brokers(brokers, (name,), _SETTINGS_SECONDS)
        return [int(each[name]) for each in told.values() if each.get(name)]

    def _deliveries(self, now: dict) -> dict:
        """group -> continuity.Delivery."""
        ends = {number: place.end for number, place in now.items()}
        if self._shared:  # what others wrote since is not asked for
            ends = {n: min(end, self.plan.after[n].end) if n in self.plan.after else end
                    for n, end in ends.items()}  # fmt: skip
        with self.watch.step("consumer groups"):
            asked = continuity.sample(self.plan.first_offsets(), ends)
            deliveries = self.groups.deliveries(asked)
        if self._layout or self._shared:  # markers and aborted records are handed to nobody
            return continuity.without(deliveries, ledger.acknowledged_offsets(self.rows))
        return deliveries

    def _remembered(self, deliveries: dict, expired: set) -> tuple:
        """(deliveries by which continuity can be judged, sentences about the others). What a group had
        committed may be forgotten by now, or lie before the first record that is left.
        """
        left = {
            name: replace(
                each,
                missed={n: ranges for n, ranges in each.missed.items() if n not in expired},
                unread={n: ranges for n, ranges in each.unread.items() if n not in expired},
            )
            for name, each in deliveries.items()
        }
        empty = [name for name, each in left.items() if _forgot(each)]
        if not empty:
            return left, []
        names, brokers = (expiry.OFFSETS_MINUTES,), list(self.plan.brokers)
        told = self.cluster.settings_of_brokers(brokers, names, _SETTINGS_SECONDS)
        if not expiry.offsets_forgotten(told, self._age_seconds()):
            return left, []
        known = any(names[0] in each for each in told.values())
        why = f"is older than the brokers' {expiry.OFFSETS_MINUTES}, and forgotten"
        if not known:
            why = (
                f"is gone, perhaps by the brokers' {expiry.OFFSETS_MINUTES}, which this user may not ask for (allow it"
                " DescribeConfigs on the cluster)"
            )
        return {name: each for name, each in left.items() if name not in empty}, [
            f"what {', '.join(sorted(empty))} had committed {why}, so continuity is not judged by it"
        ]

    def _spans(self, now: dict, hanging: list) -> dict:
        """partition -> (first offset, end offset) of what is to be read."""
        stable = {}
        if self._layout and self._shared:  # others have begun transactions since
            asked = self.cluster.positions(
                self.plan.topic, wait=ABSENT_SECONDS, committed=True, known=now
            )
            stable = {n: place.end for n, place in asked.items()}
        stable.update({witness["partition"]: witness["offset"] for witness in hanging})
        # one answer of a leader tells where the run ended, and its acknowledgements are as good a word
        acknowledged = {n: max(last for _first, last in ranges) + 1
                        for n, ranges in self._acknowledged.items()}  # fmt: skip
        spans, first = {}, self._first
        for number, place in now.items():
            # what stood there before the first write is none of this run's business
            start = max(place.start, first.get(number, place.start))
            end = min(place.end, stable.get(number, place.end))
            if self._shared and self.plan.after:
                # nor is what others have written since the last one, or to partitions that came later
                after = self.plan.after.get(number)
                end = min(end, max(after.end, acknowledged.get(number, 0))) if after else start
            spans[number] = (start, max(start, end))
        return spans

    def _source(self, spans: dict, check_crcs: bool):
        """The topic's records as a DataFrame."""
        client = self.for_java
        if self._layout:
            client = {**client, "isolation.level": "read_committed"}
        servers = self.options.bootstrap_servers
        return reading.rows(
            self.spark, self.plan.topic, spans, client, servers, check_crcs, self.plan.beside
        )

    def _find(self, partition: int, span: tuple) -> Optional[list]:
        """reading.holes of this topic; None where Java's consumer cannot be asked."""
        topic, servers = self.plan.topic, self.options.bootstrap_servers
        try:
            return reading.holes(self.spark, topic, partition, span, self.for_java, servers)
        except CannotRun as error:
            note(f"note: partition {partition} is left out as a whole: {error}")
            return None

    @property
    def _sent(self) -> schema.Sent:
        """What must stand beside the values; schema.as_sent."""
        if not self.plan.beside:
            return schema.ANYTHING
        if not self.timestamps:
            return schema.as_sent(self.plan.run_id, timed=False)
        if self.plan.timestamp_type == timing.CREATED:
            return schema.as_sent(self.plan.run_id)
        began = datetime.fromisoformat(self.plan.started).timestamp()
        end = self._end_at_most(began)
        return schema.as_sent(
            self.plan.run_id, (began - _WRONG_CLOCK_SECONDS, end + _WRONG_CLOCK_SECONDS)
        )

    def _end_at_most(self, began: float) -> float:
        """Seconds since 1970, after which nothing was written: of a run that was killed, as far as its attempts tell,
        of which one at least was always going on.
        """
        seconds = self.plan.produce_seconds or sum(each.seconds for each in self.attempts)
        now = time.time()
        return min(now, began + _BEGINNING_SECONDS + seconds) if seconds else now

    def _counted(self, spans: dict) -> _Counted:
        """Read once, and confirm by counting what the ledger says; where that fails, count anew."""
        plan, layout = self.plan, self._layout
        seconds = plan.produce_seconds or max((each.seconds for each in self.attempts), default=0.0)
        clock = timing.clock(plan.timestamp_type, seconds, plan.partitions, plan.records)
        division: tuple = ()
        if layout:
            writing = transactions.writers(self.rows, layout)
            division = (layout.records, transactions.ABORT_EVERY)
        else:
            writing = checks.writers(self.rows)
        shape = (plan.run_id, plan.record_size)

        def confirmation(spans, check_crcs):
            kafka = self._source(spans, check_crcs)
            return checks.confirmation(
                schema.with_agreement(kafka, *shape, writing, clock, division, self._sent)
            )

        def summary(spans, check_crcs):
            kafka = self._source(spans, check_crcs)
            return checks.summary(schema.with_header(kafka, *shape, clock, self._sent))

        total = sum(end - start for start, end in spans.values())
        count = progress.tasks_done(self.spark, total)
        following = progress.following(self.options.output, "read", total, count)
        with self.watch.step("read and judge"), following:
            simple = {n: span for n, span in spans.items() if n in writing}
            agreed, complaints, left, check_crcs = reading.collect(confirmation, simple, self._find)
            # A batch that Kafka's consumer refuses leaves open what the pass has seen.
            groups = [] if complaints else checks.confirmed(agreed, writing)
            done = {group.partition for group in groups}
            # without what the first pass has found that it cannot read
            rest = {n: left.get(n, ()) if n in simple else span for n, span in spans.items()
                    if n not in done}  # fmt: skip
            rest = {n: span for n, span in rest.items() if span}
            moments = [row for row in agreed if row["partition"] in done]
            readable = rest
            if any(map(reading.length, rest.values())):
                collected, more, readable, check_crcs = reading.collect(
                    summary, rest, self._find, check_crcs
                )
                complaints = complaints + more
                groups += checks.groups(collected)
                moments += collected
            read: dict = {}
            for group in groups:
                read[group.partition] = read.get(group.partition, 0) + group.records
            if layout:
                doubtful = transactions.suspicious(read, done, self.rows, spans, layout)
            else:
                doubtful = checks.suspicious(groups, self.rows, spans)
            # what was left out of a partition stays left out
            readable = {**{n: spans[n] for n in done}, **readable}
            seen = timing.observe(clock, moments)
        writers = frozenset(
            (each.producer, each.attempt) for each in groups if each.home is not None
        )
        return _Counted(read, doubtful, readable, complaints, check_crcs, seen, writers)

    def _named(self, spans: dict, counted: _Counted, now: dict) -> naming.Named:
        """What the checks find that look at every record, where counting proved nothing."""
        names = [*checks.EXACT, "gap", *(["atomicity"] if self._layout else [])]
        if not counted.doubtful:
            return naming.Named({name: verdict.Check(name) for name in names}, 0, set())
        from pyspark import StorageLevel

        with self.watch.step("name what is wrong"):
            part = {n: span for n, span in counted.readable.items() if n in counted.doubtful}
            self._refuse_naming_without_room(part)
            kafka = self._source(part, counted.check_crcs)
            records = schema.with_fields(kafka, self.plan.run_id, self.plan.record_size, self._sent)
            records = records.persist(StorageLevel.DISK_ONLY)  # 40 bytes each, not the payload
            work = naming.Naming(
                self.spark, self.plan, self.rows, self.attempts, self._layout, self._shared
            )
            overwritten = set(self._elections(now, counted.doubtful))
            size = sum(map(reading.length, part.values()))
            try:
                with naming.sorting(self.spark, size):
                    return work.named(records, counted.doubtful, spans, overwritten)
            except Exception as error:
                why = with_remedy(error, "see to that")
                raise CannotRun(
                    f"records are in doubt, but could not be looked at one by one: {why}; then `job.py"
                    f" verify --ledger {self.options.ledger}` names what is wrong"
                ) from error
            finally:
                with contextlib.suppress(Exception):  # Spark may be what is gone
                    records.unpersist()

    def _refuse_naming_without_room(self, spans: dict) -> None:
        """CannotRun if Spark's disk cannot hold what naming takes: a full one helps nobody."""
        records = sum(map(reading.length, spans.values()))
        short = room.short_for_naming(self.spark, records)
        if short:
            raise CannotRun(
                f"counting is not a proof for {len(spans)} of the partitions of {self.plan.topic}, and"
                f" {short};"
                f" with more room, `job.py verify --ledger {self.options.ledger}` names what is wrong"
            )

    def _coverage(self, now: dict, settled: dict, registered: set) -> verdict.Judged:
        """settled, registered: as of `_in_sync`."""
        plan = self.plan
        # Those that the run had records for, whatever became of them: a produce step that was killed, or
        # a task that never began, is not a broker's fault.
        tested = set(range(min(plan.partitions, plan.records)))
        return verdict.coverage(
            list(plan.brokers),
            [plan.before, plan.after, now],
            tested,
            (
                plan.expected_brokers
                if self.options.expected_brokers is None
                else self.options.expected_brokers
            ),
            listeners.troubles(plan.listeners),
            # a topic of others may lie on few brokers: then it stays open what the others do
            every_broker=not self._shared,
            registered=registered,
            settled=settled,
        )

    def _emptiness(self, read: dict) -> verdict.Check:
        # Without an acknowledgement there was nothing to read: that stays open, and is not a violation.
        acked = any(row.outcome == schema.ACKED for row in self.rows)
        nothing = (
            [{"reason": "no record could be read"}] if acked and not sum(read.values()) else []
        )
        return verdict.Check("emptiness", len(nothing), nothing)

    def _durability(self, now: dict) -> tuple:
        """(verdict.Judged by the command line's plans, or the ledger's, before the first write and now; the first two
        of `_in_sync`).
        """
        plan, options = self.plan, self.options
        config = self.cluster.effective_config(plan.topic, (MIN_ISR,)) if now else {}
        of_each = self._applied(now, (MIN_ISR,))
        greatest = max(
            int(config.get(MIN_ISR) or 0), *applied.numbers(of_each, MIN_ISR).values(), 0
        )
        replication = options.replication_factor or plan.planned_replication
        settled, registered, progress_of = self._in_sync(now, greatest)
        odd = {n for n, place in settled.items() if len(place.replicas) > replication > 0}
        odd |= set(verdict.out_of_sync(settled))
        moving: Optional[set] = set()
        if odd:
            servers, timeout = options.bootstrap_servers, options.timeout
            moving = java_admin.reassigned(self.spark, servers, self.for_java, plan.topic, timeout)
            # a move that was over before that was asked for is over by now
            again = self._standing(now)
            settled = {n: again.get(n, place) for n, place in settled.items()
                       if n in again or n not in odd}  # fmt: skip
        of_each = {**self._applied(settled, (MIN_ISR,)), **of_each}
        silent = set(applied.holders(settled, registered)) - set(of_each)
        was = applied.numbers(applied.when_planned(plan.cluster), MIN_ISR)
        min_isr = applied.agreed(config, of_each).get(MIN_ISR)
        standings = [
            verdict.Standing("before the first write", plan.before, plan.min_isr, was),
            verdict.Standing(
                "when the records were read",
                settled,
                int(min_isr) if min_isr else None,
                applied.numbers(of_each, MIN_ISR),
            ),
        ]
        planned = options.min_isr or plan.planned_min_isr
        judged = verdict.durability(
            standings,
            replication,
            planned,
            registered,
            moving,
            list(plan.brokers),
            self._shared,
            progress_of,
            plan.leaving_brokers,
        )
        unclear = [*judged.unclear, *verdict.untold(silent), *_absent(set(now) - set(settled))]
        return replace(judged, unclear=unclear), settled, registered

    def _in_sync(self, now: dict, min_isr: int) -> tuple:
        """(partition -> Partition as in `now`, with replicas and ISR as soon as each replica of a
        broker that is there is in sync, and as many as min_isr, or after a while; ids of the brokers that
        are there; verdict.progress of replicas that are not in sync then).
        """
        began = time.monotonic()
        known = set(self.plan.brokers) - set(self.plan.leaving_brokers)
        behind = _Behind()
        while True:
            found = self._standing(now)
            registered = set(self.cluster.describe().brokers)
            # one that has just started, or answers, does not know of the others yet
            unknown = known - registered and time.monotonic() - began < ABSENT_SECONDS
            late = {
                n: registered & set(brokers) for n, brokers in verdict.out_of_sync(found).items()
            }
            late = {n: brokers for n, brokers in late.items() if brokers}
            few = any(len(p.isr) < min(min_isr, len(p.replicas)) for p in found.values())
            at = time.monotonic()
            if new := behind.note(late, at):
                behind.was.update(self._bytes_of(new))
            over = at - began > _IN_SYNC_SECONDS and not behind.lately(at)
            if not (few or unknown or late) or over or at - began > _UNSTEADY_SECONDS:
                grown = verdict.progress(behind.was, self._bytes_of(late), late) if late else {}
                return found, registered, {**grown, **dict.fromkeys(behind.lately(at), True)}
            time.sleep(_AGAIN_SECONDS)

    def _bytes_of(self, replicas: dict) -> dict:
        """room.held of these replicas (partition -> brokers)."""
        servers, topic = self.options.bootstrap_servers, self.plan.topic
        wait = self.options.timeout
        return room.held(self.spark, servers, self.for_java, topic, replicas, wait)

    def _standing(self, now: dict) -> dict:
        """partition -> Partition as in `now`, with replicas and ISR of this moment; without those of which no broker
        tells.
        """
        layout = self.cluster.layout(self.plan.topic, known=now, wait=ABSENT_SECONDS)
        return {
            n: replace(place, replicas=layout[n]["replicas"], isr=layout[n]["isr"])
            for n, place in now.items()
            if n in layout
        }


@dataclass
class _Behind:
    """Replicas, as (partition, broker), that are not in sync: `since` when, in seconds, and how many bytes each `was`
    then.
    """

    since: dict = field(default_factory=dict)
    was: dict = field(default_factory=dict)

    def note(self, late: dict, at: float) -> dict:
        """Those of `late` (partition -> brokers) that were in sync until now. One that is so again is forgotten."""
        there = {(n, broker) for n, brokers in late.items() for broker in brokers}
        new = there - set(self.since)
        self.since = {each: self.since.get(each, at) for each in there}
        self.was = {each: size for each, size in self.was.items() if each in there - new}
        found: dict = {}
        for number, broker in sorted(new):
            found.setdefault(number, set()).add(broker)
        return found

    def lately(self, at: float) -> list:
        """Those that have not been behind for so long that they would have to be in sync again."""
        return [each for each, since in self.since.items() if at - since <= _IN_SYNC_SECONDS]


def _absent(numbers: Collection[int]) -> list:
    """A sentence about partitions of which no broker told; none if there are none."""
    if not numbers:
        return []
    named = f"partition{'s' * (len(numbers) > 1)} {', '.join(map(str, sorted(numbers)))}"
    return [
        f"no broker told any more of {named}, whose replicas are not judged; verify again when the brokers answer"
    ]


def _is_wrong(name: str, found: Results) -> bool:
    return any(each.id == name and each.count for each in found.checks)


def _settings_of(why: dict) -> str:
    """The settings of expiry.reasons, in words."""
    return " and ".join(sorted(set(why.values())))


def _open_at(witness: dict, limit: float) -> str:
    """Part of a sentence about a transaction that nobody has ended so long."""
    where = f"offset {witness['offset']} of partition {witness['partition']}"
    return f"a transaction that begins at {where} is open after {limit:.0f} s"


def _of_lost(attempts: list) -> list:
    """A sentence about ledger.Attempts whose files are gone; none if there are none."""
    if not attempts:
        return []
    named = ", ".join(f"{each.producer:05d}-{each.attempt:05d}" for each in attempts)
    return [
        f"_attempts of the ledger lacks {named}, so nobody knows what was acknowledged to those"
    ]


def _forgot(delivery: continuity.Delivery) -> bool:
    """Whether the cluster has no commit of the group at all, and said so."""
    return bool(delivery.committed) and set(delivery.committed.values()) == {None}


def told(check: verdict.Check, more: list) -> verdict.Check:
    """The check with what was seen beside the records: ends, starts, epochs, open transactions."""
    count = check.count + sum(w["records"] for w in more)
    return verdict.Check(check.id, count, more + check.witnesses)


def complained(corrupt: verdict.Check, complaints: list) -> verdict.Check:
    """The check with the batches that Kafka's own consumer refuses: what could be read of them is counted already,
    and of one that could not be decoded the records count, once, whatever else was said of it.
    """
    told = [
        each
        for number, each in enumerate(complaints)
        if each.get("records")
        or not any(_covers(later, each) for later in complaints[number + 1 :])
    ]
    holes = [each["records"] for each in told if each.get("records")]
    count = max(corrupt.count, len(told) - len(holes)) + sum(holes)
    return verdict.Check("corrupt", count, corrupt.witnesses + told)


def _covers(other: dict, complaint: dict) -> bool:
    """Whether that other complaint is of the same place, too, or of a hole that holds it."""
    first, offset = other["offset"], complaint["offset"]
    if other["partition"] != complaint["partition"] or first is None or offset is None:
        return False
    return first <= offset < first + other.get("records", 1)

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The streaming proof as it runs: canary and join side by side, and what they find, written down.

A generation is one checkpoint with one ledger. Spark's list of the ledger's files grows with each of
them, so a generation is ended in order now and then - sentinels, until nothing is waited for - and the
next one begins with an empty list.

Spark's watermark never goes back. Where the clock was set back behind it, each record that is sent is too
late for it on both sides, and nothing would be judged until the clock is there again: then, too, a
generation is ended, and the next one begins with a watermark of its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import threading
import time
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any, List, Optional

from flow.judge.verdict import EXIT_CODE, INCONCLUSIVE
from flow.messages import stack_trace
from flow.messages.output import as_json, note, read_json, write_all, write_json
from flow.prepare.cluster import Cluster
from flow.watch import alarm, join, tell, topic
from flow.watch.account import (
    LOST,
    Account,
    Found,
    Row,
    Standing,
    outcome,
    quantiles,
    state_of,
    watermark_of,
)
from flow.watch.canary import Canary, acknowledged_before

_LOOK_SECONDS = 0.5
_ACCOUNT = "account.json"
# It is told at least so often, and a status that was not written for so long is nobody's any more.
_TELL_SECONDS, _OLD_SECONDS = 60, 300
_NOTHING = {"rows": 0, "bytes": 0}


def _files(options: argparse.Namespace, status: dict) -> dict:
    """What is written of a status: a file's path -> texts (path -> text) that are replaced with it.

    Each for itself: metrics may be on another disk, in a directory of somebody else's.
    """
    metrics = options.metrics or os.path.join(options.output, "watch.prom")
    told, page = (os.path.join(options.output, f"status.{kind}") for kind in ("json", "html"))
    return {
        metrics: {metrics: tell.prometheus(status)},
        told: {told: as_json(status), page: tell.page(status)},
    }


def tell_end(options: argparse.Namespace, why: str) -> None:
    """Say in what was told last that nobody watches any more: in order (""), or `why`.

    Else whoever reads it takes it for what is so now. Nothing is written where nothing was told, or nothing can be.
    """
    with suppress(OSError, ValueError, KeyError):  # also of a status of an earlier release
        status = read_json(os.path.join(options.output, "status.json"))
        if not status:
            return
        for texts in _files(options, tell.ended(status, time.time(), why)).values():
            with suppress(OSError):
                write_all(texts)


class Watch:
    """Runs until `stop` is set, or for a time, and then to the end: until each record is decided."""

    def __init__(
        self,
        options: argparse.Namespace,
        spark,
        cluster: Cluster,
        clients: tuple,
        plan: dict,
        stop: threading.Event,
    ):
        self._options, self._spark, self._cluster = options, spark, cluster
        self._client, self._for_java = clients
        self._plan, self._stop = plan, stop
        self._account = Account.from_json(read_json(os.path.join(options.state, _ACCOUNT)))
        self._lock = threading.Lock()  # Spark counts batches in a thread of its own
        self._found: Optional[Found] = None
        # A process that dies again and again, and is started again, is as blind as a query that does.
        self._last_counted = self._account.last_counted or time.time()
        # Batches may run, and compare nothing: a watermark that is ahead of the clock drops all as too late.
        self._last_decided = time.time()
        self._alarms: dict = {}
        self._told = 0.0  # when
        self._unwritten: dict = {}  # file -> why it could not be replaced
        self._restarts = 0
        self._progress_batch = -1
        self._watermark = 0.0  # of Spark's last batch, seconds since 1970
        self._state = dict(_NOTHING)
        self._batch = {"number": -1, "duration_ms": 0}
        self._canary: Canary
        self._query: Any = None

    def run(self) -> int:
        """Generation after generation; the exit code."""
        options = self._options
        ends = time.monotonic() + options.duration if options.duration else float("inf")
        self._begin_anew_if_need_be()
        before = self._standing_before()
        while True:
            until = min(ends, time.monotonic() + options.renew)
            self._begin()
            try:
                self._until(lambda at=until: time.monotonic() >= at or self._clock_is_behind())
            finally:  # also where Spark has died: what was acknowledged is noted
                self._canary.end()
            if self._stop.is_set():
                break
            if self._clock_is_behind():
                back = self._watermark + options.within - time.time()
                self._say("warning", "clock", f"it was set back by about {back:,.0f} s; begin anew")
            self._drain()
            if time.monotonic() >= ends or self._stop.is_set():
                break
            self._end_query()
            self._plan = topic.grown(self._cluster, self._plan)
            self._renew()
        self._end_query()
        self._tell()
        tell_end(options, "")
        with self._lock:
            self._account.last_counted = 0.0  # until the next start nobody was to look
            self._keep()
        return self._exit_code(before) if options.duration else 0

    def _standing_before(self) -> Standing:
        """What earlier runs have left: a loss of last week is none of this one."""
        noted = acknowledged_before(self._places()["ledger"])
        acknowledged = max(self._position("acknowledged"), noted)
        return Standing(acknowledged, self._account.counts[LOST], self._account.given_up)

    def _exit_code(self, before: Standing) -> int:
        account, acknowledged = self._account, self._canary.acknowledged
        now = Standing(acknowledged, account.counts[LOST], account.given_up, self._pending())
        verdict, why = outcome(before, now)
        if verdict == INCONCLUSIVE:
            self._say("warning", "undecided", why)
        return EXIT_CODE[verdict]

    def _begin_anew_if_need_be(self) -> None:
        """Before anything runs: a generation that cannot go on is followed by the next one."""
        why = ""
        if self._paused_too_long():
            why = "it did not run for so long that its records may be gone by age"
        elif self._plan.get("renew"):
            why = "partitions or the size of its records are others than before"
        if why:
            self._say("info", "pause", f"{why}; begin anew")
            self._renew()
        self._remove_earlier()

    def _remove_earlier(self) -> None:
        """The next one is known before the one before goes, so a kill in between may leave that."""
        current = os.path.basename(self._places()["root"])
        for name in os.listdir(self._options.state):
            if name.startswith("generation-") and name != current:
                shutil.rmtree(os.path.join(self._options.state, name), ignore_errors=True)

    def _places(self) -> dict:
        state = os.path.abspath(self._options.state)  # Spark is started elsewhere
        root = os.path.join(state, f"generation-{self._plan['generation']:06d}")
        return {
            "root": root,
            **{name: os.path.join(root, name) for name in ("ledger", "checkpoint")},
        }

    def _paused_too_long(self) -> bool:
        last = self._account.last_arrived
        return bool(last) and time.time() - last > topic.LONGEST_PAUSE_SECONDS

    def _renew(self) -> None:
        """The next generation. What the one before left undecided is not known."""
        # Asked first: without an answer this one goes on, with its checkpoint.
        self._plan = topic.renewed(self._options.state, self._cluster, self._plan)
        self._remove_earlier()
        given_up = self._position("acknowledged") - self._decided()
        if given_up > self._account.given_up:
            more = given_up - self._account.given_up
            self._say(
                "warning", "undecided", f"what became of {more:,} acknowledged records is not known"
            )
        self._account.given_up = given_up
        self._last_counted = self._last_decided = time.time()

    def _clock_is_behind(self) -> bool:
        """Whether what is sent now comes too late for the watermark: it is `within` behind what was sent before."""
        return self._watermark > time.time()

    def _begin(self) -> None:
        options, plan = self._options, self._plan
        settings = {
            "client": self._client,
            "run_id": plan["run_id"],
            "topic": plan["topic"],
            "partitions": plan["partitions"],
            "record_size": plan["record_size"],
            "delivery_timeout": alarm.patience(options.within),
            "transaction_records": 0,
        }
        position = os.path.join(options.state, "position.json")
        os.makedirs(self._places()["ledger"], exist_ok=True)
        self._start_query()
        self._canary = Canary(settings, options.rate, self._places()["ledger"], position)
        self._canary.start()

    def _start_query(self) -> None:
        # It has compared nothing yet: one that dies again and again is as blind as one that hangs.
        self._progress_batch, self._watermark = -1, 0.0
        self._query = join.start(
            self._spark,
            self._plan,
            self._for_java,
            self._options.bootstrap_servers,
            self._places(),
            self._options.within,
            self._options.every,
            self._take,
        )

    def _take(self, number: int, rows: List[Row]) -> None:
        """A batch, in Spark's thread."""
        now = time.time()
        with self._lock:
            found = self._account.take(self._plan["generation"], number, rows, now)
            if found is None:
                return
            self._found, self._last_counted = found, now
            if found.counts["arrived"] or found.counts[LOST]:
                self._last_decided = now
            self._keep()

    def _keep(self) -> None:
        write_json(os.path.join(self._options.state, _ACCOUNT), self._account.to_json())

    def _until(self, over) -> None:
        """Look and tell until it is over, or the service is to stop."""
        while not (self._stop.is_set() or over()):
            self._stop.wait(_LOOK_SECONDS)
            if self._canary.trouble:
                raise self._canary.trouble
            if not self._query.isActive and not self._stop.is_set():
                self._again()
            # a batch may hang, or there is none without a broker
            if self._look() or abs(time.time() - self._told) > _TELL_SECONDS:
                self._tell()

    def _again(self) -> None:
        """Start a query that has ended by a fault, from its checkpoint."""
        reason = stack_trace.reason(str(self._query.exception()))
        self._restarts += 1
        self._say("warning", "query", f"ended, and is started again from its checkpoint: {reason}")
        self._tell()
        self._stop.wait(self._options.every)
        if not self._stop.is_set():
            self._start_query()

    def _look(self) -> bool:
        """Read Spark's progress; whether there is something new to tell, or an alarm to look for."""
        progress = self._query.lastProgress
        if progress is not None and progress["batchId"] != self._progress_batch:
            self._progress_batch = progress["batchId"]
            self._watermark = watermark_of(progress["eventTime"])
            rows, size, late = state_of(progress["stateOperators"])
            self._state = {"rows": rows, "bytes": size}
            self._batch = {
                "number": progress["batchId"],
                "duration_ms": progress["durationMs"].get("triggerExecution", 0),
            }
            with self._lock:
                self._account.counts["late"] += late
                self._account.note(self._point())
            return True
        return bool(self._now()[1].keys() ^ self._alarms.keys())

    def _point(self) -> dict:
        measured = quantiles(self._found.acknowledgement_ms) if self._found else None
        return {
            "at": round(time.time(), 1),
            "p99_ms": measured["p99_ms"] if measured else None,
            "state_rows": self._state["rows"],
            "batch_ms": self._batch["duration_ms"],
            "lost": self._account.counts[LOST],
        }

    def _drain(self) -> None:
        """Until every record of the generation is decided; a sentinel moves the watermark beyond them.

        What comes too late for the watermark is never decided, so it ends when that is beyond all, too.
        """
        within, now = self._options.within, time.time()
        # newer than the newest record: `within` before it is where the watermark stands at most
        newest = max(now, self._watermark + within)
        self._canary.send_sentinel(newest - now + within + 1)
        deadline = time.monotonic() + within + 60
        self._until(
            lambda: self._pending() <= 0 or self._watermark > newest or time.monotonic() > deadline
        )

    def _decided(self) -> int:
        counts = self._account.counts
        return counts["arrived"] + counts[LOST]

    def _position(self, name: str) -> int:
        told = read_json(os.path.join(self._options.state, "position.json"))
        return int(told.get(name, 0))

    def _pending(self) -> int:
        return self._canary.acknowledged - self._decided() - self._account.given_up

    def _end_query(self) -> None:
        with suppress(Exception):  # the signal may have ended Spark, too; its checkpoint is whole
            self._query.stop()

    def _now(self) -> tuple:
        """(facts, alarms) of this moment."""
        options = self._options
        with self._lock:
            measured = quantiles(self._found.acknowledgement_ms) if self._found else None
            now = time.time()
            if self._pending() <= 0:
                self._last_decided = now
            # moments of a clock that was set back since are in the future: nothing would be late for long
            self._last_counted = min(self._last_counted, now)
            self._last_decided = min(self._last_decided, now)
            self._account.last_lost = min(self._account.last_lost, now)
            facts = alarm.Facts(
                now=now,
                last_decided=self._last_decided,
                topic=self._plan["topic"],
                acknowledged=dict(self._canary.last_acknowledged),
                last_counted=self._last_counted,
                last_lost=self._account.last_lost,
                lost=list(self._account.witnesses[LOST]),
                lost_in_all=self._account.counts[LOST],
                p99_ms=measured["p99_ms"] if measured else None,
                within=options.within,
                last_unknown=min(self._canary.last_unknown, now),
                unknown=self._canary.unknown,
                unwritten=dict(self._unwritten),
            )
        bounds = alarm.Bounds(options.latency_bound, options.silence_bound, options.alarm_hold)
        return facts, alarm.alarms(facts, bounds)

    def _tell(self) -> None:
        """Log what changed, and replace status.json, its page and its metrics."""
        facts, now = self._now()
        for severity, kind, said in alarm.changes(self._alarms, now):
            self._say(severity, kind, said)
        self._alarms, self._told = now, facts.now
        status = self._status(facts.now)
        for name, texts in _files(self._options, status).items():
            self._replace(name, texts)

    def _replace(self, name: str, texts: dict) -> None:
        """Replace files. What cannot be ends no alarm: it is one itself, from the next look on."""
        try:
            write_all(texts)
        except OSError as error:
            self._unwritten[name] = str(error)
        else:
            self._unwritten.pop(name, None)

    def _status(self, now: float) -> dict:
        with self._lock:
            found, account = self._found, self._account
            counts = {
                "acknowledged": self._canary.acknowledged,
                "pending": max(0, self._pending()),
                **account.counts,
                "unknown": self._canary.unknown,
                "undecided": self._account.given_up,
            }
            return {
                "cluster_id": self._plan["cluster_id"],
                "topic": self._plan["topic"],
                "since": self._plan["since"],
                "updated": round(now, 3),
                "within_seconds": self._options.within,
                "old_after_seconds": max(_OLD_SECONDS, 2 * self._options.silence_bound),
                "ended": None,
                "alarms": dict(self._alarms),
                "counts": counts,
                "latency": {
                    "acknowledgement": quantiles(found.acknowledgement_ms) if found else None,
                    "append": quantiles(found.append_ms) if found else None,
                },
                "state": dict(self._state),
                "batch": dict(self._batch),
                "attempt": self._canary.attempt,
                "generation": self._plan["generation"],
                "restarts": self._restarts,
                "witnesses": {kind: list(each) for kind, each in account.witnesses.items()},
                "course": list(account.course),
            }

    def _say(self, severity: str, kind: str, said: str) -> None:
        when = datetime.now(timezone.utc).isoformat(timespec="seconds")
        note(f"{when} {severity.upper()} {kind}: {said}")

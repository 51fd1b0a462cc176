# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The produce step: tasks on Spark's executors, and the ledger that comes of their notes."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, replace
from functools import partial
from typing import Callable

from flow.engine import executors
from flow.messages import progress, stack_trace, stopping
from flow.messages.failure import CannotRun, with_remedy
from flow.messages.output import write_json
from flow.prepare import client, leadership
from flow.record import complaints, files, ledger, place
from flow.steps.starting import Run
from flow.steps.stopwatch import Stopwatch
from flow.steps.task import read_file, task_of
from flow.write import notes
from flow.write.ending import ending
from flow.write.outcomes import all_refused
from flow.write.produce import produce as produce_task

# For notes that a shared directory shows late; NFS keeps a listing for a minute.
_LOOK_SECONDS, _LOOKS = 2.0, 35


def _relaying(spark, ledger: str):
    """notes.relaying, by what Spark's executors know of this machine."""
    conf = spark.sparkContext.getConf()
    host = conf.get("spark.driver.host")
    port = int(conf.get(notes.PORT, "0"))
    return notes.relaying(ledger, host, conf.get("spark.driver.bindAddress", host), port)


def write_records(run: Run, options, watch: Stopwatch) -> tuple:
    """Write the records; (ledger rows, ledger.Attempts). What is known is in the attempts' files."""
    spark, plan, cluster = run.spark, run.plan, run.cluster
    plan.producers = options.producers or min(
        spark.sparkContext.defaultParallelism, plan.partitions
    )
    plan.settings.update(executors.told(spark))
    if options.output and not place.is_in(options.ledger, options.output):
        there = place.whole(options.ledger)
        write_json(os.path.join(options.output, files.RUN), files.of_run(plan, there))
    files.first_plan(options.ledger, plan)
    task = task_of(options, plan, run.settings)
    if executors.are_elsewhere(spark):
        task["files"] = client.contents(run.settings, read_file)
    run.traces.written = True

    def one(number, _nothing):
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None  # this runs in a task
        repeated = context.attemptNumber() > 0
        produce_task({**task, "repeated": repeated}, number, context.taskAttemptId())
        return [(number, context.taskAttemptId())]

    def acknowledged() -> int:
        attempts = files.load_attempts(options.ledger, parts=False)
        return sum(attempt.acknowledged for attempt in attempts)

    following = progress.following(options.output or "", "written", plan.records, acknowledged)
    early = ending(options, plan)
    looking = run.leaders.going_on(partial(files.save_watched, options.ledger))
    with (
        watch.step("produce"),
        following,
        early,
        looking,
        _relaying(spark, options.ledger) as relay,
    ):
        task.update(relay, ends_at=early.ends_at())
        failed, ended = "none began; run it again", []
        numbers = spark.sparkContext.parallelize(range(plan.producers), plan.producers)
        try:
            ended = numbers.mapPartitionsWithIndex(one).collect()
        except Exception as error:  # what the attempts wrote down so far is still worth judging
            stopping.check()
            plan.produce_error = stack_trace.reason(str(error))
            failed = with_remedy(error, "see to that, then run it again")
        plan.after = cluster.positions(plan.topic, wait=options.timeout, known=plan.before)
    plan.records = early.records()
    plan.produce_seconds = watch.seconds["produce"]
    run.leaders.note(leadership.standing(plan.after))
    plan.elections = [asdict(each) for each in run.leaders.elections]
    plan.leadership = run.leaders.told()
    attempts = _attempts(options.ledger, plan, ended)
    rows = [row for attempt in attempts for row in attempt.rows()]
    plan.ledger_rows, plan.ledger_digest = len(rows), files.digest(rows)
    files.save_plan(options.ledger, plan)
    if not attempts:
        if _has_grown(plan):
            raise CannotRun(
                f"topic {plan.topic} has grown, and no produce task has left a note in the ledger {options.ledger}:"
                f" see that all executors share that directory; {failed}"
            )
        run.traces.written, run.traces.refused = False, plan.run_id
        raise CannotRun(f"no produce task could start: {failed}")
    if why := _why_untaken(plan, rows, attempts):
        run.traces.written, run.traces.refused = False, plan.run_id
        raise CannotRun(why)
    return rows, attempts


def _attempts(
    ledger_of: str, plan: files.Plan, ended: list, sleep: Callable[[float], None] = time.sleep
) -> list:
    """All ledger.Attempts. ended: (producer, attempt) of those that Spark has seen end: each has noted all it knows.

    A directory that machines share may show a note late. What is not shown at all makes records unknown, and no
    violation: nobody else could have written them.
    """
    wanted = set(ended)
    for _look in range(_LOOKS):
        if not _open(files.load_attempts(ledger_of, run_id=plan.run_id, parts=False), wanted):
            break
        sleep(_LOOK_SECONDS)
    attempts = files.load_attempts(ledger_of, run_id=plan.run_id)
    missing = _open(attempts, wanted)
    if not missing:
        return attempts
    if not plan.produce_error:
        plan.produce_error = (
            f"the last notes of {len(missing)} of its tasks are not in {ledger_of}; see that this machine and all"
            " executors share it"
        )
    known = {(each.producer, each.attempt): each for each in attempts}
    for producer, attempt in sorted(missing):
        share = ledger.share(plan.partitions, plan.producers, producer, plan.records)
        none = ledger.Attempt(producer, attempt, False, share, run_id=plan.run_id)
        last = known.get((producer, attempt), none)
        known[producer, attempt] = replace(last, planned=share)
    return list(known.values())


def _open(attempts: list, ended: set) -> set:
    """Which (producer, attempt) of those that have ended have not noted that."""
    return ended - {(each.producer, each.attempt) for each in attempts if each.complete}


def _has_grown(plan: files.Plan) -> bool:
    """Whether anything was appended since the first write, by whomever."""
    return any(plan.after.get(n, place).end != place.end for n, place in plan.before.items())


def _why_untaken(plan: files.Plan, rows: list, attempts: list) -> str:
    """The sentence for a run of which the cluster has taken nothing for certain, and that knows why; else ""."""
    error = complaints.cause(complaints.errors(attempts))
    right = complaints.missing_right(error, plan.topic)
    refused = all_refused(rows)
    # of what the client took, and never sent for want of a right, no report says so
    taken = _has_grown(plan) or any(each.acknowledged for each in attempts)
    if right and (refused or not taken):
        return f"no record was taken, since this user lacks a right ({error}); allow it {right}"
    if refused:
        return (
            f"every record was refused ({refused}), so nothing was proven; see the topic's settings"
            " and --producer-property"
        )
    return ""


def write_ledger(spark, options, plan: files.Plan, rows: list, watch: Stopwatch) -> None:
    with watch.step("write ledger"):
        files.save_ledger(spark, options.ledger, plan, rows)

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The produce step: tasks on Spark's executors, and the ledger that comes of their notes."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import partial

from flow.engine import executors
from flow.messages import progress, stack_trace, stopping
from flow.messages.failure import CannotRun, with_remedy
from flow.messages.output import write_json
from flow.prepare import client, leadership
from flow.record import complaints, files, place
from flow.steps.starting import Run
from flow.steps.stopwatch import Stopwatch
from flow.steps.task import read_file, task_of
from flow.write import notes
from flow.write.ending import ending
from flow.write.outcomes import all_refused
from flow.write.produce import produce as produce_task


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
        produce_task(task, number, context.taskAttemptId())
        return [number]

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
        task.update(relay)
        failed = "none began; run it again"
        numbers = spark.sparkContext.parallelize(range(plan.producers), plan.producers)
        try:
            numbers.mapPartitionsWithIndex(one).collect()
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
    attempts = files.load_attempts(options.ledger, run_id=plan.run_id)
    rows = [row for attempt in attempts for row in attempt.rows()]
    plan.ledger_rows, plan.ledger_digest = len(rows), files.digest(rows)
    files.save_plan(options.ledger, plan)
    if not attempts:
        run.traces.written, run.traces.refused = False, plan.run_id
        raise CannotRun(f"no produce task could start: {failed}")
    if why := _why_untaken(plan, rows, attempts):
        run.traces.written, run.traces.refused = False, plan.run_id
        raise CannotRun(why)
    return rows, attempts


def _why_untaken(plan: files.Plan, rows: list, attempts: list) -> str:
    """The sentence for a run of which the cluster has taken nothing for certain, and that knows why; else ""."""
    error = complaints.cause(complaints.errors(attempts))
    right = complaints.missing_right(error, plan.topic)
    refused = all_refused(rows)
    # of what the client took, and never sent for want of a right, no report says so
    grown = any(plan.after.get(n, place).end != place.end for n, place in plan.before.items())
    if right and (refused or not (grown or any(each.acknowledged for each in attempts))):
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

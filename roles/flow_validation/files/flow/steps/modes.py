# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The modes of job.py, each the order of its steps: prepare, produce, judge, report."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from dataclasses import replace
from datetime import datetime, timezone
from typing import Callable, Iterator

from flow import comparison, inspection
from flow.engine import connector, session
from flow.judge import judge
from flow.judge.verdict import EXIT_CODE, INCONCLUSIVE, PASS
from flow.messages import failure, stopping
from flow.messages.failure import CannotRun, Stopped
from flow.messages.output import note, say, write, write_json
from flow.prepare import history, java_admin
from flow.prepare import leftovers as left
from flow.prepare.cluster import HIDDEN, Cluster, refuse_several
from flow.present import conclusion, report
from flow.present.benchmarked import benchmarked_page
from flow.present.drilled import drilled_page
from flow.present.index import index_page, time_of
from flow.probe import probes, trial
from flow.record import files, ledger, own_names, place
from flow.steps.options import clients_settings, spark_settings
from flow.steps.planning import groups_of
from flow.steps.starting import Run, for_executors, refuse_topic, refuse_unwritable, started
from flow.steps.stopwatch import Stopwatch
from flow.steps.writing import write_ledger, write_records
from flow.write.produce import SAVE_SECONDS

# At the notes of attempts that may go on: they write them down again so often. And how often, until they have ended
# that were killed a moment ago.
_LOOK_SECONDS, _LOOKS = 2 * SAVE_SECONDS, 5
_LAST_LOOK_SECONDS = 5.0  # at a topic, before it is deleted


def _probing(run: Run, options: argparse.Namespace):
    """The probes of the command line, as the context that probes.running is."""
    servers, timeout, plan = options.bootstrap_servers, options.timeout, run.plan
    bench = trial.Bench(
        cluster=run.cluster,
        settings=run.settings,
        reassigning=java_admin.Reassigning(run.spark, servers, run.for_java, timeout),
        brokers=tuple(plan.brokers),
        replication=plan.planned_replication or plan.replication,
        min_isr=max(plan.planned_min_isr, plan.min_isr),
        timeout=timeout,
        margin=options.probe_margin,
    )
    return probes.running(options.probe, plan.run_id, bench)


def produce(options: argparse.Namespace) -> int:
    """Write the records and the ledger; 0 if everything was acknowledged, else 2."""
    watch = Stopwatch()
    with started(options, watch, True) as run:
        plan = run.plan
        rows, _attempts = write_records(run, options, watch)
        write_ledger(run.spark, options, plan, rows, watch)
    counts = ledger.counts(rows)
    if options.output:
        result = {"run_id": plan.run_id, "topic": plan.topic, "producers": plan.producers}
        path = os.path.join(options.output, "produced.json")
        write_json(path, {**result, "counts": counts, "timings": watch.total()})
    say(f"produced to {plan.topic}: " + ", ".join(f"{v:,} {k}" for k, v in counts.items()))
    open_producers = ledger.unfinished(rows, plan.partitions, plan.producers, plan.records)
    return EXIT_CODE[INCONCLUSIVE if open_producers else PASS]


def _judge(run: Run, options, rows: list, attempts: list, watch: Stopwatch) -> judge.Judge:
    groups = groups_of(options, run.plan, run.settings)
    return judge.Judge(
        run.spark, options, run.plan, run.cluster, groups, run.for_java, rows, attempts, watch
    )


def verify(options: argparse.Namespace) -> int:
    """Judge the topic against a ledger that was written before."""
    watch = Stopwatch()
    if not place.is_remote(options.ledger):
        if not os.path.isdir(place.path_of(options.ledger)):
            raise CannotRun(f"{options.ledger} is not a ledger: no such directory")
        refuse_topic(options, files.load_plan(options.ledger))
    with started(options, watch, False) as run:
        with watch.step("read ledger"):
            refuse_ongoing(options.ledger, run.plan)
            rows = files.load_ledger(run.spark, options.ledger, run.plan)
            attempts = files.load_attempts(options.ledger, broken=True, run_id=run.plan.run_id)
            attempts = files.with_lost(attempts, rows)
        run = replace(run, plan=files.with_watched(options.ledger, run.plan))
        judging = _judge(run, options, rows, attempts, watch)
        # What probes had found stays found: their topics are gone, and nobody can judge them again.
        return conclusion.conclude(
            judging, _with_probes(judging.results(), probes.known(run.plan.probes))
        )


def refuse_ongoing(
    ledger_of: str, plan: files.Plan, sleep: Callable[[float], None] = time.sleep
) -> None:
    """CannotRun if the run that writes this ledger goes on, as far as `plan` knew when it was read: of what it writes
    meanwhile, and of a transaction that is open, nobody could tell whether it is whole.
    """
    if plan.after:
        return
    before = _notes_of(ledger_of)
    for _look in range(_LOOKS):
        sleep(_LOOK_SECONDS)
        now = _notes_of(ledger_of)
        if now == before and not files.load_plan(ledger_of).after:
            return  # it was killed
        before = now
    raise CannotRun(
        f"the run that writes the ledger {ledger_of} was still going on; judge it when it has ended"
    )


def _notes_of(ledger_of: str) -> dict:
    """(producer, attempt) -> for how long that goes on, as it has written down last."""
    attempts = files.load_attempts(ledger_of, broken=True, parts=False)
    return {(each.producer, each.attempt): each.seconds for each in attempts}


def _with_probes(results: judge.Results, found: list) -> judge.Results:
    """The results with what these probes.Outcomes tell."""
    return replace(results, checks=probes.merged(results.checks, found), probes=found)


def run(options: argparse.Namespace) -> int:
    """Produce, verify, and clean up; the topic of a run that did not pass is kept as evidence."""
    watch = Stopwatch()
    with started(options, watch, True) as run:
        plan = run.plan
        # Ctrl-C leaves Java to the probes until they have ended: without it one could not take its topic back
        with session.spared(bool(options.probe)), _probing(run, options) as outcomes:
            rows, attempts = write_records(run, options, watch)
            with stopping.threads(1) as other:  # both are mostly Spark finding its feet
                written = other.submit(write_ledger, run.spark, options, plan, rows, watch)
                judging = _judge(run, options, rows, attempts, watch)
                results = judging.results()
                with _told_only():  # it is a copy of what the attempts' files tell
                    written.result()
            if options.probe:
                with watch.step("wait for probes"):
                    found = outcomes(options.output)
                results = _with_probes(results, found)
                plan.probes = probes.kept(found)
                with _told_only():
                    files.save_plan(options.ledger, plan)
        code = conclusion.conclude(judging, results)
        if plan.created and not options.keep and code == EXIT_CODE[PASS]:
            try:
                with _told_only(f"topic {plan.topic} stays, since its ledger cannot say so: "):
                    _take_away(run.cluster, options.ledger, plan, results.now)
            except (Exception, Stopped):
                if not stopping.requested.is_set():
                    raise
                # the verdict is out, and a signal takes no word back
                note(f"note: topic {plan.topic} may stay: a signal came while it was deleted")
    return code


@contextlib.contextmanager
def _told_only(before: str = "") -> Iterator[None]:
    """What cannot be kept is said, `before` and why, and changes no verdict."""
    try:
        yield
    except (CannotRun, OSError) as error:
        note(f"note: {before}{failure.sentence(error, '')}")


def _take_away(cluster: Cluster, ledger_of: str, plan: files.Plan, judged: dict) -> None:
    """Delete the topic of a run that has passed, and say so in its ledger; unless others have found it by the name
    that a person gave it, and write to it. judged: partition -> partition.Partition up to where it was judged.
    """
    if not own_names.run_topic(plan.topic):
        ends = {number: position.end for number, position in judged.items()}
        why = cluster.why_in_use(plan.topic, ends, _LAST_LOOK_SECONDS)
        if not why and cluster.topic_id(plan.topic) not in ("", plan.topic_id):
            why = "somebody has made it anew"
        if why:
            note(f"note: topic {plan.topic}, which this run has made, stays: {why}")
            return
    plan.removed = datetime.now(timezone.utc).isoformat(timespec="seconds")
    # first: who is killed between both has nothing to judge
    files.save_plan(ledger_of, plan)
    gone = False
    try:
        gone = _deleted(cluster, plan.topic)
    finally:
        if not gone:
            plan.removed = ""
            files.save_plan(ledger_of, plan)


def _deleted(cluster: Cluster, topic: str) -> bool:
    try:
        cluster.delete_topic(topic)
        return True
    except CannotRun as error:  # the verdict stands all the same
        note(f"note: {error}")
        return False


def fetch(options: argparse.Namespace) -> int:
    """Bring the connector's jars into the cache, so that the other modes need no network."""
    jars, fetched = connector.provide_jars(connector.find_java(), options.jars)
    said = "fetched" if fetched else "complete"
    say(f"{said}: {', '.join(os.path.basename(path) for path in jars)}")
    return 0


def leftovers(options: argparse.Namespace) -> int:
    """List what earlier runs have left in the cluster and below --output, and remove it with --remove."""
    settings, _for_java = clients_settings(options.bootstrap_servers, options.command_config)
    refuse_several(settings)
    cluster = Cluster(settings, options.timeout)
    ages, unread = left.ages_of(cluster, filter(left.is_ours, cluster.topics()))
    reports = left.reports_below(options.output)
    found = left.decide(ages, reports, time.time(), options.older_than, unread)
    troubles = left.remove(cluster, found, reports) if options.remove else set()
    if options.remove and os.path.exists(_index_of(options.output)):
        # its links lead to what is gone
        _write_index(options.output)
    say(json.dumps(left.told(found, options.remove)))
    if troubles:
        raise CannotRun("; ".join(sorted(troubles)))
    return 0


def index(options: argparse.Namespace) -> int:
    """Write index.html of the runs below --output, and the pages of those that have rows.

    It names the directory, which is the cluster's.
    """
    say(f"{_index_of(options.output)}: {_write_index(options.output)} runs")
    return 0


def _index_of(directory: str) -> str:
    return os.path.join(directory, "index.html")


def _write_index(directory: str) -> int:
    """Returns how many runs it lists."""
    for page, run, told in history.runs_of_rows(directory):
        title = (
            f"{run.kind.capitalize()} of {told.get('cluster') or 'a cluster'}, {time_of(run.when)}"
        )
        page_of = benchmarked_page if run.kind == history.BENCHMARK else drilled_page
        try:
            text = page_of(title, run.verdict, run.summary, told)
        # whatever another release or program has written there, the other runs have their pages
        except Exception as error:  # pylint: disable=broad-except
            note(f"note: there is no page of {page[: -len('html')]}json: {error!r}")
            continue
        write(page, text)
    runs = history.runs_below(directory)
    write(_index_of(directory), index_page(os.path.basename(os.path.abspath(directory)), runs))
    return len(runs)


def inspect(options: argparse.Namespace) -> int:
    """Judge a topic that somebody else wrote, as far as that is possible without a ledger."""
    watch = Stopwatch()
    refuse_unwritable(options.output)
    given = spark_settings(options)
    settings, for_java = clients_settings(options.bootstrap_servers, options.command_config)
    jars = session.prepare_java(options.jars)
    refuse_several(settings)
    cluster = Cluster(settings, options.timeout)
    topic_id = cluster.topic_id(options.topic)
    positions = cluster.positions(options.topic, committed=options.transactional)
    if not positions:
        if cluster.why_unseen(options.topic) == HIDDEN:
            raise CannotRun(
                f"this user may not see the topic {options.topic}; allow it Describe and Read on it"
            )
        raise CannotRun(f"there is no topic {options.topic} at {options.bootstrap_servers}")
    records = sum(place.end - place.start for place in positions.values())
    with session.work_directory() as work, contextlib.ExitStack() as opened:
        with watch.step("start Spark"):
            running = session.running(options.master, jars, work, records, given=given)
            spark = opened.enter_context(running)
            for_java = for_executors(spark, for_java, len(positions))
        document = inspection.inspect(spark, options, cluster, positions, topic_id, for_java, watch)
    page = report.inspection_page(document, inspection.MEANING)
    return conclusion.publish(options.output, "inspection", document, "inspection.html", page)


def compare(options: argparse.Namespace) -> int:
    """Compare topics that somebody else writes with what he says was acknowledged, as long as he asks; 0."""
    refuse_unwritable(options.output)
    try:
        _serve(options)
    except (Exception, Stopped) as error:
        # whoever asks shall not wait for an answer
        comparison.say_why_not(options.output, stopping.stopped() or error)
        raise
    return 0


def _serve(options: argparse.Namespace) -> None:
    given = spark_settings(options)
    settings, for_java = clients_settings(options.bootstrap_servers, options.command_config)
    jars = session.prepare_java(options.jars)
    refuse_several(settings)
    cluster = Cluster(settings, options.timeout)
    # a cluster that cannot be reached should be said at once, not after Spark's start
    cluster.describe()
    with (
        session.work_directory() as work,
        session.running(options.master, jars, work, given=given) as spark,
    ):
        for_java = for_executors(spark, for_java, 1)

        def answered(question: comparison.Question) -> dict:
            return comparison.answer(spark, cluster, question, for_java, options.bootstrap_servers)

        comparison.serve(options.output, answered, options.beside, options.until)

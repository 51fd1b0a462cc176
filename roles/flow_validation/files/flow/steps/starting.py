# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Spark and the cluster's side of a run, begun together, and what they have made taken back if it ends early."""

from __future__ import annotations

import argparse
import contextlib
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Iterator, Sequence

from flow.engine import executors, session
from flow.messages import stopping
from flow.messages.failure import CannotRun
from flow.messages.output import note, remove, write
from flow.prepare import client, leadership, room
from flow.prepare.cluster import Cluster, refuse_several
from flow.prepare.traces import Traces
from flow.record import files, place
from flow.steps.options import clients_settings, spark_settings
from flow.steps.planning import prepare
from flow.steps.stopwatch import Stopwatch
from flow.steps.task import attempts_directory, client_of, read_file
from flow.write import blocks
from flow.write.client_settings import refuse_wrong

_CODEC, _UNPACKED = "compression.type", "uncompressed"  # of a topic: what its leaders keep
_RESULTS_BYTES = 2**18  # more than verdict, page and the rest take, of a few hundred partitions


@dataclass(frozen=True)
class Run:
    """What a mode works with; `settings`: librdkafka's, `for_java`: Kafka's Java client's."""

    spark: Any
    cluster: Cluster
    plan: files.Plan
    settings: dict
    for_java: dict
    traces: Traces
    leaders: leadership.Watch


@contextmanager
def started(options: argparse.Namespace, watch: Stopwatch, with_plan: bool) -> Iterator[Run]:
    """Spark and, at the same time, the cluster's side. Where the body, or this, ends by an exception,
    what the run has made is taken back or told of.
    """
    settings, for_java = clients_settings(options.bootstrap_servers, options.command_config)
    if options.output:
        refuse_unwritable(options.output)
    given = spark_settings(options)
    traces = Traces(options.ledger)
    jars = session.prepare_java(options.jars)
    remote = place.is_remote(options.ledger)  # Spark's JVM opens it
    known = None if with_plan or remote else files.load_plan(options.ledger)
    if with_plan:
        refuse_wrong({**client_of(options, settings), "run_id": "0" * 32})
    refuse_several(settings)
    cluster = Cluster(settings, options.timeout)
    # Whatever ends the body comes through the yield below.
    # pylint: disable-next=contextmanager-generator-missing-cleanup
    with (
        session.work_directory() as work,
        contextlib.ExitStack() as opened,
        stopping.threads(1) as other,
    ):
        plan = None
        try:
            if with_plan and not remote:
                traces.made = files.new_ledger(options.ledger)
            # a cluster that cannot be reached should be said at once, not after Spark's start
            described = cluster.describe()
            if known:
                _refuse_foreign(options, known, described.cluster_id)
            with watch.step("start Spark, prepare topic"):
                if with_plan and not remote:
                    plan = other.submit(prepare, options, cluster, settings, traces)
                records = known.records if known else options.records
                typical = options.mode == "run"
                running = session.running(options.master, jars, work, records, typical, given)
                spark = opened.enter_context(running)
                if remote and with_plan:
                    traces.made = files.new_ledger(options.ledger)
                    plan = other.submit(prepare, options, cluster, settings, traces)
                elif remote:
                    known = files.load_plan(options.ledger)
                    refuse_topic(options, known)
                    _refuse_foreign(options, known, described.cluster_id)
                made: Any = plan.result() if plan else known
                for_java = for_executors(spark, for_java, options.producers or made.partitions)
                if executors.are_elsewhere(spark):
                    there = attempts_directory(options.ledger) if with_plan else None
                    executors.check(spark, client.paths(settings), there)
            if with_plan:
                _refuse_full_disks(spark, options, made, cluster, for_java)
            if options.mode != "produce" and (short := room.short_for_naming(spark, made.records)):
                # not refused: a run in which everything is in order never does that
                note(f"note: should records be in doubt: {short}")
            leaders = leadership.Watch(cluster, made.topic, made.before)
            yield Run(spark, cluster, made, settings, for_java, traces, leaders)
        except BaseException:
            if plan and not stopping.requested.is_set():
                plan.exception()  # what it is about to create shall not stay behind
            traces.settle(cluster)
            raise


def refuse_topic(options: argparse.Namespace, plan: files.Plan) -> None:
    if options.topic and options.topic != plan.topic:
        raise CannotRun(f"the ledger is of topic {plan.topic}, not of {options.topic}")


def _refuse_foreign(options: argparse.Namespace, plan: files.Plan, cluster_id: str) -> None:
    """CannotRun if the ledger cannot be judged at this cluster."""
    if plan.cluster_id != cluster_id:
        raise CannotRun(
            f"the ledger is of cluster {plan.cluster_id},"
            f" but {options.bootstrap_servers} is {cluster_id}"
        )
    if plan.cleared:
        raise CannotRun(
            f"`leftovers --remove` deleted the run's topic {plan.topic} at {plan.cleared}, so there is nothing left to"
            " judge; begin a new run"
        )
    if plan.removed:
        raise CannotRun(
            f"the run has passed, and deleted its topic {plan.topic} at {plan.removed}, so there is"
            " nothing left to judge; `run --keep` or `produce` keeps a topic for later"
        )


def for_executors(spark, for_java: dict, wanted: int) -> dict:
    """The Java client's settings as executors can use them; those elsewhere have come, for so many tasks."""
    if not executors.are_elsewhere(spark):
        return for_java
    for_java = client.without_files(for_java, read_file)
    executors.gather(spark, wanted)
    return for_java


def _refuse_full_disks(spark, options, plan: files.Plan, cluster: Cluster, for_java: dict) -> None:
    """Refuse a run whose records a broker's disk has no room for, and take back its topic."""
    asked = {
        "transaction_records": plan.transaction_records,
        "record_size": plan.record_size,
        "rate": options.rate,
        "partitions": plan.partitions,
    }
    turn = blocks.turn_of(asked, plan.partitions)  # that of the fewest producers is the shortest
    if room.needed(plan.records, plan.record_size, turn) < room.SMALL_BYTES:
        return
    kept = cluster.effective_config(plan.topic, (_CODEC,)).get(_CODEC) != _UNPACKED
    if kept and compresses(options.producer_property):
        return
    # one that is down cannot say
    replicas = {
        number: [broker for broker in place.replicas if broker in plan.brokers]
        for number, place in plan.before.items()
    }
    try:
        disks = room.disks(
            spark, options.bootstrap_servers, for_java, plan.topic, replicas, options.timeout
        )
    except CannotRun as error:
        note(f"note: whether the disks have room is not known: {error}")
        return
    short = room.shortage(disks, plan.records, plan.record_size, plan.partitions, turn)
    if short:
        compress = f", or compress them, which is not judged (--producer-property {_CODEC}=...)"
        raise CannotRun(f"{short}; write fewer or smaller records{compress if kept else ''}")


def compresses(properties: Sequence[str]) -> bool:
    """Whether the producer compresses by these settings of its own, KEY=VALUE each."""
    given = dict(text.split("=", 1) for text in properties)
    codecs = {
        value.strip().lower()
        for key, value in given.items()
        if key.strip().removeprefix("topic.") in (_CODEC, "compression.codec")
    } - {"inherit"}
    return bool(codecs) and "none" not in codecs


def refuse_unwritable(output: str) -> None:
    """CannotRun if no results can be written there; earlier ones stay until there are new ones."""
    path = os.path.join(output, ".writable")
    try:
        write(path, " " * _RESULTS_BYTES)
        remove(path)
    except OSError as error:
        raise CannotRun(
            f"{output} cannot be written ({error}); make room there, or give another --output"
        ) from error

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The order of things: prepare, produce, judge, report. Each mode of job.py is a function."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import time
import uuid
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import Iterator, Optional

from flow import inspection
from flow.engine import connector, executors, session
from flow.judge import continuity, judge
from flow.judge.verdict import EXIT_CODE, INCONCLUSIVE, PASS
from flow.messages import progress, stack_trace, stopping
from flow.messages.failure import CannotRun
from flow.messages.output import write, write_json
from flow.prepare import (
    client,
    java_admin,
    leadership,
    listeners,
    room,
    surroundings,
)
from flow.prepare import (
    leftovers as left,
)
from flow.prepare.cluster import (
    CLEANUP_POLICY,
    MIN_ISR,
    MOST_BYTES,
    TIMESTAMP_TYPE,
    Cluster,
    spread,
)
from flow.prepare.traces import Traces
from flow.present import conclusion, report
from flow.present.settings import told as told_settings
from flow.probe import probes, trial
from flow.record import files, ledger, own_names, place, transactions
from flow.record.timing import APPENDED
from flow.write import notes
from flow.write.blocks import longest_block
from flow.write.client_settings import BESIDE_BYTES, refuse_wrong
from flow.write.ending import ending
from flow.write.outcomes import all_refused
from flow.write.produce import produce as produce_task

# Of a topic that the job creates, whatever the cluster's defaults: when a record was appended is known,
# and not only when it was sent; and nothing is deleted before it was judged.
OWN_TOPIC = {
    TIMESTAMP_TYPE: APPENDED,
    CLEANUP_POLICY: "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
}
_RESULTS_BYTES = 2**18  # more than verdict, page and the rest take, of a few hundred partitions
_TO_END_SECONDS = 10  # for the end of a transaction, when all of its records are settled


class Stopwatch:
    """Seconds by step, in the order of their beginning."""

    def __init__(self) -> None:
        self.seconds: dict = {}
        self._start = time.monotonic()

    @contextmanager
    def step(self, name: str):
        began = time.monotonic()
        self.seconds[name] = 0.0
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - began, 3)

    def total(self) -> dict:
        """All steps and their sum by the clock."""
        return {**self.seconds, "total": round(time.monotonic() - self._start, 3)}


def _read_properties(path: str, what: str) -> dict:
    try:
        with open(path, encoding="utf-8") as file:
            return client.parse_properties(file.read())
    except OSError as error:
        raise CannotRun(f"the {what} cannot be read: {error}") from error


def _settings(servers: str, config: Optional[str]) -> tuple:
    """(properties for librdkafka, properties for Java) of a file of client properties, and the
    servers.
    """
    properties = {}
    if config:
        properties = _read_properties(config, "client settings")
    try:
        for_python = client.for_librdkafka(properties)
        for_java = client.for_java(properties)
    except ValueError as error:
        raise CannotRun(str(error)) from error
    return {"bootstrap.servers": servers, **for_python}, for_java


def _spark_settings(options: argparse.Namespace) -> dict:
    """A person's settings of Spark; CannotRun if the file cannot be read, or has one that is ours."""
    if not options.spark_config:
        return {}
    given = _read_properties(options.spark_config, "settings of Spark")
    session.merged(given, {})
    return given


def _other_listeners(options: argparse.Namespace) -> list:
    """The listeners.Listeners of the command line."""
    configs = options.listener_config
    return [
        listeners.Listener(name, _settings(servers, configs.get(name, options.command_config))[0])
        for name, servers in options.listener.items()
    ]


def _prepare(
    options: argparse.Namespace, cluster: Cluster, settings: dict, traces: Traces
) -> files.Plan:
    """Topic, replicas, positions, groups: everything that is fixed before the first write."""
    others = _other_listeners(options)
    described = cluster.describe()
    brokers = list(described.brokers)
    run_id = own_names.new_run_id(time.time(), uuid.uuid4().hex)
    topic = options.topic or own_names.own(run_id)
    # A broker that comes back during the run takes part in it, like all others.
    absent = cluster.absent_holders() if options.with_absent else []
    homes = sorted({*brokers, *absent})
    replication = options.replication_factor or min(3, len(homes))
    planned_replication = replication
    if replication > len(homes):
        if replication > (options.expected_brokers or 0):
            raise CannotRun(
                f"replication factor {replication} needs more than {len(homes)} brokers"
            )
        replication = len(homes)  # brokers are missing: coverage and durability say so
    if len(absent) >= replication:
        raise CannotRun(f"brokers {absent} are down, too many for {replication} replicas")
    if options.records < len(brokers):
        raise CannotRun(
            f"{options.records} records are too few to go through {len(brokers)} brokers"
        )
    created = not cluster.has_topic(topic)
    if created:
        partitions = options.partitions or max(min(2 * len(homes), options.records), len(homes))
        if partitions < len(homes):
            raise CannotRun(
                f"{partitions} partitions are too few for {len(homes)} brokers, of which each shall"
                f" lead one; give --partitions={len(homes)} or more"
            )
        traces.topic = topic
        cluster.create_topic(topic, spread(homes, partitions, replication), OWN_TOPIC, absent)
    tried = []
    if others:
        placed = cluster.positions(topic, wait=options.timeout)  # by a broker that knows the topic
        leaders = {place.leader: number for number, place in placed.items()}
        tried = listeners.exercise(others, described.cluster_id, topic, leaders, options.timeout)
    before = cluster.positions(topic, wait=options.timeout)
    if not before:
        raise CannotRun(f"topic {topic} was created, but no broker knows it")
    if options.partitions and options.partitions != len(before):
        raise CannotRun(
            f"topic {topic} has {len(before)} partitions, not {options.partitions};"
            " leave --partitions out for a topic that exists"
        )
    if options.records < len(before):
        raise CannotRun(f"{options.records} records are too few for {len(before)} partitions")
    of_each = 0
    if options.transactional:
        of_each = transactions.records_of_each(
            longest_block(options.record_size), options.records // len(before)
        )
    if not created and options.replication_factor is None:
        planned_replication = len(before[0].replicas)  # somebody else's topic: shown, not judged
    config = cluster.effective_config(topic, (MIN_ISR, TIMESTAMP_TYPE, CLEANUP_POLICY, MOST_BYTES))
    _refuse_unfit(topic, config, options.record_size)
    plan = files.Plan(
        run_id=run_id,
        cluster_id=described.cluster_id,
        topic=topic,
        created=created,
        records=options.records,
        record_size=options.record_size,
        partitions=len(before),
        producers=0,
        brokers=described.brokers,
        replication=len(before[0].replicas),
        min_isr=int(config[MIN_ISR]),
        planned_replication=planned_replication,
        planned_min_isr=options.min_isr or 1,
        started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        before=before,
        timestamp_type=config[TIMESTAMP_TYPE],
        topic_id=cluster.topic_id(topic),
        beside=True,
        groups=continuity.names(run_id, options.groups),
        listeners=tried,
        transaction_records=of_each,
        # its last record may take the whole delivery timeout, and then it must still end
        transaction_timeout=options.delivery_timeout + _TO_END_SECONDS if of_each else 0.0,
        settings=told_settings(vars(options), settings, socket.gethostname()),
        cluster=surroundings.look(cluster, described.brokers, topic, options.broker_version),
    )
    _check_in_sync(options, plan)
    _groups(options, plan, settings).commit(plan.first_offsets())
    return plan


def _refuse_unfit(topic: str, config: dict, record_size: int) -> None:
    """CannotRun if the topic's settings (name -> value in force) do not let a run be judged."""
    if "compact" in config.get(CLEANUP_POLICY, ""):
        raise CannotRun(
            f"topic {topic} has {CLEANUP_POLICY}={config[CLEANUP_POLICY]}: it refuses records without"
            " a key and forgets others; give another --topic, or `inspect` it"
        )
    most = int(config.get(MOST_BYTES) or 0)
    if most and record_size + BESIDE_BYTES > most:
        raise CannotRun(
            f"topic {topic} takes {most:,} bytes ({MOST_BYTES}), too few for records of"
            f" {record_size:,}; give --record-size={max(48, most - BESIDE_BYTES)} or less, or raise it"
        )


def _check_in_sync(options: argparse.Namespace, plan: files.Plan) -> None:
    """Refuse a run beside a change whose first record would already wait for brokers that are down."""
    fewest = min(len(place.isr) for place in plan.before.values())
    if options.with_absent and fewest < plan.min_isr:
        raise CannotRun(
            f"{MIN_ISR} is {plan.min_isr}, and of {plan.replication} replicas {fewest} would be in sync:"
            f" the brokers that run ({', '.join(map(str, plan.brokers))}) are too few"
        )


def _groups(options: argparse.Namespace, plan: files.Plan, settings: dict) -> continuity.Groups:
    return continuity.Groups(settings, plan.topic, plan.groups, options.timeout)


@dataclass(frozen=True)
class _Run:
    """What a mode works with; `settings`: librdkafka's, `for_java`: Kafka's Java client's."""

    spark: object
    cluster: Cluster
    plan: files.Plan
    settings: dict
    for_java: dict
    traces: Traces
    leaders: leadership.Watch


def _client_of(options: argparse.Namespace, settings: dict) -> dict:
    """Of the settings of write.produce those that the producer's client is made with."""
    extra = dict(p.split("=", 1) for p in options.producer_property)
    return {
        "client": {**settings, **extra},
        "record_size": options.record_size,
        "delivery_timeout": options.delivery_timeout,
        "transaction_records": int(options.transactional),
        "transaction_timeout": options.delivery_timeout + _TO_END_SECONDS,
    }


def _task(options: argparse.Namespace, plan: files.Plan, settings: dict) -> dict:
    """The settings of write.produce."""
    return {
        **_client_of(options, settings),
        "topic": plan.topic,
        "run_id": plan.run_id,
        "partitions": plan.partitions,
        "producers": plan.producers,
        "records": plan.records,
        "transaction_records": plan.transaction_records,
        "transaction_timeout": plan.transaction_timeout,
        "directory": _attempts_directory(options.ledger),
        "rate": options.rate,
    }


def _attempts_directory(ledger: str) -> Optional[str]:
    """Where produce tasks keep their files, which all executors share; None if they tell the driver."""
    if place.is_remote(ledger):
        return None
    return os.path.join(os.path.abspath(place.path_of(ledger)), files.ATTEMPTS)


def _relaying(spark, ledger: str):
    """notes.relaying, by what Spark's executors know of this machine."""
    conf = spark.sparkContext.getConf()
    host = conf.get("spark.driver.host")
    port = int(conf.get(notes.PORT, "0"))
    return notes.relaying(ledger, host, conf.get("spark.driver.bindAddress", host), port)


def _for_executors(spark, for_java: dict, wanted: int) -> dict:
    """The Java client's settings as executors can use them; those elsewhere have come, for so many tasks."""
    if not executors.are_elsewhere(spark):
        return for_java
    for_java = client.without_files(for_java, _read_file)
    executors.gather(spark, wanted)
    return for_java


def _read_file(path: str) -> Optional[str]:
    """None if there is no such file, as where it is a directory of authorities."""
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def _produce(run: _Run, options, watch: Stopwatch) -> tuple:
    """Write the records; (ledger rows, ledger.Attempts). What is known is in the attempts' files."""
    spark, plan, cluster = run.spark, run.plan, run.cluster
    if (options.producers or 0) > plan.partitions:
        raise CannotRun(
            f"{options.producers} producers are too many for {plan.partitions} partitions, of which"
            " each is written by one; give --producers, or more --partitions"
        )
    plan.producers = options.producers or min(
        spark.sparkContext.defaultParallelism, plan.partitions
    )
    files.save_plan(options.ledger, plan)
    task = _task(options, plan, run.settings)
    if executors.are_elsewhere(spark):
        task["files"] = client.contents(run.settings, _read_file)
    run.traces.written = True

    def one(number, _nothing):
        from pyspark import TaskContext

        produce_task(task, number, TaskContext.get().taskAttemptId())
        return [number]

    def acknowledged() -> int:
        return sum(attempt.acknowledged for attempt in files.load_attempts(options.ledger))

    following = progress.following(options.output or "", "written", plan.records, acknowledged)
    early = ending(options, plan)
    with watch.step("produce"), following, early, _relaying(spark, options.ledger) as relay:
        task.update(relay)
        numbers = spark.sparkContext.parallelize(range(plan.producers), plan.producers)
        try:
            numbers.mapPartitionsWithIndex(one).collect()
        except Exception as error:  # what the attempts wrote down so far is still worth judging
            stopping.check()
            plan.produce_error = stack_trace.reason(str(error))
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
        run.traces.written = False
        raise CannotRun(f"no produce task could start: {plan.produce_error}")
    if refused := all_refused(rows):
        run.traces.written = False
        raise CannotRun(
            f"every record was refused ({refused}), so nothing was proven; see the topic's settings,"
            " the principal's rights and --producer-property"
        )
    return rows, attempts


def _write_ledger(spark, options, plan: files.Plan, rows: list, watch: Stopwatch) -> None:
    with watch.step("write ledger"):
        files.save_ledger(spark, options.ledger, plan, rows)


@contextmanager
def _started(options: argparse.Namespace, watch: Stopwatch, with_plan: bool) -> Iterator[_Run]:
    """Spark and, at the same time, the cluster's side. Where the body, or this, ends by an exception,
    what the run has made is taken back or told of.
    """
    settings, for_java = _settings(options.bootstrap_servers, options.command_config)
    if options.output:
        refuse_unwritable(options.output)
    given = _spark_settings(options)
    traces = Traces(options.ledger)
    jars = session.prepare_java(options.jars)
    remote = place.is_remote(options.ledger)  # Spark's JVM opens it
    known = None if with_plan or remote else files.load_plan(options.ledger)
    if with_plan:
        if not remote:
            files.new_ledger(options.ledger)
        refuse_wrong({**_client_of(options, settings), "run_id": "0" * 32})
    cluster = Cluster(settings, options.timeout)
    # Whatever ends the body comes through the yield below.
    # pylint: disable-next=contextmanager-generator-missing-cleanup
    with session.work_directory() as work, stopping.threads(1) as other:
        plan = None
        try:
            # a cluster that cannot be reached should be said at once, not after Spark's start
            described = cluster.describe()
            if known:
                _refuse_foreign(options, known, described.cluster_id)
            with watch.step("start Spark, prepare topic"):
                if with_plan and not remote:
                    plan = other.submit(_prepare, options, cluster, settings, traces)
                records = known.records if known else options.records
                typical = options.mode == "run"
                spark = session.start(options.master, jars, work, records, typical, given)
                stopping.listen_again()  # PySpark has taken Ctrl-C for itself
                if remote and with_plan:
                    files.new_ledger(options.ledger)
                    plan = other.submit(_prepare, options, cluster, settings, traces)
                elif remote:
                    known = files.load_plan(options.ledger)
                    _refuse_topic(options, known)
                    _refuse_foreign(options, known, described.cluster_id)
                made = plan.result() if plan else known
                for_java = _for_executors(spark, for_java, options.producers or made.partitions)
                if executors.are_elsewhere(spark):
                    there = _attempts_directory(options.ledger) if with_plan else None
                    executors.check(spark, client.paths(settings), there)
            if with_plan:
                _find_room(spark, options, made, cluster, for_java)
            if options.mode != "produce" and (short := room.short_for_naming(spark, made.records)):
                # not refused: a run in which everything is in order never does that
                print(f"note: should records be in doubt: {short}", file=sys.stderr)
            leaders = leadership.Watch(cluster, made.topic, made.before)
            yield _Run(spark, cluster, made, settings, for_java, traces, leaders)
        except BaseException:
            if plan and not stopping.requested.is_set():
                plan.exception()  # what it is about to create shall not stay behind
            traces.settle(cluster)
            raise


def _refuse_topic(options: argparse.Namespace, plan: files.Plan) -> None:
    if options.topic and options.topic != plan.topic:
        raise CannotRun(f"the ledger is of topic {plan.topic}, not of {options.topic}")


def _refuse_foreign(options: argparse.Namespace, plan: files.Plan, cluster_id: str) -> None:
    """CannotRun if the ledger cannot be judged at this cluster."""
    if plan.cluster_id != cluster_id:
        raise CannotRun(
            f"the ledger is of cluster {plan.cluster_id},"
            f" but {options.bootstrap_servers} is {cluster_id}"
        )
    if plan.removed:
        raise CannotRun(
            f"the run has passed, and deleted its topic {plan.topic} at {plan.removed}, so there is"
            " nothing left to judge; `run --keep` or `produce` keeps a topic for later"
        )


def _find_room(spark, options, plan: files.Plan, cluster: Cluster, for_java: dict) -> None:
    """Refuse a run whose records a broker's disk has no room for, and take back its topic."""
    compressed = any(p.startswith("compression.") for p in options.producer_property)
    if compressed or room.needed(plan.records, plan.record_size) < room.SMALL_BYTES:
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
        print(f"note: whether the disks have room is not known: {error}", file=sys.stderr)
        return
    short = room.shortage(disks, plan.records, plan.record_size, plan.partitions)
    if short:
        raise CannotRun(
            f"{short}; write fewer or smaller records, or compress them, which is not judged"
            " (--producer-property compression.type=...)"
        )


def _probing(run: _Run, options: argparse.Namespace):
    """The probes of the command line, as the context that probes.running is."""
    servers, timeout, plan = options.bootstrap_servers, options.timeout, run.plan
    bench = trial.Bench(
        cluster=run.cluster,
        settings=run.settings,
        reassigning=java_admin.Reassigning(run.spark, servers, run.for_java, timeout),
        brokers=tuple(plan.brokers),
        replication=plan.planned_replication,
        min_isr=max(plan.planned_min_isr, plan.min_isr),
        timeout=timeout,
        margin=options.probe_margin,
    )
    return probes.running(options.probe, plan.run_id, bench)


def produce(options: argparse.Namespace) -> int:
    """Write the records and the ledger; 0 if everything was acknowledged, else 2."""
    watch = Stopwatch()
    with _started(options, watch, True) as run:
        plan = run.plan
        with run.leaders.going_on():
            rows, _attempts = _produce(run, options, watch)
        _write_ledger(run.spark, options, plan, rows, watch)
    counts = ledger.counts(rows)
    if options.output:
        result = {"run_id": plan.run_id, "topic": plan.topic, "producers": plan.producers}
        path = os.path.join(options.output, "produced.json")
        write_json(path, {**result, "counts": counts, "timings": watch.total()})
    print(f"produced to {plan.topic}: " + ", ".join(f"{v:,} {k}" for k, v in counts.items()))
    open_producers = ledger.unfinished(rows, plan.partitions, plan.producers, plan.records)
    return EXIT_CODE[INCONCLUSIVE if open_producers else PASS]


def _judge(run: _Run, options, rows: list, attempts: list, watch: Stopwatch) -> judge.Judge:
    groups = _groups(options, run.plan, run.settings)
    return judge.Judge(
        run.spark, options, run.plan, run.cluster, groups, run.for_java, rows, attempts, watch
    )


def verify(options: argparse.Namespace) -> int:
    """Judge the topic against a ledger that was written before."""
    watch = Stopwatch()
    if not place.is_remote(options.ledger):
        if not os.path.isdir(place.path_of(options.ledger)):
            raise CannotRun(f"{options.ledger} is not a ledger: no such directory")
        _refuse_topic(options, files.load_plan(options.ledger))
    with _started(options, watch, False) as run:
        with watch.step("read ledger"):
            rows = files.load_ledger(run.spark, options.ledger, run.plan)
            attempts = files.load_attempts(options.ledger, broken=True, run_id=run.plan.run_id)
        judging = _judge(run, options, rows, attempts, watch)
        return conclusion.conclude(judging, judging.results())


def run(options: argparse.Namespace) -> int:
    """Produce, verify, and clean up; the topic of a run that did not pass is kept as evidence."""
    watch = Stopwatch()
    with _started(options, watch, True) as run:
        plan = run.plan
        with _probing(run, options) as outcomes:
            with run.leaders.going_on():
                rows, attempts = _produce(run, options, watch)
            with stopping.threads(1) as other:  # both are mostly Spark finding its feet
                written = other.submit(_write_ledger, run.spark, options, plan, rows, watch)
                judging = _judge(run, options, rows, attempts, watch)
                results = judging.results()
                written.result()
            if options.probe:
                with watch.step("wait for probes"):
                    found = outcomes(options.output)
                checks = probes.merged(results.checks, found)
                results = replace(results, checks=checks, probes=found)
        code = conclusion.conclude(judging, results)
        if plan.created and not options.keep and code == EXIT_CODE[PASS]:
            plan.removed = datetime.now(timezone.utc).isoformat(timespec="seconds")
            files.save_plan(options.ledger, plan)
            _delete(run.cluster, plan.topic)
    return code


def _delete(cluster: Cluster, topic: str) -> None:
    try:
        cluster.delete_topic(topic)
    except CannotRun as error:  # the verdict stands all the same
        print(f"note: {error}", file=sys.stderr)


def fetch(options: argparse.Namespace) -> int:
    """Bring the connector's jars into the cache, so that the other modes need no network."""
    jars, fetched = connector.provide_jars(connector.find_java(), options.jars)
    said = "fetched" if fetched else "complete"
    print(f"{said}: {', '.join(os.path.basename(path) for path in jars)}")
    return 0


def leftovers(options: argparse.Namespace) -> int:
    """List what earlier runs have left in the cluster and below --output, and remove it with --remove."""
    settings, _for_java = _settings(options.bootstrap_servers, options.command_config)
    cluster = Cluster(settings, options.timeout)
    ages, unread = left.ages_of(cluster, filter(left.is_ours, cluster.topics()))
    reports = left.reports_below(options.output)
    found = left.decide(ages, reports, time.time(), options.older_than, unread)
    troubles = left.remove(cluster, found) if options.remove else set()
    print(json.dumps(left.told(found, options.remove)))
    if troubles:
        raise CannotRun("; ".join(sorted(troubles)))
    return 0


def inspect(options: argparse.Namespace) -> int:
    """Judge a topic that somebody else wrote, as far as that is possible without a ledger."""
    watch = Stopwatch()
    refuse_unwritable(options.output)
    given = _spark_settings(options)
    settings, for_java = _settings(options.bootstrap_servers, options.command_config)
    jars = session.prepare_java(options.jars)
    cluster = Cluster(settings, options.timeout)
    positions = cluster.positions(options.topic, committed=options.transactional)
    if not positions:
        raise CannotRun(f"there is no topic {options.topic} at {options.bootstrap_servers}")
    records = sum(place.end - place.start for place in positions.values())
    with session.work_directory() as work:
        with watch.step("start Spark"):
            spark = session.start(options.master, jars, work, records, given=given)
            for_java = _for_executors(spark, for_java, len(positions))
        document = inspection.inspect(spark, options, cluster, positions, for_java, watch)
    page = report.inspection_page(document, inspection.MEANING)
    return conclusion.publish(options.output, "inspection", document, "inspection.html", page)


def refuse_unwritable(output: str) -> None:
    """CannotRun if no results can be written there; earlier ones stay until there are new ones."""
    path = os.path.join(output, ".writable")
    try:
        write(path, " " * _RESULTS_BYTES)
        os.remove(path)
    except OSError as error:
        raise CannotRun(
            f"{output} cannot be written ({error}); make room there, or give another --output"
        ) from error

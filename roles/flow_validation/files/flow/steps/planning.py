# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Everything that is fixed before the first write: topic, replicas, positions, groups."""

from __future__ import annotations

import argparse
import socket
import time
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone

from flow.judge import continuity
from flow.judge.expiry import LETTING_GO, LONGEST_TRANSACTION
from flow.messages import progress, stopping
from flow.messages.failure import CannotRun
from flow.prepare import listeners, surroundings
from flow.prepare.applied import agreed, holders
from flow.prepare.cluster import (
    CLEANUP_POLICY,
    MIN_ISR,
    MOST_BYTES,
    SEGMENT_BYTES,
    TIMESTAMP_TYPE,
    AlreadyThere,
    Cluster,
    Description,
    Refused,
    spread,
)
from flow.prepare.traces import Traces
from flow.present.settings import told as told_settings
from flow.probe import probes
from flow.record import files, own_names, transactions
from flow.record.timing import APPENDED
from flow.steps.options import other_listeners
from flow.steps.task import transaction_timeout
from flow.write.blocks import BATCH_BYTES, longest_block
from flow.write.client_settings import BESIDE_BYTES

# Of a topic that the job creates, whatever the cluster's defaults: when a record was appended is known,
# and not only when it was sent; nothing is deleted before it was judged; and it is not cut into files
# by the hundred thousand, of which a broker may have so many.
OWN_TOPIC = {
    TIMESTAMP_TYPE: APPENDED,
    CLEANUP_POLICY: "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    SEGMENT_BYTES: str(2**30),
}


_STATES_TOPIC, _STATES_REPLICAS = (
    "__transaction_state",
    "transaction.state.log.replication.factor",
)
_BROKERS_SECONDS = 60  # in which a broker restarts that is expected
_AGAIN_SECONDS = 0.5
_SETTINGS_SECONDS = 5.0  # of all brokers together; who may not ask them goes on without


def prepare(
    options: argparse.Namespace, cluster: Cluster, settings: dict, traces: Traces
) -> files.Plan:
    """Topic, replicas, positions, groups: everything that is fixed before the first write."""
    others = other_listeners(options)
    described = expected_brokers(options, cluster)
    run_id = own_names.new_run_id(time.time(), uuid.uuid4().hex)
    topic = options.topic or own_names.own(run_id)
    layout = _layout(options, cluster, described)
    if options.transactional:
        _refuse_transactions(options, cluster, list(described.brokers))
    created = not cluster.has_topic(topic)
    if created:
        _create(options, cluster, topic, layout, traces)
    tried, before = _first_positions(options, cluster, topic, (others, described), traces)
    _refuse_wrong_number(options, topic, before)
    asked = (MIN_ISR, TIMESTAMP_TYPE, MOST_BYTES, SEGMENT_BYTES, *LETTING_GO)
    config = cluster.effective_config(topic, asked)
    applied = _applied(cluster, topic, before, described)
    config = agreed(config, applied)
    _refuse_unfit(topic, config, options.record_size)
    of_each = _records_of_transactions(options, len(before))
    # of somebody else's topic partitions may differ, where nobody has said more
    planned = layout.planned if created or options.replication_factor is not None else 0
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
        planned_replication=planned,
        planned_min_isr=options.min_isr or 0,
        started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        before=before,
        timestamp_type=config[TIMESTAMP_TYPE],
        batch_bytes=longest_batch(config),
        expected_brokers=options.expected_brokers or 0,
        leaving_brokers=options.leaving_broker,
        probes=probes.kept(probes.open_ones(options.probe, run_id)),
        keeps={name: config[name] for name in LETTING_GO if name in config},
        topic_id=cluster.topic_id(topic),
        beside=True,
        groups=continuity.names(run_id, options.groups),
        listeners=tried,
        transaction_records=of_each,
        transaction_timeout=transaction_timeout(options) if of_each else 0.0,
        settings=told_settings(vars(options), settings, socket.gethostname()),
        cluster=surroundings.look(
            cluster, described.brokers, topic, options.broker_version, applied
        ),
    )
    _check_in_sync(options, plan)
    groups_of(options, plan, settings).commit(plan.first_offsets())
    return plan


def _applied(cluster: Cluster, topic: str, before: dict, described: Description) -> dict:
    """broker -> what it applies to the topic of that which the brokers' own files may say differently."""
    names = (MIN_ISR, TIMESTAMP_TYPE, *LETTING_GO)
    asked = holders(before, described.brokers)
    return cluster.settings_applied(topic, asked, names, _SETTINGS_SECONDS)


@dataclass(frozen=True)
class _Layout:
    """Where a topic of the run's own goes: to `homes`, of which some are `absent`; with so many replicas as were
    `planned`, or with those that are `possible`.
    """

    homes: list
    absent: list
    planned: int
    possible: int


def _layout(options: argparse.Namespace, cluster: Cluster, described: Description) -> _Layout:
    """CannotRun if brokers are too few for the replicas, or too many for the records."""
    # A broker that comes back during the run takes part in it, like all others.
    absent = cluster.absent_holders() if options.with_absent else []
    homes = sorted({*described.brokers, *absent})
    planned, possible = _replication(options, homes, absent)
    if options.records < len(described.brokers):
        raise CannotRun(
            f"{options.records} records are too few to go through {len(described.brokers)} brokers"
        )
    return _Layout(homes, absent, planned, possible)


def _refuse_transactions(options: argparse.Namespace, cluster: Cluster, brokers: list) -> None:
    """CannotRun if these brokers' settings let no transaction of the run begin, or not last as long as it may."""
    names = (LONGEST_TRANSACTION, _STATES_REPLICAS)
    told = cluster.settings_of_brokers(brokers, names, _SETTINGS_SECONDS)
    refuse_long_transactions(options, told)
    if not cluster.has_topic(_STATES_TOPIC):
        refuse_states_of(told, len(brokers))


def _create(
    options: argparse.Namespace, cluster: Cluster, topic: str, layout: _Layout, traces: Traces
) -> None:
    """Create the topic; `traces` knows of it as long as it may stay behind."""
    partitions = _partitions(options, layout.homes)
    stopping.check()  # nobody would take it back
    traces.topic, traces.pending = topic, True
    replicas = spread(layout.homes, partitions, layout.possible)
    try:
        cluster.create_topic(topic, replicas, OWN_TOPIC, layout.absent)
    except Refused as error:
        # Nothing comes of it. One that is there already was made since the look, or is hidden from this user:
        # never taken back, whatever is in it.
        traces.topic, traces.pending = "", False
        if isinstance(error, AlreadyThere):
            raise CannotRun(
                f"{error}; it was not to be seen before: somebody has made it since, so run again, or this"
                " user lacks Describe on it"
            ) from error
        raise
    traces.pending = False


def _first_positions(
    options: argparse.Namespace, cluster: Cluster, topic: str, asked: tuple, traces: Traces
) -> tuple:
    """(what became of the other listeners, partition -> Partition behind the records that went through them).

    asked: (those listeners, the cluster's Description).
    """
    others, described = asked
    if not others:
        return [], cluster.positions(topic, wait=options.timeout)
    placed = cluster.positions(topic, wait=options.timeout)  # by a broker that knows the topic
    leaders = {place.leader: number for number, place in placed.items()}
    traces.ends = None
    tried = listeners.exercise(
        others,
        described.cluster_id,
        topic,
        leaders,
        options.timeout,
        lambda: cluster.describe().brokers,
    )
    before = cluster.positions(topic, wait=options.timeout)
    traces.ends = {number: position.end for number, position in before.items()}
    return tried, before


def _records_of_transactions(options: argparse.Namespace, partitions: int) -> int:
    """Records of a partition in each transaction; 0: there are none."""
    if not options.transactional:
        return 0
    block = longest_block(options.record_size)
    return transactions.records_of_each(block, options.records // partitions)


def expected_brokers(options: argparse.Namespace, cluster: Cluster) -> Description:
    """The cluster, as soon as all brokers that are expected are registered: one that restarts now would be missing in
    the topic's replicas, and be accused. After a while as it is; at once where brokers may be down.
    """
    described = cluster.describe()
    wanted = 0 if options.with_absent else options.expected_brokers or 0
    deadline = time.monotonic() + min(_BROKERS_SECONDS, options.timeout)

    def line() -> str:
        return f"waiting for {wanted} brokers, {len(described.brokers)} are registered"

    if len(described.brokers) < wanted:
        with progress.waiting(options.output or "", "brokers", line):
            while len(described.brokers) < wanted and time.monotonic() < deadline:
                stopping.check()
                time.sleep(_AGAIN_SECONDS)
                described = cluster.describe()
    return described


def _replication(options: argparse.Namespace, homes: list, absent: list) -> tuple:
    """(replicas that are planned, replicas that the topic can have); `homes`: brokers for them, of which
    some are `absent`.
    """
    planned = options.replication_factor or min(3, len(homes))
    if planned > len(homes) and planned > (options.expected_brokers or 0):
        raise CannotRun(f"replication factor {planned} needs more than {len(homes)} brokers")
    possible = min(planned, len(homes))  # brokers are missing: coverage and durability say so
    if len(absent) >= possible:
        raise CannotRun(f"brokers {absent} are down, too many for {possible} replicas")
    return planned, possible


def _partitions(options: argparse.Namespace, homes: list) -> int:
    """How many a topic of the run's own gets."""
    partitions = options.partitions or max(min(2 * len(homes), options.records), len(homes))
    if partitions < len(homes):
        raise CannotRun(
            f"{partitions} partitions are too few for {len(homes)} brokers, of which each shall"
            f" lead one; give --partitions={len(homes)} or more"
        )
    _refuse_too_much_for(partitions, options)
    return partitions


def _refuse_too_much_for(partitions: int, options: argparse.Namespace) -> None:
    """CannotRun if the run has fewer records, or more producers, than a topic has partitions."""
    if options.records < partitions:
        raise CannotRun(f"{options.records} records are too few for {partitions} partitions")
    if (options.producers or 0) > partitions:
        raise CannotRun(
            f"{options.producers} producers are too many for {partitions} partitions, of which"
            " each is written by one; give --producers, or more --partitions"
        )


def _refuse_wrong_number(options: argparse.Namespace, topic: str, before: dict) -> None:
    """CannotRun if the topic has not as many partitions as were asked for, or not as many as the run needs."""
    if not before:
        raise CannotRun(f"topic {topic} was created, but no broker knows it")
    if options.partitions and options.partitions != len(before):
        raise CannotRun(
            f"topic {topic} has {len(before)} partitions, not {options.partitions};"
            " leave --partitions out for a topic that exists"
        )
    _refuse_too_much_for(len(before), options)


def _refuse_unfit(topic: str, config: dict, record_size: int) -> None:
    """CannotRun if the topic's settings (name -> value in force) do not let a run be judged."""
    if "compact" in config.get(CLEANUP_POLICY, ""):
        raise CannotRun(
            f"topic {topic} has {CLEANUP_POLICY}={config[CLEANUP_POLICY]}: it refuses records without"
            " a key and forgets others; give another --topic, or `inspect` it"
        )
    for name in (MOST_BYTES, SEGMENT_BYTES):
        most = int(config.get(name) or 0)
        if most and record_size + BESIDE_BYTES > most:
            raise CannotRun(
                f"topic {topic} takes {most:,} bytes ({name}), too few for records of {record_size:,};"
                f" give --record-size={max(48, most - BESIDE_BYTES)} or less, or raise it"
            )


def longest_batch(config: dict) -> int:
    """Bytes of a batch that the topic takes by these settings, where that is less than clients make
    them; else 0. A broker refuses a longer one, and the client does not divide it.
    """
    told = [int(config[name]) for name in (MOST_BYTES, SEGMENT_BYTES) if config.get(name)]
    least = min(told, default=2 * BATCH_BYTES) - BESIDE_BYTES
    return max(1, least) if least < BATCH_BYTES else 0


def refuse_long_transactions(options: argparse.Namespace, brokers: dict) -> None:
    """CannotRun if brokers do not allow transactions as long as the run's; brokers: broker -> its
    settings, of those that told them.
    """
    told = [
        int(each[LONGEST_TRANSACTION]) for each in brokers.values() if each.get(LONGEST_TRANSACTION)
    ]
    wanted, most = transaction_timeout(options), min(told, default=0) / 1000
    if told and wanted > most:
        shorter = most - (wanted - options.delivery_timeout)
        give = (
            f"give --delivery-timeout={shorter:g} or less, or raise it"
            if shorter >= 1
            else "raise it"
        )
        raise CannotRun(
            f"a transaction may take {wanted:g} s with --delivery-timeout={options.delivery_timeout:g}, and"
            f" the brokers' {LONGEST_TRANSACTION} allows {most:g} s; {give}"
        )


def refuse_states_of(brokers: dict, number: int) -> None:
    """CannotRun if the topic in which brokers keep transactions, which is not there yet, shall have more replicas
    than the `number` of them; brokers: broker -> its settings, of those that told them.
    """
    told = [int(each[_STATES_REPLICAS]) for each in brokers.values() if each.get(_STATES_REPLICAS)]
    if told and min(told) > number:
        raise CannotRun(
            f"no transaction can begin: {_STATES_REPLICAS} is {min(told)}, and there are {number} brokers, so"
            f" {_STATES_TOPIC} cannot be created; start more of them, or lower it"
        )


def _check_in_sync(options: argparse.Namespace, plan: files.Plan) -> None:
    """Refuse a run beside a change whose first record would already wait for brokers that are down."""
    fewest = min(len(place.isr) for place in plan.before.values())
    if options.with_absent and fewest < plan.min_isr:
        raise CannotRun(
            f"{MIN_ISR} is {plan.min_isr}, and of {plan.replication} replicas {fewest} would be in sync:"
            f" the brokers that run ({', '.join(map(str, plan.brokers))}) are too few"
        )


def groups_of(options: argparse.Namespace, plan: files.Plan, settings: dict) -> continuity.Groups:
    """The run's groups. In a topic of others they do not wait for the ends of others' transactions."""
    if not plan.created and not plan.transaction_records:
        settings = {**settings, "isolation.level": "read_uncommitted"}
    return continuity.Groups(settings, plan.topic, plan.groups, options.timeout)

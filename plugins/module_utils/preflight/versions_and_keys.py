# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of versions, configuration keys, replication and topics. Pure."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.bounds import (
    KIP_578,
    PARTITIONS_PER_CLUSTER,
    REPLICAS_PER_BROKER,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    topic_default,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Snapshot as TopicSnapshot,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    DesiredTopic,
    parse_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.plan import (
    TopicPolicy,
    plan_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    DECIDED_BY_CONTROLLERS,
    OWNED_AT_CONTROLLERS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.keys import (
    BAD_VALUE,
    PLUGIN,
    UNKNOWN,
    KeyTable,
    check_mapping,
    nearest,
    value_problem,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.topic_values import (
    REMOTE,
    REMOTE_SYSTEM,
    contradictions,
    value_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import HIDDEN, is_secret
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import (
    found,
    found_in_list,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    VERSION,
    Member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.ports import CONTROL_PLANE
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.storage import (
    planned_replicas,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.upgrades import (
    OLDEST_ZOOKEEPER,
    of_mode,
    parts,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    DEPLOY,
    Cluster,
    Versions,
    World,
    effective_properties,
    effective_zookeeper,
    variable_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import WARNING, Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import whole_number
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted

WHITELIST = "4lw.commands.whitelist"
WANTED_WORDS = ("mntr", "srvr")
INTERNAL_FACTORS = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
)


# ---------------------------------------------------------------- versions


def check_versions(world: World) -> Iterator[Problem]:
    """Known versions, and both products together."""
    for cluster in world.clusters:
        for member in cluster.nodes:
            yield from _product(member, "kafka", world.versions)
            version = member.text("kafka_version")
            if VERSION.match(version) and cluster.kraft and not of_mode(member, version):
                yield found(
                    "version.illegal_path",
                    member.name,
                    "kafka_version",
                    version,
                    "in KRaft mode the oldest release is 3.9, whose voters can change",
                    f"use {_offered(member, world.versions.kafka)}",
                )
            elif VERSION.match(version) and not of_mode(member, version):
                yield found(
                    "version.illegal_path",
                    member.name,
                    "kafka_version",
                    version,
                    "Kafka 4 has no ZooKeeper mode, and this inventory has an ensemble",
                    "stay on 3.9, the bridge release; migrate to KRaft from there",
                )
        for member in cluster.servers:
            yield from _product(member, "zookeeper", world.versions)
            version = member.text("zookeeper_version")
            if VERSION.match(version) and parts(version) < OLDEST_ZOOKEEPER:
                yield found(
                    "version.illegal_path",
                    member.name,
                    "zookeeper_version",
                    version,
                    "Kafka 3.8 and 3.9 need ZooKeeper 3.8.3 or newer",
                    f"use {' or '.join(world.versions.zookeeper) or 'a newer version'}",
                )


def _offered(member: Member, released: Sequence[str]) -> str:
    return " or ".join(each for each in released if of_mode(member, each)) or "a newer version"


def _product(member: Member, product: str, versions: Versions) -> Iterator[Problem]:
    variable = f"{product}_version"
    version = member.text(variable)
    released = versions.kafka if product == "kafka" else versions.zookeeper
    bad = versions.known_bad.get(product, {}).get(version)
    if bad:
        reason = f"known to be bad, {bad['bug']}: {bad['what']}"
        yield found("version.known_bad", member.name, variable, version, reason, bad["remedy"])
        return
    # What the next check refuses is not offered.
    known = [each for each in released if product != "kafka" or of_mode(member, each)]
    if not version:
        return
    if not VERSION.match(version):
        near = nearest(version, known)
        yield found(
            "version.unknown",
            member.name,
            variable,
            version,
            "not a version of three numbers",
            f"write it like {near or known[-1]}" if known else "write all three numbers",
        )
        return
    # With an archive of their own people bring what we have no lock for.
    own_archive = member.of_product("distribution_source", product) == "archive"
    legal_line = product != "kafka" or of_mode(member, version)
    if known and legal_line and version not in known and not own_archive:
        yield found(
            "version.unknown",
            member.name,
            variable,
            version,
            "this release of the collection has no lock for it",
            f"choose one of {', '.join(known)}, or set distribution_source: archive",
        )


# ---------------------------------------------------------------- keys


def broker_table_for(member: Member, versions: Versions) -> Optional[KeyTable]:
    """The table of the member's version, else of the newest one of its line."""
    version = member.text("kafka_version")
    if version in versions.broker_tables:
        return versions.broker_tables[version]
    line = version.rsplit(".", 1)[0] + "."
    same = [each for each in versions.broker_tables if each.startswith(line)]
    return versions.broker_tables[max(same, key=parts)] if same else None


def check_config(world: World) -> Iterator[Problem]:
    """Every key and value of kafka_config, kafka_host_config and zookeeper_config."""
    for member in world.members:
        if member.runs_kafka:
            table = broker_table_for(member, world.versions)
            if table is None:
                yield from _unchecked(member)
            for variable in ("kafka_config", "kafka_host_config"):
                if table is not None:
                    yield from _keys(member, variable, _as_of(member, table))
                    if member.kraft and CONTROL_PLANE in table.keys:
                        yield from _control_plane(member, variable)
        if member.is_server and world.versions.zookeeper_table is not None:
            yield from _keys(member, "zookeeper_config", world.versions.zookeeper_table)
            yield from _forbidden_words(member)


def _control_plane(member: Member, variable: str) -> Iterator[Problem]:
    """A setting that releases with both modes know, and with which no node starts in KRaft mode (seen with 3.9.2)."""
    if CONTROL_PLANE in member.mapping(variable):
        yield found(
            "config.removed_key",
            member.name,
            f"{variable}.{CONTROL_PLANE}",
            member.mapping(variable)[CONTROL_PLANE],
            "Kafka has it in ZooKeeper mode only, and does not start with it in KRaft mode",
            "leave it out, before a migration with kafka_metadata: zookeeper and playbooks/site.yml: controllers of"
            " KRaft have a listener of their own",
        )


def _unchecked(member: Member) -> Iterator[Problem]:
    version = member.text("kafka_version")
    # What has neither a table nor an archive is refused anyway.
    own_archive = member.of_product("distribution_source", "kafka") == "archive"
    if own_archive and VERSION.match(version) and of_mode(member, version):
        reason = "keys not checked: this release of the collection has no table of its keys"
        yield found("config.unchecked", member.name, "kafka_version", version, reason)


def _forbidden_words(member: Member) -> Iterator[Problem]:
    """Four-letter words that starts, waits and status need, and the server's list forbids."""
    written = effective_zookeeper(member).get(WHITELIST, "")
    allowed = str(written).replace(",", " ").split()
    missing = [word for word in WANTED_WORDS if word not in allowed]
    if missing and "*" not in allowed:
        yield found(
            "config.bad_value",
            member.name,
            f"zookeeper_config.{WHITELIST}",
            ",".join(allowed),
            f"starts, waits and status ask a server {' and '.join(missing)}",
            f"write {','.join(sorted({*allowed, *WANTED_WORDS}))}, or leave the key out",
        )


def _as_of(member: Member, table: KeyTable) -> KeyTable:
    """The table with a member's own plug-ins, and in KRaft mode with what the controllers' listener owns."""
    return replace(
        table,
        prefixes=table.prefixes
        + tuple(str(each) for each in member.items("kafka_plugin_prefixes")),
        # In ZooKeeper mode a listener of brokers may have its name.
        owned_patterns=table.owned_patterns + (OWNED_AT_CONTROLLERS if member.kraft else ()),
    )


def _keys(member: Member, variable: str, table: KeyTable) -> Iterator[Problem]:
    mapping = member.mapping(variable)
    for key, problem in check_mapping(mapping, table).items():
        # What no table knows may be a secret, misspelt or of a plug-in: its value is not shown either.
        hidden = is_secret(str(key)) or problem.check in (UNKNOWN, PLUGIN)
        value = HIDDEN if hidden else mapping[key]
        yield found(
            problem.check,
            member.name,
            f"{variable}.{key}",
            value,
            problem.reason,
            problem.remedy,
        )


# ---------------------------------------------------------------- replication


def check_replication(world: World) -> Iterator[Problem]:
    """Racks of the brokers, and replication factors and minimum ISR of the nodes against the number of brokers."""
    for cluster in world.clusters:
        yield from _racks(cluster, "" if world.purpose == DEPLOY else WARNING)
        for member in cluster.nodes:
            yield from _factors(cluster, member)


def _racks(cluster: Cluster, level: str) -> Iterator[Problem]:
    """Racks of some brokers only; what the brokers run with until a roll has brought all of them is no matter.

    An error only in a deployment, which may add brokers and topics: other runs replace, empty or upgrade brokers
    of a cluster that has run so, and moves that need racks are refused by themselves.
    """
    without = [each.name for each in cluster.staying_brokers if not each.text("kafka_rack")]
    if without and len(without) < len(cluster.staying_brokers):
        yield found(
            "racks.some",
            without,
            "kafka_rack",
            "",
            "other brokers of the cluster have a rack; while some have none, moves of replicas ignore racks",
            level=level,
        )


def _factors(cluster: Cluster, member: Member) -> Iterator[Problem]:
    brokers = len(cluster.staying_brokers)
    properties = effective_properties(member, brokers)
    if not member.is_broker:
        # Of a controller nothing else is in effect.
        properties = {key: properties[key] for key in properties if key in DECIDED_BY_CONTROLLERS}
    variable = functools.partial(variable_of, member)
    for key in ("default.replication.factor",) + INTERNAL_FACTORS:
        factor = whole_number(properties.get(key))
        if factor is None or factor < 1:
            continue
        if factor > brokers:
            yield found(
                "replication.exceeds_brokers",
                member.name,
                variable(key),
                factor,
                f"cluster {cluster.name} has {counted(brokers, 'broker')}",
                f"set at most {brokers}, or add brokers",
            )
        elif factor == 1 and brokers >= 3 and key in INTERNAL_FACTORS:
            yield found(
                "replication.internal",
                member.name,
                variable(key),
                factor,
                f"one copy, where {brokers} brokers are: when that broker stops, so do the "
                "groups or transactions on it",
            )
    for isr_key, factor_key in (
        ("min.insync.replicas", "default.replication.factor"),
        ("transaction.state.log.min.isr", "transaction.state.log.replication.factor"),
    ):
        minimum, factor = whole_number(properties.get(isr_key)), whole_number(
            properties.get(factor_key)
        )
        if minimum is None or factor is None or minimum < 1:
            continue
        if minimum > factor or (minimum == factor and factor > 1):
            harm = (
                "no write with acks=all can ever succeed"
                if minimum > factor
                else "one broker down stops every write with acks=all"
            )
            yield found(
                "replication.min_insync",
                member.name,
                variable(isr_key),
                minimum,
                f"not below {factor_key}={factor}: {harm}",
                f"set it to {max(1, factor - 1)}",
            )
    if properties.get("unclean.leader.election.enable", "").lower() == "true":
        yield found(
            "replication.unclean",
            member.name,
            variable("unclean.leader.election.enable"),
            True,
            "a replica that lags may become leader, and what it lacks is lost",
        )


# ---------------------------------------------------------------- topics


def check_topics(world: World) -> Iterator[Problem]:
    """Every declared topic, by the same functions that the module `kafka_topics` uses.

    Against an empty cluster, since each has to be one that can be made; and where the run changes
    topics, against those that exist: what cannot be is told before a broker is restarted for the rest.
    """
    for cluster in world.clusters:
        # One broker's list stands for the cluster's; that they are equal is another check.
        for member in cluster.brokers[:1]:
            yield from _topics(world, cluster, member)


def _topics(world: World, cluster: Cluster, member: Member) -> Iterator[Problem]:
    items = member.items("kafka_topics")
    hosts = [each.name for each in cluster.brokers]
    desired, refusals = parse_topics(items)
    properties = effective_properties(member, len(cluster.staying_brokers))
    keys = world.versions.topic_keys.get(member.text("kafka_version")) or {}
    snapshot = TopicSnapshot(
        brokers=tuple(Broker(index, "", 0) for index in range(len(cluster.staying_brokers))),
        broker_defaults=properties,
        known_keys=frozenset(keys) if keys else None,
        assumed=True,
    )
    refused = [*refusals, *plan_topics(desired, snapshot, TopicPolicy()).refusals]
    if world.reconciles and world.purpose == DEPLOY and cluster.snapshot:
        allow = frozenset(str(each) for each in member.items("kafka_topics_allow"))
        there = replace(snapshot, topics=cluster.snapshot.topics)
        refused += plan_topics(desired, there, TopicPolicy(allow=allow)).refusals
    for refusal in dict.fromkeys(refused):
        yield found_in_list(refusal, hosts, "kafka_topics", items)
    for topic in desired:
        for key, value in topic.config.items():
            # What is unknown is refused above; without a value it is the brokers' default.
            problem = value_problem(key, value, keys[key]) if value and key in keys else None
            if problem:
                variable = f"kafka_topics[{topic.name}].config.{key}"
                yield found(problem.check, hosts, variable, value, problem.reason, problem.remedy)
        yield from _refused_together(cluster, topic, hosts, properties, keys)
    yield from _many_partitions(cluster, desired, hosts, properties)


def _refused_together(
    cluster: Cluster,
    topic: DesiredTopic,
    hosts: List[str],
    properties: Mapping[str, str],
    keys: Mapping[str, Mapping[str, Any]],
) -> Iterator[Problem]:
    """Settings that the brokers would refuse together, with what the topic has already."""
    if topic.state != "present" or not topic.config:
        return
    there = cluster.snapshot.topics.get(topic.name) if cluster.snapshot else None
    config = (there.config if there else None) or {}
    own = {name: each.value for name, each in config.items() if each.source == "topic"}
    wanted = {**own, **topic.config}

    def effective(key: str) -> Optional[str]:
        return value_of(key, wanted, of_brokers, keys)

    def of_brokers(key: str) -> Optional[str]:
        known = topic_default(key, properties)
        return properties.get(keys.get(key, {}).get("broker_key", "")) if known is None else known

    tiered = str(properties.get(REMOTE_SYSTEM, "")).lower() == "true"
    for each in contradictions(effective, tiered, was_remote=own.get(REMOTE) == "true"):
        # The one that is named is told; what was there before is not the inventory's.
        key = each.key if each.key in topic.config else min(topic.config)
        variable = f"kafka_topics[{topic.name}].config.{key}"
        value = each.value if key == each.key else topic.config[key]
        reason = each.reason if key == each.key else f"{each.key}={each.value}: {each.reason}"
        yield found(BAD_VALUE, hosts, variable, value, reason, each.remedy)


def _many_partitions(
    cluster: Cluster,
    desired: Iterable[DesiredTopic],
    hosts: List[str],
    properties: Mapping[str, Any],
) -> Iterator[Problem]:
    present = [topic for topic in desired if topic.state == "present"]
    default = whole_number(properties.get("num.partitions")) or 1
    partitions = sum(topic.partitions or default for topic in present)
    replicas = planned_replicas(cluster)
    if replicas > REPLICAS_PER_BROKER or partitions > PARTITIONS_PER_CLUSTER:
        yield found(
            "topics.partitions",
            hosts,
            "kafka_topics",
            f"{partitions} partitions",
            f"about {replicas} replicas a broker; the bounds of ZooKeeper mode are "
            f"{REPLICAS_PER_BROKER} a broker and {PARTITIONS_PER_CLUSTER} a cluster ({KIP_578})",
            level=WARNING,
        )


def products(members: Tuple[Member, ...]) -> List[Dict[str, Any]]:
    """The distinct products and versions that the members need: [{product, version, ...}]."""
    wanted: Dict[Tuple[str, ...], Mapping[str, Any]] = {}
    for member in members:
        if member.is_server and member.text("zookeeper_version"):
            version = member.text("zookeeper_version")
            wanted[("zookeeper", version)] = {"product": "zookeeper", "version": version}
        if member.runs_kafka and member.text("kafka_version"):
            version, scala = member.text("kafka_version"), member.text("kafka_scala_version")
            wanted[("kafka", version, scala)] = {
                "product": "kafka",
                "version": version,
                "scala_version": scala,
            }
    return [dict(wanted[key]) for key in sorted(wanted)]

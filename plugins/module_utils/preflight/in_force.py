# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of what the inventory would change in a cluster that exists. Pure.

The brokers' own configuration files say what is in force, so a stopped cluster is checked, too.
"""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    BROKER_KEYS,
    ConfigEntry,
    Topic,
    topic_default,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.dangers import (
    RETENTION_CUT,
    Danger,
    dangers,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    DECIDED_BY_CONTROLLERS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import HIDDEN
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.identity import id_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    Listener,
    Member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    WRITING,
    Cluster,
    Snapshot,
    Versions,
    World,
    effective_properties,
    variable_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    ERROR,
    WARNING,
    Problem,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    format_duration_ms,
    whole_number,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted, some

MIN_INSYNC = "min.insync.replicas"
OFFSETS_RETENTION = "offsets.retention.minutes"
# Set and taken away by whoever moves replicas.
THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
# listener name, as Kafka compares it -> (protocol, port)
Shape = Mapping[str, Tuple[str, int]]


def check_in_force(world: World) -> Iterator[Problem]:
    """The configuration that each node has against the one that the inventory gives it."""
    for cluster in world.clusters:
        for member in cluster.brokers:
            yield from _chroot(member, cluster.snapshot)
        yield from _listeners(cluster)
        yield from _min_insync(cluster)
        # Others put nothing of the inventory into effect.
        if world.purpose in WRITING:
            for member in cluster.nodes:
                yield from _records(member, len(cluster.brokers), world.versions)
                yield from _committed_offsets(member, len(cluster.brokers), world.versions)
        yield from _overrides(cluster)


def _current(member: Member) -> Mapping[str, str]:
    return member.product_facts("kafka").get("current") or {}


def addresses_in_effect(members: Iterable[Member]) -> List[str]:
    """Where brokers are to be asked now, as host:port: their admin listener as their configuration in
    force has it, or with another name the first one of its protocol. Brokers of which nothing is
    known are left out."""
    found = []
    for member in members:
        properties = _current(member)
        if not properties or not member.listeners:
            continue
        name = member.text("kafka_admin_listener")
        wanted = [each for each in member.listeners if each.name == name] or [member.listeners[0]]
        protocols = listeners_of(properties)
        texts = properties.get("advertised.listeners") or properties.get("listeners", "")
        places = {}
        for text in texts.split(","):
            listener, _slashes, address = text.strip().partition("://")
            if listener.upper() in protocols and address.rpartition(":")[0]:
                places[listener.upper()] = address
        alike = [each for each in places if protocols[each][0] == wanted[0].protocol]
        own = wanted[0].name.upper()
        if own in places or alike:
            found.append(places[own] if own in places else places[alike[0]])
    return list(dict.fromkeys(found))


def _has_been_broker(member: Member) -> bool:
    """Whether the broker was part of a cluster: it runs, or its disks hold the cluster's id."""
    ids = ((each.get("meta") or {}).get("cluster.id") for each in member.log_directories)
    return member.alive("kafka") or any(ids)


# ---------------------------------------------------------------- the chroot


def _chroot(member: Member, snapshot: Optional[Snapshot]) -> Iterator[Problem]:
    connect = _current(member).get("zookeeper.connect", "")
    if not _has_been_broker(member) or "kafka_zookeeper_chroot" in member.errors:
        return
    _servers, slash, path = connect.partition("/")
    current = f"{slash}{path}".rstrip("/")
    wanted = member.text("kafka_zookeeper_chroot")
    if wanted.rstrip("/") == current or not connect:
        if snapshot and snapshot.no_cluster_there:
            yield found(
                "cluster.chroot_changed",
                member.name,
                "kafka_zookeeper_chroot",
                wanted,
                "ZooKeeper keeps no cluster there, and this broker belongs to one: it would find no topics and"
                " another cluster id, and stop",
                "set it to the path behind the servers in zookeeper.connect of that cluster, to / where there is none",
            )
        return
    yield found(
        "cluster.chroot_changed",
        member.name,
        "kafka_zookeeper_chroot",
        wanted,
        f"the broker's cluster lives below {current or '/'} in ZooKeeper; elsewhere it would find no"
        " topics and another cluster id, and stop",
        f"set kafka_zookeeper_chroot: {current or '/'}",
    )


# ---------------------------------------------------------------- listeners


def listeners_of(properties: Mapping[str, str]) -> Dict[str, Tuple[str, int]]:
    """The listeners of a server.properties: name in upper case -> (protocol, port)."""
    protocols = {}
    for pair in properties.get("listener.security.protocol.map", "").split(","):
        name, _colon, protocol = pair.strip().partition(":")
        protocols[name.upper()] = protocol
    shape = {}
    for text in properties.get("listeners", "").split(","):
        name, _slashes, address = text.strip().partition("://")
        port = address.rpartition(":")[2]
        if name.upper() in protocols and port.isdigit():
            shape[name.upper()] = (protocols[name.upper()], int(port))
    return shape


def _listeners(cluster: Cluster) -> Iterator[Problem]:
    current = {each.name: listeners_of(_current(each)) for each in cluster.brokers}
    rolled = cluster.answers or any(each.alive("kafka") for each in cluster.brokers)
    for member in cluster.brokers:
        had = current[member.name]
        if not had or not member.listeners or not _has_been_broker(member):
            continue
        changed = list(_changed_protocols(member, had))
        problems = changed or _lost_clients(member, had)
        if not changed and len(cluster.brokers) > 1:
            problems += _lost_brokers(cluster, member, current)
        for variable, value, reason in problems:
            yield found(
                "listeners.protocol_changed",
                member.name,
                variable,
                value,
                reason,
                # Where no broker runs there is no roll; only clients have to follow.
                level=ERROR if rolled else WARNING,
            )


# (variable, value, reason)
_Told = Tuple[str, str, str]


def _changed_protocols(member: Member, had: Shape) -> Iterator[_Told]:
    for index, each in enumerate(member.listeners):
        before = had.get(each.name.upper(), ("", 0))[0]
        if before and each.protocol and each.protocol != before:
            yield (
                f"kafka_listeners[{index}].protocol",
                each.protocol,
                f"the listener {each.name} speaks {before} now: brokers and clients that still speak"
                " it lose one broker after another",
            )


def _lost_clients(member: Member, had: Shape) -> List[_Told]:
    """Whether no client that knows the brokers today would still reach this one."""
    for_clients = [
        each for each in member.listeners if not each.audience or "clients" in each.audience
    ]
    # A listener with another name on its old port is the same one to clients.
    kept = [
        each
        for each in for_clients or member.listeners
        if each.name.upper() in had or (each.protocol, each.port) in had.values()
    ]
    if kept:
        return []
    names = ", ".join(f"{name} ({protocol})" for name, (protocol, _port) in sorted(had.items()))
    wanted = ", ".join(f"{each.name} ({each.protocol})" for each in for_clients)
    reason = f"clients use {names} now, and none of these stays for them"
    return [("kafka_listeners", wanted, reason)]


def _lost_brokers(cluster: Cluster, member: Member, current: Mapping[str, Shape]) -> List[_Told]:
    """Whether brokers before and after their restart would miss each other's listener.

    A broker looks for the listener of its own `inter.broker.listener.name` in what the other one
    has registered.
    """
    own: Listener = member.inter_broker_listener or member.listeners[0]
    before = _current(member).get("inter.broker.listener.name", "").upper()
    told = []
    if before and before not in {each.name.upper() for each in member.listeners}:
        told.append(
            (
                "kafka_listeners",
                ", ".join(each.name for each in member.listeners),
                f"brokers that are not restarted yet still look for the listener {before} here",
            )
        )
    lacking = [
        each.name
        for each in cluster.brokers
        if current[each.name] and own.name.upper() not in current[each.name]
    ]
    if not told and lacking and own.name.upper() != before:
        told.append(
            (
                "kafka_inter_broker_listener",
                own.name,
                f"{', '.join(lacking)} has no such listener before its restart, so this broker"
                " would not reach it",
            )
        )
    return told


# ---------------------------------------------------------------- in-sync replicas


def _min_insync(cluster: Cluster) -> Iterator[Problem]:
    """A default of min.insync.replicas as high as the replicas of existing topics: none may stop.

    More brokers raise the default by themselves, and topics keep the replicas that they have.
    """
    if cluster.snapshot is None:
        return
    raised: Dict[Tuple[int, int], List[str]] = {}
    for member in cluster.brokers:
        before = whole_number(_current(member).get(MIN_INSYNC))
        wanted = whole_number(
            effective_properties(member, len(cluster.staying_brokers)).get(MIN_INSYNC)
        )
        if before is not None and wanted is not None and wanted > before:
            raised.setdefault((before, wanted), []).append(member.name)
    for (before, wanted), hosts in sorted(raised.items()):
        at_stake = [
            (replicas, count, names)
            for replicas, (count, names) in sorted(cluster.snapshot.on_default_min_isr.items())
            if replicas <= wanted
        ]
        if not at_stake:
            continue
        topics = [
            f"{name} ({counted(replicas, 'replica')})"
            for replicas, _count, names in at_stake
            for name in names
        ]
        told = some(topics, total=sum(count for _replicas, count, _names in at_stake))
        if at_stake[0][0] < wanted:
            harm = "topics with fewer replicas take no write with acks=all any more"
        else:
            harm = "topics with as many replicas take no write with acks=all while a broker is down"
        yield found(
            "replication.min_insync_raised",
            hosts,
            MIN_INSYNC,
            wanted,
            f"the brokers have {before} now; {harm}: {told}",
            f"set kafka_config: {{{MIN_INSYNC}: {before}}} until these topics have"
            f" {wanted + 1} replicas",
        )


# ---------------------------------------------------------------- what deletes or endangers records


def _records(member: Member, brokers: int, versions: Versions) -> Iterator[Problem]:
    """Defaults of the brokers by which records that are there go, or are less safe: only with consent.

    As for a setting of one topic, by the same function: every topic without a value of its own gets
    these. An override that somebody else has set counts on neither side: it stays in effect. Of a controller that is
    no broker only what controllers decide is in effect.
    """
    if not _current(member) or not _has_been_broker(member):
        return
    ours = member.product_facts("kafka").get("overrides") or {}
    # What we changed without a restart is in effect; the older value, where a change is under way.
    before = {**_current(member), **{key: values[0] for key, values in ours.items() if values}}
    wanted = effective_properties(member, brokers)
    known = versions.topic_keys.get(member.text("kafka_version")) or {}
    for key, names in BROKER_KEYS.items():
        if not member.is_broker and names[0][0] not in DECIDED_BY_CONTROLLERS:
            continue
        default = known.get(key, {}).get("default")
        unset = not any(name in before for name, _factor in names)
        old = default if unset else topic_default(key, before)
        name = next((name for name, _factor in names if name in wanted), names[0][0])
        new = topic_default(key, wanted) if name in wanted else default
        # What is not a value is another finding.
        if new is None or same_value(key, old, new):
            continue
        topic = Topic("", (), {key: ConfigEntry(key, old)})
        value = wanted.get(name, "(not set)")
        for danger in dangers(topic, {key: new}):
            sentence = f"{danger.sentence}; so for every topic without a value of its own"
            yield _unless_consented(danger._replace(key=name, sentence=sentence), member, value)


def _unless_consented(danger: Danger, member: Member, value: str) -> Problem:
    # With consent the same words are shown, as in a plan of topics.
    consented = danger.consent in member.items("kafka_topics_allow")
    return found(
        danger.check,
        member.name,
        variable_of(member, danger.key),
        value,
        f"{danger.sentence}{' (accepted)' if consented else ''}",
        "keep what the brokers have, or consent for this run with"
        f" -e kafka_topics_allow={danger.consent}",
        level=WARNING if consented else ERROR,
    )


def _committed_offsets(member: Member, brokers: int, versions: Versions) -> Iterator[Problem]:
    """A shorter time for which a group without members keeps its committed offsets: with the consent of a retention.

    What expires are records of Kafka's own topic of offsets. A controller that is no broker keeps none.
    """
    table = versions.broker_tables.get(member.text("kafka_version"))
    if not (table and member.is_broker and _current(member) and _has_been_broker(member)):
        return
    default = (table.keys.get(OFFSETS_RETENTION) or {}).get("default")
    wanted = effective_properties(member, brokers)
    before, after = (
        whole_number(each.get(OFFSETS_RETENTION, default)) for each in (_current(member), wanted)
    )
    if before is None or after is None or after >= before:
        return
    had, gets = (format_duration_ms(each * 60 * 1000) for each in (before, after))
    sentence = (
        f"down from {had} to {gets}: a group without members for longer loses its committed offsets, and begins by"
        " its auto.offset.reset, at records that it has seen or behind those that it has not"
    )
    danger = Danger("retention.offsets_cut", RETENTION_CUT, OFFSETS_RETENTION, sentence)
    yield _unless_consented(danger, member, wanted.get(OFFSETS_RETENTION, "(not set)"))


# ---------------------------------------------------------------- overrides


def _from_the_first_format(cluster: Cluster, key: str, value: Optional[str]) -> bool:
    """Whether Kafka itself has made an override of what its controllers' configuration says.

    Since 4.1 they do so with min.insync.replicas when a cluster begins, for eligible leader replicas.
    """
    if not cluster.kraft or key != MIN_INSYNC:
        return False
    brokers = len(cluster.staying_brokers)
    return all(effective_properties(each, brokers).get(key) == value for each in cluster.brokers)


def _overrides(cluster: Cluster) -> Iterator[Problem]:
    """Settings that somebody has set in the cluster: they beat what the inventory says, also after a restart."""
    if cluster.snapshot is None:
        return
    # By the id that each has now: the inventory need not name one.
    members = {id_of(_current(each)): each for each in cluster.brokers}
    places = [each for addresses in cluster.snapshot.brokers.values() for each in addresses]
    for broker, key, value in cluster.snapshot.overrides:
        if key in THROTTLES or (broker is not None and broker not in members):
            continue
        concerned = [members[broker]] if broker is not None else list(cluster.brokers)
        if broker is None and _from_the_first_format(cluster, key, value):
            continue
        known = [each.product_facts("kafka").get("overrides") for each in concerned]
        # Of a broker whose host did not answer, nobody knows what we have set.
        if broker is not None and (known[0] is None or value in known[0].get(key, ())):
            continue
        own = (cluster.snapshot.brokers.get(broker) if broker is not None else None) or places
        host, port = own[0] if own else ("HOST", 9092)
        entity = "--entity-default" if broker is None else f"--entity-name {broker}"
        yield found(
            "config.dynamic_override",
            [each.name for each in concerned],
            key,
            HIDDEN if value is None else value,
            "somebody has set it in the cluster, where it beats what the inventory says, also after a"
            " restart",
            f"put the value into kafka_config if it is wanted; `kafka-configs.sh --bootstrap-server"
            f" {endpoint(host, port)} --alter --entity-type brokers {entity} --delete-config {key}`"
            " takes it away",
        )

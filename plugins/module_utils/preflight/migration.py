# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of a run that takes a cluster from ZooKeeper to KRaft, and what its plan has to know. Pure.

What follows from how far the nodes are is judged by admin.migration.plan, when controllers and ZooKeeper were asked.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.migration.plan import (
    Node,
    phases_told,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration import protocol
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    STATIC_VOTERS,
    inner_mechanism,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.migration import (
    IN_KRAFT,
    LINE,
    MIGRATING,
    PHASES,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight import taking_over
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.formats import (
    keeps_its_vote,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.identity import identities
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.upgrades import (
    FINALIZE,
    ROLLING_UPGRADE,
    running_version,
    speaker,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    Cluster,
    World,
    phase_in_force,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# By which a broker is known to ZooKeeper: certificates, rights on its nodes, and a file of Java's logins.
TLS_KEYS, ACL_KEY = ("zookeeper.ssl.", "zookeeper.clientCnxnSocket"), "zookeeper.set.acl"
LOGIN_FILE = "java.security.auth.login.config"
SPOKEN = protocol.text(LINE)
REPLACE = "let it start where the others are, with playbooks/replace_broker.yml -e broker=ID, then run this again"
CHOOSE = "choose the one that migrates with --limit"


def check_migration(world: World) -> Iterator[Problem]:
    """What has to hold before the first controller starts, and all the way."""
    for cluster in world.clusters if world.migrates else ():
        if not cluster.kraft:
            yield _of(
                "migration.inventory",
                list(cluster.members),
                f"the inventory keeps cluster {cluster.name} in ZooKeeper",
                CHOOSE if any(each.kraft for each in world.clusters) else "",
            )
            continue
        yield from _whole(cluster)
        yield from _apart(cluster)
        yield from _installed(cluster)
        yield from _versions(cluster)
        yield from _closed_zookeeper(cluster)
        yield from _other_login(cluster)


def _of(check: str, members: List[Member], reason: str, remedy: str = "") -> Problem:
    value = members[0].text("kafka_metadata")
    return found(check, [each.name for each in members], "kafka_metadata", value, reason, remedy)


def _whole(cluster: Cluster) -> Iterator[Problem]:
    outside = [each for each in cluster.nodes if not each.in_play]
    if outside:
        reason = (
            "this run is without it, and the controllers wait for every broker and every controller"
        )
        yield _of("migration.limited", outside, reason)


def _elsewhere(cluster: Cluster) -> str:
    """What to do where a cluster was meant that has nothing to migrate, as one that began with KRaft; "" if it has."""
    if not all(phase_in_force(each) == IN_KRAFT for each in cluster.brokers):
        return ""
    return f"cluster {cluster.name} is in KRaft mode already: {CHOOSE}"


def _apart(cluster: Cluster) -> Iterator[Problem]:
    both = [each for each in cluster.brokers if each.is_controller]
    if both:
        reason = "it is a broker, and Kafka lets no broker with metadata in ZooKeeper be a controller, too"
        yield _of("migration.combined", both, reason, _elsewhere(cluster))


def _installed(cluster: Cluster) -> Iterator[Problem]:
    # Of a silent host nobody knows; that it is silent is another finding.
    bare = [
        each
        for each in cluster.brokers
        if each.facts is not None
        if not phase_in_force(each) or taking_over.is_former(each)
    ]
    if bare and cluster.under_way:
        reason = (
            f"nothing tells here how far the broker was, while cluster {cluster.name} is on its way: its host is a new"
            " one, or has lost its configuration"
        )
        yield _of("migration.not_installed", bare, reason, REPLACE)
    elif bare and any(phase_in_force(each) == IN_KRAFT for each in cluster.brokers):
        reason = (
            "no broker was ever started here by this collection, and the others have left ZooKeeper"
        )
        remedy = f"take the ZooKeeper servers out of the inventory, then {REPLACE}"
        yield _of("migration.not_installed", bare, reason, remedy)
    elif bare:
        reason = "no broker was ever started here by this collection"
        yield _of("migration.not_installed", bare, reason)
    here = [each for each in cluster.brokers if phase_in_force(each) not in ("", IN_KRAFT)]
    if here and not cluster.servers:
        reason = "the broker has its metadata in ZooKeeper, and the inventory has no servers of it"
        yield _of("migration.no_servers", here, reason)


def _versions(cluster: Cluster) -> Iterator[Problem]:
    for member in cluster.nodes:
        wanted, running = member.text("kafka_version"), running_version(member, "kafka")
        if protocol.line(wanted) != LINE or (running and protocol.line(running) != LINE):
            yield found(
                "migration.version",
                member.name,
                "kafka_version",
                wanted,
                f"the way was seen with Kafka {SPOKEN} alone"
                + (f", and the host runs {running}" if running else ""),
                _elsewhere(cluster)
                or f"bring the cluster to {SPOKEN}.2 by {ROLLING_UPGRADE} with kafka_metadata: zookeeper first; newer"
                " releases come after the migration",
            )
    for member in cluster.brokers:
        if phase_in_force(member) in ("", IN_KRAFT):
            continue
        spoken = speaker(member).speaks
        written = next(
            (
                (name, str(member.mapping(name)[protocol.KEY]))
                for name in ("kafka_host_config", "kafka_config")
                if protocol.KEY in member.mapping(name)
            ),
            None,
        )
        if spoken != LINE or (written and protocol.line(written[1]) != LINE):
            value = written[1] if written else protocol.text(spoken or ())
            setting = f"{written[0]}.{protocol.KEY}" if written else protocol.KEY
            yield found(
                "migration.protocol",
                member.name,
                setting,
                value,
                f"the controllers have the metadata version of {SPOKEN}, and wait for ever for a broker that speaks"
                " another protocol, without a word in its log",
                f"finalise it with kafka_metadata: zookeeper: {ROLLING_UPGRADE} -e {FINALIZE}=true",
            )


def _closed_zookeeper(cluster: Cluster) -> Iterator[Problem]:
    """Controllers read and write ZooKeeper as the brokers do; nobody has tried it where that needs a login."""
    closed = [
        each for each in cluster.brokers if phase_in_force(each) != IN_KRAFT and _logs_in(each)
    ]
    if closed:
        reason = "it logs in to ZooKeeper, or speaks TLS to it, and such a migration was not tried"
        yield _of("migration.secured", closed, reason)


def _other_login(cluster: Cluster) -> Iterator[Problem]:
    """Controllers that log in at brokers in another way than these do among themselves.

    They take the metadata over and write them to ZooKeeper all the same, and no broker hears of a leader any more.
    """
    inner = next((each.inter_broker_listener for each in cluster.brokers), None)
    if inner is None or not inner.protocol.startswith("SASL"):
        return
    among = inner_mechanism(cluster.brokers[0].mapping("kafka_sasl"))
    for member in cluster.controllers_apart:
        sasl = member.mapping("kafka_sasl")
        own = inner_mechanism(sasl)
        if own and among and own != among:
            chosen = bool(sasl.get("inter_broker_mechanism"))
            yield found(
                "settings.not_uniform",
                member.name,
                f"kafka_sasl.{'inter_broker_mechanism' if chosen else 'mechanisms'}",
                own,
                "while the brokers have their metadata in ZooKeeper, a controller logs in at them as they do among"
                f" themselves, and they do by {among}: none of them would hear of it",
                "set kafka_sasl once for controllers and brokers",
            )
        elif not own:
            yield found(
                "listeners.security",
                member.name,
                "kafka_sasl.mechanisms",
                [],
                f"while the brokers have their metadata in ZooKeeper, a controller logs in at them by {among}",
                "set kafka_sasl once for controllers and brokers",
            )


def _logs_in(member: Member) -> bool:
    """Whether this broker has a login or TLS for ZooKeeper, by what runs or by what it is to get."""
    settings: Dict[str, Any] = dict(member.product_facts("kafka").get("current") or {})
    for name in ("kafka_config", "kafka_host_config"):
        settings.update(member.mapping(name))
    if any(
        key.startswith(TLS_KEYS) or (key == ACL_KEY and str(value).strip().lower() == "true")
        for key, value in settings.items()
    ):
        return True
    given = [*member.items("kafka_jvm_options"), *member.items("kafka_gc_options")]
    given += member.mapping("kafka_environment").values()
    return any(LOGIN_FILE in str(each) for each in given)


# ---------------------------------------------------------------- what the plan has to know


def nodes_of(cluster: Cluster) -> Tuple[Node, ...]:
    """Brokers, then controllers, by what runs and what is on their disks."""
    ids = identities(cluster)[0]
    return tuple(
        Node(
            each.name,
            ids[each.name],
            each.is_broker,
            phase_in_force(each),
            each.alive("kafka"),
            # Nobody formats a broker of ZooKeeper; and of a silent disk nothing is known.
            formatted=each.is_broker or keeps_its_vote(each) is not False,
        )
        for each in cluster.nodes
    )


def state_lines(cluster: Cluster) -> List[str]:
    """What is half done of a migration, for a table of the status."""
    return phases_told(nodes_of(cluster))


def told(cluster: Cluster) -> Dict[str, Any]:
    """What a migration's playbook gets.

    {nodes, zookeeper, chroot, inner, servers, outside, quorate, protocols, line, voters, keeps}.

    `zookeeper`: the connect string in force, "" where no node has one; `inner`: the brokers' inter-broker
    listener; `servers`: hosts of the inventory where a ZooKeeper server is installed; `outside`: those that the run is
    without; `quorate`: whether more than half of all run; `protocols`: what a broker in ZooKeeper mode is to name;
    `voters`: where controllers may listen, by the inventory and by the configurations in force; `keeps`: host -> how
    far each node is to be, where a broker is replaced, else empty: the steps say it.
    """
    servers = [
        each
        for each in cluster.servers
        if each.alive("zookeeper") or each.product_facts("zookeeper").get("current")
    ]
    members = {each.name: each for each in cluster.nodes}
    connects = [
        (each.product_facts("kafka").get("current") or {}).get("zookeeper.connect", "")
        for each in cluster.nodes
    ]
    inner = next((each.inter_broker_listener for each in cluster.brokers), None)
    speakers = [speaker(each) for each in cluster.brokers]
    return {
        "nodes": [
            {
                "host": each.host,
                "id": each.id,
                "is_broker": each.is_broker,
                "phase": each.phase,
                "running": each.running,
                "formatted": each.formatted,
                "metadata_dir": (members[each.host].log_dirs or ("",))[0],
                # Asked on its own host, as its own start is: the address of others may lead elsewhere from there.
                "place": (
                    ""
                    if each.is_broker
                    else endpoint(
                        members[each.host].text("kafka_controller_bind") or "127.0.0.1",
                        members[each.host].get("kafka_controller_port"),
                    )
                ),
            }
            for each in nodes_of(cluster)
        ],
        "zookeeper": next((each for each in connects if each), ""),
        "chroot": cluster.brokers[0].text("kafka_zookeeper_chroot") if cluster.brokers else "",
        "inner": (
            {"name": inner.name, "protocol": inner.protocol}
            if inner
            else {"name": "", "protocol": ""}
        ),
        "servers": [each.name for each in servers],
        "outside": [each.name for each in servers if not each.in_play],
        "quorate": 2 * sum(each.alive("zookeeper") for each in servers) > len(cluster.servers),
        "protocols": {
            each.name: protocol.pin(own, speakers, each.text("kafka_version"))
            for each, own in zip(cluster.brokers, speakers)
        },
        "line": SPOKEN,
        "voters": _places_of_controllers(cluster),
        "keeps": {} if cluster.migrates else _kept_phases(cluster),
    }


def _kept_phases(cluster: Cluster) -> Dict[str, str]:
    """host -> how far it is, and stays, where a node is replaced. Who has no configuration is as far as the last one.

    A controller that is replaced gets no ZooKeeper any more where another one has left it.
    """
    ids, _servers = identities(cluster)
    phases = {each.name: phase_in_force(each) for each in cluster.nodes}
    least = [each for each in PHASES if each in (phases[one.name] for one in cluster.brokers)]
    ended = any(phases[each.name] == IN_KRAFT for each in cluster.controllers_apart)
    of_brokers = (least or [IN_KRAFT if ended else MIGRATING])[0]
    lacking = {
        each.name: of_brokers if each.is_broker else IN_KRAFT if ended else MIGRATING
        for each in cluster.nodes
        if not phases[each.name] or (ids[each.name] == cluster.replaced and not each.is_broker)
    }
    return {**phases, **lacking}


def _places_of_controllers(cluster: Cluster) -> List[str]:
    """HOST:PORT of each controller of the inventory, and of each that a node's configuration in force names."""
    places = {_place_of(each) for each in cluster.nodes if not each.is_broker}
    for each in cluster.nodes:
        known = (each.product_facts("kafka").get("current") or {}).get(STATIC_VOTERS, "")
        places |= {one.strip().partition("@")[2] for one in known.split(",") if one.strip()}
    return sorted(places)


def _place_of(controller: Member) -> str:
    return endpoint(controller.text("kafka_address"), controller.get("kafka_controller_port"))

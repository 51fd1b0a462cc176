# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The whole inventory as one value: what every check of the preflight looks at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Topic
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    STATIC_VOTERS,
    broker_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.keys import KeyTable
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.migration import (
    IN_ZOOKEEPER,
    MIGRATING,
    phase_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.zookeeper import (
    zookeeper_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.ids import natural_key
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    Listener,
    Member,
)

# What a run is for: to bring the inventory into effect (versions stay), to do without any change of
# versions, to talk to running brokers only, whoever has installed them, to start what was in effect, to
# upgrade, to go back, to fill the controller's cache without contact to any host.
DEPLOY, KEEP, STATE = "deploy", "keep", "state"
START, UPGRADE, ROLLBACK, FETCH = "start", "upgrade", "rollback", "fetch"
PURPOSES = (DEPLOY, KEEP, STATE, START, UPGRADE, ROLLBACK, FETCH)
# Those that start brokers with what the inventory says.
WRITING = (DEPLOY, UPGRADE, ROLLBACK)
# What a run may be fit for beside clusters of ZooKeeper: those of KRaft mode, and those on their way there.
KRAFT, MIGRATION = "kraft", "migration"
FITTING = (KRAFT, MIGRATION)


@dataclass(frozen=True)
class Snapshot:
    """What a running cluster says of itself, as far as the preflight wants to know.

    `brokers`: id -> [(host, port), ...] of the registered brokers; `replicas`: ids that hold
    replicas of any partition, live or not; `on_default_min_isr`: of the topics whose
    min.insync.replicas is the brokers' default, replica count -> (number of topics, some names);
    `overrides`: settings that do not come from a broker's own file; `topics`: the declared topics that
    exist, and what their names collide with, where they were asked for.
    """

    cluster_id: Optional[str] = None
    brokers: Mapping[int, Tuple[Tuple[str, int], ...]] = field(default_factory=dict)
    replicas: FrozenSet[int] = frozenset()
    on_default_min_isr: Mapping[int, Tuple[int, Tuple[str, ...]]] = field(default_factory=dict)
    # (broker id, None for all of them; key; value, None for a secret)
    overrides: Tuple[Tuple[Optional[int], str, Optional[str]], ...] = ()
    topics: Mapping[str, Topic] = field(default_factory=dict)
    # Whether ZooKeeper was asked, and keeps no cluster below the chroot.
    no_cluster_there: bool = False
    # Ids of the voters of the quorum, where one leads; None where nobody knows.
    voters: Optional[FrozenSet[int]] = None
    # Of voters the ids of the directories that they vote with, as the quorum knows them; none in a static quorum.
    voter_directories: Mapping[int, str] = field(default_factory=dict)
    # The finalised features of a KRaft cluster with their levels; None where no broker told them.
    features: Optional[Mapping[str, int]] = None

    @property
    def ids_in_use(self) -> FrozenSet[int]:
        """Ids of brokers that are registered, or that hold replicas."""
        return frozenset(self.brokers) | self.replicas


@dataclass(frozen=True)
class Versions:
    """What this release of the collection knows.

    `kafka`, `zookeeper`: versions that can be assembled (maven); `broker_tables`: version -> table;
    `topic_keys`: version -> topic setting -> its type and legal values.
    """

    kafka: Tuple[str, ...] = ()
    zookeeper: Tuple[str, ...] = ()
    broker_tables: Mapping[str, KeyTable] = field(default_factory=dict)
    topic_keys: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    zookeeper_table: Optional[KeyTable] = None
    # product -> version -> {bug, what, remedy}
    known_bad: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)


# Of the Python that runs Kafka modules: what it imports, and the packages' names.
CLIENT_PACKAGES = {
    "confluent_kafka": "confluent-kafka",
    "kafka": "kafka-python",
    "kazoo": "kazoo",
}
JOB_PACKAGES = {"pyspark": "pyspark"}


# What Ansible takes for the controller where the inventory has no such host. Roles have the same list.
LOCALHOST = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class AdminHost:
    """The host in kafka_admin_host. `unreachable`: why nothing is known of it; `missing`: what its
    Python cannot import."""

    name: str
    python: str
    unreachable: str = ""
    missing: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Callers:
    """Who connects to members and is none.

    `audiences`: host of the group kafka_clients -> what kafka_client_audiences has there, if anything; `clusters`:
    -> what kafka_clients_of has there, if anything. The others
    are empty where no host has a firewall of ours: `clients`: host of that group -> (the cluster that it uses, ""
    for any; its addresses); `admin`: member -> the addresses of the host that administers, as this member sees it.
    """

    clients: Mapping[str, Tuple[str, Tuple[str, ...]]] = field(default_factory=dict)
    admin: Mapping[str, Tuple[str, ...]] = field(default_factory=dict)
    audiences: Mapping[str, Any] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Controller:
    """The machine that the playbook runs on, and those that administer from there.

    `java`: as java.find; `names`: as resolve_names; `admins`: cluster -> its own, without clusters where nobody was
    asked, as for an unknown name.
    """

    java: Optional[Mapping[str, Any]] = None
    names: Mapping[str, Any] = field(default_factory=dict)
    admins: Mapping[str, AdminHost] = field(default_factory=dict)
    callers: Callers = Callers()


@dataclass(frozen=True)
class Cluster:
    """The nodes of Kafka and the ZooKeeper servers that share a kafka_cluster_name."""

    name: str
    brokers: Tuple[Member, ...]
    servers: Tuple[Member, ...]
    snapshot: Optional[Snapshot] = None
    # The hosts whose servers leave in this run; None where the ensemble stays as it is.
    leaving: Optional[FrozenSet[str]] = None
    # Controllers that are not brokers.
    controllers_apart: Tuple[Member, ...] = ()
    # The nodes of every cluster of the inventory.
    all_nodes: FrozenSet[str] = frozenset()
    # Whether the controllers may be others than those that vote; they change one a step.
    voters_change: bool = False
    # Whether a static quorum becomes a dynamic one in this run.
    becomes_dynamic: bool = False
    # Whether the run takes a cluster from ZooKeeper to KRaft, or back.
    migrates: bool = False
    # Id of the node whose disks were replaced by empty ones, in a run that starts it.
    replaced: Optional[int] = None

    @property
    def nodes(self) -> Tuple[Member, ...]:
        """All that runs Kafka, brokers first."""
        return self.brokers + self.controllers_apart

    @property
    def kraft(self) -> bool:
        """Whether the metadata is kept by controllers of Kafka: the one place where the mode decides.

        That all nodes say the same is another check.
        """
        return any(each.kraft for each in self.nodes)

    @property
    def controllers(self) -> Tuple[Member, ...]:
        """Whoever votes in the quorum now, or will; none in ZooKeeper mode."""
        return tuple(each for each in self.nodes if each.is_controller)

    @property
    def under_way(self) -> Tuple[Member, ...]:
        """The nodes that take part in a migration from ZooKeeper to KRaft that has not ended."""
        return tuple(each for each in self.nodes if phase_in_force(each) == MIGRATING)

    @property
    def is_staged_by_phase(self) -> bool:
        """Whether each node gets the configuration of how far it is: in a migration, and where a node of one that is
        under way is replaced."""
        replaces = self.replaced is not None and self.kraft and bool(self.under_way)
        return self.migrates or replaces

    @property
    def voters(self) -> Tuple[Member, ...]:
        """The controllers that vote at the end of this run."""
        return tuple(each for each in self.controllers if not self._leaves(each))

    @property
    def staying_brokers(self) -> Tuple[Member, ...]:
        """The brokers that the cluster has at the end of this run: who leaves with its vote is none any more.

        All of them cannot leave, which is refused elsewhere.
        """
        return tuple(each for each in self.brokers if not self._leaves(each)) or self.brokers

    def _leaves(self, node: Member) -> bool:
        return self.voters_change and node.is_controller and node.name in (self.leaving or ())

    def votes(self, host: str) -> bool:
        """Whether a host is a controller of this cluster."""
        return any(each.name == host for each in self.controllers)

    @property
    def controllers_elsewhere(self) -> FrozenSet[str]:
        """Hosts of the group of controllers that do not run Kafka, in no cluster of the inventory."""
        return frozenset(
            name for each in self.nodes for name in each.controllers if name not in self.all_nodes
        )

    @property
    def static_quorum(self) -> bool:
        """Whether the voters stand in the configuration, and not in the metadata: what is in force stays."""
        known = [each.product_facts("kafka").get("current") or {} for each in self.nodes]
        known = [each for each in known if each.get("process.roles")]
        if self.becomes_dynamic:
            return False
        if known:
            return any(each.get(STATIC_VOTERS) for each in known)
        if self.is_staged_by_phase:
            return True
        return any(each.get("kafka_static_quorum") is True for each in self.controllers)

    @property
    def controller_protocol(self) -> str:
        """What the controllers speak: the same as the brokers among themselves."""
        inner = (each.inter_broker_listener for each in self.brokers)
        return next((each.protocol for each in inner if each and each.protocol), "PLAINTEXT")

    @property
    def staying(self) -> Tuple[Member, ...]:
        """The servers that the ensemble has at the end of this run."""
        return tuple(each for each in self.servers if each.name not in (self.leaving or ()))

    @property
    def answers(self) -> bool:
        """Whether brokers of the cluster are there, whoever has started them."""
        return bool(self.snapshot and self.snapshot.brokers)

    @property
    def members(self) -> Tuple[Member, ...]:
        """Every member once, brokers first."""
        names = {member.name for member in self.nodes}
        return self.nodes + tuple(each for each in self.servers if each.name not in names)

    @property
    def machines(self) -> FrozenSet[str]:
        """Keys of the machines that the cluster lives on.

        A local member without facts is on the controller, as other local members are, but under
        which key is not known.
        """
        keys = frozenset(
            member.network for member in self.members if member.facts or not member.is_local
        )
        return keys or frozenset(member.network for member in self.members)


@dataclass(frozen=True)
class World:
    """Everything: members sorted by name, the names of hosts and groups, tables, the controller."""

    members: Tuple[Member, ...]
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    versions: Versions = Versions()
    controller: Controller = Controller()
    host_names: FrozenSet[str] = frozenset()
    group_names: FrozenSet[str] = frozenset()
    # variable -> {host: nearest known variable}
    misspelt: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # One of PURPOSES.
    purpose: str = DEPLOY
    # Whether the declared topics are brought into effect, too.
    reconciles: bool = True
    # As of each Cluster.
    leaving: Optional[FrozenSet[str]] = None
    voters_change: bool = False
    becomes_dynamic: bool = False
    migrates: bool = False
    # Id of the node whose disks were replaced by empty ones.
    replaced: Optional[int] = None
    # How many hosts the run works on at a time, 0 where that is not known.
    forks: int = 0
    # Of FITTING.
    fit_for: FrozenSet[str] = frozenset((KRAFT,))

    @property
    def clusters(self) -> Tuple[Cluster, ...]:
        """All clusters, by name."""
        grouped: Dict[str, Any] = {}
        for member in sorted(self.members, key=lambda each: natural_key(each.name)):
            brokers, apart, servers = grouped.setdefault(member.cluster, ([], [], []))
            if member.is_broker:
                brokers.append(member)
            elif member.is_controller:
                apart.append(member)
            if member.is_server:
                servers.append(member)
        names = frozenset(member.name for member in self.members if member.runs_kafka)
        return tuple(
            Cluster(
                name,
                tuple(brokers),
                tuple(servers),
                self.snapshots.get(name),
                self.leaving,
                tuple(apart),
                names,
                self.voters_change,
                self.becomes_dynamic,
                self.migrates,
                self.replaced,
            )
            for name, (brokers, apart, servers) in sorted(grouped.items())
        )


# A broker whose listeners cannot be read still has a configuration worth checking.
_STAND_IN = Listener(
    name="UNREADABLE",
    port=1,
    protocol="PLAINTEXT",
    bind="",
    advertised="unreadable",
    audience=(),
)


def effective_properties(member: Member, brokers: int) -> Dict[str, str]:
    """The server.properties that the role would write for this broker.

    Ids and the ensemble are left open: no check of configuration depends on them.
    """
    return broker_properties(
        broker_id=member.broker_id if member.broker_id is not None else -1,
        listeners=[each.to_dict() for each in member.listeners or (_STAND_IN,)],
        log_dirs=member.log_dirs,
        zookeeper_connect="",
        brokers=brokers,
        quorum=quorum_of(member, (member,)),
        rack=member.text("kafka_rack") or None,
        inter_broker_listener=member.text("kafka_inter_broker_listener") or None,
        small=member.small,
        config={str(key): value for key, value in member.mapping("kafka_config").items()},
        host_config={str(key): value for key, value in member.mapping("kafka_host_config").items()},
    )


def quorum_of(
    member: Member,
    controllers: Iterable[Member],
    protocol: str = "PLAINTEXT",
    voters: Optional[Mapping[str, int]] = None,
) -> Optional[Dict[str, Any]]:
    """The part of a node in the quorum of these controllers, as broker_properties takes it.

    `protocol`: that of the controllers' listener; `voters`: the id of each host, where the configuration
    has to name the voters. None in ZooKeeper mode.
    """
    if not member.kraft:
        return None
    return {
        "roles": roles_of(member),
        "bind": member.text("kafka_controller_bind"),
        "address": member.text("kafka_address"),
        "port": member.get("kafka_controller_port"),
        "protocol": protocol,
        "static": voters is not None,
        "controllers": [
            {
                "id": (voters or {}).get(each.name),
                "address": each.text("kafka_address"),
                "port": each.get("kafka_controller_port"),
            }
            for each in controllers
        ],
    }


def phase_in_force(member: Member) -> str:
    """How far a node is from ZooKeeper to KRaft, by the configuration in force: see configuration.migration."""
    return phase_of(member.product_facts("kafka").get("current"))


def in_zookeeper(member: Member) -> bool:
    """Whether a broker has its metadata in ZooKeeper by the configuration in force; it knows of no quorum then."""
    return phase_in_force(member) in (IN_ZOOKEEPER, MIGRATING)


def roles_of(member: Member) -> List[str]:
    """The `process.roles` of a node in KRaft mode."""
    parts = {"broker": member.is_broker, "controller": member.is_controller}
    return [role for role, has in parts.items() if has]


def variable_of(member: Member, key: str) -> str:
    """The variable by which a key of effective_properties was set; the key itself if by none."""
    for name in ("kafka_host_config", "kafka_config"):
        if key in member.mapping(name):
            return f"{name}.{key}"
    return key


def effective_zookeeper(member: Member) -> Dict[str, str]:
    """The zoo.cfg that the role would write for this server, without the list of servers."""
    return zookeeper_properties(
        servers=[],
        data_dir=member.data_dir,
        data_log_dir=member.data_log_dir,
        client_port=member.client_port or 2181,
        bind=member.text("zookeeper_bind"),
        config={str(key): value for key, value in member.mapping("zookeeper_config").items()},
    )


def server_lines(cluster: Cluster, ids: Mapping[str, int]) -> Dict[str, str]:
    """`server.N` -> address:peer:election of the ensemble that the inventory describes."""
    servers = [
        {
            "id": ids[member.name],
            "address": member.text("zookeeper_address"),
            "peer_port": member.peer_port,
            "election_port": member.election_port,
        }
        for member in cluster.staying
        if member.name in ids
    ]
    properties = zookeeper_properties(servers, "/", "/", 2181)
    return {key: value for key, value in properties.items() if key.startswith("server.")}


def data_of(server: Member) -> Mapping[str, Any]:
    """Facts of a server's data; where its zoo.cfg in force has them elsewhere than the inventory, of those there."""
    facts = server.product_facts("zookeeper")
    data, former = facts.get("data") or {}, facts.get("former_data") or {}
    if not former:
        return data
    return {**data, "has_data": True, "myid": former["myid"] or data.get("myid")}


def ensemble_state(cluster: Cluster) -> Dict[str, Any]:
    """{state: new|existing|unknown|none, members: {host: has data, None if unknown}}."""
    members: Dict[str, Optional[bool]] = {}
    for member in cluster.servers:
        data = data_of(member)
        members[member.name] = None if not data or not data["readable"] else data["has_data"]
    if not members:
        state = "none"
    elif any(members.values()):
        state = "existing"
    elif any(value is None for value in members.values()):
        # Nobody may be started empty as long as a silent member may hold the data.
        state = "unknown"
    else:
        state = "new"
    return {"state": state, "members": members}

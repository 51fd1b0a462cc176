# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of who is who: inventory, ids, cluster ids. Pure."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.migration import (
    IN_KRAFT,
    IN_ZOOKEEPER,
    MIGRATING,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.ids import (
    Claim,
    assign_ids,
    contradictions,
    duplicates,
    uncertain,
    unowned,
    without_id,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    Cluster,
    Snapshot,
    World,
    data_of,
    ensemble_state,
    phase_in_force,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import WARNING, Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import whole_number

# Variables that mean the whole cluster; the chroot has a check of its own.
UNIFORM_BROKER_VARIABLES = (
    "kafka_metadata",
    "kafka_version",
    "kafka_scala_version",
    "kafka_inter_broker_listener",
    "kafka_authorizer",
    "kafka_topics",
    "kafka_retention_policies",
)
# Each archive is obtained once, by the variables of one host, whichever that is.
ONCE_FOR_ALL = (
    "distribution_source",
    "distribution_url",
    "distribution_sha512",
    "distribution_mirror",
)
OF_RUN = (
    "this run, and each archive is obtained once for all of them",
    "set it once, in group_vars/all; what differs by product is a mapping of `kafka` and `zookeeper`",
)
# Of them, those that controllers which are not brokers have, too.
UNIFORM_NODE_VARIABLES = (
    "kafka_metadata",
    "kafka_version",
    "kafka_scala_version",
    "kafka_authorizer",
)


def broker_claims(cluster: Cluster) -> List[Claim]:
    """What inventory and disks say of the ids of brokers and controllers: they are of one kind."""
    claims = []
    for member in cluster.nodes:
        ids = {whole_number(meta.get("broker.id", meta.get("node.id"))) for meta in _metas(member)}
        on_disk = tuple(sorted(each for each in ids if each is not None))
        facts = member.product_facts("kafka")
        ran_as = id_of(facts.get("answered"))
        staged = id_of(facts.get("staged") or facts.get("current"))
        if member.unreachable and cluster.snapshot:
            ran_as = _registered_as(member, cluster.snapshot)
        unseen = bool(member.unreachable)
        claims.append(Claim(member.name, member.broker_id, on_disk, ran_as, staged, unseen))
    return claims


def _registered_as(member: Member, snapshot: Snapshot) -> Optional[int]:
    """The id under which the cluster knows this broker's address: the host does not answer, the broker may."""
    own = _announced(member)
    return next((number for number, at in sorted(snapshot.brokers.items()) if own & set(at)), None)


def _announced(member: Member) -> Set[Tuple[str, int]]:
    """Where a broker tells others to connect to: (address, port)."""
    return {(each.advertised, each.port) for each in member.listeners}


def id_of(properties: Optional[Mapping[str, Any]]) -> Optional[int]:
    """The id in a server.properties, of either mode."""
    given = properties or {}
    return whole_number(given.get("broker.id", given.get("node.id")))


def server_claims(cluster: Cluster) -> List[Claim]:
    """What inventory and disks say of the servers' ids."""
    claims = []
    for member in cluster.servers:
        on_disk = whole_number(data_of(member).get("myid"))
        held = () if on_disk is None else (on_disk,)
        claims.append(Claim(member.name, member.myid, held, unseen=bool(member.unreachable)))
    return claims


def _metas(member: Member) -> List[Dict[str, Any]]:
    return [each["meta"] for each in member.log_directories if each.get("meta")]


def _may_be_of_brokers(cluster: Cluster) -> Dict[str, FrozenSet[int]]:
    """host -> the ids that the running cluster knows and that a broker or controller may have."""
    if cluster.snapshot is None:
        return {}
    brokers = cluster.snapshot.ids_in_use
    voters = cluster.snapshot.voters or frozenset()
    known = {}
    for node in cluster.nodes:
        known[node.name] = brokers if node.is_broker else frozenset()
        if node.is_controller:
            # The id of a broker is none of a controller that is not a broker.
            known[node.name] |= voters if node.is_broker else voters - brokers
    return known


def _may_be_of_servers(cluster: Cluster) -> Dict[str, FrozenSet[int]]:
    """host -> the ids in the lists of servers by which those with data run, or ran last."""
    numbers = set()
    for member in cluster.servers:
        if data_of(member).get("has_data"):
            current = member.product_facts("zookeeper").get("current") or {}
            keys = [key.partition(".") for key in current]
            numbers |= {whole_number(number) for word, _dot, number in keys if word == "server"}
    listed = frozenset(each for each in numbers if each is not None)
    return {each.name: listed for each in cluster.servers}


def guessed(cluster: Cluster) -> Tuple[FrozenSet[str], FrozenSet[str]]:
    """(brokers and controllers, ZooKeeper servers) whose id nobody can tell: their hosts do not answer."""
    return (
        uncertain(broker_claims(cluster), _may_be_of_brokers(cluster)),
        uncertain(server_claims(cluster), _may_be_of_servers(cluster)),
    )


def identities(cluster: Cluster) -> Tuple[Dict[str, int], Dict[str, int]]:
    """(broker ids by host, ZooKeeper ids by host) of one cluster. Those of `guessed` make the lists complete, and name
    nobody."""
    taken = set()
    claims = broker_claims(cluster)
    if cluster.snapshot:
        taken = set(cluster.snapshot.ids_in_use)
        # A voter is neither where it is no broker, and lives though no host of the inventory has it. Beside a silent
        # controller it may be that one.
        if not any(each.facts is None and each.broker_id is None for each in cluster.controllers):
            taken |= set(cluster.snapshot.voters or ()) - {each.staged for each in claims}
    return (
        assign_ids(claims, taken, known=_may_be_of_brokers(cluster)),
        assign_ids(server_claims(cluster), set(), known=_may_be_of_servers(cluster)),
    )


def with_unknown_id(cluster: Cluster) -> FrozenSet[str]:
    """The hosts of which nobody can tell the id without their disks: a newcomer might get it.

    The id of a broker whose disk is silent does no harm while the cluster tells which ids are in use.
    """
    silent = {claim.host for claim in server_claims(cluster) if claim.settled is None}
    if cluster.snapshot is None:
        silent.update(claim.host for claim in broker_claims(cluster) if claim.settled is None)
    return frozenset(silent)


# ---------------------------------------------------------------- the inventory itself


def check_inventory(world: World) -> Iterator[Problem]:
    """Names, groups, what has to be equal everywhere, misspelt variables."""
    for name in sorted(world.host_names & world.group_names):
        yield found(
            "inventory.group_name", name, "inventory name", name, "a group has the same name"
        )
    for variable, hosts in sorted(world.misspelt.items()):
        for host, near in sorted(hosts.items()):
            yield found(
                "settings.unknown_variable",
                host,
                variable,
                "...",
                "the collection has no such variable",
                f"did you mean `{near}`?",
            )
    for cluster in world.clusters:
        yield from _groups(cluster, world)
        yield from _uniform(cluster)
    in_play = [member for member in world.members if member.in_play]
    for variable in ONCE_FOR_ALL:
        yield from _same_everywhere("settings.not_uniform", variable, in_play, *OF_RUN)
    yield from _instances(world)


def _groups(cluster: Cluster, world: World) -> Iterator[Problem]:
    names = {
        member.get("kafka_group")
        for member in cluster.members
        if not member.errors.get("kafka_group")
    }
    if cluster.brokers or None in names or not names:
        return  # of a name that cannot be read another finding tells
    hosts = [member.name for member in cluster.members]
    others = sorted(
        {
            each.cluster
            for each in world.members
            if each.is_broker and each.get("kafka_group") in names
        }
    )
    if others:
        group = " and ".join(sorted(names))
        yield found(
            "settings.not_uniform",
            hosts,
            "kafka_cluster_name",
            cluster.name,
            f"no broker is of this cluster, those of the group {group} are of {' and '.join(others)}",
            "set it once for the whole cluster, in group_vars of a group of all its hosts",
        )
        return
    yield found(
        "inventory.empty_group",
        hosts,
        "kafka_group",
        sorted(names)[0],
        f"the group has no host of cluster {cluster.name}",
    )


def _uniform(cluster: Cluster) -> Iterator[Problem]:
    checks = [("settings.not_uniform", name) for name in UNIFORM_BROKER_VARIABLES]
    for check, variable in checks + [("cluster.chroot", "kafka_zookeeper_chroot")]:
        members = cluster.nodes if variable in UNIFORM_NODE_VARIABLES else cluster.brokers
        yield from _same_everywhere(check, variable, members)
    yield from _same_everywhere("settings.not_uniform", "zookeeper_version", cluster.servers)


def _same_everywhere(
    check: str,
    variable: str,
    members: Iterable[Member],
    where: str = "the cluster",
    remedy: str = "set it once for the cluster, in group_vars",
) -> Iterator[Problem]:
    values: Dict[str, List[str]] = {}
    for member in members:
        values.setdefault(repr(member.get(variable)), []).append(member.name)
    if len(values) > 1:
        common = max(values.values(), key=len)
        told = "; ".join(
            f"{value} on {', '.join(hosts)}" for value, hosts in sorted(values.items())
        )
        odd = [host for hosts in values.values() if hosts is not common for host in hosts]
        yield found(
            check,
            odd,
            variable,
            "(several)",
            f"not the same on all hosts of {where}: {told[:400]}",
            remedy,
        )


def _instances(world: World) -> Iterator[Problem]:
    """Two instances on one machine may share releases, and nothing else."""
    owners: Dict[Tuple[str, str, str], List[Tuple[str, str]]] = {}
    for member in world.members:
        for product, present in (("kafka", member.runs_kafka), ("zookeeper", member.is_server)):
            if not present:
                continue
            for kind in ("instance", "config_dir", "state_dir"):
                value = member.text(f"{product}_{kind}").rstrip("/")
                if value:
                    # Unit names are per service manager; supervisors are apart by directory.
                    scope = member.filesystem
                    if kind == "instance" and member.text("jvm_service_manager") == "supervisor":
                        scope += member.text("jvm_service_supervisor_dir")
                    owners.setdefault((scope, kind, value), []).append(
                        (member.name, f"{product}_{kind}")
                    )
    for (_scope, kind, value), users in sorted(owners.items()):
        if len(users) > 1:
            yield found(
                "inventory.instance_collision",
                [name for name, _variable in users],
                " and ".join(sorted({variable for _name, variable in users})),
                value,
                f"two instances on one machine have the same {kind.replace('_', ' ')}",
            )


# ---------------------------------------------------------------- ids


def check_identity(world: World) -> Iterator[Problem]:
    """Broker and ZooKeeper ids against each other, the disks and the running cluster."""
    for cluster in world.clusters:
        yield from _ids(
            broker_claims(cluster),
            "kafka_broker_id",
            "identity.duplicate_broker_id",
            f"{'nodes' if cluster.kraft else 'brokers'} of cluster {cluster.name}",
        )
        yield from _ids(
            server_claims(cluster),
            "zookeeper_myid",
            "identity.duplicate_myid",
            f"servers of the ensemble of {cluster.name}",
        )
        yield from _myids_on_disk(cluster)
        yield from _cluster_ids(cluster)
        yield from _registrations(cluster)
        yield from _unknown_ids(cluster)
        yield from _reachability(cluster)


def _ids(
    claims: List[Claim], variable: str, duplicate_check: str, members: str
) -> Iterator[Problem]:
    explicit = {claim.host: claim.explicit is not None for claim in claims}
    for value, hosts in duplicates(claims).items():
        from_disk = [host for host in hosts if not explicit[host]]
        reason = f"{len(hosts)} {members} have this id"
        if from_disk:
            reason += f" ({', '.join(from_disk)}: found on the disk)"
        yield found(duplicate_check, hosts, variable, value, reason)
    for host, (wanted, on_disk) in sorted(contradictions(claims).items()):
        listed = ", ".join(str(each) for each in on_disk)
        if len(on_disk) > 1:
            yield found(
                "identity.contradicts_disk",
                host,
                variable,
                wanted if wanted is not None else "(not set)",
                f"its disks hold the ids {listed}",
                "keep the directories of one broker; the others belong to other brokers",
            )
        else:
            yield found(
                "identity.contradicts_disk",
                host,
                variable,
                wanted,
                f"the host's disk holds id {listed}, and an id once on disk is never changed",
                f"set {variable}: {listed}, or leave it out",
            )


def _myids_on_disk(cluster: Cluster) -> Iterator[Problem]:
    for member in cluster.servers:
        data = member.product_facts("zookeeper").get("data") or {}
        text = data.get("myid")
        if text is not None and not 1 <= (whole_number(text) or 0) <= 255:
            yield found(
                "identity.out_of_range",
                member.name,
                f"{member.data_dir}/myid",
                text,
                "the file holds no id from 1 to 255",
                "write the server's id into it, or remove it where there is no data",
            )
        if data and (not data["readable"] or data.get("myid_unreadable")):
            yield _unreadable(member, "zookeeper_data_dir", member.data_dir)
    for member in cluster.nodes:
        for each in member.log_directories:
            if not each["readable"] or each.get("meta_unreadable"):
                yield _unreadable(member, "kafka_log_dirs", each["path"])


def _unreadable(member: Member, variable: str, path: str) -> Problem:
    return found(
        "host.unreadable",
        member.name,
        variable,
        path,
        f"not readable for user {(member.facts or {})['user']}, so its identity is not known",
    )


def _cluster_ids(cluster: Cluster) -> Iterator[Problem]:
    on_disk: Dict[str, List[Tuple[str, str]]] = {}
    for member in cluster.nodes:
        for each in member.log_directories:
            value = (each.get("meta") or {}).get("cluster.id")
            if value:
                on_disk.setdefault(value, []).append((member.name, each["path"]))
    expected = cluster.snapshot.cluster_id if cluster.snapshot else None
    source = "the quorum's" if cluster.kraft else "the ensemble's"
    if expected is None and len(on_disk) > 1:
        # No broker answers: the id on most disks counts as the cluster's, of equals the first by name.
        expected = max(sorted(on_disk), key=lambda value: len(on_disk[value]))
        source = "that of most disks"
    # Also where brokers still answer: they know their old ensemble, and not the inventory's.
    # Who is in KRaft needs no ensemble: after a migration its servers may be there still, without their data.
    phases = {phase_in_force(each) for each in cluster.brokers}
    needed = bool(phases & {IN_ZOOKEEPER, MIGRATING}) or IN_KRAFT not in phases
    empty = needed and ensemble_state(cluster)["state"] == "new"
    for value, places in sorted(on_disk.items()):
        if not empty and (expected is None or value == expected):
            continue
        remedy = ""
        if empty:
            why = "no ZooKeeper server has data, so the ensemble would make up another one"
            # Most often the records are in order, and what is lost or not mounted is small.
            remedy = (
                "mount or restore the data of the ZooKeeper servers; a disk of Kafka is emptied only where the old"
                " cluster is gone for good and nobody needs its records"
            )
        else:
            why = f"it belongs to another cluster; {source} is {expected}"
        for host, path in places:
            reason = f"the disk has the cluster id {value}; {why}"
            yield found("identity.foreign_cluster", host, "kafka_log_dirs", path, reason, remedy)


def _registrations(cluster: Cluster) -> Iterator[Problem]:
    snapshot = cluster.snapshot
    if snapshot is None or not cluster.brokers:
        return
    claims = {claim.host: claim for claim in broker_claims(cluster)}
    for member in cluster.brokers:
        claim = claims[member.name]
        holders = snapshot.brokers.get(claim.explicit) if claim.explicit is not None else None
        if not holders or claim.on_disk or member.facts is None:
            continue
        if not _announced(member) & set(holders):
            yield found(
                "identity.registered_elsewhere",
                member.name,
                "kafka_broker_id",
                claim.explicit,
                f"registered by {', '.join(endpoint(*each) for each in holders)}, and this "
                "host has no data of that broker",
            )
    without = [claim for _host, claim in sorted(claims.items()) if claim.settled is None]
    silent = [claim.host for claim in without if claim.unseen]
    newcomers = [claim.host for claim in without if not claim.unseen]
    # An id that contradicts the disk is told apart; its broker is not a missing one.
    for value in unowned(claims.values(), _may_be_of_brokers(cluster), snapshot.ids_in_use):
        what = "is registered" if value in snapshot.brokers else "holds replicas"
        remedy = ""
        if silent:
            remedy = (
                f"write kafka_broker_id on {', '.join(silent)}, which cannot be asked for its id, and add the"
                " host that is missing"
            )
        elif newcomers and value not in snapshot.brokers:
            remedy = (
                f"set kafka_broker_id: {value} on the host that replaces it "
                f"({', '.join(newcomers)} has no id yet) and run playbooks/replace_broker.yml "
                f"-e broker={value}, or add the host that is missing"
            )
        yield found(
            "identity.missing_broker",
            [member.name for member in cluster.brokers],
            "kafka_broker_id",
            value,
            f"broker {value} {what} in cluster {cluster.name}, and no host of the inventory has "
            "this id",
            remedy,
        )


def hosts_without_id(cluster: Cluster) -> List[str]:
    """The hosts whose id would be made up while nobody can tell which ids are in use."""
    if cluster.snapshot or ensemble_state(cluster)["state"] not in ("existing", "unknown"):
        return []
    claims = broker_claims(cluster)
    if not any(claim.on_disk or claim.ran_as is not None for claim in claims):
        return []
    return without_id(claims)


def _unknown_ids(cluster: Cluster) -> Iterator[Problem]:
    """Hosts whose id would be made up while nobody can tell which ids are in use.

    A dead broker has its id in the cluster's metadata only; a newcomer that got it would be elected
    with an empty log. Where no broker has left anything on any host, none ever ran, as after a first
    installation that was killed; then ids may be given.

    | the cluster | another broker has an id on disk | this host                     | its id     |
    |-------------|----------------------------------|-------------------------------|------------|
    | answers     | -                                | has none                      | a free one |
    | is down     | no                               | has none                      | a free one |
    | is down     | yes                              | has one, ran, or one is staged| that one   |
    | is down     | yes                              | has none                      | refused    |
    """
    open_hosts = hosts_without_id(cluster)
    if open_hosts:
        yield found(
            "identity.unknown_ids_in_use",
            open_hosts,
            "kafka_broker_id",
            "(not set)",
            f"the ids in use are not known while cluster {cluster.name} is down, so none can be "
            "given",
        )


def _reachability(cluster: Cluster) -> Iterator[Problem]:
    for member in cluster.members:
        if not member.unreachable:
            continue
        if member.in_play:
            yield found(
                "host.unreachable",
                member.name,
                "ansible_host",
                member.text("ansible_host") or member.name,
                member.unreachable,
            )
            continue
        open_ids = [
            variable
            for variable, needed, value in (
                ("kafka_broker_id", member.runs_kafka, member.broker_id),
                ("zookeeper_myid", member.is_server, member.myid),
            )
            if needed and value is None
        ]
        yield found(
            "limit.hidden_member",
            member.name,
            open_ids[0] if open_ids else "ansible_host",
            "(not set)" if open_ids else member.text("ansible_host") or member.name,
            f"a member of cluster {cluster.name} outside this run cannot be asked: "
            f"{member.unreachable}",
            level="" if open_ids else WARNING,
            remedy="" if open_ids else "nothing to do now: its id stands in the inventory",
        )

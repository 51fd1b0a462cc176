# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The preflight's verdict over the whole inventory: all findings, and who is who.

Pure: facts come in, a verdict goes out. Invariants:

* every check runs on every inventory, however broken: what one check cannot read is the finding of
  another, so all mistakes are told at once;
* the order of hosts does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import (
    AbstractSet,
    Any,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.keys import nearest
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight import (
    declared_state,
    ensemble,
    firewall,
    formats,
    identity,
    in_force,
    jvm,
    lost_data,
    machines,
    metadata,
    migration,
    network,
    places,
    quorum,
    retention,
    security,
    storage,
    taking_over,
    tls,
    upgrades,
    versions_and_keys,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import (
    HOST,
    catalogue,
    found,
    in_order,
    merged,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.ids import natural_key
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.listening import (
    listened,
    listening,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    Member,
    Raw,
    read_member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    DEPLOY,
    FETCH,
    KRAFT,
    START,
    STATE,
    Cluster,
    Controller,
    Snapshot,
    Versions,
    World,
    ensemble_state,
    in_zookeeper,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    ERROR,
    WARNING,
    Problem,
)

CHECKS = (
    identity.check_inventory,
    identity.check_identity,
    metadata.check_metadata,
    quorum.check_quorum,
    formats.check_formats,
    migration.check_migration,
    ensemble.check_ensemble,
    network.check_listeners,
    network.check_ports,
    network.check_addresses,
    firewall.check_firewall,
    security.check_security,
    tls.check_tls,
    in_force.check_in_force,
    lost_data.check_lost_data,
    taking_over.check_taking_over,
    storage.check_directories,
    storage.check_space,
    places.check_places,
    machines.check_machines,
    jvm.check_jvm_options,
    versions_and_keys.check_versions,
    upgrades.check_paths,
    versions_and_keys.check_config,
    versions_and_keys.check_replication,
    versions_and_keys.check_topics,
    retention.check_retention,
    declared_state.check_declared_state,
)
# Of first words of ids, or of ids: what concerns only what the inventory would write, and not what was in effect.
WISHES = frozenset(
    ("acls", "cleanup", "config", "configs", "jvm", "listeners", "memory", "min_insync")
    + ("partitions", "quotas", "replication", "retention", "security", "state", "tls")
    + ("ensemble.data_moved", "topics", "unclean", "users", "version")
    + ("quorum.changed", "quorum.other_voters", "quorum.separate", "quorum.settings", "quorum.size")
)
# What the host has run with until it went down. That it should have more is no reason to leave it down.
RAN_SO = frozenset(("directories.dropped", "host.memory_maps", "host.open_files", "space.low"))
# What concerns a run that only talks to running brokers: what is declared of their state, and how they are
# reached. By the first words of ids, by ids, and by the variables whose values are judged.
STATE_WORDS = frozenset(
    ("acls", "bootstrap_servers", "cleanup", "configs", "connection", "min_insync")
    + ("partitions", "purge", "quotas", "retention", "settings", "state", "topics", "unclean")
    + ("users",)
)
STATE_CHECKS = frozenset(
    ("cluster.foreign", "cluster.name", "host.admin", "host.unreachable", "inventory.group_name")
    + ("identity.foreign_cluster", "listeners.bad_value", "listeners.client_security")
)
STATE_VARIABLES = ("kafka_dynamic_configs", "kafka_retention", "kafka_topics")
# What the inventory would make of it; the modules ask the brokers themselves, whoever has installed them, and leave
# alone what exists as it is declared.
ASKED_THEMSELVES = frozenset(
    ("acls.no_authorizer", "replication.exceeds_brokers", "replication.min_insync")
)
# What concerns a run that only fills the cache: by the first words of ids, and by the variables that say what
# is fetched, and to where.
FETCH_WORDS = frozenset(("cluster", "inventory", "settings", "version"))
FETCH_VARIABLES = (
    *("distribution_", "flow_validation", "kafka_group", "kafka_plugins", "kafka_scala_version"),
    *("kafka_version", "kafkaops_cache", "zookeeper_group", "zookeeper_version"),
)
PRODUCTS = frozenset(upgrades.TITLES)
# A secret that this controller does not have may be on the one that deploys.
UNDEFINED = "settings.undefined"
# Nobody may consent to two brokers with one id, to one directory for two, or to a start that fails.
NEVER_ACCEPTED = frozenset(
    (
        "cluster.chroot_changed",
        "directories.metadata",
        "directories.shared",
        "ensemble.data_moved",
        "identity.broken_meta",
        "identity.contradicts_disk",
        "identity.duplicate_broker_id",
        "identity.duplicate_myid",
        "identity.foreign_cluster",
        "listeners.duplicate",
        "metadata.changed",
        "metadata.migrating",
        "metadata.mixed",
        "metadata.not_yet",
        "migration.combined",
        "migration.inventory",
        "migration.limited",
        "migration.no_servers",
        "migration.not_installed",
        "migration.protocol",
        "migration.secured",
        "migration.version",
        "quorum.changed",
        "quorum.exchanged",
        "quorum.foreign_format",
        "quorum.left_out",
        "quorum.lost_vote",
        "quorum.no_controllers",
        "quorum.other_voters",
        "quorum.separate",
        "quorum.size",
        "quorum.static",
        "quorum.stays_static",
        "quorum.unformatted",
        "quorum.unknown_leaver",
        "quorum.votes_again",
        "settings.undefined",
        # Consent would make an unpinned upgrade of it, or a start of what cannot read the data.
        "version.features_unknown",
        "version.finalize_early",
        "version.illegal_path",
        "version.needs_upgrade",
        "version.protocol",
        "voters.other_directory",
    )
)


# What hides the ids of a host, too.
HIDES_IDS = frozenset(("host.unreadable", "identity.broken_meta"))
EMPTIED = "directories.emptied"
# What a run that replaces a node is for.
REPLACED = frozenset((EMPTIED, "quorum.lost_vote", "quorum.unformatted"))
UNREACHABLE = "host.unreachable"
HOME = "kafkaops_home"
NO_CONTROLLER = Controller()
NO_COMMANDS: Mapping[str, str] = dict.fromkeys(("finalize", "upgrade", "rollback"), "")


@dataclass(frozen=True)
class Verdict:
    """Findings in the order in which they are shown, and what later plays build on."""

    findings: Tuple[Problem, ...]
    result: Mapping[str, Any]

    @property
    def errors(self) -> Tuple[Problem, ...]:
        """What stops the run."""
        return tuple(each for each in self.findings if each.level == ERROR)


def judge(
    raws: Iterable[Raw],
    versions: Versions,
    controller: Controller = NO_CONTROLLER,
    snapshots: Optional[Mapping[str, Snapshot]] = None,
    host_names: AbstractSet[str] = frozenset(),
    group_names: AbstractSet[str] = frozenset(),
    misspelt: Optional[Mapping[str, Mapping[str, str]]] = None,
    accept: Sequence[str] = (),
    purpose: str = DEPLOY,
    commands: Optional[Mapping[str, str]] = None,
    replaced: Optional[int] = None,
    leaving: Optional[AbstractSet[str]] = None,
    reconciles: bool = True,
    fit_for: Iterable[str] = (KRAFT,),
    drawn: str = "",
    voters_change: bool = False,
    becomes_dynamic: bool = False,
    migrates: bool = False,
    forks: int = 0,
) -> Verdict:
    """The verdict over all members of an inventory.

    `snapshots`: cluster name -> what the running cluster says; `accept`: ids of checks whose errors
    somebody consents to, which makes warnings of them (not of those in NEVER_ACCEPTED); `purpose`:
    what the run is for, one of world.PURPOSES; `commands`: see upgrades.after_lines; `replaced`: id of
    a broker whose directories may be empty, once no broker of this id is registered; `leaving`: hosts of
    ZooKeeper servers that leave, where the list of servers may change at all, else None; `reconciles`:
    whether the run brings the declared topics into effect, too; `voters_change`: whether the controllers may
    be others than those that vote, where those in `leaving` go; `becomes_dynamic`: whether a static quorum
    becomes a dynamic one; `migrates`: whether the run takes clusters
    from ZooKeeper to KRaft, or back; `fit_for`: beside clusters of ZooKeeper, of world.FITTING;
    `drawn`: at random, for the ids of KRaft clusters that this run begins;
    `forks`: how many hosts the run works on at a time, 0 where that is not known.
    """
    findings: List[Problem] = []
    members = []
    for raw in sorted(raws, key=lambda each: natural_key(each.name)):
        member, problems = read_member(raw)
        members.append(member)
        findings += _told_of_the_home(raw, problems)
    world = World(
        members=tuple(members),
        snapshots=snapshots or {},
        versions=versions,
        controller=controller,
        host_names=frozenset(host_names),
        group_names=frozenset(group_names),
        misspelt=misspelt or {},
        purpose=purpose,
        reconciles=reconciles,
        leaving=None if leaving is None else frozenset(leaving),
        fit_for=frozenset(fit_for),
        voters_change=voters_change,
        becomes_dynamic=becomes_dynamic,
        migrates=migrates,
        forks=forks,
        replaced=replaced,
    )
    for check in CHECKS:
        findings += list(check(world))
    findings += _unknown_ids(accept, [raw.name for raw in world.members])
    emptied = _may_be_empty(world, replaced)
    findings = [
        (_as_warning(each) if each.check in REPLACED and set(each.subjects) <= emptied else each)
        for each in findings
    ]
    # What leaves for good need not answer, where it is nothing else.
    gone = {
        each.name
        for each in world.members
        if each.name in (world.leaving or ())
        and not (each.is_broker or each.is_server if world.voters_change else each.runs_kafka)
    }
    findings = [
        _as_warning(each) if each.check == UNREACHABLE and set(each.subjects) <= gone else each
        for each in findings
    ]
    away = _in_no_play(world)
    findings = [
        _as_warning(each, "outside of this run") if _is_elsewhere(each, world) else each
        for each in findings
        if not _of_others_alone(each, away)
    ]
    if purpose == STATE:
        findings = _of_the_state(findings, world)
    if purpose == FETCH:
        findings = _of_the_cache(findings)
    if purpose == START:
        findings = [
            (
                _as_warning(each, "what was in effect is started")
                if each.level == ERROR
                and (WISHES | RAN_SO) & {each.check, each.check.partition(".")[0]}
                else each
            )
            for each in findings
        ]
    consented = frozenset(accept) - NEVER_ACCEPTED
    findings = [
        _as_warning(each) if each.level == ERROR and each.check in consented else each
        for each in findings
    ]
    left: Dict[str, Left] = {}
    if purpose == START:
        left = _left_out(findings)
        findings = [
            _as_warning(each, _how_left(each)) if _of_hosts_alone(each) else each
            for each in findings
        ]
    result = result_of(world, commands, left, drawn)
    return Verdict(tuple(merged(in_order(findings))), result)


def _of_hosts_alone(finding: Problem) -> bool:
    """Whether an error is about its own hosts, so that the others may go on without them."""
    return finding.level == ERROR and catalogue()[finding.check].concerns == HOST


def _in_no_play(world: World) -> FrozenSet[str]:
    """The members of clusters that this run leaves alone: several may share the groups of an inventory.

    None of them where it is for no member at all, as one for clients: it may be about any.
    """
    if not any(each.in_play for each in world.members):
        return frozenset()
    return frozenset(
        each.name
        for cluster in world.clusters
        if not any(member.in_play for member in cluster.members)
        for each in cluster.members
    )


def _of_others_alone(finding: Problem, away: FrozenSet[str]) -> bool:
    """Whether an error is about a whole cluster, and that one is not part of the run: its own run tells it.

    Errors about single hosts of it stay, as warnings: see _is_elsewhere.
    """
    return (
        finding.level == ERROR
        and not _of_hosts_alone(finding)
        and bool(finding.subjects)
        and away.issuperset(finding.subjects)
    )


def _is_elsewhere(finding: Problem, world: World) -> bool:
    """Whether an error is about hosts alone with which this run has nothing to do."""
    if not _of_hosts_alone(finding):
        return False
    hosts = set(finding.subjects)
    unknown = set().union(*map(identity.with_unknown_id, world.clusters))
    if finding.check in HIDES_IDS and hosts & unknown:
        return False
    return hosts <= {each.name for each in world.members if not each.in_play}


def _of_the_state(findings: Iterable[Problem], world: World) -> List[Problem]:
    """What a run must know that starts, stops and writes nothing on a host; a broker that is down may be."""
    answering = {
        each.name
        for cluster in world.clusters
        if any(not broker.unreachable for broker in cluster.brokers)
        for each in cluster.members
    }
    kept = []
    for each in findings:
        word = each.check.partition(".")[0]
        known = word in STATE_WORDS or each.check in STATE_CHECKS
        if not known and not each.setting.startswith(STATE_VARIABLES):
            continue
        if each.check in ASKED_THEMSELVES:
            continue
        down = each.check == UNREACHABLE and set(each.subjects) <= answering
        kept.append(_as_warning(each, "the others are asked") if down else each)
    return kept


def _of_the_cache(findings: Iterable[Problem]) -> List[Problem]:
    """What a run must know that only fetches; what stops a deployment later is said, and stops it not."""
    kept = []
    for each in findings:
        known = each.check.partition(".")[0] in FETCH_WORDS and each.check != UNDEFINED
        if known or each.setting.startswith(FETCH_VARIABLES):
            kept.append(each)
        elif each.level == ERROR:
            kept.append(_as_warning(each, "nothing that is fetched depends on it"))
    return kept


@dataclass(frozen=True)
class Left:
    """Which products of a host are left out, and why, in words."""

    products: FrozenSet[str]
    why: str


def _left_out(findings: Iterable[Problem]) -> Dict[str, Left]:
    """host -> what of it is left out; of what ran before, the other hosts need nothing of it."""
    left: Dict[str, Left] = {}
    for each in in_order(findings):
        if _of_hosts_alone(each):
            for host in each.subjects:
                told = f"{each.check}, {each.setting}={each.value}: {each.reason}"
                before = left.get(host, Left(frozenset(), ""))
                why = f"{before.why}; {told}" if before.why else told
                left[host] = Left(before.products | _products_of(each), why)
    return left


def _products_of(finding: Problem) -> FrozenSet[str]:
    """The products that a finding about a host concerns, by its variables; both where they do not tell."""
    named = {variable.partition("_")[0] for variable in finding.setting.split(" and ")}
    return frozenset(named if named <= PRODUCTS else PRODUCTS)


def _how_left(finding: Problem) -> str:
    products = _products_of(finding)
    if products == PRODUCTS:
        return "the host is left out"
    return " and ".join(sorted(upgrades.TITLES[each] for each in products)) + " is left out there"


def _may_be_empty(world: World, replaced: Optional[int]) -> FrozenSet[str]:
    """The hosts of the broker that is replaced, where its id is known not to be registered."""
    return frozenset(
        host
        for cluster in world.clusters
        if replaced is not None and cluster.snapshot and replaced not in cluster.snapshot.brokers
        for host, number in identity.identities(cluster)[0].items()
        # An empty voter of a static quorum votes at once: the playbook starts it while all others keep up.
        if number == replaced
    )


def _told_of_the_home(raw: Raw, problems: Sequence[Problem]) -> List[Problem]:
    """The same problems; a wrong kafkaops_home is one, not one for each path below it."""
    home = raw.settings.get(HOME, "")
    if home == "" or str(home).startswith("/"):
        return list(problems)
    kept = [each for each in problems if not _is_below(home, each)]
    if any(each.setting == HOME for each in kept):
        return kept
    reason, remedy = "not an absolute path", "begin it (or KAFKAOPS_HOME) with /, and write no `~`"
    return [*kept, found("settings.bad_value", raw.name, HOME, home, reason, remedy)]


def _is_below(home: Any, problem: Problem) -> bool:
    # Without a home, reports are below that of whoever runs the job, by the default of flow_validation.
    if home is None and problem.setting == "flow_validation_reports_dir":
        return str(problem.value).startswith("~/")
    return str(problem.value).startswith(f"{home}/")


def _as_warning(finding: Problem, why: str = "accepted") -> Problem:
    return replace(finding, level=WARNING, reason=f"{finding.reason} ({why})")


def _unknown_ids(accept: Sequence[str], hosts: Sequence[str]) -> List[Problem]:
    """Ids in kafkaops_preflight_accept that no check has: they would accept nothing, unnoticed."""
    variable = "kafkaops_preflight_accept"
    problems = []
    for check in accept:
        near = nearest(check, catalogue(), cutoff=0.6)
        remedy = f"did you mean `{near}`?" if near else "take the id from the finding's brackets"
        if check not in catalogue():
            reason = "there is no check of this id"
            problems.append(found("settings.bad_value", hosts, variable, check, reason, remedy))
    return problems


def result_of(
    world: World,
    commands: Optional[Mapping[str, str]] = None,
    left: Optional[Mapping[str, Left]] = None,
    drawn: str = "",
) -> Dict[str, Any]:
    """What later plays need: ids, lists of servers and brokers, who is first, who runs, who is left out."""
    left = left or {}
    result: Dict[str, Any] = {
        "ids": {},
        "left": {host: each.why for host, each in left.items()},
        # What templates of the inventory may need, and nobody wrote down.
        "unwritten": [],
        # host -> the groups that later plays work on
        "groups": {},
        "servers": {},
        # Servers that leave; of clusters whose list of servers may change in this run.
        "leaving": {},
        "brokers": {},
        # cluster -> the disk of each log directory, where that is known
        "disks": {},
        # all that runs Kafka: brokers, then controllers that are none
        "nodes": {},
        "ensembles": {},
        # cluster -> the servers and lists of servers as they ran last
        "ensembles_in_effect": {},
        "cluster_first": {},
        "running": {
            product: [member.name for member in world.members if member.alive(product)]
            for product in ("kafka", "zookeeper")
        },
        "products": versions_and_keys.products(world.members),
        "cluster_ids": {},
        # host -> inter.broker.protocol.version to write, "" for none
        "protocols": {},
        "versions": {},
        "in_effect": {},
        # host -> its part in the quorum of its cluster, None in ZooKeeper mode
        "quorums": {},
        # cluster -> the controllers that vote at the end, those that leave, and who votes now
        "voters": {},
        # cluster -> by which its nodes are formatted, None in ZooKeeper mode
        "storage": {},
        # cluster -> what a migration has to know of it, or who replaces a broker of one that is under way
        "migration": {},
        # cluster -> the ports of what does not run yet
        "listening": {},
        # cluster -> the ports of what runs, that hosts which are new to it have to reach
        "listened": {},
    }
    for cluster in world.clusters:
        broker_ids, server_ids = identity.identities(cluster)
        known_brokers, known_servers = _known(cluster, broker_ids, server_ids)
        for member in cluster.members:
            result["ids"][member.name] = {
                "broker_id": known_brokers.get(member.name),
                "myid": known_servers.get(member.name),
            }
            if member.name in known_brokers and member.broker_id is None:
                result["unwritten"].append(
                    _unwritten(member, "kafka_broker_id", broker_ids[member.name])
                )
            if member.name in known_servers and member.myid is None:
                result["unwritten"].append(
                    _unwritten(member, "zookeeper_myid", server_ids[member.name])
                )
        result["servers"][cluster.name] = _servers(cluster.staying, server_ids)
        result["ensembles_in_effect"][cluster.name] = ensemble.ensemble_in_effect(cluster)
        if cluster.leaving is not None and not cluster.voters_change:
            leavers = [each for each in cluster.servers if each not in cluster.staying]
            result["leaving"][cluster.name] = _servers(leavers, server_ids)
        result["brokers"][cluster.name] = _brokers(cluster, broker_ids)
        result["disks"][cluster.name] = _disks(cluster, broker_ids)
        result["nodes"][cluster.name] = [
            {"host": member.name, "id": broker_ids[member.name], "broker": member.is_broker}
            for member in sorted(
                cluster.nodes, key=lambda each: (not each.is_broker, broker_ids[each.name])
            )
        ]
        result["in_effect"][cluster.name] = in_force.addresses_in_effect(cluster.brokers)
        result["ensembles"][cluster.name] = dict(
            ensemble_state(cluster),
            unstarted=[
                member.name
                for member in cluster.servers
                if not (member.product_facts("zookeeper").get("data") or {}).get("snapshot")
            ],
        )
        result["cluster_ids"][cluster.name] = (
            cluster.snapshot.cluster_id if cluster.snapshot else None
        )
        result["quorums"].update(quorum.quorums(cluster))
        result["voters"][cluster.name] = quorum.voters_of(cluster)
        result["listening"][cluster.name] = listening(cluster)
        result["listened"][cluster.name] = listened(cluster)
        result["storage"][cluster.name] = formats.storage_of(cluster, drawn)
        result["protocols"].update(upgrades.protocols(cluster, world.purpose))
        result["versions"][cluster.name] = upgrades.told(
            cluster, world.purpose, commands or NO_COMMANDS
        )
        result["versions"][cluster.name]["state"] += migration.state_lines(cluster)
        if cluster.is_staged_by_phase:
            result["migration"][cluster.name] = migration.told(cluster)
        in_play = [member for member in cluster.nodes if member.in_play]
        reached = [each for each in in_play if not each.unreachable and each.name not in left]
        if in_play:
            # What is done once for a cluster is done for a host that later plays still have.
            result["cluster_first"][cluster.name] = (reached or in_play)[0].name
    first = frozenset(result["cluster_first"].values())
    result["groups"] = {
        member.name: _groups(
            member,
            left[member.name].products if member.name in left else frozenset(),
            member.name in first,
        )
        for member in world.members
        if member.in_play
    }
    return result


def _known(cluster: Cluster, *ids: Mapping[str, int]) -> List[Dict[str, int]]:
    """The ids of brokers and of servers without those that are guesses: nobody may act on these."""
    return [
        {host: number for host, number in of.items() if host not in guesses}
        for of, guesses in zip(ids, identity.guessed(cluster))
    ]


def _unwritten(member: Member, variable: str, value: int) -> Dict[str, Any]:
    return {"host": member.name, "variable": variable, "value": value}


def _groups(member: Member, left: FrozenSet[str], first: bool) -> List[str]:
    """The groups of a member of this run; of those that are left out or did not answer, only the last plays speak.

    `left`: its products that are left out.
    """
    groups = ["kafkaops_run"]
    serves = member.is_server and "zookeeper" not in left
    runs = member.runs_kafka and "kafka" not in left
    if (serves or runs or not left) and not member.unreachable:
        groups.append("kafkaops_members")
        if serves:
            groups.append("kafkaops_zookeeper")
        if runs:
            groups.append("kafkaops_kafka")
        if runs and member.is_broker and in_zookeeper(member):
            groups.append("kafkaops_in_zookeeper")
        if runs and member.kraft:
            groups.append("kafkaops_kraft" if member.is_broker else "kafkaops_controllers")
    if first and not left:
        groups.append("kafkaops_first")
    return groups


def _servers(members: Iterable[Member], ids: Mapping[str, int]) -> List[Dict[str, Any]]:
    return [
        {
            "host": member.name,
            "id": ids[member.name],
            "version": member.text("zookeeper_version"),
            "address": member.text("zookeeper_address"),
            "client_port": member.client_port,
            "peer_port": member.peer_port,
            "election_port": member.election_port,
        }
        for member in sorted(members, key=lambda each: ids[each.name])
    ]


def _brokers(cluster: Cluster, ids: Mapping[str, int]) -> List[Dict[str, Any]]:
    return [
        {
            "host": member.name,
            "id": ids[member.name],
            "listeners": [each.to_dict() for each in member.listeners],
        }
        for member in sorted(cluster.staying_brokers, key=lambda each: ids[each.name])
    ]


def _disks(cluster: Cluster, ids: Mapping[str, int]) -> List[Dict[str, Any]]:
    """The disk of each log directory of the brokers that have told it; equal for two exactly if they share its room.

    Also of directories that are not there yet: they will be on the disk of what is above them.
    """
    found = []
    for member in sorted(cluster.brokers, key=lambda each: ids[each.name]):
        boot = (member.facts or {}).get("machine", {}).get("boot")
        for each in member.log_directories:
            if boot and each.get("disk"):
                found.append(
                    {
                        "broker": ids[member.name],
                        "path": each["path"],
                        "disk": f"{boot}/{each['disk']}",
                    }
                )
    return found

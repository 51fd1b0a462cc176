# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of what is on the disks of a KRaft cluster, and what its nodes are formatted with. Pure."""

from __future__ import annotations

import posixpath
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Set

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration import features
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.migration import (
    IN_KRAFT,
    MIGRATING,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.storage import (
    as_uuid,
    directory_id,
    initial_controllers,
    is_uuid,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.identity import identities
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    START,
    WRITING,
    Cluster,
    World,
    phase_in_force,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

NOBODY_TELLS = (
    "bring the node's disks back; if they are gone for good, start the others (playbooks/start.yml), since only a"
    " cluster that runs tells what the node was, and then replace it with playbooks/replace_broker.yml; what is new"
    " joins then, too"
)


def check_formats(world: World) -> Iterator[Problem]:
    """What is on the disks of each KRaft cluster."""
    for cluster in world.clusters:
        if not cluster.kraft:
            continue
        # A replacement formats and starts, too, whatever it may not change besides.
        if world.purpose in WRITING or world.replaced is not None:
            yield from _unformatted(cluster)
        if world.purpose in (*WRITING, START) or world.replaced is not None:
            yield from _lost_votes(cluster)
        if world.purpose in WRITING:
            yield from _metadata_elsewhere(cluster)
        yield from _half_formatted(cluster)


def formatted(member: Member) -> Optional[bool]:
    """Whether a log directory of a member is formatted; None where nobody has looked.

    Of a controller the first one: there it keeps the metadata, and the quorum knows a voter by the id of it.
    """
    if member.facts is None:
        return None
    asked = member.log_directories[:1] if member.is_controller else member.log_directories
    return any(each.get("meta") or each.get("meta_broken") for each in asked)


def metadata_moved(member: Member) -> str:
    """The directory that has a node's metadata, where the inventory has another one for them; "" where it has not.

    They are in the first one. A voter votes with that, and no node starts where one behind it has them. A broker whose
    first one is left out fetches them anew. A broker on its way to KRaft has them there, too.
    """
    current = member.product_facts("kafka").get("current") or {}
    has = phase_in_force(member) in (MIGRATING, IN_KRAFT)
    had = current.get("log.dirs", "").split(",")[0].strip() if has else ""
    wanted = [posixpath.normpath(each) for each in member.log_dirs]
    if not had or wanted[:1] in ([], [posixpath.normpath(had)]):
        return ""
    # By another name, or moved by somebody.
    if any(each.get("quorum_state") for each in member.log_directories[:1]):
        return ""
    return had if member.is_controller or posixpath.normpath(had) in wanted else ""


def _metadata_elsewhere(cluster: Cluster) -> Iterator[Problem]:
    for member in cluster.nodes:
        had = metadata_moved(member)
        if had:
            yield found(
                "directories.metadata",
                member.name,
                "kafka_log_dirs",
                ",".join(member.log_dirs),
                f"the metadata of the node are in {had}, and Kafka looks for them in the first one",
                f"write {had} first, and what is new behind it; a node whose disks are gone for good is replaced by"
                " playbooks/replace_broker.yml",
            )


def keeps_its_vote(member: Member) -> Optional[bool]:
    """Whether a controller's disk knows what it has voted for; None where nobody has looked.

    One that was formatted and never started does not, and neither does one that was formatted anew.
    """
    if member.facts is None:
        return None
    return bool(formatted(member)) and any(
        each.get("quorum_state") for each in member.log_directories[:1]
    )


def _has_begun(cluster: Cluster) -> bool:
    """Whether a node of the cluster was ever started, or one that nobody has looked at may have been."""
    return bool(cluster.snapshot) or any(
        each.facts is None
        or each.product_facts("kafka").get("current")
        or any(one.get("quorum_state") for one in each.log_directories)
        for each in cluster.nodes
    )


def _unformatted(cluster: Cluster) -> Iterator[Problem]:
    """A disk without its metadata beside nodes that have begun, whether it was lost or is new.

    Formatted as the first ones were, an empty voter would vote for a past that it does not know.
    """
    bare = [each for each in cluster.nodes if formatted(each) is False]
    if bare and not _has_begun(cluster):
        outside = [each.name for each in cluster.nodes if not each.in_play]
        if outside:
            told = ", ".join(outside)
            reason = f"a new cluster begins with all of its nodes, and this run is without {told}"
            remedy = "run it without --limit"
            yield found("quorum.unformatted", outside, "kafka_log_dirs", "...", reason, remedy)
        return
    for member in bare:
        # Of a quorum that a migration begins, or has begun: its plan knows whether it may be empty.
        if cluster.is_staged_by_phase and not member.is_broker:
            continue
        # One that has its metadata in ZooKeeper, or is on a host that is new, needs no format of its own: what is lost
        # there is found elsewhere.
        if cluster.is_staged_by_phase and phase_in_force(member) != IN_KRAFT:
            continue
        # Of what is there, and not first, is another finding.
        if _may_join(cluster, member) or metadata_moved(member):
            continue
        yield found(
            "quorum.unformatted",
            member.name,
            "kafka_log_dirs",
            ",".join(member.log_dirs),
            f"the node has no formatted directory, and cluster {cluster.name} has begun",
            "" if cluster.snapshot else NOBODY_TELLS,
        )


def _lost_votes(cluster: Cluster) -> Iterator[Problem]:
    """Voters of a static quorum that were formatted and have not run since: Kafka lets them vote at once.

    So ends a replacement that was killed before its start. In a first installation that was killed between
    two starts no broker has answered yet, and nothing has been decided that could be lost. A controller answers
    without a quorum, too.
    """
    answered = any(
        (each.product_facts("kafka").get("answered") or {}).get("process.roles")
        for each in cluster.brokers
    )
    # Of a quorum that a migration begins, or has begun, its plan knows; in ZooKeeper mode a broker answers without it.
    if not (cluster.static_quorum and answered) or cluster.is_staged_by_phase:
        return
    for member in cluster.controllers:
        if formatted(member) and not keeps_its_vote(member) and not metadata_moved(member):
            yield found(
                "quorum.lost_vote",
                member.name,
                "kafka_log_dirs",
                ",".join(member.log_dirs),
                "the directory was formatted, the node has not run with it, and it would vote without"
                f" knowing what it or cluster {cluster.name} has decided",
            )


def _may_join(cluster: Cluster, member: Member) -> bool:
    """Whether an empty node is known to be a new one, of which nobody expects a vote or a record."""
    if cluster.snapshot is None:
        return False
    number = identities(cluster)[0][member.name]
    if not member.is_controller:
        # What ran here, or holds replicas, has lost its disk.
        ran = member.product_facts("kafka").get("current")
        return not ran and number not in cluster.snapshot.replicas
    voters = cluster.snapshot.voters
    return cluster.voters_change and voters is not None and number not in voters


def _half_formatted(cluster: Cluster) -> Iterator[Problem]:
    """Disks that were formatted before any start, by somebody else: with other voters, or another id."""
    if _has_begun(cluster):
        return
    ids, _servers = identities(cluster)
    for member in cluster.nodes:
        for each in member.log_directories[:1]:
            meta: Mapping[str, Any] = each.get("meta") or {}
            cluster_id = meta.get("cluster.id", "")
            if not cluster_id:
                continue
            reason = ""
            if not is_uuid(cluster_id):
                reason = f"it has the cluster id {cluster_id}, which Kafka did not make"
            elif (
                member.is_controller
                and not cluster.static_quorum
                and meta.get("directory.id") != directory_id(cluster_id, ids[member.name])
            ):
                reason = "it was formatted by somebody else, and the voters in it are not known"
            if reason:
                yield found(
                    "quorum.foreign_format", member.name, "kafka_log_dirs", each["path"], reason
                )


def storage_of(cluster: Cluster, drawn: str) -> Optional[Dict[str, Any]]:
    """{cluster_id, initial_controllers, begun, joins, features_of, unformatted: hosts} by which nodes are formatted.

    None in ZooKeeper mode. In a migration brokers are among the unformatted, too: those that leave ZooKeeper are
    formatted.

    `drawn`: at random, for this run; from it and its name follows the id of a cluster of which nobody knows any.
    """
    if not cluster.kraft:
        return None
    ids, _servers = identities(cluster)
    known: Set[str] = set()
    for member in cluster.nodes:
        for each in member.log_directories:
            known.add((each.get("meta") or {}).get("cluster.id") or "")
    known.discard("")
    controllers = as_voters(cluster.voters, ids)
    # Several are refused as identity.foreign_cluster.
    answered = cluster.snapshot.cluster_id if cluster.snapshot else None
    # Of two clusters of one inventory, each has its own: with one id for both, a disk of one would fit into the other.
    fresh = as_uuid(f"{drawn} {cluster.name}".encode("utf-8"))
    cluster_id = min(known, default=answered or fresh)
    return {
        "cluster_id": cluster_id,
        # Whoever is formatted now joins a quorum that has its voters.
        "begun": _has_begun(cluster),
        # The voters of a static quorum vote from their first start on, and Kafka formats none of them otherwise.
        "joins": _has_begun(cluster) and not cluster.static_quorum,
        # Of a newer release, before its features are finalised: the node could not go back with the others. The quorum
        # of a migration begins with the features of its release.
        "features_of": (
            features.written_for(cluster.snapshot.features if cluster.snapshot else None)
            if _has_begun(cluster) and not cluster.migrates
            else ""
        ),
        # The voters of a static quorum are not written there.
        "initial_controllers": (
            "" if cluster.static_quorum else initial_controllers(cluster_id, controllers)
        ),
        "unformatted": [
            each.name
            for each in cluster.nodes
            # Another one that has lost its disks is not to look like one that has not.
            if not (cluster.is_staged_by_phase and cluster.replaced not in (None, ids[each.name]))
            if any(not one.get("meta") for one in each.product_facts("kafka").get("log_dirs") or ())
            # Of an earlier run that started nothing. First voters and users are in its format, and nobody can compare
            # them: so all controllers get them anew, or the first to lead would decide whose are right.
            or (each.is_controller and formatted(each) and not _has_begun(cluster))
        ],
    }


def as_voters(controllers: Iterable[Member], ids: Mapping[str, int]) -> List[Dict[str, Any]]:
    """Controllers as the tasks and modules take voters, by their ids."""
    return [
        {
            "host": each.name,
            "id": ids[each.name],
            "address": each.text("kafka_address"),
            "port": each.get("kafka_controller_port"),
            "broker": each.is_broker,
            "directory_id": (
                ((each.log_directories or ({},))[0].get("meta") or {}).get("directory.id") or ""
            ),
        }
        for each in sorted(controllers, key=lambda each: ids[each.name])
    ]

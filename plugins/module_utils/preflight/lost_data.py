# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks for brokers whose data is gone or damaged: an unmounted, wiped or replaced disk. Pure.

A broker that starts empty under its old id may be elected, and then the other replicas cut their
logs to its empty one. So it has to be told apart from a broker that never ran:

| what is known                                     | a log directory without meta.properties is lost |
|---------------------------------------------------|-------------------------------------------------|
| it ran here, and one of its directories has data  | if that configuration had the directory         |
| it ran here, and no directory has data            | yes, whatever the directories are called now    |
| it was never seen to answer; another one has data | if the current configuration has the directory  |
| nothing on this host; the cluster knows the id    | yes: its id holds replicas                      |
| the same; the cluster cannot be asked, and another| yes: its id may hold replicas                   |
| broker's disks have partitions                    |                                                 |
| the same; the cluster cannot be asked, nothing was| yes: its id may hold replicas                   |
| staged here, and the ensemble holds data, or may  |                                                 |
| and another broker was not seen                   |                                                 |
| a first start that failed, or nothing at all      | no                                              |

A first installation that was killed has staged a configuration on every host before anything
started, and its brokers have no partitions: topics come when all of them run. It is run again.

It ran here: the configuration that last answered is kept below the configuration directory, which
outlives a reboot and lies on another disk than the data. Teardown deletes it.
"""

from __future__ import annotations

import posixpath
from typing import Any, Dict, FrozenSet, Iterator, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.identity import (
    broker_claims,
    hosts_without_id,
    identities,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    WRITING,
    Cluster,
    Snapshot,
    World,
    ensemble_state,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

CANNOT_BE_ASKED = (
    "run playbooks/start.yml, or mend what keeps the cluster from answering, and then this again: a"
    " cluster that runs tells whether the broker holds replicas; if it is known to be a new one,"
    " accept `directories.emptied`"
)


def check_lost_data(world: World) -> Iterator[Problem]:
    """Damaged meta.properties, and log directories that are empty where a broker ran."""
    for cluster in world.clusters:
        claims = {claim.host: claim for claim in broker_claims(cluster)}
        for member in cluster.nodes:
            yield from _broken(member)
        for member in cluster.brokers:
            yield from _emptied(member, cluster, claims[member.name].settled)
            # Nothing else starts a broker that never ran.
            if world.purpose in WRITING:
                yield from _perhaps_emptied(member, cluster)


def _broken(member: Member) -> Iterator[Problem]:
    for each in member.log_directories:
        if each.get("meta_broken"):
            yield found(
                "identity.broken_meta",
                member.name,
                "kafka_log_dirs",
                each["path"],
                f"{each['path']}/meta.properties cannot be read: {each['meta_broken']}",
            )


def _emptied(member: Member, cluster: Cluster, settled: Optional[int]) -> Iterator[Problem]:
    without = _without_meta(member)
    used, reason = _used_directories(member, frozenset(without), settled, cluster.snapshot)
    for index, path in enumerate(member.log_dirs):
        if path in without and posixpath.normpath(path) in used:
            yield _finding(member, index, without[path], reason)


def _perhaps_emptied(member: Member, cluster: Cluster) -> Iterator[Problem]:
    """A host without anything of a broker, whose id may hold replicas: the cluster cannot be asked."""
    facts = member.product_facts("kafka")
    state = ensemble_state(cluster)["state"]
    if cluster.snapshot or not facts or state not in ("existing", "unknown"):
        return
    # Who has no id either gets none, which is another finding.
    if _ran_here(member) or member.name in hosts_without_id(cluster):
        return
    others = [each for each in cluster.brokers if each.name != member.name]
    holding = [
        each.name for each in others if any(one["partitions"] for one in each.log_directories)
    ]
    reason = ""
    if holding:
        verb = "has" if len(holding) == 1 else "have"
        reason = f"{', '.join(holding)} {verb} partitions"
    elif not (facts.get("staged") or facts.get("current")):
        unseen = [each.name for each in others if not each.facts]
        if state == "existing":
            reason = "the ensemble holds data"
        elif unseen:
            reason = f"{', '.join(unseen)} may have partitions"
    if not reason:
        return
    number = identities(cluster)[0][member.name]
    reason += (
        f", and nobody can tell whether broker {number} holds replicas while the cluster does not"
        " answer"
    )
    without = _without_meta(member)
    for index, path in enumerate(member.log_dirs):
        if path in without:
            yield _finding(member, index, without[path], reason, CANNOT_BE_ASKED)


def _finding(
    member: Member, index: int, each: Mapping[str, Any], reason: str, remedy: str = ""
) -> Problem:
    return found(
        "directories.emptied",
        member.name,
        f"kafka_log_dirs[{index}]",
        each["path"],
        f"{_state(each)}, and {reason}",
        remedy,
    )


def _without_meta(member: Member) -> Dict[str, Mapping[str, Any]]:
    """The wanted log directories, by path, that have no meta.properties."""
    wanted = member.product_facts("kafka").get("log_dirs") or []
    return {each["path"]: each for each in wanted if _has_lost_meta(each)}


def _ran_here(member: Member) -> bool:
    """Whether anything of a broker that began here is left: told by the findings of `_emptied`."""
    return bool(member.product_facts("kafka").get("answered")) or _holds_data(member)


def _holds_data(member: Member) -> bool:
    return any(each["meta"] or each.get("meta_broken") for each in member.log_directories)


def _has_lost_meta(each: Mapping[str, Any]) -> bool:
    known = each["meta"] or each.get("meta_broken") or each.get("meta_unreadable")
    return bool(each["readable"] and not each["is_file"] and not known)


def _used_directories(
    member: Member,
    without: FrozenSet[str],
    settled: Optional[int],
    snapshot: Optional[Snapshot],
) -> Tuple[FrozenSet[str], str]:
    """(directories that have to hold a broker's data, how that is known); see the table above."""
    facts = member.product_facts("kafka")
    holds_data = _holds_data(member)
    answered = facts.get("answered")
    if answered:
        # in KRaft mode it has the other name
        number = answered.get("broker.id", answered.get("node.id", settled))
        reason = f"broker {number} ran here"
        return (_paths(answered) if holds_data else _normal(without)), reason
    if holds_data:
        reason = "the broker's other log directories have one"
        return _paths(facts.get("current") or {}), reason
    if snapshot and settled in snapshot.replicas:
        return _normal(without), f"broker {settled} holds replicas in the cluster"
    return frozenset(), ""


def _paths(properties: Mapping[str, str]) -> FrozenSet[str]:
    texts = (each.strip() for each in properties.get("log.dirs", "").split(","))
    return _normal(frozenset(each for each in texts if each))


def _normal(paths: FrozenSet[str]) -> FrozenSet[str]:
    return frozenset(posixpath.normpath(path) for path in paths)


def _state(each: Mapping[str, Any]) -> str:
    if not each["exists"]:
        return "it is not there"
    if each["partitions"]:
        return f"it holds {each['partitions']} partitions and no meta.properties"
    return "it is empty (no meta.properties)"

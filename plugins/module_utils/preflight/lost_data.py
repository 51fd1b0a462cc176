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
| a first start that failed, or nothing at all      | no                                              |

It ran here: the configuration that last answered is kept below the configuration directory, which
outlives a reboot and lies on another disk than the data. Teardown deletes it.
"""

from __future__ import annotations

import posixpath
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import (
    found,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.identity import (
    broker_claims,
    log_directories,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.ids import Claim
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    Snapshot,
    World,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem


def check_lost_data(world: World) -> Iterator[Problem]:
    """Damaged meta.properties, and log directories that are empty where a broker ran."""
    for cluster in world.clusters:
        claims = {claim.host: claim for claim in broker_claims(cluster)}
        for member in cluster.brokers:
            yield from _broken(member)
            yield from _emptied(member, claims[member.name], cluster.snapshot)


def _broken(member: Member) -> Iterator[Problem]:
    for each in log_directories(member):
        if each.get("meta_broken"):
            yield found(
                "identity.broken_meta",
                member.name,
                "kafka_log_dirs",
                each["path"],
                f"{each['path']}/meta.properties cannot be read: {each['meta_broken']}",
            )


def _emptied(member: Member, claim: Claim, snapshot: Optional[Snapshot]) -> Iterator[Problem]:
    facts = member.product_facts("kafka")
    wanted = {each["path"]: each for each in facts.get("log_dirs") or []}
    without = [path for path, each in wanted.items() if _has_lost_meta(each)]
    used, reason = _used_directories(facts, frozenset(without), claim, snapshot)
    for index, path in enumerate(member.log_dirs):
        if path in without and posixpath.normpath(path) in used:
            yield found(
                "directories.emptied",
                member.name,
                f"kafka_log_dirs[{index}]",
                path,
                f"{_state(wanted[path])}, and {reason}",
            )


def _has_lost_meta(each: Mapping[str, Any]) -> bool:
    known = each["meta"] or each.get("meta_broken") or each.get("meta_unreadable")
    return bool(each["readable"] and not each["is_file"] and not known)


def _used_directories(
    facts: Mapping[str, Any],
    without: FrozenSet[str],
    claim: Claim,
    snapshot: Optional[Snapshot],
) -> Tuple[FrozenSet[str], str]:
    """(directories that have to hold a broker's data, how that is known); see the table above."""
    everywhere: List[Dict[str, Any]] = [
        *(facts.get("log_dirs") or []),
        *(facts.get("other_log_dirs") or []),
    ]
    holds_data = any(each["meta"] or each.get("meta_broken") for each in everywhere)
    answered = facts.get("answered")
    if answered:
        reason = f"broker {answered.get('broker.id', '')} ran here"
        return (_paths(answered) if holds_data else _normal(without)), reason
    if holds_data:
        reason = "the broker's other log directories have one"
        return _paths(facts.get("current") or {}), reason
    if snapshot and claim.settled in snapshot.replicas:
        return _normal(without), f"broker {claim.settled} holds replicas in the cluster"
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

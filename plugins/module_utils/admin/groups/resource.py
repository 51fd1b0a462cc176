# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Offsets of consumer groups as a Resource: what the runner needs to know to reconcile them.

Private to this collection. The glue between `plan`, which decides, and `client`, which
does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.client import (
    GroupsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.plan import (
    CONSENTS,
    DELETE,
    FORGET,
    RESET,
    Reading,
    left_of,
    moments_wanted,
    parse_groups,
    parse_offsets_text,
    place_of,
    plan_groups,
    subject_of,
    wanted_keys,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# What a coordinator answers to the deletion of a group that somebody else has deleted.
GONE = "GROUP_ID_NOT_FOUND"


def with_files_read(items: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """The items, each `src` as the offsets in that file; AdminError if it cannot be read."""
    read = []
    for item in items:
        item = dict(item)
        if item["src"] is not None:
            try:
                with open(item["src"], encoding="utf-8") as stream:
                    item["src"] = parse_offsets_text(stream.read(), str(item["name"]))
            except (OSError, ValueError) as error:
                raise AdminError(
                    Problem(
                        "groups.src",
                        str(error),
                        "correct the path, or the file",
                        (str(item["name"]),),
                        "src",
                        str(item["src"]),
                    )
                ) from error
        read.append(item)
    return read


class ConsumerGroups(Resource):
    """The declared groups of one task."""

    def __init__(self, client: GroupsClient, params: Mapping[str, Any]):
        self.client: GroupsClient = client
        self._desired, self._refusals = parse_groups(
            with_files_read(params["groups"]), client.now_ms()
        )
        self._allow = frozenset(params["allow"])
        # What groups had committed when they were changed.
        self._now: Mapping[str, Mapping[Key, int]] = {}

    def read(self) -> Reading:
        """The groups with their offsets, and both ends of the partitions that they are to move in."""
        cluster = self.client.fetch_metadata()
        names = {each.name for each in self._desired}
        groups = {group.name: group for group in self.client.fetch_groups(names.__contains__)}
        reading = Reading(cluster, groups, others=self.client.left_out)
        led = cluster.led
        keys = {
            key
            for each in self._desired
            if not each.absent
            for key in wanted_keys(each, reading.group(each.name), cluster)
        }
        starts, ends = self.client.fetch_both_ends(sorted(keys & led))
        moments = {
            (moment, key): offset
            for moment, wanted in moments_wanted(self._desired, groups, cluster).items()
            for key, (offset, _stamp) in self.client.fetch_since(
                dict.fromkeys(sorted(wanted & led), moment)
            ).items()
        }
        return replace(reading, starts=starts, ends=ends, moments=moments)

    def plan(self, snapshot: Reading) -> Plan:
        """The plan, and every item that could not be read."""
        return plan_groups(self._desired, snapshot, self._allow).refusing(self._refusals)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Commit, forget and delete, each for all groups at once.

        Coordinators overwrite what they have. So it is asked for once more, and only what is as it was is moved.
        """
        now = self._now = self.client.fetch_committed(_groups_of(changes))
        left, failures = left_of(changes, now)
        self.made = {change.subject: change for change in left}
        changes = left
        commits: Dict[str, Dict[Key, int]] = {}
        forgotten: Dict[str, List[Key]] = {}
        for change in changes:
            if change.kind == DELETE:
                continue
            group, key = place_of(change.subject)
            if change.kind == RESET:
                commits.setdefault(group, {})[key] = change.after["offset"]
            else:
                forgotten.setdefault(group, []).append(key)
        deleted = [change.subject for change in changes if change.kind == DELETE]
        for kind, refused in (
            (RESET, self.client.alter_offsets(commits, deadline)),
            (FORGET, self.client.forget_offsets(forgotten)),
        ):
            failures += [
                Failure(subject_of(*place), text, kind, code)
                for place, (text, code) in sorted(refused.items())
            ]
        failures += [
            Failure(name, text, DELETE, code, code == GONE)
            for name, (text, code) in sorted(self.client.delete_groups(deleted).items())
        ]
        return failures

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """What the coordinators do not show yet."""
        committed = self.client.fetch_committed(_groups_of(changes))
        found = {}
        for change in changes:
            if change.kind == DELETE:
                if committed.get(change.subject):
                    found[change.subject] = "still there"
                continue
            group, key = place_of(change.subject)
            offset = committed.get(group, {}).get(key)
            if offset != change.after["offset"]:
                found[change.subject] = f"the offset is {offset}"
        return found

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns beside the plan: offsets as they were, in the form of the option."""
        reading: Reading = outcome.snapshot
        touched = {
            name: self._now.get(name, reading.group(name).committed)
            for name in _groups_of(outcome.changed)
        }
        return {
            "cluster_id": reading.cluster.cluster_id,
            "before": [
                {
                    "name": name,
                    "offsets": [
                        {"topic": topic, "partition": part, "offset": offset}
                        for (topic, part), offset in sorted(committed.items())
                    ],
                }
                for name, committed in sorted(touched.items())
                if committed
            ],
        }


def _groups_of(changes: Sequence[Change]) -> List[str]:
    """The groups that changes concern, sorted."""
    return sorted(
        {
            change.subject if change.kind == DELETE else place_of(change.subject)[0]
            for change in changes
        }
    )


# The module's own options; their documentation is in the module.
GROUP_OPTIONS = dict(
    groups=dict(
        type="list",
        elements="dict",
        required=True,
        options=dict(
            # raw: a name that YAML has read as a number must not become a text silently
            name=dict(type="raw", required=True),
            state=dict(type="str", choices=["present", "absent"], default="present"),
            topics=dict(type="list", elements="raw"),
            partitions=dict(type="list", elements="int"),
            to=dict(type="str", choices=["earliest", "latest"]),
            offset=dict(type="int"),
            time=dict(type="str"),
            shift=dict(type="int"),
            offsets=dict(
                type="list",
                elements="dict",
                options=dict(
                    topic=dict(type="str", required=True),
                    partition=dict(type="int", required=True),
                    offset=dict(type="int", required=True),
                ),
            ),
            src=dict(type="path"),
        ),
    ),
    allow=dict(type="list", elements="str", choices=list(CONSENTS), default=[]),
    operation_timeout=dict(type="float", default=60.0),
)

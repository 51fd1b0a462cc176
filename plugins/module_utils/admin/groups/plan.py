# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What consumer groups are to have committed: read from options, and planned. Pure.

Private to this collection. A group is where it is said to be: at an offset, a moment, one of the ends, or
as many records further. Who goes back reads records again, who goes forward skips them: both need
consent, and nothing is planned for a group that somebody reads with.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field, replace
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.model import (
    STREAMS,
    Group,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    Snapshot,
    partition_name,
    partition_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import (
    did_you_mean,
    unclear_name,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    CHANGED,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    reason_and_remedy,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    parse_moment_ms,
    whole_number,
)

RESET, FORGET, DELETE = "reset", "forget", "delete"
# Consents.
REREAD, SKIP, DELETION = "reread", "skip", "delete"
CONSENTS = (REREAD, SKIP, DELETION)
EARLIEST, LATEST, OFFSET, TIME, SHIFT = "earliest", "latest", "offset", "time", "shift"
# Options of an item that say where to go; one of them.
GOALS = ("to", "offset", "time", "shift", "offsets", "src")
SHOWN = 5


@dataclass(frozen=True)
class Goal:
    """Where a group is to be: EARLIEST or LATEST, or OFFSET, TIME (ms since 1970) or SHIFT with a number."""

    kind: str
    number: int = 0


@dataclass(frozen=True)
class DesiredGroup:
    """A group as declared. `topics` None: all that it has committed for; `partitions` None: all.

    Where `offsets` are given, they say everything. `absent` without topics means the group itself.
    """

    name: str
    absent: bool = False
    goal: Optional[Goal] = None
    topics: Optional[Tuple[str, ...]] = None
    partitions: Optional[FrozenSet[int]] = None
    offsets: Mapping[Key, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """What was read: the cluster, the groups, both ends of partitions, and offsets of moments."""

    cluster: Snapshot
    groups: Mapping[str, Group] = field(default_factory=dict)
    starts: Mapping[Key, int] = field(default_factory=dict)
    ends: Mapping[Key, int] = field(default_factory=dict)
    moments: Mapping[Tuple[int, Key], int] = field(default_factory=dict)
    # Groups of these names that keep no offsets as consumers do, with what they are.
    others: Mapping[str, str] = field(default_factory=dict)

    def group(self, name: str) -> Group:
        """The group; a dead one where there is none."""
        return self.groups.get(name) or Group(name)


# ---------------------------------------------------------------- options


class _ItemReader:
    """Reads one item and collects everything that is wrong with it."""

    def __init__(self, item: Mapping[str, Any], now_ms: int):
        self.item = item
        self.name = str(item["name"])
        self.now_ms = now_ms
        self.refusals: List[Problem] = []

    def refuse(self, reason: str, remedy: str, setting: str = "", value: Any = "") -> None:
        """Note what is wrong."""
        self.refusals.append(
            Problem("groups.bad_item", reason, remedy, (self.name,), setting, value)
        )

    def read(self) -> Optional[DesiredGroup]:
        """The group; None if something is wrong with it."""
        item = self.item
        absent = item["state"] == "absent"
        given = [option for option in GOALS if item[option] is not None]
        if not self.name:
            self.refuse("a group needs a name", "write name: ...", "name")
        for option, names in (("name", [item["name"]]), ("topics", item["topics"] or ())):
            for name in names:
                if not isinstance(name, str):
                    self.refuse(unclear_name(name), "write the name in quotes", option, name)
        if absent and given:
            self.refuse(
                "an absent group has no offset",
                f"leave out {' and '.join(given)}",
                "state",
                "absent",
            )
        elif not absent and len(given) != 1:
            what = f"{' and '.join(given)} are given" if given else "nothing says where it is to be"
            self.refuse(what, f"give one of {', '.join(GOALS)}")
        topics = tuple(map(str, item["topics"])) if item["topics"] is not None else None
        if topics is not None and (not topics or len(set(topics)) < len(topics)):
            self.refuse("the list is empty or names one twice", "name each once", "topics")
        partitions = frozenset(item["partitions"]) if item["partitions"] is not None else None
        if partitions is not None and (topics is None or len(topics) != 1 or not partitions):
            self.refuse(
                "partitions are those of one topic", "name one topic in topics", "partitions"
            )
        if (item["offsets"] is not None or item["src"] is not None) and topics is not None:
            self.refuse("the offsets name topics already", "leave out topics", "topics")
        if self.refusals:
            return None
        goal, offsets = self._goal(given[0]) if given else (None, {})
        if self.refusals:
            return None
        return DesiredGroup(self.name, absent, goal, topics, partitions, offsets)

    def _goal(self, option: str) -> Tuple[Optional[Goal], Dict[Key, int]]:
        value = self.item[option]
        if option == "to":
            return Goal(value), {}
        if option == "offset":
            if value < 0:
                self.refuse("an offset is not negative", "give one from 0 on", option, value)
            return Goal(OFFSET, value), {}
        if option == "shift":
            return Goal(SHIFT, value), {}
        if option == "time":
            try:
                return Goal(TIME, parse_moment_ms(value, self.now_ms)), {}
            except ValueError as error:
                self.refuse(*reason_and_remedy(error, "correct it"), option, value)
                return None, {}
        return None, self._offsets(value)

    def _offsets(self, rows: Sequence[Mapping[str, Any]]) -> Dict[Key, int]:
        """Of a list of topic, partition, offset; a file was read into one already."""
        found: Dict[Key, int] = {}
        for row in rows:
            key = (row["topic"], row["partition"])
            if key in found:
                self.refuse("listed twice", "keep one of them", "offsets", partition_name(*key))
            if row["offset"] < 0 or row["partition"] < 0:
                text = f"{partition_name(*key)}: {row['offset']}"
                self.refuse("a number is negative", "give numbers from 0 on", "offsets", text)
            found[key] = row["offset"]
        if not rows:
            self.refuse("there are no offsets", "give at least one", "offsets")
        return found


def parse_offsets_text(text: str, group: str) -> List[Dict[str, Any]]:
    """Offsets of a group from a file as Kafka's own tool writes it with `--export`.

    Lines of topic, partition, offset, or with the group before them; those of other groups are left out.
    Raises ValueError with a sentence.
    """
    rows: List[Dict[str, Any]] = []
    try:
        lines = list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise ValueError(f"it is not a list of topic,partition,offset: {error}") from error
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line]
        if not any(cells):
            continue
        if len(cells) not in (3, 4):
            raise ValueError(f"line {number} is not topic,partition,offset")
        if len(cells) == 4 and cells.pop(0) != group:
            continue
        partition, offset = whole_number(cells[1]), whole_number(cells[2])
        if partition is None or offset is None:
            raise ValueError(f"line {number} is not topic,partition,offset")
        rows.append({"topic": cells[0], "partition": partition, "offset": offset})
    return rows


def parse_groups(
    items: Sequence[Mapping[str, Any]], now_ms: int
) -> Tuple[Tuple[DesiredGroup, ...], Tuple[Problem, ...]]:
    """Desired groups in the order given, and a refusal for everything that is wrong with them.

    A group may be listed again with other topics.
    """
    groups: List[DesiredGroup] = []
    seen: Dict[str, List[DesiredGroup]] = {}
    refusals: List[Problem] = []
    for item in items:
        reader = _ItemReader(item, now_ms)
        group = reader.read()
        refusals += reader.refusals
        if group is None:
            continue
        others = seen.setdefault(group.name, [])
        if any(_overlap(each, group) for each in others):
            refusals.append(
                Problem(
                    "groups.duplicate",
                    "listed twice for the same partitions",
                    "keep one of them, or give each its own topics",
                    (group.name,),
                )
            )
            continue
        others.append(group)
        groups.append(group)
    return tuple(groups), tuple(refusals)


def _overlap(one: DesiredGroup, other: DesiredGroup) -> bool:
    """Whether both may mean the same partition."""
    sides = []
    for each in (one, other):
        topics = set(each.topics or ()) | {key[0] for key in each.offsets}
        if not topics:
            return True
        sides.append((topics, each.partitions, set(each.offsets)))
    (mine, parts, offsets), (theirs, more_parts, more_offsets) = sides
    if not mine & theirs:
        return False
    if offsets and more_offsets:
        return bool(offsets & more_offsets)
    return parts is None or more_parts is None or bool(parts & more_parts)


def wanted_keys(desired: DesiredGroup, group: Group, cluster: Snapshot) -> Set[Key]:
    """The partitions that an item means, as far as they exist."""
    there = {
        (name, part.id)
        for name in {
            *(desired.topics or ()),
            *(key[0] for key in (*group.committed, *desired.offsets)),
        }
        if name in cluster.topics
        for part in cluster.topics[name].partitions
    }
    if desired.offsets:
        return set(desired.offsets) & there
    if desired.topics is None:
        return set(group.committed) & there
    return {
        key
        for key in there
        if key[0] in desired.topics and (desired.partitions is None or key[1] in desired.partitions)
    }


def moments_wanted(
    desired: Sequence[DesiredGroup], groups: Mapping[str, Group], cluster: Snapshot
) -> Dict[int, Set[Key]]:
    """Moments (ms since 1970) to the partitions whose offset at that time is needed."""
    found: Dict[int, Set[Key]] = {}
    for each in desired:
        if each.goal and each.goal.kind == TIME:
            keys = wanted_keys(each, groups.get(each.name) or Group(each.name), cluster)
            found.setdefault(each.goal.number, set()).update(keys)
    return found


# ---------------------------------------------------------------- the plan


def left_of(
    changes: Sequence[Change], committed: Mapping[str, Mapping[Key, int]]
) -> Tuple[List[Change], List[Failure]]:
    """(what is left of planned changes, the failures), with what groups have committed at this moment.

    Who has gone on since the plan would be put back, or forward, without anybody's consent: that is left to
    him. What he has done alike is not ours. A deletion was agreed to wherever the group is.
    """
    left: List[Change] = []
    failures: List[Failure] = []
    for change in changes:
        if change.kind == DELETE:
            offsets = committed.get(change.subject)
            before = {**change.before, "offsets": _offsets_dict(offsets)} if offsets else None
            left.append(replace(change, before=before) if before else change)
            continue
        group, key = place_of(change.subject)
        now = committed.get(group, {}).get(key)
        if now == change.after["offset"]:
            words = "somebody else has done it"
            failures.append(Failure(change.subject, words, change.kind, moot=True))
        elif change.kind == FORGET or now == change.before["offset"]:
            left.append(replace(change, before={"offset": now}))
        else:
            words = (
                f"somebody else has committed {now} meanwhile, it was {change.before['offset']}; "
                "run the task again to plan anew"
            )
            failures.append(Failure(change.subject, words, change.kind, CHANGED))
    return left, failures


def subject_of(group: str, key: Key) -> str:
    """How a partition of a group is written: `billing orders-0`; `place_of` reads it."""
    return f"{group} {partition_name(*key)}"


def place_of(subject: str) -> Tuple[str, Key]:
    """(group, partition) of `subject_of`; names of topics have no spaces."""
    group, _space, part = subject.rpartition(" ")
    return group, partition_of(part)


def plan_groups(desired: Sequence[DesiredGroup], reading: Reading, allow: FrozenSet[str]) -> Plan:
    """The Plan that brings the groups where they are to be, as far as `allow` (of CONSENTS) consents."""
    changes: List[Change] = []
    refusals: List[Problem] = []
    for each in desired:
        group = reading.group(each.name)
        if each.name in reading.others:
            reason = f"it is {reading.others[each.name]}, which keeps no offsets as consumers do"
            remedy = "correct the name, or use the tools of what the group belongs to"
            refusals.append(Problem("groups.other_kind", reason, remedy, (each.name,)))
            continue
        if each.absent:
            found, refused = _plan_absent(each, group, allow)
        else:
            found, refused = _plan_reset(each, group, reading, allow)
        refusals += refused
        changes += [] if refused else found
    order = {RESET: 0, FORGET: 1, DELETE: 2}
    changes.sort(key=lambda change: (order[change.kind], change.subject))
    return Plan(tuple(changes), tuple(refusals))


def _plan_absent(
    desired: DesiredGroup, group: Group, allow: FrozenSet[str]
) -> Tuple[List[Change], List[Problem]]:
    if desired.topics is None:
        if not group.exists:
            return [], []
        changes = [
            Change(
                DELETE,
                group.name,
                {"state": group.state, "offsets": _offsets_dict(group.committed)},
                {},
                f"{len(group.committed)} offsets",
            )
        ]
    else:
        changes = [
            Change(FORGET, subject_of(group.name, key), {"offset": offset}, {"offset": None})
            for key, offset in sorted(group.committed.items())
            if key[0] in desired.topics
            and (desired.partitions is None or key[1] in desired.partitions)
        ]
    if not changes:
        return [], []
    refusals = _active(group, desired.topics)
    if not refusals and DELETION not in allow:
        what = "the group" if desired.topics is None else "its offsets"
        offsets = len(group.committed) if desired.topics is None else len(changes)
        refusals = [
            Problem(
                "groups.delete",
                f"deleting {what} forgets {offsets} offsets: who reads with this name afterwards begins "
                "where its auto.offset.reset says",
                "consent with allow: [delete]",
                (group.name,),
                "state",
                "absent",
            )
        ]
    return changes, refusals


def _active(group: Group, topics: Optional[Sequence[str]] = None) -> List[Problem]:
    """The refusal of a group that somebody reads with, or reads these topics with."""
    members = [
        member
        for member in group.members
        if topics is None or any(member.reads(topic) for topic in topics)
    ]
    if not (group.active and topics is None) and not members:
        return []
    shown = [str(member) for member in members[:SHOWN]]
    if len(members) > SHOWN:
        shown.append(f"{len(members) - SHOWN} more")
    nobody = "its members are not told" if group.kind == STREAMS else "nobody yet"
    who = ", ".join(shown) or f"{nobody}, it is {group.state}"
    return [
        Problem(
            "groups.active",
            f"consumers read with it, and would commit over what is changed: {who}",
            "stop them, and run it again",
            (group.name,),
        )
    ]


def _offsets_dict(committed: Mapping[Key, int]) -> Dict[str, int]:
    return {partition_name(*key): offset for key, offset in sorted(committed.items())}


def _plan_reset(
    desired: DesiredGroup, group: Group, reading: Reading, allow: FrozenSet[str]
) -> Tuple[List[Change], List[Problem]]:
    refusals = _unknown(desired, group, reading.cluster)
    keys = wanted_keys(desired, group, reading.cluster)
    if desired.goal and desired.goal.kind == SHIFT and keys and not keys & set(group.committed):
        reason = (
            "the group has committed nothing for these topics, so there is nothing to go on from"
        )
        remedy = "correct the name, or say to, offset or time instead of shift"
        refusals.append(Problem("groups.no_offsets", reason, remedy, (desired.name,), "shift"))
    changes: List[Change] = []
    again: Dict[Key, int] = {}
    skipped: Dict[Key, int] = {}
    for key in sorted(keys):
        if key not in reading.starts or key not in reading.ends:
            if key in reading.cluster.led:
                reason = f"{partition_name(*key)} was deleted at this moment"
                remedy = "run it again"
            else:
                reason = f"{partition_name(*key)} has no leader"
                remedy = "start the brokers that have it (playbooks/start.yml starts what is down)"
            refusals.append(Problem("groups.no_leader", reason, remedy, (desired.name,)))
            continue
        start, end = reading.starts[key], reading.ends[key]
        before = group.committed.get(key)
        after = _target(desired, key, before, reading)
        if after is None or after == before:
            continue
        if not start <= after <= end:
            refusals.append(_out_of_range(desired, key, after, start, end))
            continue
        read_again = max(0, min(before, end) - after) if before is not None else 0
        left_out = max(0, after - max(before, start)) if before is not None else 0
        note = _note(read_again, left_out) if before is not None else "nothing was committed"
        if read_again:
            again[key] = read_again
        if left_out:
            skipped[key] = left_out
        subject = subject_of(desired.name, key)
        changes.append(Change(RESET, subject, {"offset": before}, {"offset": after}, note))
    if changes:
        refusals += _active(group)
    if again and REREAD not in allow:
        refusals.append(_consent(desired, "groups.reread", REREAD, "read again", again))
    if skipped and SKIP not in allow:
        refusals.append(_consent(desired, "groups.skip", SKIP, "skipped unread", skipped))
    return changes, refusals


def _target(
    desired: DesiredGroup, key: Key, before: Optional[int], reading: Reading
) -> Optional[int]:
    """Where the group is to be in a partition; None: a shift of what is not committed."""
    if desired.offsets:
        return desired.offsets[key]
    goal = desired.goal or Goal(LATEST)
    start, end = reading.starts[key], reading.ends[key]
    if goal.kind == EARLIEST:
        return start
    if goal.kind == LATEST:
        return end
    if goal.kind == OFFSET:
        return goal.number
    if goal.kind == TIME:
        found = reading.moments.get((goal.number, key), -1)
        return end if found < 0 else found
    if before is None:
        return None
    return min(max(before + goal.number, start), end)


def _unknown(desired: DesiredGroup, group: Group, cluster: Snapshot) -> List[Problem]:
    """Topics and partitions that do not exist, and a group of which nothing is known."""
    found = []
    asked = {*(desired.topics or ()), *(key[0] for key in desired.offsets)}
    for name in sorted(asked - set(cluster.topics)):
        reason = f"there is no such topic{did_you_mean(name, cluster.topics)}"
        found.append(
            Problem(
                "groups.unknown_topic", reason, "correct the name", (desired.name,), "topics", name
            )
        )
    parts = set(desired.offsets)
    for name in desired.topics or ():
        parts |= {(name, number) for number in desired.partitions or ()}
    for name, number in sorted(parts):
        if name in cluster.topics and number not in {
            part.id for part in cluster.topics[name].partitions
        }:
            count = len(cluster.topics[name].partitions)
            reason = f"the topic has {count} partitions, the first one is 0"
            found.append(
                Problem(
                    "groups.unknown_partition",
                    reason,
                    "correct the number",
                    (desired.name,),
                    "partitions",
                    partition_name(name, number),
                )
            )
    if not asked and not group.committed:
        reason = "the group has committed nothing, or there is no such group"
        remedy = "correct the name, or name the topics for which it is to have offsets"
        found.append(Problem("groups.no_offsets", reason, remedy, (desired.name,)))
    return found


def _out_of_range(desired: DesiredGroup, key: Key, after: int, start: int, end: int) -> Problem:
    return Problem(
        "groups.out_of_range",
        f"{partition_name(*key)} has the offsets {start} to {end}",
        "choose one of them; to: earliest is the first that is still there",
        (desired.name,),
        "offset",
        str(after),
    )


def _note(again: int, skipped: int) -> str:
    if again:
        return f"{_records(again)} would be read again"
    if skipped:
        return f"{_records(skipped)} would be skipped unread"
    return "no record is read again or skipped"


def _records(count: int) -> str:
    return f"{count} record{'' if count == 1 else 's'}"


def _consent(
    desired: DesiredGroup, check: str, consent: str, verb: str, counts: Mapping[Key, int]
) -> Problem:
    shown = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    parts = [f"{partition_name(*key)}: {count}" for key, count in shown[:SHOWN]]
    if len(shown) > SHOWN:
        parts.append(f"{len(shown) - SHOWN} more")
    return Problem(
        check,
        f"{_records(sum(counts.values()))} would be {verb} ({', '.join(parts)})",
        f"consent with allow: [{consent}]",
        (desired.name,),
    )

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Advice about partitions, gathered from a cluster and told as data and as lines.

Private to this collection. `gather` asks, the rest is pure. Nothing here changes anything.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.bounds import (
    Bound,
    Limits,
    Load,
    bounds_of,
    load_of,
    with_added,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.client import (
    AdviceClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.growth import (
    GroupEffect,
    Reading,
    keys_moved,
    partitions_needed,
    suggested,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.items import (
    ADVICE_ITEM,
    Addition,
    Asked,
    addition,
    parse_asked,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.pause import (
    Estimate,
    Watch,
    estimates,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.status import table
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.model import Group
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    Snapshot,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ranges import (
    checked_seconds,
    out_of_range,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    format_share,
    whole_number,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted

FETCHERS_KEY = "num.replica.fetchers"
LONGEST_SECONDS = 3600.0
# (committed offsets of each group, end of each partition) at one moment
Moment = Tuple[Mapping[str, Mapping[Key, int]], Mapping[Key, int]]

# The module's own options; their documentation is in the module.
ADVICE_OPTIONS = dict(
    topics=dict(type="list", elements="dict", options=ADVICE_ITEM, default=[]),
    sample_seconds=dict(type="float", default=0.0),
    open_files=dict(type="int", default=100_000),
    max_map_count=dict(type="int", default=65_530),
    watch=dict(
        type="dict",
        options=dict(
            broker=dict(type="int", required=True), timeout=dict(type="float", default=300.0)
        ),
    ),
)


def gather(params: Mapping[str, Any], client: AdviceClient) -> Dict[str, Any]:
    """Everything that kafka_partition_advice returns, for its parameters."""
    asked = parse_asked(params["topics"])
    seconds = params["sample_seconds"]
    if not 0 <= seconds <= LONGEST_SECONDS:
        reason = f"must be between 0 and {LONGEST_SECONDS:g}"
        raise out_of_range("sample_seconds", f"{seconds:g}", reason, "choose such a number")
    for option in ("open_files", "max_map_count"):
        if params[option] < 1:
            raise out_of_range(option, params[option], "less than one", "give the limit of a host")
    client.connect()
    snapshot = client.fetch_topics((), lambda _name: True)
    warnings = []
    settings = snapshot.broker_defaults
    if snapshot.defaults_denied:
        warnings.append(
            "the brokers' settings are unknown, so defaults are assumed: grant this user "
            "DescribeConfigs on the cluster"
        )
    additions = {
        each.name: addition(
            each, snapshot.topics.get(each.name), list(snapshot.topics), len(snapshot.brokers)
        )
        for each in asked
    }
    sizes = None
    try:
        sizes = client.fetch_disks([broker.id for broker in snapshot.brokers]).sizes
    except AdminError as error:
        warnings.append(f"open files and memory maps are unknown: {error.problem.reason}")
    now = load_of(snapshot, sizes)
    planned = with_added(now, [each for each in additions.values() if each])
    kraft = bool(settings.get("process.roles")) if settings else None
    found = bounds_of(now, planned, Limits(params["open_files"], params["max_map_count"], kraft))
    fetchers = whole_number(settings.get(FETCHERS_KEY)) or 1
    guesses = estimates(planned, settings, kraft, fetchers)
    growing = [name for name, added in additions.items() if added and name in snapshot.topics]
    effects: Dict[str, List[GroupEffect]] = {}
    if growing:
        effects = _effects(client, snapshot, growing, additions, seconds)
    rows = [
        topic_row(each, snapshot, additions[each.name], effects.get(each.name, ()))
        for each in asked
    ]
    watched = _watched(client, snapshot, params["watch"])
    return {
        "cluster_id": snapshot.cluster_id,
        "kraft": kraft,
        "bounds": [each.to_dict() for each in found],
        "estimates": [each.to_dict() for each in guesses],
        "watched": watched,
        "topics": rows,
        "lines": lines(now, found, guesses, rows, watched),
        "warnings": warnings,
    }


def _watched(
    client: AdviceClient, snapshot: Snapshot, option: Optional[Mapping[str, Any]]
) -> Optional[Dict[str, Any]]:
    """What was seen of a broker that died while it was watched; None if nobody asked."""
    if not option:
        return None
    checked_seconds("watch.timeout", option["timeout"], LONGEST_SECONDS)
    broker = next((each for each in snapshot.brokers if each.id == option["broker"]), None)
    if broker is None:
        alive = ", ".join(str(each.id) for each in snapshot.brokers)
        reason = f"no such broker is alive; alive are {alive}"
        raise out_of_range("watch.broker", option["broker"], reason, "correct the id")
    led = frozenset(key for key, part in snapshot.partitions.items() if part.leader == broker.id)
    watch = Watch(broker.id, led)
    client.observe(broker, watch, option["timeout"])
    if watch.died is None:
        raise AdminError(
            Problem(
                "advice.nobody_died",
                f"it accepted connections for all of {option['timeout']:g} s",
                "end its process (kill -9) while the module watches, or raise watch.timeout",
                (f"broker {broker.id}",),
            )
        )
    return watch.to_dict()


# ---------------------------------------------------------------- growth and groups


def _effects(
    client: AdviceClient,
    snapshot: Snapshot,
    growing: Sequence[str],
    additions: Mapping[str, Optional[Addition]],
    seconds: float,
) -> Dict[str, List[GroupEffect]]:
    """What growth does to each group that reads one of the topics."""
    groups = [
        group
        for group in client.fetch_groups(lambda _name: True, denied_ok=True)
        if any(name in growing for name, _number in group.committed)
        or any(member.reads(name) for member in group.members for name in growing)
    ]
    keys = sorted(key for key in snapshot.led if key[0] in growing)
    names = [group.name for group in groups]
    first: Moment = (
        {group.name: group.committed for group in groups},
        client.fetch_both_ends(keys, first=False)[1],
    )
    last = first
    if seconds and groups:
        client.pause(seconds)
        last = (client.fetch_committed(names), client.fetch_both_ends(keys, first=False)[1])
    return {
        name: [
            effect
            for group in groups
            for effect in [
                effect_on(
                    group,
                    name,
                    len(snapshot.topics[name].partitions),
                    additions[name],
                    first,
                    last,
                    seconds,
                )
            ]
            if effect.readings or effect.members
        ]
        for name in growing
    }


def effect_on(
    group: Group,
    topic: str,
    present: int,
    added: Optional[Addition],
    first: Moment,
    last: Moment,
    seconds: float,
) -> GroupEffect:
    """What growth of a topic does to a group, from the offsets at two moments."""
    readings = {}
    before, after = first[0].get(group.name, {}), last[0].get(group.name, {})
    for key, end in last[1].items():
        if key[0] != topic or key not in after:
            continue
        written = read = None
        if seconds and key in before and key in first[1]:
            written = max(0, end - first[1][key]) / seconds
            read = max(0, after[key] - before[key]) / seconds
        readings[key] = Reading(max(0, end - after[key]), written, read)
    members = sum(member.reads(topic) for member in group.members)
    total = added.total if added else present
    return GroupEffect(group.name, members, readings, present, total, bool(seconds))


# ---------------------------------------------------------------- what is told


def topic_row(
    asked: Asked,
    snapshot: Snapshot,
    added: Optional[Addition],
    effects: Sequence[GroupEffect],
) -> Dict[str, Any]:
    """The advice for one topic."""
    topic = snapshot.topics.get(asked.name)
    present = len(topic.partitions) if topic else 0
    needed = None
    if asked.throughput is not None:
        needed = partitions_needed(
            asked.throughput, asked.partition_write, asked.consumer_read, asked.consumers
        )
    better = suggested(present, needed or 0, asked.keyed) if needed else None
    planned = added.total if added else present or None
    row: Dict[str, Any] = {
        "name": asked.name,
        "partitions": present or None,
        "planned": planned,
        "needed": needed,
        "suggested": better,
        "keys_moved": round(keys_moved(present, planned), 4) if present and planned else None,
        "keys_moved_suggested": (
            round(keys_moved(present, better), 4) if present and better else None
        ),
        "groups": [each.to_dict() for each in effects],
    }
    row["advice"] = _sentences(asked, row, effects)
    return row


def _sentences(asked: Asked, row: Mapping[str, Any], effects: Sequence[GroupEffect]) -> List[str]:
    """For people: what it needs, which keys move, what becomes of its groups."""
    found = []
    present, planned, needed, better = (
        row[key] for key in ("partitions", "planned", "needed", "suggested")
    )
    if needed:
        has = f"it has {present}" if present else "it is not there yet"
        found.append(f"the throughput needs {counted(needed, 'partition')}, {has}")
        if better and better != planned and better > (present or 0):
            moves = (
                f", which moves {format_share(row['keys_moved_suggested'])} of the keys"
                if present and asked.keyed
                else ""
            )
            found.append(f"{better} would do{moves}")
        if planned and planned < needed:
            found.append(f"{planned} are too few")
    if present and planned != present:
        if asked.keyed:
            found.append(
                f"from {present} to {planned}, {format_share(row['keys_moved'])} of the keys go to another "
                "partition: their records before and after are in no order"
            )
        else:
            found.append(f"from {present} to {planned}, without keys no order is lost")
        found.append(
            "consumers with auto.offset.reset=latest skip what is written to a new partition before they "
            "notice it (up to metadata.max.age.ms, 5 minutes)"
        )
    return [*found, *(each.sentence() for each in effects)]


def lines(
    load: Load,
    found: Sequence[Bound],
    guesses: Sequence[Estimate],
    rows: Sequence[Mapping[str, Any]],
    watched: Optional[Mapping[str, Any]],
) -> List[str]:
    """The tables for people."""
    told = [
        [
            each.level.upper() if each.level in ("near", "beyond") else each.level,
            each.found,
            each.planned,
            each.limit,
            each.name,
            each.where or "-",
            each.source,
        ]
        for each in found
    ]
    columns = ["LEVEL", "NOW", "PLANNED", "BOUND", "WHAT", "WORST", "SOURCE"]
    text = [
        f"{counted(load.partitions, 'partition')}, {counted(load.all_replicas, 'replica')} on "
        f"{counted(len(load.brokers), 'broker')}",
        "",
        *table(columns, told),
        "",
        "Estimated, not measured, at worst, once a broker dies uncleanly:",
        *table(
            ["SECONDS", "WHAT", "SOURCE"],
            [[f"{each.seconds:.3f}", each.name, each.source] for each in guesses],
        ),
        "",
        *(
            f"{each.short}, {each.year}: {each.name}."
            for each in dict.fromkeys(
                [*(each.source for each in found), *(each.source for each in guesses)]
            )
            if each.year
        ),
    ]
    if watched:
        text += ["", _watched_line(watched)]
    for row in rows:
        text += ["", f"{row['name']}:", *(f"  {sentence}" for sentence in row["advice"])]
    return text


def _watched_line(watched: Mapping[str, Any]) -> str:
    led = counted(watched["partitions"], "partition")
    if watched["seconds_last"] is None:
        return f"Measured: broker {watched['broker']} died, and none of its {led} has a leader yet"
    left = len(watched["without_leader"])
    return (
        f"Measured: broker {watched['broker']} died; of the {led} that it led the first had a leader after "
        f"{watched['seconds_first']:g} s, the last after {watched['seconds_last']:g} s"
        + (f", {left} have none yet" if left else "")
    )

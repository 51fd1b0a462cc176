# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading what consumer groups have read, and what becomes of the rest.

Private to this collection. Nothing here changes anything. Clock and sleep are the client's.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.client import (
    READ_RIGHTS,
    GroupsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.expiry import (
    CHECK_DEFAULT_MS,
    CHECK_KEY,
    NOT_TOLD,
    ROUNDS_MAX,
    Log,
    PrefixTimes,
    Retention,
    expiry,
    growth_of,
    retention_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.lag import (
    Row,
    group_dict,
    lag_lines,
    samples_of,
    trend,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.model import Group
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ranges import out_of_range
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import whole_number
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted, some

SAMPLE_MAX_SECONDS = 3600

# The module's own options; their documentation is in the module.
OPTIONS = dict(
    groups=dict(type="list", elements="str"),
    match=dict(type="str"),
    sample_seconds=dict(type="float", default=0.0),
)


def chooser(params: Mapping[str, Any]) -> Callable[[str], bool]:
    """Which groups are asked for; AdminError for a pattern that cannot be one."""
    if params["groups"] is not None:
        return set(params["groups"]).__contains__
    try:
        return re.compile(params["match"] or "").search  # type: ignore[return-value]
    except re.error as error:
        raise AdminError(
            Problem(
                "groups.pattern",
                f"not a regular expression, {error}",
                "correct it",
                setting="match",
                value=params["match"],
            )
        ) from error


def gather(params: Mapping[str, Any], client: GroupsClient) -> Dict[str, Any]:
    """Everything that kafka_consumer_groups_info returns, for its parameters; the client is connected."""
    seconds = params["sample_seconds"]
    if not 0 <= seconds <= SAMPLE_MAX_SECONDS:
        reason = f"must be between 0 and {SAMPLE_MAX_SECONDS}"
        raise out_of_range("sample_seconds", f"{seconds:g}", reason, "choose such a number")
    chosen = chooser(params)
    snapshot = client.fetch_metadata()
    # Who is named is asked for, and must be told.
    found = client.fetch_groups(chosen, denied_ok=params["groups"] is None)
    groups = [group for group in found if group.exists]
    samples, starts = _sample(client, snapshot, groups, seconds)
    rows = _rows(groups, samples, starts)
    rows = _with_expiry(client, snapshot, rows, samples, seconds)
    by_group: Dict[str, List[Row]] = {group.name: [] for group in groups}
    for row in rows:
        by_group[row.group].append(row)
    missing = sorted(set(params["groups"] or ()) - {group.name for group in groups})
    warnings = [
        f"{counted(len(client.denied), 'group')} may not be seen by this user, which needs {READ_RIGHTS}: "
        f"{some(client.denied)}"
    ][: len(client.denied)]
    warnings += [
        f"{name} is {client.left_out[name]}, which keeps no offsets as consumers do: it is left out"
        for name in missing
        if name in client.left_out
    ]
    return {
        "cluster_id": snapshot.cluster_id,
        "groups": [group_dict(group, by_group[group.name]) for group in groups],
        "missing": missing,
        "lines": lag_lines(groups, rows),
        "warnings": warnings,
    }


# One moment: what each group has committed, and where partitions end.
_Sample = Tuple[Mapping[str, Mapping[Key, int]], Mapping[Key, int]]


def _keys(snapshot: Snapshot, groups: Sequence[Group]) -> List[Key]:
    """Partitions with a leader that one of the groups reads."""
    read: Set[Key] = set()
    for group in groups:
        read.update(group.committed)
        for member in group.members:
            read.update(member.partitions)
    return sorted(read & snapshot.led)


def _sample(
    client: GroupsClient, snapshot: Snapshot, groups: Sequence[Group], seconds: float
) -> Tuple[List[_Sample], Dict[Key, int]]:
    """(the offsets at several moments, where each partition begins at the first one)."""
    keys = _keys(snapshot, groups)
    # Ends are read after what was committed: nobody is ahead of the end.
    starts, ends = client.fetch_both_ends(keys)
    samples: List[_Sample] = [({group.name: group.committed for group in groups}, ends)]
    count = samples_of(seconds)
    for _number in range(count - 1):
        client.pause(seconds / (count - 1))
        committed = client.fetch_committed([group.name for group in groups])
        samples.append((committed, client.fetch_both_ends(keys, first=False)[1]))
    if count > 1:
        starts = client.fetch_both_ends(keys)[0]
    return samples, starts


def _rows(
    groups: Sequence[Group], samples: Sequence[_Sample], starts: Mapping[Key, int]
) -> List[Row]:
    """Every partition that a group has read, or that one of its members has."""
    rows = []
    committed_now, ends = samples[-1]
    for group in groups:
        now = committed_now.get(group.name, {})
        held = {key for member in group.members for key in member.partitions}
        for key in sorted(set(now) | held):
            told = [
                (committed.get(group.name, {}).get(key), sample_ends[key])
                for committed, sample_ends in samples
                if key in sample_ends
            ]
            status = trend(told, key in held or group.reads_unseen)
            place = (now.get(key), starts.get(key), ends.get(key))
            rows.append(Row(group.name, key, *place, group.holder(key), status))
    return rows


def _with_expiry(
    client: GroupsClient,
    snapshot: Snapshot,
    rows: Sequence[Row],
    samples: Sequence[_Sample],
    seconds: float,
) -> List[Row]:
    """The rows with when their unread records are deleted; nothing more is asked where all is read."""
    behind = [row for row in rows if row.lag and row.start is not None]
    if not behind:
        return list(rows)
    retentions, check_ms = _retentions(client, snapshot, sorted({row.key[0] for row in behind}))
    none = Retention(none=NOT_TOLD)
    limits = {row.key: retentions.get(row.key[0], none) for row in behind}
    sized = sorted({key[0] for key, limit in limits.items() if limit.bytes is not None})
    sizes = client.fetch_sizes(sized)[0] if sized else {}
    wanted: Dict[Key, Set[int]] = {}
    for row in behind:
        if not limits[row.key].none:
            position = max(row.committed or 0, row.start or 0)
            wanted.setdefault(row.key, set()).add(position)
    times, oldest = _search_times(client, wanted, samples[-1][1])
    now_ms = client.now_ms()
    found = []
    for row in rows:
        if row.lag is None or row.committed is None or row.start is None or row.end is None:
            found.append(row)
            continue
        limit = limits.get(row.key, none)
        unread = times.of(row.key, max(row.committed, row.start)) if row.lag else None
        log = Log(row.start, row.end, oldest.get(row.key), sizes.get(row.key))
        log = replace(log, growth=growth_of(log, now_ms, samples[0][1].get(row.key), seconds))
        told = expiry(row.committed, log, limit, unread, now_ms, check_ms)
        found.append(replace(row, unread_ms=unread, expiry=told))
    return found


def _retentions(
    client: GroupsClient, snapshot: Snapshot, names: Sequence[str]
) -> Tuple[Dict[str, Retention], int]:
    """(the limits of topics in force, every how many ms the brokers look); what is denied is left out."""
    configs = client.fetch_configs(names, denied_ok=True)
    limits = {name: retention_of(Topic(name, (), config)) for name, config in configs.items()}
    settings = client.fetch_broker_config(snapshot.brokers[0].id) or {}
    told = settings.get(CHECK_KEY)
    check_ms = whole_number(told.value) if told else None
    return limits, CHECK_DEFAULT_MS if check_ms is None else check_ms


def _search_times(
    client: GroupsClient, wanted: Mapping[Key, Set[int]], ends: Mapping[Key, int]
) -> Tuple[PrefixTimes, Dict[Key, int]]:
    """(when the wanted offsets of partitions are deleted by, the timestamp of each first record)."""
    times = PrefixTimes(wanted)
    oldest = client.fetch_since(dict.fromkeys(wanted, 0))
    times.begin(oldest, client.fetch_newest(list(wanted)), ends)
    for _round in range(ROUNDS_MAX):
        asked = times.questions()
        if not asked:
            break
        times.learn(asked, client.fetch_since(asked))
    return times, {key: stamp for key, (_offset, stamp) in oldest.items() if stamp >= 0}

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which changed settings of a running broker need no restart, and how they are brought into effect. Pure.

Private to this collection. A broker takes some settings while it runs, as an override that beats its
file. The file has the same value for the next start; after that start the override is taken away.
Invariants:

* either everything that differs is changed in the running broker, or nothing is and it restarts;
* an override that somebody else has set is never changed and never taken away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import ConfigEntry
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import whole_number

# Thread pools. Kafka takes no value below half or above double of the current one.
POOLS = frozenset(
    (
        "background.threads",
        "log.cleaner.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
    )
)
# Besides these. Kafka allows more: listeners, certificates and logins, whose mistakes lock everybody out;
# what decides whether a record is safe (min.insync.replicas, unclean.leader.election.enable) and what the
# gate reads; classes. These change by a restart, one broker at a time, as they are tried at the first.
# A shorter log.retention is here: it comes this far with consent only (preflight/in_force.py), and by a
# restart it would delete the same records.
LIMITS = frozenset(
    (
        "compression.type",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.delete.retention.ms",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.max.compaction.lag.ms",
        "log.cleaner.min.cleanable.ratio",
        "log.cleaner.min.compaction.lag.ms",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.index.interval.bytes",
        "log.index.size.max.bytes",
        "log.preallocate",
        "log.retention.bytes",
        "log.retention.ms",
        "log.roll.jitter.ms",
        "log.roll.ms",
        "log.segment.bytes",
        "log.segment.delete.delay.ms",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "message.max.bytes",
    )
)
MODES = ("per-broker", "cluster-wide")
# Where an entry comes from, as client_kafka names it: this broker's own override, that of all brokers.
BROKER, CLUSTER = "broker", "cluster"
# Never longer: from 1 to the largest number of threads.
STEPS_MAX = 32

Table = Mapping[str, Mapping[str, Any]]
Entries = Mapping[str, ConfigEntry]
# key -> value; None takes the override away
Step = Dict[str, Optional[str]]


@dataclass(frozen=True)
class Own:
    """An override that we have set: the values that it may have, and the one in the file that the broker has read."""

    values: Tuple[str, ...]
    file: Optional[str] = None


@dataclass(frozen=True)
class Asked:
    """What one broker is to have. `settings`: key -> (what it has read at its start, what it is to have)."""

    broker: int
    settings: Mapping[str, Tuple[Optional[str], Optional[str]]] = field(default_factory=dict)
    own: Mapping[str, Own] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """What is done to one broker.

    `steps`: requests one after the other; `own`: our overrides afterwards; `before`, `after`: the values
    of what changes, None where there is no override of ours; `reasons`: why it cannot be done without
    a restart. With reasons there are no steps.
    """

    broker: int
    steps: Tuple[Step, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, Optional[str]] = field(default_factory=dict)
    after: Mapping[str, Optional[str]] = field(default_factory=dict)
    reasons: Tuple[str, ...] = ()

    @property
    def live(self) -> bool:
        """Whether it needs no restart."""
        return not self.reasons


def decide(asked: Asked, entries: Entries, table: Table) -> Decision:
    """Return the Decision for a broker whose settings in effect are `entries`.

    `table`: key -> {type, default, update_mode ...} of the broker's version.
    """
    reasons: List[str] = []
    paths: Dict[str, Tuple[Optional[str], ...]] = {}
    own: Dict[str, str] = {}
    for key, (_before, after) in sorted(asked.settings.items()):
        entry, about = entries.get(key), table.get(key, {})
        wanted = after if after is not None else _default(about)
        why_not = _why_not(key, wanted, entry, about, asked.own.get(key))
        if why_not or wanted is None or entry is None:
            reasons.append(f"{key}: {why_not}")
            continue
        own[key] = wanted
        if entry.source != BROKER or not same_value(key, wanted, entry.value):
            paths[key] = (wanted,)
    for key, mine in sorted(asked.own.items()):
        entry = entries.get(key)
        if key in asked.settings or not _is_ours(key, entry, mine):
            continue
        paths[key] = _way_back(key, entry, mine.file or _default(table.get(key, {})))
    if reasons:
        return Decision(asked.broker, reasons=tuple(reasons))
    steps: List[Step] = [{} for dummy in range(max(map(len, paths.values()), default=0))]
    for key, path in paths.items():
        for step, value in zip(steps, path):
            step[key] = value
    return Decision(
        asked.broker,
        tuple(steps),
        own,
        {key: entries[key].value for key in paths},
        {key: path[-1] for key, path in paths.items()},
    )


def left_by_another(file: Mapping[str, str]) -> Dict[str, Dict[str, Any]]:
    """What may be left of overrides of ours where the note of them went with the disk: key -> {values, file}.

    `file`: the settings that the broker has read at its start. Our overrides have the value of the file, so
    that only one with this value is taken away, which changes nothing that is in effect.
    """
    return {
        key: {"values": [value], "file": value}
        for key, value in sorted(file.items())
        if key in POOLS or key in LIMITS
    }


def unmet(step: Step, entries: Entries) -> List[str]:
    """Return the keys of a step that are not in effect yet."""
    return [key for key, value in sorted(step.items()) if not _took(key, value, entries.get(key))]


def _took(key: str, value: Optional[str], entry: Optional[ConfigEntry]) -> bool:
    if value is None:
        return entry is None or entry.source != BROKER
    return entry is not None and entry.source == BROKER and same_value(key, value, entry.value)


def _default(about: Mapping[str, Any]) -> Optional[str]:
    """Kafka's default for a key that the file does not have; None where it depends on other keys."""
    text = about.get("default")
    return None if text in (None, "null", '""') else str(text)


def _why_not(
    key: str,
    wanted: Optional[str],
    entry: Optional[ConfigEntry],
    about: Mapping[str, Any],
    mine: Optional[Own],
) -> str:
    """Return why a setting is not changed in a running broker; "" if it can be."""
    if about.get("update_mode") not in MODES:
        return "Kafka reads it only at its start"
    if key not in POOLS and key not in LIMITS:
        return "it is changed only by a restart, one broker at a time"
    if wanted is None:
        return "without it the value depends on other keys"
    if entry is None or entry.sensitive:
        return "the broker does not tell its value"
    if entry.source == CLUSTER:
        return f"an override of all brokers, {entry.value}, was set by somebody else"
    if entry.source == BROKER and not _is_ours(key, entry, mine):
        return f"an override, {entry.value}, was set by somebody else"
    if key in POOLS:
        return _too_far(entry.value, wanted)
    return ""


def _is_ours(key: str, entry: Optional[ConfigEntry], mine: Optional[Own]) -> bool:
    if entry is None or entry.source != BROKER or mine is None:
        return False
    return any(same_value(key, value, entry.value) for value in mine.values)


def _too_far(current: Optional[str], wanted: str) -> str:
    have, want = whole_number(current), whole_number(wanted)
    if have is None or want is None:
        return "it is not a number"
    if have // 2 <= want <= have * 2 and want > 0:
        return ""
    return f"a running broker goes from {have} to no less than half and no more than double"


def _way_back(
    key: str, entry: Optional[ConfigEntry], file: Optional[str]
) -> Tuple[Optional[str], ...]:
    """Return the values by which an override is taken away: Kafka checks a pool's last change, too."""
    have, want = whole_number(entry.value if entry else None), whole_number(file)
    path: List[Optional[str]] = []
    if key in POOLS and have and want:
        while not have // 2 <= want <= have * 2 and len(path) < STEPS_MAX:
            have = have * 2 if want > have else (have + 1) // 2
            path.append(str(have))
    return (*path, None)

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a topic's settings that can delete or endanger records, and the consent that each needs.

Private to this collection. Pure. Where a default is not known it counts as the more dangerous value.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, Mapping, NamedTuple, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Stake, Topic
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    approximate_size,
    format_duration_ms,
    format_size_bytes,
    whole_number,
)

# What a task can consent to.
PARTITION_GROWTH = "partition_growth"
RETENTION_CUT = "retention_cut"
CLEANUP_CHANGE = "cleanup_change"
UNCLEAN_ELECTION = "unclean_election"
MIN_INSYNC_CUT = "min_insync_cut"
DELETION = "delete"
CONSENTS = (
    PARTITION_GROWTH,
    RETENTION_CUT,
    CLEANUP_CHANGE,
    UNCLEAN_ELECTION,
    MIN_INSYNC_CUT,
    DELETION,
)
_UNKNOWN_DEFAULT = "the brokers' default, which is not known"


class Danger(NamedTuple):
    """A change of settings that can delete or endanger records, and the consent it needs."""

    check: str
    consent: str
    key: str
    sentence: str


def dangers(
    topic: Topic, after: Mapping[str, Optional[str]], stake: Optional[Stake] = None
) -> Iterator[Danger]:
    """Every danger of a change of settings; nothing for the way back to a safer value.

    A setting that falls back to a default which is not known counts as the more dangerous value.
    """
    for key, old, new in retention_cuts(topic, after):
        limits = [_limit(key, value) for value in (old, new)]
        loss = describe_stake(stake, whole=False)
        yield Danger(
            "retention.cut",
            RETENTION_CUT,
            key,
            f"{key} down from {limits[0]} to {limits[1]}{loss and f': {loss} would be deleted'}",
        )
    yield from _compaction_dangers(topic, after, stake)
    yield from _clock_dangers(topic, after, stake)
    yield from _remote_dangers(topic, after, stake)
    yield from _cleanup_dangers(topic, after, stake)
    key = "unclean.leader.election.enable"
    if (
        key in after
        and topic.effective(key) != "true"
        and effective_after(topic, after, key) != "false"
    ):
        yield Danger(
            "unclean.election",
            UNCLEAN_ELECTION,
            key,
            "when no in-sync replica is left, one that lags behind becomes the leader, and the "
            f"records that it lacks are lost{in_parentheses(stake)}",
        )
    key = "min.insync.replicas"
    if key in after:
        before, now = whole_number(topic.effective(key)), whole_number(
            effective_after(topic, after, key)
        )
        if now is None or before is None or now < before:
            copies = "fewer brokers" if now is None else f"{now} broker{'s' if now > 1 else ''}"
            yield Danger(
                "min_insync.cut",
                MIN_INSYNC_CUT,
                key,
                f"down from {before or 'an unknown value'} to {now or _UNKNOWN_DEFAULT}: a record "
                f"acknowledged with acks=all may be on {copies} only, and is lost if they are"
                f"{in_parentheses(stake)}",
            )


# What compaction leaves alone for a time, and what is gone once it does not.
_COMPACTION = {
    "delete.retention.ms": "a consumer that begins later no longer learns that a key was deleted",
    "min.compaction.lag.ms": "older records of a key go sooner, also those that nobody has read yet",
}


def _compaction_dangers(
    topic: Topic, after: Mapping[str, Optional[str]], stake: Optional[Stake]
) -> Iterator[Danger]:
    """Records that a compacted topic keeps for a shorter time."""
    if not _has_policy(topic, after, "compact"):
        return
    for key, effect in _COMPACTION.items():
        if key not in after:
            continue
        old, new = topic.effective(key), effective_after(topic, after, key)
        if whole_number(new) is None or _retained(new) < _retained(old):
            limits = [_limit(key, value) for value in (old, new)]
            yield Danger(
                "retention.cut",
                RETENTION_CUT,
                key,
                f"{key} down from {limits[0]} to {limits[1]}: {effect}{in_parentheses(stake)}",
            )


def _clock_dangers(
    topic: Topic, after: Mapping[str, Optional[str]], stake: Optional[Stake]
) -> Iterator[Danger]:
    """Another clock that the age of records counts by, where age deletes."""
    key = "message.timestamp.type"
    if key not in after or not _has_policy(topic, after, "delete"):
        return
    limit = whole_number(effective_after(topic, after, "retention.ms"))
    if limit is not None and limit < 0:
        return
    old, new = topic.effective(key), effective_after(topic, after, key)
    if new is not None and old is not None and new.lower() == old.lower():
        return
    effects = {
        "createtime": "age counts from the time that a producer writes, and a record that says an "
        "early one is deleted at once",
        "logappendtime": "age counts from the arrival at the broker, which replaces the time that "
        "a producer writes",
    }
    effect = effects.get((new or "").lower(), "age counts by another clock")
    yield Danger(
        "retention.cut",
        RETENTION_CUT,
        key,
        f"{key} from {old or 'an unknown value'} to {new or _UNKNOWN_DEFAULT}: {effect}"
        f"{in_parentheses(stake)}",
    )


def _remote_dangers(
    topic: Topic, after: Mapping[str, Optional[str]], stake: Optional[Stake]
) -> Iterator[Danger]:
    """What lies in the remote storage; without remote.log.delete.on.disable Kafka refuses the change."""
    key = "remote.storage.enable"
    if key not in after or topic.effective(key) != "true":
        return
    if effective_after(topic, after, key) != "true":
        yield Danger(
            "retention.cut",
            RETENTION_CUT,
            key,
            "what lies in the remote storage is deleted, and the topic begins with what the "
            f"brokers have on their disks{in_parentheses(stake)}",
        )


def _cleanup_dangers(
    topic: Topic, after: Mapping[str, Optional[str]], stake: Optional[Stake]
) -> Iterator[Danger]:
    """Records that nothing deleted so far become deletable: by age, or by a newer record."""
    key = "cleanup.policy"
    gained = gained_policies(topic, after)
    if not gained:
        return
    new = effective_after(topic, after, key) or _UNKNOWN_DEFAULT
    effects = []
    if "delete" in gained:
        loss = describe_stake(stake, whole=False)
        effects.append(
            f"the last record of each key becomes deletable by age{loss and f', {loss} at once'}"
        )
    if "compact" in gained:
        total = describe_stake(stake, whole=True)
        effects.append(
            f"{total and f'of {total} '}only the newest record of each key remains, and records "
            "without a key are refused from then on"
        )
    yield Danger(
        "cleanup.change",
        CLEANUP_CHANGE,
        key,
        f"{key} from {topic.effective(key) or 'an unknown value'} to {new}: {'; '.join(effects)}",
    )


def retention_cuts(
    topic: Topic, after: Mapping[str, Optional[str]]
) -> Iterator[Tuple[str, Optional[str], Optional[str]]]:
    """(key, old, new) of the limits that become tighter, where age or size deletes at all."""
    if not _has_policy(topic, after, "delete"):
        return
    for key in ("retention.ms", "retention.bytes"):
        if key not in after:
            continue
        old, new = topic.effective(key), effective_after(topic, after, key)
        if whole_number(new) is None or _retained(new) < _retained(old):
            yield key, old, new


def _has_policy(topic: Topic, after: Mapping[str, Optional[str]], policy: str) -> bool:
    """Whether a way of deletion is in effect afterwards; one that is not known counts as both."""
    policies = effective_after(topic, after, "cleanup.policy")
    return policies is None or policy in _policies(policies)


def _retained(value: Optional[str]) -> float:
    """A limit as a number that compares; none, or an unknown one, is endless."""
    number = whole_number(value)
    return float("inf") if number is None or number < 0 else number


def _limit(key: str, value: Optional[str]) -> str:
    """A limit for sentences."""
    number = whole_number(value)
    if number is None:
        return _UNKNOWN_DEFAULT
    return format_duration_ms(number) if key.endswith(".ms") else format_size_bytes(number)


def _policies(value: Optional[str]) -> FrozenSet[str]:
    return frozenset(part for part in (value or "").split(",") if part)


def gained_policies(topic: Topic, after: Mapping[str, Optional[str]]) -> FrozenSet[str]:
    """The ways of deletion that a change of cleanup.policy adds."""
    if "cleanup.policy" not in after:
        return frozenset()
    new = effective_after(topic, after, "cleanup.policy")
    possible = frozenset(("compact", "delete")) if new is None else _policies(new)
    return possible - _policies(topic.effective("cleanup.policy"))


def effective_after(topic: Topic, after: Mapping[str, Optional[str]], key: str) -> Optional[str]:
    """The effective value of a key once `after` is applied; None if it cannot be known."""
    if key not in after:
        return topic.effective(key)
    if after[key] is not None:
        return after[key]
    entry = (topic.config or {}).get(key)
    return entry.fallback if entry else None


def in_parentheses(stake: Optional[Stake]) -> str:
    """All records of the topic, in parentheses, for the end of a sentence."""
    total = describe_stake(stake, whole=True)
    return f" ({total} in it)" if total else ""


def describe_stake(stake: Optional[Stake], whole: bool) -> str:
    """`1234 records and about 1.2 MiB on disk` for sentences; empty if nothing was asked.

    `whole`: all records of the topic, not only those that a tighter limit deletes.
    """
    if stake is None:
        return ""
    records = stake.total_records if whole else stake.records
    size = stake.total_bytes if whole else stake.bytes
    parts = []
    if records is not None:
        parts.append(_records(records))
    elif stake.total_records is not None:
        parts.append(f"up to {_records(stake.total_records)}")
    if size is not None:
        parts.append(f"{'' if whole else 'about '}{approximate_size(size)} on disk")
    text = " and ".join(parts)
    if stake.unknown:
        text = f"{text} ({stake.unknown})" if text else f"records ({stake.unknown})"
    return text


def _records(count: int) -> str:
    return f"{count} record{'' if count == 1 else 's'}"

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What somebody else's topic deletes by its own settings before it is judged: no broker's fault, and no proof.

A topic that the run creates keeps everything. Of another one the first records of the run may be gone
because they are older than its retention, or because it has grown. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Dict, Iterable, List, Mapping, Optional

from flow.record.ledger import Row
from flow.record.partition import Partition
from flow.record.schema import ACKED
from flow.record.timing import APPENDED, CREATED

RETENTION_MS, RETENTION_BYTES, POLICY = "retention.ms", "retention.bytes", "cleanup.policy"
SETTINGS = (RETENTION_MS, RETENTION_BYTES)
TIERED = "remote.storage.enable"
LETTING_GO = (POLICY, *SETTINGS)  # by which a topic lets go of records
# Checks that fail where a topic forgets, by its settings, records that stand between others.
OF_FORGETTING = ("loss", "gap", "atomicity", "continuity", "emptiness")
LONGEST_TRANSACTION = "transaction.max.timeout.ms"
LOOKS_FOR_TRANSACTIONS = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
OFFSETS_MINUTES = "offsets.retention.minutes"
_LEAST_OFFSETS_MINUTES = 1  # that brokers allow
_NEARLY = 0.9  # of what a partition may have
_CLOCKS_SECONDS = 5.0  # by which brokers' clocks may be ahead of each other
# The same, of that of the machine that ran the job, which the collection does not look after.
_STRANGERS_SECONDS = 86_400.0


def reasons(
    settings: Mapping[str, str],
    age_seconds: float,
    partitions: Iterable[int],
    sizes: Optional[Mapping[int, int]],
    was: Mapping[str, str] = MappingProxyType({}),
    stamped: str = APPENDED,
) -> Dict[int, str]:
    """partition -> setting by which it may have deleted records of this age, as `name=value`, of those of
    which there is one.

    sizes: partition -> bytes that it has now, None where nobody could say. A partition that has deleted by
    its size is left with at least as much as it may have. was: the settings when the run wrote; where they
    have been others since, nobody knows what they were meanwhile. stamped: the topic's message.timestamp.type when
    it wrote. Of producers' timestamps brokers tell the age by another clock than those have, and no request asks them
    what it says: what would have been deleted too early by the one may have been due by the other.
    """
    if told := changed(was, settings):
        return dict.fromkeys(partitions, told)
    limit = int(settings.get(RETENTION_MS) or -1)
    early = limit / 1000 - age_seconds
    if limit >= 0 and early <= _CLOCKS_SECONDS:
        return dict.fromkeys(partitions, f"{RETENTION_MS}={limit}")
    if limit >= 0 and stamped == CREATED and early <= _STRANGERS_SECONDS:
        ahead = f"if a broker's clock is {early:,.0f} s ahead of the job's: see that they agree"
        return dict.fromkeys(partitions, f"{RETENTION_MS}={limit} ({ahead})")
    most = int(settings.get(RETENTION_BYTES) or -1)
    if most < 0:
        return {}
    why = f"{RETENTION_BYTES}={most}"
    return {
        number: why
        for number in partitions
        if sizes is None or sizes.get(number, most) >= most * _NEARLY
    }


def changed(was: Mapping[str, str], now: Mapping[str, str]) -> str:
    """The settings of SETTINGS that are not as they were when the run wrote, in words; "" if all are. `was`
    may lack them: a ledger of an older version does not know.
    """
    told = [
        f"{name}={now[name]}, which was {was[name]} when they were written,"
        for name in SETTINGS
        if name in was and name in now and was[name] != now[name]
    ]
    return " and ".join(told)


def forgets(settings: Mapping[str, str]) -> bool:
    """Whether a topic with these settings throws away records that stand between others."""
    return "compact" in settings.get(POLICY, "")


def begins_later(first: Mapping[int, int], now: Mapping[int, Partition]) -> Dict[int, int]:
    """partition -> first offset that is there now, where it lies behind what was to be the `first`."""
    return {n: now[n].start for n, at in first.items() if n in now and now[n].start > at}


def left(rows: Iterable[Row], begins: Mapping[int, int]) -> List[Row]:
    """The ledger's rows without what was acknowledged before the first offset of `begins_later`."""
    kept = []
    for row in rows:
        at = row.first_offset or 0
        gone = begins.get(row.partition, 0) - at if row.outcome == ACKED else 0
        if gone <= 0:
            kept.append(row)
        elif gone < row.records:
            sequence = row.first_sequence + gone
            kept.append(replace(row, first_offset=at + gone, first_sequence=sequence))
    return kept


def offsets_forgotten(brokers: Mapping[int, Mapping[str, str]], age_seconds: float) -> bool:
    """Whether brokers may have forgotten by now what a group without members committed so long ago.

    brokers: broker -> its settings, of those that told them. Where none has, as to a principal that may not
    ask, it may be any time that there can be.
    """
    told = [int(each[OFFSETS_MINUTES]) for each in brokers.values() if OFFSETS_MINUTES in each]
    minutes = min(told, default=_LEAST_OFFSETS_MINUTES)
    return age_seconds + _CLOCKS_SECONDS >= minutes * 60

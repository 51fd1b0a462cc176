# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""A topic's settings as each broker applies them.

Where a topic has none of its own it has what the broker's own file says, and files may differ: it is the leader's
value that counts, of writes, of timestamps and of what expires. Pure.
"""

from __future__ import annotations

from typing import Collection, Dict, List, Mapping

from flow.prepare.cluster import MIN_ISR
from flow.record.partition import Partition


def holders(partitions: Mapping[int, Partition], registered: Collection[int]) -> List[int]:
    """The brokers that hold replicas of these partitions, and are there."""
    held = {broker for place in partitions.values() for broker in place.replicas}
    return sorted(held & set(registered))


def agreed(config: Mapping[str, str], applied: Mapping[int, Mapping[str, str]]) -> Dict[str, str]:
    """`config`, which one broker has told, with the values that all brokers of `applied` have; of
    min.insync.replicas with the least.
    """
    found = dict(config)
    for name in config:
        values = {each[name] for each in applied.values() if name in each}
        if len(values) == 1:
            found.update({name: values.pop()})
    least = min(numbers(applied, MIN_ISR).values(), default=None)
    return found if least is None else {**found, MIN_ISR: str(least)}


def numbers(applied: Mapping[int, Mapping[str, str]], name: str) -> Dict[int, int]:
    """broker -> value of a setting that is a number, of those that have told it."""
    return {broker: int(each[name]) for broker, each in applied.items() if each.get(name)}


def differing(applied: Mapping[int, Mapping[str, str]], name: str) -> str:
    """Who applies which value, in words; "" where all apply the same."""
    alike: Dict[str, List[int]] = {}
    for broker, each in sorted(applied.items()):
        if name in each:
            alike.setdefault(each[name], []).append(broker)
    if len(alike) < 2:
        return ""
    return ", ".join(f"{value} at {named(brokers)}" for value, brokers in alike.items())


def named(brokers: Collection[int]) -> str:
    """`broker 1`, or `brokers 1, 2`."""
    return f"broker{'s' * (len(brokers) > 1)} {', '.join(map(str, sorted(brokers)))}"


def when_planned(cluster: Mapping) -> Dict[int, Dict[str, str]]:
    """broker -> settings when the run was planned, by its `cluster` (surroundings.told); of an older version's
    ledger none.
    """
    brokers = cluster.get("brokers", [])
    return {
        each["broker"]: each["topic_settings"] for each in brokers if each.get("topic_settings")
    }

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether records that a group has not had are in the topic all the same: they are late then, and not lost.

Private to this collection.
"""

from __future__ import annotations

import contextlib
from typing import Dict, FrozenSet, Iterable, Mapping, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    Settings,
    record_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    GroupSeen,
    group_seen,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

try:
    from confluent_kafka import Consumer, KafkaException, TopicPartition
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

AT_ONCE = 1000


def records_there(
    settings: Settings, topic: str, partitions: int, wanted: Iterable[str]
) -> FrozenSet[str]:
    """Which of these records are in the topic, read without a group; those that could be read in time."""
    missing, found = set(wanted), set()
    if not missing:
        return frozenset()
    # the id is for the rights alone: nothing is committed, and there is no such group
    consumer = Consumer({**settings, "group.id": topic, "enable.auto.commit": False})
    ends: Dict[int, int] = {}
    # what could not be read is not known to be there
    with contextlib.closing(consumer), contextlib.suppress(KafkaException):
        places = []
        for number in range(partitions):
            place = TopicPartition(topic, number)
            low, high = consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS)
            if low < high:
                ends[number] = high
                places.append(TopicPartition(topic, number, low))
        consumer.assign(places)

        def over() -> bool:
            for message in consumer.consume(AT_ONCE, 0.5):
                if not message.error():
                    found.add(record_of(message.value()))
                    number, offset = message.partition() or 0, message.offset() or 0
                    if offset + 1 >= ends.get(number, 0):
                        ends.pop(number, None)
            return missing <= found or not ends

        wait_until(over, ANSWER_SECONDS, poll_seconds=0.0)
    return frozenset(missing & found)


def groups_seen(
    settings: Settings,
    topic: str,
    partitions: int,
    acknowledged: Mapping[str, int],
    came: Mapping[str, Sequence[Tuple[str, int]]],
) -> Tuple[GroupSeen, ...]:
    """What came to each group, as of `group_seen`; for what did not, the topic is read while it is still there."""
    wanted: Set[str] = set()
    for pairs in came.values():
        wanted |= set(acknowledged) - {record for record, _at in pairs}
    there = records_there(settings, topic, partitions, wanted)
    return tuple(group_seen(name, acknowledged, pairs, there) for name, pairs in came.items())

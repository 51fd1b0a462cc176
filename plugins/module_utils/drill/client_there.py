# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether records that a group has not had are in the topic all the same: they are late then, and not lost.

Private to this collection.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, Iterable, Mapping, Sequence, Set, Tuple

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
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

AT_ONCE = 1000
_ALONE: Dict[str, Any] = {"enable.auto.commit": False, "enable.partition.eof": True}


@dataclass(frozen=True)
class There:
    """Records that a topic has. `whole`: what was wanted and is not among them is not there; else nobody knows."""

    records: FrozenSet[str]
    whole: bool = True


def records_there(
    settings: Settings, topic: str, partitions: int, wanted: Iterable[str], group: str = ""
) -> There:
    """Which of these records are in the topic, as far as it could be read in time.

    `group`: only beyond what this group has committed, so those that it has before it still.
    """
    missing, found = set(wanted), set()
    if not missing:
        return There(frozenset())
    # the id is for the rights and for what is committed: nobody joins, and nothing is committed here
    consumer = Consumer({**settings, "group.id": group or topic, **_ALONE})
    # where each partition that is not yet read to its end has it
    ends: Dict[int, int] = {}
    whole = False

    def over() -> bool:
        for message in consumer.consume(AT_ONCE, 0.5):
            number, offset = message.partition() or 0, message.offset() or 0
            error = message.error()
            if error is None:
                found.add(record_of(message.value()))
            at_end = error is not None and error.code() == KafkaError._PARTITION_EOF
            if at_end or (error is None and offset + 1 >= ends.get(number, 0)):
                ends.pop(number, None)
        return missing <= found or not ends

    # of what could not be read nobody knows whether it is there
    with contextlib.closing(consumer), contextlib.suppress(KafkaException):
        places = [TopicPartition(topic, number) for number in range(partitions)]
        begun = {}
        if group:
            committed = consumer.committed(places, timeout=ANSWER_SECONDS)
            begun = {each.partition: each.offset for each in committed if each.offset >= 0}
        to_read = []
        for place in places:
            low, high = consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS)
            low = max(low, begun.get(place.partition, low))
            if low < high:
                ends[place.partition] = high
                to_read.append(TopicPartition(topic, place.partition, low))
        consumer.assign(to_read)
        whole = wait_until(over, ANSWER_SECONDS, poll_seconds=0.0)
    return There(frozenset(missing & found), whole)


def groups_seen(
    settings: Settings,
    topic: str,
    partitions: int,
    acknowledged: Mapping[str, int],
    came: Mapping[str, Sequence[Tuple[str, int]]],
    still_to_come: bool = False,
) -> Tuple[GroupSeen, ...]:
    """What came to each group, as of `group_seen`; for what did not, the topic is read while it is still there.

    `still_to_come`: late is only what the group has not committed yet; what it has left behind is lost to it.
    """

    def absent(pairs: Sequence[Tuple[str, int]]) -> Set[str]:
        return set(acknowledged) - {record for record, _at in pairs}

    if still_to_come:
        there = {
            name: records_there(settings, topic, partitions, absent(pairs), name)
            for name, pairs in came.items()
        }
    else:
        wanted = set().union(*map(absent, came.values()))
        there = dict.fromkeys(came, records_there(settings, topic, partitions, wanted))
    return tuple(
        group_seen(name, acknowledged, pairs, there[name].records, there[name].whole)
        for name, pairs in came.items()
    )

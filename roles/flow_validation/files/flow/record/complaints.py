# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What the producers complained of, and which of it says why a record was not acknowledged. Pure."""

from __future__ import annotations

from typing import Iterable, Mapping

from flow.record import own_names
from flow.record.ledger import Attempt

# What the client says of the rest when something else has ended it, or its transaction.
_CONSEQUENCES = frozenset("_PURGE_QUEUE _PURGE_INFLIGHT _FATAL _STATE INVALID_TXN_STATE".split())
_RIGHTS = {
    "TOPIC_AUTHORIZATION_FAILED": "Write and Describe on topic {topic}",
    # of what gives an idempotent producer its id, before the first record
    "CLUSTER_AUTHORIZATION_FAILED": "Write on topic {topic}, and before Kafka 2.8 IdempotentWrite on the cluster",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "Write and Describe on the transactional ids {prefix}-*",
}


def errors(attempts: Iterable[Attempt]) -> dict:
    """What the clients complained about: error name -> times, over all attempts."""
    total: dict = {}
    for attempt in attempts:
        for name, count in attempt.errors.items():
            total[name] = total.get(name, 0) + count
    return total


def cause(complaints: Mapping[str, int]) -> str:
    """The error that says most of why records were not acknowledged, by error name -> times; "" if there is none.

    A missing right, however rare: the client hears of it once and gives up. Then the most frequent one that does not
    only follow from another.
    """

    def weight(name: str) -> tuple:
        return name in _RIGHTS, name not in _CONSEQUENCES, complaints[name], name

    return max(complaints, key=weight, default="")


def missing_right(error: str, topic: str) -> str:
    """The rights of which this error says that one is missing, in Kafka's words; "" if it is another one's."""
    return _RIGHTS.get(error, "").format(topic=topic, prefix=own_names.PREFIX)

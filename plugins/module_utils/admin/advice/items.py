# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topics about which advice is asked for: read from options. Pure.

Private to this collection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Topic
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import did_you_mean
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    reason_and_remedy,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import parse_size_bytes

# One item of the option `topics`; documented in the module.
ADVICE_ITEM = dict(
    name=dict(type="str", required=True),
    partitions=dict(type="int"),
    replication_factor=dict(type="int"),
    throughput=dict(type="str"),
    partition_write=dict(type="str", default="10MiB"),
    consumer_read=dict(type="str"),
    consumers=dict(type="int", default=0),
    keyed=dict(type="bool", default=True),
)


@dataclass(frozen=True)
class Asked:
    """One topic. Throughputs are bytes a second; None where they are not given."""

    name: str
    partitions: Optional[int] = None
    replication_factor: Optional[int] = None
    throughput: Optional[int] = None
    partition_write: int = 10 * 2**20
    consumer_read: Optional[int] = None
    consumers: int = 0
    keyed: bool = True


@dataclass(frozen=True)
class Addition:
    """Partitions that a topic would get: so many, each with so many replicas."""

    topic: str
    partitions: int
    replicas: int
    total: int


def _refused(name: str, setting: str, value: Any, reason: str, remedy: str) -> AdminError:
    return AdminError(Problem("advice.bad_item", reason, remedy, (name,), setting, value))


def parse_asked(items: Sequence[Mapping[str, Any]]) -> Tuple[Asked, ...]:
    """The topics in the order given; AdminError for the first thing that is wrong."""
    found: List[Asked] = []
    for item in items:
        name = str(item["name"])
        if any(each.name == name for each in found):
            raise _refused(name, "name", name, "the topic is listed twice", "keep one of the two")
        rates: Dict[str, Optional[int]] = {}
        for key in ("throughput", "partition_write", "consumer_read"):
            rates[key] = None
            if item[key] is not None:
                try:
                    rates[key] = parse_size_bytes(item[key])
                except ValueError as error:
                    told = reason_and_remedy(error, "correct it")
                    raise _refused(name, key, item[key], *told) from error
                if (rates[key] or 0) <= 0:
                    reason = "a throughput is more than nothing, and not unlimited"
                    raise _refused(name, key, item[key], reason, "give bytes a second, as 50MiB")
        for key, least in (("partitions", 1), ("replication_factor", 1), ("consumers", 0)):
            if item[key] is not None and item[key] < least:
                raise _refused(name, key, item[key], f"it is at least {least}", "correct it")
        found.append(
            Asked(
                name,
                item["partitions"],
                item["replication_factor"],
                rates["throughput"],
                rates["partition_write"] or 10 * 2**20,
                rates["consumer_read"],
                item["consumers"],
                item["keyed"],
            )
        )
    return tuple(found)


def addition(
    asked: Asked, topic: Optional[Topic], names: Sequence[str], brokers: int
) -> Optional[Addition]:
    """What the topic would get; None for nothing. AdminError for what no cluster could do."""
    present = len(topic.partitions) if topic else 0
    if asked.partitions is None:
        if topic is None and asked.throughput is None:
            reason = f"there is no such topic{did_you_mean(asked.name, names)}"
            remedy = "correct the name, or give partitions or throughput of the one to come"
            raise _refused(asked.name, "name", asked.name, reason, remedy)
        return None
    if asked.partitions < present:
        reason = f"the topic has {present}, and Kafka takes none away"
        remedy = "ask about more, or about another topic to which the records are copied"
        raise _refused(asked.name, "partitions", asked.partitions, reason, remedy)
    replicas = asked.replication_factor
    if topic is not None:
        replicas = max(topic.replication_factors, default=1)
    replicas = replicas or min(3, brokers)
    if replicas > brokers:
        reason = f"only {brokers} brokers are alive"
        raise _refused(
            asked.name, "replication_factor", replicas, reason, "start the others, or give less"
        )
    if asked.partitions == present:
        return None
    return Addition(asked.name, asked.partitions - present, replicas, asked.partitions)

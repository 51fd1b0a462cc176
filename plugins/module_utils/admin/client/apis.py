# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Kafka has which request: the one table, and the words for one that brokers do not have. Pure.

Private to this collection. librdkafka names API and version itself; this is for kafka-python, which names
the API.
"""

from __future__ import annotations

import re
from typing import Mapping, Optional, Tuple

# API: (version of its messages, first Kafka that has it), ascending. Only what our modules send.
SINCE: Mapping[str, Tuple[Tuple[int, str], ...]] = {
    "AddRaftVoter": ((0, "4.0"), (1, "4.2")),
    "AlterClientQuotas": ((0, "2.6"), (1, "2.8")),
    "AlterPartitionReassignments": ((0, "2.4"), (1, "4.1")),
    "AlterReplicaLogDirs": ((0, "1.0"), (1, "2.0"), (2, "2.8")),
    "ApiVersions": ((0, "0.10.0"), (1, "0.11"), (2, "2.0"), (3, "2.4"), (4, "3.9")),
    "CreateAcls": ((0, "0.11"), (1, "2.0"), (2, "2.5"), (3, "3.3")),
    "DeleteAcls": ((0, "0.11"), (1, "2.0"), (2, "2.5"), (3, "3.3")),
    "DeleteGroups": ((0, "1.1"), (1, "2.0"), (2, "2.4")),
    "DescribeAcls": ((0, "0.11"), (1, "2.0"), (2, "2.5"), (3, "3.3")),
    "DescribeClientQuotas": ((0, "2.6"), (1, "2.8")),
    "DescribeConfigs": ((0, "0.11"), (1, "1.1"), (2, "2.0"), (3, "2.6"), (4, "2.8")),
    "DescribeLogDirs": ((0, "1.0"), (1, "2.0"), (2, "2.6"), (3, "3.2"), (4, "3.3"), (5, "4.3")),
    "DescribeUserScramCredentials": ((0, "2.7"),),
    "IncrementalAlterConfigs": ((0, "2.3"), (1, "2.4")),
    "ListPartitionReassignments": ((0, "2.4"),),
    "OffsetDelete": ((0, "2.4"),),
    "RemoveRaftVoter": ((0, "4.0"),),
    "UpdateFeatures": ((0, "2.7"), (1, "3.3"), (2, "4.0")),
}
# Where brokers without ZooKeeper have it later than others.
SINCE_IN_KRAFT: Mapping[str, str] = {"DescribeUserScramCredentials": "3.5"}

# kafka-python's words.
_NONE = re.compile(r"does not support the '(\w+?)(?:Request)?' Kafka protocol")
_NO_VERSION = re.compile(
    r"No version of the '(\w+?)(?:Request)?' Kafka protocol is supported by both"
    r" the client \[(\d+)-(\w+)\] and broker \[(\d+)-(\d+)\]"
)


def missing_api(text: str) -> Tuple[str, str]:
    """(reason, remedy) for kafka-python's words, or a broker's, about a request that brokers do not have."""
    found = _NONE.search(text)
    if found:
        name = found[1]
        return _told(f"the request {name}", since(name), SINCE_IN_KRAFT.get(name))
    found = _NO_VERSION.search(text)
    if found:
        name, least, most = found[1], int(found[2]), int(found[5])
        if least > most:
            return _told(f"the request {name} in version {least}", since(name, least), None)
        reason = f"these brokers no longer have the request {name} in version {found[3]} or older"
        return reason, "upgrade kafka-python on the host that runs the module"
    words = " ".join(text.split())[:200]
    return f"these brokers have no such request ({words})", "upgrade Kafka"


def since(name: str, version: int = 0) -> Optional[str]:
    """The first Kafka that has a version of a request; None if the table does not know."""
    kafkas = [kafka for number, kafka in SINCE.get(name, ()) if number >= version]
    return kafkas[0] if kafkas else None


def _told(what: str, kafka: Optional[str], in_kraft: Optional[str]) -> Tuple[str, str]:
    if kafka is None:
        return f"these brokers do not have {what}", "upgrade Kafka"
    also = f" (without ZooKeeper {in_kraft})" if in_kraft else ""
    return (
        f"these brokers do not have {what}, which came with Kafka {kafka}{also}",
        f"upgrade Kafka to {kafka} or newer{also}",
    )

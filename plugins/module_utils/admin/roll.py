# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order instances take their turn. Pure. The gate joins it here.

Private to the collection: names may change without notice.
"""

from __future__ import annotations

from typing import Any, Iterable, List, Mapping


def roll_order(members: Iterable[Mapping[str, Any]]) -> List[str]:
    """Return host names in the order of their turns.

    `members`: dicts `host`, `id`, `healthy` (serves, all its replicas in sync), `last` (ZooKeeper's
    leader, Kafka's controller). What is not healthy comes first: it has the least to lose, and may be
    waiting for just this restart. Then by id; the leader last, so that it moves once and not with every
    restart. Source: Strimzi's ZooKeeperRoller and KafkaRoller.
    """
    ordered = sorted(
        members,
        key=lambda member: (
            bool(member.get("healthy", True)),
            bool(member.get("last")),
            int(member["id"]),
        ),
    )
    return [member["host"] for member in ordered]

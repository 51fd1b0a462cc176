# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order instances take their turn. Pure. The gate joins it here.

Private to the collection: names may change without notice.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping


def roll_order(members: Iterable[Mapping[str, Any]]) -> List[str]:
    """Return host names in the order of their turns.

    `members`: dicts `host`, `id`, `healthy` (serves, all its replicas in sync), `last` (ZooKeeper's
    leader, Kafka's controller), `votes` (in a KRaft quorum). What is not healthy comes first: it has
    the least to lose, and may be waiting for just this restart. Then who does not vote, and by id; the
    leader last, so that it moves once and not with every
    restart. Source: Strimzi's ZooKeeperRoller and KafkaRoller.
    """
    ordered = sorted(
        members,
        key=lambda member: (
            bool(member.get("healthy", True)),
            bool(member.get("last")),
            bool(member.get("votes")),
            int(member["id"]),
        ),
    )
    return [member["host"] for member in ordered]


def unmended(turns: Iterable[Mapping[str, Any]], only: str = "") -> List[int]:
    """Return the ids of members from which nothing is expected yet, sorted.

    They were not healthy when the run began, and their own cure is still to come. Whoever waited for
    them would wait in vain; they get a turn of their own, and are waited for then. `turns`: dicts
    `host`, `id`, `healthy` and `pending` (the turn is still to come); `only`: the one host that this
    run is about, where it leaves the others as they are.
    """
    return sorted(
        int(turn["id"])
        for turn in turns
        if not turn["healthy"] and (turn["pending"] or (only and turn["host"] != only))
    )


def turn_events(turns: Iterable[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """Return what the report of a proof draws: dicts `from_ms`, `to_ms` (since 1970) and `label`.

    `turns`: dicts `host`, `from_ms`, `to_ms`, `done` (started, restarted, stopped); a `host` of "" is
    nobody in particular. The events are in the order of their beginning.
    """
    return [
        {
            "from_ms": turn["from_ms"],
            "to_ms": turn["to_ms"],
            "label": f"{turn['host']} {turn['done']}".strip(),
        }
        for turn in sorted(turns, key=lambda turn: (turn["from_ms"], turn["to_ms"]))
    ]

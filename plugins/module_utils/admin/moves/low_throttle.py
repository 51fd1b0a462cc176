# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the throttle of a move has to carry so that the move ends, by what producers write meanwhile. Pure.

Private to this collection. A broker counts all that it sends and receives of a throttled partition, and lets only those
replicas wait that are not in sync. So what goes to replicas in sync leaves less for those that are added, or nothing.
"""

from __future__ import annotations

import math
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key, Place
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import EXAMPLES
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    UNLIMITED,
    approximate_size,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import some

# What is written is measured for so long, where a first guess in less than that is such a part of the throttle.
MEASURE_SECONDS, GUESSED = 10.0, 0.1
# A throttle that is proposed is so much more than what is needed now.
MARGIN = 1.5
# What is so near to the throttle is taken for it: what is written is never the same for long.
NEAR = 0.5
MEBI = 2**20


def written_to(
    before: Mapping[Place, int],
    after: Mapping[Place, int],
    seconds: float,
    leaders: Mapping[Key, Optional[int]],
) -> Dict[Key, float]:
    """Bytes a second that are written to each partition, by how much its leader has grown meanwhile."""
    written = {}
    for key, leader in leaders.items():
        place = (leader, key)
        if leader is not None and place in before and place in after and seconds > 0:
            written[key] = max(0, after[leader, key] - before[leader, key]) / seconds
    return written


def needed(
    written: Mapping[Key, float],
    leaders: Mapping[Key, Optional[int]],
    moves: Mapping[Key, Tuple[Sequence[int], Sequence[int]]],
) -> Dict[int, float]:
    """Bytes a second that the throttle of each broker has to carry, and more, for these moves to end.

    `moves`: partitions with (who may send, who receives), as of `throttled_lists`. All of a run are throttled from its
    beginning to its end, so all count, those that have arrived and those that have not begun.
    """
    sent: Dict[int, float] = {}
    received: Dict[int, float] = {}
    for key, (senders, receivers) in moves.items():
        if not receivers:
            continue
        leader, rate = leaders.get(key), written.get(key, 0.0)
        if leader is not None:
            followers = len({*senders, *receivers} - {leader})
            sent[leader] = sent.get(leader, 0.0) + rate * followers
        for broker in receivers:
            received[broker] = received.get(broker, 0.0) + rate
    return {
        broker: max(sent.get(broker, 0.0), received.get(broker, 0.0))
        for broker in sorted({*sent, *received})
    }


def proposed(need: float) -> str:
    """A throttle that carries so many bytes a second, and some more, as the option takes it."""
    return f"{max(1, math.ceil(need * MARGIN / MEBI))}MiB"


def low_throttle(needs: Mapping[int, float], rate: int) -> List[str]:
    """One warning of brokers whose throttle carries less than records are written, or none."""
    low = {broker: need for broker, need in needs.items() if need >= rate}
    if rate == UNLIMITED or not low:
        return []
    top = max(low.values())
    return [
        f"broker {some(list(map(str, sorted(low))), EXAMPLES)}: as records are written now, up to"
        f" {approximate_size(int(top))} a second of what moves would have to pass its throttle of"
        f" {approximate_size(rate)}, to replicas in sync as well. The moves end only once less is written, or with a"
        f" higher throttle, such as {proposed(top)} (kafka_reassignment_throttle)"
    ]


def remedy(need: float, rate: int, foreign: bool) -> str:
    """What to do about moves that records outpace, where so many bytes a second would have to pass the throttle.

    `foreign`: somebody else has set a rate on some broker.
    """
    if rate != UNLIMITED and need >= rate * NEAR:
        also = ", and that of somebody else of which a warning tells" if foreign else ""
        return (
            f"run the same again with a higher throttle, such as {proposed(max(need, rate))}"
            f" (kafka_reassignment_throttle){also}, or once less is written"
        )
    return (
        "its disks, its network or those of the leaders carry no more: run the same again once less is written, or with"
        " fewer partitions at a time (kafka_reassignment_batch)"
    )

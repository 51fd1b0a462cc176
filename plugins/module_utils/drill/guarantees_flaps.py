# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is seen of a replica that flaps, and whether the gate waits until it is over. Pure.

Private to this collection. A follower leaves the ISR, is back, and leaves again, as with the bug of Kafka 0.10.1.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import FrozenSet, Iterable, Iterator, List, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import judgement
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import Moment, Seen
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import (
    Row,
    not_looked_for,
    unmeasured,
)

FLAPS = "follower_flaps"
# The row of the table of scenarios.
SCENARIO = "S17"
TIMES = 3
# As the playbooks have it by default: good for so long before a broker may stop.
QUIET_SECONDS = 3.0
# A bystander sees a change a look later than the gate may.
LOOKS_MS = 500
NAME = "a follower that flaps"
DONE = f"a follower hangs and goes on, {TIMES} times"
EXPECTED = f"each time seen; nothing lost; the gate opens {QUIET_SECONDS:g} s after the last"


@dataclass(frozen=True)
class Flap:
    """Once out of the ISR and back: who, and when (ms). `back_ms` is None where it was not back."""

    who: FrozenSet[int]
    left_ms: int
    back_ms: Optional[int]


def flaps_of(moments: Sequence[Moment], replicas: Iterable[int]) -> List[Flap]:
    """The flaps of a partition with these replicas, from the moments in their order."""
    everybody, found, left = frozenset(replicas), [], None
    for each in moments:
        missing = everybody - each.isr
        if missing:
            left = Flap(
                missing | (left.who if left else frozenset()),
                left.left_ms if left else each.at_ms,
                None,
            )
        elif left:
            found.append(Flap(left.who, left.left_ms, each.at_ms))
            left = None
    return [*found, left] if left else found


def a_minute(flaps: Sequence[Flap]) -> Optional[float]:
    """Flaps a minute, from the first one to the end of the last; None where that is not known."""
    if not flaps or flaps[-1].back_ms is None:
        return None
    return len(flaps) * 60_000 / max(1, flaps[-1].back_ms - flaps[0].left_ms)


def quiet_before(flaps: Sequence[Flap], passed_ms: int) -> Optional[int]:
    """For how long (ms) all had been in sync when the gate let somebody through; None while somebody was not."""
    before = [each for each in flaps if each.left_ms <= passed_ms]
    if not before:
        return None
    back_ms = before[-1].back_ms
    return (
        None if back_ms is None or back_ms > passed_ms + LOOKS_MS else max(0, passed_ms - back_ms)
    )


def row_of_flaps(seen: Optional[Seen], replicas: Sequence[int], error: str = "") -> Row:
    """The row of the table. `seen` is None where it could not be measured; `error` says why."""
    if seen is None:
        return unmeasured(NAME, SCENARIO, EXPECTED, error)
    flaps = flaps_of(seen.moments, replicas)
    return Row(
        NAME,
        SCENARIO,
        DONE,
        EXPECTED,
        "; ".join([*_told(seen, flaps), *judgement.told(seen.judged)]),
        seen.pause_ms,
        (*_broken(seen, flaps), *judgement.broken(seen.judged)),
        (*not_looked_for(seen), *judgement.unclear(seen.judged)),
    )


def _broken(seen: Seen, flaps: Sequence[Flap]) -> Iterator[str]:
    """What is not as expected."""
    follower, passed_ms = seen.measured["follower"], seen.measured["passed_ms"]
    if seen.lost:
        yield f"{seen.lost} acknowledged records never came"
    if seen.late:
        yield f"{seen.late} acknowledged records did not come in time; the topic has them"
    if len(flaps) != TIMES:
        yield f"it was seen to leave the ISR {len(flaps)} times, and hung {TIMES} times"
    others = sorted(frozenset().union(*(each.who for each in flaps)) - {follower})
    if others:
        yield f"{', '.join(map(str, others))} left the ISR, too"
    if passed_ms is None:
        yield f"the gate let nobody through afterwards: {seen.measured['reason']}"
        return
    quiet = quiet_before(flaps, passed_ms)
    if quiet is None or quiet + LOOKS_MS < QUIET_SECONDS * 1000:
        yield (
            "the gate let another broker stop "
            + (
                "while it was out of the ISR"
                if quiet is None
                else f"{quiet / 1000:.1f} s after it was back"
            )
        )


def _told(seen: Seen, flaps: Sequence[Flap]) -> Iterator[str]:
    """What was measured, in a few words each."""
    away = [each.back_ms - each.left_ms for each in flaps if each.back_ms is not None]
    rate = a_minute(flaps)
    yield f"broker {seen.measured['follower']} out of the ISR {len(flaps)} times" + (
        f" ({rate:.1f} a minute), for {' / '.join(f'{each / 1000:.1f}' for each in away)} s"
        if rate
        else ""
    )
    yield f"{seen.acknowledged:,} acknowledged"
    yield f"{seen.lost:,} lost"
    quiet = quiet_before(flaps, seen.measured["passed_ms"] or 0)
    if quiet is not None:
        waited = seen.measured["waited_seconds"]
        yield f"the gate opened {quiet / 1000:.1f} s after the last, having waited for {waited:.0f} s"

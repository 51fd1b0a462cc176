# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""From what the firewalls of a host say of our ports to what is stated: computed, shown, and then done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.firewall.openings import (
    CLOSED,
    Opening,
    State,
    ports_of,
    state_lines,
    together,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError

NONE = "none"
KINDS = (NONE, "firewalld", "nftables")


@dataclass(frozen=True)
class Step:
    """What happens to one firewall: from `before` to `after`, of which `stale` is to go later."""

    kind: str
    before: State
    after: State
    stale: bool = False

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return self.before != self.after


def step(kind: str, chosen: str, seen: State, openings: Sequence[Opening], keep: bool) -> Step:
    """The step of one firewall; `keep`: what is open and not stated stays open for now. Pure."""
    wanted = ports_of(openings) if kind == chosen else CLOSED
    ports = wanted
    if keep and kind == chosen:
        ports = together(seen.now, wanted)
    elif keep:
        # The one that is not chosen any more goes later, too.
        return Step(kind, seen, seen, not seen.is_empty)
    return Step(kind, seen, State(ports, ports), ports != wanted)


def bring(
    chosen: str, firewalls: Iterable[Any], openings: Sequence[Opening], keep: bool, check_mode: bool
) -> Dict[str, Any]:
    """Results of the module: changed, stale, diff, warnings. Raises ProblemError, OSError."""
    firewalls = list(firewalls)
    unusable = next((each.unusable() for each in firewalls if each.kind == chosen), None)
    if unusable:
        raise ProblemError(unusable)
    steps = [
        (each, step(each.kind, chosen, each.state(), openings, keep))
        for each in sorted(firewalls, key=lambda each: each.kind != chosen)
    ]
    warnings: List[str] = []
    for each, planned in steps:
        if each.kind == chosen:
            warnings += each.warnings()
        if not planned.changes:
            continue
        if check_mode:
            if planned.after.now:
                each.refuse()
        elif planned.after.now:
            each.apply(_openings(planned.after, openings))
        else:
            each.remove()
    return {
        "changed": any(planned.changes for _each, planned in steps),
        "stale": any(planned.stale for _each, planned in steps),
        "diff": _diff([planned for _each, planned in steps], openings),
        "warnings": warnings,
    }


def _openings(state: State, stated: Sequence[Opening]) -> Tuple[Opening, ...]:
    purposes = _purposes(stated)
    return tuple(
        Opening(port, sources, purposes.get(port, ""))
        for port, sources in sorted(state.now.items())
    )


def _purposes(openings: Sequence[Opening]) -> Dict[int, str]:
    return {each.port: each.purpose for each in openings}


def _diff(steps: Sequence[Step], openings: Sequence[Opening]) -> List[Dict[str, str]]:
    purposes = _purposes(openings)
    told = []
    for each in steps:
        if each.changes:
            sides = [state_lines(side, purposes) for side in (each.before, each.after)]
            before, after = ("".join(f"{line}\n" for line in side) for side in sides)
            told.append(
                {
                    "before_header": each.kind,
                    "after_header": each.kind,
                    "before": before,
                    "after": after,
                }
            )
    return told

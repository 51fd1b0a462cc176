# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a consumer group whose coordinator is lost, by replicas of the topic of commits. Pure.

Private to this collection. The records have three replicas, and are lost in no row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import judgement
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import Seen
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import (
    Row,
    not_looked_for,
    unmeasured,
)

KILLED, DISK_GONE = "coordinator_killed", "coordinator_disk_gone"
LOSSES = (KILLED, DISK_GONE)
# The row of the table of scenarios.
SCENARIO = "S28"


@dataclass(frozen=True)
class GroupCase:
    """How many replicas the group's partition of __consumer_offsets has, and what is lost."""

    loss: str
    replicas: int

    @property
    def name(self) -> str:
        """As the table has it."""
        return f"offsets topic RF {self.replicas}, {self.loss}"

    @property
    def topic(self) -> str:
        """What its topic and its group are named after."""
        return f"offsets-{self.replicas}-{self.loss.replace('_', '-')}"

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        if self.replicas > 1:
            return "another coordinates; commits go on and are kept"
        if self.loss == KILLED:
            return "no commit until it is back; then the commits are there"
        return "no commit until it is back; the commits are lost, all is read again"

    @property
    def done(self) -> str:
        """What is done, in words."""
        if self.loss == KILLED:
            return "the group's coordinator killed"
        return "the coordinator's log directory removed under it"


def row_of_group(case: GroupCase, seen: Optional[Seen], error: str = "") -> Row:
    """The row of the table. `seen` is None where it could not be measured; `error` says why."""
    if seen is None:
        return unmeasured(case.name, SCENARIO, case.expected, error)
    return Row(
        case.name,
        SCENARIO,
        case.done,
        case.expected,
        "; ".join([*told(seen), *judgement.told(seen.judged)]),
        seen.pause_ms,
        (*broken(case, seen), *judgement.broken(seen.judged)),
        (*not_looked_for(seen), *judgement.unclear(seen.judged)),
    )


def broken(case: GroupCase, seen: Seen) -> Iterator[str]:
    """What is not as expected."""
    meanwhile, again = seen.measured["meanwhile"], seen.measured["again"]
    committed = seen.measured["committed"]
    if not committed:
        yield "nothing was committed before, so nothing was tried"
    if seen.lost:
        yield f"{seen.lost} acknowledged records never came"
    if seen.late:
        yield f"{seen.late} acknowledged records did not come in time; the topic has them"
    if case.replicas > 1 and not meanwhile:
        yield "no commit was taken while its coordinator was away"
    if case.replicas == 1 and meanwhile:
        yield f"{meanwhile} commits were taken although nobody else had the partition"
    if case.replicas == 1 and case.loss == DISK_GONE:
        if again < committed:
            yield f"{again} of {committed} committed records came again, although nobody else had the commits"
    elif again:
        yield f"{again} of {committed} committed records came again"


def enough(case: GroupCase, commits: int, many: int, quiet: bool) -> bool:
    """Whether a group without its coordinator was watched for long enough. `quiet`: for as long as one is watched to
    which nothing shall happen; where another shall coordinate it, the first commit is waited for, for longer.
    """
    return commits > many or (quiet and (case.replicas == 1 or commits > 0))


def told(seen: Seen) -> Iterator[str]:
    """What was measured, in a few words each."""
    yield f"{seen.acknowledged:,} acknowledged"
    yield f"{seen.lost:,} lost"
    yield f"{seen.measured['meanwhile']:,} commits while it was away"
    yield f"{seen.measured['again']:,} of {seen.measured['committed']:,} committed records came again"

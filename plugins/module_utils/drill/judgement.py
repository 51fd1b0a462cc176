# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drill asks the PySpark judge of the records in its topics, and what follows from the answers. Pure.

Private to this collection. The judge reads each topic itself (`flow.comparison` of the job), and compares it with
what the drill's clients say was acknowledged, and with what they have not found again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Sequence,
    Tuple,
)

PASS, VIOLATION, INCONCLUSIVE = "pass", "fail", "inconclusive"
Answer = Mapping[str, Any]
_NUMBERED = re.compile(r"(.*?)(\d+)", re.S)


@dataclass(frozen=True)
class Written:
    """What was written to a topic: records that were sent, and those of them that were acknowledged.

    `missing`: acknowledged ones that the drill has not found again, where it has looked; `repeated`: how many it has
    found once more. `committed`: the topic as a consumer of committed records sees it.
    """

    topic: str
    sent: Collection[str]
    acknowledged: Collection[str]
    missing: Collection[str] = ()
    repeated: int = 0
    committed: bool = False

    def question(self) -> Dict[str, Any]:
        """As the judge takes it."""
        return {
            "topic": self.topic,
            "acknowledged": spans(self.acknowledged),
            "unanswered": spans(set(self.sent) - set(self.acknowledged)),
            "missing": spans(self.missing),
            "repeated": self.repeated,
            "committed": self.committed,
        }


# Asks the judge of topics, and returns an answer for each; none where there is no judge to ask.
Ask = Callable[[Sequence[Written]], Tuple[Answer, ...]]


def spans(records: Iterable[str]) -> List[List[Any]]:
    """Texts that end with a number as [[text before it, first number, last number], ...]; ValueError for others."""
    found: List[List[Any]] = []
    for before, number in sorted(_split(each) for each in set(records)):
        if found and found[-1][0] == before and found[-1][2] + 1 == number:
            found[-1][2] = number
        else:
            found.append([before, number, number])
    return found


def _split(record: str) -> Tuple[str, int]:
    matched = _NUMBERED.fullmatch(record)
    if matched is None:
        raise ValueError(f"no number at the end of {record!r}")
    return matched[1], int(matched[2])


def unanswered(topic: str, why: str) -> Answer:
    """What stands for an answer where the judge gives none."""
    return {"topic": topic, "verdict": INCONCLUSIVE, "summary": why}


def broken(answers: Iterable[Answer]) -> Iterator[str]:
    """What is not as expected: of a topic the judge has found what its writer has not, or the other way round."""
    for each in answers:
        if each["verdict"] == VIOLATION:
            yield f"the judge has found a violation: {each['summary']}"


def unclear(answers: Iterable[Answer]) -> Iterator[str]:
    """What the judge could not say."""
    for each in answers:
        if each["verdict"] not in (PASS, VIOLATION):
            yield f"the judge has no verdict on {each['topic']}: {each['summary']}"


def told(answers: Iterable[Answer]) -> Iterator[str]:
    """What the judge has counted, in a few words for all topics."""
    counts = [each["counts"] for each in answers if each.get("counts")]
    if counts:
        acked, lost, again = (
            sum(each[name] for each in counts) for name in ("acked", "lost", "again")
        )
        yield f"judge: {lost:,} of {acked:,} lost" + (f", {again:,} twice" if again else "")

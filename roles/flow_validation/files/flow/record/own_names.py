# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Names that a run gives to what it makes in the cluster: topics, groups, transactional ids. Pure.

They tell when the run began, and of two that began in one millisecond, which it is. Kafka keeps no such time,
and an empty topic has no record that would tell its age: without it nobody could tell what was left behind
from what a run elsewhere has just made.
"""

from __future__ import annotations

import re
from typing import Optional

PREFIX = "kafkaops-flow"
# Of a run's id: its time, and chance behind that. Older versions had the time alone in their names.
_TIME_DIGITS, _CHANCE_DIGITS = 12, 8
# A run's own topic, with the run that it is of; or that of one of its probes.
_TOPIC = re.compile(
    rf"({PREFIX}-[0-9a-f]{{{_TIME_DIGITS}}}(?:[0-9a-f]{{{_CHANCE_DIGITS}}})?)(?:-(?:min-isr|compaction|retention))?\Z"
)

# Versions that came before this one began a run's id with digits by chance; those are hardly ever such
# a time: the first is the beginning of 2026.
_EARLIEST_MS, _AHEAD_SECONDS = 1_767_225_600_000, 86_400


def new_run_id(now: float, chance: str) -> str:
    """The id of a run that begins `now` (seconds since 1970): 32 hexadecimal digits, of which the first
    are its milliseconds. chance: as many random digits.
    """
    return f"{int(now * 1000):0{_TIME_DIGITS}x}{chance[_TIME_DIGITS:]}"


def began(topic: str, now: float) -> Optional[float]:
    """When the run of that topic of ours began, seconds since 1970; None where the name does not tell.

    now: as far behind it as another machine's clock may be wrong, a day, is taken for a time.
    """
    milliseconds = int(topic[len(PREFIX) + 1 :][:_TIME_DIGITS], 16)
    told = _EARLIEST_MS <= milliseconds <= (now + _AHEAD_SECONDS) * 1000
    return milliseconds / 1000 if told else None


def own(run_id: str, *more: object) -> str:
    """The name of what a run makes; `more` tells apart what it makes several of."""
    return "-".join(map(str, (PREFIX, run_id[: _TIME_DIGITS + _CHANCE_DIGITS], *more)))


def run_topic(topic: str) -> str:
    """The run's own topic, of that or of a probe's; "" if no run gives its topics such a name."""
    found = _TOPIC.match(topic)
    return found[1] if found else ""

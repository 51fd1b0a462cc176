# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Names that a run gives to what it makes in the cluster: topics, groups, transactional ids. Pure."""

from __future__ import annotations

import re

PREFIX = "kafkaops-flow"
_RUN_DIGITS = 12
# A run's own topic, with the run that it is of; or that of one of its probes.
_TOPIC = re.compile(
    rf"({PREFIX}-[0-9a-f]{{{_RUN_DIGITS}}})(?:-(?:min-isr|compaction|retention))?\Z"
)


def own(run_id: str, *more: object) -> str:
    """The name of what a run makes; `more` tells apart what it makes several of."""
    return "-".join(map(str, (PREFIX, run_id[:_RUN_DIGITS], *more)))


def run_topic(topic: str) -> str:
    """The run's own topic, of that or of a probe's; "" if no run gives its topics such a name."""
    found = _TOPIC.match(topic)
    return found[1] if found else ""

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Where a partition stands at one moment. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Partition:
    """Offsets and leadership of one partition at three moments: before writing, after it, at
    reading.
    """

    partition: int
    leader: Optional[int]
    replicas: tuple
    isr: tuple
    start: int
    end: int
    epoch: Optional[int] = None

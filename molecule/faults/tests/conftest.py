# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster of these tests, and a table at their end of what clients felt of each operation under load."""

from __future__ import annotations

import pytest

from tests.support.load import pytest_terminal_summary
from tests.support.nodes import ADDRESSES, host, play

__all__ = ["pytest_terminal_summary"]  # pytest calls it


@pytest.fixture(scope="session", autouse=True)
def deployed():
    """The cluster that the scenario `cluster` has left, or a new one; an unchanged site.yml takes long."""
    units = [(host(name), unit) for name in ADDRESSES for unit in ("zookeeper", "kafka")]
    if not all(node.service(unit).is_running for node, unit in units):
        play("site.yml", "-e", "flow_validation=never", inventory="faults")

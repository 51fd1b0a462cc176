# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Local clusters as tests/local has them, on ports of their own: both parts run at once."""

from __future__ import annotations

import itertools

import pytest

from tests.local.conftest import cluster, either, kraft_cluster, moments
from tests.local.support import OFFSET
from tests.support.load import pytest_terminal_summary

__all__ = ["cluster", "either", "kraft_cluster", "moments", "pytest_terminal_summary"]

# Between those of tests/local, which are 20 apart, and no cluster has ten ports in a row.
_offsets = itertools.count(OFFSET + 10, 20)


@pytest.fixture(scope="session")
def next_offset():
    """Return a function that gives a port offset that no other cluster of this session uses."""
    return lambda: next(_offsets)

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports for the clusters of this folder, which runs beside other parts."""

from __future__ import annotations

import itertools

import pytest

from tests.local.support import OFFSET


@pytest.fixture(scope="session")
def next_offset():
    """Return a function that gives a port offset that no other cluster of this session uses."""
    offsets = itertools.count(OFFSET + 2000, 20)
    return lambda: next(offsets)

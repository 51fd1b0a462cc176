# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Local clusters, deployed by the playbooks, shared by the tests of this folder where they can be."""

from __future__ import annotations

import itertools
import os
import random

import pytest

from tests.local.support import OFFSET, LocalCluster
from tests.support.load import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]  # pytest calls it

# Every cluster of the session gets ports of its own.
_offsets = itertools.count(OFFSET, 20)


@pytest.fixture(scope="session")
def next_offset():
    """Return a function that gives a port offset that no other cluster of this session uses."""
    return lambda: next(_offsets)


@pytest.fixture(scope="session")
def cluster(next_offset):
    """Three ZooKeeper servers and three brokers of inventories/local, deployed once."""
    with LocalCluster(next_offset()) as running:
        running.deploy()
        yield running


@pytest.fixture(scope="session")
def kraft_cluster(next_offset):
    """Three nodes of inventories/local-kraft, deployed once: the same cluster without ZooKeeper."""
    with LocalCluster(next_offset(), inventory="inventories/local-kraft") as running:
        running.deploy()
        yield running


@pytest.fixture(params=["cluster", pytest.param("kraft_cluster", marks=pytest.mark.soak)])
def either(request):
    """A cluster with ZooKeeper, and in the soak one without: for what works on both."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def moments():
    """The chance of this run; its seed is printed, and KAFKAOPS_TEST_SEED repeats it."""
    seed = int(os.environ.get("KAFKAOPS_TEST_SEED") or random.randrange(2**32))
    print(f"\nKAFKAOPS_TEST_SEED={seed}", flush=True)
    return random.Random(seed)

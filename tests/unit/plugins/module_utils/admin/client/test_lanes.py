# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lanes: each item goes out once, over a few connections, and a few items in one request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.lanes import (
    LANES,
    lanes_of,
)


@pytest.mark.parametrize(
    ("count", "batches"),
    [
        (0, []),
        (1, [[1]]),
        (99, [[99]]),
        (100, [[50], [50]]),
        (1000, [[334], [334], [332]]),
        (2000, [[500, 500], [500], [500]]),
    ],
)
def test_many_items_go_out_in_lanes_and_a_few_in_one_request(count, batches):
    lanes = lanes_of(range(count), 50, 500)
    assert [[len(batch) for batch in lane] for lane in lanes] == batches


@given(st.integers(0, 20_000), st.integers(1, 300), st.integers(1, 1000))
def test_each_item_is_in_one_batch_whatever_their_number(count, least, most):
    lanes = lanes_of(range(count), least, most)
    sent = [item for lane in lanes for batch in lane for item in batch]
    assert sorted(sent) == list(range(count))
    assert len(lanes) <= LANES and all(lanes)
    assert all(0 < len(batch) <= most for lane in lanes for batch in lane)

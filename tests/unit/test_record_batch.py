# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""By what the tests of operations tell a request that a broker has appended twice from one that was sent anew."""

from __future__ import annotations

import pytest

from tests.support.record_batch import Batch, Record, written_by


def batch(base, epoch, sequence, count):
    """A batch of producer 7."""
    records = tuple(Record(delta, 0, None, b"value", b"\x00") for delta in range(count))
    return Batch(base, 3, 0, count - 1, 0, 0, 7, epoch, sequence, records)


def test_a_record_is_known_by_its_producer_epoch_and_sequence():
    batches = batch(10, 0, 40, 3), batch(13, 0, 41, 1), batch(20, 1, 0, 2)
    log = b"".join(each.encode() for each in batches)
    log += batch(22, 1, 2, 5).encode()[:70]  # it is just being written
    assert written_by(log, 11) == written_by(log, 13) == (7, 0, 41), "the same request"
    assert written_by(log, 21) == (7, 1, 1)
    for absent in (9, 14, 30):
        with pytest.raises(KeyError):
            written_by(log, absent)

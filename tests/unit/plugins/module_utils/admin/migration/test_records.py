# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a migration in a metadata log that is made up here, batch by batch, as Kafka writes it."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.migration.records import (
    last_on_disk,
    last_state,
    signed,
    state_on_disk,
    unsigned,
    values_of,
)
from tests.support.told_log import NOTHING, batch, varint, written

BEGIN, END, ABORT = b"\x01\x17\x00", b"\x01\x18\x00\x00", b"\x01\x19\x00"
OTHER = b"\x01\x02\x00rest"


def state(number):
    """A ZkMigrationStateRecord: frame 1, type 21, version 0, the state, no tagged fields."""
    return bytes((1, 21, 0, number, 0))


@pytest.mark.parametrize("number", [0, 1, 63, 64, 127, 128, 300, -1, -300])
def test_numbers_are_read_as_they_are_written(number):
    data = varint(number) + b"rest"
    assert signed(data, 0) == (number, len(data) - 4)
    assert unsigned(data, 0)[0] == (number << 1) ^ (number >> 63)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([OTHER], None),
        ([state(2)], "PRE_MIGRATION"),
        ([state(2), OTHER, state(1)], "MIGRATION"),
        ([state(1), state(3)], "POST_MIGRATION"),
        ([state(0)], "NONE"),
        ([state(2), BEGIN, OTHER, state(1)], "PRE_MIGRATION"),
        ([state(2), BEGIN, state(1), END], "MIGRATION"),
        ([state(2), BEGIN, state(1), ABORT, OTHER], "PRE_MIGRATION"),
        ([state(2), BEGIN, ABORT, BEGIN, END], "PRE_MIGRATION"),
        ([b"", state(9)], "9"),
    ],
)
def test_the_last_record_counts_and_what_a_transaction_writes_from_its_end(values, expected):
    assert last_state(iter(values)) == expected


def test_batches_are_read_up_to_one_that_is_being_written():
    whole = batch(0, OTHER, state(2)) + batch(2, b"leader", attributes=0x20) + batch(3, state(1))
    assert list(values_of(whole)) == [OTHER, state(2), state(1)]
    assert list(values_of(whole, since=3)) == [state(1)]
    for cut in range(1, len(batch(3, state(1)))):
        assert last_state(values_of(whole[:-cut])) == "PRE_MIGRATION"
    assert list(values_of(whole + bytes(1000))) == [OTHER, state(2), state(1)], "room kept for more"
    with pytest.raises(ValueError, match="compressed"):
        list(values_of(batch(0, state(1), attributes=1)))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"00000000000000000000.log": batch(0, state(2))}, "PRE_MIGRATION"),
        # a snapshot has what the segments before it had; what comes after it counts more
        (
            {
                "00000000000000000000.log": batch(0, state(2)),
                "00000000000000000009-0000000001.checkpoint": batch(0, OTHER, state(1)),
                "00000000000000000009.log": batch(9, OTHER),
            },
            "MIGRATION",
        ),
        (
            {
                "00000000000000000009-0000000001.checkpoint": batch(0, state(1)),
                "00000000000000000009.log": batch(9, OTHER, state(3)),
                "00000000000000000009.snapshot": b"",
            },
            "POST_MIGRATION",
        ),
        # the snapshot lies within a segment
        (
            {
                "00000000000000000000.log": batch(0, state(2)) + batch(4, state(1)),
                "00000000000000000004-0000000001.checkpoint": batch(0, state(2)),
            },
            "MIGRATION",
        ),
    ],
)
def test_the_log_of_a_controller_is_read_from_its_newest_snapshot_on(tmp_path, files, expected):
    written(tmp_path, files)
    assert state_on_disk(str(tmp_path)) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, -1),
        ({"00000000000000000000.log": batch(0, NOTHING)}, -1),
        ({"00000000000000000000.log": batch(0, OTHER, state(2), NOTHING)}, 1),
        # the leader's own records, and those by which it shows that it is there
        (
            {
                "00000000000000000000.log": batch(0, OTHER)
                + batch(1, b"leader", attributes=0x20)
                + batch(2, OTHER, OTHER)
                + batch(4, NOTHING)
                + batch(5, NOTHING)
                + bytes(500)
            },
            3,
        ),
        (
            {
                "00000000000000000000.log": batch(0, OTHER, OTHER),
                "00000000000000000002.log": batch(2, NOTHING),
            },
            1,
        ),
        # what the snapshot has may be in no segment any more
        (
            {
                "00000000000000000009-0000000001.checkpoint": batch(0, OTHER, OTHER),
                "00000000000000000009.log": batch(9, NOTHING),
            },
            8,
        ),
        (
            {
                "00000000000000000009-0000000001.checkpoint": batch(0, OTHER),
                "00000000000000000000.log": batch(0, OTHER) + batch(11, OTHER) + batch(12, NOTHING),
            },
            11,
        ),
    ],
)
def test_the_last_record_that_says_anything_is_found(tmp_path, files, expected):
    written(tmp_path, files)
    assert last_on_disk(str(tmp_path)) == expected


def test_a_directory_without_a_log_tells_nothing(tmp_path):
    assert state_on_disk(str(tmp_path)) is None
    assert last_on_disk(str(tmp_path)) == -1

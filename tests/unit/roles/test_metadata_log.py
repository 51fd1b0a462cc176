# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a broker still counts for when it has ended, by a metadata log that is made up here.

tests/local/test_kraft_eligible.py has a real one.
"""

from __future__ import annotations

import struct

import pytest

from tests.support.told_controller import metadata_log
from tests.support.told_log import (
    CONTROL,
    NOTHING,
    altered,
    batch,
    change,
    partition,
    registered,
    removed,
    written,
)

SEGMENT = "00000000000000000000.log"
UP = [registered(1), altered(1, fenced=-1)]
LEAVES = altered(1, shuts_down=1)
ALL = [1, 2, 3]


def seen(directory, files):
    written(directory, files)
    return metadata_log.last_seen(str(directory), 1)


@pytest.mark.parametrize(
    "records, away, counts",
    [
        # in sync with all, and on
        ([*UP, partition("a", 0, ALL)], False, 1),
        # it has gone, and the others are enough: none is eligible
        ([*UP, partition("a", 0, ALL), LEAVES, change("a", 0, isr=[2, 3])], True, 0),
        # the others are too few
        ([*UP, partition("a", 0, [1, 2]), LEAVES, change("a", 0, isr=[2], elr=[1])], True, 1),
        # they were, and are enough again
        (
            [
                *(*UP, partition("a", 0, [1, 2]), LEAVES, change("a", 0, isr=[2], elr=[1])),
                change("a", 0, isr=[2, 3], elr=[]),
            ],
            *(True, 0),
        ),
        # of what does not change nothing is told
        ([*UP, partition("a", 0, [2], elr=[1]), LEAVES, change("a", 0)], True, 1),
        ([*UP, partition("a", 0, [2], elr=[3]), LEAVES, change("a", 0, isr=[])], True, 0),
        # one of several, and a topic of the same numbers
        (
            [
                *(*UP, partition("a", 0, ALL), partition("a", 1, ALL), partition("b", 0, [1])),
                *(LEAVES, change("a", 0, isr=[2, 3]), change("a", 1, isr=[2], elr=[1, 3])),
            ],
            *(True, 2),
        ),
        ([*UP, partition("a", 0, [1]), partition("b", 0, [2]), removed("a"), LEAVES], True, 0),
        # fenced, and let in again; another broker goes; a new process of this one
        ([*UP, altered(1, fenced=1)], True, 0),
        ([*UP, LEAVES, altered(1, fenced=-1)], False, 0),
        ([*UP, altered(2, shuts_down=1)], False, 0),
        ([*UP, LEAVES, registered(1)], False, 0),
        ([*UP, LEAVES, registered(2), altered(1)], True, 0),
        # earlier versions of the records
        (
            [
                *(*UP, partition("a", 0, ALL, version=0), partition("a", 1, ALL, version=1)),
                *(LEAVES, change("a", 0, isr=[2], version=0), change("a", 1, isr=[2], version=1)),
            ],
            *(True, 0),
        ),
        ([NOTHING], False, 0),
    ],
)
def test_what_a_broker_counts_for(tmp_path, records, away, counts):
    found = seen(tmp_path, {SEGMENT: batch(0, *records, epoch=5)})
    assert (found.away, found.counts) == (away, counts)
    assert (found.end, found.epoch) == (len(records), 5)
    # the same, a batch for each, and the control records of Raft in between
    single, offset = b"", 0
    for value in records:
        single += batch(offset, b"\0\1", attributes=CONTROL) + batch(offset + 1, value, epoch=5)
        offset += 2
    again = seen(tmp_path, {SEGMENT: single})
    assert again == found._replace(end=offset)


SNAPSHOT = "00000000000000000004-0000000002.checkpoint"
BEFORE = batch(0, *UP, partition("a", 0, [3])) + batch(3, change("a", 0, isr=[1, 3]))
AFTER = batch(4, LEAVES, change("a", 0, isr=[3], elr=[1]), epoch=6)
SNAPPED = batch(0, *UP, partition("a", 0, [1, 3]))


@pytest.mark.parametrize(
    "files",
    [
        {SEGMENT: BEFORE + AFTER},
        {SEGMENT: BEFORE, "00000000000000000004.log": AFTER},
        {SNAPSHOT: SNAPPED, SEGMENT: BEFORE + AFTER},
        {SNAPSHOT: SNAPPED, "00000000000000000004.log": AFTER},
        # an earlier snapshot, and what is about to be deleted
        {
            "00000000000000000003-0000000002.checkpoint": batch(0, b"no record"),
            SNAPSHOT: SNAPPED,
            SEGMENT + ".deleted": b"nonsense",
            "00000000000000000003.log": batch(3, change("a", 0, isr=[1, 3])) + AFTER,
        },
        # a batch that was being written when the machine went down
        {SEGMENT: BEFORE + AFTER + batch(6, change("a", 0, elr=[]))[:-3]},
        {SEGMENT: BEFORE + AFTER, "00000000000000000006.log": b""},
        # by the index, behind what cannot be read any more
        {
            SNAPSHOT: SNAPPED,
            SEGMENT: bytes(300) + AFTER,
            SEGMENT.replace(".log", ".index"): struct.pack(">iiii", 4, 300, 0, 0),
        },
    ],
)
def test_the_newest_snapshot_and_what_follows(tmp_path, files):
    assert seen(tmp_path, files) == (6, 6, True, 1)


@pytest.mark.parametrize(
    "files, reason",
    [
        ({SNAPSHOT: SNAPPED, "00000000000000000005.log": batch(5, NOTHING)}, "begins at 4 is miss"),
        ({SEGMENT: batch(0, *UP) + batch(3, LEAVES)}, "begins at 2 is missing"),
        ({"00000000000000000002.log": batch(2, *UP)}, "begins at 0 is missing"),
        ({SEGMENT: batch(0, partition("a", 0, ALL, version=3))}, "kind 3, version 3"),
        ({SEGMENT: batch(0, b"\1\x1d\0")}, "kind 29, version 0"),
        ({SEGMENT: batch(0, b"\1\x19\0\0")}, "kind 25"),
        ({SEGMENT: batch(0, change("a", 0, isr=[2]))}, "not known"),
        ({SEGMENT: batch(0, *UP, attributes=4)}, "compressed"),
        ({SEGMENT: batch(0, partition("a", 0, ALL)[:30])}, "ends early"),
        ({SEGMENT: batch(0, altered(1)[:9])}, "ends early"),
    ],
)
def test_what_is_not_whole_tells_nothing(tmp_path, files, reason):
    with pytest.raises(metadata_log.LogError, match=reason):
        seen(tmp_path, files)


def test_a_log_that_is_not_there(tmp_path):
    with pytest.raises(OSError):
        metadata_log.last_seen(str(tmp_path), 1)

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one loop that reads a topic to its end, with a client that is none."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError
from flow.prepare.consuming import After, Ended, Patience, Reading, read_to_end
from hypothesis import given
from hypothesis import strategies as st

EOF = KafkaError._PARTITION_EOF
BAD = KafkaError._BAD_MSG


class Message:
    """A record, or an error where there is a code."""

    def __init__(self, number, at, code=None):
        self.number, self.at, self.code = number, at, code

    def partition(self):
        return self.number

    def offset(self):
        return self.at

    def error(self):
        return None if self.code is None else KafkaError(self.code)


class Client:
    """Hands out these batches, one each second, and nothing more then."""

    def __init__(self, batches=(), partitions=range(3)):
        self._batches, self.now, self.paused = list(batches), 0.0, set()
        self._places = [SimpleNamespace(partition=number) for number in partitions]

    def consume(self, _most, timeout):
        assert timeout > 0
        self.now += 1
        return self._batches.pop(0) if self._batches else []

    def assignment(self):
        return self._places

    def pause(self, places):
        self.paused |= {place.partition for place in places}


def read(client, ends, record=lambda _message: False, after=After.WAIT, **more):
    patience = Patience(more.pop("seconds", 5), more.pop("longer", 0), lambda: client.now)
    return read_to_end(client, ends, patience, record, lambda _message: after, **more)


@given(st.data())
def test_whatever_comes_in_whatever_batches_all_of_it_is_read(data):
    ends = data.draw(st.dictionaries(st.integers(0, 3), st.integers(1, 6)))
    waiting = {number: list(range(end)) for number, end in ends.items()}
    batches, seen = [], []
    while any(waiting.values()):
        number = data.draw(st.sampled_from([n for n, left in waiting.items() if left]))
        size = data.draw(st.integers(1, 3))
        batches.append([Message(number, at) for at in waiting[number][:size]])
        del waiting[number][:size]
    client = Client(batches, ends)
    reading = read(client, ends, lambda m: seen.append((m.number, m.at)) or False)
    assert reading == Reading(Ended.WHOLE, set(), set())
    assert sorted(seen) == [(n, at) for n, end in sorted(ends.items()) for at in range(end)]
    assert not client.paused or client.paused < set(ends)


@pytest.mark.parametrize(
    "batches, after, expected",
    [
        # the end that the cluster tells is not that far: a new leader has more in a moment
        ([[Message(0, 2, EOF)], [Message(0, 2)]], After.WAIT, (Ended.WHOLE, set(), set())),
        ([[Message(0, 2, EOF)]], After.WAIT, (Ended.SILENT, {0}, set())),
        # markers of transactions, or what compaction took, stand at the end
        ([[Message(0, 0)], [Message(0, 3, EOF)]], After.WAIT, (Ended.WHOLE, set(), {0})),
        ([[Message(0, 0, BAD)]], After.WAIT, (Ended.SILENT, {0}, set())),
        ([[Message(0, 0, BAD)]], After.LEAVE, (Ended.WHOLE, set(), set())),
        ([[Message(0, 0, BAD)]], After.NOTHING_THERE, (Ended.WHOLE, set(), {0})),
        ([[Message(0, 0, BAD)]], After.END, (Ended.ENOUGH, {0}, set())),
        ([], After.WAIT, (Ended.SILENT, {0}, set())),
    ],
)
def test_how_a_partition_of_three_records_ends(batches, after, expected):
    assert read(Client(batches), {0: 3}, after=after) == Reading(*expected)


def test_nothing_to_read_is_read_at_once():
    client = Client()
    assert read(client, {}) == Reading(Ended.WHOLE, set(), set())
    assert not client.now


def test_who_has_enough_or_wants_it_to_end_is_obeyed():
    batch = [Message(0, 0), Message(0, 1)]
    seen = []
    reading = read(Client([batch]), {0: 9}, lambda m: seen.append(m) or True)
    assert (reading.ended, seen) == (Ended.ENOUGH, batch[:1])
    client = Client([batch])
    reading = read(client, {0: 9}, stopped=lambda: client.now > 0)
    assert (reading.ended, reading.left) == (Ended.STOPPED, {0})


def test_each_record_that_is_wanted_renews_the_patience_and_no_other():
    slow = [each for at in range(4) for each in ([Message(0, at)], [], [], [])]
    assert read(Client(slow), {0: 4}).ended is Ended.WHOLE
    others = [[Message(7, at)] for at in range(40)]
    client = Client(others)
    assert read(client, {0: 4}).ended is Ended.SILENT
    assert client.now == 6
    late = [[]] * 8 + [[Message(0, 3)]]
    assert read(Client(late), {0: 4}).ended is Ended.SILENT
    assert read(Client(late), {0: 4}, longer=5).ended is Ended.WHOLE


def test_a_partition_of_which_nothing_more_is_wanted_is_not_in_the_way():
    client = Client([[Message(1, 0)], [Message(0, 0)]])
    assert read(client, {0: 1, 1: 1}).ended is Ended.WHOLE
    assert client.paused == {1}, "and the last one needs no pause"

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operation must not disturb: producers, two groups of consumers, and replicas that are in sync.

On a local cluster or on nodes::

    with Load(cluster, "orders", "rolling restart") as load:
        cluster.play("rolling_restart.yml")
    assert load.watch.check() == [...]

At its end nothing acknowledged may be missing, nothing may have failed, nobody may have seen fewer
replicas in sync than two; and a line about it joins the table that the session prints at its end.
"""

from __future__ import annotations

import functools
import random
import threading
import time
from dataclasses import dataclass

from confluent_kafka import Consumer

from tests.support.outside import wait_until
from tests.support.record_batch import written_by
from tests.support.traffic import Traffic
from tests.support.watching import InSync, Watch, cluster_is_whole

# Longest time without an acknowledgement of one partition, in seconds, where the same was done by hand
# on two cores: reference/changes-measured.md, sections 2 to 4. `python -m tests.benchmarks.pauses` measures
# on a machine of your own what can be done on a bare cluster.
BY_HAND = {
    "rolling restart": 1.34,
    "upgrade": 1.25,
    "upgrade again": 1.29,
    "rollback": 1.50,
    "finalising": 1.36,
    "two ZooKeeper servers more": 1.60,  # the roll of the brokers that follows
    "two ZooKeeper servers less": 1.51,
    "rolling restart in KRaft mode": 1.16,  # reference/kraft-measured.md, section 2: combined nodes of 4.3.1
    "upgrade in KRaft mode": 1.53,  # section 5 of the same: nodes apart, and a static quorum
    "rollback in KRaft mode": 1.53,  # by hand only one broker went back; the same steps
    "finalising in KRaft mode": 0.17,
    "migration to dual-write": 1.39,  # reference/changes-measured.md, section 1
    "migration to KRaft": 1.47,
    "end of the migration": 0.6,
    "migration taken back": 1.49,
    "servers of ZooKeeper alone": 0.60,  # none of 14 restarts showed; no partition waited longer
}
# What is done by the steps of another one, or begins or ends with them.
SAME_STEPS = {
    "rolling restart of servers and brokers": "rolling restart",
    "one broker restarted": "rolling restart",
    "one broker after the previous release": "rolling restart",
    "first restart after a new release": "rolling restart",
    "upgrade from the previous release": "upgrade",
    "upgrade of both products": "upgrade",
    "rolling_upgrade.yml, killed and resumed": "upgrade",
    "rollback.yml, killed and resumed": "rollback",
    "rollback after the previous release": "rollback",
    "upgrade in KRaft mode, killed and resumed": "upgrade in KRaft mode",
    "upgrade in KRaft mode, controllers apart": "upgrade in KRaft mode",
    "finalising after the previous release": "finalising",
    "migration to KRaft, killed and resumed": "migration to KRaft",
    "migration taken back, killed and resumed": "migration taken back",
    "migration to KRaft once more": "migration to KRaft",
    "upgrade of ZooKeeper": "servers of ZooKeeper alone",
    "rollback of ZooKeeper": "servers of ZooKeeper alone",
    "a ZooKeeper server with a new disk": "servers of ZooKeeper alone",
}
# Replicas are moved, which nobody has measured by hand on a quiet machine.
NOT_BY_HAND = frozenset(
    ("one broker more", "one broker less", "one broker more, and one less")
    + ("one more, one less in KRaft mode",)
    + ("a broker with a new disk", "a disk more, and one less", "growth after the previous release")
    + ("brokers taken back from KRaft",)
)


def by_hand(what):
    """Seconds by hand of an operation, or None where there is no figure; KeyError if nobody thought of it."""
    return None if what in NOT_BY_HAND else BY_HAND[SAME_STEPS.get(what, what)]


LAYOUT = "{:38} {:>8} {:>6} {:>8} {:>8} {:>7} {:>6} {:>6}"


@dataclass(frozen=True)
class Row:
    """What was seen during one operation. `pause`: seconds; `twice`: sent as new by the client."""

    what: str
    records: int
    rate: float  # records a second
    pause: float
    fewest: int
    looks: int
    twice: int

    def line(self):
        """One line of the table."""
        seconds = by_hand(self.what)
        return LAYOUT.format(
            self.what,
            self.records,
            f"{self.rate:.0f}",
            f"{self.pause:.2f}",
            "-" if seconds is None else f"{seconds:.2f}",
            *(self.fewest, self.looks, self.twice),
        )


TABLE: list = []
HEADING = LAYOUT.format(
    *("operation", "records", "per s", "pause s", "by hand", "in sync", "looks", "twice")
)


class Group(threading.Thread):
    """A group of one consumer; `values` is the set of what has come since it was `ready`."""

    def __init__(self, cluster, topic):
        super().__init__(daemon=True)
        settings = cluster.client(
            group_id=f"load-{random.getrandbits(32):x}",
            auto_offset_reset="earliest",
            session_timeout_ms=10000,
            # Both groups together fetched a thousand times a second, which kept another core busy.
            fetch_min_bytes=100_000,
            fetch_wait_max_ms=200,
        )
        self._consumer, self._topic, self._done = Consumer(settings), topic, threading.Event()
        self.ready, self.values = False, set()

    def _begin(self, consumer, partitions):
        """Begin at the end, by offsets: records that come meanwhile are not missed. Later: as committed."""
        if not self.ready:
            for each in partitions:
                each.offset = consumer.get_watermark_offsets(each, timeout=30)[1]
            consumer.assign(partitions)
            self.ready = True

    def run(self):
        self._consumer.subscribe([self._topic], on_assign=self._begin)
        while not self._done.is_set():
            messages = self._consumer.consume(1000, 0.2)
            self.values.update(each.value() for each in messages if not each.error())
        self._consumer.close()

    def end(self):
        """Leave the group."""
        self._done.set()
        self.join(60)


class Load:
    """Two idempotent producers, two groups of consumers, and two watchers of one topic.

    `exact` sends up to 200 records a second, each in a batch of its own, `many` sends `at_once` times as many;
    by default both are as many as by hand. No broker may have appended twice what it could recognize, by the
    producer's id, its epoch and the sequence. librdkafka begins a new epoch when brokers lead no more, and
    may send again what the old leader's successor has already (confluentinc/librdkafka#4953): nobody can
    recognize that, so it is counted only. The cluster has log(topic, partition), the bytes of its segments.
    """

    def __init__(self, cluster, topic, what, at_once=9):
        by_hand(what)  # fails now, and not when all is done
        self._cluster, self._topic, self._what = cluster, topic, what
        # As many as librdkafka has under way for one partition: with more, it waits for them in a busy
        # loop, which takes one of two cores while a broker is down.
        self.exact = Traffic(cluster, topic, waiting=5, batch_num_messages=1)
        self.many = Traffic(cluster, topic, at_once=at_once)
        self.watch = Watch(cluster)
        self.in_sync = InSync(cluster, topic)
        self._groups = [Group(cluster, topic) for _group in range(2)]
        self._began = self._seconds = 0.0

    def __enter__(self):
        wait_until(lambda: cluster_is_whole(self._cluster), 120, "whole before")
        for each in self._groups:
            each.start()
        wait_until(lambda: all(each.ready for each in self._groups), 60, "both groups read")
        for each in (self.exact, self.many):
            each.start()
            wait_until(lambda each=each: each.acknowledged, 60, "the first acknowledgement")
        self._began = time.monotonic()
        self.watch.start()
        self.in_sync.start()
        return self

    def __exit__(self, failure, *_exc):
        if failure is None:
            sent = len(self.exact.acknowledged)
            wait_until(lambda: len(self.exact.acknowledged) > sent + 50, 60, "and afterwards")
        self._seconds = time.monotonic() - self._began
        for each in (self.in_sync, self.watch, self.many, self.exact):
            each.__exit__()
        try:
            if failure is None:
                self._judge()
        finally:
            for each in self._groups:
                each.end()

    def _judge(self):
        both = (self.exact, self.many)
        found = [each.read_back() for each in both]
        twice = [{value: at for value, at in each.items() if len(at) > 1} for each in found]
        acknowledged = self.exact.acknowledged | self.many.acknowledged
        row = Row(
            self._what,
            len(acknowledged),
            len(acknowledged) / self._seconds,
            max(each.longest_pause for each in both),
            self.in_sync.fewest,
            self.in_sync.looks,
            sum(map(len, twice)),
        )
        TABLE.append(row)
        print(f"\n{HEADING}\n{row.line()}", flush=True)
        failed = self.exact.failed + self.many.failed
        assert not failed, (len(failed), failed[:3])
        assert acknowledged <= set(found[0]) | set(found[1]), "what was acknowledged is there"
        log = functools.cache(lambda partition: self._cluster.log(self._topic, partition))
        for value, places in (twice[0] | twice[1]).items():
            writings = {written_by(log(partition), offset) for partition, offset in places}
            assert len(writings) == len(places), (value, places, writings, "appended twice")
        assert self.in_sync.looks and self.in_sync.fewest >= 2
        wanted = {value.encode() for value in acknowledged}
        for each in self._groups:
            wait_until(lambda each=each: len(each.values) >= len(wanted), 120, "a group has all")
            wait_until(lambda each=each: not wanted - each.values, 10, "a group has each of them")
        wait_until(lambda: cluster_is_whole(self._cluster), 60, "whole")


def pytest_terminal_summary(terminalreporter):
    """Print what clients felt of each operation, beside what they felt when it was done by hand.

    For the conftest.py of tests that use Load.
    """
    if TABLE:
        terminalreporter.section("operations under load")
        for line in [HEADING, *(row.line() for row in TABLE)]:
            terminalreporter.write_line(line)

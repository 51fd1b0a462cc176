# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Is there room: on the brokers' disks for the run's records, asked before the first one is written;
where Spark keeps what it sorts, asked before records are looked at one by one.

A run that fills a broker's disk stops every other writer of the cluster.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Iterator, Optional

from flow.messages.failure import CannotRun
from flow.prepare import java_admin
from flow.record import own_names

# Smaller runs than this, one replica of all records, are not worth the question.
SMALL_BYTES = 100 * 2**20
# Of what is free, so much may be taken: other people write, too, and segments come with indexes.
_SHARE = 0.9
# Of a record in a batch: lengths, deltas of time and offset, no key, no headers (Kafka's message format 2).
_RECORD_OVERHEAD = 12
_BATCH_OVERHEAD = 61  # the head of a batch
# Of a record that is looked at by itself, whatever its size: its fields, and what joins sort. With
# five million of them 74 bytes each were seen.
_NAMED_BYTES = 80
# Of a record that an inspection compares: the same, and several copies of its id and of what its
# sequence belongs to. With three million records and 64 to 120 bytes of hashes, which do not
# compress well, 3 to 7 bytes for each of them were seen.
_COMPARED_BYTES = 40
_COMPARED_TIMES = 7


@dataclass(frozen=True)
class Disk:
    """A log directory of a broker; `usable`: free bytes, None if the broker does not say (before
    Kafka 3.3); `partitions`: those of the run's topic that have a replica there.
    """

    broker: int
    path: str
    usable: Optional[int]
    partitions: tuple


def needed(records: int, record_size: int, turn: int) -> int:
    """Bytes of so many records in a log, uncompressed. turn: how many are handed over in one go, which come into one
    batch; with a low rate that is one.
    """
    batches = -(-records // turn)
    return records * (record_size + _RECORD_OVERHEAD) + batches * _BATCH_OVERHEAD


def shortage(disks: list, records: int, record_size: int, partitions: int, turn: int) -> str:
    """Which disk has not enough room, as a sentence; empty if all have, or do not say. turn: as for `needed`."""
    share = needed(-(-records // partitions), record_size, turn)
    short = [
        f"broker {disk.broker} has {size(disk.usable)} free in {disk.path}"
        f" and would get {size(share * len(disk.partitions))}"
        for disk in sorted(disks, key=lambda disk: (disk.broker, disk.path))
        if disk.usable is not None and share * len(disk.partitions) > disk.usable * _SHARE
    ]
    return "; ".join(short)


def short_for_naming(spark, records: int) -> str:
    """Whether this Spark has not enough room to look at so many records one by one, as a sentence."""
    what = f"to look at {records:,} records one by one"
    return sorting_shortage(what, records * _NAMED_BYTES, _spark_directories(spark))


def short_for_comparing(spark, records: int, key_bytes: int) -> str:
    """The same of an inspection; `key_bytes`: of all ids, and of all that sequences belong to."""
    wanted = records * _COMPARED_BYTES + key_bytes * _COMPARED_TIMES
    what = f"to compare {records:,} records with each other"
    return sorting_shortage(what, wanted, _spark_directories(spark))


def sorting_shortage(what: str, wanted: int, free: dict) -> str:
    """A sentence if what takes `wanted` bytes does not fit, else nothing. free: directory -> free
    bytes, of which Spark uses all alike.
    """
    have = sum(free.values())
    if not free or wanted < SMALL_BYTES or wanted <= have * _SHARE:
        return ""
    places = " and ".join(sorted(free))
    return (
        f"{what} takes {size(wanted)} in {places} (SPARK_LOCAL_DIRS chooses),"
        f" which has {size(have)} free"
    )


def _spark_directories(spark) -> dict:
    """directory -> free bytes, where Spark on this machine keeps what it sorts; empty if its tasks
    run elsewhere.
    """
    context = spark.sparkContext
    if not context.master.startswith("local"):
        return {}
    conf = context._jsc.sc().conf()
    places = context._jvm.org.apache.spark.util.Utils.getConfiguredLocalDirs(conf)
    return {_given(place): shutil.disk_usage(place).free for place in places}


def _given(place: str) -> str:
    """What a person can look at: the job's own directory is gone after the run."""
    above, name = os.path.split(place)
    return above if name.startswith(f"{own_names.PREFIX}-") else place


def size(count: int) -> str:
    """Bytes for people: 1.5 GiB."""
    number, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while number >= 1024 and len(units) > 1:
        number, units = number / 1024, units[1:]
    return f"{number:.0f} {units[0]}" if units[0] == "B" else f"{number:.1f} {units[0]}"


def disks(spark, servers: str, client: dict, topic: str, replicas: dict, timeout: float) -> list:
    """The Disks that hold the topic; `client`: settings for Java; replicas: partition -> brokers.

    CannotRun if the cluster does not tell, above all because the principal may not
    describe the cluster.
    """
    with _log_directories(spark, servers, client, replicas, timeout) as (jvm, told):
        return [
            disk
            for broker, directories in told.items()
            for disk in _of_broker(jvm, broker, directories, topic, replicas)
        ]


def sizes(spark, servers: str, client: dict, topic: str, replicas: dict, timeout: float) -> dict:
    """partition -> bytes of its largest replica on a disk, as `disks`. The argument `replicas`, too."""
    with _log_directories(spark, servers, client, replicas, timeout) as (jvm, told):
        found: dict = {}
        for directories in told.values():
            for directory in directories.values():
                held = directory.replicaInfos()
                for number in replicas:
                    info = held.get(jvm.org.apache.kafka.common.TopicPartition(topic, number))
                    if info is not None:
                        found[number] = max(found.get(number, 0), info.size())
        return found


@contextmanager
def _log_directories(
    spark, servers: str, client: dict, replicas: dict, timeout: float
) -> Iterator[tuple]:
    """(the JVM, broker -> its log directories as Java describes them) of all brokers among the replicas."""
    with java_admin.opened(spark, servers, client) as (jvm, admin):
        brokers = jvm.java.util.ArrayList()
        for broker in sorted({broker for each in replicas.values() for broker in each}):
            brokers.add(broker)
        described = admin.describeLogDirs(brokers).allDescriptions()
        yield jvm, java_admin.answer(jvm, described, timeout)


def held(spark, servers: str, client: dict, topic: str, replicas: dict, timeout: float) -> dict:
    """(partition, broker) -> bytes of that replica, of brokers that tell it; the other arguments as `disks`."""
    found: dict = {}
    for broker in sorted({broker for each in replicas.values() for broker in each}):
        of_it = {number: [broker] for number, brokers in replicas.items() if broker in brokers}
        with suppress(CannotRun):
            told = sizes(spark, servers, client, topic, of_it, timeout)
            found.update({(number, broker): count for number, count in told.items()})
    return found


def _of_broker(jvm, broker: int, directories, topic: str, replicas: dict) -> list:
    here = [number for number, brokers in replicas.items() if broker in brokers]
    result = []
    for path in directories.keySet():
        directory = directories.get(path)
        held = directory.replicaInfos()
        place = jvm.org.apache.kafka.common.TopicPartition
        numbers = tuple(number for number in here if held.containsKey(place(topic, number)))
        usable = directory.usableBytes()
        free = usable.getAsLong() if usable.isPresent() else None
        result.append(Disk(broker, path, free, numbers))
    return result

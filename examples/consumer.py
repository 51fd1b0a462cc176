#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the records of a topic, as a member of a group; start it as often as there are partitions.

    python consumer.py librdkafka.json TOPIC GROUP

librdkafka.json is what playbooks/client.yml has written. Needs: pip install confluent-kafka.

What matters here:
* An offset is committed after its record was processed, never before: at least once. A consumer that is killed
  processes some records again, which `process` has to bear; none is left out.
* Before partitions go to another member of the group, what was processed is committed, so that it begins behind it.
* Members hand partitions over one by one (cooperative-sticky): the others go on reading meanwhile.
* A commit that fails since the broker that coordinates the group has died is no reason to end: another broker
  coordinates soon, and the next commit has all that was processed.
* Work that takes longer than max.poll.interval.ms (5 minutes) costs it its partitions; it joins again.
* At SIGTERM and SIGINT it commits, and leaves the group: the others take over at once, not after session.timeout.ms.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

COMMIT_SECONDS = 1.0
# How long it tries to commit before it leaves.
LAST_SECONDS = 15.0
# Of a commit. Nothing new, or the partitions are another member's by now, which processes these records again.
SETTLED = (
    KafkaError._NO_OFFSET,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError._ASSIGNMENT_LOST,
)
# The group's coordinator has died, or another one has not yet read its offsets.
PASSING = (
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._WAIT_COORD,
)
CAREFUL = {
    # only what store_offsets has been told is committed, and only by commit()
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    "partition.assignment.strategy": "cooperative-sticky",
    # a transaction that was aborted is nothing to process
    "isolation.level": "read_committed",
}


def process(message: Message) -> None:
    """The work. Here: one line of output."""
    value = (message.value() or b"").decode(errors="replace")
    key = (message.key() or b"").decode(errors="replace")
    print(f"{message.partition()}\t{message.offset()}\t{key}\t{value}", flush=True)


def commit(consumer: Consumer) -> bool:
    """Commit what was processed, and wait for the answer; False where it has to be tried again later."""
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        code = error.args[0].code()
        if code in PASSING:
            print(f"not committed yet: {error.args[0].str()}", file=sys.stderr)
            return False
        if code not in SETTLED:
            raise
    return True


def commit_at_last(consumer: Consumer, seconds: float = LAST_SECONDS) -> None:
    """Commit before it leaves; what it cannot, the next member processes again."""
    deadline = time.monotonic() + seconds
    while not commit(consumer) and time.monotonic() < deadline:
        time.sleep(0.5)


def run(consumer: Consumer, stopped: threading.Event) -> int:
    """Process records until `stopped`; return how many."""
    count, next_commit = 0, time.monotonic() + COMMIT_SECONDS
    while not stopped.is_set():
        message = consumer.poll(0.2)
        error = None if message is None else message.error()
        if error is not None and error.code() == KafkaError._MAX_POLL_EXCEEDED:
            # The group has gone on without it, and works again at what was not committed; the next poll joins again.
            print(f"out of the group for a while: {error.str()}", file=sys.stderr)
        elif error is not None:
            # What passes, such as a leader that moves, librdkafka mends; this does not.
            raise KafkaException(error)
        elif message is not None:
            process(message)
            consumer.store_offsets(message)
            count += 1
        if time.monotonic() >= next_commit:
            commit(consumer)
            next_commit = time.monotonic() + COMMIT_SECONDS
    return count


def main() -> int:
    """Join the group, work, leave it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("settings", type=Path, help="librdkafka.json")
    parser.add_argument("topic")
    parser.add_argument("group")
    arguments = parser.parse_args()

    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())

    def troubled(error) -> None:
        print(f"librdkafka: {error.str()}", file=sys.stderr)

    settings = json.loads(arguments.settings.read_text())
    consumer = Consumer({**settings, **CAREFUL, "group.id": arguments.group, "error_cb": troubled})
    consumer.subscribe([arguments.topic], on_revoke=lambda one, _partitions: commit(one))
    try:
        count = run(consumer, stopped)
        commit_at_last(consumer)
    finally:
        consumer.close()
    print(f"{count} records processed", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

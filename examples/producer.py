#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes each line of its standard input as a record: KEY<TAB>VALUE, or a value alone.

    python producer.py librdkafka.json TOPIC < lines

librdkafka.json is what playbooks/client.yml has written. Needs: pip install confluent-kafka.

What matters here:
* acks=all and idempotence: what is acknowledged is on all replicas in sync, once, in order for each key.
* A broker that dies is no error of ours: librdkafka finds the new leader and sends again, for at most
  delivery.timeout.ms. A record counts when its callback has come without an error, not before.
* A key lies in the same partition as for a Java client. Where others have written to the topic with librdkafka's
  own partitioner, take that one: a key that changes its partition loses its order.
* At SIGTERM and SIGINT no new line is taken, and all that was taken is delivered before the end.

The exit code is 0 if every line that was taken was acknowledged, else 1, also where the input could not be read to
its end; lines that were not acknowledged are named. A line may have any bytes.
"""

from __future__ import annotations

import argparse
import json
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Iterator, Optional

from confluent_kafka import KafkaError, KafkaException, Producer

SAFE = {
    "acks": "all",
    "enable.idempotence": True,
    # longer than a broker needs to be found dead and replaced as leader (18 s in ZooKeeper's session)
    "delivery.timeout.ms": 120_000,
    # a few milliseconds make batches, and batches make throughput
    "linger.ms": 5,
    # Java's; librdkafka's own, consistent_random, has another partition for the same key
    "partitioner": "murmur2_random",
    "compression.type": "lz4",
}


# Librdkafka does not take this line, but may take the next one.
OF_THIS_LINE = (KafkaError.MSG_SIZE_TOO_LARGE,)
# So much of a line is named.
NAMED = 200


class Deliveries:
    """Counts what became of the records."""

    def __init__(self) -> None:
        self.taken = self.acknowledged = self.failed = 0

    def about(self, line: bytes):
        """Return the callback for one line."""

        def done(error, _message) -> None:
            if error is None:
                self.acknowledged += 1
            else:
                self.failed += 1
                named = line[:NAMED].decode(errors="backslashreplace")
                print(f"not acknowledged: {named!r}: {error.str()}", file=sys.stderr)

        return done


def lines_until(stopped: threading.Event) -> Iterator[Optional[bytes]]:
    """Yield lines of the standard input as they come, None while there is none, until its end or `stopped`.

    OSError where it cannot be read.
    """
    waiting: queue.Queue = queue.Queue(maxsize=10_000)

    def read() -> None:
        end: Exception = EOFError()
        try:
            # bytes: what is text, and in which encoding, is no business of ours
            for line in sys.stdin.buffer:
                waiting.put(line.rstrip(b"\r\n"))
        except OSError as error:
            end = error
        finally:
            waiting.put(end)

    # a thread of its own: a signal does not end a blocking read
    threading.Thread(target=read, daemon=True).start()
    while not stopped.is_set():
        try:
            line = waiting.get(timeout=0.1)
        except queue.Empty:
            yield None
            continue
        if isinstance(line, EOFError):
            return
        if isinstance(line, OSError):
            raise line
        yield line


def send(producer: Producer, topic: str, line: bytes, deliveries: Deliveries) -> None:
    """Hand one line over to librdkafka; wait while its queue is full."""
    key, tab, value = line.partition(b"\t")
    deliveries.taken += 1
    while True:
        try:
            producer.produce(
                topic,
                key=key if tab else None,
                value=value if tab else line,
                on_delivery=deliveries.about(line),
            )
            return
        except BufferError:
            producer.poll(0.5)
        except KafkaException as error:
            deliveries.about(line)(error.args[0], None)
            if error.args[0].code() in OF_THIS_LINE:
                return
            raise


def main() -> int:
    """Send lines until there are no more, or until a signal says so."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("settings", type=Path, help="librdkafka.json")
    parser.add_argument("topic")
    arguments = parser.parse_args()

    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())

    def troubled(error) -> None:
        # All of them but fatal ones pass: librdkafka tries again.
        print(f"librdkafka: {error.str()}", file=sys.stderr)
        if error.fatal():
            stopped.set()

    settings = json.loads(arguments.settings.read_text())
    producer = Producer({**settings, **SAFE, "error_cb": troubled})
    deliveries = Deliveries()
    ended = False
    try:
        for line in lines_until(stopped):
            if line is not None:
                send(producer, arguments.topic, line, deliveries)
            producer.poll(0)  # serves the callbacks
        ended = True
    except (KafkaException, OSError) as error:
        print(f"cannot go on: {error}", file=sys.stderr)
    finally:  # whatever has ended it
        producer.flush(SAFE["delivery.timeout.ms"] / 1000)
        print(
            f"{deliveries.acknowledged} of {deliveries.taken} records acknowledged", file=sys.stderr
        )
    return 0 if ended and deliveries.acknowledged == deliveries.taken else 1


if __name__ == "__main__":
    sys.exit(main())

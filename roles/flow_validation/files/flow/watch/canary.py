# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The canary: a few records a second to each partition, and a ledger of those that were acknowledged.

The ledger is a directory of files, one JSON object a line, that are renamed into their place when they
are whole. A file's name is the number of records acknowledged so far, with those in it, so that a
canary that starts again counts on.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from contextlib import suppress
from typing import Dict, List, Optional

from flow.messages.output import read_json, write_json
from flow.record import schema
from flow.watch.account import CANARY, SENTINEL
from flow.write.client_settings import client_settings
from flow.write.pacing import Pace

ROLL_SECONDS = 1.0
LEDGER_DDL = (
    "producer int, attempt int, partition int, sequence bigint, offset bigint, sent_us bigint,"
    " acknowledged_us bigint"
)
_NAME = re.compile(r"([0-9]{15})\.json\Z")


def acknowledged_before(directory: str) -> int:
    """How many records the ledger's files tell of; 0 if there are none."""
    with suppress(FileNotFoundError):
        names = map(_NAME.match, os.listdir(directory))
        return max((int(name[1]) for name in names if name), default=0)
    return 0


class Canary(threading.Thread):
    """Writes until `end`. `settings`: of the producer, as `client_settings` takes them, with run_id
    (hexadecimal), topic and partitions; `position`: the file that keeps the count and the attempt.
    """

    def __init__(self, settings: dict, rate: float, ledger: str, position: str):
        super().__init__(name="canary", daemon=True)
        self._settings, self._rate = settings, rate
        self._ledger, self._position = ledger, position
        self._payload = schema.payload_of(settings["record_size"])
        self._rows: List[dict] = []
        self._ending = threading.Event()
        self._fatal = False
        self._sequences: Dict[int, int] = {}
        self._sentinels: List[bool] = []
        os.makedirs(ledger, exist_ok=True)
        told = read_json(position)
        self.attempt = int(told.get("attempt", 0))
        self.acknowledged = max(int(told.get("acknowledged", 0)), acknowledged_before(ledger))
        self.unknown = int(told.get("unknown", 0))
        self.last_unknown = 0.0  # since this process began
        begun = time.time()
        self.last_acknowledged = dict.fromkeys(range(settings["partitions"]), begun)
        self.trouble: Optional[BaseException] = None
        self._begin()

    def _begin(self) -> None:
        """A producer of its own, with sequences of its own: the attempt is kept before the first record
        is sent, so that no later one has the same."""
        from confluent_kafka import Producer

        self.attempt += 1
        self._keep()
        self._sequences = dict.fromkeys(range(self._settings["partitions"]), 0)
        self._producer, self._fatal = Producer(client_settings(self._settings, 0)), False

    def _keep(self) -> None:
        told = {
            "attempt": self.attempt,
            "acknowledged": self.acknowledged,
            "unknown": self.unknown,
        }
        write_json(self._position, told)

    def run(self) -> None:
        try:
            self._write()
        except BaseException as error:  # told by whoever looks at it
            self.trouble = error

    def _write(self) -> None:
        pace, rolled = Pace(self._rate, time.monotonic()), time.monotonic()
        while not self._ending.is_set():
            now = time.monotonic()
            if now - rolled >= ROLL_SECONDS:
                self._roll()
                rolled = now
            if self._fatal:
                self._producer.flush(self._settings["delivery_timeout"])
                self._begin()
            if (left := pace.left(now)) > 0:
                self._producer.poll(min(left, 0.2))
                continue
            for partition in self._sequences:
                self._send(CANARY, partition, time.time_ns() // 1000)
            pace.sent(1, now)
        self._producer.flush(self._settings["delivery_timeout"] + 5)
        self._roll()

    def _send(self, producer: int, partition: int, sent_us: int) -> None:
        sequence = self._sequences[partition]
        self._sequences[partition] += 1
        row = {
            "producer": producer,
            "attempt": self.attempt,
            "partition": partition,
            "sequence": sequence,
            "sent_us": sent_us,
        }
        value = schema.pack(
            bytes.fromhex(self._settings["run_id"]), producer, self.attempt, partition, sequence,
            sent_us, self._payload,
        )  # fmt: skip

        def delivered(error, message) -> None:
            if error is not None:
                if producer == CANARY:
                    self.unknown, self.last_unknown = self.unknown + 1, time.time()
                self._fatal |= error.fatal()
                return
            told = time.time_ns() // 1000
            self._rows.append({**row, "offset": message.offset(), "acknowledged_us": told})
            self.last_acknowledged[partition] = told / 1e6

        self._producer.produce(
            self._settings["topic"], value=value, partition=partition, on_delivery=delivered
        )

    def _roll(self) -> None:
        """Put what was acknowledged since the last time into a file of its own."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        count = self.acknowledged + sum(row["producer"] == CANARY for row in rows)
        # a sentinel alone does not change the count, and needs another name
        name = f"{count:015d}.json" if count > self.acknowledged else f"{count:015d}-end.json"
        draft = os.path.join(self._ledger, f".{name}.part")  # Spark does not see it
        with open(draft, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        os.replace(draft, os.path.join(self._ledger, name))
        self.acknowledged = count
        self._keep()

    def end(self) -> None:
        """Write no more, hear the last answers and note them."""
        self._ending.set()
        if self.is_alive():
            self.join(self._settings["delivery_timeout"] + 10)

    def send_sentinel(self, ahead_seconds: float) -> None:
        """After `end`: a record from the future, which moves the watermark beyond all others."""
        self._send(SENTINEL, 0, time.time_ns() // 1000 + int(ahead_seconds * 1e6))
        self._producer.flush(self._settings["delivery_timeout"] + 5)
        self._roll()

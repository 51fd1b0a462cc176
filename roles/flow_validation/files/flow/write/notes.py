# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Where an attempt at a produce task writes down what it knows, from the worker that it runs in.

A ledger in a directory is written by the worker itself. A worker is Python and cannot write to what
only Spark's JVM opens (HDFS): there it tells the driver, which writes it down before it answers.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError, connection
from typing import Any, Iterator, Optional, Protocol

from flow.messages.output import write_all
from flow.record import files, place
from flow.record.ledger import Attempt

END = "end"  # file beside the attempts' own: how many records of each partition the run shall have
# What a driver on another machine is reached at, if a firewall wants to know it (a setting of Spark).
PORT = "spark.kafkaops.ledger.port"
_KEY_BYTES = 32


class Notes(Protocol):
    """Of one attempt."""

    def save(self, attempt: Attempt) -> None:
        """Write the attempt's file; a reader finds the old or the new text, never half of one."""

    def part(self, attempt: Attempt, acked: dict) -> None:
        """Write a file of ranges, partition -> ranges, as the next of those that the attempt has."""

    def end(self) -> Optional[int]:
        """What the file END says; None while it is not there."""


def notes_of(settings: dict) -> Notes:
    """Of the settings of write.produce: `directory` of the attempts' files, or a `relay` to them."""
    relay = settings.get("relay")
    return _Told(tuple(relay["address"]), relay["key"]) if relay else _Kept(settings["directory"])


class _Kept:
    """In a directory that this machine sees."""

    def __init__(self, directory: str):
        self._directory = directory

    def save(self, attempt: Attempt) -> None:
        self._write(attempt.to_json())

    def part(self, attempt: Attempt, acked: dict) -> None:
        self._write(files.part_of(attempt, acked))

    def _write(self, told: dict) -> None:
        path = os.path.join(self._directory, os.path.basename(files.name_of(told)))
        write_all({path: files.sealed(told)})

    def end(self) -> Optional[int]:
        try:
            with open(os.path.join(self._directory, END), encoding="utf-8") as file:
                return int(file.read())
        except FileNotFoundError:
            return None


class _Told:
    """To the driver. Its answer to each note says when the run shall end."""

    def __init__(self, address: tuple, key: bytes):
        self._address, self._key = address, key
        self._driver: Any = None
        self._end: Optional[int] = None

    def save(self, attempt: Attempt) -> None:
        self._say(attempt.to_json())

    def part(self, attempt: Attempt, acked: dict) -> None:
        self._say(files.part_of(attempt, acked))

    def _say(self, told: dict) -> None:
        text = files.sealed(told).encode()
        try:
            self._end = self._tell(text)
        except (OSError, EOFError):  # once more, by a new connection
            self._driver = None
            self._end = self._tell(text)

    def end(self) -> Optional[int]:
        return self._end

    def _tell(self, text: bytes) -> Optional[int]:
        if self._driver is None:
            self._driver = connection.Client(self._address, authkey=self._key)
        self._driver.send_bytes(text)
        answer = json.loads(self._driver.recv_bytes())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["end"]


def set_end(ledger: str, position: int) -> None:
    """Tell all attempts that each partition shall have so many records."""
    place.of(ledger).write(f"{files.ATTEMPTS}/{END}", str(position))


def end_of(ledger: str) -> Optional[int]:
    """What `set_end` has said; None if it has not."""
    try:
        return int(place.of(ledger).read(f"{files.ATTEMPTS}/{END}"))
    except FileNotFoundError:
        return None


@contextmanager
def relaying(ledger: str, host: str, bind: str, port: int = 0) -> Iterator[dict]:
    """The `relay` of a produce task's settings, while the context is open; nothing for a directory.

    host: as workers reach this machine; bind: the address to listen at. Both sides prove to each
    other, by the key in the settings, that they belong to this run.
    """
    if not place.is_remote(ledger):
        yield {}
        return
    key = secrets.token_bytes(_KEY_BYTES)
    listener = connection.Listener((bind, port), backlog=128)
    over = threading.Event()
    threading.Thread(
        target=_accept, args=(listener, over, key, ledger), name="relay", daemon=True
    ).start()
    try:
        yield {"relay": {"address": (host, listener.address[1]), "key": key}}
    finally:
        over.set()
        with suppress(OSError):  # wakes the thread that accepts: it would take one more
            connection.Client(listener.address).close()
        listener.close()


def _accept(listener: connection.Listener, over: threading.Event, key: bytes, ledger: str) -> None:
    while True:
        worker = listener.accept()
        if over.is_set():
            worker.close()
            return
        threading.Thread(target=_serve, args=(worker, key, ledger), daemon=True).start()


def _serve(worker: Any, key: bytes, ledger: str) -> None:
    """Write down what one worker tells, until it is gone."""
    with worker, suppress(OSError, EOFError, AuthenticationError):
        connection.deliver_challenge(worker, key)
        connection.answer_challenge(worker, key)
        while True:
            told = worker.recv_bytes()
            worker.send_bytes(json.dumps(_written(ledger, told)).encode())


def _written(ledger: str, told: bytes) -> dict:
    try:
        place.of(ledger).write(files.name_of(json.loads(told)), told.decode())
        return {"end": end_of(ledger)}
    except Exception as error:  # the task says it, and ends
        return {"error": str(error)}

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The producer's client: what it is set to, whatever a person adds, and the files that its settings name."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, contextmanager
from typing import Iterator

from flow.messages.failure import CannotRun
from flow.messages.librdkafka import quiet_logger
from flow.record import own_names

# What a run is judged by, so that nobody else may set it, and why.
OWN_SETTINGS = {
    "acks": "it is all, since only that promises anything",
    "request.required.acks": "it is all, since only that promises anything",
    "enable.idempotence": "it is true, else the client itself writes records twice",
    "delivery.timeout.ms": "give --delivery-timeout",
    "message.timeout.ms": "give --delivery-timeout",
    "statistics.interval.ms": "the job hears of new epochs by it",
    "transactional.id": "give --transactional",
    "transaction.timeout.ms": "it follows from --delivery-timeout",
    "bootstrap.servers": "give --bootstrap-servers",
    "metadata.broker.list": "it is another name of bootstrap.servers; give --bootstrap-servers",
    "allow.auto.create.topics": "it is false, since the job makes no topic that somebody has deleted",
    "test.mock.num.brokers": "the cluster shall be a real one",
}
# How a client logs in: secrets, which every user of the machine would see on the job's command line.
LOGIN_BEGINNINGS = ("sasl.", "ssl.")
# Besides the value: the head of a batch, of a record, its key and header
BESIDE_BYTES = 512
# What a client keeps until it is acknowledged. Turns are so short that two of each partition fit, so
# that all partitions have something under way.
QUEUE_RECORDS = 200_000
QUEUE_KBYTES = 128 * 1024
STATISTICS_MS = 100  # how often the client tells its epoch, among other things


def client_settings(settings: dict, producer_number: int) -> dict:
    """librdkafka's, of one producer."""
    limit = int(settings["delivery_timeout"] * 1000)
    client = {
        "queue.buffering.max.messages": QUEUE_RECORDS,
        "queue.buffering.max.kbytes": QUEUE_KBYTES,
        # else the client itself refuses a record that the brokers take
        "message.max.bytes": max(1_000_000, settings["record_size"] + BESIDE_BYTES),
        **({"batch.size": settings["batch_bytes"]} if settings.get("batch_bytes") else {}),
        "log_level": 2,  # its warnings are about retries; what stays is in the ledger
        **settings["client"],
        "acks": "all",
        "enable.idempotence": True,
        "delivery.timeout.ms": limit,
        "statistics.interval.ms": STATISTICS_MS,
    }
    if settings["transaction_records"]:
        # the same for each attempt at the task, so that the next one ends what a killed one began
        client["transactional.id"] = own_names.own(settings["run_id"], producer_number)
        client["transaction.timeout.ms"] = int(settings["transaction_timeout"] * 1000)
    return client


def refuse_wrong(settings: dict) -> None:
    """CannotRun if the client does not take its settings, before anything is made for it."""
    from confluent_kafka import KafkaException, Producer

    try:
        Producer(client_settings(settings, 0), logger=quiet_logger())
    except KafkaException as error:
        raise CannotRun(_unusable(error.args[0].str())) from error
    except Exception as error:  # of a setting that only a program can give, such as a function
        raise CannotRun(_unusable(str(error))) from error


def _unusable(why: str) -> str:
    return f"the producer's settings are not usable: {why}; see --producer-property and --command-config"


@contextmanager
def named_files(texts: dict) -> Iterator[dict]:
    """key -> path of a file that only this process may read, while the context is open: what the
    settings name is on another machine. The client has read it when it is made.

    The files have no name on a disk, so a kill leaves no key there. Elsewhere than on Linux the name is
    gone at once.
    """
    with ExitStack() as made:
        places = {}
        for key, text in texts.items():
            if hasattr(os, "memfd_create"):
                file = os.fdopen(os.memfd_create("kafkaops"), "w", encoding="utf-8")
            else:
                file = tempfile.TemporaryFile("w", encoding="utf-8")
            made.enter_context(file)
            file.write(text)
            file.seek(0)
            places[key] = f"/dev/fd/{file.fileno()}"
        yield places

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The settings of the produce tasks, and where they keep their notes."""

from __future__ import annotations

import argparse
import os
from typing import Optional

from flow.record import files, place

_TO_END_SECONDS = 10  # for the end of a transaction, when all of its records are settled


def transaction_timeout(options: argparse.Namespace) -> float:
    """Seconds: its last record may take the whole delivery timeout, and then it must still end."""
    return options.delivery_timeout + _TO_END_SECONDS


def client_of(options: argparse.Namespace, settings: dict) -> dict:
    """Of the settings of write.produce those that the producer's client is made with."""
    extra = dict(p.split("=", 1) for p in options.producer_property)
    return {
        "client": {**settings, **extra},
        "record_size": options.record_size,
        "delivery_timeout": options.delivery_timeout,
        "transaction_records": int(options.transactional),
        "transaction_timeout": transaction_timeout(options),
    }


def task_of(options: argparse.Namespace, plan: files.Plan, settings: dict) -> dict:
    """The settings of write.produce."""
    return {
        **client_of(options, settings),
        "topic": plan.topic,
        "run_id": plan.run_id,
        "partitions": plan.partitions,
        "producers": plan.producers,
        "records": plan.records,
        "transaction_records": plan.transaction_records,
        "transaction_timeout": plan.transaction_timeout,
        "directory": attempts_directory(options.ledger),
        "rate": options.rate,
        "batch_bytes": plan.batch_bytes,
    }


def attempts_directory(ledger: str) -> Optional[str]:
    """Where produce tasks keep their files, which all executors share; None if they tell the driver."""
    if place.is_remote(ledger):
        return None
    return os.path.join(os.path.abspath(place.path_of(ledger)), files.ATTEMPTS)


def read_file(path: str) -> Optional[str]:
    """None if there is no such file, as where it is a directory of authorities."""
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The job's own settings, as a reader of the verdict may see them. Pure: options in, a dictionary out."""

from __future__ import annotations

from typing import Mapping

# What may hold a secret, or a path on the machine of whoever ran it, begins so.
_PRIVATE = ("sasl.", "ssl.", "bootstrap.")


def told(options: Mapping[str, object], client: Mapping[str, object], host: str) -> dict:
    """The part `settings` of verdict.json. options: by their names; client: librdkafka's settings;
    host: the machine on which the job ran. Nothing of it is a secret.
    """
    producer = dict(each.split("=", 1) for each in options["producer_property"])  # type: ignore[attr-defined]
    return {
        "host": host,
        "bootstrap_servers": options["bootstrap_servers"],
        "security_protocol": str(client.get("security.protocol", "plaintext")).upper(),
        "sasl_mechanism": client.get("sasl.mechanism"),
        "rate": options["rate"] or None,
        "duration_seconds": options["duration"] or None,
        "delivery_timeout_seconds": options["delivery_timeout"],
        "request_timeout_seconds": options["timeout"],
        "groups": options["groups"],
        "transactional": options["transactional"],
        "producer_properties": {
            name: value for name, value in producer.items() if not name.startswith(_PRIVATE)
        },
        "planned_replication_factor": options["replication_factor"],
        "planned_min_isr": options["min_isr"],
        "expected_brokers": options["expected_brokers"],
        "leaving_brokers": options["leaving_broker"],
    }

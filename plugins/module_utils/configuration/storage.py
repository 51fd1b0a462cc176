# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Who is who in the storage of a KRaft cluster: cluster id, directory ids, the first voters. Pure.

A directory id follows from the cluster's id and the node's. So a format that was killed between two nodes
goes on with the same voters, and nobody has to remember them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any, Iterable, Mapping

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint

UUID_BYTES = 16


def as_uuid(seed: bytes) -> str:
    """16 bytes that follow from `seed`, as Kafka writes a UUID: 22 characters of base64.

    Never one that begins with a dash, which Kafka's commands take for an option. Kafka's own never do.
    """
    while True:
        seed = hashlib.sha256(seed).digest()
        text = base64.urlsafe_b64encode(seed[:UUID_BYTES]).decode("ascii").rstrip("=")
        if not text.startswith("-"):
            return text


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID as Kafka writes it, and may stand behind an option of its commands."""
    if text.startswith("-") or len(text) != 22:
        return False
    try:
        return len(base64.b64decode(f"{text}==", altchars=b"-_", validate=True)) == UUID_BYTES
    except (binascii.Error, ValueError):
        return False


def directory_id(cluster_id: str, node_id: int) -> str:
    """The directory id of a controller's metadata, as its first format gives it."""
    return as_uuid(f"{cluster_id} {node_id}".encode("utf-8"))


def initial_controllers(cluster_id: str, controllers: Iterable[Mapping[str, Any]]) -> str:
    """The first voters as `kafka-storage.sh format --initial-controllers` takes them.

    `controllers`: dicts of `id address port`. The text has to be the same on every controller.
    """
    return ",".join(
        f"{each['id']}@{endpoint(each['address'], each['port'])}"
        f":{directory_id(cluster_id, int(each['id']))}"
        for each in sorted(controllers, key=lambda each: int(each["id"]))
    )

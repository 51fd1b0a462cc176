# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SCRAM credentials as Kafka stores them in ZooKeeper: made from a password, checked against one.

The format is that of Kafka's ScramCredentialUtils; the computation is RFC 5802's.
Pure. Private to the collection: names may change without notice.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Optional

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
# Kafka's own default; its brokers refuse less, and more than the other.
ITERATIONS = 4096
ITERATIONS_MAX = 16384


def credential(password: str, mechanism: str, salt: bytes, iterations: int = ITERATIONS) -> str:
    """Return "salt=..,stored_key=..,server_key=..,iterations=.." for `password`; `salt` is bytes."""
    name = HASHES[mechanism]
    salted = salted_password(password, mechanism, salt, iterations)
    client_key = hmac.new(salted, b"Client Key", name).digest()
    server_key = hmac.new(salted, b"Server Key", name).digest()
    stored_key = hashlib.new(name, client_key).digest()
    return (
        f"salt={_text(salt)},stored_key={_text(stored_key)},"
        f"server_key={_text(server_key)},iterations={iterations}"
    )


def salted_password(
    password: str, mechanism: str, salt: bytes, iterations: int = ITERATIONS
) -> bytes:
    """What both keys are made of."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode("utf-8"), salt, iterations)


def iterations_of(text: str) -> int:
    """The iterations of a stored credential, 0 for one that cannot be read."""
    found = re.search(r"\biterations=([0-9]+)", text)
    return int(found.group(1)) if found else 0


def matches(text: Optional[str], password: str, mechanism: str) -> bool:
    """Tell whether a stored credential was made from `password`; an unreadable one was not."""
    if not text:
        return False
    try:
        parts = dict(part.split("=", 1) for part in text.split(","))
        salt, iterations = base64.b64decode(parts["salt"]), int(parts["iterations"])
        wanted = credential(password, mechanism, salt, iterations)
    except (ValueError, KeyError):
        return False
    return hmac.compare_digest(text, wanted)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")

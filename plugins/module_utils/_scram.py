# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SCRAM credentials as Kafka stores them in ZooKeeper: made from a password, and checked against one. Pure.

The format is that of Kafka's ScramCredentialUtils; the computation is RFC 5802's.
Private to the collection: names may change without notice.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
# Kafka's own default; its brokers refuse less.
ITERATIONS = 4096


def credential(password, mechanism, salt, iterations=ITERATIONS):
    """Return "salt=..,stored_key=..,server_key=..,iterations=.." for `password`; `salt` is bytes."""
    name = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode("utf-8"), salt, iterations)
    client_key = hmac.new(salted, b"Client Key", name).digest()
    server_key = hmac.new(salted, b"Server Key", name).digest()
    return "salt=%s,stored_key=%s,server_key=%s,iterations=%d" % (
        _text(salt),
        _text(hashlib.new(name, client_key).digest()),
        _text(server_key),
        iterations,
    )


def matches(text, password, mechanism):
    """Tell whether a stored credential was made from `password`; an unreadable one was not."""
    try:
        parts = dict(part.split("=", 1) for part in (text or "").split(","))
        salt, iterations = base64.b64decode(parts["salt"]), int(parts["iterations"])
        wanted = credential(password, mechanism, salt, iterations)
    except (ValueError, KeyError):
        return False
    return hmac.compare_digest(text, wanted)


def _text(data):
    return base64.b64encode(data).decode("ascii")

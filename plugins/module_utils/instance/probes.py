# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Probes: what a started instance must answer before its start counts."""

from __future__ import annotations

import re
import socket
from typing import Any, Mapping, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.four_letter_words import (
    ask,
)

TIMEOUT_SECONDS = 2.0
Probe = Mapping[str, Any]  # host, port; optional: send (text), expect (regular expression)


def answer_of(probe: Probe, timeout: float = TIMEOUT_SECONDS) -> Optional[str]:
    """Return what `host`:`port` answers to `send` ("" to nothing), or None where nobody listens."""
    # An IPv6 listener may be bound as [::1]; the brackets belong to URLs alone.
    host, port = str(probe["host"]).strip("[]"), int(probe["port"])
    try:
        if probe.get("send"):
            return ask(host, port, probe["send"], timeout)
        with socket.create_connection((host, port), timeout):
            return ""
    except OSError:
        return None


def succeeds(probe: Probe) -> bool:
    """Tell whether the probe is answered as it expects."""
    answer = answer_of(probe)
    return answer is not None and re.search(probe.get("expect") or "", answer) is not None

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The one way to write host and port as one text."""

from __future__ import annotations

from typing import Any, Iterable, Tuple


def endpoint(host: Any, port: Any) -> str:
    """Return `host:port`, an IPv6 address in brackets."""
    host = str(host)
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{host}:{port}"


def endpoints(addresses: Iterable[Tuple[Any, Any]]) -> str:
    """Return `host:port,host:port` of (host, port) pairs."""
    return ",".join(endpoint(host, port) for host, port in addresses)

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The one way to write host and port as one text, and whether a URL can be read at all."""

from __future__ import annotations

import urllib.parse
from typing import Any, Iterable, Optional, Tuple


def endpoint(host: Any, port: Any) -> str:
    """Return `host:port`, an IPv6 address in brackets."""
    host = str(host)
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{host}:{port}"


def endpoints(addresses: Iterable[Tuple[Any, Any]]) -> str:
    """Return `host:port,host:port` of (host, port) pairs."""
    return ",".join(endpoint(host, port) for host, port in addresses)


def url_problem(url: str) -> Optional[Tuple[str, str]]:
    """Return (reason, remedy) of a URL whose login, host and port cannot be told apart; None of others, and of a path.

    Python's own words for it have a part of the password in them.
    """
    try:
        _port = urllib.parse.urlsplit(url).port
    except ValueError:
        return (
            "login, host and port cannot be told apart",
            "write / @ : # ? [ and ] in a user or password as %2F %40 %3A %23 %3F %5B and %5D; a port is a number",
        )
    return None

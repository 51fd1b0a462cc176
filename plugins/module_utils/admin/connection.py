# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How to reach a cluster, as a value; and `host:port` texts as (host, port) pairs.

Private to this collection. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoints
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

OAUTHBEARER = "OAUTHBEARER"  # the mechanism whose passwords are tokens of an OpenID provider
# What the client library accepts for one request.
TIMEOUT_MAX_SECONDS = 3600
# host:port, [v6]:port
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^\s:/\[\]]+)):([0-9]{1,5})\Z")


@dataclass(frozen=True)
class Connection:
    """How to reach a cluster. `addresses` are (host, port) pairs; the rest as in the options."""

    addresses: Tuple[Tuple[str, int], ...]
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: Optional[str] = None
    sasl_username: Optional[str] = None
    sasl_password: Optional[str] = None
    ssl_ca: Optional[str] = None
    ssl_certificate: Optional[str] = None
    ssl_key: Optional[str] = None
    ssl_key_password: Optional[str] = None
    ssl_check_hostname: bool = True
    timeout: float = 30.0
    cluster_id: Optional[str] = None
    sasl_token_url: Optional[str] = None
    sasl_token_ca: Optional[str] = None
    sasl_scope: Optional[str] = None

    @property
    def bootstrap(self) -> str:
        """The addresses as one text, for clients and for messages."""
        return endpoints(self.addresses)


def parse_addresses(
    texts: Sequence[str], option: str = "bootstrap_servers"
) -> Tuple[Tuple[str, int], ...]:
    """(host, port) pairs of `host:port` texts; AdminError where one is something else."""
    addresses = []
    for text in (part.strip() for entry in texts for part in str(entry).split(",")):
        if not text:
            continue
        match = _ADDRESS.match(text)
        if not match or not 0 < int(match.group(3)) < 65536:
            hint = "a broker has no URL" if "://" in text else "port and host are both needed"
            raise AdminError(
                Problem(
                    f"{option}.form",
                    f"not of the form host:port, {hint}",
                    "write host:port, several separated by commas, IPv6 as [::1]:9092",
                    setting=option,
                    value=text,
                )
            )
        addresses.append((match.group(1) or match.group(2), int(match.group(3))))
    if not addresses:
        raise AdminError(
            Problem(f"{option}.form", "no address given", "write host:port", setting=option)
        )
    return tuple(addresses)

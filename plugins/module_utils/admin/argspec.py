# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection and security options, shared by every module that talks to Kafka.

Private to this collection. The texts are in the doc fragment `kafka`; a unit test compares both.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from ansible.module_utils.basic import env_fallback

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoints
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
# What the client library accepts for one request.
TIMEOUT_MAX_SECONDS = 3600
# Of `operation_timeout`, where no records are copied.
OPERATION_MAX_SECONDS = 86400
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

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


def kafka_argument_spec(**options: Any) -> Dict[str, Any]:
    """The argument spec of a Kafka module: connection options and the module's own."""
    return dict(
        bootstrap_servers=dict(
            type="list",
            elements="str",
            required=True,
            fallback=(env_fallback, ["KAFKA_BOOTSTRAP_SERVERS"]),
        ),
        security_protocol=dict(
            type="str",
            choices=list(SECURITY_PROTOCOLS),
            default="PLAINTEXT",
            fallback=(env_fallback, ["KAFKA_SECURITY_PROTOCOL"]),
        ),
        sasl_mechanism=dict(
            type="str",
            choices=list(SASL_MECHANISMS),
            fallback=(env_fallback, ["KAFKA_SASL_MECHANISM"]),
        ),
        sasl_username=dict(type="str", fallback=(env_fallback, ["KAFKA_SASL_USERNAME"])),
        sasl_password=dict(
            type="str", no_log=True, fallback=(env_fallback, ["KAFKA_SASL_PASSWORD"])
        ),
        ssl_ca=dict(type="str", fallback=(env_fallback, ["KAFKA_SSL_CA"])),
        ssl_certificate=dict(type="str", fallback=(env_fallback, ["KAFKA_SSL_CERTIFICATE"])),
        ssl_key=dict(type="str", no_log=True, fallback=(env_fallback, ["KAFKA_SSL_KEY"])),
        ssl_key_password=dict(
            type="str", no_log=True, fallback=(env_fallback, ["KAFKA_SSL_KEY_PASSWORD"])
        ),
        ssl_check_hostname=dict(
            type="bool", default=True, fallback=(env_fallback, ["KAFKA_SSL_CHECK_HOSTNAME"])
        ),
        timeout=dict(type="float", default=30.0, fallback=(env_fallback, ["KAFKA_TIMEOUT"])),
        cluster_id=dict(type="str"),
        **options,
    )


# Keyword arguments of AnsibleModule that go with the spec.
KAFKA_RULES = dict(
    required_if=[
        (
            "security_protocol",
            "SASL_PLAINTEXT",
            ("sasl_mechanism", "sasl_username", "sasl_password"),
        ),
        ("security_protocol", "SASL_SSL", ("sasl_mechanism", "sasl_username", "sasl_password")),
    ],
    required_together=[("ssl_certificate", "ssl_key")],
)


def checked_seconds(name: str, value: float, most: float) -> float:
    """A number of seconds of an option; AdminError unless it is above 0 and at most `most`."""
    if not 0 < value <= most:
        raise AdminError(
            Problem(
                "options.range",
                f"must be more than 0 and at most {most:g} seconds",
                f"choose a number of seconds up to {most:g}",
                setting=name,
                value=f"{value:g}",
            )
        )
    return value


def _check_file(option: str, value: Optional[str]) -> None:
    """Refuse a path that cannot be read; PEM text is not a path."""
    if not value or "-----BEGIN" in value or os.access(value, os.R_OK):
        return
    exists = os.path.exists(value)
    raise AdminError(
        Problem(
            "options.file",
            "the file cannot be read" if exists else "there is no such file",
            "correct the path, or give the PEM text itself",
            setting=option,
            # A key that lost its first line is not a path to be shown.
            value="" if option == "ssl_key" else value.splitlines()[0][:200],
        )
    )


def connection_from(params: Mapping[str, Any]) -> Connection:
    """The Connection of a module's parameters; AdminError for what cannot be one."""
    checked_seconds("timeout", params["timeout"], TIMEOUT_MAX_SECONDS)
    if params["security_protocol"].endswith("SSL"):
        for option in ("ssl_ca", "ssl_certificate", "ssl_key"):
            _check_file(option, params[option])
    same = (
        *("security_protocol", "sasl_mechanism", "sasl_username", "sasl_password", "ssl_ca"),
        *("ssl_certificate", "ssl_key", "ssl_key_password", "ssl_check_hostname"),
        *("timeout", "cluster_id"),
    )
    return Connection(
        addresses=parse_addresses(params["bootstrap_servers"]),
        **{name: params[name] for name in same},
    )

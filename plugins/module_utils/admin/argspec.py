# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection and security options, shared by every module that talks to Kafka.

Private to this collection. The texts are in the doc fragment `kafka`; a unit test compares both.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Mapping, Optional

from ansible.module_utils.basic import AnsibleFallbackNotFound, env_fallback

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    OAUTHBEARER,
    TIMEOUT_MAX_SECONDS,
    Connection,
    parse_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ranges import checked_seconds
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import masked_text
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)


def from_environment(*names: str) -> str:
    """As Ansible's own, but a variable that is set to nothing says nothing: so a task can hide an exported one."""
    value = env_fallback(*names)
    if not value:
        raise AnsibleFallbackNotFound
    return str(value)


# Of modules that can outlive the playbook that they belong to; documented in the doc fragment `fence`.
FENCE_OPTIONS = dict(
    lock=dict(
        type="dict",
        default={},
        options=dict(directory=dict(type="path"), cluster=dict(type="str"), owner=dict(type="str")),
    ),
    run=dict(
        type="dict",
        default={},
        options=dict(pid=dict(type="int"), start_ticks=dict(type="int")),
    ),
)
# Of a module that judges what fits a disk; documented in the fragment `disks`.
DISK_OPTIONS = dict(
    known_disks=dict(
        type="list",
        elements="dict",
        default=[],
        options=dict(
            broker=dict(type="int", required=True),
            path=dict(type="str", required=True),
            disk=dict(type="str", required=True),
        ),
    ),
)


def kafka_argument_spec(**options: Any) -> Dict[str, Any]:
    """The argument spec of a Kafka module: connection options and the module's own."""
    return dict(
        bootstrap_servers=dict(
            type="list",
            elements="str",
            required=True,
            fallback=(from_environment, ["KAFKA_BOOTSTRAP_SERVERS"]),
        ),
        security_protocol=dict(
            type="str",
            choices=list(SECURITY_PROTOCOLS),
            default="PLAINTEXT",
            fallback=(from_environment, ["KAFKA_SECURITY_PROTOCOL"]),
        ),
        sasl_mechanism=dict(
            type="str",
            choices=list(SASL_MECHANISMS),
            fallback=(from_environment, ["KAFKA_SASL_MECHANISM"]),
        ),
        sasl_username=dict(type="str", fallback=(from_environment, ["KAFKA_SASL_USERNAME"])),
        sasl_password=dict(
            type="str", no_log=True, fallback=(from_environment, ["KAFKA_SASL_PASSWORD"])
        ),
        sasl_token_url=dict(
            type="str", no_log=False, fallback=(from_environment, ["KAFKA_SASL_TOKEN_URL"])
        ),
        sasl_token_ca=dict(
            type="str", no_log=False, fallback=(from_environment, ["KAFKA_SASL_TOKEN_CA"])
        ),
        sasl_scope=dict(type="str", fallback=(from_environment, ["KAFKA_SASL_SCOPE"])),
        ssl_ca=dict(type="str", fallback=(from_environment, ["KAFKA_SSL_CA"])),
        ssl_certificate=dict(type="str", fallback=(from_environment, ["KAFKA_SSL_CERTIFICATE"])),
        ssl_key=dict(type="str", no_log=True, fallback=(from_environment, ["KAFKA_SSL_KEY"])),
        ssl_key_password=dict(
            type="str", no_log=True, fallback=(from_environment, ["KAFKA_SSL_KEY_PASSWORD"])
        ),
        ssl_check_hostname=dict(
            type="bool", default=True, fallback=(from_environment, ["KAFKA_SSL_CHECK_HOSTNAME"])
        ),
        timeout=dict(type="float", default=30.0, fallback=(from_environment, ["KAFKA_TIMEOUT"])),
        cluster_id=dict(type="str"),
        **options,
    )


# Keyword arguments of AnsibleModule that go with the spec.
KAFKA_RULES: Dict[str, Any] = dict(
    required_if=[
        (
            "security_protocol",
            "SASL_PLAINTEXT",
            ("sasl_mechanism", "sasl_username", "sasl_password"),
        ),
        ("security_protocol", "SASL_SSL", ("sasl_mechanism", "sasl_username", "sasl_password")),
        ("sasl_mechanism", OAUTHBEARER, ("sasl_token_url",)),
    ],
    required_together=[("ssl_certificate", "ssl_key")],
)


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


def _check_url(value: str) -> None:
    """Refuse what is not an address of a token endpoint."""
    if re.match(r"https?://[^\s/]+", value):
        return
    raise AdminError(
        Problem(
            "options.url",
            "not an address of a token endpoint",
            "write it with https://, as the provider's discovery document names token_endpoint",
            setting="sasl_token_url",
            value=masked_text(value)[:200],
        )
    )


def connection_from(params: Mapping[str, Any]) -> Connection:
    """The Connection of a module's parameters; AdminError for what cannot be one."""
    checked_seconds("timeout", params["timeout"], TIMEOUT_MAX_SECONDS)
    if params["security_protocol"].endswith("SSL"):
        for option in ("ssl_ca", "ssl_certificate", "ssl_key"):
            _check_file(option, params[option])
    if params["sasl_mechanism"] == OAUTHBEARER:
        _check_file("sasl_token_ca", params["sasl_token_ca"])
        _check_url(str(params["sasl_token_url"]))
    same = (
        *("security_protocol", "sasl_mechanism", "sasl_username", "sasl_password", "ssl_ca"),
        *("sasl_token_url", "sasl_token_ca", "sasl_scope"),
        *("ssl_certificate", "ssl_key", "ssl_key_password", "ssl_check_hostname"),
        *("timeout", "cluster_id"),
    )
    return Connection(
        addresses=parse_addresses(params["bootstrap_servers"]),
        **{name: params[name] for name in same},
    )

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Connection as the settings of each client library.

Private to this collection. Imports neither library; `client.token` makes what kafka-python wants for tokens.
"""

from __future__ import annotations

import contextlib
import ssl
from typing import Any, Dict

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.token import (
    encoded,
    provider,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    OAUTHBEARER,
    Connection,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import in_memory, path_of


def librdkafka_settings(connection: Connection) -> Dict[str, Any]:
    """librdkafka's properties of a connection; PEM text is passed on in memory."""
    settings = {
        "bootstrap.servers": connection.bootstrap,
        "security.protocol": connection.security_protocol,
        "client.id": "kafkaops",
        # It would cut short what is allowed to take long, such as creating 500 topics: every call
        # has a timeout of its own instead.
        "socket.timeout.ms": 300000,
    }
    if connection.security_protocol.startswith("SASL"):
        settings["sasl.mechanism"] = connection.sasl_mechanism
        if connection.sasl_mechanism == OAUTHBEARER:
            settings.update(_oidc(connection))
        else:
            settings["sasl.username"] = connection.sasl_username
            settings["sasl.password"] = connection.sasl_password
    if connection.security_protocol.endswith("SSL"):
        for value, pem, location in (
            (connection.ssl_ca, "ssl.ca.pem", "ssl.ca.location"),
            (connection.ssl_certificate, "ssl.certificate.pem", "ssl.certificate.location"),
            (connection.ssl_key, "ssl.key.pem", "ssl.key.location"),
        ):
            if value:
                settings[pem if "-----BEGIN" in value else location] = value
        if connection.ssl_key_password:
            settings["ssl.key.password"] = connection.ssl_key_password
        if not connection.ssl_check_hostname:
            settings["ssl.endpoint.identification.algorithm"] = "none"
    return settings


def _oidc(connection: Connection) -> Dict[str, Any]:
    user, password = encoded(connection)  # librdkafka joins them as they are
    settings = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": user,
        "sasl.oauthbearer.client.secret": password,
        "sasl.oauthbearer.token.endpoint.url": connection.sasl_token_url,
    }
    if connection.sasl_scope:
        settings["sasl.oauthbearer.scope"] = connection.sasl_scope
    if connection.sasl_token_ca:
        text = "-----BEGIN" in connection.sasl_token_ca
        settings["https.ca.pem" if text else "https.ca.location"] = connection.sasl_token_ca
    return settings


class kafka_python_settings:  # pylint: disable=invalid-name
    """kafka-python's keyword arguments of a connection, as a context.

    Python's ssl module reads certificates and keys from files only: PEM text goes into files in
    memory, which are gone afterwards.
    """

    def __init__(self, connection: Connection):
        self._connection = connection
        self._texts = contextlib.ExitStack()

    def __enter__(self) -> Dict[str, Any]:
        connection = self._connection
        settings = {
            "bootstrap_servers": connection.bootstrap.split(","),
            "security_protocol": connection.security_protocol,
            "request_timeout_ms": int(max(1000, connection.timeout * 1000)),
            "client_id": "kafkaops",
        }
        if connection.security_protocol.startswith("SASL"):
            settings["sasl_mechanism"] = connection.sasl_mechanism
            if connection.sasl_mechanism == OAUTHBEARER:
                settings["sasl_oauth_token_provider"] = provider(connection)
            else:
                settings["sasl_plain_username"] = connection.sasl_username
                settings["sasl_plain_password"] = connection.sasl_password
        if connection.security_protocol.endswith("SSL"):
            settings["ssl_context"] = self._context()
        return settings

    def _context(self) -> ssl.SSLContext:
        connection = self._connection
        context = ssl.create_default_context()
        context.check_hostname = connection.ssl_check_hostname
        if connection.ssl_ca:
            if "-----BEGIN" in connection.ssl_ca:
                context.load_verify_locations(cadata=connection.ssl_ca)
            else:
                context.load_verify_locations(connection.ssl_ca)
        if connection.ssl_certificate and connection.ssl_key:
            context.load_cert_chain(
                self._path(connection.ssl_certificate),
                self._path(connection.ssl_key),
                connection.ssl_key_password,
            )
        return context

    def _path(self, value: str) -> str:
        if "-----BEGIN" not in value:
            return value
        return path_of(self._texts.enter_context(in_memory(value)))

    def __exit__(self, *_exc: Any) -> None:
        self._texts.close()

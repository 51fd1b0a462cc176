# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A token of an OpenID provider, by the client credentials grant (RFC 6749, 4.4).

Private to this collection. librdkafka fetches its tokens itself, and says of a failure only that it failed:
so one is fetched before it is asked. kafka-python has its tokens from here.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import masked_text
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# Of its life: so long a token is used again.
USED_SHARE = 0.8
# Where the provider does not say how long one lives.
LIFE_SECONDS = 300.0
_LONGEST_ANSWER = 1 << 20


@dataclass(frozen=True)
class Token:
    """A token, and until when it is used, in seconds of the clock that it was fetched by."""

    value: str
    until: float


def fetch_token(connection: Connection, clock: Callable[[], float] = time.monotonic) -> Token:
    """A new token for the user of a connection; AdminError that says what the provider did not like."""
    form: Dict[str, str] = {"grant_type": "client_credentials"}
    if connection.sasl_scope:
        form["scope"] = connection.sasl_scope
    request = urllib.request.Request(
        str(connection.sasl_token_url),
        data=urllib.parse.urlencode(form).encode("ascii"),
        headers={
            "Accept": "application/json",
            "Authorization": f"Basic {_basic(connection)}",
            "Content-Type": "application/x-www-form-urlencoded",
        },
    )
    try:
        # Not Ansible's open_url: it reads authorities from files only, and PEM text stays in memory.
        https = urllib.request.HTTPSHandler(context=_context(connection.sasl_token_ca))
        opener = urllib.request.build_opener(https)
        with opener.open(request, timeout=connection.timeout) as answer:
            told = json.loads(answer.read(_LONGEST_ANSWER))
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(connection, error.code, error.read(_LONGEST_ANSWER)) from error
    except (OSError, ValueError) as error:
        why = str(getattr(error, "reason", "") or error) or type(error).__name__
        raise _problem(
            connection,
            f"no token came: {why}",
            "correct sasl_token_url or sasl_token_ca, or start the provider",
        ) from error
    value = told.get("access_token") if isinstance(told, dict) else None
    if not isinstance(value, str) or not value:
        raise _problem(
            connection, "the answer has no access_token", "name the provider's token endpoint"
        )
    life = told.get("expires_in")
    seconds = float(life) if isinstance(life, (int, float)) and life > 0 else LIFE_SECONDS
    return Token(value, clock() + USED_SHARE * seconds)


def provider(connection: Connection) -> Any:
    """What kafka-python takes as sasl_oauth_token_provider: it asks for a token at each connection."""
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):
        """Keeps a token for as long as it is good."""

        _token: Optional[Token] = None

        def token(self) -> str:
            """The token as text."""
            if self._token is None or time.monotonic() >= self._token.until:
                self._token = fetch_token(connection)
            return self._token.value

    return Provider()


def encoded(connection: Connection) -> Tuple[str, str]:
    """(user, password) as they are joined for the provider: else a colon in one would end it (RFC 6749, 2.3.1)."""
    parts = (connection.sasl_username, connection.sasl_password)
    user, password = (urllib.parse.quote_plus(str(part or "")) for part in parts)
    return user, password


def _basic(connection: Connection) -> str:
    return base64.b64encode(":".join(encoded(connection)).encode("ascii")).decode("ascii")


def _context(authority: Optional[str]) -> ssl.SSLContext:
    if authority and "-----BEGIN" in authority:
        return ssl.create_default_context(cadata=authority)
    return ssl.create_default_context(cafile=authority or None)


def _refused(connection: Connection, status: int, body: bytes) -> AdminError:
    try:
        told = json.loads(body)
        words = [str(told[key]) for key in ("error", "error_description") if told.get(key)]
    except (ValueError, TypeError, AttributeError):
        words = []
    why = f"HTTP {status}{': ' if words else ''}{', '.join(words)[:200]}"
    return _problem(
        connection,
        f"the provider gives no token to user {connection.sasl_username}: {why}",
        "correct sasl_username, sasl_password or sasl_scope",
    )


def _problem(connection: Connection, reason: str, remedy: str) -> AdminError:
    url = masked_text(str(connection.sasl_token_url))
    return AdminError(
        Problem(
            "connection.token",
            masked_text(reason),
            remedy,
            (connection.bootstrap,),
            setting="sasl_token_url",
            value=url,
        )
    )

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An OpenID provider as far as machines log in with it: a token endpoint, by HTTPS, and its public key.

The tokens are signed (RS256), and brokers verify them by the key that `write_keys` has given them.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
LOGIN_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
AUDIENCE = "kafka"
LIFE_SECONDS = 300
# id -> secret; a sign in each that has to be encoded
CLIENTS = {"team:a": "s%cret & more", "stranger": "other"}


def _text(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class TokenProvider:
    """Gives tokens to CLIENTS; to `stranger` those of another audience. `asked`: forms that came."""

    def __init__(self, directory, certificate):
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.asked = []
        files = {"certificate.pem": certificate.certificate, "key.pem": certificate.key}
        for name, text in files.items():
            (directory / name).write_text(text)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*(str(directory / name) for name in files))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.keys = directory / "keys.json"
        self._write_keys()
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}/token"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def of_brokers(self, listener):
        """(settings of brokers with this listener, flags of their JVM)."""
        url, prefix = self.keys.as_uri(), f"listener.name.{listener.lower()}"
        settings = {
            f"{prefix}.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{prefix}.oauthbearer.sasl.jaas.config": LOGIN_MODULE,
            f"{prefix}.oauthbearer.sasl.server.callback.handler.class": HANDLER,
            f"{prefix}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": url,
            f"{prefix}.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
        }
        # from Kafka 4 on
        return settings, (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}",)

    def _write_keys(self):
        numbers = self._key.public_key().public_numbers()
        modulus = numbers.n.to_bytes(256, "big")
        key = {"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig"}
        key.update(n=_text(modulus), e=_text(numbers.e.to_bytes(3, "big")))
        self.keys.write_text(json.dumps({"keys": [key]}))

    def token(self, client, scope):
        """A signed token."""
        now = int(time.time())
        head = {"alg": "RS256", "typ": "JWT", "kid": "1"}
        claims = {"sub": client, "iat": now, "exp": now + LIFE_SECONDS, "scope": scope}
        claims["aud"] = AUDIENCE if client != "stranger" else "something else"
        signed = ".".join(_text(json.dumps(each).encode()) for each in (head, claims))
        return f"{signed}.{_text(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def _answer(self, authorization, body):
        """(status, document)."""
        form = {key: values[0] for key, values in urllib.parse.parse_qs(body).items()}
        self.asked.append(form)
        given = base64.b64decode(authorization.partition("Basic ")[2]).decode().split(":")
        client, secret = (urllib.parse.unquote_plus(part) for part in (*given, "")[:2])
        if CLIENTS.get(client) != secret:
            return 401, {"error": "invalid_client", "error_description": "no such secret"}
        if form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        token = self.token(client, form.get("scope", ""))
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": LIFE_SECONDS}

    def _handler(self):
        provider = self

        class Handler(BaseHTTPRequestHandler):
            """One request."""

            def do_POST(self):
                """The token endpoint; nothing else is there."""
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                status, document = 404, {}
                if self.path == "/token":
                    status, document = provider._answer(self.headers["Authorization"] or "", body)
                text = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_arguments):
                """Nothing on the console."""

        return Handler

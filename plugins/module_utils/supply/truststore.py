# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give a JVM the certificate authorities that the operating system trusts, and the proxies.

A JVM brings authorities of its own, so a proxy or mirror that the machine trusts may be a stranger
to it; a JVM from PyPI never learns of them. Private to this collection. Standard library
only: the validation job, which runs outside of Ansible, loads this file for its own fetch.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import ssl
import struct
import urllib.parse
from typing import List, Mapping, Optional

# Protects nothing, the content is public; but the format wants one, and this is Java's own.
PASSWORD = "changeit"
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


def system_bundle(environment: Optional[Mapping[str, str]] = None) -> str:
    """Path of the system's PEM bundle, "" if there is none; SSL_CERT_FILE counts first."""
    environment = os.environ if environment is None else environment
    candidates = [environment.get("SSL_CERT_FILE") or "", ssl.get_default_verify_paths().cafile]
    candidates += ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"]
    candidates += ["/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"]
    return next((path for path in candidates if path and os.path.isfile(path)), "")


def java_keystore(pem: bytes) -> bytes:
    """Turn a PEM bundle (bytes) into a JKS key store (bytes) of trusted certificates.

    The format: magic, version 2, then for each entry tag 2, alias, time, type, certificate; at the
    end a SHA-1 over the password, a constant and all before.
    """
    certificates = [base64.b64decode(body) for body in _CERTIFICATE.findall(pem)]
    store = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, certificate in enumerate(certificates):
        store += struct.pack(">I", 2) + _text(f"ca{number}") + struct.pack(">Q", 0)
        store += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    seal = PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + store
    return store + hashlib.sha1(seal, usedforsecurity=False).digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def trust_flags(path: str, environment: Optional[Mapping[str, str]] = None) -> List[str]:
    """Write a key store of the system's authorities to `path`; returns the JVM's flags for it.

    An empty list if the system has no bundle.
    """
    bundle = system_bundle(environment)
    if not bundle:
        return []
    with open(bundle, "rb") as stream:
        store = java_keystore(stream.read())
    with open(path, "wb") as stream:
        stream.write(store)
    return [
        f"-Djavax.net.ssl.trustStore={path}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    ]


def proxy_flags(environment: Mapping[str, str]) -> List[str]:
    """The usual proxy variables as Java properties: a JVM does not read the variables itself."""
    flags = []
    for scheme in ("http", "https"):
        value = environment.get(f"{scheme}_proxy") or environment.get(f"{scheme.upper()}_PROXY")
        if not value:
            continue
        address = urllib.parse.urlsplit(value if "//" in value else "//" + value)
        if address.hostname:
            flags.append(f"-D{scheme}.proxyHost={address.hostname}")
            flags.append(f"-D{scheme}.proxyPort={address.port or 80}")
    excluded = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    hosts = [host.strip() for host in excluded.split(",") if host.strip()]
    if flags and hosts:
        patterns = ["*" + host if host.startswith(".") else host for host in hosts]
        flags.append("-Dhttp.nonProxyHosts=" + "|".join(patterns))
    return flags

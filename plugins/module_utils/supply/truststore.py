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
from typing import Iterator, List, Mapping, Optional, Tuple

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


def _proxies(environment: Mapping[str, str]) -> Iterator[Tuple[str, urllib.parse.SplitResult]]:
    """(scheme, address) of the usual proxy variables."""
    for scheme in ("http", "https"):
        value = environment.get(f"{scheme}_proxy") or environment.get(f"{scheme.upper()}_PROXY")
        if value:
            yield scheme, urllib.parse.urlsplit(value if "//" in value else "//" + value)


def login_flags(path: str, environment: Mapping[str, str]) -> List[str]:
    """Write the login of a proxy to `path`, a file of arguments for its owner alone; returns the JVM's word for it.

    An empty list if no proxy wants one. On the command line every user of the machine would see it. Ivy has one login
    for all proxies; Java sends none to a proxy through which it tunnels, unless it is told to.
    """
    logins = [each for _scheme, each in _proxies(environment) if each.username]
    if not logins:
        return []
    user, password = (
        urllib.parse.unquote(text or "") for text in (logins[0].username, logins[0].password)
    )
    words = [f"-Dhttp.proxyUser={user}", f"-Dhttp.proxyPassword={password}"]
    quoted = [each.replace("\\", "\\\\").replace('"', '\\"') for each in words]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write("".join(f'"{each}"\n' for each in quoted))
        stream.write("-Djdk.http.auth.tunneling.disabledSchemes=\n")
    return [f"@{path}"]


def proxy_flags(environment: Mapping[str, str]) -> List[str]:
    """The usual proxy variables as Java properties: a JVM does not read the variables itself."""
    flags = []
    for scheme, address in _proxies(environment):
        if address.hostname:
            flags.append(f"-D{scheme}.proxyHost={address.hostname}")
            flags.append(f"-D{scheme}.proxyPort={address.port or 80}")
    excluded = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    hosts = [host.strip() for host in excluded.split(",") if host.strip()]
    if flags and hosts:
        patterns = ["*" + host if host.startswith(".") else host for host in hosts]
        flags.append("-Dhttp.nonProxyHosts=" + "|".join(patterns))
    return flags

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An authority and certificates for 127.0.0.1, made anew in each session: none can expire in the repository."""

from __future__ import annotations

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DAY = datetime.timedelta(days=1)


def _name(text):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _builder(subject, issuer, key):
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
    )


def _write(directory, name, certificate, key):
    text = certificate.public_bytes(serialization.Encoding.PEM)
    (directory / f"{name}.crt").write_bytes(text)
    (directory / f"{name}.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    (directory / f"{name}.key").chmod(0o600)


def make_certificates(directory, names):
    """Write ca.crt, and NAME.crt and NAME.key (PKCS#8, PEM) of each name, signed by it, into a folder."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = (
        _builder("test authority", "test authority", authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    _write(directory, "ca", authority, authority_key)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    for name in names:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(name, "test authority", key)
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .sign(authority_key, hashes.SHA256())
        )
        _write(directory, name, certificate, key)

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A certificate that signs itself: of a server at 127.0.0.1, of its authority and of its client in one."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass


@dataclass
class Certificate:
    """A self-signed certificate for 127.0.0.1 and its key, as PEM text."""

    certificate: str
    key: str

    def of_brokers(self) -> dict:
        """Properties of brokers whose certificate it is."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _one_line(self.certificate),
            "ssl.keystore.key": _one_line(self.key),
        }

    def of_clients(self, listener: str) -> dict:
        """Properties of brokers whose clients must show it on this listener."""
        prefix = f"listener.name.{listener.lower()}.ssl"
        return {
            f"{prefix}.client.auth": "required",
            f"{prefix}.truststore.type": "PEM",
            f"{prefix}.truststore.certificates": _one_line(self.certificate),
        }


def _one_line(pem: str) -> str:
    return pem.replace("\n", "\\n")


def self_signed(common_name: str) -> Certificate:
    """Good for two days from now."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
    )

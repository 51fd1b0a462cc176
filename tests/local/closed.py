# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters that talk to nobody without TLS, a name and a password of SCRAM, and whose authorizer asks for rights."""

from __future__ import annotations

import secrets

from tests.local.certificates import make_certificates
from tests.local.support import Unsafe

INVENTORY = "tests/local/inventories/secured-kraft"
CONTROLLERS = {"controller-1": 101}
USERS = ("broker", "admin", "alice")
SCRAM = "SCRAM-SHA-512"


def secure(cluster, version):
    """Give the cluster its certificates and passwords, and return these by user; nothing is deployed yet.

    Its client_settings are those of the user admin.
    """
    passwords = {user: secrets.token_urlsafe(9) + " \"$\\'#=,[]:{{" + user for user in USERS}
    folder = cluster.overlay / "certificates"
    folder.mkdir()
    make_certificates(folder, [*cluster.brokers, *CONTROLLERS])
    cluster.configure("all", kafka_version=version)
    for group in ("kafka", "controllers"):
        told = {user: Unsafe(text) for user, text in passwords.items()}
        cluster.configure(
            group,
            secured_certificates=str(folder),
            secured_passwords=told,
            kafka_sasl={
                "mechanisms": [SCRAM],
                "inter_broker_user": "broker",
                "inter_broker_password": told["broker"],
                "users": {user: told[user] for user in ("admin", "alice")},
            },
            kafka_client_security={
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": SCRAM,
                "sasl_username": "admin",
                "sasl_password": told["admin"],
                "ssl_ca": "{{ kafka_ssl.ca }}",
            },
        )
    cluster.client_settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": SCRAM,
        "sasl.username": "admin",
        "sasl.password": passwords["admin"],
        "ssl.ca.location": str(folder / "ca.crt"),
    }
    return passwords

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""SCRAM credentials against the example of RFC 7677, and against wrong passwords."""

import base64
import hashlib
import hmac

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.scram import (
    credential,
    matches,
)


def test_the_server_signature_is_that_of_rfc_7677():
    # Section 3: user "user", password "pencil".
    text = credential("pencil", "SCRAM-SHA-256", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    server_key = base64.b64decode(
        dict(part.split("=", 1) for part in text.split(","))["server_key"]
    )
    message = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = hmac.new(server_key, message, hashlib.sha256).digest()
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_credential_matches_its_password_and_no_other(mechanism):
    text = credential("secret", mechanism, b"0123456789abcdef")
    assert matches(text, "secret", mechanism)
    assert not matches(text, "Secret", mechanism)
    assert not matches("", "secret", mechanism) and not matches("salt=?", "secret", mechanism)

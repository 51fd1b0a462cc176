# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the guard of KRaft mode talks to controllers: bytes, TLS and logins; no Kafka here, and real sockets."""

from __future__ import annotations

import ast
import contextlib
import socket
import ssl
import struct
import threading
import time

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    broker_properties,
    properties_text,
)
from tests.local.certificates import make_certificates
from tests.support.told_controller import FILES, registration, told_controllers, wire

# ---------------------------------------------------------------- requests and answers


def test_requests_are_written_as_kafka_reads_them():
    """Byte by byte, as they were seen to work (reference: kraft-wire.py)."""
    beat = {
        "broker": 2,
        "epoch": 155,
        "metadata_offset": 0,
        "want_fence": True,
        "want_shut_down": False,
    }
    assert (
        wire.BROKER_HEARTBEAT.request.encode(beat)
        == struct.pack(">iqq??", 2, 155, 0, True, False) + b"\0"
    )
    assert wire.UNREGISTER_BROKER.request.encode({"broker": 2}) == b"\0\0\0\2\0"
    partition = {"index": 0, "leader": 3, "epoch": 7, "successors": [-1]}
    election = {
        "cluster_id": "abc",
        "topics": [{"name": "__cluster_metadata", "partitions": [partition]}],
    }
    assert wire.END_QUORUM_EPOCH.request.encode(election) == (
        b"\0\3abc"
        + struct.pack(">ih", 1, 18)
        + b"__cluster_metadata"
        + struct.pack(">iiiiii", 1, 0, 3, 7, 1, -1)
    )


ANSWERS = [
    (wire.BROKER_HEARTBEAT, {"throttle_ms": 0, "error": 0, "caught_up": True, "fenced": True}),
    (wire.UNREGISTER_BROKER, {"throttle_ms": 0, "error": 31, "message": "no"}),
    (wire.API_VERSIONS, {"error": 0, "apis": [{"key": 63, "min": 0, "max": 2}] * 3}),
    (
        wire.END_QUORUM_EPOCH,
        {
            "error": 0,
            "topics": [
                {"name": "t", "partitions": [{"index": 0, "error": 74, "leader": 1, "epoch": 9}]}
            ],
        },
    ),
]


@pytest.mark.parametrize("api, values", ANSWERS, ids=[api.name for api, values in ANSWERS])
def test_an_answer_that_ends_early_is_no_answer(api, values):
    full = {"should_shut_down": False, **values}
    data = api.answer.encode(full)
    found, end = api.answer.decode(data, 0)
    assert end == len(data) and {**found, **values} == found
    for cut in range(len(data)):
        with pytest.raises(wire.WireError):
            api.answer.decode(data[:cut], 0)


@given(st.binary(max_size=60), st.sampled_from([api for api, values in ANSWERS]))
def test_noise_is_read_or_refused(data, api):
    try:
        dummy, end = api.answer.decode(data, 0)
    except wire.WireError:
        return
    assert end <= len(data)


@given(st.integers(min_value=0, max_value=2**31 - 1))
def test_numbers_in_groups_of_seven_bits(number):
    data = wire.varint(number)
    assert wire.read_varint(data, 0) == (number, len(data))


def test_fields_that_a_later_version_adds_are_skipped():
    # two tagged fields: 0 of three bytes, 5 of none
    assert wire.Tags.decode(b"\2\0\3abc\5\0rest", 0) == (None, 8)


@pytest.mark.parametrize(
    "name", ["fencing.py", "hanging.py", "metadata_log.py", "quorum_wire.py", "registration.py"]
)
def test_it_runs_with_the_python_of_an_old_system(name):
    """The guard falls back to /usr/bin/python3, which is 3.6 on RHEL 8."""
    tree = ast.parse((FILES / name).read_text(encoding="utf-8"), feature_version=(3, 6))
    futures = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [node for node in futures if node.module == "__future__"]


# ---------------------------------------------------------------- what the node's own settings say


USER, PASSWORD = "broker", 'x" \\$\'#=,[]:{{ password="no" ü€😀'
LOGIN = {"inter_broker_user": USER, "inter_broker_password": PASSWORD, "mechanisms": ["PLAIN"]}


def settings_of(tmp_path, protocol, sasl=None, **more):
    """The settings of a node as the role writes them for Kafka, read as the guard reads them."""
    quorum = {"roles": ["controller"], "bind": "", "address": "a", "port": 9093}
    properties = broker_properties(
        broker_id=1,
        listeners=[{"name": "INTERNAL", "port": 9092, "bind": "", "advertised": "a"}],
        log_dirs=["/data"],
        zookeeper_connect="",
        brokers=1,
        config_dir=str(tmp_path),
        ssl={"client_auth": "none"} if protocol.endswith("SSL") else None,
        sasl=(sasl or LOGIN) if protocol.startswith("SASL_") else None,
        quorum={
            **quorum,
            "protocol": protocol,
            "controllers": [{"id": 1, "address": "a", "port": 9093}],
        },
        config=more,
    )
    path = tmp_path / "server.properties"
    path.write_text(properties_text(properties), encoding="latin-1")
    return registration.read_properties(str(path))


def door_of(tmp_path, protocol, **more):
    return wire.Door(settings_of(tmp_path, protocol, **more))


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_the_door_is_that_of_the_controllers(tmp_path, protocol):
    door = door_of(tmp_path, protocol)
    assert door.protocol == protocol
    assert door.asks_for_login == protocol.startswith("SASL_")
    if door.asks_for_login:
        assert door.credentials() == (USER, PASSWORD)


def test_a_listener_that_no_map_names_speaks_in_clear():
    named = {"controller.listener.names": "CONTROLLER"}
    assert wire.Door({**named, "listener.security.protocol.map": "A:SSL"}).protocol == "PLAINTEXT"
    assert wire.Door(named).protocol == "PLAINTEXT"
    by_itself = {"controller.listener.names": "SASL_SSL"}
    assert wire.Door(by_itself).protocol == "SASL_SSL"


# What Kafka's parser of such lines takes between quotes: no line break.
words = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), min_size=1, max_size=12
)


@given(words, words)
def test_any_login_is_read_as_the_role_writes_it(tmp_path_factory, user, password):
    sasl = {**LOGIN, "inter_broker_user": user, "inter_broker_password": password}
    settings = settings_of(tmp_path_factory.mktemp("conf"), "SASL_SSL", sasl=sasl)
    assert wire.Door(settings).credentials() == (user, password)


@pytest.mark.parametrize(
    "line, expected",
    [
        ('x.PlainLoginModule required username="a" password="b";', ("a", "b")),
        ('x.PlainLoginModule required password=b username=a user_a="b";', ("a", "b")),
        ('M required "user_username="="no" username="a" password="";', ("a", "")),
        ('M required username="a";', None),
        ("", None),
    ],
)
def test_logins(line, expected):
    assert wire.parse_login(line) == expected


# ---------------------------------------------------------------- through the door


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Two authorities; of the first one `controller` and `node`, whose files Kafka and the guard read."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("ours", "others"):
        (folder / name).mkdir()
        make_certificates(folder / name, ["controller", "node"])
    return folder


def server(certificates, wants_certificate=False, authority="ours"):
    """The TLS of a controller."""
    folder = certificates / authority
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "controller.crt", folder / "controller.key")
    if wants_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificates / "ours" / "ca.crt")
    return context


def stores(tmp_path, certificates, authority="ours", own="ours", trusted="ca.crt"):
    """What the role writes beside server.properties."""
    (tmp_path / "current").mkdir(exist_ok=True)
    trust = (certificates / authority / trusted).read_text()
    (tmp_path / "current" / "truststore.pem").write_text(trust)
    node = certificates / own / "node"
    text = node.with_suffix(".key").read_text() + node.with_suffix(".crt").read_text()
    (tmp_path / "current" / "keystore.pem").write_text(text)


@pytest.fixture
def controller():
    """Make controllers that are told what to answer; closed at the end."""
    with told_controllers() as make:
        yield make


def beat(port, door, host="127.0.0.1"):
    """The answer to a heartbeat, through the door."""
    with wire.Controller((host, port), door) as opened:
        values = {"broker": 1, "epoch": 2, "metadata_offset": 0, "want_fence": True}
        return opened.call(wire.BROKER_HEARTBEAT, {**values, "want_shut_down": False})["error"]


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_request_gets_through(tmp_path, certificates, controller, protocol):
    stores(tmp_path, certificates)
    tls = server(certificates, protocol == "SSL") if protocol.endswith("SSL") else None
    users = {USER: PASSWORD} if protocol.startswith("SASL_") else None
    told = controller(tls=tls, users=users)
    assert beat(told.port, door_of(tmp_path, protocol)) == 0
    assert told.keys == [63] and told.attempts == (1 if users else 0)


def test_an_authority_may_be_the_certificate_itself(tmp_path, certificates, controller):
    """Java trusts what it is given, and asks for no root above it."""
    stores(tmp_path, certificates, trusted="controller.crt")
    told = controller(tls=server(certificates))
    assert beat(told.port, door_of(tmp_path, "SSL")) == 0


@pytest.mark.parametrize(
    "host, more, refused",
    [
        ("127.0.0.1", {}, None),
        ("localhost", {}, "match"),
        ("localhost", {"ssl.endpoint.identification.algorithm": ""}, None),
        (
            "localhost",
            {"listener.name.controller.ssl.endpoint.identification.algorithm": ""},
            None,
        ),
    ],
)
def test_the_name_is_checked_as_the_settings_have_it(
    tmp_path, certificates, controller, host, more, refused
):
    stores(tmp_path, certificates)
    told = controller(tls=server(certificates))
    door = door_of(tmp_path, "SSL", **more)
    if not refused:
        assert beat(told.port, door, host) == 0
        return
    with pytest.raises(wire.WireError, match=f"TLS with localhost:{told.port} failed: .*{refused}"):
        beat(told.port, door, host)
    assert told.asked == []


def test_who_is_not_trusted_hears_no_password(tmp_path, certificates, controller):
    stores(tmp_path, certificates, authority="others")
    told = controller(tls=server(certificates), users={USER: PASSWORD})
    with pytest.raises(wire.WireError, match="certificate verify failed"):
        beat(told.port, door_of(tmp_path, "SASL_SSL"))
    assert told.attempts == 0 and told.asked == []


def test_a_certificate_that_the_controllers_do_not_trust(tmp_path, certificates, controller):
    """With TLS 1.3 their refusal comes after the handshake."""
    stores(tmp_path, certificates, own="others")
    told = controller(tls=server(certificates, wants_certificate=True))
    with pytest.raises(wire.WireError, match="TLS with .* failed: "):
        beat(told.port, door_of(tmp_path, "SSL"))
    assert told.asked == []


def test_a_wrong_password_is_told_in_one_line_and_without_it(tmp_path, controller):
    told = controller(users={USER: "another"})
    with pytest.raises(wire.WireError) as caught:
        beat(told.port, door_of(tmp_path, "SASL_PLAINTEXT"))
    said = str(caught.value)
    assert said.startswith(
        "the controllers refuse the login of 'broker': SASL_AUTHENTICATION_FAILED"
    )
    assert "\n" not in said and PASSWORD not in said and "another" not in said
    assert told.attempts == 1 and told.asked == []


def test_other_ways_to_log_in_are_not_tried(tmp_path, controller):
    told = controller(users={USER: PASSWORD}, mechanisms=["SCRAM-SHA-512"])
    with pytest.raises(wire.WireError, match="take no login by PLAIN .*SCRAM-SHA-512"):
        beat(told.port, door_of(tmp_path, "SASL_PLAINTEXT"))
    scram = {"sasl.mechanism.controller.protocol": "SCRAM-SHA-512"}
    with pytest.raises(wire.WireError, match="by SCRAM-SHA-512, and not by PLAIN"):
        beat(told.port, door_of(tmp_path, "SASL_PLAINTEXT", **scram))
    nobody = {"listener.name.controller.plain.sasl.jaas.config": "M required;"}
    with pytest.raises(wire.WireError, match="has no login for the controllers"):
        beat(told.port, door_of(tmp_path, "SASL_PLAINTEXT", **nobody))
    assert told.attempts == 0


def test_a_login_whose_version_is_not_known_is_refused(tmp_path, controller):
    told = controller(users={USER: PASSWORD}, newest=-1)
    with pytest.raises(wire.WireError, match="versions 9 to 9 of SaslHandshake, and not 1"):
        beat(told.port, door_of(tmp_path, "SASL_PLAINTEXT"))
    assert told.attempts == 0


@pytest.mark.parametrize(
    "more, reason",
    [
        ({"ssl.truststore.type": "JKS"}, "the truststore is not a file in PEM"),
        ({"ssl.truststore.location": "/nowhere"}, "PEM files of TLS cannot be used: .*No such"),
        ({"listener.name.controller.ssl.keystore.type": "PKCS12"}, "the keystore is not a file"),
    ],
)
def test_what_python_cannot_read_is_told(tmp_path, certificates, controller, more, reason):
    stores(tmp_path, certificates)
    with pytest.raises(wire.WireError, match=reason):
        beat(controller(tls=server(certificates)).port, door_of(tmp_path, "SSL", **more))


def test_an_encrypted_key_asks_nobody_at_a_terminal(tmp_path, certificates, controller):
    stores(tmp_path, certificates)
    store = tmp_path / "current" / "keystore.pem"
    plain = (certificates / "ours" / "node.key").read_bytes()
    key = serialization.load_pem_private_key(plain, None)
    sealed = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    store.write_bytes(sealed + (certificates / "ours" / "node.crt").read_bytes())
    told = controller(tls=server(certificates, wants_certificate=True))
    with pytest.raises(wire.WireError, match="PEM files of TLS cannot be used"):
        beat(told.port, door_of(tmp_path, "SSL"))
    assert beat(told.port, door_of(tmp_path, "SSL", **{"ssl.key.password": "secret"})) == 0


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_whoever_says_nothing_is_not_waited_for(tmp_path, certificates, protocol):
    """A process that is stopped: its kernel takes the connection."""
    stores(tmp_path, certificates)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with pytest.raises(OSError, match="timed out"):
            wire.Controller(listening.getsockname(), door_of(tmp_path, protocol), timeout=0.2)


def test_a_deadline_ends_what_comes_byte_by_byte():
    """Each byte alone would be in time."""
    ours, theirs = socket.socketpair()
    done = threading.Event()

    def drip():
        with contextlib.suppress(OSError):
            while not done.wait(0.02):
                theirs.sendall(b"x")

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    try:
        with pytest.raises(OSError):
            registration.receive_exactly(ours, 1 << 20, time.monotonic() + 0.2)
    finally:
        done.set()
        thread.join(10)
        ours.close()
        theirs.close()

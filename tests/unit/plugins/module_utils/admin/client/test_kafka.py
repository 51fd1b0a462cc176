# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client's pure parts: settings, stakes, and the words for what went wrong."""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import logging
import socket
import ssl
import struct
import threading
import types

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client import (
    kafka as client_kafka,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.connection import (
    ClusterConnection,
    attempts,
    passing,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.reach import (
    ConnectionLog,
    closes_unasked,
    connection_problem,
    probe_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    kafka_python_settings,
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Partition,
    Snapshot,
    Stake,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.stakes import estimate_stake

HERE = (("h", 9092), ("::1", 9093))


def test_plain_settings():
    settings = librdkafka_settings(Connection(HERE, sasl_password="x", ssl_key="y"))
    assert settings["bootstrap.servers"] == "h:9092,[::1]:9093"
    assert not [key for key in settings if key.startswith(("sasl", "ssl"))]


def test_pem_text_stays_in_memory_and_paths_stay_paths():
    text = "-----BEGIN CERTIFICATE-----"
    settings = librdkafka_settings(
        Connection(HERE, "SASL_SSL", "PLAIN", "u", "p", text, "/c.pem", text, "k", False)
    )
    assert settings["ssl.ca.pem"] == settings["ssl.key.pem"] == text
    assert settings["ssl.certificate.location"] == "/c.pem"
    assert settings["ssl.key.password"] == "k" and settings["sasl.password"] == "p"
    assert settings["ssl.endpoint.identification.algorithm"] == "none"


def test_what_the_provider_gets_is_encoded_once():
    """librdkafka joins id and secret as they are, and a colon would end the id."""
    login = ("SASL_SSL", "OAUTHBEARER", "team:a", "s%cret & more")
    where = {"sasl_token_url": "https://a/t", "sasl_token_ca": "/p.pem", "sasl_scope": "kafka"}
    settings = librdkafka_settings(Connection(HERE, *login, **where))
    given = {key[17:]: value for key, value in settings.items() if "oauthbearer" in key}
    assert given == {
        "method": "oidc",
        "client.id": "team%3Aa",
        "client.secret": "s%25cret+%26+more",
        "token.endpoint.url": "https://a/t",
        "scope": "kafka",
    }
    assert settings["https.ca.location"] == "/p.pem" and "sasl.username" not in settings


def test_secrets_of_the_second_client_leave_no_file(certificate_files, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    certificate, key = (path.read_text() for path in certificate_files)
    connection = Connection(HERE, "SSL", ssl_certificate=certificate, ssl_key=key)
    with kafka_python_settings(connection) as settings:
        assert isinstance(settings["ssl_context"], ssl.SSLContext)
        # a kill at this moment leaves none either
        assert list(tmp_path.iterdir()) == []


@pytest.fixture
def certificate_files(tmp_path_factory):
    """A self-signed pair, as paths."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder(
            name, name, key.public_key(), 1, now, now.replace(year=now.year + 1)
        )
    ).sign(key, hashes.SHA256())
    directory = tmp_path_factory.mktemp("pair")
    pem = serialization.Encoding.PEM
    (directory / "c.pem").write_bytes(certificate.public_bytes(pem))
    (directory / "k.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return directory / "c.pem", directory / "k.pem"


# (first, end, first young or -1) of partitions, sizes, new ms, new bytes -> records, bytes
STAKES = [
    ([(0, 10, 4), (5, 10, -1)], [], 1000, None, Stake(9, 15, None, None)),
    ([(0, 10, 0)], [1000], 1000, None, Stake(0, 10, 0, 1000)),
    ([(0, 10, 5)], [1000], 1000, None, Stake(5, 10, 500, 1000)),
    ([(0, 10, -1)], [1000], None, 400, Stake(6, 10, 600, 1000)),
    ([(0, 10, 9)], [1000], 1000, 400, Stake(9, 10, 900, 1000)),
    ([(0, 10, -1)], [1000], -1, None, Stake(0, 10, 0, 1000)),
    ([(0, 10, -1)], [1000], None, -1, Stake(0, 10, 0, 1000)),
    ([(0, 0, -1)], [0], 1000, 400, Stake(0, 0, 0, 0)),
    # The log begins after the border already.
    ([(7, 10, 3)], [], 1000, None, Stake(0, 3, None, None)),
    # Records that could not be counted, as those of a partition without a leader, are not none.
    (None, [1000], 1000, None, Stake(None, None, None, 1000)),
    (None, [1000], -1, 400, Stake(None, None, 600, 1000)),
    ([(0, 10, -1)], [], None, 400, Stake(None, 10, None, None)),
]


@pytest.mark.parametrize("offsets, sizes, retention_ms, retention_bytes, stake", STAKES)
def test_stakes(offsets, sizes, retention_ms, retention_bytes, stake):
    assert estimate_stake(offsets, sizes, retention_ms, retention_bytes) == stake


FAIL = "FAIL [rdkafka#producer-1] [thrd:h:9092/bootstrap]: h:9092/bootstrap: "
CLOSED = "Disconnected: connection closed by peer: receive 0 after POLLIN (after 1ms in state UP)"
NOT_TLS = (
    "ssl://h:9092/bootstrap: SSL handshake failed: Disconnected: SSL connection closed by peer: "
    "connecting to a PLAINTEXT broker listener? (after 1ms in state SSL_HANDSHAKE)"
)
# the same, where the connection's end was seen before its language
REFUSED = (
    "ssl://h:9092/bootstrap: Receive failed: error:0A000412:SSL routines::ssl/tls alert bad "
    "certificate: SSL alert number 42 (after 1ms in state APIVERSION_QUERY)"
)
CLOSED_TLS = "Disconnected: SSL connection closed by peer (after 9ms in state X)"
UNTRUSTED = (
    "ssl://h:9092/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate verify "
    "failed: broker certificate could not be verified (after 49ms in state SSL_HANDSHAKE)"
)
LOGIN = (
    "sasl_plaintext://h:9092/bootstrap: SASL authentication error: Authentication failed: Invalid "
    "username or password (after 313ms in state AUTH_REQ)"
)
MECHANISM = (
    "sasl_plaintext://h:9092/bootstrap: SASL SCRAM-SHA-256 mechanism handshake failed: Broker: "
    "Unsupported SASL mechanism: broker's supported mechanisms: PLAIN (after 300ms in state X)"
)
NO_SASL = (
    "sasl_plaintext://h:9092/bootstrap: SASL PLAIN mechanism handshake failed: Broker: Request not "
    "valid in current SASL state: broker's supported mechanisms:  (after 1ms in state X)"
)


def kafka_error(name, text=""):
    """What librdkafka hands to its error callback."""
    return types.SimpleNamespace(name=lambda: name, str=lambda: text)


# Recorded from librdkafka 2.16.0 against Kafka 3.9.2 and 4.3.1.
VERDICTS = [
    ([], [], None),
    ([], [CLOSED], None),
    ([], [CLOSED] * 3, "closed"),
    ([], [CLOSED_TLS] * 2, None),
    ([], [CLOSED_TLS] * 3, "closed"),
    ([("_SSL", UNTRUSTED)], [CLOSED_TLS] * 3, "certificate"),
    ([("_TRANSPORT", NOT_TLS)], [], "not_tls"),
    ([("_SSL", UNTRUSTED)], [], "certificate"),
    # TLS 1.3: the broker says after the handshake that it wants a certificate of the client
    ([("_TRANSPORT", REFUSED)], [], "tls_failed"),
    ([("_TRANSPORT", REFUSED)], [CLOSED_TLS] * 3, "tls_failed"),
    ([("_SSL", "ssl://h:9092/bootstrap: SSL handshake failed: alert")], [], "tls_failed"),
    ([("_AUTHENTICATION", LOGIN)], [], "credentials"),
    ([("_AUTHENTICATION", MECHANISM)], [], "mechanism"),
    ([("_AUTHENTICATION", NO_SASL)], [], "not_sasl"),
    ([("_ALL_BROKERS_DOWN", "1/1 brokers are down")], [], None),
]


@pytest.mark.parametrize("errors, lines, verdict", VERDICTS)
def test_verdicts(errors, lines, verdict):
    trouble = ConnectionLog()
    for name, text in errors:
        trouble.error(kafka_error(name, text))
    for line in lines:
        trouble.handle(logging.makeLogRecord({"msg": FAIL + line}))
    assert trouble.verdict(kafka_error("_TRANSPORT")) == verdict
    assert "bootstrap" not in trouble.last and "after" not in trouble.last.split("POLLIN")[-1]


def test_a_controller_is_known_by_the_answer():
    assert ConnectionLog().verdict(kafka_error("_UNSUPPORTED_FEATURE")) == "controller"


@pytest.mark.parametrize(
    "verdict, words",
    [
        (
            None,
            "[connection.unreachable] h:9092: unreachable: no Kafka broker answered within 30 s: "
            "detail. Remedy:",
        ),
        ("not_tls", "[connection.protocol] h:9092: wrong protocol: it does not speak TLS"),
        (
            "credentials",
            "[connection.credentials] h:9092: wrong credentials: it refuses user u by PLAIN: "
            "detail. Remedy:",
        ),
        ("certificate", "[connection.certificate] h:9092: certificate not trusted: detail. Rem"),
        ("controller", "[connection.listener] h:9092: wrong listener: it is a KRaft controller"),
        ("nobody_behind", "[connection.unreachable] h:9092: unreachable: it accepts connections"),
    ],
)
def test_problems_name_the_address(verdict, words):
    connection = Connection((("h", 9092),), "SASL_SSL", "PLAIN", "u", "secret")
    text = connection_problem(connection, verdict, "detail.").line()
    assert words in text and "secret" not in text and text.endswith(".") and "\n" not in text


def test_settings_that_the_library_refuses_are_told_without_their_secrets(tmp_path):
    broken = tmp_path / "ca.pem"
    broken.write_text("no certificate")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        connection = Connection((address,), "SASL_SSL", "PLAIN", "u", "secret", str(broken))
        with pytest.raises(AdminError, match=r"\[connection.settings\] 127.0.0.1:") as caught:
            ClusterConnection(connection).connect()
    assert "secret" not in str(caught.value) and "correct the connection options" in str(
        caught.value
    )


def test_who_closes_at_once_is_asked_for_its_language():
    """A listener without TLS, which takes the client's first words for a size that cannot be."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()

        def close_each():
            with contextlib.suppress(OSError):  # the end of the test
                while True:
                    client = server.accept()[0]
                    client.recv(1024)
                    client.close()

        threading.Thread(target=close_each, daemon=True).start()
        assert not closes_unasked((address,), 0.2)  # it waits for the client to begin
        text = connection_problem(Connection((address,), "SSL"), "closed", "detail").line()
    assert "does not speak TLS" in text


@contextlib.contextmanager
def forwarded_port(resets):
    """A port that accepts and closes, as docker-proxy, HAProxy and `ssh -L` do without a backend;
    `resets`: with a reset, as where the client has sent something already.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted = []

        def serve():
            with contextlib.suppress(OSError):  # the end of the test
                while True:
                    client = server.accept()[0]
                    accepted.append(client.getpeername())
                    if resets:
                        client.setsockopt(
                            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                        )
                    client.close()

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname(), accepted
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("resets", [False, True], ids=["closes", "resets"])
def test_a_proxy_without_a_broker_behind_it_is_waited_for(resets):
    """It may be starting: `unreachable` after the whole timeout, not `wrong protocol` at once."""
    with forwarded_port(resets) as (address, accepted):
        client = client_kafka.KafkaClient(Connection((address,), timeout=3.0))
        with pytest.raises(AdminError, match="unreachable: it accepts connections and") as caught:
            client.connect()
    assert not caught.value.reachable and len(accepted) > 5


def test_a_kernel_without_ipv6_is_no_traceback(monkeypatch):
    """localhost resolves to ::1 first, and socket() fails for it."""
    real = socket.socket

    class NoIPv6(real):
        def __init__(self, family=-1, *arguments, **named):
            if family == socket.AF_INET6:
                raise OSError(97, "Address family not supported by protocol")
            super().__init__(family, *arguments, **named)

    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, port, **_named: [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ],
    )
    monkeypatch.setattr(socket, "socket", NoIPv6)
    with real() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        probe_addresses((("localhost", listening.getsockname()[1]),), 2.0)
        dead = listening.getsockname()[1]
    with pytest.raises(AdminError, match="Address family not supported.*Connection refused"):
        probe_addresses((("localhost", dead),), 2.0)


class Brokers:
    """Stands for librdkafka's AdminClient: what is not allowed fails with the broker's code."""

    def __init__(self, **errors):
        self.errors = errors
        self.limits = []

    def poll(self, _seconds):
        """Nothing to deliver."""

    def _future(self, call, value=None):
        future = concurrent.futures.Future()
        if call in self.errors:
            code = getattr(client_kafka.KafkaError, self.errors[call])
            future.set_exception(
                client_kafka.KafkaException(client_kafka.KafkaError(code, "its own words"))
            )
        else:
            future.set_result(value or {})
        return future

    def list_topics(self, timeout):
        """One broker, one topic of another team."""
        part = types.SimpleNamespace(id=0, leader=1, replicas=[1], isrs=[1])
        topic = types.SimpleNamespace(error=None, partitions={0: part})
        node = types.SimpleNamespace(id=1, host="h", port=9092)
        return types.SimpleNamespace(
            cluster_id="id",
            controller_id=1,
            orig_broker_id=1,
            brokers={1: node},
            topics={"other": topic},
        )

    def describe_configs(self, resources, **_limits):
        """By kind of resource."""
        return {each: self._future(each.restype.name.lower()) for each in resources}

    def list_offsets(self, asked, **_limits):
        """By topic; one that is not among the errors has an end of 7."""
        end = types.SimpleNamespace(offset=7, timestamp=-1)
        return {part: self._future(part.topic, end) for part in asked}

    def incremental_alter_configs(self, resources, **_limits):
        """Overrides."""
        return {each: self._future("alter") for each in resources}

    def create_topics(self, topics, **limits):
        """As the library does: limits are checked before anything is sent."""
        self.limits.append(limits)
        if limits["request_timeout"] > 3600:
            raise ValueError("expecting integer in range 0..3600000")
        return {each.topic: self._future("create") for each in topics}


def client_of(brokers, timeout=1.0):
    """A client that is connected to such brokers."""
    client = client_kafka.KafkaClient(Connection(HERE, timeout=timeout))
    client._admin = brokers
    client._renew = lambda: None
    return client


NEW = Change("create", "t", {}, {"partitions": 1, "replication_factor": 1, "config": {}})


def test_a_failure_has_the_code_of_the_broker():
    (failure,) = client_of(Brokers(create="TOPIC_ALREADY_EXISTS")).apply([NEW], 9e9)
    assert (failure.code, failure.kind) == ("TOPIC_ALREADY_EXISTS", "create")
    assert "its own words" in failure.error


def test_a_controller_that_is_named_and_gone_is_not_waited_for():
    """The library would wait to the end of its time; without ZooKeeper any broker is named, and one may be dead."""
    with socket.socket() as living, socket.socket() as dead:
        for each in (living, dead):
            each.bind(("127.0.0.1", 0))
        living.listen()
        ports = {1: living.getsockname()[1], 2: dead.getsockname()[1]}
        named = iter((2, 2, 1, 2))
        asked: list[int] = []

        class Told(Brokers):
            """Two brokers, who name one of both."""

            def list_topics(self, timeout):
                """Overrides."""
                asked.append(next(named))
                nodes = {
                    each: types.SimpleNamespace(id=each, host="127.0.0.1", port=port)
                    for each, port in ports.items()
                }
                return types.SimpleNamespace(controller_id=asked[-1], brokers=nodes)

            def describe_cluster(self, **_limits):
                """Overrides."""
                assert asked[-1] == 1, "the controller that is named is gone"
                return self._future("cluster", types.SimpleNamespace(nodes=[]))

        client = client_of(Told())
        client._list_topics(1.0)
        assert client.fetch_racks() == {} and client.fetch_racks() == {}
    assert asked == [2, 2, 1], "and not looked at again, where nothing is new"


def test_a_long_deadline_is_cut_to_what_the_library_takes():
    brokers = Brokers()
    client = client_of(brokers)
    client._clock = lambda: 0.0
    assert client.apply([NEW], 86400.0) == []
    assert brokers.limits[0]["request_timeout"] == 3600


def test_what_the_library_refuses_is_a_failure_and_not_a_traceback(monkeypatch):
    monkeypatch.setattr(client_kafka, "TIMEOUT_MAX_SECONDS", 1e9)
    client = client_of(Brokers())
    client._clock = lambda: 0.0
    (failure,) = client.apply([NEW], 86400.0)
    assert failure.subject == "t" and "expecting integer" in failure.error and not failure.code


@pytest.mark.parametrize("code", ["TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"])
def test_rights_on_a_prefix_are_enough(code):
    """The brokers' defaults and a stranger's topic are closed to this user: unknown, no failure."""
    snapshot = client_of(Brokers(broker=code, topic=code)).fetch_topics(["team.x"])
    assert snapshot.defaults_denied and not snapshot.broker_defaults
    assert snapshot.known_keys is None and set(snapshot.topics) == {"other"}


def test_a_topic_that_vanishes_takes_only_its_own_offsets_along():
    """With it nothing was told of all others, also where somebody else had deleted it."""
    client = client_of(Brokers(gone="UNKNOWN_TOPIC_OR_PART"))
    keys = [("gone", 0), ("here", 0), ("gone", 1), ("here", 1)]
    told = {("here", 0): 7, ("here", 1): 7}
    assert client.fetch_both_ends(keys) == (told, told)
    assert client.fetch_since(dict.fromkeys(keys, 1)) == dict.fromkeys(told, (7, -1))
    assert client.fetch_newest(keys).keys() == told.keys()
    assert client.requests["list_offsets"] == 4, "nobody waits for it to come back"


@pytest.mark.parametrize("code", ["TOPIC_AUTHORIZATION_FAILED", "UNKNOWN"])
def test_another_error_of_one_partition_is_not_left_out(code):
    client = client_of(Brokers(closed=code))
    with pytest.raises(AdminError, match="reading offsets failed"):
        client.fetch_both_ends([("closed", 0), ("here", 0)])


def test_what_a_topic_that_vanishes_holds_is_not_said_to_be_nothing():
    gone = Topic("gone", (Partition(0, 1, (1,), (1,)),))
    there = Topic("here", (Partition(0, 1, (1,), (1,)),))
    client = client_of(Brokers(gone="UNKNOWN_TOPIC_OR_PART"))
    snapshot = Snapshot(topics={"gone": gone, "here": there})
    stakes = client.fetch_stakes(snapshot, dict.fromkeys(("gone", "here"), (None, None)), {})
    assert stakes["here"].total_records == 0 and not stakes["here"].unknown
    assert stakes["gone"].total_records is None
    assert "deleted at this moment" in stakes["gone"].unknown


def test_a_declared_topic_whose_settings_are_denied_is_a_failure():
    client = client_of(Brokers(topic="TOPIC_AUTHORIZATION_FAILED"))
    with pytest.raises(AdminError, match="describing topic settings failed.*DescribeConfigs"):
        client.fetch_topics(["other"])


def test_brokers_that_do_not_tell_their_settings_are_named_with_the_reason():
    client = client_of(Brokers(broker="CLUSTER_AUTHORIZATION_FAILED"))
    told, silent = client.fetch_broker_configs([1, 2])
    assert told == {} and silent == dict.fromkeys((1, 2), "its own words")
    assert client_of(Brokers()).fetch_broker_configs([1]) == ({1: {}}, {})


def test_brokers_that_refuse_an_override_are_named_with_their_words():
    changes = {1: {"a": "1"}, 2: {"a": None}}
    client = client_of(Brokers(alter="INVALID_CONFIG"))
    assert client.alter_broker_configs(changes) == dict.fromkeys((1, 2), "its own words")
    client = client_of(Brokers())
    assert client.alter_broker_configs(changes, validate_only=True) == {}
    assert client.requests["alter_broker_configs"] == 2


def test_settings_that_do_not_come_point_to_zookeeper():
    client = client_of(Brokers(topic="_TIMED_OUT"), timeout=0.1)
    with pytest.raises(
        AdminError, match="describing topic settings failed.*ZooKeeper has a quorum"
    ):
        client.fetch_topics(["other"])


def test_each_address_is_asked_by_itself_and_patience_grows():
    """librdkafka keeps asking a broker that answers and knows of nobody."""
    one, two = ("a", 1), ("b", 2)
    first = list(itertools.islice(attempts((one, two)), 8))
    assert first == [
        ((one, two), 1.0),
        ((one, two), 2.0),
        ((one,), 2.0),
        ((two,), 2.0),
        ((one, two), 4.0),
        ((one,), 4.0),
        ((two,), 4.0),
        ((one, two), 8.0),
    ]
    alone = list(itertools.islice(attempts((one,)), 4))
    assert alone == [((one,), 1.0), ((one,), 2.0), ((one,), 4.0), ((one,), 8.0)]


class Refusing(client_kafka.KafkaClient):
    """Refuses every change whose name ends in 7; tells which client was asked."""

    asked: list = []

    def _renew(self):
        self._admin = None

    def _batch(self, kind, changes, deadline, validate_only):
        self.requests[kind] += 1
        Refusing.asked.append(self)
        return [
            client_kafka.Failure(change.subject, "no", kind)
            for change in changes
            if change.subject.endswith("7")
        ]


def test_failures_of_all_lanes_come_together_and_their_requests_are_counted(monkeypatch):
    monkeypatch.setattr(client_kafka, "KafkaClient", Refusing)
    Refusing.asked = []
    client = Refusing(Connection(HERE))
    changes = [Change("configure", f"t{each:04}") for each in range(300)]
    failures = client.apply(changes, 1e9)
    assert [each.subject for each in failures] == [f"t{each:04}" for each in range(7, 300, 10)]
    assert client.requests["configure"] == 3
    assert len({id(each) for each in Refusing.asked}) == 3 and client not in Refusing.asked


@pytest.mark.parametrize(
    "name", ["COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"]
)
def test_a_coordinator_that_is_not_there_yet_is_asked_again(name):
    assert passing(client_kafka.KafkaError(getattr(client_kafka.KafkaError, name)))
    assert not passing(client_kafka.KafkaError(client_kafka.KafkaError.GROUP_AUTHORIZATION_FAILED))


class LogDirs:
    """kafka-python's client of one answer to DescribeLogDirs: the directories, or an error."""

    def __init__(self, answer):
        self.answer = answer

    def describe_log_dirs(self, _wanted, brokers):
        if isinstance(self.answer, Exception):
            raise self.answer
        return [{"broker": brokers[0], "log_dirs": self.answer}]

    def close(self):
        pass


@pytest.mark.parametrize(
    "answer, sizes",
    [
        (
            [
                {"error_code": 56, "topics": []},
                {
                    "error_code": 0,
                    "topics": [
                        {"name": "t", "partitions": [{"partition_index": 1, "partition_size": 7}]}
                    ],
                },
            ],
            {("t", 1): 7},
        ),
        # the replica is in the directory that has failed
        ([{"error_code": 56, "topics": []}], {}),
        # before version 3 of the answer, who may not ask is told of no directory
        ([], None),
        (OSError("timed out"), None),
    ],
)
def test_no_size_is_something_else_than_no_answer(answer, sizes):
    client = client_kafka.KafkaClient(Connection(HERE))
    client._kafka_python = LogDirs(answer)
    assert client.fetch_replica_bytes(1, [("t", 1)]) == sizes

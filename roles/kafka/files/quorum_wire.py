# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fencing.py says to the controllers of a KRaft cluster, and how it gets through their door.

A few requests, each in a version that Kafka 3.9 and 4.3 speak; any other is refused. Each step has
a deadline. The door is that of the controllers' listener: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL,
with the login PLAIN. Kafka knows no other one there: users of SCRAM stand in the metadata, which need the
quorum first.

Who this node is, is read from what its own Kafka reads: the login from server.properties, the private key,
the certificate and the authorities from the PEM files that are named there. So there is no second copy
of a secret. None gets into arguments, the environment, or what is printed.

Standard library of Python 3.6 only, for the reasons that registration.py has.
"""

import re
import socket
import struct
import time

from registration import CONNECT_SECONDS, receive_exactly

ANSWER_MAX = 1 << 20

NOT_AUTHORIZED = 31
ERRORS = {
    29: "TOPIC_AUTHORIZATION_FAILED",
    NOT_AUTHORIZED: "CLUSTER_AUTHORIZATION_FAILED",
    33: "UNSUPPORTED_SASL_MECHANISM",
    34: "ILLEGAL_SASL_STATE",
    35: "UNSUPPORTED_VERSION",
    58: "SASL_AUTHENTICATION_FAILED",
}
# Of an answer that a controller words itself.
TOLD_MAX = 300
PLAIN = "PLAIN"


# ---------------------------------------------------------------- requests and answers


class WireError(Exception):
    """A controller does not speak what is known here, or its answer makes no sense."""


class Kind:
    """A field of a fixed size."""

    def __init__(self, code):
        self._packing = struct.Struct(">" + code)

    def encode(self, value):
        """Return the bytes of a value."""
        return self._packing.pack(value)

    def decode(self, data, at):
        """Return (value, where the next field begins)."""
        try:
            return self._packing.unpack_from(data, at)[0], at + self._packing.size
        except struct.error:
            raise WireError("an answer ends early") from None


BOOL, INT8, INT16, INT32, INT64 = Kind("?"), Kind("b"), Kind("h"), Kind("i"), Kind("q")
UUID = Kind("16s")


class String:
    """A text with its length before it, as in versions that are not flexible; None where it is -1."""

    @staticmethod
    def encode(value):
        """Return the bytes of a text or None."""
        if value is None:
            return INT16.encode(-1)
        data = value.encode("utf-8")
        return INT16.encode(len(data)) + data

    @staticmethod
    def decode(data, at):
        """Return (text or None, where the next field begins)."""
        size, at = INT16.decode(data, at)
        return (None, at) if size < 0 else _text(data, at, size)


class Bytes:
    """Some bytes with their length before them; None where it is -1."""

    @staticmethod
    def encode(value):
        """Return the bytes of some bytes or None."""
        return INT32.encode(-1) if value is None else INT32.encode(len(value)) + value

    @staticmethod
    def decode(data, at):
        """Return (bytes or None, where the next field begins)."""
        size, at = INT32.decode(data, at)
        if size < 0:
            return None, at
        if at + size > len(data):
            raise WireError("an answer ends early")
        return data[at : at + size], at + size


class CompactString:
    """A text with its length and one more before it as a varint; None where that is 0."""

    @staticmethod
    def encode(value):
        """Return the bytes of a text or None."""
        if value is None:
            return b"\0"
        data = value.encode("utf-8")
        return varint(len(data) + 1) + data

    @staticmethod
    def decode(data, at):
        """Return (text or None, where the next field begins)."""
        size, at = read_varint(data, at)
        return (None, at) if size == 0 else _text(data, at, size - 1)


class Tags:
    """The tagged fields at the end of a flexible structure: none is sent, and all are skipped."""

    @staticmethod
    def encode(dummy=None):
        """Return the bytes of no tagged field."""
        return b"\0"

    @staticmethod
    def decode(data, at):
        """Return (None, where the next field begins)."""
        return None, TaggedFields({}).decode(data, at)[1]


class TaggedFields:
    """The tagged fields at the end of an answer, by their numbers; those that are not known are skipped."""

    def __init__(self, known):
        self._known = known

    def decode(self, data, at):
        """Return (dict with the fields that are there, where the next field begins)."""
        count, at = read_varint(data, at)
        found = {}
        while count:
            tag, at = read_varint(data, at)
            size, at = read_varint(data, at)
            if at + size > len(data):
                raise WireError("an answer ends early")
            if tag in self._known:
                name, kind = self._known[tag]
                found[name] = kind.decode(data[at : at + size], 0)[0]
            at, count = at + size, count - 1
        return found, at


class CompactArray:
    """A list with its length and one more before it as a varint; empty where there is none."""

    def __init__(self, item):
        self._item = item

    def encode(self, values):
        """Return the bytes of a list."""
        return varint(len(values) + 1) + b"".join(self._item.encode(each) for each in values)

    def decode(self, data, at):
        """Return (list, where the next field begins)."""
        count, at = read_varint(data, at)
        found = []
        while len(found) + 1 < count:
            value, at = self._item.decode(data, at)
            found.append(value)
        return found, at


class Array:
    """A list of fields of one kind, or of structures."""

    def __init__(self, item):
        self._item = item

    def encode(self, values):
        """Return the bytes of a list."""
        return INT32.encode(len(values)) + b"".join(self._item.encode(each) for each in values)

    def decode(self, data, at):
        """Return (list, where the next field begins)."""
        count, at = INT32.decode(data, at)
        found = []
        while len(found) < count:
            value, at = self._item.decode(data, at)
            found.append(value)
        return found, at


class Schema:
    """A structure: named fields in their order."""

    def __init__(self, *fields):
        self._fields = fields

    def encode(self, values):
        """Return the bytes of a dict; tags need no entry."""
        return b"".join(kind.encode(values.get(name)) for name, kind in self._fields)

    def decode(self, data, at):
        """Return (dict, where the next field begins)."""
        found = {}
        for name, kind in self._fields:
            found[name], at = kind.decode(data, at)
        return found, at


def varint(number):
    """Return an unsigned number in groups of seven bits."""
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def read_varint(data, at):
    """Return (number, where the next field begins)."""
    number = shift = 0
    while True:
        if at >= len(data) or shift > 28:
            raise WireError("an answer ends early")
        number |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return number, at


def _text(data, at, size):
    if at + size > len(data):
        raise WireError("an answer ends early")
    return data[at : at + size].decode("utf-8", "replace"), at + size


class Api:
    """One kind of request in a version that is known here; `tagged`: whether tags follow the number of an answer."""

    def __init__(self, name, key, version, flexible, request, answer, tagged=None):
        self.name, self.key, self.version, self.flexible = name, key, version, flexible
        self.request, self.answer = request, answer
        self.tagged = flexible if tagged is None else tagged


# Version 0 of each, but for what tells of features: all that Kafka 3.9 and 4.3 speak at the controllers' port.
API_VERSIONS = Api(
    "ApiVersions",
    *(18, 0, False),
    Schema(),
    Schema(
        ("error", INT16),
        ("apis", Array(Schema(("key", INT16), ("min", INT16), ("max", INT16)))),
    ),
)
# The finalised features are in it; whoever asks may be of any version, so that its answer begins as in version 0.
FEATURES = Api(
    "ApiVersions",
    *(18, 3, True),
    Schema(("software", CompactString), ("release", CompactString), ("tags", Tags)),
    Schema(
        ("error", INT16),
        (
            "apis",
            CompactArray(Schema(("key", INT16), ("min", INT16), ("max", INT16), ("tags", Tags))),
        ),
        ("throttle_ms", INT32),
        (
            "told",
            TaggedFields(
                {
                    1: ("epoch", INT64),
                    2: (
                        "finalised",
                        CompactArray(
                            Schema(
                                ("name", CompactString),
                                ("max", INT16),
                                ("min", INT16),
                                ("tags", Tags),
                            )
                        ),
                    ),
                }
            ),
        ),
    ),
    tagged=False,
)
BROKER_HEARTBEAT = Api(
    "BrokerHeartbeat",
    *(63, 0, True),
    Schema(
        ("broker", INT32),
        ("epoch", INT64),
        ("metadata_offset", INT64),
        ("want_fence", BOOL),
        ("want_shut_down", BOOL),
        ("tags", Tags),
    ),
    Schema(
        ("throttle_ms", INT32),
        ("error", INT16),
        ("caught_up", BOOL),
        ("fenced", BOOL),
        ("should_shut_down", BOOL),
        ("tags", Tags),
    ),
)
UNREGISTER_BROKER = Api(
    "UnregisterBroker",
    *(64, 0, True),
    Schema(("broker", INT32), ("tags", Tags)),
    Schema(("throttle_ms", INT32), ("error", INT16), ("message", CompactString), ("tags", Tags)),
)


def _topics(*fields):
    """Return the list of topics with their partitions, each of these fields."""
    return Array(Schema(("name", String), ("partitions", Array(Schema(("index", INT32), *fields)))))


END_QUORUM_EPOCH = Api(
    "EndQuorumEpoch",
    *(54, 0, False),
    Schema(
        ("cluster_id", String),
        ("topics", _topics(("leader", INT32), ("epoch", INT32), ("successors", Array(INT32)))),
    ),
    Schema(
        ("error", INT16),
        ("topics", _topics(("error", INT16), ("leader", INT32), ("epoch", INT32))),
    ),
)


def _compact_topics(*fields):
    """Return the same as a flexible structure."""
    partitions = CompactArray(Schema(("index", INT32), *fields, ("tags", Tags)))
    return CompactArray(Schema(("name", CompactString), ("partitions", partitions), ("tags", Tags)))


REPLICA_STATES = CompactArray(Schema(("id", INT32), ("end", INT64), ("tags", Tags)))
DESCRIBE_QUORUM = Api(
    "DescribeQuorum",
    *(55, 0, True),
    Schema(("topics", _compact_topics()), ("tags", Tags)),
    Schema(
        ("error", INT16),
        (
            "topics",
            _compact_topics(
                ("error", INT16),
                ("leader", INT32),
                ("epoch", INT32),
                ("high_watermark", INT64),
                ("voters", REPLICA_STATES),
                ("observers", REPLICA_STATES),
            ),
        ),
        ("tags", Tags),
    ),
)
# Its version 0 would be followed by what is no request of Kafka.
SASL_HANDSHAKE = Api(
    "SaslHandshake",
    *(17, 1, False),
    Schema(("mechanism", String)),
    Schema(("error", INT16), ("mechanisms", Array(String))),
)
SASL_AUTHENTICATE = Api(
    "SaslAuthenticate",
    *(36, 0, False),
    Schema(("token", Bytes)),
    Schema(("error", INT16), ("message", String), ("token", Bytes)),
)
# Where the controllers are of Kafka 4, Fetch (1) has lost its first versions.
FETCH, FETCH_OF_4 = 1, 4


def error_name(code):
    """Return how Kafka calls an error, where it is known here."""
    return ERRORS.get(code, f"error {code}")


def one_line(text):
    """Return what somebody else has worded, as it fits into a log."""
    return " ".join(str(text).split())[:TOLD_MAX]


# ---------------------------------------------------------------- the door

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Door:
    """How the controllers' listener is entered, by the settings of the node that runs here.

    `protocol`: of the listener. WireError where something is asked for that is not known here.
    """

    def __init__(self, properties):
        self._properties = properties
        self._listener = properties.get("controller.listener.names", "").split(",")[0].strip()
        self.protocol = self._protocol()
        self._ssl = self._tls = None

    def _protocol(self):
        for item in self._properties.get("listener.security.protocol.map", "").split(","):
            listener, dummy, protocol = item.strip().partition(":")
            if listener.upper() == self._listener.upper():
                return protocol.upper()
        # Kafka's default map has each protocol by its own name, and takes any other name for PLAINTEXT.
        named = self._listener.upper()
        return named if named in PROTOCOLS else "PLAINTEXT"

    @property
    def asks_for_login(self):
        """Whether one logs in by name and password."""
        return self.protocol.startswith("SASL_")

    def _setting(self, key, default=""):
        """Return a setting as Kafka finds it: that of the listener goes first."""
        own = f"listener.name.{self._listener.lower()}.{key}"
        return self._properties.get(own, self._properties.get(key, default))

    def enter(self, channel, host):
        """Return the connection to `host` with TLS around it, where the listener has it."""
        if self.protocol in ("PLAINTEXT", "SASL_PLAINTEXT"):
            return channel
        if self.protocol not in ("SSL", "SASL_SSL"):
            raise WireError(f"the controllers' listener is {self.protocol}, which is not known")
        if self._tls is None:
            # Not needed for PLAINTEXT, where there may be a Python without it.
            try:
                import ssl  # pylint: disable=import-outside-toplevel
            except ImportError as error:
                raise WireError(f"this Python cannot speak TLS: {error}") from None
            self._ssl, self._tls = ssl, self._context(ssl)
        return self._tls.wrap_socket(channel, server_hostname=host)

    def is_failure_of_tls(self, error):
        """Whether one of the two sides does not trust the other, or they have no language in common."""
        # In Python 3.6 a wrong name is a ValueError.
        return self._ssl and isinstance(error, (self._ssl.SSLError, self._ssl.CertificateError))

    def _context(self, ssl):
        """Return what trusts whom this node's Kafka trusts, and shows what it shows."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if hasattr(ssl, "TLSVersion"):  # Python 3.7
            context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Java trusts what it was given, though others may have signed it. (A number before Python 3.10.)
        context.verify_flags |= getattr(ssl, "VERIFY_X509_PARTIAL_CHAIN", 0x80000)
        checked = self._setting("ssl.endpoint.identification.algorithm", "https")
        context.check_hostname = bool(checked.strip())
        try:
            context.load_verify_locations(cafile=self._file("truststore"))
            if self._setting("ssl.keystore.location"):
                # Without a password OpenSSL would ask at a terminal for that of an encrypted key.
                password = self._setting("ssl.key.password")
                context.load_cert_chain(self._file("keystore"), password=lambda: password)
        except (OSError, ValueError) as error:
            raise WireError(f"the PEM files of TLS cannot be used: {one_line(error)}") from None
        return context

    def _file(self, store):
        kind = self._setting(f"ssl.{store}.type", "JKS")
        path = self._setting(f"ssl.{store}.location")
        if kind.upper() != "PEM" or not path:
            raise WireError(f"the {store} is not a file in PEM")
        return path

    def credentials(self):
        """Return (user, password) by which this node logs in at the controllers."""
        mechanism = self._setting("sasl.mechanism.controller.protocol", "GSSAPI")
        if mechanism != PLAIN:
            raise WireError(f"nodes log in at the controllers by {mechanism}, and not by {PLAIN}")
        found = parse_login(self._setting(f"{PLAIN.lower()}.sasl.jaas.config"))
        if not found:
            raise WireError("server.properties has no login for the controllers")
        return found


QUOTED = r'"((?:[^"\\]|\\.)*)"'
OPTION = re.compile(r"(?:%s|([^\s=;\"]+))\s*=\s*(?:%s|([^\s;\"]+))" % (QUOTED, QUOTED), re.DOTALL)


def parse_login(text):
    """Return (user, password) of a login module's line, or None where one of them is missing."""
    found = {}
    for quoted_name, name, quoted, value in OPTION.findall(text):
        found[_unescaped(quoted_name) or name] = _unescaped(quoted) or value
    if "username" not in found or "password" not in found:
        return None
    return found["username"], found["password"]


def _unescaped(text):
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


class Controller:
    """A connection to a controller, through its door; the versions that it speaks are asked for first.

    OSError where it is not there, WireError where it lets nobody in, or speaks what is not known here.
    """

    def __init__(self, address, door, timeout=CONNECT_SECONDS):
        self._timeout = timeout
        self._protocol = door.protocol
        self._correlation = 0
        self._socket = socket.create_connection(address, timeout)
        try:
            self._socket = door.enter(self._socket, address[0])
            found = self._exchange(API_VERSIONS, {})
            if found["error"]:
                raise WireError(f"ApiVersions was answered with {error_name(found['error'])}")
            self.versions = {each["key"]: (each["min"], each["max"]) for each in found["apis"]}
            if door.asks_for_login:
                self._log_in(*door.credentials())
        except BaseException as error:
            self._socket.close()
            # A controller may refuse a certificate only after the handshake.
            if door.is_failure_of_tls(error):
                where = f"{address[0]}:{address[1]}"
                raise WireError(f"TLS with {where} failed: {one_line(error)}") from None
            raise

    def __enter__(self):
        return self

    def __exit__(self, *dummy):
        self._socket.close()

    @property
    def is_of_kafka_4(self):
        """Whether the node runs Kafka 4."""
        return self.versions.get(FETCH, (0, 0))[0] >= FETCH_OF_4

    def finalised_features(self):
        """Return {name: level} of the cluster's finalised features, or None where it does not tell."""
        found = self.call(FEATURES, {"software": "kafkaops-guard", "release": "1"})
        if found["error"] or found["told"].get("epoch", -1) < 0:
            return None
        return {each["name"]: each["max"] for each in found["told"].get("finalised", [])}

    def _log_in(self, user, password):
        found = self.call(SASL_HANDSHAKE, {"mechanism": PLAIN})
        if found["error"]:
            offered = one_line(", ".join(str(each) for each in found["mechanisms"]))
            raise WireError(
                f"the controllers take no login by {PLAIN} ({error_name(found['error'])}; {offered})"
            )
        token = "\0".join(("", user, password)).encode("utf-8")
        found = self.call(SASL_AUTHENTICATE, {"token": token})
        if found["error"]:
            raise WireError(
                f"the controllers refuse the login of {user!r}: {error_name(found['error'])},"
                f" {one_line(found['message'])}"
            )

    def call(self, api, values):
        """Send a request and return its answer; WireError where its version is not spoken there."""
        low, high = self.versions.get(api.key, (0, -1))
        if not low <= api.version <= high:
            raise WireError(
                f"the controller speaks versions {low} to {high} of {api.name}, and not {api.version}"
            )
        return self._exchange(api, values)

    def _exchange(self, api, values):
        deadline = time.monotonic() + self._timeout
        self._correlation += 1
        head = struct.pack(">hhi", api.key, api.version, self._correlation)
        head += String.encode("kafkaops-guard") + (b"\0" if api.flexible else b"")
        message = head + api.request.encode(values)
        self._socket.settimeout(self._timeout)
        self._socket.sendall(INT32.encode(len(message)) + message)
        size, dummy = INT32.decode(receive_exactly(self._socket, 4, deadline), 0)
        if not 4 <= size <= ANSWER_MAX:
            raise WireError(f"an answer of {size} bytes: no Kafka in {self._protocol}")
        data = receive_exactly(self._socket, size, deadline)
        correlation, at = INT32.decode(data, 0)
        if correlation != self._correlation:
            raise WireError("an answer to another request")
        if api.tagged:
            dummy, at = Tags.decode(data, at)
        return api.answer.decode(data, at)[0]

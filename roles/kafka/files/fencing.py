# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's registration in KRaft mode, as its own host sees it: released after a death, not waited for.

    fencing.py before-start|after-exit|ready|watch --properties FILE --log FILE --state DIR [--keep]

The commands are those of registration.py, which does this work in ZooKeeper mode. A broker that dies is
missed when its session of 9 s is over. Until then its partitions stand still, and every new start is
turned away (DUPLICATE_BROKER_REGISTRATION). Its own host knows earlier, and tells the controllers:

* EndQuorumEpoch, to the other controllers, where the dead node led the quorum: elect another leader now;
* BrokerHeartbeat with `wantFence` and the dead broker's own epoch: leaders move;
* UnregisterBroker: the next start registers at once.

The last one is final: a process that lives would go on as a zombie that never registers again. So it
needs a proof of death:

* the process of the start record is gone, and
* the lock of every log directory is free, and is held here until the answers are there: no new process
  of this node can have registered meanwhile, and
* the fence was accepted with the epoch that this node's own log names last: nobody else has registered
  under this id. For the rest of the session nobody else can, either.

Requests go to the controllers themselves, and never through a broker, which would keep one for a leader
to come and could hand it over after a new process has registered.

A clean exit has moved the leaders already. Only the next start needs help then, and only where Kafka 4
leads: there it waits for the old session all the same, and with 3.9 it does not (both measured). So it
is unregistered right before the start, and not when it stops: it may stay away for long, and the
controllers remember of a registered broker that its replicas are complete.

In any doubt nothing is done, and the session decides. That is so, too, where the controllers' listener
is not PLAINTEXT, and where a controller does not speak the versions that are known here.

Standard library of Python 3.6 only, for the reasons that registration.py has.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import socket
import struct
import sys
import time

sys.dont_write_bytecode = True  # what lies beside this file is a generation, and compared

# pylint: disable=wrong-import-position
from registration import (  # noqa: E402
    CONNECT_SECONDS,
    Instance,
    is_alive,
    locked,
    main,
    read_properties,
)

REGISTERED = re.compile(rb"Successfully registered broker (\d+) with broker epoch (\d+)")
MARK = b" with broker epoch "
METADATA = "__cluster_metadata"
# An election takes less than one; a session would be over after nine.
PATIENCE_SECONDS = 6
PAUSE_SECONDS = 0.05
ANSWER_MAX = 1 << 20

TIMED_OUT, NOT_CONTROLLER, STALE_EPOCH, NOT_REGISTERED = 7, 41, 77, 102
# One that has just been elected, and is busy, answers that a request took too long.
RETRIED = (TIMED_OUT, NOT_CONTROLLER)
ERRORS = {
    29: "TOPIC_AUTHORIZATION_FAILED",
    31: "CLUSTER_AUTHORIZATION_FAILED",
    35: "UNSUPPORTED_VERSION",
}


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


BOOL, INT16, INT32, INT64 = Kind("?"), Kind("h"), Kind("i"), Kind("q")


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
        count, at = read_varint(data, at)
        while count:
            dummy, at = read_varint(data, at)  # which one it is
            size, at = read_varint(data, at)
            at, count = at + size, count - 1
        if at > len(data):
            raise WireError("an answer ends early")
        return None, at


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
    """One kind of request in the one version that is known here."""

    def __init__(self, name, key, version, flexible, request, answer):
        self.name, self.key, self.version, self.flexible = name, key, version, flexible
        self.request, self.answer = request, answer


# Version 0 of each: all that Kafka 3.9 and 4.3 speak at the controllers' port.
API_VERSIONS = Api(
    "ApiVersions",
    *(18, 0, False),
    Schema(),
    Schema(
        ("error", INT16),
        ("apis", Array(Schema(("key", INT16), ("min", INT16), ("max", INT16)))),
    ),
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
# Where the controllers are of Kafka 4, Fetch (1) has lost its first versions.
FETCH, FETCH_OF_4 = 1, 4


class Controller:
    """A connection to a controller; the versions that it speaks are asked for first."""

    def __init__(self, address, timeout=CONNECT_SECONDS):
        self._socket = socket.create_connection(address, timeout)
        self._correlation = 0
        try:
            found = self._exchange(API_VERSIONS, {})
            if found["error"]:
                raise WireError(f"ApiVersions was answered with {error_name(found['error'])}")
            self.versions = {each["key"]: (each["min"], each["max"]) for each in found["apis"]}
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *dummy):
        self._socket.close()

    @property
    def is_of_kafka_4(self):
        """Whether the node runs Kafka 4."""
        return self.versions.get(FETCH, (0, 0))[0] >= FETCH_OF_4

    def call(self, api, values):
        """Send a request and return its answer; WireError where its version is not spoken there."""
        low, high = self.versions.get(api.key, (0, -1))
        if not low <= api.version <= high:
            raise WireError(
                f"the controller speaks versions {low} to {high} of {api.name}, and not {api.version}"
            )
        return self._exchange(api, values)

    def _exchange(self, api, values):
        self._correlation += 1
        head = struct.pack(">hhi", api.key, api.version, self._correlation)
        head += String.encode("kafkaops-guard") + (b"\0" if api.flexible else b"")
        message = head + api.request.encode(values)
        self._socket.sendall(INT32.encode(len(message)) + message)
        size, dummy = INT32.decode(self._exactly(4), 0)
        if not 4 <= size <= ANSWER_MAX:
            raise WireError(f"an answer of {size} bytes: no Kafka in PLAINTEXT")
        data = self._exactly(size)
        correlation, at = INT32.decode(data, 0)
        if correlation != self._correlation:
            raise WireError("an answer to another request")
        if api.flexible:
            dummy, at = Tags.decode(data, at)
        return api.answer.decode(data, at)[0]

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise OSError("the connection was closed")
            data += part
        return data


def error_name(code):
    """Return how Kafka calls an error, where it is known here."""
    return ERRORS.get(code, f"error {code}")


# ---------------------------------------------------------------- what is known on this host


def parse_voters(properties):
    """Return [(host, port), ...] of the controllers that a server.properties names, its own included."""
    text = properties.get("controller.quorum.bootstrap.servers") or properties.get(
        "controller.quorum.voters", ""
    )
    found = []
    for item in text.split(","):
        host, dummy, port = item.strip().rpartition("@")[2].rpartition(":")
        if host and port.isdigit():
            found.append((host.strip("[]"), int(port)))
    return found


def protocol_of(properties):
    """Return the security protocol of the controllers' listener."""
    name = properties.get("controller.listener.names", "").split(",")[0].strip()
    for item in properties.get("listener.security.protocol.map", "").split(","):
        listener, dummy, protocol = item.strip().partition(":")
        if listener.upper() == name.upper():
            return protocol.upper()
    return "PLAINTEXT"


def clean_epoch(log_dirs):
    """Return the broker epoch that a clean exit has left in all of the log directories, None if it did not.

    A directory that is not there, or that nobody has formatted, does not count.
    """
    epochs = set()
    for directory in log_dirs:
        if not os.path.exists(os.path.join(directory, "meta.properties")):
            continue
        try:
            with open(os.path.join(directory, ".kafka_cleanshutdown"), encoding="utf-8") as handle:
                epochs.add(int(json.load(handle)["brokerEpoch"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
    return epochs.pop() if len(epochs) == 1 else None


def led_epoch(metadata_dir, node_id):
    """Return the epoch in which this node leads the quorum as far as its disk knows, or None."""
    path = os.path.join(metadata_dir, METADATA + "-0", "quorum-state")
    try:
        with open(path, encoding="utf-8") as handle:
            state = json.load(handle)
        return int(state["leaderEpoch"]) if int(state["leaderId"]) == node_id else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def alone(path, seconds):
    """Hold the lock of this file: of two guards of a node the second waits, at most so long."""
    deadline = time.monotonic() + seconds
    with open(path, "w", encoding="utf-8") as handle:
        while True:
            try:
                fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise
                if time.monotonic() > deadline:
                    break  # the locks of the directories tell it, too
            time.sleep(PAUSE_SECONDS)
        yield


class Node(Instance):
    """One node of a KRaft cluster on this host: a broker, a controller, or both."""

    REGISTERED = REGISTERED
    MARK = MARK

    def __init__(self, properties, log, state):
        super().__init__(properties, log, state)
        self.id = int(self.properties["node.id"])
        self.roles = [item.strip() for item in self.properties.get("process.roles", "").split(",")]
        self.controllers = parse_voters(self.properties)
        first = self.log_dirs[0] if self.log_dirs else ""
        self.metadata_dir = self.properties.get("metadata.log.dir") or first
        self.protocol = protocol_of(self.properties)

    @property
    def registers(self):
        """Whether it is a broker."""
        return "broker" in self.roles

    def before_start(self, say, parent):
        """Nothing: a node of a quorum must not wait for the quorum, and brokers wait by themselves."""

    def release(self, record, starts=False):
        """Tell the controllers that the process of `record` is dead; return a line for the log, or "".

        `starts`: a start follows; only then a process that has ended cleanly is unregistered.
        """
        if not record:
            return ""
        with alone(os.path.join(self.state, "guard.lock"), 2 * PATIENCE_SECONDS):
            if is_alive(record):
                return f"process {record['pid']} is alive, its registration stays"
            with locked(sorted({*self.log_dirs, self.metadata_dir})) as held_elsewhere:
                if held_elsewhere:
                    return f"{held_elsewhere} is held by a living process, all registrations stay"
                return self._release(starts)

    def _release(self, starts):
        known = self.last_registration() if self.registers else None
        if known and known[0] != self.id:
            known = None
        clean = known is not None and clean_epoch(self.log_dirs) == known[1]
        if clean and not starts:
            return ""
        led = None
        if "controller" in self.roles and not clean:
            led = led_epoch(self.metadata_dir, self.id)
        if known is None and led is None:
            if self.registers:
                return "the registration stays: the log does not say which one was ours"
            return ""
        if self.protocol != "PLAINTEXT":
            return (
                f"the controllers' listener is {self.protocol}, which is not spoken here:"
                " a dead registration is left to the session timeout"
            )
        election = Election(self, led) if led is not None else None
        try:
            said = self._fence(known[1], clean, election) if known else ""
            if election and not known:
                election.end()
        except WireError as error:
            said = f"{error}; a dead registration is left to the session timeout"
        told = ""
        if election and election.told:
            told = f"called for an election at {election.told} of the controllers"
        return "; ".join(each for each in (told, said) if each)

    # The controllers

    def reach(self):
        """Yield a Controller of each that takes a connection."""
        for address in self.controllers:
            try:
                controller = Controller(address)
            except OSError:
                continue
            with controller:
                yield controller

    def _fence(self, epoch, clean, election):
        """Fence and unregister the broker of this epoch at the controller that leads, or is elected."""
        what = f"broker {self.id} of epoch {epoch}"
        deadline = time.monotonic() + PATIENCE_SECONDS
        majority = len(self.controllers) // 2 + 1
        while True:
            reached = 0
            if election:
                election.tell_next()
            for controller in self.reach():
                reached += 1
                if clean and not controller.is_of_kafka_4:
                    return ""
                try:
                    said = self._fence_at(controller, epoch, what)
                except OSError:
                    continue
                if said is not None:
                    return said
            if reached < majority and clean:
                return ""  # all start together: there is nobody who could turn it away
            if reached < majority:
                left = "of the quorum a majority is not there"
            elif time.monotonic() > deadline:
                left = f"no controller leads after {PATIENCE_SECONDS} s"
            else:
                time.sleep(PAUSE_SECONDS)
                continue
            return f"{left}: {what} is left to the session timeout"

    def _fence_at(self, controller, epoch, what):
        """Return what was done; None where this controller does not lead, or not yet."""
        values = {
            "broker": self.id,
            "epoch": epoch,
            "metadata_offset": 0,
            "want_fence": True,
            "want_shut_down": False,
        }
        error = controller.call(BROKER_HEARTBEAT, values)["error"]
        if error in RETRIED:
            return None
        if error in (STALE_EPOCH, NOT_REGISTERED):
            return f"{what} is not registered any more"
        if error:
            return f"{what} stays: the controller answers {error_name(error)}"
        found = controller.call(UNREGISTER_BROKER, {"broker": self.id})
        if found["error"] in RETRIED:
            return None
        if found["error"] not in (0, NOT_REGISTERED):
            told = found["message"] or error_name(found["error"])
            return f"fenced {what}, whose process is dead; it stays registered: {told}"
        return f"fenced and unregistered {what}: its process is dead"


class Election:
    """Calls for an election: of the other controllers one more stands at each `tell_next`; `told`: how many have.

    Not all at once, since two that stand at the same time share the votes. And more than one: with Kafka 4
    a follower that has just fetched from its leader says no to whoever asks whether he would be elected, until
    it gives the leader up itself. The next one to do so is elected.
    """

    def __init__(self, node, epoch):
        meta = read_properties(os.path.join(node.metadata_dir, "meta.properties"))
        partition = {"index": 0, "leader": node.id, "epoch": epoch, "successors": []}
        self._values = {
            "cluster_id": meta.get("cluster.id"),
            "topics": [{"name": METADATA, "partitions": [partition]}],
        }
        self._left = list(node.controllers)
        self.told = 0

    def tell_next(self):
        """Let the next controller stand that takes the call; return whether there was one."""
        while self._left:
            address = self._left.pop(0)
            try:
                with Controller(address) as controller:
                    found = controller.call(END_QUORUM_EPOCH, self._values)
            except OSError:
                continue
            partitions = [part for topic in found["topics"] for part in topic["partitions"]]
            if found["error"] or any(each["error"] for each in partitions):
                continue  # another leader is known there already
            self.told += 1
            return True
        return False

    def end(self):
        """Let all of them stand, one after the other."""
        while self.tell_next():
            time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    sys.exit(main(kind=Node, text=__doc__))

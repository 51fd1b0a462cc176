# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broker's registration in ZooKeeper, as its own host sees it: waited for, and released after a death.

    registration.py before-start|after-exit|ready|watch|hanging --properties FILE --log FILE --state DIR [--keep]

before-start  releases what a dead process has left, then waits until ZooKeeper can be talked to and the id
              is free, so that a broker is not started in vain; notes the registration known so far.
after-exit    releases what a dead process has left.
ready         returns when this start's process has registered, or when its log has not told of it for two
              minutes: a start is never held up by what only waits (a log configuration of your own
              may say nothing).
watch         waits until this start's process ends, then does after-exit's work: for service managers
              that run nothing after an exit. What it has to say goes to console.log beside the log.
hanging       does nothing here; see fencing.py. A broker on its way to KRaft has migrating.py.

A broker that dies without a controlled shutdown stays registered until its session expires (18 s by
default). Until then all partitions that have it in their ISR stand still, and every new start fails.
Deleting the registration ends that at once, but only a proven death allows it: a broker that is merely
stopped would go on as a zombie, acknowledging records that nobody replicates. The proof is

* the process of the start record is gone, and
* the lock of every log directory is free, and is held here while the registration is deleted, and
* the znode was created by the transaction (czxid) that this instance's own log names last: a
  registration of another host, of a later process or of a new session has another one. What was noted when
  this process had registered counts as well, since logs rotate.

`/controller` is deleted with it if the same session owns it. In any doubt nothing is done; the session
timeout then decides, as without this file, and the reason is printed (--keep leaves all registrations
alone). ZooKeeper over TLS is left alone, too: no standard-library client.

Standard library of Python 3.6 only: it runs on managed hosts, started by the unit or the launch script,
where the Python that Ansible uses may be hidden by the unit's sandbox, and the system's is an old one.
"""

import argparse
import contextlib
import errno
import fcntl
import json
import mmap
import os
import re
import select
import socket
import struct
import sys
import time

REGISTERED = re.compile(
    rb"Registered broker (\d+) at path \S+ with addresses: .*czxid \(broker epoch\): (\d+)"
)
MARK = b"czxid (broker epoch): "
EXISTS, DELETE, CLOSE = 3, 2, -11
NO_NODE, NO_AUTH, NOT_AUTHENTICATED = -101, -102, -112
CONNECT_SECONDS = 2.0
# Long enough for a call, short enough that a session left behind by a kill is soon gone.
SESSION_MS = 4000
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
WHITE = {"n": "\n", "r": "\r", "t": "\t"}
# How long `ready` holds a start up that nothing is heard of.
READY_SECONDS = 120


class ZookeeperError(Exception):
    """A server refused a call; `code` is ZooKeeper's."""

    def __init__(self, code):
        super().__init__(f"ZooKeeper answered with error {code}")
        self.code = code


class Zookeeper:
    """The three calls that are needed here, over one connection (protocol of ZooKeeper 3.4 and later)."""

    def __init__(self, host, port, timeout=CONNECT_SECONDS):
        self._socket = socket.create_connection((host, port), timeout)
        try:
            # protocol 0, last zxid seen, session timeout, no session, no password
            self._send(struct.pack(">iqiq", 0, 0, SESSION_MS, 0) + _buffer(b"\0" * 16))
            answer = self._receive()
            if struct.unpack(">i", answer[4:8])[0] <= 0:
                raise OSError("the session was refused")
        except BaseException:
            self._socket.close()
            raise
        self._xid = 0

    def _send(self, data):
        self._socket.sendall(struct.pack(">i", len(data)) + data)

    def _exactly(self, size):
        return receive_exactly(self._socket, size, closed="the connection was closed: no quorum")

    def _receive(self):
        return self._exactly(struct.unpack(">i", self._exactly(4))[0])

    def _call(self, kind, body):
        self._xid += 1
        self._send(struct.pack(">ii", self._xid, kind) + body)
        while True:
            answer = self._receive()
            xid, _zxid, error = struct.unpack(">iqi", answer[:16])
            if xid == self._xid:
                if error:
                    raise ZookeeperError(error)
                return answer[16:]

    def stat(self, path):
        """Return (czxid, ephemeral owner) of a node, or None where it does not exist."""
        try:
            answer = self._call(EXISTS, _buffer(path.encode()) + b"\0")
        except ZookeeperError as error:
            if error.code == NO_NODE:
                return None
            raise
        # czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner
        fields = struct.unpack(">qqqqiiiq", answer[:52])
        return fields[0], fields[7]

    def delete(self, path):
        """Delete a node, whatever its version; one that is gone is fine."""
        try:
            self._call(DELETE, _buffer(path.encode()) + struct.pack(">i", -1))
        except ZookeeperError as error:
            if error.code != NO_NODE:
                raise

    def close(self):
        """End the session."""
        with contextlib.suppress(OSError, ZookeeperError):
            self._call(CLOSE, b"")
        self._socket.close()


def _buffer(data):
    return struct.pack(">i", len(data)) + data


def receive_exactly(channel, size, deadline=None, closed="the connection was closed"):
    """Return so many bytes; OSError where the connection ends before, or the deadline (monotonic)."""
    data = b""
    while len(data) < size:
        if deadline is not None:
            # 0 would mean: do not wait at all, which has another error.
            channel.settimeout(max(deadline - time.monotonic(), 0.001))
        part = channel.recv(size - len(data))
        if not part:
            raise OSError(closed)
        data += part
    return data


# ---------------------------------------------------------------- what is known on this host


def read_properties(path):
    """Return the `key=value` lines of a properties file, as the role and Kafka write them: one line each."""
    found = {}
    with open(path, encoding="utf-8", errors="replace") as handle:
        for line in handle:
            key, equals, value = line.strip().partition("=")
            if equals and not key.startswith(("#", "!")):
                found[unescaped(key.strip())] = unescaped(value.strip())
    return found


def unescaped(text):
    """Return a key or value without the escapes of java.util.Properties."""
    found = ESCAPE.sub(
        lambda match: (
            chr(int(match.group(1), 16))
            if match.group(1)
            else WHITE.get(match.group(2), match.group(2))
        ),
        text,
    )
    # What is beyond 16 bits travels as two.
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def parse_connect(text):
    """Return ([(host, port), ...], chroot) of a zookeeper.connect value."""
    servers, slash, chroot = text.partition("/")
    found = []
    for item in servers.split(","):
        host, dummy, port = item.strip().rpartition(":")
        if not port.isdigit() or not host:
            host, port = item.strip(), "2181"
        found.append((host.strip("[]"), int(port)))
    return found, (slash + chroot).rstrip("/")


def _last_registration(text, mark, pattern):
    end = len(text)
    while True:
        found = text.rfind(mark, 0, end)
        if found < 0:
            return None
        start = text.rfind(b"\n", 0, found) + 1
        stop = text.find(b"\n", found)
        # a line without its end is still being written
        match = pattern.search(text[start:stop]) if stop >= 0 else None
        if match:
            return int(match.group(1)), int(match.group(2))
        end = found


def last_registration(log, mark=MARK, pattern=REGISTERED, newest=None):
    """Return (broker id, epoch) of the last registration that a broker's log tells of, or None.

    It stands in the log of the broker's start, which may be months old: so all that are kept are looked at, or
    the `newest` so many. The epoch of a broker in ZooKeeper mode is the transaction (czxid) that has made its
    registration.
    """
    for path in [log, *rotated(log)][:newest]:
        try:
            with open(path, "rb") as handle:
                with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as text:
                    found = _last_registration(text, mark, pattern)
                    if found:
                        return found
        except (OSError, ValueError):  # absent; empty
            continue
    return None


def rotated(log):
    """Return the paths of a log's older parts, the newest first: server.log.1, server.log.2 and so on."""
    folder, name = os.path.split(log)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    parts = [each[len(name) + 1 :] for each in names if each.startswith(name + ".")]
    return [f"{log}.{number}" for number in sorted(int(each) for each in parts if each.isdigit())]


def is_alive(record):
    """Tell whether the process of a start record runs; a zombie or a recycled pid does not count."""
    try:
        with open(f"/proc/{int(record['pid'])}/stat", encoding="utf-8", errors="replace") as handle:
            fields = handle.read().rsplit(") ", 1)[1].split()
    except (OSError, IndexError, ValueError, KeyError, TypeError):
        return False
    return fields[0] not in "ZX" and int(fields[19]) == int(record.get("start_ticks", -1))


def runs_java(pid):
    """Tell whether the launch script `pid` has become the JVM."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "java"
    except OSError:
        return False


@contextlib.contextmanager
def locked(directories):
    """Hold the broker's own lock of every log directory; yield why one cannot be had, or ""."""
    with contextlib.ExitStack() as stack:
        for directory in directories:
            path = os.path.join(directory, ".lock")
            try:
                _lock(stack, path)
            except FileNotFoundError:
                # never used by a broker, or a disk that is gone: nobody can hold it
                continue
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    yield f"{path} is held by a living process"
                else:
                    yield f"whether a living process holds {path} is not known: {error.strerror}"
                return
        yield ""


def _lock(stack, path):
    """Hold a lock until the stack ends; OSError where somebody else has it, or nobody can tell."""
    try:
        handle, kind = stack.enter_context(open(path, "r+b")), fcntl.LOCK_EX
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        # A disk that has failed, which is why the broker ended: one that lives has a lock that this one would
        # not go with, and none can start there.
        handle, kind = stack.enter_context(open(path, "rb")), fcntl.LOCK_SH
    fcntl.lockf(handle, kind | fcntl.LOCK_NB)


# ---------------------------------------------------------------- the decision


def decide(broker_id, known, registration, controller):
    """Return (which nodes to delete, why not or ""); paths are relative to the chroot.

    `known`: (id, czxid) that the log names last, or None; `registration`, `controller`: (czxid, owner)
    of the znodes, or None. Whether the process is dead has been decided before.
    """
    path = f"/brokers/ids/{broker_id}"
    if registration is None:
        return [], ""
    if known is None or known[0] != broker_id:
        return [], f"{path} stays: the log does not say which registration was ours"
    czxid, owner = registration
    if czxid != known[1]:
        return [], f"{path} stays: created by transaction {czxid}, and ours was {known[1]}"
    paths = [path]
    if controller is not None and owner and controller[1] == owner:
        paths.append("/controller")
    return paths, ""


class Instance:
    """One broker on this host, by its settings, its log, its start records and its process."""

    REGISTERED = REGISTERED
    MARK = MARK
    # What a registration is known by; and whether there is but one for each process. In ZooKeeper each session has one.
    KNOWN_BY, ONCE = "czxid", False
    # In the state directory: what was known before the start, and what its process has registered with.
    BEFORE, SINCE = "registration.json", "registered.json"

    def __init__(self, properties, log, state):
        self.properties = read_properties(properties)
        dirs = self.properties.get("log.dirs") or self.properties.get("log.dir", "")
        self.log_dirs = [item.strip() for item in dirs.split(",") if item.strip()]
        self.log, self.state = log, state

    @property
    def registers(self):
        """Whether it ever registers as a broker."""
        return True

    def record(self, name):
        """Return a start record (started.json, previous.json) as a dict; empty if there is none."""
        try:
            with open(os.path.join(self.state, name), encoding="utf-8") as handle:
                found = json.load(handle)
            return found if isinstance(found, dict) else {}
        except (OSError, ValueError):
            return {}

    def last_registration(self, newest=None):
        """Return (broker id, epoch) of the last registration that the log tells of, or None."""
        return last_registration(self.log, self.MARK, self.REGISTERED, newest)

    def noted_registration(self, record):
        """Return (id, czxid or epoch) that was noted when the process of a start record had registered, else None."""
        noted = self.record(self.SINCE)
        if noted.get("pid") != record.get("pid") or not isinstance(noted.get(self.KNOWN_BY), int):
            return None
        return noted.get("id"), noted[self.KNOWN_BY]

    def registration_of(self, record):
        """Return the same of the process of a start record, also where it has left the logs that are kept.

        Epochs rise, so that of two the higher one is the later. One that is not the last is a doubt, and not a
        danger: nobody is let go by it.
        """
        remembered = self.noted_registration(record)
        # what nobody has read for months comes from the disk
        told = self.last_registration(newest=2 if remembered and self.ONCE else None)
        own = [each for each in (told, remembered) if each and each[0] == self.id]
        return max(own, default=told)

    def has_ended(self, pid, seconds=None):
        """Whether the process `pid`, which started this one, ends within so many seconds, or at last."""
        try:
            handle = os.pidfd_open(pid)
        except (AttributeError, OSError):  # a kernel before 5.3, or a Python built on one
            end = None if seconds is None else time.monotonic() + seconds
            while os.getppid() == pid and (end is None or time.monotonic() < end):
                time.sleep(0.1)
            return os.getppid() != pid
        try:
            # between the start of this and the call, the pid may have become somebody else's
            if os.getppid() == pid:
                select.select([handle], [], [], seconds)
        finally:
            os.close(handle)
        return os.getppid() != pid

    def watch_progress(self, say, pid, seconds):
        """Nothing: nobody is deregistered here who lives, whatever it does. In KRaft mode a broker can be fenced."""

    def note(self, known, pid):
        """Remember the registration known before the start of process `pid`."""
        self._write(self.BEFORE, {"czxid": known[1] if known else None, "pid": pid})

    def wait_until_registered(self, say, patience=READY_SECONDS):
        """Return when the log tells of a registration that was not known before the start.

        Also `patience` seconds after the JVM has begun, which in ZooKeeper mode is after ZooKeeper has answered, and
        when the process has ended: nobody starts it again before this returns.
        """
        if not self.registers:
            return
        deadline, was_alive = None, False
        while deadline is None or time.monotonic() < deadline:
            started = self.record("started.json")
            if not is_alive(started):
                if was_alive:
                    return
            else:
                was_alive = True
                if self.has_registered(started["pid"]):
                    return
                if deadline is None and runs_java(started["pid"]):
                    deadline = time.monotonic() + patience
            time.sleep(0.1)
        say(f"{self.log} does not tell of a registration after {patience} s: the start goes on")

    def remember_registration(self, pid):
        """Return when process `pid`, which started this one, has registered, or ends."""
        while self.registers and not self.has_registered(pid) and not self.has_ended(pid, 1.0):
            pass

    def has_registered(self, pid):
        """Whether the log tells of a registration of process `pid`, which is remembered: logs rotate."""
        # Both are written anew at each start: until then they tell of an earlier one.
        noted = self.record(self.BEFORE)
        known = self.last_registration(newest=2) if noted.get("pid") == pid else None
        if not known or known[0] != self.id or known[1] == noted.get("czxid"):
            return False
        with contextlib.suppress(OSError):
            self._write(self.SINCE, {"pid": pid, "id": known[0], self.KNOWN_BY: known[1]})
        return True

    def _write(self, name, values):
        path = os.path.join(self.state, name)
        # Of two that do the same at once each has a file of its own.
        aside = f"{path}.{os.getpid()}"
        with open(aside, "w", encoding="utf-8") as handle:
            json.dump(values, handle)
        os.replace(aside, path)


class Broker(Instance):
    """One broker in ZooKeeper mode on this host."""

    def __init__(self, properties, log, state):
        super().__init__(properties, log, state)
        self.servers, self.chroot = parse_connect(self.properties["zookeeper.connect"])
        self.id = int(self.properties["broker.id"])

    @property
    def uses_tls(self):
        """Whether ZooKeeper is talked to in a way that this file cannot."""
        return self.properties.get("zookeeper.ssl.client.enable", "false").lower() == "true"

    def connect(self):
        """Return a Zookeeper connection to the first server that gives a session; OSError if none does."""
        return self._first("gives a session", Zookeeper)

    def reach(self):
        """Return when any server takes a connection; OSError if none does. All there is over TLS."""
        self._first(
            "answers", lambda *place: socket.create_connection(place, CONNECT_SECONDS).close()
        )

    def _first(self, what, attempt):
        problem = OSError("no server is named")
        for host, port in self.servers:
            try:
                return attempt(host, port)
            except (OSError, struct.error) as error:
                problem = error
        raise OSError(f"no ZooKeeper server {what}: {problem}")

    def release(self, record, starts=False, leaves=False):
        """Delete the registration of the dead process of `record`; return a line for the log, or ""."""
        # a clean exit has left nothing, so that it does not matter what follows
        del starts, leaves
        if not record:
            return ""
        if is_alive(record):
            return f"process {record['pid']} is alive, its registration stays"
        if self.uses_tls:
            return "ZooKeeper speaks TLS: a dead registration is left to the session timeout"
        with locked(self.log_dirs) as held_elsewhere:
            if held_elsewhere:
                return f"{held_elsewhere}; all registrations stay"
            try:
                client = self.connect()
            except OSError as error:
                return f"{error}; a dead registration is left to the session timeout"
            try:
                return self._release(client, self.registration_of(record))
            except (OSError, struct.error) as error:
                return f"ZooKeeper: {error}; a dead registration is left to the session timeout"
            except ZookeeperError as error:
                if error.code in (NO_AUTH, NOT_AUTHENTICATED):
                    return "no right to delete the registration, it is left to the session timeout"
                return f"{error}; a dead registration is left to the session timeout"
            finally:
                client.close()

    def _release(self, client, known):
        registration = client.stat(f"{self.chroot}/brokers/ids/{self.id}")
        controller = client.stat(f"{self.chroot}/controller")
        paths, doubt = decide(self.id, known, registration, controller)
        for path in paths:
            client.delete(self.chroot + path)
        return f"released {' and '.join(paths)} of a process that is dead" if paths else doubt

    def before_start(self, say, parent):
        """Return when the broker would not be started in vain."""
        self.wait_for_zookeeper(say, parent)
        self.wait_until_free(say, parent)

    def wait_for_zookeeper(self, say, parent):
        """Return when a server gives a session; also when `parent`, who started this, is gone."""
        told = False
        while os.getppid() == parent:
            try:
                if self.uses_tls:
                    self.reach()
                else:
                    self.connect().close()
                return
            except OSError as error:
                if not told:
                    say(f"waiting for ZooKeeper: {error}")
                    told = True
            time.sleep(0.3)

    def wait_until_free(self, say, parent):
        """Return when nobody is registered under this id any more, or a session's time has passed.

        Started before, the broker would find its id taken and exit, again and again. Somebody else who
        has the id for good is for the broker to complain about.
        """
        if self.uses_tls:
            return
        path = f"{self.chroot}/brokers/ids/{self.id}"
        session = int(self.properties.get("zookeeper.session.timeout.ms", "18000")) / 1000
        deadline, told = time.monotonic() + 1.2 * session + 2, False
        while os.getppid() == parent and time.monotonic() < deadline:
            try:
                client = self.connect()
                try:
                    if client.stat(path) is None:
                        return
                finally:
                    client.close()
            except (OSError, struct.error, ZookeeperError):
                pass  # the broker itself will say what is wrong
            if not told:
                say(f"waiting until {path} is free: at most {1.2 * session + 2:.0f} s")
                told = True
            time.sleep(0.3)


def main(argv=None, kind=Broker, text=__doc__):
    """Run the command line for a `kind` of Instance; returns 0.

    Callers go on without it where it cannot even read the settings.
    """
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = ["before-start", "after-exit", "ready", "watch", "hanging", "leave"]
    parser.add_argument("command", choices=commands)
    parser.add_argument("--properties", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--state", required=True)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--hanging-seconds", type=float, default=0)
    options = parser.parse_args(argv)

    def say(text):
        line = f"registration: {text}"
        if text and options.command in ("watch", "hanging"):
            # its own output is nowhere, see the launch script
            console = os.path.join(os.path.dirname(options.log), "console.log")
            with open(console, "a", encoding="utf-8") as handle:
                handle.write(line + "\n")
        elif text:
            print(line, flush=True)

    parent = os.getppid()
    broker = kind(options.properties, options.log, options.state)
    if options.command == "ready":
        broker.wait_until_registered(say)
        return 0
    if options.command == "hanging":
        if options.hanging_seconds > 0 and not options.keep:
            broker.watch_progress(say, parent, options.hanging_seconds)
        return 0
    record = broker.record("previous.json" if options.command == "before-start" else "started.json")
    if options.command == "watch":
        broker.remember_registration(parent)
        broker.has_ended(parent)
    leaves = options.command == "leave"
    if leaves or not options.keep:
        say(broker.release(record, starts=options.command == "before-start", leaves=leaves))
    if options.command == "before-start":
        broker.note(broker.last_registration(), parent)
        broker.before_start(say, parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's registration in KRaft mode, as its own host sees it: released after a death, not waited for.

    fencing.py before-start|after-exit|ready|watch|leave --properties FILE --log FILE --state DIR [--keep]
    fencing.py hanging ... --hanging-seconds N

The commands are those of registration.py, which does this work in ZooKeeper mode, `hanging` and `leave`.
A broker that dies is missed when its session of 9 s is over. Until then its partitions stand still, and every new
start is turned away (DUPLICATE_BROKER_REGISTRATION). Its own host knows earlier, and tells the controllers:

* EndQuorumEpoch, to the other controllers, where the dead node led the quorum: elect another leader now;
* BrokerHeartbeat with `wantFence` and the dead broker's own epoch: leaders move;
* UnregisterBroker: the next start registers at once.

The last one is final: a process that lives would go on as a zombie that never registers again. So it
needs a proof of death:

* the process of the start record is gone, and
* the lock of every log directory is free, and is held here until the answers are there: no new process
  of this node can have registered meanwhile, and
* the fence was accepted with the epoch that this node's own log names last, or that was noted when it had
  registered, since logs rotate: nobody else has registered under this id. For the rest of the session nobody
  else can, either.

Requests go to the controllers themselves, and never through a broker, which would keep one for a leader
to come and could hand it over after a new process has registered.

A clean exit has moved the leaders already. Only the next start could need help then, and only where Kafka 4
leads: there it waits for the old session all the same, and with 3.9 it does not (both measured). But of a
broker that is not registered a controller cannot tell that its exit was clean: where the cluster has eligible
leader replicas (KIP-966), it takes those of this broker out, and with them perhaps the last ones that have
every acknowledged record (measured: they were lost when the last leader came back with an empty disk). So
there it is unregistered only if it has none, and is in no ISR either. That is what its own metadata log says
(metadata_log.py), to the end of which the controllers have to have committed it. It stays true until the
broker is back: only who is in an ISR becomes eligible, and who is fenced, or shuts down, comes into none. Else the
session decides. And it is unregistered right before the start, and not when it stops: it may stay away for
long.

`leave` is run when a node has stopped for good: it is unregistered then, however it has ended, and whatever
--keep says.

How they are talked to is in quorum_wire.py: in clear or by TLS, with a login by PLAIN or without.

`hanging` runs beside a broker for as long as it lives. Where the broker makes no progress for N seconds (see
hanging.py), it is fenced, and never unregistered: its next heartbeat undoes that, and then it leads nothing
and comes back into sync. This is done once for each time that it hangs.

In any doubt nothing is done, and the session decides. That is so, too, where the controllers do not let
this node in, where it has not the right, and where they do not speak the versions that are known here.

Standard library of Python 3.6 only, for the reasons that registration.py has.
"""

import contextlib
import errno
import fcntl
import json
import math
import os
import re
import sys
import time

sys.dont_write_bytecode = True  # what lies beside this file is a generation, and compared

# pylint: disable=wrong-import-position
from hanging import INTERVAL_SECONDS, Progress, threads_of  # noqa: E402
from metadata_log import LogError, last_seen  # noqa: E402
from quorum_wire import (  # noqa: E402
    BROKER_HEARTBEAT,
    DESCRIBE_QUORUM,
    END_QUORUM_EPOCH,
    NOT_AUTHORIZED,
    UNREGISTER_BROKER,
    Controller,
    Door,
    WireError,
    error_name,
    one_line,
)
from registration import (  # noqa: E402
    Instance,
    is_alive,
    locked,
    main,
    read_properties,
    runs_java,
)

REGISTERED = re.compile(rb"Successfully registered broker (\d+) with broker epoch (\d+)")
MARK = b" with broker epoch "
METADATA = "__cluster_metadata"
# The feature by whose level, above 0, controllers remember which replicas outside of an ISR are complete.
ELIGIBLE = "eligible.leader.replicas.version"
# An election takes less than one; a session would be over after nine.
PATIENCE_SECONDS = 6
# Between two attempts to fence a broker that hangs.
AGAIN_SECONDS = 2
# What became of a broker that was to be fenced: it is; its registration is another one, or none; nobody did anything.
FENCED, GONE, LEFT = "fenced", "gone", "left"
PAUSE_SECONDS = 0.05

NOT_LEADER, TIMED_OUT, NOT_CONTROLLER, STALE_EPOCH, NOT_REGISTERED = 6, 7, 41, 77, 102
# One that has just been elected, and is busy, answers that a request took too long.
RETRIED = (TIMED_OUT, NOT_CONTROLLER)
# Of the operations ClusterAction and Alter on the cluster, which Kafka's own nodes need as well.
REMEDY = "the user of the nodes has to be one of kafka_super_users"


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


def own_addresses(properties):
    """Return the (host, port) pairs at which the listeners of a server.properties are bound and announced."""
    found = set()
    for key in ("listeners", "advertised.listeners"):
        for item in properties.get(key, "").split(","):
            host, dummy, port = item.strip().rpartition("//")[2].rpartition(":")
            if port.isdigit():
                found.add((host.strip("[]"), int(port)))
    return found


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
    KNOWN_BY, ONCE = "epoch", True
    # Of a broker of which nobody knows with what it has registered.
    UNKNOWN = "the registration stays: the log does not say which one was ours"

    def __init__(self, properties, log, state):
        super().__init__(properties, log, state)
        # A broker on its way from ZooKeeper has the older name.
        self.id = int(self.properties.get("node.id") or self.properties["broker.id"])
        self.roles = [item.strip() for item in self.properties.get("process.roles", "").split(",")]
        self.controllers = parse_voters(self.properties)
        first = self.log_dirs[0] if self.log_dirs else ""
        self.metadata_dir = self.properties.get("metadata.log.dir") or first
        self.door = Door(self.properties)
        self.refusals = {}  # address of a controller -> why it is not asked again

    @property
    def registers(self):
        """Whether it is a broker."""
        return "broker" in self.roles

    def before_start(self, say, parent):
        """Nothing: a node of a quorum must not wait for the quorum, and brokers wait by themselves."""

    def release(self, record, starts=False, leaves=False):
        """Tell the controllers that the process of `record` is dead; return a line for the log, or "".

        `starts`: a start follows; `leaves`: none ever will. Only then a process that has ended cleanly is unregistered,
        and before a start only where that costs nothing (see `_costs`).
        """
        if not record:
            return ""
        with alone(os.path.join(self.state, "guard.lock"), 2 * PATIENCE_SECONDS):
            if is_alive(record):
                return f"process {record['pid']} is alive, its registration stays"
            with locked(sorted({*self.log_dirs, self.metadata_dir})) as held_elsewhere:
                if held_elsewhere:
                    return f"{held_elsewhere}; all registrations stay"
                return self._release(record, starts, leaves)

    def _release(self, record, starts, leaves):
        known = self.registration_of(record) if self.registers else None
        if known and known[0] != self.id:
            known = None
        clean = known is not None and self._ended_cleanly(known[1])
        if clean and not (starts or leaves):
            return ""
        led = None
        if "controller" in self.roles and not clean:
            led = led_epoch(self.metadata_dir, self.id)
        if known is None and led is None:
            return self.UNKNOWN if self.registers else ""
        self.refusals.clear()
        election = Election(self, led) if led is not None else None
        try:
            said = self._fence(known[1], clean and not leaves, election)[1] if known else ""
            if election and not known:
                election.end()
                said = "; ".join(sorted(set(self.refusals.values())))
        except WireError as error:
            said = f"{error}; a dead registration is left to the session timeout"
        told = ""
        if election and election.told:
            told = f"called for an election at {election.told} of the controllers"
        return "; ".join(each for each in (told, said) if each)

    def _ended_cleanly(self, epoch):
        """Whether the process that had registered with this epoch has left the marks of a clean exit."""
        return clean_epoch(self.log_dirs) == epoch

    def watch_progress(self, say, pid, seconds):
        """Fence this broker each time that its process `pid` hangs for so long; returns when the process has ended.

        `seconds`: more than a disk takes on a bad day, and less than the session.
        """
        progress, told, again = Progress(), "", 0.0
        while not self.has_ended(pid, INTERVAL_SECONDS):
            if not runs_java(pid):
                continue
            stuck, why = progress.look(time.monotonic(), threads_of(pid))
            if not stuck:
                told, again = "", 0.0
            # Once is not enough where controllers are just being elected, or out of reach for a moment.
            elif stuck >= seconds and time.monotonic() >= again:
                done, said = self.fence_hanging()
                if said != told:
                    say(f"it hangs for {stuck:.1f} s: {why}; {said}")
                told, again = said, math.inf if done else time.monotonic() + AGAIN_SECONDS

    def fence_hanging(self):
        """Fence this broker, which lives and makes no progress; return (whether that is done, a line for the log).

        Its log may lie on the disk that does not answer, and who reads there hangs, too. So it is asked only where
        nobody has noted the registration, or another one is in force.
        """
        record = self.record("started.json")
        said = "it is not fenced: the log does not say which registration is its own"
        for known in (self.noted_registration, self.registration_of):
            found = known(record)
            if not found or found[0] != self.id:
                continue
            self.refusals.clear()
            try:
                became, said = self._fence(found[1], lives=True)
            except WireError as error:
                return False, f"it is not fenced: {error}"
            if became != GONE:
                return became == FENCED, said
        return False, said

    # The controllers

    def reach(self, controllers):
        """Yield a Controller of each that takes a connection."""
        for address in controllers:
            controller = self.connect(address)
            if controller:
                with controller:
                    yield controller

    def connect(self, address):
        """Return a Controller, or None where it is not there, or lets nobody in; then `refusals` has the reason."""
        if address in self.refusals:
            return None  # by trying on, a wrong login would become an attack in somebody's audit
        try:
            return Controller(address, self.door)
        except OSError:
            return None
        except WireError as error:
            self.refusals[address] = str(error)
            return None

    def _fence(self, epoch, clean=False, election=None, lives=False):
        """Fence the broker of this epoch at the controller that leads, or is elected; unregister it unless it lives.

        Returns (FENCED, GONE or LEFT, a line for the log); the line is empty where there is nothing to say.
        """
        what = f"broker {self.id} of epoch {epoch}"
        deadline = time.monotonic() + PATIENCE_SECONDS
        majority = len(self.controllers) // 2 + 1
        # The controller of a process that hangs does so, too, and would only cost time.
        own = own_addresses(self.properties) if lives else ()
        asked = [each for each in self.controllers if each not in own]
        while True:
            reached = 0
            if election:
                election.tell_next()
            for controller in self.reach(asked):
                reached += 1
                try:
                    if clean and not controller.is_of_kafka_4:
                        return LEFT, ""  # it is let in again at once
                    costs = self._costs(controller) if clean else ""
                    if costs is None:
                        continue
                    if costs:
                        return (
                            LEFT,
                            f"{what} has ended cleanly, and is left to the session: {costs}",
                        )
                    done = self._fence_at(controller, epoch, what, lives)
                except OSError:
                    continue
                if done is not None:
                    return done
            # One that refuses may be the one that leads.
            given_up = reached < majority or time.monotonic() > deadline
            if given_up and self.refusals:
                raise WireError("; ".join(sorted(set(self.refusals.values()))))
            if reached < majority and clean:
                return LEFT, ""  # all start together: there is nobody who could turn it away
            if reached < majority:
                left = "of the quorum a majority is not there"
            elif time.monotonic() > deadline:
                left = f"no controller leads after {PATIENCE_SECONDS} s"
            else:
                time.sleep(PAUSE_SECONDS)
                continue
            return LEFT, f"{left}: {what} is left to the session timeout"

    def _costs(self, controller):
        """Return why a broker that has ended cleanly stays registered before its start, or "" where it need not.

        None where this controller does not lead, or what was read is not committed yet.
        """
        levels = controller.finalised_features()
        if levels is None:
            return "the controller does not tell the levels of features"
        if not levels.get(ELIGIBLE, 0):
            return ""
        try:
            seen = last_seen(self.metadata_dir, self.id)
        except (OSError, LogError) as error:
            return f"its metadata log does not tell whether it is eligible to lead: {error}"
        if not seen.away:
            return "its metadata log does not tell that the controllers have let it go"
        if seen.counts:
            return f"it is eligible to lead where too few others are in sync (partitions: {seen.counts})"
        topics = [{"name": METADATA, "partitions": [{"index": 0}]}]
        found = controller.call(DESCRIBE_QUORUM, {"topics": topics})
        parts = [part for topic in found["topics"] for part in topic["partitions"]]
        error = found["error"] or (parts[0]["error"] if parts else 0)
        if error == NOT_LEADER:
            return None
        if error or not parts:
            return f"the quorum was not described: {refusal_text(error)}"
        if parts[0]["epoch"] != seen.epoch:
            return "another controller leads since, and may not have all of its metadata log"
        return "" if parts[0]["high_watermark"] >= seen.end else None

    def _fence_at(self, controller, epoch, what, lives):
        """Return what `_fence` does; None where this controller does not lead, or not yet."""
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
            return GONE, f"{what} is not registered any more"
        if error:
            return LEFT, f"{what} stays: the controller answers {refusal_text(error)}"
        if lives:
            return FENCED, f"fenced {what}, others lead; it is let in again with its next heartbeat"
        found = controller.call(UNREGISTER_BROKER, {"broker": self.id})
        if found["error"] in RETRIED:
            return None
        if found["error"] not in (0, NOT_REGISTERED):
            told = one_line(found["message"] or "") or error_name(found["error"])
            if found["error"] == NOT_AUTHORIZED:
                told = refusal_text(NOT_AUTHORIZED)
            return FENCED, f"fenced {what}, whose process is dead; it stays registered: {told}"
        return FENCED, f"fenced and unregistered {what}: its process is dead"


def refusal_text(error):
    """Return an error's name, with what to do about it."""
    return error_name(error) + (f" ({REMEDY})" if error == NOT_AUTHORIZED else "")


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
        self._node, self._left = node, list(node.controllers)
        self.told = 0

    def tell_next(self):
        """Let the next controller stand that takes the call; return whether there was one."""
        while self._left:
            address = self._left.pop(0)
            controller = self._node.connect(address)
            if not controller:
                continue
            try:
                with controller:
                    found = controller.call(END_QUORUM_EPOCH, self._values)
            except OSError:
                continue
            if found["error"] == NOT_AUTHORIZED:
                self._node.refusals[address] = f"no election: {refusal_text(NOT_AUTHORIZED)}"
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

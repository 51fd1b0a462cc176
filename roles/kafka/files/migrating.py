# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registrations of a broker on its way from ZooKeeper to KRaft: it has one in each, and both are released.

    migrating.py before-start|after-exit|ready|watch|hanging|leave --properties FILE --log FILE --state DIR [--keep]

The commands are those of registration.py, which does the work in ZooKeeper. Before the controllers have the metadata,
that alone moves the leaders of a dead broker. Afterwards it is the controllers who watch the brokers, and they miss one
after a session of 9 s, whatever ZooKeeper says. So they are told as in KRaft mode: see fencing.py, whose proof of death
holds here, too. The start waits for ZooKeeper only: controllers may still have to come.

Its last clean exit in this phase is followed by a start in KRaft, whose guard knows a clean exit by an epoch that this
one does not leave. So it is unregistered then, and that start registers it anew.

Standard library of Python 3.6 only, for the reasons that registration.py has.
"""

import sys
import time

sys.dont_write_bytecode = True  # what lies beside this file is a generation, and compared

# pylint: disable=wrong-import-position
from fencing import Node, clean_epoch  # noqa: E402
from registration import Broker, is_alive, main  # noqa: E402

# A broker registers with the controllers right after ZooKeeper, if they are there.
CONTROLLERS_SECONDS = 5
REMEMBER_SECONDS = 600


class Member(Node):
    """The broker as the controllers know it: one that does not vote, and whose settings do not say its role."""

    BEFORE, SINCE = "registration-kraft.json", "registered-kraft.json"
    # It may not have met the controllers yet.
    UNKNOWN = ""

    def __init__(self, properties, log, state):
        super().__init__(properties, log, state)
        self.roles = ["broker"]

    def _ended_cleanly(self, epoch):
        # With metadata in ZooKeeper a broker leaves -1 there, whatever its epoch was; each start takes the mark away.
        return clean_epoch(self.log_dirs) is not None


class Migrating(Broker):
    """One broker on this host that has its metadata in ZooKeeper, and is registered with controllers as well."""

    def __init__(self, properties, log, state):
        super().__init__(properties, log, state)
        self.member = Member(properties, log, state)

    def release(self, record, starts=False, leaves=False):
        """Release both registrations of the dead process of `record`; return a line for the log, or ""."""
        # ZooKeeper first: its work is done within milliseconds, and controllers may just be electing.
        said = super().release(record, starts, leaves)
        told = self.member.release(record, starts, leaves)
        return "; ".join(dict.fromkeys(each for each in (said, told) if each))

    def note(self, known, pid):
        """Remember the registrations known before the start of process `pid`."""
        super().note(known, pid)
        self.member.note(self.member.last_registration(), pid)

    def wait_until_registered(self, say, **patience):
        """Return when this start's process has registered in ZooKeeper, and with controllers that are there."""
        super().wait_until_registered(say, **patience)
        end = time.monotonic() + CONTROLLERS_SECONDS
        while time.monotonic() < end:
            started = self.record("started.json")
            if not is_alive(started) or self.member.has_registered(started["pid"]):
                return
            time.sleep(0.1)

    def remember_registration(self, pid):
        """Return when process `pid`, which started this one, has registered with both, or ends."""
        super().remember_registration(pid)
        # Where no controllers come, the log is read at the end, and not each second until then.
        end = time.monotonic() + REMEMBER_SECONDS
        while time.monotonic() < end and not self.member.has_registered(pid):
            if self.member.has_ended(pid, 1.0):
                return


if __name__ == "__main__":
    sys.exit(main(kind=Migrating, text=__doc__))

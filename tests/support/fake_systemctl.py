# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small systemctl: it starts, watches and stops real processes as a unit's text says, without systemd.

    fake_systemctl.py DIRECTORY show|start|stop|enable|disable|daemon-reload|reset-failed ... [UNIT]

DIRECTORY holds the units (`units/`), what each of them does (`UNIT.json`) and the calls (`calls`). A file
`queue` there keeps start jobs waiting, as one does that comes after another unit; a file `broken` makes
every call fail.
"""

import json
import os
import signal
import subprocess
import sys
import time

RESTARTS, RESTART_SECONDS = 3, 0.5
NONE = {"ActiveState": "inactive", "MainPID": 0, "NRestarts": 0, "Job": 0}


class Unit:
    def __init__(self, directory, name):
        self.name, self.queue = name, os.path.join(directory, "queue")
        self.file = os.path.join(directory, "units", name)
        self.state = os.path.join(directory, f"{name}.json")
        self.stopping = os.path.join(directory, f"{name}.stop")

    def read(self):
        try:
            with open(self.state) as handle:
                return json.load(handle)
        except FileNotFoundError:
            return dict(NONE)

    def write(self, **values):
        with open(f"{self.state}.{os.getpid()}", "w") as handle:
            json.dump({**self.read(), **values}, handle)
        os.replace(handle.name, self.state)

    def watch(self):
        """Be the service manager of this unit, until it has ended or failed for good."""
        while os.path.exists(self.queue):
            time.sleep(0.02)
        values = dict(line.strip().split("=", 1) for line in open(self.file) if "=" in line)
        for attempt in range(RESTARTS + 1):
            with open(values["StandardOutput"].split(":", 1)[1], "ab") as console:
                child = subprocess.Popen([values["ExecStart"]], stdout=console, stderr=console)
            self.write(ActiveState="active", MainPID=child.pid, NRestarts=attempt, Job=0)
            while child.poll() is None:
                if os.path.exists(self.stopping):
                    os.unlink(self.stopping)
                    child.terminate()
                    child.send_signal(signal.SIGCONT)
                    self.write(ActiveState="deactivating")
                    child.wait()
                    self.write(ActiveState="inactive", MainPID=0)
                    return
                time.sleep(0.02)
            if child.returncode in (0, 143):
                self.write(ActiveState="inactive", MainPID=0)
                return
            self.write(ActiveState="activating", MainPID=0)
            again = time.monotonic() + RESTART_SECONDS
            while time.monotonic() < again:
                if os.path.exists(self.stopping):
                    os.unlink(self.stopping)
                    self.write(ActiveState="failed")
                    return
                time.sleep(0.02)
        self.write(ActiveState="failed")

    def start(self):
        if not os.path.exists(self.file):
            sys.exit(f"Failed to start {self.name}: Unit {self.name} not found.")
        if self.read()["ActiveState"] == "active":
            return
        self.write(**NONE)
        self.write(Job=7)
        subprocess.Popen(
            [sys.executable, "-S", __file__, os.path.dirname(self.state), "watch", self.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def stop(self):
        if self.read()["ActiveState"] in ("active", "activating"):
            # in this order: whoever watches may write "inactive" as soon as the file is there
            self.write(ActiveState="deactivating")
            open(self.stopping, "w").close()

    def show(self, properties):
        loaded = "loaded" if os.path.exists(self.file) else "not-found"
        for key, value in {**self.read(), "LoadState": loaded}.items():
            if key in properties.split(",") and (key, value) != ("Job", 0):
                print(f"{key}={value}")


def main(directory, verb, *words):
    with open(os.path.join(directory, "calls"), "a") as handle:
        handle.write(" ".join([verb, *words]) + "\n")
    if os.path.exists(os.path.join(directory, "broken")):
        sys.exit("Failed to connect to bus: No such file or directory")
    names = [word for word in words if word.endswith(".service")]
    unit = Unit(directory, names[0]) if names else None
    if verb in ("start", "stop"):
        assert "--no-block" in words
        getattr(unit, verb)()
    elif verb == "show":
        unit.show(words[words.index("--property") + 1])
    elif verb == "watch":
        unit.watch()
    elif verb not in ("enable", "disable", "daemon-reload", "reset-failed"):
        sys.exit(f"Unknown command verb {verb}.")


if __name__ == "__main__":
    main(*sys.argv[1:])

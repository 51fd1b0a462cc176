# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small process in the place of a JVM, for tests of instances: real, but up in milliseconds.

The launch script runs `JAVA_HOME/bin/java ... MAIN PROPERTIES`; here that is a script that reads the
properties (`port`, `message`, `exit`, `listen`, `listen_after`, `stop_seconds`, `deaf`), says `message`, and
serves at `port` until SIGTERM, of which the first `deaf` ones are lost.
"""

import os
import sys
import time

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.generation import Generation
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.instance import (
    Instance,
    StartRules,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.store import Layout
from tests.support.outside import free_port

SERVER = """
import os, signal, socket, sys, time
values = dict(line.strip().split("=", 1) for line in open(sys.argv[-1]) if "=" in line)
deaf = int(values.get("deaf", 0))
def stop(*_):
    global deaf
    deaf -= 1
    if deaf >= 0:
        return
    time.sleep(float(values.get("stop_seconds", 0)))
    os._exit(0)
signal.signal(signal.SIGTERM, stop)
print(values.get("message", "starting"), flush=True)
if "exit" in values:
    os._exit(int(values["exit"]))
until = time.monotonic() + float(values.get("listen_after", 0))
while time.monotonic() < until:
    print(values.get("message", "starting"), flush=True)
    time.sleep(0.2)
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if values.get("listen", "yes") == "yes":
    server.bind(("127.0.0.1", int(values["port"])))
    server.listen()
# A signal between two system calls is seen after the next one: so none of them may last.
server.settimeout(0.2)
while True:
    if values.get("listen") == "no":
        time.sleep(0.2)
        continue
    try:
        server.accept()[0].close()
    except socket.timeout:
        pass
"""


def write_java(root):
    """Write the stand-in for Java below `root`; return its home."""
    home = os.path.join(root, "java")
    os.makedirs(os.path.join(home, "bin"), exist_ok=True)
    java, server = os.path.join(home, "bin", "java"), os.path.join(home, "server.py")
    with open(java, "w", encoding="utf-8") as handle:
        handle.write(
            f'#!/bin/sh\nfor last; do :; done\nexec "{sys.executable}" -S -E "{server}" "$last"\n'
        )
    os.chmod(java, 0o755)
    with open(server, "w", encoding="utf-8") as handle:
        handle.write(SERVER)
    return home


class Bench:
    """One instance below `root`, driven by `service`."""

    def __init__(self, root, service, name="one"):
        self.root, self.service, self.name = str(root), service, name
        self.port = free_port()
        self.home = write_java(self.root)
        place = os.path.join(self.root, name)
        self.layout = Layout(
            name,
            *(os.path.join(place, part) for part in ("conf", "run", "logs")),
            data_dirs=(os.path.join(place, "data"),),
        )
        self.instance = Instance(self.layout, service)

    @property
    def console(self):
        """Path of the file that has the process's output."""
        return os.path.join(self.layout.log_dir, "console.log")

    def count_time_from(self, words):
        """Let the instance's clock stand until the console holds `words`.

        A busy machine takes seconds to start a Python: a deadline of one second would be over before.
        """
        began = []

        def clock():
            if not began and words in self._said():
                began.append(time.monotonic())
            return time.monotonic() - began[0] if began else 0.0

        self.instance = Instance(self.layout, self.service, clock=clock)

    def _said(self):
        try:
            with open(self.console, encoding="utf-8") as handle:
                return handle.read()
        except FileNotFoundError:
            return ""

    def conf(self, *parts):
        """Return a path below the configuration directory."""
        return os.path.join(self.layout.config_dir, *parts)

    def generation(self, files=None, settings=None, comment="", port=None, **properties):
        """Return a Generation whose server.properties holds `port` and `properties`.

        `settings` of its service; `comment` in the text that defines it.
        """
        port = self.port if port is None else port
        values = {"port": port, **properties}
        text = "".join("%s=%s\n" % item for item in sorted(values.items()))
        return Generation(
            release=os.path.join(self.root, "release-1.0"),
            java_home=self.home,
            main_class="Main",
            classpath="libs/*",
            arguments=("{conf}/server.properties",),
            files={"server.properties": text, "log.xml": "<quiet/>", **(files or {})},
            unwatched=("log.xml",),
            service=settings or {},
            definition=comment
            + self.service.definition(
                self.name,
                self.conf("current", "launch"),
                self.console,
            ),
            ready=({"host": "127.0.0.1", "port": port},),
        )

    def stage(self, apply=True, seeds=None, **properties):
        """Stage a generation; return what staging found."""
        return self.instance.stage(self.generation(**properties), seeds or {}, apply)

    def turn(self, name=None, start_timeout=60, stop_timeout=30, **rules):
        """Take the instance's turn, with what is staged or with the generation `name`."""
        name = name or self.instance.staged()
        self.instance.turn(name, StartRules(start_timeout, stop_timeout, **rules))

    @property
    def reasons(self):
        """Why the process is not what is staged."""
        return self.instance.restart_reasons(self.instance.store.meaning(self.instance.staged()))

    @property
    def pid(self):
        """The pid of the running process, or None."""
        process = self.instance.process()
        return process.pid if process else None

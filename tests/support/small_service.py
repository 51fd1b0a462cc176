# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small process in the place of a JVM, for tests of instances: real, but up in milliseconds.

The launch script runs `JAVA_HOME/bin/java ... MAIN PROPERTIES`; here that is a script that reads the
properties (`port`, `message`, `exit`, `stop_seconds`), says `message`, and serves at `port` until SIGTERM.
"""

import os
import sys

from ansible_collections.kafkaops.cluster.plugins.module_utils._generation import Generation
from ansible_collections.kafkaops.cluster.plugins.module_utils._instance import Instance, Layout
from tests.support.outside import free_port

SERVER = """
import os, signal, socket, sys, time
values = dict(line.strip().split("=", 1) for line in open(sys.argv[-1]) if "=" in line)
def stop(*_):
    time.sleep(float(values.get("stop_seconds", 0)))
    os._exit(0)
signal.signal(signal.SIGTERM, stop)
print(values.get("message", "starting"), flush=True)
if "exit" in values:
    os._exit(int(values["exit"]))
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if values.get("listen", "yes") == "yes":
    server.bind(("127.0.0.1", int(values["port"])))
    server.listen()
while True:
    signal.pause() if values.get("listen") == "no" else server.accept()[0].close()
"""


class Bench:
    """One instance below `root`, driven by `service`."""

    def __init__(self, root, service, name="one"):
        self.root, self.service, self.name = str(root), service, name
        self.port = free_port()
        self.home = os.path.join(self.root, "java")
        os.makedirs(os.path.join(self.home, "bin"), exist_ok=True)
        java = os.path.join(self.home, "bin", "java")
        with open(java, "w", encoding="utf-8") as handle:
            handle.write(
                '#!/bin/sh\nfor last; do :; done\nexec "%s" -S -E "%s" "$last"\n'
                % (sys.executable, os.path.join(self.home, "server.py"))
            )
        os.chmod(java, 0o755)
        with open(os.path.join(self.home, "server.py"), "w", encoding="utf-8") as handle:
            handle.write(SERVER)
        place = os.path.join(self.root, name)
        self.layout = Layout(
            name,
            *(os.path.join(place, part) for part in ("conf", "run", "logs")),
            data_dirs=(os.path.join(place, "data"),),
        )
        self.instance = Instance(self.layout, service)
        self.ready = [{"host": "127.0.0.1", "port": self.port}]

    def conf(self, *parts):
        """Return a path below the configuration directory."""
        return os.path.join(self.layout.config_dir, *parts)

    def generation(self, stop_timeout=30, files=None, **properties):
        """Return a Generation whose server.properties holds `port` and `properties`."""
        values = {"port": self.port, **properties}
        text = "".join("%s=%s\n" % item for item in sorted(values.items()))
        return Generation(
            release=os.path.join(self.root, "release-1.0"),
            java_home=self.home,
            main_class="Main",
            classpath="libs/*",
            arguments=("{conf}/server.properties",),
            files={"server.properties": text, "log.xml": "<quiet/>", **(files or {})},
            unwatched=("log.xml",),
            unit={
                "text": self.service.unit(
                    self.name,
                    self.conf("current", "launch"),
                    os.path.join(self.layout.log_dir, "console.log"),
                    stop_timeout,
                )
            },
        )

    def stage(self, apply=True, seeds=None, **properties):
        """Stage a generation; return what staging found."""
        return self.instance.stage(self.generation(**properties), seeds or {}, apply)

    def turn(self, start_timeout=60, stop_timeout=30, transient=""):
        """Take the instance's turn."""
        self.instance.turn(stop_timeout, start_timeout, self.ready, [], transient)

    @property
    def pid(self):
        """The pid of the running process, or None."""
        process = self.instance.process()
        return process.pid if process else None

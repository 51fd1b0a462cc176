# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real cluster started by hand, without any role: for tests, and as the floor of benchmarks.

As a library::

    with BareCluster(directory=tmp, port_base=20000) as cluster:
        use(cluster.bootstrap_servers)

As a command, until interrupted::

    python -m tests.support.bare_cluster --directory /tmp/x --port-base 20000 --brokers 3

Everything listens on 127.0.0.1. Ports, from the base: +1.. ZooKeeper clients, +11.. their peers,
+21.. their elections, +31.. brokers, +41.. KRaft controllers, +51.., +61.. extra listeners.
What it starts it stops, by process id; what it did not start it never touches.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.releases import SHARED, shared_alone, shared_release

KAFKA_VERSION = "3.9.2"
KRAFT_VERSION = "4.3.1"
ZOOKEEPER_VERSION = "3.9.5"

# Short-lived JVMs on few cores: start-up cost counts, peak throughput does not (C1 only).
JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")

# A JVM that cannot use an archive goes on without it, and is not to say so.
QUIET = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")

LOG4J = """log4j.rootLogger=INFO, file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File=${instance.log}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
LOG4J2 = """Configuration:
  Appenders:
    File:
      name: file
      fileName: ${sys:instance.log}
      PatternLayout: {pattern: "[%d] %p %m (%c)%n"}
  Loggers:
    Root: {level: INFO, AppenderRef: {ref: file}}
"""
LOGBACK = """<configuration>
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>${instance.log}</file>
    <encoder><pattern>[%d] %p %m \\(%c\\)%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="file"/></root>
</configuration>
"""


@dataclass
class Instance:
    """One process: what starts it, where it logs, and the process once it runs."""

    name: str
    command: list[str]
    directory: Path
    process: subprocess.Popen | None = None

    @property
    def log(self) -> Path:
        """The application log; the JVM's own words are in `console` beside it."""
        return self.directory / "server.log"

    def start(self) -> None:
        """Start the process in a session of its own, so that Ctrl-C does not reach it."""
        with open(self.directory / "console", "ab") as console:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                self.command,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    def signal(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self.running():
            self.process.send_signal(number)

    def stop(self, timeout: float = 30) -> None:
        """SIGTERM, and SIGKILL only after the timeout."""
        if not self.running():
            return
        self.process.terminate()
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def kill(self) -> None:
        """SIGKILL: what a crash looks like."""
        if self.running():
            self.process.kill()
            self.process.wait(10)

    def last_lines(self, number: int = 15) -> str:
        """The end of console and log, for error messages."""
        lines = []
        for path in (self.directory / "console", self.log):
            if path.exists():
                lines += path.read_text(errors="replace").splitlines()[-number:]
        return "\n".join(lines)


@dataclass
class BareCluster:
    """Brokers with a ZooKeeper ensemble, or (`kraft=True`) combined KRaft nodes.

    `broker_config` is added to every broker's properties and wins over what is computed here; `of_broker`, id ->
    properties, to those of one, and wins over that.
    `extra_listeners` maps listener names to protocols, on ports from +51, +61, ... per listener.
    `proxied` names those whose brokers announce a port five above their own, for a proxy of the test.
    """

    directory: Path
    port_base: int
    brokers: int = 3
    zookeepers: int = 3
    # of each broker
    log_directories: int = 1
    kraft: bool = False
    kafka_version: str = ""
    kafka_release: Path | None = None
    zookeeper_release: Path | None = None
    broker_config: dict = field(default_factory=dict)
    of_broker: dict = field(default_factory=dict)
    extra_listeners: dict = field(default_factory=dict)
    proxied: tuple = ()
    broker_heap: str = "512m"
    zookeeper_heap: str = "128m"
    jvm_flags: tuple = JVM_FLAGS
    # For one product only, e.g. -XX:SharedArchiveFile=..., which fits one class path.
    kafka_flags: tuple = ()
    zookeeper_flags: tuple = ()
    chroot: str = "/kafka"
    start_timeout: float = 120
    timings: dict = field(default_factory=dict)
    zookeeper_instances: list = field(default_factory=list)
    broker_instances: dict = field(default_factory=dict)

    def __post_init__(self):
        self.directory = Path(self.directory)
        self.kafka_version = self.kafka_version or (KRAFT_VERSION if self.kraft else KAFKA_VERSION)

    # -- addresses

    def broker_port(self, broker_id: int) -> int:
        """Port of a broker; ids start at 1."""
        return self.port_base + 30 + broker_id

    def listener_address(self, name: str, broker_id: int = 1) -> str:
        """host:port of an extra listener."""
        place = list(self.extra_listeners).index(name)
        return f"127.0.0.1:{self.port_base + 50 + 10 * place + broker_id}"

    def announced_address(self, name: str, broker_id: int = 1) -> str:
        """host:port that clients of an extra listener are sent to."""
        host, _colon, port = self.listener_address(name, broker_id).rpartition(":")
        return f"{host}:{int(port) + (5 if name in self.proxied else 0)}"

    def _listeners(self, broker_id: int) -> dict:
        listeners = {"PLAINTEXT": f"127.0.0.1:{self.broker_port(broker_id)}"}
        protocols = {"PLAINTEXT": "PLAINTEXT", **self.extra_listeners}
        for name in self.extra_listeners:
            listeners[name] = self.listener_address(name, broker_id)
        if self.kraft:
            listeners["CONTROLLER"] = f"127.0.0.1:{self.port_base + 40 + broker_id}"
            protocols["CONTROLLER"] = "PLAINTEXT"
        announced = {
            name: self.announced_address(name, broker_id) if name in self.proxied else address
            for name, address in listeners.items()
            if name != "CONTROLLER"
        }
        return {
            "listeners": ",".join(f"{name}://{address}" for name, address in listeners.items()),
            "advertised.listeners": ",".join(
                f"{name}://{address}" for name, address in announced.items()
            ),
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in protocols.items()
            ),
            "inter.broker.listener.name": "PLAINTEXT",
        }

    @property
    def bootstrap_servers(self) -> str:
        """All brokers as host:port, separated by commas."""
        return ",".join(f"127.0.0.1:{self.broker_port(i + 1)}" for i in range(self.brokers))

    @property
    def zookeeper_connect(self) -> str:
        """Connect string with the chroot."""
        hosts = ",".join(f"127.0.0.1:{self.port_base + 1 + i}" for i in range(self.zookeepers))
        return hosts + self.chroot

    def log_directory(self, broker_id: int, number: int = 1) -> Path:
        """Where a broker keeps its partitions; one of several, by its number from 1."""
        name = "data" if number == 1 else f"data-{number}"
        return self.directory / f"broker-{broker_id}" / name

    # -- life

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_exc):
        self.stop()

    def start(self) -> BareCluster:
        """Prepare, start everything together, and wait until every broker is registered."""
        started = time.monotonic()
        shared = self.kafka_release is None and self.zookeeper_release is None
        self.kafka_release = self.kafka_release or shared_release("kafka", self.kafka_version)
        if not self.kraft:
            self.zookeeper_release = self.zookeeper_release or shared_release(
                "zookeeper", ZOOKEEPER_VERSION
            )
        self._refuse_used_ports()
        if shared and not self.kafka_flags and not self.zookeeper_flags:
            self._share_class_data()
        try:
            if self.kraft:
                self._prepare_kraft()
            else:
                self._prepare_zookeepers()
                self._prepare_brokers()
            self.timings["prepare_seconds"] = round(time.monotonic() - started, 3)
            started = time.monotonic()
            for instance in (*self.zookeeper_instances, *self.broker_instances.values()):
                instance.start()
            self.wait_registered()
            self.timings["ready_seconds"] = round(time.monotonic() - started, 3)
        except BaseException:
            self.stop()
            raise
        return self

    def _share_class_data(self) -> None:
        """Have the JVMs load their classes from archives, which a small cluster on these ports writes at first.

        A broker works two seconds less until it serves, and so do Kafka's own tools. Only of the releases that
        tests use all the time.
        """
        if self.kafka_version not in (KAFKA_VERSION, KRAFT_VERSION):
            return
        mode = "kraft" if self.kraft else "zookeeper"
        archives = [
            SHARED / f"{product}-{self.kafka_version}-{mode}.jsa"
            for product in ("kafka", "zookeeper")
        ]
        with shared_alone():
            if not archives[0].exists():
                drafts = [f"-XX:ArchiveClassesAtExit={archive}.draft" for archive in archives]
                with tempfile.TemporaryDirectory(prefix="kbt-") as folder:
                    small = replace(
                        self,
                        directory=Path(folder),
                        brokers=1,
                        zookeepers=1,
                        broker_config={},
                        of_broker={},
                        extra_listeners={},
                        proxied=(),
                        kafka_flags=(drafts[0], *QUIET),
                        zookeeper_flags=(drafts[1], *QUIET),
                        timings={},
                    )
                    small.start().stop(graceful=True)
                for archive in reversed(archives):
                    # An empty one says that this Java writes none, or that none is needed: nobody tries again.
                    draft = Path(f"{archive}.draft")
                    draft.touch()
                    draft.rename(archive)
        self.kafka_flags, self.zookeeper_flags = (
            (f"-XX:SharedArchiveFile={archive}", *QUIET) if archive.stat().st_size else ()
            for archive in archives
        )

    def stop(self, graceful: bool = False) -> None:
        """End all of it; brokers first, then the ensemble.

        Not gracefully by default: nobody keeps the data, and brokers that are all told to stop wait
        12 s for each other to take over their partitions.
        """
        for group in (list(self.broker_instances.values()), self.zookeeper_instances):
            for instance in group:
                instance.signal(signal.SIGTERM if graceful else signal.SIGKILL)
            for instance in group:
                instance.stop()

    def wait_registered(self) -> None:
        """Block until each broker that was started tells of all of them; RuntimeError with log lines.

        Not before: in ZooKeeper a broker is there before the others know it, and a topic with three replicas
        is refused meanwhile.
        """
        from tests.support.outside import told_by

        deadline = time.monotonic() + self.start_timeout
        missing = {i for i, instance in self.broker_instances.items() if instance.process}
        expected = set(missing)
        silent = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100}
        while missing:
            for instance in (*self.zookeeper_instances, *self.broker_instances.values()):
                if instance.process and not instance.running():
                    raise RuntimeError(f"{instance.name} ended:\n{instance.last_lines()}")
            if time.monotonic() > deadline:
                logs = "\n".join(self.broker_instances[i].last_lines() for i in sorted(missing))
                raise RuntimeError(f"brokers {sorted(missing)} did not register:\n{logs}")
            for broker in sorted(missing):
                told = told_by(f"127.0.0.1:{self.broker_port(broker)}", 1, **silent)
                if told is not None and expected <= set(told.brokers):
                    missing.discard(broker)
            time.sleep(0.02)

    # -- parts

    def _refuse_used_ports(self) -> None:
        ports = [self.broker_port(i + 1) for i in range(self.brokers)]
        ports += [self.port_base + 1 + i for i in range(0 if self.kraft else self.zookeepers)]
        for port in ports:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    raise RuntimeError(f"port {port} is in use, by something that is not ours")

    def _java(self, release: Path, libs: str, heap: str, log: Path, log_option: str, main: list):
        java = Path(os.environ["JAVA_HOME"]) / "bin/java" if os.environ.get("JAVA_HOME") else "java"
        return [
            str(java),
            *(f"-Xms{heap}", f"-Xmx{heap}"),
            *self.jvm_flags,
            *(self.zookeeper_flags if release == self.zookeeper_release else self.kafka_flags),
            f"-Dinstance.log={log}",
            log_option,
            *("-cp", f"{release / libs}/*"),
            *main,
        ]

    def _prepare_zookeepers(self) -> None:
        self.zookeeper_instances = []
        servers = [
            f"server.{i + 1}=127.0.0.1:{self.port_base + 11 + i}:{self.port_base + 21 + i}"
            for i in range(self.zookeepers)
        ]
        for index in range(self.zookeepers):
            home = self.directory / f"zookeeper-{index + 1}"
            data = home / "data"
            data.mkdir(parents=True, exist_ok=True)
            (data / "myid").write_text(f"{index + 1}\n")
            (home / "logback.xml").write_text(LOGBACK)
            lines = [
                "tickTime=2000",
                "initLimit=10",
                "syncLimit=5",
                f"dataDir={data}",
                f"clientPort={self.port_base + 1 + index}",
                "clientPortAddress=127.0.0.1",
                "admin.enableServer=false",
                "4lw.commands.whitelist=srvr,ruok,mntr,conf",
                # Processes die here, the machine does not: a disk that was busy for 18 s has cost a session.
                "forceSync=no",
                *(servers if self.zookeepers > 1 else ()),
            ]
            (home / "zoo.cfg").write_text("\n".join(lines) + "\n")
            libs = "lib" if (self.zookeeper_release / "lib").is_dir() else "libs"
            command = self._java(
                self.zookeeper_release,
                libs,
                self.zookeeper_heap,
                home / "server.log",
                f"-Dlogback.configurationFile={home / 'logback.xml'}",
                ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(home / "zoo.cfg")],
            )
            self.zookeeper_instances.append(Instance(f"zookeeper-{index + 1}", command, home))

    def _common_properties(self, broker_id: int) -> dict:
        replication = min(3, self.brokers)
        numbers = range(1, self.log_directories + 1)
        return {
            "log.dirs": ",".join(str(self.log_directory(broker_id, n)) for n in numbers),
            "num.network.threads": 2,
            "num.io.threads": 4,
            "auto.create.topics.enable": "false",
            "default.replication.factor": replication,
            "min.insync.replicas": max(1, replication - 1),
            "offsets.topic.replication.factor": replication,
            "transaction.state.log.replication.factor": replication,
            "transaction.state.log.min.isr": max(1, replication - 1),
            "offsets.topic.num.partitions": 5,
            "group.initial.rebalance.delay.ms": 0,
            "broker.rack": f"rack-{broker_id}",
        }

    def _prepare_brokers(self) -> None:
        self.broker_instances = {}
        for broker_id in range(1, self.brokers + 1):
            home = self.directory / f"broker-{broker_id}"
            home.mkdir(parents=True, exist_ok=True)
            (home / "log4j.properties").write_text(LOG4J)
            properties = {
                **self._common_properties(broker_id),
                "broker.id": broker_id,
                **self._listeners(broker_id),
                "zookeeper.connect": self.zookeeper_connect,
                "zookeeper.session.timeout.ms": 18000,
                # Both start together: on a busy machine an ensemble needs more than a session's time.
                "zookeeper.connection.timeout.ms": int(self.start_timeout * 1000),
                **self.broker_config,
                **self.of_broker.get(broker_id, {}),
            }
            self._add_broker(broker_id, home, properties, f"file:{home / 'log4j.properties'}")

    def _prepare_kraft(self) -> None:
        self.broker_instances = {}
        # Behind an "i": one in 64 would begin with a dash, which the command takes for an option
        # (Kafka's own never do).
        cluster_id = "i" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
        voters = ",".join(
            f"{i + 1}@127.0.0.1:{self.port_base + 41 + i}" for i in range(self.brokers)
        )
        for node_id in range(1, self.brokers + 1):
            home = self.directory / f"broker-{node_id}"
            home.mkdir(parents=True, exist_ok=True)
            (home / "log4j2.yaml").write_text(LOG4J2)
            properties = {
                **self._common_properties(node_id),
                "process.roles": "broker,controller",
                "node.id": node_id,
                "controller.quorum.voters": voters,
                **self._listeners(node_id),
                "controller.listener.names": "CONTROLLER",
                **self.broker_config,
                **self.of_broker.get(node_id, {}),
            }
            instance = self._add_broker(node_id, home, properties, str(home / "log4j2.yaml"))
            if not (home / "data" / "meta.properties").exists():
                place = instance.command.index("kafka.Kafka")
                command = [*instance.command[:place], "kafka.tools.StorageTool", "format"]
                command += ["-t", cluster_id, "-c", str(home / "server.properties")]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise RuntimeError(f"format of node {node_id}: {done.stdout}{done.stderr}")

    def _add_broker(
        self, broker_id: int, home: Path, properties: dict, log_config: str
    ) -> Instance:
        text = "".join(f"{key}={value}\n" for key, value in properties.items())
        (home / "server.properties").write_text(text)
        option = "-Dlog4j2.configurationFile=" if self.kraft else "-Dlog4j.configuration="
        command = self._java(
            self.kafka_release,
            "libs",
            self.broker_heap,
            home / "server.log",
            option + log_config,
            ["kafka.Kafka", str(home / "server.properties")],
        )
        instance = Instance(f"broker-{broker_id}", command, home)
        self.broker_instances[broker_id] = instance
        return instance


def main(arguments=None) -> int:
    """Start a cluster, print its timings as JSON, keep it until a signal (or --once)."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", required=True, type=Path)
    parser.add_argument("--port-base", required=True, type=int)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--zookeepers", type=int, default=3)
    parser.add_argument("--kraft", action="store_true")
    parser.add_argument("--kafka-version", default="")
    parser.add_argument("--kafka-release", type=Path)
    parser.add_argument("--zookeeper-release", type=Path)
    parser.add_argument("--jvm-flag", action="append", help="replaces the default flags")
    parser.add_argument("--kafka-flag", action="append", default=[])
    parser.add_argument("--zookeeper-flag", action="append", default=[])
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--once", action="store_true", help="stop as soon as it is ready")
    parser.add_argument("--clean", action="store_true", help="delete the directory at the end")
    options = parser.parse_args(arguments)
    cluster = BareCluster(
        directory=options.directory,
        port_base=options.port_base,
        brokers=options.brokers,
        zookeepers=options.zookeepers,
        kraft=options.kraft,
        kafka_version=options.kafka_version,
        kafka_release=options.kafka_release,
        zookeeper_release=options.zookeeper_release,
        broker_config=dict(entry.split("=", 1) for entry in options.config),
        jvm_flags=tuple(options.jvm_flag or JVM_FLAGS),
        kafka_flags=tuple(options.kafka_flag),
        zookeeper_flags=tuple(options.zookeeper_flag),
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with cluster:
            report = {"bootstrap_servers": cluster.bootstrap_servers, **cluster.timings}
            report["pids"] = [
                instance.process.pid
                for instance in (*cluster.zookeeper_instances, *cluster.broker_instances.values())
            ]
            print(json.dumps(report), flush=True)
            if not options.once:
                with contextlib.suppress(KeyboardInterrupt):
                    signal.pause()
    finally:
        if options.clean:
            shutil.rmtree(options.directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

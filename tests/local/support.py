# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A local cluster as a user has one: playbooks run in a checkout, a home and ports of its own.

::

    with LocalCluster(offset=21000) as cluster:
        run = cluster.play("site.yml", "-e", "flow_validation=never")
        assert run.changed() == 0, run.text
        cluster.tool("kafka-topics.sh", "--list")

Nothing here belongs to the product: clients are confluent-kafka and Kafka's own tools, processes are
looked up in /proc. What a test starts is stopped at its end, and nothing else is touched.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.local.watching import zookeeper_port
from tests.support.outside import dotted, replicas_of, wait_until
from tests.support.processes import hang_ups_count

CHECKOUT = Path(__file__).resolve().parents[2]
# The offsets of this folder's shared clusters start here, in steps of 20; those of modules that kill and
# roll lie 1000 and more above.
OFFSET = int(os.environ.get("KAFKAOPS_TEST_LOCAL_OFFSET", "21000"))
HIGHEST_PORT = 9300  # of all local inventories, before the offset
# Generous: a loaded machine is slow, not wrong. Two rolls on two cores with a load of 55 took longer.
PLAY_TIMEOUT = int(os.environ.get("KAFKAOPS_TEST_PLAY_SECONDS") or 540)
RECAP = re.compile(r"^(\S+)\s+: (ok=\d+.*)$", re.MULTILINE)


class Unsafe(str):
    """Text of an inventory that Ansible must not take for a template: written with the tag !unsafe."""


yaml.SafeDumper.add_representer(
    Unsafe, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text), style='"')
)


@dataclass(frozen=True)
class Run:
    """What a playbook did: its exit code, its output, and the counts of its recap by host."""

    code: int
    text: str
    recap: dict = field(default_factory=dict)

    @classmethod
    def of(cls, code, text):
        """Read the recap out of the output."""
        # only behind its heading: a task may print lines that look alike
        lines = text.rpartition("PLAY RECAP")[2]
        counts = {
            host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", words)}
            for host, words in RECAP.findall(lines)
        }
        return cls(code, text, counts)

    def changed(self, host=None):
        """Return the number of changed tasks of one host, or of all."""
        hosts = [host] if host else list(self.recap)
        assert hosts, self.text[-5000:]  # else "nothing changed" would be true of nothing
        return sum(self.recap[name]["changed"] for name in hosts)


@dataclass(frozen=True)
class Process:
    """One process of an instance; a pid alone may have been given to another one since."""

    pid: int
    start_ticks: int


def what_went_wrong(text):
    """Return of a playbook's output what a reader needs first: from the first failure on, cut in the middle."""
    found = re.search(r"^(fatal|failed): ", text, re.MULTILINE)
    told = text[found.start() :] if found else text[-20000:]
    return told if len(told) <= 20000 else f"{told[:15000]}\n[...]\n{told[-5000:]}"


def in_one_line(text):
    """Return of a playbook's output what its last failure says: a summary of tests shows the first line alone."""
    said = re.findall(r"^ +msg: (.*(?:\n {8,}.*)*)", text, re.MULTILINE) or [text]
    return " ".join(said[-1].split())[-600:]


def files_below(folder):
    """Yield the paths of all files below a folder, and of links to them; brokers may delete some meanwhile."""
    for directory, _names, files in os.walk(folder):
        yield from (Path(directory, name) for name in files)


def start_ticks(pid):
    """Return the start time of a process in clock ticks since boot; None if it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
    except OSError:
        return None
    return None if stat[0] in "ZX" else int(stat[19])


@functools.cache
def shared_software():
    """The folder where this session's clusters have their releases and class data; gone with the session.

    A release is unpacked once, and after the first stop every JVM starts with class data.
    """
    folder = tempfile.mkdtemp(prefix="kto-", dir="/tmp")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


class LocalCluster:
    """Runs playbooks on a local inventory and looks at what they have made.

    `offset`: of all ports; `inventory`: a folder, relative to the checkout; `checkout`: where the
    playbooks are; `python`: the interpreter of the environment whose ansible-playbook is used;
    `own_software`: releases below its home, as a user has them, and not the session's. So it is in
    another checkout, too.
    """

    def __init__(
        self,
        offset,
        inventory="inventories/local",
        checkout=CHECKOUT,
        python=sys.executable,
        home=None,
        own_software=False,
    ):
        self.offset = offset
        self.moved = 0  # how far a test has moved the brokers' ports
        ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
        assert HIGHEST_PORT + offset < ephemeral, f"{offset}: Linux lends such ports to clients"
        self.checkout = Path(checkout)
        self.inventory = self.checkout / inventory
        self.python = Path(python)
        # Short: the logs of a JVM and a socket lie below it.
        self.home = Path(home or tempfile.mkdtemp(prefix="ktl-", dir="/tmp"))
        shared = self.checkout == CHECKOUT and not (own_software or home)
        self.software = shared_software() if shared else self.home / "opt"
        self.overlay = Path(tempfile.mkdtemp(prefix="kti-", dir="/tmp"))
        (self.overlay / "group_vars").mkdir()
        (self.overlay / "host_vars").mkdir()
        (self.overlay / "hosts.yml").write_text("all: {}\n")
        hosts = yaml.safe_load((self.inventory / "hosts.yml").read_text())["all"]
        self.name = hosts.get("vars", {}).get("local_cluster_name", "local")
        self.version = hosts.get("vars", {}).get("kafka_version", "3.9.2")
        # none in KRaft mode
        self.zookeepers = list(hosts["children"].get("zookeeper", {}).get("hosts", ()))
        self.brokers = {
            name: values["kafka_broker_id"]
            for name, values in hosts["children"]["kafka"]["hosts"].items()
        }
        # of KRaft mode, those that are no brokers
        self.controllers = {
            name: values["kafka_broker_id"]
            for name, values in hosts["children"].get("controllers", {}).get("hosts", {}).items()
            if name not in self.brokers
        }
        self.client_settings = {}  # of confluent-kafka
        self.tool_settings = {}  # of Kafka's tools, as in --command-config
        self._brokers_have = {}  # keys of server.properties that tests have set

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.close()

    # -- the inventory

    def configure(self, group, **variables):
        """Set variables of a group or host on top of the inventory, replacing those set here before."""
        kind = (
            "group_vars" if group in ("all", "kafka", "controllers", "zookeeper") else "host_vars"
        )
        (self.overlay / kind / f"{group}.yml").write_text(yaml.safe_dump(variables))

    def set_brokers(self, settings, **variables):
        """Set keys of server.properties, and keep those that were set here before; None takes one out.

        Tests that share a cluster add to it: what one of them took back would be pending for the next.
        `variables`: others of the group, until this is called again.
        """
        merged = {**self._brokers_have, **settings}
        self._brokers_have = {key: value for key, value in merged.items() if value is not None}
        self.configure("kafka", kafka_config=self._brokers_have, **variables)

    # -- playbooks

    @property
    def environment(self):
        """The variables of the playbooks' processes.

        HOME is not that of the account, as in containers of CI services.
        """
        kept = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
        user = self.home / "user"
        user.mkdir(exist_ok=True)
        return {
            "KAFKAOPS_CACHE": str(Path.home() / ".cache" / "kafkaops"),
            **kept,
            "HOME": str(user),
            "KAFKAOPS_HOME": str(self.home),
            "ANSIBLE_CONFIG": str(self.checkout / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "PATH": os.pathsep.join([str(self.python.parent), os.environ.get("PATH", "")]),
        }

    def command(self, playbook, *arguments):
        """Return the command line that runs a playbook (`site.yml`, `stop.yml`...) on this cluster."""
        path = self.checkout / "playbooks" / playbook
        places = {
            "zookeeper_install_dir": self.software / "zookeeper",
            "kafka_install_dir": self.software / "kafka",
            "jvm_service_class_data_dir": self.software / "class-data",
        }
        if self.software == self.home / "opt":
            places = {}  # the inventory says the same
        return [
            *(str(self.python.with_name("ansible-playbook")), str(path)),
            *("-i", str(self.inventory), "-i", str(self.overlay)),
            *("-e", f"local_port_offset={self.offset}"),
            *(word for name, place in places.items() for word in ("-e", f"{name}={place}")),
            *map(str, arguments),
        ]

    def play(self, playbook, *arguments, code=0, timeout=PLAY_TIMEOUT):
        """Run a playbook and return its Run; fail unless its exit code is `code` (None: any)."""
        return self.run(self.command(playbook, *arguments), code=code, timeout=timeout)

    def run(self, command, code=0, timeout=PLAY_TIMEOUT, environment=None, cwd=None):
        """Run a command line in this cluster's environment; see `play`.

        `environment`: variables to set on top of it, or to take out (""); `cwd`: default is the checkout.
        """
        variables = {**self.environment, **(environment or {})}
        # Into a file: what the run leaves behind would keep a pipe open.
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            done = subprocess.run(
                [str(word) for word in command],
                cwd=cwd or self.checkout,
                env={key: value for key, value in variables.items() if value != ""},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout,
                check=False,
            )
            output.seek(0)
            text = output.read()
        if code is not None and done.returncode != code:
            raise AssertionError(
                f"exit code {done.returncode}, not {code}: {in_one_line(text)}\n{command}\n{what_went_wrong(text)}"
            )
        return Run.of(done.returncode, text)

    @contextlib.contextmanager
    def playing(self, playbook, *arguments):
        """Yield (process, path of its output) of a playbook in a process group of its own.

        For tests that interrupt it: os.killpg(process.pid, signal.SIGKILL).
        """
        log = Path(tempfile.mkstemp(prefix="ktr-", dir="/tmp")[1])
        with log.open("w") as output:
            process = subprocess.Popen(
                self.command(playbook, *arguments),
                cwd=self.checkout,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=hang_ups_count,
            )
        try:
            yield process, log
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
            log.unlink()

    def deploy(self, *arguments, validation="never", code=0):
        """Run site.yml and return its Run."""
        return self.play("site.yml", "-e", f"flow_validation={validation}", *arguments, code=code)

    # -- what is on disk, and what runs

    @property
    def directory(self):
        """Everything of this cluster: one folder an instance, and supervisord's."""
        return self.home / "clusters" / self.name

    def instance(self, name):
        """The folder of one instance: conf, data, logs, run."""
        return self.directory / name

    def release(self, version="", product="kafka"):
        """The folder of an installed release; by default the inventory's of Kafka."""
        version = version or self.version
        name = f"kafka_2.13-{version}" if product == "kafka" else f"{product}-{version}"
        return self.software / product / "releases" / name

    @property
    def names(self):
        """All instances."""
        return [*self.zookeepers, *self.brokers, *self.controllers]

    def process(self, name):
        """Return the running Process of an instance, or None; by the start record and /proc."""
        try:
            record = json.loads((self.instance(name) / "run" / "started.json").read_text())
        except (OSError, ValueError):
            return None
        found = Process(int(record["pid"]), int(record["start_ticks"]))
        return found if start_ticks(found.pid) == found.start_ticks else None

    def processes(self):
        """Return the running Process (or None) of every instance by name."""
        return {name: self.process(name) for name in self.names}

    def configuration_times(self):
        """Return the modification times (ns) of every configuration file, by path."""
        return {
            str(path): path.lstat().st_mtime_ns
            for name in self.names
            for path in self.instance(name).joinpath("conf").rglob("*")
        }

    def stray(self):
        """Return the pids of all processes on this machine whose command line names this home."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_bytes()
                    if str(self.home).encode() + b"/" in words and start_ticks(int(entry.name)):
                        found.append(int(entry.name))
        return found

    def supervisorctl(self, *arguments):
        """Run supervisor's own tool, as a person would."""
        configuration = self.directory / "supervisor" / "supervisord.conf"
        tool = self.python.with_name("supervisorctl")
        self.run([tool, "-c", configuration, *arguments])

    def name_of(self, broker_id):
        """Return the inventory name of the id of a broker or controller."""
        nodes = {**self.brokers, **self.controllers}
        return next(name for name, number in nodes.items() if number == broker_id)

    # -- clients that are not ours

    def port(self, name):
        """Return the port of a broker by its inventory name."""
        return 9091 + int(re.search(r"\d+$", name)[0]) + self.offset + self.moved

    @property
    def broker_ids(self):
        """The ids of all brokers."""
        return set(self.brokers.values())

    @property
    def addresses(self):
        """(host, port) of every instance by its name."""
        ports = {name: zookeeper_port(self, name) for name in self.zookeepers}
        ports |= {name: self.port(name) for name in self.brokers}
        ports |= {name: self.port(name) + 99 for name in self.controllers}
        return {name: ("127.0.0.1", port) for name, port in ports.items()}

    @property
    def bootstrap_servers(self):
        """All brokers as host:port, separated by commas."""
        return ",".join(f"127.0.0.1:{self.port(name)}" for name in self.brokers)

    def tool(self, script, *arguments, stdin="", code=0, timeout=180, settings=None):
        """Run one of Kafka's own tools (bin/*.sh of the release); return its output.

        Adds --bootstrap-server, and --command-config (or what the tool calls it) where the cluster
        needs settings; `settings` replaces them.
        """
        settings = self.tool_settings if settings is None else settings
        extra = []
        if settings:
            # by this ending Ansible knows that it is no inventory, and does not quote it with its password
            path = self.overlay / "client.properties.txt"
            path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            option = {"kafka-console-producer.sh": "producer.config"}.get(script, "command-config")
            option = "consumer.config" if script == "kafka-console-consumer.sh" else option
            extra = [f"--{option}", str(path)]
        done = subprocess.run(
            [
                *(str(self.release() / "bin" / script), "--bootstrap-server"),
                *(self.bootstrap_servers, *extra, *map(str, arguments)),
            ],
            # C1 alone: tools live for seconds
            env={**os.environ, "KAFKA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if code is not None and done.returncode != code:
            raise AssertionError(
                f"{script} {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
        return done.stdout + done.stderr

    def client(self, **settings):
        """Return settings of a confluent-kafka client; underscores of names stand for dots."""
        own = {"bootstrap.servers": self.bootstrap_servers, **self.client_settings}
        return {**own, **dotted(settings)}

    def admin(self):
        """Return a confluent-kafka AdminClient."""
        from confluent_kafka.admin import AdminClient

        return AdminClient(self.client())

    def partitions(self, topic):
        """Return {partition: (leader, sorted replicas, sorted isr)}; leader -1 for none."""
        return replicas_of(self.admin().list_topics(topic, timeout=60), topic)

    def log(self, topic, partition):
        """The bytes of a partition's segments, from the disk of its leader."""
        leader = self.partitions(topic)[partition][0]
        (name,) = [name for name, broker in self.brokers.items() if broker == leader]
        (directory,) = self.instance(name).glob(f"data*/{topic}-{partition}")
        return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))

    # -- the end

    def close(self):
        """Kill what runs of it and remove its files; test_quickstart says what teardown.yml does."""
        try:
            self.kill()
        finally:
            shutil.rmtree(self.home, ignore_errors=True)
            shutil.rmtree(self.overlay, ignore_errors=True)

    def kill(self):
        """Kill what runs of it."""
        wait_until(self._killed, 30, f"nothing runs in {self.home} any more")

    def _killed(self):
        """Kill what runs, supervisord first, or it would start the others again; True if nothing did."""
        running = sorted(self.stray(), key=lambda pid: start_ticks(pid) or 0)
        for pid in running:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return not running

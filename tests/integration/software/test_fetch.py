# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real registry, the real Ivy: fetch, kill, damage, go offline. Needs network and Java."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply import (
    distribution,
    jar_lock,
    tools,
)
from tests.support.software import obtain

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
# Nothing listens there: whoever asks the network fails at once.
OFFLINE = "http://127.0.0.1:1"
NAME = "kafka_2.13-3.9.2"

PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - kafkaops.cluster.distribution:
        product: kafka
        version: 3.9.2
        cache_dir: "{{ cache_dir }}"
"""


@pytest.fixture(name="copied_cache")
def make_copied_cache(tmp_path):
    """A copy of the ZooKeeper part of the cache, complete, to be damaged."""
    complete = obtain("zookeeper", "3.9.5")
    source = pathlib.Path(complete.archive).parents[1]
    lock = jar_lock.load_lock(distribution.LOCKS, "zookeeper-3.9.5")
    paths = [f"jars/{jar.cache_path}" for jar in lock.jars]
    paths += ["archives/zookeeper-3.9.5.tgz", "archives/zookeeper-3.9.5.tgz.json"]
    for path in paths:
        (tmp_path / "cache" / path).parent.mkdir(parents=True, exist_ok=True)
        # jars may be missing where the archive came from a CI cache
        if (source / path).exists():
            shutil.copy(source / path, tmp_path / "cache" / path)
    return tmp_path / "cache"


def zookeeper(cache, **settings):
    return obtain("zookeeper", "3.9.5", cache_dir=str(cache), **settings)


def test_a_fresh_fetch_gives_the_same_bytes(tmp_path):
    expected = obtain("zookeeper", "3.9.5")
    fresh = zookeeper(tmp_path)
    assert (fresh.fetched_jars, fresh.sha512) == (38, expected.sha512)
    # not even Java is needed once the cache is complete
    offline = zookeeper(tmp_path, mirror=OFFLINE, java_home="/nonexistent")
    assert (offline.changed, offline.sha512) == (False, expected.sha512)


def test_offline_a_truncated_archive_is_made_anew_from_the_jars(copied_cache):
    zookeeper(copied_cache)  # whatever jars the copy lacked
    expected = zookeeper(copied_cache)
    with open(expected.archive, "r+b") as stream:
        stream.truncate(expected.size_bytes // 2)
    again = zookeeper(copied_cache, mirror=OFFLINE)
    assert (again.state, again.fetched_jars, again.sha512) == ("damaged", 0, expected.sha512)
    assert again.warnings


def test_a_corrupted_jar_is_fetched_again_and_only_that(copied_cache):
    shutil.rmtree(copied_cache / "archives")
    expected = zookeeper(copied_cache)
    os.unlink(expected.archive)
    jar = copied_cache / "jars/org.apache.zookeeper/zookeeper-3.9.5.jar"
    content = bytearray(jar.read_bytes())
    content[len(content) // 2] ^= 1
    jar.write_bytes(content)
    with pytest.raises(ProblemError) as error:
        zookeeper(copied_cache, mirror=OFFLINE)
    assert error.value.problem.check == "fetch.failed"
    assert "1 of 38 jars" in str(error.value)
    assert "org.apache.zookeeper:zookeeper:3.9.5" in str(error.value)
    again = zookeeper(copied_cache)
    assert (again.fetched_jars, again.sha512) == (1, expected.sha512)


class Run:
    """ansible-playbook obtaining Kafka into an empty cache."""

    def __init__(self, tmp_path):
        self.cache = tmp_path / "cache"
        play = tmp_path / "play.yml"
        play.write_text(PLAY)
        command = [str(pathlib.Path(sys.executable).with_name("ansible-playbook"))]
        command += ["-i", "localhost,", "-e", f"cache_dir={self.cache}", str(play)]
        self.process = subprocess.Popen(
            command,
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def processes(self):
        """{pid: command} of the run and all its descendants; workers have sessions of their own."""
        parents, commands = {}, {}
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                text = stat.read_text()
            except OSError:
                continue
            pid = int(stat.parent.name)
            parents[pid] = int(text.rpartition(")")[2].split()[1])
            commands[pid] = text.partition("(")[2].rpartition(")")[0]
        family = {self.process.pid}
        while True:
            more = {pid for pid, parent in parents.items() if parent in family} - family
            if not more:
                return {pid: commands[pid] for pid in family if pid in commands}
            family |= more

    def wait_for_jars(self, count, deadline_seconds=120):
        """Wait until Ivy has brought `count` jars and still works."""
        deadline = time.monotonic() + deadline_seconds
        staging = self.cache / "jars" / ".fetching"
        while time.monotonic() < deadline:
            if len(list(staging.glob("*/*.jar"))) >= count:
                return
            assert self.process.poll() is None, self.process.stdout.read()
            time.sleep(0.02)
        pytest.fail(f"no {count} jars within {deadline_seconds} s")

    def kill(self, spare=None):
        """kill -9 of all its processes but those called `spare`; returns the pids of these."""
        processes = self.processes()
        for pid, command in processes.items():
            if command != spare:
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        return [pid for pid, command in processes.items() if command == spare]


def test_killed_while_fetching_the_next_run_fetches_the_rest(tmp_path):
    run = Run(tmp_path)
    run.wait_for_jars(20)
    run.kill()
    assert not list((run.cache / "archives").glob("*.tgz*"))
    result = obtain("kafka", "3.9.2", cache_dir=str(run.cache))
    assert 0 < result.fetched_jars <= 88
    assert result.sha512 == obtain("kafka", "3.9.2").sha512
    assert sorted(path.name for path in run.cache.iterdir()) == [".lock", "archives", "jars"]
    assert not (run.cache / "jars" / ".fetching").exists()


def test_an_orphaned_ivy_keeps_the_lock_until_it_is_done(tmp_path):
    run = Run(tmp_path)
    run.wait_for_jars(5)
    orphans = run.kill(spare="java")
    assert len(orphans) == 1
    # The orphan still writes. Had this call not waited for it, it would have fetched by itself.
    result = obtain("kafka", "3.9.2", cache_dir=str(run.cache))
    assert result.fetched_jars == 0
    assert result.sha512 == obtain("kafka", "3.9.2").sha512


@pytest.mark.parametrize("name", jar_lock.lock_names(distribution.LOCKS))
def test_every_tool_of_every_lock_has_its_class(installed, name):
    lock = jar_lock.load_lock(distribution.LOCKS, name)
    home = installed(lock.product, lock.version)
    classes = set()
    for jar in home.glob("lib*/*.jar"):
        with zipfile.ZipFile(jar) as archive:
            classes.update(entry for entry in archive.namelist() if entry.endswith(".class"))
    launchers = tools.tools_of(lock.product, lock.version)
    assert launchers
    missing = [
        f"{tool.name}: {main_class}"
        for tool, main_class in launchers
        if main_class != "-" and main_class.replace(".", "/") + ".class" not in classes
    ]
    assert missing == []
    assert {path.name for path in (home / "bin").iterdir()} == {
        "launch",
        *(tool.name for tool, _main_class in launchers),
    }


def fetch(directory, *arguments, brokers="kafka"):
    """A run of fetch.yml over hosts that nobody can reach; `brokers`: what their group is called."""
    inventory = directory / "hosts.yml"
    hosts = {"zookeeper": ["zk1.invalid"], brokers: ["k1.invalid", "k2.invalid"]}
    lines = ["all:", "  vars: {ansible_become: true}", "  children:"]
    for group, names in hosts.items():
        lines += [f"    {group}:", "      hosts:", *(f"        {name}:" for name in names)]
    inventory.write_text("\n".join(lines) + "\n")
    command = [str(pathlib.Path(sys.executable).with_name("ansible-playbook"))]
    command += ["-i", str(inventory), str(CHECKOUT / "playbooks" / "fetch.yml"), *arguments]
    home = dict(os.environ, KAFKAOPS_HOME=str(directory / "home"))
    return subprocess.run(
        command, cwd=CHECKOUT, env=home, capture_output=True, text=True, check=False
    )


def test_the_playbook_needs_no_host(tmp_path):
    """fetch.yml runs where there is internet, which may be no place from which a host can be reached."""
    obtain("kafka", "3.9.2")
    obtain("zookeeper", "3.9.5")
    # What the deployment would refuse is said; it is no matter for what is fetched.
    elsewhere = ("-e", '{"kafka_broker_id": 1, "kafka_admin_host": "k1.invalid"}')
    for more in ((), elsewhere):
        done = fetch(tmp_path, *more)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "warning: [identity.duplicate_broker_id] k1.invalid, k2.invalid" in done.stdout
    recap = done.stdout.rpartition("PLAY RECAP")[2]
    assert recap.count("changed=0") == recap.count("unreachable=0") == 3, recap
    assert not (tmp_path / "home").exists()


def test_the_playbook_fetches_nothing_by_an_inventory_with_mistakes(tmp_path):
    mistakes = {
        "kafka_version": "3.9.22",
        "zookeeper_version": ["3.9.5"],
        "distribution_source": "mavn",
        "kafka_plugins": [{"src": "/plugin.jar"}],
        "flow_validation": "maybe",
        "kafkaops_cache": [str(tmp_path / "cache")],
    }
    done = fetch(tmp_path, "-e", json.dumps(mistakes))
    refused = done.stdout.partition("the preflight refuses this inventory")[2]
    assert done.returncode == 2 and refused, done.stdout + done.stderr
    assert [name for name in mistakes if f": {name}" not in refused] == [], refused
    assert "Traceback" not in done.stdout + done.stderr and "TASK [Obtain" not in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["hosts.yml"]


def test_the_playbook_does_not_take_half_of_an_inventory_for_all_of_it(tmp_path):
    done = fetch(tmp_path, brokers="brokres")
    assert done.returncode == 2 and "[inventory.empty_group]" in done.stdout, done.stdout
    assert "TASK [Obtain" not in done.stdout

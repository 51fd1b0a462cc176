# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes killed, runs killed in every phase, data wiped: what comes back, and what must not be lost."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from tests.local.support import OFFSET, LocalCluster, in_one_line, start_ticks
from tests.local.watching import ensemble_is_whole, modes, registered_at, zookeeper_mode
from tests.support.outside import wait_until
from tests.support.processes import kill_run
from tests.support.releases import cache_directory
from tests.support.traffic import Traffic
from tests.support.watching import Watch, cluster_is_whole

NEVER = ("-e", "flow_validation=never")
# Nobody listens at the discard port: what needs the network fails at once.
OFFLINE = ("-e", "distribution_mirror=http://127.0.0.1:9/")
CACHE = cache_directory()
ARCHIVES = ("kafka_2.13-3.9.2.tgz", "zookeeper-3.9.5.tgz")
# Election ports lie 1,000 above peer ports: no other cluster's offset ends in 5, so none is 1,000 apart.
KILLED = OFFSET + 1105
DECLARED = {"orders": 6, "payments": 6, "clicks": 12, "customers": 3}  # inventories/local


class OwnCache(LocalCluster):
    """A local cluster whose controller has a cache of its own, below its home; and its own releases."""

    def __init__(self, offset):
        super().__init__(offset, own_software=True)

    @property
    def cache(self):
        return self.home / "cache"

    @property
    def environment(self):
        return {**super().environment, "KAFKAOPS_CACHE": str(self.cache)}

    def fill_cache(self, archives=True):
        """Copy the user's cache, filling that first where it is empty."""
        if not all((CACHE / "archives" / name).exists() for name in ARCHIVES):
            self.run([*self.command("fetch.yml"), "-e", f"kafkaops_cache={CACHE}"])
        # Jars are never changed in place, so a link will do; archives get damaged here.
        shutil.copytree(CACHE / "jars", self.cache / "jars", copy_function=os.link)
        (self.cache / "archives").mkdir()
        if archives:
            for name in ARCHIVES:
                for part in (name, name + ".json"):
                    shutil.copy(CACHE / "archives" / part, self.cache / "archives")


# ---------------------------------------------------------------- killing a run


def any_of(path, pattern):
    """Tell whether anything below `path` matches."""
    return any(path.glob(pattern))


# phase -> sign of it: (cluster, text of the output) -> bool
PHASES = {
    "download": lambda cluster, text: any_of(cluster.cache, "**/*.jar*"),
    "assembly": lambda cluster, text: any_of(cluster.cache, "archives/.partial-*"),
    "unpack": lambda cluster, text: any_of(cluster.home, "opt/*/.partial-*/*/*"),
    "release of kafka": lambda cluster, text: any_of(cluster.home, "opt/kafka/.partial-*/*/*"),
    "staging": lambda cluster, text: any_of(cluster.directory, "zookeeper-*/conf/generations/*"),
    "ids": lambda cluster, text: any_of(cluster.directory, "zookeeper-*/data/myid"),
    "first start": lambda cluster, text: any_of(cluster.directory, "zookeeper-*/run/started.json"),
    "first start of kafka": lambda cluster, text: any_of(
        cluster.directory, "kafka-*/run/started.json"
    ),
    "topics": lambda cluster, text: "Reconcile the declared topics]" in text,
}


def interrupt(cluster, phase, how, *arguments):
    """Start site.yml, kill it in `phase`, and fail if it was over before."""
    with cluster.playing("site.yml", *NEVER, *arguments) as (process, log):
        wait_until(
            lambda: process.poll() is not None or PHASES[phase](cluster, log.read_text()),
            480,
            f"the run reaches {phase}",
        )
        told = log.read_text()
        assert process.poll() is None, f"over before {phase}: {in_one_line(told)}\n{told[-5000:]}"
        kill_run(process, how)


def identities(cluster):
    """Return what identifies the members, from their disks: name -> meta.properties or myid."""
    found = {}
    for name in cluster.names:
        data = cluster.instance(name) / "data"
        path = data / ("myid" if name in cluster.zookeepers else "meta.properties")
        lines = path.read_text().splitlines() if path.exists() else []
        found[name] = sorted(line for line in lines if not line.startswith("#"))
    return found


def check_complete(cluster):
    """Fail unless the cluster is the one that the inventory describes, and nothing is left to do."""
    for name in cluster.zookeepers:
        assert identities(cluster)[name] == [name.rpartition("-")[2]]
        # Left behind, it would allow an emptied server to vote.
        assert not any_of(cluster.instance(name), "**/initialize"), name
    found = {line for name in cluster.brokers for line in identities(cluster)[name]}
    (cluster_id,) = [line for line in found if line.startswith("cluster.id=")]
    assert {line for line in found if line.startswith("broker.id=")} == {
        f"broker.id={number}" for number in cluster.brokers.values()
    }
    whole = wait_until(lambda: cluster_is_whole(cluster), 120, "the cluster is whole")
    assert f"cluster.id={whole.cluster_id}" == cluster_id
    assert ensemble_is_whole(cluster)
    for topic, partitions in DECLARED.items():
        assert len(cluster.partitions(topic)) == partitions
    assert not any_of(cluster.home, "**/.partial-*") and not any_of(cluster.home, "**/*.partial")
    run = cluster.deploy(*OFFLINE)
    assert run.changed() == 0, run.text


@pytest.fixture(scope="module")
def survivor():
    """A cluster that came about although its first runs were killed, one in each phase.

    Its cache is cut off half way before: archives end early, and there is no network.
    """
    with OwnCache(KILLED) as cluster:
        cluster.fill_cache()
        for name in ARCHIVES:
            path = cluster.cache / "archives" / name
            os.truncate(path, path.stat().st_size // 2)
        interrupt(cluster, "assembly", "tree", *OFFLINE)
        interrupt(cluster, "unpack", "group", *OFFLINE)
        interrupt(cluster, "first start", "tree", *OFFLINE)
        interrupt(cluster, "topics", "group", *OFFLINE)
        yield cluster


@pytest.fixture(scope="module")
def completed(survivor):
    """The same, completed: the soak leaves out the test that does it."""
    survivor.deploy(*OFFLINE)
    return survivor


def test_a_run_killed_in_each_phase_is_completed_by_the_next(survivor):
    before = identities(survivor)
    survivor.deploy(*OFFLINE)
    after = identities(survivor)
    assert {name: after[name] for name in before if before[name]} == {
        name: lines for name, lines in before.items() if lines
    }
    check_complete(survivor)


@pytest.mark.soak
@pytest.mark.parametrize("how", ["group", "tree"])
@pytest.mark.parametrize("phase", PHASES)
def test_a_run_killed_once_is_completed_by_the_next(phase, how):
    with OwnCache(KILLED + 100) as cluster:
        if phase != "download":
            cluster.fill_cache(archives=phase != "assembly")
        arguments = () if phase == "download" else OFFLINE
        interrupt(cluster, phase, how, *arguments)
        cluster.deploy(*arguments)
        check_complete(cluster)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(8))
def test_runs_killed_at_any_moment_are_completed_by_the_next(seed):
    """Three kills each, at moments that nobody chose."""
    moments = random.Random(seed)
    with OwnCache(KILLED + 200) as cluster:
        cluster.fill_cache()
        for _round in range(3):
            with cluster.playing("site.yml", *NEVER, *OFFLINE) as (process, _log):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(moments.uniform(1, 40))
                if process.poll() is None:
                    kill_run(process, moments.choice(["group", "tree"]))
        cluster.deploy(*OFFLINE)
        check_complete(cluster)


@pytest.mark.soak
def test_a_cut_off_cache_is_refused_in_a_sentence_where_it_cannot_be_repaired():
    with OwnCache(KILLED + 300) as cluster:
        cluster.fill_cache()
        archive = cluster.cache / "archives" / ARCHIVES[0]
        os.truncate(archive, archive.stat().st_size // 2)
        (jar,) = (cluster.cache / "jars").glob("**/kafka_2.13-3.9.2*.jar")
        jar.unlink()
        run = cluster.play("site.yml", *NEVER, *OFFLINE, code=2)
        assert "kafka_2.13-3.9.2" in run.text and "Remedy" in run.text, run.text
        assert not cluster.stray() and not any_of(cluster.home, "opt/kafka/releases/*")


# ---------------------------------------------------------------- killing processes


def check_comes_back(cluster, name):
    """Kill -9 one process: it comes back by itself as it was, the others do not notice."""
    before, known = cluster.processes(), identities(cluster)
    cluster_id = wait_until(lambda: cluster_is_whole(cluster), 120, "whole before").cluster_id
    killed_at = time.time()
    os.kill(before[name].pid, signal.SIGKILL)
    wait_until(lambda: cluster.process(name) not in (None, before[name]), 60, f"{name} is started")
    wait_until(lambda: ensemble_is_whole(cluster), 120, f"the ensemble is whole: {modes(cluster)}")
    if name in cluster.brokers:
        # It stays registered until its session has expired (18 s), and cannot start before.
        number = cluster.brokers[name]
        wait_until(
            lambda: registered_at(cluster).get(number, 0) > killed_at, 120, f"{name} is registered"
        )
    whole = wait_until(lambda: cluster_is_whole(cluster), 240, "the cluster is whole")
    after = cluster.processes()
    assert {other for other in before if before[other] != after[other]} == {name}
    assert whole.cluster_id == cluster_id and identities(cluster) == known


def test_a_killed_controller_comes_back_and_nothing_is_lost(survivor):
    controller = wait_until(lambda: cluster_is_whole(survivor), 120, "whole").controller
    with Traffic(survivor, "orders") as traffic:
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        check_comes_back(survivor, survivor.name_of(controller))
    assert not traffic.failed and traffic.lost() == []


def test_a_killed_zookeeper_leader_comes_back(survivor):
    (leader,) = [name for name, mode in modes(survivor).items() if mode == "leader"]
    check_comes_back(survivor, leader)


@pytest.mark.soak
@pytest.mark.parametrize(
    "name", ["zookeeper-1", "zookeeper-2", "zookeeper-3", "kafka-1", "kafka-2", "kafka-3"]
)
def test_any_killed_process_comes_back(completed, name):
    check_comes_back(completed, name)


@pytest.mark.soak
def test_orphans_of_a_killed_supervisord_serve_on_and_are_taken_back_one_by_one(completed):
    before = completed.processes()
    daemon = int((completed.directory / "supervisor" / "supervisord.pid").read_text())
    os.kill(daemon, signal.SIGKILL)
    wait_until(lambda: start_ticks(daemon) is None, 30, "supervisord is gone")
    assert completed.processes() == before and cluster_is_whole(completed)
    status = completed.play("status.yml").text
    for name, process in before.items():
        told = f"{name}: runs outside its service manager (process {process.pid})"
        assert told in status, status
    with Watch(completed) as watch:
        completed.deploy(*OFFLINE)
    order = watch.check()
    assert sorted(order) == sorted(completed.names)
    assert order[:3] == [name for name in order if name in completed.zookeepers]
    assert all(before[name] != process for name, process in completed.processes().items())
    assert "outside its service manager" not in completed.play("status.yml").text
    check_complete(completed)


def test_those_that_are_down_start_together_and_the_others_run_on(survivor):
    """Each waits for a whole cluster, so one that was started before the next would wait in vain."""
    wait_until(lambda: cluster_is_whole(survivor), 120, "whole before")
    before, known = survivor.processes(), identities(survivor)
    down = ["kafka-1", "kafka-3", "zookeeper-1", "zookeeper-3"]  # no quorum, and no min ISR
    for name in down:
        survivor.supervisorctl("stop", name)
    assert [name for name, process in survivor.processes().items() if process is None] == sorted(
        down, key=survivor.names.index
    )
    survivor.deploy(*OFFLINE)
    after = survivor.processes()
    assert None not in after.values()
    assert {name for name in before if before[name] != after[name]} == set(down)
    assert identities(survivor) == known
    check_complete(survivor)


# ---------------------------------------------------------------- the empty majority


def contents(directory):
    """Return path -> bytes of what ZooKeeper has written."""
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.name.startswith(("log", "snap"))
    }


def needed(files):
    """Return of such files what the data are read from: the newest snapshot, and the logs from there on.

    At its start a server purges older ones; it keeps three snapshots.
    """

    def zxid(name):
        return int(name.rpartition(".")[2], 16)

    snapshots, logs = (
        sorted((name for name in files if name.startswith(kind)), key=zxid)
        for kind in ("snap", "log")
    )
    newest = snapshots[-1]
    first = max((name for name in logs if zxid(name) <= zxid(newest)), key=zxid, default=logs[0])
    return {name: files[name] for name in [newest, *logs[logs.index(first) :]]}


def log_of(cluster, name):
    """Return the text of a server's log."""
    path = cluster.instance(name) / "logs" / "zookeeper.log"
    return path.read_text(errors="replace") if path.exists() else ""


@contextlib.contextmanager
def started_by_hand(cluster, names):
    """Start servers by their launch scripts, past every check of ours; stopped at the end."""
    children = [
        subprocess.Popen(
            [str(cluster.instance(name) / "conf" / "current" / "launch")],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # what one of them says is shown where the test fails
        )
        for name in names
    ]
    try:
        yield
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait(60)


@pytest.mark.soak
def test_an_empty_majority_never_overwrites_the_third_server(survivor):
    """Two of three servers lose their data while everything is stopped."""
    cluster_id = wait_until(lambda: cluster_is_whole(survivor), 120, "whole").cluster_id
    survivor.play("stop.yml")
    assert not any(survivor.processes().values())
    *emptied, intact = survivor.zookeepers
    version_2 = {
        name: survivor.instance(name) / "data" / "version-2" for name in survivor.zookeepers
    }
    kept = contents(version_2[intact])
    assert any(name.startswith("log.") for name in kept)
    for name in emptied:
        shutil.rmtree(version_2[name])

    refused = survivor.play("site.yml", *NEVER, *OFFLINE, code=2)
    assert "[ensemble.empty_majority]" in refused.text
    assert not any(survivor.processes().values()) and not version_2[emptied[0]].exists()

    marks = {name: len(log_of(survivor, name)) for name in survivor.zookeepers}
    with started_by_hand(survivor, emptied):
        # Unguarded, the two elect each other within a second of hearing from each other.
        for name in emptied:
            wait_until(
                lambda name=name: "Notification:" in log_of(survivor, name)[marks[name] :],
                60,
                f"{name} takes part in the election",
            )
        with started_by_hand(survivor, [intact]):
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                assert not any(modes(survivor).values()), "there is a quorum of emptied servers"
                time.sleep(0.2)
    now = contents(version_2[intact])
    assert {name: now.get(name) for name in needed(kept)} == needed(kept)

    # The way back: the data of the intact server on a second one, and the third joins those two.
    shutil.rmtree(version_2[emptied[0]], ignore_errors=True)
    shutil.copytree(version_2[intact], version_2[emptied[0]])
    shutil.rmtree(survivor.instance(emptied[1]) / "data")
    survivor.deploy(*OFFLINE)
    assert zookeeper_mode(survivor, emptied[1]) == "follower"
    assert any_of(version_2[emptied[1]], "snapshot.*")
    assert wait_until(lambda: cluster_is_whole(survivor), 120, "whole").cluster_id == cluster_id
    check_complete(survivor)


@pytest.mark.soak
def test_one_emptied_server_of_a_running_ensemble_rejoins(completed):
    (leader,) = [name for name, mode in modes(completed).items() if mode == "leader"]
    name = next(name for name in completed.zookeepers if name != leader)
    before = completed.processes()
    completed.play("stop.yml", "--limit", name)
    assert completed.process(name) is None
    shutil.rmtree(completed.instance(name) / "data")
    completed.deploy(*OFFLINE)
    after = completed.processes()
    assert {other for other in before if before[other] != after[other]} == {name}
    assert ensemble_is_whole(completed)
    check_complete(completed)

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster without ZooKeeper, by the playbooks: what works with it, and what is refused yet.

The quorum is looked at by kafka-python, and not by anything of ours.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

import pytest

from tests.local.drilling import drilled
from tests.local.support import LocalCluster
from tests.local.watching import led_by_others
from tests.support.load import Load
from tests.support.outside import wait_until
from tests.support.traffic import Traffic
from tests.support.watching import Watch, cluster_is_whole, quorum_of

INVENTORY = "inventories/local-kraft"
TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync
# Kafka reads it at its start only.
KEY = "group.initial.rebalance.delay.ms"
# A node of the quorum as the status shows it: id, part, records behind, last fetch.
QUORUM_LINE = r"(\d)  +(leader|voter)  +\d+  +(?:-|[\d.]+ s ago)"
# They change a cluster that runs, in ways that are not fit for a quorum yet.
REFUSED = ("scale_zookeeper",)


def quorum(cluster):
    """{leader, voters: ids} as the brokers tell it."""
    return quorum_of(cluster.bootstrap_servers)


def metas(cluster):
    """instance -> the lines of its meta.properties that are settings."""
    found = {}
    for name in cluster.brokers:
        text = (cluster.instance(name) / "data" / "meta.properties").read_text()
        found[name] = dict(re.findall(r"^([\w.]+)=(.*)$", text, re.MULTILINE))
    return found


@pytest.fixture(scope="module")
def kraft(next_offset):
    """Three nodes of inventories/local-kraft, not deployed yet."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        yield cluster


def test_from_an_inventory_to_a_proven_quorum_and_back(kraft):
    """Deployed, proven, run again, looked at, stopped and started; nothing is formatted twice."""
    few = ("-e", "flow_validation_records=3000")
    run = kraft.deploy(*few, validation="always")
    assert "PASS: 3,000 acknowledged records came back" in run.text, run.text
    assert "config.dynamic_override" not in run.text
    assert quorum(kraft)["voters"] == [1, 2, 3] and quorum(kraft)["leader"] in (1, 2, 3)
    formatted, processes = metas(kraft), kraft.processes()
    assert len({each["cluster.id"] for each in formatted.values()}) == 1
    assert len({each["directory.id"] for each in formatted.values()}) == 3
    assert [each["node.id"] for each in formatted.values()] == ["1", "2", "3"]

    run = kraft.deploy()
    assert run.changed() == 0 and kraft.processes() == processes, run.text
    assert "warning: " not in run.text and "[WARNING]" not in run.text, run.text

    kraft.play("stop.yml")
    assert kraft.processes() == dict.fromkeys(kraft.names)
    kraft.play("start.yml")
    run = kraft.play("status.yml", "-e", "status_strict=true")
    assert "All 3 instances run." in run.text, run.text
    shown = {int(node): part for node, part in re.findall(QUORUM_LINE, run.text)}
    leader = quorum(kraft)["leader"]
    assert shown == {each: "leader" if each == leader else "voter" for each in (1, 2, 3)}, run.text
    assert re.findall(r"(kafka-\d) +kafka .* controller ", run.text) == [kraft.name_of(leader)]
    assert metas(kraft) == formatted and quorum(kraft)["voters"] == [1, 2, 3]


def turned_away(cluster, name):
    """How often the log of a node tells that the session of its former process kept it out."""
    return (cluster.instance(name) / "logs" / "server.log").read_text().count("DUPLICATE_BROKER")


def console(cluster, name):
    """What the launch script and the guard of a node have written."""
    return (cluster.instance(name) / "logs" / "console.log").read_text()


def epoch_of(cluster, name):
    """The broker epoch that a node's log names last, -1 where it names none."""
    log = (cluster.instance(name) / "logs" / "server.log").read_text()
    found = re.findall(r"Successfully registered broker \d with broker epoch (\d+)", log)
    return int(found[-1]) if found else -1


def whole(cluster):
    return wait_until(lambda: cluster_is_whole(cluster), 180, "the cluster is whole")


def kill(cluster, name, forgotten=False):
    """SIGKILL, and wait until the service manager's next process has registered and is in sync.

    `forgotten`: its log does not have its registration any more, as after some months.
    Returns the seconds until every partition has another leader, as the other brokers tell.
    """
    number, before = cluster.brokers[name], epoch_of(cluster, name)
    process = cluster.process(name)

    def led_by_another():
        return number not in {each[0] for each in cluster.partitions(TOPIC).values()}

    if forgotten:
        os.truncate(cluster.instance(name) / "logs" / "server.log", 0)
    killed = time.monotonic()
    os.kill(process.pid, signal.SIGKILL)
    wait_until(led_by_another, 60, f"others lead what {name} has led")
    moved = time.monotonic() - killed
    wait_until(lambda: epoch_of(cluster, name) > before, 120, f"{name} has registered")
    whole(cluster)
    return moved


def test_a_node_that_comes_back_waits_for_no_session(kraft):
    """The active controller is killed, by its log months after its start; another node is restarted.

    That one is eligible to lead nothing meanwhile.
    """
    kraft.deploy()
    whole(kraft)
    leader = quorum(kraft)["leader"]
    victim, other = kraft.name_of(leader), kraft.name_of(min({1, 2, 3} - {leader}))
    before = {name: turned_away(kraft, name) for name in (victim, other)}
    epoch = epoch_of(kraft, victim)
    with Traffic(kraft, TOPIC) as traffic:
        wait_until(lambda: len(traffic.acknowledged) > 300, 60, "acknowledgements")
        moved = kill(kraft, victim, forgotten=True)
        before[victim] = 0  # of an empty log
        clean = epoch_of(kraft, other)
        kraft.supervisorctl("restart", other)
        wait_until(lambda: epoch_of(kraft, other) > clean, 120, f"{other} has registered")
        whole(kraft)
    print(f"\nSIGKILL of the active controller: others lead after {moved:.2f} s,", end=" ")
    print(f"longest pause of a partition {traffic.longest_pause:.2f} s")
    assert not traffic.failed and traffic.lost() == []
    told = console(kraft, victim)
    assert f"fenced and unregistered broker {leader} of epoch {epoch}" in told, told
    assert "called for an election at" in told
    # where it led the quorum itself by then, the next leader knows no session
    assert re.search(
        f"fenced and unregistered broker . of epoch {clean}:|epoch {clean} .*another controller leads",
        console(kraft, other),
    ), console(kraft, other)
    assert {name: turned_away(kraft, name) for name in before} == before
    assert quorum(kraft)["voters"] == [1, 2, 3]
    assert kraft.deploy().changed() == 0


def guard_of(cluster, name, tmp_path, log=None, log_dirs=None):
    """Run the guard of a node for a process that is dead, by other files than the node's; what it says."""
    instance = cluster.instance(name)
    current, state = instance / "conf" / "current", tmp_path / "run"
    state.mkdir()
    (state / "started.json").write_text(json.dumps({"pid": 2**22 + 1, "start_ticks": 1}))
    settings = tmp_path / "server.properties"
    text = (current / "server.properties").read_text()
    settings.write_text(text + (f"log.dirs={log_dirs}\n" if log_dirs else ""))
    command = [sys.executable, current / "fencing.py", "after-exit", "--properties", settings]
    command += ["--log", log or instance / "logs" / "server.log", "--state", state]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.soak
def test_in_doubt_a_node_keeps_its_registration(kraft, tmp_path):
    """Nodes that live, stopped by SIGSTOP or not: by their locks, and by an epoch that is not theirs."""
    kraft.deploy()
    whole(kraft)
    epochs = {name: epoch_of(kraft, name) for name in kraft.names}
    process = kraft.process("kafka-1")
    os.kill(process.pid, signal.SIGSTOP)
    try:
        (tmp_path / "a").mkdir()
        assert ".lock is held by a living process" in guard_of(kraft, "kafka-1", tmp_path / "a")
    finally:
        os.kill(process.pid, signal.SIGCONT)
    whole(kraft)
    # of another process: the epoch of a registration that is over
    log = tmp_path / "server.log"
    log.write_text("Successfully registered broker 2 with broker epoch 5 (x)\n")
    (tmp_path / "b").mkdir()
    said = guard_of(kraft, "kafka-2", tmp_path / "b", log=log, log_dirs=tmp_path)
    assert "broker 2 of epoch 5 is not registered any more" in said
    whole(kraft)
    assert {name: epoch_of(kraft, name) for name in kraft.names} == epochs


def stop_for(cluster, name, seconds):
    """SIGSTOP for so long, then SIGCONT; returns (seconds until others lead what it has led, the pause of a partition).

    The first is None where it led on.
    """
    number, process = cluster.brokers[name], cluster.process(name)
    moved = None
    with Traffic(cluster, TOPIC) as traffic:
        wait_until(lambda: len(traffic.acknowledged) > 300, 120, "records")
        stopped = time.monotonic()
        os.kill(process.pid, signal.SIGSTOP)
        try:
            while time.monotonic() < stopped + seconds:
                leaders = {each[0] for each in cluster.partitions(TOPIC).values()}
                if moved is None and number not in leaders:
                    moved = time.monotonic() - stopped
                time.sleep(0.05)
        finally:
            os.kill(process.pid, signal.SIGCONT)
        whole(cluster)
        sent = len(traffic.acknowledged)
        wait_until(lambda: len(traffic.acknowledged) > sent, 60, "records afterwards")
    assert not traffic.failed and traffic.lost() == []
    return moved, traffic.longest_pause


@pytest.mark.soak
def test_a_broker_that_hangs_is_fenced_if_that_is_wanted(kraft):
    """It leads nothing soon, and comes back by itself: the same process under the same registration."""
    kraft.deploy()
    whole(kraft)
    leader = quorum(kraft)["leader"]
    name = kraft.name_of(min({1, 2, 3} - {leader}))
    process, epoch = kraft.process(name), epoch_of(kraft, name)
    moved, pause = stop_for(kraft, name, 6)
    print(f"\nSIGSTOP for 6 s, as it is: it leads on, a partition stands still for {pause:.2f} s")
    assert moved is None and "hangs" not in console(kraft, name)

    kraft.set_brokers({}, kafka_fence_hanging_seconds=2)
    assert kraft.deploy() and kraft.process(name) == process, "it takes effect with the next start"
    kraft.play("rolling_restart.yml", "-e", f"broker={kraft.brokers[name]}")
    process, epoch = kraft.process(name), epoch_of(kraft, name)
    whole(kraft)
    moved, pause = stop_for(kraft, name, 6)
    print(
        f"the same with kafka_fence_hanging_seconds of 2: others lead after {moved:.2f} s,", end=" "
    )
    print(f"a partition stands still for {pause:.2f} s")
    assert moved < 5, "before its session of 9 s, and while it hung"
    told = console(kraft, name)
    assert f"fenced broker {kraft.brokers[name]} of epoch {epoch}, others lead" in told, told
    assert told.count("it hangs for") == 1, told
    assert (kraft.process(name), epoch_of(kraft, name)) == (process, epoch)
    kraft.set_brokers({}, kafka_fence_hanging_seconds=0)


@pytest.fixture
def disk(tmp_path):
    """A directory with a file system of its own, which can be frozen: then whoever writes waits in the kernel."""
    image, mount = tmp_path / "image", tmp_path / "disk"
    mount.mkdir()
    with open(image, "wb") as handle:
        handle.truncate(2**30)
    commands = (["mkfs.ext4", "-q", image], ["mount", "-o", "loop", image, mount])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no file system of its own can be had here: {done.stderr.strip()}")
    try:
        yield mount
    finally:
        subprocess.run(["umount", "--lazy", mount], check=True)


@contextlib.contextmanager
def frozen(disk):
    """Nothing can be written there."""
    subprocess.run(["fsfreeze", "--freeze", disk], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", disk], check=True)


@pytest.mark.soak
def test_a_broker_whose_disk_does_not_answer_is_fenced_if_that_is_wanted(next_offset, disk):
    """Without the switch the controllers notice when its session is over."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.configure("kafka-2", kafka_log_dirs=[str(disk / "data")])
        cluster.deploy()
        for seconds, fences in ((0, False), (2, True)):
            cluster.set_brokers(
                {"queued.max.requests": 600 + seconds}, kafka_fence_hanging_seconds=seconds
            )
            cluster.deploy()  # the changed key makes everybody restart
            whole(cluster)
            process, moved = cluster.process("kafka-2"), None
            with Traffic(cluster, TOPIC) as traffic:
                wait_until(lambda: len(traffic.acknowledged) > 300, 120, "records")
                with frozen(disk):
                    begun = time.monotonic()
                    while time.monotonic() < begun + 15:
                        leaders = {each[0] for each in cluster.partitions(TOPIC).values()}
                        if moved is None and 2 not in leaders:
                            moved = time.monotonic() - begun
                        time.sleep(0.1)
                whole(cluster)
            print(f"\na disk that does not answer for 15 s, with {seconds} s:", end=" ")
            print(f"others lead after {moved} s, a pause of {traffic.longest_pause:.1f} s")
            assert not traffic.failed and traffic.lost() == []
            assert (moved is not None and moved < 6) is fences
            assert cluster.process("kafka-2") == process
            told = console(cluster, "kafka-2")
            assert ("a thread of it waits for a disk; fenced broker 2" in told) is fences, told


KILLS = 10


@pytest.mark.soak
@pytest.mark.parametrize("version", ["4.3.1", "3.9.2"])
def test_ten_kills_in_a_row(next_offset, version):
    """Active controllers and others in turn; beside them what Kafka does alone. Figures, and no record lost."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.configure("all", kafka_version=version)
        cluster.deploy()
        for fast, count in ((True, KILLS), (False, 2)):
            cluster.set_brokers({}, kafka_fast_failover=fast)
            cluster.deploy()
            for active in (True, False):
                moved, pauses = [], []
                for _each in range(count // 2):
                    whole(cluster)
                    leader = quorum(cluster)["leader"]
                    number = leader if active else min({1, 2, 3} - {leader})
                    with Traffic(cluster, TOPIC) as traffic:
                        wait_until(lambda: len(traffic.acknowledged) > 300, 120, "records")
                        moved.append(kill(cluster, cluster.name_of(number)))
                    assert not traffic.failed and traffic.lost() == []
                    pauses.append(traffic.longest_pause)
                print(
                    f"\n{version}, {'active controller' if active else 'another node'},"
                    f" {'with the guard' if fast else 'Kafka alone'}: others lead after"
                    f" {statistics.median(moved):.2f} / {max(moved):.2f} s, longest pause of a partition"
                    f" {statistics.median(pauses):.2f} / {max(pauses):.2f} s (median / most of {len(moved)})"
                )
        told = "".join(console(cluster, name) for name in cluster.names)
        assert told.count("fenced and unregistered broker") >= KILLS
        assert "stays" not in told, told


@pytest.mark.soak
def test_a_roll_with_and_without_the_guard(next_offset):
    """Seconds from SIGTERM to the next registration of a node of 4.3.1 with eligible leader replicas, under load."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.deploy()
        found = cluster.tool("kafka-features.sh", "describe")
        assert re.search(r"eligible.leader.replicas.version.*FinalizedVersionLevel: 1", found)
        for value, fast in ((3001, True), (3002, False)):
            cluster.set_brokers({KEY: value}, kafka_fast_failover=fast)
            before = {name: turned_away(cluster, name) for name in cluster.names}
            began = {name: cluster.process(name) for name in cluster.names}
            with Traffic(cluster, TOPIC) as traffic:
                cluster.deploy()
            assert not traffic.failed and traffic.lost() == []
            waits = {name: turned_away(cluster, name) - before[name] for name in cluster.names}
            seconds = [f"{turn_of(cluster, name):.1f}" for name in cluster.names]
            print(
                f"\nroll {'with' if fast else 'without'} the guard: {' '.join(seconds)} s a node,"
            )
            print(
                f"turned away {waits}, longest pause of a partition {traffic.longest_pause:.2f} s"
            )
            assert not set(began.values()) & set(cluster.processes().values())
            told = "".join(console(cluster, name) for name in cluster.names)
            released = set(re.findall(r"fenced and unregistered broker (\d)", told))
            if fast:
                assert not any(waits.values()), waits
            # of one that led the quorum the next leader knows no session
            assert len(released) >= 2, told


@pytest.mark.soak
def test_a_drill_kills_the_controller_that_leads(kraft):
    """Not the broker that metadata name as the controller; another one is elected, and nothing is lost."""
    kraft.deploy()
    whole(kraft)
    leader = quorum(kraft)["leader"]
    rows = drilled(kraft, "controller_killed")
    row = rows["controller_killed"]
    assert row["done"] == f"{kraft.name_of(leader)} killed" and row["seen"]["lost"] == 0
    led = [each["controller"] for each in row["seen"]["moments"]]
    assert leader in led and led[-1] is not None and len(set(led) - {None}) > 1, led
    run = kraft.play("drill.yml", "-e", "drill=zookeeper_kill", code=2)
    assert "[drill.no_zookeeper]" in run.text
    run = kraft.play("drill.yml", "-e", "drill=controllers_kill", code=2)
    assert "[drill.no_controllers]" in run.text and "replicas would be away" in run.text


@pytest.mark.soak
def test_all_drills_of_a_cluster_without_zookeeper(kraft):
    kraft.deploy()
    rows = drilled(kraft, "all")
    assert not {"zookeeper_quorum", "controllers_quorum"} & set(rows) and len(rows) > 10
    for name, row in rows.items():
        print(f"{name:<18} pause {row['pause_ms']} ms: {row['observed']}")


def turn_of(cluster, name):
    """Seconds between the last SIGTERM and the registration after it, by the node's log."""
    log = (cluster.instance(name) / "logs" / "server.log").read_text()
    times = {
        what: datetime.datetime.strptime(
            re.findall(rf"\[(\S+ \S+)\] INFO .*{what}", log)[-1], "%Y-%m-%d %H:%M:%S,%f"
        )
        for what in ("Terminating process due to signal SIGTERM", "Successfully registered broker")
    }
    stop, back = times.values()
    return (back - stop).total_seconds()


@pytest.mark.soak
def test_what_would_change_a_running_quorum_is_refused(kraft):
    """By its id, in one sentence, and nothing has been stopped."""
    kraft.deploy()
    processes = kraft.processes()
    for name in REFUSED:
        run = kraft.play(f"{name}.yml", "-e", "broker=1", code=None)
        assert run.code != 0 and "[metadata.not_yet]" in run.text, f"{name}: {run.text}"
    assert kraft.processes() == processes


@pytest.mark.soak
def test_a_changed_setting_rolls_the_quorum_under_load(kraft):
    """One node at a time, the active controller last; nothing is lost, and never are two down.

    Before, a voter that is away holds back the others; and some settings need no restart here, either.
    """
    kraft.deploy()
    before = kraft.processes()
    kraft.set_brokers({"num.io.threads": 6})
    run = kraft.deploy()
    assert "changed without a restart" in run.text and kraft.processes() == before, run.text
    assert kraft.deploy().changed() == 0

    leader = quorum(kraft)["leader"]
    standby = min({1, 2, 3} - {leader})
    away = kraft.name_of(min({1, 2, 3} - {leader, standby}))
    kraft.set_brokers({"num.io.threads": 6, KEY: 3001})
    kraft.supervisorctl("stop", away)
    brief = ("-e", "kafka_wait_timeout_seconds=5")
    run = kraft.play("rolling_restart.yml", "--limit", f"all:!{away}", *brief, code=2)
    told = " ".join(run.text.split())
    assert "[gate.waiting]" in told and "voters keep up, and 2 are a majority" in told, run.text
    kraft.play("start.yml")
    now = kraft.processes()
    assert {name for name in now if now[name] != before[name]} == {away}

    leader = quorum(kraft)["leader"]
    order = [*sorted({1, 2, 3} - {leader}), leader]
    run = kraft.deploy("--check")
    assert re.findall(r"Restart of kafka-(\d)", run.text) == [str(each) for each in order], run.text
    assert set(re.findall(r"broker (\d) .*may stop now", run.text)) == {"1", "2", "3"}, run.text
    assert kraft.processes() == now
    with Load(kraft, TOPIC, "rolling restart in KRaft mode") as load:
        kraft.deploy()
    assert load.watch.check() == [kraft.name_of(each) for each in order], load.watch.events
    assert quorum(kraft)["voters"] == [1, 2, 3]
    assert led_by_others(kraft) == []
    after = kraft.processes()
    assert not set(after.values()) & set(now.values())
    assert kraft.deploy().changed() == 0

    run = kraft.play("rolling_restart.yml", "-e", f"broker={leader}")
    only = kraft.name_of(leader)
    assert {name for name, each in kraft.processes().items() if each != after[name]} == {only}


@pytest.mark.soak
def test_a_disk_that_was_lost_is_not_formatted_again(kraft):
    """A voter without its past would vote against what was decided."""
    kraft.deploy()
    kraft.play("stop.yml", "--limit", "kafka-3")
    data = kraft.instance("kafka-3") / "data"
    data.rename(data.with_name("kept"))
    run = kraft.deploy(code=2)
    assert "[quorum.unformatted] kafka-3" in run.text, run.text
    assert not (data / "meta.properties").exists()
    data.with_name("kept").rename(data)
    kraft.deploy()
    assert quorum(kraft)["voters"] == [1, 2, 3]


@pytest.mark.soak
def test_a_deployment_that_ended_between_two_formats_goes_on(next_offset):
    """With the same cluster, whoever was formatted; and it is removed without a trace."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.deploy("--tags", "preflight,install,configure")
        before = metas(cluster)
        for path in (cluster.instance("kafka-2") / "data").iterdir():
            if path.is_file():
                path.unlink()
        cluster.deploy()
        after = metas(cluster)
        assert {name: each["directory.id"] for name, each in after.items()} == {
            name: each["directory.id"] for name, each in before.items()
        }
        assert quorum(cluster)["voters"] == [1, 2, 3]
        cluster.play("teardown.yml", "-e", f"confirm={cluster.name}")
        assert not cluster.directory.exists() and not cluster.stray()


@pytest.mark.soak
def test_the_older_release_and_a_broker_that_does_not_vote(next_offset):
    """Kafka 3.9.2, one controller and two brokers only, which restart before it."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        (cluster.overlay / "hosts.yml").write_text(
            "all: {children: {voters: {hosts: {kafka-1: {}}}}}\n"
        )
        older = {"kafka_version": "3.9.2", "kafka_controllers_group": "voters"}
        cluster.configure("all", **older)
        run = cluster.deploy("-e", "flow_validation_records=3000", validation="always")
        assert "PASS: 3,000 acknowledged records came back" in run.text, run.text
        assert quorum(cluster) == {"leader": 1, "voters": [1]}
        assert cluster.deploy().changed() == 0

        cluster.set_brokers({KEY: 3001})
        with Watch(cluster) as watch:
            run = cluster.deploy()
        assert watch.check() == ["kafka-2", "kafka-3", "kafka-1"], watch.events
        told = " ".join(run.text.split())
        assert "nothing in the cluster changes while node 1 restarts: it is the only voter" in told
        assert cluster.deploy().changed() == 0

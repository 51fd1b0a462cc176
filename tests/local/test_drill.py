# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/drill.yml with real faults on a local cluster: its table, its guards, and what it leaves."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from tests.local.drilling import drilled, kept
from tests.local.support import LocalCluster
from tests.local.watching import led_by_others, leftovers
from tests.support import collection_finder
from tests.support.outside import wait_until
from tests.support.watching import cluster_is_whole

collection_finder.install()

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (  # noqa: E402
    DRILLS,
    chosen,
)

# of a cluster with ZooKeeper
ALL = chosen("all")
NAMES = [each.name for each in ALL]


def test_guards_refuse_before_anything_is_touched(cluster):
    before = cluster.processes()
    run = cluster.play("drill.yml", "-e", "drill=leader_kiled", code=2)
    assert "[drill.unknown]" in run.text and "did you mean leader_killed" in run.text
    assert all(each.name in run.text for each in DRILLS)
    # a production cluster below /tmp would be refused for that
    known = '{"kafkaops_preflight_accept": ["directories.temporary"]}'
    strict = ("-e", "drill=leader_killed", "-e", "kafkaops_profile=production", "-e", known)
    assert "[drill.not_allowed]" in cluster.play("drill.yml", *strict, code=2).text
    other = cluster.play("drill.yml", *strict, "-e", "confirm=other", code=2)
    assert "[drill.confirm]" in other.text
    run = cluster.play("drill.yml", "-e", "drill=controllers_kill", code=2)
    assert "[drill.no_controllers]" in run.text and "run zookeeper_quorum" in run.text
    assert cluster.processes() == before and leftovers(cluster) == []


def test_check_mode_says_what_would_be_done_and_touches_nothing(cluster):
    before = cluster.processes()
    run = cluster.play(
        "drill.yml", "-e", "drill=zookeeper_quorum,leader_killed,consumer_closed", "--check"
    )
    assert run.changed() == 0 and cluster.processes() == before and leftovers(cluster) == []
    for text in (
        "with SIGKILL",
        "may stop now",
        "closes a consumer of its own",
        "expected: ",
        "servers 3, 2",
    ):
        assert text in run.text


def meetings():
    """Directories in which playbooks meet observers, also of others who drill on this machine."""
    return set(Path(tempfile.gettempdir()).glob("kafkaops-drill-*"))


def guards(cluster):
    """The processes on hosts that wait for the end of a drill: of modules that came by a pipe, whose task is over."""
    home, found = os.fsencode(f"KAFKAOPS_HOME={cluster.home}"), []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes().strip(b"\0").split(b"\0")
            ours = home in (place / "environ").read_bytes().split(b"\0")
            if (
                ours
                and len(words) == 1
                and b"python" in words[0]
                and os.readlink(place / "cwd") == "/"
            ):
                found.append(int(place.name))
    return found


def killed_when_away(cluster, name, count, rebooted=False):
    """Kill a drill when so many processes are stopped; return which, and where it met its observer.

    `rebooted`: the processes that wait beside it are killed, too, so that they stay stopped.
    """
    stopped, others = [], meetings()

    def away():
        stopped[:] = [each for each, process in cluster.processes().items() if process is None]
        return len(stopped) == count

    with cluster.playing("drill.yml", "-e", f"drill={name}") as (process, log):
        wait_until(lambda: away() or process.poll() is not None, 240, f"{count} are stopped")
        assert process.poll() is None, log.read_text()[-5000:]
        if rebooted:
            assert len(guards(cluster)) == count
            for each in guards(cluster):
                os.kill(each, signal.SIGKILL)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
    assert all((cluster.instance(each) / "run" / "drill.json").is_file() for each in stopped)
    assert kept(cluster)[-1]["next"] == name and not kept(cluster)[-1]["over"]
    met = meetings() - others
    assert met
    return stopped, met


def comes_back(cluster):
    """Without anybody's help the cluster is as it was: all run and lead as before, nothing of drills is there."""
    wait_until(lambda: None not in cluster.processes().values(), 180, "all run again")
    wait_until(
        lambda: not list(cluster.directory.glob("*/run/drill.json")), 60, "the notes are gone"
    )
    wait_until(lambda: leftovers(cluster) == [], 180, "topics and groups are gone")
    wait_until(lambda: cluster_is_whole(cluster), 180, "all replicas are in sync")
    # sooner than Kafka itself looks
    wait_until(lambda: led_by_others(cluster) == [], 60, "preferred leaders lead")


def tells_of_it(cluster, name, met):
    """Another drill begins at once, and tells of the killed one."""
    rows = drilled(cluster, "topic_recreated", told=f"were interrupted during {name}; 0 of 1 drill")
    assert rows["topic_recreated"]["seen"]["lost"] == 0
    assert kept(cluster)[-2]["interrupted"]
    # the observer ends with its playbook
    wait_until(lambda: not any(each.exists() for each in met), 120, f"{met} are removed")


def test_what_a_killed_drill_has_stopped_comes_back_by_itself(cluster):
    """A replica is away and the topic is there; the host itself starts the broker, the observer removes all."""
    _stopped, met = killed_when_away(cluster, "below_min_isr", 1)
    comes_back(cluster)
    tells_of_it(cluster, "below_min_isr", met)


def everybody_of_the_load(cluster):
    """Processes of drills of this cluster on the host of the load, also those that outlive their drill."""
    home, found = os.fsencode(f"KAFKAOPS_HOME={cluster.home}"), []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes()
            ours = home in (place / "environ").read_bytes().split(b"\0")
            if ours and (b"kafka_drill" in words or b"job.py" in words):
                found.append(int(place.name))
    return found


@pytest.mark.soak
def test_the_next_drill_gives_leadership_back_where_nobody_of_the_load_is_left(cluster):
    """The machine of the load is gone, and the guard on the broker's host has started it, and removed its note."""
    (name,), _met = killed_when_away(cluster, "leader_stopped", 1)
    for each in everybody_of_the_load(cluster):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    state = cluster.instance(name) / "run"
    wait_until(lambda: None not in cluster.processes().values(), 180, "all run again")
    wait_until(lambda: not (state / "drill.json").exists(), 60, "the note is gone")
    assert (state / "drill-leaders.json").exists()
    wait_until(lambda: cluster_is_whole(cluster), 180, "all replicas are in sync")
    moved = led_by_others(cluster)
    print(f"led by others: {len(moved)}")
    drilled(cluster, "topic_recreated")
    assert led_by_others(cluster) == [] and not (state / "drill-leaders.json").exists()
    assert moved, "the drill has moved leadership"


@pytest.mark.soak
def test_zookeeper_servers_that_a_killed_drill_has_stopped_come_back_by_themselves(cluster):
    stopped, met = killed_when_away(cluster, "zookeeper_quorum", 2)
    assert all(name.startswith("zookeeper") for name in stopped)
    comes_back(cluster)
    tells_of_it(cluster, "zookeeper_quorum", met)


def topics_of_users(cluster):
    """Names of topics without those that brokers make for groups and transactions."""
    names = cluster.admin().list_topics(timeout=30).topics
    return {name for name in names if not name.startswith("__")}


@pytest.mark.soak
def test_drills_that_are_killed_at_random_moments_leave_the_cluster_as_it_was(cluster, moments):
    topics = topics_of_users(cluster)
    for number in range(8):
        name, number_of = moments.choice(NAMES), moments.choice([signal.SIGKILL, signal.SIGTERM])
        seconds = moments.uniform(8, 60)
        print(f"{number}: {name} gets {number_of.name} after {seconds:.1f} s")
        with cluster.playing("drill.yml", "-e", f"drill={name}") as (process, _log):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number_of)
            process.wait(60)
        comes_back(cluster)
    wait_until(lambda: topics_of_users(cluster) == topics, 300, "the judge's topics are gone, too")


def who_loads(cluster):
    """Command lines of the judges, and of the observers, that run for drills of this cluster."""
    home, found = os.fsencode(f"KAFKAOPS_HOME={cluster.home}"), []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes()
            ours = home in (place / "environ").read_bytes().split(b"\0")
            if ours and (b"AnsiballZ_kafka_drill" in words or b"job.py" in words):
                found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found


@pytest.mark.soak
def test_a_drill_that_is_refused_under_its_load_ends_it_before_the_next_one(cluster):
    """Somebody makes a topic with one replica when the load has begun: the gate lets the broker not go."""
    before, topic = len(kept(cluster)), "somebodys-with-one-replica"
    names = "leader_stopped,coordinator_lost,broadcast"
    with cluster.playing("drill.yml", "-e", f"drill={names}") as (process, log):

        def until(condition, what):
            wait_until(lambda: condition() or process.poll() is not None, 400, what)
            assert process.poll() is None, log.read_text()[-5000:]

        def loads():
            found = "".join(who_loads(cluster))
            return "job.py" in found and "AnsiballZ_kafka_drill" in found

        def rows():
            return kept(cluster)[-1]["drills"] if len(kept(cluster)) > before else []

        until(loads, "judge and observer have begun")
        admin = cluster.admin()
        admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(30)
        try:
            for count in (1, 2):
                until(lambda count=count: len(rows()) == count, f"{count} rows are kept")
                # as soon as the row is there: the next drill begins
                assert "job.py" not in "".join(who_loads(cluster)), "the judge has ended"
                assert "async_wrapper" not in "".join(who_loads(cluster)), "the observer has ended"
            process.wait(400)
            text = log.read_text()
        finally:
            admin.delete_topics([topic])[topic].result(30)
    found = {row["case"]: row for row in kept(cluster)[-1]["drills"]}
    assert process.returncode == 2 and "VERDICT" in text and kept(cluster)[-1]["over"]
    for name in ("leader_stopped", "coordinator_lost"):
        assert found[name]["verdict"] == "open" and found[name]["done"] == "nothing"
        assert "gate.cannot_pass" in found[name]["open"][0] and topic in found[name]["open"][0]
    # the second was refused before any load
    assert not found["coordinator_lost"]["seen"]
    assert found["broadcast"]["verdict"] == "as expected"
    wait_until(lambda: leftovers(cluster) == [], 60, "topics and groups are gone")


@pytest.fixture(name="mended")
def _mended(next_offset):
    """A cluster of its own, in which a broker is made ill."""
    with LocalCluster(next_offset()) as running:
        running.deploy()
        yield running


@pytest.mark.soak
def test_a_broker_that_does_not_come_back_is_a_row_of_the_table(mended):
    """Somebody has broken its data directory while it was away; it may be the cluster's first host."""
    patience = ("-e", "kafka_wait_timeout_seconds=60", "-e", "kafka_drill_patience_seconds=10")
    names, hurt = ["leader_stopped", "broadcast"], []
    with mended.playing("drill.yml", "-e", f"drill={','.join(names)}", *patience) as (run, log):

        def away():
            hurt[:] = [each for each, process in mended.processes().items() if process is None]
            return hurt or run.poll() is not None

        wait_until(away, 400, "a broker is away")
        assert run.poll() is None, log.read_text()[-5000:]
        (place,) = (mended.instance(hurt[0]) / "data").rglob("meta.properties")
        whole = place.read_text()
        place.write_text(re.sub(r"(broker|node)\.id=\d+", r"\1.id=99", whole))
        try:
            run.wait(600)
            text = log.read_text()
        finally:
            place.write_text(whole)
    newest = kept(mended)[-1]
    assert run.returncode == 2 and newest["over"], text[-5000:]
    assert [row["case"] for row in newest["drills"]] == names and "VERDICT" in text
    stopped, broadcast = newest["drills"]
    assert stopped["verdict"] == "NOT as expected" and stopped["seen"]["acknowledged"]
    assert any(f"not as before: {hurt[0]}: " in each for each in stopped["wrong"]), stopped["wrong"]
    assert broadcast["verdict"] == "open" and "drill.not_whole" in broadcast["open"][0]
    assert who_loads(mended) == []
    comes_back(mended)
    drilled(mended, "broadcast")


@pytest.mark.soak
def test_all_drills(cluster):
    rows = drilled(cluster, "all")
    assert list(rows) == NAMES
    for name, row in rows.items():
        print(f"{name:<18} pause {row['pause_ms']} ms: {row['observed']}")
    assert rows["consumer_killed"]["pause_ms"] > rows["consumer_closed"]["pause_ms"]
    assert rows["below_min_isr"]["seen"]["refused"]["NOT_ENOUGH_REPLICAS"] > 0
    proven = [row for row in rows.values() if "judge's own load" in row["observed"]]
    assert len(proven) == sum(each.proven for each in ALL)


@pytest.mark.soak
def test_copies_outlive_their_leader(cluster):
    """The third row of scenario S26: what is written with transactions is there once, whoever dies."""
    row = drilled(cluster, "copies_leader_killed")["copies_leader_killed"]
    source, exact, plain = row["seen"]["groups"]
    assert exact["name"].endswith("-transactional") and plain["name"].endswith("-plain")
    assert {each["received"] for each in (source, exact, plain)} == {row["seen"]["acknowledged"]}
    assert not (exact["missing"] or exact["repeated"] or plain["missing"])
    # the topic and both copies, by the judge
    told = {each["topic"]: each["counts"]["again"] for each in row["seen"]["judged"]}
    assert told[exact["name"]] == 0 and told[plain["name"]] == plain["repeated"] and len(told) == 3
    at_ms = row["fault"]["at_ms"]
    for each in row["seen"]["measured"]["copies"]:
        assert not each["trouble"] and each["commits"] > 10, each
        # both have gone on
        assert each["last_commit_ms"] > at_ms
    print(f"pause {row['pause_ms']} ms: {row['observed']}")
    assert row["pause_ms"] and "with transactions: 0 lost, 0 twice" in row["observed"]


@pytest.mark.soak
def test_below_min_isr_reads_go_on_and_writes_are_accepted_again(cluster):
    row = drilled(cluster, "below_min_isr")["below_min_isr"]
    seen = row["seen"]
    below = seen["measured"]["below"]
    assert seen["refused"]["NOT_ENOUGH_REPLICAS"] > 0 and seen["unprotected"] == 0
    assert below["read"] == below["there"] > 0 and below["again"] > 0
    assert f"{below['there']} of {below['there']} read while it was away" in row["observed"]
    # of all in which no write was accepted, as the fault was
    at_ms, pauses = row["fault"]["at_ms"], seen["measured"]["pauses"]
    assert row["pause_ms"] == max(later - before for before, later in pauses if later > at_ms)


@pytest.fixture
def ill(next_offset, tmp_path):
    """A cluster on which somebody has taken two of three replicas from the internal topic of groups."""
    with LocalCluster(next_offset()) as running:
        running.deploy()
        drilled(running, "broadcast")
        place = tmp_path / "one.json"
        parts = running.partitions("__consumer_offsets")
        moves = [
            {"topic": "__consumer_offsets", "partition": number, "replicas": [leader]}
            for number, (leader, _replicas, _isr) in parts.items()
        ]
        place.write_text(json.dumps({"version": 1, "partitions": moves}))
        running.tool("kafka-reassign-partitions.sh", "--reassignment-json-file", place, "--execute")
        topic = ("--entity-type", "topics", "--entity-name", "__consumer_offsets")
        running.tool("kafka-configs.sh", *topic, "--alter", "--add-config", "min.insync.replicas=1")
        wait_until(
            lambda: all(
                len(isr) == len(replicas) == 1
                for _leader, replicas, isr in running.partitions("__consumer_offsets").values()
            ),
            180,
            "one replica each",
        )
        yield running


@pytest.mark.soak
def test_groups_that_hang_on_one_broker_are_not_as_expected(ill):
    """The gate refuses what would stop groups; who consents is told what was seen."""
    run = ill.play("drill.yml", "-e", "drill=coordinator_kill", code=2, timeout=1200)
    assert "gate.cannot_pass" in run.text and "__consumer_offsets" in run.text
    (row,) = kept(ill)[-1]["drills"]
    assert row["verdict"] == "open"
    consent = ("-e", "kafka_accept_unavailable=__consumer_offsets")
    run = ill.play("drill.yml", "-e", "drill=coordinator_kill", *consent, code=2, timeout=1200)
    (row,) = kept(ill)[-1]["drills"]
    assert row["verdict"] == "NOT as expected"
    assert any("nobody else has coordinated" in each for each in row["wrong"]), row["wrong"]
    assert any("1 replica" in each for each in row["wrong"]) and "1 replica" in run.text
    comes_back(ill)

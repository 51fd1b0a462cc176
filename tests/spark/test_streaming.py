# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The streaming proof as people start it, at a real cluster: what is lost is told, and nothing else."""

import contextlib
import json
import signal
import struct
import subprocess
import sys
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.spark.conftest import JOB
from tests.spark.disturbing import make_whole
from tests.support.lying_proxy import LyingProxy
from tests.support.outside import wait_until

PROGRAM = JOB.parent / "watch.py"
WITHIN = 6


class Dropping:
    """Drops one record on its way to the broker, that of a partition with at least this sequence."""

    def __init__(self, partition, sequence):
        self._partition, self._sequence = partition, sequence
        self.dropped = None

    def __call__(self, batch):
        for index, record in enumerate(batch.records):
            partition, sequence = struct.unpack_from(">IQ", record.value, 28)
            if self.dropped is None and partition == self._partition and sequence >= self._sequence:
                self.dropped = sequence
                if len(batch.records) == 1:  # a batch holds at least one: another in its place
                    return replace(
                        batch, records=(replace(record, value=b"x" * len(record.value)),)
                    )
                left = batch.records[:index] + batch.records[index + 1 :]
                left = tuple(replace(each, delta=number) for number, each in enumerate(left))
                return replace(batch, records=left, last_delta=len(left) - 1)
        return None


class Running:
    """The program, and the files that it writes."""

    def __init__(self, servers, directory, *more):
        self._argv = [
            *(sys.executable, str(PROGRAM), f"--bootstrap-servers={servers}"),
            *(f"--state={directory}/state", f"--output={directory}/out", "--master=local[2, 4]"),
            *("--every=1s", f"--within={WITHIN}s", *more),
        ]
        self._status, self.log = directory / "out" / "status.json", directory / "log"
        self.process = None

    def start(self):
        with self.log.open("a", encoding="utf-8") as log:
            # with the umask of supervisord
            self.process = subprocess.Popen(
                self._argv, stdout=log, stderr=log, start_new_session=True, umask=0o027
            )

    def status(self):
        """The last one; {} before the first."""
        with contextlib.suppress(FileNotFoundError):
            return json.loads(self._status.read_text(encoding="utf-8"))
        return {}

    def until(self, seconds, what, true):
        """The first status of which it is true."""

        def look():
            assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
            status = self.status()
            return status if status and true(status) else None

        return wait_until(look, seconds, what)

    def arrived(self, records, seconds=120):
        """Wait for so many more than have arrived before."""
        before = self.status().get("counts", {}).get("arrived", 0)
        return self.until(seconds, "arrivals", lambda s: s["counts"]["arrived"] >= before + records)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture(name="proxies", scope="module")
def proxies_fixture(cluster):
    with LyingProxy.before_brokers(cluster, cluster.broker_instances) as proxies:
        yield proxies


@pytest.fixture(name="running")
def running_fixture(cluster, proxies, tmp_path, request):
    servers = ",".join(cluster.announced_address("PROXY", n) for n in cluster.broker_instances)
    topic = f"--topic=kafkaops-watch-{request.node.name[5:25].strip('_')}"
    running = Running(servers, tmp_path, topic)
    yield running
    for proxy in proxies:
        proxy.on_produce = None
    if running.process and running.process.poll() is None:
        running.process.kill()
        running.process.wait(30)


def test_a_record_that_a_broker_drops_is_alarmed_and_named(cluster, proxies, running, tmp_path):
    running.start()
    running.arrived(6)
    lie = Dropping(partition=1, sequence=8)
    for proxy in proxies:
        proxy.on_produce = lie
    status = running.until(120, "the alarm", lambda s: s["alarms"])
    assert (status["counts"]["lost"], set(status["alarms"])) == (1, {"loss"})
    (lost,) = status["witnesses"]["lost"]
    assert (lost["partition"], lost["sequence"]) == (1, lie.dropped)
    assert f"partition 1 offset {lost['offset']} sequence {lie.dropped}" in status["alarms"]["loss"]
    # within the watermark, and the two batches that it takes to pass and to be told
    assert lost["seen"] - lost["sent_us"] / 1e6 >= WITHIN
    assert status["ended"] is None
    assert running.end() == 0
    said = running.log.read_text(encoding="utf-8")
    assert said.count("CRITICAL loss: 1 acknowledged record of ") == 1
    assert running.status()["ended"]["why"] == "", "nobody takes what it said for what is so now"
    assert status["state"]["rows"] > 0 and status["counts"]["duplicate"] == 0
    assert (tmp_path / "out" / "watch.prom").stat().st_mode & 0o777 == 0o644
    metrics = (tmp_path / "out" / "watch.prom").read_text(encoding="utf-8")
    assert 'alarm="loss",severity="critical"} 1\n' in metrics and 'outcome="lost"} 1\n' in metrics


def repeat(batch):
    again = replace(batch.records[0], delta=len(batch.records))
    return replace(batch, records=(*batch.records, again), last_delta=len(batch.records))


@pytest.mark.soak
def test_a_record_that_comes_twice_is_counted_and_is_no_loss(cluster, proxies, running):
    running.start()
    running.arrived(6)
    proxies[0].on_produce = repeat
    status = running.until(120, "duplicates", lambda s: s["counts"]["duplicate"] >= 3)
    assert proxies[0].told >= 3
    assert (status["counts"]["lost"], status["alarms"]) == (0, {})
    assert {each["partition"] for each in status["witnesses"]["duplicate"]} == {0}


@pytest.mark.soak
def test_neither_a_dead_broker_nor_a_dead_watcher_is_a_loss(cluster, proxies, tmp_path):
    running = Running(
        cluster.bootstrap_servers, tmp_path, "--topic=kafkaops-watch-faults", "--within=60s"
    )
    running.start()
    try:
        running.arrived(20)
        cluster.broker_instances[2].kill()
        running.arrived(60)
        running.process.kill()  # its Java notices, and ends, too
        running.process.wait(30)
        before = running.status()
        running.start()
        running.until(90, "the second start", lambda s: s["attempt"] == before["attempt"] + 1)
        running.arrived(40)
        make_whole(cluster)
        running.arrived(20)
        assert running.end() == 0
        running.start()
        running.arrived(20)
        # until the watermark has passed all that was sent before the last start
        since = running.status()["counts"]["acknowledged"]
        status = running.until(
            180, "all are decided", lambda s: s["counts"]["arrived"] >= since + 300
        )
        counts = status["counts"]
        assert (counts["lost"], counts["duplicate"], status["alarms"]) == (0, 0, {})
        assert status["attempt"] == 3
        # twice what the watermark spans, on both sides, and some batches
        assert status["state"]["rows"] < 2 * 6 * (60 + 30)
    finally:
        if running.process.poll() is None:
            running.end()
    said = running.log.read_text(encoding="utf-8")
    assert "CRITICAL" not in said and "StackOverflowError" not in said, said


@pytest.mark.soak
def test_a_watch_with_an_end_decides_each_record(cluster, tmp_path):
    running = Running(
        cluster.bootstrap_servers,
        tmp_path,
        *("--topic=kafkaops-watch-ends", "--duration=60s", "--renew=10s"),
    )
    running.start()
    assert running.process.wait(240) == 0, running.log.read_text(encoding="utf-8")
    status = running.status()
    counts = status["counts"]
    assert counts["acknowledged"] == counts["arrived"] > 30
    assert {counts[kind] for kind in ("pending", "lost", "unconfirmed", "undecided")} == {0}
    assert status["generation"] > 1
    (left,) = (tmp_path / "state").glob("generation-*")
    assert left.name == f"generation-{status['generation']:06d}"


def test_a_broker_that_came_after_the_topic_was_made_is_watched_too(cluster, tmp_path):
    name = "kafkaops-watch-grown"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    brokers = sorted(admin.list_topics(timeout=30).brokers)
    earlier = [brokers[:2], brokers[1::-1]]
    new = NewTopic(name, num_partitions=2, replica_assignment=earlier)
    admin.create_topics([new])[name].result(30)
    running = Running(
        cluster.bootstrap_servers, tmp_path, f"--topic={name}", "--within=10s", "--duration=8s"
    )
    running.start()
    assert running.process.wait(180) == 0, running.log.read_text(encoding="utf-8")
    partitions = admin.list_topics(name, timeout=30).topics[name].partitions
    assert sorted(each.replicas[0] for each in partitions.values()) == brokers
    assert all(len(each.replicas) == 2 for each in partitions.values())
    counts = running.status()["counts"]
    assert counts["acknowledged"] == counts["arrived"] > 0


# The clock of the program's own process, which alone has a part in it: ahead by what a file says.
AHEAD = """
import pathlib, time

_file = pathlib.Path(__file__).with_name("ahead")
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + float(_file.read_text())
time.time_ns = lambda: _time_ns() + int(float(_file.read_text()) * 1e9)
"""


@pytest.mark.soak
def test_a_watch_whose_clock_is_set_back_begins_anew_and_names_a_later_loss(
    cluster, proxies, running, tmp_path, monkeypatch
):
    """Until the clock were where it had been, all would be too late for Spark's watermark: ten minutes here."""
    for name, text in {"sitecustomize.py": AHEAD, "ahead": "600"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    running.start()
    running.arrived(20)
    (tmp_path / "draft").write_text("0")
    (tmp_path / "draft").rename(tmp_path / "ahead")
    status = running.until(120, "a generation of its own", lambda s: s["generation"] == 2)
    assert status["counts"]["undecided"] > 0 and status["counts"]["lost"] == 0
    status = running.arrived(20)
    assert (status["counts"]["lost"], status["alarms"]) == (0, {})
    lie = Dropping(partition=1, sequence=0)
    for proxy in proxies:
        proxy.on_produce = lie
    status = running.until(120, "the alarm", lambda s: s["alarms"])
    assert status["witnesses"]["lost"][-1]["sequence"] == lie.dropped
    assert running.end() == 0
    said = running.log.read_text(encoding="utf-8")
    assert "WARNING clock: it was set back by about " in said and "WARNING undecided: " in said


def test_a_topic_of_others_is_refused(tmp_path):
    running = Running("127.0.0.1:1", tmp_path, "--topic=orders")
    running.start()
    assert running.process.wait(60) == 3
    assert "orders is not one of the streaming proof" in running.log.read_text(encoding="utf-8")

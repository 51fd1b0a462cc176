#!/usr/bin/env python3
# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast the validation reads and writes, as ratios to Kafka's own tools, in one run.

    python tests/benchmarks/judge.py [--records 10000000] [--record-size 100]

* produce: the produce step of `job.py produce` against as many kafka-producer-perf-test at once as
  it has produce tasks: idempotent, acks=all, same linger and batch size, as many records in all;
* judge: the read-and-judge step of `job.py verify` against kafka-consumer-perf-test on the topic.

Kafka's tool does not look at the batches' checksums, and has a receive buffer of 2 MiB. Like with like is
Kafka's own consumer with that buffer which does look, in a JVM as fresh as the job's: "that checks".
Beside each ratio stand the CPU seconds for a million records, of whole processes, their start included.

Between the two stands what our own means allow at all, measured in the same rounds: Spark counting the
topic's records and nothing else, in a JVM as fresh as the job's; and as many Python processes as the
job has, sending one and the same value without a ledger or a callback. And what remains when Java has
compiled everything, as in a run that is long: the same judging in a JVM that has done it before.

Without --bootstrap-servers three brokers are started by hand and stopped again, with the default
collector and compiler, but a small heap. Each round runs ours and theirs in turn, and the best of
each is compared, because the first round also warms page cache and brokers.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))
JOB = CHECKOUT / "roles" / "flow_validation" / "files" / "job.py"
# librdkafka's defaults, given to Kafka's tool as well: its own are smaller and would flatter us
LINGER_MS, BATCH_BYTES = 5, 1_000_000
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(JOB.parent)}  # which knows the job's package
JUDGED_BEFORE = 2  # times, before a JVM counts as warm


class Meter:
    """CPU seconds of what this process starts in the body of the `with`, and of what that starts; each
    process as it was seen last, twenty times a second. Processes that were there before do not count.
    """

    def __init__(self) -> None:
        self._over, self._last = threading.Event(), {}
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Meter":
        from tests.support.processes import descendants

        self._descendants = descendants
        self._before = descendants(os.getpid())
        self._watcher.start()
        return self

    def __exit__(self, *_exc) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            for pid in self._descendants(os.getpid()) - self._before:
                with contextlib.suppress(OSError):
                    told = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
                    self._last[pid] = int(told[11]) + int(told[12])

    @property
    def seconds(self) -> float:
        """So far."""
        return sum(self._last.values()) / os.sysconf("SC_CLK_TCK")


def ours(mode: str, servers: str, ledger: Path, output: Path, *more: str, often: int = 1) -> dict:
    """Run the job and return its verdict.json (verify) or produced.json; verify `often` times in
    one JVM, of which the last counts."""
    job = [str(JOB)] if often == 1 else ["-c", VERIFY_AGAIN, str(often)]
    command = [sys.executable, *job, mode, f"--bootstrap-servers={servers}", *more]
    command += [f"--ledger={ledger}", f"--output={output}", "--master=local[*]"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{mode} ended with {done.returncode}: {done.stdout}{done.stderr[-2000:]}")
    return json.loads(
        (output / f"{'produced' if mode == 'produce' else 'verdict'}.json").read_text()
    )


def tool(release: Path, main: str, *arguments: str) -> subprocess.Popen:
    """Start one of Kafka's tools as its own launcher would."""
    java = Path(os.environ["JAVA_HOME"]) / "bin/java" if os.environ.get("JAVA_HOME") else "java"
    libs = str(release / "libs" / "*")
    flags = ["-Xmx512m", "-Dlog4j.rootLogger=OFF"]
    return subprocess.Popen(
        [str(java), *flags, "-cp", libs, f"org.apache.kafka.tools.{main}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def tool_produce(release, servers, topic, records, size, processes) -> float:
    """Records a second of all processes together, each by its own clock (no JVM start)."""
    properties = [f"bootstrap.servers={servers}", "acks=all", "enable.idempotence=true"]
    properties += [f"linger.ms={LINGER_MS}", f"batch.size={BATCH_BYTES}"]
    work = ["--topic", topic, "--num-records", str(records // processes)]
    work += ["--record-size", str(size), "--throughput", "-1"]
    running = [
        tool(release, "ProducerPerformance", *work, "--producer-props", *properties)
        for _ in range(processes)
    ]
    rates = []
    for process in running:
        last = process.communicate()[0].strip().splitlines()[-1]
        rates.append(float(last.split("records sent, ")[1].split(" records/sec")[0]))
    return sum(rates)


def tool_consume(release, servers, topic, records) -> tuple:
    """Records a second by the tool's own clocks: (fetching alone, all of it but the JVM's start)."""
    process = tool(
        release, "ConsumerPerformance", "--topic", topic, "--messages", str(records),
        "--bootstrap-server", servers, "--timeout", "30000",
        "--hide-header",
    )  # fmt: skip
    fields = process.communicate()[0].strip().splitlines()[-1].split(", ")
    return float(fields[9]), float(fields[5])  # fetch.nMsg.sec, nMsg.sec


VERIFY_AGAIN = """
import sys, job
from flow import steps
from flow.engine import session
for turn in range(int(sys.argv[1])):
    code = steps.verify(job.arguments(sys.argv[2:]))
session.stop()
sys.exit(code)
"""
COUNT = """
import sys, time
from flow.engine import session
from flow.judge import reading
from confluent_kafka import Consumer, TopicPartition
servers, topic, partitions = sys.argv[1], sys.argv[2], int(sys.argv[3])
client = Consumer({"bootstrap.servers": servers, "group.id": "none"})
spans = {n: client.get_watermark_offsets(TopicPartition(topic, n)) for n in range(partitions)}
with session.work_directory() as work:
    spark = session.start("local[*]", session.prepare_java(""), work, 10**9)
    started = time.monotonic()
    count = reading.rows(spark, topic, spans, {}, servers).count()
    print(count / (time.monotonic() - started))
    session.stop()
"""
CHECKED = """
import sys, time
from flow.engine import session
from flow.prepare import java_admin
servers, topic, partitions, records = *sys.argv[1:3], *map(int, sys.argv[3:5])
settings = {"check.crcs": "true", "receive.buffer.bytes": 2 * 2**20, "max.poll.records": 50000,
            "enable.auto.commit": "false", "auto.offset.reset": "earliest"}
with session.work_directory() as work:
    spark = session.start("local[*]", session.prepare_java(""), work, 10**9)
    with java_admin.consumer(spark, servers, settings) as (jvm, consumer):
        places = jvm.java.util.ArrayList()
        for number in range(partitions):
            places.add(jvm.org.apache.kafka.common.TopicPartition(topic, number))
        consumer.assign(places)
        patience, count = jvm.java.time.Duration.ofMillis(500), 0
        started = time.monotonic()
        while count < records:
            count += consumer.poll(patience).count()
        rate = count / (time.monotonic() - started)
    session.stop()
print(rate)
"""
SEND = """
import sys, time
from confluent_kafka import Producer
servers, topic, partitions, records, size = *sys.argv[1:3], *map(int, sys.argv[3:6])
settings = dict(item.split("=") for item in sys.argv[6:])
client = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": 200000, **settings})
value, send = b"x" * size, client.produce
started = time.monotonic()
for number in range(records):
    while True:
        try:
            send(topic, value, None, number // 1024 % partitions)
            break
        except BufferError:
            client.poll(0.1)
client.flush()
print(records / (time.monotonic() - started))
"""


def python(program: str, *arguments: str) -> subprocess.Popen:
    """Start a few lines of Python that know the job's package."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def rate_of(*processes: subprocess.Popen) -> float:
    """The sum of the rates that processes print last."""
    return sum(float(each.communicate()[0].split()[-1]) for each in processes)


def three_brokers(directory: Path, port_base: int):
    """A BareCluster with the JVM's default collector and compiler, but a small heap."""
    from tests.support.bare_cluster import BareCluster

    flags = ("-XX:+UseG1GC", "-Djava.awt.headless=true")
    return BareCluster(directory, port_base, zookeepers=1, broker_heap="1g", jvm_flags=flags)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--record-size", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--replication-factor", type=int, default=3)
    parser.add_argument("--bootstrap-servers")
    parser.add_argument("--port-base", type=int, default=30200)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()

    from tests.support.bare_cluster import KAFKA_VERSION
    from tests.support.releases import unpack_release

    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkaops-bench-")))
        servers = options.bootstrap_servers
        if not servers:
            cluster = three_brokers(work / "cluster", options.port_base)
            servers = stack.enter_context(cluster).bootstrap_servers
        release = unpack_release("kafka", KAFKA_VERSION, work / "release")
        measure(options, servers, release, work)


def measure(options, servers: str, release: Path, work: Path) -> None:
    """Both comparisons on one cluster."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": servers})
    cores = os.cpu_count()
    size = (f"--records={options.records}", f"--record-size={options.record_size}")
    names = ("produce", "judge", "judge, whole", "judge, warm", "judge, alike")
    best: dict = {name: [0, 0] for name in names}
    means = {"produce": 0.0, "judge": 0.0}
    spent: dict = {}  # what -> CPU seconds for a million records, the least

    @contextlib.contextmanager
    def metered(what: str):
        with Meter() as meter:
            yield
        used = meter.seconds * 1_000_000 / options.records
        spent[what] = min(spent.get(what, used), used)

    made: dict = {}
    verdict: dict = {}
    for turn in range(options.rounds):
        topic, ledger = f"bench-{turn}-{int(time.time())}", work / f"ledger-{turn}"
        properties = (
            f"--producer-property=linger.ms={LINGER_MS}",
            f"--producer-property=batch.size={BATCH_BYTES}",
        )
        with metered("job.py produce"):
            made = ours("produce", servers, ledger, work, f"--topic={topic}",
                        f"--partitions={options.partitions}",
                        f"--replication-factor={options.replication_factor}",
                        *size, *properties)  # fmt: skip
        seconds = made["timings"]["produce"]
        best["produce"][1] = max(best["produce"][1], options.records / seconds)

        other = f"{topic}-tool"
        from confluent_kafka.admin import NewTopic

        empty = NewTopic(other, options.partitions, options.replication_factor)
        admin.create_topics([empty])[other].result(30)
        with metered("kafka-producer-perf-test"):
            rate = tool_produce(
                release, servers, other, options.records, options.record_size, made["producers"]
            )
        best["produce"][0] = max(best["produce"][0], rate)
        share = (options.partitions, options.records // made["producers"], options.record_size)
        settings = ("acks=all", "enable.idempotence=true", f"linger.ms={LINGER_MS}",
                    f"batch.size={BATCH_BYTES}")  # fmt: skip
        senders = [
            python(SEND, servers, other, *share, *settings) for _ in range(made["producers"])
        ]
        means["produce"] = max(means["produce"], rate_of(*senders))
        admin.delete_topics([other])[other].result(30)

        # Unmeasured: what is written meanwhile may have pushed the topic out of memory, and the first
        # reader would wait for the disk on behalf of the others.
        tool_consume(release, servers, topic, options.records)
        with metered("job.py verify"):
            verdict = ours("verify", servers, ledger, work, f"--topic={topic}")
        fresh = options.records / verdict["timings"]["read and judge"]
        again = ours("verify", servers, ledger, work, f"--topic={topic}", often=JUDGED_BEFORE + 1)
        warm = options.records / again["timings"]["read and judge"]
        counted = rate_of(python(COUNT, servers, topic, options.partitions))
        means["judge"] = max(means["judge"], counted)
        with metered("kafka-consumer-perf-test"):
            fetching, joining = tool_consume(release, servers, topic, options.records)
        with metered("a consumer that checks"):
            checking = rate_of(python(CHECKED, servers, topic, options.partitions, options.records))
        for name, rate, own in (
            ("judge", fetching, fresh),
            ("judge, whole", joining, fresh),
            ("judge, warm", fetching, warm),
            ("judge, alike", checking, fresh),
        ):
            best[name] = [max(best[name][0], rate), max(best[name][1], own)]
        admin.delete_topics([topic])[topic].result(30)
    what = (
        f"{options.records:,} records of {options.record_size} B, {options.partitions} partitions"
    )
    print(f"{what}, {cores} cores, best of {options.rounds}; records/s")
    for name, against in (
        ("produce", f"{made['producers']} kafka-producer-perf-test"),
        ("judge", "kafka-consumer-perf-test, fetching alone"),
        ("judge, whole", "kafka-consumer-perf-test, joining too"),
        ("judge, warm", "kafka-consumer-perf-test, fetching alone"),
        ("judge, alike", "Kafka's own consumer that checks"),
    ):
        theirs, own = best[name]
        print(f"{name:13} {own:12,.0f}   {against:42} {theirs:12,.0f}   ratio {own / theirs:.2f}")
    for name, what in (("produce", "bare Python senders"), ("judge", "Spark counting alone")):
        own, most = best[name][1], means[name]
        print(f"{name:13} {own:12,.0f}   {what:42} {most:12,.0f}   ratio {own / most:.2f}")
    print("CPU seconds for a million records, start included:")
    for what, used in spent.items():
        print(f"    {what:26} {used:6.2f}")
    print("produce step by step (s): ", made["timings"])
    print("verify step by step (s):  ", verdict["timings"])


if __name__ == "__main__":
    main()

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the validation while something happens to the cluster or to Spark."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.support import verdict_schema
from tests.support.outside import wait_until
from tests.support.processes import descendants


def started_records(ledger):
    """Records acknowledged so far of attempts that still run, by their files."""
    from flow.record import files

    attempts = files.load_attempts(str(ledger))
    return sum(attempt.acknowledged for attempt in attempts if not attempt.complete)


def appended(cluster, ledger):
    """Records that the leader of the run's first partition has, 0 before there is one."""
    from flow.messages.failure import CannotRun
    from flow.record import files

    try:
        topic = files.load_plan(str(ledger)).topic
    except CannotRun:
        return 0
    reader = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "none"})
    try:
        return reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
    except KafkaException:  # not every broker has heard of the topic
        return 0
    finally:
        reader.close()


def run_and_disturb(cluster, directory, disturb, records=400_000, more=()):
    """`run` with a disturbance as soon as the first records are there; (exit code, verdict)."""
    import job
    from flow import steps

    ledger = directory / "ledger"
    options = job.arguments(
        [
            "run",
            f"--bootstrap-servers={cluster.bootstrap_servers}",
            f"--records={records}",
            f"--ledger={ledger}",
            f"--output={directory}",
            "--partitions=6",
            *more,
        ]
    )
    done = threading.Event()

    def when_started():
        while not done.is_set():  # if it never comes, the test finds that nothing was disturbed
            if appended(cluster, ledger):
                disturb()
                return
            time.sleep(0.02)

    watcher = threading.Thread(target=when_started)
    watcher.start()
    try:
        code = steps.run(options)
    finally:
        done.set()
        watcher.join()
    return code, verdict_schema.read(directory / "verdict.json")


def make_whole(cluster):
    """Start the brokers that are down, and wait until every replica is in sync.

    Not before the old registration of a killed one has expired: until then it could not start, and
    counts as registered though it is not there.
    """
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for number, broker in cluster.broker_instances.items():
        if not broker.running():
            wait_until(
                lambda number=number: number not in admin.list_topics(timeout=30).brokers,
                60,
                f"the registration of {broker.name} expires",
            )
            broker.start()
    cluster.wait_registered()

    def as_seen_by(address):
        """(controller, all in sync) in the view of one broker: a new client asks where it is told to."""
        known = AdminClient({"bootstrap.servers": address}).list_topics(timeout=30)
        partitions = [each for topic in known.topics.values() for each in topic.partitions.values()]
        return known.controller_id, len(known.brokers) == len(cluster.broker_instances) and all(
            len(each.isrs) == len(each.replicas) for each in partitions
        )

    since = [None]

    def steady():
        # A broker that stood still longer than its session is registered until it finds out, and again thereafter.
        views = {as_seen_by(each) for each in cluster.bootstrap_servers.split(",")}
        good = len(views) == 1 and next(iter(views)) != (-1, True) and next(iter(views))[1]
        since[0] = (since[0] or time.monotonic()) if good else None
        return good and time.monotonic() - since[0] > 1.5

    wait_until(
        steady, 120, "every broker is there and every replica in sync, as each of them sees it"
    )


def accusations(verdict):
    return [c["id"] for c in verdict["checks"] if c["status"] != "pass"]


def kill_python_workers():
    """SIGKILL for all of them, since which one writes cannot be told; their process ids."""
    workers = python_workers()
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    return workers


def kill_producing_job(cluster, directory, *options):
    """`produce` as a process of its own, with its ledger in `directory`, killed while it writes."""
    import job

    ledger = directory / "ledger"
    where = [f"--bootstrap-servers={cluster.bootstrap_servers}", f"--ledger={ledger}"]
    command = [sys.executable, job.__file__, "produce", *where, "--master=local[2]", *options]
    with open(directory / "console", "wb") as console:
        process = subprocess.Popen(command, stdout=console, stderr=console, start_new_session=True)
        while process.poll() is None and not (ledger.exists() and started_records(ledger) > 1000):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def python_workers():
    """Process ids of Spark's forked Python workers below this process: daemons of a daemon."""
    daemons = set()
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            if b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes():
                daemons.add(pid)
    return sorted(daemons & set().union(*map(descendants, daemons)))

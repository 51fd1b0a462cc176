#!/usr/bin/env python3
# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the streaming proof costs a cluster, as ratios, in one run; judges nothing.

    python -m tests.benchmarks.watching [--records 1500000] [--rounds 3] [--seconds 30]

Three brokers are started by hand, and stopped again. In turn without the streaming proof and with it, which is
started with its defaults each time and left alone until it has settled:

* CPU of the brokers while nobody else uses them, in shares of one core, and that of the streaming proof itself;
* records a second of a kafka-producer-perf-test (idempotent, acks=all, three replicas) as fast as it goes.

Brokers, load and streaming proof share the cores of this machine. So the ratio of the rates has the proof's own
CPU in it, as where `kafka_admin_host` is a broker; with a host of its own what is left is the brokers' CPU.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.judge import JOB, three_brokers, tool_produce
from tests.support.outside import wait_until
from tests.support.processes import descendants

PROGRAM = JOB.parent / "watch.py"
SETTLED = 300  # records that have arrived: 50 s with the defaults


def cpu_seconds(pids) -> float:
    """CPU seconds of these processes so far."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            told = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            ticks += int(told[11]) + int(told[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Watched:
    """The streaming proof with its defaults, from when it has settled until the end of the block."""

    def __init__(self, servers: str, directory: Path):
        self._status, self._log = directory / "out" / "status.json", directory / "log"
        self._argv = [sys.executable, str(PROGRAM), f"--bootstrap-servers={servers}"]
        self._argv += [f"--state={directory}/state", f"--output={directory}/out"]
        self._process: subprocess.Popen | None = None

    def __enter__(self) -> Watched:
        before = self.arrived()
        with self._log.open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(self._argv, stdout=log, stderr=log)
        wait_until(lambda: self.arrived() >= before + SETTLED, 300, "it has settled")
        return self

    def __exit__(self, *_exc) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(120)

    def arrived(self) -> int:
        """How many records of the canary have arrived."""
        return self.status().get("counts", {}).get("arrived", 0)

    def status(self) -> dict:
        """The last one, {} before the first."""
        with contextlib.suppress(FileNotFoundError):
            return json.loads(self._status.read_text(encoding="utf-8"))
        return {}

    def pids(self) -> set:
        """Of all its processes."""
        assert self._process is not None
        return {self._process.pid, *descendants(self._process.pid)}


def share(pids, seconds: float) -> float:
    """Of one core, while nothing else happens."""
    before, begun = cpu_seconds(pids), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(pids) - before) / (time.monotonic() - begun)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_500_000)
    parser.add_argument("--record-size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--port-base", type=int, default=30400)
    options = parser.parse_args()

    from tests.support.bare_cluster import KAFKA_VERSION
    from tests.support.releases import unpack_release

    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkaops-bench-")))
        (work / "watch").mkdir()
        cluster = stack.enter_context(three_brokers(work / "cluster", options.port_base))
        release = unpack_release("kafka", KAFKA_VERSION, work / "release")
        measure(options, cluster, release, work)


def measure(options, cluster, release: Path, work: Path) -> None:
    """Both figures, without and with it in turn."""
    from confluent_kafka.admin import AdminClient, NewTopic

    servers = cluster.bootstrap_servers
    brokers = [each.process.pid for each in cluster.broker_instances.values()]
    admin = AdminClient({"bootstrap.servers": servers})  # what it has sent ends with it
    admin.create_topics([NewTopic("bench", 6, 3)])["bench"].result(30)

    def rate() -> float:
        return tool_produce(release, servers, "bench", options.records, options.record_size, 1)

    rate()  # unmeasured: brokers compile meanwhile
    rates: dict = {False: [], True: []}
    shares: dict = {False: [], True: []}
    own, lost = [], 0
    for _turn in range(options.rounds):
        shares[False].append(share(brokers, options.seconds))
        rates[False].append(rate())
        with Watched(servers, work / "watch") as watched:
            pids = watched.pids()
            before, begun = cpu_seconds(pids), time.monotonic()
            shares[True].append(share(brokers, options.seconds))
            own.append((cpu_seconds(pids) - before) / (time.monotonic() - begun))
            rates[True].append(rate())
            lost = watched.status()["counts"]["lost"]
    middle = statistics.median
    plain, with_it = middle(rates[False]), middle(rates[True])
    print(
        f"{options.records:,} records of {options.record_size} B, 6 partitions, {os.cpu_count()} cores, load"
        f" {os.getloadavg()[0]:.0f}; medians of {options.rounds} rounds (least to most)"
    )
    for name, kept in (("without", rates[False]), ("with the streaming proof", rates[True])):
        print(f"  {name}: {middle(kept):,.0f} records/s ({min(kept):,.0f} to {max(kept):,.0f})")
    print(f"  ratio with / without: {with_it / plain:.3f}, on cores that all of them share")
    idle, busy = middle(shares[False]), middle(shares[True])
    print(
        f"  brokers' CPU while nobody else uses them: {idle:.3f} cores without, {busy:.3f} with,"
        f" {(busy - idle) / os.cpu_count():.2%} of this machine more"
    )
    print(f"  the streaming proof's own CPU: {middle(own):.3f} cores; records lost: {lost}")


if __name__ == "__main__":
    main()

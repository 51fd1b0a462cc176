# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the validation's memory stays flat, and its cost per record constant, as runs grow.

    python -m tests.benchmarks.scale [--records 1000000,10000000,100000000]

Each size is a `job.py run` of its own against three brokers started by hand. Meanwhile the resident
memory of the job's processes, JVM and Python workers, is summed every half second. Printed are the
peak, and the greatest sum in each quarter of the run: memory that grows with the records read would
rise from one to the next. Disk: about 110 bytes a record of 100 bytes and replica, deleted at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from tests.benchmarks.judge import JOB, three_brokers
from tests.support.processes import descendants

PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6
EVERY_SECONDS = 0.5


def resident(root: int) -> tuple:
    """(MB of Java, MB of everything else) of a process and all below it; pages shared count in each."""
    java = other = 0.0
    for pid in {root} | descendants(root):
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            size = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MB
        except OSError:
            continue
        if name == "java":
            java += size
        else:
            other += size
    return java, other


def validate(servers: str, records: int, directory: Path, partitions: int) -> tuple:
    """Run the job; returns (verdict.json, [(MB of Java, MB of Python), ...])."""
    command = [sys.executable, str(JOB), "run", f"--bootstrap-servers={servers}"]
    command += [f"--records={records}", f"--partitions={partitions}", "--replication-factor=1"]
    command += [f"--ledger={directory}/ledger", f"--output={directory}", "--master=local[*]"]
    with open(directory / "console", "wb") as console:
        process = subprocess.Popen(command, stdout=console, stderr=console, cwd=directory)
        samples, over = [], threading.Event()

        def watch() -> None:
            while not over.wait(EVERY_SECONDS):
                samples.append(resident(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        code = process.wait()
        over.set()
        watcher.join()
    if code:
        sys.exit((directory / "console").read_text(errors="replace")[-3000:])
    return json.loads((directory / "verdict.json").read_text()), samples


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", default="1000000,10000000,100000000")
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--port-base", type=int, default=30200)
    options = parser.parse_args()

    print(f"{'records':>12} {'produce/s':>10} {'judge/s':>10} {'peak MB':>8} = Java + Python, "
          "greatest sum by quarters of the run")  # fmt: skip
    for records in map(int, options.records.split(",")):
        with tempfile.TemporaryDirectory(prefix="kafkaops-scale-") as work:
            directory = Path(work) / "run"
            directory.mkdir()
            with three_brokers(Path(work) / "cluster", options.port_base) as cluster:
                servers = cluster.bootstrap_servers
                verdict, samples = validate(servers, records, directory, options.partitions)
        sums = [sum(sample) for sample in samples]
        quarter = max(1, -(-len(sums) // 4))
        quarters = [max(sums[at : at + quarter]) for at in range(0, len(sums), quarter)]
        java, python = samples[sums.index(max(sums))]
        seconds = verdict["timings"]
        print(
            f"{records:12,} {records / seconds['produce']:10,.0f}"
            f" {records / seconds['read and judge']:10,.0f} {max(sums):8,.0f}"
            f" = {java:,.0f} + {python:,.0f}, " + " ".join(f"{each:,.0f}" for each in quarters),
            flush=True,
        )


if __name__ == "__main__":
    main()

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long `site.yml` takes, against the bare floor measured in the same run.

Floor: the same JVMs with the same flags, started by hand, until three brokers are registered: six, or with
`--kraft`, where the cluster is inventories/local-kraft, three (formatting their storage included).
First run: `site.yml` without validation, from a filled cache, on an empty home. Second run: the same
again, unchanged; then once more with `--check --diff`, and `status.yml`. Prints medians and ratios, and the
seconds that the processes of a run have worked, which can be compared on a machine that is not idle; passes
no judgement.

    python -m tests.benchmarks.site [--rounds 3] [--port-offset 9000] [--kraft]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.preflight import processor_seconds
from tests.support.bare_cluster import BareCluster
from tests.support.releases import ensure_archive

CHECKOUT = Path(__file__).resolve().parents[2]
PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"

NEVER = ("-e", "flow_validation=never")
# In this order, by a name: the playbook and its arguments.
RUNS = {
    "first": ("site.yml", *NEVER),
    "second": ("site.yml", *NEVER),
    "check": ("site.yml", *NEVER, "--check", "--diff"),
    "status": ("playbooks/status.yml",),
}


def run(playbook: str, inventory: str, home: Path, offset: int, *more: str) -> tuple:
    """Run a playbook; returns (seconds, of work, its output). A failure ends the benchmark with it."""
    environment = dict(os.environ, KAFKAOPS_HOME=str(home))
    started, before = time.monotonic(), processor_seconds()
    done = subprocess.run(
        [PLAYBOOK, "-i", f"inventories/{inventory}", playbook]
        + ["-e", f"local_port_offset={offset}", *more],
        cwd=CHECKOUT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - started
    if done.returncode:
        sys.exit(done.stdout)
    return seconds, processor_seconds() - before, done.stdout


def module_calls(output: str) -> int:
    """Count the results that hosts have printed: one a host and task."""
    return len(re.findall(r"^(?:ok|changed): ", output, re.MULTILINE))


def floor(directory: Path, port_base: int, **mode) -> float:
    """Seconds from nothing to three registered brokers, by hand."""
    started = time.monotonic()
    with BareCluster(directory=directory, port_base=port_base, **mode):
        seconds = time.monotonic() - started
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--port-offset", type=int, default=9000)
    parser.add_argument("--kraft", action="store_true")
    options = parser.parse_args()
    inventory, needed = "local", (("kafka", "3.9.2"), ("zookeeper", "3.9.5"))
    mode: dict = {}
    if options.kraft:
        inventory, needed = "local-kraft", (("kafka", "4.3.1"),)
        mode = {"kraft": True, "kafka_version": "4.3.1"}
    for product, version in needed:
        ensure_archive(product, version)
    figures: dict = {"floor": []}
    calls: dict = {}
    work: dict = {}
    with tempfile.TemporaryDirectory(prefix="kob-") as temporary:
        for number in range(options.rounds):
            directory = Path(temporary) / f"floor-{number}"
            directory.mkdir()
            figures["floor"].append(floor(directory, options.port_offset + 12000, **mode))
            home = Path(temporary) / f"home-{number}"
            for name, (playbook, *more) in RUNS.items():
                seconds, worked, output = run(playbook, inventory, home, options.port_offset, *more)
                figures.setdefault(name, []).append(seconds)
                work.setdefault(name, []).append(worked)
                calls[name] = module_calls(output)
                if name != "first" and re.search(r"changed=[1-9]", output):
                    sys.exit(f"{name}: something was changed:\n{output}")
            confirmed = ("-e", f"confirm={inventory}")
            run("playbooks/teardown.yml", inventory, home, options.port_offset, *confirmed)
            shutil.rmtree(home, ignore_errors=True)
    middle = {name: statistics.median(values) for name, values in figures.items()}
    for name, values in figures.items():
        print(
            f"{name:7} {middle[name]:6.1f} s (min {min(values):.1f}, max {max(values):.1f})"
            + (
                f", {statistics.median(work[name]):.1f} s of work, {calls[name]} results of hosts"
                if name in calls
                else ""
            )
        )
    ratio, above = middle["first"] / middle["floor"], middle["first"] - middle["floor"]
    print(f"first / floor  {ratio:.2f}, first - floor {above:.1f} s")
    print(f"second / floor {middle['second'] / middle['floor']:.2f}")


if __name__ == "__main__":
    main()

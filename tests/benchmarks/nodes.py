# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long `site.yml` takes on three fresh systemd nodes, reached by ssh, from a filled cache.

First run: without validation, on nodes that have just been made, of which one has no Java. Second run:
the same again, unchanged; then once more with `--check --diff`, and `status.yml`. Prints them, the ratio of
the first two, and what they are made of; passes no judgement.

    python -m tests.benchmarks.nodes [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import time

from tests.benchmarks.site import CHECKOUT, RUNS, module_calls
from tests.support.nodes import changed, play
from tests.support.software import obtain

NODES = str(CHECKOUT / "scripts" / "nodes.sh")
CANNOT_BE_HAD = 77


def molecule(action: str) -> None:
    """Make or remove the nodes; a failure ends the benchmark with the output."""
    done = subprocess.run(
        [os.path.join(os.path.dirname(sys.executable), "molecule"), action, "-s", "default"],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout)


def timed(playbook: str, *arguments: str) -> tuple:
    """Run a playbook on the nodes; returns (seconds, tasks, results a host, changes)."""
    started = time.monotonic()
    output = play(os.path.basename(playbook), *arguments, inventory="cluster")
    seconds = time.monotonic() - started
    tasks = len(re.findall(r"^TASK \[", output, re.MULTILINE))
    return seconds, tasks, module_calls(output) / 3, sum(changed(output).values())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for product, version in (("kafka", "3.9.2"), ("zookeeper", "3.9.5")):
        obtain(product, version)
    provided = subprocess.run([NODES, "up"], check=False).returncode
    if provided:
        sys.exit(0 if provided == CANNOT_BE_HAD else "scripts/nodes.sh up failed")
    figures: dict = {name: [] for name in RUNS}
    try:
        for _number in range(options.rounds):
            molecule("create")
            try:
                for name, arguments in RUNS.items():
                    figures[name].append(timed(*arguments))
            finally:
                molecule("destroy")
    finally:
        subprocess.run([NODES, "down"], check=False)
    changing = [
        name for name in RUNS if name != "first" and any(each[-1] for each in figures[name])
    ]
    if changing:
        sys.exit(f"Something was changed by: {', '.join(changing)}.")
    middle = {}
    for name, found in figures.items():
        seconds = [each[0] for each in found]
        middle[name] = statistics.median(seconds)
        _seconds, tasks, results, _changes = found[-1]
        print(
            f"{name:7} {middle[name]:6.1f} s (min {min(seconds):.1f}, max {max(seconds):.1f}),"
            f" {tasks} tasks, {results:.0f} results of modules a host"
        )
    print(f"second / first {middle['second'] / middle['first']:.2f}")


if __name__ == "__main__":
    main()

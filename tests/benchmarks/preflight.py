# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the preflight's time grows with the number of brokers.

    python -m tests.benchmarks.preflight [--brokers 10,30,60,100]

Each size is an inventory of that many brokers and three ZooKeeper servers on this machine, with the
variables of inventories/local and nothing installed, so that what is measured is the preflight and
Ansible. Printed are the seconds of `playbooks/preflight.yml`, those of all its processes' work, the
latter a broker, and the seconds until each task begins. A number a broker that grows from line to line
is work that grows with the square. On a machine that is not idle only the work can be compared.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def write_inventory(directory: Path, brokers: int) -> Path:
    """A local inventory of that many brokers and three servers."""
    inventory = directory / f"brokers-{brokers}"
    shutil.copytree(ROOT / "inventories" / "local" / "group_vars", inventory / "group_vars")
    groups = {
        "zookeeper": {"hosts": {f"zookeeper-{n}": {"zookeeper_myid": n} for n in (1, 2, 3)}},
        "kafka": {"hosts": {f"kafka-{n}": {"kafka_broker_id": n} for n in range(1, brokers + 1)}},
    }
    document = yaml.safe_dump({"all": {"children": groups}})
    (inventory / "hosts.yml").write_text(document, encoding="utf-8")
    return inventory


def processor_seconds() -> float:
    """What the processes that have ended since the start of this one have worked."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(inventory: Path, home: Path, offset: int) -> tuple[float, float, dict[str, float]]:
    """Seconds of the playbook, of its processes' work, and until each of its tasks begins."""
    environment = dict(
        os.environ,
        ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"),
        KAFKAOPS_HOME=str(home),
        PYTHONUNBUFFERED="1",
    )
    command = ["ansible-playbook", str(ROOT / "playbooks/preflight.yml"), "-i", str(inventory)]
    command += ["-e", f"local_port_offset={offset}", "-e", "kafka_heap=32m"]
    begin, before = time.monotonic(), processor_seconds()
    tasks, lines = {}, []
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            lines.append(line)
            task = re.match(r"TASK \[(?:\S+ : )?([^]]+)\]", line)
            if task:
                tasks[task[1]] = time.monotonic() - begin
    if process.returncode:
        sys.exit("".join(lines[-100:]))
    return time.monotonic() - begin, processor_seconds() - before, tasks


def main() -> None:
    """Measure each size, smallest first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--brokers", default="10,30,60,100", help="sizes, comma-separated")
    parser.add_argument("--offset", type=int, default=22300, help="shifts every port")
    options = parser.parse_args()
    print("brokers  seconds  of work  of work/broker  tasks begin after")
    with tempfile.TemporaryDirectory(prefix="kt-") as name:
        for brokers in sorted(int(each) for each in options.brokers.split(",")):
            inventory = write_inventory(Path(name), brokers)
            seconds, work, tasks = run(inventory, Path(name) / "home", options.offset)
            parts = ", ".join(f"{task}: {begins:.1f}" for task, begins in tasks.items())
            print(
                f"{brokers:7}  {seconds:7.1f}  {work:7.1f}  {work / brokers:14.2f}  {parts}",
                flush=True,
            )


if __name__ == "__main__":
    main()

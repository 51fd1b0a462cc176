# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the preflight's time grows with the number of brokers.

    python -m tests.benchmarks.preflight [--brokers 10,30,60,100]

Each size is an inventory of that many brokers and three ZooKeeper servers on this machine, with the
variables of inventories/local and nothing installed, so that what is measured is the preflight and
Ansible. Printed are the seconds of `playbooks/preflight.yml`, those of each task, and the seconds a
broker: a number that grows from line to line is work that grows with the square.
"""

from __future__ import annotations

import argparse
import os
import re
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


def run(inventory: Path, home: Path, offset: int) -> tuple[float, dict[str, float]]:
    """Seconds of the playbook, and of each of its tasks."""
    environment = dict(
        os.environ,
        ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"),
        ANSIBLE_CALLBACKS_ENABLED="ansible.posix.profile_tasks",
        KAFKAOPS_HOME=str(home),
    )
    command = ["ansible-playbook", str(ROOT / "playbooks/preflight.yml"), "-i", str(inventory)]
    command += ["-e", f"local_port_offset={offset}"]
    begin = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    if done.returncode:
        sys.exit(done.stdout[-4000:] + done.stderr[-2000:])
    tasks = re.findall(r"^(?:\S+ : )?(.+?) -+ ([\d.]+)s$", done.stdout, re.MULTILINE)
    return seconds, {name: float(spent) for name, spent in tasks}


def main() -> None:
    """Measure each size, smallest first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--brokers", default="10,30,60,100", help="sizes, comma-separated")
    parser.add_argument("--offset", type=int, default=22300, help="shifts every port")
    options = parser.parse_args()
    print("brokers  seconds  seconds/broker  tasks")
    with tempfile.TemporaryDirectory(prefix="kt-") as name:
        for brokers in sorted(int(each) for each in options.brokers.split(",")):
            inventory = write_inventory(Path(name), brokers)
            seconds, tasks = run(inventory, Path(name) / "home", options.offset)
            parts = ", ".join(f"{task}: {spent:.1f}" for task, spent in tasks.items())
            print(f"{brokers:7}  {seconds:7.1f}  {seconds / brokers:14.2f}  {parts}", flush=True)


if __name__ == "__main__":
    main()

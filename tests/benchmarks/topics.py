# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `kafka_topics` costs, against the bare client doing the same on the same cluster in the same run.

Floor: a script of confluent-kafka that knows what to do and does it, in batches of 500. It looks at nothing
before and at nothing afterwards, but for `unchanged`, where looking is the work. Ours: a playbook with one
task, which returns when every broker knows; `known`: the floor, and the time from its end until then, as a
bystander sees it (to look takes half a second, too): all topics with their leaders, or none, and the setting
that was changed. Nothing begins before the brokers have ended what the step
before has left them: logs are deleted a minute after their topic. Ansible's start: the same playbook, with the same
variables, and a ping instead. Each step is the whole process. Printed are medians of seconds with their ratio
to the floor, and to `known`, plus Ansible's start; seconds that the
processes themselves have worked, which hardly depend on what else the machine does; and the greatest
resident memory of a single process. With --wide also many topics of one partition and one replica, planned
without a change by the module alone. Passes no judgement.

    python -m tests.benchmarks.topics [--topics 1000] [--rounds 3] [--wide 10000] [--kraft] [--port-base 30200]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.bare_cluster import BareCluster
from tests.support.outside import told_by, wait_until
from tests.support.processes import seconds_worked

CHECKOUT = Path(__file__).resolve().parents[2]
PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"
STEPS = ("create", "unchanged", "alter", "delete")
SECONDS = {"create": 7 * 86400, "unchanged": 7 * 86400, "alter": 14 * 86400}
BATCH = 500


@dataclass(frozen=True)
class Cost:
    """One process and all below it: seconds, seconds of work, MB of the largest of them."""

    seconds: float
    worked: float
    megabytes: float
    output: str


def measured(command: list, **environment: str) -> Cost:
    """Run a command; a failure ends the benchmark with its output."""
    with tempfile.TemporaryFile("w+") as printed:
        begun = time.perf_counter()
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            command, cwd=CHECKOUT, env={**os.environ, **environment}, stdout=printed, stderr=printed
        )
        _pid, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        printed.seek(0)
        output = printed.read()
    if status:
        sys.exit(output[-4000:])
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output)


# ---------------------------------------------------------------- the floor


def floor(servers: str, step: str, names: list) -> None:
    """Do one step with the bare client."""
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        NewTopic,
    )

    # A minute by default, whatever a request says.
    admin = AdminClient({"bootstrap.servers": servers, "socket.timeout.ms": 300_000})
    if step == "unchanged":
        assert set(names) <= set(admin.list_topics(timeout=60).topics)
        kind = ConfigResource.Type.TOPIC
        asked = admin.describe_configs([ConfigResource(kind, name) for name in names])
        for future in asked.values():
            assert future.result()["retention.ms"].value == str(SECONDS[step] * 1000)
        return
    for start in range(0, len(names), BATCH):
        some = names[start : start + BATCH]
        if step == "create":
            settings = {"retention.ms": str(SECONDS[step] * 1000)}
            new = [NewTopic(name, 3, 3, config=settings) for name in some]
            futures = admin.create_topics(new, operation_timeout=300, request_timeout=300)
        elif step == "delete":
            futures = admin.delete_topics(some, operation_timeout=300, request_timeout=300)
        else:
            entry = ConfigEntry(
                "retention.ms",
                str(SECONDS[step] * 1000),
                incremental_operation=AlterConfigOpType.SET,
            )
            futures = admin.incremental_alter_configs(
                [
                    ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
                    for name in some
                ],
                request_timeout=300,
            )
        for future in futures.values():
            future.result()


def floor_cost(servers: str, step: str, prefix: str, topics: int) -> Cost:
    """The floor in a process of its own."""
    return measured(
        [sys.executable, "-m", "tests.benchmarks.topics", "--floor", step, "--servers", servers]
        + ["--prefix", prefix, "--topics", str(topics)]
    )


# ---------------------------------------------------------------- ours


def items(prefix: str, topics: int, step: str, partitions: int, replicas: int) -> list:
    """The topics as a task has them."""
    names = [f"{prefix}-{number:05}" for number in range(topics)]
    if step == "delete":
        return [{"name": name, "state": "absent"} for name in names]
    shape = {"partitions": partitions, "replication_factor": replicas}
    if replicas == 1:
        shape["config"] = {"min.insync.replicas": 1}
    return [{"name": name, **shape, "retention": f"{SECONDS[step]}s"} for name in names]


def playbook_cost(directory: Path, servers: str, declared: list, ping: bool = False) -> Cost:
    """A playbook with one task over these topics."""
    variables = directory / "topics.json"
    variables.write_text(json.dumps({"declared": declared}))
    options = {"bootstrap_servers": servers, "topics": "{{ declared }}", "allow": ["delete"]}
    task = {"ansible.builtin.ping": {}} if ping else {"kafkaops.cluster.kafka_topics": options}
    play = {"hosts": "localhost", "gather_facts": False, "vars_files": [str(variables)]}
    book = directory / "book.yml"
    book.write_text(json.dumps([{**play, "tasks": [task]}]))
    interpreter = f"ansible_python_interpreter={sys.executable}"
    more = ["-i", "localhost,", "-c", "local", "-e", interpreter]
    return measured([str(PLAYBOOK), str(book), *more])


MODULE = """
import json, resource, sys, time
from tests.support import collection_finder; collection_finder.install()
from tests.support.run_module import run_module
with open(sys.argv[1]) as stream:
    arguments = json.load(stream)
begun = time.perf_counter()
result = run_module("kafka_topics", arguments)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
seconds, told = time.perf_counter() - begun, result.values
print(json.dumps([seconds, peak, result.failed, told.get("msg"), told["changed"]]))
"""


def module_cost(directory: Path, servers: str, declared: list) -> tuple:
    """(seconds, MB, changed) of the module alone, in a process of its own."""
    arguments = directory / "arguments.json"
    options = {"bootstrap_servers": servers, "topics": declared, "allow": ["delete"]}
    arguments.write_text(json.dumps({**options, "operation_timeout": 3000}))
    cost = measured([sys.executable, "-c", MODULE, str(arguments)], PYTHONPATH=str(CHECKOUT))
    seconds, megabytes, failed, message, changed = json.loads(cost.output)
    if failed:
        sys.exit(str(message))
    return seconds, megabytes, changed


# ---------------------------------------------------------------- the tables


def settle(cluster: BareCluster, prefix: str, count: int, step: str = "") -> float:
    """Wait until each broker has so many topics with this prefix, as the step leaves them; returns the seconds.

    Waits then, without counting it, until the brokers rest.
    """
    begun = time.monotonic()
    for server in cluster.bootstrap_servers.split(","):
        wait_until(lambda server=server: whole(server, prefix, count), 120, f"{server} knows them")
    if step == "alter":
        names = [f"{prefix}-{number:05}" for number in range(count)]
        value = str(SECONDS[step] * 1000)
        wait_until(lambda: in_force(cluster, names, value), 120, "the setting is in force")
    seconds = time.monotonic() - begun
    if not count:
        wait_until(lambda: not logs_left(cluster, prefix), 300, f"logs of {prefix} are deleted")
    deadline = time.monotonic() + 60  # on a machine with much else to do they never seem to
    while not resting(cluster) and time.monotonic() < deadline:
        pass
    return seconds


def logs_left(cluster: BareCluster, prefix: str) -> bool:
    """Whether a broker still has a log of a topic with this prefix; one being deleted has a longer name."""
    numbers = range(1, cluster.brokers + 1)
    return any(any(cluster.log_directory(i).glob(f"{prefix}-*")) for i in numbers)


def resting(cluster: BareCluster) -> bool:
    """Whether all brokers together work less than half of a second in one: with many replicas it is never none."""
    processes = [instance.process.pid for instance in cluster.broker_instances.values()]
    before = sum(map(seconds_worked, processes))
    time.sleep(1)
    return sum(map(seconds_worked, processes)) - before < 0.5


def whole(server: str, prefix: str, count: int) -> bool:
    """Whether this broker itself has so many topics with this prefix, each partition with a leader."""
    told = told_by(server, 60)
    topics = told.topics.items() if told else ()
    mine = [topic for name, topic in topics if name.startswith(f"{prefix}-")]
    led = sum(all(part.leader >= 0 for part in topic.partitions.values()) for topic in mine)
    return told is not None and led == len(mine) == count


def in_force(cluster: BareCluster, names: list, value: str) -> bool:
    """Whether each broker itself tells that all of these topics have this retention, in milliseconds."""
    from kafka.admin import ConfigResourceType, KafkaAdminClient
    from kafka.protocol.admin import DescribeConfigsRequest

    asked = [(ConfigResourceType.TOPIC, name, ["retention.ms"]) for name in names]
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers.split(","))

    async def told() -> list:
        brokers = range(1, cluster.brokers + 1)
        questions = [DescribeConfigsRequest(resources=asked, min_version=1) for _broker in brokers]
        sent = [admin._manager.send(question, each) for question, each in zip(questions, brokers)]
        return [await answer for answer in sent]

    try:
        answers = admin._manager.run(told)
    finally:
        admin.close()
    topics = [topic for answer in answers for topic in answer.results]
    return all(setting.value == value for topic in topics for setting in topic.configs)


def compare(directory: Path, cluster: BareCluster, topics: int, rounds: int) -> None:
    """Print the table of the four steps."""
    servers = cluster.bootstrap_servers
    found: dict = {}
    for step in STEPS:  # JVMs that have just started are slow
        floor_cost(servers, step, "warm", 200)
        settle(cluster, "warm", 0 if step == "delete" else 200)
    for number in range(rounds):
        # Each first in every second round: the machine may be busy. Not side by side: topics of the one
        # would be a load to the other.
        for who in ("floor", "ours")[:: 1 if number % 2 else -1]:
            # Deleted topics are marked so for a while: another name in each round.
            prefix = f"{who}-{number + 1}"
            for step in STEPS:
                if who == "floor":
                    cost = floor_cost(servers, step, prefix, topics)
                else:
                    declared = items(prefix, topics, step, 3, 3)
                    start = playbook_cost(directory, servers, declared, ping=True)
                    found.setdefault(("start", step), []).append(start)
                    cost = playbook_cost(directory, servers, declared)
                    expected = "changed=0" if step == "unchanged" else "changed=1"
                    assert expected in cost.output, cost.output
                found.setdefault((who, step), []).append(cost)
                more = settle(cluster, prefix, 0 if step == "delete" else topics, step)
                if who == "floor":
                    known = cost.seconds + (0 if step == "unchanged" else more)
                    found.setdefault(("known", step), []).append(replace(cost, seconds=known))
                print(f"  round {number + 1}: {who:5} {step:9} {cost.seconds:6.1f} s", flush=True)

    def middle(who: str, step: str, figure: str) -> float:
        return statistics.median(getattr(cost, figure) for cost in found[(who, step)])

    print(f"{topics} topics, 3 partitions, 3 replicas: medians of {rounds}")
    heads = ("floor s", "known s", "start s", "ours s", "ratio", "to known")
    heads += ("floor work", "start work", "ours work")
    print(f"{'':>10}" + "".join(f"{head:>12}" for head in (*heads, "floor MB", "ours MB")))
    for step in STEPS:
        base, known, start, ours = (
            middle(who, step, "seconds") for who in ("floor", "known", "start", "ours")
        )
        work = [middle(who, step, "worked") for who in ("floor", "start", "ours")]
        memory = [middle(who, step, "megabytes") for who in ("floor", "ours")]
        print(
            f"{step:>10}{base:12.1f}{known:12.1f}{start:12.1f}{ours:12.1f}"
            f"{ours / (base + start):12.2f}{ours / (known + start):12.2f}"
            + "".join(f"{value:12.1f}" for value in (*work, *memory))
        )


def wide(directory: Path, servers: str, topics: int) -> None:
    """Print what planning many topics without a change costs the module."""
    module_cost(directory, servers, items("wide", topics, "create", 1, 1))
    best = min(
        module_cost(directory, servers, items("wide", topics, "unchanged", 1, 1))
        for _round in "abc"
    )
    seconds, megabytes, changed = best
    assert changed is False
    print(f"{topics} topics without a change: {seconds:.1f} s of module time, {megabytes:.0f} MB")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--wide", type=int, default=0)
    parser.add_argument("--kraft", action="store_true")
    parser.add_argument("--port-base", type=int, default=30200)
    parser.add_argument("--floor", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--servers", help=argparse.SUPPRESS)
    parser.add_argument("--prefix", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.floor:
        names = [f"{options.prefix}-{number:05}" for number in range(options.topics)]
        floor(options.servers, options.floor, names)
        return
    with tempfile.TemporaryDirectory(prefix="kafkaops-topics-") as work:
        directory = Path(work)
        with BareCluster(
            directory=directory / "cluster", port_base=options.port_base, kraft=options.kraft
        ) as cluster:
            if options.rounds:
                compare(directory, cluster, options.topics, options.rounds)
            if options.wide:
                wide(directory, cluster.bootstrap_servers, options.wide)


if __name__ == "__main__":
    main()

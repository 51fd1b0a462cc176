# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the gate's decision costs, and how it grows; judges nothing.

    python tests/benchmarks/gate.py [--bootstrap-servers HOST:PORT,...] [--roll 1000,10000]

Pure: made-up snapshots of three replicas a partition, all brokers judged in one pass. Ratios are to
the pass over the smallest snapshot, beside the ratio of the partitions. With --bootstrap-servers also
one look at a real cluster, as often as asked, beside a bare list_topics of librdkafka. With --roll a
cluster of its own: ten brokers of 256 MB are rolled by hand, once for each number of partitions, and
before each stop the gate is asked as its module asks it, with a new client. 10 brokers need 6 GB.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from tests.support import collection_finder  # noqa: E402

collection_finder.install()

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (  # noqa: E402
    KafkaClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (  # noqa: E402
    Connection,
    parse_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (  # noqa: E402
    Broker,
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling import (  # noqa: E402
    gate,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.gatekeeper import (  # noqa: E402
    Gatekeeper,
    Question,
)

# brokers, topics, partitions of each
SIZES = ((3, 100, 10), (3, 1000, 10), (10, 1000, 10), (100, 10000, 20))


def snapshot(brokers: int, topics: int, partitions: int, lagging: int = 50) -> Snapshot:
    """Three replicas a partition, spread evenly; every `lagging`th one has lost a follower."""
    made, number = {}, 0
    for index in range(topics):
        parts = []
        for part in range(partitions):
            replicas = tuple((number + step) % brokers + 1 for step in range(3))
            isr = replicas if number % lagging else replicas[:2]
            parts.append(Partition(part, replicas[0], replicas, isr))
            number += 1
        made[f"topic-{index}"] = Topic(f"topic-{index}", tuple(parts))
    live = tuple(Broker(each, "host", 9092) for each in range(1, brokers + 1))
    return Snapshot("id", 1, live, made)


def best(call, rounds: int = 3, clock=time.perf_counter) -> float:
    """Seconds of the fastest of some calls, by the clock."""
    found = []
    for _round in range(rounds):
        begun = clock()
        call()
        found.append(clock() - begun)
    return min(found)


def pure() -> None:
    """Print the table of made-up snapshots."""
    print(f"{'brokers':>8}{'partitions':>12}{'seconds':>10}{'ratio':>8}{'of partitions':>15}")
    first = None
    for brokers, topics, partitions in SIZES:
        state = snapshot(brokers, topics, partitions)
        minimums = dict.fromkeys(state.topics, 2)
        everybody = range(1, brokers + 1)
        # Work, not time: on a busy machine a short call is not interrupted, and a long one is.
        seconds = best(
            lambda: gate.judge_each(state, everybody, minimums, everybody),  # noqa: B023
            clock=time.process_time,
        )
        first = first or (seconds, topics * partitions)
        count = topics * partitions
        print(
            f"{brokers:>8}{count:>12}{seconds:>10.3f}{seconds / first[0]:>8.1f}"
            f"{count / first[1]:>15.1f}"
        )


def real(servers: str) -> None:
    """Print what looks at a cluster cost: the first, one more, one with all settings."""
    from confluent_kafka.admin import AdminClient

    bare = AdminClient({"bootstrap.servers": servers})
    metadata = bare.list_topics(timeout=30)
    floor = best(lambda: bare.list_topics(timeout=30))
    ids = tuple(sorted(metadata.brokers))
    count = sum(len(topic.partitions) for topic in metadata.topics.values())
    client = KafkaClient(Connection(parse_addresses([servers])))
    client.connect()
    keeper = Gatekeeper(Question(ids, ids))
    begun = time.perf_counter()
    keeper.look(client)
    initial = time.perf_counter() - begun
    again = best(lambda: keeper.look(client))
    anew = best(lambda: keeper.look(client, anew=True))
    client.close()
    print(
        f"{count} partitions of {len(metadata.topics)} topics on {len(ids)} brokers; list_topics {floor:.3f} s"
    )
    for name, seconds in (("first look", initial), ("each look", again), ("with settings", anew)):
        print(f"{name:>14}: {seconds:.3f} s, {seconds / floor:.1f} times list_topics")


def create_until(servers: str, partitions: int) -> int:
    """Make topics of 50 partitions with three replicas until there are so many; returns how many are."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    found = admin.list_topics(timeout=60).topics
    count = sum(len(topic.partitions) for topic in found.values())
    for number in range(len(found), len(found) + (partitions - count) // 50):
        topic = NewTopic(f"gate-{number}", 50, 3)
        admin.create_topics([topic], request_timeout=120)[topic.topic].result(120)
    return count + (partitions - count) // 50 * 50


def roll(sizes: list) -> None:
    """Roll ten brokers by hand, asking the gate before each stop, at each number of partitions."""
    from tests.support.bare_cluster import BareCluster

    print("rolls of ten brokers, seconds: of all ten, and of each the median and the longest")
    heads = ("partitions", "roll", "stop", "start", "next may", "one look", "longest", "open gate")
    with tempfile.TemporaryDirectory(prefix="kafkaops-gate-") as work:
        cluster = BareCluster(
            Path(work), 25500, brokers=10, zookeepers=1, broker_heap="256m", start_timeout=300
        )
        with cluster:
            servers = cluster.bootstrap_servers
            for size in sizes:
                begun = time.perf_counter()
                count = create_until(servers, size)
                made = time.perf_counter() - begun
                seconds, work = zip(*(ask(servers, broker) for broker in range(1, 11)))
                print(
                    f"{count} partitions, made in {made:.0f} s: asked once for each broker,"
                    f" {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s; of work"
                    f" {statistics.median(work):.2f} s",
                    flush=True,
                )
                spent: dict = {name: [] for name in heads[2:]}
                begun = time.perf_counter()
                for broker in range(1, 11):
                    turn(cluster, broker, spent)
                whole = time.perf_counter() - begun
                middle = [statistics.median(spent[name]) for name in heads[2:6]]
                figures = (whole, *middle, max(spent["one look"]), max(spent["open gate"]))
                print("".join(f"{head:>11}" for head in heads))
                print(f"{count:>11}" + "".join(f"{each:>11.2f}" for each in figures), flush=True)


def ask(servers: str, broker: int) -> tuple:
    """Seconds of one question by a client of its own, as the module asks before the first stop.

    By the clock, and of work in this process, which can be compared on a machine that is not idle.
    """
    connection = Connection(parse_addresses([servers]))
    question = Question((broker,), tuple(range(1, 11)))
    begun, worked = time.perf_counter(), time.process_time()
    Gatekeeper(question).look_once(lambda: KafkaClient(connection))
    return time.perf_counter() - begun, time.process_time() - worked


def turn(cluster, broker: int, spent: dict) -> None:
    """One broker's turn by hand; adds seconds to each list of `spent`."""
    marks = [time.perf_counter()]

    def mark(name: str) -> None:
        marks.append(time.perf_counter())
        spent[name].append(marks[-1] - marks[-2])

    everybody = tuple(range(1, 11))
    connection = Connection(parse_addresses([cluster.bootstrap_servers]))
    question = Question((broker,), everybody, wait_seconds=600)
    ask(cluster.bootstrap_servers, broker)
    mark("one look")
    Gatekeeper(question).wait(lambda: KafkaClient(connection))
    mark("open gate")
    cluster.broker_instances[broker].stop(300)
    mark("stop")
    cluster.broker_instances[broker].start()
    cluster.wait_registered()
    mark("start")
    # Any other broker may stop once all that this one follows is in sync.
    other = Question((broker % 10 + 1,), everybody, wait_seconds=600)
    Gatekeeper(other).wait(lambda: KafkaClient(connection))
    mark("next may")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers")
    parser.add_argument("--roll", metavar="PARTITIONS,...")
    arguments = parser.parse_args()
    pure()
    if arguments.bootstrap_servers:
        real(arguments.bootstrap_servers)
    if arguments.roll:
        roll([int(each) for each in arguments.roll.split(",")])


if __name__ == "__main__":
    main()

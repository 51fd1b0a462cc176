# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the gate's decision costs, and how it grows; judges nothing.

    python tests/benchmarks/gate.py [--bootstrap-servers HOST:PORT,...]

Pure: made-up snapshots of three replicas a partition, all brokers judged in one pass. Ratios are to
the pass over the smallest snapshot, beside the ratio of the partitions. With --bootstrap-servers also
one look at a real cluster, as often as asked, beside a bare list_topics of librdkafka.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from tests.support import collection_finder  # noqa: E402

collection_finder.install()

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin import gate  # noqa: E402
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (  # noqa: E402
    Broker,
    Partition,
    Snapshot,
    Topic,
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


def best(call, rounds: int = 3) -> float:
    """Seconds of the fastest of some calls."""
    found = []
    for _round in range(rounds):
        begun = time.perf_counter()
        call()
        found.append(time.perf_counter() - begun)
    return min(found)


def pure() -> None:
    """Print the table of made-up snapshots."""
    print(f"{'brokers':>8}{'partitions':>12}{'seconds':>10}{'ratio':>8}{'of partitions':>15}")
    first = None
    for brokers, topics, partitions in SIZES:
        state = snapshot(brokers, topics, partitions)
        minimums = dict.fromkeys(state.topics, 2)
        everybody = range(1, brokers + 1)
        seconds = best(lambda: gate.judge_each(state, everybody, minimums, everybody))  # noqa: B023
        first = first or (seconds, topics * partitions)
        count = topics * partitions
        print(
            f"{brokers:>8}{count:>12}{seconds:>10.3f}{seconds / first[0]:>8.1f}"
            f"{count / first[1]:>15.1f}"
        )


def real(servers: str) -> None:
    """Print what looks at a cluster cost: the first, one more, one with all settings."""
    from confluent_kafka.admin import AdminClient

    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
        KafkaClient,
    )
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
        Connection,
        parse_addresses,
    )
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.gatekeeper import (
        Gatekeeper,
        Question,
    )

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


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers")
    arguments = parser.parse_args()
    pure()
    if arguments.bootstrap_servers:
        real(arguments.bootstrap_servers)


if __name__ == "__main__":
    main()

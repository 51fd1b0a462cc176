# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The canary's own topic, and what the state's directory says of it."""

from __future__ import annotations

import os
import time
import uuid
from contextlib import suppress
from typing import Collection, List, Optional, Sequence

from flow.messages.failure import CannotRun
from flow.messages.output import note, read_json, write_json
from flow.prepare.cluster import CLEANUP_POLICY, MIN_ISR, TIMESTAMP_TYPE, Cluster, spread
from flow.record.timing import APPENDED

PREFIX = "kafkaops-watch"  # no other topic is written to, or deleted
_RETENTION_MS = 24 * 3600 * 1000
# From so long a pause on, records that were not judged may be gone by age.
LONGEST_PAUSE_SECONDS = _RETENTION_MS / 1000 / 2
_PLAN = "plan.json"


def refuse_foreign(topic: str) -> None:
    """CannotRun for a name that is not one of the streaming proof."""
    if topic != PREFIX and not topic.startswith(f"{PREFIX}-"):
        raise CannotRun(
            f"topic {topic} is not one of the streaming proof; give --topic={PREFIX}, or"
            f" {PREFIX}-NAME"
        )


def own(
    cluster: Cluster,
    topic: str,
    replication: Optional[int],
    min_isr: Optional[int],
    state: str,
) -> int:
    """Create the topic where it is missing, one partition led by each broker, and add those of brokers that came
    later; how many it has.

    CannotRun where the state's directory knows it: who deleted it shall be seen, and its records are missed.
    """
    refuse_foreign(topic)
    if not cluster.has_topic(topic):
        told = read_json(os.path.join(state, _PLAN))
        if told and (told["cluster_id"], told["topic"]) == (cluster.describe().cluster_id, topic):
            raise CannotRun(
                f"topic {topic} was deleted since {state} was made, so its records are gone; see who did"
                " that, then remove that directory and start again"
            )
        brokers = list(cluster.describe().brokers)
        replicas = min(replication or 3, len(brokers))
        config = {
            TIMESTAMP_TYPE: APPENDED,
            CLEANUP_POLICY: "delete",
            MIN_ISR: str(min(min_isr or max(1, replicas - 1), replicas)),
            "retention.ms": str(_RETENTION_MS),
            "segment.ms": str(_RETENTION_MS // 24),
            "unclean.leader.election.enable": "false",
        }
        cluster.create_topic(topic, spread(brokers, len(brokers), replicas), config)
    known = _grow(cluster, topic)
    found = cluster.positions(topic, wait=30, known=range(known))
    if not found:
        raise CannotRun(f"topic {topic} was created, but no broker knows it")
    return len(found)


def lacking(brokers: Collection[int], replicas: Sequence[Sequence[int]]) -> List[List[int]]:
    """Replicas of the partitions that a topic with these lacks: one that each broker leads, if all are in order."""
    ring = sorted(brokers)
    leading = {each[0] for each in replicas if each}
    many = min(max(map(len, replicas), default=0), len(ring))
    wanted = spread(ring, len(ring), many) if many else []
    return [each for each in wanted if each[0] not in leading]


def _grow(cluster: Cluster, topic: str) -> int:
    """Add a partition for each broker that leads none; how many partitions there are. What cannot be added is said."""
    layout = cluster.layout(topic)
    replicas = [layout[number]["replicas"] for number in sorted(layout)]
    more = lacking(cluster.describe().brokers, replicas)
    if not more:
        return len(replicas)
    try:
        cluster.add_partitions(topic, len(replicas) + len(more), more)
    except CannotRun as error:
        who = ", ".join(str(each[0]) for each in more)
        note(
            f"brokers that lead no partition of {topic}, so that they are not watched: {who}: {error}"
        )
        return len(replicas)
    return len(replicas) + len(more)


def grown(cluster: Cluster, told: dict) -> dict:
    """A plan, with the partitions that its topic has once brokers that came later lead one, too.

    Only between two generations. Without an answer it is as it was.
    """
    with suppress(CannotRun):
        known = range(_grow(cluster, told["topic"]))
        found = cluster.positions(told["topic"], wait=30, known=known)
        return {**told, "partitions": len(found) or told["partitions"]}
    return told


def plan(state: str, cluster: Cluster, topic: str, partitions: int, record_size: int) -> dict:
    """What the state's directory says of this stream, made if it is new there: run_id, topic,
    cluster_id, partitions, record_size, generation, first_offsets and since.

    Where partitions or record_size are others than before it has `renew`: the generation cannot go on.
    """
    told = read_json(os.path.join(state, _PLAN))
    cluster_id, topic_id = cluster.describe().cluster_id, cluster.topic_id(topic)
    if told and (told["cluster_id"], told["topic"]) != (cluster_id, topic):
        raise CannotRun(
            f"{state} is of topic {told['topic']} in cluster {told['cluster_id']}, not of {topic} in"
            f" {cluster_id}; give another --state"
        )
    if told and told["topic_id"] != topic_id:
        raise CannotRun(
            f"topic {topic} was deleted and created again since {state} was made, so its records are"
            " gone; see who did that, then remove that directory and start again"
        )
    if not told:
        told = {
            "run_id": uuid.uuid4().hex,
            "cluster_id": cluster_id,
            "topic": topic,
            "topic_id": topic_id,
            "generation": 0,
            "since": time.time(),
        }
    changed = (told.get("partitions"), told.get("record_size")) != (partitions, record_size)
    told = {**told, "partitions": partitions, "record_size": record_size}
    if not told["generation"]:
        return renewed(state, cluster, told)
    return {**told, "renew": True} if changed else told


def renewed(state: str, cluster: Cluster, told: dict) -> dict:
    """The plan of the next generation, which begins at the topic's end; written once the cluster has said where.

    CannotRun where it does not say that of each partition: brokers hear of a new one one after another, and what is
    written to one that is not read would count as lost.
    """
    known = range(told["partitions"])
    found = cluster.positions(told["topic"], wait=30, known=known)
    absent = sorted(set(known) - set(found))
    if absent:
        raise CannotRun(
            f"no broker told of partitions {absent} of {told['topic']}; wait until the brokers answer again, then"
            " start again"
        )
    ends = {str(number): place.end for number, place in found.items()}
    told = {key: value for key, value in told.items() if key != "renew"}
    told = {**told, "generation": told["generation"] + 1, "first_offsets": ends}
    write_json(os.path.join(state, _PLAN), told)
    return told

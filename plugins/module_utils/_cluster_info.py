# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describing a cluster, and waiting until it is as it should be.

Private to this collection. Clock and sleep are handed in. Nothing here changes anything.
"""

from __future__ import annotations

import time
from dataclasses import replace

from ansible_collections.kafkaops.cluster.plugins.module_utils import _health
from ansible_collections.kafkaops.cluster.plugins.module_utils._client_zookeeper import (
    ZookeeperClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._health import Goal
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan import AdminError

POLL_SECONDS = 0.25
# Between two lines of progress in the log.
TELL_SECONDS = 5.0


def goal_from(params):
    """The Goal of a module's `wait` option, None if there is none."""
    if not params:
        return None
    return Goal(
        brokers=tuple(params["brokers"] or ()),
        full_isr=params["full_isr"],
        controller=params["controller"],
        quiet_seconds=params["quiet_seconds"],
        timeout=params["timeout"],
    )


def wait_for(make_client, goal, clock=time.monotonic, sleep=time.sleep, log=lambda text: None):
    """Wait until the goal is met; returns {waited_seconds, polls}, AdminError at the deadline.

    `make_client()` gives a new, unconnected client: a broker that is starting may refuse for a
    while, and that is what we wait for. Met means: in fresh metadata at every poll during
    `quiet_seconds`, and at the end in the view of every live broker, because brokers learn of
    changes one after another and the next module may ask any of them.
    """
    started = clock()
    deadline = started + goal.timeout
    client, met_since, polls, told_at, reasons = None, None, 0, started, []
    while True:
        polls += 1
        try:
            if client is None:
                fresh = make_client()
                fresh.connect()
                client = fresh
            snapshot = client.fetch_metadata()
            reasons = _health.unmet(snapshot, goal)
        except AdminError as error:
            if client is None and error.details.get("reachable", True):
                raise  # wrong credentials do not become right by waiting
            client, reasons = None, [error.message.rstrip(".")]
        now = clock()
        if reasons:
            met_since = None
        else:
            met_since = now if met_since is None else met_since
            if now - met_since >= goal.quiet_seconds:
                reasons = _dissent(client, snapshot, goal)
                if not reasons:
                    return {"waited_seconds": round(now - started, 2), "polls": polls}
        if now >= deadline:
            if not reasons:
                reasons = [
                    f"the state has been good for {now - met_since:.1f} s only, "
                    f"{goal.quiet_seconds:g} s were asked for"
                ]
            raise AdminError(
                f"waited {goal.timeout:g} s: {'; '.join(reasons)}.", reachable=client is not None
            )
        if now - told_at >= TELL_SECONDS:
            told_at = now
            log(f"waiting for {now - started:.0f} s: {'; '.join(reasons) or 'quiet so far'}")
        sleep(POLL_SECONDS)


def _dissent(client, snapshot, goal):
    """What single brokers see otherwise."""
    reasons = []
    for broker, view in sorted(client.fetch_every_view(snapshot).items()):
        if view is None:
            reasons.append(f"broker {broker} is registered but does not answer")
        else:
            reasons += [f"broker {broker} still sees: {text}" for text in _health.unmet(view, goal)]
    return reasons


def describe_cluster(client):
    """What the module returns about a reachable cluster; four requests, whatever its size."""
    snapshot = client.fetch_metadata()
    racks = client.fetch_racks()
    configs = client.fetch_configs(sorted(snapshot.topics))
    topics = {
        name: replace(topic, config=configs.get(name)) for name, topic in snapshot.topics.items()
    }
    snapshot = replace(snapshot, topics=topics)
    alive = {broker.id for broker in snapshot.brokers}
    holders = _health.replica_holders(snapshot)
    shares = _health.loads(snapshot)

    def listed(pairs):
        return [_health.partition_dict(name, part) for name, part in pairs]

    return {
        "reachable": True,
        "cluster_id": snapshot.cluster_id,
        "controller": snapshot.controller,
        "brokers": [
            {
                "id": broker.id,
                "host": broker.host,
                "port": broker.port,
                "rack": racks.get(broker.id),
                **dict(zip(("leaders", "replicas", "out_of_sync"), shares[broker.id])),
            }
            for broker in snapshot.brokers
        ],
        "topic_count": len(topics),
        "partition_count": sum(len(topic.partitions) for topic in topics.values()),
        "replica_holders": holders,
        "missing_brokers": [broker for broker in holders if broker not in alive],
        "under_replicated": listed(_health.under_replicated(snapshot)),
        "under_min_isr": listed(_health.under_min_isr(snapshot)),
        "offline": listed(_health.offline(snapshot)),
    }


def nothing_there():
    """The same keys, for a cluster that could not be reached."""
    return {
        "reachable": False,
        "cluster_id": None,
        "controller": None,
        "brokers": [],
        "topic_count": 0,
        "partition_count": 0,
        "replica_holders": [],
        "missing_brokers": [],
        "under_replicated": [],
        "under_min_isr": [],
        "offline": [],
    }


def gather(params, make_client, clock=time.monotonic, sleep=time.sleep, log=lambda text: None):
    """Everything that kafka_cluster_info returns, for its parameters."""
    results = {}
    goal = goal_from(params["wait"])
    if goal:
        results["wait"] = wait_for(make_client, goal, clock, sleep, log)
    lenient = params["missing_ok"]
    try:
        client = make_client()
        client.connect()
        results.update(describe_cluster(client))
    except AdminError as error:
        if not lenient or error.details.get("reachable", True):
            raise
        results.update(nothing_there(), unreachable_reason=error.message)
    if params["zookeeper"]:
        try:
            with ZookeeperClient(params["zookeeper"], params["zookeeper_timeout"]) as ensemble:
                found = ensemble.describe(with_replicas=not results["reachable"])
            # One place to look for ids that are in use, whoever could be asked.
            results["replica_holders"] = found.pop("replica_holders", results["replica_holders"])
            results["zookeeper"] = {"reachable": True, **found}
        except AdminError as error:
            if not lenient or error.details.get("reachable", True):
                raise
            results["zookeeper"] = {
                "reachable": False,
                "unreachable_reason": error.message,
                "exists": False,
                "cluster_id": None,
                "controller": None,
                "brokers": [],
            }
    return results


# The module's own options; their documentation is in the module.
OPTIONS = dict(
    missing_ok=dict(type="bool", default=False),
    zookeeper=dict(type="str"),
    zookeeper_timeout=dict(type="float", default=10.0),
    wait=dict(
        type="dict",
        options=dict(
            brokers=dict(type="list", elements="int"),
            full_isr=dict(type="bool", default=False),
            controller=dict(type="bool", default=True),
            quiet_seconds=dict(type="float", default=0.0),
            timeout=dict(type="float", default=120.0),
        ),
    ),
)

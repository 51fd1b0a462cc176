# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Ask the clusters that run, in this process or by whoever sends the module, and keep what they say.

Runs on the controller only. What is asked, and what an answer means, is `running_cluster`.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight import taking_over
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import first_line
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.on_controller import (
    WrongArguments,
    answered,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.running_cluster import (
    healthy_nodes,
    question,
    remembers_the_dead,
    snapshot_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    LOCALHOST,
    World,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# What is asked returns of such arguments, and whoever asks.
Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
NOT_REACHED = (
    "let this host reach the ports of kafka_admin_listener and of ZooKeeper, or name one in kafka_admin_host that "
    "does; nothing was checked against the running cluster: ids in use, topics, what is in effect"
)


def ask_clusters(
    members: Sequence[Member],
    hostvars: Mapping[str, Any],
    asks: Mapping[str, Ask],
    topics: bool,
) -> Dict[str, Dict[str, Any]]:
    """cluster -> {cluster, snapshot, controller, in_sync, problem, silent}, of those of which something runs, or may.

    `asks`: cluster -> what returns as the module kafka_cluster_info does, where that cluster is administered; a cluster
    without is not asked. `topics`: whether the declared topics are asked for, too. `silent`: whether nobody answered.
    """
    asked = {}
    for cluster in World(tuple(members)).clusters:
        brokers = [each for each in cluster.brokers if each.alive("kafka") and each.listeners]
        servers = [each for each in cluster.servers if each.alive("zookeeper")]
        runs = bool(brokers or servers)
        strange = any(taking_over.is_strange(each) for each in cluster.brokers)
        if strange and not runs:
            # what others have installed may run
            servers = list(cluster.servers)
        if not cluster.brokers or not (runs or strange) or cluster.name not in asks:
            continue
        answer = asks[cluster.name](question(cluster, brokers, servers, hostvars, topics=topics))
        entry: Dict[str, Any] = {
            "cluster": cluster,
            "snapshot": None,
            "controller": None,
            "in_sync": answer.get("in_sync"),  # None where nobody knows
            "problem": "",
            "silent": False,
        }
        if answer.get("failed"):
            entry["problem"] = first_line(answer.get("msg") or "no answer")
        else:
            entry["snapshot"], entry["controller"] = snapshot_of(
                answer, remembers_the_dead(cluster)
            )
            if entry["in_sync"] is not None:
                entry["in_sync"] = healthy_nodes(cluster, answer)
            # of what others have installed nobody knows that it runs
            entry["silent"] = runs and entry["snapshot"] is None
            if entry["silent"]:
                entry["problem"] = first_line(_why_silent(answer))
        asked[cluster.name] = entry
    return asked


def _why_silent(answer: Mapping[str, Any]) -> str:
    ensemble = answer.get("zookeeper") or {}
    reasons = (each.get("unreachable_reason") for each in (ensemble, answer))
    return next((str(each) for each in reasons if each), "no answer")


def asked_here(asking: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer of the module kafka_cluster_info, which would be this machine, user and Python."""
    # Only the process that asks needs librdkafka; to load kafka-python, too, would take longer than to ask.
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin import argspec
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
        KafkaClient,
    )
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.info import (
        OPTIONS,
        gather,
    )

    def ask(parameters: Dict[str, Any]) -> Mapping[str, Any]:
        try:
            connection = argspec.connection_from(parameters)
            return gather(parameters, lambda: KafkaClient(connection))
        except AdminError as error:
            return error.refused()

    spec = argspec.kafka_argument_spec(**OPTIONS)
    try:
        return answered(asking, spec, ask, **argspec.KAFKA_RULES)
    except WrongArguments as error:
        return {"failed": True, "msg": str(error)}
    except Exception as error:  # pylint: disable=broad-except
        # As the module's own end would be: the cluster cannot be asked.
        return {"failed": True, "msg": f"{type(error).__name__}: {error}"}


def not_asked(asked: Mapping[str, Any]) -> List[Problem]:
    """The problems of clusters that run and could not be asked."""
    problems = []
    for name, each in sorted(asked.items()):
        brokers = each["cluster"].brokers
        setting, value, remedy = "kafka_client_security", "...", ""
        if each["silent"]:
            setting, value = "kafka_admin_host", brokers[0].text("kafka_admin_host") or LOCALHOST[0]
            remedy = NOT_REACHED
        if each["problem"]:
            reason = f"the running cluster {name} could not be asked: {each['problem']}"
            hosts = [member.name for member in brokers]
            problems.append(found("cluster.unreadable", hosts, setting, value, reason, remedy))
    return problems

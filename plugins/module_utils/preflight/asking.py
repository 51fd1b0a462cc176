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
    snapshot_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import World
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem


def ask_clusters(
    members: Sequence[Member],
    hostvars: Mapping[str, Any],
    ask: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    topics: bool,
) -> Dict[str, Dict[str, Any]]:
    """cluster -> {cluster, snapshot, controller, in_sync, problem}, of the clusters of which something runs, or may.

    `ask` returns what the module kafka_cluster_info returns of such arguments; `topics`: whether the declared
    topics are asked for, too.
    """
    asked = {}
    for cluster in World(tuple(members)).clusters:
        brokers = [each for each in cluster.brokers if each.alive("kafka") and each.listeners]
        servers = [each for each in cluster.servers if each.alive("zookeeper")]
        strange = any(taking_over.is_strange(each) for each in cluster.brokers)
        if strange and not (brokers or servers):
            # what others have installed may run
            servers = list(cluster.servers)
        if not cluster.brokers or not (brokers or servers or strange):
            continue
        answer = ask(question(cluster, brokers, servers, hostvars, topics=topics))
        entry: Dict[str, Any] = {
            "cluster": cluster,
            "snapshot": None,
            "controller": None,
            "in_sync": answer.get("in_sync"),  # None where nobody knows
            "problem": "",
        }
        if answer.get("failed"):
            entry["problem"] = first_line(answer.get("msg") or "no answer")
        else:
            entry["snapshot"], entry["controller"] = snapshot_of(answer)
            if entry["in_sync"] is not None:
                entry["in_sync"] = healthy_nodes(cluster, answer)
        asked[cluster.name] = entry
    return asked


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
    return [
        found(
            "cluster.unreadable",
            [member.name for member in each["cluster"].brokers],
            "kafka_client_security",
            "...",
            f"the running cluster {name} could not be asked: {each['problem']}",
        )
        for name, each in sorted(asked.items())
        if each["problem"]
    ]

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the preflight asks of a cluster that runs, and what it makes of the answer. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import topic_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.plan import (
    parse_policies,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    parse_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    bootstrap_servers,
    zookeeper_connect,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.addresses import bare
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.identity import identities
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.in_force import (
    addresses_in_effect,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import plain
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    Cluster,
    Snapshot,
    in_zookeeper,
)

ASK_SECONDS = 5
# As Kafka registers one in ZooKeeper, with or without the listener.
ENDPOINT = re.compile(r"^(?:[\w-]+://)?(?P<host>\[[^\]]*\]|[^:]*):(?P<port>\d+)$")


def question(
    cluster: Cluster,
    brokers: Sequence[Member],
    servers: Sequence[Member],
    hostvars: Mapping[str, Any],
    topics: bool = False,
) -> Dict[str, Any]:
    """Arguments of kafka_cluster_info. ZooKeeper is asked where no broker runs, or those that run may name a dead one.

    `topics`: whether the declared topics are asked for, too, and those that a retention policy matches.
    """
    some = brokers or cluster.brokers
    listeners = [
        [
            {"name": each.name, "port": each.port, "advertised": each.advertised}
            for each in member.listeners
        ]
        for member in some
    ]
    admin = some[0].text("kafka_admin_listener")
    # Where they are now, and where they will be: a port may be about to change, or half changed.
    places = [*addresses_in_effect(some), *bootstrap_servers(listeners, admin).split(",")]
    # Brokers that have their metadata in ZooKeeper know of no quorum, also while they migrate.
    quorum = cluster.kraft and not any(map(in_zookeeper, brokers))
    asked: Dict[str, Any] = {
        "bootstrap_servers": list(dict.fromkeys(places)),
        "timeout": ASK_SECONDS,
        "missing_ok": True,
        "overrides": True,
        "every_view": True,
        "quorum": quorum,
        "features": quorum,
    }
    if topics:
        declared, _refusals = parse_topics(cluster.brokers[0].items("kafka_topics"))
        asked["topics"] = [each.name for each in declared]
        policies, _refusals = parse_policies(cluster.brokers[0].items("kafka_retention_policies"))
        if policies:
            asked["topic_patterns"] = [each.match for each in policies if not each.leave_alone]
    security = hostvars.get(some[0].name, {}).get("kafka_client_security") or {}
    if isinstance(security, Mapping):
        asked.update(plain(security))
    if servers and (not brokers or remembers_the_dead(cluster)):
        ensemble = [
            {
                "id": index,
                "address": each.text("zookeeper_address"),
                "client_port": each.client_port,
            }
            for index, each in enumerate(servers)
        ]
        asked["timeout"] = ASK_SECONDS if brokers else 1
        asked["zookeeper"] = zookeeper_connect(ensemble, some[0].text("kafka_zookeeper_chroot"))
        asked["zookeeper_timeout"] = ASK_SECONDS
    return asked


def healthy_nodes(cluster: Cluster, answer: Mapping[str, Any]) -> List[int]:
    """Ids of the nodes that are not sick: brokers in sync, and controllers that are none and keep up.

    Where the quorum has no leader nobody knows who keeps up, and all count.
    """
    quorum = answer.get("quorum") or {}
    behind = {each["id"] for each in quorum.get("voters") or () if not each["keeps_up"]}
    if quorum.get("leader") is None:
        behind = set()
    ids, _servers = identities(cluster)
    apart = {ids[each.name] for each in cluster.controllers_apart} - behind
    return sorted(apart.union(answer["in_sync"]))


def remembers_the_dead(cluster: Cluster) -> bool:
    """Whether brokers of a cluster may name one in their metadata that is gone.

    So they do in ZooKeeper mode once the controllers tell them who is there. Seen with Kafka 3.9.2: one that had
    stopped was named for as long as anybody looked.
    """
    return bool(cluster.under_way) and any(map(in_zookeeper, cluster.brokers))


def snapshot_of(
    answer: Mapping[str, Any], remembers: bool = False
) -> Tuple[Optional[Snapshot], Optional[int]]:
    """(Snapshot or None, controller) of what kafka_cluster_info returned.

    `remembers`: see remembers_the_dead. Then a broker is there if ZooKeeper has it, or if it is in sync, as one is that
    has left ZooKeeper; where nobody tells, all are that are named. Of a quorum the controller is its leader: metadata
    name any broker. None where nobody knows.
    """
    ensemble = answer.get("zookeeper") or {}
    # An ensemble that answers and knows of no cluster is an answer, too: nobody holds replicas.
    if not (answer.get("reachable") or ensemble.get("exists") or ensemble.get("reachable")):
        return None, None
    brokers: Dict[int, Tuple[Tuple[str, int], ...]] = {}
    named = answer.get("brokers") or []
    if remembers and ensemble.get("reachable") and answer.get("in_sync") is not None:
        there = {int(each["id"]) for each in ensemble.get("brokers") or []}
        named = [each for each in named if int(each["id"]) in there.union(answer["in_sync"])]
    for each in named:
        brokers[int(each["id"])] = ((str(each["host"]), int(each["port"])),)
    for each in ensemble.get("brokers") or []:
        # As Kafka registers them: PLAINTEXT://host:port, an IPv6 address in brackets.
        parsed = [ENDPOINT.match(str(point)) for point in each.get("endpoints") or []]
        points = tuple((bare(match["host"]), int(match["port"])) for match in parsed if match)
        brokers.setdefault(int(each["id"]), points)
    return (
        Snapshot(
            cluster_id=answer.get("cluster_id") or ensemble.get("cluster_id"),
            brokers=brokers,
            replicas=frozenset(int(each) for each in answer.get("replica_holders") or []),
            on_default_min_isr={
                int(each["replicas"]): (int(each["topics"]), tuple(each["examples"]))
                for each in answer.get("on_default_min_isr") or []
            },
            overrides=tuple(
                (each["broker"], str(each["name"]), each["value"])
                for each in answer.get("overrides") or []
            ),
            voters=(
                frozenset(int(each["id"]) for each in answer["quorum"]["voters"])
                if (answer.get("quorum") or {}).get("leader") is not None
                else None
            ),
            voter_directories={
                int(each["id"]): str(each["directory"])
                for each in (answer.get("quorum") or {}).get("voters") or ()
                if each.get("directory")
            },
            features=(answer.get("features") or {}).get("levels"),
            topics={each["name"]: topic_of(each) for each in answer.get("topics") or []},
            no_cluster_there=bool(ensemble.get("reachable")) and not ensemble.get("cluster_id"),
        ),
        (answer.get("quorum") or answer).get("leader" if answer.get("quorum") else "controller"),
    )

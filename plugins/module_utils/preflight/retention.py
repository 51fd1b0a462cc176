# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of retention policies, by the functions that the module `kafka_retention` uses. Pure.

Sizes, offsets and disks are not asked for here: the module does, before it changes anything.
"""

from __future__ import annotations

from typing import Any, FrozenSet, Iterator, List, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Snapshot as TopicSnapshot,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.plan import (
    CONSENTS,
    RetentionPolicy,
    contradictions,
    match_policies,
    parse_policies,
    wishes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    reason_and_remedy,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    parse_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.plan import (
    TopicPolicy,
    plan_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import (
    found,
    found_in_list,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    DEPLOY,
    World,
    effective_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    parse_share,
)

POLICIES = "kafka_retention_policies"
SHARES = ("kafka_retention_disk_budget", "kafka_retention_maximum_cut")


def check_retention(world: World) -> Iterator[Problem]:
    """Every policy as it stands, against the declared topics, and against those that exist.

    The last one only where the run changes topics: what needs consent is told before a broker is restarted
    for the rest.
    """
    for cluster in world.clusters:
        # One broker's list stands for the cluster's; that they are equal is another check.
        for member in cluster.brokers[:1]:
            hosts = [each.name for each in cluster.brokers]
            yield from _shares(member, hosts)
            policies, refusals = parse_policies(member.items(POLICIES))
            for refusal in refusals:
                yield found_in_list(refusal, hosts, POLICIES, member.items(POLICIES))
            internal = frozenset(
                str(each) for each in member.items("kafka_retention_allow_internal")
            )
            running = TopicSnapshot(
                topics=cluster.snapshot.topics if cluster.snapshot else {},
                broker_defaults=effective_properties(member, len(cluster.staying_brokers)),
            )
            topics = member.items("kafka_topics")
            for refusal in contradictions(policies, parse_topics(topics)[0], running, internal):
                yield found_in_list(refusal, hosts, "kafka_topics", topics)
            if world.reconciles and world.purpose == DEPLOY:
                yield from _without_consent(member, hosts, policies, running, internal)


def _shares(member: Member, hosts: List[str]) -> Iterator[Problem]:
    for name in SHARES:
        value: Any = member.get(name)
        if value in (None, ""):
            continue
        try:
            parse_share(value)
        except ValueError as error:
            told = reason_and_remedy(error, "write it like 80%")
            yield found("settings.bad_value", hosts, name, value, *told)
    if member.get("kafka_retention_cut_in_steps") and not member.get(SHARES[1]):
        name, reason = "kafka_retention_cut_in_steps", "steps of which size?"
        yield found(
            "settings.bad_value", hosts, name, True, reason, f"set {SHARES[1]}, such as 30%"
        )


def _without_consent(
    member: Member,
    hosts: List[str],
    policies: Sequence[RetentionPolicy],
    running: TopicSnapshot,
    internal: FrozenSet[str],
) -> Iterator[Problem]:
    """What policies would take from topics that exist, where nobody consents."""
    allow = frozenset(str(each) for each in member.items("kafka_topics_allow")) & set(CONSENTS)
    desired = wishes(match_policies(policies, running.topics, internal), running)
    policy = TopicPolicy(allow=allow, allow_internal=internal)
    for each in plan_topics(desired, running, policy).refusals:
        where = f"kafka_retention_{each.setting}"
        reason = f"{', '.join(each.subjects)}: {each.reason}"
        yield found(each.check, hosts, where, each.value, reason, each.remedy)

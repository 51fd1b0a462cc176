# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of nodes that others have installed, and that a run takes over, one host at a time. Pure.

`kafka_taken_over` and `zookeeper_taken_over` name the configuration and the version of what others have
installed. Until a start of ours was answered on the host, these stand for what is in force: so every check of what
the inventory would change holds of the first start, too.
"""

from __future__ import annotations

from typing import Iterator, List

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    VERSION,
    Member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    KEEP,
    MIGRATION,
    ROLLBACK,
    UPGRADE,
    WRITING,
    Cluster,
    World,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import WARNING, Problem


def variable(product: str) -> str:
    """The variable that names what others have installed."""
    return f"{product}_taken_over"


def is_former(member: Member, product: str = "kafka") -> bool:
    """Whether what is in force on the host is what others have installed, as the inventory says and the host tells."""
    named = bool(member.mapping(variable(product)).get("config"))
    return (
        named
        and is_strange(member, product)
        and member.product_facts(product).get("current") is not None
    )


def is_strange(member: Member, product: str = "kafka") -> bool:
    """Whether the directories of the inventory hold data, and no start of ours was ever answered on the host."""
    facts = member.product_facts(product)
    return bool(facts) and not facts.get("ours") and holds_data(member, product)


def holds_data(member: Member, product: str) -> bool:
    """Whether the directories of the inventory hold a broker's or a server's data."""
    if product == "zookeeper":
        return bool((member.product_facts(product).get("data") or {}).get("has_data"))
    return any((each.get("meta") or {}).get("cluster.id") for each in member.log_directories)


def check_taking_over(world: World) -> Iterator[Problem]:
    """What others have installed is named, found, and taken over by a deployment before anything else is done to it."""
    for cluster in world.clusters:
        for product, members in (("zookeeper", cluster.servers), ("kafka", cluster.nodes)):
            for member in members:
                yield from _named(member, product)
            strange = [each for each in members if is_strange(each, product)]
            for member in strange:
                if member.mapping(variable(product)).get("config"):
                    yield from _found(cluster, member, product)
                elif world.purpose in WRITING and not member.product_facts(product).get("current"):
                    yield from _unnamed(cluster, member, product)
            yield from _first(
                world, [each for each in strange if is_former(each, product)], product
            )


def _named(member: Member, product: str) -> Iterator[Problem]:
    named = member.mapping(variable(product))
    version = named.get("version")
    if named and not (named.get("config") and version):
        reason = "the configuration and the version of what runs there are needed, both"
        remedy = "write {config: its file on the host, version: 3.9.2}, or leave it out"
        yield found("settings.bad_value", member.name, variable(product), named, reason, remedy)
    elif named and not VERSION.match(str(version)):
        yield found(
            "settings.bad_value",
            member.name,
            f"{variable(product)}.version",
            version,
            "not a version",
            "write the version that runs there, such as 3.9.2",
        )


def _found(cluster: Cluster, member: Member, product: str) -> Iterator[Problem]:
    if member.product_facts(product).get("current") is not None:
        return
    path = str(member.mapping(variable(product))["config"])
    # A host of ours whose disk of the system was replaced looks the same.
    before = _begun(cluster)
    yield found(
        "takeover.no_config",
        member.name,
        f"{variable(product)}.config",
        path,
        "no file that can be read",
        (
            f"set {variable(product)}: {{}} for this host if it was taken over before"
            if before
            else ""
        ),
        level=WARNING if before else "",
    )


def _begun(cluster: Cluster) -> bool:
    """Whether a node of the cluster was started from here."""
    return any(each.product_facts("kafka").get("ours") for each in cluster.nodes)


def _unnamed(cluster: Cluster, member: Member, product: str) -> Iterator[Problem]:
    # Directories may have outlived a teardown or a host of ours: then nobody else answers.
    sure = product == "kafka" and cluster.answers and not _begun(cluster)
    yield found(
        "takeover.unnamed",
        member.name,
        variable(product),
        "{}",
        "its directories hold data, and nothing tells with which configuration: nobody can judge what this run changes",
        level="" if sure else WARNING,
    )


def _first(world: World, members: List[Member], product: str) -> Iterator[Problem]:
    # A migration has an id of its own for it.
    changes = world.purpose in (KEEP, UPGRADE, ROLLBACK) and not world.migrates
    if members and changes and MIGRATION not in world.fit_for:
        yield found(
            "takeover.first",
            [each.name for each in members],
            variable(product),
            members[0].mapping(variable(product)),
            "what runs here was installed by others",
        )

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of the controllers of a KRaft cluster and of their votes.

Above all what Kafka itself does not notice, or tells by a process that lives on without serving. Pure.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, Iterator, Mapping, Optional, Set

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quorum import other_directory
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    canonical_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    CONTROLLER_LISTENER,
    DECIDED_BY_CONTROLLERS,
    STATIC_VOTERS,
    TOKEN_SECRETS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.protocol import line
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import HIDDEN
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight import firewall
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.addresses import (
    is_open_to_all,
    is_wildcard,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.formats import (
    as_voters,
    metadata_moved,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.identity import (
    broker_claims,
    identities,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.ids import without_id
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.versions_and_keys import (
    broker_table_for,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    START,
    WRITING,
    Cluster,
    Versions,
    World,
    effective_properties,
    in_zookeeper,
    quorum_of,
    roles_of,
    variable_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    ERROR,
    WARNING,
    Problem,
)

CONTROLLERS_MAX = 7
# The first Kafka that makes a static quorum a dynamic one.
DYNAMIC_SINCE = (4, 1)
# With it a controller asks for a vote whenever it has none.
AUTO_JOIN = "controller.quorum.auto.join.enable"
UNSET = "(not set)"
WITHOUT_ACLS = "allow.everyone.if.no.acl.found"


def check_quorum(world: World) -> Iterator[Problem]:
    """The controllers of each cluster, as the inventory has them and as they vote."""
    yield from _unknown_leavers(world)
    for cluster in world.clusters:
        if not cluster.kraft:
            yield from _no_controllers(cluster)
            continue
        yield from _size(cluster)
        yield from _controller_listener(cluster)
        yield from _controllers_without_login(cluster)
        yield from _left_out(cluster)
        yield from _exchanged(cluster)
        yield from _votes_again(cluster)
        yield from _quorum_in_force(cluster)
        # A replacement stages and starts a node, too.
        if world.purpose in WRITING or world.replaced is not None:
            yield from _protocol_in_force(cluster)
        yield from _static(cluster)
        yield from _voters_that_answer(cluster, world.replaced)
        yield from _other_directories(cluster, world.replaced)
        yield from _settings_of_controllers(cluster, world.versions)
        yield from _open_without_acls(cluster)
    yield from _too_few_forks(world)


def _too_few_forks(world: World) -> Iterator[Problem]:
    """Nodes that are brokers, too, are ready once there is a quorum: those that start first wait for the next ones.

    The last one that is missing of each quorum has to get its turn while the others wait.
    """
    waiting, needed = [], 1
    starts = world.purpose in (*WRITING, START) and not world.migrates
    for cluster in world.clusters if starts else ():
        down = [each for each in cluster.voters if each.in_play and not each.alive("kafka")]
        combined = [each.name for each in down if each.is_broker]
        # Controllers alone are ready without a quorum.
        ready = sum(each.alive("kafka") for each in cluster.voters) + len(down) - len(combined)
        missing = len(cluster.voters) // 2 + 1 - ready
        if cluster.kraft and 1 < missing <= len(combined):
            waiting += combined
            needed += missing - 1
    if waiting and 0 < world.forks < needed:
        yield found(
            "quorum.forks",
            waiting,
            "forks",
            str(world.forks),
            "so many hosts are started at a time, and a node that is broker and controller waits for the quorum of"
            f" those that start with it: {needed} at a time are enough",
            f"run it with -f {needed}, or with more: forks in ansible.cfg, in AWX those of the job template",
        )


def _group(cluster: Cluster) -> str:
    return cluster.nodes[0].text("kafka_controllers_group") or "controllers"


def _size(cluster: Cluster) -> Iterator[Problem]:
    brokers = [each.name for each in cluster.brokers]
    elsewhere = cluster.controllers_elsewhere
    if elsewhere:
        yield found(
            "quorum.separate",
            sorted(elsewhere),
            "kafka_controllers_group",
            _group(cluster),
            f"the host is not a node of cluster {cluster.name}: kafka_metadata is not kraft there",
        )
        return
    size, hosts = len(cluster.voters), [each.name for each in cluster.voters]
    if size == 0:
        reason = (
            f"the group has no host of cluster {cluster.name}, and in KRaft mode controllers vote"
        )
        remedy = f"put one, three or five hosts into the group {_group(cluster)}"
    elif size > CONTROLLERS_MAX:
        reason, remedy = f"{size} voters: every change waits for a majority of them", "use five"
    elif size % 2 == 0:
        reason = (
            f"{size} voters: an even number tolerates no more failures than {size - 1} and needs one"
            " vote more"
        )
        remedy = f"use {size - 1} or {size + 1}"
    else:
        if size == 1 and any(each.production for each in cluster.nodes):
            reason = "one voter: when it stops, nothing can change in the cluster"
            yield found("quorum.single", hosts, "kafka_controllers_group", _group(cluster), reason)
        return
    yield found(
        "quorum.size", hosts or brokers, "kafka_controllers_group", _group(cluster), reason, remedy
    )


def _controller_listener(cluster: Cluster) -> Iterator[Problem]:
    for member in cluster.brokers:
        for index, each in enumerate(member.listeners):
            if each.name.upper() == CONTROLLER_LISTENER:
                yield found(
                    "listeners.duplicate",
                    member.name,
                    f"kafka_listeners[{index}].name",
                    each.name,
                    "the controllers' listener has this name",
                    "give the listener another name",
                )
    for member in cluster.controllers:
        bind = member.text("kafka_controller_bind")
        unasked = cluster.controller_protocol == "PLAINTEXT"
        bound = is_open_to_all(bind) and not firewall.is_wanted(member)
        if member.production and bound and unasked:
            where = "all addresses" if is_wildcard(bind) else "a public address"
            reason = (
                f"the controllers listen on {where} without a login, and whoever reaches them may"
                " change everything"
            )
            yield found(
                "security.controller_open", member.name, "kafka_controller_bind", bind, reason
            )


def _controllers_without_login(cluster: Cluster) -> Iterator[Problem]:
    hosts = [each.name for each in cluster.controllers if each.production]
    if hosts and cluster.controller_protocol == "PLAINTEXT":
        yield found(
            "security.controller_plaintext",
            hosts,
            "kafka_controller_port",
            cluster.controllers[0].get("kafka_controller_port"),
            "the controllers' port is PLAINTEXT and asks for no name: whoever reaches it may take the"
            " leadership from every broker (fence it), and unregister it",
        )


def _quorum_in_force(cluster: Cluster) -> Iterator[Problem]:
    """Voters stand in the metadata since the first format: another group does not change them.

    Those of a static quorum stand in every node's configuration, which no roll may change.
    """
    yield from _controllers_that_brokers_met(cluster)
    ids, _servers = identities(cluster)
    places = {
        f"{ids[each.name]}@{_place(each)}" if named else _place(each)
        for each in cluster.controllers
        for named in (True, False)
    }
    static = cluster.static_quorum
    wanted = sorted(
        (f"{ids[each.name]}@" if static else "") + _place(each) for each in cluster.voters
    )
    key = STATIC_VOTERS if static else "controller.quorum.bootstrap.servers"
    for member in cluster.nodes:
        current = member.product_facts("kafka").get("current") or {}
        roles = current.get("process.roles")
        if not roles:
            continue
        if cluster.becomes_dynamic and current.get(STATIC_VOTERS):
            known = sorted(current[STATIC_VOTERS].split(","))
        else:
            known = sorted(current.get(key, "").split(","))
        role = ",".join(roles_of(member))
        # Others may come and go, and not move behind anybody's back.
        changes = cluster.voters_change or cluster.becomes_dynamic
        if changes and roles == role and _has_left(cluster, member, ids[member.name]):
            continue
        same = known == wanted
        if changes:
            same = set(known) <= places or _only_leavers_besides(cluster, set(known), ids)
        if not same or roles != role:
            yield found(
                "quorum.changed",
                member.name,
                "kafka_controllers_group",
                _group(cluster),
                f"the node is {roles} and knows the controllers {', '.join(known)}; the inventory makes"
                f" it {role} with {', '.join(wanted) or 'none'}",
                _back_as_it_was(set(known) - places if roles == role else set()) if changes else "",
            )


def _controllers_that_brokers_met(cluster: Cluster) -> Iterator[Problem]:
    """Brokers that still have their metadata in ZooKeeper, and know other controllers than those of the inventory.

    These live where nobody looks, and have the metadata: whoever gave ZooKeeper back to the brokers, or began anew with
    others, would do so behind their backs.
    """
    ids = {each.host: each.settled for each in broker_claims(cluster)}
    # Of one whose disk is empty or silent nobody knows the id, unless the inventory has it.
    unknown = {_place(each) for each in cluster.voters if ids[each.name] is None}
    wanted = sorted(
        (f"{ids[each.name]}@" if _place(each) not in unknown else "") + _place(each)
        for each in cluster.voters
    )
    for member in cluster.brokers:
        known = (member.product_facts("kafka").get("current") or {}).get(STATIC_VOTERS, "")
        if not known or not in_zookeeper(member):
            continue
        met = [each.strip() for each in known.split(",")]
        seen = [
            each.partition("@")[2] if each.partition("@")[2] in unknown else each for each in met
        ]
        if sorted(seen) != wanted:
            yield found(
                "quorum.changed",
                member.name,
                "kafka_controllers_group",
                _group(cluster),
                f"the broker is on its way to KRaft and knows the controllers {', '.join(sorted(met))}; the inventory"
                f" has {', '.join(wanted) or 'none'}, and those that it knows may be at work with the metadata",
                "put the controllers of the broker's configuration back into the inventory, with their addresses,"
                " ports and ids, until playbooks/migrate_back.yml or playbooks/migrate_to_kraft.yml has ended; where"
                " the host of one is gone for good, give an empty one its name and address",
            )


def _only_leavers_besides(cluster: Cluster, known: Set[str], ids: Mapping[str, int]) -> bool:
    """Whether what a node knows beside those that vote has no vote any more: who lost it may be out of the inventory.

    So it is after a run that has taken votes and was killed before all nodes had learned it.
    """
    told = cluster.snapshot.voters if cluster.snapshot else None
    voting = [each for each in cluster.controllers if ids[each.name] in (told or ())]
    all_there = told is not None and len(voting) == len(told)
    return all_there and bool(told) and {_place(each) for each in voting} <= known


def _back_as_it_was(strange: Collection[str]) -> str:
    """The remedy of a playbook that changes the voters, where it is not the way itself."""
    if not strange:
        return (
            "put the node back into the groups that it was in: a broker does not become a controller, nor a controller"
            " a broker. A new host may be either, or both"
        )
    return (
        f"put the host of {', '.join(sorted(strange))} back into the inventory, with its kafka_address and"
        " kafka_controller_port; if it is to leave, run playbooks/scale_controllers.yml -e controllers_leave=HOST"
    )


def _has_left(cluster: Cluster, member: Member, number: int) -> bool:
    """Whether a controller is known to vote no more and not to run: what it knew of the others is staged anew."""
    now = cluster.snapshot.voters if cluster.snapshot else None
    gone = now is not None and number not in now and not member.alive("kafka")
    return gone and not member.is_broker


def _protocol_in_force(cluster: Cluster) -> Iterator[Problem]:
    """The controllers have one listener, on one port: a roll to another protocol shuts out one node after the other."""
    if not all(each.inter_broker_listener for each in cluster.brokers):
        return  # refused as listeners.inter_broker
    wanted, listener = cluster.controller_protocol, CONTROLLER_LISTENER
    had = {each.name: _spoken(each) for each in cluster.nodes}
    others = [each for each in cluster.nodes if had[each.name] not in ("", wanted)]
    # Who speaks the former one and is down starts with the new one, as those that run have it.
    rolled = any(each.alive("kafka") for each in others)
    for member in others:
        yield found(
            "quorum.protocol_changed",
            member.name,
            "kafka_inter_broker_listener" if member.is_broker else "kafka_listeners",
            wanted,
            f"the listener {listener} follows the brokers' own and would speak {wanted}, and here it speaks"
            f" {had[member.name]}: nodes before and after their restart could not reach each other",
            level=ERROR if rolled else WARNING,
        )


def _spoken(member: Member) -> str:
    """The protocol of the controllers' listener in force here, "" where there is none."""
    current = member.product_facts("kafka").get("current") or {}
    for pair in current.get("listener.security.protocol.map", "").split(","):
        name, _colon, protocol = pair.strip().partition(":")
        if name.upper() == CONTROLLER_LISTENER:
            return protocol
    return ""


def _place(controller: Member) -> str:
    return endpoint(controller.text("kafka_address"), controller.get("kafka_controller_port"))


def _unknown_leavers(world: World) -> Iterator[Problem]:
    if not world.voters_change:
        return
    known = {each.name for cluster in world.clusters for each in cluster.controllers}
    for name in sorted((world.leaving or frozenset()) - known):
        yield found(
            "quorum.unknown_leaver",
            sorted(known) or [each.name for each in world.members],
            "controllers_leave",
            name,
            "no controller of the inventory has this name",
        )


def _no_controllers(cluster: Cluster) -> Iterator[Problem]:
    """A playbook of controllers, and a cluster that has none."""
    if cluster.voters_change or cluster.becomes_dynamic:
        yield found(
            "quorum.no_controllers",
            [each.name for each in cluster.members],
            "kafka_metadata",
            "zookeeper",
            f"cluster {cluster.name} has its metadata in ZooKeeper",
        )


def _left_out(cluster: Cluster) -> Iterator[Problem]:
    """Who is to get a vote is started by the run that asks for it; one that is not is waited for in vain."""
    now = cluster.snapshot.voters if cluster.snapshot else None
    if not cluster.voters_change or now is None:
        return
    ids, _servers = identities(cluster)
    outside = [
        each.name for each in cluster.voters if ids[each.name] not in now and not each.in_play
    ]
    if outside:
        yield found(
            "quorum.left_out",
            outside,
            "kafka_controllers_group",
            _group(cluster),
            "it does not vote yet, and this run is without it",
        )
    leavers = [each for each in cluster.brokers if each not in cluster.staying_brokers]
    running_on = [each.name for each in leavers if not each.in_play]
    if running_on:
        yield found(
            "quorum.left_out",
            running_on,
            "controllers_leave",
            ",".join(running_on),
            "it is to leave, and this run is without it, so that it would go on as a broker without a vote",
        )


def _exchanged(cluster: Cluster) -> Iterator[Problem]:
    """Nodes that know none of the controllers that stay: until their turn they have no way to the quorum.

    Who does not vote asks those that it knows for the leader, and no others. They learn of the new ones last, when the
    former ones have stopped.
    """
    staying = {_place(each) for each in cluster.voters}
    for member in cluster.nodes if cluster.voters_change and not cluster.static_quorum else ():
        current = member.product_facts("kafka").get("current") or {}
        known = set(current.get("controller.quorum.bootstrap.servers", "").split(",")) - {""}
        leaves = member in cluster.controllers and member not in cluster.voters
        if known and staying and not leaves and not known & staying:
            yield found(
                "quorum.exchanged",
                member.name,
                "controllers_leave",
                ",".join(sorted(cluster.leaving or ())),
                f"the node knows {', '.join(sorted(known))}, and none of these stays",
            )


def _votes_again(cluster: Cluster) -> Iterator[Problem]:
    """Who leaves loses its vote while it runs, and would have it again before it is stopped."""
    for member in cluster.controllers if cluster.voters_change else ():
        if member in cluster.voters:
            continue
        current = member.product_facts("kafka").get("current") or {}
        wanted = effective_properties(member, len(cluster.staying_brokers))
        if "true" in (str(each.get(AUTO_JOIN)).strip().lower() for each in (current, wanted)):
            yield found(
                "quorum.votes_again",
                member.name,
                variable_of(member, AUTO_JOIN),
                "true",
                "it is to leave the quorum, and asks for a vote again within seconds of having lost it",
            )


def _static(cluster: Cluster) -> Iterator[Problem]:
    """What a static quorum does not allow, and what a release does not do of what it says."""
    yield from _too_old_for_dynamic(cluster)
    if not (cluster.voters_change and cluster.static_quorum):
        return
    yield found(
        "quorum.static",
        [each.name for each in cluster.controllers],
        "kafka_static_quorum",
        "in force",
        "the voters of a static quorum stand in the configuration of every node, and cannot change",
    )


def _too_old_for_dynamic(cluster: Cluster) -> Iterator[Problem]:
    """Kafka 3.9 and 4.0 take the feature, and leave the voters where they are: nodes without a list would find none."""
    for member in cluster.nodes if cluster.becomes_dynamic else ():
        current = member.product_facts("kafka").get("current") or {}
        version = member.text("kafka_version")
        if current.get(STATIC_VOTERS) and (line(version) or DYNAMIC_SINCE) < DYNAMIC_SINCE:
            yield found(
                "quorum.stays_static",
                member.name,
                "kafka_version",
                version,
                "this release says that kraft.version is raised, and its voters stay in the configuration",
            )


def _voters_that_answer(cluster: Cluster, replaced: Optional[int]) -> Iterator[Problem]:
    """The voters of the quorum that runs, as its leader tells them, whoever has made them."""
    told = cluster.snapshot.voters if cluster.snapshot else None
    ids, _servers = identities(cluster)
    wanted = {ids[each.name] for each in cluster.controllers}
    if told is None or told == wanted or (cluster.voters_change and told <= wanted):
        return
    # A killed run may have left it without its vote.
    if told | {replaced} == wanted:
        return
    brokers = [each.name for each in cluster.nodes if ids[each.name] in told - wanted]
    lost = _numbers(told - wanted)
    remedy = (
        f"put the host of {lost} back into the inventory; a controller leaves, while its host is there, by"
        " playbooks/scale_controllers.yml -e controllers_leave=HOST"
    )
    newcomers = [host for host in without_id(broker_claims(cluster)) if cluster.votes(host)]
    if newcomers and len(told - wanted) == 1:
        remedy += (
            f"; where {' or '.join(newcomers)}, which has no id yet, takes its place, set kafka_broker_id: {lost}"
            f" there, and run playbooks/replace_broker.yml -e broker={lost}"
        )
    yield found(
        "quorum.other_voters",
        brokers or [each.name for each in cluster.controllers],
        "kafka_controllers_group",
        _group(cluster),
        f"the voters of the quorum that runs are {_numbers(told)}, and the inventory has {_numbers(wanted)}",
        remedy if told - wanted else "",
    )


def _other_directories(cluster: Cluster, replaced: Optional[int]) -> Iterator[Problem]:
    """Voters whose disk was formatted anew: they follow, and nobody counts them."""
    told = cluster.snapshot.voter_directories if cluster.snapshot else {}
    ids, _servers = identities(cluster)
    for each, voter in zip(cluster.controllers, as_voters(cluster.controllers, ids)):
        number, own = voter["id"], voter["directory_id"]
        voted = told.get(number, own)
        if own and own != voted and number != replaced and not metadata_moved(each):
            yield found(
                "voters.other_directory",
                each.name,
                "kafka_log_dirs",
                ",".join(each.log_dirs),
                f"node {number} has no vote: {other_directory(voted, own)}",
                "bring its old disk back; or, if that is gone for good,"
                f" playbooks/replace_broker.yml -e broker={number}",
            )


def _numbers(ids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ids))) or "none"


def _settings_of_controllers(cluster: Cluster, versions: Versions) -> Iterator[Problem]:
    """What controllers decide, by the file of the one that leads: it has to be the same in all of theirs.

    What only brokers say of it has no effect, and nobody says so.
    """
    voters = cluster.voters
    if not voters:
        return
    # Of one release for all: that they have the same is another check.
    table = broker_table_for(cluster.nodes[0], versions)
    defaults = {key: about.get("default") for key, about in (table.keys if table else {}).items()}
    brokers = len(cluster.staying_brokers)
    had = {
        each.name: _decided(effective_properties(each, brokers), defaults) for each in cluster.nodes
    }
    for key in (*DECIDED_BY_CONTROLLERS, TOKEN_SECRETS[0]):
        there = [had[each.name][key] for each in voters]
        for member in cluster.nodes:
            variable, own = _variable_of_decided(member, key), had[member.name][key]
            others = ", ".join(sorted({*there} - {own}))
            if member in voters:
                told = own != max(there, key=there.count)
                reason = f"others have {others}, and what is in force changes with each election of a controller"
                remedy = "set it for all controllers alike"
            else:
                # Brokers need the secret as well; of the rest they say nothing where no variable does.
                told = not member.is_controller and (variable != key or key in TOKEN_SECRETS)
                reason = f"the controllers decide it, and they have {others}"
                whose = "the brokers" if own == UNSET else "the controllers"
                remedy = f"set {key} in kafka_config of {whose}, too"
            if told and others:
                yield found("quorum.settings", member.name, variable, own, reason, remedy)


def _open_without_acls(cluster: Cluster) -> Iterator[Problem]:
    """What the authorizer does where there is no ACL.

    It is asked at brokers for some requests, at controllers for others.
    """
    nodes = [each for each in cluster.nodes if each.get("kafka_authorizer") is True]
    brokers = len(cluster.staying_brokers)
    # Of this collection's configuration; Kafka's own default is the same.
    had = {
        each.name: str(effective_properties(each, brokers).get(WITHOUT_ACLS, "false"))
        .strip()
        .lower()
        for each in nodes
    }
    for member in nodes:
        variable, own = variable_of(member, WITHOUT_ACLS), had[member.name]
        others = [each.name for each in nodes if had[each.name] != own]
        if variable != WITHOUT_ACLS and others:
            yield found(
                "quorum.settings",
                member.name,
                variable,
                own,
                f"it is not so on {', '.join(others)}; brokers decide by it who reads and writes, and controllers who"
                " makes topics, ACLs and settings",
                f"set {WITHOUT_ACLS} in kafka_config of brokers and controllers alike",
            )


def _decided(own: Mapping[str, str], defaults: Mapping[str, Any]) -> Dict[str, str]:
    """What a node has of that, by a variable or by default. Of the secret, whether it has one."""
    values = {}
    for key in DECIDED_BY_CONTROLLERS:
        text = str(own.get(key, defaults.get(key) or ""))
        try:
            text = canonical_value(key, text) or ""
        except ValueError:
            pass  # it is no value, which is told elsewhere
        # So the tables write it where there is none.
        values[key] = UNSET if text in ("", '""', "null") else text
    has_secret = any(own.get(key) for key in TOKEN_SECRETS)
    return {**values, TOKEN_SECRETS[0]: HIDDEN if has_secret else UNSET}


def _variable_of_decided(member: Member, key: str) -> str:
    """As variable_of; the secret has a second name."""
    names = TOKEN_SECRETS if key in TOKEN_SECRETS else (key,)
    return next((each for name in names if (each := variable_of(member, name)) != name), key)


def voters_of(cluster: Cluster) -> Dict[str, Any]:
    """{stay, leave, brokers_leave, now, asked, settled}: the controllers that vote at the end of this run, those that
    do not any more, the ids of the brokers among these, and the ids of those that vote now; of these none where the
    quorum does not answer. `asked`: whether brokers know of a quorum at all, as in the middle of a migration they do
    not; `settled`: whether all nodes that ever ran know the controllers of the end, so that these vote.
    """
    ids, _servers = identities(cluster)
    leavers = [each for each in cluster.controllers if each not in cluster.voters]
    told = (cluster.snapshot.voters if cluster.snapshot else None) or ()
    return {
        "stay": as_voters(cluster.voters, ids),
        "leave": as_voters(leavers, ids),
        "brokers_leave": sorted(ids[each.name] for each in leavers if each.is_broker),
        "now": sorted(told),
        "asked": not any(map(in_zookeeper, cluster.brokers)),
        "settled": _all_know(cluster),
    }


def _all_know(cluster: Cluster) -> bool:
    """Whether each node that ever ran looks for the controllers that vote at the end of this run, and for no others."""
    wanted = {_place(each) for each in cluster.voters}
    for member in cluster.nodes:
        current = member.product_facts("kafka").get("current") or {}
        told = current.get(STATIC_VOTERS) or current.get("controller.quorum.bootstrap.servers", "")
        known = {each.rpartition("@")[2] for each in told.split(",")}
        if current.get("process.roles") and known != wanted:
            return False
    return True


def quorums(cluster: Cluster) -> Dict[str, Optional[Dict[str, Any]]]:
    """host -> its part in the quorum, as broker_properties takes it; None in ZooKeeper mode."""
    protocol, controllers = cluster.controller_protocol, cluster.voters
    voters = identities(cluster)[0] if cluster.static_quorum else None
    return {each.name: quorum_of(each, controllers, protocol, voters) for each in cluster.nodes}

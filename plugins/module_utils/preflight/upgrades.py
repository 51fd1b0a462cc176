# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The way from the releases that run to those that the inventory names, and back. Pure.

Facts of every host say which release and which protocol version are in force there, so a run that
was killed half way is an ordinary case: some hosts have gone the way, others have not.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration import protocol
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight import (
    feature_levels,
    identity,
    taking_over,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.ids import natural_key
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    VERSION,
    Member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    DEPLOY,
    KEEP,
    ROLLBACK,
    UPGRADE,
    Cluster,
    World,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    ERROR,
    WARNING,
    Problem,
)

RELEASE_VERSION = re.compile(r"-(\d+\.\d+\.\d+)$")
ZOOKEEPER_MODE_ENDS = (4, 0, 0)
# Brokers from here on speak to clients of Kafka 2.1 or newer only (KIP-896).
OLD_CLIENTS_END = (4, 0, 0)
# The oldest release with a quorum whose voters can change (KIP-853).
KRAFT_MODE_BEGINS = (3, 9, 0)
# Kafka 3.9 brings a ZooKeeper client of 3.8.4 and asks for servers of 3.8.3 or newer.
OLDEST_ZOOKEEPER = (3, 8, 3)
FINALIZE = "kafka_finalize"
# Lines of ZooKeeper whose newer data the older release was seen to read.
ZOOKEEPER_WAYS_BACK = frozenset((((3, 9), (3, 8)),))
NO_VERSION_CHANGES = (
    "Every member of this run has the inventory's versions: no version changes. Other settings that are pending take"
    " effect."
)
ROLLING_UPGRADE, ROLLING_BACK = "playbooks/rolling_upgrade.yml", "playbooks/rollback.yml"


def parts(version: str) -> Tuple[int, ...]:
    """3.9.2 as (3, 9, 2)."""
    return tuple(int(part) for part in version.split("."))


def running_version(member: Member, product: str) -> str:
    """The version of the release in force: that of the process, else of its last start; or ""."""
    match = RELEASE_VERSION.search(member.product_facts(product).get("release") or "")
    return match.group(1) if match else ""


def of_mode(member: Member, version: str) -> bool:
    """Whether a release has the mode of this broker's cluster; of ZooKeeper itself, any below 4."""
    if member.kraft:
        return parts(version) >= KRAFT_MODE_BEGINS
    return parts(version) < ZOOKEEPER_MODE_ENDS


def speaker(member: Member) -> protocol.Speaker:
    """What decides which protocol a broker speaks."""
    current = member.product_facts("kafka").get("current") or {}
    release = running_version(member, "kafka")
    # A configuration without a release is one that never ran.
    return protocol.Speaker(release, current.get(protocol.KEY, "") if release else "")


def finalize_wanted(cluster: Cluster, purpose: str) -> bool:
    """Whether this run is to raise the cluster's protocol version, in KRaft mode its features."""
    members = cluster.nodes if cluster.kraft else cluster.brokers
    asked = [boolean(each.get(FINALIZE, False), strict=False) for each in members]
    return purpose == UPGRADE and bool(asked) and all(asked)


def protocols(cluster: Cluster, purpose: str) -> Dict[str, str]:
    """host -> the protocol version that its configuration is to name, "" for none.

    In KRaft mode none: there the cluster keeps the levels of its features, see feature_levels.
    """
    if cluster.kraft:
        return {member.name: "" for member in cluster.nodes}
    speakers = [speaker(each) for each in cluster.brokers]
    finalize = finalize_wanted(cluster, purpose)
    return {
        member.name: protocol.pin(own, speakers, member.text("kafka_version"), finalize)
        for member, own in zip(cluster.brokers, speakers)
    }


# ---------------------------------------------------------------- checks


def check_paths(world: World) -> Iterator[Problem]:
    """Whether what runs may become what the inventory names, in a run for this purpose."""
    for cluster in world.clusters:
        for product in ("kafka", "zookeeper"):
            members = cluster.nodes if product == "kafka" else cluster.servers
            for member in members:
                yield from _path(world, cluster, member, product)
            if world.purpose in (UPGRADE, ROLLBACK):
                yield from _nothing_there(members, product)
        yield from _joining(world, cluster)
        if world.purpose == UPGRADE:
            yield from _zookeeper_first(cluster)
            yield from _old_clients(cluster)
        yield from _finalize(world.purpose, cluster)
        yield from _by_hand(world.purpose, cluster)


def _path(world: World, cluster: Cluster, member: Member, product: str) -> Iterator[Problem]:
    purpose, variable = world.purpose, f"{product}_version"
    running, wanted = running_version(member, product), member.text(variable)
    if not running or running == wanted or not VERSION.match(wanted):
        return
    if not of_mode(member, wanted):
        return  # its own finding
    state = (
        f"the host {'runs' if member.alive(product) else 'was installed and has data of'} {running}"
    )
    forwards = parts(wanted) > parts(running)
    barred = _barred(cluster, product, running, wanted)
    if taking_over.is_former(member, product):
        # Servers of different releases serve together, and so do brokers of one line.
        alike = product == "zookeeper" or protocol.line(wanted) == protocol.line(running)
        if alike and forwards and not barred and purpose == DEPLOY:
            return
        remedy = f"take it over with the version that runs, {variable}: {running}, and change it afterwards"
        reason = f"what others have installed is {running}"
        yield found("version.needs_upgrade", member.name, variable, wanted, reason, remedy)
        return
    silent = "" if barred or forwards else _silent(purpose, cluster, product, running, wanted)
    back = f"set {variable}: {running}"
    if not barred and not silent and purpose == (UPGRADE if forwards else ROLLBACK):
        return
    # Where no version changes, another one in the inventory does no harm: but to a node that starts with it.
    starts = product == "kafka" and bool(barred) and member.name in _replaced(world, cluster)
    level = WARNING if purpose == KEEP and not starts else ERROR
    if forwards and not barred:
        check = "version.illegal_path" if purpose == ROLLBACK else "version.needs_upgrade"
        reason = f"an upgrade: {state}" if purpose == ROLLBACK else state
        remedy = f"run {ROLLING_UPGRADE}, which upgrades one host at a time; or {back}"
    elif forwards:
        check, reason, remedy = "version.illegal_path", f"{state}, and {barred}", back
    elif silent:
        check, reason = "version.illegal_path", f"a downgrade: {state}, and {silent}"
        remedy = f"bring that host back, so that it can be asked, and run this again; or {back}"
    else:
        check = "version.illegal_path"
        reason = f"a downgrade: {state}, and {barred or 'only a rollback takes it back'}"
        remedy = back if barred else f"run {ROLLING_BACK}, one host at a time; or {back}"
    yield found(check, member.name, variable, wanted, reason, remedy, level)


def _barred(cluster: Cluster, product: str, running: str, wanted: str) -> str:
    """Why nobody may go from one version to the other, "" where one may."""
    here, there = protocol.line(running), protocol.line(wanted)
    if here is None or there is None or here == there:
        return ""
    if product == "kafka" and cluster.kraft:
        return feature_levels.barred(cluster, running, wanted)
    if here[0] != there[0] or here[0] != 3:
        return "only ways from one release 3.x to another are known to work"
    if there > here:
        return ""
    if product == "zookeeper":
        known = (here, there) in ZOOKEEPER_WAYS_BACK
        return "" if known else "nobody has seen this older ZooKeeper read the newer one's data"
    newer = [each.name for each in cluster.brokers if (speaker(each).speaks or there) > there]
    if not newer:
        return ""
    spoken = protocol.text(max(speaker(each).speaks or there for each in cluster.brokers))
    return (
        f"{', '.join(newer)} speak{'s' if len(newer) == 1 else ''} protocol version {spoken}, which"
        f" is finalised and which {wanted} does not know: there is no way back"
    )


def _silent(purpose: str, cluster: Cluster, product: str, running: str, wanted: str) -> str:
    """Which brokers may speak a protocol that a rollback to `wanted` would not know, as they cannot be asked.

    "" where there are none, or in KRaft mode, where the cluster tells. A broker that is known to be down harms nobody.
    """
    if purpose != ROLLBACK or product != "kafka" or cluster.kraft:
        return ""
    if protocol.line(running) == protocol.line(wanted):
        return ""
    registered = cluster.snapshot.brokers if cluster.snapshot else None
    hosts = [
        each.name
        for each in cluster.brokers
        if each.unreachable
        and (registered is None or each.broker_id is None or each.broker_id in registered)
    ]
    if not hosts:
        return ""
    return (
        f"{', '.join(hosts)} cannot be asked which protocol version {'it speaks' if len(hosts) == 1 else 'they speak'}:"
        f" a broker that speaks a newer one than {wanted} knows could not follow any more"
    )


def _replaced(world: World, cluster: Cluster) -> List[str]:
    """The host of the node whose disks were replaced by empty ones."""
    if world.replaced is None:
        return []
    ids = identity.identities(cluster)[0]
    return [host for host, number in ids.items() if number == world.replaced]


def _joining(world: World, cluster: Cluster) -> Iterator[Problem]:
    """Nodes that were never installed and start in this run, among others that run a newer line."""
    running = [each for each in (running_version(node, "kafka") for node in cluster.nodes) if each]
    newest = max(running, key=parts, default="")
    replaced = _replaced(world, cluster)
    for member in cluster.nodes:
        wanted = member.text("kafka_version")
        starts = world.purpose == DEPLOY or member.name in replaced
        if not newest or not starts or not member.in_play or member.unreachable:
            continue
        if running_version(member, "kafka") or not VERSION.match(wanted):
            continue
        if not of_mode(member, wanted) or parts(wanted) > parts(newest):
            continue
        barred = _barred(cluster, "kafka", newest, wanted)
        if barred:
            yield found(
                "version.illegal_path",
                member.name,
                "kafka_version",
                wanted,
                f"it would join nodes that run {newest}, and {barred}",
                f"set kafka_version: {newest}",
            )


def _nothing_there(members: Sequence[Member], product: str) -> Iterator[Problem]:
    """Upgrades and rollbacks where no broker was ever installed; brokers may join one that was."""
    if (
        members
        and product == "kafka"
        and not any(running_version(each, product) for each in members)
    ):
        yield found(
            "version.nothing_installed",
            [each.name for each in members],
            f"{product}_version",
            members[0].text(f"{product}_version"),
            "nothing is installed yet that could change its version",
        )


def _old_clients(cluster: Cluster) -> Iterator[Problem]:
    """The way to a release that no longer serves clients which the running one serves (KIP-896)."""
    leaving = [
        member
        for member in cluster.brokers
        if VERSION.match(member.text("kafka_version"))
        and parts(member.text("kafka_version")) >= OLD_CLIENTS_END
        and running_version(member, "kafka")
        and parts(running_version(member, "kafka")) < OLD_CLIENTS_END
        and of_mode(member, member.text("kafka_version"))
    ]
    if leaving:
        yield found(
            "version.old_clients",
            [each.name for each in leaving],
            "kafka_version",
            leaving[0].text("kafka_version"),
            f"Kafka 4 refuses clients older than 2.1, which {running_version(leaving[0], 'kafka')} serves",
        )


def _zookeeper_first(cluster: Cluster) -> Iterator[Problem]:
    """Servers outside of this run stay as they are, so they must be new enough already."""
    for member in cluster.servers:
        running = running_version(member, "zookeeper")
        if running and not member.in_play and parts(running) < OLDEST_ZOOKEEPER:
            yield found(
                "version.illegal_path",
                member.name,
                "zookeeper_version",
                running,
                "it runs, and Kafka 3.8 and 3.9 need ZooKeeper 3.8.3 or newer",
                "upgrade ZooKeeper first: run the playbook without --limit, or for its hosts",
            )


def _finalize(purpose: str, cluster: Cluster) -> Iterator[Problem]:
    members = cluster.nodes if cluster.kraft else cluster.brokers
    asked = [each for each in members if boolean(each.get(FINALIZE, False), strict=False)]
    if not asked:
        return
    hosts = [each.name for each in asked]
    if purpose != UPGRADE:
        reason = f"only {ROLLING_UPGRADE} reads it"
        yield found("settings.no_effect", hosts, FINALIZE, True, reason)
        return
    if len(asked) < len(members):
        reason = "a protocol version is raised for all brokers of a cluster, or for none"
        if cluster.kraft:
            reason = "features are finalised for all nodes of a cluster, or for none"
        remedy = f"give it to all of them: -e {FINALIZE}=true"
        yield found("version.finalize_early", hosts, FINALIZE, True, reason, remedy)
        return
    if cluster.kraft:
        yield from feature_levels.check_finalising(
            cluster, hosts, _newest_wanted(cluster), FINALIZE
        )
    # The features are those of all nodes, so the newest version of any of them counts.
    newest = _newest_wanted(cluster) if cluster.kraft else ""
    late = [
        (each, newest or each.text("kafka_version"))
        for each in members
        if protocol.line(running_version(each, "kafka"))
        != protocol.line(newest or each.text("kafka_version"))
        and VERSION.match(each.text("kafka_version"))
    ]
    harm = "other brokers that speak the newer protocol would not let it into any ISR"
    if cluster.kraft:
        harm = "it could not read what the newer features write into the metadata"
    for member, wanted in late:
        running = running_version(member, "kafka")
        yield found(
            "version.finalize_early",
            member.name,
            FINALIZE,
            True,
            f"the host runs {running or 'no Kafka'}, not {wanted}: {harm}",
        )


def _by_hand(purpose: str, cluster: Cluster) -> Iterator[Problem]:
    """A protocol version that somebody wrote into kafka_config: only the one in force may stand there.

    In KRaft mode Kafka 3.9 does not read it, and Kafka 4 does not know it, as the table of keys says.
    """
    if cluster.kraft:
        return
    finalize = finalize_wanted(cluster, purpose)
    speakers = [speaker(each) for each in cluster.brokers]
    lowest = protocol.oldest(speakers)
    for member, own in zip(cluster.brokers, speakers):
        for variable in ("kafka_host_config", "kafka_config"):
            if protocol.KEY not in member.mapping(variable):
                continue
            written = str(member.mapping(variable)[protocol.KEY])
            wanted = protocol.line(member.text("kafka_version"))
            line = protocol.line(written)
            if line is None or wanted is None:
                break  # the table of keys says so
            spoken = own.speaks or lowest
            ready = finalize and protocol.may_finalise(speakers, member.text("kafka_version"))
            reason = ""
            if line > wanted:
                reason = f"Kafka {member.text('kafka_version')} does not know it"
            elif ready and line != wanted:
                reason = f"it keeps the cluster from speaking {protocol.text(wanted)}"
            elif not ready and spoken is not None and line > spoken:
                reason = (
                    f"the cluster speaks {protocol.text(spoken)}: raising it is what"
                    f" {ROLLING_UPGRADE} -e {FINALIZE}=true does, when every broker knows it"
                )
            elif not ready and spoken is not None and line < spoken:
                reason = f"the cluster speaks {protocol.text(spoken)}, and there is no way back"
            if reason:
                where = f"{variable}.{protocol.KEY}"
                yield found("version.protocol", member.name, where, written, reason)
            break  # the host's own wins


# ---------------------------------------------------------------- what people are told


def _hosts_by_version(members: Iterable[Member], product: str) -> Dict[str, List[str]]:
    found_versions: Dict[str, List[str]] = {}
    for member in sorted(members, key=lambda each: natural_key(each.name)):
        version = running_version(member, product)
        if version:
            found_versions.setdefault(version, []).append(member.name)
    return dict(sorted(found_versions.items(), key=lambda item: parts(item[0])))


TITLES = {"kafka": "Kafka", "zookeeper": "ZooKeeper"}


def state_lines(cluster: Cluster) -> List[str]:
    """What is half done in a cluster as to versions, for a table of its status; empty if nothing is."""
    lines = []
    for product, members in (("zookeeper", cluster.servers), ("kafka", cluster.nodes)):
        versions = _hosts_by_version(members, product)
        if len(versions) > 1:
            told = "; ".join(
                f"{version}: {', '.join(names)}" for version, names in versions.items()
            )
            lines.append(f"Mixed versions of {TITLES[product]}: {told}.")
    if lines:
        lines.append(f"  Go on with {ROLLING_UPGRADE}, or back with {ROLLING_BACK}.")
    if cluster.kraft:
        return lines + feature_levels.state_lines(
            feature_levels.finalised(cluster),
            list(_hosts_by_version(cluster.nodes, "kafka")),
            f"{ROLLING_UPGRADE} -e {FINALIZE}=true",
            ROLLING_BACK,
        )
    return lines + _protocol_lines([(each.name, speaker(each)) for each in cluster.brokers])


def _protocol_lines(speakers: Sequence[Tuple[str, protocol.Speaker]]) -> List[str]:
    """Which brokers are pinned below their release."""
    known = [
        (name, each, each.speaks or (), protocol.line(each.release) or ())
        for name, each in speakers
        if each.release
    ]
    pinned = [name for name, _each, speaks, own in known if speaks < own]
    if not pinned:
        return []
    newest = max(own for _name, _each, _speaks, own in known)
    low = protocol.text(min(speaks for _name, _each, speaks, _own in known))
    raised = [name for name, each, speaks, _own in known if each.key and speaks == newest]
    others = [name for name, _each, speaks, _own in known if speaks != newest]
    if raised:
        return [
            f"Finalising is half done: {', '.join(raised)} speak{'s' if len(raised) == 1 else ''}"
            f" protocol version {protocol.text(newest)}, {', '.join(others)} still {low}.",
            f"  Go on with {ROLLING_UPGRADE} -e {FINALIZE}=true; there is no way back.",
        ]
    return [
        f"Pinned to protocol version {low}, not finalised: {', '.join(pinned)}.",
        f"  It stays so until {ROLLING_UPGRADE} -e {FINALIZE}=true; {ROLLING_BACK} goes back until"
        " then.",
    ]


def plan_lines(cluster: Cluster, purpose: str) -> List[str]:
    """What a run for this purpose is about to do; said before it begins."""
    lines: List[str] = []
    for product, members in (("zookeeper", cluster.servers), ("kafka", cluster.nodes)):
        moves: Dict[Tuple[str, str], List[str]] = {}
        for member in members:
            running, wanted = running_version(member, product), member.text(f"{product}_version")
            if running and running != wanted and member.in_play:
                moves.setdefault((running, wanted), []).append(member.name)
        for (running, wanted), names in sorted(moves.items()):
            lines.append(
                f"{TITLES[product]} {running} -> {wanted}: {', '.join(names)}; one at a time."
            )
    if cluster.kraft:
        levels, wanted = feature_levels.finalised(cluster), _newest_wanted(cluster)
        if finalize_wanted(cluster, purpose):
            return lines + feature_levels.finalising_lines(levels, wanted, ROLLING_BACK)
        if lines and purpose == UPGRADE:
            lines += feature_levels.upgrade_lines(levels, wanted, ROLLING_BACK)
        return lines or [NO_VERSION_CHANGES]
    before = {each.name: speaker(each) for each in cluster.brokers}
    after = _speakers_after(cluster, purpose)
    if finalize_wanted(cluster, purpose):
        raised = [name for name, own in before.items() if own.key and after[name].key != own.key]
        outside = [
            each.name
            for each in cluster.brokers
            if not each.in_play and _is_pinned(after[each.name])
        ]
        left = [f"Not in this run, and still pinned: {', '.join(outside)}."] if outside else []
        if not raised:
            where = "No broker of this run" if outside else "Nothing"
            return lines + [f"{where} is pinned: there is nothing to finalise."] + left
        target = protocol.text(protocol.line(after[raised[0]].key) or ())
        low = protocol.text(protocol.oldest(before.values()) or ())
        return lines + [
            f"FINALISING: protocol version {low} -> {target}: {', '.join(raised)}; one at a time.",
            "THERE IS NO WAY BACK from the first restart on: rollback.yml is refused from then on.",
            *left,
        ]
    pinned = sorted(
        {after[name].key for name, own in before.items() if after[name].key and own.release},
        key=lambda each: protocol.line(each) or (),
    )
    if lines and purpose == UPGRADE and pinned:
        lines.append(
            f"Brokers go on to speak protocol version {', '.join(pinned)}, so {ROLLING_BACK} goes back."
        )
    return lines or [NO_VERSION_CHANGES]


def _newest_wanted(cluster: Cluster) -> str:
    """The newest version of Kafka that the inventory has for a node of the cluster."""
    wanted = [each.text("kafka_version") for each in cluster.nodes]
    return max((each for each in wanted if VERSION.match(each)), key=parts, default="")


def after_lines(cluster: Cluster, purpose: str, commands: Mapping[str, str]) -> List[str]:
    """What holds when a run for this purpose has ended well, and what comes next.

    `commands`: `finalize`, `upgrade`, `rollback` -> the exact command.
    """
    lines = [
        f"{TITLES[product]}: every member of this run runs {', '.join(versions)}."
        for product, versions in (
            ("zookeeper", _wanted_versions(cluster.servers, "zookeeper")),
            ("kafka", _wanted_versions(cluster.nodes, "kafka")),
        )
        if versions
    ]
    outside = [
        each.name
        for each in cluster.nodes
        if not each.in_play
        and running_version(each, "kafka") not in ("", each.text("kafka_version"))
    ]
    if outside:
        lines.append(f"Not in this run, and still on another version: {', '.join(outside)}.")
    if cluster.kraft:
        levels, finalize = feature_levels.finalised(cluster), finalize_wanted(cluster, purpose)
        if levels is not None and finalize:
            levels = {**levels, **feature_levels.finalising(cluster, _newest_wanted(cluster))}
        versions = [each for each in map(_release_after, cluster.nodes) if each]
        return lines + feature_levels.after_lines(levels, versions, commands, purpose == UPGRADE)
    will = list(_speakers_after(cluster, purpose).items())
    told = _protocol_lines(will)
    if not told:
        return lines + [
            "No broker is pinned to an older protocol version: the upgrade is final."
        ] * (purpose == UPGRADE)
    if told[0].startswith("Pinned"):
        low = protocol.text(protocol.oldest(each for _name, each in will) or ())
        lines += [
            told[0],
            f"  To finalise, after some days: {commands['finalize']}",
            f"  To go back to a {low} release: set kafka_version back, then {commands['rollback']}",
        ]
    else:
        lines += [told[0], f"  To go on: {commands['finalize']}; there is no way back."]
    return lines


def _is_pinned(broker: protocol.Speaker) -> bool:
    return bool(broker.release) and (broker.speaks or ()) < (protocol.line(broker.release) or ())


def _speakers_after(cluster: Cluster, purpose: str) -> Dict[str, protocol.Speaker]:
    """host -> what its broker will be when the run has ended well; who is not in it stays as it is."""
    keys = protocols(cluster, purpose)
    return {
        each.name: (
            protocol.Speaker(_release_after(each), keys[each.name])
            if each.in_play
            else speaker(each)
        )
        for each in cluster.brokers
    }


def _release_after(member: Member) -> str:
    return member.text("kafka_version") if member.in_play else running_version(member, "kafka")


def _wanted_versions(members: Sequence[Member], product: str) -> List[str]:
    return sorted({each.text(f"{product}_version") for each in members if each.in_play})


def told(cluster: Cluster, purpose: str, commands: Mapping[str, str]) -> Dict[str, Any]:
    """What the preflight tells later plays of a cluster's versions: {state, before, after} as lines,

    and {finalise}, the levels that features of a KRaft cluster are to get in this run.
    """
    finalise = cluster.kraft and finalize_wanted(cluster, purpose)
    return {
        "finalise": (
            feature_levels.finalising(cluster, _newest_wanted(cluster)) if finalise else {}
        ),
        "state": state_lines(cluster),
        "before": plan_lines(cluster, purpose),
        "after": after_lines(cluster, purpose, commands),
    }

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of directories and disks. Pure."""

from __future__ import annotations

import itertools
import posixpath
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.unit import root_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    START,
    Cluster,
    World,
    effective_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    ERROR,
    WARNING,
    Problem,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    approximate_size,
    parse_size_bytes,
    whole_number,
)

LOW_SPACE_BYTES = 2**30
LOW_SPACE_SHARE = 0.05
# On a developer's machine only what cannot work at all is worth a word.
DEVELOPMENT_SPACE_BYTES = 256 * 2**20
PSEUDO_FILE_SYSTEMS = frozenset(
    "autofs binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts fusectl mqueue proc pstore"
    " securityfs sysfs tracefs".split()
)
# Emptied at a boot, or by age.
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm", "/run")
GOES = "what deletes the one instance, as teardown.yml does, would delete it of the other"


@dataclass(frozen=True)
class Directory:
    """One directory that an instance uses. `facts` is empty where the host was silent."""

    member: Member
    product: str
    variable: str
    path: str
    facts: Mapping[str, Any]

    @property
    def real(self) -> str:
        """The path with links resolved, as far as it is known."""
        return posixpath.normpath(self.facts.get("real_path") or self.path)

    @property
    def identity(self) -> str:
        """Equal for two spellings of one directory of a machine."""
        return self.facts.get("identity") or self.real


def data_directories(member: Member) -> List[Directory]:
    """Every data directory of this member, once per variable that names it."""
    found_here = []
    if member.runs_kafka:
        facts = {each["path"]: each for each in member.product_facts("kafka").get("log_dirs") or []}
        for index, path in enumerate(member.log_dirs):
            variable = f"kafka_log_dirs[{index}]"
            found_here.append(Directory(member, "kafka", variable, path, facts.get(path, {})))
    if member.is_server and member.data_dir:
        data = member.product_facts("zookeeper").get("data") or {}
        found_here.append(
            Directory(
                member, "zookeeper", "zookeeper_data_dir", member.data_dir, data.get("data_dir", {})
            )
        )
        if member.data_log_dir != member.data_dir:
            found_here.append(
                Directory(
                    member,
                    "zookeeper",
                    "zookeeper_data_log_dir",
                    member.data_log_dir,
                    data.get("data_log_dir", {}),
                )
            )
    return found_here


# ---------------------------------------------------------------- directories


def check_directories(world: World) -> Iterator[Problem]:
    """Shared, temporary, dropped, world-writable, on the root file system."""
    machines: Dict[str, List[Directory]] = {}
    for member in world.members:
        for each in data_directories(member):
            machines.setdefault(member.filesystem, []).append(each)
            yield from _one_directory(each)
        yield from _dropped(member)
    for machine, directories in sorted(machines.items()):
        yield from _shared(directories)
        here = [member for member in world.members if member.filesystem == machine]
        places = [each for member in here for each in _own_places(member)]
        yield from _beside_data(directories, places, world.purpose)
        yield from _of_two_instances(places, world.purpose)
        yield from _around_releases(directories, places, here)


def _shared(directories: List[Directory]) -> Iterator[Problem]:
    for index, one in enumerate(directories):
        for other in directories[index + 1 :]:
            if one.identity == other.identity or one.real == other.real:
                what = "is used twice"
            elif (other.real + "/").startswith(one.real + "/"):
                what = f"holds {other.path}"
            elif (one.real + "/").startswith(other.real + "/"):
                what = f"lies within {other.path}"
            else:
                continue
            same_member = one.member.name == other.member.name
            if same_member and one.product == other.product == "zookeeper":
                # Snapshots and transaction logs of one server may share or nest.
                continue
            if one.variable == other.variable:
                variable = one.variable
            else:
                variable = f"{one.variable} and {other.variable}"
            yield found(
                "directories.shared",
                [one.member.name, other.member.name],
                variable,
                one.path,
                f"the directory {what}, on one machine",
            )


def _one_directory(each: Directory) -> Iterator[Problem]:
    member = each.member
    temporary = root_of(each.real, TEMPORARY) or root_of(each.path, TEMPORARY)
    if temporary and member.production:
        yield found(
            "directories.temporary",
            member.name,
            each.variable,
            each.path,
            "data below a directory that is emptied at a reboot or by age",
        )
    if not each.facts:
        return
    yield from _cannot_be_made(each)
    if each.product == "kafka" and each.facts.get("foreign"):
        yield found(
            "directories.foreign",
            member.name,
            each.variable,
            each.path,
            f"it holds {', '.join(each.facts['foreign'])}, which is not a partition; Kafka would not start",
        )
    yield from _of_another_account(each)
    if each.facts.get("world_writable") and not temporary:
        yield found(
            "directories.world_writable",
            member.name,
            each.variable,
            each.path,
            f"mode {each.facts['mode']}: anybody may delete or alter the data",
        )
    if member.production and each.product == "kafka" and each.facts["mount_point"] == "/":
        yield found(
            "directories.root_filesystem",
            member.name,
            each.variable,
            each.path,
            "it lies on the root file system, or its disk is not mounted",
        )


def _of_another_account(each: Directory) -> Iterator[Problem]:
    """Data of another uid, which the product cannot read: a disk of another machine, or files that root has copied."""
    member, owners = each.member, set(each.facts.get("owners") or ())
    name = member.text(f"{each.product}_account")
    if not name or member.text("jvm_service_manager") != "systemd":
        return
    account = member.product_facts(each.product).get("account")
    others = sorted(owners - {account["uid"]} if account else owners)
    if others:
        is_now = f"has uid {account['uid']}" if account else "is not there yet"
        reason = f"data in it belong to uid {', '.join(map(str, others))}, and the account {name} {is_now}"
        remedy = f"while nothing uses it, chown -R {name}: {each.path}" if account else ""
        yield found("directories.owner", member.name, each.variable, each.path, reason, remedy)


def _cannot_be_made(each: Directory) -> Iterator[Problem]:
    blocked_by = each.facts.get("blocked_by") or (each.path if each.facts["is_file"] else "")
    file_system, mount = each.facts.get("file_system"), each.facts["mount_point"]
    if blocked_by:
        check, reason = "directories.not_a_directory", f"{blocked_by} is not a directory"
    elif file_system in PSEUDO_FILE_SYSTEMS:
        check, reason = (
            "directories.unwritable",
            f"{mount} is the kernel's ({file_system}), no disk",
        )
    elif each.facts.get("read_only"):
        check, reason = "directories.unwritable", f"{mount} is mounted read-only"
    elif not each.facts["exists"] and not each.facts.get("creatable", True):
        user = (each.member.facts or {})["user"]
        check, reason = "directories.unwritable", f"user {user} may not create it"
    else:
        return
    yield found(check, each.member.name, each.variable, each.path, reason)


def _own_places(member: Member) -> Iterator[Directory]:
    """The directories of this member's instances that hold no data, and go with them."""
    for product, present in (("kafka", member.runs_kafka), ("zookeeper", member.is_server)):
        known = member.product_facts(product).get("places") or {}
        for kind in ("config_dir", "application_log_dir", "state_dir"):
            variable = f"{product}_{kind}"
            if present and member.text(variable).startswith("/"):
                path = posixpath.normpath(member.text(variable))
                yield Directory(member, product, variable, path, known.get(kind) or {})


def _holds(outer: Directory, inner: Directory) -> bool:
    """Whether one directory lies within another: as they are written, or where their links lead to."""
    return f"{inner.real}/".startswith(f"{outer.real}/") or (
        f"{posixpath.normpath(inner.path)}/".startswith(f"{posixpath.normpath(outer.path)}/")
    )


def _same_instance(one: Directory, other: Directory) -> bool:
    return (one.member.name, one.product) == (other.member.name, other.product)


def _beside_data(data: List[Directory], places: List[Directory], purpose: str) -> Iterator[Problem]:
    """Configuration, logs and records of starts in a data directory, or around that of another instance.

    Kafka reads every name in its own. An instance is deleted with all that its directories hold, its own data as well.
    """
    for place in places:
        for each in data:
            apart, level = not _same_instance(each, place), ""
            if place.real == each.real:
                how = "is the same directory"
            elif _holds(each, place) and (apart or each.product == "kafka"):
                how = "lies within it"
            elif _holds(place, each) and apart:
                how, level = f"holds it, and {GOES}", _level(purpose)
            else:
                continue
            yield found(
                "directories.shared",
                [each.member.name, place.member.name],
                f"{each.variable} and {place.variable}",
                each.path,
                f"{place.variable} {how}",
                level=level,
            )


def _of_two_instances(places: List[Directory], purpose: str) -> Iterator[Problem]:
    """Two processes would write one log, and what deletes one instance would delete of the other."""
    for one, other in itertools.permutations(places, 2):
        if _same_instance(one, other) or not _holds(one, other):
            continue
        kinds = {each.variable.partition("_")[2] for each in (one, other)}
        equal = one.real == other.real
        if not equal:
            why = f"{other.path} of {other.member.name} lies within it, and {GOES}"
        elif kinds == {"application_log_dir"}:
            why = "two instances on one machine would write the same files there"
        elif len(kinds) > 1:
            why = f"two instances on one machine have it, and {GOES}"
        else:
            continue  # inventory.instance_collision
        yield found(
            "directories.shared",
            [one.member.name, other.member.name],
            " and ".join(sorted({one.variable, other.variable})),
            min(one.path, other.path) if equal else one.path,  # of both orders the same
            why,
            level=_level(purpose),
        )


def _level(purpose: str) -> str:
    """What has run so may start again, before anybody deletes anything."""
    return WARNING if purpose == START else ""


def _around_releases(
    data: List[Directory], places: List[Directory], members: List[Member]
) -> Iterator[Problem]:
    """A directory of one instance that has the releases in it, which all instances of the machine share."""
    releases = [
        (member, variable, posixpath.normpath(member.text(variable)))
        for member in members
        for product, present in (("kafka", member.runs_kafka), ("zookeeper", member.is_server))
        for variable in (f"{product}_install_dir",)
        if present and member.text(variable).startswith("/")
    ]
    own = [(each, each.real) for each in data] + [(each, each.path) for each in places]
    for each, path in own:
        for other, install, place in releases:
            if (place + "/").startswith(path + "/"):
                what = "is the same directory" if place == path else "lies within it"
                reason = f"{install} {what}, and teardown.yml would delete the releases with it"
                hosts = [each.member.name, other.name]
                variables = f"{each.variable} and {install}"
                yield found("directories.shared", hosts, variables, path, reason)


def _dropped(member: Member) -> Iterator[Problem]:
    for each in member.product_facts("kafka").get("other_log_dirs") or []:
        if each["partitions"]:
            some = ", ".join(each["topics"])
            yield found(
                "directories.dropped",
                member.name,
                "kafka_log_dirs",
                list(member.log_dirs),
                f"{each['path']} is in use and would be left out: it holds {each['partitions']} "
                f"partitions (of {some})",
            )


# ---------------------------------------------------------------- space


def check_space(world: World) -> Iterator[Problem]:
    """Free space now, and what the topics may grow to."""
    for member in world.members:
        for each in data_directories(member):
            if each.facts:
                yield from _free(each)
    for cluster in world.clusters:
        yield from _retention(cluster)


def _free(each: Directory) -> Iterator[Problem]:
    free, total = each.facts["free_bytes"], each.facts["total_bytes"]
    if each.member.production:
        low = free < LOW_SPACE_BYTES or (total and free < LOW_SPACE_SHARE * total)
        level = ERROR
    else:
        low, level = free < DEVELOPMENT_SPACE_BYTES, WARNING
    if low:
        yield found(
            "space.low",
            each.member.name,
            each.variable,
            each.path,
            f"{approximate_size(free)} of {approximate_size(total)} free on "
            f"{each.facts['mount_point']}",
            level=level,
        )


def _retention(cluster: Cluster) -> Iterator[Problem]:
    """Sizes by which topics are bounded against the disks; topics bounded by time are unknown."""
    if not cluster.brokers:
        return
    properties = effective_properties(cluster.brokers[0], len(cluster.staying_brokers))
    wanted = 0
    for item in cluster.brokers[0].items("kafka_topics"):
        if not isinstance(item, Mapping) or item.get("state") == "absent":
            continue
        try:
            size = parse_size_bytes(item.get("retention_size", "unlimited"))
        except ValueError:
            continue
        if size > 0:
            wanted += size * _partitions(item, properties) * replication_factor(cluster, item)
    disks = {
        (member.filesystem, each.facts["mount_point"]): each.facts["total_bytes"]
        for member in cluster.brokers
        for each in data_directories(member)
        if each.product == "kafka" and each.facts
    }
    capacity = sum(disks.values())
    if disks and wanted > capacity:
        yield found(
            "space.retention",
            [member.name for member in cluster.brokers],
            "kafka_topics.retention_size",
            approximate_size(wanted),
            f"the topics may keep more than the {approximate_size(capacity)} of all log "
            "directories",
        )


def _partitions(item: Mapping[str, Any], properties: Mapping[str, str]) -> int:
    """The partitions a declared topic will have: its own, else the brokers' default."""
    return (
        whole_number(item.get("partitions")) or whole_number(properties.get("num.partitions")) or 1
    )


def replication_factor(cluster: Cluster, item: Mapping[str, Any]) -> int:
    """The factor a declared topic will have: its own, else the brokers' default."""
    own = whole_number(item.get("replication_factor"))
    if own:
        return own
    properties = effective_properties(cluster.brokers[0], len(cluster.staying_brokers))
    return whole_number(properties.get("default.replication.factor")) or 1


def planned_replicas(cluster: Cluster) -> int:
    """Replicas per broker once the declared topics and Kafka's own exist, evenly spread."""
    if not cluster.brokers:
        return 0
    properties = effective_properties(cluster.brokers[0], len(cluster.staying_brokers))
    total = 0
    for prefix, partitions in (("offsets.topic", 50), ("transaction.state.log", 50)):
        count = whole_number(properties.get(f"{prefix}.num.partitions")) or partitions
        total += count * (whole_number(properties.get(f"{prefix}.replication.factor")) or 1)
    for item in cluster.brokers[0].items("kafka_topics"):
        if isinstance(item, Mapping) and item.get("state") != "absent":
            total += _partitions(item, properties) * replication_factor(cluster, item)
    return -(-total // len(cluster.staying_brokers))

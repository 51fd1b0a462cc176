# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of the machines: limits, memory, clocks, leftover records of processes, and Java. Pure."""

from __future__ import annotations

from typing import Dict, Iterator, List, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.keys import nearest
from ansible_collections.kafkaops.cluster.plugins.module_utils.java import FOR_SPARK, major
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import masked_text
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.forms import heap_bytes
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    SUPERVISOR,
    Member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.storage import (
    planned_replicas,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    CLIENT_PACKAGES,
    JOB_PACKAGES,
    LOCALHOST,
    START,
    WRITING,
    AdminHost,
    World,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    ERROR,
    WARNING,
    Problem,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    approximate_size,
    whole_number,
)

COMFORTABLE_LIMIT = 100000
MAPS_PER_REPLICA = 2
# What is advised where fewer would do: every further segment takes two.
ROOMY_MAPS = 262144
# Jars, sockets and the JVM's own; measured at an idle broker: about 300.
FILES_BESIDE_REPLICAS = 1000
CLOCK_SECONDS = 5.0
# Kafka 3.8 and 3.9 run on 8 to 23 (KAFKA-19751), 8 and 11 deprecated; we offer what is tested.
KAFKA_JAVA = (8, 23)
# What brokers and controllers of Kafka 4 are compiled for.
KAFKA_4_JAVA = 17


def check_machines(world: World) -> Iterator[Problem]:
    """Limits, memory, clocks, leftovers and Java."""
    starts = world.purpose in (*WRITING, START) or world.replaced is not None
    for cluster in world.clusters:
        planned = planned_replicas(cluster)
        for member in cluster.members:
            if member.facts is None:
                continue
            if member.runs_kafka:
                on_disk = sum(
                    each["partitions"]
                    for each in member.product_facts("kafka").get("log_dirs") or []
                )
                yield from _limits(member, max(planned, on_disk))
            yield from _service_manager(member, starts)
            yield from _accounts(member)
            yield from _clock(member)
            yield from _leftovers(member)
            yield from _java(member)
    yield from _memory(world)
    yield from _spark(world)
    yield from _unknown_admin_hosts(world)
    yield from _admin_hosts(world)


def _service_manager(member: Member, starts: bool) -> Iterator[Problem]:
    """Whether what shall keep the processes running can be used on the host; `starts`: whether this run uses it.

    Units need one that systemd has booted: many containers, and WSL, have none or another process 1.
    """
    facts, manager = member.facts or {}, member.text("jvm_service_manager")
    if manager == SUPERVISOR and SUPERVISOR in facts["missing_packages"]:
        yield found(
            "host.no_supervisor",
            member.name,
            "jvm_service_manager",
            manager,
            f"the Python of the modules on this host has no package {SUPERVISOR}",
        )
    if manager == "systemd" and facts["user"] != 0:
        user = facts["user"]
        yield found(
            "host.not_root",
            member.name,
            "ansible_become",
            "...",
            f"tasks run as user {user}, and units of systemd are written, started and stopped by root",
            level="" if starts else WARNING,
        )
    if manager == "systemd" and not facts["systemd"]:
        engine = facts["container"]
        where = f"this container of {engine}" if engine else "this host"
        yield found(
            "host.no_systemd",
            member.name,
            "jvm_service_manager",
            "systemd",
            f"process 1 of {where} is not systemd",
        )


def _accounts(member: Member) -> Iterator[Problem]:
    """A unit runs as an account without privileges: its broker, and whoever breaks into it, is not root."""
    if member.text("jvm_service_manager") != "systemd":
        return
    for product, present in (("kafka", member.runs_kafka), ("zookeeper", member.is_server)):
        variable = f"{product}_account"
        name = member.text(variable)
        known = member.product_facts(product).get("account") or {}
        if member.get(variable) is None:  # not a name, which was told
            continue
        if present and (name in ("", "root") or known.get("uid") == 0):
            reason = (
                "has uid 0, as root" if known and name != "root" else "systemd would run it as root"
            )
            yield found("host.account", member.name, variable, name, reason)


def _limits(member: Member, replicas: int) -> Iterator[Problem]:
    wanted = whole_number(member.get("jvm_service_open_files")) or COMFORTABLE_LIMIT
    facts = member.facts or {}
    hard = facts["limits"]["open_files"]
    by_unit = member.text("jvm_service_manager") == "systemd"
    # systemd sets the unit's limit itself; a supervisor's child inherits ours.
    effective = wanted if by_unit or hard is None else min(wanted, hard)
    variable = "jvm_service_open_files" if by_unit or effective == wanted else "open files"
    strict = member.production
    needed = replicas + FILES_BESIDE_REPLICAS
    if effective < needed:
        yield found(
            "host.open_files",
            member.name,
            variable,
            effective,
            f"{replicas} replicas need at least {needed} open files",
            level=ERROR if strict else WARNING,
        )
    elif strict and effective < COMFORTABLE_LIMIT:
        yield found(
            "host.open_files",
            member.name,
            variable,
            effective,
            f"below {COMFORTABLE_LIMIT}, which production needs sooner or later",
            level=WARNING,
        )
    maps = facts["limits"]["max_map_count"]
    if maps is None:
        return
    # what the role host_baseline sets before the broker starts
    managed = by_unit and member.get("host_baseline_manage_sysctl") and not facts["container"]
    ours = member.mapping("host_baseline_sysctl").get("vm.max_map_count") if managed else None
    if ours is not None:
        maps = max(maps, int(ours)) if ours.isdigit() else maps
    room = max(ROOMY_MAPS, 2 * MAPS_PER_REPLICA * replicas)
    remedy = f"sysctl vm.max_map_count={room}"
    if ours is not None:
        remedy = f"set vm.max_map_count in host_baseline_sysctl to {room}"
    if maps < MAPS_PER_REPLICA * replicas:
        yield found(
            "host.memory_maps",
            member.name,
            "vm.max_map_count",
            maps,
            f"{replicas} replicas need two memory maps each, at least {MAPS_PER_REPLICA * replicas}",
            remedy,
            level=ERROR if strict else WARNING,
        )
    elif strict and maps < COMFORTABLE_LIMIT:
        yield found(
            "host.memory_maps",
            member.name,
            "vm.max_map_count",
            maps,
            f"enough for {maps // MAPS_PER_REPLICA} replicas of one segment each; every further "
            "segment takes two",
            remedy,
            level=WARNING,
        )


def _clock(member: Member) -> Iterator[Problem]:
    offset = member.clock_offset_seconds
    if offset is not None and abs(offset) > CLOCK_SECONDS + member.clock_uncertainty_seconds:
        yield found(
            "host.clock",
            member.name,
            "clock",
            f"{offset:+.1f} s",
            f"off by more than {CLOCK_SECONDS:g} s against the controller: retention by time, "
            "TLS and every log depend on it",
        )


def _leftovers(member: Member) -> Iterator[Problem]:
    for product in ("kafka", "zookeeper"):
        started = member.product_facts(product).get("started") or {}
        if started.get("stale"):
            yield found(
                "host.stale_pid",
                member.name,
                f"{product}_state_dir",
                member.text(f"{product}_state_dir"),
                (
                    f"process {started['pid']} of the last start is another process by now"
                    if started.get("pid")
                    else "the record of the last start cannot be read"
                ),
            )


def _java(member: Member) -> Iterator[Problem]:
    java = (member.facts or {}).get("java") or {}
    home = member.text("java_home")
    low, high = whole_number(member.get("java_minimum")), whole_number(member.get("java_maximum"))
    if low is not None and high is not None:
        legal_low, legal_high = KAFKA_JAVA
        line = 3
        if member.runs_kafka and member.text("kafka_version").startswith("4."):
            line, legal_low = 4, KAFKA_4_JAVA
        if low > high or low < legal_low or high > legal_high:
            yield found(
                "java.version",
                member.name,
                "java_minimum and java_maximum",
                f"{low} to {high}",
                f"Kafka {line}.x runs on Java {legal_low} to {legal_high}",
                "keep both in this range, the lower one first; Java 17 and 21 are recommended",
            )
    if java.get("refusal"):
        yield found(
            "java.broken",
            member.name,
            "java_home",
            java["home"],
            f"it does not start: {masked_text(str(java['refusal']))}",
        )
    if java.get("home"):
        release = major(java.get("version"))
        if release is not None and release not in FOR_SPARK and member.runs_kafka:
            yield found(
                "java.version",
                member.name,
                "java_home",
                java["home"],
                f"Java {java.get('version')} works, but 17 and 21 are what is recommended",
                level=WARNING,
            )
        return
    seen = java.get("seen") or []
    if home:
        check = "java.version" if seen else "java.missing"
        told = f"holds {', '.join(seen)}" if seen else "holds no Java"
        yield found(
            check,
            member.name,
            "java_home",
            home,
            f"{told}; wanted is Java {low} to {high}",
        )
    elif not _will_be_installed(member):
        yield found(
            "java.version" if seen else "java.missing",
            member.name,
            "java_source",
            member.text("java_source") or "auto",
            f"no Java {low} to {high} on the host{'; found ' if seen else ''}{', '.join(seen)}",
            "install Java 17 or 21, or set java_home to where it is",
        )


def _will_be_installed(member: Member) -> bool:
    """The role `java` installs packages where it may: on hosts that systemd manages."""
    source = member.text("java_source") or "auto"
    return source in ("auto", "package") and member.text("jvm_service_manager") == "systemd"


# With more memory than this a host is not small.
SMALL_BYTES = 6 * 2**30


def _memory(world: World) -> Iterator[Problem]:
    machines: Dict[str, Tuple[int, List[Tuple[str, str, int]]]] = {}
    for member in world.members:
        total = (member.facts or {}).get("memory_bytes")
        if not total:
            continue
        if member.small and total > SMALL_BYTES:
            yield found(
                "memory.unused",
                member.name,
                "kafkaops_profile",
                "small",
                f"the machine has {approximate_size(total)}; heaps and buffers are for 2 GiB",
            )
        entry = machines.setdefault(member.filesystem, (total, []))
        for product, present in (("kafka", member.runs_kafka), ("zookeeper", member.is_server)):
            variable = f"{product}_heap"
            if present and member.text(variable):
                size = heap_bytes(member.text(variable))
                entry[1].append((member.name, variable, size))
    for _machine, (total, heaps) in sorted(machines.items()):
        together = sum(size for _host, _variable, size in heaps)
        if together * 2 <= total:
            continue
        names = sorted({variable for _host, variable, _size in heaps})
        yield found(
            "memory.heap",
            [host for host, _variable, _size in heaps],
            " + ".join(names),
            approximate_size(together),
            f"the machine has {approximate_size(total)}"
            + (
                ": it does not fit"
                if together >= total
                else "; less than half stays for the page cache"
            ),
            level=ERROR if together >= total else WARNING,
        )


def _unknown_admin_hosts(world: World) -> Iterator[Problem]:
    """Names in kafka_admin_host that no host has: of each member, as plays delegate by each member's own."""
    unknown: Dict[str, List[str]] = {}
    for member in world.members:
        name = member.text("kafka_admin_host")
        if name and name not in LOCALHOST and name not in world.host_names:
            unknown.setdefault(name, []).append(member.name)
    for name, hosts in sorted(unknown.items()):
        near = nearest(name, world.host_names, cutoff=0.6)
        remedy = (
            f"did you mean `{near}`?"
            if near
            else "add it to the inventory; or remove the variable: then the modules run on the controller"
        )
        reason = "no host of the inventory has this name"
        yield found("host.admin", hosts, "kafka_admin_host", name, reason, remedy)


def _admin_hosts(world: World) -> Iterator[Problem]:
    admins = world.controller.admins
    for admin in dict.fromkeys(admins.values()):
        clusters = [each for each in world.clusters if admins.get(each.name) == admin]
        yield from _admin_host(admin, [member for each in clusters for member in each.nodes])


def _admin_host(admin: AdminHost, brokers: Sequence[Member]) -> Iterator[Problem]:
    """Whether the host that runs the Kafka modules for these answers, and its Python has their packages."""
    names = [member.name for member in brokers]
    if admin.unreachable:
        reason = f"it cannot be used: {admin.unreachable}"
        remedy = (
            "name a host that answers, and in kafka_admin_python a Python that starts there; without both "
            "variables the modules run on the controller, with Ansible's own"
        )
        yield found("host.admin", names, "kafka_admin_host", admin.name, reason, remedy)
        return
    lacking = [package for name, package in CLIENT_PACKAGES.items() if name in admin.missing]
    if lacking:
        reason = f"{admin.python} on {admin.name} has no {', '.join(lacking)}"
        yield found("host.admin", names, "kafka_admin_python", admin.python, reason)
    wishes = {member.text("flow_validation") for member in brokers} - {"", "never"}
    if wishes and set(JOB_PACKAGES) & set(admin.missing):
        yield found(
            "host.admin",
            names,
            "flow_validation",
            min(wishes),
            f"{admin.python} on {admin.name} has no pyspark, which validates the flow",
            "install the packages of this collection's requirements.txt into it, or set flow_validation: never",
        )


def _spark(world: World) -> Iterator[Problem]:
    java = world.controller.java
    wanting = [
        member
        for member in world.members
        if member.is_broker and member.text("flow_validation") not in ("", "never")
    ]
    if java is None or not wanting:
        return
    release = major(java.get("version"))
    if release in FOR_SPARK:
        return
    found_there = java.get("version") or ", ".join(java.get("seen") or []) or "no Java"
    always = any(member.text("flow_validation") == "always" for member in wanting)
    yield found(
        "java.spark",
        [member.name for member in wanting],
        "flow_validation",
        wanting[0].text("flow_validation"),
        f"Spark needs Java 17 or 21 on the controller, which has {found_there}",
        level=ERROR if always else WARNING,
    )

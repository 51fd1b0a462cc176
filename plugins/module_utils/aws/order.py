# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of aws_machines as an Order, or a refusal. Pure.

Private to this collection.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import (
    MEMBERS,
    NETWORK,
    OWN_TAGS,
    Machine,
    Order,
    Rule,
    Volume,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.plan_present import CONSENTS
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import parse_size_bytes

GIB = 2**30
PORT_MAX = 65535
_CLUSTER = re.compile(r"[A-Za-z0-9._-]{1,100}\Z")
_GROUP_OR_LIST = re.compile(r"(?:sg|pl)-[0-9a-z]+\Z")
_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?\Z")
_DEVICE = re.compile(r"/dev/\w+\Z")

# The module's options; their documentation is in the module.
_VOLUME: Dict[str, Any] = dict(
    size=dict(type="str", required=True),
    type=dict(type="str", default="gp3"),
    iops=dict(type="int"),
    throughput=dict(type="int"),
    encrypted=dict(type="bool", default=True),
)
MACHINE_OPTIONS: Dict[str, Any] = dict(
    name=dict(type="str", required=True),
    type=dict(type="str", required=True),
    image=dict(type="str", required=True),
    root_volume=dict(type="dict", required=True, options=_VOLUME),
    volumes=dict(
        type="list",
        elements="dict",
        default=[],
        options=dict(
            _VOLUME,
            device=dict(type="str", required=True),
            keep=dict(type="bool", default=True),
        ),
    ),
    groups=dict(type="list", elements="str", default=[]),
    subnet=dict(type="str", default=""),
    public_address=dict(type="bool", default=False),
    tags=dict(type="dict", default={}),
    user_data=dict(type="str", default=""),
    cores=dict(type="int"),
    memory=dict(type="str"),
)
ORDER_OPTIONS: Dict[str, Any] = dict(
    cluster=dict(type="str", required=True),
    state=dict(type="str", choices=["present", "absent"], default="present"),
    region=dict(type="str"),
    machines=dict(type="list", elements="dict", default=[], options=MACHINE_OPTIONS),
    rules=dict(
        type="list",
        elements="dict",
        default=[],
        options=dict(
            protocol=dict(type="str", choices=["tcp", "udp"], default="tcp"),
            ports=dict(type="str", required=True),
            sources=dict(type="list", elements="str", required=True),
            purpose=dict(type="str", default=""),
        ),
    ),
    subnets=dict(type="list", elements="str", default=[]),
    security_group=dict(type="str"),
    key_name=dict(type="str", default="", no_log=False),
    key_file=dict(type="path", default="", no_log=False),
    only=dict(type="list", elements="str"),
    allow=dict(type="list", elements="str", choices=list(CONSENTS), default=[]),
    operation_timeout=dict(type="float", default=300.0),
)


def order_from(options: Mapping[str, Any]) -> Order:
    """The order. Raises an AdminError for what cannot be one."""
    cluster = str(options["cluster"])
    if not _CLUSTER.match(cluster):
        reason, remedy = "no name of a cluster", "use letters, digits, `.`, `_` and `-` only"
        raise _bad("cluster", cluster, reason, remedy)
    machines = tuple(_machine(each) for each in options["machines"])
    names = [each.name for each in machines]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _bad("machines", ", ".join(twice), "named twice", "name each machine once")
    only = options["only"]
    if only is not None and options["state"] == "present" and set(only) - set(names):
        unknown = ", ".join(sorted(set(only) - set(names)))
        raise _bad("only", unknown, "not among the machines", "name machines of the order")
    purposes: Dict[Rule, List[str]] = {}
    for each in options["rules"]:
        for rule in _rules(each):
            known = purposes.setdefault(rule, [])
            known += [each["purpose"]] if each["purpose"] not in ("", *known) else []
    return Order(
        cluster=cluster,
        machines=machines,
        rules={rule: ", ".join(words) for rule, words in purposes.items()},
        subnets=tuple(options["subnets"]),
        group_name=options["security_group"] or f"kafkaops-{cluster}",
        key_name=options["key_name"],
        key_file=options["key_file"],
        only=None if only is None else frozenset(only),
        allow=frozenset(options["allow"]),
    )


def _bad(setting: str, value: str, reason: str, remedy: str, *subjects: str) -> AdminError:
    return AdminError(Problem("aws.bad_order", reason, remedy, subjects, setting, value))


def _machine(item: Mapping[str, Any]) -> Machine:
    name = item["name"]
    volumes = tuple(_volume(name, each, "volumes") for each in item["volumes"])
    devices = [each.device for each in volumes]
    for device in devices:
        if not _DEVICE.match(device):
            raise _bad("volumes.device", device, "no device", "write it like /dev/sdf", name)
        if devices.count(device) > 1:
            raise _bad("volumes.device", device, "named twice", "name each device once", name)
    own = sorted(set(item["tags"]) & set(OWN_TAGS))
    if own:
        reason = "these tags say which machine it is"
        raise _bad("tags", ", ".join(own), reason, "use other names for tags of your own", name)
    memory = item["memory"]
    return Machine(
        name=name,
        type=item["type"],
        image=item["image"],
        root=_volume(name, item["root_volume"], "root_volume"),
        volumes=volumes,
        groups=tuple(item["groups"]),
        subnet=item["subnet"],
        public_address=item["public_address"],
        tags=tuple(sorted((str(key), str(value)) for key, value in item["tags"].items())),
        user_data=item["user_data"],
        cores=item["cores"],
        memory_bytes=_bytes(name, "memory", memory) if memory else None,
    )


def _volume(name: str, item: Mapping[str, Any], setting: str) -> Volume:
    size = _bytes(name, f"{setting}.size", item["size"])
    if size <= 0 or size % GIB:
        reason, remedy = "EC2 counts volumes in whole GiB", "write it like 100GiB"
        raise _bad(f"{setting}.size", str(item["size"]), reason, remedy, name)
    return Volume(
        device=item.get("device", ""),
        size_gib=size // GIB,
        type=item["type"],
        iops=item["iops"],
        throughput=item["throughput"],
        encrypted=item["encrypted"],
        keep=item.get("keep", False),
    )


def _bytes(name: str, setting: str, value: Any) -> int:
    try:
        return parse_size_bytes(value)
    except ValueError as error:
        raise _bad(setting, str(value), str(error), "write it like 100GiB", name) from error


def _rules(item: Mapping[str, Any]) -> List[Rule]:
    first, last = _ports(str(item["ports"]))
    return [Rule(item["protocol"], first, last, source(each)) for each in item["sources"]]


def _ports(text: str) -> Tuple[int, int]:
    match = _PORTS.match(text.strip())
    first, last = (int(match.group(1)), int(match.group(2) or match.group(1))) if match else (0, 0)
    if not 0 < first <= last <= PORT_MAX:
        remedy = "write it like 9092 or 9092-9094"
        raise _bad("rules.ports", text, "no port and no range of ports", remedy)
    return first, last


def source(text: str) -> str:
    """A source of traffic in the one form in which it is compared. Raises an AdminError."""
    if text in (MEMBERS, NETWORK) or _GROUP_OR_LIST.match(text):
        return text
    try:
        return str(ipaddress.ip_network(text.strip()))
    except ValueError as error:
        exact: Optional[str] = None
        try:
            exact = str(ipaddress.ip_network(text.strip(), strict=False))
        except ValueError:
            pass
        remedy = (
            f"write {exact}, or the address with /32 or /128"
            if exact
            else f"write a network like 203.0.113.0/24, {MEMBERS}, {NETWORK}, sg-... or pl-..."
        )
        raise _bad("rules.sources", text, "not a source of traffic", remedy) from error


def of_group(group_id: Optional[str], text: str) -> str:
    """A source as EC2 says it, with the cluster's own group under its word."""
    return MEMBERS if group_id and text == group_id else text

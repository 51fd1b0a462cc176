# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Access rights as values: bindings, and the items of a playbook that stand for them. Pure.

Private to this collection. A Binding is one entry of Kafka's: one operation that one principal may do, or
may not, on one resource. An item of a playbook is many of them; `parse_acls` writes them out.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import re
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import did_you_mean
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import shown

CLUSTER_NAME = "kafka-cluster"
ANY = "*"
ALL = "all"
# What can be done on each kind of resource, beside `all`: Kafka's AclEntry.supportedOperations.
OPERATIONS: Dict[str, Tuple[str, ...]] = {
    "topic": (
        *("read", "write", "create", "describe", "delete", "alter"),
        *("describe_configs", "alter_configs"),
    ),
    "group": ("read", "describe", "delete", "describe_configs", "alter_configs"),
    "cluster": (
        *("create", "cluster_action", "describe_configs", "alter_configs"),
        *("idempotent_write", "alter", "describe"),
    ),
    "transactional_id": ("describe", "write", "two_phase_commit"),
    "delegation_token": ("describe",),
    "user": ("create_tokens", "describe_tokens"),
}
# The first Kafka that has an operation, of those that not all have. Brokers that do not know one close the connection.
OPERATIONS_SINCE = {"two_phase_commit": (4, 1)}
KNOWN_OPERATIONS = tuple(sorted({name for names in OPERATIONS.values() for name in names} | {ALL}))
PATTERNS = ("literal", "prefixed")
PERMISSIONS = ("allow", "deny")
GRANTS = ("read", "write")
STATES = ("present", "absent")
_PRINCIPAL = re.compile(r"[A-Za-z][A-Za-z0-9_]*:.+\Z", re.DOTALL)


NO_AUTHORIZER = Problem(
    "acls.no_authorizer",
    "the brokers have no authorizer, so that everybody may do everything",
    "set kafka_authorizer: true, or authorizer.class.name of the brokers",
)


@dataclass(frozen=True, order=True)
class Binding:
    """One entry: `principal` from `host` is allowed or denied one `operation` on a resource."""

    resource_type: str
    resource_name: str
    pattern: str
    principal: str
    permission: str
    operation: str
    host: str = ANY

    @property
    def resource(self) -> Tuple[str, str, str]:
        """(type, name, pattern): what it is about."""
        return self.resource_type, self.resource_name, self.pattern

    @property
    def subject(self) -> str:
        """The binding in words, one text for one binding: deny User:x read topic orders."""
        words = (self.permission, _shown(self.principal), self.operation)
        host = "" if self.host == ANY else f" from {_shown(self.host)}"
        return f"{' '.join(words)} {resource_words(self.resource)}{host}"

    def to_dict(self) -> Dict[str, str]:
        """As it stands in a plan."""
        return dict(vars(self))


@dataclass(frozen=True)
class Wanted:
    """A binding that an item asks for, or asks to remove. `granted`: it comes from a shorthand."""

    binding: Binding
    state: str
    granted: bool = False


def resource_words(resource: Tuple[str, str, str]) -> str:
    """A resource for people: topic orders, or topics that begin with orders."""
    kind, name, pattern = resource
    words = kind.replace("_", " ")
    if pattern == "prefixed":
        return f"{words}s that begin with {_shown(name)}"
    if kind == "cluster" and name == CLUSTER_NAME:
        return "cluster"
    return f"every {words}" if name == ANY else f"{words} {_shown(name)}"


def _shown(text: str) -> str:
    """A name as it is, in quotes where it would read as several words."""
    return text if re.match(r"[^\s\"]+\Z", text) else json.dumps(text, ensure_ascii=False)


def items_of(bindings: Iterable[Binding]) -> List[Dict[str, Any]]:
    """Bindings as items of `acls`: those that differ in the operation only are one item."""
    grouped: Dict[Tuple[str, ...], List[str]] = {}
    for binding in sorted(bindings):
        key = (*binding.resource, binding.principal, binding.host, binding.permission)
        grouped.setdefault(key, []).append(binding.operation)
    items = []
    for (kind, name, pattern, principal, host, permission), operations in sorted(grouped.items()):
        item: Dict[str, Any] = {kind: True if kind == "cluster" else name}
        if pattern != "literal":
            item["pattern"] = pattern
        item.update(principal=principal, host=host, permission=permission, operations=operations)
        items.append(item)
    return items


# ---------------------------------------------------------------- what people write


class _Wrong(Exception):
    """An item that cannot be read: (id, option, reason, remedy)."""


def parse_acls(items: Sequence[Any]) -> Tuple[List[Wanted], Tuple[Problem, ...]]:
    """The bindings of all items, each once, and a Problem for each item that cannot be read.

    The same binding twice is refused where both items name it; what a shorthand stands for may meet
    with another item's. Of a present and an absent one the present one stays if a shorthand asks to
    remove the other: consumers of two topics may share a group.
    """
    found: Dict[Binding, Wanted] = {}
    problems: List[Problem] = []
    for position, item in enumerate(items):
        try:
            for wanted in _read_item(item):
                first = found.get(wanted.binding)
                found[wanted.binding] = wanted if first is None else _both(first, wanted)
        except _Wrong as error:
            check, option, reason, remedy = error.args
            where = (f"acls[{position}]",)
            problems.append(Problem(check, reason, remedy, where, option, _written(item, option)))
    problems += _opposites(found)
    return list(found.values()), tuple(problems)


def _written(item: Any, option: str) -> Any:
    """The value of an option as somebody has written it, "" where there is no option."""
    return item.get(option) if option and isinstance(item, Mapping) else ""


def _both(first: Wanted, second: Wanted) -> Wanted:
    """What two items that name the same binding come to; _Wrong if they should not."""
    words = second.binding.subject
    if first.state == second.state:
        if not first.granted and not second.granted:
            raise _Wrong("acls.duplicate", "", f"a second item says {words}", "keep one of the two")
        return second if first.granted else first
    absent = first if first.state == "absent" else second
    if not absent.granted:
        reason = f"one item wants it and another one does not: {words}"
        raise _Wrong("acls.contradiction", "", reason, "keep one of the two")
    return second if absent is first else first


def _opposites(found: Mapping[Binding, Wanted]) -> List[Problem]:
    """A Problem for each binding that is allowed and denied alike: the denial wins."""
    present = {binding for binding, wanted in found.items() if wanted.state == "present"}
    problems = []
    for denied in sorted(each for each in present if each.permission == "deny"):
        allowed = replace(denied, permission="allow")
        if allowed in present:
            reason = "it is allowed and denied; Kafka would deny it"
            problems.append(
                Problem("acls.contradiction", reason, "keep one of the two", (allowed.subject,))
            )
    return problems


_KEYS = (
    *OPERATIONS,
    *("principal", "host", "pattern", "operations", "grant", "idempotent", "permission", "state"),
)


def _read_item(item: Any) -> List[Wanted]:
    if not isinstance(item, Mapping):
        remedy = "write it like {topic: orders, principal: 'User:app', operations: [read]}"
        raise _Wrong("acls.bad_item", "", f"it is {type(item).__name__}, not a mapping", remedy)
    given = {str(key): value for key, value in item.items() if value is not None}
    for key in given:
        if key not in _KEYS:
            raise _bad(key, f"there is no such option{did_you_mean(key, _KEYS)}")
    if "principal" not in given:
        raise _bad("principal", "somebody must be named", "write principal: User:name")
    principals = [_principal(text) for text in _texts("principal", given["principal"])]
    hosts = [_host(text) for text in _texts("host", given.get("host", ANY))]
    pattern = _choice("pattern", given.get("pattern", "literal"), PATTERNS)
    permission = _choice("permission", given.get("permission", "allow"), PERMISSIONS)
    state = _choice("state", given.get("state", "present"), STATES)
    resources = _resources(given)
    if "grant" in given:
        if "operations" in given:
            reason = "grant and operations are both given"
            raise _Wrong("acls.contradiction", "grant", reason, "keep one of the two")
        rights = _granted(given, resources, pattern, permission)
    else:
        rights = _named(given, resources, pattern)
    # the same words twice in one list are one
    made = dict.fromkeys(
        Binding(*resource, principal, permission, operation, host)
        for principal, host, (resource, operation) in itertools.product(principals, hosts, rights)
    )
    return [Wanted(binding, state, "grant" in given) for binding in made]


_Right = Tuple[Tuple[str, str, str], str]


def _named(
    given: Mapping[str, Any], resources: Mapping[str, List[str]], pattern: str
) -> List[_Right]:
    """(resource, operation) pairs of an item with `operations`."""
    if "operations" not in given:
        raise _bad("operations", "nothing is said about what", "name operations, or a grant")
    if "idempotent" in given:
        raise _bad("idempotent", "it belongs to grant: write", "leave it out")
    if len(resources) != 1:
        named = ", ".join(resources) or "none"
        reason = f"operations need one resource, and there is {named}"
        raise _bad("operations", reason, f"name one of {', '.join(OPERATIONS)}")
    ((kind, names),) = resources.items()
    if kind == "cluster" and pattern != "literal":
        raise _bad("pattern", "the cluster has one name only", "leave pattern out")
    operations = [_operation(text) for text in _texts("operations", given["operations"])]
    return [((kind, name, pattern), each) for name in names for each in operations]


def _granted(
    given: Mapping[str, Any],
    resources: Mapping[str, List[str]],
    pattern: str,
    permission: str,
) -> List[_Right]:
    """(resource, operation) pairs of an item with `grant`: what --consumer and --producer of Kafka's
    own tool add."""
    grants = [_choice("grant", text, GRANTS) for text in _texts("grant", given["grant"])]
    if permission != "allow":
        raise _bad("permission", "a grant allows", "name the operations that are denied")
    takes = {"topic": True, "group": "read" in grants, "transactional_id": "write" in grants}
    for kind in resources:
        if not takes.get(kind):
            reason = f"grant: {', '.join(grants)} has nothing to do with it"
            raise _bad(kind, reason, "leave it out, or make it an item with operations")
    if "topic" not in resources:
        raise _bad("topic", "a grant is one on topics", "name them")
    if given.get("idempotent") and "write" not in grants:
        raise _bad("idempotent", "it belongs to grant: write", "leave it out")
    rights: List[_Right] = []
    for grant, kind, operations in (
        ("read", "topic", ("read", "describe")),
        ("read", "group", ("read",)),
        ("write", "topic", ("write", "describe", "create")),
        ("write", "transactional_id", ("write", "describe")),
    ):
        for name in resources.get(kind, ()) if grant in grants else ():
            rights += [((kind, name, pattern), operation) for operation in operations]
    if given.get("idempotent"):
        rights.append((("cluster", CLUSTER_NAME, "literal"), "idempotent_write"))
    return rights


def _resources(given: Mapping[str, Any]) -> Dict[str, List[str]]:
    """Names by kind of resource, of what an item names."""
    found: Dict[str, List[str]] = {}
    for kind in OPERATIONS:
        if kind not in given or given[kind] is False:
            continue
        if kind == "cluster":
            if given[kind] is not True:
                raise _bad(kind, "it is true or false", "write cluster: true")
            found[kind] = [CLUSTER_NAME]
        elif kind == "user":
            found[kind] = [_principal(text) for text in _texts(kind, given[kind])]
        else:
            found[kind] = _texts(kind, given[kind])
    return found


def _bad(option: str, reason: str, remedy: str = "") -> _Wrong:
    remedy = remedy or "see `ansible-doc kafkaops.cluster.kafka_acls`"
    return _Wrong("acls.bad_value", option, reason, remedy)


def _texts(option: str, value: Any) -> List[str]:
    """A text or a list of texts; _Wrong for what YAML has read as something else."""
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    for each in values:
        if not isinstance(each, str):
            reason = (
                f"{json.dumps(each, default=str)} is not a text, YAML reads it as something else"
            )
            raise _bad(option, reason, "write it in quotes")
        if not each:
            raise _bad(option, "an empty text", "name something")
    if not values:
        raise _bad(option, "an empty list", "name something")
    return values


def _choice(option: str, value: Any, choices: Sequence[str]) -> str:
    if value not in choices:
        raise _bad(
            option, f"{shown(value)} is none of {', '.join(choices)}{did_you_mean(value, choices)}"
        )
    return str(value)


def _operation(text: str) -> str:
    """describe_configs, DescribeConfigs and DESCRIBE_CONFIGS are one."""
    letters = re.sub(r"[_\s-]", "", text).lower()
    for name in KNOWN_OPERATIONS:
        if name.replace("_", "") == letters:
            return name
    hint = did_you_mean(text.lower(), KNOWN_OPERATIONS)
    raise _bad("operations", f"there is no operation {text}{hint}")


def _principal(text: str) -> str:
    """Type:name; a name alone is a user, as in kafka_super_users."""
    if ":" not in text:
        return f"User:{text}"
    if not _PRINCIPAL.match(text):
        raise _bad("principal", f"{text} is not of the form User:name", "write User:name")
    return text


def _host(text: str) -> str:
    """A host as Kafka compares it: Java writes IPv6 in full, without leading zeros."""
    if ":" not in text:
        return text
    try:
        groups = ipaddress.IPv6Address(text).exploded.split(":")
    except ValueError:
        return text
    return ":".join(f"{int(group, 16):x}" for group in groups)


def is_address(host: str) -> bool:
    """Whether Kafka can ever see a client come from there: it compares addresses as texts."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == ANY
    return True


def known_principal_type(principal: str) -> Optional[str]:
    """The type that was probably meant where only the case differs, None where it is as it should."""
    kind = principal.partition(":")[0]
    return "User" if kind != "User" and kind.lower() == "user" else None


# The options of one item.
ACL_ITEM = dict(
    # raw: one text or several, and what YAML has read as something else must not pass as a text.
    # no_log: the id of a token is not a secret.
    **{kind: dict(type="raw", no_log=False) for kind in OPERATIONS if kind != "cluster"},
    cluster=dict(type="bool"),
    principal=dict(type="raw", required=True),
    host=dict(type="raw"),
    pattern=dict(type="str", choices=list(PATTERNS), default="literal"),
    operations=dict(type="raw"),
    grant=dict(type="list", elements="str", choices=list(GRANTS)),
    idempotent=dict(type="bool"),
    permission=dict(type="str", choices=list(PERMISSIONS), default="allow"),
    state=dict(type="str", choices=list(STATES), default="present"),
)

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of declared users, rights, quotas and dynamic settings, by the functions that their modules use. Pure.

What the running cluster says of them is not asked for here: the modules do, before they change anything.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, List, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.items import (
    ACL_ITEM,
    NO_AUTHORIZER,
    parse_acls,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.plan import (
    ACL_PURGE_OPTION,
    acl_purge_from,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.items import (
    CONFIG_ITEM,
    parse_configs,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.purge import (
    PURGE_OPTION,
    purge_from,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.plan import (
    QUOTA_ITEM,
    parse_quotas,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.items import (
    USER_ITEM,
    parse_users,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import (
    found,
    found_in_list,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.variables import (
    Fault,
    judged_for_module,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import World
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# Items as their module gets them to what they mean, and what is wrong with them.
Reader = Callable[[Sequence[Mapping[str, Any]]], Tuple[Any, Sequence[Problem]]]
# Variable to (module, the options of an item, what reads the items).
DECLARED: Mapping[str, Tuple[str, Mapping[str, Any], Reader]] = {
    "kafka_users": ("kafka_users", USER_ITEM, parse_users),
    "kafka_dynamic_configs": ("kafka_configs", CONFIG_ITEM, lambda items: parse_configs(items, ())),
    "kafka_acls": ("kafka_acls", ACL_ITEM, parse_acls),
    "kafka_quotas": ("kafka_quotas", QUOTA_ITEM, parse_quotas),
}

# Variable to (module, its option, what reads the value and raises AdminError).
PURGES: Mapping[str, Tuple[str, Mapping[str, Any], Callable[[Mapping[str, Any]], Any]]] = {
    "kafka_acls_purge": ("kafka_acls", ACL_PURGE_OPTION, acl_purge_from),
    "kafka_quotas_purge": ("kafka_quotas", PURGE_OPTION, purge_from),
}


def check_declared_state(world: World) -> Iterator[Problem]:
    """Every item as its module would read it, and that there is somebody to obey it."""
    for cluster in world.clusters:
        # One broker's list stands for the cluster's; that they are equal is another check.
        for member in cluster.brokers[:1]:
            hosts = [each.name for each in cluster.brokers]
            for variable, (module, item, read) in DECLARED.items():
                yield from _items(member, hosts, variable, module, item, read)
            for variable, (module, option, read_purge) in PURGES.items():
                yield from _purge(member, hosts, variable, module, option, read_purge)
            yield from _users_twice(member, hosts)
            yield from _no_authorizer(member, hosts)


def _items(
    member: Member,
    hosts: List[str],
    variable: str,
    module: str,
    item: Mapping[str, Any],
    read: Reader,
) -> Iterator[Problem]:
    option = {"type": "list", "elements": "dict", "options": item}
    typed, faults = judged_for_module(variable, list(member.items(variable)), option)
    yield from _told(hosts, faults, module)
    # Readers rely on the types of all items, and number them.
    for problem in () if faults else read(typed)[1]:
        yield found_in_list(problem, hosts, variable, typed)


def _purge(
    member: Member,
    hosts: List[str],
    variable: str,
    module: str,
    option: Mapping[str, Any],
    read: Callable[[Mapping[str, Any]], Any],
) -> Iterator[Problem]:
    if not member.mapping(variable):
        return  # none, which the role does not pass on
    typed, faults = judged_for_module(variable, member.mapping(variable), option)
    yield from _told(hosts, faults, module)
    if faults:
        return
    try:
        read(typed)
    except AdminError as error:
        told = error.problem
        # purge.principals, patterns
        place = f"{variable}.{told.setting.rpartition('.')[2]}"
        yield found(told.check, hosts, place, told.value, told.reason, told.remedy)


def _told(hosts: List[str], faults: Sequence[Fault], module: str) -> Iterator[Problem]:
    for each in faults:
        remedy = f"{each.remedy}; see `ansible-doc kafkaops.cluster.{module}`"
        yield found("state.bad_item", hosts, each.where, each.value, each.reason, remedy)


def _users_twice(member: Member, hosts: List[str]) -> Iterator[Problem]:
    sasl = member.get("kafka_sasl", {})
    others = (sasl.get("users") if isinstance(sasl, Mapping) else None) or {}
    known = {str(name) for name in others} if isinstance(others, Mapping) else set()
    known |= {str(sasl.get("inter_broker_user"))} if isinstance(sasl, Mapping) else set()
    for item in member.items("kafka_users"):
        name = item.get("name") if isinstance(item, Mapping) else None
        if isinstance(name, str) and name in known:
            reason = "this user is declared in kafka_sasl, too"
            yield found(
                "users.duplicate", hosts, "kafka_users", name, reason, "keep one of the two"
            )


def _no_authorizer(member: Member, hosts: List[str]) -> Iterator[Problem]:
    config = member.get("kafka_config", {})
    other = isinstance(config, Mapping) and config.get("authorizer.class.name")
    if member.items("kafka_acls") and not (member.get("kafka_authorizer") or other):
        told = NO_AUTHORIZER
        yield found(
            told.check, hosts, "kafka_acls", member.items("kafka_acls"), told.reason, told.remedy
        )

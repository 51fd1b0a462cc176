# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people write of dynamic settings: items, read into the settings of scopes. Pure.

Private to this collection.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.scopes import (
    BROKER,
    CLUSTER,
    LOGGERS,
    SCOPES,
    DesiredScope,
    Scope,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    canonical_value,
    reason_and_remedy,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    masked,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

Values = Dict[str, Optional[str]]


def parse_configs(
    items: Sequence[Mapping[str, Any]], live: Sequence[int]
) -> Tuple[Tuple[DesiredScope, ...], Tuple[Problem, ...]]:
    """What is declared for each scope, and a refusal for everything that is wrong with the items.

    `live` are the brokers of an item for loggers that names none.
    """
    settings: Dict[Scope, Values] = {}
    secrets: Dict[Scope, Values] = {}
    refusals: List[Problem] = []
    for position, item in enumerate(items):
        subject = f"configs[{position}]"
        wrong = _item_problem(item, subject)
        if wrong is not None:
            refusals.append(wrong)
            continue
        values, problems = _values(item, subject)
        refusals += problems
        for scope in _scopes(item, live):
            mine, hidden = settings.setdefault(scope, {}), secrets.setdefault(scope, {})
            twice = sorted(key for kind in values for key in kind if key in mine or key in hidden)
            twice += sorted(set(values[0]) & set(values[1]))
            refusals += [
                Problem(
                    "configs.duplicate", "named twice", "keep one of them", (scope.subject,), key
                )
                for key in twice
            ]
            mine.update(values[0])
            hidden.update(values[1])
    desired = [DesiredScope(scope, settings[scope], secrets[scope]) for scope in sorted(settings)]
    return tuple(desired), tuple(dict.fromkeys(refusals))


def _item_problem(item: Mapping[str, Any], subject: str) -> Optional[Problem]:
    kind, brokers = item["scope"], item.get("brokers")
    if kind == CLUSTER and brokers is not None:
        reason, remedy = "the default of the cluster is that of all brokers", "leave brokers out"
    elif kind == BROKER and not brokers:
        reason, remedy = "no broker is named", "name their ids in brokers, or use scope: cluster"
    elif kind == LOGGERS and brokers is not None and not brokers:
        reason, remedy = "the list of brokers is empty", "name their ids, or leave it out for all"
    elif kind == LOGGERS and item.get("secrets"):
        reason, remedy = "loggers have no secrets", "leave secrets out"
    elif item.get("state") == "absent" and not (item.get("settings") or item.get("secrets")):
        reason = "nothing is named that shall be absent"
        remedy = "name it in settings, or use config_mode: replace for all that is not named"
    else:
        return None
    return Problem("configs.bad_item", reason, remedy, (subject,), "scope", kind)


def _scopes(item: Mapping[str, Any], live: Sequence[int]) -> Iterator[Scope]:
    if item["scope"] == CLUSTER:
        yield Scope(CLUSTER)
        return
    brokers = item.get("brokers")
    for broker in sorted(set(live if brokers is None else brokers)):
        yield Scope(item["scope"], broker)


def _values(item: Mapping[str, Any], subject: str) -> Tuple[Tuple[Values, Values], List[Problem]]:
    """((settings, secrets) as Kafka's texts, what is wrong with them)."""
    absent = item.get("state") == "absent"
    both: Tuple[Values, Values] = ({}, {})
    problems = []
    for found, option in zip(both, ("settings", "secrets")):
        for name, value in (item.get(option) or {}).items():
            key = str(name)
            try:
                if absent or value is None:
                    found[key] = None
                elif option == "secrets":
                    found[key] = str(value)
                elif item["scope"] == LOGGERS:
                    found[key] = str(value).strip().upper()
                else:
                    found[key] = canonical_value(key, value)
            except ValueError as error:
                told = reason_and_remedy(error, f"correct {key}")
                where = f"{option}.{key}"
                problems.append(
                    Problem("config.bad_value", *told, (subject,), where, masked(key, value))
                )
    return both, problems


# The options of one item.
CONFIG_ITEM = dict(
    scope=dict(type="str", choices=list(SCOPES), required=True),
    brokers=dict(type="list", elements="int"),
    state=dict(type="str", choices=["present", "absent"], default="present"),
    settings=dict(type="dict"),
    secrets=dict(type="dict", no_log=True),
)

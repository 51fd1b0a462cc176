# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of running brokers, changed without a restart: ask, decide, let Kafka judge, set, read back.

Private to this collection. The glue between `plan_broker_settings`, which decides, and `client.kafka`, which
does. Brokers are independent of each other: where one refuses, the others change. Clock and sleep are
handed in.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, Protocol, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.plan_broker_settings import (
    Asked,
    Decision,
    Own,
    Step,
    Table,
    decide,
    unmet,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import ConfigEntry
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

POLL_SECONDS = 0.1


class Client(Protocol):
    """What is needed of client_kafka.KafkaClient."""

    def fetch_broker_configs(
        self, brokers: Iterable[int]
    ) -> Tuple[Dict[int, Dict[str, ConfigEntry]], Dict[int, str]]:
        """(settings by broker, why others did not tell theirs)."""

    def alter_broker_configs(
        self, changes: Mapping[int, Step], validate_only: bool = False
    ) -> Dict[int, str]:
        """Brokers that refuse, with their words."""


def parse_asked(brokers: Sequence[Mapping[str, Any]]) -> List[Asked]:
    """Read the module's option `brokers`."""
    return [
        Asked(
            int(each["id"]),
            {
                str(key): (_text(pair["before"]), _text(pair["after"]))
                for key, pair in each["settings"].items()
            },
            {
                str(key): Own(tuple(str(value) for value in mine["values"]), _text(mine["file"]))
                for key, mine in each["own"].items()
            },
        )
        for each in brokers
    ]


def _text(value: Any) -> Any:
    return None if value is None else str(value)


def change_brokers(
    client: Client,
    asked: Sequence[Asked],
    table: Table,
    check_mode: bool,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> List[Decision]:
    """Change what needs no restart (nothing in check mode); return the Decision of each broker."""
    told, silent = client.fetch_broker_configs(each.broker for each in asked)
    found: Dict[int, Decision] = {}
    for each in asked:
        if each.broker in told:
            found[each.broker] = decide(each, told[each.broker], table)
        else:
            reason = silent.get(each.broker, "it does not answer")
            found[each.broker] = Decision(
                each.broker, reasons=(f"its settings are unknown: {reason}",)
            )

    def refuse(refused: Mapping[int, str]) -> None:
        for broker, words in refused.items():
            found[broker] = Decision(broker, reasons=(f"Kafka refuses it: {words}",))

    refuse(client.alter_broker_configs(_requests(found, 0), validate_only=True))
    number = 0
    while not check_mode and _requests(found, number):
        refuse(client.alter_broker_configs(_requests(found, number)))
        late = _wait(client, _requests(found, number), seconds, clock, sleep)
        for broker, keys in late.items():
            reason = f"{', '.join(keys)} did not take effect within {seconds:g} s"
            found[broker] = Decision(broker, reasons=(reason,))
        number += 1
    return [found[each.broker] for each in asked]


def _requests(found: Mapping[int, Decision], number: int) -> Dict[int, Step]:
    return {
        broker: decision.steps[number]
        for broker, decision in found.items()
        if len(decision.steps) > number
    }


def _wait(
    client: Client,
    requests: Mapping[int, Step],
    seconds: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Dict[int, List[str]]:
    """Return what is not in effect at the end: broker -> keys."""
    late: Dict[int, List[str]] = {}

    def done() -> bool:
        told, _silent = client.fetch_broker_configs(requests)
        late.clear()
        for broker, step in requests.items():
            keys = unmet(step, told[broker]) if broker in told else sorted(step)
            if keys:
                late[broker] = keys
        return not late

    if requests:
        wait_until(done, seconds, clock, sleep, POLL_SECONDS)
    return late


def to_dict(decision: Decision) -> Dict[str, Any]:
    """What the module returns of one broker."""
    return {
        "broker": decision.broker,
        "live": decision.live,
        "changes": lines(decision),
        "own": dict(decision.own),
        "reasons": list(decision.reasons),
    }


def lines(decision: Decision) -> List[str]:
    """What is changed, in words."""
    return [
        (
            f"{key}: the override {decision.before[key]} is taken away"
            if value is None
            else f"{key} {decision.before[key]} -> {value}"
        )
        for key, value in decision.after.items()
    ]


def diff(decisions: Sequence[Decision]) -> Dict[str, Dict[str, Any]]:
    """Ansible's diff of what changes."""
    changing = [each for each in decisions if each.after]
    return {
        "before": {f"broker {each.broker}": dict(each.before) for each in changing},
        "after": {
            f"broker {each.broker}": {
                key: "(as in its file)" if value is None else value
                for key, value in each.after.items()
            }
            for each in changing
        },
    }


# The module's own options; their documentation is in the module.
OPTIONS = dict(
    brokers=dict(
        type="list",
        elements="dict",
        required=True,
        options=dict(
            id=dict(type="int", required=True),
            settings=dict(type="dict", default={}),
            own=dict(type="dict", default={}),
        ),
    ),
    keys=dict(type="dict", required=True, no_log=False),
    operation_timeout=dict(type="float", default=15.0),
)

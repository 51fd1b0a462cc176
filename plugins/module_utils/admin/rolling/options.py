# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate's question as options: of kafka_broker_gate, and of who asks once more right before the stop.

Private to this collection.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Mapping

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling import gate
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.ensemble_gate import (
    SERVER,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.gatekeeper import (
    NOBODY_LETS_IN,
    Question,
)

GATE_OPTIONS: Dict[str, Any] = dict(
    broker=dict(type="int"),
    brokers=dict(type="list", elements="int"),
    expected_brokers=dict(type="list", elements="int", default=[]),
    accept_unavailable=dict(type="list", elements="str", default=[]),
    voters=dict(type="list", elements="int", default=[]),
    zookeeper_servers=dict(type="list", elements="dict", default=[], options=SERVER),
    quiet_seconds=dict(type="float", default=3.0),
    wait_seconds=dict(type="float", default=300.0),
    progress=dict(type="path"),
)
# Keyword arguments of AnsibleModule that go with them.
GATE_RULES: Dict[str, Any] = dict(
    mutually_exclusive=[("broker", "brokers")],
    required_one_of=[("broker", "brokers")],
)


def question_of(params: Mapping[str, Any]) -> Question:
    """The Question of the options."""
    alone = params["broker"] is not None
    return Question(
        brokers=(params["broker"],) if alone else tuple(params["brokers"]),
        expected=tuple(params["expected_brokers"]),
        accepted=gate.parse_accepted(params["accept_unavailable"]),
        quiet_seconds=params["quiet_seconds"],
        wait_seconds=params["wait_seconds"],
        voters=tuple(params["voters"]),
        zookeeper=tuple(params["zookeeper_servers"]),
    )


def with_way_out(error: AdminError) -> AdminError:
    """The error; where nobody lets anybody in, with the option that restarts brokers all the same."""
    if error.problem.check in NOBODY_LETS_IN:
        remedy = (
            f"{error.problem.remedy}; if the restart itself is the cure, and no broker lets"
            f" anybody in: add `{gate.OPTION}{gate.EVERYTHING}`"
        )
        error.problem = replace(error.problem, remedy=remedy)
    return error

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which rules of a security group are opened, and which are closed. Pure.

Private to this collection. The group is to have exactly the rules of the order. A rule that we made
and that is no longer ordered is closed. A rule that somebody else made is shown, and closed only with
consent: it may be the only way in for somebody.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import (
    NETWORK,
    Group,
    Rule,
    SeenRule,
)

OPEN, CLOSE = "open", "close"


def expanded(rules: Mapping[Rule, str], network_addresses: Sequence[str]) -> Dict[Rule, str]:
    """The rules with the word `network` replaced by the network's addresses, sorted."""
    found: Dict[Rule, str] = {}
    for rule, why in sorted(rules.items()):
        sources = network_addresses if rule.source == NETWORK else [rule.source]
        for source in sources:
            each = Rule(rule.protocol, rule.first, rule.last, source)
            found[each] = f"{found[each]}, {why}" if each in found else why
    return dict(sorted(found.items()))


def subject(rule: Rule) -> str:
    """The rule as a subject of a plan."""
    return f"rule {rule.text()}"


def plan_rules(
    wanted: Mapping[Rule, str], group: Optional[Group], close_foreign: bool
) -> Tuple[Tuple[Change, ...], Tuple[SeenRule, ...]]:
    """(changes, foreign rules that stay); `wanted` are `expanded` rules."""
    seen = group.rules if group else ()
    there = {each.rule for each in seen}
    changes: List[Change] = [
        Change(OPEN, subject(rule), {}, {"for": why})
        for rule, why in wanted.items()
        if rule not in there
    ]
    foreign: List[SeenRule] = []
    for each in sorted(seen, key=lambda one: (one.rule, one.id)):
        if each.rule in wanted:
            continue
        if each.ours or close_foreign:
            note = "" if each.ours else "somebody else made this rule"
            before = {"for": each.description or "(no description)"}
            changes.append(Change(CLOSE, subject(each.rule), before, {}, note))
        else:
            foreign.append(each)
    return tuple(changes), tuple(foreign)

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom a client quota concerns: a user, a client id, both, or an address, and the default of each.

Private to this collection. Pure values, for those who plan quotas and those who send them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Dict, Mapping, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import DELETE
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change

# How an item names the default of a kind; Kafka's own documentation writes it like that.
DEFAULT = "<default>"
# The options of an item, and the protocol's names of the kinds, in the order in which they are shown.
KINDS = {"user": "user", "client_id": "client-id", "ip": "ip"}
_PLAIN = re.compile(r"[^\s,=\"<>]+\Z")


@dataclass(frozen=True, order=True)
class Entity:
    """Whom a quota concerns. None: nobody of that kind, DEFAULT: everybody without one of their own."""

    user: Optional[str] = None
    client_id: Optional[str] = None
    ip: Optional[str] = None

    @property
    def parts(self) -> Dict[str, str]:
        """Those of KINDS that it has."""
        both = {kind: getattr(self, kind) for kind in KINDS}
        return {kind: name for kind, name in both.items() if name is not None}

    @property
    def subject(self) -> str:
        """The entity in one text; no two have the same."""
        return ", ".join(f"{KINDS[kind]}={_shown(name)}" for kind, name in self.parts.items())


def _shown(name: str) -> str:
    return name if name == DEFAULT or _PLAIN.match(name) else json.dumps(name, ensure_ascii=False)


Limits = Mapping[str, float]


_PART = re.compile(r'(?P<kind>user|client-id|ip)=(?P<name>"(?:[^"\\]|\\.)*"|[^\s,]+)(?:, |\Z)')


def entity_of(subject: str) -> Entity:
    """The Entity of a subject, as Entity.subject writes it."""
    options = {name: option for option, name in KINDS.items()}
    found = {options[part["kind"]]: part["name"] for part in _PART.finditer(subject)}
    return Entity(
        **{kind: json.loads(name) if name.startswith('"') else name for kind, name in found.items()}
    )


def operations(change: Change) -> Dict[str, Optional[float]]:
    """What is sent for a change: limit to value, None takes it away."""
    return dict(change.after) if change.kind != DELETE else dict.fromkeys(change.before)

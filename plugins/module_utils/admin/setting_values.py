# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of settings: Kafka's text for what YAML hands over, and whether two mean the same.

Private to this collection. Pure.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    Unclear,
    parse_duration_ms,
    parse_size_bytes,
)

INTEGER = re.compile(r"-?[0-9]+\Z")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE]-?[0-9]+)?\Z")
# Of topics; set and taken away by whoever moves replicas: a reassignment that runs may rely on them.
THROTTLED_REPLICAS = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
# Order means nothing to Kafka in these.
_LIST_KEYS = frozenset(("cleanup.policy", *THROTTLED_REPLICAS))
_CLEANUP_CHOICES = ("delete", "compact", "compact,delete")
CLEANUP_REMEDY = "use delete, compact, or compact,delete"


def reason_and_remedy(error: ValueError, remedy: str) -> Tuple[str, str]:
    """What is wrong with a value, and what to write; `remedy` where the reader says only the first."""
    return error.args if isinstance(error, Unclear) else (str(error), remedy)


def cleanup_policy(value: Any) -> str:
    """Kafka's text for a cleanup policy, a text or a list; ValueError for one that does not exist."""
    parts = value if isinstance(value, (list, tuple)) else str(value).split(",")
    policy = ",".join(sorted(str(part).strip() for part in parts))
    if policy not in _CLEANUP_CHOICES:
        raise ValueError("not a cleanup policy")
    return policy


def canonical_value(key: str, value: Any) -> Optional[str]:
    """Kafka's string for a value as YAML gives it; None stays None (back to the default).

    Booleans become true/false, lists are joined by commas, `7d` and `512MiB` are read where the
    key ends in `.ms` or `.bytes`. Raises ValueError with a sentence.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(canonical_value(key, item)) for item in value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a number that Kafka knows")
        return str(int(value)) if value == int(value) else repr(value)
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        # Not the value itself: it may be a secret.
        kind = "mapping" if isinstance(value, dict) else type(value).__name__
        raise ValueError(f"a value must be a text, number, boolean or list, not a {kind}")
    text = value.strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    if INTEGER.match(text):
        return str(int(text))
    if key.endswith(".ms"):
        return str(parse_duration_ms(text))
    if key.endswith(".bytes"):
        return str(parse_size_bytes(text))
    if key in _LIST_KEYS:
        return ",".join(part.strip() for part in text.split(",") if part.strip())
    return text


def same_value(key: str, one: Optional[str], other: Optional[str]) -> bool:
    """Whether two canonical values mean the same to Kafka: 0.5 and 0.50, a,b and b,a."""
    if one == other:
        return True
    if one is None or other is None:
        return False
    if _NUMBER.match(one) and _NUMBER.match(other):
        return Decimal(one) == Decimal(other)
    if key in _LIST_KEYS:
        return set(one.split(",")) == set(other.split(","))
    return one.lower() == other.lower() and one.lower() in ("true", "false")

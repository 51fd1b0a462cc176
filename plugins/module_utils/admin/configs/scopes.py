# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a setting of brokers can be set while they run, and what overrides what.

Private to this collection. Pure values. Kafka looks for a setting at the broker itself, then in the
default of the whole cluster, then in the broker's file, and takes its own default last.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, FrozenSet, Mapping, NamedTuple, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Stake
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import HIDDEN, masked

CLUSTER, BROKER, LOGGERS = "cluster", "broker", "loggers"
SCOPES = (CLUSTER, BROKER, LOGGERS)
# What beats what, by the names of sources.
PRECEDENCE = ("broker", "cluster", "static", "default")
ROOT = "root"
# Set and taken away by whoever moves replicas: a reassignment that runs may rely on them.
THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


@dataclass(frozen=True, order=True)
class Scope:
    """The default of all brokers, the overrides of one, or the levels of its loggers."""

    kind: str
    broker: Optional[int] = None

    @property
    def subject(self) -> str:
        """The scope for people: cluster default, broker 1, loggers of broker 1."""
        if self.kind == CLUSTER:
            return "cluster default"
        return f"{'' if self.kind == BROKER else 'loggers of '}broker {self.broker}"


class Level(NamedTuple):
    """One of the places that a setting has a value in; `value` is None for a secret."""

    source: str
    value: Optional[str]


@dataclass(frozen=True)
class Setting:
    """A setting of one broker, with everything that could be in force, the strongest first."""

    name: str
    levels: Tuple[Level, ...] = ()
    sensitive: bool = False
    read_only: bool = False

    @property
    def value(self) -> Optional[str]:
        """The value in force, None for a secret or if there is none."""
        return self.levels[0].value if self.levels else None

    @property
    def source(self) -> str:
        """Where it comes from."""
        return self.levels[0].source if self.levels else "default"

    def at(self, source: str) -> Optional[Level]:
        """What is set at one place, None if nothing is."""
        return next((each for each in self.levels if each.source == source), None)

    def with_level(self, source: str, value: Optional[str], present: bool) -> "Setting":
        """The setting with another value at one place, or with none there."""
        rest = [each for each in self.levels if each.source != source]
        if present:
            rest.append(Level(source, value))
        order = {name: index for index, name in enumerate(PRECEDENCE)}
        rest.sort(key=lambda each: order.get(each.source, len(order)))
        return replace(self, levels=tuple(rest))

    def to_dict(self) -> Dict[str, Any]:
        """As modules return it; `overridden` are the values that would follow."""
        return {
            "name": self.name,
            "value": shown(self, self.value),
            "source": self.source,
            "read_only": self.read_only,
            "overridden": [
                {"source": each.source, "value": shown(self, each.value)}
                for each in self.levels[1:]
            ],
        }


@dataclass(frozen=True)
class DesiredScope:
    """What is declared for one scope. A value of None is taken away."""

    scope: Scope
    settings: Mapping[str, Optional[str]] = field(default_factory=dict)
    secrets: Mapping[str, Optional[str]] = field(default_factory=dict)


def shown(setting: Setting, value: Optional[str]) -> Optional[str]:
    """A value as it may be shown."""
    if setting.sensitive:
        return HIDDEN if setting.levels else None
    return masked(setting.name, value)


Settings = Mapping[str, Setting]


@dataclass(frozen=True)
class ConfigsSnapshot:
    """What was read from all live brokers, at one moment.

    `cluster`: the defaults of all brokers; `loggers`: broker to logger to level. `stake` is how much the
    topics hold that have no value of their own, `stake_topics` are their names. `fixed`: defaults of all brokers
    that the controllers themselves need, and that nobody can take away.
    """

    cluster_id: Optional[str] = None
    brokers: Mapping[int, Settings] = field(default_factory=dict)
    cluster: Settings = field(default_factory=dict)
    loggers: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    stake: Optional[Stake] = None
    stake_topics: Tuple[str, ...] = ()
    fixed: FrozenSet[str] = frozenset()


def inherited_level(levels: Mapping[str, str], logger: str) -> Optional[str]:
    """The level of the next logger above, which one without a level of its own has."""
    above = logger
    while "." in above:
        above = above.rpartition(".")[0]
        if above in levels:
            return levels[above]
    return levels.get(ROOT)

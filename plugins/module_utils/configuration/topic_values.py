# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Settings of a topic that brokers refuse together, though each alone is legal.

The rules are those of Kafka's LogConfig (validateTopicLogConfigValues). Pure.
"""

from __future__ import annotations

from typing import Callable, Iterator, Mapping, NamedTuple, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.units import whole_number

REMOTE = "remote.storage.enable"
REMOTE_SYSTEM = "remote.log.storage.system.enable"
GIVEN_UP = "remote.log.delete.on.disable"
# Of local.retention.*: as much as is kept at all.
_AS_ALL = -2


class Contradiction(NamedTuple):
    """The setting to change, its value, why brokers refuse it, and what to write."""

    key: str
    value: str
    reason: str
    remedy: str


def contradictions(
    effective: Callable[[str], Optional[str]], tiered: bool, was_remote: bool = False
) -> Iterator[Contradiction]:
    """What brokers refuse of a topic's settings together.

    `effective` returns the value of a key that the topic would have, None where it is not known.
    `tiered`: the brokers have a remote storage; `was_remote`: the topic uses it now.
    """
    low, high = (whole_number(effective(f"{end}.compaction.lag.ms")) for end in ("min", "max"))
    if low is not None and high is not None and low > high:
        yield Contradiction(
            "min.compaction.lag.ms",
            str(low),
            f"more than max.compaction.lag.ms={high}",
            f"give at most {high}, or raise max.compaction.lag.ms",
        )
    if effective(REMOTE) == "true":
        yield from _of_remote_topics(effective, tiered)
    elif was_remote and effective(GIVEN_UP) != "true":
        yield Contradiction(
            REMOTE,
            str(effective(REMOTE)),
            "the topic has records in the remote storage, and brokers do not leave them there",
            f"set {GIVEN_UP}: true as well, which deletes them, or keep {REMOTE}: true",
        )


def _of_remote_topics(
    effective: Callable[[str], Optional[str]], tiered: bool
) -> Iterator[Contradiction]:
    if not tiered:
        yield Contradiction(
            REMOTE,
            "true",
            f"the brokers have no remote storage ({REMOTE_SYSTEM} is not true)",
            f"leave it out, or set {REMOTE_SYSTEM} and its plug-in in kafka_config first",
        )
    policy = effective("cleanup.policy")
    if policy not in (None, "delete"):
        yield Contradiction(
            REMOTE,
            "true",
            f"cleanup.policy is {policy}, and only topics with delete can be in a remote storage",
            f"set cleanup.policy: delete, or leave {REMOTE} out",
        )
    for unit in ("ms", "bytes"):
        key, whole = f"local.retention.{unit}", whole_number(effective(f"retention.{unit}"))
        local = whole_number(effective(key))
        if local is None or whole is None or local == _AS_ALL or whole < 0:
            continue
        if local < 0 or local > whole:
            yield Contradiction(
                key,
                str(local),
                f"more than retention.{unit}={whole}",
                f"give at most {whole}, or {_AS_ALL} for the same",
            )


def value_of(
    key: str,
    own: Mapping[str, Optional[str]],
    of_brokers: Callable[[str], Optional[str]],
    table: Mapping[str, Mapping[str, str]],
) -> Optional[str]:
    """What a topic has: its own value, else what the brokers' settings make of it, else Kafka's default."""
    if own.get(key) is not None:
        return own[key]
    given = of_brokers(key)
    return table.get(key, {}).get("default") if given is None else given

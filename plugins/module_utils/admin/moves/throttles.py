# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Throttles of replication: whose each is, what to set before replicas move, what to take away after.

Private to this collection. Pure. Nothing but the throttle itself tells a later run who has set it, and a killed run
must be cleared up after by the next. So ours bear a mark in their spelling: a leading zero, as in `052428800` or
`00:1`. Kafka keeps the text and reads the same number; neither its tools nor people write one. Invariants:

* what is marked goes, one rate and one replica at a time, also after a kill and by any later run;
* what is not marked stays, unless it is the throttle of a move that this run finishes or cancels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key

LEADER, FOLLOWER = "leader", "follower"
RATES = tuple(f"{side}.replication.throttled.rate" for side in (LEADER, FOLLOWER))
REPLICAS = tuple(f"{side}.replication.throttled.replicas" for side in (LEADER, FOLLOWER))
# In a list: all replicas of the topic.
ALL = "*"
MARK = "0"

S = TypeVar("S", int, str)
# Keys to what to set them to; None takes away.
Settings = Dict[str, Optional[str]]
# What to set on brokers and on topics so that they have no throttle of ours.
Removals = Tuple[Dict[int, Settings], Dict[str, Settings]]


@dataclass(frozen=True)
class Throttles:
    """Throttles of replication as the cluster has them: broker id or topic to {key: value}."""

    brokers: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    topics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def is_ours(text: str) -> bool:
    """Whether a rate, or a replica of a list, bears our mark."""
    return len(text) > 1 and text.startswith(MARK) and text[1].isdigit()


def rates_of(rate: int) -> Dict[str, str]:
    """The settings of a broker for so many bytes a second, marked as ours."""
    return dict.fromkeys(RATES, f"{MARK}{rate}")


def throttled_lists(
    moves: Mapping[Key, Tuple[Sequence[int], Sequence[int]]],
) -> Dict[str, Dict[str, str]]:
    """Topic to its throttle settings, marked as ours, for partitions with (who may send, who receives)."""
    lists: Dict[str, Tuple[List[str], List[str]]] = {}
    for (topic, partition), (senders, receivers) in sorted(moves.items()):
        if receivers:
            leaders, followers = lists.setdefault(topic, ([], []))
            leaders += [f"{MARK}{partition}:{broker}" for broker in senders]
            followers += [f"{MARK}{partition}:{broker}" for broker in receivers]
    return {
        topic: dict(zip(REPLICAS, (",".join(leaders), ",".join(followers))))
        for topic, (leaders, followers) in lists.items()
    }


def of_moves(found: Throttles, moving: Mapping[Key, Sequence[int]]) -> Throttles:
    """What somebody else has set for moves that are under way, of which these are all replicas.

    That goes with the moves: the lists of their topics, of which other partitions may have arrived by now; and the
    rates of the brokers in them, if nothing else is listed that they could be for. Where a replica of a partition
    bears our mark, the move is ours, and what somebody else has set there is not for it.
    """
    topics: Dict[str, Dict[str, str]] = {}
    brokers: Set[int] = set()
    for topic, keys in found.topics.items():
        listed = {name: _replicas(topic, text) for name, text in keys.items()}
        ours = {key for entry, key, _broker in chain(*listed.values()) if is_ours(entry)}
        strange = {
            name: [each for each in replicas if each[1] not in ours]
            for name, replicas in listed.items()
        }
        concerned = [(key, broker) for _entry, key, broker in chain(*strange.values())]
        if not any(broker in moving.get(key, ()) for key, broker in concerned):
            continue
        for key, broker in concerned:
            brokers |= {broker, *moving.get(key, ())}
        topics[topic] = {
            name: ",".join(entry for entry, _key, _broker in replicas)
            for name, replicas in strange.items()
            if replicas
        }
    if not topics or of_others(Throttles({}, found.topics), Throttles({}, topics)).topics:
        return Throttles({}, topics)
    rates = {}
    for broker in sorted(brokers & set(found.brokers)):
        theirs = {key: rate for key, rate in found.brokers[broker].items() if not is_ours(rate)}
        if theirs:
            rates[broker] = theirs
    return Throttles(rates, topics)


def of_others(found: Throttles, taken: Throttles = Throttles()) -> Throttles:
    """What stays: what is not marked, and not `taken` over with somebody's moves."""
    brokers: Dict[int, Dict[str, str]] = {}
    for broker, keys in found.brokers.items():
        taken_rates = taken.brokers.get(broker, {})
        for key, rate in keys.items():
            if not is_ours(rate) and taken_rates.get(key) != rate:
                brokers.setdefault(broker, {})[key] = rate
    topics: Dict[str, Dict[str, str]] = {}
    for topic, keys in found.topics.items():
        for key, text in keys.items():
            gone = taken.topics.get(topic, {}).get(key, "").split(",")
            entries = [entry for entry in _of_others(text) if entry not in gone]
            if entries:
                topics.setdefault(topic, {})[key] = ",".join(entries)
    return Throttles(brokers, topics)


def removals(found: Throttles, taken: Throttles = Throttles()) -> Removals:
    """What to set so that only what stays is left. A list of which a part stays is set to that."""
    stays = of_others(found, taken)
    return _back(found.brokers, stays.brokers), _back(found.topics, stays.topics)


def additions(
    found: Throttles,
    taken: Throttles,
    rate: int,
    brokers: Iterable[int],
    lists: Mapping[str, Mapping[str, str]],
) -> Throttles:
    """What these brokers and topics must have while replicas move: ours, beside what stays of others.

    A rate of somebody else is kept, and copies go at that; so is a list of all replicas, which needs no more.
    """
    stays = of_others(found, taken)
    rates = {
        broker: {
            key: text
            for key, text in rates_of(rate).items()
            if key not in stays.brokers.get(broker, {})
        }
        for broker in brokers
    }
    topics: Dict[str, Dict[str, str]] = {}
    for topic, keys in lists.items():
        theirs = stays.topics.get(topic, {})
        topics[topic] = {
            key: ",".join(filter(None, (theirs.get(key), text)))
            for key, text in keys.items()
            if ALL not in theirs.get(key, "").split(",")
        }
    return Throttles(rates, topics)


def missing(found: Throttles, wanted: Throttles) -> Throttles:
    """What of the wanted is not there yet."""
    return Throttles(_missing(found.brokers, wanted.brokers), _missing(found.topics, wanted.topics))


def lacking(
    found: Throttles,
    brokers: Iterable[int],
    moves: Mapping[Key, Tuple[Sequence[int], Sequence[int]]],
) -> Set[str]:
    """Brokers without a rate, and topics whose lists lack a replica of these partitions; whose the throttle is does
    not matter. `moves`: partitions with (who may send, who receives), as of `throttled_lists`."""
    subjects = {
        broker_name(broker)
        for broker in brokers
        if not set(RATES) <= set(found.brokers.get(broker, {}))
    }
    for (topic, partition), sides in moves.items():
        texts = [found.topics.get(topic, {}).get(key, "") for key in REPLICAS]
        for text, side in zip(texts, sides):
            listed = {(key, broker) for _entry, key, broker in _replicas(topic, text)}
            wanted = {((topic, partition), broker) for broker in side}
            if ALL not in text.split(",") and not wanted <= listed:
                subjects.add(topic_name(topic))
    return subjects


def broker_name(broker: int) -> str:
    """The subject of a broker's throttle, for people."""
    return f"broker {broker}"


def topic_name(topic: str) -> str:
    """The subject of a topic's throttle, for people."""
    return f"topic {topic}"


def before(found: Throttles, taken: Throttles, set_now: Throttles) -> Removals:
    """What brings back what was there before these were set, but for what is taken over."""
    stays = of_others(found, taken)
    return (
        {
            broker: {key: stays.brokers.get(broker, {}).get(key) for key in keys}
            for broker, keys in set_now.brokers.items()
        },
        {
            topic: {key: stays.topics.get(topic, {}).get(key) for key in keys}
            for topic, keys in set_now.topics.items()
        },
    )


def unseen(own: Removals, told: Throttles) -> Removals:
    """Of what this run must bring back, that of which brokers do not tell yet that it was set.

    What they tell is decided by what it is: somebody may have set something else over ours.
    """
    return _unseen(own[0], told.brokers), _unseen(own[1], told.topics)


def foreign_warning(stays: Throttles) -> List[str]:
    """One warning of what somebody else has throttled, or none."""
    names = [f"broker {broker}" for broker in sorted(stays.brokers)]
    names += [f"topic {topic}" for topic in sorted(stays.topics)]
    if not names:
        return []
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return [
        f"{', '.join(names[:5])}{more}: somebody else has throttled replication there, and that stays; where it is "
        "the rate of a broker, replicas are copied at that. If nobody needs it, remove it with kafka-configs.sh"
    ]


def _replicas(topic: str, text: str) -> List[Tuple[str, Key, int]]:
    """(entry, partition, broker) of a topic's list; nothing of an entry for all replicas."""
    parted = [(entry, *entry.partition(":")[::2]) for entry in text.split(",")]
    return [
        (entry, (topic, int(partition)), int(broker))
        for entry, partition, broker in parted
        if broker.isdigit() and partition.isdigit()
    ]


def _of_others(text: str) -> List[str]:
    """The entries of a list that are not marked."""
    return [entry for entry in text.split(",") if entry and not is_ours(entry)]


def _back(
    found: Mapping[S, Mapping[str, str]], stays: Mapping[S, Mapping[str, str]]
) -> Dict[S, Settings]:
    wanted: Dict[S, Settings] = {}
    for subject, keys in found.items():
        left = stays.get(subject, {})
        changed: Settings = {
            key: left.get(key) for key, value in keys.items() if left.get(key) != value
        }
        if changed:
            wanted[subject] = changed
    return wanted


def _missing(
    found: Mapping[S, Mapping[str, str]], wanted: Mapping[S, Mapping[str, str]]
) -> Dict[S, Dict[str, str]]:
    lacking = {}
    for subject, keys in wanted.items():
        there = found.get(subject, {})
        new = {key: value for key, value in keys.items() if there.get(key) != value}
        if new:
            lacking[subject] = new
    return lacking


def _unseen(own: Mapping[S, Settings], told: Mapping[S, Mapping[str, str]]) -> Dict[S, Settings]:
    hidden = {}
    for subject, keys in own.items():
        there = told.get(subject, {})
        mine = {key: value for key, value in keys.items() if there.get(key) in (None, value)}
        if mine:
            hidden[subject] = mine
    return hidden

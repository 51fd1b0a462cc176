# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What kind of cluster it is: its mode, its brokers' versions, its settings that matter here.

Who reads a verdict a year later wants to know them. They judge nothing, so a principal that may not ask
costs the answer and no verdict; but for the topic's settings of each broker, which the judge compares with later ones.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Mapping, Optional

from flow.prepare.cluster import Cluster

KRAFT, ZOOKEEPER = "kraft", "zookeeper"
_ROLES, _ZOOKEEPER, _PROTOCOL = (
    "process.roles",
    "zookeeper.connect",
    "inter.broker.protocol.version",
)
_ASKED = (_ROLES, _ZOOKEEPER, _PROTOCOL)
_OF_TOPIC = ("unclean.leader.election.enable", "compression.type", "cleanup.policy")
_ANSWERS_SECONDS = 5.0  # all brokers together: one that is dead shall not keep the others' answers


def mode_of(settings: Mapping[str, Optional[str]]) -> Optional[str]:
    """kraft or zookeeper, by a broker's settings; None where they do not say it."""
    if settings.get(_ROLES):
        return KRAFT
    return ZOOKEEPER if settings.get(_ZOOKEEPER) else None


def told(
    brokers: Mapping[int, str],
    asked: Mapping[int, Mapping],
    of_topic: Mapping,
    known: Mapping,
    applied: Mapping[int, Mapping] = MappingProxyType({}),
) -> dict:
    """The part `cluster` of verdict.json. brokers: id -> address; asked: broker -> its settings, of
    those that answered; known: broker -> release, of those that somebody has told; applied: broker -> the topic's
    settings as that broker has them, of those that hold replicas and told.
    """
    modes = {mode_of(each) for each in asked.values()} - {None}
    return {
        "mode": modes.pop() if len(modes) == 1 else None,
        "brokers": [
            {
                "broker": number,
                "version": known.get(number),
                # what brokers say to each other; the release itself no request tells
                "protocol": (asked.get(number) or {}).get(_PROTOCOL),
                "topic_settings": dict(applied.get(number, {})),
            }
            for number in brokers
        ],
        "topic_settings": {name: of_topic[name] for name in _OF_TOPIC if name in of_topic},
    }


def look(
    cluster: Cluster, brokers: Mapping[int, str], topic: str, known: Mapping, applied: Mapping
) -> dict:
    """Ask for all that; see `told`."""
    asked = cluster.settings_of_brokers(list(brokers), _ASKED, _ANSWERS_SECONDS)
    return told(brokers, asked, cluster.effective_config(topic, _OF_TOPIC), known, applied)

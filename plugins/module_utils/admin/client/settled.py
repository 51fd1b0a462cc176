# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether every live broker knows of changes that were made to topics.

Private to this collection. The next module may ask any broker, and they hear of a change one after another. Each is
asked by kafka-python, for the topics and settings that have changed and for nothing else: librdkafka chooses itself
which broker tells of topics, and always asks for all settings, some thirty of each topic.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.answers import SOURCES
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    PythonClient,
    raise_for,
    send_to_each,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    CONFIGURE,
    CREATE,
    DELETE,
    GROW,
    Snapshot,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    same_value,
)

try:
    from kafka.admin import ConfigResourceType
    from kafka.protocol.admin import DescribeConfigsRequest
    from kafka.protocol.metadata import MetadataRequest
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

# Few bytes of each: a name, and the settings that have changed.
ASKED_AT_ONCE = 10_000
READING = "Describe and DescribeConfigs on the topics"
# Of a topic that is there, and has partitions without a leader.
_LEADER_NOT_AVAILABLE = 5
_UNKNOWN_TOPIC = 3

# A setting's value, and whether the topic itself has it.
Value = Tuple[Optional[str], bool]


@dataclass
class Told:
    """What one broker tells: partitions with a leader of each topic that is there, and settings by topic and key."""

    led: Dict[str, int] = field(default_factory=dict)
    settings: Dict[str, Dict[str, Value]] = field(default_factory=dict)


def unsettled(client: PythonClient, changes: Sequence[Change]) -> Dict[str, str]:
    """Return what is not yet true of applied changes, for any live broker: subject to a few words.

    A broker that is registered and silent is for others to worry about, while another one answers.
    AdminError if none does.
    """
    snapshot = client.fetch_metadata()
    # One question to one broker, until it knows all.
    waiting = _not_there(_led(snapshot), changes)
    if waiting or not changes:
        return waiting
    for told in _told_by_each(client, [broker.id for broker in snapshot.brokers], changes):
        waiting.update(not_yet(told, changes))
    return waiting


def not_yet(told: Told, changes: Iterable[Change]) -> Dict[str, str]:
    """Return the changes that one broker does not tell of: subject to a few words."""
    # A topic whose settings alone have changed was there before.
    waiting = _not_there(told.led, [each for each in changes if each.kind != CONFIGURE])
    for change in changes:
        if change.kind == CONFIGURE and change.subject not in waiting:
            settings = told.settings.get(change.subject, {})
            wrong = [
                key
                for key, value in change.after["config"].items()
                if not _took(settings.get(key), key, value)
            ]
            if wrong:
                waiting[change.subject] = f"{', '.join(sorted(wrong))} not yet in force"
    return waiting


def _not_there(led: Mapping[str, int], changes: Iterable[Change]) -> Dict[str, str]:
    """Changes that a list of topics does not show: subject to a few words."""
    waiting = {}
    for change in changes:
        number = led.get(change.subject)
        if change.kind == DELETE:
            if number is not None:
                waiting[change.subject] = "still there"
        elif number is None:
            waiting[change.subject] = "not there yet"
        elif change.kind in (CREATE, GROW):
            expected = change.after["partitions"] or 1
            if number < expected:
                waiting[change.subject] = f"{number} of {expected} partitions have a leader"
    return waiting


def _took(told: Optional[Value], key: str, value: Optional[str]) -> bool:
    """Whether a setting is as it was set, None for taken away."""
    if value is None:
        return told is None or not told[1]
    return told is not None and same_value(key, value, told[0])


def _led(snapshot: Snapshot) -> Dict[str, int]:
    return {
        name: sum(part.leader is not None for part in topic.partitions)
        for name, topic in snapshot.topics.items()
    }


def _told_by_each(
    client: PythonClient, brokers: Collection[int], changes: Sequence[Change]
) -> List[Told]:
    """What each broker that answers tells of the changed topics."""
    moved = sorted({change.subject for change in changes if change.kind != CONFIGURE})
    keys: Dict[str, List[str]] = {}
    for change in changes:
        if change.kind == CONFIGURE:
            keys.setdefault(change.subject, []).extend(change.after["config"])
    # A request for each broker: it bears the number of its answer.
    questions: List[Tuple[Callable[[], Any], Callable[[Any, Told], None]]] = [
        *((functools.partial(_topics_request, names), _read_topics) for names in _cut(moved)),
        *(
            (functools.partial(_settings_request, names, keys), _read_settings)
            for names in _cut(sorted(keys))
        ),
    ]

    def call(admin: Any) -> List[Told]:
        client.requests["asking each broker"] += len(brokers) * len(questions) - 1  # ask counts one
        told = {broker: Told() for broker in brokers}
        silent: Optional[Exception] = None
        for make_request, read in questions:
            for broker, answer in send_to_each(admin, make_request, list(told)).items():
                if isinstance(answer, Exception):
                    silent = answer
                    del told[broker]
                else:
                    read(answer, told[broker])
        if silent is not None and not told:
            raise silent
        return list(told.values())

    return client.ask("asking each broker", call, READING)


def _cut(names: Sequence[str]) -> Iterable[Sequence[str]]:
    return (names[start : start + ASKED_AT_ONCE] for start in range(0, len(names), ASKED_AT_ONCE))


def _topics_request(names: Sequence[str]) -> Any:
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    # Version 4 can say that asking for a topic must not create it: it may just have been deleted.
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False, min_version=4)


def _read_topics(answer: Any, told: Told) -> None:
    for topic in answer.topics:
        if topic.error_code in (0, _LEADER_NOT_AVAILABLE):
            told.led[topic.name] = sum(part.leader_id >= 0 for part in topic.partitions)


def _settings_request(names: Sequence[str], keys: Mapping[str, Sequence[str]]) -> Any:
    asked = [(ConfigResourceType.TOPIC, name, list(keys[name])) for name in names]
    # Version 1 tells whose a value is.
    return DescribeConfigsRequest(resources=asked, include_synonyms=False, min_version=1)


def _read_settings(answer: Any, told: Told) -> None:
    for result in answer.results:
        if result.error_code == _UNKNOWN_TOPIC:
            continue
        raise_for(result.error_code, result.error_message)
        told.settings[result.resource_name] = {
            each.name: (each.value, SOURCES.get(each.config_source) == "topic")
            for each in result.configs
        }

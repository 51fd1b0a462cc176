# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PythonClient, and what settings of brokers need: all levels, the default of all brokers, loggers.

Private to this collection. librdkafka takes neither an empty broker name nor loggers.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.answers import SOURCES
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    Answer,
    PythonClient,
    raise_for,
    send,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.scopes import (
    BROKER,
    CLUSTER,
    LOGGERS,
    THROTTLES,
    Level,
    Scope,
    Setting,
    Settings,
)

try:
    from kafka.admin import ConfigResourceType
    from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

READING = "DescribeConfigs on the cluster"
WRITING = "AlterConfigs on the cluster"
SET, DELETE = 0, 1
# key -> value; None takes it away
Values = Mapping[str, Optional[str]]
# (settings of each broker, defaults of all brokers, levels of loggers by broker)
Told = Tuple[Dict[int, Settings], Settings, Dict[int, Dict[str, str]]]


class ConfigsClient(PythonClient):
    """One cluster, for the modules of settings of brokers."""

    def fetch_settings(self, brokers: Sequence[int], loggers: Collection[int] = ()) -> Told:
        """What each of these brokers has, and the defaults of all; one request a broker."""

        def call(admin: Any) -> Told:
            settings: Dict[int, Settings] = {}
            cluster: Settings = {}
            levels: Dict[int, Dict[str, str]] = {}
            for broker in brokers:
                asked = [(ConfigResourceType.BROKER, str(broker), None)]
                if broker in loggers:
                    asked.append((ConfigResourceType.BROKER_LOGGER, str(broker), None))
                if not settings:
                    asked.append((ConfigResourceType.BROKER, "", None))
                self.requests["describe_settings"] += 1
                request = DescribeConfigsRequest(
                    resources=asked, include_synonyms=True, min_version=1
                )
                for result in send(admin, request, broker).results:
                    raise_for(result.error_code, result.error_message)
                    if result.resource_type == ConfigResourceType.BROKER_LOGGER:
                        levels[broker] = {each.name: each.value for each in result.configs}
                    elif result.resource_name:
                        settings[broker] = _settings_of(result.configs)
                    else:
                        cluster = _settings_of(result.configs)
            return settings, cluster, levels

        return self.ask("reading settings of brokers", call, READING)

    def alter_settings(
        self, wanted: Mapping[Scope, Values], deadline: float, validate_only: bool = False
    ) -> Dict[Scope, Tuple[str, str]]:
        """Change settings; (words, code) of the scopes that were refused.

        One request to each broker that is concerned, and one to any for the default of all.
        """
        failed: Dict[Scope, Tuple[str, str]] = {}
        places: Dict[Optional[int], Dict[Scope, Values]] = {}
        for scope, values in wanted.items():
            places.setdefault(scope.broker, {})[scope] = values
        for broker, group in places.items():

            def call(
                left: Mapping[Scope, Values], admin: Any, broker: Optional[int] = broker
            ) -> Dict[Scope, Answer]:
                self.requests["alter_settings"] += 1
                answer = send(admin, _request(left, validate_only), broker)
                return {
                    _scope(each.resource_type, each.resource_name): (
                        each.error_code,
                        each.error_message,
                    )
                    for each in answer.responses
                }

            failed.update(self.ask_for_each("altering settings", group, call, WRITING, deadline))
        return failed


def _scope(kind: int, name: str) -> Scope:
    if kind == ConfigResourceType.BROKER_LOGGER:
        return Scope(LOGGERS, int(name))
    return Scope(BROKER, int(name)) if name else Scope(CLUSTER)


def _request(wanted: Mapping[Scope, Values], validate_only: bool) -> Any:
    resources: List[Any] = []
    for scope, values in wanted.items():
        kind = (
            ConfigResourceType.BROKER_LOGGER if scope.kind == LOGGERS else ConfigResourceType.BROKER
        )
        name = "" if scope.broker is None else str(scope.broker)
        changes = [
            (key, DELETE if value is None else SET, value) for key, value in sorted(values.items())
        ]
        resources.append((kind, name, changes))
    return IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)


def _settings_of(configs: Any) -> Dict[str, Setting]:
    return {each.name: _setting(each) for each in configs}


def _setting(told: Any) -> Setting:
    # Under other names are what it is derived from: 168 hours are no milliseconds. They are settings of
    # their own, and told only while this one is set.
    levels = tuple(
        Level(SOURCES.get(level.source, "unknown"), level.value)
        for level in told.synonyms or ()
        if level.name == told.name
    )
    # Brokers call everything so that their own table does not list, throttles and keys of a single
    # listener included, even where it was set while they ran.
    dynamic = told.name in THROTTLES or any(each.source in (BROKER, CLUSTER) for each in levels)
    return Setting(told.name, levels, told.is_sensitive, told.read_only and not dynamic)

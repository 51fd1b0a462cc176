# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that turn structured variables into the text that Kafka and ZooKeeper read."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Dict, Iterable, List, Mapping, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ensemble import (
    ensemble_plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.roll import (
    roll_order,
    turn_events,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.status import (
    idle_brokers,
    left_undone,
    status,
    what_started,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.java_options import (
    public_options,
    secret_options_text,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    bootstrap_servers,
    broker_properties,
    client_listeners,
    client_properties,
    properties_text,
    property_value,
    zookeeper_connect,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.unit import (
    mount_units,
    unit_word,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.zookeeper import (
    zookeeper_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    is_secret,
    masked_text,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.decision import (
    told_by_status,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.owner import (
    Owner,
    is_gone,
    owner_of,
)


def kafka_properties(settings: Mapping[str, Any]) -> Dict[str, str]:
    """`{{ settings | kafkaops.cluster.kafka_properties }}`: the effective server.properties as a dict."""
    return broker_properties(**settings)


def zookeeper_cfg(settings: Mapping[str, Any]) -> Dict[str, str]:
    """`{{ settings | kafkaops.cluster.zookeeper_cfg }}`: the effective zoo.cfg as a dict."""
    return zookeeper_properties(**settings)


def _holds_secret(key: Any, value: Any) -> bool:
    """Tell whether a setting must not be shown: by its name, or for a password in a URL."""
    return is_secret(key) or masked_text(str(value)) != str(value)


def public_settings(settings: Mapping[str, Any]) -> Dict[str, str]:
    """Return the entries of a mapping that anybody may see, values as text."""
    return {
        key: property_value(value)
        for key, value in settings.items()
        if not _holds_secret(key, value)
    }


def secret_settings(settings: Mapping[str, Any]) -> Dict[str, str]:
    """Return the entries of a mapping that must never be shown, values as text."""
    return {
        key: property_value(value) for key, value in settings.items() if _holds_secret(key, value)
    }


def public_text(properties: Any) -> str:
    """Return the properties file without what must never be shown."""
    return properties_text(public_settings(properties))


def secret_text(properties: Any) -> str:
    """Return the part of the properties file that must never be shown; empty if there is none."""
    return properties_text(secret_settings(properties))


def zookeeper_endpoints(servers: Iterable[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """Return what the module zookeeper_info takes, from servers with `id address client_port`."""
    return [
        {"id": int(item["id"]), "address": item["address"], "port": int(item["client_port"])}
        for item in servers
    ]


def logger_levels(loggers: Mapping[str, Any]) -> List[Tuple[str, str]]:
    """Return (logger, level) of a mapping, sorted; YAML reads a plain OFF as false."""
    return sorted(
        (str(name), "OFF" if level is False else str(level).upper())
        for name, level in loggers.items()
    )


def cluster_status(
    instances: Any, servers: Any = (), cluster: Any = None, versions: Any = ()
) -> Dict[str, Any]:
    """Return the status of one cluster, with the run that holds its lock; see the documentation."""
    instances = list(instances)
    locks = [
        (str(item["name"]), Owner.from_dict(item["lock"])) for item in instances if item.get("lock")
    ]
    here = owner_of(os.getpid(), "", "", 0)
    gone = {holder.id for _name, holder in locks if here and is_gone(holder, here)}
    return status(instances, servers, cluster, [*versions, *told_by_status(locks, gone)])


def plugin_path(plugin: Mapping[str, Any], directory: str) -> str:
    """Return where a plug-in of `name sha512` lies below a directory; another digest, another path."""
    name = re.sub(r"[^\w.-]", "_", str(plugin["name"]))
    return f"{directory}/plugins/{str(plugin['sha512']).lower()}/{name}.jar"


class FilterModule:
    """Text filters of the collection."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "client_listeners": client_listeners,
            "client_properties": client_properties,
            "cluster_status": cluster_status,
            "ensemble_plan": ensemble_plan,
            "kafka_bootstrap": bootstrap_servers,
            "kafka_properties": kafka_properties,
            "idle_brokers": idle_brokers,
            "left_undone": left_undone,
            "logger_levels": logger_levels,
            "mount_units": mount_units,
            "plugin_path": plugin_path,
            "properties_text": properties_text,
            "public_options": public_options,
            "public_settings": public_settings,
            "public_text": public_text,
            "roll_order": roll_order,
            "turn_events": turn_events,
            "secret_options_text": secret_options_text,
            "secret_settings": secret_settings,
            "secret_text": secret_text,
            "unit_word": unit_word,
            "what_started": what_started,
            "zookeeper_cfg": zookeeper_cfg,
            "zookeeper_connect": zookeeper_connect,
            "zookeeper_endpoints": zookeeper_endpoints,
        }

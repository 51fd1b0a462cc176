# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that turn structured variables into the text that Kafka and ZooKeeper read."""

from __future__ import annotations

from ansible_collections.kafkaops.cluster.plugins.module_utils._config_kafka import (
    bootstrap_servers,
    broker_properties,
    client_listeners,
    client_properties,
    is_secret,
    properties_text,
    zookeeper_connect,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._config_zookeeper import (
    zookeeper_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan_roll import roll_order
from ansible_collections.kafkaops.cluster.plugins.module_utils._status import status_lines


def kafka_properties(settings):
    """`{{ settings | kafkaops.cluster.kafka_properties }}`: the effective server.properties as a dict."""
    return broker_properties(**settings)


def zookeeper_cfg(settings):
    """`{{ settings | kafkaops.cluster.zookeeper_cfg }}`: the effective zoo.cfg as a dict."""
    return zookeeper_properties(**settings)


def public_text(properties):
    """Return the properties file without what must never be shown."""
    return properties_text({key: properties[key] for key in properties if not is_secret(key)})


def secret_text(properties):
    """Return the part of the properties file that must never be shown; empty if there is none."""
    return properties_text({key: properties[key] for key in properties if is_secret(key)})


def zookeeper_endpoints(servers):
    """Return what the module zookeeper_info takes, from servers with `id address client_port`."""
    return [
        {"id": int(item["id"]), "address": item["address"], "port": int(item["client_port"])}
        for item in servers
    ]


class FilterModule:
    """Text filters of the collection."""

    def filters(self):
        """Return the filters by name."""
        return {
            "client_listeners": client_listeners,
            "client_properties": client_properties,
            "kafka_bootstrap": bootstrap_servers,
            "kafka_properties": kafka_properties,
            "properties_text": properties_text,
            "public_text": public_text,
            "roll_order": roll_order,
            "secret_text": secret_text,
            "status_lines": status_lines,
            "zookeeper_cfg": zookeeper_cfg,
            "zookeeper_connect": zookeeper_connect,
            "zookeeper_endpoints": zookeeper_endpoints,
        }

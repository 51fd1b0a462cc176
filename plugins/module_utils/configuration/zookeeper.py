# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effective zoo.cfg of one ZooKeeper server, as a pure function of its settings.

Private to the collection: names may change without notice.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    property_value,
)

OWNED_KEYS = {
    "dataDir": "zookeeper_data_dir",
    "dataLogDir": "zookeeper_data_log_dir",
    "clientPort": "zookeeper_client_port",
    "clientPortAddress": "zookeeper_bind",
}


def zookeeper_properties(
    servers: Sequence[Mapping[str, Any]],
    data_dir: str,
    data_log_dir: str,
    client_port: Any,
    bind: str = "",
    config: Optional[Mapping[str, Any]] = None,
) -> Dict[str, str]:
    """Return the effective zoo.cfg as a dict of strings.

    `servers`: dicts `id address peer_port election_port`, the whole ensemble. One server alone runs
    standalone and gets no `server.N` line: ZooKeeper ignores a list of one, with an error in its log.
    """
    properties = {
        "tickTime": 2000,
        "initLimit": 10,
        "syncLimit": 5,
        "dataDir": data_dir,
        "dataLogDir": data_log_dir or data_dir,
        "clientPort": client_port,
        "autopurge.purgeInterval": 1,
        "autopurge.snapRetainCount": 3,
        # What the preflight, the status table and the rolls ask; `srvr` alone is not enough to see
        # whether a follower is synced.
        "4lw.commands.whitelist": "conf,mntr,ruok,srvr",
        # A second server on a machine exits when 8080 is taken.
        "admin.enableServer": False,
    }
    if bind:
        properties["clientPortAddress"] = bind
    if len(servers) > 1:
        for server in servers:
            properties[f"server.{server['id']}"] = (
                f"{endpoint(server['address'], server['peer_port'])}:{server['election_port']}"
            )
    properties.update(config or {})
    return {key: property_value(properties[key]) for key in sorted(properties)}

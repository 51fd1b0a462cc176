# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MovesClient, and what moving replicas between the log directories of a broker needs.

Private to this collection. Each broker is asked for its own: no controller knows of directories.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Place
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_replicas import (
    MovesClient,
)

# Bytes a second that a broker copies between its directories; a setting that only exists dynamically.
DISK_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


class DisksClient(MovesClient):
    """One cluster, for one module that moves replicas between directories."""

    def move_between_disks(self, wanted: Mapping[Place, str]) -> Dict[Place, str]:
        """Start moves to these directories; which were refused, and why.

        Naming the directory that has the replica cancels a move that is under way. What was started
        by an attempt whose answer was lost is asked for again, which changes nothing.
        """
        asked = {(*key, broker): path for (broker, key), path in wanted.items()}

        def call(admin: Any) -> Dict[Place, str]:
            refused = {}
            for replica, error in admin.alter_replica_log_dirs(asked).items():
                if getattr(error, "errno", 0):
                    text = getattr(error, "description", "") or error.__name__
                    place = (replica.broker_id, (replica.topic, replica.partition))
                    refused[place] = f"{error.__name__}: {text}"
            return refused

        return self.ask("moving replicas between log directories", call) if asked else {}

    def fetch_disk_rates(self, brokers: Sequence[int]) -> Dict[int, str]:
        """Broker to its own limit of copies between directories, where one is set; a request each."""
        rates = {}
        for broker in brokers:
            rate = _rate(self.fetch_broker_config(broker) or {})
            if rate is not None:
                rates[broker] = rate
        return rates

    def look_at_disk_rates(self, brokers: Sequence[int]) -> Dict[int, Optional[str]]:
        """The same, once, and None where none is set; brokers that do not answer are left out."""
        told, _silent = self.fetch_broker_configs(brokers)
        return {broker: _rate(entries) for broker, entries in told.items()}

    def set_disk_rates(self, rates: Mapping[int, Optional[str]]) -> None:
        """Set (or with None remove) the limits; AdminError if a broker refuses."""
        self.set_throttles({broker: {DISK_RATE: rate} for broker, rate in rates.items()}, {})


def _rate(entries: Mapping[str, Any]) -> Optional[str]:
    """The limit in the settings of a broker that it has been given itself."""
    entry = entries.get(DISK_RATE)
    return entry.value or None if entry is not None and entry.source == "broker" else None

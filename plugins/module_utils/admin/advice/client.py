# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""AdviceClient: groups and log directories of a cluster, and a look at a broker that may be dying.

Private to this collection.
"""

from __future__ import annotations

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.pause import Watch
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.answers import (
    snapshot_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.log_dirs import (
    LogDirsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.reach import (
    probe_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.client import (
    GroupsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Broker
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

try:
    from confluent_kafka import KafkaException
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

# How long one look may take: a second is the resolution that is left where a whole machine is gone.
LOOK_SECONDS = 1.0
WATCH_POLL_SECONDS = 0.05


class AdviceClient(LogDirsClient, GroupsClient):
    """One cluster, for the module that gives advice about partitions."""

    def observe(self, broker: Broker, watch: Watch, seconds: float) -> bool:
        """Look at a broker's listener and at the leaders until all is led again; whether it is."""
        begun = self._clock()

        def look() -> bool:
            # Where a whole machine is gone, the attempt that fails began when it was gone already.
            before = self._clock() - begun
            alive = True
            try:
                probe_addresses(((broker.host, broker.port),), LOOK_SECONDS, self._clock)
            except AdminError:
                alive = False
            if not watch.probed(before, alive):
                return False
            try:
                found = snapshot_of(self._list_topics(LOOK_SECONDS))
            except KafkaException:
                self._admin.poll(0)
                return False
            return watch.seen(self._clock() - begun, alive, found)

        return wait_until(look, seconds, self._clock, self._sleep, WATCH_POLL_SECONDS)

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a node is on the way from ZooKeeper to KRaft, told by its server.properties. Pure.

Nothing else is remembered, so that a run goes on where another one was killed. Private to the collection:
names may change without notice.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

# The key by which a node takes part in the migration.
FLAG = "zookeeper.metadata.migration.enable"
# A broker without the flag and without a role has its metadata in ZooKeeper.
IN_ZOOKEEPER = "zookeeper"
# A broker that still has its metadata there and knows the controllers; a controller that reads and writes ZooKeeper.
MIGRATING = "migration"
# A broker of the controllers; a controller that knows of no ZooKeeper any more.
IN_KRAFT = "kraft"
PHASES = (IN_ZOOKEEPER, MIGRATING, IN_KRAFT)
# The only release line with both modes whose way was measured, and the protocol that all brokers have to speak: the
# controllers format their storage with the metadata version of this release.
LINE = (3, 9)


def phase_of(properties: Optional[Mapping[str, Any]]) -> str:
    """One of PHASES, of the configuration in force; "" where there is none."""
    if not properties:
        return ""
    if str(properties.get(FLAG, "")).strip().lower() == "true":
        return MIGRATING
    return IN_KRAFT if properties.get("process.roles") else IN_ZOOKEEPER

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""LogDirsClient: PythonClient, and what brokers tell of their log directories.

Private to this collection. Each broker is asked for its own: no controller knows of directories.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.answers import (
    directory_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    PythonClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Directory,
    Place,
    UnderWay,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

try:
    from kafka.errors import KafkaError as OtherError
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so


@dataclass(frozen=True)
class Disks:
    """The log directories of brokers, and what moves between them."""

    directories: Mapping[int, Tuple[Directory, ...]] = field(default_factory=dict)
    under_way: Mapping[Place, UnderWay] = field(default_factory=dict)

    def where(self, place: Place) -> Optional[str]:
        """The directory that has this replica, None if the broker has none or has not answered."""
        broker, key = place
        for directory in self.directories.get(broker, ()):
            if key in directory.replicas:
                return directory.path
        return None

    def offline(self, broker: int) -> List[str]:
        """The directories of this broker that have failed; none if it has not answered."""
        return [each.path for each in self.directories.get(broker, ()) if not each.online]

    @property
    def sizes(self) -> Dict[Place, int]:
        """The bytes of each replica."""
        return {
            (broker, key): size
            for broker, directories in self.directories.items()
            for directory in directories
            for key, size in directory.replicas.items()
        }


class LogDirsClient(PythonClient):
    """One cluster, for modules that ask brokers for their log directories."""

    def fetch_disks(self, brokers: Sequence[int], topics: Optional[Sequence[str]] = None) -> Disks:
        """The directories of these brokers, with the replicas of the named topics or of all."""

        def call(admin: Any) -> Disks:
            self.requests["describe_log_dirs"] += len(brokers)
            return disks_of(admin.describe_log_dirs(topics, list(brokers)))

        found = self.ask("describing log directories", call) if brokers else Disks()
        silent = [broker for broker in brokers if not found.directories.get(broker)]
        if silent:
            raise AdminError(
                Problem(
                    "cluster.read",
                    "it tells no log directory",
                    "grant this user Describe on the cluster",
                    (f"broker {', '.join(map(str, silent))}",),
                )
            )
        return found

    def look_at_disks(self, brokers: Sequence[int], topics: Sequence[str]) -> Disks:
        """The same, once; brokers that do not answer, as while they restart, are left out."""
        answers = []
        try:
            with self.python_admin() as admin:
                for broker in brokers:
                    self.requests["describe_log_dirs"] += 1
                    try:
                        answers += admin.describe_log_dirs(list(topics), [broker])
                    except (OtherError, OSError, ValueError, AssertionError, KeyError):
                        continue
        except (OtherError, OSError, ValueError, AssertionError, RuntimeError):
            pass
        return disks_of(answers)


def disks_of(answers: Sequence[Mapping[str, Any]]) -> Disks:
    """Disks of kafka-python's answers to DescribeLogDirs."""
    directories: Dict[int, Tuple[Directory, ...]] = {}
    under_way: Dict[Place, UnderWay] = {}
    for answer in answers:
        broker, found, future = answer["broker"], [], {}
        for entry in answer["log_dirs"]:
            replicas = {}
            for topic in entry["topics"]:
                for part in topic["partitions"]:
                    key = (topic["name"], part["partition_index"])
                    size = part["partition_size"]
                    # What will replace the replica once it has caught up.
                    if part["is_future_key"]:
                        future[key] = (entry["log_dir"], size)
                    else:
                        replicas[key] = size
            found.append(directory_of(entry, replicas))
        directories[broker] = tuple(sorted(found, key=lambda each: each.path))
        for each in found:
            for key, (target, copied) in future.items():
                if key in each.replicas:
                    under_way[(broker, key)] = UnderWay(
                        each.path, target, each.replicas[key], copied
                    )
    return Disks(directories, under_way)

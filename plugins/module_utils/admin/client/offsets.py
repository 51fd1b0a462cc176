# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in the partitions of a cluster: offsets, times, sizes, and the records that a change would delete.

Private to this collection. Each question is one request to each leader, whatever the number of topics.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.answers import sizes_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.connection import (
    ClusterConnection,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    kafka_python_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    Snapshot,
    Stake,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.stakes import estimate_stake
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted

try:
    from confluent_kafka import KafkaError, KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so


class OffsetsClient(ClusterConnection):
    """What partitions hold."""

    def fetch_both_ends(
        self, keys: Collection[Key], first: bool = True
    ) -> Tuple[Dict[Key, int], Dict[Key, int]]:
        """(first offset, end offset) of partitions that have a leader: two requests to each leader.

        Those of topics that were deleted meanwhile are left out. Without `first` only the end is asked for,
        and the other dict is empty.
        """
        starts = self._offsets({key: OffsetSpec.earliest() for key in keys}) if first else {}
        return starts, self._offsets({key: OffsetSpec.latest() for key in keys})

    def fetch_newest(self, keys: Collection[Key]) -> Dict[Key, int]:
        """The largest timestamp in each partition, in ms; -1 where there is no record. As fetch_both_ends."""
        listed = self._listed({key: OffsetSpec.max_timestamp() for key in keys})
        return {key: stamp for key, (_offset, stamp) in listed.items()}

    def fetch_since(self, moments: Mapping[Key, int]) -> Dict[Key, Tuple[int, int]]:
        """The first record of each partition that is not older than its moment (ms since 1970).

        As (offset, timestamp in ms); (-1, -1) where all are older. Partitions of topics that were deleted
        meanwhile are left out.
        """
        return self._listed({key: OffsetSpec.for_timestamp(ms) for key, ms in moments.items()})

    def fetch_sizes(self, names: Iterable[str]) -> Tuple[Dict[Key, int], str]:
        """(bytes of the largest replica of each partition of topics, why there are none)."""
        from kafka import KafkaAdminClient  # librdkafka has no call for log directories
        from kafka.errors import KafkaError as OtherError

        self.requests["describe_log_dirs"] += 1
        sizes: Dict[Key, int] = {}
        with kafka_python_settings(self.connection) as settings:
            try:
                admin = KafkaAdminClient(**settings)
                try:
                    answers = admin.describe_log_dirs(sorted(names))
                finally:
                    admin.close()
            except (OtherError, OSError, ValueError, AssertionError) as error:
                return {}, f"bytes are unknown: {type(error).__name__}"
        for key, size in sizes_of(answers):
            sizes[key] = max(size, sizes.get(key, 0))
        return sizes, ""

    def fetch_stakes(
        self,
        snapshot: Snapshot,
        cuts: Mapping[str, Tuple[Optional[int], Optional[int]]],
        sizes: Optional[Mapping[Key, int]] = None,
    ) -> Dict[str, Stake]:
        """What the plan could delete: name to Stake.

        `cuts` maps topic names to the new (retention_ms, retention_bytes), None where unlimited
        or unchanged. Three requests for offsets, whatever the number of topics (librdkafka sends
        each to the leaders concerned), and one for sizes, unless
        the `sizes` of partitions are known.
        """
        if not cuts:
            return {}
        now_ms = int(self._wall_clock() * 1000)
        ends: List[Key] = []
        times: Dict[Key, int] = {}
        for name, (retention_ms, _size) in cuts.items():
            for part in snapshot.topics[name].partitions:
                if part.leader is None:
                    continue
                ends.append((name, part.id))
                if retention_ms is not None and retention_ms >= 0:
                    times[(name, part.id)] = max(0, now_ms - retention_ms)
        try:
            first = self._offsets({key: OffsetSpec.earliest() for key in ends})
            last = self._offsets({key: OffsetSpec.latest() for key in ends})
            young = self._offsets(
                {key: OffsetSpec.for_timestamp(stamp) for key, stamp in times.items()}
            )
            unknown = ""
        except AdminError as error:
            first = last = young = {}
            unknown = f"the records could not be counted: {error.problem.reason}"
        why_not = ""
        if sizes is None:
            sizes, why_not = self.fetch_sizes(cuts)
        stakes = {}
        led = snapshot.led
        for name, (retention_ms, retention_bytes) in cuts.items():
            partitions = [(name, part.id) for part in snapshot.topics[name].partitions]
            whole = all(key in first and key in last for key in partitions)
            lost = sum(key not in led for key in partitions)
            leaderless = f"of {counted(lost, 'partition')} without a leader nothing is known"
            if lost or whole:
                vanished = ""
            else:
                vanished = "the records could not be counted: the topic was deleted at this moment"
            stakes[name] = estimate_stake(
                (
                    [(first[key], last[key], young.get(key, -1)) for key in partitions]
                    if whole
                    else None
                ),
                [sizes[key] for key in partitions if key in sizes],
                retention_ms,
                retention_bytes,
                unknown or (leaderless if lost else "") or vanished or why_not,
            )
        return stakes

    def _offsets(self, specs: Mapping[Key, Any]) -> Dict[Key, int]:
        """(topic, partition) to offset, for one specification each; -1 stays -1."""
        return {key: offset for key, (offset, _stamp) in self._listed(specs).items()}

    def _listed(self, specs: Mapping[Key, Any]) -> Dict[Key, Tuple[int, int]]:
        """(topic, partition) to (offset, its timestamp in ms), for one specification each; -1 is none.

        Partitions of topics that do not exist any more are left out: somebody else's topic that goes while
        all are asked is no reason to tell nothing of the others.
        """
        if not specs:
            return {}

        def call(timeout: float) -> Dict[Key, Tuple[int, int]]:
            self.requests["list_offsets"] += 1
            asked = {TopicPartition(*key): spec for key, spec in specs.items()}
            # Asked again soon: another may lead by then, and it is not asked before.
            futures = self._admin.list_offsets(asked, request_timeout=min(timeout, 5))
            listed = {}
            for part, future in futures.items():
                try:
                    answer = future.result()
                except KafkaException as error:
                    if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                        continue
                    raise
                listed[(part.topic, part.partition)] = (answer.offset, answer.timestamp)
            # For a leader that does not answer librdkafka 2.16.0 returns this, and no error. Taken
            # for an offset, it would mean a partition without records.
            for (topic, partition), (offset, _stamp) in sorted(listed.items()):
                if offset < -1:
                    text = f"no answer from the leader of {topic}-{partition}"
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, text))
            return listed

        return self._read("reading offsets", call)

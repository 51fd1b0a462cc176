# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""LogDirsClient, and what decisions about retention want to know: ages of records, growth.

Private to this collection. A question is one request, whatever the number of topics; librdkafka sends it to
the leaders concerned.
"""

from __future__ import annotations

from typing import Dict, Iterable, Mapping, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.log_dirs import (
    LogDirsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key, Snapshot
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.stakes import (
    growth_rate,
    too_old,
)

try:
    from confluent_kafka.admin import OffsetSpec
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so


class RetentionClient(LogDirsClient):
    """One cluster, for modules that show or change what topics keep."""

    def fetch_ends(self, snapshot: Snapshot, names: Iterable[str]) -> Dict[Key, Tuple[int, int]]:
        """(first offset, end) of each partition of these topics that has a leader; two requests.

        Topics that were deleted meanwhile are left out.
        """
        chosen = frozenset(names)
        first, last = self.fetch_both_ends([key for key in snapshot.led if key[0] in chosen])
        return {key: (start, last[key]) for key, start in first.items() if key in last}

    def count_older(
        self, ends: Mapping[Key, Tuple[int, int]], ages: Mapping[str, int]
    ) -> Dict[str, int]:
        """How many records of each topic are older than its age in milliseconds; one request."""
        young = self._first_younger(ends, ages)
        older = dict.fromkeys(ages, 0)
        for key, offset in young.items():
            older[key[0]] += too_old(*ends[key], offset)
        return older

    def fetch_growth(
        self,
        ends: Mapping[Key, Tuple[int, int]],
        sizes: Mapping[Key, int],
        windows: Mapping[str, int],
    ) -> Dict[Key, float]:
        """Bytes a second that were written to each partition lately; one request.

        `windows`: how far to look back for each topic, in milliseconds. Partitions whose records do not reach
        back so far are left out, unless nothing was ever written to them, while another one is known.
        """
        young = self._first_younger(ends, windows)
        rates = {}
        for key, offset in young.items():
            rate = growth_rate(*ends[key], offset, sizes.get(key), windows[key[0]] / 1000)
            if rate is not None:
                rates[key] = rate
        known = {name for name, _partition in rates}
        unused = [key for key in young if ends[key][1] == 0 and key[0] in known]
        return {**rates, **dict.fromkeys(unused, 0.0)}

    def _first_younger(
        self, ends: Mapping[Key, Tuple[int, int]], ages: Mapping[str, int]
    ) -> Dict[Key, int]:
        """The first offset that is not older than its topic's age, -1 where there is none."""
        now_ms = int(self._wall_clock() * 1000)
        stamps = {key: max(0, now_ms - ages[key[0]]) for key in ends if key[0] in ages}
        return self._offsets(
            {key: OffsetSpec.for_timestamp(stamp) for key, stamp in stamps.items()}
        )

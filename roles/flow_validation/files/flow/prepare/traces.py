# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What a run leaves in the cluster when it breaks off: taken back, or told of."""

from __future__ import annotations

import sys

from flow.messages import stopping
from flow.messages.failure import CannotRun
from flow.prepare.cluster import Cluster

_HURRY_SECONDS = 5.0  # for taking the topic back, where somebody waits for the end


class Traces:
    """Of one run: `topic` is the one that it creates, "" where that is somebody else's; `written`:
    records of it may be in the log.
    """

    def __init__(self, ledger: str):
        self.topic, self.written, self._ledger = "", False, ledger

    def settle(self, cluster: Cluster) -> None:
        """Delete a topic without records; say where the others are, and what can be done with them."""
        if self.topic and not self.written:
            try:
                cluster.delete_topic(
                    self.topic, _HURRY_SECONDS if stopping.requested.is_set() else None
                )
            except CannotRun as error:
                print(f"note: topic {self.topic} stays, and is empty: {error}", file=sys.stderr)
        elif self.written:
            kept = f"topic {self.topic} stays with them; " if self.topic else ""
            print(
                f"note: records were written; {kept}`job.py verify --ledger {self._ledger} ...`"
                " judges what the ledger knows",
                file=sys.stderr,
            )

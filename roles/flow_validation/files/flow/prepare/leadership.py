# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Who led each partition, and who was in sync, while the run went on.

An election is unclean where the new leader was not in sync before: what only the others had is gone.
By metadata alone that is a suspicion, since a replica may have come into sync between two looks; the
judge tells of it only where acknowledged records of the partition are gone.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from typing import Iterator, Mapping, Sequence

from flow.messages.failure import CannotRun
from flow.prepare.cluster import Cluster

_LOOK_SECONDS = 1.0  # each look asks for the metadata of all topics


@dataclass(frozen=True)
class Election:
    """A broker took the lead of a partition, of which only `in_sync` were in sync when last seen."""

    partition: int
    leader: int
    in_sync: tuple


def unclean(moments: Sequence[Mapping]) -> list:
    """Elections of leaders that were not in sync the moment before, in order. A moment: partition ->
    (leader or None, brokers in sync).

    While nobody leads, those who were in sync last are asked.
    """
    found, last = [], {}
    for moment in moments:
        for partition, (leader, in_sync) in sorted(moment.items()):
            before = last.get(partition)
            if leader is None:
                continue
            if before is not None and before and leader not in before:
                found.append(Election(partition, leader, tuple(before)))
            last[partition] = in_sync
    return found


class Watch:
    """Looks at a topic's leaders now and then; `moments` as `unclean` takes them."""

    def __init__(self, cluster: Cluster, topic: str):
        self.moments: list = []
        self._cluster, self._topic = cluster, topic

    def look(self) -> None:
        """Note what has changed since the last look."""
        layout = self._cluster.layout(self._topic)
        now = {n: (place["leader"], place["isr"]) for n, place in layout.items()}
        if now and (not self.moments or self.moments[-1] != now):
            self.moments.append(now)

    @contextlib.contextmanager
    def going_on(self) -> Iterator[None]:
        """Look all the while that the body runs."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(_LOOK_SECONDS):
                with contextlib.suppress(CannotRun):  # brokers may be what is gone
                    self.look()

        watcher = threading.Thread(target=watch, name="leadership", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join(5)

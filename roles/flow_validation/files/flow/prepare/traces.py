# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What a run leaves in the cluster when it breaks off: taken back, or told of."""

from __future__ import annotations

from typing import Mapping, Optional

from flow.messages import stopping
from flow.messages.failure import CannotRun
from flow.messages.output import note
from flow.prepare.cluster import HIDDEN, Cluster
from flow.record import files, own_names

_HURRY_SECONDS = 5.0  # for taking the topic back, where somebody waits for the end


class Traces:
    """Of one run: `topic` is the one that it creates, "" where that is somebody else's; `pending`: the
    cluster was asked for it, and has not answered; `written`: records of it may be in the log; `made`: None
    before there is a ledger, then whether its directory is new; `refused`: the run's id, where it wrote down
    that nothing was taken, so that its ledger is not evidence; `ends`: partition -> end offset behind all that the
    run itself has put into the topic so far, None while nobody knows.
    """

    def __init__(self, ledger: str):
        self.topic, self.written, self._ledger = "", False, ledger
        self.pending = False
        self.refused = ""
        self.ends: Optional[Mapping[int, int]] = {}
        self.made: Optional[bool] = None

    def settle(self, cluster: Cluster) -> None:
        """Delete a topic without records; say where the others are, and what can be done with them. A signal
        meanwhile hurries that, and keeps nothing of it unsaid.
        """
        stopping.close()
        if self.topic and not self.written and (why := self._why_kept(cluster)):
            note(f"note: topic {self.topic}, which this run has made, stays: {why}")
        elif self.topic and not self.written:
            try:
                deleted = cluster.delete_topic(
                    self.topic, _HURRY_SECONDS if stopping.requested.is_set() else None
                )
                if self.pending and not deleted:
                    note(f"note: topic {self.topic} {_why_unseen(cluster, self.topic)}")
            except CannotRun as error:
                note(f"note: topic {self.topic} stays, and is empty: {error}")
        elif self.written:
            kept = f"topic {self.topic} stays with them; " if self.topic else ""
            note(
                f"note: records were written; {kept}`job.py verify --ledger {self._ledger} ...`"
                " judges what the ledger knows"
            )
        if self.made is not None and not self.written:
            if not files.take_back(self._ledger, self.made, self.refused):
                note(
                    f"note: what was made of the ledger {self._ledger} stays, and holds nothing that was acknowledged:"
                    " it could not be removed any more; remove it, or give another --ledger next time"
                )

    def _why_kept(self, cluster: Cluster) -> str:
        """Why the topic may not go; whose name is not that of a run, others may have found meanwhile."""
        if own_names.run_topic(self.topic):
            return ""
        return cluster.why_in_use(self.topic, self.ends, _HURRY_SECONDS)


def _why_unseen(cluster: Cluster, topic: str) -> str:
    """What is said of a topic that the cluster was asked for, without an answer, and that is not to be seen."""
    # whoever waits for the end is not made to wait for that
    if not stopping.requested.is_set() and cluster.why_unseen(topic) == HIDDEN:
        return (
            "may be there, empty: this user may not see it. Allow it Describe on the topic, then `job.py leftovers"
            " --remove` removes it"
        )
    return (
        "may still come to be, empty: the cluster was asked for it, and had not answered; `job.py leftovers --remove`"
        " removes it"
    )

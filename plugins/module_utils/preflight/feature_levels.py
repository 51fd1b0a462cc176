# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""What the finalised features of a KRaft cluster allow, forbid and leave to be done in an upgrade. Pure.

In ZooKeeper mode a protocol version in each broker's file has this part, see `upgrades`. Here it is the
cluster that keeps the levels, and a newer release goes on with them by itself: nothing has to be pinned.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration import features
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.protocol import line
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import Cluster
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

NOT_TOLD = "no broker tells which features are finalised"


def finalised(cluster: Cluster) -> Optional[features.Levels]:
    """The levels of the cluster that runs; None where no broker has told them."""
    return cluster.snapshot.features if cluster.snapshot else None


def barred(cluster: Cluster, running: str, wanted: str) -> str:
    """Why a node may not go from one version to the other, "" where it may; their lines differ."""
    levels = finalised(cluster)
    if (line(wanted) or ()) > (line(running) or ()):
        if levels is not None and features.too_old_for(levels, wanted):
            return (
                f"{features.METADATA} {levels[features.METADATA]} is finalised: Kafka 4 reads"
                f" {features.OLDEST_OF_KAFKA_4} (of Kafka 3.3) or newer"
            )
        return ""
    if levels is None:
        return (
            f"{NOT_TOLD}, so whether there is a way back is not known (playbooks/start.yml starts what"
            " is down)"
        )
    unread = features.not_read_by(levels, wanted)
    if unread is None:
        return f"this release of the collection does not know which features {wanted} has"
    if not unread:
        return ""
    verb, they = ("is", "it") if len(unread) == 1 else ("are", "them")
    return f"{', '.join(unread)} {verb} finalised, and {wanted} does not know {they}: there is no way back"


def finalising(cluster: Cluster, wanted: str) -> Dict[str, int]:
    """The levels to raise where the features of a version are to be finalised."""
    return {
        name: after
        for name, (_before, after) in (
            features.raises(finalised(cluster) or {}, wanted) or {}
        ).items()
    }


def check_finalising(
    cluster: Cluster, hosts: Sequence[str], wanted: str, variable: str
) -> Iterator[Problem]:
    """Whether it is known what finalising the features of a version would change."""
    if wanted and features.levels_of(wanted) is None:
        reason = f"this release of the collection does not know which features {wanted} has"
        yield found("version.features_unknown", hosts, variable, True, reason)
    elif finalised(cluster) is None:
        reason = f"{NOT_TOLD}, so what would change is not known"
        remedy = "run playbooks/start.yml, then this again"
        yield found("version.finalize_early", hosts, variable, True, reason, remedy)


# ---------------------------------------------------------------- what people are told


def _left(levels: Optional[features.Levels], versions: Sequence[str]) -> features.Raises:
    """What the newest of these versions has and the cluster not; nothing where that is not known."""
    known = [each for each in versions if features.levels_of(each) is not None]
    if levels is None or not known:
        return {}
    newest = max(known, key=lambda each: line(each) or ())
    return features.raises(levels, newest) or {}


def state_lines(
    levels: Optional[features.Levels], versions: Sequence[str], upgrade: str, back: str
) -> List[str]:
    """What is not finalised while nodes run these versions; `upgrade`, `back`: the playbooks."""
    left = _left(levels, versions)
    if not left:
        return []
    return [
        f"Not finalised: {features.raised_text(left)}.",
        f"  It stays so until {upgrade}; {back} goes back until then.",
    ]


def upgrade_lines(levels: Optional[features.Levels], wanted: str, back: str) -> List[str]:
    """What a run says before it upgrades nodes to a version."""
    if not _left(levels, [wanted]):
        return []
    of = features.line_of(levels or {})
    return [
        f"The cluster keeps its features, {features.METADATA}"
        f" {(levels or {}).get(features.METADATA, 0)}{f' of Kafka {of}' if of else ''}, so {back} goes back."
    ]


def finalising_lines(levels: Optional[features.Levels], wanted: str, back: str) -> List[str]:
    """What a run says before it finalises: what changes, and what of it cannot be taken back."""
    left = _left(levels, [wanted])
    if not left or levels is None:
        return [f"Every feature has the level of Kafka {wanted}: there is nothing to finalise."]
    lines = [
        f"FINALISING: {features.raised_text(left)}; no node restarts for it.",
        "THERE IS NO WAY BACK: Kafka lowers none of them, and older releases cannot read what is"
        f" written from then on; {back} is refused.",
    ]
    if features.ELIGIBLE_LEADERS in left:
        lines.append(
            "min.insync.replicas becomes a setting of the cluster, as the active controller has it in its"
            " configuration; it beats all files, and settings of it at single brokers go."
        )
    if not levels.get(features.QUORUM):
        lines.append(
            f"The quorum stays static: {features.QUORUM} is left alone, which Kafka's own"
            " kafka-features.sh upgrade --release-version would raise, too, and for good."
        )
    return lines


def after_lines(
    levels: Optional[features.Levels],
    versions: Sequence[str],
    commands: Mapping[str, str],
    final: bool,
) -> List[str]:
    """What comes next when nodes run these versions. `final`: whether the run says that nothing is left."""
    if levels is None:
        return [
            f"Before this run {NOT_TOLD.replace('tells', 'told')}: playbooks/status.yml tells now."
        ]
    left = _left(levels, versions)
    if not left:
        of = features.line_of(levels)
        return [f"Every feature has the level of Kafka {of}: the upgrade is final."] * final
    of = features.line_of(levels)
    return [
        f"Not finalised: {features.raised_text(left)}.",
        f"  To finalise, after some days: {commands['finalize']}",
        f"  To go back to a {of} release: set kafka_version back, then {commands['rollback']}",
    ]

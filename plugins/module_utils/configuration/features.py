# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Which features of a KRaft cluster each release finalises, and which it can read. Pure.

A feature's level is the cluster's, and not of a release: nodes of a newer release go on with the older
levels until somebody finalises the newer ones. Then older releases cannot read the metadata any more, and
Kafka lowers none of them. Levels are those of `kafka-features.sh version-mapping`: what
`upgrade --release-version` sets, but for kraft.version, which would make a static quorum dynamic.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.protocol import (
    Line,
    line,
    text,
)

METADATA = "metadata.version"
QUORUM = "kraft.version"
# With it the controllers keep min.insync.replicas as a setting of the cluster.
ELIGIBLE_LEADERS = "eligible.leader.replicas.version"
_OF_4_0 = {"group.version": 1, "transaction.version": 2}
_OF_4_1 = {**_OF_4_0, ELIGIBLE_LEADERS: 1}
_OF_4_2 = {**_OF_4_1, "share.version": 1, "streams.version": 1}
LEVELS: Mapping[Line, Mapping[str, int]] = {
    (3, 9): {METADATA: 21},
    (4, 0): {METADATA: 25, **_OF_4_0},
    (4, 1): {METADATA: 27, **_OF_4_1},
    (4, 2): {METADATA: 29, **_OF_4_2},
    (4, 3): {METADATA: 30, **_OF_4_2},
}
# Kafka 4 reads no older metadata.version: that of 3.3.
OLDEST_OF_KAFKA_4 = 7
# Every release of the table has it.
QUORUM_LEVEL = 1

Levels = Mapping[str, int]
# feature -> (level that is finalised, level that the release has)
Raises = Dict[str, Tuple[int, int]]


def levels_of(version: str) -> Optional[Levels]:
    """The levels that a release finalises; None where this release of the collection does not know."""
    return LEVELS.get(line(version) or ())


def raises(finalised: Levels, version: str) -> Optional[Raises]:
    """What finalising the levels of a release would raise, in the table's order; None as of levels_of."""
    levels = levels_of(version)
    if levels is None:
        return None
    return {
        name: (finalised.get(name, 0), level)
        for name, level in levels.items()
        if finalised.get(name, 0) < level
    }


def raised_text(found: Raises) -> str:
    """Raises in words: metadata.version 21 -> 30."""
    return ", ".join(f"{name} {before} -> {after}" for name, (before, after) in found.items())


def not_read_by(finalised: Levels, version: str) -> Optional[List[str]]:
    """The finalised features that a release is not known to read, in words; None as of levels_of."""
    levels = levels_of(version)
    if levels is None:
        return None
    known = {**levels, QUORUM: QUORUM_LEVEL}
    return [
        f"{name} {level}"
        for name, level in sorted(finalised.items(), key=lambda each: (each[0] != METADATA, each))
        if level > known.get(name, 0)
    ]


def too_old_for(finalised: Levels, version: str) -> bool:
    """Whether the metadata are too old for a release."""
    level, of_release = finalised.get(METADATA), line(version)
    return level is not None and (of_release or (0,)) >= (4, 0) and level < OLDEST_OF_KAFKA_4


def line_of(finalised: Levels) -> str:
    """The oldest release line that has the finalised metadata.version, such as 3.9; "" if none is known."""
    level = finalised.get(METADATA)
    lines = [
        each
        for each, levels in sorted(LEVELS.items())
        if level is not None and level <= levels[METADATA]
    ]
    return text(lines[0]) if lines else ""


def written_for(finalised: Optional[Levels]) -> str:
    """The release line whose features a node is formatted with that joins a cluster; "" for those of its release.

    A node reads them at each start, and a release that does not know them ends. For nothing else, as the
    cluster has its own: so the oldest ones do where nobody tells the levels.
    """
    if METADATA not in (finalised or {}):
        return text(min(LEVELS))
    return line_of(finalised or {})

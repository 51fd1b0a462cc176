# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Which protocol version the brokers of a cluster speak with each other. Pure.

A broker whose configuration does not name one speaks that of its own release. So a newer release
among older ones must be pinned: unpinned it starts, registers, and never joins any ISR. Invariants:

* a broker is never given a newer protocol than the oldest one that is spoken in its cluster, unless
  finalising was asked for and every broker runs a release that knows it;
* what a broker has in force stays, but for finalising: a run that changes nothing else restarts
  nobody.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, Optional, Tuple

KEY = "inter.broker.protocol.version"
# 3.8.1, 3.8, 3.8-IV0, 0.10.1.0
LINE = re.compile(r"^(\d+)\.(\d+)(?:\.(\d+))?(?:\.\d+)?(?:-IV\d+)?$")

Line = Tuple[int, ...]


@dataclass(frozen=True)
class Speaker:
    """One broker as it is: `release` is the version in force, `key` what its file names; "" for none."""

    release: str = ""
    key: str = ""

    @property
    def speaks(self) -> Optional[Line]:
        """The protocol that it speaks; None for a broker that never ran."""
        return line(self.key) or line(self.release)


def line(version: str) -> Optional[Line]:
    """The line that a version, or a protocol version, belongs to: (3, 8) of 3.8.1, 3.8 and 3.8-IV0.

    None where the text is neither.
    """
    match = LINE.match(version.strip())
    if not match:
        return None
    major, minor = int(match[1]), int(match[2])
    # Before 1.0 three numbers made the line: 0.10.1.
    return (0, minor, int(match[3] or 0)) if major == 0 else (major, minor)


def text(of_line: Line) -> str:
    """A line as Kafka's configuration names it."""
    return ".".join(str(each) for each in of_line)


def oldest(cluster: Iterable[Speaker]) -> Optional[Line]:
    """The oldest protocol that is spoken in a cluster; None where nobody ever ran."""
    spoken = [each.speaks for each in cluster]
    return min((each for each in spoken if each), default=None)


def may_finalise(cluster: Iterable[Speaker], wanted: str) -> bool:
    """Whether every broker that ever ran has a release of the wanted line, and there is one."""
    releases = [line(each.release) for each in cluster if each.release]
    return bool(releases) and set(releases) == {line(wanted)}


def pin(own: Speaker, cluster: Iterable[Speaker], wanted: str, finalize: bool = False) -> str:
    """What the broker's configuration shall name, "" for nothing.

    `cluster`: every broker of the cluster, this one included; `wanted`: the release of the
    inventory; `finalize`: whether the protocol of that release was asked for.
    """
    cluster, target = tuple(cluster), line(wanted)
    if target is None:
        return own.key
    if finalize and may_finalise(cluster, wanted):
        return text(target) if own.key and line(own.key) != target else own.key
    if own.key:
        return own.key
    lowest = oldest(cluster)
    return text(lowest) if lowest is not None and lowest < target else ""

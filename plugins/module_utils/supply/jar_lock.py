# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks: which jars, of which digest, one release consists of.

Written by `scripts/update_locks.py`, read here. Private to this collection. No network.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import Any, List

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError, refusal

_DIGEST = re.compile(r"[0-9a-f]{128}")
# What may stand in a coordinate: it becomes a path in the cache, so never a separator or "..".
_COORDINATE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Jar:
    """One published jar: its coordinates, its SHA-512 (hex) and its size in bytes."""

    group: str
    artifact: str
    version: str
    sha512: str
    size_bytes: int
    classifier: str = ""

    @property
    def filename(self) -> str:
        """The file's name in the archive, as Maven names it."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{suffix}.jar"

    @property
    def cache_path(self) -> str:
        """Its place below the cache's `jars`; the group keeps equal names of two groups apart."""
        return os.path.join(self.group, self.filename)

    def __str__(self) -> str:
        return ":".join(
            part for part in (self.group, self.artifact, self.version, self.classifier) if part
        )


@dataclass(frozen=True)
class Lock:
    """A release: the archive's name, and its jars in the lock's order. `text` is the file."""

    name: str
    product: str
    version: str
    jars: tuple
    text: bytes

    @property
    def size_bytes(self) -> int:
        """Size of all jars."""
        return sum(jar.size_bytes for jar in self.jars)


def parse_lock(text: bytes, origin: str) -> Lock:
    """Parse a lock (bytes). Raises ProblemError naming `origin` if it is not whole."""
    try:
        data = json.loads(text)
        jars = tuple(_parse_jar(item) for item in data["artifacts"])
        lock = Lock(data["name"], data["product"], data["version"], jars, text)
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(origin, f"{type(error).__name__}: {error}") from error
    names = [jar.filename for jar in jars]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _damaged(origin, f"{twice[0]} is listed twice")
    if not jars:
        raise _damaged(origin, "it lists no jar")
    return lock


def _parse_jar(item: Any) -> Jar:
    jar = Jar(
        group=item["group"],
        artifact=item["artifact"],
        version=item["version"],
        sha512=item["sha512"],
        size_bytes=int(item["size_bytes"]),
        classifier=item.get("classifier", ""),
    )
    for part in (jar.group, jar.artifact, jar.version, jar.classifier or "x"):
        if not _COORDINATE.fullmatch(part) or ".." in part:
            raise ValueError(f"{part!r} is not a coordinate")
    if not _DIGEST.fullmatch(jar.sha512):
        raise ValueError(f"the sha512 of {jar} is not 128 hex digits")
    return jar


def _damaged(origin: str, reason: str) -> ProblemError:
    return refusal(
        "lock.damaged",
        f"lock={origin}",
        f"the lock cannot be read ({reason})",
        "restore the file from the collection; locks are written by scripts/update_locks.py only",
    )


def lock_names(directory: str) -> List[str]:
    """Names of the committed locks, such as `kafka_2.13-3.9.2`, sorted."""
    return sorted(name[: -len(".json")] for name in os.listdir(directory) if name.endswith(".json"))


def load_lock(directory: str, name: str) -> Lock:
    """Read the lock of `name`; ProblemError `version.unknown` lists the known ones."""
    path = os.path.join(directory, f"{name}.json")
    known = lock_names(directory)
    if name not in known:
        product = re.split(r"[_-]", name)[0]
        alike = [item for item in known if item.startswith(product)] or known
        version = name.rpartition("-")[2]
        raise refusal(
            "version.unknown",
            f"{product}_version={version}",
            f"no lock for {name} (known: {', '.join(alike)})",
            "take one of these, or distribution_source=archive with distribution_url and"
            " distribution_sha512",
        )
    with open(path, "rb") as stream:
        return parse_lock(stream.read(), path)

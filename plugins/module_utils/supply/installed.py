# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which releases are installed on a host, and whether they are whole. Reads only.

Private to this collection. Python 3.9, standard library only.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping

MANIFEST = ".release.json"


@dataclass(frozen=True)
class Found:
    """What is on the host. `state`: complete, absent, damaged (files missing or of another size),
    other (another archive)."""

    path: str
    state: str
    manifest: dict


def probe(install_dir: str, name: str, sha512: str) -> Found:
    """Look for the release made from the archive with `sha512`; reads only.

    The installed release is `releases/NAME`, or `releases/NAME-DIGEST` where NAME was taken.
    """
    usual = os.path.join(install_dir, "releases", name)
    found = _look(usual, sha512)
    if found.state != "other":
        return found
    other = _look(beside(usual, sha512), sha512)
    return other if other.state in ("complete", "damaged") else found


def beside(path: str, sha512: str) -> str:
    return f"{path}-{sha512[:12]}"


def _look(path: str, sha512: str) -> Found:
    if not os.path.lexists(path):
        return Found(path, "absent", {})
    try:
        with open(os.path.join(path, MANIFEST), encoding="utf-8") as stream:
            manifest = json.load(stream)
        files = manifest["files"]
    except (OSError, ValueError, KeyError):
        return Found(path, "other", {})
    if manifest.get("archive_sha512") != sha512:
        return Found(path, "other", manifest)
    whole = all(same_kind(os.path.join(path, name), entry) for name, entry in files.items())
    return Found(path, "complete" if whole else "damaged", manifest)


def same_kind(path: str, entry: Mapping[str, Any]) -> bool:
    """Whether the file at `path` has the size, or the link the target, that the manifest states."""
    try:
        if "link" in entry:
            return os.readlink(path) == entry["link"]
        return not os.path.islink(path) and os.stat(path).st_size == entry["size_bytes"]
    except OSError:
        return False


def complete_releases(install_dir: str) -> List[Dict[str, str]]:
    """[{path, sha512 of its archive}] of the releases below `install_dir` that are whole."""
    found: List[Dict[str, str]] = []
    releases = os.path.join(install_dir, "releases")
    try:
        names = sorted(os.listdir(releases))
    except OSError:
        return found
    for name in names:
        path = os.path.join(releases, name)
        try:
            with open(os.path.join(path, MANIFEST), encoding="utf-8") as stream:
                sha512 = json.load(stream)["archive_sha512"]
            if _look(path, sha512).state == "complete":
                found.append({"path": path, "sha512": sha512})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # not a release, or garbage: whoever installs says so
    return found

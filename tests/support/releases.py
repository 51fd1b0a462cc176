# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of Kafka and ZooKeeper for tests: assembled once for a machine, unpacked once for a checkout."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
# Those that the tests of this checkout share, with the class data of their JVMs.
SHARED = CHECKOUT / ".nox" / "releases"
SCALA_VERSION = "2.13"


def cache_directory() -> Path:
    """Where archives are: $KAFKAOPS_CACHE, by default below the user's cache directory."""
    return Path(os.environ.get("KAFKAOPS_CACHE") or Path.home() / ".cache" / "kafkaops")


def release_name(product: str, version: str) -> str:
    """Name of a release's archive and of its one top directory."""
    return f"kafka_{SCALA_VERSION}-{version}" if product == "kafka" else f"{product}-{version}"


def ensure_archive(product: str, version: str) -> Path:
    """Path of a release's archive; assembled by our own `distribution` module if it is missing."""
    archive = cache_directory() / "archives" / f"{release_name(product, version)}.tgz"
    if archive.exists():
        return archive
    arguments = {
        "product": product,
        "version": version,
        "source": "maven",
        "cache_dir": str(cache_directory()),
    }
    if product == "kafka":
        arguments["scala_version"] = SCALA_VERSION
    ansible = Path(sys.executable).with_name("ansible")
    done = subprocess.run(
        [
            *(str(ansible), "localhost", "-c", "local", "-i", "localhost,"),
            *("-e", f"ansible_python_interpreter={sys.executable}"),
            *("-m", "kafkaops.cluster.distribution", "-a", json.dumps(arguments)),
        ],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not archive.exists():
        raise RuntimeError(f"no archive {archive}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return archive


def unpack_release(product: str, version: str, directory: Path) -> Path:
    """Unpack a release below a directory; returns the release directory, which is there in full or not at all."""
    release = directory / release_name(product, version)
    if not release.exists():
        directory.mkdir(parents=True, exist_ok=True)
        with (
            tarfile.open(ensure_archive(product, version)) as archive,
            tempfile.TemporaryDirectory(dir=directory) as draft,
        ):
            # Python has the filter since 3.11.4; the archive is our own
            safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(draft, **safe)
            (Path(draft) / release.name).rename(release)
    return release


@contextlib.contextmanager
def shared_alone() -> Iterator[None]:
    """Keep the other test sessions of this checkout from adding to what they share."""
    SHARED.mkdir(parents=True, exist_ok=True)
    with open(SHARED / ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def shared_release(product: str, version: str) -> Path:
    """A release that the tests of this checkout share, unpacked by the first that asks."""
    with shared_alone():
        return unpack_release(product, version, SHARED)

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serves releases over HTTP on this machine, for `distribution_source: archive`.

    python -m tests.support.release_server start DIRECTORY kafka 3.8.1 zookeeper 3.8.6
    python -m tests.support.release_server stop DIRECTORY

Below DIRECTORY/served: the archives, `sha512.json` (by product), `access.log`, and an empty cache for the
collection, which shares nothing but Spark's connector with the user's own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tests.support import software
from tests.support.outside import wait_until

PORT = 8765


def start(place, releases):
    """Obtain `releases` ((product, version), ...) and serve them until `stop`."""
    stop(place)
    place.mkdir(parents=True)
    digests = {}
    for product, version in releases:
        archive = Path(software.obtain(product, version).archive)
        shutil.copy(archive, place)
        digests[product] = hashlib.sha512(archive.read_bytes()).hexdigest()
    (place / "sha512.json").write_text(json.dumps(digests))
    cache = place / "cache"
    cache.mkdir()
    users = archive.parents[1]
    for name in ("ivy", "jars", "spark"):
        (users / name).mkdir(exist_ok=True)
        (cache / name).symlink_to(users / name)
    log = place / "access.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [
                *(sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1"),
                *("--directory", str(place), str(PORT)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    (place / "server.pid").write_text(str(server.pid))
    wait_until(lambda: "Serving HTTP" in log.read_text() or server.poll(), 30, "the server's start")
    assert server.poll() is None, log.read_text()


def stop(place):
    """Stop the server of `place`, if it runs, and remove what was served."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((place / "server.pid").read_text())
        # a pid of an earlier boot may be anybody's by now
        if str(place) in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(pid, signal.SIGTERM)
    shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    served = Path(sys.argv[2]).resolve() / "served"
    if sys.argv[1] == "start":
        start(served, list(zip(sys.argv[3::2], sys.argv[4::2])))
    else:
        stop(served)

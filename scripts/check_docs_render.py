#!/usr/bin/env python
# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fail unless ansible-doc renders every module, filter, inventory plugin and role of the collection.

Which there are is read from the files, so that one that ansible-doc does not even see fails, too.
Runs on the checkout that it lies in, with whatever copy of the collection Ansible finds.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLLECTION = "kafkaops.cluster"


def names(kind):
    """The full names of the plugins of a kind that must be documented, sorted."""
    if kind == "role":
        found = [path.name for path in ROOT.glob("roles/*") if (path / "tasks").is_dir()]
    elif kind == "filter":
        # a file may hold several filters: each has a page of its own, and none may lack one
        sources = [path.read_text(encoding="utf-8") for path in ROOT.glob("plugins/filter/*.py")]
        found = [name for text in sources for name in re.findall(r'^ {12}"(\w+)": ', text, re.M)]
    else:
        folder = {"module": "modules"}.get(kind, kind)
        paths = ROOT.glob(f"plugins/{folder}/*.py")
        found = [path.stem for path in paths if path.stem != "__init__"]
    return [f"{COLLECTION}.{name}" for name in sorted(found)]


def problems(kind):
    """Sentences about what ansible-doc cannot show of a kind, as data or as text."""
    wanted = names(kind)
    if not wanted:
        return []
    found = []
    for form in (["--json"], []):
        command = ["ansible-doc", "--type", kind, *form, *wanted]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            found.append(f"{' '.join(command[:3])}: {done.stderr.strip() or done.stdout.strip()}")
        elif form:
            shown = json.loads(done.stdout)
            found += [
                f"{kind} {name}: ansible-doc shows nothing"
                for name in wanted
                if not shown.get(name)
            ]
    return found


def main():
    """Check all kinds; returns the exit code."""
    found = [
        problem for kind in ("module", "filter", "inventory", "role") for problem in problems(kind)
    ]
    for problem in found:
        print(problem, file=sys.stderr)
    if not found:
        count = sum(len(names(kind)) for kind in ("module", "filter", "inventory", "role"))
        print(f"ansible-doc renders all {count} modules, filters and roles")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

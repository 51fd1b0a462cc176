# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Commands of a host: run, and refused in their own words where they fail."""

from __future__ import annotations

import os
from typing import Any, Callable, List, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError

# Words to (exit code, output, errors).
Run = Callable[[List[str]], Tuple[int, str, str]]


def runner(module: Any) -> Run:
    """A Run by an AnsibleModule. What is printed is read, so it is in no other language."""

    def run(words: List[str]) -> Tuple[int, str, str]:
        code, out, err = module.run_command(words, environ_update={"LC_ALL": "C.UTF-8"})
        return int(code), str(out), str(err)

    return run


def run_or_refuse(
    run: Run, words: List[str], check: str, setting: str, value: str = "", called: str = ""
) -> str:
    """The output of a command. ProblemError of the id `check` where it fails; `called`: its name there."""
    code, out, err = run(words)
    if code != 0:
        told = " ".join((err or out).split())[:300] or f"exit code {code}"
        reason = f"{called or os.path.basename(words[0])}: {told}"
        remedy = "repair what it says, then run it again"
        raise ProblemError(Problem(check, reason, remedy, (), setting, value))
    return out

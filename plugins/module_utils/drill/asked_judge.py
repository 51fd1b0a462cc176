# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to the PySpark judge of a run: it takes questions as files of a directory, and answers them so.

Private to this collection. The judge is `job.py compare`, one process for all drills of a run, on this host.
"""

from __future__ import annotations

import functools
import json
import os
import time
from typing import Any, Callable, Dict, List, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import (
    Answer,
    Ask,
    Written,
    unanswered,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import write_atomically
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

# As flow/comparison.py has them.
READY, ASK, ANSWER = "judge.json", ".ask.json", ".answer.json"
# One topic takes it a second or two; on a machine with much else to do, or with a broker just back, more.
SECONDS = 180.0
NOT_THERE, GONE, SILENT = "it does not run", "it has ended", f"no answer within {SECONDS:.0f} s"


def judge_of(directory: str) -> Ask:
    """How the judge of this directory is asked; without one nobody is."""
    return functools.partial(asked, directory) if directory else lambda _written: ()


def asked(
    directory: str,
    written: Sequence[Written],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Tuple[Answer, ...]:
    """The judge's answer for each topic, in this order; one that says why where there is none in time."""
    found: Dict[str, Answer] = {}
    why = _why_not(directory)
    for each in written if not why else ():
        path = os.path.join(directory, each.topic + ASK)
        write_atomically(path, json.dumps(each.question()), 0o644)

    def over() -> bool:
        # before the last look: what it has answered until its end counts
        why[:] = _why_not(directory)
        for each in written:
            told = _read(os.path.join(directory, each.topic + ANSWER))
            if told:
                found[each.topic] = told
        return bool(why) or len(found) == len(written)

    wait_until(over, SECONDS, clock, sleep)
    otherwise = why[0] if why else SILENT
    return tuple(found.get(each.topic) or unanswered(each.topic, otherwise) for each in written)


def _why_not(directory: str) -> List[str]:
    """Why there is nobody to ask, if that is so."""
    ready = _read(os.path.join(directory, READY))
    if not ready:
        return [NOT_THERE]
    if "why" in ready:
        return [str(ready["why"])]
    return [] if start_ticks(int(ready["pid"])) is not None else [GONE]


def _read(path: str) -> Dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as handle:
            told: Dict[str, Any] = json.load(handle)
            return told
    except FileNotFoundError:
        return {}

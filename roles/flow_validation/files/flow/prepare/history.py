# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The runs that a directory of reports holds: validations, inspections, proofs beside drills, drills,
guarantees, and benchmarks.

Read from their JSON; what cannot be read is a run without a verdict.
"""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Tuple

VALIDATION, INSPECTION, PROOF, DRILLS = "validation", "inspection", "proof beside a drill", "drills"
GUARANTEES, BENCHMARK = "guarantees", "benchmark"
_RUN = re.compile(r"([0-9]{8}T[0-9]{6}Z)(\.json)?\Z")
# Where runs of a kind lie below the reports, and what each has written, and its page.
_PLACES = (
    ("", VALIDATION, "verdict.json", "report.html"),
    ("inspections", INSPECTION, "inspection.json", "inspection.html"),
    ("drills", PROOF, "verdict.json", "report.html"),
    ("guarantees", GUARANTEES, "verdict.json", "report.html"),
    ("benchmarks", BENCHMARK, "verdict.json", "report.html"),
)
# Where runs of rows lie, each a JSON with a page beside it.
_OF_ROWS = {"drills": DRILLS, "guarantees": GUARANTEES, "benchmarks": BENCHMARK}
AS_EXPECTED, NOT_EXPECTED, OPEN = "as expected", "NOT as expected", "open"
INTERRUPTED, UNREADABLE = "interrupted", "not readable"


@dataclass(frozen=True)
class Drilled:
    """One drill of a run: a row of its table."""

    case: str
    verdict: str
    pause_ms: Optional[int]
    observed: str


@dataclass(frozen=True)
class Run:
    """One run. `when`: its id, which is a time; `page`: relative to the reports, "" where it has none.

    `drills` are those of a run of drills.
    """

    when: str
    kind: str
    verdict: str
    pause_ms: Optional[int]
    summary: str
    page: str = ""
    drills: Tuple[Drilled, ...] = ()


def runs_below(directory: str) -> List[Run]:
    """The runs in a directory of reports, the latest first; nothing where there is none."""
    found = []
    for place, kind, result, page in _PLACES:
        base = os.path.join(directory, place)
        for name in sorted(os.listdir(base)) if os.path.isdir(base) else ():
            match, path = _RUN.match(name), os.path.join(base, name)
            if not match or os.path.islink(path):
                continue
            if match.group(2):
                if place in _OF_ROWS:
                    there = _beside(directory, f"{place}/{name}")
                    found.append(_of_rows(match.group(1), _OF_ROWS[place], _read(path), there))
            # one without a result goes on, or never came to its end
            elif os.path.exists(os.path.join(path, result)):
                where = os.path.join(place, name, page)
                there = where if os.path.exists(os.path.join(directory, where)) else ""
                found.append(_of_job(name, kind, _read(os.path.join(path, result)), there))
    return sorted(found, key=lambda run: (run.when, run.kind), reverse=True)


def _read(path: str) -> Optional[Dict[str, Any]]:
    try:
        with open(path, encoding="utf-8") as stream:
            told = json.load(stream)
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) else None


def _of_job(when: str, kind: str, told: Optional[Dict[str, Any]], page: str) -> Run:
    if told is None:
        return Run(when, kind, UNREADABLE, None, "", page)
    pause = _milliseconds(_of(_of(told.get("timing")).get("longest_pause")).get("ms"))
    verdict, summary = str(told.get("verdict") or UNREADABLE), str(told.get("summary") or "")
    return Run(when, kind, verdict, pause, summary, page)


def _of(found: Any) -> Dict[str, Any]:
    """What has names; of anything else, as another program may have written it, nothing."""
    return found if isinstance(found, dict) else {}


def _listed(found: Any) -> List[Any]:
    return found if isinstance(found, list) else []


def _milliseconds(found: Any) -> Optional[int]:
    known = isinstance(found, (int, float)) and not isinstance(found, bool) and math.isfinite(found)
    return int(found) if known else None


def _beside(directory: str, told: str) -> str:
    """The page of a JSON, relative to the reports, or itself where there is none."""
    page = f"{told[: -len('.json')]}.html"
    return page if os.path.exists(os.path.join(directory, page)) else told


def runs_of_rows(directory: str) -> Iterator[Tuple[str, Run, Dict[str, Any]]]:
    """(where the page has to be, the run, its JSON) of each run of drills, of guarantees and of a benchmark.

    Those that have a page which is not older than they are, and those that cannot be read, are left out.
    """
    for place, kind in _OF_ROWS.items():
        base = os.path.join(directory, place)
        for name in sorted(os.listdir(base)) if os.path.isdir(base) else ():
            match, path = _RUN.match(name), os.path.join(base, name)
            if not match or not match.group(2) or os.path.islink(path):
                continue
            page = f"{path[: -len('.json')]}.html"
            if os.path.exists(page) and os.path.getmtime(page) >= os.path.getmtime(path):
                continue
            told = _read(path)
            if told is not None:
                yield page, _of_rows(match.group(1), kind, told, ""), told


def _of_rows(when: str, kind: str, told: Optional[Dict[str, Any]], page: str) -> Run:
    if told is None:
        return Run(when, kind, UNREADABLE, None, "", page)
    rows = tuple(
        Drilled(
            str(each.get("case")),
            str(each.get("verdict") or UNREADABLE),
            _milliseconds(each.get("pause_ms")),
            str(each.get("observed") or ""),
        )
        for each in _listed(told.get("drills"))
        if isinstance(each, dict)
    )
    held = sum(each.verdict == AS_EXPECTED for each in rows)
    names = _listed(told.get("names")) or rows
    summary = f"{held} of {len(names)} as expected"
    if any(each.verdict == NOT_EXPECTED for each in rows):
        verdict = NOT_EXPECTED
    elif told.get("interrupted") or not told.get("over", True):
        verdict = INTERRUPTED if told.get("interrupted") else OPEN
    else:
        verdict = AS_EXPECTED if rows and held == len(rows) else OPEN
    pauses = [each.pause_ms for each in rows if each.pause_ms is not None]
    return Run(when, kind, verdict, max(pauses, default=None), summary, page, rows)

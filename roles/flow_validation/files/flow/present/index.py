# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The runs of one cluster over time as one self-contained HTML page. Pure: runs in, text out.

It links to the pages of the runs, which lie beside it, and loads nothing.
"""

from __future__ import annotations

from html import escape
from typing import Dict, Iterable, List, Optional, Sequence

from flow.prepare.history import AS_EXPECTED, NOT_EXPECTED, Drilled, Run
from flow.present import plots
from flow.present.report import document

# Of each drill so many times are shown, and so many runs: the page stays one that a phone can show.
TIMES, RUNS = 10, 200
# A name of a drill that stays in one line.
NAME = 20
_NUMBERS = (
    *("pause", "before", "acknowledged", "lost", "late", "a second"),
    *("ratio", "MB/s", "p50", "p95", "p99", "p99.9", "max"),
)
_SIGN = {"pass": "✓", "fail": "✕", "inconclusive": "?"}


def index_page(cluster: str, runs: Sequence[Run]) -> str:
    """The whole page. `runs`: the latest first."""
    sections = [_head(cluster, runs), *_drills(runs), _all_runs(runs)]
    return document(f"Runs of {cluster}", sections)


def kind_of(verdict: str) -> str:
    """How a verdict looks: pass, fail or inconclusive."""
    if verdict in ("pass", AS_EXPECTED):
        return "pass"
    return "fail" if verdict in ("fail", NOT_EXPECTED) else "inconclusive"


def _head(cluster: str, runs: Sequence[Run]) -> str:
    if not runs:
        says = "There is no run yet: playbooks/validate.yml, drill.yml, guarantees.yml and benchmark.yml make them."
        return f"<header><h1>Runs of {escape(cluster)}</h1><p>{says}</p></header>"
    last = runs[0]
    said = f"{last.kind}, {time_of(last.when)}"
    more = f": {last.summary}" if last.summary else ""
    return head(f"Runs of {cluster}: the latest", last.verdict, f"{said}{more}")


def head(title: str, verdict: str, said: str) -> str:
    """The head of a page: what it is, and the verdict."""
    kind = kind_of(verdict)
    return (
        f"<header><h1>{escape(title)}</h1>"
        f"<div class='verdict {kind}'><div class='sign' aria-hidden='true'>{_SIGN[kind]}</div>"
        f"<div><strong>{escape(verdict.upper())}</strong>"
        f"<span>{escape(said)}</span></div></div></header>"
    )


def _drills(runs: Sequence[Run]) -> List[str]:
    """For each drill its times, the latest first, so that pauses can be compared."""
    times: Dict[str, List[tuple]] = {}
    for run in runs:
        for each in run.drills:
            times.setdefault(each.case, []).append((run, each))
    if not times:
        return []
    rows = [row for case in sorted(times) for row in _of_case(case, times[case][:TIMES])]
    note = f"The last {TIMES} times of each, the latest first. Pauses beside the one before."
    return [
        table(
            "Drills, guarantees and benchmarks",
            note,
            ("case", "when", "verdict", "pause", "before", "observed"),
            rows,
        )
    ]


def _of_case(case: str, times: Sequence[tuple]) -> Iterable[List[str]]:
    for number, (run, each) in enumerate(times):
        before: Optional[Drilled] = times[number + 1][1] if number + 1 < len(times) else None
        yield [
            cell("case", escape(case), short=len(case) <= NAME),
            cell("when", _link(run.page, time_of(run.when)), short=True),
            verdict_cell(each.verdict),
            cell("pause", _span(each.pause_ms), number=True),
            cell("before", _span(before.pause_ms) if before else "–", number=True),
            cell("observed", escape(each.observed)),
        ]


def _all_runs(runs: Sequence[Run]) -> str:
    rows = [
        [
            cell("when", _link(run.page, time_of(run.when)), short=True),
            cell("what", escape(run.kind)),
            verdict_cell(run.verdict),
            cell("pause", _span(run.pause_ms), number=True),
            cell("found", escape(run.summary)),
        ]
        for run in runs[:RUNS]
    ]
    note = "The latest first. The pause is the longest of the run."
    if len(runs) > RUNS:
        note += f" {len(runs) - RUNS:,} older ones are left out."
    return table("Runs", note, ("when", "what", "verdict", "pause", "found"), rows)


def time_of(when: str) -> str:
    """20261125T172117Z as people write it."""
    return f"{when[:4]}-{when[4:6]}-{when[6:8]} {when[9:11]}:{when[11:13]}:{when[13:15]} UTC"


def _span(milliseconds: Optional[int]) -> str:
    return "–" if milliseconds is None else escape(plots.span(milliseconds))


def _link(page: str, said: str) -> str:
    return f"<a href='{escape(page)}'>{escape(said)}</a>" if page else escape(said)


def verdict_cell(verdict: str) -> str:
    """A cell with a verdict, its sign before it."""
    kind = kind_of(verdict)
    said = f"<span class='said {kind}'>{_SIGN[kind]} {escape(verdict)}</span>"
    return cell("verdict", said, short=True)


def cell(name: str, html: str, number: bool = False, short: bool = False) -> str:
    """A cell: a number stands right, what is short stays in one line."""
    kind = " class=n" if number else " class=s" if short else ""
    return f"<td{kind} data-name='{name}'>{html}</td>"


def table(title: str, note: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of rows of cells, "" where there is none; on a phone each row is a block."""
    if not rows:
        return ""
    head = "".join(f"<th{' class=n' if each in _NUMBERS else ''}>{each}</th>" for each in columns)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return (
        f"<h2>{title}</h2><p class='note'>{escape(note)}</p><div class='scroll'>"
        f"<table class='rows'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )

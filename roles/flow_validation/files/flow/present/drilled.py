# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""A run of drills, or of guarantees, as one self-contained HTML page. Pure: its JSON in, text out."""

from __future__ import annotations

from html import escape
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from flow.present import plots
from flow.present.index import cell, head, table, verdict_cell
from flow.present.report import document, figure, sentences_list

NUMBERS = ("case", "acknowledged", "lost", "late", "a second", "pause", "verdict")
WORDS = ("case", "done", "expected", "observed")
# Of drills, whose topics are not as those of the user: what it was shown on.
TOPIC = "topic"
COURSE = ("when", "leader", "in sync", "controller")
# So many changes are listed of each case, the last ones; the JSON has all.
CHANGES = 20
# A name that stays in one line.
NAME = 20
# So many ranges of lost records are named of each case; the JSON has all.
RANGES = 40


def drilled_page(title: str, verdict: str, summary: str, told: Mapping[str, Any]) -> str:
    """The whole page. `verdict` and `summary`: of the run; `told`: its JSON, whose `drills` are rows."""
    rows = [each for each in told.get("drills") or () if isinstance(each, dict)]
    sections = [
        head(title, verdict, summary),
        _wrong(rows),
        table("Numbers and verdicts", _note(rows), NUMBERS, [_numbers(each) for each in rows]),
        # words and numbers side by side leave too little room for either
        table(
            "What was done",
            "In the same order.",
            _columns(rows),
            [_words(each, rows) for each in rows],
        ),
        _otherwise(rows),
        _lost(rows),
        _skipped(rows),
        *(drawn for each in rows for drawn in (_figure(each), _course(each), _backlog(each))),
    ]
    return document(f"{title}: {verdict}", sections)


def _note(rows: Iterable[Mapping[str, Any]]) -> str:
    note = "The pause is the longest between two acknowledgements, or what the observation says."
    if any(_measured(each).get("rate") for each in rows):
        note += (
            " Records a second: of one producer that sent 20,000 small ones as fast as it could. That is short, and"
            " compares rows of this table alone."
        )
    return note


def _seen(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return row.get("seen") or {}


def _measured(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return _seen(row).get("measured") or {}


def _case(row: Mapping[str, Any]) -> str:
    case = str(row.get("case"))
    return cell("case", escape(case), short=len(case) <= NAME)


def _numbers(row: Mapping[str, Any]) -> List[str]:
    seen, pause = _seen(row), row.get("pause_ms")
    return [
        _case(row),
        cell("acknowledged", _number(seen.get("acknowledged")), number=True),
        cell("lost", _number(seen.get("lost")), number=True),
        cell("late", _number(seen.get("late")), number=True),
        cell("a second", _number(_measured(row).get("rate")), number=True),
        cell("pause", "–" if pause is None else escape(plots.span(pause)), number=True),
        verdict_cell(str(row.get("verdict"))),
    ]


def _columns(rows: Iterable[Mapping[str, Any]]) -> Sequence[str]:
    """With what each topic had, where that is known of any."""
    return (*WORDS, TOPIC) if any(each.get("durability") for each in rows) else WORDS


def _words(row: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> List[str]:
    told = {**row, TOPIC: row.get("durability")}
    words = [each for each in _columns(rows) if each != "case"]
    return [_case(row), *(cell(each, escape(str(told.get(each) or "–"))) for each in words)]


def _number(value: Optional[int]) -> str:
    return "–" if value is None else f"{value:,}"


def _wrong(rows: Iterable[Mapping[str, Any]]) -> str:
    found = [
        f"{each.get('case')}: {text}"
        for each in rows
        for text in [*(each.get("wrong") or ()), *(each.get("open") or ())]
    ]
    return sentences_list("What was not as expected", found)


def _otherwise(rows: Iterable[Mapping[str, Any]]) -> str:
    """How topics of the user may fare otherwise than those of the drills; each sentence once, with its cases."""
    found: Dict[str, List[str]] = {}
    for row in rows:
        if row.get("otherwise"):
            found.setdefault(str(row["otherwise"]), []).append(str(row.get("case")))
    said = [f"{sentence} ({', '.join(cases)})" for sentence, cases in found.items()]
    return sentences_list("Each verdict is about the drill's own topic", said)


def _lost(rows: Iterable[Mapping[str, Any]]) -> str:
    """Which acknowledged records are lost: records are numbered as they were sent."""
    found: Dict[str, None] = {}
    for row in rows:
        for group in _seen(row).get("groups") or ():
            if group.get("missing"):
                found[f"{row.get('case')}: {ranges(group['missing'])}"] = None
    return sentences_list("Acknowledged records that are lost, by number", list(found))


def _skipped(rows: Iterable[Mapping[str, Any]]) -> str:
    """Which records a group has committed before it had worked at them: Kafka has them still."""
    found = [
        f"{row.get('case')}, group {group.get('name')}: {ranges(group['skipped'])}"
        for row in rows
        for group in _seen(row).get("groups") or ()
        if group.get("skipped")
    ]
    title = "Committed by a group that has not worked at them, by number; the topic has them"
    return sentences_list(title, found)


def ranges(records: Sequence[str]) -> str:
    """Numbers in short: "3, 7-9"; other names as they are."""
    numbers = sorted(int(each) for each in records if each.isdecimal())
    found: List[List[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    # without marks of thousands, which look like those between two ranges
    words = [str(low) if low == high else f"{low}-{high}" for low, high in found]
    words += [each for each in records if not each.isdecimal()]
    more = len(words) - RANGES
    return ", ".join(words[:RANGES]) + (f" and {more:,} more" if more > 0 else "")


def _figure(row: Mapping[str, Any]) -> str:
    """Acknowledgements over time, with the fault drawn in; nothing where there were none."""
    series = _seen(row).get("timeline") or {}
    if not series.get("records") or series.get("start_ms") is None:
        return ""
    fault = row.get("fault") or {}
    at_ms, events = fault.get("at_ms"), []
    says = (
        f"{series.get('of') or 'Acknowledgements'} in steps of {plots.span(series['bucket_ms'])}."
    )
    if at_ms:
        events = [{"from_ms": at_ms, "to_ms": fault.get("to_ms") or at_ms}]
        says += f" 1: {fault.get('label') or row.get('done')}."
    moments = [each["at_ms"] for each in _seen(row).get("moments") or ()]
    if moments:
        says += " Ticks at the foot: leader, replicas in sync or controller changed."
    return figure(
        str(row.get("case")),
        lambda width: plots.rate(series, series["bucket_ms"], None, None, width, events, moments),
        says,
    )


def _course(row: Mapping[str, Any]) -> str:
    """Who led the drill's first partition, and which replicas were in sync: before, and at each change since."""
    moments, at_ms = list(_seen(row).get("moments") or ()), (row.get("fault") or {}).get("at_ms")
    if not at_ms:
        return ""
    # the time of the fault may be that of another clock
    cut_ms = (row.get("fault") or {}).get("before_ms") or at_ms
    before = [each for each in moments if each["at_ms"] <= cut_ms][-1:]
    after = [each for each in moments if each["at_ms"] > cut_ms]
    shown = [("before", each) for each in before]
    shown += [
        (f"{plots.span(max(0, each['at_ms'] - at_ms))} after", each) for each in after[-CHANGES:]
    ]
    left_out = len(after) - CHANGES
    note = "Of its first partition, from each of these moments on."
    note += f" {left_out} changes before these are left out." if left_out > 0 else ""
    return table(
        escape(f"{row.get('case')}: leader and replicas"),
        note,
        COURSE,
        [
            [
                cell("when", escape(when), short=True),
                cell("leader", escape(_broker(each.get("leader")))),
                cell("in sync", escape(", ".join(map(str, each.get("isr") or ())) or "none")),
                cell("controller", escape(_broker(each.get("controller")))),
            ]
            for when, each in shown
        ],
    )


def _broker(number: Optional[int]) -> str:
    return "none" if number is None else str(number)


def _backlog(row: Mapping[str, Any]) -> str:
    """The records that wait over time, by how many consumers there are; nothing where it was not measured."""
    samples = [tuple(each) for each in _measured(row).get("backlog") or ()]
    if len(samples) < 2 or samples[0][0] >= samples[-1][0]:
        return ""
    fault = row.get("fault") or {}
    if fault.get("at_ms"):
        events = [{"from_ms": fault["at_ms"], "to_ms": fault.get("to_ms") or fault["at_ms"]}]
        says = f"1: {fault.get('label') or row.get('done')}."
    else:
        # in the order in which consumers come
        counts = list(dict.fromkeys(each[2] for each in samples))
        times = [[each[0] for each in samples if each[2] == count] for count in counts]
        events = [{"from_ms": each[0], "to_ms": each[-1]} for each in times]
        said = [f"{number}: {_consumers(count)}" for number, count in enumerate(counts, 1)]
        says = f"{'; '.join(said)}."
    return figure(
        f"{row.get('case')}: backlog",
        lambda width: plots.backlog(samples, width, events),
        f"Records that were acknowledged and at which nobody had worked. {says}",
    )


def _consumers(count: int) -> str:
    return f"{count} consumer" + ("" if count == 1 else "s")

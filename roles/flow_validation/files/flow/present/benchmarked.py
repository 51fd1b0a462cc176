# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""A benchmark as one self-contained HTML page. Pure: its JSON in, text out."""

from __future__ import annotations

from html import escape
from typing import Any, Dict, Iterable, List, Mapping, Optional

from flow.present import plots
from flow.present.index import cell, head, table, verdict_cell
from flow.present.report import document, figure, sentences_list

PERCENTILES = ("p50", "p95", "p99", "p99.9", "max")
NUMBERS = ("row", "ratio", "a second", "MB/s", "acknowledged", "lost", "before", "limit", "verdict")
LATENCY = ("row", *PERCENTILES)
WORDS = ("row", "limit", "why")
# A name that stays in one line.
NAME = 22
MEGA = 1e6


def benchmarked_page(title: str, verdict: str, summary: str, told: Mapping[str, Any]) -> str:
    """The whole page. `verdict` and `summary`: of the run; `told`: its JSON, whose `drills` are rows."""
    rows = [each for each in told.get("drills") or () if isinstance(each, dict)]
    first = rows[0].get("done") if rows else ""
    note = (
        f"The first row: {first}. Each other row differs in what its name says. The ratio is to the first"
        " row, 'before' to earlier runs of this cluster."
    )
    sections = [
        head(title, verdict, summary),
        _amiss(rows),
        table("Rows", note, NUMBERS, [_numbers(each) for each in rows]),
        table(
            "Latency",
            "End to end, from the sending to the consumer, in ms. Where producers send as fast as they can, most of"
            " it is the time in queues.",
            LATENCY,
            [_latency(each) for each in rows if _load(each)],
        ),
        table("What limits each row", "", WORDS, [_words(each) for each in rows]),
        _apart(rows),
        _witness(told.get("witness") or {}),
        *(_figure(each) for each in rows),
    ]
    return document(f"{title}: {verdict}", sections)


def _load(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return row.get("load") or {}


def _rate(row: Mapping[str, Any]) -> Optional[float]:
    rate = ((row.get("seen") or {}).get("measured") or {}).get("rate")
    return None if rate is None else float(rate)


def _name(row: Mapping[str, Any]) -> str:
    name = str(row.get("case"))
    return cell("row", escape(name), short=len(name) <= NAME)


def _numbers(row: Mapping[str, Any]) -> List[str]:
    seen, rate, change = row.get("seen") or {}, _rate(row), row.get("change") or {}
    size = (row.get("setup") or {}).get("record_bytes")
    bytes_rate = rate * size / MEGA if rate is not None and size else None
    return [
        _name(row),
        cell("ratio", _ratio(row.get("ratio")), number=True),
        cell("a second", _number(rate), number=True),
        cell("MB/s", _number(bytes_rate, 1), number=True),
        cell("acknowledged", _number(seen.get("acknowledged")), number=True),
        cell("lost", _number(seen.get("lost")), number=True),
        cell("before", _number(change.get("ratio"), 2), number=True),
        cell("limit", escape(str(row.get("limit") or "–"))),
        verdict_cell(str(row.get("verdict"))),
    ]


def _latency(row: Mapping[str, Any]) -> List[str]:
    found = _load(row).get("latency_ms") or {}
    return [
        _name(row),
        *(cell(each, _number(found.get(each), 1), number=True) for each in PERCENTILES),
    ]


def _words(row: Mapping[str, Any]) -> List[str]:
    return [_name(row), *(cell(each, escape(str(row.get(each) or "–"))) for each in WORDS[1:])]


def _number(value: Optional[float], digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _ratio(value: Optional[float]) -> str:
    """Small ones with two digits that are not zero."""
    return f"{value:.2g}" if value and value < 0.1 else _number(value, 2)


def _amiss(rows: Iterable[Mapping[str, Any]]) -> str:
    found = [
        f"{each.get('case')}: {text}"
        for each in rows
        for text in [*(each.get("wrong") or ()), *(each.get("open") or ())]
    ]
    return sentences_list("What was not as expected", found)


def _apart(rows: Iterable[Mapping[str, Any]]) -> str:
    """Earlier runs that rows are not compared with, and why not."""
    found: Dict[str, List[str]] = {}
    for each in rows:
        for why in each.get("not_compared") or ():
            found.setdefault(str(why), []).append(str(each.get("case")))
    told = [f"{', '.join(names)}: not with {why}" for why, names in found.items()]
    return sentences_list("What is not compared with earlier runs", told)


def _witness(told: Mapping[str, Any]) -> str:
    """What Kafka's own tools say of the first row."""
    made, read, found = told.get("producer") or {}, told.get("consumer") or {}, []
    if told.get("why"):
        found.append(f"none: {told['why']}")
    if made:
        found.append(
            f"kafka-producer-perf-test: {_number(made.get('rate'))} records a second,"
            f" {_number(made.get('records'))} sent, {_number(told.get('there'))} there"
        )
    if read:
        found.append(
            f"kafka-consumer-perf-test: {_number(read.get('rate'))} records a second,"
            f" {_number(read.get('records'))} read"
        )
    return sentences_list("Second witness: Kafka's own tools, with the first row's settings", found)


def _figure(row: Mapping[str, Any]) -> str:
    """Acknowledgements in each part of a row, one after the other; nothing where there were too few."""
    parts = [max(0, round(each / 4)) for each in _load(row).get("parts") or ()]
    if len(parts) < 3 or not any(parts):
        return ""
    series = {"start_ms": 0, "bucket_ms": 250, "records": parts}
    return figure(
        str(row.get("case")),
        lambda width: plots.rate(series, 250, None, None, width, [], []),
        "Acknowledgements in steps of a quarter of a second, without the first and the last.",
    )

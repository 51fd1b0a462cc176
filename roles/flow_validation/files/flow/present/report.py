# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The verdict as one self-contained HTML page. Pure: the verdict's dictionary in, text out.

No script, nothing loaded from elsewhere: the page is evidence, and must read the same in ten years.
"""

from __future__ import annotations

from html import escape
from typing import Iterable, Iterator, Optional, Sequence

from flow.judge.verdict import FAIL, INCONCLUSIVE, MEANING, PASS
from flow.present import plots
from flow.record.timing import APPENDED

_NARROW, _WIDE = 328, 780  # widths that plots are drawn for: a phone's, and everything else's

_NOTABLE_MS = 200  # pauses below it are how clients fill their batches; none is drawn
_IDS = {"event", "broker", "leader", "partition", "producer", "attempt"}  # numbers that are names
_BROKER_COLUMNS = ("broker", "address", "led", "acked", "read", "longest_pause")
_LISTENER_COLUMNS = ("listener", "broker", "address", "found")
_PROBE_COLUMNS = ("probe", "found", "measured", "seconds", "topic")
_PARTITION_COLUMNS = (
    "partition", "leader", "replicas", "isr", "start", "end", "acked", "read", "unknown",
    "longest_pause",
)  # fmt: skip
_EVENT_COLUMNS = ("event", "told", "began", "took")
_INSPECTED_COLUMNS = ("partition", "leader", "replicas", "isr", "start", "end", "read")
_SIGN = {PASS: "✓", FAIL: "✕", INCONCLUSIVE: "?"}

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --panel: #f5f7f9; --ink: #1b1f24;
  --muted: #57606a; --line: #d8dee4; --data: #2563a8; --wash: #d5e3f3; --hatch: #8a3b12;
  --pass: #1a7f37; --fail: #b3261e; --inconclusive: #8a5a00; }
@media screen and (prefers-color-scheme: dark) { :root { --ground: #11161c; --panel: #1a2129;
  --ink: #e6edf3; --muted: #a3afbb; --line: #323c47; --data: #5a9ad8; --wash: #223a55;
  --hatch: #f0a36b; --pass: #57c271; --fail: #ff8078; --inconclusive: #e0b040; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; margin: 0 auto;
  max-width: 58rem; padding: 1.25rem 1rem 4rem; color: var(--ink); background: var(--ground);
  overflow-wrap: anywhere; -webkit-text-size-adjust: 100%; }
header p, figcaption, .note { color: var(--muted); margin: .25rem 0; font-size: .9375rem; }
h1 { font-size: 1rem; font-weight: 600; margin: 0 0 .75rem; color: var(--muted); }
h2 { font-size: 1.125rem; margin: 2.75rem 0 .5rem; line-height: 1.3; }
.verdict { display: flex; gap: 1rem; align-items: center; padding: 1.1rem 1.25rem;
  border: 2px solid var(--kind); border-left-width: .6rem; border-radius: .35rem;
  background: var(--panel); margin: 0 0 .75rem; }
.verdict .sign { flex: none; width: 3.25rem; height: 3.25rem; border-radius: 50%; display: grid;
  place-items: center; border: 3px solid var(--kind); color: var(--kind); font-size: 1.75rem;
  font-weight: 700; line-height: 1; }
.verdict strong { display: block; font-size: 1.75rem; line-height: 1.15; letter-spacing: .03em;
  color: var(--kind); }
.verdict span { display: block; margin-top: .15rem; }
.pass { --kind: var(--pass); } .fail { --kind: var(--fail); }
.inconclusive { --kind: var(--inconclusive); }
.facts { display: flex; flex-wrap: wrap; gap: 1px;
  margin: 1.25rem 0 0; background: var(--line); border: 1px solid var(--line);
  border-radius: .35rem; overflow: hidden; }
.facts div { flex: 1 1 max(9.25rem, 22%); background: var(--ground); padding: .6rem .8rem; }
.facts dt { color: var(--muted); font-size: .875rem; }
.facts dd { margin: 0; font-size: 1.3rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.checks { list-style: none; margin: 0; padding: 0; }
.checks li { display: grid; grid-template-columns: 1.6rem 7rem 1fr; column-gap: .4rem; padding: .4rem 0;
  border-bottom: 1px solid var(--line); }
.checks .sign { color: var(--kind); font-weight: 700; }
.checks .fail b, .checks em { color: var(--kind); font-weight: 700; font-style: normal; }
.checks b { font-weight: 600; }
figure { margin: 0 0 1rem; }
svg { display: block; width: 100%; height: auto; }
svg text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--muted);
  font-variant-numeric: tabular-nums; }
svg .label { fill: var(--ink); font-weight: 600; }
svg .over { paint-order: stroke; stroke: var(--ground); stroke-width: 5px; }
.grid { stroke: var(--line); } .axis { stroke: var(--muted); }
.bar { fill: var(--data); } .lane { fill: var(--wash); stroke: var(--data); }
.area { fill: var(--wash); stroke: var(--data); stroke-width: 1.5; stroke-linejoin: round; }
.acks { fill: none; stroke: var(--ink); stroke-width: 1.25; stroke-dasharray: 5 3; }
.halo { stroke: var(--ground); stroke-width: 4; } .mark { stroke: var(--ink); stroke-width: 1.5; }
.m0 { stroke-dasharray: none; } .m1 { stroke-dasharray: 7 3; } .m2 { stroke-dasharray: 3 3; }
.m3 { stroke-dasharray: 1 3; }
.event { fill: var(--line); stroke: var(--muted); stroke-dasharray: 2 3; }
.hatch { fill: var(--hatch); } .ground { fill: var(--ground); }
.pause { fill: url(#hatch); stroke: var(--hatch); }
.narrow { display: none; }
table { border-collapse: collapse; width: 100%; font-size: .9375rem; }
th, td { text-align: left; padding: .35rem 1.1rem .35rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { color: var(--muted); font-weight: 600; font-size: .875rem; }
th { overflow-wrap: normal; } td.s { white-space: nowrap; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
.scroll { overflow-x: auto; }  /* numbers of twelve digits, on less than a desk's width */
.pairs th { font-weight: 400; }
.pairs td { text-align: right; font-variant-numeric: tabular-nums; }
.environment { display: grid; grid-template-columns: 1fr 1fr; gap: 0 3rem; }
@media (max-width: 719px) {
  .narrow { display: block; max-width: 30rem; } .wide { display: none; }
  .environment { display: block; }
  .checks li { grid-template-columns: 1.6rem 1fr; }
  .checks span { grid-column: 2; }
  .rows thead { display: none; }
  .rows, .rows tbody { display: block; }
  .rows tr { display: flex; flex-wrap: wrap; gap: 0 1.1rem; padding: .45rem 0;
    border-bottom: 1px solid var(--line); }
  .rows td, .rows td.n { display: block; border: 0; padding: 0; text-align: left; }
  .rows td::before { content: attr(data-name) " "; color: var(--muted); font-size: .875rem; }
  .rows td:first-child { flex: 1 0 100%; font-weight: 600; }
  .rows td:first-child::before { color: inherit; font-size: inherit; }
}
@media print {
  @page { margin: 14mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  .narrow { display: none; } .wide { display: block; }
  h2 { break-after: avoid; margin-top: 1.75rem; }
  table, th { font-size: 8.5pt; } .scroll { overflow: visible; }
  figure, tr, li, .verdict, .facts { break-inside: avoid; }
  thead { display: table-header-group; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
""".strip()


def page(verdict: dict) -> str:
    """The whole page of a verdict (verdict.schema.json); everything variable is escaped."""
    sections = [
        _head("Flow validation", verdict, f", run {verdict['run_id']}"),
        _facts(verdict),
        _list("What stayed open", verdict.get("unclear", [])),
        _list("What now", verdict.get("what_now", [])),
        _checks(verdict["checks"], MEANING),
        _witnesses(verdict["checks"], verdict["topic"]["name"]),
        _latency(verdict["timing"]),
        _rate(verdict["timing"], verdict.get("events", [])),
        _table(
            "Meanwhile",
            _meanwhile(verdict.get("events", []), verdict["timing"]["first_ms"]),
            _EVENT_COLUMNS,
            "The bands in the plot above, by their numbers.",
        ),
        _lanes(
            verdict["timing"],
            verdict["partitions"],
            bool(verdict["topic"].get("transaction_records")),
        ),
        _table(
            "Brokers",
            _with_pause(verdict["brokers"], verdict["timing"]["bucket_ms"]),
            _BROKER_COLUMNS,
            "By who led which partition before the first write; leadership may have moved since.",
        ),
        _table(
            "Other listeners",
            list(_by_broker(verdict.get("listeners", []))),
            _LISTENER_COLUMNS,
            "One record went through each of them to each broker and back, before the run's first.",
        ),
        _table(
            "Probes",
            [_probed(each) for each in verdict.get("probes", [])],
            _PROBE_COLUMNS,
            "Promises of the cluster that were tried beside the run, each with a topic of its own.",
        ),
        _table(
            "Partitions",
            _with_pause(verdict["partitions"], verdict["timing"]["bucket_ms"]),
            _PARTITION_COLUMNS,
        ),
        _environment(verdict),
    ]
    title = f"{verdict['verdict'].upper()}: flow validation of {_text(verdict['cluster_id'])}"
    return _document(title, sections)


def inspection_page(inspection: dict, meaning: dict) -> str:
    """The whole page of an inspection (inspection.schema.json); meaning: check id -> what a pass says."""
    counts, topic = inspection["counts"], inspection["topic"]["name"]
    facts = [("read", _text(counts["read"])), ("judged", _text(counts["chosen"]))]
    if counts["unjudged"]:
        facts.append(("without id or sequence", _text(counts["unjudged"])))
    sections = [
        _head("Inspection of a topic", inspection),
        _cells(facts),
        _checks(inspection["checks"], meaning),
        _table("Not judged", inspection["not_judged"], ("id", "reason")),
        _witnesses(inspection["checks"], topic),
        _table("Partitions", inspection["partitions"], _INSPECTED_COLUMNS),
        "<div class='environment'>"
        + _pairs("Expressions", inspection["expressions"])
        + _pairs("Topic", {_name(k): v for k, v in inspection["topic"].items()})
        + _pairs("Where the time went (seconds)", inspection["timings"])
        + _pairs("Versions", inspection["versions"])
        + "</div>",
    ]
    return _document(f"{inspection['verdict'].upper()}: inspection of {topic}", sections)


def _document(title: str, sections: Iterable[str]) -> str:
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f"<title>{escape(title)}</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<style>{_STYLE}</style></head><body>{plots.hatching()}\n"
        + "\n".join(filter(None, sections))
        + "\n</body></html>\n"
    )


def _by_broker(listeners: Iterable[dict]) -> Iterator[dict]:
    """Rows of the listeners of verdict.json, one a broker."""
    for entry in listeners:
        for each in entry["brokers"]:
            found = each["trouble"] or "written and read"
            yield {"listener": entry["name"], **each, "found": found}
        if entry["trouble"]:
            address = entry["bootstrap_servers"]
            yield {"listener": entry["name"], "address": address, "found": entry["trouble"]}


def _probed(probe: dict) -> dict:
    """A row of the probes of verdict.json."""
    found = "nothing wrong"
    if probe["unclear"] is not None:
        found = f"could not be judged: {probe['unclear']}"
    elif probe["violations"]:
        plural = "" if probe["violations"] == 1 else "s"
        found = f"{probe['violations']:,} violation{plural} of {probe['check']}"
    measured = "; ".join(f"{_name(k)} {_text(v)}" for k, v in probe["measured"].items())
    kept = "kept" if probe["topic_kept"] else "deleted"
    return {
        "probe": probe["name"],
        "found": found,
        "measured": measured or None,
        "seconds": probe["seconds"],
        "topic": f"{probe['topic']} ({kept})",
    }


def _text(value) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, (list, tuple)):
        return ", ".join(str(v) for v in value) or "–"
    return str(value)


def _name(key: str) -> str:
    """A key of verdict.json as words."""
    return key.replace("_", " ")


def _is_quantity(name: str, value) -> bool:
    """Whether to align it as a number; those of brokers and the like are names."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (number and name not in _IDS) or name == "longest_pause"


def _head(heading: str, verdict: dict, more: str = "") -> str:
    kind = verdict["verdict"]
    return (
        f"<header><h1>{heading}</h1>"
        f"<div class='verdict {escape(kind)}'><div class='sign' aria-hidden='true'>"
        f"{_SIGN.get(kind, '?')}</div><div><strong>{escape(kind.upper())}</strong>"
        f"<span>{escape(verdict['summary'])}</span></div></div>"
        f"<p>Cluster {escape(_text(verdict['cluster_id']))}, topic"
        f" {escape(_text(verdict['topic'].get('name')))}, started {escape(verdict['started'])}"
        f"{escape(more)}</p></header>"
    )


def _list(title: str, sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    rows = "".join(f"<li>{escape(each)}</li>" for each in sentences)
    return f"<h2>{escape(title)}</h2><ul>{rows}</ul>"


def _facts(verdict: dict) -> str:
    counts, timing = verdict["counts"], verdict["timing"]
    facts = [
        ("acknowledged", _text(counts["acked"])),
        ("read", _text(counts["read"])),
        ("unknown", _text(counts["unknown"])),
        ("failed", _text(counts["failed"])),
    ]
    if "resent" in counts:
        facts.append(("sent again by their producer", _text(counts["resent"])))
    if "aborted" in counts:
        facts.append(("in aborted transactions", _text(counts["aborted"])))
    mean, measured = timing["records_per_second"], timing["latency"]
    pause = timing["longest_pause"]
    if mean:
        facts.append(("records a second", _text(round(mean))))
    if measured:
        facts.append(("latency, median", plots.span(measured["p50_ms"])))
        facts.append(("latency, p99", plots.span(measured["p99_ms"])))
    if timing["first_ms"] is not None:
        facts.append(("longest pause", _pause(pause and pause["ms"], timing["bucket_ms"])))
    return _cells(facts)


def _cells(facts: Iterable[tuple]) -> str:
    cells = "".join(f"<div><dt>{n}</dt><dd>{escape(v)}</dd></div>" for n, v in facts)
    return f"<dl class='facts'>{cells}</dl>"


def _pause(pause_ms: Optional[int], bucket_ms: int) -> str:
    return plots.span(pause_ms) if pause_ms else f"< {plots.span(bucket_ms)}"


def _with_pause(rows: Iterable[dict], bucket_ms: int) -> list:
    """The rows with their longest pause in words; where nothing was read there is none."""
    return [
        {**r, "longest_pause": _pause(r["longest_pause_ms"], bucket_ms) if r["read"] else None}
        for r in rows
    ]


def _checks(checks: Iterable[dict], meaning: dict) -> str:
    rows = []
    for check in checks:
        bad = check["status"] == FAIL
        kind = FAIL if bad else PASS
        says = escape(meaning.get(check["id"], ""))
        if bad:
            plural = "" if check["count"] == 1 else "s"
            says = f"<em>{check['count']:,} violation{plural}</em> of: {says}"
        rows.append(
            f"<li class='{kind}'><div class='sign' role='img' aria-label='{kind}'>{_SIGN[kind]}"
            f"</div><b>{escape(check['id'])}</b><span>{says}</span></li>"
        )
    return f"<h2>Checks</h2><ul class='checks'>{''.join(rows)}</ul>"


def _witnesses(checks: Iterable[dict], topic: str) -> str:
    """A table for each check; columns in which nothing stands, or only the run's topic, are left
    out.
    """
    parts = []
    for check in checks:
        if check["witnesses"]:
            told = [k for w in check["witnesses"] for k, v in w.items() if v is not None]
            told = [k for k in told if any(w.get(k) != topic for w in check["witnesses"])]
            columns = list(dict.fromkeys(told))
            rows = [{c: w.get(c) for c in columns} for w in check["witnesses"]]
            shown = f"{len(rows)} of {check['count']:,}"
            parts.append(_table(f"Witnesses of {check['id']}: {shown}", rows, columns))
    return "".join(parts)


def _figure(title: str, draw, caption: str) -> str:
    """A plot in both of its widths; `draw` makes one of a width in pixels."""
    both = "".join(
        f"<div class='{kind}'>{draw(width)}</div>"
        for kind, width in (("narrow", _NARROW), ("wide", _WIDE))
    )
    return (
        f"<h2>{escape(title)}</h2><figure>{both}<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _latency(timing: dict) -> str:
    measured, title = timing["latency"], "Latency"
    if not measured:
        why = "Nothing of this run was read."
        if timing["timestamp_type"] != APPENDED:
            why = (
                "Not measured: the topic keeps the producers' timestamps (message.timestamp.type is"
                f" {timing['timestamp_type']}), so nobody knows when a record was appended."
            )
        return f"<h2>{title}</h2><p class='note'>{escape(why)}</p>"
    early = sum(c["records"] for c in measured["classes"] if c["from_ms"] is None)
    sample = "every record"
    if measured["sampled_every"] > 1:
        sample = f"one record in {measured['sampled_every']:,} ({measured['records']:,} of them)"
    says = (
        f"From the moment a record was handed to its producer until the leader appended it, of {sample}."
        " The producers send as fast as they can, so most of it is waiting in their queues. Both axes"
        " are logarithmic. Quantiles are told to within 19 %, never too low."
    )
    if early:
        says += (
            f" {early:,} were appended before they were sent, by up to"
            f" {plots.span(-measured['min_ms'])}: the clocks of brokers and producers differ."
        )
    return _figure(title, lambda width: plots.latency(measured, width), says)


def _meanwhile(events: Iterable[dict], first_ms: Optional[int]) -> list:
    """Rows of the table of events: number, what it was, seconds since the first record, length."""
    return [
        {
            "event": number,
            "told": each["label"],
            "began": plots.span(max(0, each["from_ms"] - first_ms)) if first_ms else "–",
            "took": plots.span(each["to_ms"] - each["from_ms"]),
        }
        for number, each in enumerate(events, 1)
    ]


def _rate(timing: dict, events: Sequence[dict] = ()) -> str:
    title, series, bucket_ms = "Records over time", timing["series"], timing["bucket_ms"]
    if timing["first_ms"] is None:
        return f"<h2>{title}</h2><p class='note'>Nothing of this run was read.</p>"
    if not series["records"]:
        return f"<h2>{title}</h2><p class='note'>A clock jumped meanwhile: no plot.</p>"
    what = "when their leaders appended them"
    if timing["timestamp_type"] != APPENDED:
        what = "when their producers sent them (message.timestamp.type is not LogAppendTime)"
    pause = timing["longest_pause"]
    silence = f"No pause of {plots.span(bucket_ms)} or more."
    if pause:
        silence = f"The longest pause of the whole topic was {plots.span(pause['ms'])}"
        silence += " (hatched)." if pause["ms"] >= _NOTABLE_MS else "."
    says = f"Records that were read, by {what}, in steps of {plots.span(bucket_ms)}. {silence}"
    acknowledged = timing.get("acknowledged")
    if acknowledged:
        silent, step = acknowledged["longest_pause_ms"], plots.span(acknowledged["bucket_ms"])
        says += (
            f" Dashed: acknowledgements, when their producers got them, in steps of {step};"
            f" none came for {plots.span(silent)} or a little more."
            if silent
            else f" Dashed: acknowledgements, when their producers got them, some in every {step}."
        )
    drawn = pause if pause and pause["ms"] >= _NOTABLE_MS else None
    return _figure(
        title,
        lambda width: plots.rate(series, bucket_ms, drawn, acknowledged, width, events),
        says,
    )


def _lanes(timing: dict, partitions: Sequence[dict], in_transactions: bool) -> str:
    """Only drawn if there was a pause: full lines say nothing that a sentence does not."""
    title, least_ms = "Pauses", max(timing["bucket_ms"], _NOTABLE_MS)
    seen = [
        {**lane, "pauses": [p for p in lane["pauses"] if p["ms"] >= least_ms]}
        for lane in timing["partitions"]
    ]
    if not seen:
        return ""
    least = plots.span(least_ms)
    if not any(lane["pauses"] for lane in seen):
        says = f"No partition was without a new record for {least} or more, between its first and its last."
        return f"<h2>{title}</h2><p class='note'>{escape(says)}</p>"
    worst = sorted(seen, key=lambda lane: -max((p["ms"] for p in lane["pauses"]), default=0))
    chosen = {lane["partition"] for lane in worst[: plots.LANES]}
    leaders = {p["partition"]: p["leader"] for p in partitions}
    drawn = [
        {**lane, "label": f"{lane['partition']} · broker {_text(leaders.get(lane['partition']))}"}
        for lane in seen
        if lane["partition"] in chosen
    ]
    says = (
        f"Each partition from its first to its last record; hatched: pauses of {least} or more, the"
        " longest five of each. Beside the partition stands its leader at the end."
    )
    if in_transactions:
        says += " A transaction that was aborted makes one, too: nobody sees its records."
    if len(drawn) < len(seen):
        says += f" Drawn are the {len(drawn)} of {len(seen):,} partitions with the longest pauses."
    return _figure(title, lambda width: plots.lanes(drawn, width), says)


def _cell(name: str, value) -> str:
    said = str(value) if name in _IDS and isinstance(value, int) else _text(value)
    # what is short stays in one line; everything else may break, so that no table is too wide
    kind = "n" if _is_quantity(name, value) else "s" if len(said) <= 12 else ""
    kind = f" class={kind}" if kind else ""
    return f"<td{kind} data-name='{escape(_name(name))}'>{escape(said)}</td>"


def _table(title: str, rows: Sequence[dict], columns: Sequence[str], note: str = "") -> str:
    if not rows:
        return ""
    head = "".join(
        f"<th{' class=n' if any(_is_quantity(c, r.get(c)) for r in rows) else ''}>"
        f"{escape(_name(c))}</th>"
        for c in columns
    )
    body = "".join("<tr>" + "".join(_cell(c, r.get(c)) for c in columns) + "</tr>" for r in rows)
    said = f"<p class='note'>{escape(note)}</p>" if note else ""
    return (
        f"<h2>{escape(title)}</h2>{said}<div class='scroll'><table class='rows'>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _pairs(title: str, pairs: dict) -> str:
    if not pairs:
        return ""
    rows = "".join(
        f"<tr><th scope='row'>{escape(str(k))}</th><td>{escape(_text(v))}</td></tr>"
        for k, v in pairs.items()
    )
    return f"<section><h2>{escape(title)}</h2><table class='pairs'>{rows}</table></section>"


def _environment(verdict: dict) -> str:
    parts = [
        _pairs("What the clients complained about", verdict["errors"]),
        _pairs("Topic", {_name(k): v for k, v in verdict["topic"].items()}),
        _pairs("Where the time went (seconds)", verdict["timings"]),
        _pairs("Versions", verdict["versions"]),
    ]
    return f"<div class='environment'>{''.join(parts)}</div>"

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
from flow.present.style import STYLE
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
_CHANGE_COLUMNS = ("seen", "changed", "partitions", "was", "became")
_INSPECTED_COLUMNS = ("partition", "leader", "replicas", "isr", "start", "end", "read")
_OF_WRITER = (
    "The longest range first. Producer and attempt: the task of the job that wrote it, and which try of"
    " Spark's at that task; they and the sequence stand in the record itself."
)
_SIGN = {PASS: "✓", FAIL: "✕", INCONCLUSIVE: "?"}


def page(verdict: dict) -> str:
    """The whole page of a verdict (verdict.schema.json); everything variable is escaped."""
    sections = [
        _head("Flow validation", verdict),
        _facts(verdict),
        _about(verdict, f", run {verdict['run_id']}"),
        sentences_list("What stayed open", verdict.get("unclear", [])),
        sentences_list("What now", verdict.get("what_now", [])),
        _checks(verdict["checks"], _meaning(verdict)),
        _witnesses(verdict["checks"], verdict["topic"]["name"]),
        _acknowledgement_latency(verdict["timing"], _pace_of(verdict)),
        _latency(verdict["timing"], _pace_of(verdict)),
        _rate(verdict["timing"], verdict.get("events", []), _changes(verdict)),
        _table(
            "Meanwhile",
            _meanwhile(verdict.get("events", []), verdict["timing"]["first_ms"]),
            _EVENT_COLUMNS,
            "The bands in the plot above, by their numbers.",
        ),
        _leadership(verdict),
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
    return document(title, sections)


def inspection_page(inspection: dict, meaning: dict) -> str:
    """The whole page of an inspection (inspection.schema.json); meaning: check id -> what a pass says."""
    counts, topic = inspection["counts"], inspection["topic"]["name"]
    facts = [("read", _text(counts["read"])), ("judged", _text(counts["chosen"]))]
    if counts["unjudged"]:
        facts.append(("without id or sequence", _text(counts["unjudged"])))
    sections = [
        _head("Inspection of a topic", inspection),
        cells(facts),
        _about(inspection),
        sentences_list("What now", inspection["what_now"]),
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
    return document(f"{inspection['verdict'].upper()}: inspection of {topic}", sections)


def document(title: str, sections: Iterable[str]) -> str:
    """A whole page, with its style inside."""
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f"<title>{escape(title)}</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<style>{STYLE}</style></head><body>{plots.hatching()}\n"
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


def _head(heading: str, verdict: dict) -> str:
    kind = verdict["verdict"]
    return (
        f"<header><h1>{heading}</h1>"
        f"<div class='verdict {escape(kind)}'><div class='sign' aria-hidden='true'>"
        f"{_SIGN.get(kind, '?')}</div><div><strong>{escape(kind.upper())}</strong>"
        f"<span>{escape(verdict['summary'])}</span></div></div></header>"
    )


def _about(verdict: dict, more: str = "") -> str:
    """What it is about; below the numbers, so that a phone shows them at once."""
    ended = f", ended {verdict['ended']}" if verdict.get("ended") else ""
    return (
        f"<p class='note'>Cluster {escape(_text(verdict['cluster_id']))}, topic"
        f" {escape(_text(verdict['topic'].get('name')))}, started {escape(verdict['started'])}"
        f"{escape(ended)}{escape(more)}</p>"
    )


def sentences_list(title: str, sentences: Sequence[str]) -> str:
    """Sentences below each other, with a title; "" where there are none."""
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
    if "others" in counts:
        facts.append(("of others, between them", _text(counts["others"])))
    if "aborted" in counts:
        facts.append(("in aborted transactions", _text(counts["aborted"])))
    mean, measured = timing["records_per_second"], timing["latency"]
    pause = timing["longest_pause"]
    if mean:
        facts.append(("records a second", _text(round(mean))))
    took = timing.get("acknowledgement_latency")
    if took:
        facts.append(("acknowledged after, median", plots.span(took["p50_ms"])))
        facts.append(("acknowledged after, p99", plots.span(took["p99_ms"])))
        facts.append(("acknowledged after, p99.9", plots.span(took["p99_9_ms"])))
    elif measured:
        facts.append(("latency, median", plots.span(measured["p50_ms"])))
        facts.append(("latency, p99", plots.span(measured["p99_ms"])))
    if timing["first_ms"] is not None:
        untold = not pause and timing.get("leaders_apart_ms")
        told = _pause(pause and pause["ms"], timing["bucket_ms"])
        facts.append(("longest pause", "not known" if untold else told))
    return cells(facts)


def cells(facts: Iterable[tuple]) -> str:
    """Names and what they are, side by side."""
    each = "".join(f"<div><dt>{n}</dt><dd>{escape(v)}</dd></div>" for n, v in facts)
    return f"<dl class='facts'>{each}</dl>"


def _pause(pause_ms: Optional[int], bucket_ms: int) -> str:
    return plots.span(pause_ms) if pause_ms else f"< {plots.span(bucket_ms)}"


def _with_pause(rows: Iterable[dict], bucket_ms: int) -> list:
    """The rows with their longest pause in words; where nothing was read there is none."""
    return [
        {**r, "longest_pause": _pause(r["longest_pause_ms"], bucket_ms) if r["read"] else None}
        for r in rows
    ]


def _meaning(verdict: dict) -> dict:
    """check id -> what its pass says, without the part of a probe that this run did not have."""
    probed = any(each["name"] == "min-isr" for each in verdict.get("probes", []))
    said = MEANING["durability"]
    return (
        MEANING if probed else {**MEANING, "durability": f"{said.partition(';')[0].rstrip('.')}."}
    )


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
            told_of = sum(w.get("records") or 1 for w in check["witnesses"])
            shown = f"{min(told_of, check['count']):,} of {check['count']:,}"
            note = _OF_WRITER if "attempt" in columns else ""
            parts.append(_table(f"Witnesses of {check['id']}: {shown}", rows, columns, note))
    return "".join(parts)


def figure(title: str, draw, caption: str) -> str:
    """A plot in both of its widths; `draw` makes one of a width in pixels."""
    both = "".join(
        f"<div class='{kind}'>{draw(width)}</div>"
        for kind, width in (("narrow", _NARROW), ("wide", _WIDE))
    )
    return (
        f"<h2>{escape(title)}</h2><figure>{both}<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _pace_of(verdict: dict) -> str:
    """What most of a latency is, by whether the run had a rate."""
    rate = (verdict.get("settings") or {}).get("rate")
    if rate:
        return f"The run wrote {_text(rate)} records a second, so it is what a client without a queue sees."
    return "The producers send as fast as they can, so most of it is waiting in their queues."


def _sample(measured: dict) -> str:
    if measured["sampled_every"] > 1:
        return f"one record in {measured['sampled_every']:,} ({measured['records']:,} of them)"
    return "every record"


def _acknowledgement_latency(timing: dict, pace: str) -> str:
    measured = timing.get("acknowledgement_latency")
    if not measured:
        return ""
    says = (
        "From the moment a record was handed to its producer until that heard that all replicas in sync"
        f" have it, of {_sample(measured)}, by the producer's clock alone. {pace} Both axes are"
        " logarithmic. Quantiles are told to within 19 %, never too low."
    )
    return figure(
        "Time until acknowledged",
        lambda width: plots.latency(measured, width, "acknowledged"),
        says,
    )


def _latency(timing: dict, pace: str) -> str:
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
    says = (
        "From the moment a record was handed to its producer until the leader appended it, of"
        f" {_sample(measured)}. {pace} Both axes"
        " are logarithmic. Quantiles are told to within 19 %, never too low."
    )
    if early:
        says += (
            f" {early:,} were appended before they were sent, by up to"
            f" {plots.span(-measured['min_ms'])}: the clocks of brokers and producers differ."
        )
    return figure(title, lambda width: plots.latency(measured, width), says)


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


def _changes(verdict: dict) -> list:
    """The changes of leaders and in-sync replicas of verdict.json."""
    return (verdict.get("leadership") or {}).get("changes", [])


def _leadership(verdict: dict) -> str:
    """The table of those changes; a sentence where there were none."""
    told, first_ms = verdict.get("leadership"), verdict["timing"]["first_ms"]
    title = "Leaders and replicas in sync"
    if not told:
        return ""
    if not told["changes"]:
        said = "None changed while the run wrote, nor until it was judged."
        return f"<h2>{title}</h2><p class='note'>{said}</p>"
    names = {"leader": "leader", "in_sync": "replicas in sync"}
    rows = [
        {
            "seen": plots.span(max(0, each["at_ms"] - first_ms)) if first_ms else "–",
            "changed": names[each["what"]],
            "partitions": each["partitions"],
            "was": each["before"],
            "became": each["after"],
        }
        for each in told["changes"]
    ]
    note = "Seen so long after the first record, to within a second; ticks at the foot of the plot above."
    if told["left_out"]:
        note += f" {told['left_out']:,} later ones are left out."
    return _table(title, rows, _CHANGE_COLUMNS, note)


def _rate(timing: dict, events: Sequence[dict] = (), changes: Sequence[dict] = ()) -> str:
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
    if apart_ms := timing.get("leaders_apart_ms"):
        silence = silence if pause else ""
        silence += f" {_apart(apart_ms, timing)}"
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
    moments = [each["at_ms"] for each in changes]
    if moments:
        says += " Ticks at the foot: leaders or replicas in sync changed."
    return figure(
        title,
        lambda width: plots.rate(series, bucket_ms, drawn, acknowledged, width, events, moments),
        says,
    )


def _apart(apart_ms: int, timing: dict) -> str:
    """Why something is not told of the whole topic."""
    missing = {"pause": timing["longest_pause"], "rate": timing["records_per_second"]}
    untold = " or ".join(name for name, told in missing.items() if told is None)
    return (
        f"In some partitions all records were appended {plots.span(apart_ms)} later, after they were sent, than in"
        f" others, and none waited so long: clocks differ by that, so no {untold} of the whole topic is told."
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
    return figure(title, lambda width: plots.lanes(drawn, width), says)


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


def _cluster(cluster: dict) -> dict:
    """Name -> value of `cluster` of verdict.json, brokers that are alike together."""
    found = {"mode": cluster["mode"] or "not known: this principal may not read brokers' settings"}
    alike: dict = {}
    for each in cluster["brokers"]:
        alike.setdefault((each["version"], each["protocol"]), []).append(each["broker"])
    for (version, protocol), brokers in alike.items():
        said = ", protocol ".join(
            [version or "release not told", *([protocol] if protocol else [])]
        )
        found[f"broker {_text(brokers)}"] = said
    return {**found, **cluster["topic_settings"]}


def _environment(verdict: dict) -> str:
    settings = dict(verdict.get("settings") or {})
    cluster = verdict.get("cluster") or {}
    settings.update(settings.pop("producer_properties", {}))
    parts = [
        _pairs("What the clients complained about", verdict["errors"]),
        _pairs("Cluster", _cluster(cluster) if cluster else {}),
        _pairs("Topic", {_name(k): v for k, v in verdict["topic"].items()}),
        _pairs("The job's settings", {_name(k): v for k, v in settings.items()}),
        _pairs("Where the time went (seconds)", verdict["timings"]),
        _pairs("Versions", verdict["versions"]),
    ]
    return f"<div class='environment'>{''.join(parts)}</div>"

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The verdict as one self-contained HTML page. Pure: the verdict's dictionary in, text out."""

from __future__ import annotations

from html import escape

from flow.verdict import MEANING

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1.5rem;
  color: #1b1f24; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.verdict { border-left: .5rem solid; padding: .75rem 1rem; margin: 1rem 0; background: #f4f6f8; }
.verdict b { font-size: 1.3rem; letter-spacing: .04em; }
.pass { border-color: #1a7f37; } .fail { border-color: #cf222e; }
.inconclusive { border-color: #9a6700; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { text-align: left; padding: .3rem .75rem .3rem 0; vertical-align: top;
  border-bottom: 1px solid #d8dee4; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.counts { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 1rem 0; }
.counts div { font-size: .9rem; color: #57606a; }
.counts b { display: block; font-size: 1.4rem; color: #1b1f24; }
.bad { color: #cf222e; font-weight: 600; } .wide { overflow-x: auto; } .note { color: #57606a; }
@media print { body { max-width: none; padding: 0; } }
""".strip()


def page(verdict: dict) -> str:
    """The whole page; everything variable is escaped, nothing is loaded from elsewhere."""
    sections = [
        _head(verdict),
        _counts(verdict["counts"]),
        _checks(verdict["checks"]),
        _witnesses(verdict["checks"]),
        _table("Brokers", verdict["brokers"], ("broker", "address", "led", "acked", "read")),
        _table(
            "Partitions",
            verdict["partitions"],
            ("partition", "leader", "replicas", "isr", "start", "end", "acked", "read", "unknown"),
        ),
        _pairs("Where the time went (seconds)", verdict["timings"]),
        _pairs("Topic", verdict["topic"]),
        _pairs("Versions", verdict["versions"]),
    ]
    title = f"Flow validation: {verdict['verdict']}"
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f"<title>{escape(title)}</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<style>{_STYLE}</style></head><body>\n" + "\n".join(sections) + "\n</body></html>\n"
    )


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
        return ", ".join(str(v) for v in value)
    return str(value)


def _cell(value) -> str:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"<td{' class=n' if number else ''}>{escape(_text(value))}</td>"


def _head(verdict: dict) -> str:
    kind = escape(verdict["verdict"])
    return (
        f"<h1>Flow validation</h1><div class='note'>cluster {escape(_text(verdict['cluster_id']))},"
        f" run {escape(verdict['run_id'])}, {escape(verdict['started'])}</div>"
        f"<div class='verdict {kind}'><b>{kind.upper()}</b><br>{escape(verdict['summary'])}</div>"
    )


def _counts(counts: dict) -> str:
    names = ("acked", "read", "unknown", "failed")
    cells = "".join(f"<div><b>{counts[n]:,}</b>{n}</div>" for n in names)
    return f"<div class='counts'>{cells}</div>"


def _checks(checks: list) -> str:
    rows = []
    for check in checks:
        bad = check["status"] == "fail"
        says = f"{check['count']:,} violations" if bad else MEANING.get(check["id"], "")
        status = f"<td class='{'bad' if bad else ''}'>{'FAIL' if bad else 'pass'}</td>"
        rows.append(f"<tr><td>{escape(check['id'])}</td>{status}<td>{escape(says)}</td></tr>")
    head = "<tr><th>check</th><th></th><th></th></tr>"
    return f"<h2>Checks</h2><div class='wide'><table>{head}{''.join(rows)}</table></div>"


def _witnesses(checks: list) -> str:
    parts = []
    for check in checks:
        if check["witnesses"]:
            columns = list(dict.fromkeys(k for w in check["witnesses"] for k in w))
            rows = [{c: w.get(c) for c in columns} for w in check["witnesses"]]
            title = f"Witnesses: {check['id']} ({len(rows)} of {check['count']:,})"
            parts.append(_table(title, rows, columns))
    return "".join(parts)


def _table(title: str, rows: list, columns) -> str:
    if not rows:
        return ""
    first = rows[0]
    head = "".join(
        f"<th{' class=n' if isinstance(first.get(c), (int, float)) else ''}>{escape(str(c))}</th>"
        for c in columns
    )
    body = "".join("<tr>" + "".join(_cell(r.get(c)) for c in columns) + "</tr>" for r in rows)
    return f"<h2>{escape(title)}</h2><div class='wide'><table><tr>{head}</tr>{body}</table></div>"


def _pairs(title: str, pairs: dict) -> str:
    rows = "".join(f"<tr><td>{escape(str(k))}</td>{_cell(v)}</tr>" for k, v in pairs.items())
    return f"<h2>{escape(title)}</h2><div class='wide'><table>{rows}</table></div>"

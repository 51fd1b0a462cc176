# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The style of the page: a phone, a desk, paper, the dark."""

STYLE = """
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
.said { color: var(--kind); font-weight: 600; } a { color: var(--data); }
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
.edge { stroke: var(--muted); stroke-dasharray: 2 3; }
.event { fill: var(--line); stroke: var(--muted); stroke-dasharray: 2 3; }
.change { stroke: var(--ink); stroke-width: 2; }
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

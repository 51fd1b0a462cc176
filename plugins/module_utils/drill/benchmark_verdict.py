# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a row of a benchmark compares with earlier runs, and the table of all rows. Pure.

Private to this collection.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.status import table
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark import (
    AGAIN,
    FIRST,
    NONE,
    SCENARIO,
    TOOLS_SECONDS,
    Case,
    Plan,
    Setup,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark_limit import (
    LEAST_NOISE,
    MEGA,
    OTHERS,
    OTHERS_DISK,
    PERCENTILES,
    UNKNOWN,
    Load,
    bytes_a_second,
    limit_of,
    limit_words,
    others_share,
    ratio_text,
    share_text,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import (
    Row,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    approximate_duration,
    approximate_size,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted

COLUMNS = ("ROW", "RATIO", "RECORDS/S", "MB/S", *(each.upper() for each in PERCENTILES), "LIMIT")
# Limits that are not the cluster's, and why a row of this run with one is compared with none.
_BY_OTHERS = {OTHERS: f"{OTHERS} limit it", OTHERS_DISK: f"{OTHERS_DISK} limits it"}
# So many standard deviations of the parts of a row are noise.
DEVIATIONS = 2.0


@dataclass(frozen=True)
class Before:
    """The same row in earlier runs of this cluster: when each was, the rate, and its noise."""

    when: str
    rate: float
    noise: float


@dataclass(frozen=True)
class Conditions:
    """What a whole run was measured under: seconds of load and bytes of each row at most, where the load ran, and
    with which Python and librdkafka: the first limit is what a client can do.
    """

    seconds: float
    row_bytes: int
    host: str
    clients: str

    def to_dict(self) -> Dict[str, Any]:
        """As JSON has it, beside the rows."""
        return asdict(self)


@dataclass(frozen=True)
class Earlier:
    """What earlier runs have of a row, the latest first; and of those that cannot be compared, when and why not."""

    found: Tuple[Before, ...] = ()
    apart: Tuple[str, ...] = ()


def earlier(
    runs: Sequence[Tuple[str, Mapping[str, Any]]],
    cluster_id: str,
    case: Case,
    load: Load,
    conditions: Conditions,
) -> Earlier:
    """What earlier runs have of a row, which is now `load`. `runs`: (when, JSON); other clusters' do not count."""
    found, apart = [], []
    for when, told in sorted(runs, key=lambda each: each[0], reverse=True):
        if not cluster_id or told.get("cluster_id") != cluster_id:
            continue
        for row in told.get("drills") or ():
            same = row.get("setup") == case.setup.to_dict() and row.get("case") == case.name
            if not same or not row.get("load"):
                continue
            was = Load.from_dict(row["load"])
            why = ", ".join(_unlike(told, row, was, load, conditions))
            if why:
                apart.append(f"the run of {when}: {why}")
            else:
                found.append(Before(when, was.rate, was.noise))
    return Earlier(tuple(found), tuple(apart))


def _unlike(
    told: Mapping[str, Any],
    row: Mapping[str, Any],
    was: Load,
    load: Load,
    conditions: Conditions,
) -> Iterator[str]:
    """Why an earlier row cannot be compared; nothing if it can."""
    seconds, most = float(told.get("seconds") or 0), int(told.get("row_bytes") or 0)
    if seconds != conditions.seconds:
        yield f"{seconds:g} s of load a row, not {conditions.seconds:g}"
    if most != conditions.row_bytes:
        yield f"at most {approximate_size(most)} a row, not {approximate_size(conditions.row_bytes)}"
    if told.get("host") != conditions.host:
        yield f"its load ran on {told.get('host') or 'a host that it does not tell'}"
    if told.get("clients") != conditions.clients:
        yield f"its load was of {told.get('clients') or 'clients that it does not tell'}, not {conditions.clients}"
    if was.cores != load.cores:
        yield f"its load had {counted(was.cores, 'core')}, not {load.cores}"
    if row.get("wrong"):
        yield "it was not as expected"
    if row.get("limit") in tuple(_BY_OTHERS):
        yield f"{row['limit']} limited it"
    if was.throttled and not load.throttled:
        yield "a quota throttled it"


@dataclass(frozen=True)
class Change:
    """How a row compares with earlier runs: the rate against theirs in the middle, and what is noise."""

    ratio: float
    noise: float
    runs: int
    when: str

    @property
    def slower(self) -> bool:
        """Whether it is slower beyond the noise."""
        return self.ratio < 1 - self.noise

    @property
    def faster(self) -> bool:
        """Whether it is faster beyond the noise, as much as a loss would be."""
        return self.ratio * (1 - self.noise) > 1

    def told(self) -> str:
        """In words."""
        of = f"the run of {self.when}" if self.runs == 1 else f"the middle of {self.runs} runs"
        return f"{self.ratio:.2f} of {of}; up to {self.noise * 100:.0f} % is noise"


def not_comparable(case: Case, load: Load) -> str:
    """Why a row of this run cannot be compared with any; empty if it can."""
    if any(broken(case, load)):
        return "it is not as expected"
    # A quota is the cluster's own: one that is new makes it slower, and that is said.
    return _BY_OTHERS.get(limit_of(case.setup, load)[0], "")


def change_of(load: Load, before: Sequence[Before], drift: float = 0.0) -> Optional[Change]:
    """Compare with earlier runs; None where there are none. `drift`: what the machine varies within this run."""
    rates = [each.rate for each in before if each.rate > 0]
    if not rates:
        return None
    middle = statistics.median(rates)
    spread = statistics.stdev(rates) / statistics.fmean(rates) if len(rates) > 2 else 0.0
    parts = (load.noise**2 + before[0].noise ** 2) ** 0.5
    noise = min(0.9, max(LEAST_NOISE, DEVIATIONS * max(parts, spread), drift))
    return Change(load.rate / middle, noise, len(rates), before[0].when)


def drift_of(rows: Sequence[Tuple[Case, Optional[Load]]]) -> float:
    """How far the first row and its repetition at the end are apart, as a share; 0 where there is none."""
    rates = {case.name: load.rate for case, load in rows if load is not None}
    first, again = rates.get(FIRST, 0.0), rates.get(AGAIN, 0.0)
    return abs(first - again) / max(first, again) if first and again else 0.0


def row_of(
    case: Case,
    load: Optional[Load],
    first: Optional[Load],
    change: Optional[Change] = None,
    error: str = "",
    alone: Optional[Load] = None,
) -> Row:
    """The row as it is kept. `load` is None where it could not be measured; `error` says why.

    `alone` is as of `limit_of`.
    """
    expected = "all acknowledged records there" if case.setup.mode != NONE else "a rate"
    if load is None:
        return Row(case.name, SCENARIO, case.setup.told(), expected, "nothing", None, (), (error,))
    slower = [f"slower than before: {change.told()}"] if change and change.slower else []
    return Row(
        case.name,
        SCENARIO,
        case.setup.told(),
        expected,
        "; ".join(told(case, load, first, alone)),
        None,
        tuple(broken(case, load)),
        tuple(slower),
    )


def broken(case: Case, load: Load) -> Iterator[str]:
    """What is not as expected: what was acknowledged is not there, or not read."""
    if not load.acknowledged:
        yield "no record was acknowledged"
    if load.missing and case.setup.mode != NONE:
        yield f"{load.missing:,} acknowledged records are not there"
    wanted = load.there * case.setup.groups
    if load.received < wanted:
        yield f"consumers have got {load.received:,} of {wanted:,} records"


def told(
    case: Case, load: Load, first: Optional[Load], alone: Optional[Load] = None
) -> Iterator[str]:
    """What was measured, in a few words each."""
    if first is not None and first.rate:
        yield f"{ratio_text(load.rate / first.rate)} of the first row"
    yield f"{load.rate:,.0f} records/s, {bytes_a_second(load.rate * case.setup.record_bytes)}"
    yield f"{load.acknowledged:,} acknowledged, {load.there:,} there"
    if load.failed:
        yield f"{load.failed:,} failed"
    latency = load.latency_ms
    if latency.get("p50") is not None:
        yield f"end to end {_ms(latency['p50'])} / p99.9 {_ms(latency['p99.9'])} ms"
    yield f"limit: {limit_of(case.setup, load, alone)[0]}"


def _ms(milliseconds: Optional[float]) -> str:
    if milliseconds is None:
        return "-"
    return f"{milliseconds:.1f}" if milliseconds < 100 else f"{milliseconds:,.0f}"


def kept(
    case: Case,
    load: Optional[Load],
    first: Optional[Load],
    change: Optional[Change] = None,
    error: str = "",
    alone: Optional[Load] = None,
    apart: Sequence[str] = (),
) -> Dict[str, Any]:
    """A row as JSON and the page have it. `apart`: what it is not compared with, and why not."""
    row = row_of(case, load, first, change, error, alone)
    limit, why = limit_of(case.setup, load, alone) if load else (UNKNOWN, error)
    seen = None
    if load is not None:
        seen = {
            "acknowledged": load.acknowledged,
            "lost": load.missing,
            "measured": {"rate": round(load.rate)},
        }
    return {
        **row.to_dict(),
        "setup": case.setup.to_dict(),
        "load": load.to_dict() if load else None,
        "ratio": load.rate / first.rate if load and first and first.rate else None,
        "limit": limit,
        "why": why,
        "change": asdict(change) if change else None,
        "not_compared": list(apart),
        "seen": seen,
        "fault": {},
    }


def results(
    rows: Sequence[Tuple[Case, Optional[Load], str]],
    cluster_id: str,
    runs: Sequence[Tuple[str, Mapping[str, Any]]],
    conditions: Conditions,
) -> List[Dict[str, Any]]:
    """All rows as they are kept, compared with the first one and with earlier runs that can be compared."""
    first = rows[0][1] if rows else None
    drift = drift_of([(case, load) for case, load, _error in rows])
    singles = {case.setup: load for case, load, _error in rows if case.setup.replication == 1}
    found = []
    for case, load, error in rows:
        if load is None:
            found.append(kept(case, None, first, None, error))
            continue
        before = earlier(runs, cluster_id, case, load, conditions)
        why = not_comparable(case, load)
        if why:
            times = counted(len(before.found), "earlier run")
            before = Earlier((), (*before.apart, *([f"{times}: {why}"] if before.found else [])))
        change = change_of(load, before.found, drift)
        alone = singles.get(replace(case.setup, replication=1))
        alone = alone if case.setup.replication > 1 else None
        found.append(kept(case, load, first, change, error, alone, before.apart))
    return found


def benchmark_lines(rows: Sequence[Mapping[str, Any]], witnesses: Sequence[str] = ()) -> List[str]:
    """The table of rows (as `kept` has them), ratios first, and below it what limits each and what changed."""
    cells = []
    for each in rows:
        load = Load.from_dict(each["load"]) if each["load"] else None
        if load is None:
            cells.append([each["case"], *["-"] * (len(COLUMNS) - 2), each["limit"]])
            continue
        cells.append(
            [
                each["case"],
                "-" if each["ratio"] is None else ratio_text(each["ratio"]),
                f"{load.rate:,.0f}",
                f"{load.rate * each['setup']['record_bytes'] / MEGA:.1f}",
                *(_ms(load.latency_ms.get(name)) for name in PERCENTILES),
                each["limit"],
            ]
        )
    lines = table(COLUMNS, cells) if cells else []
    lines += ["", "Latency is end to end, from the sending to the consumer, in ms."]
    lines += ["", "What limits the rows, and the figures that say so:", *_figures_table(rows)]
    measured = [each for each in rows if each["load"]]
    limits = [
        f"{each['limit']}: {limit_words(each['limit'], Setup(**each['setup']))}."
        for each in measured
    ]
    lines += ["", *dict.fromkeys(limits)]
    lines += ["", *witnesses, *_compared(rows)]
    amiss = [f"{each['case']}: {text}" for each in rows for text in [*each["wrong"], *each["open"]]]
    if amiss:
        lines += ["", *amiss]
    return [*lines, "", summary_of(rows)]


FIGURES = (
    *(
        "ROW",
        "LIMIT",
        "THREAD",
        "CLIENTS",
        "BROKERS",
        "OTHERS",
        "MACHINE",
        "DISK MB/S",
        "DISK WAIT",
    ),
    *("COPIED MB/S", "QUEUE FULL"),
)
EXPLAINED = (
    "THREAD: busiest producer thread, of a core; CLIENTS, BROKERS, OTHERS: cores; MACHINE: of its cores;"
    " DISK: written by brokers, and when somebody waited for it; COPIED: to other replicas, before compression;"
    " QUEUE FULL: when producers waited for room."
)


def _figures_table(rows: Sequence[Mapping[str, Any]]) -> List[str]:
    cells = []
    for each in rows:
        if each["load"]:
            load, setup = Load.from_dict(each["load"]), Setup(**each["setup"])
            cells.append([each["case"], each["limit"], *_figure_cells(setup, load)])
    return [*table(FIGURES, cells), EXPLAINED] if cells else []


def _figure_cells(setup: Setup, load: Load) -> List[str]:
    used = list(load.brokers.values())
    written = [each["written_rate"] for each in used]
    copied = load.rate * setup.record_bytes * (setup.replication - 1) / MEGA
    unknown = not used
    return [
        share_text(load.client_core),
        f"{(load.client_cores or 0.0) + (load.consumer_cores or 0.0):.2f}",
        UNKNOWN if unknown else f"{sum(each['cores'] for each in used):.2f}",
        UNKNOWN if unknown or load.unseen else f"{max(0.0, others_share(load)):.2f}",
        share_text(load.usage.get("busy")),
        UNKNOWN if unknown or None in written else f"{sum(written) / MEGA:.1f}",
        UNKNOWN if unknown else share_text(load.usage.get("stalled")),
        f"{copied:.1f}",
        share_text(load.waited),
    ]


def _compared(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    changes = {each["case"]: Change(**each["change"]) for each in rows if each["change"]}
    again = next((each["ratio"] for each in rows if each["case"] == AGAIN), None)
    if again is not None:
        yield f"Noise within this run: the first row again has {again:.2f} of the first one."
    apart: Dict[str, List[str]] = {}
    for each in rows:
        for why in each["not_compared"]:
            apart.setdefault(why, []).append(each["case"])
    if not changes:
        none = "No comparable run" if apart else "No earlier run"
        which = "" if apart else " has these rows"
        yield f"{none} of this cluster{which}: the next one is compared with this."
        yield from _apart(rows, apart)
        return
    yield "Against earlier runs of this cluster:"
    for name, change in changes.items():
        word = "SLOWER" if change.slower else "faster" if change.faster else "as before"
        yield f"  {name}: {word}, {change.told()}"
    slower = [name for name, change in changes.items() if change.slower]
    if len(slower) == len(changes) > 2:
        yield "  All rows are slower: the machine or the whole cluster is, or something else ran beside it."
    yield from _apart(rows, apart)


def _apart(rows: Sequence[Mapping[str, Any]], apart: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What was not compared, and why not. `apart`: names of rows by reason."""
    measured = [each["case"] for each in rows if each["load"]]
    for why, names in apart.items():
        which = "" if list(names) == measured else f"{', '.join(names)}: "
        yield f"  {which}not with {why}"


def summary_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """The last line."""
    wrong = sum(bool(each["wrong"]) for each in rows)
    unmeasured = sum(each["load"] is None for each in rows)
    slower = sum(bool(each["change"]) and Change(**each["change"]).slower for each in rows)
    if wrong or unmeasured:
        return f"ATTENTION: {wrong + unmeasured} of {counted(len(rows), 'row')} not as expected."
    said = f"{counted(len(rows), 'row')} measured; what was acknowledged is there."
    return f"ATTENTION: {counted(slower, 'row')} slower than before. {said}" if slower else said


def good(rows: Sequence[Mapping[str, Any]], witness: Mapping[str, Any]) -> bool:
    """Whether all rows were measured and no acknowledged record is missing; slower ones are good, too."""
    measured = bool(rows) and all(not each["wrong"] and each["load"] for each in rows)
    return measured and not _lost_by_tools(witness)


def _lost_by_tools(witness: Mapping[str, Any]) -> int:
    made = witness.get("producer")
    return max(0, made["records"] - witness.get("there", 0)) if made else 0


def progress_line(
    cluster: str,
    plan: Plan,
    done: int,
    elapsed: float = 0.0,
    last: Optional[Mapping[str, Any]] = None,
) -> str:
    """What is said when so many rows are done: the last one, and how long the others take, by those so far."""
    expected = sum(plan.seconds_of(each) for each in plan.cases[:done])
    left = sum(plan.seconds_of(each) for each in plan.cases[done:]) + TOOLS_SECONDS * plan.tools
    left *= elapsed / expected if expected and elapsed else 1.0
    told_of = f"{last['case']}: {last['observed']}; " if last else ""
    number = f"{done} of {counted(len(plan.cases), 'row')} done"
    return f"{cluster}: {number}, {told_of}about {approximate_duration(left)} left"


def witness_lines(witness: Mapping[str, Any], first: Optional[Load]) -> List[str]:
    """What Kafka's own tools say of the first row, beside what our producer and consumer have had."""
    if witness.get("why"):
        return [f"Second witness: none. {witness['why']}"]
    made, read = witness.get("producer"), witness.get("consumer")
    lines = [
        "Second witness, Kafka's own tools with the first row's settings, nothing else beside:"
    ]
    if made:
        lines.append(
            f"  kafka-producer-perf-test: {made['rate']:,.0f} records/s{_against(made['rate'], first)},"
            f" acknowledged after {made['p50']:.0f} / {made['p95']:.0f} / {made['p99']:.0f} /"
            f" {made['p999']:.0f} ms (p50, p95, p99, p99.9);"
            f" {made['records']:,} sent, {witness.get('there', 0):,} there"
        )
    if read:
        lines.append(
            f"  kafka-consumer-perf-test: {read['rate']:,.0f} records/s, {read['records']:,} read"
        )
    if _lost_by_tools(witness):
        lines.append(f"  ATTENTION: {_lost_by_tools(witness):,} of its records are not there")
    if not made or not read:
        lines.append("  what they printed could not be read: unknown")
    return lines


def _against(rate: float, first: Optional[Load]) -> str:
    return f", {rate / first.rate:.2f} of the first row" if first and first.rate else ""

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a row of a benchmark has measured, what limited it, and how it compares with earlier runs. Pure.

Private to this collection. What could not be measured is None, and is called unknown.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.status import table
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark import (
    AGAIN,
    FIRST,
    NONE,
    SCENARIO,
    SYNC,
    TOOLS_SECONDS,
    Case,
    Plan,
    Setup,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import (
    Row,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    approximate_duration,
    approximate_size,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
COLUMNS = ("ROW", "RATIO", "RECORDS/S", "MB/S", *(each.upper() for each in PERCENTILES), "LIMIT")
# From these shares on something is said to be busy.
CORE_BUSY, MACHINE_BUSY, DISK_BUSY, NETWORK_BUSY, WAITING = 0.85, 0.9, 0.3, 0.7, 0.3
# Two runs of the same row on the same machine differ by so much without a reason.
LEAST_NOISE = 0.15
# So many standard deviations of the parts of a row are noise.
DEVIATIONS = 2.0
MEGA = 1e6
# Bytes a second of all brokers, below which it is not them who wait for a disk.
LEAST_WRITTEN = 1e5
# Others have more of a busy machine's cores than this share.
OTHERS_SHARE = 0.4
ROUND_TRIP, QUOTA, CLIENT, CPU, OTHERS, BROKER, DISK, NETWORK, REPLICATION, ANSWERS, UNKNOWN = (
    "round trip",
    "quota",
    "client core",
    "CPU of the machine",
    "other processes",
    "broker CPU",
    "broker disk",
    "network",
    "replication",
    "acknowledgements",
    "unknown",
)
OTHERS_DISK = "other disk load"


@dataclass(frozen=True)
class Load:
    """What the load of a row has measured.

    `sent` to `there` are records: `failed` by the client's word, `there` by offsets, `missing` of those
    acknowledged. `parts`: records acknowledged a second, of each part of the row. `waited`: the share of the
    time in which the producers' queues were full. `client_core`: the share of a core of the busiest thread.
    `usage`: as of `usage.between`, of brokers by id; empty where they run elsewhere.
    """

    sent: int
    failed: int
    there: int
    missing: int
    seconds: float
    received: int
    latency_ms: Mapping[str, Optional[float]] = field(default_factory=dict)
    parts: Tuple[float, ...] = ()
    waited: float = 0.0
    throttled: bool = False
    client_core: Optional[float] = None
    client_cores: Optional[float] = None
    consumer_core: Optional[float] = None
    consumer_cores: Optional[float] = None
    received_seconds: float = 0.0
    cores: int = 1
    usage: Mapping[str, Any] = field(default_factory=dict)
    network_bits: Optional[int] = None

    @property
    def acknowledged(self) -> int:
        """Records that the client has not called failed."""
        return self.sent - self.failed

    @property
    def rate(self) -> float:
        """Records acknowledged a second."""
        return self.acknowledged / self.seconds if self.seconds > 0 else 0.0

    @property
    def noise(self) -> float:
        """How much the parts of the row vary, as a share of their mean; 0 where there are too few."""
        if len(self.parts) < 3 or not statistics.fmean(self.parts):
            return 0.0
        return statistics.stdev(self.parts) / statistics.fmean(self.parts)

    @property
    def brokers(self) -> Mapping[Any, Mapping[str, Any]]:
        """What brokers have used, by id; empty where it could not be seen."""
        return self.usage.get("processes") or {}

    def to_dict(self) -> Dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "parts": list(self.parts)}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "Load":
        """Of JSON."""
        return cls(**{**told, "parts": tuple(told.get("parts") or ())})


def percentiles(latencies: Sequence[float]) -> Dict[str, Optional[float]]:
    """{p50, p95, p99, p99.9, max}: the least value that so many are not above; None where there are none."""
    ordered = sorted(latencies)
    if not ordered:
        return dict.fromkeys(PERCENTILES)
    return {
        name: ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
        for name, share in PERCENTILES.items()
    }


def limit_of(setup: Setup, load: Load, alone: Optional[Load] = None) -> Tuple[str, str]:
    """What limits a row, and in words the figures that say so.

    `alone`: the same with one replica, without which nobody knows whether it is the copying that takes the time.
    """
    name = next(iter(_limits(setup, load, alone)), UNKNOWN)
    return name, "; ".join([_WORDS[name], *_figures(setup, load, alone)])


def _limits(setup: Setup, load: Load, alone: Optional[Load]) -> Iterator[str]:
    """The limits that the figures show, the surest first."""
    if load.throttled:
        yield QUOTA
    cores = [each["cores"] for each in load.brokers.values()]
    busy, stalled = load.usage.get("busy"), load.usage.get("stalled")
    if (load.client_core or 0.0) >= CORE_BUSY:
        yield CLIENT
    if busy is not None and busy >= MACHINE_BUSY:
        yield OTHERS if _others(load) > OTHERS_SHARE * load.cores else CPU
    if cores and max(cores) >= CORE_BUSY * load.cores:
        yield BROKER
    # the disk is the brokers' only where they are here, and write
    if cores and stalled is not None and stalled >= DISK_BUSY:
        written = _written(load)
        yield DISK if written is None or written >= LEAST_WRITTEN else OTHERS_DISK
    if (_network(load) or 0.0) >= NETWORK_BUSY:
        yield NETWORK
    if setup.mode == SYNC:
        yield ROUND_TRIP
    if load.waited >= WAITING and setup.mode != NONE:
        # only where all brokers and disks could be seen, and nothing of them is busy; else it may be those
        seen = len(cores) >= setup.brokers and None not in (busy, stalled)
        if seen and _slower_by_replicas(load, alone):
            yield REPLICATION
        yield ANSWERS


def _slower_by_replicas(load: Load, alone: Optional[Load]) -> bool:
    return alone is not None and load.rate < alone.rate * (1 - LEAST_NOISE)


_WORDS = {
    QUOTA: "a quota of the brokers throttles the producers",
    CLIENT: "one thread of a producer fills its core: more producers go further",
    CPU: "the cores of this machine are busy, which clients and brokers share",
    OTHERS: "the cores of this machine are busy with something else: measure again on a quiet one",
    BROKER: "a broker fills the cores of its machine",
    DISK: "brokers wait for their disks",
    OTHERS_DISK: "something else than brokers waits for the disks of this machine: measure again on a quiet one",
    NETWORK: "the network card is full",
    ROUND_TRIP: "each record waits until the one before is acknowledged",
    REPLICATION: "producers wait for acknowledgements while no core, disk or network is busy, and do not with one"
    " replica",
    ANSWERS: "producers wait for acknowledgements, and nothing that could be seen is busy: for replicas, for the way"
    " to the brokers, or for what could not be seen",
    UNKNOWN: "nothing that could be seen is busy",
}


def _others(load: Load) -> float:
    """Cores that neither clients nor brokers of this benchmark have used, as far as that can be seen."""
    known = [load.client_cores or 0.0, load.consumer_cores or 0.0]
    known += [each["cores"] for each in load.brokers.values()]
    return (load.usage.get("busy") or 0.0) * load.cores - sum(known)


def _written(load: Load) -> Optional[float]:
    """Bytes a second that the brokers that could be seen write; None where one does not tell."""
    rates = [each["written_rate"] for each in load.brokers.values()]
    return None if None in rates else sum(rates)


def _network(load: Load) -> Optional[float]:
    rate = load.usage.get("network_rate")
    return None if rate is None or not load.network_bits else rate * 8 / load.network_bits


def _figures(setup: Setup, load: Load, alone: Optional[Load] = None) -> Iterator[str]:
    yield (
        f"busiest producer thread {_share(load.client_core)} of a core,"
        f" all clients {(load.client_cores or 0.0) + (load.consumer_cores or 0.0):.2f} cores"
    )
    if load.brokers:
        cores = sum(each["cores"] for each in load.brokers.values())
        written = _written(load)
        told = "unknown" if written is None else _bytes_a_second(written)
        seen = len(load.brokers)
        of_all = f"{seen} of " if seen < setup.brokers else ""
        who = counted(max(seen, setup.brokers), "broker")
        yield f"{of_all}{who} {cores:.2f} cores, {told} written to disk"
        yield (
            f"machine {_share(load.usage.get('busy'))} of {counted(load.cores, 'core')},"
            f" others {max(0.0, _others(load)):.2f} cores,"
            f" waits for disks {_share(load.usage.get('stalled'))} of the time"
        )
    else:
        yield "brokers' CPU and disks unknown: they do not run where the load does"
    copied = load.rate * setup.record_bytes * (setup.replication - 1)
    yield f"{_bytes_a_second(copied)} replicated, before compression"
    yield f"producers waited for room {_share(load.waited)} of the time"
    if alone is not None and load.rate:
        yield f"with one replica {ratio_text(alone.rate / load.rate)} of its rate"
    share = _network(load)
    if share is not None:
        yield f"network card {_share(share)}"


def _share(share: Optional[float]) -> str:
    return "unknown" if share is None else f"{share * 100:.0f} %"


def _bytes_a_second(number: float) -> str:
    return f"{number / MEGA:.1f} MB/s"


@dataclass(frozen=True)
class Before:
    """The same row in earlier runs of this cluster: when each was, the rate, and its noise."""

    when: str
    rate: float
    noise: float


@dataclass(frozen=True)
class Conditions:
    """What a whole run was measured under: seconds of load and bytes of each row at most, and where the load ran."""

    seconds: float
    row_bytes: int
    host: str

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
    if was.cores != load.cores:
        yield f"its load had {counted(was.cores, 'core')}, not {load.cores}"
    if row.get("wrong"):
        yield "it was not as expected"
    if row.get("limit") in (OTHERS, OTHERS_DISK):
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
    return f"{OTHERS} limit it" if limit_of(case.setup, load)[0] == OTHERS else ""


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
    yield f"{load.rate:,.0f} records/s, {_bytes_a_second(load.rate * case.setup.record_bytes)}"
    yield f"{load.acknowledged:,} acknowledged, {load.there:,} there"
    if load.failed:
        yield f"{load.failed:,} failed"
    latency = load.latency_ms
    if latency.get("p50") is not None:
        yield f"end to end {_ms(latency['p50'])} / p99.9 {_ms(latency['p99.9'])} ms"
    yield f"limit: {limit_of(case.setup, load, alone)[0]}"


def ratio_text(ratio: float) -> str:
    """A ratio with two digits behind the point, small ones with two that are not zero."""
    return f"{ratio:.2f}" if ratio >= 0.1 or not ratio else f"{ratio:.2g}"


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
    limits = dict.fromkeys(each["limit"] for each in rows if each["load"])
    lines += ["", *(f"{each}: {_WORDS[each]}." for each in limits)]
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
        _share(load.client_core),
        f"{(load.client_cores or 0.0) + (load.consumer_cores or 0.0):.2f}",
        UNKNOWN if unknown else f"{sum(each['cores'] for each in used):.2f}",
        UNKNOWN if unknown else f"{max(0.0, _others(load)):.2f}",
        _share(load.usage.get("busy")),
        UNKNOWN if unknown or None in written else f"{sum(written) / MEGA:.1f}",
        UNKNOWN if unknown else _share(load.usage.get("stalled")),
        f"{copied:.1f}",
        _share(load.waited),
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
    plan: Plan, done: int, elapsed: float = 0.0, last: Optional[Mapping[str, Any]] = None
) -> str:
    """What is said when so many rows are done: the last one, and how long the others take, by those so far."""
    expected = sum(plan.seconds_of(each) for each in plan.cases[:done])
    left = sum(plan.seconds_of(each) for each in plan.cases[done:]) + TOOLS_SECONDS * plan.tools
    left *= elapsed / expected if expected and elapsed else 1.0
    told_of = f"{last['case']}: {last['observed']}; " if last else ""
    number = f"{done} of {counted(len(plan.cases), 'row')} done"
    return f"{number}, {told_of}about {approximate_duration(left)} left"


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

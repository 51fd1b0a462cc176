# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a row of a benchmark has measured, and what limited it. Pure.

Private to this collection. What could not be measured is None, and is called unknown.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark import (
    LEADER,
    NONE,
    SYNC,
    Setup,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
# From these shares on something is said to be busy.
CORE_BUSY, MACHINE_BUSY, DISK_BUSY, NETWORK_BUSY, WAITING = 0.85, 0.9, 0.3, 0.7, 0.3
# Two runs of the same row on the same machine differ by so much without a reason.
LEAST_NOISE = 0.15
MEGA = 1e6
# Bytes a second of all brokers, below which it is not them who wait for a disk.
LEAST_WRITTEN = 1e5
# Of what the disks write: from the first share on it is the brokers' load, below the second one that of others. A
# flush of a few bytes writes many more, those of the file system's journal, so between them nobody knows.
OWN_SHARE, FOREIGN_SHARE = 0.5, 0.05
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
OTHERS_DISK, SOME_DISK = "other disk load", "disk wait"


@dataclass(frozen=True)
class Load:
    """What the load of a row has measured.

    `sent` to `there` are records: `failed` by the client's word, `there` by offsets, `missing` of those
    acknowledged. `parts`: records acknowledged a second, of each part of the row. `waited`: the share of the
    time in which the producers' queues were full. `client_core`: the share of a core of the busiest thread.
    `usage`: as of `usage.between`, of brokers by id; empty where they run elsewhere. Its `here`: how many brokers run
    on this machine, seen or not.
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
        """How far the mean of the row's parts may be off, as a share of it; 0 where there are too few.

        Its standard error: what the single parts vary by would hide that a row has lost half of its rate.
        """
        mean = statistics.fmean(self.parts) if self.parts else 0.0
        if len(self.parts) < 3 or not mean:
            return 0.0
        return float(statistics.stdev(self.parts) / mean / len(self.parts) ** 0.5)

    @property
    def brokers(self) -> Mapping[Any, Mapping[str, Any]]:
        """What brokers have used, by id; empty where it could not be seen."""
        return self.usage.get("processes") or {}

    @property
    def unseen(self) -> int:
        """How many brokers run on this machine, and could not be seen."""
        return max(0, int(self.usage.get("here") or 0) - len(self.brokers))

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
    return name, "; ".join([limit_words(name, setup), *_figures(setup, load, alone)])


def _limits(setup: Setup, load: Load, alone: Optional[Load]) -> Iterator[str]:
    """The limits that the figures show, the surest first."""
    if load.throttled:
        yield QUOTA
    cores = [each["cores"] for each in load.brokers.values()]
    busy, stalled = load.usage.get("busy"), load.usage.get("stalled")
    if (load.client_core or 0.0) >= CORE_BUSY:
        yield CLIENT
    if busy is not None and busy >= MACHINE_BUSY:
        # those of brokers that could not be seen would be called others'
        foreign = not load.unseen and others_share(load) > OTHERS_SHARE * load.cores
        yield OTHERS if foreign else CPU
    if cores and max(cores) >= CORE_BUSY * load.cores:
        yield BROKER
    yield from _disk_limit(setup, load)
    if (_network(load) or 0.0) >= NETWORK_BUSY:
        yield NETWORK
    if setup.mode == SYNC:
        yield ROUND_TRIP
    if load.waited >= WAITING and setup.mode != NONE:
        # only where all brokers and disks could be seen, and nothing of them is busy; else it may be those
        seen = len(cores) >= setup.brokers and None not in (busy, stalled)
        # with acks=1 nobody waits for replicas
        if seen and setup.mode != LEADER and _slower_by_replicas(load, alone):
            yield REPLICATION
        yield ANSWERS


def _disk_limit(setup: Setup, load: Load) -> Iterator[str]:
    """Who waits for a disk, where somebody did and brokers are here: they themselves, others, or nobody knows."""
    stalled = load.usage.get("stalled")
    if not load.brokers or stalled is None or stalled < DISK_BUSY:
        return
    waited = _waited(load)
    if max(waited, default=0.0) >= DISK_BUSY:
        yield DISK
    elif len(waited) < len(load.brokers) or load.unseen:
        yield _disk_by_bytes(setup, load)


def _waited(load: Load) -> List[float]:
    """For which share of the time brokers have waited for a disk, of those of whom it is known."""
    told = (each.get("waited") for each in load.brokers.values())
    return [each for each in told if each is not None]


def _disk_by_bytes(setup: Setup, load: Load) -> str:
    """By what goes to the disks, where it is not told who waits: PSI is of all processes, and what a broker writes
    may go to memory only.
    """
    written, disk = _written(load), load.usage.get("disk_rate")
    if written is None or load.unseen:
        return SOME_DISK
    if not disk:
        return SOME_DISK if written >= LEAST_WRITTEN else OTHERS_DISK
    # who flushes each record waits for each
    own = FOREIGN_SHARE if setup.flush_messages == 1 else OWN_SHARE
    if written >= LEAST_WRITTEN and written >= own * disk:
        return DISK
    # of the rows before, perhaps
    before = load.usage.get("unwritten_rate") or 0.0
    return OTHERS_DISK if written + before < FOREIGN_SHARE * disk else SOME_DISK


def _slower_by_replicas(load: Load, alone: Optional[Load]) -> bool:
    return alone is not None and load.rate < alone.rate * (1 - LEAST_NOISE)


def limit_words(limit: str, setup: Setup) -> str:
    """What a limit means in a row, in words."""
    if limit == ANSWERS and setup.mode == LEADER:
        return _ANSWERS_OF_LEADERS
    return _LIMIT_WORDS[limit]


_LIMIT_WORDS = {
    QUOTA: "a quota of the brokers throttles the producers",
    CLIENT: "one thread of a producer fills its core: more producers go further",
    CPU: "the cores of this machine are busy, which clients and brokers share",
    OTHERS: "the cores of this machine are busy with something else: measure again on a quiet one",
    BROKER: "a broker fills the cores of its machine",
    DISK: "disks are waited for, by brokers or for what they write",
    SOME_DISK: "somebody waited for the disks of this machine; whether brokers did could not be seen",
    OTHERS_DISK: "something else than brokers waits for the disks of this machine: measure again on a quiet one",
    NETWORK: "the network card is full",
    ROUND_TRIP: "each record waits until the one before is acknowledged",
    REPLICATION: "producers wait for acknowledgements while no core, disk or network is busy, and do not with one"
    " replica",
    ANSWERS: "producers wait for acknowledgements, and nothing that could be seen is busy: for replicas, for the way"
    " to the brokers, or for what could not be seen",
    UNKNOWN: "nothing that could be seen is busy",
}


_ANSWERS_OF_LEADERS = (
    "producers wait for acknowledgements, and nothing that could be seen is busy: for leaders, for the way to them, or"
    " for what could not be seen"
)


def others_share(load: Load) -> float:
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
        f"busiest producer thread {share_text(load.client_core)} of a core,"
        f" all clients {(load.client_cores or 0.0) + (load.consumer_cores or 0.0):.2f} cores"
    )
    if load.brokers:
        cores = sum(each["cores"] for each in load.brokers.values())
        written = _written(load)
        told = "unknown" if written is None else bytes_a_second(written)
        seen = len(load.brokers)
        of_all = f"{seen} of " if seen < setup.brokers else ""
        who = counted(max(seen, setup.brokers), "broker")
        yield f"{of_all}{who} {cores:.2f} cores, {told} written to disk"
        longest = max(_waited(load), default=None)
        beside = f" with {counted(load.unseen, 'broker')} that could not be seen" * bool(
            load.unseen
        )
        yield (
            f"machine {share_text(load.usage.get('busy'))} of {counted(load.cores, 'core')},"
            f" others {max(0.0, others_share(load)):.2f} cores{beside},"
            f" waits for disks {share_text(load.usage.get('stalled'))} of the time"
            + ("" if longest is None else f", of a broker {share_text(longest)}")
        )
        if load.usage.get("disk_rate") is not None:
            yield f"disks of this machine wrote {bytes_a_second(load.usage['disk_rate'])}"
    elif load.unseen:
        here = counted(load.unseen, "broker")
        yield f"brokers' CPU and disks unknown: of {here} that the inventory has here no process could be seen"
    else:
        yield "brokers' CPU and disks unknown: they do not run where the load does"
    copied = load.rate * setup.record_bytes * (setup.replication - 1)
    yield f"{bytes_a_second(copied)} replicated, before compression"
    yield f"producers waited for room {share_text(load.waited)} of the time"
    if alone is not None and load.rate:
        yield f"with one replica {ratio_text(alone.rate / load.rate)} of its rate"
    share = _network(load)
    if share is not None:
        yield f"network card {share_text(share)}"


def share_text(share: Optional[float]) -> str:
    return "unknown" if share is None else f"{share * 100:.0f} %"


def bytes_a_second(number: float) -> str:
    return f"{number / MEGA:.1f} MB/s"


def ratio_text(ratio: float) -> str:
    """A ratio with two digits behind the point, small ones with two that are not zero."""
    return f"{ratio:.2f}" if ratio >= 0.1 or not ratio else f"{ratio:.2g}"

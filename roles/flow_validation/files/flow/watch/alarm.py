# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""When the streaming proof raises an alarm, and what it says. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterator, List, Mapping, Optional, Sequence, Tuple

LOSS, LATENCY, SILENCE, BLINDNESS = "loss", "latency", "silence", "blindness"
UNWRITTEN = "unwritten"
# kind -> how grave, as lines of the log and rules of an alerting system have it
SEVERITY = {
    LOSS: "critical",
    SILENCE: "critical",
    LATENCY: "warning",
    BLINDNESS: "warning",
    UNWRITTEN: "warning",
}
_NAMED = 3  # witnesses in a sentence


def patience(within: float) -> float:
    """Seconds in which a record has to be acknowledged; the other half of the watermark's delay is for its way back."""
    return within / 2


@dataclass(frozen=True)
class Bounds:
    """What is still in order; all in seconds."""

    latency: float
    silence: float
    hold: float  # how long a loss is an alarm


@dataclass(frozen=True)
class Facts:
    """What is known at one moment; moments are seconds since 1970."""

    now: float
    topic: str
    acknowledged: Mapping[
        int, float
    ]  # partition -> when its last record was, or when the canary began
    last_counted: float  # when a batch was counted last, or the join began
    # when it was decided last what became of a record, or none was waited for; None: as `last_counted`
    last_decided: Optional[float] = None
    last_lost: float = 0.0
    lost: Sequence[Mapping] = ()  # witnesses, the latest last
    lost_in_all: int = 0
    p99_ms: Optional[float] = None  # of the last batch, from sent until acknowledged
    within: float = 0.0  # the watermark's delay
    last_unknown: float = 0.0  # when a record was given up last, since its `patience` was over
    unknown: int = 0  # how many were, in all
    unwritten: Mapping[str, str] = field(default_factory=dict)  # file -> why it is an old one


def alarms(facts: Facts, bounds: Bounds) -> dict:
    """kind -> sentence."""
    found = {}
    if facts.last_lost and facts.now - facts.last_lost < bounds.hold:
        found[LOSS] = _loss(facts)
    late = list(_late(facts, bounds))
    if late:
        found[LATENCY] = "; ".join(late)
    silent = sorted(n for n, at in facts.acknowledged.items() if facts.now - at > bounds.silence)
    if silent:
        longest = max(facts.now - facts.acknowledged[number] for number in silent)
        found[SILENCE] = (
            f"partitions {', '.join(map(str, silent))} of {facts.topic}: no record was acknowledged"
            f" for {longest:.0f} s"
        )
    if facts.now - facts.last_counted > bounds.silence:
        found[BLINDNESS] = (
            f"no batch of {facts.topic} was read for {facts.now - facts.last_counted:.0f} s, so that a"
            " loss would not be seen"
        )
    elif facts.last_decided is not None and facts.now - facts.last_decided > bounds.silence:
        found[BLINDNESS] = (
            f"of no record of {facts.topic} it was decided for {facts.now - facts.last_decided:.0f} s what became of"
            " it, although some wait for that"
        )
    if facts.unwritten:
        found[UNWRITTEN] = "; ".join(
            f"{path} cannot be written, so that it says what was: {why}"
            for path, why in sorted(facts.unwritten.items())
        )
    return found


def _late(facts: Facts, bounds: Bounds) -> Iterator[str]:
    """A record that was given up is in no quantile, and later than all of them."""
    if facts.p99_ms is not None and facts.p99_ms > bounds.latency * 1000:
        yield (
            f"acknowledgements of {facts.topic} take {facts.p99_ms / 1000:.3g} s (p99),"
            f" more than {bounds.latency:g} s"
        )
    ago = facts.now - facts.last_unknown
    if facts.last_unknown and ago < bounds.silence:
        yield (
            f"a record of {facts.topic} was not acknowledged within {patience(facts.within):g} s, the last one"
            f" {max(0.0, ago):.0f} s ago; {facts.unknown:,} in all"
        )


def _loss(facts: Facts) -> str:
    named = "; ".join(
        f"partition {each['partition']} offset {each['offset']} sequence {each['sequence']}"
        for each in facts.lost[-_NAMED:]
    )
    return (
        f"{facts.lost_in_all:,} acknowledged record{'s'[: facts.lost_in_all != 1]} of {facts.topic} did not arrive"
        f" within {facts.within:g} s; the latest: {named}"
    )


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> List[Tuple[str, str, str]]:
    """(severity, kind, sentence) of what began and ended between two moments, for the log."""
    told = [(SEVERITY[kind], kind, said) for kind, said in now.items() if kind not in before]
    told += [("info", kind, "is over") for kind in before if kind not in now]
    return told

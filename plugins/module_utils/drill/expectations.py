# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is expected of the drills that hit no broker, against the numbers that they have measured. Pure.

Private to this collection. For each kind of drill `broken` says what is not as expected, and `told` what
was seen, in a few words each.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    AFTER,
    AUTOMATIC,
    BEFORE,
    BROADCAST,
    COMMITS,
    GROW,
    ONCE,
    PLAIN,
    QUEUE,
    QUORUM,
    TRANSACTIONAL,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    GroupSeen,
    Seen,
    longest_since,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted

# A change that has a quorum happens within: it may wait for the election of the leader of its members.
AT_ONCE_MS = 10000


def broken(fault: str, seen: Seen, servers: int = 0, ended_early: bool = False) -> Iterator[str]:
    """What is not as expected, of a drill of this kind.

    `servers`: how many are stopped before the quorum is lost; `ended_early`: something else ended the drill.
    """
    if fault == QUORUM:
        yield from _quorum_broken(seen, servers, ended_early)
    yield from _BROKEN.get(fault, lambda _seen: iter(()))(seen)


def told(fault: str, seen: Seen, servers: int = 0) -> Iterator[str]:
    """What was measured, of a drill of this kind. `servers` is as of `broken`."""
    if fault == QUORUM:
        yield from _quorum_told(seen, servers)
    yield from _TOLD.get(fault, lambda _seen: iter(()))(seen)


def by_word(seen: Seen) -> Dict[str, GroupSeen]:
    """Groups by the last word of their names."""
    return {each.name.rpartition("-")[2]: each for each in seen.groups}


# ---------------------------------------------------------------- several groups


def _broadcast_broken(seen: Seen) -> Iterator[str]:
    for group in seen.groups:
        if group.repeated:
            yield f"{group.repeated} records came to {group.name} twice"


def _broadcast_told(seen: Seen) -> Iterator[str]:
    delays = ", ".join(f"{each.p50_ms} / {each.p99_ms}" for each in seen.groups)
    yield f"{len(seen.groups)} groups; delay p50 / p99 {delays} ms"


# ---------------------------------------------------------------- a queue of tasks


def _queue_broken(seen: Seen) -> Iterator[str]:
    measured = seen.measured
    grew = {int(each): rate for each, rate in measured["growth"].items()}
    count, consumers = measured["partitions"], measured["consumers"]
    if not _more(grew[1], 0):
        yield "the backlog did not grow with one consumer"
    one, two = grew[1], grew[2]
    # two do as much as comes: the backlog moves by less than half of what one leaves
    if one is None or two is None or abs(two) >= max(one, 0) / 2:
        yield f"the backlog did not stay with two consumers: {_rate(two)} a second"
    if not _more(0, grew[count]):
        yield f"the backlog did not drain with {count} consumers"
    if measured["idle"] != consumers - count:
        yield f"{measured['idle']} of {consumers} consumers were idle, with {count} partitions"
    for group in seen.groups:
        if group.repeated:
            yield f"{group.repeated} tasks were done twice"
    if measured["keys_split"]:
        yield f"records of {measured['keys_split']} keys lay in more than one partition"
    if measured["keys_disordered"]:
        yield f"records of {measured['keys_disordered']} keys came out of order"


def _queue_told(seen: Seen) -> Iterator[str]:
    measured = seen.measured
    rates = [f"{each}: {_rate(rate)}" for each, rate in measured["growth"].items()]
    yield f"backlog a second with {', '.join(rates)}; {measured['idle']} idle"
    lay = " / ".join(map(str, measured["unkeyed"]))
    split = measured["keys_split"]
    keyed = f"{split} of them in several partitions" if split else "each in one partition"
    yield f"{measured['keys']} keys, {keyed}; without keys {lay}"


# ---------------------------------------------------------------- commits


def _commits_broken(seen: Seen) -> Iterator[str]:
    found = by_word(seen)
    after, before = found[AFTER], found[BEFORE]
    if after.skipped:
        yield f"{len(after.skipped)} records were never worked at, although committed afterwards"
    if not after.repeated:
        yield "nothing came twice where it is committed afterwards, so nothing was tried"
    if before.repeated:
        yield f"{before.repeated} records were worked at twice, although committed before"
    if not before.skipped and not before.unknown:
        yield "nothing was lost where it is committed before, so nothing was tried"


def _commits_told(seen: Seen) -> Iterator[str]:
    found = by_word(seen)
    for mode in (AUTOMATIC, AFTER, BEFORE):
        yield f"{mode}: {len(found[mode].skipped)} lost, {found[mode].repeated} twice"
    yield f"of {seen.acknowledged}, in batches of {seen.measured['batch']}"


# ---------------------------------------------------------------- transactions


def _once_broken(seen: Seen) -> Iterator[str]:
    found = by_word(seen)
    exact, plain = found[TRANSACTIONAL], found[PLAIN]
    if exact.repeated:
        yield f"{exact.repeated} records were written twice in spite of transactions"
    if not seen.measured["aborted"]:
        yield "no transaction was aborted, so nothing was tried"
    if not plain.repeated:
        yield "nothing came twice without transactions, so nothing was tried"


def _once_told(seen: Seen) -> Iterator[str]:
    found = by_word(seen)
    errors = dict(zip(seen.measured["kinds"], seen.measured["errors"]))
    for kind in (TRANSACTIONAL, PLAIN):
        yield f"{kind}: {len(found[kind].missing)} lost, {found[kind].repeated} twice"
        yield from _mended(errors[kind])
    yield f"of {seen.acknowledged}; {seen.measured['aborted']} aborted ones nobody sees"


def copies_broken(seen: Seen) -> Iterator[str]:
    """What is not as expected of programs that copied while the leader died. Both may have to write again."""
    found = by_word(seen)
    if found[TRANSACTIONAL].repeated:
        yield f"{found[TRANSACTIONAL].repeated} records were written twice in spite of transactions"
    for each in seen.measured["copies"]:
        if each["trouble"]:
            yield f"the program {_KIND[each['kind']]} has ended: {each['trouble']}"


def copies_told(seen: Seen, since_ms: int) -> Iterator[str]:
    """What was measured of them. `since_ms`: when the leader died, 0: unknown."""
    found = by_word(seen)
    for each in seen.measured["copies"]:
        group, pause = found[each["kind"]], longest_since(each["pauses"], since_ms)
        yield (
            f"{_KIND[each['kind']]}: {len(group.missing)} lost, {group.repeated} twice, no commit for {_seconds(pause)}"
        )
        yield from _mended(each["errors"])
    if seen.measured["aborted"]:
        yield f"{seen.measured['aborted']} aborted ones nobody sees"


def _mended(errors: Sequence[Sequence[Any]]) -> Iterator[str]:
    """What a program did about errors: (what, how often, about which one first) of each."""
    for what, times, first in errors:
        yield f"{_MENDED[what]} {counted(times, 'time')}, first after {first}"


_KIND = {TRANSACTIONAL: "with transactions", PLAIN: "at least once"}
# What a program did about an error.
_MENDED = {"aborted": "aborted", "renewed": "began with a new producer", "again": "wrote again"}


# ---------------------------------------------------------------- more partitions


def _grow_broken(seen: Seen) -> Iterator[str]:
    measured = seen.measured
    if seen.pause_ms is None:
        yield "the new partitions were not worked at"
    if not _more(measured["growth_before"], measured["growth_after"]):
        yield "the backlog did not go better with more partitions"
    if not _more(0, measured["growth_after"]):
        yield "the backlog did not drain with more partitions"


def _grow_told(seen: Seen) -> Iterator[str]:
    measured = seen.measured
    before, after = measured["partitions"]
    rates = f"{_rate(measured['growth_before'])}, then {_rate(measured['growth_after'])}"
    yield f"{before}, then {after} partitions: backlog a second {rates}; it was {measured['lag']}"
    split, disordered = measured["keys_split"], measured["keys_disordered"]
    yield f"{split} of {measured['keys']} keys moved, {disordered} were worked at out of order"


# ---------------------------------------------------------------- without a quorum


def _quorum_broken(seen: Seen, servers: int, ended_early: bool) -> Iterator[str]:
    stages = seen.measured["stages"]
    if not stages and not ended_early:
        yield "no change was asked for, so nothing was tried"
    for number, stage in enumerate(stages, 1):
        # before the last one is stopped the others have a quorum
        last = number == servers
        back = stage["back_ms"]
        for key, what in (("topic_ms", "a topic"), ("leader_ms", "a leader change")):
            took = stage[key]
            if key == "leader_ms" and stage.get("led_already"):
                continue
            if took is None:
                yield f"{what} never happened that was asked for with {stage['away']} away"
            elif last and (back is None or took < back):
                yield f"{what} happened with {stage['away']} away, so there was a quorum"
            elif not last and took > AT_ONCE_MS:
                away = f"with {stage['away']} away"
                yield f"{what} took {_seconds(took)} although a quorum was there, {away}"


def unclear(fault: str, seen: Seen) -> Iterator[str]:
    """What could not be tried, of a drill of this kind."""
    for stage in seen.measured["stages"] if fault == QUORUM else ():
        if stage.get("led_already"):
            yield f"no leader change could be tried with {stage['away']} away: Kafka itself had made it before"


def _quorum_told(seen: Seen, servers: int) -> Iterator[str]:
    for number, stage in enumerate(seen.measured["stages"], 1):
        made, led = _seconds(stage["topic_ms"]), _seconds(stage["leader_ms"])
        untried = stage.get("led_already")
        if untried:
            led = _UNTRIED
        if number != servers:
            yield f"{stage['away']} away: new topic {made}, leader {led}"
        elif stage["back_ms"] is not None:
            after = [
                _seconds(None if stage[key] is None else stage[key] - stage["back_ms"])
                for key in ("topic_ms", "leader_ms")
            ]
            who = "the topic" if untried else "both"
            yield (
                f"{stage['away']} away: {who} waited {_seconds(stage['back_ms'])}; once one was back"
                f" new topic {after[0]}, leader {_UNTRIED if untried else after[1]}"
            )
        if stage.get("asked_again"):
            yield f"{stage['away']} away: asked again {counted(stage['asked_again'], 'time')}"


_UNTRIED = "not tried"


def _seconds(milliseconds: Optional[int]) -> str:
    return "never" if milliseconds is None else f"{milliseconds / 1000:.1f} s"


def _more(one: Optional[float], other: Optional[float]) -> bool:
    return one is not None and other is not None and one > other


def _rate(per_second: Optional[float]) -> str:
    return "-" if per_second is None else f"{per_second:+.1f}"


_BROKEN: Mapping[str, Callable[[Seen], Iterator[str]]] = {
    BROADCAST: _broadcast_broken,
    QUEUE: _queue_broken,
    COMMITS: _commits_broken,
    ONCE: _once_broken,
    GROW: _grow_broken,
}
_TOLD: Mapping[str, Callable[[Seen], Iterator[str]]] = {
    BROADCAST: _broadcast_told,
    QUEUE: _queue_told,
    COMMITS: _commits_told,
    ONCE: _once_told,
    GROW: _grow_told,
}

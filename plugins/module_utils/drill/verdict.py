# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on a drill: what was expected against what was seen, as one row of a table. Pure.

Private to this collection.
"""

from __future__ import annotations

import itertools
import textwrap
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.status import table
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import expectations, judgement
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.cast import Cast
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    BROADCAST,
    COMMITS,
    CONTROLLER,
    COORDINATOR,
    GROW,
    HEARTBEAT_SECONDS,
    KILL,
    LEADER,
    MEMBER_CLOSE,
    MEMBER_KILL,
    NOT_ENOUGH,
    ONCE,
    QUEUE,
    QUORUM,
    RECREATE,
    SESSION_SECONDS,
    Drill,
    short_names,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import (
    INCONCLUSIVE,
    PASS,
    VIOLATION,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Course,
    Seen,
    course,
    longest_since,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted

AS_EXPECTED, NOT_EXPECTED, OPEN = "as expected", "NOT as expected", "open"
COLUMNS = ("CASE", "DONE", "EXPECTED", "OBSERVED", "PAUSE", "VERDICT")
# Of those that have sentences: more characters go into further lines, so that a terminal shows the table as one.
WIDEST = {"DONE": 24, "EXPECTED": 36, "OBSERVED": 44}
# A member that dies is missed after the session, from its last heartbeat on. A machine that is busy sends some late.
LATE_HEARTBEATS = 3
# In so many a group finds its new coordinator and commits, on a busy machine, too.
FOUND_SECONDS = 2 * SESSION_SECONDS
# Ten looks a second, each of which has 5 s: without one for longer, nobody knows how it ended.
UNSEEN_SECONDS = 10


@dataclass(frozen=True)
class Row:
    """One line of the table. `wrong`: what is not as expected, `open`: what could not be judged, in words."""

    name: str
    row: str
    done: str
    expected: str
    observed: str
    pause_ms: Optional[int]
    wrong: Tuple[str, ...] = ()
    open: Tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """One of the three words."""
        return NOT_EXPECTED if self.wrong else OPEN if self.open else AS_EXPECTED

    def to_dict(self) -> Dict[str, Any]:
        """As the playbook keeps it, and as JSON."""
        return {
            "case": self.name,
            "scenario": self.row,
            "done": self.done,
            "expected": self.expected,
            "observed": self.observed,
            "pause_ms": self.pause_ms,
            "verdict": self.verdict,
            "wrong": list(self.wrong),
            "open": list(self.open),
        }


def judged(
    chosen: Cast,
    host: str,
    seen: Optional[Seen],
    fault_ms: int = 0,
    proof: Optional[Mapping[str, Any]] = None,
    error: str = "",
    amiss: Sequence[str] = (),
    before_ms: int = 0,
) -> Row:
    """The row of a drill. `seen` is None where nothing was; `proof`: verdict.json of the PySpark judge.

    `fault_ms`: when a broker was hit, 0: none was, may be by the clock of another host; `before_ms`: when nothing had
    been done yet, by the clock of who has seen it, 0: unknown. `error`: what ended the drill before its time. `amiss`:
    what the playbook itself has found that is not as expected, such as a broker that is not back.
    """
    drill = chosen.drill
    untouched = drill.hits_broker and not fault_ms
    done = "nothing" if untouched else _done(chosen, host, seen, fault_ms)
    if seen is None or untouched:
        why = error or "the drill did not come to its end"
        return Row(
            drill.name, drill.row, done, drill.expected, "nothing", None, tuple(amiss), (why,)
        )
    since_ms, fault_ms = before_ms or fault_ms, max(before_ms, fault_ms)
    went = course(seen.moments, chosen.assignment[0], fault_ms, since_ms)
    unseen = _unseen(seen, since_ms) if drill.hits_broker else ""
    wrong = [
        *_records(chosen, seen),
        *_cluster(chosen, went, bool(unseen)),
        *(() if unseen else _coordinators(chosen, seen, since_ms)),
        *expectations.broken(drill.fault, seen, len(chosen.servers), bool(error)),
        *(expectations.copies_broken(seen) if drill.copied else ()),
        *_pause(chosen, seen, since_ms),
        *judgement.broken(seen.judged),
        *amiss,
    ]
    unclear = [*([error] if error else ()), *not_looked_for(seen), *filter(None, (unseen,))]
    if seen.measured.get("left"):
        unclear.append(f"its topic and groups are removed later: {seen.measured['left']}")
    unclear.extend(expectations.unclear(drill.fault, seen))
    unclear.extend(judgement.unclear(seen.judged))
    if drill.proven:
        verdict = (proof or {}).get("verdict")
        summary = str((proof or {}).get("summary") or "")
        if verdict == VIOLATION:
            wrong.append(
                f"the judge has found a violation in what it has written itself: {summary}"
            )
        elif verdict != PASS:
            why = summary or "it could not run"
            unclear.append(f"the judge has no verdict on what it has written itself: {why}")
    return Row(
        drill.name,
        drill.row,
        done,
        drill.expected,
        "; ".join(_observed(chosen, seen, went, proof, since_ms)),
        _pause_ms(chosen, seen, since_ms),
        tuple(wrong),
        tuple(unclear),
    )


def row_kept(row: Row, seen: Optional[Seen]) -> Dict[str, Any]:
    """A row as JSON and the page have it: with what was seen, and when the fault was."""
    return {
        **row.to_dict(),
        "seen": seen.to_dict() if seen else None,
        "fault": fault_of(row, seen),
    }


def fault_of(row: Row, seen: Optional[Seen]) -> Dict[str, Any]:
    """When the fault was that the drill itself has caused: {at_ms, to_ms, label}; empty where there was none."""
    at_ms = seen.measured.get("at_ms") if seen is not None else None
    if seen is None or not at_ms:
        return {}
    return {"at_ms": at_ms, "to_ms": at_ms + seen.measured.get("ended_ms", 0), "label": row.done}


def not_begun(drill: Drill, why: str) -> Row:
    """The row of a drill that this cluster cannot have."""
    return Row(drill.name, drill.row, "nothing", drill.expected, "nothing", None, (), (why,))


def unmeasured(name: str, row: str, expected: str, error: str) -> Row:
    """The row of what has ended before it was seen through: how much of it was done is not known."""
    return Row(name, row, _UNKNOWN, expected, "nothing", None, (), (error,))


# Whoever should have told it has not come to that.
_UNKNOWN = "nothing that is known"


def _done(chosen: Cast, host: str, seen: Optional[Seen], fault_ms: int) -> str:
    """What was done, and not what should have been."""
    if chosen.victim is not None:
        return f"{host} {'killed' if chosen.drill.fault == KILL else 'stopped'}"
    if chosen.drill.fault == QUORUM:
        return _gone(chosen, len(seen.measured["stages"]) if seen else 0, fault_ms)
    return _DONE[chosen.drill.fault] if seen else _UNKNOWN


def _gone(chosen: Cast, away: int, fault_ms: int) -> str:
    """Of a quorum. `away`: with how many away changes were asked for; `fault_ms`: when the first went, 0: unknown."""
    # the least number whose loss is the quorum's: 2 of 3, 2 of 4, 3 of 5
    least = len(chosen.servers)
    who = "ZooKeepers" if chosen.drill.hits_zookeeper else "controllers"
    of_all = f"of {chosen.members} {who} gone"
    if away >= least:
        return f"{away} {of_all}, the last killed"
    if away:
        return f"{away} {of_all}"
    return f"at least 1 {of_all}" if fault_ms else _UNKNOWN


_DONE = {
    MEMBER_KILL: "consumer killed",
    MEMBER_CLOSE: "consumer closed",
    RECREATE: "topic recreated",
    BROADCAST: "read by five groups",
    QUEUE: "one to four consumers",
    COMMITS: "consumers killed",
    ONCE: "processes killed",
    GROW: "partitions doubled",
}


def _records(chosen: Cast, seen: Seen) -> Iterator[str]:
    """What is wrong with the records."""
    drill = chosen.drill
    if not seen.acknowledged:
        yield "no record was acknowledged"
    for group in seen.groups:
        if group.missing:
            some = ", ".join(group.missing[:3])
            yield f"{len(group.missing)} acknowledged records never came to {group.name}: {some}"
        if group.late:
            yield f"{group.late} acknowledged records did not come to {group.name} in time; the topic has them"
    refused = sum(seen.refused.values())
    if drill.below_min_isr:
        yield from _below(seen)
        refused -= sum(seen.refused.get(name, 0) for name in NOT_ENOUGH)
        refused -= seen.measured["below"]["unknown"]
    if refused:
        told = ", ".join(f"{count} {name}" for name, count in sorted(seen.refused.items()))
        yield f"sends failed: {told}"
    if drill.part == LEADER and drill.example:
        yield from _example(seen.measured.get("example"))
    repeated = sum(group.repeated for group in seen.groups)
    if drill.fault == MEMBER_CLOSE and repeated:
        yield f"{repeated} records came twice, although the consumer was closed"


def not_looked_for(seen: Seen) -> Iterator[str]:
    """Records of which nobody knows whether they are lost: the topic could not be read to its end."""
    unread = "in time, and could not be looked for: the topic could not be read to its end"
    for group in seen.groups:
        if group.unknown:
            yield f"{group.unknown} acknowledged records did not come to {group.name} {unread}"
    lines = (seen.measured.get("example") or {}).get("unknown")
    if lines:
        yield f"{lines} lines of examples/producer.py did not come to every group {unread}"


def _below(seen: Seen) -> Iterator[str]:
    """What is wrong with writes and reads while fewer replicas are in sync than min ISR wants, and afterwards."""
    below = seen.measured["below"]
    if not any(seen.refused.get(name) for name in NOT_ENOUGH):
        yield f"no write was refused with {NOT_ENOUGH[0]} while a replica was away"
    if seen.unprotected:
        yield f"{seen.unprotected} writes were accepted while a replica was away"
    if below["read"] < below["there"]:
        yield f"{below['read']} of {below['there']} records could be read while a replica was away"
    if not below["again"]:
        yield "no write was accepted again afterwards"


def _example(found: Optional[Mapping[str, Any]]) -> Iterator[str]:
    """What is wrong with examples/producer.py, which wrote, too."""
    if found is None or not found["lines"]:
        yield "examples/producer.py has written nothing"
        return
    if found["code"] != 0:
        yield f"examples/producer.py ended with {found['code']}: {found['said']}"
    if found["missing"]:
        yield f"{found['missing']} lines of examples/producer.py never came to every group"
    if found["late"]:
        yield f"{found['late']} lines of examples/producer.py did not come to every group in time; the topic has them"


def _unseen(seen: Seen, since_ms: int) -> str:
    """Why what became of leader, ISR and controller is not known; empty if it is."""
    looks = seen.measured.get("looks") or {}
    last_ms, until_ms = int(looks.get("last_ms") or 0), int(looks.get("until_ms") or 0)
    what = "leader, ISR and controller could"
    if not seen.moments:
        return f"{what} never be looked at"
    if looks and last_ms <= since_ms:
        return f"{what} not be looked at since the fault"
    if looks and until_ms - last_ms > UNSEEN_SECONDS * 1000:
        return f"{what} not be looked at for the last {_seconds(until_ms - last_ms)}"
    return ""


def _cluster(chosen: Cast, went: Course, unseen: bool) -> Iterator[str]:
    """What is wrong with leader, ISR and controller. `unseen`: what has not come may have come all the same."""
    drill, victim = chosen.drill, chosen.victim
    if not drill.hits_broker:
        return
    if unseen:
        if drill.part != LEADER and went.led_by:
            yield f"leadership moved to broker {', '.join(map(str, went.led_by))}"
        return
    if drill.part == LEADER:
        if went.leader_before != victim:
            yield f"broker {victim} did not lead before"
        elif not went.led_by:
            yield "nobody else has led"
        elif went.leader_after != victim:
            yield f"broker {victim} does not lead again"
    elif went.led_by:
        yield f"leadership moved to broker {', '.join(map(str, went.led_by))}"
    if drill.part == CONTROLLER and not went.controlled_by:
        yield "no other controller was elected"
    if went.shrank_ms is None and not chosen.apart:
        yield "the ISR never shrank, so nothing was tried"
    if not went.full_at_end:
        yield "the ISR is not full again"


def _coordinators(chosen: Cast, seen: Seen, since_ms: int) -> Iterator[str]:
    """What is wrong with who has coordinated the group since its coordinator was lost."""
    if chosen.drill.part != COORDINATOR:
        return
    found = seen.measured["coordinators"]
    since = [each for each in found if each[0] > since_ms]
    others = [each for each in since if each[1] not in (None, chosen.victim)]
    if not others:
        replicas = found[-1][2] if found else 0
        had = counted(replicas, "replica")
        yield f"nobody else has coordinated the group: its offsets in __consumer_offsets have {had}"
        return
    if not any(commits for *_how, commits in others):
        yield "the group has not committed while another broker coordinated it"
        return
    # Where it is away for a moment only, the group may not have found the other one yet; it asks for it once a second,
    # and a broker that takes over reads the offsets first.
    away = [each for each in others if chosen.victim not in each[3]]
    lasted = sum(_until(found, each) - each[0] for each in away)
    if lasted >= FOUND_SECONDS * 1000 and not any(commits for *_how, commits in away):
        replicas, in_sync = away[-1][2], len(away[-1][3])
        alone = f"{in_sync} of {counted(replicas, 'replica')} of its offsets in sync"
        yield f"the group has not committed while its coordinator was away, for {_seconds(lasted)} with {alone}"


def _until(found: Sequence[Sequence[Any]], each: Sequence[Any]) -> int:
    """Until when it was so; what lasts to the end counts for nothing."""
    return next((later[0] for later in found if later[0] > each[0]), each[0])


def _pause_ms(chosen: Cast, seen: Seen, since_ms: int) -> Optional[int]:
    """Of acknowledgements, or what else the drill is about: of the group whose coordinator is lost, and of programs
    that copy, of commits.

    Since the fault, where it is known when that was: before, a load that has just begun may pause, too.
    """
    found, whole = seen.measured.get("pauses"), seen.pause_ms
    if chosen.drill.part == COORDINATOR:
        found = seen.measured["commit_pauses"][0]
        whole = seen.measured["commit_pause_ms"][0]
    if chosen.drill.copied:
        of_each = [longest_since(each["pauses"], since_ms) for each in seen.measured["copies"]]
        return max((each for each in of_each if each is not None), default=whole)
    since = longest_since(found, since_ms) if found and since_ms else None
    return whole if since is None else since


def _pause(chosen: Cast, seen: Seen, since_ms: int) -> Iterator[str]:
    limit, pause = chosen.drill.pause_seconds, _pause_ms(chosen, seen, since_ms)
    if pause is None and chosen.drill.fault in (MEMBER_KILL, MEMBER_CLOSE):
        yield "the other consumer never had all of the partitions"
    if pause is None and chosen.drill.part == COORDINATOR:
        yield "the group has never committed"
    least = (SESSION_SECONDS - LATE_HEARTBEATS * HEARTBEAT_SECONDS) * 1000
    if pause is not None and chosen.drill.fault == MEMBER_KILL and pause < least:
        session = f"without its session of {SESSION_SECONDS} s, so nothing was tried"
        yield f"the other took over after {pause / 1000:.1f} s, {session}"
    if pause is not None and pause > limit * 1000:
        yield f"the pause of {pause / 1000:.1f} s is longer than {limit:g} s"


def _observed(
    chosen: Cast, seen: Seen, went: Course, proof: Optional[Mapping[str, Any]], since_ms: int
) -> Iterator[str]:
    """What was seen, in a few words each."""
    if chosen.drill.part == LEADER and went.led_by:
        yield f"{went.led_by[0]} led after {_seconds(went.led_ms)}"
    if chosen.drill.part == CONTROLLER and chosen.drill.hits_broker and went.controlled_by:
        yield f"controller {went.controlled_by[0]} after {_seconds(went.elected_ms)}"
    if chosen.drill.part == COORDINATOR:
        yield f"no commit for {_seconds(_pause_ms(chosen, seen, since_ms))}"
    if went.full_ms is not None:
        yield f"ISR {went.smallest_isr}, full after {_seconds(went.full_ms)}"
    counts = dict((proof or {}).get("counts") or {})
    if counts.get("acked"):
        yield f"judge's own load: {counts['acked']:,} acknowledged, {(proof or {}).get('verdict')}"
    if chosen.drill.fault not in (COMMITS, ONCE):
        yield f"{seen.lost} of {seen.acknowledged} lost"
    yield from judgement.told(seen.judged)
    if seen.late:
        yield f"{seen.late} late"
    if seen.unknown:
        yield f"{seen.unknown} unknown"
    refused = sum(seen.refused.values())
    if refused:
        yield f"{refused} refused"
    if chosen.drill.below_min_isr:
        below = seen.measured["below"]
        yield f"{below['read']} of {below['there']} read while it was away"
        yield f"{below['again']} accepted afterwards"
    repeated = sum(group.repeated for group in seen.groups)
    if repeated and chosen.drill.fault not in (COMMITS, ONCE) and not chosen.drill.copied:
        yield f"{repeated} twice"
    example = seen.measured.get("example")
    if example:
        yield f"examples/producer.py: {example['missing']} of {example['lines']} lost"
    yield from expectations.told(chosen.drill.fault, seen, len(chosen.servers))
    if chosen.drill.copied:
        yield from expectations.copies_told(seen, since_ms)
    elif chosen.drill.hits_broker and seen.groups:
        yield f"delay {' / '.join(_seconds(group.delay_ms) for group in seen.groups)}"
    yield from seen.notes


def _seconds(milliseconds: Optional[int]) -> str:
    return "-" if milliseconds is None else f"{milliseconds / 1000:.1f} s"


def _folded(cells: Sequence[str]) -> List[List[str]]:
    """The lines of a row, each with a part of each cell."""
    parts = [
        textwrap.wrap(cell, WIDEST[column], break_on_hyphens=False) if column in WIDEST else [cell]
        for column, cell in zip(COLUMNS, cells)
    ]
    return [list(line) for line in itertools.zip_longest(*parts, fillvalue="")]


def drill_table(rows: Sequence[Mapping[str, Any]], of: str = "drill") -> Dict[str, Any]:
    """The table of rows (as `to_dict` has them): {lines, good}. What is not as expected follows it.

    `of`: what a row is, in the last line.
    """
    cells = [
        [
            each["case"],
            each["done"],
            each["expected"],
            each["observed"],
            _seconds(each["pause_ms"]),
            each["verdict"],
        ]
        for each in rows
    ]
    folded = [line for row in cells for line in _folded(row)]
    lines: List[str] = table(COLUMNS, folded) if folded else []
    more = [f"{each['case']}: {text}" for each in rows for text in [*each["wrong"], *each["open"]]]
    more += otherwise(rows)
    good = bool(rows) and all(each["verdict"] == AS_EXPECTED for each in rows)
    held = sum(each["verdict"] == AS_EXPECTED for each in rows)
    noun = of if len(rows) == 1 else f"{of}s"
    summary = (
        f"All {len(rows)} {noun} went as expected."
        if good and len(rows) > 1
        else (
            f"The {of} went as expected."
            if good
            else f"ATTENTION: {held} of {len(rows)} {noun} went as expected."
        )
    )
    return {"lines": [*lines, "", *more, *([""] if more else []), summary], "good": good}


def otherwise(rows: Sequence[Mapping[str, Any]]) -> List[str]:
    """How topics of the user may fare otherwise than those of drills: each sentence once."""
    found: Dict[str, List[str]] = {}
    for each in rows:
        if each.get("otherwise"):
            said = f"{each['otherwise']}; the drill's topic had {each['durability']}"
            found.setdefault(said, []).append(each["case"])
    return [f"{', '.join(cases)}: {said}" for said, cases in found.items()]


def interrupted_lines(kept: Mapping[str, Any], when: str) -> List[str]:
    """What is told of drills that were interrupted, from the file that they kept; none if it is over."""
    if kept.get("over", True):
        return []
    rows, names = kept["drills"], kept["names"]
    during = f" during {kept['next']}" if kept.get("next") else ""
    done = f"{len(rows)} of {len(names)} {'drill' if len(names) == 1 else 'drills'} had ended"
    lines = [f"The drills of {when} were interrupted{during}; {done}."]
    # without the last line, which sums up
    return [*lines, *(drill_table(rows)["lines"][:-2] if rows else [])]


RESULTS_SCHEMA = 1


def results(told: Mapping[str, Any], run: str) -> Dict[str, Any]:
    """drill.json of a run, from what it has kept: its `drills` are rows, `over` says whether all are there.

    A row with two short names there has a case for each. Verdicts are the words of verdict.json.
    """
    rows = list(told["drills"])
    cases = [_case(row, short) for row in rows for short in short_names(_named(row))]
    words = {each["verdict"] for each in cases}
    whole = told.get("over", True) and bool(cases)
    verdict = PASS if whole and words == {PASS} else INCONCLUSIVE
    return {
        "schema_version": RESULTS_SCHEMA,
        "run_id": run,
        "cluster": told["cluster"],
        "over": bool(told.get("over", True)),
        "verdict": VIOLATION if VIOLATION in words else verdict,
        "cases": cases,
    }


def _named(row: Mapping[str, Any]) -> str:
    """The drill of a row, or its part of the guarantees."""
    return str(row.get("part") or row["case"])


def _case(row: Mapping[str, Any], short: str) -> Dict[str, Any]:
    pause = row["pause_ms"]
    return {
        "drill": short,
        "case": row["case"],
        "scenario": row.get("scenario", ""),
        "done": row["done"],
        "expected": row["expected"],
        "observed": row["observed"],
        "pause_seconds": None if pause is None else pause / 1000,
        "verdict": _RESULT_WORDS[row["verdict"]],
        "wrong": list(row["wrong"]),
        "open": list(row["open"]),
        # of the topic on which it was shown, and how topics of the user may differ; guarantees name it in their case
        "durability": row.get("durability", ""),
        "otherwise": row.get("otherwise", ""),
    }


_RESULT_WORDS = {AS_EXPECTED: PASS, NOT_EXPECTED: VIOLATION, OPEN: INCONCLUSIVE}

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What earlier runs have left: topics of their own in the cluster, and what they have written below the reports.

A topic is ours if it has the name that a run gives to its own, and if no ledger says that somebody else
had made it before. What a run may still be using is never old, wherever that run is: an empty topic is as
old as its run, which its name tells.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Dict, Iterable, List, Mapping, Optional, Set, Tuple

from flow.messages.failure import CannotRun
from flow.messages.output import read_json
from flow.prepare.cluster import Cluster
from flow.record import files, own_names, place

TOPIC, REPORT, LEDGER = "topic", "report", "ledger"
BUSY_SECONDS = 600  # a run that is alive has touched its files in this time
# So long a run that began elsewhere, or wrote its last record, may need a topic that holds nothing new:
# until Spark's executors came, or while it judges.
FOREIGN_SECONDS = 3600

_ELSEWHERE = "only Spark can open it; remove it yourself, since its report goes"
_STRANGE = "another version of the job wrote its ledger; remove it with that one"
_RUN = re.compile(r"[0-9]{8}T[0-9]{6}Z\Z")
# What there may be in the directory of a run: the job's results and notes, and what the playbooks bring.
_WRITTEN = re.compile(
    r"(?:ledger|job|end)\Z|(?:verdict|inspection|report|run|produced|progress|events|failure|judge)\."
    r"|\.client|\.writable"
)
# Where directories of runs lie, too, and where tables of runs, each a JSON with a page beside it.
_BELOW, _OF_ROWS, _JSON = ("inspections", "drills"), ("drills", "guarantees", "benchmarks"), ".json"


@dataclass(frozen=True)
class Leftover:
    """A topic by its name, a report by its path, or a ledger that is not in its report; `kept`: why it may not
    go, "" if it may.

    age_seconds: since its last record, or its run's beginning; None where nobody knows.
    """

    kind: str
    name: str
    age_seconds: Optional[int]
    kept: str = ""


@dataclass(frozen=True)
class Report:
    """A directory of a run, or the JSON of one that has rows, as far as it matters here."""

    path: str
    began: float  # seconds since 1970
    topic: str = ""  # "" where its ledger does not say
    made_topic: bool = True
    touched: float = 0.0  # when the run wrote down last how far it is; 0: never
    ended: bool = True
    latest: bool = False
    ledger: str = ""  # where it is not in the report's directory
    run_id: str = ""  # of that ledger
    strange: bool = False  # its ledger is of another version of the job


def is_ours(topic: str) -> bool:
    """Whether runs name their own topics so."""
    return bool(own_names.run_topic(topic))


def decide(
    ages: Mapping[str, Optional[float]],
    reports: Iterable[Report],
    now: float,
    older: float,
    unread: Optional[Mapping[str, str]] = None,
) -> List[Leftover]:
    """What there is and what of it may go. ages: topic -> seconds since its last record, None: it is
    empty, of all topics of the cluster; older: seconds that anything must be old; unread: topic -> why
    nobody knows its age.
    """
    reports, unread = list(reports), unread or {}
    found = []
    for topic in sorted({*ages, *unread}):
        if is_ours(topic):
            age = ages.get(topic)
            if age is None and (began := own_names.began(topic, now)) is not None:
                age = max(0.0, now - began)
            kept = _why_topic_stays(topic, age, reports, now, older, unread.get(topic, ""))
            found.append(Leftover(TOPIC, topic, None if age is None else int(age), kept))
    for each in sorted(reports, key=lambda report: report.path):
        age = now - each.began
        why = _why_report_stays(each, now, older)
        found.append(Leftover(REPORT, each.path, int(age), why))
        if each.ledger:
            why = why or (_ELSEWHERE if place.is_remote(each.ledger) else "")
            found.append(Leftover(LEDGER, each.ledger, int(age), why))
    return found


def _why_topic_stays(
    topic: str, age: Optional[float], reports: List[Report], now: float, older: float, unread: str
) -> str:
    """Why this topic of ours may not go, "" if it may; age: since its last record, or its beginning."""
    of_run = own_names.run_topic(topic)
    if {topic, of_run} & {each.topic for each in reports if not each.made_topic}:
        return "somebody else made it, and gave it to a run"
    if any(each.strange and each.topic in ("", topic, of_run) for each in reports):
        return _STRANGE
    its_own = [each for each in reports if each.topic.startswith(of_run)]
    if any(_is_busy(each, now) for each in its_own):
        return "a run is writing to it"
    if unread:
        return f"its age is not known: {unread}"
    if age is None:
        return "it is empty, and its name, of an older version, does not tell its age; delete it yourself"
    if age < older:
        return "it is too young"
    if age < FOREIGN_SECONDS and not any(each.ended for each in its_own):
        return "a run on another host may be using it, for an hour"
    return ""


def _why_report_stays(report: Report, now: float, older: float) -> str:
    if report.latest:
        return "it is the latest"
    if report.strange:
        return _STRANGE
    if not report.made_topic and is_ours(report.topic):
        return "it says who made its topic"
    if _is_busy(report, now):
        return "its run goes on"
    return "it is too young" if now - report.began < older else ""


def _is_busy(report: Report, now: float) -> bool:
    return not report.ended and now - report.touched < BUSY_SECONDS


def reports_below(directory: str) -> List[Report]:
    """The runs in a directory of reports: validations, inspections, drills with their proofs, guarantees,
    benchmarks.

    Nothing where there is none.
    """
    found = []
    for base in (directory, *(os.path.join(directory, each) for each in _BELOW)):
        names = sorted(os.listdir(base)) if os.path.isdir(base) else []
        latest = os.path.realpath(os.path.join(base, "latest"))
        for name in names:
            path = os.path.join(base, name)
            if _RUN.match(name) and _is_of_a_run(path):
                found.append(_report(path, name, os.path.realpath(path) == latest))
    for base in (os.path.join(directory, each) for each in _OF_ROWS):
        names = sorted(os.listdir(base)) if os.path.isdir(base) else []
        told = [name for name in names if _RUN.match(name[: -len(_JSON)]) and name.endswith(_JSON)]
        for name in told:
            path = os.path.join(base, name)
            if os.path.isfile(path) and not os.path.islink(path):
                found.append(_rows(path, name == told[-1]))
    return found


def _is_of_a_run(path: str) -> bool:
    """Whether it is a directory that a run has made: an empty one, or one with anything in it that runs write."""
    if not os.path.isdir(path) or os.path.islink(path):
        return False
    names = os.listdir(path)
    return not names or any(_WRITTEN.match(name) for name in names)


def _rows(path: str, latest: bool) -> Report:
    """The table of a run of drills, guarantees or a benchmark; what cannot be read has ended."""
    began = _time(os.path.basename(path)[: -len(_JSON)])
    try:
        with open(path, encoding="utf-8") as stream:
            over = json.load(stream).get("over", True)
    except (OSError, ValueError, AttributeError):
        over = True
    return Report(path, began, touched=_modified(path), ended=over, latest=latest)


def _report(path: str, name: str, latest: bool) -> Report:
    began = _time(name)
    topic, made, ledger, run_id, strange = "", True, "", "", False
    try:
        plan = files.load_plan(os.path.join(path, "ledger"))
        topic, made = plan.topic, plan.created
    except files.AnotherVersion as error:
        topic, strange = error.topic, True
    except (
        CannotRun
    ):  # of an inspection, of a run that never got so far, or of one whose ledger is elsewhere
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            told = read_json(os.path.join(path, files.RUN))
            topic, made, ledger, run_id = (told[name] for name in files.TOLD_OF_RUN)
    ended = any(os.path.exists(os.path.join(path, f"{n}.json")) for n in ("verdict", "inspection"))
    return Report(path, began, topic, made, _touched(path), ended, latest, ledger, run_id, strange)


def _time(name: str) -> float:
    """When a run of this name began, in seconds since 1970."""
    return datetime.strptime(name, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc).timestamp()


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, timezone.utc).isoformat(timespec="seconds")


def _touched(path: str) -> float:
    """When anything in the run's directory changed last."""
    return max(
        _modified(os.path.join(directory, name))
        for directory, _inner, names in os.walk(path)
        for name in [".", *names]
    )


def _modified(path: str) -> float:
    try:
        return os.path.getmtime(path)
    except OSError:  # it has been replaced meanwhile
        return 0.0


def ages_of(
    cluster: Cluster, topics: Iterable[str]
) -> Tuple[Dict[str, Optional[float]], Dict[str, str]]:
    """(topic -> seconds since its last record, None if it is empty; topic -> why that is not known)."""
    moments, unread = cluster.last_records_ms(list(topics))
    now = time.time()
    ages = {
        topic: None if ms is None else max(0.0, now - ms / 1000) for topic, ms in moments.items()
    }
    return ages, unread


def _note(reports: Iterable[Report], topic: str, when: str) -> None:
    """Say in the plans of that topic's runs that it was deleted `when`, "" for not at all: else to judge
    them again would accuse the cluster. What cannot be written says it when it is judged.
    """
    for each in reports:
        if each.topic == topic:
            ledger = each.ledger or os.path.join(each.path, "ledger")
            with contextlib.suppress(CannotRun, OSError):  # one that only Spark can open, too
                plan = files.load_plan(ledger)
                plan.cleared = when
                files.save_plan(ledger, plan)


def remove(cluster: Cluster, found: Iterable[Leftover], reports: Iterable[Report] = ()) -> Set[str]:
    """Remove what may go; sentences about what could not be removed. reports: whose ledgers are told."""
    troubles, reports, found = set(), list(reports), list(found)
    going = {each.name for each in found if each.kind == REPORT and not each.kept}
    of_runs = {report.run_id for report in reports if report.path in going}
    for each in found:
        if each.kept:
            continue
        try:
            if each.kind == TOPIC:
                # first: who is killed between both has nothing to judge
                _note(reports, each.name, _iso(time.time()))
                cluster.delete_topic(each.name)
            elif each.kind == LEDGER:
                _remove_ledger(each.name, of_runs)
            elif each.name.endswith(_JSON):
                os.unlink(each.name)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{each.name[: -len(_JSON)]}.html")
            else:
                shutil.rmtree(each.name)
        except (CannotRun, OSError) as error:
            if each.kind == TOPIC:
                _note(reports, each.name, "")
            troubles.add(f"{each.kind} {each.name} could not be removed: {error}")
    return troubles


def _remove_ledger(ledger: str, of_runs: Set[str]) -> None:
    """Unless it has become that of a run that is none of these, or is gone."""
    with contextlib.suppress(CannotRun):
        if files.load_plan(ledger).run_id not in of_runs:
            return
        files.remove_ledger(ledger)


def told(found: Iterable[Leftover], removed: bool) -> dict:
    """For who started the job."""
    return {"removed": removed, "found": [asdict(each) for each in found]}

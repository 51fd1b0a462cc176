# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What earlier runs have left: topics of their own in the cluster, and directories with their results.

A topic is ours if it has the name that a run gives to its own, and if no ledger says that somebody else
had made it before. What a run may still be writing to is never old.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Dict, Iterable, List, Mapping, Optional, Set

from flow.messages.failure import CannotRun
from flow.prepare.cluster import Cluster
from flow.record import files
from flow.record.own_names import run_topic

TOPIC, REPORT = "topic", "report"
BUSY_SECONDS = 600  # a run that is alive has touched its files in this time

_RUN = re.compile(r"[0-9]{8}T[0-9]{6}Z\Z")


@dataclass(frozen=True)
class Leftover:
    """A topic by its name or a report by its path; `kept`: why it may not go, "" if it may.

    age_seconds: since its last record or its beginning; None where nobody knows, as of an empty topic.
    """

    kind: str
    name: str
    age_seconds: Optional[int]
    kept: str = ""


@dataclass(frozen=True)
class Report:
    """A directory of a run, as far as it matters here."""

    path: str
    began: float  # seconds since 1970
    topic: str = ""  # "" where its ledger does not say
    made_topic: bool = True
    touched: float = 0.0  # when the run wrote down last how far it is; 0: never
    ended: bool = True
    latest: bool = False


def is_ours(topic: str) -> bool:
    """Whether runs name their own topics so."""
    return bool(run_topic(topic))


def decide(
    ages: Mapping[str, Optional[float]], reports: Iterable[Report], now: float, older: float
) -> List[Leftover]:
    """What there is and what of it may go. ages: topic -> seconds since its last record, None: it is
    empty, of all topics of the cluster; older: seconds that anything must be old.
    """
    reports = list(reports)
    busy = [each for each in reports if not each.ended and now - each.touched < BUSY_SECONDS]
    lent = {each.topic for each in reports if not each.made_topic}
    found = []
    for topic, age in sorted(ages.items()):
        of_run = run_topic(topic)
        if not of_run:
            continue
        kept = ""
        if topic in lent or of_run in lent:
            kept = "somebody else made it, and gave it to a run"
        elif any(each.topic.startswith(of_run) for each in busy):
            kept = "a run is writing to it"
        elif age is not None and age < older:
            kept = "it is too young"
        elif age is None and busy:
            kept = "it is empty, and a run has just begun"
        found.append(Leftover(TOPIC, topic, None if age is None else int(age), kept))
    for each in sorted(reports, key=lambda report: report.path):
        age, kept = now - each.began, ""
        if each.latest:
            kept = "it is the latest"
        elif not each.made_topic and is_ours(each.topic):
            kept = "it says who made its topic"
        elif each in busy:
            kept = "its run goes on"
        elif age < older:
            kept = "it is too young"
        found.append(Leftover(REPORT, each.path, int(age), kept))
    return found


def reports_below(directory: str) -> List[Report]:
    """The runs in a directory of reports, and its inspections; nothing where there is none."""
    found = []
    for base in (directory, os.path.join(directory, "inspections")):
        names = sorted(os.listdir(base)) if os.path.isdir(base) else []
        latest = os.path.realpath(os.path.join(base, "latest"))
        for name in names:
            path = os.path.join(base, name)
            if _RUN.match(name) and os.path.isdir(path) and not os.path.islink(path):
                found.append(_report(path, name, os.path.realpath(path) == latest))
    return found


def _report(path: str, name: str, latest: bool) -> Report:
    began = datetime.strptime(name, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc).timestamp()
    topic, made = "", True
    try:
        plan = files.load_plan(os.path.join(path, "ledger"))
        topic, made = plan.topic, plan.created
    except CannotRun:  # of an inspection, or of a run that never got so far
        pass
    ended = any(os.path.exists(os.path.join(path, f"{n}.json")) for n in ("verdict", "inspection"))
    return Report(path, began, topic, made, _touched(path), ended, latest)


def _touched(path: str) -> float:
    """When anything in the run's directory changed last."""
    latest = 0.0
    for directory, _inner, names in os.walk(path):
        for name in [".", *names]:
            try:
                latest = max(latest, os.path.getmtime(os.path.join(directory, name)))
            except OSError:  # it has been replaced meanwhile
                continue
    return latest


def ages_of(cluster: Cluster, topics: Iterable[str]) -> Dict[str, Optional[float]]:
    """topic -> seconds since its last record, None if it is empty."""
    now = time.time()
    moments = {topic: cluster.last_record_ms(topic) for topic in topics}
    return {
        topic: None if ms is None else max(0.0, now - ms / 1000) for topic, ms in moments.items()
    }


def remove(cluster: Cluster, found: Iterable[Leftover]) -> Set[str]:
    """Remove what may go; sentences about what could not be removed."""
    troubles = set()
    for each in found:
        if each.kept:
            continue
        try:
            if each.kind == TOPIC:
                cluster.delete_topic(each.name)
            else:
                shutil.rmtree(each.name)
        except (CannotRun, OSError) as error:
            troubles.add(f"{each.kind} {each.name} could not be removed: {error}")
    return troubles


def told(found: Iterable[Leftover], removed: bool) -> dict:
    """For who started the job."""
    return {"removed": removed, "found": [asdict(each) for each in found]}

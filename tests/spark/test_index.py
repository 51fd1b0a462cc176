# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page that lists a cluster's runs, from directories as the job and the playbooks leave them."""

import html.parser
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from flow.prepare import history
from flow.present.benchmarked import benchmarked_page
from flow.present.drilled import RANGES, drilled_page, ranges
from flow.present.index import TIMES, index_page

from tests.support import verdicts
from tests.support.reports import (
    HOSTILE_CASE,
    benchmark,
    commits,
    drilled,
    guarantees,
    kept_reports,
)

JOB = Path(__file__).resolve().parents[2] / "roles/flow_validation/files/job.py"


class Reader(html.parser.HTMLParser):
    """Rows of tables as texts, links, and every tag."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.links, self.tags, self._cell = [], [], set(), None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self._cell = ""
        if tag == "a":
            self.links.append(dict(attrs)["href"])

    def handle_endtag(self, tag):
        if tag == "td":
            self.rows[-1].append(self._cell)
            self._cell = None

    def handle_data(self, data):
        if self._cell is not None:
            self._cell += data


def test_every_run_is_found_with_verdict_pause_and_page(tmp_path):
    kept_reports(tmp_path)
    found = {(run.when, run.kind): run for run in history.runs_below(str(tmp_path))}
    assert sorted(found) == [
        ("20261001T100000Z", "validation"),
        ("20261002T100000Z", "drills"),
        ("20261002T100001Z", "proof beside a drill"),
        ("20261102T100000Z", "drills"),
        ("20261103T100000Z", "drills"),
        ("20261103T110000Z", "guarantees"),
        ("20261104T100000Z", "inspection"),
        ("20261105T100000Z", "validation"),
    ]
    told = [found[key] for key in sorted(found)]
    assert [run.verdict for run in told] == [
        "pass",
        "as expected",
        "fail",
        "NOT as expected",
        "interrupted",
        "as expected",
        "pass",
        "not readable",
    ]
    assert [run.pause_ms for run in told[1:5]] == [1400, told[2].pause_ms, 9000, 1300]
    assert told[2].pause_ms == verdicts.failing()["timing"]["longest_pause"]["ms"]
    for run in told[:-1]:
        assert (tmp_path / run.page).is_file(), run
    assert [run.when for run in history.runs_below(str(tmp_path))][0] == "20261105T100000Z"


def test_the_page_compares_each_drill_with_the_time_before(tmp_path):
    kept_reports(tmp_path)
    page = Reader(index_page("local", history.runs_below(str(tmp_path))))
    drills = [row for row in page.rows if row and row[0] == "leader_killed"]
    assert [(row[1], row[2][2:], row[3], row[4]) for row in drills] == [
        ("2026-11-03 10:00:00 UTC", "as expected", "1.3 s", "9 s"),
        ("2026-11-02 10:00:00 UTC", "NOT as expected", "9 s", "1.4 s"),
        ("2026-10-02 10:00:00 UTC", "as expected", "1.4 s", "–"),
    ]
    assert "20261001T100000Z/report.html" in page.links
    assert all(not each.startswith(("/", "http")) for each in page.links)


def test_guarantees_are_compared_with_the_time_before_as_drills_are(tmp_path):
    (tmp_path / "guarantees").mkdir()
    for day in (1, 2):
        told = guarantees()
        told["drills"][0]["pause_ms"] = 1000 * day
        (tmp_path / "guarantees" / f"2026110{day}T100000Z.json").write_text(json.dumps(told))
    page = Reader(index_page("throwaway", history.runs_below(str(tmp_path))))
    rows = [row for row in page.rows if row and row[0] == "acks=all, all_power_cut"]
    assert [(row[3], row[4]) for row in rows] == [("2 s", "1 s"), ("1 s", "–")]
    assert page.rows[-1][1:3] == ["guarantees", "✕ NOT as expected"]


def test_a_run_of_rows_gets_a_page_to_which_the_list_leads(tmp_path):
    kept_reports(tmp_path)
    assert "drills/20261102T100000Z.json" in [run.page for run in history.runs_below(str(tmp_path))]
    before = {path for path, _run, _told in history.runs_of_rows(str(tmp_path))}
    assert len(before) == 4
    run_job("index", f"--output={tmp_path}")
    assert all(os.path.isfile(each) for each in before)
    assert not list(history.runs_of_rows(str(tmp_path))), "a page is made once"
    links = Reader((tmp_path / "index.html").read_text()).links
    for each in before:
        assert os.path.relpath(each, tmp_path) in links
    # a JSON that was written anew, as that of a run that goes on, gets its page anew
    changed = tmp_path / "drills" / "20261102T100000Z.json"
    os.utime(changed, (2_000_000_000, 2_000_000_000))
    assert [path for path, _run, _told in history.runs_of_rows(str(tmp_path))] == [
        str(changed.with_suffix(".html"))
    ]


def test_a_benchmark_is_listed_and_its_page_has_ratios_latencies_limits_and_the_second_witness(
    tmp_path,
):
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "20261103T120000Z.json").write_text(json.dumps(benchmark()))
    run_job("index", f"--output={tmp_path}")
    listed = Reader((tmp_path / "index.html").read_text())
    assert "benchmarks/20261103T120000Z.html" in listed.links
    assert listed.rows[-1][1:3] == ["benchmark", "✕ NOT as expected"]
    text = (tmp_path / "benchmarks" / "20261103T120000Z.html").read_text()
    page = Reader(text)
    assert not page.tags & {"script", "img", "link", "iframe", "object"}
    numbers = {row[0]: row[1:] for row in page.rows if len(row) == 9}
    assert numbers["first row"][:6] == ["1.00", "20,000", "2.0", "60,001", "0", "0.98"]
    assert numbers[HOSTILE_CASE][0] == "3.00" and numbers["mode=sync"][0] == "–"
    latency = {row[0]: row[1:] for row in page.rows if len(row) == 6}
    assert latency["first row"] == ["1.2", "2.5", "30.0", "400.0", "5,000.0"]
    assert "mode=sync" not in latency and "mode=sync: it was late" in text
    words = {row[0]: row[1:] for row in page.rows if len(row) == 3}
    assert words["first row"][0] == "client core" and "97 % of a core" in words["first row"][1]
    assert "not with the run of 20261101T100000Z: 60 s of load a row, not 3" in text
    for said in ("1,234 records a second, 500 sent, 500 there", "9,876 records a second, 500 read"):
        assert said in text
    assert text.count("<figure") == 2


@pytest.mark.parametrize("rows", [[], [{"case": "first row"}], ["x", None]])
def test_a_benchmark_that_was_interrupted_early_has_a_page_all_the_same(rows):
    text = benchmarked_page("Benchmark", "open", "0 of 3", {"drills": rows, "names": ["first row"]})
    assert "Benchmark: open" in text


def test_the_page_of_a_run_has_its_table_losses_and_plots():
    text = drilled_page("Guarantees", "NOT as expected", "2 of 4 as expected", guarantees())
    page = Reader(text)
    assert not page.tags & {"script", "img", "link", "iframe", "object"}
    numbers = {row[0]: row[1:] for row in page.rows if len(row) == 7}
    told = numbers["acks=all, all_power_cut"]
    assert told[:5] == ["21,503", "4", "–", "18,000", "1.23 s"] and told[5].endswith("as expected")
    assert numbers["acks=1, disk_gone"][:5] == ["–"] * 5
    words = {row[0]: row[1:] for row in page.rows if len(row) == 4}
    assert words["acks=all, all_power_cut"][1].startswith("lost is what was not flushed")
    assert "acks=all, all_power_cut: 7-9, 1200" in text
    assert "acks=1, disk_gone: nobody leads" in text
    assert text.count("<figure>") == 3 and "1: all killed." in text
    assert HOSTILE_CASE not in text


def test_the_page_has_the_leader_and_the_replicas_before_and_after():
    """What changed before it was done is the state then; of a cluster that flaps the last changes are shown."""
    told = drilled([("leader_stopped", "as expected", 900)])
    states = [
        (-5000, 2, [1, 2, 3], 2),
        (-4000, 1, [1, 2, 3], 2),
        (900, None, [3], 2),
        (1000, 3, [2, 3], 2),
        (18000, 1, [1, 2, 3], 2),
    ]
    names = ("at_ms", "leader", "isr", "controller")
    moments = [dict(zip(names, (10**12 + each[0], *each[1:]))) for each in states]
    row = told["drills"][0]
    row.update(fault={"at_ms": 10**12, "label": "kafka-1 stopped"})
    row.setdefault("seen", {})["moments"] = moments
    rows = Reader(drilled_page("Drills", "as expected", "", told)).rows
    assert rows[-4:] == [
        ["before", "1", "1, 2, 3", "2"],
        ["900 ms after", "none", "3", "2"],
        ["1 s after", "3", "2, 3", "2"],
        ["18 s after", "1", "1, 2, 3", "2"],
    ]
    row["seen"]["moments"] = [{**moments[2], "at_ms": 10**12 + each} for each in range(1, 31)]
    text = drilled_page("Drills", "as expected", "", told)
    assert "10 changes before these are left out" in text
    assert "11 ms after" in text and "10 ms after" not in text


def test_the_page_takes_what_was_before_from_the_clock_of_who_has_seen_it():
    """The time of the fault may be half a second ahead: another leads before it, and it was no leader before."""
    told = drilled([("leader_killed", "as expected", 900)])
    names, row = ("at_ms", "leader", "isr", "controller"), told["drills"][0]
    row["fault"] = {"at_ms": 10**12 + 500, "before_ms": 10**12 - 100, "label": "kafka-1 killed"}
    states = [(-5000, 1, [1, 2, 3], 2), (300, 3, [2, 3], 2), (18500, 1, [1, 2, 3], 2)]
    moments = [dict(zip(names, (10**12 + each[0], *each[1:]))) for each in states]
    row.setdefault("seen", {})["moments"] = moments
    rows = Reader(drilled_page("Drills", "as expected", "", told)).rows
    assert [each[:2] for each in rows[-3:]] == [
        ["before", "1"],
        ["< 1 ms after", "3"],
        ["18 s after", "1"],
    ]


def test_the_page_says_on_what_a_drill_was_and_that_other_topics_may_fare_otherwise():
    told = drilled([("leader_killed", "as expected", 900), ("broadcast", "as expected", 90)])
    rows = Reader(drilled_page("Drills", "as expected", "", told)).rows
    assert max(len(row) for row in rows if len(row) < 7) == 4
    said = "topics of yours may fare otherwise: the brokers' defaults are replication factor 1"
    for row in told["drills"]:
        row.update(durability="3 replicas, min ISR 2", otherwise=said)
    text = drilled_page("Drills", "as expected", "", told)
    page = Reader(text)
    first, second = [row for row in page.rows if len(row) == 5]
    assert first[-1] == second[-1] == "3 replicas, min ISR 2"
    assert text.count("replication factor 1") == 1 and "(leader_killed, broadcast)" in text


def test_what_a_group_has_skipped_is_not_among_the_losses():
    text = drilled_page("Drills", "as expected", "1 of 1 as expected", commits())
    numbers = {row[0]: row[1:] for row in Reader(text).rows if len(row) == 7}
    assert numbers["commit_modes"][:3] == ["21,503", "0", "3"]
    assert "records that are lost" not in text
    assert "commit_modes, group kafkaops-drill-commit-modes-before: 120-121" in text
    assert "Committed by a group that has not worked at them" in text


def test_no_page_shows_more_losses_than_can_be_read():
    assert ranges([str(2 * each) for each in range(RANGES + 5)]).endswith("and 5 more")
    assert ranges(["12", "x", "10", "11"]) == "10-12, x"


def test_it_loads_nothing_and_runs_nothing(tmp_path):
    kept_reports(tmp_path)
    text = index_page(HOSTILE_CASE, history.runs_below(str(tmp_path)))
    assert not Reader(text).tags & {"script", "img", "link", "iframe", "object"}
    assert HOSTILE_CASE not in text and "url(" not in text.replace("url(#hatch)", "")


def test_old_times_of_a_drill_are_left_out(tmp_path):
    (tmp_path / "drills").mkdir()
    for day in range(1, TIMES + 4):
        told = drilled([("leader_killed", "as expected", 1000 + day)])
        (tmp_path / "drills" / f"202611{day:02}T100000Z.json").write_text(json.dumps(told))
    page = Reader(index_page("local", history.runs_below(str(tmp_path))))
    assert len([row for row in page.rows if row and row[0] == "leader_killed"]) == TIMES
    assert len([row for row in page.rows if len(row) == 5]) == TIMES + 3


@pytest.mark.parametrize("content", ["", "[]", "{", '{"drills": null}'])
def test_what_cannot_be_read_is_a_run_without_a_good_verdict(tmp_path, content):
    (tmp_path / "drills").mkdir()
    (tmp_path / "drills" / "20261101T100000Z.json").write_text(content)
    (run,) = history.runs_below(str(tmp_path))
    assert run.verdict in (history.UNREADABLE, history.OPEN)


def run_job(*arguments):
    return subprocess.run(
        [sys.executable, str(JOB), *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    ).stdout


# Valid JSON that no release of ours has written.
ODD = [
    {"drills": ["x", None, 3, ["y"]]},
    {"drills": {"case": "x"}},
    {"drills": 7, "names": 7},
    {"drills": [{"case": "x", "pause_ms": "long"}, {"case": "y", "pause_ms": 3}]},
    {"drills": [{"case": "x", "pause_ms": [1]}, {"case": "y", "pause_ms": True}]},
    {"drills": [{"case": "x", "seen": "nothing", "wrong": 3, "load": [1], "setup": 4}]},
    {"drills": [{"case": "x", "seen": {"groups": ["g"], "moments": [3]}}]},
    {"verdict": ["pass"], "timing": "long"},
    {"verdict": "pass", "timing": {"longest_pause": 3}},
    {"verdict": "pass", "timing": {"longest_pause": {"ms": float("nan")}}},
]


@pytest.mark.parametrize("place", ["drills", "benchmarks", "guarantees"])
def test_runs_of_another_shape_keep_no_other_from_the_list(tmp_path, place):
    """One did, and nobody saw that the page had stood still since."""
    kept_reports(tmp_path)
    before = len(history.runs_below(str(tmp_path)))
    (tmp_path / place).mkdir(exist_ok=True)
    whens = [f"20271101T1000{number:02}Z" for number in range(len(ODD))]
    for when, told in zip(whens, ODD):
        (tmp_path / place / f"{when}.json").write_text(json.dumps(told))
        (tmp_path / when).mkdir()
        (tmp_path / when / "verdict.json").write_text(json.dumps(told))
    done = subprocess.run(
        [sys.executable, str(JOB), "index", f"--output={tmp_path}"], capture_output=True, text=True
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert f"{before + 2 * len(ODD)} runs" in done.stdout
    links = Reader((tmp_path / "index.html").read_text(encoding="utf-8")).links
    assert all(any(f"{place}/{when}" in link for link in links) for when in whens)
    # of a run that has no page it is said why
    unpaged = [when for when in whens if not (tmp_path / place / f"{when}.html").exists()]
    assert all(
        f"note: there is no page of {tmp_path / place / when}.json" in done.stderr
        for when in unpaged
    )


def test_the_mode_of_the_job_writes_it(tmp_path):
    where = tmp_path / "reports" / "mine"
    for _time in range(2):
        assert "0 runs" in run_job("index", f"--output={where}")
    assert "Runs of mine" in (where / "index.html").read_text(encoding="utf-8")
    done = subprocess.run([sys.executable, str(JOB), "index"], capture_output=True, check=False)
    assert done.returncode == 3


def test_the_home_of_whoever_runs_it_is_meant(tmp_path, monkeypatch):
    """Without KAFKAOPS_HOME the role names the reports by a ~, behind a `=` where no shell looks."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run_job("index", "--output=~/reports")
    assert (tmp_path / "reports" / "index.html").is_file() and not (tmp_path / "~").exists()

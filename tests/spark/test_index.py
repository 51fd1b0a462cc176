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
from flow.present.index import TIMES, index_page

from tests.support import verdicts
from tests.support.reports import HOSTILE_CASE, drilled, kept_reports

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


def test_the_mode_of_the_job_writes_it(tmp_path):
    where = tmp_path / "reports" / "mine"
    for _time in range(2):
        done = subprocess.run(
            [sys.executable, str(JOB), "index", f"--output={where}"],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        assert "0 runs" in done.stdout
    assert "Runs of mine" in (where / "index.html").read_text(encoding="utf-8")
    done = subprocess.run([sys.executable, str(JOB), "index"], capture_output=True, check=False)
    assert done.returncode == 3

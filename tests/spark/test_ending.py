# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that goes on until somebody ends it: judged like any other, over what was really written."""

import json
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import job
import pytest
from flow.record import files, ledger
from flow.record.ledger import Attempt
from flow.write import ending
from flow.write.ending import end_of_all, end_position
from flow.write.notes import END, end_of, notes_of
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.disturbing import make_whole, run_and_disturb
from tests.spark.test_producing import PARTITIONS, contradicted, in_the_log, produced

RUN = ["run", "--bootstrap-servers=a:1", "--ledger=l", "--output=o"]


@given(
    position=st.integers(0, 10**6),
    rate=st.floats(0.1, 10**6),
    partitions=st.integers(1, 1000),
    most=st.integers(1, 10**7),
)
def test_the_end_lies_ahead_of_everybody_and_within_the_plan(position, rate, partitions, most):
    end = end_position(position, rate, partitions, most)
    assert 1 <= end <= most
    assert end > position or end == most


@pytest.mark.parametrize(
    ("fastest", "slowest", "end"),
    [
        (5_000, 4_900, 5_031),  # all together, in the midst of the plan: at the foremost one's
        (9_990, 9_980, None),  # at the end of the plan, in a moment
        # one was held up for minutes: it does not go on for as long
        (10_000, 4_000, 4_031),
        (10_000, 9_899, 9_930),
        (10_000, 9_900, None),
        (5_000, 4_000, 4_031),
    ],
)
def test_nobody_waits_for_a_task_that_was_held_up(fastest, slowest, end):
    """At ten records a second of each partition."""
    assert end_of_all(fastest, slowest, 60.0, 6, 10_000) == end


def test_a_task_that_comes_to_lag_behind_when_the_time_is_over_is_told(tmp_path, monkeypatch):
    """The other one is at the end of the plan, and that was all there was to see at the first look."""
    files.new_ledger(str(tmp_path))
    monkeypatch.setattr(ending, "_LOOK_SECONDS", 0.01)
    options = SimpleNamespace(ledger=str(tmp_path), until="", duration=0.05, beside=0, rate=20.0)
    kept = notes_of({"directory": str(tmp_path / files.ATTEMPTS)})

    def save(producer, position):
        kept.save(Attempt(producer, 1, False, {producer: 1000}, position=position))

    save(0, 990)
    with ending.ending(options, SimpleNamespace(records=2000, partitions=2)) as early:
        time.sleep(0.3)
        assert end_of(str(tmp_path)) is None
        save(1, 300)
        early._watcher.join(20)
    assert end_of(str(tmp_path)) == 331 and early.records() == 662


def test_who_had_to_begin_again_catches_up_with_the_others(tmp_path, monkeypatch):
    files.new_ledger(str(tmp_path))
    monkeypatch.setattr(ending, "_LOOK_SECONDS", 0.01)
    options = SimpleNamespace(ledger=str(tmp_path), until="", duration=0.01, beside=0, rate=20.0)
    kept = notes_of({"directory": str(tmp_path / files.ATTEMPTS)})
    for producer, attempt, position in ((0, 1, 500), (1, 1, 100), (1, 2, 50)):
        kept.save(Attempt(producer, attempt, False, {producer: 1000}, position=position))
    with ending.ending(options, SimpleNamespace(records=2000, partitions=2)) as early:
        early._watcher.join(20)
    assert end_of(str(tmp_path)) == 531


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--until=f"], "--until needs --rate"),
        (["--rate=5", "--beside=1"], "--beside needs --until or --duration"),
        (["--rate=-1"], "--rate must be from 0"),
        (["--rate=5", "--transactional"], "does not go with"),
    ],
)
def test_options_that_cannot_be_meant(options, word, capsys):
    with pytest.raises(SystemExit) as ended:
        job.arguments([*RUN, *options])
    assert ended.value.code == 3 and word in capsys.readouterr().err


def test_a_killed_attempt_leaves_little_in_doubt():
    """Of a plan for hours, only what may have been sent since the file was written."""
    attempt = Attempt(0, 1, False, {0: 5000}, acked={0: [[0, 3999, 0, 3999]]}, position=4500)
    assert ledger.counts(attempt.rows()) == {"acked": 4000, "failed": 0, "unknown": 1000}


def test_a_task_ends_where_it_is_told_and_at_its_rate(cluster, tmp_path):
    (tmp_path / END).write_text("1000")
    began = time.monotonic()
    rows = produced(cluster, tmp_path, "told", 1_000_000, {}, rate=1500, expected=3000)
    assert time.monotonic() - began > 1.5, "3,000 records at 1,500 a second"
    assert {(row.partition, row.outcome, row.records) for row in rows} == {
        (number, "acked", 1000) for number in range(PARTITIONS)
    }
    assert not contradicted(rows, in_the_log(cluster, "told"))


@pytest.mark.soak  # in each run, a drill of tests/local ends its judge so
def test_a_run_is_ended_by_a_file_while_a_broker_dies(spark, cluster, tmp_path):
    until, events = tmp_path / "until", tmp_path / "events.json"
    began = int(time.time() * 1000)

    def disturb():
        time.sleep(1)
        cluster.broker_instances[2].kill()
        make_whole(cluster)
        done = {"from_ms": began, "to_ms": int(time.time() * 1000), "label": "<2> restarted"}
        events.write_text(json.dumps([done]))
        until.touch()

    more = ["--rate=1200", f"--until={until}", f"--events={events}", "--groups=2"]
    code, verdict = run_and_disturb(cluster, tmp_path, disturb, records=5_000_000, more=more)
    assert (code, verdict["verdict"]) == (0, "pass"), verdict["summary"]
    assert end_of(str(tmp_path / "ledger")) * 6 == verdict["counts"]["acked"]
    assert 2_000 < verdict["counts"]["acked"] == verdict["counts"]["read"] < 200_000
    assert verdict["events"] == [json.loads(events.read_text())[0]]
    page = (tmp_path / "report.html").read_text()
    assert "&lt;2&gt; restarted" in page and "class='event'" in page


def test_a_run_ends_when_what_it_runs_beside_is_gone(spark, cluster, tmp_path):
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    def disturb():
        other.communicate(b"\n")
        assert not os.path.exists(f"/proc/{other.pid}")

    more = ["--rate=1200", f"--until={tmp_path}/never", f"--beside={other.pid}", "--groups=0"]
    code, verdict = run_and_disturb(cluster, tmp_path, disturb, records=5_000_000, more=more)
    assert (code, verdict["verdict"]) == (0, "pass")
    assert verdict["counts"]["acked"] < 200_000 and verdict["events"] == []

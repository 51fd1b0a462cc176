# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the PySpark judge is asked of drills' topics, and what becomes of its answers."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import threading

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import (
    asked_judge,
    judgement,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.asked_judge import (
    ANSWER,
    ASK,
    GONE,
    NOT_THERE,
    READY,
    SECONDS,
    SILENT,
    asked,
    judge_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import (
    Written,
    spans,
)
from tests.support import collection_finder
from tests.support.outside import wait_until
from tests.support.still_time import Time

COUNTS = {"acked": 1000, "lost": 0, "again": 0}
PASS = {"topic": "t", "verdict": "pass", "summary": "0 lost", "counts": COUNTS}


def test_what_is_asked_are_spans_of_what_was_acknowledged_and_of_what_was_not():
    written = Written(
        "t", {"0", "1", "2", "5", "example-1"}, {"0", "1", "example-1"}, ["1"], 3, True
    )
    assert written.question() == {
        "topic": "t",
        "acknowledged": [["", 0, 1], ["example-", 1, 1]],
        "unanswered": [["", 2, 2], ["", 5, 5]],
        "missing": [["", 1, 1]],
        "repeated": 3,
        "committed": True,
    }
    with pytest.raises(ValueError):
        spans(["none"])


@pytest.mark.parametrize(
    "answers, broken, unclear, told",
    [
        ([], [], [], []),
        ([PASS], [], [], ["judge: 0 of 1,000 lost"]),
        (
            [PASS, {**PASS, "counts": {"acked": 5, "lost": 2, "again": 1}}],
            [],
            [],
            ["judge: 2 of 1,005 lost, 1 twice"],
        ),
        (
            [{**PASS, "verdict": "fail", "summary": "3 are not in t: 5-7"}],
            ["the judge has found a violation: 3 are not in t: 5-7"],
            [],
            ["judge: 0 of 1,000 lost"],
        ),
        (
            [judgement.unanswered("t", "it has ended")],
            [],
            ["the judge has no verdict on t: it has ended"],
            [],
        ),
    ],
)
def test_what_the_judge_says_is_wrong_open_or_in_order(answers, broken, unclear, told):
    assert list(judgement.broken(answers)) == broken
    assert list(judgement.unclear(answers)) == unclear
    assert list(judgement.told(answers)) == told


def test_nobody_is_asked_without_a_judge():
    assert judge_of("")([Written("t", {"1"}, {"1"})]) == ()


def ready(directory, pid):
    (directory / READY).write_text(json.dumps({"pid": pid}))


def test_each_topic_gets_its_answer(tmp_path):
    ready(tmp_path, os.getpid())

    def answer():
        for topic in ("b", "a"):
            wait_until((tmp_path / f"{topic}{ASK}").exists, 30, "it is asked")
            question = json.loads((tmp_path / f"{topic}{ASK}").read_text())
            draft = tmp_path / "draft"
            draft.write_text(json.dumps({**PASS, "topic": question["topic"]}))
            draft.rename(tmp_path / f"{topic}{ANSWER}")

    judge = threading.Thread(target=answer)
    judge.start()
    found = judge_of(str(tmp_path))([Written(each, {"1"}, {"1"}) for each in ("a", "b")])
    judge.join()
    assert [each["topic"] for each in found] == ["a", "b"]
    assert {each["verdict"] for each in found} == {"pass"}


def test_a_judge_that_is_silent_gone_or_not_there_leaves_a_verdict_open(tmp_path):
    written, time = [Written("t", {"1"}, {"1"})], Time()
    (told,) = asked(str(tmp_path), written, time.clock, time.sleep)
    assert told == {"topic": "t", "verdict": "inconclusive", "summary": NOT_THERE}
    assert not (tmp_path / f"t{ASK}").exists() and time.now == 0
    ready(tmp_path, os.getpid())
    (told,) = asked(str(tmp_path), written, time.clock, time.sleep)
    assert told["summary"] == SILENT and time.now >= SECONDS
    with subprocess.Popen(["true"]) as process:
        process.wait()
    ready(tmp_path, process.pid)
    (told,) = asked(str(tmp_path), written, time.clock, time.sleep)
    assert told["summary"] == GONE
    # what it has answered before counts
    (tmp_path / f"t{ANSWER}").write_text(json.dumps(PASS))
    assert asked(str(tmp_path), written, time.clock, time.sleep) == (PASS,)
    (tmp_path / f"t{ANSWER}").unlink()
    (tmp_path / READY).write_text('{"why": "no Java was found"}')
    (told,) = asked(str(tmp_path), written, time.clock, time.sleep)
    assert told["summary"] == "no Java was found"


def test_both_sides_have_the_same_names_of_files():
    path = os.path.join(
        os.path.dirname(os.path.dirname(os.path.dirname(collection_finder.__file__))),
        "roles/flow_validation/files/flow/comparison.py",
    )
    with open(path, encoding="utf-8") as handle:
        tree = ast.parse(handle.read())
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names, values = node.targets[0], node.value
            pairs = (
                zip(names.elts, values.elts) if isinstance(names, ast.Tuple) else [(names, values)]
            )
            for name, value in pairs:
                if isinstance(value, ast.Constant):
                    found[name.id] = value.value
    ours = {name: getattr(asked_judge, name) for name in ("READY", "ASK", "ANSWER")}
    assert ours.items() <= found.items()

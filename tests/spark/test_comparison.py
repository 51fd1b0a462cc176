# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topics that somebody else has written, against what he says was acknowledged."""

import json
import os
import subprocess
import sys
import uuid

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from flow import comparison
from flow.comparison import ANSWER, ASK, READY, Found, Question

from tests.spark.conftest import JOB
from tests.support.outside import wait_until


def asked(**more):
    told = {"acknowledged": [["", 0, 9]], "unanswered": [["", 10, 11]], "missing": []}
    return Question.of({"topic": "t", **told, **more})


def test_records_are_spans_and_come_back():
    records = ["line-3", "7", "8", "10", "line-2", "8"]
    found = comparison.spans(records)
    assert found == [["", 7, 8], ["", 10, 10], ["line-", 2, 3]]
    assert comparison.records_of(found) == set(records)
    assert comparison.said(found) == "7-8, 10, line-2-3"
    assert comparison.said([["", n, n] for n in (1, 3, 5, 7, 9)]) == "1, 3, 5 and 2 more"
    with pytest.raises(ValueError):
        comparison.spans(["no number"])


@pytest.mark.parametrize(
    "question, values, counts",
    [
        ({}, range(10), (10, 0, 0, 0)),
        # what was sent and not acknowledged may be there
        ({}, range(12), (12, 0, 0, 0)),
        ({}, [*range(5), *range(7, 12)], (10, 2, 0, 0)),
        ({}, [*range(10), 3, 3, 4], (13, 0, 3, 0)),
        ({}, [*range(10), 12, "x"], (12, 0, 0, 2)),
        ({}, [], (0, 10, 0, 0)),
        ({"acknowledged": [], "unanswered": []}, [], (0, 0, 0, 0)),
    ],
)
def test_spark_finds_what_a_topic_lacks_and_has_too_much(spark, question, values, counts):
    rows = [(f"{each} 1700000000000".encode(),) for each in values]
    frame = spark.createDataFrame(rows, "value binary")
    (row,) = comparison.compared(spark, frame, asked(**question)).collect()
    found = Found(**row.asDict())
    assert (found.read, len(found.lost), found.again, found.strange) == counts


SEEN = {"read": 10, "lost": [], "again": 0, "strange": 0, "some_strange": []}


@pytest.mark.parametrize(
    "question, seen, verdict, words",
    [
        ({}, {}, "pass", "0 of 10 acknowledged records are not there"),
        ({"missing": [["", 3, 4]]}, {"lost": ["3", "4"]}, "pass", "2 of 10 acknowledged records are not there, as was"),
        ({"repeated": 2}, {"again": 2}, "pass", "0 of 10"),
        ({}, {"lost": ["3", "4", "6"]}, "fail", "3 acknowledged records are not in t: 3-4, 6"),
        ({"missing": [["", 3, 4]]}, {"lost": ["4"]}, "fail", "1 records that were told to be lost are in t: 3"),
        ({}, {"again": 2}, "fail", "2 records stand in t once more, and not 0"),
        ({"repeated": 2}, {}, "fail", "0 records stand in t once more, and not 2"),
        ({}, {"strange": 4, "some_strange": ["x"]}, "fail", "4 records of t were never sent: 'x'"),
        ({}, {"complaints": [{"partition": 0, "offset": 3, "reason": "damaged"}]}, "fail",
         "partition 0 of t cannot be read: damaged"),
    ],
)  # fmt: skip
def test_what_the_writer_has_not_seen_himself_is_a_violation(question, seen, verdict, words):
    told = comparison.decide(asked(**question), Found(**{**SEEN, **seen}))
    assert told["verdict"] == verdict and words in told["summary"]


def test_questions_are_answered_until_the_end_and_one_that_is_wrong_ends_nothing(tmp_path):
    end, rounds = tmp_path / "end", []

    def sleep(_seconds):
        rounds.append(sorted(each.name for each in tmp_path.iterdir()))
        if len(rounds) == 1:
            good = {"topic": "a", "acknowledged": [], "unanswered": [], "missing": []}
            (tmp_path / f"a{ASK}").write_text(json.dumps(good))
            (tmp_path / f"b{ASK}").write_text('{"topic": "b"}')
        elif len(rounds) == 2:
            end.touch()

    comparison.serve(str(tmp_path), lambda each: {"topic": each.topic}, 0, str(end), sleep)
    assert rounds[0] == [READY] and len(rounds) == 2
    assert json.loads((tmp_path / f"a{ANSWER}").read_text()) == {"topic": "a"}
    wrong = json.loads((tmp_path / f"b{ANSWER}").read_text())
    assert wrong["verdict"] == "inconclusive" and "no question" in wrong["summary"]


def test_whoever_asked_is_gone_so_nothing_stays(tmp_path):
    with subprocess.Popen(["sleep", "0"]) as process:
        process.wait()
    directory = tmp_path / "met"
    directory.mkdir()
    for name in (f"a{ASK}", ".client.properties"):
        (directory / name).write_text("{}")
    comparison.serve(str(directory), lambda each: {}, process.pid, str(directory / "end"))
    assert not directory.exists()


@pytest.mark.soak  # in each run, a drill of tests/local is judged so
def test_a_session_judges_several_topics(cluster, tmp_path):
    """What is acknowledged and gone, twice or foreign is told of each topic; of one that is not there, too."""
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    admin, producer = AdminClient(servers), Producer(servers)
    names = [f"compared-{each}-{uuid.uuid4().hex[:6]}" for each in ("whole", "holes", "gone")]
    for future in admin.create_topics([NewTopic(each, 2, 3) for each in names[:2]]).values():
        future.result(30)
    for number in range(1000):
        producer.produce(names[0], f"{number} 17".encode(), partition=number % 2)
        if not 100 <= number < 110:
            producer.produce(names[1], f"{number} 17".encode(), partition=number % 2)
    producer.produce(names[1], b"7 17", partition=0)
    producer.produce(names[1], b"foreign", partition=1)
    assert producer.flush(30) == 0
    end = tmp_path / "end"
    job = [sys.executable, str(JOB), "compare", f"--output={tmp_path}", f"--until={end}"]
    with subprocess.Popen([*job, f"--bootstrap-servers={cluster.bootstrap_servers}"]) as process:
        try:
            wait_until(lambda: (tmp_path / READY).exists(), 120, "it answers questions")
            assert json.loads((tmp_path / READY).read_text())["pid"] == process.pid
            told = {"acknowledged": [["", 0, 999]], "unanswered": [], "missing": []}
            for name in names:
                draft = tmp_path / f"{name}.part"
                draft.write_text(json.dumps({"topic": name, **told}))
                os.replace(draft, tmp_path / f"{name}{ASK}")
            answers = [tmp_path / f"{name}{ANSWER}" for name in names]
            wait_until(lambda: all(each.exists() for each in answers), 120, "all are answered")
            end.touch()
            assert process.wait(60) == 0
        finally:
            process.kill()
    whole, holes, gone = [json.loads(each.read_text()) for each in answers]
    assert whole["verdict"] == "pass" and whole["counts"]["read"] == 1000
    assert holes["verdict"] == "fail" and holes["lost"] == [["", 100, 109]]
    assert (holes["counts"]["again"], holes["counts"]["strange"]) == (1, 1)
    assert "'foreign'" in holes["summary"] and "100-109" in holes["summary"]
    assert gone["verdict"] == "inconclusive" and "there is no topic" in gone["summary"]

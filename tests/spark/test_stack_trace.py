# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One line out of what Spark says of a failure; all but the last come from Spark itself."""

import os
import signal
from pathlib import Path

import pytest
from flow.messages import stack_trace


@pytest.mark.parametrize(
    "task,said",
    [
        (
            lambda _item: Path("/nowhere").read_text(),
            "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere'",
        ),
        (
            lambda _item: os.kill(os.getpid(), signal.SIGKILL),
            "Python worker exited unexpectedly (crashed)",
        ),
    ],
)
def test_of_a_python_task(spark, task, said):
    with pytest.raises(Exception) as caught:
        spark.sparkContext.parallelize([1], 1).map(task).collect()
    assert stack_trace.reason(str(caught.value)) == said


def test_of_a_call_that_java_refuses(spark):
    with pytest.raises(Exception) as caught:
        spark._jsc.sc().textFile("/x", -1).getPartitions()
    assert "collect" not in stack_trace.reason(str(caught.value))
    assert "calling" not in stack_trace.reason(str(caught.value))


def test_of_a_query(spark):
    with pytest.raises(Exception) as caught:
        spark.range(3).selectExpr("raise_error('of the record ' || id)").collect()
    assert "of the record" in stack_trace.reason(str(caught.value))


@pytest.mark.parametrize(
    "text,said",
    [
        ("one\n  Caused by: not this\nCaused by: a.B: c\n\tat d\nCaused by: e.F: g", "e.F: g"),
        ("\n  only this \nnot that", "only this"),
        (" \n", "no message"),
        ("An error occurred while calling o61.collectToPython.\n: a.B: c\n\tat d.e(F)", "a.B: c"),
        ("An error occurred while calling z:a.b.c", stack_trace.JAVA_GONE),
        ("x" * 1000, "x" * 300),
    ],
)
def test_of_anything(text, said):
    assert stack_trace.reason(text) == said

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One problem is one line, whatever it concerns."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"subjects": ("a", "b"), "setting": "kafka_broker_id", "value": "2"},
            "[x.y] a, b: kafka_broker_id=2: why. Remedy: do it.",
        ),
        ({"subjects": ("orders",)}, "[x.y] orders: why. Remedy: do it."),
        ({"setting": "url", "value": "x"}, "[x.y] url=x: why. Remedy: do it."),
        ({"setting": "partitions"}, "[x.y] partitions: why. Remedy: do it."),
        ({}, "[x.y] why. Remedy: do it."),
        ({"reason": "line one\n  line two."}, "[x.y] line one line two. Remedy: do it."),
        (
            {"value": "\x1b[2J\x00\u202eü", "setting": "x"},
            r"[x.y] x=\x1b[2J\x00\u202eü: why. Remedy: do it.",
        ),
        ({"setting": "x", "value": None}, "[x.y] x=null: why. Remedy: do it."),
        ({"setting": "x", "value": [True, {}]}, "[x.y] x=[true, {}]: why. Remedy: do it."),
        ({"remedy": "run `this`"}, "[x.y] why. Remedy: run `this`"),
    ],
)
def test_a_problem_is_one_line(fields, line):
    problem = Problem(**{"check": "x.y", "reason": "why", "remedy": "do it", **fields})
    assert problem.line() == line == str(problem) == str(ProblemError(problem))
    assert problem.to_dict()["line"] == line


def test_a_problem_hides_the_passwords_of_addresses():
    address = "http://bob:s3cret@127.0.0.1:1"
    problem = Problem("x.y", f"{address} is none", "do it", setting="servers", value=address)
    shown = "http://bob:(hidden)@127.0.0.1:1"
    assert problem.line() == f"[x.y] servers={shown}: {shown} is none. Remedy: do it."
    assert "s3cret" not in f"{problem.to_dict()}{problem!r}"
    assert Problem("x.y", "why", f"try {address}").remedy == f"try {shown}"

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each operation under load stands in the printed table beside the figure by hand; benchmarks can be loaded."""

from __future__ import annotations

import ast
import importlib
import pathlib

import pytest

from tests.support import load

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = sorted(
    path
    for folder in ("tests/local", "tests/rolls", "molecule")
    for path in (ROOT / folder).rglob("*.py")
)
BENCHMARKS = sorted(path.stem for path in (ROOT / "tests" / "benchmarks").glob("*.py"))


def operations(path):
    """The names that a file of tests gives to the loads of its operations, as far as they are written out."""
    for node in ast.walk(ast.parse(path.read_text())):
        called = getattr(node, "func", None)
        if isinstance(called, ast.Name) and called.id in ("Load", "under_load"):
            for each in node.args:
                # The topic's name comes before it.
                if isinstance(each, ast.Constant) and " " in str(each.value):
                    yield each.value


def test_every_operation_has_a_figure_by_hand_or_is_known_to_have_none():
    named = {name for path in TESTS for name in operations(path)}
    assert len(named) > 10, named
    for name in named:
        load.by_hand(name)
    assert set(load.SAME_STEPS.values()) <= set(load.BY_HAND)
    assert not load.NOT_BY_HAND & {*load.BY_HAND, *load.SAME_STEPS}


def test_the_table_shows_it():
    row = load.Row("upgrade of both products", 10, 1.0, 2.0, 2, 3, 0)
    assert row.line().split()[-5:] == ["2.00", "1.25", "2", "3", "0"]
    with pytest.raises(KeyError):
        load.Load(None, "orders", "what nobody has thought of")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_can_be_loaded(name):
    importlib.import_module(f"tests.benchmarks.{name}")

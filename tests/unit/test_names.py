# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-test's pylint refuses, said in a second: the part sanity comes minutes later."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


def underscores(source):
    """Return the lines on which something is named `_`, sorted."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    return sorted(
        {node.lineno for node in nodes if node.id == "_" and isinstance(node.ctx, ast.Store)}
    )


@pytest.mark.parametrize(
    "source, lines",
    [
        ("for _ in range(2): pass", [1]),
        ("a = 1\nb, _ = a", [2]),
        ("[0 for _ in a]", [1]),
        ("print(_)", []),
        ("_a = 1", []),
    ],
)
def test_a_name_of_one_underscore_is_found(source, lines):
    assert underscores(source) == lines


def test_only_the_files_that_sanity_excuses_have_such_names():
    ignored = (CHECKOUT / "tests" / "sanity" / "ignore-2.19.txt").read_text().splitlines()
    excused = {line.split()[0] for line in ignored if "pylint:disallowed-name" in line}
    listed = subprocess.run(
        ["git", "ls-files", "plugins/*.py", "roles/*.py"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    found = {
        name: lines
        for name in listed
        if (CHECKOUT / name).is_file()
        and (lines := underscores((CHECKOUT / name).read_text(encoding="utf-8")))
    }
    assert listed and set(found) - excused == set(), found

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CI definitions that others copy: they run every part of ./test.sh, each once, and no part that is not there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", name="parts")
def parts_of_a_whole_run():
    """Return the names of the parts that ./test.sh runs when none is named: nox marks them with a star."""
    listed = subprocess.run(
        [sys.executable, "-m", "nox", "--list"],
        cwd=CHECKOUT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = re.findall(r"^\* ([a-z]+) -> ", listed, re.MULTILINE)
    assert {"static", "unit", "local", "molecule"} <= set(found)
    return sorted(found)


def called(text):
    """Return the parts that a script line of ./test.sh names."""
    return re.findall(r"[a-z]+", text.partition("./test.sh ")[2])


def test_github_runs_each_part_once(parts):
    jobs = yaml.safe_load((CHECKOUT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    (matrix,) = [jobs["parts"]["strategy"]["matrix"]["parts"]]
    assert sorted(" ".join(matrix).split()) == parts
    assert jobs["parts"]["steps"][-1]["run"].endswith("./test.sh ${{ matrix.parts }}")


def test_gitlab_runs_each_part_once(parts):
    jobs = yaml.safe_load((CHECKOUT / ".gitlab-ci.yml").read_text())
    ((matrix,),) = [jobs["parts"]["parallel"]["matrix"]]
    assert jobs["parts"]["script"] == ["./test.sh $PARTS"]
    named = " ".join(matrix["PARTS"]).split() + called(jobs["nodes"]["script"][0])
    assert sorted(named) == parts


def test_both_run_the_hosts_on_a_second_release_of_debian():
    """By the same part as the first one, with another release."""
    wanted = {"KAFKAOPS_NODE_RELEASE": "trixie"}
    github = yaml.safe_load((CHECKOUT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    step = github["debian-13"]["steps"][-1]
    assert called(step["run"]) == ["molecule"] and step["env"] == wanted
    gitlab = yaml.safe_load((CHECKOUT / ".gitlab-ci.yml").read_text())
    assert gitlab["debian-13"]["variables"] == wanted
    assert called(gitlab[gitlab["debian-13"]["extends"]]["script"][0]) == ["molecule"]


FOLDERS = {
    "tests/unit": "unit",
    "tests/integration/topics": "topics",
    "tests/integration/state": "state",
    "tests/integration/aws": "aws",
    "tests/spark": "spark",
    "tests/local": "local",
    "tests/rolls": "rolls",
    "molecule": "molecule",
}


def parts_with_long_tests():
    """Return the parts whose folders have tests that are marked, and the one that does more when asked for them."""
    found = {"cores"}
    for folder in ("tests", "molecule"):
        for path in (CHECKOUT / folder).rglob("test_*.py"):
            text = path.read_text()
            if re.search(r"^(@|pytestmark = |\s+.*marks=)pytest\.mark\.soak", text, re.MULTILINE):
                name = str(path.relative_to(CHECKOUT))
                found.add(next(part for at, part in FOLDERS.items() if name.startswith(at)))
    return sorted(found)


def test_both_run_the_long_tests_by_a_schedule():
    """Nothing that is kept out of each run waits for a person to think of it."""
    github = yaml.safe_load((CHECKOUT / ".github" / "workflows" / "soak.yml").read_text())
    named = github["jobs"]["soak"]["strategy"]["matrix"]["part"]
    assert sorted(named) == parts_with_long_tests()
    assert github[True]["schedule"]  # "on", as YAML reads it
    assert "./test.sh --soak ${{ matrix.part }}" in github["jobs"]["soak"]["steps"][-1]["run"]
    gitlab = yaml.safe_load((CHECKOUT / ".gitlab-ci.yml").read_text())["soak"]
    assert sorted(gitlab["parallel"]["matrix"][0]["PART"]) == parts_with_long_tests()
    assert gitlab["script"] == ["./test.sh --soak $PART"] and "schedule" in gitlab["rules"][0]["if"]

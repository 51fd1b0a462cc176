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

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What quickstart.sh says at its end; ansible-playbook and the environment's set-up are stand-ins."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A real run takes seconds; within one tick of the kernel's clock no file is newer than another.
PLAYBOOK = """#!/bin/sh
sleep 0.05
printf '%s\\n' "$*" >"$KAFKAOPS_HOME/asked"
mkdir -p "$KAFKAOPS_HOME/reports/mine/run"
[ -z "$VERDICT" ] || printf '{"verdict": "%s"}' "$VERDICT" >"$KAFKAOPS_HOME/reports/mine/run/verdict.json"
exit "$CODE"
"""


@pytest.fixture
def quickstart(tmp_path):
    """Return a function: verdict, exit code of the playbook, arguments -> (exit code, output, what was asked)."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "bin").mkdir()
    shutil.copy(ROOT / "quickstart.sh", tmp_path)
    (tmp_path / "scripts" / "environment.sh").write_text(
        "say() { printf '%s\\n' \"$*\" >&2; }\nprovide_environment() { :; }\nprovide_java() { :; }\n"
    )
    (tmp_path / "bin" / "ansible-playbook").write_text(PLAYBOOK)
    (tmp_path / "bin" / "ansible-playbook").chmod(0o755)
    home = tmp_path / "my home"
    earlier = home / "reports" / "earlier" / "run" / "verdict.json"
    earlier.parent.mkdir(parents=True)
    earlier.write_text('{"verdict": "pass"}')
    os.utime(earlier, (0, 0))

    def run(verdict, code, *arguments):
        path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
        own = {"KAFKAOPS_HOME": str(home), "VERDICT": verdict, "CODE": str(code), "PATH": path}
        done = subprocess.run(
            [str(tmp_path / "quickstart.sh"), *arguments],
            env={**os.environ, **own, "KAFKAOPS_CACHE": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr, (home / "asked").read_text()

    run.home = home
    return run


def test_what_follows_names_the_same_cluster(quickstart):
    code, said, asked = quickstart("pass", 0, "-i", "mine.yml", "-e", "local_port_offset=100")
    assert code == 0
    assert asked.endswith("-e flow_validation=always\n")
    commands = [line for line in said.splitlines() if "playbooks/" in line]
    assert len(commands) == 5
    quoted = str(quickstart.home).replace(" ", "\\ ")
    for line in commands:
        assert f" KAFKAOPS_HOME={quoted} ansible-playbook playbooks/" in line
        assert ".yml -i mine.yml -e local_port_offset=100" in line
    assert "-e confirm=mine " in commands[-1]


@pytest.mark.parametrize("verdict", ["", "fail"])
def test_a_run_without_a_verdict_is_no_success(quickstart, verdict):
    code, said, _asked = quickstart(verdict, 0, "--check")
    assert code == 1
    assert "Nothing was proven" in said and "keeps running" not in said


def test_nobody_can_talk_it_out_of_the_validation(quickstart):
    _code, _said, asked = quickstart("pass", 0, "-e", "flow_validation=never")
    assert asked.index("flow_validation=never") < asked.index("flow_validation=always")


def test_a_failure_is_passed_on(quickstart):
    code, said, _asked = quickstart("", 4)
    assert code == 4 and "Not deployed or not proven (exit code 4)" in said


@pytest.mark.parametrize("script", ["quickstart.sh", "test.sh"])
def test_another_system_than_linux_is_refused_in_one_sentence(tmp_path, script):
    (tmp_path / "scripts").mkdir()
    for name in (script, "scripts/environment.sh"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uname").write_text("#!/bin/sh\necho Darwin\n")
    (tmp_path / "bin" / "uname").chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(tmp_path / script)],
        env={**os.environ, "PATH": path, "KAFKAOPS_PYTHON": "/bin/false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.startswith("ERROR: this needs Linux, and Darwin is another system")
    assert done.stderr.count("\n") == 1 and not (tmp_path / ".venv").exists()

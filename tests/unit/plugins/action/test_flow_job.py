# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action that runs the validation job: a command's result, and meanwhile how far it is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import line_of

CHECKOUT = Path(__file__).resolve().parents[4]
# Says how far it is for twelve seconds; Ansible's output has a line every ten.
JOB = """
import json, os, sys, time
for number in range(24):
    with open(sys.argv[1] + ".part", "w") as file:
        json.dump({"line": f"written {number} of 24 records"}, file)
    os.replace(sys.argv[1] + ".part", sys.argv[1])
    time.sleep(0.5)
print("PASS: done")
sys.exit(int(sys.argv[2]))
"""


def play(tmp_path, code, *arguments):
    """Run a playbook that runs JOB and prints what was registered."""
    path = tmp_path / "progress.json"
    task = {
        "kafkaops.cluster.flow_job": {
            "argv": [sys.executable, "-c", JOB, str(path), str(code)],
            "progress": str(path),
        },
        "register": "job",
        "failed_when": False,
    }
    tell = {"ansible.builtin.debug": {"msg": "rc={{ job.rc | default('none') }}"}}
    say = {"ansible.builtin.debug": {"msg": "said={{ job.stdout_lines | default([]) | join }}"}}
    playbook = tmp_path / "playbook.yml"
    playbook.write_text(
        json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [task, tell, say]}])
    )
    command = [str(Path(sys.executable).with_name("ansible-playbook")), str(playbook)]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    done = subprocess.run(
        [
            *command,
            "-i",
            "localhost,",
            "-c",
            "local",
            "-e",
            f"ansible_python_interpreter={sys.executable}",
            *arguments,
        ],
        env={**kept, "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_progress_is_shown_and_the_result_is_the_commands(tmp_path):
    text = play(tmp_path, 3)
    lines = [line for line in text.splitlines() if line.startswith("    written ")]
    assert len(lines) == 1 and lines[0].endswith(" of 24 records"), text
    assert "rc=3" in text and "said=PASS: done" in text


def test_in_check_mode_the_command_is_skipped(tmp_path):
    text = play(tmp_path, 0, "--check")
    assert not (tmp_path / "progress.json").exists() and "PASS" not in text


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"step": "read"}', "null"])
def test_no_usable_file_is_no_line(tmp_path, content):
    path = tmp_path / "progress.json"
    if content is not None:
        path.write_text(content)
    assert line_of(str(path)) is None

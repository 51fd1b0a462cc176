# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a table looks in Ansible's own output, as YAML and as JSON."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "{{ ['NAME    ' * 15 ~ 'END', 'b'] | kafkaops.cluster.shown_lines }}"
"""


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_row_is_one_line(form, tmp_path):
    (tmp_path / "play.yml").write_text(PLAY)
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", "localhost,", "play.yml"],
        cwd=tmp_path,
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(Path(__file__).resolve().parents[4] / "ansible.cfg"),
            "ANSIBLE_CALLBACK_RESULT_FORMAT": form,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.strip(' ",') for line in done.stdout.splitlines()]
    assert "NAME    " * 15 + "END" in rows and "b" in rows, done.stdout

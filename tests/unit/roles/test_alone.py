# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role that only the playbooks can run safely says so, and does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("role", ["kafka", "zookeeper"])
def test_a_role_that_would_restart_all_hosts_at_once_names_the_playbook(role, tmp_path):
    play = tmp_path / "play.yml"
    play.write_text(
        "- hosts: all\n  gather_facts: false\n"
        f"  tasks: [{{ansible.builtin.include_role: {{name: kafkaops.cluster.{role}}}}}]\n"
    )
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("ansible-playbook")), "-i", "a,b", str(play)),
            *("-e", "ansible_connection=local"),
        ],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout
    assert f"[role.alone] a: role=kafkaops.cluster.{role}" in done.stdout
    assert "kafkaops.cluster.site" in done.stdout and "changed=1" not in done.stdout

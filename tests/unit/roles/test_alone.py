# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role that only the playbooks can run safely says so, and does nothing; so does a part that comes too early."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
# What is done where the inventory cannot be judged, and what only names a release.
NEED_NOTHING = {"probe", "product", "stop", "teardown", "would_delete"}
NEED_THE_RELEASE = {"install", "configure"}


def entry_points(role):
    """The parts of a role, as its argument specs have them."""
    text = (ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text()
    return list(yaml.safe_load(text)["argument_specs"])


def said_by(role, parts, folder, **variables):
    """What each part says that fails on a host where nothing has run before; in check mode: nothing can happen."""
    tasks = []
    for part in parts:
        include = {"name": f"kafkaops.cluster.{role}", "tasks_from": part}
        told = {"msg": f"{part} SAYS {{{{ ansible_failed_result.msg }}}}"}
        tasks.append(
            {
                "block": [{"ansible.builtin.include_role": include}],
                "rescue": [{"ansible.builtin.debug": told}],
            }
        )
    play = folder / "play.yml"
    play.write_text(
        yaml.safe_dump([{"hosts": "all", "gather_facts": False, "vars": variables, "tasks": tasks}])
    )
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("ansible-playbook")), "-i", "a,", str(play)),
            *("-e", "ansible_connection=local", "--check"),
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    said = {}
    for line in done.stdout.splitlines():
        part, found, words = line.partition(" SAYS ")
        if found and '"msg": "' in part:
            said[part.rpartition('"')[2]] = words
    return said, done.stdout


@pytest.mark.parametrize("role", ["kafka", "zookeeper"])
def test_every_part_that_needs_the_preflight_says_so(role, tmp_path):
    parts = set(entry_points(role)) - NEED_NOTHING
    said, output = said_by(role, sorted(parts), tmp_path)
    assert set(said) == parts, output
    for part, words in said.items():
        assert f"[role.alone] a: role=kafkaops.cluster.{role}: " in words, (part, words)
        assert f"kafkaops.cluster.{'site' if part == 'main' else 'preflight'}" in words, words
    assert "changed=0" in output


@pytest.mark.parametrize("role", ["kafka", "zookeeper"])
def test_parts_that_need_the_release_say_so(role, tmp_path):
    said, output = said_by(role, sorted(NEED_THE_RELEASE), tmp_path, kafkaops_preflight={})
    assert set(said) == NEED_THE_RELEASE, output
    assert all("[role.alone] a: " in each and "tasks_from obtain" in each for each in said.values())

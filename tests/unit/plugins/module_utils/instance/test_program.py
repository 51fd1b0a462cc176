# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program kept running by a service manager: when it is started, left alone or started anew."""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance import program
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    ServiceError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.supervisor import Supervisor

WORKS = 'trap "exit 0" TERM; echo $WORD; echo > "$1.part"; mv "$1.part" "$1"; while :; do sleep 0.1; done'


@pytest.fixture(name="wanted")
def wanted_fixture(tmp_path):
    def make(script=WORKS, word="it's", **more):
        values = {
            "name": "watched",
            "directory": str(tmp_path / "with blank"),
            "argv": ["sh", "-c", script, "sh", str(tmp_path / "sign")],
            "environment": {"WORD": word},
            "made_of": [],
            "sign": str(tmp_path / "sign"),
        }
        return program.Program(**{**values, **more})

    return make


@pytest.fixture(name="manager")
def manager_fixture(tmp_path, wanted):
    manager = Supervisor(str(tmp_path / "supervisor"))
    yield manager
    program.stop(wanted(), manager, False, 30, True)
    assert not os.path.exists(tmp_path / "supervisor")


def test_a_program_is_started_once_stopped_and_forgotten(manager, wanted, tmp_path):
    assert program.start(wanted(), manager, True, 30) == {"changed": True, "running": False}
    assert not (tmp_path / "sign").exists()
    assert program.start(wanted(), manager, False, 30) == {"changed": True, "running": True}
    assert (tmp_path / "sign").exists()
    assert "it's" in (tmp_path / "with blank" / "console.log").read_text(encoding="utf-8")
    first = manager.process("watched")["pid"]
    assert program.start(wanted(), manager, False, 30) == {"changed": False, "running": True}
    assert manager.process("watched")["pid"] == first
    assert program.stop(wanted(), manager, False, 30, False) == {"changed": True, "running": False}
    assert program.stop(wanted(), manager, False, 30, False) == {"changed": False, "running": False}
    assert program.start(wanted(), manager, False, 30)["changed"]


def test_another_word_or_file_starts_it_anew(manager, wanted, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.py").write_text("1", encoding="utf-8")
    assert program.start(wanted(made_of=[str(source)]), manager, False, 30)["changed"]
    (source / "__pycache__").mkdir()
    (source / "__pycache__" / "a.pyc").write_text("x", encoding="utf-8")
    assert not program.start(wanted(made_of=[str(source)]), manager, False, 30)["changed"]
    (source / "a.py").write_text("2", encoding="utf-8")
    first = manager.process("watched")["pid"]
    assert program.start(wanted(made_of=[str(source)]), manager, False, 30)["changed"]
    second = manager.process("watched")["pid"]
    assert program.start(wanted(word="other", made_of=[str(source)]), manager, False, 30)["changed"]
    assert len({first, second, manager.process("watched")["pid"]}) == 3


def test_what_ends_at_once_is_told_with_its_last_lines(manager, wanted):
    with pytest.raises(
        ServiceError, match="watched gave no sign within 2 s; its last lines: no cluster"
    ):
        program.start(wanted(script="echo no cluster; exit 3"), manager, False, 2)


def test_the_script_keeps_every_word(wanted, tmp_path):
    one = wanted(argv=["printf", "%s|", "a b", "it's", "$HOME"], environment={"A": "x y", "B": "'"})
    text = program.script_text(one, "f")
    path = tmp_path / "script"
    path.write_text(text + "\n", encoding="utf-8")
    told = subprocess.run(["sh", str(path)], stdout=subprocess.PIPE, check=True).stdout
    assert told == b"a b|it's|$HOME|"

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program kept running by a service manager: when it is started, left alone or started anew."""

from __future__ import annotations

import os
import pwd
import re
import shlex
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
        ServiceError,
        match="watched (gave no sign within 8 s|ended at once); its last lines: no cluster",
    ):
        program.start(wanted(script="echo no cluster; exit 3"), manager, False, 8)


def test_what_runs_and_works_no_more_is_told_by_the_age_of_its_sign(manager, wanted, tmp_path):
    """As one whose process dies at each start: it is to run, and is left alone."""
    assert program.sign_of(wanted()) == {}
    program.start(wanted(script=f"echo ready; {WORKS}"), manager, False, 30)
    told = program.sign_of(wanted())
    assert 0 <= told["sign_age_seconds"] < 60 and "ready" in told["last_lines"]
    os.utime(tmp_path / "sign", (1, 1))
    assert program.start(wanted(script=f"echo ready; {WORKS}"), manager, False, 30)["running"]
    assert program.sign_of(wanted())["sign_age_seconds"] > 10**9


def test_a_console_that_is_a_link_is_not_read(manager, wanted, tmp_path):
    """Whoever writes there may have led it to a file that he cannot read himself."""
    (tmp_path / "shadow").write_text("root's own\n", encoding="utf-8")
    (tmp_path / "with blank").mkdir()
    (tmp_path / "with blank" / "console.log").symlink_to(tmp_path / "shadow")
    with pytest.raises(ServiceError, match="its last lines: none"):
        program.start(wanted(script="exit 3"), manager, False, 2)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a file to somebody else")
def test_a_script_has_its_owner_before_it_has_its_name(manager, wanted, tmp_path, monkeypatch):
    """In a directory of the account its name may lead to any file a moment later."""
    given, replace = [], os.replace

    def seen(source, target):
        given.append((os.path.basename(target), os.stat(source).st_uid))
        replace(source, target)

    monkeypatch.setattr(os, "replace", seen)
    program.start(wanted(user="nobody"), manager, False, 30)
    assert (program.SCRIPT, pwd.getpwnam("nobody").pw_uid) in given
    assert os.stat(tmp_path / "with blank" / program.SCRIPT).st_uid == pwd.getpwnam("nobody").pw_uid


def test_the_script_keeps_every_word(wanted, tmp_path):
    one = wanted(argv=["printf", "%s|", "a b", "it's", "$HOME"], environment={"A": "x y", "B": "'"})
    text = program.script_text(one, "f")
    path = tmp_path / "script"
    path.write_text(text + "\n", encoding="utf-8")
    told = subprocess.run(["sh", str(path)], stdout=subprocess.PIPE, check=True).stdout
    assert told == b"a b|it's|$HOME|"


def test_a_unit_runs_the_script_as_its_account_which_opens_the_console(wanted, tmp_path):
    """Blanks, per cent and dollar in a path mean what they say; sh is given both as words."""
    made = wanted(directory="/srv/with blank/100%/$HOME/a\"b\\c'd", user="watcher")
    text = program.unit_text(made, "A test")
    lines = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert lines["User"] == "watcher" and lines["Restart"] == "always"
    assert lines["SendSIGKILL"] == "no" and "StandardOutput" not in lines
    command = lines["ExecStart"]
    assert "%%" in command and "$$HOME" in command
    words = shlex.split(command.replace("%%", "%").replace("$$", "$"))
    assert words[:2] == ["/bin/sh", "-c"] and words[2].endswith('; exec "$0" >>"$1" 2>&1')
    assert words[3:] == [made.script, made.console]


@pytest.mark.parametrize("size, aside", [(None, False), (5, False), (11 * 2**20, True)])
def test_a_long_console_is_put_aside_at_a_start(wanted, tmp_path, size, aside):
    """What dies at each start says so every five seconds, for weeks."""
    made = wanted(user="watcher")
    os.mkdir(made.directory)
    with open(made.script, "w", encoding="utf-8") as script:
        script.write("#!/bin/sh\necho started\n")
    os.chmod(made.script, 0o700)
    (command,) = re.findall("^ExecStart=(.*)$", program.unit_text(made, "A test"), re.M)
    words = shlex.split(command.replace("%%", "%").replace("$$", "$"))
    if size is not None:
        with open(made.console, "wb") as console:
            console.write(b"old\n")
            console.truncate(size)
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""
    (kept,) = [name for name in os.listdir(made.directory) if name == "console.log"]
    found = (tmp_path / "with blank" / kept).read_bytes()
    assert found.endswith(b"started\n") and (b"old" in found) is (size is not None and not aside)
    assert os.path.exists(f"{made.console}.1") is aside


def test_of_a_long_console_only_the_end_is_read(wanted):
    made = wanted()
    os.mkdir(made.directory)
    with open(made.sign, "w", encoding="utf-8"):
        pass
    with open(made.console, "wb") as console:
        console.truncate(2**33)
        console.seek(0, os.SEEK_END)
        console.write(b"\nthe last but one\nthe last\n")
    last = program.sign_of(made)["last_lines"].splitlines()
    assert last[-2:] == ["the last but one", "the last"]


def test_who_runs_it_stands_in_the_script(wanted):
    """So that it starts anew when another manager is to keep it running."""
    assert program.script_text(wanted(), "x") != program.script_text(wanted(user="watcher"), "x")

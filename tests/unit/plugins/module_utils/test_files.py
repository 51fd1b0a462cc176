# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files are written whole or not at all, also where somebody plants links; one lock at a time."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import tempfile
import threading
import time
from types import SimpleNamespace

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils import files


def test_a_file_is_replaced_with_its_mode_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "a.properties"
    path.write_text("old")
    files.write_atomically(str(path), "new", mode=0o600)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["a.properties"]


def test_a_planted_link_is_replaced_and_never_followed(tmp_path):
    victim = tmp_path / "shadow"
    victim.write_text("precious")
    directory = tmp_path / "conf"
    directory.mkdir()
    (directory / "a").symlink_to(victim)
    # what the old temporary name could be guessed as
    (directory / f"a.{os.getpid()}.tmp").symlink_to(victim)
    files.write_atomically(str(directory / "a"), b"new")
    assert victim.read_text() == "precious"
    assert (directory / "a").read_bytes() == b"new"
    assert not (directory / "a").is_symlink()


@pytest.mark.parametrize(
    "disk, full",
    [
        ({"f_bavail": 16}, False),
        ({"f_bavail": 15}, True),  # of what is kept for root an account has nothing
        ({"f_favail": 0}, True),
        ({"f_favail": 0, "f_files": 0}, False),  # btrfs counts no files
    ],
)
def test_a_disk_is_full_without_bytes_or_without_files(monkeypatch, disk, full):
    seen = {"f_frsize": 4096, "f_bfree": 99999, "f_bavail": 99999, "f_files": 9, "f_favail": 9}
    monkeypatch.setattr(files.os, "statvfs", lambda path: SimpleNamespace(**{**seen, **disk}))
    assert files.without_room(["/data"]) == (["/data"] if full else [])


def test_of_what_is_not_there_nothing_is_said(tmp_path):
    assert files.without_room([str(tmp_path / "none"), str(tmp_path)]) == []


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_text("old")

    def full(_stream):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "flush", full)
    # what the kernel says of a write names no file
    with pytest.raises(OSError, match="No space left on device: '.*/a'"):
        files.write_atomically(str(path), "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_what_a_killed_run_left_is_removed(tmp_path):
    (tmp_path / f"{files.PARTIAL}a.x1").write_text("half")
    (tmp_path / "a").write_text("whole")
    assert files.remove_partials(str(tmp_path)) == [f"{files.PARTIAL}a.x1"]
    assert os.listdir(tmp_path) == ["a"]


def test_the_second_waits_for_the_lock_and_says_so(tmp_path):
    path = str(tmp_path / ".lock")
    order = []
    waits = threading.Event()

    def second():
        with files.exclusive(path, on_wait=waits.set):
            order.append("second")

    with files.exclusive(path):
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_a_lock_that_is_never_given_back_is_not_waited_for_without_end(tmp_path):
    path, said = str(tmp_path / ".lock"), []
    with files.exclusive(path):
        with pytest.raises(TimeoutError) as caught:
            with files.exclusive(path, lambda: said.append("waits"), seconds=0.05):
                raise AssertionError("both have it")
    assert said == ["waits"] and caught.value.filename == path
    assert "another process holds this lock, for 0.05 s and longer" in str(caught.value)
    with files.exclusive(path, seconds=0):
        pass


def test_a_lock_does_not_follow_a_planted_link(tmp_path):
    (tmp_path / ".lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError), files.exclusive(str(tmp_path / ".lock")):
        pass
    assert not (tmp_path / "victim").exists()


def test_a_file_in_memory_has_no_name_and_is_read_by_those_who_inherit_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with files.in_memory("secret\n" * 5000) as descriptor:
        path = files.path_of(descriptor)
        for _time in range(2):
            with open(path, encoding="utf-8") as stream:
                assert stream.read() == "secret\n" * 5000
        told = subprocess.run(["wc", "-l", path], pass_fds=(descriptor,), stdout=subprocess.PIPE)
        assert told.stdout.split()[0] == b"5000" and os.listdir(tmp_path) == []
        # others do not inherit it
        assert subprocess.run(["cat", path], stderr=subprocess.DEVNULL).returncode != 0
    assert not os.path.exists(path)


def test_a_directory_of_a_killed_process_goes_with_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pids = []
    for _number in range(2):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            with files.swept_directory("kafkaops-x-") as mine:
                os.write(writing, mine.encode())
                signal.pause()
        os.close(writing)
        pids.append((pid, os.read(reading, 4096).decode()))
        os.close(reading)
    try:
        (killed, left), (_alive, held) = pids
        os.kill(killed, signal.SIGKILL)
        os.waitpid(killed, 0)
        (tmp_path / "kafkaops-y-other").mkdir()
        (tmp_path / "kafkaops-x-file").write_text("mine")
        (tmp_path / "kafkaops-x-link").symlink_to(tmp_path / "kafkaops-y-other")
        with files.swept_directory("kafkaops-x-"):
            assert os.path.isdir(left), "it is young, and may not have its lock yet"
        later = time.time() + files.YOUNG_SECONDS + 1
        with files.swept_directory("kafkaops-x-", lambda: later) as mine:
            assert stat.S_IMODE(os.stat(mine).st_mode) == 0o700
            there = {os.path.basename(held), os.path.basename(mine), "kafkaops-y-other"}
            assert set(os.listdir(tmp_path)) == there | {"kafkaops-x-file", "kafkaops-x-link"}
        assert not os.path.exists(mine)
    finally:
        for pid, _path in pids[1:]:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

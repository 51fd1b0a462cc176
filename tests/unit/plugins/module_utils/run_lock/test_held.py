# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock on one host: one holder, compared and replaced in one step, by processes at the same time."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import exclusive
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.held import (
    GONE,
    REPLACED,
    THERE,
    check_held,
    give_back,
    holder_of,
    marks_of,
    path_of,
    run_is,
    take,
    why_over,
    why_unread,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.owner import (
    Owner,
    owner_of,
)
from tests.support.outside import wait_until


def owner(pid, host="ctl"):
    return Owner(host, "boot/1", pid, pid * 7, "alice", "site.yml", "c", 1795256400)


A, B, C = owner(1), owner(2), owner(3)


@pytest.fixture
def directory(tmp_path):
    """A directory that is not there yet, nor the one above it."""
    return str(tmp_path / "var" / "locks")


def test_the_first_has_it_and_the_second_is_told_who(directory):
    assert take(directory, "c", A).granted
    refused = take(directory, "c", B)
    assert (refused.granted, refused.holder) == (False, A)
    assert holder_of(directory, "c") == A
    # two inventory names of one machine, and a playbook that imports another
    assert take(directory, "c", A).granted


def test_given_back_it_is_free_and_leaves_nothing_behind(directory):
    take(directory, "c", A)
    assert not give_back(directory, "c", B)
    assert holder_of(directory, "c") == A
    assert give_back(directory, "c", A)
    assert not os.path.exists(directory)
    assert not give_back(directory, "c", A)
    assert holder_of(directory, "c") is None
    assert take(directory, "c", B).granted


def test_who_moves_replicas_as_another_user_can_read_it_whatever_the_umask(directory):
    before = os.umask(0o077)
    try:
        take(directory, "c", A)
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o755
    assert stat.S_IMODE(os.stat(path_of(directory, "c")).st_mode) == 0o644


def test_a_directory_that_was_there_keeps_its_mode(tmp_path):
    tmp_path.chmod(0o750)
    take(str(tmp_path), "c", A)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o750


def test_two_clusters_on_a_machine_have_two_locks(directory):
    assert take(directory, "c", A).granted and take(directory, "d", B).granted
    give_back(directory, "c", A)
    assert holder_of(directory, "d") == B


def test_who_moves_replicas_between_disks_and_who_restarts_see_each_other(directory, tmp_path):
    instance = str(tmp_path / ".lock")
    assert take(directory, "c (disks)", A).beside is None
    restarts = take(directory, "c", B, instances=[instance])
    assert restarts.granted and restarts.beside == A
    refused = take(directory, "c (disks)", C)
    assert (refused.granted, refused.holder) == (False, A)
    assert take(directory, "c (disks)", A).beside == B
    assert give_back(directory, "c (disks)", A) and holder_of(directory, "c") == B


def test_a_run_that_comes_and_goes_leaves_a_mark_and_no_other_trace(directory, tmp_path):
    """Of two runs one may be over before the other one, which has looked before, asks for the lock."""
    names = [str(tmp_path / name) for name in ("kafka", "zookeeper", "gone")]
    for name in names[:2]:
        Path(name).touch()
    times = [os.stat(name).st_mtime_ns for name in names[:2]]
    assert take(directory, "c", A, instances=names).marks == ()
    assert not give_back(directory, "c", B) and marks_of(names) == ()
    assert give_back(directory, "c", A)
    (mark,) = take(directory, "c", B, instances=names).marks
    assert mark.startswith(f"{A.id} ") and marks_of(names[:1]) == marks_of(names[1:]) == (mark,)
    assert [os.stat(name).st_mtime_ns for name in names[:2]] == times
    assert not os.path.exists(names[2])
    give_back(directory, "c", B)
    take(directory, "c", A, instances=names)
    give_back(directory, "c", A)
    assert set(marks_of(names)).isdisjoint({mark})


def test_only_the_holder_that_was_seen_is_replaced(directory):
    take(directory, "c", B)
    refused = take(directory, "c", C, instead_of=A)
    assert (refused.granted, refused.holder) == (False, B)
    assert take(directory, "c", C, instead_of=B).granted
    assert holder_of(directory, "c") == C


def test_a_file_that_nobody_can_read_is_held_by_somebody(directory):
    os.makedirs(directory)
    for text in ("", "{", "[]", "{}", '{"host": 1}'):
        with open(path_of(directory, "c"), "w", encoding="utf-8") as target:
            target.write(text)
        refused = take(directory, "c", A)
        assert not refused.granted and refused.holder.id == "unreadable:0:0"
    assert take(directory, "c", A, instead_of=refused.holder).granted


@pytest.mark.parametrize("name", ["../../etc/x", "a b", "ä", ".", ".."])
def test_no_name_of_a_cluster_leads_out_of_the_directory(directory, name):
    assert take(directory, name, A).granted
    assert (
        len(os.listdir(directory)) == 2 and os.path.dirname(path_of(directory, name)) == directory
    )
    give_back(directory, name, A)


def test_what_a_killed_writer_has_left_is_removed(directory):
    take(directory, "c", A)
    with open(os.path.join(directory, ".partial-c.json.x"), "w", encoding="utf-8") as target:
        target.write("{")
    give_back(directory, "c", A)
    assert not os.path.exists(directory)


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        take(str(tmp_path / "file" / "locks"), "c", A)
    assert holder_of(str(tmp_path / "file" / "locks"), "c") is None


def test_who_replaces_a_run_waits_for_the_module_that_it_has_left_running(directory, tmp_path):
    busy, absent = str(tmp_path / "busy"), str(tmp_path / "absent" / ".lock")
    done = threading.Event()
    take(directory, "c", A)

    def replace():
        found = take(directory, "c", B, A, [absent, busy], seconds=60)
        assert found.waited and not found.busy
        done.set()

    thread = threading.Thread(target=replace)
    with exclusive(busy):
        thread.start()
        # the lock is taken first, so that what has not begun yet is turned away
        wait_until(lambda: holder_of(directory, "c") == B, 30, "B has the lock")
        assert not done.is_set()
        with pytest.raises(ProblemError):
            check_held(directory, "c", A.id)
    assert done.wait(30)
    thread.join()
    assert not take(directory, "c", A, B, [absent, busy]).waited, "nobody works"


def test_a_module_that_does_not_end_is_named_and_waited_for_no_longer(directory, tmp_path):
    """Also where the lock itself is free: the run before may have given it back without waiting for the module."""
    idle, busy = str(tmp_path / "idle"), str(tmp_path / "busy")
    with exclusive(idle), exclusive(busy):
        pass
    with exclusive(busy):
        found = take(directory, "c", A, instances=[idle, busy], seconds=0.05)
        assert (found.granted, found.waited, found.busy) == (True, True, busy)
        again = take(directory, "c", A, instances=[idle, busy])
        assert again.busy == busy
    assert take(directory, "c", A, instances=[idle, busy]).busy == ""


# ---------------------------------------------------------------- a cluster with two names


def test_a_cluster_has_one_lock_whatever_two_inventories_call_it(directory, tmp_path):
    kafka, other, link = (str(tmp_path / name / ".lock") for name in ("kafka", "other", "link"))
    (tmp_path / "kafka").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kafka")
    assert take(directory, "prod", A, instances=[kafka]).granted
    for path in (kafka, link, str(tmp_path / "other" / ".." / "kafka" / ".lock")):
        refused = take(directory, "kafka", B, instances=[other, path])
        assert (refused.granted, refused.holder) == (False, A)
        assert holder_of(directory, "kafka", [other, path]) == A
    assert not os.path.exists(path_of(directory, "kafka"))
    # another cluster of this machine, and who names no instance, as an earlier release
    assert take(directory, "second", C, instances=[other]).granted
    assert holder_of(directory, "kafka") is None
    # the same run, with both names in its inventory
    assert take(directory, "kafka", A, instances=[kafka]).granted
    assert give_back(directory, "kafka", A)
    taken = take(directory, "kafka", B, instead_of=A, instances=[link])
    assert taken.granted and holder_of(directory, "prod", [kafka]) == B
    assert not os.path.exists(path_of(directory, "prod"))
    with pytest.raises(ProblemError):
        check_held(directory, "prod", A.id)
    assert holder_of(directory, "second", [other]) == C


def test_both_names_may_have_been_left_by_runs_that_are_gone(directory):
    """One lock of each name, as before this was known: each is replaced, in turn."""
    take(directory, "prod", A, instances=["/x/.lock"])
    take(directory, "kafka", B)
    first = take(directory, "kafka", C, instances=["/x/.lock"])
    assert (first.granted, first.holder) == (False, B)
    second = take(directory, "kafka", C, instead_of=B, instances=["/x/.lock"])
    assert (second.granted, second.holder) == (False, A)
    assert take(directory, "kafka", C, instead_of=A, instances=["/x/.lock"]).granted
    assert sorted(os.listdir(directory)) == [".lock", "kafka.json"]


def test_two_inventory_names_of_one_machine_hold_the_instances_of_both(directory):
    take(directory, "c", A, instances=["/x/.lock"])
    take(directory, "c", A, instances=["/y/.lock"])
    for path in ("/x/.lock", "/y/.lock"):
        assert take(directory, "d", B, instances=[path]).holder == A


@pytest.mark.parametrize("text", ["", "{", '{"instances": ["/x/.lock"]}'])
def test_another_file_that_nobody_can_read_is_none_of_this_cluster(directory, text):
    os.makedirs(directory)
    with open(path_of(directory, "other"), "w", encoding="utf-8") as target:
        target.write(text)
    assert take(directory, "c", A, instances=["/x/.lock"]).granted


def test_who_has_lost_the_lock_may_start_nothing(directory):
    take(directory, "c", A)
    check_held(directory, "c", A.id)
    take(directory, "c", B, instead_of=A)
    with pytest.raises(ProblemError, match=r"\[run.lock_lost\].*process 2 of alice on ctl"):
        check_held(directory, "c", A.id)
    give_back(directory, "c", B)
    with pytest.raises(ProblemError, match="nobody has it"):
        check_held(directory, "c", A.id)


def _contend(directory, number, rounds, barrier, wins):
    """Take and give back; count, and fail where somebody else was in between."""
    me = owner(number)
    barrier.wait()
    for _round in range(rounds):
        if take(directory, "c", me).granted:
            held = holder_of(directory, "c")
            assert held == me, held
            with wins.get_lock():
                wins.value += 1
            assert give_back(directory, "c", me)


@pytest.mark.parametrize("there", [True, False])
def test_a_directory_that_goes_while_it_is_made_is_made_again(directory, monkeypatch, there):
    """Seen once in some thousand times: makedirs found it, and then did not."""
    if there:
        os.makedirs(directory)
    make, answers = os.makedirs, [FileExistsError(17, "File exists", directory)]

    def made(*arguments, **options):
        if answers:
            raise answers.pop()
        make(*arguments, **options)

    monkeypatch.setattr(os, "makedirs", made)
    assert take(directory, "c", A).granted and not answers


def test_what_is_no_directory_is_in_the_way(directory):
    os.makedirs(os.path.dirname(directory))
    with open(directory, "w", encoding="utf-8"):
        pass
    with pytest.raises(FileExistsError):
        take(directory, "c", A)


def test_processes_that_take_and_give_back_at_once(directory):
    """The directory comes and goes meanwhile; nobody sees anybody else's lock as his own."""
    context = multiprocessing.get_context("fork")
    wins, barrier = context.Value("i", 0), context.Barrier(4)
    processes = [
        context.Process(target=_contend, args=(directory, number, 50, barrier, wins))
        for number in range(1, 5)
    ]
    for each in processes:
        each.start()
    for each in processes:
        each.join(120)
    assert [each.exitcode for each in processes] == [0, 0, 0, 0]
    assert wins.value > 0 and not os.path.exists(directory)


def test_who_is_told_of_no_run_and_of_no_lock_may_go_on(directory):
    nothing = {"pid": None, "start_ticks": None}
    no_lock = {"directory": None, "cluster": None, "owner": None}
    assert why_over({}, {}) == why_over(nothing, no_lock) == ""


def test_what_a_run_has_begun_is_over_when_its_process_has_ended():
    process = multiprocessing.get_context("spawn").Process(target=int)
    process.start()
    begun = owner_of(process.pid, "", "c", 0)
    run = {"pid": process.pid, "start_ticks": begun.start_ticks}
    assert why_over(run, {}) == ""
    assert "has ended" in why_over({**run, "start_ticks": begun.start_ticks + 1}, {}), "another one"
    process.join()
    assert why_over(run, {}) == f"the run that has begun this (process {run['pid']}) has ended"


def test_what_a_run_has_begun_is_over_when_another_one_has_its_lock(directory):
    lock = {"directory": directory, "cluster": "c", "owner": A.id}
    assert "nobody has it" in why_over({}, lock)
    take(directory, "c", A)
    assert why_over({}, lock) == ""
    take(directory, "c", B, instead_of=A)
    assert "no longer holds the lock" in why_over({}, lock) and "process 2 " in why_over({}, lock)


def test_a_lock_that_cannot_be_read_ends_nothing_and_is_told(tmp_path):
    folder = tmp_path / "locks"
    path = folder / "c.json"
    path.mkdir(parents=True)
    lock = {"directory": str(folder), "cluster": "c", "owner": A.id}
    assert why_over({}, lock) == ""
    assert f"{path} cannot be read (Is a directory)" in why_unread(lock)
    path.rmdir()
    assert why_unread(lock) == why_unread({}) == why_unread({**lock, "owner": None}) == ""
    take(str(folder), "c", B)
    assert why_unread(lock) == ""


def test_what_has_become_of_a_run(directory):
    here = owner_of(os.getpid(), "drill.yml", "c", 0)
    ended = replace(here, start_ticks=here.start_ticks + 1)
    assert run_is(directory, "c", here.id) == GONE, "it has given the lock back"
    for holder, run, found in (
        (here, here, THERE),
        (A, A, THERE),  # on another machine, where it cannot be seen
        (ended, ended, GONE),
        (A, here, REPLACED),
        # nobody decides any more
        (ended, A, GONE),
    ):
        os.makedirs(directory, exist_ok=True)
        with open(path_of(directory, "c"), "w", encoding="utf-8") as handle:
            json.dump(holder.to_dict(), handle)
        assert run_is(directory, "c", run.id) == found

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who a run is, and whether it is gone: with processes that live, end, and are not waited for."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.owner import (
    Owner,
    booted_at,
    can_be_seen,
    ended_with_its_boot,
    has_ended,
    is_gone,
    machine_of,
    owner_of,
    this_run,
)
from tests.support.outside import wait_until


@pytest.fixture
def child():
    """A process that lives until it is killed."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()


def here(pid):
    found = owner_of(pid, "site.yml", "local", 1795256400)
    assert found is not None
    return found


def test_a_machine_that_shows_no_processes_is_not_told_that_its_run_has_ended(tmp_path):
    """As macOS: what the lock rests on is not there."""
    assert this_run()[0] == os.getppid()
    with pytest.raises(LookupError, match="shows no processes in /proc"):
        this_run(str(tmp_path))
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "stat").touch()
    with pytest.raises(LookupError, match="has ended"):
        this_run(str(tmp_path))


def test_a_process_is_gone_when_it_has_ended_and_not_before(child):
    me, holder = here(os.getpid()), here(child.pid)
    assert not is_gone(holder, me) and not is_gone(me, me)
    os.kill(child.pid, signal.SIGSTOP)  # it may go on at any moment
    assert not is_gone(holder, me)
    os.kill(child.pid, signal.SIGKILL)
    # still a zombie, since nobody has waited for it
    wait_until(lambda: is_gone(holder, me), 30, "the killed process counts as gone")
    child.wait()
    assert is_gone(holder, me)
    assert owner_of(child.pid, "", "", 0) is None


def test_a_process_that_proc_does_not_show_is_not_gone(tmp_path):
    """Mounted with hidepid, /proc hides the processes of other users; the run of a colleague is one."""
    nobody = os.fork()
    if not nobody:
        if os.geteuid() == 0:
            os.setuid(65534)
        os._exit(1 if has_ended(1, 5, proc=str(tmp_path)) else 0)
    assert os.waitpid(nobody, 0)[1] == 0
    assert has_ended(nobody, 5, proc=str(tmp_path))


def test_another_process_with_the_same_pid_is_somebody_else(child):
    me, now = here(os.getpid()), here(child.pid)
    earlier = dataclasses.replace(now, start_ticks=now.start_ticks - 1)
    assert is_gone(earlier, me) and not now.is_same(earlier)
    assert now.is_same(dataclasses.replace(now, taken_at=0, cluster="other", playbook="x.yml"))
    assert not now.is_same(None)


@pytest.mark.parametrize(
    "elsewhere",
    [{"host": "other"}, {"place": "another boot/7", "machine": ""}, {"place": ""}],
    ids=["another host", "another container", "a place that is unknown"],
)
def test_of_elsewhere_nobody_can_tell(child, elsewhere):
    me = here(os.getpid())
    child.kill()
    child.wait()
    holder = dataclasses.replace(here(os.getpid()), pid=child.pid, **elsewhere)
    assert not can_be_seen(holder, me) and not is_gone(holder, me)


EARLIER = {"place": "another boot/4026531836", "taken_at": 1000}


@pytest.mark.parametrize(
    "changed, booted, gone",
    [
        ({}, 2000, True),
        # taken after this machine was started: a machine that was made as its copy
        ({}, 900, False),
        ({}, 0, False),
        ({"machine": "another"}, 2000, False),
        ({"machine": ""}, 2000, False),
        ({"host": "other"}, 2000, False),
        ({"place": ""}, 2000, False),
        # of this boot, in another name space: a container, which may still run
        ({"place": "boot/7"}, 2000, False),
    ],
)
def test_with_a_reboot_of_its_machine_a_run_has_ended(changed, booted, gone):
    me = dataclasses.replace(here(os.getpid()), place="boot/4026531836", machine="m", taken_at=3000)
    holder = dataclasses.replace(me, **{**EARLIER, **changed})
    assert ended_with_its_boot(holder, me, booted) is gone
    assert not ended_with_its_boot(
        holder, dataclasses.replace(me, machine=""), booted
    ), "in a container"


def test_after_a_reboot_the_lock_is_left(tmp_path):
    (tmp_path / "stat").write_text("cpu 1 2\nbtime 2000\nprocesses 3\n")
    assert booted_at(str(tmp_path)) == 2000 and booted_at(str(tmp_path / "none")) == 0
    assert 0 < booted_at() < time.time()
    me = dataclasses.replace(here(os.getpid()), place="boot/4026531836", machine="m")
    holder = dataclasses.replace(me, **EARLIER)
    assert is_gone(holder, me, str(tmp_path))
    assert not is_gone(dataclasses.replace(holder, taken_at=2001), me, str(tmp_path))


@pytest.mark.parametrize("space, known", [(4026531836, True), (4026532000, False)])
def test_a_machine_is_known_again_and_a_container_is_not(tmp_path, space, known):
    (tmp_path / "self" / "ns").mkdir(parents=True)
    (tmp_path / "self" / "ns" / "pid").symlink_to(f"pid:[{space}]")
    one, two = tmp_path / "one", tmp_path / "two"
    two.write_text("0123456789abcdef0123456789abcdef\n")
    for text in (None, "", "uninitialized\n"):
        if text is not None:
            one.write_text(text)
        found = machine_of(str(tmp_path), (str(one), str(two)))
        assert bool(found) is known and "0123456789" not in found
    assert machine_of(str(tmp_path), (str(one),)) == ""
    assert machine_of(str(tmp_path / "none"), (str(two),)) == ""


def test_without_a_place_of_its_own_a_run_sees_nobody():
    me = dataclasses.replace(here(os.getpid()), place="")
    assert not is_gone(dataclasses.replace(me, pid=1, start_ticks=-1), me)


def test_the_id_is_one_word_for_a_command_line():
    me = here(os.getpid())
    assert me.id == f"{me.host}:{os.getpid()}:{me.start_ticks}"
    assert " " not in me.id and me.id == me.to_dict()["owner"]


def test_what_is_written_is_read_back():
    me = here(os.getpid())
    me = dataclasses.replace(me, machine="m")
    written = json.loads(json.dumps(me.to_dict()))
    assert Owner.from_dict(written) == me
    del written["machine"]  # as an earlier release wrote it
    assert Owner.from_dict(written) == dataclasses.replace(me, machine="")


def test_a_machine_without_proc_has_no_place(tmp_path):
    assert owner_of(os.getpid(), "", "", 0, proc=str(tmp_path)) is None

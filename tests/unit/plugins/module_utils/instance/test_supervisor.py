# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real supervisord with real, small processes: the traps that supervisor.py names."""

import os
import signal
import xmlrpc.client

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance import (
    instance,
    supervisor,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.instance import StartFailed
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    ServiceError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.supervisor import Supervisor
from tests.support.outside import wait_until
from tests.support.small_service import Bench

pytest.importorskip("supervisor")


def daemon_pid(supervisor):
    """The pid of its supervisord, by its pid file; None where that process is gone."""
    try:
        with open(os.path.join(supervisor.directory, "supervisord.pid")) as handle:
            pid = int(handle.read())
    except (OSError, ValueError):
        return None
    return pid if start_ticks(pid) else None


class Group:
    """Some instances under one supervisord, ended with the test."""

    def __init__(self, root, names):
        self.supervisor = Supervisor(os.path.join(str(root), "supervisor"))
        self.benches = {name: Bench(root, self.supervisor, name) for name in names}

    def start(self, **properties):
        for bench in self.benches.values():
            bench.stage(**properties)
            bench.turn()

    def pids(self):
        return {name: bench.pid for name, bench in self.benches.items()}

    def close(self):
        # supervisord first, or it would start the others again
        doomed = [daemon_pid(self.supervisor), *self.pids().values()]
        for pid in filter(None, doomed):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.unlink(self.supervisor.socket_path)
        except FileNotFoundError:
            pass


@pytest.fixture
def group_of(tmp_path):
    """Return a function that makes a Group; every one is ended."""
    made = []

    def make(*names, root=tmp_path):
        os.makedirs(root, exist_ok=True)
        made.append(Group(root, names))
        return made[-1]

    yield make
    for group in made:
        group.close()


def test_who_ends_before_supervisord_has_looked_is_no_refusal(tmp_path, monkeypatch):
    """On a busy machine it is over at once; whoever waits for it says why, with its last lines."""

    def call(_method, *_args):
        raise xmlrpc.client.Fault(50, "SPAWN_ERROR: watched")

    found = Supervisor(str(tmp_path))
    monkeypatch.setattr(found, "_call", call)
    found.start("watched")
    with pytest.raises(ServiceError, match="SPAWN_ERROR"):
        found.stop("watched")


def test_a_killed_process_comes_back_by_itself(group_of):
    group = group_of("one")
    group.start()
    one = group.benches["one"]
    killed = one.pid
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: one.pid not in (None, killed), 60, "it is back")
    assert one.instance.process().supervised and one.reasons == []


def test_a_stop_waits_for_the_exit_and_lasts(group_of):
    group = group_of("one")
    group.start(stop_seconds=1)
    one = group.benches["one"]
    pid = one.pid
    assert one.instance.stop(30) is True
    assert start_ticks(pid) is None and not group.supervisor.wants_running("one")
    assert one.instance.stop(30) is False
    one.turn()
    assert one.pid not in (None, pid)


def test_a_signal_that_was_lost_is_sent_again(group_of, monkeypatch):
    """Seen on a loaded machine: a broker signalled between supervisord's fork and its own start ran on for ever."""
    monkeypatch.setattr(instance, "ASK_AGAIN_SECONDS", 0.5)
    group = group_of("one")
    group.start(deaf=1)
    one = group.benches["one"]
    assert one.instance.stop(30) is True
    assert one.pid is None and not group.supervisor.wants_running("one")


def test_a_stop_that_is_under_way_already_signals_what_was_lost(group_of):
    """The next run asks a supervisord that takes the process for one that is stopping."""
    group = group_of("one")
    group.start(deaf=1)
    one = group.benches["one"]
    with pytest.raises(ServiceError, match="still runs 1 s after SIGTERM"):
        one.instance.stop(1)
    assert one.instance.stop(30) is True
    assert one.pid is None


def test_a_changed_program_takes_effect_in_its_turn_alone(group_of):
    group = group_of("one", "two", "three")
    group.start()
    before = group.pids()
    for bench in group.benches.values():
        bench.stage(comment="; changed\n", settings={"startsecs": "7"})
    assert group.pids() == before
    group.benches["one"].turn()
    after = group.pids()
    assert after["one"] != before["one"]
    assert (after["two"], after["three"]) == (before["two"], before["three"])
    assert group.benches["one"].reasons == []
    (reason,) = group.benches["two"].reasons
    assert reason == "service: startsecs (unset) -> 7"
    # what dies meanwhile starts as it was, not as it is going to be
    os.kill(before["two"], signal.SIGKILL)
    two = group.benches["two"]
    wait_until(lambda: two.pid not in (None, before["two"]), 60, "two is back")
    assert two.instance.process().fingerprint == two.generation().fingerprint


def test_orphans_of_a_killed_supervisord_are_taken_over_one_by_one(group_of):
    group = group_of("one", "two")
    group.start()
    before = group.pids()
    daemon = daemon_pid(group.supervisor)
    os.kill(daemon, signal.SIGKILL)
    wait_until(lambda: start_ticks(daemon) is None, 60, "supervisord is gone")
    assert group.pids() == before
    for name, bench in group.benches.items():
        assert bench.reasons == ["runs outside its service manager (process %d)" % before[name]]
    group.benches["one"].turn()
    now = group.pids()
    # the new supervisord starts only what is asked for: two serves on, once, and is still an orphan
    assert now["one"] != before["one"] and now["two"] == before["two"]
    assert group.benches["one"].reasons == []
    assert group.benches["two"].reasons
    group.benches["two"].turn()
    assert start_ticks(before["two"]) is None and group.benches["two"].instance.process().supervised


def test_an_orphan_can_be_stopped(group_of):
    group = group_of("one")
    group.start()
    os.kill(daemon_pid(group.supervisor), signal.SIGKILL)
    wait_until(lambda: not group.supervisor.alive(), 60, "supervisord is gone")
    one = group.benches["one"]
    assert one.instance.stop(30) is True and one.pid is None


def test_a_supervisord_that_lost_its_socket_does_not_fight_back(group_of):
    """It would start each instance again as soon as somebody who cannot reach it stops one."""
    group = group_of("one", "two")
    group.start()
    before, daemon = group.pids(), daemon_pid(group.supervisor)
    os.unlink(group.supervisor.socket_path)
    assert group.benches["one"].reasons
    group.benches["one"].turn()
    now = group.pids()
    assert now["one"] not in (None, before["one"]) and now["two"] == before["two"]
    assert start_ticks(daemon) is None and daemon_pid(group.supervisor)
    group.benches["two"].turn()
    assert [bench.reasons for bench in group.benches.values()] == [[], []]


def test_the_pid_of_somebody_else_is_left_alone(group_of):
    group = group_of("one")
    one = group.benches["one"]
    one.stage()
    os.makedirs(group.supervisor.directory)
    with open(os.path.join(group.supervisor.directory, "supervisord.pid"), "w") as handle:
        handle.write("%d\n" % os.getpid())
    one.turn()  # would kill this test
    assert one.instance.process().supervised


def test_the_socket_does_not_depend_on_who_looks(monkeypatch, tmp_path):
    paths = set()
    (tmp_path / "other").symlink_to(tmp_path)
    for runtime in ("/run/user/0", "/nowhere", None):
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        if runtime:
            monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        for directory in (tmp_path / "s", tmp_path / "other" / "s", str(tmp_path) + "/./s/"):
            paths.add(Supervisor(str(directory)).socket_path)
    assert len(paths) == 1
    assert Supervisor(str(tmp_path / "t")).socket_path not in paths


def test_a_link_in_the_place_of_the_sockets_directory_is_not_followed(monkeypatch, tmp_path):
    """Whoever was there first, in a directory open to all, would be told what to run."""
    monkeypatch.setattr(supervisor, "RUNTIME", str(tmp_path))
    found = Supervisor(str(tmp_path / "s"))
    (tmp_path / "theirs").mkdir()
    os.symlink(tmp_path / "theirs", os.path.dirname(found.socket_path))
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        found._call("getState")


@pytest.mark.parametrize("part", ["x" * 120, "a b", "100%", "it's", "ünï", "a[1]*"])
def test_any_directory_will_do(group_of, tmp_path, part):
    group = group_of("one", root=tmp_path / part)
    group.start()
    one = group.benches["one"]
    assert one.instance.process().supervised and len(group.supervisor.socket_path) < 107
    with open(os.path.join(one.layout.log_dir, "console.log")) as handle:
        assert "starting" in handle.read()


def test_a_start_that_fails_again_and_again_ends_and_is_explained(group_of):
    group = group_of("one", "two")
    group.start()
    before = group.pids()
    one = group.benches["one"]
    one.stage(exit=1, message="no such class")
    with pytest.raises(StartFailed, match="exits again and again.*running again") as failed:
        one.turn()
    assert "no such class" in failed.value.journal
    assert one.instance.process().fingerprint == one.generation().fingerprint
    assert group.pids()["two"] == before["two"]


def test_a_transient_failure_is_waited_out(group_of, tmp_path):
    """A broker is turned away until the registration of its killed predecessor has expired."""
    group = group_of("one")
    one = group.benches["one"]
    attempts = tmp_path / "attempts"
    with open(os.path.join(one.home, "server.py")) as handle:
        server = handle.read()
    with open(os.path.join(one.home, "server.py"), "w") as handle:
        handle.write(
            "import os, sys\n"
            "with open(%r, 'a') as count: count.write('x')\n"
            "if os.path.getsize(%r) < 5:\n"
            "    print('NodeExists', flush=True)\n"
            "    os._exit(1)\n" % (str(attempts), str(attempts)) + server
        )
    one.stage()
    with pytest.raises(StartFailed, match="again and again"):
        one.turn()
    attempts.unlink()
    one.turn(transient="NodeExists")
    assert one.pid and attempts.stat().st_size == 5


def test_a_log_directory_that_somebody_deleted_is_told_in_a_sentence(group_of):
    group = group_of("one", "two")
    group.start()
    two = group.benches["two"]
    two.instance.stop(30)
    os.unlink(os.path.join(two.layout.log_dir, "console.log"))
    os.rmdir(two.layout.log_dir)
    with pytest.raises(
        ServiceError, match="one: supervisord refuses.*two/logs/console.log does not exist"
    ):
        group.supervisor.install("one", group.benches["one"].generation().definition)


def test_the_last_one_removed_takes_supervisord_along(group_of):
    group = group_of("one", "two")
    group.start()
    daemon = daemon_pid(group.supervisor)
    group.benches["one"].instance.remove(30)
    assert (
        group.pids()["one"] is None
        and group.pids()["two"]
        and daemon_pid(group.supervisor) == daemon
    )
    group.benches["two"].instance.remove(30)
    wait_until(lambda: start_ticks(daemon) is None, 60, "supervisord is gone")
    assert not os.path.exists(group.supervisor.directory)
    assert os.path.exists(group.benches["two"].conf("current", "server.properties"))
    group.start()
    assert all(group.pids().values())

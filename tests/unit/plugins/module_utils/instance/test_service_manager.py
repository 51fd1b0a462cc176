# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract of ServiceManager, passed by each of them with real processes.

supervisord is the real one; systemd is a small systemctl of our own on the PATH (a real one has no place
in a unit test; Molecule has it).
"""

import os
import signal
import subprocess
import sys
import time

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.instance import StartFailed
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    ServiceError,
    ServiceManager,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.supervisor import Supervisor
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.systemd import Systemd
from tests.support import fake_systemctl
from tests.support.outside import wait_until
from tests.support.small_service import Bench


class Impatient(Supervisor):
    """supervisord that gives a program up after its second attempt, for tests of that."""

    def definition(self, name, command, console):
        text = super().definition(name, command, console)
        return text.replace("startretries = 30", "startretries = 1").replace("secs = 5", "secs = 1")


class Host:
    """A directory in the place of a machine with systemd."""

    def __init__(self, root, monkeypatch):
        self.directory = os.path.join(str(root), "systemd")
        self.units = os.path.join(self.directory, "units")
        os.makedirs(self.units)
        binary = os.path.join(self.directory, "systemctl")
        with open(binary, "w") as handle:
            handle.write(
                f'#!/bin/sh\nexec {sys.executable} -S {fake_systemctl.__file__} {self.directory} "$@"\n'
            )
        os.chmod(binary, 0o755)
        monkeypatch.setenv("PATH", self.directory + os.pathsep + os.environ["PATH"])
        place = os.path.join(str(root), "one")
        self.unit = (
            "[Service]\n"
            f"ExecStart={place}/conf/current/launch\n"
            f"StandardOutput=append:{place}/logs/console.log\n"
        )
        self.manager = Systemd(self.run, self.unit, self.units)

    def run(self, words):
        """As AnsibleModule.run_command."""
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def flag(self, name, there=True):
        """Set or clear `queue` or `broken`."""
        path = os.path.join(self.directory, name)
        if there:
            open(path, "w").close()
        else:
            os.unlink(path)

    @property
    def calls(self):
        """What systemctl was asked, one line a call."""
        with open(os.path.join(self.directory, "calls")) as handle:
            return handle.read().splitlines()


@pytest.fixture
def host(tmp_path, monkeypatch):
    return Host(tmp_path, monkeypatch)


def benched(tmp_path, manager):
    """Yield a Bench of `manager`; ends its process and forgets it."""
    bench = Bench(tmp_path, manager)
    yield bench
    try:
        bench.instance.remove(30)
    except (ServiceError, OSError):
        if bench.pid:
            os.kill(bench.pid, signal.SIGKILL)


@pytest.fixture(params=["supervisor", "systemd"])
def bench(request, tmp_path):
    if request.param == "supervisor":
        pytest.importorskip("supervisor")
        manager = Impatient(os.path.join(str(tmp_path), "supervisor"))
    else:
        manager = request.getfixturevalue("host").manager
    yield from benched(tmp_path, manager)


@pytest.fixture
def systemd(host, tmp_path):
    yield from benched(tmp_path, host.manager)


def test_each_is_a_service_manager(bench):
    assert isinstance(bench.service, ServiceManager)


def test_a_start_lasts_until_its_stop(bench):
    bench.stage()
    assert not bench.service.wants_running("one")
    bench.turn()
    pid, attempt = bench.pid, bench.service.attempt("one")
    assert bench.service.supervises("one", pid) and not bench.service.supervises("one", os.getpid())
    assert bench.service.wants_running("one") and not attempt.over
    assert bench.service.attempt("one") == attempt, "the same process is the same attempt"
    assert bench.instance.stop(120) is True
    assert start_ticks(pid) is None and not bench.service.wants_running("one")
    assert bench.service.attempt("one").over and not bench.service.supervises("one", pid)


def test_a_killed_process_is_another_attempt(bench):
    bench.stage()
    bench.turn()
    pid, attempt = bench.pid, bench.service.attempt("one")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: bench.pid not in (None, pid), 60, "it is back")
    again = bench.service.attempt("one")
    assert again.number != attempt.number and not again.over
    assert bench.instance.process().supervised


def test_a_stop_in_progress_is_not_over_yet(bench):
    bench.stage(stop_seconds=6)
    bench.turn()
    with pytest.raises(ServiceError, match="still runs 0.5 s after SIGTERM. It is left to finish"):
        bench.instance.stop(0.5)
    assert bench.service.wants_running("one") and bench.pid
    assert bench.instance.stop(120) is True


def test_what_ends_again_and_again_is_given_up(bench):
    bench.stage(exit=3, message="no such class")
    with pytest.raises(StartFailed, match="exits again and again. It is stopped") as failed:
        bench.turn()
    assert "no such class" in failed.value.journal
    bench.service.start("one")
    wait_until(lambda: given_up(bench.service, "one"), 60, "it gives up")


def given_up(service, name):
    """Whether it is over, and stays so: one that took too long to fail is between two attempts for a moment."""
    for _look in range(15):
        if not service.attempt(name).over or service.wants_running(name):
            return False
        time.sleep(0.1)
    return True


def test_what_was_never_installed_can_be_stopped_and_removed(bench):
    bench.service.stop("one")
    bench.service.remove("one")
    assert not bench.service.wants_running("one") and bench.service.attempt("one").over


def test_what_is_removed_is_forgotten(bench):
    bench.stage()
    bench.turn()
    bench.instance.remove(30)
    bench.service.remove("one")
    assert bench.pid is None and not bench.service.wants_running("one")


def test_what_is_refused_is_a_sentence(bench):
    with pytest.raises((ServiceError, OSError)):
        bench.service.start("one")  # it was never installed


# ---------------------------------------------------------------- systemd alone


def test_a_start_that_is_queued_is_waited_for(host, systemd):
    """Its unit comes after another one: it is inactive meanwhile, and has not failed."""
    systemd.stage()
    host.flag("queue")
    polls = []

    def sleep(_seconds):
        polls.append(host.manager.attempt("one").over)
        if len(polls) == 5:
            host.flag("queue", there=False)

    systemd.instance._sleep = sleep
    systemd.turn()
    assert polls[:5] == [False] * 5 and systemd.pid and systemd.reasons == []


def test_a_unit_is_enabled_and_its_earlier_failures_are_forgotten(host, systemd):
    systemd.stage()
    systemd.turn()
    changing = [call.split()[0] for call in host.calls if not call.startswith(("show", "watch"))]
    assert changing == ["daemon-reload", "enable", "reset-failed", "start"]
    path = os.path.join(host.units, "one.service")
    with open(path) as handle:
        assert handle.read() == host.unit
    assert os.stat(path).st_mode & 0o777 == 0o644
    systemd.instance.remove(30)
    assert not os.path.exists(path) and host.calls[-2:] == [
        "disable --quiet one.service",
        "daemon-reload",
    ]


def test_a_unit_that_is_there_already_needs_no_room_on_the_disk(host, systemd, monkeypatch):
    """So that what was in effect comes back although the disk below /etc is full."""
    host.manager.install("one", host.unit)
    before = os.stat(os.path.join(host.units, "one.service")).st_ino
    host.manager.install("one", host.unit)
    assert os.stat(os.path.join(host.units, "one.service")).st_ino == before


def test_a_systemd_that_does_not_answer_is_not_taken_for_a_unit_that_is_down(host, systemd):
    systemd.stage()
    systemd.turn()
    host.flag("broken")
    for ask in (
        lambda: host.manager.wants_running("one"),
        lambda: host.manager.attempt("one"),
        lambda: host.manager.stop("one"),
        systemd.instance.process,
    ):
        with pytest.raises(ServiceError, match="systemctl show one.service.*Failed to connect"):
            ask()
    host.flag("broken", there=False)


# ---------------------------------------------------------------- supervisord alone


def test_supervisord_has_no_reason_to_kill(tmp_path):
    """After stopwaitsecs it sends SIGKILL, and nothing can switch that off."""
    text = Supervisor(str(tmp_path)).definition("one", "/bin/true", "/dev/null")
    (seconds,) = [line.split("=")[1] for line in text.splitlines() if "stopwaitsecs" in line]
    assert int(seconds) >= 30 * 24 * 3600


def test_a_socket_in_somebody_elses_directory_is_not_talked_to(tmp_path, monkeypatch):
    """Whoever makes /tmp/kafkaops-UID first could otherwise answer in supervisord's name."""
    supervisor = Supervisor(str(tmp_path / "supervisor"))
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    monkeypatch.setattr(
        Supervisor, "socket_path", property(lambda self: str(tmp_path / "link" / "s.sock"))
    )
    (tmp_path / "link").symlink_to(theirs)
    talked = []
    monkeypatch.setattr("socket.socket.connect", lambda *args: talked.append(args))
    assert supervisor.alive() is False and supervisor.process("one") is None
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        supervisor.start("one")
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        supervisor.install("one", "")
    assert talked == []

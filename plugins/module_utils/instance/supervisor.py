# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""supervisord as service manager: for machines without root or systemd.

Traps that shape this file, each seen with supervisor 4.3.0: `update` without a name restarts every
changed program at once; `restart` keeps the old command line; a killed supervisord leaves its children
serving and a new one would start them a second time (hence `autostart=false` and the start records);
socket paths of more than 107 bytes fail (hence the short runtime directory, which must not depend on
the caller's environment: XDG_RUNTIME_DIR differs between a desktop, ssh and cron, and goes at logout);
after `stopwaitsecs` it always sends SIGKILL, there is no switch (hence the very long one).
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import http.client
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import xmlrpc.client
from typing import Any, Callable, Dict, Iterator, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    exclusive,
    remove_partials,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    Attempt,
    ServiceError,
    ServiceManager,
    holds,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

RUNTIME = "/tmp"
RUNNING = ("STARTING", "RUNNING", "BACKOFF", "STOPPING")
WAIT_SECONDS = 30

SUPERVISORD_CONF = """; Written by kafkaops.cluster.
[unix_http_server]
file = {socket}
chmod = 0700

[supervisord]
logfile = {directory}/supervisord.log
logfile_maxbytes = 10MB
logfile_backups = 3
pidfile = {directory}/supervisord.pid
childlogdir = {directory}
umask = 027
identifier = kafkaops

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface

[supervisorctl]
serverurl = unix://{socket}

[include]
files = {programs}/*.conf
"""

# startretries with supervisor's growing pauses (1 s, 2 s, 3 s ...) must outlast ZooKeeper's session
# timeout: until then the registration of a killed broker turns every new start away.
# stopwaitsecs is a year: a process that takes long to stop is waited for, never killed.
PROGRAM_CONF = """[program:{name}]
command = {command}
autostart = false
autorestart = true
startsecs = 5
startretries = 30
stopsignal = TERM
stopwaitsecs = 31536000
redirect_stderr = true
stdout_logfile = {console}
stdout_logfile_maxbytes = 10MB
stdout_logfile_backups = 3
"""


class _Transport(xmlrpc.client.Transport):
    def __init__(self, path: str):
        super().__init__()
        self._path = path

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        path = self._path

        class Connection(http.client.HTTPConnection):
            def connect(self) -> None:
                self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.sock.connect(path)

        return Connection("localhost")


class Supervisor(ServiceManager):
    """One supervisord below `directory`, shared by all instances of a local cluster."""

    of_the_machine = False
    keeps_console = True
    runs_after_exit = False
    wakes_what_it_stops = False

    def __init__(
        self,
        directory: str,
        python: str = sys.executable,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self.directory = directory
        self.python = python
        self._clock = clock
        self._sleep = sleep

    # The daemon

    @property
    def socket_path(self) -> str:
        """Return the socket's path: short, private to the user, one for each directory."""
        digest = hashlib.sha256(os.path.realpath(self.directory).encode("utf-8")).hexdigest()[:12]
        return os.path.join(RUNTIME, f"kafkaops-{os.getuid()}", f"{digest}.sock")

    def _check_runtime_directory(self) -> None:
        """Raise PermissionError where the socket's directory, in a place open to all, is not ours.

        What is found there may be somebody else's server, which would be told what to run.
        """
        runtime = os.path.dirname(self.socket_path)
        status = os.lstat(runtime)
        if status.st_uid != os.getuid() or os.path.islink(runtime) or not os.path.isdir(runtime):
            raise PermissionError(f"{runtime} belongs to somebody else: ask them to remove it")

    def _call(self, method: str, *args: Any) -> Any:
        self._check_runtime_directory()
        transport = _Transport(self.socket_path)
        proxy = xmlrpc.client.ServerProxy("http://localhost", transport=transport)
        return getattr(proxy.supervisor, method)(*args)

    def _must(self, name: str, method: str, *args: Any, unless: Sequence[str] = ()) -> None:
        """Call `method`; a fault that is none of `unless` becomes a sentence about `name`."""
        try:
            self._call(method, *args)
        except xmlrpc.client.Fault as error:
            if not any(word in error.faultString for word in unless):
                raise ServiceError(f"{name}: supervisord refuses: {error.faultString}") from error
        except (xmlrpc.client.Error, http.client.HTTPException) as error:
            raise ConnectionError(f"supervisord broke off: {error}") from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        os.makedirs(self.directory, mode=0o750, exist_ok=True)
        with exclusive(os.path.join(self.directory, "lock"), mode=0o640):
            yield

    def alive(self) -> bool:
        """Tell whether supervisord answers."""
        try:
            return bool(self._call("getState")["statename"])
        except (OSError, xmlrpc.client.Error, http.client.HTTPException):
            return False

    @property
    def _configuration(self) -> str:
        return os.path.join(self.directory, "supervisord.conf")

    def _program(self, name: str) -> str:
        return os.path.join(self.directory, "programs", f"{name}.conf")

    def _unreachable(self) -> Optional[int]:
        """Return the pid of this directory's supervisord where it lives but does not answer, or None.

        It has lost its socket (somebody cleaned up); seen from here its children are orphans, but it
        would start each of them again as soon as it is stopped.
        """
        try:
            with open(os.path.join(self.directory, "supervisord.pid"), encoding="ascii") as handle:
                pid = int(handle.read())
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as handle:
                words = handle.read().split("\0")
        except (OSError, ValueError):
            return None
        ours = os.path.realpath(self._configuration)
        if not any(word and os.path.realpath(word) == ours for word in words):
            return None
        return None if self.alive() else pid

    def _end_unreachable(self) -> None:
        """End a supervisord that nobody can reach; its children live on as orphans."""
        pid = self._unreachable()
        if pid is None:
            return
        try:
            # Not SIGTERM: that would stop every instance at once.
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        # A zombie has an empty command line.
        wait_until(
            lambda: not _read_bytes(f"/proc/{pid}/cmdline"), WAIT_SECONDS, self._clock, self._sleep
        )

    def _ensure_alive(self) -> None:
        if self.alive():
            return
        self._end_unreachable()
        os.makedirs(os.path.dirname(self.socket_path), mode=0o700, exist_ok=True)
        self._check_runtime_directory()
        programs = os.path.join(self.directory, "programs")
        os.makedirs(programs, mode=0o750, exist_ok=True)
        write_atomically(
            self._configuration,
            SUPERVISORD_CONF.format(
                socket=_escaped(self.socket_path),
                directory=_escaped(self.directory),
                programs=_escaped(_pattern(programs)),
            ),
        )
        # A new session and none of the caller's variables: it must outlive the playbook and its terminal.
        kept = ("PATH", "HOME", "LANG", "TZ")
        process = subprocess.run(
            [self.python, "-m", "supervisor.supervisord", "-c", self._configuration],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={key: os.environ[key] for key in kept if key in os.environ},
            cwd=self.directory,
            start_new_session=True,
            check=False,
        )
        if process.returncode != 0:
            said = process.stdout.decode("utf-8", "replace").strip()
            raise ServiceError(f"supervisord did not start: {said}")
        if not wait_until(self.alive, WAIT_SECONDS, self._clock, self._sleep):
            raise ServiceError(f"supervisord does not answer; see {self.directory}/supervisord.log")

    def _shutdown(self) -> None:
        pid_file = os.path.join(self.directory, "supervisord.pid")
        self._call("shutdown")
        # The call returns before it is done; the pid file goes last.
        wait_until(lambda: not os.path.exists(pid_file), WAIT_SECONDS, self._clock, self._sleep)

    # Its programs

    def process(self, name: str) -> Optional[Dict[str, Any]]:
        """Return supervisord's view of one program, or None where it has none or does not answer."""
        try:
            return self._call("getProcessInfo", name)
        except (OSError, xmlrpc.client.Error, http.client.HTTPException):
            return None

    def definition(self, name: str, command: str, console: str) -> str:
        """Return the program section for an instance."""
        return PROGRAM_CONF.format(
            name=name,
            command=_escaped(shlex.quote(command)),
            # supervisor 4.3 expands this one value twice
            console=_escaped(_escaped(console)),
        )

    def install(self, name: str, definition: str) -> None:
        """Make `definition` that of the program; start supervisord if needed."""
        with self._locked():
            self._ensure_alive()
            if not holds(self._program(name), definition):
                write_atomically(self._program(name), definition)
            self._must(name, "reloadConfig")
            # A program whose section changed keeps its old one until its group is made anew.
            self._must(name, "removeProcessGroup", name, unless=["BAD_NAME"])
            self._must(name, "addProcessGroup", name)

    def start(self, name: str) -> None:
        """Start the program without waiting for it to stay up."""
        # SPAWN_ERROR: it has ended already, which whoever waits for it sees, and says why
        self._must(name, "startProcess", name, False, unless=["ALREADY_STARTED", "SPAWN_ERROR"])

    def stop(self, name: str) -> None:
        """Ask for a controlled stop (SIGTERM) without waiting for the exit; another call signals again."""
        try:
            if (self.process(name) or {}).get("statename") == "STOPPING":
                self._must(name, "signalProcess", name, "TERM", unless=["NOT_RUNNING", "BAD_NAME"])
            else:
                self._must(name, "stopProcess", name, False, unless=["NOT_RUNNING", "BAD_NAME"])
        except OSError:
            # No supervisord, nothing supervised: the caller stops the orphan by its record.
            with self._locked():
                self._end_unreachable()

    def attempt(self, name: str) -> Attempt:
        """Return how far the program's start is; supervisord has one start time for each attempt."""
        info = self.process(name) or {}
        over = info.get("statename") in ("FATAL", "EXITED", "STOPPED", None)
        return Attempt(int(info.get("start", 0)), over)

    def supervises(self, name: str, pid: int) -> bool:
        """Tell whether the process `pid` is a child of this supervisord under `name`."""
        info = self.process(name)
        return bool(info and info["statename"] in RUNNING and info["pid"] == pid)

    def wants_running(self, name: str) -> bool:
        """Tell whether supervisord runs the program or is about to start it again."""
        info = self.process(name)
        return bool(info and info["statename"] in RUNNING)

    def stopping(self, name: str) -> bool:
        """Tell whether supervisord waits for the program to end."""
        return (self.process(name) or {}).get("statename") == "STOPPING"

    def remove(self, name: str) -> None:
        """Forget a stopped program; the last one takes supervisord and its files with it."""
        if not os.path.isdir(self.directory):
            return
        programs = os.path.join(self.directory, "programs")
        with self._locked():
            if os.path.exists(self._program(name)):
                os.unlink(self._program(name))
            if os.path.isdir(programs):
                remove_partials(programs)
            last = not os.path.isdir(programs) or not os.listdir(programs)
            if self.alive():
                self._must(name, "removeProcessGroup", name, unless=["BAD_NAME"])
                self._must(name, "reloadConfig")
                if last:
                    self._shutdown()
            if last and not self.alive() and self._unreachable() is None:
                self._clean(programs)

    def _clean(self, programs: str) -> None:
        """Remove what supervisord and this class have written; the directory too, unless it holds more."""
        for name in ("supervisord.conf", "supervisord.log", "supervisord.log.*", "lock"):
            for path in glob.glob(os.path.join(glob.escape(self.directory), name)):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        for path in (programs, self.directory):
            with contextlib.suppress(OSError):
                os.rmdir(path)


def _escaped(text: str) -> str:
    """Return a path as supervisord's files want it: it expands %(names)s in every value."""
    return text.replace("%", "%%")


def _pattern(path: str) -> str:
    """Return a pattern without blanks that matches `path`: supervisor splits its patterns at blanks."""
    return "".join("?" if letter.isspace() else letter for letter in glob.escape(path))


def _read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except OSError:
        return b""

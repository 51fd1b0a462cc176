# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""supervisord as service manager: for machines without root or systemd.

Traps that shape this file, each seen with supervisor 4.3.0: `update` without a name restarts every
changed program at once; `restart` keeps the old command line; a killed supervisord leaves its children
serving and a new one would start them a second time (hence `autostart=false` and the start records);
socket paths of more than 107 bytes fail (hence the short runtime directory, which must not depend on
the caller's environment: XDG_RUNTIME_DIR differs between a desktop, ssh and cron, and goes at logout).

Private to the collection: names may change without notice.
"""

from __future__ import annotations

import fcntl
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
from contextlib import contextmanager

RUNTIME = "/tmp"
RUNNING = ("STARTING", "RUNNING", "BACKOFF", "STOPPING")

SUPERVISORD_CONF = """; Written by kafkaops.cluster.
[unix_http_server]
file = %(socket)s
chmod = 0700

[supervisord]
logfile = %(directory)s/supervisord.log
logfile_maxbytes = 10MB
logfile_backups = 3
pidfile = %(directory)s/supervisord.pid
childlogdir = %(directory)s
umask = 027
identifier = kafkaops

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface

[supervisorctl]
serverurl = unix://%(socket)s

[include]
files = %(programs)s/*.conf
"""

# startretries with supervisor's growing pauses (1 s, 2 s, 3 s ...) must outlast ZooKeeper's session
# timeout: until then the registration of a killed broker turns every new start away.
PROGRAM_CONF = """[program:%(name)s]
command = %(command)s
autostart = false
autorestart = true
startsecs = 5
startretries = 30
stopsignal = TERM
stopwaitsecs = %(stop_timeout)s
redirect_stderr = true
stdout_logfile = %(console)s
stdout_logfile_maxbytes = 10MB
stdout_logfile_backups = 3
"""


class ServiceError(Exception):
    """The service manager refused or did not answer; the text is a sentence for the user."""


class _Transport(xmlrpc.client.Transport):
    def __init__(self, path):
        super().__init__()
        self._path = path

    def make_connection(self, host):
        path = self._path

        class Connection(http.client.HTTPConnection):
            def connect(self):
                self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.sock.connect(path)

        return Connection("localhost")


class Supervisor:
    """One supervisord below `directory`, shared by all instances of a local cluster."""

    def __init__(self, directory, python=sys.executable, clock=time.monotonic, sleep=time.sleep):
        self.directory = directory
        self.python = python
        self._clock = clock
        self._sleep = sleep

    @property
    def socket_path(self):
        """Return the socket's path: short, private to the user, one for each directory."""
        digest = hashlib.sha256(os.path.realpath(self.directory).encode("utf-8")).hexdigest()[:12]
        return os.path.join(RUNTIME, "kafkaops-%d" % os.getuid(), digest + ".sock")

    def _call(self, method, *args):
        proxy = xmlrpc.client.ServerProxy(
            "http://localhost", transport=_Transport(self.socket_path)
        )
        return getattr(proxy.supervisor, method)(*args)

    def _must(self, name, method, *args, unless=()):
        """Call `method`; a fault that is none of `unless` is told as a sentence about `name`."""
        try:
            self._call(method, *args)
        except xmlrpc.client.Fault as error:
            if not any(word in error.faultString for word in unless):
                raise ServiceError(
                    "%s: supervisord refuses: %s" % (name, error.faultString)
                ) from error
        except (xmlrpc.client.Error, http.client.HTTPException) as error:
            raise ConnectionError("supervisord broke off: %s" % error) from error

    @contextmanager
    def _locked(self):
        os.makedirs(self.directory, mode=0o750, exist_ok=True)
        with open(os.path.join(self.directory, "lock"), "w", encoding="utf-8") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def alive(self):
        """Tell whether supervisord answers."""
        try:
            return bool(self._call("getState")["statename"])
        except (OSError, xmlrpc.client.Error, http.client.HTTPException):
            return False

    @property
    def _configuration(self):
        return os.path.join(self.directory, "supervisord.conf")

    def _unreachable(self):
        """Return the pid of this directory's supervisord where it lives but does not answer, or None.

        It has lost its socket (somebody cleaned up); seen from here its children are orphans, but it
        would start each of them again as soon as it is stopped.
        """
        try:
            with open(os.path.join(self.directory, "supervisord.pid"), encoding="ascii") as handle:
                pid = int(handle.read())
            with open("/proc/%d/cmdline" % pid, encoding="utf-8", errors="replace") as handle:
                words = handle.read().split("\0")
        except (OSError, ValueError):
            return None
        ours = os.path.realpath(self._configuration)
        if not any(word and os.path.realpath(word) == ours for word in words):
            return None
        return None if self.alive() else pid

    def _end_unreachable(self):
        """End a supervisord that nobody can reach; its children live on as orphans."""
        pid = self._unreachable()
        if pid is None:
            return
        try:
            # Not SIGTERM: that would stop every instance at once.
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        deadline = self._clock() + 30
        while os.path.exists("/proc/%d/cmdline" % pid) and self._clock() < deadline:
            if not _read_bytes("/proc/%d/cmdline" % pid):
                break  # a zombie
            self._sleep(0.05)

    def _ensure_alive(self):
        if self.alive():
            return
        self._end_unreachable()
        runtime = os.path.dirname(self.socket_path)
        os.makedirs(runtime, mode=0o700, exist_ok=True)
        status = os.lstat(runtime)
        if status.st_uid != os.getuid() or not os.path.isdir(runtime) or os.path.islink(runtime):
            raise ServiceError("%s belongs to somebody else: ask them to remove it" % runtime)
        os.makedirs(os.path.join(self.directory, "programs"), mode=0o750, exist_ok=True)
        write_atomically(
            self._configuration,
            SUPERVISORD_CONF
            % {
                "socket": _escaped(self.socket_path),
                "directory": _escaped(self.directory),
                "programs": _escaped(_pattern(os.path.join(self.directory, "programs"))),
            },
        )
        # A new session and none of the caller's variables: it must outlive the playbook and its terminal.
        environment = {
            key: os.environ[key] for key in ("PATH", "HOME", "LANG", "TZ") if key in os.environ
        }
        process = subprocess.run(
            [self.python, "-m", "supervisor.supervisord", "-c", self._configuration],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=self.directory,
            start_new_session=True,
            check=False,
        )
        if process.returncode != 0:
            raise ServiceError(
                "supervisord did not start: %s" % process.stdout.decode("utf-8", "replace").strip()
            )
        deadline = self._clock() + 30
        while not self.alive():
            if self._clock() > deadline:
                raise ServiceError(
                    "supervisord does not answer; see %s/supervisord.log" % self.directory
                )
            self._sleep(0.05)

    def process(self, name):
        """Return supervisord's view of one program as a dict, or None where it has none."""
        try:
            return self._call("getProcessInfo", name)
        except (OSError, xmlrpc.client.Error, http.client.HTTPException):
            return None

    def supervises(self, name, pid):
        """Tell whether the process `pid` is a child of this supervisord under `name`."""
        info = self.process(name)
        return bool(info and info["statename"] in RUNNING and info["pid"] == pid)

    def wants_running(self, name):
        """Tell whether supervisord runs the program or is about to start it again."""
        info = self.process(name)
        return bool(info and info["statename"] in RUNNING)

    def unit(self, name, command, console, stop_timeout):
        """Return the program section for an instance."""
        return PROGRAM_CONF % {
            "name": name,
            "command": _escaped(shlex.quote(command)),
            # supervisor 4.3 expands this one value twice
            "console": _escaped(_escaped(console)),
            "stop_timeout": stop_timeout,
        }

    def install(self, name, text):
        """Make `text` the program `name`, which must not be running; start supervisord if needed."""
        with self._locked():
            self._ensure_alive()
            path = os.path.join(self.directory, "programs", name + ".conf")
            write_atomically(path, text)
            self._must(name, "reloadConfig")
            # A program whose section changed keeps its old one until its group is made anew.
            self._must(name, "removeProcessGroup", name, unless=["BAD_NAME"])
            self._must(name, "addProcessGroup", name)

    def start(self, name):
        """Start the program without waiting for it to stay up."""
        self._must(name, "startProcess", name, False, unless=["ALREADY_STARTED"])

    def stop(self, name):
        """Ask for a controlled stop (SIGTERM) without waiting for the exit."""
        try:
            self._must(name, "stopProcess", name, False, unless=["NOT_RUNNING", "BAD_NAME"])
        except OSError:
            # No supervisord, nothing supervised: the caller stops the orphan by its record.
            with self._locked():
                self._end_unreachable()

    def failures(self, name):
        """Return a number that grows with each failed start, and whether the manager has given up."""
        info = self.process(name) or {}
        return info.get("start", 0), info.get("statename") in ("FATAL", "EXITED", "STOPPED", None)

    def remove(self, name):
        """Forget a stopped program; the last one takes supervisord with it."""
        with self._locked():
            path = os.path.join(self.directory, "programs", name + ".conf")
            if os.path.exists(path):
                os.unlink(path)
            if not self.alive():
                return
            self._must(name, "removeProcessGroup", name, unless=["BAD_NAME"])
            self._must(name, "reloadConfig")
            if not os.listdir(os.path.join(self.directory, "programs")):
                self._shutdown()

    def _shutdown(self):
        pid_file = os.path.join(self.directory, "supervisord.pid")
        self._call("shutdown")
        deadline = self._clock() + 30
        # The call returns before it is done; the pid file goes last.
        while os.path.exists(pid_file) and self._clock() < deadline:
            self._sleep(0.05)


def _escaped(text):
    """Return a path as supervisord's files want it: it expands %(names)s in every value."""
    return text.replace("%", "%%")


def _pattern(path):
    """Return a pattern without blanks that matches `path`: supervisor splits its patterns at blanks."""
    return "".join("?" if letter.isspace() else letter for letter in glob.escape(path))


def _read_bytes(path):
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except OSError:
        return b""


def write_atomically(path, text, mode=0o640):
    """Replace `path` by a complete file or not at all."""
    temporary = "%s.%d.tmp" % (path, os.getpid())
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    os.chmod(temporary, mode)
    os.replace(temporary, path)


def terminate(pid):
    """Send SIGTERM to a process that no service manager owns."""
    os.kill(pid, signal.SIGTERM)

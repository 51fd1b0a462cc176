# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""A program that is no JVM of the cluster, kept running by a service manager as its instances are.

It holds a lock of its own against a second process, so there is no start record. What it is started by
is a script; whatever must make it start anew is in the script, if only as a fingerprint.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shlex
import time
from dataclasses import dataclass
from typing import Dict, Iterable, Iterator, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import write_atomically
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    ServiceError,
    ServiceManager,
    holds,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

SCRIPT, CONSOLE = "launch", "console.log"
_LINES = 15
# So much of the end of a console is read for them: one of a program that dies at each start is long.
_TAIL_BYTES = 64 * 1024
# One that is longer is put aside at the next start, as supervisord does; systemd appends, and starts it every 5 s.
_PUT_ASIDE = 'find "$1" -prune -type f -size +10M -exec mv -f {} "$1.1" ";" 2>/dev/null'
UNCHANGED = -1  # a group, for chown


@dataclass(frozen=True)
class Program:
    """What is run, below which directory, and by what one sees that it works."""

    name: str
    directory: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    made_of: Sequence[str]  # files and directories; a change is a reason to start anew
    sign: str  # a file that it writes as soon as it works
    # the account of its process, where systemd starts it; by default that of this one
    user: str = ""

    @property
    def script(self) -> str:
        """Path of the script that starts it."""
        return os.path.join(self.directory, SCRIPT)

    @property
    def console(self) -> str:
        """Path of the file with what it says."""
        return os.path.join(self.directory, CONSOLE)


def script_text(program: Program, fingerprint: str) -> str:
    """Return the text of the script."""
    lines = ["#!/bin/sh", f"# Written by kafkaops.cluster. Made of {fingerprint}"]
    if program.user:
        lines.append(f"# systemd runs it as {program.user}")
    lines += [
        f"export {key}={shlex.quote(str(value))}"
        for key, value in sorted(program.environment.items())
    ]
    # Spark makes a folder where it is started, and systemd starts everything at the root.
    lines.append(f"cd {shlex.quote(program.directory)}")
    lines.append("exec " + " ".join(shlex.quote(word) for word in program.argv))
    return "\n".join(lines) + "\n"


def unit_text(program: Program, what: str) -> str:
    """Return the text of its systemd unit; `what` is its description.

    Its account opens the console: systemd would do so as root, also what a link there leads to.
    """
    shell = f'{_PUT_ASIDE}; exec "$0" >>"$1" 2>&1'
    words = ("/bin/sh", "-c", shell, program.script, program.console)
    # as systemd reads them
    escaped = [word.replace("\\", "\\\\").replace('"', '\\"') for word in words]
    command = " ".join(f'"{word}"' for word in escaped).replace("%", "%%").replace("$", "$$")
    return f"""\
# Written by kafkaops.cluster.
[Unit]
Description={what}
Wants=network-online.target
After=network-online.target
# it is never given up: what it watches may be away for long
StartLimitIntervalSec=0

[Service]
User={program.user}
ExecStart={command}
Restart=always
RestartSec=5
# it ends in order, and is never killed
SendSIGKILL=no
KillMode=mixed
TimeoutStopSec=120

[Install]
WantedBy=multi-user.target
"""


def fingerprint_of(paths: Iterable[str]) -> str:
    """Return a digest of these files, and of all below these directories but what Python compiles."""
    digest = hashlib.sha256()
    for path in paths:
        for name in sorted(_files(path)):
            digest.update(os.path.relpath(name, path).encode("utf-8") + b"\0")
            with open(name, "rb") as handle:
                digest.update(hashlib.sha256(handle.read()).digest())
    return digest.hexdigest()


def _files(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield path
    for directory, _names, files in os.walk(path):
        if os.path.basename(directory) != "__pycache__":
            yield from (os.path.join(directory, name) for name in files)


def start(
    program: Program, manager: ServiceManager, check_mode: bool, timeout: float
) -> Dict[str, object]:
    """Make it run what is wanted, and wait until it shows that it works; the module's result."""
    text = script_text(program, fingerprint_of(program.made_of))
    definition = manager.definition(program.name, program.script, program.console)
    same = holds(program.script, text)
    running = manager.wants_running(program.name)
    if same and running:
        return {"changed": False, "running": True}
    if check_mode:
        return {"changed": True, "running": running}
    if running:
        _stop(program.name, manager, timeout)
    os.makedirs(program.directory, mode=0o755, exist_ok=True)
    # With its owner from the first moment: in a directory of that account the name may be a link by the next.
    owner = (pwd.getpwnam(program.user).pw_uid, UNCHANGED) if program.user else None
    write_atomically(program.script, text, mode=0o700, owner=owner)
    manager.install(program.name, definition)
    before = _written(program.sign)
    manager.start(program.name)
    over = wait_until(
        lambda: _written(program.sign) != before or manager.attempt(program.name).over,
        timeout,
        time.monotonic,
        time.sleep,
    )
    if _written(program.sign) == before:
        what = "ended at once" if over else f"gave no sign within {timeout:.0f} s"
        raise ServiceError(f"{program.name} {what}; its last lines: {_last_lines(program.console)}")
    return {"changed": True, "running": True}


def sign_of(program: Program) -> Dict[str, object]:
    """How old its sign is (`sign_age_seconds`), and the end of what it has said (`last_lines`); empty without a sign.

    A service manager starts what dies at each start again and again: it is to run, and does not work.
    """
    written_ns = _written(program.sign)[1]
    if not written_ns:
        return {}
    age = max(0, int(time.time() - written_ns / 10**9))
    return {"sign_age_seconds": age, "last_lines": _last_lines(program.console)}


def stop(
    program: Program, manager: ServiceManager, check_mode: bool, timeout: float, remove: bool
) -> Dict[str, object]:
    """Stop it, and forget it with `remove`; the module's result."""
    running = manager.wants_running(program.name)
    known = os.path.exists(program.script)
    changed = running or (remove and known)
    if check_mode or not changed:
        return {"changed": changed, "running": running}
    if running:
        _stop(program.name, manager, timeout)
    if remove or program.user:  # systemd would start it at the next boot
        manager.remove(program.name)
    if remove:
        os.unlink(program.script)
    return {"changed": True, "running": False}


def _stop(name: str, manager: ServiceManager, timeout: float) -> None:
    manager.stop(name)
    if not wait_until(lambda: not manager.wants_running(name), timeout, time.monotonic, time.sleep):
        raise ServiceError(f"{name} still runs {timeout:.0f} s after it was asked to stop")


def _written(path: str) -> Tuple[int, int]:
    """Return what changes whenever the file is replaced; (0, 0) if there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns


def _last_lines(path: str) -> str:
    """The end of the console; of a link nothing, which whoever writes there may have led to any file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as handle:
            handle.seek(max(0, os.fstat(descriptor).st_size - _TAIL_BYTES))
            lines = handle.read().decode("utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_LINES:]).strip() or "none"
    except OSError:
        return "none"

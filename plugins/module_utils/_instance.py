# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One instance of a JVM service on this host: what is staged, what runs, and its turn.

On disk, below the instance's configuration directory:

    generations/<fingerprint>/   complete, never changed: files, launch script, meaning.json
    next -> generations/...      what the next start is to use
    current -> generations/...   what a start uses, whoever starts it
    previous -> generations/...  what `current` was before

Release and configuration change together, by one rename, in the instance's turn: a crash or a reboot
in between starts what ran before.

Private to the collection: names may change without notice.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import socket
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

from ansible_collections.kafkaops.cluster.plugins.module_utils._four_letter_words import ask
from ansible_collections.kafkaops.cluster.plugins.module_utils._generation import (
    GUARD,
    fingerprint,
    guard_script,
    launch_script,
    masked_option,
    masked_text,
    reasons,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._service_supervisor import (
    ServiceError,
    terminate,
    write_atomically,
)

GENERATIONS_KEPT = 5
PARTIAL = ".partial"
CONSOLE = "console.log"


class StartFailed(Exception):
    """The instance did not come up; `journal` holds the last lines of its logs.

    `exits`: its process ends again and again; otherwise it may only be slow.
    """

    def __init__(self, message, journal, exits=False):
        super().__init__(message)
        self.journal = journal
        self.exits = exits


@dataclass(frozen=True)
class Layout:
    """Where an instance lives. `uid`, `gid`: the account's numbers, or -1 to leave the owner alone."""

    name: str
    config_dir: str
    state_dir: str
    log_dir: str
    data_dirs: tuple = ()
    uid: int = -1
    gid: int = -1


@dataclass(frozen=True)
class Process:
    """A running process of the instance, by its start record."""

    pid: int
    started_at: int
    fingerprint: str
    supervised: bool = True


@dataclass
class Staged:
    """What staging found: whether files changed, and their text before and after, fit to be shown."""

    changed: bool = False
    before: dict = field(default_factory=dict)
    after: dict = field(default_factory=dict)


def start_ticks(pid, proc="/proc"):
    """Return the start time of `pid` in clock ticks since boot, or None where it is gone or a zombie."""
    try:
        with open("%s/%d/stat" % (proc, pid), encoding="utf-8", errors="replace") as handle:
            fields = handle.read().rsplit(") ", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] in ("Z", "X") else int(fields[19])


class Instance:
    """Reads and changes one instance; clocks are passed in."""

    def __init__(self, layout, service, clock=time.monotonic, sleep=time.sleep):
        self.layout = layout
        self._service = service
        self._clock = clock
        self._sleep = sleep

    @contextmanager
    def locked(self, create=True):
        """Keep other runs away from this instance; waits for them. Not without a directory to lock.

        Ansible's workers leave the process group of their run: killed with its group, a run may be gone
        while one of them still waits for the end of a turn.
        """
        if not os.path.isdir(self.layout.config_dir):
            if not create:
                yield
                return
            self._make_directory(self.layout.config_dir, 0o750)
        path = os.path.join(self.layout.config_dir, ".lock")
        # Appending changes no time stamp: a run that changes nothing leaves no trace.
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
        try:
            self._own(path)
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    # What is there

    def process(self):
        """Return the running Process, or None. A recycled pid does not count: start times differ."""
        try:
            with open(
                os.path.join(self.layout.state_dir, "started.json"), encoding="utf-8"
            ) as handle:
                record = json.load(handle)
            pid = int(record["pid"])
            if start_ticks(pid) != int(record["start_ticks"]):
                return None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return Process(
            pid,
            int(record.get("started_at") or 0),
            str(record.get("fingerprint") or ""),
            self._service.supervises(self.layout.name, pid),
        )

    def _link(self, name):
        return os.path.join(self.layout.config_dir, name)

    def generation_name(self, link):
        """Return the fingerprint that `current`, `next` or `previous` leads to, or None."""
        try:
            return os.path.basename(os.readlink(self._link(link)))
        except OSError:
            return None

    def meaning(self, name):
        """Return the stored meaning of a generation, or None where it is unknown."""
        if not name:
            return None
        try:
            path = os.path.join(self.layout.config_dir, "generations", name, "meaning.json")
            with open(path, encoding="utf-8") as handle:
                return json.load(handle)
        except (OSError, ValueError):
            return None

    def running_version(self, process):
        """Return the version that `process` was started from: the last part of its release's name."""
        meaning = self.meaning(process.fingerprint) if process else None
        return os.path.basename(meaning["release"]).rsplit("-", 1)[-1] if meaning else None

    def restart_reasons(self, desired=None):
        """Return why the running process is not what is desired; empty if it is.

        `desired`: a meaning; default is what is staged as `next`.
        """
        if desired is None:
            desired = self.meaning(self.generation_name("next"))
        if desired is None:
            return []
        process = self.process()
        if process is None:
            return ["not running"]
        found = []
        if process.fingerprint != fingerprint(desired):
            known = self.meaning(process.fingerprint)
            found += reasons(known, desired) if known else ["runs an unknown configuration"]
        if not process.supervised:
            found.append("runs outside its service manager (process %d)" % process.pid)
        return found

    # Staging

    def stage(self, generation, seeds, apply):
        """Make `generation` the next one; return Staged. Nothing a running process reads is touched.

        `seeds`: path -> text of files that are written only where they are absent and nothing runs.
        With `apply` false nothing is written and the result is what would be.
        """
        staged = Staged()
        for path, mode in self._directories():
            if not os.path.isdir(path):
                staged.changed = True
                staged.after[path] = "directory\n"
                if apply:
                    self._make_directory(path, mode)
        # A first start may have used its seeds up: while the process runs, an absent one is not missing.
        running = self.process() is not None
        for path, text in sorted(seeds.items()):
            if not os.path.exists(path) and not running:
                staged.changed = True
                staged.after[path] = text
                if apply:
                    write_atomically(path, text)
                    self._own(path)
        name = generation.fingerprint
        directory = os.path.join(self.layout.config_dir, "generations", name)
        if self.generation_name("next") != name or not os.path.isdir(directory):
            staged.changed = True
            self._describe(generation, staged)
            if apply:
                if not os.path.isdir(directory):
                    self._write_generation(directory, generation)
                self._point("next", name)
                self._prune()
        self._refresh(directory, generation, staged, apply)
        return staged

    def _refresh(self, directory, generation, staged, apply):
        """Bring files of the same meaning up to date: a later release of ours, or repair of damage.

        A file may be gone or altered by hand; the next start would otherwise use it under a fingerprint
        that says something else.
        """
        if not os.path.isdir(directory):
            return
        for name, (text, mode) in self._texts(generation).items():
            path = os.path.join(directory, name)
            old = _read(path)
            if old == text:
                continue
            staged.changed = True
            if name in generation.unwatched:
                staged.before[name], staged.after[name] = old or "", text
            elif name != "meaning.json":
                staged.before[name], staged.after[name] = masked_text(name, old), masked_text(
                    name, text
                )
                if staged.before[name] == staged.after[name]:
                    # What differs is hidden: say at least that something does.
                    staged.before[name] += "(differs where it is hidden)\n"
            if apply:
                write_atomically(path, text, mode)
                self._own(path)

    def _texts(self, generation):
        """Return file name -> (text, mode) of everything that a generation's directory holds."""
        texts = {name: (text, 0o640) for name, text in generation.files.items()}
        launch = launch_script(generation, self.layout.config_dir, self.layout.state_dir)
        texts["launch"] = launch, 0o750
        if generation.guard:
            texts[GUARD] = guard_script(generation, self.layout.config_dir, sys.executable), 0o750
        texts["meaning.json"] = (
            json.dumps(generation.meaning(), sort_keys=True, indent=1) + "\n",
            0o640,
        )
        return texts

    def _directories(self):
        layout = self.layout
        yield layout.config_dir, 0o750
        yield os.path.join(layout.config_dir, "generations"), 0o750
        yield layout.log_dir, 0o750
        yield layout.state_dir, 0o750
        for path in layout.data_dirs:
            yield path, 0o750

    def _make_directory(self, path, mode):
        missing = []
        parent = path
        while not os.path.isdir(parent):
            missing.append(parent)
            parent = os.path.dirname(parent)
        for directory in reversed(missing):
            os.mkdir(directory, 0o755)
            self._own(directory)
        os.chmod(path, mode)

    def _own(self, path):
        if self.layout.uid >= 0:
            os.chown(path, self.layout.uid, self.layout.gid, follow_symlinks=False)

    def _describe(self, generation, staged):
        old = self.generation_name("next") or self.generation_name("current")
        names = set(generation.files)
        if old:
            directory = os.path.join(self.layout.config_dir, "generations", old)
            names |= {
                name
                for name in (os.listdir(directory) if os.path.isdir(directory) else [])
                if name not in ("launch", GUARD, "meaning.json") and not name.endswith(".tmp")
            }
            for name in names:
                text = _read(os.path.join(directory, name))
                if text is not None:
                    staged.before[name] = masked_text(name, text)
        for name, text in generation.files.items():
            staged.after[name] = masked_text(name, text)
        before = self.meaning(old) or {}
        after = generation.meaning()
        staged.before["start"] = _start_text(before) if before else ""
        staged.after["start"] = _start_text(after)
        for name in [key for key in staged.before if staged.before[key] == staged.after.get(key)]:
            del staged.before[name], staged.after[name]

    def _write_generation(self, directory, generation):
        temporary = directory + PARTIAL
        shutil.rmtree(temporary, ignore_errors=True)
        os.mkdir(temporary, 0o750)
        os.chmod(temporary, 0o750)
        for name, (text, mode) in self._texts(generation).items():
            path = os.path.join(temporary, name)
            write_atomically(path, text, mode)
            self._own(path)
        self._own(temporary)
        os.rename(temporary, directory)

    def _point(self, link, name):
        temporary = self._link(link) + ".tmp"
        for path in [temporary] if name else [temporary, self._link(link)]:
            if os.path.lexists(path):
                os.unlink(path)
        if not name:
            return
        os.symlink(os.path.join("generations", name), temporary)
        os.replace(temporary, self._link(link))

    def _prune(self):
        """Keep what a link or the running process needs, and the latest few for a look back."""
        root = os.path.join(self.layout.config_dir, "generations")
        process = self.process()
        needed = {self.generation_name(link) for link in ("current", "next", "previous")}
        needed.add(process.fingerprint if process else None)
        others = sorted(
            (
                name
                for name in os.listdir(root)
                if name not in needed and not name.endswith(PARTIAL)
            ),
            key=lambda name: os.path.getmtime(os.path.join(root, name)),
        )
        for name in others[:-GENERATIONS_KEPT]:
            # Under its own name it would count as complete, if this were killed half way.
            os.rename(os.path.join(root, name), os.path.join(root, name + PARTIAL))
        for name in os.listdir(root):
            if name.endswith(PARTIAL):
                shutil.rmtree(os.path.join(root, name), ignore_errors=True)

    # The turn

    def turn(self, stop_timeout, start_timeout, ready, log_files, transient):
        """Bring the staged generation into effect: stop what runs, swap, start, wait until ready.

        A start that fails puts the previous generation back, and its process if one ran, and raises
        StartFailed. `ready`: dicts `host port send expect`; `transient`: regular expression of log lines
        after which the service manager's next attempt may well succeed.
        """
        before, earlier = self.generation_name("current"), self.generation_name("previous")
        ran = self.process() is not None
        self.stop(stop_timeout)
        self._swap(self.generation_name("next"))
        bring_up = (start_timeout, ready, log_files, transient)
        try:
            self._bring_up(*bring_up)
        except (StartFailed, ServiceError) as error:
            journal = getattr(error, "journal", "")
            exits = getattr(error, "exits", True)
            if before in (None, self.generation_name("current")):
                if not exits:
                    # Log recovery or an election may take longer: stopping it would start it all over.
                    raise StartFailed("%s It is left running." % error, journal) from error
                self.stop(stop_timeout)
                raise
            self.stop(stop_timeout)
            self._point("current", before)
            self._point("previous", earlier)
            told = "%s The previous configuration was put back" % error
            if not ran:
                raise StartFailed(told + ".", journal, exits) from error
            try:
                self._bring_up(*bring_up)
            except (StartFailed, ServiceError) as again:
                raise StartFailed(
                    "%s, and that does not come up either: %s" % (told, again), journal, exits
                ) from again
            raise StartFailed("%s and is running again." % told, journal, exits) from error

    def _swap(self, name):
        current = self.generation_name("current")
        if current == name:
            return
        if current:
            self._point("previous", current)
        self._point("current", name)

    def _bring_up(self, timeout, ready, log_files, transient):
        # Before the start: what fails at once has said so before anybody looks.
        marks = self._log_marks(log_files)
        self._launch()
        self.wait_ready(timeout, ready, log_files, transient, marks)

    def _launch(self):
        # systemd would create it as root.
        console = os.path.join(self.layout.log_dir, CONSOLE)
        if self.layout.uid >= 0 and not os.path.exists(console):
            write_atomically(console, "", 0o640)
            self._own(console)
        meaning = self.meaning(self.generation_name("current")) or {}
        self._service.install(self.layout.name, (meaning.get("unit") or {}).get("text", ""))
        self._service.start(self.layout.name)

    def stop(self, timeout):
        """Stop with SIGTERM and wait for the exit; never kill: a killed broker needs log recovery."""
        process = self.process()
        if not process and not self._service.wants_running(self.layout.name):
            return False
        self._service.stop(self.layout.name)
        if process and not process.supervised:
            try:
                terminate(process.pid)
            except ProcessLookupError:
                pass
        deadline = self._clock() + timeout
        while self.process() or self._service.wants_running(self.layout.name):
            if self._clock() > deadline:
                raise ServiceError(
                    "%s still runs %d s after SIGTERM. It is left to finish: wait for it and run again."
                    % (self.layout.name, timeout)
                )
            self._sleep(0.1)
        return True

    def wait_ready(self, timeout, ready, log_files, transient, marks):
        """Wait until every probe of `ready` answers; raise StartFailed when it cannot, or not in time.

        `marks`: sizes of the logs before the start, so that older lines explain nothing.
        """
        name = self.layout.name
        deadline = self._clock() + timeout
        attempts = set()
        while True:
            attempt, given_up = self._service.failures(name)
            attempts.add(attempt)
            if self.process() and all(probe(item) for item in ready):
                return
            journal = self.journal(log_files, marks)
            hopeless = given_up or len(attempts) > 2
            if hopeless and not (transient and re.search(transient, journal)):
                raise StartFailed(
                    "%s does not start: its process exits again and again." % name, journal, True
                )
            if self._clock() > deadline:
                raise StartFailed("%s was not ready within %d s." % (name, timeout), journal)
            self._sleep(0.1)

    def _log_marks(self, log_files):
        return {
            name: _size(os.path.join(self.layout.log_dir, name)) for name in [*log_files, CONSOLE]
        }

    def journal(self, log_files, marks=None, lines=20):
        """Return the last lines of the instance's logs, only what came after `marks` if given."""
        parts = []
        for name in [*log_files, CONSOLE]:
            path = os.path.join(self.layout.log_dir, name)
            start = (marks or {}).get(name, 0)
            try:
                with open(path, "rb") as handle:
                    size = os.fstat(handle.fileno()).st_size
                    # A file that has shrunk was rotated: all of it is new.
                    handle.seek(max(start if start <= size else 0, size - 65536))
                    tail = handle.read().decode("utf-8", "replace").splitlines()[-lines:]
            except OSError:
                continue
            if tail:
                parts.append("--- %s\n%s" % (path, "\n".join(tail)))
        return "\n".join(parts)

    def remove(self, stop_timeout):
        """Stop the instance and forget its service; files stay."""
        stopped = self.stop(stop_timeout)
        self._service.remove(self.layout.name)
        return stopped


def answer_of(item, timeout=2.0):
    """Return what `host`:`port` answers to `send` ("" to nothing), or None where nobody listens."""
    try:
        if item.get("send"):
            return ask(item["host"], int(item["port"]), item["send"], timeout)
        with socket.create_connection((item["host"], int(item["port"])), timeout):
            return ""
    except OSError:
        return None


def probe(item):
    """Tell whether `item` (`host`, `port`, optionally `send` and `expect`) answers as expected."""
    answer = answer_of(item)
    return answer is not None and re.search(item.get("expect") or "", answer) is not None


def _start_text(meaning):
    lines = ["release: %s" % os.path.basename(meaning.get("release") or "")]
    lines.append("java_home: %s" % meaning.get("java_home"))
    lines += ["option: %s" % masked_option(item) for item in meaning.get("jvm_options") or []]
    lines += ["environment: %s" % key for key in meaning.get("environment") or {}]
    lines += [
        "service: " + line for line in ((meaning.get("unit") or {}).get("text") or "").splitlines()
    ]
    return "\n".join(lines) + "\n"


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read()
    except OSError:
        return None


def _size(path):
    try:
        return os.path.getsize(path)
    except OSError:
        return 0

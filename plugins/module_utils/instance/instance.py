# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""One instance of a JVM service on this host: what is staged, what is in effect, and its turn.

Three things are kept apart: what is *wanted* (the inventory), what is *staged* (written as `next`), and
what is *in effect* (it runs, or it ran last). A turn brings a generation into effect: release and
configuration change together, by one rename, so that a crash or a reboot in between starts what ran
before. A turn whose start fails is undone, whatever the reason; a start that only takes long is left
running.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import exclusive, without_room
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.generation import (
    Generation,
    Meaning,
    changed_settings,
    fingerprint,
    reasons,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.journal import Journal
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.overrides import (
    Overrides,
    noted,
    read_overrides,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.probes import succeeds
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import recorded
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    ServiceError,
    ServiceManager,
    terminate,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.store import (
    Layout,
    Staged,
    Store,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import (
    POLL_SECONDS,
    wait_until,
)

CONSOLE = "console.log"
# So many attempts of the service manager fail before a start counts as failed.
ATTEMPTS = 2
# Until a process that still runs is signalled again.
ASK_AGAIN_SECONDS = 10.0


class StartFailed(Exception):
    """The instance did not come up; the text says what was left. `journal`: last lines of its logs."""

    CHECK = "instance.start_failed"
    REMEDY = "correct the inventory, or remove the cause that its logs name, and run again"

    def __init__(self, message: str, journal: str = ""):
        super().__init__(message)
        self.journal = journal


class StillStarting(StartFailed):
    """The process lives, but was not ready in time."""

    CHECK = "instance.still_starting"
    REMEDY = "look at its logs, and run again when it is ready"


class StillStopping(ServiceError):
    """The process has its time to end, and has not. `took`: as of a stop that has come to its end, if known."""

    CHECK = "instance.stop_timeout"
    REMEDY = "wait until it has ended, and run again"
    took: Optional[Dict[str, Any]] = None


class ForeignService(ServiceError):
    """The service manager runs something of this name that others have installed."""

    CHECK = "instance.foreign"
    REMEDY = "stop and disable what others have installed, remove its definition, and run again: docs/taking-over.md"


class ChangedMeanwhile(ServiceError):
    """The process is not the one that was looked at."""

    CHECK = "instance.changed_meanwhile"
    REMEDY = "run again"


@dataclass(frozen=True)
class Process:
    """A running process of the instance, by its start record."""

    pid: int
    started_at: int
    fingerprint: str
    supervised: bool = True


@dataclass(frozen=True)
class StartRules:
    """How a start and a stop are waited for.

    `ready`: probes of a generation that has none of its own. `log_files`: names below the log
    directory. `transient`: regular expression of log lines after which the service manager's next
    attempt may well succeed. `progress`: regular expression of log lines of a start that goes on,
    log recovery for example; each gives it another `start_timeout` seconds. `undone`: whether what was in effect
    before comes back where the start fails, or its run is killed.
    """

    start_timeout: float = 120
    stop_timeout: float = 300
    ready: Tuple[Mapping[str, Any], ...] = ()
    log_files: Tuple[str, ...] = ()
    transient: str = ""
    progress: str = ""
    undone: bool = True


class Instance:
    """Reads and changes one instance; clocks are passed in."""

    def __init__(
        self,
        layout: Layout,
        manager: ServiceManager,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self.layout = layout
        self.store = Store(layout)
        # Whether anything was stopped, started or deleted, whatever has come of it.
        self.acted = False
        self._manager = manager
        self._clock = clock
        self._sleep = sleep

    @contextlib.contextmanager
    def locked(self, create: bool = True) -> Iterator[None]:
        """Keep other runs away from this instance; waits for them. Not without a directory to lock.

        Ansible's workers leave the process group of their run: killed with its group, a run may be gone
        while one of them still waits for the end of a turn.
        """
        if create:
            self.store.make_config_dir()
        if not os.path.isdir(self.layout.config_dir):
            yield
            return
        path = os.path.join(self.layout.config_dir, ".lock")
        with exclusive(path, mode=0o640, owner=self.layout.account):
            yield

    # What is there

    def process(self) -> Optional[Process]:
        """Return the running Process, or None."""
        found = recorded(self.layout.state_dir)
        if found is None:
            return None
        supervised = self._manager.supervises(self.layout.name, found.pid)
        return Process(found.pid, found.started_at, found.fingerprint, supervised)

    def staged(self) -> Optional[str]:
        """Return the fingerprint of the generation that the next turn is to use, or None."""
        return self.store.linked("next")

    def in_effect(self, process: Optional[Process] = None) -> Optional[str]:
        """Return the fingerprint of the generation that runs, or ran last; None before the first turn.

        What a turn had only begun to bring into effect when its run was killed does not count, unless it is known
        to have come up.
        """
        process = process or self.process()
        if process and self.store.meaning(self.as_good_as(process)):
            return self.as_good_as(process)
        current = self.store.linked("current")
        # What has served may have written what the one before does not know of, such as a new log directory.
        if current and self.store.linked("answered") == current:
            return current
        return self.store.linked("fallback") or current

    def as_good_as(self, process: Process) -> str:
        """Return the fingerprint of what `process` was started with, changes without a restart included."""
        found = read_overrides(self.layout.config_dir)
        if found and found.concerns(process.pid, process.started_at):
            if self.store.meaning(found.fingerprint):
                return found.fingerprint
        return process.fingerprint

    def running_version(self, process: Optional[Process]) -> Optional[str]:
        """Return the version that `process` was started from: the last part of its release's name."""
        meaning = self.store.meaning(process.fingerprint) if process else None
        return os.path.basename(meaning["release"]).rsplit("-", 1)[-1] if meaning else None

    def restart_reasons(self, desired: Optional[Meaning]) -> List[str]:
        """Return why the running process is not what is desired; empty if it is, or nothing is desired."""
        if desired is None:
            return []
        process = self.process()
        if process is None:
            return ["not running"]
        found = []
        runs = self.as_good_as(process)
        if runs != fingerprint(desired):
            known = self.store.meaning(runs)
            found += reasons(known, desired) if known else ["runs an unknown configuration"]
        if not process.supervised:
            found.append(f"runs outside its service manager (process {process.pid})")
        return found

    def live_changes(self, name: Optional[str]) -> Optional[Dict[str, Any]]:
        """Return what could bring the generation `name` into effect without a restart, None if nothing.

        {settings: key -> {before, after}, against what the process has read at its start; own: key ->
        {values, file}, our overrides with the process's own value}. `settings` empty: the process has
        read it all, and only overrides are left over from before its start. None also where only a
        restart can do it, and where there is nothing to do.
        """
        return self.live_changes_to(self.store.meaning(name))

    def live_changes_to(self, desired: Optional[Meaning]) -> Optional[Dict[str, Any]]:
        """Return the same for a meaning that need not be staged yet."""
        process = self.process()
        started = self.store.meaning(process.fingerprint) if process else None
        if process is None or not process.supervised or started is None or desired is None:
            return None
        name = fingerprint(desired)
        settings = changed_settings(started, desired)
        found = read_overrides(self.layout.config_dir)
        if settings is None or not (settings or found):
            return None
        if found and found.concerns(process.pid, process.started_at):
            if found.fingerprint == name and self.store.linked("current") == name:
                return None
        return {"settings": settings, "own": self._own(found, started)}

    def overrides(self) -> Dict[str, Any]:
        """Return all overrides that were noted, as `own` above, of a process that runs; empty if none does."""
        process = self.process()
        started = self.store.meaning(process.fingerprint) if process else None
        return self._own(read_overrides(self.layout.config_dir), started) if started else {}

    def _own(self, found: Optional[Overrides], started: Meaning) -> Dict[str, Any]:
        return {
            key: {"values": list(values), "file": self._file_value(started, key)}
            for key, values in (found.settings if found else {}).items()
        }

    @staticmethod
    def _file_value(meaning: Meaning, key: str) -> Optional[str]:
        for content in (meaning.get("files") or {}).values():
            if isinstance(content, dict) and key in content:
                return str(content[key])
        return None

    # Changes without a restart

    def note(self, settings: Mapping[str, str]) -> None:
        """Note which overrides are about to be set, before they are."""
        found = read_overrides(self.layout.config_dir) or Overrides()
        merged = noted(found.settings, settings)
        self.store.write_overrides(
            Overrides(merged, found.fingerprint, found.pid, found.started_at)
        )

    def adopt(self, name: str, settings: Mapping[str, str]) -> None:
        """Take the running process for started with the generation `name`, by these overrides.

        A next start, whoever starts it, uses `name`. ChangedMeanwhile where the process is not what the
        overrides were meant for.
        """
        process = self.process()
        if process is None:
            raise ChangedMeanwhile(f"{self.layout.name} does not run any more.")
        started, desired = self.store.meaning(process.fingerprint), self.store.meaning(name)
        differing = changed_settings(started, desired) if started and desired else None
        if differing is None or set(differing) - set(settings):
            raise ChangedMeanwhile(f"{self.layout.name} was started anew meanwhile.")
        if settings or process.fingerprint != name:
            values = {key: (value,) for key, value in settings.items()}
            self.store.write_overrides(Overrides(values, name, process.pid, process.started_at))
        before = self.store.linked("current")
        if before != name:
            self.store.point("previous", before)
            self.store.point("current", name)
        if not settings and process.fingerprint == name:
            self.store.write_overrides(None)

    # Staging

    def stage(self, generation: Generation, seeds: Mapping[str, str], apply: bool) -> Staged:
        """Make `generation` the next one; return Staged. Nothing a running process reads is touched.

        `seeds`: path -> text of files that are written only where they are absent and nothing runs.
        With `apply` false nothing is written and the result is what would be.
        """
        staged = Staged()
        process = self.process()
        self.store.make_directories(staged, apply)
        # A first start may have used its seeds up: while the process runs, an absent one is not missing.
        if process is None:
            self.store.write_seeds(seeds, staged, apply)
        self.store.stage(generation, staged, apply)
        if apply and staged.changed:
            self.store.prune(process.fingerprint if process else None)
        if apply and process:
            self._note_answer(process, generation.ready)
        return staged

    def _note_answer(self, process: Process, wanted: Sequence[Mapping[str, Any]]) -> None:
        """Note that the running generation has come up, where no turn has waited for it to the end.

        Earlier releases noted nothing, and kept no probes: there the `wanted` ones are asked.
        """
        name = process.fingerprint
        if not self.store.meaning(name):
            return
        if self.store.linked("answered") != name:
            own = self.store.ready(name)
            ready = wanted if own is None else own
            if not ready or not all(succeeds(probe) for probe in ready):
                return
            self.store.point("answered", name)
        if self.store.linked("fallback") and self.store.linked("current") == name:
            # left by a turn that was killed while it waited
            self.store.point("fallback", None)

    # The turn

    def turn(self, name: str, rules: StartRules) -> None:
        """Bring the generation `name` into effect: stop what runs, swap, start, wait until ready.

        A start that fails, for whatever reason, puts the generation back that was in effect, and its
        process if one ran, unless the rules say that it is not undone; one that is only slow is left running.
        Both raise StartFailed.
        """
        process = self.process()
        before, earlier = self.in_effect(process), self.store.linked("previous")
        if not (process or before) and self._manager.wants_running(self.layout.name):
            # Its stop would be nobody's decision: no gate was asked about it.
            raise ForeignService(f"{self.layout.name} runs, and was not started from here.")
        self.stop(rules.stop_timeout)
        journal = self._journal(rules)
        self.acted = True
        try:
            self._swap(before, name, rules.undone)
            self._bring_up(name, rules, journal)
        except StillStarting as error:
            # Log recovery or an election may take longer: a stop would make it begin all over.
            self.store.point("fallback", None)
            raise StillStarting(
                f"{error}{self._full()} It is left running.", error.journal
            ) from error
        except Exception as error:  # pylint: disable=broad-except
            # Whatever it was, a full disk or a lost connection: nothing may stay half done.
            again = before if before != name and rules.undone else None
            said = journal.last_lines()
            told = self._undo(error, again, earlier, process is not None, rules)
            if not rules.undone:
                told += " What was in effect before was not put back, since the new may have been at work already."
            raise StartFailed(told, said) from error
        self.store.point("fallback", None)
        self.store.point("answered", name)

    def _swap(self, before: Optional[str], name: str, undone: bool) -> None:
        if before and before != name:
            if undone:
                self.store.point("fallback", before)
            self.store.point("previous", before)
        if self.store.linked("current") != name:
            self.store.point("current", name)
        if not undone:
            # Nor may it come back after a kill; one of an earlier turn may be there.
            self.store.point("fallback", None)

    def _undo(
        self,
        error: Exception,
        before: Optional[str],
        earlier: Optional[str],
        ran: bool,
        rules: StartRules,
    ) -> str:
        """Stop what has failed and put `before` back (None: there is nothing else); return what was left."""
        told = (
            str(error)
            if isinstance(error, (StartFailed, ServiceError))
            else (f"{self.layout.name} could not be started: {error}.")
        ) + self._full()
        rest = ""
        try:
            self.stop(rules.stop_timeout)
        except StillStopping as problem:
            still = str(problem).rstrip(".")
            rest = f" Its process is not gone yet: {still}: wait for it and run again."
        except (ServiceError, OSError) as problem:
            rest = f" Its process is not gone yet: {problem}"
        if before is None:
            return f"{told}{rest or ' It is stopped.'}"
        try:
            self.store.point("current", before)
            self.store.point("previous", earlier if earlier != before else None)
            self.store.point("fallback", None)
        except OSError as problem:
            return (
                f"{told}{rest} The previous configuration could not be put back: {problem}. It is "
                f"{self.store.directory(before)}; {self.store.path('current')} may still lead to the "
                "new one. Remove the cause, and run again."
            )
        told = f"{told} The previous configuration was put back"
        if rest:
            return f"{told}, but not started.{rest}"
        if not ran:
            return f"{told}."
        try:
            self._bring_up(before, rules, self._journal(rules))
        except StillStarting as slow:
            return f"{told} and was started: {slow} It is left running."
        except Exception as problem:  # pylint: disable=broad-except
            return f"{told}, and that does not come up either: {problem}"
        return f"{told} and is running again."

    def explanation(self, rules: StartRules) -> str:
        """Return what a person would look at where the instance is not what it should be."""
        process = self.process()
        told = f"{self.layout.name} does not run"
        if process:
            told = f"{self.layout.name} runs as process {process.pid}, for {time.time() - process.started_at:.0f} s"
        elif self._manager.wants_running(self.layout.name):
            told += " at this moment, and will be started again"
        said = self._journal(rules, whole=True).last_lines()
        return f"{told}.{self._full()} The last lines of its logs:\n{said}"

    def _full(self) -> str:
        """Return a sentence about disks that are full, "" if none is: where nothing can be written, no log tells."""
        layout = self.layout
        full = without_room(
            [layout.config_dir, layout.state_dir, layout.log_dir, *layout.data_dirs]
        )
        return f" No space is left on the disk of {', '.join(full)}." if full else ""

    def _journal(self, rules: StartRules, whole: bool = False) -> Journal:
        names = [*rules.log_files, CONSOLE]
        return Journal([os.path.join(self.layout.log_dir, name) for name in names], whole)

    def _bring_up(self, name: str, rules: StartRules, journal: Journal) -> None:
        self._manager.install(self.layout.name, self.store.definition(name))
        self._manager.start(self.layout.name)
        ready = self.store.ready(name)
        self.wait_ready(list(rules.ready) if ready is None else ready, rules, journal)

    def wait_ready(
        self, ready: List[Mapping[str, Any]], rules: StartRules, journal: Journal
    ) -> None:
        """Wait until every probe of `ready` answers.

        Raises StartFailed when the process ends again and again, StillStarting when it lives but has
        made no progress for `start_timeout` seconds.
        """
        name = self.layout.name
        attempts = set()

        def seen() -> str:
            attempt = self._manager.attempt(name)
            attempts.add(attempt.number)
            process = self.process()
            if process and all(succeeds(probe) for probe in ready):
                return "ready"
            if attempt.over or len(attempts) > ATTEMPTS:
                said = journal.last_lines()
                if not (rules.transient and re.search(rules.transient, said)):
                    raise StartFailed(
                        f"{name} does not start: its process exits again and again.", said
                    )
            return "progress" if process and journal.has_new(rules.progress) else ""

        while True:
            outcome = wait_until(seen, rules.start_timeout, self._clock, self._sleep)
            if outcome == "ready":
                return
            if not outcome:
                break
            self._sleep(POLL_SECONDS)
        said = journal.last_lines()
        text = f"{name} was not ready within {rules.start_timeout:g} s."
        if self.process() is None:
            # A transient failure that did not pass: nothing lives that could be left running.
            raise StartFailed(f"{text} Its process has ended.", said)
        raise StillStarting(text, said)

    # Its end

    def stop(self, timeout: float) -> bool:
        """Stop with SIGTERM and wait for the exit; never kill: a killed broker needs log recovery."""
        name = self.layout.name
        process = self.process()
        if not process and not self._manager.wants_running(name):
            return False
        if process and self.store.linked("fallback"):
            self._note_answer(process, ())  # nobody can ask it any more
        asked = -math.inf

        def ended() -> bool:
            nonlocal asked, process
            # A signal is lost on a process that has just been forked and is not yet what it is to run.
            if self._clock() - asked >= ASK_AGAIN_SECONDS:
                asked = self._clock()
                self.acted = True
                self._manager.stop(name)
                if process and not process.supervised:
                    terminate(process.pid)
            process = self.process()
            return not process and not self._manager.wants_running(name)

        if not wait_until(ended, timeout, self._clock, self._sleep):
            raise StillStopping(
                f"{name} still runs {timeout:g} s after SIGTERM. It is left to finish."
            )
        return True

    def remove(self, stop_timeout: float) -> bool:
        """Stop the instance and forget its service; files stay."""
        stopped = self.stop(stop_timeout)
        self._manager.remove(self.layout.name)
        return stopped

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The classes of Spark's JVM, kept as an archive from which the JVM of a later run starts sooner.

Loading and checking some 15,000 classes is a third of a short run. Java can write them down as it
has them in memory ("application class-data sharing", JEP 350). That costs about 20 s once, so it is
not done for who validates once: a machine's first run leaves a mark, the second one writes the
archive after its verdict, those that follow use it. Java itself refuses an archive that does not fit,
and then starts without.

From Java 19 on, Java keeps such an archive by itself (-XX:+AutoCreateSharedArchive). That is not used:
Java 17, which Spark takes and many machines have, does not start with this option ("Unrecognized VM
option", seen with 17.0.15). And it would write at the end of the first run already, which is
the only one of who validates once, and after a run that broke off as well.
"""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import Iterable, Optional

from flow.engine import connector
from flow.messages import progress
from flow.messages.output import note

USE, WRITE, MARK, LEAVE = "use", "write", "mark", "leave"
MOST_ARCHIVES = 3  # of different Javas and Sparks; the one used longest ago goes first
ROOM_BYTES = 1 << 30  # an archive takes 175 MB
_DEADLINE_SECONDS = 180
_WHAT = "keeping the classes of Spark's JVM, once, so that later runs start sooner"
# What does not fit is not a fault of the run's, and nothing for its console.
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


@dataclass(frozen=True)
class ClassArchive:
    """What a run does about the archive at `path`."""

    path: str
    action: str

    @property
    def _draft(self) -> str:
        return f"{self.path}.{os.getpid()}"

    def flags(self) -> list:
        """Options of the JVM that Spark runs in."""
        if self.action == USE:
            return [f"-XX:SharedArchiveFile={self.path}", *_QUIET]
        if self.action == WRITE:
            return [f"-XX:ArchiveClassesAtExit={self._draft}", *_QUIET]
        return []

    def begin(self) -> None:
        """Note that this machine has runs, and that the archive is in use; quiet if that fails."""
        with suppress(OSError):
            if self.action == MARK:
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
                with open(_mark(self.path), "w", encoding="utf-8"):
                    pass
            elif self.action == WRITE:
                # says at once, and not at the JVM's end, who writes it
                with open(self._draft, "w", encoding="utf-8"):
                    pass
            elif self.action == USE:
                os.utime(self.path)

    def finish(self, java: Optional[subprocess.Popen], whole: bool, output: str = "") -> None:
        """Wait for the end of the JVM, which writes the archive; None: there was none.

        Only what the JVM of a `whole` run has written, and has ended in order, becomes the archive.
        `output`: the run's directory, in which it says meanwhile what it waits for.
        """
        if self.action != WRITE:
            return
        try:
            if java is not None and whole:
                with progress.waiting(output, "keep", lambda: _WHAT):
                    self._keep(java)
        except (OSError, subprocess.TimeoutExpired) as error:
            note(f"note: the classes could not be kept: {error}")
        finally:  # also of a run that is interrupted meanwhile
            if java is not None and java.poll() is None:
                java.kill()
                java.wait()
            with suppress(OSError):
                os.remove(self._draft)

    def _keep(self, java: subprocess.Popen) -> None:
        note(f"note: {_WHAT}")
        if java.stdin is not None:
            java.stdin.close()  # at which PySpark's JVM ends
        if java.wait(_DEADLINE_SECONDS) == 0 and os.path.getsize(self._draft):
            os.replace(self._draft, self.path)
            _prune(os.path.dirname(self.path))


def decide(there: bool, marked: bool, typical: bool, in_work: bool, room: int) -> str:
    """What a run does: the archive is `there`; a run before has `marked` the place; this one is
    `typical`; another one is writing it already; bytes of `room` on that disk.
    """
    if there:
        return USE
    if not typical:
        return LEAVE
    if not marked:
        return MARK
    return LEAVE if in_work or room < ROOM_BYTES else WRITE


def find(
    java: str, spark_home: str, directory: str, typical: bool, more_jars: Iterable
) -> Optional[ClassArchive]:
    """The archive of this Java, this Spark and these `more_jars` (paths, in the order of the class
    path) in `directory`; None if there cannot be one.

    None, too, where Java has no archive of its own classes (those cut to size by jlink), on which
    another one could be founded.
    """
    home = connector.home_of(java)
    founded = os.path.exists(os.path.join(home, "lib", "server", "classes.jsa"))
    if not founded or any(c in directory for c in " \t\"'\\"):  # would end the option
        return None
    path = os.path.join(directory, f"{_key(home, spark_home, more_jars)}.jsa")
    with suppress(OSError):
        in_work = _in_work(path)
        marked = os.path.exists(_mark(path))
        room = shutil.disk_usage(directory).free if marked else 0
        there = os.path.exists(path)
        return ClassArchive(path, decide(there, marked, typical, in_work, room))
    return None


def _mark(path: str) -> str:
    return f"{path}.wanted"


def _key(java_home: str, spark_home: str, more_jars: Iterable) -> str:
    """Of all that an archive must fit: Java's build; where the jars are, their sizes and times."""
    told = hashlib.sha256()
    with suppress(OSError), open(os.path.join(java_home, "release"), "rb") as file:
        told.update(file.read())
    told.update(f"{java_home}\0{spark_home}\0".encode())
    jars = sorted(glob.glob(os.path.join(glob.escape(spark_home), "jars", "*")))
    for jar in [*jars, *more_jars]:
        with suppress(OSError):
            state = os.stat(jar)
            told.update(f"{jar}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
    return told.hexdigest()[:16]


def _in_work(path: str) -> bool:
    """Whether another run is writing the archive; what a run that was killed has left is removed."""
    directory, name = os.path.split(path)
    found = False
    for draft in os.listdir(directory) if os.path.isdir(directory) else ():
        pid = draft[len(name) + 1 :]
        if draft.startswith(f"{name}.") and pid.isdigit():
            if os.path.exists(f"/proc/{pid}"):
                found = True
            else:
                with suppress(OSError):
                    os.remove(os.path.join(directory, draft))
    return found


def _prune(directory: str) -> None:
    """Remove the archives, and their marks, that were used longest ago."""
    names = [name for name in os.listdir(directory) if name.endswith(".jsa")]
    paths = [os.path.join(directory, name) for name in names]
    for path in sorted(paths, key=os.path.getmtime)[:-MOST_ARCHIVES]:
        for each in (path, _mark(path)):
            with suppress(OSError):
                os.remove(each)

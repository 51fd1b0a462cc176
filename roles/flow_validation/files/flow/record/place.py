# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Where a ledger is: a directory of this machine, or one of whatever file system Spark's Hadoop layer knows.

A path and `file:///path` are a directory. `hdfs://...` and all others are opened by Spark's own JVM, so
that a ledger is where Spark's own data are, with the same settings and credentials.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from flow.messages import stack_trace
from flow.messages.failure import CannotRun
from flow.messages.output import write

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")

# One letter alone is none that Hadoop's layer knows.
_HALF_A_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?!/)")


class Place(Protocol):
    """A ledger's directory. Names are relative to it, with / between; a file that is not there is
    FileNotFoundError, one that cannot be read is OSError or CannotRun.
    """

    address: str  # what Spark reads from and writes to

    def exists(self) -> bool:
        """Whether the directory is there."""

    def names(self, folder: str = "") -> list:
        """What is in a folder, sorted; nothing where there is none."""

    def read(self, name: str) -> str:
        """A file's text."""

    def write(self, name: str, text: str) -> None:
        """Replace the file in one step."""

    def claim(self, name: str) -> None:
        """Make an empty file; FileExistsError if one of this name is there, whoever comes first."""

    def make(self, folder: str) -> None:
        """A folder and those above it; one that is there already is left alone."""

    def move(self, name: str, to: str) -> None:
        """Rename a file in one step; one of the new name is replaced."""

    def remove(self, name: str) -> None:
        """A file, or a folder with all that is in it; nothing where there is none."""


def is_remote(ledger: str) -> bool:
    """Whether only Spark's JVM can open it."""
    return bool(_SCHEME.match(ledger)) and not ledger.startswith("file:/")


def path_of(ledger: str) -> str:
    """The directory that a path or a file: URI names. CannotRun if the URI names another machine."""
    if not _SCHEME.match(ledger):
        if found := _HALF_A_SCHEME.match(ledger):
            raise CannotRun(
                f"{ledger} is neither a path nor a URI; write {found[0]}//... or, if it is a directory's name,"
                f" ./{ledger}"
            )
        return ledger
    parts = urlsplit(ledger)
    if parts.netloc not in ("", "localhost"):
        raise CannotRun(f"{ledger} names the machine {parts.netloc!r}; write file:///PATH")
    return unquote(parts.path)


def whole(ledger: str) -> str:
    """The URI, or the path from / on."""
    return ledger if is_remote(ledger) else os.path.abspath(path_of(ledger))


def is_in(ledger: str, directory: str) -> bool:
    """Whether the ledger is the directory `ledger` in that one, where a run's report has it."""
    inside = os.path.join(os.path.realpath(directory), "ledger")
    return not is_remote(ledger) and os.path.realpath(path_of(ledger)) == inside


def of(ledger: str) -> Place:
    """The place of this name; one that is remote needs Spark to run."""
    return _remote(ledger) if is_remote(ledger) else Directory(path_of(ledger))


class Directory:
    """One of this machine, or one that it shares with others."""

    def __init__(self, path: str):
        self._path = path
        self.address = "file://" + os.path.abspath(path)

    def exists(self) -> bool:
        return os.path.isdir(self._path)

    def names(self, folder: str = "") -> list:
        path = os.path.join(self._path, folder)
        return sorted(os.listdir(path)) if os.path.isdir(path) else []

    def read(self, name: str) -> str:
        with open(os.path.join(self._path, name), encoding="utf-8") as file:
            return file.read()

    def write(self, name: str, text: str) -> None:
        write(os.path.join(self._path, name), text)

    def claim(self, name: str) -> None:
        with open(os.path.join(self._path, name), "x", encoding="utf-8"):
            pass

    def make(self, folder: str) -> None:
        os.makedirs(os.path.join(self._path, folder), exist_ok=True)

    def move(self, name: str, to: str) -> None:
        os.replace(os.path.join(self._path, name), os.path.join(self._path, to))

    def remove(self, name: str) -> None:
        path = os.path.join(self._path, name)
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.exists(path):
            os.remove(path)


def _remote(ledger: str) -> "HadoopDirectory":
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        raise CannotRun(f"the ledger {ledger} cannot be opened: Spark is not running")
    return HadoopDirectory(context, ledger)


class HadoopDirectory:
    """One of a file system that Spark's JVM opens, by Spark's own settings of Hadoop."""

    _hadoop: Any = None
    _conf: Any = None

    def __init__(self, context: Any, ledger: str):
        self.address = ledger.rstrip("/")
        self._gateway = context._gateway

        def opened() -> Any:
            self._hadoop = context._jvm.org.apache.hadoop
            self._conf = context._jsc.hadoopConfiguration()
            return self._at("").getFileSystem(self._conf)

        self._system = self._ask("opened", opened)

    def exists(self) -> bool:
        return self._ask("opened", lambda: self._system.exists(self._at("")))

    def names(self, folder: str = "") -> list:
        def listed() -> list:
            return sorted(s.getPath().getName() for s in self._system.listStatus(self._at(folder)))

        try:
            return self._ask("listed", listed)
        except FileNotFoundError:
            return []

    def read(self, name: str) -> str:
        def text() -> str:
            stream = self._system.open(self._at(name))
            try:
                return bytes(stream.readAllBytes()).decode()
            finally:
                stream.close()

        return self._ask("read", text)

    def write(self, name: str, text: str) -> None:
        draft = f"{name}.{secrets.token_hex(4)}.part"

        def write_draft() -> None:
            stream = self._system.create(self._at(draft), True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()

        self._ask("written", write_draft)
        self.move(draft, name)

    def claim(self, name: str) -> None:
        if not self._ask("written", lambda: self._system.createNewFile(self._at(name))):
            raise FileExistsError(f"{self.address}/{name}")

    def make(self, folder: str) -> None:
        self._ask("written", lambda: self._system.mkdirs(self._at(folder)))

    def move(self, name: str, to: str) -> None:
        # FileSystem.rename does not replace; FileContext's does, and on HDFS in one step
        def replace() -> None:
            options = getattr(self._hadoop.fs, "Options$Rename")
            how = self._gateway.new_array(options, 1)
            how[0] = options.OVERWRITE
            context = self._hadoop.fs.FileContext.getFileContext(self._system.getUri(), self._conf)
            context.rename(self._at(name), self._at(to), how)

        self._ask("written", replace)

    def remove(self, name: str) -> None:
        self._ask("written", lambda: self._system.delete(self._at(name), True))

    def _at(self, name: str) -> Any:
        return self._hadoop.fs.Path("/".join(part for part in (self.address, name) if part))

    def _ask(self, done: str, call: Any) -> Any:
        """What the JVM answers; FileNotFoundError, or CannotRun with Java's reason."""
        from py4j.protocol import Py4JError
        from pyspark.errors.exceptions.captured import CapturedException

        try:
            return call()
        except (
            Py4JError,
            CapturedException,
        ) as error:  # PySpark has names of its own for some of Java's
            said = str(getattr(error, "java_exception", None) or error)
            if "java.io.FileNotFoundException" in said:
                raise FileNotFoundError(said.splitlines()[0]) from error
            raise CannotRun(
                f"the ledger {self.address} cannot be {done}: {stack_trace.reason(said)}; see that its"
                " file system is there and may be written, that Spark has the jars of its scheme and its"
                " settings (spark.hadoop.*), or give another --ledger"
            ) from error

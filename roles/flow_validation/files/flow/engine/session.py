# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The Spark session: started quickly, with the connector, and this package on the executors."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Callable, Iterator

from flow.engine import account, connector, executors, jvm
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
_KILLED_SECONDS = 5.0  # for the end of a JVM that was killed
_CLASS_PATH = "spark.driver.extraClassPath"
_started = []  # the session
_scratch = contextlib.ExitStack()  # directories for what Spark sorts
_sparing: list = []  # one for each `spared` that is open


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
    submitted = jvm.in_spark_submit()
    if not submitted:
        master = master or DEFAULT_MASTER
    settings = {**_SETTINGS, **_places(master, jars, submitted)}
    if not submitted:
        kept = jars if _CLASS_PATH in settings else []
        settings["spark.driver.extraJavaOptions"] = jvm.options(work, records, typical, kept)
    wanted = merged(given, settings)
    if master:
        wanted["spark.master"] = master
    builder = SparkSession.builder.config(map=wanted)
    if not _master_answers(master or ""):
        raise CannotRun(_no_master(master, "no master answered there"))
    try:
        with jvm.without_module(work):
            scratch = jvm.scratch_places(given, os.environ) if _in_one_jvm(master) else []
            jvm.start(wanted, work, given, [_scratch_in(place) for place in scratch])
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


def _in_one_jvm(master: str | None) -> bool:
    return master is not None and (master == "local" or master.startswith("local["))


def _package(work: str) -> str:
    """The package flow as a zip, for Python workers on other machines."""
    here = Path(__file__).resolve().parents[1]
    path = os.path.join(work, "flow.zip")
    with zipfile.ZipFile(path, "w") as bundle:
        for source in sorted(here.rglob("*.py")):
            bundle.write(source, source.relative_to(here.parent))
    return path


def halt() -> None:
    """End Spark's JVM at once, with its tasks, so that no thread waits for it any more; only its tasks, as
    long as it is `spared`.
    """
    for spark in _started:
        java = getattr(spark.sparkContext._gateway, "proc", None)
        if java is not None and not _sparing:
            with suppress(Exception):  # it is gone already
                java.kill()
        else:  # spark-submit's ends with this process
            _call_off(spark.sparkContext)


def _call_off(context) -> None:
    """Cancel Spark's jobs, until it is gone: this thread may have told it of one that has not begun. In a thread of its
    own, since Java answers each thread's calls one after another, and this one's may be a job.
    """

    def cancel() -> None:
        with suppress(Exception):  # it is gone
            while True:
                context.cancelAllJobs()
                time.sleep(0.2)

    threading.Thread(target=cancel, name="cancel", daemon=True).start()


@contextmanager
def spared(needed: bool) -> Iterator[None]:
    """While the context is open, and if that is `needed`, `halt` leaves Spark's JVM to the body, which needs it to take
    back what it has begun. It ends with the context then.
    """
    if not needed:
        yield
        return
    _sparing.append(True)
    try:
        yield
    finally:
        _sparing.pop()
        if stopping.requested.is_set():
            halt()


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
    jvm.ended(java, whole, output)
    if java is not None and stopping.requested.is_set():  # it was killed, and goes at once
        with suppress(subprocess.TimeoutExpired):
            java.wait(_KILLED_SECONDS)
    _scratch.close()


def _scratch_in(place: str) -> str:
    """A directory there for what Spark sorts, until `stop`: a JVM that is killed removes nothing of that itself."""
    try:
        os.makedirs(place, exist_ok=True)
        return _scratch.enter_context(_private(place))
    except OSError:  # Spark does without one of several, and says so of the only one
        return place


def _no_farewell(record: logging.LogRecord) -> bool:
    # py4j tells a JVM that is gone which of its objects are not needed any more, and complains
    return not str(record.msg).startswith("Exception while sending command")


def prepare_java(jars: str) -> list:
    """Check Java, name it to PySpark, and return the connector's jars."""
    if jvm.in_spark_submit():
        java = os.path.join(os.environ.get("JAVA_HOME", ""), "bin", "java")
        return connector.provide_jars(java if os.access(java, os.X_OK) else "java", jars)[0]
    java = connector.find_java()
    if not os.environ.get("JAVA_HOME") and java != shutil.which("java"):
        os.environ["JAVA_HOME"] = connector.home_of(java)  # PySpark would take that on the PATH
    return connector.provide_jars(java, jars)[0]


# In a private directory, locked while it is in use; and how old it is at least when others remove it.
WORK, IN_USE, YOUNG_SECONDS = "kafkaops-flow-", "in-use", 60.0


def work_directory(now: Callable[[], float] = time.time) -> contextlib.AbstractContextManager[str]:
    """A private directory for the run; removed at its end, or by a later run where this one is killed."""
    return _private(tempfile.gettempdir(), now)


@contextmanager
def _private(place: str, now: Callable[[], float] = time.time) -> Iterator[str]:
    """One below this place. The kernel gives its lock back with the process."""
    for path in Path(place).glob(f"{WORK}*"):
        with suppress(OSError):
            _sweep(path, now())
    # what is busy in it may be about to end
    whole = tempfile.TemporaryDirectory(prefix=WORK, dir=place, ignore_cleanup_errors=True)
    with whole as directory:
        with open(os.path.join(directory, IN_USE), "w", encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield directory


def _sweep(path: Path, now: float) -> None:
    """Remove a directory of this user that nobody holds; one without a lock only if it is empty: whoever made it was
    killed before he held it. Else it may be of an older release.
    """
    told = path.lstat()
    if not stat.S_ISDIR(told.st_mode) or told.st_uid != os.getuid():
        return
    try:
        lock = (path / IN_USE).lstat()
    except FileNotFoundError:
        if now - told.st_mtime > YOUNG_SECONDS:
            path.rmdir()
        return
    if now - lock.st_mtime > YOUNG_SECONDS:
        with open(path / IN_USE, "r+", encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""How the job says that it cannot go on: one sentence, whatever went wrong."""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback

from flow.messages import stack_trace
from flow.messages.output import write

_FULL = re.compile(r"No space left on device|Disk quota exceeded")  # as Java and Python say it
_OF_PLACES = (
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EIO,
    errno.ESTALE,
)
_REQUIRED = ("pyspark", "py4j", "confluent_kafka")
TRACE = "failure.txt"  # in the output's directory: where a fault of the job itself was raised


LIMIT = "its time limit"  # of Stopped, where no signal came from outside


class CannotRun(Exception):
    """The validation could not be done; the message is one sentence for a person (exit code 3)."""


class Stopped(BaseException):
    """Somebody ended the run: the message is the signal's name, or LIMIT. No `except Exception` may keep it."""


def lacks(package: str) -> str:
    """The sentence, with the remedy, about a package that this Python has not."""
    return (
        f"{sys.executable} has no {package}; install the collection's requirements.txt for it, or choose"
        " another Python (flow_validation_python)"
    )


def disk_is_full(error: BaseException) -> bool:
    """Whether Java or Python failed by a disk without room, whichever it was."""
    return bool(_FULL.search(str(error)))


def spark_disk_is_full(error: BaseException) -> str:
    """Part of a sentence, with the remedy, if that is why Spark failed; "" if it is not."""
    if not disk_is_full(error):
        return ""
    return (
        "the disk is full where Spark keeps what it sorts; make room there, or choose another place with"
        " SPARK_LOCAL_DIRS"
    )


_GONE_WORDS = (
    r"(?:SparkContext|Spark session|JVM)\b.{0,40}(?:shut ?down|stopped|crashed)|cancelled because SparkContext"
    r"|stopped SparkContext"
)
_WHY_GONE = "see why Spark's process ended (its log; the kernel's, for memory)"
_SPARK_GONE = re.compile(rf"{_GONE_WORDS}|Answer from Java side is empty", re.IGNORECASE)

# What Java says where it cannot load what unpacks zstd or snappy, the first time and later.
UNLOADED = r"UnsatisfiedLinkError|FAILED_TO_LOAD_NATIVE_LIBRARY|Could not initialize class \S*(?:zstd|[Ss]nappy)"

# What Spark and Kafka's Java client say -> what to do about it; the first that is found. What a broker may be the
# cause of is last: its words stand beside others' as well.
_REMEDIES = (
    (
        r"not authorized|AuthorizationException|AUTHORIZATION_FAILED",
        "allow this user Describe and Read on the topic, and Write where it writes",
    ),
    (
        r"SaslAuthentication|SslAuthentication|SSL handshake",
        "see the credentials and certificates of --command-config",
    ),
    (
        UNLOADED,
        "Java could not load what unpacks this compression: see that its temporary directory has room and is not"
        " mounted with noexec, or give another one (-Djava.io.tmpdir=... in spark.driver.extraJavaOptions and"
        " spark.executor.extraJavaOptions; --spark-config)",
    ),
    (
        r"Java heap space|OutOfMemoryError|GC overhead limit",
        "give Spark more memory (spark.driver.memory, spark.executor.memory; --spark-config)",
    ),
    (
        r"cancellation of all jobs",  # by engine.executors.minded
        "Spark has had no executor any more: see its master's page and the executors' logs",
    ),
    (
        r"hs_err_pid",
        "then give Spark (spark.driver.memory; --spark-config, flow_validation_spark_settings) or this machine more"
        " memory",
    ),
    (
        rf"ExecutorLost|executor lost|Python worker exited|Answer from Java side|{_GONE_WORDS}",
        _WHY_GONE,
    ),
    (
        r"timed out|Timeout|not available|disconnect|Connection refused|NotLeader|_TRANSPORT|no broker",
        "wait until the brokers answer again",
    ),
)


def _java_is_gone(error: BaseException) -> bool:
    """Whether nobody answers where Spark's Java was: the driver itself has no other connection, since librdkafka makes
    exceptions of its own.
    """
    of_py4j = any(each.__name__ == "Py4JNetworkError" for each in type(error).__mro__)
    return of_py4j or isinstance(error, ConnectionError)


def with_remedy(error: BaseException, otherwise: str) -> str:
    """Part of a sentence: why Spark could not do its work, and what to do about it; `otherwise` where that
    cannot be told by what was said.
    """
    text = str(error)
    if full := spark_disk_is_full(error):
        return full
    if _java_is_gone(error):  # whose words are those of a broker that is gone, too
        text = stack_trace.JAVA_GONE
    why = stack_trace.reason(text)
    for place in (why, text):  # what led to it may say more
        for words, remedy in _REMEDIES:
            if re.search(words, place, re.IGNORECASE):
                return f"{why}; {remedy}"
    return f"{why}; {otherwise}"


def sentence(error: BaseException, directory: str) -> str:
    """What a person is told of an exception that ended the job, with the remedy.

    directory: where the traceback of one that nobody foresaw is kept, "" for nowhere.
    """
    if isinstance(error, CannotRun):
        return str(error)
    if isinstance(error, Stopped) and str(error) == LIMIT:
        return (
            f"it was stopped by {LIMIT} before there was a verdict; give it more time (--give-up-after,"
            " flow_validation_timeout_seconds), or fewer records"
        )
    if isinstance(error, KeyboardInterrupt):
        error = Stopped("SIGINT")  # it came before, or behind, what makes this of it
    if isinstance(error, Stopped):
        return f"it was stopped by {error} before there was a verdict; begin it again"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f" ({error.filename})" if error.filename else ""
        return f"the disk is full{where}; make room, then run it again"
    if isinstance(error, ModuleNotFoundError) and error.name in _REQUIRED:
        return lacks(error.name)
    if isinstance(error, PermissionError):
        return f"{error.filename} may not be written or read; give other directories, or the right"
    if isinstance(error, FileNotFoundError) and "temporary directory" in str(error):
        return f"{error.strerror}: they are full, or may not be written; make room, or give another one by TMPDIR"
    if isinstance(error, OSError) and error.filename and error.errno in _OF_PLACES:
        return f"{error.filename} cannot be used ({error.strerror}); give another directory"
    if full := spark_disk_is_full(error):
        return f"{full}, then run it again"
    if _java_is_gone(error) or _SPARK_GONE.search(str(error)):
        return f"Spark ended while it worked: {with_remedy(error, _WHY_GONE)}, then run it again"
    what = f"{type(error).__name__}: {stack_trace.reason(str(error))}"
    told = f"the job itself failed ({what}), which says nothing about the cluster"
    kept = _keep_trace(error, directory)
    return f"{told}; {kept}try again, and report it if it happens twice"


def _keep_trace(error: BaseException, directory: str) -> str:
    """Write the traceback down; the part of the sentence that says where it is."""
    path = os.path.join(directory, TRACE)
    try:
        if directory:
            write(path, "".join(traceback.format_exception(error)))
            return f"the traceback is in {path}; "
    except OSError:  # the disk may be what is wrong
        pass
    return ""

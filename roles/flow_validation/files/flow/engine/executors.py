# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Spark's executors on other machines: waited for, and asked whether they can do the job's work.

A master gives executors one after another, and dynamic allocation gives none before tasks wait. So what
Spark can do at once is known a while after its start, and then only if something waits for it.
"""

from __future__ import annotations

import os
import re
import socket
import time
from contextlib import contextmanager, suppress
from typing import Callable, Iterator, Optional

from flow.messages import stack_trace, stopping
from flow.messages.failure import CannotRun
from flow.messages.meanwhile import meanwhile

FIRST_SECONDS = 120  # for the first executor; a busy cluster may have to start a container
QUIET_SECONDS = 10  # without another one, after which nobody else is waited for
_LOOK_SECONDS = 0.2
_SLEEP_MS = 3_600_000  # of the tasks that only wait to be cancelled
_GROUP = "kafkaops-executors"
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_MOST_TOLD = 3


LOST_SECONDS = 120  # without any executor, while Spark has work for one


def are_elsewhere(spark) -> bool:
    """Whether tasks run in other processes than Spark's driver."""
    return not spark.sparkContext.master.startswith("local")


def enough(seen: list, wanted: int, now: float) -> bool:
    """Whether to go on. seen: (moment, executors, tasks at once), one for each change, in order.

    CannotRun if FIRST_SECONDS brought no executor at all.
    """
    since, executors, tasks = seen[-1]
    if not executors:
        if now - seen[0][0] >= FIRST_SECONDS:
            raise CannotRun(
                f"Spark has got no executor within {FIRST_SECONDS} s: its master has no cores or no"
                " memory free; see its page, ask for less (spark.executor.memory, spark.cores.max), or"
                " give another --master"
            )
        return False
    return tasks >= wanted or now - since >= QUIET_SECONDS


def gather(
    spark,
    wanted: int,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait for executors elsewhere for `wanted` tasks at once, or for as many as there are."""
    context = spark.sparkContext
    with _waiting_tasks(spark, wanted):
        seen: list = []
        while True:
            stopping.check()
            state = _executors(context), context.defaultParallelism
            if not seen or seen[-1][1:] != state:
                seen.append((clock(), *state))
            if enough(seen, wanted, clock()):
                break
            sleep(_LOOK_SECONDS)
    use(spark)


# Into how many parts Spark divides what it sorts and joins.
PARTS = "spark.sql.shuffle.partitions"


def forsaken(seen: list, now: float) -> bool:
    """Whether Spark has had work and no executor for LOST_SECONDS. seen: (moment, executors, jobs), in order."""
    since = None
    for moment, executors, jobs in seen:
        if executors or not jobs:
            since = None
        elif since is None:
            since = moment
    return since is not None and now - since >= LOST_SECONDS


@contextmanager
def minded(
    spark, every: float = 1.0, clock: Callable[[], float] = time.monotonic
) -> Iterator[None]:
    """While the context is open, whatever waits for executors elsewhere, which have all gone and do not come
    again, ends: Spark itself would wait for ever.
    """
    if not are_elsewhere(spark):
        yield
        return
    context, seen = spark.sparkContext, []

    def mind() -> None:  # Spark may be gone
        jobs = len(context.statusTracker().getActiveJobsIds())
        state = (_executors(context), jobs > 0)
        if not seen or seen[-1][1:] != state:
            seen[:] = [*seen[-1:], (clock(), *state)]
        if forsaken(seen, clock()):
            context.cancelAllJobs()

    with meanwhile("executors", mind, every):
        yield


def told(spark) -> dict:
    """Which Spark it is and how many tasks it does at once, for the settings of verdict.json."""
    context = spark.sparkContext
    return {"spark_master": context.master, "spark_cores": context.defaultParallelism}


def use(spark) -> None:
    """Divide what is sorted and joined among all tasks that Spark does at once now, unless a person has said among how
    many.
    """
    if spark.sparkContext.getConf().contains(PARTS):
        return
    cores = spark.sparkContext.defaultParallelism
    spark.conf.set(PARTS, str(max(1, min(cores, 200))))


def _executors(context) -> int:
    # the driver is one of them
    return len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1


@contextmanager
def _waiting_tasks(spark, number: int) -> Iterator[None]:
    """Tasks that do nothing, for which dynamic allocation gets executors."""
    from pyspark import InheritableThread

    context = spark.sparkContext

    def wait() -> None:
        context.setJobGroup(_GROUP, "waiting for executors", interruptOnCancel=True)
        sleep = f"java_method('java.lang.Thread', 'sleep', {_SLEEP_MS}L)"
        with suppress(Exception):  # it is cancelled
            spark.range(0, number, 1, number).selectExpr(sleep).collect()

    waiting = InheritableThread(target=wait, daemon=True)
    waiting.start()
    try:
        yield
    finally:
        while waiting.is_alive() and not stopping.requested.is_set():
            with suppress(Exception):  # Spark may be gone
                context.cancelJobGroup(_GROUP)
            waiting.join(_LOOK_SECONDS)


def check(spark, paths: list, directory: Optional[str]) -> None:
    """CannotRun unless executors elsewhere can run the job's Python, and see what it will open there.

    paths: files; directory: of the attempts, None where nothing is written.
    """
    if not are_elsewhere(spark):
        return
    context = spark.sparkContext

    def one(_number: int, _nothing: object) -> list:
        return _missing(paths, directory)

    number = context.defaultParallelism
    try:
        told = context.parallelize(range(number), number).mapPartitionsWithIndex(one).collect()
    except Exception as error:
        stopping.check()
        raise CannotRun(python_refusal(str(error))) from error
    if told:
        raise CannotRun("; ".join(sorted(set(told))[:_MOST_TOLD]))


def python_refusal(said: str) -> str:
    """The sentence for what Spark says where the job's Python cannot run on executors."""
    program = _NO_PROGRAM.search(said)
    what = f"there is no {program[1]}" if program else stack_trace.reason(said)
    return (
        f"Spark's executors cannot run the job's Python: {what}; name one that all of them have"
        " (spark.pyspark.python in --spark-config), or ship an environment with spark.archives"
    )


def _missing(paths: list, directory: Optional[str]) -> list:
    """What one executor lacks, as sentences."""
    host, found = socket.gethostname(), []
    try:
        import confluent_kafka  # noqa: F401  pylint: disable=unused-import
    except ImportError as error:
        found.append(
            f"Spark's executor on {host} cannot import confluent_kafka ({error}); install it there, or"
            " ship an environment with spark.archives"
        )
    for path in paths:
        if not os.access(path, os.R_OK):
            found.append(
                f"Spark's executor on {host} cannot read {path}, which the client settings name; bring"
                " it there"
            )
    if directory is not None and not os.access(directory, os.W_OK):
        found.append(
            f"Spark's executor on {host} does not see the ledger's directory {directory}, or may not"
            " write there; give a --ledger that all executors share, such as hdfs://..."
        )
    return found

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Watches a Kafka cluster for as long as it runs: a canary writes a few records a second, and a stream
compares what was acknowledged with what arrives.

    watch.py --bootstrap-servers HOST:PORT,... --state DIR --output DIR [--command-config FILE] ...

    watch.py --remove ...

It ends with SIGTERM or Ctrl-C, and goes on where it was when it is started again. With --duration it ends
by itself, when each record is decided: exit code 0 if all arrived, 1 if one was lost, 2 if none was
acknowledged, or it is not known of each whether it arrived. 3: it could not run. docs/streaming.md
explains it.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from flow.engine import session
from flow.judge.verdict import COULD_NOT_RUN, EXIT_CODE, INCONCLUSIVE
from flow.messages import failure
from flow.messages.failure import CannotRun
from flow.messages.output import note
from flow.prepare.cluster import Cluster
from flow.steps.options import clients_settings, spark_settings
from flow.steps.starting import refuse_unwritable
from flow.watch import alarm, join, topic
from flow.watch.service import Watch, tell_end
from flow.write import pacing

_DURATIONS = ("every", "within", "latency_bound", "silence_bound", "alarm_hold", "renew")


def arguments(argv: list) -> argparse.Namespace:
    """The command line; a mistake in it is exit code 3 as well."""
    parser = argparse.ArgumentParser(
        prog="watch.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.error = lambda message: parser.exit(  # type: ignore[method-assign]
        COULD_NOT_RUN, f"watch.py: {message}\n"
    )
    add = parser.add_argument
    add("--bootstrap-servers", required=True, metavar="HOST:PORT,...")
    add("--state", required=True, type=os.path.expanduser, metavar="DIR",
        help="the checkpoint and the ledger; with them it goes on where it was")  # fmt: skip
    add("--output", required=True, type=os.path.expanduser, metavar="DIR",
        help="for status.json, status.html and watch.prom")  # fmt: skip
    add("--metrics", default="", type=os.path.expanduser, metavar="FILE",
        help="instead of watch.prom: a file in the directory of node_exporter's textfile collector")  # fmt: skip
    add(
        "--topic",
        default=topic.PREFIX,
        help=f"{topic.PREFIX} or {topic.PREFIX}-NAME, created if it is missing",
    )
    add("--replication-factor", type=int, help="of a new topic; default: 3 or all brokers")
    add("--min-isr", type=int, help="of a new topic; default: one less than replicas")
    add(
        "--rate",
        type=float,
        default=2,
        metavar="RECORDS",
        help="a second and partition; default: 2",
    )
    add("--record-size", type=int, default=100, metavar="BYTES")
    add("--every", default="5s", metavar="TIME", help="a batch; default: 5s")
    add(
        "--within",
        default="60s",
        metavar="TIME",
        help="a record is lost that has not arrived; default: 60s",
    )
    add(
        "--latency-bound",
        default="",
        metavar="TIME",
        help="of p99 of a batch, less than half of --within; default: 25s, or two fifths of a shorter one",
    )
    add(
        "--silence-bound",
        default="2m",
        metavar="TIME",
        help="without acknowledgement or batch; default: 2m",
    )
    add(
        "--alarm-hold",
        default="1h",
        metavar="TIME",
        help="how long a loss is an alarm; default: 1h",
    )
    add(
        "--renew",
        default="7d",
        metavar="TIME",
        help="how often the checkpoint begins anew; default: 7d",
    )
    add("--duration", default="", metavar="TIME", help="end by itself, when all is decided")
    add("--remove", action="store_true", help="delete the topic and the state, and end")
    add("--check", action="store_true", help="say whether the options can be meant, and end")
    add("--command-config", metavar="FILE", help="client properties, as Kafka's tools")
    add("--master", help=f"Spark master on this machine; default: {session.DEFAULT_MASTER}")
    add("--spark-config", metavar="FILE", help="settings of Spark, one a line, as KEY=VALUE")
    add("--jars", default=os.environ.get("KAFKAOPS_SPARK_JARS", ""),
        help="the connector's jars (files or a folder) instead of resolving them")  # fmt: skip
    add("--timeout", type=float, default=60, help="seconds for each admin request")
    chosen = parser.parse_args(argv)
    _check(parser, chosen)
    return chosen


def _check(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> None:
    """Refuse what cannot be meant; durations become seconds."""
    for name in (*_DURATIONS, "duration"):
        text = getattr(chosen, name)
        try:
            setattr(chosen, name, pacing.seconds(text) if text else 0)
        except ValueError as error:
            parser.error(f"--{name.replace('_', '-')}: {error}")
    if not 0.1 <= chosen.rate <= 100:
        parser.error(f"--rate must be from 0.1 to 100, not {chosen.rate}")
    if not 48 <= chosen.record_size <= 100_000:
        parser.error(f"--record-size must be from 48 to 100000, not {chosen.record_size}")
    if chosen.within < 2 * chosen.every:
        parser.error("--within must be at least twice --every, or batches come too late to judge")
    # A record that takes longer is given up, and in no quantile.
    chosen.latency_bound = chosen.latency_bound or min(25, 0.4 * chosen.within)
    if chosen.latency_bound >= alarm.patience(chosen.within):
        parser.error(
            "--latency-bound must be less than half of --within, in which a record has to be acknowledged,"
            f" so less than {alarm.patience(chosen.within):g}s, not {chosen.latency_bound:g}s"
        )
    # Only before it begins: one that is started again tells it by an alarm, instead of watching nothing.
    folder = os.path.dirname(os.path.abspath(chosen.metrics))
    if chosen.check and chosen.metrics and not os.access(folder, os.W_OK | os.X_OK):
        parser.error(f"--metrics: {folder} is not a directory in which this account may write")
    if not all(re.fullmatch(r"\S+:\d+", each) for each in chosen.bootstrap_servers.split(",")):
        parser.error(f"--bootstrap-servers must be HOST:PORT,..., not {chosen.bootstrap_servers!r}")


def watch(options: argparse.Namespace, stop: threading.Event) -> int:
    """Until `stop`, or to the end of its time; the exit code."""
    for place in (options.output, options.state):
        refuse_unwritable(place)
    clients = clients_settings(options.bootstrap_servers, options.command_config)
    if options.remove:
        topic.refuse_foreign(options.topic)
        Cluster(clients[0], options.timeout).delete_topic(options.topic, until_gone=True)
        shutil.rmtree(options.state)
        return 0
    given = {**join.SETTINGS, **spark_settings(options)}
    jars = session.prepare_java(options.jars)
    cluster = Cluster(clients[0], options.timeout)
    wanted = (options.replication_factor, options.min_isr)
    partitions = topic.own(cluster, options.topic, *wanted, options.state)
    plan = topic.plan(options.state, cluster, options.topic, partitions, options.record_size)
    with session.work_directory() as work:
        # not a quick run, and none whose classes others need
        spark = session.start(options.master, jars, work, given=given)
        _end_by(stop)  # PySpark has taken Ctrl-C for itself
        return Watch(options, spark, cluster, clients, plan, stop).run()


def _told(options: argparse.Namespace, stop: threading.Event) -> int:
    """`watch`, whose end by a fault is told in the files of its status, too."""
    try:
        return watch(options, stop)
    except Exception as error:
        if not options.remove:
            tell_end(options, "" if stop.is_set() else failure.sentence(error, options.output))
        raise


def _end_by(stop: threading.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())


def _alone(state: str):
    """Hold the state's directory; CannotRun if another process does."""
    os.makedirs(state, exist_ok=True)
    lock = open(
        os.path.join(state, "lock"), "w", encoding="utf-8"
    )  # pylint: disable=consider-using-with
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise CannotRun(
            f"another process watches with {state}; end it, or give another --state"
        ) from error
    return lock


def main(argv: list) -> int:
    """The exit code; what goes wrong is told in one sentence."""
    options, stop = arguments(argv), threading.Event()
    if options.check:
        return 0
    os.umask(0o022)  # supervisord's is narrower, and another account reads the metrics
    _end_by(stop)
    try:
        with _alone(options.state):
            return _told(options, stop)
    except Exception as error:
        if stop.is_set():  # Spark's Java may have had the same signal
            return EXIT_CODE[INCONCLUSIVE] if options.duration else 0
        note(f"could not run: {failure.sentence(error, options.output)}")
        return COULD_NOT_RUN
    finally:
        session.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Proves that every record which a Kafka cluster acknowledges comes out again.

    job.py run|produce|verify --bootstrap-servers HOST:PORT,... --topic NAME --records N
           --record-size BYTES --ledger DIR --output DIR [--command-config FILE] ...
    job.py inspect --bootstrap-servers HOST:PORT,... --topic NAME --output DIR
           [--id EXPRESSION] [--sequence EXPRESSION] ...
    job.py compare --bootstrap-servers HOST:PORT,... --output DIR [--until FILE] [--beside PID]
    job.py fetch
    job.py leftovers --bootstrap-servers HOST:PORT,... --output DIR [--older-than TIME] [--remove]
    job.py index --output DIR

Started by Python or by spark-submit. Exit code: 0 pass, 1 violation, 2 inconclusive, 3 could not
run.
docs/validation.md explains how to use it, docs/validation-judging.md what each check proves.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import Collection

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from flow import steps
from flow.engine import session
from flow.judge.verdict import COULD_NOT_RUN
from flow.messages import failure, stopping
from flow.messages.failure import Stopped
from flow.messages.output import give_up_unsaid, note
from flow.present import sentence
from flow.probe import probes
from flow.write import client_settings, pacing

MODES = ("run", "produce", "verify", "inspect", "compare", "fetch", "leftovers", "index")


def arguments(argv: list) -> argparse.Namespace:
    """The command line; a mistake in it is exit code 3 as well, since nothing was judged."""
    parser = argparse.ArgumentParser(
        prog="job.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.error = lambda message: parser.exit(  # type: ignore[method-assign]
        COULD_NOT_RUN, f"job.py: {message}\n"
    )
    _add_what_and_where(parser)
    _add_records(parser)
    _add_promises(parser)
    _add_listeners_and_probes(parser)
    _add_spark_and_time(parser)
    _add_modes_of_their_own(parser)
    chosen = parser.parse_args(argv)
    if chosen.mode == "index" and not chosen.output:
        parser.error("index needs --output")
    if chosen.mode not in ("fetch", "index"):
        _check(parser, chosen)
    return chosen


def _add_what_and_where(parser: argparse.ArgumentParser) -> None:
    """The mode, the cluster, and where things are kept."""
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--bootstrap-servers", default="", metavar="HOST:PORT,...")
    parser.add_argument(
        "--ledger",
        type=os.path.expanduser,
        metavar="DIR",
        help="Parquet; run, produce: written; a path, or what Spark's Hadoop layer opens: hdfs://...",
    )
    # A ~ is the home of whoever runs the job, here or on another host; no shell expands it behind a `=`.
    parser.add_argument(
        "--output",
        type=os.path.expanduser,
        metavar="DIR",
        help="for verdict.json and report.html",
    )
    parser.add_argument("--topic", help="default: a topic of its own, kafkaops-flow-RUN")


def _add_records(parser: argparse.ArgumentParser) -> None:
    """What is written, and when it ends."""
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--record-size", type=int, default=100, metavar="BYTES")
    parser.add_argument(
        "--rate",
        type=float,
        default=0,
        metavar="RECORDS",
        help="a second, over all producers; default: as fast as it goes, with --duration"
        f" {pacing.POLITE_RATE}",
    )
    parser.add_argument(
        "--duration",
        default="",
        metavar="TIME",
        help="run, produce: write for so long (90s, 10m, 2h, 1d), instead of --records",
    )
    parser.add_argument(
        "--until",
        default="",
        metavar="FILE",
        help="run, produce: end as soon as it exists, before all --records are written; compare: end then",
    )
    parser.add_argument(
        "--beside",
        type=int,
        default=0,
        metavar="PID",
        help="end also when this process is gone; with --until or --duration, or compare",
    )
    parser.add_argument(
        "--events",
        default="",
        metavar="FILE",
        help='run: drawn into the report; JSON, [{"from_ms", "to_ms", "label"}, ...], read at the end',
    )
    parser.add_argument("--partitions", type=int, help="of a new topic; default: 2 a broker")
    parser.add_argument("--producers", type=int, help="produce tasks; default: Spark's parallelism")


def _add_promises(parser: argparse.ArgumentParser) -> None:
    """What the cluster is held to."""
    parser.add_argument(
        "--expected-brokers", type=int, help="fewer registered brokers fail coverage"
    )
    parser.add_argument(
        "--leaving-broker",
        action="append",
        type=int,
        default=[],
        metavar="ID",
        help="leaves the cluster during the run on purpose; repeatable",
    )
    parser.add_argument(
        "--broker-version",
        action="append",
        default=[],
        metavar="ID=RELEASE",
        help="what runs there, for the verdict: no request tells it; repeatable",
    )
    parser.add_argument("--min-isr", type=int, help="planned min.insync.replicas, for durability")
    parser.add_argument("--replication-factor", type=int, help="planned; default: 3 or all brokers")
    parser.add_argument(
        "--with-absent",
        action="store_true",
        help="a new topic gets replicas also on brokers that are down and hold others (ZooKeeper)",
    )
    parser.add_argument(
        "--groups",
        type=int,
        default=sentence.DEFAULTS["groups"],
        help="consumer groups, for continuity; 0: not judged",
    )
    parser.add_argument(
        "--command-config",
        type=os.path.expanduser,
        metavar="FILE",
        help="client properties, as Kafka's tools",
    )


def _add_listeners_and_probes(parser: argparse.ArgumentParser) -> None:
    """What is tried beside the run."""
    parser.add_argument(
        "--listener",
        action="append",
        default=[],
        metavar="NAME=HOST:PORT,...",
        help="another listener: a record is written and read back through it at each broker",
    )
    parser.add_argument(
        "--listener-config",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="its client properties; default: those of --command-config",
    )
    parser.add_argument(
        "--probe",
        action="append",
        default=[],
        choices=sorted(probes.PROBES),
        help="run: try this promise of the cluster, too, with a topic of its own; repeatable",
    )
    parser.add_argument(
        "--probe-margin",
        type=float,
        default=60,
        metavar="SECONDS",
        help="that brokers may be late to compact or delete, by their own settings; default: 60",
    )


def _add_spark_and_time(parser: argparse.ArgumentParser) -> None:
    """The producer, Spark, deadlines."""
    parser.add_argument("--producer-property", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument(
        "--master", help=f"Spark master; default: spark-submit's, else {session.DEFAULT_MASTER}"
    )
    parser.add_argument(
        "--spark-config",
        type=os.path.expanduser,
        metavar="FILE",
        help="settings of Spark, one a line, as KEY=VALUE",
    )
    parser.add_argument(
        "--jars",
        type=os.path.expanduser,
        default=os.environ.get("KAFKAOPS_SPARK_JARS", ""),
        help="the connector's jars (files or a folder) instead of resolving them",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=sentence.DEFAULTS["timeout"],
        help="seconds for each admin request",
    )
    parser.add_argument("--delivery-timeout", type=float, default=120, help="seconds for a record")
    parser.add_argument(
        "--give-up-after",
        type=float,
        default=0,
        metavar="SECONDS",
        help="end then, in order, as with a signal; default: no limit",
    )
    parser.add_argument(
        "--again",
        default="",
        metavar="COMMAND",
        help="what the page names to judge it again; default: this job's own command",
    )
    parser.add_argument("--keep", action="store_true", help="keep the topic that run created")
    parser.add_argument(
        "--transactional",
        action="store_true",
        help="run, produce: write in transactions, of which some are aborted; inspect: read"
        " committed records only",
    )


def _add_modes_of_their_own(parser: argparse.ArgumentParser) -> None:
    """Of leftovers and inspect."""
    left = parser.add_argument_group("leftovers", "of earlier runs, in the cluster and in --output")
    left.add_argument(
        "--older-than", default="1d", metavar="TIME", help="90s, 10m, 2h; default: 1d"
    )
    left.add_argument("--remove", action="store_true", help="else they are only listed")
    of_topic = parser.add_argument_group("inspect", "Spark SQL over key, value, headers, ...")
    of_topic.add_argument("--id", metavar="EXPRESSION", help="what no two records share")
    of_topic.add_argument("--sequence", metavar="EXPRESSION", help="what never falls")
    of_topic.add_argument(
        "--by", metavar="EXPRESSION", default="key", help="the sequence's own; default: key"
    )
    of_topic.add_argument("--contiguous", action="store_true", help="the sequence has no holes")
    of_topic.add_argument("--intact", metavar="EXPRESSION", help="true of a whole record")
    of_topic.add_argument("--where", metavar="EXPRESSION", help="judge only these records")


def _check(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> None:
    """Refuse what does not go together or cannot be meant; texts become what they mean."""
    given = {name for name, value in vars(chosen).items() if value != parser.get_default(name)}
    _check_servers(parser, "--bootstrap-servers", chosen.bootstrap_servers)
    if chosen.topic == "":
        parser.error("--topic is empty; leave it out for a topic of the run's own")
    if chosen.mode == "inspect":
        if not chosen.topic:
            parser.error("inspect needs --topic")
        if chosen.contiguous and not chosen.sequence:
            parser.error("--contiguous needs --sequence")
    elif chosen.mode not in ("leftovers", "compare") and not chosen.ledger:
        parser.error(f"{chosen.mode} needs --ledger")
    if chosen.mode != "produce" and not chosen.output:
        parser.error(f"{chosen.mode} needs --output")
    _check_ranges(parser, chosen)
    _set_pace(parser, chosen)
    if chosen.until and not chosen.rate and chosen.mode != "compare":
        parser.error("--until needs --rate")
    if chosen.beside and chosen.mode != "compare" and not (chosen.until or chosen.duration):
        parser.error("--beside needs --until or --duration")
    if chosen.rate and chosen.transactional:
        parser.error("--rate does not go with --transactional; leave one of them out")
    _refuse_idle(parser, chosen, given)
    if chosen.mode == "verify" and chosen.transactional:
        parser.error("verify knows from the ledger whether there were transactions; leave it out")
    for option in ("listener", "listener_config"):
        pairs = [text.partition("=") for text in getattr(chosen, option)]
        if not all(name and value for name, _sign, value in pairs):
            parser.error(f"--{option.replace('_', '-')} must be NAME=..., with the listener's name")
        setattr(chosen, option, {name: value for name, _sign, value in pairs})
    chosen.broker_version = _versions(parser, chosen.broker_version)
    if any(number < 0 for number in chosen.leaving_broker):
        parser.error("--leaving-broker is a broker's id, which is not negative")
    for name, servers in chosen.listener.items():
        _check_servers(parser, f"--listener {name}", servers)
    if nameless := sorted(set(chosen.listener_config) - set(chosen.listener)):
        parser.error(f"--listener-config of {', '.join(nameless)}, but no such --listener")
    if chosen.probe and chosen.mode != "run":
        parser.error(f"--probe belongs to run, {chosen.mode} does not probe anything")
    chosen.probe = list(dict.fromkeys(chosen.probe))


_WRITING, _LEDGER = ("run", "produce"), ("run", "produce", "verify")
# option -> modes that heed it. All heed those that are not named here: where the cluster is, Spark, limits of time.
_HEEDED_BY = {
    **dict.fromkeys(("records", "record_size", "partitions", "producers", "with_absent"), _WRITING),
    **dict.fromkeys(("rate", "delivery_timeout", "listener", "listener_config"), _WRITING),
    "leaving_broker": _WRITING,
    **dict.fromkeys(("producer_property", "broker_version"), _WRITING),
    **dict.fromkeys(("until", "beside"), (*_WRITING, "compare")),
    **dict.fromkeys(("ledger", "groups", "expected_brokers"), _LEDGER),
    **dict.fromkeys(("replication_factor", "min_isr"), (*_LEDGER, "inspect")),
    "keep": _WRITING,  # produce keeps it anyway
    "events": ("run", "verify"),
    "topic": (*_LEDGER, "inspect"),
    "transactional": (*_LEDGER, "inspect"),
    "again": (*_LEDGER, "inspect"),
    "probe_margin": _LEDGER,
    **dict.fromkeys(("id", "sequence", "by", "contiguous", "intact", "where"), ("inspect",)),
    **dict.fromkeys(("older_than", "remove"), ("leftovers",)),
}


def _refuse_idle(
    parser: argparse.ArgumentParser, chosen: argparse.Namespace, given: Collection[str]
) -> None:
    """Refuse what the mode would not heed: who gave it believes that it was tried. given: names of options."""
    for name, modes in _HEEDED_BY.items():
        if name in given and chosen.mode not in modes:
            belongs = " and ".join(filter(None, (", ".join(modes[:-1]), modes[-1])))
            told = f"--{name.replace('_', '-')} belongs to {belongs}"
            writes = (
                ", verify writes nothing" if modes == _WRITING and chosen.mode == "verify" else ""
            )
            parser.error(f"{told}{writes or f', {chosen.mode} does not heed it'}")


# option -> (least, most) of what may be meant; both are allowed
_RANGES = {
    "records": (1, 10**15),
    "record_size": (48, 1_000_000),
    "beside": (0, 2**31 - 1),
    "partitions": (1, 100_000),
    "producers": (1, 10_000),
    "replication_factor": (1, 32_767),
    "min_isr": (1, 32_767),
    "expected_brokers": (0, 100_000),
    "groups": (0, 16),
    "rate": (0, 10**9),
    "give_up_after": (0, 10**8),
    "timeout": (1, 86_400),
    "delivery_timeout": (1, 86_400),
    "probe_margin": (0.001, 86_400),
}


def _check_ranges(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> None:
    """Refuse what cannot be meant, instead of putting something else in its place."""
    for name, (least, most) in _RANGES.items():
        value = getattr(chosen, name)
        if value is not None and not least <= value <= most:  # nan is nowhere
            option = name.replace("_", "-")
            parser.error(f"--{option} must be from {least} to {most:,}, not {value}")
    for text in chosen.producer_property:
        key, sign, value = text.partition("=")
        key = key.strip()
        own = key.removeprefix("topic.")  # the Python client takes those of a topic by that, too
        if not (key and sign and value.strip()):
            parser.error(f"--producer-property must be KEY=VALUE, not {text!r}")
        if own in client_settings.OWN_SETTINGS:
            parser.error(
                f"--producer-property {key} is the job's own: {client_settings.OWN_SETTINGS[own]}"
            )
        if key.startswith(client_settings.LOGIN_BEGINNINGS):
            parser.error(
                f"--producer-property {key} would be seen by every user of this machine:"
                " write it into the file of --command-config"
            )


def _versions(parser: argparse.ArgumentParser, texts: list) -> dict:
    """broker id -> release, of --broker-version."""
    found = {}
    for text in texts:
        number, sign, release = text.partition("=")
        if not (sign and re.fullmatch(r"[0-9]{1,10}", number) and release):
            parser.error(f"--broker-version must be ID=RELEASE, such as 1=3.9.2, not {text!r}")
        found[int(number)] = release
    return found


def _set_pace(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> None:
    """What --rate and --duration mean together; the duration becomes seconds, 0 where there is none."""
    try:
        chosen.older_than = pacing.seconds(chosen.older_than)
    except ValueError as error:
        parser.error(f"--older-than: {error}")
    if chosen.duration and chosen.mode not in ("run", "produce"):
        parser.error(f"--duration belongs to run and produce, {chosen.mode} writes nothing")
    try:
        chosen.duration = pacing.seconds(chosen.duration) if chosen.duration else 0
    except ValueError as error:
        parser.error(f"--duration: {error}")
    if chosen.duration > pacing.LONGEST_SECONDS:
        parser.error(f"--duration must be 30d at the most, not {chosen.duration} s")
    if chosen.duration and chosen.transactional:
        parser.error("--duration does not go with --transactional; leave one of them out")
    chosen.rate, chosen.records = pacing.steady(chosen.rate, chosen.duration, chosen.records)


def _check_servers(parser: argparse.ArgumentParser, what: str, servers: str) -> None:
    # Clients take an address with its protocol, but no URL.
    form = r"((SASL_)?(PLAINTEXT|SSL)://)?[^\s/]+:\d+"
    if not all(re.fullmatch(form, each.strip(), re.I) for each in servers.split(",")):
        parser.error(f"{what} must be HOST:PORT,..., not {servers!r}")


def main(argv: list) -> int:
    """Run one mode; returns the exit code. Only a verdict makes it 1: whatever else goes wrong is
    COULD_NOT_RUN, with one sentence.
    """
    code, whole, output = COULD_NOT_RUN, False, ""
    try:
        options = arguments(argv)
        output = options.output or ""
        stopping.listen(session.halt, options.give_up_after)
        code = getattr(steps, options.mode)(options)
        whole = True
        stopping.close()
    except (Exception, KeyboardInterrupt, Stopped) as error:
        stopping.close()
        if not whole:  # else a signal came when all was said
            code = COULD_NOT_RUN
            cause = stopping.stopped() or error  # whatever others have made of it
            said = failure.sentence(cause, output)
            if (known := stopping.concluded()) is None:
                note(f"could not run: {said}")
            else:
                code = known
                note(f"note: the verdict was written before the end: {cause} came behind it")
    session.stop(whole, output)
    return code


if __name__ == "__main__":
    try:
        ended = main(sys.argv[1:])
    finally:  # of a mistake in the command line, too
        give_up_unsaid()
    # Threads that still wait for a broker would be waited for, where the main one did not wait for them.
    if stopping.requested.is_set() or ended == COULD_NOT_RUN:
        os._exit(ended)
    sys.exit(ended)

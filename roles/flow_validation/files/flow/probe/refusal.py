# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The probe min-isr: does every broker refuse a write while fewer replicas than the minimum are in
sync?

No broker has to be stopped for it. With ZooKeeper, nobody checks whether the brokers of a replica
assignment exist. So each broker leads a partition that has one replica on a broker which nobody
ever started: it never gets in sync, and the ISR is one short of min.insync.replicas.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from flow.messages.failure import CannotRun
from flow.prepare.cluster import MIN_ISR
from flow.probe.trial import Answer, Bench, Debris, Finding, Record, write

REFUSALS = ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
# Ids of brokers are signed 32-bit numbers; those that brokers choose for themselves count up from
# reserved.broker.max.id (1000), and so never come there.
_GREATEST_ID = 2**31 - 1
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Place:
    """A partition of the probe while it was written to: who led it, and who was in sync."""

    leader: int
    isr: tuple


def absent(brokers: tuple) -> int:
    """An id that no broker has, nor will have."""
    return next(number for number in range(_GREATEST_ID, 0, -1) if number not in brokers)


def minimum(brokers: tuple, planned_min_isr: int) -> int:
    """The min.insync.replicas of the probe: the planned one, but at least two, or else a leader
    alone is enough, and at most one more than there are brokers.
    """
    return min(max(2, planned_min_isr), len(brokers) + 1)


def assignment(brokers: tuple, least: int, missing: int) -> list:
    """Replicas of one partition for each broker to lead: `least` of them, the last on the broker
    that is `missing`.
    """
    turns = [brokers[n:] + brokers[:n] for n in range(len(brokers))]
    return [[*turn[: least - 1], missing] for turn in turns]


def judge(places: dict, least: int, answers: dict) -> tuple:
    """(witnesses of writes that were accepted, sentences about what could not be judged).

    places: partition -> Place; least: min.insync.replicas; answers: partition -> Answer.
    """
    witnesses, unclear = [], []
    for number, place in sorted(places.items()):
        answer = answers.get(number, Answer(said="no answer"))
        isr = f"{len(place.isr)} in sync {list(place.isr)} and {MIN_ISR}={least}"
        if len(place.isr) >= least:
            unclear.append(f"partition {number} has {isr}, which allows writing")
        elif answer.offset is not None:
            reason = f"broker {place.leader} acknowledged a write with {isr}"
            where = {"partition": number, "offset": answer.offset, "broker": place.leader}
            witnesses.append({**where, "reason": reason})
        elif answer.error not in REFUSALS:
            unclear.append(f"broker {place.leader} neither accepted nor refused it: {answer.said}")
    return witnesses, unclear


def appended(places: dict, control: dict) -> tuple:
    """The same about the write that follows when the minimum allows it: it must be accepted, as the
    first of the log, since what was refused is not in the log.
    """
    witnesses, unclear = [], []
    for number, place in sorted(places.items()):
        answer = control.get(number, Answer(said="no answer"))
        if answer.offset is None:
            unclear.append(
                f"broker {place.leader} refuses writes that the minimum allows, too: {answer.said}"
            )
        elif answer.offset > 0:
            reason = f"broker {place.leader} refused what it then had in its log"
            where = {"partition": number, "offset": 0, "records": answer.offset}
            witnesses.append({**where, "broker": place.leader, "reason": reason})
    return witnesses, unclear


def probe(bench: Bench, topic: str) -> Finding:
    """Create the topic, write to each broker, judge; the topic is one that can be deleted when
    this ends, or Debris says why not.
    """
    bench.reassigning.ready(topic)  # or nobody could delete the topic
    brokers, least = tuple(bench.brokers), minimum(bench.brokers, bench.min_isr)
    wanted = assignment(brokers, least, absent(brokers))
    began = time.monotonic()
    try:
        _create(bench, topic, wanted, least)
        places = _all_places(bench, topic, len(wanted))
        answers = _write(bench, topic, places, REFUSALS)
        later = _places(bench, topic)
        places = {n: max(p, later.get(n, p), key=_in_sync) for n, p in places.items()}
    finally:
        _let_go(bench, topic, wanted)
    took = round((time.monotonic() - began) * 1000)
    witnesses, unclear = judge(places, least, answers)
    measured = {
        "brokers": len(brokers),
        "min_insync_replicas": least,
        "in_sync": least - 1,
        "refused": sum(each.error in REFUSALS for each in answers.values()),
        "accepted": len(witnesses),
        "half_dead_ms": took,
    }
    if not witnesses and not unclear:
        bench.cluster.set_config(topic, {MIN_ISR: str(least - 1)})
        witnesses, unclear = appended(places, _write(bench, topic, places, ()))
    if unclear and not witnesses:
        raise CannotRun("; ".join(unclear))
    return Finding(len(witnesses), witnesses, measured)


def _in_sync(place: Place) -> int:
    return len(place.isr)


def _create(bench: Bench, topic: str, wanted: list, least: int) -> None:
    settings = {MIN_ISR: str(least), "unclean.leader.election.enable": "false"}
    try:
        bench.cluster.create_topic(topic, wanted, settings)
    except CannotRun as error:
        said = getattr(error.__cause__, "args", ())
        if said and getattr(said[0], "name", str)() == "INVALID_REPLICA_ASSIGNMENT":
            raise CannotRun(
                "this cluster takes no replica on a broker that does not exist, as those with KRaft"
                " do not; leave this probe out, and try it by stopping brokers instead"
            ) from error
        raise


def _places(bench: Bench, topic: str) -> dict:
    layout = bench.cluster.layout(topic)
    return {n: Place(p["leader"], p["isr"]) for n, p in layout.items()}


def _all_places(bench: Bench, topic: str, partitions: int) -> dict:
    """The same, of a broker that has heard of the topic."""
    deadline = time.monotonic() + bench.timeout
    while True:
        places = _places(bench, topic)
        if len(places) == partitions:
            return places
        if time.monotonic() > deadline:
            raise CannotRun(f"topic {topic} is not there, although it was created")
        bench.pause(_POLL_SECONDS)


def _write(bench: Bench, topic: str, places: dict, final: tuple) -> dict:
    """partition -> Answer; asked again until it is an offset or one of the `final` errors, because
    brokers hear of topics and settings one after another.
    """
    answers: dict = {}
    deadline = time.monotonic() + bench.timeout
    while True:
        open_ones = [
            number
            for number in sorted(places)
            if number not in answers
            or (answers[number].offset is None and answers[number].error not in final)
        ]
        if not open_ones or (answers and time.monotonic() > deadline):
            return answers
        if answers:
            bench.pause(_POLL_SECONDS)
        # NOT_ENOUGH_REPLICAS is one that librdkafka tries again, until all that is left is a
        # time-out, which is not a refusal
        written = write(
            bench,
            topic,
            [Record(number, b"below the minimum") for number in open_ones],
            retries=0,
            enable_idempotence=False,
        )
        answers.update(zip(open_ones, written))


def _let_go(bench: Bench, topic: str, wanted: list) -> None:
    """Take the replicas from the broker that does not exist: until then the topic's deletion would
    begin and never end.
    """
    try:
        # whether the topic is there only the controller knows, which this asks
        bench.reassigning.move(topic, {n: each[:-1] for n, each in enumerate(wanted)})
    except Exception as error:  # whatever it is: a deletion would be worse
        raise Debris(
            f"topic {topic} has replicas on a broker that does not exist ({wanted[0][-1]}), and"
            f" they could not be moved: {error}. Before it is deleted, move them to brokers that do,"
            " with kafka-reassign-partitions.sh"
        ) from error

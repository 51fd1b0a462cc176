# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Topics that somebody else has written, against what he says was acknowledged: one session of Spark for all of them.

He asks by a file NAME.ask.json in one directory, and gets NAME.answer.json there, before he deletes the topic. A
record is what its value has before the first blank: a text that ends with a number, such as "17" or "line-17". Many of
them are spans: [[text before the number, first number, last number], ...].
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from dataclasses import dataclass
from typing import Callable, Iterable, Iterator, List, Optional, Sequence, Set

from flow.judge import reading
from flow.judge.verdict import FAIL, INCONCLUSIVE, PASS
from flow.messages import failure, stopping
from flow.messages.failure import CannotRun, Stopped
from flow.messages.output import write_json

# In the directory: {"pid"} while questions are answered, {"why"} where they cannot be.
READY = "judge.json"
ASK, ANSWER = ".ask.json", ".answer.json"
_LOOK_SECONDS = 0.2
_MOST_NAMED = 3
_NUMBERED = re.compile(r"(.*?)(\d+)", re.S)


@dataclass(frozen=True)
class Question:
    """What was written to a topic, as its writer says. `unanswered`: sent, and not acknowledged, so that they may be
    there; `missing`, `repeated`: what he himself has not found again, and how many records he has found once more.
    `committed`: as a consumer of committed records sees the topic.
    """

    topic: str
    acknowledged: list
    unanswered: list
    missing: list
    repeated: int = 0
    committed: bool = False

    @classmethod
    def of(cls, told: dict) -> "Question":
        """CannotRun if it is no such question."""
        try:
            return cls(**told)
        except TypeError as error:
            raise CannotRun(f"this is no question: {error}") from error


@dataclass(frozen=True)
class Found:
    """What a topic has. `lost`: acknowledged records that are not there; `again`: places of records beyond the first of
    each; `strange`: records that nobody has sent, of which a few are named.
    """

    read: int
    lost: List[str]
    again: int
    strange: int
    some_strange: List[str]
    complaints: Sequence[dict] = ()


def spans(records: Iterable[str]) -> list:
    """Texts that end with a number, in order, as spans; ValueError for one that does not."""
    found: list = []
    for before, number in sorted(map(_split, records)):
        if found and found[-1][0] == before and found[-1][2] + 1 >= number:
            found[-1][2] = number
        else:
            found.append([before, number, number])
    return found


def _split(record: str) -> tuple:
    matched = _NUMBERED.fullmatch(record)
    if matched is None:
        raise ValueError(f"no number at the end of {record!r}")
    return matched[1], int(matched[2])


def records_of(given: Iterable) -> Set[str]:
    """The records of spans."""
    return {f"{before}{each}" for before, first, last in given for each in range(first, last + 1)}


def said(given: Sequence) -> str:
    """Spans in short: "3, 7-9"; of more than a few, how many follow."""
    words = [
        f"{before}{first}" if first == last else f"{before}{first}-{last}"
        for before, first, last in given
    ]
    more = len(words) - _MOST_NAMED
    return ", ".join(words[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def compared(spark, values, question: Question):
    """`values`: rows of a column value, binary -> one row of `Found` without complaints."""
    from pyspark.sql import functions as F

    told = [(*each, True) for each in question.acknowledged]
    told += [(*each, False) for each in question.unanswered]
    sent = spark.createDataFrame(
        told, "before string, first bigint, last bigint, acknowledged boolean"
    ).selectExpr(
        "before", "acknowledged", "explode(sequence(first, last)) as number"
    ).selectExpr("concat(before, number) as id", "acknowledged")  # fmt: skip
    there = (
        values.selectExpr("coalesce(split_part(string(value), ' ', 1), '') as id")
        .groupBy("id")
        .agg(F.count("*").alias("places"))
    )
    both = there.join(sent, "id", "full_outer").selectExpr(
        "id", "coalesce(places, 0) as places", "acknowledged"
    )
    strange = "acknowledged is null"
    return both.agg(
        F.expr("coalesce(sum(places), 0)").alias("read"),
        F.expr("collect_list(if(places = 0 and acknowledged, id, null))").alias("lost"),
        F.expr("coalesce(sum(greatest(places - 1, 0)), 0)").alias("again"),
        F.expr(f"count_if({strange})").alias("strange"),
        F.expr(f"slice(array_sort(collect_set(if({strange}, id, null))), 1, {_MOST_NAMED})").alias(
            "some_strange"
        ),
    )


def decide(question: Question, found: Found) -> dict:
    """The answer. Whatever the writer has not seen himself, or has seen otherwise, is a violation."""
    lost, missing = set(found.lost), records_of(question.missing)
    acknowledged = len(records_of(question.acknowledged))
    wrong = list(_wrong(question, found, lost, missing))
    plain = f"{len(lost):,} of {acknowledged:,} acknowledged records are not there"
    if lost:
        plain += f", as was told: {said(spans(lost))}"
    return {
        "topic": question.topic,
        "verdict": FAIL if wrong else PASS,
        "summary": "; ".join(wrong) or plain,
        "counts": {
            "read": found.read,
            "acked": acknowledged,
            "lost": len(lost),
            "again": found.again,
            "strange": found.strange,
        },
        "lost": spans(lost),
    }


def _wrong(question: Question, found: Found, lost: set, missing: set) -> Iterator[str]:
    topic = question.topic
    for each in found.complaints:
        yield f"partition {each['partition']} of {topic} cannot be read: {each['reason']}"
    if unseen := lost - missing:
        yield f"{len(unseen):,} acknowledged records are not in {topic}: {said(spans(unseen))}"
    if there := missing - lost:
        yield f"{len(there):,} records that were told to be lost are in {topic}: {said(spans(there))}"
    if found.again != question.repeated:
        yield f"{found.again:,} records stand in {topic} once more, and not {question.repeated:,}"
    if found.strange:
        some = ", ".join(repr(each) for each in found.some_strange)
        yield f"{found.strange:,} records of {topic} were never sent: {some}"


def answer(spark, cluster, question: Question, for_java: dict, servers: str) -> dict:
    """Read the topic to its end and compare; CannotRun if it is not there, or nobody can read it."""
    positions = cluster.positions(question.topic, committed=question.committed)
    if not positions:
        raise CannotRun(f"there is no topic {question.topic}, or this user may not see it")
    for_java = {**for_java, "isolation.level": "read_committed"} if question.committed else for_java
    around = {number: (place.start, place.end) for number, place in positions.items()}

    def frame_of(left: dict, check_crcs: bool):
        values = reading.rows(spark, question.topic, left, for_java, servers, check_crcs)
        return compared(spark, values, question)

    rows, complaints, _left, _crcs = reading.collect(
        frame_of,
        around,
        lambda number, span: reading.holes(spark, question.topic, number, span, for_java, servers),
    )
    return decide(question, Found(**rows[0], complaints=complaints))


def serve(
    directory: str,
    answered: Callable[[Question], dict],
    beside: int = 0,
    until: str = "",
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Answer what is asked in the directory until the file `until` is there, or the process `beside` is gone.

    In the latter case it removes the files of questions and answers, and the directory if it has no others: nobody else
    does.
    """
    write_json(os.path.join(directory, READY), {"pid": os.getpid()})
    while os.path.isdir(directory) and not (until and os.path.exists(until)):
        if beside and not os.path.exists(f"/proc/{beside}"):
            _remove(directory, until)
            return
        for name in _open_questions(directory):
            given = _answered(os.path.join(directory, name + ASK), answered)
            write_json(os.path.join(directory, name + ANSWER), given)
        sleep(_LOOK_SECONDS)


def say_why_not(directory: str, error: BaseException) -> None:
    """Tell whoever asks why nobody answers."""
    if os.path.isdir(directory):
        write_json(os.path.join(directory, READY), {"why": failure.sentence(error, "")})


def _open_questions(directory: str) -> List[str]:
    names = set(os.listdir(directory))
    asked = {each[: -len(ASK)] for each in names if each.endswith(ASK)}
    return sorted(each for each in asked if each + ANSWER not in names)


def _answered(path: str, answered: Callable[[Question], dict]) -> dict:
    topic: Optional[str] = None
    try:
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
        topic = told.get("topic")
        return answered(Question.of(told))
    except Stopped:
        raise
    except Exception as error:  # of one topic: the others are judged all the same
        stopping.check()
        return {"topic": topic, "verdict": INCONCLUSIVE, "summary": failure.sentence(error, "")}


def _remove(directory: str, until: str) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            # clients' settings are there as long as it starts
            known = name in (READY, os.path.basename(until))
            if known or name.endswith((ASK, ANSWER, ".properties")):
                os.remove(os.path.join(directory, name))
        os.rmdir(directory)

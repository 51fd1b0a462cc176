# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The FAIL line: what is wrong, where, and what now. Pure: checks of verdict.json in, text out."""

from __future__ import annotations

import re
import shlex
from typing import Mapping, Optional, Sequence

from flow.judge.verdict import FAIL

# Of options that may be 0: what nobody has to repeat.
DEFAULTS = {"timeout": 60, "groups": 2}
_SPARK_AND_TIME = ("master", "spark_config", "jars", "timeout")

_PLACES = 3  # of each check; the page has more
_HAS_THE_PLACE = re.compile(r"offsets |offset (fell|rose)")  # a reason

# check id -> what is said of `n` violations; one alone, and several
_SAYS = {
    "loss": ("1 acknowledged record is lost", "{n} acknowledged records are lost"),
    "phantom": ("1 record is not of this run", "{n} records are not of this run"),
    "corrupt": ("1 record came out changed", "{n} records came out changed"),
    "duplicate": ("1 record is there once more", "{n} records are there once more"),
    "order": ("1 record is out of order", "{n} records are out of order"),
    "gap": ("1 offset or border is not as it was", "{n} offsets hold nothing or are gone"),
    "atomicity": ("1 record of a broken transaction", "{n} records of broken transactions"),
    "coverage": (
        "1 broker or listener was not reached",
        "{n} brokers or listeners were not reached",
    ),
    "durability": ("1 promise of replicas does not hold", "{n} promises of replicas do not hold"),
    "continuity": (
        "1 consumer group's record is amiss",
        "{n} of consumer groups' records are amiss",
    ),
    "compaction": (
        "1 record is not as compaction has it",
        "{n} records are not as compaction has them",
    ),
    "retention": (
        "1 record is not as retention has it",
        "{n} records are not as retention has them",
    ),
    "emptiness": ("nothing could be read", "nothing could be read"),
}
# of a topic that somebody else wrote
_SAYS_OF_OTHERS = {
    **_SAYS,
    "loss": ("1 number is left out", "{n} numbers are left out"),
    "duplicate": ("1 record has the id of another", "{n} records have the id of another"),
    "order": ("1 sequence falls", "{n} sequences fall"),
    "corrupt": ("1 record is not intact", "{n} records are not intact"),
    "gap": ("1 offset holds nothing", "{n} offsets hold nothing"),
    "emptiness": ("there is nothing to judge", "there is nothing to judge"),
}


def of_failure(
    topic: str, checks: Sequence[dict], leaders: Mapping[int, int], inspected: bool = False
) -> str:
    """One sentence of the failed checks of verdict.json, in their order, which is that of weight:
    topic, counts, partitions, brokers, offsets. leaders: partition -> broker that leads it now;
    inspected: the checks are those of a topic that somebody else wrote.
    """
    says = _SAYS_OF_OTHERS if inspected else _SAYS
    named: set = set()  # partitions whose leader was told
    failed = [check for check in checks if check["status"] == FAIL]
    clauses = [_clause(topic, check, leaders, says, named) for check in failed]
    return f"topic {topic}: {'; '.join(clauses)}"


def _clause(
    topic: str, check: dict, leaders: Mapping, says: Mapping[str, tuple], named: set
) -> str:
    one, several = says.get(check["id"], (f"1 of {check['id']}", f"{{n}} of {check['id']}"))
    said = one if check["count"] == 1 else several.format(n=f"{check['count']:,}")
    witnesses = check["witnesses"][:_PLACES]
    # a reason is long enough for a line
    if witnesses and (_told_by_reason(witnesses[0]) or _elsewhere(witnesses[0], topic)):
        witnesses = witnesses[:1]
    places: dict = {}  # where -> offsets there
    for each in witnesses:
        if _elsewhere(each, topic):
            places[_of_another_topic(each)] = [each["reason"]]
            continue
        places.setdefault(_where(each, leaders, named), []).append(_offsets(each))
    parts = [f"{where} {', '.join(each)}".strip() for where, each in places.items()]
    named |= {each.get("partition") for each in witnesses if not _elsewhere(each, topic)}
    told = sum(each.get("records") or 1 for each in witnesses)
    more = ", and more" if told < check["count"] else ""
    return f"{said} ({'; '.join(parts)}{more})" if parts else said


def _elsewhere(witness: dict, topic: str) -> bool:
    """Whether it is of another topic than the run's: of a probe's."""
    return witness.get("topic") not in (None, topic)


def _of_another_topic(witness: dict) -> str:
    """Its topic, partition, broker and offset, as far as it names them; the run's leaders are not that topic's."""
    told = ("topic", "partition", "broker", "offset")
    named = [f"{what} {witness[what]}" for what in told if witness.get(what) is not None]
    return f"{', '.join(named)}:"


def _where(witness: dict, leaders: Mapping[int, int], named: set) -> str:
    """Partition and, unless it was told before, its leader; "" of what has no partition."""
    partition = witness.get("partition")
    if partition is None:
        return ""
    broker = None if partition in named else leaders.get(partition)
    return f"partition {partition}" + ("" if broker is None else f", led by broker {broker},")


def _told_by_reason(witness: dict) -> bool:
    """Whether its offset does not say where its records are: it has none, or several without the last one's. Those may
    stand elsewhere, or not at all, as what is missing before a record.
    """
    if witness.get("offset") is None:
        return True
    several = (witness.get("records") or 1) > 1 and witness.get("last_offset") is None
    return several and not _HAS_THE_PLACE.search(str(witness["reason"]))


def _offsets(witness: dict) -> str:
    """The offsets; what has none, or has the place in its reason, is told by that."""
    offset, reason = witness.get("offset"), str(witness["reason"])
    if offset is None or witness.get("partition") is None or _HAS_THE_PLACE.search(reason):
        return reason
    if _told_by_reason(witness):
        return f"offset {offset}: {reason}"
    last = witness.get("last_offset", offset)
    return f"offset {offset}" if last == offset else f"offsets {offset} to {last}"


def what_now(
    options: Mapping[str, object],
    topic: str,
    passed: bool,
    removed: bool,
    gone: bool = False,
    probed: Optional[Mapping[str, str]] = None,
) -> list:
    """Sentences: what stays, and the command that judges it again. options: by their names; gone: the topic is not
    there any more; probed: name of a probe -> its topic, of those whose topic stays.

    Only options without secrets are repeated: settings of clients and of Spark are named by their file.
    """
    if passed and removed:
        return []
    where = ("bootstrap_servers", "ledger", "output", "command_config")
    promised = ("expected_brokers", "replication_factor", "min_isr")
    again = _again(options, "verify", (*where, *promised, "groups", *_SPARK_AND_TIME))
    kept = [f"topic {each} of the probe {name} is kept" for name, each in (probed or {}).items()]
    told = [
        "" if gone else f"topic {topic} is kept",
        *kept,
        f"the ledger is {options.get('ledger')}",
    ]
    return [*filter(None, told), *([] if gone else [f"to judge it again: {again}"])]


def what_now_of_others(options: Mapping[str, object], topic: str, passed: bool) -> list:
    """The same of a topic that was inspected: nothing was written, and nothing taken away."""
    if passed:
        return []
    named = ("bootstrap_servers", "topic", "output", "command_config")
    asked = ("id", "sequence", "by", "intact", "where", "contiguous", "transactional")
    planned = ("replication_factor", "min_isr")
    again = _again(options, "inspect", (*named, *asked, *planned, *_SPARK_AND_TIME))
    told = [f"topic {topic} was only read, and is as it was"]
    return [*told, f"to inspect it again: {again}"]


def _again(options: Mapping[str, object], mode: str, names: Sequence[str]) -> str:
    """The command line of --again, else the job's own with those of these options that were given."""
    if options.get("again"):
        return str(options["again"])
    words = ["job.py", mode]
    for name in names:
        value, option = options.get(name), f"--{name.replace('_', '-')}"
        given = value not in (None, DEFAULTS[name]) if name in DEFAULTS else bool(value)
        if given:
            text = f"{value:g}" if isinstance(value, float) else value
            words.append(option if value is True else f"{option}={text}")
    return shlex.join(words)

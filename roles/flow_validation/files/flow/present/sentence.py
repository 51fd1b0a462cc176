# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The FAIL line: what is wrong, where, and what now. Pure: checks of verdict.json in, text out."""

from __future__ import annotations

import shlex
from typing import Mapping, Sequence

from flow.judge.verdict import FAIL

_PLACES = 3  # of each check; the page has more

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
    parts = [_clause(check, leaders, says) for check in checks if check["status"] == FAIL]
    return f"topic {topic}: {'; '.join(parts)}"


def _clause(check: dict, leaders: Mapping[int, int], says: Mapping[str, tuple]) -> str:
    one, several = says.get(check["id"], (f"1 of {check['id']}", f"{{n}} of {check['id']}"))
    said = one if check["count"] == 1 else several.format(n=f"{check['count']:,}")
    witnesses = check["witnesses"][:_PLACES]
    if witnesses and witnesses[0].get("offset") is None:  # a reason is long enough for a line
        witnesses = witnesses[:1]
    places = [_place(each, leaders) for each in witnesses]
    told = sum(each.get("records") or 1 for each in witnesses)
    more = ", and more" if told < check["count"] else ""
    return f"{said} ({'; '.join(places)}{more})" if places else said


def _place(witness: dict, leaders: Mapping[int, int]) -> str:
    """Where it is; what has no offset is told by its reason."""
    partition, offset = witness.get("partition"), witness.get("offset")
    if partition is None:
        return witness["reason"]
    broker = leaders.get(partition)
    where = f"partition {partition}" + ("" if broker is None else f", led by broker {broker},")
    if offset is None:
        return f"{where} {witness['reason']}"
    records = witness.get("records") or 1
    if "offsets " in witness["reason"] or "offset fell" in witness["reason"]:
        return f"{where} {witness['reason']}"  # it has the range itself
    if records > 1:
        return f"{where} offsets {offset} to {witness.get('last_offset') or offset + records - 1}"
    return f"{where} offset {offset}"


def what_now(options: Mapping[str, object], topic: str, passed: bool, removed: bool) -> list:
    """Sentences: what stays, and the command that judges it again. options: by their names.

    Only options without secrets are repeated: client settings are named by their file.
    """
    if passed and removed:
        return []
    again = _again(options, "verify", ("bootstrap_servers", "ledger", "output", "command_config"))
    told = [f"topic {topic} is kept", f"the ledger is {options.get('ledger')}"]
    return [*told, f"to judge it again: {again}"]


def what_now_of_others(options: Mapping[str, object], topic: str, passed: bool) -> list:
    """The same of a topic that was inspected: nothing was written, and nothing taken away."""
    if passed:
        return []
    named = ("bootstrap_servers", "topic", "output", "command_config")
    asked = ("id", "sequence", "by", "intact", "where", "contiguous", "transactional")
    planned = ("replication_factor", "min_isr")
    again = _again(options, "inspect", (*named, *asked, *planned))
    told = [f"topic {topic} was only read, and is as it was"]
    return [*told, f"to inspect it again: {again}"]


def _again(options: Mapping[str, object], mode: str, names: Sequence[str]) -> str:
    """The command line of --again, else the job's own with those of these options that were given."""
    if options.get("again"):
        return str(options["again"])
    words = ["job.py", mode]
    for name in names:
        value, option = options.get(name), f"--{name.replace('_', '-')}"
        if value:
            words.append(option if value is True else f"{option}={value}")
    return shlex.join(words)

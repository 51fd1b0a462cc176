# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guarantees of groups: the verdict on each row, by the replicas of the commits and by what is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_guarantees_groups import (
    came_again,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.guarantees_groups import (
    DISK_GONE,
    KILLED,
    GroupCase,
    enough,
    row_of_group,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    GroupSeen,
    Seen,
)


def seen(meanwhile=0, again=0, committed=100, missing=(), **more):
    """What was seen of a group that had committed 100 records."""
    group = GroupSeen("mine", 300 - len(missing), tuple(missing), **more)
    measured = {"meanwhile": meanwhile, "again": again, "committed": committed}
    return Seen(300, 300, pause_ms=9000, groups=(group,), measured=measured)


@pytest.mark.parametrize(
    "replicas, loss, numbers, wrong",
    [
        (3, KILLED, {"meanwhile": 50}, ""),
        (3, KILLED, {}, "no commit was taken while its coordinator was away"),
        (3, KILLED, {"meanwhile": 50, "again": 2}, "2 of 100 committed records came again"),
        (3, KILLED, {"meanwhile": 50, "missing": ["7"]}, "1 acknowledged records never came"),
        (
            3,
            KILLED,
            {"meanwhile": 50, "late": 4},
            "4 acknowledged records did not come in time; the topic",
        ),
        (3, DISK_GONE, {"meanwhile": 50}, ""),
        (3, DISK_GONE, {"meanwhile": 50, "again": 100}, "committed records came again"),
        (1, KILLED, {}, ""),
        (1, KILLED, {"meanwhile": 3}, "3 commits were taken although nobody else"),
        (1, KILLED, {"again": 100}, "100 of 100 committed records came again"),
        (1, KILLED, {"committed": 0}, "nothing was tried"),
        (1, DISK_GONE, {"again": 100}, ""),
        (1, DISK_GONE, {}, "0 of 100 committed records came again, although nobody else"),
    ],
)
def test_a_row_is_judged_by_who_has_the_commits(replicas, loss, numbers, wrong):
    row = row_of_group(GroupCase(loss, replicas), seen(**numbers)).to_dict()
    assert row["verdict"] == ("NOT as expected" if wrong else "as expected"), row
    assert wrong in "; ".join(row["wrong"])
    assert row["case"] == f"offsets topic RF {replicas}, {loss}" and row["scenario"] == "S28"


@pytest.mark.parametrize(
    "word, verdict",
    [("pass", "as expected"), ("fail", "NOT as expected"), ("inconclusive", "open")],
)
def test_the_judge_has_its_say(word, verdict):
    counts = {"acked": 1234, "lost": 9, "again": 0}
    answers = ({"topic": "t", "verdict": word, "summary": "told", "counts": counts},)
    row = row_of_group(GroupCase(KILLED, 3), replace(seen(meanwhile=50), judged=answers))
    assert row.verdict == verdict and row.observed.endswith("judge: 9 of 1,234 lost")


def test_a_row_that_could_not_be_measured_is_open_and_says_why():
    row = row_of_group(GroupCase(KILLED, 1), None, "it commits nothing").to_dict()
    assert (row["verdict"], row["open"]) == ("open", ["it commits nothing"])
    assert row["done"] == "nothing that is known"


def test_what_could_not_be_looked_for_is_open():
    row = row_of_group(GroupCase(KILLED, 3), seen(meanwhile=50, unknown=4)).to_dict()
    assert row["verdict"] == "open" and "could not be looked for" in row["open"][0]


@pytest.mark.parametrize(
    "replicas, commits, quiet, over",
    [
        (3, 0, False, False),
        # the first commit may take longer than nothing is waited for
        (3, 0, True, False),
        (3, 1, True, True),
        (3, 5, False, False),
        (3, 101, False, True),
        (1, 0, False, False),
        (1, 0, True, True),
    ],
)
def test_a_group_that_shall_commit_is_waited_for(replicas, commits, quiet, over):
    assert enough(GroupCase(KILLED, replicas), commits, 100, quiet) is over


@pytest.mark.parametrize(
    "came, committed, again",
    [
        ([], 5, 0),
        (["0", "1", "2"], 3, 0),
        # read again, but not committed before
        (["0", "1", "2", "2"], 2, 0),
        (["0", "1", "2", "0", "1", "2", "1"], 2, 2),
    ],
)
def test_a_record_came_again_if_it_had_been_committed_before(came, committed, again):
    assert came_again([(each, 0) for each in came], committed) == again

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""SELinux contexts: which rules and labels are missing. The texts are those of Debian 12's policycoreutils."""

from __future__ import annotations

import re

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.file_contexts import (
    Directory,
    Plan,
    apply,
    local_rules,
    plan,
    read_plan,
    type_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError

DATA = Directory("/data/kafka", "var_lib_t")
RULE = "/data/kafka(/.*)?"
LISTED = (
    "/data/kafka(/.*)?                                  all files          "
    "system_u:object_r:var_log_t:s0 \n"
    "/srv/one                                           regular file       "
    "system_u:object_r:etc_t:s0 \n"
)


@pytest.mark.parametrize(
    "context, expected",
    [
        ("system_u:object_r:var_lib_t:s0\n", "var_lib_t"),
        ("unconfined_u:object_r:default_t:s0:c1,c2\0", "default_t"),
        ("<<none>>", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_the_type_within_a_context(context, expected):
    assert type_of(context) == expected


def test_rules_that_somebody_has_added_are_read():
    assert local_rules(LISTED) == {RULE: "var_log_t"}
    assert local_rules("") == {}


@pytest.mark.parametrize(
    "by_policy, local, seen, expected",
    [
        ("var_lib_t", {}, {}, Plan()),
        ("var_lib_t", {}, {DATA.path: "var_lib_t"}, Plan()),
        ("var_lib_t", {}, {DATA.path: "default_t"}, Plan(relabel=(DATA.path,))),
        ("default_t", {}, {}, Plan((("add", RULE, "var_lib_t"),))),
        (
            *("default_t", {}, {DATA.path: "default_t"}),
            Plan((("add", RULE, "var_lib_t"),), (DATA.path,)),
        ),
        ("var_log_t", {RULE: "var_log_t"}, {}, Plan((("modify", RULE, "var_lib_t"),))),
    ],
)
def test_what_has_to_change(by_policy, local, seen, expected):
    assert plan([DATA], {DATA.path: by_policy}, local, seen) == expected


def test_a_name_is_no_expression():
    assert Directory("/data/kafka-a.v1+x/", "var_lib_t").pattern == r"/data/kafka-a\.v1\+x(/.*)?"


class Policy:
    """What the programs answer: a policy that knows /data as default_t, and the rules added to it."""

    def __init__(self):
        self.rules, self.relabelled = {}, []

    def __call__(self, words):
        if words[0] == "matchpathcon":
            fitting = [kind for rule, kind in self.rules.items() if re.fullmatch(rule, words[-1])]
            known = fitting[-1] if fitting else "default_t"
            return 0, f"system_u:object_r:{known}:s0\n", ""
        if words[0] == "restorecon":
            self.relabelled.append(words[-1])
            return 0, "", ""
        if "-l" in words:
            lines = [f"{rule}  all files  u:r:{kind}:s0" for rule, kind in self.rules.items()]
            return 0, "\n".join(lines), ""
        verb, kind, pattern = words[2], words[4], words[5]
        if (pattern in self.rules) != (verb == "--modify"):
            return 1, "", f"ValueError: File context for {pattern} already defined"
        self.rules[pattern] = kind
        return 0, "", ""


def test_a_second_run_has_nothing_to_do(tmp_path):
    (tmp_path / "data").mkdir()
    wanted = [Directory(str(tmp_path / "data"), "var_lib_t")]
    policy = Policy()
    first = read_plan(wanted, policy, "semanage", lambda path: "u:object_r:default_t:s0")
    assert [line.split()[0] for line in first.lines()] == ["add", "relabel"]
    apply(first, policy, "semanage")
    assert policy.relabelled == [str(tmp_path / "data")]
    second = read_plan(wanted, policy, "semanage", lambda path: "u:object_r:var_lib_t:s0")
    assert second == Plan()


def test_without_semanage_it_is_refused_only_where_a_rule_is_needed():
    with pytest.raises(ProblemError, match=r"\[host.selinux\].*policycoreutils-python-utils"):
        read_plan([DATA], Policy(), None)
    known = Policy()
    known.rules[RULE] = "var_lib_t"
    assert read_plan([DATA], known, None) == Plan()


def test_what_a_program_says_is_told():
    with pytest.raises(ProblemError, match="restorecon: no room"):
        apply(Plan(relabel=("/x",)), lambda words: (1, "", "no\nroom"), None)

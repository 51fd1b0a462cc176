# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables that playbooks read from the command line: the list is whole, and mistyped ones are found."""

from __future__ import annotations

import pathlib
import re

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.play_variables import (
    check_names,
    check_values,
    play_variables,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.variables import declared

ROOT = pathlib.Path(__file__).resolve().parents[5]
PLAYBOOKS = {path.stem: path.read_text(encoding="utf-8") for path in ROOT.glob("playbooks/*.yml")}
# Set by the playbooks themselves, whatever `default` stands behind them.
OWN = re.compile(r"(__|kafkaops_|preflight_|migration_)")


def named_in_heads():
    """variable -> the playbooks whose head offers it with -e."""
    found = {}
    for playbook, text in PLAYBOOKS.items():
        head = text.partition("\n---\n")[0]
        for name in re.findall(r"-e ([a-z_]+)=", head):
            found.setdefault(name, set()).add(playbook)
    return found


def test_every_variable_that_a_playbook_offers_is_in_the_list_or_a_role_s():
    missing = {
        name: sorted(playbooks - set(play_variables().get(name, {}).get("playbooks", ())))
        for name, playbooks in named_in_heads().items()
        if name not in declared()
    }
    assert {name: playbooks for name, playbooks in missing.items() if playbooks} == {}


def test_every_variable_of_the_list_is_in_its_playbooks():
    lost = {
        (name, playbook)
        for name, option in play_variables().items()
        for playbook in option["playbooks"]
        if not re.search(rf"\b{name}\b", PLAYBOOKS[playbook])
    }
    assert lost == set()


def test_what_is_read_as_true_or_false_is_declared_so():
    """The filter takes every text that it does not know for false."""
    texts = [
        path.read_text(encoding="utf-8")
        for pattern in ("playbooks/**/*.yml", "roles/*/tasks/*.yml", "roles/*/vars/*.yml")
        for path in ROOT.glob(pattern)
    ]
    read = {
        name
        for text in texts
        for name in re.findall(r"\b([a-z_]+) \| default\((?:true|false)\) \| bool", text)
        if name not in declared() and not OWN.match(name)
    }
    assert read == {name for name, each in play_variables().items() if each["type"] == "bool"}


@pytest.mark.parametrize(
    "name, value, right",
    [
        *(("cancel", value, True) for value in (True, False, "true", "Yes", "0", 1)),
        *(("cancel", value, False) for value in ("ture", "", None, "t", "2", [True])),
        ("prove", "ture", False),
        ("status_strict", "treu", False),
        ("replace_timeout_seconds", "3600", True),
        ("replace_timeout_seconds", "1h", False),
        ("replace_timeout_seconds", 0, False),
        ("broker", "any", True),
    ],
)
def test_a_mistyped_value_is_not_false(name, value, right):
    findings = list(check_values({name: value}, ["a", "b"]))
    assert [(each.check, each.level, each.setting) for each in findings] == (
        [] if right else [("settings.bad_value", "error", name)]
    )


@pytest.mark.parametrize(
    "name, near",
    [
        ("promve", "prove"),
        ("porve", "prove"),
        ("cancl", "cancel"),
        ("brokr", "broker"),
        ("status_stict", "status_strict"),
        ("cancel", None),
        ("kafka_version", None),
        ("my_team", None),
        ("ansible_user", None),
    ],
)
def test_a_name_that_is_nearly_one_is_asked_about(name, near):
    findings = check_names([name], ["a"], consented=False)
    assert [(each.check, each.level) for each in findings] == (
        [("settings.unknown_variable", "error")] if near else []
    )
    assert all(f"write {near} " in each.remedy for each in findings)
    assert all(each.level == "warning" for each in check_names([name], ["a"], consented=True))


def test_a_name_without_which_nothing_unwanted_is_done_ends_no_run():
    """Inventories and files of -e @FILE have words such as users for other roles."""
    (finding,) = check_names(["users"], ["a"], consented=False)
    assert (finding.level, finding.setting) == ("warning", "users")


def test_nothing_that_our_own_texts_give_is_taken_for_another_variable():
    given = set()
    for pattern in (
        "docs/*.md",
        "README.md",
        "playbooks/**/*.yml",
        "roles/**/*.yml",
        "tests/**/*.py",
    ):
        for path in ROOT.glob(pattern):
            if path != pathlib.Path(__file__).resolve():
                text = path.read_text(encoding="utf-8")
                given.update(re.findall(r"""-e['"]?,? f?['"]?([a-z]\w+)=""", text))
    assert len(given) > 50 and not check_names(sorted(given), ["a"], consented=False)

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables that playbooks read from the command line: the list is whole, and mistyped ones are found."""

from __future__ import annotations

import pathlib
import re

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.play_variables import (
    Running,
    check_elsewhere,
    check_names,
    check_unread,
    check_values,
    near_names,
    play_variables,
    running,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.variables import declared

ROOT = pathlib.Path(__file__).resolve().parents[5]
PLAYBOOKS = {path.stem: path.read_text(encoding="utf-8") for path in ROOT.glob("playbooks/*.yml")}
# Set by the playbooks themselves, whatever `default` stands behind them.
OWN = re.compile(r"(__|kafkaops_|preflight_|migration_)")
OTHERS = Running(frozenset(), others=True)


def of(playbook):
    return Running(frozenset({playbook}), others=False)


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
        for name in re.findall(
            r"\b([a-z_]+)(?:'\))? \| default\((?:true|false)(?:, true)?\) \| bool", text
        )
        if name not in declared() and not OWN.match(name)
    }
    assert read == {name for name, each in play_variables().items() if each["type"] == "bool"}


def test_what_is_judged_by_its_type_takes_an_empty_value_for_none():
    """`default` alone would leave it empty, and Ansible warns of what is neither true nor false."""
    typed = "|".join(name for name, each in play_variables().items() if each["type"] != "raw")
    defaults = {
        each
        for pattern in ("playbooks/**/*.yml", "roles/*/tasks/*.yml", "roles/*/vars/*.yml")
        for path in ROOT.glob(pattern)
        for each in re.findall(rf"'(?:{typed})'\) \| default\([^)]*\)", path.read_text("utf-8"))
    }
    assert len(defaults) > 4
    assert all(each.endswith(", true)") for each in defaults), defaults


@pytest.mark.parametrize(
    "name, value, right",
    [
        *(("cancel", value, True) for value in (True, False, "true", "Yes", "0", 1)),
        *(("cancel", value, False) for value in ("ture", "t", "2", [True])),
        # what a form or a survey gives where nobody has filled it in
        *(("cancel", value, True) for value in ("", None)),
        ("prove", "ture", False),
        ("status_strict", "treu", False),
        ("replace_timeout_seconds", "3600", True),
        ("replace_timeout_seconds", "1h", False),
        ("replace_timeout_seconds", 0, False),
        ("broker", "any", True),
    ],
)
def test_a_mistyped_value_is_not_false(name, value, right):
    findings = list(check_values({name: value}, ["a", "b"], OTHERS))
    assert [(each.check, each.level, each.setting) for each in findings] == (
        [] if right else [("settings.bad_value", "error", name)]
    )


def test_a_value_is_judged_only_where_it_is_read():
    given = {"client_secrets": "/etc/secrets", "prove": "x"}
    found = {
        name: [each.setting for each in check_values(given, ["a"], of(name))]
        for name in ("site", "client", "scale_in")
    }
    assert found == {"site": [], "client": ["client_secrets"], "scale_in": ["prove"]}


def names(given, runs, consented=False):
    return list(check_names(near_names(given, runs), ["a"], consented, runs))


@pytest.mark.parametrize(
    "playbook, name, near",
    [
        ("rolling_restart", "promve", "prove"),
        ("rolling_restart", "porve", "prove"),
        ("scale_in", "cancl", "cancel"),
        ("stop", "brokr", "broker"),
        ("stop", "brokers", "broker"),
        ("status", "status_stict", "status_strict"),
        ("teardown", "confrm", "confirm"),
        ("scale_in", "cancel", None),
        ("scale_in", "kafka_version", None),
        ("scale_in", "my_team", None),
        ("scale_in", "ansible_user", None),
        # two slips are a word of its own
        ("rolling_restart", "approve", None),
        ("rolling_restart", "provide", None),
        ("stop", "broker_id", None),
        ("scale_zookeeper", "zookeeper_servers", None),
        ("scale_zookeeper", "zookeeper_leader", None),
        ("status", "status_string", None),
        ("client", "client_certs", None),
        ("teardown", "confirmed", None),
        # not read there
        ("site", "brokers", None),
        ("site", "promve", None),
        ("site", "train", None),
    ],
)
def test_a_name_that_is_nearly_one_is_asked_about_where_that_one_is_read(playbook, name, near):
    findings = names([name], of(playbook))
    assert [(each.check, each.level) for each in findings] == (
        [("settings.unknown_variable", "error")] if near else []
    )
    assert all(f"write {near} " in each.remedy for each in findings)
    assert all(each.level == "warning" for each in names([name], of(playbook), consented=True))


def test_a_playbook_of_somebody_s_own_may_read_the_name_itself():
    (finding,) = names(["promve"], OTHERS)
    assert finding.level == "warning"


def test_a_name_without_which_nothing_unwanted_is_done_ends_no_run():
    """Inventories and files of -e @FILE have words such as users for other roles."""
    (finding,) = names(["users"], of("client"))
    assert (finding.level, finding.setting) == ("warning", "users")


@pytest.mark.parametrize(
    "given, expected",
    [
        ((str(ROOT / "playbooks" / "stop.yml"),), of("stop")),
        ((str(ROOT / "site.yml"),), of("site")),
        (("kafkaops.cluster.stop",), of("stop")),
        (("kafkaops.cluster.stop.yml",), of("stop")),
        (("/elsewhere/stop.yml",), OTHERS),
        (
            ("kafkaops.cluster.stop", "mine.yml"),
            Running(frozenset({"stop"}), others=True),
        ),
        # ad hoc: a pattern of hosts
        ("all", OTHERS),
        (None, OTHERS),
    ],
)
def test_what_runs_is_told_by_the_arguments(given, expected):
    assert running(given) == expected


@pytest.mark.parametrize("playbook", ["teardown", "aws_teardown", "site", "start"])
def test_one_broker_is_refused_by_what_would_act_on_all(playbook):
    (finding,) = check_unread({"broker", "mine"}, ["a"], False, of(playbook))
    assert (finding.check, finding.setting, finding.level) == (
        "settings.no_effect",
        "broker",
        "error",
    )
    assert "playbooks/stop.yml" in finding.remedy
    (accepted,) = check_unread({"broker"}, ["a"], True, of(playbook))
    assert accepted.level == "warning"


@pytest.mark.parametrize("runs", [of("stop"), of("status"), OTHERS])
def test_one_broker_is_refused_by_no_other(runs):
    assert not list(check_unread({"broker"}, ["a"], False, runs))


def test_what_counts_nowhere_is_told_with_the_way_to_give_it():
    (finding,) = check_elsewhere({"broker": ["a", "b"]})
    assert (finding.check, finding.level) == ("settings.only_given", "warning")
    assert finding.subjects == ("a", "b") and "-e broker=..." in finding.remedy


def test_what_locks_a_cluster_reads_the_broker_or_refuses_it():
    option = play_variables()["broker"]
    locks = {name for name, text in PLAYBOOKS.items() if "import_playbook: phases/lock.yml" in text}
    assert len(locks) > 10 and not set(option["playbooks"]) & set(option["refused_by"])
    assert locks | {"aws_teardown"} == {*option["playbooks"], *option["refused_by"]}


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
    assert len(given) > 50 and not near_names(sorted(given), OTHERS)

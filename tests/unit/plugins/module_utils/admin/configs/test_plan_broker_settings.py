# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which settings change without a restart, and that a broker ends with what it is to have, or untouched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.broker_settings import (
    change_brokers,
    diff,
    lines,
    parse_asked,
    to_dict,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.plan_broker_settings import (
    LIMITS,
    MODES,
    POOLS,
    Asked,
    Own,
    decide,
    left_by_another,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import ConfigEntry
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import is_secret

ROOT = Path(__file__).resolve().parents[6]
TABLES = {
    path.stem: json.loads(path.read_text())["broker"]
    for path in (ROOT / "roles" / "kafka" / "files" / "config-keys").glob("[0-9]*.json")
}
TABLE = TABLES["3.9.2"]
THREADS = "num.io.threads"


class Brokers:
    """Brokers as far as their settings go, with Kafka's own rule for pools; `file`: what each has read."""

    def __init__(self, file, overrides=(), cluster=(), refuses=(), deaf=()):
        self.file, self.cluster, self.refuses, self.deaf = file, dict(cluster), refuses, deaf
        self.overrides = {broker: dict(dict(overrides).get(broker, {})) for broker in file}
        self.calls = []

    def entry(self, broker, key):
        for source, place in (
            ("broker", self.overrides[broker]),
            ("cluster", self.cluster),
            ("static", self.file[broker]),
        ):
            if key in place:
                return ConfigEntry(key, place[key], source)
        return ConfigEntry(key, TABLE[key].get("default"), "default")

    def fetch_broker_configs(self, brokers):
        self.calls.append("describe")
        brokers = list(brokers)
        silent = {broker: "timed out" for broker in brokers if broker not in self.file}
        return {
            broker: {key: self.entry(broker, key) for key in TABLE}
            for broker in brokers
            if broker not in silent
        }, silent

    def alter_broker_configs(self, changes, validate_only=False):
        self.calls.append("validate" if validate_only else "alter")
        refused = {}
        for broker, step in changes.items():
            earlier, before = dict(self.overrides[broker]), {}
            for key, value in step.items():
                before[key] = self.entry(broker, key).value
                self.overrides[broker].pop(key, None)
                if value is not None:
                    self.overrides[broker][key] = value
                after = self.entry(broker, key).value
                if key in POOLS and not int(before[key]) // 2 <= int(after) <= int(before[key]) * 2:
                    refused[broker] = "Invalid value: should be at least half"
                if key in self.refuses:
                    refused[broker] = "Policy violation"
            if validate_only or broker in refused or broker in self.deaf:
                self.overrides[broker] = earlier
        return refused


def change(brokers, *asked, check_mode=False):
    """Run it with a clock that jumps."""
    now = [0.0]

    def sleep(seconds):
        now[0] += seconds

    return change_brokers(brokers, asked, TABLE, check_mode, 5, lambda: now[0], sleep)


def one(settings=None, own=None, **brokers):
    """The outcome of one broker that has read `file`, and the brokers."""
    made = Brokers({1: brokers.pop("file", {})}, **brokers)
    (decision,) = change(made, Asked(1, settings or {}, own or {}))
    return decision, made


def test_everything_that_may_change_is_dynamic_in_every_version_and_no_secret():
    for version, table in TABLES.items():
        for key in POOLS | LIMITS:
            if key in table:
                assert table[key].get("update_mode") in MODES, (version, key)
            assert not is_secret(key)
    assert not {key for key in POOLS | LIMITS if key.startswith(("ssl.", "sasl.", "listener"))}
    assert POOLS | LIMITS <= set(TABLE)


@pytest.mark.parametrize(
    "key,before,after,reason",
    [
        (THREADS, None, "12", ""),
        (THREADS, None, "16", ""),
        (THREADS, None, "17", "no less than half"),
        (THREADS, None, "4", ""),
        (THREADS, None, "3", "no less than half"),
        (THREADS, "10", None, ""),  # back to the default, as a value
        ("log.retention.ms", "1000", None, "depends on other keys"),
        ("log.retention.hours", "168", "24", "only at its start"),
        ("queued.max.requests", None, "400", "only at its start"),
        ("min.insync.replicas", "2", "1", "only by a restart"),
        ("unclean.leader.election.enable", "false", "true", "only by a restart"),
        ("listeners", "A://:1", "A://:2", "only by a restart"),
        ("ssl.keystore.location", "/a", "/b", "only by a restart"),
        ("metric.reporters", None, "a.b.C", "only by a restart"),
        ("no.such.key", None, "1", "only at its start"),
        ("log.cleaner.backoff.ms", None, "20000", ""),
        ("max.connections", None, "1000", ""),
    ],
)
def test_which_settings_need_no_restart(key, before, after, reason):
    decision, brokers = one({key: (before, after)}, file={key: before} if before else {})
    assert decision.live == (not reason) and reason in "".join(decision.reasons)
    if reason:
        assert brokers.overrides == {1: {}} and "alter" not in brokers.calls
    else:
        assert brokers.entry(1, key).value == (after or TABLE[key]["default"])
        assert decision.own == {key: brokers.entry(1, key).value}


def test_one_setting_that_needs_a_restart_leaves_the_others_for_it_too():
    settings = {THREADS: (None, "12"), "queued.max.requests": (None, "400")}
    decision, brokers = one(settings)
    assert not decision.live and brokers.overrides == {1: {}} and not decision.steps


def test_what_is_in_effect_already_is_not_set_again():
    """A run was killed after it had set it."""
    decision, brokers = one(
        {THREADS: (None, "12")},
        {THREADS: Own(("12",))},
        overrides={1: {THREADS: "12"}},
    )
    assert decision.live and decision.own == {THREADS: "12"} and "alter" not in brokers.calls


@pytest.mark.parametrize("where", ["overrides", "cluster"])
def test_what_somebody_else_has_set_is_left_alone(where):
    given_ = {1: {THREADS: "10"}} if where == "overrides" else {THREADS: "10"}
    decision, brokers = one({THREADS: (None, "12")}, **{where: given_})
    assert not decision.live and "somebody else" in decision.reasons[0]
    assert brokers.entry(1, THREADS).value == "10"
    # Also where it was ours once, and has another value now.
    decision, brokers = one(own={THREADS: Own(("12",))}, overrides={1: {THREADS: "10"}})
    assert decision.live and brokers.entry(1, THREADS).value == "10" and decision.own == {}


@pytest.mark.parametrize("file", [None, "12", "64", "1", "0", "many"])
def test_after_a_restart_the_override_goes_in_steps_that_kafka_takes(file):
    read = {THREADS: file} if file and file.isdigit() and file != "0" else {}
    decision, brokers = one(
        own={THREADS: Own(("8", "12"), file)}, file=read, overrides={1: {THREADS: "12"}}
    )
    assert decision.live, decision.reasons
    assert brokers.entry(1, THREADS).source in ("static", "default")
    assert decision.own == {} and lines(decision) == [f"{THREADS}: the override 12 is taken away"]


def test_a_refusal_by_kafka_is_a_reason_and_changes_nothing():
    decision, brokers = one({"max.connections": (None, "9")}, refuses=("max.connections",))
    assert decision.reasons == ("Kafka refuses it: Policy violation",)
    assert brokers.calls == ["describe", "validate"]


def test_what_does_not_take_effect_is_a_reason():
    decision, _brokers = one({THREADS: (None, "12")}, deaf=(1,))
    assert "did not take effect within 5 s" in decision.reasons[0]


def test_check_mode_asks_and_changes_nothing_and_tells_the_same():
    brokers = Brokers({1: {}, 2: {}})
    asked = [Asked(1, {THREADS: (None, "12")}), Asked(2, {THREADS: (None, "99")}), Asked(3)]
    looked = change(brokers, *asked, check_mode=True)
    assert brokers.calls == ["describe", "validate"] and brokers.overrides == {1: {}, 2: {}}
    assert looked == change(brokers, *asked)
    assert [each.live for each in looked] == [True, False, False]
    assert "timed out" in looked[2].reasons[0]
    assert lines(looked[0]) == [f"{THREADS} 8 -> 12"]
    assert diff(looked) == {
        "before": {"broker 1": {THREADS: "8"}},
        "after": {"broker 1": {THREADS: "12"}},
    }


def test_the_number_of_rounds_does_not_grow_with_the_brokers():
    brokers = Brokers({broker: {} for broker in range(100)})
    change(brokers, *(Asked(broker, {THREADS: (None, "12")}) for broker in range(100)))
    assert brokers.calls == ["describe", "validate", "alter", "describe"]


def test_the_options_of_the_module_and_what_it_returns():
    (asked,) = parse_asked(
        [
            {
                "id": 1,
                "settings": {THREADS: {"before": None, "after": 12}},
                "own": {"max.connections": {"values": [7], "file": None}},
            }
        ]
    )
    assert asked == Asked(1, {THREADS: (None, "12")}, {"max.connections": Own(("7",), None)})
    (decision,) = change(Brokers({1: {}}), asked)
    assert to_dict(decision) == {
        "broker": 1,
        "live": True,
        "changes": [f"{THREADS} 8 -> 12"],
        "own": {THREADS: "12"},
        "reasons": [],
    }


COUNTS = st.integers(1, 500).map(str)
VALUES = st.dictionaries(st.sampled_from(sorted(POOLS) + ["queued.max.requests"]), COUNTS)


@given(file=VALUES, wanted=VALUES, ours=VALUES, theirs=VALUES)
def test_all_or_nothing_and_never_what_is_not_ours(file, wanted, ours, theirs):
    """Whatever is set already: a broker ends with what it is to have, or as it was; theirs stay."""
    theirs = {key: value for key, value in theirs.items() if key not in ours}
    brokers = Brokers({1: file}, overrides={1: {**ours, **theirs}})
    before = dict(brokers.overrides[1])
    settings = {
        key: (file.get(key), wanted.get(key))
        for key in {*file, *wanted}
        if file.get(key) != wanted.get(key)
    }
    asked = Asked(1, settings, {key: Own((ours[key],), file.get(key)) for key in ours})
    (decision,) = change(brokers, asked)
    for key, value in theirs.items():
        assert brokers.entry(1, key).value == value
    if not decision.live:
        # Steps of a way back may have been made before one is refused; each is a value of ours.
        assert set(brokers.overrides[1]) <= set(before)
        return
    assert set(decision.own) == set(settings)
    for key in settings:
        assert brokers.entry(1, key).value == wanted.get(key, TABLE[key].get("default"))
    for key in set(ours) - set(settings) - set(theirs):
        assert brokers.entry(1, key).source != "broker"
    (again,) = change(
        brokers, Asked(1, settings, {k: Own((v,), file.get(k)) for k, v in decision.own.items()})
    )
    assert not again.steps and again.own == decision.own


@given(file=VALUES, wanted=VALUES)
def test_the_table_decides_and_nothing_is_decided_without_it(file, wanted):
    settings = {key: (file.get(key), value) for key, value in wanted.items()}
    brokers = Brokers({1: file})
    entries, _silent = brokers.fetch_broker_configs([1])
    decision = decide(Asked(1, settings), entries[1], {})
    assert decision.live == (not settings) and not decision.steps


def test_on_a_new_host_what_the_file_says_anyway_is_taken_away_and_nothing_else():
    """The note of our overrides went with the old host; each has the value of the file."""
    file = {THREADS: "12", "log.retention.ms": "500", "min.insync.replicas": "2", "broker.id": "1"}
    overrides = {THREADS: "12", "log.retention.ms": "900", "min.insync.replicas": "2"}
    own = left_by_another(file)
    assert set(own) == {THREADS, "log.retention.ms"}
    brokers = Brokers({1: file}, {1: {**overrides, "log.segment.bytes": "1000"}})
    asked = parse_asked([{"id": 1, "settings": {}, "own": own}])
    (found,) = change_brokers(brokers, asked, TABLE, False, 5)
    assert lines(found) == [f"{THREADS}: the override 12 is taken away"]
    assert set(brokers.overrides[1]) == {*overrides, "log.segment.bytes"} - {THREADS}
    (again,) = change_brokers(brokers, asked, TABLE, False, 5)
    assert again.live and not again.steps


def test_a_pool_goes_back_in_steps_also_when_its_broker_leaves():
    brokers = Brokers({1: {THREADS: "8"}}, {1: {THREADS: "40"}})
    own = {THREADS: {"values": ["12", "40"], "file": "8"}}
    asked = parse_asked([{"id": 1, "settings": {}, "own": own}])
    (found,) = change_brokers(brokers, asked, TABLE, False, 5)
    assert found.live and brokers.overrides[1] == {}

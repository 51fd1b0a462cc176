# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Benchmarks: rows, room on disks, what limits a row, what is slower than before, and what /proc and tools tell."""

from __future__ import annotations

import functools
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import (
    benchmark,
    benchmark_run,
    benchmark_verdict,
    client_benchmark,
    perf_tools,
    usage,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark import (
    Asked,
    Case,
    Place,
    Setup,
    planned,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark_limit import (
    Load,
    limit_of,
    percentiles,
    ratio_text,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark_verdict import (
    Before,
    Conditions,
    change_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import PREFIX
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError

GIB = 2**30
ROOT = Path(__file__).resolve().parents[5]


# -- which rows


def test_each_row_differs_from_the_first_in_one_value_and_the_last_is_the_first_again():
    plan = planned(Asked(), 3)
    first = asdict(plan.cases[0].setup)
    for case in plan.cases[1:-1]:
        unlike = [name for name, value in asdict(case.setup).items() if value != first[name]]
        assert unlike in ([case.name.partition("=")[0]], ["replication", "brokers"])
    assert plan.cases[-1].setup == plan.cases[0].setup and plan.cases[-1].name == benchmark.AGAIN
    assert {each.setup.mode for each in plan.cases} == set(benchmark.MODES)
    names = [each.name for each in plan.cases]
    assert len(set(names)) == len(names) and "retained_bytes=128MiB" in names


@pytest.mark.parametrize(
    "vary, values, names",
    [
        ("first", {}, ["first row"]),
        ("mode", {"mode": "sync,none"}, ["first row", "mode=none", "first row again"]),
        # what has values varies
        ("", {"record_bytes": "1KiB,10,10"}, ["first row", "record_bytes=10", "first row again"]),
        ("", {"producers": "4"}, ["first row"]),
        # seconds are none of it
        ("linger_ms", {"linger_ms": "0,5", "seconds": "9"}, ["first row", "linger_ms=5"]),
        ("topics, groups", {"topics": "1,2", "groups": "1,3"}, ["first row", "groups=3"]),
    ],
)
def test_a_user_narrows_the_rows(vary, values, names):
    found = [each.name for each in planned(Asked(vary, values), 3).cases]
    assert [name for name in names if name not in found] == [] and found[0] == "first row"
    if len(names) != 2:
        assert found == names


@pytest.mark.parametrize("brokers, replication", [(1, [1]), (2, [2, 1]), (3, [3, 1]), (7, [3, 1])])
def test_a_small_cluster_has_rows_that_it_can_have(brokers, replication):
    plan = planned(Asked("replication"), brokers)
    assert list(dict.fromkeys(each.setup.replication for each in plan.cases)) == replication


@pytest.mark.parametrize(
    "brokers, names",
    [
        (1, []),
        (2, ["brokers=1, replication=1"]),
        (3, ["brokers=1, replication=1"]),
        (7, ["brokers=3", "brokers=1, replication=1"]),
    ],
)
def test_fewer_brokers_are_a_row_with_as_many_replicas_as_they_can_have(brokers, names):
    found = {each.name: each.setup for each in planned(Asked(), brokers).cases}
    assert [name for name in found if name.startswith("brokers=")] == names
    for name in names:
        fewer = found[name].brokers
        assert found[name].replication == min(3, fewer) and f"brokers={fewer}" in name
    # who says how many replicas there are is told that they cannot be
    with pytest.raises(ProblemError, match="benchmark_replication=2"):
        planned(Asked("", {"brokers": "3,1", "replication": "2"}), 3)


def test_topics_and_consumers_are_rows_by_default():
    names = [each.name for each in planned(Asked(), 3).cases]
    assert {"topics=4", "consumers=3"} <= set(names) and len(names) == 18


@pytest.mark.parametrize(
    "vary, values, words",
    [
        ("mod", {}, "[benchmark.unknown] benchmark=mod: there is no mod, did you mean mode"),
        ("", {"recordbytes": "1"}, "[benchmark.unknown] benchmark_recordbytes: there is no"),
        ("", {"mode": "asink"}, "[benchmark.bad_value] benchmark_mode=asink: there is no asink"),
        ("", {"record_bytes": "9"}, "9 is not from 10"),
        ("", {"record_bytes": "10MB"}, "is not a clear size"),
        ("", {"row_bytes": "unlimited"}, "benchmark_row_bytes=unlimited"),
        ("", {"producers": "two"}, "'two' is not a whole number"),
        ("", {"seconds": "0"}, "0 is not from 1"),
        ("", {"seconds": "3,4"}, "it takes one value"),
        ("", {"replication": "4"}, "[benchmark.too_few_brokers] benchmark_replication=4"),
        ("", {"brokers": "2"}, "[benchmark.too_few_brokers] benchmark_replication=3"),
        ("", {"brokers": "4", "replication": "1"}, "[benchmark.too_few_brokers] benchmark_brokers"),
    ],
)
def test_what_cannot_be_is_refused_by_name_and_with_what_can(vary, values, words):
    with pytest.raises(ProblemError) as error:
        planned(Asked(vary, values), 3)
    assert words in str(error.value) and "Remedy: " in str(error.value)


def test_replicas_of_all_rows_are_on_different_brokers_and_as_even_as_can_be():
    chance = random.Random(17)
    for _each in range(200):
        brokers = sorted(chance.sample(range(1, 100), chance.randint(1, 9)))
        used = chance.randint(1, len(brokers))
        setup = Setup(
            brokers=used,
            replication=chance.randint(1, used),
            partitions=chance.randint(1, 20),
            topics=chance.randint(1, 4),
        )
        layout = benchmark.assignments(setup, brokers, 3)
        assert len(layout) == setup.topics and all(name.startswith(PREFIX) for name in layout)
        parts = [part for each in layout.values() for part in each]
        assert len(parts) == setup.topics * setup.partitions
        assert all(len(set(part)) == setup.replication for part in parts)
        for counted in ([part[0] for part in parts], [each for part in parts for each in part]):
            counts = [counted.count(each) for each in brokers[:used]]
            assert max(counts) - min(counts) <= setup.replication
        assert not set(brokers[used:]) & {each for part in parts for each in part}


def test_the_bytes_said_before_are_those_of_all_brokers_together():
    plan = planned(Asked("", {"replication": "3,1", "retained_bytes": "64MiB"}), 4)
    assert sum(plan.needs([1, 2, 3, 4]).values()) == pytest.approx(plan.bytes_at_most, rel=1e-5)
    # the first row, again, for warming up and by the tools, each with three replicas; one has one
    assert plan.bytes_at_most == (192 + 64) * 2**20 * 13
    text = "\n".join(plan.lines("mine"))
    assert "bytes: at most 3.2 GiB" in text and "rows: 3" in text and "takes: about" in text


def test_the_page_has_what_can_be_given_with_its_defaults():
    page = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `benchmark_(\w+)` \| `?([^|`]+?)`? \|", page, re.MULTILINE))
    wanted = {name: each.values or "all" for name, each in benchmark.DIMENSIONS.items()}
    assert rows == wanted
    for name, each in benchmark.OTHERS.items():
        assert f"`benchmark_{name}" in page and (each.values in page or name == "tools")


# -- room


def room(*places, needed=9):
    """What is said of room for `needed` GiB and more, on three brokers."""
    plan = planned(Asked("first", {"row_bytes": f"{needed}GiB", "tools": "false"}), 3)
    return list(benchmark.short_of_room(plan, [1, 2, 3], places))


def test_brokers_that_share_a_disk_need_it_together():
    # warming up and a row, with three replicas each: 54 GiB on one disk
    one = [Place(number, "127.0.0.1", 100 * GIB, 20 * GIB) for number in (1, 2, 3)]
    assert len(room(*one)) == 1 and "54.0 GiB may be written" in room(*one)[0]
    apart = [Place(number, f"h{number}", 100 * GIB, 24 * GIB) for number in (1, 2, 3)]
    assert room(*apart) == []


def test_a_share_of_a_disk_stays_free_and_several_directories_share_what_comes():
    tight = [Place(number, f"h{number}", 100 * GIB, 22 * GIB) for number in (1, 2, 3)]
    assert len(room(*tight)) == 3 and "5.0 GiB stay so" in room(*tight)[0]
    more = [replace(each, total=200 * GIB + 1, usable=20 * GIB) for each in tight]
    assert room(*tight, *more) == []


def test_disks_that_tell_nothing_are_called_unknown():
    silent = [Place(1, "h", None, None)]
    assert room(*silent) == [] and benchmark.untold(silent)
    assert not benchmark.untold([Place(1, "h", 1, 1)])


# -- what limits


def load(**more):
    """A load with nothing busy, of brokers on the same machine."""
    brokers = {
        str(each): {"cores": 0.2, "written_rate": 1e6, "read_rate": 0.0} for each in (1, 2, 3)
    }
    used = {"processes": brokers, "busy": 0.5, "stalled": 0.0, "network_rate": 0.0}
    used.update(more.pop("usage", {}))
    told = {
        "sent": 1000,
        "failed": 0,
        "there": 1000,
        "missing": 0,
        "seconds": 2.0,
        "received": 1000,
        "client_core": 0.3,
        "client_cores": 0.4,
        "consumer_cores": 0.2,
        "cores": 4,
        "latency_ms": percentiles([1.0, 2.0, 3.0]),
    }
    return Load(**{**told, "usage": used, **more})


FULL = {str(each): {"cores": 1.2, "written_rate": 1e6, "read_rate": 0.0} for each in (1, 2, 3)}
SEEN = {"1": {"cores": 0.2, "written_rate": 1e6, "read_rate": 0.0}}
UNTOLD = {"1": {"cores": 0.2, "written_rate": None, "read_rate": None}}
IDLE = {str(each): {"cores": 0.2, "written_rate": 0.0, "read_rate": 0.0} for each in (1, 2, 3)}
# of control groups of their own
WAITING = {key: {**each, "waited": 0.6} for key, each in SEEN.items()}
NOT_WAITING = {key: {**each, "waited": 0.1} for key, each in FULL.items()}
SOME = {"stalled": 0.95, "processes": {**SEEN, "2": {**SEEN["1"], "waited": 0.1}}}
ONE = {"1": {"cores": 3.9, "written_rate": None, "read_rate": None}}


@pytest.mark.parametrize(
    "setup, more, limit",
    [
        ({}, {"client_core": 0.97}, "client core"),
        ({}, {"usage": {"busy": 0.97, "processes": FULL}}, "CPU of the machine"),
        # neither clients nor brokers of ours
        ({}, {"usage": {"busy": 0.97}}, "other processes"),
        ({}, {"usage": {"busy": 0.8, "processes": ONE}}, "broker CPU"),
        # brokers have 3 MB/s; PSI is of all processes
        ({}, {"usage": {"stalled": 0.6, "disk_rate": 4e6}}, "broker disk"),
        ({}, {"usage": {"stalled": 0.6, "disk_rate": 20e6}}, "disk wait"),
        ({}, {"usage": {"stalled": 0.6, "disk_rate": 200e6}}, "other disk load"),
        # of the rows before
        ({}, {"usage": {"stalled": 0.6, "disk_rate": 200e6, "unwritten_rate": 150e6}}, "disk wait"),
        # each flush of a few bytes writes the journal, too
        ({"flush_messages": 1}, {"usage": {"stalled": 0.6, "disk_rate": 20e6}}, "broker disk"),
        ({"flush_messages": 1}, {"usage": {"stalled": 0.6, "disk_rate": 200e6}}, "other disk load"),
        ({}, {"usage": {"stalled": 0.6}}, "disk wait"),
        ({"mode": "sync"}, {"usage": {"stalled": 0.6, "processes": UNTOLD}}, "disk wait"),
        # somebody waits, and it is not the brokers, which write nothing
        ({}, {"usage": {"stalled": 0.6, "processes": IDLE}}, "other disk load"),
        ({}, {"usage": {"stalled": 0.6, "processes": IDLE, "disk_rate": 0.0}}, "other disk load"),
        # their own control groups say who waits
        ({}, {"usage": {"stalled": 0.6, "processes": WAITING, "disk_rate": 200e6}}, "broker disk"),
        ({}, {"usage": {"stalled": 0.6, "processes": NOT_WAITING, "disk_rate": 4e6}}, "unknown"),
        ({}, {"usage": {**SOME, "disk_rate": 200e6}}, "other disk load"),
        # brokers of this machine that could not be seen may be those that write, and that use the cores
        ({}, {"usage": {"stalled": 0.6, "disk_rate": 200e6, "here": 4}}, "disk wait"),
        ({}, {"usage": {"busy": 0.97, "here": 4}}, "CPU of the machine"),
        ({}, {"usage": {"busy": 0.97, "processes": {}, "here": 3}}, "CPU of the machine"),
        ({}, {"usage": {"network_rate": 120e6}, "network_bits": 10**9}, "network"),
        # with three replicas alone nobody knows: a proxy between would look the same
        ({}, {"waited": 0.8}, "acknowledgements"),
        ({"replication": 1}, {"waited": 0.8}, "acknowledgements"),
        ({"mode": "none"}, {"waited": 0.8}, "unknown"),
        ({"mode": "sync"}, {}, "round trip"),
        ({"mode": "sync"}, {"usage": {"stalled": 0.6, "disk_rate": 4e6}}, "broker disk"),
        ({}, {"throttled": True, "client_core": 0.97}, "quota"),
        ({}, {}, "unknown"),
        # brokers elsewhere: whether they are busy cannot be said, and the stalled disks are not theirs
        ({}, {"usage": {"processes": {}, "stalled": 0.9}, "waited": 0.9}, "acknowledgements"),
        ({}, {"usage": {"processes": {}, "stalled": 0.9}}, "unknown"),
    ],
)
def test_what_limits_a_row_and_the_figures_that_say_so(setup, more, limit):
    found, why = limit_of(Setup(**setup), load(**more))
    assert found == limit and "MB/s replicated" in why and "% of a core" in why


@pytest.mark.parametrize(
    "setup, more, times, limit",
    [
        ({}, {}, 2.0, "replication"),
        # as slow with one replica: it is something else that is waited for
        ({}, {}, 1.1, "acknowledgements"),
        # the disks may be busy, or the brokers' cores
        ({}, {"usage": {"stalled": None}}, 2.0, "acknowledgements"),
        ({}, {"usage": {"busy": None}}, 2.0, "acknowledgements"),
        ({}, {"usage": {"processes": {}}}, 2.0, "acknowledgements"),
        # the slow disk may be that of the two that were not seen
        ({}, {"usage": {"processes": SEEN}}, 2.0, "acknowledgements"),
        ({"brokers": 1}, {"usage": {"processes": SEEN}}, 2.0, "replication"),
        ({"mode": "none"}, {}, 2.0, "unknown"),
        # the leader alone has answered
        ({"mode": "leader"}, {}, 2.0, "acknowledgements"),
    ],
)
def test_replication_is_the_limit_where_one_replica_is_faster(setup, more, times, limit):
    alone = load(seconds=2.0 / times)
    found, why = limit_of(Setup(**setup), load(waited=0.8, **more), alone)
    assert found == limit and f"with one replica {times:.2f} of its rate" in why


def test_who_does_not_wait_for_replicas_is_not_told_so():
    rows = results([(case, load(waited=0.8), "") for case in planned(TWO, 3).cases])
    first, leader = rows[0], rows[1]
    assert first["limit"] == leader["limit"] == "acknowledgements"
    assert "for replicas" in first["why"] and "replicas" not in leader["why"].partition(";")[0]
    text = "\n".join(benchmark_verdict.benchmark_lines(rows))
    assert text.count("\nacknowledgements: ") == 2


TWO = Asked("mode", {"mode": "async,leader"})


@pytest.mark.parametrize("usage", [{"processes": {}}, {"stalled": None}, {}])
def test_who_waits_for_each_record_is_not_told_that_nothing_is_busy(usage):
    found, why = limit_of(Setup(mode="sync"), load(usage=usage))
    assert found == "round trip" and "busy;" not in why and "nothing is busy" not in why


def test_the_row_with_one_replica_is_taken_from_the_same_run():
    plan = planned(Asked("replication,mode", {"mode": "async,leader"}), 3)
    names = {case.name: case for case in plan.cases}
    slow, fast = load(waited=0.8), load(waited=0.8, seconds=0.5)
    found = [(case, fast if case.setup.replication == 1 else slow, "") for case in names.values()]
    rows = {each["case"]: each for each in results(found)}
    assert {name: row["limit"] for name, row in rows.items()} == {
        "first row": "replication",
        "mode=leader": "acknowledgements",
        "replication=1": "acknowledgements",
        "first row again": "replication",
    }
    assert "limit: replication" in rows["first row"]["observed"]


def test_what_could_not_be_seen_is_called_unknown():
    some = limit_of(Setup(), load(usage={"processes": SEEN}))[1]
    assert "1 of 3 brokers 0.20 cores, 1.0 MB/s written" in some
    assert "; 3 brokers 0.60 cores" in limit_of(Setup(), load())[1]
    apart = limit_of(Setup(), load(usage={"processes": {}}))[1]
    assert "brokers' CPU and disks unknown" in apart and "written to disk" not in apart
    hidden = limit_of(Setup(), load(usage={"processes": {}, "here": 3}))[1]
    assert "of 3 brokers that the inventory has here no process could be seen" in hidden
    assert "do not run where" not in hidden
    partly = limit_of(Setup(), load(usage={"processes": SEEN, "here": 3, "disk_rate": 7e6}))[1]
    assert "cores with 2 brokers that could not be seen" in partly
    assert "disks of this machine wrote 7.0 MB/s" in partly
    assert ", of a broker 60 %" in limit_of(Setup(), load(usage={"processes": WAITING}))[1]
    blind = {"1": {"cores": 0.1, "written_rate": None, "read_rate": None}}
    why = limit_of(Setup(), load(usage={"processes": blind, "busy": None, "stalled": None}))[1]
    assert "unknown written to disk" in why and "machine unknown" in why


@pytest.mark.parametrize(
    "values, found",
    [
        ([], [None] * 5),
        ([7.0], [7.0] * 5),
        (range(1, 1001), [500, 950, 990, 999, 1000]),
        (range(1, 11), [5, 10, 10, 10, 10]),
    ],
)
def test_percentiles_are_values_that_were_measured(values, found):
    assert list(percentiles(list(values)).values()) == found


def test_parts_of_several_producers_add_up_without_the_first_and_the_last():
    marks = [[(0.0, 0), (1.0, 5), (2.0, 15), (3.0, 35), (4.0, 36)]] * 2
    assert client_benchmark.parts_of(marks) == [20.0, 40.0]
    assert client_benchmark.parts_of([[(0.0, 0), (1.0, 5)]]) == []


@pytest.mark.parametrize("size", [10, 100, 1000, 100000, 8 * 2**20])
def test_records_have_the_size_that_was_asked_for_and_are_not_all_alike(size):
    found = client_benchmark.payloads(size)
    assert {len(each) for each in found} == {size - 8} and len(set(found)) > 1
    assert all(65 <= letter <= 90 for letter in found[0][:100])


# -- earlier runs


def before(rate, noise=0.02):
    """An earlier run."""
    return Before("20261101T100000Z", rate, noise)


@pytest.mark.parametrize(
    "rate, earlier, drift, word",
    [
        (1000, [before(1000)], 0.0, "as before"),
        (880, [before(1000)], 0.0, "as before"),
        (800, [before(1000)], 0.0, "SLOWER"),
        (1250, [before(1000)], 0.0, "faster"),
        # what varies within this run, and between earlier ones, is noise
        (800, [before(1000)], 0.3, "as before"),
        (800, [before(1000, 0.2)], 0.0, "as before"),
        (800, [before(1000), before(600), before(1400)], 0.0, "as before"),
        (800, [before(1000), before(1010), before(990)], 0.0, "SLOWER"),
    ],
)
def test_a_regression_is_one_beyond_the_noise(rate, earlier, drift, word):
    change = change_of(load(sent=rate * 2, there=rate * 2), earlier, drift)
    assert ("SLOWER" if change.slower else "faster" if change.faster else "as before") == word


def test_parts_that_vary_hide_no_row_that_has_lost_half_of_its_rate():
    """By the deviation of the parts, 70 % were noise."""
    parts = tuple(1000.0 + 350 * (-1) ** number for number in range(12))
    noisy = load(sent=1000, there=1000, parts=parts)
    assert 0.09 < noisy.noise < 0.12
    assert change_of(noisy, [before(noisy.rate * 2, noisy.noise)]).slower
    assert not change_of(noisy, [before(noisy.rate * 1.2, noisy.noise)]).slower


WHERE = Conditions(3.0, 2**20, "here", "Python 3.11, librdkafka 2.16.0")


def results(rows, cluster="a", runs=(), conditions=WHERE):
    """Rows as they are kept."""
    return benchmark_verdict.results(rows, cluster, runs, conditions)


def rows_of(rates, cluster="a", runs=(), conditions=WHERE, **more):
    """Rows as they are kept, of these rates by name."""
    cases = planned(Asked("mode", {"mode": "async,none"}), 3).cases
    found = [
        (each, load(sent=rate * 2, there=rate * 2, received=rate * 2, **more), "")
        for each, rate in zip(cases, rates)
    ]
    return results(found, cluster, runs, conditions)


@pytest.mark.parametrize(
    "told, spoil, now, why",
    [
        ({"seconds": 60.0}, {}, {}, "60 s of load a row, not 3"),
        ({"row_bytes": 10 * 2**30}, {}, {}, "at most 10.0 GiB a row, not 1.0 MiB"),
        ({"host": "there"}, {}, {}, "its load ran on there"),
        ({"host": None}, {}, {}, "its load ran on a host that it does not tell"),
        (
            {"clients": "Python 3.9, librdkafka 2.3.0"},
            {},
            {},
            "its load was of Python 3.9, librdkafka",
        ),
        (
            {"clients": None},
            {},
            {},
            "its load was of clients that it does not tell, not Python 3.11",
        ),
        ({}, {"wrong": ["3 acknowledged records are not there"]}, {}, "it was not as expected"),
        ({}, {"limit": "other processes"}, {}, "other processes limited it"),
        ({}, {"throttled": True}, {}, "a quota throttled it"),
        ({}, {"cores": 2}, {}, "its load had 2 cores, not 4"),
        ({}, {}, {"usage": {"busy": 0.97}}, "1 earlier run: other processes limit it"),
        (
            {},
            {},
            {"usage": {"stalled": 0.6, "processes": IDLE}},
            "1 earlier run: other disk load limits it",
        ),
        ({}, {}, {"missing": 3}, "1 earlier run: it is not as expected"),
    ],
)
def test_runs_that_are_not_comparable_are_not_compared_and_it_is_said_why(told, spoil, now, why):
    drills = rows_of([1000, 2000, 1000])
    for each in drills:
        each.update({key: value for key, value in spoil.items() if key in each})
        each["load"].update({key: value for key, value in spoil.items() if key in each["load"]})
    run = {"cluster_id": "a", **WHERE.to_dict(), **told, "drills": drills}
    runs = [("20261101T100000Z", run)]
    rows = rows_of([500, 900, 510], runs=runs, **now)
    assert not rows[0]["change"] and not rows[0]["open"]
    (said,) = rows[0]["not_compared"]
    assert why in said
    lines = benchmark_verdict.benchmark_lines(rows)
    assert any(each.endswith(f"not with {said}") for each in lines)
    assert not any("first row: SLOWER" in each for each in lines)


def test_a_quota_that_is_new_is_compared():
    run = {"cluster_id": "a", **WHERE.to_dict(), "drills": rows_of([1000, 2000, 1000])}
    rows = rows_of([500, 900, 510], runs=[("20261101T100000Z", run)], throttled=True)
    assert all(each["change"] and not each["not_compared"] for each in rows)


def test_rows_are_compared_with_the_same_rows_of_the_same_cluster():
    earlier = {"cluster_id": "a", **WHERE.to_dict(), "drills": rows_of([1000, 2000, 1000])}
    slower = rows_of([500, 1900, 510], runs=[("20261101T100000Z", earlier)])
    assert [bool(each["open"]) for each in slower] == [True, False, True]
    text = "\n".join(benchmark_verdict.benchmark_lines(slower))
    assert "first row: SLOWER, 0.50 of the run of 20261101T100000Z" in text
    assert "ATTENTION: 2 rows slower than before." in text and "mode=none: as before" in text
    assert benchmark_verdict.good(slower, {})
    other = {**earlier, "cluster_id": "b"}
    assert not any(
        each["change"] for each in rows_of([1, 1, 1], runs=[("20261101T100000Z", other)])
    )
    unlike = [{**each, "setup": {**each["setup"], "linger_ms": 7}} for each in earlier["drills"]]
    runs = [("20261101T100000Z", {**earlier, "drills": unlike})]
    assert not any(each["change"] for each in rows_of([1, 1, 1], runs=runs))


def test_a_table_has_ratios_first_and_what_limits_each_row():
    rows = rows_of([1000, 3000, 900])
    text = benchmark_verdict.benchmark_lines(rows)
    assert text[0].split()[:3] == ["ROW", "RATIO", "RECORDS/S"]
    assert text[2].split()[:3] == ["mode=none", "3.00", "3,000"]
    assert "Noise within this run: the first row again has 0.90 of the first one." in text
    assert "unknown: nothing that could be seen is busy." in text
    figures = text[text.index("What limits the rows, and the figures that say so:") + 3]
    assert figures.split() == ("mode=none unknown 30 % 0.60 0.60 0.80 50 % 3.0 0 % 0.6 0 %".split())
    assert text[-1] == "3 rows measured; what was acknowledged is there."


@pytest.mark.parametrize(
    "ratio, text",
    [(1.0, "1.00"), (2.044, "2.04"), (0.5, "0.50"), (0.0041, "0.0041"), (0.0, "0.00")],
)
def test_a_small_ratio_is_not_nothing(ratio, text):
    assert ratio_text(ratio) == text


def test_acknowledged_records_that_are_not_there_fail_the_run():
    cases = planned(Asked("mode", {"mode": "async,none"}), 3).cases
    lossy = load(missing=3, there=997, received=997)
    found = [(cases[0], lossy, ""), (cases[1], lossy, ""), (cases[2], None, "[drill.failed] gone")]
    rows = results(found)
    # acks=0 promises nothing
    assert [each["wrong"] for each in rows] == [["3 acknowledged records are not there"], [], []]
    assert not benchmark_verdict.good(rows, {})
    text = benchmark_verdict.benchmark_lines(rows)
    assert text[-1] == "ATTENTION: 2 of 3 rows not as expected." and "[drill.failed] gone" in str(
        text
    )
    few = benchmark_verdict.row_of(Case("x", Setup(groups=2)), load(received=1999), None)
    assert few.wrong == ("consumers have got 1,999 of 2,000 records",)


def test_earlier_runs_that_cannot_be_read_are_left_out(tmp_path):
    names = [f"202611{day:02}T100000Z.json" for day in range(1, 15)]
    for name in names:
        (tmp_path / name).write_text("{}")
    (tmp_path / names[12]).write_text("{")
    (tmp_path / names[11]).write_text("[]")
    (tmp_path / "mine.json").write_text("{}")
    found = benchmark_run.earlier_runs(str(tmp_path / names[13]))
    assert [when for when, _told in found] == [each[:-5] for each in names[10:0:-1]]
    assert benchmark_run.earlier_runs(str(tmp_path / "none" / names[0])) == []


def test_the_time_left_is_by_the_rows_so_far():
    plan = planned(Asked("mode", {"mode": "async,sync,none", "tools": "false"}), 3)
    assert (
        benchmark_verdict.progress_line("one", plan, 0) == "one: 0 of 4 rows done, about 28s left"
    )
    row = rows_of([1000, 3000, 900])[0]
    line = benchmark_verdict.progress_line("one", plan, 1, 14.0, row)
    assert line.startswith(
        "one: 1 of 4 rows done, first row: 1.00 of the first row; 1,000 records/s"
    )
    assert line.endswith("about 42s left")


# -- /proc


def proc(directory, cpu=(100, 50), busy=400, idle=600, written=1000, stalled=10, sent=500):
    """A /proc of one process, 7, and a machine."""
    (directory / "7").mkdir(parents=True, exist_ok=True)
    (directory / "net").mkdir(exist_ok=True)
    (directory / "pressure").mkdir(exist_ok=True)
    (directory / "7" / "stat").write_text(f"7 (a ) b) S 1{' 0' * 9} {cpu[0]} {cpu[1]} 0 0\n")
    (directory / "7" / "io").write_text(f"read_bytes: 5\nwrite_bytes: {written}\n")
    (directory / "meminfo").write_text("MemFree:  9 kB\nDirty:  3000 kB\nWriteback:  1000 kB\n")
    # a disk, its part, and what lies on it
    (directory / "diskstats").write_text(
        "".join(
            f" 8 {number} {name} 1 0 8 1 1 0 {written // 100} 1 0 1 1\n"
            for number, name in enumerate(("sda", "sda1", "dm-0"))
        )
    )
    (directory / "block" / "sda" / "device").mkdir(parents=True, exist_ok=True)
    (directory / "block" / "dm-0").mkdir(exist_ok=True)
    (directory / "stat").write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 1\n")
    (directory / "pressure" / "io").write_text(
        f"some avg10=0.0 total={stalled * 10**6}\nfull total=1\n"
    )
    heads = "Inter-| x\n face | y\n"
    (directory / "net" / "dev").write_text(
        f"{heads} lo: 9 0 0 0 0 0 0 0 9\n e0: {sent} 0 0 0 0 0 0 0 {sent // 2}\n"
        f" docker0: {sent * 3} 0 0 0 0 0 0 0 1\n"
    )


def test_counters_of_proc_become_cores_rates_and_shares(tmp_path):
    proc(tmp_path)
    first = usage.snapshot({1: 7, 2: 8}, str(tmp_path), lambda: 10.0, str(tmp_path))
    ticks = usage.TICKS
    proc(
        tmp_path,
        cpu=(100 + 3 * ticks, 50 + ticks),
        busy=700,
        idle=700,
        written=9000,
        stalled=11,
        sent=4500,
    )
    second = usage.snapshot({1: 7, 2: 8}, str(tmp_path), lambda: 12.0, str(tmp_path))
    used = usage.between(first, second)
    assert used["processes"] == {
        1: {"cores": 2.0, "written_rate": 4000.0, "read_rate": 0.0, "waited": None}
    }
    assert (used["disk_rate"], used["unwritten_rate"]) == (80 * 512 / 2, 4000 * 1024 / 2)
    assert (used["busy"], used["stalled"]) == (0.75, 0.5)
    # a card carries as much in each direction at the same time
    rates = usage.network_rates(first, second)
    assert rates == {"e0": 2000.0, "docker0": 6000.0}
    assert usage.fullest(rates, {"e0": 10**9}) == (2000.0, 10**9)
    assert usage.fullest(rates, {"e0": 10**9, "docker0": 10**10}) == (2000.0, 10**9)
    assert usage.fullest(rates, {}) == (6000.0, None)
    assert usage.fullest({}, {"e0": 10**9}) == (None, None)


@pytest.mark.parametrize(
    "group, members, waited",
    [
        ("/system.slice/kafka.service", "7\n", 0.25),
        # brokers that a supervisord has started
        ("/user.slice/scope", "7\n8\n", 0.25),
        ("/user.slice/scope", "1\n7\n8\n", None),
        ("/", "7\n", None),
        ("/gone", "", None),
    ],
)
def test_who_waits_for_a_disk_is_told_by_a_control_group_of_brokers_alone(
    tmp_path, group, members, waited
):
    found = []
    for at, total in ((10.0, 3_000_000), (12.0, 3_500_000)):
        proc(tmp_path)
        (tmp_path / "7" / "cgroup").write_text(f"4:memory:/x\n0::{group}\n")
        folder = tmp_path / "fs" / f"cgroup{group}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.procs").write_text(members)
        (folder / "io.pressure").write_text(f"some avg10=0.0 total={total}\nfull total=1\n")
        clock = functools.partial(float, at)
        found.append(usage.snapshot({1: 7, 2: 8}, str(tmp_path), clock, str(tmp_path)))
    assert usage.between(*found)["processes"][1]["waited"] == waited


def test_what_proc_does_not_tell_is_none(tmp_path):
    empty, later = (
        usage.snapshot({1: 7}, str(tmp_path), functools.partial(float, at), str(tmp_path))
        for at in (1.0, 2.0)
    )
    used = usage.between(empty, later)
    nothing = dict.fromkeys(("busy", "stalled", "disk_rate", "unwritten_rate"))
    assert used == {"processes": {}, **nothing}
    assert usage.threads_of(7, str(tmp_path)) == {}
    mine = usage.threads_of(os.getpid())
    assert os.getpid() in mine


# -- Kafka's own tools


PRODUCED = """\
20002 records sent, 4000.4 records/sec (0.38 MB/sec), 3.2 ms avg latency, 312.0 ms max latency.
50000 records sent, 24330.900243 records/sec (2.32 MB/sec), 10.92 ms avg latency, 330.00 ms max latency, \
1 ms 50th, 63 ms 95th, 90 ms 99th, 101 ms 99.9th.
"""
CONSUMED = """\
WARNING: option [messages] has been deprecated
start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, \
fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
2026-11-26 12:00:00:001, 2026-11-26 12:00:04:001, 4.76, 1.19, 50000, 12500.0, 3500, 500, 9.5, 100000.0
"""


def test_what_the_tools_print_is_read():
    made = perf_tools.produced(PRODUCED)
    assert made == {
        "records": 50000,
        "rate": 24330.900243,
        "p50": 1,
        "p95": 63,
        "p99": 90,
        "p999": 101,
    }
    assert perf_tools.consumed(CONSUMED) == {"records": 50000, "rate": 100000.0}
    for text in ("", PRODUCED.splitlines()[0], "a, b\n1, 2"):
        assert perf_tools.produced(text) is None and perf_tools.consumed(text) is None


def test_records_of_the_tools_that_are_not_there_fail_the_run():
    witness = {"producer": perf_tools.produced(PRODUCED), "consumer": None, "there": 49999}
    text = "\n".join(benchmark_verdict.witness_lines(witness, load()))
    assert "ATTENTION: 1 of its records are not there" in text and "unknown" in text
    rows = rows_of([1000, 3000, 900])
    assert not benchmark_verdict.good(rows, witness)
    assert benchmark_verdict.good(rows, {**witness, "there": 50000})


TOOL = """#!/bin/bash
[ -d "$LOG_DIR" ] || mkdir -p "$LOG_DIR"
while [ $# -gt 0 ]; do
    case $1 in --producer.config|--consumer.config) grep -q 'password="s3cret"' "$2" || exit 3; esac
    shift
done
find "$LOG_DIR" -type f | grep . && exit 4
cat "$(dirname "$0")/said-$(basename "$0")"
"""


def test_the_tools_get_passwords_that_are_on_no_disk(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    for name, said in ((perf_tools.PRODUCER, PRODUCED), (perf_tools.CONSUMER, CONSUMED)):
        (tmp_path / "bin" / name).write_text(TOOL)
        (tmp_path / "bin" / name).chmod(0o755)
        (tmp_path / "bin" / f"said-{name}").write_text(said)
    login = {"sasl.jaas.config": 'Plain required username="u" password="s3cret";'}
    tools = perf_tools.Tools(str(tmp_path), "", login)
    found = perf_tools.run_tools(tools, Setup(), "topic", "127.0.0.1:9", 50000, lambda: True)
    assert found["producer"]["records"] == found["consumer"]["records"] == 50000
    assert os.listdir(tmp_path / "tmp") == []


def test_the_tools_are_those_of_a_broker_that_runs_here(tmp_path):
    (tmp_path / "7").mkdir()
    words = ["/java/bin/java", "-cp", "/opt/kafka/libs/*:/opt/more/x.jar", "kafka.Kafka"]
    (tmp_path / "7" / "cmdline").write_text("\0".join(words))
    (tmp_path / "7" / "exe").symlink_to("/java/bin/java")
    found = perf_tools.tools_of(7, {"a": "b"}, str(tmp_path))
    assert found == perf_tools.Tools("/opt/kafka", "/java", {"a": "b"}) and not found.there
    assert perf_tools.tools_of(8, {}, str(tmp_path)) == perf_tools.Tools("", "", {})
    # of another account
    (tmp_path / "7" / "exe").unlink()
    assert perf_tools.tools_of(7, {"a": "b"}, str(tmp_path)) == found


def test_brokers_here_are_seen_by_the_record_of_their_start():
    """Which the hosts themselves have read: its directory is the broker's account's."""
    mine = {"pid": os.getpid(), "start_ticks": start_ticks(os.getpid())}
    records = {1: mine, 2: {**mine, "start_ticks": 1}, 3: {}}
    here = benchmark_run.Given("one", Asked(), records)
    assert here.pids == {1: os.getpid()}
    assert "could not be found by their processes" in here.why_no_tools
    assert (
        "not installed where the load runs" in benchmark_run.Given("one", Asked(), {}).why_no_tools
    )
    assert re.fullmatch(
        r"Python \d+\.\d+, librdkafka \d+\.\d+\.\d+", client_benchmark.clients_here()
    )


# -- processes


def test_a_process_ends_with_an_error_that_its_parent_tells():
    def work(_going):
        raise OSError("no more")

    with pytest.raises(ProblemError) as error:
        benchmark_run.in_process(work, 0)
    assert "OSError: no more" in str(error.value)
    assert benchmark_run.in_process(lambda going: (going(), os.getpid() != 0), 0) == (True, True)


def test_a_process_sees_that_the_playbook_or_its_parent_is_gone():
    with subprocess.Popen([sys.executable, "-c", "pass"]) as gone:
        gone.wait()
    assert benchmark_run.in_process(lambda going: going(), gone.pid) is False


def test_a_worker_that_fails_or_says_nothing_is_told():
    def fails(_talk):
        raise ValueError("no topic")

    worker = client_benchmark.Worker(fails, lambda: True)
    with pytest.raises(ProblemError) as error:
        worker.hear(30)
    worker.end()
    assert "ValueError: no topic" in str(error.value)
    worker = client_benchmark.Worker(lambda talk: talk.hear(), lambda: False)
    with pytest.raises(ProblemError) as error:
        worker.hear(30)
    worker.end()
    assert "interrupted" in str(error.value)


def test_a_worker_ends_when_its_parent_is_killed(tmp_path):
    told = tmp_path / "pid"
    parent = os.fork()
    if parent == 0:

        def body(talk):
            told.write_text(str(os.getpid()))
            talk.hear()

        client_benchmark.Worker(body, lambda: True)
        signal.pause()
    until = time.monotonic() + 30
    while not (told.exists() and told.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    worker = int(told.read_text())
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    while os.path.exists(f"/proc/{worker}") and time.monotonic() < until:
        stat = usage.process_of(worker)
        if stat is None or " Z " in open(f"/proc/{worker}/stat", encoding="utf-8").read():
            break
        time.sleep(0.02)
    else:
        assert not os.path.exists(f"/proc/{worker}")

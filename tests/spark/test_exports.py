# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict for other programs: Prometheus' text and JUnit's XML, read as those read them."""

import re
from xml.etree import ElementTree

import pytest
from flow.present import exports

from tests.support import verdicts

EVERY = pytest.mark.parametrize("make", verdicts.ALL, ids=lambda make: make.__name__)
# as prometheus.io/docs/instrumenting/exposition_formats has it
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"([a-z_]+)\{{({LABEL}(?:,{LABEL})*)\}} (-?[0-9.e+-]+)")


def read(text):
    """name -> [(labels, value)] of the text; fails on a line that the format does not allow."""
    found, typed = {}, []
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            typed.append(line.split()[2])
        elif line.startswith("# TYPE "):
            assert line.split()[2:] == [typed[-1], "gauge"]
        else:
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert name == typed[-1], "samples stand together, behind their type"
            found.setdefault(name, []).append(
                (dict(re.findall(r'(\w+)="(.*?)"', labels)), float(value))
            )
    assert len(set(typed)) == len(typed) and set(typed) == set(found)
    return found


@EVERY
def test_every_verdict_is_text_that_prometheus_takes(make):
    document = make()
    found = read(exports.prometheus("verdict", document))
    said = {labels["verdict"]: value for labels, value in found["kafkaops_flow_verdict"]}
    assert said == {kind: kind == document["verdict"] for kind in ("pass", "fail", "inconclusive")}
    counted = {each["check"]: n for each, n in found["kafkaops_flow_check_violations"]}
    assert counted == {each["id"]: each["count"] for each in document["checks"]}
    assert "kafkaops_flow_ended_timestamp_seconds" in found


def test_numbers_are_in_seconds_and_told_apart_by_their_labels():
    document = verdicts.failing()
    found = read(exports.prometheus("verdict", document))
    timing = document["timing"]
    told = {
        labels["quantile"]: n
        for labels, n in found["kafkaops_flow_acknowledgement_latency_seconds"]
    }
    assert told["0.99"] == timing["acknowledgement_latency"]["p99_ms"] / 1000
    pauses = {labels["of"]: n for labels, n in found["kafkaops_flow_longest_pause_seconds"]}
    assert pauses["records"] == timing["longest_pause"]["ms"] / 1000
    changed = {labels["what"]: n for labels, n in found["kafkaops_flow_partition_changes"]}
    assert changed == {"leader": 4, "in_sync": 12}
    assert found["kafkaops_flow_ended_timestamp_seconds"][0][1] == 1790000042


def test_an_old_ledger_has_fewer_metrics():
    document = verdicts.passing()
    for key in ("leadership", "cluster", "settings", "ended"):
        document.pop(key)
    document["timing"].pop("acknowledgement_latency")
    found = read(exports.prometheus("verdict", document))
    assert "kafkaops_flow_partition_changes" not in found
    assert "kafkaops_flow_acknowledgement_latency_seconds" not in found


@EVERY
def test_every_verdict_is_a_suite_of_its_checks(make):
    document = make()
    document["summary"] += "\x00\x1b[31m\ufffe"  # what XML cannot say
    suite = ElementTree.fromstring(exports.junit("verdict", document).encode())
    cases = suite.findall("testcase")
    assert int(suite.get("tests")) == len(cases) == len(document["checks"]) + 1
    failed = {
        case.get("name"): case.find("failure").text
        for case in cases
        if case.find("failure") is not None
    }
    bad = {each["id"] for each in document["checks"] if each["status"] == "fail"}
    assert set(failed) == bad and int(suite.get("failures")) == len(bad)
    assert all("reason " in text for text in failed.values())
    open_ = [case for case in cases if case.find("error") is not None]
    left = document["verdict"] == "inconclusive" or bool(document["unclear"])
    assert bool(open_) == left == (suite.get("errors") == "1")


def test_what_stayed_open_beside_a_violation_is_no_case_that_passed():
    document = {**verdicts.failing(), "unclear": ["9 records are unknown"]}
    suite = ElementTree.fromstring(exports.junit("verdict", document).encode())
    (case,) = [
        each for each in suite.findall("testcase") if each.get("name") == "judged_to_the_end"
    ]
    assert "9 records are unknown" in case.find("error").text and suite.get("errors") == "1"


def test_changes_that_are_not_told_one_by_one_are_counted():
    document = verdicts.passing()
    document["leadership"]["left_out"] = 17
    found = read(exports.prometheus("verdict", document))
    assert [n for _labels, n in found["kafkaops_flow_partition_changes_left_out"]] == [17]


def test_what_now_is_in_the_output_of_the_suite():
    suite = ElementTree.fromstring(exports.junit("verdict", verdicts.failing()).encode())
    assert "to judge it again: ansible-playbook" in suite.find("system-out").text

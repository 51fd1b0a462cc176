# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people get of a verdict: the line at the end of the task, and preflight.json."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Raw
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.report import (
    message,
    reports,
)

HELD = found("ports.in_use", "kafka-2", "kafka_listeners[0].port", 9092, "held")
CLOCK = found("host.clock", "kafka-2", "(clock)", "3 s", "it goes wrong")


@pytest.mark.parametrize(
    "findings, enforce, told",
    [
        ([], True, "The preflight has nothing against it: 1 host, 0 errors, 0 warnings."),
        ([CLOCK], True, "The preflight has nothing against it: 1 host, 0 errors, 1 warning."),
        ([HELD], False, "The preflight would refuse this inventory: 1 host, 1 error, 0 warnings."),
        (
            [HELD, CLOCK],
            True,
            "Nothing was changed: the preflight refuses this inventory (1 host, 1 error, 1 warning).\n"
            f"{HELD.line()}",
        ),
    ],
)
def test_the_verdict_in_words(findings, enforce, told):
    assert message(findings, 1, enforce) == told


def test_each_cluster_has_a_report_of_its_own():
    homes = {"a": "/srv/k", "b": "/srv/k", "../c": "/srv/k", "d": "relative"}
    raws = [
        Raw(f"kafka-{number}", True, False, {"kafka_cluster_name": name, "kafkaops_home": home})
        for number, (name, home) in enumerate(homes.items(), 1)
    ]
    ids = {"kafka-1": {"broker_id": 1, "myid": None}}
    written = reports(raws, [HELD], ids, "2026-11-25T03:00:00Z")
    assert {name: path for name, (path, _text) in written.items()} == {
        "a": "/srv/k/reports/a/preflight.json",
        "b": "/srv/k/reports/b/preflight.json",
    }
    first, second = (json.loads(written[name][1]) for name in "ab")
    assert (first["ok"], first["findings"], first["ids"]) == (True, [], ids)
    assert (second["ok"], second["findings"][0]["check"]) == (False, "ports.in_use")
    assert (second["cluster"], second["written_at"]) == ("b", "2026-11-25T03:00:00Z")

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/preflight.md lists exactly the checks that the code has.

KAFKAOPS_UPDATE_DOCS=1 writes the table instead of comparing it.
"""

from __future__ import annotations

import os
import pathlib
import re

from ansible_collections.kafkaops.cluster.plugins.module_utils._findings import (
    CATALOGUE,
    LEVELS,
    found,
    merged,
)

ROOT = pathlib.Path(__file__).resolve().parents[4]
PAGE = ROOT / "docs" / "preflight.md"
BEGIN, END = "<!-- checks: begin -->\n", "<!-- checks: end -->\n"
# What outside checks use; docs and code may grow, these may not change.
CONTRACT = {
    "identity.duplicate_broker_id",
    "identity.duplicate_myid",
    "identity.contradicts_disk",
    "identity.foreign_cluster",
    "identity.out_of_range",
    "listeners.unresolvable",
    "listeners.duplicate",
    "ports.in_use",
    "directories.shared",
    "directories.temporary",
    "replication.exceeds_brokers",
    "config.unknown_key",
    "config.bad_value",
    "config.removed_key",
    "version.unknown",
    "version.illegal_path",
    "ensemble.size",
}


def table():
    """The Markdown table of all checks."""
    lines = ["| id | level | what must hold | remedy |", "|---|---|---|---|"]
    for check in CATALOGUE.values():
        lines.append("| `%s` | %s | %s | %s |" % (check.id, check.level, check.what, check.remedy))
    return "\n".join(lines) + "\n"


def test_the_page_lists_the_checks_of_the_code():
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    written, tail = rest.split(END)
    if os.environ.get("KAFKAOPS_UPDATE_DOCS"):
        PAGE.write_text(head + BEGIN + table() + END + tail, encoding="utf-8")
        return
    assert written == table(), "run this test with KAFKAOPS_UPDATE_DOCS=1"


def test_the_contract_is_kept():
    assert CONTRACT <= set(CATALOGUE)
    assert all(CATALOGUE[check].level == "error" for check in CONTRACT)


def test_every_catalogued_check_is_made_somewhere():
    """An id that no code mentions would be a promise that nobody keeps."""
    folder = ROOT / "plugins"  # the topics' own checks are made by _model and _plan_topics
    code = "".join(
        path.read_text(encoding="utf-8")
        for path in folder.rglob("*.py")
        if path.name != "_findings.py"
    )
    made_up = {check for check in CATALOGUE if '"%s"' % check not in code}
    assert made_up == set()


def test_a_finding_is_one_line_in_the_form_of_the_contract():
    finding = found(
        "ports.in_use", ["b", "a"], "kafka_listeners[0].port", 9092, "held\nby nc", "stop it"
    )
    assert finding.line() == (
        "[ports.in_use] a, b: kafka_listeners[0].port=9092: held by nc. Remedy: stop it."
    )
    assert re.match(r"^\[[a-z_.]+\] \S.*: \S+=.*: .*\. Remedy: .*\.$", finding.line())
    assert finding.level in LEVELS


def test_what_concerns_many_hosts_is_said_once():
    one = found("config.unknown_key", "kafka-10", "kafka_config.x", 1, "no such key", "drop it")
    two = found("config.unknown_key", "kafka-2", "kafka_config.x", 1, "no such key", "drop it")
    other = found("config.unknown_key", "kafka-2", "kafka_config.x", 2, "no such key", "drop it")
    assert [each.hosts for each in merged([one, two, other])] == [
        ("kafka-2",),
        ("kafka-2", "kafka-10"),
    ]

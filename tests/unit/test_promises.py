# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/promises.md against the files: each test that it names is there, and no module and no promise is left out."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
RULES, WAYS, REQUESTS = (
    [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in section.splitlines()
        if line.startswith("| ") and not line.startswith(("| rule |", "| way |", "| module |"))
    ]
    for section in PAGE.split("\n## ")[1:]
)
MODULES = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))[
    "action_groups"
]["kafka"]
# Modules of drills and proofs, which are asked for one thing.
ONE_THING = {"kafka_benchmark", "kafka_drill", "kafka_guarantee"}
# What is done, not declared: it is seen in kafka_topics_info and kafka_cluster_info.
DEEDS = {
    *("kafka_features", "kafka_leader_election", "kafka_reassignment", "kafka_records"),
    "kafka_voters",
}


def names_in(path):
    """The names of the tests in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


@pytest.mark.parametrize("row", RULES + WAYS + REQUESTS, ids=lambda row: row[0][:40])
def test_the_names_in_a_promise_are_there(row):
    named = re.findall(r"`(tests/[\w/]+\.py)`(?:: ((?:`\w+`(?:, )?)+))?", row[-1])
    assert named, "nothing holds it"
    for path, names in named:
        found = names_in(path)
        assert found, path
        missing = set(re.findall(r"`(\w+)`", names)) - found
        assert not missing, f"{path} has no {missing}"


@pytest.mark.parametrize("rows", [RULES, WAYS], ids=["rules", "ways"])
def test_there_are_ten_and_each_is_held_by_a_real_cluster(rows):
    numbers = [re.match(r"\*\*(\d+)\. ", row[0]) for row in rows]
    assert [int(each[1]) for each in numbers] == list(range(1, 11))
    assert all("tests/integration/" in row[-1] for row in rows)


def test_modules_with_the_connection_options_are_those_of_the_action_group():
    """Whose options are set once for all by `module_defaults`, and of whom the rest of this file is."""
    fragment = "  - kafkaops.cluster.kafka\n"
    modules = (ROOT / "plugins" / "modules").glob("*.py")
    taking = [path.stem for path in modules if fragment in path.read_text(encoding="utf-8")]
    assert sorted(taking) == MODULES


def test_requests_of_every_module_are_counted():
    told = [name for row in REQUESTS for name in re.findall(r"`(kafka_\w+)`", row[0])]
    assert sorted(told) == sorted(set(MODULES) - ONE_THING)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_documents_what_it_does(name):
    """Plain texts, with examples, return values and what it can in check mode."""
    module = importlib.import_module(f"ansible_collections.kafkaops.cluster.plugins.modules.{name}")
    told = yaml.safe_load(module.DOCUMENTATION)
    assert told["module"] == name and told["short_description"] and told["description"]
    assert {"check_mode", "diff_mode"} <= set(told["attributes"]), told["attributes"].keys()
    assert yaml.safe_load(module.EXAMPLES) and yaml.safe_load(module.RETURN)
    source = ast.parse((ROOT / "plugins" / "modules" / f"{name}.py").read_text(encoding="utf-8"))
    texts = {
        each.targets[0].id: each.value
        for each in source.body
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
    }
    for text in ("DOCUMENTATION", "EXAMPLES", "RETURN"):
        assert isinstance(texts[text], ast.Constant), f"{text} is put together, and does not render"


def test_what_can_be_declared_can_be_read():
    infos = {each[: -len("_info")] for each in MODULES if each.endswith("_info")}
    declared = {
        each
        for each in set(MODULES) - ONE_THING - DEEDS
        if not each.endswith(("_info", "_gate", "_advice", "_settings"))
    }
    # policies of retention are settings of topics
    assert declared - infos == {"kafka_retention"}

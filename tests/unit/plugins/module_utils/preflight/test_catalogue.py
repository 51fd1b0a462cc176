# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of problems names exactly the ids of the code, and remedies name what exists."""

from __future__ import annotations

import ast
import json
import pathlib
import re

import pytest
import yaml

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import (
    HOST,
    catalogue,
    found,
    merged,
    reported,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import LEVELS

ROOT = pathlib.Path(__file__).resolve().parents[5]
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
    "directories.emptied",
    "identity.broken_meta",
    "run.locked",
    "run.module_at_work",
}
ID = re.compile(r"^[a-z_]+\.[a-z_]+$")
# The id at the beginning of a line of the form `[check.id] SUBJECT: ...`
BRACKETED = re.compile(r"(?:^|[\s\"'])\[([a-z_]+\.[a-z_]+)\](?=\s)", re.MULTILINE)
# A variable of a role that is the id in a line of several callers.
HANDED_ON = re.compile(r"^ *\w+_check: ([a-z_]+\.[a-z_]+)$", re.MULTILINE)
# Functions and classes whose first text, or whose `check`, is an id.
MAKERS = re.compile(r"(?i)(^found$|problem|refus|error$|^bad$|^fail)")
# An option's name makes the first part: [bootstrap_servers.form], [zookeeper.form].
MADE_OF_OPTIONS = {"bootstrap_servers.form", "zookeeper.form"}


def files(*patterns):
    """Files of the collection that raise problems, but not the catalogue."""
    for pattern in patterns:
        yield from sorted(path for path in ROOT.glob(pattern) if "files/flow" not in str(path))


def ids_of_python(tree):
    """Every id in a module: first argument or `check` of a maker, constants, `[id] ` in texts."""
    ids = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            texts = list(node.args[:1]) if MAKERS.search(name) else []
            texts += [each.value for each in node.keywords if each.arg == "check"]
            ids.update(text_of(each) for each in texts)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id.isupper():
                ids.add(text_of(node.value))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            ids.update(BRACKETED.findall(node.value))
    return {each for each in ids if ID.match(each)}


def text_of(node):
    """The text of a constant, else nothing."""
    value = getattr(node, "value", "")
    return value if isinstance(value, str) else ""


def raised():
    """id -> files that raise it."""
    places = {}
    for path in files("plugins/**/*.py"):
        for check in ids_of_python(ast.parse(path.read_text(encoding="utf-8"))):
            places.setdefault(check, set()).add(path.relative_to(ROOT).as_posix())
    for path in files("roles/**/*.yml", "playbooks/**/*.yml"):
        text = path.read_text(encoding="utf-8")
        for check in BRACKETED.findall(text) + HANDED_ON.findall(text):
            places.setdefault(check, set()).add(path.relative_to(ROOT).as_posix())
    # Constants that look like ids and are file names or settings of the products.
    suffixes = (".log", ".json", ".xml", ".properties", ".crt", ".pem")
    suffixes += (".supervisord", ".kazoo", ".librdkafka", "metadata.version", "kraft.version")
    return {check: names for check, names in places.items() if not check.endswith(suffixes)}


def test_every_id_that_is_raised_is_in_the_catalogue():
    missing = {
        check: sorted(names) for check, names in raised().items() if check not in catalogue()
    }
    assert missing == {}, "add it to meta/problems.yml, then run scripts/generate_docs.py"


def test_every_catalogued_id_is_raised_somewhere():
    """An id that no code mentions would be a promise that nobody keeps."""
    code = "".join(path.read_text(encoding="utf-8") for path in files("plugins/**/*.py"))
    made_up = {check for check in set(catalogue()) - set(raised()) if f'"{check}"' not in code}
    assert made_up - MADE_OF_OPTIONS == set()


def test_the_search_for_ids_finds_what_it_looks_for():
    """A search that finds nothing would make the two tests above worthless."""
    code = "bad(1, check='a.b')\nProblem('c.d', 'x')\nUNKNOWN = 'e.f'\nraise X(f'[g.h] {x}: y')\nfoo('i.j')"
    assert ids_of_python(ast.parse(code)) == {"a.b", "c.d", "e.f", "g.h"}
    assert "teardown.confirm" in raised() and "fetch.failed" in raised()


def test_the_contract_is_kept():
    assert CONTRACT <= set(catalogue())
    assert all(catalogue()[check].level == "error" for check in CONTRACT)
    assert {check.level for check in catalogue().values()} <= set(LEVELS)


# Of the disk of one host, whatever their family.
OF_DISKS = {"identity.broken_meta", "quorum.lost_vote"}


def test_what_concerns_the_cluster_is_never_a_matter_of_one_host():
    of_hosts = {check.id for check in catalogue().values() if check.concerns == HOST}
    assert {check.concerns for check in catalogue().values()} == {HOST, "cluster"}
    families = {check.partition(".")[0] for check in of_hosts - OF_DISKS}
    assert families == set("directories host java jvm memory ports space takeover".split())


@pytest.mark.parametrize("folder", ["plugins", "roles", "meta", "playbooks", "docs"])
def test_every_playbook_that_a_text_names_exists(folder):
    """A remedy that names a playbook of a later release helps nobody."""
    named = {}
    for path in (ROOT / folder).rglob("*"):
        if path.suffix in (".py", ".yml", ".j2", ".md", ".sh"):
            text = path.read_text(encoding="utf-8")
            for name in re.findall(r"playbooks/([a-z_]+)\.yml", text):
                named.setdefault(name, set()).add(path.relative_to(ROOT).as_posix())
    gone = {name: at for name, at in named.items() if not (ROOT / f"playbooks/{name}.yml").exists()}
    assert gone == {}


def test_no_remedy_names_a_version():
    """Versions come from the tables: a written one is offered long after it is refused."""
    written = {
        check.id: check.remedy
        for check in catalogue().values()
        if re.search(r"\d+\.\d+\.\d+", check.remedy)
    }
    assert written == {}


def test_a_finding_is_one_line_in_the_form_of_the_contract():
    finding = found(
        "ports.in_use", ["b", "a"], "kafka_listeners[0].port", 9092, "held\nby nc", "stop it"
    )
    assert finding.line() == (
        "[ports.in_use] a, b: kafka_listeners[0].port=9092: held by nc. Remedy: stop it."
    )
    assert finding.level == "error"


def test_preflight_json_keeps_its_keys():
    entry = reported(found("ports.in_use", "a", "kafka_listeners[0].port", 9092, "held"))
    assert (entry["hosts"], entry["variable"], entry["value"]) == (
        ["a"],
        "kafka_listeners[0].port",
        "9092",
    )
    assert set(json.loads(json.dumps(entry))) == {
        "check",
        "level",
        "hosts",
        "variable",
        "value",
        "reason",
        "remedy",
        "line",
    }


def test_a_finding_that_the_catalogue_lacks_cannot_be_made():
    with pytest.raises(KeyError):
        found("made.up", "a", "b", 1, "c")


def test_what_concerns_many_hosts_is_said_once():
    one = found("config.unknown_key", "kafka-10", "kafka_config.x", 1, "no such key", "drop it")
    two = found("config.unknown_key", "kafka-2", "kafka_config.x", 1, "no such key", "drop it")
    other = found("config.unknown_key", "kafka-2", "kafka_config.x", 2, "no such key", "drop it")
    assert [each.subjects for each in merged([one, two, other])] == [
        ("kafka-2",),
        ("kafka-2", "kafka-10"),
    ]


def test_the_catalogue_names_each_id_once():
    text = (ROOT / "meta" / "problems.yml").read_text(encoding="utf-8")
    ids = re.findall(r"(?m)^([a-z_]+\.[a-z_]+):$", text)
    assert sorted(ids) == sorted(set(ids))
    assert list(yaml.safe_load(text)) == ids


def test_every_id_is_met_by_a_test():
    kinds = {".py", ".yml", ".sh", ".j2", ".json"}
    texts = [
        path.read_text(encoding="utf-8", errors="replace")
        for folder in ("tests", "molecule")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in kinds and path != pathlib.Path(__file__).resolve()
    ]
    met = {word for text in texts for word in re.findall(r"\b[a-z_]+\.[a-z_]+\b", text)}
    assert set(catalogue()) <= met, sorted(set(catalogue()) - met)

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every remedy exists: playbooks, variables and versions that any message, doc or task names are there."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark import (
    DIMENSIONS,
    OTHERS,
)
from scripts import generate_docs

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = {path.stem for path in (ROOT / "playbooks").glob("*.yml")}
# Names that the public contract fixes: a message may not name one of them before it is there.
CONTRACT = set(
    "site preflight fetch topics validate status start stop teardown rolling_restart rolling_upgrade"
    " rollback scale_out scale_in replace_broker state export lag inspect drill benchmark client"
    " aws_provision aws_teardown migrate_to_kraft migrate_back".split()
)
SPOKEN = [
    *ROOT.glob("plugins/**/*.py"),
    *ROOT.glob("plugins/**/*.yml"),
    *ROOT.glob("roles/*/tasks/*.yml"),
    *ROOT.glob("roles/*/meta/*.yml"),
    *ROOT.glob("roles/*/README.md"),
    *ROOT.glob("roles/flow_validation/files/**/*.py"),
    *ROOT.glob("playbooks/**/*.yml"),
    *ROOT.glob("docs/*.md"),
    ROOT / "meta" / "problems.yml",
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "quickstart.sh",
]
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in SPOKEN}


def variables():
    """Return every variable of a role, and each that a playbook reads without one."""
    known = {
        name
        for role in generate_docs.roles()
        for name in generate_docs.variables_entry(role)["options"]
    }
    for path in [*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/tasks/*.yml")]:
        text = path.read_text(encoding="utf-8")
        known |= set(re.findall(r"\b([a-z_]+) (?:\| default|is (?:not )?defined)", text))
        known |= set(re.findall(r"# -e ([a-z_]+)=", text))
    for path in ROOT.glob("inventories/*/group_vars/*.yml"):
        known |= set(yaml.safe_load(path.read_text(encoding="utf-8")) or ())
    for path in ROOT.glob("inventories/*/hosts.yml"):
        known |= set(re.findall(r"\b(local_[a-z_]+)\b", path.read_text(encoding="utf-8")))
    known |= set(yaml.safe_load((ROOT / "meta" / "play_variables.yml").read_text("utf-8")))
    # the playbook hands on whatever begins so
    return known | {f"benchmark_{name}" for name in (*DIMENSIONS, *OTHERS)}


def test_every_playbook_that_is_named_exists():
    missing = {}
    for name, text in TEXTS.items():
        named = set(re.findall(r"\bplaybooks/([a-z_]+)\.yml", text))
        named |= set(re.findall(r"\bkafkaops\.cluster\.([a-z_]+)\b", text)) & CONTRACT
        named |= set(re.findall(r"(?<![\w/])([a-z_]+)\.yml", text)) & CONTRACT
        if named - PLAYBOOKS:
            missing[name] = sorted(named - PLAYBOOKS)
    assert len(TEXTS) > 150 and not missing


def test_every_variable_that_is_to_be_given_exists():
    known, missing = variables(), {}
    for name, text in TEXTS.items():
        given = set(re.findall(r"-e '?\"?\{?\s*\"?([a-z][a-z_]+)\"?(?:=|:)", text))
        if given - known:
            missing[name] = sorted(given - known)
    assert len(known) > 100 and not missing


def locked(product):
    """The releases that can be had without a mirror of one's own, as tuples."""
    names = [path.stem for path in (ROOT / "roles/jvm_service/files/locks").glob("*.json")]
    found = [re.fullmatch(rf"{product}(?:_[\d.]+)?-([\d.]+)", name) for name in names]
    return {tuple(map(int, match[1].split("."))) for match in found if match}


LOCKED = {product: locked(product) for product in ("kafka", "zookeeper")}


def numbers(text):
    return tuple(map(int, text.split(".")))


def test_every_version_that_is_to_be_set_can_be_had():
    """Where a page, an inventory or a message says `kafka_version: "3.9.2"`, that release has a lock."""
    inventories = ROOT.glob("inventories/**/*.yml"), ROOT.glob("roles/*/defaults/*.yml")
    texts = {
        **TEXTS,
        **{str(path): path.read_text(encoding="utf-8") for paths in inventories for path in paths},
    }
    given = {
        (name, product, version)
        for name, text in texts.items()
        for product, version in re.findall(
            r"\b(kafka|zookeeper)_version(?:=|: )[\"']?(\d[\d.]*\d)", text
        )
    }
    assert len(given) > 8
    assert not [each for each in given if numbers(each[2]) not in LOCKED[each[1]]]


def test_every_version_to_go_to_is_there():
    """ "Upgrade to Kafka 4.1 or newer": a release of that line, or of a newer one, has a lock."""
    wanted = {
        (name, product.lower(), version)
        for name, text in TEXTS.items()
        for product, version in re.findall(
            r"\b(Kafka|ZooKeeper) (\d[\d.]*\d) (?:or|and) (?:newer|later)", text
        )
    }
    assert len(wanted) > 8
    assert not [each for each in wanted if max(LOCKED[each[1]]) < numbers(each[2])]
    problems = yaml.safe_load((ROOT / "meta" / "problems.yml").read_text(encoding="utf-8"))
    in_code = generate_docs.remedies()
    exact = {
        (check, version)
        for check, entry in problems.items()
        for version in re.findall(
            r"\b(?:upgrade|it) to (?:Kafka )?(\d+\.\d+(?:\.\d+)?)(?! (?:or|and) newer)",
            f"{entry.get('remedy')} {in_code.get(check)}",
        )
    }
    lines = {version[: len(numbers(each[1]))] for each in exact for version in LOCKED["kafka"]}
    assert exact and not [each for each in exact if numbers(each[1]) not in lines]


def test_every_id_that_is_printed_is_in_the_catalogue():
    problems = yaml.safe_load((ROOT / "meta" / "problems.yml").read_text(encoding="utf-8"))
    families, missing = {check.partition(".")[0] for check in problems}, {}
    for name, text in TEXTS.items():
        printed = set(re.findall(r"\[([a-z_]+\.[a-z_]+)\] (?!=)", text))
        printed = {check for check in printed if check.partition(".")[0] in families}
        if printed - set(problems):
            missing[name] = sorted(printed - set(problems))
    assert not missing


def test_each_remedy_is_written_in_one_place():
    """In the catalogue, or in the code alone for managed hosts; the pages take it from either."""
    problems = yaml.safe_load((ROOT / "meta" / "problems.yml").read_text(encoding="utf-8"))
    in_code = generate_docs.remedies()
    both = {check: (entry.get("remedy"), in_code.get(check)) for check, entry in problems.items()}
    assert not [check for check, (here, there) in both.items() if not here and not there]
    assert not [check for check, (here, there) in both.items() if here and here == there]
    assert in_code["run.lock_lost"] and "ports.in_use" not in in_code

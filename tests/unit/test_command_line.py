# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of meta/play_variables.yml count by the command line alone: inventories have such words, too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jinja2
import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from jinja2 import nodes

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.play_variables import (
    play_variables,
)
from tests.support.role_variables import evaluated

ROOT = Path(__file__).resolve().parents[2]
LOOKUP = "kafkaops.cluster.extra_var"
CONDITIONS = {"when", "that", "changed_when", "failed_when", "until"}


def templates_of(value, condition=False):
    """Each template in what a YAML file says; a condition is one without braces."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from templates_of(each, key in CONDITIONS)
    elif isinstance(value, list):
        for each in value:
            yield from templates_of(each, condition)
    elif isinstance(value, str) and condition:
        yield "{{ (" + value + ") }}"
    elif isinstance(value, str) and ("{{" in value or "{%" in value):
        yield value


def all_templates():
    """(file, template) of all playbooks and roles."""
    for pattern in ("site.yml", "playbooks/**/*.yml", "roles/*/[!m]*/*.yml", "roles/*/templates/*"):
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            if path.parent.name == "templates":
                yield path, text
            else:
                for each in templates_of(yaml.safe_load(text)):
                    yield path, each


PARSED = [(path, jinja2.Environment().parse(text)) for path, text in all_templates()]


def test_nobody_reads_a_play_variable_by_its_name_alone():
    read = set()
    for path, parsed in PARSED:
        found = list(parsed.find_all(nodes.Name))
        own = {each.name for each in found if each.ctx == "store"}
        names = {each.name for each in found} - own
        read |= {(path.name, name) for name in names & play_variables().keys()}
    assert len(PARSED) > 1000 and read == set()


def test_what_is_looked_up_is_in_the_list_and_all_of_the_list_is_looked_up():
    asked = set()
    for _path, parsed in PARSED:
        for call in parsed.find_all(nodes.Call):
            words = [each.value for each in call.args if isinstance(each, nodes.Const)]
            if words[:1] == [LOOKUP]:
                asked.update(words[1:])
    # their names are looked up, as those of all that begin so
    by_beginning = {name for name in play_variables() if name.startswith("benchmark_")}
    assert asked == play_variables().keys() - by_beginning


def test_a_benchmark_varies_what_the_command_line_names(command_line):
    hosts = {"benchmark_seconds": 3, "benchmark_release": "/r", "benchmark_mode": "x"}
    command_line(benchmark_seconds=5, benchmark_record_bytes="{{ 7 }}", benchmark_release="/s")
    known = {**hosts, "benchmark_seconds": 5, "benchmark_record_bytes": 7}
    assert evaluated("kafka", "__kafka_benchmark_values", known) == {
        "seconds": 5,
        "record_bytes": 7,
    }
    command_line()
    assert evaluated("kafka", "__kafka_benchmark_values", hosts) == {}


@pytest.mark.parametrize(
    "given, expected",
    [({}, "none"), ({"broker": 2}, "2"), ({"broker": ""}, ""), ({"broker": None}, "None")],
)
def test_the_lookup_knows_nothing_but_the_command_line(command_line, given, expected):
    command_line(**given)
    text = "{{ lookup('" + LOOKUP + "', 'broker') | default('none') }}"
    told = Templar(loader=DataLoader(), variables={"broker": 9})
    assert str(told.template(trust_as_template(text))) == expected


BROKERS = {f"k{number}": number for number in (1, 2, 3)}


def brokers_found(folder, *options, playbook="rolling_restart", own=None):
    """host -> kafkaops_broker, after the phase that finds the broker, on the condition of the playbook."""
    plays = yaml.safe_load((ROOT / "playbooks" / f"{playbook}.yml").read_text(encoding="utf-8"))
    (phase,) = [
        each
        for each in plays
        if each.get("ansible.builtin.import_playbook", "").endswith("broker.yml")
    ]
    phase["ansible.builtin.import_playbook"] = str(
        ROOT / "playbooks" / phase["ansible.builtin.import_playbook"]
    )
    show = {
        "name": "Show",
        "hosts": "all",
        "gather_facts": False,
        "tasks": [{"ansible.builtin.debug": {"msg": "{{ inventory_hostname }}={{ text }}"}}],
        "vars": {"text": "{{ kafkaops_broker | default('none') }};"},
    }
    (folder / "play.yml").write_text(yaml.safe_dump([phase, show]))
    preflight = {
        "nodes": {"A": [{"host": host, "id": number} for host, number in BROKERS.items()]},
        "ids": {host: {"broker_id": number} for host, number in BROKERS.items()},
    }
    hosts = {
        host: {"kafkaops_preflight": preflight, **(own or {"broker": number})}
        for host, number in BROKERS.items()
    }
    groups = {"kafkaops_run": {"hosts": hosts, "vars": {"ansible_connection": "local"}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups}}))
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("ansible-playbook")),
            *("-i", str(folder / "hosts.yml"), str(folder / "play.yml"), *options),
        ],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    found = dict(
        word.rstrip(";").split("=") for word in said.split() if word[:1] == "k" and word[-1] == ";"
    )
    return found, said


def test_a_variable_of_hosts_is_not_the_broker_of_a_run(tmp_path):
    """Each host would take its own for the one that restarts: all would, one after the other."""
    found, said = brokers_found(tmp_path)
    assert found == dict.fromkeys(BROKERS, "none"), said


def test_the_broker_of_the_command_line_is_that_of_all_hosts(tmp_path):
    found, said = brokers_found(tmp_path, "-e", "broker=2")
    assert found == dict.fromkeys(BROKERS, "k2"), said


def test_a_broker_that_only_the_inventory_names_is_missing(tmp_path):
    found, said = brokers_found(tmp_path, playbook="scale_in")
    assert found == {} and "[broker.missing] k1, k2, k3" in said

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/phases/checked.yml: a run whose later plays would find no host does not end green."""

from __future__ import annotations

import pytest
import yaml

from tests.support.here_and_sent import CHECKOUT, played

CHECKED = CHECKOUT / "playbooks" / "phases" / "checked.yml"
NEEDS = ("-e", '{"preflight_needs_broker": true}')


def said(text):
    return " ".join(text.split())


@pytest.fixture
def looked_at(tmp_path):
    """A function that writes the inventory that the preflight leaves; `first`: the first broker of each cluster."""

    def written(first):
        hosts = dict.fromkeys(("z1", "z2", "k1"))
        members = ["z1", "z2", *first.values()]
        children = {
            "kafkaops_run": {
                "hosts": dict.fromkeys(members),
                "vars": {"kafkaops_preflight": {"cluster_first": first}},
            }
        }
        file = tmp_path / "hosts.yml"
        file.write_text(yaml.safe_dump({"all": {"hosts": hosts, "children": children}}))
        return file

    return written


@pytest.mark.parametrize("playbook", ["site", "status", "validate"])
def test_a_run_without_its_preflight_is_refused(playbook):
    skip = ("--skip-tags", "preflight", "--check")
    text = played("-i", "inventories/local", f"playbooks/{playbook}.yml", *skip, code=2)
    assert "[run.no_preflight] --limit= --skip-tags=preflight" in said(text)
    assert "Remedy: run it without --skip-tags" in said(text)


@pytest.mark.parametrize("text", [None, "", "all: {}", "all: {hosts: [kafka-1]}"])
@pytest.mark.parametrize("playbook", ["preflight", "stop", "aws_provision"])
def test_an_inventory_without_hosts_is_refused(tmp_path, playbook, text):
    """A path that is mistyped, a file that is empty or that Ansible cannot read."""
    file = tmp_path / "my-inventory.yml"
    if text is not None:
        file.write_text(text)
    text = played("-i", file, f"playbooks/{playbook}.yml", code=2)
    assert f"[run.no_hosts] -i {file}: no host is in this inventory, so nothing was done." in said(
        text
    )


def test_a_run_on_hosts_that_are_no_members_is_refused(tmp_path):
    text = played("-i", "one,two,", "--limit", "two", CHECKED, code=2)
    assert "[run.no_preflight] --limit=two" in said(text)


def test_who_asks_brokers_wants_one_of_them(looked_at):
    file = looked_at({})
    played("-i", file, "--limit", "z1,z2", CHECKED)
    text = played("-i", file, "--limit", "z1,z2", CHECKED, *NEEDS, code=2)
    assert "[run.no_broker] --limit=z1,z2: none of these hosts runs a broker" in said(text)
    assert "Remedy: name a broker of each cluster in --limit, too" in said(text)
    played("-i", looked_at({"c": "k1"}), CHECKED, *NEEDS)

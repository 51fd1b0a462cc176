# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a role's variables come to, evaluated by Ansible itself, without a host and without a run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar

ROLES = Path(__file__).resolve().parents[2] / "roles"
# What the roles jvm_service, java and preflight set before the products' roles are asked.
FACTS = {
    "inventory_hostname": "one",
    "ansible_playbook_python": "/usr/bin/python3",
    "java_effective_home": "/usr/lib/jvm/java",
    # of the versions in the roles' defaults
    "jvm_service_archives": {
        "kafka-3.9.2": {"name": "product-1"},
        "zookeeper-3.9.5": {"name": "product-1"},
    },
    "jvm_service_releases": {"product-1": "/opt/product/releases/product-1"},
    "kafkaops_preflight": {
        "ids": {"one": {"broker_id": 1, "myid": 1}},
        "servers": {
            "kafka": [
                {
                    "host": "one",
                    "id": 1,
                    "address": "one",
                    "client_port": 2181,
                    "peer_port": 2888,
                    "election_port": 3888,
                }
            ]
        },
        "quorums": {"one": None},
        "brokers": {"kafka": [{"host": "one", "id": 1, "listeners": []}]},
        "ensembles": {"kafka": {"state": "new", "unstarted": ["one"]}},
    },
}


def generation_of(role: str, given: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what a role stages, in one mapping: the generation, `secrets` by file, `secret_environment`."""
    staged = evaluated(role, f"__{role}_staging", given)
    hidden = staged["secrets"]
    return {
        **staged["generation"],
        "secrets": hidden["files"],
        "secret_environment": hidden["environment"],
    }


def evaluated(role: str, name: str, given: dict[str, Any] | None = None) -> Any:
    """Return the value of the variable `name` of a role, with `given` from an inventory."""
    templar = _templar(role, given)
    return templar.template(templar.available_variables[name])


def refusal(
    role: str, file: str, task: str, given: dict[str, Any], *, book: Path | None = None
) -> str:
    """Return what a task of a role refuses with, and "" where it lets pass.

    file: below the role's `tasks`; task: its name; given: what an inventory, earlier tasks and the play have set.
    book: a playbook with the task, in place of the role's file. Blocks and rescues are looked through.
    """
    templar = _templar(role, given)
    path = book or ROLES / role / "tasks" / file
    loaded = DataLoader().load_from_file(str(path), trusted_as_template=True)
    found = [each for each in _tasks(loaded) if each.get("name") == task]
    assert len(found) == 1, f"{len(found)} tasks of {path} are named {task}"
    templar.available_variables = {**templar.available_variables, **found[0].get("vars", {})}

    def holds(conditions: Any) -> bool:
        listed = conditions if isinstance(conditions, list) else [conditions]
        return all(templar.evaluate_conditional(each) for each in listed)

    if not holds(found[0].get("when", [])):
        return ""
    if "ansible.builtin.fail" in found[0]:
        return str(templar.template(found[0]["ansible.builtin.fail"]["msg"]))
    asserted = found[0]["ansible.builtin.assert"]
    return "" if holds(asserted["that"]) else str(templar.template(asserted["fail_msg"]))


def _tasks(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every task of plays, blocks and rescues."""
    for item in items:
        yield item
        for inner in ("pre_tasks", "tasks", "post_tasks", "block", "rescue", "always"):
            yield from _tasks(item.get(inner) or [])


def _templar(role: str, given: dict[str, Any] | None) -> Templar:
    """Ansible's own, with the variables of a role and of jvm_service."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # another test has done it before
        init_plugin_loader()
    loader = DataLoader()
    variables: dict[str, Any] = {"role_path": str(ROLES / role), **FACTS}
    # Templates are trusted only as text that was loaded, so `given` cannot be one.
    files = [ROLES / "jvm_service" / "defaults", ROLES / role / "defaults"]
    for path in [*files, ROLES / "jvm_service" / "vars", ROLES / role / "vars"]:
        if (path / "main.yml").is_file():
            variables |= loader.load_from_file(str(path / "main.yml"), trusted_as_template=True)
        if path == files[-1]:
            variables |= given or {}
    loader.set_basedir(str(ROLES / role))
    return Templar(loader, variables)

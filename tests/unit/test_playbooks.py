# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that every task of roles and playbooks keeps; read from the YAML, so that a new task keeps them, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/**/*.yml")])
BLOCKS = ("block", "rescue", "always")
LISTS = (*BLOCKS, "tasks", "pre_tasks", "post_tasks", "handlers")
# They look at all clusters of the inventory at once, and stand below no condition of one cluster.
ONCE_FOR_ALL = {
    "roles/preflight/tasks/main.yml",
    "roles/jvm_service/tasks/obtain.yml",
    "roles/kafka/tasks/obtain_plugins.yml",
    "roles/flow_validation/tasks/fetch.yml",
    "playbooks/phases/lock.yml",
    "playbooks/phases/unlock.yml",
    "playbooks/start.yml",
    "playbooks/phases/broker.yml",
    "playbooks/phases/one_broker.yml",
    "playbooks/teardown.yml",
}


def tasks_of(path):
    """Yield (where, task, vars) of every task and block of a file; vars with those of the blocks around."""

    def walk(items, around):
        for item in items or []:
            variables = {**around, **(item.get("vars") or {})}
            yield f"{path.relative_to(ROOT)}: {item.get('name')}", item, variables
            for key in LISTS:
                yield from walk(item.get(key), variables)

    yield from walk(yaml.safe_load(path.read_text(encoding="utf-8")), {})


ALL = [task for path in FILES for task in tasks_of(path)]


def test_a_task_on_the_controller_never_becomes_another_user():
    """An inventory's `ansible_become: true` in `all` holds for localhost, too, and wins over the keyword."""
    delegated = [
        (where, variables)
        for where, task, variables in ALL
        if re.search(r"kafka_admin_host|localhost", str(task.get("delegate_to", "")))
        or task.get("local_action")
    ]
    assert len(delegated) > 5
    assert [
        where for where, variables in delegated if variables.get("ansible_become") is not False
    ] == []


def test_what_is_done_once_for_each_cluster_is_not_done_once_for_all():
    """run_once takes the first host of the play: of two clusters, the second would be left out in silence."""
    once = {where.partition(":")[0] for where, task, _variables in ALL if "run_once" in task}
    assert once - ONCE_FOR_ALL == set()


STARTS_OR_STOPS = {
    *("start.yml", "start_together.yml", "stop.yml", "retire.yml", "teardown.yml", "turn.yml"),
    "resize.yml",
}


def parts_of(path):
    """Yield (what, tags) of a playbook in its order: `lock`, `unlock`, or `acts` where it starts or stops something."""
    for play in yaml.safe_load(path.read_text(encoding="utf-8")):
        imported = play.get("ansible.builtin.import_playbook")
        tags = frozenset(play.get("tags") or ())
        if imported in ("phases/lock.yml", "phases/unlock.yml"):
            yield Path(imported).stem, tags
        elif imported and Path(imported).parent.name == "phases":
            inner = list(parts_of(ROOT / "playbooks" / imported))
            yield from [("acts", tags | more) for what, more in inner if what == "acts"]
        elif imported is None:
            included = (
                task.get("ansible.builtin.include_role") or {} for task in play.get("tasks") or ()
            )
            if any(each.get("tasks_from") in STARTS_OR_STOPS for each in included):
                yield "acts", tags


def test_what_starts_or_stops_something_does_it_between_lock_and_unlock():
    acting = set()
    for path in sorted(ROOT.glob("playbooks/*.yml")):
        parts = list(parts_of(path))
        whats = [what for what, _tags in parts]
        if "acts" not in whats:
            assert whats == [], path
            continue
        acting.add(path.stem)
        assert (whats[0], whats[-1]) == ("lock", "unlock"), path
        assert set(whats[1:-1]) == {"acts"}, path
        # whichever tag makes it act makes it lock
        (tags,) = {tags for what, tags in parts if what != "acts"}
        assert all(more == tags for what, more in parts if what == "acts"), path
    assert {"site", "start", "stop", "teardown", "rolling_restart", "rolling_upgrade"} <= acting


@pytest.mark.parametrize("product", ["zookeeper", "kafka"])
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"a": False, "b": False}, "100%"),
        ({"a": False, "b": True}, 1),
        ({"a": False}, 1),
        (None, 1),
    ],
    ids=["nothing pending", "one pending", "one unknown", "no facts at all"],
)
def test_hosts_take_turns_unless_it_is_known_that_nothing_is_pending(product, facts, expected):
    plays = DataLoader().load_from_file(
        str(ROOT / "playbooks" / "phases" / "run.yml"), trusted_as_template=True
    )
    (serial,) = [
        play["serial"] for play in plays if play.get("hosts") == f"kafkaops_{product}_turns"
    ]
    variables = {"groups": {f"kafkaops_{product}_turns": ["a", "b"]}}
    if facts is not None:
        known = {
            name: {f"{product}_staged": {"restart_pending": value}} for name, value in facts.items()
        }
        variables["hostvars"] = {"a": {}, "b": {}, **known}
    found = Templar(loader=DataLoader(), variables=variables).template(serial)
    assert found == expected

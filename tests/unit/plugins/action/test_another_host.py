# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules on another host than the task's own: it is reached as a task with delegate_to reaches it."""

from __future__ import annotations

import json
import sys

import pytest
import yaml

from tests.support.here_and_sent import played

# An action of a test: how its `host` is reached, and who answers there.
REACHING = """
import sys
from ansible.plugins.action import ActionBase
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.another_host import AnotherHost


class ActionModule(ActionBase):
    _VALID_ARGS = frozenset(("host",))

    def run(self, tmp=None, task_vars=None):
        there = AnotherHost(self, self._task.args["host"], sys.executable, task_vars)
        found = {"here": there.is_controller(), "by": there._kind()}
        if found["by"] == "far":
            found["answer"] = there.connected()("ansible.builtin.ping", {"data": there.name})
        return found
"""
HOSTS = ("admin", "in-no-inventory")
FAR = {"connection": "{{ way }}"}
# Where a play says by which connection hosts are reached that say nothing themselves.
KEYWORDS = {
    "play": (FAR, {}, {}),
    "block": ({}, FAR, {}),
    "task": ({}, {}, FAR),
    "nowhere": ({}, {}, {}),
}


@pytest.fixture(scope="module", name="reached")
def fixture_reached(tmp_path_factory):
    """(keyword, host) -> what the action has returned."""
    place = tmp_path_factory.mktemp("reached")
    inventory = {
        "all": {
            "hosts": {"broker": {"ansible_connection": "local"}, "admin": {}},
            "vars": {
                "way": "far",
                "far_told": str(place / "told"),
                "ansible_python_interpreter": sys.executable,
            },
        }
    }
    plays = [_play(place, keyword) for keyword in KEYWORDS]
    (place / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    (place / "plays.yml").write_text(yaml.safe_dump(plays), encoding="utf-8")
    (place / "actions").mkdir()
    (place / "actions" / "reaching.py").write_text(REACHING, encoding="utf-8")
    actions = str(place / "actions")
    played("-i", place / "hosts.yml", place / "plays.yml", ANSIBLE_ACTION_PLUGINS=actions)
    return {
        (keyword, host): found
        for keyword in KEYWORDS
        for host, found in json.loads((place / keyword).read_text(encoding="utf-8")).items()
    }


def _play(place, keyword):
    """Reach each host, with the keyword there; what was found goes into a file of the keyword's name."""
    of_play, of_block, of_task = KEYWORDS[keyword]
    tasks = [
        {
            "name": f"Reach {host}",
            "reaching": {"host": host},
            "register": f"found_{number}",
            "ignore_errors": True,
            **of_task,
        }
        for number, host in enumerate(HOSTS)
    ]
    told = ", ".join(f"'{host}': found_{number}" for number, host in enumerate(HOSTS))
    last = {
        "name": "Hand over",
        "ansible.builtin.copy": {
            "dest": str(place / keyword),
            "content": "{{ {%s} | to_json }}" % told,
        },
    }
    block = {"name": "Both", "block": tasks, **of_block}
    return {"hosts": "broker", "gather_facts": False, "tasks": [block, last], **of_play}


@pytest.mark.parametrize("keyword", KEYWORDS)
@pytest.mark.parametrize("host", HOSTS)
def test_a_host_without_a_connection_of_its_own_has_that_of_the_play(reached, host, keyword):
    """And not that of the task's own host; ssh, by default. Who is in no inventory has the variables of all hosts."""
    found = reached[keyword, host]
    by = "ssh" if keyword == "nowhere" else "far"
    assert (found.get("by"), found.get("here")) == (by, False), found
    assert by == "ssh" or found["answer"]["ping"] == host, found

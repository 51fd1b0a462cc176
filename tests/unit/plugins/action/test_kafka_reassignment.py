# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which run a module that moves replicas or changes voters belongs to: told where it sees that process, only there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[4]
# Stands for the module: says what it was told.
MODULE = """
from ansible.module_utils.basic import AnsibleModule
options = {name: dict(type="raw") for name in ("run", "lock", "progress", "drain")}
module = AnsibleModule(argument_spec=options)
module.exit_json(told=module.params["run"])
"""


@pytest.mark.parametrize("module", ["kafka_reassignment", "kafka_voters"])
def test_it_is_told_the_process_of_the_playbook_unless_it_is_to_outlive_it(tmp_path, module):
    collection = tmp_path / "ansible_collections" / "kafkaops" / "cluster"
    collection.mkdir(parents=True)
    for name in ("meta", "galaxy.yml"):
        (collection / name).symlink_to(CHECKOUT / name)
    (collection / "plugins" / "modules").mkdir(parents=True)
    (collection / "plugins" / "modules" / f"{module}.py").write_text(MODULE)
    for name in ("action", "module_utils"):
        (collection / "plugins" / name).symlink_to(CHECKOUT / "plugins" / name)
    tasks = [
        {f"kafkaops.cluster.{module}": {"drain": 1}, "register": "here"},
        {
            f"kafkaops.cluster.{module}": {"drain": 1},
            "register": "apart",
            "async": 60,
            "poll": 1,
        },
        {
            "ansible.builtin.copy": {
                "content": "{{ {'here': here.told, 'apart': apart.told} | to_json }}",
                "dest": str(tmp_path / "told.json"),
            }
        },
    ]
    play = {"hosts": "localhost", "gather_facts": False, "connection": "local", "tasks": tasks}
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps([play]))
    kept = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    with subprocess.Popen(
        [
            *(str(Path(sys.executable).with_name("ansible-playbook")), str(playbook)),
            *("-i", "localhost,", "-e", f"ansible_python_interpreter={sys.executable}"),
        ],
        env={
            **kept,
            "ANSIBLE_COLLECTIONS_PATH": str(tmp_path),
            "ANSIBLE_HOME": str(tmp_path / "home"),
        },
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        output, _nothing = process.communicate(timeout=120)
    assert process.returncode == 0, output
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["here"]["pid"] == process.pid and told["here"]["start_ticks"] > 0
    assert told["apart"] is None

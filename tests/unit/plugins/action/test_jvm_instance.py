# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the action answers itself makes no difference: the same tasks here and by the module."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[4]
SECRET = "correct-horse"
SETTINGS = {
    "name": "one",
    "manager": "supervisor",
    **{f"{each}_dir": "{{ place }}/%s" % each for each in ("config", "state", "log", "supervisor")},
}
STAGED = {
    **SETTINGS,
    "generation": {
        "release": "{{ place }}/kafka_2.13-3.9.2",
        "java_home": "/usr/lib/java",
        "main_class": "Main",
        "classpath": "{{ 'libs' }}/*",
        # values and a key that are no texts
        "environment": {"THREADS": "{{ 4 + 4 }}", 1: True},
        "files": {"server.properties": "{{ 'broker.id=' ~ 1 }}\n"},
    },
    "secrets": {"files": {"server.properties": f"password={SECRET}\n"}},
}
TASKS = {
    "first": STAGED,
    "second": STAGED,
    "look": {**SETTINGS, "state": "probe", "explain": True},
    "no_room": {**STAGED, "config_dir": "/proc/none"},
}


def play(results):
    """Each task, and all that they return in a file for each host."""
    called = [
        {
            "name": name,
            "kafkaops.cluster.jvm_instance": arguments,
            "register": name,
            "ignore_errors": True,
        }
        for name, arguments in TASKS.items()
    ]
    handed_over = {
        "dest": f"{results}/{{{{ inventory_hostname }}}}.json",
        "content": "{{ {%s} | to_json }}" % ", ".join(f"'{name}': {name}" for name in TASKS),
    }
    last = {
        "name": "Hand over",
        "ansible.builtin.copy": handed_over,
        "check_mode": False,
        "diff": False,
        "vars": {"ansible_shell_executable": "/bin/sh"},
    }
    return {"hosts": "all", "gather_facts": False, "tasks": [*called, last]}


@pytest.mark.parametrize("options", [(), ("--check",)], ids=["done", "checked"])
def test_the_action_returns_what_the_module_returns(tmp_path, options):
    # another path is another Python to the action
    other = tmp_path / "python"
    other.symlink_to(os.path.realpath(sys.executable))
    hosts = {
        "here": {
            "ansible_python_interpreter": sys.executable,
            "place": f"{tmp_path}/here",
            # a module would fail
            "ansible_shell_executable": "/nonexistent",
        },
        "sent": {"ansible_python_interpreter": str(other), "place": f"{tmp_path}/sent"},
    }
    inventory = {"all": {"hosts": hosts, "vars": {"ansible_connection": "local"}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play(tmp_path)]), encoding="utf-8")
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("ansible-playbook")),
            *("-i", str(tmp_path / "hosts.yml"), str(tmp_path / "play.yml"), "--diff", *options),
        ],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert SECRET not in done.stdout
    texts = {name: (tmp_path / f"{name}.json").read_text(encoding="utf-8") for name in hosts}
    here = json.loads(texts["here"].replace(hosts["here"]["place"], hosts["sent"]["place"]))
    sent = json.loads(texts["sent"])
    for each in (*here.values(), *sent.values()):
        each.pop("fingerprint", None)  # the directory is part of what it stands for
    assert here == sent
    assert here["first"]["changed"] and here["second"]["changed"] == bool(options)
    assert "broker.id=1" in json.dumps(here["first"]["diff"])
    assert not options or here["no_room"]["changed"]
    assert options or here["no_room"]["failed"]

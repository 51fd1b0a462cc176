# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same tasks on a host where an action answers itself, and on one to which it sends the module."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
HERE, SENT = "here", "sent"


def played(*arguments, code=0, **environment):
    """Run ansible-playbook in the checkout, to end with `code`; return its output. It knows the connection `far`."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), *map(str, arguments)],
        cwd=CHECKOUT,
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_CONNECTION_PLUGINS": str(CHECKOUT / "tests/support/connection"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def both(
    place, module, tasks, *options, unsendable=True, environment=None, beside=None, **variables
):
    """Run tasks (name -> arguments of `module`) on both hosts; returns (output, results here, results sent).

    `environment` is that of the play; `beside`: other hosts of the inventory, with their variables, which may have
    the connection `far`.

    Each host has a variable `place`, a directory of its own below `place`; `variables` are name -> value.
    Where `unsendable`, a module would fail on the host that answers itself.
    """
    # the same Python, and another one to the action
    other = place / "python"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    other.chmod(0o755)
    hosts = {
        HERE: {"ansible_python_interpreter": sys.executable, "place": f"{place}/{HERE}"},
        SENT: {"ansible_python_interpreter": str(other), "place": f"{place}/{SENT}"},
    }
    if unsendable:
        hosts[HERE]["ansible_shell_executable"] = "/nonexistent"
    inventory = {
        "all": {
            "hosts": {**hosts, **(beside or {})},
            "vars": {"ansible_connection": "local", **variables},
        }
    }
    (place / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    (place / "play.yml").write_text(
        yaml.safe_dump([_play(place, module, tasks, environment or {})]), encoding="utf-8"
    )
    said = played("-i", place / "hosts.yml", place / "play.yml", "--diff", *options)
    texts = {name: (place / f"{name}.json").read_text(encoding="utf-8") for name in hosts}
    here = json.loads(texts[HERE].replace(hosts[HERE]["place"], hosts[SENT]["place"]))
    return said, here, json.loads(texts[SENT])


def _play(results, module, tasks, environment):
    """Each task, and all that they return in a file for each host."""
    called = [
        {"name": name, module: arguments, "register": name, "ignore_errors": True}
        for name, arguments in tasks.items()
    ]
    handed_over = {
        "dest": f"{results}/{{{{ inventory_hostname }}}}.json",
        "content": "{{ {%s} | to_json }}" % ", ".join(f"'{name}': {name}" for name in tasks),
    }
    last = {
        "name": "Hand over",
        "ansible.builtin.copy": handed_over,
        "check_mode": False,
        "diff": False,
        "vars": {"ansible_shell_executable": "/bin/sh"},
    }
    return {
        "hosts": f"{HERE}:{SENT}",
        "gather_facts": False,
        "environment": environment,
        "tasks": [*called, last],
    }

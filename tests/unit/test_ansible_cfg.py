# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible.cfg of a checkout sets adds to Ansible's own defaults."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import yaml
from ansible.plugins.connection import ssh

ROOT = Path(__file__).resolve().parents[2]


def test_a_host_that_says_nothing_more_is_given_up_and_else_ssh_is_as_ever():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "ansible.cfg")
    ours = parser["ssh_connection"]["ssh_args"]
    default = yaml.safe_load(ssh.DOCUMENTATION)["options"]["ssh_args"]["default"]
    assert ours.startswith(f"{default} ")
    seconds = 1
    for name in ("ServerAliveInterval", "ServerAliveCountMax"):
        (found,) = re.findall(rf"-o {name}=(\d+)", ours)
        seconds *= int(found)
    assert 60 <= seconds <= 300
    assert ours in (ROOT / "docs" / "changes.md").read_text(encoding="utf-8")

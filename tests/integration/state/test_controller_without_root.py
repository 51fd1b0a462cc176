# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""state.yml, export.yml and lag.yml by a user without root and sudo, with an empty cache and `become` for all.

What the hosts let that user become is theirs: they have a sudo of their own, the controller has none.
"""

from __future__ import annotations

import os

import pytest
import yaml

from tests.support.adopted import Played, hosts_of
from tests.support.stranger import Stranger

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else"),
]
# As sudo is called: options, then the shell with its command.
SUDO = '#!/bin/sh\nwhile [ "$1" != /bin/sh ]; do shift; done\nexec "$@"\n'


@pytest.fixture
def stranger():
    """The user, with a home and a copy of the checkout."""
    user = Stranger()
    try:
        yield user
    finally:
        user.close()


def test_declared_state_is_applied_and_exported(on_kraft, stranger):
    sudo = stranger.checkout / "sudo-of-the-hosts"
    sudo.write_text(SUDO)
    sudo.chmod(0o755)
    of_hosts = {"ansible_connection": "local", "ansible_become_exe": str(sudo)}
    everywhere = {
        "ansible_become": True,
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        "kafka_cluster_name": "strange",
        "kafka_topics": [{"name": "strange", "partitions": 1, "retention": "7d"}],
        "kafka_acls": [{"principal": "strange", "operations": "read", "topic": "strange"}],
        "kafka_quotas": [{"user": "strange", "limits": {"producer_byte_rate": 4096}}],
    }
    group = {"hosts": hosts_of(on_kraft), "vars": of_hosts}
    inventory = {"all": {"vars": everywhere, "children": {"kafka": group}}}
    (stranger.checkout / "strange.yml").write_text(yaml.safe_dump(inventory))
    probe = stranger.checkout / "probe.yml"
    task = {"ansible.builtin.command": "id"}
    probe.write_text(
        yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}])
    )
    with_inventory = ("-i", "strange.yml")
    assert "sudo" in stranger.play("probe.yml", *with_inventory, code=2), "become is for all"

    def play(playbook, *arguments):
        return Played(0, stranger.play(f"playbooks/{playbook}", *with_inventory, *arguments))

    assert not (stranger.home / ".cache" / "kafkaops").exists()
    told = play("state.yml", "--check", "--diff")
    assert told.lines["topics"].startswith("1 would change"), told.text
    assert play("state.yml").lines["rights"].startswith("1 changed")
    assert play("state.yml").changed == 0
    play("export.yml", "-e", f"export_to={stranger.home}")
    (written,) = stranger.home.glob("*-state.yml")
    assert written.stat().st_uid == stranger.uid
    found = yaml.safe_load(written.read_text())
    assert "strange" in [each["name"] for each in found["kafka_topics"]]
    assert play("lag.yml").changed == 0
    foreign = [path for path in stranger.home.rglob("*") if path.lstat().st_uid != stranger.uid]
    assert {path.name for path in foreign} <= {"strange.yml", "probe.yml", sudo.name}

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which names the role host_baseline writes into /etc/hosts."""

from __future__ import annotations

import pathlib

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

ROOT = pathlib.Path(__file__).resolve().parents[3]
TEMPLATE = ROOT / "roles/host_baseline/templates/hosts.j2"


def test_all_members_with_an_address_have_a_line():
    variables = {
        "groups": {
            "kafka": ["kafka-1"],
            "zookeeper": ["zk-1"],
            "controllers": ["c-1", "kafka-1", "x"],
        },
        "hostvars": {
            "kafka-1": {"kafka_address": "192.0.2.1", "ansible_host": "203.0.113.1"},
            "zk-1": {"ansible_host": "192.0.2.2"},
            "c-1": {"ansible_host": "192.0.2.3", "kafka_metadata": "kraft"},
            # only in KRaft mode a member: any other group may be named controllers
            "x": {"ansible_host": "192.0.2.4"},
        },
        "host_baseline_hosts": {"registry.example.org": "192.0.2.7"},
    }
    templar = Templar(loader=DataLoader(), variables=variables)
    # Without the lookup, Ansible keeps the backslash of a line's end in a text.
    text = templar.template(_trusted()).replace("\\n", "\n").strip()
    assert text.split("\n") == [
        "192.0.2.3 c-1",
        "192.0.2.1 kafka-1",
        "192.0.2.2 zk-1",
        "192.0.2.7 registry.example.org",
    ]


def _trusted():
    text = TEMPLATE.read_text(encoding="utf-8")
    try:
        from ansible.template import trust_as_template
    except ImportError:  # an ansible-core that trusts all
        return text
    return trust_as_template(text)

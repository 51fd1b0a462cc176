# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Through ansible-playbook, as people use it: module_defaults, check mode, diff, ansible-doc."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]

PLAY = """
- hosts: localhost
  gather_facts: false
  connection: local
  module_defaults:
    group/kafkaops.cluster.kafka:
      bootstrap_servers: {servers}
  tasks:
    - name: Topics
      kafkaops.cluster.kafka_topics:
        topics:
          - name: {name}
            partitions: 2
            replication_factor: 3
            retention: 7d
"""


def ansible(program, *arguments):
    """Run one of Ansible's programs of this environment in the checkout."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *arguments],
        cwd=CHECKOUT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_check_run_again(cluster, name, tmp_path):
    """Check shows the diff, the run does it, the second run changes nothing."""
    book = tmp_path / "topics.yml"
    book.write_text(PLAY.format(servers=cluster.bootstrap_servers, name=name))
    common = ("-i", "localhost,", "-e", f"ansible_python_interpreter={sys.executable}", str(book))
    code, text = ansible("ansible-playbook", "--check", "--diff", *common)
    assert code == 0 and "changed=1" in text
    assert re.search(rf"^\+ *{name}:", text, re.MULTILINE) and "retention.ms: '604800000'" in text
    code, text = ansible("ansible-playbook", *common)
    assert code == 0 and "changed=1" in text
    code, text = ansible("ansible-playbook", "--diff", *common)
    assert code == 0 and "changed=0" in text and f"{name}:" not in text


@pytest.mark.parametrize("module", ["kafka_topics", "kafka_cluster_info"])
def test_documentation_renders(module):
    """Every option and return value, the fragments included."""
    code, text = ansible("ansible-doc", f"kafkaops.cluster.{module}")
    assert code == 0, text
    for words in ("bootstrap_servers", "sasl_password", "EXAMPLES", "RETURN VALUES", "check_mode"):
        assert words in text

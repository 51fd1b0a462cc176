# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it: parameters in, JSON out, nothing touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import yaml

from ansible_collections.kafkaops.cluster.plugins.modules import host_info

RUNNER = """
import sys
sys.path.insert(0, "tests/unit")
import conftest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args
import json
with patch_module_args(json.loads(sys.argv[1])):
    from ansible_collections.kafkaops.cluster.plugins.modules import host_info
    host_info.main()
"""


def run(arguments):
    """(exit code, JSON) of the module."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, json.dumps(arguments)],
        stdout=subprocess.PIPE,
        check=False,
        cwd=os.path.join(os.path.dirname(__file__), *[".."] * 4),
    )
    return done.returncode, json.loads(done.stdout.decode().strip().splitlines()[-1])


def test_an_empty_host(tmp_path):
    code, answer = run(
        {
            "zookeeper": {
                "instance": "z",
                "config_dir": str(tmp_path / "conf"),
                "started": str(tmp_path / "started.json"),
                "data_dir": str(tmp_path / "data"),
                "data_log_dir": str(tmp_path / "data"),
            },
            "names": ["localhost"],
        }
    )
    assert code == 0
    assert answer["changed"] is False
    assert answer["facts"]["zookeeper"]["data"]["has_data"] is False
    assert answer["facts"]["kafka"] is None
    assert list(answer["facts"]["names"]) == ["localhost"]
    assert os.listdir(tmp_path) == []


def test_what_a_broker_needs_is_required():
    code, answer = run({"kafka": {"instance": "k"}})
    assert code == 1
    assert "log_dirs" in answer["msg"]


def test_documented_returns_are_what_comes_back():
    code, answer = run({})
    assert code == 0
    documented = yaml.safe_load(host_info.RETURN)["facts"]["sample"]
    assert set(documented) == set(answer["facts"])

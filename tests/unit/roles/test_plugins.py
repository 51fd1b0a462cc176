# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plug-ins: on the class path by their digest, obtained by Ansible itself or refused."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.generation import (
    Generation,
    reasons,
)
from tests.support.role_variables import evaluated

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("release", "java_home", "main_class", "classpath")


def staged(*plugins):
    """The generation of a broker with these plug-ins."""
    found = evaluated("kafka", "__kafka_generation", {"kafka_plugins": list(plugins)})
    return Generation(**{name: found[name] for name in NAMES})


def test_class_path():
    assert staged().classpath == "libs/*"
    first, second = ({"name": f"my {n}", "src": "/x", "sha512": f"{n}F" * 64} for n in "12")
    assert staged(first, second).classpath == (
        f"libs/*:/opt/kafka/plugins/{'1f' * 64}/my_1.jar:/opt/kafka/plugins/{'2f' * 64}/my_2.jar"
    )


def test_another_file_under_the_same_name_is_a_reason_to_restart():
    before = staged({"name": "mine", "src": "/x", "sha512": "1" * 128})
    after = staged({"name": "mine", "src": "/x", "sha512": "2" * 128})
    (reason,) = reasons(before.meaning(), after.meaning())
    assert reason.startswith("classpath ")


@pytest.fixture
def obtain(tmp_path):
    """Run the controller's part for two brokers, of which one has the plug-in `jar`."""

    def run(jar, sha512):
        plugins = [{"name": "mine", "src": str(jar), "sha512": sha512}]
        inventory = {"kafka": {"hosts": {"one": {}, "two": {"kafka_plugins": plugins}}}}
        (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory))
        role = {"name": "kafkaops.cluster.kafka", "tasks_from": "obtain_plugins.yml"}
        play = {"hosts": "kafka", "gather_facts": False, "tasks": [{"include_role": role}]}
        (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
        return subprocess.run(
            [
                Path(sys.executable).with_name("ansible-playbook"),
                *("-i", tmp_path / "hosts.yml", "-e", f"kafkaops_cache={tmp_path}/cache"),
                tmp_path / "play.yml",
            ],
            env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_file_of_the_controller_is_obtained_and_a_wrong_digest_refused(obtain, tmp_path):
    jar = tmp_path / "a plug-in.jar"
    jar.write_bytes(b"classes")
    digest = hashlib.sha512(b"classes").hexdigest()
    done = obtain(jar, digest.upper())
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "cache" / "plugins" / digest / "mine.jar").read_bytes() == b"classes"
    done = obtain(jar, digest)
    assert "changed=0" in done.stdout and "failed=0" in done.stdout, done.stdout
    wrong = "0" * 128
    done = obtain(jar, wrong)
    assert done.returncode != 0 and wrong in done.stdout and digest in done.stdout, done.stdout
    assert not list((tmp_path / "cache" / "plugins" / wrong).iterdir())

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is refused for the controller's own sake."""

import pathlib

import pytest
import yaml

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.on_controller import (
    OLDEST,
    not_linux,
    too_old,
)

RUNTIME = pathlib.Path(__file__).resolve().parents[5] / "meta" / "runtime.yml"


@pytest.mark.parametrize("version", ["2.19.0b1", "2.19.14", "2.20.10", "2.100.0", "3.0"])
def test_an_ansible_that_fits(version):
    assert too_old(version) is None


@pytest.mark.parametrize("version", ["2.9.27", "2.18.19", "2.18.0rc1"])
def test_an_ansible_that_is_too_old_is_refused_with_the_remedy(version):
    assert too_old(version, "/usr/bin/python3.11").line() == (
        f"[controller.ansible_core] the controller has ansible-core {version}, and this collection needs"
        " 2.19 or newer. Remedy: install it there: /usr/bin/python3.11 -m pip install 'ansible-core>=2.19'."
    )


def test_it_is_the_version_that_the_collection_announces():
    wanted = yaml.safe_load(RUNTIME.read_text())["requires_ansible"]
    assert wanted == f">={'.'.join(map(str, OLDEST))}.0"


@pytest.mark.parametrize(
    "platform, refused", [("linux", False), ("darwin", True), ("freebsd14", True)]
)
def test_a_controller_that_does_not_run_linux_is_refused(platform, refused):
    problem = not_linux(platform)
    assert (problem is not None) is refused
    assert not problem or problem.line().startswith(
        f"[controller.system] the controller runs {platform}"
    )

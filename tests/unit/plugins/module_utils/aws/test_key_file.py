# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The private key's file, with the real ssh-keygen."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws import key_file

pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen here")


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_key_is_made_for_its_owner_alone(tmp_path):
    path = tmp_path / "keys" / "orders.pem"
    assert not key_file.look(str(path)).exists
    key_file.make(str(path), "orders")
    found = key_file.look(str(path))
    assert (found.exists, found.mode, found.ours, found.fault) == (True, 0o600, True, "")
    assert found.public.startswith("ssh-ed25519 ") and mode(path.parent) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["orders.pem"]


def test_a_key_that_others_may_read_is_read_all_the_same_and_mended(tmp_path):
    path = tmp_path / "key"
    key_file.make(str(path), "x")
    public = key_file.look(str(path)).public
    path.chmod(0o644)
    found = key_file.look(str(path))
    assert (found.mode, found.public, found.fault) == (0o644, public, "")
    key_file.mend(str(path))
    assert mode(path) == 0o600 and key_file.look(str(path)).public == public


def test_what_is_no_key_is_told(tmp_path):
    path = tmp_path / "key"
    path.write_text("not a key\n")
    assert key_file.look(str(path)).fault
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(tmp_path / "locked")]
    subprocess.run(command, check=True)
    found = key_file.look(str(tmp_path / "locked"))
    assert "passphrase" in found.fault and not found.public
    assert "secret" not in found.fault

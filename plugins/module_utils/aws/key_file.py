# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of the private key: read, made, and its mode mended, by ssh's own ssh-keygen.

Private to this collection. The key is made here and its public half handed to EC2, so that a run that
is killed in between loses nothing, and the private half never travels.
"""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from typing import List

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import KEY_MODES, KeyFile
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import write_atomically
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

SECONDS = 30.0


def look(path: str) -> KeyFile:
    """The file as it is; what cannot be read is its `fault`."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return KeyFile(path)
    except OSError as error:
        return KeyFile(path, exists=True, mode=KEY_MODES[0], fault=str(error))
    mode, ours = stat.S_IMODE(found.st_mode), found.st_uid == os.geteuid()
    try:
        public, fault = public_half(path), ""
    except (OSError, ValueError, AdminError) as error:
        public, fault = "", str(error)
    return KeyFile(path, True, mode, ours, public, fault)


def public_half(path: str) -> str:
    """The public half of a private key, in OpenSSH's form. Raises ValueError with ssh-keygen's words.

    ssh-keygen reads no file that others may read, so it gets a copy of its own.
    """
    with tempfile.TemporaryDirectory(prefix="kafkaops-key-") as place:
        copy = os.path.join(place, "key")
        with open(path, "rb") as source:
            write_atomically(copy, source.read(), mode=KEY_MODES[0])
        return _keygen(["-y", "-P", "", "-f", copy]).strip()


def make(path: str, comment: str) -> None:
    """Make a private key at `path`, mode 0600; its directory is made with mode 0700."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kafkaops-key-") as place:
        made = os.path.join(place, "key")
        _keygen(["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", made])
        with open(made, "rb") as source:
            write_atomically(path, source.read(), mode=KEY_MODES[0])


def mend(path: str) -> None:
    """Let nobody but the owner read the key."""
    os.chmod(path, KEY_MODES[0])


def _keygen(arguments: List[str]) -> str:
    try:
        done = subprocess.run(
            ["ssh-keygen", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise AdminError(
            Problem(
                "aws.key_file",
                "ssh-keygen is not installed on this machine",
                "install OpenSSH's client, which Ansible needs, too",
            )
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"ssh-keygen did not end within {SECONDS:g} s") from error
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip() or "ssh-keygen failed").splitlines()
        raise ValueError(words[-1])
    return done.stdout

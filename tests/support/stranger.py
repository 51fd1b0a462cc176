# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller that nobody prepared: a user without sudo, in a mount namespace with names of its own.

The account exists only in there, as do the names of the hosts, and the way to the Python environment
where that lies below somebody's closed home directory. Needs root, to become that user. What the user has
started ends with `close`. Run as a program, this removes hosts that a killed test has left.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support import node_containers
from tests.support.node_containers import IMAGE_JAVA, Node
from tests.support.outside import wait_until

CHECKOUT = Path(__file__).resolve().parents[2]
NETWORK = "ko-stranger"
HOSTS = {
    f"{kind}{number}.example.org": f"172.29.79.{base + number}"
    for kind, base in (("zk", 10), ("kafka", 20))
    for number in (1, 2, 3)
}
# What a machine may need to reach its package registries; nothing else is handed on.
NETWORK_VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir")
# Nothing listens there: whoever asks the network fails at once.
OFFLINE = {"http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1"}

# $1 state, $2 uid, $3 "names" or not; $4... directories to keep open; then -- and the command
ENTER = r"""
set -eu
state=$1 uid=$2 names=$3
shift 3
mount --bind "$state/passwd" /etc/passwd
if [ "$names" = names ]; then mount --bind "$state/hosts" /etc/hosts; fi
keep=
number=0
while [ "$1" != -- ]; do
    number=$((number + 1))
    mkdir -p "$state/kept/$number"
    mount --bind "$1" "$state/kept/$number"
    keep="$keep $1"
    shift
done
shift
number=0
for path in $keep; do
    number=$((number + 1))
    closed= part=$path
    while [ "$part" != / ]; do
        part=$(dirname "$part")
        case $(stat -c %A "$part") in *x | *t) ;; *) closed=$part ;; esac
    done
    [ -z "$closed" ] || mount -t tmpfs -o mode=0755 tmpfs "$closed"
    mkdir -p "$path"
    mount --bind "$state/kept/$number" "$path"
done
exec setpriv --reuid "$uid" --regid "$uid" --clear-groups --no-new-privs "$@"
"""


def container(name):
    """Return the name of a host's container."""
    return f"ko-{name.partition('.')[0]}"


def start_hosts(key):
    """Start a Debian with systemd for each name, with the account `deploy` that may use sudo and has `key`."""
    nodes = [Node(container(name), ip, IMAGE_JAVA, name, HOSTS) for name, ip in HOSTS.items()]
    node_containers.create(nodes, NETWORK, "172.29.79.0/24")
    node_containers.wait_until_booted([node.name for node in nodes])
    for node in nodes:
        node_containers.inside(
            node.name,
            "useradd --create-home --shell /bin/bash deploy\n"
            "echo 'deploy ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/deploy\n",
        )
        node_containers.let_in(node.name, key, "deploy")


def remove_hosts():
    """Remove the hosts and their network; nothing there is fine."""
    node_containers.remove([container(name) for name in HOSTS], NETWORK)


class Stranger:
    """The user on the controller: a home, a copy of the checkout, a key, and no rights."""

    def __init__(self):
        self.uid = 61000 + os.getpid() % 3000
        self.state = Path(tempfile.mkdtemp(prefix="ks-", dir="/tmp"))
        self.state.chmod(0o755)
        self.home = self.state / "home"
        self.checkout = self.home / "cluster"
        (self.home / ".ssh").mkdir(parents=True)
        # whose names the machine itself does not know
        hosts = "".join(f"{ip} {name}\n" for name, ip in HOSTS.items())
        (self.state / "hosts").write_text(Path("/etc/hosts").read_text() + hosts)
        (self.state / "passwd").write_text(
            Path("/etc/passwd").read_text()
            + f"stranger:x:{self.uid}:{self.uid}::{self.home}:/bin/sh\n"
        )
        self._copy_checkout()
        key = self.home / ".ssh" / "id_ed25519"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        self.key = key.with_suffix(".pub").read_text().strip()
        (self.home / ".ssh" / "config").write_text("StrictHostKeyChecking accept-new\n")
        subprocess.run(["chown", "-R", f"{self.uid}:{self.uid}", str(self.home)], check=True)

    def _copy_checkout(self):
        self.checkout.mkdir()
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=True
        ).stdout
        pack = ["tar", "--null", "-T", "-", "-c"]
        packed = subprocess.run(
            pack, cwd=CHECKOUT, input=listed, capture_output=True, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", str(self.checkout)], input=packed, check=True)

    def play(self, playbook, *arguments, code=0, online=False, names=True, **variables):
        """Run a playbook in the user's checkout; return its output.

        `online`: the package registries can be reached; `names`: those of the hosts are known.
        """
        python = Path(sys.prefix) / "bin"
        network = {
            key: value for key, value in os.environ.items() if key.lower() in NETWORK_VARIABLES
        }
        environment = {
            "HOME": str(self.home),
            "USER": "stranger",
            "PATH": os.pathsep.join([str(python), "/usr/local/bin", "/usr/bin", "/bin"]),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_NOCOLOR": "1",
            **(network if online else OFFLINE),
            **variables,
        }
        command = [
            *("unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "enter"),
            *(str(self.state), str(self.uid), "names" if names else "none"),
            *dict.fromkeys([sys.prefix, sys.base_prefix]),
            *("--", str(python / "ansible-playbook"), *map(str, (playbook, *arguments))),
        ]
        began = time.monotonic()
        # Into a file: what the run leaves behind would keep a pipe open.
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            done = subprocess.run(
                command,
                cwd=self.checkout,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=500,
                check=False,
            )
            output.seek(0)
            said = output.read()
        print(f"\n{playbook} {' '.join(arguments)}: {time.monotonic() - began:.1f} s", flush=True)
        assert done.returncode == code, said[-15000:]
        return said

    def processes(self):
        """Return the pids of all processes of this user."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if entry.stat().st_uid == self.uid:
                    found.append(int(entry.name))
        return found

    def close(self):
        """End what the user has started, and remove everything."""

        def gone():
            for pid in self.processes():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            return not self.processes()

        try:
            wait_until(gone, 30, "no process of the user is left")
        finally:
            shutil.rmtree(self.state, ignore_errors=True)


def readme_inventory():
    """Return the README's inventory as it stands there."""
    (text,) = re.findall(
        r"^```yaml\n(all:\n.*?)^```", (CHECKOUT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    return text


if __name__ == "__main__":
    remove_hosts()

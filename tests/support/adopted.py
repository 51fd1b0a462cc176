# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks on a cluster that somebody else has installed: an inventory that knows where its brokers listen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.secured_cluster import LISTENER, SecuredCluster

CHECKOUT = Path(__file__).resolve().parents[2]
KINDS = "users|topics|retention|settings|rights|quotas"


@dataclass(frozen=True)
class Played:
    """What a playbook printed, its exit code, and how many tasks changed something."""

    code: int
    text: str

    @property
    def changed(self) -> int:
        """Changed tasks of all hosts; of none, an error."""
        counts = re.findall(r" changed=(\d+)", self.text.rpartition("PLAY RECAP")[2])
        assert counts, self.text
        return sum(map(int, counts))

    @property
    def lines(self) -> dict[str, str]:
        """Kind of state to what state.yml said of it."""
        return dict(re.findall(rf"^ +({KINDS}) +(.*)$", self.text, re.MULTILINE))


def hosts_of(cluster: SecuredCluster, user: str = "admin") -> dict[str, Any]:
    """Variables by broker, as somebody writes them who knows the addresses and a login."""
    login = cluster.arguments(user)
    security = {key: login[key] for key in login if key.startswith(("security_", "sasl_"))}
    hosts = {}
    for number, address in enumerate(cluster.bootstrap_servers.split(","), 1):
        host, _colon, port = address.rpartition(":")
        listener = {"name": LISTENER, "port": int(port), "protocol": "SASL_PLAINTEXT"}
        listener.update(bind=host, advertised=host, audience=["brokers", "clients"])
        hosts[f"broker-{number}"] = {
            "kafka_listeners": [listener],
            "kafka_client_security": security,
        }
    return hosts


class Adopted:
    """An inventory in a folder of its own; hosts are reached through this machine, as one without SSH has them."""

    def __init__(self, folder: Path, hosts: dict[str, Any], name: str = "adopted"):
        self.folder = folder
        self.state = folder / "group_vars" / "kafka" / "state.yml"
        self.state.parent.mkdir(parents=True)
        everywhere = {
            "ansible_connection": "local",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
            "kafka_cluster_name": name,
        }
        inventory = {"all": {"vars": everywhere, "children": {"kafka": {"hosts": hosts}}}}
        (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))

    @property
    def environment(self) -> dict[str, str]:
        """As of any playbook of the checkout, with files of its own."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
        own = {"KAFKAOPS_HOME": str(self.folder.parent / "home"), "ANSIBLE_NOCOLOR": "1"}
        return {**kept, **own, "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg")}

    def command(self, playbook: str, *arguments: str) -> list[str]:
        """The command line of a playbook on this inventory."""
        tool = Path(sys.executable).with_name("ansible-playbook")
        path = CHECKOUT / "playbooks" / playbook
        return [str(tool), str(path), "-i", str(self.folder), *map(str, arguments)]

    def play(self, playbook: str, *arguments: str, code: int = 0) -> Played:
        """Run a playbook; its exit code must be `code`."""
        done = subprocess.run(
            self.command(playbook, *arguments),
            cwd=CHECKOUT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout[-8000:] + done.stderr[-4000:]
        return Played(done.returncode, done.stdout + done.stderr)

    def export(self) -> None:
        """Take over what the cluster has as this inventory's state."""
        self.play("export.yml", "-e", f"export_to={self.folder.parent}")
        (written,) = self.folder.parent.glob("*-state.yml")
        self.state.write_text(written.read_text())

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firewalls of the nodes, tried by connections, and our rules as nftables or firewalld prints them."""

from __future__ import annotations

import hashlib

from tests.support.node_containers import inside

CONNECT = """
import socket
try:
    socket.create_connection(("{address}", {port}), timeout=3).close()
    print("open")
except TimeoutError:
    print("dropped")
except OSError:
    print("refused")
"""


def name_of(cluster, host):
    """Return the name of our table or policy for a host of the inventory."""
    return f"kafkaops-{hashlib.sha1(f'{cluster}/{host}'.encode()).hexdigest()[:8]}"


def tried(source, address, port):
    """Return what a node sees of a port: open, refused or dropped."""
    program = CONNECT.format(address=address, port=port)
    return inside(source, f"python3 - <<'PROGRAM'\n{program}\nPROGRAM").strip()


def ruleset(node, name, firewalld):
    """Return what a node's firewall says of our ports, as it prints it; "" where nothing is ours."""
    command = f"nft list table inet {name}"
    if firewalld:
        command = f"firewall-cmd --policy={name} --list-rich-rules"
    return inside(node, command, check=False)

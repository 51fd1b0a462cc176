# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZooKeeper's four-letter words over a small socket of our own.

kazoo's `command()` talks only to the server it happens to be connected to and reads at most 8 KiB;
here each server is asked by its address. Private to the collection: names may change without notice.
"""

from __future__ import annotations

import re
import socket

# What `srvr` prints, by the name that the modules return.
_SRVR = {
    "version": re.compile(r"^Zookeeper version: ([0-9.]+)", re.MULTILINE),
    "role": re.compile(r"^Mode: (\w+)", re.MULTILINE),
    "zxid": re.compile(r"^Zxid: (\S+)", re.MULTILINE),
    "outstanding": re.compile(r"^Outstanding: (\d+)", re.MULTILINE),
    "connections": re.compile(r"^Connections: (\d+)", re.MULTILINE),
    "nodes": re.compile(r"^Node count: (\d+)", re.MULTILINE),
}
_NUMBERS = ("outstanding", "connections", "nodes")


def ask(host, port, word, timeout=2.0):
    """Return the server's answer to a four-letter word; raises OSError where there is none."""
    with socket.create_connection((host, port), timeout) as connection:
        connection.sendall(word.encode("ascii"))
        answer = b""
        while True:
            data = connection.recv(65536)
            if not data:
                return answer.decode("utf-8", "replace")
            answer += data


def parse_srvr(text):
    """Return {role, version, zxid, outstanding, connections, nodes} of `srvr`; role None if not serving."""
    found = {}
    for name, pattern in _SRVR.items():
        match = pattern.search(text)
        value = match.group(1) if match else None
        found[name] = int(value) if value is not None and name in _NUMBERS else value
    return found


def parse_mntr(text):
    """Return `mntr` as a dict of strings."""
    return dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)


def server_state(server, timeout=2.0):
    """Return one server's state: {id, address, port, serving, role, version, zxid, synced_followers, error}."""
    state = {"id": server.get("id"), "address": server["address"], "port": server["port"]}
    try:
        state.update(parse_srvr(ask(server["address"], server["port"], "srvr", timeout)))
        state["serving"] = state["role"] is not None
        state["error"] = None if state["serving"] else "it runs, but has no quorum"
        state["synced_followers"] = None
        if state["role"] == "leader":
            values = parse_mntr(ask(server["address"], server["port"], "mntr", timeout))
            synced = values.get("zk_synced_followers")
            state["synced_followers"] = int(float(synced)) if synced else None
    except OSError as error:
        state.update(parse_srvr(""))
        state.update(serving=False, synced_followers=None, error=str(error))
    return state


def missing_to_whole(states):
    """Return, in words, what keeps the ensemble from being whole; empty if it is.

    Whole: every server serves, one leads (or the only one stands alone), and all others follow, synced.
    """
    missing = [
        "server %s at %s:%s: %s" % (state["id"], state["address"], state["port"], state["error"])
        for state in states
        if not state["serving"]
    ]
    if missing or len(states) == 1:
        return missing
    leaders = [state for state in states if state["role"] == "leader"]
    if len(leaders) != 1:
        return ["%d leaders" % len(leaders)]
    synced = leaders[0]["synced_followers"]
    if synced is not None and synced < len(states) - 1:
        return ["the leader has %d synced followers of %d" % (synced, len(states) - 1)]
    return []

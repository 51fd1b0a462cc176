# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZooKeeper's four-letter words over a small socket of our own, and what their answers mean.

kazoo's `command()` talks only to the server it happens to be connected to and reads at most 8 KiB;
here each server is asked by its address. Private to the collection: names may change without notice.
"""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Collection, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint

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
_SERVER_ID = re.compile(r"^serverId=(\d+)", re.MULTILINE)
_LISTED = re.compile(r"^server\.(\d+)=", re.MULTILINE)
_VOTERS = ("leader", "follower")
_SERVES = (*_VOTERS, "observer", "standalone")
_NO_QUORUM = "it runs, but has no quorum"
# Of the whole ensemble.
NO_QUORUM = "ZooKeeper has no quorum"

States = List[Dict[str, Any]]
Ask = Callable[[Sequence[Mapping[str, Any]]], States]


def ask(host: str, port: int, word: str, timeout: float = 2.0) -> str:
    """Return the server's answer to a four-letter word; raises OSError where there is none."""
    with socket.create_connection((host, port), timeout) as connection:
        connection.sendall(word.encode("ascii"))
        answer = b""
        while True:
            data = connection.recv(65536)
            if not data:
                return answer.decode("utf-8", "replace")
            answer += data


def parse_srvr(text: str) -> Dict[str, Any]:
    """Return {role, version, zxid, outstanding, connections, nodes} of `srvr`; role None if not serving."""
    state: Dict[str, Any] = {}
    for name, pattern in _SRVR.items():
        match = pattern.search(text)
        value = match.group(1) if match else None
        state[name] = int(value) if value is not None and name in _NUMBERS else value
    return state


def parse_mntr(text: str) -> Dict[str, str]:
    """Return `mntr` as a dict of strings."""
    pairs = (line.partition("\t") for line in text.splitlines() if "\t" in line)
    return {key: value for key, _tab, value in pairs}


def listed_servers(server_id: Optional[int], role: Optional[str], conf: str) -> Optional[List[int]]:
    """Return the ids of the list of servers that this answer to `conf` shows; None if it shows none.

    A server that stands alone has no list: it is its own.
    """
    ids = sorted(int(each) for each in _LISTED.findall(conf))
    if not ids and role == "standalone" and server_id is not None:
        return [server_id]
    return ids or None


def why_not_serving(answer: str) -> Optional[str]:
    """Return why the server behind this answer to `srvr` does not serve; None if it does."""
    if _SRVR["role"].search(answer):
        return None
    if "not currently serving requests" in answer:
        return _NO_QUORUM
    if "not in the whitelist" in answer:
        return "it forbids the word srvr; add srvr to its 4lw.commands.whitelist"
    if not answer.strip():
        return "it closes the connection without an answer, so it is not the port of a ZooKeeper server"
    return f"it answers, but not as a ZooKeeper server does: {answer.strip().splitlines()[0][:80]}"


def why_another_server(wanted: Optional[int], role: Optional[str], conf: str) -> Optional[str]:
    """Return why the answer to `conf` is not that of the server `wanted` (its id); None if it may be.

    A server that stands alone has no id of its own and says 0.
    """
    match = _SERVER_ID.search(conf)
    if wanted is None or role not in _VOTERS or not match or int(match.group(1)) == wanted:
        return None
    return f"it is server {match.group(1)}, not {wanted}"


def server_state(server: Mapping[str, Any], timeout: float = 2.0) -> Dict[str, Any]:
    """Return one server's state: {id, address, port, serving, role, version, zxid, outstanding,
    connections, nodes, synced_followers, listed, runs, error}.

    `server`: {id, address, port}; `timeout`: seconds for each question. `error` is None for a server
    that serves and is the one that was asked for. `listed`: the ids of the list of servers that it
    has in effect, None where it does not say: only one that serves does. `runs`: it answers at all.
    """
    state = _unanswered(server, "")

    def answer_to(word: str) -> str:
        return ask(server["address"], server["port"], word, timeout)

    try:
        answer = answer_to("srvr")
        state.update(parse_srvr(answer), error=why_not_serving(answer))
        state["serving"] = state["error"] is None
        state["runs"] = bool(answer.strip())
        if state["role"] == "leader":
            synced = parse_mntr(answer_to("mntr")).get("zk_synced_followers")
            state["synced_followers"] = int(float(synced)) if synced else None
        if state["serving"] and server.get("id") is not None:
            conf = answer_to("conf")
            state["error"] = why_another_server(server["id"], state["role"], conf)
            state["listed"] = listed_servers(server["id"], state["role"], conf)
    except OSError as error:
        state.update(parse_srvr(""), serving=False, error=str(error))
    return state


def _unanswered(server: Mapping[str, Any], why: str) -> Dict[str, Any]:
    """The state of a server that has said nothing."""
    return {
        "id": server.get("id"),
        "address": server["address"],
        "port": server["port"],
        **parse_srvr(""),
        "serving": False,
        "synced_followers": None,
        "listed": None,
        "runs": False,
        "error": why,
    }


def states_of(servers: Sequence[Mapping[str, Any]]) -> States:
    """Return the state of each server; all are asked at once, as one that is gone may be slow to say so."""
    with ThreadPoolExecutor(max_workers=len(servers)) as pool:
        return list(pool.map(server_state, servers))


def states_without_answer(servers: Sequence[Mapping[str, Any]], why: str) -> States:
    """Return states as those of `states_of` where nobody could ask the servers: each has `why` as its error."""
    return [_unanswered(server, why) for server in servers]


def unmet(
    states: Sequence[Mapping[str, Any]],
    required: Optional[Collection[int]] = None,
    stopping: Optional[int] = None,
    lists: Optional[Sequence[Collection[int]]] = None,
    unmended: Collection[int] = (),
) -> List[str]:
    """Return, one sentence each, what the ensemble lacks; an empty list if nothing.

    Asked for are a quorum of `states` (the whole ensemble) that serves under one leader, its followers
    synced, and every server of `required` (ids). `required` is by default all servers; with `stopping`,
    the id of a server that is about to stop, it is none, but the others must have a quorum without it.
    `lists`: the lists of servers that are in effect while they change, each of which needs its quorum.
    `unmended`: servers that are sick and will be restarted later. Nothing is expected of them; where
    there can be no quorum without them, it is enough that every server of `required` answers. Without
    `lists` nothing is expected of a server that nobody has in his list yet, since an ensemble that grew was
    left half way: the others do not let it in.
    """
    strangers = set() if lists else _in_no_list(states)
    lists = lists or [[state["id"] for state in states]]
    if required is None:
        required = {state["id"] for state in states} if stopping is None else ()
    required = {*required} - strangers
    if stopping is None and any(len({*each} - {*unmended}) < _quorum(each) for each in lists):
        return [
            f"{_name(state)}: {state['error']}"
            for state in states
            if state["id"] in required and state["error"] not in (None, _NO_QUORUM)
        ]
    reasons = [
        f"{_name(state)}: {state['error']}"
        for state in states
        if state["id"] in required and state["error"]
    ]
    alone = all(len(each) == 1 for each in lists)
    another = "other servers, which are not in the list" if alone else "no other server"
    reasons += [
        f"{_name(state)}: it is a {state['role']} and knows {another}"
        for state in states
        if not state["error"] and not _knows_its_list(state, lists)
        # What is about to be mended may think what it likes.
        and (alone or state["id"] not in (stopping, *unmended))
    ]
    serving = [state for state in states if not state["error"]]
    stands_alone = bool(serving) and all(each["role"] == "standalone" for each in serving)
    if reasons or alone or stands_alone:
        return reasons
    voters = [state for state in serving if state["role"] in _VOTERS]
    staying = [state for state in voters if stopping is None or state["id"] != stopping]
    for members in lists:
        quorum = _quorum(members)
        # Two servers have no quorum without one of them, and still have to be restarted some day.
        needed = min(quorum, len(members) - 1) if stopping in members else quorum
        there = sum(state["id"] in members for state in staying)
        if there < needed:
            reasons = [f"{_name(state)}: {state['error']}" for state in states if state["error"]]
            without = "" if stopping is None else f" without server {stopping}"
            of = len(members)
            return reasons + [f"{there} of {of} serve{without}, {needed} are needed"]
    leaders = [state for state in staying if state["role"] == "leader"]
    # The one that stops may be the leader; beside another one it only believes so.
    leaders = leaders or [state for state in voters if state["role"] == "leader"]
    if len(leaders) != 1:
        return [f"{len(leaders)} servers lead" if leaders else "no server leads"]
    synced = leaders[0]["synced_followers"]
    # The leader counts the servers of its own list alone.
    known = leaders[0].get("listed") or [state["id"] for state in voters]
    counted = sum(state["id"] in known for state in voters)
    if synced is not None and synced < counted - 1:
        return [f"the leader has {synced} synced followers of {counted - 1}"]
    return []


def without_quorum(states: Sequence[Mapping[str, Any]]) -> Tuple[str, bool]:
    """Return (words about an ensemble of which nobody serves, whether that is certain); ("", False) if one serves.

    It is certain where a server itself says that it has no quorum. One that does not answer may be out of reach of
    who asks, and not of the brokers.
    """
    if not states or any(state["serving"] and state["role"] in _SERVES for state in states):
        return "", False
    answer = sum(bool(state["runs"]) for state in states)
    certain = any(state["error"] == _NO_QUORUM for state in states)
    told = "; ".join(f"{_name(state)}: {state['error'] or 'read-only'}" for state in states)
    what = NO_QUORUM if certain else "no ZooKeeper server serves here"
    return (
        f"{what}: {answer} of {len(states)} answer, 0 serve, {_quorum(states)} are needed: {told}",
        certain,
    )


def says_it_does_not_serve(states: Sequence[Mapping[str, Any]], server: int) -> bool:
    """Tell whether this server itself says that it runs without a quorum: its stop takes nothing away."""
    return any(state["id"] == server and state["error"] == _NO_QUORUM for state in states)


def outage(lists: Sequence[Collection[int]], stopping: int) -> str:
    """Return what the stop of this server costs where the others of a list are no quorum; "" elsewhere."""
    for members in lists:
        if stopping in members and len(members) - 1 < _quorum(members):
            one = "it is the only one" if len(members) == 1 else "two have no quorum without it"
            return f"the ensemble does not serve while server {stopping} restarts: {one}"
    return ""


def verdict(missing: Sequence[str], stopping: int, cost: str = "") -> str:
    """Return one line about a server that is to stop: for check mode and plans."""
    told = f"may not stop yet: {'; '.join(missing)}" if missing else "may stop now"
    return f"server {stopping} {told}{'; ' if cost else ''}{cost}"


def _in_no_list(states: Sequence[Mapping[str, Any]]) -> Set[int]:
    """Return the ids of those that run without a quorum, and that the one leader does not have in its list."""
    leaders = [each for each in states if not each["error"] and each["role"] == "leader"]
    if len(leaders) != 1 or not leaders[0].get("listed"):
        return set()
    return {each["id"] for each in states if each["error"] == _NO_QUORUM} - {*leaders[0]["listed"]}


def _quorum(members: Collection[Any]) -> int:
    return len(members) // 2 + 1


def _knows_its_list(state: Mapping[str, Any], lists: Sequence[Collection[int]]) -> bool:
    """Tell whether a server that serves stands alone if, and only if, some list has it so."""
    if state["role"] == "standalone":
        return any(list(each) == [state["id"]] for each in lists)
    return any(len(each) > 1 for each in lists)


def _name(state: Mapping[str, Any]) -> str:
    return f"server {state['id']} at {endpoint(state['address'], state['port'])}"

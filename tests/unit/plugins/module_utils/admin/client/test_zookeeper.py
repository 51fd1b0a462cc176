# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading what Kafka keeps in ZooKeeper, from servers that stop answering."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest
from kazoo.exceptions import NoAuthError
from kazoo.handlers.threading import SequentialThreadingHandler

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.zookeeper import (
    ZookeeperClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError

ANSWERS = {
    "get_async": (b"{}", SimpleNamespace(ephemeralOwner=1, czxid=2)),
    "exists_async": True,
    "get_children_async": ["1"],
}


@pytest.mark.parametrize("silent", ANSWERS)
def test_a_question_that_is_never_answered_ends_with_the_timeout(silent):
    """kazoo itself would wait for as long as its session lives."""

    def asked(call):
        result = SequentialThreadingHandler().async_result()
        if call != silent:
            result.set(ANSWERS[call])
        return result

    client = ZookeeperClient("h:1/kafka", timeout=0.1)
    client._client = SimpleNamespace(
        **{call: lambda _path, call=call: asked(call) for call in ANSWERS}
    )
    with pytest.raises(AdminError, match=r"\[ensemble.access\] h:1: reading /kafka") as caught:
        client.describe()
    assert caught.value.reachable


# path -> whether it is ephemeral, None where it may not be read
NODES = {
    "/": False,
    "/zookeeper": False,
    "/zookeeper/quota": True,
    "/kafka": False,
    "/kafka/brokers": True,
}
AT_THE_ROOT = {"/": False, "/brokers": False, "/brokers/ids": True, "/kafka-acl": False}


@pytest.mark.parametrize(
    "chroot, nodes, told",
    [
        ("/kafka", NODES, []),
        ("", AT_THE_ROOT, []),
        ("", {**AT_THE_ROOT, "/other": False, "/other/leader": True}, ["/other/leader"]),
        # data that nobody keeps up
        ("/kafka", {**NODES, "/other": False, "/other/config": False}, []),
        ("/kafka", {**NODES, "/other": False, "/other/one": True}, ["/other/one"]),
        ("/a/kafka", {"/": False, "/a": False, "/a/kafka": True}, []),
        ("/a/kafka", {"/": False, "/a": False, "/a/kafka": True, "/a/b": True}, ["/a/b"]),
        ("/kafka", {**NODES, "/secret": None, "/z": True}, ["/secret", "/z"]),
        ("/kafka", {**NODES, **{f"/o{n}": True for n in range(9)}}, ["/o0", "/o1", "/o2"]),
        (
            "/kafka",
            {**NODES, **{f"/o{n:03}": False for n in range(99)}},
            ["/o049 and what follows"],
        ),
    ],
)
def test_who_else_is_at_work_in_the_ensemble(chroot, nodes, told):
    def children(path, include_data):
        assert include_data
        result = SequentialThreadingHandler().async_result()
        if nodes[path] is None:
            result.set_exception(NoAuthError())
        else:
            below = [
                each
                for each in nodes
                if each != "/" and each.rpartition("/")[0] == path.rstrip("/")
            ]
            names = [each.rpartition("/")[2] for each in below]
            result.set((names, SimpleNamespace(ephemeralOwner=int(nodes[path]))))
        return result

    client = ZookeeperClient(f"h:1{chroot}", timeout=5)
    client._client = SimpleNamespace(get_children_async=children)
    assert client.others(most=50) == told


def test_a_server_that_accepts_and_says_nothing_is_not_reachable():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        connect = f"127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(AdminError, match="no ZooKeeper server answered within 0.5 s") as caught:
            with ZookeeperClient(connect, timeout=0.5):
                pass
    assert not caught.value.reachable

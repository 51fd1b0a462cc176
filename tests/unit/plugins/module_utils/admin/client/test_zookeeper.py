# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading what Kafka keeps in ZooKeeper, from servers that stop answering."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest
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


def test_a_server_that_accepts_and_says_nothing_is_not_reachable():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        connect = f"127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(AdminError, match="no ZooKeeper server answered within 0.5 s") as caught:
            with ZookeeperClient(connect, timeout=0.5):
                pass
    assert not caught.value.reachable

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topics that advice is asked about: what is read, and what is refused."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.items import (
    Addition,
    Asked,
    addition,
    parse_asked,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Partition,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError

ORDERS = Topic("orders", tuple(Partition(n, 1, (1, 2), (1, 2)) for n in range(4)))


def item(**given):
    """An item as Ansible fills it."""
    return {
        "name": "orders",
        "partitions": None,
        "replication_factor": None,
        "throughput": None,
        "partition_write": "10MiB",
        "consumer_read": None,
        "consumers": 0,
        "keyed": True,
        **given,
    }


def test_what_is_read():
    (asked,) = parse_asked([item(partitions=8, throughput="50MiB", consumer_read="1048576")])
    assert asked == Asked("orders", 8, None, 50 * 2**20, 10 * 2**20, 2**20)


@pytest.mark.parametrize(
    "wrong",
    [
        [item(), item()],
        [item(throughput="10G")],
        [item(throughput="unlimited")],
        [item(throughput="0")],
        [item(partition_write="0")],
        [item(partitions=0)],
        [item(replication_factor=0)],
        [item(consumers=-1)],
    ],
    ids=["twice", "unit", "unlimited", "nothing", "no write", "partitions", "factor", "consumers"],
)
def test_what_is_refused(wrong):
    with pytest.raises(AdminError) as caught:
        parse_asked(wrong)
    assert caught.value.problem.check == "advice.bad_item"


@pytest.mark.parametrize(
    ("asked", "topic", "added"),
    [
        (Asked("orders", 12, 3), ORDERS, Addition("orders", 8, 2, 12)),
        (Asked("orders", 4), ORDERS, None),
        (Asked("orders"), ORDERS, None),
        (Asked("new", 6), None, Addition("new", 6, 3, 6)),
        (Asked("new", 6, 1), None, Addition("new", 6, 1, 6)),
        (Asked("new", throughput=1), None, None),
    ],
)
def test_what_comes_on_top(asked, topic, added):
    assert addition(asked, topic, ["orders"], 5) == added


@pytest.mark.parametrize(
    ("asked", "topic"),
    [(Asked("orders", 3), ORDERS), (Asked("order"), None), (Asked("new", 6, 6), None)],
    ids=["fewer", "unknown", "more replicas than brokers"],
)
def test_what_no_cluster_could_do(asked, topic):
    with pytest.raises(AdminError) as caught:
        addition(asked, topic, ["orders"], 5)
    assert caught.value.problem.check == "advice.bad_item"

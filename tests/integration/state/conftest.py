# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two real clusters with passwords and an authorizer, one in each mode, for the modules of cluster state.

A test that takes `secured` runs against both in the soak: three brokers of the ZooKeeper line, and a KRaft node.
In each run it has one of them, by turns, so that every module is seen in both modes.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

CHECKOUT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(CHECKOUT))

from tests.support import collection_finder  # noqa: E402
from tests.support.secured_cluster import (  # noqa: E402
    COMMON_NAME,
    SecuredCluster,
    secured_cluster,
)
from tests.support.self_signed import self_signed  # noqa: E402

collection_finder.install()

PORT_BASE = int(os.environ.get("KAFKAOPS_TEST_PORT_BASE", "20200")) + 400
EVERY_ACL = AclBindingFilter(
    *(ResourceType.ANY, None, ResourcePatternType.ANY, None, None),
    *(AclOperation.ANY, AclPermissionType.ANY),
)
RUNNING: list = []
_numbers = itertools.count(1)


def whole(running):
    """The cluster, once every broker is known to all: registered is not yet that."""
    cluster = SecuredCluster(running)
    brokers = [i + 1 for i in range(running.brokers)]
    ready = cluster.run("kafka_cluster_info", timeout=30, wait={"brokers": brokers})
    assert not ready.failed, ready.msg
    return cluster


@pytest.fixture(scope="session")
def certificate():
    """Of the brokers, and of a client that may do everything."""
    return self_signed(COMMON_NAME)


@pytest.fixture(scope="session")
def on_zookeeper(tmp_path_factory, certificate):
    """Three brokers of the ZooKeeper line."""
    folder = tmp_path_factory.mktemp("zookeeper")
    with secured_cluster(folder, PORT_BASE, False, certificate=certificate) as running:
        RUNNING.append(whole(running))
        yield RUNNING[-1]


@pytest.fixture(scope="session")
def on_kraft(tmp_path_factory, certificate):
    """One combined KRaft node of the 4.x line."""
    folder = tmp_path_factory.mktemp("kraft")
    with secured_cluster(folder, PORT_BASE + 100, True, certificate=certificate) as running:
        RUNNING.append(whole(running))
        yield RUNNING[-1]


MODES = ("kraft", "zookeeper")


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is a soak
def pytest_collection_modifyitems(items):
    """Leave one mode of each test to the soak: by turns, as the tests stand."""
    seen: dict = {}
    for item in items:
        mode = getattr(item, "callspec", None) and item.callspec.params.get("secured")
        if mode:
            other = item.nodeid.replace(mode, "*")
            turn = seen.setdefault(other, len(seen) % len(MODES))
            if mode != MODES[turn]:
                item.add_marker(pytest.mark.soak)


@pytest.fixture(params=MODES[::-1])
def secured(request):
    """Each of both clusters."""
    return request.getfixturevalue(f"on_{request.param}")


@pytest.fixture(autouse=True)
def rights_are_taken_back():
    """What one test lets a user see must not be what another one stumbles over."""
    yield
    for cluster in RUNNING:
        admin = AdminClient(cluster.client_settings())
        for future in admin.delete_acls([EVERY_ACL]).values():
            future.result(30)


@pytest.fixture
def admin(secured):
    """A client that is not ours, to look and to interfere behind the module's back."""
    return AdminClient(secured.client_settings())


@pytest.fixture
def name():
    """A name that no other test uses."""
    return f"name-{next(_numbers)}"

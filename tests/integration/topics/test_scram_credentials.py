# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_scram_credentials against a real ensemble."""

from __future__ import annotations

import json

import pytest
from kazoo.client import KazooClient
from kazoo.security import READ_ACL_UNSAFE

from tests.support.run_module import run_module

MECHANISMS = ["SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.fixture
def ensemble(cluster):
    """A client that is not ours."""
    client = KazooClient(cluster.zookeeper_connect.partition("/")[0])
    client.start(20)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def connect(cluster, ensemble, name):
    """A chroot of its own."""
    yield f"{cluster.zookeeper_connect.partition('/')[0]}/{name}"
    ensemble.delete(f"/{name}", recursive=True)


def scram(connect, users, check=False, **options):
    """The module."""
    arguments = {"zookeeper": connect, "mechanisms": MECHANISMS, "users": users, **options}
    return run_module("kafka_scram_credentials", arguments, check)


def test_written_once_and_again_for_another_password(connect):
    checked = scram(connect, {"broker": "one"}, check=True)
    assert checked.changed and checked.written == [f"broker {each}" for each in MECHANISMS]
    assert scram(connect, {"broker": "one"}).written == checked.written
    assert scram(connect, {"broker": "one"}).changed is False
    assert scram(connect, {"broker": "two"}, check=True).changed
    assert scram(connect, {"broker": "two"}).changed


def test_a_name_with_signs_stays_one_user(connect, ensemble, name):
    """As Kafka's own tools name it: not a path below the users."""
    user = "CN=k/1 +%"
    assert scram(connect, {user: "one"}).changed
    assert ensemble.get_children(f"/{name}/config/users") == ["CN%3Dk%2F1%20%2B%25"]
    assert scram(connect, {user: "one"}).changed is False


def test_a_failure_at_the_second_user_says_that_the_others_were_written(connect, ensemble, name):
    ensemble.ensure_path(f"/{name}/config/users")
    ensemble.create(f"/{name}/config/users/b", b"{}", acl=READ_ACL_UNSAFE)
    result = scram(connect, {"a": "secret one", "b": "secret two", "c": "secret three"})
    assert result.failed and result.changed
    assert result.written == [f"{user} {each}" for user in "ac" for each in MECHANISMS]
    assert "4 of 6 changes were made; not written:" in result.msg
    assert f"writing /{name}/config/users/b failed: NoAuth" in result.msg
    assert [each["name"] for each in result.failed_items] == [f"b {each}" for each in MECHANISMS]
    for user in "ac":
        assert json.loads(ensemble.get(f"/{name}/config/users/{user}")[0])["config"]
    assert "secret" not in str(result.values)
    # Check mode changes nothing, and what it can read is no error.
    checked = scram(connect, {"a": "secret one", "b": "secret two"}, check=True)
    assert not checked.failed and checked.written == [f"b {each}" for each in MECHANISMS]

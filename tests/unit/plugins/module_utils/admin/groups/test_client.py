# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups as coordinators tell them: of each kind, deleted meanwhile, and by one that does not tell yet."""

from __future__ import annotations

import concurrent.futures
import contextlib
import types

import pytest
from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException
from kafka.errors import for_code

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.client import (
    GroupsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError

GONE, LOADING, DENIED = 69, 14, 30
LISTED = [
    ("classic", "consumer", "Classic", "Stable"),
    ("old", "", "", "Empty"),
    ("new", "consumer", "Consumer", "Stable"),
    ("gone", "consumer", "Consumer", "Stable"),
    ("streams", "streams", "Streams", "Stable"),
    ("share", "share", "Share", "Stable"),
    ("connect-x", "connect", "Classic", "Stable"),
]


class Coordinators:
    """Stands for both client libraries; `errors` are those of the next answers about classic groups."""

    def __init__(self, *errors, denied=(), silent=False):
        self.errors, self.denied, self.silent = list(errors), denied, silent

    def list_groups(self):
        """As kafka-python returns them."""
        names = ("group_id", "protocol_type", "group_type", "group_state")
        return [dict(zip(names, each)) for each in LISTED]

    def describe_groups(self, names):
        """A member each, or an error in words and nothing else."""
        code = self.errors.pop(0) if self.errors else 0

        def failed(code):
            return {"error": str(for_code(code)("")), "group_state": "", "members": []}

        if self.silent and set(names) & set(self.denied):
            # Not even who the coordinator of such a group is.
            raise for_code(DENIED)("")
        if code:
            return {name: failed(code) for name in names}
        member = {
            "member_id": "m",
            "client_id": "c",
            "client_host": "/h",
            "member_assignment": {},
            "member_metadata": {},
        }
        told = {"error": None, "group_state": "Stable", "members": [member]}
        return {name: failed(DENIED) if name in self.denied else dict(told) for name in names}

    def list_group_offsets(self, names):
        """Nothing is committed; all fails where one is denied."""
        if set(names) & set(self.denied):
            raise for_code(DENIED)("")
        return dict.fromkeys(names, {})

    def describe_consumer_groups(self, names, request_timeout):
        """As librdkafka answers: `gone` is not there any more."""
        futures = {}
        for name in names:
            futures[name] = concurrent.futures.Future()
            if name == "gone":
                error = KafkaException(KafkaError(KafkaError.GROUP_ID_NOT_FOUND, "gone"))
                futures[name].set_exception(error)
            else:
                state = ConsumerGroupState.STABLE
                futures[name].set_result(types.SimpleNamespace(state=state, members=[]))
        return futures

    def poll(self, _seconds):
        """Nothing to deliver."""


class Client(GroupsClient):
    """Reads from such coordinators; time passes when it waits."""

    def __init__(self, coordinators):
        super().__init__(
            Connection((("h", 1),), timeout=2.0), clock=lambda: self.now, sleep=self._pass
        )
        self.now, self._coordinators = 0.0, coordinators
        self._admin = coordinators

    def _pass(self, seconds):
        self.now += seconds

    def _renew(self):
        """The same again."""

    @contextlib.contextmanager
    def python_admin(self, seconds=0.0):
        yield self._coordinators


def test_every_kind():
    client = Client(Coordinators())
    found = {each.name: (each.kind, each.state) for each in client.fetch_groups(lambda _name: True)}
    assert found == {
        "classic": ("classic", "Stable"),
        "old": ("classic", "Stable"),
        "new": ("consumer", "Stable"),
        "gone": ("consumer", "Dead"),  # and all others are told
        "streams": ("streams", "Stable"),
    }
    assert client.left_out == {
        "share": "a share group",
        "connect-x": "a group of the protocol connect",
    }
    client.fetch_groups({"classic"}.__contains__)
    assert client.left_out == {}, "nobody has asked for them"


def test_a_coordinator_that_does_not_tell_yet_is_asked_again():
    """Its group was taken for one without members, and could have been told as stopped."""
    client = Client(Coordinators(LOADING, LOADING))
    (found,) = client.fetch_groups({"classic"}.__contains__)
    assert found.state == "Stable" and len(found.members) == 1 and client.now > 0
    with pytest.raises(AdminError, match="reading consumer groups failed.*CoordinatorLoad"):
        Client(Coordinators(*[LOADING] * 99)).fetch_groups({"classic"}.__contains__)


def test_a_classic_group_that_is_deleted_meanwhile_is_dead():
    (found,) = Client(Coordinators(GONE)).fetch_groups({"classic"}.__contains__)
    assert (found.state, found.members, found.exists) == ("Dead", (), False)


@pytest.mark.parametrize("silent", [True, False])
@pytest.mark.parametrize("denied", [["classic"], ["new", "streams"], ["classic", "old", "gone"]])
def test_groups_of_others_are_left_out_and_named(denied, silent):
    """Who may Describe the cluster is told their names, and nothing else of them."""
    client = Client(Coordinators(denied=denied, silent=silent))
    found = [each.name for each in client.fetch_groups(lambda _name: True, denied_ok=True)]
    assert found == sorted({"classic", "old", "new", "gone", "streams"} - set(denied))
    assert client.denied == sorted(denied) and client.now == 0, "nobody waits for the right"


def test_a_group_that_is_asked_for_and_denied_is_refused_at_once():
    client = Client(Coordinators(denied=["classic"]))
    with pytest.raises(AdminError, match="grant it Describe on the groups"):
        client.fetch_groups({"classic"}.__contains__)
    assert client.now == 0

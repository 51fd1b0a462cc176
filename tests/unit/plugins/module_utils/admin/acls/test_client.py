# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of ACLs: what is told of a batch that nobody answered, or for which no time was left."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.client import (
    LATE,
    AclClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.items import Binding
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    FinalError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

BINDINGS = [
    Binding("topic", f"t{number}", "literal", "User:app", "allow", "read", "*")
    for number in range(1200)
]


class Silent(AclClient):
    """Gives no answer to the batch with this number, but may do it; each batch takes ten seconds."""

    def __init__(self, batch, done=True, error=AdminError):
        super().__init__(Connection((("h", 1),)), clock=lambda: self.now)
        self.now, self.batch, self.done, self.error = 0.0, batch, done, error
        self.there, self.sent, self.given = set(), 0, []

    def ask(self, what, call, rights="", seconds=0.0):
        self.sent += 1
        self.now += 10
        self.given.append(seconds)
        silent = self.sent == self.batch
        if not silent or self.done:
            self.there.update(call.keywords["bindings"])
        if silent:
            raise self.error(Problem("cluster.read", "nobody answered", ""))
        return [(0, "")] * len(call.keywords["bindings"])

    def fetch_bindings(self, broker=None):
        return frozenset(self.there)


@pytest.mark.parametrize(("done", "failed"), [(True, 0), (False, 500)])
def test_what_was_done_without_an_answer_has_not_failed(done, failed):
    client = Silent(2, done)
    failures = client.create(BINDINGS, 1000.0)
    assert len(failures) == failed and len(client.there) == 1200 - failed
    assert {each.subject for each in failures} == {
        each.subject for each in BINDINGS if each not in client.there
    }


def test_without_the_right_nothing_is_asked_again():
    failures = Silent(1, done=True, error=FinalError).create(BINDINGS, 1000.0)
    assert len(failures) == 500


def test_after_the_deadline_the_rest_is_told_and_not_sent():
    client = Silent(0)
    failures = client.create(BINDINGS, 15.0)
    assert client.sent == 2 and client.given == [15.0, 5.0]
    assert [each.error for each in failures] == [LATE] * 200
    assert [each.subject for each in failures] == [each.subject for each in BINDINGS[1000:]]

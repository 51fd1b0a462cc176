# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of ACLs: what is told of a batch that nobody answered, or for which no time was left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.client import (
    LATE,
    UNKNOWN,
    AclClient,
    _description,
    in_dispute,
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
        super().__init__(Connection((("h", 1),)), clock=lambda: self.now, sleep=self._pass)
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

    def _pass(self, seconds):
        self.now += seconds

    def fetch_views(self, concerned):
        return {1: frozenset(), 2: frozenset(self.there)}


@pytest.mark.parametrize(("done", "failed"), [(True, 0), (False, 500)])
def test_what_was_done_without_an_answer_has_not_failed(done, failed):
    client = Silent(2, done)
    failures = client.create(BINDINGS, 1000.0)
    assert len(failures) == failed and len(client.there) == 1200 - failed
    assert {each.subject for each in failures} == {
        each.subject for each in BINDINGS if each not in client.there
    }
    assert all(each.error.endswith(UNKNOWN) for each in failures)


class AtWork(Silent):
    """Has been given the first batch, does ten of it a second, and answers too late."""

    def ask(self, what, call, rights="", seconds=0.0):
        self.bindings = call.keywords["bindings"]
        raise AdminError(Problem("cluster.read", "nobody answered", ""))

    def fetch_views(self, concerned):
        return {1: frozenset(self.bindings[: int(self.now * 10)]), 2: frozenset()}


def test_a_broker_that_is_at_work_is_watched_also_after_the_deadline():
    client = AtWork(1)
    assert client.create(BINDINGS[:500], 7.0) == [] and 50 <= client.now < 51


class Views(Silent):
    """What two brokers say at each look; the last one stays."""

    def __init__(self, *looks):
        super().__init__(0)
        self.looks = list(looks)

    def fetch_views(self, concerned):
        first, second = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return {1: frozenset(BINDINGS[:first]), 2: frozenset(BINDINGS[:second])}


def test_views_that_differ_are_read_again_until_they_do_not():
    views = Views((3, 5), (4, 5), (5, 5)).fetch_agreed_views(BINDINGS)
    assert not in_dispute(views) and len(views[1]) == 5
    client = Views((3, 5))
    assert in_dispute(client.fetch_agreed_views(BINDINGS, 7.0)) and 7 <= client.now < 8
    client = Views((3, 6), (4, 6), (4, 6))
    assert in_dispute(client.fetch_agreed_views(BINDINGS)) and 30 <= client.now < 31, "no closer"


def test_who_only_looks_waits_for_what_it_has_chosen_and_as_long_as_for_an_answer():
    chosen = frozenset(BINDINGS[:3])
    client = Views((3, 6))
    views = client.look(lambda bindings: bindings & chosen)
    assert not in_dispute(views) and client.now == 0, "the rest may differ"
    client = Views((2, 6))
    seconds = client.connection.timeout
    views = client.look(lambda bindings: bindings & chosen)
    assert in_dispute(views) == {BINDINGS[2]} and seconds <= client.now < seconds + 1


def test_brokers_are_asked_for_what_bindings_have_in_common():
    request = _description(BINDINGS[:2])
    assert (request.resource_type_filter, request.resource_name_filter) == (2, None)
    assert (request.pattern_type_filter, request.principal_filter) == (3, "User:app")
    assert (request.operation, request.permission_type, request.host_filter) == (3, 3, "*")
    other = replace(
        BINDINGS[0], resource_type="group", principal="User:other", operation="describe"
    )
    request = _description([BINDINGS[0], other])
    assert (request.resource_type_filter, request.resource_name_filter) == (1, "t0")
    assert (request.principal_filter, request.operation) == (None, 1)
    assert _description(()).pattern_type_filter == 1


def test_without_the_right_nothing_is_asked_again():
    failures = Silent(1, done=True, error=FinalError).create(BINDINGS, 1000.0)
    assert len(failures) == 500


def test_after_the_deadline_the_rest_is_told_and_not_sent():
    client = Silent(0)
    failures = client.create(BINDINGS, 15.0)
    assert client.sent == 2 and client.given == [15.0, 5.0]
    assert [each.error for each in failures] == [LATE] * 200
    assert [each.subject for each in failures] == [each.subject for each in BINDINGS[1000:]]

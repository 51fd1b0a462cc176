# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of drills: why one has ended is told, and so is why there is nothing for them to do."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import (
    client_load,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    Ticker,
    filled,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_processes import (
    Pair,
    Process,
    ended,
    take_over,
)


class Own(Pair):
    """The first tells something and is killed; then the second does."""

    def __init__(self, body):
        self.heard = []
        super().__init__(body)

    def _of_first(self, what, told=None):
        self.heard.append(what)
        self.kill_first()

    def _of_second(self, what, told=None):
        self.heard.append(what)


def works(inside):
    inside.tell("working")
    while inside.going():
        inside.pause(0.1)


REFUSED = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"


def is_refused(inside):
    raise ValueError(REFUSED)


def is_denied(inside):
    raise PermissionError(REFUSED)


@pytest.mark.parametrize("body", [is_refused, is_denied])
def test_why_a_process_has_ended_is_told(body):
    pairs = [Own(works), Own(body)]
    with ended(pairs), pytest.raises(AdminError) as error:
        take_over(pairs, lambda each: False, "orders", "not every process has written in time")
    assert "orders: a process has ended: " in str(error.value) and REFUSED in str(error.value)


def test_why_the_one_that_takes_over_has_ended_is_told():
    pair = Own(works)
    with ended([pair]):
        pair.second.end(kill=True)
        pair.second = Process(is_refused, pair._of_second)
        with pytest.raises(AdminError, match=REFUSED):
            take_over([pair], lambda each: False, "orders", "not in time")
    assert pair.heard == ["working"]


def test_two_processes_take_over_from_each_other():
    pairs = [Own(works)]
    with ended(pairs):
        take_over(pairs, lambda each: len(each.heard) == 2, "orders", "not in time")
    assert pairs[0].heard == ["working", "working"] and not pairs[0].trouble


def test_a_topic_that_takes_no_record_says_so(monkeypatch):
    monkeypatch.setattr(client_load, "ANSWER_SECONDS", 0.2)
    nowhere = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    soon = {"delivery.timeout.ms": 300}
    with pytest.raises(AdminError, match=r"orders: no record was acknowledged.*MSG_TIMED_OUT"):
        filled(Ticker(nowhere, "orders", interval=0.01, extra=soon), "orders", 5)

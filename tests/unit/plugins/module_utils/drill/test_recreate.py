# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A topic that is made anew: what its clients were refused is counted, on either side of the change."""

from __future__ import annotations

import collections
import contextlib
from types import SimpleNamespace

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import client_recreate
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.cast import cast
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import drill_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_recreate import (
    NEW_FROM,
    recreate,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    GroupSeen,
    Seen,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import (
    AS_EXPECTED,
    NOT_EXPECTED,
    judged,
)


class Reads:
    """A group to which everything comes."""

    came = ()

    def __init__(self, *_given):
        pass

    def has(self, _records):
        return True

    def close(self):
        pass


def ticker(first, records, refused):
    """A producer some of whose sends were refused, before and after."""

    class Writes:
        def __init__(self, *_given, **named):
            start = named["first"]
            told = refused if (start >= NEW_FROM) == (first == NEW_FROM) else {}
            self.refused = collections.Counter(told)
            good = [str(start + each) for each in range(records)]
            bad = [str(start + records + each) for each in range(sum(told.values()))]
            self.sent = dict.fromkeys([*good, *bad], 1)
            self.acknowledged = dict.fromkeys(good, 2)

        @property
        def sent_and_acknowledged(self):
            return {each: self.sent[each] for each in self.acknowledged}

        def stop(self):
            pass

    return Writes


@pytest.mark.parametrize("first", [0, NEW_FROM])
@pytest.mark.parametrize(
    "refused, verdict, told",
    [
        ({}, AS_EXPECTED, ()),
        (
            {"UNKNOWN_TOPIC_OR_PART": 3},
            NOT_EXPECTED,
            ("sends failed: 3 UNKNOWN_TOPIC_OR_PART",),
        ),
    ],
)
def test_what_was_refused_is_told(monkeypatch, first, refused, verdict, told):
    monkeypatch.setattr(client_recreate, "Reader", Reads)
    monkeypatch.setattr(client_recreate, "Ticker", ticker(first, 100, refused))
    monkeypatch.setattr(client_recreate, "librdkafka_settings", lambda _connection: {})
    monkeypatch.setattr(client_recreate, "groups_seen", lambda *_given: (GroupSeen("away", 100),))
    client = SimpleNamespace(remove_topics=lambda _topics: None, make=lambda *_given: None)
    monkeypatch.setattr(
        client_recreate, "own_topics", lambda *_given: contextlib.nullcontext(client)
    )
    found = recreate(None, "t", [[1]], {}, ["reading", "away"], lambda _written: ())
    assert (found["sent"], found["acknowledged"]) == (200 + sum(refused.values()), 100)
    row = judged(
        cast(drill_of("topic_recreated"), [1, 2, 3], 1), "", Seen.from_dict(found), 0, None
    )
    assert (row.verdict, row.wrong) == (verdict, told)

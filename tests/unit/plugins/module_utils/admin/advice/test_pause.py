# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds without a leader: what is estimated, and what is made of looks at a broker that dies."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.bounds import Load
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.pause import (
    Watch,
    estimates,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Partition,
    Snapshot,
    Topic,
)

LOAD = Load((1, 2), 1000, {1: 900, 2: 900}, {1: 600, 2: 400}, {(1, 2): 500, (2, 1): 250})


@pytest.mark.parametrize(
    ("kraft", "settings", "seconds"),
    [
        (False, {"zookeeper.session.timeout.ms": "6000"}, [6, 3, 2, 0.01]),
        (False, {}, [18, 3, 2, 0.01]),
        (None, {}, [18, 3, 2, 0.01]),
        (True, {"broker.session.timeout.ms": "4000"}, [4, 3, 0.01]),
        (True, {}, [9, 3, 0.01]),
    ],
)
def test_estimates(kraft, settings, seconds):
    found = estimates(LOAD, settings, kraft)
    assert [each.seconds for each in found] == pytest.approx(seconds)
    told = found[0].to_dict()
    assert (told["year"] is None) == bool(settings) and told["source"]


def test_more_fetchers_copy_side_by_side():
    assert estimates(LOAD, {}, False, 4)[-1].seconds == pytest.approx(0.0025)


def seen(*leaders):
    """A Snapshot of one topic whose partitions are led by these."""
    parts = tuple(Partition(n, leader, (1, 2), (1, 2)) for n, leader in enumerate(leaders))
    return Snapshot(topics={"t": Topic("t", parts)})


def watch(count=2):
    """A Watch of broker 1, which leads so many partitions."""
    return Watch(1, frozenset(("t", number) for number in range(count)))


def test_the_first_and_the_last_partition_from_death_on():
    found = watch()
    assert not found.probed(1.0, True)
    assert found.probed(3.0, False)
    assert not found.seen(3.1, False, seen(1, 1)), "its own word is no leader"
    assert not found.seen(4.0, False, seen(None, 2))
    assert found.probed(5.0, False)
    assert found.seen(6.5, False, seen(2, 2))
    assert found.to_dict() == {
        "broker": 1,
        "partitions": 2,
        "seconds_first": 1.0,
        "seconds_last": 3.5,
        "without_leader": [],
    }


def test_one_refused_connection_is_no_death():
    found = watch()
    assert found.probed(3.0, False)
    assert not found.probed(3.5, True) and found.died is None


def test_a_broker_that_comes_back_before_anybody_takes_over_leads_again():
    found = watch()
    found.probed(3.0, False)
    assert found.probed(8.0, True), "it was away"
    assert found.seen(8.5, True, seen(1, 1)) and found.to_dict()["seconds_last"] == 5.5


def test_partitions_that_nobody_can_lead_are_named():
    found = watch()
    found.probed(3.0, False)
    assert not found.seen(4.0, False, seen(2, None)), "it may be about to get one"
    assert not found.seen(4.9, False, seen(2, 1)), "somebody saw the dead one again"
    assert not found.seen(5.0, False, seen(2, None)) and not found.seen(5.9, False, seen(2, None))
    assert found.seen(6.0, False, seen(2, None))
    told = found.to_dict()
    assert told["without_leader"] == ["t-1"] and told["seconds_last"] == 1.0


def test_a_deleted_topic_is_waited_for_no_longer_than_the_deadline():
    found = watch()
    found.probed(3.0, False)
    assert not found.seen(4.0, False, Snapshot())
    assert found.to_dict()["seconds_first"] is None

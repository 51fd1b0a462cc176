# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody deletes a topic while all are read: of the others everything is told, and of it no falsehood."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.client import (
    GroupsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.records.resource import Records
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.client import (
    RetentionClient,
)
from tests.support.outside import wait_until
from tests.support.readers import commit, create, start_of, write


class Gone:
    """A topic that is deleted once, as somebody else does; every broker has forgotten it then."""

    def __init__(self, secured, name):
        self._secured, self.name, self.here = secured, f"{name}.gone", f"{name}.here"
        self.there = True

    def delete(self):
        """The first time only: modules ask again and again."""
        if self.there:
            self.there = False
            item = {"name": self.name, "state": "absent"}
            done = self._secured.run("kafka_topics", topics=[item], allow=["delete"])
            assert done.changed and not done.failed, done.msg


@pytest.fixture
def gone(secured, admin, name):
    """That topic and another one, of nine records each."""
    found = Gone(secured, name)
    for each in (found.name, found.here):
        create(secured, admin, each)
        write(secured.client_settings(), each, {0: 9})
    return found


def test_lag_is_told_of_the_topics_that_are_left(secured, gone, name, monkeypatch):
    commit(secured.client_settings(), name, {(gone.name, 0): 2, (gone.here, 0): 4})
    monkeypatch.setattr(GroupsClient, "pause", lambda _client, _seconds: gone.delete())
    told = secured.run("kafka_consumer_groups_info", groups=[name], sample_seconds=2)
    assert not told.failed and not gone.there, told.values
    (group,) = told.groups
    found = {each["topic"]: each for each in group["partitions"]}
    assert found[gone.here]["lag"] == 5 and found[gone.here]["status"] == "STOP"
    # What it has committed for the topic goes with the topic, a moment later.
    assert found.get(gone.name, {}).get("lag") is None
    assert group["lag"] == 5


def test_records_are_counted_of_the_topics_that_are_left(secured, gone, name, monkeypatch):
    really = RetentionClient.fetch_ends

    def fetch_ends(client, snapshot, names):
        gone.delete()
        return really(client, snapshot, names)

    monkeypatch.setattr(RetentionClient, "fetch_ends", fetch_ends)
    told = secured.run("kafka_topics_info", patterns=[f"{name}[.].*"])
    records = {each["name"]: each["records"] for each in told.topics}
    assert records == {gone.name: None, gone.here: 9}, told.values
    assert not told.values.get("warnings")


def test_what_was_deleted_of_the_others_is_told(secured, admin, gone, monkeypatch):
    """It goes when the records of both are gone, before the look that follows."""
    really = Records.apply

    def apply(resource, changes, deadline):
        failures = really(resource, changes, deadline)
        gone.delete()
        return failures

    monkeypatch.setattr(Records, "apply", apply)
    topics = [{"name": each, "before_offset": 6} for each in (gone.name, gone.here)]
    done = secured.run("kafka_records", topics=topics, allow=["delete_records"])
    assert done.changed and not done.failed and done.records == 12, done.values
    assert start_of(admin, gone.here) == 6


def test_a_group_is_not_moved_on_half_of_what_is_there(secured, gone, name, monkeypatch):
    """Between the list of topics and their ends; told as what it is, and nothing is changed."""
    commit(secured.client_settings(), name, {(gone.name, 0): 2, (gone.here, 0): 4})
    really = GroupsClient.fetch_both_ends

    def fetch_both_ends(client, keys, first=True):
        gone.delete()
        return really(client, keys, first)

    monkeypatch.setattr(GroupsClient, "fetch_both_ends", fetch_both_ends)
    item = {"name": name, "to": "latest"}
    told = secured.run("kafka_consumer_groups", groups=[item], allow=["skip"])
    assert told.failed and told.changed is False, told.values
    assert f"{gone.name}-0 was deleted at this moment" in told.msg

    def left():
        again = secured.run("kafka_consumer_groups", groups=[item], allow=["skip"])
        return not again.failed and again.changed

    wait_until(left, 30, "its offsets for the topic are forgotten")

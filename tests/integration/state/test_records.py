# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_records against real logs: what is deleted is what was said, and nothing else."""

from __future__ import annotations

import time

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import connection_from
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.records.client import (
    RecordsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.records.resource import Records
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import reconcile
from tests.support.outside import wait_until
from tests.support.readers import allow, commit, create, start_of, write

CONSENT = ["delete_records"]


def records(secured, *topics, check=False, allow=(), **options):
    """The module."""
    return secured.run("kafka_records", check, topics=list(topics), allow=list(allow), **options)


def starts(secured):
    """(topic, partition) -> first offset, by Kafka's own tool."""
    text = secured.tool("org.apache.kafka.tools.GetOffsetShell", "--time", "-2")
    rows = (line.split(":") for line in text.split())
    return {(name, int(part)): int(offset) for name, part, offset in rows}


def test_records_before_an_offset_are_deleted_with_consent(secured, admin, name):
    create(secured, admin, name, 2)
    write(secured.client_settings(), name, {0: 100, 1: 10}, size=1000)
    item = {"name": name, "partitions": [0], "before_offset": 40}
    refused = records(secured, item)
    assert refused.failed and refused.checks == [("records.delete", name)]
    assert "40 records, about " in refused.msg and " KiB on disk would be deleted" in refused.msg
    checked = records(secured, item, check=True, allow=CONSENT)
    assert checked.changed and checked.records == 40 and start_of(admin, name) == 0
    done = records(secured, item, allow=CONSENT)
    assert done.changed and done.plan == checked.plan and done.diff == checked.diff
    assert done.diff["after"][f"{name}-0"]["first_offset"] == 40
    found = starts(secured)
    assert (found[(name, 0)], found[(name, 1)]) == (40, 0)
    assert records(secured, item).changed is False


def test_by_time_and_all(secured, admin, name):
    settings = secured.client_settings()
    create(secured, admin, name, 2)
    now_ms = int(time.time() * 1000)
    write(settings, name, {0: 30, 1: 30}, timestamp=now_ms - 7_200_000)
    write(settings, name, {0: 5}, timestamp=now_ms)
    done = records(secured, {"name": name, "before_time": "1h"}, allow=CONSENT)
    assert done.changed and done.records == 60
    assert (start_of(admin, name), start_of(admin, name, 1)) == (30, 30)
    done = records(secured, {"name": name, "all": True}, allow=CONSENT)
    assert done.kinds == [("delete_records", f"{name}-0")] and start_of(admin, name) == 35
    assert records(secured, {"name": name, "all": True}).changed is False
    write(settings, name, {0: 1})
    assert start_of(admin, name) == 35, "the topic goes on"


def test_what_a_group_has_not_read_is_lost_and_told_so(secured, admin, name):
    """The two modules agree."""
    create(secured, admin, name)
    write(secured.client_settings(), name, {0: 20})
    commit(secured.client_settings(), name, {(name, 0): 5})
    assert records(secured, {"name": name, "before_offset": 12}, allow=CONSENT).changed
    (group,) = secured.run("kafka_consumer_groups_info", groups=[name]).groups
    assert (group["lost"], group["lag"]) == (7, 15)


def test_refusals_change_nothing(secured, admin, name):
    compacted = f"{name}-compacted"
    create(secured, admin, name)
    create(secured, admin, compacted, cleanup_policy="compact")
    write(secured.client_settings(), name, {0: 5})
    refused = records(
        secured,
        {"name": name, "all": True},
        {"name": compacted, "all": True},
        {"name": "nothing-here", "all": True},
        {"name": "__consumer_offsets", "all": True},
        allow=CONSENT,
    )
    assert refused.failed and not refused.changed
    found = {(check, *subjects) for check, *subjects in refused.checks}
    assert {
        ("records.compacted", compacted),
        ("records.unknown_topic", "nothing-here"),
    } <= found and any(subject == "__consumer_offsets" for _check, subject in found)
    assert start_of(admin, name) == 0


def test_one_topic_without_the_right_is_named_and_the_other_is_done(secured, admin, name):
    other = f"{name}-other"
    for each in (name, other):
        create(secured, admin, each)
        write(secured.client_settings(), each, {0: 5})
        allow(
            secured,
            ("topic", each, "describe"),
            ("topic", each, "describe_configs"),
        )
    allow(secured, ("topic", name, "delete"))
    items = [{"name": each, "all": True} for each in (name, other)]

    def visible():
        result = records(secured, *items, check=True, allow=CONSENT, user="team")
        return not result.failed and len(result.plan["changes"]) == 2

    wait_until(visible, 30, "the rights are known to all brokers")
    partly = records(secured, *items, allow=CONSENT, user="team")
    assert partly.failed and partly.changed and partly.records == 5
    (failure,) = partly.failed_items
    assert (failure["name"], failure["code"]) == (f"{other}-0", "TOPIC_AUTHORIZATION_FAILED")
    assert "the user needs Delete on the topic" in failure["error"]
    assert (start_of(admin, name), start_of(admin, other)) == (5, 0)


def test_requests_do_not_depend_on_the_number_of_partitions(secured, admin, name):
    counts = {}
    for number in (2, 100):
        topic = f"{name}-{number}"
        create(secured, admin, topic, number)
        write(secured.client_settings(), topic, dict.fromkeys(range(number), 2))
        client = RecordsClient(connection_from(secured.parameters()))
        item = {"name": topic, "before_offset": 1, "all": False}
        item.update(before_time=None, partitions=None)
        resource = Records(client, {"topics": [item], "allow": CONSENT, "allow_internal": []})
        resource.connect()
        outcome = reconcile(resource, False, 60)
        assert len(outcome.changed) == number and not outcome.failures
        counts[number] = {key: count for key, count in client.requests.items() if key != "metadata"}
    assert counts[2] == counts[100] and counts[100]["delete_records"] == 1

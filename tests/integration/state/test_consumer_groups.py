# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_consumer_groups against real groups: moved, refused, deleted, as Kafka's own tool sees it."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import connection_from
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.client import (
    GroupsClient,
)
from tests.support.outside import wait_until
from tests.support.readers import Reader, allow, commit, create, told_by_kafka, write

ALL = ["reread", "skip", "delete"]
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def groups(secured, *items, check=False, allow=(), **options):
    """The module."""
    return secured.run(
        "kafka_consumer_groups", check, groups=list(items), allow=list(allow), **options
    )


def committed(secured, group):
    """(topic, partition) -> committed, by Kafka's own tool."""
    return {key: each[0] for key, each in told_by_kafka(secured, group).items()}


@pytest.fixture
def stopped(secured, admin, name):
    """A group that read 30 and 50 of 60 records, named as its topic."""
    settings = secured.client_settings()
    create(secured, admin, name, 2)
    write(settings, name, {0: 60, 1: 60})
    commit(settings, name, {(name, 0): 30, (name, 1): 50})
    return name


def first_read(secured, group, topic):
    """{partition: offset of the first record that a member of the group reads}."""
    settings = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "error"}
    consumer = Consumer({**secured.client_settings(), **settings})
    consumer.subscribe([topic])
    found = {}
    end = time.monotonic() + 30
    try:
        while len(found) < 2 and time.monotonic() < end:
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                found.setdefault(message.partition(), message.offset())
    finally:
        consumer.close()
    return found


def test_a_group_goes_back_with_consent_and_reads_again_from_there(secured, stopped):
    back = {"name": stopped, "to": "earliest"}
    refused = groups(secured, back)
    assert refused.failed and refused.checks == [("groups.reread", stopped)]
    assert "80 records would be read again" in refused.msg
    assert committed(secured, stopped) == {(stopped, 0): 30, (stopped, 1): 50}

    checked = groups(secured, back, check=True, allow=["reread"])
    assert checked.changed and committed(secured, stopped) == {(stopped, 0): 30, (stopped, 1): 50}
    assert checked.diff["before"] == {
        f"{stopped} {stopped}-0": {"offset": 30},
        f"{stopped} {stopped}-1": {"offset": 50},
    }
    assert checked.diff["after"][f"{stopped} {stopped}-1"] == {
        "offset": 0,
        "at stake": "50 records would be read again",
    }
    done = groups(secured, back, allow=["reread"])
    assert done.changed and done.plan == checked.plan and done.diff == checked.diff
    assert committed(secured, stopped) == {(stopped, 0): 0, (stopped, 1): 0}
    assert first_read(secured, stopped, stopped) == {0: 0, 1: 0}
    assert groups(secured, back).changed is False

    # what was committed before is returned as the option that takes it back
    restored = groups(secured, *done.before, allow=["skip"])
    assert restored.changed and restored.before[0]["offsets"][0]["offset"] == 0
    assert committed(secured, stopped) == {(stopped, 0): 30, (stopped, 1): 50}


def test_forward_by_offset_shift_time_and_file_as_kafkas_own_tool_does_it(
    secured, stopped, tmp_path
):
    settings = secured.client_settings()
    assert (
        "10 records would be skipped"
        in groups(
            secured, {"name": stopped, "to": "latest", "topics": [stopped], "partitions": [1]}
        ).msg
    )
    done = groups(secured, {"name": stopped, "shift": 5}, allow=["skip"])
    assert done.changed and committed(secured, stopped) == {(stopped, 0): 35, (stopped, 1): 55}
    assert groups(secured, {"name": stopped, "offset": 40}, allow=ALL).changed
    assert committed(secured, stopped) == {(stopped, 0): 40, (stopped, 1): 40}

    time.sleep(0.05)
    moment = int(time.time() * 1000)
    write(settings, stopped, {0: 3, 1: 3}, timestamp=moment + 5)
    assert groups(secured, {"name": stopped, "time": str(moment)}, allow=ALL).changed
    mine = committed(secured, stopped)
    secured.tool(
        TOOL, "--reset-offsets", "--group", stopped, "--all-topics", "--to-earliest", "--execute"
    )
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment / 1000))
    secured.tool(
        *(TOOL, "--reset-offsets", "--group", stopped, "--all-topics", "--execute"),
        *("--to-datetime", f"{stamp}.{moment % 1000:03d}"),
    )
    assert committed(secured, stopped) == mine == {(stopped, 0): 60, (stopped, 1): 60}

    exported = secured.tool(
        *(TOOL, "--reset-offsets", "--group", stopped, "--all-topics", "--dry-run", "--export"),
        "--to-current",
    )
    lines = [line for line in exported.splitlines() if line.count(",") >= 2]
    (tmp_path / "offsets.csv").write_text("\n".join(lines), encoding="utf-8")
    assert groups(secured, {"name": stopped, "to": "earliest"}, allow=ALL).changed
    item = {"name": stopped, "src": str(tmp_path / "offsets.csv")}
    assert groups(secured, item, allow=ALL).changed
    assert committed(secured, stopped) == mine
    assert groups(secured, item).changed is False


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_is_read_with_is_refused_and_its_members_are_named(
    secured, admin, stopped, protocol
):
    if protocol == "consumer" and not secured.bare.kraft:
        pytest.skip("Kafka 4 has this protocol")
    other = f"{stopped}-other"
    create(secured, admin, other)
    write(secured.client_settings(), other, {0: 2})
    commit(secured.client_settings(), stopped, {(other, 0): 1})
    with Reader(secured.client_settings(), stopped, [stopped], protocol=protocol):
        for item in ({"name": stopped, "to": "earliest"}, {"name": stopped, "state": "absent"}):
            refused = groups(secured, item, allow=ALL)
            assert refused.failed and refused.checks == [("groups.active", stopped)]
            assert f"reader-{stopped} at 127.0.0.1" in refused.msg and not refused.changed
        # who joins between plan and change makes the broker refuse
        client = GroupsClient(connection_from(secured.parameters()))
        client.connect()
        key = (stopped, 0)
        late = client.alter_offsets({stopped: {key: 1}}, time.monotonic() + 20)
        assert late[(stopped, key)][1] in ("UNKNOWN_MEMBER_ID", "STALE_MEMBER_EPOCH")
        late = client.forget_offsets({stopped: [key]})
        assert late[(stopped, key)][1] == "GROUP_SUBSCRIBED_TO_TOPIC"
        assert client.delete_groups([stopped])[stopped][1] == "NON_EMPTY_GROUP"
        # a topic that nobody reads any more
        gone = {"name": stopped, "topics": [other], "state": "absent"}
        assert groups(secured, gone, allow=ALL).changed
        assert (other, 0) not in committed(secured, stopped)
        assert groups(secured, gone).changed is False


def test_offsets_of_a_topic_and_whole_groups_are_deleted(secured, admin, stopped):
    other = f"{stopped}-other"
    create(secured, admin, other)
    write(secured.client_settings(), other, {0: 2})
    commit(secured.client_settings(), stopped, {(other, 0): 1})
    forget = {"name": stopped, "topics": [stopped], "partitions": [0], "state": "absent"}
    assert groups(secured, forget).checks == [("groups.delete", stopped)]
    assert groups(secured, forget, check=True, allow=["delete"]).changed
    done = groups(secured, forget, allow=["delete"])
    assert done.kinds == [("forget", f"{stopped} {stopped}-0")]
    assert committed(secured, stopped) == {(stopped, 1): 50, (other, 0): 1}

    delete = {"name": stopped, "state": "absent"}
    nobody = {"name": f"{stopped}-nobody", "state": "absent"}
    assert groups(secured, delete, nobody, check=True, allow=["delete"]).changed
    done = groups(secured, delete, nobody, allow=["delete"])
    assert done.changed and done.kinds == [("delete", stopped)]
    assert done.before[0]["offsets"] == [
        {"topic": stopped, "partition": 1, "offset": 50},
        {"topic": other, "partition": 0, "offset": 1},
    ]
    assert stopped not in secured.tool(TOOL, "--list").split()
    again = groups(secured, delete, nobody)
    assert not again.failed and again.changed is False


def test_a_group_is_made_before_its_consumer_starts(secured, stopped):
    new = {"name": f"{stopped}-new", "topics": [stopped], "to": "latest"}
    assert groups(secured, new).changed
    assert committed(secured, new["name"]) == {(stopped, 0): 60, (stopped, 1): 60}
    missing = groups(secured, {"name": f"{stopped}-mistyped", "to": "latest"})
    assert missing.failed and missing.checks == [("groups.no_offsets", f"{stopped}-mistyped")]


def test_a_name_that_yaml_reads_as_something_else_makes_no_group(secured, stopped):
    """Of `name: 0123` there would be offsets for a group 83, and nobody reads with that."""
    for name, words in ((83, "the number 83"), (True, "the boolean true")):
        refused = groups(secured, {"name": name, "topics": [stopped], "to": "latest"})
        assert refused.failed and refused.checks == [("groups.bad_item", str(name))]
        assert words in refused.msg and "write the name in quotes" in refused.msg
    listed = secured.tool(TOOL, "--list").split()
    assert not {"83", "True"} & set(listed) and stopped in listed


def test_one_refusal_changes_nothing_and_bad_files_are_refused(secured, stopped, tmp_path):
    both = groups(
        secured,
        {"name": stopped, "to": "earliest"},
        {"name": f"{stopped}-new", "topics": ["nothing-here"], "to": "latest"},
        allow=ALL,
    )
    assert both.failed and [check for check, *_rest in both.checks] == ["groups.unknown_topic"]
    assert committed(secured, stopped)[(stopped, 0)] == 30
    for path in (tmp_path / "missing.csv", tmp_path):
        failed = groups(secured, {"name": stopped, "src": str(path)})
        assert failed.failed and "[groups.src]" in failed.msg


def test_rights_and_a_real_refusal_of_the_broker(secured, admin, stopped):
    """One group may be moved, the other only be seen: the first is moved, the second is named."""
    seen = f"{stopped}-seen"
    commit(secured.client_settings(), seen, {(stopped, 0): 30, (stopped, 1): 30})
    allow(
        secured,
        ("topic", stopped, "read"),
        ("group", stopped, "read"),
        ("group", seen, "describe"),
    )
    items = [{"name": each, "topics": [stopped], "offset": 20} for each in (stopped, seen)]

    def visible():
        result = groups(secured, *items, check=True, allow=ALL, user="team")
        return not result.failed and len(result.plan["changes"]) == 4

    wait_until(visible, 30, "the rights are known to all brokers")
    partly = groups(secured, *items, allow=ALL, user="team")
    assert partly.failed and partly.changed
    names = {(each["name"], each["kind"]) for each in partly.failed_items}
    assert names == {(f"{seen} {stopped}-{number}", "reset") for number in (0, 1)}
    for failure in partly.failed_items:
        assert failure["code"] == "GROUP_AUTHORIZATION_FAILED"
        assert "Read on the group" in failure["error"]
    assert committed(secured, stopped) == {(stopped, 0): 20, (stopped, 1): 20}
    assert committed(secured, seen) == {(stopped, 0): 30, (stopped, 1): 30}

    denied = groups(secured, {"name": stopped, "state": "absent"}, allow=ALL, user="team")
    assert denied.failed and not denied.changed
    assert denied.failed_items[0]["code"] == "GROUP_AUTHORIZATION_FAILED"
    assert "the user needs Delete on the group" in denied.msg


def test_a_hundred_groups_are_moved_by_one_call(secured, admin, name):
    create(secured, admin, name, 3)
    write(secured.client_settings(), name, dict.fromkeys(range(3), 3))
    items = [{"name": f"{name}-{number}", "topics": [name], "offset": 2} for number in range(100)]
    done = groups(secured, *items)
    assert done.changed and len(done.plan["changes"]) == 300
    assert groups(secured, *items).changed is False
    absent = [{"name": item["name"], "state": "absent"} for item in items]
    assert groups(secured, *absent, allow=["delete"]).changed
    assert groups(secured, *absent).changed is False

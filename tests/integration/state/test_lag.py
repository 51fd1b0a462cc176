# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_consumer_groups_info against real groups: lag, status by trend, and what retention deletes when."""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import AdminClient

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import connection_from
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups import (
    info as groups_info,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.client import (
    GroupsClient,
)
from tests.support.outside import wait_until
from tests.support.readers import (
    Reader,
    Writer,
    allow,
    commit,
    create,
    start_of,
    told_by_kafka,
    write,
)
from tests.support.streams_member import StreamsMember


def groups_of(secured, **options):
    """(result, group name -> what is told of it, (group, partition) -> what is told of that)."""
    result = secured.run("kafka_consumer_groups_info", **options)
    assert not result.failed, result.msg
    groups = {group["name"]: group for group in result.groups}
    rows = {
        (name, row["partition"]): row
        for name, group in groups.items()
        for row in group["partitions"]
    }
    return result, groups, rows


def test_lag_is_what_kafkas_own_tool_says_and_the_worst_comes_first(secured, admin, name):
    settings = secured.client_settings()
    create(secured, admin, name, 3)
    # of one age, so that the larger lag is the worse one
    write(settings, name, {0: 50, 1: 50, 2: 50}, timestamp=int(time.time() * 1000))
    behind, done = f"{name}-behind", f"{name}-done"
    commit(settings, behind, {(name, 0): 40, (name, 1): 10, (name, 2): 50})
    commit(settings, done, {(name, 0): 50})
    result, groups, rows = groups_of(secured, match=f"^{name}-")
    assert groups[behind]["lag"] == 50 and groups[done]["lag"] == 0
    assert groups[behind]["state"] == "Empty" and groups[behind]["members"] == []
    mine = {
        (row["topic"], row["partition"]): (row["committed"], row["end"], row["lag"])
        for row in groups[behind]["partitions"]
    }
    assert mine == told_by_kafka(secured, behind)
    assert result.lines[1].split()[:5] == [behind, f"{name}-1", "10", "50", "40"]
    assert result.lines[-1].startswith("1 of 2 groups behind, by 50 records; unread records may be")
    assert rows[(done, 0)]["deleted_in_seconds"] is None
    assert result.changed is False

    (other,) = groups_of(secured, groups=[done, "nobody"])[1]
    assert other == done
    assert groups_of(secured, groups=[done, "nobody"])[0].missing == ["nobody"]


def test_a_member_is_named_and_so_is_one_that_has_committed_nothing(secured, admin, name):
    create(secured, admin, name, 2)
    write(secured.client_settings(), name, {0: 5})
    protocols = ["classic", "consumer"] if secured.bare.kraft else ["classic"]
    for protocol in protocols:
        group = f"{name}-{protocol}"
        with Reader(secured.client_settings(), group, [name], protocol=protocol) as reader:
            wait_until(lambda reader=reader: reader.count == 5, 30, "read")
            _result, groups, rows = groups_of(secured, groups=[group])
        assert (groups[group]["state"], groups[group]["type"]) == ("Stable", protocol)
        assert rows[(group, 0)]["committed"] == 5 and rows[(group, 0)]["lag"] == 0
        assert rows[(group, 1)]["committed"] is None and rows[(group, 1)]["lag"] is None
        assert {row["member"] for row in rows.values()} == {f"reader-{group} at 127.0.0.1"}


def test_status_by_trend_of_real_readers(secured, admin, name):
    """One falls behind, one catches up, one stands still, one is not there, and one goes back."""
    settings = secured.client_settings()
    quiet = f"{name}-quiet"
    for topic in (name, quiet):
        create(secured, admin, topic)
        write(settings, topic, {0: 200})
    slow, swift, still = f"{name}-slow", f"{name}-swift", f"{name}-still"
    gone, back = f"{name}-gone", f"{name}-back"
    for group in (slow, gone, still):
        commit(settings, group, {(name, 0): 10})
    commit(settings, back, {(name, 0): 150})
    with (
        Writer(settings, name, pause=0.02),
        Reader(settings, slow, [name], pause=0.5),
        Reader(settings, swift, [quiet], pause=0),
        Reader(settings, still, [name], stand=1) as standing,
    ):
        wait_until(lambda: standing.count == 1, 30, "stands")

        class Rewinding(GroupsClient):
            """Somebody commits an earlier offset between the first look and the second."""

            def pause(self, seconds):
                commit(settings, back, {(name, 0): 100})
                super().pause(seconds)

        params = {"groups": [slow, swift, still, gone, back], "match": None, "sample_seconds": 3.0}
        client = Rewinding(connection_from(secured.parameters()))
        client.connect()
        told = groups_info.gather(params, client)
    status = {group["name"]: group["partitions"][0]["status"] for group in told["groups"]}
    assert status == {slow: "WARN", swift: "OK", still: "STALL", gone: "STOP", back: "REWIND"}
    of_group = {group["name"]: group["status"] for group in told["groups"]}
    assert of_group == {slow: "WARN", swift: "OK", still: "ERR", gone: "ERR", back: "ERR"}
    order = [line.split()[0] for line in told["lines"][1:5]]
    assert order == [gone, still, back, slow] and "STATUS" in told["lines"][0]


def test_records_are_deleted_when_it_was_told_and_then_they_are_lost(secured, admin, name):
    """Records of two ages; retention deletes the old ones unread, not before it was said, and by then."""
    settings = secured.client_settings()
    create(secured, admin, name, retention_ms=20000, segment_ms=1000)
    now_ms = int(time.time() * 1000)
    write(settings, name, {0: 30}, timestamp=now_ms - 12000)
    write(settings, name, {0: 30}, timestamp=now_ms)
    commit(settings, name, {(name, 0): 10})
    begun = time.monotonic()
    _result, _groups, rows = groups_of(secured, groups=[name])
    row = rows[(name, 0)]
    assert (row["lost"], row["deleted_by"], row["lag"]) == (0, "time", 50)
    assert abs(row["unread_since_ms"] - (now_ms - 12000)) <= 1000
    assert row["deleted_in_seconds"] < row["gone_in_seconds"] < row["deleted_in_seconds"] + 3
    wait_until(lambda: start_of(admin, name) > 10, 90, "deleted")
    real = time.monotonic() - begun
    print(
        f"\ntold {row['deleted_in_seconds']:.1f} to {row['gone_in_seconds']:.1f} s, real {real:.1f} s"
    )
    # A machine under load looks late, never early.
    assert real >= row["deleted_in_seconds"] - 0.1

    result, groups, rows = groups_of(secured, groups=[name])
    row = rows[(name, 0)]
    lost = start_of(admin, name) - 10
    assert row["lost"] == groups[name]["lost"] == lost > 0
    assert f"{lost} lost" in result.lines[1] and "deleted before they were read" in result.lines[-1]


def test_the_limit_of_size_deletes_when_it_was_told(secured, admin, name):
    settings = secured.client_settings()
    create(
        secured,
        *(admin, name),
        retention_ms=-1,
        retention_bytes=4 * 2**20,
        segment_bytes=2**20,
    )
    with Writer(settings, name, size=20000, pause=0.04):
        commit(settings, name, {(name, 0): 0})
        wait_until(lambda: start_of(admin, name) == 0 and _size(secured, name) > 2**20, 60, "grows")
        begun = time.monotonic()
        row = groups_of(secured, groups=[name])[2][(name, 0)]
        assert row["deleted_by"] == "size" and row["lost"] == 0
        wait_until(lambda: start_of(admin, name) > 0, 90, "deleted")
        real = time.monotonic() - begun
    print(
        f"\ntold {row['deleted_in_seconds']:.1f} to {row['gone_in_seconds']:.1f} s, real {real:.1f} s"
    )
    # Written by the clock, 20,000 bytes each 40 ms: the growth is what it was.
    assert 0.5 * row["deleted_in_seconds"] <= real <= 2 * row["gone_in_seconds"] + 5


def _size(secured, name):
    """Bytes of a topic's first partition on the first broker's disk."""
    found = [
        each.stat().st_size
        for each in secured.bare.directory.rglob(f"{name}-0/*.log")
        if each.is_file()
    ]
    return sum(found)


def test_what_nothing_deletes_is_said_not_to_be_deleted(secured, admin, name):
    settings = secured.client_settings()
    for topic, config in (
        (f"{name}-compacted", {"cleanup_policy": "compact"}),
        (f"{name}-endless", {"retention_ms": -1}),
    ):
        create(secured, admin, topic, **config)
        write(settings, topic, {0: 5})
    commit(settings, name, {(f"{name}-compacted", 0): 1, (f"{name}-endless", 0): 1})
    result = secured.run("kafka_consumer_groups_info", groups=[name])
    rows = {row["topic"]: row for row in result.groups[0]["partitions"]}
    assert rows[f"{name}-compacted"]["deleted_by"] == "compacted"
    assert rows[f"{name}-endless"]["deleted_by"] == "unlimited"
    assert [row["deleted_in_seconds"] for row in rows.values()] == [None, None]
    assert [line.split()[5] for line in result.lines[1:3]] == ["never", "never"]


def test_a_user_sees_what_it_may_describe(secured, admin, name):
    settings = secured.client_settings()
    create(secured, admin, name)
    write(settings, name, {0: 5})
    commit(settings, name, {(name, 0): 1})
    assert groups_of(secured, user="team", groups=[name])[0].missing == [name]
    allow(
        secured,
        ("group", name, "describe"),
        ("topic", name, "describe"),
    )

    def seen():
        rows = groups_of(secured, user="team", groups=[name])[2]
        return rows.get((name, 0))

    row = wait_until(seen, 30, "seen")
    assert row["lag"] == 4 and "not told" in row["unknown"] and row["deleted_in_seconds"] is None
    allow(secured, ("topic", name, "describe_configs"))

    def seen_whole():
        row = seen()
        return None if row["unknown"] else row

    row = wait_until(seen_whole, 30, "settings seen")
    assert row["deleted_by"] == "time"


def test_groups_of_others_do_not_hide_the_own_ones(secured, admin, name):
    """Who may Describe the cluster is told the names of all groups, and of those without the right nothing else."""
    settings = secured.client_settings()
    other = f"{name}-other"
    create(secured, admin, name)
    write(settings, name, {0: 5})
    for group in (name, other):
        commit(settings, group, {(name, 0): 1})
    allow(
        secured,
        ("cluster", True, "describe"),
        ("group", name, "describe"),
        *(("topic", name, right) for right in ("describe", "describe_configs")),
    )
    told, groups, rows = groups_of(secured, user="team", match=f"^{name}(-other)?$")
    assert list(groups) == [name] and rows[(name, 0)]["lag"] == 4
    (warning,) = told.values["warnings"]
    assert (
        f"1 group may not be seen by this user, which needs Describe on the groups and on their topics: {other}"
        in str(warning)
    )
    asked = secured.run("kafka_consumer_groups_info", user="team", groups=[other])
    assert asked.failed and "grant it Describe on the groups" in asked.msg, asked.values
    items = [{"name": other, "state": "absent"}]
    refused = secured.run("kafka_consumer_groups", user="team", groups=items, allow=["delete"])
    assert refused.failed and refused.changed is False
    assert "grant it Describe on the groups" in refused.msg


@pytest.mark.parametrize(
    ("options", "check"),
    [
        ({"match": "("}, "[groups.pattern]"),
        ({"sample_seconds": -1}, "[options.range] sample_seconds"),
        ({"sample_seconds": 7200}, "[options.range] sample_seconds"),
    ],
)
def test_bad_input_is_refused(on_kraft, options, check):
    failed = on_kraft.run("kafka_consumer_groups_info", **options)
    assert failed.failed and check in failed.msg


def test_requests_do_not_depend_on_the_number_of_groups_and_partitions(
    secured, admin, name, monkeypatch
):
    """Counted where kafka-python sends, and where our client does."""
    from kafka.net.manager import KafkaConnectionManager

    settings = secured.client_settings()
    sent = []
    original = KafkaConnectionManager.send

    def counted(self, request, *arguments, **named):
        sent.append(type(request).__name__)
        return original(self, request, *arguments, **named)

    monkeypatch.setattr(KafkaConnectionManager, "send", counted)
    counts = {}
    for number in (3, 60):
        topic = f"{name}-{number}"
        create(secured, admin, topic, number)
        write(settings, topic, dict.fromkeys(range(number), 3))
        for group in range(number):
            commit(settings, f"{topic}-{group}", {(topic, part): 1 for part in range(number)})
        sent.clear()
        client = GroupsClient(connection_from(secured.parameters()))
        client.connect()
        params = {"groups": None, "match": f"^{topic}-", "sample_seconds": 0.0}
        told = groups_info.gather(params, client)
        assert sum(len(group["partitions"]) for group in told["groups"]) == number**2
        others = {key: count for key, count in client.requests.items() if key != "metadata"}
        counts[number] = (len(sent), others)
    print(f"\n{counts}")
    assert counts[60][0] <= counts[3][0] + 6, counts  # more coordinators, not more groups
    assert counts[60][1].keys() == counts[3][1].keys()
    assert sum(counts[60][1].values()) <= sum(counts[3][1].values()) + 12, counts


def test_a_group_of_streams_own_protocol(on_kraft, name):
    """Told like any other, but for its members, and moved and deleted once nobody reads with it."""
    admin = AdminClient(on_kraft.client_settings())
    create(on_kraft, admin, name, 2)
    write(on_kraft.client_settings(), name, {0: 9, 1: 4})
    where = on_kraft.bare.bootstrap_servers
    # the first group of a cluster has the topic of offsets made
    commit(on_kraft.client_settings(), f"{name}-other", {(name, 0): 1})
    with StreamsMember(where, name, name):
        pass
    commit(on_kraft.client_settings(), name, {(name, 0): 5, (name, 1): 4})

    def told(**options):
        (group,) = on_kraft.run("kafka_consumer_groups_info", groups=[name], **options).groups
        found = {each["partition"]: (each["lag"], each["status"]) for each in group["partitions"]}
        return group["type"], group["lag"], found

    with StreamsMember(where, name, name):
        assert told(sample_seconds=1) == ("streams", 4, {0: (4, "STALL"), 1: (0, "OK")})
        for item in ({"to": "latest"}, {"state": "absent"}):
            items = [{"name": name, **item}]
            refused = on_kraft.run("kafka_consumer_groups", groups=items, allow=["skip", "delete"])
            assert refused.checks == [("groups.active", name)], refused.values
            assert "its members are not told" in refused.msg and refused.changed is False
    assert told(sample_seconds=1) == ("streams", 4, {0: (4, "STOP"), 1: (0, "OK")})
    items = [{"name": name, "to": "latest"}]
    moved = on_kraft.run("kafka_consumer_groups", groups=items, allow=["skip"])
    assert moved.changed and not moved.failed, moved.values
    assert told()[1] == 0
    assert on_kraft.run("kafka_consumer_groups", groups=items).changed is False
    gone = [{"name": name, "state": "absent"}]
    done = on_kraft.run("kafka_consumer_groups", groups=gone, allow=["delete"])
    assert done.changed and not done.failed, done.values
    listed = on_kraft.tool("org.apache.kafka.tools.streams.StreamsGroupCommand", "--list")
    assert name not in listed.split()
    assert on_kraft.run("kafka_consumer_groups", groups=gone).changed is False

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody else changes the cluster between plan and apply: what is told, what is ours, what is there then."""

from __future__ import annotations

import importlib

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.support.outside import wait_until

ADMIN = "ansible_collections.kafkaops.cluster.plugins.module_utils.admin"


@pytest.fixture
def between(monkeypatch):
    """`between("topics", "Topics", act)`: act runs after the plan and the validation, before the first write."""

    def arrange(package, name, act):
        kind = getattr(importlib.import_module(f"{ADMIN}.{package}.resource"), name)
        really = kind.apply

        def apply(resource, changes, deadline):
            act()
            return really(resource, changes, deadline)

        monkeypatch.setattr(kind, "apply", apply)

    yield arrange
    monkeypatch.undo()


def create(admin, *topics):
    """Topics by (name, partitions), with one replica; all brokers know them."""
    new = [NewTopic(name, count, 1) for name, count in topics]
    for future in admin.create_topics(new).values():
        future.result(30)
    for name, count in topics:
        wait_until(lambda name=name, count=count: partitions(admin, name) == count, 30, "created")


def partitions(admin, name):
    """How many a topic has; 0 if there is none."""
    found = admin.list_topics(timeout=10).topics.get(name)
    return len(found.partitions) if found else 0


def retention(admin, name):
    """What is set, as text."""
    (future,) = admin.describe_configs([ConfigResource("topic", name)]).values()
    return future.result(30)["retention.ms"].value


def test_topics(secured, admin, name, between):
    """Of six changes two are made, three are refused and named, and one the other has made already."""
    made, grown, set_, gone, mine = (
        f"{name}.{word}" for word in "made grown set gone mine".split()
    )
    also = f"{name}.also-set"
    create(admin, (grown, 1), (set_, 1), (gone, 1), (also, 1))

    def act():
        create(admin, (made, 2))
        admin.create_partitions([NewPartitions(grown, 4)])[grown].result(30)
        for future in admin.delete_topics([set_, gone]).values():
            future.result(30)
        wait_until(lambda: not partitions(admin, set_) + partitions(admin, gone), 30, "deleted")

    between("topics", "Topics", act)
    one = {"replication_factor": secured.bare.brokers}
    topics = [
        {"name": made, "partitions": 3, **one},
        {"name": mine, "partitions": 1, **one},
        {"name": grown, "partitions": 3},
        {"name": set_, "retention": "30d"},
        {"name": also, "retention": "30d"},
        {"name": gone, "state": "absent"},
    ]
    allow = {"allow": ["delete", "partition_growth"], "operation_timeout": 15}
    done = secured.run("kafka_topics", topics=topics, **allow)
    assert done.failed and done.changed, done.msg
    assert {(each["name"], each["kind"]) for each in done.failed_items} == {
        *((made, "create"), (grown, "grow"), (set_, "configure"))
    }, done.msg
    assert done.msg.startswith("2 of 6 changes were made; refused by the cluster:\n")
    assert f"{made}: Topic '{made}' already exists" in done.msg
    assert gone not in done.msg and sorted(done.diff["after"]) == sorted([also, mine])
    assert (partitions(admin, made), partitions(admin, grown)) == (2, 4), "the other's, untouched"
    assert retention(admin, also) == str(30 * 86_400_000) and partitions(admin, set_) == 0


def test_a_topic_whose_settings_both_write(secured, admin, name, between):
    """What was named here is set, and what the other one named stays."""
    create(admin, (name, 1))
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in (("retention.ms", "60000"), ("segment.ms", "70000"))
    ]

    def act():
        resource = ConfigResource("topic", name, incremental_configs=entries)
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(30)

    between("topics", "Topics", act)
    topics = [{"name": name, "retention": "30d"}]
    done = secured.run("kafka_topics", topics=topics)
    assert done.changed and not done.failed
    assert retention(admin, name) == str(30 * 86_400_000), "what was asked for wins"
    (future,) = admin.describe_configs([ConfigResource("topic", name)]).values()
    assert future.result(30)["segment.ms"].value == "70000", "what nobody named is the other's"
    assert secured.run("kafka_topics", topics=topics, check=True).changed is False


def binding(name, principal, operation=AclOperation.READ):
    """An ALLOW on a topic."""
    return AclBinding(
        *(ResourceType.TOPIC, name, ResourcePatternType.LITERAL, principal, "*"),
        *(operation, AclPermissionType.ALLOW),
    )


def filter_of(found):
    """The filter that matches one binding."""
    return AclBindingFilter(
        *(found.restype, found.name, found.resource_pattern_type, found.principal),
        *(found.host, found.operation, found.permission_type),
    )


def bindings(admin, name):
    """Principals with rights on a topic."""
    chosen = AclBindingFilter(
        *(ResourceType.TOPIC, name, ResourcePatternType.LITERAL, None, None),
        *(AclOperation.ANY, AclPermissionType.ANY),
    )
    return sorted(each.principal for each in admin.describe_acls(chosen).result(30))


def test_acls(secured, admin, name, between):
    """What the other one gave or took away before us is not ours; what only we do is.

    In ZooKeeper mode the other one's broker knows, and the others hear of it later.
    """
    theirs, ours, other = (binding(name, f"User:{word}") for word in ("theirs", "ours", "other"))
    for future in admin.create_acls([theirs, ours]).values():
        future.result(30)
    wait_until(lambda: len(bindings(admin, name)) == 2, 30, "granted")

    def act():
        (future,) = admin.delete_acls([filter_of(theirs)]).values()
        assert len(future.result(30)) == 1
        (future,) = admin.create_acls([other]).values()
        future.result(30)

    between("acls", "Acls", act)
    acls = [
        {"topic": name, "principal": word, "operations": "read", "state": state}
        for word, state in (
            *(("theirs", "absent"), ("ours", "absent")),
            *(("new", "present"), ("other", "present")),
        )
    ]
    done = secured.run("kafka_acls", acls=acls)
    assert not done.failed and done.changed, done.msg
    assert len(done.plan["changes"]) == 4
    changed = {side: [each.split()[1] for each in done.diff[side]] for side in ("before", "after")}
    assert changed == {"before": ["User:ours"], "after": ["User:new"]}
    assert sorted(each["principal"] for each in done.acls) == ["User:new", "User:other"]
    wait_until(lambda: bindings(admin, name) == ["User:new", "User:other"], 30, "as both want it")


def test_acls_that_are_as_wanted_already(secured, admin, name, between):
    """Nothing was left to do, so nothing was changed."""
    theirs, other = binding(name, "User:theirs"), binding(name, "User:other")
    (future,) = admin.create_acls([theirs]).values()
    future.result(30)
    wait_until(lambda: bindings(admin, name), 30, "granted")

    def act():
        (future,) = admin.delete_acls([filter_of(theirs)]).values()
        assert len(future.result(30)) == 1
        (future,) = admin.create_acls([other]).values()
        future.result(30)

    between("acls", "Acls", act)
    acls = [
        {"topic": name, "principal": word, "operations": "read", "state": state}
        for word, state in (("theirs", "absent"), ("other", "present"))
    ]
    done = secured.run("kafka_acls", acls=acls)
    assert not done.failed and done.changed is False, done.values
    assert [each["principal"] for each in done.acls] == ["User:other"]
    assert len(done.plan["changes"]) == 2, "the other one came after the plan"


def test_quotas(secured, name, between):
    """Both write one user's limits: what was named here is ours, what was not is the other's."""
    user = f"{name}-user"
    tool = ("--alter", "--entity-type", "users", "--entity-name", user, "--add-config")

    def act():
        secured.tool(
            "kafka.admin.ConfigCommand", *tool, "producer_byte_rate=5,consumer_byte_rate=77"
        )

    between("quotas", "Quotas", act)
    quotas = [{"user": user, "limits": {"producer_byte_rate": 1024}}]
    done = secured.run("kafka_quotas", quotas=quotas)
    assert done.changed and not done.failed
    (found,) = [
        each for each in secured.run("kafka_quotas_info").quotas if each.get("user") == user
    ]
    assert found["limits"] == {"producer_byte_rate": 1024, "consumer_byte_rate": 77}
    assert secured.run("kafka_quotas", quotas=quotas, check=True).changed is False


def test_users(secured, admin, name, between):
    """A credential that the other one has removed is not ours, and a password of ours is in force."""
    mechanism = ScramMechanism.SCRAM_SHA_256
    for user in (f"{name}-theirs", f"{name}-ours"):
        info = ScramCredentialInfo(mechanism, 4096)
        added = [UserScramCredentialUpsertion(user, info, b"a long one")]
        admin.alter_user_scram_credentials(added)[user].result(30)

    def act():
        removed = [UserScramCredentialDeletion(f"{name}-theirs", mechanism)]
        admin.alter_user_scram_credentials(removed)[f"{name}-theirs"].result(30)

    between("users", "Users", act)
    users = [{"name": f"{name}-{word}", "state": "absent"} for word in ("theirs", "ours")]
    done = secured.run("kafka_users", users=users)
    assert done.changed and not done.failed, done.msg
    assert list(done.diff["before"]) == [f"{name}-ours SCRAM-SHA-256"]


def test_a_group_that_somebody_else_deletes(secured, admin, name, between):
    create(admin, (name, 1))
    reader = Consumer({**secured.client_settings(), "group.id": f"{name}-readers"})
    reader.commit(offsets=[TopicPartition(name, 0, 0)], asynchronous=False)
    reader.close()
    names = [f"{name}-readers"]
    between(
        "groups",
        "ConsumerGroups",
        lambda: [each.result(30) for each in admin.delete_consumer_groups(names).values()],
    )
    item = {"name": names[0], "state": "absent"}
    done = secured.run("kafka_consumer_groups", groups=[item], allow=["delete"])
    assert done.changed is False and not done.failed, done.values


def test_a_group_that_begins_to_read(secured, admin, name, between):
    """Its offsets stay where its reader has them, and the message says that it is active."""
    create(admin, (name, 1))
    settings = {**secured.client_settings(), "group.id": f"{name}-readers"}
    reader = Consumer(settings)
    reader.commit(offsets=[TopicPartition(name, 0, 0)], asynchronous=False)

    def act():
        reader.subscribe([name])
        wait_until(lambda: reader.poll(0.2) or reader.assignment(), 60, "it reads")

    between("groups", "ConsumerGroups", act)
    item = {"name": f"{name}-readers", "state": "absent"}
    done = secured.run(
        "kafka_consumer_groups", groups=[item], allow=["delete"], operation_timeout=5
    )
    reader.close()
    assert done.failed and done.changed is False, done.values
    assert done.msg.startswith("nothing was changed; refused by the cluster:"), done.msg
    assert "not empty" in done.msg

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
    AdminClient,
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

from tests.support.outside import create_topics, wait_until
from tests.support.readers import commit, start_of, told_by_kafka, write
from tests.support.second_writer import before_writing

ADMIN = "ansible_collections.kafkaops.cluster.plugins.module_utils.admin"


@pytest.fixture
def between(monkeypatch):
    """`between("topics", "Topics", act)`: act runs after the plan and the validation, before the first write."""

    def arrange(package, name, act):
        kind = getattr(importlib.import_module(f"{ADMIN}.{package}.resource"), name)
        before_writing(monkeypatch, kind, act)

    yield arrange
    monkeypatch.undo()


def create(secured, *topics):
    """Topics by (name, partitions), with one replica; all brokers know them."""
    new = [NewTopic(name, count, 1) for name, count in topics]
    create_topics(secured.client_settings(), new)


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
    create(secured, (grown, 1), (set_, 1), (gone, 1), (also, 1))

    def act():
        create(secured, (made, 2))
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
    create(secured, (name, 1))
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


DAY = 86_400_000


def test_retention_of_topics_that_the_other_one_has_raised_is_not_cut_without_consent(
    secured, admin, name, between
):
    """More was asked for than there was, so nobody was asked for consent; now it would be less."""
    words = "more compacted same lower mine gone".split()
    more, compacted, same, lower, mine, gone = (f"{name}.{word}" for word in words)
    create(secured, *((f"{name}.{word}", 1) for word in words))
    for topic in (more, same, lower, mine, gone):
        keep(admin, topic, retention_ms=str(DAY))
    keep(admin, compacted, retention_ms=str(90 * DAY), cleanup_policy="compact")

    def act():
        keep(admin, more, retention_ms=str(90 * DAY))
        keep(admin, compacted, retention_ms=str(90 * DAY), cleanup_policy="delete")
        keep(admin, same, retention_ms=str(30 * DAY))
        keep(admin, lower, retention_ms=str(DAY // 2))
        admin.delete_topics([gone])[gone].result(30)
        wait_until(lambda: not partitions(admin, gone), 30, "deleted")

    between("topics", "Topics", act)
    topics = [{"name": f"{name}.{word}", "retention": "30d"} for word in words]
    done = secured.run("kafka_topics", topics=topics, operation_timeout=15)
    assert done.failed and done.changed, done.values
    found = {each["name"]: each for each in done.failed_items}
    assert sorted(found) == sorted([more, compacted, gone]), done.msg
    for topic in (more, compacted):
        assert found[topic]["code"] == "changed" and "down from 90d to 30d" in found[topic]["error"]
        assert "[retention.cut]" in found[topic]["error"]
        assert "allow: [retention_cut]" in found[topic]["error"]
    assert sorted(done.diff["after"]) == sorted([lower, mine]), "the same is not ours"
    assert done.diff["before"][lower]["config"] == {"retention.ms": str(DAY // 2)}
    told = {each["name"]: each["config"]["retention.ms"] for each in done.topics}
    for topic, days in ((more, 90), (compacted, 90), (same, 30), (lower, 30), (mine, 30)):
        assert retention(admin, topic) == told[topic] == str(days * DAY)


def test_settings_of_a_topic_that_grows_and_that_the_other_one_has_changed(
    secured, admin, name, between
):
    """Growth has its own consent and is made; a setting that has become a danger is not."""
    create(secured, (name, 1))
    keep(admin, name, retention_ms=str(DAY))

    between("topics", "Topics", lambda: keep(admin, name, retention_ms=str(90 * DAY)))
    topics = [{"name": name, "partitions": 3, "retention": "30d"}]
    done = secured.run("kafka_topics", topics=topics, allow=["partition_growth"])
    assert done.failed and done.changed, done.values
    (failure,) = done.failed_items
    assert (failure["name"], failure["kind"], failure["code"]) == (name, "configure", "changed")
    assert done.diff["after"][name]["partitions"] == 3 and "config" not in done.diff["after"][name]
    assert (partitions(admin, name), retention(admin, name)) == (3, str(90 * DAY))


def test_a_consent_that_was_given_holds_for_what_the_other_one_has_raised(
    secured, admin, name, between
):
    """And what is at stake is counted anew."""
    create(secured, (name, 1))
    keep(admin, name, retention_ms=str(DAY))
    write(secured.client_settings(), name, {0: 9})
    between("topics", "Topics", lambda: keep(admin, name, retention_ms=str(90 * DAY)))
    topics = [{"name": name, "retention": "30d"}]
    done = secured.run("kafka_topics", topics=topics, allow=["retention_cut"])
    assert not done.failed and done.changed, done.values
    assert done.diff["before"][name]["config"] == {"retention.ms": str(90 * DAY)}
    assert "down from 90d to 30d: 0 records" in done.diff["after"][name]["at stake"]
    assert retention(admin, name) == str(30 * DAY)


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
    assert done.diff["before"] == {f"user={user}": {"producer_byte_rate": 5}}
    assert done.quotas[0]["limits"] == {"producer_byte_rate": 1024, "consumer_byte_rate": 77}
    (found,) = [
        each for each in secured.run("kafka_quotas_info").quotas if each.get("user") == user
    ]
    assert found["limits"] == {"producer_byte_rate": 1024, "consumer_byte_rate": 77}
    assert secured.run("kafka_quotas", quotas=quotas, check=True).changed is False
    gone = [{"user": user, "state": "absent"}]
    assert secured.run("kafka_quotas", quotas=gone).changed, "other tests share the cluster"


def test_quotas_that_are_as_wanted_already(secured, name, between):
    """Nothing was left to do, so nothing was changed."""
    user = f"{name}-user"
    quotas = [{"user": user, "limits": {"producer_byte_rate": 1024}}]
    tool = ("--alter", "--entity-type", "users", "--entity-name", user, "--add-config")

    def act():
        secured.tool("kafka.admin.ConfigCommand", *tool, "producer_byte_rate=1024")

    between("quotas", "Quotas", act)
    done = secured.run("kafka_quotas", quotas=quotas)
    assert done.changed is False and not done.failed and not done.diff["after"], done.values
    assert done.quotas == quotas and len(done.plan["changes"]) == 1
    assert secured.run("kafka_quotas", quotas=[{"user": user, "state": "absent"}]).changed


@pytest.mark.parametrize("update", ["on_create", "always"])
def test_a_user_whom_the_other_one_has_made_keeps_his_password(
    secured, admin, name, between, update
):
    """Unless it is to be the declared one, whatever it was."""
    mechanism, theirs, ours = ScramMechanism.SCRAM_SHA_512, b"a long one", "another one"

    def act():
        made = [UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism, 8192), theirs)]
        admin.alter_user_scram_credentials(made)[name].result(30)

    between("users", "Users", act)
    users = [{"name": name, "password": ours}]
    done = secured.run("kafka_users", users=users, update_password=update)
    assert not done.failed, done.values
    assert done.changed is (update == "always")
    password = ours if done.changed else theirs.decode()
    again = secured.run("kafka_users", check=True, users=[{"name": name, "password": password}])
    assert again.changed is False and not again.failed, "so it logs in with this one"
    # A new password keeps the number.
    assert done.users == [{"name": name, "iterations": {"SCRAM-SHA-512": 8192}}]
    assert secured.run("kafka_users", users=[{"name": name, "state": "absent"}]).changed


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
    assert done.users == []


def test_a_group_that_somebody_else_deletes(secured, admin, name, between):
    create(secured, (name, 1))
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


def test_groups_that_go_on(secured, admin, name, between):
    """One has gone on since the plan and stays there, one is where it was to be, and one is moved."""
    topic = f"{name}.read"
    create(secured, (topic, 1))
    write(secured.client_settings(), topic, {0: 90})
    on, same, mine, gone = (f"{name}-{word}" for word in ("on", "same", "mine", "gone"))
    settings = secured.client_settings()
    for group in (on, same, mine, gone):
        commit(settings, group, {(topic, 0): 50})

    def act():
        commit(settings, on, {(topic, 0): 80})
        commit(settings, same, {(topic, 0): 60})
        commit(settings, gone, {(topic, 0): 55})

    between("groups", "ConsumerGroups", act)
    items = [{"name": each, "offset": 60} for each in (on, same, mine)]
    items.append({"name": gone, "state": "absent"})
    done = secured.run("kafka_consumer_groups", groups=items, allow=["skip", "delete"])
    assert done.failed and done.changed, done.values
    (failure,) = done.failed_items
    assert (failure["name"], failure["code"]) == (f"{on} {topic}-0", "changed")
    assert "somebody else has committed 80 meanwhile, it was 50" in failure["error"]
    assert sorted(done.diff["before"]) == [gone, f"{mine} {topic}-0"]
    assert done.diff["before"][gone]["offsets"] == {f"{topic}-0": 55}, "as it was then"
    before = {each["name"]: each["offsets"][0]["offset"] for each in done.before}
    assert before == {mine: 50, gone: 55}
    found = {
        group: {key: each[0] for key, each in told_by_kafka(secured, group).items()}
        for group in (on, same, mine)
    }
    assert found == {on: {(topic, 0): 80}, same: {(topic, 0): 60}, mine: {(topic, 0): 60}}


def test_a_group_that_begins_to_read(secured, admin, name, between):
    """Its offsets stay where its reader has them, and the message says that it is active."""
    create(secured, (name, 1))
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


THREADS, ROLL, AGE = "num.io.threads", "log.roll.ms", "log.retention.ms"


@pytest.fixture
def defaults(secured, admin):
    """Set defaults of all brokers as somebody else, None takes one away; all are gone after the test."""

    def change(**settings):
        named = {key.replace("_", "."): value for key, value in settings.items()}
        done = secured.run(
            "kafka_configs",
            configs=[{"scope": "cluster", "settings": named}],
            allow=["retention_cut"],
        )
        assert not done.failed, done.msg

    yield change
    change(num_io_threads=None, log_roll_ms=None, log_retention_ms=None)


def test_settings(secured, defaults, between):
    """What the other one has set already is not ours, and what it was before is what it was then."""
    defaults(num_io_threads=5)

    def act():
        defaults(num_io_threads=7, log_roll_ms="6d")

    others = [act]
    between("configs", "Configs", lambda: others.pop()() if others else None)
    settings = {THREADS: 6, ROLL: "6d", "log.segment.bytes": None}
    done = secured.run("kafka_configs", configs=[{"scope": "cluster", "settings": settings}])
    assert not done.failed and done.changed, done.msg
    assert done.diff == {
        "before": {"cluster default": {THREADS: "7"}},
        "after": {"cluster default": {THREADS: "6"}},
    }
    told = {each["name"]: each["value"] for each in done.settings if each["broker"] == 1}
    assert (told[THREADS], told[ROLL]) == ("6", "518400000")


def test_settings_that_are_as_wanted_already(secured, defaults, between):
    others = [lambda: defaults(log_roll_ms="6d")]
    between("configs", "Configs", lambda: others.pop()() if others else None)
    done = secured.run("kafka_configs", configs=[{"scope": "cluster", "settings": {ROLL: "6d"}}])
    assert not done.failed and done.changed is False and not done.diff["after"], done.values
    told = {each["name"]: each["value"] for each in done.settings if each["broker"] == 1}
    assert told[ROLL] == "518400000", "as it is now"


def test_a_default_that_the_other_one_has_raised_is_not_cut_without_consent(
    secured, admin, name, defaults, between
):
    """More was asked for than there was, so nobody was asked for consent; now it would be less."""
    create(secured, (name, 1))
    defaults(log_retention_ms="1d")
    others = [lambda: defaults(log_retention_ms="90d")]
    between("configs", "Configs", lambda: others.pop()() if others else None)
    settings = {AGE: "30d", ROLL: "6d"}
    configs = [
        {"scope": "cluster", "settings": settings},
        {"scope": "broker", "brokers": [1], "settings": {"background.threads": 11}},
    ]
    done = secured.run("kafka_configs", configs=configs)
    gone = {"scope": "broker", "brokers": [1], "settings": {"background.threads": None}}
    assert secured.run("kafka_configs", configs=[gone]).changed
    assert done.failed and done.changed, done.values
    assert list(done.diff["after"]) == ["broker 1"], "the rest is done"
    (failure,) = done.failed_items
    assert failure["name"] == "cluster default" and failure["code"] == "changed"
    assert failure["error"].startswith(
        "somebody else has changed settings meanwhile: [retention.cut]"
    )
    assert "allow: [retention_cut]" in failure["error"]
    found = secured.run("kafka_configs_info", names=[AGE], brokers=[1]).settings
    assert [each["value"] for each in found] == [str(90 * 86_400_000)], "the other's, untouched"


def test_records(secured, admin, name, between):
    """What the other one has deleted already is not counted as ours."""
    part, whole = f"{name}.part", f"{name}.whole"
    create(secured, (part, 1), (whole, 1))
    for topic in (part, whole):
        write(secured.client_settings(), topic, {0: 100})

    def act():
        asked = [TopicPartition(part, 0, 20), TopicPartition(whole, 0, 60)]
        for future in admin.delete_records(asked).values():
            future.result(30)

    between("records", "Records", act)
    topics = [{"name": each, "before_offset": 50} for each in (part, whole)]
    done = secured.run("kafka_records", topics=topics, allow=["delete_records"])
    assert not done.failed and done.changed, done.msg
    assert done.records == 30 and len(done.plan["changes"]) == 2
    assert done.diff["before"] == {f"{part}-0": {"first_offset": 20}}
    after = done.diff["after"][f"{part}-0"]
    assert after["first_offset"] == 50 and after["at stake"].startswith("30 records")
    assert (start_of(admin, part), start_of(admin, whole)) == (50, 60)


def test_records_of_a_topic_that_was_made_anew(secured, admin, name, between):
    """Its records are others, nobody has asked for their deletion."""
    again, other = f"{name}.again", f"{name}.other"
    create(secured, (again, 1), (other, 1))
    for topic in (again, other):
        write(secured.client_settings(), topic, {0: 9})

    def act():
        """Any broker may be asked, and all of them know the new topic afterwards."""
        new = {"partitions": 1, "replication_factor": secured.bare.brokers}
        for item in ({"state": "absent"}, new):
            item["name"] = again
            changed = secured.run("kafka_topics", topics=[item], allow=["delete"])
            assert changed.changed, changed.msg
        write(secured.client_settings(), again, {0: 12})

    between("records", "Records", act)
    topics = [{"name": each, "all": True} for each in (again, other)]
    done = secured.run("kafka_records", topics=topics, allow=["delete_records"])
    assert done.failed and done.changed and done.records == 9, done.values
    (failure,) = done.failed_items
    assert (failure["name"], failure["code"]) == (f"{again}-0", "changed")
    assert "was made anew" in failure["error"]
    fresh = AdminClient(secured.client_settings())  # the old one asks who has led before
    assert (start_of(fresh, again), start_of(fresh, other)) == (0, 9)


def keep(admin, name, **config):
    """Set what a topic keeps, as somebody else; the brokers tell it."""
    entries = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in config.items()
    ]
    resource = ConfigResource("topic", name, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
    wait_until(lambda: retention(admin, name) == config["retention_ms"], 30, "it is told")


def test_retention(secured, admin, name, between):
    """Raised further by the other one: not cut without consent. As wanted: not ours. Gone: told."""
    day = 86_400_000
    more, same, mine, gone = (f"{name}.{word}" for word in "more same mine gone".split())
    create(secured, (more, 1), (same, 1), (mine, 1), (gone, 1))
    for topic in (more, same, mine, gone):
        keep(admin, topic, retention_ms=str(day))

    def act():
        keep(admin, more, retention_ms=str(90 * day))
        keep(admin, same, retention_ms=str(30 * day))
        admin.delete_topics([gone])[gone].result(30)
        wait_until(lambda: not partitions(admin, gone), 30, "deleted")

    between("retention", "Retention", act)
    policies = [{"match": rf"{name}\..*", "keep_for": "30d"}]
    done = secured.run("kafka_retention", policies=policies, operation_timeout=15)
    assert done.failed and done.changed, done.values
    assert list(done.diff["after"]) == [mine]
    found = {each["name"]: each for each in done.failed_items}
    assert sorted(found) == sorted([more, gone]), done.msg
    assert found[more]["code"] == "changed" and "90d" in found[more]["error"]
    assert found[gone]["code"] == "UNKNOWN_TOPIC_OR_PART"
    assert [retention(admin, each) for each in (more, same, mine)] == [
        str(days * day) for days in (90, 30, 30)
    ]
    told = {each["name"]: each["after"]["retention.ms"]["means"] for each in done.topics}
    assert told == {more: "90d", same: "30d", mine: "30d"}

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_acls and kafka_acls_info against real authorizers of both modes, compared with Kafka's own tool."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections import Counter

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kazoo.client import KazooClient

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls import (
    client as acl_client,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.client import AclClient
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.resource import Acls
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import connection_from
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import reconcile
from tests.support.outside import create_topics
from tests.support.secured_cluster import secured_cluster

from .conftest import PORT_BASE, whole


def told(cluster, *arguments):
    """(type, name, pattern, principal, permission, operation, host) as Kafka's tool lists them."""
    text, found, resource = cluster.acl_tool("--list", *arguments), set(), ()
    for line in text.splitlines():
        words = re.search(r"resourceType=(\w+), name=(.*), patternType=(\w+)\)", line)
        if words:
            resource = (words[1].lower(), words[2], words[3].lower())
        words = re.search(
            r"principal=(.*), host=(.*), operation=(\w+), permissionType=(\w+)\)", line
        )
        if words:
            found.add((*resource, words[1], words[4].lower(), words[3].lower(), words[2]))
    return found


def listed(admin, name):
    """(name, principal) of the ACLs that a client which is not ours finds by a literal or prefixed name."""
    any_of = (ResourceType.ANY, name, ResourcePatternType.ANY, None, None)
    found = admin.describe_acls(AclBindingFilter(*any_of, AclOperation.ANY, AclPermissionType.ANY))
    return sorted((each.name, each.principal) for each in found.result())


def about(name, found):
    """Those that concern a test's own name."""
    return {each for each in found if any(name in str(part) for part in each)}


@pytest.fixture
def topic(secured, admin, name):
    """A topic."""
    create_topic(secured, name)
    yield name
    admin.delete_topics([name])[name].result()


def create_topic(secured, name):
    """A topic with one partition that has a leader."""
    create_topics(secured.client_settings(), [NewTopic(name, 1, 1)])


def produces(cluster, user, name):
    """Whether a user may write to a topic."""
    errors = []
    producer = Producer({**cluster.client_settings(user), "message.timeout.ms": 8000})
    producer.produce(name, b"x", on_delivery=lambda error, _message: errors.append(error))
    producer.flush(15)
    assert len(errors) == 1
    assert errors[0] is None or errors[0].name() == "TOPIC_AUTHORIZATION_FAILED", errors
    return errors[0] is None


def consumes(cluster, user, name, group):
    """Whether a user gets a record of a topic, in a group."""
    settings = {"group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**cluster.client_settings(user), **settings})
    consumer.subscribe([name])
    try:
        message = consumer.poll(20)
        assert message is not None
        error = message.error()
        assert error is None or "AUTHORIZATION_FAILED" in error.name(), error
        return error is None
    finally:
        consumer.close()


# ---------------------------------------------------------------- create, rerun, change, remove


def test_created_unchanged_changed_and_removed_as_checked_and_as_kafkas_own_tool_says(
    secured, admin, name
):
    user = f"User:{name}"
    acls = [
        {"topic": name, "principal": user, "operations": ["read", "AlterConfigs"]},
        {"group": name, "principal": user, "operations": "read", "pattern": "prefixed"},
        {"cluster": True, "principal": user, "operations": "describe", "host": "10.0.0.9"},
        {"delegation_token": name, "principal": user, "operations": "describe"},
        {"user": name, "principal": user, "operations": "create_tokens"},
        {"transactional_id": name, "principal": user, "operations": "all", "permission": "deny"},
    ]
    checked = secured.run("kafka_acls", check=True, acls=acls)
    assert checked.changed and not listed(admin, name)
    done = secured.run("kafka_acls", acls=acls)
    assert (done.changed, done.plan, done.diff) == (True, checked.plan, checked.diff), done.msg
    created = about(name, told(secured))
    assert created == {
        ("topic", name, "literal", user, "allow", "read", "*"),
        ("topic", name, "literal", user, "allow", "alter_configs", "*"),
        ("group", name, "prefixed", user, "allow", "read", "*"),
        ("cluster", "kafka-cluster", "literal", user, "allow", "describe", "10.0.0.9"),
        ("delegation_token", name, "literal", user, "allow", "describe", "*"),
        ("user", user, "literal", user, "allow", "create_tokens", "*"),
        ("transactional_id", name, "literal", user, "deny", "all", "*"),
    }
    again = secured.run("kafka_acls", acls=acls)
    assert not again.changed and again.acls == done.acls

    shown = secured.run("kafka_acls_info", principals=[re.escape(user)])
    assert shown.binding_count == 7 and not shown.changed
    assert not secured.run("kafka_acls", acls=shown.acls).changed

    changed = [{**acls[0], "state": "absent"}, {**acls[0], "host": "10.0.0.1"}, *acls[1:]]
    checked = secured.run("kafka_acls", check=True, acls=changed)
    done = secured.run("kafka_acls", acls=changed)
    assert done.plan == checked.plan and Counter(kind for kind, _subject in done.kinds) == {
        "create": 2,
        "delete": 2,
    }
    shown = secured.run("kafka_acls_info", resources=[f"topic:{name}"])
    assert [each["host"] for each in shown.acls] == ["10.0.0.1"]

    purge = {"principals": [re.escape(user)], "maximum": 6}
    refused = secured.run("kafka_acls", acls=[], purge=purge)
    assert refused.checks == [("purge.maximum", "purge")] and not refused.changed
    assert len(listed(admin, name)) >= 3
    kept = [{"group": name, "principal": user, "operations": "read", "pattern": "prefixed"}]
    done = secured.run("kafka_acls", acls=kept, purge=purge)
    assert done.changed and len(done.kinds) == 6
    assert {each[0] for each in about(name, told(secured))} == {"group"}


def test_a_grant_is_what_kafkas_own_tool_adds_for_a_producer_and_a_consumer(secured, name):
    who = ("--allow-principal", f"User:{name}", "--topic", name)
    secured.acl_tool("--add", *who, "--producer", "--transactional-id", name, "--idempotent")
    secured.acl_tool("--add", *who, "--consumer", "--group", name)
    base = {"principal": name, "topic": name}
    acls = [
        {**base, "grant": "write", "transactional_id": name, "idempotent": True},
        {**base, "grant": "read", "group": name},
    ]
    purge = {"principals": [f"User:{name}"], "maximum": 9}
    done = secured.run("kafka_acls", acls=acls, purge=purge)
    assert not done.changed and not done.plan["changes"], done.values
    gone = secured.run("kafka_acls", acls=[{**each, "state": "absent"} for each in acls])
    # describe on the topic is in both
    assert len(gone.kinds) == 8
    assert not secured.run("kafka_acls_info", principals=[f"User:{name}"]).acls


def test_whoever_is_granted_can_and_only_that(secured, topic):
    write = {"principal": "team", "grant": "write", "topic": topic}
    read = {"principal": "team", "grant": "read", "topic": topic, "group": topic}
    assert not produces(secured, "team", topic)
    assert secured.run("kafka_acls", acls=[write]).changed
    assert produces(secured, "team", topic) and not consumes(secured, "team", topic, topic)
    assert secured.run("kafka_acls", acls=[read, {**write, "state": "absent"}]).changed
    assert consumes(secured, "team", topic, topic) and not produces(secured, "team", topic)
    assert secured.run("kafka_acls", acls=[{**read, "state": "absent"}]).changed


# ---------------------------------------------------------------- refusals


def test_nothing_is_changed_if_one_item_is_wrong(secured, admin, name):
    good = {"topic": name, "principal": "a", "operations": "read"}
    bad = {"topic": name, "principal": "a", "operations": "read", "host": "10.0.0.0/8"}
    refused = secured.run("kafka_acls", acls=[good, bad, {**good, "operations": ["raed"]}])
    assert refused.failed and not refused.changed
    assert {check for check, *_subjects in refused.checks} == {
        "acls.without_effect",
        "acls.bad_value",
    }
    assert "did you mean read" in refused.msg and not listed(admin, name)


def test_a_user_without_rights_is_told_which_one_it_needs(secured, admin, name):
    acls = [{"topic": name, "principal": "a", "operations": "read"}]
    refused = secured.run("kafka_acls", user="nobody", acls=acls)
    assert refused.failed and not refused.changed
    assert "grant it Describe on the cluster" in refused.msg
    describe = {"cluster": True, "principal": "team", "operations": ["describe"]}
    assert secured.run("kafka_acls", acls=[describe]).changed
    for check in (True, False):
        refused = secured.run("kafka_acls", check, user="team", acls=acls)
        assert refused.checks == [("acls.rights", "User:team")]
        assert "grant it Alter on the cluster" in refused.msg
    assert secured.run("kafka_acls_info", user="team").binding_count
    assert secured.run("kafka_acls", acls=[{**describe, "state": "absent"}]).changed
    assert not listed(admin, name)


@pytest.mark.parametrize("way", ["remove", "deny"])
def test_whoever_may_change_acls_does_not_lose_that_without_consent(secured, way):
    rights = {"cluster": True, "principal": "team", "operations": ["alter", "describe"]}
    assert secured.run("kafka_acls", acls=[rights]).changed
    item = {"cluster": True, "principal": "team", "operations": ["alter"]}
    item["state" if way == "remove" else "permission"] = "absent" if way == "remove" else "deny"
    refused = secured.run("kafka_acls", user="team", acls=[item])
    assert refused.checks == [("acls.lockout", "User:team")] and not refused.changed
    # what was refused really would have locked it out
    done = secured.run("kafka_acls", user="team", acls=[item], allow=["lockout"])
    assert done.changed, done.msg
    other = [{"topic": "x", "principal": "x", "operations": "read"}]
    assert secured.run("kafka_acls", user="team", acls=other).failed
    purge = {"principals": ["User:team"], "resources": ["cluster:.*"], "maximum": 3}
    assert secured.run("kafka_acls", acls=[], purge=purge).changed


def test_an_operation_of_kafka_4_1(secured, admin, name):
    """Brokers of 3.9 close the connection on whoever names it: they are not asked, and the rest is not lost with it."""
    new = {"transactional_id": name, "principal": "a", "operations": ["two_phase_commit"]}
    old = {"topic": name, "principal": "a", "operations": "read"}
    gone = [{**each, "state": "absent"} for each in (new, old)]
    assert secured.run("kafka_acls", acls=gone).changed is False
    told = secured.run("kafka_acls", acls=[new, old])
    if secured.bare.kraft:
        assert told.changed and not told.failed, told.values
        text = secured.acl_tool("--list", "--transactional-id", name)
        assert "principal=User:a, host=*, operation=TWO_PHASE_COMMIT" in text, text
        assert secured.run("kafka_acls", acls=gone).changed
    else:
        assert told.failed and told.changed is False and not listed(admin, name)
        words = f"allow User:a two_phase_commit transactional id {name}"
        assert told.checks == [("acls.too_new", words)]
        assert "which came with Kafka 4.1" in told.msg
    assert secured.run("kafka_acls", acls=gone).changed is False


# ---------------------------------------------------------------- partial failure, numbers


def test_what_a_broker_refuses_is_named_and_the_rest_is_done(on_zookeeper, name):
    """ZooKeeper has no node of that name: the only thing that an authorizer refuses of one binding."""
    slash = f"{name}/x"
    acls = [{"group": [name, slash], "principal": "a", "operations": "read"}]
    failed = on_zookeeper.run("kafka_acls", acls=acls)
    assert failed.failed and failed.changed
    assert [(each["name"], each["kind"]) for each in failed.failed_items] == [
        (f"allow User:a read group {slash}", "create")
    ]
    assert failed.failed_items[0]["code"] == "INVALID_REQUEST" and "1 of 2 changes" in failed.msg
    client = AdminClient(on_zookeeper.client_settings())
    assert listed(client, name) and not listed(client, slash)
    assert [list(failed.diff["after"])] == [[f"allow User:a read group {name}"]]
    acls[0].update(group=[name], state="absent")
    assert on_zookeeper.run("kafka_acls", acls=acls).changed


def requests_for(secured, number, state, name):
    """How many requests creating or removing this many ACLs took, by what they are."""
    client = AclClient(connection_from(secured.parameters()))
    topics = [f"{name}-{each}" for each in range(number)]
    item = {"topic": topics, "principal": "a", "operations": "read", "state": state}
    options = {
        "acls": [item],
        "allow": [],
        "purge": None,
        "own_principal": None,
        "allow_everyone_if_no_acl_found": None,
    }
    resource = Acls(client, options)
    resource.connect()
    outcome = reconcile(resource, False, 120)
    assert len(outcome.changed) == number and not outcome.failures and not outcome.unsettled
    # How often it looks until every broker knows, and how often it connects, is a matter of time.
    return {
        key: count
        for key, count in client.requests.items()
        if key not in ("reading ACLs", "metadata")
    }


def test_ten_acls_and_five_hundred_take_as_many_requests(secured, name):
    for state in ("present", "absent"):
        few = requests_for(secured, 10, state, f"{name}-few")
        assert few == requests_for(secured, 500, state, f"{name}-many")
        assert sum(few.values()) <= 4, few


# ---------------------------------------------------------------- open to all without an ACL


@pytest.fixture(params=[False, True], ids=["zookeeper", "kraft"], scope="module")
def opened(request, tmp_path_factory):
    """A cluster on which everybody may use what has no ACL."""
    folder = tmp_path_factory.mktemp("opened")
    port_base = PORT_BASE + (300 if request.param else 200)
    config = {"allow_everyone_if_no_acl_found": "true"}
    with secured_cluster(folder, port_base, request.param, brokers=1, **config) as running:
        yield whole(running)


@pytest.fixture
def stopped(on_zookeeper):
    """ZooKeeper, once `stopped()` is called: brokers answer what they know and can write nothing."""
    (server,) = on_zookeeper.bare.zookeeper_instances
    yield lambda: server.signal(signal.SIGSTOP)
    server.signal(signal.SIGCONT)


def items(name, state="present"):
    return [
        {
            "topic": [f"{name}.{number}" for number in range(30)],
            "principal": name,
            "operations": ["read"],
            "state": state,
        }
    ]


@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_batch_that_takes_a_broker_longer_than_the_timeout_is_waited_for(
    on_zookeeper, name, monkeypatch, stopped, state
):
    """And not sent again."""
    if state == "absent":
        assert on_zookeeper.run("kafka_acls", acls=items(name)).changed
    really, sent = Acls.apply, []

    def apply(resource, changes, deadline):
        stopped()
        longer = threading.Timer(
            resource.client.connection.timeout + 1,
            on_zookeeper.bare.zookeeper_instances[0].signal,
            [signal.SIGCONT],
        )
        longer.start()
        failures = really(resource, changes, deadline)
        longer.join()
        sent.append(resource.client.requests)
        return failures

    monkeypatch.setattr(Acls, "apply", apply)
    made = on_zookeeper.run("kafka_acls", acls=items(name, state), timeout=4)
    assert not made.failed and len(made.diff["before" if state == "absent" else "after"]) == 30
    (requests,) = sent
    assert sum(count for what, count in requests.items() if what.startswith("changing")) == 1
    assert not on_zookeeper.run("kafka_acls", acls=items(name, state)).changed


@pytest.mark.parametrize("state", ["present", "absent"])
def test_what_a_broker_does_after_it_was_given_up_is_counted(
    on_zookeeper, name, monkeypatch, stopped, state
):
    """No answer came within all the time that there was; then the broker goes on with what it has."""
    if state == "absent":
        assert on_zookeeper.run("kafka_acls", acls=items(name)).changed
    really, given_up = Acls.apply, AclClient._without_done

    def apply(resource, changes, deadline):
        stopped()
        return really(resource, changes, deadline)

    def without_done(client, kind, failures, unanswered, deadline):
        if unanswered:
            assert len(failures) == 30
            on_zookeeper.bare.zookeeper_instances[0].signal(signal.SIGCONT)
        return given_up(client, kind, failures, unanswered, deadline)

    monkeypatch.setattr(Acls, "apply", apply)
    monkeypatch.setattr(AclClient, "_without_done", without_done)
    made = on_zookeeper.run("kafka_acls", acls=items(name, state), timeout=4, operation_timeout=0.1)
    assert len(made.diff["before" if state == "absent" else "after"]) == 30, made.msg
    assert not any("nobody" in each["error"] for each in made.failed_items), "at most unsettled"
    assert not on_zookeeper.run("kafka_acls", acls=items(name, state)).changed


def test_what_was_not_sent_in_time_is_named_and_another_run_goes_on(
    on_zookeeper, name, monkeypatch
):
    monkeypatch.setattr(acl_client, "BATCH", 20)
    assert on_zookeeper.run("kafka_acls", acls=items(name)).changed
    gone = items(name, "absent")
    # The first batch is sent whatever the time; the rest is told to be left, and a second run does it.
    late = on_zookeeper.run("kafka_acls", acls=gone, timeout=120, operation_timeout=0.001)
    assert late.failed and late.changed and "20 of 30 changes were made" in late.msg
    left = [each for each in late.failed_items if each["kind"] == "delete"]
    assert len(left) == 10 and all("run the task again" in each["error"] for each in left)
    rest = on_zookeeper.run("kafka_acls", acls=gone)
    assert not rest.failed, rest.msg
    assert (
        len(rest.plan["changes"]) == 10
    ), "brokers that have not heard of the first 20 are waited for"
    assert on_zookeeper.run("kafka_acls", acls=gone).changed is False


def test_the_first_acl_of_a_topic_takes_it_from_all_others_and_the_last_gives_it_back(opened, name):
    create_topic(opened, name)
    acls = [{"topic": name, "principal": "somebody", "operations": "read"}]
    known = {"allow_everyone_if_no_acl_found": True}
    assert produces(opened, "team", name)
    refused = opened.run("kafka_acls", acls=acls, **known)
    assert refused.checks == [("acls.first", f"topic {name}")] and not refused.changed
    unknown = opened.run("kafka_acls", check=True, acls=acls)
    assert unknown.changed and "allow.everyone.if.no.acl.found" in str(unknown.warnings)
    assert produces(opened, "team", name)

    assert opened.run("kafka_acls", acls=acls, allow=["first_acl"], **known).changed
    assert not produces(opened, "team", name)

    acls[0]["state"] = "absent"
    refused = opened.run("kafka_acls", acls=acls, **known)
    assert refused.checks == [("acls.last", f"topic {name}")] and not refused.changed
    assert opened.run("kafka_acls", acls=acls, allow=["last_acl"], **known).changed
    assert produces(opened, "team", name)


def test_the_first_acl_of_the_cluster_may_take_the_right_of_whoever_grants_it(opened):
    acls = [{"cluster": True, "principal": "somebody", "operations": "describe"}]
    refused = opened.run("kafka_acls", user="team", acls=acls)
    assert refused.checks == [("acls.lockout", "User:team")] and not refused.changed
    own = {"cluster": True, "principal": "team", "operations": ["alter", "describe"]}
    assert opened.run("kafka_acls", user="team", acls=[*acls, own]).changed
    assert not opened.run("kafka_acls", user="team", acls=[*acls, own]).changed
    assert opened.run("kafka_acls", user="nobody", acls=acls).failed


# ---------------------------------------------------------------- somebody else


def test_what_another_tool_writes_is_left_alone(secured, admin, name):
    foreign = AclBinding(
        ResourceType.TOPIC,
        name,
        ResourcePatternType.LITERAL,
        "User:other",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    for future in admin.create_acls([foreign]).values():
        try:
            future.result()
        except KafkaException as error:
            pytest.fail(str(error))
    acls = [{"topic": name, "principal": "a", "operations": "read"}]
    assert secured.run("kafka_acls", acls=acls).changed
    assert secured.run("kafka_acls", acls=[{**acls[0], "state": "absent"}]).changed
    assert listed(admin, name) == [(name, "User:other")]


@pytest.mark.soak  # a broker is started anew
def test_brokers_that_differ_are_waited_for_and_named(on_zookeeper, name):
    """One has read an ACL at its start of which the others have never been told."""
    acl = {"principal": "User:late", "permissionType": "Allow", "operation": "Read", "host": "*"}
    broker = on_zookeeper.bare.broker_instances[3]
    zookeeper = KazooClient(on_zookeeper.bare.zookeeper_connect)
    zookeeper.start(30)

    def tell():
        """All brokers read the ACLs of the topic again."""
        path, text = "/kafka-acl-changes/acl_changes_", f"Topic:{name}".encode()
        zookeeper.create(path, text, sequence=True)

    broker.stop()
    try:
        text = json.dumps({"version": 1, "acls": [acl]}).encode()
        zookeeper.create(f"/kafka-acl/Topic/{name}", text)
        broker.start()
        ready = on_zookeeper.run("kafka_cluster_info", wait={"brokers": [1, 2, 3]})
        assert not ready.failed, ready.msg
        chosen = {"resources": [f"topic:{name}"]}
        found = on_zookeeper.run("kafka_acls_info", **{**chosen, "timeout": 5})
        assert not found.failed and found.binding_count == 1, found.values
        lacking = [(each["broker"], each["lacks"]) for each in found.differing]
        assert lacking == [(1, found.acls), (2, found.acls)]
        assert "not known to broker 1, 2, but to others: allow User:late" in str(found.warnings)
        others = on_zookeeper.run("kafka_acls_info", resources=["topic:other"], timeout=5)
        assert others.differing == [] and not others.values.get("warnings")

        heard = threading.Timer(1, tell)
        heard.start()
        found = on_zookeeper.run("kafka_acls_info", **chosen)
        heard.join()
        assert found.differing == [] and found.binding_count == 1, found.values
    finally:
        if not broker.running():
            broker.start()
        tell()
        late = {"topic": name, "principal": "late", "operations": "read", "state": "absent"}
        gone = on_zookeeper.run("kafka_acls", acls=[late])
        zookeeper.stop()
        zookeeper.close()
    assert gone.changed and not gone.failed, gone.values

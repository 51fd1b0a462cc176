# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user who lacks a right is told which, with exit code 3: the client gives up, and hides the cause behind that."""

import threading
import time

import pytest
from confluent_kafka import admin as kafka
from flow.messages.failure import CannotRun
from flow.record import complaints, own_names

from tests.support.bare_cluster import BareCluster
from tests.support.outside import wait_until

EVERYTHING = (
    (kafka.ResourceType.TOPIC, "*"),
    (kafka.ResourceType.GROUP, "*"),
    (kafka.ResourceType.TRANSACTIONAL_ID, "*"),
    (kafka.ResourceType.BROKER, "kafka-cluster"),
)
WRITE_OWN = (kafka.ResourceType.TOPIC, own_names.PREFIX, kafka.AclOperation.WRITE)
WRITE_ANY = (kafka.ResourceType.TOPIC, "*", kafka.AclOperation.WRITE)
IDEMPOTENT = (kafka.ResourceType.BROKER, "kafka-cluster", kafka.AclOperation.IDEMPOTENT_WRITE)
TRANSACTIONAL = (kafka.ResourceType.TRANSACTIONAL_ID, "*", kafka.AclOperation.WRITE)
DESCRIBE_OWN = (kafka.ResourceType.TOPIC, own_names.PREFIX, kafka.AclOperation.DESCRIBE)


@pytest.mark.parametrize(
    "errors, said",
    [
        ({}, ""),
        ({"_PURGE_QUEUE": 300, "CLUSTER_AUTHORIZATION_FAILED": 1}, "CLUSTER_AUTHORIZATION_FAILED"),
        ({"_MSG_TIMED_OUT": 9, "TOPIC_AUTHORIZATION_FAILED": 1}, "TOPIC_AUTHORIZATION_FAILED"),
        ({"_PURGE_QUEUE": 300, "_FATAL": 1, "INVALID_RECORD": 2}, "INVALID_RECORD"),
        ({"INVALID_RECORD": 2, "_MSG_TIMED_OUT": 3}, "_MSG_TIMED_OUT"),
        ({"_PURGE_QUEUE": 300, "_FATAL": 1}, "_PURGE_QUEUE"),
    ],
)
def test_the_cause_is_what_does_not_only_follow(errors, said):
    assert complaints.cause(errors) == said
    right = complaints.missing_right(said, "mine")
    assert bool(right) == said.endswith("AUTHORIZATION_FAILED")
    assert "{" not in right


def binding(kind, name, operation, permission):
    whole = kafka.ResourcePatternType.LITERAL
    pattern = kafka.ResourcePatternType.PREFIXED if name == own_names.PREFIX else whole
    return kafka.AclBinding(kind, name, pattern, "User:ANONYMOUS", "*", operation, permission)


@pytest.fixture(name="guarded", scope="module")
def guarded_fixture(tmp_path_factory, port_base):
    """A broker with an authorizer, by which everybody has every right, and a topic that is asked for comes to be."""
    with BareCluster(
        directory=tmp_path_factory.mktemp("guarded"),
        port_base=port_base + 200,
        brokers=1,
        zookeepers=1,
        broker_config={
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
            "auto.create.topics.enable": "true",
        },
    ) as running:
        admin = kafka.AdminClient({"bootstrap.servers": running.bootstrap_servers})
        allow = kafka.AclPermissionType.ALLOW
        rules = [binding(*each, kafka.AclOperation.ALL, allow) for each in EVERYTHING]
        for future in admin.create_acls(rules).values():
            future.result(30)
        yield running


@pytest.fixture(name="without")
def without_fixture(guarded):
    """Takes these rights from everybody, until the test ends."""
    admin = kafka.AdminClient({"bootstrap.servers": guarded.bootstrap_servers})
    taken = []

    def take(*rights):
        for right in rights:
            rule = binding(*right, kafka.AclPermissionType.DENY)
            admin.create_acls([rule])[rule].result(30)
            taken.append(rule)
        time.sleep(1)  # the broker hears of it by ZooKeeper

    yield take
    for rule in taken:
        chosen = kafka.AclBindingFilter(
            rule.restype,
            rule.name,
            rule.resource_pattern_type,
            rule.principal,
            rule.host,
            rule.operation,
            rule.permission_type,
        )
        admin.delete_acls([chosen])[chosen].result(30)


@pytest.mark.parametrize(
    "rights, options, said",
    [
        ([WRITE_OWN], [], r"\(TOPIC_AUTHORIZATION_FAILED\); allow it Write and Describe on topic"),
        ([WRITE_OWN], ["--transactional"], r"allow it Write and Describe on topic kafkaops-flow-"),
        ([WRITE_ANY, IDEMPOTENT], ["--topic=theirs"], r"allow it Write on topic theirs, "),
        (
            [TRANSACTIONAL],
            ["--transactional"],
            r"Write and Describe on the transactional ids kafkaops-flow-\*",
        ),
        ([DESCRIBE_OWN], ["--timeout=5"], r"this user may not see it; allow it Describe on it"),
    ],
    ids=["write", "transactions", "id", "transactional id", "describe"],
)
def test_a_missing_right_is_named(spark, guarded, without, tmp_path, capfd, rights, options, said):
    import job
    from flow import steps

    admin = kafka.AdminClient({"bootstrap.servers": guarded.bootstrap_servers})
    if "--topic=theirs" in options:
        admin.create_topics([kafka.NewTopic("theirs", 3, 1)])["theirs"].result(30)
    without(*rights)
    where = [f"--ledger={tmp_path}/ledger", f"--output={tmp_path}"]
    servers = f"--bootstrap-servers={guarded.bootstrap_servers}"
    given = ["--records=300", "--partitions=3", "--delivery-timeout=10", *options]
    with pytest.raises(CannotRun, match=said):
        steps.run(job.arguments(["run", servers, *where, *given]))
    assert not (tmp_path / "ledger").exists()
    assert "FATAL" not in capfd.readouterr().err


def test_a_right_that_was_taken_away_meanwhile_is_named_beside_what_stays_open(
    spark, guarded, without, tmp_path
):
    import job
    from flow import steps

    where = [f"--ledger={tmp_path}/ledger", f"--output={tmp_path}"]
    servers = f"--bootstrap-servers={guarded.bootstrap_servers}"
    given = ["--duration=8s", "--rate=200", "--groups=0", "--delivery-timeout=5"]
    taking = threading.Timer(5, without, [WRITE_OWN])
    taking.start()
    try:
        assert steps.run(job.arguments(["run", servers, *where, *given])) == 2
    finally:
        taking.join()
    said = (tmp_path / "verdict.json").read_text(encoding="utf-8")
    assert "the producers lacked a right, TOPIC_AUTHORIZATION_FAILED" in said


def test_who_asks_for_a_topic_by_its_name_does_not_make_it(guarded):
    from flow.prepare.cluster import Cluster

    settings = {"bootstrap.servers": guarded.bootstrap_servers}
    asked = Cluster(settings, 30)
    assert asked.layout("not-there") == {} and asked.positions("not-there") == {}
    time.sleep(1)
    assert "not-there" not in asked.topics()
    kafka.AdminClient(settings).list_topics("there-now", timeout=30)  # as a client by default
    wait_until(lambda: "there-now" in asked.topics(), 30, "the broker has made it")

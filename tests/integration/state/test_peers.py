# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the test suites of other tools ask for, in both modes, as far as no other test does.

Their cases, and where each is. Files without a folder are in this one; `topics/` is the folder beside it.

ansible-kafka-admin (molecule: default, scram-kafka-270)
    partitions, replicas, both             topics/test_peers.py
    -1 for both                            test_what_is_left_out_stays_as_it_is
    options added; a topic deleted         topics/test_kafka_topics.py
    options removed                        test_settings_of_several_topics_are_taken_away_at_once
    ACL created, deleted; info             test_acls.py
    check mode                             test_check_mode_tells_a_change_and_changes_nothing
    lag; info of groups                    test_lag.py
    info of topics, brokers, users         test_topics_and_disks_info.py, test_users.py
    offsets deleted, of a partition        test_consumer_groups.py
    quotas created, altered, one removed   test_kafka_quotas.py, test_one_limit_of_a_client_of_a_user_...
    quotas: SASL_SSL, TLS, PEM as text     test_quotas_over_tls
    quotas by ZooKeeper, with TLS          no: the modules ask brokers only
    users and their logins                 test_users.py

Terraform's provider (Mongey/kafka)
    topic: basic, settings, partitions     topics/test_kafka_topics.py
    topic: replicas, and no record lost    topics/test_peers.py
    topic: fewer partitions                refused, topics/test_kafka_topics.py; theirs deletes the topic
    ACL: allow a name, then deny a prefix  test_a_right_that_becomes_another
    ACL imported                           test_acls.py: what the info tells changes nothing
    quota: basic, changed, composite       test_kafka_quotas.py, test_a_limit_of_a_client_of_all_users
    credential: both mechanisms, rounds    test_users.py
    data: a topic, all topics              test_topics_and_disks_info.py
    force_delete; lazy clients; ids        no: of its state file

topicctl
    retention in steps, settings           test_kafka_retention.py
    other replicas refused                 topics/test_kafka_topics.py
    balanced leaders, rebalance            topics/test_kafka_reassignment.py
    static and in-rack placement           no: replicas lie on distinct racks
    partitions added                       topics/test_kafka_topics.py; Kafka places them
    throttles, left ones, others' ones     topics/test_kafka_reassignment.py, test_reassignment_steps.py (unit)
    order of replicas without a throttle   test_reassignment_steps.py (unit)
    dry run                                topics/test_kafka_topics.py, test_acls.py
    groups, lag, offsets by partition      test_lag.py, test_consumer_groups.py
    ACLs, users                            test_acls.py, test_users.py

kafkactl
    topics: created, altered, deleted      topics/test_kafka_topics.py
    replicas of one partition by ids       no: drain, spread and onto choose
    brokers: merged, cluster-wide, validated, not dynamic   test_kafka_configs.py
    offsets: topics, all, time             test_consumer_groups.py
    offsets deleted, while read            test_consumer_groups.py; what is gone already is unchanged
    group cloned                           test_a_group_goes_on_where_another_one_is
    records deleted, by partition          test_records_before_another_offset_of_each_partition
    ACL: read but not write; denied        test_acls.py, test_a_right_that_becomes_another
    users: both mechanisms, one deleted    test_one_mechanism_of_two_is_taken_away
    a salt of one's own                    no: salts are random
    produce, consume, completion, contexts, Kubernetes      no: of a command line
"""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import ConfigResource

from tests.support.outside import wait_until
from tests.support.readers import commit, create, start_of, write
from tests.support.run_module import run_module
from tests.support.secured_cluster import MUTUAL, SAFE


def topics(secured, *items, check=False, **options):
    """kafka_topics."""
    return secured.run("kafka_topics", check, topics=list(items), **options)


def own(admin, name):
    """The settings that a topic itself has, as another client tells them."""
    (future,) = admin.describe_configs([ConfigResource("topic", name)]).values()
    found = future.result(30).values()
    return {each.name: each.value for each in found if not each.is_default and each.source == 1}


def partitions(admin, name):
    """How many a topic has; 0 if there is none."""
    found = admin.list_topics(timeout=10).topics.get(name)
    return len(found.partitions) if found else 0


def bindings(secured, name):
    """(principal, operations) of the ACLs about a topic."""
    found = secured.run("kafka_acls_info", resources=[f"topic:{name}"]).acls
    return [(each["principal"], each["operations"]) for each in found]


@pytest.mark.soak
def test_check_mode_tells_a_change_and_changes_nothing(secured, admin, name):
    """Removed, changed and new, of topics and of rights."""
    new = f"{name}.new"
    item = {"name": name, "partitions": 1, "config": {"flush.ms": 564939}}
    acl = {"topic": name, "principal": "a", "operations": "write"}
    assert topics(secured, item).changed and secured.run("kafka_acls", acls=[acl]).changed
    allow = ["delete", "partition_growth", "retention_cut"]
    for wanted in (
        {"name": name, "state": "absent"},
        {**item, "partitions": 2, "config": {"retention.ms": 1000}},
        {"name": new},
    ):
        looked = topics(secured, wanted, check=True, allow=allow)
        assert looked.changed and not looked.failed, looked.msg
    for wanted in ({**acl, "state": "absent"}, {**acl, "topic": new}):
        looked = secured.run("kafka_acls", check=True, acls=[wanted])
        assert looked.changed and not looked.failed, looked.msg
    assert (partitions(admin, name), partitions(admin, new)) == (1, 0)
    assert own(admin, name) == {"flush.ms": "564939"}
    assert bindings(secured, name) == [("User:a", ["write"])] and not bindings(secured, new)


def test_settings_of_several_topics_are_taken_away_at_once(secured, admin, name):
    both = {"retention.ms": 66574936, "flush.ms": 564939}
    items = [{"name": f"{name}.{number}", "config": both} for number in (1, 2)]
    assert topics(secured, *items).changed and not topics(secured, *items).changed
    for item in items:
        item["config"] = {"flush.ms": 564939}
    options = {"config_mode": "replace", "allow": ["retention_cut"]}
    done = topics(secured, *items, **options)
    assert len(done.plan["changes"]) == 2 and not done.failed
    assert topics(secured, *items, **options).changed is False
    assert [own(admin, item["name"]) for item in items] == [{"flush.ms": "564939"}] * 2


def test_what_is_left_out_stays_as_it_is(secured, admin, name):
    """The peer's -1; ours is to say nothing, and a number below one is refused."""
    assert topics(secured, {"name": name, "partitions": 3}).changed
    assert topics(secured, {"name": name}).changed is False
    refused = topics(secured, {"name": name, "partitions": -1, "replication_factor": -1})
    assert refused.failed and not refused.changed and len(refused.checks) == 2
    assert partitions(admin, name) == 3


@pytest.mark.parametrize(
    ("module", "item"),
    [
        ("kafka_topics", {"name": "{}"}),
        ("kafka_acls", {"topic": "{}", "principal": "a", "operations": "write"}),
        ("kafka_quotas", {"user": "{}", "limits": {"producer_byte_rate": 1}}),
        ("kafka_users", {"name": "{}", "password": "a long one"}),
    ],
)
def test_what_is_listed_twice_is_refused(secured, admin, name, module, item):
    option = module.split("_")[1]
    item = {key: name if value == "{}" else value for key, value in item.items()}
    refused = secured.run(module, **{option: [item, dict(item)]})
    assert refused.failed and not refused.changed, refused.values
    assert any(check.endswith(".duplicate") for check, *_subjects in refused.checks), refused.msg
    assert secured.run(module, check=True, **{option: [item]}).changed, "nothing is there"


@pytest.mark.soak
def test_one_limit_of_a_client_of_a_user_is_changed_and_another_added(secured, name):
    quota = {"user": name, "client_id": f"{name}-client", "limits": {"producer_byte_rate": 104101}}
    assert secured.run("kafka_quotas", quotas=[quota]).changed
    quota["limits"] = {"producer_byte_rate": 12, "consumer_byte_rate": 104101}
    assert secured.run("kafka_quotas", quotas=[quota]).changed
    assert secured.run("kafka_quotas", quotas=[quota]).changed is False

    def told():
        text = secured.tool(
            "kafka.admin.ConfigCommand",
            *("--describe", "--entity-type", "users", "--entity-name", name),
            *("--entity-type", "clients", "--entity-name", quota["client_id"]),
        )
        return "producer_byte_rate=12.0" in text and "consumer_byte_rate=104101.0" in text

    wait_until(told, 30, "Kafka's own tool tells it")
    gone = [{"user": name, "client_id": quota["client_id"], "state": "absent"}]
    assert secured.run("kafka_quotas", quotas=gone).changed


def by_certificate(secured, certificate, **files):
    """Options for the listener whose clients show a certificate."""
    return {
        "bootstrap_servers": secured.bare.listener_address(MUTUAL),
        "security_protocol": "SSL",
        "ssl_ca": certificate.certificate,
        "ssl_certificate": certificate.certificate,
        "ssl_key": certificate.key,
        **files,
    }


def by_password_and_tls(secured, certificate):
    """Options for the listener with passwords and TLS."""
    return {
        **secured.arguments(),
        "bootstrap_servers": secured.bare.listener_address(SAFE),
        "security_protocol": "SASL_SSL",
        "ssl_ca": certificate.certificate,
    }


@pytest.mark.parametrize("way", ["password", "certificate", "certificate in files"])
def test_quotas_over_tls(secured, certificate, name, tmp_path, way):
    """A limit, then a second one, unchanged, as Kafka's own tool tells them."""
    if way == "password":
        options = by_password_and_tls(secured, certificate)
    elif way == "certificate":
        options = by_certificate(secured, certificate)
    else:
        texts = {"ssl_ca": "certificate", "ssl_certificate": "certificate", "ssl_key": "key"}
        files = {option: tmp_path / option for option in texts}
        for option, which in texts.items():
            files[option].write_text(getattr(certificate, which))
        options = by_certificate(secured, certificate, **{o: str(p) for o, p in files.items()})
    quota = {"user": name, "client_id": f"{name}-client", "limits": {"producer_byte_rate": 104101}}
    assert run_module("kafka_quotas", {**options, "quotas": [quota]}).changed
    quota["limits"]["consumer_byte_rate"] = 104101
    for changed in (True, False):
        done = run_module("kafka_quotas", {**options, "quotas": [quota]})
        assert done.changed is changed and not done.failed, done.values
        assert "PRIVATE KEY" not in str(done.values)
    words = ("--entity-type", "users", "--entity-name", name)
    words += ("--entity-type", "clients", "--entity-name", f"{name}-client")
    told = secured.tool("kafka.admin.ConfigCommand", "--describe", *words)
    assert "producer_byte_rate=104101.0" in told and "consumer_byte_rate=104101.0" in told
    gone = {"user": name, "client_id": f"{name}-client", "state": "absent"}
    assert run_module("kafka_quotas", {**options, "quotas": [gone]}).changed


def test_whoever_shows_no_certificate_is_told_so(secured, certificate, name):
    """By both clients."""
    options = by_certificate(secured, certificate)
    del options["ssl_certificate"], options["ssl_key"]
    for module, item in (("kafka_topics", {"name": name}), ("kafka_quotas", {"user": name})):
        said = {module.split("_")[1]: [item]}
        refused = run_module(module, {**options, **said, "timeout": 10})
        assert refused.failed and refused.changed is False
        assert refused.msg.startswith("[connection.certificate]"), refused.msg
        assert "a client certificate is needed, or another one: set ssl_certificate" in refused.msg


def test_all_that_is_read_is_read_with_a_certificate(secured, certificate):
    """Some of it by one client, some by the other."""
    options = by_certificate(secured, certificate)
    for module in (
        *("kafka_topics_info", "kafka_configs_info", "kafka_acls_info", "kafka_users_info"),
        *("kafka_quotas_info", "kafka_consumer_groups_info", "kafka_log_dirs_info"),
        "kafka_cluster_info",
    ):
        found = run_module(module, options)
        assert not found.failed and found.changed is False, found.values


def test_a_right_that_becomes_another(secured, admin, name):
    """From a name that may be written to, to a prefix that may not, at once; and that is then in force."""
    create(secured, admin, name)
    allowed = {"topic": name, "principal": "team", "operations": "write"}
    denied = {**allowed, "pattern": "prefixed", "permission": "deny"}
    assert secured.run("kafka_acls", acls=[allowed]).changed
    assert writes(secured, name)
    both = [{**allowed, "state": "absent"}, denied]
    done = secured.run("kafka_acls", acls=both)
    assert sorted(kind for kind, _subject in done.kinds) == ["create", "delete"]
    told = secured.acl_tool("--list", "--topic", name, "--resource-pattern-type", "match")
    assert "PREFIXED" in told and "DENY" in told and "ALLOW" not in told
    again = secured.run("kafka_acls", acls=[*both, allowed])
    assert again.failed and not again.changed, "it cannot be both"
    assert secured.run("kafka_acls", acls=both).changed is False
    assert secured.run("kafka_acls", acls=[allowed]).changed
    assert not writes(secured, name), "what is denied is denied"


def writes(secured, name):
    """Whether the user `team` may write a record."""
    errors = []
    producer = Producer({**secured.client_settings("team"), "message.timeout.ms": 20_000})
    producer.produce(name, b"x", on_delivery=lambda error, _record: errors.append(error))
    assert producer.flush(30) == 0
    assert errors[0] is None or errors[0].name() == "TOPIC_AUTHORIZATION_FAILED", errors
    return errors[0] is None


def test_a_limit_of_a_client_of_all_users(secured, name):
    limits = {"consumer_byte_rate": 4_000_000, "producer_byte_rate": 2_500_000}
    quota = {"user": "<default>", "client_id": name, "limits": limits}
    assert secured.run("kafka_quotas", quotas=[quota]).changed
    quota["limits"] = {**limits, "consumer_byte_rate": 3_000_000}
    done = secured.run("kafka_quotas", quotas=[quota])
    assert done.changed and secured.run("kafka_quotas", quotas=[quota]).changed is False
    words = ("--describe", "--entity-type", "users", "--entity-default")
    words += ("--entity-type", "clients", "--entity-name", name)
    told = secured.tool("kafka.admin.ConfigCommand", *words)
    assert "consumer_byte_rate=3000000.0" in told and "producer_byte_rate=2500000.0" in told
    gone = {"user": "<default>", "client_id": name, "state": "absent"}
    assert secured.run("kafka_quotas", quotas=[gone]).changed
    assert not secured.run("kafka_quotas_info").quotas


def test_one_mechanism_of_two_is_taken_away(secured, name):
    both = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    user = {"name": name, "password": "a long one", "mechanisms": both}
    assert secured.run("kafka_users", users=[user]).changed
    gone = {"name": name, "mechanisms": both[:1], "state": "absent"}
    done = secured.run("kafka_users", users=[gone])
    assert done.kinds == [("delete", f"{name} SCRAM-SHA-256")] and not done.failed, done.values
    words = ("--describe", "--entity-type", "users", "--entity-name", name)
    told = secured.tool("kafka.admin.ConfigCommand", *words)
    assert "SCRAM-SHA-512" in told and "SCRAM-SHA-256" not in told
    assert secured.run("kafka_users", users=[gone]).changed is False
    assert secured.run("kafka_users", users=[{"name": name, "state": "absent"}]).changed


def test_records_before_another_offset_of_each_partition(secured, admin, name):
    create(secured, admin, name, 2)
    write(secured.client_settings(), name, {0: 2, 1: 3})
    items = [
        {"name": name, "partitions": [0], "before_offset": 1},
        {"name": name, "partitions": [1], "before_offset": 2},
    ]
    done = secured.run("kafka_records", topics=items, allow=["delete_records"])
    assert not done.failed and done.records == 3, done.values
    assert (start_of(admin, name), start_of(admin, name, 1)) == (1, 2)
    assert secured.run("kafka_records", topics=items).changed is False


def test_a_group_goes_on_where_another_one_is(secured, admin, name, tmp_path):
    """What the info tells of one is the file for the other."""
    create(secured, admin, name, 2)
    write(secured.client_settings(), name, {0: 3, 1: 2})
    commit(secured.client_settings(), f"{name}-source", {(name, 0): 3, (name, 1): 2})
    source = secured.run("kafka_consumer_groups_info", groups=[f"{name}-source"]).groups[0]
    path = tmp_path / "offsets.csv"
    lines = (
        f"{each['topic']},{each['partition']},{each['committed']}" for each in source["partitions"]
    )
    path.write_text("\n".join(lines))
    group = {"name": f"{name}-target", "src": str(path)}
    assert secured.run("kafka_consumer_groups", groups=[group]).changed
    target = secured.run("kafka_consumer_groups_info", groups=[f"{name}-target"]).groups[0]
    assert [each["committed"] for each in target["partitions"]] == [3, 2]
    assert secured.run("kafka_consumer_groups", groups=[group]).changed is False

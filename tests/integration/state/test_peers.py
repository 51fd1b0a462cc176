# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the test suites of ansible-kafka-admin and of Terraform's provider for Kafka ask for, in both modes."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import ConfigResource

from tests.support.outside import wait_until
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

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_quotas and kafka_quotas_info against real clusters, compared with Kafka's own tool."""

from __future__ import annotations

import re

import pytest
from confluent_kafka.admin import (
    AclOperation,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    Connection,
    parse_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.client import (
    QuotasClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.resource import Quotas
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import reconcile
from tests.support.outside import wait_until
from tests.support.rights import right_on_the_cluster

TOOL = "kafka.admin.ConfigCommand"
MIB = 2**20


def told(secured, *kinds):
    """Lines of Kafka's own tool about quotas: entity -> {limit: number}."""
    types = [word for kind in kinds for word in ("--entity-type", kind)]
    found = {}
    for line in secured.tool(TOOL, "--describe", *types).splitlines():
        match = re.match(r"Quota configs for (.*) are (\S.*)", line)
        if match:
            pairs = (pair.split("=") for pair in match[2].split(", "))
            found[match[1]] = {key: float(value) for key, value in pairs}
    return found


def client_of(secured):
    """Our client, to count what it sends."""
    said = secured.arguments()
    return QuotasClient(
        Connection(
            parse_addresses(said["bootstrap_servers"].split(",")),
            *(said[each] for each in ("security_protocol", "sasl_mechanism")),
            *(said[each] for each in ("sasl_username", "sasl_password")),
        )
    )


def options(quotas):
    """The parameters of the module."""
    return {"quotas": quotas, "limits_mode": "merge", "purge": None}


def test_create_change_and_remove(secured, name):
    quotas = [
        {"user": name, "limits": {"producer_byte_rate": "1MiB", "request_percentage": "12.5%"}},
        {"user": name, "client_id": "<default>", "limits": {"consumer_byte_rate": 2048}},
        {"client_id": name, "limits": {"controller_mutation_rate": 1.5}},
        {"ip": "192.0.2.7", "limits": {"connection_creation_rate": 10}},
        {"ip": "<default>", "limits": {"connection_creation_rate": 11}},
    ]
    looked = secured.run("kafka_quotas", check=True, quotas=quotas)
    assert looked.changed and len(looked.plan["changes"]) == 5, looked.values
    assert not secured.run("kafka_quotas_info").quotas
    done = secured.run("kafka_quotas", quotas=quotas)
    assert done.changed and not done.failed_items, done.values
    assert (done.plan, done.diff, done.quotas) == (looked.plan, looked.diff, looked.quotas)
    again = secured.run("kafka_quotas", quotas=quotas)
    assert not again.changed and again.quotas == done.quotas

    assert told(secured, "users")[f"user-principal '{name}'"] == {
        "producer_byte_rate": MIB,
        "request_percentage": 12.5,
    }
    assert told(secured, "users", "clients") == {
        f"user-principal '{name}', the default client-id": {"consumer_byte_rate": 2048}
    }
    assert told(secured, "clients") == {f"client-id '{name}'": {"controller_mutation_rate": 1.5}}
    assert told(secured, "ips") == {
        "ip '192.0.2.7'": {"connection_creation_rate": 10},
        "the default ip": {"connection_creation_rate": 11},
    }

    # What is read can be declared, and changes nothing.
    read = secured.run("kafka_quotas_info").quotas
    assert len(read) == 5
    taken = secured.run("kafka_quotas", quotas=read, limits_mode="replace")
    assert not taken.changed and not taken.failed, taken.values

    one = [{"user": name, "limits": {"request_percentage": None}}]
    left = secured.run("kafka_quotas", quotas=one)
    assert left.changed and left.quotas == [{"user": name, "limits": {"producer_byte_rate": MIB}}]
    two = [{"user": name, "limits": {"consumer_byte_rate": "3MiB"}}]
    left = secured.run("kafka_quotas", quotas=two, limits_mode="replace")
    assert left.changed and left.quotas[0]["limits"] == {"consumer_byte_rate": 3 * MIB}

    gone = [{"user": name, "state": "absent"}, {"ip": "<default>", "state": "absent"}]
    removed = secured.run("kafka_quotas", quotas=gone)
    assert removed.changed and not removed.quotas
    assert list(told(secured, "ips")) == ["ip '192.0.2.7'"]
    assert not secured.run("kafka_quotas", quotas=gone).changed

    purge = {"patterns": [".*"], "maximum": 2}
    refused = secured.run("kafka_quotas", quotas=[], purge=purge)
    assert refused.failed and refused.checks == [("purge.maximum", "purge")]
    assert len(secured.run("kafka_quotas_info").quotas) == 3
    assert secured.run("kafka_quotas", quotas=[], purge={**purge, "maximum": 3}).changed
    assert not secured.run("kafka_quotas_info").quotas


def test_passwords_of_a_user_stay_when_the_quotas_go(secured, admin, name):
    """On a cluster of the ZooKeeper line both are in one node."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsertion = UserScramCredentialUpsertion(name, info, b"a password")
    admin.alter_user_scram_credentials([upsertion])[name].result(30)
    quota = [{"user": name, "limits": {"producer_byte_rate": "1MiB"}}]
    assert not secured.run("kafka_quotas_info").quotas
    assert secured.run("kafka_quotas", quotas=quota).changed
    assert secured.run("kafka_quotas", quotas=[{"user": name, "state": "absent"}]).changed
    found = admin.describe_user_scram_credentials([name])[name].result(30)
    assert len(found.scram_credential_infos) == 1


def test_what_is_wrong_is_said_before_anything_is_changed(secured, name):
    quotas = [
        {"user": name, "limits": {"producer_byte_rate": "1MiB"}},
        {"user": name, "limits": {"producer_rate": 1}},
        {"user": True, "limits": {"producer_byte_rate": "1MiB"}},
        {"client_id": name, "limits": {"producer_byte_rate": "1M"}},
    ]
    refused = secured.run("kafka_quotas", quotas=quotas)
    assert refused.failed and not refused.changed
    checks = [each[0] for each in refused.checks]
    assert checks == ["quotas.unknown_limit", "quotas.bad_entity", "quotas.bad_value"]
    assert not secured.run("kafka_quotas_info").quotas


def test_what_the_brokers_refuse_is_refused_before_the_first_change(on_zookeeper, name):
    """Kafka of the ZooKeeper line cannot keep a quota of an IPv6 address."""
    quotas = [
        {"user": name, "limits": {"producer_byte_rate": "1MiB"}},
        {"ip": "2001:db8::1", "limits": {"connection_creation_rate": 1}},
    ]
    failed = on_zookeeper.run("kafka_quotas", quotas=quotas)
    assert failed.failed and not failed.changed
    (item,) = failed.failed_items
    assert (item["name"], item["code"]) == ("ip=2001:db8::1", "INVALID_REQUEST")
    assert not on_zookeeper.run("kafka_quotas_info").quotas


def test_the_rest_is_done_where_one_is_refused(secured, name):
    """The brokers refuse one only when it is made: here by leaving out that they are asked before."""

    class Unasked(Quotas):
        """Plans a limit that Kafka does not know, too."""

        def plan(self, snapshot):
            plan = super().plan(snapshot)
            wrong = Change("create", "user=wrong", {"no_limit": None}, {"no_limit": 1})
            return type(plan)((wrong, *plan.changes)) if plan else plan

        def validate(self, changes, deadline):
            return []

    quotas = [{"user": name, "limits": {"producer_byte_rate": "1MiB"}}]
    resource = Unasked(client_of(secured), options(quotas))
    resource.connect()
    outcome = reconcile(resource, False, 30)
    assert [each.subject for each in outcome.changed] == [f"user={name}"]
    (failure,) = outcome.failures
    assert failure.subject == "user=wrong" and "no_limit" in failure.error
    assert not outcome.unsettled and not outcome.check_error
    assert secured.run("kafka_quotas", quotas=[{"user": name, "state": "absent"}]).changed


def test_who_has_no_right_is_told_which(secured, admin, name):
    quotas = [{"user": name, "limits": {"producer_byte_rate": "1MiB"}}]
    failed = secured.run("kafka_quotas", user="nobody", quotas=quotas)
    assert failed.failed and "grant it DescribeConfigs on the cluster" in failed.msg

    def refused():
        """What the module says once the brokers know of the right."""
        result = secured.run("kafka_quotas", user="team", quotas=quotas)
        assert result.failed and not result.changed
        return result.values.get("failed_items")

    with right_on_the_cluster(admin, "team", AclOperation.DESCRIBE_CONFIGS):
        (item,) = wait_until(refused, 30, "it may read")
    assert item["code"] == "CLUSTER_AUTHORIZATION_FAILED"
    assert "AlterConfigs on the cluster" in item["error"]
    assert not secured.run("kafka_quotas_info").quotas


@pytest.mark.parametrize("count", [10, 400])
def test_the_number_of_requests_does_not_grow(secured, name, count):
    def run(**item):
        quotas = [{"user": f"{name}-{index}", **item} for index in range(count)]
        client = client_of(secured)
        resource = Quotas(client, options(quotas))
        resource.connect()
        outcome = reconcile(resource, False, 60)
        assert not outcome.failures and not outcome.unsettled
        return len(outcome.changed), client.requests

    made, requests = run(limits={"producer_byte_rate": "1MiB"})
    # Once for the plan, once right before; and each broker for what it shows, until it shows it.
    assert made == count and requests["alter_quotas"] == 2
    assert requests["describe_quotas"] <= 2 + 3 * secured.bare.brokers
    made, requests = run(limits={"producer_byte_rate": "1MiB"})
    assert made == 0 and requests["describe_quotas"] == 1 and not requests["alter_quotas"]
    made, requests = run(state="absent")
    assert made == count and requests["alter_quotas"] == 2

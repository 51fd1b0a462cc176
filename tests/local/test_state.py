# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All declared state of an inventory, applied by state.yml; drift told by --check; export.yml as the way in."""

from __future__ import annotations

import re

import pytest
import yaml
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourceType
from confluent_kafka.admin import ResourcePatternType as Pattern

from tests.local.support import LocalCluster

STATE = {
    "kafka_topics": [{"name": "orders", "partitions": 2, "retention": "7d"}],
    "kafka_dynamic_configs": [{"scope": "cluster", "settings": {"num.io.threads": 5}}],
    "kafka_acls": [
        {"principal": "app", "grant": ["read", "write"], "topic": "orders", "group": "app"}
    ],
    "kafka_quotas": [{"user": "app", "limits": {"producer_byte_rate": "1MiB"}}],
}
AUTHORIZER = {"kafka_authorizer": True, "kafka_super_users": ["User:ANONYMOUS"]}


@pytest.fixture(
    scope="module",
    params=[
        "inventories/local-1x1",
        pytest.param("inventories/local-kraft", marks=pytest.mark.soak),
    ],
)
def one_broker(next_offset, request):
    """One broker with ZooKeeper, or three without it; an authorizer, and a little of each kind of state."""
    with LocalCluster(next_offset(), inventory=request.param) as running:
        running.configure("kafka", **AUTHORIZER, **STATE)
        running.deploy()
        yield running


def lines(run):
    """Kind of state to what state.yml said of it."""
    return dict(re.findall(r"(topics|settings|rights|quotas) +([^\n\"']+)", run.text))


def test_site_applies_all_of_it_and_a_second_run_changes_nothing(one_broker):
    run = one_broker.play("state.yml")
    assert run.changed() == 0, run.text
    assert lines(run) == dict.fromkeys(("topics", "settings", "rights", "quotas"), "as declared")


def test_check_mode_tells_the_drift_and_a_run_takes_it_back(one_broker):
    admin = one_broker.admin()
    foreign = AclBinding(
        *(ResourceType.TOPIC, "orders", Pattern.LITERAL, "User:app", "*"),
        *(AclOperation.READ, AclPermissionType.ALLOW),
    )
    from confluent_kafka.admin import AclBindingFilter

    gone = AclBindingFilter(
        *(foreign.restype, foreign.name, foreign.resource_pattern_type, foreign.principal),
        *(foreign.host, foreign.operation, foreign.permission_type),
    )
    (future,) = admin.delete_acls([gone]).values()
    assert len(future.result(30)) == 1
    told = one_broker.play("state.yml", "--check", "--diff")
    said = lines(told)
    assert said["rights"].startswith("1 would change:") and said["topics"] == "as declared", said
    assert lines(one_broker.play("state.yml", "--check"))["rights"] == said["rights"]
    assert lines(one_broker.play("state.yml"))["rights"].startswith("1 changed:")
    assert one_broker.play("state.yml").changed() == 0


def test_what_is_exported_changes_nothing_when_it_is_applied(one_broker, tmp_path):
    one_broker.play("export.yml", "-e", f"export_to={tmp_path}")
    (written,) = tmp_path.glob("*-state.yml")
    found = yaml.safe_load(written.read_text())
    assert [each["name"] for each in found["kafka_topics"]] == ["orders"]
    assert found["kafka_quotas"] == [{"user": "app", "limits": {"producer_byte_rate": 1048576}}]
    assert {each["principal"] for each in found["kafka_acls"]} == {"User:app"}
    assert found["kafka_dynamic_configs"] == [
        {"scope": "cluster", "settings": {"num.io.threads": "5"}}
    ]
    one_broker.configure("kafka", **AUTHORIZER, **found)
    run = one_broker.play("state.yml")
    assert run.changed() == 0, run.text
    again = one_broker.play("export.yml", "-e", f"export_to={tmp_path}")
    assert again.changed() == 0, "the file is the same"
    one_broker.configure("kafka", **AUTHORIZER, **STATE)


def test_what_cannot_be_is_refused_before_anything(one_broker):
    one_broker.configure("kafka", **STATE)
    run = one_broker.play("site.yml", code=2)
    assert "acls.no_authorizer" in run.text, run.text
    one_broker.configure("kafka", **AUTHORIZER, **STATE)

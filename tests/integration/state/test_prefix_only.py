# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A team with rights on its prefix only declares its own topics; what it may not is named, with the right."""

from __future__ import annotations

import pytest

from tests.support.outside import wait_until
from tests.support.readers import create

RIGHTS = ["describe", "describe_configs", "create", "alter", "alter_configs", "delete"]


@pytest.fixture
def team(secured, name):
    """Return a call that runs a module as the team that has these rights on `name.`, which every broker knows."""
    acl = {"topic": f"{name}.", "pattern": "prefixed", "principal": "team", "operations": RIGHTS}
    done = secured.run("kafka_acls", acls=[acl])
    assert done.changed and not done.failed, done.msg

    def run(module, check=False, **options):
        return secured.run(module, check, "team", **options)

    return run


def test_its_topics_from_the_first_to_the_last(secured, team, name):
    mine = {"name": f"{name}.a", "partitions": 1, "replication_factor": secured.bare.brokers}
    looked = team("kafka_topics", check=True, topics=[mine])
    done = team("kafka_topics", topics=[mine])
    assert done.changed and not done.failed and done.plan == looked.plan, done.values
    for each in (looked, done):
        assert "DescribeConfigs on the cluster" in str(each.values.get("warnings")), each.values
    assert team("kafka_topics", topics=[mine]).changed is False
    mine.update(partitions=2, retention="30d")
    done = team("kafka_topics", topics=[mine], allow=["partition_growth"])
    assert not done.failed and {kind for kind, _name in done.kinds} == {"grow", "configure"}
    refused = team("kafka_topics", topics=[{**mine, "retention": "1d"}])
    assert ("retention.cut", mine["name"]) in refused.checks
    assert [each["name"] for each in team("kafka_topics_info").topics] == [mine["name"]]
    gone = team(
        "kafka_topics", topics=[{"name": mine["name"], "state": "absent"}], allow=["delete"]
    )
    assert gone.changed and not gone.failed, gone.msg


@pytest.mark.parametrize("there", [True, False])
def test_a_topic_of_others_is_refused_with_the_right_that_it_needs(
    secured, team, name, admin, there
):
    """Whether it is there nobody tells the team. Its own topic, in the same task, waits."""
    other, mine = f"{name}-other", f"{name}.a"
    if there:
        create(secured, admin, other)
    one = {"partitions": 1, "replication_factor": secured.bare.brokers}
    topics = [{"name": each, **one} for each in (mine, other)]
    for check in (True, False):
        told = team("kafka_topics", check=check, topics=topics)
        assert told.failed and told.changed is False, told.values
        (failure,) = told.failed_items
        assert (failure["name"], failure["code"]) == (other, "TOPIC_AUTHORIZATION_FAILED")
        assert "the user needs Create on the topic or on the cluster; or Describe" in told.msg
    assert mine not in admin.list_topics(timeout=10).topics


def test_a_right_that_is_taken_away_is_named(secured, team, name, admin):
    """What the team may not is refused before the first change."""
    own = f"{name}.a"
    create(secured, admin, own)
    denied = {"topic": own, "principal": "team", "permission": "deny"}
    wanted = {
        "alter_configs": {"name": own, "retention": "30d"},
        "alter": {"name": own, "partitions": 3},
        "delete": {"name": own, "state": "absent"},
    }
    allow = ["partition_growth", "delete"]
    for right, item in wanted.items():
        taken = [{**denied, "operations": right}]
        assert secured.run("kafka_acls", acls=taken).changed
        told = team("kafka_topics", topics=[item], allow=allow)
        assert told.failed and told.changed is False, told.values
        assert f"the user needs {right.title().replace('_', '')} on the topic" in told.msg
        assert secured.run("kafka_acls", acls=[{**taken[0], "state": "absent"}]).changed
    wait_until(
        lambda: team("kafka_topics", topics=[wanted["delete"]], allow=allow).changed, 20, "it may"
    )


def test_what_is_the_clusters_is_refused_with_the_right_that_it_needs(team, name):
    for module, options, right in (
        (
            "kafka_reassignment",
            {"spread": True, "topics": [f"{name}.a"]},
            "Describe on the cluster",
        ),
        ("kafka_log_dirs_info", {}, "Describe on the cluster"),
        ("kafka_configs_info", {}, "DescribeConfigs on the cluster"),
        ("kafka_acls_info", {}, "Describe on the cluster"),
        ("kafka_users_info", {}, "Describe on the cluster"),
        ("kafka_quotas_info", {}, "DescribeConfigs on the cluster"),
    ):
        told = team(module, **options)
        assert told.failed and told.values.get("changed", False) is False, (module, told.values)
        assert right in told.msg, (module, told.msg)

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_topics against a real cluster of the ZooKeeper line."""

from __future__ import annotations

import collections
import json

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource, NewTopic


def partitions(admin, name):
    """Number of partitions of a topic, None if it is not there; as a foreign client sees it."""
    topic = admin.list_topics(timeout=10).topics.get(name)
    return len(topic.partitions) if topic else None


def override(admin, name, key):
    """A topic's own setting, None if it has none; as a foreign client sees it."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    entry = admin.describe_configs([resource])[resource].result()[key]
    return entry.value if entry.source == 1 else None


def test_create_then_again_then_change_then_remove(modules, admin, name):
    """The life of a topic; the second run of every step changes nothing."""
    item = {
        "name": name,
        "partitions": 3,
        "replication_factor": 3,
        "retention": "7d",
        "config": {"min.insync.replicas": 2, "compression.type": "lz4"},
    }
    first = modules.topics([item])
    assert first.changed and first.kinds == [("create", name)]
    assert partitions(admin, name) == 3
    assert override(admin, name, "retention.ms") == "604800000"
    assert modules.topics([item]).changed is False

    item["config"]["compression.type"] = "zstd"
    changed = modules.topics([item])
    assert changed.kinds == [("configure", name)]
    assert changed.diff["before"] == {name: {"config": {"compression.type": "lz4"}}}
    assert changed.diff["after"] == {name: {"config": {"compression.type": "zstd"}}}
    assert override(admin, name, "compression.type") == "zstd"
    assert modules.topics([item]).changed is False

    gone = {"name": name, "state": "absent"}
    assert modules.topics([gone]).checks == [("topics.delete", name)]
    assert partitions(admin, name) == 3
    assert modules.topics([gone], allow=["delete"]).changed
    assert partitions(admin, name) is None
    assert modules.topics([gone], allow=["delete"]).changed is False


def test_check_mode_says_exactly_what_the_run_does(modules, admin, name):
    """Same plan, same diff, and nothing is there afterwards."""
    items = [{"name": name, "partitions": 2, "replication_factor": 3}]
    checked = modules.topics(items, check=True)
    assert checked.changed and partitions(admin, name) is None
    done = modules.topics(items)
    assert done.plan == checked.plan and done.diff == checked.diff


def test_check_mode_asks_the_brokers(modules, name):
    """A value that only the broker can judge fails in check mode, in the broker's words."""
    result = modules.topics([{"name": name, "config": {"compression.type": "bogus"}}], check=True)
    assert result.failed and result.changed is False
    assert result.failed_items[0]["name"] == name
    assert "compression.type" in result.failed_items[0]["error"]


def test_nothing_is_begun_when_the_brokers_reject_one(modules, admin, name):
    """A value that the brokers reject stops the whole run before the first write."""
    good = f"{name}-good"
    items = [{"name": good}, {"name": name, "config": {"compression.type": "bogus"}}]
    result = modules.topics(items)
    assert result.failed and result.changed is False
    assert partitions(admin, good) is None


@pytest.mark.parametrize("value", [True, "true", "True"])
def test_spellings_of_true_converge(modules, name, value):
    """`true`, "true" and True are one value."""
    key = "unclean.leader.election.enable"
    modules.topics([{"name": name, "config": {key: value}}])
    for other in (True, "true", "True"):
        assert modules.topics([{"name": name, "config": {key: other}}]).changed is False


def test_units_lists_and_numbers_converge(modules, name):
    """Human forms compare equal to what the broker describes."""
    item = {
        "name": name,
        "retention": "4w",
        "retention_size": "10GiB",
        "cleanup": "compact, delete",
        "config": {"segment.bytes": "512MiB", "min.cleanable.dirty.ratio": "0.50"},
    }
    assert modules.topics([item]).changed
    assert modules.topics([item]).changed is False
    plain = {
        "name": name,
        "config": {
            "retention.ms": 2419200000,
            "retention.bytes": 10 * 2**30,
            "cleanup.policy": ["delete", "compact"],
            "segment.bytes": 536870912,
            "min.cleanable.dirty.ratio": 0.5,
        },
    }
    assert modules.topics([plain]).changed is False


def test_merge_leaves_what_is_not_named_and_replace_resets_it(modules, admin, name):
    """The two meanings of a missing key, and null."""
    modules.topics([{"name": name, "config": {"max.message.bytes": 2000000, "flush.ms": 60000}}])
    item = {"name": name, "config": {"flush.ms": 60000}}
    assert modules.topics([item]).changed is False
    replaced = modules.topics([item], config_mode="replace")
    assert replaced.plan["changes"][0]["after"] == {"config": {"max.message.bytes": None}}
    assert override(admin, name, "max.message.bytes") is None
    assert override(admin, name, "flush.ms") == "60000"
    assert modules.topics([item], config_mode="replace").changed is False
    assert modules.topics([{"name": name, "config": {"flush.ms": None}}]).changed
    assert override(admin, name, "flush.ms") is None


def test_replace_leaves_throttles_to_whoever_moves_replicas(modules, admin, name):
    """Unless they are named."""
    keys = [f"{side}.replication.throttled.replicas" for side in ("leader", "follower")]
    throttled = {"name": name, "config": {keys[0]: "0:1", keys[1]: "0:2", "flush.ms": 60000}}
    assert modules.topics([throttled]).changed
    done = modules.topics([{"name": name}], config_mode="replace")
    assert done.plan["changes"][0]["after"] == {"config": {"flush.ms": None}}
    assert [override(admin, name, key) for key in keys] == ["0:1", "0:2"]
    gone = {"name": name, "config": dict.fromkeys(keys)}
    assert modules.topics([gone], config_mode="replace").changed
    assert [override(admin, name, key) for key in keys] in ([None, None], ["", ""])


def test_growth_needs_consent_and_decrease_is_refused(modules, admin, name):
    """Partitions only grow, and only with consent."""
    modules.topics([{"name": name, "partitions": 3}])
    refused = modules.topics([{"name": name, "partitions": 5}])
    assert refused.failed and refused.checks == [("partitions.growth", name)]
    assert "allow: [partition_growth]" in refused.msg and "order" in refused.msg
    assert partitions(admin, name) == 3
    assert modules.topics([{"name": name, "partitions": 5}], allow=["partition_growth"]).changed
    assert partitions(admin, name) == 5
    shrunk = modules.topics([{"name": name, "partitions": 4}], allow=["partition_growth"])
    assert shrunk.checks == [("partitions.decrease", name)]
    assert partitions(admin, name) == 5


REFUSED = [
    ("replication.exceeds_brokers", {"replication_factor": 4}),
    ("replication.min_insync", {"replication_factor": 1}),
    ("replication.min_insync", {"replication_factor": 3, "config": {"min.insync.replicas": 3}}),
    ("config.unknown_key", {"config": {"retention.mss": 1}}),
    ("config.bad_value", {"retention": "10G"}),
    ("config.bad_value", {"retention": "1month"}),
    ("config.bad_value", {"retention": True}),
    ("config.bad_value", {"retention": -5}),
    ("config.bad_value", {"retention_size": "10G"}),
    ("config.bad_value", {"cleanup": "shred"}),
    ("config.bad_value", {"config": {"segment.bytes": "1GB"}}),
    ("topics.contradiction", {"retention": "7d", "config": {"retention.ms": 1}}),
    ("topics.contradiction", {"retention_size": "1GiB", "config": {"retention.bytes": 1}}),
    ("topics.contradiction", {"cleanup": "compact", "config": {"cleanup.policy": "delete"}}),
    ("topics.bad_value", {"partitions": 0}),
    ("topics.bad_value", {"partitions": True}),
    ("topics.bad_value", {"partitions": "many"}),
    ("topics.bad_value", {"replication_factor": -1}),
    ("topics.bad_name", {"name": "a b"}),
    ("topics.bad_name", {"name": ".."}),
    ("topics.bad_name", {"name": "x" * 250}),
    ("topics.protected", {"name": "__consumer_offsets"}),
]


@pytest.mark.parametrize(
    "check, item", REFUSED, ids=[f"{c}-{i}" for i, (c, _) in enumerate(REFUSED)]
)
def test_bad_input_is_refused_with_its_id_and_nothing_changes(modules, admin, name, check, item):
    """Each wrong item stops the whole call, its innocent neighbour included."""
    # A topic must exist, from which the known settings are learned.
    modules.topics([{"name": "known"}])
    innocent = f"{name}-innocent"
    result = modules.topics([{"name": name, **item}, {"name": innocent}])
    assert result.failed and not result.changed
    assert [found for found, _subject in result.checks] == [check]
    assert f"[{check}]" in result.msg and "Remedy:" in result.msg
    assert partitions(admin, innocent) is None


def test_all_refusals_come_together(modules, name):
    """Three mistakes, one run, three lines."""
    result = modules.topics(
        [
            {"name": name, "replication_factor": 9},
            {"name": f"{name}-b", "retention": "soon"},
            {"name": f"{name}-b"},
            {"name": f"{name}-b"},
        ]
    )
    assert sorted(found for found, _subject in result.checks) == [
        "config.bad_value",
        "replication.exceeds_brokers",
        "topics.duplicate",
    ]


def test_replication_one_is_fine_where_min_isr_is_one(modules, name):
    """S3: a topic without redundancy, declared as such."""
    item = {"name": name, "replication_factor": 1, "config": {"min.insync.replicas": 1}}
    assert modules.topics([item]).changed


def test_changed_replication_factor_names_the_module_to_come(modules, name):
    """Moving replicas is another module's work."""
    modules.topics([{"name": name, "replication_factor": 3}])
    result = modules.topics([{"name": name, "replication_factor": 1}])
    assert result.checks == [("replication.change", name)]
    assert "kafka_reassignment" in result.msg


def test_colliding_name_is_refused(modules, name):
    """`.` and `_` share metric names; Kafka would turn the second one down half way."""
    modules.topics([{"name": f"{name}.x"}])
    result = modules.topics([{"name": f"{name}_x"}])
    assert result.checks == [("topics.collision", f"{name}_x")]


def test_partial_failure_is_told_truthfully(modules, admin, name, counted, monkeypatch):
    """Somebody else creates one of three topics between our question and our write."""
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics import resource

    class Overtaken(resource.PythonClient):
        def apply(self, changes, deadline):
            admin.create_topics([NewTopic(f"{name}-b", 1, 3)])[f"{name}-b"].result()
            return super().apply(changes, deadline)

    monkeypatch.setattr(resource, "PythonClient", Overtaken)
    result = modules.topics([{"name": f"{name}-{letter}"} for letter in "abc"])
    assert result.failed and result.changed
    assert [item["name"] for item in result.failed_items] == [f"{name}-b"]
    assert "exists" in result.failed_items[0]["error"]
    assert result.failed_items[0]["code"] == "TOPIC_ALREADY_EXISTS"
    assert "2 of 3 changes were made; refused by the cluster" in result.msg
    assert [topic["name"] for topic in result.topics] == [f"{name}-a", f"{name}-c"]
    assert partitions(admin, f"{name}-a") and partitions(admin, f"{name}-c")


def test_a_failed_look_afterwards_is_told_truthfully(modules, admin, name, monkeypatch):
    """The topic is there, but no broker answers the question whether it is."""
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics import resource
    from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

    def lost(_client, _changes):
        raise AdminError(Problem("cluster.read", "no answer", "wait", ("x:1",)))

    with monkeypatch.context() as patched:
        patched.setattr(resource, "unsettled", lost)
        result = modules.topics([{"name": name}])
    assert result.failed and result.changed and result.kinds == [("create", name)]
    assert name in result.diff["after"] and result.failed_items == []
    assert "1 of 1 changes were made; the check afterwards failed: [cluster.read]" in result.msg
    assert [topic["name"] for topic in result.topics] == [name]
    again = modules.topics([{"name": name}])
    assert not again.failed and again.changed is False


def test_a_declared_default_is_set_on_the_topic(modules, admin, name):
    """Whether the topic is created or was there before: the same state."""
    modules.topics([{"name": name}])
    assert override(admin, name, "retention.ms") is None
    item = {"name": name, "retention": "7d"}
    changed = modules.topics([item])
    assert changed.changed and changed.plan["changes"][0]["before"] == {
        "config": {"retention.ms": None}
    }
    assert override(admin, name, "retention.ms") == "604800000"
    assert modules.topics([item]).changed is False


def test_a_long_operation_timeout(modules, name):
    """Longer than the client library takes for one request."""
    assert modules.topics([{"name": name}], operation_timeout=40000).changed


def test_deleted_and_created_at_once(modules, name):
    """A topic that is still being deleted is waited for."""
    item = {"name": name, "partitions": 4}
    modules.topics([item])
    for _round in range(3):
        assert modules.topics([{"name": name, "state": "absent"}], allow=["delete"]).changed
        assert modules.topics([item]).changed


def test_created_while_a_foreign_client_still_deletes(modules, admin, name):
    """The same, with nobody having waited for the deletion."""
    modules.topics([{"name": name, "partitions": 6}])
    admin.delete_topics([name], operation_timeout=0)
    result = modules.topics([{"name": name, "partitions": 2}], allow=["partition_growth"])
    # Refused for having six still is a truthful answer, too; two it must be in the end.
    if result.failed:
        assert result.checks == [("partitions.decrease", name)]
    else:
        assert partitions(admin, name) == 2


def test_compact_to_delete_needs_consent(modules, name):
    """The last record of each key would become deletable."""
    modules.topics([{"name": name, "cleanup": "compact"}])
    refused = modules.topics([{"name": name, "cleanup": "delete"}])
    assert refused.checks == [("cleanup.change", name)]
    assert modules.topics([{"name": name, "cleanup": "delete"}], allow=["cleanup_change"]).changed
    # The other direction deletes all but the newest record of each key.
    refused = modules.topics([{"name": name, "cleanup": "compact"}])
    assert refused.checks == [("cleanup.change", name)] and "newest record" in refused.msg
    assert modules.topics([{"name": name, "cleanup": "compact"}], allow=["cleanup_change"]).changed


def test_purge_only_what_matches_and_never_more_than_the_maximum(modules, admin, name):
    """Undeclared topics go by pattern, declared and protected ones stay."""
    names = [f"{name}.{letter}" for letter in "abc"]
    modules.topics([{"name": each} for each in names])
    keep = [{"name": names[0]}]
    pattern = rf"{name}\..*"
    refused = modules.topics(keep, purge={"patterns": [pattern], "maximum": 1})
    assert refused.checks == [("purge.maximum", "purge")]
    assert partitions(admin, names[1])
    purged = modules.topics(keep, purge={"patterns": [pattern], "maximum": 2})
    assert purged.kinds == [("delete", names[1]), ("delete", names[2])]
    assert partitions(admin, names[0]) and not partitions(admin, names[1])
    assert modules.topics(keep, purge={"patterns": [pattern], "maximum": 0}).changed is False
    # All topics match, but those with a leading underscore are Kafka's own.
    admin.create_topics([NewTopic("_hidden", 1, 3)])["_hidden"].result()
    everything = modules.topics(keep, check=True, purge={"patterns": [".*"], "maximum": 10000})
    assert ("delete", "_hidden") not in everything.kinds and everything.kinds


def test_expected_cluster_id(modules, name):
    """Another cluster than the expected one is not touched."""
    own = modules.topics([{"name": name}]).cluster_id
    assert modules.topics([{"name": name}], cluster_id=own).changed is False
    refused = modules.topics([{"name": name}], cluster_id="AAAAAAAAAAAAAAAAAAAAAA")
    assert refused.failed and "[cluster.foreign]" in refused.msg and own in refused.msg


@pytest.mark.parametrize("form", ["list.json", "mapping.yml"])
def test_src_file(modules, admin, name, tmp_path, form):
    """The same items from a file."""
    path = tmp_path / form
    item = {"name": name, "partitions": 2, "retention": "12h"}
    if form == "list.json":
        path.write_text(json.dumps([item]))
    else:
        path.write_text(f"kafka_topics:\n  - name: {name}\n    partitions: 2\n    retention: 12h\n")
    assert modules.topics(src=str(path)).changed
    assert override(admin, name, "retention.ms") == "43200000"
    assert modules.topics(src=str(path)).changed is False
    both = modules.topics([item], src=str(path))
    assert both.failed and "mutually exclusive" in both.msg


def test_src_file_that_is_none(modules, tmp_path):
    """Missing, and not a list."""
    missing = modules.topics(src=str(tmp_path / "nothing.yml"))
    assert missing.failed and "nothing.yml" in missing.msg
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("name: x\n")
    assert "must be a list" in modules.topics(src=str(wrong)).msg


@pytest.mark.soak  # a thousand topics, several times
def test_requests_do_not_grow_with_the_topics(modules, counted, name):
    """Ten topics or a thousand: as many questions for each batch, and a batch is up to 500 of them.

    From 150 on changes go out over three connections, in equal batches: 334, 333 and 333.
    """

    def cost(items, **options):
        counted.clear()
        result = modules.topics(items, **options)
        assert not result.failed, result.msg
        total = collections.Counter()
        for client in counted:
            total.update(client.requests)
        if result.changed:
            # How often one looks until a change is everywhere is a matter of time; a look is one question a broker.
            del total["metadata"]
            assert total.pop("asking each broker", 0) % 3 == 0
        return dict(total), result.changed

    few = [{"name": f"{name}.few.{i}", "replication_factor": 3} for i in range(10)]
    many = [{"name": f"{name}.many.{i}", "replication_factor": 3} for i in range(1000)]
    batches = 3
    # Of any topic, where none of them exists: which settings the brokers know.
    read = {"describe_topic_configs": 1, "describe_broker_configs": 1}
    assert modules.topics([{"name": f"{name}.any", "replication_factor": 3}]).changed
    # As many to validate as to create.
    assert cost(few) == ({**read, "create": 2}, True)
    assert cost(many) == ({**read, "create": 2 * batches}, True)
    # To reach the cluster, and to read it.
    unchanged = {"metadata": 2, **read}
    assert cost(few) == (unchanged, False)
    assert cost(many) == ({**unchanged, "describe_topic_configs": batches}, False)
    for items, count in ((few, 1), (many, batches)):
        altered = [{**item, "retention": "30d"} for item in items]
        spent, changed = cost(altered)
        assert changed and spent["configure"] == 2 * count
        # Before the plan and before the changes.
        assert spent["describe_topic_configs"] == 2 * count
        gone = [{"name": item["name"], "state": "absent"} for item in items]
        spent, changed = cost(gone, allow=["delete"])
        assert changed and spent["delete"] == count
        assert spent["list_offsets"] == 2 and spent.get("describe_log_dirs", 1) == 1


def test_a_vanished_topic_is_not_an_error(modules, admin, name):
    """Deleting what somebody else has deleted already changes nothing."""
    with pytest.raises(KafkaException):
        admin.delete_topics([name])[name].result()
    assert modules.topics([{"name": name, "state": "absent"}], allow=["delete"]).changed is False

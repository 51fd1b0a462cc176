# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_retention against both real clusters: what it says becomes deletable is what the brokers delete."""

from __future__ import annotations

import os
import time
from functools import partial

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from tests.support.outside import create_topics, wait_until

DAY_MS = 24 * 60 * 60 * 1000
SEGMENT = 2**20
VALUE = 8000


# Half a minute in each mode, and the same code: the longer one runs in soak.
ZOOKEEPER_IN_SOAK = pytest.mark.parametrize(
    "secured", [pytest.param("zookeeper", marks=pytest.mark.soak), "kraft"], indirect=True
)


def create(secured, names, partitions=2, **config):
    """Topics with segments of 1 MiB, kept for a week."""
    settings = {"segment.bytes": str(SEGMENT), "retention.ms": str(7 * DAY_MS), **config}
    new = [
        NewTopic(each, partitions, min(3, secured.bare.brokers), config=settings) for each in names
    ]
    create_topics(secured.client_settings(), new)


def produce(secured, name, ages_days, records, partitions=2):
    """To each partition so many records of each age, that cannot be compressed; oldest first."""
    producer = Producer({**secured.client_settings(), "acks": "all", "linger.ms": 20})
    now, failed = int(time.time() * 1000), []
    for age in sorted(ages_days, reverse=True):
        for number in range(records * partitions):
            producer.produce(
                name,
                os.urandom(VALUE),
                partition=number % partitions,
                timestamp=now - int(age * DAY_MS) + number,
                on_delivery=lambda error, _message: failed.append(error) if error else None,
            )
            producer.poll(0)
        assert producer.flush(30) == 0 and not failed


def held(admin, name, partitions=2):
    """How many records a topic has, by offsets."""
    ends = []
    for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):
        asked = {TopicPartition(name, index): spec for index in range(partitions)}
        found = admin.list_offsets(asked, request_timeout=10)
        ends.append(sum(future.result().offset for future in found.values()))
    return ends[1] - ends[0]


def led(admin, names):
    """Whether the leader of each of these topics of one partition answers for it."""
    asked = {TopicPartition(name, 0): OffsetSpec.latest() for name in names}
    found = admin.list_offsets(asked, request_timeout=10)
    errors = [future.exception(10) for future in found.values()]
    return not any(errors)


def on_disk(secured, name):
    """Bytes of the topic's logs on the disks of all brokers."""
    total = 0
    for broker in secured.bare.broker_instances:
        for path in secured.bare.log_directory(broker).glob(f"{name}-*/*.log"):
            try:
                total += path.stat().st_size
            except FileNotFoundError:  # the broker has just renamed it
                pass
    return total


def settled(look, seconds=20):
    """What `look` returns once it has not changed for two seconds; brokers delete twice a second."""
    seen = [look(), time.monotonic()]

    def still():
        now = look()
        if now != seen[0]:
            seen[:] = [now, time.monotonic()]
        return time.monotonic() - seen[1] >= 2

    wait_until(still, seconds, "nothing more is deleted")
    return seen[0]


def config_of(admin, name):
    """The topic's own settings, asked by a client that is not ours."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    entries = admin.describe_configs([resource])[resource].result(20)
    return {key: entry.value for key, entry in entries.items() if int(entry.source) == 1}


def entry(result, name):
    """What the module says of one topic."""
    (found,) = [each for each in result.topics if each["name"] == name]
    return found


def test_policies_set_what_they_say_and_nothing_else(secured, admin, name):
    names = [f"{name}.logs.a", f"{name}.logs.b", f"{name}.ref", f"{name}.other", f"_{name}.logs"]
    create(secured, names, 2)
    policies = [
        {"match": f"{name}[.]logs[.]b", "leave_alone": True},
        {"match": f"_?{name}[.]logs.*", "keep_for": "30d", "keep_up_to": "1GiB"},
        {"match": f"{name}[.]ref", "cleanup": "compact,delete"},
    ]
    allow = ["cleanup_change", "retention_cut"]
    before = {each: config_of(admin, each) for each in names}
    shown = secured.run("kafka_retention", check=True, policies=policies, allow=allow)
    assert shown.changed and {each: config_of(admin, each) for each in names} == before
    done = secured.run("kafka_retention", policies=policies, allow=allow)
    assert done.changed and (done.plan, done.diff) == (shown.plan, shown.diff), done.msg
    assert done.topics == shown.topics
    after = {each: config_of(admin, each) for each in names}
    # half for each of two partitions
    assert after[names[0]] == {
        **before[names[0]],
        "retention.ms": str(30 * DAY_MS),
        "retention.bytes": str(2**29),
    }
    assert set(after[names[2]]["cleanup.policy"].split(",")) == {"compact", "delete"}
    for untouched in (names[1], names[3], names[4]):
        assert after[untouched] == before[untouched]
    assert done.left_alone == [names[1]] and done.protected == [names[4]]
    told = secured.tool(
        "kafka.admin.ConfigCommand",
        "--describe",
        "--entity-type",
        "topics",
        "--entity-name",
        names[0],
    )
    assert f"retention.ms={30 * DAY_MS}" in told and f"retention.bytes={2**29}" in told
    first = entry(done, names[0])
    assert first["before"]["retention.bytes"]["source"] == "default"
    assert first["after"]["retention.ms"] == {
        "value": str(30 * DAY_MS),
        "means": "30d",
        "source": "topic",
    }
    again = secured.run("kafka_retention", policies=policies)
    assert not again.changed and not again.failed and not again.plan["changes"]
    # taken back: the first policy that matches counts, and default is no setting of the topic
    back = [{"match": f"{name}[.]logs[.]a", "keep_for": "default", "keep_up_to": "default"}]
    assert secured.run("kafka_retention", policies=back, allow=["retention_cut"]).changed
    assert config_of(admin, names[0]) == {"segment.bytes": str(SEGMENT)}
    named = secured.run(
        "kafka_retention", policies=policies[1:2], allow=allow, allow_internal=[names[4]]
    )
    assert config_of(admin, names[4])["retention.ms"] == str(30 * DAY_MS), named.msg


@pytest.mark.parametrize("policy", [{"keep_for": "1d"}, {"keep_up_to": "4MiB"}])
def test_what_it_says_becomes_deletable_is_what_is_deleted(secured, admin, name, policy):
    """Within one segment of each partition, since brokers delete nothing smaller."""
    create(secured, [name])
    produce(secured, name, (3, 0.01), 300)
    records, size = held(admin, name), on_disk(secured, name)
    policies = [{"match": name, **policy}]
    refused = secured.run("kafka_retention", policies=policies)
    assert refused.failed and refused.checks == [("retention.cut", name)]
    assert "allow: [retention_cut]" in refused.msg and "would be deleted" in refused.msg
    time.sleep(1.5)
    assert held(admin, name) == records

    done = secured.run("kafka_retention", policies=policies, allow=["retention_cut"])
    told = entry(done, name)["deletable"]
    assert told["total_records"] == records == 1200
    copies = min(3, secured.bare.brokers)
    assert abs(told["total_bytes"] - size / copies) < SEGMENT / 10
    gone = records - settled(lambda: held(admin, name))
    freed = (size - settled(lambda: on_disk(secured, name))) / copies
    print(
        f"\n{policy}: said {told['records']} records, {told['bytes']} bytes; gone {gone}, {freed:.0f}"
    )
    in_segment = 2 * SEGMENT / VALUE
    assert told["records"] - in_segment <= gone <= told["records"]
    assert told["bytes"] - 2 * SEGMENT <= freed <= told["bytes"] * 1.01
    again = secured.run("kafka_retention", policies=policies)
    assert not again.changed and not again.failed and entry(again, name)["deletable"] is None


@ZOOKEEPER_IN_SOAK
def test_a_large_cut_goes_in_steps_and_goes_on_where_it_was(secured, admin, name):
    create(secured, [name])
    produce(secured, name, [0.01, *(1.5 + number / 4 for number in range(17))], 70)
    policies = [{"match": name, "keep_for": "1d"}]
    common = {"policies": policies, "maximum_cut": "30%", "allow": ["retention_cut"]}
    refused = secured.run("kafka_retention", **common)
    assert refused.failed and refused.checks == [("retention.large_cut", name)]
    assert "would delete 94.4% of" in refused.msg and "cut_in_steps" in refused.msg
    refused = secured.run("kafka_retention", **{**common, "allow": []}, cut_in_steps=True)
    # consent is asked for the whole, not for a step of it
    assert refused.checks == [("retention.cut", name)] and "to 1d: 2380 records" in refused.msg

    held_before, steps = held(admin, name), []
    while True:
        shown = secured.run("kafka_retention", check=True, **common, cut_in_steps=True)
        done = secured.run("kafka_retention", **common, cut_in_steps=True)
        assert not done.failed, done.msg
        assert done.changed == shown.changed
        now = settled(lambda: held(admin, name))
        steps.append((held_before, now, config_of(admin, name)["retention.ms"]))
        # never more than the share, or, near the end, one segment of each partition
        assert held_before - now <= max(0.3 * held_before, 2 * SEGMENT / VALUE), steps
        held_before = now
        if not done.unfinished:
            break
        assert len(steps) < 20, steps
    print(f"\nsteps: {steps}")
    assert len(steps) > 5 and config_of(admin, name)["retention.ms"] == str(DAY_MS)
    assert 140 <= now <= 140 + 2 * SEGMENT / VALUE
    again = secured.run("kafka_retention", **common, cut_in_steps=True)
    assert not again.changed and again.unfinished == []


def test_policies_that_could_fill_a_disk_are_refused(secured, admin, name):
    create(secured, [name])
    # what the machine's own files and the topics of other tests leave is not this test's affair
    common = {"disk_budget": "100%", "allow": ["retention_cut"]}
    fits = secured.run(
        "kafka_retention", policies=[{"match": name, "keep_up_to": "20MiB"}], **common
    )
    assert fits.changed, fits.msg
    (disk,) = fits.disks  # all brokers are on this machine
    stat = os.statvfs(secured.bare.log_directory(1))
    assert disk["total_bytes"] == stat.f_blocks * stat.f_frsize
    assert abs(disk["usable_bytes"] - stat.f_bavail * stat.f_frsize) < disk["total_bytes"] / 50
    size = disk["total_bytes"]
    huge = secured.run(
        "kafka_retention",
        policies=[{"match": name, "keep_up_to": f"{2 * size}B"}],
        **common,
    )
    assert huge.failed and not huge.changed
    assert [each[0] for each in huge.checks] == ["retention.over_budget"]
    assert name in huge.msg and "100%" in huge.msg and "lower keep_up_to" in huge.msg
    assert config_of(admin, name)["retention.bytes"] == str(10 * 2**20)


def test_growth_bounds_a_topic_without_a_size(secured, admin, name):
    """What was written in the last day, for as long as it is kept; nobody knows it of a young topic."""
    young = f"{name}.young"
    create(secured, [name, young])
    produce(secured, name, (2, 0.01), 150)
    produce(secured, young, (0.01,), 10)
    keep = [{"match": f"{name}.*", "keep_for": "7d"}]
    told = secured.run("kafka_retention", policies=keep, disk_budget="100%")
    assert young in told.not_bounded and name not in told.not_bounded
    years = [{"match": name, "keep_for": "2000000w"}]
    refused = secured.run("kafka_retention", policies=years, disk_budget="100%")
    assert [each[0] for each in refused.checks] == ["retention.over_budget"], refused.msg


def test_segments_that_keep_far_more_are_told_and_made_to_fit(secured, admin, name):
    create(secured, [name], **{"segment.bytes": str(2**30)})
    policy = {"match": name, "keep_for": "12h", "keep_up_to": "64MiB"}
    allow = ["retention_cut"]
    told = secured.run("kafka_retention", policies=[policy], allow=allow)
    assert "segment.ms keeps records of 1 topic up to 180h" in str(told.warnings)
    assert "segment.bytes lets partitions of 1 topic grow to 1.0 GiB" in str(told.warnings)
    fitted = secured.run("kafka_retention", policies=[{**policy, "fit_segments": True}])
    assert fitted.changed and not fitted.values.get("warnings")
    own = config_of(admin, name)
    assert int(own["segment.ms"]) == DAY_MS // 20 and int(own["segment.bytes"]) == 2**25 // 10
    again = secured.run("kafka_retention", policies=[{**policy, "fit_segments": True}])
    assert not again.changed


def test_input_that_cannot_be_is_refused_all_at_once(secured, name):
    policies = [
        {"match": "(", "keep_for": "1d"},
        {"match": f"{name}.a", "keep_for": "1month"},
        {"match": f"{name}.b"},
        {"match": f"{name}.c", "cleanup": "compact", "keep_for": "1d"},
        {"match": f"{name}.d", "keep_for": "1d"},
        {"match": f"{name}.d", "keep_for": "2d"},
    ]
    refused = secured.run("kafka_retention", policies=policies)
    assert refused.failed and sorted(refused.checks) == [
        ("config.bad_value", "policies[1]"),
        ("retention.bad_policy", "policies[0]"),
        ("retention.bad_policy", "policies[2]"),
        ("retention.contradiction", "policies[3]"),
        ("retention.duplicate", "policies[5]"),
    ]
    for option, value in (("disk_budget", "80"), ("maximum_cut", "0%"), ("growth_window", "x")):
        wrong = secured.run("kafka_retention", policies=policies[4:5], **{option: value})
        assert wrong.failed and f"[options.range] {option}" in wrong.msg, wrong.msg


def test_what_kafka_topics_declares_otherwise_is_a_contradiction(secured, admin, name):
    create(secured, [name])
    policies = [{"match": name, "keep_for": "30d"}]
    declared = [{"name": name, "retention": "14d"}]
    refused = secured.run("kafka_retention", policies=policies, declared_topics=declared)
    assert refused.checks == [("retention.contradiction", name)]
    assert config_of(admin, name)["retention.ms"] == str(7 * DAY_MS)
    declared[0]["retention"] = "30d"
    assert secured.run("kafka_retention", policies=policies, declared_topics=declared).changed


def test_a_user_with_rights_on_a_prefix_only(secured, admin, name):
    """Sees and changes its own topics; bytes and disks are not its business, and that is said."""
    mine, other = f"{name}.mine", f"{name}-other"
    create(secured, [mine, other])
    policies = [{"match": f"{name}.*", "keep_for": "30d"}]
    nobody = secured.run("kafka_retention", user="nobody", policies=policies)
    assert not nobody.changed and nobody.topics == []
    operations = (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
    rules = [
        AclBinding(
            *(ResourceType.TOPIC, f"{name}.", ResourcePatternType.PREFIXED),
            *("User:team", "*", each, AclPermissionType.ALLOW),
        )
        for each in operations
    ]
    for part in (rules[:2], rules[2:]):
        for future in admin.create_acls(part).values():
            future.result(20)
        # until every broker knows of it
        wait_until(
            lambda: secured.run("kafka_retention", True, "team", policies=policies).values.get(
                "topics"
            ),
            20,
            "the rights are known",
        )
        done = secured.run("kafka_retention", user="team", policies=policies)
        if part is rules[:2]:
            assert done.failed and not done.changed and "uthoriz" in done.msg
    wait_until(
        lambda: secured.run("kafka_retention", user="team", policies=policies).changed
        or config_of(admin, mine)["retention.ms"] == str(30 * DAY_MS),
        20,
        "it may",
    )
    assert config_of(admin, mine)["retention.ms"] == str(30 * DAY_MS)
    assert config_of(admin, other)["retention.ms"] == str(7 * DAY_MS)
    told = secured.run("kafka_retention", user="team", policies=policies)
    assert entry(told, mine)["bytes"] is None
    assert "Describe on the cluster" in str(told.warnings)
    budget = secured.run("kafka_retention", user="team", policies=policies, disk_budget="80%")
    assert budget.failed and "Describe on the cluster" in budget.msg


def test_a_topic_that_is_deleted_meanwhile_fails_alone(secured, admin, name, monkeypatch):
    """The broker's own refusal, for one of two; the other one is done, and told so."""
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client import (
        kafka as client_kafka,
    )

    gone, stays = f"{name}.gone", f"{name}.stays"
    create(secured, [gone, stays])
    wait_until(partial(led, admin, [gone, stays]), 30, "both are known")
    really = client_kafka.KafkaClient.apply

    def interfere(client, changes, deadline):
        admin.delete_topics([gone])[gone].result(20)
        wait_until(lambda: gone not in admin.list_topics(timeout=5).topics, 20, "gone")
        return really(client, changes, deadline=time.monotonic() + 2)

    monkeypatch.setattr(client_kafka.KafkaClient, "apply", interfere)
    done = secured.run(
        "kafka_retention",
        policies=[{"match": f"{name}.*", "keep_for": "30d"}],
        operation_timeout=20,
    )
    assert done.failed and done.changed, done.msg
    assert [each["name"] for each in done.failed_items] == [gone]
    assert list(done.diff["after"]) == [stays]
    assert config_of(admin, stays)["retention.ms"] == str(30 * DAY_MS)


@ZOOKEEPER_IN_SOAK
def test_requests_do_not_depend_on_how_many_topics_there_are(secured, admin, name, monkeypatch):
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention import (
        client as client_retention,
    )

    clients = []
    really = client_retention.RetentionClient.__init__

    def remember(client, *arguments, **options):
        really(client, *arguments, **options)
        clients.append(client)

    monkeypatch.setattr(client_retention.RetentionClient, "__init__", remember)
    counted = {}
    # from 150 on changes go out over three connections
    for count in (150, 300):
        many = f"{name}.n{count}"
        names = [f"{many}.{index}" for index in range(count)]
        create(secured, names, 1)
        wait_until(partial(led, admin, names), 180, "every partition has a leader that knows")
        policies = [{"match": f"{many}[.].*", "keep_for": "1d", "keep_up_to": "8MiB"}]
        done = secured.run(
            "kafka_retention", policies=policies, allow=["retention_cut"], disk_budget="100%"
        )
        assert done.changed and len(done.plan["changes"]) == count, done.msg
        # how often a change is looked for until it is seen depends on the machine
        counted[count] = sum(
            number
            for what, number in clients[-1].requests.items()
            if what not in ("metadata", "describe_topic_configs", "list_topics")
        )
        again = secured.run("kafka_retention", policies=policies)
        assert not again.changed
        print(f"\n{count}: {dict(clients[-2].requests)}, unchanged {dict(clients[-1].requests)}")
    assert counted[150] == counted[300]

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Consumer groups: what they had committed, and what they are handed."""

import pytest
from flow.judge import continuity
from flow.judge.continuity import Delivery
from flow.messages.failure import CannotRun
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.disturbing import accusations
from tests.support import verdict_schema
from tests.support.bare_cluster import BareCluster

STARTS = {0: 10, 1: 0}
FOUND = Delivery(committed=STARTS)


@given(st.lists(st.binary(max_size=30).map(lambda b: bytearray(x & 1 for x in b)), max_size=4))
def test_what_was_missed_is_what_was_not_seen(marks):
    seen = dict(enumerate(marks))
    spans = {number: (100 * number, 100 * number + len(each)) for number, each in seen.items()}
    told = continuity.missed(spans, seen)
    for number, each in seen.items():
        ranges = told.get(number, [])
        named = [offset for first, last in ranges for offset in range(first, last + 1)]
        assert named == [100 * number + i for i, mark in enumerate(each) if not mark]
        assert all(a[1] + 1 < b[0] for a, b in zip(ranges, ranges[1:])), "ranges are whole"


@given(
    st.dictionaries(st.integers(0, 30), st.tuples(st.integers(0, 99), st.integers(0, 99))),
    st.integers(0, 500),
    st.integers(1, 500),
)
def test_a_sample_is_in_every_partition_and_not_too_much(partitions, whole, most):
    starts = {number: start for number, (start, dummy) in partitions.items()}
    ends = {number: start + more for number, (start, more) in partitions.items()}
    asked = continuity.sample(starts, ends, whole, most)
    assert set(asked) == set(starts)
    for number, (first, end) in asked.items():
        assert first == starts[number] and first <= end <= ends[number]
        assert (end > first) == (ends[number] > first)
    there = sum(ends[number] - starts[number] for number in starts)
    read = sum(end - first for first, end in asked.values())
    assert read == there if there <= whole else read <= most + len(starts)


def test_a_partition_that_is_gone_has_nothing_to_read():
    assert continuity.sample({0: 5}, {}) == {0: (5, 5)}
    assert continuity.sample({0: 5}, {0: 3}) == {0: (5, 5)}  # truncated: somebody else's finding


def lost(**missed):
    return Delivery(
        STARTS, {int(number[1:]): ranges for number, ranges in missed.items()}, ("Eh.",)
    )


@pytest.mark.parametrize(
    "deliveries, doubtful, count, places",
    [
        ({"a": FOUND, "b": FOUND}, set(), 0, []),
        ({"a": FOUND, "b": Delivery({0: 10, 1: 7})}, set(), 1, [(1, 0)]),
        ({"a": FOUND, "b": Delivery({0: None, 1: 0})}, set(), 1, [(0, 10)]),
        ({"a": FOUND, "b": Delivery({0: None, 1: None})}, set(), 2, [(0, 10), (1, 0)]),
        # nobody said what it had committed, and nobody waited long enough: that proves nothing
        ({"a": FOUND, "b": Delivery({}, {}, ("Timed out.",), {0: [(10, 19)]})}, set(), 0, []),
        (
            {"a": FOUND, "b": Delivery(STARTS, {}, ("Nothing came.",), {0: [(10, 19)]})},
            set(),
            0,
            [],
        ),
        ({"a": FOUND, "b": lost(p0=[(12, 13)])}, set(), 2, [(0, 12)]),
        # both groups miss it although it is in the log
        ({"a": lost(p0=[(12, 13)]), "b": lost(p0=[(12, 13)])}, set(), 4, [(0, 12), (0, 12)]),
        # it is gone from the log: no group's fault; but what only one of them misses is there
        ({"a": lost(p0=[(12, 13)]), "b": lost(p0=[(12, 13)])}, {0}, 0, []),
        ({"a": lost(p0=[(12, 13)]), "b": lost(p0=[(13, 15)])}, {0}, 3, [(0, 14), (0, 12)]),
        ({"a": FOUND, "b": lost(p0=[(12, 12)])}, {0}, 1, [(0, 12)]),
        ({"a": lost(p0=[(12, 12)]), "b": lost(p0=[(12, 12)])}, {1}, 2, [(0, 12), (0, 12)]),
    ],
)
def test_groups_are_judged(deliveries, doubtful, count, places):
    found = continuity.check(STARTS, deliveries, doubtful)
    assert (found.id, found.count) == ("continuity", count)
    assert [(w["partition"], w["offset"]) for w in found.witnesses] == places
    assert all("group a" in w["reason"] or "group b" in w["reason"] for w in found.witnesses)


def test_each_range_that_a_group_was_led_past_is_named_by_itself():
    """5 and 100 are not "offsets 5 to 6"."""
    found = continuity.check(STARTS, {"a": FOUND, "b": lost(p0=[(5, 5), (100, 102)])}, set())
    assert found.count == 4
    assert [(w["offset"], w["records"], w.get("last_offset")) for w in found.witnesses] == [
        (100, 3, 102),
        (5, 1, None),
    ]


@pytest.mark.parametrize(
    "delivery, doubtful, parts",
    [
        (FOUND, set(), []),
        (Delivery({}, {}, ("Broker: Group authorization failed",)), set(),
         ["group b had committed could not be asked for", "--groups=0"]),
        (Delivery({}, {}, (continuity._TOO_LONG,)), set(), ["group.min.session.timeout.ms"]),
        (Delivery(STARTS, {}, ("Nothing came for 2 s.",), {0: [(10, 12)], 1: [(0, 0)]}), set(),
         ["group b did not come to 4 records of partitions 0, 1", "Nothing came", "longer --timeout"]),
        (Delivery(STARTS, {}, ("Bad batch",), {0: [(10, 12)]}), {0}, []),
        (Delivery(STARTS, {}, ("Bad batch",), {0: [(10, 12)], 1: [(4, 4)]}), {0},
         ["did not come to 1 records of partitions 1"]),
    ],
)  # fmt: skip
def test_what_is_not_known_of_a_group_is_said_with_a_remedy(delivery, doubtful, parts):
    told = continuity.unclear({"a": FOUND, "b": delivery}, doubtful)
    assert len(told) == bool(parts)
    assert all(part in told[0] for part in parts)


def test_only_what_a_group_was_led_past_is_missed():
    handed = continuity.Handed({0: (10, 20), 1: (0, 5), 2: (7, 7), 3: (0, 3)})
    assert handed.wanted() == {0: 20, 1: 5, 3: 3}
    for at in (9, 10, 11, 14, 11):
        handed.note(0, at)
    handed.note(0, 25)
    handed.note(1, 1)
    handed.end(3)
    assert handed.missed() == {0: [(12, 13), (15, 19)], 1: [(0, 0)], 3: [(0, 2)]}
    assert handed.unread() == {1: [(2, 4)]}


@pytest.fixture(name="written")
def written_fixture(spark, cluster, tmp_path):
    """A topic that has been written to, and what verifies it."""
    import job
    from flow import steps

    def arguments(mode, *more):
        where = [f"--ledger={tmp_path}/ledger", f"--output={tmp_path}"]
        return job.arguments(
            [mode, f"--bootstrap-servers={cluster.bootstrap_servers}", *where, *more]
        )

    assert steps.produce(arguments("produce", "--records=3000", "--partitions=3")) == 0

    def verify():
        code = steps.verify(arguments("verify"))
        return code, verdict_schema.read(tmp_path / "verdict.json")

    return tmp_path, verify


def groups_of(directory):
    from flow.record import files

    plan = files.load_plan(str(directory / "ledger"))
    assert len(plan.groups) == 2
    return plan


def test_groups_find_their_place_and_all_that_follows_again_and_again(written):
    dummy, verify = written
    for _turn in range(2):
        code, verdict = verify()
        assert (code, accusations(verdict)) == (0, [])
        assert "continuity" in [check["id"] for check in verdict["checks"]]


def test_a_commit_that_was_changed_is_named(written, cluster):
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import AdminClient

    directory, verify = written
    plan = groups_of(directory)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    moved = ConsumerGroupTopicPartitions(plan.groups[1], [TopicPartition(plan.topic, 2, 400)])
    admin.alter_consumer_group_offsets([moved])[plan.groups[1]].result(30)
    code, verdict = verify()
    assert (code, accusations(verdict)) == (1, ["continuity"])
    (check,) = [check for check in verdict["checks"] if check["status"] == "fail"]
    witness = check["witnesses"][0]
    assert (witness["partition"], witness["offset"]) == (2, 0)
    assert "the cluster says 400" in witness["reason"] and plan.groups[1] in witness["reason"]
    # and it was handed what follows its wrong place, but not the 400 records before that
    assert check["count"] == 1 + 400 and check["witnesses"][1]["records"] == 400


def test_a_group_that_was_forgotten_is_named(written, cluster):
    from confluent_kafka.admin import AdminClient

    directory, verify = written
    plan = groups_of(directory)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_consumer_groups([plan.groups[0]])[plan.groups[0]].result(30)
    code, verdict = verify()
    assert (code, accusations(verdict)) == (1, ["continuity"])
    (check,) = [check for check in verdict["checks"] if check["status"] == "fail"]
    assert check["count"] == 3 + 3000
    assert "the cluster says nothing" in check["witnesses"][0]["reason"]


def test_a_run_that_passed_leaves_no_group_and_no_topic(spark, cluster, tmp_path):
    import job
    from confluent_kafka.admin import AdminClient
    from flow import steps
    from flow.record import files

    servers = f"--bootstrap-servers={cluster.bootstrap_servers}"
    where = [f"--ledger={tmp_path}/ledger", f"--output={tmp_path}"]
    assert steps.run(job.arguments(["run", servers, *where, "--records=1000"])) == 0
    plan = files.load_plan(str(tmp_path / "ledger"))
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    present = [group.group_id for group in admin.list_consumer_groups().result(30).valid]
    assert not set(plan.groups) & set(present)
    assert plan.topic not in admin.list_topics(timeout=30).topics


def test_without_groups_continuity_is_not_judged(spark, cluster, tmp_path):
    import job
    from flow import steps

    servers = f"--bootstrap-servers={cluster.bootstrap_servers}"
    where = [f"--ledger={tmp_path}/ledger", f"--output={tmp_path}"]
    assert steps.run(job.arguments(["run", servers, *where, "--records=1000", "--groups=0"])) == 0
    verdict = verdict_schema.read(tmp_path / "verdict.json")
    assert "continuity" not in [check["id"] for check in verdict["checks"]]


@pytest.fixture(name="slow", scope="module")
def slow_fixture(tmp_path_factory, port_base):
    """A cluster whose groups wait for members, as by default, and which has an authorizer."""
    with BareCluster(
        directory=tmp_path_factory.mktemp("slow"),
        port_base=port_base + 250,
        brokers=1,
        zookeepers=1,
        broker_config={
            "group.initial.rebalance.delay.ms": 6000,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
        },
    ) as running:
        yield running


def test_what_a_group_is_not_handed_for_want_of_time_or_of_rights_is_no_violation(
    spark, slow, tmp_path
):
    import job
    from confluent_kafka import admin as kafka
    from flow import steps
    from flow.record import files

    def judged(mode, *more):
        where = [f"--ledger={tmp_path}/ledger", f"--output={tmp_path}"]
        servers = f"--bootstrap-servers={slow.bootstrap_servers}"
        return getattr(steps, mode)(job.arguments([mode, servers, *where, *more]))

    assert judged("produce", "--records=300", "--partitions=3") == 0
    plan = files.load_plan(str(tmp_path / "ledger"))
    # the group is shorter of time than the cluster takes to let it begin
    settings = {"bootstrap.servers": slow.bootstrap_servers}
    spans = dict.fromkeys(range(3), (0, 100))
    groups = continuity.Groups(settings, plan.topic, plan.groups[:1], 4)
    (delivery,) = groups.deliveries(spans).values()
    assert (delivery.missed, delivery.unread, delivery.complaints) == ({}, {}, ())

    rule = kafka.AclBinding(
        kafka.ResourceType.GROUP, "kafkaops-flow-", kafka.ResourcePatternType.PREFIXED,
        "User:ANONYMOUS", "*", kafka.AclOperation.READ, kafka.AclPermissionType.DENY,
    )  # fmt: skip
    admin = kafka.AdminClient(settings)
    admin.create_acls([rule])[rule].result(30)
    code = judged("verify")
    verdict = verdict_schema.read(tmp_path / "verdict.json")
    assert (code, accusations(verdict)) == (2, []), verdict["summary"]
    assert "continuity" not in [check["id"] for check in verdict["checks"]]
    assert all(name in verdict["summary"] for name in plan.groups)
    assert "allow the job's principal to read groups kafkaops-flow-*" in verdict["summary"].lower()

    hidden = kafka.AclBinding(
        kafka.ResourceType.TOPIC, plan.topic, kafka.ResourcePatternType.LITERAL,
        "User:ANONYMOUS", "*", kafka.AclOperation.DESCRIBE, kafka.AclPermissionType.DENY,
    )  # fmt: skip
    admin.create_acls([hidden])[hidden].result(30)
    with pytest.raises(CannotRun, match=f"may not see the topic {plan.topic} "):
        judged("verify")

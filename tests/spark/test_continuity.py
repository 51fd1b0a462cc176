# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Consumer groups: what they had committed, and what they are handed."""

import pytest
from flow.judge import continuity
from flow.judge.continuity import Delivery
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.disturbing import accusations
from tests.support import verdict_schema

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
        ({"a": FOUND, "b": Delivery({})}, set(), 2, [(0, 10), (1, 0)]),
        ({"a": FOUND, "b": lost(p0=[(12, 13)])}, set(), 2, [(0, 12)]),
        # both groups miss it although it is in the log
        ({"a": lost(p0=[(12, 13)]), "b": lost(p0=[(12, 13)])}, set(), 4, [(0, 12), (0, 12)]),
        # it is gone from the log: no group's fault; but what only one of them misses is there
        ({"a": lost(p0=[(12, 13)]), "b": lost(p0=[(12, 13)])}, {0}, 0, []),
        ({"a": lost(p0=[(12, 13)]), "b": lost(p0=[(13, 15)])}, {0}, 3, [(0, 12), (0, 14)]),
        ({"a": FOUND, "b": lost(p0=[(12, 12)])}, {0}, 1, [(0, 12)]),
        ({"a": lost(p0=[(12, 12)]), "b": lost(p0=[(12, 12)])}, {1}, 2, [(0, 12), (0, 12)]),
    ],
)
def test_groups_are_judged(deliveries, doubtful, count, places):
    found = continuity.check(STARTS, deliveries, doubtful)
    assert (found.id, found.count) == ("continuity", count)
    assert [(w["partition"], w["offset"]) for w in found.witnesses] == places
    assert all("group a" in w["reason"] or "group b" in w["reason"] for w in found.witnesses)


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

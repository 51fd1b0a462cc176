# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A teardown deletes what carries the cluster's tag, names the volumes, and touches nothing else."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import (
    CLUSTER_TAG,
    HOST_TAG,
    Instance,
    SeenVolume,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.plan_absent import plan_absent
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.plan_present import plan_present
from tests.support.ec2_values import applied, nothing, order

STRANGER = Instance("i-x", "running", "medium", "ami-1", "subnet-a", "zone-a", groups=("sg-1",))


def there():
    return applied(order(), nothing(), plan_present(order(), nothing()).changes)


def kinds(plan):
    return [(each.kind, each.subject) for each in plan.changes]


def test_all_goes_and_the_volumes_are_named():
    plan = plan_absent(order(), there())
    assert [kind for kind, _s in kinds(plan)] == [
        *["end_machine"] * 3,
        *["delete_volume"] * 3,
        *("delete_group", "delete_key"),
    ]
    assert plan.changes[0].before["volumes"] == "vol-kafka-1-1-0 (/dev/xvda, 20 GiB gp3)"
    assert plan.changes[3].before == {"size": "100 GiB", "type": "gp3", "of": "kafka-1"}
    assert not plan.refusals and not plan.warnings


def test_where_nothing_is_there_is_nothing_to_do():
    assert kinds(plan_absent(order(), nothing())) == []


def test_of_a_run_with_limit_only_these_hosts_go():
    plan = plan_absent(order(only=frozenset({"kafka-2"})), there())
    assert kinds(plan) == [("end_machine", "kafka-2"), ("delete_volume", "volume vol-kafka-2-2-1")]


def test_what_has_another_name_by_now_is_named():
    seen = replace(there(), renamed=("key pair once",))
    plan = plan_absent(order(), seen)
    assert kinds(plan) == kinds(plan_absent(order(), there()))
    assert [each.split(":")[0] for each in plan.warnings] == ["key pair once stays"]
    assert not plan_absent(order(only=frozenset({"kafka-2"})), seen).warnings


def test_what_others_need_stays():
    seen = replace(there(), strangers=(STRANGER,))
    plan = plan_absent(order(), seen)
    assert "delete_group" not in dict(kinds(plan)) and "i-x" in plan.warnings[0]
    untagged = replace(there(), group=replace(there().group, tags={}), key_pair=None)
    rest = [kind for kind, _s in kinds(plan_absent(order(), untagged))]
    assert "delete_group" not in rest and "delete_key" not in rest


def test_a_volume_that_is_not_ours_is_not_deleted_with_its_machine():
    foreign = SeenVolume(
        "vol-x", 9, "gp3", True, device="/dev/sdz", machine="i-kafka-1-1", ends_with_machine=True
    )
    seen = replace(there(), volumes=(*there().volumes, foreign))
    (problem,) = plan_absent(order(), seen).refusals
    assert problem.check == "aws.foreign_volume" and "vol-x" in problem.line()
    # one that survives its machine is no matter
    survivor = replace(foreign, ends_with_machine=False)
    seen = replace(there(), volumes=(*there().volumes, survivor))
    plan = plan_absent(order(), seen)
    assert not plan.refusals and "vol-x" not in str(plan.changes)


def test_a_volume_of_ours_at_another_machine_is_left():
    moved = [replace(v, machine="i-x") if v.device == "/dev/sdf" else v for v in there().volumes]
    plan = plan_absent(order(), replace(there(), volumes=tuple(moved)))
    assert "delete_volume" not in dict(kinds(plan)) and len(plan.warnings) == 3


@given(st.lists(st.sampled_from(["orders", "other", ""]), min_size=1, max_size=6))
def test_nothing_without_the_tag_is_named(owners):
    volumes = tuple(
        SeenVolume(
            f"vol-{n}",
            1,
            "gp3",
            True,
            tags={CLUSTER_TAG: owner, HOST_TAG: "kafka-1"} if owner else {},
        )
        for n, owner in enumerate(owners)
    )
    plan = plan_absent(order(), nothing(volumes=volumes))
    wanted = [("delete_volume", f"volume vol-{n}") for n, o in enumerate(owners) if o == "orders"]
    assert kinds(plan) == wanted

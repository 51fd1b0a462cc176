# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines are spread evenly over zones, and a resumed run chooses what the first one would have chosen."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.placement import (
    client_token,
    place,
)
from tests.support.ec2_values import SUBNETS, machine, made, order

GROUPS = st.sampled_from([("kafka",), ("zookeeper",), ("kafka", "zookeeper")])


def machines(groups):
    return [machine(f"m-{index}", groups=each) for index, each in enumerate(groups)]


@given(st.lists(GROUPS, max_size=12), st.integers(1, 3))
def test_machines_of_the_same_groups_are_spread_evenly(groups, zones):
    wanted = machines(groups)
    subnets = SUBNETS[:zones]
    chosen = place(wanted, [], subnets)
    assert set(chosen) == {each.name for each in wanted}
    for kind in set(groups):
        count = Counter(chosen[each.name] for each in wanted if each.groups == kind)
        numbers = [count[each.id] for each in subnets]
        assert max(numbers) - min(numbers) <= 1


@given(st.lists(GROUPS, max_size=12), st.data())
def test_a_run_that_was_killed_half_way_goes_on_as_it_began(groups, data):
    wanted = machines(groups)
    whole = place(wanted, [], SUBNETS)
    done = data.draw(st.integers(0, len(wanted)))
    there = [made(order(0), each, whole[each.name])[0] for each in wanted[:done]]
    rest = place(wanted, there, SUBNETS)
    assert rest == {each.name: whole[each.name] for each in wanted[done:]}


def test_a_machine_that_exists_is_not_placed_and_a_named_subnet_is_kept():
    one, two = machine("a"), machine("b", subnet="subnet-c")
    there = [made(order(0), one, "subnet-a")[0]]
    assert place([one, two], there, SUBNETS) == {"b": "subnet-c"}
    assert place([one, machine("c")], there, SUBNETS) == {"c": "subnet-b"}
    assert place([one], [], []) == {}


def test_a_token_is_the_same_for_the_same_request_only():
    request = {"ImageId": "ami-1", "Tags": [{"Key": "a"}]}
    token = client_token("orders", "kafka-1", request)
    assert token == client_token("orders", "kafka-1", dict(reversed(request.items())))
    others = {
        client_token("orders", "kafka-2", request),
        client_token("other", "kafka-1", request),
        client_token("orders", "kafka-1", {**request, "ImageId": "ami-2"}),
    }
    assert len(others | {token}) == 4
    # EC2 takes 64 characters, and the number of the attempt has to fit
    assert len(f"{token}-49") <= 64 and token.isascii()


def test_what_other_clusters_do_does_not_matter():
    one = machine("a")
    stranger = replace(made(order(0), machine("x"), "subnet-a")[0], tags={})
    assert place([one], [stranger], SUBNETS)["a"] == "subnet-b"

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is there to what was ordered: nothing twice, nothing that is lost, and what cannot be is refused."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import (
    CLUSTER_TAG,
    GROUPS_TAG,
    HOST_TAG,
    Group,
    KeyFile,
    KeyPair,
    Rule,
    Subnet,
    Volume,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.plan_present import plan_present
from tests.support.ec2_values import (
    FOREIGN,
    GIB,
    PUBLIC,
    applied,
    machine,
    made,
    nothing,
    order,
    with_instance,
)


def there(wanted=None):
    """All that was ordered."""
    wanted = wanted or order()
    return applied(wanted, nothing(), plan_present(wanted, nothing()).changes)


def kinds(plan):
    return [(each.kind, each.subject) for each in plan.changes]


def test_an_order_in_an_empty_region():
    plan = plan_present(order(), nothing())
    assert not plan.refusals and not plan.warnings
    assert [kind for kind, _subject in kinds(plan)] == [
        *("make_key", "import_key", "make_group"),
        *["open"] * 4,
        *["make_machine"] * 3,
    ]
    zones = [each.after["zone"] for each in plan.changes if each.kind == "make_machine"]
    assert zones == ["zone-a", "zone-b", "zone-c"]
    assert plan.changes[-1].after["volume /dev/sdf"] == "100 GiB gp3"


def test_what_was_carried_out_is_not_done_again():
    assert kinds(plan_present(order(), there())) == []
    assert plan_present(order(), there()).refusals == ()


@given(st.integers(0, 5), st.data())
def test_a_killed_run_is_finished_and_makes_nothing_twice(count, data):
    wanted = order(count)
    changes = plan_present(wanted, nothing()).changes
    done = data.draw(st.integers(0, len(changes)))
    seen = applied(wanted, nothing(), changes[:done])
    rest = plan_present(wanted, seen)
    assert kinds(rest) == [(each.kind, each.subject) for each in changes[done:]]
    assert not rest.refusals
    assert kinds(plan_present(wanted, applied(wanted, seen, rest.changes))) == []


# What somebody else does, and by which changes it is put right.
MEDDLING = {
    "stopped": (
        lambda seen: with_instance(seen, "kafka-1", state="stopped"),
        [("start", "kafka-1")],
    ),
    "ended": (
        lambda seen: with_instance(seen, "kafka-2", state="terminated"),
        [("make_machine", "kafka-2")],
    ),
    "taken out of the group": (
        lambda seen: with_instance(seen, "kafka-3", groups=("sg-9",)),
        [("join_group", "kafka-3")],
    ),
    "another tag": (
        lambda seen: with_instance(
            seen, "kafka-1", tags={**seen.instances[0].tags, GROUPS_TAG: "kafka zookeeper"}
        ),
        [("tag", "kafka-1")],
    ),
    "its name's tag removed": (
        lambda seen: with_instance(
            seen,
            "kafka-1",
            tags={CLUSTER_TAG: "orders", "Name": "kafka-1", "owner": "me", GROUPS_TAG: "kafka"},
        ),
        [("tag", "kafka-1")],
    ),
    "a rule closed": (
        lambda seen: replace(seen, group=replace(seen.group, rules=seen.group.rules[1:])),
        [("open", "rule tcp 22 from 203.0.113.7/32")],
    ),
    "a rule opened": (
        lambda seen: replace(seen, group=replace(seen.group, rules=(*seen.group.rules, FOREIGN))),
        [],
    ),
    "the key's file readable": (
        lambda seen: replace(seen, key_file=replace(seen.key_file, mode=0o644)),
        [("mend_key", "key file /keys/orders.pem")],
    ),
    "the key pair deleted": (
        lambda seen: replace(seen, key_pair=None),
        [("import_key", "key pair orders")],
    ),
}


@pytest.mark.parametrize("meddle, changes", MEDDLING.values(), ids=MEDDLING)
def test_what_somebody_else_changed_is_put_right(meddle, changes):
    seen = meddle(there())
    plan = plan_present(order(), seen)
    assert kinds(plan) == changes and not plan.refusals
    again = plan_present(order(), applied(order(), seen, plan.changes))
    assert kinds(again) == []


@given(st.sets(st.sampled_from(sorted(MEDDLING))))
def test_all_of_it_at_once_is_put_right_in_one_run(chosen):
    seen = there()
    for name in sorted(chosen):
        seen = MEDDLING[name][0](seen)
    plan = plan_present(order(), seen)
    assert not plan.refusals
    assert kinds(plan_present(order(), applied(order(), seen, plan.changes))) == []


def test_a_foreign_rule_is_told_and_closed_with_consent_only():
    seen = MEDDLING["a rule opened"][0](there())
    (told,) = plan_present(order(), seen).warnings
    assert "tcp 3389 from 0.0.0.0/0 (rdp)" in told and "foreign_rules" in told
    consent = plan_present(order(allow=frozenset({"foreign_rules"})), seen)
    assert kinds(consent) == [("close", "rule tcp 3389 from 0.0.0.0/0")] and not consent.warnings


def test_a_mode_that_is_mended_is_told():
    seen = MEDDLING["the key's file readable"][0](there())
    (told,) = plan_present(order(), seen).warnings
    assert "0644" in told and "0600" in told
    stricter = replace(there(), key_file=replace(there().key_file, mode=0o400))
    assert kinds(plan_present(order(), stricter)) == []


def test_a_rule_of_ours_that_is_no_longer_stated_is_closed():
    rules = dict(itertools.islice(order().rules.items(), 1))
    plan = plan_present(order(rules=rules), there())
    assert [kind for kind, _subject in kinds(plan)] == ["close"] * 3


def only(name, **changes):
    return order(machines=(machine(name, **changes),))


SECOND = made(order(), machine("kafka-1"), "subnet-a", 9)
REFUSED = {
    "another type": (only("kafka-1", type="large"), there(), "aws.differs", "type medium"),
    "another subnet": (only("kafka-1", subnet="subnet-b"), there(), "aws.differs", "subnet-a"),
    "a larger volume": (
        only("kafka-1", volumes=(Volume("/dev/sdf", 200, keep=True),)),
        there(),
        "aws.differs",
        "100 GiB gp3",
    ),
    "one more volume": (
        only("kafka-1", volumes=(Volume("/dev/sdf", 100), Volume("/dev/sdg", 5))),
        there(),
        "aws.differs",
        "no volume at /dev/sdg",
    ),
    "a public address": (only("kafka-1", public_address=True), there(), "aws.differs", "no public"),
    "another key pair": (
        order(),
        with_instance(there(), "kafka-1", key_name="old"),
        "aws.differs",
        "key pair old",
    ),
    "no image": (only("kafka-9", image="ami-9"), nothing(), "aws.no_image", "no such image"),
    "no type": (only("kafka-9", type="huge"), nothing(), "aws.no_type", "no such type"),
    "no subnet": (order(subnets=("subnet-z",)), nothing(), "aws.no_subnet", "no such subnet"),
    "no default subnet": (order(subnets=()), nothing(subnets=()), "aws.no_subnet", "no default"),
    "two networks": (
        order(subnets=()),
        nothing(subnets=(Subnet("s-1", "a", "vpc-1"), Subnet("s-2", "b", "vpc-2"))),
        "aws.no_subnet",
        "vpc-1, vpc-2",
    ),
    "the group elsewhere": (
        order(),
        nothing(group=Group("sg-1", "vpc-9", {CLUSTER_TAG: "orders"})),
        "aws.no_subnet",
        "vpc-9",
    ),
    "somebody's group": (
        order(),
        nothing(group=Group("sg-1", "vpc-1")),
        "aws.group_foreign",
        "sg-1",
    ),
    "fewer cores": (only("kafka-9", cores=8), nothing(), "aws.too_small", "2 cores"),
    "less memory": (only("kafka-9", memory_bytes=8 * GIB), nothing(), "aws.too_small", "4.0 GiB"),
    "a small root": (only("kafka-9", root=Volume("", 4)), nothing(), "aws.too_small", "8 GiB"),
    "two of a name": (
        order(),
        replace(
            there(),
            instances=(*there().instances, SECOND[0]),
            volumes=(*there().volumes, *SECOND[1]),
        ),
        "aws.duplicate_machine",
        "i-kafka-1-9",
    ),
    "the tag removed": (
        order(),
        replace(
            there(),
            instances=there().instances[1:],
            strangers=(replace(there().instances[0], tags={HOST_TAG: "kafka-1"}),),
        ),
        "aws.untagged",
        "i-kafka-1",
    ),
    "no private key": (
        order(),
        nothing(key_pair=KeyPair("orders", PUBLIC)),
        "aws.no_key",
        "not the file",
    ),
    "no key pair": (order(key_file=""), nothing(key_file=None), "aws.no_key", "no such key pair"),
    "another key": (
        order(),
        replace(there(), key_pair=KeyPair("orders", "ssh-ed25519 BBBB")),
        "aws.key_differs",
        "is not the key",
    ),
    "a passphrase": (
        order(),
        nothing(
            key_file=KeyFile("/keys/orders.pem", True, 0o600, True, "", "incorrect passphrase")
        ),
        "aws.key_file",
        "incorrect passphrase",
    ),
    "somebody's key": (
        order(),
        nothing(key_file=KeyFile("/keys/orders.pem", True, 0o644, False, PUBLIC)),
        "aws.key_file",
        "0644",
    ),
}


@pytest.mark.parametrize("wanted, seen, check, words", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_told_with_its_id(wanted, seen, check, words):
    found = plan_present(wanted, seen).refusals
    assert [each.check for each in found] == [check]
    assert words in found[0].line() and ". Remedy: " in found[0].line()


def test_a_run_with_limit_leaves_other_machines_and_all_rules_alone():
    wanted = order(only=frozenset({"kafka-2"}))
    plan = plan_present(wanted, nothing())
    assert [s for kind, s in kinds(plan) if kind == "make_machine"] == ["kafka-2"]
    assert [kind for kind, _s in kinds(plan)].count("open") == 4
    # it goes where it would have gone in a run without --limit
    assert plan.changes[-1].after["subnet"] == "subnet-b"
    # what is amiss with others does not matter
    changed = with_instance(there(), "kafka-1", type="large", state="stopped")
    assert kinds(plan_present(wanted, changed)) == []
    assert not plan_present(wanted, changed).refusals


def test_what_the_inventory_does_not_name_is_told():
    plan = plan_present(order(2), there())
    assert kinds(plan) == [] and "kafka-3" in plan.warnings[0]


def test_a_new_image_counts_for_new_machines_only():
    newer = order(machines=tuple(machine(f"kafka-{n}", image="ami-2") for n in (1, 2, 3)))
    seen = replace(there(), images={"ami-2": replace(nothing().images["ami-1"], id="ami-2")})
    plan = plan_present(newer, seen)
    assert kinds(plan) == [] and not plan.refusals and len(plan.warnings) == 3


def test_a_kept_volume_of_an_ended_machine_is_told_with_the_new_one():
    seen = MEDDLING["ended"][0](there())
    volumes = tuple(
        replace(v, machine="", device="") if v.machine == "i-kafka-2-2" else v for v in seen.volumes
    )
    (change,) = plan_present(order(), replace(seen, volumes=volumes)).changes
    assert "vol-kafka-2-2-1" in change.note


def test_the_rules_of_two_address_families_are_opened():
    opened = {s for kind, s in kinds(plan_present(order(), nothing())) if kind == "open"}
    assert {"rule tcp 9092 from 10.0.0.0/16", "rule tcp 9092 from fd00::/56"} <= opened
    assert Rule("tcp", 9092, 9092, "network") in order().rules

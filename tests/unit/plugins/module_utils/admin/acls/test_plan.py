# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ACLs are added and removed, and what needs consent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.items import (
    Binding,
    Wanted,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.plan import (
    CONSENTS,
    AclPolicy,
    AclPurge,
    AclSnapshot,
    apply_to,
    plan_acls,
)

ADMIN = "User:admin"


def topic(name="orders", principal="User:app", operation="read", pattern="literal", host="*"):
    """An allowed operation on a topic."""
    return Binding("topic", name, pattern, principal, "allow", operation, host)


def cluster(principal=ADMIN, operation="alter", permission="allow", host="*"):
    """An operation on the cluster."""
    return Binding("cluster", "kafka-cluster", "literal", principal, permission, operation, host)


def plan(wanted=(), there=(), absent=(), everyone=False, may_alter=True, **policy):
    """The plan for `wanted` bindings and `absent` ones."""
    desired = [Wanted(each, "present") for each in wanted]
    desired += [Wanted(each, "absent") for each in absent]
    snapshot = AclSnapshot(frozenset(there), may_alter, everyone)
    return plan_acls(desired, snapshot, AclPolicy(**{"principal": ADMIN, **policy}))


def checks(found):
    """Ids of the refusals."""
    return sorted(refusal.check for refusal in found.refusals)


def kinds(found):
    """(kind, subject) of the changes."""
    return [(change.kind, change.subject) for change in found.changes]


@pytest.mark.parametrize(
    "release, refused",
    [((3, 9), True), ((4, 0), True), ((4, 1), False), ((4, 3), False), ((), False)],
)
def test_an_operation_that_the_brokers_do_not_have_is_refused(release, refused):
    """They would close the connection, as often as they are asked, and the rest of the batch would fail with it."""
    two = Binding("transactional_id", "t", "literal", "User:app", "allow", "two_phase_commit")
    snapshot = AclSnapshot(frozenset(), True, False, None, release)
    found = plan_acls([Wanted(two, "present"), Wanted(topic(), "present")], snapshot, AclPolicy())
    assert checks(found) == (["acls.too_new"] if refused else [])
    if refused:
        assert "came with Kafka 4.1" in found.refusals[0].reason
    assert snapshot.knows(topic()) and snapshot.knows(two) is not refused
    assert not plan_acls([Wanted(two, "absent")], snapshot, AclPolicy()).refusals


def test_what_is_missing_is_added_before_what_is_too_much_is_removed():
    found = plan([topic("a")], [topic("b"), topic("c")], [topic("b"), topic("d")])
    assert kinds(found) == [
        ("create", "allow User:app read topic a"),
        ("delete", "allow User:app read topic b"),
    ]
    assert not found.refusals and not found.warnings


@pytest.mark.parametrize(
    "binding",
    [
        topic(operation="cluster_action"),
        topic(host="10.0.0.0/8"),
        topic(host="app.example.com"),
        topic("*", pattern="prefixed"),
        topic(principal="user:app"),
    ],
)
def test_what_kafka_would_store_and_never_look_at_is_refused_unless_it_is_there(binding):
    assert checks(plan([binding])) == ["acls.without_effect"]
    assert not plan([binding], [binding]).refusals
    assert kinds(plan([], [binding], [binding]))


def test_who_may_not_change_acls_is_told_so_before_anything():
    assert checks(plan([topic()], may_alter=False)) == ["acls.rights"]
    assert not plan([topic()], [topic()], may_alter=False).refusals


# ---------------------------------------------------------------- purge


def test_a_purge_removes_what_matches_in_both_and_no_more_than_agreed():
    there = [topic("a.1"), topic("a.2"), topic("b"), topic("a.3", principal="User:other")]
    purge = AclPurge(("User:app",), (r"topic:a\..*",), 2)
    found = plan([], there, purge=purge)
    assert kinds(found) == [
        ("delete", "allow User:app read topic a.1"),
        ("delete", "allow User:app read topic a.2"),
    ]
    assert kinds(plan([there[0]], there, purge=purge)) == kinds(found)[1:]
    refused = plan([], there, purge=replace(purge, maximum=1))
    assert checks(refused) == ["purge.maximum"] and not refused.changes
    everything = plan([], there, purge=AclPurge((".*",), None, 9))
    assert len(everything.changes) == 4


# ---------------------------------------------------------------- open to all without an ACL

COVERED = [
    ([], topic(), False),
    ([topic(operation="write")], topic(), True),
    ([topic("other")], topic(), False),
    ([topic("*")], topic(), True),
    ([topic("*", principal="User:x")], topic("ord", pattern="prefixed"), True),
    ([topic("ord", pattern="prefixed")], topic(), True),
    ([topic("orders.", pattern="prefixed")], topic(), False),
    ([topic("ord", pattern="prefixed")], topic("orders.", pattern="prefixed"), True),
    ([topic("orders.", pattern="prefixed")], topic("ord", pattern="prefixed"), False),
    ([topic("orders")], topic("orders", pattern="prefixed"), False),
    ([topic("ord", pattern="prefixed")], topic("*"), False),
    ([replace(topic(), resource_type="group")], topic(), False),
]


@pytest.mark.parametrize("there, new, covered", COVERED)
def test_the_first_acl_closes_a_resource_for_all_others(there, new, covered):
    assert checks(plan([new], there, everyone=True)) == ([] if covered else ["acls.first"])
    assert not plan([new], there).refusals and not plan([new], there).warnings
    consented = plan([new], there, everyone=True, allow=frozenset(["first_acl"]))
    assert not consented.refusals and ("everybody" in consented.changes[0].note) != covered
    unknown = plan([new], there, everyone=None)
    assert not unknown.refusals and bool(unknown.warnings) != covered


@pytest.mark.parametrize("left, gone, covered", COVERED)
def test_the_last_acl_opens_a_resource_to_all(left, gone, covered):
    there = [*left, gone]
    assert checks(plan([], there, [gone], everyone=True)) == ([] if covered else ["acls.last"])
    allow = frozenset(["last_acl"])
    assert not plan([], there, [gone], everyone=True, allow=allow).refusals


def test_one_acl_for_another_keeps_a_resource_closed():
    assert not plan([topic("b")], [topic("b", "User:x")], [topic("b", "User:x")], True).refusals


# ---------------------------------------------------------------- this very user

LOCKOUTS = [
    # (there, wanted, absent, everyone, whether it may lock out)
    ([cluster()], [], [cluster()], False, True),
    ([cluster(operation="all")], [], [cluster(operation="all")], False, True),
    ([cluster("User:*")], [], [cluster("User:*")], False, True),
    ([cluster(), cluster("User:*")], [], [cluster()], False, False),
    ([cluster()], [cluster(operation="all")], [cluster()], False, False),
    ([cluster()], [cluster(host="10.0.0.1")], [cluster()], False, True),
    ([cluster(), cluster(host="10.0.0.1")], [], [cluster(host="10.0.0.1")], False, False),
    ([cluster("User:x"), cluster()], [], [cluster("User:x")], False, False),
    ([cluster(operation="describe"), cluster()], [], [cluster(operation="describe")], False, False),
    ([cluster()], [cluster(permission="deny")], [], False, True),
    ([cluster()], [cluster(operation="describe", permission="deny")], [], False, True),
    ([cluster()], [cluster("User:*", "all", "deny", "10.0.0.1")], [], False, True),
    ([cluster()], [cluster(operation="create", permission="deny")], [], False, False),
    ([cluster()], [cluster("User:x", permission="deny")], [], False, False),
    # a super user: the right comes from no ACL
    ([cluster("User:x")], [cluster(permission="deny")], [], True, False),
    ([cluster("User:x")], [], [cluster("User:x")], False, False),
    ([], [cluster("User:x")], [], False, False),
    # perhaps everybody, as long as there is no ACL
    ([], [cluster("User:x")], [], None, True),
    ([], [cluster("User:x"), cluster()], [], None, False),
    ([], [cluster(permission="deny")], [], None, True),
]


@pytest.mark.parametrize("there, wanted, absent, everyone, locked", LOCKOUTS)
def test_who_runs_this_is_not_locked_out_without_consent(there, wanted, absent, everyone, locked):
    allow = frozenset(["first_acl", "last_acl"])
    found = plan(wanted, there, absent, everyone, allow=allow)
    assert checks(found) == (["acls.lockout"] if locked else [])
    consented = plan(wanted, there, absent, everyone, allow=allow | {"lockout"})
    assert not consented.refusals
    assert any("change ACLs" in text for text in consented.warnings) == locked


def test_a_purge_does_not_lock_out_either():
    purge = AclPurge((".*",), None, 9)
    assert checks(plan([], [cluster()], purge=purge)) == ["acls.lockout"]


def test_a_user_who_is_not_known_may_be_any():
    assert checks(plan([], [cluster("User:x")], [cluster("User:x")], principal=None)) == [
        "acls.lockout"
    ]


# ---------------------------------------------------------------- properties

SOME = st.builds(
    Binding,
    st.sampled_from(["topic", "group"]),
    st.sampled_from(["a", "ab", "b", "*"]),
    st.just("literal"),
    st.sampled_from(["User:x", "User:y", ADMIN]),
    st.sampled_from(["allow", "deny"]),
    st.sampled_from(["read", "describe", "all"]),
) | st.builds(
    cluster, st.sampled_from(["User:x", ADMIN, "User:*"]), st.sampled_from(["alter", "describe"])
)
SETS = st.frozensets(SOME, max_size=8)


@given(SETS, SETS, SETS, st.sampled_from([True, False, None]))
def test_a_plan_applied_leads_there_and_touches_nothing_else(there, wanted, absent, everyone):
    absent = absent - wanted
    allow = frozenset(CONSENTS)
    found = plan(wanted, there, absent, everyone, allow=allow)
    assert not found.refusals
    after = apply_to(there, found.changes)
    assert wanted <= after and not absent & after
    assert there - absent <= after <= there | wanted
    assert not plan(wanted, after, absent, everyone, allow=allow).changes
    assert len({(change.subject, change.kind) for change in found.changes}) == len(found.changes)


@given(SETS, SETS, SETS)
def test_whoever_had_the_right_by_an_acl_has_it_afterwards(there, wanted, absent):
    """Without consent. Only hosts are left out: all of them are any host here."""
    there = there | {cluster()}
    found = plan(wanted, there, absent - wanted, everyone=True, allow=frozenset(CONSENTS[:2]))
    if found.refusals:
        return
    after = apply_to(there, found.changes)
    assert after & {cluster(), cluster("User:*"), cluster(operation="all")}


@given(SETS, SETS, st.integers(0, 3))
def test_a_purge_leaves_what_is_declared_and_what_does_not_match(there, wanted, maximum):
    purge = AclPurge(("User:x",), ("topic:.*",), maximum)
    found = plan(wanted, there, purge=purge, allow=frozenset(CONSENTS))
    gone = there - apply_to(there, found.changes)
    assert len(gone) <= maximum
    assert all(each.principal == "User:x" and each.resource_type == "topic" for each in gone)
    assert not gone & wanted

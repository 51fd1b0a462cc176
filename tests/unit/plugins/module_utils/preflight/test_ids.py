# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Identity: tables of single cases, and the promises as properties over any inventory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.ids import (
    Claim,
    assign_ids,
    contradictions,
    duplicates,
    natural_key,
    uncertain,
    unowned,
)

HOSTS = ["kafka-%d" % number for number in range(1, 13)]


@st.composite
def consistent_claims(draw):
    """Claims of an inventory that contradicts nobody: every settled id has one owner."""
    hosts = draw(st.lists(st.sampled_from(HOSTS), unique=True, min_size=1))
    ids = draw(st.lists(st.integers(0, 40), unique=True, min_size=len(hosts), max_size=len(hosts)))
    claims = []
    for host, number in zip(hosts, ids):
        kind = draw(st.sampled_from(["new", "explicit", "disk", "both", "ran"]))
        claims.append(
            Claim(
                host,
                explicit=number if kind in ("explicit", "both") else None,
                on_disk=(number,) if kind in ("disk", "both") else (),
                ran_as=number if kind == "ran" else None,
                staged=draw(st.one_of(st.none(), st.integers(0, 40))),
            )
        )
    return claims


taken_ids = st.frozensets(st.integers(0, 40), max_size=10)


@given(consistent_claims(), taken_ids)
def test_ids_are_unique(claims, taken):
    assigned = assign_ids(claims, taken)
    assert sorted(assigned) == sorted(claim.host for claim in claims)
    assert len(set(assigned.values())) == len(claims)


@given(consistent_claims(), taken_ids)
def test_ids_in_inventory_or_on_disk_stay(claims, taken):
    assigned = assign_ids(claims, taken)
    for claim in claims:
        if claim.settled is not None:
            assert assigned[claim.host] == claim.settled


@given(consistent_claims(), taken_ids)
def test_newcomers_get_no_id_that_anybody_uses(claims, taken):
    assigned = assign_ids(claims, taken)
    used = taken | {claim.settled for claim in claims if claim.settled is not None}
    for claim in claims:
        if claim.settled is None:
            assert assigned[claim.host] not in used


@given(consistent_claims(), taken_ids, st.randoms())
def test_the_order_of_hosts_makes_no_difference(claims, taken, random):
    shuffled = list(claims)
    random.shuffle(shuffled)
    assert assign_ids(shuffled, taken) == assign_ids(claims, taken)


@given(consistent_claims(), taken_ids)
def test_once_on_disk_a_second_run_gives_the_same(claims, taken):
    assigned = assign_ids(claims, taken)
    later = [Claim(claim.host, claim.explicit, (assigned[claim.host],)) for claim in claims]
    assert assign_ids(later, taken | frozenset(assigned.values())) == assigned
    assert contradictions(later) == {}
    assert duplicates(later) == {}


@given(consistent_claims(), taken_ids)
def test_a_host_that_joins_changes_nobody_who_has_data(claims, taken):
    assigned = assign_ids(claims, taken)
    settled = [Claim(claim.host, claim.explicit, (assigned[claim.host],)) for claim in claims]
    grown = assign_ids([*settled, Claim("a-newcomer")], taken)
    for host, number in assigned.items():
        assert grown[host] == number
    assert grown["a-newcomer"] not in set(assigned.values()) | taken


def test_numbers_are_given_in_natural_order():
    claims = [Claim("kafka-10"), Claim("kafka-2"), Claim("kafka-1")]
    assert assign_ids(claims, frozenset()) == {"kafka-1": 1, "kafka-2": 2, "kafka-10": 3}


def test_gaps_are_filled_but_dead_brokers_are_not_inherited():
    claims = [Claim("a", explicit=1), Claim("b"), Claim("c", on_disk=(4,)), Claim("d")]
    assert assign_ids(claims, frozenset({2})) == {"a": 1, "b": 3, "c": 4, "d": 5}


def test_a_host_stays_what_it_ran_as_and_what_was_staged_for_it():
    claims = [Claim("a", staged=2), Claim("b", ran_as=7, staged=9), Claim("c")]
    assert assign_ids(claims, frozenset({7})) == {"a": 2, "b": 7, "c": 1}


@pytest.mark.parametrize(
    "claims, taken",
    [
        ([Claim("a", staged=2), Claim("b", explicit=2)], set()),
        ([Claim("a", staged=2), Claim("b", ran_as=2)], set()),
        ([Claim("a", staged=2), Claim("b", staged=2)], set()),
        ([Claim("a", staged=2)], {2}),
    ],
)
def test_what_was_only_staged_gives_way(claims, taken):
    assert assign_ids(claims, taken)["a"] != 2


def test_duplicates_name_all_owners_of_an_id():
    claims = [Claim("c", explicit=2), Claim("a", on_disk=(2,)), Claim("b", explicit=1), Claim("d")]
    assert duplicates(claims) == {2: ("a", "c")}


@pytest.mark.parametrize(
    "claim, expected",
    [
        (Claim("a", explicit=1, on_disk=(1,)), {}),
        (Claim("a", explicit=1), {}),
        (Claim("a", on_disk=(1,)), {}),
        (Claim("a", explicit=0, on_disk=(1,)), {"a": (0, (1,))}),
        (Claim("a", on_disk=(1, 2)), {"a": (None, (1, 2))}),
    ],
)
def test_contradictions(claim, expected):
    assert contradictions([claim]) == expected


def test_natural_key_orders_names_of_different_shape():
    names = ["b", "10", "a10", "a2", "2", "a"]
    assert sorted(names, key=natural_key) == ["2", "10", "a", "a2", "a10", "b"]


SILENT = Claim("s", unseen=True)
OTHER = Claim("t", unseen=True)
SEEN = [Claim("a", on_disk=(1,)), Claim("b", on_disk=(2,))]


@pytest.mark.parametrize(
    "claims, in_use, given, guesses, missing",
    [
        # one host that does not answer, and one id without a host
        ([SILENT], {1, 2, 3}, {"s": 3}, set(), []),
        ([SILENT], {1, 2, 7}, {"s": 7}, set(), []),
        ([SILENT, Claim("n")], {1, 2, 3}, {"s": 3, "n": 4}, set(), []),
        # two such hosts: together they have both ids, and nobody knows which is whose
        ([SILENT, OTHER], {1, 2, 5, 6}, {"s": 5, "t": 6}, {"s", "t"}, []),
        ([SILENT, OTHER], {1, 2, 5}, {"s": 5, "t": 3}, {"s", "t"}, []),
        # no id is left for it: it may never have been a broker
        ([SILENT], {1, 2}, {"s": 3}, {"s"}, []),
        # too few hosts: one of the two is missing, and nobody knows which
        ([SILENT], {1, 2, 5, 6}, {"s": 5}, {"s"}, [5, 6]),
        ([], {1, 2, 5}, {}, set(), [5]),
        # whose id is written needs no guess
        ([Claim("s", explicit=3, unseen=True)], {1, 2, 3}, {"s": 3}, set(), []),
        ([Claim("s", explicit=9, unseen=True)], {1, 2, 3}, {"s": 9}, set(), [3]),
    ],
)
def test_who_cannot_be_asked_has_an_id_that_nobody_else_has(
    claims, in_use, given, guesses, missing
):
    known = dict.fromkeys(("s", "t"), in_use)
    assigned = assign_ids([*claims, *SEEN], in_use, known=known)
    assert assigned == {"a": 1, "b": 2, **given}
    assert uncertain([*claims, *SEEN], known) == guesses
    assert unowned([*claims, *SEEN], known, in_use) == missing


def test_ids_of_controllers_are_no_matter_of_brokers():
    claims = [SILENT, OTHER, *SEEN]
    known = {"s": {1, 2, 3}, "t": {9}}
    assert assign_ids(claims, {1, 2, 3}, known=known) == {"a": 1, "b": 2, "s": 3, "t": 9}
    assert uncertain(claims, known) == frozenset()
    one, both = {"s": {3, 9}, "t": {9}}, [SILENT, OTHER]
    assert assign_ids(both, {3, 9}, known=one) == {"s": 3, "t": 9}
    assert uncertain(both, one) == {"s", "t"}


@given(consistent_claims(), taken_ids, st.randoms())
def test_the_promises_hold_of_hosts_that_cannot_be_asked(claims, taken, random):
    claims = [
        Claim(each.host, each.explicit, unseen=True) if random.random() < 0.5 else each
        for each in claims
    ]
    known = {claim.host: taken for claim in claims}
    assigned = assign_ids(claims, taken, known=known)
    assert len(set(assigned.values())) == len(claims)
    for claim in claims:
        if claim.settled is not None:
            assert assigned[claim.host] == claim.settled
    shuffled = list(claims)
    random.shuffle(shuffled)
    assert assign_ids(shuffled, taken, known=known) == assigned

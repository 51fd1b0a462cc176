# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values, numbers and lists in messages."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import (
    SHOWN_VALUE_CHARACTERS,
    counted,
    shown,
    some,
)


@pytest.mark.parametrize("number, told", [(0, "0 replicas"), (1, "1 replica"), (2, "2 replicas")])
def test_a_noun_has_its_number(number, told):
    assert counted(number, "replica") == told


@pytest.mark.parametrize(
    "texts, options, told",
    [
        ([], {}, ""),
        (["a"], {}, "a"),
        (list("abcde"), {}, "a, b, c, d, e"),
        (list("abcdefg"), {}, "a, b, c, d, e and 2 more"),
        (list("abc"), {"most": 2}, "a, b and 1 more"),
        (list("ab"), {"total": 2}, "a, b"),
        (list("ab"), {"total": 7}, "a, b and 5 more"),
        (list("abc"), {"most": 2, "total": 7}, "a, b and 5 more"),
    ],
)
def test_of_many_the_first_are_named(texts, options, told):
    assert some(texts, **options) == told


@pytest.mark.parametrize(
    "value, text",
    [
        (True, "true"),
        (None, "null"),
        ("", '""'),
        ("a\n b", "a b"),
        (7, "7"),
        ([1, None, [False]], "[1, null, [false]]"),
        ({True: None, "a": ("b", {})}, "{true: null, a: [b, {}]}"),
    ],
)
def test_a_value_is_shown_as_people_write_it(value, text):
    assert shown(value) == text


def test_a_long_value_is_cut():
    assert shown("x" * 1000) == "x" * (SHOWN_VALUE_CHARACTERS - 3) + "..."

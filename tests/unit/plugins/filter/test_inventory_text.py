# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written as an inventory is read back as what it was, and is never evaluated."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.filter.inventory_text import inventory_yaml

NASTY = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(
        ["yes", "null", "~", "1e3", "0123", "=", "<<", "!x", "- a", "# b", "2020-01-01", "1:30"]
        + [
            "{{ 7*6 }}",
            "{% raw %}",
            "{# a",
            'a\n{{ "b" }}\n',
            "'{{' \" }}",
            "no\n---\nkafka_topics: []",
        ]
    ),
)


def read_back(text):
    """The variables of a file, as a task would have them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.yml"
        path.write_text(text, encoding="utf-8")
        loader = DataLoader()
        return Templar(loader, variables={}).template(loader.load_from_file(str(path)))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["name", "user"]), NASTY, min_size=1), max_size=4))
def test_any_name_comes_back_as_it_is(items):
    assert read_back(inventory_yaml({"kafka_quotas": items})) == {"kafka_quotas": items}


@pytest.mark.parametrize("name", ["\x85", "a\x85b", "a\u2028b", "\u2029"])
def test_a_line_break_of_unicode_is_not_folded_into_a_blank(name):
    assert read_back(inventory_yaml({"kafka_users": [name]})) == {"kafka_users": [name]}


@pytest.mark.parametrize("value", [1, 12.5, True, None, [], {"a": ["b"]}])
def test_what_is_no_text_keeps_its_type(value):
    assert read_back(inventory_yaml({"a": value})) == {"a": value}

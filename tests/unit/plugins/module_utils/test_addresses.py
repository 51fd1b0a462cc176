# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host and port as one text."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint, endpoints


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("a", "a:1"),
        ("10.0.0.1", "10.0.0.1:1"),
        ("::1", "[::1]:1"),
        ("[::1]", "[::1]:1"),
        ("", ":1"),
    ],
)
def test_an_address_of_ipv6_is_in_brackets(host, text):
    assert endpoint(host, 1) == endpoint(host, "1") == text


def test_several_are_joined_by_commas():
    assert endpoints([("a", 1), ("::1", 2)]) == "a:1,[::1]:2"
    assert endpoints([]) == ""

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host and port as one text."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import (
    endpoint,
    endpoints,
    url_problem,
)


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


@pytest.mark.parametrize(
    "url, wrong",
    [
        ("https://mirror.example:8443/x@y", False),
        ("https://bob:p%2Fw@mirror.example/x", False),
        ("https://[2001:db8::1]/x", False),
        ("/srv/mirror:1/x#y", False),
        ("", False),
        ("https://bob:hun/ter2@mirror.example/x", True),
        ("https://bob:hun?ter2@mirror.example/x", True),
        ("https://bob:[x@mirror.example/x", True),
        ("https://mirror.example:port/x", True),
        ("https://mirror.example:99999/x", True),
    ],
)
def test_urls_whose_parts_cannot_be_told_apart(url, wrong):
    found = url_problem(url)
    assert bool(found) is wrong and "hun" not in str(found)

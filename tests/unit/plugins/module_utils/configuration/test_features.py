# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Levels of features: what a release raises, and what of them an older one cannot read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration import features

LINES = sorted(features.LEVELS)
VERSIONS = [f"{major}.{minor}.1" for major, minor in LINES]
# As a cluster of each release begins, its quorum dynamic.
BEGUN = {each: {**features.levels_of(each), features.QUORUM: 1} for each in VERSIONS}


@pytest.mark.parametrize(
    "finalised, version, expected",
    [
        ("3.9.1", "3.9.2", []),
        ("3.9.1", "4.3.1", []),
        ("4.3.1", "4.3.0", []),
        ("4.3.1", "4.2.1", ["metadata.version 30"]),
        ("4.1.1", "4.0.1", ["metadata.version 27", "eligible.leader.replicas.version 1"]),
        (
            *("4.3.1", "3.9.2"),
            [
                *("metadata.version 30", "eligible.leader.replicas.version 1", "group.version 1"),
                *("share.version 1", "streams.version 1", "transaction.version 2"),
            ],
        ),
        ("4.3.1", "4.9.0", None),
    ],
)
def test_what_a_release_does_not_read(finalised, version, expected):
    assert features.not_read_by(BEGUN[finalised], version) == expected


@pytest.mark.parametrize(
    "finalised, version, expected",
    [
        ({"metadata.version": 21}, "3.9.2", {}),
        ({"metadata.version": 20}, "3.9.2", {"metadata.version": (20, 21)}),
        (
            *({"metadata.version": 25, "group.version": 1}, "4.0.0"),
            {"transaction.version": (0, 2)},
        ),
        ({"metadata.version": 21}, "4.9.0", None),
    ],
)
def test_what_finalising_raises(finalised, version, expected):
    assert features.raises(finalised, version) == expected


def test_the_quorum_is_never_made_dynamic():
    assert all(features.QUORUM not in features.raises({}, each) for each in VERSIONS)


@given(st.sampled_from(VERSIONS), st.sampled_from(VERSIONS))
def test_there_is_a_way_back_exactly_until_the_features_are_finalised(old, new):
    """Whatever the two lines are: nodes of the newer one, and then its features, too."""
    if VERSIONS.index(old) < VERSIONS.index(new):
        assert features.not_read_by(BEGUN[old], old) == []
        assert features.raises(BEGUN[old], new)
        assert features.not_read_by(BEGUN[new], old)
        assert features.raises(BEGUN[new], new) == {}


@pytest.mark.parametrize(
    "level, version, expected",
    [(6, "4.0.0", True), (7, "4.0.0", False), (6, "3.9.2", False), (None, "4.3.1", False)],
)
def test_kafka_4_reads_no_metadata_of_before_3_3(level, version, expected):
    levels = {} if level is None else {"metadata.version": level}
    assert features.too_old_for(levels, version) is expected


@pytest.mark.parametrize(
    "level, expected", [(21, "3.9"), (11, "3.9"), (22, "4.0"), (30, "4.3"), (99, "")]
)
def test_the_line_of_a_level(level, expected):
    assert features.line_of({"metadata.version": level}) == expected


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({"metadata.version": 21}, "3.9"),
        ({"metadata.version": 30, "group.version": 1}, "4.3"),
        # nobody tells: what every release reads
        (None, "3.9"),
        ({}, "3.9"),
        # newer than all that is known here: what its own release has
        ({"metadata.version": 99}, ""),
    ],
)
def test_whose_features_a_node_is_formatted_with_that_joins(levels, expected):
    assert features.written_for(levels) == expected

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which protocol version a broker is told to speak: never a newer one than its neighbours know."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.protocol import (
    Speaker,
    line,
    may_finalise,
    oldest,
    pin,
)

NEW = Speaker()
OLD, PINNED, UNPINNED = Speaker("3.8.1"), Speaker("3.9.2", "3.8"), Speaker("3.9.2")
FINAL, BACK = Speaker("3.9.2", "3.9"), Speaker("3.8.1", "3.8")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("3.8.1", (3, 8)),
        ("3.8", (3, 8)),
        ("3.8-IV0", (3, 8)),
        ("0.10.1.0", (0, 10, 1)),
        ("0.10.1-IV2", (0, 10, 1)),
        ("", None),
        ("x", None),
        ("3", None),
        ("3.8x", None),
    ],
)
def test_line(text, expected):
    assert line(text) == expected


@pytest.mark.parametrize(
    "own, others, wanted, finalize, expected",
    [
        # a new cluster, and one where nothing changes
        (NEW, [NEW, NEW], "3.9.2", False, ""),
        (UNPINNED, [UNPINNED], "3.9.2", False, ""),
        (UNPINNED, [UNPINNED], "3.9.9", False, ""),
        # an upgrade, from its beginning to its end
        (OLD, [OLD, OLD], "3.9.2", False, "3.8"),
        (OLD, [PINNED, OLD], "3.9.2", False, "3.8"),
        (PINNED, [OLD, OLD], "3.9.2", False, "3.8"),
        (PINNED, [PINNED, PINNED], "3.9.2", False, "3.8"),
        # a broker that joins half way, or afterwards
        (NEW, [PINNED, OLD], "3.9.2", False, "3.8"),
        (NEW, [PINNED, PINNED], "3.9.2", False, "3.8"),
        (NEW, [FINAL, FINAL], "3.9.2", False, ""),
        (NEW, [FINAL, PINNED], "3.9.2", False, "3.8"),
        # somebody has replaced the binaries by hand
        (UNPINNED, [OLD, OLD], "3.9.2", False, "3.8"),
        # finalising: begun, killed, over
        (PINNED, [PINNED, PINNED], "3.9.2", True, "3.9"),
        (PINNED, [FINAL, PINNED], "3.9.2", True, "3.9"),
        (FINAL, [PINNED, PINNED], "3.9.2", True, "3.9"),
        (FINAL, [FINAL, FINAL], "3.9.2", True, "3.9"),
        (PINNED, [FINAL, PINNED], "3.9.2", False, "3.8"),
        # asked for too early, or with nothing to finalise
        (PINNED, [PINNED, OLD], "3.9.2", True, "3.8"),
        (OLD, [PINNED, OLD], "3.9.2", True, "3.8"),
        (UNPINNED, [UNPINNED], "3.9.2", True, ""),
        # back, half way and whole, and forth again
        (PINNED, [OLD, BACK], "3.8.1", False, "3.8"),
        (OLD, [PINNED, PINNED], "3.8.1", False, ""),
        (BACK, [BACK, BACK], "3.8.1", False, "3.8"),
        (BACK, [BACK, OLD], "3.9.2", False, "3.8"),
        # several releases at once
        (Speaker("3.8.1"), [Speaker("3.7.2")], "3.9.2", False, "3.7"),
        # a version that cannot be read changes nothing
        (PINNED, [PINNED], "newest", False, "3.8"),
    ],
)
def test_pin(own, others, wanted, finalize, expected):
    assert pin(own, [own, *others], wanted, finalize) == expected


LINES = st.sampled_from(["3.6", "3.7", "3.8", "3.9"])


@st.composite
def speakers(draw):
    """A broker as upgrades and rollbacks may leave it: never with a key that its release does not know."""
    release = draw(LINES)
    known = [each for each in ("3.6", "3.7", "3.8", "3.9") if line(each) <= line(release)]
    key = draw(st.sampled_from(["", *known]))
    return draw(st.sampled_from([NEW, Speaker(f"{release}.1", key), Speaker(f"{release}.1", key)]))


@st.composite
def upgraded(draw):
    """Brokers on the way from one line to a newer one, whatever has been killed meanwhile."""
    low, high = sorted(draw(st.lists(LINES, min_size=2, max_size=2, unique=True)))
    kinds = [Speaker(f"{low}.1"), Speaker(f"{low}.1", low), Speaker(f"{high}.1", low), NEW]
    return draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=7)), f"{high}.1"


@given(upgraded(), st.booleans())
def test_nobody_is_without_a_pin_among_older_ones(case, finalize):
    cluster, wanted = case
    assume(any(each.release for each in cluster))
    after = [pin(own, cluster, wanted, finalize) for own in cluster]
    # at any moment of the roll, some have what they are given, others what they had
    known = min(line(each.release) for each in cluster if each.release)
    for key in after:
        assert (line(key) or line(wanted)) <= known


@given(st.lists(speakers(), min_size=1, max_size=7), LINES)
def test_without_finalising_a_key_in_force_stays(cluster, wanted):
    for own in cluster:
        if own.key:
            assert pin(own, cluster, f"{wanted}.1") == own.key


@given(st.lists(speakers(), min_size=1, max_size=7), LINES, st.booleans())
def test_a_second_run_has_nothing_to_do(cluster, wanted, finalize):
    def after(brokers):
        return [
            Speaker(f"{wanted}.1", pin(own, brokers, f"{wanted}.1", finalize)) for own in brokers
        ]

    once = after(cluster)
    assume(all(each.speaks <= line(wanted) for each in once))
    # a first run without, a second with finalising is two steps, not one run that was repeated
    assume(not finalize or may_finalise(cluster, f"{wanted}.1"))
    assert after(once) == once


@given(st.lists(st.sampled_from([PINNED, FINAL, UNPINNED, NEW]), min_size=1, max_size=7))
def test_finalising_is_over_when_it_has_run(cluster):
    assume(may_finalise(cluster, "3.9.2"))
    keys = [pin(own, cluster, "3.9.2", True) for own in cluster if own.key]
    assert set(keys) <= {"3.9"}


def test_the_oldest_of_nobody():
    assert oldest([NEW, NEW]) is None and not may_finalise([NEW], "3.9.2")

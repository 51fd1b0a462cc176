# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Durations and sizes: what is read, what is refused, and the way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    LONG_MAX,
    approximate_duration,
    approximate_size,
    format_duration_ms,
    format_share,
    format_size_bytes,
    parse_duration_ms,
    parse_moment_ms,
    parse_share,
    parse_size_bytes,
    whole_number,
)

DURATIONS = [
    ("30m", 1_800_000),
    ("12h", 43_200_000),
    ("7d", 604_800_000),
    ("4w", 2_419_200_000),
    ("90s", 90_000),
    ("250ms", 250),
    ("7 d", 604_800_000),
    ("  7d ", 604_800_000),
    ("forever", -1),
    (86_400_000, 86_400_000),
    ("86400000", 86_400_000),
    (0, 0),
]
SIZES = [
    ("512MiB", 536_870_912),
    ("10GiB", 10_737_418_240),
    ("1TiB", 2**40),
    ("64 KiB", 65_536),
    ("100B", 100),
    ("unlimited", -1),
    (1_073_741_824, 1_073_741_824),
    ("1073741824", 1_073_741_824),
]
BAD_DURATIONS = ["1month", "1M", "1y", "7D", "-1", -1, "-7d", "1.5d", "d", "", "1d12h", "7d!", "٣d"]
BAD_DURATIONS += ["unlimited", "Forever", True, False, None, 1.5, ["7d"], "9" * 30]
BAD_SIZES = ["10G", "10GB", "10g", "10Gib", "1k", "1KB", "-1", -1, "1.5GiB", "GiB", "", "forever"]
BAD_SIZES += [True, None, 1.5, {}, f"{2**63}"]


@pytest.mark.parametrize("text, number", DURATIONS)
def test_durations(text, number):
    assert parse_duration_ms(text) == number


@pytest.mark.parametrize("text, number", SIZES)
def test_sizes(text, number):
    assert parse_size_bytes(text) == number


@pytest.mark.parametrize("value", BAD_DURATIONS, ids=repr)
def test_what_is_no_clear_duration(value):
    with pytest.raises(ValueError, match="write"):
        parse_duration_ms(value)


@pytest.mark.parametrize("value", BAD_SIZES, ids=repr)
def test_what_is_no_clear_size(value):
    with pytest.raises(ValueError, match="write"):
        parse_size_bytes(value)


@given(st.integers(min_value=-1, max_value=LONG_MAX))
def test_every_duration_and_size_comes_back(number):
    assert parse_duration_ms(format_duration_ms(number)) == number
    assert parse_size_bytes(format_size_bytes(number)) == number


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_with_a_sentence(text):
    for parse in (parse_duration_ms, parse_size_bytes):
        try:
            assert -1 <= parse(text) <= LONG_MAX
        except ValueError as error:
            assert "write" in str(error)


@pytest.mark.parametrize(
    "number, text",
    [(604_800_000, "7d"), (86_400_000, "1d"), (5_400_000, "90m"), (1_500, "1500ms"), (0, "0")],
)
def test_written_as_people_read_it(number, text):
    assert format_duration_ms(number) == text


@pytest.mark.parametrize("number, text", [(0, "0 B"), (1536, "1.5 KiB"), (3 * 2**30, "3.0 GiB")])
def test_sizes_in_sentences(number, text):
    assert approximate_size(number) == text


@pytest.mark.parametrize(
    "text, number",
    [("3", 3), (" 3 ", 3), (-1, -1), ("1.5", None), ("", None), (None, None), (True, None)],
)
def test_whole_numbers_of_properties(text, number):
    assert whole_number(text) == number


@pytest.mark.parametrize(
    "text, share, written",
    [
        ("80%", 0.8, "80%"),
        (" 100 % ", 1.0, "100%"),
        ("0.5%", 0.005, "0.5%"),
        ("33.3%", 0.333, "33.3%"),
    ],
)
def test_shares(text, share, written):
    assert parse_share(text) == pytest.approx(share) and format_share(share) == written


@pytest.mark.parametrize(
    "value", ["80", 80, 0.8, "0%", "101%", "-5%", "", None, True, "% 5", "1e1%"]
)
def test_what_is_no_clear_share(value):
    with pytest.raises(ValueError, match="write a percentage"):
        parse_share(value)


NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    "text, number",
    [
        ("2026-01-31T08:00:00Z", 1769846400000),
        ("2026-01-31T08:00:00.250Z", 1769846400250),
        ("2026-01-31 10:00:00+02:00", 1769846400000),
        ("2h", NOW_MS - 7_200_000),
        ("0s", NOW_MS),
        ("1769846400000", 1769846400000),
        (1769846400000, 1769846400000),
    ],
)
def test_moments(text, number):
    assert parse_moment_ms(text, NOW_MS) == number


@pytest.mark.parametrize(
    "text, words",
    [
        ("2026-01-31T08:00:00", "no time zone"),
        ("2026-01-31", "no time zone"),
        ("yesterday", "not a moment"),
        ("2 moons", "not a clear duration"),
        (1769846400, "not milliseconds"),
        ("1969-12-31T23:59:59.999Z", "before 1970"),  # -1 is the end of a partition for Kafka
        ("1969-12-31T23:59:59.998Z", "before 1970"),  # and -2 its beginning
        ("1970-01-01T00:00:00+01:00", "before 1970"),
        ("0001-01-01T00:00:00Z", "before 1970"),
        (True, "not a moment"),
        (None, "not a moment"),
        (1.5, "not a moment"),
    ],
)
def test_moments_that_could_mean_two_things_are_refused(text, words):
    with pytest.raises(ValueError, match=words):
        parse_moment_ms(text, NOW_MS)


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0, "0s"),
        (59.9, "59s"),
        (75, "1m 15s"),
        (3600, "1h 0m"),
        (93784, "1d 2h"),
        (864000, "10d 0h"),
    ],
)
def test_durations_for_sentences(seconds, text):
    assert approximate_duration(seconds) == text

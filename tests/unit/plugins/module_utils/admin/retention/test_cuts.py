# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How large a cut is, and steps of it: simulated brokers delete whole segments, now or later."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    ConfigEntry,
    Partition,
    Snapshot,
    Stake,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.cuts import (
    Step,
    large_cuts,
    least_limit,
    left_of,
    plan_steps,
    refuse_large,
    share_of,
    stepped,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.stakes import growth_rate
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    DesiredTopic,
)

HOUR = 60 * 60 * 1000
SIZE = 100


@pytest.mark.parametrize(
    "stake, share",
    [
        (Stake(10, 100, 500, 1000), 0.5),
        (Stake(60, 100, 500, 1000), 0.6),
        (Stake(10, 100), 0.1),
        (Stake(None, 100, None, None, "why"), None),
        (Stake(), None),
        (Stake(0, 0, 0, 0), 0.0),
    ],
)
def test_the_share_is_the_larger_of_what_is_known(stake, share):
    assert share_of(stake) == share


def test_cuts_above_the_share_or_of_unknown_size_are_large():
    cuts = {"a": (1, None), "b": (None, 1), "c": (1, 1), "d": (None, None), "e": (1, None)}
    stakes = {"a": Stake(4, 10), "b": Stake(3, 10), "c": Stake(), "d": Stake(10, 10)}
    large = large_cuts(cuts, stakes, 0.3)
    assert large == {"a": 0.4, "c": None, "e": None}
    told = refuse_large(large, 0.3)
    assert [each.subjects for each in told] == [("a",), ("c",), ("e",)]
    assert "40%" in told[0].reason and "cut_in_steps" in told[0].remedy
    assert "could not be learned" in told[1].reason and "cut_in_steps" not in told[1].remedy


@given(st.lists(st.integers(0, 10**6), max_size=8), st.floats(0, 10**6))
def test_the_least_limit_lets_go_what_is_allowed_and_no_more(sizes, allowance):
    limit = least_limit(sizes, allowance)
    beyond = [sum(max(0, size - each) for size in sizes) for each in (limit, limit - 1)]
    assert beyond[0] <= allowance and (limit == 0 or beyond[1] > allowance)


def test_a_step_leaves_the_rest_of_the_wish_as_it_is():
    wish = DesiredTopic("a", config={"retention.ms": "5", "cleanup.policy": "delete"})
    assert stepped(wish, Step({"retention.ms": "9"}, {"retention.ms": "5"})).config == {
        "cleanup.policy": "delete",
        "retention.ms": "9",
    }
    assert stepped(wish, Step({}, {"retention.ms": "5"})).config == {"cleanup.policy": "delete"}


@pytest.mark.parametrize(
    "first, end, young, size, rate",
    [
        (0, 100, 90, 1000, 10.0),
        (50, 100, 90, 1000, 20.0),
        # nothing of the last time
        (50, 100, -1, 1000, 0.0),
        (100, 100, -1, 0, 0.0),
        # nobody knows since when
        (0, 100, 0, 1000, None),
        (0, 0, -1, 0, None),
        (0, 100, 90, None, None),
    ],
)
def test_growth_is_known_where_something_older_is_there(first, end, young, size, rate):
    assert growth_rate(first, end, young, size, 10) == rate


# ---------------------------------------------------------------- simulated brokers


@dataclass
class Log:
    """Partitions of ages in milliseconds, oldest first, in segments of `segment` records."""

    partitions: list
    segment: int
    retention_ms: int = -1
    retention_bytes: int = -1
    deleted: list = field(default_factory=list)

    def snapshot(self):
        """What the modules would read."""
        config = {
            "retention.ms": str(self.retention_ms),
            "retention.bytes": str(self.retention_bytes),
            "cleanup.policy": "delete",
            "segment.bytes": str(self.segment * SIZE),
        }
        entries = {key: ConfigEntry(key, value, "topic") for key, value in config.items()}
        parts = tuple(Partition(i, 1, (1,), (1,)) for i in range(len(self.partitions)))
        total = sum(map(len, self.partitions))
        return Snapshot(
            topics={"a": Topic("a", parts, entries)},
            stakes={"a": Stake(total, total, total * SIZE, total * SIZE)},
        )

    @property
    def records(self):
        """How many there are."""
        return sum(map(len, self.partitions))

    def sizes(self):
        """Bytes of each partition."""
        return {("a", index): len(each) * SIZE for index, each in enumerate(self.partitions)}

    def older(self, age):
        """How many records are older."""
        return sum(sum(each > age for each in ages) for ages in self.partitions)

    def beyond(self, limit):
        """How many records a limit of bytes lets go: none without which the rest would be less."""
        kept = -(-limit // SIZE)
        return sum(max(0, len(each) - kept) for each in self.partitions)

    def let_go(self):
        """How many records the limits let go at this moment, deleted or not."""
        by_age = self.older(self.retention_ms) if self.retention_ms >= 0 else 0
        by_size = self.beyond(self.retention_bytes) if self.retention_bytes >= 0 else 0
        return max(by_age, by_size)

    def delete(self):
        """As brokers do: whole segments, the oldest first."""
        for index, ages in enumerate(self.partitions):
            ages = list(ages)
            while ages:
                head = ages[: self.segment]
                old = 0 <= self.retention_ms < min(head)
                rest = (len(ages) - len(head)) * SIZE
                if not old and not 0 <= self.retention_bytes <= rest:
                    break
                ages = ages[len(head) :]
            self.partitions[index] = ages


AGES = st.lists(st.integers(0, 1000 * HOUR), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(
    partitions=st.lists(AGES, min_size=1, max_size=4),
    segment=st.integers(1, 20),
    maximum=st.sampled_from([0.1, 0.3, 0.5]),
    final=st.tuples(
        st.one_of(st.none(), st.integers(HOUR, 500 * HOUR)),
        st.one_of(st.none(), st.integers(0, 30).map(lambda each: each * SIZE)),
    ).filter(any),
    at_once=st.data(),
)
def test_steps_lead_there_and_none_lets_go_more_than_its_share(
    partitions, segment, maximum, final, at_once
):
    """However late the brokers delete, and whoever makes the steps."""
    log = Log([sorted(each, reverse=True) for each in partitions], segment)
    final = (final[0], None if final[1] is None else max(1, final[1]))
    wish = {"retention.ms": final[0], "retention.bytes": final[1]}
    wish = {key: value for key, value in wish.items() if value is not None}
    idle = 0
    for _step in range(150):
        total, before = log.records, log.let_go()
        stake = Stake(
            max(
                log.older(final[0]) if final[0] is not None else 0,
                log.beyond(final[1]) if final[1] is not None else 0,
            ),
            total,
        )
        limits = (log.retention_ms, log.retention_bytes)
        cut = tuple(
            new if new is not None and new != now else None for new, now in zip(final, limits)
        )
        if cut == (None, None):
            return
        done = (share_of(stake) or 0) <= maximum
        if done:
            now = wish
        else:
            snapshot = log.snapshot()
            step = plan_steps(
                snapshot,
                {"a": cut},
                log.sizes(),
                maximum,
                lambda ages: {name: log.older(age) for name, age in ages.items()},
            )["a"]
            now = {key: int(value) for key, value in step.settings.items()}
            idle = idle + 1 if step.waiting else 0
        log.retention_ms = now.get("retention.ms", log.retention_ms)
        log.retention_bytes = now.get("retention.bytes", log.retention_bytes)
        for was, new, least in zip(limits, (log.retention_ms, log.retention_bytes), final):
            # always closer, and never beyond
            assert new == was or ((was < 0 or new < was) and new >= least)
        share = maximum * total
        # Beside the share, only what no limit can divide: a segment of each partition, and records of one moment.
        segments = sum(min(len(each), segment) for each in log.partitions)
        moment = max(
            (
                log.older(age - max(1000, age // 500)) - log.older(age + max(1000, age // 500))
                for ages in log.partitions
                for age in ages
            ),
            default=0,
        )
        assert log.let_go() <= max(before, share + segments + moment)
        if done:
            return
        # at some time the brokers delete
        if idle > 2 or at_once.draw(st.booleans()):
            log.delete()
    raise AssertionError("it never ends")


def settings_of(**config):
    """Settings of a topic: (value, source) by name, `_` for each dot."""
    return {
        key.replace("_", "."): ConfigEntry(key.replace("_", "."), *each)
        for key, each in config.items()
    }


@pytest.mark.parametrize(
    "now, left, others",
    [
        (("1", "topic"), "9", []),
        (("9", "topic"), None, []),
        (("5", "topic"), "9", ["retention.ms"]),
        (("1", "default"), "9", ["retention.ms"]),
        # As wanted, but only as long as nobody changes the brokers' default.
        (("9", "default"), "9", ["retention.ms"]),
    ],
)
def test_what_is_left_of_a_change_when_it_is_made(now, left, others):
    then = Topic("t", (), settings_of(retention_ms=("1", "topic"), segment_ms=("3", "topic")))
    found = settings_of(retention_ms=now, segment_ms=("7", "topic"))
    change = Change(
        "configure", "t", {"config": {"retention.ms": "1"}}, {"config": {"retention.ms": "9"}}
    )
    kept, changed = left_of(change, then, Topic("t", (), found))
    assert (kept and kept.after["config"]["retention.ms"]) == left and sorted(changed) == others


def test_what_somebody_else_has_taken_away_is_not_taken_away_again():
    then = Topic("t", (), settings_of(retention_ms=("1", "topic"), segment_ms=("3", "topic")))
    change = Change(
        "configure",
        "t",
        {"config": {"retention.ms": "1", "segment.ms": "3"}},
        {"config": {"retention.ms": "9", "segment.ms": None}},
    )
    now = settings_of(retention_ms=("1", "topic"), segment_ms=("8", "default"))
    kept, others = left_of(change, then, Topic("t", (), now))
    assert not others and kept.before == {"config": {"retention.ms": "1"}}
    assert kept.after == {"config": {"retention.ms": "9"}}


@pytest.mark.parametrize(
    "wanted, policy, others",
    [
        # It was compacted, so that a short limit needed no consent; now it deletes.
        ("1", "delete", ["cleanup.policy"]),
        ("1", "compact", []),
        ("9", "delete", []),
    ],
)
def test_a_limit_that_deleted_nothing_until_somebody_changed_the_policy(wanted, policy, others):
    then = Topic(
        "t", (), settings_of(retention_ms=("5", "topic"), cleanup_policy=("compact", "topic"))
    )
    now = settings_of(retention_ms=("5", "topic"), cleanup_policy=(policy, "topic"))
    change = Change(
        "configure", "t", {"config": {"retention.ms": "5"}}, {"config": {"retention.ms": wanted}}
    )
    kept, found = left_of(change, then, Topic("t", (), now))
    assert kept == change and sorted(found) == others

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""May a broker be stopped: a row for each state, what holds for all states, and waiting by a clock of our own."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin import quorum as controllers
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.until_quiet import (
    until_quiet,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    ConfigEntry,
    Directory,
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quorum import (
    Quorum,
    Replica,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling import gate
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.gate import (
    CANNOT_PASS,
    GO,
    WAIT,
    Accepted,
    judge,
    judge_each,
    minimums_of,
    parse_accepted,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.gatekeeper import (
    Gatekeeper,
    Question,
    until_stopped,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.options import (
    with_way_out,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

ALL = (1, 2, 3)
EVERYTHING = Accepted(everything=True)
FINE = ((1, 2, 3), (1, 2, 3))
NO_LEADER = "no leader"


def cluster(*states, brokers=ALL, controller=1, names=None):
    """A topic t0, t1, ... of one partition for each state: (replicas, isr), and NO_LEADER behind it."""
    topics = {}
    for index, (replicas, isr, *more) in enumerate(states):
        name = names[index] if names else f"t{index}"
        leader = isr[0] if isr and not more else None
        topics[name] = Topic(name, (Partition(0, leader, tuple(replicas), tuple(isr)),))
    return Snapshot("id", controller, tuple(Broker(each, "h", 9092) for each in brokers), topics)


def least(snapshot, minimum=2):
    return dict.fromkeys(snapshot.topics, minimum)


# May broker 1 stop? States, min.insync.replicas, what is accepted, the verdict, words of it.
ONE_IN_SYNC = ((1, 2, 3), (1,))
TABLE = [
    ([FINE], 2, "", GO, ""),
    ([FINE], 1, "", GO, ""),
    ([FINE], 3, "", CANNOT_PASS, "t0-0 (3 replicas, min.insync.replicas 3)"),
    ([FINE], 3, "t0", GO, ""),
    ([FINE], 3, "other", CANNOT_PASS, "t0-0"),
    ([FINE], 9, "", CANNOT_PASS, "min.insync.replicas 9"),
    ([FINE], 9, "all", GO, ""),
    # of three, two are in sync
    ([((1, 2, 3), (2, 3)), FINE], 2, "", GO, ""),
    ([((1, 2, 3), (1, 2)), FINE], 2, "", WAIT, "without broker 1: t0-0 (1 of 2)"),
    ([((1, 2, 3), (1, 2)), FINE], 2, "all", WAIT, "t0-0 (1 of 2)"),
    ([((1, 2, 3), (1, 2)), FINE], 1, "", GO, ""),
    # accepted, but another replica lags: two would be missing
    ([((1, 2, 3), (1, 2)), FINE], 3, "t0", WAIT, "accepted, but not in sync on all other"),
    ([((1, 2), (1,)), FINE], 2, "t0", WAIT, "t0-0 (0 of 1 others)"),
    # one is in sync: this broker may be the one that catches up, and its replicas tell
    ([((1, 2, 3), (2,)), FINE], 2, "", GO, "it is waited for while it copies t0-0 (1 of 2)"),
    ([((1, 2, 3), (3, 2)), FINE], 3, "", GO, "it is waited for while it copies t0-0 (2 of 3)"),
    ([((1, 2, 3), (3, 2)), FINE], 3, "t0", GO, "may stop now"),
    ([((1, 2, 3), (2,)), FINE], 1, "", GO, ""),
    # more are asked for than there are replicas: catching up cures nothing
    ([((1, 2), (2,)), FINE], 3, "", GO, ""),
    # one replica
    ([((1,), (1,)), FINE], 1, "", CANNOT_PASS, "t0-0 (1 replica)"),
    ([((1,), (1,)), FINE], 2, "", CANNOT_PASS, "t0-0 (1 replica)"),
    ([((1,), (1,)), FINE], 1, "t0", GO, ""),
    ([((1,), (1,))], 1, "all", GO, ""),
    # not on this broker at all
    ([((2,), (2,)), FINE], 2, "", GO, ""),
    ([((2, 3), (2,)), FINE], 2, "", GO, ""),
    ([], 2, "", GO, ""),
    # two replicas
    ([((1, 2), (1, 2))], 1, "", GO, ""),
    ([((1, 2), (1, 2))], 2, "", CANNOT_PASS, "t0-0 (2 replicas, min.insync.replicas 2)"),
    # the last one that has it, although the others are there and follow others
    ([ONE_IN_SYNC, FINE], 2, "", WAIT, "t0-0 (0 of 2)"),
    ([ONE_IN_SYNC, FINE], 1, "all", WAIT, "t0-0 (0 of 1)"),
    # without a leader
    ([((2, 3), (2,), NO_LEADER), FINE], 2, "", WAIT, "1 partition is offline: t0-0"),
    ([((2, 3), (), NO_LEADER), FINE], 2, "", WAIT, "offline: t0-0"),
    ([((1, 2, 3), (1,), NO_LEADER), FINE], 2, "", GO, ""),
]  # fmt: skip


@pytest.mark.parametrize("states, minimum, accepted, verdict, words", TABLE)
def test_every_state(states, minimum, accepted, verdict, words):
    snapshot = cluster(*states)
    # FINE only says that the broker works: with m = 2 whatever the row asks
    minimums = {**least(snapshot, minimum), **({"t1": 2} if len(states) > 1 else {})}
    found = judge(snapshot, 1, minimums, ALL, parse_accepted([accepted]))
    assert found.verdict == verdict, found
    assert words in gate.summary(found)
    assert bool(found.too_few_replicas) == (verdict == CANNOT_PASS) and bool(found.reasons) == (
        verdict == WAIT
    )


@pytest.mark.parametrize(
    "snapshot, more, words",
    [
        (cluster(FINE, controller=None), {}, "there is no controller"),
        (cluster(FINE, controller=9), {}, "there is no controller"),
        (cluster(((1, 2, 3), (1, 2)), FINE, brokers=(1, 2)), {}, "not registered: broker 3"),
        (cluster(((1, 2, 3), (1, 2)), ((1, 2, 4), (1, 2)), brokers=(1, 2)), {"expected": (1, 2, 3, 4)}, "brokers 3, 4"),
        (cluster(FINE), {"reassigning": [("t0", 0)]}, "1 partition is being reassigned: t0-0"),
    ],
)  # fmt: skip
def test_what_holds_back_every_broker_but_the_one_to_be_mended(snapshot, more, words):
    asked = {"expected": ALL, **more}
    found = judge(snapshot, 1, least(snapshot, 1), **asked)
    assert found.verdict == WAIT and words in "; ".join(found.reasons)
    away = replace(snapshot, brokers=tuple(each for each in snapshot.brokers if each.id != 1))
    assert judge(away, 1, least(snapshot, 1), **asked).verdict == GO
    alone = ((1, 2, 3), (2, 3))
    sick = replace(cluster(alone, alone), brokers=snapshot.brokers, controller=snapshot.controller)
    found = judge(sick, 1, least(sick), **asked)
    assert (found.verdict, found.mending) == (GO, "it is in sync with no other broker")
    assert judge(sick, 2, least(sick), **asked).verdict == WAIT


def test_the_broker_that_is_missing_is_told_before_the_partitions_that_miss_it():
    away = cluster(*[((1, 2, 3), (1, 2))] * 20, FINE, brokers=(1, 2))
    told = gate.summary(judge(away, 1, least(away), ALL))
    assert "may not stop yet: not registered: broker 3; 20 partitions are below" in told


def test_a_broker_that_is_still_to_be_deployed_holds_nobody_back():
    """The inventory names it already; it has no replica, so that it spares nobody."""
    snapshot = cluster(FINE, FINE)
    assert judge(snapshot, 1, least(snapshot), (*ALL, 4)).verdict == GO


def test_a_sick_broker_need_not_catch_up_first():
    """Nothing that it has to catch up with holds it back: it never would."""
    thin = cluster(((1, 2, 3), (2,)), ((1, 2, 3), (2, 3)))
    assert judge(thin, 1, least(thin), ALL).verdict == GO
    # nor one that is sick in part, such as one with a log directory that has failed
    part = cluster(((1, 2, 3), (2,)), FINE)
    found = judge(part, 1, least(part), ALL)
    assert (found.verdict, found.mending, found.behind) == (GO, "", (("t0", 0, "1 of 2"),))
    # what keeps other brokers does
    assert judge(part, 1, least(part), (*ALL,), reassigning=[("t1", 0)]).verdict == WAIT


def test_a_broker_that_nobody_follows_needs_consent_for_what_it_alone_has():
    """Its peers are there and do not follow: waiting may be in vain, and stopping it takes them away."""
    snapshot = cluster(((1, 2, 3), (1,)), ((1, 2, 3), (2, 3)))
    found = judge(snapshot, 1, least(snapshot), ALL)
    assert found.verdict == WAIT and "in sync on broker 1 alone" in "; ".join(found.reasons)
    told = gate.waited_in_vain(found, 5, found.reasons).line()
    assert told.startswith("[gate.waiting] broker 1: waited 5 s")
    assert "`-e kafka_accept_unavailable=t0`" in told
    assert judge(snapshot, 1, least(snapshot), ALL, parse_accepted(["t0"])).verdict == GO


@pytest.mark.parametrize(
    ("reasons", "only"),
    [
        ([controllers.NO_LEADER], True),
        ([f"{controllers.NOT_TOLD} (timed out)"], True),
        ([controllers.NO_LEADER, "not registered: broker 2"], False),
    ],
)
def test_a_quorum_without_a_leader_is_cured_by_a_start_of_all(reasons, only):
    """With start.yml alone it is a circle: nothing is down, and each broker waits for a leader."""
    told = gate.waited_in_vain(gate.Verdict(1, WAIT), 300, reasons)
    assert "run playbooks/stop.yml, then playbooks/site.yml" in told.remedy
    assert ("reassignments" in told.remedy) is not only
    assert "playbooks/start.yml" in told.remedy


def test_the_last_broker_that_lives_is_not_taken_for_a_sick_one():
    """With consent, too: its peers are dead, they do not refuse to follow."""
    snapshot = cluster(((1, 2), (1,)), brokers=(1,))
    found = judge(snapshot, 1, least(snapshot, 1), (1, 2), EVERYTHING)
    assert found.verdict == WAIT and "not registered: broker 2" in found.reasons


def test_settings_that_nobody_knows_yet_are_waited_for():
    snapshot = cluster(FINE, FINE)
    found = judge(snapshot, 1, {"t0": 2}, ALL)
    assert found.verdict == WAIT and "1 partition is of unknown settings: t1-0" in found.reasons


def test_internal_topics_count_like_any_other():
    snapshot = cluster(FINE, ((1,), (1,)), names=["orders", "__consumer_offsets"])
    assert judge(snapshot, 1, least(snapshot), ALL).topics == {"__consumer_offsets"}
    assert judge(snapshot, 2, least(snapshot), ALL).verdict == GO


def test_several_brokers_are_judged_each_alone():
    snapshot = cluster(((1,), (1,)), FINE, ((1, 2, 3), (2, 3)))
    found = judge_each(snapshot, ALL, least(snapshot), ALL)
    assert [found[each].verdict for each in ALL] == [CANNOT_PASS, WAIT, WAIT]
    assert [found[each].partitions for each in ALL] == [3, 2, 2]


def test_the_refusal_names_ten_partitions_and_the_option_for_all_of_them():
    states = [((1,), (1,)) for index in range(12)]
    snapshot = cluster(
        *states, FINE, names=[f"single-{index:02}" for index in range(12)] + ["orders"]
    )
    found = judge(snapshot, 1, least(snapshot), ALL, parse_accepted(["single-00", "scratch"]))
    told = gate.refusal([found], parse_accepted(["single-00", "scratch"])).line()
    assert told.startswith(
        "[gate.cannot_pass] broker 1: while it stops, 11 partitions take no writes"
    )
    assert "single-01-0 (1 replica)" in told and "single-10-0" in told and "single-11-0" not in told
    assert "and 1 more" in told
    names = ",".join(["scratch", *(f"single-{index:02}" for index in range(12))])
    assert told.endswith(f"add `-e kafka_accept_unavailable={names}`"), told
    assert gate.refusal([judge(snapshot, 2, least(snapshot), ALL)]) is None


def test_a_refusal_speaks_of_its_own_brokers_since_others_may_have_had_their_turns():
    """A topic with one replica may be made in the middle of a roll."""
    single = cluster(((1,), (1,)), ((2,), (2,)), FINE)
    one, other = (judge(single, broker, least(single), ALL) for broker in (1, 2))
    assert ". It was not stopped. Remedy" in gate.refusal([one]).line()
    assert ". None of them was stopped. Remedy" in gate.refusal([one, other]).line()
    assert gate.other_voters((2,), "x").reason.endswith(". It was not stopped")


def test_a_refusal_of_very_many_topics_says_all():
    topics = [f"t{index}" for index in range(1000)]
    assert gate.option(topics) == "-e kafka_accept_unavailable=all"


@pytest.mark.parametrize("topics", [["all"], ["a", "all"], ["a", "b"]])
def test_the_option_to_copy_accepts_these_topics_and_no_other(topics):
    value = gate.option(topics).rpartition("=")[2]
    assert parse_accepted([value]) == Accepted(frozenset(topics))


@pytest.mark.parametrize(
    "values, names, everything",
    [
        ([], set(), False),
        (None, set(), False),
        (["all"], set(), True),
        (["a,b", " c "], {"a", "b", "c"}, False),
        (["a", "all"], {"a"}, True),
        # a topic may have that name
        (["topic:all,a", "topic:b"], {"all", "a", "b"}, False),
        ([","], set(), False),
    ],
)
def test_what_is_accepted(values, names, everything):
    assert parse_accepted(values) == Accepted(frozenset(names), everything)


def entry(value, source="default"):
    return {gate.MIN_INSYNC: ConfigEntry(gate.MIN_INSYNC, value, source)}


def test_min_isr_is_the_topics_own_or_the_highest_of_the_brokers():
    configs = {
        "own": entry("1", "topic"),
        "default": entry("1", "static"),
        "high": entry("3"),
        "none": entry(None),
        "unread": {},
    }
    assert minimums_of(configs, [2, 1]) == {"own": 1, "default": 2, "high": 3}
    assert minimums_of(configs) == {"own": 1, "default": 1, "high": 3}


# ---------------------------------------------------------------- for all states


@st.composite
def snapshots(draw):
    """(Snapshot, minimums): up to five brokers, some of them absent, partitions in any state."""
    ids = range(1, draw(st.integers(1, 5)) + 1)
    states = []
    for _index in range(draw(st.integers(0, 6))):
        replicas = draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))
        isr = draw(st.lists(st.sampled_from(replicas), unique=True))
        states.append((replicas, isr, *([NO_LEADER] if draw(st.booleans()) and not isr else [])))
    alive = draw(st.lists(st.sampled_from(ids), unique=True))
    snapshot = cluster(*states, brokers=alive, controller=draw(st.sampled_from([None, *ids])))
    minimums = {name: draw(st.integers(1, 4)) for name in snapshot.topics}
    return snapshot, minimums


NAMES = st.frozensets(st.sampled_from([f"t{index}" for index in range(6)]))


def parts(snapshot):
    return [(name, part) for name, topic in snapshot.topics.items() for part in topic.partitions]


@given(snapshots(), NAMES, st.integers(1, 5))
def test_go_never_takes_a_partition_below_its_minimum_that_is_not_accepted(state, names, broker):
    snapshot, minimums = state
    found = judge(snapshot, broker, minimums, range(1, 6), Accepted(names))
    registered = broker in {each.id for each in snapshot.brokers}
    if found.verdict != GO or not registered:
        return
    for name, part in parts(snapshot):
        if broker in part.isr and name not in names and part.leader is not None:
            assert len(set(part.isr) - {broker}) >= minimums[name]


@given(snapshots(), NAMES, st.integers(1, 5))
def test_what_a_registered_broker_would_bring_back_to_its_minimum_is_looked_at(
    state, names, broker
):
    """Each such partition, of a broker that works, or in part, or not at all; and no other."""
    snapshot, minimums = state
    found = judge(snapshot, broker, minimums, range(1, 6), Accepted(names))
    registered = broker in {each.id for each in snapshot.brokers}
    expected = {
        (name, part.id)
        for name, part in parts(snapshot)
        if broker in set(part.replicas) - set(part.isr)
        and len(part.isr) < minimums[name] <= len(part.replicas)
        and part.leader is not None
        and name not in names
    }
    assert {(name, number) for name, number, _why in found.behind} == (
        expected if registered else set()
    )


@given(snapshots(), NAMES, st.integers(1, 5), st.data())
def test_one_more_replica_in_sync_never_closes_the_gate(state, names, broker, data):
    """Replicas of other brokers, and for a broker that works."""
    snapshot, minimums = state
    asked = (broker, minimums, range(1, 6), Accepted(names))
    if judge(snapshot, *asked).verdict != GO or judge(snapshot, *asked).mending:
        return
    lacking = [
        (name, part, member)
        for name, part in parts(snapshot)
        for member in set(part.replicas) - set(part.isr) - {broker}
        if part.leader is not None
    ]
    if not lacking:
        return
    name, part, member = data.draw(st.sampled_from(lacking))
    better = Topic(name, (replace(part, isr=(*part.isr, member)),))
    found = judge(replace(snapshot, topics={**snapshot.topics, name: better}), *asked)
    assert found.verdict == GO


@given(snapshots(), NAMES, st.integers(1, 5))
def test_consent_changes_nothing_but_what_cannot_pass_is_only_here_or_is_copied(
    state, names, broker
):
    snapshot, minimums = state
    asked = (snapshot, broker, minimums, range(1, 6))
    plain, consented = judge(*asked), judge(*asked, Accepted(names))
    copied = {name for name, _number, _told in plain.behind}
    if not (plain.topics | plain.consent | copied) & names:
        assert plain == consented
    assert consented.behind == tuple(each for each in plain.behind if each[0] not in names)
    assert consented.topics == plain.topics - names
    if plain.verdict == GO:
        assert consented.verdict == GO


@given(snapshots(), NAMES, st.integers(1, 5))
def test_what_is_not_registered_may_always_stop(state, names, broker):
    snapshot, minimums = state
    away = replace(snapshot, brokers=tuple(each for each in snapshot.brokers if each.id != broker))
    assert judge(away, broker, minimums, range(1, 6), Accepted(names)).verdict == GO


@given(snapshots())
def test_judging_all_at_once_is_judging_each(state):
    snapshot, minimums = state
    together = judge_each(snapshot, range(1, 6), minimums, range(1, 6))
    for broker, found in together.items():
        assert found == judge(snapshot, broker, minimums, range(1, 6))


# ---------------------------------------------------------------- waiting


class World:
    """States of a cluster by time; as client and clock at once. `minimums`: topic to a text, by time."""

    def __init__(self, *states, minimums=None, moving=((0, ()),), views=None):
        self.now = 0.0
        self.states, self.moving = states, moving
        self.minimums = minimums or ((0, {}),)
        self.views = views or {}
        self.configs_read = []
        self.disks = ((0, {}),)
        self.disks_of = []
        self.sizes, self.sizes_asked = lambda _now: {}, []
        self.log = []

    def _at(self, states):
        found = [each for since, each in states if since <= self.now][-1]
        if isinstance(found, AdminError):
            raise found
        return found

    def connect(self):
        self._at(self.states)

    def close(self):
        pass

    def fetch_metadata(self):
        return self._at(self.states)

    def fetch_view_of_others(self, *_besides):
        return self.fetch_metadata()

    def fetch_every_view(self, snapshot, besides=()):
        others = [each.id for each in snapshot.brokers if each.id not in besides]
        found = dict.fromkeys(others, snapshot)
        found.update({broker: views.pop(0) for broker, views in self.views.items() if views})
        return found

    def fetch_moving_partitions(self, _places):
        return list(self._at(self.moving))

    def fetch_configs(self, names):
        self.configs_read += names
        told = self._at(self.minimums)
        return {name: entry(told.get(name, "2")) for name in names if told.get(name) != "gone"}

    def fetch_setting(self, names, _key, _places):
        return self.fetch_configs(names)

    def fetch_broker_settings(self, brokers, _key):
        return dict.fromkeys(brokers, "1")

    def sleep(self, seconds):
        self.now += seconds

    def fetch_directories(self, brokers, places):
        self.disks_of.append((list(brokers), places))
        return self._at(self.disks)

    def fetch_replica_bytes(self, broker, keys, _places):
        self.sizes_asked.append((self.now, broker, sorted(keys)))
        return self.sizes(self.now)

    def fetch_quorum(self, places):
        self.asked_at = places
        return self._at(self.quorums)

    def look_once(self, broker=1, quiet=3.0):
        keeper = Gatekeeper(Question((broker,), ALL, quiet_seconds=quiet))
        return keeper.look_once(lambda: self, lambda: self.now, self.sleep)[broker]

    def wait(self, broker=1, accepted=(), quiet=0.0, seconds=60.0, expected=ALL, voters=()):
        question = Question((broker,), expected, parse_accepted(accepted), quiet, seconds, voters)
        keeper = self.keeper = Gatekeeper(question)
        return keeper.wait(lambda: self, lambda: self.now, self.sleep, self.log.append)


def quorum(*ages, leads=1):
    """Voter 1 leads; of the next ones the ms since their last fetch."""
    others = [Replica(number, 9, 10**6 - age, 10**6 - age) for number, age in enumerate(ages, 2)]
    return Quorum(leads, 1, (Replica(1, 9, -1, 10**6), *others))


GOOD = cluster(FINE, FINE)
THIN = cluster(((1, 2, 3), (1, 2)), FINE)
SINGLE = cluster(((1,), (1,)), FINE)


def test_it_waits_until_the_others_have_enough():
    passed = World((0, THIN), (7, GOOD)).wait()
    assert 7 <= passed.waited_seconds < 8 and passed.verdict.verdict == GO


def test_a_flap_starts_the_quiet_time_anew():
    flapping = [(second, THIN if second % 2 else GOOD) for second in range(10)]
    assert 12 <= World(*flapping, (10, GOOD)).wait(quiet=3).waited_seconds <= 14


def test_the_quiet_time_begins_when_every_broker_sees_the_same():
    """Who has just gone on after it hung tells what was so before; the others know of the flap."""
    world = World((0, GOOD), views={3: [THIN] * 8})
    assert 5 <= world.wait(quiet=3).waited_seconds < 6
    assert 3 <= World((0, GOOD)).wait(quiet=3).waited_seconds < 4, "no longer than without a flap"


def test_a_look_that_hangs_is_a_hole_in_the_quiet_time():
    """The broker that is asked hangs from 2 s to 9 s, and nobody has seen what came and went meanwhile."""

    class Hanging(World):
        def fetch_metadata(self):
            self.now = 9.0 if 2 <= self.now < 9 else self.now
            return super().fetch_metadata()

    assert 12 <= Hanging((0, GOOD)).wait(quiet=3).waited_seconds < 13

    class Slow(World):
        def fetch_metadata(self):
            self.now += 1.5
            return super().fetch_metadata()

    assert (
        Slow((0, GOOD)).wait(quiet=3).waited_seconds < 12
    ), "where each look takes long, none hangs"


def test_a_quick_look_that_found_something_is_no_measure_of_those_that_find_nothing():
    """One that is without a quorum of ZooKeeper, or of the controllers, asks for nothing else."""
    now, looks = [0.0], []

    def look(_client):
        looks.append(now[0])
        now[0] += 0.05 if len(looks) == 1 else 1.5
        return ["nobody serves"] if len(looks) == 1 else []

    def sleep(seconds):
        now[0] += seconds

    def failed(reasons, _seconds):
        return Problem("gate.waiting", "; ".join(reasons), "", ("kafka",))

    waited = until_quiet(
        lambda: World((0, GOOD)), look, lambda _client: [], failed, 5.0, 60.0, lambda: now[0], sleep
    )
    assert waited.seconds < 12


def test_while_replicas_join_the_gate_goes_on_waiting():
    """A replica of t0 and then one of t1 is in sync; each gives the rest as long again."""
    thin = ((1, 2, 3), (1, 2))
    world = World((0, cluster(thin, thin)), (6, cluster(FINE, thin)), (12, GOOD))
    assert 12 <= world.wait(seconds=8).waited_seconds < 13
    with pytest.raises(AdminError, match="gate.waiting.*waited 14 s"):
        World((0, cluster(thin, thin)), (6, cluster(FINE, thin))).wait(seconds=8)


def test_settings_are_read_once_and_once_more_at_the_end():
    world = World((0, THIN), (5, GOOD))
    polls = world.wait().polls
    assert polls > 10 and world.configs_read == ["t0", "t1"] * 2


def test_a_higher_minimum_is_seen_at_the_end():
    """Somebody has raised it meanwhile: three of three."""
    with pytest.raises(AdminError, match=r"gate.cannot_pass.*t1-0 \(3 replicas"):
        World((0, GOOD), minimums=((0, {}), (2, {"t1": "3"}))).wait(quiet=3)


def test_what_can_never_pass_is_refused_at_once():
    world = World((0, SINGLE))
    with pytest.raises(AdminError, match="gate.cannot_pass") as caught:
        world.wait(seconds=300)
    assert world.now == 0 and caught.value.details["gate"]["verdict"] == CANNOT_PASS
    assert world.wait(accepted=["t0"]).verdict.verdict == GO


def test_a_topic_that_vanishes_before_the_second_look_refuses_nothing():
    class Vanishing(World):
        looks = 0

        def fetch_metadata(self):
            self.looks += 1
            return SINGLE if self.looks == 1 else GOOD

    assert Vanishing((0, GOOD)).wait().verdict.verdict == GO


def test_topics_that_come_and_go_refuse_nothing():
    """Each has one replica and is there for a second; none for as long as the gate has to be open."""
    first, second = (cluster(((1,), (1,)), FINE, names=[name, "t"]) for name in ("a", "b"))
    states = ((0, first), (1, second), (2, GOOD), (3, first), (4, GOOD))
    assert 7 <= World(*states).wait(quiet=3).waited_seconds < 8
    assert World(*states).look_once().verdict == GO
    stays = World((0, first))
    with pytest.raises(AdminError, match=r"gate.cannot_pass.*a-0 \(1 replica"):
        stays.wait(quiet=3)
    assert 3 <= stays.now < 4
    stays.now = 0.0
    found = stays.look_once()
    assert found.verdict == CANNOT_PASS and found.topics == {"a"} and 3 <= stays.now < 4


def test_topics_that_are_made_all_the_time_have_a_remedy():
    """There is always one, and never the same: no look finds the broker to be spared."""
    states = [
        (second, cluster(((1,), (1,)), FINE, names=[f"s{second}", "t"])) for second in range(99)
    ]
    with pytest.raises(
        AdminError, match=r"gate.waiting.*not for long yet.*kafka_accept_unavailable=all"
    ):
        World(*states).wait(quiet=3, seconds=20)
    found = World(*states).look_once()
    assert (found.verdict, found.too_few_replicas, found.topics) == (WAIT, (), frozenset())


def test_a_topic_without_settings_is_looked_at_again():
    """It was deleted between metadata and settings: no reason to begin the quiet time anew."""

    class Deleting(World):
        looks = 0

        def fetch_metadata(self):
            self.looks += 1
            return cluster(FINE, FINE, names=["t0", "brief"]) if self.looks % 2 else cluster(FINE)

    passed = Deleting((0, GOOD), minimums=((0, {"brief": "gone"}),)).wait(quiet=3)
    assert 3 <= passed.waited_seconds <= 4


def test_the_deadline_names_what_blocks():
    with pytest.raises(AdminError, match=r"gate.waiting\] broker 1: waited 5 s.*t0-0 \(1 of 2\)"):
        World((0, THIN)).wait(seconds=5)
    with pytest.raises(AdminError, match="good for"):
        World((0, THIN), (4, GOOD)).wait(seconds=5, quiet=9)


def test_what_is_offline_for_good_has_a_remedy():
    """Its only replica was on broker 9, and that one does not come back."""
    gone = cluster(((9,), (9,), NO_LEADER), FINE)
    with pytest.raises(
        AdminError, match="offline: t0-0.*until its topic is deleted, or the broker"
    ):
        World((0, gone)).wait(seconds=5)
    with pytest.raises(AdminError) as caught:
        World((0, THIN)).wait(seconds=5)
    assert "deleted" not in str(caught.value)


def test_a_reassignment_is_waited_for():
    world = World((0, GOOD), moving=((0, [("t1", 0)]), (9, ())))
    assert 9 <= world.wait().waited_seconds < 10
    assert any("being reassigned: t1-0" in line for line in world.log)
    with pytest.raises(
        AdminError, match=r"t1-0\. .*cancelled by playbooks/scale_out.yml -e cancel"
    ):
        World((0, GOOD), moving=((0, [("t1", 0)]),)).wait(seconds=5)
    with pytest.raises(AdminError) as caught:
        World((0, THIN)).wait(seconds=5)
    assert "cancel" not in str(caught.value)


@pytest.mark.parametrize(
    "view, words",
    [
        (THIN, "broker 2 still sees: 1 partition is below"),
        (None, "broker 2 is registered but does not answer"),
        (replace(GOOD, controller=3), "disagree about the controller: 1, 3"),
        (cluster(brokers=()), "broker 2 still sees: broker 1: it is not registered"),
    ],
)
def test_another_broker_that_sees_otherwise_is_waited_for(view, words):
    assert World((0, GOOD), views={2: [view] * 3}).wait().polls == 4
    with pytest.raises(AdminError, match=words):
        World((0, GOOD), views={2: [view] * 300}).wait(seconds=5)


def test_one_broker_that_cannot_be_seen_by_us_does_not_keep_a_sick_one_from_its_cure():
    alone = ((1, 2, 3), (2, 3))
    world = World((0, cluster(alone, alone, controller=None)), views={2: [None] * 9})
    assert world.wait().polls == 1


def no_answer():
    return AdminError(Problem("cluster.read", "the controller does not answer", "wait", ("x",)))


def test_the_controller_that_shall_restart_need_not_tell_of_reassignments():
    assert World((0, GOOD), moving=((0, no_answer()),)).wait(broker=1).verdict.verdict == GO
    with pytest.raises(AdminError, match="the controller does not answer"):
        World((0, GOOD), moving=((0, no_answer()),)).wait(broker=2, seconds=5)


def test_a_sick_broker_need_not_wait_for_a_controller_that_does_not_tell():
    alone = ((1, 2, 3), (2, 3))
    world = World((0, cluster(alone, alone, controller=2)), moving=((0, no_answer()),))
    assert world.wait(broker=1).polls == 1


# Broker 1 has it alone, two must be in sync; 2 and 3 are there and in sync with nobody.
SHORT = ((1, 2, 3), (1,))
BEHIND = cluster(SHORT, SHORT)
KEY = ("t0", 0)


def test_a_broker_that_copies_what_lacks_replicas_is_not_taken_for_sick():
    """It would bring the partitions back: writes stand still until then, and would for longer."""
    world = World((0, BEHIND), (40, GOOD))
    world.sizes = lambda now: {KEY: int(now) * 100, ("t1", 0): 7}
    passed = world.wait(broker=2)
    assert 40 <= passed.waited_seconds < 41 and not passed.verdict.mending
    words = "2 partitions are below min.insync.replicas in sync, and broker 2 copies them: t0-0 (1 of 2)"
    assert any(words in line for line in world.log), world.log
    assert all(keys == [KEY, ("t1", 0)] and broker == 2 for _at, broker, keys in world.sizes_asked)
    assert len(world.sizes_asked) <= 42, "once a second"
    with pytest.raises(AdminError, match="gate.waiting.*broker 2 copies them"):
        endless = World((0, BEHIND))
        endless.sizes = world.sizes
        endless.wait(broker=2)


@pytest.mark.parametrize(
    "sizes, seconds",
    [
        (lambda now: {KEY: 500}, 10),
        # retention goes on deleting
        (lambda now: {KEY: 500 - int(now)}, 10),
        # it lets nobody in, or has the replicas in a directory that has failed
        (lambda now: None, 10),
        (lambda now: {}, 10),
        # it copies for a while, with gaps, and then no more: somebody has changed its password
        (lambda now: {KEY: min(int(now) // 8, 2)}, 26),
    ],
)
def test_a_broker_of_which_nothing_grows_is_mended(sizes, seconds):
    """After a wrong password on two of three brokers, correcting it must be the whole cure."""
    world = World((0, BEHIND))
    world.sizes = sizes
    passed = world.wait(broker=2, quiet=3)
    assert passed.verdict.mending and seconds + 3 <= passed.waited_seconds < seconds + 5


# Broker 3 is in sync for t1.
PARTLY = cluster(((1, 2, 3), (1,)), FINE)


def test_a_broker_that_works_and_does_not_answer_is_waited_for():
    """It has so much to copy that it answers late: nobody knows that it copies nothing."""
    world = World((0, PARTLY))
    world.sizes = lambda now: None if now < 20 else {KEY: 5}
    passed = world.wait(broker=3)
    assert 29 <= passed.waited_seconds <= 32
    assert any("broker 3 does not say whether it copies them: t0-0" in each for each in world.log)
    assert any("broker 3 may be copying them" in each for each in world.log)
    silent = World((0, PARTLY))
    silent.sizes = lambda now: None
    with pytest.raises(AdminError) as caught:
        silent.wait(broker=3)
    said = str(caught.value)
    assert "Describe on the cluster" in said and "add `-e kafka_accept_unavailable=t0`" in said
    assert silent.wait(broker=3, accepted=["t0"]).verdict.verdict == GO


def test_what_falls_behind_again_has_its_own_time():
    """What was once too slow says nothing of what the broker lacks half a minute later."""
    world = World((0, PARTLY), (5, cluster(FINE, FINE)), (12, PARTLY))
    world.sizes = lambda now: {KEY: 5}
    assert 31 <= world.wait(broker=3, quiet=9).waited_seconds <= 33


@pytest.mark.parametrize("lost", [((1, 3), (1,)), ((1, 2, 3), (1, 2))])
def test_a_broker_with_a_failed_log_directory_may_restart_which_is_the_cure(lost):
    """It is in sync for all else. Nothing grows in that directory, and the broker does not even tell a size."""
    state = cluster(lost, FINE)
    minimums = ((0, {"t0": str(len(lost[0]))}),)
    failed = {3: [Directory("/disk/a", {}, True, 9, 9**9), Directory("/disk/b", {}, False)]}
    world = World((0, state), minimums=minimums)
    world.disks = ((0, failed),)
    passed = world.wait(broker=3, quiet=3)
    assert 13 <= passed.waited_seconds < 15 and not passed.verdict.mending
    assert any("broker 3 may be copying them: t0-0" in line for line in world.log), world.log
    consented = World((0, state), minimums=minimums)
    assert consented.wait(broker=3, accepted=["t0"]).waited_seconds == 0
    # the others wait for it, as long as it is not mended
    with pytest.raises(AdminError, match="gate.(waiting|cannot_pass)"):
        World((0, state), minimums=minimums).wait(broker=1, seconds=20)


def test_a_broker_that_catches_up_for_a_part_is_waited_for():
    world = World((0, cluster(((1, 2, 3), (1,)), FINE)), (40, GOOD))
    world.sizes = lambda now: {KEY: int(now) * 100}
    passed = world.wait(broker=3)
    assert 40 <= passed.waited_seconds < 41
    assert any("broker 3 copies them: t0-0 (1 of 2)" in line for line in world.log)


@pytest.mark.parametrize(
    "states, minimum, accepted",
    [
        # the others have enough without it
        ([((1, 2, 3), (1, 3))] * 2, "2", ()),
        ([SHORT] * 2, "1", ()),
        # with it there would not be enough either
        ([SHORT] * 2, "4", ()),
        # nobody leads, so that nobody can copy
        ([((1, 2, 3), (1,), NO_LEADER)] * 2, "2", ()),
        ([SHORT] * 2, "2", ["t0,t1"]),
    ],
)
def test_what_a_sick_broker_could_not_bring_back_it_need_not_copy(states, minimum, accepted):
    minimums = ((0, {"t0": minimum, "t1": minimum}),)
    world = World((0, cluster(*states)), minimums=minimums)
    assert world.wait(broker=2, accepted=accepted).waited_seconds == 0
    assert world.sizes_asked == []


def test_a_plan_tells_that_it_would_be_waited_for():
    found = World((0, BEHIND)).look_once(broker=2)
    assert found.verdict == GO and "it is waited for while it copies t0-0 (1 of 2)" in (
        gate.summary(found)
    )


def test_one_broker_alone_asks_nobody_else():
    only = cluster(((1,), (1,)), brokers=(1,))
    assert World((0, only)).wait(accepted=["all"], expected=(1,)).verdict.verdict == GO


def refused():
    return AdminError(Problem("connection.certificate", "certificate not trusted", "x", ("h:1",)))


def test_where_nobody_can_be_asked_only_consent_to_everything_helps():
    passed = World((0, refused())).wait(accepted=["all"], quiet=3)
    assert "certificate not trusted" in passed.verdict.mending and 3 <= passed.waited_seconds < 4
    with pytest.raises(AdminError, match="connection.certificate"):
        World((0, refused())).wait(accepted=["t0"])


@pytest.mark.parametrize("since", [0.5, 2.5])
def test_one_client_that_is_turned_away_does_not_open_the_gate(since):
    """Consent to many topics is printed as consent to all: a broker that is slow for a moment is asked again."""
    world = World((0, refused()), (since, THIN), (9, GOOD))
    passed = world.wait(accepted=["all"], quiet=3)
    assert passed.verdict.mending == "" and passed.polls > 10
    world = World((0, refused()), (since, SINGLE))
    keeper = Gatekeeper(Question((1,), ALL, EVERYTHING, quiet_seconds=3.0))
    found = keeper.look_once(lambda: world, lambda: world.now, world.sleep)
    assert found[1].mending == "" and not keeper.unsure


@pytest.mark.parametrize(
    "check", ["connection.settings", "connection.token", "connection.listener"]
)
def test_what_is_wrong_with_who_asks_opens_no_gate(check):
    wrong = AdminError(Problem(check, "wrong", "correct it", ("h:1",)))
    world = World((0, wrong))
    with pytest.raises(AdminError, match=check) as caught:
        world.wait(accepted=["all"])
    assert "kafka_accept_unavailable" not in with_way_out(caught.value).message
    keeper = Gatekeeper(Question((1,), ALL, EVERYTHING))
    with keeper.at_hand(lambda: world, lambda: world.now, world.sleep) as look:
        assert look() == ["h:1: wrong"], "right before the stop, too"
    assert "kafka_accept_unavailable=all" in with_way_out(refused()).message


# ---------------------------------------------------------------- the quorum of controllers


def in_kraft(*quorums, states=((0, GOOD),)):
    world = World(*states)
    world.quorums = quorums
    return world


def test_a_voter_that_the_quorum_needs_is_waited_for():
    world = in_kraft((0, quorum(100, 60000)), (9, quorum(100, 200)))
    assert 9 <= world.wait(voters=ALL).waited_seconds < 10
    assert any("1 of 3 voters keep up, and 2 are a majority: 3" in line for line in world.log)
    with pytest.raises(AdminError, match=r"gate.waiting\] broker 2: .*3 \(its last fetch was 60"):
        in_kraft((0, quorum(100, 60000))).wait(broker=2, voters=ALL, seconds=5)


def test_the_leader_of_the_quorum_is_the_controller_and_not_that_of_the_metadata():
    """Metadata name any broker, each view another one; and the broker that stops is not asked."""
    views = {2: [replace(GOOD, controller=2)], 3: [replace(GOOD, controller=3)]}
    told = [Replica(each, 9, 10**6 - 100, 10**6 - 100) for each in (1, 2)]
    world = in_kraft((0, Quorum(3, 1, (*told, Replica(3, 9, -1, 10**6)))))
    world.views = views
    passed = world.wait(broker=1, voters=ALL)
    assert (passed.verdict.verdict, passed.polls) == (GO, 1), "the views do not disagree"
    assert world.keeper.controller == 3 and len(world.asked_at) == 2


def test_a_quorum_without_a_leader_is_waited_for():
    with pytest.raises(AdminError, match="gate.waiting.*the quorum of controllers has no leader"):
        in_kraft((0, Quorum())).wait(voters=ALL, seconds=5)
    silent = AdminError(Problem("cluster.read", "no answer", "wait", ("h:1",)))
    with pytest.raises(AdminError, match="gate.waiting.*no answer"):
        in_kraft((0, silent)).wait(voters=ALL, seconds=5)


def test_other_voters_than_those_of_the_inventory_are_refused_at_once():
    world = in_kraft((0, quorum(100)))
    with pytest.raises(AdminError, match=r"gate.other_voters\] broker 2: .* are 1, 2, and the"):
        world.wait(broker=2, voters=ALL, seconds=300)
    assert world.now == 0


def test_a_sick_broker_with_a_vote_that_counts_is_held_back_all_the_same():
    """In sync with nobody, it may stop for the partitions' sake; not for the quorum's."""
    alone = cluster(((1, 2, 3), (2, 3)), ((1, 3, 2), (3, 2)))
    assert in_kraft((0, quorum(100, 200)), states=((0, alone),)).wait(voters=ALL).verdict.mending
    with pytest.raises(AdminError, match="voters keep up"):
        world = in_kraft((0, quorum(100, 60000)), states=((0, alone),))
        world.wait(voters=ALL, seconds=5)


def test_the_only_voter_may_stop_and_it_is_said():
    world = in_kraft((0, quorum()))
    assert world.wait(voters=(1,)).verdict.verdict == GO
    assert "it is the only voter" in world.keeper.alone
    assert in_kraft((0, quorum())).wait(broker=2, voters=(1,)).verdict.verdict == GO


def test_of_a_controller_that_is_no_broker_the_quorum_alone_decides():
    """No broker of its id is registered, and that is no sickness; partitions out of sync hold nobody back."""
    voters = [
        Replica(101, 9, -1, 10**6),
        *(Replica(each, 9, 999_900, 999_900) for each in (102, 103)),
    ]
    dead = replace(voters[2], fetched=0, caught_up=0)
    world = in_kraft((0, Quorum(101, 1, tuple(voters))), states=((0, THIN),))
    passed = world.wait(broker=102, voters=(101, 102, 103))
    assert passed.verdict.verdict == GO and world.keeper.controller == 101
    assert gate.summary(passed.verdict) == "controller 102 may stop now"
    world = in_kraft((0, Quorum(101, 1, (*voters[:2], dead))))
    with pytest.raises(AdminError, match="gate.waiting.*1 of 3 voters keep up"):
        world.wait(broker=102, voters=(101, 102, 103), seconds=5)


def test_in_zookeeper_mode_nobody_asks_for_a_quorum():
    assert in_kraft().wait().verdict.verdict == GO


def test_a_log_directory_that_failed_is_named_with_the_broker_and_what_to_do():
    """Not at once: most brokers that are behind are just catching up. Then it is said while it waits, too."""
    world = World((0, cluster(((1, 2, 3), (1, 2)))))
    failed = {3: [Directory("/disk/a", {}, True, 9, 9**9), Directory("/disk/b", {}, False)]}
    world.disks = ((0, failed),)
    with pytest.raises(AdminError) as caught:
        world.wait(seconds=20)
    message = caught.value.message
    assert "gate.waiting" in message and "broker 3: its log directory /disk/b is offline" in message
    assert "/disk/a" not in message
    assert "broker 3: make room on the disk or repair it, and restart this broker" in message
    assert "replace_broker.yml -e broker=ID" in message
    assert [brokers for brokers, _places in world.disks_of] == [[3], [3]]
    assert "broker 3: its log directory /disk/b is offline" in world.log[-1]
    world = World((0, THIN), (4, GOOD))
    world.wait()
    assert not world.disks_of, "it had only to catch up"


def test_in_one_look_log_directories_are_asked_for_where_somebody_has_to_wait():
    for state, asked in ((THIN, [[3]]), (GOOD, [])):
        world = World((0, state))
        world.look_once()
        assert [brokers for brokers, _places in world.disks_of] == asked


class Slow(World):
    """Settings of topics take ten seconds to read; counts metadata."""

    reads = 0

    def fetch_metadata(self):
        self.reads += 1
        return super().fetch_metadata()

    def fetch_setting(self, names, key, places):
        self.now += 10
        return super().fetch_setting(names, key, places)


def test_one_look_is_judged_by_metadata_that_are_younger_than_the_settings():
    """Replica 3 leaves while settings are read. The answer may be the last before a stop."""
    world = Slow((0, GOOD), (2, THIN))
    found = world.look_once(quiet=0.0)
    assert found.verdict == WAIT and "t0-0 (1 of 2)" in "; ".join(found.reasons)
    assert (world.reads, world.now) == (2, 10), "settings are not read twice"


def test_one_look_that_reads_no_settings_is_not_repeated():
    """None where ZooKeeper has no quorum: its servers may be slow to say so."""
    asked = []

    def ask(servers):
        asked.append(len(servers))
        state = {"serving": False, "role": None, "error": "it runs, but has no quorum"}
        return [{**server, **state, "runs": True} for server in servers]

    servers = ({"id": 1, "address": "z", "port": 2181},)
    world = World((0, GOOD))
    keeper = Gatekeeper(Question((1,), ALL, zookeeper=servers), ask)
    assert keeper.look_once(lambda: world, lambda: world.now, world.sleep)[1].verdict == WAIT
    assert asked == [1]


# ---------------------------------------------------------------- right before the stop


def stopped(world, *states, accepted=(), seconds=60.0):
    """Stop broker 1, with a module that takes two seconds until it is about to; `states`: from when on what is so.

    Returns when it was stopped, and what each last look said.
    """
    world.states = states
    said = []

    def attempt(at_hand):
        with at_hand() as look:
            world.sleep(2)
            said.append(look())
        return world.now, said[-1]

    question = Question((1,), ALL, parse_accepted(accepted), 3.0, seconds)
    clock, log = (lambda: world.now), world.log.append
    return until_stopped(question, lambda: world, attempt, log, clock, world.sleep), said


def test_right_before_the_stop_the_gate_is_asked_once_more():
    assert stopped(World(), (0, GOOD)) == (2, [[]])


def test_what_changes_behind_the_gate_is_waited_for_as_the_gate_does():
    """Good again after seven seconds, quiet for three more, and then a module takes its two."""
    world = World()
    when, said = stopped(world, (0, GOOD), (1, THIN), (7, GOOD))
    assert 12 <= when < 13 and len(said) == 2 and not said[1]
    assert "below min.insync.replicas in sync without broker 1: t0-0 (1 of 2)" in said[0][0]
    assert world.log[0] == f"it may not stop any more: {said[0][0]}"


def test_what_stays_changed_ends_with_the_words_of_the_gate():
    with pytest.raises(AdminError, match="gate.waiting.*broker 1.*waited 5 s.*t0-0.*not stopped"):
        stopped(World(), (0, GOOD), (1, THIN), seconds=5)
    with pytest.raises(AdminError, match="gate.cannot_pass.*broker 1.*kafka_accept_unavailable=t0"):
        stopped(World(), (0, GOOD), (1, SINGLE))


def test_what_changes_each_time_at_that_moment_ends_at_the_deadline():
    """Good whenever the gate looks, and never when the module asks."""
    flapping = [(each, THIN if each % 6 == 2 else GOOD) for each in range(100)]
    with pytest.raises(AdminError, match="gate.waiting.*waited 20 s"):
        stopped(World(), *flapping, seconds=20)


def test_nobody_answers_right_before_the_stop():
    """That is a reason, too, which the gate waits for; with consent to everything it is none."""
    lost = AdminError(Problem("cluster.read", "no answer", "", ("h:9092",)), reachable=False)
    when, said = stopped(World(), (0, GOOD), (1, lost), (3, GOOD))
    assert 8 <= when < 9 and said == [["h:9092: no answer"], []]
    when, said = stopped(World(), (0, lost), (3, GOOD))
    assert 8 <= when < 9 and said == [["h:9092: no answer"], []]
    nobody = AdminError(
        Problem("connection.unreachable", "no answer", "", ("h:9092",)), reachable=False
    )
    when, said = stopped(World(), (0, nobody), accepted=["all"])
    assert 5 <= when < 6 and said == [[]], "for the quiet time"


def lines_of(call):
    """How many lines of Python a call runs: what it costs, whatever else the machine does."""
    count = 0

    def trace(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("brokers, more", [(10, 10), (10, 40)])
def test_what_a_verdict_costs_grows_as_the_partitions_do(brokers, more):
    """All brokers at once, as before a roll: neither their number nor that of the partitions counts twice."""

    def cost(brokers, partitions):
        replicas = [
            tuple((number + step) % brokers + 1 for step in range(3))
            for number in range(partitions)
        ]
        # each fiftieth has lost a follower
        states = [(each, each if number % 50 else each[:2]) for number, each in enumerate(replicas)]
        everybody = tuple(range(1, brokers + 1))
        state = cluster(*states, brokers=everybody)
        return lines_of(lambda: judge_each(state, everybody, least(state), everybody))

    few, many = cost(brokers, 500), cost(more, 2000)
    assert few > 500 and many / few < 5, (few, many)

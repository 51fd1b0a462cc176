# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""May a broker be stopped now? Pure: no I/O, no clock. Private to this collection.

The rule, for each partition with a replica on broker b, internal topics too, where m is the
partition's effective min.insync.replicas:

| state                                              | verdict                                    |
|----------------------------------------------------|--------------------------------------------|
| at least m replicas are in sync without b          | go                                         |
| b in sync, fewer than m replicas on other brokers  | cannot pass; accepted: go once the others  |
|                                                    | are in sync                                |
| b in sync, otherwise                               | wait                                       |
| b out of sync, fewer than m in sync                | wait while b's replicas grow (`Growth`):   |
|                                                    | it may be the one that catches up          |
| b out of sync, otherwise                           | go: its stop takes nothing away            |

Besides, for the whole cluster: a partition is offline, there is no controller, another broker is
missing, a reassignment runs: wait. In KRaft mode also while the quorum cannot spare b, by the rule of
`admin/quorum.py`.

The gate protects the *other* replicas and never waits for the broker that is about to be mended: one
that is not registered, or that is alone (with a wrong password, certificate or listener it is up and
registered, and in no ISR together with another broker). Nothing of the cluster holds such a broker
back, and nothing that it has to catch up with. Others have lost only a part: the replicas in a log directory
that has failed follow nobody until the broker restarts. One that merely catches up looks the same. Where it may
be what brings a partition back to its minimum (`behind`), it is looked whether its replicas grow
(`Growth`), and it is waited for as long as they do, or as it does not say so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import (
    Any,
    Collection,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.four_letter_words import (
    NO_QUORUM,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.health import (
    isolated as isolated_brokers,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.health import (
    offline as offline_partitions,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.health import (
    own_setting,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    ConfigEntry,
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quorum import (
    NO_LEADER,
    NOT_TOLD,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

GO, WAIT, CANNOT_PASS = "go", "wait", "cannot_pass"
MIN_INSYNC = "min.insync.replicas"
EVERYTHING = "all"
OPTION = "-e kafka_accept_unavailable="
# No name of a topic has a colon.
ONE_TOPIC = "topic:"
OFFLINE = " offline: "
MOVED = " being reassigned: "
PASSING = " without a spare replica, not for long yet: "
MAYBE = "may be copying them"
UNSAID = "does not say whether it copies them"
NO_BROKER = "it is a controller and no broker"
# So many partitions are named in a message, and so many topics in an option to copy.
SHOWN = 10
SHOWN_TOPICS = 30
# For so long no replica that lacks something has grown when the broker counts as sick. Its
# fetchers ask at least each second, also after an error (replica.fetch.backoff.ms).
GROWTH_SECONDS = 10.0
# So often is it asked for their sizes.
SIZES_SECONDS = 1.0
# topic, partition, and what is the matter with it
Told = Tuple[str, int, str]


@dataclass(frozen=True)
class Accepted:
    """The topics that may be unavailable while a broker restarts."""

    names: FrozenSet[str] = frozenset()
    everything: bool = False

    def covers(self, topic: str) -> bool:
        """Whether somebody has consented for this topic."""
        return self.everything or topic in self.names


NOTHING = Accepted()


@dataclass(frozen=True)
class Verdict:
    """What is decided of one broker.

    `verdict`: GO, WAIT or CANNOT_PASS; `reasons`: sentences, what it waits for; `too_few_replicas`:
    partitions that no waiting helps, with why; `topics`: their topics; `consent`: topics for which consent would
    end the waiting; `partitions`: how many have a replica on the broker; `mending`: why nothing holds
    it back, "" for a broker that works; `behind`: partitions below their minimum, of which it is out of
    sync, and which it would bring back, if it merely catches up.
    """

    broker: int
    verdict: str
    reasons: Tuple[str, ...] = ()
    too_few_replicas: Tuple[Told, ...] = ()
    topics: FrozenSet[str] = frozenset()
    consent: FrozenSet[str] = frozenset()
    partitions: int = 0
    mending: str = ""
    behind: Tuple[Told, ...] = ()

    def to_dict(self) -> Dict[str, Any]:
        """As returned to the playbook."""
        return {
            "broker": self.broker,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "cannot_pass": [
                {"topic": name, "partition": number, "reason": why}
                for name, number, why in self.too_few_replicas
            ],
            "partitions": self.partitions,
            "mending": self.mending,
        }


def parse_accepted(values: Optional[Iterable[str]]) -> Accepted:
    """The consent of an option: names of topics or `all`, each text one or several with commas.

    A topic that is itself called `all` is `topic:all`, as `option` writes it; any other may be, too.
    """
    texts = {name.strip() for text in values or () for name in str(text).split(",")} - {""}
    names = frozenset(text.removeprefix(ONE_TOPIC) for text in texts - {EVERYTHING})
    return Accepted(names, EVERYTHING in texts)


def minimums_of(
    configs: Mapping[str, Mapping[str, ConfigEntry]], defaults: Iterable[int] = ()
) -> Dict[str, int]:
    """Topic to its effective min.insync.replicas.

    `configs`: effective settings by topic, as one broker tells them; `defaults`: what single brokers
    have as default. It is the leader that enforces the setting, and while a new default is rolled out
    leaders differ: for a topic without a value of its own the highest one counts.
    """
    highest = max(defaults, default=0)
    found = {}
    for name, entries in configs.items():
        entry = entries.get(MIN_INSYNC)
        if entry is None or entry.value is None:
            continue
        own = own_setting(Topic(name, (), entries), MIN_INSYNC)
        found[name] = int(entry.value) if own else max(int(entry.value), highest)
    return found


def judge(
    snapshot: Snapshot,
    broker: int,
    minimums: Mapping[str, int],
    expected: Collection[int] = (),
    accepted: Accepted = NOTHING,
    reassigning: Collection[Tuple[str, int]] = (),
) -> Verdict:
    """The verdict of one broker; see judge_each."""
    return judge_each(snapshot, (broker,), minimums, expected, accepted, reassigning)[broker]


def judge_each(
    snapshot: Snapshot,
    brokers: Collection[int],
    minimums: Mapping[str, int],
    expected: Collection[int] = (),
    accepted: Accepted = NOTHING,
    reassigning: Collection[Tuple[str, int]] = (),
) -> Dict[int, Verdict]:
    """Broker id to Verdict, each as if it alone were stopped now.

    `minimums`: topic -> effective min.insync.replicas (`minimums_of`); a topic that is not in it is
    not known yet, and waited for; `expected`: ids of all brokers of the cluster, of which those that hold
    replicas and are not registered are waited for; `reassigning`:
    partitions that are being moved. One pass over the partitions, however many brokers.
    """
    alive = {each.id for each in snapshot.brokers}
    offline, isolated = offline_partitions(snapshot), isolated_brokers(snapshot)
    files = {broker: _File(broker, broker in alive, broker in isolated) for broker in brokers}
    holders = set()
    for name, topic in snapshot.topics.items():
        least, consented = minimums.get(name), accepted.covers(name)
        for part in topic.partitions:
            holders.update(part.replicas)
            for broker in part.replicas:
                if broker in files:
                    files[broker].add(name, part, least, consented)
    wide = [] if snapshot.controller in alive else ["there is no controller"]
    if reassigning:
        moved = [(name, number, "") for name, number in reassigning]
        wide.append(f"{_count(moved)}{MOVED}{_some(moved)}")
    # One without replicas, such as a broker that is still to be deployed, spares nobody.
    missing = sorted((set(expected) - alive) & holders)
    return {broker: each.verdict(wide, missing, offline) for broker, each in files.items()}


class _File:
    """What is gathered about one broker, partition by partition."""

    def __init__(self, broker: int, registered: bool, isolated: bool):
        self.broker = broker
        self.registered = registered
        self.isolated = isolated
        self.partitions = 0
        self.too_few_replicas: List[Told] = []
        self.below: List[Told] = []
        self.incomplete: List[Told] = []
        self.only_here: List[Told] = []
        self.unknown: List[Told] = []
        self.behind: List[Told] = []

    def add(self, name: str, part: Partition, least: Optional[int], consented: bool) -> None:
        """Take one partition with a replica on this broker into account."""
        self.partitions += 1
        if not self.registered:
            return
        inside = self.broker in part.isr
        others, elsewhere = len(part.isr) - inside, len(part.replicas) - 1
        if part.leader is None and inside and not others:
            return  # nobody uses it now, and nobody but this broker can bring it back
        if least is None:
            if inside or not self.isolated:
                self.unknown.append((name, part.id, ""))
        elif others >= least:
            return
        elif not inside:
            # Catching up does not help where there are not so many replicas at all. Nobody can copy what nobody leads.
            if len(part.replicas) >= least and part.leader is not None and not consented:
                self.behind.append((name, part.id, f"{others} of {least}"))
        elif elsewhere < least:
            if not consented:
                self.too_few_replicas.append((name, part.id, _why_too_few(part, least)))
            elif others < elsewhere and not self.isolated:
                self.incomplete.append((name, part.id, f"{others} of {elsewhere} others"))
        elif not self.isolated:
            self.below.append((name, part.id, f"{others} of {least}"))
        elif not consented:
            self.only_here.append((name, part.id, ""))

    def verdict(
        self,
        wide: Sequence[str],
        missing: Sequence[int],
        offline: Sequence[Tuple[str, Partition]],
    ) -> Verdict:
        """The verdict, with what holds for the whole cluster."""
        reasons = []
        if self.below:
            reasons.append(
                f"{_count(self.below)} below {MIN_INSYNC} in sync without broker {self.broker}:"
                f" {_some(self.below)}"
            )
        if self.incomplete:
            reasons.append(
                f"{_count(self.incomplete)} accepted, but not in sync on all other brokers yet:"
                f" {_some(self.incomplete)}"
            )
        if self.only_here:
            reasons.append(
                f"{_count(self.only_here)} in sync on broker {self.broker} alone, and no other"
                f" broker follows it: {_some(self.only_here)}"
            )
        if self.unknown:
            reasons.append(f"{_count(self.unknown)} of unknown settings: {_some(self.unknown)}")
        mending = ""
        if not self.registered:
            mending = "it is not registered"
        elif self.isolated:
            mending = "it is in sync with no other broker"
        else:
            # First: what is wrong with the partitions mostly follows from it, and takes many words.
            reasons = [*self._of_the_cluster(wide, missing, offline), *reasons]
        kind = CANNOT_PASS if self.too_few_replicas else WAIT if reasons else GO
        return Verdict(
            broker=self.broker,
            verdict=kind,
            reasons=tuple(reasons),
            too_few_replicas=tuple(sorted(self.too_few_replicas)),
            topics=frozenset(name for name, _number, _why in self.too_few_replicas),
            consent=frozenset(name for name, _number, _why in self.only_here),
            partitions=self.partitions,
            mending=mending,
            behind=tuple(sorted(self.behind)),
        )

    def _of_the_cluster(
        self,
        wide: Sequence[str],
        missing: Sequence[int],
        offline: Sequence[Tuple[str, Partition]],
    ) -> List[str]:
        reasons = []
        if missing:
            ids = ", ".join(map(str, missing))
            reasons.append(f"not registered: broker{'s' if len(missing) > 1 else ''} {ids}")
        reasons += wide
        # What only this broker can bring back does not keep it from being restarted.
        lost = [
            (name, part.id, "")
            for name, part in offline
            if set(part.isr) - {self.broker} or not part.isr
        ]
        if lost:
            reasons.append(f"{_count(lost)}{OFFLINE}{_some(lost)}")
        return reasons


def _why_too_few(part: Partition, least: int) -> str:
    count = len(part.replicas)
    if count == 1:
        return "1 replica"
    return f"{count} replicas, {MIN_INSYNC} {least}"


class Standing:
    """Which partitions no waiting helps have been so at every look for a while: topics come and go."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._since: Dict[Told, float] = {}

    def of(self, verdict: Verdict, now: float) -> Verdict:
        """The verdict of one more look; what has not been so for long enough is waited for."""
        self._since = {each: self._since.get(each, now) for each in verdict.too_few_replicas}
        stay = [each for each, since in self._since.items() if now - since >= self.seconds]
        passing = sorted(set(verdict.too_few_replicas) - set(stay))
        if not passing:
            return verdict
        return replace(
            verdict,
            verdict=CANNOT_PASS if stay else WAIT,
            reasons=(*verdict.reasons, f"{_count(passing)}{PASSING}{_some(passing)}"),
            too_few_replicas=tuple(sorted(stay)),
            topics=frozenset(name for name, _number, _why in stay),
        )


class Growth:
    """Whether a broker copies what it lacks: by the bytes of its replicas that are not in sync, over a while.

    Kafka tells nobody how far such a replica is. Its size does not grow with a wrong password, certificate or
    listener, since it gets nothing, and in a log directory that has failed it has none. A broker that works and does
    not answer is busy, perhaps with just that: it is waited for.
    """

    def __init__(self, seconds: float = GROWTH_SECONDS):
        self.seconds = seconds
        self._forget()

    def _forget(self) -> None:
        self._known: Dict[Tuple[str, int], int] = {}
        self._asked: Optional[float] = None
        self._grew: Optional[float] = None
        self._does = MAYBE

    def is_due(self, now: float) -> bool:
        """Whether the broker is to be asked again."""
        return self._asked is None or now - self._asked >= SIZES_SECONDS

    def note(
        self, sizes: Optional[Mapping[Tuple[str, int], int]], now: float, sick: bool = False
    ) -> None:
        """Note bytes by partition, as the broker tells them; None where it does not answer. `sick`: it is in sync with
        nobody, and may not answer since it lets nobody in.
        """
        self._asked = now
        self._grew = now if self._grew is None else self._grew
        if sizes is None:
            if not sick:
                self._grew, self._does = now, UNSAID
            return
        if any(size > self._known.get(key, size) for key, size in sizes.items()):
            self._grew, self._does = now, "copies them"
        elif self._does == UNSAID:
            self._does = MAYBE
        self._known.update(sizes)

    def of(self, verdict: Verdict, now: float) -> Verdict:
        """The verdict of one more look: it waits while something grows, and until that can be told."""
        if not verdict.behind:
            self._forget()  # what falls behind later has its own time
        if self._grew is None or now - self._grew >= self.seconds:
            return verdict
        told = f"{_count(verdict.behind)} below {MIN_INSYNC} in sync, and broker {verdict.broker} {self._does}"
        return also_for(verdict, [f"{told}: {_some(verdict.behind)}"])


def also_for(verdict: Verdict, reasons: Sequence[str]) -> Verdict:
    """The verdict where something besides the partitions holds the broker back: nothing passes that waits.

    It holds for a broker that is to be mended, too: its vote counts while it is in sync with nobody.
    """
    if not reasons:
        return verdict
    kind = WAIT if verdict.verdict == GO else verdict.verdict
    return replace(verdict, verdict=kind, reasons=(*verdict.reasons, *reasons))


def of_controller(verdict: Verdict) -> Verdict:
    """The verdict of a controller that is not a broker: it holds no partition, and the quorum alone decides."""
    return replace(verdict, mending=NO_BROKER) if not verdict.partitions else verdict


# ---------------------------------------------------------------- for people


def other_voters(brokers: Sequence[int], others: str) -> Problem:
    """`gate.other_voters`: the quorum is not that of the inventory. `others`: how they differ."""
    return Problem(
        "gate.other_voters",
        f"{others}; which of them may be spared is not known. {_not_stopped(brokers)}",
        "make the group of controllers what the quorum is, or add and remove controllers with"
        " playbooks/scale_controllers.yml",
        tuple(f"broker {each}" for each in brokers),
    )


def refusal(verdicts: Iterable[Verdict], accepted: Accepted = NOTHING) -> Optional[Problem]:
    """`gate.cannot_pass` of all brokers that can never pass, None if there is none."""
    refused = [each for each in verdicts if each.verdict == CANNOT_PASS]
    if not refused:
        return None
    told = sorted({each for verdict in refused for each in verdict.too_few_replicas})
    topics = set().union(*(verdict.topics for verdict in refused))
    them = "one of them stops" if len(refused) > 1 else "it stops"
    return Problem(
        "gate.cannot_pass",
        f"while {them}, {_count(told, 'takes', 'take')} no writes with acks=all, or cannot be reached"
        f" at all, and waiting does not help: {_some(told)}. {_not_stopped(refused)}",
        "give the topics more replicas or a lower min.insync.replicas, or accept it for this run:"
        f" add `{option(topics, accepted)}`",
        tuple(f"broker {each.broker}" for each in refused),
    )


def waited_in_vain(verdict: Verdict, seconds: float, reasons: Sequence[str]) -> Problem:
    """`gate.waiting`: the deadline is over. `reasons`: what blocked at the last look."""
    without = any(NO_QUORUM in reason for reason in reasons)
    remedy = (
        "playbooks/start.yml starts the servers that are down; why others do not find each other is in"
        " their logs; then run it again, it goes on from here"
        if without
        else "see playbooks/status.yml: bring back what is missing (playbooks/start.yml starts what is"
        " down), let replicas catch up and reassignments end; then run it again, it goes on from here"
    )
    leaderless = [NO_LEADER in reason or NOT_TOLD in reason for reason in reasons]
    if any(leaderless):
        together = (
            "where all controllers run and none leads, no restart of one at a time brings a leader: run"
            " playbooks/stop.yml, then playbooks/site.yml, which starts what is down together, as the inventory has it"
        )
        remedy = (
            f"playbooks/start.yml starts the controllers that are down; {together}"
            if all(leaderless)
            else f"{remedy}; {together}"
        )
    if any(MOVED in reason for reason in reasons):
        remedy += (
            "; reassignments that must not go on, whoever began them, are cancelled by"
            " playbooks/scale_out.yml -e cancel=true"
        )
    if any(OFFLINE in reason for reason in reasons):
        remedy += (
            "; a partition whose only replicas were on a broker that is gone for good stays offline until its"
            " topic is deleted, or the broker replaced (playbooks/replace_broker.yml)"
        )
    if any(PASSING in reason for reason in reasons):
        remedy += (
            "; if topics with too few replicas are made all the time, accept that they may be"
            f" unavailable: add `{OPTION}{EVERYTHING}`"
        )
    if any(UNSAID in reason for reason in reasons):
        topics = {name for name, _number, _why in verdict.behind}
        remedy += (
            "; see that the user has Describe on the cluster, or no broker says it; if this one is not to be waited"
            f" for, add `{option(topics)}`"
        )
    if verdict.consent:
        remedy += (
            "; if no broker can follow this one before it restarts, accept that nobody reaches these"
            f" topics meanwhile: add `{option(verdict.consent)}`"
        )
    return Problem(
        "gate.waiting",
        f"waited {seconds:g} s, and it may not be stopped yet: {'; '.join(reasons)}. It was not stopped",
        remedy,
        (f"broker {verdict.broker}",),
    )


def option(topics: Collection[str], accepted: Accepted = NOTHING) -> str:
    """The option that accepts these topics, beside what is accepted already; to be copied."""
    names = sorted(
        f"{ONE_TOPIC}{name}" if name == EVERYTHING else name for name in {*topics, *accepted.names}
    )
    value = ",".join(names) if len(names) <= SHOWN_TOPICS else EVERYTHING
    return f"{OPTION}{value}"


def summary(verdict: Verdict) -> str:
    """One line about one broker: for check mode and plans."""
    told = {
        GO: "may stop now",
        WAIT: "may not stop yet",
        CANNOT_PASS: "may not be stopped",
    }[verdict.verdict]
    if verdict.mending == NO_BROKER:
        told = f"controller {verdict.broker} {told}"
        return f"{told}{': ' if verdict.reasons else ''}{'; '.join(verdict.reasons)}"
    held = f"{verdict.partitions} partition{'' if verdict.partitions == 1 else 's'}"
    why = list(verdict.reasons)
    if verdict.too_few_replicas:
        why.insert(
            0,
            f"{_count(verdict.too_few_replicas)} without a way past it: {_some(verdict.too_few_replicas)}",
        )
    if verdict.verdict == GO and verdict.mending:
        why.append(verdict.mending)
    if verdict.verdict == GO and verdict.behind:
        why.append(
            f"it is waited for while it copies {_some(verdict.behind)}, which would have enough in sync again"
        )
    return f"broker {verdict.broker} ({held}) {told}{': ' if why else ''}{'; '.join(why)}"


def _not_stopped(brokers: Sequence[Any]) -> str:
    """What holds in the middle of a roll, too, when others have had their turns."""
    return "None of them was stopped" if len(brokers) > 1 else "It was not stopped"


def _count(parts: Sequence[Told], one: str = "is", many: str = "are") -> str:
    return f"{len(parts)} partition{f' {one}' if len(parts) == 1 else f's {many}'}"


def _some(parts: Sequence[Told]) -> str:
    """The first SHOWN of them by name, and how many more."""
    texts = [
        f"{name}-{number}{f' ({why})' if why else ''}"
        for name, number, why in sorted(parts)[:SHOWN]
    ]
    more = len(parts) - SHOWN
    return ", ".join(texts) + (f", and {more} more" if more > 0 else "")

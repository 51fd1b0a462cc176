# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a cluster whether brokers may be stopped: reads, lets `gate` judge, waits.

Private to this collection. Clock and sleep are handed in. Nothing here changes anything. A look costs
a constant number of requests, whatever the number of partitions: metadata, reassignments, the
settings of topics that were not seen before, and in KRaft mode the quorum.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin import health
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin import quorum as controllers
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.four_letter_words import (
    Ask,
    states_of,
    without_quorum,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.reach import (
    CERTIFICATE,
    CREDENTIALS,
    PROTOCOL,
    UNREACHABLE,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.until_quiet import (
    POLL_SECONDS,
    FailedDirectories,
    told,
    until_quiet,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    FinalError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling import gate, last_look
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.gate import (
    Accepted,
    Verdict,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.last_look import (
    AtHand,
    Look,
    T,
)

if TYPE_CHECKING:
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.answers import (
        Configs,
    )
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
        KafkaClient,
    )
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Snapshot

# So often are metadata read again for a topic whose settings nobody has.
SETTLING = 3
# What may be wrong with all brokers, so that their restart is the cure. Settings that the library refuses, a token that
# the provider does not give and a wrong address are wrong with who asks.
NOBODY_LETS_IN = frozenset((CERTIFICATE, CREDENTIALS, PROTOCOL, UNREACHABLE))
# So many clients, one after another, have to be turned away before nobody is asked.
TURNED_AWAY = 3


@dataclass(frozen=True)
class Question:
    """Which brokers shall stop, each for itself; `expected`: ids of all brokers of the cluster.

    `voters`: ids of all voters of the quorum, none where the cluster has its metadata in ZooKeeper.
    `zookeeper`: its servers then, each {id, address, port}; none where they are not to be asked.
    """

    brokers: Tuple[int, ...]
    expected: Tuple[int, ...] = ()
    accepted: Accepted = gate.NOTHING
    quiet_seconds: float = 0.0
    wait_seconds: float = 300.0
    voters: Tuple[int, ...] = ()
    zookeeper: Tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Passed:
    """The verdict that opened the gate, and how long it took."""

    verdict: Verdict
    waited_seconds: float
    polls: int


class Gatekeeper:
    """Looks at a cluster with one client after another; remembers the settings of topics."""

    def __init__(self, question: Question, ask: Ask = states_of):
        self.question = question
        self._ask = ask
        # The server of ZooKeeper that did at the last look.
        self._serves: Sequence[Mapping[str, Any]] = ()
        # None of them answers here: behind a firewall each question would cost seconds.
        self._out_of_reach = False
        self.unsure: List[str] = []
        self.alone = ""  # that nothing changes in the cluster meanwhile, as there is one voter
        self.controller = -1  # as the last look saw it
        self.lagging: Optional[int] = None  # replicas out of sync, as the last look saw them
        self.directories = FailedDirectories()  # they may be why it has to wait
        self._seen: Optional[Snapshot] = None
        self._configs: Configs = {}
        self._defaults: Optional[Dict[int, str]] = None
        self._has_read = False  # settings, at the last look

    # ------------------------------------------------------------ one look

    def look(self, client: KafkaClient, anew: bool = False) -> Dict[int, Verdict]:
        """One look: broker id to Verdict. `anew`: settings of topics are read again, too."""
        self._has_read = False
        missing, certain = self._without_quorum()
        if certain:
            return self._held_by(missing)
        try:
            return self._look(client, anew)
        except AdminError as error:
            self._out_of_reach = False  # it may be why
            if error.final:
                raise
            # It may have gone since, and be why the question has hung.
            missing, certain = self._without_quorum()
            if certain:
                return self._held_by(missing)
            if missing:
                reason = f"{error.problem.reason}; {missing}"
                error.problem = replace(error.problem, reason=reason)
            raise

    def _held_by(self, missing: str) -> Dict[int, Verdict]:
        """The verdicts where ZooKeeper has no quorum.

        Who stops now cannot register again, and a question for settings would hang in a broker.
        """
        self._seen, self.controller, self.lagging = None, -1, None
        return {
            broker: gate.also_for(Verdict(broker, gate.GO), [missing])
            for broker in self.question.brokers
        }

    def _without_quorum(self) -> Tuple[str, bool]:
        """What `without_quorum` says of ZooKeeper; as long as one server serves, it alone is asked."""
        servers = self.question.zookeeper
        if not servers or self._out_of_reach:
            return "", False
        if self._serves and not without_quorum(self._ask(self._serves))[0]:
            return "", False
        states = self._ask(servers)
        self._serves = [
            server for server, state in zip(servers, states) if not without_quorum([state])[0]
        ][:1]
        self._out_of_reach = not any(state["runs"] for state in states)
        return without_quorum(states)

    def _look(self, client: KafkaClient, anew: bool) -> Dict[int, Verdict]:
        if anew:
            self._configs, self._defaults = {}, None
        snapshot = self._snapshot(client)
        moving, unknown = self._moving(client, snapshot)
        for _attempt in range(SETTLING):
            if self._know(client, snapshot):
                break
            # A topic was deleted between two answers, or not all brokers know it yet.
            snapshot = self._snapshot(client)
        self._seen = snapshot
        verdicts = self._judged(snapshot, moving)
        self.lagging = sum(
            len(set(part.replicas) - set(part.isr))
            for _name, part in health.under_replicated(snapshot)
            if not set(self.question.brokers).isdisjoint(part.replicas)
        )
        if self.question.voters:
            verdicts = self._with_quorum(client, snapshot, verdicts)
        if unknown and any(not each.mending for each in verdicts.values()):
            # It matters, unless the controller is who shall be restarted, perhaps for not answering.
            # In KRaft mode any broker knows.
            if self.question.voters or snapshot.controller not in self.question.brokers:
                raise unknown
            self.unsure = [
                f"broker {snapshot.controller} is the controller and does not say whether"
                f" partitions are being reassigned ({unknown.problem.reason})"
            ]
        return verdicts

    def _snapshot(self, client: KafkaClient) -> Snapshot:
        """Metadata of a broker that is not the one that shall stop: it may know nothing any more."""
        own = self.question.brokers
        if len(own) == 1 and set(self.question.expected) - set(own):
            found = client.fetch_view_of_others(own[0])
        else:
            found = client.fetch_metadata()
        self.controller = -1 if found.controller is None else found.controller
        return found

    def _moving(
        self, client: KafkaClient, snapshot: Snapshot
    ) -> Tuple[List[Tuple[str, int]], Optional[AdminError]]:
        """(partitions that are being reassigned, why that is not known); only the controller knows."""
        self.unsure = []
        places = self._places(snapshot)
        if not places:
            return [], None
        try:
            return client.fetch_moving_partitions(places), None
        except AdminError as error:
            if error.final:
                raise
            return [], error

    def _places(self, snapshot: Snapshot) -> List[Tuple[str, int]]:
        """Where kafka-python asks: at the controller; in KRaft mode at any broker that does not stop."""
        brokers = [each for each in snapshot.brokers if each.id == snapshot.controller]
        if self.question.voters:
            own = self.question.brokers if len(self.question.brokers) == 1 else ()
            brokers = [each for each in snapshot.brokers if each.id not in own]
            brokers = brokers or list(snapshot.brokers)
        return [(each.host, each.port) for each in brokers]

    def _with_quorum(
        self, client: KafkaClient, snapshot: Snapshot, verdicts: Dict[int, Verdict]
    ) -> Dict[int, Verdict]:
        """The verdicts, with what the quorum has to say; the active controller as it tells it.

        A leader that does not answer holds everybody back. FinalError where the voters are not those of
        the question: waiting brings nobody.
        """
        try:
            found = client.fetch_quorum(self._places(snapshot))
        except AdminError as error:
            if error.final:
                raise
            self.controller = -1
            why = [f"{controllers.NOT_TOLD} ({error.problem.reason})"]
            return {broker: gate.also_for(each, why) for broker, each in verdicts.items()}
        self.controller = found.leader
        others = controllers.other_voters(found, self.question.voters) if found.head else ""
        if others:
            raise FinalError(gate.other_voters(self.question.brokers, others))
        self.alone = "; ".join(
            filter(None, (controllers.without_quorum(found, each) for each in verdicts))
        )
        apart = set(self.question.voters) - set(self.question.expected)
        return {
            broker: gate.also_for(
                gate.of_controller(each) if broker in apart else each,
                controllers.held_back(found, broker),
            )
            for broker, each in verdicts.items()
        }

    def _know(self, client: KafkaClient, snapshot: Snapshot) -> bool:
        """Read the settings of topics on these brokers that are not known; whether all are, then."""
        own = set(self.question.brokers)
        for name in set(self._configs) - set(snapshot.topics):
            del self._configs[name]
        new = [
            name
            for name, topic in snapshot.topics.items()
            if name not in self._configs
            and any(not own.isdisjoint(part.replicas) for part in topic.partitions)
        ]
        self._has_read = self._has_read or bool(new) or self._defaults is None
        self._configs.update(self._minimums(client, snapshot, sorted(new)))
        if self._defaults is None:
            others = [each.id for each in snapshot.brokers if len(own) > 1 or each.id not in own]
            self._defaults = client.fetch_broker_settings(others, gate.MIN_INSYNC)
        return all(name in self._configs for name in new)

    def _minimums(self, client: KafkaClient, snapshot: Snapshot, names: Sequence[str]) -> Configs:
        """Of each topic how many must be in sync."""
        found: Configs = {}
        if names:
            # It is asked at the controller, which may be who shall be restarted, perhaps for not answering.
            with contextlib.suppress(AdminError):
                found = client.fetch_setting(names, gate.MIN_INSYNC, self._places(snapshot))
        # Those that are left are gone, or the user may not see them; this answer says which.
        return {**found, **client.fetch_configs([name for name in names if name not in found])}

    def _judged(self, snapshot: Snapshot, moving: Sequence[Tuple[str, int]]) -> Dict[int, Verdict]:
        defaults = (self._defaults or {}).values()
        minimums = gate.minimums_of(self._configs, map(int, defaults))
        question = self.question
        return gate.judge_each(
            snapshot, question.brokers, minimums, question.expected, question.accepted, moving
        )

    def look_once(
        self,
        make_client: Callable[[], KafkaClient],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Dict[int, Verdict]:
        """One look with a client of its own: broker id to Verdict. AdminError if nobody can be asked.

        It is judged by metadata that were read after the settings: these may take long, and who has asked may
        stop the broker right afterwards. Where something can never pass, it is looked on for the quiet time:
        topics come and go.
        """
        blind = self.unasked(make_client, clock, sleep)
        if blind:
            return blind
        client = make_client()
        client.connect()
        quiet = self.question.quiet_seconds
        standing = {broker: gate.Standing(quiet) for broker in self.question.brokers}
        began: Optional[float] = None
        try:
            while True:
                seen = self.look(client)
                if self._has_read:
                    seen = self.look(client)
                now = clock()
                began = now if began is None else began
                found = {broker: standing[broker].of(each, now) for broker, each in seen.items()}
                if found == seen or now - began >= quiet:
                    if self._seen and any(each.reasons for each in found.values()):
                        self.directories.look(client, self._seen)
                    return found
                sleep(POLL_SECONDS)
        finally:
            client.close()

    def unasked(
        self,
        make_client: Callable[[], KafkaClient],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Optional[Dict[int, Verdict]]:
        """The verdicts where everything may be unavailable and nobody can be asked, else None.

        With a wrong certificate on all brokers, say, no gate could ever be passed again. Who has consented to a lot of
        topics may mean these alone: so nobody is asked only if one client after another is turned away, for the quiet
        time. AdminError where what is wrong is no matter of the brokers.
        """
        if not self.question.accepted.everything:
            return None
        began, turned_away = clock(), 0
        while True:
            client = make_client()
            try:
                client.connect()
                return None
            except AdminError as error:
                if error.problem.check not in NOBODY_LETS_IN:
                    raise
                reason = error.problem.reason
            finally:
                client.close()
            turned_away += 1
            if turned_away >= TURNED_AWAY and clock() - began >= self.question.quiet_seconds:
                break
            sleep(POLL_SECONDS)
        why = f"nobody can be asked ({reason}), and everything may be unavailable"
        self.unsure = [why]
        return {each: Verdict(each, gate.GO, mending=why) for each in self.question.brokers}

    @contextlib.contextmanager
    def at_hand(
        self,
        make_client: Callable[[], KafkaClient],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[Look]:
        """A look at the one broker for which all is ready: the connection is there, and settings are read.

        What could be asked in vain is a reason, too: `wait` knows whether waiting helps.
        """
        (broker,) = self.question.brokers
        client = make_client()

        def look() -> List[str]:
            try:
                return _reasons(self.look(client)[broker])
            except AdminError as error:
                return [told(error)]

        try:
            try:
                blind = self.unasked(make_client, clock, sleep)
                if not blind:
                    client.connect()
            except AdminError as error:
                reasons = [told(error)]
                yield lambda: reasons
                return
            if blind:
                yield list
                return
            look()
            yield look
        finally:
            client.close()

    # ------------------------------------------------------------ waiting

    def wait(
        self,
        make_client: Callable[[], KafkaClient],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        log: Callable[[str], None] = lambda text: None,
    ) -> Passed:
        """Return when the one broker may stop, at once after a last look; AdminError if it may not.

        What can never pass is refused when it has stayed so for the quiet time, and a look agrees with
        settings that were read anew: topics come and go. Everything else is waited for.
        `make_client()` gives a new, unconnected client.
        """
        (broker,) = self.question.brokers
        began = clock()
        blind = self.unasked(make_client, clock, sleep)
        if blind:
            return Passed(blind[broker], round(clock() - began, 2), 1)
        last: List[Verdict] = []
        standing, growth = gate.Standing(self.question.quiet_seconds), gate.Growth()

        def judged(client: KafkaClient, anew: bool = False) -> Verdict:
            found = standing.of(self.look(client, anew)[broker], clock())
            if found.verdict == gate.CANNOT_PASS:
                before = set(found.too_few_replicas)
                found = standing.of(self.look(client, anew=True)[broker], clock())
                if found.verdict == gate.CANNOT_PASS and before & set(found.too_few_replicas):
                    problem = gate.refusal([found], self.question.accepted)
                    if problem is not None:
                        raise FinalError(problem, gate=found.to_dict())
            if found.behind and self._seen and growth.is_due(clock()):
                keys = [(name, number) for name, number, _why in found.behind]
                sizes = client.fetch_replica_bytes(broker, keys, self._places(self._seen))
                growth.note(sizes, clock(), bool(found.mending))
            found = growth.of(found, clock())
            last[:] = [found]
            return found

        def look(client: KafkaClient) -> List[str]:
            return self.directories.told_with(_reasons(judged(client)), client, self._seen)

        def confirm(client: KafkaClient) -> List[str]:
            # Settings may have changed, and brokers learn of changes one after another: the leader
            # of a partition is the last to be wrong about it, and somebody else may lead by now.
            found = judged(client, anew=True)
            return _reasons(found) or self._dissent(client, found) or look(client)

        waited = until_quiet(
            make_client,
            look,
            confirm,
            lambda reasons, seconds: self.directories.with_remedies(
                gate.waited_in_vain(
                    last[0] if last else Verdict(broker, gate.WAIT), round(seconds), reasons
                )
            ),
            self.question.quiet_seconds,
            self.question.wait_seconds,
            clock,
            sleep,
            log,
            lambda: self.lagging,
            lambda client: self._dissent(client, last[0]),
        )
        return Passed(last[0], waited.seconds, waited.polls)

    def _dissent(self, client: KafkaClient, found: Verdict) -> List[str]:
        """What other brokers see differently. The one that shall stop is not asked: it may be sick."""
        broker, strict = found.broker, not found.mending
        reasons: List[str] = []
        named = set()
        views = client.fetch_every_view(self._snapshot(client), besides=(broker,))
        for other, view in sorted(views.items()):
            if view is None:
                if strict:
                    reasons.append(f"broker {other} is registered but does not answer")
                continue
            # What came after the settings were read is looked at once more by the caller.
            topics = {name: view.topics[name] for name in view.topics if name in self._configs}
            seen = self._judged(replace(view, topics=topics), [])[broker]
            named.add(view.controller)
            told = _reasons(seen)
            if strict and seen.mending:
                told.append(f"broker {broker}: {seen.mending}")
            reasons += [f"broker {other} still sees: {text}" for text in told]
        # In KRaft mode metadata name any broker.
        if len(named) > 1 and strict and not self.question.voters:
            ids = ", ".join(sorted(str(each) for each in named))
            reasons.append(f"the brokers disagree about the controller: {ids}")
        return reasons


def until_stopped(
    question: Question,
    make_client: Callable[[], KafkaClient],
    attempt: Callable[[AtHand], Tuple[T, List[str]]],
    log: Callable[[str], None] = lambda text: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """What `attempt` returns of the stop of the one broker, as `last_look.until_stopped`; AdminError if it may not."""
    (broker,) = question.brokers

    def in_vain(reasons: List[str]) -> AdminError:
        verdict = Verdict(broker, gate.WAIT)
        return AdminError(gate.waited_in_vain(verdict, round(question.wait_seconds), reasons))

    return last_look.until_stopped(
        attempt,
        lambda: Gatekeeper(question).at_hand(make_client, clock, sleep),
        lambda: Gatekeeper(question).wait(make_client, clock, sleep, log),
        in_vain,
        question.wait_seconds,
        log,
        clock,
    )


def _reasons(found: Verdict) -> List[str]:
    """The reasons of a verdict; a refusal that is not confirmed yet is the first of them."""
    if found.verdict == gate.CANNOT_PASS:
        return [gate.summary(found), *found.reasons]
    return list(found.reasons)

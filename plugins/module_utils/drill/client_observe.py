# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches a drill that stops or kills a broker: load and looks from before the fault until it is over.

Private to this collection. The playbook does the rest; both tell each other by files in one directory.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import threading
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.reading import (
    ReadingClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Topic
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quorum import NOBODY
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    MEANWHILE,
    PREFIX,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_changes import (
    Changes,
    prepare_leaders,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_copying import (
    Copier,
    copied,
    copiers,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    DELIVERY_SECONDS,
    Reader,
    Settings,
    Ticker,
    Watch,
    now_ms,
    value_of,
    written,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_processes import (
    all_ended,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_there import (
    groups_seen,
    records_there,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    LATE_SECONDS,
    failed,
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.examples import Example
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import (
    Ask,
    Written,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Seen,
    below_min_isr,
    committed_elsewhere,
    coordinated,
    lacking,
    longest_since,
    pauses,
    per_bucket,
    unprotected,
    watched_line,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    json_text,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

# What the playbook makes to end it, and what it looks at meanwhile.
END, PROGRESS = "drill-end", "drill-progress.json"
SAY_SECONDS = 0.3
# How often the controllers are asked, and how long a broker may take to tell.
QUORUM_LOOK_SECONDS, QUORUM_SECONDS = 0.2, 2.0
# Lines of the example that writes, too: how often, and what their numbers begin with.
BESIDE_SECONDS, BESIDE = 0.2, "example-"
LEFT_SECONDS = 3600.0
# In so many a program that copies comes to the end of what was sent: a transaction may have to end by itself.
COPY_SECONDS = 2 * ANSWER_SECONDS
# What was measured has it where topic and groups are still there: why.
LEFT = "left"


@dataclass(frozen=True)
class Watched:
    """What is to be watched, and how long at most (seconds). `beside`: the process of the playbook, 0: none.

    `retry`: whether the producer tries again what is refused; without, refusals are what is looked for, and a group
    begins to read once a replica is away. `changes`: whether the playbook asks for changes
    while members of a quorum are away; then each partition but the first has a leader that can change.
    `program`: the text of examples/producer.py, which then writes, too. `quorum`: whether the cluster is in KRaft
    mode, so that its controllers tell who leads them. `copied`: programs copy the topic to others that lie as it does;
    their groups are the last ones, and are named as what they write.
    """

    topic: str
    assignment: Sequence[Sequence[int]]
    config: Mapping[str, str]
    groups: Sequence[str]
    directory: str
    retry: bool = True
    beside: int = 0
    seconds: float = 1800.0
    changes: bool = False
    program: str = ""
    quorum: bool = False
    copied: bool = False


def observe(
    connection: Connection, asked: Watched, alive: Callable[[int], bool], judge: Ask
) -> Dict[str, Any]:
    """Watch until the playbook says that it is over, or is gone; returns what was seen.

    `alive(pid)` tells whether a process runs. AdminError where no record flows; the playbook, which waits for
    records, hears of any error at once. Where topic and groups cannot be removed afterwards, what was seen is
    returned nevertheless, with the reason as `left` among what was measured. The directory goes with a playbook
    that was killed: otherwise the playbook removes it.
    """
    found: List[Seen] = []
    try:
        _watch(connection, asked, alive, judge, found.append)
    except Exception as error:
        if isinstance(error, AdminError) and found:
            # a cluster that the fault has made ill is what shall be judged
            measured = {**found[0].measured, LEFT: error.message}
            return replace(found[0], measured=measured).to_dict()
        with contextlib.suppress(OSError):
            _write_progress(asked, {"failed": True})
        raise
    else:
        return found[0].to_dict()
    finally:
        if asked.beside and not alive(asked.beside):
            remove_meeting(asked.directory)


def remove_meeting(directory: str) -> None:
    """Remove the directory where a playbook and the observer meet, if it has the name of one."""
    if os.path.basename(directory).startswith(PREFIX):
        shutil.rmtree(directory, ignore_errors=True)


def remove_left_meetings(parent: str, now: float) -> List[str]:
    """Remove such directories of this user that nobody has written to for an hour; returns their paths.

    An observer writes there three times a second.
    """
    removed = []
    for name in sorted(os.listdir(parent)):
        path = os.path.join(parent, name)
        with contextlib.suppress(OSError):
            told = os.lstat(path)
            ours = name.startswith(PREFIX) and told.st_uid == os.getuid()
            if ours and stat.S_ISDIR(told.st_mode) and now - told.st_mtime > LEFT_SECONDS:
                remove_meeting(path)
                removed.append(path)
    return removed


def _watch(
    connection: Connection,
    asked: Watched,
    alive: Callable[[int], bool],
    judge: Ask,
    keep: Callable[[Seen], None],
) -> None:
    settings = librdkafka_settings(connection)
    programs = copiers(settings, asked.topic, asked.groups) if asked.copied else []
    copies, processes = [each.target for each in programs], [each.process for each in programs]
    topics = dict.fromkeys((asked.topic, *copies), asked.assignment)
    late = LATE_SECONDS if asked.changes else 0.0
    made = own_topics(connection, topics, asked.config, late_seconds=late)
    with all_ended(processes), made as client, all_ended(processes):
        quorum = QuorumWatch(connection) if asked.quorum else None
        watch = Watch(settings, asked.topic, asked.groups[0], quorum.leader if quorum else None)
        groups = [each for each in asked.groups if each not in copies]
        readers = [Reader(settings, asked.topic, group) for group in groups]
        ticker = Ticker(settings, asked.topic, retry=asked.retry)
        beside = Beside(asked.program, settings, asked.topic) if asked.program else None
        meanwhile = None if asked.retry else Meanwhile(settings, asked.topic, asked.assignment[0])
        changes = Changes(
            connection,
            asked.topic,
            asked.assignment[0],
            asked.directory,
            lambda: len(ticker.acknowledged),
        )
        for process in processes:
            process.begin()
        try:
            await_flow(asked.topic, ticker, readers, programs)
            if programs:
                refuse_apart(client.fetch_metadata().topics, asked.topic, copies)
            if asked.changes:
                prepare_leaders(connection, asked.topic, asked.assignment)
            wait_until(
                lambda: _over(
                    asked, alive, lambda: _say(asked, ticker, watch, changes, readers[0], meanwhile)
                ),
                asked.seconds,
                poll_seconds=SAY_SECONDS,
            )
            if meanwhile is not None and told_to_end(asked.directory):
                wait_until(lambda: _accepted_again(ticker), ANSWER_SECONDS)
        finally:
            ticker.stop()
            if beside is not None:
                beside.stop()
            sent = {**ticker.sent_and_acknowledged, **(beside.sent if beside is not None else {})}
            wait_until(lambda: all(each.has(sent) for each in readers), ANSWER_SECONDS)
            last = max(ticker.acknowledged, key=int, default="")
            wait_until(lambda: not last or all(each.has(last) for each in programs), COPY_SECONDS)
            for program in programs:
                program.process.end(kill=False)
            watch.stop()
            if quorum is not None:
                quorum.stop()
            for each in readers:
                each.close()
            if meanwhile is not None:
                meanwhile.close()
        min_isr = int(asked.config.get("min.insync.replicas", 1))
        seen = seen_by(settings, asked.topic, ticker, readers, watch, min_isr)
        more = changes.told() if asked.changes else {}
        if beside is not None:
            more = {**more, "example": beside.told(readers)}
        if meanwhile is not None:
            more = {**more, "below": meanwhile.told(ticker, watch)}
        asks = [_written(asked.topic, ticker, beside)]
        if programs:
            kinds = {each.target: each.kind for each in programs}
            found = copied(settings, asked.topic, len(asked.assignment), kinds, ticker)
            asks += found.written
            seen = replace(seen, groups=(*seen.groups, *found.groups))
            more = {**more, **_copies_told(programs, found.aborted, ticker.ended_ms)}
        answers = judge(asks)
        keep(replace(seen, measured={**seen.measured, **more}, judged=answers))


def _copies_told(programs: Sequence[Copier], aborted: int, ended_ms: int) -> Dict[str, Any]:
    """What was measured of programs that copy. Which pauses they made until nothing more was sent, each by its kind."""
    return {
        "copies": [
            {
                **each.told(),
                "pauses": [list(pause) for pause in pauses(each.committed_ms, ended_ms)],
            }
            for each in programs
        ],
        "aborted": aborted,
    }


def _written(topic: str, ticker: Ticker, beside: Optional[Beside]) -> Written:
    """What both have written to the topic. The example tells by its exit code alone what was acknowledged."""
    by_ticker = written(topic, ticker)
    if beside is None:
        return by_ticker
    acknowledged = set(beside.sent) if beside.succeeded else set()
    return Written(
        topic,
        {*by_ticker.sent, *beside.sent},
        {*by_ticker.acknowledged, *acknowledged},
    )


class Meanwhile:
    """A group that begins to read once a replica is away: what is there can be read, whatever is refused."""

    def __init__(self, settings: Settings, topic: str, replicas: Sequence[int]):
        self._settings, self._topic, self._replicas = settings, topic, frozenset(replicas)
        self._reader: Optional[Reader] = None
        self._there: Dict[str, int] = {}
        self._began_ms, self._done_ms = 0, 0

    def look(self, ticker: Ticker, watch: Watch) -> Optional[int]:
        """Read if a replica is away; returns since when enough is known (ms since 1970), None while it is not.

        That is when the group has all that was acknowledged before it, or has had its time.
        """
        if self._reader is None:
            if any(each.isr != self._replicas for each in list(watch.moments)):
                self._there = ticker.sent_and_acknowledged
                self._began_ms = now_ms()
                self._reader = Reader(self._settings, self._topic, f"{self._topic}-{MEANWHILE}")
            return None
        waited = now_ms() - self._began_ms > ANSWER_SECONDS * 1000
        if not self._done_ms and (waited or self._reader.has(self._there)):
            self._done_ms = now_ms()
        return self._done_ms or None

    def close(self) -> None:
        """Leave the group."""
        if self._reader is not None:
            self._reader.close()

    def told(self, ticker: Ticker, watch: Watch) -> Dict[str, int]:
        """What was measured, as of `below_min_isr`."""
        return below_min_isr(
            _both_times(ticker),
            ticker.wanting_ms,
            ticker.unknown,
            self._reader.came if self._reader is not None else (),
            watch.moments,
            self._replicas,
        )


def _accepted_again(ticker: Ticker) -> bool:
    """Whether a record was acknowledged that was sent after the last one that was refused for want of replicas."""
    last = max(list(ticker.wanting_ms), default=0)
    return any(sent > last for sent in ticker.sent_and_acknowledged.values())


def _both_times(ticker: Ticker) -> Dict[str, Tuple[int, int]]:
    """Of each acknowledged record, when it was sent, and when it was acknowledged."""
    sent = ticker.sent_and_acknowledged
    return {each: (at_ms, ticker.acknowledged[each]) for each, at_ms in sent.items()}


class QuorumWatch:
    """Asks who leads the controllers of a KRaft cluster, beside the looks: while none is elected, nobody answers."""

    def __init__(self, connection: Connection):
        self._leader: Optional[int] = None
        self._connection = replace(connection, timeout=QUORUM_SECONDS)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def leader(self) -> Optional[int]:
        """Who led when somebody last answered; None before."""
        return self._leader

    def _run(self) -> None:
        client = ReadingClient(self._connection)
        try:
            while not self._stop.is_set():
                with contextlib.suppress(AdminError):
                    told = client.fetch_quorum(())
                    if told.leader != NOBODY:
                        self._leader = told.leader
                self._stop.wait(QUORUM_LOOK_SECONDS)
        finally:
            client.close()

    def stop(self) -> None:
        """Ask no more."""
        self._stop.set()
        self._thread.join(ANSWER_SECONDS)


class Beside:
    """examples/producer.py, which gets a numbered line each `BESIDE_SECONDS`. `sent`: record to when."""

    def __init__(self, program: str, settings: Settings, topic: str):
        self.sent: Dict[str, int] = {}
        self._code: Optional[int] = None
        self._settings, self._topic = settings, topic
        self._example = Example(program, settings, [topic])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(BESIDE_SECONDS) and self._example.alive():
            record, at_ms = f"{BESIDE}{number}", now_ms()
            self.sent[record] = at_ms
            self._example.write(value_of(record, at_ms).decode())
            number += 1

    def stop(self) -> None:
        """There are no more lines; it delivers what it has, and ends."""
        if self._code is None:
            self._stop.set()
            self._thread.join(ANSWER_SECONDS)
            self._example.end_of_input()
            self._code = self._example.wait(DELIVERY_SECONDS + ANSWER_SECONDS)

    @property
    def succeeded(self) -> bool:
        """Whether it has ended well: each of its lines was acknowledged."""
        return self._code == 0

    def told(self, readers: Sequence[Reader]) -> Dict[str, Any]:
        """What became of its lines: its exit code says whether each was acknowledged."""
        came = [{record for record, _at in each.came} for each in readers]
        absent = {record for record in self.sent if not all(record in each for each in came)}
        there = records_there(self._settings, self._topic, 1, absent)
        return {
            "lines": len(self.sent),
            "code": self._code,
            "said": self._example.said[-1] if self._example.said else "",
            "missing": len(absent - there.records) if there.whole else 0,
            "late": len(there.records),
            "unknown": 0 if there.whole else len(absent - there.records),
        }


def await_flow(
    topic: str, ticker: Ticker, readers: Sequence[Reader], programs: Sequence[Copier]
) -> None:
    """Wait until records come through everywhere; AdminError where they do not in time, or a program has ended."""

    def trouble() -> str:
        return next(filter(None, (each.process.trouble for each in programs)), "")

    # the first transaction of a cluster waits until brokers have made what they keep transactions in
    seconds = 2 * ANSWER_SECONDS if programs else ANSWER_SECONDS
    flows = wait_until(lambda: bool(trouble()) or _flows(ticker, readers, programs), seconds)
    if trouble():
        raise failed(topic, f"a program has ended: {trouble()}")
    if not flows:
        raise failed(topic, "no record came through in time")


def refuse_apart(there: Mapping[str, Topic], topic: str, copies: Sequence[str]) -> None:
    """AdminError where another broker leads a copy than the topic: then the fault would not hit all of them."""
    names = [topic, *copies]
    leaders = {each: there[each].partitions[0].leader if each in there else None for each in names}
    apart = [each for each in copies if leaders[each] != leaders[topic]]
    if leaders[topic] is None or apart:
        told = ", ".join(f"{each} by {leaders[each]}" for each in names)
        raise failed(topic, f"one broker is to lead it and its copies, and they are led: {told}")


def _flows(ticker: Ticker, readers: Sequence[Reader], programs: Sequence[Copier]) -> bool:
    came = all(each.came for each in readers) and all(each.committed_ms for each in programs)
    return len(ticker.acknowledged) >= 20 and came


def _over(asked: Watched, alive: Callable[[int], bool], say: Callable[[], None]) -> bool:
    say()
    gone = bool(asked.beside) and not alive(asked.beside)
    return gone or told_to_end(asked.directory)


def told_to_end(directory: str) -> bool:
    """Whether the playbook has said that it is over: then it has put back what it has moved."""
    return os.path.exists(os.path.join(directory, END))


def _say(
    asked: Watched,
    ticker: Ticker,
    watch: Watch,
    changes: Changes,
    reader: Reader,
    meanwhile: Optional[Meanwhile] = None,
) -> None:
    """Write how far it is: `away` counts sends that were answered since the ISR is not full.

    With `meanwhile`, since its group has read, too: there shall be refusals afterwards. `shrank` stays true: a
    broker may be back before anybody looks; `elected`: whether another controller was; `committed`: whether the first
    group has under another coordinator.
    """
    everybody = set(asked.assignment[0])
    last = watch.moments[-1] if watch.moments else None
    away = 0
    since_ms = meanwhile.look(ticker, watch) if meanwhile is not None else 0
    if last is not None and last.isr != everybody and since_ms is not None:
        answered = [*list(ticker.acknowledged.values()), *list(ticker.refused_ms)]
        away = sum(at_ms > max(last.at_ms, since_ms) for at_ms in answered)
    full = last is not None and last.isr == everybody
    shrank = any(each.isr != everybody for each in list(watch.moments))
    controllers = {each.controller for each in list(watch.moments)} - {None}
    told: Dict[str, Any] = {
        "away": away,
        "full": full,
        "shrank": shrank,
        "elected": len(controllers) > 1,
        "committed": committed_elsewhere(list(watch.coordinators), list(reader.committed_ms)),
        "lacking": lacking(bool(watch.looked_ms), full),
        # for people who wait
        "line": watched_line(len(ticker.acknowledged), last),
    }
    if asked.changes:
        told.update(changes.look())
    _write_progress(asked, {"answered": len(ticker.acknowledged), **told})


def _write_progress(asked: Watched, told: Mapping[str, Any]) -> None:
    write_atomically(os.path.join(asked.directory, PROGRESS), json_text(dict(told)), 0o644)


def seen_by(
    settings: Settings,
    topic: str,
    ticker: Ticker,
    readers: Sequence[Reader],
    watch: Watch,
    min_isr: int,
) -> Seen:
    """What the three have counted, once they are stopped."""
    sent = ticker.sent_and_acknowledged
    times = list(ticker.acknowledged.values())
    found = pauses(times, ticker.ended_ms)
    commits = [pauses(each.committed_ms, ticker.ended_ms) for each in readers]
    return Seen(
        sent=len(ticker.sent),
        acknowledged=len(times),
        refused=dict(ticker.refused),
        pause_ms=longest_since(found, 0),
        groups=groups_seen(settings, topic, 1, sent, {each.group: each.came for each in readers}),
        moments=tuple(watch.moments),
        unprotected=unprotected(
            _both_times(ticker),
            ticker.wanting_ms,
            watch.moments,
            min_isr,
        ),
        timeline=per_bucket(times),
        notes=(f"{ticker.retried} sent again",),
        measured={
            "pauses": [list(each) for each in found],
            "commit_pauses": [[list(each) for each in of_one] for of_one in commits],
            "commit_pause_ms": [longest_since(each, 0) for each in commits],
            "coordinators": coordinated(watch.coordinators, readers[0].committed_ms),
            "retried": ticker.retried,
            "looks": {"last_ms": watch.looked_ms or None, "until_ms": ticker.ended_ms},
        },
    )

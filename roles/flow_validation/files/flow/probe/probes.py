# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Probes, on request: promises of the cluster that no ordinary record puts to the test.

Each has a topic of its own, so they run beside each other and beside the run. A topic goes when its
probe is over, and stays as evidence where the probe found a violation.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Callable, Iterator, Optional

from flow.judge import verdict
from flow.messages import progress, stack_trace
from flow.messages.failure import CannotRun
from flow.messages.output import note
from flow.probe import compaction, refusal, retention
from flow.probe.trial import Bench, Debris, Finding
from flow.record import own_names

_WAIT_SECONDS = 1.0


@dataclass(frozen=True)
class Probe:
    """`check`: the check of verdict.MEANING that it belongs to; `judge`: (bench, topic) -> Finding,
    CannotRun if it cannot tell.
    """

    check: str
    judge: Callable


PROBES = {
    "min-isr": Probe("durability", refusal.probe),
    "compaction": Probe("compaction", compaction.probe),
    "retention": Probe("retention", retention.probe),
}


@dataclass(frozen=True)
class Outcome:
    """What became of a probe. `unclear`: why it could not be judged, None if it was; `kept`: its
    topic is still there.
    """

    name: str
    topic: str
    finding: Finding = field(default_factory=Finding)
    unclear: Optional[str] = None
    kept: bool = False
    seconds: float = 0.0

    @property
    def check(self) -> str:
        """The id of the check that it belongs to."""
        return PROBES[self.name].check

    def to_json(self) -> dict:
        """Its entry in verdict.json."""
        return {
            "name": self.name,
            "check": self.check,
            "topic": self.topic,
            "violations": self.finding.count,
            "troubles": [each["reason"] for each in self.finding.witnesses],
            "unclear": self.unclear,
            "topic_kept": self.kept,
            "seconds": self.seconds,
            "measured": self.finding.measured,
        }


def open_ones(names: list, run_id: str) -> list:
    """Outcomes of probes that have only begun: what a run knows that breaks off."""
    why = "the run ended before its outcome was known"
    return [Outcome(name, topic_of(run_id, name), unclear=why) for name in names]


def kept(outcomes: list) -> list:
    """Outcomes as the run's plan keeps them, for who judges it again; `known` reads them."""
    return [asdict(each) for each in outcomes]


def known(told: list) -> list:
    """The Outcomes of `kept`."""
    return [Outcome(**{**each, "finding": Finding(**each["finding"])}) for each in told]


def topic_of(run_id: str, name: str) -> str:
    """The probe's topic."""
    return own_names.own(run_id, name)


def merged(checks: list, outcomes: list) -> list:
    """The run's verdict.Checks with what the probes found, in the order of verdict.MEANING. A check
    that only a probe that could not tell belongs to is none.
    """
    found = {check.id: check for check in checks}
    for each in outcomes:
        if each.unclear is None:
            old = found.get(each.check, verdict.Check(each.check))
            witnesses = [{"topic": each.topic, **w} for w in each.finding.witnesses]
            found[each.check] = verdict.Check(
                each.check, old.count + each.finding.count, old.witnesses + witnesses
            )
    return [found[name] for name in verdict.MEANING if name in found]


def unclear(outcomes: list) -> list:
    """Sentences about the probes that could not tell."""
    return [
        f"probe {each.name} could not be judged: {each.unclear}"
        for each in outcomes
        if each.unclear is not None
    ]


@contextmanager
def running(names: list, run_id: str, bench: Bench) -> Iterator[Callable]:
    """Run these probes beside the body of the `with`, which gets a function that waits for them:
    (directory for progress.json) -> their Outcomes. Where the body ends by an exception, the probes
    end as soon as they can, and take their topics back.
    """
    if not names:
        yield lambda directory: []
        return
    with ThreadPoolExecutor(len(names), "probe") as pool:
        futures = {name: pool.submit(_run, name, topic_of(run_id, name), bench) for name in names}

        def outcomes(directory: str) -> list:
            def line() -> str:
                open_ones = [name for name, future in futures.items() if not future.done()]
                return f"waiting for the probes {', '.join(open_ones)}"

            with progress.waiting(directory, "probes", line):
                while wait(futures.values(), _WAIT_SECONDS).not_done:
                    pass  # in steps, so that Ctrl-C is heard
            return [future.result() for future in futures.values()]

        try:
            yield outcomes
        except BaseException:
            bench.stopped.set()
            raise


def _run(name: str, topic: str, bench: Bench) -> Outcome:
    began = time.monotonic()
    finding, why, kept = Finding(), None, False
    try:
        finding = PROBES[name].judge(bench, topic)
        kept = finding.count > 0
        why = None if kept else finding.unclear or None
    except Debris as error:  # its deletion would never end
        why, kept = str(error), True
    except CannotRun as error:
        why = str(error)
    except Exception as error:  # what the run itself has found stands all the same
        why = f"it failed itself ({type(error).__name__}: {stack_trace.reason(str(error))})"
    if kept:
        note(f"note: {f'topic {topic} is kept as evidence' if why is None else why}")
    else:
        kept = not _gone(bench, topic)
    return Outcome(name, topic, finding, why, kept, round(time.monotonic() - began, 3))


def _gone(bench: Bench, topic: str) -> bool:
    try:
        bench.cluster.delete_topic(topic, until_gone=True)
        return True
    except CannotRun as error:  # what was found stands all the same
        note(f"note: {error}")
        return False

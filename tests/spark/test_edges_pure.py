# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edges of the job's word that show without Kafka and Spark: what is no violation is never told as one."""

import contextlib
import dataclasses
import hashlib
import json
import os
import pty
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import job
import pytest
from confluent_kafka import KafkaError, KafkaException
from flow import inspection
from flow.engine import executors, session
from flow.judge import continuity, expiry, judge, verdict
from flow.messages import failure, output, progress, stopping
from flow.messages.failure import CannotRun, Stopped
from flow.prepare import cluster, leadership, leftovers, listeners
from flow.prepare.traces import Traces
from flow.present import conclusion, report, sentence
from flow.probe import probes, trial
from flow.record import files, ledger, place, timing
from flow.record.ledger import Attempt, Row
from flow.record.partition import Partition
from flow.steps import modes, planning, starting, task
from flow.steps import options as steps_options
from flow.steps import writing as steps_writing
from flow.steps.stopwatch import Stopwatch
from flow.write import client_settings, ending, notes, produce
from py4j.protocol import Py4JNetworkError

from tests.support import verdict_schema, verdicts
from tests.support.outside import wait_until
from tests.support.processes import hang_ups_count

TOPIC = "kafkaops-flow-019a00000000"


def partitions(end, **more):
    known = {"epoch": 1, **more}
    return {n: Partition(n, 1, (1, 2, 3), (1, 2, 3), 0, end, **known) for n in range(2)}


def plan_of(**more):
    """The plan of a run that has ended."""
    known = {
        "run_id": "ab" * 16,
        "cluster_id": "c",
        "topic": TOPIC,
        "created": True,
        "records": 20,
        "record_size": 100,
        "partitions": 2,
        "producers": 1,
        "brokers": {1: "h:1", 2: "h:2", 3: "h:3"},
        "replication": 3,
        "min_isr": 2,
        "planned_replication": 3,
        "planned_min_isr": 1,
        "started": "2026-01-01T00:00:00+00:00",
        "before": partitions(0),
        "after": partitions(10),
        "ledger_rows": 0,
    }
    return files.Plan(**{**known, **more})


def judging(asked, plan=None, **options):
    """A Judge of a cluster that is `asked`, without Spark."""
    chosen = SimpleNamespace(
        **{"mode": "verify", "timeout": 1, "ledger": "l", "bootstrap_servers": "h:1", **options}
    )
    return judge.Judge(None, chosen, plan or plan_of(), asked, None, {}, [], [], None)


def all_apply(settings):
    """The questions of a cluster in which every broker applies these settings to the topic."""
    return {
        "effective_config": lambda _topic, names: {n: settings[n] for n in names if n in settings},
        "describe": lambda: cluster.Description("c", {1: "h:1", 2: "h:2", 3: "h:3"}),
        "settings_applied": lambda _topic, brokers, names, _seconds: {
            broker: {n: settings[n] for n in names if n in settings} for broker in brokers
        },
    }


class Reached(Exception):
    """The test has seen what it looks for."""


# -- a transaction that nobody ends


@pytest.mark.parametrize(
    ("told", "limit"),
    [
        ({1: "10000", 2: "500"}, 130 + 30 + 20),
        ({1: "60000"}, 130 + 30 + 120),
        ({}, None),  # nobody tells
    ],
)
def test_a_transaction_is_called_hanging_when_brokers_must_have_looked_twice(told, limit):
    name, waited = "transaction.abort.timed.out.transaction.cleanup.interval.ms", []

    def stable_ends(_topic, seconds, known, _upto):
        assert known == [0, 1]
        waited.append(seconds)
        return {0: 9}, {0: 4}

    asked = SimpleNamespace(
        stable_ends=stable_ends,
        settings_of_brokers=lambda _brokers, names, _seconds: {n: {names[0]: v} for n, v in told.items()},
    )  # fmt: skip
    plan = plan_of(transaction_records=5, transaction_timeout=130.0)
    of_it = dataclasses.replace(judging(asked, plan), watch=Stopwatch())
    if limit is None:
        with pytest.raises(CannotRun, match=rf"open after 180 s.*{name}.*DescribeConfigs"):
            of_it._hanging(partitions(9))
        return
    (witness,) = of_it._hanging(partitions(9))
    assert waited == [limit] and witness["partition"] == 0 and f"{limit}" in witness["reason"]


# -- a topic that is not to be seen


class Asked(cluster.Cluster):
    """Its brokers have nothing of the topic in the metadata of all; asked by name they answer `error`."""

    def __init__(self, error):
        import confluent_kafka

        self._kafka, self._timeout, self._servers = confluent_kafka, 1, "h:1"
        answer = SimpleNamespace(result=self._answer)
        self._error = error
        self._admin = SimpleNamespace(describe_topics=lambda _names: {TOPIC: answer})

    def _answer(self, _seconds):
        raise KafkaException(KafkaError(self._error))

    def positions(self, topic, wait=0, committed=False, known=()):
        return {}


@pytest.mark.parametrize(
    ("error", "mode", "said"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "verify", "may not see the topic"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "run", "may not see the topic"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "verify", "somebody has deleted it"),
        (KafkaError._TIMED_OUT, "verify", "wait until the brokers answer"),
    ],
)
def test_a_topic_that_is_hidden_or_was_deleted_accuses_nobody(error, mode, said):
    with pytest.raises(CannotRun, match=said):
        judging(Asked(error), mode=mode).results()


def test_a_topic_that_goes_while_its_run_goes_on_is_held_against_the_cluster():
    gone = Asked(KafkaError.UNKNOWN_TOPIC_OR_PART)
    assert judging(gone, mode="run")._now() == {}
    with pytest.raises(CannotRun, match="somebody has deleted it"):  # whose topic it is
        judging(gone, plan_of(created=False), mode="run")._now()


@pytest.mark.parametrize("stays", [False, True])
def test_who_removes_a_topic_of_a_run_tells_its_ledger(tmp_path, stays):
    path = tmp_path / "20260101T000000Z"
    files.save_plan(str(path / "ledger"), plan_of())
    reports = leftovers.reports_below(str(tmp_path))
    assert [each.topic for each in reports] == [TOPIC]

    def delete(topic):
        if stays:
            raise CannotRun("no answer")

    found = [leftovers.Leftover(leftovers.TOPIC, TOPIC, 99)]
    troubles = leftovers.remove(SimpleNamespace(delete_topic=delete), found, reports)
    assert bool(troubles) is stays
    plan = files.load_plan(str(path / "ledger"))
    options = SimpleNamespace(bootstrap_servers="h:1")
    if stays:
        starting._refuse_foreign(options, plan, "c")
        assert plan == dataclasses.replace(plan_of(), cleared="")
    else:
        with pytest.raises(CannotRun, match=r"`leftovers --remove` deleted the run's topic"):
            starting._refuse_foreign(options, plan, "c")


# -- what nobody hears


def ended(stdout, stderr, *options):
    """The exit code of the job, whose standard output and standard error go there."""
    command = [sys.executable, job.__file__, *options]
    return subprocess.run(command, stdout=stdout, stderr=stderr, check=False).returncode


JUDGED = ["verify", "--bootstrap-servers=h:1", "--ledger=/nowhere/l", "--output=/nowhere/o"]


@pytest.mark.parametrize("options", [JUDGED, ["verify"]], ids=["refused", "mistaken"])
def test_an_error_that_cannot_be_written_is_no_violation(options):
    with open("/dev/full", "w", encoding="utf-8") as full:
        assert ended(subprocess.DEVNULL, full, *options) == 3
        assert ended(full, full, *options) == 3


def test_a_terminal_that_is_gone_changes_no_exit_code():
    master, slave = pty.openpty()
    os.close(master)
    try:
        assert ended(subprocess.DEVNULL, slave, *JUDGED) == 3
    finally:
        os.close(slave)


def test_a_result_that_cannot_be_written_changes_no_exit_code(tmp_path):
    with open("/dev/full", "w", encoding="utf-8") as full:
        assert ended(full, subprocess.PIPE, "index", f"--output={tmp_path}") == 0
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert ended(writer, subprocess.PIPE, "index", f"--output={tmp_path}") == 0
    finally:
        os.close(writer)


@pytest.mark.parametrize("text", ["\u00b2=3", "=3", "1=", "1", "9" * 5000 + "=3", "-1=3"])
def test_a_release_of_no_broker_is_a_sentence(capsys, text):
    with pytest.raises(SystemExit) as end:
        job.main(["run", *JUDGED[1:], f"--broker-version={text}"])
    assert end.value.code == 3
    assert "--broker-version must be ID=RELEASE" in capsys.readouterr().err


# -- settings that somebody has changed since


def standing(moment, min_isr):
    return verdict.Standing(moment, partitions(10), min_isr)


@pytest.mark.parametrize(
    ("was", "now", "planned", "shared", "reasons", "unclear"),
    [
        (2, 2, 0, False, [], []),
        (1, 2, 0, False, [], []),
        (2, None, 0, False, [], []),
        (2, 1, 1, False, [], []),  # as it was planned
        (2, 1, 0, False, ["now: effective min.insync.replicas is 1, and was 2 then"], []),
        (2, 1, 0, True, [], ["the topic's effective min.insync.replicas is 1, and was 2 then"]),
        (2, 1, 2, True, ["now: effective min.insync.replicas is 1, planned is 2"], []),
    ],
)
def test_fewer_replicas_that_must_be_in_sync_are_told(was, now, planned, shared, reasons, unclear):
    moments = [standing("then", was), standing("now", now)]
    found = verdict.durability(moments, 3, planned, [1, 2, 3], set(), [1, 2, 3], shared)
    assert [each["reason"] for each in found.check.witnesses] == reasons
    assert found.check.count == len(reasons) and found.unclear == unclear


KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        (KEPT, KEPT, {}),
        ({}, KEPT, {}),
        ({}, {**KEPT, "retention.ms": "1000"}, {0: "retention.ms=1000"}),
        (
            {**KEPT, "retention.ms": "60000000"},  # lowered for a while, perhaps
            KEPT,
            {0: "retention.ms=-1, which was 60000000 when they were written,"},
        ),
    ],
)
def test_a_limit_that_was_changed_since_may_have_deleted(was, now, why):
    assert expiry.reasons(now, 3600, [0], {0: 5}, was) == why


@pytest.mark.parametrize(("tiered", "gone"), [("true", True), ("false", False), (None, False)])
def test_a_topic_with_remote_storage_may_be_larger_than_the_brokers_disks_say(
    monkeypatch, tiered, gone
):
    """Its limit is of both together."""
    settings = {**KEPT, "retention.bytes": "1000", "remote.storage.enable": tiered}
    told = {name: value for name, value in settings.items() if value is not None}
    asked = SimpleNamespace(**all_apply(told))
    monkeypatch.setattr(judge.room, "sizes", lambda *_more: {0: 10})
    keeps = {**KEPT, "retention.bytes": "1000"}
    found = judging(asked, plan_of(created=False, keeps=keeps))._deleted_by({0: 5}, partitions(10))
    assert bool(found) is gone


@pytest.mark.parametrize(("stamped", "open_"), [("CreateTime", True), ("LogAppendTime", False)])
def test_a_judge_whose_clock_is_behind_accuses_no_broker(monkeypatch, stamped, open_):
    settings = {**KEPT, "retention.ms": "3600000"}
    asked = SimpleNamespace(**all_apply(settings))
    monkeypatch.setattr(judge.room, "sizes", lambda *_more: {0: 10})
    minutes_ago = datetime.now(timezone.utc) - timedelta(minutes=53)
    plan = plan_of(
        created=False, keeps=settings, timestamp_type=stamped, started=minutes_ago.isoformat()
    )
    assert bool(judging(asked, plan)._deleted_by({0: 5}, partitions(10))) is open_


@pytest.mark.parametrize(
    ("properties", "packed"),
    [
        ([], False),
        (["linger.ms=5", "compression.level=3"], False),
        (["compression.type=none"], False),
        (["compression.type=zstd"], True),
        (["compression.codec=lz4"], True),
        (["topic.compression.codec=lz4", "compression.level=9"], True),
        (["topic.compression.type=none"], False),
        (["topic.compression.type=inherit", "compression.type=lz4"], True),
        (["topic.compression.type=inherit"], False),
    ],
)
def test_who_compresses_needs_less_room(properties, packed):
    assert starting.compresses(properties) is packed


@pytest.mark.parametrize(
    ("codec", "refused", "remedy"),
    [("producer", False, None), ("uncompressed", True, False)],
)
def test_room_is_asked_for_where_leaders_unpack_what_comes(monkeypatch, codec, refused, remedy):
    monkeypatch.setattr(starting.room, "disks", lambda *_more: [])
    monkeypatch.setattr(starting.room, "shortage", lambda *_more: "broker 1 has nothing free")
    asked = SimpleNamespace(effective_config=lambda _topic, names: {names[0]: codec})
    options = SimpleNamespace(
        producer_property=["compression.type=zstd"], bootstrap_servers="h:1", timeout=1, rate=0
    )
    plan = plan_of(records=10**9, record_size=100)
    if not refused:
        starting._refuse_full_disks(None, options, plan, asked, {})
        return
    with pytest.raises(CannotRun, match="nothing free") as found:
        starting._refuse_full_disks(None, options, plan, asked, {})
    assert ("compress them" in str(found.value)) is remedy


def results_of(monkeypatch, settings, plan, failed):
    """What judging finds where these checks fail, and the topic has these settings by now."""
    asked = SimpleNamespace(
        positions=lambda *_more, **_options: partitions(10), **all_apply(settings)
    )
    checks = [verdict.Check(name, int(name in failed)) for name in verdict.MEANING]
    made = judge.Results(checks, partitions(10), {}, set(), None)
    monkeypatch.setattr(judge.Judge, "_results", lambda *_more: made)
    return judging(asked, plan).results()


@pytest.mark.parametrize("created", [True, False])
@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_topic_that_is_compacted_since_has_lost_nothing(monkeypatch, policy, created):
    plan, settings = plan_of(created=created, keeps=KEPT), {**KEPT, "cleanup.policy": policy}
    found = results_of(monkeypatch, settings, plan, {"loss", "gap", "continuity"})
    assert [each.id for each in found.checks if each.count] == []
    assert "loss" not in [each.id for each in found.checks], "it is not proven either"
    (said,) = found.unclear
    assert f"cleanup.policy={policy}, which was delete when it was written" in said
    assert "loss, gap, continuity cannot be judged" in said
    changed = results_of(monkeypatch, settings, plan, {"corrupt", "loss"})
    assert [each.id for each in changed.checks if each.count] == ["corrupt"]
    whole = results_of(monkeypatch, settings, plan, set())
    assert len(whole.checks) == len(verdict.MEANING) and not whole.unclear


def test_a_topic_that_keeps_everything_has_lost_what_is_missing(monkeypatch):
    found = results_of(monkeypatch, KEPT, plan_of(keeps=KEPT), {"loss"})
    assert [each.id for each in found.checks if each.count] == ["loss"]


# -- what the run was held to


@pytest.mark.parametrize(
    ("promised", "said", "missing"), [(0, None, 0), (4, None, 1), (4, 3, 0), (0, 5, 2), (4, 0, 0)]
)
def test_brokers_that_the_run_expected_are_expected_again(promised, said, missing):
    plan = plan_of(expected_brokers=promised)
    after = {n: dataclasses.replace(each, leader=3) for n, each in plan.after.items()}
    plan.after, plan.before[1] = after, dataclasses.replace(plan.before[1], leader=2)
    found = judging(None, plan, expected_brokers=said)._coverage(plan.after, plan.after, set())
    assert found.check.count == missing


@pytest.mark.parametrize(
    ("given", "looks", "seen"),
    [
        (["--expected-brokers=3"], 3, {1, 2, 3}),
        (["--expected-brokers=4", "--timeout=10"], 6, {1, 2, 3}),  # it does not come
        (["--expected-brokers=3", "--with-absent"], 1, {1}),
        ([], 1, {1}),
    ],
)
def test_a_plan_waits_for_the_brokers_that_are_expected(monkeypatch, given, looks, seen):
    told = []

    def describe():
        told.append(1)
        return cluster.Description("c", dict.fromkeys(range(1, min(3, len(told)) + 1), "h:1"))

    clock = SimpleNamespace(monotonic=lambda: 2.0 * len(told), sleep=lambda _seconds: None)
    monkeypatch.setattr(planning, "time", clock)
    options = job.arguments(["run", *WHERE, *given])
    found = planning.expected_brokers(options, SimpleNamespace(describe=describe))
    assert (set(found.brokers), len(told)) == (seen, looks)


def test_the_command_that_judges_again_repeats_what_was_promised():
    options = {"ledger": "/l", "expected_brokers": 3, "replication_factor": 2, "min_isr": None}
    told = sentence.what_now(options, "t", False, True)
    assert told[-1].endswith("--ledger=/l --expected-brokers=3 --replication-factor=2")


def test_what_probes_have_found_is_found_again(tmp_path):
    witness = {"broker": 1, "reason": "took a write"}
    bad = probes.Outcome("min-isr", "t-min-isr", trial.Finding(1, [witness], {"brokers": 3}))
    (begun,) = probes.open_ones(["compaction"], "ab" * 16)
    files.save_plan(str(tmp_path), plan_of(probes=probes.kept([bad, begun])))
    again = probes.known(files.load_plan(str(tmp_path)).probes)
    assert again == [bad, begun]
    made = judge.Results([verdict.Check("loss")], {}, {}, set(), None)
    found = modes._with_probes(made, again)
    assert {each.id: each.count for each in found.checks} == {"loss": 0, "durability": 1}
    (said,) = probes.unclear(found.probes)
    assert said.startswith("probe compaction could not be judged: the run ended before")


# -- signals, and a limit of time

# A job whose only step does what the test says.
PROGRAM = """
import os, signal, sys, time
sys.path.insert(0, {job!r})
import job
from types import SimpleNamespace
from flow.engine import session
from flow.messages import stopping
from flow.messages.failure import CannotRun
{before}
def index(options):
    {step}
    return 0
job.steps.index = index
raise SystemExit(job.main(["index", "--output={output}", *{options!r}]))
"""


def step(tmp_path, step, *options, before=""):
    """(exit code, standard error) of that."""
    text = PROGRAM.format(
        job=os.path.dirname(job.__file__),
        output=tmp_path,
        step=step.strip().replace("\n", "\n    "),
        before=before,
        options=list(options),
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=hang_ups_count,
    )
    return done.returncode, done.stderr


def test_who_reaches_the_limit_of_time_ends_in_order(tmp_path):
    code, said = step(tmp_path, "time.sleep(100)", "--give-up-after=0.5")
    assert code == 3 and said.startswith("could not run: it was stopped by its time limit"), said
    assert "flow_validation_timeout_seconds" in said and not os.listdir(tmp_path)
    assert step(tmp_path, "time.sleep(0.1)", "--give-up-after=100") == (0, "")


def test_a_terminal_that_goes_ends_it_in_order_unless_somebody_said_otherwise(tmp_path):
    hang_up = "os.kill(os.getpid(), signal.SIGHUP)"
    code, said = step(tmp_path, hang_up)
    assert code == 3 and "it was stopped by SIGHUP" in said, said
    ignored = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    assert step(tmp_path, hang_up, before=ignored) == (0, ""), "as with nohup"


def test_ctrl_c_while_spark_starts_is_no_fault_of_the_job(tmp_path):
    """PySpark takes the signal, and makes KeyboardInterrupt of it."""
    step_of = """
from pyspark.sql import SparkSession
def start():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
SparkSession.builder = SimpleNamespace(config=lambda map: SimpleNamespace(getOrCreate=start))
with session.work_directory() as work:
    session.start("local[1]", [], work)
"""
    code, said = step(tmp_path, step_of)
    assert code == 3 and "it was stopped by SIGINT" in said, said
    assert not os.path.exists(tmp_path / "failure.txt")


def test_ctrl_c_is_the_jobs_again_when_spark_has_started(tmp_path):
    """Before the session is made ready, which asks Spark for this and that."""
    step_of = """
from pyspark.sql import SparkSession
def ready(_level):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
def start():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return SimpleNamespace(sparkContext=SimpleNamespace(setLogLevel=ready))
SparkSession.builder = SimpleNamespace(config=lambda map: SimpleNamespace(getOrCreate=start))
stopping.check = lambda: os._exit(33)
with session.work_directory() as work:
    session.start("local[1]", [], work)
"""
    assert step(tmp_path, step_of)[0] == 33


def test_a_signal_leaves_java_to_who_has_something_to_take_back(monkeypatch):
    """It is killed as soon as they have ended; till then only Spark's tasks end."""
    told = []

    def called_off():
        told.append("called off")
        raise ConnectionRefusedError

    def context(proc):
        gateway = SimpleNamespace(proc=proc)
        return SimpleNamespace(
            sparkContext=SimpleNamespace(_gateway=gateway, cancelAllJobs=called_off)
        )

    java = SimpleNamespace(kill=lambda: told.append("killed"))
    monkeypatch.setattr(session, "_started", [context(java)])
    monkeypatch.setattr(stopping, "requested", threading.Event())
    with session.spared(True):
        pass
    assert not told, "nobody has asked for the end"
    stopping.requested.set()
    with session.spared(True):
        session.halt()
        wait_until(lambda: told, 5, "the tasks are called off")
        assert told == ["called off"]
    assert told == ["called off", "killed"]
    with session.spared(False):
        session.halt()
    assert told[2:] == ["killed"]
    monkeypatch.setattr(session, "_started", [context(None)])  # spark-submit's
    session.halt()
    wait_until(lambda: told[3:], 5, "the tasks are called off")
    assert told[3:] == ["called off"]


@pytest.mark.parametrize(("verdict_of", "code"), [("pass", 0), ("fail", 1), ("inconclusive", 2)])
def test_a_signal_behind_the_verdict_does_not_take_it_back(tmp_path, verdict_of, code):
    step_of = f"""
from flow.present import conclusion
from tests.support import verdicts
document = {{**verdicts.passing(), "verdict": {verdict_of!r}}}
conclusion.say = lambda _line: os.kill(os.getpid(), signal.SIGTERM)
conclusion.publish(options.output, "verdict", document, "report.html", "<p>")
"""
    checkout = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    known, said = step(tmp_path, step_of, before=f"sys.path.insert(0, {checkout!r})")
    assert known == code, said
    assert said == "note: the verdict was written before the end: SIGTERM came behind it\n"
    assert json.loads((tmp_path / "verdict.json").read_text())["verdict"] == verdict_of


def test_a_signal_while_traces_are_taken_back_leaves_nothing_unsaid(tmp_path):
    step_of = """
from flow.prepare.traces import Traces
def delete(topic, within):
    os.kill(os.getpid(), signal.SIGTERM)
    raise CannotRun("no answer")
traces = Traces("/l")
traces.topic = "kafkaops-flow-019a00000000"
traces.settle(SimpleNamespace(delete_topic=delete))
raise CannotRun("it is so")
"""
    code, said = step(tmp_path, step_of)
    assert (
        code == 3
        and "note: topic kafkaops-flow-019a00000000 stays, and is empty: no answer" in said
    ), said


def test_a_topic_whose_deletion_was_stopped_can_be_judged_again(tmp_path):
    def stopped(_topic):
        raise Stopped("SIGTERM")

    files.save_plan(str(tmp_path), plan_of())
    with pytest.raises(Stopped):
        modes._take_away(SimpleNamespace(delete_topic=stopped), str(tmp_path), plan_of(), {})
    assert files.load_plan(str(tmp_path)).removed == ""
    gone = SimpleNamespace(delete_topic=lambda _topic: True)
    modes._take_away(gone, str(tmp_path), plan_of(), {})
    assert files.load_plan(str(tmp_path)).removed


class InUse(cluster.Cluster):
    """Its topics end there; None: nobody answers. Knows what was `deleted`."""

    def __init__(self, end, topic_id="A1"):
        self._end, self._id, self.deleted = end, topic_id, []

    def positions(self, topic, *_more, **_options):
        if self._end is None:
            raise CannotRun("no answer")
        return partitions(self._end)

    def topic_id(self, topic):
        return self._id

    def delete_topic(self, topic, within=None):
        self.deleted.append(topic)
        return True


@pytest.mark.parametrize(
    ("topic", "asked", "stays"),
    [
        ("orders", InUse(10), ""),
        ("orders", InUse(11), "others write to it, to partitions [0, 1]"),
        ("orders", InUse(None), "is not known: no answer"),
        ("orders", InUse(10, "B2"), "made it anew"),
        ("orders", InUse(10, ""), ""),
        (TOPIC, InUse(11), ""),  # nobody else writes to one of such a name; it was judged
    ],
)
def test_a_topic_that_others_have_found_is_not_deleted(tmp_path, capsys, topic, asked, stays):
    plan = plan_of(topic=topic, topic_id="A1")
    modes._take_away(asked, str(tmp_path), plan, partitions(10))
    assert asked.deleted == ([] if stays else [topic])
    assert bool(plan.removed) is not bool(stays)
    said = capsys.readouterr().err
    assert stays in said and bool(said) is bool(stays)


@pytest.mark.parametrize(
    ("topic", "end", "ends", "stays"),
    [
        ("orders", 0, {}, ""),
        ("orders", 1, {}, "others write to it"),
        ("orders", 1, {0: 1, 1: 1}, ""),
        ("orders", 1, None, "others write to it"),
        ("orders", None, {}, "is not known"),
        (TOPIC, 1, None, ""),
    ],
)
def test_of_a_run_that_is_refused_a_topic_of_others_stays(capsys, topic, end, ends, stays):
    traces, asked = Traces("/l"), InUse(end)
    traces.topic, traces.ends = topic, ends
    traces.settle(asked)
    assert asked.deleted == ([] if stays else [topic])
    assert stays in capsys.readouterr().err


# -- options


WHERE = ["--bootstrap-servers=h:1", "--ledger=/l", "--output=/o"]


@pytest.mark.parametrize(
    ("mode", "option", "said"),
    [
        ("run", "--producer-property=metadata.broker.list=b:1", "give --bootstrap-servers"),
        ("run", "--producer-property= metadata.broker.list =b:1", "give --bootstrap-servers"),
        ("run", "--producer-property=test.mock.num.brokers=3", "a real one"),
        ("verify", "--listener=SSL=h:2", "--listener belongs to run and produce"),
        ("verify", "--producer-property=linger.ms=5", "--producer-property belongs to"),
        ("verify", "--keep", "--keep belongs to run and produce, verify writes nothing"),
        ("verify", "--records=5", "--records belongs to"),
        ("verify", "--partitions=3", "--partitions belongs to"),
        ("verify", "--rate=3", "--rate belongs to"),
        ("verify", "--intact=true", "--intact belongs to inspect, verify does not heed it"),
        ("run", "--producer-property=topic.acks=1", "topic.acks is the job's own: it is all"),
        ("run", "--where=true", "--where belongs to inspect, run does not heed it"),
        ("run", "--remove", "--remove belongs to leftovers, run does not"),
        ("produce", "--events=e", "--events belongs to run and verify, produce does not"),
        ("inspect", "--listener=SSL=h:2", "--listener belongs to run and produce, inspect does"),
        ("inspect", "--expected-brokers=3", "belongs to run, produce and verify, inspect does"),
        ("inspect", "--records=5", "--records belongs to run and produce, inspect does not"),
        ("leftovers", "--keep", "--keep belongs to run and produce, leftovers does not"),
        ("compare", "--groups=0", "--groups belongs to run, produce and verify, compare does"),
    ],
)
def test_what_would_be_ignored_or_lead_elsewhere_is_refused(capsys, mode, option, said):
    where = [each for each in WHERE if mode in ("run", "produce", "verify") or "ledger" not in each]
    topic = ["--topic=t"] if mode == "inspect" else []
    assert job.arguments([mode, *where, *topic]).mode == mode
    with pytest.raises(SystemExit) as end:
        job.arguments([mode, *where, *topic, option])
    assert end.value.code == 3 and said in capsys.readouterr().err


def test_verify_takes_what_it_heeds():
    heeded = ["--groups=0", "--min-isr=2", "--expected-brokers=3", "--topic=t", "--timeout=9"]
    assert job.arguments(["verify", *WHERE, *heeded]).groups == 0


def test_a_home_is_meant_by_its_sign():
    home = os.path.expanduser("~")
    options = ["--ledger=~/l", "--command-config=~/c", "--spark-config=~/s", "--jars=~/j"]
    chosen = job.arguments(["verify", *WHERE, *options])
    found = (chosen.ledger, chosen.command_config, chosen.spark_config, chosen.jars)
    assert found == tuple(f"{home}/{each}" for each in "lcsj")


@pytest.mark.parametrize("ledger", ["hdfs:ledger", "s3a:bucket/x"])
def test_a_uri_that_lacks_a_slash_is_no_directory(ledger):
    scheme = ledger.partition(":")[0]
    with pytest.raises(CannotRun, match=f"write {scheme}://... or"):
        place.of(ledger)
    assert place.of(f"./{ledger}").address.endswith(ledger)


@pytest.mark.parametrize(
    "option",
    ["error_cb=x", "default.topic.config=x", "delivery.report.only.error=true", "no.such=1"],
)
def test_a_setting_that_the_client_does_not_take_is_no_fault_of_the_job(option):
    options = job.arguments(["run", *WHERE, f"--producer-property={option}"])
    wrong = {**task.client_of(options, {"bootstrap.servers": "127.0.0.1:1"}), "run_id": "0" * 32}
    with pytest.raises(CannotRun, match="settings are not usable: .*; see --producer-property"):
        client_settings.refuse_wrong(wrong)


def test_client_settings_in_another_encoding_are_no_fault_of_the_job(tmp_path):
    (tmp_path / "client.properties").write_bytes("sasl.password=s\xe4sam".encode("latin-1"))
    with pytest.raises(CannotRun, match=r"the client settings cannot be read: .* is not UTF-8"):
        steps_options.clients_settings("h:1", str(tmp_path / "client.properties"))


# -- an end that is heard late


@pytest.mark.parametrize(("acked", "left"), [(9, [0]), (10, []), (12, [])])
def test_who_has_written_more_than_the_run_was_to_have_is_not_unfinished(acked, left):
    """Each partition was to end at ten; the producer was beyond that when it was told."""
    rows = [Row(0, 0, 0, "acked", 0, acked - 1, 0, acked - 1)]
    assert ledger.unfinished(rows, 1, 1, 10) == left


def test_what_one_partition_has_too_much_of_another_does_not_have():
    rows = [
        Row(0, 0, 0, "acked", 0, 119, 0, 119),
        Row(0, 0, 1, "acked", 0, 79, 0, 79),
        Row(0, 0, 1, "unknown", 80, 119, None, None, "no answer"),
    ]
    assert ledger.unfinished(rows, 2, 1, 200) == [0]
    assert ledger.unfinished(rows, 2, 1, 160) == []


# -- a run that is judged while it writes


@pytest.mark.parametrize(
    ("ended", "changes", "refused"),
    [
        (True, 0, False),
        (False, 0, False),  # killed
        (False, 2, False),  # a moment ago
        (False, 99, True),
        ("meanwhile", 1, True),
    ],
)
def test_a_run_that_goes_on_is_not_judged(tmp_path, ended, changes, refused):
    """Of a transaction that is open only a part is there: a violation, if the run were over."""
    after, looks = partitions(10), []

    def save(seconds):
        attempt = Attempt(0, 0, False, {0: 10}, seconds=seconds)
        place.of(str(tmp_path)).make("_attempts")
        text = files.sealed(attempt.to_json())
        place.of(str(tmp_path)).write(files.name_of(attempt.to_json()), text)

    def sleep(_seconds):
        looks.append(len(looks))
        if len(looks) <= changes:
            save(1.0 + len(looks))
        if ended == "meanwhile":
            files.save_plan(str(tmp_path), plan_of(after=after))

    plan = plan_of(after=after if ended is True else {})
    files.save_plan(str(tmp_path), plan)
    save(1.0)
    with (
        pytest.raises(CannotRun, match="was still going on")
        if refused
        else contextlib.nullcontext()
    ):
        modes.refuse_ongoing(str(tmp_path), plan, sleep)
    assert bool(looks) is (ended is not True)


# -- a topic of others that is large


@pytest.mark.parametrize(
    ("created", "after", "spans"),
    [
        (False, partitions(10), {0: (0, 10), 1: (0, 10), 2: (0, 0)}),
        (False, {}, {0: (0, 900), 1: (0, 900), 2: (0, 900)}),  # killed: nobody knows where it ended
        (True, partitions(10), {0: (0, 900), 1: (0, 900), 2: (0, 900)}),
    ],
)
def test_what_others_have_written_since_is_not_read(created, after, spans):
    now = {**partitions(900), 2: dataclasses.replace(partitions(900)[0], partition=2)}
    plan = plan_of(created=created, after=after)
    assert judging(None, plan)._spans(now, []) == spans


# -- groups of which nothing is left


@pytest.mark.parametrize(
    ("asked", "accused", "said"),
    [
        ({1: {"offsets.retention.minutes": "10080"}}, True, ""),
        ({1: {"offsets.retention.minutes": "60"}}, False, "and forgotten"),
        ({}, False, "DescribeConfigs"),  # this user may not ask
    ],
)
def test_what_a_group_had_committed_may_be_forgotten(asked, accused, said):
    brokers = SimpleNamespace(settings_of_brokers=lambda *_more: asked)
    started = (datetime.now(timezone.utc) - timedelta(hours=2)).isoformat()
    none = {"g": continuity.Delivery({0: None, 1: None})}
    left, told = judging(brokers, plan_of(started=started))._remembered(none, set())
    assert bool(left) is accused and said in "".join(told) and bool(told) is not accused


# -- bootstrap servers


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ({"a:1": "one"}, ""),
        ({"a:1": "one", "b:2": "one"}, ""),
        ({"a:1": "one", "b:2": ""}, ""),  # it is down
        ({"a:1": "one", "b:2": "two", "c:3": "one"}, "2 clusters (a:1, c:3: one; b:2: two)"),
    ],
)
@pytest.mark.parametrize("mode", ["run", "inspect", "compare", "leftovers"])
def test_servers_of_two_clusters_are_refused(monkeypatch, tmp_path, ids, said, mode):
    def reached(*_more):
        raise Reached

    monkeypatch.setattr(cluster, "_cluster_id", lambda _settings, server: ids[server])
    monkeypatch.setattr(session, "prepare_java", lambda _jars: [])
    for module in (modes, starting):
        monkeypatch.setattr(module, "Cluster", reached)
    where = [f"--bootstrap-servers={', '.join(ids)}", f"--output={tmp_path / 'o'}"]
    more = {"run": [f"--ledger={tmp_path / 'l'}"], "inspect": ["--topic=t"]}.get(mode, [])
    with pytest.raises(CannotRun if said else Reached) as refused:
        getattr(modes, mode)(job.arguments([mode, *where, *more]))
    assert said in str(refused.value)


def test_a_server_that_is_down_tells_no_cluster(monkeypatch):
    monkeypatch.setattr(cluster, "_ALONE_SECONDS", 0.1)
    cluster.refuse_several({"bootstrap.servers": "127.0.0.1:1,127.0.0.1:2"})


# -- other listeners


class Said:
    """An error of librdkafka."""

    def __init__(self, name, text):
        self.name, self.str = (lambda: name), (lambda: text)


@pytest.mark.parametrize(
    ("name", "said", "own"),
    [
        ("_RESOLVE", "b:9/2: Failed to resolve 'b:9': Name or service not known", True),
        ("_SSL", "ssl://b:9/2: SSL handshake failed: certificate verify failed", True),
        ("_AUTHENTICATION", "sasl_ssl://b:9/2: SASL authentication error: wrong password", True),
        ("TOPIC_AUTHORIZATION_FAILED", "Broker: Topic authorization failed", True),
        ("_TRANSPORT", "b:9/2: Disconnected: might be caused by incorrect security.protocol", True),
        ("_TRANSPORT", "b:9/2: Connect to ipv4#1.2.3.4:9 failed: Connection refused", False),
        (
            "_RESOLVE",
            "a:9/1: Failed to resolve 'a:9': Name or service not known",
            False,
        ),  # another's
    ],
)
def test_what_is_wrong_with_who_asks_is_no_violation_of_a_listener(name, said, own):
    heard = listeners.Heard()
    heard(Said(name, said))
    heard(Said("_ALL_BROKERS_DOWN", "1/1 brokers are down"))
    assert heard.of_the_client("b:9") is own
    broker = {"broker": 2, "address": "b:9", "trouble": said, "unclear": own}
    entry = {"name": "L", "bootstrap_servers": "b:9", "brokers": [broker], "trouble": None}
    plan = plan_of(listeners=[entry])
    found = (listeners.troubles(plan.listeners), listeners.unclear(plan.listeners))
    assert [len(each) for each in found] == [not own, own]


@pytest.mark.parametrize(
    ("servers", "own"), [("no-such-host.invalid:9092", True), ("127.0.0.1:1", False)]
)
def test_a_name_that_is_not_known_here_is_no_violation_and_a_refused_port_is_one(servers, own):
    there = listeners.Listener("L", {"bootstrap.servers": servers})
    tried = listeners.exercise([there], "c", "t", {1: 0}, 2, lambda: [1])
    found = (listeners.troubles(tried), listeners.unclear(tried))
    assert [len(each) for each in found] == [not own, own]


@pytest.mark.parametrize(
    ("told", "registered", "trouble", "own"),
    [
        ([[1], [1, 2]], [1, 2], None, False),  # broker 2 has just started
        ([[1]], [1, 2], "its clients are not told of it", False),
        ([[1]], [1], "broker 2 has left the cluster meanwhile", True),
    ],
)
def test_a_listener_has_time_to_learn_of_a_broker_that_is_there(
    monkeypatch, told, registered, trouble, own
):
    answers = iter(told)

    class Asking:
        """A client that is told of these brokers, one answer after another; the last one for ever."""

        last: list = []

        def __init__(self, *_more, **_settings):
            pass

        def list_topics(self, _topic, timeout):
            self.last = next(answers, self.last)
            of = {n: SimpleNamespace(host="h", port=n) for n in self.last}
            return SimpleNamespace(cluster_id="c", brokers=of)

        poll = close = lambda *_more: None

    monkeypatch.setattr("confluent_kafka.Consumer", Asking)
    monkeypatch.setattr(listeners, "_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(
        listeners._Trial, "_write", lambda _self, _topic, asked: (dict.fromkeys(asked, 0), {})
    )
    monkeypatch.setattr(listeners._Trial, "_read", lambda _self, _topic, offsets: set(offsets))
    there = listeners.Listener("L", {"bootstrap.servers": "h:1"})
    (entry,) = listeners.exercise([there], "c", "t", {1: 0, 2: 1}, 0.3, lambda: registered)
    found = {each["broker"]: (each["trouble"], each["unclear"]) for each in entry["brokers"]}
    assert found == {1: (None, False), 2: (trouble, own)}
    assert [bool(listeners.troubles([entry])), bool(listeners.unclear([entry]))] == [
        bool(trouble) and not own, own
    ]  # fmt: skip
    assert "--listener-config" not in str(listeners.unclear([entry]))


# -- what a refused run leaves


class Refusing(cluster.Cluster):
    """A controller that answers a request to create a topic with `error`, None for not at all."""

    def __init__(self, error):
        import confluent_kafka

        self._kafka, self._timeout, self._servers = confluent_kafka, 1, "h:1"
        self._error, self._heard, self._hopeless = error, cluster.LastError(), False
        self.deleted = []
        asked = SimpleNamespace(result=self._answer)
        self._admin = SimpleNamespace(
            create_topics=lambda new, **_more: {new[0].topic: asked}, poll=lambda _seconds: 0
        )

    def _answer(self, _seconds):
        raise KafkaException(KafkaError(self._error)) if self._error else TimeoutError()

    def describe(self):
        return cluster.Description("c", {1: "h:1"})

    def has_topic(self, topic):
        return False

    def positions(self, topic, *_more, **_options):
        return {}

    def delete_topic(self, topic, within=None):
        self.deleted.append(topic)
        return False


@pytest.mark.parametrize("topic", [[], ["--topic=orders"]])
@pytest.mark.parametrize(
    ("error", "said", "pending"),
    [
        (KafkaError.TOPIC_ALREADY_EXISTS, "run again", False),
        (KafkaError.POLICY_VIOLATION, "could not be created", False),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "could not be created", False),
        (KafkaError.REQUEST_TIMED_OUT, "could not be created", True),
        (KafkaError._TIMED_OUT, "could not be created", True),
        (None, "could not be created", True),
    ],
)
def test_what_the_controller_has_refused_is_neither_awaited_nor_deleted(
    capsys, error, said, pending, topic
):
    asked, traces = Refusing(error), Traces("/l")
    options = job.arguments(["run", *WHERE, *topic])
    with pytest.raises(CannotRun, match=said):
        planning.prepare(options, asked, {}, traces)
    traces.settle(asked)
    assert bool(asked.deleted) is pending
    assert ("may still come to be" in capsys.readouterr().err) is pending


@pytest.mark.parametrize(
    ("why", "ends", "said"),
    [
        (cluster.HIDDEN, False, "may be there, empty: this user may not see it. Allow it Describe"),
        (cluster.HIDDEN, True, "may still come to be"),  # nobody is made to wait for an answer
        (cluster.GONE, False, "may still come to be"),
        ("", False, "may still come to be"),
    ],
)
def test_a_topic_that_is_hidden_does_not_come_to_be_later(capsys, monkeypatch, why, ends, said):
    monkeypatch.setattr(stopping, "requested", threading.Event())
    if ends:
        stopping.requested.set()
    traces = Traces("/l")
    traces.topic, traces.pending = TOPIC, True
    asked = SimpleNamespace(
        delete_topic=lambda _topic, _within: False, why_unseen=lambda _topic: why
    )
    traces.settle(asked)
    told = capsys.readouterr().err
    assert f"note: topic {TOPIC} {said}" in told and "leftovers --remove" in told


@pytest.mark.parametrize("there", [False, True])
def test_the_ledger_of_a_run_of_which_nothing_was_taken_is_taken_back(tmp_path, there):
    ledger = tmp_path / "ledger"
    if there:
        ledger.mkdir()
    traces, plan = Traces(str(ledger)), plan_of()
    traces.made = files.new_ledger(str(ledger))
    files.first_plan(str(ledger), plan)
    (ledger / "_attempts" / "00000-00000.json").write_text("{}")
    traces.settle(None)
    assert sorted(each.name for each in ledger.iterdir()) == ["_attempts", "_plan.json"]
    traces.refused = "cd" * 16
    traces.settle(None)
    assert (ledger / "_plan.json").exists(), "it is another run's"
    traces.refused = plan.run_id
    traces.settle(None)
    assert ledger.exists() is there and not list(tmp_path.glob("ledger/*"))


def test_of_two_runs_with_one_ledger_the_second_is_refused(tmp_path):
    ledger, one = str(tmp_path / "l"), plan_of()
    assert files.new_ledger(ledger) and not files.new_ledger(ledger), "neither has begun to write"
    files.first_plan(ledger, one)
    with pytest.raises(CannotRun, match="the ledger of another run meanwhile"):
        files.first_plan(ledger, plan_of(run_id="cd" * 16))
    assert files.load_plan(ledger) == one


def test_a_run_that_is_refused_costs_the_other_one_nothing(tmp_path):
    """Both have made the directory of the attempts, and the one that is refused takes it back."""
    ledger_of = str(tmp_path / "ledger")
    assert files.new_ledger(ledger_of) and not files.new_ledger(ledger_of)
    assert files.take_back(ledger_of, True)
    files.first_plan(ledger_of, plan_of())
    assert os.listdir(tmp_path / "ledger" / "_attempts") == []


def test_a_plan_that_cannot_be_written_leaves_no_empty_one(tmp_path, monkeypatch):
    def full(*_more):
        raise OSError(28, "No space left on device")

    files.new_ledger(str(tmp_path))
    monkeypatch.setattr(files, "save_plan", full)
    with pytest.raises(OSError, match="No space"):
        files.first_plan(str(tmp_path), plan_of())
    assert os.listdir(tmp_path) == ["_attempts"]


# -- elections


@pytest.mark.parametrize(
    ("end", "leader", "seen", "suspected"),
    [
        (10, 3, [], set()),  # in sync again, and the preferred leader, days later
        (12, 3, [], set()),
        (7, 3, [], {1}),
        (7, 2, [], set()),
        (10, 3, [{"partition": 1, "leader": 3, "in_sync": [1, 2]}], {1}),  # while it was written
    ],
)
def test_a_leader_that_was_not_in_sync_once_is_suspected_where_the_end_has_fallen(
    end, leader, seen, suspected
):
    after, now = partitions(10), partitions(10)
    after[1] = dataclasses.replace(after[1], isr=(1, 2))
    now[1] = dataclasses.replace(now[1], leader=leader, end=end)
    found = judging(None, plan_of(after=after, elections=seen))._elections(now, set())
    assert set(found) == suspected


def test_what_the_watch_has_seen_is_kept_for_a_run_that_is_killed(tmp_path):
    """Each look replaces it, so that at most a second is missing; a look in vain leaves what was."""
    moments = [partitions(5), partitions(10)]
    moments[0][1] = dataclasses.replace(moments[0][1], isr=(1, 2))
    moments[1][1] = dataclasses.replace(moments[1][1], leader=3, isr=(3,), epoch=4)
    ledger, looked = str(tmp_path), threading.Event()

    def layout(_topic, **_more):
        if not moments[0]:
            looked.set()
            raise CannotRun("nobody answers")
        places = moments[0].items()
        return {n: {"leader": p.leader, "replicas": p.replicas, "isr": p.isr} for n, p in places}

    def positions(_topic, patience=None):
        return moments.pop(0) if len(moments) > 1 else moments[0]

    def keep(told):
        files.save_watched(ledger, told)
        if told["last"]["1"]["epoch"] == 4:
            moments[0] = None

    asked, before = SimpleNamespace(layout=layout, positions=positions), partitions(0)
    watch = leadership.Watch(asked, TOPIC, before)
    with watch.going_on(keep, every=0.001):
        assert looked.wait(20)
    killed = files.with_watched(ledger, plan_of(after={}, before=before, ledger_rows=None))
    assert killed.last_seen()[1] == Partition(1, 3, (1, 2, 3), (3,), 0, 10, 4)
    assert [(e["partition"], e["leader"]) for e in killed.elections] == [(1, 3)]
    assert {each["what"] for each in killed.leadership["changes"]} == {"leader", "in_sync"}
    whole = plan_of()
    assert files.with_watched(ledger, whole) == whole, "it says so itself"
    assert whole.last_seen() == whole.after


@pytest.mark.parametrize("text", [None, "{", "[]", '{"elections": []}', '{"last": {"0": {}}}'])
def test_a_watch_that_left_nothing_legible_is_none(tmp_path, text):
    files.new_ledger(str(tmp_path))
    if text is not None:
        (tmp_path / "_attempts" / "leaders").write_text(text)
    killed = plan_of(after={}, ledger_rows=None)
    assert files.with_watched(str(tmp_path), killed) == killed and not killed.last_seen()
    assert files.load_attempts(str(tmp_path)) == []


ELECTED = {"at_ms": 1, "what": "leader", "partitions": [0], "before": [1], "after": [2]}


@pytest.mark.parametrize(
    ("kept", "after", "changes"),
    [
        ({"changes": [], "left_out": 0}, partitions(7), []),
        ({"changes": [ELECTED], "left_out": 0}, partitions(7), [ELECTED]),
        ({"changes": [ELECTED], "left_out": 0}, {}, [ELECTED]),
        # nobody knows until when nothing changed; that of older versions, and of a run killed without a trace
        ({"changes": [], "left_out": 0}, {}, None),
        ({}, partitions(7), None),
        ({}, {}, None),
    ],
)
def test_that_nothing_changed_is_only_said_where_somebody_looked(kept, after, changes):
    results = SimpleNamespace(now=partitions(7))
    told = conclusion._leadership(plan_of(leadership=kept, after=after), results)
    assert (told and told["changes"]) == changes
    document = {**verdicts.passing(), "leadership": told}
    verdict_schema.check(document)
    assert ("None changed while the run wrote" in report.page(document)) is (changes == [])


@pytest.mark.parametrize(("epoch", "certain"), [(4, set()), (5, {1})])
def test_what_was_written_again_after_a_run_was_killed_is_certain(monkeypatch, epoch, certain):
    last = partitions(7, epoch=4)
    plan = dataclasses.replace(plan_of(after={}, ledger_rows=None), seen=last)
    read = {1: 6}
    asked = lambda _spark, _topic, at, *_more: {1: epoch} if at == read else {}  # noqa: E731
    monkeypatch.setattr(judge.reading, "epochs_at", asked)
    found = judging(None, plan)._elections(partitions(30), {1})
    assert set(found) == certain


# -- what attempts have written down


def attempt_of(**more):
    known = {"run_id": "ab" * 16, "acked": {0: [[0, 4, 0, 4]], 12: [[0, 2, 7, 9]]}}
    return Attempt(0, 3, False, {0: 10, 12: 9}, **{**known, **more})


@pytest.mark.parametrize(
    ("shown", "late", "looks", "acked", "unknown"),
    [
        ("whole", None, 0, 8, 12),
        ("open", "whole", 1, 8, 12),
        ("nothing", "whole", 1, 8, 12),
        ("open", None, 35, 8, 12),
        ("nothing", None, 35, 0, 20),
    ],
)
def test_what_a_task_has_written_is_never_said_to_be_of_nobody(
    tmp_path, shown, late, looks, acked, unknown
):
    """Spark has seen it end; a shared directory shows its last note late, or not at all."""
    files.new_ledger(str(tmp_path))
    kept, slept = notes.notes_of({"directory": str(tmp_path / "_attempts")}), []
    acknowledged = {0: [[0, 4, 0, 4]], 1: [[0, 2, 0, 2]]}
    of = {
        "open": Attempt(0, 3, False, {0: 6, 1: 6}, acknowledged, run_id="ab" * 16),
        "whole": Attempt(0, 3, True, {0: 10, 1: 10}, acknowledged, run_id="ab" * 16),
    }

    def show(name):
        if name in of:
            kept.save(of[name])

    show(shown)
    sleep = lambda seconds: (slept.append(seconds), show(late))  # noqa: E731
    plan = plan_of(produce_error=None)
    (found,) = steps_writing._attempts(str(tmp_path), plan, [(0, 3)], sleep)
    assert len(slept) == looks and sum(slept) in (0, 2, 70)
    counts = ledger.counts(found.rows())
    assert (counts["acked"], counts["unknown"]) == (acked, unknown)
    assert bool(plan.produce_error) is (looks == 35)
    known = steps_writing._attempts(str(tmp_path), plan, [], sleep)
    assert [each.attempt for each in known] == [3] * (shown != "nothing" or late is not None)


def test_a_ledger_of_a_newer_version_is_not_damaged(tmp_path):
    ledger_of = str(tmp_path)
    files.new_ledger(ledger_of)
    files.first_plan(ledger_of, plan_of())
    kept = notes.notes_of({"directory": str(tmp_path / "_attempts")})
    kept.save(attempt_of())
    sayings = (
        (tmp_path / files.PLAN, lambda: files.load_plan(ledger_of)),
        (tmp_path / "_attempts" / "00000-00003.json", lambda: files.load_attempts(ledger_of, broken=True)),
    )  # fmt: skip
    for path, load in sayings:
        told = json.loads(path.read_text())
        path.write_text(json.dumps({**told, "invented": 1}))
        with contextlib.suppress(CannotRun):  # one that nobody has written so is damaged
            assert load()[0].planned == {}
        told.pop("sha256")
        path.write_text(files.sealed({**told, "invented": 1}))
        with pytest.raises(
            files.AnotherVersion, match="another version of the job.*judge it with that one"
        ):
            load()


def edited(path, change):
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told["acked"].update({"0": [[0, 4, 1, 5]]}),
        lambda told: told["planned"].update({"0": 5}),
        lambda told: told.pop("sha256"),
    ],
    ids=["offset", "planned", "checksum"],
)
def test_an_attempt_that_was_changed_is_no_witness(tmp_path, change):
    files.new_ledger(str(tmp_path))
    notes.notes_of({"directory": str(tmp_path / "_attempts")}).save(attempt_of())
    assert files.load_attempts(str(tmp_path)) == [attempt_of()]
    edited(tmp_path / "_attempts" / "00000-00003.json", change)
    with pytest.raises(CannotRun, match=r"is damaged: _attempts/00000-00003.json .*SHA-256"):
        files.load_attempts(str(tmp_path))
    (unknown,) = files.load_attempts(str(tmp_path), broken=True)
    assert not unknown.acked and not unknown.planned


@pytest.mark.parametrize("broken", [True, False])
def test_a_copy_of_an_attempt_does_not_count_its_records_twice(tmp_path, broken):
    """Of a killed run there is neither a number of rows nor a digest that would show it."""
    files.new_ledger(str(tmp_path))
    notes.notes_of({"directory": str(tmp_path / "_attempts")}).save(attempt_of())
    whole = (tmp_path / "_attempts" / "00000-00003.json").read_text()
    (tmp_path / "_attempts" / "00000-00003.bak.json").write_text(whole)
    with pytest.raises(
        CannotRun, match=r"00000-00003.bak.json is a copy of .*00003.json, by which"
    ):
        files.load_attempts(str(tmp_path), broken=broken)


def test_an_attempt_of_a_version_without_checksums_is_read(tmp_path):
    files.new_ledger(str(tmp_path))
    path = tmp_path / "_attempts" / "00000-00003.json"
    old = attempt_of().to_json()
    del old["parts"], old["in_parts"]
    path.write_text(json.dumps(old))
    assert files.load_attempts(str(tmp_path)) == [attempt_of()]


def test_a_plan_without_its_checksum_is_refused_unless_its_version_had_none(tmp_path):
    files.save_plan(str(tmp_path), plan_of())
    edited(tmp_path / "_plan.json", lambda told: told.pop("sha256"))
    with pytest.raises(CannotRun, match="is damaged: _plan.json .*its SHA-256 is gone"):
        files.load_plan(str(tmp_path))
    edited(tmp_path / "_plan.json", lambda told: told.pop("cleared"))
    assert files.load_plan(str(tmp_path)) == plan_of()


class Task(produce._Task):
    """A produce task that nobody runs: its client has no broker."""

    def __init__(self, directory, records):
        settings = {
            "client": {"bootstrap.servers": "127.0.0.1:1"},
            "topic": "t",
            "run_id": "ab" * 16,
            "partitions": 2,
            "producers": 1,
            "records": records,
            "record_size": 100,
            "delivery_timeout": 9,
            "transaction_records": 0,
            "directory": str(directory),
        }
        super().__init__(settings, 0, 3)

    def hear(self, sequences):
        """Each record was acknowledged, with one of others behind it."""
        for partition in (0, 1):
            for sequence in sequences:
                self._known._acknowledged[partition].add(sequence, 2 * sequence)


def test_of_many_ranges_each_is_written_down_once(tmp_path, monkeypatch):
    """So that a second of a long run costs as much as its first, and the job's progress no more."""
    monkeypatch.setattr(produce, "PART_RANGES", 100)
    files.new_ledger(str(tmp_path))
    attempts = tmp_path / "_attempts"
    task, sizes = Task(attempts, 4000), []
    for first in range(0, 2000, 20):
        task.hear(range(first, first + 20))
        task._snapshot(False)
        sizes.append((attempts / "00000-00003.json").stat().st_size)
        (head,) = files.load_attempts(str(tmp_path), parts=False)
        assert head.acknowledged == 2 * (first + 20)
    assert max(sizes) < 2 * max(sizes[:5]), "what is written anew does not grow"
    assert sum(each.stat().st_size for each in attempts.iterdir()) > 10 * max(sizes)
    (whole,) = files.load_attempts(str(tmp_path), run_id="ab" * 16)
    expected = [[n, n, 2 * n, 2 * n] for n in range(2000)]
    assert whole.acked == {0: expected, 1: expected} and whole.acknowledged == 4000
    assert files.load_attempts(str(tmp_path), parts=False)[0].parts > 10
    part = attempts / "00000-00003-00004.ranges"
    text = part.read_text()
    part.write_text(text.replace("[[", "[[1, 1, 9999, 9999], [", 1))
    with pytest.raises(CannotRun, match="SHA-256"):
        files.load_attempts(str(tmp_path))
    part.write_text((attempts / "00000-00003-00005.ranges").read_text())
    with pytest.raises(CannotRun, match="part 4 is of another attempt"):
        files.load_attempts(str(tmp_path))
    part.unlink()
    with pytest.raises(CannotRun, match="is damaged: _attempts/00000-00003.json cannot be read"):
        files.load_attempts(str(tmp_path))


def test_parts_that_go_to_the_driver_are_written_there(tmp_path):
    files.new_ledger(str(tmp_path))
    for told in (attempt_of(parts=1), files.part_of(attempt_of(), {0: [[5, 6, 8, 9]]})):
        as_dict = told if isinstance(told, dict) else told.to_json()
        assert notes._written(str(tmp_path), files.sealed(as_dict).encode()) == {"end": None}
    (whole,) = files.load_attempts(str(tmp_path))
    assert whole.acked[0] == [[0, 4, 0, 4], [5, 6, 8, 9]]


@pytest.mark.parametrize(
    "row",
    [
        Row(0, 1, 2, "acked", 3, 4, 5, 6),
        Row(0, 1, 2, "failed", 3, 4, None, None, "MSG_SIZE_TOO_LARGE"),
        Row(0, 1, 2, "unknown", 3, 4, None, None, 'says "no" \u00e9'),
        Row(0, 1, 2, "aborted", 3, 4),
    ],
)
def test_the_digest_of_a_row_stays_what_older_ledgers_have(row):
    line = json.dumps(list(dataclasses.asdict(row).values()))
    assert files.digest([row]) == hashlib.sha256(line.encode()).hexdigest()


# -- a full disk of the ledger


def writing(error):
    """Spark, as far as the ledger's Parquet is written with it, which fails so."""

    def parquet(_path):
        raise error

    frame = SimpleNamespace(write=SimpleNamespace(parquet=parquet))
    whole = SimpleNamespace(coalesce=lambda _number: frame)
    return SimpleNamespace(createDataFrame=lambda _data, _schema: whole)


JAVA_FULL = (
    "An error occurred while calling o1.parquet.\n: java.io.IOException: No space left on device"
)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError(JAVA_FULL), "its disk is full; make room there; `job.py verify --ledger"),
        (RuntimeError("Job aborted"), "Job aborted; `job.py verify --ledger"),
    ],
)
def test_a_ledgers_copy_that_cannot_be_written_names_the_ledger(tmp_path, monkeypatch, error, said):
    files.new_ledger(str(tmp_path))
    with pytest.raises(CannotRun, match=said) as found:
        files.save_ledger(writing(error), str(tmp_path), plan_of(), [])
    assert f"the ledger {tmp_path}" in str(found.value) and "SPARK" not in str(found.value)

    def rows_frame(*_more):
        raise error

    monkeypatch.setattr(files, "rows_frame", rows_frame)  # Python hands the rows over by a file
    with pytest.raises(CannotRun) as found:
        files.save_ledger(None, str(tmp_path), plan_of(), [])
    assert ("SPARK_LOCAL_DIRS" in str(found.value)) is ("full" in said)


class FullDisk:
    """A run that wrote and judged, as modes.run sees it, whose ledger takes nothing more."""

    def __init__(self, monkeypatch, status, left):
        self.deleted, self.saved = [], []
        plan, checks = plan_of(), [verdict.Check("loss", status)]
        made = judge.Results(checks, {}, {}, set(), None)
        asked = SimpleNamespace(delete_topic=self.deleted.append)
        run = SimpleNamespace(spark=None, plan=plan, cluster=asked, for_java={})
        judged = SimpleNamespace(results=lambda: made)
        code = 1 if status else 0
        for name, value in {
            "started": lambda *_more: contextlib.nullcontext(run),
            "_probing": lambda *_more: contextlib.nullcontext(None),
            "write_records": lambda *_more: ([], []),
            "write_ledger": lambda *_more: self.full(left),
            "_judge": lambda *_more: judged,
        }.items():
            monkeypatch.setattr(modes, name, value)
        monkeypatch.setattr(modes.conclusion, "conclude", lambda *_more: code)
        monkeypatch.setattr(modes.files, "save_plan", lambda *_more: self.full(left - 1))

    @staticmethod
    def full(room):
        if room < 1:
            raise CannotRun("its disk is full") if room else OSError(28, "No space left", "/l/p")


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_full_disk_of_the_ledger_changes_no_verdict(monkeypatch, capsys, status, left):
    made = FullDisk(monkeypatch, status, left)
    assert modes.run(job.arguments(["run", *WHERE])) == status
    said = capsys.readouterr().err
    assert ("disk is full" in said) is (left == 0 or (left == 1 and not status)), said
    assert made.deleted == ([TOPIC] if left == 2 and not status else [])
    assert (f"topic {TOPIC} stays" in said) is (left < 2 and not status)


# -- every sentence has its remedy


def java(text, cause=""):
    """As Py4J tells what Java has raised."""
    told = (
        f"An error occurred while calling o9.collectToPython.\n: {text}\n\tat org.apache.spark.X\n"
    )
    return RuntimeError(told + (f"Caused by: {cause}\n\tat org.apache.kafka.Y\n" if cause else ""))


STAGE = "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times"


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (java(STAGE, "java.lang.OutOfMemoryError: Java heap space"), "spark.driver.memory"),
        (RuntimeError("An error occurred while calling o9.collect"), "more memory"),
        (java(f"{STAGE}: ExecutorLostFailure (executor 1 exited)"), "why Spark's process ended"),
        (
            java("java.lang.IllegalStateException: SparkContext was shut down"),
            "why Spark's process",
        ),
        (
            java(
                STAGE,
                "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [t]",
            ),
            "allow this user",
        ),
        (
            java(
                STAGE, "org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired"
            ),
            "until the brokers answer",
        ),
        (java("java.io.IOException: No space left on device"), "SPARK_LOCAL_DIRS"),
        (java("java.lang.RuntimeException: no such order"), "see to that"),
    ],
    ids=["heap", "gone", "executor", "shutdown", "rights", "brokers", "disk", "else"],
)
def test_brokers_are_blamed_for_what_brokers_do(error, remedy):
    why = failure.with_remedy(error, "see to that")
    assert remedy in why
    assert ("brokers" in why) is ("brokers" in remedy)

    def fails(_spans, _check):
        raise error

    with pytest.raises(CannotRun, match="Spark could not read the topic: ") as found:
        judge.reading.collect(fails, {0: (0, 9)})
    assert remedy in str(found.value)


FETCHED = (
    f"{STAGE}: org.apache.kafka.common.KafkaException: Received exception when fetching the next record from t-0."
    " If needed, please seek past the record to continue consumption."
)


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        # as seen where the directory of temporary files is mounted with noexec
        (
            "org.apache.kafka.common.KafkaException: java.lang.UnsatisfiedLinkError: /tmp/libzstd-jni-1.5.6-9.so:"
            " failed to map segment from shared object",
            "noexec",
        ),
        (
            "org.apache.kafka.common.KafkaException: java.lang.NoClassDefFoundError: Could not initialize class"
            " com.github.luben.zstd.ZstdInputStreamNoFinalizer",
            "noexec",
        ),
        (
            "org.apache.kafka.common.KafkaException: java.lang.OutOfMemoryError: Java heap space",
            "spark.driver.memory",
        ),
    ],
)
def test_a_batch_that_java_cannot_unpack_is_not_damaged(cause, remedy):
    def fails(_spans, _check):
        raise java(FETCHED, cause)

    with pytest.raises(CannotRun, match="Spark could not read the topic: ") as found:
        judge.reading.collect(fails, {0: (0, 9)}, check_crcs=False)
    assert remedy in str(found.value)


def test_a_batch_whose_bytes_are_wrong_is_damaged():
    said = str(java(FETCHED, "org.apache.kafka.common.errors.CorruptRecordException: Record is"))
    assert judge.reading.is_damage(said)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "allow this user Create on it"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "allow this user Create on it"),
        (KafkaError.POLICY_VIOLATION, "give a --topic that exists"),
        (KafkaError.INVALID_REPLICATION_FACTOR, "give another --replication-factor"),
        (KafkaError.TOPIC_EXCEPTION, "give another --topic"),
        (KafkaError._TIMED_OUT, "see that the brokers run"),
        (None, "see that the brokers run"),
    ],
)
def test_a_topic_that_is_refused_has_a_remedy(error, remedy):
    with pytest.raises(CannotRun, match=f"could not be created at h:1: .*; {remedy}"):
        Refusing(error).create_topic("t", [[1]], {})


def test_a_ledger_that_cannot_be_made_has_a_remedy(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotRun, match="give another --ledger"):
        files.new_ledger(str(tmp_path / "file" / "l"))


# -- two runs with one output directory


def test_two_runs_may_replace_one_file_at_once(tmp_path, monkeypatch):
    path, save = str(tmp_path / "verdict.json"), output._save
    others = ["of the other"]

    def saved(draft, text):
        save(draft, text)
        if others:  # between the draft and its new name
            output.write(path, others.pop())

    monkeypatch.setattr(output, "_save", saved)
    output.write(path, "of the one")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["of the one"]


def test_what_another_run_has_removed_is_no_failure(tmp_path, monkeypatch):
    def written(path, _text):
        assert path.startswith(str(tmp_path))

    monkeypatch.setattr(starting, "write", written)
    starting.refuse_unwritable(str(tmp_path))
    with progress.following(str(tmp_path), "written", 1, lambda: 1):
        pass


# -- replicas that are catching up


@pytest.mark.parametrize(
    ("was", "now", "wrong", "said"),
    [
        ({(0, 3): 5}, {(0, 3): 6}, [], "replicas of partition 0 are catching up"),
        ({(0, 3): 5}, {(0, 3): 5}, ["replicas on brokers 3, which are there, are not in sync"], ""),
        ({}, {(0, 3): 5}, [], "allow the job's principal Describe on the cluster"),
        ({(0, 3): 5}, {}, [], "allow the job's principal Describe on the cluster"),
    ],
    ids=["grows", "stands", "not-before", "not-now"],
)
def test_a_replica_that_comes_nearer_is_no_violation(was, now, wrong, said):
    late = {0: Partition(0, 1, (1, 2, 3), (1, 2), 0, 9)}
    known = verdict.progress(was, now, {0: {3}})
    moments = [standing("then", 2), verdict.Standing("now", late, 2)]
    found = verdict.durability(moments, 3, 2, [1, 2, 3], set(), [1, 2, 3], False, known)
    assert [each["reason"] for each in found.check.witnesses] == [f"now: {each}" for each in wrong]
    assert [said in each for each in found.unclear] == [True] * bool(said)


def test_a_small_timeout_makes_no_wait_for_brokers_shorter(monkeypatch):
    """What a broker needs to come into sync, or to learn of partitions, has nothing to do with it."""
    now, layouts = partitions(10), []
    late = {n: {"replicas": p.replicas, "isr": (1, 2)} for n, p in now.items()}
    whole = {n: {"replicas": p.replicas, "isr": p.isr} for n, p in now.items()}

    def layout(_topic, **_more):
        layouts.append(1)
        return late if len(layouts) < 6 else whole

    asked = SimpleNamespace(
        layout=layout,
        describe=lambda: cluster.Description("c", {1: "h:1", 2: "h:2", 3: "h:3"}),
        positions=lambda _topic, wait, known: {"wait": wait},
    )
    clock = SimpleNamespace(monotonic=lambda: 3.0 * len(layouts), sleep=lambda _seconds: None)
    monkeypatch.setattr(judge, "time", clock)
    monkeypatch.setattr(judge.room, "held", lambda *_more: {})
    found, registered, grown = judging(asked)._in_sync(now, 2)
    assert (found, registered, grown) == (now, {1, 2, 3}, {})
    assert judging(asked)._now() == {"wait": cluster.ABSENT_SECONDS}


# -- Spark that goes


@pytest.mark.parametrize(
    ("seen", "now", "gone"),
    [
        ([(0, 2, True)], 999, False),
        ([(0, 0, False)], 999, False),  # nobody waits for one
        ([(0, 2, True), (10, 0, True)], 129, False),
        ([(0, 2, True), (10, 0, True)], 130, True),
        ([(0, 0, True), (10, 1, True), (20, 0, True)], 139, False),
        ([(0, 0, True), (100, 0, False)], 999, False),
    ],
)
def test_executors_that_do_not_come_again_are_not_waited_for(seen, now, gone):
    assert executors.forsaken(seen, now) is gone


def test_what_waits_for_executors_that_are_gone_is_ended():
    jobs, cancelled, now = [7], threading.Event(), iter(range(0, 100_000, 50))
    tracker = SimpleNamespace(getActiveJobsIds=lambda: jobs, getExecutorInfos=lambda: ["driver"])
    context = SimpleNamespace(
        master="spark://h:1",
        statusTracker=lambda: tracker,
        _jsc=SimpleNamespace(sc=lambda: context),
        cancelAllJobs=cancelled.set,
    )
    spark = SimpleNamespace(sparkContext=context)
    with executors.minded(spark, 0.001, lambda: next(now)):
        assert cancelled.wait(20)
    ended = java(
        "org.apache.spark.SparkException: Job 3 cancelled as part of cancellation of all jobs"
    )
    assert "had no executor any more" in failure.with_remedy(ended, "")


@pytest.mark.parametrize("mode", ["run", "inspect", "compare"])
def test_every_mode_looks_at_its_executors_from_the_start_of_spark_on(monkeypatch, tmp_path, mode):
    minded = []

    @contextlib.contextmanager
    def looking(spark, *_more):
        minded.append(spark)
        yield

    def reached(*_more):
        raise Reached

    asked = SimpleNamespace(
        describe=lambda: cluster.Description("c", {1: "h:1"}),
        positions=lambda _topic, **_more: partitions(9),
        topic_id=lambda _topic: "",
    )
    for module in (modes, starting):
        monkeypatch.setattr(module, "Cluster", lambda *_more: asked)
        monkeypatch.setattr(module, "for_executors", reached)
    monkeypatch.setattr(starting, "prepare", lambda *_more: plan_of())
    monkeypatch.setattr(session, "prepare_java", lambda _jars: [])
    monkeypatch.setattr(session, "start", lambda *_more, **_options: "spark")
    monkeypatch.setattr(executors, "minded", looking)
    where = [WHERE[0], f"--output={tmp_path / 'o'}"]
    more = {"run": [f"--ledger={tmp_path / 'l'}"], "inspect": ["--topic=t"]}.get(mode, [])
    with pytest.raises(Reached):
        getattr(modes, mode)(job.arguments([mode, *where, *more]))
    assert minded == ["spark"]


@pytest.mark.parametrize(
    "said",
    [
        "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.",
        "org.apache.spark.SparkException: Job 1 cancelled because SparkContext was shut down",
    ],
)
def test_spark_that_has_shut_itself_down_is_no_fault_of_the_job(tmp_path, said):
    told = failure.sentence(java(said), str(tmp_path))
    assert told.startswith("Spark ended while it worked: ") and "see why Spark's process" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(111, "Connection refused"),
        ConnectionResetError(104, "Connection reset by peer"),
        Py4JNetworkError("Answer from Java side is empty"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_java_that_is_gone_is_no_broker(tmp_path, error):
    remedy = "Java ended while it worked; see whether the kernel killed it"
    memory = "more memory"
    why = failure.with_remedy(error, "see to that")
    assert why.startswith(remedy) and memory in why and "flow_validation_spark_settings" in why
    told = failure.sentence(error, str(tmp_path))
    assert told.startswith(f"Spark ended while it worked: {remedy}") and memory in told
    assert "brokers" not in why + told and not list(tmp_path.iterdir())


def test_a_ledger_that_java_cannot_take_back_any_more_is_told(capsys, monkeypatch):
    """Ctrl-C ends Java, by which alone it can be reached."""

    class Gone:
        def __getattr__(self, _name):
            raise Py4JNetworkError("Answer from Java side is empty")

    context = SimpleNamespace(_jvm=Gone(), _gateway=None, _jsc=Gone())
    monkeypatch.setattr(place, "_remote", lambda ledger: place.HadoopDirectory(context, ledger))
    traces = Traces("hdfs://nn/l")
    traces.made = True
    traces.settle(None)
    assert "what was made of the ledger hdfs://nn/l stays" in capsys.readouterr().err


# -- smaller ones


def test_what_a_topic_has_deleted_is_not_called_there():
    gone = "600 acknowledged records were deleted by the topic's retention.ms=1 before they were judged"
    kind, said = verdict.decide([], {"acked": 900}, [], [gone])
    assert (kind, said) == (verdict.INCONCLUSIVE, f"nothing wrong was found, but {gone}")


@pytest.mark.parametrize(
    ("min_isr", "acked", "told"), [(2, 0, False), (3, 0, False), (4, 0, True), (4, 1, False)]
)
def test_a_minimum_above_the_replicas_is_named_where_nothing_was_acknowledged(min_isr, acked, told):
    found = conclusion._refusing(plan_of(min_isr=min_isr), {"acked": acked})
    assert bool(found) is told
    assert (
        not told or "min.insync.replicas is 4, and there are partitions with 3 replicas" in found[0]
    )


@pytest.mark.parametrize(
    ("brokers", "number", "refused"),
    [
        ({1: {"transaction.state.log.replication.factor": "3"}}, 1, True),
        ({1: {"transaction.state.log.replication.factor": "3"}}, 3, False),
        ({1: {}}, 1, False),
        ({}, 1, False),
    ],
)
def test_transactions_that_cannot_begin_are_refused(brokers, number, refused):
    if not refused:
        return planning.refuse_states_of(brokers, number)
    with pytest.raises(
        CannotRun, match="no transaction can begin: .* is 3, and there are 1 brokers"
    ):
        planning.refuse_states_of(brokers, number)


def test_partitions_that_a_broker_does_not_know_yet_are_awaited():
    """One that has just started learns of them one by one, in any order."""
    looks = [[1, 2], [0, 2], [0, 1, 2]]

    class Starting(cluster.Cluster):
        def __init__(self):
            import confluent_kafka

            self._kafka, self._timeout = confluent_kafka, 60

        def layout(self, topic):
            known = looks.pop(0)
            return {n: {"leader": 1, "replicas": (1,), "isr": (1,)} for n in known}

        def _offsets(self, topic, layout, spec, committed=False):
            return dict.fromkeys(layout, (0, 1))

    assert sorted(Starting().positions("t")) == [0, 1, 2] and not looks


def test_partitions_that_came_while_a_topic_was_inspected_are_told():
    (said,) = inspection._others_of(dict.fromkeys([0, 1]), dict.fromkeys([0, 1, 2, 3]))
    assert said.startswith("partitions 2, 3 came to be known only while the topic was read")
    assert inspection._others_of({0: 1}, {0: 2}) == []


def test_compaction_excuses_numbers_that_are_left_out():
    asked = inspection.Expressions(sequence="offset", contiguous=True)
    assert "loss" not in inspection.left_out(asked, "delete")
    assert {"gap", "loss"} <= set(inspection.left_out(asked, "compact,delete"))


@pytest.mark.parametrize("wrong", [{"corrupt"}, {"loss"}, set()])
@pytest.mark.parametrize("now", ["LogAppendTime", "CreateTime"])
def test_another_kind_of_timestamps_since_is_no_damage(monkeypatch, now, wrong):
    judged = []

    def results(self, *_more):
        judged.append(self._sent)
        hurt = wrong & {"corrupt"} if "timestampType" in self._sent.whole else set()
        checks = [verdict.Check(n, int(n in (hurt | wrong - {"corrupt"}))) for n in verdict.MEANING]
        return judge.Results(checks, partitions(10), {}, set(), None)

    asked = SimpleNamespace(
        positions=lambda *_more, **_options: partitions(10),
        **all_apply({**KEPT, "message.timestamp.type": now}),
    )
    monkeypatch.setattr(judge.Judge, "_results", results)
    plan = plan_of(keeps=KEPT, beside=True, timestamp_type="LogAppendTime")
    found = judging(asked, plan).results()
    changed = now == "CreateTime" and wrong == {"corrupt"}
    failed = {each.id for each in found.checks if each.count}
    assert failed == (set() if changed else wrong)
    assert [("timestamps are not judged" in each) for each in found.unclear] == [True] * changed
    assert ("timestampType" in judged[-1].whole) is not changed


@pytest.mark.parametrize(
    ("more", "attempts", "after"),
    [
        ({"produce_seconds": 100.0}, [], 700),
        ({}, [50.0, 30.0], 680),  # it was killed
        ({}, [], None),  # and told nothing
        ({"produce_seconds": 1e9}, [], None),  # not after now
    ],
)
def test_a_timestamp_long_after_the_runs_end_is_damage_whenever_it_is_judged(more, attempts, after):
    month = datetime.now(timezone.utc) - timedelta(days=30)
    plan = plan_of(beside=True, timestamp_type="LogAppendTime", started=month.isoformat(), **more)
    known = [Attempt(n, 1, False, {}, seconds=each) for n, each in enumerate(attempts)]
    sent = dataclasses.replace(judging(None, plan), attempts=known)._sent
    last = int(sent.parts["timestamp"].rsplit(" ", 1)[1][:-1]) / 1e6
    began = month.timestamp()
    assert abs(last - 86_400 - (began + (after or 30 * 86_400))) < 60


def test_an_end_that_cannot_be_told_yet_is_told_later(tmp_path, monkeypatch, capsys):
    files.new_ledger(str(tmp_path))
    options = SimpleNamespace(ledger=str(tmp_path), until="", duration=0.01, beside=0, rate=100.0)
    told, set_end = [], ending.set_end

    def full_once(ledger, position):
        told.append(position)
        if len(told) < 3:
            raise OSError(28, "No space left on device", "/l/end")
        set_end(ledger, position)

    monkeypatch.setattr(ending, "set_end", full_once)
    monkeypatch.setattr(ending, "_LOOK_SECONDS", 0.001)
    with ending.ending(options, plan_of(records=10**9)) as early:
        early._watcher.join(20)
        assert not early._watcher.is_alive()
    assert len(told) == 3 and early.records() < 10**9
    said = capsys.readouterr().err
    assert said.count("cannot be told yet to end: the disk is full (/l/end)") == 1


def test_who_could_not_run_is_not_held_up_by_a_thread(tmp_path):
    """Groups wait for brokers in one."""
    step_of = """
import concurrent.futures
concurrent.futures.ThreadPoolExecutor(1).submit(time.sleep, 100)
raise CannotRun("it is so")
"""
    program = PROGRAM.split("raise SystemExit")[0]
    text = program.format(
        job=os.path.dirname(job.__file__),
        before="",
        step=step_of.strip().replace("\n", "\n    "),
    )
    text += "import runpy\nsys.argv = ['job.py', 'index', '--output=" + str(tmp_path) + "']\n"
    text += "from flow import steps\nsteps.index = index\n"
    text += "runpy.run_path(job.__file__, run_name='__main__')\n"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (3, "could not run: it is so\n")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(30, "Read-only file system", "/r/l"),
            "/r/l cannot be used (Read-only file system)",
        ),
        (
            NotADirectoryError(20, "Not a directory", "/f/l"),
            "/f/l cannot be used (Not a directory)",
        ),
        (OSError(122, "Disk quota exceeded", "/tmp/x"), "the disk is full (/tmp/x)"),
        (
            FileNotFoundError(2, "No usable temporary directory found in ['/tmp', '/']"),
            "No usable temporary directory found in ['/tmp', '/']: they are full, or may not",
        ),
    ],
)
def test_a_place_that_cannot_be_used_is_no_fault_of_the_job(tmp_path, error, said):
    assert failure.sentence(error, str(tmp_path)).startswith(said)
    assert not list(tmp_path.iterdir())


def test_a_traceback_of_long_ago_goes_with_the_next_results(tmp_path):
    (tmp_path / "failure.txt").write_text("Traceback")
    document = verdicts.passing()
    assert conclusion.publish(str(tmp_path), "verdict", document, "report.html", "page") == 0
    assert not (tmp_path / "failure.txt").exists() and (tmp_path / "verdict.json").exists()


def concluded(monkeypatch, tmp_path, checks, attempts, unclear=(), **planned):
    """(exit code, verdict.json) of a run of which these attempts have written down what they know."""
    plan = plan_of(settings={"spark_master": "spark://m:7077", "spark_cores": 8}, **planned)
    rows = [row for each in attempts for row in each.rows()]
    spark = SimpleNamespace(
        sparkContext=SimpleNamespace(master="local[*, 4]", defaultParallelism=2)
    )
    monkeypatch.setattr(conclusion, "versions", lambda _spark: {})
    monkeypatch.setattr(conclusion.report, "page", lambda _document: "")
    asked = judging(None, plan, output=str(tmp_path), events="", keep=True, topic=TOPIC)
    watch = SimpleNamespace(total=lambda: {"total": 1.0})
    asked = dataclasses.replace(asked, spark=spark, rows=rows, attempts=attempts, watch=watch)
    seen = timing.observe(timing.Clock("CreateTime", 100, 1), [])
    found = judge.Results(checks, partitions(10), {0: 10, 1: 0}, set(), seen, unclear=list(unclear))
    code = conclusion.conclude(asked, found)
    return code, json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("count, code", [(2, 1), (0, 2)], ids=["fail", "inconclusive"])
def test_what_stays_open_and_why_is_kept_beside_a_violation(monkeypatch, tmp_path, count, code):
    """An attempt has given up half of its records, and says by which errors; others are lost."""
    witness = {"partition": 0, "offset": 3, "reason": "gone"}
    check = verdict.Check("loss", count, [witness] * count)
    attempt = Attempt(
        0,
        7,
        True,
        {0: 10, 1: 10},
        {0: [[0, 9, 0, 9]]},
        errors={"_PURGE_QUEUE": 9, "TOPIC_AUTHORIZATION_FAILED": 1},
    )
    told, more = "group g was not asked", "the produce step was broken off: killed"
    done, document = concluded(
        monkeypatch, tmp_path, [check], [attempt], [told], produce_error="killed"
    )
    assert done == code
    reasons = document["unclear"]
    assert told in reasons and more in reasons
    assert "10 records unknown and 0 failed of those to be written" in reasons
    assert any("TOPIC_AUTHORIZATION_FAILED (1 times)" in each for each in reasons)
    assert all(each in document["summary"] for each in reasons)
    assert document["errors"] == attempt.errors
    if count:
        assert "besides, this stays open" in document["summary"]


def test_settings_tell_which_spark_wrote_and_which_judges(monkeypatch, tmp_path):
    _code, document = concluded(monkeypatch, tmp_path, [], [])
    assert document["settings"] == {
        "spark_master": "spark://m:7077",
        "spark_cores": 8,
        "judging_spark_master": "local[*, 4]",
        "judging_spark_cores": 2,
    }

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes: a healthy cluster passes, one that somebody spoils is found out, and nothing stays behind."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from flow.judge import verdict
from flow.messages.failure import CannotRun
from flow.prepare import java_admin
from flow.prepare.cluster import MIN_ISR, Cluster
from flow.probe import compaction, probes, refusal, retention, trial
from flow.probe.compaction import Written
from flow.probe.refusal import Place
from flow.probe.retention import Aged
from flow.probe.trial import Answer, Finding
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JError, Py4JNetworkError

from tests.spark.disturbing import accusations
from tests.support import verdict_schema
from tests.support.outside import wait_until

RUN_ID = "0123456789abcdef0123456789abcdef"
BROKERS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=6, unique=True).map(tuple)


# -- min-isr


@given(BROKERS, st.integers(1, 9))
def test_each_broker_leads_a_partition_that_is_one_short(brokers, planned):
    missing, least = refusal.absent(brokers), refusal.minimum(brokers, planned)
    assert missing not in brokers and 0 < missing < 2**31
    assert least >= 2 and least >= min(planned, len(brokers) + 1)
    wanted = refusal.assignment(brokers, least, missing)
    assert [each[0] for each in wanted] == list(brokers)
    for replicas in wanted:
        assert len(set(replicas)) == len(replicas) == least
        assert set(replicas) - set(brokers) == {missing}


REFUSED = Answer(error="NOT_ENOUGH_REPLICAS", said="Broker: Not enough in-sync replicas")


@pytest.mark.parametrize(
    "isr, answer, accused, open_words",
    [
        ((1,), REFUSED, None, ""),
        ((1,), Answer(error="NOT_ENOUGH_REPLICAS_AFTER_APPEND"), None, ""),
        ((1,), Answer(offset=0), "broker 1 acknowledged a write with 1 in sync [1] and", ""),
        # silence is neither
        ((1,), Answer(error="_MSG_TIMED_OUT", said="timed out"), None, "neither accepted nor"),
        ((1,), None, None, "no answer"),
        ((1, 2), Answer(offset=0), None, "which allows writing"),
        ((1, 2), REFUSED, None, "which allows writing"),
    ],
)
def test_an_answer_below_the_minimum_is_judged(isr, answer, accused, open_words):
    answers = {} if answer is None else {0: answer}
    witnesses, unclear = refusal.judge({0: Place(1, isr)}, 2, answers)
    assert [each["reason"].startswith(accused) for each in witnesses] == [True] * bool(accused)
    assert [open_words in each for each in unclear] == [True] * bool(open_words)


@pytest.mark.parametrize(
    "answer, accused, open_words",
    [
        (Answer(offset=0), "", ""),
        (Answer(offset=2), "refused what it then had in its log", ""),
        (REFUSED, "", "refuses writes that the minimum allows, too"),
    ],
)
def test_what_was_refused_is_not_in_the_log(answer, accused, open_words):
    witnesses, unclear = refusal.appended({0: Place(1, (1,))}, {0: answer})
    assert [accused in each["reason"] for each in witnesses] == [True] * bool(accused)
    assert [open_words in each for each in unclear] == [True] * bool(open_words)


# -- compaction

LOGS = st.lists(
    st.tuples(st.sampled_from("abcde"), st.none() | st.integers(0, 9)), min_size=1, max_size=30
).map(lambda log: [Written(offset, key, crc) for offset, (key, crc) in enumerate(log)])


@given(LOGS, st.data())
def test_any_log_that_keeps_last_values_is_innocent(log, data):
    """However far the cleaner has come."""
    old = compaction.superseded(log)
    gone = data.draw(st.sets(st.sampled_from(sorted(old)))) if old else set()
    found = [each for each in log if each.offset not in gone]
    assert not compaction.violations(log, found)
    stale = compaction.left(log, found, 5)
    assert sum(each.records for each in stale) == len(old - gone)
    assert {each.key for each in compaction.last(log).values()} == {each.key for each in log}


@given(LOGS, st.data())
def test_any_last_value_that_is_gone_is_named(log, data):
    old = compaction.superseded(log)
    victim = data.draw(st.sampled_from([each for each in log if each.offset not in old]))
    found = [each for each in log if each.offset not in old and each != victim]
    (wrong,) = compaction.violations(log, found)
    assert (wrong.offset, wrong.key) == (victim.offset, victim.key)


@pytest.mark.parametrize(
    "found, place, words",
    [
        ([(1, "a", 3), (2, "b", 9)], (2, "b"), "not what was written there"),
        ([(1, "a", 3), (2, "b", None)], (2, "b"), "not what was written there"),
        ([(1, "a", 3), (2, "b", 2), (7, "a", 1)], (7, "a"), "behind the last value of its key"),
        ([(1, "a", 3), (2, "b", 2), (7, "x", 1)], (7, "x"), "nobody wrote it there"),
        ([(2, "b", 2), (1, "a", 3)], (1, "a"), "it was read behind offset 2"),
        ([(2, "b", 2)], (1, "a"), "the last value of its key is gone"),
    ],
)
def test_what_compaction_must_not_do_is_named(found, place, words):
    log = [Written(0, "a", 1), Written(1, "a", 3), Written(2, "b", 2)]
    (wrong,) = compaction.violations(log, [Written(*each) for each in found])
    assert (wrong.offset, wrong.key) == place and words in wrong.reason


def test_all_that_is_to_be_compacted_is_pushed_out_of_the_active_segment():
    log = [
        compaction.written_of(offset, each.key, each.value)
        for offset, each in enumerate(compaction.rounds(3) + compaction.tail(3))
    ]
    pushed = sum(len(each.value) for each in compaction.tail(3))
    assert pushed > compaction.SEGMENT_BYTES
    old, final = compaction.superseded(log), compaction.last(log)
    assert len(old) > compaction.KEYS
    assert 0 < sum(each.crc is None for each in final.values()) < compaction.KEYS / 5
    turns = {log.index(each) * compaction.ROUNDS // len(log) for each in final.values()}
    assert len(turns) > 1, "last values stand all over the log"


def test_what_is_to_be_compacted_depends_on_no_default_of_the_cluster():
    """Tombstones that go at once would be last values that are gone, and a small limit refuses the tail."""
    made: dict = {}
    asked = SimpleNamespace(create_topic=lambda _topic, _replicas, config: made.update(config))
    compaction._create(SimpleNamespace(cluster=asked, replicas=list), "t")
    assert int(made["delete.retention.ms"]) >= 3_600_000
    assert int(made["max.message.bytes"]) > 1_000_000  # a batch, as librdkafka makes it


@pytest.mark.parametrize(
    "config, seconds", [({}, 40), ({1: {}}, 40), ({1: {}, 2: {compaction.BACKOFF: "20000"}}, 50)]
)
def test_the_slowest_cleaner_decides_how_long_to_wait(config, seconds):
    assert compaction.deadline_seconds(config, 10) == seconds


# -- retention


@given(st.integers(1, 3_600_000), st.floats(0.1, 600), st.integers(0, 2 * 10**12))
def test_the_young_do_not_expire_while_the_probe_looks(interval_ms, margin, now_ms):
    table = retention.timetable({1: {retention.INTERVAL: str(interval_ms)}, 2: {}}, margin)
    expiries = table.expiries_ms(now_ms)
    assert len(expiries) == retention.EXPIRING and expiries == sorted(expiries)
    assert expiries[0] <= now_ms and expiries[1] == now_ms
    assert table.wait_ms >= max(interval_ms, 300_000)
    assert now_ms + table.retention_ms > expiries[-1] + table.wait_ms


WRITTEN = [Aged(0, 0, 1000), Aged(0, 1, 2000), Aged(1, 0, 9000)]


@pytest.mark.parametrize(
    "before, now, moment_ms, hasty, late",
    [
        ({}, {0: 0, 1: 0}, 10_000, [], []),
        # retention 10 s: the first expires at 11 s, the second at 12 s, the third at 19 s
        ({}, {0: 0, 1: 0}, 12_500, [], [(0, 0), (0, 1)]),
        ({}, {0: 1, 1: 0}, 12_500, [], [(0, 1)]),
        ({}, {0: 2, 1: 0}, 12_500, [], []),
        ({0: 2}, {0: 2, 1: 0}, 12_500, [], []),
        ({}, {0: 2, 1: 0}, 11_000, [], []),  # the second 1 s too early: a clock may be ahead
        ({}, {0: 2, 1: 0}, 10_999, [(0, 1)], []),
        ({}, {0: 2, 1: 1}, 13_000, [(1, 0)], []),
        ({0: 1}, {0: 2, 1: 0}, 3000, [(0, 1)], []),
    ],
)
def test_too_early_and_too_late(before, now, moment_ms, hasty, late):
    gone = retention.went(WRITTEN, before, now, moment_ms)
    found = [(each.record.partition, each.record.offset) for each in retention.early(gone, 10_000)]
    assert found == hasty
    left = retention.overdue(WRITTEN, now, moment_ms, 10_000)
    assert [(each.partition, each.offset) for each in left] == late


def test_a_young_record_must_come_as_it_was_written():
    young = [Aged(0, 6, 0, crc=1), Aged(0, 7, 0, crc=2), Aged(1, 6, 0, crc=3), Aged(1, 7, 0, crc=4)]
    came = {(0, 7): 2, (1, 6): 9}
    assert retention.unreadable(young, came, {0: 7, 1: 6}) == young[2:]


@pytest.mark.parametrize(("ahead_ms", "hasty"), [(0, 1), (2000, 1), (5000, 0), (60_000, 0)])
def test_a_brokers_clock_that_is_ahead_deletes_nothing_too_early(ahead_ms, hasty):
    gone = retention.went(WRITTEN, {}, {0: 1, 1: 0}, 7_000)  # of 10 s, when it was 6 s old
    assert len(retention.early(gone, 10_000, ahead_ms)) == hasty


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"cleanup.policy": "delete", "retention.ms": "10000"}, ""),
        ({"cleanup.policy": "compact,delete", "retention.ms": "10000"}, ""),
        ({}, ""),
        (
            {"cleanup.policy": "compact", "retention.ms": "1"},
            "the topic has cleanup.policy=compact",
        ),
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, "the topic has retention.ms=-1"),
    ],
)
def test_what_is_deleted_late_is_a_violation_where_the_topic_explains_it(settings, why):
    assert retention.why_never(settings, 10_000) == why


@pytest.mark.parametrize(
    ("policy", "leader", "why"),
    [
        ("compact", 1, ""),
        ("compact", 2, "log.cleaner.enable is false at broker 2"),
        ("delete", 1, "the topic has cleanup.policy=delete"),
    ],
)
def test_what_is_compacted_late_is_a_violation_where_a_setting_explains_it(policy, leader, why):
    assert compaction.why_never(policy, leader, [2]) == why


@pytest.mark.parametrize(
    ("found", "unclear", "kept"),
    [
        (Finding(unclear="late"), "late", False),
        (Finding(1, [{"reason": "so"}], unclear="late"), None, True),
        (Finding(), None, False),
    ],
)
def test_what_a_probe_cannot_tell_is_no_violation(monkeypatch, found, unclear, kept):
    monkeypatch.setitem(probes.PROBES, "retention", probes.Probe("retention", lambda *_more: found))
    bench = SimpleNamespace(cluster=SimpleNamespace(delete_topic=lambda _topic, until_gone: None))
    with probes.running(["retention"], RUN_ID, bench) as outcomes:
        (told,) = outcomes("")
    assert (told.unclear, told.kept) == (unclear, kept)


# -- outcomes


def outcome(name, count=0, unclear=None):
    witnesses = [{"partition": 0, "reason": "so"}] if count else []
    return probes.Outcome(name, f"t-{name}", Finding(count, witnesses, {"a": 1}), unclear)


def test_outcomes_are_checks():
    of_run = [verdict.Check("gap"), verdict.Check("durability", 1, [{"reason": "x"}])]
    found = probes.merged(
        [*of_run, verdict.Check("emptiness")],
        [outcome("retention", unclear="no"), outcome("min-isr", 2), outcome("compaction")],
    )
    told = [(check.id, check.count) for check in found]
    assert told == [("gap", 0), ("durability", 3), ("compaction", 0), ("emptiness", 0)]
    assert found[1].witnesses == [
        {"reason": "x"}, {"topic": "t-min-isr", "partition": 0, "reason": "so"}
    ]  # fmt: skip


def test_a_probe_that_fails_itself_costs_no_verdict(monkeypatch):
    def judge(_bench, _topic):
        raise KafkaException("no such method")

    monkeypatch.setitem(probes.PROBES, "min-isr", probes.Probe("durability", judge))
    bench = SimpleNamespace(cluster=SimpleNamespace(delete_topic=lambda _topic, until_gone: None))
    with probes.running(["min-isr"], "ab" * 16, bench) as outcomes:
        (found,) = outcomes("")
    assert found.unclear == "it failed itself (KafkaException: no such method)"


@pytest.mark.parametrize(
    "gone",
    [
        CannotRun("not today"),
        ConnectionRefusedError(
            111, "Connection refused"
        ),  # what Py4J makes of a Java that was killed
        KafkaException("no such method"),
    ],
)
def test_what_was_not_let_go_is_never_deleted(gone):
    """ZooKeeper would wait for the broker that does not exist for ever."""
    deleted = []

    def failing(*_more):
        raise gone

    bench = trial.Bench(
        SimpleNamespace(create_topic=failing, delete_topic=lambda topic, **_more: deleted.append(topic)),
        {},
        SimpleNamespace(ready=lambda _topic: None, move=failing),
        (1, 2, 3), 3, 2, 1, 1,
    )  # fmt: skip
    with probes.running(["min-isr"], RUN_ID, bench) as outcomes:
        (found,) = outcomes("")
    assert (found.kept, deleted) == (True, [])
    assert "kafka-reassign-partitions.sh" in found.unclear


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Spark's Java is gone"),
        (Py4JNetworkError("Answer from Java side is empty"), "Answer from Java side is empty"),
        (Py4JError(""), "no message"),
        (TypeError("'JavaPackage' object is not callable"), "out of reach"),
    ],
)
def test_a_java_that_does_not_answer_is_told(raised, told):
    def properties():
        raise raised

    java = SimpleNamespace(util=SimpleNamespace(Properties=properties))
    spark = SimpleNamespace(_jvm=SimpleNamespace(java=java))
    with pytest.raises(CannotRun, match=told) as caught:
        java_admin.Reassigning(spark, "h:1", {}, 1).move("t", {})
    # by which the role would know that no broker answers
    assert "refused" not in str(caught.value)


@pytest.mark.parametrize(
    "count, unclear, kind, words",
    [
        (0, None, verdict.PASS, "came back"),
        (0, "no answer", verdict.INCONCLUSIVE, "probe min-isr could not be judged: no answer"),
        (1, None, verdict.FAIL, "durability: 1"),
    ],
)
def test_what_could_not_be_judged_is_no_pass(count, unclear, kind, words):
    found = [outcome("min-isr", count, unclear)]
    checks = probes.merged([], found)
    counts = {"acked": 5, "unknown": 0, "failed": 0}
    told, sentence = verdict.decide(checks, counts, [], probes.unclear(found))
    assert told == kind and words in sentence


@pytest.mark.parametrize(
    "options, words",
    [
        (["run", "--probe=min-irs"], "invalid choice: 'min-irs'"),
        (["verify", "--probe=retention"], "--probe belongs to run, verify does not"),
        (["produce", "--probe=retention"], "--probe belongs to run, produce does not"),
        (["run", "--probe=retention", "--probe-margin=0"], "--probe-margin must be from 0.001"),
    ],
)
def test_a_probe_that_cannot_be_meant_is_refused(capsys, options, words):
    import job

    with pytest.raises(SystemExit) as refused:
        job.arguments([*options, "--bootstrap-servers=h:1", "--ledger=l", "--output=o"])
    assert refused.value.code == 3 and words in capsys.readouterr().err


# -- on a real cluster


@pytest.fixture(name="admin")
def fixture_admin(cluster):
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


@pytest.fixture(name="bench")
def fixture_bench(spark, cluster):
    """Makes what a probe works with; without `margin` none has to wait for long."""

    def bench(margin=60.0, using=Cluster, timeout=20):
        settings = {"bootstrap.servers": cluster.bootstrap_servers}
        reassigning = java_admin.Reassigning(spark, cluster.bootstrap_servers, {}, timeout)
        connection = using(settings, timeout)
        return trial.Bench(connection, settings, reassigning, (1, 2, 3), 3, 2, timeout, margin)

    return bench


def try_out(name, bench, directory=""):
    """The Outcome of one probe, by itself."""
    with probes.running([name], RUN_ID, bench) as outcomes:
        (found,) = outcomes(str(directory))
    return found


def nothing_left(cluster, topics):
    """Neither in the metadata nor in ZooKeeper, where a deletion that never ends stands."""
    from kazoo.client import KazooClient

    client = KazooClient(cluster.zookeeper_connect)
    client.start(30)
    try:
        wait_until(
            lambda: not {
                name
                for path in ("/admin/delete_topics", "/brokers/topics", "/config/topics")
                for name in client.get_children(path)
            }
            & set(topics),
            30,
            f"nothing of {topics} is left",
        )
        assert not client.exists("/admin/reassign_partitions")
    finally:
        client.stop()
        client.close()


def change(servers, topic, **values):
    """Set these settings of the topic, as another admin with another client."""
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    admin = AdminClient({"bootstrap.servers": servers})
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in values.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(30)


def test_a_healthy_cluster_passes_each_probe_and_keeps_nothing(spark, cluster, tmp_path):
    import job
    from flow import steps

    names = ["min-isr", "compaction", "retention"]
    where = [f"--ledger={tmp_path / 'ledger'}", f"--output={tmp_path}", "--records=600"]
    servers = f"--bootstrap-servers={cluster.bootstrap_servers}"
    asked = [f"--probe={name}" for name in names]
    code = steps.run(job.arguments(["run", servers, *where, *asked, "--min-isr=2"]))
    found = verdict_schema.read(tmp_path / "verdict.json")
    assert (accusations(found), code, found["verdict"]) == ([], 0, "pass")
    assert found["summary"].endswith("; probes found nothing wrong: min-isr, compaction, retention")
    assert [check["id"] for check in found["checks"]][-3:] == names[1:] + ["emptiness"]
    told = {each["name"]: each for each in found["probes"]}
    assert list(told) == names and not any(each["topic_kept"] for each in told.values())
    assert told["min-isr"]["measured"].items() >= {"refused": 3, "accepted": 0}.items()
    cleaned = told["compaction"]["measured"]
    assert cleaned["read"] == cleaned["written"] - cleaned["superseded"] == cleaned["keys"]
    aged = told["retention"]["measured"]
    assert (aged["deleted"], aged["kept"]) == (18, 9)
    assert -retention.TOLERANCE_MS <= aged["earliest_after_expiry_ms"]
    page = (tmp_path / "report.html").read_text()
    assert "Probes" in page and page.count("nothing wrong") >= 3
    nothing_left(cluster, [each["topic"] for each in told.values()])


class LoweredByAnother(Cluster):
    """As soon as the topic of min-isr is there, another admin lowers its minimum."""

    def create_topic(self, topic, assignment, config):
        super().create_topic(topic, assignment, config)
        change(self._servers, topic, min_insync_replicas="1")
        settings = {"bootstrap.servers": self._servers, "acks": "all"}
        others = Producer(settings)  # tries again until brokers have heard of it
        for number in range(len(assignment)):
            others.produce(topic, b"by another", partition=number)
        assert others.flush(30) == 0


def test_a_write_that_is_accepted_below_the_minimum_is_named(bench, cluster, admin):
    found = try_out("min-isr", bench(using=LoweredByAnother))
    assert (found.finding.count, found.unclear, found.kept) == (3, None, True)
    for number, witness in enumerate(found.finding.witnesses):
        broker = number + 1
        assert (witness["partition"], witness["broker"], witness["offset"]) == (number, broker, 1)
        said = f"broker {broker} acknowledged a write with 1 in sync [{broker}] and {MIN_ISR}=2"
        assert witness["reason"] == said
    # the evidence is there, and can be deleted by everybody
    assert found.topic in admin.list_topics(timeout=30).topics
    admin.delete_topics([found.topic])[found.topic].result(30)
    nothing_left(cluster, [found.topic])


def test_a_cluster_with_kraft_takes_no_such_replicas_and_says_so(spark, bench, port_base, tmp_path):
    from tests.support.bare_cluster import BareCluster

    base = port_base + 150
    with BareCluster(directory=tmp_path, port_base=base, brokers=1, kraft=True) as kraft:
        settings = {"bootstrap.servers": kraft.bootstrap_servers}
        there = java_admin.Reassigning(spark, kraft.bootstrap_servers, {}, 20)
        of_kraft = replace(
            bench(),
            cluster=Cluster(settings, 20),
            settings=settings,
            reassigning=there,
            brokers=(1,),
        )
        found = try_out("min-isr", of_kraft)
        assert not of_kraft.cluster.has_topic(found.topic)
    assert "this cluster takes no replica on a broker that does not exist" in found.unclear
    assert (found.finding.count, found.kept) == (0, False)


class Spoiling(Cluster):
    """Another admin does something when the probe has written, and looks for the first time."""

    done = False

    def positions(self, topic, wait=0, committed=False):
        found = super().positions(topic, wait, committed)
        if found and not self.done:
            self.done = True
            self.spoil(AdminClient({"bootstrap.servers": self._servers}), topic, found)
        return found


class LastValueDeleted(Spoiling):
    def spoil(self, admin, topic, places):
        # Kafka refuses to delete records of a topic that is only compacted
        change(self._servers, topic, cleanup_policy="compact,delete", retention_ms="-1")
        place = TopicPartition(topic, 1, places[1].end - 5)

        def taken():
            try:
                admin.delete_records([place])[place].result(30)
                return True
            except KafkaException:  # not every broker has heard of the setting
                return False

        wait_until(taken, 30, "records are deleted")
        change(self._servers, topic, cleanup_policy="compact")


class NeverCompacted(Cluster):
    def create_topic(self, topic, assignment, config):
        super().create_topic(topic, assignment, config)
        change(self._servers, topic, cleanup_policy="delete")


class DeletedEarly(Spoiling):
    def spoil(self, admin, topic, places):
        place = TopicPartition(topic, 2, retention.EXPIRING + 1)
        admin.delete_records([place])[place].result(30)


class Unhurried(Cluster):
    """Nothing explains that records are still there: the settings are as they were asked for."""

    def create_topic(self, topic, assignment, config):
        super().create_topic(topic, assignment, config)
        self.asked = config
        change(self._servers, topic, cleanup_policy="delete", retention_ms="-1")

    def effective_config(self, topic, names):
        return {name: self.asked[name] for name in names if name in self.asked}


class NeverDeleted(Cluster):
    def create_topic(self, topic, assignment, config):
        super().create_topic(topic, assignment, config)
        change(self._servers, topic, retention_ms="-1")


def test_what_is_spoilt_is_found_and_named(bench, cluster, admin):
    """Four faults at once, each on a cluster of its own as far as the probe can see."""
    cases = {
        "lost": ("compaction", LastValueDeleted, 60.0),
        "stale": ("compaction", NeverCompacted, 4.0),
        "early": ("retention", DeletedEarly, 60.0),
        "late": ("retention", NeverDeleted, 4.0),
    }

    def one(number, name, using, margin):
        run_id = f"{number}" * 32
        with probes.running([name], run_id, bench(margin, using)) as outcomes:
            return outcomes("")[0]

    with ThreadPoolExecutor(len(cases)) as pool:
        running = {
            case: pool.submit(one, number, *asked)
            for number, (case, asked) in enumerate(cases.items())
        }
        found = {case: each.result() for case, each in running.items()}
    assert all(each.finding.count and each.kept for each in found.values()), found
    first = {case: each.finding.witnesses[0] for case, each in found.items()}

    written = compaction.rounds(1) + compaction.tail(1)
    log = [compaction.written_of(at, each.key, each.value) for at, each in enumerate(written)]
    final = sorted(each.offset for each in compaction.last(log).values())
    assert found["lost"].finding.count == len(final) - 5
    lost = [(w["partition"], w["offset"], w["key"]) for w in found["lost"].finding.witnesses]
    assert lost == [(1, at, log[at].key) for at in final[: verdict.WITNESSES]]
    assert first["lost"]["reason"] == "the last value of its key is gone"

    assert found["stale"].finding.count == 3 * len(compaction.superseded(log))
    assert "was not compacted within " in first["stale"]["reason"]
    assert (first["stale"]["offset"], first["stale"]["key"]) == (0, "key-0")

    hasty = [w for w in found["early"].finding.witnesses if "earlier than promised" in w["reason"]]
    places = {(w["partition"], w["offset"]) for w in hasty}
    assert places >= {(2, retention.EXPIRING)} and {number for number, _at in places} == {2}

    assert "was not deleted within " in first["late"]["reason"]
    assert {w["offset"] for w in found["late"].finding.witnesses} <= set(range(retention.EXPIRING))
    for each in found.values():
        admin.delete_topics([each.topic])[each.topic].result(30)
    nothing_left(cluster, [each.topic for each in found.values()])


@pytest.mark.parametrize("name", ["compaction", "retention"])
def test_what_is_only_late_proves_nothing(bench, cluster, name):
    found = try_out(name, bench(0.5, Unhurried))
    words = {"compaction": "was not compacted within", "retention": "was not deleted within"}
    assert found.finding.count == 0 and words[name] in found.unclear
    assert "give a greater --probe-margin" in found.unclear and not found.kept
    nothing_left(cluster, [found.topic])


def test_brokers_tell_how_far_their_clocks_are_ahead(bench, cluster):
    there = bench()
    there.cluster.create_topic("clocks", there.replicas(), {})
    assert 0 <= retention._ahead_ms(there, "clocks") < 20_000
    there.cluster.delete_topic("clocks", until_gone=True)


def test_a_run_that_ends_takes_its_probes_with_it(bench, cluster):
    """Here by Ctrl-C, long before they could be over."""
    names = ["min-isr", "retention"]
    topics = [probes.topic_of(RUN_ID, name) for name in names]
    with pytest.raises(KeyboardInterrupt):
        with probes.running(names, RUN_ID, bench(using=NeverDeleted, margin=600)):
            seen = bench().cluster
            wait_until(lambda: seen.has_topic(topics[1]), 30, "the probe has begun")
            raise KeyboardInterrupt
    assert not any(each.name.startswith("probe") for each in threading.enumerate())
    nothing_left(cluster, topics)


def test_a_probe_without_java_creates_nothing(spark, bench, cluster, admin):
    settings = {"default.api.timeout.ms": "1000", "request.timeout.ms": "1000"}
    blind = java_admin.Reassigning(spark, "127.0.0.1:1", settings, 3)
    found = try_out("min-isr", replace(bench(), reassigning=blind))
    assert found.unclear and not found.kept
    assert found.topic not in admin.list_topics(timeout=30).topics


def test_replicas_that_cannot_be_moved_are_no_secret(bench, admin, cluster):
    """Deleting the topic would never end, so it stays, and the reason says what to do."""
    able = bench()

    class Stuck:
        ready = staticmethod(able.reassigning.ready)

        @staticmethod
        def move(topic, replicas):
            raise CannotRun("not today")

    found = try_out("min-isr", replace(able, reassigning=Stuck))
    assert found.kept and "kafka-reassign-partitions.sh" in found.unclear
    assert f"topic {found.topic} has replicas on a broker that does not exist" in found.unclear
    assert found.topic in admin.list_topics(timeout=30).topics
    refusal._let_go(able, found.topic, refusal.assignment((1, 2, 3), 2, 2**31 - 1))
    admin.delete_topics([found.topic])[found.topic].result(30)
    nothing_left(cluster, [found.topic])

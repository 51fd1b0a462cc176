# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edges of the job's word: exit code 1 is a violation that was proven, and nothing else is.

Whatever else goes wrong ends with one sentence, without a traceback, and leaves nothing behind unsaid.
"""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)
from flow.messages.failure import CannotRun
from flow.prepare.cluster import Cluster
from flow.record import files
from flow.record.ledger import Row
from flow.record.schema import ACKED, FAILED
from flow.write.outcomes import all_refused

from tests.spark.disturbing import kill_producing_job, make_whole
from tests.support import verdict_schema
from tests.support.outside import wait_until
from tests.support.processes import hang_ups_count

# -- without Kafka


@pytest.mark.parametrize(
    "option",
    [
        "--partitions=-5",
        "--partitions=0",
        f"--partitions={'9' * 400}",
        f"--records={'9' * 400}",
        "--records=0",
        "--record-size=47",
        "--producers=-1",
        "--replication-factor=0",
        "--min-isr=0",
        "--expected-brokers=-1",
        "--leaving-broker=-1",
        "--groups=17",
        "--rate=-1",
        "--rate=nan",
        "--timeout=-1",
        "--timeout=0",
        "--delivery-timeout=nan",
        "--delivery-timeout=inf",
        "--probe-margin=0",
        "--producer-property=foo",
        "--producer-property==1",
        "--producer-property=acks=1",
        "--producer-property=delivery.timeout.ms=1",
        "--topic=",
    ],
)
def test_an_option_out_of_range_is_refused_and_not_replaced(option, capsys, tmp_path):
    import job

    where = ["--bootstrap-servers=h:1", f"--ledger={tmp_path}/l", f"--output={tmp_path}/o"]
    with pytest.raises(SystemExit) as ended:
        job.arguments(["run", *where, option])
    assert ended.value.code == 3
    said = capsys.readouterr().err
    assert option.split("=")[0] in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (["--help"], 0, "usage: job.py"),
        (["fetch"], 3, "has no pyspark; install the collection's requirements.txt"),
        (["run", "--bootstrap-servers=h:1", "--ledger=l", "--output=.", "--jars=/"], 3, "has no pyspark"),
    ],
)  # fmt: skip
def test_a_python_without_pyspark_is_named(tmp_path, arguments, code, said):
    import job

    # -S: without the packages that are installed
    command = [sys.executable, "-S", job.__file__, *arguments]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_while_spark_ends_takes_no_word_back(tmp_path, name):
    """The verdict is out, and its exit code stays what it was."""
    import job

    program = (
        "import os, signal, sys\n"
        f"sys.path.insert(0, {os.path.dirname(job.__file__)!r})\n"
        "import job\n"
        f"job.session.stop = lambda *_more: os.kill(os.getpid(), signal.{name})\n"
        f"raise SystemExit(job.main(['index', '--output={tmp_path}']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 runs" in done.stdout


def test_what_was_refused_altogether_is_told_by_its_error():
    refused = Row(0, 1, 0, FAILED, 0, 9, None, None, "INVALID_RECORD")
    other = Row(0, 1, 1, FAILED, 0, 2, None, None, "POLICY_VIOLATION")
    assert all_refused([other, refused]) == "INVALID_RECORD"
    assert all_refused([refused, Row(0, 1, 1, ACKED, 0, 0, 5, 5)]) == ""
    assert all_refused([]) == ""


def test_the_digest_knows_each_row_and_no_order():
    rows = [Row(0, 1, 0, ACKED, 0, 9, 100, 109), Row(1, 2, 1, ACKED, 0, 9, 0, 9)]
    assert files.digest(rows) == files.digest(rows[::-1])
    assert files.digest(rows) != files.digest(rows[:1])
    assert files.digest(rows) != files.digest([*rows, rows[0]])
    assert files.digest(rows) != files.digest([rows[0], Row(1, 2, 1, ACKED, 0, 9, 1, 10)])


def a_plan():
    from flow.record.partition import Partition

    place = Partition(0, 1, (1, 2, 3), (1, 2, 3), 0, 0)
    ends = {0: Partition(0, 1, (1, 2, 3), (1, 2, 3), 0, 9, 3)}
    return files.Plan(
        "ab", "cluster", "t", True, 9, 100, 1, 1, {1: "h:1"}, 3, 2, 3, 2, "2026-01-01T00:00:00+00:00",
        {0: place}, ends, ledger_rows=1, ledger_digest="12", topic_id="Xy1",
    )  # fmt: skip


@pytest.mark.parametrize(
    "one, another",
    [
        ('"end": 9', '"end": 8'),
        ('"topic_id": "Xy1"', '"topic_id": "Xy2"'),
        ('"record_size": 100', '"record_size": 101'),
        ('"ledger_rows": 1', '"ledger_rows": null'),
        ('"created": true', '"created": false'),
    ],
)
def test_a_plan_with_another_digit_is_refused(tmp_path, one, another):
    files.save_plan(str(tmp_path), a_plan())
    assert files.load_plan(str(tmp_path)) == a_plan()
    path = tmp_path / files.PLAN
    assert path.read_text().count(one) == 1
    path.write_text(path.read_text().replace(one, another))
    with pytest.raises(CannotRun, match="is damaged: _plan.json .* SHA-256"):
        files.load_plan(str(tmp_path))


@pytest.mark.parametrize("there, found", [(False, []), (True, ["ledger"])])
def test_an_empty_ledger_is_taken_back_and_another_is_not(tmp_path, there, found):
    ledger = tmp_path / "ledger"
    if there:
        ledger.mkdir()
    new = files.new_ledger(str(ledger))
    assert new is not there and [each.name for each in ledger.iterdir()] == [files.ATTEMPTS]
    files.take_back(str(ledger), new)
    assert [each.name for each in tmp_path.iterdir()] == found
    files.new_ledger(str(ledger))
    files.save_plan(str(ledger), a_plan())
    files.take_back(str(ledger), new)
    assert (ledger / files.PLAN).exists() and (ledger / files.ATTEMPTS).exists()


def test_an_attempt_without_a_file_is_one_of_which_nothing_is_known():
    rows = [Row(0, 1, 0, ACKED, 0, 9, 100, 109), Row(1, 2, 1, ACKED, 0, 9, 0, 9)]
    there = files.Attempt(0, 1, True, {0: 10})
    assert files.with_lost([there], rows) == [there, files.Attempt(1, 2, False, {})]
    assert files.with_lost([there], rows[:1]) == [there]


@pytest.mark.parametrize(
    "config, batch",
    [
        ({"max.message.bytes": "1048588", "segment.bytes": "1073741824"}, 0),
        ({"max.message.bytes": "1000000", "segment.bytes": "1073741824"}, 999_488),
        ({"max.message.bytes": "1048588", "segment.bytes": "16384"}, 15_872),
        ({"max.message.bytes": "600"}, 88),
        ({}, 0),
    ],
)
def test_batches_are_no_longer_than_the_topic_takes(config, batch):
    from flow.steps.planning import longest_batch

    assert longest_batch(config) == batch


@pytest.mark.parametrize(
    "most, remedy",
    [
        ({1: {"transaction.max.timeout.ms": "900000"}, 2: {}}, None),
        ({}, None),
        (
            {
                1: {"transaction.max.timeout.ms": "900000"},
                2: {"transaction.max.timeout.ms": "60000"},
            },
            "allows 60 s; give --delivery-timeout=50 or less, or raise it",
        ),
        ({1: {"transaction.max.timeout.ms": "10000"}}, "allows 10 s; raise it"),
    ],
)
def test_transactions_longer_than_brokers_allow_are_refused(most, remedy):
    import job
    from flow.steps.planning import refuse_long_transactions

    options = job.arguments(["run", "--bootstrap-servers=h:1", "--ledger=/l", "--output=/o"])
    if remedy is None:
        refuse_long_transactions(options, most)
        return
    with pytest.raises(CannotRun) as refused:
        refuse_long_transactions(options, most)
    assert str(refused.value).endswith(remedy) and "may take 130 s" in str(refused.value)


# -- with Kafka


@pytest.fixture
def main(spark, cluster, tmp_path, monkeypatch, capfd):
    """The whole program in this process: (exit code, what it said on stderr)."""
    import job

    monkeypatch.setattr(job.session, "stop", lambda *_arguments: None)
    monkeypatch.setattr(job.stopping, "listen", lambda *_arguments: None)

    def main(mode, *options):
        capfd.readouterr()
        where = [f"--bootstrap-servers={cluster.bootstrap_servers}"]
        where += [f"--ledger={tmp_path}/ledger", f"--output={tmp_path}/out"]
        code = job.main([mode, *where, *options])
        said = capfd.readouterr().err
        assert "Traceback" not in said
        return code, said

    return main


@pytest.fixture(scope="module")
def admin(cluster):
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


@pytest.fixture
def topics(admin):
    """The names of all topics of the job."""
    return lambda: {
        name for name in admin.list_topics(timeout=30).topics if name.startswith("kafkaops-flow")
    }


def verdict_of(tmp_path):
    return verdict_schema.read(tmp_path / "out" / "verdict.json")


def failed(verdict):
    return {c["id"]: c["count"] for c in verdict["checks"] if c["status"] == "fail"}


@pytest.mark.parametrize(
    "options, words",
    [
        (["--producer-property=linger.msx=5"], "linger.msx"),
        (["--producer-property=max.in.flight.requests.per.connection=9"], "max.in.flight"),
        (["--partitions=2"], "too few for 3 brokers"),
        (["--producers=9", "--partitions=3"], "too many for 3 partitions"),
        (["--replication-factor=4"], "replication factor 4"),
        (["--records=2"], "too few"),
    ],
)
def test_misuse_is_a_sentence_and_leaves_no_topic(main, topics, tmp_path, options, words):
    before = topics()
    code, said = main("run", "--records=600", *options)
    assert code == 3 and said.startswith("could not run: ") and words in said
    assert topics() == before
    assert not (tmp_path / "ledger").exists()
    (tmp_path / "ledger").mkdir()
    assert main("run", "--records=600", *options)[0] == 3
    assert list((tmp_path / "ledger").iterdir()) == [], "the directory of somebody else stays"


def test_a_topic_that_the_cluster_was_asked_for_and_that_is_not_there_yet_is_told(
    main, monkeypatch, tmp_path
):
    """The controller may make it when the job has ended."""
    asked = []

    def ask(_self, topic, *_more):
        asked.append(topic)
        raise CannotRun("no answer in time")

    monkeypatch.setattr(Cluster, "create_topic", ask)
    code, said = main("run", "--records=600", "--partitions=3")
    assert code == 3 and "no answer in time" in said
    assert f"topic {asked[0]} may still come to be" in said
    assert not (tmp_path / "ledger").exists()


def test_a_topic_that_somebody_makes_meanwhile_is_never_taken_back(main, admin, monkeypatch):
    """It came after the look whether there is one, or this user may not see it."""
    topic = "of-somebody-else"
    monkeypatch.setattr(Cluster, "has_topic", lambda *_: False)
    admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(30)
    code, said = main("run", f"--topic={topic}", "--records=600")
    assert code == 3 and "already exists" in said and "lacks Describe" in said
    assert admin.list_topics(timeout=30).topics[topic].error is None, "it is somebody else's"


def test_an_output_that_cannot_be_written_is_said_before_anything_is_done(main, topics, tmp_path):
    before = topics()
    code, said = main("run", "--records=600", "--output=/proc/nope")
    assert code == 3 and "/proc/nope cannot be written" in said
    assert topics() == before and not (tmp_path / "ledger").exists()


@pytest.mark.parametrize(
    "config, options, words",
    [
        ({"cleanup.policy": "compact"}, (), "cleanup.policy=compact"),
        ({"max.message.bytes": "900"}, ("--record-size=1000",), "takes 900 bytes"),
    ],
)
def test_a_topic_that_does_not_fit_is_refused(main, admin, config, options, words):
    topic = f"unfit-{config.get('cleanup.policy', 'small')}"
    admin.create_topics([NewTopic(topic, 3, 3, config=config)])[topic].result(30)
    code, said = main("run", f"--topic={topic}", "--records=600", *options)
    assert code == 3 and words in said
    assert admin.list_topics(timeout=30).topics[topic].error is None, "it is somebody else's"


def test_records_that_all_are_refused_prove_nothing(main, admin, monkeypatch):
    """The topic becomes too small for them behind the job's look at it."""
    from flow.steps import planning

    topic = "refuses-all"
    config = {"max.message.bytes": "300"}
    admin.create_topics([NewTopic(topic, 3, 3, config=config)])[topic].result(30)
    monkeypatch.setattr(planning, "_refuse_unfit", lambda *_arguments: None)
    code, said = main("run", f"--topic={topic}", "--records=600", "--record-size=1000")
    assert code == 3 and "every record was refused (MSG_SIZE_TOO_LARGE)" in said


def test_records_of_the_greatest_size_are_taken(main, tmp_path):
    code, said = main("run", "--records=9", "--partitions=3", "--record-size=1000000")
    assert (code, failed(verdict_of(tmp_path))) == (0, {}), said


def test_a_refused_run_keeps_the_earlier_verdict_and_verify_knows_of_the_pass(main, tmp_path):
    assert main("run", "--records=600", "--partitions=3")[0] == 0
    kept = {
        name: (tmp_path / "out" / name).read_bytes() for name in ("verdict.json", "report.html")
    }
    code, said = main("run", "--records=600", "--partitions=3")
    assert code == 3 and "ledger of another run" in said
    code, said = main("verify")
    assert code == 3 and "has passed, and deleted its topic" in said
    for name, content in kept.items():
        assert (tmp_path / "out" / name).read_bytes() == content


def test_a_fault_of_the_job_itself_is_no_violation(main, monkeypatch, tmp_path):
    from flow.steps import modes

    def broken(*_arguments):
        raise ValueError("nobody thought of it")

    monkeypatch.setattr(modes, "_judge", broken)
    code, said = main("run", "--records=600", "--partitions=3")
    assert code == 3 and "ValueError: nobody thought of it" in said
    assert "records were written" in said and "stays with them" in said
    assert "broken" in (tmp_path / "out" / "failure.txt").read_text()


def parquet(tmp_path):
    (path,) = (tmp_path / "ledger").glob("*.parquet")
    return path


def truncated(tmp_path):
    path = parquet(tmp_path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def doubled(tmp_path):
    parquet(tmp_path).with_name("part-again.parquet").write_bytes(parquet(tmp_path).read_bytes())


def gone(tmp_path):
    parquet(tmp_path).unlink()


def a_row_less(tmp_path):
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    rows = spark.read.parquet(f"file://{parquet(tmp_path)}")
    spark.createDataFrame(rows.collect()[:-1], rows.schema).coalesce(1).write.parquet(
        f"file://{tmp_path}/draft"
    )
    (draft,) = (tmp_path / "draft").glob("*.parquet")
    os.replace(draft, parquet(tmp_path))


def attempts(tmp_path):
    return sorted((tmp_path / "ledger" / "_attempts").glob("*.json"))


@pytest.mark.parametrize("damage", [truncated, doubled, gone, a_row_less])
def test_a_damaged_ledger_is_mended_by_its_second_witness_or_refused(main, tmp_path, damage):
    topic = f"damaged-{damage.__name__.replace('_', '-')}"
    assert main("produce", f"--topic={topic}", "--records=600", "--partitions=3")[0] == 0
    damage(tmp_path)
    code, said = main("verify")
    assert (code, failed(verdict_of(tmp_path))) == (0, {}), said
    assert "judged by its _attempts" in said
    (tmp_path / "out" / "verdict.json").unlink()
    path = attempts(tmp_path)[0]
    path.write_text(path.read_text()[:50])
    code, said = main("verify")
    assert code == 3 and "is damaged" in said
    path.unlink()
    code, said = main("verify")
    assert code == 3 and "is damaged" in said
    assert not (tmp_path / "out" / "verdict.json").exists()


def test_a_plan_without_a_partition_is_refused_and_a_lost_attempt_is_none(main, tmp_path):
    assert main("produce", "--topic=plan-hurt", "--records=600", "--partitions=3")[0] == 0
    attempts(tmp_path)[0].write_text("{")
    assert main("verify")[0] == 0, "the Parquet says all that counts"
    path = tmp_path / "ledger" / "_plan.json"
    plan = json.loads(path.read_text())
    del plan["before"]["1"], plan["sha256"]
    path.write_text(files.sealed(plan))
    code, said = main("verify")
    assert code == 3 and "_plan.json lacks partitions" in said


def test_old_records_that_expire_and_new_partitions_are_no_violation(main, admin, tmp_path):
    """A busy topic: records of others expire, and somebody adds partitions, before it is judged."""
    topic = "busy"
    admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(30)
    others = Producer({"bootstrap.servers": admin_servers(admin)})
    for number in range(300):
        others.produce(topic, b"somebody else's", partition=number % 3)
    others.flush()
    assert main("produce", f"--topic={topic}", "--records=600")[0] == 0
    old = [TopicPartition(topic, number, 80) for number in range(3)]
    for future in admin.delete_records(old).values():
        future.result(30)
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(30)
    code, said = main("verify")
    assert (code, failed(verdict_of(tmp_path))) == (0, {}), said
    # and the other way: the first of the run's own are deleted
    own = [TopicPartition(topic, 0, 110)]
    for future in admin.delete_records(own).values():
        future.result(30)
    assert main("verify")[0] == 1
    assert failed(verdict_of(tmp_path))["gap"] == 10


def admin_servers(admin):
    return ",".join(
        str(b).rpartition("/")[0] for b in admin.list_topics(timeout=30).brokers.values()
    )


def test_partitions_that_are_added_while_it_runs_are_no_violation(main, admin, monkeypatch):
    topic = "grows"
    admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(30)
    cut = Cluster.positions

    def positions(self, name, wait=0, committed=False, known=(), **more):
        if name == topic and known:  # behind the last record
            if len(admin.list_topics(topic, timeout=30).topics[topic].partitions) == 3:
                admin.create_partitions([NewPartitions(topic, 4)])[topic].result(30)
                wait_until(lambda: len(self.layout(topic)) == 4, 30, "the partition is known")
        return cut(self, name, wait, committed, known, **more)

    monkeypatch.setattr(Cluster, "positions", positions)
    assert main("run", f"--topic={topic}", "--records=600")[0] == 0


def test_a_topic_of_its_own_keeps_everything_whatever_the_defaults(main, admin, tmp_path):
    assert main("produce", "--topic=own", "--records=600", "--partitions=3")[0] == 0
    resource = ConfigResource(ConfigResource.Type.TOPIC, "own")
    config = admin.describe_configs([resource])[resource].result(30)
    wanted = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    wanted["segment.bytes"] = str(2**30)
    assert {name: config[name].value for name in wanted} == wanted
    assert not any(config[name].is_default for name in wanted), "they are the topic's own"


def test_a_run_that_lacks_a_broker_lacks_it_when_it_is_judged_again(main, tmp_path):
    assert main("run", "--records=600", "--expected-brokers=4")[0] == 1
    assert main("verify")[0] == 1
    assert failed(verdict_of(tmp_path)) == {"coverage": 1}


def test_a_topic_that_somebody_has_deleted_since_accuses_nobody(main, admin, tmp_path):
    assert main("produce", "--topic=deleted-since", "--records=600", "--partitions=3")[0] == 0
    Cluster({"bootstrap.servers": admin_servers(admin)}, 30).delete_topic(
        "deleted-since", until_gone=True
    )
    code, said = main("verify")
    assert code == 3 and "the topic deleted-since is not there any more" in said


def test_a_topic_that_was_created_again_is_named(main, admin, tmp_path):
    assert main("produce", "--topic=created-again", "--records=600", "--partitions=3")[0] == 0
    plan = files.load_plan(str(tmp_path / "ledger"))
    assert plan.topic_id, "the cluster gives ids"
    Cluster({"bootstrap.servers": admin_servers(admin)}, 30).delete_topic(
        "created-again", until_gone=True
    )
    new = NewTopic("created-again", 3, 3)
    admin.create_topics([new])["created-again"].result(30)
    assert main("verify")[0] == 1
    (gap,) = [c for c in verdict_of(tmp_path)["checks"] if c["id"] == "gap"]
    assert "was deleted and created again" in gap["witnesses"][0]["reason"]


def test_durability_is_judged_when_the_records_are_read_too(main, spark, cluster, tmp_path, admin):
    from flow.prepare.java_admin import Reassigning

    assert main("produce", "--topic=thinner", "--records=600", "--partitions=3")[0] == 0
    declared = ("--replication-factor=3", "--min-isr=1")
    assert main("verify", *declared)[0] == 0
    Reassigning(spark, cluster.bootstrap_servers, {}, 60).move("thinner", {0: [1]})
    assert main("verify", *declared)[0] == 1
    (check,) = [c for c in verdict_of(tmp_path)["checks"] if c["id"] == "durability"]
    assert [(w["partition"], w["reason"]) for w in check["witnesses"]] == [
        (0, "when the records were read: 1 replicas instead of 3")
    ]
    thinner = Cluster({"bootstrap.servers": cluster.bootstrap_servers}, 30)
    thinner.set_config("thinner", {"min.insync.replicas": "1"})
    assert main("verify", "--replication-factor=3", "--min-isr=2")[0] == 1
    assert failed(verdict_of(tmp_path))["durability"] == 2


def test_a_reassignment_that_goes_on_is_no_violation(main, spark, cluster, tmp_path, admin):
    """Its new replica is listed with the old ones, and is not in sync before it has everything."""
    from flow.prepare.java_admin import Reassigning

    topic = "moving"
    new = NewTopic(topic, 3, replica_assignment=[[1, 2], [2, 1], [2, 1]])
    admin.create_topics([new])[topic].result(30)
    records = ("--records=30000", "--record-size=1000", "--groups=0")
    assert main("produce", f"--topic={topic}", "--replication-factor=2", *records)[0] == 0
    slow = dict.fromkeys((f"{r}.replication.throttled.rate" for r in ("leader", "follower")), "1")
    set_on_brokers(admin, cluster, slow)
    # brokers hear of these when they change, and not of a topic that is created with them
    throttled = (f"{role}.replication.throttled.replicas" for role in ("leader", "follower"))
    asked = Cluster({"bootstrap.servers": admin_servers(admin)}, 30)
    asked.set_config(topic, dict.fromkeys(throttled, "*"))
    wait_until(
        lambda: list(asked.broker_config([1, 2, 3], tuple(slow)).values()) == [slow] * 3,
        30,
        "every broker moves slowly",
    )
    try:
        with pytest.raises(CannotRun, match="still being moved"):
            Reassigning(spark, cluster.bootstrap_servers, {}, 2).move(topic, {0: [1, 3]})
        code, said = main("verify", "--timeout=10")
        found = verdict_of(tmp_path)
        assert (code, failed(found)) == (2, {}), said
        assert any("partition 0 are being reassigned" in each for each in found["unclear"]), said
    finally:
        set_on_brokers(admin, cluster, dict.fromkeys(slow, "100000000"))
    Reassigning(spark, cluster.bootstrap_servers, {}, 60).move(topic, {0: [1, 2]})
    make_whole(cluster)


def set_on_brokers(admin, cluster, values):
    """Change these settings of all brokers, while they run."""
    for number in cluster.broker_instances:
        changes = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in values.items()
        ]
        kind = ConfigResource.Type.BROKER
        resource = ConfigResource(kind, str(number), incremental_configs=changes)
        admin.incremental_alter_configs([resource])[resource].result(30)


@pytest.mark.parametrize(
    "killed", [pytest.param(False, marks=pytest.mark.soak), True], ids=["ended", "killed"]
)
def test_loss_by_an_unclean_election_is_told_as_that_whatever_was_written_since(
    main, cluster, tmp_path, killed
):
    """Records are acknowledged by the last broker in sync; it dies, another one leads that has none
    of them, and others write on. The job that wrote them came to its end, or was killed."""
    topic = f"unclean-{killed}"
    config = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    new = NewTopic(topic, 3, replica_assignment=[[1, 2, 3]] * 3, config=config)
    # of its own: one that has seen controllers go may ask one of those
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([new])[topic].result(30)
    brokers = cluster.broker_instances
    asked = Cluster({"bootstrap.servers": cluster.bootstrap_servers}, 60)

    def layout():
        return asked.layout(topic).values()

    try:
        for number in (2, 3):
            brokers[number].kill()
        wait_until(lambda: all(each["isr"] == (1,) for each in layout()), 60, "1 is alone")
        wait_until(lambda: set(asked.describe().brokers) == {1}, 60, "2 and 3 are forgotten")
        if killed:
            for_long = ("--duration=10m", "--rate=600", "--groups=0")
            kill_producing_job(cluster, tmp_path, f"--topic={topic}", *for_long)
        else:
            assert main("produce", f"--topic={topic}", "--records=600", "--groups=0")[0] == 0
        brokers[1].kill()
        for number in (2, 3):
            brokers[number].start()
        wait_until(lambda: all(each["leader"] in (2, 3) for each in layout()), 60, "2 or 3 leads")
        others = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        for number in range(9000):
            others.produce(topic, b"somebody else's", partition=number % 3)
        assert others.flush(60) == 0
    finally:
        make_whole(cluster)
    assert main("verify")[0] == 1
    found = verdict_of(tmp_path)
    lost = failed(found)["loss"]
    assert lost == found["counts"]["acked"]
    # behind the last record of a run that came to its end nobody reads
    assert found["counts"]["others"] == (9000 if killed else lost)
    assert lost > 1000 if killed else lost == 600
    assert not {"corrupt", "phantom"} & set(failed(found))
    (durability,) = [c for c in found["checks"] if c["id"] == "durability"]
    assert "an unclean election: " in durability["witnesses"][0]["reason"]
    assert f"{lost:,} acknowledged records are lost (partition" in found["summary"]
    assert "an unclean election" in found["summary"]


# -- as a process of its own


def started(cluster, tmp_path, *options):
    import job

    where = [f"--bootstrap-servers={cluster.bootstrap_servers}", f"--output={tmp_path}/out"]
    command = [sys.executable, job.__file__, *options, *where, f"--ledger={tmp_path}/ledger"]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hang_ups_count,
    )


def running(group):
    """Whether a process of the group is there."""
    try:
        os.killpg(group, 0)
        return True
    except ProcessLookupError:
        return False


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        *(pytest.param(n, marks=pytest.mark.soak) for n in (signal.SIGINT, signal.SIGHUP)),
    ],
    ids=lambda n: n.name,
)
def test_a_signal_ends_it_within_seconds_and_in_order(cluster, topics, tmp_path, number):
    """To the whole group, as a terminal's Ctrl-C goes."""
    from tests.spark.disturbing import started_records

    process = started(cluster, tmp_path, "run", "--records=50000000", "--master=local[2]")
    try:
        ledger = tmp_path / "ledger"
        wait_until(lambda: ledger.exists() and started_records(ledger) > 1000, 90, "records flow")
        began = time.monotonic()
        os.killpg(process.pid, number)
        _out, said = process.communicate(timeout=30)
        took = time.monotonic() - began
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
    assert process.returncode == 3, said
    assert f"could not run: it was stopped by {number.name}" in said
    assert "Traceback" not in said and len(said.splitlines()) <= 7, said
    assert took < 15
    topic = files.load_plan(str(ledger)).topic
    assert topic in topics() and f"topic {topic} stays" in said
    wait_until(lambda: not running(process.pid), 20, "nothing of it is left")


def test_ctrl_c_in_a_probe_takes_back_what_nobody_could_delete(cluster, topics, tmp_path):
    """While its topic has replicas on a broker that does not exist."""
    many = ("--records=50000000", "--master=local[2]", "--probe=min-isr")
    process = started(cluster, tmp_path, "run", *many)

    def of_the_probe():
        return {each for each in topics() if each.endswith("-min-isr")}

    try:
        wait_until(of_the_probe, 90, "the probe has begun")
        os.killpg(process.pid, signal.SIGINT)
        _out, said = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
    assert process.returncode == 3 and "it was stopped by SIGINT" in said, said
    assert "broker that does not exist" not in said and "Traceback" not in said, said
    wait_until(lambda: not of_the_probe(), 20, "its topic is gone")
    wait_until(lambda: not running(process.pid), 20, "nothing of it is left")


@pytest.mark.soak
def test_who_judges_a_run_in_transactions_while_it_writes_accuses_nobody(main, cluster, tmp_path):
    """Its last transactions are open, so only a part of each is there."""
    from tests.spark.disturbing import started_records

    many = ("--records=50000000", "--transactional", "--groups=0")
    process = started(cluster, tmp_path, "produce", *many, "--master=local[1]")
    try:
        ledger = tmp_path / "ledger"
        wait_until(lambda: ledger.exists() and started_records(ledger) > 1000, 90, "records flow")
        code, said = main("verify")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    assert code == 3 and "was still going on; judge it when it has ended" in said, said


def test_a_master_that_is_not_there_is_a_sentence(cluster, topics, tmp_path):
    before = topics()
    process = started(cluster, tmp_path, "run", "--records=600", "--master=spark://127.0.0.1:1")
    _out, said = process.communicate(timeout=200)
    assert process.returncode == 3 and "Traceback" not in said
    assert "Spark did not start with master spark://127.0.0.1:1: " in said
    assert "None.org" not in said and topics() == before


def test_what_nobody_may_catch_by_accident():
    from flow.messages.failure import Stopped, sentence

    assert not issubclass(Stopped, Exception)
    assert sentence(CannotRun("it is so"), "") == "it is so"
    assert "disk is full (/l/x)" in sentence(OSError(28, "No space left on device", "/l/x"), "")

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each launcher does its real work, on a cluster that the launchers themselves started.

One ZooKeeper and one broker of the 3.9 line, and one KRaft node of 4.3, whose tools have other
classes. What was started is stopped by process id.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import urllib.request

import pytest

from tests.support.outside import free_port, wait_until

TOPIC = "launched"
RECORDS = [f"key-{number}:value {number}" for number in range(20)]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Release:
    """An installed release, its tools by name, and the daemons that were started with it."""

    def __init__(self, home, workdir):
        self.home = home
        self.workdir = workdir
        self.bootstrap = ""
        # 4.x prints a warning to stdout if it is called in the old way
        self.reader_option = self.formatter_option = "--property"
        self.used = set()
        self.daemons = []

    def run(self, tool, *arguments, stdin="", status=0):
        """Run a tool to its end; returns its stdout. Fails with all it said on another status."""
        self.used.add(tool)
        done = subprocess.run(
            [str(self.home / "bin" / f"{tool}.sh"), *map(str, arguments)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == status, f"{tool}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def ask(self, tool, *arguments, **more):
        """Run a tool that takes --bootstrap-server."""
        return self.run(tool, "--bootstrap-server", self.bootstrap, *arguments, **more)

    def start(self, tool, *arguments, log):
        """Start a daemon in the background; its output goes to the file `log`."""
        self.used.add(tool)
        environment = {**os.environ, "KAFKA_HEAP_OPTS": "-Xmx512m"}
        environment["KAFKA_JVM_PERFORMANCE_OPTS"] = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
        with open(self.workdir / log, "wb") as stream:
            process = subprocess.Popen(
                [str(self.home / "bin" / f"{tool}.sh"), *map(str, arguments)],
                env=environment,
                cwd=self.workdir,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        self.daemons.append(process)
        return process

    def stop(self, *processes):
        """Stop daemons, by default all of them, in the opposite order of their start."""
        for process in processes or self.daemons[::-1]:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def write(self, name, text):
        """Write a file of settings; returns its path."""
        path = self.workdir / name
        path.write_text(text)
        return path


@pytest.fixture(scope="module", name="ensemble")
def make_ensemble(installed, tmp_path_factory):
    """One ZooKeeper, from its own archive."""
    release = Release(installed("zookeeper", "3.9.5"), tmp_path_factory.mktemp("zookeeper"))
    port = free_port()
    config = release.write(
        "zoo.cfg",
        f"tickTime=500\ndataDir={release.workdir}/data\nclientPort={port}\n"
        "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n",
    )
    release.start("zookeeper-server-start", config, log="zookeeper.log")
    release.port = port
    release.address = f"127.0.0.1:{port}"
    try:
        wait_until(lambda: listens(port), 60, "ZooKeeper listens")
        yield release
    finally:
        release.stop()


@pytest.fixture(scope="module", name="kafka")
def make_kafka(installed, ensemble, tmp_path_factory):
    """One broker of the ZooKeeper line, with two log directories and an authorizer."""
    release = Release(installed("kafka", "3.9.2"), tmp_path_factory.mktemp("kafka"))
    port = free_port()
    release.bootstrap = f"127.0.0.1:{port}"
    release.log_dirs = [release.workdir / "log-1", release.workdir / "log-2"]
    config = release.write(
        "server.properties",
        f"broker.id=1\nlisteners=PLAINTEXT://127.0.0.1:{port}\n"
        f"zookeeper.connect={ensemble.address}/kafka\n"
        f"log.dirs={','.join(map(str, release.log_dirs))}\n"
        "offsets.topic.num.partitions=1\noffsets.topic.replication.factor=1\n"
        "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
        "group.initial.rebalance.delay.ms=0\nauto.create.topics.enable=false\n"
        "authorizer.class.name=kafka.security.authorizer.AclAuthorizer\n"
        "allow.everyone.if.no.acl.found=true\nsuper.users=User:ANONYMOUS\n",
    )
    broker = release.start("kafka-server-start", config, log="server.log")
    try:
        wait_until(lambda: broker.poll() is not None or listens(port), 60, "the broker listens")
        assert broker.poll() is None, (release.workdir / "server.log").read_text()[-3000:]
        release.ask("kafka-topics", "--create", "--topic", TOPIC, "--partitions", 2)
        produce(release)
        yield release
    finally:
        release.stop()


def produce(release):
    release.ask(
        "kafka-console-producer",
        *("--topic", TOPIC, release.reader_option, "parse.key=true"),
        *(release.reader_option, "key.separator=:"),
        stdin="\n".join(RECORDS) + "\n",
    )


def consume(release, count, *more):
    text = release.ask(
        "kafka-console-consumer",
        *("--topic", TOPIC, "--from-beginning", "--max-messages", count, "--timeout-ms", 20000),
        *(release.formatter_option, "print.key=true", release.formatter_option, "key.separator=:"),
        *more,
    )
    return text.splitlines()


def end_offsets(release, *more):
    """{partition: offset} as kafka-get-offsets prints it."""
    lines = release.ask("kafka-get-offsets", "--topic", TOPIC, *more).split()
    return {int(line.split(":")[1]): int(line.split(":")[2]) for line in lines}


def test_topics_describe_and_list(kafka):
    described = kafka.ask("kafka-topics", "--describe", "--topic", TOPIC)
    assert "PartitionCount: 2" in described and "Isr: 1" in described
    assert TOPIC in kafka.ask("kafka-topics", "--list").split()


def test_console_round_trip(kafka):
    assert sorted(consume(kafka, len(RECORDS))) == sorted(RECORDS)


def test_configs_alter_and_describe(kafka):
    entity = ("--entity-type", "topics", "--entity-name", TOPIC)
    kafka.ask("kafka-configs", "--alter", *entity, "--add-config", "retention.ms=86400000")
    assert "retention.ms=86400000" in kafka.ask("kafka-configs", "--describe", *entity)
    kafka.ask("kafka-configs", "--alter", *entity, "--delete-config", "retention.ms")
    assert "retention.ms" not in kafka.ask("kafka-configs", "--describe", *entity)


def test_consumer_groups_describe_and_reset(kafka):
    consume(kafka, len(RECORDS), "--group", "readers")
    rows = [
        line.split()
        for line in kafka.ask(
            "kafka-consumer-groups", "--describe", "--group", "readers"
        ).splitlines()
        if line.startswith("readers")
    ]
    assert len(rows) == 2 and {row[5] for row in rows} == {"0"}
    kafka.ask(
        "kafka-consumer-groups",
        *("--group", "readers", "--topic", TOPIC, "--reset-offsets", "--to-earliest", "--execute"),
    )
    described = kafka.ask("kafka-consumer-groups", "--describe", "--group", "readers")
    lag = sum(int(line.split()[5]) for line in described.splitlines() if line.startswith("readers"))
    assert lag == len(RECORDS)


def test_get_offsets_and_run_class(kafka):
    assert sum(end_offsets(kafka).values()) >= len(RECORDS)
    by_class = kafka.run(
        "kafka-run-class",
        *("org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", kafka.bootstrap),
        *("--topic", TOPIC),
    )
    assert by_class == kafka.ask("kafka-get-offsets", "--topic", TOPIC)


def test_dump_log_shows_the_records_of_a_real_segment(kafka):
    segments = [
        path
        for directory in kafka.log_dirs
        for path in directory.glob(f"{TOPIC}-*/00000000000000000000.log")
    ]
    text = kafka.run("kafka-dump-log", "--print-data-log", "--files", ",".join(map(str, segments)))
    for record in RECORDS:
        assert f"payload: {record.split(':')[1]}\n" in text


def moved_partition(kafka):
    """(partition 0's directory's index, the index of the other log directory)"""
    here = [number for number, path in enumerate(kafka.log_dirs) if (path / f"{TOPIC}-0").exists()]
    return here[0], 1 - here[0]


def test_reassign_moves_a_partition_to_the_other_log_directory(kafka):
    _here, there = moved_partition(kafka)
    target = kafka.log_dirs[there]
    move = {"topic": TOPIC, "partition": 0, "replicas": [1], "log_dirs": [str(target)]}
    plan = kafka.write("move.json", json.dumps({"version": 1, "partitions": [move]}))
    kafka.ask("kafka-reassign-partitions", "--reassignment-json-file", plan, "--execute")
    wait_until(
        lambda: "still in progress"
        not in kafka.ask("kafka-reassign-partitions", "--reassignment-json-file", plan, "--verify"),
        60,
        "the move is complete",
    )
    assert moved_partition(kafka)[0] == there
    described = kafka.ask("kafka-log-dirs", "--describe", "--topic-list", TOPIC)
    answer = json.loads(described.splitlines()[-1])
    places = {
        partition["partition"]: (directory["logDir"], partition["size"])
        for directory in answer["brokers"][0]["logDirs"]
        for partition in directory["partitions"]
    }
    assert places[f"{TOPIC}-0"][0] == str(target)
    assert sum(size for _directory, size in places.values()) > 0


def leader_of(kafka, topic):
    return re.search(r"Leader: (\d+)", kafka.ask("kafka-topics", "--describe", "--topic", topic))[1]


def test_leader_election_moves_leadership_to_the_preferred_broker(kafka):
    port = free_port()
    settings = (kafka.workdir / "server.properties").read_text()
    settings = settings.replace("broker.id=1", "broker.id=2").replace(
        kafka.bootstrap, f"127.0.0.1:{port}"
    )
    settings = re.sub("log.dirs=.*", f"log.dirs={kafka.workdir}/second", settings)
    second = kafka.start(
        "kafka-server-start", kafka.write("second.properties", settings), log="second.log"
    )
    wait_until(
        lambda: "(id: 2 " in kafka.ask("kafka-broker-api-versions"), 60, "broker 2 is registered"
    )
    kafka.ask("kafka-topics", "--create", "--topic", "elected", "--replica-assignment", "1:2")
    swap = {"topic": "elected", "partition": 0, "replicas": [2, 1]}
    plan = kafka.write("swap.json", json.dumps({"version": 1, "partitions": [swap]}))
    kafka.ask("kafka-reassign-partitions", "--reassignment-json-file", plan, "--execute")
    assert leader_of(kafka, "elected") == "1"
    kafka.ask(
        "kafka-leader-election",
        *("--election-type", "preferred", "--topic", "elected", "--partition", 0),
    )
    wait_until(lambda: leader_of(kafka, "elected") == "2", 60, "broker 2 leads")
    kafka.ask("kafka-topics", "--delete", "--topic", "elected")
    kafka.stop(second)


def test_producer_and_consumer_performance(kafka):
    kafka.ask("kafka-topics", "--create", "--topic", "performance", "--partitions", 1)
    said = kafka.run(
        "kafka-producer-perf-test",
        *("--topic", "performance", "--num-records", 20000, "--record-size", 100),
        *("--throughput", -1, "--producer-props", f"bootstrap.servers={kafka.bootstrap}"),
    )
    assert said.splitlines()[-1].startswith("20000 records sent")
    said = kafka.ask("kafka-consumer-perf-test", "--topic", "performance", "--messages", 20000)
    assert re.search(r", 20\d\d\d, ", said), said


def test_verifiable_producer_and_consumer(kafka):
    kafka.ask("kafka-topics", "--create", "--topic", "verified", "--partitions", 1)
    said = kafka.ask("kafka-verifiable-producer", "--topic", "verified", "--max-messages", 50)
    events = [json.loads(line) for line in said.splitlines()]
    sent = [event["value"] for event in events if event["name"] == "producer_send_success"]
    assert sent == [str(number) for number in range(50)]
    said = kafka.ask(
        "kafka-verifiable-consumer",
        *("--topic", "verified", "--group-id", "verifying", "--max-messages", 50),
        *("--reset-policy", "earliest"),
    )
    events = [json.loads(line) for line in said.splitlines()]
    consumed = [event["count"] for event in events if event["name"] == "records_consumed"]
    assert sum(consumed) == 50


def test_acls_add_list_remove(kafka):
    rule = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "private")
    kafka.ask("kafka-acls", "--add", *rule)
    assert "principal=User:alice" in kafka.ask("kafka-acls", "--list", "--topic", "private")
    kafka.ask("kafka-acls", "--remove", "--force", *rule)
    assert "alice" not in kafka.ask("kafka-acls", "--list", "--topic", "private")


def test_delete_records(kafka):
    kafka.ask("kafka-topics", "--create", "--topic", "emptied", "--partitions", 1)
    kafka.ask("kafka-console-producer", "--topic", "emptied", stdin="a\nb\nc\n")
    cut = {"topic": "emptied", "partition": 0, "offset": 2}
    file = kafka.write("cut.json", json.dumps({"version": 1, "partitions": [cut]}))
    assert "low_watermark: 2" in kafka.ask("kafka-delete-records", "--offset-json-file", file)


def test_broker_api_versions_and_cluster_id(kafka):
    assert "Produce(0)" in kafka.ask("kafka-broker-api-versions")
    said = kafka.run("kafka-cluster", "cluster-id", "--bootstrap-server", kafka.bootstrap)
    meta = (kafka.log_dirs[0] / "meta.properties").read_text()
    assert re.search(r"Cluster ID: (\S+)", said).group(1) in meta


def test_zookeeper_shells_see_the_broker(kafka, ensemble):
    assert "[1]" in kafka.run("zookeeper-shell", ensemble.address, "ls", "/kafka/brokers/ids")
    said = ensemble.run("zkCli", "-server", ensemble.address, "get", "/kafka/brokers/ids/1")
    assert kafka.bootstrap in said


def test_zookeeper_of_the_kafka_archive(kafka):
    port = free_port()
    config = kafka.write(
        "zookeeper.properties",
        f"dataDir={kafka.workdir}/zookeeper\nclientPort={port}\nadmin.enableServer=false\n",
    )
    process = kafka.start("zookeeper-server-start", config, log="zookeeper.log")
    wait_until(lambda: listens(port), 60, "the second ZooKeeper listens")
    kafka.run("zookeeper-shell", f"127.0.0.1:{port}", "create", "/mine", "data")
    assert "mine" in kafka.run("zookeeper-shell", f"127.0.0.1:{port}", "ls", "/")
    kafka.stop(process)


def test_zookeeper_toolkits_read_its_real_files(ensemble, kafka):
    version = ensemble.workdir / "data" / "version-2"
    log = sorted(version.glob("log.*"))[0]
    assert "createSession" in ensemble.run("zkTxnLogToolkit", "-d", log)
    snapshot = sorted(version.glob("snapshot.*"))[0]
    assert "ZNode Details" in ensemble.run("zkSnapshotToolkit", snapshot)


def connect_settings(kafka, port, name):
    return (
        f"bootstrap.servers={kafka.bootstrap}\nlisteners=http://127.0.0.1:{port}\n"
        "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
        "value.converter=org.apache.kafka.connect.storage.StringConverter\n"
        f"offset.flush.interval.ms=1000\noffset.storage.file.filename={kafka.workdir}/{name}\n"
    )


def connector(kafka, kind, name, **more):
    main = f"org.apache.kafka.connect.file.FileStream{kind}Connector"
    return {"name": name, "connector.class": main, "tasks.max": "1", **more}


def test_connect_standalone_carries_a_file(kafka):
    kafka.ask("kafka-topics", "--create", "--topic", "lines", "--partitions", 1)
    kafka.write("in.txt", "one\ntwo\n")
    source = connector(kafka, "Source", "in", topic="lines", file=f"{kafka.workdir}/in.txt")
    sink = connector(kafka, "Sink", "out", topics="lines", file=f"{kafka.workdir}/out.txt")
    files = [
        kafka.write(f"{item['name']}.properties", "".join(f"{k}={v}\n" for k, v in item.items()))
        for item in (source, sink)
    ]
    worker = kafka.write("worker.properties", connect_settings(kafka, free_port(), "offsets"))
    process = kafka.start("connect-standalone", worker, *files, log="standalone.log")
    out = kafka.workdir / "out.txt"
    wait_until(lambda: out.exists() and out.read_text() == "one\ntwo\n", 60, "both lines came out")
    kafka.stop(process)


def test_connect_distributed_takes_a_connector(kafka):
    port = free_port()
    for topic, partitions in (("c-configs", 1), ("c-offsets", 1), ("c-status", 1), ("more", 1)):
        cleanup = [] if topic == "more" else ["--config", "cleanup.policy=compact"]
        kafka.ask(
            "kafka-topics", "--create", "--topic", topic, "--partitions", partitions, *cleanup
        )
    worker = kafka.write(
        "distributed.properties",
        connect_settings(kafka, port, "unused")
        + "group.id=workers\nconfig.storage.topic=c-configs\noffset.storage.topic=c-offsets\n"
        "status.storage.topic=c-status\n",
    )
    process = kafka.start("connect-distributed", worker, log="distributed.log")
    kafka.write("d.txt", "three\n")
    source = connector(kafka, "Source", "d", topic="more", file=f"{kafka.workdir}/d.txt")
    body = json.dumps(source).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors/d/config",
        data=body,
        method="PUT",
        headers={"Content-Type": "application/json"},
    )

    def accepted():
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status in (200, 201)
        return False

    wait_until(accepted, 60, "the worker takes a connector")
    said = kafka.ask(
        "kafka-console-consumer",
        *("--topic", "more", "--from-beginning", "--max-messages", 1, "--timeout-ms", 30000),
    )
    assert said == "three\n"
    kafka.stop(process)


def test_storage_formats_a_directory(kafka):
    identifier = kafka.run("kafka-storage", "random-uuid").strip()
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", identifier)
    config = kraft_settings(kafka, kafka.workdir / "kraft", free_port(), free_port())
    kafka.run("kafka-storage", "format", "-t", identifier, "-c", config)
    assert f"cluster.id={identifier}" in (kafka.workdir / "kraft/meta.properties").read_text()


def kraft_settings(release, directory, port, controller_port):
    return release.write(
        f"kraft-{port}.properties",
        "process.roles=broker,controller\nnode.id=1\n"
        f"controller.quorum.voters=1@127.0.0.1:{controller_port}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n"
        "controller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        f"log.dirs={directory}\noffsets.topic.num.partitions=1\n"
        "offsets.topic.replication.factor=1\ngroup.initial.rebalance.delay.ms=0\n"
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
        "allow.everyone.if.no.acl.found=true\nsuper.users=User:ANONYMOUS\n",
    )


@pytest.fixture(scope="module", name="kraft")
def make_kraft(installed, tmp_path_factory):
    """One node of the 4.x line that is broker and controller."""
    release = Release(installed("kafka", "4.3.1"), tmp_path_factory.mktemp("kraft"))
    port = free_port()
    release.bootstrap = f"127.0.0.1:{port}"
    release.log_dirs = [release.workdir / "data"]
    release.reader_option, release.formatter_option = "--reader-property", "--formatter-property"
    config = kraft_settings(release, release.log_dirs[0], port, free_port())
    identifier = release.run("kafka-storage", "random-uuid").strip()
    release.run("kafka-storage", "format", "-t", identifier, "-c", config)
    node = release.start("kafka-server-start", config, log="server.log")
    try:
        wait_until(lambda: node.poll() is not None or listens(port), 60, "the node listens")
        assert node.poll() is None, (release.workdir / "server.log").read_text()[-3000:]
        release.ask("kafka-topics", "--create", "--topic", TOPIC, "--partitions", 2)
        yield release
    finally:
        release.stop()


def test_4_round_trip_and_offsets(kraft):
    produce(kraft)
    assert sorted(consume(kraft, len(RECORDS))) == sorted(RECORDS)
    assert sum(end_offsets(kraft).values()) == len(RECORDS)


def test_4_quorum_and_features(kraft):
    status = kraft.ask("kafka-metadata-quorum", "describe", "--status")
    assert re.search(r"^LeaderId: +1$", status, re.MULTILINE)
    assert "metadata.version" in kraft.ask("kafka-features", "describe")
    assert "Produce(0)" in kraft.ask("kafka-broker-api-versions")


def test_4_acls_and_configs(kraft):
    kraft.ask(
        "kafka-acls",
        *("--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "private"),
    )
    assert "principal=User:alice" in kraft.ask("kafka-acls", "--list", "--topic", "private")
    entity = ("--entity-type", "topics", "--entity-name", TOPIC)
    kraft.ask("kafka-configs", "--alter", *entity, "--add-config", "retention.ms=86400000")
    assert "retention.ms=86400000" in kraft.ask("kafka-configs", "--describe", *entity)


def test_4_dump_log_reads_the_metadata_log(kraft):
    log = kraft.log_dirs[0] / "__cluster_metadata-0" / "00000000000000000000.log"
    text = kraft.run("kafka-dump-log", "--cluster-metadata-decoder", "--files", log)
    assert '"type":"TOPIC_RECORD"' in text and TOPIC in text


def test_mirror_maker_carries_records_to_another_cluster(kafka, kraft):
    kraft.ask("kafka-topics", "--create", "--topic", "mirrored", "--partitions", 1)
    kafka.ask("kafka-topics", "--create", "--topic", "mirrored", "--partitions", 1)
    kafka.ask("kafka-console-producer", "--topic", "mirrored", stdin="across\n")
    settings = kafka.write(
        "mirror.properties",
        f"clusters=a,b\na.bootstrap.servers={kafka.bootstrap}\n"
        f"b.bootstrap.servers={kraft.bootstrap}\na->b.enabled=true\na->b.topics=mirrored\n"
        "b->a.enabled=false\nreplication.factor=1\ncheckpoints.topic.replication.factor=1\n"
        "heartbeats.topic.replication.factor=1\noffset-syncs.topic.replication.factor=1\n"
        "offset.storage.replication.factor=1\nstatus.storage.replication.factor=1\n"
        "config.storage.replication.factor=1\nemit.heartbeats.enabled=false\n"
        "consumer.auto.offset.reset=earliest\n",
    )
    process = kafka.start("connect-mirror-maker", settings, log="mirror.log")
    wait_until(
        lambda: "a.mirrored" in kraft.ask("kafka-topics", "--list").split(),
        60,
        "the mirror's topic",
    )
    said = kraft.ask(
        "kafka-console-consumer",
        *("--topic", "a.mirrored", "--from-beginning", "--max-messages", 1),
        *("--timeout-ms", 30000),
    )
    assert said == "across\n"
    kafka.stop(process)


def test_no_tool_was_left_out(kafka, kraft, ensemble):
    """Stands last: what no test above used is not proven."""
    for release, others in ((kafka, kraft.used), (ensemble, set())):
        names = {path.name for path in (release.home / "bin").iterdir()} - {"launch"}
        assert {name[: -len(".sh")] for name in names} - release.used - others == set()

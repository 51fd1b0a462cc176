# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judge against a real cluster: records lost and altered in the brokers' files.

All topics are written first; then the brokers stop once, every log is edited, the
brokers start again, and each test verifies one topic from its ledger.
"""

import json
import shutil
import signal
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from flow.record import files

from tests.support import record_batch as logs
from tests.support import verdict_schema

RECORDS, PARTITIONS = 3000, 3


@dataclass
class Scene:
    """One topic, how to hurt it, and what must be said. Offsets are sequences: each partition is
    one task's.
    """

    hurt: object  # function(scene): edits files of the stopped brokers
    expected: (
        dict  # check -> (count, first witness (partition, offset, sequence), or the list of all)
    )
    options: tuple = ("--replication-factor=1",)
    config: dict = field(default_factory=dict)
    healthy: str = "pass"  # what the verdict is if no check fails
    name: str = ""

    @property
    def topic(self):
        return self.name or "scene-" + self.hurt.__name__.replace("_", "-")

    def bind(self, cluster, directory):
        self.cluster, self.directory = cluster, Path(directory) / self.topic

    def arguments(self, mode, *more):
        import job

        common = [mode, f"--bootstrap-servers={self.cluster.bootstrap_servers}"]
        where = [f"--topic={self.topic}", f"--ledger={self.directory}/ledger"]
        return job.arguments([*common, *where, f"--output={self.directory}", *more])

    def replicas(self, partition):
        """The partition's directories on all brokers that hold it."""
        found = [
            self.cluster.log_directory(b) / f"{self.topic}-{partition}"
            for b in self.cluster.broker_instances
        ]
        return [d for d in found if d.is_dir()]

    def edit(self, partition, change, segment=0):
        replicas = self.replicas(partition)
        assert replicas
        for directory in replicas:
            logs.edit(directory, change, segment)


def rewrite_attempts(scene, change):
    """Change what the attempt that wrote partition 0 has noted; the ledger is made of that then."""
    ledger = scene.directory / "ledger"
    for path in ledger.glob("*.parquet"):
        path.unlink()
    for path in (ledger / "_attempts").glob("*.json"):
        attempt = json.loads(path.read_text())
        if "0" in attempt["planned"]:
            del attempt["sha256"]
            change(attempt)
            path.write_text(files.sealed(attempt))
    # as of a job that was killed: no Parquet, and nobody has counted its rows
    plan = json.loads((ledger / "_plan.json").read_text())
    plan.update(ledger_rows=None, ledger_digest="")
    del plan["sha256"]
    (ledger / "_plan.json").write_text(files.sealed(plan))


def dropped(scene):
    """Inside, the first one, and the last one, each in a partition of its own."""
    scene.edit(1, lambda b: logs.drop(b, 500))
    scene.edit(0, lambda b: logs.drop(b, 0))
    scene.edit(2, lambda b: logs.drop(b, 999))


def dropped_on_all_replicas(scene):
    assert len(scene.replicas(1)) == 3
    scene.edit(1, lambda b: logs.drop(b, 500, 501))


def dropped_at_the_edge_of_a_segment(scene):
    first = scene.replicas(0)[0]
    scene.edge = int(sorted(first.glob("*.log"))[1].stem) - 1
    scene.edit(0, lambda b: logs.drop(b, scene.edge))


def altered(scene):
    """One bit of a value; the keys and the headers of others, where some had none."""

    def change(batches):
        value = bytearray(logs.value_at(batches, 321))
        value[70] ^= 0x01
        neighbours_key = logs.set_record(batches, 8, key=(9).to_bytes(8, "big"))
        return logs.set_value(neighbours_key, 321, bytes(value))

    def keys(batches):
        return logs.set_record(logs.set_record(batches, 5, key=b"x"), 6, key=b"")

    def headers(batches):
        # evil=1, once varints are told; a header gone; one that has a value now
        for number, wanted in (
            (33, b"\x02\x08evil\x021"),
            (16, b"\x00"),
            (24, b"\x02\x08none\x021"),
        ):
            batches = logs.set_record(batches, number, headers=wanted)
        return batches

    scene.edit(2, change)
    scene.edit(1, keys)
    scene.edit(0, headers)


def altered_under_the_checksum(scene):
    """A flipped bit that Kafka's own checksum notices: its consumer refuses the batch."""
    path = next(scene.replicas(0)[0].glob("*.log"))
    data = bytearray(path.read_bytes())
    value = logs.value_at(logs.decode(bytes(data)), 321)
    data[data.index(value) + 80] ^= 0x10
    path.write_bytes(bytes(data))


def years_earlier(scene):
    """One record's timestamp, of a topic that keeps the producers'."""
    nine_years = 9 * 365 * 86_400_000
    scene.edit(1, lambda b: logs.set_record(b, 0, timestamp_delta=-nine_years))


def stamped_years_earlier(scene):
    """The time of appending, which stands in the batch, of one with one record."""
    nine_years = 9 * 365 * 86_400_000

    def change(batches):
        first, *rest = batches
        return [replace(first, max_timestamp=first.max_timestamp - nine_years), *rest]

    scene.edit(1, change)


def stamped_by_the_producer(scene):
    """A batch with one record says that its time is the producer's."""
    scene.edit(1, lambda b: [replace(b[0], attributes=b[0].attributes & ~0x08), *b[1:]])


def swapped(scene):
    scene.edit(0, lambda b: logs.swap(b, 10, 20))


def repeated(scene):
    scene.edit(0, lambda b: logs.append(b, logs.record_at(b, 77)))


def sent_again(scene):
    """By a client that did not hear of the first copy of the last 50, and began a new epoch."""
    scene.edit(0, lambda b: logs.append(b, *(logs.record_at(b, n) for n in range(950, 1000))))

    def change(attempt):
        attempt["acked"]["0"] = [[0, 949, 0, 949], [950, 999, 1000, 1049]]
        attempt["epochs"] = 2

    rewrite_attempts(scene, change)


def repeated_in_a_new_epoch(scene):
    """The client had heard of it, so it was not the client."""
    scene.edit(0, lambda b: logs.append(b, logs.record_at(b, 77)))
    rewrite_attempts(scene, lambda attempt: attempt.update(epochs=2))


def unanswered(scene):
    """Nothing that one broker wrote was acknowledged: its partition is the only one that it leads."""

    def change(attempt):
        attempt["acked"]["0"] = []

    rewrite_attempts(scene, change)


def moved(scene):
    taken = []
    scene.edit(0, lambda b: taken.append(logs.record_at(b, 40)) or logs.drop(b, 40))
    scene.edit(1, lambda b: logs.append(b, taken[0]))


def intruded(scene):
    scene.edit(2, lambda b: logs.append(b, b"somebody else's record"))


def truncated(scene):
    scene.edit(1, lambda b: logs.truncate(b, 990))


def deleted_segment(scene):
    for path in scene.replicas(0)[0].iterdir():
        if path.suffix in (".log", ".index", ".timeindex", ".snapshot"):
            path.unlink()


def deleted_partition(scene):
    shutil.rmtree(scene.replicas(2)[0])


def untouched(scene):
    pass


# With transactions of 64 records of a partition, of which number 4, 9 and 14 are aborted. Behind
# each stands its marker, so sequence s has offset s + s div 64.


def untouched_transactions(scene):
    pass


def aborted_records_shown(scene):
    """The broker has forgotten which transactions were aborted."""
    (index,) = scene.replicas(1)[0].glob("*.txnindex")
    assert index.stat().st_size
    index.write_bytes(b"")


def committed_record_dropped(scene):
    scene.edit(1, lambda b: logs.drop(b, 507))


def transaction_torn(scene):
    """A record is gone of a transaction whose producer died before it noted the commit."""
    scene.edit(0, lambda b: logs.drop(b, 5))

    def change(attempt):
        for partition, ranges in attempt["acked"].items():
            attempt["acked"][partition] = [each for each in ranges if each[0] >= 64]

    rewrite_attempts(scene, change)


IN_TRANSACTIONS = ("--replication-factor=1", "--transactional")
SCENES = [
    Scene(untouched, {}),
    Scene(
        dropped,
        {
            "loss": (3, [(0, 0, 0), (1, 500, 500), (2, 999, 999)]),
            "gap": (3, [(0, 0, None), (1, 500, None), (2, 999, None)]),
        },
    ),
    Scene(
        dropped_on_all_replicas,
        {"loss": (2, (1, 500, 500)), "gap": (2, (1, 500, None))},
        options=(),
    ),
    Scene(
        dropped_at_the_edge_of_a_segment,
        {"loss": (1, None), "gap": (1, None)},
        options=("--producer-property=batch.size=16384",),
        config={"segment.bytes": "65536"},
    ),
    Scene(
        altered,
        {
            # both keys of partition 1 are neighbours, and so one witness, the longest
            "corrupt": (
                7,
                [(1, 5, 5), *((0, n, n) for n in (16, 24, 33)), *((2, n, n) for n in (8, 321))],
            )
        },
    ),
    Scene(altered_under_the_checksum, {"corrupt": (1, (0, 321, 321))}),
    Scene(
        years_earlier,
        {"corrupt": (1, (1, 0, 0))},
        config={"message.timestamp.type": "CreateTime"},
    ),
    Scene(
        stamped_years_earlier,
        {"corrupt": (1, (1, 0, 0))},
        options=("--replication-factor=1", "--producer-property=batch.num.messages=1"),
    ),
    Scene(
        stamped_by_the_producer,
        {"corrupt": (1, (1, 0, 0))},
        options=("--replication-factor=1", "--producer-property=batch.num.messages=1"),
    ),
    Scene(swapped, {"order": (2, (0, 11, 11))}),
    Scene(repeated, {"duplicate": (1, (0, 1000, 77))}),
    Scene(sent_again, {}, healthy="inconclusive"),
    Scene(repeated_in_a_new_epoch, {"duplicate": (1, (0, 1000, 77))}),
    Scene(unanswered, {}, healthy="inconclusive"),
    Scene(moved, {"order": (1, (1, 1000, 40)), "gap": (1, (0, 40, None))}),
    Scene(intruded, {"phantom": (1, (2, 1000, None))}),
    Scene(truncated, {"loss": (10, (1, 990, 990)), "gap": (10, (1, 990, None))}),
    Scene(deleted_segment, {"loss": (1000, (0, 0, 0)), "gap": (1000, (0, 0, None))}),
    Scene(deleted_partition, {"loss": (1000, (2, 0, 0)), "gap": (1000, (2, 0, None))}),
    Scene(untouched_transactions, {}, options=IN_TRANSACTIONS),
    Scene(
        aborted_records_shown,
        {"atomicity": (3 * 64, (1, 260, 256))},
        options=IN_TRANSACTIONS,
    ),
    Scene(
        committed_record_dropped,
        {"loss": (1, (1, 507, 500)), "gap": (1, (1, 507, None))},
        options=IN_TRANSACTIONS,
    ),
    Scene(transaction_torn, {"atomicity": (1, (0, 0, 0))}, options=IN_TRANSACTIONS),
]


def batches_of(data):
    """(base offset, last offset, first byte, byte behind) of each batch, by their heads."""
    at, found = 0, []
    while at + 61 <= len(data):
        base, length = struct.unpack_from(">qi", data, at)
        (last,) = struct.unpack_from(">i", data, at + 23)
        found.append((base, base + last, at, at + 12 + length))
        at += 12 + length
    return found


def undecodable(scene):
    """100 bytes of one compressed batch of partition 1 are zeros."""
    path = next(scene.replicas(1)[0].glob("*.log"))
    data = bytearray(path.read_bytes())
    batches = batches_of(data)
    assert len(batches) > 4, "and the others are whole"
    first, last, begin, end = batches[len(batches) // 2]
    scene.batch = (first, last)
    middle = (begin + 61 + end) // 2
    data[middle - 50 : middle + 50] = bytes(100)
    path.write_bytes(bytes(data))


CODECS = [
    Scene(
        undecodable,
        {},
        options=(
            "--replication-factor=1",
            f"--producer-property=compression.type={codec}",
            "--producer-property=batch.num.messages=100",
        ),
        name=f"codec-{codec}",
    )
    for codec in ("gzip", "snappy", "lz4", "zstd")
]


def beheaded(scene):
    """The length of the first batch of partition 1 is zero: not even its leader can make anything of it."""
    path = next(scene.replicas(1)[0].glob("*.log"))
    data = bytearray(path.read_bytes())
    batches = batches_of(data)
    assert len(batches) > 4
    # its leader finds the second one by the first; those behind have entries in the index
    scene.batch = (0, batches[1][1])
    data[8:12] = bytes(4)
    path.write_bytes(bytes(data))


BEHEADED = Scene(
    beheaded, {}, options=("--replication-factor=1", "--producer-property=batch.num.messages=100")
)


def wait_for_leaders(cluster, topics):
    """Block until every partition of the topics has a leader; restarted brokers need a moment."""
    from flow.prepare.cluster import Cluster

    asked = Cluster({"bootstrap.servers": cluster.bootstrap_servers}, 30)
    deadline = time.monotonic() + 60
    waiting = list(topics)
    while waiting and time.monotonic() < deadline:
        waiting = [
            t
            for t in waiting
            if not (layout := asked.layout(t)) or any(p["leader"] is None for p in layout.values())
        ]
        time.sleep(0.1)
    assert not waiting


@pytest.fixture(scope="module")
def hurt(spark, cluster, tmp_path_factory):
    """Everything written, then every topic hurt, as SCENES and CODECS say."""
    from confluent_kafka.admin import AdminClient, NewTopic
    from flow import steps

    scenes = [*SCENES, *CODECS, BEHEADED]
    directory = tmp_path_factory.mktemp("runs")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for scene in scenes:
        scene.bind(cluster, directory)
        if scene.config:
            new = NewTopic(scene.topic, PARTITIONS, 1, config=scene.config)
            admin.create_topics([new])[scene.topic].result(30)

    def produce(scene):
        size = (f"--records={RECORDS}", f"--partitions={PARTITIONS}")
        return steps.produce(scene.arguments("produce", *size, *scene.options))

    with ThreadPoolExecutor(4) as several:  # each is mostly Spark, and waiting, for a few records
        assert set(several.map(produce, scenes)) == {0}
    brokers = cluster.broker_instances.values()
    for broker in brokers:
        broker.signal(signal.SIGTERM)
    for broker in brokers:
        broker.stop()
    for scene in scenes:
        scene.hurt(scene)
    for broker in brokers:
        broker.start()
    cluster.wait_registered()
    wait_for_leaders(cluster, [s.topic for s in scenes])
    return cluster


def verdict_of(scene):
    return verdict_schema.read(scene.directory / "verdict.json")


@pytest.mark.parametrize("scene", SCENES, ids=[s.hurt.__name__ for s in SCENES])
def test_hurt_log_is_named(hurt, scene):
    from flow import steps

    code = steps.verify(scene.arguments("verify"))
    verdict = verdict_of(scene)
    failed = {c["id"]: c for c in verdict["checks"] if c["status"] == "fail"}
    assert {name: c["count"] for name, c in failed.items()} == {
        name: count for name, (count, _) in scene.expected.items()
    }
    for name, (_, places) in scene.expected.items():
        witnesses = failed[name]["witnesses"]
        found = [
            tuple(each.get(k) for k in ("partition", "offset", "sequence")) for each in witnesses
        ]
        if isinstance(places, list):
            assert found == places
        elif places is not None:
            assert found[0] == places
        assert {each["topic"] for each in witnesses} == {scene.topic}
    kind = "fail" if scene.expected else scene.healthy
    assert (code, verdict["verdict"]) == ({"fail": 1, "pass": 0, "inconclusive": 2}[kind], kind)
    if hasattr(scene, "edge"):
        assert failed["loss"]["witnesses"][0]["offset"] == scene.edge
    assert scene.topic in (scene.directory / "report.html").read_text()


# One run always, the others in soak: what differs among them is what the test behind this one asks of all.
@pytest.mark.parametrize(
    "scene",
    [
        pytest.param(scene, marks=[pytest.mark.soak] * (scene is not CODECS[-1]), id=scene.topic)
        for scene in [*CODECS, BEHEADED]
    ],
)
def test_a_batch_that_cannot_be_decoded_costs_that_batch(hurt, scene):
    from flow import steps

    code = steps.verify(scene.arguments("verify"))
    failed = {c["id"]: c for c in verdict_of(scene)["checks"] if c["status"] == "fail"}
    first, last = scene.batch
    assert code == 1 and {"corrupt"} <= set(failed) <= {"loss", "gap", "corrupt", "phantom"}
    for check in failed.values():
        assert 0 < check["count"] <= last - first + 1, check
        for witness in check["witnesses"]:
            assert witness["partition"] == 1 and first <= witness["offset"] <= last, witness


@pytest.mark.parametrize("scene", CODECS, ids=[scene.name for scene in CODECS])
def test_what_lies_behind_such_a_batch_is_not_waited_for(hurt, scene):
    """librdkafka asks for the batch for ever: a group comes as far as that, and says why."""
    from flow.judge.continuity import Groups

    first, last = scene.batch
    settings = {"bootstrap.servers": hurt.bootstrap_servers}
    groups = Groups(settings, scene.topic, [f"{scene.topic}-group"], 60)
    groups.commit({1: 0})
    delivery = groups.deliveries({1: (0, RECORDS // PARTITIONS)})[f"{scene.topic}-group"]
    assert delivery.complaints and "Nothing came" not in " ".join(delivery.complaints)
    assert delivery.missed == {}
    ((begins, ends),) = delivery.unread[1]
    assert begins == first and ends >= last


# Without the ledger: the same logs, by expressions that say what the job's own records mean.
MEANING = {
    "id": "substring(value, 21, 20)",
    "by": "substring(value, 21, 12)",
    "sequence": "try_cast(conv(hex(substring(value, 33, 8)), 16, 10) as bigint)",
    "intact": "crc32(substring(value, 5)) = conv(hex(substring(value, 1, 4)), 16, 10)",
}
WITHOUT_LEDGER = {
    untouched: {},
    dropped: {
        "loss": 1
    },  # no sequence says what came before the first, and behind the last; see OPEN
    altered: {"corrupt": 1},
    altered_under_the_checksum: {"corrupt": 1},
    swapped: {"order": 2},
    repeated: {"duplicate": 1},
    moved: {},  # it is not lost, and nobody knows where it was sent to; see OPEN
    truncated: {},  # nor what the end once was
}
# An empty offset alone may be a transaction's marker, of which no client is told.
OPEN = {dropped: 3, moved: 1}


def test_a_broker_that_answered_nothing_is_named_and_not_accused(hurt):
    """Seen in the soak: a broker and both tasks were killed, and all that was sent then timed out."""
    from flow import steps

    (scene,) = [scene for scene in SCENES if scene.hurt is unanswered]
    assert steps.verify(scene.arguments("verify")) == 2
    verdict = verdict_of(scene)
    (leader,) = [each["leader"] for each in verdict["partitions"] if each["partition"] == 0]
    assert f"broker {leader} acknowledged nothing" in verdict["summary"]


@pytest.mark.parametrize("hurting", WITHOUT_LEDGER, ids=lambda hurting: hurting.__name__)
def test_what_can_be_said_without_the_ledger(hurt, hurting):
    import job
    from flow import steps

    (scene,) = [scene for scene in SCENES if scene.hurt is hurting]
    options = [f"--{name}={expression}" for name, expression in MEANING.items()]
    where = [f"--bootstrap-servers={hurt.bootstrap_servers}", f"--topic={scene.topic}"]
    output = f"--output={scene.directory}"
    code = steps.inspect(job.arguments(["inspect", *where, output, "--contiguous", *options]))
    found = verdict_schema.read(scene.directory / "inspection.json")
    counts = {c["id"]: c["count"] for c in found["checks"] if c["status"] == "fail"}
    assert counts == WITHOUT_LEDGER[hurting], found["checks"]
    assert code == (1 if counts else 2 if hurting in OPEN else 0)
    not_judged = [each["id"] for each in found["not_judged"]]
    assert ("gap" in not_judged) == (hurting in OPEN)
    if not counts and hurting in OPEN:
        assert f"{OPEN[hurting]} offsets hold nothing" in found["summary"]
    for name in set(counts) & {"corrupt", "duplicate"}:
        places = scene.expected[name][1]
        place = (places[-1] if isinstance(places, list) else places)[:2]
        (check,) = [check for check in found["checks"] if check["id"] == name]
        assert place in [(w["partition"], w["offset"]) for w in check["witnesses"]]


def test_one_large_partition_is_read_by_several_tasks_and_judged_as_exactly(
    spark, cluster, tmp_path, monkeypatch
):
    import job
    from flow import steps
    from flow.judge import reading
    from flow.record import files

    monkeypatch.setattr(reading, "LEAST_OF_A_TASK", 1000)
    monkeypatch.setattr(reading, "MOST_OF_A_TASK", 1000)
    where = [f"--bootstrap-servers={cluster.bootstrap_servers}", f"--ledger={tmp_path}/ledger"]
    size = ["--records=7500", "--partitions=3", f"--output={tmp_path}", "--keep"]
    assert steps.run(job.arguments(["run", *where, *size])) == 0
    plan = files.load_plan(str(tmp_path / "ledger"))
    spans = {0: (0, 2500)}
    frame = reading.rows(spark, plan.topic, spans, {}, cluster.bootstrap_servers)
    parts = frame.rdd.mapPartitions(lambda rows: [sum(1 for _row in rows)]).collect()
    assert sum(parts) == 2500 and len(parts) >= 3 and max(parts) <= 1000


@pytest.mark.soak
def test_one_record_in_ten_million(spark, cluster, tmp_path):
    """The very last one is gone, and another one, the first of a segment, has a wrong bit."""
    import job
    from confluent_kafka.admin import AdminClient, NewTopic
    from flow import steps

    topic, partitions = "ten-million", 6
    new = NewTopic(topic, partitions, 1, config={"segment.bytes": str(2**24)})
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([new])[topic].result(30)
    where = [f"--bootstrap-servers={cluster.bootstrap_servers}", f"--ledger={tmp_path}/ledger"]
    size = [f"--topic={topic}", "--records=10000000"]
    assert steps.produce(job.arguments(["produce", *where, *size])) == 0
    brokers = cluster.broker_instances
    for broker in brokers.values():
        broker.signal(signal.SIGTERM)
    for broker in brokers.values():
        broker.stop()

    def segments(partition):
        (found,) = [
            place
            for number in brokers
            if (place := cluster.log_directory(number) / f"{topic}-{partition}").is_dir()
        ]
        return found, sorted(found.glob("*.log"))

    def last(batches):
        return batches[-1].base_offset + batches[-1].last_delta

    directory, paths = segments(partitions - 1)
    end = last(logs.decode(paths[-1].read_bytes()))
    logs.edit(directory, lambda batches: logs.drop(batches, end), len(paths) - 1)
    directory, paths = segments(2)
    edge = int(paths[3].stem)

    def flip(batches):
        value = bytearray(logs.value_at(batches, edge))
        value[99] ^= 0x80
        return logs.set_value(batches, edge, bytes(value))

    logs.edit(directory, flip, 3)
    for broker in brokers.values():
        broker.start()
    cluster.wait_registered()
    wait_for_leaders(cluster, [topic])
    code = steps.verify(job.arguments(["verify", *where, f"--output={tmp_path}"]))
    verdict = verdict_schema.read(tmp_path / "verdict.json")
    failed = {c["id"]: c for c in verdict["checks"] if c["status"] == "fail"}
    places = {
        name: [(w["partition"], w["offset"]) for w in check["witnesses"]]
        for name, check in failed.items()
    }
    one = [(partitions - 1, end)]
    assert places == {"loss": one, "gap": one, "corrupt": [(2, edge)]}
    assert {check["count"] for check in failed.values()} == {1} and code == 1
    assert verdict["counts"]["read"] == 10_000_000 - 1

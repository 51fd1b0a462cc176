# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disturbed, but nothing is lost: no verdict may accuse a healthy cluster, whatever happened to it."""

import random
import signal
import threading
import time

import pytest
from confluent_kafka.admin import AdminClient

from tests.spark.disturbing import (
    accusations,
    kill_producing_job,
    kill_python_workers,
    make_whole,
    run_and_disturb,
)
from tests.support import verdict_schema


def test_killed_leader_is_no_violation(spark, cluster, tmp_path):
    broker = cluster.broker_instances[2]
    try:
        code, verdict = run_and_disturb(cluster, tmp_path, broker.kill)
        assert not broker.running()
        assert (accusations(verdict), code) == ([], 2)
        assert "broker 2 was there when the run began, and is not any more" in verdict["unclear"]
        assert any("broker 2, which is down, has replicas" in each for each in verdict["unclear"])
        assert verdict["counts"]["acked"] == verdict["counts"]["read"] == 400_000
    finally:
        make_whole(cluster)


def test_offsets_groups_and_topic_find_those_who_answer_now(spark, cluster):
    """The controller is killed, which leads partitions and coordinates groups: none stays behind."""
    from flow.judge import continuity
    from flow.prepare.cluster import Cluster

    settings = {"bootstrap.servers": cluster.bootstrap_servers}
    client = Cluster(settings, 60)
    topic = "controller-moves"
    client.create_topic(topic, [[1, 2, 3], [2, 3, 1], [3, 1, 2]], {})
    starts = {0: 0, 1: 0, 2: 0}
    names = [f"controller-moves-{number}" for number in range(6)]
    continuity.Groups(settings, topic, names[:3], 60).commit(starts)
    admin = AdminClient(settings)
    controller = admin.describe_cluster().result(30).controller.id
    cluster.broker_instances[controller].kill()
    try:
        assert client.effective_config(topic, ("min.insync.replicas",))
        positions = client.positions(topic).values()
        assert [(each.start, each.end) for each in positions] == [(0, 0)] * 3
        continuity.Groups(settings, topic, names[3:], 60).commit(starts)
        client.delete_topic(topic)
    finally:
        make_whole(cluster)
    assert topic not in admin.list_topics(timeout=30).topics
    present = {group.group_id for group in admin.list_consumer_groups().result(30).valid}
    assert not present & set(names)


def test_a_coordinator_that_moves_has_not_forgotten(cluster):
    """Brokers leave and come back one after another, and groups are asked for all the while."""
    from flow.judge import continuity
    from flow.prepare.cluster import Cluster

    settings = {"bootstrap.servers": cluster.bootstrap_servers}
    Cluster(settings, 60).create_topic("coordinator-moves", [[1, 2, 3]], {})
    groups = continuity.Groups(
        settings, "coordinator-moves", [f"moves-{number}" for number in range(8)], 60
    )
    groups.commit({0: 0})

    def go_round():
        for broker in cluster.broker_instances.values():
            broker.signal(signal.SIGTERM)
            broker.stop()
            broker.start()
            cluster.wait_registered()

    restarts = threading.Thread(target=go_round)
    restarts.start()
    asked = 0
    try:
        while restarts.is_alive():
            asked += 1
            check = continuity.check({0: 0}, groups.deliveries({0: (0, 0)}), set())
            assert check.count == 0, check.witnesses
    finally:
        restarts.join()
        make_whole(cluster)
    assert asked > 3


def test_killed_job_leaves_a_ledger_that_says_so(spark, cluster, tmp_path):
    """Half of a run: what was acknowledged is judged, the rest is open, and nobody is accused."""
    import job
    from flow import steps

    kill_producing_job(cluster, tmp_path, "--topic=half-a-run", "--records=5000000")
    where = [
        f"--bootstrap-servers={cluster.bootstrap_servers}",
        f"--ledger={tmp_path / 'ledger'}",
    ]
    code = steps.verify(job.arguments(["verify", *where, f"--output={tmp_path}"]))
    verdict = verdict_schema.read(tmp_path / "verdict.json")
    assert (accusations(verdict), verdict["verdict"], code) == ([], "inconclusive", 2)
    assert verdict["counts"]["acked"] > 1000
    assert verdict["counts"]["unknown"] == 5_000_000 - verdict["counts"]["acked"]
    # the files of its attempts are all the ledger there is: where one is gone, nothing is known of its records
    lost = min((tmp_path / "ledger" / "_attempts").glob("*.json"))
    lost.unlink()
    code = steps.verify(job.arguments(["verify", *where, f"--output={tmp_path}"]))
    verdict = verdict_schema.read(tmp_path / "verdict.json")
    assert (accusations(verdict), code) == ([], 2)
    assert f"_attempts of the ledger lacks {lost.stem}" in verdict["summary"]


def test_killed_produce_task_is_no_violation(spark, cluster, tmp_path):
    """First attempts wrote records that no ledger row acknowledges: unknown, not phantom."""
    killed = []
    code, verdict = run_and_disturb(
        cluster, tmp_path, lambda: killed.extend(kill_python_workers()), records=1_500_000
    )
    assert killed
    assert (accusations(verdict), code) == ([], 0)
    assert verdict["counts"]["unknown"] > 0  # said, though nobody is accused
    assert verdict["counts"]["read"] > 1_500_000


def test_a_produce_task_that_never_begins_is_no_brokers_fault(
    spark, cluster, tmp_path, monkeypatch
):
    """Of two producers one dies before its first record, each time; what it was to write was led by
    brokers that get no record at all."""
    import job
    from flow import steps
    from flow.record import files
    from flow.steps import writing
    from flow.write import produce

    ledger = tmp_path / "ledger"

    def only_the_first(task, number, attempt):
        if number == 0:
            produce.produce(task, number, attempt)
        else:
            # a task that fails for good ends the whole job: not before the other one is done
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                if any(each.complete for each in files.load_attempts(str(ledger))):
                    break
                time.sleep(0.05)
            raise OSError("no room for this worker")

    monkeypatch.setattr(writing, "produce_task", only_the_first)
    where = [f"--bootstrap-servers={cluster.bootstrap_servers}", f"--ledger={ledger}"]
    size = ["--records=3000", "--partitions=3", "--producers=2"]
    code = steps.run(job.arguments(["run", *where, *size, f"--output={tmp_path}"]))
    verdict = verdict_schema.read(tmp_path / "verdict.json")
    assert (accusations(verdict), verdict["verdict"], code) == ([], "inconclusive", 2)
    assert verdict["counts"]["acked"] == verdict["counts"]["read"] == 2000
    assert "0 records unknown and 0 failed and 1,000 never sent" in verdict["summary"]
    assert "broken off: OSError: no room for this worker" in verdict["summary"]


# -- anything at any moment


class Disturbance:
    """Things that happen to brokers, ZooKeeper and Spark while a run writes; `done` says which."""

    def __init__(self, cluster, seed):
        self.cluster, self.chance, self.done = cluster, random.Random(seed), []
        self.out = False
        self.delivery_timeout = self.chance.choice([2, 5, 120])
        self.acts = [
            self.chance.choice([self.kill, self.restart, self.freeze, self.pause_zookeeper])
            for _number in range(self.chance.randint(1, 3))
        ]
        if self.chance.random() < 0.2:
            self.acts.append(self.kill_workers)
        self.chance.shuffle(self.acts)

    def __call__(self):
        for act in self.acts:
            time.sleep(self.chance.uniform(0, 1))
            act()

    def broker(self):
        """Any of those that run."""
        running = [each for each in self.cluster.broker_instances.values() if each.running()]
        return self.chance.choice(running)

    def leaving(self):
        """The one that is to leave; none a second time, since with two gone nobody can be read from."""
        if self.out:
            return None
        self.out = True
        return self.broker()

    def kill(self):
        if broker := self.leaving():
            self.done.append(f"SIGKILL {broker.name}")
            broker.kill()

    def restart(self):
        if broker := self.leaving():
            self.done.append(f"restart {broker.name}")
            broker.signal(signal.SIGTERM)
            broker.stop()
            broker.start()

    def freeze(self):
        self._freeze(self.broker(), self.chance.uniform(0.3, 4))

    def pause_zookeeper(self):
        self._freeze(self.cluster.zookeeper_instances[0], self.chance.uniform(0.3, 3))

    def _freeze(self, instance, seconds):
        self.done.append(f"SIGSTOP {instance.name} for {seconds:.1f} s")
        instance.signal(signal.SIGSTOP)
        time.sleep(seconds)
        instance.signal(signal.SIGCONT)

    def kill_workers(self):
        self.done.append(f"SIGKILL {len(kill_python_workers())} Python workers")


@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=[pytest.mark.soak] if seed >= 1 else []) for seed in range(200)],
)
def test_a_healthy_cluster_under_fire_is_not_accused(spark, cluster, tmp_path, seed):
    under_fire(cluster, tmp_path, seed, 600_000)


@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=[pytest.mark.soak] if seed >= 1 else []) for seed in range(20)],
)
def test_transactions_under_fire_accuse_nobody(spark, cluster, tmp_path, seed):
    under_fire(cluster, tmp_path, seed, 200_000, "--transactional")


def under_fire(cluster, directory, seed, records, *more):
    disturbance = Disturbance(cluster, seed)
    limit = f"--delivery-timeout={disturbance.delivery_timeout}"
    try:
        code, verdict = run_and_disturb(cluster, directory, disturbance, records, (limit, *more))
    finally:
        make_whole(cluster)
    counts = verdict["counts"]
    print(f"seed {seed}: {'; '.join(disturbance.done)} -> {verdict['summary']}")
    assert disturbance.done, "nothing happened"
    assert accusations(verdict) == [], disturbance.done
    assert code == (0 if verdict["verdict"] == "pass" else 2)
    # nothing is passed over in silence: what was not acknowledged is counted as that
    aborted = counts.get("aborted", 0)
    assert counts["acked"] + aborted + counts["unknown"] + counts["failed"] >= records
    if code == 0:
        assert counts["acked"] + aborted >= records

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_broker_gate against real brokers: what passes, what waits, what is refused."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
import time

import pytest

from tests.support.outside import create_topics, free_port, replicas_of, wait_until
from tests.support.readers import write
from tests.support.run_module import run_module

ALL = [1, 2, 3]


@pytest.fixture
def gate(cluster):
    """Asks the gate: gate(2, wait_seconds=5); of all brokers, quiet for no time."""

    def ask(broker, check=False, **options):
        given = {"bootstrap_servers": cluster.bootstrap_servers, "timeout": 20, "quiet_seconds": 0}
        which = {"brokers": broker} if isinstance(broker, list) else {"broker": broker}
        return run_module(
            "kafka_broker_gate", {**given, **which, "expected_brokers": ALL, **options}, check
        )

    return ask


@pytest.fixture
def make(modules, admin, name, cluster):
    """Makes topics that are gone at the end: make("single", 1, min_insync_replicas=1); returns the name.

    Several `alike` bear it with a number.

    One that is left would be in the way of every other test of this file. kafka_topics would refuse most.
    """
    from confluent_kafka.admin import NewTopic

    made = []

    def topic(word, replicas, partitions=1, alike=0, **config):
        full = f"{name}-{word}"
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        names = [f"{full}-{number}" for number in range(alike)] or [full]
        made.extend(names)
        wanted = [NewTopic(each, partitions, replicas, config=settings) for each in names]
        create_topics({"bootstrap.servers": cluster.bootstrap_servers}, wanted)
        return full

    whole = modules.info(wait={"brokers": ALL, "full_isr": True})
    assert not whole.failed, whole.msg
    yield topic
    result = modules.topics([{"name": each, "state": "absent"} for each in made], allow=["delete"])
    assert not result.failed, result.msg


def holder(admin, topic):
    """The broker that has the only replica of a topic's partition 0."""
    return replicas_of(admin.list_topics(timeout=10), topic)[0][1][0]


@contextlib.contextmanager
def stopped(cluster, modules, broker, kill=False):
    """A broker that does not run meanwhile; in sync again at the end."""
    instance = cluster.broker_instances[broker]
    (instance.kill if kill else instance.stop)()
    try:
        yield
    finally:
        # A registration that outlives its process turns the next start away.
        wait_until(
            lambda: broker not in {each["id"] for each in modules.info().brokers}, 60, "its end"
        )
        instance.start()
        back = modules.info(wait={"brokers": ALL, "full_isr": True, "quiet_seconds": 1})
        assert not back.failed, back.msg


def test_three_replicas_of_which_two_must_have_a_record(gate, make, admin):
    """Every broker may stop, one at a time, and the module says so at once, and who is the controller."""
    topic = make("plain", 3, partitions=6, min_insync_replicas=2)
    for broker in ALL:
        found = gate(broker)
        assert not found.failed, found.msg
        assert (found.verdict, found.reasons, found.mending) == ("go", [], "")
        assert found.partitions >= 6 and found.changed is False
        assert found.controller == admin.list_topics(timeout=10).controller_id
    plan = gate(ALL)
    assert [each["verdict"] for each in plan.verdicts] == ["go"] * 3 and plan.refusal == ""
    assert topic not in plan.lines[0]


def test_one_replica_is_refused_at_once_with_the_option_that_accepts_it(gate, make, admin):
    single = make("single", 1, min_insync_replicas=1)
    broker = holder(admin, single)
    found = gate(broker, wait_seconds=600)
    assert found.failed and found.gate["verdict"] == "cannot_pass"
    assert found.msg.startswith(f"[gate.cannot_pass] broker {broker}: while it stops, 1 partition")
    assert f"{single}-0 (1 replica)" in found.msg
    assert found.msg.endswith(f"add `-e kafka_accept_unavailable={single}`")
    assert not gate(broker, accept_unavailable=[f"other,{single}"]).failed
    assert not gate(broker, accept_unavailable=["all"]).failed
    assert not gate(broker % 3 + 1).failed, "its neighbour has nothing to do with it"
    looked = gate(broker, check=True)
    assert not looked.failed and looked.verdict == "cannot_pass" and single in looked.refusal


def test_as_many_must_have_a_record_as_there_are_replicas(gate, make):
    """By the topic's own setting, and of two replicas by the default of the brokers."""
    strict = make("strict", 3, partitions=2, min_insync_replicas=3)
    plan = gate(ALL)
    assert [each["verdict"] for each in plan.verdicts] == ["cannot_pass"] * 3
    assert plan.refusal.count(f"{strict}-0 (3 replicas, min.insync.replicas 3)") == 1
    assert "broker 1, broker 2, broker 3" in plan.refusal
    assert not gate(2, accept_unavailable=[strict]).failed


def test_a_stopped_broker_is_missed(gate, make, cluster, modules):
    """Named at the deadline; and it may itself be stopped, as it is not there."""
    topic = make("thin", 3, partitions=3, min_insync_replicas=2)
    with stopped(cluster, modules, 3):
        found = gate(1, wait_seconds=2)
        assert found.failed and found.msg.startswith("[gate.waiting] broker 1: waited 2 s")
        assert "not registered: broker 3" in found.msg
        # Two of three are in sync: one less is below two.
        assert re.search(rf"{topic}-\d \(1 of 2\)", found.msg), found.msg
        away = gate(3)
        assert (away.verdict, away.mending) == ("go", "it is not registered")
    assert not gate(1, wait_seconds=60).failed


def test_a_killed_broker_is_missed_while_its_session_lives(gate, make, cluster, modules):
    """It stays in everybody's metadata and in every ISR; but it answers nobody."""
    make("thin", 3, partitions=3, min_insync_replicas=2)
    with stopped(cluster, modules, 3, kill=True):
        # Longer than one request may wait for the dead broker's answer: who cannot ask, can name nobody.
        found = gate(1, wait_seconds=10)
        assert found.failed and re.search("broker 3 is registered but|not registered", found.msg)


def test_a_broker_without_a_second_replica_to_follow_it(gate, make, cluster, modules, admin):
    """Accepted: it still waits for the topic's other replica."""
    pair = make("pair", 2, min_insync_replicas=2)
    _leader, (one, other), _isr = replicas_of(admin.list_topics(timeout=10), pair)[0]
    with stopped(cluster, modules, other):
        found = gate(one, wait_seconds=1, accept_unavailable=[pair])
        assert found.failed and "accepted, but not in sync on all other brokers" in found.msg


def test_a_stopped_process_flaps_out_of_the_isr_and_back(gate, make, cluster, modules, admin):
    """SIGSTOP and SIGCONT: the gate opens when all has been quiet for as long as was asked."""
    make("flap", 3, partitions=3, min_insync_replicas=2)
    broker = cluster.broker_instances[3]
    stop = threading.Event()

    def flap():
        # Shorter than the session: it stays registered, and silent to whoever asks for its view.
        for _round in range(2):
            broker.signal(signal.SIGSTOP)
            stop.wait(4)
            broker.signal(signal.SIGCONT)
            stop.wait(1.5)

    thread = threading.Thread(target=flap)
    begun = time.monotonic()
    thread.start()
    try:
        found = gate(1, quiet_seconds=2, wait_seconds=90)
        ended = time.monotonic()
    finally:
        stop.set()
        thread.join()
        broker.signal(signal.SIGCONT)
    assert not found.failed, found.msg
    assert ended - begun > 4, "not while a broker does not answer"


def test_a_reassignment_is_waited_for(gate, make, cluster, admin):
    """Under a throttle it takes a while; what moves is named, and the gate opens when it has ended."""
    from kafka import KafkaAdminClient, TopicPartition

    topic = make("moved", 2, min_insync_replicas=1)
    _leader, replicas, _isr = replicas_of(admin.list_topics(timeout=10), topic)[0]
    (third,) = set(ALL) - set(replicas)
    other = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers.split(","))
    key = TopicPartition(topic, 0)
    try:
        with throttle(cluster, admin, topic):
            other.alter_partition_reassignments({key: [replicas[0], third]})
            assert key in other.list_partition_reassignments()
            found = gate(replicas[0], wait_seconds=2)
            assert found.failed and f"1 partition is being reassigned: {topic}-0" in found.msg
            # The third may have nothing yet that anybody shares with it, and then nobody misses it.
            looked = {each["broker"]: each["verdict"] for each in gate(ALL).verdicts}
            assert {looked[each] for each in replicas} == {"wait"}
        wait_until(lambda: not other.list_partition_reassignments(), 60, "the end of the move")
        assert not gate(replicas[0], wait_seconds=30).failed
    finally:
        with contextlib.suppress(Exception):
            other.alter_partition_reassignments({key: None})
        other.close()


@contextlib.contextmanager
def throttle(cluster, admin, topic):
    """Some records in the topic, and so few bytes a second for copies that they take long."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for _number in range(300):
        producer.produce(topic, b"x" * 10_000)
    assert producer.flush(30) == 0

    def limit(kind):
        # Of a topic that is created with it, brokers do not notice the list.
        wanted = [(ConfigResource.Type.TOPIC, topic, "replicas", "*")]
        wanted += [(ConfigResource.Type.BROKER, str(broker), "rate", "20000") for broker in ALL]
        for kind_of, name_of, word, value in wanted:
            entries = [
                ConfigEntry(
                    f"{side}.replication.throttled.{word}", value, incremental_operation=kind
                )
                for side in ("leader", "follower")
            ]
            resource = ConfigResource(kind_of, name_of, incremental_configs=entries)
            (done,) = admin.incremental_alter_configs([resource]).values()
            done.result(20)

    limit(AlterConfigOpType.SET)
    try:
        yield
    finally:
        limit(AlterConfigOpType.DELETE)


@contextlib.contextmanager
def churning(admin, name, replicas):
    """Topics are made and deleted at once, one after the other; yields a list of those that there were."""
    from confluent_kafka.admin import NewTopic

    stop, made = threading.Event(), []

    def churn():
        number = 0
        while not stop.is_set():
            number += 1
            brief = f"{name}-brief-{number}"
            with contextlib.suppress(Exception):
                admin.create_topics([NewTopic(brief, 2, replicas)])[brief].result(20)
                made.append(brief)
                admin.delete_topics([brief])[brief].result(20)
            stop.wait(0.1)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        yield made
    finally:
        stop.set()
        thread.join()


def test_topics_come_and_go_while_it_looks(gate, make, admin, name):
    """Neither refused nor waited for."""
    make("plain", 3, partitions=3, min_insync_replicas=2)
    with churning(admin, name, 3) as made:
        found = [gate(broker, quiet_seconds=1.5, wait_seconds=60) for broker in ALL]
    assert not [each.msg for each in found if each.failed] and made


def test_topics_of_one_replica_that_come_and_go_are_not_refused(gate, make, admin, name):
    """Each is gone before the quiet time is over; with consent nobody waits for there to be none."""
    make("plain", 3, partitions=3, min_insync_replicas=2)
    plans = []
    with churning(admin, name, 1) as made:
        deadline = time.monotonic() + 120
        while len(plans) < 2 or (len(made) < 3 and time.monotonic() < deadline):
            plans.append(gate(ALL, quiet_seconds=20))
        passed = gate(1, quiet_seconds=0, wait_seconds=60, accept_unavailable=["all"])
    assert not any(plan.refusal for plan in plans) and len(made) > 2
    assert not passed.failed, passed.msg


def test_the_requests_do_not_depend_on_the_number_of_topics(cluster, modules, make):
    """Two looks at one topic and at forty."""
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
        KafkaClient,
    )
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
        Connection,
    )
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.gatekeeper import (
        Gatekeeper,
        Question,
    )

    def spent():
        addresses = tuple(("127.0.0.1", cluster.broker_port(broker)) for broker in ALL)
        client = KafkaClient(Connection(addresses, timeout=20))
        client.connect()
        keeper = Gatekeeper(Question((1, 2, 3), (1, 2, 3)))
        keeper.look(client)
        keeper.look(client)
        client.close()
        return dict(client.requests)

    def spent_when_all_know_all():
        """A topic that one broker does not know yet is looked at once more."""
        return wait_until(
            lambda: (found := spent())["describe_topic_setting"] == 1 and found,
            30,
            "one look at settings",
        )

    make("first", 3)
    before = spent_when_all_know_all()
    make("many", 3, alike=40)
    assert spent_when_all_know_all() == before
    # Settings of topics and the defaults of three brokers once, the rest at every look.
    assert before["describe_broker_configs"] == 3 and before["list_reassignments"] == 2


def test_a_replica_grows_with_what_is_written_to_it(cluster, make):
    """By what a broker says of its own replicas the gate knows whether one that is in no ISR catches up."""
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
        KafkaClient,
    )
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
        Connection,
    )

    topic = make("grows", 3, partitions=2)
    addresses = tuple(("127.0.0.1", cluster.broker_port(broker)) for broker in ALL)
    client = KafkaClient(Connection(addresses, timeout=20))
    client.connect()
    sizes = []
    for _round in range(2):
        write({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"}, topic, {0: 50})
        sizes.append(client.fetch_replica_bytes(2, [(topic, 0), (topic, 1)], addresses))
    client.close()
    assert 0 < sizes[0][topic, 0] < sizes[1][topic, 0], sizes
    assert sizes[0][topic, 1] == sizes[1][topic, 1] == 0, sizes
    assert client.fetch_replica_bytes(9, [(topic, 0)], addresses) is None, "nobody of that id"


def test_old_and_new_addresses_may_be_mixed(gate, make, cluster):
    """While a port is rolled, some of them are refused."""
    make("plain", 3)
    nobody = f"127.0.0.1:{free_port()}"
    assert not gate(1, bootstrap_servers=[nobody, *cluster.bootstrap_servers.split(",")]).failed


def test_another_cluster_is_never_judged(gate):
    found = gate(1, cluster_id="somebody-elses", wait_seconds=1)
    assert found.failed and "cluster" in found.msg


def test_where_nobody_answers_the_deadline_is_kept(gate):
    nobody = f"127.0.0.1:{free_port()}"
    found = gate(1, bootstrap_servers=nobody, wait_seconds=1, timeout=1)
    assert found.failed and "gate.waiting" in found.msg and "Connection refused" in found.msg
    # everything may be unavailable: then nobody need be asked
    blind = gate(1, bootstrap_servers=nobody, accept_unavailable=["all"], timeout=1)
    assert not blind.failed and "nobody can be asked" in blind.mending
    assert "Connection refused" in str(blind.warnings)


def test_a_wrong_password_for_us_is_not_waited_for(gate, cluster):
    login = {
        "bootstrap_servers": cluster.listener_address("LOGIN"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "admin",
        "sasl_password": "wrong",
    }
    found = gate(1, **login, wait_seconds=600)
    assert found.failed and "connection.credentials" in found.msg
    assert "-e kafka_accept_unavailable=all" in found.msg


@pytest.mark.parametrize("options", [{}, {"broker": 1, "brokers": [1]}])
def test_one_broker_or_several(cluster, options):
    found = run_module(
        "kafka_broker_gate", {"bootstrap_servers": cluster.bootstrap_servers, **options}
    )
    assert found.failed and "broker" in found.msg

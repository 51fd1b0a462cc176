# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a live cluster that go wrong, or could: refused before the first stop, cured by running again."""

from __future__ import annotations

import re
import secrets

import pytest
import yaml
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from tests.local.certificates import make_certificates
from tests.local.support import LocalCluster, Unsafe
from tests.local.watching import changed
from tests.support.outside import wait_until
from tests.support.traffic import Traffic
from tests.support.watching import Watch, cluster_is_whole

NEVER = ("-e", "flow_validation=never")
TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync


# --- topics that cannot spare a broker ---------------------------------------------------------------


@pytest.fixture
def scratch(cluster):
    """Two topics that can never spare a broker; both are gone at the end."""
    wanted = {
        "scratch": NewTopic("scratch", 3, 1, config={"min.insync.replicas": "1"}),
        "strict": NewTopic("strict", 1, 3, config={"min.insync.replicas": "3"}),
    }
    admin = cluster.admin()
    for future in admin.create_topics(list(wanted.values())).values():
        future.result(30)
    wait_until(lambda: set(wanted) <= set(admin.list_topics(timeout=10).topics), 30, "topics")
    yield sorted(wanted)
    # A client of its own: after a roll, the other one asks a broker that is controller no more.
    last = cluster.admin()
    wait_until(lambda: last.list_topics(timeout=10).controller_id > 0, 30, "a controller")
    for future in last.delete_topics(list(wanted)).values():
        future.result(30)


def test_what_cannot_spare_a_broker_is_refused_until_it_is_accepted(cluster, scratch):
    """Before the first broker stops, with the option to copy; with it, everybody restarts."""
    before = cluster.processes()
    cluster.set_brokers({"queued.max.requests": 505})
    # ZooKeeper's turns come first, and must not be over by then
    cluster.configure("zookeeper", zookeeper_config={"snapCount": 100001})
    run = cluster.play("site.yml", *NEVER, code=2)
    cluster.configure("zookeeper")
    assert "[gate.cannot_pass]" in run.text
    for name, why in (
        ("scratch-0", "1 replica"),
        ("strict-0", "3 replicas, min.insync.replicas 3"),
    ):
        assert f"{name} ({why})" in run.text
    option = "-e kafka_accept_unavailable=scratch,strict"
    assert f"`{option}`" in run.text
    planned = " ".join(cluster.play("site.yml", *NEVER, "--check", code=2).text.split())
    assert planned.index("3. restart of ") < planned.index("[gate.cannot_pass]"), planned
    assert "restart of kafka-1: server.properties: queued.max.requests" in planned, planned
    assert cluster.processes() == before, "nothing was stopped"

    looked = cluster.play("site.yml", *NEVER, "--check", *option.split())
    assert "broker 1" in looked.text and "may stop now" in looked.text
    assert cluster.processes() == before
    with Watch(cluster) as watch:
        cluster.play("site.yml", *NEVER, *option.split())
    assert sorted(watch.check()) == sorted(cluster.brokers)
    assert changed(before, cluster.processes()) == set(cluster.brokers)


# --- the port of a listener --------------------------------------------------------------------------


def listeners(moved):
    """kafka_listeners of inventories/local with ports that lie `moved` above."""
    port = "{{ %d + local_index | int + local_port_offset | int }}" % (9091 + moved)
    rest = {"protocol": "PLAINTEXT", "bind": "127.0.0.1", "advertised": "127.0.0.1"}
    return [{"name": "LOCAL", "port": port, **rest, "audience": ["brokers", "clients"]}]


@pytest.mark.soak
def test_the_port_of_a_listener_rolls_while_records_flow(cluster):
    """There and back. Brokers are asked where they are, at the old and the new ports meanwhile."""
    wait_until(lambda: cluster_is_whole(cluster), 60, "whole")
    before = cluster.processes()
    try:
        with Traffic(cluster, TOPIC) as traffic:
            wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
            cluster.configure("kafka", kafka_listeners=listeners(10))
            looked = cluster.play("site.yml", *NEVER, "--check")
            assert "may stop now" in looked.text
            cluster.play("status.yml", "-e", "status_strict=true")
            cluster.deploy("--limit", "kafka-2")
            assert changed(before, cluster.processes()) == {"kafka-2"}
            cluster.deploy()
            sent = len(traffic.acknowledged)
            wait_until(lambda: len(traffic.acknowledged) > sent, 60, "acknowledgements")
        cluster.moved = 10
        assert changed(before, cluster.processes()) == set(cluster.brokers)
        wait_until(lambda: cluster_is_whole(cluster), 60, "whole at the new ports")
        assert not traffic.failed and traffic.lost() == []
        assert cluster.deploy().changed() == 0
    finally:
        cluster.configure("kafka")
        cluster.deploy()
        cluster.moved = 0
    assert cluster_is_whole(cluster)


# --- a broker that nobody lets in ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(next_offset):
    """Two brokers with TLS, names and passwords."""
    with LocalCluster(next_offset(), inventory="tests/local/inventories/secured") as running:
        right, wrong = running.overlay / "certificates", running.overlay / "others"
        for folder in (right, wrong):
            folder.mkdir()
            make_certificates(folder, running.brokers)  # each by an authority of its own
        passwords = {user: secrets.token_hex(9) for user in ("broker", "admin", "alice")}
        running.settings = {
            "secured_certificates": str(right),
            "secured_passwords": {user: Unsafe(text) for user, text in passwords.items()},
            "kafka_wait_timeout_seconds": 25,
        }
        running.wrong_certificates = wrong
        running.configure("kafka", **running.settings)
        running.client_settings = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": passwords["admin"],
            "ssl.ca.location": str(right / "ca.crt"),
        }
        running.deploy()
        yield running


SPOILT = {
    "password": {
        "kafka_sasl": {
            "mechanisms": ["PLAIN"],
            "inter_broker_mechanism": "PLAIN",
            "inter_broker_user": "broker",
            "inter_broker_password": "not the one that the other broker has",
            "users": {"admin": "{{ secured_passwords.admin }}"},
        }
    },
    # Of another authority altogether: with the right one it would not trust itself, and not even start. The
    # playbook trusts both, as it would while an authority is replaced; else it refuses before the stop.
    "certificate": {
        "kafka_ssl": {
            "certificate": "{{ lookup('ansible.builtin.file', wrong_certificates ~ '/kafka-2.crt') }}",
            "key": "{{ lookup('ansible.builtin.file', wrong_certificates ~ '/kafka-2.key') }}",
            "ca": "{{ lookup('ansible.builtin.file', wrong_certificates ~ '/ca.crt') }}",
            "client_auth": "none",
        },
        "kafka_client_security": {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "PLAIN",
            "sasl_username": "admin",
            "sasl_password": "{{ secured_passwords.admin }}",
            "ssl_ca": "{{ lookup('ansible.builtin.file', secured_certificates ~ '/ca.crt',"
            " wrong_certificates ~ '/ca.crt', wantlist=true) | join('\n') }}",
        },
    },
}


@pytest.mark.soak
@pytest.mark.parametrize("what", SPOILT)
def test_after_a_wrong_secret_on_one_broker_correcting_it_is_the_whole_cure(guarded, what):
    """It is up, registered and in no ISR; the run fails, and the same playbook mends it."""
    before = guarded.processes()

    def in_sync():
        try:
            return cluster_is_whole(guarded)
        except KafkaException:
            return None

    wait_until(in_sync, 60, "whole before")
    spoilt = {"wrong_certificates": str(guarded.wrong_certificates), **SPOILT[what]}
    guarded.configure("kafka-2", **spoilt)
    failed = guarded.play("site.yml", *NEVER, code=2)
    after = guarded.processes()
    assert changed(before, after) == {"kafka-2"}, failed.text
    assert all(after.values()), "it runs, and nobody lets it in"
    # by whom it asks last: others miss it, or it cannot be asked itself
    assert re.search(r"\[(cluster\.not_ready|connection\.[a-z_]+)\]", failed.text), failed.text

    guarded.configure("kafka-2")
    # One look at such a cluster may take longer than the short patience of the run that fails.
    cured = guarded.deploy("-e", "kafka_wait_timeout_seconds=120")
    assert changed(after, guarded.processes()) == {"kafka-2"}, cured.text
    wait_until(in_sync, 60, "whole again")
    assert guarded.deploy().changed() == 0


@pytest.mark.soak
@pytest.mark.parametrize("playbook", ["scale_out.yml", "scale_in.yml", "spread_disks.yml"])
def test_moves_are_cancelled_by_whom_the_cluster_lets_in(guarded, playbook):
    """Without another setting than those of the inventory, and nothing else is done."""
    before = guarded.processes()
    run = guarded.play(playbook, "-e", "cancel=true")
    assert "nothing to cancel" in run.text and run.changed() == 0, run.text
    assert guarded.processes() == before


@pytest.fixture
def guarded_by_three(next_offset):
    """A cluster like `guarded`, with a third broker."""
    with LocalCluster(next_offset(), inventory="tests/local/inventories/secured") as running:
        third = {"kafka": {"hosts": {"kafka-3": {"kafka_broker_id": 3}}}}
        (running.overlay / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": third}}))
        running.brokers["kafka-3"] = 3
        folder = running.overlay / "certificates"
        folder.mkdir()
        make_certificates(folder, running.brokers)
        passwords = {user: secrets.token_hex(9) for user in ("broker", "admin", "alice")}
        running.configure(
            "kafka",
            secured_certificates=str(folder),
            secured_passwords={user: Unsafe(text) for user, text in passwords.items()},
            kafka_wait_timeout_seconds=40,
        )
        running.client_settings = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": passwords["admin"],
            "ssl.ca.location": str(folder / "ca.crt"),
        }
        running.deploy()
        yield running


@pytest.mark.soak
def test_after_a_wrong_secret_on_two_brokers_correcting_it_is_the_whole_cure(guarded_by_three):
    """The first one that is cured does not wait for the second one, which gets its own turn."""
    cluster = guarded_by_three
    wait_until(lambda: cluster_is_whole(cluster), 60, "whole before")
    # The gate would let only one of them stop, so both are down when they get the wrong password.
    for name in ("kafka-2", "kafka-3"):
        cluster.supervisorctl("stop", name)
        cluster.configure(name, **SPOILT["password"])
    failed = cluster.play("site.yml", *NEVER, code=2)
    assert re.search(r"\[(cluster\.not_ready|connection\.[a-z_]+)\]", failed.text), failed.text
    sick = cluster.processes()
    assert all(sick.values()), "they run, and nobody lets them in"

    for name in ("kafka-2", "kafka-3"):
        cluster.configure(name)
    cured = cluster.deploy("-e", "kafka_wait_timeout_seconds=120")
    assert changed(sick, cluster.processes()) == {"kafka-2", "kafka-3"}, cured.text
    wait_until(lambda: cluster_is_whole(cluster), 60, "whole again")
    assert cluster.deploy().changed() == 0

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One real cluster of the ZooKeeper line and one KRaft node, shared by all tests of this folder.

Modules run in this process, through their own main(); a few tests go through ansible-playbook.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(CHECKOUT))

from tests.support import collection_finder  # noqa: E402
from tests.support.bare_cluster import BareCluster  # noqa: E402
from tests.support.by_hand import ByHand, throttles  # noqa: E402
from tests.support.run_module import Modules  # noqa: E402
from tests.support.self_signed import self_signed  # noqa: E402
from tests.support.token_provider import TokenProvider  # noqa: E402

collection_finder.install()

PORT_BASE = int(os.environ.get("KAFKAOPS_TEST_PORT_BASE", "20200"))
_numbers = itertools.count(1)


@pytest.fixture
def modules(cluster):
    """Runs modules against the shared cluster: modules.topics([...]), modules.info()."""
    return Modules(cluster.bootstrap_servers)


@pytest.fixture
def name():
    """A topic name that no other test uses."""
    return f"topic-{next(_numbers)}"


@pytest.fixture(scope="session")
def certificate():
    """Made anew in each session, so that none can expire in the repository."""
    return self_signed("kafkaops test")


@pytest.fixture(scope="session")
def tokens(tmp_path_factory, certificate):
    """The OpenID provider whose tokens the listeners TOKEN take."""
    provider = TokenProvider(tmp_path_factory.mktemp("tokens"), certificate)
    yield provider
    provider.close()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory, certificate, tokens):
    """Three ZooKeepers, three brokers of the ZooKeeper line; listeners with passwords, TLS and tokens."""
    of_tokens, flags = tokens.of_brokers("TOKEN")

    with BareCluster(
        directory=tmp_path_factory.mktemp("cluster"),
        port_base=PORT_BASE,
        extra_listeners={
            "LOGIN": "SASL_PLAINTEXT",
            "TLS": "SSL",
            "TOKEN": "SASL_PLAINTEXT",
            "BOTH": "SASL_SSL",
        },
        kafka_flags=flags,
        broker_config={
            **of_tokens,
            # A new controller gives leadership back after 5 s: what gives it back here is our module.
            "auto.leader.rebalance.enable": "false",
            # Retention acts within a second here, not within minutes.
            "log.retention.check.interval.ms": 500,
            "log.initial.task.delay.ms": 500,
            "log.segment.delete.delay.ms": 200,
            "sasl.enabled.mechanisms": "PLAIN",
            **{
                f"listener.name.{name}.plain.sasl.jaas.config": (
                    "org.apache.kafka.common.security.plain.PlainLoginModule required "
                    'user_admin="correct horse";'
                )
                for name in ("login", "both")
            },
            **certificate.of_brokers(),
        },
    ) as running:
        # Registered is not yet known to all.
        ready = Modules(running.bootstrap_servers).info(wait={"brokers": [1, 2, 3]})
        assert not ready.failed, ready.msg
        yield running


@pytest.fixture(scope="session")
def kraft(tmp_path_factory, tokens):
    """One combined KRaft node of the 4.x line, with a listener that takes tokens."""
    of_tokens, flags = tokens.of_brokers("TOKEN")
    with BareCluster(
        directory=tmp_path_factory.mktemp("kraft"),
        port_base=PORT_BASE + 200,
        brokers=1,
        kraft=True,
        extra_listeners={"TOKEN": "SASL_PLAINTEXT"},
        kafka_flags=flags,
        broker_config=of_tokens,
    ) as running:
        yield running


@pytest.fixture(scope="session")
def two_disks(tmp_path_factory):
    """One broker with two log directories."""
    with BareCluster(
        directory=tmp_path_factory.mktemp("disks"),
        port_base=PORT_BASE + 100,
        brokers=1,
        zookeepers=1,
        log_directories=2,
        broker_config={"log.initial.task.delay.ms": 500, "log.segment.delete.delay.ms": 200},
    ) as running:
        yield running


@pytest.fixture
def admin(cluster):
    """A client that is not ours, to look and to interfere behind the module's back."""
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


@pytest.fixture
def counted(monkeypatch):
    """Clients that the module made during the test; their `requests` count."""
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics import resource

    made = []

    class Counted(resource.PythonClient):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            made.append(self)

    monkeypatch.setattr(resource, "PythonClient", Counted)
    return made


@pytest.fixture(scope="module")
def three_kraft(tmp_path_factory):
    """Three KRaft nodes, of which each has records."""
    with BareCluster(
        tmp_path_factory.mktemp("three"),
        port_base=PORT_BASE + 300,
        kraft=True,
        broker_config={"auto.leader.rebalance.enable": "false"},
    ) as running:
        ready = Modules(running.bootstrap_servers).info(wait={"brokers": [1, 2, 3]})
        assert not ready.failed, ready.msg
        yield running


@pytest.fixture(params=["zookeeper", pytest.param("kraft", marks=pytest.mark.soak)])
def both(request):
    """Three brokers, in each mode; that of KRaft takes time to start."""
    return request.getfixturevalue("three_kraft" if request.param == "kraft" else "cluster")


@pytest.fixture
def other(both):
    """Somebody else; what he has left under way is cancelled, with all throttles."""
    found = ByHand(both)
    yield found
    cancelled = found.reassign(state="cancelled")
    assert not cancelled.failed, cancelled.msg
    for subject, key in throttles(found.admin):
        found.configure("broker" if subject in "123" else "topic", subject, {key: None})
    found.python.close()

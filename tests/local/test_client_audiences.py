# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients of two audiences, of which one is told an address that leads nowhere, or elsewhere: who is told what."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.local.support import LocalCluster
from tests.support.lying_proxy import LyingProxy

# Where PARTNERS listens, and where clients of kafka-2 are sent: nothing listens there but what a test puts there.
INSIDE, OUTSIDE = "127.0.0.3", "127.0.0.2"
FINDING = re.compile(
    r"\[(?P<check>reach\.\w+)\] (?P<host>\S+): listener (?P<listener>\w+) of (?P<broker>\S+)="
    r"(?P<address>[\d.]+:\d+): (?P<words>(?:(?!\[reach\.).){,400})"
)


def listener(name, port, bind, advertised, *audience):
    """One of kafka_listeners, whose port follows from the broker's number."""
    number = f"{{{{ {port} + local_index | int + local_port_offset | int }}}}"
    address = {"port": number, "bind": bind, "advertised": advertised}
    return {"name": name, "protocol": "PLAINTEXT", **address, "audience": list(audience)}


@pytest.fixture(scope="module", name="apart")
def _apart(next_offset):
    """Two brokers, of which the second announces to partners an address at which it does not listen."""
    with LocalCluster(next_offset(), inventory="inventories/local-1x2") as cluster:
        cluster.configure(
            "kafka",
            kafka_inter_broker_listener="LOCAL",
            partners_at=INSIDE,
            kafka_listeners=[
                listener("LOCAL", 9091, "127.0.0.1", "127.0.0.1", "brokers", "clients"),
                listener("PARTNERS", 9100, INSIDE, "{{ partners_at }}", "partners"),
            ],
        )
        cluster.configure("kafka-2", partners_at=OUTSIDE)
        clients = {
            "app-1": {"kafka_client_audiences": ["clients"]},
            "partner-1": {"kafka_client_audiences": ["partners"]},
            "both-1": {},
        }
        hosts = {"all": {"children": {"kafka_clients": {"hosts": clients}}}}
        (cluster.overlay / "hosts.yml").write_text(yaml.safe_dump(hosts))
        yield cluster


def told(run):
    """{(check, host, listener, broker, address)} -> the words, of each finding of a run."""
    names = ("check", "host", "listener", "broker", "address")
    # Ansible folds long lines.
    text = " ".join(run.text.replace("\\n", " ").replace("\\", " ").split())
    return {tuple(each[name] for name in names): each["words"] for each in FINDING.finditer(text)}


@pytest.mark.soak  # a cluster of its own
def test_what_one_audience_cannot_reach_is_named_from_there_alone(apart):
    address = f"{OUTSIDE}:{9102 + apart.offset}"
    place = ("PARTNERS", "kafka-2", address)
    from_where = ("partner-1", "both-1")

    def found(check):
        return {(check, host, *place) for host in from_where}

    closed = apart.deploy(code=2)
    findings = told(closed)
    assert set(findings) == found("reach.port"), closed.text
    for words in findings.values():
        assert words.startswith("Connection refused. Remedy: ") and "audience partners" in words
    assert "Clients on app-1 reach every broker" in closed.text

    # what stands there meanwhile, as a mapping of ports would
    listen = (OUTSIDE, 9102 + apart.offset)
    for behind, check, words in (
        (("127.0.0.1", apart.port("kafka-2")), "reach.listener", "listener LOCAL answers"),
        ((INSIDE, 9101 + apart.offset), "reach.broker", "broker 1 answers, not broker 2"),
    ):
        with LyingProxy(listen=listen, broker=behind):
            run = apart.deploy(code=2)
        findings = told(run)
        assert set(findings) == found(check), run.text
        assert all(each.startswith(words) for each in findings.values()), findings
        assert run.changed() == 0, run.text

    with LyingProxy(listen=listen, broker=(INSIDE, listen[1])):
        run = apart.deploy()
    assert not told(run)
    for host in ("app-1", "partner-1", "both-1"):
        assert f"Clients on {host} reach every broker" in run.text

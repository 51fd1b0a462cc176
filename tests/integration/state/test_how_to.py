# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks of docs/how-to.md as they stand there, by the installed collection: check, run, nothing to do then."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from tests.support.adopted import Played
from tests.support.outside import create_topics
from tests.support.readers import commit
from tests.support.secured_cluster import PASSWORDS, SecuredCluster, secured_cluster

CHECKOUT = Path(__file__).resolve().parents[3]
PAGE = (CHECKOUT / "docs" / "how-to.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```yaml\n# ([\w/-]+\.yml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLAYBOOKS = {name: f"---\n{text}" for name, text in BLOCK.findall(PAGE)}
KEPT_MS = 30 * 86400000


class Reader:
    """Somebody who has installed the collection, and copies from the page into a folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        tool = str(Path(sys.executable).with_name("ansible-galaxy"))
        self._run(tool, "collection", "build", "--output-path", folder / "dist", CHECKOUT)
        (tarball,) = (folder / "dist").glob("*.tar.gz")
        where = ["--offline", "-p", folder / "collections"]
        self._run(tool, "collection", "install", *where, tarball)
        for name, text in PLAYBOOKS.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def _run(self, *command: object, **variables: str) -> subprocess.CompletedProcess:
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("ANSIBLE_", "KAFKA_"))
        }
        own = {
            "ANSIBLE_COLLECTIONS_PATH": str(self.folder / "collections"),
            "ANSIBLE_NOCOLOR": "1",
            # lists as Played reads them
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "yaml",
        }
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.folder,
            env={**kept, **own, "PWD": str(self.folder), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return done

    def play(self, cluster: SecuredCluster, *arguments: str, code: int = 0) -> Played:
        """ansible-playbook with the page's variables of the environment."""
        tool = Path(sys.executable).with_name("ansible-playbook")
        done = self._run(
            tool,
            *arguments,
            KAFKA_BOOTSTRAP_SERVERS=cluster.bootstrap_servers,
            KAFKA_SECURITY_PROTOCOL="SASL_PLAINTEXT",
            KAFKA_SASL_MECHANISM="PLAIN",
            KAFKA_SASL_USERNAME="admin",
            KAFKA_SASL_PASSWORD=PASSWORDS["admin"],
            TEAM_X_PASSWORD="to be changed",
        )
        assert done.returncode == code, done.stdout[-6000:] + done.stderr[-3000:]
        return Played(done.returncode, done.stdout + done.stderr)

    def applies(self, cluster: SecuredCluster, *arguments: str, changed: int) -> None:
        """Check mode announces `changed` tasks, the run does them, and then there is nothing to do."""
        assert self.play(cluster, *arguments, "--check", "--diff").changed == changed
        assert self.play(cluster, *arguments).changed == changed
        assert self.play(cluster, *arguments).changed == 0


@pytest.fixture(scope="module", name="reader")
def _reader(tmp_path_factory):
    return Reader(tmp_path_factory.mktemp("reader"))


def create(cluster, name, partitions=1, **config):
    """A topic as somebody else has made it, replaced if it is there."""
    create_topics(cluster.client_settings(), [NewTopic(name, partitions, -1, config={**config})])


def test_the_page_has_one_playbook_for_each_question():
    questions = re.findall(r"^\* \[.*\]\(#(.*)\)$", PAGE, re.MULTILINE)
    sections = [
        re.sub(r"[^\w-]", "", title.lower().replace(" ", "-"))
        for title in re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    ]
    assert sections == ["first-once", *questions] and len(PLAYBOOKS) == len(questions)


def test_keep_logs_seven_days(reader, on_kraft):
    create(on_kraft, "logs.web", **{"retention.ms": str(KEPT_MS)})
    refused = reader.play(on_kraft, "keep-logs.yml", "--check", code=2)
    assert "[retention.cut] logs.web" in refused.text
    reader.applies(on_kraft, "keep-logs.yml", "-e", "allow=retention_cut", changed=1)
    told = on_kraft.tool(
        *("org.apache.kafka.tools.TopicCommand", "--describe", "--topic", "logs.web")
    )
    assert "retention.ms=604800000" in told


def test_give_team_x_read_access(reader, on_kraft):
    create(on_kraft, "orders")
    reader.applies(on_kraft, "team-x.yml", changed=2)
    told = on_kraft.acl_tool("--list", "--principal", "User:team-x")
    assert "name=orders, patternType=LITERAL" in told and "operation=READ" in told
    assert "name=team-x., patternType=PREFIXED" in told
    grown = reader.play(on_kraft, "grow.yml", "--check", code=2)
    assert "[partitions.growth] orders" in grown.text
    reader.applies(on_kraft, "grow.yml", "-e", "allow=partition_growth", changed=1)


def test_what_is_lagging_and_what_is_lost(reader, on_kraft):
    create(on_kraft, "read-slowly", **{"retention.ms": "3600000"})
    producer = Producer(on_kraft.client_settings())
    for number in range(10):
        producer.produce("read-slowly", str(number), partition=0)
    producer.flush(30)
    commit(on_kraft.client_settings(), "slow", {("read-slowly", 0): 4})
    told = reader.play(on_kraft, "lagging.yml", "-e", "seconds=1")
    assert re.search(r"slow +read-slowly-0 +4 +10 +6 .*STOP", told.text) and told.changed == 0
    late = reader.play(on_kraft, "losing.yml", code=2)
    assert "loses records soon: slow" in late.text, late.text
    commit(on_kraft.client_settings(), "slow", {("read-slowly", 0): 10})


@pytest.mark.soak
def test_empty_a_broker(reader, tmp_path):
    base = int(os.environ.get("KAFKAOPS_TEST_PORT_BASE", "20200")) + 600
    with secured_cluster(tmp_path, base, False, brokers=4) as running:
        cluster = SecuredCluster(running)
        ready = cluster.run("kafka_cluster_info", timeout=30, wait={"brokers": [1, 2, 3, 4]})
        assert not ready.failed, ready.msg
        create(cluster, "orders", partitions=8)
        reader.applies(cluster, "empty.yml", "-e", "broker=3", changed=1)
        told = cluster.tool("org.apache.kafka.tools.TopicCommand", "--describe")
        assert not re.search(r"Replicas: \S*\b3\b", told), told


@pytest.mark.soak
def test_adopt_an_existing_cluster(reader, secured):
    create(secured, "mine.1", **{"retention.ms": "1000000"})
    path = reader.folder / "shop" / "hosts.yml"
    text = PLAYBOOKS["shop/hosts.yml"]
    for number, address in enumerate(secured.bootstrap_servers.split(",")[:2], 1):
        text = text.replace(
            f"{{client_address: kafka-{number}.example.org, client_port: 9092}}",
            "{client_address: 127.0.0.1, client_port: %s}" % address.rpartition(":")[2],
        )
    text = "".join(line + "\n" for line in text.splitlines() if "example.org" not in line)
    text = text.replace("SASL_SSL", "SASL_PLAINTEXT").replace("SCRAM-SHA-512", "PLAIN")
    path.write_text(text.replace("      ssl_ca: /etc/kafkaops/ca.pem\n", ""))
    state = reader.folder / "shop" / "group_vars" / "kafka" / "state.yml"
    state.unlink(missing_ok=True)
    reader.play(secured, "kafkaops.cluster.export", "-i", "shop")
    state.parent.mkdir(parents=True, exist_ok=True)
    (reader.folder / "shop-state.yml").rename(state)
    told = reader.play(secured, "kafkaops.cluster.state", "-i", "shop", "--check", "--diff")
    assert told.lines["topics"] == "as declared" and set(told.lines.values()) == {"as declared"}
    assert "[WARNING]" not in told.text, told.text
    producer = Producer(secured.client_settings())
    producer.produce("mine.1", b"x")
    assert producer.flush(60) == 0
    commit(secured.client_settings(), "reads-mine", {("mine.1", 0): 0})
    lag = reader.play(secured, "kafkaops.cluster.lag", "-i", "shop")
    assert re.search(r"reads-mine +mine\.1-0 ", lag.text) and lag.changed == 0, lag.text

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new user's first hour: clone, ./quickstart.sh, look around, stop, start, remove.

The tests of this file go through one cluster in the order in which they stand.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.local.support import CHECKOUT, LocalCluster
from tests.support import verdict_schema

pytest.importorskip("pyspark")

# The environment is installed anew, from pip's cache if there is one.
QUICKSTART_TIMEOUT = 1500


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone of the last commit, as a user has it: no environment, nothing generated."""
    folder = tmp_path_factory.mktemp("clone") / "cluster"
    subprocess.run(["git", "clone", "--quiet", str(CHECKOUT), str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def quick(clone, next_offset):
    """The cluster that ./quickstart.sh has made; `quick.first` is that Run."""
    cluster = LocalCluster(next_offset(), checkout=clone, python=clone / ".venv" / "bin" / "python")
    # Not the environment that runs these tests: quickstart.sh makes its own.
    ours = str(Path(sys.prefix) / "bin")
    path = os.pathsep.join(
        item for item in os.environ["PATH"].split(os.pathsep) if item.rstrip("/") != ours
    )
    environment = {"PATH": path, "ANSIBLE_CONFIG": "", "VIRTUAL_ENV": ""}
    with cluster:
        command = [clone / "quickstart.sh", "-e", f"local_port_offset={cluster.offset}"]
        cluster.first = cluster.run(command, timeout=QUICKSTART_TIMEOUT, environment=environment)
        yield cluster


def read_all(cluster, topic, number):
    """Return the lines that Kafka's console consumer reads from the beginning of a topic."""
    said = cluster.tool(
        "kafka-console-consumer.sh",
        *("--topic", topic, "--from-beginning", "--max-messages", number, "--timeout-ms", 60000),
    )
    return {line for line in said.splitlines() if line.startswith("record ")}


def test_deployed_and_proven(quick):
    """Six processes, and a verdict with everything that the contract names."""
    assert None not in quick.processes().values()
    latest = quick.home / "reports" / "local" / "latest"
    verdict = verdict_schema.read(latest / "verdict.json")
    assert verdict["verdict"] == "pass"
    assert verdict["schema_version"] and verdict["run_id"]
    meta = (quick.instance("kafka-1") / "data" / "meta.properties").read_text()
    assert f"cluster.id={verdict['cluster_id']}" in meta
    checks = {check["id"]: check for check in verdict["checks"]}
    assert {"loss", "phantom", "duplicate", "order", "gap", "coverage", "emptiness"} <= set(checks)
    for check in checks.values():
        assert {"id", "status", "count", "witnesses"} <= set(check)
    counts = verdict["counts"]
    assert counts["acked"] == counts["read"] > 0 and counts["unknown"] == counts["failed"] == 0
    assert "<html" in (latest / "report.html").read_text()
    assert list((latest / "ledger").rglob("*.parquet"))
    # the person reads where it listens and what was proven, not only files
    assert f"127.0.0.1:{quick.port('kafka-1')}" in quick.first.text and "PASS" in quick.first.text
    assert "3 brokers of Kafka 3.9.2, 3 servers of ZooKeeper 3.9.5" in quick.first.text


def test_topics_as_kafka_sees_them(quick):
    """Three topics or more, with the retention that the inventory spells for people."""
    wanted = {"orders": 7 * 86400000, "payments": 30 * 86400000, "clicks": 12 * 3600000}
    described = quick.tool("kafka-configs.sh", "--entity-type", "topics", "--describe")
    for topic, milliseconds in wanted.items():
        section = re.search(rf"for topic {topic} are:\n(.*?)(\n\S|\Z)", described, re.DOTALL)
        assert section and f"retention.ms={milliseconds} " in section[1], described
    assert re.search(r"for topic customers are:\n\s+cleanup.policy=compact ", described), described


def test_console_clients(quick):
    """A client that is not ours writes and reads through it."""
    lines = [f"record {number}" for number in range(100)]
    quick.tool("kafka-console-producer.sh", "--topic", "orders", stdin="\n".join(lines) + "\n")
    assert read_all(quick, "orders", len(lines)) == set(lines)


def test_second_run_changes_nothing(quick):
    """No host changed, no process restarted, no file of the configuration written."""
    before, files = quick.processes(), quick.configuration_times()
    run = quick.play("site.yml")
    assert len(run.recap) == 6
    assert {host: counts["changed"] for host, counts in run.recap.items()} == dict.fromkeys(
        quick.names, 0
    ), run.text
    assert (quick.processes(), quick.configuration_times()) == (before, files)


def test_status(quick):
    """One line an instance, one controller, one leader of the ensemble, nothing pending."""
    text = quick.play("status.yml").text
    rows = {
        found[1]: found[0]
        for found in re.finditer(r"^\W*((?:kafka|zookeeper)-\d)  +.*$", text, re.MULTILINE)
        if "restart" not in found[0].lower() and re.search(r"\dZ ", found[0])
    }
    assert set(rows) == set(quick.names), text
    for name, row in rows.items():
        number = name[-1]
        role, version = ("kafka", "3.9.2") if "kafka" in name else ("zookeeper", "3.9.5")
        assert re.search(rf"{name} +{role} +{number} +\d{{4}}-\d\d-\d\d [\d:]+Z +{version} ", row)
        assert re.search(r" no\W*$", row), row
    states = " ".join(rows.values())
    assert states.count(" controller ") == 1 and states.count(" broker ") == 2
    assert states.count(" leader ") == 1 and states.count(" follower ") == 2
    assert "Every partition has all of its replicas in sync." in text


def test_stop_and_start(quick):
    """Stopped is stopped, twice, too; started again, the data are still there."""
    before = quick.processes()
    run = quick.play("stop.yml")
    assert set(quick.processes().values()) == {None} and run.changed() == 6
    assert quick.play("stop.yml").changed() == 0
    assert "down" in quick.play("status.yml").text
    assert set(quick.processes().values()) == {None}, "to look is not to start"
    quick.play("start.yml")
    after = quick.processes()
    assert None not in after.values() and not set(after.values()) & set(before.values())
    assert len(read_all(quick, "orders", 100)) == 100
    assert quick.play("start.yml").changed() == 0 and quick.processes() == after
    assert quick.play("site.yml").changed() == 0 and quick.processes() == after


def test_collection_elsewhere(quick, clone, tmp_path, next_offset):
    """The built tarball, installed in another folder, deploys and proves a cluster by full name."""
    collections = tmp_path / "collections"
    # Neither the checkout's ansible.cfg nor its collections: with them, the tarball counts as installed.
    alone = {
        "environment": {"ANSIBLE_CONFIG": "", "ANSIBLE_COLLECTIONS_PATH": str(collections)},
        "cwd": tmp_path,
    }
    galaxy = [quick.python.with_name("ansible-galaxy"), "collection"]
    with LocalCluster(
        next_offset(), inventory="inventories/local-1x1", checkout=clone, python=quick.python
    ) as elsewhere:
        elsewhere.run([*galaxy, "build", "--output-path", tmp_path / "dist", clone], **alone)
        (tarball,) = (tmp_path / "dist").glob("*.tar.gz")
        elsewhere.run([*galaxy, "install", "--offline", "-p", collections, tarball], **alone)
        inventory = collections.joinpath(
            "ansible_collections", "kafkaops", "cluster", "inventories", "local-1x1"
        )
        run = elsewhere.run(
            [
                *(quick.python.with_name("ansible-playbook"), "kafkaops.cluster.site"),
                *("-i", inventory, "-e", f"local_port_offset={elsewhere.offset}"),
            ],
            **alone,
        )
        verdict = elsewhere.home / "reports" / elsewhere.name / "latest" / "verdict.json"
        assert verdict_schema.read(verdict)["verdict"] == "pass", run.text
        assert None not in elsewhere.processes().values()


def test_teardown(quick):
    """Data go only with the cluster's own name."""
    running = quick.processes()
    run = quick.play("teardown.yml", "-e", "confirm=production", code=2)
    assert "[teardown.confirm]" in run.text and "confirm=local" in run.text
    assert quick.processes() == running, "a wrong confirmation stops nothing"

    run = quick.play("teardown.yml")
    assert quick.processes() == running, "without a confirmation nothing is stopped"
    assert run.changed() == 0
    assert "nothing was changed" in run.text and "confirm=local" in run.text
    for name in quick.names:
        words = " ".join(run.text.split())
        assert re.search(
            rf"cluster local, {name}: would stop \w+ and delete [^']*{name}/data", words
        )
        assert list((quick.instance(name) / "data").iterdir()), f"{name} still has its data"

    noted = quick.instance(quick.names[0]) / "notes.txt"
    noted.write_text("mine")
    run = quick.play("teardown.yml", "-e", "confirm=local")
    assert not quick.stray()
    assert f"stays {noted.parent}: it holds notes.txt" in " ".join(run.text.split())
    cluster = noted.parents[1]
    assert sorted(cluster.rglob("*")) == [noted.parent, noted], "only what is not ours"
    noted.unlink()
    assert (quick.home / "reports" / "local" / "latest" / "verdict.json").exists(), "results stay"
    quick.play("teardown.yml", "-e", "confirm=local")
    assert not cluster.exists(), "a folder that is empty by now goes, too"
    assert quick.play("teardown.yml", "-e", "confirm=local").changed() == 0

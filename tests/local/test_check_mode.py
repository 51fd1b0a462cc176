# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""--check, --diff and --limit: what is announced is what happens, and no more than what was asked for."""

from __future__ import annotations

import re

import pytest

from tests.local.support import CHECKOUT, LocalCluster

# A setting that Kafka reads only at its start.
# Not one that needs consent on the way back.
KEY = "group.initial.rebalance.delay.ms"


def everything_below(folder):
    """Return all paths below a folder, but for what every run of any playbook may leave: reports, and Ansible's own
    files below HOME, which is `user` here.
    """
    kept = {"reports", "user"}
    return [path for path in folder.rglob("*") if kept.isdisjoint(path.relative_to(folder).parts)]


def test_nothing_there(next_offset):
    """On an empty machine --check fails nowhere, creates nothing, and does not say `unchanged`."""
    with LocalCluster(next_offset(), own_software=True) as cluster:
        run = cluster.play("site.yml", "--check", "--diff")
        assert not everything_below(cluster.home)
        assert not cluster.stray()
        for name in cluster.names:
            # at least the configuration and the start
            assert run.recap[name]["changed"] >= 2, run.text
        assert "+zookeeper.connect=" in run.text and "+server.1=" in run.text
        assert re.search(
            r"^\+ *orders:", run.text, re.MULTILINE
        ), "topics are planned against an empty cluster"


def test_what_was_never_installed_can_be_stopped_and_removed(next_offset):
    """A run that ended before it made the accounts: there is nothing to do, and that is no failure."""
    with LocalCluster(next_offset(), own_software=True) as cluster:
        accounts = ("-e", "kafka_account=nobody-yet", "-e", "zookeeper_account=nobody-yet")
        for playbook in ("status.yml", "stop.yml", "teardown.yml"):
            run = cluster.play(playbook, *accounts, "-e", f"confirm={cluster.name}")
            assert run.changed() == 0, run.text


def test_of_what_was_never_deployed_nothing_is_proven(next_offset):
    """The proof says which cluster does not answer, and what to do."""
    with LocalCluster(next_offset()) as cluster:
        soon = ("-e", "flow_validation_request_timeout_seconds=2")
        run = cluster.play("validate.yml", *soon, code=2)
        told = " ".join(run.text.split())
        assert (
            f"[validation.not_run] {cluster.bootstrap_servers}: the cluster was not validated"
            in told
        ), told
        assert "no answer from the cluster" in told and "playbooks/site.yml deploys" in told, told


def test_converged(cluster):
    """Nothing to do is announced as nothing to do."""
    run = cluster.play("site.yml", "--check", "--diff")
    assert run.changed() == 0, run.text


def test_changed_setting(cluster):
    """--check --diff shows the key on every broker, restarts none, and writes nothing."""
    before, files = cluster.processes(), cluster.configuration_times()
    cluster.set_brokers({KEY: 3001})
    run = cluster.play("site.yml", "--check", "--diff")
    cluster.set_brokers({KEY: None})
    assert run.text.count("+group.initial.rebalance.delay.ms=3001") == 3
    assert run.text.count("-group.initial.rebalance.delay.ms=3000") == 3
    for name in cluster.brokers:
        assert run.recap[name]["changed"] >= 2, "staged and restarted"
    for name in cluster.zookeepers:
        assert run.recap[name]["changed"] == 0, run.text
    assert (cluster.processes(), cluster.configuration_times()) == (before, files)


def test_limit(cluster):
    """--limit on one broker: only that one is staged and rolled; the next full run does the others.

    The setting stays in the shared cluster: taking it back would be a roll that nobody needs.
    """
    run = cluster.deploy("--limit", "kafka-2")
    assert run.changed() == 0 and list(run.recap) == ["kafka-2"], run.text

    cluster.set_brokers({KEY: 3001})
    before = cluster.processes()
    run = cluster.deploy("--limit", "kafka-2")
    after = cluster.processes()
    assert {name for name in before if before[name] != after[name]} == {"kafka-2"}
    assert "group.initial.rebalance.delay.ms=3001" in configuration(cluster, "kafka-2")
    assert "group.initial.rebalance.delay.ms=3000" in configuration(cluster, "kafka-1")

    # What is staged and not yet run is pending, and stays so, whoever looks.
    cluster.deploy("--tags", "preflight,install,configure")
    assert cluster.processes() == after
    status = cluster.play("status.yml").text
    reason = r"%s: server.properties: group.initial.rebalance.delay.ms 3000 -> 3001"
    assert re.search(reason % "kafka-1", status), status
    assert re.search(reason % "kafka-3", status), status
    assert not re.search(reason % "kafka-2", status), status

    cluster.deploy()
    rolled = cluster.processes()
    assert {name for name in rolled if rolled[name] != after[name]} == {"kafka-1", "kafka-3"}


TAGS = ("preflight", "install", "configure", "run", "topics", "validate")


@pytest.mark.parametrize("tag", TAGS)
def test_each_documented_tag_alone(cluster, tag):
    """What an earlier run has left is looked up: on a converged cluster each part finds nothing to do."""
    before = cluster.processes()
    run = cluster.deploy("--tags", tag)
    assert run.changed() == 0 and cluster.processes() == before, run.text


def test_the_documented_tags_are_those_that_there_are(cluster):
    listed = cluster.play("site.yml", "--list-tags").text
    found = set(re.findall(r"[a-z]+", " ".join(re.findall(r"TAGS: \[(.*?)\]", listed))))
    assert found - {"always"} == set(TAGS)
    readme = (CHECKOUT / "README.md").read_text()
    assert f"Tags: `{' '.join(TAGS)}`" in readme


def test_what_an_earlier_run_has_staged_is_run_alone(cluster):
    """--tags run after --tags configure, as two runs; start.yml between them starts what was in effect."""
    before = cluster.processes()
    cluster.configure("kafka-2", kafka_config={KEY: 3002})
    cluster.deploy("--tags", "configure")
    assert cluster.processes() == before
    cluster.play("stop.yml", "--limit", "kafka-2")
    started = cluster.play("start.yml", "--limit", "kafka-2")
    assert "Kafka: started: kafka-2" in started.text, started.text
    assert f"{KEY}=3002" not in configuration(cluster, "kafka-2")
    before = cluster.processes()
    cluster.deploy("--tags", "run")
    after = cluster.processes()
    assert {name for name in before if before[name] != after[name]} == {"kafka-2"}
    assert f"{KEY}=3002" in configuration(cluster, "kafka-2")
    cluster.configure("kafka-2")  # goes into effect with the next change


def configuration(cluster, name):
    """Return the server.properties that the running broker was started with."""
    return (cluster.instance(name) / "conf" / "current" / "server.properties").read_text()

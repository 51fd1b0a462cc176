# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_retention_policies of an inventory, applied by site.yml and topics.yml; and the plays of docs/retention.md."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import yaml

from tests.local.support import CHECKOUT, LocalCluster

DAY = 86400000
LOGS = {"match": r"logs\..*", "keep_for": "3d", "keep_up_to": "1GiB"}
ELSE = {"match": "aud.*", "leave_alone": True}


@pytest.fixture(scope="module")
def one_broker(next_offset):
    """inventories/local-1x1 with a topic of logs, which a policy says more of, and one that is left alone."""
    with LocalCluster(next_offset(), inventory="inventories/local-1x1") as running:
        declare(running, [ELSE, LOGS])
        running.deploy("-e", "kafka_topics_allow=retention_cut,min_insync_cut")
        yield running


def declare(cluster, policies, **topic):
    """The inventory's topics and policies."""
    topics = [{"name": "logs.web", "partitions": 2, **topic}, {"name": "audit", "partitions": 1}]
    cluster.configure(
        "kafka",
        kafka_topics=topics,
        kafka_retention_policies=policies,
        kafka_retention_disk_budget="100%",
    )


def settings_of(cluster, topic):
    """The topic's own limits as Kafka's own tool describes them."""
    said = cluster.tool(
        "kafka-configs.sh", "--entity-type", "topics", "--entity-name", topic, "--describe"
    )
    return dict(re.findall(r"^ +(retention\.\w+)=(-?\d+)", said, re.M))


def test_policies_of_the_inventory_are_applied_after_the_topics(one_broker):
    """By site.yml at the first deployment; a shorter one is refused, announced, and done with consent."""
    assert settings_of(one_broker, "logs.web") == {
        "retention.ms": str(3 * DAY),
        "retention.bytes": str(2**29),
    }
    assert settings_of(one_broker, "audit") == {}
    assert one_broker.play("topics.yml").changed() == 0

    declare(one_broker, [ELSE, {**LOGS, "keep_for": "1d"}])
    run = one_broker.play("topics.yml", code=2)
    assert "[retention.cut] logs.web" in run.text and "retention.ms down from 3d to 1d" in run.text
    run = one_broker.play("site.yml", code=2)
    # before anything is installed or restarted
    assert "kafka_retention_policies[1].keep_for=1d: logs.web: retention.ms down" in run.text
    consent = ("-e", "kafka_topics_allow=retention_cut")
    run = one_broker.play("topics.yml", "--check", "--diff", *consent)
    assert re.search(r"\+ +retention.ms: '86400000'", run.text)
    assert "logs.web: retention.ms 3d (topic) -> 1d" in run.text
    assert settings_of(one_broker, "logs.web")["retention.ms"] == str(3 * DAY), "announced only"
    assert one_broker.play("topics.yml", *consent).changed() == 1
    assert settings_of(one_broker, "logs.web")["retention.ms"] == str(DAY)


def test_a_topic_and_a_policy_that_contradict_each_other_are_refused(one_broker):
    declare(one_broker, [ELSE, {**LOGS, "keep_for": "9d"}], retention="5d")
    before = settings_of(one_broker, "logs.web")
    run = one_broker.play("topics.yml", code=2)
    assert "[retention.contradiction]" in run.text
    assert "kafka_topics[logs.web].retention=5d: " in run.text and "policies[1] (" in run.text
    assert settings_of(one_broker, "logs.web") == before


def test_policies_that_do_not_fit_the_disk_are_refused(one_broker):
    declare(one_broker, [ELSE, {**LOGS, "keep_up_to": "900TiB"}])
    run = one_broker.play("topics.yml", "-e", "kafka_topics_allow=retention_cut", code=2)
    assert "[retention.over_budget]" in run.text and "logs.web 900.0 TiB" in run.text


PAGE = (CHECKOUT / "docs" / "retention.md").read_text(encoding="utf-8")
PLAYS = [
    each for each in re.findall(r"```yaml\n(.+?)```", PAGE, re.S) if "hosts: localhost" in each
]


@pytest.mark.parametrize("number", range(len(PLAYS)))
def test_the_plays_of_the_page_run(one_broker, tmp_path, number):
    text = re.sub(r"kafka-\d:9092(,kafka-\d:9092)*", one_broker.bootstrap_servers, PLAYS[number])
    play = yaml.safe_load(text)
    for task in play[0]["tasks"]:
        module = task.get("kafkaops.cluster.kafka_retention")
        if module:
            module["allow"] = ["retention_cut"]
            # the machine's disk may be fuller than the page's
            module.pop("disk_budget", None)
    book = tmp_path / "play.yml"
    book.write_text(yaml.safe_dump(play))
    where = ("-i", "localhost,", "-e", f"ansible_python_interpreter={sys.executable}")
    program = [sys.executable, "-m", "ansible", "playbook", *where, str(book)]
    done = subprocess.run(program, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "failed=0" in done.stdout, done.stdout + done.stderr
    assert len(PLAYS) == 3

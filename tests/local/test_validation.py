# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The validation as people use it beside their work: for a while, again, of their own topic, and what it leaves."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from tests.local.support import CHECKOUT

MINE = "validation-orders"
ID = "flow_validation_inspect_id=string(key)"


def reports(cluster):
    return cluster.home / "reports" / cluster.name


def found(cluster, kind="verdict"):
    """The last verdict or inspection."""
    below = reports(cluster) if kind == "verdict" else reports(cluster) / "inspections"
    return json.loads((below / "latest" / f"{kind}.json").read_text())


def topics(cluster):
    return set(cluster.admin().list_topics(timeout=30).topics)


def own(cluster):
    return {name for name in topics(cluster) if name.startswith("kafkaops-flow-")}


def test_a_steady_run_is_judged_again_and_its_leftovers_go(either):
    refused = either.play("validate.yml", "-e", "flow_validation_duration=600", code=2)
    assert "flow_validation_duration" in refused.text and "write 90s, 10m, 2h or 1d" in refused.text

    steady = ["-e", "flow_validation_duration=6s", "-e", "flow_validation_rate=300"]
    run = either.play("validate.yml", *steady, "-e", "flow_validation_keep=true")
    verdict, ledger = found(either), reports(either) / "latest" / "ledger"
    assert (verdict["verdict"], verdict["settings"]["duration_seconds"]) == ("pass", 6)
    assert 0 < verdict["counts"]["acked"] <= 1800
    assert verdict["timing"]["acknowledgement_latency"]["p99_9_ms"] > 0
    assert {each["version"] for each in verdict["cluster"]["brokers"]} == {either.version}
    assert verdict["cluster"]["mode"] == ("zookeeper" if either.zookeepers else "kraft")
    assert (reports(either) / "latest" / "verdict.prom").is_file()
    topic = verdict["topic"]["name"]
    (said,) = [each for each in verdict["what_now"] if "judge it again" in each]
    command, _sign, given = said.partition("-e flow_validation_ledger=")
    assert "playbooks/validate.yml" in command and Path(given).resolve() == ledger.resolve()
    assert f"what now: topic {topic} is kept" in run.text.replace("\\n", "\n")

    # what a controller hands over that is thrown away after its job
    handed = either.run(
        either.command("validate.yml", "-e", f"flow_validation_ledger={given}"),
        environment={"ANSIBLE_SHOW_CUSTOM_STATS": "1"},
    ).text.partition("CUSTOM STATS")[2]
    again = found(either)
    assert "kafkaops_verdicts" in handed and again["run_id"] in handed
    assert (again["verdict"], again["run_id"]) == ("pass", verdict["run_id"])
    assert again["settings"] == verdict["settings"]

    mine = "kafkaops-flow-of-mine"  # nearly such a name, and somebody's data
    admin = either.admin()
    admin.create_topics([NewTopic(mine, 1, 3)])[mine].result(30)
    old = ["-e", "flow_validation_older_than=1s"]
    kept = either.play("leftovers.yml")
    assert kept.changed() == 0 and f"kept: {topic}: it is too young" in kept.text
    wrong = either.play("leftovers.yml", *old, "-e", "confirm=other", code=2)
    assert "[validation.confirm]" in wrong.text and own(either) >= {topic, mine}

    confirmed = [*old, "-e", f"confirm={either.name}"]
    would = either.play("leftovers.yml", *confirmed, "--check")
    assert would.changed() == 1 and f"would be removed: topic {topic}" in would.text
    assert topic in topics(either) and Path(given).is_dir()
    done = either.play("leftovers.yml", *confirmed)
    assert done.changed() == 1 and f"removed: topic {topic}" in done.text
    assert own(either) == {mine}
    assert not Path(given).exists(), "the report of the kept topic went with it"
    assert found(either)["verdict"] == "pass", "the latest stays"


def test_the_role_alone_judges_a_cluster_that_is_there(either, tmp_path):
    """The play of the role's README, word for word but for the address."""
    readme = (CHECKOUT / "roles" / "flow_validation" / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^    - hosts: localhost\n(?:    .*\n)+", readme, re.M)[0]
    theirs = "broker-1:9092,broker-2:9092"
    assert theirs in shown
    before = own(either)
    play = tmp_path / "play.yml"
    play.write_text(textwrap.dedent(shown).replace(theirs, either.bootstrap_servers))
    run = either.run(
        [
            str(either.python.with_name("ansible-playbook")),
            str(play),
            "-e",
            f"flow_validation_reports_dir={tmp_path}",
        ]
        + ["-e", "flow_validation_records=2000"],
    )
    verdict = json.loads((tmp_path / "latest" / "verdict.json").read_text())
    assert verdict["verdict"] == "pass" and verdict["counts"]["acked"] == 2000, run.text
    assert own(either) == before, "its topic goes"


def test_a_topic_of_somebody_else_is_inspected(either):
    admin = either.admin()
    admin.create_topics([NewTopic(MINE, 2, 3)])[MINE].result(30)
    producer = Producer(either.client())
    for number in range(300):
        producer.produce(MINE, b"x", key=f"order-{number}".encode(), partition=number % 2)
    producer.flush(30)

    unnamed = either.play("inspect.yml", code=2)
    assert "[validation.no_topic]" in unnamed.text
    for number in (4, 6):
        producer.produce(MINE, b"x", key=f"order-{number}".encode(), partition=0)
    producer.flush(30)
    run = either.play("inspect.yml", "-e", f"flow_validation_topic={MINE}", "-e", ID, code=2)
    assert (
        f"FAIL: topic {MINE}: 2 records have the id of another (partition 0, led by broker"
        in run.text
    )
    assert "is as it was" in run.text
    assert found(either, "inspection")["counts"]["read"] == 302

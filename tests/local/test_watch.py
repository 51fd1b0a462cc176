# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The streaming proof as a service: started, killed, restarted, stopped and removed by its playbook."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest
import yaml

from tests.local.closed import INVENTORY, secure
from tests.local.support import LocalCluster, files_below
from tests.support.outside import wait_until
from tests.support.processes import commands

pytestmark = pytest.mark.soak
SOON = ("-e", "flow_validation_watch_within=10s", "-e", "flow_validation_watch_every=2s")


def status(cluster):
    """What it says of itself; empty where it does not."""
    path = cluster.home / "reports" / cluster.name / "watch" / "status.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def program(cluster):
    """The process of the job, None where there is none."""
    folder = str(cluster.home / "reports" / cluster.name / "watch")
    found = [pid for pid, line in commands().items() if "/watch.py " in line and folder in line]
    return found[0] if found else None


def topics(cluster):
    return set(cluster.admin().list_topics(timeout=30).topics)


def test_it_watches_until_it_is_stopped(either):
    """A broker that dies meanwhile is no alarm, nor is the job's own death."""
    looked = either.play("watch.yml", *SOON, "--check")
    assert looked.changed() > 0 and program(either) is None and not status(either)

    either.play("watch.yml", *SOON)
    again = either.play("watch.yml", *SOON)
    assert again.changed() == 0 and "no alarm" in again.text, again.text
    wait_until(lambda: status(either)["counts"]["arrived"] > 50, 120, "records have arrived")
    assert "kafkaops-watch" in topics(either)

    attempt = status(either)["attempt"]
    os.kill(program(either), signal.SIGKILL)
    wait_until(lambda: status(either)["attempt"] > attempt, 120, "it has begun anew")
    name = sorted(either.brokers)[0]
    os.kill(either.process(name).pid, signal.SIGKILL)
    sent = status(either)["counts"]["acknowledged"]
    wait_until(
        lambda: status(either)["counts"]["arrived"] > sent + 100, 180, "records after the death"
    )
    seen = status(either)
    assert seen["counts"]["lost"] == 0 and not seen["alarms"], seen

    stopped = either.play("watch.yml", "-e", "watch=stopped")
    assert stopped.changed() == 1 and program(either) is None
    assert either.play("watch.yml", "-e", "watch=stopped").changed() == 0
    either.play("watch.yml", "-e", "watch=absent")
    assert not status(either) and "kafkaops-watch" not in topics(either)
    assert either.play("watch.yml", "-e", "watch=absent").changed() == 0


def test_what_it_is_not_told_rightly_is_refused(either):
    """Before anything runs."""
    wrong = either.play("watch.yml", "-e", "watch=paused", code=2)
    assert re.search(r"started, ?stopped, ?absent", " ".join(wrong.text.split())), wrong.text
    for name, value, said in (
        ("rate", 0, "--rate must be from 0.1 to 100, not 0"),
        ("every", 2, "--every: '2' is not a clear duration"),
        ("within", "4s", "--within must be at least twice --every"),
    ):
        option = f"flow_validation_watch_{name}={value}"
        wrong = either.play("watch.yml", "-e", option, "--check", code=2)
        told = " ".join(wrong.text.replace("''", "'").split())
        assert "[validation.watch_options]" in told and said in told, wrong.text
    assert program(either) is None and not status(either)


def test_it_ends_with_its_cluster(next_offset):
    """Nothing watches a cluster that was deleted, nor goes on from its state on one of the same name."""
    with LocalCluster(next_offset()) as cluster:
        cluster.deploy()
        cluster.play("watch.yml", *SOON)
        watch = cluster.home / "reports" / cluster.name / "watch"
        confirmed = ("teardown.yml", "-e", f"confirm={cluster.name}")
        cluster.play(*confirmed, "--limit", sorted(cluster.brokers)[0])
        assert program(cluster) and status(cluster), "a cluster that stays is still watched"
        looked = cluster.play(*confirmed, "--check")
        assert program(cluster) and watch.exists(), looked.text
        cluster.play(*confirmed)
        assert program(cluster) is None and not watch.exists()


def test_it_watches_a_closed_cluster_from_another_host(next_offset):
    """The job is brought there, logs in as the modules do, and shows its password nowhere."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        passwords = secure(cluster, "4.3.1")
        other = {"ansible_connection": "local"}
        (cluster.overlay / "hosts.yml").write_text(
            yaml.safe_dump({"all": {"hosts": {"another": other}}})
        )
        cluster.deploy()
        elsewhere = ("-e", "kafka_admin_host=another")
        runs = [cluster.play("watch.yml", *SOON, *elsewhere, "-vvv", "--diff")]
        runs.append(cluster.play("watch.yml", *SOON, *elsewhere))
        assert runs[-1].changed() == 0, runs[-1].text
        wait_until(lambda: status(cluster)["counts"]["arrived"] > 50, 120, "records have arrived")
        watch = cluster.home / "reports" / cluster.name / "watch"
        line = commands()[program(cluster)]
        assert f"{watch}/job/watch.py" in line, "it does not need the checkout"
        seen = status(cluster)
        assert seen["counts"]["lost"] == 0 and not seen["alarms"], seen
        told = [run.text for run in runs] + list(commands().values())
        for path in files_below(watch):
            if path.suffix in (".json", ".html", ".prom", ".log"):
                told.append(path.read_text(errors="replace"))
            elif passwords["admin"] in path.read_text(errors="replace"):
                assert path.stat().st_mode & 0o077 == 0, path
        assert not [each for each in told if passwords["admin"] in each]
        cluster.play("watch.yml", "-e", "watch=absent", *elsewhere)
        assert program(cluster) is None and not watch.exists()
        assert "kafkaops-watch" not in topics(cluster)

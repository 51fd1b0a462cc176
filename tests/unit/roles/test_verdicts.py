# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which clusters playbooks/phases/validate.yml judges. The job itself is a stand-in that passes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
# Any other file that this interpreter gets is a module of Ansible's.
INTERPRETER = f"""#!/bin/sh
case "$1" in */job.py) ;; *) exec {sys.executable} "$@" ;; esac
for word; do
    case "$word" in --output=*) output=${{word#*=}} ;; esac
done
echo '{{"verdict": "pass", "summary": "all", "checks": []}}' >"$output/verdict.json"
"""


class Inventory:
    """Two clusters, one broker each, as the preflight has found them: their ids are idA and idB."""

    def __init__(self, folder):
        self.home = folder / "home"
        self.interpreter = folder / "python"
        self.interpreter.write_text(INTERPRETER)
        self.interpreter.chmod(0o755)
        self.file = folder / "hosts.yml"
        brokers = {
            name: [
                {
                    "host": f"k{name}",
                    "id": 1,
                    "listeners": [{"name": "L", "port": 1, "advertised": name}],
                }
            ]
            for name in "AB"
        }
        hosts = {
            "kA": {"kafka_cluster_name": "A"},
            "kB": {"kafka_cluster_name": "B"},
        }
        variables = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "flow_validation_python": str(self.interpreter),
            "kafkaops_home": str(self.home),
            "kafkaops_preflight": {
                "cluster_first": {"A": "kA", "B": "kB"},
                "cluster_ids": {"A": "idA", "B": "idB"},
                "brokers": brokers,
                "servers": {"A": [], "B": []},
            },
        }
        kafka = {"hosts": hosts, "vars": variables}
        groups = {"kafkaops_kafka": kafka, "kafkaops_first": {"hosts": dict.fromkeys(hosts)}}
        self.file.write_text(yaml.safe_dump({"all": {"children": groups}}))

    def proven(self, name, cluster_id):
        """Leave a verdict that passed, about a cluster id, in the reports of a cluster name."""
        latest = self.home / "reports" / name / "latest"
        latest.mkdir(parents=True)
        latest.joinpath("verdict.json").write_text(
            json.dumps({"verdict": "pass", "cluster_id": cluster_id})
        )
        # as the job leaves it: a link to the directory of the run
        latest.rename(latest.with_name("earlier"))
        latest.symlink_to("earlier")

    def validate(self, *arguments, code=0):
        """Run the phase; return (names of the clusters that were judged, output)."""
        done = subprocess.run(
            [
                *(str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(self.file)),
                *(str(ROOT / "playbooks" / "phases" / "validate.yml"), *arguments),
            ],
            cwd=ROOT,
            env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        links = self.home.glob("reports/*/latest")
        return {link.parent.name for link in links if os.readlink(link) != "earlier"}, done.stdout


@pytest.fixture
def inventory(tmp_path):
    return Inventory(tmp_path)


def test_each_cluster_of_an_inventory_is_judged(inventory):
    assert inventory.validate()[0] == {"A", "B"}


def test_a_verdict_about_another_cluster_of_the_same_name_proves_nothing(inventory):
    inventory.proven("A", "idA")
    inventory.proven("B", "the one before")
    judged, said = inventory.validate()
    assert judged == {"B"}
    assert "about the cluster the one before" in said


@pytest.mark.parametrize(
    ("verdict", "started", "moved"),
    [
        ("pass", "2026-09-14T10:00:00+00:00", False),  # a ledger of last week, judged again
        ("inconclusive", "2026-09-14T10:00:00+00:00", True),
        ("pass", "2026-09-21T10:00:00+00:00", True),  # that of the run that failed
        ("pass", "2026-09-21T10:00:01+00:00", True),
    ],
)
def test_an_old_ledger_that_passes_again_does_not_undo_a_failure_since(
    inventory, verdict, started, moved
):
    inventory.proven("A", "idA")
    known = {"verdict": "fail", "cluster_id": "idA", "started": "2026-09-21T10:00:00+00:00"}
    latest = inventory.home / "reports" / "A" / "latest" / "verdict.json"
    latest.write_text(json.dumps(known))
    found = {**known, "verdict": verdict, "started": started, "summary": "s", "checks": []}
    stand_in = (
        INTERPRETER.split("echo")[0] + f"echo '{json.dumps(found)}' >\"$output/verdict.json\"\n"
    )
    inventory.interpreter.write_text(stand_in)
    judged, _said = inventory.validate("--limit", "kA", code=0 if verdict == "pass" else 2)
    assert judged == ({"A"} if moved else set())


def test_always_judges_both_and_never_none(inventory):
    inventory.proven("A", "idA")
    inventory.proven("B", "idB")
    assert inventory.validate()[0] == set()
    assert inventory.validate("-e", "flow_validation=never")[0] == set()
    assert inventory.validate("-e", "flow_validation=always")[0] == {"A", "B"}


def test_a_proof_that_was_asked_for_and_forbidden_is_none(inventory):
    """validate.yml -e flow_validation=never: its own variable says that somebody wants the proof now."""
    demanded = ("-e", "flow_validation=never", "-e", '{"flow_validation_demanded": true}')
    judged, said = inventory.validate(*demanded, code=2)
    assert (
        judged == set() and "[validation.missing] kA" in said and "[validation.missing] kB" in said
    )


@pytest.mark.parametrize(
    "sentence, words",
    [
        ("--rate must be from 0 to 1, not 2", "Remedy: do what it says."),
        ("no answer from the cluster at h:1: Timed out", "Remedy: see with playbooks/status.yml"),
        # as Spark could not work any more; what others say beside it is no broker, either
        ("Spark could not read the topic: Java ended while it worked", "Remedy: do what it says."),
    ],
)
def test_brokers_are_suspected_only_where_they_may_be_the_cause(inventory, sentence, words):
    inventory.interpreter.write_text(
        INTERPRETER.split("for word")[0]
        + "echo 'ConnectionRefusedError: [Errno 111] Connection refused' >&2\n"
        + f"echo 'could not run: {sentence}' >&2\nexit 3\n"
    )
    judged, said = inventory.validate("--limit", "kA", code=2)
    said = " ".join(said.split())
    assert judged == set() and sentence in said
    assert words in said and "Then run playbooks/validate.yml again" in said


@pytest.mark.parametrize("code", [1, 2])
def test_a_job_that_python_cannot_load_is_no_verdict(inventory, code):
    """Python ends so where the job cannot be read, or a package of it is broken."""
    inventory.interpreter.write_text(
        INTERPRETER.split("for word")[0] + f"echo 'SyntaxError: in job.py' >&2\nexit {code}\n"
    )
    judged, said = inventory.validate("--limit", "kA", code=2)
    said = " ".join(said.split())
    assert judged == set() and "[validation.not_run]" in said
    assert f"the job ended with {code}: SyntaxError: in job.py" in said

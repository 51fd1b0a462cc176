# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose ports are closed at the end of a run: the play itself, with a look at made-up hosts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PLAY = "Close what nothing listens on any more"
# what a look at the host says, after the run
DONE = {"running": True, "restart_pending": False, "fingerprint": "new"}
BEHIND = {"running": True, "restart_pending": True, "fingerprint": "new"}
DOWN = {"running": False, "restart_pending": True, "fingerprint": "new"}
# what rolling_restart.yml -e broker=ID says of the brokers that it leaves alone
LEFT_ALONE = {**BEHIND, "restart_pending": False}
HAS_LEFT = {"running": False, "restart_pending": False, "fingerprint": "kept"}


def closed(folder, hosts, *options, **more):
    """Run the play with stand-ins for what it includes: (the hosts whose ports it closes, those it names)."""
    plays = yaml.safe_load((ROOT / "playbooks" / "phases" / "run.yml").read_text(encoding="utf-8"))
    (play,) = [each for each in plays if each["name"] == PLAY]
    for task in play["tasks"]:
        included = task.pop("ansible.builtin.include_role", None)
        if included and included["tasks_from"] == "firewall_after.yml":
            task["ansible.builtin.debug"] = {"msg": "CLOSED {{ inventory_hostname }}."}
        elif included:
            fact = f"{included['name'].rpartition('.')[2]}_staged"
            task["ansible.builtin.set_fact"] = {fact: f"{{{{ seen_of_{fact} }}}}"}
    variables = {"ansible_connection": "local", "host_baseline_firewall_stale": True, **more}
    groups = {"kafkaops_members": {"hosts": hosts}}
    inventory, playbook = folder / "hosts.yml", folder / "close.yml"
    inventory.write_text(yaml.safe_dump({"all": {"children": groups, "vars": variables}}))
    playbook.write_text(yaml.safe_dump([play]))
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("ansible-playbook")),
            *("-i", str(inventory), str(playbook), *options),
        ],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = sorted(hosts)
    return (
        [each for each in names if f"CLOSED {each}." in done.stdout],
        [each for each in names if f"{each}: what the inventory does not state" in done.stdout],
    )


def of(product, seen, staged=None):
    """The variables of a host: what the run has noted of it, and what a look at it says."""
    return {f"{product}_staged": staged or seen, f"seen_of_{product}_staged": seen}


def test_a_run_of_one_broker_leaves_the_ports_open_on_which_the_others_listen(tmp_path):
    """rolling_restart.yml -e broker=2, when the port of a listener has moved in the inventory."""
    hosts = {
        "kafka-1": of("kafka", BEHIND, LEFT_ALONE),
        "kafka-2": of("kafka", DONE),
        # start.yml would start it with what was in effect
        "kafka-3": of("kafka", DOWN, LEFT_ALONE),
    }
    assert closed(tmp_path, hosts, kafkaops_broker="kafka-2") == (
        ["kafka-2"],
        ["kafka-1", "kafka-3"],
    )


@pytest.mark.parametrize(
    "broker, expected", [("kafka-2", ["kafka-2"]), ("", ["kafka-1", "kafka-2"])]
)
def test_in_check_mode_the_purpose_of_the_run_tells(tmp_path, broker, expected):
    hosts = {name: of("kafka", BEHIND, LEFT_ALONE) for name in ("kafka-1", "kafka-2")}
    more = {"kafkaops_broker": broker} if broker else {}
    assert closed(tmp_path, hosts, "--check", **more)[0] == expected


def test_what_has_taken_over_all_is_closed_and_a_server_counts_like_a_broker(tmp_path):
    hosts = {
        "kafka-1": of("kafka", DONE),
        "kafka-2": {**of("kafka", DONE), **of("zookeeper", BEHIND, LEFT_ALONE)},
        "kafka-3": of("kafka", BEHIND, HAS_LEFT),
        "zk-1": of("zookeeper", DONE),
        "zk-2": {"host_baseline_firewall_stale": False, **of("zookeeper", BEHIND)},
    }
    assert closed(tmp_path, hosts) == (["kafka-1", "kafka-3", "zk-1"], ["kafka-2"])

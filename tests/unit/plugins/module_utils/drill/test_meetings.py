# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The directory where a playbook and the observer of its drill meet: who removes it when the playbook cannot."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Partition, Topic
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import client_observe
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.asked_judge import judge_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_observe import (
    LEFT_SECONDS,
    PROGRESS,
    Watched,
    await_flow,
    observe,
    refuse_apart,
    remove_left_meetings,
)

NOW = 2_000_000_000.0


@pytest.mark.parametrize(
    "alive, beside, there", [(False, 7, False), (True, 7, True), (False, 0, True)]
)
@pytest.mark.parametrize("name", ["kafkaops-drill-x1", "mine"])
def test_an_observer_removes_it_when_its_playbook_is_gone(tmp_path, name, alive, beside, there):
    place = tmp_path / name
    place.mkdir()
    (place / "drill-progress.json").write_text("{}")
    # nobody listens there
    nowhere = Connection((("127.0.0.1", 1),), timeout=0.2)
    asked = Watched("kafkaops-drill-t", [[1]], {}, [], str(place), beside=beside)
    with pytest.raises(AdminError):
        observe(nowhere, asked, lambda pid: alive, judge_of(""))
    assert place.exists() is (there or name == "mine")


def test_a_playbook_that_waits_for_records_hears_at_once_that_none_will_come(tmp_path):
    nowhere = Connection((("127.0.0.1", 1),), timeout=0.2)
    asked = Watched("kafkaops-drill-t", [[1]], {}, [], str(tmp_path))
    with pytest.raises(AdminError):
        observe(nowhere, asked, lambda pid: True, judge_of(""))
    text = (tmp_path / PROGRESS).read_text()
    # the very words that roles/kafka/tasks/drill_watch.yml looks for
    tasks = Path(__file__).resolve().parents[5] / "roles/kafka/tasks/drill_watch.yml"
    (looked_for,) = re.findall(r"search_regex: '(.*)'", tasks.read_text())
    found = re.search(looked_for, text)
    assert found and found["state"] == "failed"


def test_the_next_drill_removes_those_that_nobody_writes_to(tmp_path):
    for name, age in (
        ("kafkaops-drill-old", LEFT_SECONDS + 1),
        ("kafkaops-drill-new", LEFT_SECONDS - 1),
        ("somebody-old", LEFT_SECONDS + 1),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "drill-progress.json").write_text("{}")
        os.utime(tmp_path / name, (NOW - age, NOW - age))
    (tmp_path / "kafkaops-drill-link").symlink_to(tmp_path / "somebody-old")
    (tmp_path / "kafkaops-drill-file").write_text("mine")
    os.utime(tmp_path / "kafkaops-drill-file", (0, 0))
    assert remove_left_meetings(str(tmp_path), NOW) == [str(tmp_path / "kafkaops-drill-old")]
    assert sorted(os.listdir(tmp_path)) == [
        "kafkaops-drill-file",
        "kafkaops-drill-link",
        "kafkaops-drill-new",
        "somebody-old",
    ]
    assert os.listdir(tmp_path / "somebody-old") == ["drill-progress.json"]


def program(trouble="", committed=()):
    """A program that copies."""
    return SimpleNamespace(
        process=SimpleNamespace(trouble=trouble), committed_ms=list(committed), kind="plain"
    )


FLOWING = SimpleNamespace(acknowledged=dict.fromkeys(map(str, range(20)), 1))
READER = SimpleNamespace(came=[("0", 1)])


@pytest.mark.parametrize("others", [[], [program()], [program(committed=[5])]])
def test_who_waits_for_records_hears_why_a_program_has_ended(others):
    """For want of a right, say: it would be thirty seconds without, and no word of the right."""
    ended = program("KafkaException: TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    with pytest.raises(AdminError, match="a program has ended: .*TRANSACTIONAL_ID_AUTHORIZATION"):
        await_flow("kafkaops-drill-t", FLOWING, [READER], [*others, ended])


@pytest.mark.parametrize("programs, answers", [([], 1), ([program()], 2)])
def test_the_first_transaction_of_a_cluster_has_its_time(monkeypatch, programs, answers):
    waited = []
    monkeypatch.setattr(
        client_observe, "wait_until", lambda done, seconds: waited.append(seconds) or done()
    )
    came = SimpleNamespace(acknowledged={})
    with pytest.raises(AdminError, match="no record came through in time"):
        await_flow("kafkaops-drill-t", came, [], programs)
    assert waited == [answers * client_observe.ANSWER_SECONDS]
    await_flow("kafkaops-drill-t", FLOWING, [READER], [program(committed=[5])] * len(programs))


@pytest.mark.parametrize(
    "leaders, whole",
    [
        ({"t": 1, "t-plain": 1}, True),
        ({"t": 1, "t-plain": 2}, False),
        ({"t": 1}, False),
        ({"t": None, "t-plain": None}, False),
    ],
)
def test_copies_that_another_broker_leads_are_not_what_the_fault_hits(leaders, whole):
    there = {
        name: Topic(name, (Partition(0, leader, (1, 2), (1, 2)),))
        for name, leader in leaders.items()
    }
    if whole:
        refuse_apart(there, "t", ["t-plain"])
        return
    with pytest.raises(AdminError, match="one broker is to lead it and its copies, and they are"):
        refuse_apart(there, "t", ["t-plain"])

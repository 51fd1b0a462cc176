# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of the migration: what the playbooks are told."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.filter.migration import migration_plan


def test_a_step_that_there_is_not_is_refused_before_anything_is_looked_at():
    plan = migration_plan({}, "finalize")
    assert plan["steps"] == {} and plan["lines"] == []
    (line,) = plan["refused"]
    assert line.startswith("[migration.unknown_wish] migrate=finalize: there is no such step.")
    assert line.endswith("use one of finish, remove_zookeeper.")


@pytest.mark.parametrize("until", ["dual-write", "DUAL_WRITE", "dualwrite", "kraft", True])
def test_an_end_that_there_is_not_is_refused_since_the_run_would_go_on_past_the_way_back(until):
    plan = migration_plan({}, "", until)
    assert plan["steps"] == {} and plan["lines"] == []
    (line,) = plan["refused"]
    assert line.startswith(f"[migration.unknown_wish] migrate_until={until}: there is no such end.")
    assert line.endswith("or use dual_write.")


@pytest.mark.parametrize("wish", ["finish", "remove_zookeeper", "back"])
def test_an_end_before_a_later_step_is_refused(wish):
    (line,) = migration_plan({}, wish, "dual_write")["refused"]
    assert line.startswith("[migration.unknown_wish] migrate_until=dual_write: this run is to do")


@pytest.mark.parametrize("until", ["", None])
def test_without_an_end_the_run_goes_on(until):
    nodes = [{"host": "b", "id": 1, "is_broker": True, "phase": "migration", "running": True}]
    data = {"cluster": "x", "nodes": nodes, "znodes": {"controller": 1}}
    assert "kraft" in migration_plan(data, "", until)["steps"]

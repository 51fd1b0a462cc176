# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of the migration: what the playbooks are told."""

from __future__ import annotations

from ansible_collections.kafkaops.cluster.plugins.filter.migration import migration_plan


def test_a_step_that_there_is_not_is_refused_before_anything_is_looked_at():
    plan = migration_plan({}, "finalize")
    assert plan["steps"] == {} and plan["lines"] == []
    (line,) = plan["refused"]
    assert line.startswith("[migration.unknown_wish] migrate=finalize: there is no such step.")
    assert line.endswith("use one of finish, remove_zookeeper.")

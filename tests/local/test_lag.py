# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/lag.yml on a local cluster: the table as people see it, and nothing is changed."""

from __future__ import annotations

from confluent_kafka.admin import NewTopic

from tests.support.readers import commit, write


def test_the_table_of_lag(either):
    settings = either.client()
    admin = either.admin()
    admin.create_topics([NewTopic("read", 1, 3)])["read"].result(30)
    write(settings, "read", {0: 50})
    commit(settings, "slow-reader", {("read", 0): 20})
    commit(settings, "swift-reader", {("read", 0): 50})

    run = either.play("lag.yml")
    assert run.changed() == 0
    assert "slow-reader  read-0     20         50   30   6d 23h" in run.text
    assert "STATUS" not in run.text and "1 of 2 groups behind, by 30 records" in run.text

    watched = either.play("lag.yml", "-e", "lag_groups=^slow", "-e", "seconds=1")
    assert "30   STOP" in watched.text and "1 of 1 group behind" in watched.text
    assert "stopped, stalled or rewound: slow-reader" in watched.text

    none = either.play("lag.yml", "-e", "lag_groups=nobody")
    assert "There is no consumer group." in none.text

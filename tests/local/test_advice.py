# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/advice.yml on a local cluster: the tables as people see them, and nothing is changed."""

from __future__ import annotations

from confluent_kafka.admin import NewTopic


def test_the_tables_of_advice(either):
    admin = either.admin()
    admin.create_topics([NewTopic("asked-about", 4, 3)])["asked-about"].result(30)
    run = either.play("advice.yml")
    assert run.changed() == 0
    assert "4000    replicas of a broker" in run.text and "KIP-578, 2020" in run.text
    assert "until the death of a broker is noticed" in run.text
    asked = either.play(
        *("advice.yml", "-e", "advice_topic=asked-about", "-e", "advice_partitions=8"),
        *("-e", "advice_throughput=60MiB"),
    )
    assert "from 4 to 8, 50% of the keys go to another partition" in asked.text
    assert "the throughput needs 6 partitions, it has 4" in asked.text

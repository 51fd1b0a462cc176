# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of a log that a person is shown where an instance does not start."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.journal import (
    Journal,
    excerpt,
)

SETTINGS = [f"\tssl.setting.{number} = null" for number in range(40)]
IN_USE = [
    "[2026-11-29 09:32:04,648] ERROR Unable to start acceptor for CONTROLLER (kafka.network.DataPlaneAcceptor)",
    "org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:33300: Address already in use.",
    "\tat org.apache.kafka.network.Acceptor.open(Acceptor.java:1)",
    "Caused by: java.net.BindException: Address already in use",
]


@pytest.mark.parametrize(
    "lines",
    [
        [*IN_USE, *SETTINGS],
        ["[2026-11-29 09:31:00,000] INFO starting", *IN_USE, *SETTINGS, *IN_USE, *SETTINGS],
    ],
    ids=["once", "in each attempt"],
)
def test_the_reason_of_an_earlier_attempt_is_shown_above_the_settings_of_the_last(lines):
    shown = excerpt(lines)
    assert len(shown) <= 20
    assert shown[:3] == [IN_USE[0], IN_USE[1], IN_USE[3]]
    assert shown[3] == "..." and shown[-1] == SETTINGS[-1]


@pytest.mark.parametrize(
    "lines",
    [SETTINGS, [*IN_USE, *SETTINGS, *IN_USE], IN_USE, []],
    ids=["nothing complains", "the end complains", "short", "empty"],
)
def test_otherwise_the_end_is_shown(lines):
    assert excerpt(lines) == lines[-20:]


def test_each_file_has_its_excerpt(tmp_path):
    log, console = tmp_path / "server.log", tmp_path / "console.log"
    journal = Journal([str(log), str(console)])
    log.write_text("\n".join([*IN_USE, *SETTINGS]))
    assert journal.last_lines().startswith(f"--- {log}\n{IN_USE[0]}\n")
    assert str(console) not in journal.last_lines()

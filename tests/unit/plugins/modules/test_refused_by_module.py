# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules refuse by themselves, with what they meet on a host."""

from __future__ import annotations

import socket

from tests.support.run_module import run_module


def test_data_that_cannot_be_copied_are_said_and_nothing_is_left(tmp_path):
    """A file of the server's that is no file any more, as on a disk that is ill."""
    inside = tmp_path / "version-2"
    inside.mkdir()
    (inside / "snapshot.0").symlink_to(tmp_path / "gone")
    (inside / "log.1").symlink_to(tmp_path / "gone")
    result = run_module("zookeeper_data_copy", {"data_dir": str(tmp_path), "name": "before"})
    assert result.failed and "[ensemble.no_copy]" in result.msg, result.values
    assert "the server was not touched" in result.msg
    assert [each.name for each in tmp_path.iterdir()] == ["version-2"]


def test_zookeeper_is_not_given_back_while_a_controller_of_kraft_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = "127.0.0.1:{}".format(server.getsockname()[1])
        result = run_module(
            "kafka_migration",
            {"zookeeper": "127.0.0.1:1", "controllers": [place], "release": True},
        )
    assert result.failed and "[migration.alive]" in result.msg and place in result.msg

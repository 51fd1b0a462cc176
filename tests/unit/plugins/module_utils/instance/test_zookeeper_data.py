# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The copy of a ZooKeeper server's data: what a start needs, whole or not at all."""

from __future__ import annotations

import errno
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance import zookeeper_data
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.zookeeper_data import (
    copy,
    needed,
)


@pytest.mark.parametrize(
    "names, expected",
    [
        ([], []),
        (["myid", "log.x", "snapshot.1.a.b"], []),
        (["snapshot.0", "currentEpoch"], ["currentEpoch", "snapshot.0"]),
        (["log.1"], ["log.1"]),
        # the newest may be half written: one more, and the logs from that one on
        (
            ["snapshot.5", "snapshot.10", "snapshot.20.gz", "log.1", "log.6", "log.11", "log.21"],
            ["snapshot.10", "snapshot.20.gz", "log.6", "log.11", "log.21"],
        ),
        # numbers, not texts; and a log that begins with the snapshot's own transaction
        (["snapshot.ff", "snapshot.100", "log.ff", "log.100"],) * 2,
    ],
)
def test_what_a_start_needs(names, expected):
    assert needed(names) == expected


@given(st.sets(st.integers(0, 60)), st.sets(st.integers(1, 60)))
def test_every_transaction_after_the_snapshots_is_in_the_copy(snapshots, logs):
    names = [f"snapshot.{each:x}" for each in snapshots] + [f"log.{each:x}" for each in logs]
    kept = needed(names)
    oldest = min(sorted(snapshots)[-2:], default=0)
    # a log holds the transactions from its number to the next log's
    for number in logs:
        following = min((each for each in logs if each > number), default=None)
        if following is None or following > oldest + 1:
            assert f"log.{number:x}" in kept


def server(path, log_path=None):
    """Directories of a server with two snapshots and logs."""
    for place in sorted({path, log_path or path}):
        (place / "version-2").mkdir(parents=True)
    (path / "myid").write_text("1")
    for name in ("snapshot.1", "snapshot.2", "snapshot.3"):
        (path / "version-2" / name).write_bytes(name.encode())
    (path / "version-2" / "currentEpoch").write_text("1")
    written = b"transactions" + bytes(3 * 2**20) + b"more" + bytes(2**20)
    ((log_path or path) / "version-2" / "log.2").write_bytes(written)
    return written


@pytest.mark.parametrize("own_logs", [False, True])
def test_a_copy_has_everything_and_nobody_else_reads_it(tmp_path, own_logs):
    data, logs = tmp_path / "data", tmp_path / ("logs" if own_logs else "data")
    written = server(data, logs if own_logs else None)
    sizes = copy(str(data), str(logs), "before-3.9.5")
    made = data / "before-3.9.5"
    assert sizes["log.2"] == len(written)
    assert (made / "version-2" / "log.2").read_bytes() == written
    assert sorted(os.listdir(made / "version-2")) == sorted(sizes)
    assert set(sizes) == {"snapshot.2", "snapshot.3", "log.2", "currentEpoch"}
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in (made / "version-2").iterdir()} == {0o600}


def test_a_copy_of_the_same_name_is_replaced_and_leftovers_go(tmp_path):
    server(tmp_path / "data")
    (tmp_path / "data" / ".partial-before-3.9.5.killed").mkdir()
    copy(str(tmp_path / "data"), str(tmp_path / "data"), "before-3.9.5")
    (tmp_path / "data" / "version-2" / "snapshot.4").write_text("new")
    copy(str(tmp_path / "data"), str(tmp_path / "data"), "before-3.9.5")
    names = os.listdir(tmp_path / "data" / "before-3.9.5" / "version-2")
    assert "snapshot.4" in names and "snapshot.2" not in names
    assert sorted(os.listdir(tmp_path / "data")) == ["before-3.9.5", "myid", "version-2"]


def test_a_copy_that_fails_leaves_the_one_before(tmp_path, monkeypatch):
    server(tmp_path / "data")
    copy(str(tmp_path / "data"), str(tmp_path / "data"), "before-3.9.5")

    def full(_stream):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zookeeper_data, "flush", full)
    with pytest.raises(OSError, match="No space"):
        copy(str(tmp_path / "data"), str(tmp_path / "data"), "before-3.9.5")
    assert sorted(os.listdir(tmp_path / "data")) == ["before-3.9.5", "myid", "version-2"]
    assert (tmp_path / "data" / "before-3.9.5" / "version-2" / "snapshot.3").exists()


@pytest.mark.parametrize("more, enough", [(0, True), (-1, False)])
def test_what_would_leave_a_running_server_too_little_room_is_not_begun(
    tmp_path, monkeypatch, more, enough
):
    """ENOSPC in the middle would end the server, which could not write its own log any more."""
    server(tmp_path / "data")
    kept = tmp_path / "data" / "version-2"
    # Holes are copied as holes: the log has a few blocks, not 4 MiB.
    (kept / "log.2").unlink()
    with open(kept / "log.2", "wb") as log:
        log.write(b"transactions")
        log.truncate(2**26)
    (kept / "snapshot.1").unlink()
    for each in kept.iterdir():
        with open(each, "rb") as stream:
            os.fsync(stream.fileno())  # only then each file system tells how many blocks it has
    found = [os.stat(each) for each in kept.iterdir()]
    wanted = sum(min(each.st_size, each.st_blocks * 512) for each in found)
    assert wanted < 2**20
    free = 2**27 + wanted + more
    disk = os.statvfs_result((1, 1, 2**40, 2**40, free, 9, 9, 9, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: disk)
    if enough:
        assert copy(str(tmp_path / "data"), str(tmp_path / "data"), "before-3.9.5")
    else:
        with pytest.raises(OSError, match="128.0 MiB must stay free") as error:
            copy(str(tmp_path / "data"), str(tmp_path / "data"), "before-3.9.5")
        assert error.value.errno == errno.ENOSPC
        assert sorted(os.listdir(tmp_path / "data")) == ["myid", "version-2"]


def test_a_server_without_data_has_nothing_to_copy(tmp_path):
    (tmp_path / "data").mkdir()
    assert copy(str(tmp_path / "data"), str(tmp_path / "data"), "before-3.9.5") == {}
    assert os.listdir(tmp_path / "data") == []

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on disks: on made-up directories, and a few real file systems of this machine."""

from __future__ import annotations

import json
import os
import shutil
import stat

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight import disk_facts as disk


def test_a_directory_that_is_not_there_tells_of_its_file_system(tmp_path):
    facts = disk.directory_facts(str(tmp_path / "not" / "yet"))
    assert facts["exists"] is False
    assert facts["mount_point"] == disk.mount_point(str(tmp_path))
    assert facts["free_bytes"] > 0


def test_who_may_pass_to_a_directory(tmp_path):
    (tmp_path / "private" / "data").mkdir(parents=True)
    (tmp_path / "private").chmod(0o750)
    (tmp_path / "private" / "data").chmod(0o700)
    (tmp_path / "link").symlink_to("private")
    # pytest's own directory is private
    before = len(disk.place_facts(str(tmp_path / "absent"))["closed"])
    for path in ("private/data", "link/data"):
        facts = disk.place_facts(str(tmp_path / path))
        assert facts["real_path"] == str(tmp_path / "private" / "data")
        rights = {"uid": os.getuid(), "gid": (tmp_path / "private").stat().st_gid}
        (closed,) = facts["closed"][before:]
        assert closed == {"path": str(tmp_path / "private"), **rights, "mode": "0750"}
        assert facts["own"] == {**rights, "mode": "0700"}
    absent = disk.place_facts(str(tmp_path / "private" / "absent" / "data"))
    assert absent["own"] is None and absent["closed"] == facts["closed"]
    assert disk.place_facts("/")["closed"] == []


def test_a_mode_beside_a_list_of_rights_tells_nothing(tmp_path, monkeypatch):
    (tmp_path / "private").mkdir(mode=0o700)
    path = str(tmp_path / "private" / "data")
    told = disk.place_facts(path)["closed"][-1]
    assert told["path"] == str(tmp_path / "private")
    monkeypatch.setattr(os, "listxattr", lambda _path: ["system.posix_acl_access"])
    assert disk.place_facts(path)["closed"] == []


def test_what_stands_in_the_way_of_a_directory(tmp_path):
    (tmp_path / "file").write_text("")
    for path in ("file", "file/below", "file/far/below"):
        facts = disk.directory_facts(str(tmp_path / path))
        assert facts["blocked_by"] == str(tmp_path / "file")
    for path in ("", "absent", "absent/below"):
        assert disk.directory_facts(str(tmp_path / path))["blocked_by"] == ""


def test_the_kernel_s_file_systems_are_known(tmp_path):
    facts = disk.directory_facts("/proc/nope")
    assert (facts["file_system"], facts["mount_point"]) == ("proc", "/proc")
    here = disk.directory_facts(str(tmp_path / "absent"))
    assert here["file_system"] not in ("", "proc")
    assert (here["creatable"], here["read_only"]) == (True, False)


def test_a_mount_point_with_a_blank(tmp_path):
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mounts").write_text(
        "/dev/sdb /my\\040data ext4 rw 0 0\n/d /my xfs rw 0 0\n"
    )
    assert disk.mounted("/my data", str(tmp_path)) == ("/dev/sdb", "ext4")
    assert disk.mounted("/none", str(tmp_path)) == ("", "")


SDA1, SDB1, NONE, OTHER = (os.makedev(*number) for number in ((8, 1), (8, 17), (0, 50), (0, 51)))


@pytest.mark.parametrize(
    "one, other, same",
    [
        ((SDA1, "/dev/sda1", "xfs"), (SDA1, "/dev/disk/by-uuid/1", "xfs"), True),
        ((SDA1, "/dev/sda1", "xfs"), (SDB1, "/dev/sdb1", "xfs"), False),
        # parts of a pool have a number each
        ((NONE, "/dev/sda1", "btrfs"), (OTHER, "/dev/sda1", "btrfs"), True),
        ((NONE, "/dev/sda1", "btrfs"), (OTHER, "/dev/sdb1", "btrfs"), False),
        ((NONE, "tank/kafka/1", "zfs"), (OTHER, "tank/kafka/2", "zfs"), True),
        ((NONE, "tank/kafka", "zfs"), (OTHER, "other/kafka", "zfs"), False),
        ((NONE, "/dev/sda1", "btrfs"), (SDB1, "/dev/sdb1", "xfs"), False),
    ],
)
def test_directories_on_one_disk_are_known(one, other, same):
    assert (disk.disk_name(*one) == disk.disk_name(*other)) is same
    assert disk.disk_name(*one) and disk.disk_name(*other)


@pytest.mark.parametrize("kind", ["nfs4", "overlay", "tmpfs", ""])
def test_of_some_file_systems_nobody_knows_what_they_lie_on(kind):
    assert disk.disk_name(NONE, "server:/export", kind) == ""


def test_a_directory_that_is_not_there_tells_the_disk_that_it_would_be_on(tmp_path):
    here, absent = (disk.directory_facts(str(each)) for each in (tmp_path, tmp_path / "a" / "b"))
    assert here["disk"] == absent["disk"]


def test_partitions_are_counted_and_other_directories_not(tmp_path):
    for name in ("orders-0", "orders-11", "a-b-3", "lost+found", "orders", "x.deleted"):
        (tmp_path / name).mkdir()
    facts = disk.directory_facts(str(tmp_path))
    assert facts["partitions"] == 3
    assert facts["topics"] == ["a-b", "orders"]


def test_directories_that_no_partition_has_are_named(tmp_path):
    for name in ("orders-0", "remote-log-index-cache", "lost+found", ".snapshot"):
        (tmp_path / name).mkdir()
    (tmp_path / "replication").touch()
    assert disk.directory_facts(str(tmp_path))["foreign"] == [".snapshot", "lost+found"]
    assert disk.directory_facts(str(tmp_path / "absent"))["foreign"] == []


def test_a_new_mount_is_roots_and_empty(tmp_path):
    disk_of_root = tmp_path / "data"
    disk_of_root.mkdir()
    (tmp_path / "link").symlink_to(disk_of_root)
    is_root = os.getuid() == 0
    assert disk.place_facts(str(disk_of_root))["new_mount"] is is_root
    assert disk.place_facts(str(tmp_path / "link"))["new_mount"] is False
    assert disk.place_facts(str(tmp_path / "absent"))["new_mount"] is False
    (disk_of_root / "lost+found").mkdir()
    assert disk.place_facts(str(disk_of_root))["new_mount"] is is_root
    (disk_of_root / "orders-0").mkdir()
    assert disk.place_facts(str(disk_of_root))["new_mount"] is False


def test_whose_the_data_are(tmp_path):
    """The directory itself is given to the account by the role, and so is no data."""
    assert disk.directory_facts(str(tmp_path))["owners"] == []
    for name in ("orders-0", "lost+found"):
        (tmp_path / name).mkdir()
    (tmp_path / "cleaner-offset-checkpoint").touch()
    own = os.getuid()
    assert disk.directory_facts(str(tmp_path))["owners"] == [own]
    if own == 0:
        os.chown(tmp_path / "lost+found", 4711, -1)
        (tmp_path / "meta.properties").touch()
        os.chown(tmp_path / "meta.properties", 4712, -1)
        assert disk.directory_facts(str(tmp_path))["owners"] == [0, 4712]


def test_two_names_of_one_directory_have_one_identity(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    one = disk.directory_facts(str(tmp_path / "data"))["identity"]
    assert disk.directory_facts(str(tmp_path / "link"))["identity"] == one
    (tmp_path / "other").mkdir()
    assert disk.directory_facts(str(tmp_path / "other"))["identity"] != one


def test_world_writable(tmp_path):
    tmp_path.chmod(0o777)
    facts = disk.directory_facts(str(tmp_path))
    assert (facts["world_writable"], facts["mode"]) == (True, "0777")
    tmp_path.chmod(0o750)
    assert disk.directory_facts(str(tmp_path))["world_writable"] is False


def test_a_missing_mode_bit_is_no_reason_to_fail(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0)
    try:
        facts = disk.directory_facts(str(closed))
    finally:
        closed.chmod(stat.S_IRWXU)
    assert facts["exists"] is True
    assert facts["readable"] is (os.geteuid() == 0)


def test_meta_properties(tmp_path):
    (tmp_path / "meta.properties").write_text(
        "#\n#Sat Nov 21 10:00:00 UTC 2026\ncluster.id=wJ9ZqC3b\nversion=0\nbroker.id=2\n"
    )
    facts = disk.log_directory_facts(str(tmp_path))
    assert facts["meta"] == {"cluster.id": "wJ9ZqC3b", "version": "0", "broker.id": "2"}
    assert disk.log_directory_facts(str(tmp_path / "none"))["meta"] is None


WHOLE = "#\n#Sat Nov 21 10:00:00 UTC 2026\ncluster.id=wJ9ZqC3b\nversion=0\nbroker.id=2\n"


@pytest.mark.parametrize(
    "content, reason",
    [
        (WHOLE.encode(), ""),
        (WHOLE.replace("version=0\nbroker.id", "version=1\nnode.id").encode(), ""),
        (b"", "it is empty"),
        (b"\n \n", "it is empty"),
        (bytes(range(128, 160)) + b"\xff", "it is not text"),
        (b"\0" * 90, "it is not text"),
        (b"\\uqqqq=1\n", "it is not text"),
        (b"garbage\n", "it has no version and no broker.id and no cluster.id"),
        (WHOLE.replace("broker.id=2", "broker.id=two").encode(), "it has no broker.id (version=0)"),
        # as Kafka's own reader: each version has a key of its own
        (WHOLE.replace("version=0", "version=1").encode(), "it has no node.id (version=1)"),
        (WHOLE.replace("broker.id", "node.id").encode(), "it has no broker.id (version=0)"),
        (
            WHOLE.replace("version=0", "version=2").encode(),
            "its version is 2, which no Kafka of this collection reads",
        ),
        (WHOLE.replace("cluster.id=wJ9ZqC3b", "").encode(), "it has no cluster.id"),
        (WHOLE[:-30].encode(), "it has no version and no broker.id"),
    ],
)
def test_damaged_meta_properties(tmp_path, content, reason):
    (tmp_path / "meta.properties").write_bytes(content)
    facts = disk.log_directory_facts(str(tmp_path))
    assert (facts["meta_broken"], facts["meta_unreadable"]) == (reason, False)
    json.dumps(facts)


def test_a_directory_in_the_place_of_meta_properties_is_damage(tmp_path):
    (tmp_path / "meta.properties").mkdir()
    assert disk.log_directory_facts(str(tmp_path))["meta_broken"] == "Is a directory"


def test_what_may_not_be_looked_at_is_not_absent(tmp_path):
    (tmp_path / "closed" / "data").mkdir(parents=True)
    (tmp_path / "closed").chmod(0)
    try:
        facts = disk.log_directory_facts(str(tmp_path / "closed" / "data"))
    finally:
        (tmp_path / "closed").chmod(stat.S_IRWXU)
    assert facts["readable"] is (os.geteuid() == 0)


@pytest.mark.parametrize(
    "names, has_data",
    [
        ([], False),
        (["snapshot.0"], False),
        (["snapshot.00"], False),
        (["acceptedEpoch", "currentEpoch"], False),
        (["log.1"], True),
        (["snapshot.0", "log.100000001"], True),
        (["snapshot.100000000"], True),
        (["snapshot.1f.gz"], True),
    ],
)
def test_which_files_are_data(tmp_path, names, has_data):
    (tmp_path / "version-2").mkdir()
    for name in names:
        (tmp_path / "version-2" / name).write_text("")
    assert disk.transaction_logs(str(tmp_path)) == (has_data, True)


@pytest.mark.parametrize(
    "sizes, has_data",
    [
        # what a new ensemble's leader has when nobody has written yet, also after more elections
        ({"snapshot.0": 610, "snapshot.100000000": 610}, False),
        ({"snapshot.0": 610, "snapshot.100000000": 610, "snapshot.200000000": 610}, False),
        ({"snapshot.0.gz": 310, "snapshot.100000000.gz": 310}, False),
        # the same of an ensemble that holds something, got from a leader of a new epoch
        ({"snapshot.0": 610, "snapshot.200000000": 611}, True),
        ({"snapshot.0": 610, "snapshot.100000000": 610, "snapshot.200000000": 9000}, True),
        ({"snapshot.0": 610, "snapshot.100000001": 610}, True),
        ({"snapshot.0": 610, "snapshot.100000000": 610, "log.100000001": 610}, True),
        ({"snapshot.200000000": 610}, True),
    ],
)
def test_the_first_snapshot_of_an_epoch_is_data_if_it_holds_more_than_none(
    tmp_path, sizes, has_data
):
    (tmp_path / "version-2").mkdir()
    for name, size in sizes.items():
        (tmp_path / "version-2" / name).write_text("x" * size)
    assert disk.transaction_logs(str(tmp_path)) == (has_data, True)


def test_data_may_lie_in_either_directory(tmp_path):
    (tmp_path / "logs" / "version-2").mkdir(parents=True)
    (tmp_path / "logs" / "version-2" / "log.1").write_text("")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "myid").write_text("3\n")
    facts = disk.zookeeper_data_facts(str(tmp_path / "data"), str(tmp_path / "logs"))
    assert (facts["has_data"], facts["myid"]) == (True, "3")


def test_a_server_that_has_started_once_has_a_snapshot(tmp_path):
    data = tmp_path / "with blank [1]"
    (data / "version-2").mkdir(parents=True)
    assert disk.zookeeper_data_facts(str(data), str(data))["snapshot"] is False
    (data / "version-2" / "snapshot.0").write_text("")
    facts = disk.zookeeper_data_facts(str(data), str(data))
    assert (facts["snapshot"], facts["has_data"]) == (True, False)


def server_that_ran(tmp_path, log="data"):
    """Its zoo.cfg in force: data in `data`, transaction logs in `log`."""
    for place in {"data", log}:
        (tmp_path / place / "version-2").mkdir(parents=True)
    (tmp_path / "data" / "myid").write_text("2\n")
    (tmp_path / "data" / "version-2" / "snapshot.0").write_text("")
    (tmp_path / log / "version-2" / "log.1").write_text("")
    return {"dataDir": str(tmp_path / "data"), "dataLogDir": str(tmp_path / log)}


@pytest.mark.parametrize(
    "before, wanted, moved",
    [
        ("data", ("data", "data"), None),
        ("data", ("other", "other"), ("data", "data")),
        ("data", ("data", "other"), ("", "data")),
        ("log", ("data", "log"), None),
        ("log", ("data", "data"), ("", "log")),
        ("log", ("other", "log"), ("data", "")),
        ("data", ("alias", "alias"), None),
    ],
)
def test_data_that_the_wanted_directories_of_zookeeper_do_not_have(tmp_path, before, wanted, moved):
    properties = server_that_ran(tmp_path, before)
    (tmp_path / "alias").symlink_to("data")
    facts = disk.former_data_facts(properties, *(str(tmp_path / each) for each in wanted))
    expected = moved and [str(tmp_path / each) if each else "" for each in moved]
    assert (facts and [facts["data_dir"], facts["data_log_dir"]]) == expected
    assert facts is None or facts["myid"] == "2"


def test_what_was_moved_is_found_no_more(tmp_path):
    properties = server_that_ran(tmp_path)
    data, log = str(tmp_path / "data"), tmp_path / "log"
    (log / "version-2").mkdir(parents=True)
    (tmp_path / "data/version-2/log.1").rename(log / "version-2" / "log.1")
    assert disk.former_data_facts(properties, data, str(log)) is None


def copied(tmp_path, preserve=True):
    """The directory in which the server's data was copied as a whole, and the originals are still there."""
    copy = shutil.copy2 if preserve else shutil.copyfile
    shutil.copytree(tmp_path / "data", tmp_path / "new", copy_function=copy)
    return tmp_path / "new"


def later(path, by=5):
    """Let a file be written that many seconds after it was."""
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime + by))


@pytest.mark.parametrize("preserve", [True, False])
def test_what_was_copied_while_the_server_was_down_is_its_data(tmp_path, preserve):
    properties = server_that_ran(tmp_path)
    new = str(copied(tmp_path, preserve))
    assert disk.former_data_facts(properties, new, new) is None
    facts = disk.former_data_facts(properties, new, new, runs=True)
    assert facts["data_dir"] == facts["data_log_dir"] == str(tmp_path / "data")


@pytest.mark.parametrize(
    "spoil, left",
    [
        # the server ran on after the copy, and in the same log
        (lambda data, new: later(data / "version-2/log.1"), {"data_log_dir"}),
        (lambda data, new: (data / "version-2/log.1").write_text("more"), {"data_log_dir"}),
        # zxids are hexadecimal
        (lambda data, new: (data / "version-2/log.10").write_text(""), {"data_log_dir"}),
        (lambda data, new: (data / "version-2/snapshot.1f.gz").write_text(""), {"data_dir"}),
        # of a server that has begun there empty, of another server, and of a copy in part
        (lambda data, new: (new / "version-2/log.1").unlink(), {"data_log_dir"}),
        (lambda data, new: (new / "myid").write_text("3"), {"data_dir"}),
        (lambda data, new: (new / "myid").unlink(), {"data_dir"}),
        (lambda data, new: shutil.rmtree(new / "version-2"), {"data_dir", "data_log_dir"}),
        # it has gone on since
        (lambda data, new: (new / "version-2/log.a").write_text(""), set()),
    ],
)
def test_a_copy_that_is_older_or_not_whole_is_none(tmp_path, spoil, left):
    properties = server_that_ran(tmp_path)
    new = copied(tmp_path)
    spoil(tmp_path / "data", new)
    facts = disk.former_data_facts(properties, str(new), str(new)) or {}
    assert {name for name in ("data_dir", "data_log_dir") if facts.get(name)} == left


def test_between_two_directories_of_a_server_files_are_moved_and_not_copied(tmp_path):
    """ZooKeeper does not start with logs beside its snapshots where the logs have a directory of their own."""
    properties = server_that_ran(tmp_path)
    data, log = str(tmp_path / "data"), str(tmp_path / "log")
    (tmp_path / "log/version-2").mkdir(parents=True)
    shutil.copy2(tmp_path / "data/version-2/log.1", tmp_path / "log/version-2")
    assert disk.former_data_facts(properties, data, log)["data_log_dir"] == data
    new = str(copied(tmp_path))
    (tmp_path / "new/version-2/log.1").unlink()
    assert disk.former_data_facts(properties, new, data)["data_dir"] == data


def test_a_server_that_never_had_data_may_have_any_directory(tmp_path):
    properties = {"dataDir": str(tmp_path / "data")}
    assert disk.former_data_facts(properties, "/srv/a", "/srv/a") is None
    (tmp_path / "data" / "version-2").mkdir(parents=True)
    (tmp_path / "data" / "version-2" / "snapshot.0").write_text("")
    assert disk.former_data_facts(properties, "/srv/a", "/srv/a") is None
    assert disk.former_data_facts({}, "/srv/a", "/srv/a") is None

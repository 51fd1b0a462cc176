# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What teardown deletes of an instance, and which folders above go with it: on real directories."""

from __future__ import annotations

import os

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance import deletion

NAMES = ("kafka-1", "orders")


@pytest.mark.parametrize(
    "directories, folders",
    [
        ((), ()),
        (("/etc/kafka-1",), ()),
        (("/var/lib/kafka-1/data", "/etc/kafka-1"), ("/var/lib/kafka-1",)),
        (
            ("/home/me/clusters/orders/kafka-1/conf", "/home/me/clusters/orders/kafka-1/data/"),
            ("/home/me/clusters/orders/kafka-1", "/home/me/clusters/orders"),
        ),
        # A disk's mount point, and whatever is above a folder that is not ours.
        (("/data/a", "/kafka-1/disks/b"), ()),
    ],
)
def test_the_folders_that_bear_the_instances_name(directories, folders):
    assert deletion.folders_above(directories, set(NAMES)) == folders


@pytest.fixture(name="made")
def make(tmp_path):
    """(home, the instance's folder, its directories with something in each)."""
    home = tmp_path / "clusters"
    folder = home / "orders" / "kafka-1"
    directories = [folder / name for name in ("conf", "run", "data")]
    for each in directories:
        (each / "below").mkdir(parents=True)
        (each / "below" / "file").write_text("x")
    return home, folder, [str(each) for each in directories]


def both(directories):
    """What is deleted and what stays; what was foreseen is what is deleted."""
    foreseen = deletion.foreseen(directories, *NAMES)
    deleted, kept = deletion.delete(directories, *NAMES)
    assert foreseen == deleted
    return deleted, kept


def test_what_was_made_for_the_instance_goes_and_a_second_run_has_nothing_to_do(made):
    home, folder, directories = made
    gone = (*directories, str(folder), str(home / "orders"))
    assert both(directories) == (gone, ())
    assert list(home.iterdir()) == []
    assert both(directories) == ((), ())


def test_another_instance_of_the_cluster_stays(made):
    home, folder, directories = made
    (home / "orders" / "kafka-2" / "data").mkdir(parents=True)
    assert both(directories) == ((*directories, str(folder)), ())
    assert not folder.exists() and (home / "orders" / "kafka-2" / "data").exists()
    (home / "orders" / "notes.txt").write_text("mine")
    kept = (f"{home / 'orders'}: it holds notes.txt",)
    assert both(directories) == ((), kept)


def test_a_folder_that_is_empty_by_now_is_all_that_goes(made):
    home, folder, directories = made
    (folder / "notes.txt").write_text("mine")
    both(directories)
    (folder / "notes.txt").unlink()
    assert both(directories)[0] == (str(folder), str(home / "orders"))


def test_directories_within_each_other_and_named_twice_go_once(made):
    _home, folder, directories = made
    within = str(folder / "run" / "below")
    assert both([*directories, within, directories[0]])[0][:4] == (*directories, within)
    assert not folder.exists()


def test_what_somebody_else_has_put_there_stays_and_is_told(made):
    home, folder, directories = made
    for name in ("a", "b", "c", "d", "e"):
        (folder / name).write_text("mine")
    deleted, kept = both(directories)
    assert deleted == tuple(directories) and kept[0] == f"{folder}: it holds a, b, c and 2 more"
    assert sorted(os.listdir(folder)) == ["a", "b", "c", "d", "e"]
    assert (home / "orders").exists()


def test_a_link_goes_and_what_it_leads_to_stays(made, tmp_path):
    _home, folder, directories = made
    disk = tmp_path / "disk"
    (disk / "topic-0").mkdir(parents=True)
    (folder / "more").symlink_to(disk)
    (folder / "nowhere").symlink_to(tmp_path / "never")
    links = [str(folder / "more"), str(folder / "nowhere")]
    deleted, kept = both([*directories, *links])
    assert deleted[:5] == (*directories, *links)
    assert kept[0] == f"{disk}: {folder / 'more'} was a link to it"
    assert (disk / "topic-0").exists() and not folder.exists()


def test_a_mounted_directory_is_emptied(made, monkeypatch):
    """Without root nothing can be mounted here; the kernel refuses to remove a mount point."""
    _home, folder, directories = made
    monkeypatch.setattr(os.path, "ismount", lambda path: path == directories[0])
    deleted, kept = both(directories)
    assert deleted == tuple(directories) and os.listdir(directories[0]) == []
    assert kept[0] == f"{directories[0]}: something is mounted there, it is empty now"
    assert kept[1] == f"{folder}: it holds conf"
    assert both(directories)[0] == ()
    for name in directories[1:]:
        os.mkdir(name)
    assert both(directories)[0] == tuple(directories[1:]), "an empty one is not to be emptied"


def test_no_directory_of_the_host_goes_whoever_names_it(tmp_path, monkeypatch):
    """An inventory that nobody judged, such as that of teardown.yml."""
    there = [str(tmp_path / name) for name in ("etc", "log")]
    for path in there:
        os.makedirs(os.path.join(path, "of-others"))
    monkeypatch.setattr(deletion, "OF_THE_HOST", frozenset(there))
    named = [there[0] + "/", there[1] + "/./"]
    assert deletion.foreseen(named, "kafka", "mine") == ()
    deleted, kept = deletion.delete(named, "kafka", "mine")
    assert deleted == () and kept == tuple(f"{path}: it is the host's" for path in named)
    assert all(os.path.isdir(os.path.join(path, "of-others")) for path in there)


@pytest.mark.parametrize("path", ["/etc", "//etc/", "/var/log/.", "/", "/usr/../var"])
def test_what_every_host_has(path):
    assert deletion.is_of_the_host(path)
    assert not deletion.is_of_the_host(f"{path}/kafka")

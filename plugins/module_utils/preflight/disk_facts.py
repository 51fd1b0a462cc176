# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Read-only probes of one host's disks: data directories, and the identity that the products wrote there."""

from __future__ import annotations

import glob
import os
import re
import stat
from typing import Any, Dict, Iterable, List, Mapping, Match, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    parse_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    is_new_mount,
    read_text,
)

PARTITION_DIRECTORY = re.compile(r"^(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d+)$")
# What lies beside the partitions of a broker, and what a server of ZooKeeper keeps its data in.
WRITTEN = ("meta.properties", "version-2")
# Version of a meta.properties -> its key of the id (Kafka's class MetaProperties). Brokers in ZooKeeper
# mode write the first one; with the other's key a broker does not start.
ZOOKEEPER_MODE = "0"
META_ID_KEYS = {ZOOKEEPER_MODE: "broker.id", "1": "node.id"}
# A node of a quorum writes it when it first runs, and no format does: for whom it has voted, and whom it follows.
QUORUM_STATE = "__cluster_metadata-0/quorum-state"
# Of ZooKeeper: the zxid in its name, its size, and the second of its last write.
_File = Tuple[int, int, int]


def file_size(path: str) -> Optional[int]:
    """The file's size in bytes, or None where it is missing or not to be seen."""
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def existing_ancestor(path: str) -> str:
    """The nearest directory on the way up that exists: the file system `path` would land on."""
    probe = os.path.abspath(path)
    while not os.path.isdir(probe):
        parent = os.path.dirname(probe)
        if parent == probe:
            break
        probe = parent
    return probe


def mount_point(path: str) -> str:
    """The mount point of an existing path."""
    probe = os.path.realpath(path)
    while not os.path.ismount(probe):
        probe = os.path.dirname(probe)
    return probe


def blocking_file(path: str) -> str:
    """What stands in the way of a directory `path`: itself or a parent that is a file, else ""."""
    probe = os.path.abspath(path)
    while not os.path.exists(probe) and probe != os.path.dirname(probe):
        probe = os.path.dirname(probe)
    return "" if os.path.isdir(probe) else probe


def mounted(mount: str, proc: str = "/proc") -> Tuple[str, str]:
    """(what is mounted at `mount`, the type of that file system), as the kernel names them; "" if unknown."""
    found = "", ""
    for line in (read_text(os.path.join(proc, "self/mounts")) or "").splitlines():
        fields = line.split()
        # blanks and the like are octal there; what is mounted last lies on top
        if len(fields) > 2 and re.sub(r"\\([0-7]{3})", _octal, fields[1]) == mount:
            found = fields[0], fields[2]
    return found


def disk_name(device: int, source: str, file_system: str) -> str:
    """A name of a file system of this host: two directories share their room if theirs are equal, and else do not.

    Empty where that is not known: a network or an overlay has a number for each mount, which tells nothing. Subvolumes
    of Btrfs and data sets of ZFS have one for each, too, and share the room of their pool. `device`: of a stat.
    """
    if os.major(device):
        return f"{os.major(device)}:{os.minor(device)}"
    if file_system == "btrfs":
        return f"btrfs {source}"
    return f"zfs {source.partition('/')[0]}" if file_system == "zfs" else ""


def _octal(match: Match[str]) -> str:
    return chr(int(match.group(1), 8))


def place_facts(path: str) -> Dict[str, Any]:
    """Where a path leads to, and whom the directories on its way, and its own, let pass.

    `closed`: the directories above that not everybody may enter; `own`: of the directory itself, None where it is not
    there. A directory with an access control list is left out, since its mode does not tell.
    """
    real = os.path.realpath(path)
    above, probe = [], real
    while probe != os.path.dirname(probe):
        probe = os.path.dirname(probe)
        above.append(probe)
    told = [{"path": each, **rights} for each in reversed(above) if (rights := _rights(each))]
    return {
        "real_path": real,
        "closed": [each for each in told if not int(each["mode"], 8) & stat.S_IXOTH],
        "own": _rights(real),
        # the role gives it to the account
        "new_mount": is_new_mount(path),
    }


def _rights(path: str) -> Optional[Dict[str, Any]]:
    """{uid, gid, mode} of a directory; None of what is none, cannot be looked at, or has a list of its own."""
    try:
        about = os.stat(path)
        if not stat.S_ISDIR(about.st_mode) or "system.posix_acl_access" in os.listxattr(path):
            return None
    except OSError:
        return None
    return {
        "uid": about.st_uid,
        "gid": about.st_gid,
        "mode": f"{stat.S_IMODE(about.st_mode):04o}",
    }


def directory_facts(path: str) -> Dict[str, Any]:
    """What there is to know about a data directory, existing or not.

    Sizes in bytes. `identity` is equal for two paths exactly if they are one directory of this
    host, however they are spelt (links, bind mounts of the same inode).
    """
    place = place_facts(path)
    real = place["real_path"]
    ancestor = existing_ancestor(real)
    space = os.statvfs(ancestor)
    mounted_at = mount_point(ancestor)
    source, file_system = mounted(mounted_at)
    facts: Dict[str, Any] = {
        **place,
        "path": path,
        "exists": os.path.isdir(real),
        "is_file": os.path.exists(real) and not os.path.isdir(real),
        "blocked_by": blocking_file(real),
        "mount_point": mounted_at,
        "file_system": file_system,
        "disk": disk_name(os.stat(ancestor).st_dev, source, file_system),
        "read_only": bool(space.f_flag & os.ST_RDONLY),
        # Root may write into any file system that takes writes at all.
        "creatable": os.access(ancestor, os.W_OK | os.X_OK),
        "free_bytes": space.f_bavail * space.f_frsize,
        "total_bytes": space.f_blocks * space.f_frsize,
        "identity": real,
        "readable": True,
        "partitions": 0,
        "topics": [],
        "foreign": [],
        "owners": [],
    }
    if not facts["exists"]:
        try:
            os.stat(real)
        except PermissionError:
            facts["readable"] = False  # what may not be looked at is not known to be absent
        except OSError:
            pass
        return facts
    try:
        about = os.stat(real)
        facts["identity"] = f"{about.st_dev}:{about.st_ino}"
        facts["mode"] = f"{stat.S_IMODE(about.st_mode):04o}"
        # A sticky bit does not save other people's data from being read or added to.
        facts["world_writable"] = bool(about.st_mode & stat.S_IWOTH)
        names = os.listdir(real)
    except OSError:
        facts["readable"] = False
        return facts
    facts["owners"] = owners_of(real, names)
    topics = set()
    for name in names:
        match = PARTITION_DIRECTORY.match(name)
        if match:
            facts["partitions"] += 1
            topics.add(match.group("topic"))
    # A few names are enough for a message; ten thousand would only be carried around.
    facts["topics"] = sorted(topics)[:5]
    # Kafka takes each directory for a partition's, TOPIC-NUMBER.
    foreign = [name for name in sorted(names) if "-" not in name]
    facts["foreign"] = [name for name in foreign if os.path.isdir(os.path.join(real, name))][:5]
    return facts


def owners_of(directory: str, names: Iterable[str]) -> List[int]:
    """Whose the data are that lie in a directory as `names`: uids, without those of what no product has written."""
    owners = set()
    for name in names:
        if PARTITION_DIRECTORY.match(name) or name in WRITTEN:
            try:
                owners.add(os.lstat(os.path.join(directory, name)).st_uid)
            except OSError:  # a topic that is deleted meanwhile
                continue
    return sorted(owners)


def meta_properties(path: str) -> Tuple[Optional[Dict[str, str]], str]:
    """(what a log directory's meta.properties says, why Kafka cannot use it) of the file `path`.

    (None, "") where there is no such file or it is not ours to read. Kafka writes it as a whole, with
    version, the version's key of the id (META_ID_KEYS) and cluster.id; with any of them gone it is damaged.
    """
    try:
        with open(path, "rb") as source:
            content = source.read()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None, ""
    except OSError as error:
        return None, error.strerror or str(error)
    if not content.strip():
        return None, "it is empty"
    try:
        text = content.decode("utf-8")
        meta = parse_properties(text)
    except ValueError:  # bytes or escapes that are none
        return None, "it is not text"
    if "\0" in text:
        return None, "it is not text"
    version = meta.get("version", "")
    if version.isdigit() and version not in META_ID_KEYS:
        return meta, f"its version is {version}, which no Kafka of this collection reads"
    id_key = META_ID_KEYS.get(version, META_ID_KEYS[ZOOKEEPER_MODE])
    wanted = {
        "version": version.isdigit(),
        id_key: meta.get(id_key, "").isdigit(),
        "cluster.id": bool(meta.get("cluster.id")),
    }
    gone = [key for key, good in wanted.items() if not good]
    of_version = f" (version={version})" if version and id_key in gone else ""
    return meta, f"it has no {' and no '.join(gone)}{of_version}" if gone else ""


def log_directory_facts(path: str) -> Dict[str, Any]:
    """`directory_facts` of a broker's log directory, and the identity Kafka wrote into it."""
    facts = directory_facts(path)
    meta = os.path.join(path, "meta.properties")
    facts["meta"], facts["meta_broken"] = meta_properties(meta)
    facts["meta_unreadable"] = (
        facts["meta"] is None and not facts["meta_broken"] and os.path.exists(meta)
    )
    facts["quorum_state"] = os.path.exists(os.path.join(path, QUORUM_STATE))
    return facts


def transaction_logs(directory: str) -> Tuple[bool, bool]:
    """(has data, could be read) of one ZooKeeper data or transaction log directory.

    Any transaction log is data, and so is a snapshot, with two exceptions. `snapshot.0` is what an
    empty server writes at its first start. The first snapshot of an epoch, before any transaction of
    it, is what a server writes when it becomes the leader, so also that of a new ensemble, whose
    followers write none (ZooKeeper 3.9): with the very size of snapshot.0 it holds nothing either.
    """
    version_2 = os.path.join(directory, "version-2")
    try:
        names = os.listdir(version_2)
    except FileNotFoundError:
        return False, True
    except OSError:
        return False, False
    sizes = {}
    for name in names:
        # With snapshot.compression.method the name has one more suffix: snapshot.1f.gz
        kind, transaction, *_method = [*name.split("."), ""]
        if kind == "log" and transaction:
            return True, True
        if kind == "snapshot" and re.fullmatch("[0-9a-f]+", transaction):
            sizes[int(transaction, 16)] = file_size(os.path.join(version_2, name))
    empty = sizes.pop(0, None)
    for first, size in sizes.items():
        first_of_its_epoch = first % (1 << 32) == 0  # epoch and counter, 32 bits each
        if not first_of_its_epoch or size is None or size != empty:
            return True, True
    return False, True


def zookeeper_data_facts(data_dir: str, data_log_dir: str) -> Dict[str, Any]:
    """myid, and whether the server holds data."""
    found = [transaction_logs(each) for each in sorted({data_dir, data_log_dir})]
    myid = read_text(os.path.join(data_dir, "myid"))
    return {
        "myid": myid.strip() if myid is not None else None,
        "myid_unreadable": myid is None and os.path.exists(os.path.join(data_dir, "myid")),
        "has_data": any(data for data, _readable in found),
        "readable": all(readable for _data, readable in found),
        # A server that has one, be it snapshot.0, starts from it and needs no leave to start empty.
        "snapshot": bool(glob.glob(os.path.join(glob.escape(data_dir), "version-2", "snapshot.*"))),
        "data_dir": directory_facts(data_dir),
        "data_log_dir": directory_facts(data_log_dir),
    }


def former_data_facts(
    properties: Mapping[str, str], data_dir: str, data_log_dir: str, runs: bool = False
) -> Optional[Dict[str, Any]]:
    """{data_dir, data_log_dir, myid} of a zoo.cfg in force whose data is where the wanted directories are not.

    A directory is "" where it stays, has nothing that would have to come along, or was copied while the server was
    down: what `runs` goes on writing. None where both are. What cannot be read may hold data. With two directories,
    ZooKeeper does not start where one has files of the other: between them files are moved, and no copy will do.
    """
    had = properties.get("dataDir", "")
    had_log = properties.get("dataLogDir") or had
    found = [transaction_logs(each) for each in sorted({had, had_log} - {""})]
    if not any(data or not readable for data, readable in found):
        return None
    myid, wanted_myid = (read_text(os.path.join(each, "myid")) for each in (had, data_dir))
    same = myid is not None and wanted_myid is not None and myid.strip() == wanted_myid.strip()
    data_copied = not runs and same and not _is_one(had, data_log_dir)
    log_copied = not runs and not _is_one(had_log, data_dir)
    moved = {
        "data_dir": had if _left_behind(had, data_dir, "snapshot", data_copied) else "",
        "data_log_dir": had_log if _left_behind(had_log, data_log_dir, "log", log_copied) else "",
    }
    if not any(moved.values()):
        return None
    return dict(moved, myid=myid.strip() if myid is not None else None)


def _is_one(directory: str, other: str) -> bool:
    return os.path.realpath(directory) == os.path.realpath(other)


def _left_behind(had: str, wanted: str, kind: str, may_be_copied: bool) -> bool:
    """Whether files of this kind are, or may be, in a directory that is not the wanted one under any name.

    They are in both where somebody has copied them, and kept the others: then the newest tell whether it was in time.
    """
    if _is_one(had, wanted):
        return False
    try:
        newest = _newest(had, kind)
        if newest is None:
            return False
        return not may_be_copied or not _is_as_new(_newest(wanted, kind), newest)
    except OSError:
        return True


def _newest(directory: str, kind: str) -> Optional[_File]:
    """The newest file of a kind, None where there is none; OSError is raised where that is not to be seen."""
    version_2 = os.path.join(directory, "version-2")
    found = []
    try:
        names = os.listdir(version_2)
    except FileNotFoundError:
        return None
    for name in names:
        matched = re.fullmatch(rf"{kind}\.([0-9a-f]+)(?:\..+)?", name)
        if matched:
            found.append((int(matched.group(1), 16), name))
    if not found:
        return None
    zxid, name = max(found)
    told = os.stat(os.path.join(version_2, name))
    return zxid, told.st_size, int(told.st_mtime)


def _is_as_new(copy: Optional[_File], original: _File) -> bool:
    """Whether a file has all that is in another one of its kind.

    A log goes on under its name: what was written after the copy is younger than that, or larger.
    """
    if copy is None or copy[0] < original[0]:
        return False
    return copy[0] > original[0] or (copy[1] >= original[1] and copy[2] >= original[2])

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Read-only probes of one host: what is on its disks, who listens, which Java it has.

Runs on managed hosts with Python 3.9 and nothing else. Nothing here writes or binds a port. A JVM is
started only to try its options, or to ask for its version where no file has it. Functions take the
root of /proc as an argument, so that tests can make one up.
"""

from __future__ import annotations

import glob
import grp
import importlib.util
import json
import os
import pwd
import re
import resource
import socket
import stat
import subprocess
import threading
import time
from typing import Any, Callable, Dict, Iterable, List, Match, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils import java
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    parse_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.overrides import (
    read_overrides,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    HIDDEN,
    is_secret,
    masked_url,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.held import holder_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply.installed import (
    complete_releases,
)

PARTITION_DIRECTORY = re.compile(r"^(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d+)$")
# A listening socket in /proc/net/tcp (include/net/tcp_states.h).
TCP_LISTEN = "0A"
IDENTITY_KEYS = ("broker.id", "node.id", "log.dirs")
# Version of a meta.properties -> its key of the id (Kafka's class MetaProperties). Brokers in ZooKeeper
# mode write the first one; with the other's key a broker does not start.
ZOOKEEPER_MODE = "0"
META_ID_KEYS = {ZOOKEEPER_MODE: "broker.id", "1": "node.id"}
RESOLVE_DEADLINE_SECONDS = 5.0
JVM_TIMEOUT_SECONDS = 20.0
# Lines of a JVM that say nothing about the reason.
JVM_EPILOGUE = ("Error: Could not create", "Error: A fatal exception", "Picked up ")


def _instance_spec(properties: str, **paths: Dict[str, Any]) -> Dict[str, Any]:
    """Argument spec of one instance: the common part, and the paths of the product."""
    return dict(
        type="dict",
        options=dict(
            instance=dict(type="str", required=True),
            config_dir=dict(type="path", required=True),
            properties=dict(type="str", default=properties),
            started=dict(type="path", required=True),
            jvm_options=dict(type="list", elements="str", default=[]),
            install_dir=dict(type="path"),
            account=dict(type="str"),
            **paths,
        ),
    )


# What the module host_info takes.
ARGUMENTS: Dict[str, Any] = dict(
    kafka=_instance_spec(
        "server.properties", log_dirs=dict(type="list", elements="path", required=True)
    ),
    zookeeper=_instance_spec(
        "zoo.cfg",
        data_dir=dict(type="path", required=True),
        data_log_dir=dict(type="path", required=True),
    ),
    lock=dict(
        type="dict",
        options=dict(
            directory=dict(type="path", required=True),
            cluster=dict(type="str", required=True),
        ),
    ),
    names=dict(type="list", elements="str", default=[]),
    packages=dict(type="list", elements="str", default=[]),
    java_home=dict(type="str", default=""),
    java_minimum=dict(type="int", default=java.MINIMUM),
    java_maximum=dict(type="int", default=java.MAXIMUM),
)


def read_text(path: str) -> Optional[str]:
    """The file's text, or None where it is missing or not readable for us."""
    try:
        with open(path, encoding="utf-8", errors="replace") as source:
            return source.read()
    except OSError:
        return None


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


def file_system_type(mount: str, proc: str = "/proc") -> str:
    """The type of the file system that is mounted at `mount`, as the kernel names it; "" if unknown."""
    found = ""
    for line in (read_text(os.path.join(proc, "self/mounts")) or "").splitlines():
        fields = line.split()
        # blanks and the like are octal there; what is mounted last lies on top
        if len(fields) > 2 and re.sub(r"\\([0-7]{3})", _octal, fields[1]) == mount:
            found = fields[2]
    return found


def _octal(match: Match[str]) -> str:
    return chr(int(match.group(1), 8))


def directory_facts(path: str) -> Dict[str, Any]:
    """What there is to know about a data directory, existing or not.

    Sizes in bytes. `identity` is equal for two paths exactly if they are one directory of this
    host, however they are spelt (links, bind mounts of the same inode).
    """
    real = os.path.realpath(path)
    ancestor = existing_ancestor(real)
    space = os.statvfs(ancestor)
    mounted_at = mount_point(ancestor)
    facts: Dict[str, Any] = {
        "path": path,
        "real_path": real,
        "exists": os.path.isdir(real),
        "is_file": os.path.exists(real) and not os.path.isdir(real),
        "blocked_by": blocking_file(real),
        "mount_point": mounted_at,
        "file_system": file_system_type(mounted_at),
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


def command_line(pid: int, proc: str = "/proc") -> str:
    """The process's command line, blanks between the arguments; empty where it is hidden."""
    text = read_text(os.path.join(proc, str(pid), "cmdline"))
    return (text or "").replace("\0", " ").strip()


def started_process(started_file: str, proc: str = "/proc") -> Dict[str, Any]:
    """The process that the launcher recorded: {pid, alive, stale}.

    A pid alone proves nothing: it may belong to another process by now, so its start time has to
    be the recorded one, too.
    """
    state = {"recorded": False, "pid": None, "alive": False, "stale": False, "fingerprint": None}
    # After every stop a record stays behind, and that is well; stale is one that could mislead.
    text = read_text(started_file)
    if text is None:
        return state
    try:
        record = json.loads(text)
        pid, start_time = int(record["pid"]), int(record["start_ticks"])
    except (ValueError, KeyError, TypeError):
        return dict(state, recorded=True, stale=True)
    now = start_ticks(pid, proc)
    return dict(
        state,
        recorded=True,
        pid=pid,
        alive=now == start_time,
        stale=now is not None and now != start_time,
        fingerprint=record.get("fingerprint"),
    )


def _address(hexadecimal: str) -> str:
    """`0100007F` of /proc/net/tcp as 127.0.0.1; IPv6 in the same way."""
    raw = bytes.fromhex(hexadecimal)
    # The kernel prints 32-bit words in host order (little endian wherever Kafka runs).
    words = [raw[at : at + 4][::-1] for at in range(0, len(raw), 4)]
    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
    address = socket.inet_ntop(family, b"".join(words))
    return address[7:] if address.startswith("::ffff:") and "." in address else address


def listening_sockets(proc: str = "/proc") -> List[Dict[str, Any]]:
    """All listening TCP sockets: [{port, address, inode, uid}]."""
    found = []
    for table in ("net/tcp", "net/tcp6"):
        for line in (read_text(os.path.join(proc, table)) or "").splitlines()[1:]:
            fields = line.split()
            if len(fields) < 10 or fields[3] != TCP_LISTEN:
                continue
            address, _colon, port = fields[1].rpartition(":")
            found.append(
                {
                    "port": int(port, 16),
                    "address": _address(address),
                    "inode": fields[9],
                    "uid": int(fields[7]),
                }
            )
    return found


def socket_owners(inodes: Iterable[str], proc: str = "/proc") -> Dict[str, int]:
    """Which process holds which socket inode. Processes of other users stay invisible."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    owners: Dict[str, int] = {}
    for name in os.listdir(proc):
        if len(owners) == len(wanted):
            break
        if not name.isdigit():
            continue
        directory = os.path.join(proc, name, "fd")
        try:
            descriptors = os.listdir(directory)
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                target = os.readlink(os.path.join(directory, descriptor))
            except OSError:
                continue
            if target in wanted:
                owners.setdefault(wanted[target], int(name))
    return owners


def port_holders(
    our_pids: Iterable[int], our_paths: Iterable[str], proc: str = "/proc"
) -> List[Dict[str, Any]]:
    """Who listens on which port: [{port, address, pid, command, ours}].

    All ports, not only the wanted ones: which are wanted may depend on an id that is assigned only
    when every host has answered. Ours is a process that our launcher recorded, or one whose command
    line names our configuration (an instance whose record was lost is still no stranger). Root in a
    container may not look into processes of other users: there a socket is ours whose user is that
    of our process.
    """
    sockets = listening_sockets(proc)
    owners = socket_owners([each["inode"] for each in sockets], proc)
    pids = set(our_pids)
    uids = {uid for uid in (_owner(pid, proc) for pid in pids) if uid}
    paths = [path.rstrip("/") + "/" for path in our_paths if path]
    holders = []
    for each in sockets:
        pid = owners.get(each["inode"])
        command = command_line(pid, proc) if pid else ""
        holders.append(
            {
                "port": each["port"],
                "address": each["address"],
                "pid": pid,
                # The program alone: arguments of other people's processes may be secrets.
                "command": command.split(" ")[0],
                "ours": pid in pids
                or any(path in command for path in paths)
                or (pid is None and each["uid"] in uids),
            }
        )
    return holders


def _owner(pid: int, proc: str) -> Optional[int]:
    """The user that a process belongs to; root counts as nobody, because it owns too much."""
    try:
        return os.stat(os.path.join(proc, str(pid))).st_uid or None
    except OSError:
        return None


def resolve_names(
    names: Iterable[str],
    deadline_seconds: float = RESOLVE_DEADLINE_SECONDS,
    resolver: Optional[Callable[[str], Iterable[Any]]] = None,
) -> Dict[str, Any]:
    """name -> {addresses, error} as this host's own resolver sees it, all names at once.

    A dead name server must not hold the run for minutes: what has no answer at the deadline is
    reported as such, and its thread is left to die with the module's process.
    """
    look_up = resolver or (lambda name: socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM))
    answers: Dict[str, Any] = {}

    def ask(name: str) -> None:
        try:
            found = look_up(name)
            answers[name] = {"addresses": sorted({each[4][0] for each in found}), "error": None}
        except (OSError, UnicodeError) as error:
            text = getattr(error, "strerror", None) or str(error)
            answers[name] = {"addresses": [], "error": text}

    wanted = sorted(set(names))
    threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in wanted]
    for thread in threads:
        thread.start()
    end = time.monotonic() + deadline_seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    late = {"addresses": [], "error": f"no answer within {deadline_seconds:g} s"}
    return {name: answers.get(name, late) for name in wanted}


def memory_bytes(proc: str = "/proc") -> Optional[int]:
    """Physical memory, or the control group's limit where that is smaller (a container)."""
    match = re.search(
        r"^MemTotal:\s+(\d+) kB", read_text(os.path.join(proc, "meminfo")) or "", re.M
    )
    total = int(match.group(1)) * 1024 if match else None
    limit = (read_text("/sys/fs/cgroup/memory.max") or "").strip()
    if limit.isdigit() and (total is None or int(limit) < total):
        return int(limit)
    return total


def machine_keys(proc: str = "/proc") -> Dict[str, str]:
    """Two inventory names are one machine if they share a network or a root file system.

    Not /etc/machine-id: containers of one image often share it. The boot id with the inode of the
    network name space is exact for ports; the boot id with the root's device and inode for files.
    """
    boot = (read_text(os.path.join(proc, "sys/kernel/random/boot_id")) or "").strip()
    try:
        network = str(os.stat(os.path.join(proc, "self/ns/net")).st_ino)
    except OSError:
        network = socket.gethostname()
    root = os.stat("/")
    return {
        "network": f"{boot}/{network}",
        "filesystem": f"{boot}/{root.st_dev}:{root.st_ino}",
    }


def limits(proc: str = "/proc") -> Dict[str, Optional[int]]:
    """Hard limit of open files (None: unlimited) and vm.max_map_count (None: not known)."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    maps = (read_text(os.path.join(proc, "sys/vm/max_map_count")) or "").strip()
    return {
        "open_files": None if hard == resource.RLIM_INFINITY else hard,
        "max_map_count": int(maps) if maps.isdigit() else None,
    }


def local_addresses(proc: str = "/proc") -> List[str]:
    """The addresses of this host's interfaces, loopback included; empty where the kernel does not tell.

    Source: Linux, the local entries of the routing trie, and net/if_inet6.
    """
    found, address = set(), ""
    for line in (read_text(os.path.join(proc, "net/fib_trie")) or "").splitlines():
        if "|-- " in line:
            address = line.split("|-- ", 1)[1].strip()
        elif "/32 host LOCAL" in line:
            found.add(address)
    for line in (read_text(os.path.join(proc, "net/if_inet6")) or "").splitlines():
        # unlike the tables of sockets, these are in the order of the network
        found.add(socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line.split()[0])))
    return sorted(found)


def container(root: str = "/") -> str:
    """The engine whose container this host is, or "". Sources: systemd's container interface, Docker, Podman."""
    told = (read_text(os.path.join(root, "run/systemd/container")) or "").strip()
    if told:
        return told
    marks = ((".dockerenv", "docker"), ("run/.containerenv", "podman"))
    return next((name for mark, name in marks if os.path.exists(os.path.join(root, mark))), "")


def ephemeral_ports(proc: str = "/proc") -> Dict[str, Any]:
    """Ports that the kernel uses for outgoing connections: {first, last, reserved: [[first, last]]}.

    First and last are 0 where the kernel does not tell. Source: Linux, networking/ip-sysctl.
    """
    directory = os.path.join(proc, "sys/net/ipv4")
    bounds = (read_text(os.path.join(directory, "ip_local_port_range")) or "0 0").split()
    reserved = []
    kept = (read_text(os.path.join(directory, "ip_local_reserved_ports")) or "").strip()
    for part in kept.split(",") if kept else []:
        first, _dash, last = part.partition("-")
        reserved.append([int(first), int(last or first)])
    return {"first": int(bounds[0]), "last": int(bounds[1]), "reserved": reserved}


def readable_properties(text: str) -> Dict[str, str]:
    """What a properties file says; without the lines with an escape that is none (`\\uno`).

    Who has edited the file by hand must not hide the id and the directories in its other lines.
    """
    found: Dict[str, str] = {}
    for line in text.splitlines():
        try:
            found.update(parse_properties(line))
        except ValueError:
            continue
    return found


def identity_in(generation: str, properties: str) -> Optional[Dict[str, str]]:
    """The broker's id and directories in the configuration of one generation, None without it."""
    text = read_text(os.path.join(generation, properties))
    if text is None:
        return None
    found = readable_properties(text)
    return {key: found[key] for key in IDENTITY_KEYS if key in found}


def account_facts(name: str) -> Optional[Dict[str, str]]:
    """{name, group, home, shell} of an account of this host, None where there is none."""
    try:
        found = pwd.getpwnam(name)
        group = grp.getgrgid(found.pw_gid).gr_name
    except (KeyError, ValueError):  # ValueError: what could not be a name
        return None
    return {"name": name, "group": group, "home": found.pw_dir, "shell": found.pw_shell}


def instance_facts(
    instance: Dict[str, Any], proc: str = "/proc", java_home: Optional[str] = None
) -> Dict[str, Any]:
    """What is known of one instance's last start, and of the configuration and release in force.

    In force is the generation of the running process, else the one that `current` leads to. `java_home`:
    the Java of the next start, None for that of the last one.
    """
    config_dir = instance["config_dir"]
    started = started_process(instance["started"], proc)
    generation = os.path.join(config_dir, "current")
    if started["alive"]:
        running = os.path.join(config_dir, "generations", str(started["fingerprint"]))
        generation = running if os.path.isdir(running) else generation
    text = read_text(os.path.join(generation, instance["properties"]))
    meaning = None
    try:
        meaning = json.loads(read_text(os.path.join(generation, "meaning.json")) or "{}")
        release = os.path.basename(str(meaning.get("release") or "")) or None
    except (ValueError, AttributeError):
        release = None
    tried = instance.get("jvm_options") or []
    runs = meaning if started["alive"] and isinstance(meaning, dict) else {}
    options = [*(runs.get("jvm_options") or []), *(runs.get("default_options") or [])]
    # A process that runs with this Java and these options needs no further trial.
    same_java = bool(runs) and java_home in (None, runs.get("java_home"))
    same_options = same_java and set(tried) <= set(options)
    return {
        "instance": instance["instance"],
        "untried_java": not same_java,
        "untried_jvm_options": [] if same_options else tried,
        "config_dir": config_dir,
        "started": started,
        "current": readable_properties(text) if text is not None else None,
        "release": release,
        "releases": (
            complete_releases(instance["install_dir"]) if instance.get("install_dir") else []
        ),
        "account": account_facts(instance.get("account") or ""),
    }


def jvm_refusal(home: str, options: List[str]) -> Optional[str]:
    """What the JVM in `home` says to these options; None if it starts with them, or takes too long to tell."""
    try:
        done = subprocess.run(
            [os.path.join(home, "bin", "java"), *options, "-XX:-AlwaysPreTouch", "-version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=JVM_TIMEOUT_SECONDS,
            check=False,
        )
    except OSError as error:
        return str(error)  # built for another kind of machine, for example
    except subprocess.SubprocessError:
        return None
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stdout.decode("utf-8", "replace").splitlines()]
    told = [line for line in lines if line and not line.startswith(JVM_EPILOGUE)]
    return " ".join(told[:3])[:400] or f"exit code {done.returncode}"


def masked_properties(properties: Optional[Dict[str, str]]) -> Optional[Dict[str, str]]:
    """The same properties, secrets hidden: facts travel through results and logs.

    Not by masking.masked: addresses are used, and `secret-1:9092` is one of a host with that name.
    """
    if properties is None:
        return None
    return {
        key: HIDDEN if value and is_secret(key) else masked_url(value)
        for key, value in properties.items()
    }


def lock_holder(spec: Optional[Dict[str, str]]) -> Optional[Dict[str, Any]]:
    """Which run holds the lock of the cluster here; None for nobody, and for what may not be read."""
    try:
        holder = holder_of(spec["directory"], spec["cluster"]) if spec else None
    except OSError:
        return None
    return holder.to_dict() if holder else None


def missing_packages(names: Iterable[str]) -> List[str]:
    """Which of these packages this Python does not find; none is imported."""
    return [name for name in names if importlib.util.find_spec(name) is None]


def host_facts(
    spec: Dict[str, Any],
    proc: str = "/proc",
    refusal: Callable[[str, List[str]], Optional[str]] = jvm_refusal,
) -> Dict[str, Any]:
    """Everything the preflight wants to know of one host, for one inventory name.

    `spec`: {kafka: {config_dir, properties, started, instance, log_dirs} or None,
    zookeeper: {..., data_dir, data_log_dir} or None, names: [str], java_home: str,
    java_minimum: int, java_maximum: int, lock: {directory, cluster} or None}.
    """
    facts: Dict[str, Any] = {
        "machine": machine_keys(proc),
        "clock": time.time(),
        "user": os.geteuid(),
        "memory_bytes": memory_bytes(proc),
        "limits": limits(proc),
        "ephemeral_ports": ephemeral_ports(proc),
        "addresses": local_addresses(proc),
        "container": container(),
        "java": java.find(
            spec.get("java_minimum") or 0,
            spec.get("java_maximum") or 999,
            spec.get("java_home") or "",
        ),
        "kafka": None,
        "zookeeper": None,
        "lock": lock_holder(spec.get("lock")),
    }
    pids, paths = [], []
    home, tries = facts["java"]["home"], []
    refusals: Dict[Tuple[str, ...], Optional[str]] = {}
    for product in ("kafka", "zookeeper"):
        wanted = spec.get(product)
        if not wanted:
            continue
        found = instance_facts(wanted, proc, home)
        tries.append(found.pop("untried_java"))
        pids.append(found["started"]["pid"] if found["started"]["alive"] else None)
        paths.append(wanted["config_dir"])
        if product == "kafka":
            for link, fact in (("answered", "answered"), ("next", "staged")):
                place = os.path.join(wanted["config_dir"], link)
                found[fact] = identity_in(place, wanted["properties"])
            found["log_dirs"] = [log_directory_facts(path) for path in wanted["log_dirs"]]
            noted = read_overrides(wanted["config_dir"])
            found["overrides"] = (
                {key: list(values) for key, values in noted.settings.items()} if noted else {}
            )
            running_with = (found["current"] or {}).get("log.dirs", "")
            dropped = [
                path.strip()
                for path in running_with.split(",")
                if path.strip() and path.strip() not in wanted["log_dirs"]
            ]
            found["other_log_dirs"] = [log_directory_facts(path) for path in dropped]
        else:
            found["data"] = zookeeper_data_facts(wanted["data_dir"], wanted["data_log_dir"])
        found["current"] = masked_properties(found["current"])
        untried = tuple(found.pop("untried_jvm_options"))
        if untried and home:
            if untried not in refusals:
                refusals[untried] = refusal(home, list(untried))
            found["jvm_refusal"] = refusals[untried]
        facts[product] = found
    # What starts with options starts without; where it does not, they may not be to blame.
    if home and tries and all(tries) and None not in refusals.values():
        facts["java"]["refusal"] = refusal(home, [])
    facts["ports"] = port_holders([pid for pid in pids if pid], paths, proc)
    facts["names"] = resolve_names(spec.get("names") or [])
    facts["missing_packages"] = missing_packages(spec.get("packages") or [])
    return facts

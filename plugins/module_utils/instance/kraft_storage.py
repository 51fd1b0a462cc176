# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The storage of a KRaft node on this host: formatted once, and compared ever after."""

from __future__ import annotations

import base64
import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.scram import (
    ITERATIONS,
    salted_password,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    parse_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    read_text,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import HIDDEN
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError

META = "meta.properties"
METADATA = "__cluster_metadata-0"
# What a format writes; a checkpoint of the metadata has the voters.
FORMATTED = frozenset((META, "bootstrap.checkpoint", METADATA))
CHECKPOINT = ".checkpoint"
SALT_BYTES = 32
# A JVM that lives for a second.
JVM_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
FORMAT_SECONDS = 120


@dataclass(frozen=True)
class Node:
    """One node as it is to be formatted.

    `initial_controllers`: the first voters, "" for a node that is no controller; `joins`: whether it is one of a
    quorum that has its voters, and follows it until it is added; `account`: the user who
    owns the directories, "" for the one who runs this; `users`: what --add-scram takes, see scram_argument; `anew`:
    whether a format counts that nothing was started with; `features_of`: the release line whose features are
    written, "" for those of the release that formats.
    """

    cluster_id: str
    node_id: int
    log_dirs: Sequence[str]
    initial_controllers: str = ""
    account: str = ""
    users: Sequence[str] = field(default=(), repr=False)
    joins: bool = False
    anew: bool = False
    features_of: str = ""


def scram_argument(name: str, password: str, mechanism: str, salt: bytes) -> str:
    """A user as `kafka-storage.sh format --add-scram` takes it: what is kept of the password, and not itself.

    So a password may have any character. A name may not: what ends it is refused before.
    """
    salted = base64.b64encode(salted_password(password, mechanism, salt)).decode("ascii")
    told = base64.b64encode(salt).decode("ascii")
    return (
        f"{mechanism}=[name={name},iterations={ITERATIONS},"
        f'salt="{told}",saltedpassword="{salted}"]'
    )


def scram_arguments(users: Iterable[Mapping[str, Any]]) -> List[str]:
    """The same of several users, dicts of `name password mechanisms`, with salts that are drawn."""
    return [
        scram_argument(user["name"], user["password"], mechanism, os.urandom(SALT_BYTES))
        for user in users
        for mechanism in user["mechanisms"]
    ]


def metas(log_dirs: Sequence[str]) -> Dict[str, Optional[Mapping[str, str]]]:
    """directory -> what its meta.properties says, None where there is none."""
    found: Dict[str, Optional[Mapping[str, str]]] = {}
    for path in log_dirs:
        text = read_text(os.path.join(path, META))
        found[path] = None if text is None else parse_properties(text)
    return found


def metadata_directory_id(log_dirs: Sequence[str]) -> str:
    """The id of the directory that holds a node's metadata, the first one; "" where it is not formatted."""
    found = metas(log_dirs[:1])
    return next(((meta or {}).get("directory.id", "") for meta in found.values()), "")


def only_formatted(path: str) -> bool:
    """Whether a directory was formatted, and holds nothing but what a format writes: no Kafka ever ran with it."""
    try:
        names = set(os.listdir(path))
        inner = os.listdir(os.path.join(path, METADATA)) if METADATA in names else []
    except OSError:
        return False
    return META in names and names <= FORMATTED and all(each.endswith(CHECKPOINT) for each in inner)


def begin_anew(node: Node) -> None:
    """Take away what an earlier format has written, where nothing was ever started with it.

    `meta.properties` goes last: a run that is killed between leaves what is taken away again.
    """
    if not _is_afresh(node):
        return
    for path in _existing(node.log_dirs):
        shutil.rmtree(os.path.join(path, METADATA), ignore_errors=True)
        for name in ("bootstrap.checkpoint", META):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(path, name))


def _is_afresh(node: Node) -> bool:
    """Whether what an earlier format has written counts for nothing."""
    return node.anew and all(map(only_formatted, _existing(node.log_dirs)))


def _existing(log_dirs: Sequence[str]) -> List[str]:
    """The directories that hold anything: an empty one was never formatted, and says nothing."""
    return [path for path in log_dirs if os.path.isdir(path) and os.listdir(path)]


def unformatted(node: Node, found: Mapping[str, Optional[Mapping[str, str]]]) -> List[str]:
    """The directories that are left to format. ProblemError where one is formatted for somebody else.

    Kafka tells a foreign cluster id by a stack trace, or by a node that lives on and serves nobody.
    """
    wanted = {"cluster.id": node.cluster_id, "node.id": str(node.node_id)}
    left = []
    afresh = _is_afresh(node)
    for path, meta in found.items():
        if meta is None:
            left.append(path)
            continue
        unlike = [
            f"{key}={meta.get(key, '')}, and the node's is {value}"
            for key, value in wanted.items()
            # A broker that comes from ZooKeeper has it under another name.
            if meta.get(key, meta.get("broker.id") if key == "node.id" else None) != value
        ]
        if unlike:
            raise ProblemError(
                Problem(
                    "storage.unlike",
                    f"it was formatted with {'; '.join(unlike)}",
                    "run the playbook again; if it says the same, the directory belongs to another node",
                    (path,),
                )
            )
        if afresh:
            left.append(path)
    return left


def command(
    node: Node, java_home: str, release: str, properties: str, some: bool, users: str = ""
) -> List[str]:
    """The command that formats a node; `some`: whether a directory of it is formatted already.

    `users`: a file of further arguments, which nobody may see in the list of processes.
    """
    words = [os.path.join(java_home, "bin", "java"), *JVM_FLAGS]
    words += ["-cp", os.path.join(release, "libs", "*"), "kafka.tools.StorageTool", "format"]
    # As one word: whatever an id begins with, it is not an option.
    words += [f"--cluster-id={node.cluster_id}", "--config", properties]
    if node.initial_controllers:
        words += ["--initial-controllers", node.initial_controllers]
    words += ["--no-initial-controllers"] if node.joins else []
    words += ["--ignore-formatted"] if some else []
    words += ["--release-version", node.features_of] if node.features_of else []
    return words + ([f"@{users}"] if users else [])


@contextlib.contextmanager
def _arguments_of(node: Node, become: Mapping[str, Any]) -> Iterator[str]:
    """A file with the arguments that are secret, one a line, for the account alone; "" if there are none."""
    if not node.users:
        yield ""
        return
    with tempfile.TemporaryDirectory(prefix="kafkaops-format-") as directory:
        path = os.path.join(directory, "users")
        write_atomically(path, "".join(f"--add-scram\n{each}\n" for each in node.users), 0o600)
        if become:
            for each in (path, directory):
                os.chown(each, become["user"], become["group"])
        yield path


def format_node(node: Node, java_home: str, release: str, properties: str) -> None:
    """Format what is left to format, as the account. ProblemError with Kafka's own words."""
    voters = {each.partition("@")[0] for each in node.initial_controllers.split(",")}
    if node.initial_controllers and str(node.node_id) not in voters:
        # Kafka would format it, with exit code 0: for a node that follows and never votes.
        raise ProblemError(
            Problem(
                "storage.no_voter",
                f"node {node.node_id} is not among the first voters {node.initial_controllers}",
                "give initial_controllers all controllers, the node itself among them",
                tuple(node.log_dirs),
            )
        )
    found = metas(node.log_dirs)
    some = any(meta is not None for meta in found.values())
    become: Dict[str, Any] = {}
    if node.account and os.geteuid() == 0:
        entry = pwd.getpwnam(node.account)
        become = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    try:
        with _arguments_of(node, become) as users:
            done = subprocess.run(
                command(node, java_home, release, properties, some, users),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=FORMAT_SECONDS,
                check=False,
                cwd="/",
                umask=0o027,
                **become,
            )
        said, code = done.stdout.decode("utf-8", "replace"), done.returncode
    except (OSError, subprocess.SubprocessError) as error:
        said, code = str(error), 1
    # The exit code alone tells too little: a controller that is not among the voters is not a failure to Kafka.
    left = [path for path, meta in metas(node.log_dirs).items() if meta is None]
    if code or left:
        # It shows what it makes of a user, and repeats an argument that it does not understand.
        for each in node.users:
            said = said.replace(each, HIDDEN)
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        lines = [line for line in lines if "ScramCredential" not in line]
        raise ProblemError(
            Problem(
                "storage.not_formatted",
                f"kafka-storage.sh format ended with {code}: {' '.join(lines[-3:])[:600]}",
                "make room or correct the inventory, as Kafka says, and run again; nothing was started",
                tuple(left or node.log_dirs),
            )
        )

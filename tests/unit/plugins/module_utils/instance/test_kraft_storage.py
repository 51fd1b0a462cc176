# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left to format of a node, and what is refused. That Kafka formats it is seen in tests/local/test_kraft.py."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from pathlib import Path

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.kraft_storage import (
    Node,
    begin_anew,
    command,
    format_node,
    metas,
    scram_argument,
    scram_arguments,
    unformatted,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError

CLUSTER = "wJ9ZqC3bT1mC4ZlYb3dM2g"


def node_with(folder, **contents):
    """(a node with a directory for each item, those with a text formatted)."""
    for name, text in contents.items():
        (folder / name).mkdir()
        if text:
            (folder / name / "meta.properties").write_text(text)
    return Node(CLUSTER, 1, [str(folder / name) for name in contents])


OWN = f"version=1\nnode.id=1\ncluster.id={CLUSTER}\n"


@pytest.mark.parametrize(
    ("contents", "left"),
    [
        ({"a": ""}, ["a"]),
        ({"a": OWN}, []),
        ({"a": OWN, "b": ""}, ["b"]),
    ],
)
def test_what_was_formatted_is_never_formatted_again(tmp_path, contents, left):
    node = node_with(tmp_path, **contents)
    assert unformatted(node, metas(node.log_dirs)) == [str(tmp_path / name) for name in left]


@pytest.mark.parametrize(
    ("more", "afresh"),
    [
        ([], True),
        (["bootstrap.checkpoint", "__cluster_metadata-0/0-0.checkpoint"], True),
        (["__cluster_metadata-0/quorum-state"], False),
        (["orders-0/0.log"], False),
        ([".lock"], False),
    ],
)
def test_what_nothing_was_started_with_is_formatted_anew_if_that_is_wanted(tmp_path, more, afresh):
    """What it began with cannot be compared; and what any process has left is kept."""
    node = dataclasses.replace(node_with(tmp_path, a=OWN, b=""), anew=True)
    for name in more:
        path = tmp_path / "a" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    left = unformatted(node, metas(node.log_dirs))
    assert left == (list(node.log_dirs) if afresh else [node.log_dirs[1]])
    before = sorted((tmp_path / "a").rglob("*"))
    begin_anew(dataclasses.replace(node, anew=False))
    assert sorted((tmp_path / "a").rglob("*")) == before
    begin_anew(node)
    assert sorted((tmp_path / "a").rglob("*")) == ([] if afresh else before)
    assert unformatted(node, metas(node.log_dirs)) == left


def test_what_is_anothers_is_not_formatted_anew(tmp_path):
    node = dataclasses.replace(
        node_with(tmp_path, a=OWN.replace("node.id=1", "node.id=2")), anew=True
    )
    with pytest.raises(ProblemError, match=r"\[storage.unlike\]"):
        unformatted(node, metas(node.log_dirs))


def test_a_directory_that_is_not_there_is_left_to_format(tmp_path):
    node = Node(CLUSTER, 1, [str(tmp_path / "new")])
    assert unformatted(node, metas(node.log_dirs)) == list(node.log_dirs)


@pytest.mark.parametrize(
    "text", [OWN.replace(CLUSTER, "another"), OWN.replace("node.id=1", "node.id=2"), "version=0\n"]
)
def test_what_was_formatted_for_somebody_else_is_refused(tmp_path, text):
    node = node_with(tmp_path, a="", b=text)
    with pytest.raises(ProblemError, match=r"\[storage.unlike\] .*/b: "):
        unformatted(node, metas(node.log_dirs))


def test_a_directory_beside_those_of_a_broker_that_comes_from_zookeeper(tmp_path):
    """There the id has another name; a disk that was added is formatted before the broker leaves ZooKeeper."""
    from_zookeeper = OWN.replace("version=1", "version=0").replace("node.id=1", "broker.id=1")
    node = node_with(tmp_path, a=from_zookeeper, b="")
    assert unformatted(node, metas(node.log_dirs)) == [node.log_dirs[1]]
    node = node_with(tmp_path, c=from_zookeeper.replace("broker.id=1", "broker.id=2"), d="")
    with pytest.raises(ProblemError, match=r"\[storage.unlike\] .*/c: "):
        unformatted(node, metas(node.log_dirs))


def test_no_id_is_taken_for_an_option():
    words = command(Node("-id", 1, ["/d"], "1@a:1:x"), "/java", "/release", "/conf", some=True)
    assert "--cluster-id=-id" in words and words[-1] == "--ignore-formatted"
    assert words[words.index("--initial-controllers") + 1] == "1@a:1:x"


def test_a_node_that_joins_is_formatted_with_the_features_of_its_cluster():
    """A release reads them at each start, and the one to which the others go back may not know its own."""
    node = Node("id", 1, ["/d"], joins=True, features_of="3.9")
    words = command(node, "/java", "/release", "/conf", some=False)
    assert words[words.index("--release-version") + 1] == "3.9"
    own = dataclasses.replace(node, features_of="")
    assert "--release-version" not in command(own, "/java", "/release", "/conf", some=False)


def test_a_tool_that_formats_nothing_is_a_failure_whatever_its_exit_code(tmp_path):
    """Kafka ends with 0 where it has made something else than what was meant."""
    node = node_with(tmp_path, a="")
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho what Kafka says\n")
    java.chmod(0o755)
    with pytest.raises(ProblemError, match=r"\[storage.not_formatted\].* 0: what Kafka says"):
        format_node(node, str(tmp_path / "java"), "/release", "/conf")


def test_a_user_is_made_of_what_is_kept_of_the_password():
    """No character of a password can break the argument, and it is not in it."""
    told = scram_argument("alice", 'a",]=b', "SCRAM-SHA-256", b"0123456789abcdef")
    salted = base64.b64encode(
        hashlib.pbkdf2_hmac("sha256", b'a",]=b', b"0123456789abcdef", 4096)
    ).decode()
    assert told == (
        'SCRAM-SHA-256=[name=alice,iterations=4096,salt="MDEyMzQ1Njc4OWFiY2RlZg==",'
        f'saltedpassword="{salted}"]'
    )


def test_users_are_in_a_file_for_the_time_of_the_format_and_in_no_argument(tmp_path):
    """The tool is a script that keeps what it sees; the file is for its account alone, and gone afterwards."""
    log = tmp_path / "data"
    log.mkdir()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/argv\nfor last; do :; done\n'
        f'stat -c %a "${{last#@}}" > {tmp_path}/mode\ncp "${{last#@}}" {tmp_path}/seen\n'
        f'echo "Unknown: $(tail -1 ${{last#@}})"\nexit 1\n'
    )
    java.chmod(0o755)
    users = scram_arguments(
        [{"name": "alice", "password": "secret", "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"]}]
    )
    node = Node(CLUSTER, 1, [str(log)], users=users)
    with pytest.raises(ProblemError, match=r"\[storage.not_formatted\]") as caught:
        format_node(node, str(tmp_path), "/release", "/properties")
    seen = (tmp_path / "seen").read_text()
    assert seen == "".join(f"--add-scram\n{each}\n" for each in users) and "secret" not in seen
    assert (tmp_path / "mode").read_text() == "600\n"
    words = (tmp_path / "argv").read_text()
    assert "SCRAM" not in words and not Path(words.split("@")[-1].strip()).exists()
    assert users[1] not in str(caught.value) and users[1] not in repr(node)


def test_a_controller_that_is_not_among_the_first_voters_is_not_formatted(tmp_path):
    """Kafka would do it, with exit code 0, and the node would never vote."""
    node = Node(CLUSTER, 1, [str(tmp_path)], "11@a:1:x,2@b:1:y")
    with pytest.raises(ProblemError, match=r"\[storage.no_voter\] .*node 1 is not among"):
        format_node(node, "/no/java", "/release", "/properties")

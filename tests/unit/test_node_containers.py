# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said where no node can be made; the nodes themselves are made by Molecule's scenarios."""

from __future__ import annotations

import pytest

from tests.support import node_containers
from tests.support.node_containers import Node, NodeError

NODE = Node("ko-node-1", "172.29.78.11", "kafkaops-node:bookworm")


def there(image=NODE.image, address=NODE.address, network="ko-nodes"):
    """Return of the engine's answer about a container what is looked at."""
    joined = {network: {"IPAMConfig": {"IPv4Address": address}}}
    return {"Config": {"Image": image}, "NetworkSettings": {"Networks": joined}}


def test_a_node_is_read_from_a_word():
    assert Node.parse("ko-node-1=172.29.78.11,kafkaops-node:bookworm") == NODE


@pytest.mark.parametrize("text", ["", "ko-node-1", "ko-node-1=172.29.78.11", "=172.29.78.11,image"])
def test_what_is_no_node_is_refused(text):
    with pytest.raises(NodeError, match="write NAME=ADDRESS,IMAGE"):
        Node.parse(text)


def test_the_same_container_is_taken():
    assert node_containers.difference(there(), NODE, "ko-nodes") == ""


@pytest.mark.parametrize(
    "attributes",
    [
        there(image="debian:12"),
        there(address="172.29.78.12"),
        there(network="bridge"),
        {"Config": {"Image": NODE.image}, "NetworkSettings": {"Networks": {"ko-nodes": {}}}},
    ],
)
def test_another_container_of_this_name_is_not(attributes):
    said = node_containers.difference(attributes, NODE, "ko-nodes")
    assert NODE.image in said and NODE.address in said


def test_a_missing_engine_is_one_sentence_with_the_remedy(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    node_containers.engine.cache_clear()
    try:
        assert node_containers.main(["restart", "ko-node-1"]) == 1
        said = capsys.readouterr().err
        assert (
            said.startswith("error: no Docker engine answers: ") and "scripts/nodes.sh up" in said
        )
        assert node_containers.main(["remove", "--network", "ko-nodes", "ko-node-1"]) == 0
    finally:
        node_containers.engine.cache_clear()

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers that serve as hosts, each a Debian with systemd: made, inspected and removed by the package docker.

For Molecule's playbooks as a program::

    python -m tests.support.node_containers create --network ko-nodes --subnet 172.29.78.0/24 \
        --key .ansible/nodes/key.pub ko-node-1=172.29.78.11,kafkaops-node:bookworm ...
    python -m tests.support.node_containers restart ko-node-1 ...
    python -m tests.support.node_containers run ko-node-1 "ip address"
    python -m tests.support.node_containers remove --network ko-nodes ko-node-1 ...

The engine and the images are there already: scripts/nodes.sh provides them. DOCKER_HOST names another engine.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import shlex
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import docker
import testinfra
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.types import IPAMConfig, IPAMPool, Ulimit
from requests.exceptions import RequestException

# as scripts/nodes.sh names them
RELEASE = os.environ.get("KAFKAOPS_NODE_RELEASE", "bookworm")
IMAGE = os.environ.get("KAFKAOPS_NODE_IMAGE", f"kafkaops-node:{RELEASE}")
IMAGE_JAVA = os.environ.get("KAFKAOPS_NODE_IMAGE_JAVA", f"{IMAGE}-java")
ACCOUNT = "ops"  # of the image: may use sudo, has no key yet
BOOT_SECONDS = 120
OPEN_FILES = 20000


class NodeError(RuntimeError):
    """Why a node cannot be made, reached or removed: one sentence, with the remedy."""


@dataclass(frozen=True)
class Node:
    """A host to be: its name, its address in the network, its image, and names that it can resolve."""

    name: str
    address: str
    image: str
    hostname: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> Node:
        """Read NAME=ADDRESS,IMAGE."""
        name, _equals, rest = text.partition("=")
        address, _comma, image = rest.partition(",")
        if not (name and address and image):
            raise NodeError(f"{text}: not a node. Remedy: write NAME=ADDRESS,IMAGE")
        return Node(name, address, image)


@contextlib.contextmanager
def _told_of(subject: str) -> Iterator[None]:
    """Turn the engine's refusal into a sentence about its subject."""
    try:
        yield
    except NotFound:
        raise
    except APIError as error:
        raise NodeError(f"{subject}: {error.explanation or error}") from error


@functools.cache
def engine() -> docker.DockerClient:
    """Return a client of the engine that answers; the same one in all calls.

    Raises NodeError where none does.
    """
    try:
        client = docker.from_env(timeout=120)
        client.ping()
    except (DockerException, RequestException) as error:
        raise NodeError(
            f"no Docker engine answers: {error}. Remedy: run scripts/nodes.sh up as root, "
            "or name an engine by DOCKER_HOST that this account may use"
        ) from error
    return client


def get(name: str) -> Any:
    """Return the container of a node, as the engine has it now."""
    try:
        return engine().containers.get(name)
    except NotFound as error:
        raise NodeError(
            f"{name}: there is no such node. Remedy: molecule create -s default"
        ) from error


def is_running(name: str) -> bool:
    """Whether the node's processes run."""
    return get(name).status == "running"


def inside(name: str, command: str, check: bool = True) -> str:
    """Run a shell command in a node as root; return what it wrote to its standard output.

    `check`: whether a code other than 0 is an error. By testinfra, so by `docker exec`: with the package
    docker the output of one in 200 commands was lost here (github.com/docker/docker-py/issues/2042).
    """
    done = testinfra.get_host(f"docker://{name}").run("sh -ec %s", command)
    if check and done.rc != 0:
        raise NodeError(f"{name}: {command}: exit code {done.rc}: {done.stdout}{done.stderr}")
    return str(done.stdout)


def begin(name: str, command: str) -> None:
    """Start a shell command in a node as root; nobody waits for it."""
    with _told_of(f"{name}: {command}"):
        get(name).exec_run(["sh", "-c", command], detach=True)


def create(nodes: Sequence[Node], network: str, subnet: str) -> None:
    """Make the network and the nodes that are missing, and start those that stand.

    A node that is there with another image or address is refused: it belongs to somebody else, or to an
    older checkout.
    """
    client = engine()
    if not client.networks.list(names=[f"^{network}$"]):
        pools = IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)])
        with _told_of(f"network {network}, {subnet}"):
            client.networks.create(network, driver="bridge", ipam=pools)
    for node in nodes:
        try:
            there = client.containers.get(node.name)
        except NotFound:
            _start_new(client, node, network)
        else:
            other = difference(there.attrs, node, network)
            if other:
                raise NodeError(
                    f"{node.name}: there is a container of this name, and {other}. "
                    "Remedy: molecule destroy -s default, if it is not needed"
                )
            with _told_of(node.name):
                there.start()


def _start_new(client: docker.DockerClient, node: Node, network: str) -> None:
    """Make a node and start it; one that cannot start is not left behind."""
    with _told_of(node.name):
        made = _make(client, node, network)
        try:
            made.start()
        except APIError:
            made.remove(force=True, v=True)
            raise


def _make(client: docker.DockerClient, node: Node, network: str) -> Any:
    endpoint = client.api.create_endpoint_config(ipv4_address=node.address)
    try:
        return client.containers.create(
            node.image,
            name=node.name,
            hostname=node.hostname or node.name,
            network=network,
            networking_config={network: endpoint},
            extra_hosts=dict(node.names),
            # systemd wants its control groups, and directories that are empty after a boot
            cgroupns="host",
            volumes={"/sys/fs/cgroup": {"bind": "/sys/fs/cgroup", "mode": "rw"}},
            tmpfs={"/run": "", "/run/lock": "", "/tmp": ""},
            stop_signal="SIGRTMIN+3",
            # what the roles and the faults of the tests do to a host
            cap_add=["SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE"],
            security_opt=["seccomp=unconfined", "apparmor=unconfined"],
            ulimits=[Ulimit(name="nofile", soft=OPEN_FILES, hard=OPEN_FILES)],
        )
    except ImageNotFound as error:
        raise NodeError(
            f"{node.name}: image={node.image}: the engine has no such image. Remedy: scripts/nodes.sh up"
        ) from error


def difference(attributes: Mapping[str, Any], node: Node, network: str) -> str:
    """Return how a container that has the node's name differs from it, empty where it does not.

    `attributes`: what the engine tells of the container.
    """
    image = attributes["Config"]["Image"]
    joined = attributes["NetworkSettings"]["Networks"].get(network) or {}
    # the address that was asked for: a node that is stopped has none
    address = (joined.get("IPAMConfig") or {}).get("IPv4Address")
    if (image, address) == (node.image, node.address):
        return ""
    return f"it has image {image} and address {address} in {network}, not {node.image} and {node.address}"


def wait_for(met: Callable[[], bool], seconds: float, name: str, what: str) -> None:
    """Wait until it is so, and fail at once where the node has stopped meanwhile."""
    deadline = time.monotonic() + seconds
    while not met():
        container = get(name)
        if container.status != "running":
            last = container.logs(tail=3).decode(errors="replace").strip()
            raise NodeError(f"{name}: it has stopped before {what}: {last or 'it says nothing'}")
        if time.monotonic() > deadline:
            raise NodeError(f"{name}: not within {seconds:.0f} s: {what}")
        time.sleep(0.2)


def _has_booted(name: str) -> bool:
    # `systemctl --wait` is not enough: it fails while the bus socket is missing
    state = inside(name, "systemctl is-system-running", check=False).strip()
    return state in ("running", "degraded")


def wait_until_booted(names: Sequence[str]) -> None:
    """Wait until systemd has started what it starts; one unit that fails does not matter."""
    for name in names:
        wait_for(functools.partial(_has_booted, name), BOOT_SECONDS, name, "it has booted")


def let_in(name: str, key: str, account: str = ACCOUNT) -> None:
    """Let whoever has a key log in to an account of the node; `key`: the line of its public half."""
    owned = f"-o {account} -g {account}"
    inside(
        name,
        f"home=$(getent passwd {account} | cut -d: -f6)\n"
        f'install -d -m 0700 {owned} "$home/.ssh"\n'
        f"echo {shlex.quote(key)} | install -m 0600 {owned} /dev/stdin $home/.ssh/authorized_keys\n",
    )


def restart(names: Sequence[str]) -> None:
    """Restart nodes, all before any is waited for; they get their mounts and their network anew."""
    for name in names:
        get(name).restart(timeout=10)
    wait_until_booted(names)


def limit(name: str, memory: str, cores: str) -> None:
    """Leave a node so much memory (`2g`) without swap, and these cores of the engine's machine (`0`, `0-3`).

    Empty texts give it all that the machine has: an engine does not lift a limit that it has set.
    """
    told = engine().info()
    size = memory or told["MemTotal"]
    with _told_of(f"{name}: memory {size}, cores {cores}"):
        get(name).update(
            mem_limit=size, memswap_limit=size, cpuset_cpus=cores or f"0-{told['NCPU'] - 1}"
        )


def remove(names: Sequence[str], network: str) -> None:
    """Remove nodes and their network; what is not there is no error, nor is an engine that is not."""
    try:
        client = engine()
    except NodeError:
        return
    for name in names:
        with contextlib.suppress(NotFound), _told_of(f"{name} stays"):
            client.containers.get(name).remove(force=True, v=True)
    for found in client.networks.list(names=[f"^{network}$"]):
        with _told_of(f"network {network} stays"):
            found.remove()


def main(arguments: Sequence[str]) -> int:
    """The program; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("create", help="make nodes, wait until they have booted")
    making.add_argument("--network", required=True)
    making.add_argument("--subnet", required=True)
    making.add_argument("--key", type=Path, required=True, help="file of a public key to let in")
    making.add_argument("nodes", nargs="+", metavar="NAME=ADDRESS,IMAGE")
    again = commands.add_parser("restart", help="restart nodes, wait until they have booted")
    again.add_argument("names", nargs="+", metavar="NAME")
    asking = commands.add_parser("run", help="run a shell command in a node")
    asking.add_argument("name", metavar="NAME")
    asking.add_argument("shell", metavar="COMMAND")
    limiting = commands.add_parser("limit", help="leave a node less of the machine, or all again")
    limiting.add_argument("name", metavar="NAME")
    limiting.add_argument("--memory", default="", help="such as 2g; all where it is missing")
    limiting.add_argument("--cores", default="", help="such as 0; all where it is missing")
    removing = commands.add_parser("remove", help="remove nodes and their network")
    removing.add_argument("--network", required=True)
    removing.add_argument("names", nargs="+", metavar="NAME")
    given = parser.parse_args(arguments)
    try:
        if given.command == "create":
            nodes = [Node.parse(each) for each in given.nodes]
            create(nodes, given.network, given.subnet)
            wait_until_booted([node.name for node in nodes])
            for node in nodes:
                let_in(node.name, given.key.read_text().strip())
        elif given.command == "restart":
            restart(given.names)
        elif given.command == "limit":
            limit(given.name, given.memory, given.cores)
        elif given.command == "run":
            print(inside(given.name, given.shell), end="")
        else:
            remove(given.names, given.network)
    except (NodeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

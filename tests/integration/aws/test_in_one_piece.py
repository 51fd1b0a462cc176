# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the order to a proven cluster and back: moto takes the order, containers of this machine are what it gives.

A container gets the address that moto has given to the machine, and lets in whoever has the key that was ordered
with it; so the playbooks go on from the order by themselves.
"""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from tests.integration.aws.conftest import CHECKOUT
from tests.support import node_containers
from tests.support.node_containers import IMAGE_JAVA, Node
from tests.support.outside import wait_until

pytestmark = pytest.mark.soak

NETWORK, PREFIX = "ko-ordered", "172.29.80"
RUNNING = [{"Name": "instance-state-name", "Values": ["running"]}]
# moto's hosts have no keys that anybody knows, and only this machine reaches them.
NO_HOST_KEYS = "-o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no -o LogLevel=ERROR"


class Machines:
    """The containers behind moto's machines, by the names of their hosts."""

    def __init__(self, ec2, key_file):
        self._ec2 = ec2
        self._key_file = key_file
        self._made = {}

    def running(self):
        """Host's name -> private address, of moto's machines that run."""
        found = {}
        for reservation in self._ec2.describe_instances(Filters=RUNNING)["Reservations"]:
            for machine in reservation["Instances"]:
                tags = {each["Key"]: each["Value"] for each in machine["Tags"]}
                found[tags["Name"]] = machine["PrivateIpAddress"]
        return found

    def make(self):
        """Give each machine of moto its container; one that has ended loses it."""
        there = self.running()
        for name, address in list(self._made.items()):
            if there.get(name) != address:
                node_containers.engine().containers.get(f"ko-{name}").remove(force=True, v=True)
                del self._made[name]
        new = [name for name in there if name not in self._made]
        node_containers.create(
            [Node(f"ko-{name}", there[name], IMAGE_JAVA) for name in new], NETWORK, f"{PREFIX}.0/24"
        )
        self._made.update({name: there[name] for name in new})
        node_containers.wait_until_booted([f"ko-{name}" for name in new])
        key = subprocess.run(
            ["ssh-keygen", "-y", "-f", str(self._key_file)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for name in new:
            node_containers.let_in(f"ko-{name}", key)

    def remove(self):
        """Remove all containers and their network."""
        node_containers.remove([f"ko-{name}" for name in self._made], NETWORK)


@pytest.fixture(scope="module")
def engine():
    """A Docker engine with the images of the nodes, ended afterwards if it was started for this."""
    script = str(CHECKOUT / "scripts" / "nodes.sh")
    done = subprocess.run([script, "up"], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    yield
    subprocess.run([script, "down"], check=False)


@pytest.fixture
def ordered(checkout, ec2, engine):
    """The inventory of a network with three zones that only a VPN reaches, and its machines to be."""
    vpc = ec2.create_vpc(CidrBlock=f"{PREFIX}.0/24")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=f"{PREFIX}.{64 * number}/26",
            AvailabilityZone=f"eu-central-1{zone}",
        )["Subnet"]["SubnetId"]
        for number, zone in enumerate("abc")
    ]
    checkout.edit(
        "all/machines", aws_type="t3.large", aws_subnets=subnets, aws_public_address=False
    )
    checkout.edit("all/cluster", ansible_user="ops", ansible_ssh_common_args=NO_HOST_KEYS)
    checkout.edit("kafka/listeners", kafka_heap="512m")
    plugin = checkout.inventory / "aws.yml"
    settings = yaml.safe_load(plugin.read_text())
    settings["addresses"] = dict.fromkeys(settings["addresses"], "private")
    plugin.write_text(yaml.safe_dump(settings))
    machines = Machines(ec2, checkout.key_file)
    try:
        yield machines
    finally:
        machines.remove()


def provision(checkout, machines, count):
    """Order, and give the machines while the playbook waits for them; returns what it printed."""
    with ThreadPoolExecutor(1) as pool:
        playing = pool.submit(checkout.play, "aws_provision")
        wait_until(
            lambda: len(machines.running()) == count or playing.done(), 120, "machines of moto"
        )
        if not playing.done():
            machines.make()
        code, said = playing.result()
    assert code == 0, said
    return said


def changed(said):
    """The number of changes of all hosts, from the recap of a run."""
    return sum(int(number) for number in re.findall(r"\bchanged=(\d+)", said))


def test_from_the_order_to_a_proven_cluster_and_back(checkout, ordered, ec2):
    said = provision(checkout, ordered, 3)
    assert said.count("as ordered: 2 cores") == 3, said
    assert {address.rpartition(".")[0] for address in ordered.running().values()} == {PREFIX}

    code, said = checkout.play("preflight")
    assert code == 0, said
    code, said = checkout.play("site")
    assert code == 0, said
    assert "PASS" in said, said
    for playbook in ("aws_provision", "site"):
        code, said = checkout.play(playbook)
        assert code == 0 and changed(said) == 0, said
    code, said = checkout.play("status", "-e", "status_strict=true")
    assert code == 0, said
    for zone in "abc":
        assert (
            f"eu-central-1{zone}"
            in checkout.command("ansible", "kafka", "-m", "debug", "-a", "var=kafka_rack").stdout
        )

    code, said = checkout.play("aws_teardown", "-e", "confirm=orders")
    assert code == 0 and ordered.running() == {}, said

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is ordered of EC2, and what is there, as values. Pure.

Private to this collection. An `Order` is what the inventory says, a `Snapshot` what EC2 and the key
file say at one moment. Sizes of volumes are in GiB, as EC2 counts them; memory is in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, Mapping, Optional, Tuple

# Tags that say what is ours, and which machine of the inventory it is.
CLUSTER_TAG = "kafkaops:cluster"
HOST_TAG = "kafkaops:host"
GROUPS_TAG = "kafkaops:groups"
OWN_TAGS = (CLUSTER_TAG, HOST_TAG, GROUPS_TAG, "Name")
# Words for a source of traffic that stand for addresses which only EC2 knows.
MEMBERS = "members"
NETWORK = "network"
# Modes of a private key that ssh accepts; the first is the one that we give.
KEY_MODES = (0o600, 0o400)
GONE = ("shutting-down", "terminated")


@dataclass(frozen=True)
class Volume:
    """One volume of an order; `device` is empty for the root volume, whose name the image has.

    `keep`: the volume survives its machine, until the cluster is torn down.
    """

    device: str
    size_gib: int
    type: str = "gp3"
    iops: Optional[int] = None
    throughput: Optional[int] = None
    encrypted: bool = True
    keep: bool = False

    @property
    def label(self) -> str:
        """The device, or what stands for it."""
        return self.device or "root"

    def text(self) -> str:
        """How people read it: `100 GiB gp3`."""
        return f"{self.size_gib} GiB {self.type}"


@dataclass(frozen=True)
class Machine:
    """One ordered machine; `subnet` is empty where the placement may choose one."""

    name: str
    type: str
    image: str
    root: Volume
    volumes: Tuple[Volume, ...] = ()
    groups: Tuple[str, ...] = ()
    subnet: str = ""
    public_address: bool = False
    tags: Tuple[Tuple[str, str], ...] = ()
    user_data: str = ""
    # What the machine must have at least; None: what its type promises.
    cores: Optional[int] = None
    memory_bytes: Optional[int] = None


@dataclass(frozen=True, order=True)
class Rule:
    """Traffic that is let in. `source` is a network, `sg-...`, `pl-...`, or MEMBERS for the group itself.

    Ports are -1 where the protocol has none.
    """

    protocol: str
    first: int
    last: int
    source: str

    def text(self) -> str:
        """How people read it: `tcp 9092 from 203.0.113.0/24`."""
        if self.protocol == "-1":
            return f"everything from {self.source}"
        ports = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        shown = "" if self.first == -1 else f" {ports}"
        return f"{self.protocol}{shown} from {self.source}"


@dataclass(frozen=True)
class Order:
    """All that one cluster has in EC2.

    `rules` map each rule to what it is for; their source may be NETWORK, too. `only` names the
    machines of this run (None: all of them). `key_file` is empty where the private key is elsewhere.
    """

    cluster: str
    machines: Tuple[Machine, ...] = ()
    rules: Mapping[Rule, str] = field(default_factory=dict)
    subnets: Tuple[str, ...] = ()
    group_name: str = ""
    key_name: str = ""
    key_file: str = ""
    only: Optional[FrozenSet[str]] = None
    allow: FrozenSet[str] = frozenset()

    def in_run(self, name: str) -> bool:
        """Whether this run is about the machine of that name."""
        return self.only is None or name in self.only


@dataclass(frozen=True)
class Subnet:
    """A subnet that a machine may be in."""

    id: str
    zone: str
    network: str


@dataclass(frozen=True)
class SeenVolume:
    """A volume of EC2; `device` and `machine` (an instance's id) are empty while it is not attached."""

    id: str
    size_gib: int
    type: str
    encrypted: bool
    iops: Optional[int] = None
    throughput: Optional[int] = None
    device: str = ""
    machine: str = ""
    ends_with_machine: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """How people read it: `vol-1 (/dev/sdf, 100 GiB gp3)`."""
        where = f"{self.device}, " if self.device else ""
        return f"{self.id} ({where}{self.size_gib} GiB {self.type})"


@dataclass(frozen=True)
class Instance:
    """A machine of EC2 that carries the cluster's tag."""

    id: str
    state: str
    type: str
    image: str
    subnet: str
    zone: str
    key_name: str = ""
    root_device: str = ""
    groups: Tuple[str, ...] = ()
    # Ids of the volumes that are deleted with it.
    ending_volumes: Tuple[str, ...] = ()
    private_address: str = ""
    public_address: str = ""
    public_dns: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name in the inventory; where somebody removed the tag, by `Name`, or else its id."""
        return self.tags.get(HOST_TAG) or self.tags.get("Name") or self.id

    @property
    def alive(self) -> bool:
        """Whether it is a machine, and not only the memory of one."""
        return self.state not in GONE


@dataclass(frozen=True)
class SeenRule:
    """A rule of the security group; `ours` where its tag or its description says so."""

    id: str
    rule: Rule
    description: str = ""
    ours: bool = False


@dataclass(frozen=True)
class Group:
    """The security group of the cluster, or another one that has its name."""

    id: str
    network: str
    tags: Mapping[str, str] = field(default_factory=dict)
    rules: Tuple[SeenRule, ...] = ()


@dataclass(frozen=True)
class KeyPair:
    """A key pair of EC2: its public half in OpenSSH's form."""

    name: str
    public: str
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KeyFile:
    """The private key's file: `public` is its public half; `fault` says why it could not be read."""

    path: str
    exists: bool = False
    mode: int = 0
    ours: bool = True
    public: str = ""
    fault: str = ""


@dataclass(frozen=True)
class Image:
    """An image: the name of its root device and the least size of that volume."""

    id: str
    root_device: str
    least_gib: int = 0


@dataclass(frozen=True)
class MachineType:
    """What a type of machine has."""

    name: str
    cores: int
    memory_bytes: int


@dataclass(frozen=True)
class Snapshot:
    """What is there. `strangers` use the cluster's security group, but do not carry its tag; `renamed` carry it
    under another name than the order's.
    """

    subnets: Tuple[Subnet, ...] = ()
    network_addresses: Tuple[str, ...] = ()
    instances: Tuple[Instance, ...] = ()
    strangers: Tuple[Instance, ...] = ()
    volumes: Tuple[SeenVolume, ...] = ()
    group: Optional[Group] = None
    key_pair: Optional[KeyPair] = None
    key_file: Optional[KeyFile] = None
    renamed: Tuple[str, ...] = ()
    images: Mapping[str, Image] = field(default_factory=dict)
    types: Mapping[str, MachineType] = field(default_factory=dict)

    def alive(self) -> Tuple[Instance, ...]:
        """The machines that exist."""
        return tuple(each for each in self.instances if each.alive)

    def volumes_of(self, instance: Instance) -> Tuple[SeenVolume, ...]:
        """The volumes that are attached to a machine, by device."""
        found = (each for each in self.volumes if each.machine == instance.id)
        return tuple(sorted(found, key=lambda each: each.device))


def own_tags(order: Order, machine: Machine) -> Dict[str, str]:
    """The tags of a machine: the user's, and those by which it is found again."""
    return {
        **dict(machine.tags),
        CLUSTER_TAG: order.cluster,
        HOST_TAG: machine.name,
        GROUPS_TAG: " ".join(machine.groups),
        "Name": machine.name,
    }


def to_result(instance: Instance, kind: Optional[MachineType]) -> Dict[str, Any]:
    """A machine as the module returns it."""
    return {
        "name": instance.name,
        "id": instance.id,
        "state": instance.state,
        "type": instance.type,
        "zone": instance.zone,
        "private_address": instance.private_address,
        "public_address": instance.public_address,
        "public_dns": instance.public_dns,
        "cores": kind.cores if kind else None,
        "memory_bytes": kind.memory_bytes if kind else None,
    }

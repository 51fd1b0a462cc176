# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is a machine what was ordered? Pure.

Private to this collection. The kernel keeps some memory for itself, so a machine of 4 GiB shows less.
"""

from __future__ import annotations

from typing import Any, List, Mapping

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_size

# Of the ordered memory, what a kernel shows at least: 0.86 on a machine of 1 GiB, more on larger ones.
MEMORY_SHARE = 0.8
GIB = 2**30
SECTOR_BYTES = 512
# Devices of Linux that are made of memory, files or other disks.
NO_DISKS = ("loop", "ram", "zram", "dm-", "md", "sr", "fd")
REMEDY = (
    "order what is there in aws_type, aws_cores, aws_memory or the volumes, or replace the machine"
)


def unlike_order(facts: Mapping[str, Any], ordered: Mapping[str, Any], name: str) -> List[Problem]:
    """What the machine has less than was ordered.

    `facts`: `cores`, `memory_bytes`, `disk_bytes` (one number a disk) as the machine itself sees them;
    `ordered`: `cores`, `memory_bytes` (None: nothing was ordered), `volume_gib` (one number a volume).
    """
    found: List[Problem] = []

    def differs(what: str, has: str, wanted: str) -> None:
        reason = f"the machine has {has} {what}, {wanted} were ordered"
        found.append(Problem("aws.unlike_order", reason, REMEDY, (name,)))

    cores, memory = ordered.get("cores"), ordered.get("memory_bytes")
    if cores and facts["cores"] < cores:
        differs("cores", str(facts["cores"]), str(cores))
    if memory and facts["memory_bytes"] < memory * MEMORY_SHARE:
        differs("of memory", approximate_size(facts["memory_bytes"]), approximate_size(memory))
    disks = sorted(facts["disk_bytes"], reverse=True)
    wanted = sorted(ordered.get("volume_gib") or (), reverse=True)
    for index, size in enumerate(wanted):
        has = disks[index] if index < len(disks) else 0
        if has < size * GIB:
            shown = approximate_size(has) if has else "none"
            differs(f"on disk {index + 1} by size", shown, approximate_size(size * GIB))
    return found


def of_setup(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """`facts` for `unlike_order`, from those of Ansible's module setup (with or without `ansible_`)."""

    def read(name: str) -> Any:
        return facts.get(f"ansible_{name}", facts.get(name))

    disks = [
        int(disk["sectors"]) * int(disk.get("sectorsize") or SECTOR_BYTES)
        for name, disk in (read("devices") or {}).items()
        if not name.startswith(NO_DISKS) and int(disk.get("sectors") or 0)
    ]
    return {
        "cores": int(read("processor_vcpus") or 0),
        "memory_bytes": int(read("memtotal_mb") or 0) * 2**20,
        "disk_bytes": disks,
    }

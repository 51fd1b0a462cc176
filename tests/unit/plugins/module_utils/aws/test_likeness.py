# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that has less than was ordered is told, one that has as much or more is not."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.likeness import (
    of_setup,
    unlike_order,
)

GIB = 2**30
ORDERED = {"cores": 2, "memory_bytes": 4 * GIB, "volume_gib": [20, 100]}


def facts(cores=2, memory=3.8, disks=(100, 20)):
    sizes = [int(each * GIB) for each in disks]
    return {"cores": cores, "memory_bytes": int(memory * GIB), "disk_bytes": sizes}


@pytest.mark.parametrize(
    "seen, words",
    [
        (facts(), []),
        (facts(cores=4, memory=16, disks=(50, 200, 10)), []),
        (facts(cores=1), ["has 1 cores, 2 were ordered"]),
        (facts(memory=2), ["has 2.0 GiB of memory, 4.0 GiB were ordered"]),
        (facts(disks=(100,)), ["none on disk 2 by size, 20.0 GiB were ordered"]),
        (facts(disks=(50, 20)), ["50.0 GiB on disk 1 by size, 100.0 GiB were ordered"]),
        (facts(1, 1, ()), ["cores", "memory", "disk 1", "disk 2"]),
    ],
)
def test_what_is_less_is_told(seen, words):
    found = [each.line() for each in unlike_order(seen, ORDERED, "kafka-1")]
    assert len(found) == len(words)
    assert all(word in line for word, line in zip(words, found))
    assert all(line.startswith("[aws.unlike_order] kafka-1: ") for line in found)


def test_what_was_not_ordered_is_not_missed():
    assert unlike_order(facts(), {"cores": None, "memory_bytes": None, "volume_gib": []}, "a") == []


def test_the_facts_of_setup_are_read_without_devices_that_are_no_disks():
    found = of_setup(
        {
            "ansible_processor_vcpus": 2,
            "ansible_memtotal_mb": 4096,
            "ansible_devices": {
                "nvme0n1": {"sectors": "41943040", "sectorsize": "512"},
                "loop0": {"sectors": "99999999", "sectorsize": "512"},
                "sr0": {"sectors": "99999999", "sectorsize": "2048"},
                "sdb": {"sectors": "0", "sectorsize": "512"},
            },
        }
    )
    assert found == {"cores": 2, "memory_bytes": 4 * GIB, "disk_bytes": [20 * GIB]}

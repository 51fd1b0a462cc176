# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernel settings the role host_baseline writes, where the host has some already."""

from __future__ import annotations

import pytest

from tests.support.role_variables import evaluated


@pytest.mark.parametrize(
    "stated, effective, written",
    [
        (262144, "65530", 262144),
        (262144, "1048576", 1048576),
        ("262144", "1048576", 1048576),
        (262144, "262144", 262144),
        # a kernel without it, and --check of a role that has not looked
        (262144, "", 262144),
        (262144, None, 262144),
    ],
)
def test_memory_maps_are_not_lowered(stated, effective, written):
    settings = {"vm.swappiness": 1, "vm.max_map_count": stated}
    looked = {} if effective is None else {"stdout_lines": ["60", effective]}
    given = {"host_baseline_sysctl": settings, "__host_baseline_effective": looked}
    found = evaluated("host_baseline", "__host_baseline_sysctl_wanted", given)
    assert found == {"vm.swappiness": 1, "vm.max_map_count": written}

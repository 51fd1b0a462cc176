# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings, huge pages, hosts file and name: in the files and in effect."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.node_containers import inside
from tests.support.nodes import ADDRESSES, CHECKOUT, changed, host, play

CONVERGE = str(CHECKOUT / "molecule" / "host_baseline" / "converge.yml")
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
RESERVED = "net.ipv4.ip_local_reserved_ports"


@pytest.fixture(params=ADDRESSES)
def name(request):
    return request.param


def test_kernel_settings_are_in_the_file_and_in_effect(name):
    node = host(name)
    assert node.sysctl(RESERVED) == "9092-9093"
    assert node.check_output("sysctl -n net.ipv4.ip_local_port_range").split() == ["33000", "60000"]
    lines = node.file("/etc/sysctl.d/60-kafkaops.conf").content_string.splitlines()
    assert f"{RESERVED} = 9092-9093" in lines and len(lines) == 4


def test_huge_pages_are_set_at_boot_and_a_difference_is_put_right(name):
    """The kernel is everybody's, so that the file says what is in effect already."""
    (setting,) = re.findall(r"\[(\w+)\]", Path(HUGE_PAGES).read_text())
    lines = host(name).file("/etc/tmpfiles.d/60-kafkaops.conf").content_string.splitlines()
    assert lines[1:] == [f"w- {HUGE_PAGES} - - - - {setting}"]
    inside(name, "systemd-tmpfiles --create /etc/tmpfiles.d/60-kafkaops.conf")
    other = "never" if setting == "madvise" else "madvise"
    said = play(
        *(CONVERGE, "--check", "--diff", "--limit", name),
        *("-e", f"host_baseline_transparent_hugepages={other}"),
        inventory="host_baseline",
    )
    assert f"transparent huge pages: {setting} -> {other}" in said
    assert changed(said)[name] == 2  # the file, and what is in effect


def test_the_members_and_what_is_added_have_names(name):
    node = host(name)
    for member, address in {**ADDRESSES, "registry.example.org": "192.0.2.7"}.items():
        assert node.check_output(f"getent hosts {member}").split() == [address, member]
    # what was in the file is still there
    assert node.check_output("getent ahostsv4 localhost").startswith("127.0.0.1")


def test_the_host_has_its_name(name):
    node = host(name)
    assert node.check_output("hostname") == f"{name}.example.org"
    assert node.file("/etc/hostname").content_string.strip() == f"{name}.example.org"


def test_what_somebody_changed_by_hand_is_shown_and_put_right():
    """The file is as it should be, the kernel is not: check mode says so, the run mends it."""
    name, *_others = ADDRESSES
    inside(name, f"sysctl -q -w {RESERVED}=''")
    said = play(CONVERGE, "--check", "--diff", inventory="host_baseline")
    assert changed(said)[name] == 1 and f"{RESERVED}: (empty) -> 9092-9093" in said, said
    assert host(name).sysctl(RESERVED) == ""
    said = play(CONVERGE, inventory="host_baseline")
    assert changed(said) == {**dict.fromkeys(ADDRESSES, 0), name: 1}
    assert host(name).sysctl(RESERVED) == "9092-9093"


def test_with_limit_the_hosts_file_still_names_everybody():
    name, *_others = ADDRESSES
    said = play(CONVERGE, "--limit", name, inventory="host_baseline")
    assert changed(said)[name] == 0


def test_in_a_container_nothing_is_changed_and_the_reason_is_said():
    said = play(
        *(CONVERGE, "--check", "--diff"),
        *("-e", '{"kafkaops_preflight_collected": {"facts": {"container": "docker"}}}'),
        *("-e", '{"host_baseline_hostname": "another.example.org"}'),
        inventory="host_baseline",
    )
    assert set(changed(said).values()) == {0}
    assert "A container (docker): kernel settings, huge pages, hosts file" in said


def test_every_part_has_a_switch():
    off = {f"host_baseline_manage_{part}": False for part in ("sysctl", "hosts_file", "hostname")}
    off["host_baseline_transparent_hugepages"] = "unchanged"
    name, *_others = ADDRESSES
    node = host(name)
    inside(name, f"sysctl -q -w {RESERVED}=''; rm /etc/tmpfiles.d/60-kafkaops.conf")
    said = play(CONVERGE, "-e", json.dumps(off), inventory="host_baseline")
    assert set(changed(said).values()) == {0}
    assert node.sysctl(RESERVED) == "" and not node.file("/etc/tmpfiles.d/60-kafkaops.conf").exists


def test_a_setting_that_the_kernel_does_not_have_is_refused_by_name():
    said = play(
        *(CONVERGE, "-e", '{"host_baseline_sysctl": {"vm.no_such_setting": 1}}'),
        inventory="host_baseline",
        code=2,
    )
    assert "no_such_setting" in said

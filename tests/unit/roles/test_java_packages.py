# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which package brings Java on which distribution; that the package exists is known of Debian 12 only."""

from __future__ import annotations

import pytest

from tests.support.role_variables import evaluated


@pytest.mark.parametrize(
    "family, distribution, release, package",
    [
        ("Debian", "Debian", "12", "openjdk-17-jre-headless"),
        ("Debian", "Debian", "13", "default-jre-headless"),
        ("Debian", "Ubuntu", "22", "openjdk-17-jre-headless"),
        ("Debian", "Ubuntu", "24", "default-jre-headless"),
        ("RedHat", "Rocky", "9", "java-17-openjdk-headless"),
        ("RedHat", "RedHat", "10", "java-21-openjdk-headless"),
        ("RedHat", "Fedora", "43", "java-21-openjdk-headless"),
        ("RedHat", "Amazon", "2023", "java-17-amazon-corretto-headless"),
        ("Suse", "openSUSE Leap", "15", "java-21-openjdk-headless"),
    ],
)
def test_packages(family, distribution, release, package):
    facts = {
        "os_family": family,
        "distribution": distribution,
        "distribution_major_version": release,
    }
    found = evaluated("java", "__java_platform_packages", {"ansible_facts": facts})
    assert found == [package]

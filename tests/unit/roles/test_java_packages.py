# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which package brings Java on which distribution; that the package exists is known of Debian 12 and 13 only."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from tests.support.role_variables import evaluated

ROOT = Path(__file__).resolve().parents[3]


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


# The files by which Ansible tells distributions apart, as hosts have them; what only people read is left out.
IDENTITY = {
    "rhel-9": {
        "os-release": 'NAME="Red Hat Enterprise Linux"\nVERSION="9.4 (Plow)"\nID="rhel"\nID_LIKE="fedora"\n'
        'VERSION_ID="9.4"\nPLATFORM_ID="platform:el9"\n',
        "redhat-release": "Red Hat Enterprise Linux release 9.4 (Plow)\n",
        "system-release": "Red Hat Enterprise Linux release 9.4 (Plow)\n",
    },
    "rhel-10": {
        "os-release": 'NAME="Red Hat Enterprise Linux"\nVERSION="10.0 (Coughlan)"\nID="rhel"\nID_LIKE="centos fedora"\n'
        'VERSION_ID="10.0"\nPLATFORM_ID="platform:el10"\n',
        "redhat-release": "Red Hat Enterprise Linux release 10.0 (Coughlan)\n",
        "system-release": "Red Hat Enterprise Linux release 10.0 (Coughlan)\n",
    },
    "amazon-2023": {
        "os-release": 'NAME="Amazon Linux"\nVERSION="2023"\nID="amzn"\nID_LIKE="fedora"\nVERSION_ID="2023"\n'
        'PLATFORM_ID="platform:al2023"\nCPE_NAME="cpe:2.3:o:amazon:amazon_linux:2023"\n',
        "system-release": "Amazon Linux release 2023 (Amazon Linux)\n",
    },
    "ubuntu-24.04": {
        "os-release": 'NAME="Ubuntu"\nVERSION_ID="24.04"\nVERSION="24.04.1 LTS (Noble Numbat)"\n'
        "VERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\nUBUNTU_CODENAME=noble\n",
        "debian_version": "trixie/sid\n",
        "lsb-release": "DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=24.04\nDISTRIB_CODENAME=noble\n",
    },
}
COLLECT = """
import json
from ansible.module_utils import basic
from ansible.module_utils.facts.system.distribution import DistributionFactCollector
from ansible.module_utils.testing import patch_module_args
with patch_module_args({}):
    module = basic.AnsibleModule({})
print(json.dumps(DistributionFactCollector().collect(module)))
"""


@pytest.mark.parametrize(
    "host, package",
    [
        ("rhel-9", "java-17-openjdk-headless"),
        ("rhel-10", "java-21-openjdk-headless"),
        ("amazon-2023", "java-17-amazon-corretto-headless"),
        ("ubuntu-24.04", "default-jre-headless"),
    ],
)
def test_packages_by_the_facts_that_ansible_reads_there(tmp_path, host, package):
    """Ansible's own facts, in a name space in which /etc is that of such a host."""
    for name, text in IDENTITY[host].items():
        (tmp_path / name).write_text(text)
    with_its_etc = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"]
    with_its_etc += ['mount --bind "$1" /etc; shift; exec "$@"', "_", str(tmp_path)]
    done = subprocess.run(
        [*with_its_etc, sys.executable, "-c", COLLECT], capture_output=True, text=True, check=False
    )
    if "unshare" in done.stderr:
        pytest.skip(f"no name space of one's own here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    found = evaluated("java", "__java_platform_packages", {"ansible_facts": facts})
    assert found == [package], facts


def test_nothing_else_depends_on_the_distribution():
    """So what is known of RHEL, Amazon Linux and Ubuntu is the package of Java, and nothing else has to be."""
    words = re.compile(
        r"(ansible_facts\.|ansible_facts\['|ansible_)(distribution|os_family|pkg_mgr|lsb)"
    )
    found = {
        str(path.relative_to(ROOT))
        for pattern in ("roles/*/*/*.yml", "roles/*/templates/*", "playbooks/**/*.yml")
        for path in ROOT.glob(pattern)
        if path.parts[-2] != "meta" and words.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"roles/java/tasks/install.yml", "roles/java/vars/main.yml"}


@pytest.mark.parametrize(
    "message, check_mode, chosen, failed",
    [
        ("No package matching 'openjdk-17-jre-headless' is available", True, [], False),
        ("No package matching 'openjdk-17-jre-headless' is available", True, ["x"], True),
        ("No package matching 'openjdk-17-jre-headless' is available", False, [], True),
        ("python3-apt must be installed to use check mode.", True, ["x"], False),
        ("Failed to lock apt for exclusive operation", True, [], True),
        ("E:Unmet dependencies", True, [], True),
    ],
)
def test_check_mode_forgives_what_it_could_not_do_itself(message, check_mode, chosen, failed):
    loader = DataLoader()
    path = ROOT / "roles/java/tasks/install.yml"
    tasks = loader.load_from_file(str(path), trusted_as_template=True)
    (task,) = [each for each in tasks if "ansible.builtin.apt" in each]
    variables = {
        "__java_outcome": {"failed": True, "msg": message},
        "ansible_check_mode": check_mode,
        "java_packages": chosen,
    }
    templar = Templar(loader=loader, variables=variables)
    assert templar.evaluate_conditional(task["failed_when"]) is failed


def test_packages_that_bring_no_java_are_refused_by_name():
    loader = DataLoader()
    path = ROOT / "roles/java/tasks/install.yml"
    task = loader.load_from_file(str(path), trusted_as_template=True)[-1]
    variables = {
        "inventory_hostname": "a",
        "java_packages": ["openjdk-8-jre-headless"],
        "java_minimum": 11,
        "java_maximum": 21,
        "__java_found": {"home": None, "seen": ["8 in /usr/lib/jvm/8"]},
        "ansible_check_mode": False,
    }
    templar = Templar(loader=loader, variables=variables)
    assert templar.evaluate_conditional(task["when"])
    told = templar.template(task["ansible.builtin.fail"]["msg"])
    assert told.startswith("[java.missing] a: java_packages=['openjdk-8-jre-headless']: they are")
    assert "found 8 in /usr/lib/jvm/8. Remedy: name packages in java_packages" in told

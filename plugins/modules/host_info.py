#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_info
short_description: Read what one host already is, without changing anything
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Reads the identities on a host's disks (C(meta.properties) of every Kafka log directory, C(myid) of ZooKeeper),
    who listens on which port, and the facts about directories, limits, memory, Java and name resolution
    that the preflight judges.
  - One call a host; needs Python 3.9 and nothing else. It never writes and binds no port. It starts a JVM only for
    C(java -version), to learn the version of a Java without a C(release) file and to try JVM options.
  - Without the right to read the data directories it says so instead of guessing that they are empty.
options:
  kafka:
    description: The broker instance that belongs to this inventory name, if any.
    type: dict
    suboptions:
      instance: &instance
        description: Name of the instance.
        type: str
        required: true
      config_dir:
        description: Its configuration directory; the generation in force is C(current) below it.
        type: path
        required: true
      properties:
        description: File name of the configuration.
        type: str
        default: server.properties
      started: &started
        description: File in which the launcher records process id and start time at every start.
        type: path
        required: true
      jvm_options: &jvm_options
        description: JVM options to try with the Java of the host; none are tried where it is empty.
        type: list
        elements: str
        default: []
      install_dir: &install_dir
        description: Directory below which releases of the product are installed; those that are whole are told.
        type: path
      account: &account
        description: Account of the service, to tell whether it exists and as what.
        type: str
      places: &places
        description: Further directories of the instance by name, to tell where they lead to and whom they let pass.
        type: dict
        default: {}
      taken_over: &taken_over
        description: What others have installed, as long as nothing of ours was ever started here.
        type: dict
        suboptions:
          config:
            description: Its configuration.
            type: path
            required: true
          version:
            description: Its version, such as C(3.9.2).
            type: str
            required: true
      log_dirs:
        description: The broker's log directories.
        type: list
        elements: path
        required: true
  zookeeper:
    description: The ZooKeeper instance that belongs to this inventory name, if any.
    type: dict
    suboptions:
      instance: *instance
      config_dir:
        description: Its configuration directory.
        type: path
        required: true
      properties:
        description: File name of the configuration.
        type: str
        default: zoo.cfg
      started: *started
      jvm_options: *jvm_options
      install_dir: *install_dir
      account: *account
      places: *places
      taken_over: *taken_over
      data_dir:
        description: The server's C(dataDir).
        type: path
        required: true
      data_log_dir:
        description: The server's C(dataLogDir).
        type: path
        required: true
  lock:
    description: The lock of the cluster on this host, to tell which run holds it.
    type: dict
    suboptions:
      directory:
        description: Directory of the locks.
        type: path
        required: true
      cluster:
        description: Name of the cluster.
        type: str
        required: true
      instances:
        description: Lock files of the instances that the cluster has on this host; who holds one under another name of the cluster counts.
        type: list
        elements: path
        default: []
  names:
    description: Host names to resolve from this host.
    type: list
    elements: str
    default: []
  packages:
    description: Python packages to look for, by the names that are imported.
    type: list
    elements: str
    default: []
  java_home:
    description: Java home that the inventory names; empty looks at E(JAVA_HOME) and E(PATH).
    type: str
    default: ""
  java_minimum:
    description: Oldest feature release of Java that will do.
    type: int
    default: 17
  java_maximum:
    description: Newest feature release of Java that will do.
    type: int
    default: 23
attributes:
  check_mode:
    description: It only reads, so check mode makes no difference.
    support: full
  diff_mode:
    description: Nothing changes.
    support: none
"""

EXAMPLES = r"""
- name: Read what the host already is
  kafkaops.cluster.host_info:
    kafka:
      instance: kafka
      config_dir: /etc/kafka
      started: /run/kafka/started.json
      log_dirs: [/var/lib/kafka/data]
    names: [kafka-1.example.com, kafka-2.example.com]
"""

RETURN = r"""
facts:
  description: What was found.
  returned: success
  type: dict
  sample:
    machine: {boot: 5c1f, network: 5c1f/4026531840, filesystem: "5c1f/2049:2"}
    clock: 1795256400.1
    user: 0
    memory_bytes: 25769803776
    limits: {open_files: 1048576, max_map_count: 262144}
    ephemeral_ports: {first: 32768, last: 60999, reserved: []}
    addresses: [127.0.0.1, 192.0.2.11]
    container: ""
    systemd: true
    firewall: {firewalld: running, nft: true, ours: [kafkaops-1f2e3d4c]}
    selinux: false
    java:
      home: /usr/lib/jvm/java-17-openjdk-amd64
      version: 17.0.17
      source: PATH
      seen: []
      place: {real_path: /usr/lib/jvm/java-17-openjdk-amd64, closed: [], own: {uid: 0, gid: 0, mode: "0755"}}
    kafka:
      instance: kafka
      config_dir: /etc/kafka
      release: kafka_2.13-3.9.2
      releases:
        - {path: /opt/kafka/releases/kafka_2.13-3.9.2, sha512: 3f1c...}
      account: {name: kafka, group: kafka, uid: 998, gids: [997]}
      places:
        config_dir: {real_path: /etc/kafka, closed: [], own: {uid: 0, gid: 997, mode: "0750"}}
      current: {broker.id: "1", log.dirs: /var/lib/kafka/data}
      answered: {broker.id: "1", log.dirs: /var/lib/kafka/data}
      staged: {broker.id: "1", log.dirs: /var/lib/kafka/data}
      started: {recorded: true, pid: 4711, alive: true, stale: false}
      log_dirs:
        - path: /var/lib/kafka/data
          exists: true
          partitions: 52
          foreign: []
          free_bytes: 107374182400
          mount_point: /var/lib/kafka
          disk: "8:17"
          meta: {broker.id: "1", cluster.id: wJ9ZqC3bT1mC4ZlYb3dM2g, version: "0"}
          meta_broken: ""
      other_log_dirs: []
    zookeeper: null
    lock: null
    lock_of_disks: null
    marks: []
    ports:
      - {port: 9092, address: "::", pid: 4711, command: /usr/bin/java, ours: true}
    missing_packages: []
    names:
      kafka-1.example.com: {addresses: [192.0.2.11], error: null}
"""


from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.host_facts import (
    ARGUMENTS,
    host_facts,
)


def main() -> None:
    """Read, return."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    module.exit_json(changed=False, facts=host_facts(module.params))


if __name__ == "__main__":
    main()

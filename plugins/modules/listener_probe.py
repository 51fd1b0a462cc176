#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: listener_probe
short_description: See from a client's host whether brokers can be reached
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Connects from the host to the address that clients of a listener are told for each broker. Checks that the name resolves, that the port
    answers, that the certificate is for that name, that the login is accepted, that it is the right cluster and the right broker, and that the
    broker tells clients this very address.
  - Needs no Kafka client on the host, and changes nothing.
  - Which broker answers is only known with the right C(DescribeConfigs) on the cluster; without it that one check is left out.
options:
  host:
    description: What to call this host in messages.
    type: str
    required: true
  targets:
    description: The addresses to try.
    type: list
    elements: dict
    required: true
    suboptions:
      listener:
        description: Name of the listener.
        type: str
        required: true
      protocol:
        description: Its security protocol.
        type: str
        choices: [PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL]
        required: true
      broker:
        description: Id of the broker that should answer.
        type: int
        required: true
      name:
        description: Name of the broker's host in the inventory.
        type: str
        required: true
      host:
        description: Host name or address that clients are told.
        type: str
        required: true
      port:
        description: Port that clients are told.
        type: int
        required: true
      audience:
        description: Audiences whose clients use the listener.
        type: list
        elements: str
        default: []
      others:
        description: The other listeners of this broker, as a mapping of the name to C(host:port) that clients are told. So a port mapping that leads
          to one of them is told as such.
        type: dict
        default: {}
  login:
    description: How to log in, as C(kafka_client_security).
    type: dict
    default: {}
    suboptions:
      sasl_mechanism:
        description: Mechanism, where the listener wants SASL. By default V(PLAIN).
        type: str
        choices: [PLAIN, SCRAM-SHA-256, SCRAM-SHA-512]
      sasl_username:
        description: Name of the user.
        type: str
      sasl_password:
        description: The password.
        type: str
      ssl_ca:
        description: Certificate of the authority, as PEM text or as a path on this host. By default those that the system trusts.
        type: str
      ssl_certificate:
        description: Certificate of the client, as PEM text or as a path on this host.
        type: str
      ssl_key:
        description: Its private key, as PEM text or as a path on this host.
        type: str
      ssl_key_password:
        description: The password of the key.
        type: str
      ssl_check_hostname:
        description: Whether the certificate has to be for the name that clients are told.
        type: bool
        default: true
  cluster_id:
    description: Id of the cluster that should answer; empty if it is not known.
    type: str
    default: ""
  timeout:
    description: Seconds that no step may exceed.
    type: float
    default: 10
attributes:
  check_mode:
    description: It changes nothing anyway.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
seealso:
  - module: kafkaops.cluster.kafka_cluster_info
"""

EXAMPLES = r"""
- name: See whether this host reaches a broker
  kafkaops.cluster.listener_probe:
    host: "{{ inventory_hostname }}"
    targets:
      - {listener: CLIENTS, protocol: PLAINTEXT, broker: 1, name: kafka-1, host: kafka1.example.org, port: 9092}
  register: probe
  failed_when: probe.problems | length > 0
"""

RETURN = r"""
tried:
  description: How many addresses were tried.
  returned: always
  type: int
  sample: 3
problems:
  description: What is wrong, one sentence each, with listener, broker, address and what was seen instead.
  returned: always
  type: list
  elements: str
  sample:
    - "[reach.broker] app-1: listener CLIENTS of kafka-1=127.0.0.1:9092: broker 2 answers, not broker 1. Remedy: correct the port mapping, or `advertised`."
unknown:
  description: Brokers whose identity could not be asked, for want of the right C(DescribeConfigs).
  returned: always
  type: list
  elements: int
  sample: []
"""

from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.wire import Seen, look
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.seen_from import (
    Target,
    problems,
)

PROTOCOLS = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
TARGET = dict(
    listener=dict(type="str", required=True),
    protocol=dict(type="str", required=True, choices=PROTOCOLS),
    broker=dict(type="int", required=True),
    name=dict(type="str", required=True),
    host=dict(type="str", required=True),
    port=dict(type="int", required=True),
    audience=dict(type="list", elements="str", default=[]),
    others=dict(type="dict", default={}),
)
LOGIN = dict(
    sasl_mechanism=dict(type="str", choices=["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]),
    sasl_username=dict(type="str"),
    sasl_password=dict(type="str", no_log=True),
    ssl_ca=dict(type="str"),
    ssl_certificate=dict(type="str"),
    ssl_key=dict(type="str", no_log=True),
    ssl_key_password=dict(type="str", no_log=True),
    ssl_check_hostname=dict(type="bool", default=True),
)
ARGUMENTS = dict(
    host=dict(type="str", required=True),
    targets=dict(type="list", elements="dict", required=True, options=TARGET),
    login=dict(type="dict", default={}, options=LOGIN),
    cluster_id=dict(type="str", default=""),
    timeout=dict(type="float", default=10),
)


def main() -> None:
    """Look at all targets at once, judge, return."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    given = module.params
    wanted = [Target(**each) for each in given["targets"]]

    def one(target: Target) -> Seen:
        return look(
            *(target.host, target.port, target.broker, target.protocol),
            *(given["login"], given["timeout"]),
        )

    with ThreadPoolExecutor(max(1, min(16, len(wanted)))) as pool:
        seen = list(zip(wanted, pool.map(one, wanted)))
    unknown = {each.broker for each, what in seen if not what.failed and what.answered_by is None}
    module.exit_json(
        changed=False,
        tried=len(wanted),
        problems=[each.line() for each in problems(given["host"], seen, given["cluster_id"])],
        unknown=sorted(unknown),
    )


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_users
short_description: Create users with passwords (SCRAM), change and delete them
version_added: 0.1.0
description:
  - Brings SCRAM credentials to a declared state through the brokers of a running cluster, with or without ZooKeeper.
  - Kafka never tells what a stored credential was made from. So with O(update_password=always) the module logs in
    with each declared password, and writes only what is refused. Where no login can be tried, it says so and
    changes nothing.
  - Everything is planned first. If one user is refused, nothing at all is changed.
options:
  users:
    description: The users. A user may be in several items, with a mechanism in one of them.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the user, without C(User:). A text; what YAML reads as something else is refused.
        type: raw
        required: true
      password:
        description:
          - The password, for V(present). A text; what YAML reads as something else, such as V(0123), is refused.
          - It is never shown, neither in results nor in diffs.
        type: raw
      mechanisms:
        description:
          - Mechanisms by which the user logs in with this password. By default V(SCRAM-SHA-512).
          - Credentials by a mechanism that is not named are left alone, with a warning.
          - With O(users[].state=absent), those that are removed; by default all.
        type: list
        elements: str
        choices: [SCRAM-SHA-256, SCRAM-SHA-512]
      iterations:
        description:
          - How often the password is hashed, 4096 to 16384. More makes guessing from a stolen hash, and each login, slower.
          - By default 4096 for a new credential, and an existing one is left alone.
          - Another number than the stored one makes the credential anew, unless O(update_password=on_create).
        type: int
      update_password:
        description: As O(update_password), for this user.
        type: str
        choices: [always, on_create]
      state:
        description: Whether there shall be such credentials.
        type: str
        choices: [present, absent]
        default: present
  update_password:
    description:
      - V(always), a stored credential is made to fit the declared password. Whether it does is found out by a login, at
        O(login) or where the module itself logs in.
      - V(on_create), a stored credential is left alone, whatever it was made from.
    type: str
    choices: [always, on_create]
    default: always
  login:
    description:
      - A listener at which passwords are tried, if the connection is not one by SASL. The listener must offer the
        mechanisms.
      - By default the addresses of the connection. Certificates are those of the connection, too.
    type: dict
    suboptions:
      bootstrap_servers:
        description: Its addresses, C(host:port).
        type: list
        elements: str
        required: true
      security_protocol:
        description: By default V(SASL_SSL) if the connection is encrypted, else V(SASL_PLAINTEXT).
        type: str
        choices: [SASL_PLAINTEXT, SASL_SSL]
      ssl_ca:
        description: Certificates to trust, a path or PEM text, if they are others than O(ssl_ca).
        type: str
  allow:
    description:
      - Consents. V(lockout), to remove the very credential by which the module is logged in.
    type: list
    elements: str
    choices: [lockout]
    default: []
  operation_timeout:
    description: Seconds from the first change until the new passwords are accepted; at most a day.
    type: float
    default: 60.0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.attributes
  - kafkaops.cluster.attributes.actiongroup_kafka
attributes:
  check_mode:
    support: full
    details: Logins are tried in check mode, too. A refused one is a line in the brokers' log.
  diff_mode:
    support: full
    details: Says whose password changes, and neither the old nor the new one.
  idempotent:
    support: full
notes:
  - Needs confluent-kafka and kafka-python, and the rights to Describe and Alter on the cluster.
  - A login takes a connection of its own, eight are made at once.
  - Sessions that are open when a password changes stay open, unless brokers set C(connections.max.reauth.ms).
  - Passwords of PLAIN are in the brokers' configuration and not in the cluster.
seealso:
  - module: kafkaops.cluster.kafka_acls
  - module: kafkaops.cluster.kafka_scram_credentials
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Users whose passwords are always those of the vault
  kafkaops.cluster.kafka_users:
    bootstrap_servers: kafka-1:9093
    security_protocol: SASL_SSL
    sasl_mechanism: SCRAM-SHA-512
    sasl_username: admin
    sasl_password: "{{ vault_kafka_admin_password }}"
    ssl_ca: /etc/kafkaops/ca.pem
    users:
      - name: billing
        password: "{{ vault_billing_password }}"
      - name: shop
        password: "{{ vault_shop_password }}"
        mechanisms: [SCRAM-SHA-256, SCRAM-SHA-512]
      - name: retired
        state: absent

- name: Without a login, try passwords at the listener of the clients
  kafkaops.cluster.kafka_users:
    bootstrap_servers: kafka-1:9092
    login:
      bootstrap_servers: kafka-1:9093
    users:
      - name: billing
        password: "{{ vault_billing_password }}"

- name: Create a user, who will change the password
  kafkaops.cluster.kafka_users:
    bootstrap_servers: kafka-1:9092
    update_password: on_create
    users:
      - name: billing
        password: "{{ first_password }}"
"""

RETURN = r"""
plan:
  description: The changes, one for each user and mechanism, and the refusals.
  returned: when the cluster was reached
  type: dict
  sample:
    changes:
      - kind: create
        subject: billing SCRAM-SHA-512
        before: {}
        after: {iterations: 4096, password: the declared one}
        note: ""
      - kind: change
        subject: shop SCRAM-SHA-512
        before: {password: another one}
        after: {password: the declared one}
        note: ""
    refusals: []
diff:
  description: The credentials that change, before and after, without any password.
  returned: when the cluster was reached
  type: dict
  sample:
    before:
      shop SCRAM-SHA-512: {password: another one}
    after:
      shop SCRAM-SHA-512: {password: the declared one}
users:
  description: The declared users that have a credential after the run, or would in check mode.
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    name:
      description: Name of the user.
      type: str
    iterations:
      description: Iterations of each of its credentials, by mechanism; those that are not declared included.
      type: dict
  sample:
    - name: billing
      iterations: {SCRAM-SHA-512: 4096}
failed_items:
  description: Credentials that the cluster refused, or whose password was not accepted within O(operation_timeout).
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    name:
      description: The user and the mechanism.
      type: str
    error:
      description: The broker's own words.
      type: str
    kind:
      description: The change that failed, or C(unsettled).
      type: str
    code:
      description: The protocol's name of the broker's error code; empty where no broker answered.
      type: str
  sample: []
cluster_id:
  description: Id of the cluster.
  returned: when the cluster was reached
  type: str
  sample: HJApaBPOSuOLtHWS0snxMA
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.client import UserClient
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.resource import (
    USER_OPTIONS,
    Users,
)


def main() -> None:
    """Entry point."""
    run_resource(
        USER_OPTIONS,
        lambda connection, module: Users(UserClient(connection), module.params),
    )


if __name__ == "__main__":
    main()

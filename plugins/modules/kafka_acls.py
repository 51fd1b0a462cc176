#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_acls
short_description: Grant and take away rights (ACLs)
version_added: 0.1.0
description:
  - Brings the access rights of a cluster to a declared state in one call, with a number of requests that does
    not grow with the number of rights (one for 500).
  - One item is one or more ACLs of Kafka, written out for each of its principals, hosts, resources and
    operations. O(acls[].grant) is the shorthand for what a consumer or a producer needs.
  - Everything is planned first. The plan is what check mode returns, what diff mode shows, and what
    is done. If one item is refused, nothing at all is changed. What is added comes before what is removed.
  - ACLs that no item names are left alone, unless O(purge) asks for them.
options:
  acls:
    description:
      - The rights. The same ACL must not be written twice; what two grants have in common is not a duplicate.
      - One of the resources must be named, C(topic), C(group), C(cluster), C(transactional_id),
        C(delegation_token) or C(user).
    type: list
    elements: dict
    required: true
    suboptions:
      topic:
        description:
          - Name of a topic, or a list of names. V(*) is every topic.
          - With O(acls[].pattern=prefixed), what the names begin with.
        type: raw
      group:
        description: Name of a consumer group, or a list of names, as for O(acls[].topic).
        type: raw
      cluster:
        description: The cluster itself.
        type: bool
      transactional_id:
        description: A transactional id, or a list of them, as for O(acls[].topic).
        type: raw
      delegation_token:
        description: Id of a delegation token, or a list of them.
        type: raw
      user:
        description: The user for whom tokens may be made or shown, such as V(User:app), or a list.
        type: raw
      principal:
        description:
          - Whose right it is, V(User:name), or a list. A name without a type is a user. V(User:*) is everybody.
          - A name by certificate is written as brokers see it, V(User:CN=app,O=Example).
        type: raw
        required: true
      host:
        description:
          - Address of the client's host, or a list. Kafka compares addresses one by one, and knows no networks
            and no names.
          - V(*), the default, is any host.
        type: raw
      pattern:
        description: Whether names are meant as they are, or what begins with them.
        type: str
        choices: [literal, prefixed]
        default: literal
      operations:
        description:
          - What may be done, or may not, one or more.
          - On a topic C(read), C(write), C(create), C(describe), C(delete), C(alter), C(describe_configs) and
            C(alter_configs).
          - On a group C(read), C(describe), C(delete), C(describe_configs) and C(alter_configs).
          - On the cluster C(create), C(cluster_action), C(describe), C(alter), C(describe_configs),
            C(alter_configs) and C(idempotent_write).
          - On a transactional id C(describe), C(write) and C(two_phase_commit).
          - On a delegation token C(describe), for a user C(create_tokens) and C(describe_tokens).
          - C(all) is all of them. Kafka's own spelling, such as V(DescribeConfigs), is accepted, too.
        type: raw
      grant:
        description:
          - What a consumer or a producer needs, as C(--consumer) and C(--producer) of C(kafka-acls.sh) add it.
            Instead of O(acls[].operations).
          - V(read) is C(read) and C(describe) on the topic, and C(read) on the group, if one is named.
          - V(write) is C(write), C(describe) and C(create) on the topic, and C(write) and C(describe) on the
            transactional id, if one is named.
          - O(acls[].pattern) is that of all names of the item.
        type: list
        elements: str
        choices: [read, write]
      idempotent:
        description:
          - With O(acls[].grant=write), C(idempotent_write) on the cluster, too. Since Kafka 3.0 producers do not
            need it.
        type: bool
      permission:
        description: Whether it is allowed or denied. What is denied is so although something else allows it.
        type: str
        choices: [allow, deny]
        default: allow
      state:
        description:
          - Whether there shall be such ACLs.
          - An ACL that another item wants stays when a grant is V(absent), such as the C(read) on a group that
            is granted with two topics.
        type: str
        choices: [present, absent]
        default: present
  allow:
    description:
      - Consent to changes that take or give rights that nobody has written down.
      - V(lockout), what may take from the user that runs this module its own right to change ACLs, by removing
        the last one that allows it or by adding one that denies it.
      - V(first_acl), the first ACL of a resource while O(allow_everyone_if_no_acl_found=true). Everybody who is
        not named loses the resource at once.
      - V(last_acl), the removal of the last ACL of a resource while O(allow_everyone_if_no_acl_found=true).
        Then everybody may do everything with it.
    type: list
    elements: str
    choices: [first_acl, last_acl, lockout]
    default: []
  purge:
    description:
      - Remove ACLs that are not declared, where principal and resource both match. At least one of
        O(purge.principals) and O(purge.resources) is needed.
    type: dict
    suboptions:
      principals:
        description: Regular expressions; one must match the whole principal, such as V(User:team-a-.*).
        type: list
        elements: str
      resources:
        description:
          - Regular expressions; one must match the whole of type and name, such as V(topic:team-a\\..*) or
            V(cluster:kafka-cluster). The pattern of the ACL, literal or prefixed, does not matter.
        type: list
        elements: str
      maximum:
        description: If more ACLs than this would be removed, nothing at all is changed.
        type: int
        required: true
  allow_everyone_if_no_acl_found:
    description:
      - What the brokers have as C(allow.everyone.if.no.acl.found). With V(true) a resource without any ACL is open
        to all.
      - Brokers tell whether it is set and hide the value. Without this option, a change that it would matter
        for is made with a warning where it is set, and where the user may not see settings.
    type: bool
  own_principal:
    description:
      - The user that runs this module, as brokers see it.
      - By default C(User:) and O(sasl_username), or C(User:ANONYMOUS) without a login. It cannot be known for a
        client certificate or a token; then every user counts as this one when O(allow) is asked for V(lockout).
    type: str
  operation_timeout:
    description:
      - Seconds from the first change until every live broker knows all of them; at most a day.
      - In ZooKeeper mode brokers write one ACL after another, some tens in a second to some hundreds. What was not sent in time is
        named in RV(failed_items), and another run of the task goes on from there. A broker that has not answered by then and is
        still at work is watched until it rests, so that what it did is told.
    type: float
    default: 300.0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.attributes
  - kafkaops.cluster.attributes.actiongroup_kafka
attributes:
  check_mode:
    support: full
    details: Kafka has no request that only validates ACLs. The user's right to change them is looked up.
  diff_mode:
    support: full
  idempotent:
    support: full
notes:
  - Needs confluent-kafka and kafka-python, and the rights to Describe and Alter on the cluster. Without
    DescribeConfigs on the cluster it is unknown whether C(allow.everyone.if.no.acl.found) is set.
  - C(changed) leaves out what somebody else has done between plan and write. Kafka does not tell it of a change that
    two writers make within the same moment; then both may count it as theirs.
seealso:
  - module: kafkaops.cluster.kafka_acls_info
  - module: kafkaops.cluster.kafka_users
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Let a team use what is its own, and one service read orders
  kafkaops.cluster.kafka_acls:
    bootstrap_servers: kafka-1:9092
    acls:
      - principal: User:team-a
        grant: [read, write]
        topic: team-a.
        group: team-a.
        pattern: prefixed
      - principal: User:billing
        grant: read
        topic: orders
        group: billing
      - principal: User:monitoring
        cluster: true
        operations: [describe, describe_configs]

- name: Nobody may delete orders, whatever else is allowed
  kafkaops.cluster.kafka_acls:
    bootstrap_servers: kafka-1:9092
    acls:
      - principal: User:*
        topic: orders
        operations: delete
        permission: deny

- name: Team A has these rights on its topics, and no others
  kafkaops.cluster.kafka_acls:
    bootstrap_servers: kafka-1:9092
    acls:
      - principal: User:team-a
        grant: read
        topic: team-a.
        pattern: prefixed
    purge:
      principals: ['User:team-a.*']
      resources: ['topic:.*']
      maximum: 10
"""

RETURN = r"""
plan:
  description: The changes, one for each ACL, and the refusals.
  returned: when the cluster was reached
  type: dict
  contains:
    changes:
      description: What is added, then what is removed. The same in check mode and in a real run.
      type: list
      elements: dict
    refusals:
      description: What is refused. If there is one, nothing at all was changed.
      type: list
      elements: dict
  sample:
    changes:
      - kind: create
        subject: allow User:billing read topic orders
        before: {}
        after:
          resource_type: topic
          resource_name: orders
          pattern: literal
          principal: User:billing
          permission: allow
          operation: read
          host: "*"
        note: ""
    refusals: []
diff:
  description: The ACLs that change, before and after.
  returned: when the cluster was reached
  type: dict
  sample:
    before: {}
    after:
      allow User:billing read topic orders:
        resource_type: topic
        resource_name: orders
        pattern: literal
        principal: User:billing
        permission: allow
        operation: read
        host: "*"
acls:
  description:
    - The declared ACLs that there are after the run, or would be in check mode, in the form of O(acls).
  returned: when the cluster was reached
  type: list
  elements: dict
  sample:
    - topic: orders
      principal: User:billing
      host: "*"
      permission: allow
      operations: [describe, read]
failed_items:
  description: ACLs that the cluster refused, or that not every broker showed within O(operation_timeout).
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    name:
      description: The ACL, in words.
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

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.client import AclClient
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.resource import (
    ACL_OPTIONS,
    Acls,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_resource


def main() -> None:
    """Entry point."""
    run_resource(
        ACL_OPTIONS,
        lambda connection, module: Acls(AclClient(connection), module.params),
    )


if __name__ == "__main__":
    main()

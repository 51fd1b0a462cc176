# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# The work is done by the action plugin of the same name; this file documents it.
from __future__ import annotations

DOCUMENTATION = r"""
module: preflight
short_description: Check the whole inventory before the first change
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Reads settings and facts of every member, wherever C(--limit) draws its line, and judges them together.
  - Every finding has a stable id, a level, the hosts concerned and a remedy. Any error fails the task, with
    all findings in the message. C(docs/preflight.md) lists the checks.
  - Use the role P(kafkaops.cluster.preflight#role), which runs both phases in the right order.
options:
  phase:
    description:
      - V(collect) runs on every host (delegated for those outside C(--limit)), reads its settings with the roles'
        defaults, and runs P(kafkaops.cluster.host_info#module) on it.
      - V(judge) runs once, on the host that may ask the running cluster, and needs the results of V(collect)
        registered as C(kafkaops_preflight_collected) and C(kafkaops_preflight_hidden).
      - V(command) judges nothing but the variables given with C(-e), and contacts no host. It is for playbooks that act
        without the other two, as C(stop).
    type: str
    choices: [collect, judge, command]
    required: true
  host:
    description: With V(collect), the inventory name to collect; the task has to be delegated to it.
    type: str
  accept:
    description:
      - Ids of checks whose errors become warnings. Contradictions between hosts (duplicate ids, shared directories,
        a foreign cluster id) are never accepted.
    type: list
    elements: str
    default: []
  enforce:
    description:
      - Whether errors fail the task. If not, they are only shown, for playbooks that look and change nothing.
      - Only an enforced preflight writes C(preflight.json) beside the cluster's other results, and not in check mode.
    type: bool
    default: true
  leave_absent:
    description: Whether hosts that do not answer are only warned about.
    type: bool
    default: false
  purpose:
    description:
      - What the run is for.
      - With V(deploy) the versions of the inventory have to be those that run, or were installed last.
      - With V(keep), for playbooks that change no version, other ones are only warned about.
      - With V(start), what was in effect is started, so that a mistake in what the inventory would write (listeners,
        configuration, topics, versions and the like) is only warned about, and a host whose own disks, ports or Java are
        not in order is left out.
      - With V(state), for playbooks that only talk to running brokers, whoever has installed them, only what is declared of
        the cluster's state is judged, and how brokers are reached.
      - With V(fetch), which only fills the controller's cache, no host is contacted in either phase, no report is written,
        and what is not fetched is only warned about.
      - With V(upgrade) and V(rollback) the way from what runs to the inventory's versions is checked.
    type: str
    choices: [deploy, keep, state, start, upgrade, rollback, fetch]
    default: deploy
  replaced:
    description:
      - Id of a broker whose log directories may be empty, because its host or its disks were replaced. It counts only
        while no broker of this id is registered.
    type: str
    default: ""
  resize:
    description: Whether the list of an ensemble's servers may change, one server a step, as in C(scale_zookeeper).
    type: bool
    default: false
  quorum:
    description:
      - Whether the controllers of a cluster in KRaft mode are to be those that vote (V(keep)), or may be others, as in
        C(scale_controllers) (V(change)), or are to become voters of a dynamic quorum, as in C(dynamic_quorum) (V(dynamic)).
      - With V(migrate) the cluster has its metadata in ZooKeeper still, and controllers take them over, as in C(migrate_to_kraft).
    type: str
    choices: [keep, change, dynamic, migrate]
    default: keep
  topics:
    description:
      - Whether the run brings C(kafka_topics) into effect. Then, with O(purpose=deploy), they are planned against the
        topics that exist, and what that plan refuses is told.
    type: bool
    default: true
  leaving:
    description: With O(resize), the hosts of the inventory whose ZooKeeper servers leave; with O(quorum=change), whose controllers do.
    type: list
    elements: str
    default: []
  fit_for:
    description:
      - What the run is fit for beside clusters that have their metadata in ZooKeeper. Of C(kraft), clusters in KRaft mode, and C(migration), clusters
        on their way there, those are refused that are not named.
    type: list
    elements: str
    choices: [kraft, migration]
    default: [kraft]
attributes:
  check_mode:
    description: It only reads, so check mode makes no difference but for the report.
    support: full
  diff_mode:
    description: Nothing changes.
    support: none
"""

EXAMPLES = r"""
- name: Check the whole inventory
  ansible.builtin.include_role:
    name: kafkaops.cluster.preflight
"""

RETURN = r"""
findings:
  description: All findings, errors first.
  returned: with phase judge
  type: list
  elements: dict
  sample:
    - check: identity.duplicate_broker_id
      level: error
      hosts: [kafka-2, kafka-3]
      variable: kafka_broker_id
      value: "2"
      reason: 2 brokers of cluster local have this id
      remedy: give each broker an id of its own, or leave kafka_broker_id out
      line: "[identity.duplicate_broker_id] kafka-2, kafka-3: kafka_broker_id=2: ..."
ids:
  description: Identities by inventory name, null where the host has no such part, or does not answer and nothing else tells its id.
  returned: with phase judge
  type: dict
  sample: {kafka-1: {broker_id: 1, myid: null}, zookeeper-1: {broker_id: null, myid: 1}}
left:
  description:
    - By inventory name, why the host is left out. With the purpose V(start), hosts whose own disks, ports or Java are not in
      order end nothing for the others.
  returned: with phase judge
  type: dict
  sample: {}
unwritten:
  description: The known identities that the inventory does not give, as variables of their hosts. The role sets them as facts.
  returned: with phase judge
  type: list
  elements: dict
  sample: [{host: kafka-1, variable: kafka_broker_id, value: 1}]
groups:
  description:
    - By inventory name, the groups that later plays work on. The role makes them.
  returned: with phase judge
  type: dict
  sample: {kafka-1: [kafkaops_run, kafkaops_members, kafkaops_kafka, kafkaops_first]}
brokers:
  description: Brokers by cluster, sorted by id.
  returned: with phase judge
  type: dict
  sample:
    local:
      - host: kafka-1
        id: 1
        listeners: [{name: LOCAL, port: 9092, protocol: PLAINTEXT, bind: 127.0.0.1, advertised: 127.0.0.1, audience: [brokers, clients]}]
disks:
  description:
    - By cluster, the disks of the brokers' log directories, where that is known. C(disk) is equal for two exactly if they share the room of
      one file system.
  returned: with phase judge
  type: dict
  sample:
    local:
      - {broker: 1, path: /srv/disk1, disk: "5c1f/8:17"}
      - {broker: 1, path: /srv/disk2, disk: "5c1f/8:33"}
servers:
  description: ZooKeeper servers by cluster, sorted by id.
  returned: with phase judge
  type: dict
  sample:
    local: [{host: zookeeper-1, id: 1, version: 3.9.5, address: 127.0.0.1, client_port: 2181, peer_port: 2888, election_port: 3888}]
leaving:
  description: Servers that leave, by cluster, as RV(servers), which has those that stay; no cluster without O(resize).
  returned: with phase judge
  type: dict
  sample: {}
ensembles_in_effect:
  description: By cluster, the ensemble as it ran last, by the files of its servers. The inventory may be ahead of it.
  returned: with phase judge
  type: dict
  contains:
    servers:
      description: Dicts of C(host) (empty where the inventory has none of that id), C(id), C(address) and C(client_port).
      type: list
      elements: dict
    lists:
      description: Lists of ids, two where a change was left half way.
      type: list
      elements: list
ensembles:
  description: Per cluster whether its ensemble is C(new), C(existing), C(unknown) or C(none), which members hold data, and which have never started.
  returned: with phase judge
  type: dict
  sample: {local: {state: new, members: {zookeeper-1: false}}}
running:
  description: Inventory names whose instance runs, by product.
  returned: with phase judge
  type: dict
  sample: {kafka: [kafka-1], zookeeper: [zookeeper-1]}
products:
  description: Distinct products and versions that the inventory needs.
  returned: with phase judge
  type: list
  elements: dict
  sample: [{product: kafka, version: 3.9.2, scala_version: "2.13"}]
asked:
  description: The arguments O(enforce), O(leave_absent), O(leaving), O(purpose), O(quorum), O(replaced), O(resize) and O(topics), for a second look.
  returned: with phase judge
  type: dict
  sample: {enforce: true, leave_absent: false, leaving: [], purpose: deploy, quorum: keep, replaced: "", resize: false, topics: true}
controllers:
  description: Id of the controller of each cluster that could be asked.
  returned: with phase judge
  type: dict
  sample: {local: 1}
in_sync:
  description: Ids of the brokers of each running cluster that are registered and have all their replicas in sync.
  returned: with phase judge
  type: dict
  sample: {local: [1, 2, 3]}
cluster_ids:
  description: Cluster id of each cluster that could be asked, else null.
  returned: with phase judge
  type: dict
  sample: {local: wJ9ZqC3bT1mC4ZlYb3dM2g}
cluster_first:
  description: First broker of each cluster that takes part in the run.
  returned: with phase judge
  type: dict
  sample: {local: kafka-1}
protocols:
  description: By broker, the C(inter.broker.protocol.version) that its configuration is to name, empty for none.
  returned: with phase judge
  type: dict
  sample: {kafka-1: "3.8", kafka-2: "3.8", kafka-3: "3.8"}
versions:
  description:
    - By cluster, in words, what is half done as to versions (C(state)), what this run is about to do about it (C(before)),
      and what holds when it has ended well (C(after)).
  returned: with phase judge
  type: dict
  sample:
    local:
      state: ["Mixed versions of Kafka: 3.8.1: kafka-2, kafka-3; 3.9.2: kafka-1."]
      before: ["Kafka 3.8.1 -> 3.9.2: kafka-2, kafka-3; one at a time."]
      after: ["Kafka: every member of this run runs 3.9.2."]
quorums:
  description: By broker, its part in the quorum of its cluster, null in ZooKeeper mode.
  returned: with phase judge
  type: dict
  sample: {kafka-1: null}
voters:
  description:
    - By cluster, the controllers that vote when the run has ended (C(stay)), and those that do not any more (C(leave)), with the id of the directory that
      each had before the run. C(brokers_leave) has the ids of the brokers among those that leave. All are empty in ZooKeeper mode.
  returned: with phase judge
  type: dict
  sample: {local: {stay: [], leave: []}}
storage:
  description: By cluster, the cluster id and the first voters by which nodes are formatted, null in ZooKeeper mode.
  returned: with phase judge
  type: dict
  sample: {local: null}
in_effect:
  description:
    - Where the brokers of each cluster are to be asked now, by the configuration that each has in force. Differs from
      the inventory's addresses while a listener is being changed.
  returned: with phase judge
  type: dict
  sample: {local: ["127.0.0.1:9092", "127.0.0.1:9093", "127.0.0.1:9094"]}
listened:
  description: By cluster, the ports where its instances listen now, and the hosts without one so far that have to reach them.
  returned: with phase judge
  type: dict
  sample:
    local: [{host: kafka-1, what: listener INTERNAL, bind: "", port: 9091, address: 192.0.2.21, callers: [nodes], newcomers: [kafka-4]}]
listening:
  description: By cluster, the ports of what does not run yet, and who connects there.
  returned: with phase judge
  type: dict
  sample:
    local: [{host: kafka-1, what: listener LOCAL, bind: 127.0.0.1, port: 9092, address: 127.0.0.1, callers: [nodes, clients]}]
report:
  description: Path of preflight.json by cluster.
  returned: with phase judge, where it was written
  type: dict
  sample: {local: /home/me/.local/share/kafkaops/reports/local/preflight.json}
"""

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrong inventories, each with exactly what the preflight has to say about it.

`spoil` is laid over the good inventory (null removes); `facts` over the hosts' facts, by path;
`snapshot` is what a running cluster says; `expect` the whole verdict: check id -> hosts.
"""

from __future__ import annotations

import pytest
import yaml

from tests.unit.plugins.module_utils import preflight_inventory as ground

BROKERS = ["kafka-1", "kafka-2", "kafka-3"]
SERVERS = ["zookeeper-1", "zookeeper-2", "zookeeper-3"]
TABLE = r"""
# ------------------------------------------------------------------ identity
two brokers with one id:
  spoil: &two_ids
    all: {children: {kafka: {hosts: {kafka-2: {kafka_broker_id: 2}, kafka-3: {kafka_broker_id: 2}}}}}
  expect: {identity.duplicate_broker_id: [kafka-2, kafka-3]}
an id in the inventory that another broker has on its disk:
  spoil: {all: {children: {kafka: {hosts: {kafka-2: {kafka_broker_id: 7}}}}}}
  facts: {kafka-1: {kafka/log_dirs/0/meta: {broker.id: "7", cluster.id: AAAA}}}
  expect: {identity.duplicate_broker_id: [kafka-1, kafka-2]}
two servers with one myid:
  spoil: {all: {children: {zookeeper: {hosts: {zookeeper-1: {zookeeper_myid: 1}, zookeeper-3: {zookeeper_myid: 1}}}}}}
  expect: {identity.duplicate_myid: [zookeeper-1, zookeeper-3]}
an id that is not the one on the disk:
  spoil: {all: {children: {kafka: {hosts: {kafka-2: {kafka_broker_id: 5}}}}}}
  facts: {kafka-2: {kafka/log_dirs/0/meta: {broker.id: "4", cluster.id: AAAA}}}
  expect: {identity.contradicts_disk: [kafka-2]}
two disks of two brokers in one host:
  spoil: {all: {children: {kafka: {vars: {kafka_log_dirs: [/srv/a, /srv/b]}}}}}
  facts:
    kafka-3:
      kafka/log_dirs/0/meta: {broker.id: "3", cluster.id: AAAA}
      kafka/log_dirs/1/meta: {broker.id: "9", cluster.id: AAAA}
  expect: {identity.contradicts_disk: [kafka-3]}
a myid that is not the one on the disk:
  spoil: {all: {children: {zookeeper: {hosts: {zookeeper-2: {zookeeper_myid: 2}}}}}}
  facts: {zookeeper-2: {zookeeper/data/myid: "5"}}
  expect: {identity.contradicts_disk: [zookeeper-2]}
a disk of another cluster:
  facts:
    kafka-1: {kafka/log_dirs/0/meta: {broker.id: "1", cluster.id: AAAA}}
    kafka-2: {kafka/log_dirs/0/meta: {broker.id: "2", cluster.id: AAAA}}
    kafka-3: {kafka/log_dirs/0/meta: {broker.id: "3", cluster.id: BBBB}}
  expect: {identity.foreign_cluster: [kafka-3]}
a disk of another cluster than the one that runs:
  facts: {kafka-1: {kafka/log_dirs/0/meta: {broker.id: "1", cluster.id: BBBB}}}
  snapshot: {cluster_id: AAAA}
  expect: {identity.foreign_cluster: [kafka-1]}
a myid above 255:
  spoil: {all: {children: {zookeeper: {hosts: {zookeeper-1: {zookeeper_myid: 256}}}}}}
  expect: {identity.out_of_range: [zookeeper-1]}
a myid of zero:
  spoil: {all: {children: {zookeeper: {hosts: {zookeeper-1: {zookeeper_myid: 0}}}}}}
  expect: {identity.out_of_range: [zookeeper-1]}
a negative broker id:
  spoil: {all: {children: {kafka: {hosts: {kafka-1: {kafka_broker_id: -1}}}}}}
  expect: {identity.out_of_range: [kafka-1]}
a broker id that is no number:
  spoil: {all: {children: {kafka: {hosts: {kafka-1: {kafka_broker_id: first}}}}}}
  expect: {identity.out_of_range: [kafka-1]}
a myid file with rubbish in it:
  facts: {zookeeper-1: {zookeeper/data/myid: "one"}}
  expect: {identity.out_of_range: [zookeeper-1]}
a newcomer with the id of a registered broker:
  spoil: {all: {children: {kafka: {hosts: {kafka-3: {kafka_broker_id: 1}, kafka-1: {kafka_broker_id: 3}}}}}}
  facts: {kafka-1: {kafka/log_dirs/0/meta: {broker.id: "3", cluster.id: AAAA}}}
  snapshot: {cluster_id: AAAA, brokers: {1: [[elsewhere.example.com, 9092]]}}
  expect: {identity.registered_elsewhere: [kafka-3]}
a registered broker that the inventory lacks:
  snapshot: {cluster_id: AAAA, brokers: {9: [[gone.example.com, 9092]]}}
  expect: {identity.missing_broker: &brokers [kafka-1, kafka-2, kafka-3]}
a dead broker that still holds replicas:
  snapshot: {cluster_id: AAAA, replicas: [8]}
  expect: {identity.missing_broker: *brokers}
directories that this user may not read:
  facts: {kafka-2: {kafka/log_dirs/0/readable: false, user: 1000}}
  expect: {host.unreadable: [kafka-2]}
# ------------------------------------------------------------------ the inventory
no servers at all:
  spoil: {all: {children: {zookeeper: null}}}
  expect: {ensemble.size: *brokers}
no brokers at all:
  spoil: {all: {children: {kafka: null}}}
  expect: {inventory.empty_group: &servers [zookeeper-1, zookeeper-2, zookeeper-3]}
a host that is called like a group:
  spoil: {all: {children: {racks: {hosts: {kafka-1: {}}}, kafka-2: {hosts: {kafka-3: {}}}}}}
  expect: {inventory.group_name: [kafka-2]}
a host out of reach:
  raw: {kafka-2: {facts: null, unreachable: it cannot be reached}}
  expect: {host.unreachable: [kafka-2]}
a hidden member without an id:
  raw: {kafka-2: {facts: null, unreachable: it was not asked, in_play: false}}
  expect: {limit.hidden_member: [kafka-2]}
two instances with one name on one machine:
  spoil: {all: {children: {kafka: {hosts: {kafka-2: {kafka_log_dirs: [/srv/two], kafka_listeners: [{name: INTERNAL, port: 9093, advertised: kafka-1.example.com}], kafka_state_dir: /run/b, kafka_config_dir: /etc/b}}}}}}
  facts: &one_machine
    kafka-1: {machine: {network: one, filesystem: one}}
    kafka-2: {machine: {network: one, filesystem: one}}
  expect: {inventory.instance_collision: [kafka-1, kafka-2]}
a cluster name with a slash:
  spoil: {all: {vars: {kafka_cluster_name: orders/prod}}}
  expect: {cluster.name: &everybody [kafka-1, kafka-2, kafka-3, zookeeper-1, zookeeper-2, zookeeper-3]}
a chroot without its slash:
  spoil: {all: {children: {kafka: {vars: {kafka_zookeeper_chroot: kafka}}}}}
  expect: {cluster.chroot: *brokers}
a chroot with a slash at its end:
  spoil: {all: {children: {kafka: {vars: {kafka_zookeeper_chroot: /kafka/}}}}}
  expect: {cluster.chroot: *brokers}
another chroot on one host:
  spoil: {all: {children: {kafka: {hosts: {kafka-2: {kafka_zookeeper_chroot: /other}}}}}}
  expect: {cluster.chroot: [kafka-2]}
another version on one host:
  spoil: {all: {children: {kafka: {hosts: {kafka-2: {kafka_version: "3.8.1"}}}}}}
  expect: {settings.not_uniform: [kafka-2]}
a variable that cannot be evaluated:
  spoil: {all: {children: {kafka: {vars: {kafka_heap: "{{ nobody_defines_this }}"}}}}}
  expect: {settings.undefined: *brokers}
a misspelt variable:
  spoil: {all: {children: {kafka: {vars: {kafka_listener: []}}}}}
  expect: {settings.unknown_variable: *brokers}
# ------------------------------------------------------------------ wrong types
a text where a list belongs:
  spoil: {all: {children: {kafka: {vars: {kafka_log_dirs: /srv/kafka}}}}}
  expect: {settings.bad_value: *brokers}
a relative directory:
  spoil: {all: {children: {kafka: {vars: {kafka_log_dirs: [data]}}}}}
  expect: {settings.bad_value: *brokers}
a heap with a unit of its own:
  spoil: {all: {children: {kafka: {vars: {kafka_heap: 6 GB}}}}}
  expect: {settings.bad_value: *brokers}
a list where a mapping belongs:
  spoil: {all: {children: {kafka: {vars: {kafka_config: [num.partitions]}}}}}
  expect: {settings.bad_value: *brokers}
a mapping where a list belongs:
  spoil: {all: {children: {kafka: {vars: {"=kafka_topics": {orders: 12}}}}}}
  expect: {settings.bad_value: *brokers}
an unknown service manager:
  spoil: {all: {vars: {jvm_service_manager: sysvinit}}}
  expect: {settings.bad_value: *everybody}
an unknown profile:
  spoil: {all: {vars: {kafkaops_profile: prod}}}
  expect: {settings.bad_value: *everybody}
a client port of 70000:
  spoil: {all: {children: {zookeeper: {vars: {zookeeper_client_port: 70000}}}}}
  expect: {settings.bad_value: *servers}
# ------------------------------------------------------------------ the ensemble
two servers:
  spoil: {all: {children: {zookeeper: {hosts: {zookeeper-3: null}}}}}
  expect: {ensemble.size: [zookeeper-1, zookeeper-2]}
one server in production:
  spoil: {all: {children: {zookeeper: {hosts: {zookeeper-2: null, zookeeper-3: null}}}}}
  expect: {ensemble.single: [zookeeper-1]}
a majority would start empty:
  facts: {zookeeper-2: {zookeeper/data/has_data: true}}
  expect: {ensemble.empty_majority: [zookeeper-1, zookeeper-3]}
a session timeout outside the ticks:
  spoil: {all: {children: {zookeeper: {vars: {zookeeper_config: {tickTime: 500}}}}}}
  expect: {ensemble.session_timeout: *servers}
two servers with one address:
  spoil: {all: {children: {zookeeper: {hosts: {zookeeper-2: {ansible_host: 192.0.2.11}}}}}}
  expect: {ensemble.duplicate_address: [zookeeper-1, zookeeper-2]}
a server whose name does not resolve:
  spoil: {all: {children: {zookeeper: {hosts: {zookeeper-2: {ansible_host: zk.example.invalid}}}}}}
  facts: {kafka-1: {names/zk.example.invalid: &unknown {addresses: [], error: Name or service not known}}}
  expect: {ensemble.unresolvable: [zookeeper-2]}
# ------------------------------------------------------------------ listeners and ports
an advertised name that does not resolve:
  facts: {kafka-1: {names/kafka-3.example.com: *unknown}}
  expect: {listeners.unresolvable: [kafka-3]}
a name that means the machine itself elsewhere:
  facts: {kafka-1: {names/kafka-3.example.com: {addresses: [127.0.1.1], error: null}}}
  expect: {listeners.loopback: [kafka-3]}
localhost announced to other machines:
  spoil: {all: {children: {kafka: {vars: {kafka_listeners: [{name: INTERNAL, port: 9092, advertised: localhost}]}}}}}
  facts: {all: {names/localhost: {addresses: [127.0.0.1], error: null}}}
  expect: {listeners.loopback: *brokers, listeners.duplicate: *brokers}
the wildcard announced:
  spoil: {all: {children: {kafka: {hosts: {kafka-1: {kafka_listeners: [{name: INTERNAL, port: 9092, advertised: 0.0.0.0}]}}}}}}
  expect: {listeners.loopback: [kafka-1]}
two brokers that announce one address:
  spoil: {all: {children: {kafka: {hosts: {kafka-2: {kafka_address: kafka-1.example.com}}}}}}
  expect: {listeners.duplicate: [kafka-1, kafka-2]}
one port for two listeners:
  spoil: {all: {children: {kafka: {vars: {kafka_listeners: [{name: INTERNAL, port: 9092, advertised: "{{ kafka_address }}"}, {name: EXTERNAL, port: 9092, advertised: "outside-{{ inventory_hostname }}.example.com"}]}}}}}
  expect: {listeners.duplicate: *brokers}
one name for two listeners:
  spoil: {all: {children: {kafka: {vars: {kafka_listeners: [{name: INTERNAL, port: 9092, advertised: "{{ kafka_address }}"}, {name: INTERNAL, port: 29092, advertised: "outside-{{ inventory_hostname }}.example.com"}]}}}}}
  expect: {listeners.duplicate: *brokers}
a broker without the listener that the others have:
  spoil: {all: {children: {kafka: {vars: {kafka_listeners: [{name: INTERNAL, port: 9092, advertised: "{{ kafka_address }}"}, {name: EXTERNAL, port: 29092, advertised: "{{ kafka_address }}"}]}, hosts: {kafka-2: {kafka_listeners: [{name: INTERNAL, port: 9092, advertised: "{{ kafka_address }}"}]}}}}}}
  expect: {listeners.mismatch: [kafka-2]}
an unknown key of a listener:
  spoil: {all: {children: {kafka: {vars: {kafka_listeners: [{name: INTERNAL, port: 9092, advertized: h, advertised: "{{ kafka_address }}"}]}}}}}
  expect: {listeners.bad_value: *brokers}
an unknown protocol:
  spoil: {all: {children: {kafka: {vars: {kafka_listeners: [{name: INTERNAL, port: 9092, protocol: TLS, advertised: "{{ kafka_address }}"}]}}}}}
  expect: {listeners.bad_value: *brokers}
a port of zero:
  spoil: {all: {children: {kafka: {vars: {kafka_listeners: [{name: INTERNAL, port: 0, advertised: "{{ kafka_address }}"}]}}}}}
  expect: {listeners.bad_value: *brokers}
a listener without a name:
  spoil: {all: {children: {kafka: {vars: {kafka_listeners: [{port: 9092, advertised: "{{ kafka_address }}"}]}}}}}
  expect: {listeners.bad_value: *brokers}
no listener at all:
  spoil: {all: {children: {kafka: {vars: {kafka_listeners: []}}}}}
  expect: {listeners.bad_value: *brokers}
a URL where a host belongs:
  spoil: {all: {children: {kafka: {vars: {kafka_listeners: [{name: INTERNAL, port: 9092, advertised: "http://{{ kafka_address }}"}]}}}}}
  expect: {addresses.form: *brokers}
a port in the address:
  spoil: {all: {children: {zookeeper: {hosts: {zookeeper-2: {zookeeper_address: "192.0.2.12:2181"}}}}}}
  expect: {addresses.form: [zookeeper-2]}
a registry given as host and port:
  spoil: {all: {children: {kafka: {vars: {kafka_config: {rsm.config.schema.registry.url: "registry:8081"}}}}}}
  expect: {addresses.form: *brokers, config.plugin_key: *brokers}
brokers given as a URL:
  spoil: {all: {children: {kafka: {vars: {kafka_config: {rlmm.config.bootstrap.servers: "http://kafka-1:9092"}}}}}}
  expect: {addresses.form: *brokers, config.plugin_key: *brokers}
an inter-broker listener that does not exist:
  spoil: {all: {children: {kafka: {vars: {kafka_inter_broker_listener: INSIDE}}}}}
  expect: {listeners.inter_broker: *brokers}
SASL without a mechanism:
  spoil: {all: {children: {kafka: {vars: {kafka_listeners: [{name: INTERNAL, port: 9092, protocol: SASL_PLAINTEXT, advertised: "{{ kafka_address }}"}]}}}}}
  expect: {listeners.security: *brokers}
SSL without certificates:
  spoil: {all: {children: {kafka: {vars: {kafka_listeners: [{name: INTERNAL, port: 9092, protocol: SSL, advertised: "{{ kafka_address }}"}]}}}}}
  expect: {listeners.security: *brokers}
an authorizer that turns the brokers away:
  spoil: {all: {children: {kafka: {vars: {kafka_authorizer: true, kafka_super_users: [admin]}}}}}
  expect: {security.super_users: *brokers}
a port that somebody else holds:
  facts: {kafka-2: {ports: [{port: 9092, address: "0.0.0.0", pid: 77, command: "nc -l 9092", ours: false}]}}
  expect: {ports.in_use: [kafka-2]}
an election port that somebody else holds:
  facts: {zookeeper-1: {ports: [{port: 3888, address: 192.0.2.11, pid: null, command: "", ours: false}]}}
  expect: {ports.in_use: [zookeeper-1]}
a broker's port that the machine's ZooKeeper wants:
  spoil: {all: {children: {kafka: {hosts: {kafka-1: {kafka_listeners: [{name: INTERNAL, port: 2181, advertised: kafka-1.example.com}]}}}}}}
  facts:
    kafka-1: {machine: {network: one, filesystem: one}}
    zookeeper-1: {machine: {network: one, filesystem: one}}
  expect: {ports.duplicate: [kafka-1, zookeeper-1]}
# ------------------------------------------------------------------ directories and hosts
one directory for two brokers:
  spoil: {all: {children: {kafka: {hosts: {kafka-2: {kafka_instance: two, kafka_log_dirs: [/var/lib/kafka/data], kafka_listeners: [{name: INTERNAL, port: 9093, advertised: kafka-1.example.com}]}}}}}}
  facts: *one_machine
  expect: {directories.shared: [kafka-1, kafka-2]}
one directory twice in one list:
  spoil: {all: {children: {kafka: {vars: {kafka_log_dirs: [/srv/a, /srv/a/]}}}}}
  expect: {directories.shared: *brokers}
a directory within another:
  spoil: {all: {children: {kafka: {vars: {kafka_log_dirs: [/srv/a, /srv/a/b]}}}}}
  expect: {directories.shared: *brokers}
two names of one directory:
  spoil: {all: {children: {kafka: {vars: {kafka_log_dirs: [/srv/a, /srv/b]}}}}}
  facts: {kafka-1: {kafka/log_dirs/0/identity: "8:1", kafka/log_dirs/1/identity: "8:1"}}
  expect: {directories.shared: [kafka-1]}
data under tmp in production:
  spoil: {all: {children: {kafka: {vars: {kafka_log_dirs: [/tmp/kafka-logs]}}}}}
  expect: {directories.temporary: *brokers}
ZooKeeper's data under tmp by a link:
  facts: {zookeeper-1: {zookeeper/data/data_dir/real_path: /var/tmp/zk}}
  expect: {directories.temporary: [zookeeper-1]}
a log directory that would be dropped with its data:
  facts: {kafka-1: {kafka/other_log_dirs: [{path: /srv/old, partitions: 12, topics: [orders], readable: true, meta: {broker.id: "1"}}]}}
  expect: {directories.dropped: [kafka-1]}
a file where a directory belongs:
  facts: {kafka-1: {kafka/log_dirs/0/is_file: true}}
  expect: {directories.not_a_directory: [kafka-1]}
world-writable data:
  facts: {kafka-1: {kafka/log_dirs/0/world_writable: true, kafka/log_dirs/0/mode: "0777"}}
  expect: {directories.world_writable: [kafka-1]}
a disk that is not mounted:
  facts: {kafka-1: {kafka/log_dirs/0/mount_point: /}}
  expect: {directories.root_filesystem: [kafka-1]}
a full disk:
  facts: {kafka-2: {kafka/log_dirs/0/free_bytes: 1000000}}
  expect: {space.low: [kafka-2]}
topics that may outgrow the disks:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [{name: big, partitions: 100, retention_size: 10GiB}]}}}}}
  expect: {space.retention: *brokers}
too few open files:
  spoil: {all: {vars: {jvm_service_open_files: 500}}}
  expect: {host.open_files: *brokers}
too few memory maps:
  facts: {kafka-1: {limits/max_map_count: 100}}
  expect: {host.memory_maps: [kafka-1]}
a clock that is wrong:
  raw: {kafka-1: {clock_offset_seconds: 61.0}}
  expect: {host.clock: [kafka-1]}
heaps that do not fit:
  spoil: {all: {children: {kafka: {vars: {kafka_heap: 30g}}}}}
  expect: {memory.heap: *brokers}
a stale process record:
  facts: {kafka-1: {kafka/started: {recorded: true, pid: 4711, alive: false, stale: true}}}
  expect: {host.stale_pid: [kafka-1]}
a Java home without Java:
  spoil: {all: {children: {kafka: {hosts: {kafka-1: {java_home: /opt/none}}}}}}
  facts: {kafka-1: {java: {home: null, version: null, source: null, seen: []}}}
  expect: {java.missing: [kafka-1]}
a Java home that is too old:
  spoil: {all: {children: {kafka: {hosts: {kafka-1: {java_home: /opt/java8}}}}}}
  facts: {kafka-1: {java: {home: null, version: null, source: null, seen: ["/opt/java8 (1.8.0_402)"]}}}
  expect: {java.version: [kafka-1]}
# ------------------------------------------------------------------ versions
a version that nobody knows:
  spoil: {all: {children: {kafka: {vars: {kafka_version: "3.7.9"}}}}}
  expect: {version.unknown: *brokers}
a version with two parts:
  spoil: {all: {children: {kafka: {vars: {kafka_version: "3.9"}}}}}
  expect: {version.unknown: *brokers}
a version that YAML made a number:
  spoil: {all: {children: {kafka: {vars: {kafka_version: 3.9}}}}}
  expect: {version.unknown: *brokers}
Kafka 4 with ZooKeeper:
  spoil: {all: {children: {kafka: {vars: {kafka_version: "4.3.1"}}}}}
  expect: {version.illegal_path: *brokers}
a downgrade:
  spoil: {all: {children: {kafka: {vars: {kafka_version: "3.8.1"}}}}}
  facts: {kafka-1: {kafka/release: kafka_2.13-3.9.2}}
  expect: {version.illegal_path: [kafka-1]}
an upgrade on the way:
  facts: {kafka-1: {kafka/release: kafka_2.13-3.8.1}}
  expect: {version.needs_upgrade: [kafka-1]}
an old ZooKeeper:
  spoil: {all: {children: {zookeeper: {vars: {zookeeper_version: "3.6.4"}}}}}
  expect: {version.unknown: *servers, version.illegal_path: *servers}
# ------------------------------------------------------------------ configuration
an unknown key:
  spoil: {all: {children: {kafka: {vars: {kafka_config: {num.partitons: 6}}}}}}
  expect: {config.unknown_key: *brokers}
an unknown key of one host:
  spoil: {all: {children: {kafka: {hosts: {kafka-2: {kafka_host_config: {log.retention.hour: 6}}}}}}}
  expect: {config.unknown_key: [kafka-2]}
a word for a number:
  spoil: {all: {children: {kafka: {vars: {kafka_config: {num.io.threads: many}}}}}}
  expect: {config.bad_value: *brokers}
a number below the range:
  spoil: {all: {children: {kafka: {vars: {kafka_config: {num.network.threads: 0}}}}}}
  expect: {config.bad_value: *brokers}
a unit that Kafka does not read:
  spoil: {all: {children: {kafka: {vars: {kafka_config: {log.segment.bytes: 1GiB}}}}}}
  expect: {config.bad_value: *brokers}
a word that is no choice:
  spoil: {all: {children: {kafka: {vars: {kafka_config: {compression.type: zip}}}}}}
  expect: {config.bad_value: *brokers}
a removed key:
  spoil: {all: {children: {kafka: {vars: {kafka_config: {port: 9092, host.name: kafka-1}}}}}}
  expect: {config.removed_key: *brokers}
a key that a variable sets:
  spoil: {all: {children: {kafka: {vars: {kafka_config: {log.dirs: /srv, broker.id: 3}}}}}}
  expect: {config.owned_key: *brokers}
a key of a plug-in:
  spoil: {all: {children: {kafka: {vars: {kafka_config: {client.quota.callback.static.produce: 5}}}}}}
  expect: {config.plugin_key: *brokers}
an unknown key of ZooKeeper:
  spoil: {all: {children: {zookeeper: {vars: {zookeeper_config: {tickTme: 2000}}}}}}
  expect: {config.unknown_key: *servers}
a server line by hand:
  spoil: {all: {children: {zookeeper: {vars: {zookeeper_config: {server.1: "a:1:2"}}}}}}
  expect: {config.owned_key: *servers}
a tick that is no number:
  spoil: {all: {children: {zookeeper: {vars: {zookeeper_config: {tickTime: two}}}}}}
  expect: {config.bad_value: *servers}
# ------------------------------------------------------------------ replication and topics
five replicas on three brokers:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [{name: orders, replication_factor: 5}]}}}}}
  expect: {replication.exceeds_brokers: *brokers}
five replicas by default:
  spoil: {all: {children: {kafka: {vars: {kafka_config: {default.replication.factor: 5}}}}}}
  expect: {replication.exceeds_brokers: *brokers}
internal topics with one copy:
  spoil: {all: {children: {kafka: {vars: {kafka_config: {offsets.topic.replication.factor: 1}}}}}}
  expect: {replication.internal: *brokers}
a minimum that no broker may leave:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [], kafka_config: {min.insync.replicas: 3}}}}}}
  expect: {replication.min_insync: *brokers}
a topic whose minimum is its factor:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [{name: orders, replication_factor: 2}]}}}}}
  expect: {replication.min_insync: *brokers}
unclean elections:
  spoil: {all: {children: {kafka: {vars: {kafka_config: {unclean.leader.election.enable: true}}}}}}
  expect: {replication.unclean: *brokers}
a topic with a blank in its name:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [{name: new orders}]}}}}}
  expect: {topics.bad_name: *brokers}
one topic twice:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [{name: orders}, {name: orders}]}}}}}
  expect: {topics.duplicate: *brokers}
a topic of Kafka's own:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [{name: __consumer_offsets}]}}}}}
  expect: {topics.protected: *brokers}
two topics that Kafka's metrics cannot tell apart:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [{name: a.b}, {name: a_b}]}}}}}
  expect: {topics.collision: *brokers}
a topic with an option of its own making:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [{name: orders, partition: 3}]}}}}}
  expect: {topics.unknown_option: *brokers}
a topic that says its retention twice:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [{name: orders, retention: 1d, config: {retention.ms: 1}}]}}}}}
  expect: {topics.contradiction: *brokers}
a topic that is no mapping:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [orders]}}}}}
  expect: {topics.bad_item: *brokers}
fewer than one partition:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [{name: orders, partitions: 0}]}}}}}
  expect: {topics.bad_value: *brokers}
a duration that means two things:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [{name: orders, retention: 7 month}]}}}}}
  expect: {config.bad_value: *brokers}
a setting that no topic has:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [{name: orders, config: {retention.mss: 1}}]}}}}}
  expect: {config.unknown_key: *brokers}
more partitions than ZooKeeper mode bears:
  spoil: {all: {children: {kafka: {vars: {kafka_topics: [{name: orders, partitions: 9000}]}}}}}
  expect: {topics.partitions: *brokers}
"""
CASES = {name: case for name, case in yaml.safe_load(TABLE).items() if "skip" not in case}


def said(verdict):
    """check id -> hosts, over all findings of a verdict."""
    told = {}
    for each in verdict.findings:
        told.setdefault(each.check, set()).update(each.hosts)
    return {check: sorted(hosts) for check, hosts in told.items()}


@pytest.mark.parametrize("name", CASES)
def test_wrong_inventory(name, tmp_path):
    case = CASES[name]
    verdict = ground.verdict_of(
        ground.merge(ground.good(), case.get("spoil")),
        tmp_path,
        facts=case.get("facts"),
        snapshot=_snapshot(case.get("snapshot")),
        raw=case.get("raw"),
    )
    lines = "\n".join(each.line() for each in verdict.findings)
    assert said(verdict) == case["expect"], lines


def _snapshot(written):
    if not written:
        return None
    brokers = {
        number: tuple(tuple(each) for each in endpoints)
        for number, endpoints in (written.get("brokers") or {}).items()
    }
    return dict(written, brokers=brokers, replicas=frozenset(written.get("replicas") or ()))


def test_the_good_inventory_has_no_findings(tmp_path):
    assert ground.verdict_of(ground.good(), tmp_path).findings == ()


def test_there_are_at_least_forty_wrong_inventories():
    assert len(CASES) >= 40

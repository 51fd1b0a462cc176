# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""What the preflight found: a value with a stable id, and the catalogue of all ids.

The catalogue is the one place that names a check: a finding with an id that is not in it cannot be
made, and docs/preflight.md is generated from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils._plan_identity import natural_key

ERROR = "error"
WARNING = "warning"
NOTE = "note"
LEVELS = (ERROR, WARNING, NOTE)
HIDDEN = "(hidden)"
SHOWN_VALUE_CHARACTERS = 160


@dataclass(frozen=True)
class Check:
    """One line of the catalogue: level by default, what is looked at, what to do."""

    id: str
    level: str
    what: str
    remedy: str


@dataclass(frozen=True)
class Finding:
    """One thing found. `hosts` are inventory names; `value` is already printable and no secret."""

    check: str
    level: str
    hosts: Tuple[str, ...]
    variable: str
    value: str
    reason: str
    remedy: str

    def line(self) -> str:
        """The finding in the contract's form, on one line."""
        text = "[%s] %s: %s=%s: %s. Remedy: %s" % (
            self.check,
            ", ".join(self.hosts),
            self.variable,
            self.value,
            self.reason.rstrip("."),
            self.remedy if self.remedy.endswith((".", "?", "`")) else self.remedy + ".",
        )
        return " ".join(text.split())

    def as_dict(self) -> Dict[str, Any]:
        """JSON form, as in preflight.json."""
        return {
            "check": self.check,
            "level": self.level,
            "hosts": list(self.hosts),
            "variable": self.variable,
            "value": self.value,
            "reason": self.reason,
            "remedy": self.remedy,
            "line": self.line(),
        }


def shown(value: Any) -> str:
    """A value as people write it in an inventory, cut where it is long."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif value is None:
        text = "null"
    elif isinstance(value, str):
        text = value if value else '""'
    elif isinstance(value, (list, tuple)):
        text = "[%s]" % ", ".join(shown(item) for item in value)
    elif isinstance(value, dict):
        text = "{%s}" % ", ".join("%s: %s" % (key, shown(value[key])) for key in value)
    else:
        text = str(value)
    text = " ".join(text.split())
    if len(text) > SHOWN_VALUE_CHARACTERS:
        text = text[: SHOWN_VALUE_CHARACTERS - 3] + "..."
    return text


def found(
    check: str,
    hosts: Any,
    variable: str,
    value: Any,
    reason: str,
    remedy: str = "",
    level: str = "",
) -> Finding:
    """A finding of a catalogued check; level and remedy default to the catalogue's.

    `hosts` is one name or several. Raises KeyError for an id that the catalogue lacks.
    """
    entry = CATALOGUE[check]
    names = (hosts,) if isinstance(hosts, str) else tuple(sorted(set(hosts), key=natural_key))
    return Finding(
        check=check,
        level=level or entry.level,
        hosts=names,
        variable=variable,
        value=shown(value),
        reason=reason,
        remedy=remedy or entry.remedy,
    )


def in_order(findings: Iterable[Finding]) -> List[Finding]:
    """Errors first, then by id and hosts; what is said twice is said once."""
    unique = dict.fromkeys(findings)
    return sorted(
        unique,
        key=lambda each: (
            LEVELS.index(each.level),
            each.check,
            [natural_key(host) for host in each.hosts],
            each.variable,
            each.value,
        ),
    )


def merged(findings: Sequence[Finding]) -> List[Finding]:
    """One finding for all hosts that share check, variable, value, reason and remedy.

    A mistake in group_vars concerns every host of the group; saying it once a host hides the rest.
    """
    groups: Dict[Tuple[str, ...], List[Finding]] = {}
    for each in findings:
        key = (each.check, each.level, each.variable, each.value, each.reason, each.remedy)
        groups.setdefault(key, []).append(each)
    result = []
    for key, members in groups.items():
        hosts = {host for member in members for host in member.hosts}
        result.append(
            Finding(
                check=key[0],
                level=key[1],
                hosts=tuple(sorted(hosts, key=natural_key)),
                variable=key[2],
                value=key[3],
                reason=key[4],
                remedy=key[5],
            )
        )
    return in_order(result)


_CHECKS = (
    # -- the inventory itself
    Check(
        "inventory.empty_group",
        ERROR,
        "The groups of brokers and of ZooKeeper servers exist and have hosts",
        "add hosts to the group, or name the right one in kafka_group and zookeeper_group",
    ),
    Check(
        "inventory.group_name",
        WARNING,
        "No inventory name is also the name of a group",
        "rename the host or the group: Ansible resolves the name to the group",
    ),
    Check(
        "inventory.instance_collision",
        ERROR,
        "Two instances on one machine have names, configuration and state directories of their own",
        "give each inventory name on the machine its own kafka_instance or zookeeper_instance",
    ),
    Check(
        "cluster.name",
        ERROR,
        "kafka_cluster_name consists of letters, digits, dot, underscore and hyphen",
        "use letters, digits, `.`, `_` and `-` only, for example `orders-prod`",
    ),
    Check(
        "cluster.chroot",
        ERROR,
        "kafka_zookeeper_chroot is an absolute path without a slash at its end, the same everywhere",
        "write it like /kafka, and set it once for the whole cluster",
    ),
    Check(
        "settings.undefined",
        ERROR,
        "Every variable of the collection can be evaluated for its host",
        "define what the expression needs, or write the value plainly",
    ),
    Check(
        "settings.bad_value",
        ERROR,
        "Every variable of the collection has the right type and a legal value",
        "see the variable's description: `ansible-doc -t role kafkaops.cluster.kafka`",
    ),
    Check(
        "settings.unknown_variable",
        WARNING,
        "No inventory variable looks like a misspelt variable of the collection",
        "correct the spelling, or choose another prefix for a variable of your own",
    ),
    Check(
        "settings.not_uniform",
        ERROR,
        "What concerns the cluster is the same on all of its hosts",
        "set it once, in group_vars",
    ),
    Check(
        "limit.hidden_member",
        ERROR,
        "A member outside --limit or out of reach has an id that is known without asking it",
        "make the host reachable, or set its id in the inventory",
    ),
    Check(
        "host.unreachable",
        ERROR,
        "Every host of the run answers",
        "bring it back, correct ansible_host, or leave it out with --limit",
    ),
    Check(
        "host.unreadable",
        ERROR,
        "The identities on a host's disks can be read",
        "run with become, or as the account that owns the directories",
    ),
    Check(
        "cluster.unreadable",
        WARNING,
        "A cluster that runs answers the questions of the preflight",
        "correct kafka_client_security and kafka_admin_listener; ids in use were not checked",
    ),
    # -- identity
    Check(
        "identity.duplicate_broker_id",
        ERROR,
        "No two brokers of a cluster have one id",
        "give each broker an id of its own, or leave kafka_broker_id out",
    ),
    Check(
        "identity.duplicate_myid",
        ERROR,
        "No two servers of an ensemble have one id",
        "give each server an id of its own, or leave zookeeper_myid out",
    ),
    Check(
        "identity.contradicts_disk",
        ERROR,
        "The id in the inventory is the one on the host's disks, and its disks agree",
        "set the id that is on the disk; a disk that belongs to another host goes back there",
    ),
    Check(
        "identity.registered_elsewhere",
        ERROR,
        "An id that a newcomer is given is not registered by another host",
        "choose an id that is free, or leave kafka_broker_id out",
    ),
    Check(
        "identity.foreign_cluster",
        ERROR,
        "The cluster id on every disk is that of this cluster",
        "connect the disk to the cluster it belongs to, or empty it if nobody needs the data",
    ),
    Check(
        "identity.out_of_range",
        ERROR,
        "Broker ids are 0 to 2147483647, ZooKeeper ids 1 to 255",
        "choose an id inside the range",
    ),
    Check(
        "identity.missing_broker",
        ERROR,
        "Every broker that is registered or holds replicas is in the inventory",
        "add the host to the inventory, or remove the broker with playbooks/scale_in.yml",
    ),
    # -- ensemble
    Check(
        "ensemble.size",
        ERROR,
        "The ensemble has one, three, five or seven servers",
        "use an odd number of servers: an even one tolerates no more failures than one fewer",
    ),
    Check(
        "ensemble.single",
        WARNING,
        "A production ensemble has at least three servers",
        "add servers, or set kafkaops_profile: development",
    ),
    Check(
        "ensemble.server_list",
        ERROR,
        "The running servers have the list of servers that the inventory gives",
        "change the ensemble one server a step with playbooks/scale_out.yml or scale_in.yml",
    ),
    Check(
        "ensemble.empty_majority",
        ERROR,
        "No majority of the ensemble would start empty while another member holds data",
        "restore the data of the empty servers, or bring them back one at a time",
    ),
    Check(
        "ensemble.duplicate_address",
        ERROR,
        "Every server of an ensemble has addresses and ports of its own",
        "give each server its own zookeeper_address, or its own three ports",
    ),
    Check(
        "ensemble.session_timeout",
        ERROR,
        "tickTime x 2 to tickTime x 20 contains Kafka's zookeeper.session.timeout.ms",
        "choose tickTime so that the timeout lies within 2 to 20 ticks; 2000 fits 18000",
    ),
    Check(
        "ensemble.unresolvable",
        ERROR,
        "The addresses of the ensemble resolve from its members and from the brokers",
        "correct zookeeper_address, or add the name to DNS or /etc/hosts of that host",
    ),
    # -- listeners and ports
    Check(
        "listeners.bad_value",
        ERROR,
        "kafka_listeners is a list of {name, port, protocol, bind, advertised, audience}",
        "write a listener as {name: INTERNAL, port: 9092, protocol: PLAINTEXT, advertised: HOST}",
    ),
    Check(
        "listeners.unresolvable",
        ERROR,
        "Every advertised name resolves where it is used",
        "correct the listener's `advertised`, or add the name to DNS or /etc/hosts of that host",
    ),
    Check(
        "listeners.loopback",
        ERROR,
        "No broker announces a loopback or wildcard address to other machines",
        "advertise a name or address that the other machines reach",
    ),
    Check(
        "listeners.bind",
        ERROR,
        "A listener is bound to an address of its host",
        "bind to an address that the host has, or to all of them by leaving `bind` out",
    ),
    Check(
        "listeners.duplicate",
        ERROR,
        "No two listeners announce one address, share a socket or have one name",
        "give each listener its own name, and its own port or address",
    ),
    Check(
        "listeners.inter_broker",
        ERROR,
        "The listeners that brokers and the controller host use exist",
        "name one of the listeners in kafka_inter_broker_listener and kafka_admin_listener",
    ),
    Check(
        "listeners.security",
        ERROR,
        "A listener's protocol has what it needs: a mechanism for SASL, a key store for SSL",
        "set kafka_sasl.mechanisms, or kafka_ssl.certificate, key and ca",
    ),
    Check(
        "listeners.mismatch",
        ERROR,
        "Every broker has the same listeners, by name and protocol",
        "give the broker the listener that it lacks",
    ),
    Check(
        "security.super_users",
        ERROR,
        "With an authorizer the brokers and somebody to administrate are super users",
        "name them in kafka_super_users",
    ),
    Check(
        "addresses.form",
        ERROR,
        "Addresses have the form they are used in: a host, host:port or an http URL",
        "write the address in the form that the message names",
    ),
    Check(
        "ports.in_use",
        ERROR,
        "Every wanted port is free, or held by the instance that wants it",
        "stop the process that listens there, or choose another port",
    ),
    Check(
        "ports.duplicate",
        ERROR,
        "No two instances on a machine want one port",
        "give each instance its own port",
    ),
    Check(
        "ports.ephemeral",
        WARNING,
        "No wanted port is one that the kernel may have lent to an outgoing connection",
        "choose a lower port, or add it to net.ipv4.ip_local_reserved_ports",
    ),
    # -- directories
    Check(
        "directories.shared",
        ERROR,
        "No data directory is used twice or lies within another",
        "give each instance directories of its own",
    ),
    Check(
        "directories.temporary",
        ERROR,
        "In production no data lies under /tmp or /var/tmp",
        "choose a directory on a disk that nobody cleans up, or set kafkaops_profile: development",
    ),
    Check(
        "directories.dropped",
        ERROR,
        "No log directory that holds partitions is left out of kafka_log_dirs",
        "put the directory back; empty it with a reassignment before dropping it",
    ),
    Check(
        "directories.not_a_directory",
        ERROR,
        "A data directory is a directory, if it exists",
        "remove the file, or choose another directory",
    ),
    Check(
        "directories.world_writable",
        WARNING,
        "Nobody else may write into a data directory",
        "chmod o-w; the role sets 0750 where it creates a directory",
    ),
    Check(
        "directories.root_filesystem",
        WARNING,
        "In production Kafka's data has a file system of its own",
        "mount a disk at the log directory: a full root file system takes the machine with it",
    ),
    Check(
        "space.low",
        ERROR,
        "In production every data directory has at least 1 GiB and 5 % free",
        "free some space, or add a disk",
    ),
    Check(
        "space.retention",
        WARNING,
        "What the topics may keep by size fits on the disks",
        "lower retention_size, or add disks or brokers",
    ),
    # -- host
    Check(
        "host.open_files",
        ERROR,
        "The limit of open files is above what the replicas need (in production 100,000)",
        "raise the hard limit of open files (jvm_service_open_files, limits.conf)",
    ),
    Check(
        "host.memory_maps",
        ERROR,
        "vm.max_map_count is above twice the replicas",
        "sysctl vm.max_map_count=262144",
    ),
    Check(
        "host.stale_pid",
        NOTE,
        "A recorded process is the one that runs",
        "nothing to do: process id and start time are compared, a leftover record is ignored",
    ),
    Check(
        "host.clock",
        WARNING,
        "The hosts' clocks agree within five seconds",
        "synchronise the clocks (chrony, ntpd)",
    ),
    Check(
        "memory.heap",
        WARNING,
        "The heaps on a machine leave memory to the page cache",
        "lower kafka_heap and zookeeper_heap to at most half of the memory together",
    ),
    Check(
        "java.missing",
        ERROR,
        "There is a Java where the inventory says so",
        "correct java_home, or let java_source provide one",
    ),
    Check(
        "java.version",
        ERROR,
        "Java is in the range that this Kafka supports",
        "use Java 17 or 21",
    ),
    Check(
        "java.spark",
        ERROR,
        "The controller has a Java that Spark runs on, where the flow is validated",
        "use Java 17 or 21 on the controller, or set flow_validation: never",
    ),
    # -- versions
    Check(
        "version.unknown",
        ERROR,
        "The versions are known to this release of the collection",
        "choose one of the versions named",
    ),
    Check(
        "version.illegal_path",
        ERROR,
        "No downgrade, no jump to 4.x from ZooKeeper mode, ZooKeeper 3.8.3 or newer for Kafka 3.9",
        "take the path that the message names",
    ),
    Check(
        "version.needs_upgrade",
        ERROR,
        "kafka_version is the running one; site.yml does not upgrade",
        "run playbooks/rolling_upgrade.yml",
    ),
    # -- replication and topics
    Check(
        "replication.exceeds_brokers",
        ERROR,
        "No replication factor is above the number of brokers",
        "lower the replication factor, or add brokers",
    ),
    Check(
        "replication.min_insync",
        ERROR,
        "min.insync.replicas is below the replication factor wherever that is above one",
        "set min.insync.replicas to the replication factor minus one",
    ),
    Check(
        "replication.internal",
        ERROR,
        "Kafka's own topics are replicated where three brokers exist",
        "use 3 (the default); with 1 the groups stop when that broker does",
    ),
    Check(
        "replication.unclean",
        WARNING,
        "No election may drop acknowledged records",
        "leave unclean.leader.election.enable at false",
    ),
    Check(
        "topics.bad_value",
        ERROR,
        "Every item of kafka_topics can be created as it stands",
        "see `ansible-doc kafkaops.cluster.kafka_topics`",
    ),
    Check(
        "topics.bad_item",
        ERROR,
        "Every item of kafka_topics is a mapping with a name",
        "write it like {name: orders, partitions: 12}",
    ),
    Check(
        "topics.unknown_option",
        ERROR,
        "Every option of a topic exists",
        "use the options that the message names",
    ),
    Check(
        "topics.bad_name",
        ERROR,
        "Every topic has a name that Kafka accepts",
        "use letters, digits, `.`, `_` and `-`, at most 249",
    ),
    Check(
        "topics.contradiction",
        ERROR,
        "No topic says one thing twice",
        "keep one of the two",
    ),
    Check(
        "topics.collision",
        ERROR,
        "No two topics differ only in `.` and `_`",
        "choose another name",
    ),
    Check(
        "topics.protected",
        ERROR,
        "No topic that holds the cluster's own state is declared",
        "leave it out of kafka_topics",
    ),
    Check(
        "topics.duplicate",
        ERROR,
        "No topic is declared twice",
        "keep one of the two",
    ),
    Check(
        "topics.partitions",
        WARNING,
        "Brokers lead at most 4,000 partitions each, the cluster 200,000 (ZooKeeper mode)",
        "use fewer partitions, or more brokers",
    ),
    # -- configuration keys
    Check(
        "config.unknown_key",
        ERROR,
        "Every key of kafka_config and zookeeper_config exists in this version",
        "correct the spelling; keys of plug-ins need their prefix in kafka_plugin_prefixes",
    ),
    Check(
        "config.bad_value",
        ERROR,
        "Every value of kafka_config and zookeeper_config is legal",
        "use a value of the type and range named",
    ),
    Check(
        "config.removed_key",
        ERROR,
        "No key was removed in this version",
        "use what took its place",
    ),
    Check(
        "config.owned_key",
        ERROR,
        "No key is set by hand that follows from a variable",
        "set the variable that the message names",
    ),
    Check(
        "config.plugin_key",
        NOTE,
        "Keys of plug-ins pass unchecked",
        "nothing to do, if the plug-in knows the key",
    ),
    Check(
        "config.deprecated_key",
        WARNING,
        "No key is deprecated",
        "use what the message names",
    ),
)

CATALOGUE: Dict[str, Check] = {check.id: check for check in _CHECKS}

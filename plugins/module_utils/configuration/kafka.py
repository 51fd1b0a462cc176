# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effective server.properties of one broker, as a pure function of its settings.

Computed settings come first, then `kafka_config`, then `kafka_host_config`. The preflight, the role
and the diff all call :func:`broker_properties`, so what is checked is what is written.

Private to the collection: names may change without notice.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.migration import (
    FLAG,
    IN_ZOOKEEPER,
    MIGRATING,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.protocol import (
    KEY as PROTOCOL_KEY,
)

# Keys that follow from structured variables. Setting one of them by hand would let the file disagree
# with what the preflight has checked; the value names the variable to use instead.
OWNED_KEYS = {
    "broker.id": "kafka_broker_id",
    "node.id": "kafka_broker_id",
    "broker.id.generation.enable": "kafka_broker_id",
    "listeners": "kafka_listeners",
    "advertised.listeners": "kafka_listeners",
    "listener.security.protocol.map": "kafka_listeners",
    "inter.broker.listener.name": "kafka_inter_broker_listener",
    "security.inter.broker.protocol": "kafka_inter_broker_listener",
    "log.dir": "kafka_log_dirs",
    "log.dirs": "kafka_log_dirs",
    # What is formatted, sandboxed, compared and removed are those.
    "metadata.log.dir": "kafka_log_dirs (the first one holds the metadata)",
    "zookeeper.connect": "kafka_zookeeper_chroot and the zookeeper group",
    "process.roles": "kafka_metadata and the groups of brokers and controllers",
    "controller.listener.names": "kafka_metadata",
    "controller.quorum.bootstrap.servers": "kafka_controller_port and the group of controllers",
    "controller.quorum.voters": "kafka_controller_port and the group of controllers",
    "broker.rack": "kafka_rack",
    "authorizer.class.name": "kafka_authorizer",
    "super.users": "kafka_super_users",
    "sasl.enabled.mechanisms": "kafka_sasl",
    "sasl.mechanism.inter.broker.protocol": "kafka_sasl",
    "ssl.keystore.type": "kafka_ssl",
    "ssl.keystore.location": "kafka_ssl",
    "ssl.truststore.type": "kafka_ssl",
    "ssl.truststore.location": "kafka_ssl",
    "ssl.client.auth": "kafka_ssl",
    "sasl.mechanism.controller.protocol": "kafka_sasl",
    FLAG: "playbooks/migrate_to_kraft.yml",
}

# Computed settings that only ZooKeeper mode has.
ZOOKEEPER_MODE_KEYS = (
    "broker.id",
    "broker.id.generation.enable",
    "zookeeper.connect",
    "zookeeper.session.timeout.ms",
)
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
AUTHORIZER_CLASS = "kafka.security.authorizer.AclAuthorizer"
# In KRaft mode.
STANDARD_AUTHORIZER_CLASS = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
# The listener of the controllers in KRaft mode. Brokers know it, and no client does.
CONTROLLER_LISTENER = "CONTROLLER"
# How nodes log in there: SCRAM users stand in the metadata, and without a quorum there are none.
CONTROLLER_MECHANISM = "PLAIN"
# (pattern, variable) of keys by which that listener alone would take another login, or none. Of the brokers' listeners
# people set such keys, for a mechanism or certificates of a listener's own; this one is the collection's.
OWNED_AT_CONTROLLERS = tuple(
    (rf"(?i)listener\.name\.{CONTROLLER_LISTENER}\.([^.]+\.)?{re.escape(key)}$", variable)
    for key, variable in (*OWNED_KEYS.items(), ("sasl.jaas.config", "kafka_sasl"))
    if variable in ("kafka_sasl", "kafka_ssl")
)
# With a heap of 512 MiB: a quarter of it would be the log cleaner's, and what requests wait in has no bound.
SMALL = {
    "num.network.threads": 2,
    "num.io.threads": 4,
    "num.recovery.threads.per.data.dir": 1,
    "log.cleaner.dedupe.buffer.size": 16 * 2**20,
    # Kafka takes no less than socket.request.max.bytes.
    "queued.max.request.bytes": 100 * 2**20,
}
# The key that makes a quorum a static one.
STATIC_VOTERS = "controller.quorum.voters"
# What Kafka's controllers read of their own file, to validate topic settings as well, and brokers do not.
DECIDED_BY_CONTROLLERS = (
    "alter.config.policy.class.name",
    "auto.leader.rebalance.enable",
    "broker.session.timeout.ms",
    "controller.quota.window.num",
    "controller.quota.window.size.seconds",
    "create.topic.policy.class.name",
    "default.replication.factor",
    "delegation.token.expiry.check.interval.ms",
    "delegation.token.expiry.time.ms",
    "delegation.token.max.lifetime.ms",
    "delete.topic.enable",
    "eligible.leader.replicas.enable",
    "leader.imbalance.check.interval.seconds",
    "metadata.max.idle.interval.ms",
    "min.insync.replicas",
    "num.partitions",
    "remote.log.storage.system.enable",
    "unclean.leader.election.enable",
)
# The secret of delegation tokens, which all nodes share, and its name in Kafka 3.
TOKEN_SECRETS = ("delegation.token.secret.key", "delegation.token.master.key")


def property_value(value: Any) -> str:
    """Return `value` as the product spells it: booleans in lower case, lists comma-joined."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(property_value(item) for item in value)
    if value is None:
        return ""
    return str(value)


def bootstrap_servers(
    members: Sequence[Sequence[Mapping[str, Any]]], listener: Optional[str] = None
) -> str:
    """Return the advertised endpoints of one listener over several brokers.

    `members` is a list of `kafka_listeners` lists, one a broker; `listener` is the name to use (default:
    the first one of each broker). Returns "host:port,host:port" in the order given.
    """
    endpoints = []
    for listeners in members:
        for item in listeners:
            if listener in (None, "", item["name"]):
                host = item.get("advertised") or item.get("bind")
                endpoints.append(endpoint(host, item["port"]))
                break
    return ",".join(endpoints)


def client_listeners(
    members: Sequence[Sequence[Mapping[str, Any]]],
    audiences: Sequence[str],
    admin_listener: str = "",
    security: Any = None,
    own: Any = None,
) -> List[Dict[str, Any]]:
    """Return the listeners that somebody of these audiences uses, besides the one that admins use.

    `members` is a list of `kafka_listeners` lists, one a broker, as the preflight completes them; an empty
    `admin_listener` is the first one of each broker. How to log in is `security` (see client_properties)
    with the listener's own protocol, and what `own` has for its name. Returns dicts of
    `name bootstrap_servers properties`.
    """
    found = {}
    for listeners in members:
        for place, item in enumerate(listeners):
            admins = item["name"] == admin_listener if admin_listener else place == 0
            if not admins and set(item["audience"]) & set(audiences):
                found.setdefault(item["name"], item["protocol"])
    return [
        {
            "name": name,
            "bootstrap_servers": bootstrap_servers(members, name),
            "properties": client_properties(
                {**(security or {}), "security_protocol": protocol, **((own or {}).get(name) or {})}
            ),
        }
        for name, protocol in found.items()
    ]


def zookeeper_connect(servers: Sequence[Mapping[str, Any]], chroot: str = "") -> str:
    """Return a connect string for `servers` (dicts with `address`, `client_port`, `id`), sorted by id."""
    ordered = sorted(servers, key=lambda server: int(server["id"]))
    hosts = ",".join(endpoint(server["address"], server["client_port"]) for server in ordered)
    return hosts + (chroot if chroot and chroot != "/" else "")


def shrink_to_fit(brokers: int) -> Tuple[int, int]:
    """Return replication factor and min.insync.replicas for a cluster of `brokers` brokers.

    Three replicas of which two must have a record is the production setting; with fewer brokers it
    shrinks so that one broker down does not stop the writers of a two-broker cluster.
    """
    replication = min(3, max(1, brokers))
    return replication, 2 if replication >= 3 else 1


def _jaas(text: Any) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _jaas_user(name: str) -> str:
    """The option of a user, quoted where Kafka's parser would end the word: user_bob, "user_bob x"."""
    option = f"user_{name}"
    return option if re.fullmatch(r"[A-Za-z0-9_.-]+", option) else _jaas(option)


def inner_mechanism(sasl: Mapping[str, Any]) -> str:
    """The mechanism by which a node with this `kafka_sasl` logs in at brokers; "" where it names none."""
    mechanisms = [str(item) for item in sasl.get("mechanisms") or []]
    return str(sasl.get("inter_broker_mechanism") or (mechanisms[0] if mechanisms else ""))


def _sasl_properties(
    listeners: Sequence[Mapping[str, Any]], sasl: Mapping[str, Any]
) -> Dict[str, Any]:
    mechanisms = [str(item) for item in sasl.get("mechanisms") or []]
    properties = {
        "sasl.enabled.mechanisms": ",".join(mechanisms),
        "sasl.mechanism.inter.broker.protocol": inner_mechanism(sasl),
    }
    user = sasl.get("inter_broker_user") or ""
    password = sasl.get("inter_broker_password") or ""
    for listener in listeners:
        if not str(listener.get("protocol", "")).startswith("SASL_"):
            continue
        for mechanism in mechanisms:
            key = f"listener.name.{listener['name'].lower()}.{mechanism.lower()}.sasl.jaas.config"
            if mechanism == "PLAIN":
                users = {user: password, **(sasl.get("users") or {})}
                properties[key] = _plain_jaas(user, password, users)
            else:
                module = _LOGIN_MODULES["SCRAM"]
                properties[key] = (
                    f"{module} required username={_jaas(user)} password={_jaas(password)};"
                )
    return properties


def _controller_login(
    protocol: str, sasl: Mapping[str, Any], super_users: Sequence[str] = ()
) -> Dict[str, Any]:
    """How nodes prove to the controllers who they are, as the controllers take it.

    Super users are known there, too: one after the other may become the nodes' own, and the one before may still be
    that of nodes that have not restarted. Who is none has no business there.
    """
    listener = f"listener.name.{CONTROLLER_LISTENER.lower()}"
    if protocol == "SSL":
        return {f"{listener}.ssl.client.auth": "required"}
    if not protocol.startswith("SASL_"):
        return {}
    user, password = sasl.get("inter_broker_user") or "", sasl.get("inter_broker_password") or ""
    mighty = {_principal(each) for each in super_users}
    others = {
        name: each for name, each in (sasl.get("users") or {}).items() if _principal(name) in mighty
    }
    return {
        "sasl.mechanism.controller.protocol": CONTROLLER_MECHANISM,
        f"{listener}.sasl.enabled.mechanisms": CONTROLLER_MECHANISM,
        f"{listener}.{CONTROLLER_MECHANISM.lower()}.sasl.jaas.config": _plain_jaas(
            user, password, {user: password, **others}
        ),
    }


def _principal(user: str) -> str:
    """A user as Kafka's authorizer names him: of a plain name, and of what has its kind already."""
    return user if ":" in user else f"User:{user}"


def _plain_jaas(user: str, password: str, users: Mapping[str, Any]) -> str:
    entries = "".join(f" {_jaas_user(name)}={_jaas(users[name])}" for name in sorted(users) if name)
    module = _LOGIN_MODULES["PLAIN"]
    return f"{module} required username={_jaas(user)} password={_jaas(password)}{entries};"


def _known_controllers(quorum: Mapping[str, Any]) -> Dict[str, Any]:
    """Where the controllers are, and in a static quorum who votes."""
    places = [endpoint(each["address"], each["port"]) for each in quorum["controllers"]]
    if not quorum.get("static"):
        return {"controller.quorum.bootstrap.servers": places}
    ids = [each["id"] for each in quorum["controllers"]]
    return {STATIC_VOTERS: [f"{node}@{place}" for node, place in zip(ids, places)]}


def _quorum_properties(
    node_id: Any,
    broker: Mapping[str, Any],
    quorum: Mapping[str, Any],
    sasl: Mapping[str, Any],
    super_users: Sequence[str],
) -> Dict[str, Any]:
    """Return what KRaft mode adds to or changes in the properties of a `broker`.

    A controller that is not a broker has its own listener only. `quorum`: dict of `roles` (list of broker,
    controller), `bind`, `address`, `port` and `protocol` of its controller listener, and `controllers`,
    the list of all controllers as dicts of `id address port`. The voters of a dynamic quorum stand in the
    metadata, where the format of the storage has put them; those of a static one (`static`) stand here.
    """
    protocol = quorum.get("protocol") or "PLAINTEXT"
    properties = {
        "process.roles": list(quorum["roles"]),
        "node.id": node_id,
        "controller.listener.names": CONTROLLER_LISTENER,
        **_known_controllers(quorum),
        "listener.security.protocol.map": [
            *broker["listener.security.protocol.map"],
            f"{CONTROLLER_LISTENER}:{protocol}",
        ],
        **_controller_login(protocol, sasl, super_users),
    }
    if "controller" in quorum["roles"]:
        beside = broker if "broker" in quorum["roles"] else {}
        # Of a static quorum the list of voters has the addresses, too; but with Kafka's own default, the host's name,
        # which others need not resolve, its voters would stand in the metadata once the quorum becomes a dynamic one.
        for key, host in (("listeners", "bind"), ("advertised.listeners", "address")):
            own = f"{CONTROLLER_LISTENER}://{endpoint(quorum[host] or '', quorum['port'])}"
            properties[key] = [*beside.get(key, ()), own]
    return properties


def _migrating_broker(
    broker: Mapping[str, Any],
    quorum: Mapping[str, Any],
    sasl: Mapping[str, Any],
    super_users: Sequence[str],
) -> Dict[str, Any]:
    """What a broker that has its metadata in ZooKeeper gets for the controllers to take them over."""
    protocol = quorum.get("protocol") or "PLAINTEXT"
    return {
        FLAG: True,
        "controller.listener.names": CONTROLLER_LISTENER,
        **_known_controllers(quorum),
        "listener.security.protocol.map": [
            *broker["listener.security.protocol.map"],
            f"{CONTROLLER_LISTENER}:{protocol}",
        ],
        **_controller_login(protocol, sasl, super_users),
    }


def _migrating_controller(
    zookeeper: str, inner: Mapping[str, Any], quorum: Mapping[str, Any]
) -> Dict[str, Any]:
    """What a controller gets to read ZooKeeper, and to speak to brokers that are still there.

    `inner`: `name` and `protocol` of the listener that the brokers use among themselves.
    """
    return {
        FLAG: True,
        "zookeeper.connect": zookeeper,
        "zookeeper.session.timeout.ms": 18000,
        "inter.broker.listener.name": inner["name"],
        "listener.security.protocol.map": [
            f"{inner['name']}:{inner.get('protocol') or 'PLAINTEXT'}",
            f"{CONTROLLER_LISTENER}:{quorum.get('protocol') or 'PLAINTEXT'}",
        ],
    }


def broker_properties(
    broker_id: Any,
    listeners: Sequence[Mapping[str, Any]],
    log_dirs: Sequence[str],
    zookeeper_connect: str,
    brokers: int,
    config_dir: str = "",
    rack: Optional[str] = None,
    inter_broker_listener: Optional[str] = None,
    ssl: Optional[Mapping[str, Any]] = None,
    sasl: Optional[Mapping[str, Any]] = None,
    authorizer: bool = False,
    super_users: Sequence[str] = (),
    protocol: str = "",
    quorum: Optional[Mapping[str, Any]] = None,
    small: bool = False,
    config: Optional[Mapping[str, Any]] = None,
    host_config: Optional[Mapping[str, Any]] = None,
    migration: Optional[Mapping[str, Any]] = None,
) -> Dict[str, str]:
    """Return the effective server.properties as a dict of strings.

    `listeners`: list of dicts `name port protocol bind advertised audience`; `log_dirs`: list of paths;
    `brokers`: number of brokers of the cluster; `config_dir`: the instance's configuration directory,
    where PEM files are found below `current`; `ssl`: dict `certificate key ca client_auth`; `sasl`: dict
    `mechanisms inter_broker_mechanism inter_broker_user inter_broker_password users`; `protocol`: the
    protocol version to pin (see configuration.protocol), "" for the release's own; `quorum`: in KRaft mode
    a dict `roles bind address port controllers` (see _quorum_properties), None in ZooKeeper mode; `small`:
    whether the host is, see SMALL; `migration`: while a cluster migrates a dict `phase inner`, how far this node
    is to be (see configuration.migration) and `name protocol` of the brokers' inter-broker listener. A broker that
    is not `kraft` yet needs the `protocol` then.
    The input must have passed the preflight: a missing key raises KeyError.
    """
    replication, min_isr = shrink_to_fit(brokers)
    names = [item["name"] for item in listeners]
    phase, whole_quorum = (migration or {}).get("phase", ""), quorum
    if phase in (IN_ZOOKEEPER, MIGRATING) and quorum and "broker" in quorum["roles"]:
        quorum = None
    properties = {
        "broker.id": broker_id,
        # An id that Kafka invents is an id that nobody wrote down.
        "broker.id.generation.enable": False,
        "listeners": [
            f"{item['name']}://{endpoint(item.get('bind') or '', item['port'])}"
            for item in listeners
        ],
        "advertised.listeners": [
            f"{item['name']}://{endpoint(item.get('advertised') or item.get('bind'), item['port'])}"
            for item in listeners
        ],
        "listener.security.protocol.map": [
            f"{item['name']}:{item.get('protocol') or 'PLAINTEXT'}" for item in listeners
        ],
        "inter.broker.listener.name": inter_broker_listener or names[0],
        "log.dirs": list(log_dirs),
        "zookeeper.connect": zookeeper_connect,
        "default.replication.factor": replication,
        "min.insync.replicas": min_isr,
        "offsets.topic.replication.factor": replication,
        "transaction.state.log.replication.factor": replication,
        "transaction.state.log.min.isr": min_isr,
        "unclean.leader.election.enable": False,
        "auto.create.topics.enable": False,
        "group.initial.rebalance.delay.ms": 3000,
        "num.recovery.threads.per.data.dir": 2,
        "log.retention.hours": 168,
        "zookeeper.session.timeout.ms": 18000,
        **(SMALL if small else {}),
    }
    if quorum:
        for key in ZOOKEEPER_MODE_KEYS:
            del properties[key]
        properties.update(
            _quorum_properties(broker_id, properties, quorum, sasl or {}, super_users or ())
        )
        if "broker" not in quorum["roles"]:
            # It is the name of a listener that a controller alone does not have.
            del properties["inter.broker.listener.name"]
    elif protocol:
        properties[PROTOCOL_KEY] = protocol
    if phase == MIGRATING and whole_quorum:
        if quorum:
            inner = (migration or {})["inner"]
            properties.update(_migrating_controller(zookeeper_connect, inner, quorum))
        else:
            properties.update(
                _migrating_broker(properties, whole_quorum, sasl or {}, super_users or ())
            )
    if rack:
        properties["broker.rack"] = rack
    if ssl:
        properties.update(
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": f"{config_dir}/current/keystore.pem",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": f"{config_dir}/current/truststore.pem",
                "ssl.client.auth": ssl.get("client_auth") or "none",
            }
        )
    if sasl:
        spoken: Sequence[Mapping[str, Any]] = listeners
        if quorum and "broker" not in quorum["roles"]:
            # To brokers that are still in ZooKeeper a controller goes itself, as one broker goes to another.
            spoken = [(migration or {})["inner"]] if phase == MIGRATING else []
        properties.update(_sasl_properties(spoken, sasl))
    if authorizer:
        properties["authorizer.class.name"] = (
            STANDARD_AUTHORIZER_CLASS if quorum else AUTHORIZER_CLASS
        )
        properties["super.users"] = ";".join(_principal(user) for user in super_users or ())
        properties["allow.everyone.if.no.acl.found"] = False
    properties.update(config or {})
    properties.update(host_config or {})
    return {key: property_value(properties[key]) for key in sorted(properties)}


def client_properties(security: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the client properties, as Kafka's own tools take them, for the modules' connection options.

    `security`: dict of `security_protocol sasl_mechanism sasl_username sasl_password ssl_ca
    ssl_certificate ssl_key ssl_key_password ssl_check_hostname` (certificates as PEM text or as paths).
    Empty for a plain connection. Certificate and key are both text, or one file: Kafka's Java client
    knows no file for a key alone.
    """
    found = {}
    if security.get("security_protocol"):
        found["security.protocol"] = security["security_protocol"]
    if security.get("sasl_mechanism"):
        mechanism = security["sasl_mechanism"]
        found["sasl.mechanism"] = mechanism
        found["sasl.jaas.config"] = (
            f"{_LOGIN_MODULES['PLAIN' if mechanism == 'PLAIN' else 'SCRAM']} "
            "required "
            f"username={_jaas(security.get('sasl_username') or '')} "
            f"password={_jaas(security.get('sasl_password') or '')};"
        )
    for option, store, text_key in (
        ("ssl_ca", "ssl.truststore", "ssl.truststore.certificates"),
        ("ssl_certificate", "ssl.keystore", "ssl.keystore.certificate.chain"),
    ):
        value = security.get(option)
        if not value:
            continue
        found[store + ".type"] = "PEM"
        found[text_key if "-----BEGIN" in value else store + ".location"] = value
    if "-----BEGIN" in (security.get("ssl_key") or ""):
        found["ssl.keystore.key"] = security["ssl_key"]
    if security.get("ssl_key_password"):
        found["ssl.key.password"] = security["ssl_key_password"]
    if security.get("ssl_check_hostname") is False:
        found["ssl.endpoint.identification.algorithm"] = ""
    return found


def properties_text(properties: Mapping[str, Any]) -> str:
    """Return a Java properties file, sorted by key, escaped as `java.util.Properties` reads it.

    Source: the grammar in the Java documentation of Properties.load.
    """
    lines = []
    for key in sorted(properties):
        lines.append(f"{_escape(key, key=True)}={_escape(property_value(properties[key]))}\n")
    return "".join(lines)


def _escape(text: str, key: bool = False) -> str:
    out = []
    for index, char in enumerate(str(text)):
        if char == "\\":
            out.append("\\\\")
        elif char == "\n":
            out.append("\\n")
        elif char == "\r":
            out.append("\\r")
        elif char == "\t":
            out.append("\\t")
        elif char in " #!" and (key or index == 0):
            out.append("\\" + char)
        elif key and char in "=:":
            out.append("\\" + char)
        elif not 0x20 <= ord(char) <= 0x7E:
            # java.util.Properties reads ISO 8859-1; everything else travels as UTF-16 code units.
            data = char.encode("utf-16-be")
            out.extend(
                f"\\u{int.from_bytes(data[position:position + 2], 'big'):04x}"
                for position in range(0, len(data), 2)
            )
        else:
            out.append(char)
    return "".join(out)


def parse_properties(text: str) -> Dict[str, str]:
    """Return the dict that `properties_text` was made of (the subset that this collection writes)."""
    properties = {}
    for line in text.splitlines():
        stripped = line.lstrip()
        if not stripped or stripped[0] in "#!":
            continue
        key, dummy, value = _split(stripped)
        properties[_unescape(key)] = _unescape(value)
    return properties


def _split(line: str) -> Tuple[str, str, str]:
    index = 0
    while index < len(line):
        if line[index] == "\\":
            index += 2
            continue
        if line[index] in "=:":
            return _strip_end(line[:index]), line[index], line[index + 1 :].lstrip()
        index += 1
    return _strip_end(line), "", ""


def _strip_end(key: str) -> str:
    """Strip white space behind a key, but not the blank that a backslash makes part of it."""
    stripped = key.rstrip()
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return key[: len(stripped) + 1] if backslashes % 2 and len(key) > len(stripped) else stripped


def _unescape(text: str) -> str:
    out = []
    index = 0
    while index < len(text):
        char = text[index]
        if char != "\\" or index + 1 >= len(text):
            out.append(char)
            index += 1
            continue
        following = text[index + 1]
        if following == "u":
            out.append(chr(int(text[index + 2 : index + 6], 16)))
            index += 6
            continue
        out.append({"n": "\n", "r": "\r", "t": "\t"}.get(following, following))
        index += 2
    joined = "".join(out)
    return joined.encode("utf-16", "surrogatepass").decode("utf-16")

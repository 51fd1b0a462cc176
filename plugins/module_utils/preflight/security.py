# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of who may use a listener: TLS and login, super users, and what production leaves open. Pure."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Sequence, Set

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import OAUTHBEARER
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight import firewall
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.addresses import (
    is_open_to_all,
    is_wildcard,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.tls import OF_CONTROLLERS
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    Cluster,
    World,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# They make another name of the subject of a certificate, also where they are for the controllers' listener alone.
NAMED_BY = ("ssl.principal.mapping.rules", "principal.builder.class")
# Who is no super user is let in by it, unless an ACL says otherwise.
LETS_IN = "allow.everyone.if.no.acl.found"
# They end a name in an argument of kafka-storage.sh format --add-scram.
NOT_IN_FORMAT = (",", '"', "=", "[", "]")


def check_security(world: World) -> Iterator[Problem]:
    """What protocols need, and what production offers to whoever reaches it.

    The latter are warnings, because a firewall that is not ours may protect it.
    """
    for cluster in world.clusters:
        for member in cluster.brokers:
            yield from _protocols(member)
            if member.production:
                yield from _in_clear(member)
        for member in cluster.nodes if cluster.kraft else ():
            yield from _at_the_controllers(cluster, member)
        yield from _by_their_certificates(cluster)
        for member in cluster.servers:
            bind = member.text("zookeeper_bind")
            if member.production and is_open_to_all(bind) and not firewall.is_wanted(member):
                where = "all addresses" if is_wildcard(bind) else "a public address"
                reason = (
                    f"ZooKeeper listens on {where}, and whoever reaches it may change everything"
                )
                yield found("security.zookeeper_open", member.name, "zookeeper_bind", bind, reason)


def _protocols(member: Member) -> Iterator[Problem]:
    if _misread(member, "kafka_ssl") or _misread(member, "kafka_sasl"):
        return
    ssl, sasl = member.mapping("kafka_ssl"), member.mapping("kafka_sasl")
    mechanisms = sasl.get("mechanisms") or []
    judged = not _misread(member, "kafka_sasl", "mechanisms")
    chosen = sasl.get("inter_broker_mechanism")
    if chosen and judged and chosen not in mechanisms:
        yield _security(
            member,
            "kafka_sasl.inter_broker_mechanism",
            chosen,
            "not among kafka_sasl.mechanisms",
            "add it there, or name one of them",
        )
    for index, each in enumerate(member.listeners):
        variable = f"kafka_listeners[{index}].protocol"
        if each.protocol.startswith("SASL") and judged and not mechanisms:
            yield _security(
                member,
                variable,
                each.protocol,
                "kafka_sasl names no mechanism",
                "set kafka_sasl.mechanisms, for example [SCRAM-SHA-512]",
            )
        missing = [
            key
            for key in ("certificate", "key", "ca")
            if not ssl.get(key) and not _misread(member, "kafka_ssl", key)
        ]
        if each.protocol.endswith("SSL") and missing:
            yield _security(
                member,
                variable,
                each.protocol,
                f"kafka_ssl has no {', no '.join(missing)}",
                f"set kafka_ssl.{missing[0]} (PEM text)",
            )
    yield from _brokers_among_themselves(member, sasl)
    yield from _client_security(member, mechanisms)


def _at_the_controllers(cluster: Cluster, member: Member) -> Iterator[Problem]:
    """What a node needs to log in at the controllers, who take what the brokers speak among themselves.

    Of brokers most of it is checked with their own listeners.
    """
    if _misread(member, "kafka_ssl") or _misread(member, "kafka_sasl"):
        return
    protocol, sasl = cluster.controller_protocol, member.mapping("kafka_sasl")
    user = sasl.get("inter_broker_user") or ""
    login = ("inter_broker_user", "inter_broker_password")
    if protocol.startswith("SASL"):
        if not member.is_broker and not all(sasl.get(key) for key in login):
            yield _security(
                member,
                "kafka_sasl.inter_broker_user",
                user,
                f"the controllers speak {protocol}, and this one has no name or no password there",
                "set kafka_sasl for controllers and brokers alike",
            )
        names = {
            each.mapping("kafka_sasl").get("inter_broker_user") or "" for each in cluster.nodes
        }
        if len(names - {""}) > 1 and member == cluster.nodes[0]:
            yield found(
                "settings.not_uniform",
                [each.name for each in cluster.nodes],
                "kafka_sasl.inter_broker_user",
                "(several)",
                "the controllers know one user, by which all nodes log in there",
                "set kafka_sasl once for the cluster",
            )
    yield from _for_the_format(member, sasl)
    if protocol.endswith("SSL") and not member.is_broker:
        ssl = member.mapping("kafka_ssl")
        missing = [key for key in ("certificate", "key", "ca") if not ssl.get(key)]
        if missing:
            yield _security(
                member,
                f"kafka_ssl.{missing[0]}",
                "",
                f"the controllers speak {protocol}, and kafka_ssl has no {', no '.join(missing)}",
                f"set kafka_ssl.{missing[0]} (PEM text)",
            )
    if member.is_broker:
        return
    yield from _client_of_the_brokers(cluster, member)
    if member.get("kafka_authorizer") is not True:
        return
    users = [str(each) for each in member.items("kafka_super_users")]
    if user and protocol.startswith("SASL") and user not in users and f"User:{user}" not in users:
        yield found(
            "security.super_users",
            member.name,
            "kafka_super_users",
            users,
            f"nodes come to the controllers as User:{user}, and the authorizer would turn them away",
            f"add User:{user}",
        )
    for broker in cluster.brokers[:1]:
        lacking = _principals(broker) - _principals(member)
        if lacking - {f"User:{user}"}:
            yield found(
                "settings.not_uniform",
                member.name,
                "kafka_super_users",
                users,
                "brokers hand on what a super user asks of them, and the controllers do not know "
                f"{', '.join(sorted(lacking))} as one",
                "set kafka_super_users once for controllers and brokers alike",
            )


def _by_their_certificates(cluster: Cluster) -> Iterator[Problem]:
    """Nodes that come to the controllers by the subject of a certificate, and are no super users there.

    Where rules make another name of it, or an own builder does, nothing is known. A controller that lets in whom no ACL
    is about turns none away.
    """
    if not cluster.kraft or cluster.controller_protocol != "SSL":
        return
    asking = [
        each
        for each in cluster.controllers
        if each.get("kafka_authorizer") is True and not _lets_in(each)
    ]
    known = [_principals(each) for each in asking if not _misread(each, "kafka_super_users")]
    named_otherwise = any(
        f"{where}{key}" in each.mapping(variable)
        for each in asking
        for variable in ("kafka_config", "kafka_host_config")
        for key in NAMED_BY
        for where in ("", OF_CONTROLLERS)
    )
    if not known or named_otherwise:
        return
    for member in cluster.nodes:
        subject = ((member.tls or {}).get("certificate") or {}).get("subject")
        if subject and any(f"User:{subject}" not in users for users in known):
            yield found(
                "security.super_users",
                member.name,
                "kafka_super_users",
                [str(each) for each in member.items("kafka_super_users")],
                f"the node comes to the controllers as User:{subject}, by its certificate, and the authorizer would"
                " turn it away",
                f"add User:{subject}, for controllers and brokers alike",
            )


def _lets_in(member: Member) -> bool:
    """Whether the authorizer of a node lets in whom no ACL is about."""
    said = {**member.mapping("kafka_config"), **member.mapping("kafka_host_config")}
    return str(said.get(LETS_IN)).strip().lower() == "true"


def _principals(member: Member) -> Set[str]:
    """The super users of a node, as its authorizer names them."""
    names = [str(each) for each in member.items("kafka_super_users")]
    return {name if ":" in name else f"User:{name}" for name in names}


def _client_of_the_brokers(cluster: Cluster, member: Member) -> Iterator[Problem]:
    """The quorum is asked through the brokers, also when it is a controller's turn."""
    for broker in cluster.brokers[:1]:
        for key in ("security_protocol", "sasl_mechanism"):
            own, theirs = (
                each.mapping("kafka_client_security").get(key) or "" for each in (member, broker)
            )
            if own != theirs and not _misread(member, "kafka_client_security", key):
                yield found(
                    "listeners.client_security",
                    member.name,
                    f"kafka_client_security.{key}",
                    own,
                    f"the quorum is asked through the brokers, and for {broker.name} it is {theirs or 'not set'}",
                    "set kafka_client_security for controllers and brokers alike",
                )


def _for_the_format(member: Member, sasl: Mapping[str, Any]) -> Iterator[Problem]:
    """Names that Kafka's format of a storage cannot take; those of a cluster that exists are not formatted."""
    scram = any(str(each).startswith("SCRAM-") for each in sasl.get("mechanisms") or ())
    users = sasl.get("users") or {}
    names = {str(sasl.get("inter_broker_user") or ""), *map(str, users if scram else ())}
    for name in sorted(names if scram else ()):
        if set(name) & set(NOT_IN_FORMAT):
            yield _security(
                member,
                "kafka_sasl.users",
                name,
                f"a user of SCRAM with one of {' '.join(NOT_IN_FORMAT)} in the name cannot be made when the"
                " storage is formatted",
                "give the user another name",
            )


def _client_security(member: Member, mechanisms: Sequence[str]) -> Iterator[Problem]:
    """kafka_client_security against the listener that the roles and the validation log in at."""
    wanted = member.text("kafka_admin_listener")
    listener = next((each for each in member.listeners if wanted in ("", each.name)), None)
    if listener is None or not listener.protocol:
        return
    if _misread(member, "kafka_client_security", "security_protocol"):
        return
    security = member.mapping("kafka_client_security")
    used = security.get("security_protocol") or "PLAINTEXT"
    variable = "kafka_client_security.security_protocol"
    if used != listener.protocol:
        value, remedy = used, f"set {variable}: {listener.protocol}, and what it needs"
        reason = (
            f"the roles log in at the listener {listener.name}, which speaks {listener.protocol}"
        )
        yield found("listeners.client_security", member.name, variable, value, reason, remedy)
        return
    mechanism = security.get("sasl_mechanism")
    misread = _misread(member, "kafka_client_security", "sasl_mechanism")
    takes = mechanism in mechanisms or misread or not mechanisms
    if listener.protocol.startswith("SASL") and not takes:
        variable = "kafka_client_security.sasl_mechanism"
        reason = f"the brokers take {', '.join(str(each) for each in mechanisms)}"
        remedy = f"set {variable} to one of these, with sasl_username and sasl_password"
        yield found("listeners.client_security", member.name, variable, mechanism, reason, remedy)
    if mechanism == OAUTHBEARER and member.text("flow_validation") != "never":
        variable = "kafka_client_security.sasl_mechanism"
        reason, remedy = "the validation does not log in by tokens", "set flow_validation: never"
        yield found("listeners.client_security", member.name, variable, mechanism, reason, remedy)
    certificate, key = (str(security.get(f"ssl_{part}") or "") for part in ("certificate", "key"))
    path = next((each for each in (key, certificate) if each[:1] in ("/", "~")), "")
    if certificate and key != certificate and path and member.text("flow_validation") != "never":
        yield found(
            "listeners.client_security",
            member.name,
            "kafka_client_security.ssl_key",
            path,
            "the validation's Java client has no file for a key alone",
            "put certificate and key into one PEM file and name it twice, give both as PEM text, or "
            "set flow_validation: never",
        )


def _brokers_among_themselves(member: Member, sasl: Mapping[str, Any]) -> Iterator[Problem]:
    inter_broker = member.inter_broker_listener
    if inter_broker is None:
        return
    principal = None
    if inter_broker.protocol.startswith("SASL"):
        login = ("inter_broker_user", "inter_broker_password")
        if not all(sasl.get(key) for key in login) and not _misread(member, "kafka_sasl", *login):
            yield _security(
                member,
                "kafka_sasl.inter_broker_user",
                sasl.get("inter_broker_user") or "",
                "the brokers have no name or no password among themselves",
                "set kafka_sasl.inter_broker_user and inter_broker_password",
            )
        principal = sasl.get("inter_broker_user")
    elif inter_broker.protocol == "PLAINTEXT":
        principal = "ANONYMOUS"
    if member.get("kafka_authorizer") is True and not _misread(member, "kafka_super_users"):
        users = [str(each) for each in member.items("kafka_super_users")]
        if principal and principal not in users and f"User:{principal}" not in users:
            yield found(
                "security.super_users",
                member.name,
                "kafka_super_users",
                users,
                f"the brokers come as User:{principal}, and the authorizer would turn them away",
                (
                    "give the listener between the brokers a protocol with SASL or SSL; with "
                    "User:ANONYMOUS as a super user, everybody who does not log in would be one"
                    if principal == "ANONYMOUS"
                    else f"add User:{principal}"
                ),
            )
        elif not users:
            yield found(
                "security.super_users",
                member.name,
                "kafka_super_users",
                users,
                "with an authorizer and no super user nobody can grant anything",
            )


def _misread(member: Member, variable: str, *keys: str) -> bool:
    """Whether a mapping, or one of these keys of it, has a finding of its own: nothing follows from it."""
    value = member.settings.get(variable, {})
    if value is None or variable in member.errors:
        return True
    return any(key in value and value[key] is None for key in keys)


def _security(member: Member, variable: str, value: Any, reason: str, remedy: str) -> Problem:
    return found("listeners.security", member.name, variable, value, reason, remedy)


def _in_clear(member: Member) -> Iterator[Problem]:
    """Listeners that do not encrypt; what is readable on the network depends on the login."""
    spoken = {each.protocol for each in member.listeners}
    if "PLAINTEXT" in spoken:
        reason = "anybody who reaches it may use it, and records travel in clear"
        yield found("security.plaintext", member.name, "kafka_listeners", "PLAINTEXT", reason)
    if "SASL_PLAINTEXT" in spoken:
        passwords = "PLAIN" in (member.mapping("kafka_sasl").get("mechanisms") or ())
        reason = "passwords and records travel in clear" if passwords else "records travel in clear"
        yield found("security.plaintext", member.name, "kafka_listeners", "SASL_PLAINTEXT", reason)

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Certificates and keys of the brokers: read on the controller, judged with everything else. Pure.

`examine` sees the PEM text before the action hides it, and returns nothing secret: what could not
be read, whether key and certificate belong together, for how long they are valid, for which names.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    HAS_CRYPTOGRAPHY = True
except ImportError:  # no opinion then; ansible-core brings it
    HAS_CRYPTOGRAPHY = False

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    CONTROLLER_LISTENER,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.addresses import (
    bare,
    is_address,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import World
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    ERROR,
    WARNING,
    Problem,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted

DAYS_LEFT = 30
IDENTIFICATION = "ssl.endpoint.identification.algorithm"
OF_CONTROLLERS = f"listener.name.{CONTROLLER_LISTENER.lower()}."
DAY_SECONDS = 86400.0
# Kafka reads PKCS#8 only; "BEGIN RSA PRIVATE KEY" and its like are older forms.
_KEY = re.compile(r"-----BEGIN (?P<kind>[A-Z0-9 ]*)PRIVATE KEY-----")
# In values of a subject, where cryptography leaves them as they are.
_ESCAPED_BY_JAVA = "=#"
_NOT_PEM = "not PEM text of a"
_IN_WORDS = frozenset(
    getattr(x509.NameOID, name)
    for name in (
        *("COMMON_NAME", "ORGANIZATIONAL_UNIT_NAME", "ORGANIZATION_NAME", "LOCALITY_NAME"),
        *("STATE_OR_PROVINCE_NAME", "COUNTRY_NAME", "DOMAIN_COMPONENT", "USER_ID"),
    )
    if HAS_CRYPTOGRAPHY
)


# ---------------------------------------------------------------- reading


def examine(
    settings: Mapping[str, Any], now: Optional[datetime.datetime] = None
) -> Optional[Dict[str, Any]]:
    """What `kafka_ssl` of these settings holds; None where there is nothing to say.

    {certificate: {problem, days_left, days_until, names, subject}, key: {problem, matches},
    ca: {problem, days_left}}: `problem` is "" where it can be read; days are None where it cannot;
    `matches` is None where that is not known. An absent text is left out.
    """
    ssl = settings.get("kafka_ssl")
    if not HAS_CRYPTOGRAPHY or not isinstance(ssl, Mapping):
        return None
    now = now or datetime.datetime.now(datetime.timezone.utc)
    result: Dict[str, Any] = {}
    chain: List[Any] = []
    if _is_text(ssl.get("certificate")):
        chain = _certificates(ssl["certificate"])
        result["certificate"] = _told(chain, now, min)
        result["certificate"]["names"] = _names(chain[0]) if chain else []
        result["certificate"]["subject"] = _subject(chain[0]) if chain else ""
    if _is_text(ssl.get("ca")):
        result["ca"] = _told(_certificates(ssl["ca"]), now, max)
    if _is_text(ssl.get("key")):
        problem, public = _public_key(ssl["key"], _key_password(settings))
        matches = public == _spki(chain[0].public_key()) if public and chain else None
        result["key"] = {"problem": problem, "matches": matches}
    return result or None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _key_password(settings: Mapping[str, Any]) -> Optional[bytes]:
    for variable in ("kafka_host_config", "kafka_config"):
        mapping = settings.get(variable)
        if isinstance(mapping, Mapping) and mapping.get("ssl.key.password"):
            return str(mapping["ssl.key.password"]).encode("utf-8")
    return None


def _certificates(text: str) -> List[Any]:
    try:
        return list(x509.load_pem_x509_certificates(text.encode("utf-8")))
    except Exception:  # pylint: disable=broad-except
        return []  # whatever the parser says of a text that is not a certificate


def _told(certificates: List[Any], now: datetime.datetime, which: Any) -> Dict[str, Any]:
    """A chain ends with the first certificate that does, a bundle of authorities with the last."""
    if not certificates:
        problem = f"{_NOT_PEM} certificate"
        return {"problem": problem, "days_left": None, "days_until": None}
    return {
        "problem": "",
        "days_left": which(_days(each, "not_valid_after", now) for each in certificates),
        "days_until": _days(certificates[0], "not_valid_before", now),
    }


def _days(certificate: Any, which: str, now: datetime.datetime) -> float:
    moment = getattr(certificate, f"{which}_utc", None)
    if moment is None:  # cryptography before 42
        moment = getattr(certificate, which).replace(tzinfo=datetime.timezone.utc)
    return float((moment - now).total_seconds() / DAY_SECONDS)


def _names(certificate: Any) -> List[str]:
    """Names and addresses that clients compare; the subject's where there are no others."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        subject = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        return [str(each.value) for each in subject]
    except ValueError:
        return []
    names = extension.value.get_values_for_type(x509.DNSName)
    addresses = extension.value.get_values_for_type(x509.IPAddress)
    return sorted(names) + sorted(str(each) for each in addresses)


def _subject(certificate: Any) -> str:
    """The subject as Java writes it (RFC 2253), by which Kafka knows whose it is; "" where that is not sure.

    Of other attributes than these Java writes the number and the bytes, and it escapes more characters.
    """
    try:
        if any(
            each.oid not in _IN_WORDS or set(str(each.value)) & set(_ESCAPED_BY_JAVA)
            for each in certificate.subject
        ):
            return ""
        return str(certificate.subject.rfc4514_string())
    except ValueError:
        return ""


def _public_key(text: str, password: Optional[bytes]) -> Tuple[str, bytes]:
    """(problem, public half); no text of the parser, which might quote what it read."""
    match = _KEY.search(text)
    if not match:
        return f"{_NOT_PEM} private key", b""
    if match["kind"].strip() not in ("", "ENCRYPTED"):
        return "not in the form PKCS#8, the only one that Kafka reads", b""
    encrypted = bool(match["kind"].strip())
    if encrypted and password is None:
        return "encrypted, and kafka_config has no ssl.key.password", b""
    try:
        key = serialization.load_pem_private_key(
            text[match.start() :].encode("utf-8"), password if encrypted else None
        )
        return "", _spki(key.public_key())
    except Exception:  # pylint: disable=broad-except
        return "damaged, or encrypted with another password", b""


def _spki(public: Any) -> bytes:
    return bytes(
        public.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


# ---------------------------------------------------------------- judging


def check_tls(world: World) -> Iterator[Problem]:
    """What `examine` found in each broker's kafka_ssl."""
    for member in world.members:
        told = member.tls or {}
        if member.runs_kafka:
            for part in ("certificate", "key", "ca"):
                problem = (told.get(part) or {}).get("problem")
                if problem:
                    yield _found(member, "tls.unreadable", part, problem)
            if (told.get("key") or {}).get("matches") is False:
                yield _found(
                    member, "tls.key_mismatch", "key", "it does not belong to the certificate"
                )
            for part in ("certificate", "ca"):
                yield from _validity(member, part, told.get(part) or {})
            yield from _advertised(member, told.get("certificate") or {})
    for cluster in world.clusters:
        if cluster.controller_protocol.endswith("SSL"):
            for member in cluster.controllers:
                yield from _of_controller(
                    member, (member.tls or {}).get("certificate") or {}, cluster.nodes
                )


def _found(member: Member, check: str, part: str, reason: str, level: str = "") -> Problem:
    return found(check, member.name, f"kafka_ssl.{part}", "...", reason, level=level)


def _validity(member: Member, part: str, told: Mapping[str, Any]) -> Iterator[Problem]:
    left, until = told.get("days_left"), told.get("days_until")
    if left is None or until is None:
        return
    if left < 0:
        yield _found(member, "tls.expired", part, f"it expired {_days_text(-left)} ago")
    elif until > 0:
        yield _found(member, "tls.expired", part, f"it becomes valid in {_days_text(until)} only")
    elif left < DAYS_LEFT:
        yield _found(member, "tls.expired", part, f"it expires in {_days_text(left)}", WARNING)


def _days_text(days: float) -> str:
    whole = int(days)
    return "less than a day" if whole < 1 else counted(whole, "day")


def covers(names: List[str], wanted: str) -> bool:
    """Whether a certificate with these names is good for the host (RFC 6125: one label per `*`)."""
    if is_address(wanted):
        address = ipaddress.ip_address(bare(wanted))
        return any(is_address(name) and ipaddress.ip_address(name) == address for name in names)
    host = wanted.lower().rstrip(".")
    beyond = host.partition(".")[2]
    return any(name.lower() == host or (beyond and name.lower() == f"*.{beyond}") for name in names)


def _advertised(member: Member, told: Mapping[str, Any]) -> Iterator[Problem]:
    names = told.get("names")
    if names is None or told.get("problem"):
        return
    for index, each in enumerate(member.listeners):
        if each.protocol.endswith("SSL") and each.advertised and not covers(names, each.advertised):
            yield found(
                "tls.names",
                member.name,
                f"kafka_listeners[{index}].advertised",
                each.advertised,
                f"the certificate is for {', '.join(names[:5]) or 'no name at all'}",
            )


def _of_controller(
    member: Member, told: Mapping[str, Any], nodes: Iterable[Member]
) -> Iterator[Problem]:
    """The certificate of a controller, which all nodes seek by kafka_address: none would connect."""
    names, address = told.get("names"), member.text("kafka_address")
    if names is None or told.get("problem") or not address or covers(names, address):
        return
    yield found(
        "tls.names",
        member.name,
        "kafka_address",
        address,
        f"the nodes seek the controller by it, and the certificate is for {', '.join(names[:5]) or 'no name at all'}",
        "have the name added to the certificate (subjectAltName), or let kafka_address be one that it has",
        level=ERROR if any(map(_compares_names, nodes)) else WARNING,
    )


def _compares_names(member: Member) -> bool:
    """Whether a node compares the name with that of the certificate, as Kafka does unless it is told not to."""
    said = {**member.mapping("kafka_config"), **member.mapping("kafka_host_config")}
    # That of the listener counts before that of all.
    values = [
        said[key] for key in (f"{OF_CONTROLLERS}{IDENTIFICATION}", IDENTIFICATION) if key in said
    ]
    return not values or bool(str(values[0] or "").strip())

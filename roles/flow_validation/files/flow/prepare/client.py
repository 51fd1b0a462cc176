# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Connection settings, once in the file that Kafka's own tools take (--command-config), for both
clients.

Pure. The file may hold Java's keys or librdkafka's for the same thing; each client gets its own
spelling.
"""

from __future__ import annotations

import re
from typing import Callable, Optional

_JAAS_OPTION = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
# the key ends at the first =, : or blank that no backslash makes part of it
_KEY = re.compile(r"((?:[^\\=:\s]|\\.)*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}
_SAME = ("security.protocol", "sasl.mechanism")
_PEM_TYPES = ("PEM", "pem")


def parse_properties(text: str) -> dict:
    """What Kafka reads from the text: comments, continued lines, escapes; blanks at the end
    trimmed.
    """
    properties, pending = {}, ""
    for raw in text.splitlines():
        line = pending + raw.lstrip()
        pending = ""
        if not line or line[0] in "#!":
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
            continue
        found = _KEY.match(line)
        assert found is not None  # it matches any text
        key, value = found.groups()
        properties[_unescape(key)] = _unescape(value.rstrip())
    return properties


def _unescape(text: str) -> str:
    return _ESCAPE.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else _CONTROL.get(found[2], found[2]), text
    )


def for_librdkafka(properties: dict) -> dict:
    """Settings for confluent-kafka. Raises ValueError with a sentence where there is no
    equivalent.
    """
    given = dict(properties)
    result = {}
    for key in _SAME:
        if key in given:
            result[key] = given.pop(key)
    given.pop("sasl.mechanisms", None) and result.setdefault(
        "sasl.mechanism", properties["sasl.mechanisms"]
    )
    jaas = given.pop("sasl.jaas.config", None)
    if jaas:
        options = {k: re.sub(r"\\(.)", r"\1", v) for k, v in _JAAS_OPTION.findall(jaas)}
        if set(options) != {"username", "password"}:
            raise ValueError("sasl.jaas.config must name a username and a password, each in quotes")
        result.update({f"sasl.{k}": v for k, v in options.items()})
    for store, targets in (
        ("truststore", ("ssl.ca.location",)),
        ("keystore", ("ssl.certificate.location", "ssl.key.location")),
    ):
        location = given.pop(f"ssl.{store}.location", None)
        kind = given.pop(f"ssl.{store}.type", "JKS")
        given.pop(f"ssl.{store}.password", None)
        if location:
            if kind not in _PEM_TYPES:
                raise ValueError(
                    f"ssl.{store}.location is of type {kind}; only PEM can be read by both clients"
                )
            result.update(dict.fromkeys(targets, location))
    for java, ours in (
        ("ssl.truststore.certificates", "ssl.ca.pem"),
        ("ssl.keystore.certificate.chain", "ssl.certificate.pem"),
        ("ssl.keystore.key", "ssl.key.pem"),
    ):
        if java in given:
            result[ours] = given.pop(java).replace("\\n", "\n")
    if given.get("ssl.endpoint.identification.algorithm") == "":
        given["ssl.endpoint.identification.algorithm"] = "none"
    known = ("ssl.", "sasl.", "client.id", "socket.", "enable.ssl.")
    result.update({k: v for k, v in given.items() if k.startswith(known)})
    return result


def for_java(properties: dict) -> dict:
    """Settings for Kafka's Java client, without Spark's `kafka.` prefix."""
    result = {k: v for k, v in properties.items() if k in _SAME or k.startswith(("ssl.", "sasl."))}
    if "sasl.mechanisms" in result:
        result.setdefault("sasl.mechanism", result.pop("sasl.mechanisms"))
    if "sasl.username" in result:
        name, password = result.pop("sasl.username"), result.pop("sasl.password", "")
        module = (
            "plain.PlainLoginModule"
            if result.get("sasl.mechanism", "").upper() == "PLAIN"
            else "scram.ScramLoginModule"
        )
        result["sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{module} required"
            f" username={_quoted(name)} password={_quoted(password)};"
        )
    if "ssl.ca.location" in result:
        result["ssl.truststore.location"] = result.pop("ssl.ca.location")
        result["ssl.truststore.type"] = "PEM"
    if "ssl.ca.pem" in result:
        result["ssl.truststore.certificates"] = result.pop("ssl.ca.pem")
        result["ssl.truststore.type"] = "PEM"
    if "ssl.certificate.pem" in result:
        result["ssl.keystore.certificate.chain"] = result.pop("ssl.certificate.pem")
        result["ssl.keystore.key"] = result.pop("ssl.key.pem", "")
        result["ssl.keystore.type"] = "PEM"
    if "ssl.certificate.location" in result:
        key_file = result.pop("ssl.key.location", None)
        result["ssl.keystore.location"] = result.pop("ssl.certificate.location")
        result["ssl.keystore.type"] = "PEM"
        if key_file not in (None, result["ssl.keystore.location"]):
            raise ValueError(
                "Kafka's Java client wants certificate and key in one PEM file"
                " (ssl.keystore.location); ssl.certificate.location and ssl.key.location differ"
            )
    if "ssl.truststore.certificates" in result or "ssl.keystore.key" in result:
        for key in (
            "ssl.truststore.certificates",
            "ssl.keystore.certificate.chain",
            "ssl.keystore.key",
        ):
            if key in result:
                result[key] = result[key].replace("\\n", "\n")
    if result.get("ssl.endpoint.identification.algorithm") == "none":
        result["ssl.endpoint.identification.algorithm"] = ""
    return result


# settings of librdkafka that name a file, whose contents a producer on another machine gets
SHIPPED = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.crl.location")
_JAVA_STORES = {
    "ssl.truststore": ("ssl.truststore.certificates",),
    "ssl.keystore": ("ssl.keystore.certificate.chain", "ssl.keystore.key"),
}


def contents(settings: dict, read: Callable[[str], Optional[str]]) -> dict:
    """Of settings of librdkafka: key -> text of the file that it names. read: path -> text, or None if
    there is no such file here.
    """
    found = {key: read(settings[key]) for key in SHIPPED if settings.get(key)}
    return {key: text for key, text in found.items() if text is not None}


def without_files(java: dict, read: Callable[[str], Optional[str]]) -> dict:
    """The same settings for Java, with the text of PEM files in the place of their paths, so that they
    hold on every machine. read: as for `contents`.
    """
    result = dict(java)
    for store, targets in _JAVA_STORES.items():
        place, kind = f"{store}.location", f"{store}.type"
        if result.get(kind) in _PEM_TYPES and place in result:
            text = read(result[place])
            if text is not None:
                del result[place]
                result.update(dict.fromkeys(targets, text))
    return result


def paths(settings: dict) -> list:
    """Files that the settings of librdkafka name and that are not shipped."""
    return sorted(
        value
        for key, value in settings.items()
        if key not in SHIPPED and key.endswith((".location", ".keytab")) and value.startswith("/")
    )


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

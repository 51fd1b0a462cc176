# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Host names and IP addresses: their form, and what they mean. Pure."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Iterator, Optional, Tuple, Union

HOST_NAME = re.compile(
    r"^(?=.{1,253}\.?$)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?"
    r"(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$"
)

# By the end of a name, whatever part of the platform reads it, also one that is not of this collection:
# what one address looks like, the reason where it does not, and the remedy.
_BROKER = (
    re.compile(r"[^\s,/:\[\]]+:\d+|\[[0-9A-Fa-f:]+\]:\d+"),
    "brokers are given as host:port, several with commas between",
    "write it like kafka-1.example.com:9092",
)
_REGISTRY = (
    re.compile(r"https?://[^\s/]+.*"),
    "a registry is given as an http or https URL",
    "write it like http://registry.example.com:8081",
)
FORMS_BY_SUFFIX = {
    "bootstrap_server": _BROKER,
    "bootstrap_servers": _BROKER,
    "registry_url": _REGISTRY,
    "registry_urls": _REGISTRY,
}
ADDRESS_SUFFIXES = tuple(FORMS_BY_SUFFIX)


def address_faults(name: str, value: Any) -> Iterator[Tuple[str, str, str]]:
    """(text, reason, remedy) of each text that is not the address that a variable or setting wants."""
    name = name.replace(".", "_").lower()
    suffix = next((each for each in ADDRESS_SUFFIXES if name.endswith(each)), None)
    if suffix is None:
        return
    form, reason, remedy = FORMS_BY_SUFFIX[suffix]
    for text in value if isinstance(value, (list, tuple)) else [value]:
        parts = text.split(",") if isinstance(text, str) else []
        if any(part.strip() and not form.fullmatch(part.strip()) for part in parts):
            yield text, reason, remedy


def bare(text: str) -> str:
    """The address without blanks around it and without the brackets of an IPv6 address."""
    text = text.strip()
    return text[1:-1] if text.startswith("[") and text.endswith("]") else text


def _parsed(text: str) -> Union[None, ipaddress.IPv4Address, ipaddress.IPv6Address]:
    """The address as `ipaddress` has it; None for what is not one. A zone (%eth0) is let pass."""
    try:
        return ipaddress.ip_address(bare(text).partition("%")[0])
    except ValueError:
        return None


def is_address(text: str) -> bool:
    """Whether the text is an IP address and needs no resolution."""
    return _parsed(text) is not None


def canonical(text: str) -> str:
    """An IP address as the kernel writes it, so that equal ones are equal texts; anything else as it is."""
    address = _parsed(text)
    return text if address is None else str(address)


def is_loopback(text: str) -> bool:
    """Whether an address or name means the machine itself."""
    address = _parsed(text)
    if address is not None:
        return address.is_loopback
    return bare(text).lower() in ("localhost", "localhost.")


def is_wildcard(text: str) -> bool:
    """Whether an address means all addresses of the machine."""
    address = _parsed(text)
    return address.is_unspecified if address is not None else bare(text) in ("", "*")


def is_open_to_all(text: str) -> bool:
    """Whether everybody may reach what is bound there: all addresses, or a public one. Of names nothing is known."""
    address = _parsed(text)
    return is_wildcard(text) or (address is not None and address.is_global)


def host_problem(text: str) -> Optional[Tuple[str, str]]:
    """(reason, remedy) if `text` is neither a host name nor an address."""
    if not text:
        return "empty", "give a host name or an address"
    if "://" in text:
        host = text.split("://", 1)[1].split("/")[0]
        return "a URL, where a host belongs", f"write the host alone: {host.rsplit(':', 1)[0]}"
    if re.match(r"^[^:\[\]]+:\d+$", text) or re.match(r"^\[.*\]:\d+$", text):
        host = text.rsplit(":", 1)[0]
        return "host:port, where a host belongs", f"write the host alone: {host}"
    if is_address(text):
        return None
    if ":" in text:
        return "not an IPv6 address", "write it like 2001:db8::1"
    if re.match(r"^[\d.]+$", text):
        return "not an IPv4 address", "give four numbers from 0 to 255"
    if HOST_NAME.match(text):
        return None
    return "neither a host name nor an address", "give a host name or an address"

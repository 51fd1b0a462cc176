# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that a client of a cluster needs, for each listener: Java's, librdkafka's, and a first program.

Private to this collection. Pure: the playbook client.yml writes what is computed here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    Connection,
    parse_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    bootstrap_servers,
    client_properties,
    properties_text,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import refusal

CA_FILE = "ca.crt"
# Private key and certificates in one file: Kafka's Java client knows no file for a key alone.
OWN_FILE = "client.pem"
# Of the modules' own connections, and no advice for others.
_OURS = ("client.id", "socket.timeout.ms")


@dataclass(frozen=True)
class Listener:
    """A listener as its clients see it; `audience`: who uses it, on any broker."""

    name: str
    protocol: str
    audience: Tuple[str, ...]
    bootstrap: str

    @property
    def has_users(self) -> bool:
        """Whether its clients log in with a name and a password."""
        return self.protocol.startswith("SASL")

    @property
    def has_tls(self) -> bool:
        """Whether its clients see a certificate."""
        return self.protocol.endswith("SSL")


@dataclass(frozen=True)
class User:
    """Who logs in, and how; `password` None: not known here."""

    name: str
    mechanism: str
    password: Optional[str] = None


@dataclass(frozen=True)
class Certificates:
    """PEM texts for TLS. `wanted`: brokers ask for a certificate of the client, known here or not.

    `owner`: the user to whom `own` belongs, empty if nobody says.
    """

    ca: str = ""
    own: str = ""
    key_password: str = ""
    check_hostname: bool = True
    wanted: bool = False
    owner: str = ""

    def for_user(self, name: str) -> Certificates:
        """Those that may be given to a user; empty: to whoever the modules' own connections are.

        A listener with TLS takes whoever holds a key for its owner, so that nobody else may have it.
        """
        if name in ("", self.owner):
            return self
        return replace(self, own="", key_password="", owner=name)


@dataclass(frozen=True)
class File:
    """A file to write; `secret`: nobody else may read it, and no output may show it."""

    path: str
    content: str
    secret: bool = False

    def to_dict(self) -> Dict[str, Any]:
        """As the playbook takes it."""
        mode = "0600" if self.secret else "0644"
        return {"path": self.path, "content": self.content, "mode": mode, "secret": self.secret}


# ---------------------------------------------------------------- what the inventory says


def listeners_of(members: Sequence[Sequence[Mapping[str, Any]]]) -> List[Listener]:
    """The listeners of a cluster by name, of `kafka_listeners` lists, one a broker, as the preflight completes them."""
    found: Dict[str, Listener] = {}
    for item in (item for listeners in members for item in listeners):
        name, audience = str(item["name"]), tuple(map(str, item.get("audience") or ()))
        if name in found:
            both = tuple(dict.fromkeys((*found[name].audience, *audience)))
            found[name] = replace(found[name], audience=both)
        else:
            protocol = str(item.get("protocol") or "PLAINTEXT")
            found[name] = Listener(name, protocol, audience, bootstrap_servers(members, name))
    return list(found.values())


def users_of(
    sasl: Mapping[str, Any], users: Sequence[Mapping[str, Any]], login: Mapping[str, Any]
) -> List[User]:
    """Everybody whose name the inventory has, but not the brokers' own user.

    `sasl`: kafka_sasl; `users`: kafka_users; `login`: kafka_client_security, whose user comes first.
    """
    found: Dict[str, User] = {}
    mechanisms = [str(each) for each in sasl.get("mechanisms") or ()]
    first = str(login.get("sasl_mechanism") or (mechanisms[0] if mechanisms else "PLAIN"))
    if login.get("sasl_username"):
        name = str(login["sasl_username"])
        found[name] = User(name, first, _text(login.get("sasl_password")))
    usual = first if first in mechanisms or not mechanisms else mechanisms[0]
    for key, password in (sasl.get("users") or {}).items():
        found.setdefault(str(key), User(str(key), usual, _text(password)))
    for item in users:
        if item.get("state", "present") == "present":
            own = item.get("mechanisms") or ["SCRAM-SHA-512"]
            one = User(str(item["name"]), str(own[0]), _text(item.get("password")))
            found.setdefault(one.name, one)
    brokers = str(sasl.get("inter_broker_user") or "")
    return [user for name, user in found.items() if name != brokers]


def certificates_of(
    login: Mapping[str, Any],
    ssl: Mapping[str, Any],
    of_listener: Optional[Mapping[str, Any]] = None,
) -> Certificates:
    """Of kafka_client_security, whose files have been read, and kafka_ssl; `of_listener`: a login of its own."""
    security = {**login, **(of_listener or {})}
    # a name of the listener's own comes with no key, and that of the other login is still the other one's
    keyed = security if set(of_listener or {}) & {"ssl_key", "ssl_certificate"} else login
    own = [str(security.get(each) or "").strip() for each in ("ssl_key", "ssl_certificate")]
    parts = [text for text in dict.fromkeys(own) if text]
    return Certificates(
        ca=str(security.get("ssl_ca") or ssl.get("ca") or "").strip(),
        own="\n".join(parts) + "\n" if parts else "",
        key_password=str(security.get("ssl_key_password") or ""),
        check_hostname=security.get("ssl_check_hostname") is not False,
        wanted=bool(parts) or ssl.get("client_auth") == "required",
        owner=str(keyed.get("sasl_username") or ""),
    )


def _text(value: Any) -> Optional[str]:
    return None if value in (None, "") else str(value)


# ---------------------------------------------------------------- who and where


def chosen_listeners(listeners: Sequence[Listener], name: str) -> List[Listener]:
    """The one of this name, or, without a name, each with an audience. Raises ProblemError."""
    known = ", ".join(each.name for each in listeners)
    found = [each for each in listeners if (each.name == name if name else each.audience)]
    if found:
        return found
    if name:
        raise refusal(
            "client.listener", f"listener={name}", "no listener has this name", f"one of: {known}"
        )
    raise refusal(
        "client.audience",
        "kafka_listeners",
        "no listener has an audience, so nobody is known to use one",
        f"give a listener an audience, or name one with -e listener=NAME: {known}",
    )


def chosen_user(users: Sequence[User], listeners: Sequence[Listener], name: str) -> Optional[User]:
    """The one of this name; without a name the first one, None where there is none. Raises ProblemError."""
    if not name:
        return users[0] if users else None
    if not any(each.has_users for each in listeners):
        raise refusal(
            "client.no_login",
            f"user={name}",
            "nobody logs in with a name at " + ", ".join(each.name for each in listeners),
            "leave out -e user, or name a listener whose protocol begins with SASL",
        )
    for each in users:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in users)
    raise refusal(
        "client.user",
        f"user={name}",
        "neither kafka_sasl.users nor kafka_users nor kafka_client_security has this name",
        f"one of: {known}" if known else "add the user to kafka_users",
    )


# ---------------------------------------------------------------- what is written


def client_files(
    cluster: str,
    listener: Listener,
    user: Optional[User],
    certificates: Certificates,
    secrets: bool,
    program: str,
) -> List[File]:
    """The files of one listener, with paths relative to the folder of the cluster's; `program`: text of client.py.

    Without `secrets`, a placeholder stands where a password belongs, and says which one.
    """
    password = user.password if user and secrets else None
    missing = []
    if listener.has_users and password is None:
        missing.append(f"the password of {user.name if user else 'your user'}")
    own = listener.has_tls and certificates.wanted
    if own and not (secrets and certificates.own):
        whose = "your private key"
        if certificates.owner:
            whose = f"the private key of {certificates.owner}"
        missing.append(f"{OWN_FILE}: {whose}, then the certificate with its chain")
    if own and certificates.key_password and not secrets:
        missing.append("the password of your private key")
    options = _options(listener, user, password, certificates, secrets)
    java = {"bootstrap.servers": listener.bootstrap, **client_properties(options)}
    head = _head(cluster, listener, missing)
    if own and secrets and certificates.own:
        owner = f" ({certificates.owner})" if certificates.owner else ""
        head += f"# {OWN_FILE} holds the private key of kafka_client_security{owner}.\n"
    beside = {key: value for key, value in options.items() if key != "ssl_ca"}
    if listener.has_tls and certificates.ca:
        beside["ssl_ca"] = CA_FILE
    secret = password is not None or bool(own and secrets and certificates.key_password)
    of_program = json.dumps(_librdkafka(listener, options), indent=2, sort_keys=True) + "\n"
    of_kcat = "".join(
        f"{key}={value}\n" for key, value in sorted(_librdkafka(listener, beside).items())
    )
    files = [
        File("client.properties", head + properties_text(java), secret),
        File("librdkafka.json", of_program, secret),
        File("librdkafka.properties", head + _RELATIVE * ("ssl_ca" in beside) + of_kcat, secret),
        File("client.py", head + program),
    ]
    if listener.has_tls and certificates.ca:
        files.append(File(CA_FILE, certificates.ca + "\n"))
    if own and secrets and certificates.own:
        files.append(File(OWN_FILE, certificates.own, True))
    return [replace(each, path=f"{listener.name}/{each.path}") for each in files]


def stale_key(
    listener: Listener, known: Certificates, certificates: Certificates, secrets: bool
) -> List[File]:
    """The file with the key that we know, where another run may have left it and this one writes none.

    `known`: before `for_user`. What somebody has filled in himself is no such file.
    """
    if not known.own or (listener.has_tls and secrets and certificates.own):
        return []
    return [File(f"{listener.name}/{OWN_FILE}", known.own, True)]


def _options(
    listener: Listener,
    user: Optional[User],
    password: Optional[str],
    certificates: Certificates,
    secrets: bool,
) -> Dict[str, Any]:
    """Connection options, as the modules take them."""
    options: Dict[str, Any] = {"security_protocol": listener.protocol}
    if listener.has_users:
        name = user.name if user else "FILL-IN-USER"
        options["sasl_mechanism"] = user.mechanism if user else "PLAIN"
        options["sasl_username"] = name
        options["sasl_password"] = f"FILL-IN-PASSWORD-OF-{name}" if password is None else password
    if listener.has_tls:
        if certificates.ca:
            options["ssl_ca"] = certificates.ca + "\n"
        if certificates.wanted:
            options["ssl_certificate"] = options["ssl_key"] = OWN_FILE
            if certificates.key_password:
                options["ssl_key_password"] = (
                    certificates.key_password if secrets else "FILL-IN-PASSWORD-OF-YOUR-KEY"
                )
        options["ssl_check_hostname"] = certificates.check_hostname
    return options


def _librdkafka(listener: Listener, options: Mapping[str, Any]) -> Dict[str, Any]:
    connection = Connection(parse_addresses([listener.bootstrap]), **options)
    settings = librdkafka_settings(connection)
    return {key: value for key, value in settings.items() if key not in _OURS}


_RELATIVE = "# Start the client in this folder, or write the paths of the files here.\n"


def _head(cluster: str, listener: Listener, missing: Sequence[str]) -> str:
    whom = f", for {', '.join(listener.audience)}" if listener.audience else ""
    lines = [
        f"Listener {listener.name} of the cluster {cluster}{whom}.",
        "Written by playbooks/client.yml of kafkaops.cluster, which writes it anew: change a copy.",
        *(f"Fill in {each}." for each in missing),
    ]
    return "".join(f"# {line}\n" for line in lines)

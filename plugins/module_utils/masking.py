# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The one place that knows what a secret is, and how it is hidden wherever something is shown.

Pure text. Names decide: a setting whose name contains one of `SECRET_NAME_PARTS` or ends in one of
`SECRET_NAME_ENDS`. So does the place in front of an address: the password of `user:password@host`, and
a user alone, who may be a token; and the first line of a private key.

A name that is added here changes where the roles write a setting and how its meaning is kept, see
`_in_todays_form` in `instance/generation.py`.
"""

from __future__ import annotations

import re
from typing import Any, Iterator

HIDDEN = "(hidden)"
SECRET_NAME_PARTS = (
    "password",
    "passwd",
    "secret",
    "superdigest",
    "jaas.config",
    "keystore.key",
    "access.key",
    "accesskey",
    "account.key",
    "api.key",
    "apikey",
    "master.key",
    "private.key",
    "privatekey",
    "passphrase",
    "credential",
    "signature",
)
# At the end only: delegation.token.max.lifetime.ms, a URL of tokens and the place of a store of keys are no
# secrets.
SECRET_NAME_ENDS = ("token", "pwd", "sig", "pass", "encryption.key", "encryptionkey")
# The setting of a unit whose lines are assignments, each with a value of its own form.
_ASSIGNMENTS = "Environment"
# The option of kafka_configs that holds secrets by the names of their settings.
_NAMED = "secrets"
# What stands before the last @ of an address: a password may have one, too, but no blank and no slash.
_URL_PASSWORD = re.compile(r"(?<=//)([^\s/@:]*):[^\s/]+@")
# One with a slash is in no URL that works, but somebody will have pasted it: all to the last @ of the word is hidden,
# unless a port comes first.
_URL_PASTED = re.compile(
    r"""(?<=//)([^\s/@:]*):(?!\(hidden\)@)(?!\d+(?:[/?#,;"'\]\s]|$))[^\s]+@""",
)
_URL_USER = re.compile(r"(?<=//)[^\s/@:]+@")
# A private key is known by its first line, under whatever name; one that is cut off reaches to the end.
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)", re.DOTALL
)
# The name in name=value, name: value and "name": value inside a longer text (a command line, an option,
# a log line, JSON), and the value; a quote that nobody closes reaches to the end.
_NAME = re.compile(r"""(?<![\w.\-])(?P<name>[\w.\-]+)(?:\\*["'])?\s*[=:]\s*""")
_VALUE = re.compile(
    r"""\\+".*?(?:\\+"|$)|"(?:[^"\\]|\\.)*(?:"|$)|'[^']*(?:'|$)|[\[{].*|[^\s,;"']+""", re.DOTALL
)


def is_secret(name: str) -> bool:
    """Tell whether the value of the setting `name` must never be shown."""
    return mentions_secret(name) or _plain(name).endswith(SECRET_NAME_ENDS)


def mentions_secret(text: str) -> bool:
    """Tell whether any part of the text is what the names of secrets have in them."""
    plain = _plain(text)
    return any(part in plain or part in str(text).lower() for part in SECRET_NAME_PARTS)


def _plain(name: Any) -> str:
    return str(name).lower().replace("_", ".").replace("-", ".")


def masked_url(text: str) -> str:
    """Return the text with the passwords of its URLs hidden, and everything else as it is."""
    for password in (_URL_PASSWORD, _URL_PASTED):
        text = password.sub(rf"\1:{HIDDEN}@", text)
    return _URL_USER.sub(f"{HIDDEN}@", text)


def masked_text(text: str) -> str:
    """Return free text (a URL, a JVM option, a message) with the values of secrets hidden.

    `-Djavax.net.ssl.keyStorePassword=x` becomes `-Djavax.net.ssl.keyStorePassword=(hidden)`,
    `https://bob:x@host/` becomes `https://bob:(hidden)@host/`, `https://x@host/` `https://(hidden)@host/`.
    """
    text = _PRIVATE_KEY.sub(HIDDEN, masked_url(text))
    shown, at = [], 0
    while found := _NAME.search(text, at):
        value = _VALUE.match(text, found.end()) if is_secret(found["name"]) else None
        shown += [text[at : found.end()], HIDDEN if value else ""]
        # What is not a secret may hold some: -javaagent:a.jar=password=x.
        at = value.end() if value else found.end()
    return "".join([*shown, text[at:]])


def masked_option(option: str) -> str:
    """Return one option of a command line as it may be shown.

    What follows the name of a secret is its value to the end, whatever characters it has: no shell reads
    it. `-Dkey.password=a,b;c d` becomes `-Dkey.password=(hidden)`. Where only the text around the first
    `=` mentions one, all behind that is hidden.
    """
    text = _PRIVATE_KEY.sub(HIDDEN, masked_url(option))
    for found in _names(text):
        if is_secret(found["name"]) and found.end() < len(text):
            return f"{text[: found.end()]}{HIDDEN}"
    name, equals, value = text.partition("=")
    return f"{name}={HIDDEN}" if equals and value and mentions_secret(option) else text


def _names(text: str) -> Iterator["re.Match[str]"]:
    at = 0
    while found := _NAME.search(text, at):
        yield found
        at = found.end()


def masked(name: str, value: Any) -> Any:
    """Return the value of the setting `name` as it may be shown; works into mappings and lists.

    Empty values and booleans stay: they say that there is no secret, or whether one is wanted.
    """
    if is_secret(name):
        return _hidden(value, named=name == _NAMED)
    if isinstance(value, dict):
        return {key: masked(str(key), item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(name, item) for item in value]
    if not isinstance(value, str):
        return value
    one = value[:1] == "-" or name == _ASSIGNMENTS
    return masked_option(value) if one else masked_text(value)


def _hidden(value: Any, named: bool = False) -> Any:
    """A secret of any type, of which the type stays: who reads it has to refuse a mapping or a list.

    `named`: the keys of a mapping stay, too. Else they may be the secret: YAML reads `{x}` as `{x: null}`.
    """
    if isinstance(value, dict):
        return {key if named else HIDDEN: _hidden(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_hidden(item) for item in value]
    return value if value in (None, "") or isinstance(value, bool) else HIDDEN

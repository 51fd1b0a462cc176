# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""What one start of a JVM service is made of, as a value: the generation.

A generation is everything that decides how a process behaves: release, Java, options, environment,
configuration files and the settings of its service. Its fingerprint is taken over that meaning and not
over the text of our templates, so a new release of this collection alone never makes an instance
"restart pending". Pure: no files, no processes.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.java_options import (
    public_options,
    secret_options_text,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    parse_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    HIDDEN,
    is_secret,
    masked,
    masked_option,
)

PROPERTIES_SUFFIXES = (".properties", ".cfg")
# The file of options that hold a secret, as the roles name it.
SECRET_OPTIONS = "jvm.options"
# Options of the JVM that a later release of the collection may change without a restart.
DEFAULTS = "default_options"
Meaning = Dict[str, Any]


@dataclass(frozen=True)
class Generation:
    """One immutable set of what a start needs.

    The meaning, whose change is a reason to restart: `files` maps a file name to its text, apart from
    those in `unwatched` (our own logging configuration, whose settings travel as JVM options).
    `service` holds the settings of the service that an operator chooses, by the service manager's name
    for them: {"LimitNOFILE": "100000"}.

    Written beside it, but no reason to restart: `default_options`, which the collection gives the JVM as
    long as nobody chooses others, and `definition`, the text of the unit or program, which take effect
    with the next start; `console`, the file that the process's output is appended to, empty where the
    service manager writes it; `ready`, the probes that this generation answers when it has started;
    `cds_archive`, where a class-data archive is kept that makes later starts quicker; `guard`, a Python
    file among `files` and its arguments, run with `before-start` ahead of the JVM, and by a unit with
    `after-exit`; `guard_beside` are the words with which it runs beside the JVM, as long as that lives, one
    process each: `watch` where nobody runs anything after an exit, `hanging` where it was asked for.
    """

    release: str
    java_home: str
    main_class: str
    classpath: str
    jvm_options: Tuple[str, ...] = ()
    default_options: Tuple[str, ...] = ()
    arguments: Tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    unwatched: Tuple[str, ...] = ()
    service: Mapping[str, str] = field(default_factory=dict)
    definition: str = ""
    ready: Tuple[Mapping[str, Any], ...] = ()
    cds_archive: str = ""
    console: str = ""
    guard: Tuple[str, ...] = ()
    guard_beside: Tuple[str, ...] = ()

    def meaning(self) -> Meaning:
        """Return the JSON-able value that the fingerprint is taken over; secrets only as digests.

        Its DEFAULTS are told to whoever reads it, and are no part of the fingerprint.
        """
        return {
            "release": self.release,
            "java_home": self.java_home,
            "main_class": self.main_class,
            "classpath": self.classpath,
            "jvm_options": list(self.jvm_options),
            DEFAULTS: list(self.default_options),
            "arguments": list(self.arguments),
            "environment": {
                key: _digest(item) if is_secret(key) else item
                for key, item in sorted(self.environment.items())
            },
            "files": {
                name: _file_meaning(name, text)
                for name, text in sorted(self.files.items())
                if name not in self.unwatched
            },
            "service": {key: str(value) for key, value in sorted(self.service.items())},
        }

    @property
    def fingerprint(self) -> str:
        """Return the 16 hexadecimal digits that name this generation."""
        return fingerprint(self.meaning())


def fingerprint(meaning: Meaning) -> str:
    """Return the fingerprint of a generation's meaning (see `Generation.meaning`)."""
    counted = {key: value for key, value in meaning.items() if key != DEFAULTS}
    return _digest(json.dumps(counted, sort_keys=True))[:16]


def _digest(text: Any) -> str:
    return hashlib.sha256(str(text).encode("utf-8")).hexdigest()


def _file_meaning(name: str, text: str) -> Any:
    if name.endswith(PROPERTIES_SUFFIXES):
        return {
            key: f"sha256:{_digest(value)}" if is_secret(key) else value
            for key, value in parse_properties(text).items()
        }
    return f"sha256:{_digest(text)}"


# ---------------------------------------------------------------- reasons to restart


def reasons(before: Optional[Meaning], after: Meaning) -> List[str]:
    """Return, in words, what differs between two meanings; `before` None is a first start.

    Example: ["server.properties: num.io.threads 8 -> 16", "release kafka_2.13-3.8.1 -> kafka_2.13-3.9.2"].
    """
    if before is None:
        return ["never started"]
    before = _in_todays_form(before, after)
    found = []
    for name in ("release", "java_home", "main_class", "classpath"):
        old, new = before.get(name) or "", after.get(name) or ""
        if old != new:
            if name == "release":
                old, new = os.path.basename(old), os.path.basename(new)
            found.append(f"{name.replace('_', ' ')} {old} -> {new}")
    for name in ("jvm_options", "arguments"):
        old, new = before.get(name) or [], after.get(name) or []
        if old != new:
            gone = " ".join(masked_option(item) for item in old if item not in new)
            come = " ".join(masked_option(item) for item in new if item not in old)
            change = (
                f"{gone or '(unset)'} -> {come or '(unset)'}"
                if gone or come
                else "in another order"
            )
            found.append(f"{name.replace('_', ' ')} {change}")
    for name in ("environment", "service"):
        found += _mapping_reasons(name, before.get(name) or {}, after.get(name) or {})
    old_files, new_files = before.get("files") or {}, after.get("files") or {}
    for name in sorted(set(old_files) | set(new_files)):
        old, new = old_files.get(name), new_files.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            found += _mapping_reasons(name, old, new)
        else:
            what = "added" if old is None else "removed" if new is None else "changed"
            found.append(f"{name} {what}")
    return found


def _mapping_reasons(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> List[str]:
    found = []
    for key in sorted(set(old) | set(new)):
        if old.get(key) == new.get(key):
            continue
        shown = [masked(key, side.get(key, "(unset)")) for side in (old, new)]
        if is_secret(key) or shown[0] == shown[1]:
            found.append(f"{name}: {key} changed")
        else:
            found.append(f"{name}: {key} {shown[0]} -> {shown[1]}")
    return found


def _in_todays_form(meaning: Meaning, wanted: Meaning) -> Meaning:
    """Return a stored meaning as today's code would have written it, so that nothing restarts for its form.

    Earlier releases kept the unit's whole text in it: only the settings that are `wanted` today are looked
    up there. They passed options with a secret on the command line, and knew fewer names of secrets: what
    they kept in clear is compared by its digest.
    """
    today = {key: value for key, value in meaning.items() if key != "unit"}
    if "unit" in meaning:
        today["service"] = _settings_of_unit(meaning["unit"], wanted.get("service") or {})
    if "environment" in meaning:
        today["environment"] = _hidden(meaning["environment"] or {}, wanted.get("environment"), "")
    wanted_files = wanted.get("files") or {}
    files = {
        name: _hidden(content, wanted_files.get(name), "sha256:")
        for name, content in (meaning.get("files") or {}).items()
    }
    options = meaning.get("jvm_options")
    secret = secret_options_text(options or [])
    if options and secret:
        # One that had a file of secrets already has another one today; which text, no digest tells.
        files.setdefault(SECRET_OPTIONS, f"sha256:{_digest(secret)}")
        options = public_options(options)
        wanted_options = wanted.get("jvm_options") or []
        options += [item for item in wanted_options if item[:1] == "@" and item not in options]
    return {**today, "jvm_options": options, "files": files}


def _settings_of_unit(unit: Any, wanted: Mapping[str, Any]) -> Dict[str, str]:
    """Return the settings of a stored unit's text that are wanted today."""
    values: Dict[str, List[str]] = {}
    for line in ((unit or {}).get("text") or "").splitlines():
        key, equals, value = line.partition("=")
        if equals and key in wanted:
            values.setdefault(key, []).append(value.strip())
    return {key: " ".join(found) for key, found in values.items()}


def _hidden(content: Any, wanted: Any, prefix: str) -> Any:
    """Return stored settings with a digest for each secret, except what is stored as it is wanted.

    Whether a text is a digest already cannot be seen, since a token may look like one.
    """
    if not isinstance(content, dict):
        return content
    settled = wanted if isinstance(wanted, dict) else {}
    return {
        key: (
            value
            if not is_secret(key) or value == settled.get(key)
            else f"{prefix}{_digest(value)}"
        )
        for key, value in content.items()
    }


def changed_settings(
    before: Meaning, after: Meaning
) -> Optional[Dict[str, Dict[str, Optional[str]]]]:
    """Return the settings that differ, key -> {before, after}, if nothing else does; otherwise None.

    None as a value: not set on that side. None as a result also where it is more than one file, or
    where a secret differs: nobody may show it.
    """
    before = _in_todays_form(before, after)
    if any(before.get(name) != after.get(name) for name in {*before, *after} - {"files", DEFAULTS}):
        return None
    old, new = before.get("files") or {}, after.get("files") or {}
    names = [name for name in {*old, *new} if old.get(name) != new.get(name)]
    if not names:
        return {}
    one, other = old.get(names[0]), new.get(names[0])
    if len(names) > 1 or not isinstance(one, dict) or not isinstance(other, dict):
        return None
    keys = [key for key in sorted({*one, *other}) if one.get(key) != other.get(key)]
    if any(is_secret(key) for key in keys):
        return None
    return {key: {"before": one.get(key), "after": other.get(key)} for key in keys}


# ---------------------------------------------------------------- what may be shown


# A short password in a file that is known otherwise could be guessed by a digest that is always the same.
_OF_THIS_RUN = os.urandom(16).hex()


def shown_file(name: str, text: Optional[str]) -> str:
    """Return a file's text as it may be shown in a diff; of what is not a properties file only that it differs."""
    if text is None:
        return ""
    if not name.endswith(PROPERTIES_SUFFIXES):
        return f"{HIDDEN}, in this run called {_digest(_OF_THIS_RUN + text)[:8]}\n"
    return shown_lines(text)


def shown_lines(text: str) -> str:
    """Return lines of `key=value` with the values of secrets hidden."""
    lines = []
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        lines.append(f"{key}={masked(key, value)}" if equals else line)
    return "\n".join(lines) + "\n"


def shown_start(meaning: Meaning) -> str:
    """Return what a meaning says about the start itself, one setting a line."""
    lines = [f"release: {os.path.basename(meaning.get('release') or '')}"]
    lines.append(f"java_home: {meaning.get('java_home')}")
    for name in ("jvm_options", DEFAULTS):
        lines += [f"option: {masked_option(item)}" for item in meaning.get(name) or []]
    lines += [f"environment: {key}" for key in meaning.get("environment") or {}]
    lines += [
        f"service: {key}={masked(key, value)}"
        for key, value in (meaning.get("service") or {}).items()
    ]
    return "\n".join(lines) + "\n"

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one start of a JVM service is made of, as a value: the generation.

A generation is everything that decides how a process behaves: release, Java, options, environment and
configuration files. Its fingerprint is taken over that meaning and not over the text of our templates,
so a new release of this collection alone never makes an instance "restart pending".

Pure: no files, no processes. Private to the collection: names may change without notice.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field

from ansible_collections.kafkaops.cluster.plugins.module_utils._config_kafka import (
    is_secret,
    parse_properties,
)

PROPERTIES_SUFFIXES = (".properties", ".cfg")
HIDDEN = "(hidden)"
GUARD = "guard"


@dataclass(frozen=True)
class Generation:
    """One immutable set of what a start needs.

    `files` maps a file name to its text; those in `unwatched` are written but are no reason to restart
    (our own logging configuration, whose settings travel as JVM options). `unit` is what the service
    manager is told. `cds_archive` is where a class-data archive is kept that makes later starts quicker.
    `guard` is a Python file among `files` and its arguments, run with `before-start` ahead of the JVM, and
    by a unit with `ready` and `after-exit`; `guard_watches` where there is no unit: then it also runs with
    `watch` beside the JVM. None of these changes what a JVM does, and they are no part of the meaning.
    """

    release: str
    java_home: str
    main_class: str
    classpath: str
    jvm_options: tuple = ()
    arguments: tuple = ()
    environment: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    unwatched: tuple = ()
    unit: dict = field(default_factory=dict)
    cds_archive: str = ""
    guard: tuple = ()
    guard_watches: bool = False

    def meaning(self):
        """Return the JSON-able value that the fingerprint is taken over; secrets only as digests."""
        value = asdict(self)
        value["files"] = {
            name: _file_meaning(name, text)
            for name, text in sorted(self.files.items())
            if name not in self.unwatched
        }
        del value["unwatched"], value["cds_archive"], value["guard"], value["guard_watches"]
        value["environment"] = {
            key: _digest(item) if is_secret(key) else item
            for key, item in sorted(self.environment.items())
        }
        return json.loads(json.dumps(value))

    @property
    def fingerprint(self):
        """Return the 16 hexadecimal digits that name this generation."""
        return fingerprint(self.meaning())


def fingerprint(meaning):
    """Return the fingerprint of a generation's meaning (see `Generation.meaning`)."""
    return _digest(json.dumps(meaning, sort_keys=True))[:16]


def _digest(text):
    return hashlib.sha256(str(text).encode("utf-8")).hexdigest()


def _file_meaning(name, text):
    if name.endswith(PROPERTIES_SUFFIXES):
        return {
            key: "sha256:" + _digest(value) if is_secret(key) else value
            for key, value in parse_properties(text).items()
        }
    return "sha256:" + _digest(text)


def reasons(before, after):
    """Return, in words, what differs between two meanings; `before` None is a first start.

    Example: ["server.properties: num.io.threads 8 -> 16", "release kafka_2.13-3.8.1 -> kafka_2.13-3.9.2"].
    """
    if before is None:
        return ["never started"]
    found = []
    for name in ("release", "java_home", "main_class", "classpath"):
        if before.get(name) != after.get(name):
            old, new = before.get(name) or "", after.get(name) or ""
            if name == "release":
                old, new = os.path.basename(old), os.path.basename(new)
            found.append("%s %s -> %s" % (name.replace("_", " "), old, new))
    for name in ("jvm_options", "arguments"):
        old, new = before.get(name) or [], after.get(name) or []
        if old != new:
            gone = [masked_option(item) for item in old if item not in new]
            added = [masked_option(item) for item in new if item not in old]
            found.append(
                "%s %s"
                % (
                    name.replace("_", " "),
                    " ".join(["-" + item for item in gone] + ["+" + item for item in added])
                    or "in another order",
                )
            )
    for name in ("environment", "unit"):
        found += _mapping_reasons(name, before.get(name) or {}, after.get(name) or {})
    old_files, new_files = before.get("files") or {}, after.get("files") or {}
    for name in sorted(set(old_files) | set(new_files)):
        old, new = old_files.get(name), new_files.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            found += _mapping_reasons(name, old, new)
        else:
            found.append(
                "%s %s"
                % (name, "added" if old is None else "removed" if new is None else "changed")
            )
    return found


def _mapping_reasons(name, old, new):
    found = []
    for key in sorted(set(old) | set(new)):
        if old.get(key) == new.get(key):
            continue
        if is_secret(key):
            found.append("%s: %s changed" % (name, key))
        else:
            found.append(
                "%s: %s %s -> %s" % (name, key, old.get(key, "(unset)"), new.get(key, "(unset)"))
            )
    return found


def masked_text(name, text):
    """Return a file's text as it may be shown in a diff."""
    if text is None:
        return ""
    if not name.endswith(PROPERTIES_SUFFIXES):
        return "sha256:%s\n" % _digest(text)
    lines = []
    for line in text.splitlines():
        key = line.split("=", 1)[0]
        lines.append("%s=%s" % (key, HIDDEN) if "=" in line and is_secret(key) else line)
    return "\n".join(lines) + "\n"


def masked_option(option):
    """Return a JVM option as it may be shown: -Djavax.net.ssl.keyStorePassword=(hidden)."""
    key, equals, dummy = option.partition("=")
    return "%s=%s" % (key, HIDDEN) if equals and is_secret(key) else option


# One process of those that share an archive dumps its classes when it exits; the next start takes the
# dump over once its writer is gone. A dump cut off by a kill is refused by the JVM, which then starts
# without. Several may start at once: what another one has done meanwhile is no failure (`set -e`), and a
# claim appears whole (`ln`). The path has no blanks: it is used unquoted.
CLASS_DATA_SHARING = """archive=%s
cds=
mkdir -p "${archive%%/*}"
writer=$(cat "$archive.claim" 2>/dev/null || true)
if [ ! -f "$archive" ] && [ "$writer" ] && ! kill -0 "$writer" 2>/dev/null; then
  mv -f "$archive.$writer" "$archive" 2>/dev/null || true
  if [ "$(cat "$archive.claim" 2>/dev/null)" = "$writer" ]; then rm -f "$archive.claim"; fi
fi
if [ -f "$archive" ]; then
  cds="-Xshare:auto -XX:SharedArchiveFile=$archive"
else
  echo "$$" > "$archive.claim.$$"
  if ln "$archive.claim.$$" "$archive.claim" 2>/dev/null; then
    cds="-XX:ArchiveClassesAtExit=$archive.$$ -Xlog:cds=off -Xlog:cds+dynamic=off"
  fi
  rm -f "$archive.claim.$$"
fi
"""


def launch_script(generation, config_dir, state_dir):
    """Return the shell script that the service manager runs: record the start, then become the JVM.

    The record (`started.json`: pid, start time in clock ticks, fingerprint) is what "restart pending"
    and the search for orphans rely on, whoever started the process.
    """
    exports = "".join(
        "export %s=%s\n" % (key, _quote(value))
        for key, value in sorted(generation.environment.items())
    )
    words = list(generation.jvm_options)
    words += ["-cp", os.path.join(generation.release, generation.classpath), generation.main_class]
    words += [
        item.replace("{conf}", os.path.join(config_dir, "current")) for item in generation.arguments
    ]
    guard = _quote(os.path.join(config_dir, "current", GUARD))
    return """#!/bin/sh
# Written by kafkaops.cluster. Started by the service manager, by nobody else.
set -eu
umask 027
state=%(state)s
mkdir -p "$state"
line=$(cat "/proc/$$/stat")
# Field 2 may hold blanks; count from behind it: the start time is field 22.
set -- ${line##*) }
printf '{"pid": %%s, "start_ticks": %%s, "started_at": %%s, "fingerprint": "%(fingerprint)s"}\\n' \\
  "$$" "${20}" "$(date +%%s)" > "$state/started.json.$$"
if [ -f "$state/started.json" ]; then cp -f "$state/started.json" "$state/previous.json"; fi
mv -f "$state/started.json.$$" "$state/started.json"
%(guard)s%(exports)s%(cds)s%(watch)sexec %(java)s $cds \\
  %(command)s
""" % {
        "state": _quote(state_dir),
        "fingerprint": generation.fingerprint,
        "guard": "%s before-start || true\n" % guard if generation.guard else "",
        # It says what it did in the log; the pipe to the service manager must end with the JVM.
        "watch": (
            "%s watch </dev/null >/dev/null 2>&1 &\n" % guard if generation.guard_watches else ""
        ),
        "exports": exports,
        "cds": (
            CLASS_DATA_SHARING % _quote(generation.cds_archive)
            if generation.cds_archive
            else "cds=\n"
        ),
        "java": _quote(os.path.join(generation.java_home, "bin", "java")),
        "command": " \\\n  ".join(_quote(word) for word in words),
    }


def guard_script(generation, config_dir, python):
    """Return the shell script that runs a generation's guard, with `python` or the system's.

    A unit's sandbox may hide the Python that Ansible uses; without any, nothing is guarded.
    """
    directory = os.path.join(config_dir, "current")
    words = [os.path.join(directory, generation.guard[0])]
    words += [item.replace("{conf}", directory) for item in generation.guard[1:]]
    return """#!/bin/sh
# Written by kafkaops.cluster. Usage: %(name)s before-start|ready|watch|after-exit
for python in %(python)s /usr/bin/python3; do
  if [ -x "$python" ]; then
    exec "$python" %(words)s "$@"
  fi
done
echo "%(name)s: no Python to run it with, so nothing is done"
""" % {
        "name": GUARD,
        "python": _quote(python),
        "words": " ".join(_quote(word) for word in words),
    }


def _quote(word):
    return "'%s'" % str(word).replace("'", "'\\''")

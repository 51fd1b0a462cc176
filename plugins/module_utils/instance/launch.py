# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The shell scripts of a generation: how the service manager starts the JVM, and how the guard is run. Pure."""

from __future__ import annotations

import os

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.generation import Generation

LAUNCH = "launch"
GUARD = "guard"

# Measured with three brokers that start together on two cores: started after 2.9 s with it, 6.4 s without.
# One process of those that share an archive dumps its classes when it exits; the next start takes the
# dump over once its writer is gone. A dump cut off by a kill is refused by the JVM, which then starts
# without. Several may start at once: what another one has done meanwhile is no failure (`set -e`), and a
# claim appears whole (`ln`). Where nothing may be written, as in a unit for which nobody has made the directory, the
# JVM starts without. The path has no blanks: it is used unquoted.
CLASS_DATA_SHARING = """archive={archive}
cds=
mkdir -p "${{archive%/*}}" 2>/dev/null || true
writer=$(cat "$archive.claim" 2>/dev/null || true)
if [ ! -f "$archive" ] && [ "$writer" ] && ! kill -0 "$writer" 2>/dev/null; then
  mv -f "$archive.$writer" "$archive" 2>/dev/null || true
  if [ "$(cat "$archive.claim" 2>/dev/null)" = "$writer" ]; then rm -f "$archive.claim"; fi
fi
if [ -f "$archive" ]; then
  cds="-Xshare:auto -XX:SharedArchiveFile=$archive"
elif [ -w "${{archive%/*}}" ]; then
  echo "$$" > "$archive.claim.$$"
  if ln "$archive.claim.$$" "$archive.claim" 2>/dev/null; then
    cds="-XX:ArchiveClassesAtExit=$archive.$$ -Xlog:cds=off -Xlog:cds+dynamic=off"
  fi
  rm -f "$archive.claim.$$"
fi
"""

# As the account: what the service manager opens, it opens as root, also what a link there leads to. Where
# nothing can be written, the output goes to the service manager.
CONSOLE_OUTPUT = """if (exec >>{console}) 2>/dev/null; then exec >>{console} 2>&1; fi
"""
# What the JVM prints, or a plug-in in it, goes there for months: the file is emptied beside it, and its last
# part kept. The unit does it before a start. A child of the JVM, it ends with it, or with the unit.
CONSOLE_BOUND = """console={console}
{{
  while sleep {seconds} && kill -0 "$$"; do
    find "$console" -size +10M -exec cp -f {{}} {{}}.1 \\; -exec truncate --size=0 {{}} \\; || true
  done
}} </dev/null >/dev/null 2>&1 &
"""
CONSOLE_LOOK_SECONDS = 30.0


def launch_script(generation: Generation, config_dir: str, state_dir: str) -> str:
    """Return the shell script that the service manager runs: record the start, then become the JVM.

    The record (`started.json`: pid, start time in clock ticks, fingerprint) is what "restart pending"
    and the search for orphans rely on, whoever started the process.
    """
    current = os.path.join(config_dir, "current")
    guard = quoted(os.path.join(current, GUARD))
    # Of two that contradict each other Java takes the last: the one that was chosen.
    words = [*generation.default_options, *generation.jvm_options]
    words += ["-cp", os.path.join(generation.release, generation.classpath), generation.main_class]
    words += [item.replace("{conf}", current) for item in generation.arguments]
    before = ""
    if generation.guard:
        before = f"{guard} before-start || true\n"
    for key, value in sorted(generation.environment.items()):
        before += f"export {key}={quoted(value)}\n"
    if generation.cds_archive:
        before += CLASS_DATA_SHARING.format(archive=quoted(generation.cds_archive))
    else:
        before += "cds=\n"
    for word in generation.guard_beside:
        # It says what it did in the log; the pipe to the service manager must end with the JVM.
        before += f"{guard} {word} </dev/null >/dev/null 2>&1 &\n"
    if generation.console:
        before += CONSOLE_BOUND.format(
            console=quoted(generation.console), seconds=CONSOLE_LOOK_SECONDS
        )
    java = quoted(os.path.join(generation.java_home, "bin", "java"))
    command = " \\\n  ".join(quoted(word) for word in words)
    return f"""#!/bin/sh
# Written by kafkaops.cluster. Started by the service manager, by nobody else.
set -eu
umask 027
{_console(generation)}state={quoted(state_dir)}
mkdir -p "$state"
line=$(cat "/proc/$$/stat")
# Field 2 may hold blanks; count from behind it: the start time is field 22.
set -- ${{line##*) }}
# Of starts that a full disk has ended here: each leaves one.
rm -f "$state"/started.json.*
printf '{{"pid": %s, "start_ticks": %s, "started_at": %s, "fingerprint": "{generation.fingerprint}"}}\\n' \\
  "$$" "${{20}}" "$(date +%s)" > "$state/started.json.$$"
if [ -f "$state/started.json" ]; then cp -f "$state/started.json" "$state/previous.json"; fi
mv -f "$state/started.json.$$" "$state/started.json"
{before}exec {java} $cds \\
  {command}
"""


def guard_script(generation: Generation, config_dir: str, python: str) -> str:
    """Return the shell script that runs a generation's guard, with `python` or the system's.

    A unit's sandbox may hide the Python that Ansible uses; without any, nothing is guarded.
    """
    directory = os.path.join(config_dir, "current")
    words = [os.path.join(directory, generation.guard[0])]
    words += [item.replace("{conf}", directory) for item in generation.guard[1:]]
    return f"""#!/bin/sh
# Written by kafkaops.cluster. Usage: {GUARD} before-start|watch|hanging|after-exit|leave
umask 027
{_console(generation)}for python in {quoted(python)} /usr/bin/python3; do
  if [ -x "$python" ]; then
    exec "$python" {' '.join(quoted(word) for word in words)} "$@"
  fi
done
echo "{GUARD}: no Python to run it with, so nothing is done"
"""


def _console(generation: Generation) -> str:
    if not generation.console:
        return ""
    return CONSOLE_OUTPUT.format(console=quoted(generation.console))


def quoted(word: object) -> str:
    """Return a word in single quotes, as the shell takes it whatever it holds."""
    escaped = str(word).replace("'", "'\\''")
    return f"'{escaped}'"

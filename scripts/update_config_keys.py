#!/usr/bin/env python
# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the tables of configuration keys that the preflight and the roles read, one per version.

For a maintainer, after scripts/update_locks.py. Kafka prints its own documentation as HTML
(`kafka.server.KafkaConfig` for brokers, `LogConfig` for topics); this keeps type, default, valid
values and update mode of each key. The archives come from the cache, so run the `distribution`
module (playbooks/fetch.yml) for the version first. Needs Java.

    scripts/update_config_keys.py              # every Kafka that has a lock
    scripts/update_config_keys.py --check      # exit 1 if a committed table differs
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "roles" / "jvm_service" / "files" / "locks"
TABLES = ROOT / "roles" / "kafka" / "files" / "config-keys"
BROKER_CLASS = "kafka.server.KafkaConfig"
TOPIC_CLASS = "org.apache.kafka.storage.internals.log.LogConfig"

_ENTRY = re.compile(
    r'<h4>.*?href="[^"]*">([^<]+)</a></h4>\s*<p>(.*?)</p>\s*<table>(.*?)</table>', re.DOTALL
)
_CELL = re.compile(r"<th>([^<]+):</th><td>(.*?)</td>", re.DOTALL)
_DEPRECATED = re.compile(r"\[?deprecated[].:]*\s*(.*)", re.IGNORECASE | re.DOTALL)
# Deprecated since 3.0, though the printed text does not say so.
_SILENTLY_DEPRECATED = {
    "log.message.format.version": "ignored since 3.0, unless inter.broker.protocol.version is older",
    "message.format.version": "ignored since 3.0, unless inter.broker.protocol.version is older",
}
# How the printed cells are called in the tables; importance is left out, nobody needs it.
_FIELDS = {
    "Type": "type",
    "Default": "default",
    "Valid Values": "valid",
    "Update Mode": "update_mode",
    "Server Default Property": "broker_key",
}


def plain(text: str) -> str:
    """Text of an HTML fragment in one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split())


def parse(page: str) -> dict[str, dict[str, str]]:
    """Read the printed HTML: key -> its cells. Empty cells are left out."""
    table = {}
    for key, text, cells in _ENTRY.findall(page):
        entry = {}
        for title, value in _CELL.findall(cells):
            if title in _FIELDS and plain(value):
                entry[_FIELDS[title]] = plain(value)
        # A default of hours may be printed as "604800000 (7 days)"; the number is the value.
        if "default" in entry:
            entry["default"] = re.sub(r"^(-?\d+) \(.*\)$", r"\1", entry["default"])
        deprecated = _DEPRECATED.match(plain(text))
        if deprecated:
            entry["deprecated"] = deprecated.group(1).split(". ")[0].strip(" .")
        elif plain(key) in _SILENTLY_DEPRECATED:
            entry["deprecated"] = _SILENTLY_DEPRECATED[plain(key)]
        table[plain(key)] = entry
    return table


def print_table(main_class: str, libraries: str) -> dict[str, dict[str, str]]:
    """Let Kafka print the keys of one kind."""
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{libraries}/*", main_class]
    page = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    table = parse(page)
    # A change of the printed form must not pass as "no keys".
    if len(table) != page.count("<h4>") or len(table) < 20:
        raise SystemExit(
            f"{main_class}: {page.count('<h4>')} keys printed, {len(table)} understood"
        )
    return table


def table_of(version: str, archive: Path) -> dict:
    """The table of one version, printed by the classes in its archive."""
    with tempfile.TemporaryDirectory() as workdir:
        with tarfile.open(archive) as tar:
            tar.extractall(workdir, filter="data")
        libraries = str(next(Path(workdir).glob("*/libs")))
        broker = print_table(BROKER_CLASS, libraries)
        topic = print_table(TOPIC_CLASS, libraries)
    return {"version": version, "broker": broker, "topic": topic}


def render(table: dict) -> str:
    """JSON with one key a line, sorted, so that two versions compare well."""
    parts = [f'  "version": {json.dumps(table["version"])}']
    for kind in ("broker", "topic"):
        lines = [
            f"    {json.dumps(key)}: {json.dumps(entry)}"
            for key, entry in sorted(table[kind].items())
        ]
        parts.append(f'  "{kind}": {{\n' + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> int:
    """Write or check the tables; the exit status says if all agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    cache = Path(os.environ.get("KAFKAOPS_CACHE") or Path.home() / ".cache" / "kafkaops")
    differing = 0
    for lock in sorted(LOCKS.glob("kafka_*.json")):
        version = json.loads(lock.read_text(encoding="utf-8"))["version"]
        archive = cache / "archives" / f"{lock.stem}.tgz"
        if not archive.exists():
            raise SystemExit(f"{archive} is missing: run playbooks/fetch.yml for {version} first")
        table = table_of(version, archive)
        text = render(table)
        target = TABLES / f"{version}.json"
        differs = not target.exists() or target.read_text(encoding="utf-8") != text
        differing += differs
        if differs and not arguments.check:
            target.write_text(text, encoding="utf-8")
        print(
            f"{version}: {len(table['broker'])} broker keys, {len(table['topic'])} topic keys,"
            f" {'differs' if differs else 'unchanged'}"
        )
    return 1 if arguments.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())

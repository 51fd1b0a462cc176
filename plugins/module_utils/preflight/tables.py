# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Reads what this release of the collection knows: locks and tables of configuration keys."""

from __future__ import annotations

import glob
import json
import os
import re
from typing import Any, Dict

from ansible.module_utils.common.yaml import yaml_load

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration import kafka, zookeeper
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.keys import (
    broker_table,
    zookeeper_table,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.upgrades import parts
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import Versions

LOCK = re.compile(r"^(?:(kafka)_[\d.]+|(zookeeper))-(\d+\.\d+\.\d+)\.json$")


def _load(path: str) -> Any:
    with open(path, encoding="utf-8") as source:
        return json.load(source)


def _known_bad(path: str) -> Dict[str, Any]:
    """version -> {bug, what, remedy} of a role's known-bad-versions.yml."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as source:
        entries = yaml_load(source)
    return {
        version: {key: entry[key] for key in ("bug", "what", "remedy")}
        for entry in entries
        for version in entry["versions"]
    }


def load_versions(roles: str) -> Versions:
    """What the files below the roles directory say; missing files mean no opinion."""
    known = {"kafka": set(), "zookeeper": set()}
    for path in glob.glob(os.path.join(roles, "jvm_service", "files", "locks", "*.json")):
        match = LOCK.match(os.path.basename(path))
        if match:
            known[match.group(1) or match.group(2)].add(match.group(3))
    tables, topic_keys = {}, {}
    folder = os.path.join(roles, "kafka", "files", "config-keys")
    removed_path = os.path.join(folder, "removed.json")
    removed = _load(removed_path) if os.path.exists(removed_path) else {}
    for path in glob.glob(os.path.join(folder, "[0-9]*.json")):
        table = _load(path)
        tables[table["version"]] = broker_table(table, removed, kafka.OWNED_KEYS)
        topic_keys[table["version"]] = table.get("topic") or {}
    zookeeper_path = os.path.join(roles, "zookeeper", "files", "config-keys.json")
    return Versions(
        kafka=tuple(sorted(known["kafka"], key=parts)),
        zookeeper=tuple(sorted(known["zookeeper"], key=parts)),
        broker_tables=tables,
        topic_keys=topic_keys,
        known_bad={
            product: _known_bad(os.path.join(roles, product, "files", "known-bad-versions.yml"))
            for product in known
        },
        zookeeper_table=(
            zookeeper_table(_load(zookeeper_path), zookeeper.OWNED_KEYS)
            if os.path.exists(zookeeper_path)
            else None
        ),
    )

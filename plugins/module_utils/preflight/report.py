# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""What people get of a verdict: the message of the task, and the report of each cluster. Pure."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Mapping, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import json_text
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import reported
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    CLUSTER_NAME,
    Raw,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    ERROR,
    WARNING,
    Problem,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted


def message(findings: Sequence[Problem], hosts: int, enforce: bool) -> str:
    """The verdict over so many hosts in a line; of one that stops the run (`enforce`), each error, too."""
    errors = [each.line() for each in findings if each.level == ERROR]
    warnings = sum(each.level == WARNING for each in findings)
    counts = (
        f"{counted(hosts, 'host')}, {counted(len(errors), 'error')}, {counted(warnings, 'warning')}"
    )
    if errors and enforce:
        head = f"Nothing was changed: the preflight refuses this inventory ({counts})."
        return "\n".join([head, *errors])
    told = "would refuse this inventory" if errors else "has nothing against it"
    return f"The preflight {told}: {counts}."


def reports(
    raws: Iterable[Raw], findings: Sequence[Problem], ids: Mapping[str, Any], written_at: str
) -> Dict[str, Tuple[str, str]]:
    """cluster -> (path, text) of its preflight.json; none of a cluster whose place cannot be known."""
    clusters: Dict[str, Tuple[str, Set[str]]] = {}
    for raw in raws:
        name = str(raw.settings.get("kafka_cluster_name") or "")
        home = raw.settings.get("kafkaops_home")
        named = CLUSTER_NAME.match(name) and name not in (".", "..")
        # a relative one is refused, and must not appear wherever the playbook happens to run
        if named and isinstance(home, str) and os.path.isabs(os.path.expanduser(home)):
            clusters.setdefault(name, (os.path.expanduser(home), set()))[1].add(raw.name)
    texts = {}
    for name, (home, hosts) in sorted(clusters.items()):
        concerned = [reported(each) for each in findings if hosts & set(each.subjects)]
        document = {
            "schema_version": 1,
            "cluster": name,
            "written_at": written_at,
            "ok": not any(each["level"] == ERROR for each in concerned),
            "findings": concerned,
            "ids": {host: ids[host] for host in sorted(hosts) if host in ids},
        }
        path = os.path.join(home, "reports", name, "preflight.json")
        texts[name] = path, json_text(document)
    return texts

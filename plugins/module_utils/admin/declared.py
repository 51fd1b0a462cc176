# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declared state of a cluster: what a run found different, and a running cluster as variables. Pure.

Private to the collection: names may change without notice.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping

from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import some

# Topics and settings of those who move replicas: they come and go by themselves.
_PASSING = ".throttled."
SHOWN = 8


def state_lines(results: Mapping[str, Any], checked: bool = False) -> List[str]:
    """One line for each kind of state that is declared, with the first SHOWN of what differed.

    `results` maps a kind, such as "topics", to what its module returned; one that did not run is left
    out. `checked`: in check mode, so that nothing was changed.
    """
    lines = []
    for kind, result in results.items():
        if "plan" not in result:
            continue
        changes = [f"{each['subject']} ({each['kind']})" for each in result["plan"]["changes"]]
        if changes:
            verb = "would change" if checked else "changed"
            lines.append(f"{kind:<10} {len(changes)} {verb}: {some(changes, SHOWN)}")
        else:
            lines.append(f"{kind:<10} as declared")
    return lines or ["nothing of its state is declared"]


def state_variables(there: Mapping[str, Any]) -> Dict[str, Any]:
    """The state of a running cluster as variables of the role `kafka` that, applied, change nothing.

    `there` has `topics`, `configs`, `quotas`, `acls` as the info modules return them. Topics of Kafka, Connect,
    mirrors and streams are left out, and so is what somebody else sets for a while.
    """
    return {
        "kafka_topics": [_topic(each) for each in there["topics"] if not each["internal"]],
        "kafka_dynamic_configs": list(_configs(there["configs"])),
        "kafka_acls": list(there["acls"]),
        "kafka_quotas": list(there["quotas"]),
    }


def _topic(topic: Mapping[str, Any]) -> Dict[str, Any]:
    own = {
        key: entry["value"]
        for key, entry in sorted(topic["config"].items())
        if entry["source"] == "topic" and _PASSING not in key
    }
    item = {key: topic[key] for key in ("name", "partitions", "replication_factor")}
    return {**item, "config": own} if own else item


def _configs(items: Iterable[Mapping[str, Any]]) -> Iterable[Dict[str, Any]]:
    for item in items:
        kept = {key: value for key, value in item["settings"].items() if _PASSING not in key}
        if kept:
            yield {**item, "settings": kept}

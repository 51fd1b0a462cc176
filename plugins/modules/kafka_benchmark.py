#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_benchmark
short_description: Measure what a cluster can do, and what limits it
version_added: 0.1.0
description:
  - Writes and reads topics of its own, whose names begin with C(kafkaops-drill-benchmark-), and removes them at the end.
  - The first row has the first value of each thing that can vary, each other row differs from it in one value, and the last one is the
    first again.
  - What was acknowledged is counted by offsets. CPU and disks are read from C(/proc) of the machine where the module runs.
  - Each row is a process, which removes its topics also when the module or the playbook is killed.
  - The playbook C(benchmark.yml) uses it.
options:
  part:
    description: V(plan) says what V(measure) would do, and refuses what cannot be done here.
    type: str
    choices: [plan, measure]
    default: measure
  cluster:
    description: Name of the cluster, for messages.
    type: str
    required: true
  vary:
    description: What varies, separated by commas; empty or C(all) for everything, C(first) for the first row alone.
    type: str
    default: ""
  values:
    description:
      - Values by name, several separated by commas, the first row's first. C(mode), C(record_bytes), C(batch_bytes), C(linger_ms), C(compression),
        C(producers), C(consumers), C(groups), C(partitions), C(topics), C(replication), C(brokers), C(retained_bytes), C(flush_messages).
      - One value each have C(seconds) (of load of a row), C(row_bytes) (what a row writes at most) and C(tools) (whether Kafka's own
        tools are asked, too).
    type: dict
    default: {}
  processes:
    description:
      - The process of each broker on this machine by its id, C(pid) and C(start_ticks), as its start record has them. Empty where that could not be
        read, so that the broker is not seen.
    type: dict
    default: {}
  release:
    description: Directory of an unpacked Kafka on this machine, whose tools are a second witness. By default that of a broker of O(processes).
    type: path
  properties:
    description: Properties of the connection for them.
    type: dict
    default: {}
  results:
    description: JSON to write after each row. Earlier ones in its directory are compared with.
    type: path
  progress:
    description: JSON to write after each row, for whoever shows how far it is.
    type: path
  beside:
    description: A process. When it is gone, the module ends.
    type: int
    default: 0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.attributes
  - kafkaops.cluster.attributes.actiongroup_kafka
attributes:
  check_mode:
    support: full
    details: Only plans.
  diff_mode:
    support: none
    details: There is nothing to show.
  idempotent:
    support: none
    details: Each run writes anew.
notes:
  - Needs the rights to Create, Delete, Describe, Read and Write topics, and to Read and Delete groups, with the prefix C(kafkaops-drill-),
    and Describe on the cluster.
seealso:
  - module: kafkaops.cluster.kafka_drill
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Compare acks
  kafkaops.cluster.kafka_benchmark:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    cluster: mine
    vary: mode
    values:
      record_bytes: 1000
      seconds: 5
"""

RETURN = r"""
lines:
  description: With O(part=plan) what would be done, otherwise the table, for people.
  returned: always
  type: list
  elements: str
plan:
  description: The C(rows), and how many C(bytes) at most and C(seconds) about they take.
  returned: always
  type: dict
  sample: {"bytes": 1207959552, "seconds": 36}
results:
  description:
    - The rows. C(ratio) to the first row, C(load) as it was measured, C(limit) and C(why), and the C(change) against earlier runs.
    - What could not be measured is V(null).
  returned: when it has measured
  type: list
  elements: dict
witness:
  description: What Kafka's own tools have measured, or C(why) they have not.
  returned: when it has measured
  type: dict
good:
  description: Whether all rows were measured, and everything acknowledged is there.
  returned: when it has measured
  type: bool
  sample: true
summary:
  description: The last of the lines.
  returned: when it has measured
  type: str
  sample: 15 rows measured; what was acknowledged is there.
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark import Asked
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark_run import (
    Given,
    benchmark,
    planned_here,
)

OPTIONS: Dict[str, Any] = {
    "part": {"type": "str", "choices": ["plan", "measure"], "default": "measure"},
    "cluster": {"type": "str", "required": True},
    "vary": {"type": "str", "default": ""},
    "values": {"type": "dict", "default": {}},
    "processes": {"type": "dict", "default": {}},
    "release": {"type": "path"},
    "properties": {"type": "dict", "default": {}, "no_log": True},
    "results": {"type": "path"},
    "progress": {"type": "path"},
    "beside": {"type": "int", "default": 0},
}


def _measure(connection: Connection, module: AnsibleModule) -> Dict[str, Any]:
    params = module.params
    given = Given(
        params["cluster"],
        Asked(
            params["vary"],
            {name: _text(value) for name, value in params["values"].items()},
        ),
        {int(broker): process or {} for broker, process in params["processes"].items()},
        params["release"] or "",
        params["properties"],
        params["results"] or "",
        params["progress"] or "",
        params["beside"],
    )
    if module.check_mode or params["part"] == "plan":
        return planned_here(connection, given)[2]
    return benchmark(connection, given)


def _text(value: Any) -> str:
    """A value as a person writes it; a list is several."""
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def main() -> None:
    """Entry point."""
    run_once(OPTIONS, _measure)


if __name__ == "__main__":
    main()

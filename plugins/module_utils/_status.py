# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status table: what an operator wants to see first, as text. Pure.

Private to the collection: names may change without notice.
"""

from __future__ import annotations

import time

COLUMNS = ("INSTANCE", "ROLE", "ID", "UP SINCE", "VERSION", "STATE", "RESTART PENDING")
PARTITIONS_SHOWN = 20


def table(columns, rows):
    """Return `rows` (lists of text) as lines of aligned columns under their headings."""
    widths = [
        max([len(str(row[index])) for row in rows] + [len(name)])
        for index, name in enumerate(columns)
    ]
    lines = []
    for row in [columns, *rows]:
        cells = [str(cell).ljust(width) for cell, width in zip(row, widths)]
        lines.append("  ".join(cells).rstrip())
    return lines


def since(started_at):
    """Return a start time (seconds since the epoch) as UTC text, or "-" for a process that is down."""
    if not started_at:
        return "-"
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(int(started_at)))


def status_lines(instances, servers=(), cluster=None):
    """Return the status of one cluster as a list of lines.

    `instances`: dicts `name role id version process` (`process`: result of jvm_instance, or None where
    the host did not answer); `servers`: the result list of zookeeper_info; `cluster`: the result of
    kafka_cluster_info, or None.
    """
    cluster = cluster or {}
    roles = {int(item["id"]): item for item in servers or () if item.get("id") is not None}
    registered = {int(item["id"]) for item in cluster.get("brokers") or ()}
    controller = cluster.get("controller")
    if isinstance(controller, dict):
        controller = controller.get("id")
    rows, pending = [], []
    for item in instances:
        process = item.get("process") or {}
        if item["role"] == "zookeeper":
            state = (roles.get(int(item["id"])) or {}).get("role") or "no quorum"
        elif int(item["id"]) in registered:
            state = "controller" if controller == int(item["id"]) else "broker"
        else:
            state = "not registered"
        if item.get("process") is None:
            state = "host not reached"
        elif not process.get("running"):
            state = "down"
        reasons = "; ".join(process.get("restart_reasons") or ())
        if reasons == "not running":
            reasons = ""
        if reasons:
            pending.append("%s: %s" % (item["name"], reasons))
        rows.append(
            [
                item["name"],
                item["role"],
                item["id"],
                since(process.get("started_at")) if process.get("running") else "-",
                item["version"],
                state,
                "yes" if reasons else "no",
            ]
        )
    lines = table(COLUMNS, rows) + [""]
    if pending:
        lines += ["Restart pending:"] + ["  " + line for line in pending] + [""]
    return lines + _health(cluster)


def _health(cluster):
    if not cluster.get("reachable"):
        return ["No broker answers."]
    lines = []
    for key, title in (
        ("offline", "offline (no leader)"),
        ("under_min_isr", "below min.insync.replicas"),
        ("under_replicated", "under-replicated"),
    ):
        partitions = cluster.get(key) or []
        if partitions:
            lines.append("%d partitions %s:" % (len(partitions), title))
            lines += ["  " + _partition(item) for item in partitions[:PARTITIONS_SHOWN]]
            if len(partitions) > PARTITIONS_SHOWN:
                lines.append("  and %d more" % (len(partitions) - PARTITIONS_SHOWN))
    return lines or ["Every partition has all of its replicas in sync."]


def _partition(item):
    return "%s-%s  leader %s  replicas %s  isr %s" % (
        item.get("topic"),
        item.get("partition"),
        item.get("leader"),
        ",".join(str(broker) for broker in item.get("replicas") or ()),
        ",".join(str(broker) for broker in item.get("isr") or ()),
    )

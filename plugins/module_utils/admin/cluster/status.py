# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status table: what an operator wants to see first, as text. Pure.

Private to the collection: names may change without notice.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

QUORUM_COLUMNS = ("NODE", "PART", "RECORDS BEHIND", "LAST FETCH")
COLUMNS = ("INSTANCE", "ROLE", "ID", "UP SINCE", "VERSION", "STATE", "PENDING")
PARTITIONS_SHOWN = 20
NOT_ASKED = "not asked"
NOT_REACHED = "host not reached"
DOWN = "down"
# Of a controller that runs, while brokers have their metadata in ZooKeeper and cannot hand on the question.
QUORUM_NOT_ASKED = "running"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> List[str]:
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


def since(started_at: Optional[int]) -> str:
    """Return a start time (seconds since the epoch) as UTC text, or "-" for a process that is down."""
    if not started_at:
        return "-"
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(int(started_at)))


def status(
    instances: Iterable[Mapping[str, Any]],
    servers: Optional[Iterable[Mapping[str, Any]]] = (),
    cluster: Optional[Mapping[str, Any]] = None,
    notes: Sequence[str] = (),
) -> Dict[str, Any]:
    """Return the status of one cluster: {lines, good}.

    `instances`: dicts `name role id asked process`, with `id_known` false where the id is a guess. `process` is the
    result of jvm_instance, without `running` where the host could not be asked; `asked` is false for hosts outside
    of the run.
    `servers`: the result list of zookeeper_info; `cluster`: the result of kafka_cluster_info, with the
    quorum in KRaft mode, or None; its `quorum_asked` is false where nobody could be asked for one, and
    `controllers` are the ids of those that the inventory has, none for any;
    `notes`: lines about an upgrade that is not over (see preflight.upgrades), and who holds the lock.
    The last line sums up; `good` is whether every instance runs, every partition is in sync and every voter keeps up.
    """
    cluster = cluster or {}
    rows: List[List[Any]] = []
    pending: List[str] = []
    seen_only: List[str] = []
    amiss: Dict[str, List[str]] = {}
    for item in instances:
        process = item.get("process") or {}
        seen = _seen(item, servers or (), cluster)
        state = _state(item, process, seen)
        problem = _problem(state, seen)
        if seen and "running" not in process:
            seen_only.append(f"{item['name']} ({seen})")
        if problem:
            amiss.setdefault(problem, []).append(str(item["name"]))
        reasons = "; ".join(process.get("restart_reasons") or ()) if process.get("running") else ""
        if reasons:
            pending.append(f"{item['name']}: {reasons}")
        rows.append(
            [
                item["name"],
                item["role"],
                item["id"] if item.get("id_known", True) else "?",
                since(process.get("started_at")) if process.get("running") else "-",
                process.get("version") or "-",
                state,
                ("yes" if reasons else "no") if "running" in process else "-",
            ]
        )
    lines = table(COLUMNS, rows) + [""]
    if pending:
        lines += ["Restart pending:"] + [f"  {line}" for line in pending] + [""]
    if seen_only:
        lines += [f"Seen by the others only: {', '.join(seen_only)}.", ""]
    if notes:
        lines += [*notes, ""]
    partitions = _partitions(cluster)
    disks = [each for each in cluster.get("directories") or () if each["problem"]]
    if partitions:
        partitions += _moving(cluster.get("reassignments") or {})
    lines += partitions or (
        ["Every partition has all of its replicas in sync."]
        if cluster.get("reachable")
        else ["No broker answers."]
    )
    lines += [each["problem"] for each in disks]
    lines += idle_brokers(cluster.get("brokers") or ())
    quorum = cluster.get("quorum") or {}
    troubles = _quorum_troubles(quorum, cluster.get("controllers") or ())
    lines += quorum_lines(quorum)
    ill = sorted({str(each["broker"]) for each in disks})
    good = not (amiss or partitions or disks or troubles) and bool(cluster.get("reachable"))
    if good:
        summary = f"All {len(rows)} instances run." if len(rows) > 1 else "The one instance runs."
    else:
        told = [f"{problem}: {', '.join(names)}" for problem, names in sorted(amiss.items())]
        told += ["partitions not in sync"] if partitions else []
        told += [f"log directories failed: broker {', '.join(ill)}"] if ill else []
        told += troubles
        told += ["no broker answers"] if not cluster.get("reachable") and not amiss else []
        summary = f"ATTENTION: {'; '.join(told)}."
    return {"lines": lines + ["", summary], "good": good}


def idle_brokers(brokers: Iterable[Mapping[str, Any]]) -> List[str]:
    """Return a sentence about brokers that hold nothing while others do; an empty list if there are none."""
    held = {int(each["id"]): int(each.get("replicas") or 0) for each in brokers}
    idle = [str(broker) for broker, replicas in sorted(held.items()) if not replicas]
    if not idle or not any(held.values()):
        return []
    verb, they = ("holds", "it gets its") if len(idle) == 1 else ("hold", "they get their")
    return [
        f"Broker {', '.join(idle)} {verb} no replica: {they} part with ansible-playbook"
        " playbooks/scale_out.yml."
    ]


def quorum_lines(quorum: Mapping[str, Any]) -> List[str]:
    """Return the quorum of kafka_cluster_info as lines, an empty list if there is none.

    By the leader's clock: who votes and leads, how many records each node lacks, and when it fetched last.
    """
    if not quorum:
        return []
    if quorum.get("leader") is None:
        return ["", f"Quorum of controllers: {quorum.get('problem') or 'no leader'}."]
    rows = []
    for part in ("voter", "observer"):
        for each in quorum[f"{part}s"]:
            leads = each["id"] == quorum["leader"]
            fetched = each["fetched_ms_ago"]
            rows.append(
                [
                    each["id"],
                    "leader" if leads else part,
                    "unknown" if each["lag"] is None else each["lag"],
                    (
                        "-"
                        if leads
                        else "unknown" if fetched is None else f"{fetched / 1000:.1f} s ago"
                    ),
                ]
            )
    return ["", f"Quorum of controllers, epoch {quorum['epoch']}:"] + [
        f"  {line}" for line in table(QUORUM_COLUMNS, rows)
    ]


def _quorum_troubles(quorum: Mapping[str, Any], controllers: Iterable[Any]) -> List[str]:
    """What the last line says of a quorum, an empty list where it is in order, or there is none.

    `controllers`: the ids of those that are to vote.
    """
    if not quorum:
        return []
    if quorum.get("leader") is None:
        return ["the quorum has no leader"]
    behind = [each for each in quorum["voters"] if not each["keeps_up"]]
    apart = [str(each["id"]) for each in behind if each.get("elsewhere")]
    late = [str(each["id"]) for each in behind if not each.get("elsewhere")]
    troubles = [f"voters behind: {', '.join(late)}"] if late else []
    if apart:
        remedy = "playbooks/replace_broker.yml -e broker=ID gives the vote back"
        troubles.append(f"voters whose disk has another directory: {', '.join(apart)} ({remedy})")
    voters, wanted = {int(each["id"]) for each in quorum["voters"]}, set(map(int, controllers))
    for ids, words in ((wanted - voters, "without a vote"), (voters - wanted, "voters unknown")):
        if wanted and ids:
            troubles.append(f"{words}: {', '.join(map(str, sorted(ids)))}")
    return troubles


def _seen(
    item: Mapping[str, Any], servers: Iterable[Mapping[str, Any]], cluster: Mapping[str, Any]
) -> Optional[str]:
    """What the ensemble or the cluster says of an instance: its part, None if it takes none."""
    number = int(item["id"])
    if item["role"] == "zookeeper":
        answers = [each for each in servers if each.get("id") is not None]
        return next((each.get("role") for each in answers if int(each["id"]) == number), None)
    if item["role"] == "controller":
        if not cluster.get("quorum_asked", True):
            return QUORUM_NOT_ASKED
        quorum = cluster.get("quorum") or {}
        votes = {each["id"] for each in quorum.get("voters") or () if each["keeps_up"]}
        if number not in votes:
            return None
        return "leader" if quorum.get("leader") == number else "voter"
    if number not in {int(each["id"]) for each in cluster.get("brokers") or ()}:
        return None
    return "controller" if cluster.get("controller") == number else "broker"


def _state(item: Mapping[str, Any], process: Mapping[str, Any], seen: Optional[str]) -> str:
    if "running" not in process:
        return NOT_REACHED if item.get("asked", True) else NOT_ASKED
    if not process["running"]:
        # A broker that was killed stays registered until its session expires.
        return DOWN
    if seen:
        return seen
    return "not registered" if item["role"] == "kafka" else "no quorum"


def _problem(state: str, seen: Optional[str]) -> str:
    """Under which heading the last line names an instance in this state; "" if it is in order."""
    if state == NOT_ASKED:
        return "" if seen else "not asked and not seen"
    return state if state in (DOWN, NOT_REACHED) or not seen else ""


def _partitions(cluster: Mapping[str, Any]) -> List[str]:
    lines = []
    for key, title in (
        ("offline", "offline (no leader)"),
        ("under_min_isr", "below min.insync.replicas"),
        ("under_replicated", "under-replicated"),
    ):
        partitions = cluster.get(key) or []
        if partitions:
            noun = "partition" if len(partitions) == 1 else "partitions"
            lines.append(f"{len(partitions)} {noun} {title}:")
            lines += [f"  {_partition(item)}" for item in partitions[:PARTITIONS_SHOWN]]
            if len(partitions) > PARTITIONS_SHOWN:
                lines.append(f"  and {len(partitions) - PARTITIONS_SHOWN} more")
    return lines


def _moving(moves: Mapping[str, Any]) -> List[str]:
    """Which of the partitions somebody moves, and how that ends."""
    if moves.get("problem"):
        return [f"Whether partitions are being reassigned is not known: {moves['problem']}"]
    found = [f"{each['topic']}-{each['partition']}" for each in moves.get("partitions") or ()]
    if not found:
        return []
    more = [f"and {len(found) - PARTITIONS_SHOWN} more"] if len(found) > PARTITIONS_SHOWN else []
    noun = "partition" if len(found) == 1 else "partitions"
    return [
        f"{len(found)} {noun} being reassigned: {', '.join(found[:PARTITIONS_SHOWN] + more)}",
        "  It ends by itself; playbooks/scale_out.yml -e cancel=true turns it back, whoever began it.",
    ]


def _partition(item: Mapping[str, Any]) -> str:
    replicas, isr = (
        ",".join(str(broker) for broker in item.get(key) or ()) for key in ("replicas", "isr")
    )
    return (
        f"{item.get('topic')}-{item.get('partition')}  leader {item.get('leader')}"
        f"  replicas {replicas}  isr {isr}"
    )


def left_undone(
    results: Mapping[str, Sequence[Optional[Mapping[str, Any]]]], absent: str = ""
) -> List[str]:
    """Return what a run left undone on one host, one text for each reason; an empty list if nothing.

    `results`: for each product what its tasks on the host returned, in their order; the first that
    failed counts. `absent`: why the preflight had no answer from the host or has left it, or one of its
    products, out, "" if neither.
    """
    products: Dict[str, List[str]] = {}
    for product, each in results.items():
        reason = next(filter(None, map(_why_undone, each)), "")
        if reason:
            products.setdefault(reason, []).append(product)
    told = [absent] if absent else []
    return told + [f"{' and '.join(names)}: {reason}" for reason, names in products.items()]


def _why_undone(result: Optional[Mapping[str, Any]]) -> str:
    if not result or not (result.get("unreachable") or result.get("failed")):
        return ""
    told = (str(result.get("msg") or "").strip().splitlines() or ["see above"])[0].rstrip(".")
    told = told[len("Task failed: ") :] if told.startswith("Task failed: ") else told
    return f"it cannot be reached: {told}" if result.get("unreachable") else told


def what_started(hosts: Iterable[Mapping[str, Any]]) -> Dict[str, Any]:
    """Return what start.yml did, {lines, nothing_deployed}.

    `hosts`: the variables of each host of the run. `nothing_deployed`: every host was looked at, and
    none has anything that was ever started.
    """
    lines, nothing_deployed, any_started = [], True, False
    # Ansible's groups have the order in which hosts answered.
    hosts = sorted(hosts, key=lambda host: str(host.get("inventory_hostname")))
    for product, title in (("zookeeper", "ZooKeeper"), ("kafka", "Kafka")):
        groups: Dict[str, List[str]] = {"started": [], "ran already": [], "not deployed": []}
        for host in hosts:
            looked, turn = host.get(f"{product}_staged") or {}, host.get(f"{product}_turn") or {}
            if looked and not looked.get("deployed", True):
                kind = "not deployed"
            elif turn.get("changed") and not turn.get("failed"):
                kind = "started"
            elif looked.get("running") or turn.get("running"):
                kind = "ran already"  # or was brought back by its service manager meanwhile
            else:
                kind = ""
            nothing_deployed = nothing_deployed and (kind == "not deployed" or looked == {})
            any_started = any_started or kind == "started"
            if kind:
                groups[kind].append(str(host.get("inventory_hostname")))
        told = [f"{kind}: {', '.join(names)}" for kind, names in groups.items() if names]
        lines += [f"{title}: {'; '.join(told)}"] if told else []
    if not any_started:
        lines.append("There was nothing to start.")
    absent = any(
        (host.get("kafkaops_preflight_collected") or {}).get("unreachable_reason")
        or host.get("inventory_hostname") in (host.get("kafkaops_preflight") or {}).get("left", ())
        for host in hosts
    )
    return {"lines": lines, "nothing_deployed": nothing_deployed and not absent}

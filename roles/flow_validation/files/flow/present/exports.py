# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""A verdict for other programs: Prometheus' text, as node_exporter's textfile collector reads it, and
JUnit's XML, as CI servers do. Pure: the document of verdict.json or inspection.json in, text out.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Iterable, Iterator, List, Mapping, Optional, Tuple
from xml.etree import ElementTree

from flow.judge.verdict import FAIL, INCONCLUSIVE, PASS

_PREFIX = {"verdict": "kafkaops_flow", "inspection": "kafkaops_inspection"}
_QUANTILES = (("p50_ms", "0.5"), ("p99_ms", "0.99"), ("p99_9_ms", "0.999"), ("max_ms", "1"))
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
# what XML 1.0 cannot say at all
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Sample = Tuple[Mapping[str, str], float]


def prometheus(kind: str, document: dict) -> str:
    """All metrics are gauges: what the last run found. kind: verdict or inspection."""
    cluster = {"cluster_id": str(document["cluster_id"] or "")}
    if kind == "inspection":
        cluster["topic"] = str(document["topic"]["name"])
    return metrics_text(_PREFIX[kind], cluster, _metrics(document))


def metrics_text(
    prefix: str, common: Mapping[str, str], metrics: Iterable[Tuple[str, str, List[Sample]]]
) -> str:
    """Metrics (name without prefix, help, samples), each sample with the common labels. A name that ends
    with _total is a counter; one without samples is left out.
    """
    lines: List[str] = []
    for name, says, samples in metrics:
        rows = [f"{_labels({**common, **labels})} {value:.15g}" for labels, value in samples]
        if rows:
            full, kind = f"{prefix}_{name}", "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {full} {says}", f"# TYPE {full} {kind}"]
            lines += [f"{full}{row}" for row in rows]
    return "\n".join(lines) + "\n"


def _metrics(document: dict) -> Iterator[Tuple[str, str, List[Sample]]]:
    """(name without prefix, help, samples)."""
    kinds = (PASS, FAIL, INCONCLUSIVE)
    yield "verdict", "1 for the verdict of the last run, 0 for the others.", [
        ({"verdict": each}, float(document["verdict"] == each)) for each in kinds
    ]
    yield "check_violations", "Violations that a check found.", [
        ({"check": each["id"]}, each["count"]) for each in document["checks"]
    ]
    yield "records", "Records by what became of them.", [
        ({"outcome": name}, count) for name, count in document["counts"].items()
    ]
    yield "started_timestamp_seconds", "When the run began.", _moment(document["started"])
    yield "ended_timestamp_seconds", "When the run had its verdict.", _moment(document.get("ended"))
    yield "duration_seconds", "How long the run took.", [({}, document["timings"]["total"])]
    timing = document.get("timing")
    if timing:
        yield from _metrics_of_time(timing)
    leadership = document.get("leadership") or {}
    changes = leadership.get("changes")
    if changes is not None:
        seen = dict.fromkeys(("leader", "in_sync"), 0)
        for each in changes:
            seen[each["what"]] += len(each["partitions"])
        yield "partition_changes", "Changes of leaders and of in-sync replicas that were seen.", [
            ({"what": what}, count) for what, count in seen.items()
        ]
        more = "Changes beyond those, which nobody has written down one by one."
        yield "partition_changes_left_out", more, [({}, leadership.get("left_out", 0))]


def _metrics_of_time(timing: dict) -> Iterator[Tuple[str, str, List[Sample]]]:
    """Those of `timing` of verdict.json."""
    for key, name, says in (
        ("acknowledgement_latency", "acknowledgement", "From send to acknowledgement, quantiles."),
        ("latency", "append", "From send until the leader appended it, quantiles."),
    ):
        measured = timing.get(key)
        yield f"{name}_latency_seconds", says, (
            [({"quantile": quantile}, measured[each] / 1000) for each, quantile in _QUANTILES]
            if measured
            else []
        )
    pause, acknowledged = timing["longest_pause"], timing["acknowledged"]
    pauses: List[Sample] = []
    if timing["first_ms"] is not None and (pause or not timing.get("leaders_apart_ms")):
        pauses.append(({"of": "records"}, pause["ms"] / 1000 if pause else 0.0))
    if acknowledged:
        pauses.append(({"of": "acknowledgements"}, acknowledged["longest_pause_ms"] / 1000))
    yield "longest_pause_seconds", "Longest time without a record, 0 if it was too short.", pauses


def _moment(text: Optional[str]) -> List[Sample]:
    return [({}, datetime.fromisoformat(text).timestamp())] if text else []


def _labels(labels: Mapping[str, str]) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"


def junit(kind: str, document: dict) -> str:
    """A test case for each check, and one that nothing stayed open, beside what is wrong as well."""
    checks, left_open = document["checks"], document.get("unclear", [])
    whole = document["verdict"] != INCONCLUSIVE and not left_open
    failed = [each for each in checks if each["status"] == FAIL]
    suite = ElementTree.Element(
        "testsuite",
        name=f"kafkaops.{kind}",
        tests=str(len(checks) + 1),
        failures=str(len(failed)),
        errors=str(int(not whole)),
        skipped="0",
        time=str(document["timings"]["total"]),
        timestamp=document["started"].partition("+")[0],
    )
    for check in checks:
        case = _case(suite, kind, check["id"])
        if check["status"] == FAIL:
            _told(case, "failure", f"{check['count']:,} violations", _witnesses(check["witnesses"]))
    case = _case(suite, kind, "judged_to_the_end")
    if not whole:
        _told(case, "error", document["summary"], left_open)
    out = ElementTree.SubElement(suite, "system-out")
    out.text = _clean("\n".join([document["summary"], *document.get("what_now", [])]))
    ElementTree.indent(suite)
    return f"{_DECLARATION}\n{ElementTree.tostring(suite, encoding='unicode')}\n"


def _case(suite: ElementTree.Element, kind: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=f"kafkaops.{kind}", name=name)


def _told(case: ElementTree.Element, tag: str, message: str, lines: Iterable[str]) -> None:
    found = ElementTree.SubElement(case, tag, message=_clean(message))
    found.text = _clean("\n".join(lines))


def _witnesses(witnesses: Iterable[dict]) -> List[str]:
    """A line for each, what is null left out."""
    return [
        ", ".join(f"{name} {value}" for name, value in each.items() if value is not None)
        for each in witnesses
    ]


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)

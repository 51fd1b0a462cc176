# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What the streaming proof tells: Prometheus' text and the page. Pure: the document of status.json in,
text out.
"""

from __future__ import annotations

from datetime import datetime, timezone
from html import escape
from typing import Iterator, List, Tuple

from flow.present import index, plots
from flow.present.exports import Sample, metrics_text
from flow.present.report import cells, document, figure, sentences_list
from flow.watch.alarm import BLINDNESS, SEVERITY

PREFIX = "kafkaops_watch"
_QUANTILES = (("p50_ms", "0.5"), ("p99_ms", "0.99"), ("max_ms", "1"))
_WITNESS = ("partition", "offset", "attempt", "sequence")
# A page cannot be replaced by a process that is gone: whoever opens it reads its age by his own clock.
_AGE = """<script>
(function () {
  var told = document.getElementById("age"), old = +told.dataset.old;
  var head = document.querySelector(".verdict"), said = head.querySelector("span").textContent;
  function look() {
    var age = Math.round(Date.now() / 1000 - told.dataset.updated);
    if (age <= old) { return; }
    var unit = age < 7200 ? [60, "minutes"] : age < 172800 ? [3600, "hours"] : [86400, "days"];
    head.className = "verdict inconclusive";
    document.title = document.title.replace(/^[A-Z]+/, "OLD");
    head.querySelector(".sign").textContent = "?";
    head.querySelector("strong").textContent = "OLD";
    head.querySelector("span").textContent = "of " + Math.floor(age / unit[0]) + " " + unit[1] +
      " ago: unless a reload changes that, its process does not run, and nothing is watched now. It said then: " + said;
  }
  look();
  setInterval(look, 30000);
})();
</script>"""


def ended(status: dict, at: float, why: str) -> dict:
    """The status of a process that is no more since `at` (seconds since 1970), `why` by a sentence; "": in order.

    `updated` stays: that is when it was looked last.
    """
    alarms = dict(status["alarms"])
    if why:
        alarms[BLINDNESS] = (
            f"the streaming proof of {status['topic']} does not run, so that a loss would not be seen: {why}"
        )
    return {**status, "alarms": alarms, "ended": {"at": round(at, 3), "why": why}}


def prometheus(status: dict) -> str:
    """For node_exporter's textfile collector."""
    labels = {"cluster_id": status["cluster_id"], "topic": status["topic"]}
    return metrics_text(PREFIX, labels, _metrics(status))


def _metrics(status: dict) -> Iterator[Tuple[str, str, List[Sample]]]:
    """(name without prefix, help, samples)."""
    yield "records_total", "Records of the canary by what became of them.", [
        ({"outcome": name}, count) for name, count in status["counts"].items() if name != "pending"
    ]
    yield "pending_records", "Acknowledged, and neither arrived nor lost yet.", [
        ({}, status["counts"]["pending"])
    ]
    yield "alarm", "1 while there is such an alarm.", [
        ({"alarm": kind, "severity": severity}, float(kind in status["alarms"]))
        for kind, severity in SEVERITY.items()
    ]
    for name, says in (
        ("acknowledgement", "From send to acknowledgement in the last batch, quantiles."),
        ("append", "From send until the leader appended it in the last batch, quantiles."),
    ):
        measured = status["latency"][name]
        yield f"{name}_latency_seconds", says, (
            [({"quantile": quantile}, measured[each] / 1000) for each, quantile in _QUANTILES]
            if measured
            else []
        )
    yield "state_rows", "Rows that the join remembers.", [({}, status["state"]["rows"])]
    yield "state_bytes", "Memory of the join's state.", [({}, status["state"]["bytes"])]
    yield "batch_duration_seconds", "How long the last batch took.", [
        ({}, status["batch"]["duration_ms"] / 1000)
    ]
    yield "restarts_total", "Times that the query was started again after a fault.", [
        ({}, status["restarts"])
    ]
    yield "running", "0 once its process has said that it ended; one that was killed says nothing.", [
        ({}, float(not status.get("ended")))
    ]
    yield "updated_timestamp_seconds", "When it was looked last.", [({}, status["updated"])]


def page(status: dict) -> str:
    """The status as one self-contained page."""
    alarms, counts = status["alarms"], status["counts"]
    verdict = "fail" if alarms else "pass"
    said = "; ".join(alarms.values()) or (
        f"{counts['arrived']:,} of {counts['acknowledged']:,} acknowledged records have arrived,"
        f" {counts['pending']:,} still waited for, none lost"
        if not counts["lost"]
        else f"no alarm now; {counts['lost']:,} records were lost before"
    )
    over = status.get("ended")
    if over and not over["why"]:
        said = f"ended in order {_moment(over['at'])}, so nothing is watched since then; {said}"
    latency = status["latency"]["acknowledgement"] or {}
    facts = [(name, f"{counts[name]:,}") for name in counts]
    facts += [
        (f"acknowledged {name[:-3]}", plots.span(latency.get(name)))
        for name, _quantile in _QUANTILES
    ]
    facts += [
        ("state", f"{status['state']['rows']:,} rows, {status['state']['bytes'] / 2**20:.1f} MiB"),
        ("batch took", plots.span(status["batch"]["duration_ms"])),
    ]
    sections = [
        index.head("Streaming proof", verdict, said),
        cells(facts),
        f"<p class='note'>Topic {escape(status['topic'])} of cluster {escape(status['cluster_id'])},"
        f" since {_moment(status['since'])}, as of {_moment(status['updated'])}. A record is lost if it"
        f" has not arrived {status['within_seconds']:g} s after it was sent.</p>",
        sentences_list("Alarms", list(alarms.values())),
        _witnesses("Lost", "Acknowledged, and never arrived.", status["witnesses"]["lost"]),
        _witnesses("Duplicates", "Arrived once more.", status["witnesses"]["duplicate"]),
        *_courses(status["course"]),
        *([] if over else _age(status)),
    ]
    return document(f"{verdict.upper()}: streaming proof of {status['topic']}", sections)


def _age(status: dict) -> Iterator[str]:
    """What makes an old page say so; without JavaScript one reads it."""
    old = status["old_after_seconds"]
    yield (
        f"<p class='note' id='age' data-updated='{status['updated']:.0f}' data-old='{old:.0f}'>Its process writes"
        f" this page at least each minute: where it is older than {old / 60:.0f} minutes, nothing is watched.</p>"
    )
    yield _AGE


def _witnesses(title: str, note: str, witnesses: list) -> str:
    rows = [
        [
            index.cell("seen", _moment(each["seen"]), short=True),
            *(index.cell(name, escape(str(each[name]))) for name in _WITNESS),
        ]
        for each in reversed(witnesses)
    ]
    return index.table(title, f"{note} The latest first.", ("seen", *_WITNESS), rows)


def _courses(course: list) -> Iterator[str]:
    """Plots over time, where there is a course."""
    if len(course) < 2:
        return
    for name, title, unit, caption in (
        ("state_rows", "State over time", "rows", "The watermark bounds it: it must not grow on."),
        ("p99_ms", "Acknowledgement, p99", "ms", "From send to acknowledgement, of each batch."),
        ("batch_ms", "Batches", "ms", "How long each took."),
        ("lost", "Lost", "records", "In all."),
    ):
        points = [(each["at"], each[name]) for each in course if each.get(name) is not None]
        if len(points) > 1:
            yield figure(title, lambda width, p=points, u=unit: plots.course(p, width, u), caption)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")

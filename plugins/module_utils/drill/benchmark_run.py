# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All rows of a benchmark: planned, refused or measured one after the other, kept as JSON, compared.

Private to this collection. Each row is a process of its own, which removes its topics also when this one,
or the playbook, is killed.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import platform
import re
import time
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.log_dirs import (
    LogDirsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark import (
    OVERHEAD_BYTES,
    Asked,
    Case,
    Place,
    Plan,
    assignments,
    planned,
    short_of_room,
    untold,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark_limit import Load
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark_verdict import (
    Conditions,
    benchmark_lines,
    good,
    progress_line,
    results,
    summary_of,
    witness_lines,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_benchmark import (
    clients_here,
    keys_of,
    measured_row,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    failed,
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.perf_tools import (
    Tools,
    run_tools,
    tools_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    json_text,
    read_text,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import (
    start_ticks,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import told_into

_RUN = re.compile(r"[0-9]{8}T[0-9]{6}Z\.json\Z")
# So many earlier runs are compared with.
RUNS = 10
MOST_BROKERS = 1000

Row = Tuple[Case, Optional[Load], str]


@dataclass(frozen=True)
class Given:
    """What the module was given. `processes`: of each broker on this machine, as its start record has it: pid and
    start_ticks; empty where that could not be read.
    """

    cluster: str
    asked: Asked
    processes: Mapping[int, Mapping[str, Any]]
    release: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    results: str = ""
    progress: str = ""
    beside: int = 0

    @property
    def pids(self) -> Dict[int, int]:
        """{broker: pid} of those that run on this machine, and still are the processes of the records."""
        found = (
            (broker, int(each.get("pid") or 0), each) for broker, each in self.processes.items()
        )
        return {
            broker: pid
            for broker, pid, each in found
            if pid and start_ticks(pid) == int(each.get("start_ticks") or 0)
        }

    @property
    def tools(self) -> Tools:
        """Kafka's own tools: those that were named, or of a broker that runs here."""
        if self.release:
            return Tools(self.release, "", self.properties)
        found = (tools_of(pid, self.properties) for pid in self.pids.values())
        return next((each for each in found if each.there), Tools("", "", {}))

    @property
    def why_no_tools(self) -> str:
        """Why there are none."""
        if self.processes:
            return "the Kafka that brokers run could not be found by their processes"
        return "Kafka is not installed where the load runs (kafka_admin_host)"


@dataclass(frozen=True)
class Cluster:
    """What is read before."""

    cluster_id: str
    brokers: Tuple[int, ...]
    places: Tuple[Place, ...]


def _looked(connection: Connection, _going: Callable[[], bool]) -> Cluster:
    client = LogDirsClient(connection)
    client.connect()
    found = client.fetch_metadata()
    hosts = {each.id: each.host for each in found.brokers}
    disks = client.fetch_disks(sorted(hosts), [])
    places = tuple(
        Place(broker, hosts[broker], each.total, each.usable)
        for broker, directories in sorted(disks.directories.items())
        for each in directories
    )
    return Cluster(found.cluster_id or "", tuple(sorted(hosts)), places)


def planned_here(connection: Connection, given: Given) -> Tuple[Plan, Cluster, Dict[str, Any]]:
    """The plan, the cluster, and what the module returns of it. AdminError where it may not be."""
    try:
        # what is wrong whatever the cluster is shall be said without it
        planned(given.asked, MOST_BROKERS)
    except ProblemError as error:
        raise AdminError(error.problem) from None
    cluster = in_process(functools.partial(_looked, connection), given.beside)
    try:
        plan = planned(given.asked, len(cluster.brokers))
    except ProblemError as error:
        raise AdminError(error.problem) from None
    short = list(short_of_room(plan, cluster.brokers, cluster.places))
    if short:
        raise AdminError(
            Problem(
                "benchmark.no_room",
                "; ".join(short),
                "choose fewer rows (-e benchmark=mode, say), or a smaller -e benchmark_row_bytes=64MiB",
                (given.cluster,),
            )
        )
    lines = plan.lines(given.cluster)
    if untold(cluster.places):
        lines.append("room: unknown, the brokers do not tell how much their disks have")
    if plan.tools and not given.tools.there:
        lines.append(
            f"second witness: none, {given.why_no_tools};"
            " -e benchmark_release=DIRECTORY names an unpacked one there"
        )
    told = {
        "rows": [{"case": each.name, **each.setup.to_dict()} for each in plan.cases],
        "bytes": plan.bytes_at_most,
        "seconds": round(plan.seconds_about),
    }
    return plan, cluster, {"lines": lines, "plan": told}


def benchmark(connection: Connection, given: Given) -> Dict[str, Any]:
    """Measure all rows; returns the module's values. A row that fails is one of the table."""
    plan, cluster, told = planned_here(connection, given)
    runs = earlier_runs(given.results)
    conditions = Conditions(plan.seconds, plan.row_bytes, platform.node(), clients_here())
    rows: List[Row] = []
    say = told_into(given.progress, lambda line: None)
    say(progress_line(given.cluster, plan, 0))
    # for nothing: brokers that have just started are slower
    _row(connection, plan, 0, plan.cases[0], cluster.brokers, given)
    began = time.monotonic()
    for number, case in enumerate(plan.cases):
        rows.append(_row(connection, plan, number + 1, case, cluster.brokers, given))
        kept = results(rows, cluster.cluster_id, runs, conditions)
        _keep(given, plan, cluster, conditions, kept, {}, over=False)
        say(progress_line(given.cluster, plan, number + 1, time.monotonic() - began, kept[-1]))
    witness = _witnessed(connection, plan, cluster, given, rows[0][1])
    kept = results(rows, cluster.cluster_id, runs, conditions)
    _keep(given, plan, cluster, conditions, kept, witness, over=True)
    lines = benchmark_lines(kept, witness_lines(witness, rows[0][1]))
    return {
        **told,
        "lines": lines,
        "summary": summary_of(kept),
        "good": good(kept, witness),
        "results": kept,
        "witness": witness,
        "changed": False,
    }


def _row(
    connection: Connection,
    plan: Plan,
    number: int,
    case: Case,
    brokers: Sequence[int],
    given: Given,
) -> Row:
    work = functools.partial(
        measured_row, connection, plan, case.setup, number, brokers, given.pids
    )
    try:
        load = in_process(work, given.beside)
        return case, replace(load, usage={**load.usage, "here": len(given.processes)}), ""
    except AdminError as error:
        if given.beside and start_ticks(given.beside) is None:
            raise
        return case, None, error.message


def _witnessed(
    connection: Connection, plan: Plan, cluster: Cluster, given: Given, first: Optional[Load]
) -> Dict[str, Any]:
    """What Kafka's own tools say of the first row; {why} where they have not been asked, or could not run."""
    if not plan.tools:
        return {"why": "not asked for (benchmark_tools=false)"}
    if not given.tools.there:
        return {"why": given.why_no_tools}
    if first is None:
        return {"why": "the first row could not be measured"}
    setup = plan.cases[0].setup
    most = plan.row_bytes // (setup.record_bytes + OVERHEAD_BYTES)
    records = max(1, min(int(first.rate * plan.seconds), most))
    work = functools.partial(_ask_tools, connection, plan, cluster.brokers, given.tools, records)
    try:
        return in_process(work, given.beside)
    except AdminError as error:
        return {"why": error.message}


def _ask_tools(
    connection: Connection,
    plan: Plan,
    brokers: Sequence[int],
    tools: Tools,
    records: int,
    going: Callable[[], bool],
) -> Dict[str, Any]:
    setup = plan.cases[0].setup
    layout = assignments(setup, brokers, len(plan.cases) + 1)
    with own_topics(connection, layout, setup.topic_config) as client:
        topic = next(iter(layout))
        found = run_tools(tools, setup, topic, connection.bootstrap, records, going)
        starts, ends = client.fetch_both_ends(keys_of(setup, [topic]))
        return {**found, "there": sum(ends.values()) - sum(starts.values())}


def _keep(
    given: Given,
    plan: Plan,
    cluster: Cluster,
    conditions: Conditions,
    kept: Sequence[Mapping[str, Any]],
    witness: Mapping[str, Any],
    over: bool,
) -> None:
    """Write what there is so far: what comes later may be interrupted."""
    if not given.results:
        return
    told = {
        "cluster": given.cluster,
        "cluster_id": cluster.cluster_id,
        "names": [each.name for each in plan.cases],
        "over": over,
        **conditions.to_dict(),
        "drills": list(kept),
        "witness": dict(witness),
    }
    write_atomically(given.results, json_text(told), 0o644)


def earlier_runs(results_path: str) -> List[Tuple[str, Dict[str, Any]]]:
    """(when, JSON) of the runs beside this one, the latest first; those that cannot be read are left out."""
    if not results_path:
        return []
    directory, own = os.path.split(results_path)
    names = os.listdir(directory) if os.path.isdir(directory) else []
    found: List[Tuple[str, Dict[str, Any]]] = []
    for name in sorted(names, reverse=True):
        if _RUN.match(name) and name != own and len(found) < RUNS:
            told = _json(os.path.join(directory, name))
            if told is not None:
                found.append((name[: -len(".json")], told))
    return found


def _json(path: str) -> Optional[Dict[str, Any]]:
    try:
        told = json.loads(read_text(path) or "")
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) else None


def in_process(work: Callable[[Callable[[], bool]], Any], beside: int) -> Any:
    """Run `work` in a forked process, and return its value or raise its AdminError.

    It is given a function that says whether this process, and the playbook `beside` (0: none), still run.
    So nothing here has a client, and each work can fork before it makes one.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_inside, args=(theirs, work, beside, os.getpid()))
    process.start()
    theirs.close()
    try:
        value, problem = ours.recv()
    except EOFError:
        raise failed("the benchmark", "its process has ended") from None
    finally:
        process.join()
    if problem is not None:
        raise AdminError(problem)
    return value


def _inside(pipe: Any, work: Callable[[Callable[[], bool]], Any], beside: int, parent: int) -> None:
    def going() -> bool:
        return os.getppid() == parent and (not beside or start_ticks(beside) is not None)

    told: Tuple[Any, Optional[Problem]]
    try:
        told = (work(going), None)
    except AdminError as error:
        told = (None, error.problem)
    except Exception as error:  # pylint: disable=broad-except  # the parent tells it
        told = (None, failed("the benchmark", f"{type(error).__name__}: {error}").problem)
    pipe.send(told)
    os._exit(0)

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job on a real Spark cluster: a standalone master and two workers, executors of their own."""

import os
import signal
import subprocess
import sys

import pytest
from flow.record import files

from tests.spark.conftest import JOB
from tests.spark.disturbing import accusations
from tests.support import verdict_schema
from tests.support.outside import free_port, wait_until
from tests.support.spark_standalone import StandaloneSpark


@pytest.fixture(name="workers", scope="module")
def workers_fixture(tmp_path_factory):
    with StandaloneSpark(tmp_path_factory.mktemp("standalone"), free_port()) as running:
        yield running


def start(workers, cluster, directory, *more):
    """Start the job; it is a process of its own, because this one has a session already."""
    where = [f"--ledger={directory}/ledger", f"--output={directory}", f"--master={workers.master}"]
    servers = f"--bootstrap-servers={cluster.bootstrap_servers}"
    with open(directory / "console", "wb") as console:
        return subprocess.Popen(
            [sys.executable, str(JOB), "run", servers, *where, *more],
            env=workers.environment,
            cwd=directory,
            stdout=console,
            stderr=subprocess.STDOUT,
        )


def result(process, directory):
    """(exit code, verdict) of the job at its end."""
    code = process.wait(300)
    assert code in (0, 1, 2), (directory / "console").read_text(errors="replace")[-5000:]
    return code, verdict_schema.read(directory / "verdict.json")


def all_have_begun(ledger):
    """Whether each produce task has sent something: any of them may be the one that is killed."""
    attempts = files.load_attempts(str(ledger))
    return len(attempts) > 1 and all(each.acknowledged > 0 for each in attempts)


def test_every_worker_takes_part_and_a_killed_executor_is_no_violation(workers, cluster, tmp_path):
    """What its produce task had sent is unknown, and the task is done again by another executor."""
    before = workers.started()
    process = start(workers, cluster, tmp_path, "--records=3000000", "--partitions=6")
    ledger = tmp_path / "ledger"
    wait_until(lambda: ledger.exists() and all_have_begun(ledger), 120, "records are sent")
    executors = workers.executors()
    assert len(executors) == workers.workers
    os.kill(executors[0], signal.SIGKILL)
    code, verdict = result(process, tmp_path)
    assert workers.started() - before > workers.workers, "another one was started for it"
    assert (code, accusations(verdict)) == (0, [])
    assert verdict["topic"]["producers"] == workers.workers == 2
    assert verdict["counts"]["unknown"] > 0 and verdict["counts"]["acked"] >= 3_000_000

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job on a real Spark cluster: a standalone master and two workers, executors of their own; with its
ledger in a directory that all share, and on HDFS.
"""

import os
import signal
import subprocess
import sys
import tarfile

import pytest
from confluent_kafka.admin import AdminClient
from flow.record import files

from tests.spark.conftest import JOB
from tests.spark.disturbing import accusations
from tests.support import verdict_schema
from tests.support.outside import free_port, wait_until
from tests.support.small_hdfs import NotToBeHad, SmallHdfs, servers_jar
from tests.support.spark_standalone import StandaloneSpark


@pytest.fixture(name="workers", scope="module")
def workers_fixture(tmp_path_factory):
    with StandaloneSpark(tmp_path_factory.mktemp("standalone"), free_port()) as running:
        yield running


@pytest.fixture(name="hdfs", scope="module")
def hdfs_fixture(tmp_path_factory):
    try:
        servers_jar()
    except NotToBeHad as error:
        pytest.skip(f"HDFS' servers cannot be resolved: {error}")
    with SmallHdfs(tmp_path_factory.mktemp("hdfs") / "hdfs", free_port()) as running:
        yield running


def start(workers, cluster, directory, *more, mode="run", ledger=None):
    """Start the job; it is a process of its own, because this one has a session already."""
    ledger = ledger or f"{directory}/ledger"
    where = [f"--ledger={ledger}", f"--output={directory}", f"--master={workers.master}"]
    servers = f"--bootstrap-servers={cluster.bootstrap_servers}"
    with open(directory / "console", "wb") as console:
        return subprocess.Popen(
            [sys.executable, str(JOB), mode, servers, *where, *more],
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
    # slowly enough to be met while it sends
    sizes = ("--records=400000", "--rate=80000", "--partitions=8")
    process = start(workers, cluster, tmp_path, *sizes)
    ledger = tmp_path / "ledger"
    wait_until(lambda: ledger.exists() and all_have_begun(ledger), 120, "records are sent")
    executors = workers.executors()
    assert len(executors) == workers.workers
    os.kill(executors[0], signal.SIGKILL)
    code, verdict = result(process, tmp_path)
    assert workers.started() - before > workers.workers, "another one was started for it"
    assert (code, accusations(verdict)) == (0, [])
    assert verdict["topic"]["producers"] == workers.workers * workers.cores == 4
    assert verdict["counts"]["unknown"] > 0 and verdict["counts"]["acked"] >= 400_000


def shipped_python(directory):
    """Settings of Spark by which executors run a Python that comes with the job: here a script."""
    (directory / "bin").mkdir(parents=True)
    python = directory / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with tarfile.open(directory / "environment.tar.gz", "w:gz") as archive:
        archive.add(directory / "bin", "bin")
    return {
        "spark.archives": f"{directory}/environment.tar.gz#environment",
        "spark.pyspark.python": "./environment/bin/python",
    }


def spark_config(directory, **settings):
    path = directory / "spark.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return f"--spark-config={path}"


DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.initialExecutors": "0",
    "spark.executor.cores": "2",
    "spark.executor.memory": "512m",
}


@pytest.mark.soak
def test_a_ledger_on_hdfs_with_executors_that_come_when_they_are_needed(
    workers, hdfs, cluster, tmp_path
):
    """Nobody has an executor before tasks wait; their Python comes with the job; nothing of the ledger is on
    this machine, and a later job judges by it.
    """
    more = spark_config(tmp_path, **DYNAMIC, **shipped_python(tmp_path / "shipped"))
    ledger = f"{hdfs.address}/kafkaops/ledger"
    options = ["--records=200000", "--partitions=8", "--keep", more]
    code, verdict = result(start(workers, cluster, tmp_path, *options, ledger=ledger), tmp_path)
    assert (code, accusations(verdict)) == (0, [])
    assert verdict["topic"]["producers"] == 4
    assert verdict["counts"]["acked"] == 200_000
    listed = hdfs.shell("-ls", "-R", ledger)
    assert listed.count("/_attempts/0") == 4 and listed.count(".parquet") == 1
    assert "_plan.json" in listed and ".part\n" not in listed and "_draft" not in listed
    assert not [path for path in tmp_path.iterdir() if "hdfs" in path.name or path.name == "ledger"]

    (tmp_path / "verdict.json").unlink()
    later = start(workers, cluster, tmp_path, more, mode="verify", ledger=ledger)
    code, again = result(later, tmp_path)
    assert (code, again["counts"]) == (0, verdict["counts"])

    used = start(workers, cluster, tmp_path, "--records=1000", ledger=ledger)
    assert used.wait(200) == 3
    assert "holds the ledger of another run" in (tmp_path / "console").read_text()


def refused(workers, cluster, directory, *more, **named):
    """What a job says that cannot run; the topics of the cluster stay what they were."""
    before = topics(cluster)
    process = start(workers, cluster, directory, "--records=1000", *more, **named)
    said = (directory / "console").read_text if process.wait(200) == 3 else None
    assert said, (directory / "console").read_text()[-3000:]
    assert topics(cluster) == before
    return said()


def topics(cluster):
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    return {name for name in admin.list_topics(timeout=30).topics if "flow" in name}


def test_executors_without_the_python_are_refused_by_its_name(workers, cluster, tmp_path):
    more = spark_config(tmp_path, **{"spark.pyspark.python": "/nowhere/bin/python"})
    said = refused(workers, cluster, tmp_path, more)
    assert "there is no /nowhere/bin/python" in said and "spark.archives" in said
    assert "Traceback" not in said


def test_a_scheme_that_spark_has_no_file_system_for_is_refused(workers, cluster, tmp_path):
    said = refused(workers, cluster, tmp_path, ledger="s3a://bucket/ledger")
    assert "s3a://bucket/ledger cannot be opened" in said and "S3AFileSystem" in said
    assert not (tmp_path / "s3a:").exists() and "Traceback" not in said


@pytest.mark.soak
def test_a_directory_that_only_this_machine_has_is_refused(workers, cluster, tmp_path):
    """Executors of the same machine see it all; so theirs is taken away as they look for it."""
    ledger = tmp_path / "ledger"
    process = start(workers, cluster, tmp_path, "--records=1000")
    wait_until((ledger / "_attempts").exists, 120, "the ledger is there")
    (ledger / "_attempts").rename(tmp_path / "elsewhere")
    assert process.wait(200) == 3
    assert "does not see the ledger's directory" in (tmp_path / "console").read_text()

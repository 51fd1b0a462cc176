# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A standalone Spark cluster of this machine: a master and workers, from the PySpark that is installed.

::

    with StandaloneSpark(directory, port=17077, workers=2) as spark:
        subprocess.run(["job.py", "run", f"--master={spark.master}", ...], env=spark.environment)
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.support.outside import wait_until

EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"


@dataclass
class StandaloneSpark:
    """Workers of `cores` each; `master` is its URL, `environment` what a client of it needs."""

    directory: Path
    port: int
    workers: int = 2
    cores: int = 2
    _processes: list = field(default_factory=list)

    @property
    def master(self) -> str:
        """For --master."""
        return f"spark://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict:
        """Everybody talks over loopback, and with this Python."""
        return {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_PUBLIC_DNS": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_WORKER_DIR": str(self.directory / "work"),
        }

    def __enter__(self) -> StandaloneSpark:
        try:
            where = ("--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0")
            self._start("master", "org.apache.spark.deploy.master.Master", *where)
            wait_until(self._answers, 60, "the master listens")
            for number in range(self.workers):
                size = ("--host", "127.0.0.1", "--cores", str(self.cores), "--memory", "1g")
                worker = "org.apache.spark.deploy.worker.Worker"
                self._start(f"worker-{number + 1}", worker, *size, "--webui-port", "0", self.master)
            wait_until(self._registered, 60, "the workers have registered")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exc) -> None:
        for process in reversed(self._processes):  # workers first: they end their executors
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)

    def executors(self) -> list:
        """Process ids of the executors that run now."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    command = (entry / "cmdline").read_bytes()
                    if EXECUTOR in command and self._mark in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
        return sorted(found)

    def started(self) -> int:
        """How many executors were started so far, in all applications."""
        return len(list((self.directory / "work").glob("app-*/*")))

    @property
    def _mark(self) -> bytes:
        return f"KAFKAOPS_STANDALONE_SPARK={self.port}".encode()

    def _start(self, name: str, *words: str) -> None:
        self.directory.mkdir(exist_ok=True)
        spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
        with open(self.directory / f"{name}.log", "wb") as log:
            self._processes.append(
                subprocess.Popen(  # pylint: disable=consider-using-with
                    [str(spark_class), *words],
                    # the port marks what is ours, down to the executors
                    env={**self.environment, "KAFKAOPS_STANDALONE_SPARK": str(self.port)},
                    cwd=self.directory,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _registered(self) -> bool:
        log = (self.directory / "master.log").read_text(errors="replace")
        return log.count("Registering worker") >= self.workers

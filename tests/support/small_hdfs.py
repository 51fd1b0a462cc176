# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An HDFS of this machine: a NameNode and a DataNode, of the Hadoop whose client PySpark ships.

The servers come in one jar, resolved once by the Ivy that PySpark ships, and kept in KAFKAOPS_CACHE.

::

    with SmallHdfs(directory, port=18020) as hdfs:
        subprocess.run(["job.py", "run", f"--ledger={hdfs.address}/ledger", ...])
        hdfs.shell("-ls", f"{hdfs.address}/ledger")
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.support import collection_finder
from tests.support.outside import wait_until

_PACKAGE = "org.apache.hadoop.hdfs.server"
_JARS = Path(pyspark.__file__).parent / "jars"


class NotToBeHad(Exception):
    """The servers' jar could not be resolved; the message is Ivy's reason."""


def servers_jar() -> Path:
    """The jar with HDFS' servers, of the version of PySpark's own Hadoop client."""
    (client,) = _JARS.glob("hadoop-client-api-*.jar")
    version = re.sub(r"hadoop-client-api-(.*)\.jar", r"\1", client.name)
    cache = Path(os.environ.get("KAFKAOPS_CACHE") or Path.home() / ".cache" / "kafkaops")
    kept = cache / "tests" / f"hadoop-client-minicluster-{version}.jar"
    if kept.exists():
        return kept
    collection_finder.install()  # only where the collection's own fetch is needed
    from ansible_collections.kafkaops.cluster.plugins.module_utils.supply import ivy, truststore

    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as work:
        trust = truststore.trust_flags(os.path.join(work, "authorities.jks"))
        command = ["java", *truststore.proxy_flags(os.environ), *trust, "-jar", ivy.find_ivy()]
        command += ["-cache", str(cache / "ivy"), "-types", "jar", "-warn", "-dependency"]
        command += ["org.apache.hadoop", "hadoop-client-minicluster", version]
        command += ["-retrieve", f"{work}/[artifact]-[revision].[ext]"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        came = Path(work) / kept.name
        if not came.exists():
            raise NotToBeHad((done.stdout + done.stderr)[-500:])
        shutil.move(came, kept)
    return kept


@dataclass
class SmallHdfs:
    """`address` is its URI. What `environment` names holds its settings."""

    directory: Path
    port: int
    _processes: list = field(default_factory=list)

    @property
    def address(self) -> str:
        """hdfs://host:port"""
        return f"hdfs://127.0.0.1:{self.port}"

    def __enter__(self) -> SmallHdfs:
        settings = {
            "fs.defaultFS": self.address,
            "dfs.namenode.name.dir": self.directory / "name",
            "dfs.datanode.data.dir": self.directory / "data",
            "dfs.namenode.http-address": "127.0.0.1:0",
            "dfs.datanode.address": "127.0.0.1:0",
            "dfs.datanode.ipc.address": "127.0.0.1:0",
            "dfs.datanode.http.address": "127.0.0.1:0",
            "dfs.replication": 1,
        }
        entries = "".join(
            f"<property><name>{name}</name><value>{value}</value></property>"
            for name, value in settings.items()
        )
        (self.directory / "conf").mkdir(parents=True)
        for name in ("core-site.xml", "hdfs-site.xml"):
            (self.directory / "conf" / name).write_text(f"<configuration>{entries}</configuration>")
        try:
            node = f"{_PACKAGE}.namenode.NameNode"
            subprocess.run(
                self._java(node, "-format"), capture_output=True, check=True, timeout=120
            )
            self._start("namenode", node)
            wait_until(self._answers, 60, "the NameNode listens")
            self._start("datanode", f"{_PACKAGE}.datanode.DataNode")
            wait_until(self._has_room, 60, "the DataNode has registered")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait(10)

    def shell(self, *words: str) -> str:
        """What Hadoop's own tool answers."""
        return subprocess.run(
            self._java("org.apache.hadoop.fs.FsShell", *words),
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout

    def _java(self, *words: str) -> list:
        path = os.pathsep.join([str(self.directory / "conf"), str(servers_jar()), f"{_JARS}/*"])
        return ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", path, *words]

    def _start(self, name: str, *words: str) -> None:
        with open(self.directory / f"{name}.log", "wb") as log:
            self._processes.append(
                subprocess.Popen(  # pylint: disable=consider-using-with
                    self._java(*words), stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            )

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _has_room(self) -> bool:
        return any((self.directory / "data").glob("current/BP-*/current/VERSION"))

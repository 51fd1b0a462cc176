# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command-line tools of each product: one launcher, and here the table of names and classes.

Private to this collection. `bin/launch` in an assembled archive reads the table this renders.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, List, Tuple, Union

# kind: "tool" starts fast, "benchmark" keeps the optimising compiler, "daemon" logs like a server.
TOOL, BENCHMARK, DAEMON = "tool", "benchmark", "daemon"


@dataclass(frozen=True)
class Tool:
    """One name in `bin/`.

    `main_class` is the class to run, "-" if the caller names it; `classes` overrides it for product
    lines (first digits of the version, such as "4" or "3.8"), "" meaning that the line lacks the tool.
    `first` are arguments that precede the caller's.
    """

    name: str
    main_class: str
    heap: str = "256m"
    kind: str = TOOL
    first: str = ""
    classes: tuple = ()

    def class_in(self, version: str) -> str:
        """The main class in `version`, "" if that version does not have the tool."""
        for line, main_class in self.classes:
            if version == line or version.startswith(line + "."):
                return main_class
        return self.main_class


def _moved(name: str, new_class: str, old_class: str, **more: Any) -> Tool:
    """A tool whose class lived in the core jar before 4.0."""
    return Tool(name, new_class, classes=(("3", old_class),), **more)


def _until_4(name: str, main_class: str, **more: Any) -> Tool:
    """A tool that went with ZooKeeper."""
    return Tool(name, main_class, classes=(("4", ""),), **more)


_T = "org.apache.kafka.tools."
KAFKA_TOOLS = (
    _moved("kafka-acls.sh", _T + "AclCommand", "kafka.admin.AclCommand"),
    _moved(
        "kafka-broker-api-versions.sh",
        _T + "BrokerApiVersionsCommand",
        "kafka.admin.BrokerApiVersionsCommand",
    ),
    Tool("kafka-cluster.sh", _T + "ClusterTool"),
    Tool("kafka-configs.sh", "kafka.admin.ConfigCommand"),
    Tool("kafka-console-consumer.sh", _T + "consumer.ConsoleConsumer", heap="512m"),
    _moved(
        "kafka-console-producer.sh",
        _T + "ConsoleProducer",
        "kafka.tools.ConsoleProducer",
        heap="512m",
    ),
    Tool("kafka-consumer-groups.sh", _T + "consumer.group.ConsumerGroupCommand"),
    Tool("kafka-consumer-perf-test.sh", _T + "ConsumerPerformance", heap="512m", kind=BENCHMARK),
    Tool("kafka-delete-records.sh", _T + "DeleteRecordsCommand"),
    _moved("kafka-dump-log.sh", _T + "DumpLogSegments", "kafka.tools.DumpLogSegments"),
    Tool("kafka-features.sh", _T + "FeatureCommand"),
    Tool("kafka-get-offsets.sh", _T + "GetOffsetShell"),
    Tool("kafka-leader-election.sh", _T + "LeaderElectionCommand"),
    Tool("kafka-log-dirs.sh", _T + "LogDirsCommand"),
    Tool("kafka-metadata-quorum.sh", _T + "MetadataQuorumCommand"),
    Tool("kafka-producer-perf-test.sh", _T + "ProducerPerformance", heap="512m", kind=BENCHMARK),
    Tool("kafka-reassign-partitions.sh", _T + "reassign.ReassignPartitionsCommand"),
    Tool("kafka-run-class.sh", "-"),
    Tool("kafka-server-start.sh", "kafka.Kafka", heap="1g", kind=DAEMON),
    Tool("kafka-storage.sh", "kafka.tools.StorageTool"),
    Tool("kafka-topics.sh", _T + "TopicCommand"),
    Tool("kafka-verifiable-consumer.sh", _T + "VerifiableConsumer", heap="512m"),
    Tool("kafka-verifiable-producer.sh", _T + "VerifiableProducer", heap="512m"),
    Tool(
        "connect-distributed.sh",
        "org.apache.kafka.connect.cli.ConnectDistributed",
        heap="1g",
        kind=DAEMON,
    ),
    Tool(
        "connect-mirror-maker.sh",
        "org.apache.kafka.connect.mirror.MirrorMaker",
        heap="1g",
        kind=DAEMON,
    ),
    Tool(
        "connect-standalone.sh",
        "org.apache.kafka.connect.cli.ConnectStandalone",
        heap="1g",
        kind=DAEMON,
    ),
    _until_4(
        "zookeeper-server-start.sh",
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        heap="512m",
        kind=DAEMON,
    ),
    _until_4(
        "zookeeper-shell.sh",
        "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka",
        first="-server",
    ),
)

ZOOKEEPER_TOOLS = (
    Tool("zkCli.sh", "org.apache.zookeeper.ZooKeeperMain"),
    Tool("zkSnapshotToolkit.sh", "org.apache.zookeeper.server.SnapshotFormatter"),
    Tool("zkTxnLogToolkit.sh", "org.apache.zookeeper.server.persistence.TxnLogToolkit"),
    Tool(
        "zookeeper-server-start.sh",
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        heap="512m",
        kind=DAEMON,
    ),
)


@dataclass(frozen=True)
class Layout:
    """How a product's archive is laid out and how its line logs."""

    tools: tuple
    libraries: str
    logging_option: str
    logging_suffix: str


def layout_of(product: str, version: str) -> Layout:
    """The layout of a product's version: its tools, directory of jars, logging system."""
    if product == "zookeeper":
        return Layout(ZOOKEEPER_TOOLS, "lib", "-Dlogback.configurationFile=", "logback.xml")
    if version.startswith("3."):
        return Layout(KAFKA_TOOLS, "libs", "-Dlog4j.configuration=file:", "log4j.properties")
    return Layout(KAFKA_TOOLS, "libs", "-Dlog4j2.configurationFile=", "log4j2.yaml")


def tools_of(product: str, version: str) -> List[Tuple[Tool, str]]:
    """The tools that this version has, as pairs (Tool, main class), sorted by name."""
    pairs = [(tool, tool.class_in(version)) for tool in layout_of(product, version).tools]
    return sorted(((tool, name) for tool, name in pairs if name), key=lambda pair: pair[0].name)


def tools_table(product: str, version: str) -> str:
    """Text of config/launcher/tools: name, class, heap, kind, first arguments; one tool a line."""
    lines = ["# name class heap kind first-arguments"]
    for tool, main_class in tools_of(product, version):
        lines.append(f"{tool.name} {main_class} {tool.heap} {tool.kind} {tool.first}".rstrip())
    return "\n".join(lines) + "\n"


def launcher_settings(product: str, version: str) -> str:
    """Text of config/launcher/settings, which bin/launch sources."""
    layout = layout_of(product, version)
    return (
        f"LIBRARIES={layout.libraries}\n"
        f"LOGGING_OPTION={layout.logging_option}\n"
        f"LOGGING_SUFFIX={layout.logging_suffix}\n"
    )


def launcher_files(
    product: str, version: str, directory: str
) -> Dict[str, Union[bytes, str, os.PathLike[str]]]:
    """Everything of the launcher: {path in the archive: bytes, or str for the target of a link}.

    `directory` holds `launch` and the logging configurations.
    """
    suffix = layout_of(product, version).logging_suffix
    files: Dict[str, Union[bytes, str, os.PathLike[str]]] = {
        "config/launcher/tools": tools_table(product, version).encode(),
        "config/launcher/settings": launcher_settings(product, version).encode(),
    }
    sources = {"bin/launch": "launch"}
    for purpose in ("tools", "server"):
        sources[f"config/launcher/{purpose}-{suffix}"] = f"{purpose}-{suffix}"
    for target, source in sources.items():
        with open(os.path.join(directory, source), "rb") as stream:
            files[target] = stream.read()
    for tool, _main_class in tools_of(product, version):
        files[f"bin/{tool.name}"] = "launch"
    return files

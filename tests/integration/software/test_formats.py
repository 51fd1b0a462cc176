# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that the newer release has formatted, started with the older one: rollback.yml does so with each node."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.kraft_storage import (
    JVM_FLAGS,
    Node,
    format_node,
)
from tests.support.outside import free_port, wait_until

CLUSTER_ID = "wJ9ZqC3bT1mC4ZlYb3dM2g"
REFUSED = "No MetadataVersion with feature level 30"
# It has read what the format wrote, and looks for its quorum.
PAST_ITS_FORMAT = "Starting broker"


@pytest.mark.parametrize(
    ("features_of", "said"), [("3.9", PAST_ITS_FORMAT), ("", REFUSED)], ids=["cluster's", "own"]
)
def test_the_older_release_starts_with_the_features_of_the_cluster(
    installed, tmp_path, features_of, said
):
    """A broker that was formatted by 4.3.1 while 3.9 was finalised, as by scale_out.yml in the middle of an upgrade."""
    log_dir = tmp_path / "data"
    log_dir.mkdir()
    properties = tmp_path / "server.properties"
    lines = [
        "process.roles=broker",
        "node.id=7",
        f"log.dirs={log_dir}",
        f"listeners=PLAINTEXT://127.0.0.1:{free_port()}",
        "controller.listener.names=CONTROLLER",
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        f"controller.quorum.bootstrap.servers=127.0.0.1:{free_port()}",
    ]
    properties.write_text("".join(f"{each}\n" for each in lines))
    java = Path(os.environ.get("JAVA_HOME", "/usr")) / "bin" / "java"
    java_home = str(java.resolve().parents[1])
    node = Node(CLUSTER_ID, 7, [str(log_dir)], features_of=features_of)
    format_node(node, java_home, str(installed("kafka", "4.3.1")), str(properties))

    older, log, logging = installed("kafka", "3.9.2"), tmp_path / "log", tmp_path / "log4j"
    logging.write_text(
        "log4j.rootLogger=INFO, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.out.layout=org.apache.log4j.SimpleLayout\n"
    )
    words = [str(java), *JVM_FLAGS, f"-Dlog4j.configuration=file:{logging}"]
    words += ["-cp", str(older / "libs" / "*")]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*words, "kafka.Kafka", str(properties)], stdout=stream, stderr=subprocess.STDOUT
        )
    try:
        wait_until(lambda: said in log.read_text(), 60, said)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()

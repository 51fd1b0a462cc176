# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kafka's own kafka-producer-perf-test and kafka-consumer-perf-test as a second witness of a benchmark's row.

Private to this collection. Settings, which have passwords, are in files that have no name on a disk.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    properties_text,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark import ACKS, Setup
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import failed
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import in_memory, path_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

PRODUCER, CONSUMER = "kafka-producer-perf-test.sh", "kafka-consumer-perf-test.sh"
SECONDS = 120.0
_PRODUCED = re.compile(
    r"^(?P<records>\d+) records sent, (?P<rate>[\d.]+) records/sec.*? (?P<p50>\d+) ms 50th,"
    r" (?P<p95>\d+) ms 95th, (?P<p99>\d+) ms 99th, (?P<p999>\d+) ms 99\.9th",
    re.MULTILINE,
)
_KILLED_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True)
class Tools:
    """Where Kafka's tools are, the Java that runs them, and the properties of a connection. `release` "": nowhere."""

    release: str
    java_home: str
    properties: Mapping[str, str]

    @property
    def there(self) -> bool:
        """Whether they are on this machine."""
        return bool(self.release) and os.path.exists(os.path.join(self.release, "bin", PRODUCER))


def tools_of(pid: int, properties: Mapping[str, str], proc: str = "/proc") -> Tools:
    """The tools of the release that a broker's process runs, and its Java."""
    try:
        with open(f"{proc}/{pid}/cmdline", encoding="utf-8", errors="replace") as stream:
            words = stream.read().split("\0")
    except OSError:
        return Tools("", "", {})
    try:
        java = os.readlink(f"{proc}/{pid}/exe")
    except OSError:  # of another account's process only the words are to be read
        java = words[0]
    paths = [path for word in words for path in word.split(":") if path.endswith("/libs/*")]
    release = os.path.dirname(os.path.dirname(paths[0])) if paths else ""
    return Tools(release, os.path.dirname(os.path.dirname(java)), properties)


def producer_properties(setup: Setup) -> Dict[str, str]:
    """Java's settings of a row's producer."""
    return {
        "acks": ACKS[setup.mode],
        "batch.size": str(setup.batch_bytes),
        "linger.ms": str(setup.linger_ms),
        "compression.type": setup.compression,
        "max.request.size": str(max(1048576, 2 * setup.record_bytes)),
    }


def produced(text: str) -> Optional[Dict[str, Any]]:
    """{records, rate, p50, p95, p99, p999} of the last line of kafka-producer-perf-test; None where there is none.

    Its latency is from sending to acknowledgement, in ms.
    """
    found = list(_PRODUCED.finditer(text))
    if not found:
        return None
    told = found[-1].groupdict()
    return {"records": int(told.pop("records")), **{key: float(told[key]) for key in told}}


def consumed(text: str) -> Optional[Dict[str, Any]]:
    """{records, rate} of kafka-consumer-perf-test: its line below the headings; None where there is none.

    The rate is of the time of fetching, without that of joining the group.
    """
    lines = [[word.strip() for word in line.split(",")] for line in text.splitlines()]
    for heading, values in zip(lines, lines[1:]):
        if "data.consumed.in.nMsg" in heading and len(heading) == len(values):
            told = dict(zip(heading, values))
            rate = told.get("fetch.nMsg.sec") or told.get("nMsg.sec") or "0"
            return {"records": int(told["data.consumed.in.nMsg"]), "rate": float(rate)}
    return None


def run_tools(
    tools: Tools, setup: Setup, topic: str, bootstrap: str, records: int, going: Callable[[], bool]
) -> Dict[str, Any]:
    """Write and read so many records; {producer, consumer}, each as above. AdminError where a tool fails."""
    common = {**tools.properties, "bootstrap.servers": bootstrap}
    # they have passwords: a kill shall leave nothing on a disk
    with in_memory(properties_text({**common, **producer_properties(setup)})) as settings:
        written = _run(
            tools,
            settings,
            [
                *(PRODUCER, "--topic", topic, "--num-records", str(records)),
                *("--record-size", str(setup.record_bytes), "--throughput", "-1"),
                *("--producer.config", path_of(settings)),
            ],
            going,
        )
    with in_memory(properties_text({**common, "auto.offset.reset": "earliest"})) as settings:
        read = _run(
            tools,
            settings,
            [
                *(CONSUMER, "--bootstrap-server", bootstrap, "--topic", topic),
                *("--messages", str(records), "--group", f"{topic}-tools", "--timeout", "20000"),
                *("--consumer.config", path_of(settings)),
            ],
            going,
        )
    return {"producer": produced(written), "consumer": consumed(read)}


def _run(tools: Tools, settings: int, words: Sequence[str], going: Callable[[], bool]) -> str:
    """What a tool prints. It is killed where this process ends, or nobody wants it any more.

    `settings`: the descriptor of its settings.
    """
    environment = {
        **os.environ,
        # where the script would make one; the tools write no logs
        "LOG_DIR": tempfile.gettempdir(),
        **({"JAVA_HOME": tools.java_home} if tools.java_home else {}),
    }
    command: List[str] = [os.path.join(tools.release, "bin", words[0]), *words[1:]]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            pass_fds=(settings,),
            preexec_fn=_end_with_parent,  # pylint: disable=subprocess-popen-preexec-fn
        ) as process:
            try:
                wait_until(lambda: process.poll() is not None or not going(), SECONDS)
            finally:
                process.kill()
        output.seek(0)
        text = output.read()
    if process.returncode:
        last = " ".join(text.split())[-300:]
        raise failed(words[0], f"it ended with {process.returncode}: {last}")
    return text


def _end_with_parent() -> None:
    """The script becomes Java by exec, which keeps this: it is killed when its parent ends."""
    ctypes.CDLL(None).prctl(_KILLED_WITH_PARENT, signal.SIGKILL, 0, 0, 0)

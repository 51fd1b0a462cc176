# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the Kafka modules in this process, through their own main().

The same code as on a host, arguments and output included, without the 0.4 s of a module call.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ansible.module_utils.common import warnings
from ansible.module_utils.testing import patch_module_args


@dataclass
class Result:
    """What a module returned."""

    failed: bool
    values: dict

    def __getattr__(self, name):
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(f"no {name} in {sorted(self.values)}: {self.values}") from None

    @property
    def kinds(self):
        """(kind, subject) of the planned changes."""
        return [(change["kind"], change["subject"]) for change in self.plan["changes"]]

    @property
    def checks(self):
        """(check id, subject) of the refusals."""
        return [(refusal["check"], *refusal["subjects"]) for refusal in self.plan["refusals"]]


def run_module(name: str, arguments: dict, check: bool = False) -> Result:
    """Run a module's main() in this process; returns what it printed."""
    module = importlib.import_module(f"ansible_collections.kafkaops.cluster.plugins.modules.{name}")
    # Warnings are collected per process, and a module usually has a process of its own.
    warnings._global_warnings.clear()
    printed = io.StringIO()
    with patch_module_args({**arguments, "_ansible_check_mode": check, "_ansible_diff": True}):
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            module.main()
    values = json.loads(printed.getvalue())
    return Result(bool(values.get("failed")), values)


class Background:
    """A module in a process of its own, which can be killed."""

    def __init__(self, name: str, arguments: dict):
        checkout = Path(__file__).resolve().parents[2]
        code = (
            "import json, sys; sys.path.insert(0, sys.argv[1])\n"
            "from tests.support import collection_finder; collection_finder.install()\n"
            "from tests.support.run_module import run_module\n"
            "print(json.dumps(run_module(sys.argv[2], json.loads(sys.argv[3])).values))\n"
        )
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [sys.executable, "-c", code, str(checkout), name, json.dumps(arguments)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=checkout,
        )

    def kill(self):
        """SIGKILL."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)

    def end(self) -> dict:
        """Wait until it ends; returns what it returned."""
        output, _errors = self.process.communicate(timeout=300)
        return json.loads(output)


class Modules:
    """The two modules, with the connection filled in."""

    def __init__(self, bootstrap_servers):
        self.bootstrap_servers = bootstrap_servers

    def topics(self, topics=None, check=False, **options):
        """kafka_topics."""
        arguments = {"bootstrap_servers": self.bootstrap_servers, "timeout": 20, **options}
        if topics is not None:
            arguments["topics"] = topics
        return run_module("kafka_topics", arguments, check)

    def info(self, **options):
        """kafka_cluster_info."""
        return run_module(
            "kafka_cluster_info",
            {"bootstrap_servers": self.bootstrap_servers, "timeout": 20, **options},
        )

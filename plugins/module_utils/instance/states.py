# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""What each `state` of the module jvm_instance does, from its parameters to its result."""

from __future__ import annotations

import contextlib
import os
import pwd
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance import managers
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.away import leave_away
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.deletion import (
    delete,
    foreseen,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.generation import Generation
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.instance import (
    CONSOLE,
    Instance,
    StartRules,
    StillStopping,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.probes import answer_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    ServiceError,
    ServiceManager,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.store import Layout, Staged
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.systemd import Run
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError

Params = Mapping[str, Any]
Result = Dict[str, Any]
IN_EFFECT = "in_effect"


def service_manager(params: Params, run: Run) -> ServiceManager:
    """Return the service manager that the parameters name; `run` is AnsibleModule.run_command."""
    unit = (params["generation"] or {}).get("unit_text", "")
    return managers.service_manager(params["manager"], run, unit, params["supervisor_dir"])


def layout(params: Params, check_mode: bool) -> Layout:
    """Return the Layout that the parameters name; nothing is staged for an account that does not exist."""
    uid = gid = -1
    if params["account"]:
        try:
            entry = pwd.getpwnam(params["account"])
            uid, gid = entry.pw_uid, entry.pw_gid
        except KeyError:
            # In check mode on a new host the account is one of the things that would be created; what
            # was never installed can be stopped and removed all the same.
            if params["state"] == "staged" and not check_mode:
                raise ServiceError(
                    f"account={params['account']} does not exist on this host"
                ) from None
    return Layout(
        params["name"],
        params["config_dir"],
        params["state_dir"],
        params["log_dir"],
        tuple(params["data_dirs"]),
        uid,
        gid,
    )


def generation(params: Params, manager: ServiceManager) -> Generation:
    """Return the Generation that the parameters describe."""
    given = params["generation"]
    command = os.path.join(params["config_dir"], "current", "launch")
    console = os.path.join(params["log_dir"], CONSOLE)
    files = {key: str(value) for key, value in given["files"].items()}
    secrets = params["secrets"]
    for key, value in secrets.get("files", {}).items():
        files[key] = files.get(key, "") + str(value)
    beside = [] if manager.runs_after_exit else ["watch"]
    return Generation(
        release=given["release"],
        java_home=given["java_home"],
        main_class=given["main_class"],
        classpath=given["classpath"],
        jvm_options=tuple(given["jvm_options"]),
        default_options=tuple(given["default_options"]),
        arguments=tuple(given["arguments"]),
        environment={
            key: str(value)
            for part in (given["environment"], secrets.get("environment", {}))
            for key, value in part.items()
        },
        files=files,
        unwatched=tuple(given["unwatched"]),
        service=dict(_settings(given["service"])),
        definition=manager.definition(params["name"], command, console),
        ready=tuple(params["ready"]),
        cds_archive=given["cds_archive"] if " " not in given["cds_archive"] else "",
        console="" if manager.keeps_console else console,
        guard=tuple(given["guard"]),
        guard_beside=tuple(beside + given["guard_beside"] if given["guard"] else []),
    )


def _settings(given: Mapping[str, Any], prefix: str = "") -> Iterator[Tuple[str, str]]:
    """Yield settings by name; those of a section of a unit as `Section.Name`, several values as one text."""
    for key, value in given.items():
        if isinstance(value, Mapping):
            yield from _settings(value, f"{prefix}{key}.")
        else:
            words = value if isinstance(value, (list, tuple)) else [value]
            yield f"{prefix}{key}", " ".join(str(word) for word in words)


def carry_out(
    params: Params,
    check_mode: bool,
    instance: Instance,
    manager: ServiceManager,
    allowed: Callable[[], None] = lambda: None,
    before_stop: Callable[[], None] = lambda: None,
) -> Result:
    """Bring about the wanted state (in check mode: tell what would be); return the module's result.

    `allowed()` raises ProblemError where this run must start and stop nothing any more. It is asked
    while nobody else works on the instance. `before_stop()` is called right before a process that runs
    is stopped, and raises ProblemError where it may not be. Raises StartFailed, ServiceError, ProblemError or OSError.
    """
    state = params["state"]
    reads_only = check_mode or state == "probe"
    alone = contextlib.nullcontext() if reads_only else instance.locked(state == "staged")
    with alone:
        if not reads_only and state != "staged":
            allowed()
        if state == "staged":
            result = _stage(params, check_mode, instance, manager)
        elif state == "started":
            result = _start(params, check_mode, instance, before_stop)
        elif state in ("noted", "adopted"):
            result = _change_live(params, check_mode, instance)
        elif state in ("stopped", "removed", "deleted"):
            if not check_mode:
                # what a killed drill has left stopped would come back
                leave_away(params["state_dir"], params["lock"].get("owner") or "")
            result = _stop(params, check_mode, instance, manager, before_stop)
        else:
            told = (
                {"explanation": instance.explanation(_rules(params))} if params["explain"] else {}
            )
            result = {"changed": False, **told}
    return {**_report(params, instance), **result}


def _stage(params: Params, check_mode: bool, instance: Instance, manager: ServiceManager) -> Result:
    wanted = generation(params, manager)
    staged = instance.stage(wanted, params["seeds"], apply=not check_mode)
    pending = instance.restart_reasons(wanted.meaning())
    return {
        "changed": staged.changed,
        "diff": _diff(staged),
        "fingerprint": wanted.fingerprint,
        "restart_pending": bool(pending),
        "restart_reasons": pending,
        "live_changes": instance.live_changes_to(wanted.meaning()),
    }


def _change_live(params: Params, check_mode: bool, instance: Instance) -> Result:
    """Note overrides before they are set, or take what is staged for what runs afterwards."""
    settings = {key: str(value) for key, value in params["overrides"].items()}
    if params["state"] == "noted":
        if not check_mode:
            instance.note(settings)
        return {"changed": False}
    name, wanted = instance.staged(), params["fingerprint"]
    if check_mode:
        return {"changed": True, "restart_pending": False, "restart_reasons": []}
    if name is None:
        raise ProblemError(_nothing_to_start(params))
    if wanted != name:
        raise ProblemError(_another_one(params, name))
    before = instance.restart_reasons(instance.store.meaning(name))
    instance.adopt(name, settings)
    return {"changed": bool(before), "reasons_before": before}


def _start(
    params: Params, check_mode: bool, instance: Instance, before_stop: Callable[[], None]
) -> Result:
    if params["only_down"] and instance.process():
        # Whoever asked saw it down, and its service manager was faster. To stop it is another question.
        return {"changed": False}
    name, wanted = _target(params, instance), params["fingerprint"]
    if (
        check_mode
        and params["configuration"] != IN_EFFECT
        and (name is None or wanted not in ("", name))
    ):
        # What would be started here has not been written, since check mode has staged nothing.
        return {"changed": True}
    if name is None:
        raise ProblemError(_nothing_to_start(params))
    if wanted and wanted != name:
        raise ProblemError(_another_one(params, name))
    pending = instance.restart_reasons(instance.store.meaning(name))
    if params["restart"]:
        pending = pending or ["asked for"]
    if not pending or check_mode:
        return {"changed": bool(pending), "reasons_before": pending}
    done = "restarted" if instance.process() else "started"
    if done == "restarted":
        before_stop()
    began = _now_ms()
    instance.turn(name, _rules(params))
    took = {"from_ms": began, "to_ms": _now_ms(), "done": done}
    return {"changed": True, "reasons_before": pending, "took": took}


def _now_ms() -> int:
    return int(time.time() * 1000)


def _stop(
    params: Params,
    check_mode: bool,
    instance: Instance,
    manager: ServiceManager,
    before_stop: Callable[[], None],
) -> Result:
    ran = instance.process() is not None
    runs = ran or manager.wants_running(params["name"])
    if ran and not check_mode:
        before_stop()
    began = _now_ms()
    try:
        if not check_mode and params["state"] == "stopped":
            instance.stop(params["stop_timeout"])
        elif not check_mode:
            instance.remove(params["stop_timeout"])
    except StillStopping as error:
        error.took = {"from_ms": began, "to_ms": _now_ms(), "done": "stopping"}
        raise
    result: Result = {"changed": runs}
    if ran and not check_mode:
        result["took"] = {"from_ms": began, "to_ms": _now_ms(), "done": "stopped"}
    if params["state"] == "deleted":
        instance.acted = not check_mode
        result["deleted"], result["kept"] = _delete(params, check_mode)
        result["changed"] = runs or bool(result["deleted"])
    return result


def _delete(params: Params, check_mode: bool) -> Tuple[List[str], List[str]]:
    """Delete the directories (in check mode: look for them); return (what was there, what stays)."""
    own = [params["config_dir"], params["state_dir"], params["log_dir"], *params["data_dirs"]]
    # Who runs without a lock names no cluster, and leaves its folder.
    cluster = params["lock"].get("cluster") or params["name"]
    if check_mode:
        return list(foreseen(own, params["name"], cluster)), []
    deleted, kept = delete(own, params["name"], cluster)
    return list(deleted), list(kept)


def _target(params: Params, instance: Instance) -> Optional[str]:
    """Return the fingerprint of the generation that the parameters are about, or None."""
    return instance.in_effect() if params["configuration"] == IN_EFFECT else instance.staged()


def _rules(params: Params) -> StartRules:
    return StartRules(
        params["start_timeout"],
        params["stop_timeout"],
        tuple(params["ready"]),
        tuple(params["log_files"]),
        params["transient_failure"],
        params["progress"],
        params["undone"],
    )


def _report(params: Params, instance: Instance) -> Result:
    """Return what is told of the instance whatever was done."""
    process = instance.process()
    target = _target(params, instance)
    reasons = instance.restart_reasons(instance.store.meaning(target))
    ready: List[Mapping[str, Any]] = []
    if process:
        # Those of the configuration that runs: the parameters may name a port that is only wanted.
        own = instance.store.ready(process.fingerprint)
        ready = params["ready"] if own is None else own
    return {
        "deployed": instance.in_effect(process) is not None,
        "fingerprint": target,
        "running": process is not None,
        "pid": process.pid if process else None,
        "version": instance.running_version(process),
        "started_at": process.started_at if process else None,
        "restart_pending": bool(reasons),
        "restart_reasons": reasons,
        "live_changes": instance.live_changes(target),
        "overrides": instance.overrides(),
        "answers": [answer_of(probe) or "" for probe in ready if probe.get("send")],
    }


def _nothing_to_start(params: Params) -> Problem:
    if params["configuration"] == IN_EFFECT:
        return Problem(
            "instance.not_deployed",
            "it was never started, so there is no configuration in effect",
            "run playbooks/site.yml, which installs and starts it",
            (params["name"],),
        )
    return Problem(
        "instance.nothing_staged",
        "nothing is staged, so there is nothing to start",
        "run playbooks/site.yml, which stages and starts it",
        (params["name"],),
    )


def _another_one(params: Params, name: str) -> Problem:
    return Problem(
        "instance.staged_meanwhile",
        f"{name} is staged, not what this run has staged or looked at: another run was here meanwhile",
        "run again when the other run has ended",
        (params["name"],),
        "fingerprint",
        params["fingerprint"],
    )


def _diff(staged: Staged) -> List[Dict[str, str]]:
    """Return Ansible's diff structure: one entry a file that differs."""
    return [
        {
            "before_header": name,
            "after_header": name,
            "before": staged.before.get(name, ""),
            "after": staged.after.get(name, ""),
        }
        for name in sorted({*staged.before, *staged.after})
    ]

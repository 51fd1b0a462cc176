# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a cluster between runs: its edge to Ansible.

An action, because the owner of the lock is the controller's process of ansible-playbook, and because
only on the controller can be seen whether the process that left a lock still runs.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any, Dict, Iterable, List, Mapping, Optional

from ansible import constants as C
from ansible import context
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import (
    COLLECTED,
    OUTSIDE,
    Inventory,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.on_controller import (
    is_here,
    why_no_answer,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.decision import (
    Answer,
    Member,
    Place,
    plan,
    replacement,
    verdict,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.held import (
    Taken,
    give_back,
    lock_beside,
    take,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.owner import (
    RUN_ENDED,
    Owner,
    is_gone,
    owner_of,
    this_run,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

FIRST, OTHERS = "kafkaops_lock_first", "kafkaops_lock_others"
BREAK = "kafkaops_break_lock"
SETTINGS = (
    "kafkaops_lock_dir",
    "ansible_connection",
    "ansible_host",
    "ansible_port",
)
# Locks of runs that are gone, on one host: two at most, with an inventory that was renamed.
REPLACED = 3
# Until a module that a killed run has left is not waited for any more, and how often that is said meanwhile. A start
# and a stop with the default timeouts take less.
BUSY_SECONDS, SAY_SECONDS = 900.0, 10.0
INSTANCES = {"kafka": "kafka_config_dir", "zookeeper": "zookeeper_config_dir"}


class ActionModule(ActionBase):
    """Plan, ask each place, judge, give back; documented in plugins/modules/run_lock.py."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Run one phase; see the module's documentation for what comes back."""
        result = super().run(tmp, task_vars)
        del tmp
        _validation, arguments = self.validate_argument_spec(
            argument_spec={
                "phase": {
                    "type": "str",
                    "choices": ["plan", "take", "judge", "give_back"],
                    "required": True,
                },
                "place": {"type": "dict"},
                "disks": {"type": "bool", "default": False},
            },
            required_if=[("phase", "take", ["place"]), ("phase", "give_back", ["place"])],
        )
        result["changed"] = False
        if self._task.check_mode:
            result["skipped"] = True
        elif arguments["phase"] in ("plan", "judge"):
            found = self._plan(task_vars, arguments["disks"])
            result.update(_told(found) if arguments["phase"] == "plan" else {})
            if arguments["phase"] == "judge":
                result.update(self._judge(found, task_vars, arguments["disks"]))
        else:
            place = Place.from_dict(arguments["place"])
            if arguments["phase"] == "take":
                result.update(self._take(place, task_vars).to_dict())
            else:
                result.update(self._give_back(place, task_vars))
        return result

    # ------------------------------------------------------------ where

    def _plan(self, task_vars: Any, disks: bool) -> Any:
        inventory = Inventory(self._templar, self._loader, task_vars)
        in_play = task_vars["ansible_play_hosts_all"]
        groups = inventory.members()
        groups["kafka"] |= groups.pop("controllers")
        hosts = sorted(groups["kafka"] | groups["zookeeper"])
        absent = _absent(inventory, hosts, task_vars)
        members = []
        for host in hosts:
            cluster = inventory.evaluated(host, ("kafka_cluster_name",))["kafka_cluster_name"]
            instances = [INSTANCES[product] for product in INSTANCES if host in groups[product]]
            if disks:
                instances = []  # it starts and stops none
            settings = {}
            try:
                settings = inventory.evaluated(host, (*SETTINGS, *instances))
            except AnsibleError as error:
                # The way to a host that this run may have nothing to do with.
                absent.setdefault(host, f"its variables cannot be read: {_reason(error)}")
            members.append(
                Member(
                    name=host,
                    cluster=lock_beside(str(cluster)) if disks else str(cluster),
                    address=_address(host, settings),
                    directory=str(settings.get("kafkaops_lock_dir") or ""),
                    # what jvm_instance holds while it works
                    instances=tuple(
                        os.path.join(str(settings[name]), ".lock")
                        for name in instances
                        if settings.get(name)
                    ),
                    absent=absent.get(host, ""),
                    in_play=host in in_play,
                )
            )
        return plan(members, task_vars["ansible_play_hosts"])

    # ------------------------------------------------------------ each place

    def _take(self, place: Place, task_vars: Any) -> Answer:
        owner = _this_run(place.cluster)
        holder, replaced = None, ""
        # One look for each lock that may be replaced, that of another name of the cluster among them, and one more;
        # whoever was quicker with the last is told instead.
        for _attempt in range(REPLACED + 1):
            try:
                taken = self._ask(place, owner, holder, task_vars)
            except (AnsibleError, OSError) as error:
                return Answer(place, False, unanswered=_reason(error))
            if taken.granted:
                beside = taken.beside
                if beside and (is_gone(beside, owner) or owner.is_same(beside)):
                    beside = None
                return Answer(
                    place,
                    True,
                    holder,
                    replaced,
                    waited=taken.waited,
                    busy=taken.busy,
                    beside=beside,
                    marks=taken.marks,
                )
            holder = taken.holder
            replaced = replacement(
                holder, is_gone(holder, owner), str(task_vars.get(BREAK) or "").strip()
            )
            if not replaced:
                break
        return Answer(place, False, holder)

    def _ask(
        self, place: Place, owner: Owner, instead_of: Optional[Owner], task_vars: Any
    ) -> Taken:
        """One answer of the place, with its instances waited for; AnsibleError or OSError where it does not answer."""
        answers: List[Taken] = []

        def is_idle() -> bool:
            if answers:
                self._display.display(
                    f"    {place.host}: waiting for {SAY_SECONDS * len(answers):g} s: a module of another run still works"
                    f" on an instance ({answers[-1].busy})"
                )
            answers.append(self._ask_once(place, owner, instead_of, task_vars))
            return not answers[-1].busy

        wait_until(is_idle, BUSY_SECONDS, poll_seconds=0)  # each question has its own pause
        return replace(answers[-1], waited=any(each.waited for each in answers))

    def _ask_once(
        self, place: Place, owner: Owner, instead_of: Optional[Owner], task_vars: Any
    ) -> Taken:
        if is_here(self):
            directory = os.path.expanduser(place.directory)
            paths = [os.path.expanduser(path) for path in place.instances]
            return take(directory, place.cluster, owner, instead_of, paths, SAY_SECONDS)
        arguments = {
            "owner": owner.to_dict(),
            "instances": list(place.instances),
            "seconds": SAY_SECONDS,
        }
        if instead_of:
            arguments["instead_of"] = instead_of.to_dict()
        answer = self._host_lock("taken", place, arguments, task_vars)
        return Taken(
            bool(answer["granted"]),
            Owner.from_dict(answer["holder"]),
            bool(answer["waited"]),
            str(answer["busy"]),
            Owner.from_dict(answer["beside"]) if answer["beside"] else None,
            tuple(answer["marks"]),
        )

    def _give_back(self, place: Place, task_vars: Any) -> Dict[str, Any]:
        owner = _this_run(place.cluster)
        try:
            if is_here(self):
                granted = give_back(os.path.expanduser(place.directory), place.cluster, owner)
            else:
                arguments = {"owner": owner.to_dict()}
                granted = self._host_lock("free", place, arguments, task_vars)["granted"]
        except (AnsibleError, OSError) as error:
            # Our process ends soon, and then it is as good as given back for the next run from here.
            self._display.warning(
                f"the lock of cluster {place.cluster} was not given back on {place.host}: {_reason(error)}"
            )
            granted = False
        return {"granted": bool(granted)}

    def _host_lock(
        self, state: str, place: Place, arguments: Any, task_vars: Any
    ) -> Dict[str, Any]:
        answer = self._execute_module(
            module_name="kafkaops.cluster.host_lock",
            module_args=dict(
                arguments, state=state, directory=place.directory, cluster=place.cluster
            ),
            task_vars=task_vars,
        )
        if answer.get("failed") or "granted" not in answer:
            raise AnsibleError(why_no_answer(answer))
        return answer

    # ------------------------------------------------------------ all of them

    def _judge(self, found: Any, task_vars: Any, disks: bool) -> Dict[str, Any]:
        told = list((task_vars.get(FIRST) or {}).get("results") or [])
        hostvars, hosts = task_vars["hostvars"], task_vars["ansible_play_hosts_all"]
        of_hosts = {host: hostvars.raw_get(host) for host in hosts}
        for host in hosts:
            told += (of_hosts[host].get(OTHERS) or {}).get("results") or []
        answers = [Answer.from_dict(each) for each in told if "granted" in each]
        judged = verdict(
            found,
            answers,
            _this_run(""),
            str(task_vars.get(BREAK) or "").strip(),
            # Who starts and stops is no reason for who moves replicas between disks to look again.
            [] if disks else [holder for host in hosts for holder in _seen(of_hosts[host])],
            {} if disks else _marks(of_hosts),
        )
        for each in judged.warnings:
            self._display.display(f"{each.level}: {each.line()}", color=C.COLOR_WARN)
        for line in judged.notes:
            self._display.display(f"    {line}")
        return {
            "granted": judged.granted,
            "outdated": judged.outdated,
            "told": "\n".join(each.line() for each in judged.errors),
            "fences": {name: dict(fence) for name, fence in judged.fences.items()},
        }


def _seen(of_host: Any) -> List[str]:
    """Return the id of the run that the preflight has found to hold the lock on a host, if one did."""
    facts = (of_host.get(COLLECTED) or {}).get("facts") or {}
    return [facts["lock"]["owner"]] if facts.get("lock") else []


def _marks(of_hosts: Mapping[str, Any]) -> Dict[str, List[str]]:
    """host -> the marks of its instances that the preflight has found, of those that it has asked."""
    facts = {host: (of_hosts[host].get(COLLECTED) or {}).get("facts") or {} for host in of_hosts}
    return {host: list(found["marks"]) for host, found in facts.items() if "marks" in found}


def _told(found: Any) -> Dict[str, Any]:
    def plain(shares: Any) -> Any:
        return {worker: [place.to_dict() for place in places] for worker, places in shares.items()}

    return {
        "first": [place.to_dict() for place in found.first],
        "others": plain(found.others),
        "shares": plain(found.shares),
    }


def _this_run(cluster: str) -> Owner:
    """The Owner that this run is. A worker that has outlived it must not take a lock in its name."""
    try:
        pid, _ticks = this_run()
    except LookupError as error:
        raise AnsibleActionFail(str(error)) from error
    arguments = context.CLIARGS
    words = [os.path.basename(str(each)) for each in arguments.get("args") or ()]
    if arguments.get("subset"):
        words += ["--limit", str(arguments["subset"])]
    what = " ".join(words) or "a playbook"
    owner = owner_of(pid, what, cluster, time.time())
    if owner is None:  # since that look
        raise AnsibleActionFail(RUN_ENDED)
    return owner


def _absent(inventory: Inventory, hosts: Iterable[str], task_vars: Any) -> Dict[str, str]:
    """host -> why it does not answer, of those of which the preflight knows it."""
    entries = {host: inventory.raw_variables(host).get(COLLECTED) for host in hosts}
    for entry in (task_vars.get(OUTSIDE) or {}).get("results") or []:
        entries[entry.get("item")] = entry
    return {
        host: str(entry["unreachable_reason"])
        for host, entry in entries.items()
        if entry and entry.get("unreachable_reason")
    }


def _address(host: str, settings: Mapping[str, Any]) -> str:
    """Equal for inventory names that lead to one machine, as far as the inventory tells."""
    if settings.get("ansible_connection") == "local":
        return "local"
    return endpoint(settings.get("ansible_host") or host, settings.get("ansible_port") or "")


def _reason(error: Any) -> str:
    """Why a host did not answer, on one line."""
    if isinstance(error, OSError):
        return f"{error.filename or 'the lock'}: {error.strerror or error}"
    text = str(getattr(error, "message", None) or error).strip()
    line = (text.splitlines() or ["no reason given"])[-1][:300]
    return f"it cannot be reached: {line}" if isinstance(error, AnsibleConnectionFailure) else line

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The preflight's edge to Ansible: gather settings and facts of every member, judge them at once.

`phase: collect` runs per host (delegated for members outside --limit), `phase: judge` once. `phase: command`
judges nothing but what was given with -e, for playbooks that contact no host before they act.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
import time
from collections.abc import Mapping
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ansible import constants as C
from ansible import context
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.validation import check_type_list
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.splitter import parse_kv
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import filter_loader
from ansible.release import __version__ as core_version
from ansible.utils.display import Display
from ansible.utils.vars import load_extra_vars

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    exclusive,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.java import FOR_SPARK
from ansible_collections.kafkaops.cluster.plugins.module_utils.java import find as find_java
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import masked
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.another_host import (
    AnotherHost,
    NoSuchConnection,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.asking import (
    Ask,
    ask_clusters,
    asked_here,
    not_asked,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.callers import callers_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import (
    found,
    in_order,
    merged,
    reported,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.host_facts import (
    ARGUMENTS,
    host_facts,
    jvm_refusal,
    missing_packages,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.ids import natural_key
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import (
    COLLECTED,
    OUTSIDE,
    ROLES,
    Inventory,
    first_line,
    masked_settings,
    misspelt,
    plain,
    raw_of,
    role_defaults,
    with_assigned_ids,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.judge import judge
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.jvm import options_to_try
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    Member,
    Raw,
    facts_request,
    names_to_resolve,
    read_member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.network_facts import (
    held_sockets,
    resolve_names,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.on_controller import (
    WrongArguments,
    answered,
    has_environment,
    is_here,
    not_linux,
    too_old,
    why_no_answer,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.play_variables import (
    check_elsewhere,
    check_names,
    check_unread,
    check_values,
    counting_nowhere,
    near_names,
    play_variables,
    running,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.report import (
    message,
    reports,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.tables import load_versions
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.upgrades import (
    FINALIZE,
    ROLLING_BACK,
    ROLLING_UPGRADE,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.variables import (
    WITH_SECRETS,
    declared,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    CLIENT_PACKAGES,
    DEPLOY,
    FETCH,
    FITTING,
    JOB_PACKAGES,
    KRAFT,
    LOCALHOST,
    PURPOSES,
    AdminHost,
    Callers,
    Controller,
    World,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    ERROR,
    NOTE,
    WARNING,
    Problem,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import some

display = Display()
if refused := too_old(core_version) or not_linux():
    raise AnsibleError(str(refused))
# Ansible imports this file before it forks: what is read here is read once, and not for each host.
declared()
role_defaults(DataLoader())
# One filter brings all of the collection, and what they import.
filter_loader.get("kafkaops.cluster.generation")

# What is amiss with hosts that do not answer, and no matter to what is done without them.
# Nor does it matter who gets which id where only what ran before is started.
# It starts with the list of servers that it had, too.
WITHOUT_ABSENT = (
    "host.unreachable",
    "limit.hidden_member",
    "identity.unknown_ids_in_use",
    "ensemble.moved",
    "ensemble.server_list",
)
# Arguments that the playbook gives, and phases/lock.yml again where it has to look once more.
ASKED = tuple("enforce fit_for leave_absent leaving purpose quorum replaced resize topics".split())

# What the Python of a host that administers has to have.
ADMIN_PACKAGES = [*CLIENT_PACKAGES, *JOB_PACKAGES]
# (module, arguments) -> the module's result, on some host.
Run = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]

# Consents are of any type: one text will do, too.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "phase": {"type": "str", "choices": ["collect", "judge", "command"], "required": True},
    "host": {"type": "str"},
    "accept": {"type": "raw", "default": []},
    "enforce": {"type": "bool", "default": True},
    "leave_absent": {"type": "bool", "default": False},
    "purpose": {"type": "str", "choices": list(PURPOSES), "default": DEPLOY},
    "replaced": {"type": "str", "default": ""},
    "resize": {"type": "bool", "default": False},
    "quorum": {
        "type": "str",
        "choices": ["keep", "change", "dynamic", "migrate"],
        "default": "keep",
    },
    "topics": {"type": "bool", "default": True},
    "leaving": {"type": "list", "elements": "str", "default": []},
    "fit_for": {
        "type": "list",
        "elements": "str",
        "choices": list(FITTING),
        "default": [KRAFT],
    },
}


class ActionModule(ActionBase):
    """Collect, then judge."""

    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Run one phase; see the module's documentation for what comes back."""
        try:
            return self._run(tmp, task_vars)
        except AnsibleError as error:
            if self._task.args.get("phase") != "collect":
                raise
            # What has come so far is no matter of the host's connection.
            return {"failed": True, "begun": True, "msg": str(error)}

    def _run(self, tmp: Any, task_vars: Any) -> Dict[str, Any]:
        result = super().run(tmp, task_vars)
        arguments = _taken(self._task.args)
        inventory = Inventory(self._templar, self._loader, task_vars)
        if arguments["phase"] == "collect":
            host = arguments["host"] or task_vars["inventory_hostname"]
            contact = arguments["purpose"] != FETCH
            result.update(self._collect(inventory, host, contact, task_vars))
        elif arguments["phase"] == "command":
            findings = in_order(self._of_the_command(inventory, arguments, task_vars))
            _say([each for each in findings if each.level != ERROR])
            result.update(_refused(findings) or {"changed": False})
        else:
            result.update(self._judge(inventory, arguments, task_vars))
        return result

    # ------------------------------------------------------------ collect

    def _collect(
        self, inventory: Inventory, host: str, contact: bool, task_vars: Any
    ) -> Dict[str, Any]:
        gathered = inventory.gather(host)
        if not gathered["runs_kafka"] and not gathered["is_server"]:
            return {"changed": False, "member": False, "hidden": []}
        in_play = set(task_vars["ansible_play_hosts_all"])
        siblings = set(gathered["siblings"])
        if set(task_vars["hostvars"]) - in_play:
            # Only the hosts of a group may know what it is called.
            clusters = self._once(["clusters"], inventory.by_cluster)
            siblings |= set(clusters.get(str(gathered["settings"].get("kafka_cluster_name")), ()))
        result = {
            "changed": False,
            "member": True,
            "hidden": sorted(siblings - in_play),
            "settings": masked_settings(gathered["settings"]),
            "errors": gathered["errors"],
            "faults": gathered["faults"],
            "tls": gathered["tls"],
            "is_broker": gathered["is_broker"],
            "is_server": gathered["is_server"],
            "controllers": gathered["controllers"],
            "siblings": sorted(siblings),
            "facts": None,
            "unreachable_reason": "",
        }
        if not contact:
            return result
        member, _findings = read_member(raw_of(host, gathered))
        names = set(names_to_resolve(member)) | self._announced(inventory, gathered)
        request = facts_request(member, sorted(names))
        for product in ("kafka", "zookeeper"):
            if product in request:
                request[product]["jvm_options"] = options_to_try(member, product)
        before = time.time()
        facts, verb, why = _facts_of(lambda: self._examine(inventory, host, request, task_vars))
        after = time.time()
        if facts is None:
            # Not a failure of this task: the verdict names the host beside all other findings.
            reason = f"it cannot be {verb}: {why}"
            return dict(result, unreachable_reason=reason)
        result["facts"] = facts
        result["clock_offset_seconds"] = facts["clock"] - (before + after) / 2
        result["clock_uncertainty_seconds"] = (after - before) / 2
        return result

    def _examine(
        self,
        inventory: Inventory,
        host: str,
        request: Mapping[str, Any],
        task_vars: Mapping[str, Any],
    ) -> Mapping[str, Any]:
        """The answer of the module host_info."""
        if not self._is_here(inventory, host):
            return self._execute_module(
                module_name="kafkaops.cluster.host_info",
                module_args=request,
                task_vars=task_vars,
            )
        try:
            return answered(
                request,
                ARGUMENTS,
                lambda parameters: {
                    "facts": host_facts(
                        parameters, refusal=self._jvm_refusal, sockets=self._sockets
                    )
                },
            )
        except WrongArguments as error:
            return {"msg": str(error)}
        except Exception as error:  # pylint: disable=broad-except
            # As the module's own end would be: a finding of this host.
            return {"msg": f"{type(error).__name__}: {error}"}

    def _is_here(self, inventory: Inventory, host: str) -> bool:
        """Whether this process itself is what the module would be; its Python's packages are facts."""
        if not is_here(self):
            return False
        python = inventory.evaluated(host, ("ansible_python_interpreter",))
        return python.get("ansible_python_interpreter") == sys.executable

    def _once(self, what: Any, make: Callable[[], Any]) -> Any:
        """What `make` returns, made once for all hosts of this task.

        Each host of a task has a process of its own. The first leaves its answer in Ansible's directory
        of this run for the others; the task's id makes the file's name, so no other play reads it.
        """
        text = json.dumps([str(self._task._uuid), what])
        key = hashlib.sha256(text.encode("utf-8")).hexdigest()
        path = os.path.join(C.DEFAULT_LOCAL_TMP, f"kafkaops-{key}.json")
        with exclusive(f"{path}.lock"):
            if os.path.exists(path):
                with open(path, encoding="utf-8") as source:
                    return json.load(source)
            made = make()
            write_atomically(path, json.dumps(made))
            return made

    def _jvm_refusal(self, home: str, options: List[str]) -> Optional[str]:
        """What a JVM of this machine says to these options: a trial for all hosts that have the same."""
        return self._once(["jvm", home, options], lambda: jvm_refusal(home, options))

    def _sockets(self) -> List[Dict[str, Any]]:
        """Who listens on this machine: to look into all its processes takes as long as reading a host's variables."""
        return self._once(["sockets"], held_sockets)

    def _announced(self, inventory: Inventory, gathered: Mapping[str, Any]) -> Set[str]:
        """The names that the members announce.

        Evaluating every member's variables for every host would take time that grows with the square
        of the hosts.
        """
        members = [gathered["brokers"], gathered["servers"], gathered["controllers"]]

        def evaluate() -> List[str]:
            names: Set[str] = set()
            for sibling in gathered["siblings"]:
                names |= set(inventory.names_of(sibling, *(sibling in each for each in members)))
            return sorted(names)

        return set(self._once(["names", members], evaluate))

    # ------------------------------------------------------------ judge

    def _judge(
        self, inventory: Inventory, arguments: Mapping[str, Any], task_vars: Any
    ) -> Dict[str, Any]:
        command = in_order(self._of_the_command(inventory, arguments, task_vars))
        # What is wrong about the command itself is never only shown: nobody knows what was wanted. What else is amiss is
        # no matter of a run that would only show it.
        refused = _refused(command)
        if refused and not arguments["enforce"]:
            return refused
        raws = self._raws(inventory, task_vars)
        if not raws:
            raise AnsibleActionFail(
                "\n".join(each.line() for each in _no_member(inventory, task_vars))
            )
        raws = with_assigned_ids(inventory, raws)
        members = [read_member(raw)[0] for raw in raws]
        controller, asked = Controller(), {}
        if arguments["purpose"] != FETCH:
            found_admins = self._admins(inventory, members, task_vars)
            admins = {name: admin for name, (admin, _ask) in found_admins.items()}
            controller = _controller(members, admins, self._callers(inventory, members, task_vars))
            asks = {
                name: ask
                for name, (admin, ask) in found_admins.items()
                if not (admin.unreachable or set(CLIENT_PACKAGES) & set(admin.missing))
            }
            topics = arguments["topics"] and arguments["purpose"] == DEPLOY
            asked = ask_clusters(members, task_vars["hostvars"], asks, topics)
        verdict = judge(
            raws,
            load_versions(ROLES),
            controller=controller,
            snapshots={name: each["snapshot"] for name, each in asked.items() if each["snapshot"]},
            host_names=frozenset(task_vars["hostvars"]),
            group_names=frozenset(
                name for name in task_vars["groups"] if not name.startswith("kafkaops_")
            ),
            misspelt=misspelt(inventory, raws),
            accept=_consents(arguments["accept"])
            + list(WITHOUT_ABSENT) * arguments["leave_absent"],
            purpose=arguments["purpose"],
            commands=_commands(task_vars["playbook_dir"]),
            replaced=int(arguments["replaced"]) if arguments["replaced"].isdigit() else None,
            leaving=(
                frozenset(arguments["leaving"]) - {""}
                if arguments["resize"] or arguments["quorum"] == "change"
                else None
            ),
            voters_change=arguments["quorum"] == "change",
            becomes_dynamic=arguments["quorum"] == "dynamic",
            migrates=arguments["quorum"] == "migrate",
            reconciles=arguments["topics"],
            fit_for=frozenset(arguments["fit_for"]),
            drawn=os.urandom(16).hex(),
            forks=int(task_vars.get("ansible_forks") or 0),
        )
        findings = in_order([*verdict.findings, *not_asked(asked), *command])
        result = dict(verdict.result)
        result["controllers"] = {
            name: each["controller"]
            for name, each in asked.items()
            if each["controller"] is not None
        }
        result["in_sync"] = {
            name: each["in_sync"] for name, each in asked.items() if each["in_sync"] is not None
        }
        result["findings"] = [reported(each) for each in findings]
        result["changed"] = False
        # for whoever has to look once more
        result["asked"] = {key: arguments[key] for key in ASKED}
        enforce = arguments["enforce"]
        # The report of a run that looked at the hosts stays.
        if enforce and arguments["purpose"] != FETCH and not self._task.check_mode:
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            result["report"] = _write_reports(reports(raws, findings, result["ids"], now))
        errors = {each.check for each in findings if each.level == ERROR}
        _say([each for each in findings if each.level != ERROR or not enforce])
        if errors and enforce:
            # A failed task prints all that it returns: the lines are enough for people, and
            # preflight.json has the rest.
            result = {
                "changed": False,
                "failed": True,
                "checks": sorted(errors),
                "report": result.get("report", {}),
            }
        result["msg"] = message(findings, len(raws), enforce)
        return result

    def _of_the_command(
        self, inventory: Inventory, arguments: Mapping[str, Any], task_vars: Any
    ) -> List[Problem]:
        """What is wrong or doubtful about the play variables that were given with -e, or that hosts have."""
        given, hosts = load_extra_vars(self._loader), task_vars["ansible_play_hosts_all"]
        runs = running(context.CLIARGS.get("args"))
        known = [name for name in play_variables() if name in given and runs.read(name)]
        values = inventory.evaluated(task_vars["inventory_hostname"], known)
        near, unread = near_names(list(given), runs), [each for each in given if runs.refuse(each)]
        elsewhere = inventory.having(counting_nowhere(set(given), runs), hosts)
        # Names of somebody's own, which an inventory is made with.
        doubtful = [*near, *unread, *elsewhere]
        own = inventory.mentioned(doubtful) if doubtful else set()
        near = {name: wanted for name, wanted in near.items() if name not in own}
        accept = _consents(arguments["accept"])
        return [
            *check_values(values, hosts, runs),
            *check_names(near, hosts, "settings.unknown_variable" in accept, runs),
            *check_unread(set(given) - own, hosts, "settings.no_effect" in accept, runs),
            *check_elsewhere({name: elsewhere[name] for name in elsewhere if name not in own}),
        ]

    def _admins(
        self, inventory: Inventory, members: Sequence[Member], task_vars: Any
    ) -> Dict[str, Tuple[AdminHost, Ask]]:
        """cluster -> what is to be known of the host that administers it, before it is needed, and how it asks there.

        Without a cluster whose kafka_admin_host names no host: nobody is asked with the logins of a cluster that another
        host administers.
        """
        own = _admin_of(inventory, task_vars["inventory_hostname"])
        known: Dict[Tuple[str, str], Tuple[AdminHost, Ask]] = {}
        found_admins = {}
        for cluster in World(tuple(members)).clusters:
            if not cluster.nodes:
                continue
            wanted = _admin_of(inventory, cluster.nodes[0].name)
            if not inventory.has(wanted[0]):
                continue
            if wanted not in known:
                look = self._own_admin if wanted == own else self._other_admin
                known[wanted] = look(*wanted, task_vars)
            found_admins[cluster.name] = known[wanted]
        return found_admins

    def _own_admin(self, name: str, python: str, task_vars: Any) -> Tuple[AdminHost, Ask]:
        """Of the host that this task is delegated to."""

        def run(module: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            return self._execute_module(
                module_name=module, module_args=arguments, task_vars=task_vars
            )

        if self._connection.transport == "local" and python == sys.executable:
            missing = tuple(missing_packages(ADMIN_PACKAGES))
            ask = asked_here if is_here(self) else _asked_by(run)
            return AdminHost(name, python, missing=missing), ask
        return _examined(name, python, run)

    def _other_admin(self, name: str, python: str, task_vars: Any) -> Tuple[AdminHost, Ask]:
        """Of another one."""

        def run(module: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            try:
                return there.connected()(module, arguments)
            except NoSuchConnection as error:
                raise AnsibleConnectionFailure(str(error)) from error

        try:
            there = AnotherHost(self, name, python, task_vars)
            here = there.is_controller() and python == sys.executable
        except AnsibleError as error:  # an expression of its connection
            return AdminHost(name, python, unreachable=first_line(error)), asked_here
        if here and not has_environment(self):
            missing = tuple(missing_packages(ADMIN_PACKAGES))
            return AdminHost(name, python, missing=missing), asked_here
        return _examined(name, python, run)

    @staticmethod
    def _callers(inventory: Inventory, members: Sequence[Member], task_vars: Any) -> Callers:
        try:
            return callers_of(inventory, members, task_vars["groups"])
        except AnsibleError as error:
            raise AnsibleActionFail(f"the hosts of clients: {first_line(error)}") from error

    def _raws(self, inventory: Inventory, task_vars: Any) -> List[Raw]:
        # Ansible itself has refused these before it called this action: no such connection, port, shell or become.
        untried: Dict[str, str] = {}
        collected = {}
        failed_here = set()
        for host in task_vars["ansible_play_hosts_all"]:
            entry = inventory.raw_variables(host).get(COLLECTED)
            if isinstance(entry, Mapping) and entry.get("failed"):
                untried[host] = _untried(host, entry)
                failed_here.add(host)
            elif isinstance(entry, Mapping) and entry.get("member"):
                collected[host] = (entry, True)
        for entry in (task_vars.get(OUTSIDE) or {}).get("results") or []:
            if entry.get("failed"):
                untried[entry["item"]] = _untried(entry["item"], entry)
            elif entry.get("member"):
                collected[entry["item"]] = (entry, False)
        wanted = {host for entry, _in_play in collected.values() for host in entry["siblings"]}
        raws = []
        for host in sorted(wanted | set(collected) | failed_here):
            entry, in_play = collected.get(host) or (None, host in failed_here)
            if entry is None:
                gathered = inventory.gather_again(host)
                if not gathered["runs_kafka"] and not gathered["is_server"]:
                    continue  # in the group of controllers, and of no cluster
                gathered["settings"] = masked_settings(gathered["settings"])
                why = "it was not asked"
                if host in untried:
                    why = f"it cannot be examined: {untried[host]}"
                raws.append(raw_of(host, gathered, unreachable=why, in_play=in_play))
                continue
            entry = plain(entry)
            raws.append(
                raw_of(
                    host,
                    entry,
                    facts=entry["facts"],
                    unreachable=entry["unreachable_reason"],
                    in_play=in_play,
                    clock_offset_seconds=entry.get("clock_offset_seconds"),
                    clock_uncertainty_seconds=entry.get("clock_uncertainty_seconds") or 0.0,
                )
            )
        return raws


def _admin_of(inventory: Inventory, host: str) -> Tuple[str, str]:
    """(host, Python) from which the cluster of this host is administered."""
    known: Dict[str, Any] = {}
    for variable in ("kafka_admin_host", "kafka_admin_python"):
        try:
            known.update(inventory.evaluated(host, (variable,)))
        except AnsibleError:
            pass  # a finding of its own
    name = str(known.get("kafka_admin_host") or "").strip() or LOCALHOST[0]
    return name, str(known.get("kafka_admin_python") or sys.executable)


def _examined(name: str, python: str, run: Run) -> Tuple[AdminHost, Ask]:
    """A host that administers, looked at by a module, and how modules ask from there."""
    facts, _verb, why = _facts_of(
        lambda: run("kafkaops.cluster.host_info", {"packages": ADMIN_PACKAGES})
    )
    if facts is None:
        return AdminHost(name, python, unreachable=why), _asked_by(run)
    return AdminHost(name, python, missing=tuple(facts["missing_packages"])), _asked_by(run)


def _asked_by(run: Run) -> Ask:
    return lambda asking: run("kafkaops.cluster.kafka_cluster_info", asking)


def _taken(given: Mapping[str, Any]) -> Dict[str, Any]:
    """The arguments with their types. A wrong one has its default, and is a finding of its variable."""

    def is_wrong(name: str, value: Any) -> bool:
        option = OPTIONS.get(name, {})
        judged = ArgumentSpecValidator({name: option}).validate({name: value})
        return "default" in option and bool(judged.error_messages)

    right = {name: value for name, value in given.items() if not is_wrong(name, value)}
    found_of = ArgumentSpecValidator(dict(OPTIONS)).validate(right)
    if found_of.error_messages:
        raise AnsibleActionFail("; ".join(found_of.error_messages))
    return found_of.validated_parameters


def _refused(command: Sequence[Problem]) -> Dict[str, Any]:
    """The result of a task that refuses the command, {} where nothing is wrong about it."""
    wrong = [each for each in command if each.level == ERROR]
    if not wrong:
        return {}
    lines = ["Nothing was changed: this command is refused.", *(each.line() for each in wrong)]
    checks = sorted({each.check for each in wrong})
    return {"changed": False, "failed": True, "checks": checks, "msg": "\n".join(lines)}


def _untried(host: str, entry: Mapping[str, Any]) -> str:
    """Why Ansible has not even begun to look at a host; raises what went wrong after that."""
    told = first_line(entry.get("msg"))
    if entry.get("begun"):
        raise AnsibleActionFail(f"{host}: {told}")
    if "loop_control" in told:  # of a loop's item Ansible tells what failed after that
        return "Ansible does not take its connection, port, shell or become as they are"
    return told.replace("Task failed: ", "", 1)


def _no_member(inventory: Inventory, task_vars: Any) -> List[Problem]:
    """Why no host of this run is a member: by --limit, by a group whose name cannot be read, or by empty groups."""
    members = sorted(set().union(*inventory.members().values()), key=natural_key)
    if members:
        reason = f"none of these hosts runs Kafka or ZooKeeper; {some(members)} do"
        limit = task_vars.get("ansible_limit") or ""
        return [
            found("run.no_member", task_vars["ansible_play_hosts_all"], "--limit", limit, reason)
        ]
    unread = [
        found("settings.undefined", host, name, "(not evaluated)", why)
        for host in task_vars["ansible_play_hosts_all"]
        for name, why in inventory.gather(host)["errors"].items()
    ]
    if unread:
        return merged(unread)
    host = task_vars["inventory_hostname"]
    reason = "no host of this inventory is in the groups of brokers or ZooKeeper servers"
    return [
        found("inventory.empty_group", host, "kafka_group", inventory.group(host, "kafka"), reason)
    ]


def _consents(given: Any) -> List[str]:
    """Ids of checks, as a list or in one text; what is none of both is left to the judge, who finds it."""
    listed = check_type_list(given) if isinstance(given, (list, str)) else []
    return [str(each) for each in listed if isinstance(each, str)]


def _commands(playbooks: str) -> Dict[str, str]:
    """What people run next, as they ran this: inventories, --limit and extra variables alike."""
    options = []
    for inventory in context.CLIARGS.get("inventory") or ():
        options += ["-i", _short(inventory)]
    for each in context.CLIARGS.get("extra_vars") or ():
        if _to_repeat(each):
            options += ["-e", each]
    home = os.environ.get("KAFKAOPS_HOME")
    begin = [f"KAFKAOPS_HOME={home}"] if home else []

    def command(playbook: str, *more: str) -> str:
        path = _short(os.path.join(playbooks, os.path.basename(playbook)))
        return shlex.join([*begin, "ansible-playbook", path, *options, *more])

    return {
        "finalize": command(ROLLING_UPGRADE, "-e", f"{FINALIZE}=true"),
        "upgrade": command(ROLLING_UPGRADE),
        "rollback": command(ROLLING_BACK),
    }


def _to_repeat(given: str) -> bool:
    """Whether what was given with -e, in any of Ansible's forms, belongs into the next command, too.

    Versions and the consent to finalise are of one command. What may hold a secret is not shown.
    """
    if given.startswith("@"):
        return True  # a file's name
    try:
        structured = given.lstrip().startswith(("{", "["))
        variables = DataLoader().load(given) if structured else parse_kv(given)
    except AnsibleError:
        return False
    return isinstance(variables, Mapping) and not any(
        name in WITH_SECRETS
        or masked(str(name), plain(value)) != plain(value)
        or name == FINALIZE
        or str(name).endswith("_version")
        for name, value in variables.items()
    )


def _short(path: str) -> str:
    """A path as seen from here, where that is shorter."""
    return min(os.path.relpath(path), str(path), key=len) if os.path.exists(path) else str(path)


def _facts_of(
    examine: Callable[[], Mapping[str, Any]],
) -> Tuple[Optional[Mapping[str, Any]], str, str]:
    """(facts, "", "") of a host, or (None, what could not be done with it, why)."""
    try:
        answer = examine()
    except AnsibleConnectionFailure as error:
        return None, "reached", first_line(error)
    except AnsibleError as error:  # become without its program or its password
        answer = {"module_stderr": _standard_error(error), "msg": first_line(error)}
    if answer.get("facts") is None:
        return None, "examined", why_no_answer(answer)
    return answer["facts"], "", ""


def _standard_error(error: Any) -> str:
    """What the host wrote, as Ansible's connection plugins append it to their message."""
    return str(error).partition(">>> Standard Error")[2]


def _controller(
    members: Sequence[Member], admins: Mapping[str, AdminHost], callers: Callers
) -> Controller:
    names = {name for member in members for name in names_to_resolve(member)}
    wanted = any(member.get("flow_validation") not in (None, "never") for member in members)
    java = spark_java() if wanted else None
    return Controller(java=java, names=resolve_names(names), admins=admins, callers=callers)


def spark_java() -> Dict[str, Any]:
    """The Java that the validation's job takes, as java.find returns it.

    As flow.connector.java_path of the role: that of JAVA_HOME alone, else whichever Spark runs on.
    """
    home = os.environ.get("JAVA_HOME", "")
    answers = [find_java(release, release, home) for release in FOR_SPARK]
    return next((each for each in answers if each["home"]), answers[0])


# ---------------------------------------------------------------- what people see


def _say(findings: Sequence[Problem]) -> None:
    colors = {ERROR: C.COLOR_ERROR, WARNING: C.COLOR_WARN, NOTE: C.COLOR_VERBOSE}
    for each in findings:
        display.display(f"{each.level}: {each.line()}", color=colors[each.level])


def _write_reports(texts: Mapping[str, Tuple[str, str]]) -> Dict[str, str]:
    """cluster -> path of what was written, each file whole or not at all."""
    paths = {}
    for name, (path, text) in texts.items():
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_atomically(path, text, 0o644)
        except OSError as error:
            display.warning(f"cannot write {path}: {error}")
            continue
        paths[name] = path
    return paths

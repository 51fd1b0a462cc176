# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at an instance or stage its configuration, in this process where the module would be here.

A local cluster has six instances on one machine, and each playbook looks at all of them: a module is a
Python of its own, which reads and compiles its files anew. What starts and stops something is left to the
module, which a killed run leaves to its end.

With a question for the gate, it is asked once more while the module on the host waits to stop: by this process, or
by a module where the question was asked before.
"""

from __future__ import annotations

import contextlib
import copy
import os
import secrets
import sys
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Mapping, Tuple

from ansible.errors import AnsibleError
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action.normal import ActionModule as ModuleAction

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.edge import (
    REQUIRED_IF,
    SPEC,
    answer,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.leave import (
    Answering,
    Look,
    Place,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.another_host import (
    AnotherHost,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import first_line
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.on_controller import (
    WrongArguments,
    answered,
    checked,
    is_here_in_full,
    why_no_answer,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError

# States that start and stop nothing; in check mode none does.
STILL = ("probe", "staged")
# Beginnings of the environment variables that a process, or a library, reads when it is started or loaded.
READ_AT_THE_START = ("LD_", "DYLD_", "PYTHON", "OPENSSL_")
# Who asks where this process is not who has asked before.
BROKER_MODULE, ZOOKEEPER_MODULE = (
    "kafkaops.cluster.kafka_broker_gate",
    "kafkaops.cluster.zookeeper_info",
)


class ActionModule(ModuleAction):
    """Answers itself, or calls the module of the same name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Return what the module returns."""
        arguments = self._task.args
        gate = arguments.get("gate")
        try:
            if gate:
                # the host has no use for it, and there are passwords in it
                self._task.args = {key: arguments[key] for key in arguments if key != "gate"}
                if not self._task.check_mode:
                    return self._behind_the_gate(gate, tmp, task_vars)
            return self._answered(tmp, task_vars)
        finally:
            self._task.args = arguments

    def _answered(self, tmp: Any, task_vars: Any) -> Dict[str, Any]:
        arguments = self._task.args
        # The module takes its own Python for what watches the instance.
        still = arguments.get("state", "staged") in STILL or self._task.check_mode
        if (
            not still
            or arguments.get("manager") != "supervisor"
            or self._task.delegate_to
            or not is_here_in_full(self, task_vars or {})
        ):
            return super().run(tmp, task_vars)
        try:
            return answered(arguments, SPEC, self._answer, required_if=REQUIRED_IF)
        except WrongArguments:
            return super().run(tmp, task_vars)  # the module says it in Ansible's words

    def _answer(self, parameters: Dict[str, Any]) -> Dict[str, Any]:
        # nobody has to be allowed what neither starts nor stops
        return answer(parameters, self._task.check_mode, _run, lambda: None)

    # The gate's question, right before the stop

    def _behind_the_gate(self, gate: Any, tmp: Any, task_vars: Any) -> Dict[str, Any]:
        asks = {"host": "localhost", "python": sys.executable, **(gate.get("asks") or {})}
        question = {key: gate[key] for key in gate if key != "asks"}
        admin = AnotherHost(self, str(asks["host"]), str(asks["python"]), task_vars)
        try:
            if "servers" in gate:
                return self._behind_the_gate_of_servers(question, admin, task_vars)
            environment: Dict[str, Any] = {}
            self._compute_environment_string(environment)
            # this process has begun without what a new one would read, and has the libraries of its own Python
            new = any(name.startswith(READ_AT_THE_START) for name in environment)
            if new or asks["python"] != sys.executable or not admin.is_controller():
                return self._behind_the_gate_of_module(question, admin, task_vars)
            with _environment_of(environment):
                return self._behind_the_gate_of_brokers(question, task_vars)
        except WrongArguments as error:
            return {"failed": True, "msg": f"gate: {error}"}
        except ProblemError as error:
            return {"failed": True, "msg": str(error)}
        except _NoAnswer as error:
            return {"failed": True, "msg": error.told}

    def _behind_the_gate_of_servers(
        self, gate: Any, admin: AnotherHost, task_vars: Any
    ) -> Dict[str, Any]:
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.four_letter_words import (
            states_of,
            states_without_answer,
        )
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.ensemble_gate import (
            LAST_LOOK_OPTIONS,
            EnsembleGate,
            question_of,
        )

        parameters = checked(gate, LAST_LOOK_OPTIONS).validated_parameters
        ask: Any = states_of
        if not admin.is_controller():
            run = _reached(admin)

            def ask(servers: Any) -> Any:
                asked = {"servers": [dict(server) for server in servers]}
                try:
                    return _answer_of(admin, run, ZOOKEEPER_MODULE, asked)["servers"]
                except _NoAnswer as error:
                    return states_without_answer(servers, error.told)  # it is waited for

        return EnsembleGate(question_of(parameters), parameters["idle"], ask).until_stopped(
            lambda at_hand: self._attempt(at_hand, task_vars),
            self._teller(f"server {parameters['stopping']}"),
        )

    def _behind_the_gate_of_module(
        self, gate: Any, admin: AnotherHost, task_vars: Any
    ) -> Dict[str, Any]:
        """The broker's gate, asked by the module where the first question came from."""
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling import (
            last_look,
        )
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.gate import (
            GO,
            WAIT,
            Verdict,
            waited_in_vain,
        )

        run = _reached(admin)
        broker, seconds = int(gate["broker"]), float(gate.get("wait_seconds", 300.0))

        def look() -> List[str]:
            try:
                # one look: what does not pass at once is waited for, or refused, with all its options
                asked = {**gate, "quiet_seconds": 0}
                found = _answer_of(admin, run, BROKER_MODULE, asked, check_mode=True)
            except _NoAnswer as error:
                return [error.told]
            if found["verdict"] == GO:
                return []
            return [*found["lines"], *found["reasons"]]

        return last_look.until_stopped(
            lambda at_hand: self._attempt(at_hand, task_vars),
            lambda: contextlib.nullcontext(look),
            lambda: _answer_of(admin, run, BROKER_MODULE, gate),
            lambda reasons: ProblemError(
                waited_in_vain(Verdict(broker, WAIT), round(seconds), reasons)
            ),
            seconds,
            self._teller(f"broker {broker}"),
        )

    def _behind_the_gate_of_brokers(self, gate: Any, task_vars: Any) -> Dict[str, Any]:
        # Only the process that asks needs the client's libraries.
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (
            KAFKA_RULES,
            connection_from,
            kafka_argument_spec,
        )
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
            KafkaClient,
        )
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.gatekeeper import (
            until_stopped,
        )
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.options import (
            GATE_OPTIONS,
            GATE_RULES,
            question_of,
            with_way_out,
        )

        asked = checked(gate, kafka_argument_spec(**GATE_OPTIONS), **KAFKA_RULES, **GATE_RULES)
        parameters = asked.validated_parameters
        try:
            connection = connection_from(parameters)
            return until_stopped(
                question_of(parameters),
                lambda: KafkaClient(connection),
                lambda at_hand: self._attempt(at_hand, task_vars),
                self._teller(f"broker {parameters['broker']}"),
            )
        except AdminError as error:
            return remove_values(with_way_out(error).refused(), asked._no_log_values)

    def _attempt(
        self, at_hand: Callable[[], ContextManager[Look]], task_vars: Any
    ) -> Tuple[Dict[str, Any], List[str]]:
        """Run the module, and answer it when it asks for leave; returns its result, and why it got none."""
        before, place = self._task.args, Place(self._task.args["config_dir"], secrets.token_hex(8))
        self._task.args = {**before, "leave": place.token}
        try:
            with Answering(self._beside(), place, at_hand) as answering:
                result = super().run(None, task_vars)
        finally:
            self._task.args = before
        if not result.get("failed"):
            looked = {} if answering.looked_ms is None else {"looked_ms": answering.looked_ms}
            return {**result, **looked}, []
        return result, answering.reasons

    def _teller(self, who: str) -> Callable[[str], None]:
        return lambda line: self._display.display(f"    {who}: {line}")

    def _beside(self) -> Callable[[str], bool]:
        """A function that runs a command on the host while the module is run there."""
        # What a connection and its become know belongs to the one command that they run.
        other = copy.copy(self)
        other._connection = copy.copy(self._connection)
        other._connection.become = copy.copy(self._connection.become)
        return lambda command: other._low_level_execute_command(command)["rc"] == 0


class _NoAnswer(Exception):
    """`told`: why there is none, in the words of the module or of the way to its host."""

    def __init__(self, told: str) -> None:
        super().__init__(told)
        self.told = told


def _reached(admin: AnotherHost) -> Callable[..., Dict[str, Any]]:
    """What runs modules there, as `AnotherHost.connected`; _NoAnswer where nobody is reached."""
    try:
        return admin.connected()
    except AnsibleError as error:
        raise _NoAnswer(f"{admin.name} cannot be reached: {first_line(error)}") from error


def _answer_of(
    admin: AnotherHost, run: Callable[..., Dict[str, Any]], module: str, arguments: Any, **how: Any
) -> Dict[str, Any]:
    """A module's result; _NoAnswer where it has failed."""
    try:
        found = run(module, arguments, **how)
    except AnsibleError as error:
        raise _NoAnswer(f"{admin.name} cannot be asked: {first_line(error)}") from error
    if found.get("failed"):
        # its own words whole: a refusal ends with the command that accepts it
        raise _NoAnswer(why_no_answer(found) if found.get("module_stderr") else str(found["msg"]))
    return found


@contextlib.contextmanager
def _environment_of(variables: Mapping[str, Any]) -> Iterator[None]:
    """This process, which works on this one task, with these environment variables of the task."""
    before = dict(os.environ)
    os.environ.update({name: str(value) for name, value in variables.items()})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _run(command: List[str]) -> Tuple[int, str, str]:
    """What systemd would be asked with; supervisord has a socket."""
    raise NotImplementedError(command)

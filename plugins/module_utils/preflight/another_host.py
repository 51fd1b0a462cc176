# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules on another host than the task's own, from an action whose own module runs meanwhile.

Runs on the controller only. What a task with delegate_to would do, as Ansible itself does it: an action has no task.
"""

from __future__ import annotations

import copy
import os
from typing import Any, Callable, Dict, Mapping

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import Inventory

# What the password of a connection is called in an inventory.
PASSWORDS = ("ansible_password", "ansible_ssh_pass", "ansible_ssh_password")


class NoSuchConnection(Exception):
    """Ansible has no such connection. Where it delegates a task itself, it refuses that before."""


class AnotherHost:
    """A host, as the account of its connection; `python` runs the modules there.

    `host`: as in delegate_to, its name in the inventory, or any other name that the connection finds.
    """

    def __init__(self, action: Any, host: str, python: str, task_vars: Mapping[str, Any]) -> None:
        extra = {"ansible_python_interpreter": python, "ansible_become": False}
        self.name, self._own = host, task_vars
        self._action = action
        if host in task_vars["hostvars"]:
            inventory = Inventory(action._templar, action._loader, task_vars)
            self._templar, variables = inventory.templar_for(host, extra)
        else:
            variables = {**self._of_no_inventory(), **extra}
            self._templar = action._templar.copy_with_new_env(available_variables=variables)
        self._variables = {**variables, "ansible_delegated_vars": {host: variables}}

    def _of_no_inventory(self) -> Dict[str, Any]:
        """The variables that Ansible gives a host with this name in delegate_to: those of all hosts and of the play."""
        task = copy.copy(self._action._task)
        task.delegate_to = self.name
        manager = self._own["hostvars"]._variable_manager
        found, _name = manager.get_delegated_vars_and_hostname(
            self._action._templar, task, self._own
        )
        return dict(found["ansible_delegated_vars"][self.name])

    def is_controller(self) -> bool:
        """Whether modules there would be on the machine, and as the user, of this process."""
        return self._kind() == "local"

    def _kind(self) -> str:
        given = self._variables.get("ansible_connection")
        found = given if given is None else self._templar.template(given)
        return str(self._kind_of_play() if found is None else found)

    def _kind_of_play(self) -> str:
        """What the task's keyword `connection` said, or that of what it is in.

        Since ansible-core 2.21 the task itself names the plug-in of its own host by now.
        """
        task = self._action._task
        keyword = (task.get_ds() or {}).get("connection")
        if keyword is None:
            keyword = task._get_parent_attribute("connection", omit=True)
        if not isinstance(keyword, str):
            keyword = task.get_play().connection  # nobody says it: that of the command line
        return str(self._action._templar.template(keyword))

    def connected(self) -> Callable[..., Dict[str, Any]]:
        """Return a function (module, arguments, check_mode=False) -> the module's result.

        The connection is there by then. AnsibleConnectionFailure where it cannot be made, here and later, and
        NoSuchConnection.
        """
        task = copy.copy(self._action._task)
        task.delegate_to, task.become, task.async_val, task.register = self.name, False, 0, None
        context = self._action._play_context.copy()
        if any(name in self._own for name in PASSWORDS):
            context.password = ""  # that of the task's own host
        context = context.set_task_and_variable_override(
            task=task, variables=self._variables, templar=self._templar
        )
        context.post_validate(templar=self._templar)
        context.connection = self._kind()
        there = copy.copy(self._action)
        there._task, there._play_context, there._templar = task, context, self._templar
        there._connection = self._connection(task, context)
        there._low_level_execute_command("true")

        def run(
            module: str, arguments: Mapping[str, Any], check_mode: bool = False
        ) -> Dict[str, Any]:
            task.check_mode = check_mode
            try:
                return there._execute_module(
                    module_name=module, module_args=dict(arguments), task_vars=self._variables
                )
            finally:
                there.cleanup()

        return run

    def _connection(self, task: Any, context: Any) -> Any:
        """As Ansible makes that of a task."""
        made = self._action._shared_loader_obj.connection_loader.get(
            context.connection,
            context,
            new_stdin=None,
            task_uuid=task._uuid,
            ansible_playbook_pid=str(os.getppid()),
        )
        if made is None:
            raise NoSuchConnection(f"the connection plugin '{context.connection}' was not found")
        made.set_become_plugin(None)
        keys = {**task.dump_attrs(), "timeout": context.timeout}
        del keys["retries"]  # those of the task
        if context.password:
            keys["password"] = context.password
        made.set_options(
            task_keys=keys,
            var_options=made._resolve_option_variables(self._variables, self._templar),
        )
        made._shell.set_options(task_keys=keys, var_options=self._of_shell(made._shell))
        return made

    def _of_shell(self, shell: Any) -> Dict[str, Any]:
        named = [
            each
            for option in shell.option_definitions.values()
            for each in option.get("vars") or ()
        ]
        return {
            each["name"]: self._templar.template(self._variables[each["name"]])
            for each in named
            if each["name"] in self._variables
        }

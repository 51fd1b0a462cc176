# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The edge to Ansible of jvm_instance: its options, and what it returns, also of a failure.

The module of that name is called on the host; the action of that name answers itself where it is there.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Union

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.instance import (
    Instance,
    StartFailed,
    StillStopping,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.leave import (
    Place,
    wait_for_leave,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.managers import MANAGERS
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    ServiceError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.states import (
    Params,
    Result,
    carry_out,
    layout,
    service_manager,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.systemd import Run
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError

PROBE = {
    "host": {"type": "str", "required": True},
    "port": {"type": "int", "required": True},
    "send": {"type": "str"},
    "expect": {"type": "str"},
}
GENERATION: Dict[str, Any] = {
    "release": {"type": "path", "required": True},
    "java_home": {"type": "path", "required": True},
    "main_class": {"type": "str", "required": True},
    "classpath": {"type": "str", "required": True},
    "jvm_options": {"type": "list", "elements": "str", "default": []},
    "default_options": {"type": "list", "elements": "str", "default": []},
    "arguments": {"type": "list", "elements": "str", "default": []},
    "environment": {"type": "dict", "default": {}},
    "files": {"type": "dict", "default": {}},
    "unwatched": {"type": "list", "elements": "str", "default": []},
    "cds_archive": {"type": "path", "default": ""},
    "guard": {"type": "list", "elements": "str", "default": []},
    "guard_beside": {"type": "list", "elements": "str", "default": []},
    "service": {"type": "dict", "default": {}},
    "unit_text": {"type": "str", "default": ""},
}
SPEC: Dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "state": {
        "type": "str",
        "default": "staged",
        "choices": [
            *("staged", "started", "stopped", "removed", "deleted"),
            *("noted", "adopted", "probe"),
        ],
    },
    "configuration": {"type": "str", "default": "staged", "choices": ["staged", "in_effect"]},
    "fingerprint": {"type": "str", "default": ""},
    "restart": {"type": "bool", "default": False},
    "only_down": {"type": "bool", "default": False},
    "undone": {"type": "bool", "default": True},
    "explain": {"type": "bool", "default": False},
    "overrides": {"type": "dict", "default": {}},
    "lock": {
        "type": "dict",
        "default": {},
        "options": {
            "directory": {"type": "path"},
            "cluster": {"type": "str"},
            "owner": {"type": "str"},
        },
    },
    "gate": {"type": "dict", "default": {}, "no_log": True},
    "leave": {"type": "str", "default": ""},
    "manager": {"type": "str", "required": True, "choices": list(MANAGERS)},
    "supervisor_dir": {"type": "path"},
    "config_dir": {"type": "path", "required": True},
    "state_dir": {"type": "path", "required": True},
    "log_dir": {"type": "path", "required": True},
    "data_dirs": {"type": "list", "elements": "path", "default": []},
    "account": {"type": "str", "default": ""},
    "generation": {"type": "dict", "options": GENERATION},
    # Not within it: what Ansible writes into the system log of an option's text, it hides only where the
    # text has neither a line's end nor a quote.
    "secrets": {"type": "dict", "default": {}, "no_log": True},
    "seeds": {"type": "dict", "default": {}},
    "ready": {"type": "list", "elements": "dict", "default": [], "options": PROBE},
    "log_files": {"type": "list", "elements": "str", "default": []},
    "transient_failure": {"type": "str", "default": ""},
    "progress": {"type": "str", "default": ""},
    "start_timeout": {"type": "int", "default": 120},
    "stop_timeout": {"type": "int", "default": 300},
}
REQUIRED_IF = [
    ("state", "staged", ["generation"]),
    ("manager", "supervisor", ["supervisor_dir"]),
]


def told(name: str, error: Union[StartFailed, ServiceError, OSError]) -> str:
    """Return the error in the form of all problems, of the instance `name`."""
    check, remedy = "instance.files", ServiceError.REMEDY
    if not isinstance(error, OSError):
        check, remedy = error.CHECK, error.REMEDY
    # Most of these sentences begin with the name.
    subjects = () if str(error).startswith(name) else (name,)
    return Problem(check, str(error), remedy, subjects).line()


def answer(params: Params, check_mode: bool, run: Run, allowed: Callable[[], None]) -> Result:
    """Bring about what the parameters want; return the task's result, that of a failure, too.

    `run` is AnsibleModule.run_command; `allowed` as in `carry_out`.
    """
    manager = service_manager(params, run)

    def before_stop() -> None:
        if params["leave"]:
            wait_for_leave(Place(params["config_dir"], params["leave"]), params["name"])
            allowed()  # it has taken its time

    instance = None
    try:
        instance = Instance(layout(params, check_mode), manager)
        return carry_out(params, check_mode, instance, manager, allowed, before_stop)
    except StartFailed as error:
        # Something was stopped and something started, whatever has come of it.
        said = f"Its last lines:\n{error.journal}" if error.journal else "It has logged nothing."
        return _failure(f"{told(params['name'], error)} {said}", True)
    except ProblemError as error:
        return _failure(str(error), _acted(instance))
    except StillStopping as error:
        more = {"took": error.took} if error.took else {}
        return _failure(told(params["name"], error), _acted(instance), **more)
    except (ServiceError, OSError) as error:
        return _failure(told(params["name"], error), _acted(instance))


def _acted(instance: Optional[Instance]) -> bool:
    return instance is not None and instance.acted


def _failure(message: str, changed: bool, **more: Any) -> Result:
    return {"failed": True, "msg": message, "changed": changed, **more}

#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module jvm_instance."""

from __future__ import annotations

DOCUMENTATION = r"""
module: jvm_instance
short_description: Stage and start one instance of a JVM service
description:
  - Writes everything that decides how an instance behaves as one immutable generation, and swaps it in
    when it is the instance's turn, together with the release.
  - Tells whether the running process is what is desired, and if not, why, in words.
  - Works with systemd, and with supervisord where there is neither systemd nor root.
version_added: 0.1.0
author:
  - kafkaops.cluster contributors (@kafkaops)
options:
  name:
    description: Name of the instance, and of its unit or program.
    type: str
    required: true
  state:
    description:
      - V(staged) writes the next generation and reports whether a restart is pending.
      - V(started) brings the staged generation into effect if the process does not run it already.
      - V(stopped) stops the process with SIGTERM and waits for its exit.
      - V(removed) stops it and removes its unit or program; files stay.
      - V(probe) only reports.
    type: str
    choices: [staged, started, stopped, removed, probe]
    default: staged
  manager:
    description: Service manager.
    type: str
    choices: [systemd, supervisor]
    required: true
  supervisor_dir:
    description: Directory of the supervisord that all local instances share.
    type: path
  config_dir:
    description: Configuration directory of the instance.
    type: path
    required: true
  state_dir:
    description: Directory of the start record.
    type: path
    required: true
  log_dir:
    description: Directory of the instance's own logs.
    type: path
    required: true
  data_dirs:
    description: Directories of the instance's data, created if they are absent.
    type: list
    elements: path
    default: []
  account:
    description: User that runs the instance; empty for the user who runs the module.
    type: str
    default: ""
  generation:
    description: What the start is made of; needed with O(state=staged).
    type: dict
    suboptions:
      release:
        description: Directory of the installed release.
        type: path
        required: true
      java_home:
        description: Java installation.
        type: path
        required: true
      main_class:
        description: Class to start.
        type: str
        required: true
      classpath:
        description: Class path below the release.
        type: str
        required: true
      jvm_options:
        description: Options of the JVM.
        type: list
        elements: str
        default: []
      arguments:
        description: Arguments of the class; C({conf}) stands for the directory of the current generation.
        type: list
        elements: str
        default: []
      environment:
        description: Environment of the process.
        type: dict
        default: {}
      files:
        description: Configuration files by name.
        type: dict
        default: {}
      secrets:
        description: Text by file name, never shown; appended to the file of that name in O(generation.files), or a file of its own.
        type: dict
        default: {}
      unwatched:
        description: Names of files whose change alone is no reason to restart.
        type: list
        elements: str
        default: []
      cds_archive:
        description: Where to keep a class-data archive that makes later starts quicker; empty for none. No blanks.
        type: path
        default: ""
      guard:
        description:
          - A Python file among O(generation.files), and its arguments; C({conf}) as in O(generation.arguments).
          - Run with C(before-start) ahead of the JVM, and under supervisord with C(watch) beside it; a unit may run
            C(current/guard) with other words.
        type: list
        elements: str
        default: []
      unit_text:
        description: Text of the systemd unit.
        type: str
        default: ""
  seeds:
    description: Files, by path, that are written only where they are absent and the instance does not run.
    type: dict
    default: {}
  ready:
    description: Probes that must all answer before a start counts.
    type: list
    elements: dict
    default: []
    suboptions:
      host:
        description: Address.
        type: str
        required: true
      port:
        description: Port.
        type: int
        required: true
      send:
        description: Text to send.
        type: str
      expect:
        description: Regular expression that the answer must match.
        type: str
  log_files:
    description: Log files below O(log_dir) whose last lines explain a failed start.
    type: list
    elements: str
    default: []
  transient_failure:
    description: Regular expression of log lines after which another attempt may succeed.
    type: str
    default: ""
  start_timeout:
    description: Seconds until a started instance must be ready.
    type: int
    default: 120
  stop_timeout:
    description: Seconds that a controlled stop may take.
    type: int
    default: 300
attributes:
  check_mode:
    description: Reports what would change, and changes nothing.
    support: full
  diff_mode:
    description: Shows configuration files and start options, secrets hidden.
    support: full
"""

EXAMPLES = r"""
- name: Stop one broker in a controlled way
  kafkaops.cluster.jvm_instance:
    name: kafka-1
    state: stopped
    manager: supervisor
    supervisor_dir: /home/me/.local/share/kafkaops/clusters/local/supervisor
    config_dir: /home/me/.local/share/kafkaops/clusters/local/kafka-1/conf
    state_dir: /home/me/.local/share/kafkaops/clusters/local/kafka-1/run
    log_dir: /home/me/.local/share/kafkaops/clusters/local/kafka-1/logs
"""

RETURN = r"""
running:
  description: Whether the instance's process runs.
  type: bool
  returned: always
pid:
  description: Its process id, or null.
  type: int
  returned: always
version:
  description: The version of the release that the process was started from, or null.
  type: str
  returned: always
  sample: 3.9.2
started_at:
  description: When it was started, in seconds since the epoch, or null.
  type: int
  returned: always
restart_pending:
  description: Whether the running process differs from what is desired.
  type: bool
  returned: always
restart_reasons:
  description: Why, in words.
  type: list
  elements: str
  returned: always
  sample: ["server.properties: num.io.threads 8 -> 16"]
answers:
  description: What the running instance answered to the probes of O(ready) that send something.
  type: list
  elements: str
  returned: always
"""

import os
import pwd
from contextlib import nullcontext

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils._generation import Generation
from ansible_collections.kafkaops.cluster.plugins.module_utils._instance import (
    CONSOLE,
    Instance,
    Layout,
    StartFailed,
    answer_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._service_supervisor import (
    ServiceError,
    Supervisor,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._service_systemd import Systemd

PROBE = {
    "host": {"type": "str", "required": True},
    "port": {"type": "int", "required": True},
    "send": {"type": "str"},
    "expect": {"type": "str"},
}
GENERATION = {
    "release": {"type": "path", "required": True},
    "java_home": {"type": "path", "required": True},
    "main_class": {"type": "str", "required": True},
    "classpath": {"type": "str", "required": True},
    "jvm_options": {"type": "list", "elements": "str", "default": []},
    "arguments": {"type": "list", "elements": "str", "default": []},
    "environment": {"type": "dict", "default": {}},
    "files": {"type": "dict", "default": {}},
    "secrets": {"type": "dict", "default": {}, "no_log": True},
    "unwatched": {"type": "list", "elements": "str", "default": []},
    "cds_archive": {"type": "path", "default": ""},
    "guard": {"type": "list", "elements": "str", "default": []},
    "unit_text": {"type": "str", "default": ""},
}
SPEC = {
    "name": {"type": "str", "required": True},
    "state": {
        "type": "str",
        "default": "staged",
        "choices": ["staged", "started", "stopped", "removed", "probe"],
    },
    "manager": {"type": "str", "required": True, "choices": ["systemd", "supervisor"]},
    "supervisor_dir": {"type": "path"},
    "config_dir": {"type": "path", "required": True},
    "state_dir": {"type": "path", "required": True},
    "log_dir": {"type": "path", "required": True},
    "data_dirs": {"type": "list", "elements": "path", "default": []},
    "account": {"type": "str", "default": ""},
    "generation": {"type": "dict", "options": GENERATION},
    "seeds": {"type": "dict", "default": {}},
    "ready": {"type": "list", "elements": "dict", "default": [], "options": PROBE},
    "log_files": {"type": "list", "elements": "str", "default": []},
    "transient_failure": {"type": "str", "default": ""},
    "start_timeout": {"type": "int", "default": 120},
    "stop_timeout": {"type": "int", "default": 300},
}


def service_of(module):
    """Return the service manager that the parameters name."""
    if module.params["manager"] == "systemd":
        generation = module.params["generation"] or {}
        return Systemd(module.run_command, generation.get("unit_text", ""))
    return Supervisor(module.params["supervisor_dir"])


def layout_of(module):
    """Return the Layout that the parameters name; staging for an unknown account ends the module."""
    params = module.params
    uid = gid = -1
    if params["account"]:
        try:
            entry = pwd.getpwnam(params["account"])
            uid, gid = entry.pw_uid, entry.pw_gid
        except KeyError:
            # In check mode on a new host the account is one of the things that would be created; what
            # was never installed can be stopped and removed all the same.
            if params["state"] == "staged" and not module.check_mode:
                module.fail_json(msg="account=%s does not exist on this host" % params["account"])
    return Layout(
        params["name"],
        params["config_dir"],
        params["state_dir"],
        params["log_dir"],
        tuple(params["data_dirs"]),
        uid,
        gid,
    )


def generation_of(module, service):
    """Return the Generation that the parameters describe."""
    params = module.params
    given = params["generation"]
    command = os.path.join(params["config_dir"], "current", "launch")
    console = os.path.join(params["log_dir"], CONSOLE)
    files = {key: str(value) for key, value in given["files"].items()}
    for key, value in given["secrets"].items():
        files[key] = files.get(key, "") + str(value)
    return Generation(
        release=given["release"],
        java_home=given["java_home"],
        main_class=given["main_class"],
        classpath=given["classpath"],
        jvm_options=tuple(given["jvm_options"]),
        arguments=tuple(given["arguments"]),
        environment={key: str(value) for key, value in given["environment"].items()},
        files=files,
        unwatched=tuple(given["unwatched"]),
        cds_archive=given["cds_archive"] if " " not in given["cds_archive"] else "",
        guard=tuple(given["guard"]),
        # supervisord runs nothing after an exit
        guard_watches=bool(given["guard"]) and params["manager"] == "supervisor",
        unit={"text": service.unit(params["name"], command, console, params["stop_timeout"])},
    )


def diff_of(staged):
    """Return Ansible's diff structure: one entry a file that differs."""
    names = sorted(set(staged.before) | set(staged.after))
    return [
        {
            "before_header": name,
            "after_header": name,
            "before": staged.before.get(name, ""),
            "after": staged.after.get(name, ""),
        }
        for name in names
    ]


def run(module, instance, service):
    """Carry out the wanted state; return the result without the report on the process."""
    params = module.params
    state = params["state"]
    if state == "staged":
        generation = generation_of(module, service)
        staged = instance.stage(generation, params["seeds"], apply=not module.check_mode)
        pending = instance.restart_reasons(generation.meaning())
        return {"changed": staged.changed, "diff": diff_of(staged), "restart_reasons": pending}
    if state == "started":
        pending = instance.restart_reasons()
        if pending and not module.check_mode:
            instance.turn(
                params["stop_timeout"],
                params["start_timeout"],
                params["ready"],
                params["log_files"],
                params["transient_failure"],
            )
        return {"changed": bool(pending), "reasons_before": pending}
    if state in ("stopped", "removed"):
        runs = instance.process() is not None or service.wants_running(params["name"])
        if not module.check_mode:
            if state == "stopped":
                instance.stop(params["stop_timeout"])
            else:
                instance.remove(params["stop_timeout"])
        return {"changed": runs}
    return {"changed": False}


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec=SPEC,
        supports_check_mode=True,
        required_if=[
            ("state", "staged", ["generation"]),
            ("manager", "supervisor", ["supervisor_dir"]),
        ],
    )
    service = service_of(module)
    instance = Instance(layout_of(module), service)
    reads_only = module.check_mode or module.params["state"] == "probe"
    alone = nullcontext() if reads_only else instance.locked(module.params["state"] == "staged")
    try:
        with alone:
            result = run(module, instance, service)
    except StartFailed as error:
        module.fail_json(msg="%s Its last lines:\n%s" % (error, error.journal))
    except (ServiceError, OSError) as error:
        module.fail_json(msg="%s: %s" % (module.params["name"], error))
    process = instance.process()
    result.setdefault("restart_reasons", instance.restart_reasons())
    result.update(
        running=process is not None,
        pid=process.pid if process else None,
        version=instance.running_version(process),
        started_at=process.started_at if process else None,
        restart_pending=bool(result["restart_reasons"]),
        answers=[
            answer_of(item) or "" for item in module.params["ready"] if item["send"] and process
        ],
    )
    module.exit_json(**result)


if __name__ == "__main__":
    main()

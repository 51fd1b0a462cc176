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
      - V(started) brings the generation of O(configuration) into effect if the process does not run it already.
        A start that fails puts back what was in effect before, and its process if one ran. A start that only
        takes long is left running. Both are failures that say so.
      - V(stopped) stops the process with SIGTERM and waits for its exit. It is never killed.
      - V(removed) stops it and removes its unit or program; files stay.
      - V(deleted) does the same and deletes O(config_dir), O(state_dir), O(log_dir) and O(data_dirs) with all that is in
        them. Folders right above them that bear the name of the instance or of the cluster go, too, if they are empty.
      - V(noted) notes which O(overrides) are about to be set in the cluster, in addition to those that were noted.
      - V(adopted) takes the running process for started with what is staged, since the cluster has O(overrides)
        in effect and nothing else differs. Nothing is started or stopped.
      - V(probe) only reports.
    type: str
    choices: [staged, started, stopped, removed, deleted, noted, adopted, probe]
    default: staged
  configuration:
    description:
      - What O(state=started) starts, and what O(state=probe) compares the running process with.
      - V(staged) is what the last O(state=staged) has written.
      - V(in_effect) is what runs, or ran last. It is never what a run has staged that was then refused or killed, unless that has come up all the same.
    type: str
    choices: [staged, in_effect]
    default: staged
  fingerprint:
    description:
      - RV(fingerprint) of the generation that is to be started, as O(state=staged) or O(state=probe) returned it.
        If another one is there by now, the start is refused.
      - In check mode it need not exist yet, since nothing was staged.
    type: str
    default: ""
  restart:
    description:
      - With O(state=started), start the process anew although it runs what is desired.
    type: bool
    default: false
  only_down:
    description:
      - With O(state=started), leave a process alone that runs, whatever it runs with, and even with O(restart).
      - For who starts what was seen to be down, without having asked whether it may be stopped. A service manager may
        have brought it back meanwhile.
    type: bool
    default: false
  undone:
    description:
      - With O(state=started), whether a start that fails is undone. Then the generation that was in effect before comes back, with its process if one ran.
      - Where it is not, the instance is left stopped, and its next start takes the new one, also after a run that was killed meanwhile. For a step
        after which the old one must not run any more.
    type: bool
    default: true
  explain:
    description:
      - With O(state=probe), tell also what a person would look at - RV(explanation).
    type: bool
    default: false
  overrides:
    description:
      - With O(state=noted) and O(state=adopted), the settings by which the process was changed without a restart.
      - None are left with O(state=adopted) when its own file says all.
    type: dict
    default: {}
  lock:
    description:
      - The lock of the cluster that this run holds on the host, as P(kafkaops.cluster.run_lock#module) has told it; empty for none.
      - Nothing is started, stopped or removed if another run holds it by then.
    type: dict
    default: {}
    suboptions:
      directory:
        description: Directory of the locks.
        type: path
      cluster:
        description: Name of the cluster.
        type: str
      owner:
        description: The run.
        type: str
  gate:
    description:
      - Options of M(kafkaops.cluster.kafka_broker_gate), with C(broker), for an instance that is a broker. Those of
        M(kafkaops.cluster.zookeeper_info) that say what is expected, with C(stopping) and C(idle) as that module has returned it,
        for a ZooKeeper server. None for no question.
      - It is asked once more at the very last moment, when the module on the host has nothing left to do but to stop the
        process with O(state=started), O(state=stopped), O(state=removed) or O(state=deleted). If the answer has changed, nothing is
        stopped, and it waits as that module does.
      - C(asks) has the inventory name of the C(host) that asks, and its C(python); the controller, with Ansible's Python, if it
        is not there. Where that is another one, and for a broker where the task has environment variables that a process reads when
        it is started (those that begin with C(LD_), C(DYLD_), C(PYTHON) or C(OPENSSL_)), these modules ask there.
    type: dict
    default: {}
  leave:
    description: For the action of this name, which sets it. Where leave to stop is asked for.
    type: str
    default: ""
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
      default_options:
        description:
          - Options ahead of O(generation.jvm_options) that nobody has chosen. They take effect with the next start,
            and their change alone is no reason to restart.
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
      guard_beside:
        description:
          - With which other words O(generation.guard) runs beside the JVM, as long as that lives; one process each.
          - A change takes effect with the next start, and is no reason for one.
        type: list
        elements: str
        default: []
      service:
        description:
          - Settings of the service that an operator chooses, by the service manager's name for them such as
            C(LimitNOFILE), or by section and name. A change of one is a reason to restart.
        type: dict
        default: {}
      unit_text:
        description:
          - Text of the systemd unit. It is installed with the next start. Its change alone is no reason to
            restart, that of a setting in O(generation.service) is.
        type: str
        default: ""
  secrets:
    description:
      - What is never shown of O(generation).
      - C(files), text by file name, is appended to the file of that name in O(generation.files), or is a file of its own.
        C(environment) is added to O(generation.environment).
    type: dict
    default: {}
  seeds:
    description: Files, by path, that are written only where they are absent and the instance does not run.
    type: dict
    default: {}
  ready:
    description:
      - Probes that must all answer before a start counts. They are kept with the generation that is staged, so
        that another configuration, with other ports, is probed with its own.
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
  progress:
    description:
      - Regular expression of log lines that tell of a start that goes on, for example of log recovery. Each
        gives the start another O(start_timeout).
    type: str
    default: ""
  start_timeout:
    description: Seconds until a started instance must be ready, since its start or its last O(progress).
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
deployed:
  description: Whether a configuration is in effect, that is, whether the instance was ever started.
  type: bool
  returned: always
fingerprint:
  description: Fingerprint of the generation of O(configuration), or null where there is none.
  type: str
  returned: always
  sample: 0f8b1c2d3e4f5a6b
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
live_changes:
  description:
    - What could bring the generation into effect without a restart, if the product allows it. Null where only a
      restart can, and where there is nothing to do.
    - C(settings) has what differs from what the process has read at its start, C(own) the overrides that were
      noted, with the process's own value.
  type: dict
  returned: always
  sample:
    settings: {num.io.threads: {before: "8", after: "12"}}
    own: {}
overrides:
  description: The overrides that were noted for the running process, each with C(values) and C(file), its own value.
  type: dict
  returned: always
  sample: {num.io.threads: {values: ["12"], file: "8"}}
took:
  description:
    - When the turn began and ended (C(from_ms), C(to_ms), by the host's clock, since 1970), and what was C(done),
      V(started), V(restarted) or V(stopped); V(stopping) where it was asked to end and has not in time.
  type: dict
  returned: when O(state=started) has started it, or O(state=stopped), O(state=removed) or O(state=deleted) has stopped it, or has not in time
  sample: {from_ms: 1763884800000, to_ms: 1763884804200, done: restarted}
deleted:
  description:
    - Directories that were there and were deleted, folders above among them, and mount points that were emptied; in
      check mode those that would be.
  returned: with O(state=deleted)
  type: list
  elements: str
  sample: ["/srv/kafkaops/clusters/local/kafka-1/data"]
kept:
  description: What stays, and why; a folder that holds something else, a mount point, what a link led to.
  returned: with O(state=deleted), empty in check mode
  type: list
  elements: str
  sample: ["/srv/kafkaops/clusters/local/kafka-1: it holds notes.txt"]
looked_ms:
  description: When the cluster had answered for the last time before the stop, by the controller's clock, in ms since 1970.
  type: int
  returned: with O(gate), when a process was stopped
  sample: 1763884800000
explanation:
  description: Whether it runs, since when, which of its disks are full, and the last lines of its logs.
  type: str
  returned: with O(explain)
answers:
  description: What the running instance answered to the probes of O(ready) that send something.
  type: list
  elements: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.edge import (
    REQUIRED_IF,
    SPEC,
    answer,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.held import check_held


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True, required_if=REQUIRED_IF)
    lock = module.params["lock"]

    def allowed() -> None:
        if lock.get("owner"):
            check_held(lock["directory"], lock["cluster"], lock["owner"])

    result = answer(module.params, module.check_mode, module.run_command, allowed)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: release
short_description: Install a release archive into a versioned directory
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Unpacks an archive beside its place and renames it when it is whole, so that a killed run leaves nothing that counts as installed.
  - A directory that exists is never deleted, because a running process may use it.
    If files of the same release are missing or cut off, only these are put back.
    If only the launchers differ, only they are exchanged.
    If the directory holds other jars, or is not ours, it stays, and the release goes to C(NAME-DIGEST) beside it.
  - Starts nothing and switches no link.
  - Needs Python 3.9 on the host and nothing else.
options:
  name:
    description: Name of the release and of its directory below C(releases).
    type: str
    required: true
  install_dir:
    description: The directory that holds C(releases). Several inventory names on one machine may use it at the same time.
    type: path
    required: true
  archive:
    description:
      - Path of the archive on the host. It must have one top directory, whose name does not matter.
      - Required for O(state=present) if the release is not there yet.
    type: path
  sha512:
    description: SHA-512 of the archive, as the distribution module returns it.
    type: str
    default: ""
  state:
    description:
      - V(probe) only tells whether the release is there, so that the archive is copied to the host only if it is needed.
      - V(present) installs it.
    type: str
    default: present
    choices: [present, probe]
seealso:
  - module: kafkaops.cluster.distribution
attributes:
  check_mode:
    description: Can run in check mode and writes nothing then.
    support: full
  diff_mode:
    description: Shows what is in place before and after.
    support: full
"""

EXAMPLES = r"""
- name: Look whether the release is there
  kafkaops.cluster.release:
    name: kafka_2.13-3.9.2
    install_dir: /opt/kafka
    sha512: "{{ __kafka_distribution.sha512 }}"
    state: probe
  register: __kafka_release

- name: Install it
  kafkaops.cluster.release:
    name: kafka_2.13-3.9.2
    install_dir: /opt/kafka
    archive: /opt/kafka/.incoming-kafka1/kafka_2.13-3.9.2.tgz
    sha512: "{{ __kafka_distribution.sha512 }}"
  when: not __kafka_release.installed
"""

RETURN = r"""
path:
  description: Directory of the release; where it would be, if it is not installed.
  returned: success
  type: str
  sample: /opt/kafka/releases/kafka_2.13-3.9.2
installed:
  description: Whether the release is there, whole, when the module returns.
  returned: success
  type: bool
found:
  description: What was there before.
  returned: success
  type: str
  sample: absent
replaced:
  description: Files that were exchanged in an existing directory.
  returned: success
  type: list
  elements: str
refusals:
  description: Why it failed, with C(check), C(setting), C(reason) and C(remedy).
  returned: failure
  type: list
  elements: dict
"""

from typing import Any, Dict, Mapping, Sequence

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError, refusal
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply import installation


def run(
    name: str, install_dir: str, archive: str, sha512: str, state: str, check_mode: bool
) -> Dict[str, Any]:
    """Do what the parameters say; returns the module's result."""
    installation.check_name(name)
    found = installation.probe(install_dir, name, sha512)
    complete = found.state == "complete"
    if state == "probe" or check_mode or complete:
        changed = state == "present" and not complete
        return _result(found.path, complete, changed, found.state)
    done = installation.install(install_dir, name, sha512, archive or "")
    return _result(done.path, True, done.changed, found.state, list(done.replaced))


def _result(
    path: str, installed: bool, changed: bool, found: str, replaced: Sequence[str] = ()
) -> Dict[str, Any]:
    after = "complete" if changed else found
    return {
        "path": path,
        "installed": installed,
        "changed": changed,
        "found": found,
        "replaced": list(replaced),
        "diff": {"before": f"{path}: {found}\n", "after": f"{path}: {after}\n"},
    }


def _unwritable(params: Mapping[str, Any], error: OSError) -> ProblemError:
    return refusal(
        "release.unwritable",
        f"install_dir={params['install_dir']}",
        str(error),
        "make it writable for this account with some 200 MB free, and run again",
    )


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "install_dir": {"type": "path", "required": True},
            "archive": {"type": "path"},
            "sha512": {"type": "str", "default": ""},
            "state": {"type": "str", "default": "present", "choices": ["present", "probe"]},
        },
        supports_check_mode=True,
    )
    try:
        result = run(**module.params, check_mode=module.check_mode)
    except (ProblemError, OSError) as error:
        told = error if isinstance(error, ProblemError) else _unwritable(module.params, error)
        module.fail_json(msg=str(told), refusals=[told.problem.to_dict()])
    module.exit_json(**result)


if __name__ == "__main__":
    main()

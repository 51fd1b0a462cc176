# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How playbooks and roles read the variables of meta/play_variables.yml: from the command line, and from nowhere else.

An inventory has words such as `broker` and `user` for purposes of its own. By its name alone a variable of a host would
be taken for what somebody wants of this very run, on each host with another value.
"""

from __future__ import annotations

DOCUMENTATION = """
name: extra_var
author: kafkaops.cluster contributors (@kafkaops)
version_added: 0.1.0
short_description: A variable that was given with -e
description:
  - The value that C(-e) gave to a variable of a playbook. Not defined where it was not given, whatever an inventory, a
    playbook or a role has under this name.
options:
  _terms:
    description: Name of the variable.
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- name: Do what -e cancel=true asks for
  ansible.builtin.debug:
    msg: The moves end.
  when: lookup('kafkaops.cluster.extra_var', 'cancel') | default(false, true) | bool
"""

RETURN = """
_value:
  description: The value of the variable.
  type: list
  elements: raw
"""

from typing import Any, List, Mapping, Optional

from ansible.plugins.loader import lookup_loader
from ansible.plugins.lookup import LookupBase
from ansible.utils.vars import load_extra_vars


class LookupModule(LookupBase):
    """Ansible's own lookup of variables, with those of the command line for all variables."""

    def run(
        self, terms: List[str], variables: Optional[Mapping[str, Any]] = None, **kwargs: Any
    ) -> List[Any]:
        """The values, evaluated with the variables of the host; the lookup is not defined where one was not given."""
        everywhere = lookup_loader.get(
            "ansible.builtin.vars", loader=self._loader, templar=self._templar
        )
        return everywhere.run(terms, variables=load_extra_vars(self._loader), **kwargs)

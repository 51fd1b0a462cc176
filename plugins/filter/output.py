# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How lines of a table reach the terminal, by the form in which Ansible writes results."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Union

from ansible import constants
from ansible.errors import AnsibleError


def shown_lines(lines: List[Any]) -> Union[str, List[Any]]:
    """`{{ lines | kafkaops.cluster.shown_lines }}`: what `debug` writes as one line each, none of them folded.

    As YAML that is one text: items of a list are folded at 80 characters. As JSON, Ansible's default, it is the list:
    a text would be one line with `\\n` in it.
    """
    try:
        form = constants.config.get_config_value(
            "result_format", plugin_type="callback", plugin_name="default"
        )
    except AnsibleError:  # another callback writes the results
        form = "json"
    return "\n".join(map(str, lines)) if form == "yaml" else lines


class FilterModule:
    """Filters about output."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"shown_lines": shown_lines}

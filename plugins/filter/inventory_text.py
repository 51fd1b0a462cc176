# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that writes values as text of an inventory, which means them and nothing else."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

import yaml

# What begins something that Ansible evaluates.
TEMPLATE_MARKS = ("{{", "{%", "{#")


# PyYAML writes it as it is between single quotes, where it is a line break, and so becomes a blank.
_NEXT_LINE = "\x85"


class _Dumper(yaml.SafeDumper):
    """YAML as Ansible reads it, with `!unsafe` where a text must not be evaluated."""

    def ignore_aliases(self, data: Any) -> bool:
        """Repeat what occurs twice: anchors are for programs."""
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    plain = str(value)
    if any(mark in plain for mark in TEMPLATE_MARKS):
        return dumper.represent_scalar("!unsafe", plain, style='"')
    if _NEXT_LINE in plain:
        return dumper.represent_scalar("tag:yaml.org,2002:str", plain, style='"')
    return dumper.represent_str(plain)


# Ansible hands on subclasses of str, list and dict.
_Dumper.add_representer(str, _text)
_Dumper.add_multi_representer(str, _text)
_Dumper.add_multi_representer(dict, lambda dumper, value: dumper.represent_dict(dict(value)))
_Dumper.add_multi_representer(list, lambda dumper, value: dumper.represent_list(list(value)))


def inventory_yaml(variables: Mapping[str, Any]) -> str:
    """Return variables as the text of a file in group_vars, whatever stands in their values."""
    return yaml.dump(
        dict(variables), Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=160
    )


class FilterModule:
    """Texts of an inventory."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "inventory_yaml": inventory_yaml,
        }

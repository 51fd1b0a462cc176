# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Durations and sizes in templates, by the same rules as in the modules."""

from __future__ import annotations

from typing import Any, Callable, Dict

from ansible.errors import AnsibleFilterError

from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    parse_duration_ms,
    parse_size_bytes,
)


def _checked(parse: Callable[[Any], int]) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        try:
            return parse(value)
        except ValueError as error:
            raise AnsibleFilterError(str(error)) from error

    return read


class FilterModule:
    """Names as Ansible sees them."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        """Documented in the YAML file of the same name each."""
        return {
            "duration_ms": _checked(parse_duration_ms),
            "size_bytes": _checked(parse_size_bytes),
        }

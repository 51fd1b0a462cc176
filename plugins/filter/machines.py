# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine shows, beside what was ordered; the decision is in module_utils/aws/likeness.py."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.likeness import (
    of_setup,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.likeness import (
    unlike_order as problems,
)


def unlike_order(facts: Mapping[str, Any], ordered: Mapping[str, Any], name: str) -> List[str]:
    """`{{ ansible_facts | kafkaops.cluster.unlike_order(ordered, name) }}`: what is less, a line each."""
    return [each.line() for each in problems(of_setup(facts), ordered, name)]


class FilterModule:
    """Filters about machines."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "unlike_order": unlike_order,
        }

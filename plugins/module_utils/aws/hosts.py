# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of EC2 as hosts of an inventory: names, groups, and an address for each audience. Pure.

Private to this collection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import (
    GROUPS_TAG,
    Instance,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import refusal

# The group of all machines.
EVERYBODY = "aws"
PRIVATE, PUBLIC = "private", "public"
# Whose address Ansible itself uses.
ADMIN = "admin"


@dataclass(frozen=True)
class Host:
    """A host with its groups and variables."""

    name: str
    groups: Tuple[str, ...]
    variables: Mapping[str, Any]


def hosts_of(instances: Sequence[Instance], addresses: Mapping[str, str]) -> List[Host]:
    """The living machines as hosts, by name. Raises a ProblemError where that is not clear.

    `addresses`: audience -> `private` or `public`.
    """
    for audience, kind in addresses.items():
        if kind not in (PRIVATE, PUBLIC):
            reason, remedy = "no kind of address", f"write {PRIVATE} or {PUBLIC}"
            raise refusal("aws.bad_order", f"addresses.{audience}={kind}", reason, remedy)
    found: Dict[str, Host] = {}
    ids: Dict[str, str] = {}
    for each in sorted(instances, key=lambda one: (one.name, one.id)):
        if not each.alive:
            continue
        if each.name in found:
            reason = f"two machines carry this name: {ids[each.name]} and {each.id}"
            remedy = "end the one that holds no data, or give it another value of the tag"
            raise refusal("aws.duplicate_machine", f"kafkaops:host={each.name}", reason, remedy)
        groups = tuple(each.tags.get(GROUPS_TAG, "").split())
        found[each.name] = Host(each.name, groups, _variables(each, addresses))
        ids[each.name] = each.id
    return list(found.values())


def _variables(instance: Instance, addresses: Mapping[str, str]) -> Dict[str, Any]:
    public = instance.public_dns or instance.public_address or instance.private_address
    kinds = {PRIVATE: instance.private_address, PUBLIC: public}
    by_audience = {audience: kinds[kind] for audience, kind in addresses.items()}
    variables = {
        "aws_instance_id": instance.id,
        "aws_private_ip": instance.private_address,
        "aws_public_ip": instance.public_address,
        "aws_public_dns": instance.public_dns,
        "aws_addresses": by_audience,
        "kafka_rack": instance.zone,
    }
    own = by_audience.get(ADMIN, public)
    # One that is stopped may have none.
    return {**variables, "ansible_host": own} if own else variables

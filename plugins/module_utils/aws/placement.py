# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which subnet each new machine goes, and by which token EC2 knows that it was asked before. Pure.

Private to this collection. Zones are racks: brokers are spread over them evenly, and so are ZooKeeper
servers. A machine that exists never moves. The choice depends on the order's sequence and on what is
there alone, so a run that was killed half way chooses for the rest what it would have chosen.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any, Dict, Mapping, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import (
    GROUPS_TAG,
    Instance,
    Machine,
    Subnet,
)

TOKEN_CHARACTERS = 60  # EC2 takes 64; the rest numbers the attempts


def place(
    machines: Sequence[Machine], there: Sequence[Instance], subnets: Sequence[Subnet]
) -> Dict[str, str]:
    """name -> id of the subnet of each machine that is new; `there` are the cluster's living machines.

    The zone with the fewest machines of the same groups is taken, then the one with the fewest machines
    at all, then the first.
    """
    if not subnets:
        return {}
    zone_of = {each.id: each.zone for each in subnets}
    same: Counter[Any] = Counter()
    total: Counter[str] = Counter()
    in_subnet: Counter[str] = Counter()
    for one in there:
        groups = tuple(one.tags.get(GROUPS_TAG, "").split())
        same[groups, one.zone] += 1
        total[one.zone] += 1
        in_subnet[one.subnet] += 1
    existing = {one.name for one in there}
    rank = {each.id: index for index, each in enumerate(subnets)}
    chosen: Dict[str, str] = {}
    for machine in machines:
        if machine.name in existing:
            continue
        subnet = machine.subnet
        if not subnet:

            def load(each: Subnet, groups: Any = machine.groups) -> Any:
                zone = each.zone
                return same[groups, zone], total[zone], in_subnet[each.id], rank[each.id]

            subnet = min(subnets, key=load).id
        chosen[machine.name] = subnet
        zone = zone_of.get(subnet, "")
        same[machine.groups, zone] += 1
        total[zone] += 1
        in_subnet[subnet] += 1
    return chosen


def client_token(cluster: str, name: str, request: Mapping[str, Any]) -> str:
    """The token of a request for this machine: the same request again makes no second machine.

    What is asked for is part of it: EC2 refuses a token that comes back with another request.
    """
    text = json.dumps([cluster, name, request], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:TOKEN_CHARACTERS]

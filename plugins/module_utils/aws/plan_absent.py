# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a teardown deletes: what carries the cluster's tag, and nothing else. Pure.

Private to this collection. Volumes are named, with their sizes: their data is gone with them.
"""

from __future__ import annotations

from typing import List

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change, Plan
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import (
    CLUSTER_TAG,
    HOST_TAG,
    Order,
    SeenVolume,
    Snapshot,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

END_MACHINE, DELETE_VOLUME = "end_machine", "delete_volume"
DELETE_GROUP, DELETE_KEY = "delete_group", "delete_key"


def plan_absent(order: Order, seen: Snapshot) -> Plan:
    """The machines, then their volumes, then the group and the key pair.

    Of a run with --limit only the machines and volumes of these hosts. A volume that is not ours and
    would end with a machine of ours is refused.
    """
    changes: List[Change] = []
    refusals: List[Problem] = []
    warnings: List[str] = []
    machines = [each for each in seen.alive() if order.in_run(each.name)]
    for instance in machines:
        attached = seen.volumes_of(instance)
        with_it = [each for each in attached if each.ends_with_machine]
        foreign = [each for each in with_it if not _ours(order, each)]
        for each in foreign:
            refusals.append(
                Problem(
                    "aws.foreign_volume",
                    f"volume {each.text()} is attached to {instance.id} and would be deleted with it, but does not "
                    f"carry the tag {CLUSTER_TAG}={order.cluster}",
                    "detach it, or give it the tag if it is the cluster's",
                    (instance.name,),
                )
            )
        before = {
            "id": instance.id,
            "type": instance.type,
            "zone": instance.zone,
            "volumes": ", ".join(each.text() for each in with_it) or None,
        }
        changes.append(Change(END_MACHINE, instance.name, before, {}))
    ending = {each.id for each in machines}
    for volume in seen.volumes:
        host = volume.tags.get(HOST_TAG, "")
        if not _ours(order, volume) or not order.in_run(host or volume.id):
            continue
        if volume.machine and volume.machine not in ending:
            warnings.append(f"{volume.text()} is attached to {volume.machine}: it was left")
        elif not (volume.machine and volume.ends_with_machine):
            before = {"size": f"{volume.size_gib} GiB", "type": volume.type, "of": host or None}
            changes.append(Change(DELETE_VOLUME, f"volume {volume.id}", before, {}))
    if order.only is None:
        _shared(order, seen, changes, warnings)
    return Plan(tuple(changes), tuple(refusals), tuple(warnings))


def _ours(order: Order, volume: SeenVolume) -> bool:
    return volume.tags.get(CLUSTER_TAG) == order.cluster


def _shared(order: Order, seen: Snapshot, changes: List[Change], warnings: List[str]) -> None:
    """What all machines have together; it goes with the last of them."""
    group, pair = seen.group, seen.key_pair
    if group and group.tags.get(CLUSTER_TAG) == order.cluster:
        users = sorted(each.id for each in seen.strangers if each.alive)
        if users:
            warnings.append(
                f"security group {order.group_name} ({group.id}) stays: {', '.join(users)}, which are not ours, use it"
            )
        else:
            before = {"id": group.id, "rules": len(group.rules)}
            changes.append(Change(DELETE_GROUP, f"security group {order.group_name}", before, {}))
    if pair and pair.tags.get(CLUSTER_TAG) == order.cluster:
        where = f"; the private key in {order.key_file} stays" if order.key_file else ""
        note = f"its public half in EC2{where}"
        before = {"of": order.key_file or None, "note": note}
        changes.append(Change(DELETE_KEY, f"key pair {order.key_name}", before, {}))
    for each in seen.renamed:
        warnings.append(
            f"{each} stays: it carries the tag of the cluster, under another name than the inventory has now;"
            " delete it by hand, or tear down with its name in the inventory"
        )

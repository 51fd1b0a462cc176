# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that turn structured variables into the text that Kafka and ZooKeeper read."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Dict, Iterable, List, Mapping

from ansible.module_utils.common.validation import check_type_list

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.for_clients import (
    certificates_of,
    chosen_listeners,
    chosen_user,
    listeners_of,
    stale_key,
    users_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.for_clients import (
    client_files as files_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.seen_from import (
    targets,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.status import (
    idle_brokers,
    left_undone,
    status,
    what_started,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.plan_broker_settings import (
    left_by_another,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.declared import (
    state_lines,
    state_variables,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quorum import (
    cut_off,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.ensemble import (
    ensemble_plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.order import (
    roll_order,
    turn_events,
    unmended,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    bootstrap_servers,
    broker_properties,
    client_listeners,
    client_properties,
    properties_text,
    zookeeper_connect,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.start import (
    generation,
    logger_levels,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.unit import (
    mount_units,
    sandbox,
    unit_word,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.zookeeper import (
    zookeeper_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.listening import (
    attempts_of,
    ports_of,
    unknown_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.decision import (
    DISKS_LOCKED,
    LOCKED,
    told_by_status,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.owner import (
    Owner,
    is_gone,
    owner_of,
)


def kafka_properties(settings: Mapping[str, Any]) -> Dict[str, str]:
    """`{{ settings | kafkaops.cluster.kafka_properties }}`: the effective server.properties as a dict."""
    return broker_properties(**settings)


def zookeeper_cfg(settings: Mapping[str, Any]) -> Dict[str, str]:
    """`{{ settings | kafkaops.cluster.zookeeper_cfg }}`: the effective zoo.cfg as a dict."""
    return zookeeper_properties(**settings)


def unit_sandbox(places: Mapping[str, Any]) -> Dict[str, Any]:
    """`{{ places | kafkaops.cluster.unit_sandbox }}`: the part of a unit that fits an instance's directories."""
    return sandbox(**places)


def zookeeper_endpoints(servers: Iterable[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """Return what the module zookeeper_info takes, from servers with `id address client_port`."""
    return [
        {"id": int(item["id"]), "address": item["address"], "port": int(item["client_port"])}
        for item in servers
    ]


def cluster_status(
    instances: Any, servers: Any = (), cluster: Any = None, versions: Any = ()
) -> Dict[str, Any]:
    """Return the status of one cluster, with the run that holds its lock; see the documentation."""
    instances = list(instances)
    here = owner_of(os.getpid(), "", "", 0)
    lines = [*versions]
    for key, word in (("lock", LOCKED), ("lock_of_disks", DISKS_LOCKED)):
        held = [(str(item["name"]), item[key]) for item in instances if item.get(key)]
        locks = [(name, Owner.from_dict(lock)) for name, lock in held]
        gone = {holder.id for _name, holder in locks if here and is_gone(holder, here)}
        under = {lock["owner"]: lock.get("under") for _name, lock in held}
        lines += told_by_status(locks, gone, under, word)
    return status(instances, servers, cluster, lines)


def client_files(
    members: Any,
    cluster: str,
    settings: Mapping[str, Any],
    listener: str = "",
    user: str = "",
    secrets: bool = False,
) -> Dict[str, Any]:
    """Return the files of a cluster's clients, or why there are none; see the documentation."""
    login, own = settings["security"] or {}, settings["own"] or {}
    try:
        found = chosen_listeners(listeners_of(members), listener)
        sasl, users = settings["sasl"] or {}, settings["users"] or []
        chosen_user(users_of(sasl, users, login), found, user)
        files, stale = [], []
        for each in found:
            security = {**login, **(own.get(each.name) or {})}
            whose = chosen_user(users_of(sasl, users, security), [each], user * each.has_users)
            known = certificates_of(login, settings["ssl"] or {}, own.get(each.name))
            person = user or (whose.name if whose and each.has_users else "")
            certificates = known.for_user(person)
            stale += stale_key(each, known, certificates, secrets)
            files += files_of(cluster, each, whose, certificates, secrets, settings["program"])
    except ProblemError as error:
        return {"refused": str(error), "files": [], "stale": []}
    both = {"files": files, "stale": stale}
    return {"refused": "", **{key: [each.to_dict() for each in some] for key, some in both.items()}}


def reach_targets(
    brokers: Iterable[Mapping[str, Any]], audiences: Any = ()
) -> List[Dict[str, Any]]:
    """Return what the module listener_probe takes, from brokers with `host id listeners`; see the documentation."""
    return [each.to_dict() for each in targets(list(brokers), _words(audiences))]


def port_attempts(
    ports: Iterable[Mapping[str, Any]],
    host: str,
    kinds: Iterable[str],
    standing: Mapping[str, List[int]],
    audiences: Any = (),
) -> List[Dict[str, Any]]:
    """Return what the module port_probe takes on a host, from a cluster's ports of the preflight's `listening`."""
    return attempts_of(list(ports), host, set(kinds), standing, _words(audiences))


def _words(listed: Any) -> List[str]:
    """Words of a list, or of one text with commas, as the preflight reads kafka_client_audiences."""
    return [str(each).strip() for each in check_type_list(listed or [])]


def plugin_path(plugin: Mapping[str, Any], directory: str) -> str:
    """Return where a plug-in of `name sha512` lies below a directory; another digest, another path."""
    name = re.sub(r"[^\w.-]", "_", str(plugin["name"]))
    return f"{directory}/plugins/{str(plugin['sha512']).lower()}/{name}.jar"


class FilterModule:
    """Text filters of the collection."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "client_files": client_files,
            "client_listeners": client_listeners,
            "client_properties": client_properties,
            "cluster_status": cluster_status,
            "ensemble_plan": ensemble_plan,
            "kafka_bootstrap": bootstrap_servers,
            "kafka_properties": kafka_properties,
            "generation": generation,
            "idle_brokers": idle_brokers,
            "left_by_another": left_by_another,
            "left_undone": left_undone,
            "logger_levels": logger_levels,
            "mount_units": mount_units,
            "plugin_path": plugin_path,
            "port_attempts": port_attempts,
            "ports_to_stand_in": ports_of,
            "ports_unknown": unknown_of,
            "properties_text": properties_text,
            "reach_targets": reach_targets,
            "roll_order": roll_order,
            "state_lines": state_lines,
            "state_variables": state_variables,
            "turn_events": turn_events,
            "unit_sandbox": unit_sandbox,
            "unit_word": unit_word,
            "unmended": unmended,
            "voters_cut_off": cut_off,
            "what_started": what_started,
            "zookeeper_cfg": zookeeper_cfg,
            "zookeeper_connect": zookeeper_connect,
            "zookeeper_endpoints": zookeeper_endpoints,
        }

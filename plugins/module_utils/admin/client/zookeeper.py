# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only importer of kazoo: reads what Kafka keeps in ZooKeeper, writes first credentials.

Private to this collection. Connect strings are `host:port,host:port/chroot`.
"""

from __future__ import annotations

import json
import logging
import traceback
from typing import Any, Callable, Dict, List, Mapping, Tuple
from urllib.parse import quote

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoints
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.reach import (
    UNREACHABLE,
    probe_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    parse_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.health import (
    replica_counts,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

KAZOO_IMPORT_ERROR = None
try:
    from kazoo.client import KazooClient
    from kazoo.exceptions import KazooException, NoNodeError
    from kazoo.handlers.threading import KazooTimeoutError
except ImportError:
    KAZOO_IMPORT_ERROR = traceback.format_exc()


# What a cluster of Kafka keeps at its root; /zookeeper is the ensemble's own.
OF_KAFKA = frozenset(
    (
        *("admin", "brokers", "cluster", "config", "consumers", "controller", "controller_epoch"),
        *("delegation_token", "feature", "isr_change_notification", "latest_producer_id_block"),
        *("kafka-acl", "kafka-acl-changes", "kafka-acl-extended", "kafka-acl-extended-changes"),
        *("log_dir_event_notification", "migration"),
    )
)
# So many nodes of others are looked at, and so many of them told.
OTHERS_LOOKED_AT, OTHERS_TOLD = 5000, 3


def parse_connect(text: str) -> Tuple[Tuple[Tuple[str, int], ...], str]:
    """((host, port) pairs, chroot) of a connect string; the chroot is "" or begins with a slash."""
    hosts, slash, path = text.partition("/")
    return parse_addresses([hosts], option="zookeeper"), (slash + path).rstrip("/")


def node_name(name: str) -> str:
    """A user's name as Kafka's Sanitizer writes it into a path: `a/b c` is `a%2Fb%20c`."""
    return quote(name, safe="").replace("~", "%7E")


class ZookeeperClient:
    """One ensemble, for as long as the context lasts; every answer must come within `timeout`.

    AdminError with `reachable=False` if no server answers at the beginning.
    """

    def __init__(self, connect: str, timeout: float = 10.0, read_only: bool = True):
        self.addresses, self.chroot = parse_connect(connect)
        self.hosts = endpoints(self.addresses)
        self.timeout = timeout
        self.read_only = read_only
        self._client: Any = None

    def __enter__(self) -> ZookeeperClient:
        # kazoo would go on asking servers that refuse the connection.
        probe_addresses(self.addresses, self.timeout)
        quiet = logging.getLogger("kafkaops.kazoo")
        quiet.setLevel(logging.CRITICAL)  # what fails is reported below, once
        self._client = KazooClient(
            self.hosts, timeout=self.timeout, read_only=self.read_only, logger=quiet
        )
        try:
            self._client.start(self.timeout)
        except (KazooTimeoutError, KazooException, OSError) as error:
            self.__exit__()
            raise AdminError(
                Problem(
                    UNREACHABLE,
                    "unreachable: the port is open, but no ZooKeeper server answered within "
                    f"{self.timeout:g} s",
                    "see whether the ensemble has a quorum, or correct the address",
                    (self.hosts,),
                ),
                reachable=False,
            ) from error
        return self

    def __exit__(self, *_exc: Any) -> None:
        if self._client is not None:
            self._client.stop()
            self._client.close()
            self._client = None

    @property
    def connected(self) -> bool:
        """Whether a server has the session now."""
        return self._client is not None and bool(self._client.connected)

    def _ask(self, doing: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """The value of an asynchronous call; NoNodeError stays, all else is an AdminError."""
        try:
            return call(*arguments).get(timeout=self.timeout)
        except NoNodeError:
            raise
        except (KazooException, KazooTimeoutError) as error:
            reason = str(error) or type(error).__name__
            raise AdminError(
                Problem(
                    "ensemble.access",
                    f"{doing} {arguments[0]} failed: {reason}",
                    "see whether the ensemble has a quorum, and whether its ACLs let the client in",
                    (self.hosts,),
                )
            ) from error

    def _read(self, path: str) -> Tuple[Any, Any]:
        """(parsed JSON or None, ZnodeStat) of a node, (None, None) if there is none."""
        try:
            data, stat = self._ask("reading", self._client.get_async, self.chroot + path)
        except NoNodeError:
            return None, None
        try:
            return json.loads(data or b"null"), stat
        except ValueError:
            return None, stat

    def _children(self, path: str) -> List[str]:
        try:
            call = self._client.get_children_async
            return sorted(self._ask("reading", call, self.chroot + path))
        except NoNodeError:
            return []

    def user_config(self, user: str) -> Dict[str, str]:
        """The stored configuration of a user (mechanism -> credential), empty if there is none."""
        stored, _stat = self._read(f"/config/users/{node_name(user)}")
        return dict((stored or {}).get("config") or {})

    def write_user_config(self, user: str, config: Mapping[str, str]) -> None:
        """Store the configuration of a user as Kafka's own tools do; no broker is notified."""
        path = f"{self.chroot}/config/users/{node_name(user)}"
        data = json.dumps({"version": 1, "config": config}).encode("utf-8")
        self._ask("writing", self._client.ensure_path_async, path)
        self._ask("writing", self._client.set_async, path, data)

    def describe(self, with_replicas: bool = False) -> Dict[str, Any]:
        """What Kafka registered below the chroot, as a dict.

        `exists` says whether there is a chroot at all. Owners and czxids tell one incarnation of a
        broker from the next; a znode's data version does not. With `with_replicas` the topics'
        replicas and settings are read too (two small reads per topic, pipelined): only needed when
        no broker can be asked.
        """
        identity, _stat = self._read("/cluster/id")
        controller, controller_stat = self._read("/controller")
        root = self.chroot or "/"
        found: Dict[str, Any] = {
            "exists": bool(self._ask("reading", self._client.exists_async, root)),
            "cluster_id": (identity or {}).get("id"),
            "controller": None,
            "brokers": [],
        }
        if controller_stat is not None:
            found["controller"] = {
                "id": (controller or {}).get("brokerid"),
                "ephemeral_owner": controller_stat.ephemeralOwner,
                "czxid": controller_stat.czxid,
            }
        for child in self._children("/brokers/ids"):
            registration, stat = self._read(f"/brokers/ids/{child}")
            if stat is None or not child.isdigit():
                continue
            registration = registration or {}
            found["brokers"].append(
                {
                    "id": int(child),
                    "endpoints": registration.get("endpoints") or [],
                    "rack": registration.get("rack"),
                    "ephemeral_owner": stat.ephemeralOwner,
                    "czxid": stat.czxid,
                }
            )
        found["brokers"].sort(key=lambda broker: broker["id"])
        if with_replicas:
            found.update(self._replicas())
        return found

    def migration(self) -> Dict[str, Any]:
        """Who is the controller, and how far a migration to KRaft is, as `/controller` and `/migration` have it.

        `controller` (None for nobody), `epoch` of KRaft and `offset` of the last record written here, -1 where there
        is none; `migration` says whether that node is there at all, which alone proves nothing.
        """
        controller, _stat = self._read("/controller")
        migration, stat = self._read("/migration")
        return {
            "controller": (controller or {}).get("brokerid"),
            "epoch": int((controller or {}).get("kraftControllerEpoch", -1)),
            "offset": int((migration or {}).get("kraft_metadata_offset", -1)),
            "migration": stat is not None,
        }

    def others(self, most: int = OTHERS_LOOKED_AT) -> List[str]:
        """Ephemeral nodes beside this cluster's: somebody else is at work with the ensemble now.

        A few of them are enough. Where there is too much to look through, or a node is not to be read, that is told
        in their place: nobody knows who uses it then.
        """
        left, told, looked = ["/"], [], 0
        while left and len(told) < OTHERS_TOLD:
            path, looked = left.pop(0), looked + 1
            if looked > most:
                return [*told, f"{path} and what follows"]
            try:
                names, stat = self._ask("reading", self._children_with_stat, path)
            except NoNodeError:
                continue
            except AdminError:
                told.append(path)
                continue
            if stat.ephemeralOwner:
                told.append(path)
            left += [f"{path.rstrip('/')}/{name}" for name in sorted(names)]
            left = [each for each in left if not self._is_own(each)]
        return told

    def _children_with_stat(self, path: str) -> Any:
        return self._client.get_children_async(path, include_data=True)

    def _is_own(self, path: str) -> bool:
        """Whether a node is the ensemble's, or the root of what belongs to this cluster."""
        return path in ("/zookeeper", self.chroot) or (
            not self.chroot and path.lstrip("/") in OF_KAFKA
        )

    def release_controller(self, held: bool) -> None:
        """Delete what controllers of KRaft have written of themselves; a broker is elected at once.

        `held`: whether one of them is the controller, and not a broker already.
        """
        for path in (["/controller"] if held else []) + ["/migration"]:
            try:
                self._ask("deleting", self._client.delete_async, self.chroot + path)
            except NoNodeError:
                continue

    def _replicas(self) -> Dict[str, Any]:
        """`replica_holders` and `on_default_min_isr` of all topics, as kafka_cluster_info has them."""
        names = self._children("/brokers/topics")
        paths = {name: f"{self.chroot}/brokers/topics/{name}" for name in names}
        settings = {name: f"{self.chroot}/config/topics/{name}" for name in names}
        # All are asked before the first answer is read.
        asked = [
            (name, self._client.get_async(paths[name]), self._client.get_async(settings[name]))
            for name in names
        ]
        holders = set()
        counts: Dict[str, int] = {}
        for name, replicas, config in asked:
            partitions = list(
                (self._answer(paths[name], replicas).get("partitions") or {}).values()
            )
            for each in partitions:
                holders.update(each)
            own = self._answer(settings[name], config).get("config") or {}
            if partitions and "min.insync.replicas" not in own:
                counts[name] = min(len(each) for each in partitions)
        return {"replica_holders": sorted(holders), "on_default_min_isr": replica_counts(counts)}

    def _answer(self, path: str, answer: Any) -> Mapping[str, Any]:
        """The JSON object that was asked for before, empty where there is none."""
        try:
            data, _stat = self._ask("reading", lambda _path: answer, path)
            found = json.loads(data or b"null")
        except (NoNodeError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

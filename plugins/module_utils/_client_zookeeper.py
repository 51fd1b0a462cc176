# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only importer of kazoo: what Kafka has written into ZooKeeper, read; and first credentials, written.

Private to this collection. Connect strings are `host:port,host:port/chroot`.
"""

from __future__ import annotations

import json
import logging
import traceback

from ansible_collections.kafkaops.cluster.plugins.module_utils._argspec import (
    join_address,
    parse_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan import AdminError

KAZOO_IMPORT_ERROR = None
try:
    from kazoo.client import KazooClient
    from kazoo.exceptions import KazooException, NoNodeError
    from kazoo.handlers.threading import KazooTimeoutError
except ImportError:
    KAZOO_IMPORT_ERROR = traceback.format_exc()


def parse_connect(text):
    """((host, port) pairs, chroot) of a connect string; the chroot is "" or begins with a slash."""
    hosts, slash, path = text.partition("/")
    return parse_addresses([hosts], option="zookeeper"), (slash + path).rstrip("/")


class ZookeeperClient:
    """One ensemble, for as long as the context lasts.

    AdminError with `reachable=False` if no server answers within the timeout (seconds).
    """

    def __init__(self, connect, timeout=10.0, read_only=True):
        addresses, self.chroot = parse_connect(connect)
        self.hosts = ",".join(join_address(host, port) for host, port in addresses)
        self.timeout = timeout
        self.read_only = read_only
        self._client = None

    def __enter__(self):
        quiet = logging.getLogger("kafkaops.kazoo")
        quiet.setLevel(logging.CRITICAL)  # refused connections are reported below, once
        self._client = KazooClient(
            self.hosts, timeout=self.timeout, read_only=self.read_only, logger=quiet
        )
        try:
            self._client.start(self.timeout)
        except (KazooTimeoutError, KazooException, OSError) as error:
            self.__exit__()
            raise AdminError(
                f"unreachable: no ZooKeeper server answered at {self.hosts} within "
                f"{self.timeout:g} s.",
                reachable=False,
            ) from error
        return self

    def __exit__(self, *_exc):
        if self._client is not None:
            self._client.stop()
            self._client.close()
            self._client = None

    def _read(self, path):
        """(parsed JSON or None, ZnodeStat) of a node, (None, None) if there is none."""
        try:
            data, stat = self._client.get(self.chroot + path)
        except NoNodeError:
            return None, None
        except KazooException as error:
            raise AdminError(f"reading {self.chroot}{path} in {self.hosts}: {error!r}.") from error
        try:
            return json.loads(data or b"null"), stat
        except ValueError:
            return None, stat

    def _children(self, path):
        try:
            return sorted(self._client.get_children(self.chroot + path))
        except NoNodeError:
            return []
        except KazooException as error:
            raise AdminError(f"reading {self.chroot}{path} in {self.hosts}: {error!r}.") from error

    def user_config(self, user):
        """The stored configuration of a user (mechanism -> credential), empty if there is none."""
        stored, _stat = self._read(f"/config/users/{user}")
        return dict((stored or {}).get("config") or {})

    def write_user_config(self, user, config):
        """Store the configuration of a user as Kafka's own tools do, without telling any broker."""
        path = f"{self.chroot}/config/users/{user}"
        data = json.dumps({"version": 1, "config": config}).encode("utf-8")
        try:
            self._client.ensure_path(path)
            self._client.set(path, data)
        except KazooException as error:
            raise AdminError(f"writing {path} in {self.hosts}: {error!r}.") from error

    def describe(self, with_replicas=False):
        """What Kafka registered below the chroot, as a dict.

        `exists` says whether there is a chroot at all. Owners and czxids tell one incarnation of a
        broker from the next; a znode's data version does not. With `with_replicas` the ids of all
        brokers that hold a replica are read too (one small read per topic, pipelined): only needed
        when no broker can be asked.
        """
        identity, _stat = self._read("/cluster/id")
        controller, controller_stat = self._read("/controller")
        found = {
            "exists": bool(self._client.exists(self.chroot or "/")),
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
            found["replica_holders"] = self._replica_holders()
        return found

    def _replica_holders(self):
        names = self._children("/brokers/topics")
        answers = [self._client.get_async(f"{self.chroot}/brokers/topics/{name}") for name in names]
        holders = set()
        for answer in answers:
            try:
                data, _stat = answer.get(timeout=self.timeout)
                for replicas in json.loads(data)["partitions"].values():
                    holders.update(replicas)
            except (NoNodeError, ValueError, KeyError):
                continue
            except (KazooException, KazooTimeoutError) as error:
                raise AdminError(f"reading topics in {self.hosts}: {error!r}.") from error
        return sorted(holders)

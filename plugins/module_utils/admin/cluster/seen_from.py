# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which addresses a client connects to, and what is wrong with what it has seen there.

Private to this collection. Pure.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.wire import Seen
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# Not for hosts of clients: brokers use the one among themselves, whoever runs Ansible the other.
INSIDE = frozenset(("brokers", "admin"))


@dataclass(frozen=True)
class Target:
    """The address that clients of a listener are told for a broker; `name` is the broker's host.

    `audience`: whose clients use it; `others`: the broker's other listeners, name -> address that clients are told.
    """

    listener: str
    protocol: str
    broker: int
    name: str
    host: str
    port: int
    audience: Sequence[str] = ()
    others: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> Dict[str, Any]:
        """As the module takes it."""
        return asdict(self)


def targets(brokers: Sequence[Mapping[str, Any]], audiences: Collection[str] = ()) -> List[Target]:
    """Every advertised address of the listeners that clients use, of brokers with `host id listeners`.

    `audiences`: those that a host of clients belongs to; empty for all.
    """
    found = []
    for broker in brokers:
        told = {str(item["name"]): endpoint(*_told(item)) for item in broker["listeners"]}
        for item in broker["listeners"]:
            if not is_for_clients(item.get("audience") or (), audiences):
                continue
            name, (host, port) = str(item["name"]), _told(item)
            found.append(
                Target(
                    listener=name,
                    protocol=str(item.get("protocol") or "PLAINTEXT"),
                    broker=int(broker["id"]),
                    name=str(broker["host"]),
                    host=host,
                    port=port,
                    audience=outside(item.get("audience") or ()),
                    others={each: where for each, where in told.items() if each != name},
                )
            )
    return found


def _told(listener: Mapping[str, Any]) -> Tuple[str, int]:
    """The address that clients of a listener are told."""
    return str(listener.get("advertised") or listener.get("bind")), int(listener["port"])


def is_for_clients(of_listener: Collection[str], of_host: Collection[str] = ()) -> bool:
    """Whether a listener with these audiences is for a host of clients that belongs to `of_host`, empty for all."""
    clients = outside(of_listener)
    return bool(set(clients) & set(of_host) if of_host else clients)


def outside(audience: Collection[str]) -> Tuple[str, ...]:
    """The audiences of a listener that hosts of clients belong to, sorted."""
    return tuple(sorted(set(audience) - INSIDE))


@dataclass(frozen=True)
class Wrong:
    """Something that can be wrong, and what to do."""

    check: str
    remedy: str


# by the step that failed
_STEPS = {
    "name": Wrong(
        check="reach.name",
        remedy="add the name to DNS or /etc/hosts of this host, or correct `advertised`",
    ),
    "port": Wrong(
        check="reach.port",
        remedy="let this host through firewall and port mapping, or correct `advertised` and `port`",
    ),
    "certificate": Wrong(
        check="reach.certificate",
        remedy="give the broker a certificate with this name, or correct ssl_ca, `advertised` or the port mapping",
    ),
    "protocol": Wrong(
        check="reach.protocol", remedy="correct the port mapping: it leads to something else"
    ),
    "login": Wrong(
        check="reach.login",
        remedy="correct kafka_client_security, or the port mapping if it leads elsewhere",
    ),
}
_CLUSTER = Wrong(
    check="reach.cluster",
    remedy="correct the port mapping: it leads to a broker of another cluster",
)
_BROKER = Wrong(check="reach.broker", remedy="correct the port mapping, or `advertised`")
_LISTENER = Wrong(
    check="reach.listener",
    remedy="correct the port mapping: it leads to another listener of this broker",
)
_TOLD = Wrong(
    check="reach.advertised",
    remedy="run playbooks/site.yml, so that brokers say what the inventory has",
)

# What can be seen before a broker is there, where a stand-in listens in its place.
BEFORE_START = {**_STEPS, "broker": _BROKER, "listener": _LISTENER}
# Where a voter of a quorum runs, whatever the step.
_VOTER = Wrong(
    check="voters.unreachable",
    remedy="correct kafka_controller_bind, kafka_address, the certificate or a firewall there, since no election comes"
    " about with voters that do not reach each other; then run the same command again: where that host has to restart"
    " for it, its turn comes first (or --limit HOST, where the playbook takes it); where no controller leads any more,"
    " run playbooks/stop.yml, then playbooks/site.yml, which starts all together; -e kafka_accept_unavailable=all goes"
    " on without them",
)
# What is not a fault where a listener is for others, elsewhere.
_ELSEWHERE = ("reach.name", "reach.port")


def _remedy(wrong: Wrong, audience: Sequence[str]) -> str:
    """The remedy; of an address that only some audiences can reach it is another one on a host of others."""
    if not audience or wrong.check not in _ELSEWHERE:
        return wrong.remedy
    return (
        f"{wrong.remedy}; if no client here belongs to the audience {' or '.join(audience)}, name the audiences of "
        "this host in kafka_client_audiences"
    )


def before_start(host: str, tried: Iterable[Tuple[Mapping[str, Any], str, str]]) -> List[Problem]:
    """What is wrong with ports that `host` has tried, where stand-ins listen, or what runs.

    `tried`: (the attempt, a dict of `name what address port audience votes`; the step that failed, "" for none; words
    on it).
    """
    found = []
    for each, step, words in tried:
        if step:
            wrong = _VOTER if each.get("votes") else BEFORE_START[step]
            remedy = _remedy(wrong, each.get("audience") or ()).replace("HOST", each["name"])
            subject = f"{each['what']} of {each['name']}"
            where = endpoint(each["address"], each["port"])
            found.append(Problem(wrong.check, words, remedy, (host,), subject, where))
    return found


def problems(
    host: str, seen: Sequence[Tuple[Target, Seen]], cluster_id: str = ""
) -> Iterator[Problem]:
    """What is wrong with `seen` from `host`: pairs of Target and Seen. `cluster_id`: "" where it is not known."""
    for target, what in seen:
        where = endpoint(target.host, target.port)
        for wrong, reason in _judged(target, what, cluster_id):
            subject = f"listener {target.listener} of {target.name}"
            remedy = _remedy(wrong, target.audience)
            yield Problem(wrong.check, reason, remedy, (host,), subject, where)


def _judged(target: Target, what: Seen, cluster_id: str) -> Iterator[Tuple[Wrong, str]]:
    """What is wrong with one target, and the reason."""
    if what.failed:
        yield _STEPS[what.failed], what.detail
        return
    if cluster_id and what.cluster_id != cluster_id:
        yield _CLUSTER, f"another cluster answers, {what.cluster_id}, not {cluster_id}"
        return
    if what.answered_by not in (None, target.broker):
        yield _BROKER, f"broker {what.answered_by} answers, not broker {target.broker}"
    told = what.brokers.get(target.broker)
    leads_to = [name for name, address in target.others.items() if address == told]
    if not told:
        yield _TOLD, f"clients are not told of broker {target.broker}; it is not registered"
    elif leads_to:
        yield _LISTENER, f"listener {leads_to[0]} answers, whose clients are told {told}"
    elif told != endpoint(target.host, target.port):
        yield _TOLD, f"clients are told {told} for broker {target.broker}"

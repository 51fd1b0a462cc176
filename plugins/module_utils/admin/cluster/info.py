# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describing a cluster, and waiting until it is as it should be.

Private to this collection. Clock and sleep are handed in. Nothing here changes anything.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Collection,
    Dict,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin import health
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.answers import (
    with_config,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.until_quiet import (
    FailedDirectories,
    until_quiet,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.zookeeper import (
    ZookeeperClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.health import Goal
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    Snapshot,
    Topic,
    topic_dict,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import collision_key
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quorum import Quorum, Return
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ranges import chooser
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# Between two questions for what is being moved, while replicas are not in sync.
JOINING_SECONDS = 5.0

if TYPE_CHECKING:
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
        KafkaClient,
    )
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
        ConfigEntry,
    )


def goal_from(params: Optional[Mapping[str, Any]]) -> Optional[Goal]:
    """The Goal of a module's `wait` option, None if there is none."""
    if not params:
        return None
    return Goal(
        brokers=tuple(params["brokers"] or ()),
        in_sync=tuple(params["in_sync"] or ()),
        full_isr=params["full_isr"],
        gone=tuple(params["gone"] or ()),
        unmended=tuple(params["unmended"] or ()),
        voters=tuple(params["voters"] or ()),
        controller=params["controller"],
        quiet_seconds=params["quiet_seconds"],
        timeout=params["timeout"],
    )


class _Joining:
    """Replicas that are being added, which may take hours: a wait leaves them out. `known`: the last answer."""

    def __init__(self, clock: Callable[[], float]):
        self.known: Mapping[Key, Collection[int]] = {}
        self._clock = clock
        self._asked: Optional[float] = None

    def left_out(self, client: KafkaClient, snapshot: Snapshot, goal: Goal) -> Snapshot:
        """The snapshot without them; the controller is asked now and then, while something lacks."""
        now = self._clock()
        due = self._asked is None or now - self._asked >= JOINING_SECONDS
        if due and not goal.full_isr and health.behind(snapshot, goal.in_sync, goal.unmended):
            self._asked = now
            places = [
                (each.host, each.port)
                for each in snapshot.brokers
                if each.id == snapshot.controller
            ]
            # Who does not tell, or may not, adds nothing that is known. The library may be missing, too.
            with contextlib.suppress(AdminError, ImportError):
                self.known = client.fetch_joining(places)
        return health.without_joining(snapshot, self.known)


def wait_for(
    make_client: Callable[[], KafkaClient],
    goal: Goal,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    log: Callable[[str], None] = lambda text: None,
) -> Dict[str, Any]:
    """Wait until the goal is met; returns {waited_seconds, polls, not_waited_for}, AdminError at the
    deadline.

    `make_client()` gives a new, unconnected client: a broker that is starting may refuse for a
    while, and that is what we wait for. Met means: in fresh metadata at every poll during
    `quiet_seconds`, and at the end in the view of every live broker, because brokers learn of
    changes one after another and the next module may ask any of them.
    """
    seen: List[Snapshot] = []
    back, directories, joining = Return(goal.voters), FailedDirectories(), _Joining(clock)

    def left() -> Optional[int]:
        return (
            health.lagging(health.without_joining(seen[0], joining.known), goal) if seen else None
        )

    def look(client: KafkaClient) -> List[str]:
        # A sick broker may know nothing any more, or only what was.
        unmended = goal.unmended
        seen[:] = [client.fetch_view_of_others(*unmended) if unmended else client.fetch_metadata()]
        settled = joining.left_out(client, seen[0], goal)
        reasons = health.unmet(settled, goal)
        if goal.voters and not reasons:
            asked = [each for each in seen[0].brokers if each.id not in goal.unmended]
            reasons = back.unmet(client.fetch_quorum([(each.host, each.port) for each in asked]))
        return directories.told_with(reasons, client, seen[0])

    def differs(client: KafkaClient) -> List[str]:
        return _seen_differently(client, seen[0], goal, joining.known)

    waited = until_quiet(
        make_client,
        look,
        differs,
        lambda reasons, seconds: directories.with_remedies(
            Problem(
                "cluster.not_ready",
                f"waited {seconds:.0f} s: {'; '.join(reasons)}",
                "see playbooks/status.yml and the brokers' logs, or raise the timeout",
            )
        ),
        goal.quiet_seconds,
        goal.timeout,
        clock,
        sleep,
        log,
        left,
        differs,
    )
    return {
        "waited_seconds": waited.seconds,
        "polls": waited.polls,
        "not_waited_for": health.not_waited_for(seen[0], goal, joining.known),
    }


def described_quorum(
    client: KafkaClient, places: Sequence[Tuple[str, int]], missing_ok: bool = False
) -> Dict[str, Any]:
    """What the module returns about the quorum of a KRaft cluster; brokers at `places` are asked.

    With `missing_ok` a leader that does not answer is not an error, and `problem` says why.
    """
    try:
        return {**client.fetch_quorum(places).to_dict(), "problem": ""}
    except AdminError as error:
        if not missing_ok:
            raise
        return {**Quorum().to_dict(), "problem": error.problem.reason}


def described_features(
    client: KafkaClient, places: Sequence[Tuple[str, int]], missing_ok: bool = False
) -> Dict[str, Any]:
    """What the module returns about the features of a KRaft cluster; brokers at `places` are asked.

    With `missing_ok` a broker that does not answer is not an error, and `problem` says why.
    """
    try:
        return {"levels": client.fetch_features(places), "problem": ""}
    except AdminError as error:
        if not missing_ok:
            raise
        return {"levels": None, "problem": error.problem.reason}


def described_moves(
    client: KafkaClient, described: Mapping[str, Any], missing_ok: bool = False
) -> Dict[str, Any]:
    """What the module returns about reassignments, of a cluster that is `described`.

    Only the controller knows, and it is asked where replicas are missing: what is added is never in sync at once.
    With `missing_ok` a controller that does not answer is not an error, and `problem` says why.
    """
    moving: Sequence[Tuple[str, int]] = ()
    problem = ""
    if described["under_replicated"]:
        places = [
            (each["host"], each["port"])
            for each in described["brokers"]
            if each["id"] == described["controller"]
        ]
        try:
            moving = client.fetch_moving_partitions(places)
        except AdminError as error:
            if not missing_ok:
                raise
            problem = error.problem.reason
    partitions = [{"topic": topic, "partition": number} for topic, number in moving]
    return {"partitions": partitions, "problem": problem}


def described_last_copies(
    client: KafkaClient, described: Mapping[str, Any], broker: int
) -> List[Dict[str, Any]]:
    """The offline partitions, of a cluster that is `described`, whose last copy may be on this broker.

    Where an ISR is empty, a broker is asked who is eligible; where none tells, what may be lost counts. So does each
    of a topic of which any replica may lead.
    """
    held = [each for each in described["offline"] if broker in each["replicas"]]
    unclean = _unclean_topics(client, described, sorted({each["topic"] for each in held}))
    unclear = sorted({each["topic"] for each in held if not each["isr"]})
    places = [(each["host"], each["port"]) for each in described["brokers"]]
    eligible: Mapping[Tuple[str, int], health.Eligible] = {}
    if unclear:
        with contextlib.suppress(AdminError):
            eligible = client.fetch_eligible(unclear, places)
    return [
        each
        for each in held
        if health.may_be_last_copy(
            broker,
            each["isr"],
            eligible.get((each["topic"], each["partition"])),
            each["topic"] in unclean,
        )
    ]


def _unclean_topics(
    client: KafkaClient, described: Mapping[str, Any], topics: Sequence[str]
) -> Set[str]:
    """Those of the topics of which a replica that is not in sync may lead, or nobody tells."""
    if not topics:
        return set()
    configs: Mapping[str, Mapping[str, ConfigEntry]] = {}
    with contextlib.suppress(AdminError):
        configs = client.fetch_configs(topics)
    ids = [each["id"] for each in described["brokers"]]
    defaults = client.fetch_broker_settings(ids, health.UNCLEAN).values()
    return {
        name
        for name in topics
        if health.elects_unclean(Topic(name, (), configs.get(name)), defaults)
    }


def described_directories(
    client: KafkaClient, described: Mapping[str, Any]
) -> List[Dict[str, Any]]:
    """What the module returns about log directories, of a cluster that is `described`."""
    brokers = described["brokers"]
    found = client.fetch_directories(
        [each["id"] for each in brokers], [(each["host"], each["port"]) for each in brokers]
    )
    return [
        {
            "broker": broker,
            "path": each.path,
            "online": each.online,
            "usable_bytes": each.usable,
            "problem": "".join(
                problem.line() for problem in health.bad_directories({broker: [each]})
            ),
        }
        for broker, directories in sorted(found.items())
        for each in directories
    ]


def _seen_differently(
    client: KafkaClient, snapshot: Snapshot, goal: Goal, joining: Mapping[Key, Collection[int]]
) -> List[str]:
    """What single brokers see differently. A dead one that the goal does not name may still be
    registered for a while, and does not answer."""
    reasons = []
    for broker, view in sorted(client.fetch_every_view(snapshot, goal.unmended).items()):
        if view is None and goal.in_sync and broker not in goal.brokers:
            continue
        if view is None:
            reasons.append(f"broker {broker} is registered but does not answer")
        else:
            lacking = health.unmet(health.without_joining(view, joining), goal)
            reasons += [f"broker {broker} still sees: {text}" for text in lacking]
    return reasons


def describe_cluster(
    client: KafkaClient, named: Sequence[str] = (), patterns: Sequence[str] = ()
) -> Dict[str, Any]:
    """What the module returns about a reachable cluster; four requests, whatever its size.

    Topics that are `named`, that one of these names would collide with, or whose whole name one of the
    `patterns` matches, are told with their settings: one request more, where there are any.
    """
    chosen = chooser((), patterns, "topic_patterns")
    snapshot = client.fetch_metadata()
    racks = client.fetch_racks()
    configs = client.fetch_configs(sorted(snapshot.topics))
    topics = {
        name: replace(topic, config=configs.get(name)) for name, topic in snapshot.topics.items()
    }
    whole = replace(snapshot, topics=topics)
    told = {"topics": _named_topics(client, whole, named, chosen)} if named or patterns else {}
    return {**told, **described(whole, racks)}


def described(
    snapshot: Snapshot, racks: Mapping[int, Optional[str]], reachable: bool = True
) -> Dict[str, Any]:
    """The same of a snapshot whose topics have their settings. Pure."""
    topics, alive = snapshot.topics, {broker.id for broker in snapshot.brokers}
    holders = health.replica_holders(snapshot)
    shares = health.loads(snapshot)

    def listed(pairs: Sequence[health.Named]) -> List[Dict[str, Any]]:
        return [health.partition_dict(name, part) for name, part in pairs]

    return {
        "reachable": reachable,
        "cluster_id": snapshot.cluster_id,
        "controller": snapshot.controller,
        "brokers": [
            {
                "id": broker.id,
                "host": broker.host,
                "port": broker.port,
                "rack": racks.get(broker.id),
                **dict(zip(("leaders", "replicas", "out_of_sync"), shares[broker.id])),
            }
            for broker in snapshot.brokers
        ],
        "topic_count": len(topics),
        "partition_count": sum(len(topic.partitions) for topic in topics.values()),
        "replica_holders": holders,
        "on_default_min_isr": health.on_default_min_isr(snapshot),
        "missing_brokers": [broker for broker in holders if broker not in alive],
        "under_replicated": listed(health.under_replicated(snapshot)),
        "under_min_isr": listed(health.under_min_isr(snapshot)),
        "offline": listed(health.offline(snapshot)),
    }


def _named_topics(
    client: KafkaClient, snapshot: Snapshot, named: Sequence[str], chosen: Callable[[str], bool]
) -> List[Dict[str, Any]]:
    wanted = {collision_key(name) for name in named}
    # One that vanished between two requests has no settings.
    there = [
        topic
        for name, topic in sorted(snapshot.topics.items())
        if (collision_key(name) in wanted or chosen(name)) and topic.config is not None
    ]
    if not there or not snapshot.brokers:
        return []
    entries = client.fetch_broker_config(snapshot.brokers[0].id) or {}
    defaults = {key: each.value for key, each in entries.items() if each.value is not None}
    return [topic_dict(with_config(each, each.config or {}, defaults)) for each in there]


def in_sync_everywhere(client: KafkaClient) -> Optional[List[int]]:
    """Ids of the brokers that every live broker sees in sync; None where nobody who answers is registered.

    Who lost touch tells what was, so that one view alone proves nothing.
    """
    try:
        snapshot = client.fetch_view_of_others()
    except AdminError:
        return None
    views = [snapshot, *client.fetch_every_view(snapshot).values()]
    sick = {each for view in views if view for each in health.not_in_sync(view)}
    return sorted({broker.id for broker in snapshot.brokers} - sick)


def overrides_of(told: Mapping[int, Mapping[str, ConfigEntry]]) -> List[Dict[str, Any]]:
    """The settings that do not come from a broker's own file, in the order of brokers and keys.

    Those of all brokers are told once, with broker null; a secret without its value.
    """
    found: Dict[Any, Dict[str, Any]] = {}
    for broker, entries in sorted(told.items()):
        for key, entry in sorted(entries.items()):
            if entry.source in ("broker", "cluster"):
                whose = broker if entry.source == "broker" else None
                value = None if entry.sensitive else entry.value
                found.setdefault((whose, key), {"broker": whose, "name": key, "value": value})
    return list(found.values())


def gather(
    params: Mapping[str, Any],
    make_client: Callable[[], KafkaClient],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    log: Callable[[str], None] = lambda text: None,
) -> Dict[str, Any]:
    """Everything that kafka_cluster_info returns, for its parameters."""
    results: Dict[str, Any] = {}
    goal = goal_from(params["wait"])
    if goal:
        results["wait"] = wait_for(make_client, goal, clock, sleep, log)
    lenient = params["missing_ok"]
    client = make_client()
    try:
        client.connect()
        results.update(describe_cluster(client, params["topics"], params["topic_patterns"]))
        if params["every_view"]:
            results["in_sync"] = in_sync_everywhere(client)
        if params["overrides"]:
            ids = [broker["id"] for broker in results["brokers"]]
            results["overrides"] = overrides_of(client.fetch_broker_configs(ids)[0])
        if params["quorum"]:
            places = [(broker["host"], broker["port"]) for broker in results["brokers"]]
            results["quorum"] = described_quorum(client, places, lenient)
        if params["features"]:
            places = [(broker["host"], broker["port"]) for broker in results["brokers"]]
            results["features"] = described_features(client, places, lenient)
        if params["directories"]:
            results["directories"] = described_directories(client, results)
        if params["last_copies"] is not None:
            results["last_copies"] = described_last_copies(client, results, params["last_copies"])
        if params["reassignments"]:
            results["reassignments"] = described_moves(client, results, lenient)
    except AdminError as error:
        if not lenient or error.reachable:
            raise
        nothing = described(Snapshot(), {}, reachable=False)
        results.update(nothing, unreachable_reason=error.message)
    finally:
        client.close()
    if params["zookeeper"]:
        try:
            seconds = params["zookeeper_timeout"] or params["timeout"]
            with ZookeeperClient(params["zookeeper"], seconds) as ensemble:
                found = ensemble.describe(with_replicas=not results["reachable"])
            # One place to look for what the topics need, whoever could be asked.
            for key in ("replica_holders", "on_default_min_isr"):
                results[key] = found.pop(key, results[key])
            results["zookeeper"] = {"reachable": True, **found}
        except AdminError as error:
            if not lenient or error.reachable:
                raise
            results["zookeeper"] = {
                "reachable": False,
                "unreachable_reason": error.message,
                "exists": False,
                "cluster_id": None,
                "controller": None,
                "brokers": [],
            }
    return results


# The module's own options; their documentation is in the module.
OPTIONS = dict(
    missing_ok=dict(type="bool", default=False),
    overrides=dict(type="bool", default=False),
    topics=dict(type="list", elements="str", default=[]),
    topic_patterns=dict(type="list", elements="str", default=[]),
    every_view=dict(type="bool", default=False),
    quorum=dict(type="bool", default=False),
    features=dict(type="bool", default=False),
    reassignments=dict(type="bool", default=False),
    directories=dict(type="bool", default=False),
    last_copies=dict(type="int"),
    zookeeper=dict(type="str"),
    zookeeper_timeout=dict(type="float"),
    progress=dict(type="path"),
    wait=dict(
        type="dict",
        options=dict(
            brokers=dict(type="list", elements="int"),
            in_sync=dict(type="list", elements="int"),
            gone=dict(type="list", elements="int"),
            unmended=dict(type="list", elements="int"),
            voters=dict(type="list", elements="int"),
            full_isr=dict(type="bool", default=False),
            controller=dict(type="bool", default=True),
            quiet_seconds=dict(type="float", default=0.0),
            timeout=dict(type="float", default=120.0),
        ),
    ),
)

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From ZooKeeper to KRaft: what is refused before anything starts, and what the plan gets to know."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import read_member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.running_cluster import (
    question,
    snapshot_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import World
from tests.unit.plugins.module_utils.preflight.good_inventory import (
    gather,
    good,
    good_facts,
    merge,
    set_at,
    verdict_of,
)
from tests.unit.plugins.module_utils.preflight.test_metadata import told

BROKERS = ["kafka-1", "kafka-2", "kafka-3"]
CONTROLLERS = ["controller-1", "controller-2", "controller-3"]
CLUSTER = "orders-prod"
ID = "b25lLWNsdXN0ZXItb25seQ"
FLAG = {"zookeeper.metadata.migration.enable": "true"}
RELEASE = {"kafka/release": "kafka_2.13-3.9.2"}
VOTERS = ",".join(
    f"{number}@controller-{number - 3000}.example.com:9093" for number in (3001, 3002, 3003)
)


def inventory(more=None):
    """The good inventory of ZooKeeper mode, with controllers beside it."""
    document = good()
    document["all"]["vars"].update(
        kafka_metadata="kraft",
        kafka_version="3.9.2",
        kafka_log_dirs=["/srv/controller"],
        kafka_controller_bind="192.0.2.1",
    )
    document["all"]["children"]["controllers"] = {
        "hosts": {
            name: {"kafka_broker_id": 3000 + number, "ansible_host": f"{name}.example.com"}
            for number, name in enumerate(CONTROLLERS, 1)
        }
    }
    return merge(document, more or {})


def broker(number, phase):
    current = {
        "zookeeper": {"broker.id": str(number), "zookeeper.connect": "z:2181/kafka"},
        "migration": {
            "broker.id": str(number),
            "zookeeper.connect": "z:2181/kafka",
            "controller.quorum.voters": VOTERS,
            **FLAG,
        },
        "kraft": {
            "node.id": str(number),
            "process.roles": "broker",
            "controller.quorum.voters": VOTERS,
        },
    }[phase]
    meta = {"version": "0", "broker.id": str(number), "cluster.id": ID}
    return {**RELEASE, "kafka/current": current, "kafka/log_dirs/0/meta": meta}


def controller(number, phase="migration", cluster_id=ID):
    current = {
        "node.id": str(3000 + number),
        "process.roles": "controller",
        "controller.quorum.voters": VOTERS,
    }
    if phase == "migration":
        current.update(FLAG, **{"zookeeper.connect": "z:2181/kafka"})
    meta = {"version": "1", "node.id": str(3000 + number), "cluster.id": cluster_id}
    return {**RELEASE, "kafka/current": current, "kafka/log_dirs/0/meta": meta}


def facts(phases="zookeeper zookeeper zookeeper", controllers="", **more):
    found = {
        f"kafka-{number}": broker(number, each) for number, each in enumerate(phases.split(), 1)
    }
    found.update(
        {
            f"controller-{number}": controller(number, each)
            for number, each in enumerate(controllers.split(), 1)
        }
    )
    found.update({f"zookeeper-{number}": {"zookeeper/data/has_data": True} for number in (1, 2, 3)})
    for name, changes in more.items():
        found.setdefault(name.replace("_", "-"), {}).update(changes)
    return found


def errors(verdict):
    """check id -> hosts of what stops the run."""
    hosts: dict = {}
    for each in verdict.errors:
        hosts.setdefault(each.check, []).extend(each.subjects)
    return {check: sorted(set(names)) for check, names in hosts.items()}


def judged(tmp_path, document=None, migrates=True, **more):
    more.setdefault("facts", facts())
    return verdict_of(document or inventory(), tmp_path, migrates=migrates, **more)


@pytest.mark.parametrize(
    "now",
    [
        facts(),
        facts(controllers="migration migration"),
        facts("migration zookeeper zookeeper", "migration migration migration"),
        facts("migration migration kraft", "migration migration migration"),
        facts("kraft kraft kraft", "migration kraft migration"),
        facts("kraft kraft kraft", "kraft kraft kraft"),
    ],
)
def test_wherever_a_run_was_killed_the_next_one_may_look(tmp_path, now):
    verdict = judged(tmp_path, facts=now)
    assert errors(verdict) == {}
    assert set(verdict.result["migration"]) == {CLUSTER}


def test_what_the_plan_gets_to_know(tmp_path):
    now = facts("migration zookeeper kraft", "migration kraft")
    result = judged(tmp_path, facts=now).result
    known = result["migration"][CLUSTER]
    assert {each["host"]: each["phase"] for each in known["nodes"]} == {
        **dict(zip(BROKERS, ("migration", "zookeeper", "kraft"))),
        **dict(zip(CONTROLLERS, ("migration", "kraft", ""))),
    }
    assert known["zookeeper"] == "z:2181/kafka" and known["line"] == "3.9"
    places = {each["host"]: (each["place"], each["metadata_dir"]) for each in known["nodes"]}
    # each is asked on its own host, where the address of others may lead elsewhere
    assert places["controller-1"] == ("192.0.2.1:9093", "/srv/controller")
    anywhere = inventory({"all": {"vars": {"kafka_controller_bind": ""}}})
    nodes = judged(tmp_path, anywhere, facts=now).result["migration"][CLUSTER]["nodes"]
    assert {each["place"] for each in nodes} == {"", "127.0.0.1:9093"}
    assert result["storage"][CLUSTER]["unformatted"] == ["controller-3"]
    assert result["storage"][CLUSTER]["cluster_id"] == ID
    assert (
        not result["storage"][CLUSTER]["joins"]
        and not result["storage"][CLUSTER]["initial_controllers"]
    )
    quorum = result["quorums"]["kafka-1"]
    assert quorum["static"] and [each["id"] for each in quorum["controllers"]] == [3001, 3002, 3003]


def test_of_two_clusters_one_stays_where_it_is(tmp_path):
    """The one that the inventory keeps in ZooKeeper is left out with --limit, and stops nobody then."""
    other = {"kafka_cluster_name": "other", "kafka_metadata": "zookeeper"}
    names = {"kafka": "kafka-4", "zookeeper": "zookeeper-4"}
    second = {
        group: {"hosts": {name: {**other, "ansible_host": f"{name}.example.com"}}}
        for group, name in names.items()
    }
    document = inventory({"all": {"children": second}})
    (refused,) = [
        each for each in judged(tmp_path, document).errors if each.check.startswith("migration.")
    ]
    assert refused.check == "migration.inventory" and set(refused.subjects) == set(names.values())
    assert "--limit" in refused.remedy
    away = {name: {"in_play": False} for name in names.values()}
    left = judged(tmp_path, document, raw=away)
    assert not [each for each in left.errors if each.check.startswith("migration.")]


def test_of_two_clusters_each_has_a_plan_of_its_own(tmp_path):
    """And none of them waits for nodes of the other one, or is refused for how far that is."""
    other = {"kafka_cluster_name": "other"}
    second = {"all": {"children": {}}}
    for group, prefix in (("kafka", "kafka"), ("controllers", "controller")):
        hosts = {
            f"{prefix}-{number}": {
                **other,
                "kafka_broker_id": number if group == "kafka" else 3000 + number,
                "ansible_host": f"{prefix}-{number}.example.com",
            }
            for number in (4, 5, 6)
        }
        second["all"]["children"][group] = {"hosts": hosts}
    second["all"]["children"]["zookeeper"] = {
        "hosts": {"zookeeper-4": {**other, "zookeeper_myid": 1}}
    }
    now = facts("kraft migration migration", "migration migration migration")
    now.update({f"kafka-{number}": broker(number, "zookeeper") for number in (4, 5, 6)})
    verdict = judged(tmp_path, inventory(second), facts=now)
    plans = verdict.result["migration"]
    phases = {
        name: {each["host"]: each["phase"] for each in plans[name]["nodes"]} for name in plans
    }
    assert phases == {
        CLUSTER: {
            **dict(zip(BROKERS, ("kraft", "migration", "migration"))),
            **dict.fromkeys(CONTROLLERS, "migration"),
        },
        "other": {
            **dict.fromkeys(("kafka-4", "kafka-5", "kafka-6"), "zookeeper"),
            **dict.fromkeys(("controller-4", "controller-5", "controller-6"), ""),
        },
    }
    assert not {check for check in errors(verdict) if check.startswith("migration.")}


@pytest.mark.parametrize(
    ("document", "now", "check", "hosts"),
    [
        (
            inventory({"all": {"vars": {"kafka_version": "4.3.1"}}}),
            facts(),
            "migration.version",
            BROKERS + CONTROLLERS,
        ),
        (
            inventory(),
            facts(
                kafka_1={"kafka/release": "kafka_2.13-3.8.1"},
                kafka_2={"kafka/release": "kafka_2.13-3.8.1"},
            ),
            "migration.version",
            BROKERS[:2],
        ),
        # upgraded, not finalised: the broker logs nothing, and the controllers wait for ever
        (
            inventory(),
            facts(
                kafka_2={
                    "kafka/current": {
                        "broker.id": "2",
                        "zookeeper.connect": "z:2181/kafka",
                        "inter.broker.protocol.version": "3.8",
                    }
                }
            ),
            "migration.protocol",
            ["kafka-2"],
        ),
        (
            inventory(
                {
                    "all": {
                        "children": {
                            "kafka": {
                                "vars": {"kafka_config": {"inter.broker.protocol.version": "3.8"}}
                            }
                        }
                    }
                }
            ),
            facts(),
            "migration.protocol",
            BROKERS,
        ),
        *(
            (
                inventory({"all": {"children": {"kafka": {"vars": closed}}}}),
                facts(),
                "migration.secured",
                BROKERS,
            )
            for closed in (
                {"kafka_config": {"zookeeper.ssl.client.enable": True}},
                {"kafka_config": {"zookeeper.set.acl": True}},
                {"kafka_config": {"zookeeper.set.acl": "true "}},
                {"kafka_gc_options": ["-Djava.security.auth.login.config=/etc/kafka/jaas.conf"]},
                {"kafka_jvm_options": ["-Djava.security.auth.login.config=/etc/kafka/jaas.conf"]},
            )
        ),
        (
            inventory(),
            facts(
                kafka_2={
                    "kafka/current": {
                        "broker.id": "2",
                        "zookeeper.connect": "z:2181/kafka",
                        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
                    }
                }
            ),
            "migration.secured",
            ["kafka-2"],
        ),
        (
            inventory(
                {"all": {"children": {"controllers": {"=hosts": dict.fromkeys(BROKERS, {})}}}}
            ),
            facts(),
            "migration.combined",
            BROKERS,
        ),
        (
            # of the brokers alone: controllers would start, and the first broker would not come back as one of them
            inventory(
                {
                    "all": {
                        "children": {
                            "kafka": {
                                "vars": {"kafka_config": {"control.plane.listener.name": "C"}}
                            }
                        }
                    }
                }
            ),
            facts(),
            "config.removed_key",
            BROKERS,
        ),
        (inventory(), {}, "migration.not_installed", BROKERS),
        (
            inventory(),
            facts(controller_2=controller(2, cluster_id="Zm9yZWlnbi1jbHVzdGVyLQ")),
            "identity.foreign_cluster",
            ["controller-2"],
        ),
    ],
)
def test_each_trap_is_refused_before_the_first_controller_starts(
    tmp_path, document, now, check, hosts
):
    found = errors(judged(tmp_path, document, facts=now))
    assert found.get(check) == sorted(hosts), found


def test_a_cluster_that_is_in_kraft_mode_already_is_left_out_by_limit(tmp_path):
    """It is not taken back to 3.9 for it, in an inventory with one that migrates."""
    document = inventory({"all": {"vars": {"kafka_version": "4.3.1"}}})
    for phases, remedy in (
        ("kraft kraft kraft", f"cluster {CLUSTER} is in KRaft mode already: choose the one"),
        ("kraft kraft zookeeper", "bring the cluster to 3.9.2"),
    ):
        verdict = judged(tmp_path, document, facts=facts(phases, "kraft kraft kraft"))
        found = [each for each in verdict.errors if each.check == "migration.version"]
        assert found and all(each.remedy.startswith(remedy) for each in found)
    both = {"children": {"controllers": {"=hosts": dict.fromkeys(BROKERS, {})}}}
    verdict = judged(tmp_path, inventory({"all": both}), facts=facts("kraft kraft kraft"))
    (found,) = [each for each in verdict.errors if each.check == "migration.combined"]
    assert "--limit" in found.remedy


def test_servers_are_there_until_no_broker_needs_them(tmp_path):
    document = inventory()
    del document["all"]["children"]["zookeeper"]
    assert errors(judged(tmp_path, document))["migration.no_servers"] == BROKERS
    done = facts("kraft kraft kraft", "kraft kraft kraft")
    assert errors(judged(tmp_path, document, facts=done)) == {}


def test_an_inventory_of_zookeeper_mode_and_a_part_of_the_hosts_are_refused(tmp_path):
    document = inventory({"all": {"vars": {"kafka_metadata": "zookeeper"}}})
    (alone,) = judged(tmp_path, document).errors
    assert alone.check == "migration.inventory" and "--limit" not in alone.remedy
    outside = judged(tmp_path, raw={"kafka-3": {"in_play": False}})
    assert errors(outside)["migration.limited"] == ["kafka-3"]


@pytest.mark.parametrize("mode", ["kraft", "zookeeper"])
def test_other_playbooks_leave_alone_what_is_under_way(tmp_path, mode):
    """It is told by the configuration in force, whatever the inventory says meanwhile; what ran may start again."""
    document = inventory({"all": {"vars": {"kafka_metadata": mode}}})
    now = facts(
        "migration kraft zookeeper", "migration migration migration" if mode == "kraft" else ""
    )
    found = errors(judged(tmp_path, document, migrates=False, facts=now))
    hosts = sorted(["kafka-1", *(CONTROLLERS if mode == "kraft" else ())])
    assert found["metadata.migrating"] == hosts and "metadata.mixed" not in found
    started = judged(tmp_path, document, migrates=False, facts=now, purpose="start")
    assert "metadata.migrating" not in errors(started) and "metadata.migrating" in told(started)
    fit = judged(
        tmp_path,
        document,
        migrates=False,
        facts=now,
        purpose="keep",
        fit_for=["kraft", "migration"],
    )
    assert errors(fit) == {} and "metadata.migrating" in told(fit)
    state = started.result["versions"][CLUSTER]["state"]
    assert any("Migration to KRaft under way: kafka-3 still in ZooKeeper" in each for each in state)


def test_before_and_after_it_the_mode_has_to_be_that_of_the_hosts(tmp_path):
    before = judged(tmp_path, migrates=False)
    assert errors(before)["metadata.changed"] == BROKERS
    (finding,) = [each for each in before.errors if each.check == "metadata.changed"]
    assert "playbooks/migrate_to_kraft.yml" in finding.remedy
    # a power cut after the inventory was made ready, and before the first step
    started = judged(tmp_path, migrates=False, purpose="start")
    assert errors(started) == {} and "metadata.changed" in told(started)
    needing = started.result["groups"]
    assert all("kafkaops_in_zookeeper" in needing[name] for name in BROKERS)
    done = facts("kraft kraft kraft", "kraft kraft kraft")
    after = judged(tmp_path, migrates=False, facts=done)
    assert set(errors(after)) == {"metadata.mixed"}
    # between the last step and the removal of ZooKeeper everything may have been down
    started = judged(tmp_path, migrates=False, facts=done, purpose="start")
    assert errors(started) == {} and "metadata.mixed" in told(started)
    # and what only talks to brokers proves the cluster before that
    fit = judged(
        tmp_path, migrates=False, facts=done, purpose="keep", fit_for=["kraft", "migration"]
    )
    assert errors(fit) == {} and "metadata.mixed" in told(fit)
    # of a server that serves nobody any more the data may go
    gone = {
        **done,
        **{f"zookeeper-{each}": {"zookeeper/data/has_data": False} for each in (1, 2, 3)},
    }
    started = judged(tmp_path, migrates=False, facts=gone, purpose="start")
    assert errors(started) == {}
    lost = {**gone, "kafka-3": broker(3, "migration")}
    assert "identity.foreign_cluster" in errors(judged(tmp_path, facts=lost))
    document = inventory()
    del document["all"]["children"]["zookeeper"]
    assert errors(judged(tmp_path, document, migrates=False, facts=done)) == {}


def test_a_broker_in_kraft_needs_no_zookeeper_to_start(tmp_path):
    """In the midst of a migration ZooKeeper may be down, and only those that have their metadata there wait for it."""
    now = facts("kraft migration zookeeper", "migration migration migration")
    groups = judged(tmp_path, migrates=False, facts=now, purpose="start").result["groups"]
    needing = {name for name, found in groups.items() if "kafkaops_in_zookeeper" in found}
    assert needing == {"kafka-2", "kafka-3"}


def with_controllers(**changes):
    """The inventory with other variables of its controllers, by host."""
    hosts = {name.replace("_", "-"): each for name, each in changes.items()}
    return inventory({"all": {"children": {"controllers": {"hosts": hosts}}}})


@pytest.mark.parametrize(
    "document",
    [
        # moved; or of another branch of the inventory
        with_controllers(controller_2={"ansible_host": "elsewhere.example.com"}),
        with_controllers(controller_2={"kafka_controller_port": 9193}),
        with_controllers(controller_2={"kafka_broker_id": 3009}),
        inventory(
            {
                "all": {
                    "children": {
                        "controllers": {
                            "=hosts": {
                                f"new-{number}": {"kafka_broker_id": 3000 + number}
                                for number in (1, 2, 3)
                            }
                        }
                    }
                }
            }
        ),
    ],
)
@pytest.mark.parametrize("phases", ["migration migration migration", "kraft migration zookeeper"])
def test_brokers_on_their_way_know_the_controllers_of_the_inventory(tmp_path, document, phases):
    """Others are at work with the metadata where nobody looks, and a way back would free ZooKeeper beside them."""
    verdict = judged(tmp_path, document, facts=facts(phases))
    found = [each for each in verdict.errors if each.check == "quorum.changed"]
    hosts = {
        name for name, phase in zip(BROKERS, phases.split()) if phase in ("migration", "kraft")
    }
    assert {name for each in found for name in each.subjects} == hosts
    assert any("playbooks/migrate_back.yml" in each.remedy for each in found)
    known = verdict.result["migration"][CLUSTER]["voters"]
    assert {f"controller-{number}.example.com:9093" for number in (1, 2, 3)} <= set(known)


def test_controllers_that_are_deleted_have_no_other_id_without_one_in_the_inventory(tmp_path):
    """The way back is killed after that, and goes on; so it is with hosts that are silent."""
    without = {name: {"kafka_broker_id": None} for name in CONTROLLERS}
    document = inventory({"all": {"children": {"controllers": {"hosts": without}}}})
    now = facts("migration migration migration")
    assert "quorum.changed" not in errors(judged(tmp_path, document, facts=now))
    silent = {"controller-2": {"facts": None, "unreachable": "no route"}}
    found = errors(judged(tmp_path, document, facts=now, raw=silent))
    assert "quorum.changed" not in found and found["host.unreachable"] == ["controller-2"]


EMPTY = {"kafka/log_dirs/0/meta": None, "kafka/log_dirs/0/partitions": 0}
# As a host is that has nothing of a broker.
NEW = {**EMPTY, "kafka/current": None, "kafka/answered": None, "kafka/release": None}


@pytest.mark.parametrize(
    ("zookeeper", "in_sync", "there"),
    [
        ((1, 2), (1, 2), {1, 2}),
        # it has left ZooKeeper; or is back and behind
        ((1,), (1, 2), {1, 2}),
        ((1, 2, 3), (1, 2), {1, 2, 3}),
        # nobody tells
        (None, (1, 2), {1, 2, 3}),
        ((1, 2), None, {1, 2, 3}),
    ],
)
def test_brokers_in_dual_write_name_one_that_is_gone(zookeeper, in_sync, there):
    """Their metadata have it for as long as nobody tells them otherwise, and its replacement would not begin."""
    ensemble = {"reachable": zookeeper is not None, "exists": zookeeper is not None}
    ensemble["brokers"] = [{"id": each, "endpoints": []} for each in zookeeper or ()]
    answer = {
        "reachable": True,
        "brokers": [{"id": each, "host": f"kafka-{each}", "port": 9092} for each in (1, 2, 3)],
        "in_sync": in_sync,
        "zookeeper": ensemble,
    }
    snapshot, _controller = snapshot_of(answer, remembers=True)
    assert set(snapshot.brokers) == there
    assert set(snapshot_of(answer)[0].brokers) == {1, 2, 3}


@pytest.mark.parametrize(
    ("phases", "controllers", "asks"),
    [
        ("zookeeper zookeeper zookeeper", "", False),
        ("migration zookeeper migration", "migration", True),
        ("kraft migration kraft", "migration", True),
        ("kraft kraft kraft", "migration", False),
        ("kraft kraft kraft", "kraft", False),
    ],
)
def test_zookeeper_is_asked_who_is_there_while_brokers_may_not_know(
    tmp_path, phases, controllers, asks
):
    now, members = facts(phases, controllers), []
    for raw in gather(inventory(), tmp_path)[0]:
        known = good_facts(read_member(raw)[0], [])
        for path, value in now.get(raw.name, {}).items():
            set_at(known, path, value)
        members.append(read_member(dataclasses.replace(raw, facts=known))[0])
    (cluster,) = World(tuple(members)).clusters
    asked = question(cluster, cluster.brokers, cluster.servers, {})
    assert ("zookeeper" in asked) == asks
    assert asked["quorum"] == (phases == "kraft kraft kraft")


def numbered():
    """The inventory with the ids that nothing on a new host tells."""
    hosts = {name: {"kafka_broker_id": number} for number, name in enumerate(BROKERS, 1)}
    return inventory({"all": {"children": {"kafka": {"hosts": hosts}}}})


def answering(*brokers):
    """What the cluster says of itself: these brokers are registered, and all three hold replicas."""
    there = {each: ((f"kafka-{each}.example.com", 9092),) for each in brokers}
    return {"cluster_id": ID, "brokers": there, "replicas": frozenset((1, 2, 3))}


def without_broker(now, lost):
    """Facts and raw members where kafka-3 has lost something: its disks, its host, or what is on the system's disk."""
    raw = {}
    now = {name: dict(each) for name, each in now.items()}
    if lost == "disks":
        now["kafka-3"].update(EMPTY)
    elif lost == "host":
        now["kafka-3"] = {**now["kafka-3"], **NEW}
    elif lost == "system":
        now["kafka-3"].update({"kafka/current": None, "kafka/release": None})
    else:
        raw = {"kafka-3": {"facts": None, "unreachable": "no route to host"}}
    return {"facts": now, "raw": raw, "snapshot": answering(1, 2)}


LOST = ("disks", "host", "system")
PHASES = (
    "zookeeper zookeeper zookeeper",
    "migration migration migration",
    "kraft migration migration",
    "migration migration kraft",
    "kraft kraft kraft",
)


@pytest.mark.parametrize("lost", [*LOST, "silent"])
@pytest.mark.parametrize("phases", PHASES)
def test_a_broker_that_is_lost_on_the_way_is_told_to_be_replaced(tmp_path, phases, lost):
    """There and back; what is said of it holds, and its remedy is one that is not refused in turn."""
    now = without_broker(facts(phases, "migration migration migration"), lost)
    verdict = judged(tmp_path, numbered(), **now)
    found = errors(verdict)
    if lost == "silent":
        assert found == {"host.unreachable": ["kafka-3"]}
        limited = {"kafka-3": {**now["raw"]["kafka-3"], "in_play": False}}
        verdict = judged(tmp_path, numbered(), **{**now, "raw": limited})
        assert errors(verdict) == {"migration.limited": ["kafka-3"]}
        assert "an empty one takes its name and address" in verdict.errors[0].remedy
        return
    assert found and all(hosts == ["kafka-3"] for hosts in found.values()), found
    assert all("playbooks/replace_broker.yml" in each.remedy for each in verdict.errors), found
    if lost == "disks" and phases.split()[-1] != "kraft":
        assert set(found) == {"directories.emptied"}


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize(
    ("phases", "own"),
    [
        *((each, None) for each in PHASES),
        ("kraft kraft migration", None),
        # the others have their turn still before them
        ("kraft zookeeper migration", None),
    ],
)
def test_a_broker_that_is_lost_on_the_way_is_replaced_where_it_was(tmp_path, phases, own, lost):
    """By its own configuration, else as far as the last of the others; in KRaft its directories are formatted."""
    now = without_broker(facts(phases, "migration migration migration"), lost)
    asked = {"migrates": False, "purpose": "keep", "replaced": 3}
    verdict = judged(tmp_path, numbered(), **asked, **now)
    assert errors(verdict) == {}
    first, second, third = phases.split()
    order = ("zookeeper", "migration", "kraft")
    wanted = third if lost == "disks" else min((first, second), key=order.index)
    known = verdict.result["migration"][CLUSTER]
    assert known["keeps"] == {
        **dict(zip(BROKERS, (first, second, wanted))),
        **dict.fromkeys(CONTROLLERS, "migration"),
    }
    storage = verdict.result["storage"][CLUSTER]
    assert storage["unformatted"] == ([] if lost == "system" else ["kafka-3"])
    assert (storage["cluster_id"], storage["joins"]) == (ID, False)
    assert verdict.result["quorums"]["kafka-3"]["static"]


def test_a_step_says_itself_how_far_a_node_is_to_be(tmp_path):
    now = facts("migration migration migration", "migration migration migration")
    assert judged(tmp_path, facts=now).result["migration"][CLUSTER]["keeps"] == {}


def test_the_only_broker_is_as_far_as_its_controllers(tmp_path):
    document = numbered()
    for name in ("kafka-2", "kafka-3"):
        del document["all"]["children"]["kafka"]["hosts"][name]
    for controllers, wanted in (
        ("migration " * 3, "migration"),
        ("kraft kraft migration", "kraft"),
    ):
        now = {
            name: each
            for name, each in facts("kraft", controllers).items()
            if name not in ("kafka-2", "kafka-3")
        }
        now["kafka-1"] = {**now["kafka-1"], **NEW}
        asked = {"migrates": False, "purpose": "keep", "replaced": 1, "snapshot": None}
        verdict = judged(tmp_path, document, facts=now, **asked)
        assert verdict.result["migration"][CLUSTER]["keeps"]["kafka-1"] == wanted


def test_what_is_no_broker_of_a_cluster_under_way_is_not_replaced(tmp_path):
    """A controller is for the migration to judge, as long as no broker tells who of the others keeps up; and an
    inventory of the other mode would leave the node behind."""
    now = facts("kraft kraft migration", "migration migration migration")
    asked = {"migrates": False, "purpose": "keep", "facts": now}
    for replaced in (3003, 77):
        found = errors(judged(tmp_path, replaced=replaced, snapshot=answering(1, 2, 3), **asked))
        assert "metadata.migrating" in found
    back = inventory({"all": {"vars": {"kafka_metadata": "zookeeper"}}})
    asked["facts"] = facts("migration migration migration")
    found = errors(judged(tmp_path, back, replaced=3, snapshot=answering(1, 2), **asked))
    assert "metadata.migrating" in found


@pytest.mark.parametrize(
    ("controllers", "wanted"),
    [
        ("migration migration migration", "migration"),
        # none gets ZooKeeper back where another one has left it, whatever its file says
        ("kraft migration migration", "kraft"),
        ("kraft kraft migration", "kraft"),
    ],
)
@pytest.mark.parametrize("host", [False, True])
def test_a_controller_that_is_lost_is_replaced_once_all_brokers_are_in_kraft(
    tmp_path, controllers, wanted, host
):
    """Before and after the last step has begun: an empty voter waits there until all others keep up."""
    now = facts("kraft kraft kraft", controllers)
    now["controller-3"].update(NEW if host else EMPTY)
    asked = {"migrates": False, "purpose": "keep", "replaced": 3003, "facts": now}
    snapshot = {**answering(1, 2, 3), "voters": frozenset((3001, 3002, 3003))}
    verdict = judged(tmp_path, snapshot=snapshot, **asked)
    if host and controllers.startswith("kraft kraft"):
        # nobody is under way any more, and the plan says so
        assert set(errors(verdict)) == {"metadata.mixed"}
        return
    assert errors(verdict) == {}
    assert verdict.result["migration"][CLUSTER]["keeps"]["controller-3"] == wanted
    assert verdict.result["storage"][CLUSTER]["unformatted"] == ["controller-3"]


def test_another_broker_that_is_lost_is_not_hidden_by_a_format(tmp_path):
    """It would look as one that has its disks."""
    now = facts("kraft kraft kraft", "migration migration migration")
    for name in ("kafka-2", "kafka-3"):
        now[name] = {**now[name], **EMPTY}
    asked = {"migrates": False, "purpose": "keep", "replaced": 3, "snapshot": answering(1)}
    verdict = judged(tmp_path, numbered(), facts=now, **asked)
    assert verdict.result["storage"][CLUSTER]["unformatted"] == ["kafka-3"]
    assert errors(verdict)["quorum.unformatted"] == ["kafka-2"]


LOGIN = {
    "mechanisms": ["SCRAM-SHA-512"],
    "inter_broker_user": "kafka",
    "inter_broker_password": "x",
}
INNER = {"name": "SECURE", "port": 9192, "protocol": "SASL_PLAINTEXT", "bind": "192.0.2.1"}


@pytest.mark.parametrize(
    ("brokers", "controllers", "check"),
    [
        ({}, {}, None),
        ({}, {"mechanisms": ["PLAIN"]}, "settings.not_uniform"),
        ({"mechanisms": ["SCRAM-SHA-512", "PLAIN"]}, {"mechanisms": ["SCRAM-SHA-512"]}, None),
        (
            {"mechanisms": ["SCRAM-SHA-512", "PLAIN"], "inter_broker_mechanism": "PLAIN"},
            {"mechanisms": ["SCRAM-SHA-512", "PLAIN"]},
            "settings.not_uniform",
        ),
        ({}, {"mechanisms": []}, "listeners.security"),
    ],
)
def test_controllers_log_in_at_brokers_as_these_do_among_themselves(
    tmp_path, brokers, controllers, check
):
    """Else they take the metadata over and say so in ZooKeeper, and no broker hears of a leader any more."""
    document = inventory(
        {
            "all": {
                "vars": {
                    "kafka_inter_broker_listener": "SECURE",
                    "kafka_listeners": [{**INNER, "advertised": "{{ ansible_host }}"}],
                    "kafka_client_security": {
                        "security_protocol": "SASL_PLAINTEXT",
                        "sasl_mechanism": "SCRAM-SHA-512",
                        "sasl_username": "kafka",
                        "sasl_password": "x",
                    },
                },
                "children": {
                    "kafka": {"vars": {"kafka_sasl": {**LOGIN, **brokers}}},
                    "controllers": {"vars": {"kafka_sasl": {**LOGIN, **controllers}}},
                },
            }
        }
    )
    verdict = judged(tmp_path, document)
    found = {
        each.check: set(each.subjects)
        for each in verdict.errors
        if each.setting.startswith("kafka_sasl")
    }
    assert found == ({check: set(CONTROLLERS)} if check else {})


DISKS = {"kafka": {"vars": {"kafka_log_dirs": ["/srv/a", "/srv/b"]}}}


def on_disks(now, had, **more):
    """The same, with brokers that have their records in these directories, the metadata in the first."""
    return {
        name: (
            {**each, "kafka/current": {**each["kafka/current"], "log.dirs": had}, **more}
            if name in BROKERS
            else each
        )
        for name, each in now.items()
    }


def test_a_disk_that_was_added_on_the_way_is_formatted(tmp_path):
    """Before its broker leaves ZooKeeper, where nobody formats anything: else it would not start as one of KRaft."""
    now = facts("migration migration kraft", "migration migration migration")
    now = on_disks(now, "/srv/a", **{"kafka/log_dirs/1/meta": None})
    verdict = judged(tmp_path, inventory({"all": {"children": DISKS}}), facts=now)
    assert errors(verdict) == {}
    assert verdict.result["storage"][CLUSTER]["unformatted"] == BROKERS


def test_the_metadata_stay_in_the_first_directory_on_the_way(tmp_path):
    """A broker that knows the controllers has them there, and KRaft starts nowhere with them in another one."""
    document = inventory({"all": {"children": DISKS}})
    both = {"kafka/log_dirs/1/meta": {"version": "0", "cluster.id": ID}}
    now = facts("migration zookeeper kraft", "migration migration migration")
    found = errors(judged(tmp_path, document, facts=on_disks(now, "/srv/b,/srv/a", **both)))
    assert found["directories.metadata"] == ["kafka-1", "kafka-3"]
    found = errors(judged(tmp_path, document, facts=on_disks(now, "/srv/a,/srv/b", **both)))
    assert "directories.metadata" not in found


def test_a_broker_that_was_never_there_after_the_last_step(tmp_path):
    now = facts("kraft kraft", "kraft kraft kraft")
    (found,) = [
        each
        for each in judged(tmp_path, facts=now).errors
        if each.check == "migration.not_installed"
    ]
    assert found.subjects == ("kafka-3",)
    assert found.remedy.startswith("take the ZooKeeper servers out of the inventory, then let it")


@pytest.mark.parametrize(("running", "quorate"), [((1, 2), True), ((2,), False), ((), False)])
def test_servers_outside_of_the_run_are_known_and_whether_enough_of_them_run(
    tmp_path, running, quorate
):
    done = facts("kraft kraft kraft", "kraft kraft kraft")
    for number in (1, 2, 3):
        done[f"zookeeper-{number}"]["zookeeper/current"] = {"clientPort": "2181"}
        done[f"zookeeper-{number}"]["zookeeper/started"] = {"alive": number in running}
    raw = {"zookeeper-3": {"in_play": False}}
    told_of = judged(tmp_path, facts=done, raw=raw).result["migration"][CLUSTER]
    assert told_of["servers"] == ["zookeeper-1", "zookeeper-2", "zookeeper-3"]
    assert (told_of["outside"], told_of["quorate"]) == (["zookeeper-3"], quorate)

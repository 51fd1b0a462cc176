# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers that come, go, and are replaced: what each playbook may do, and what every other one refuses."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.storage import (
    directory_id,
)
from tests.unit.plugins.module_utils.preflight.good_inventory import (
    FRESH_CLUSTER_ID,
    good,
    verdict_of,
)
from tests.unit.plugins.module_utils.preflight.test_metadata import (
    APART,
    APART_KNOWN,
    NODES,
    apart,
    begun,
    begun_apart,
    begun_static,
    group,
    kraft,
    told,
    variables,
)

CLUSTER = "orders-prod"
NEW = ["c-4", "c-5"]
EMPTY = {"kafka/log_dirs/0/meta": None, "kafka/log_dirs/0/quorum_state": False}


def five():
    """The inventory with two controllers more."""
    return apart(
        {
            "all": {
                "children": {
                    "controllers": {
                        "hosts": {name: {"ansible_host": f"{name}.example.com"} for name in NEW}
                    }
                }
            }
        }
    )


def begun_five():
    """Facts of the five, of which the nodes know all."""
    facts = begun_apart()
    places = ",".join(f"c-{number}.example.com:9093" for number in range(1, 6))
    for each in facts.values():
        each["kafka/current"]["controller.quorum.bootstrap.servers"] = places
    for number, name in enumerate(NEW, start=7):
        facts[name] = {
            **{key: value for key, value in facts["c-3"].items() if "meta" not in key},
            "kafka/log_dirs/0/meta": {
                **facts["c-3"]["kafka/log_dirs/0/meta"],
                "node.id": str(number),
                "directory.id": f"{number}AAAAAAAAAAAAAAAAAAAAA",
            },
        }
    return facts


def running(*voters, brokers=(1, 2, 3)):
    """What the cluster tells of itself."""
    return {
        "cluster_id": FRESH_CLUSTER_ID,
        "brokers": {node: ((f"kafka-{node}.example.com", 9092),) for node in brokers},
        "voters": frozenset(voters) or None,
    }


def changing(*leaving):
    """As scale_controllers.yml runs the preflight."""
    return {"voters_change": True, "leaving": set(leaving)}


def test_two_more_controllers_are_for_their_playbook_alone(tmp_path):
    asked = {"facts": begun_apart(), "snapshot": running(4, 5, 6)}
    refused = verdict_of(five(), tmp_path, **asked)
    assert told(refused) == {
        "quorum.changed": sorted([*NODES, *APART]),
        "quorum.other_voters": [*APART, *NEW],
        "quorum.unformatted": NEW,
    }
    lines = {each.check: each.remedy for each in refused.findings}
    assert "playbooks/scale_controllers.yml" in lines["quorum.changed"]
    assert "playbooks/scale_controllers.yml" in lines["quorum.other_voters"]
    assert "playbooks/scale_controllers.yml" in lines["quorum.unformatted"]

    verdict = verdict_of(five(), tmp_path, **asked, **changing())
    assert not told(verdict)
    storage, voters = verdict.result["storage"][CLUSTER], verdict.result["voters"][CLUSTER]
    assert storage["begun"] and storage["unformatted"] == NEW
    assert [(each["host"], each["id"]) for each in voters["stay"]] == [
        *(("c-1", 4), ("c-2", 5), ("c-3", 6), ("c-4", 7), ("c-5", 8)),
    ]
    assert voters["stay"][0]["directory_id"] and voters["stay"][3]["directory_id"] == ""
    assert voters["leave"] == [] and voters["now"] == [4, 5, 6]
    known = verdict.result["quorums"]["kafka-1"]["controllers"]
    assert len(known) == 5


@pytest.mark.parametrize(
    ("levels", "of"), [({"metadata.version": 21}, "3.9"), ({"metadata.version": 30}, "4.3")]
)
def test_what_joins_in_the_middle_of_an_upgrade_can_go_back_with_the_others(levels, of, tmp_path):
    """With the features of its own release it would never start with the older one again."""
    asked = {"snapshot": {**running(4, 5, 6), "features": levels}}
    verdict = verdict_of(five(), tmp_path, facts=begun_apart(), **asked, **changing())
    assert verdict.result["storage"][CLUSTER]["features_of"] == of
    # a new cluster has those of its release
    assert verdict_of(apart(), tmp_path).result["storage"][CLUSTER]["features_of"] == ""


def test_a_controller_that_joins_is_in_the_run(tmp_path):
    """Nobody would start the other one, and its vote would be waited for after the first one has joined."""
    asked = {"facts": begun_apart(), "snapshot": running(4, 5, 6), **changing()}
    limited = {name: {"in_play": False} for name in [*NODES, *APART, "c-5"]}
    found = told(verdict_of(five(), tmp_path, raw=limited, **asked))
    assert found["quorum.left_out"] == ["c-5"]
    # who votes already may be elsewhere
    asked["snapshot"] = running(4, 5, 6, 8)
    asked["facts"] = {**begun_apart(), "c-5": begun_five()["c-5"]}
    found = told(verdict_of(five(), tmp_path, raw=limited, **asked))
    assert "quorum.left_out" not in found


@pytest.mark.parametrize(
    ("alive", "voters", "changed"),
    [
        (False, (4, 5, 6, 7), []),
        # it runs, or votes, or nobody knows: then it has moved behind somebody's back
        (True, (4, 5, 6, 7), ["c-5"]),
        (False, (4, 5, 6, 7, 8), ["c-5"]),
        (False, (), ["c-5"]),
    ],
)
def test_a_controller_that_has_left_may_join_again_after_others_have_gone(
    alive, voters, changed, tmp_path
):
    """It knows controllers that the inventory does not have any more."""
    facts = begun_five()
    known = facts["c-5"]["kafka/current"]
    facts["c-5"]["kafka/current"] = {
        **known,
        "controller.quorum.bootstrap.servers": f"{APART_KNOWN},c-9.example.com:9093",
    }
    facts["c-5"]["kafka/started/alive"] = alive
    asked = {"facts": facts, "snapshot": running(*voters), **changing()}
    found = told(verdict_of(five(), tmp_path, **asked))
    assert found.get("quorum.changed", []) == changed


def test_a_run_that_was_killed_half_way_is_gone_on_with(tmp_path):
    """One of them votes, and one node knows it."""
    facts = begun_apart()
    five_known = begun_five()
    facts["kafka-1"] = five_known["kafka-1"]
    facts["c-4"] = five_known["c-4"]
    asked = {"facts": facts, "snapshot": running(4, 5, 6, 7)}
    assert set(told(verdict_of(five(), tmp_path, **asked))) >= {"quorum.other_voters"}
    assert not told(verdict_of(five(), tmp_path, **asked, **changing()))


def test_an_empty_disk_of_a_voter_is_not_a_new_controller(tmp_path):
    facts = {**begun_apart(c_3=EMPTY)}
    asked = {"facts": facts, "snapshot": running(4, 5, 6), **changing()}
    assert told(verdict_of(five(), tmp_path, **asked)) == {"quorum.unformatted": ["c-3"]}
    # where the quorum does not answer nobody knows who votes
    asked["snapshot"] = running()
    verdict = verdict_of(five(), tmp_path, **asked)
    assert told(verdict) == {"quorum.unformatted": ["c-3", *NEW]}
    assert verdict.result["voters"][CLUSTER]["now"] == []


def test_a_voter_has_the_directory_that_the_quorum_knows(tmp_path):
    """Formatted anew it follows without a vote, and what the leader tells of it is of the disk that is gone."""
    own = {node: directory_id(FRESH_CLUSTER_ID, node) for node in (4, 5, 6)}
    asked = {"facts": begun_apart()}
    snapshot = {**running(4, 5, 6), "voter_directories": own}
    assert not told(verdict_of(apart(), tmp_path, snapshot=snapshot, **asked))
    snapshot = {**running(4, 5, 6), "voter_directories": {**own, 5: "another"}}
    verdict = verdict_of(apart(), tmp_path, snapshot=snapshot, **asked)
    assert told(verdict) == {"voters.other_directory": ["c-2"]}
    (refusal,) = verdict.findings
    assert "votes with directory another, and its disk has " + own[5] in refusal.reason
    assert "replace_broker.yml -e broker=5" in refusal.remedy
    # who is being replaced gets a new vote; a static quorum knows of no directories
    assert not told(verdict_of(apart(), tmp_path, snapshot=snapshot, replaced=5, **asked))
    snapshot = {**running(4, 5, 6), "voter_directories": {}}
    assert not told(verdict_of(apart(), tmp_path, snapshot=snapshot, **asked))


@pytest.mark.parametrize("static", [False, True])
def test_a_controller_without_its_first_directory_has_lost_its_vote_whatever_the_others_have(
    static, tmp_path
):
    """It keeps the metadata in the first one alone: formatted anew it would have another id, and no vote."""
    disks = {"kafka_log_dirs": ["/data/1/kafka", "/data/2/kafka"]}
    groups = {"controllers": {"hosts": {"c-3": disks}}, "kafka": {"hosts": {"kafka-1": disks}}}
    document = apart({"all": {"children": groups}})
    facts = begun_static() if static else begun_apart()
    for name in ("c-3", "kafka-1"):
        facts[name]["kafka/log_dirs/1/meta"] = facts[name]["kafka/log_dirs/0/meta"]
        facts[name]["kafka/log_dirs/1/exists"] = True
    asked = {"facts": facts, "snapshot": running(4, 5, 6)}
    assert not told(verdict_of(document, tmp_path, **asked))
    # a broker is known by any of its directories
    facts["kafka-1"].update(EMPTY)
    facts["c-3"].update(EMPTY)
    found = told(verdict_of(document, tmp_path, **asked))
    assert found["quorum.unformatted"] == ["c-3"]


def test_a_broker_that_has_lost_its_disk_is_named_by_its_id(tmp_path):
    facts = begun_apart(kafka_1=EMPTY)
    facts["kafka-1"]["kafka/answered"] = {"node.id": "1", "process.roles": "broker"}
    verdict = verdict_of(apart(), tmp_path, facts=facts, snapshot=running(4, 5, 6))
    (lost,) = [each for each in verdict.findings if each.check == "directories.emptied"]
    assert "broker 1 ran here" in lost.reason


def test_two_controllers_leave(tmp_path):
    asked = {"facts": begun_five(), "snapshot": running(4, 5, 6, 7, 8)}
    assert not told(verdict_of(five(), tmp_path, **asked))
    verdict = verdict_of(five(), tmp_path, **asked, **changing(*NEW))
    assert not told(verdict)
    voters = verdict.result["voters"][CLUSTER]
    assert [each["host"] for each in voters["leave"]] == NEW
    assert [each["host"] for each in voters["stay"]] == APART
    assert len(verdict.result["quorums"]["kafka-1"]["controllers"]) == 3
    # out of the inventory too early
    found = verdict_of(apart(), tmp_path, facts=begun_apart(), snapshot=running(4, 5, 6, 7, 8))
    assert set(told(found)) == {"quorum.other_voters"}
    (early,) = [each for each in found.findings if each.check == "quorum.other_voters"]
    assert "back into the inventory" in early.remedy and "controllers_leave" in early.remedy
    found = verdict_of(
        apart(), tmp_path, facts=begun_apart(), snapshot=running(4, 5, 6, 7, 8), **changing()
    )
    assert set(told(found)) == {"quorum.other_voters"}


@pytest.mark.parametrize("where", ["wanted", "in force"])
def test_who_leaves_does_not_come_back_by_itself(where, tmp_path):
    """It asks for a vote again while it runs, and is stopped as a voter."""
    key, document, facts = "controller.quorum.auto.join.enable", five(), begun_five()
    if where == "wanted":
        document["all"]["vars"]["kafka_config"] = {key: True}
    else:
        facts["c-5"]["kafka/current"] = {**facts["c-5"]["kafka/current"], key: "true"}
    asked = {"facts": facts, "snapshot": running(4, 5, 6, 7, 8)}
    found = told(verdict_of(document, tmp_path, **asked, **changing(*NEW)))
    assert found == {"quorum.votes_again": NEW if where == "wanted" else ["c-5"]}
    # who stays may have it
    assert not told(verdict_of(document, tmp_path, **asked, **changing()))


def test_a_host_that_is_gone_may_leave(tmp_path):
    gone = {"unreachable": "no route", "facts": None}
    asked = {
        "facts": {name: each for name, each in begun_five().items() if name != "c-5"},
        "snapshot": running(4, 5, 6, 7, 8),
        "raw": {"c-5": gone},
    }
    verdict = verdict_of(five(), tmp_path, **asked, **changing(*NEW))
    assert not verdict.errors, verdict.errors
    assert "host.unreachable" in {
        each.check for each in verdict_of(five(), tmp_path, **asked).errors
    }


# who leaves, the id
NOT_LEAVING = [
    (["c-5"], {"quorum.size": ["c-1", "c-2", "c-3", "c-4"]}),
    (["c-4", "c-9"], {"quorum.size", "quorum.unknown_leaver"}),
    (["c-4", "c-5", "kafka-1"], {"quorum.unknown_leaver"}),
]


@pytest.mark.parametrize("leaving, expected", NOT_LEAVING)
def test_who_may_not_leave(leaving, expected, tmp_path):
    asked = {"facts": begun_five(), "snapshot": running(4, 5, 6, 7, 8)}
    found = told(verdict_of(five(), tmp_path, **asked, **changing(*leaving)))
    assert (found if isinstance(expected, dict) else set(found)) == expected


def test_a_node_that_is_a_broker_too_joins_and_leaves_as_both(tmp_path):
    asked = {"facts": begun(), "snapshot": running(1, 2, 3)}
    verdict = verdict_of(kraft(), tmp_path, **asked, **changing("kafka-2", "kafka-3"))
    assert set(told(verdict)) == {"quorum.single", "replication.exceeds_brokers"}
    leave = verdict.result["voters"][CLUSTER]["leave"]
    assert [(each["host"], each["broker"]) for each in leave] == [
        ("kafka-2", True),
        ("kafka-3", True),
    ]
    assert verdict.result["voters"][CLUSTER]["brokers_leave"] == [2, 3]
    # as few brokers are waited for, asked, and counted on
    assert [each["host"] for each in verdict.result["brokers"][CLUSTER]] == ["kafka-1"]
    assert [each["host"] for each in verdict.result["nodes"][CLUSTER]] == NODES
    # outside of --limit it would be emptied, lose its vote, and go on as a broker
    limited = {**asked, "raw": {"kafka-3": {"in_play": False}}, **changing("kafka-2", "kafka-3")}
    assert told(verdict_of(kraft(), tmp_path, **limited))["quorum.left_out"] == ["kafka-3"]
    everybody = verdict_of(kraft(), tmp_path, **asked, **changing(*NODES))
    assert "quorum.size" in told(everybody)
    both = {"hosts": {name: {"ansible_host": f"{name}.example.com"} for name in NEW}}
    more = kraft({"all": {"children": {"kafka": both, "controllers": both}}})
    verdict = verdict_of(more, tmp_path, **asked, **changing())
    assert told(verdict) == {}
    assert len(verdict.result["brokers"][CLUSTER]) == 5


def down(facts):
    """The same facts of nodes that do not run."""
    return {name: {**of, "kafka/started/alive": False} for name, of in facts.items()}


def half_way():
    """Facts of nodes of which some know five controllers and the others three, as a killed run leaves them."""
    knows_five = begun_five()
    return down({**begun_apart(), **{name: knows_five[name] for name in ("kafka-1", *NEW)}})


@pytest.mark.parametrize(
    ("wish", "facts", "warned"),
    [
        # killed on the way from three to five, and all has stopped since
        (five, half_way, "quorum.changed"),
        # written down, and nothing was run yet
        (five, lambda: down(begun_apart()), "quorum.changed"),
        # one too many is written down
        (
            lambda: kraft(group("controllers", ["kafka-1", "kafka-2"])),
            lambda: down(begun()),
            "quorum.size",
        ),
        (
            lambda: apart(
                {
                    "all": {
                        "children": {
                            "controllers": {"hosts": {"c-9": {"kafka_metadata": "zookeeper"}}}
                        }
                    }
                }
            ),
            lambda: down(begun_apart()),
            "quorum.separate",
        ),
    ],
)
def test_what_ran_last_starts_whatever_the_inventory_makes_of_the_controllers(
    wish, facts, warned, tmp_path
):
    """Nothing of it comes into effect by a start, and no playbook that changes voters works on what is down."""
    verdict = verdict_of(wish(), tmp_path, facts=facts(), purpose="start")
    assert not verdict.errors
    (told_so,) = {each.level for each in verdict.findings if each.check == warned}
    assert told_so == "warning"
    assert told(verdict_of(wish(), tmp_path, facts=facts()))[warned]


def test_a_start_beside_voters_that_the_inventory_does_not_have_is_not_refused(tmp_path):
    asked = {"facts": begun_apart(), "snapshot": running(4, 5, 6, 9), "purpose": "start"}
    verdict = verdict_of(apart(), tmp_path, **asked)
    assert not verdict.errors
    assert "quorum.other_voters" in {each.check for each in verdict.findings}


@pytest.mark.parametrize(
    ("wish", "facts", "more", "settled"),
    [
        (apart, begun_apart, {}, True),
        (apart, begun_static, {}, True),
        (five, begun_five, {}, True),
        (five, half_way, {}, False),
        (five, half_way, changing(), False),
        (five, begun_five, changing(*NEW), False),
        # nobody knows others
        (apart, dict, {}, True),
    ],
)
def test_the_controllers_of_the_inventory_vote_where_all_nodes_know_them(
    wish, facts, more, settled, tmp_path
):
    """Else nobody may wait for one that was started to have its vote."""
    verdict = verdict_of(wish(), tmp_path, facts=facts(), **more)
    assert verdict.result["voters"][CLUSTER]["settled"] is settled


def test_a_node_does_not_become_another_one(tmp_path):
    asked = {"facts": begun(), "snapshot": running(1, 2, 3)}
    found = told(
        verdict_of(kraft(group("controllers", ["kafka-1"])), tmp_path, **asked, **changing())
    )
    assert found["quorum.changed"] == NODES


def test_a_static_quorum_and_a_cluster_without_one(tmp_path):
    asked = {"facts": begun_static(), "snapshot": running(4, 5, 6)}
    found = told(verdict_of(five(), tmp_path, **asked, **changing()))
    assert found["quorum.static"] == [*APART, *NEW]
    assert told(verdict_of(good(), tmp_path, **changing()))["quorum.no_controllers"]
    assert told(verdict_of(good(), tmp_path, becomes_dynamic=True))["quorum.no_controllers"]


def test_a_static_quorum_becomes_a_dynamic_one(tmp_path):
    facts = begun_static()
    asked = {"snapshot": running(4, 5, 6), "becomes_dynamic": True}
    verdict = verdict_of(apart(), tmp_path, facts=facts, **asked)
    assert not told(verdict) and not verdict.result["quorums"]["kafka-1"]["static"]
    # killed half way: some nodes know it already, and no other playbook takes that back
    facts = {**facts, "c-1": begun_apart()["c-1"], "kafka-1": begun_apart()["kafka-1"]}
    assert not told(verdict_of(apart(), tmp_path, facts=facts, **asked))
    refused = verdict_of(apart(), tmp_path, facts=facts, snapshot=running(4, 5, 6))
    assert told(refused) == {"quorum.changed": ["c-1", "kafka-1"]}
    assert "playbooks/dynamic_quorum.yml" in refused.findings[0].remedy
    # a release that only says so
    older = apart(variables(kafka_version="3.9.2"))
    found = told(verdict_of(older, tmp_path, facts=begun_static(), **asked))
    assert found["quorum.stays_static"] == [*APART, *NODES]
    assert "quorum.stays_static" not in told(
        verdict_of(older, tmp_path, facts=begun_apart(), **asked)
    )
    # one that is dynamic already
    assert not told(verdict_of(apart(), tmp_path, facts=begun_apart(), **asked))


def test_a_new_broker_joins_a_cluster_that_answers(tmp_path):
    """Its disks are empty, as they should be; where it holds replicas, or nobody knows, they should not."""
    more = apart(
        {"all": {"children": {"kafka": {"hosts": {"kafka-4": {"ansible_host": "kafka-4.x.com"}}}}}}
    )
    asked = {"facts": begun_apart(), "snapshot": running(4, 5, 6)}
    verdict = verdict_of(more, tmp_path, **asked)
    assert not told(verdict)
    storage = verdict.result["storage"][CLUSTER]
    assert storage["begun"] and storage["unformatted"] == ["kafka-4"]
    number = verdict.result["ids"]["kafka-4"]["broker_id"]
    assert told(verdict_of(more, tmp_path, facts=begun_apart())) == {
        "quorum.unformatted": ["kafka-4"]
    }
    asked["snapshot"]["replicas"] = frozenset((1, 2, 3))
    lost = begun_apart(kafka_3=EMPTY)
    found = told(verdict_of(apart(), tmp_path, facts=lost, snapshot=asked["snapshot"]))
    assert found["quorum.unformatted"] == ["kafka-3"] and number == 7


def test_a_controller_whose_disk_was_replaced(tmp_path):
    facts = begun_apart(c_2=EMPTY)
    refused = verdict_of(apart(), tmp_path, facts=facts, snapshot=running(4, 5, 6))
    assert told(refused) == {"quorum.unformatted": ["c-2"]}
    assert "replace_broker.yml" in refused.findings[0].remedy
    asked = {"facts": facts, "purpose": "keep", "replaced": 5}
    verdict = verdict_of(apart(), tmp_path, **asked, snapshot=running(4, 5, 6))
    assert not verdict.errors and verdict.result["storage"][CLUSTER]["begun"]
    # killed between the removal of its vote and the new one
    formatted = {"facts": begun_apart(), "snapshot": running(4, 6)}
    assert not told(verdict_of(apart(), tmp_path, **formatted, replaced=5))
    assert told(verdict_of(apart(), tmp_path, **formatted))
    assert told(verdict_of(apart(), tmp_path, **formatted, replaced=4))


def replacing(node):
    """As replace_broker.yml runs the preflight."""
    return {"purpose": "keep", "replaced": node, "snapshot": running(4, 5, 6)}


@pytest.mark.parametrize("begun_so", [begun_apart, begun_static])
def test_no_other_disk_is_empty_where_one_is_replaced(begun_so, tmp_path):
    """It would be formatted, and the next run would start it as if it had been new."""
    facts = begun_so()
    for name in ("c-2", "c-3"):
        facts[name].update(EMPTY)
    verdict = verdict_of(apart(), tmp_path, facts=facts, **replacing(5))
    assert [(each.check, each.subjects) for each in verdict.errors] == [
        ("quorum.unformatted", ("c-3",))
    ]
    assert told(verdict) == {"quorum.unformatted": ["c-2", "c-3"]}
    # a run that only looks formats nothing
    looked = {**replacing(None), "facts": facts}
    assert not told(verdict_of(apart(), tmp_path, **looked))


def test_a_voter_of_a_static_quorum_whose_disk_was_replaced(tmp_path):
    """Kafka knows it by its id alone, and formats it by no flag of its own."""
    facts = begun_static()
    facts["c-2"].update(EMPTY)
    verdict = verdict_of(apart(), tmp_path, facts=facts, **replacing(5))
    assert not verdict.errors and told(verdict) == {"quorum.unformatted": ["c-2"]}
    storage = verdict.result["storage"][CLUSTER]
    assert storage["unformatted"] == ["c-2"] and not storage["joins"]
    assert verdict.result["quorums"]["c-2"]["static"]


ANSWERED = {"kafka/answered": {"node.id": "1", "process.roles": "broker"}}
# facts that are laid over, of the run; who is refused
LOST_VOTES = [
    (begun_static, ANSWERED, {}, ["c-2"]),
    (begun_static, ANSWERED, {"purpose": "start"}, []),
    (begun_static, ANSWERED, {"purpose": "keep"}, None),
    (begun_static, ANSWERED, replacing(5), []),
    (begun_static, ANSWERED, replacing(4), ["c-2"]),
    # a first installation that was killed between two starts
    (begun_static, {}, {}, None),
    # a migration that was killed there
    (begun_static, {"kafka/answered": {"broker.id": "1"}}, {"purpose": "start"}, None),
    # there its directory has no vote
    (begun_apart, ANSWERED, {}, None),
]


@pytest.mark.parametrize(("begun_so", "laid_over", "run", "refused"), LOST_VOTES)
def test_a_voter_that_was_formatted_and_has_not_run_since(
    begun_so, laid_over, run, refused, tmp_path
):
    """So ends a replacement that was killed before its start; `refused` None: not a word of it."""
    facts = begun_so()
    facts["c-2"]["kafka/log_dirs/0/quorum_state"] = False
    facts["kafka-1"].update(laid_over)
    # its port is open before there is a quorum
    facts["c-1"].update(ANSWERED)
    verdict = verdict_of(apart(), tmp_path, facts=facts, **run)
    assert told(verdict) == ({} if refused is None else {"quorum.lost_vote": ["c-2"]})
    assert [name for each in verdict.errors for name in each.subjects] == (refused or [])
    if run.get("purpose") == "start" and refused is not None:
        assert "quorum.lost_vote" in verdict.result["left"]["c-2"]


# nodes, what is in force there, what the inventory has, of the run; who is refused
BROKERS = [f"kafka-{number}" for number in (1, 2, 3)]
MOVED = [
    # a new disk before the others: the metadata are behind the first directory, and Kafka does not start
    (BROKERS, "/data", ["/new", "/data"], {}, BROKERS),
    (BROKERS, "/data,/more", ["/more", "/data"], {}, BROKERS),
    (BROKERS, "/data", ["/data/", "/new"], {}, []),
    # what has no vote fetches them anew
    (BROKERS, "/data,/more", ["/more"], {}, []),
    # a voter would begin without its log
    (APART, "/data,/more", ["/more"], {}, APART),
    (APART, "/data", ["/new"], {}, APART),
    # who starts nothing by it says nothing, and what was in effect starts as it was
    (APART, "/data", ["/new"], {"purpose": "keep"}, []),
    (APART, "/data", ["/new"], {"purpose": "start"}, []),
    (["c-2"], "/data", ["/new"], replacing(5), []),
]


def test_the_metadata_may_have_another_name(tmp_path):
    """A link, or a directory that somebody has moved, with all that is in it."""
    facts = begun_apart()
    for each in facts.values():
        each["kafka/current"] = {**each["kafka/current"], "log.dirs": "/former"}
    assert not told(verdict_of(apart(), tmp_path, facts=facts, snapshot=running(4, 5, 6)))


@pytest.mark.parametrize(
    ("begun_so", "snapshot"),
    [(begun_apart, None), (begun_apart, running(4, 5, 6)), (begun_static, running(4, 5, 6))],
    ids=["down", "runs", "static"],
)
@pytest.mark.parametrize(("nodes", "force", "wanted", "run", "refused"), MOVED)
def test_the_metadata_stay_where_they_are(
    nodes, force, wanted, run, refused, begun_so, snapshot, tmp_path
):
    """And nobody is told to replace a node whose disk is there."""
    facts, own = begun_so(), {}
    for name in nodes:
        meta = facts[name].pop("kafka/log_dirs/0/meta")
        facts[name] = {key: value for key, value in facts[name].items() if "log_dirs" not in key}
        facts[name]["kafka/current"] = {**facts[name]["kafka/current"], "log.dirs": force}
        for place, path in enumerate(wanted):
            if path.rstrip("/") in force.split(","):
                # each has an id of its own
                each = {**meta, "directory.id": f"{place}{path.strip('/')}".ljust(22, "A")}
                facts[name][f"kafka/log_dirs/{place}/meta"] = each
                facts[name][f"kafka/log_dirs/{place}/exists"] = True
        own[name] = {"kafka_log_dirs": wanted}
    overlay = {
        "all": {
            "children": {
                group: {"hosts": {name: own[name] for name in own if name.startswith(first)}}
                for group, first in (("kafka", "kafka"), ("controllers", "c-"))
            }
        }
    }
    if snapshot and begun_so is begun_apart:
        snapshot = {**snapshot, "voter_directories": {4: "x" * 22, 5: "x" * 22, 6: "x" * 22}}
        for number in {4, 5, 6} - {int(name[2:]) + 3 for name in nodes if name in APART}:
            del snapshot["voter_directories"][number]
    asked = {"facts": facts, "snapshot": snapshot, **run}
    found = told(verdict_of(apart(overlay), tmp_path, **asked))
    assert found == ({"directories.metadata": refused} if refused else {})


@pytest.mark.parametrize(
    ("change", "newcomer"),
    [({"voters_change": True, "leaving": set()}, "c-9"), ({}, "c-9"), ({}, "kafka-4")],
)
def test_a_newcomer_does_not_get_the_id_of_a_voter_that_has_no_host(change, newcomer, tmp_path):
    """Taken out of the inventory before it has left: by its id it is named, and not by that of the new one."""
    facts = begun_apart()
    del facts["c-3"]
    place = "controllers" if newcomer == "c-9" else "kafka"
    # behind the former address, so that the nodes know where it is
    own = {newcomer: {"ansible_host": "c-3.example.com" if place == "controllers" else "new.x.com"}}
    document = apart({"all": {"children": {place: {"hosts": own}}}})
    del document["all"]["children"]["controllers"]["hosts"]["c-3"]
    asked = {"facts": facts, "snapshot": running(4, 5, 6)}
    verdict = verdict_of(document, tmp_path, **asked, **change)
    assert verdict.result["ids"][newcomer]["broker_id"] == 7
    (other,) = [each for each in verdict.findings if each.check == "quorum.other_voters"]
    assert "put the host of 6 back into the inventory" in other.remedy
    heir = "where c-9, which has no id yet, takes its place, set kafka_broker_id: 6"
    assert (heir in other.remedy) == (newcomer == "c-9"), other.remedy


def test_a_voter_whose_host_is_silent_is_not_taken_for_a_stranger(tmp_path):
    """A table of the status would name two of them."""
    facts = begun_apart()
    raw = {"c-3": {"unreachable": "no route", "facts": None}}
    asked = {"facts": facts, "snapshot": running(4, 5, 6), "raw": raw}
    verdict = verdict_of(apart(), tmp_path, **asked)
    assert verdict.result["ids"]["c-3"]["broker_id"] == 6
    assert "quorum.other_voters" not in told(verdict)


@pytest.mark.parametrize(
    ("bind", "address", "resolved", "refused"),
    [
        ("", "c-1.example.com", "192.0.2.99", False),
        ("192.0.2.99", "c-1.example.com", "192.0.2.99", False),
        ("127.0.0.1", "c-1.example.com", "192.0.2.99", True),
        ("127.0.0.1", "192.0.2.99", "", True),
        # another interface of the host
        ("10.0.0.1", "c-1.example.com", "192.0.2.99", True),
        # something leads there that this host knows nothing of
        ("10.0.0.1", "c-1.example.com", "203.0.113.1", False),
        ("10.0.0.1", "203.0.113.1", "", False),
        # another finding
        ("127.0.0.1", "c-1.example.com", "", False),
    ],
)
def test_a_controller_listens_where_the_others_seek_it(bind, address, resolved, refused, tmp_path):
    """A roll would end the quorum: who restarts fetches from the leader, and the last to restart is the leader."""
    own = {"c-1": {"kafka_controller_bind": bind, "kafka_address": address}}
    wish = apart({"all": {"children": {"controllers": {"hosts": own}}}})
    facts = begun_apart()
    answer = {"addresses": [resolved] if resolved else [], "error": None if resolved else "no"}
    for each in facts.values():
        each["names/c-1.example.com"] = answer
        # a quorum that runs is sought where it was
        each["kafka/current"]["controller.quorum.bootstrap.servers"] = APART_KNOWN.replace(
            "c-1.example.com", address
        )
    facts["c-1"]["addresses"] = ["127.0.0.1", "192.0.2.99", "10.0.0.1"]
    verdict = verdict_of(wish, tmp_path, facts=facts, snapshot=running(4, 5, 6))
    found = {each.check: each for each in verdict.errors}
    assert ("listeners.bind" in found) is refused
    if refused:
        assert found["listeners.bind"].setting == "kafka_controller_bind"
        assert address in found["listeners.bind"].reason


@pytest.mark.parametrize(
    ("voters", "refused"),
    [
        # who has left and is still known has no vote
        ((4, 5, 6), False),
        # it votes
        ((4, 5, 6, 7), True),
        # nobody tells; start.yml starts what is down
        ((), True),
    ],
)
def test_what_was_taken_out_of_the_inventory_too_early_is_no_circle(voters, refused, tmp_path):
    """From five to three: killed when votes and services were gone, and before all nodes had learned it."""
    facts = {name: of for name, of in begun_five().items() if name not in NEW}
    facts["c-1"] = begun_apart()["c-1"]
    asked = {"facts": facts, "snapshot": running(*voters)}
    verdict = verdict_of(apart(), tmp_path, **asked, **changing())
    assert ("quorum.changed" in told(verdict)) is refused
    for each in verdict.errors:
        if each.check == "quorum.changed":
            assert "put the host of c-4.example.com:9093, c-5.example.com:9093 back" in each.remedy
    # the others lead to the playbook that goes on with it
    first, *_rest = [
        each
        for each in verdict_of(apart(), tmp_path, **asked).errors
        if each.check == "quorum.changed"
    ]
    assert "playbooks/scale_controllers.yml" in first.remedy


def test_a_controller_that_has_moved_is_not_taken_for_one_that_has_left(tmp_path):
    moved = apart(
        {"all": {"children": {"controllers": {"hosts": {"c-1": {"ansible_host": "x.com"}}}}}}
    )
    asked = {"facts": begun_apart(), "snapshot": running(4, 5, 6)}
    assert "quorum.changed" in told(verdict_of(moved, tmp_path, **asked, **changing()))


def test_a_node_of_another_part_is_told_to_go_back_to_it(tmp_path):
    """The playbook that refuses it is not the way."""
    asked = {"facts": begun(), "snapshot": running(1, 2, 3)}
    wish = kraft(group("controllers", ["kafka-1"]))
    remedies = {
        each.subjects: each.remedy
        for each in verdict_of(wish, tmp_path, **asked, **changing()).errors
        if each.check == "quorum.changed"
    }
    assert any("the groups that it was in" in each for each in remedies.values()), remedies


@pytest.mark.parametrize("asked", [{}, {"purpose": "keep", "replaced": 6}])
def test_a_lost_disk_of_a_cluster_that_is_down_leads_to_a_start_of_the_others_first(
    asked, tmp_path
):
    """The playbook that replaces a node is refused itself while nobody answers."""
    facts = down(begun_apart(c_3=EMPTY))
    (found,) = verdict_of(apart(), tmp_path, facts=facts, **asked).errors
    assert found.check == "quorum.unformatted"
    assert found.remedy.index("playbooks/start.yml") < found.remedy.index("replace_broker.yml")
    assert not verdict_of(apart(), tmp_path, facts=facts, purpose="start").errors
    running_now = {"facts": begun_apart(c_3=EMPTY), "snapshot": running(4, 5, 6)}
    (found,) = verdict_of(apart(), tmp_path, **running_now).errors
    assert "playbooks/start.yml" not in found.remedy


@pytest.mark.parametrize(
    ("leave", "refused"),
    [
        (["c-1", "c-2", "c-3"], True),
        (["c-1", "c-2"], False),
    ],
)
def test_of_the_controllers_that_a_node_knows_one_stays(leave, refused, tmp_path):
    """Brokers would have no way to the quorum between the end of the former ones and their own turn."""
    hosts = {name: {"ansible_host": f"{name}.example.com"} for name in ("c-4", "c-5", "c-6")}
    new = dict(list(hosts.items())[: len(leave)])
    wish = apart({"all": {"children": {"controllers": {"hosts": new}}}})
    asked = {"facts": begun_apart(), "snapshot": running(4, 5, 6)}
    found = told(verdict_of(wish, tmp_path, **asked, **changing(*leave)))
    assert found == ({"quorum.exchanged": NODES} if refused else {})
    # first two come, and all nodes know them
    both = apart({"all": {"children": {"controllers": {"hosts": dict(list(hosts.items())[:2])}}}})
    assert not told(verdict_of(both, tmp_path, **asked, **changing()))
    facts, everybody = begun_five(), {"controllers": {"hosts": hosts}}
    asked = {"facts": facts, "snapshot": running(4, 5, 6, 7, 8)}
    wish = apart({"all": {"children": everybody}})
    assert not told(verdict_of(wish, tmp_path, **asked, **changing("c-1", "c-2", "c-3")))

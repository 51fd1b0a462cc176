# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left of a migration, by tables: whatever a run was killed at, and what must not be done."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.migration.plan import (
    BACK,
    DUAL_WRITE_END,
    FINISH,
    FORWARD,
    REMOVE,
    Node,
    Situation,
    Znodes,
    awaited,
    not_written,
    phases_told,
    plan,
    situation_of,
    to_dict,
)

BEFORE = Znodes(controller=2)
HELD = Znodes(controller=11, epoch=3, offset=400, migration=True)
FREE = Znodes(controller=1, migration=True)


def situation(brokers, controllers, znodes=BEFORE, servers=("z1", "z2", "z3")):
    """A cluster; a word a node: its phase, `-` behind it where it is down; of controllers `phase/STATE`.

    `!` behind a controller whose disk does not know what it has voted for.
    """
    nodes = []
    for number, word in enumerate(brokers.split(), 1):
        nodes.append(Node(f"b{number}", number, True, word.rstrip("-").strip("."), word[-1] != "-"))
    for number, word in enumerate(controllers.split(), 11):
        phase, _slash, state = word.rstrip("-!").partition("/")
        runs, knows = word[-1] not in "-!" and phase != ".", word[-1] != "!"
        nodes.append(Node(f"c{number}", number, False, phase.strip("."), runs, state, knows))
    return Situation("x", tuple(nodes), znodes, servers)


Z, M, K = ("zookeeper " * 3, "migration " * 3, "kraft " * 3)
PRE, DUAL = "migration/PRE_MIGRATION " * 3, "migration/MIGRATION " * 3
DOWN = "migration/MIGRATION- " * 3
POST = "kraft/POST_MIGRATION " * 3
NONE = ". . ."
ALL, CTRL, SERVERS = ["b1", "b2", "b3"], ["c11", "c12", "c13"], ["z1", "z2", "z3"]


@pytest.mark.parametrize(
    ("now", "steps"),
    [
        (situation(Z, NONE), {"controllers": CTRL, "enter": ALL, "await": [], "kraft": ALL}),
        # formatted, and killed before its first start
        (
            situation(Z, "migration/PRE_MIGRATION migration! ."),
            {"controllers": ["c12", "c13"], "enter": ALL, "await": [], "kraft": ALL},
        ),
        # killed while controllers start
        (
            situation(Z, "migration/PRE_MIGRATION . ."),
            {"controllers": ["c12", "c13"], "enter": ALL, "await": [], "kraft": ALL},
        ),
        (situation(Z, PRE), {"enter": ALL, "await": [], "kraft": ALL}),
        # killed in the middle of a turn: one is there, one is down
        (
            situation("migration migration- zookeeper", PRE),
            {"enter": ["b2", "b3"], "await": [], "kraft": ALL},
        ),
        (
            situation("migration zookeeper- zookeeper", PRE),
            {"enter": ["b2", "b3"], "await": [], "kraft": ALL},
        ),
        (situation(M, PRE), {"await": [], "kraft": ALL}),
        # two know in which epoch they are, and the third follows them
        (
            situation(M, "migration/PRE_MIGRATION migration/PRE_MIGRATION ."),
            {"controllers": ["c13"], "await": [], "kraft": ALL},
        ),
        (situation(M, DUAL, HELD), {"await": [], "kraft": ALL}),
        (situation("kraft migration migration", DUAL, HELD), {"await": [], "kraft": ["b2", "b3"]}),
        (situation("kraft kraft- migration", DUAL, HELD), {"await": [], "kraft": ["b2", "b3"]}),
        (
            situation("kraft migration- migration", DUAL, HELD),
            {"enter": ["b2"], "await": [], "kraft": ["b2", "b3"]},
        ),
        # all controllers were killed in dual-write
        (
            situation(M, "migration/MIGRATION- " * 3, HELD),
            {"controllers": CTRL, "await": [], "kraft": ALL},
        ),
        # its metadata are there, and the system's disk is a new one
        (
            situation(M, "migration/MIGRATION migration/MIGRATION /MIGRATION-", HELD),
            {"controllers": ["c13"], "await": [], "kraft": ALL},
        ),
        (
            situation(K, "kraft/POST_MIGRATION kraft/POST_MIGRATION /POST_MIGRATION-", HELD),
            {"end": ["c13"]},
        ),
        (situation(K, DUAL, HELD), {}),
        (situation(K, DUAL, None), {}),
        (situation("kraft kraft kraft-", DUAL, HELD), {"kraft": ["b3"]}),
        (situation(K, POST, HELD), {}),
        (
            situation(K, "kraft/MIGRATION- migration/MIGRATION migration/MIGRATION", HELD),
            {"controllers": ["c11"]},
        ),
        (
            situation(
                K, "kraft/POST_MIGRATION- migration/POST_MIGRATION migration/MIGRATION-", HELD
            ),
            {"controllers": ["c13"], "end": ["c11"]},
        ),
    ],
)
def test_forward_goes_on_where_the_cluster_is(now, steps):
    planned = to_dict(plan(now, FORWARD))
    assert planned["refused"] == [] and planned["steps"] == steps
    assert len(planned["lines"]) == len(steps)


@pytest.mark.parametrize(
    ("now", "steps", "after"),
    [
        (
            situation(Z, NONE),
            {"controllers": CTRL, "enter": ALL, "await": []},
            "theirs in ZooKeeper still",
        ),
        (situation(M, DUAL, HELD), {"await": []}, "theirs in ZooKeeper still"),
        # nothing of it is left, and the line above is not true any more
        (situation("kraft migration migration", DUAL, HELD), {"await": []}, "b1 in KRaft already"),
        (situation("kraft kraft kraft-", DUAL, HELD), {}, "b1, b2, b3 in KRaft already"),
    ],
)
def test_the_plan_that_is_shown_ends_where_the_run_ends(now, steps, after):
    planned = to_dict(plan(now, FORWARD, DUAL_WRITE_END))
    assert planned["refused"] == [] and planned["steps"] == steps
    assert len(planned["lines"]) == len(steps)
    assert after in " ".join(planned["after"])


@pytest.mark.parametrize(
    ("wish", "now", "check", "hosts"),
    [
        # the trap of the first night: partitions would be taken for strays
        (FORWARD, situation("kraft zookeeper zookeeper", PRE), "migration.left_behind", "b2, b3"),
        (
            FORWARD,
            situation("kraft migration zookeeper", DUAL, HELD),
            "migration.left_behind",
            "b3",
        ),
        (FORWARD, situation("kraft kraft migration", POST, HELD), "migration.left_behind", "b3"),
        (
            FORWARD,
            situation(M, "migration/POST_MIGRATION " * 3, HELD),
            "migration.left_behind",
            "b1, b2, b3",
        ),
        (FORWARD, situation(Z, NONE, None), "migration.no_zookeeper", "b1, b2, b3"),
        # somebody has deleted /controller, a broker is the controller, and the controllers have old metadata
        (FORWARD, situation(M, DUAL, FREE), "migration.half_back", "c11, c12, c13"),
        (FORWARD, situation(M, DUAL, Znodes()), "migration.half_back", "c11, c12, c13"),
        # its controllers are deleted: brokers that know them would never take new ones, which begin at a lower epoch
        (FORWARD, situation(M, NONE, FREE), "migration.half_back", "b1, b2, b3"),
        (
            FORWARD,
            situation("zookeeper migration migration", NONE),
            "migration.half_back",
            "b2, b3",
        ),
        (FORWARD, situation("zookeeper zookeeper migration-", NONE), "migration.half_back", "b3"),
        # two new ones could begin at the lower epoch, without the one that is left
        (
            FORWARD,
            situation("migration zookeeper zookeeper", "migration/PRE_MIGRATION- migration! ."),
            "migration.half_back",
            "b1",
        ),
        # an empty voter of a quorum that has begun
        (
            FORWARD,
            situation(M, "migration/MIGRATION migration/MIGRATION .", HELD),
            "migration.lost_controller",
            "c13",
        ),
        (FORWARD, situation(M, NONE, HELD), "migration.lost_controller", "c11, c12, c13"),
        # its configuration lies on another disk
        (
            FORWARD,
            situation(M, "migration/MIGRATION migration/MIGRATION migration!", HELD),
            "migration.lost_controller",
            "c13",
        ),
        (
            FORWARD,
            situation(K, "migration/MIGRATION migration/MIGRATION migration!", None),
            "migration.lost_controller",
            "c13",
        ),
        (
            FORWARD,
            situation(K, "kraft/POST_MIGRATION kraft/POST_MIGRATION .", HELD),
            "migration.lost_controller",
            "c13",
        ),
        (
            FINISH,
            situation(K, "migration/MIGRATION migration/MIGRATION migration!", HELD),
            "migration.lost_controller",
            "c13",
        ),
        # it would be formatted, and vote at once
        (
            FINISH,
            situation(K, "kraft/POST_MIGRATION kraft/POST_MIGRATION kraft!", HELD),
            "migration.lost_controller",
            "c13",
        ),
        (
            FINISH,
            situation(K, "kraft/MIGRATION migration/MIGRATION .", HELD),
            "migration.lost_controller",
            "c13",
        ),
        (FINISH, situation("kraft kraft migration", DUAL, HELD), "migration.not_ready", "b3"),
        (FINISH, situation("kraft kraft kraft-", DUAL, HELD), "migration.not_ready", "b3"),
        (FINISH, situation(K, PRE, HELD), "migration.not_ready", "c11, c12, c13"),
        (FINISH, situation(Z, NONE), "migration.not_ready", "b1, b2, b3"),
        (REMOVE, situation(K, DUAL, HELD), "migration.not_ready", "c11, c12, c13"),
        (
            REMOVE,
            situation(K, "kraft/MIGRATION " * 3, HELD),
            "migration.not_ready",
            "c11, c12, c13",
        ),
        (REMOVE, situation("kraft kraft zookeeper", POST, HELD), "migration.not_ready", "b3"),
        (
            REMOVE,
            dataclasses.replace(situation(K, POST, HELD), others=("/other/leader",)),
            "migration.others",
            "z1, z2, z3",
        ),
        # nobody has told who uses it, and it may well serve them
        (
            REMOVE,
            dataclasses.replace(situation(K, POST, None), others=None, quorate=True),
            "migration.others",
            "z1, z2, z3",
        ),
        (
            REMOVE,
            dataclasses.replace(situation(K, POST, HELD), outside=("z3",)),
            "migration.limited",
            "z3",
        ),
        # nobody who has the metadata could tell a broker that comes from KRaft what it has
        (BACK, situation("kraft migration migration", DOWN, HELD), "migration.not_ready", "b1"),
        (
            BACK,
            situation(K, "migration/MIGRATION migration/MIGRATION- migration!", HELD),
            "migration.not_ready",
            "b1, b2, b3",
        ),
        (BACK, situation(K, DUAL, FREE), "migration.not_ready", "b1, b2, b3"),
        (BACK, situation(K, DUAL, None), "migration.no_zookeeper", "b1, b2, b3"),
        (BACK, situation(K, POST, HELD), "migration.no_way_back", "c11, c12, c13"),
        # one controller without ZooKeeper may be the active one at any moment
        (
            BACK,
            situation(M, "kraft/MIGRATION migration/MIGRATION migration/MIGRATION", HELD),
            "migration.no_way_back",
            "c11",
        ),
        (BACK, situation(M, DUAL, None), "migration.no_zookeeper", "b1, b2, b3"),
    ],
)
def test_what_must_not_be_done_is_refused_with_its_hosts(wish, now, check, hosts):
    planned = plan(now, wish)
    assert not planned.steps
    assert [(each.check, ", ".join(each.subjects)) for each in planned.refusals] == [(check, hosts)]


@pytest.mark.parametrize(
    ("now", "remedy"),
    [
        (
            situation(M, "migration/MIGRATION migration/MIGRATION migration!", HELD),
            "go back with playbooks/migrate_back.yml, then begin anew; or bring its disk back",
        ),
        (
            situation(K, "migration/MIGRATION migration/MIGRATION migration!", HELD),
            "bring its disk back; or run playbooks/replace_broker.yml -e broker=13, then run this again;"
            " or go back with playbooks/migrate_back.yml, then begin anew",
        ),
        # the last step has begun, and nobody goes back
        (
            situation(K, "kraft/MIGRATION migration/MIGRATION migration!", HELD),
            "bring its disk back; or run playbooks/replace_broker.yml -e broker=13, then run this again",
        ),
        (
            situation(K, "kraft/POST_MIGRATION kraft/POST_MIGRATION migration!", HELD),
            "bring its disk back; or run playbooks/replace_broker.yml -e broker=13, then run this again",
        ),
        # nobody is under way any more, and ZooKeeper in the inventory is what is refused
        (
            situation(K, "kraft/POST_MIGRATION kraft/POST_MIGRATION .", HELD),
            "bring its disk back; or take ZooKeeper out of the inventory, and run playbooks/replace_broker.yml"
            " -e broker=13, then run this again",
        ),
        # a deletion that was cut off leaves the same behind
        (
            situation(M, "migration/MIGRATION- migration/MIGRATION- /MIGRATION-", HELD),
            "start the others with playbooks/start.yml, then run this again;"
            " or go back with playbooks/migrate_back.yml",
        ),
    ],
)
def test_a_controller_that_is_lost_has_a_way_out_that_is_open(now, remedy):
    (told,) = plan(now, FORWARD).refusals
    assert (told.check, told.subjects, told.remedy) == (
        "migration.lost_controller",
        ("c13",),
        remedy,
    )


def reaching(now, *lasts):
    """The same, with controllers whose logs end there."""
    logs = dict(zip(CTRL, lasts))
    return replace(
        now, nodes=tuple(replace(each, last=logs.get(each.host, -1)) for each in now.nodes)
    )


@pytest.mark.parametrize(
    ("now", "hosts"),
    [
        (reaching(situation(M, DUAL, HELD), 400, 400, 399), []),
        (reaching(situation(M, DUAL, HELD), 400, 401, 399), ["c12"]),
        (reaching(situation(M, DOWN, HELD), 401, 401, 401), CTRL),
        # before they have taken the metadata over, and once a broker is the controller, ZooKeeper has what counts
        (reaching(situation(M, PRE, replace(HELD, offset=-1)), 90, 90, 90), []),
        (reaching(situation(M, DUAL, FREE), 400, 400, 400), []),
        # claimed, copied and told, but not one change written
        (reaching(situation(M, DUAL, replace(HELD, offset=-1)), 90, 90, 90), CTRL),
        (reaching(situation(M, "migration/MIGRATION- . .", HELD), 401), ["c11"]),
    ],
)
def test_controllers_are_deleted_when_zookeeper_has_all_that_they_have(now, hosts):
    told = not_written(now)
    assert [each.split(":")[0] for each in told] == [
        f"[migration.not_written] {host}" for host in hosts
    ]
    # those that run write on, and are waited for
    waits = any(each.running for each in now.controllers)
    refused = [] if waits else [("migration.not_written", (host,)) for host in hosts]
    planned = plan(now, BACK)
    assert [(each.check, each.subjects) for each in planned.refusals] == refused
    assert bool(planned.steps) == (not refused)


@pytest.mark.parametrize(
    ("wish", "now", "steps"),
    [
        (FINISH, situation(K, DUAL, HELD), {"end": CTRL}),
        (FINISH, situation(K, DUAL, None), {"end": CTRL}),
        # killed after the first one, or at the last one
        (
            FINISH,
            situation(K, "kraft/MIGRATION migration/MIGRATION migration/MIGRATION", HELD),
            {"end": CTRL},
        ),
        (
            FINISH,
            situation(
                K, "kraft/POST_MIGRATION kraft/POST_MIGRATION migration/POST_MIGRATION-", HELD
            ),
            {"end": ["c13"]},
        ),
        (FINISH, situation(K, POST, HELD), {}),
        (REMOVE, situation(K, POST, None), {"servers": SERVERS}),
        (REMOVE, situation(K, POST, None, ()), {}),
        # too few run to serve anybody: a removal that was cut off goes on
        (
            REMOVE,
            dataclasses.replace(situation(K, POST, None, ("z3",)), others=None),
            {"servers": ["z3"]},
        ),
        # a deletion that was cut off
        (
            BACK,
            situation(Z, "/MIGRATION . .", FREE),
            {"leave_controllers": ["c11"], "release": []},
        ),
        (BACK, situation(M, DUAL, HELD), {"leave_controllers": CTRL, "release": [], "leave": ALL}),
        (
            BACK,
            situation(K, DUAL, HELD),
            {"return": ALL, "leave_controllers": CTRL, "release": [], "leave": ALL},
        ),
        # killed after the first of them, or in the way forward after it
        (
            BACK,
            situation("migration kraft kraft-", DUAL, HELD),
            {"return": ["b2", "b3"], "leave_controllers": CTRL, "release": [], "leave": ALL},
        ),
        # a quorum that has lost one disk has no other way
        (
            BACK,
            situation(K, "migration/MIGRATION migration/MIGRATION migration!", HELD),
            {"return": ALL, "leave_controllers": CTRL, "release": [], "leave": ALL},
        ),
        # before dual-write nothing has to be released
        (
            BACK,
            situation("migration zookeeper zookeeper", PRE),
            {"leave_controllers": CTRL, "leave": ["b1"]},
        ),
        # killed after each of its steps
        (
            BACK,
            situation(M, "migration/MIGRATION- . .", HELD),
            {"leave_controllers": ["c11"], "release": [], "leave": ALL},
        ),
        (BACK, situation(M, NONE, HELD), {"release": [], "leave": ALL}),
        (BACK, situation(M, NONE, Znodes(migration=True)), {"release": [], "leave": ALL}),
        (BACK, situation("zookeeper migration- migration", NONE), {"leave": ["b2", "b3"]}),
        (BACK, situation(Z, NONE), {}),
    ],
)
def test_the_end_and_the_way_back(wish, now, steps):
    planned = to_dict(plan(now, wish))
    assert planned["refused"] == [] and planned["steps"] == steps


@pytest.mark.parametrize("wish", [FORWARD, FINISH, BACK, REMOVE])
def test_a_cluster_that_began_in_kraft_has_nothing_to_migrate(wish):
    """It may stand in one inventory with one that migrates, and waits for no end of what never was."""
    now = situation(K, "kraft/NONE kraft/NONE kraft/NONE-", None)
    planned = plan(now, wish)
    assert not planned.steps and not planned.refusals
    assert "began in KRaft mode" in planned.after[0] and "--limit" in planned.after[0]


@pytest.mark.parametrize(
    ("now", "reasons"),
    [
        (situation(M, DUAL, HELD), []),
        (situation(M, PRE, HELD), ["controller 11 (c11) is in state PRE_MIGRATION"]),
        (
            situation(M, "migration/MIGRATION " * 2 + "migration/MIGRATION-", HELD),
            ["controller 13 (c13) does not answer"],
        ),
        (
            situation(M, DUAL, BEFORE),
            ["broker 2 is the controller in ZooKeeper, and none of KRaft"],
        ),
        (
            situation(M, DUAL, Znodes()),
            ["nobody is the controller in ZooKeeper, and none of KRaft"],
        ),
        # the epoch is claimed before the metadata are copied
        (
            situation(M, DUAL, replace(HELD, offset=-1)),
            ["nothing of KRaft is written to ZooKeeper yet"],
        ),
        (
            situation(M, DUAL, replace(HELD, controller=77)),
            ["node 77 is the controller in ZooKeeper"],
        ),
        (situation(M, DUAL, None), ["ZooKeeper does not answer"]),
    ],
)
def test_dual_write_has_two_signs_and_each_controller_knows_it(now, reasons):
    assert awaited(now)[: len(reasons) or 1] == reasons


words = st.sampled_from(["", "zookeeper", "migration", "kraft"])
states = st.sampled_from(["", "NONE", "PRE_MIGRATION", "MIGRATION", "POST_MIGRATION"])
znodes = st.one_of(
    st.none(),
    st.builds(
        Znodes,
        st.sampled_from([None, 1, 11]),
        st.integers(-1, 3),
        st.integers(-1, 9),
        st.booleans(),
    ),
)


@st.composite
def anything(draw):
    brokers = [Node(f"b{n}", n, True, draw(words), draw(st.booleans())) for n in (1, 2, 3)]
    controllers = [
        Node(
            f"c{n}",
            n,
            False,
            draw(words.filter(lambda each: each != "zookeeper")),
            draw(st.booleans()),
            draw(states),
            draw(st.booleans()),
        )
        for n in (11, 12, 13)
    ]
    return Situation("x", (*brokers, *controllers), draw(znodes), ("z1",))


@given(anything(), st.sampled_from([FORWARD, FINISH, BACK, REMOVE]))
def test_whatever_is_found_no_step_leaves_a_broker_behind(now, wish):
    planned = plan(now, wish)
    names = [each.name for each in planned.steps]
    assert not (planned.steps and planned.refusals)
    if "kraft" in names and any(each.phase != "kraft" for each in now.brokers):
        assert names.index("await") < names.index(
            "kraft"
        ), "asked before the first broker leaves ZooKeeper"
        entering = set(to_dict(planned)["steps"].get("enter", ()))
        assert all(
            each.phase in ("migration", "kraft") or each.host in entering for each in now.brokers
        )
    starting = {
        each for name in ("controllers", "end") for each in to_dict(planned)["steps"].get(name, ())
    }
    if now.znodes and now.znodes.held and any(each.phase == "migration" for each in now.brokers):
        assert all(each.formatted for each in now.controllers if each.host in starting)
    if "end" in names or "servers" in names:
        assert all(each.phase == "kraft" for each in now.brokers)
    if "release" in names:
        returning = to_dict(planned)["steps"].get("return", ())
        assert all(each.phase != "kraft" or each.host in returning for each in now.nodes)
        if returning:
            assert names.index("return") < names.index("leave_controllers")
            assert awaited(now, most=True) == []
        assert "leave_controllers" in names or not any(each.phase for each in now.controllers)
    assert (
        situation_of(
            {
                "cluster": now.cluster,
                "nodes": [vars(each) for each in now.nodes],
                "znodes": vars(now.znodes) if now.znodes else None,
                "servers": list(now.servers),
            }
        )
        == now
    )


def test_a_status_tells_who_is_where():
    now = situation(
        "zookeeper migration kraft", "migration/MIGRATION kraft/MIGRATION kraft/MIGRATION", HELD
    )
    assert phases_told(now.nodes)[0] == (
        "Migration to KRaft under way: b1 still in ZooKeeper; b2 in ZooKeeper and known to the controllers;"
        " b3 in KRaft; controllers c12, c13 without ZooKeeper."
    )
    assert phases_told(situation(Z, "").nodes) == phases_told(situation(K, POST).nodes) == []


def test_where_the_last_step_has_begun_nobody_is_told_of_a_way_back():
    begun = situation(K, "kraft/MIGRATION migration/MIGRATION migration/MIGRATION", HELD)
    told = " ".join(plan(begun, FORWARD).after)
    assert "The last step has begun, and there is no way back: c11" in told
    assert "-e migrate=finish" in told and "migrate_back" not in told

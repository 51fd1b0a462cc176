# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is waited for after a turn, and for how long: what the roles' variables make of the turns so far."""

from __future__ import annotations

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from tests.support.role_variables import ROLES, evaluated

BROKERS = [
    {"host": "a", "id": 1, "listeners": []},
    {"host": "b", "id": 2, "listeners": []},
    {"host": "c", "id": 3, "listeners": []},
]


def of(product, name, **turns):
    """The value of a role's variable, with one fact a host: (healthy, pending)."""
    facts = {
        host: {
            f"__{product}_turn": {
                "host": host,
                "id": "abc".index(host) + 1,
                "healthy": healthy,
                "pending": pending,
            }
        }
        for host, (healthy, pending) in turns.items()
    }
    given = {
        "ansible_play_hosts": ["a", "b", "c"],
        "hostvars": {"a": {}, "b": {}, "c": {}, **facts},
        "kafkaops_preflight": {
            kind: {"kafka": BROKERS} for kind in ("brokers", "nodes", "servers")
        },
    }
    return evaluated(product, f"__{product}_{name}", {**given, "kafka_cluster_name": "kafka"})


@pytest.mark.parametrize("product", ["kafka", "zookeeper"])
def test_sick_members_are_waited_for_once_they_have_had_their_turn(product):
    sick, cured = (False, True), (False, False)
    assert of(product, "unmended", a=(True, False), b=cured, c=sick) == [3]
    assert of(product, "unmended", a=(True, True), b=sick, c=sick) == [2, 3]
    assert of(product, "unmended", a=(True, False), b=cured, c=cured) == []
    assert of(product, "unmended") == [], "start.yml gives no turns"


def test_only_behind_the_last_turn_the_quiet_time_is_the_waits_own():
    """Everywhere else the next gate has it."""
    turn = DataLoader().load_from_file(
        str(ROLES / "kafka" / "tasks" / "turn.yml"), trusted_as_template=True
    )
    (wait,) = [task["block"][0] for task in turn if "block" in task]
    quiet = wait["vars"]["__kafka_quiet_seconds"]
    for turns, expected in (
        ({"a": (True, False), "b": (True, True), "c": (True, False)}, 0),
        ({"a": (True, False), "b": (True, False), "c": (True, False)}, 3),
    ):
        pending = of("kafka", "pending_turns", **turns)
        known = {"__kafka_pending_turns": pending, "kafka_gate_quiet_seconds": 3}
        assert Templar(loader=DataLoader(), variables=known).template(quiet) == expected
    told = yaml.safe_load((ROLES / "kafka" / "tasks" / "wait.yml").read_text())
    assert told[0]["kafkaops.cluster.kafka_cluster_info"]["wait"]["quiet_seconds"]


@pytest.mark.parametrize(
    "ran, in_sync, play, expected",
    [
        ("abc", [1, 2, 3], "abc", 0),
        ("abc", [1, 3], "abc", 3),
        ("abc", None, "abc", 3),  # nobody could be asked
        ("ac", [1, 3], "abc", 0),  # this run has started it
        ("", None, "abc", 0),
        ("abc", [1, 3], "c", 0),
        ("abc", [1, 3], "b", 3),
    ],
)
def test_who_was_not_in_sync_when_the_run_began_is_watched_for_a_while(
    ran, in_sync, play, expected
):
    given = {
        "kafka_cluster_name": "kafka",
        "kafka_gate_quiet_seconds": 3,
        "kafkaops_preflight": {
            "nodes": {"kafka": BROKERS},
            "running": {"kafka": list(ran)},
            "in_sync": {} if in_sync is None else {"kafka": in_sync},
        },
        "ansible_play_hosts": list(play),
    }
    assert evaluated("kafka", "__kafka_quiet_seconds_at_end", given) == expected


@pytest.mark.parametrize(
    "configuration, current, expected",
    [
        ("in_effect", {"clientPort": "2181"}, 2181),
        ("in_effect", {}, 2182),
        ("in_effect", None, 2182),
        (None, {"clientPort": "2181"}, 2182),
    ],
)
def test_a_server_that_starts_as_it_ran_last_is_asked_where_it_listened(
    configuration, current, expected
):
    given = {
        "zookeeper_client_port": 2182,
        "kafkaops_preflight_collected": {"facts": {"zookeeper": {"current": current}}},
        **({"kafkaops_configuration": configuration} if configuration else {}),
    }
    (ready,) = evaluated("zookeeper", "__zookeeper_instance", given)["ready"]
    assert ready["port"] == expected
    # what stops it has no preflight
    given.pop("kafkaops_preflight_collected")
    (ready,) = evaluated("zookeeper", "__zookeeper_instance", given)["ready"]
    assert ready["port"] == 2182


def test_start_waits_for_the_ensemble_that_ran_last():
    """Its servers and lists, and not those of an inventory that is ahead."""
    plays = yaml.safe_load((ROLES.parent / "playbooks" / "start.yml").read_text())
    (play,) = [each for each in plays if each["name"] == "Wait for a quorum of ZooKeeper"]
    given = {
        "kafka_cluster_name": "A",
        "kafkaops_preflight": {
            "ensembles_in_effect": {"A": {"servers": [{"id": 1}], "lists": [[1]]}},
            "servers": {"A": [{"id": 1}, {"id": 2}]},
        },
    }
    (task,) = play["tasks"]
    found = {
        name: Templar(loader=DataLoader(), variables=given).template(trust_as_template(value))
        for name, value in task["vars"].items()
        if name.startswith("__")
    }
    assert found == {"__zookeeper_listed": [{"id": 1}], "__zookeeper_lists": [[1]]}
    (wait,) = yaml.safe_load((ROLES / "zookeeper" / "tasks" / "wait.yml").read_text())
    assert "__zookeeper_lists" in wait["kafkaops.cluster.zookeeper_info"]["lists"]
    assert evaluated("zookeeper", "__zookeeper_servers", found) == [{"id": 1}]


def tasks_from(role, name, opened=False):
    """The tasks of a file of the role, those of the files that it includes or imports in their places.

    opened: those of blocks, too, in place of the blocks.
    """
    tasks = yaml.safe_load((ROLES / role / "tasks" / name).read_text())
    return _in_place(role, tasks, opened)


def _in_place(role, tasks, opened):
    for task in tasks:
        included = task.get("ansible.builtin.include_tasks") or task.get(
            "ansible.builtin.import_tasks"
        )
        if included:
            variables = task.get("vars", {})
            yield from ({**each, "of": variables} for each in tasks_from(role, included, opened))
        elif opened and "block" in task:
            parts = [task.get(part, []) for part in ("block", "rescue", "always")]
            yield from _in_place(role, sum(parts, []), opened)
        else:
            yield task


def modules_of(tasks):
    """The module of each task, "" for a block."""
    return [
        next(key for key in task if "." in key) if "block" not in task else "" for task in tasks
    ]


def test_between_the_last_look_and_the_stop_nothing_runs_on_any_host():
    """Only what the controller does by itself: each call of a module would make the look older."""
    turn = list(tasks_from("kafka", "turn.yml"))
    modules = modules_of(turn)
    look = modules.index("kafkaops.cluster.kafka_broker_gate")
    stop = modules.index("kafkaops.cluster.jvm_instance")
    assert turn[stop]["kafkaops.cluster.jvm_instance"]["state"] == "started"
    assert set(modules[look + 1 : stop]) <= {"ansible.builtin.debug"}


def test_a_turn_calls_three_modules():
    """The gate, the restart, the wait: each further one would make every broker of a roll take longer."""
    turn = [
        each
        for each in tasks_from("kafka", "turn.yml")
        if "__kafka_live_hosts" not in each.get("of", {})
        # a broker is no voter of a quorum, and does not connect to the others; a voter asks only where it misses one
        and "kafkaops.cluster.port_probe" not in each
        and "kafka_voters_reached.unreached" not in str(each.get("when"))
    ]
    (wait,) = [task["block"] for task in turn if "block" in task]
    (waiting,) = [each["ansible.builtin.include_tasks"] for each in wait]
    calls = [*modules_of(turn), *modules_of(tasks_from("kafka", waiting))]
    assert [each.rpartition(".")[2] for each in calls if each.startswith("kafkaops.")] == [
        *("kafka_broker_gate", "jvm_instance", "kafka_cluster_info")
    ]


@pytest.mark.parametrize(
    "role, name, last",
    [
        ("kafka", "turn.yml", "__kafka_gate_again"),
        ("kafka", "drill_broker.yml", "__kafka_gate_again"),
        ("kafka", "drill_stop.yml", "__kafka_gate_again"),
        ("kafka", "stop_gated.yml", "__kafka_gate_again"),
        ("zookeeper", "turn.yml", "__zookeeper_gate_again"),
        ("zookeeper", "drill_stop.yml", "__zookeeper_gate_again"),
    ],
)
def test_what_stops_behind_a_gate_asks_once_more(role, name, last):
    found = list(tasks_from(role, name, opened=True))
    gate = f"__{role}_gate_last"
    stops = [
        each
        for each, module in zip(found, modules_of(found))
        if module == "kafkaops.cluster.jvm_instance" and gate in str(each[module].get("gate"))
    ]
    assert stops and all(last in each["of"][gate] for each in stops)


def test_a_broker_that_ends_at_each_start_is_stopped_without_a_process_to_ask_for():
    tasks = yaml.safe_load((ROLES / "kafka" / "tasks" / "stop_gated.yml").read_text())
    conditions = {
        task.get("ansible.builtin.include_tasks")
        or task["ansible.builtin.import_tasks"]: task.get("when")
        for task in tasks
    }
    assert conditions == {
        "probe.yml": None,
        "gate.yml": "kafka_staged.running",
        "stop.yml": None,
    }


@pytest.mark.parametrize("connection", ["local", "ssh"])
@pytest.mark.parametrize("idle", [True, False])
def test_it_is_asked_once_more_from_where_it_was_asked_before(connection, idle):
    servers = [
        {"id": each, "host": f"z{each}", "address": "z", "client_port": 2181} for each in (1, 2, 3)
    ]
    known = {
        "inventory_hostname": "z2",
        "ansible_play_hosts": ["z1", "z2", "z3"],
        "hostvars": {"z1": {}, "z2": {}, "z3": {}, "asking": {"ansible_connection": connection}},
        "kafka_admin_host": "asking",
        "kafka_cluster_name": "kafka",
        "kafkaops_preflight": {"servers": {"kafka": servers}, "ids": {"z2": {"myid": 2}}},
        "zookeeper_gate": {"idle": idle},
    }
    question = evaluated("zookeeper", "__zookeeper_gate_again", known)
    assert question["asks"]["host"] == "asking"
    assert (question["stopping"], question["idle"], question["quiet_seconds"]) == (2, idle, 1)
    assert [each["id"] for each in question["servers"]] == [1, 2, 3]


@pytest.mark.parametrize(
    "turn, asks",
    [
        ({"stopping": 2, "guarded": True}, True),
        (
            {"stopping": 2, "guarded": False},
            False,
        ),  # it does not serve, and its restart may be the cure
        ({"stopping": None, "guarded": True}, False),  # it starts, or nobody lists it any more
    ],
)
def test_a_change_of_the_list_asks_once_more_before_it_restarts_a_server(turn, asks):
    servers = [
        {"id": each, "host": f"z{each}", "address": "z", "client_port": 2181} for each in (1, 2, 3)
    ]
    lists = [[1, 2, 3], [1, 2, 3, 4]]
    known = {
        "hostvars": {"asking": {"ansible_connection": "local"}},
        "kafka_admin_host": "asking",
        "kafka_cluster_name": "kafka",
        "kafkaops_preflight": {
            "servers": {"kafka": servers},
            "leaving": {"kafka": [{**servers[0], "id": 4, "host": "z4"}]},
        },
        "zookeeper_plan": {"turns": [{"required": [1, 3], "lists": lists, **turn}]},
    }
    question = evaluated("zookeeper", "__zookeeper_resize_again", known)
    assert bool(question) is asks
    if asks:
        assert (question["stopping"], question["required"], question["lists"]) == (2, [1, 3], lists)
        assert [each["id"] for each in question["servers"]] == [1, 2, 3, 4]


def test_who_has_not_asked_the_gate_starts_only_what_is_down():
    """Wherever start.yml is included: only behind a gate it may stop what runs."""
    for role in ("kafka", "zookeeper"):
        (start,) = [
            task["kafkaops.cluster.jvm_instance"]
            for task in tasks_from(role, "start.yml")
            if "kafkaops.cluster.jvm_instance" in task
        ]
        for given, only_down in (
            ({}, True),
            ({f"__{role}_gate_last": {}}, False),
            ({f"__{role}_gate_last": {"broker": 1}}, False),
        ):
            assert (
                evaluated(role, "asked", {**given, "asked": trust_as_template(start["only_down"])})
                is only_down
            )


@pytest.mark.parametrize("product", ["kafka", "zookeeper"])
@pytest.mark.parametrize(
    "staged, turn, expected",
    [
        # it was down, and was started
        (
            (False, True),
            {"changed": True, "running": True, "restart_pending": False},
            (False, False),
        ),
        # check mode starts nothing
        (
            (False, True),
            {"changed": True, "running": False, "restart_pending": True},
            (False, False),
        ),
        # its service manager was faster, and it runs something else
        ((False, True), {"changed": False, "running": True, "restart_pending": True}, (True, True)),
        # the same, and it runs what is wanted
        (
            (False, True),
            {"changed": False, "running": True, "restart_pending": False},
            (True, False),
        ),
        # it ran from the beginning
        ((True, True), None, (True, True)),
        ((True, False), None, (True, False)),
        # as one that was put out of the run
        ((False, False), None, (False, False)),
    ],
)
def test_what_came_back_by_itself_takes_a_turn(product, staged, turn, expected):
    more = {"restart_reasons": ["why"], "live_changes": None, "answers": []}
    known = {f"{product}_staged": {"running": staged[0], "restart_pending": staged[1], **more}}
    if turn:
        known[f"{product}_turn"] = {**turn, **more}
    found = evaluated(product, f"__{product}_staged_now", known)
    assert (found["running"], found["restart_pending"]) == expected


def test_a_plan_that_is_refused_shows_order_and_reasons():
    """Brokers 1 and 3 work, 3 is the controller; 2 is out of sync, and 1 has nothing pending."""
    hosts = {
        host: {
            "kafka_staged": {"restart_reasons": [f"why {host}", "and why"]},
            "__kafka_turn": {"host": host, "id": number, "healthy": True, "pending": pending},
        }
        for number, (host, pending) in enumerate(
            (("a", False), ("b", True), ("c", True), ("d", True)), 1
        )
    }
    nodes = [{"host": host, "id": number, "listeners": []} for number, host in enumerate("abcd", 1)]
    known = {
        "ansible_play_hosts": list("abcd"),
        "hostvars": hosts,
        "kafka_cluster_name": "kafka",
        "kafkaops_preflight": {
            "nodes": {"kafka": nodes},
            "brokers": {"kafka": nodes},
            "in_sync": {"kafka": [1, 3, 4]},
            "controllers": {"kafka": 3},
            "voters": {},
        },
    }
    assert evaluated("kafka", "__kafka_planned_turns", known) == [
        "1. restart of b: why b; and why",
        "2. restart of d: why d; and why",
        "3. restart of c: why c; and why",
    ]


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("refusal", ["", "[gate.cannot_pass] ..."])
@pytest.mark.parametrize("early", [False, True])
def test_what_is_decided_is_shown_once_before_the_first_turn(check_mode, refusal, early):
    """In check mode the turns show their order themselves; a look before ZooKeeper restarts is repeated."""
    known = {"ansible_check_mode": check_mode, "kafka_gate_plan": {"refusal": refusal}}
    includes = "gate_early.yml" if early else "start_together.yml"
    (asked,) = [
        task
        for task in yaml.safe_load((ROLES / "kafka" / "tasks" / includes).read_text())
        if task.get("ansible.builtin.include_tasks") == "gate_plan.yml"
    ]
    shows = (asked.get("vars") or {}).get("__kafka_shows_turns")
    if shows is not None:
        known["__kafka_shows_turns"] = trust_as_template(shows)
    told = Templar(loader=DataLoader(), variables=known)
    shown = []
    for task in tasks_from("kafka", "gate_plan.yml"):
        if "ansible.builtin.debug" in task:
            when = task["when"] if isinstance(task["when"], list) else [task["when"]]
            if all(told.evaluate_conditional(trust_as_template(each)) for each in when):
                shown.append(task["name"])
    lines = ["Show what the gate says of each broker now"]
    order = ["Show in which order they restart, and why"]
    if early and not check_mode:
        assert shown == []
    else:
        assert shown == lines + (order if refusal or not check_mode else [])


@pytest.mark.parametrize(
    ("metadata", "phase", "asked"),
    [
        ("zookeeper", "", True),
        ("kraft", "", False),
        # the inventory says so all the way: it is the step that tells where brokers register
        ("kraft", "migration", True),
        ("kraft", "zookeeper", True),
        ("kraft", "kraft", False),
    ],
)
def test_no_broker_stops_while_the_zookeeper_that_it_needs_has_no_quorum(metadata, phase, asked):
    server = {"host": "z", "id": 1, "address": "z", "client_port": 2181}
    given = {
        "kafka_metadata": metadata,
        "kafka_cluster_name": "kafka",
        "kafkaops_preflight": {"servers": {"kafka": [server]}},
        **({"kafkaops_phase": phase} if phase else {}),
    }
    found = evaluated("kafka", "__kafka_gate_servers", given)
    assert found == ([{"id": 1, "address": "z", "port": 2181}] if asked else [])


@pytest.mark.parametrize(
    ("configuration", "settled", "waited"),
    [("staged", False, True), ("in_effect", True, True), ("in_effect", False, False)],
)
def test_what_starts_as_it_ran_last_need_not_vote_as_the_inventory_has_it(
    configuration, settled, waited
):
    """After a killed change of controllers a new one has no vote yet, and only the playbook for it gives it one."""
    known = {
        "kafka_cluster_name": "kafka",
        "kafkaops_preflight": {"voters": {"kafka": {"asked": True, "settled": settled}}},
        "kafkaops_configuration": configuration,
    }
    assert evaluated("kafka", "__kafka_voters_return", known) is waited


@pytest.mark.parametrize(
    ("now", "seen", "expected"),
    [([1, 2, 3], [], [1, 2, 3]), ([], [1, 2], [1, 2]), ([], [], [7, 8, 9])],
)
def test_who_votes_is_asked_again_where_nobody_told_the_preflight(now, seen, expected):
    stay = [{"id": each, "host": "a"} for each in (7, 8, 9)]
    known = {
        "kafka_cluster_name": "kafka",
        "ansible_play_hosts": ["a"],
        "hostvars": {
            "a": {"kafka_voters_now": {"quorum": {"voters": [{"id": each} for each in seen]}}}
        },
        "kafkaops_preflight": {
            "nodes": {"kafka": [{"host": "a", "id": 7}]},
            "voters": {"kafka": {"stay": stay, "now": now}},
        },
    }
    assert evaluated("kafka", "__kafka_voters_found", known) == expected


def test_a_host_that_is_new_to_the_cluster_is_not_waited_for_as_what_ran_last():
    known = {
        "ansible_play_hosts": ["a", "b", "new"],
        "hostvars": {"a": {}, "b": {"kafka_turn": {"running": True}}, "new": {}},
        "kafkaops_preflight": {"running": {"kafka": ["a", "elsewhere"]}},
    }
    assert evaluated("kafka", "__kafka_running_now", known) == ["a", "b"]
    # start_as_before.yml has forgotten that start
    known["hostvars"]["b"] = {"kafka_turn": {}, "kafka_started_before": True}
    assert evaluated("kafka", "__kafka_running_now", known) == ["a", "b"]


def test_what_starts_as_it_ran_last_is_known_to_run_when_that_start_is_forgotten():
    (forget,) = [
        each
        for each in tasks_from("kafka", "start_as_before.yml")
        if each["name"] == "Forget the start"
    ]
    facts = forget["ansible.builtin.set_fact"]
    assert facts["kafka_turn"] == {}
    for turn, expected in (({"running": True}, True), ({}, False), (None, False)):
        known = {} if turn is None else {"kafka_turn": turn}
        text = trust_as_template(facts["kafka_started_before"])
        assert Templar(loader=DataLoader(), variables=known).template(text) is expected


@pytest.mark.parametrize(
    ("host", "tried"),
    [
        # those that run: found running, or started since
        ("c-1", ["c-2", "c-3", "c-5"]),
        ("c-2", ["c-1", "c-3", "c-5"]),
        ("kafka-1", []),
    ],
)
def test_a_voter_tries_the_others_that_run(host, tried):
    names = ["c-1", "c-2", "c-3", "c-4", "c-5"]
    stay = [{"host": each, "id": 1, "address": f"{each}.x.com", "port": 9093} for each in names]
    known = {
        "inventory_hostname": host,
        "kafka_cluster_name": "kafka",
        "kafka_ssl": {"ca": "..."},
        "kafka_config_dir": "/etc/kafka",
        "hostvars": {
            **dict.fromkeys(names, {}),
            "c-3": {"kafka_turn": {"running": True}},
            "c-5": {"kafka_turn": {}, "kafka_started_before": True},
        },
        "kafkaops_preflight": {
            "quorums": {host: {"protocol": "SASL_SSL"}},
            "voters": {"kafka": {"stay": stay}},
            "running": {"kafka": ["c-1", "c-2", "kafka-1"]},
        },
    }
    found = evaluated("kafka", "__kafka_voters_to_reach", known)
    assert [each["name"] for each in found] == tried
    for each in found:
        assert each["address"] == f"{each['name']}.x.com" and each["votes"] and each["runs"]
        assert each["authorities"] == "/etc/kafka/current/truststore.pem"
    known["kafkaops_preflight"]["quorums"] = {host: {"protocol": "PLAINTEXT"}}
    found = evaluated("kafka", "__kafka_voters_to_reach", known)
    assert {each["authorities"] for each in found} <= {""}


def between(names, missed, **known):
    """What c-1 knows once it has tried the others and missed some."""
    stay = [
        {"host": each, "id": int(each[2:]), "address": each, "port": 9093, "broker": False}
        for each in names
    ]
    return {
        "inventory_hostname": "c-1",
        "ansible_play_hosts": names,
        "groups": {},
        "kafka_cluster_name": "kafka",
        "hostvars": dict.fromkeys(names, {}),
        "kafka_voters_reached": {"unreached": missed},
        "kafkaops_preflight": {
            "quorums": {"c-1": {"protocol": "PLAINTEXT"}},
            "voters": {"kafka": {"stay": stay}},
            "running": {"kafka": names},
        },
        **known,
    }


def account(*keep_up):
    return {
        "kafka_voters_account": {
            "quorum": {
                "voters": [{"id": each, "keeps_up": each in keep_up} for each in range(1, 4)]
            }
        }
    }


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, []),
        (account(1, 2), []),
        (account(1, 2, 3), ["c-3"]),
        # skipped, or no broker answers
        ({"kafka_voters_account": {"skipped": True}}, []),
        ({"groups": {"kafkaops_kafka_restarted": ["c-3"]}}, ["c-3"]),
        ({"hostvars": {"c-1": {}, "c-2": {}, "c-3": {"kafka_turn": {"changed": True}}}}, ["c-3"]),
        ({**account(1, 2, 3), "kafka_voter_reached_by": {"results": [{"unreached": ["c-1"]}]}}, []),
        (
            {
                **account(1, 2, 3),
                "kafka_voter_reached_by": {"results": [{"unreached": ["c-1"]}, {"unreached": []}]},
            },
            ["c-3"],
        ),
        # nobody has tried
        ({**account(1, 2, 3), "kafka_voter_reached_by": {"skipped": True}}, ["c-3"]),
    ],
)
def test_for_whose_sake_a_voter_is_refused_its_turn(known, expected):
    known = between(["c-1", "c-2", "c-3"], ["c-3"], **known)
    assert evaluated("kafka", "__kafka_voters_cut_off", known) == expected


@pytest.mark.parametrize(("missed", "trying"), [(["c-3"], ["c-2"]), (["c-2", "c-3"], ["c-1"])])
def test_only_hosts_that_are_up_are_asked_whether_they_reach_a_voter(missed, trying):
    """One that has died would end the play without a word, ignore_unreachable or not."""
    known = between(["c-1", "c-2", "c-3"], missed)
    assert evaluated("kafka", "__kafka_voters_trying_back", known) == trying


@pytest.mark.parametrize(
    ("accepted", "everything"), [([], False), ("a,b", False), (["all"], True), ("a, all", True)]
)
def test_who_accepts_that_all_is_away_needs_no_other_voter(accepted, everything):
    known = {"kafka_accept_unavailable": accepted}
    assert evaluated("kafka", "__kafka_accepts_all", known) is everything


@pytest.mark.parametrize(
    ("tries", "missed"),
    [
        ({"c-2": ["c-1"], "c-3": ["c-1"]}, True),
        ({"c-2": ["c-1", "c-3"], "c-3": []}, False),
        # not of this run
        ({"c-2": ["c-1"], "c-3": None}, True),
        ({"c-2": None, "c-3": None}, False),
    ],
)
def test_the_turn_of_a_voter_that_the_others_miss_comes_first(tries, missed):
    facts = {
        each: {} if one is None else {"kafka_voters_tried": {"unreached": one}}
        for each, one in tries.items()
    }
    known = between(["c-1", "c-2", "c-3"], [], hostvars={"c-1": {}, **facts})
    assert evaluated("kafka", "__kafka_voter_is_missed", known) is missed
    steps = {each["name"]: each for each in tasks_from("kafka", "start_together.yml")}
    noted = steps["Note what decides the order of the turns"]["ansible.builtin.set_fact"]
    assert "and not __kafka_voter_is_missed" in noted["__kafka_turn"]["healthy"]


def test_voters_are_tried_before_one_of_them_stops_and_after_the_last_turn():
    steps = [each["name"] for each in tasks_from("kafka", "turn.yml")]
    assert steps.index("Refuse to go on while they do not reach each other") < steps.index(
        "Wait until this broker may stop"
    )
    plays = yaml.safe_load((ROLES.parent / "playbooks/phases/run.yml").read_text())
    names = [each["name"] for each in plays]
    last = names.index("Restart the broker that was the controller at its turn")
    assert names[last + 1] == "See that voters which have restarted are reached by the others"

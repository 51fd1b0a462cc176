# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that every task of roles and playbooks keeps; read from the YAML, so that a new task keeps them, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.kafkaops.cluster.plugins.action.preflight import ASKED

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/**/*.yml")])
BLOCKS = ("block", "rescue", "always")
LISTS = (*BLOCKS, "tasks", "pre_tasks", "post_tasks", "handlers")
# They look at all clusters of the inventory at once, and stand below no condition of one cluster.
ONCE_FOR_ALL = {
    "roles/preflight/tasks/main.yml",
    "roles/host_baseline/tasks/firewall.yml",
    "roles/jvm_service/tasks/obtain.yml",
    "roles/kafka/tasks/obtain_plugins.yml",
    "roles/flow_validation/tasks/fetch.yml",
    "roles/aws/tasks/provision.yml",
    "roles/aws/tasks/delete.yml",
    "playbooks/phases/checked.yml",
    "playbooks/phases/has_hosts.yml",
    "playbooks/phases/obtain.yml",
    "playbooks/phases/lock.yml",
    "playbooks/phases/members.yml",
    "playbooks/phases/reach_before.yml",
    "playbooks/phases/unlock.yml",
    "playbooks/start.yml",
    "playbooks/phases/broker.yml",
    "playbooks/phases/one_broker.yml",
    "playbooks/teardown.yml",
}


def tasks_of(path):
    """Yield (where, task, vars) of every task and block of a file; vars with those of the blocks around."""

    def walk(items, around):
        for item in items or []:
            variables = {**around, **(item.get("vars") or {})}
            yield f"{path.relative_to(ROOT)}: {item.get('name')}", item, variables
            for key in LISTS:
                yield from walk(item.get(key), variables)

    yield from walk(yaml.safe_load(path.read_text(encoding="utf-8")), {})


ALL = [task for path in FILES for task in tasks_of(path)]


def test_a_task_on_the_controller_never_becomes_another_user():
    """An inventory's `ansible_become: true` in `all` holds for localhost, too, and wins over the keyword."""
    delegated = [
        (where, variables)
        for where, task, variables in ALL
        if re.search(r"kafka_admin_host|localhost", str(task.get("delegate_to", "")))
        or task.get("local_action")
    ]
    assert len(delegated) > 5
    assert [
        where for where, variables in delegated if variables.get("ansible_become") is not False
    ] == []


def test_what_has_lines_is_shown_as_one_text_of_lines():
    """A list's items are folded at 80 characters: the columns of a table would stand below each other."""
    shown = {
        where: str(task["ansible.builtin.debug"].get("msg", ""))
        for where, task, _variables in ALL
        if isinstance(task.get("ansible.builtin.debug"), dict)
    }
    with_lines = {
        where: text
        for where, text in shown.items()
        if re.search(r"lines\b|\.report\b|_turns\b|__kafka_said", text)
        and "| last" not in text
        and "join('; ')" not in text
    }
    assert len(with_lines) > 8
    assert [
        where for where, text in with_lines.items() if "kafkaops.cluster.shown_lines" not in text
    ] == []


def test_who_acts_for_all_is_the_first_by_the_inventory():
    """Ansible's operations on sets keep no order, and another one in each run."""
    sets = re.compile(
        r"\b(intersect|difference|symmetric_difference)\([^{}|]*\)\s*\|\s*(first|last)\b"
    )
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in (*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/*/*.yml"))
    }
    assert [
        f"{path}: {found[0]}" for path, text in texts.items() for found in sets.finditer(text)
    ] == []
    assert any(
        re.search(r"select\('in', ansible_play_hosts\) \| first", text) for text in texts.values()
    )


def test_what_is_done_once_for_each_cluster_is_not_done_once_for_all():
    """run_once takes the first host of the play: of two clusters, the second would be left out in silence."""
    once = {where.partition(":")[0] for where, task, _variables in ALL if "run_once" in task}
    assert once - ONCE_FOR_ALL == set()


STARTS_OR_STOPS = {
    *(
        "start.yml",
        "start_together.yml",
        "stop.yml",
        "stop_gated.yml",
        "retire.yml",
        "teardown.yml",
        "turn.yml",
    ),
    *("resize.yml", "drills.yml", "drills_quorum.yml", "drill_mend.yml"),
    # nobody shall restart a broker while it measures
    "benchmark.yml",
}


MOVES = {"drain.yml", "spread.yml"}


def test_clusters_of_one_inventory_are_measured_one_after_the_other():
    """They may share machines, disks and the host of the load: each would be called slower than it is."""
    loads = [
        task.get("throttle")
        for _where, task, _variables in ALL
        if "part" not in task.get("kafkaops.cluster.kafka_benchmark", {"part": ""})
    ]
    assert loads == [1]


def parts_of(path):
    """Yield (what, tags) of a playbook in its order: `lock`, `unlock`, or `acts` where it starts or stops something."""
    for play in yaml.safe_load(path.read_text(encoding="utf-8")):
        imported = play.get("ansible.builtin.import_playbook")
        tags = frozenset(play.get("tags") or ())
        if imported in ("phases/lock.yml", "phases/unlock.yml"):
            yield Path(imported).stem, tags
        elif imported and Path(imported).parent.name == "phases":
            inner = list(parts_of(ROOT / "playbooks" / imported))
            yield from [("acts", tags | more) for what, more in inner if what == "acts"]
        elif imported is None:
            included = (
                task.get("ansible.builtin.include_role") or {} for task in play.get("tasks") or ()
            )
            if any(each.get("tasks_from") in STARTS_OR_STOPS for each in included):
                yield "acts", tags


def test_what_starts_or_stops_something_does_it_between_lock_and_unlock():
    acting = set()
    for path in sorted(ROOT.glob("playbooks/*.yml")):
        parts = list(parts_of(path))
        whats = [what for what, _tags in parts]
        if "acts" not in whats:
            # a lock of its own, beside that of those who start and stop
            assert whats == (["lock", "unlock"] if path.stem == "spread_disks" else []), path
            continue
        acting.add(path.stem)
        assert (whats[0], whats[-1]) == ("lock", "unlock"), path
        assert set(whats[1:-1]) == {"acts"}, path
        # whichever tag makes it act makes it lock
        (tags,) = {tags for what, tags in parts if what != "acts"}
        assert all(more == tags for what, more in parts if what == "acts"), path
    assert {"site", "start", "stop", "teardown", "rolling_restart", "rolling_upgrade"} <= acting


def plays_of(path, around=frozenset()):
    """Yield (file and name, tags) of each play of a playbook, phases included, with the tags of their imports."""
    for play in yaml.safe_load(path.read_text(encoding="utf-8")):
        tags = around | frozenset(play.get("tags") or ())
        imported = play.get("ansible.builtin.import_playbook")
        if imported:
            yield from plays_of(path.parent / imported, tags)
        else:
            yield f"{path.name}: {play['name']}", tags


# What only puts files on hosts, so that a run that starts what they stage may do without.
STAGING = {"install", "configure"}


def test_no_tag_leaves_out_what_restricts_a_run_that_starts_or_stops_something():
    """A play without tags is skipped with --tags run: one that refuses or narrows down must not be."""
    looked_at = set()
    for path in sorted(ROOT.glob("playbooks/*.yml")):
        locks = {tags for what, tags in parts_of(path) if what == "lock"}
        if not any("run" in tags for tags in locks):
            continue
        looked_at.add(path.stem)
        plays = list(plays_of(path))
        ends = [name.startswith("unlock.yml: ") for name, _tags in plays].index(True)
        assert [
            name
            for name, tags in plays[:ends]
            if not tags & {"run", "always"} and not (tags and tags <= STAGING)
        ] == [], path
    assert {"site", "replace_broker", "rolling_restart", "rollback"} <= looked_at


def test_whether_one_broker_stops_is_decided_once_and_by_the_command_line_alone():
    """A variable of hosts called `broker` is seen by conditions and by no pattern: halves of two ways would run."""
    plays = yaml.safe_load((ROOT / "playbooks" / "stop.yml").read_text(encoding="utf-8"))
    assert plays[0]["ansible.builtin.import_playbook"] == "phases/broker_preflight.yml"
    conditions = [str(each["when"]) for each in plays if "when" in each]
    assert len(conditions) == 5
    assert all(each.startswith("kafkaops_preflight is ") for each in conditions)


@pytest.mark.parametrize(
    "more, options",
    [({}, ""), ({"kafkaops_preflight": {}}, " -e broker=7")],
)
def test_a_broker_that_was_out_of_reach_is_stopped_alone_again(command_line, more, options):
    """A run for its host without -e broker would skip the gate, and stop its ZooKeeper server, too."""
    plays = DataLoader().load_from_file(
        str(ROOT / "playbooks" / "stop.yml"), trusted_as_template=True
    )
    own = plays[-1]["vars"]
    command_line(broker=7)
    told = Templar(loader=DataLoader(), variables=more).template(own["left_options"])
    assert told == options
    text = (ROOT / "playbooks" / "phases" / "left.yml").read_text(encoding="utf-8")
    assert "--limit {{ inventory_hostname }}{{ left_options | default('') }} when" in text


@pytest.mark.parametrize("playbook", ["stop", "teardown"])
@pytest.mark.parametrize("metadata, told", [("zookeeper", True), ("kraft", False), (None, True)])
def test_zookeeper_is_spoken_of_where_there_is_one(playbook, metadata, told):
    plays = DataLoader().load_from_file(
        str(ROOT / "playbooks" / f"{playbook}.yml"), trusted_as_template=True
    )
    (hint,) = [each["vars"]["left_hint"] for each in plays if "left_hint" in each.get("vars", {})]
    variables = {"kafka_metadata": metadata} if metadata else {}
    text = Templar(loader=DataLoader(), variables=variables).template(hint)
    assert text.startswith("What could not be reached may still run.")
    assert ("ZooKeeper" in text) is told


@pytest.mark.parametrize("playbook", ["stop", "teardown"])
def test_what_acts_without_a_preflight_judges_its_command_before(playbook):
    text = (ROOT / "playbooks" / f"{playbook}.yml").read_text(encoding="utf-8")
    assert text.index("phases/members.yml") < text.index("phases/lock.yml")
    (play,) = yaml.safe_load((ROOT / "playbooks/phases/members.yml").read_text(encoding="utf-8"))
    first = play["tasks"][0]
    assert first["kafkaops.cluster.preflight"]["phase"] == "command" and first["run_once"]
    # a dead host is no matter
    assert first["vars"]["ansible_connection"] == "local"


# They change a live cluster, or may.
PROVEN = {
    *("rolling_restart", "rolling_upgrade", "rollback"),
    *("scale_out", "scale_in", "replace_broker", "scale_zookeeper"),
    *("scale_controllers", "dynamic_quorum", "migrate_to_kraft", "migrate_back"),
}


def includes_of(path, around=frozenset()):
    """Yield (file and name, tags around it, tags it applies) of each role that the plays of a playbook include."""
    for play in yaml.safe_load(path.read_text(encoding="utf-8")):
        tags = around | frozenset(play.get("tags") or ())
        imported = play.get("ansible.builtin.import_playbook")
        if imported:
            yield from includes_of(path.parent / imported, tags)
        for task in play.get("tasks") or ():
            role = task.get("ansible.builtin.include_role")
            if role:
                own = tags | frozenset(task.get("tags") or ())
                applied = frozenset((role.get("apply") or {}).get("tags") or ())
                yield f"{path.name}: {task['name']}", own, applied


@pytest.mark.parametrize("name", sorted({"start", "stop", "spread_disks"} | PROVEN))
def test_with_tags_run_a_playbook_does_all_that_it_is_for(name):
    """Plays without tags would be left out, and the run that has done nothing would end well."""
    path = ROOT / "playbooks" / f"{name}.yml"
    assert [each for each, tags in plays_of(path) if not tags] == []
    # Nor has a task of an included role the tags of what includes it.
    acting = [each for each in includes_of(path) if each[1] & {"run", "always"}]
    assert acting
    assert [each for each, tags, applied in acting if not (tags | {"always"}) & applied] == []


def test_who_narrows_a_run_down_looks_up_what_is_staged():
    """With --tags run nothing was staged in this run, and phases/run.yml would start all that is pending."""
    for name in ("replace_broker", "rolling_restart"):
        names = [each for each, _tags in plays_of(ROOT / "playbooks" / f"{name}.yml")]
        (choice,) = [each for each in names if each.startswith(f"{name}.yml: Choose")]
        assert names[names.index(choice) - 1] == "staged.yml: Look up what is staged for Kafka"


# Made by the preflight (or phases/members.yml), before every other play.
MEMBERS = {"kafkaops_members", "kafkaops_run", "kafkaops_kafka", "kafkaops_zookeeper"}


def test_a_group_that_may_be_made_for_nobody_is_asked_for_without_a_warning(tmp_path, capsys):
    """Ansible warns of a group that is not there, and an operator at night wonders what is wrong."""
    (tmp_path / "hosts.yml").write_text("all: {hosts: {a: {}, b: {}}}")
    inventory = InventoryManager(DataLoader(), sources=[str(tmp_path / "hosts.yml")])
    asked = set()
    for path in sorted(ROOT.glob("playbooks/**/*.yml")):
        for play in DataLoader().load_from_file(str(path), trusted_as_template=True):
            hosts = str(play.get("hosts", ""))
            found = set(re.findall(r"kafkaops_\w+", hosts)) - MEMBERS
            for group in found:
                asked.add(group)
                for groups, expected in (({}, "all:!all"), ({group: ["a"]}, group)):
                    templar = Templar(loader=DataLoader(), variables={"groups": groups})
                    assert templar.template(play["hosts"]) == expected, (path, group)
    assert {"kafkaops_kafka_put_off", "kafkaops_kafka_restarted", "kafkaops_kafka_turns"} <= asked
    assert inventory.get_hosts("all:!all") == [] and not capsys.readouterr().err
    assert len(inventory.get_hosts("all")) == 2


@pytest.mark.parametrize("name", sorted(PROVEN))
def test_a_proof_begins_before_the_change_and_ends_behind_it(name):
    path = ROOT / "playbooks" / f"{name}.yml"
    steps = []
    for play in yaml.safe_load(path.read_text(encoding="utf-8")):
        imported = play.get("ansible.builtin.import_playbook", "")
        included = [
            (task.get("ansible.builtin.include_role") or {}).get("tasks_from")
            for task in play.get("tasks") or ()
        ]
        if imported == "phases/prove.yml":
            steps.append(play["vars"]["kafkaops_validation"])
        elif imported in ("phases/lock.yml", "phases/unlock.yml"):
            steps.append(Path(imported).stem)
        elif imported == "phases/run.yml" or {*STARTS_OR_STOPS, *MOVES} & set(included):
            steps.append("acts")
    assert steps[:2] == ["lock", "begin"] and steps[-2:] == ["unlock", "end"], steps
    assert steps[2:-2] and set(steps[2:-2]) == {"acts"}, steps
    assert "-e prove=true" in path.read_text(encoding="utf-8").partition("---")[0]


def test_a_service_is_removed_only_when_its_stopped_broker_holds_nothing():
    """A topic that is made between the look and the stop would be gone with it."""
    steps = []
    for _where, task, _variables in tasks_of(ROOT / "roles" / "kafka" / "tasks" / "retire.yml"):
        instance = task.get("kafkaops.cluster.jvm_instance")
        if instance:
            steps.append(instance["state"])
        elif "kafkaops.cluster.kafka_cluster_info" in task:
            steps.append("look")
        elif "replica_holders" in str(task.get("when")):
            steps.append("keep")
    assert steps[-4:] == ["stopped", "look", "keep", "removed"]


@pytest.mark.parametrize(
    "path, first, change",
    [
        # a voter that is down meanwhile could not start afterwards
        ("playbooks/dynamic_quorum.yml", "start_as_before.yml", "dynamic.yml"),
        ("roles/kafka/tasks/dynamic.yml", "gate_plan.yml", "finalise.yml"),
        ("playbooks/scale_controllers.yml", "gate_early.yml", "voters.yml"),
        # who is emptied, and who votes, is asked for at brokers
        ("playbooks/scale_controllers.yml", "start_as_before.yml", "drain.yml"),
        ("playbooks/scale_controllers.yml", "voters_now.yml", "gate_early.yml"),
        ("playbooks/scale_zookeeper.yml", "gate_early.yml", "resize.yml"),
    ],
)
def test_what_may_be_in_the_way_is_seen_before_the_quorum_changes(path, first, change):
    """All nodes restart afterwards: what can never pass is refused while all is as it was."""
    included = [
        task.get("ansible.builtin.include_tasks")
        or (task.get("ansible.builtin.include_role") or {}).get("tasks_from")
        for _where, task, _variables in tasks_of(ROOT / path)
    ]
    assert included.index(first) < included.index(change)


@pytest.mark.parametrize(
    "playbook, running, empty",
    [
        ("topics", [], False),
        ("topics", ["kafka-1"], False),
        ("site", ["kafka-1"], False),
        # before a first installation its topics are those of an empty cluster
        ("site", [], True),
    ],
)
def test_only_a_cluster_that_never_ran_is_planned_as_an_empty_one(playbook, running, empty):
    loader = DataLoader()
    plays = loader.load_from_file(
        str(ROOT / "playbooks" / f"{playbook}.yml"), trusted_as_template=True
    )
    role = loader.load_from_file(
        str(ROOT / "roles" / "kafka" / "vars" / "main.yml"), trusted_as_template=True
    )
    imported = [
        each for each in plays if each.get("ansible.builtin.import_playbook") == "phases/state.yml"
    ]
    variables = {
        **{name: role[name] for name in ("__kafka_must_run", "__kafka_ran")},
        "__kafka_members": ["kafka-1", "kafka-2"],
        "kafkaops_preflight": {"running": {"kafka": running}},
        **(imported[0].get("vars") or {}),
    }
    (block,) = loader.load_from_file(
        str(ROOT / "roles" / "kafka" / "tasks" / "topics.yml"), trusted_as_template=True
    )
    modules = ("kafkaops.cluster.kafka_topics", "kafkaops.cluster.kafka_retention")
    told = [
        Templar(loader=loader, variables=variables).template(
            task[name]["assume_empty_if_unreachable"]
        )
        for task in block["block"]
        for name in modules
        if name in task
    ]
    assert told == [empty, empty]


@pytest.mark.parametrize("name", ["scale_in", "scale_out", "spread_disks"])
def test_a_cancellation_does_nothing_else(command_line, name):
    """All but the preflight, the lock and the cancellation itself is left out, and the preflight refuses nothing."""
    path = ROOT / "playbooks" / f"{name}.yml"
    command_line(cancel="true")
    done = []
    for play in DataLoader().load_from_file(str(path), trusted_as_template=True):
        imported = play.get("ansible.builtin.import_playbook", "")
        for task in play.get("tasks") or [play]:
            conditions = task.get("when", [])
            conditions = conditions if isinstance(conditions, list) else [conditions]
            barred = any(
                "cancel" in str(each)
                and not Templar(loader=DataLoader()).evaluate_conditional(each)
                for each in conditions
            )
            role = task.get("ansible.builtin.include_role") or {}
            if not barred:
                done.append(role.get("tasks_from") or imported)
        if imported == "preflight.yml":
            enforce = play["vars"]["preflight_enforce"]
            for given, expected in (({}, True), ({"cancel": "true"}, False)):
                command_line(**given)
                assert Templar(loader=DataLoader()).template(enforce) is expected
    # it may be about one broker
    named = ["phases/one_broker.yml"] if name == "spread_disks" else []
    lock, unlock = "phases/lock.yml", "phases/unlock.yml"
    assert done == ["preflight.yml", *named, lock, "cancel.yml", unlock]
    assert "-e cancel=true" in path.read_text(encoding="utf-8").partition("---")[0]


@pytest.mark.parametrize("product", ["zookeeper", "kafka"])
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"a": False, "b": False}, "100%"),
        ({"a": False, "b": True}, 1),
        ({"a": False}, 1),
        (None, 1),
    ],
    ids=["nothing pending", "one pending", "one unknown", "no facts at all"],
)
def test_hosts_take_turns_unless_it_is_known_that_nothing_is_pending(product, facts, expected):
    plays = DataLoader().load_from_file(
        str(ROOT / "playbooks" / "phases" / "run.yml"), trusted_as_template=True
    )
    group = f"kafkaops_{product}_turns"
    (serial,) = [
        play["serial"] for play in plays if f"'{group}' in groups" in play.get("hosts", "")
    ]
    variables = {"groups": {f"kafkaops_{product}_turns": ["a", "b"]}}
    if facts is not None:
        known = {
            name: {f"{product}_staged": {"restart_pending": value}} for name, value in facts.items()
        }
        variables["hostvars"] = {"a": {}, "b": {}, **known}
    found = Templar(loader=DataLoader(), variables=variables).template(serial)
    assert found == expected


def told_by(playbook, play_name, variable, variables):
    """The value of a variable of a play, with variables as they are for one host."""
    plays = DataLoader().load_from_file(
        str(ROOT / "playbooks" / playbook), trusted_as_template=True
    )
    (own,) = [play["vars"] for play in plays if play["name"] == play_name]
    return Templar(loader=DataLoader(), variables={**own, **variables}).template(own[variable])


A, B = ({"kafka_cluster_name": name} for name in "AB")


@pytest.mark.parametrize(
    "playbook, play_name",
    [
        ("leadership.yml", "Choose whose leadership is given back"),
        ("prove.yml", "Prove the change"),
        ("prove.yml", "Refuse a proof that nobody could begin"),
    ],
)
@pytest.mark.parametrize(
    "broker, clusters",
    [({}, "AB"), ({"kafkaops_broker": "a2"}, "A"), ({"kafkaops_broker": "b1"}, "B")],
)
def test_a_run_for_one_broker_leaves_other_clusters_alone(
    command_line, playbook, play_name, broker, clusters
):
    """A cluster that is down would end it, or be proved for nothing."""
    plays = DataLoader().load_from_file(
        str(ROOT / "playbooks" / "phases" / playbook), trusted_as_template=True
    )
    (play,) = [each for each in plays if each["name"] == play_name]
    (task,) = play["tasks"]
    conditions = task["when"] if isinstance(task["when"], list) else [task["when"]]
    nodes = {"A": [{"host": "a1"}, {"host": "a2"}], "B": [{"host": "b1"}]}
    command_line(prove=True)
    concerned = ""
    for cluster, host in (("A", "a1"), ("B", "b1")):
        variables = {
            **(task.get("vars") or {}),
            **broker,
            "kafka_cluster_name": cluster,
            "inventory_hostname": host,
            "ansible_check_mode": False,
            "kafkaops_validation": "begin",
            "kafkaops_preflight": {
                "nodes": nodes,
                "cluster_first": {} if "Refuse" in play_name else {"A": "a1", "B": "b1"},
            },
        }
        told = Templar(loader=DataLoader(), variables=variables)
        if all(told.evaluate_conditional(each) for each in conditions):
            concerned += cluster
    assert concerned == clusters


@pytest.mark.parametrize(
    "restarted, trying",
    [
        (["a1"], {"a1", "a2"}),
        (["b2"], {"b1", "b2"}),
        (["a1", "b1"], {"a1", "a2", "b1", "b2"}),
        # a broker that does not vote
        (["a3"], set()),
    ],
)
def test_only_voters_of_a_cluster_in_which_one_has_restarted_try_each_other(restarted, trying):
    plays = DataLoader().load_from_file(
        str(ROOT / "playbooks" / "phases" / "run.yml"), trusted_as_template=True
    )
    (play,) = [each for each in plays if each["name"].startswith("See that voters which have")]
    conditions = play["tasks"][-1]["when"]
    found = set()
    for host in ("a1", "a2", "a3", "b1", "b2"):
        variables = {
            **play["vars"],
            "inventory_hostname": host,
            "kafka_cluster_name": host[0].upper(),
            "groups": {"kafkaops_kafka_restarted": restarted},
            "kafkaops_preflight": {
                "voters": {
                    name.upper(): {"stay": [{"host": f"{name}1"}, {"host": f"{name}2"}]}
                    for name in "ab"
                }
            },
        }
        told = Templar(loader=DataLoader(), variables=variables)
        listed = conditions if isinstance(conditions, list) else [conditions]
        if all(told.evaluate_conditional(each) for each in listed):
            found.add(host)
    assert found == trying


@pytest.mark.parametrize(
    "staged, named",
    [
        ({"zookeeper_staged": {"running": False, "deployed": True}}, "playbooks/start.yml"),
        # a new machine, for which start.yml has nothing to start
        ({"zookeeper_staged": {"running": False, "deployed": False}}, "playbooks/site.yml"),
        ({"zookeeper_staged": {"running": True, "deployed": True}}, ""),
        ({"zookeeper_staged": {"skipped": True}}, ""),
        ({}, ""),
    ],
)
def test_a_replacement_names_the_servers_that_it_leaves_down(staged, named):
    plays = DataLoader().load_from_file(
        str(ROOT / "playbooks" / "replace_broker.yml"), trusted_as_template=True
    )
    (play,) = [each for each in plays if each["name"] == "Name the ZooKeeper servers that are down"]
    (task,) = play["tasks"]
    told = Templar(loader=DataLoader(), variables={**staged, "inventory_hostname": "z"})
    assert told.evaluate_conditional(task["when"]) is bool(named)
    if named:
        said = told.template(task["ansible.builtin.debug"]["msg"])
        assert re.findall(r"playbooks/\w+\.yml", said) == [named]


@pytest.mark.parametrize(
    "check, running, planned",
    [(True, [], ""), (True, ["a1"], "A"), (True, ["a1", "b1"], "AB"), (False, [], "AB")],
)
def test_a_cluster_that_does_not_run_is_not_asked_in_check_mode(
    command_line, check, running, planned
):
    """Where another cluster of the inventory runs, it was."""
    plays = DataLoader().load_from_file(
        str(ROOT / "playbooks" / "scale_out.yml"), trusted_as_template=True
    )
    (play,) = [each for each in plays if each["name"].startswith("Spread the replicas")]
    (task,) = play["tasks"]
    command_line()
    found = ""
    for cluster, host in (("A", "a1"), ("B", "b1")):
        variables = {
            "kafka_cluster_name": cluster,
            "inventory_hostname": host,
            "ansible_check_mode": check,
            "kafkaops_preflight": {
                "cluster_first": {"A": "a1", "B": "b1"},
                "brokers": {"A": [{"host": "a1"}], "B": [{"host": "b1"}]},
                "running": {"kafka": running},
            },
        }
        told = Templar(loader=DataLoader(), variables=variables)
        found += cluster if all(map(told.evaluate_conditional, task["when"])) else ""
    assert found == planned


@pytest.mark.parametrize(
    "playbook, variable",
    [("scale_zookeeper", "zookeeper_leaves"), ("scale_controllers", "controllers_leave")],
)
@pytest.mark.parametrize(
    "given, leaving",
    [
        ("a, b", ["a", "b"]),
        (["a", "b"], ["a", "b"]),
        (["a,b", " c"], ["a", "b", "c"]),
        (7, ["7"]),
        *((given, []) for given in ("", None, [], ",")),
    ],
)
def test_who_leaves_is_a_text_with_commas_or_a_list(
    command_line, playbook, variable, given, leaving
):
    plays = DataLoader().load_from_file(
        str(ROOT / "playbooks" / f"{playbook}.yml"), trusted_as_template=True
    )
    command_line(**{variable: given})
    template = plays[0]["vars"]["preflight_leaving"]
    assert Templar(loader=DataLoader()).template(template) == leaving


STILL_RUNS = {"kafka_stop": {"failed": True}}


@pytest.mark.parametrize(
    ("cluster", "expected"), [(A, ["a1"]), (B, []), ({}, ["default"])], ids=["A", "B", "default"]
)
def test_a_broker_that_does_not_stop_keeps_the_zookeeper_of_its_own_cluster_only(cluster, expected):
    hostvars = {
        "a1": {**A, **STILL_RUNS},
        "a2": {**A, "kafka_stop": {"changed": True}},
        "a3": {**A, "kafka_stop": {"unreachable": True}},
        "b1": {**B, "kafka_stop": {"changed": True}},
        "default": STILL_RUNS,
        "never asked": A,
    }
    variables = {**cluster, "groups": {"kafkaops_kafka": list(hostvars)}, "hostvars": hostvars}
    found = told_by("phases/stop.yml", "Stop ZooKeeper", "kafkaops_still_stopping", variables)
    assert found == expected


C = {"kafka_cluster_name": "C"}
BOTH = {"kafkaops_zookeeper": ["a", "b"]}
ONE = {"kafkaops_zookeeper": ["b"], "kafkaops_zookeeper_running": ["b"]}


@pytest.mark.parametrize(
    ("cluster", "groups", "left", "ensembles", "expected"),
    [
        (A, {**BOTH, "kafkaops_zookeeper_running": ["a", "b"]}, (), {}, True),
        (A, {**BOTH, "kafkaops_zookeeper_running": ["b"]}, (), {}, False),
        (B, {**BOTH, "kafkaops_zookeeper_running": ["b"]}, (), {}, True),
        (A, {"kafkaops_zookeeper": ["a"]}, (), {}, False),
        # not in the run, or out of reach: nobody knows
        (A, {}, (), {}, True),
        (A, {"kafkaops_zookeeper": ["b"], "kafkaops_zookeeper_running": ["b"]}, (), {}, True),
        # left out by the preflight, with and without another one that serves
        (A, {"kafkaops_run": ["a", "k"]}, ("a",), {}, False),
        (B, {"kafkaops_run": ["a", "k"]}, ("a",), {}, True),
        (C, {**ONE, "kafkaops_run": ["a", "b", "k"]}, ("a",), {}, True),
        (C, {**ONE, "kafkaops_run": ["a", "b", "k"]}, ("a",), {"b": {"failed": True}}, False),
        # known from elsewhere than the run
        (A, {"kafkaops_run": ["k"]}, ("a",), {}, True),
        (
            A,
            {**BOTH, "kafkaops_zookeeper_running": ["a", "b"]},
            (),
            {"a": {"failed": True}},
            False,
        ),
        (
            B,
            {**BOTH, "kafkaops_zookeeper_running": ["a", "b"]},
            (),
            {"a": {"failed": True}, "b": {"changed": False, "failed": False}},
            True,
        ),
    ],
)
def test_brokers_are_started_where_the_zookeeper_of_their_own_cluster_serves(
    cluster, groups, left, ensembles, expected
):
    hostvars = {
        name: {"zookeeper_ensemble": ensembles[name]} if name in ensembles else {} for name in "ab"
    }
    servers = {"A": [{"host": "a"}], "B": [{"host": "b"}], "C": [{"host": "a"}, {"host": "b"}]}
    groups = {"kafkaops_run": ["k", *groups.get("kafkaops_zookeeper", ())], **groups}
    variables = {
        **cluster,
        "inventory_hostname": "k",
        "ansible_check_mode": False,
        "groups": {**groups, "kafkaops_in_zookeeper": ["k"]},
        "hostvars": hostvars,
        "kafkaops_preflight": {"servers": servers, "left": dict.fromkeys(left, "no disk")},
    }
    name = "Start the brokers that are down, as they ran last"
    assert told_by("start.yml", name, "kafkaops_served", variables) is expected
    # in the midst of a migration a broker may have its metadata in KRaft, and needs none
    variables["groups"] = groups
    assert told_by("start.yml", name, "kafkaops_served", variables) is True


IDLE = {"running": True, "restart_pending": False, "live_changes": None}


LEFT_OVER = {**IDLE, "live_changes": {"settings": {}, "own": {"a": "1"}}}
# What scale_zookeeper.yml leaves of a server that has had its turn.
HAS_HAD_ITS_TURN = {"restart_pending": False, "running": True, "answers": []}


@pytest.mark.parametrize(
    ("product", "second", "expected"),
    [
        *(
            (product, second, expected)
            for product in ("zookeeper", "kafka")
            for second, expected in (
                (IDLE, True),
                ({**IDLE, "restart_pending": True}, False),
                ({**IDLE, "running": False}, False),
                ({"skipped": True}, False),
                (None, False),
            )
        ),
        ("kafka", LEFT_OVER, False),
        ("zookeeper", HAS_HAD_ITS_TURN, True),
    ],
)
def test_only_where_there_is_known_to_be_nothing_to_do_nothing_is_asked(product, second, expected):
    plays = DataLoader().load_from_file(
        str(ROOT / "playbooks" / "phases" / "run.yml"), trusted_as_template=True
    )
    (idle,) = [
        play["vars"]["kafkaops_idle"]
        for play in plays
        if f"{product}_staged" in play.get("vars", {}).get("kafkaops_idle", "")
    ]
    staged = f"{product}_staged"
    hostvars = {"a": {staged: IDLE}, "b": {} if second is None else {staged: second}}
    variables = {"ansible_play_hosts": ["a", "b"], "hostvars": hostvars}
    assert Templar(loader=DataLoader(), variables=variables).template(idle) is expected


@pytest.mark.parametrize("product, kind", [("ZooKeeper servers", "servers"), ("brokers", "nodes")])
@pytest.mark.parametrize(
    "cluster, play, check, broker, expected",
    [
        (A, ["b", "a", "c"], False, None, ("a", "a")),
        (A, ["c", "b"], False, None, ("b", "b")),
        (B, ["a", "b", "c"], False, None, ("c", "c")),
        (A, ["c"], False, None, ("", "")),
        (A, ["a", "b", "c"], True, None, ("", "")),
        # the run is about this broker, and about no other cluster
        (A, ["a", "b", "c"], False, "b", ("", "b")),
        (B, ["a", "b", "c"], False, "b", ("", "")),
        (A, ["a", "b", "c"], True, "b", ("", "")),
    ],
)
def test_at_the_end_of_each_run_one_of_each_cluster_waits_for_all(
    product, kind, cluster, play, check, broker, expected
):
    """Also where nothing was pending: a second run finds what the first one has started, and waited for in vain."""
    variables = {
        **cluster,
        "ansible_check_mode": check,
        "ansible_play_hosts": play,
        "kafkaops_preflight": {kind: {"A": [{"host": "a"}, {"host": "b"}], "B": [{"host": "c"}]}},
        **({"kafkaops_broker": broker} if broker else {}),
    }
    end = "serve" if kind == "servers" else "are in sync"
    name = f"See that the {product} of the run {end}"
    found = told_by("phases/run.yml", name, "kafkaops_asking", variables)
    assert found == expected[kind == "nodes"]
    plays = yaml.safe_load((ROOT / "playbooks" / "phases" / "run.yml").read_text())
    names = [each["name"] for each in plays]
    assert names.index("Give leadership back") > names.index(name)
    assert names.index(name) > names.index("Restart the broker that was the controller at its turn")
    ends, task = plays[names.index(name)]["tasks"]
    assert (
        ends["ansible.builtin.meta"] == "end_play" and ends["when"] == "kafkaops_open | length == 0"
    )
    assert task["ansible.builtin.include_role"]["tasks_from"] == "wait.yml"
    assert task["when"][0] == "inventory_hostname == kafkaops_asking"


SERVES = {"answers": ["Mode: follower"]}
DEAF = {"answers": ["This ZooKeeper instance is not currently serving requests"]}


@pytest.mark.parametrize(
    "staged, turned, expected",
    [
        ([SERVES, SERVES, SERVES], [], []),
        # an earlier run has started it, and has not waited until it served
        ([SERVES, DEAF, SERVES], [], ["A"]),
        ([SERVES, {"answers": []}, SERVES], [], ["A"]),
        ([SERVES, None, SERVES], [], ["A"]),
        # whoever was started was waited for, with the others of the cluster
        ([SERVES, DEAF, SERVES], ["a"], []),
        ([SERVES, DEAF, SERVES], ["c"], ["A"]),
        ([DEAF, SERVES, DEAF], ["c"], ["A"]),
        ([SERVES, SERVES, None], [], ["B"]),
    ],
)
def test_servers_are_waited_for_where_nobody_has_done_so(staged, turned, expected):
    hosts = dict(zip("abc", staged))
    variables = {
        "ansible_play_hosts": list(hosts),
        "hostvars": {
            host: {
                **({"zookeeper_staged": each} if each else {}),
                **({"zookeeper_turn": {"changed": True}} if host in turned else {}),
            }
            for host, each in hosts.items()
        },
        "kafkaops_preflight": {
            "servers": {"A": [{"host": "a"}, {"host": "b"}], "B": [{"host": "c"}]}
        },
    }
    name = "See that the ZooKeeper servers of the run serve"
    assert told_by("phases/run.yml", name, "kafkaops_open", variables) == expected


@pytest.mark.parametrize(
    "in_sync, turned, play, expected",
    [
        ({"A": [1, 2], "B": [1]}, [], "abc", []),
        # an earlier run has started it, and has not waited until it was in sync
        ({"A": [1], "B": [1]}, [], "abc", ["A"]),
        ({"A": [1], "B": [1]}, [], "ac", []),
        ({"A": [1, 2]}, [], "abc", ["B"]),
        ({}, [], "abc", ["A", "B"]),
        ({}, [], "", []),
        # whoever had a turn was waited for, with the others of the cluster
        ({"A": [1], "B": [1]}, ["a"], "abc", []),
        ({"A": [1], "B": [1]}, ["c"], "abc", ["A"]),
    ],
)
def test_brokers_are_waited_for_where_nobody_has_done_so(in_sync, turned, play, expected):
    """The preflight has seen who is in sync; a look costs a module, and a process for each host."""
    nodes = {"A": [{"host": "a", "id": 1}, {"host": "b", "id": "2"}], "B": [{"host": "c", "id": 1}]}
    variables = {
        "ansible_play_hosts": list(play),
        "hostvars": {host: {"kafka_turn": {"changed": host in turned}} for host in "abc"},
        "kafkaops_preflight": {"nodes": nodes, "in_sync": in_sync},
    }
    name = "See that the brokers of the run are in sync"
    assert told_by("phases/run.yml", name, "kafkaops_open", variables) == expected


@pytest.mark.parametrize("number", [int, str])
@pytest.mark.parametrize(
    "given, found",
    [
        (1, "broker 1"),
        ("1", "broker 1"),
        (" 1\n", "broker 1"),
        *((given, None) for given in ("", "0,1", "kafka-1", "abc", "1.9", True, None, [1], 9, -1)),
    ],
)
def test_a_broker_is_named_by_its_id_and_by_nothing_else(command_line, given, found, number):
    """As a number everything that is none would be broker 0."""
    (play,) = DataLoader().load_from_file(
        str(ROOT / "playbooks" / "phases" / "broker.yml"), trusted_as_template=True
    )
    brokers = [{"host": f"broker {each}", "id": number(each)} for each in range(3)]
    command_line(broker=given)
    variables = {**play["vars"], "kafkaops_brokers": brokers}
    named = Templar(loader=DataLoader(), variables=variables).template(variables["kafkaops_named"])
    assert named == ([found] if found else [])


@pytest.mark.parametrize("given, found", [(1, ["a"]), (2, []), (3, [])])
def test_a_broker_is_not_named_by_an_id_that_is_a_guess(command_line, given, found):
    (play,) = DataLoader().load_from_file(
        str(ROOT / "playbooks" / "phases" / "broker.yml"), trusted_as_template=True
    )
    nodes = [{"host": host, "id": number} for number, host in enumerate("abc", 1)]
    ids = {"a": 1, "b": None, "c": None}
    variables = {
        **play["vars"],
        "ansible_play_hosts_all": ["a", "b", "c"],
        "kafkaops_preflight": {
            "nodes": {"A": nodes},
            "ids": {host: {"broker_id": number} for host, number in ids.items()},
        },
    }
    command_line(broker=given)
    templar = Templar(loader=DataLoader(), variables=variables)
    assert templar.template(variables["kafkaops_named"]) == found
    told = templar.template(play["tasks"][0]["ansible.builtin.fail"]["msg"])
    assert (
        "there are 1; the ids of b, c are not known, as these hosts do not answer" in told or found
    )


@pytest.mark.parametrize(
    "staged, stays",
    [
        ({"running": True, "restart_pending": True}, False),
        ({"running": True, "restart_pending": False}, True),
        ({"running": False, "restart_pending": True}, True),
        ({"skipped": True}, True),
        (None, True),
    ],
)
def test_brokers_are_asked_early_where_zookeeper_would_restart_first(staged, stays):
    plays = DataLoader().load_from_file(
        str(ROOT / "playbooks" / "phases" / "run.yml"), trusted_as_template=True
    )
    hostvars = {"zk": {} if staged is None else {"zookeeper_staged": staged}}
    variables = {
        "ansible_check_mode": False,
        "groups": {"kafkaops_zookeeper": ["zk"]},
        "hostvars": hostvars,
    }
    template = plays[0]["vars"]["kafkaops_zookeeper_stays"]
    assert Templar(loader=DataLoader(), variables=variables).template(template) is stays


def test_who_looks_again_after_a_killed_run_asks_what_was_asked_first():
    (play,) = yaml.safe_load((ROOT / "playbooks" / "phases" / "lock.yml").read_text())
    (task,) = [each for each in play["tasks"] if each["name"].startswith("Look again")]
    asked = {value.split(".")[2].split()[0] for value in task["vars"].values()}
    assert asked == set(ASKED) and len(task["vars"]) == len(ASKED)


@pytest.mark.parametrize(
    "prove, begins, first, refused",
    [
        (True, True, {}, True),
        ("true", True, {"other": "b"}, True),
        (True, True, {"kafka": "a"}, False),
        (True, False, {}, False),
        (None, True, {}, False),
    ],
)
def test_a_proof_of_a_cluster_without_a_broker_in_the_run_is_refused(
    command_line, prove, begins, first, refused
):
    """With --limit on hosts of ZooKeeper the play that begins it has no host, and says nothing."""
    path = ROOT / "playbooks" / "phases" / "prove.yml"
    play = DataLoader().load_from_file(str(path), trusted_as_template=True)[0]
    known = {
        "kafkaops_validation": "begin" if begins else "end",
        "kafkaops_preflight": {"cluster_first": first},
        "groups": {"kafkaops_members": ["zookeeper-1"]},
    }
    command_line(**({} if prove is None else {"prove": prove}))
    (task,) = play["tasks"]
    known.update(task["vars"])
    templar = Templar(loader=DataLoader(), variables=known)
    somebody = templar.template(play["hosts"]) == "kafkaops_members"
    assert (
        somebody and all(templar.evaluate_conditional(each) for each in task["when"])
    ) is refused


def test_no_phase_reads_the_argument_specs_again():
    """The preflight has judged each variable; reading them for each role cost a tenth of a run without a change."""
    roles = ("ansible.builtin.include_role", "ansible.builtin.import_role")
    phases = [item for item in ALL if item[0].startswith("playbooks/phases/")]
    found = [(where, task[name]) for where, task, _vars in phases for name in roles if name in task]
    assert len(found) > 30
    assert [where for where, role in found if role.get("rolespec_validate") is not False] == []

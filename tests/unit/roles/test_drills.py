# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which drills of a quorum a cluster has, as the preflight tells, and what the roles of its members have in common."""

from __future__ import annotations

import re

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from tests.support.role_variables import FACTS, ROLES, evaluated, refusal

BROKERS = ["one", "two", "three"]


def known(metadata, voters):
    """A cluster of three brokers, and hosts of voters; none is a ZooKeeper cluster's."""
    members = {"kafka": [{"host": host, "id": number} for number, host in enumerate(BROKERS, 1)]}
    stay = [{"host": host, "id": number} for number, host in enumerate(voters, 101)]
    preflight = {
        **FACTS["kafkaops_preflight"],
        "brokers": members,
        "nodes": members,
        "voters": {"kafka": {"stay": stay, "leave": [], "now": [], "asked": True}},
    }
    return {"kafkaops_preflight": preflight, "kafka_metadata": metadata}


@pytest.mark.parametrize(
    "metadata, voters, quorum",
    [
        ("zookeeper", [], ["zookeeper_quorum"]),
        ("kraft", ["c-1", "c-2", "c-3"], ["controllers_quorum"]),
        ("kraft", BROKERS, []),
        # one of them is a broker, whose replicas would be away
        ("kraft", ["one", "c-2", "c-3"], []),
        ("kraft", [], []),
    ],
)
def test_which_quorum_a_cluster_has_decides_which_drill(command_line, metadata, voters, quorum):
    command_line(drill="all")
    found = evaluated("kafka", "__kafka_drills_chosen", known(metadata, voters))
    assert found["problem"] == "" and found["quorum"] == quorum
    assert len(found["names"]) > 10


@pytest.mark.parametrize("ahead_ms", [0, 40_000, -40_000])
@pytest.mark.parametrize("role", ["kafka", "zookeeper"])
def test_when_members_of_a_quorum_were_away_is_by_the_clock_of_those_who_watch(role, ahead_ms):
    """As of a broker: a pause counts from the fault on."""
    plan = {"name": "q", "member_role": role, "server_hosts": ["three", "two"]}
    fault = {"at_ms": 5, "to_ms": 6, "label": "2 away"}
    stopped = {"took": {"from_ms": 1_000_000 + ahead_ms, "to_ms": 1_002_000 + ahead_ms}}
    clock = {"kafka_drill_ahead_ms": ahead_ms}
    turn = {"took": {"from_ms": 1, "to_ms": 1_030_000 + ahead_ms}}
    hosts = {
        "one": {"kafka_drill_plan": plan, "kafka_drill_fault": fault},
        "two": {f"{role}_turn": turn, **clock},
        "three": {f"{role}_stop": stopped, **clock},
    }
    first = {**known("zookeeper", [])["kafkaops_preflight"], "cluster_first": {"kafka": "one"}}
    given = {"kafkaops_preflight": first, "kafkaops_drill": "q", "hostvars": hosts}
    here = {**given, **clock, "inventory_hostname": "three"}
    found = evaluated("kafka", "__kafka_drill_member_away", here)
    assert (found["at_ms"], found["to_ms"]) == (1_000_000, 1_002_000)
    here["inventory_hostname"] = "two"
    assert evaluated("kafka", "__kafka_drill_member_back", here) == {**fault, "to_ms": 1_030_000}
    # nothing was stopped, or started
    idle = {**given, **clock, "inventory_hostname": "three"}
    idle["hostvars"] = {**hosts, "three": {f"{role}_stop": {}, f"{role}_turn": {}, **clock}}
    assert evaluated("kafka", "__kafka_drill_member_away", idle)["at_ms"] == 0
    assert evaluated("kafka", "__kafka_drill_member_back", idle) == fault


def test_the_judges_load_ends_by_itself_as_soon_beside_each_drill():
    """Where nobody sees that the run was killed."""
    bounds = [
        re.findall(r"flow_validation_prove_minutes: .*", path.read_text(encoding="utf-8"))
        for path in sorted((ROLES / "kafka" / "tasks").glob("drill_*.yml"))
        if "kafkaops_validation: begin" in path.read_text(encoding="utf-8")
    ]
    assert len(bounds) > 1 and bounds[0] and all(each == bounds[0] for each in bounds)


def test_a_stop_that_takes_too_long_is_a_fault_all_the_same():
    path = ROLES / "kafka" / "tasks" / "drill_broker.yml"
    tasks = yaml.safe_load(path.read_text(encoding="utf-8"))
    (both,) = [each for each in tasks if "stop.yml" in str(each.get("block"))]
    (told,) = both["always"]
    assert "kafka_drill_fault" in told["ansible.builtin.set_fact"] and told["delegate_facts"]


@pytest.mark.parametrize(
    "host, said",
    [
        # the gate, asked again while the host waits to stop it
        ({"kafka_stop": {"failed": True, "msg": "[gate.refused] no"}}, "[gate.refused] no"),
        ({"__kafka_drill_done": {"msg": "[drill.no_process]"}}, "[drill.no_process]"),
        ({"kafka_gate": {"msg": "[gate.waited]"}, "kafka_stop": {"msg": "old"}}, "[gate.waited]"),
        ({"kafka_stop": {"changed": True}}, "nothing was done to two"),
        ({}, "nothing was done to two"),
    ],
)
def test_why_nothing_was_done_is_told_by_the_first_host(host, said):
    hosts = {"one": {"kafka_drill_plan": {"name": "leader_stopped", "host": "two"}}, "two": host}
    first = {**known("zookeeper", [])["kafkaops_preflight"], "cluster_first": {"kafka": "one"}}
    given = {"kafkaops_preflight": first, "kafkaops_drill": "leader_stopped", "hostvars": hosts}
    given |= {"kafka_drill_fault": {}}
    assert refusal("kafka", "drill_broker.yml", "Go on if it was done", given) == said
    given["kafka_drill_fault"] = {"at_ms": 1}
    assert refusal("kafka", "drill_broker.yml", "Go on if it was done", given) == ""


@pytest.mark.parametrize(
    "asked, left",
    [
        ({"plan": {"changes": [{"subject": "a-0"}, {"subject": "b-7"}], "refusals": []}}, 2),
        ({"plan": {"changes": []}}, 0),
        ({"failed": True, "msg": "nobody answers"}, 0),
    ],
)
def test_who_led_otherwise_before_the_drills_does_so_afterwards(asked, left):
    """Kafka's own balance may be off, and somebody may have chosen these leaders."""
    loader = DataLoader()
    plan, restore, elect = (
        loader.load_from_file(str(ROLES / "kafka/tasks" / name), trusted_as_template=True)
        for name in ("drill_plan.yml", "drill_restore.yml", "elect.yml")
    )
    (once,) = [each for each in plan if "led otherwise" in each["name"]]
    ask, remember = once["block"]
    assert ask["check_mode"] and "kafka_drill_led_otherwise is not defined" in once["when"]
    (give,) = [each for each in restore[-1]["block"] if "elect.yml" in str(each)]
    variables = {"__kafka_drill_leaders": asked}
    for step in (remember["ansible.builtin.set_fact"], give["vars"]):
        variables |= Templar(loader=loader, variables=variables).template(step)
    assert len(variables["__kafka_leaders_left"]) == left
    told = elect[0]["kafkaops.cluster.kafka_leader_election"]
    assert told["leave"] == "{{ __kafka_leaders_left | default(omit) }}"


def test_the_clock_of_each_member_whose_times_are_told_is_compared():
    for name in ("away", "back"):
        path = ROLES / "kafka" / "tasks" / f"drill_quorum_{name}.yml"
        tasks = yaml.safe_load(path.read_text(encoding="utf-8"))
        compared = [n for n, each in enumerate(tasks) if "drill_clock.yml" in str(each)]
        told = [n for n, each in enumerate(tasks) if "kafka_drill_fault" in str(each)]
        assert len(compared) == len(told) == 1 and compared[0] < told[0]
        # by the very hosts whose times they are
        assert tasks[compared[0]]["when"] == tasks[told[0]]["when"]


@pytest.mark.parametrize(
    "clusters, confirm, remedy",
    [
        (["a"], "x", "-e confirm=a"),
        (["a"], None, "-e confirm=a"),
        (["a", "b"], "x", "-e confirm=a --limit a-1,a-2,a-z"),
        (["a", "b"], None, "-e confirm=a --limit a-1,a-2,a-z"),
        # refused by the other cluster, whose own name the first one would refuse
        (["a", "b"], "b", "-e confirm=b --limit b-1,b-2,b-z"),
    ],
)
@pytest.mark.parametrize(
    "file, what", [("drill_choose.yml", "disturb"), ("benchmark_plan.yml", "load")]
)
def test_a_remedy_that_confirms_one_of_two_clusters_names_its_hosts(
    command_line, file, what, clusters, confirm, remedy
):
    preflight = {
        **FACTS["kafkaops_preflight"],
        "cluster_first": {each: f"{each}-1" for each in clusters},
        "nodes": {each: [{"host": f"{each}-1"}, {"host": f"{each}-2"}] for each in clusters},
        "servers": {each: [{"host": f"{each}-1"}, {"host": f"{each}-z"}] for each in clusters},
    }
    given = {"kafkaops_preflight": preflight, "kafka_cluster_name": "a"}
    given |= {"ansible_check_mode": False}
    task = f"Refuse to {what} a cluster without consent"
    command_line(drill="all", **({} if confirm is None else {"confirm": confirm}))
    if confirm is not None:
        task = "Refuse a confirmation of another cluster"
    said = refusal("kafka", file, task, given)
    assert remedy in said and ("--limit" in said) == ("--limit" in remedy)
    # leftovers.yml refuses in the role that judges
    handed = yaml.safe_load((ROLES / "kafka/tasks/validate.yml").read_text(encoding="utf-8"))
    assert handed[0]["vars"]["__flow_validation_consent"] == "{{ __kafka_consent }}"
    leftovers = (ROLES / "flow_validation/tasks/leftovers.yml").read_text(encoding="utf-8")
    assert "Remedy: {{ __flow_validation_consent }}" in leftovers


def test_a_cluster_that_is_not_back_is_told_of_itself_alone():
    """Two clusters of one inventory are drilled by one play, under one name."""
    preflight = {
        **FACTS["kafkaops_preflight"],
        "cluster_first": {"kafka": "a-1", "other": "b-1"},
    }
    play = {"kafkaops_preflight": preflight, "kafkaops_drill": "leader_killed"}
    here = {"inventory_hostname": "b-2", "kafka_cluster_name": "other"}
    failed = {"ansible_failed_result": {"msg": "[start.failed] it ended"}}
    left = evaluated("kafka", "__kafka_drill_left", {**play, **here, **failed})
    hosts = {"a-1": {}, "b-1": {}, "b-2": {"kafka_drill_not_back": left}}
    play |= {"hostvars": hosts, "ansible_play_hosts_all": list(hosts)}
    found = {
        cluster: evaluated(
            "kafka", "__kafka_drill_not_back", {**play, "kafka_cluster_name": cluster}
        )
        for cluster in ("kafka", "other")
    }
    told = "the cluster is not as before: b-2: [start.failed] it ended"
    assert found == {"kafka": [], "other": [told]}
    play["kafkaops_drill"] = "follower_killed"
    assert not evaluated("kafka", "__kafka_drill_not_back", {**play, "kafka_cluster_name": "other"})
    for name in ("drill", "drill_quorum"):
        text = (ROLES / "kafka" / "tasks" / f"{name}.yml").read_text(encoding="utf-8")
        assert 'kafka_drill_not_back: "{{ __kafka_drill_left }}"' in text


@pytest.mark.parametrize(
    "indexed, listed, notes",
    [
        ({"rc": 0, "stderr_lines": []}, True, []),
        ({"rc": 0, "stderr_lines": ["note: no page of x", "other"]}, True, ["note: no page of x"]),
        # on another host, and in check mode
        ({"skipped": True}, False, []),
        (
            {"rc": 1, "stderr_lines": ["Traceback", "OSError: the disk is full"]},
            False,
            ["does not list this run, whose results stand: OSError: the disk is full. The next"],
        ),
        ({"rc": 2, "msg": "no such file", "stderr_lines": []}, False, ["stand: no such file. The"]),
        ({"msg": "no python"}, False, ["stand: no python. The next run tries again"]),
    ],
)
def test_pages_are_named_only_where_they_were_written(indexed, listed, notes):
    where = {"flow_validation_benchmark_file": "/r/benchmarks/x.json"}
    given = {"__flow_validation_indexed": indexed, **where}
    shown = evaluated("kafka", "__kafka_benchmark_kept", given)
    assert ("All runs: /r/index.html" in shown) is ("Page: /r/benchmarks/x.html" in shown) is listed
    assert "JSON: /r/benchmarks/x.json" in shown
    assert evaluated("kafka", "__kafka_runs_listed", given) is listed
    given["flow_validation_reports_dir"] = "/r"
    said = evaluated("flow_validation", "__flow_validation_unlisted", given)
    assert len(said) == len(notes) and all(note in line for note, line in zip(notes, said))


def test_the_job_that_makes_the_pages_is_there_when_they_are_made():
    """On another host it lies in the judge's directory; nothing of a benchmark had brought it there."""
    table = (ROLES / "kafka/tasks/drill_table.yml").read_text(encoding="utf-8")
    assert table.index("include_tasks: drill_keep.yml") < table.index(": compare_end")
    path = ROLES / "flow_validation/tasks/benchmarked.yml"
    (block,) = yaml.safe_load(path.read_text(encoding="utf-8"))
    copy, index = block["block"][-2:]
    assert copy["register"] == "__flow_validation_copy" and "index.yml" in str(index)
    assert copy["when"] == "not __flow_validation_here" and block["always"]
    # a full disk there neither keeps the lock nor takes the table away
    (told,) = block["rescue"]
    assert "__flow_validation_unpaged" in str(told["ansible.builtin.debug"])
    given = {
        "flow_validation_benchmark_file": "/r/x.json",
        "ansible_failed_result": {"msg": "full"},
    }
    said = evaluated("flow_validation", "__flow_validation_unpaged", given)
    assert "no page" in said and "/r/x.json: full. The next run tries again" in said


@pytest.mark.parametrize("name", ["drill", "benchmark"])
def test_what_a_killed_drill_has_stopped_starts_before_the_cluster_is_refused_for_it(
    command_line, name
):
    """A run that fails keeps its lock, and the guard beside the note waits for it."""
    playbooks = ROLES.parent / "playbooks"
    loader = DataLoader()
    plays, mend = (
        loader.load_from_file(str(playbooks / path), trusted_as_template=True)
        for path in (f"{name}.yml", "phases/mend.yml")
    )
    imported = [play.get("ansible.builtin.import_playbook", play["name"]) for play in plays]
    at = imported.index("phases/lock.yml")
    assert imported[at + 1] == "phases/mend.yml" and imported.index("phases/unlock.yml") > at + 2
    (task,) = mend[-1]["tasks"]
    command_line(**{name: "x"})
    given = plays[at + 1].get("vars", {})
    found = Templar(loader=loader, variables=given).template(task["vars"])
    assert found == {
        "__kafka_whole_check": f"{name}.not_whole",
        "__kafka_whole_setting": f"{name}=x",
    }
    tasks = (ROLES / "kafka/tasks/drill_mend.yml").read_text(encoding="utf-8")
    assert tasks.index("include_tasks: start.yml") < tasks.index("include_tasks: drill_whole.yml")


@pytest.mark.parametrize(
    "host, notes, gives",
    [
        ("a", {"b": "leader_killed"}, True),
        ("b", {"b": "leader_killed"}, False),
        # a guard has started it again meanwhile, and its note is gone
        ("a", {"b": ""}, True),
        ("b", {"b": ""}, False),
        ("a", {}, False),
        # of another cluster of the inventory
        ("a", {"c": "leader_killed"}, False),
    ],
)
def test_leadership_that_a_killed_drill_has_moved_is_given_back(host, notes, gives):
    """Once all are in sync, and before a drill remembers who led otherwise."""
    path = ROLES / "kafka/tasks/drill_mend.yml"
    *_others, whole, task, forget = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert "drill_whole" in str(whole) and task["ansible.builtin.include_tasks"] == "elect.yml"
    assert list(task["vars"]) == ["__kafka_drill_notes"], "nobody keeps a leader"
    told = forget["kafkaops.cluster.drill_fault"]
    assert told["state"] == "given_back" and forget["when"] == "__kafka_drill_note.leaders"
    none = {"note": "", "leaders": False}
    told = {each: {"__kafka_drill_note": none} for each in "ac"}
    given = {
        "inventory_hostname": host,
        "__kafka_drill_first": "a",
        "__kafka_members": ["a", "b"],
        "hostvars": {**told, "b": {}},
    }
    for each, name in notes.items():
        given["hostvars"][each] = {"__kafka_drill_note": {"note": name, "leaders": True}}
    notes_of = Templar(loader=DataLoader(), variables=given).template(
        {each: trust_as_template(text) for each, text in task["vars"].items()}
    )
    given |= notes_of
    conditions = [f"{{{{ {each} }}}}" for each in task["when"]]
    templar = Templar(loader=DataLoader(), variables=given)
    found = [templar.template(trust_as_template(each)) for each in conditions]
    assert all(found) is gives


@pytest.mark.parametrize("role", ["kafka", "zookeeper"])
def test_members_of_either_quorum_go_and_come_by_the_same_names(role):
    """The tasks of the drill ask for ROLE_gate, ROLE_stop, ROLE_turn and ROLE_drill_stopped."""
    tasks = ROLES / role / "tasks"
    asked = set()
    places = sorted((ROLES / "kafka" / "tasks").glob("drill_quorum_*.yml"))
    for path in [*places, ROLES / "kafka" / "vars" / "main.yml"]:
        asked |= set(re.findall(r"member_role ~ '(_\w+)'", path.read_text(encoding="utf-8")))
    told = {
        *re.findall(
            rf"(?:register: |^    ){role}(_\w+)",
            "".join(
                (tasks / name).read_text(encoding="utf-8")
                for name in ("gate.yml", "stop.yml", "start.yml", "drill_stop.yml")
            ),
            flags=re.M,
        )
    }
    assert asked == {"_gate", "_stop", "_turn", "_drill_stopped"} and asked <= told


@pytest.mark.parametrize("role", ["kafka", "flow_validation"])
@pytest.mark.parametrize(
    "host, connection, expected",
    [
        ("localhost", "local", "/elsewhere/.ansible_async"),
        # a name of the inventory for the machine of the playbook
        ("desk", "local", "/elsewhere/.ansible_async"),
        ("desk", "ansible.builtin.local", "/elsewhere/.ansible_async"),
        ("desk", "ssh", "~/.ansible_async"),
        # where a group has the variable that the host is not in, the default is what is evaluated for it
        ("localhost", "ssh", "~/.ansible_async"),
        ("desk", None, "~/.ansible_async"),
    ],
)
def test_jobs_beside_a_playbook_are_below_its_home_only_where_it_runs(
    monkeypatch, role, host, connection, expected
):
    """Ansible begins them below HOME, and asks for them below the account's home; and so it does elsewhere, by ssh."""
    monkeypatch.setenv("HOME", "/elsewhere")
    monkeypatch.delenv("ANSIBLE_ASYNC_DIR", raising=False)
    given = {"kafka_admin_host": host, **({"ansible_connection": connection} if connection else {})}
    assert evaluated(role, "ansible_async_dir", given).strip() == expected
    monkeypatch.setenv("ANSIBLE_ASYNC_DIR", "/var/jobs")
    assert evaluated(role, "ansible_async_dir", given).strip() == "/var/jobs"

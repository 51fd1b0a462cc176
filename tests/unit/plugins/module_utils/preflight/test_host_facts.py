# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The read-only probes, on made-up disks, a made-up /proc, and a few real things of this machine."""

from __future__ import annotations

import json
import os

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.kafkaops.cluster.plugins.module_utils import java
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight import host_facts as host
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    facts_request,
    read_member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.held import (
    lock_beside,
    take,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.owner import Owner
from tests.unit.plugins.module_utils.preflight import good_inventory as ground


def test_whether_systemd_is_in_charge(tmp_path):
    assert host.systemd(str(tmp_path)) is False
    (tmp_path / "run/systemd").mkdir(parents=True)  # as in an image that was never booted
    assert host.systemd(str(tmp_path)) is False
    (tmp_path / "run/systemd/system").mkdir()
    assert host.systemd(str(tmp_path)) is True


def snapshot_of(directory):
    """Every path below a directory with size and times: equal before and after a reader."""
    found = {}
    for root, folders, files in os.walk(directory):
        for name in folders + files:
            about = os.lstat(os.path.join(root, name))
            found[os.path.join(root, name)] = (about.st_size, about.st_mtime_ns, about.st_mode)
    return found


# ---------------------------------------------------------------- memory

GIB = 2**30
NO_LIMIT = str(2**63 - 4096)  # as version 1 writes it


@pytest.mark.parametrize(
    "belongs, limits, expected",
    [
        ("0::/\n", {}, 8),
        ("0::/\n", {"memory.max": "max"}, 8),
        ("0::/\n", {"memory.max": 2 * GIB}, 2),
        ("0::/\n", {"memory.max": 16 * GIB}, 8),
        # what is above a group limits it, too
        ("0::/box/ssh.service\n", {"box/memory.max": 2 * GIB}, 2),
        (
            "0::/box/ssh.service\n",
            {"box/memory.max": 3 * GIB, "box/ssh.service/memory.max": "max"},
            3,
        ),
        ("0::/box/ssh.service\n", {"other/memory.max": 2 * GIB}, 8),
        (
            "5:cpu,memory:/box/a\n0::/\n",
            {
                "memory/memory.limit_in_bytes": NO_LIMIT,
                "memory/box/memory.limit_in_bytes": 2 * GIB,
                "memory/box/a/memory.limit_in_bytes": NO_LIMIT,
            },
            2,
        ),
        ("3:cpu:/box\n", {"memory/box/memory.limit_in_bytes": 2 * GIB}, 8),
        ("1:name=systemd:/box\n0::/../..\n", {"memory.max": 2 * GIB}, 2),
        ("nonsense\n", {}, 8),
    ],
)
def test_a_limit_of_a_control_group_is_the_memory(tmp_path, belongs, limits, expected):
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text(f"MemTotal: {8 * GIB // 1024} kB\nMemFree: 1 kB\n")
    (proc / "self/cgroup").write_text(belongs)
    for name, limit in limits.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{limit}\n")
    assert host.memory_bytes(str(proc), str(tmp_path / "groups")) == expected * GIB


# ---------------------------------------------------------------- processes


def test_start_time_of_a_process_with_a_difficult_name(tmp_path):
    (tmp_path / "77").mkdir()
    fields = ["S"] + ["0"] * 18 + ["4242"] + ["0"] * 30
    (tmp_path / "77" / "stat").write_text("77 (java) (x) y) " + " ".join(fields))
    assert host.start_ticks(77, str(tmp_path)) == 4242
    assert host.start_ticks(78, str(tmp_path)) is None


def test_a_recycled_pid_is_not_our_process(tmp_path):
    record = tmp_path / "started.json"
    start = host.start_ticks(os.getpid())
    record.write_text(json.dumps({"pid": os.getpid(), "start_ticks": start, "fingerprint": "ab"}))
    alive = host.started_process(str(record))
    assert (alive["alive"], alive["stale"], alive["fingerprint"]) == (True, False, "ab")
    record.write_text(json.dumps({"pid": os.getpid(), "start_ticks": start + 1}))
    recycled = host.started_process(str(record))
    assert (recycled["alive"], recycled["stale"]) == (False, True)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x", "start_ticks": 1}'])
def test_a_broken_record_is_stale(tmp_path, text):
    (tmp_path / "started.json").write_text(text)
    state = host.started_process(str(tmp_path / "started.json"))
    assert (state["alive"], state["stale"]) == (False, True)


def test_no_record_is_nothing(tmp_path):
    state = host.started_process(str(tmp_path / "started.json"))
    assert (state["recorded"], state["alive"], state["stale"]) == (False, False, False)


# ---------------------------------------------------------------- the machine, everything


def test_one_machine_has_one_key(tmp_path):
    """The boot and the network name space of each made-up /proc; the root is that of this machine."""

    def keys(name, boot, network):
        proc = tmp_path / name
        for path in (proc / "sys/kernel/random", proc / "self/ns"):
            path.mkdir(parents=True)
        (proc / "sys/kernel/random/boot_id").write_text(f"{boot}\n")
        os.link(network, proc / "self/ns/net")
        return host.machine_keys(str(proc))

    one, another = tmp_path / "one", tmp_path / "another"
    one.touch()
    another.touch()
    first = keys("first", "b1", one)
    assert first["network"].startswith("b1/") and first["filesystem"].startswith("b1/")
    assert keys("same", "b1", one) == first
    container = keys("container", "b1", another)
    assert container["network"] != first["network"]
    assert container["filesystem"] == first["filesystem"]
    other = keys("other machine", "b2", one)
    assert not set(other.values()) & set(first.values())


def test_secrets_leave_the_host_neither_by_their_name_nor_in_a_url():
    properties = {
        "ssl.keystore.password": "hush",
        "ssl.truststore.password": "",
        "metrics.url": "https://bob:hush@host/x",
        "listeners": "INTERNAL://secret-1:9092",
    }
    assert host.masked_properties(properties) == {
        **properties,
        "ssl.keystore.password": "(hidden)",
        "metrics.url": "https://bob:(hidden)@host/x",
    }
    assert host.masked_properties(None) is None


def test_facts_of_an_installed_broker(tmp_path):
    generation = tmp_path / "conf" / "generations" / "abcd"
    generation.mkdir(parents=True)
    (tmp_path / "conf" / "current").symlink_to("generations/abcd")
    (generation / "meaning.json").write_text(
        json.dumps({"release": "/opt/kafka/releases/kafka_2.13-3.9.2"})
    )
    (generation / "server.properties").write_text(
        # two lines that somebody has edited by hand, as Java could not read them
        "log.dirs=%s/a,%s/b\nssl.keystore.password=hush\nbroker.rack=C:\\users\n"
        % (tmp_path, tmp_path)
    )
    answered = tmp_path / "conf" / "generations" / "ef01"
    answered.mkdir()
    (tmp_path / "conf" / "answered").symlink_to("generations/ef01")
    (answered / "server.properties").write_text(
        "broker.id=4\nprocess.roles=broker\nlog.dirs=/x,/y\nsasl.x=secret\nbroker.rack=\\u\n"
    )
    for name in ("a/orders-0", "b/orders-1"):
        (tmp_path / name).mkdir(parents=True)
    spec = {
        "kafka": {
            "instance": "kafka",
            "config_dir": str(tmp_path / "conf"),
            "properties": "server.properties",
            "started": str(tmp_path / "run" / "started.json"),
            "log_dirs": [str(tmp_path / "a"), str(tmp_path / "c")],
        },
        "names": [],
    }
    before = snapshot_of(tmp_path)
    facts = host.host_facts(spec)
    assert snapshot_of(tmp_path) == before
    kafka = facts["kafka"]
    assert kafka["release"] == "kafka_2.13-3.9.2"
    assert kafka["current"]["ssl.keystore.password"] == "(hidden)"
    assert [each["partitions"] for each in kafka["log_dirs"]] == [1, 0]
    assert [(each["path"], each["partitions"]) for each in kafka["other_log_dirs"]] == [
        (str(tmp_path / "b"), 1)
    ]
    # from the roles follows whether an answer means a quorum that has decided
    assert kafka["answered"] == {"broker.id": "4", "process.roles": "broker", "log.dirs": "/x,/y"}
    assert kafka["staged"] is None
    assert facts["zookeeper"] is None
    json.dumps(facts)


def test_a_process_is_ours_by_its_generation_alone(tmp_path, monkeypatch):
    """Packages of others run with /etc/kafka/server.properties, and that is the directory of ours, too."""
    asked = []
    monkeypatch.setattr(host, "port_holders", lambda _pids, paths, *_more: asked.extend(paths))
    host.host_facts(
        {
            "kafka": {
                "instance": "kafka",
                "config_dir": "/etc/kafka",
                "properties": "server.properties",
                "started": str(tmp_path / "started.json"),
                "log_dirs": [],
            }
        }
    )
    assert asked == ["/etc/kafka/current", "/etc/kafka/generations"]


def test_what_is_installed_is_a_fact(tmp_path):
    common = {"config_dir": str(tmp_path), "started": str(tmp_path / "s"), "instance": "kafka"}
    spec = {**common, "properties": "server.properties", "log_dirs": []}
    facts = host.host_facts({"kafka": spec})["kafka"]
    assert (facts["releases"], facts["account"]) == ([], None)
    release = tmp_path / "releases" / "kafka_2.13-3.9.2"
    release.mkdir(parents=True)
    (release / ".release.json").write_text('{"archive_sha512": "ab", "files": {}}')
    spec.update(install_dir=str(tmp_path), account="root")
    facts = host.host_facts({"kafka": spec})["kafka"]
    assert facts["releases"] == [{"path": str(release), "sha512": "ab"}]
    assert {**facts["account"], "gids": []} == {
        "name": "root",
        "group": "root",
        "uid": 0,
        "gids": [],
    }
    assert 0 in facts["account"]["gids"]
    assert host.account_facts("nobody-of-this-name") is None
    assert host.account_facts("no\0name") is None


def test_the_run_that_holds_the_lock_is_a_fact(tmp_path):
    spec = {"directory": str(tmp_path), "cluster": "local"}
    assert host.host_facts({"names": []})["lock"] is None
    assert host.host_facts({"names": [], "lock": spec})["lock"] is None
    (tmp_path / "local.json").write_text("{")
    found = host.host_facts({"names": [], "lock": spec})["lock"]
    assert found["owner"] == "unreadable:0:0"
    json.dumps(found)


def test_who_moves_replicas_between_disks_is_a_fact_of_its_own(tmp_path):
    spec = {"directory": str(tmp_path), "cluster": "local"}
    assert host.host_facts({"names": []})["lock_of_disks"] is None
    name = lock_beside("local")
    take(str(tmp_path), name, Owner("ctl", "b/1", 1, 7, "alice", "spread_disks.yml", name, 1))
    facts = host.host_facts({"names": [], "lock": spec})
    assert facts["lock"] is None
    assert (facts["lock_of_disks"]["owner"], facts["lock_of_disks"]["under"]) == ("ctl:1:7", "")


def test_the_run_that_holds_the_lock_under_another_name_is_a_fact(tmp_path):
    instance = str(tmp_path / "conf" / ".lock")
    run = Owner("ctl", "boot/1", 1, 7, "alice", "site.yml", "prod", 1795256400)
    take(str(tmp_path), "prod", run, instances=[instance])
    os.mkdir(tmp_path / "conf")
    (tmp_path / "conf" / ".lock").write_text("ctl:2:3 x")
    for name, instances, under in (("prod", [], ""), ("kafka", [instance], "prod")):
        spec = {"directory": str(tmp_path), "cluster": name, "instances": instances}
        found = host.host_facts({"names": [], "lock": spec})["lock"]
        assert (found["owner"], found["under"]) == ("ctl:1:7", under)
        marks = host.host_facts({"names": [], "lock": spec})["marks"]
        assert marks == (["ctl:2:3 x"] if instances else [])
    spec = {"directory": str(tmp_path), "cluster": "kafka", "instances": [instance + "2"]}
    assert host.host_facts({"names": [], "lock": spec})["lock"] is None


# ---------------------------------------------------------------- options of the JVM


@pytest.fixture(name="java_home", scope="module")
def _java_home():
    home = java.find(17, 23)["home"]
    if not home:
        pytest.skip("no Java on this machine")
    return home


@pytest.mark.parametrize(
    "options, told",
    [
        (["-Xms64m", "-Xmx64m", "-XX:+UseSerialGC"], None),
        (["-Xms64m", "-Xmx32m"], "larger value than the maximum heap size"),
        (["-XX:+UseG1GC", "-XX:+UseSerialGC"], "Multiple garbage collectors selected"),
        (["-XX:+Nonsense"], "Unrecognized VM option 'Nonsense'"),
    ],
)
def test_the_jvm_itself_judges_its_options(java_home, options, told):
    refusal = host.jvm_refusal(java_home, options)
    assert refusal is None if told is None else told in refusal


def test_what_is_no_program_of_this_machine_is_refused_in_its_words(tmp_path):
    """An installation for another kind of processor, for example: its file `release` looks right."""
    java = a_java(tmp_path, b"\x7fELF of something else")
    assert "Exec format error" in host.jvm_refusal(java, ["-Xmx64m"])


def test_what_takes_too_long_to_tell_is_no_refusal(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "JVM_TIMEOUT_SECONDS", 0.1)
    assert host.jvm_refusal(a_java(tmp_path, b"#!/bin/sh\nexec sleep 60\n"), []) is None


def test_a_trial_of_options_leaves_no_report(tmp_path):
    """A JVM that gets no memory for its heap writes hs_err_pid*.log into the working directory."""
    java = a_java(tmp_path, b'#!/bin/sh\necho "$@"\nexit 1\n')
    said = host.jvm_refusal(java, ["-Xmx300g", "-XX:ErrorFile=/var/log/crash.log"])
    assert said.endswith("-XX:ErrorFile=/dev/null -version")


def a_java(directory, program):
    """Make an installation of this program; return its home."""
    (directory / "bin").mkdir()
    (directory / "release").write_text('JAVA_VERSION="21.0.1"\n')
    (directory / "bin" / "java").write_bytes(program)
    (directory / "bin" / "java").chmod(0o755)
    return str(directory)


@pytest.mark.parametrize(
    "program, told",
    [
        (
            "echo 'cannot open libjvm.so'; exit 1",
            ("cannot open libjvm.so", "cannot open libjvm.so"),
        ),
        ('[ "$1" != -Xmx64m ] || exit 3', ("exit code 3", None)),
        ("exit 0", (None, "not asked")),
    ],
    ids=["broken", "refuses the options", "works"],
)
def test_a_java_that_never_ran_is_tried(tmp_path, program, told):
    """With the options first: only where they are refused it is asked whether it starts without."""
    java = a_java(tmp_path, f"#!/bin/sh\n{program}\n".encode())
    facts = host.host_facts({"java_home": java, "kafka": broker_request(tmp_path, ["-Xmx64m"])})
    seen = facts["kafka"]["jvm_refusal"], facts["java"].get("refusal", "not asked")
    assert seen == told
    facts = host.host_facts({"java_home": java, "kafka": broker_request(tmp_path, [])})
    assert facts["java"]["refusal"] == (told[1] if told[0] else None)


def broker_request(directory, options):
    """What the preflight asks about a broker that was never started."""
    return {
        "instance": "kafka",
        "config_dir": str(directory / "conf"),
        "properties": "server.properties",
        "started": str(directory / "started.json"),
        "log_dirs": [],
        "jvm_options": options,
    }


def test_options_of_a_running_process_are_not_tried_again(tmp_path):
    generation = tmp_path / "current"
    generation.mkdir()
    (generation / "meaning.json").write_text(json.dumps({"jvm_options": ["-Xmx1g", "-Da=b"]}))
    asked = {
        "instance": "kafka",
        "config_dir": str(tmp_path),
        "properties": "server.properties",
        "started": str(tmp_path / "started.json"),
        "jvm_options": ["-Xmx1g"],
    }
    assert host.instance_facts(asked)["untried_jvm_options"] == ["-Xmx1g"]
    start = host.start_ticks(os.getpid())
    (tmp_path / "started.json").write_text(
        json.dumps({"pid": os.getpid(), "start_ticks": start, "fingerprint": "x"})
    )
    assert host.instance_facts(asked)["untried_jvm_options"] == []
    assert host.instance_facts(dict(asked, jvm_options=["-Xmx2g"]))["untried_jvm_options"]
    other = host.instance_facts(asked, java_home="/opt/another")
    assert other["untried_java"] and other["untried_jvm_options"], "by another Java they are"


@pytest.mark.parametrize(
    "started, links, speaks",
    [
        ("a", {"current": "a"}, "3.8"),
        # killed between its stop and its start: it never spoke 3.9
        ("a", {"current": "b", "fallback": "a"}, "3.8"),
        # killed after its start, and ended since: it has spoken it
        ("b", {"current": "b", "fallback": "a"}, "3.9"),
        # never started before
        (None, {"current": "b"}, "3.9"),
    ],
)
def test_what_a_cut_off_turn_has_never_started_is_not_in_force(tmp_path, started, links, speaks):
    for name, version in (("a", "3.8"), ("b", "3.9")):
        generation = tmp_path / "generations" / name
        generation.mkdir(parents=True)
        (generation / "meaning.json").write_text(json.dumps({"release": f"/opt/kafka-{version}.0"}))
        text = f"inter.broker.protocol.version={version}\n"
        (generation / "server.properties").write_text(text)
    for link, name in links.items():
        (tmp_path / link).symlink_to(f"generations/{name}")
    if started:
        record = {"pid": os.getpid(), "start_ticks": 0, "fingerprint": started}
        (tmp_path / "started.json").write_text(json.dumps(record))
    asked = {
        "instance": "kafka",
        "config_dir": str(tmp_path),
        "properties": "server.properties",
        "started": str(tmp_path / "started.json"),
    }
    facts = host.instance_facts(asked)
    assert facts["current"] == {"inter.broker.protocol.version": speaks}
    assert facts["release"] == f"kafka-{speaks}.0"


def names_in(facts, place=""):
    """Every name in nested facts, as a path; lists by their first item."""
    if isinstance(facts, list):
        facts = {"0": facts[0]} if facts else {}
    for name, value in facts.items() if isinstance(facts, dict) else ():
        yield f"{place}/{name}"
        yield from names_in(value, f"{place}/{name}")


def moved(value, place):
    """The same request with every path below `place`: what this machine has is none of its business."""
    if isinstance(value, dict):
        return {key: moved(item, place) for key, item in value.items()}
    if isinstance(value, list):
        return [moved(item, place) for item in value]
    return f"{place}{value}" if str(value).startswith("/") else value


@pytest.mark.parametrize("index", [0, 3], ids=["broker", "server"])
def test_the_facts_of_the_good_inventory_are_those_of_a_host(tmp_path, index):
    """A check without its fact is silent, and no wrong inventory would show it."""
    raws, _inventory, _groups = ground.gather(ground.good(), str(tmp_path))
    member, _problems = read_member(sorted(raws, key=lambda each: each.name)[index])
    request = moved(facts_request(member, ["localhost"]), tmp_path)
    asked = ArgumentSpecValidator(host.ARGUMENTS).validate(request)
    assert not asked.errors.errors
    real = host.host_facts(asked.validated_parameters)
    real["java"].pop("refusal", None)  # told only of a Java that nothing runs with
    varying = (
        "/ports/",
        "/names/",
        "/ephemeral_ports/reserved/",
        "/kafka/account/",
        "/zookeeper/account/",
    )
    rights = ("/closed/0", "/own/")  # this machine's own
    both = [
        [
            each
            for each in sorted(names_in(facts))
            if not each.startswith(varying) and not any(part in each for part in rights)
        ]
        for facts in (ground.good_facts(member, ["localhost"]), real)
    ]
    assert both[0] == both[1]

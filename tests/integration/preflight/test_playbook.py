# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/preflight.yml as people run it: real inventories, real sockets, nothing installed."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import venv

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Nothing is started; only the one test that wants a port held holds it.
OFFSET = 20860
PLAYBOOK = pathlib.Path(sys.executable).parent / "ansible-playbook"
FINDING = re.compile(r"^\s*\[(?P<check>[a-z_]+\.[a-z_]+)\] (?P<hosts>[^:]+): (?P<setting>\S+=.*)$")


class Preflight:
    """A copy of the local inventory, to be spoilt, and a home of its own."""

    def __init__(self, directory):
        self.home = directory / "home"
        self.inventory = directory / "inventory"
        shutil.copytree(ROOT / "inventories" / "local", self.inventory)

    @property
    def report(self):
        return self.home / "reports" / "local" / "preflight.json"

    def spoil(self, group, host, **variables):
        path = self.inventory / "hosts.yml"
        document = yaml.safe_load(path.read_text())
        document["all"]["children"][group]["hosts"].setdefault(host, {}).update(variables)
        path.write_text(yaml.safe_dump(document))

    def run(self, *arguments, playbook="playbooks/preflight.yml"):
        """(exit code, {check: hosts}, whole output)."""
        done = subprocess.run(
            [
                str(PLAYBOOK),
                str(playbook),
                "-i",
                str(self.inventory),
                "-e",
                "local_port_offset=%d" % OFFSET,
                *arguments,
            ],
            cwd=ROOT,
            env=dict(os.environ, KAFKAOPS_HOME=str(self.home), ANSIBLE_FORCE_COLOR="0"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )
        text = done.stdout.decode()
        found = {}
        for match in filter(None, map(FINDING.match, text.splitlines())):
            found.setdefault(match.group("check"), match.group("hosts").split(", "))
        return done.returncode, found, text


@pytest.fixture(name="preflight")
def _preflight(tmp_path):
    return Preflight(tmp_path)


def test_the_local_inventory_passes_and_says_so(preflight):
    code, found, text = preflight.run("-v")
    assert (code, found) == (0, {}), text
    assert "nothing against it: 6 hosts, 0 errors" in text
    report = json.loads(preflight.report.read_text())
    assert report["ok"] is True
    assert report["ids"]["kafka-3"] == {"broker_id": 3, "myid": None}
    # Nothing but the report was written.
    written = [path for path in preflight.home.rglob("*") if path.is_file()]
    assert written == [preflight.report]


def test_a_relative_home_is_told_once_and_made_nowhere(preflight):
    """Everything local lies below it: one cause, one line, and no directory in the checkout."""
    preflight.home = pathlib.Path("relative-home")
    code, found, text = preflight.run()
    assert code == 2 and list(found) == ["settings.bad_value"], text
    lines = {line.strip() for line in text.splitlines() if "[settings.bad_value]" in line}
    assert len(lines) == 1 and "kafkaops_home=relative-home: not an absolute path" in lines.pop()
    assert not list(ROOT.glob("relative-home")) and not list(ROOT.glob("*/relative-home"))


def test_two_of_three_brokers_with_one_id(preflight):
    preflight.spoil("kafka", "kafka-3", kafka_broker_id=2)
    code, found, text = preflight.run()
    assert code == 2, text
    assert found == {"identity.duplicate_broker_id": ["kafka-2", "kafka-3"]}
    assert "kafka_broker_id=2" in text and "Remedy: " in text
    assert json.loads(preflight.report.read_text())["ok"] is False


def test_all_mistakes_are_told_at_once(preflight):
    preflight.spoil("kafka", "kafka-3", kafka_broker_id=2, kafka_config={"num.partitons": 3})
    preflight.spoil("zookeeper", "zookeeper-2", zookeeper_myid=256, zookeeper_heap="lots")
    code, found, text = preflight.run()
    assert code == 2, text
    assert set(found) == {
        "config.unknown_key",
        "identity.duplicate_broker_id",
        "identity.out_of_range",
        "settings.bad_value",
    }


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"ansible_connection": "nosuch"}, "the connection plugin 'nosuch' was not found"),
        ({"ansible_port": "ssh"}, "'ssh' could not be converted to 'int'"),
        ({"ansible_become": True, "ansible_become_method": "dooas"}, "plugin: 'dooas'"),
        ({"ansible_shell_type": "nosuch"}, "Could not find the shell plugin required (nosuch)"),
    ],
    ids=["connection", "port", "become", "shell"],
)
def test_a_connection_that_ansible_refuses_hides_no_other_finding(preflight, how, why):
    """Ansible fails before the action has begun, of the first host and of another one."""
    preflight.spoil("zookeeper", "zookeeper-1", **how)
    preflight.spoil("kafka", "kafka-2", **how)
    preflight.spoil("kafka", "kafka-3", kafka_heap="lots")
    code, found, text = preflight.run()
    assert code == 2, text
    assert set(found) >= {"host.unreachable", "settings.bad_value"}, text
    for host in ("kafka-2", "zookeeper-1"):
        assert f"[host.unreachable] {host}: ansible_host={host}: it cannot be examined: " in text
    assert why in text
    # nor does that of a member outside of --limit
    code, found, text = preflight.run("--limit", "all:!kafka-2:!zookeeper-1")
    assert "settings.bad_value" in found and code == 2, text
    code, _found, text = preflight.run(playbook="playbooks/status.yml")
    assert "host not reached: zookeeper-1, kafka-2." in text, text


def test_an_admin_host_that_is_no_name_hides_no_other_finding(preflight):
    """The task that judges is delegated to it, and Ansible fails by itself where it cannot be."""
    preflight.spoil("kafka", "kafka-3", kafka_broker_id=2)
    for value in ("[]", "{a: 1}", "''", "[kafka-1]"):
        code, found, text = preflight.run("-e", f"{{kafka_admin_host: {value}}}")
        assert code == 2 and set(found) == {
            "identity.duplicate_broker_id",
            "settings.bad_value",
        }, text
        assert ": kafka_admin_host=" in text


def test_an_admin_host_that_cannot_be_used(preflight, tmp_path):
    """Found before anything is deployed, and beside all other findings."""
    preflight.spoil("kafka", "kafka-3", kafka_broker_id=2)
    bastion = tmp_path / "bastion.yml"
    nobody = "{ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 9}"
    bastion.write_text(f"all: {{hosts: {{bastion: {nobody}}}}}")
    code, found, text = preflight.run("-i", bastion, "-e", "kafka_admin_host=bastion")
    assert code == 2 and set(found) == {"identity.duplicate_broker_id", "host.admin"}, text
    assert "kafka_admin_host=bastion: it cannot be used" in text
    bare = tmp_path / "bare"
    venv.create(bare)
    python = bare / "bin" / "python"
    code, found, text = preflight.run("-e", f"kafka_admin_python={python}")
    assert code == 2 and set(found) == {"identity.duplicate_broker_id", "host.admin"}, text
    assert f"{python} on localhost has no confluent-kafka, kafka-python, kazoo" in text
    assert "requirements.txt" in text
    code, found, text = preflight.run("-e", f"kafka_admin_python={bare}/nothing")
    assert code == 2 and "host.admin" in found, text


@pytest.mark.parametrize(
    "way, why",
    [
        ({"ansible_connection": "far"}, None),
        ({"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}, "refused"),
        ({"ansible_connection": "nosuch"}, "the connection plugin 'nosuch' was not found"),
    ],
    ids=["far", "closed", "none"],
)
def test_each_cluster_is_asked_from_the_host_that_administers_it(
    preflight, tmp_path, monkeypatch, way, why
):
    """The task runs on that of the first cluster; the other one has a host and logins of its own."""
    told = tmp_path / "told"
    monkeypatch.setenv("ANSIBLE_CONNECTION_PLUGINS", str(ROOT / "tests/support/connection"))
    other = {"kafka_cluster_name": "other", "kafka_admin_host": "b-jump"}
    for number in (2, 3):
        preflight.spoil("kafka", f"kafka-{number}", **other)
        preflight.spoil("zookeeper", f"zookeeper-{number}", **other)
    jump = {"ansible_python_interpreter": sys.executable, "far_told": str(told), **way}
    beside = tmp_path / "beside.yml"
    beside.write_text(yaml.safe_dump({"all": {"hosts": {"b-jump": jump}}}))
    _code, found, text = preflight.run("-i", str(beside))
    assert "Traceback" not in text, text
    assert found.get("host.admin") == (["kafka-2", "kafka-3"] if why else None), text
    assert not why or "kafka_admin_host=b-jump: it cannot be used: " in text and why in text, text
    assert told.exists() == (way["ansible_connection"] == "far")


def test_a_consent_of_a_wrong_type_hides_no_other_finding(preflight):
    preflight.spoil("kafka", "kafka-3", kafka_broker_id=2)
    code, found, text = preflight.run("-e", '{"kafkaops_preflight_accept": {"a": 1}}')
    assert code == 2 and set(found) == {"identity.duplicate_broker_id", "settings.bad_value"}, text
    assert ": kafkaops_preflight_accept=" in text


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("preflight_purpose", "deployy"),
        ("preflight_enforce", "perhaps"),
        ("preflight_quorum", "chang"),
        ("preflight_leaving", {"a": 1}),
    ],
)
def test_an_option_of_a_wrong_kind_hides_no_other_finding(preflight, variable, value):
    preflight.spoil("kafka", "kafka-3", kafka_broker_id=2)
    code, found, text = preflight.run("-e", json.dumps({variable: value}))
    assert code == 2 and set(found) == {"identity.duplicate_broker_id", "settings.bad_value"}, text
    assert f": {variable}=" in text


def test_a_shell_that_does_not_exist_is_told_of_every_host(preflight):
    """Also of the controller, which would have it as all hosts do."""
    variables = preflight.inventory / "group_vars" / "all.yml"
    variables.write_text(variables.read_text() + "ansible_shell_type: nosuch\n")
    code, found, text = preflight.run()
    assert code == 2 and list(found) == ["host.unreachable"], text
    assert "[host.unreachable] kafka-1" in text and "[host.unreachable] zookeeper-3" in text


def test_an_admin_host_that_is_not_in_the_inventory(preflight):
    preflight.spoil("kafka", "kafka-3", kafka_broker_id=2)
    code, found, text = preflight.run("-e", "kafka_admin_host=kafka-9")
    assert code == 2 and set(found) == {"identity.duplicate_broker_id", "host.admin"}, text
    assert "no host of the inventory has this name. Remedy: did you mean `kafka-3`?" in text


def test_an_admin_host_of_the_second_broker_that_is_not_in_the_inventory(preflight):
    preflight.spoil("kafka", "kafka-2", kafka_admin_host="kafka-9")
    code, found, text = preflight.run()
    assert (code, found) == (2, {"host.admin": ["kafka-2"]}), text


def test_a_port_that_a_real_process_holds(preflight):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 2181 + OFFSET))
        server.listen()
        code, found, text = preflight.run()
        assert (code, found) == (2, {"ports.in_use": ["zookeeper-1"]}), text
        assert "process %d" % os.getpid() in text
    assert preflight.run()[0] == 0


def test_an_advertised_name_that_does_not_resolve(preflight):
    listener = {"name": "LOCAL", "port": 43600, "advertised": "nowhere.kafkaops.invalid"}
    preflight.spoil("kafka", "kafka-2", kafka_listeners=[listener])
    code, found, text = preflight.run()
    assert (code, found) == (2, {"listeners.unresolvable": ["kafka-2"]}), text


def test_check_mode_writes_nothing(preflight):
    code, found, text = preflight.run("--check")
    assert (code, found) == (0, {}), text
    assert not preflight.home.exists()


def test_limit_hides_no_duplicate(preflight):
    preflight.spoil("kafka", "kafka-3", kafka_broker_id=2)
    code, found, text = preflight.run("--limit", "kafka-2")
    assert (code, found) == (2, {"identity.duplicate_broker_id": ["kafka-2", "kafka-3"]}), text


def test_a_hidden_member_out_of_reach_without_an_id(preflight):
    gone = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 43999}
    preflight.spoil("kafka", "kafka-4", **gone)
    code, found, text = preflight.run("--limit", "kafka-1")
    assert code == 2, text
    assert found["limit.hidden_member"] == ["kafka-4"]
    preflight.spoil("kafka", "kafka-4", kafka_broker_id=4)
    code, found, text = preflight.run("--limit", "kafka-1")
    assert "limit.hidden_member" not in found, text
    assert "warning: [limit.hidden_member] kafka-4" in text


def test_an_id_on_the_disk_stays_and_newcomers_get_the_next(preflight):
    data = preflight.home / "clusters" / "local" / "kafka-2" / "data"
    data.mkdir(parents=True)
    (data / "meta.properties").write_text("version=0\nbroker.id=7\ncluster.id=wJ9ZqC3b\n")
    hosts = preflight.inventory / "hosts.yml"
    hosts.write_text(re.sub(r"\{kafka_broker_id: [23]\}", "{}", hosts.read_text()))
    code, found, text = preflight.run()
    # the disk is of a cluster that is not there; its id is kept all the same
    assert (code, found) == (2, {"identity.foreign_cluster": ["kafka-2"]}), text
    ids = json.loads(preflight.report.read_text())["ids"]
    assert [ids["kafka-%d" % number]["broker_id"] for number in (1, 2, 3)] == [1, 7, 2]


def test_what_is_made_of_an_unwritten_id_can_be_used_afterwards(preflight, tmp_path):
    hosts = preflight.inventory / "hosts.yml"
    hosts.write_text(re.sub(r"\{(kafka_broker_id|zookeeper_myid): .\}", "{}", hosts.read_text()))
    variables = preflight.inventory / "group_vars" / "kafka.yml"
    variables.write_text(variables.read_text().replace("local_index", "kafka_broker_id"))
    playbook = tmp_path / "after.yml"
    playbook.write_text(
        "- import_playbook: kafkaops.cluster.preflight\n"
        "- hosts: kafkaops_kafka\n"
        "  gather_facts: false\n"
        "  tasks: [{debug: {msg: 'port {{ kafka_listeners[0].port }}'}}]\n"
    )
    code, found, text = preflight.run(playbook=playbook)
    assert (code, found) == (0, {}), text
    for number in (1, 2, 3):
        assert "msg: port %d" % (9091 + OFFSET + number) in text


def test_groups_of_another_name(preflight):
    hosts = preflight.inventory / "hosts.yml"
    hosts.write_text(hosts.read_text().replace("    kafka:", "    brokers:"))
    variables = preflight.inventory / "group_vars"
    (variables / "kafka.yml").rename(variables / "brokers.yml")
    with (variables / "all.yml").open("a") as target:
        target.write("kafka_group: brokers\n")
    code, found, text = preflight.run("-v")
    assert (code, found) == (0, {}), text
    assert "6 hosts" in text


def test_an_inventory_without_any_member(preflight):
    hosts = preflight.inventory / "hosts.yml"
    hosts.write_text("all: {hosts: {lonely: {}}}\n")
    code, found, text = preflight.run()
    assert code == 2, text
    assert "inventory.empty_group" in text


@pytest.mark.parametrize("limit", ["client-1", "controllers"])
def test_a_limit_that_leaves_no_member_is_no_empty_group(preflight, limit):
    """A host of clients; and controllers that are there for a migration, while the cluster is in ZooKeeper mode."""
    hosts = preflight.inventory / "hosts.yml"
    document = yaml.safe_load(hosts.read_text())
    document["all"]["children"]["kafka_clients"] = {"hosts": {"client-1": {}}}
    document["all"]["children"]["controllers"] = {"hosts": {"controller-1": {}}}
    hosts.write_text(yaml.safe_dump(document))
    code, found, text = preflight.run("--limit", limit)
    assert code == 2 and "[run.no_member]" in text and "inventory.empty_group" not in text, text
    assert f"--limit={limit}: none of these hosts runs Kafka or ZooKeeper; kafka-1" in text


def test_a_name_of_a_group_that_cannot_be_evaluated_is_no_empty_group(preflight):
    with (preflight.inventory / "group_vars" / "all.yml").open("a") as target:
        target.write('kafka_group: "{{ nobody }}"\nzookeeper_group: "{{ nobody }}"\n')
    hosts = preflight.inventory / "hosts.yml"
    hosts.write_text(hosts.read_text().replace("    kafka:", "    brokers:"))
    hosts.write_text(hosts.read_text().replace("    zookeeper:", "    ensemble:"))
    code, _found, text = preflight.run()
    assert code == 2 and "[settings.undefined]" in text and "kafka_group" in text, text
    assert "'nobody' is undefined" in text and "inventory.empty_group" not in text


@pytest.mark.parametrize("limit", ["zookeeper-1", "kafka-1", "ensemble"])
def test_groups_that_only_their_own_hosts_name(preflight, limit):
    """A run with --limit sees the others of its cluster, though its own hosts know no name of their group."""
    hosts = preflight.inventory / "hosts.yml"
    text = hosts.read_text()
    for old, new in (("kafka", "brokers"), ("zookeeper", "ensemble")):
        text = text.replace(f"    {old}:", f"    {new}:")
        variables = preflight.inventory / "group_vars" / f"{new}.yml"
        (preflight.inventory / "group_vars" / f"{old}.yml").rename(variables)
        with variables.open("a") as target:
            target.write(f"{old}_group: {new}\n")
    hosts.write_text(text)
    code, found, text = preflight.run("--limit", limit)
    assert (code, found) == (0, {}), text


def test_consent_turns_an_error_into_a_warning(preflight):
    hosts = preflight.inventory / "hosts.yml"
    hosts.write_text(re.sub(r".*zookeeper-3.*\n", "", hosts.read_text()))
    assert preflight.run()[1] == {"ensemble.size": ["zookeeper-1", "zookeeper-2"]}
    code, found, text = preflight.run("-e", '{"kafkaops_preflight_accept": ["ensemble.size"]}')
    assert (code, found) == (0, {}), text
    assert "warning: [ensemble.size]" in text


def test_a_look_is_not_stopped_by_errors(preflight):
    preflight.spoil("kafka", "kafka-3", kafka_broker_id=2)
    code, found, text = preflight.run("-e", "preflight_enforce=false")
    assert (code, found) == (0, {}), text
    assert "error: [identity.duplicate_broker_id] kafka-2, kafka-3" in text
    assert not preflight.home.exists()


def test_the_playbook_of_ones_own_in_the_docs_runs(preflight, tmp_path):
    """docs/automation.md: single parts of the roles, after what they need."""
    page = (ROOT / "docs" / "automation.md").read_text(encoding="utf-8")
    section = page.split("## Parts of the roles in a playbook of your own")[1]
    play = tmp_path / "own.yml"
    play.write_text(re.search(r"```yaml\n(.*?)```", section, re.DOTALL)[1])
    code, _found, output = preflight.run("--check", playbook=play)
    assert code == 0, output
    for part in ("Stage Kafka", "Say where they are"):
        assert f"kafkaops.cluster.kafka : {part}" in output, output
    without = yaml.safe_load(play.read_text())
    play.write_text(yaml.safe_dump([without[0], *without[2:]]))
    code, _found, output = preflight.run("--check", playbook=play)
    assert code == 2 and "[role.alone] kafka-1: " in output and "tasks_from obtain" in output

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks and the inventory of inventories/aws as people run them, with an EC2 over HTTP."""

from __future__ import annotations

import os
import subprocess
import sys

import yaml

from tests.integration.aws.conftest import BIN, CHECKOUT
from tests.support.processes import kill_run

RUNNING = [{"Name": "instance-state-name", "Values": ["running"]}]


def test_from_an_inventory_to_machines_and_back(checkout, ec2, server):
    shown = checkout.provision("--check", "--diff")
    assert "rule tcp 9092 from 203.0.113.0/24" in shown and server.changes == 0
    assert "changed=1" in checkout.provision()
    assert "changed=1" not in checkout.provision("--diff")

    # the inventory has what site.yml needs, and the ids of hosts.yml
    listed = checkout.listed()
    hosts = listed["_meta"]["hostvars"]
    assert sorted(listed["kafka"]["hosts"]) == sorted(listed["zookeeper"]["hosts"]) == sorted(hosts)
    assert [hosts[f"kafka-0{n}"]["kafka_broker_id"] for n in (1, 2, 3)] == [1, 2, 3]
    assert len({each["kafka_rack"] for each in hosts.values()}) == 3
    said = checkout.command(
        "ansible", "kafka-02", "-m", "debug", "-a", "var=kafka_listeners"
    ).stdout
    own = hosts["kafka-02"]
    assert own["ansible_host"] == own["aws_public_dns"] == own["aws_addresses"]["clients"]
    assert f"advertised: {own['aws_private_ip']}" in said
    assert f"advertised: {own['aws_public_dns']}" in said

    # a listener more is a rule more
    listeners = yaml.safe_load((checkout.inventory / "group_vars/kafka/listeners.yml").read_text())
    more = {
        "name": "MORE",
        "port": 9094,
        "protocol": "PLAINTEXT",
        "bind": "0.0.0.0",
        "audience": ["clients"],
    }
    checkout.edit("kafka/listeners", kafka_listeners=[*listeners["kafka_listeners"], more])
    said = checkout.provision("--diff")
    assert "rule tcp 9094 from 203.0.113.0/24" in said and "kafka-01:\n" not in said

    # without consent nothing goes, with another cluster's name neither
    before = server.changes
    code, said = checkout.play("aws_teardown")
    assert code == 0 and "vol-" in said and "-e confirm=orders" in said and server.changes == before
    code, said = checkout.play("aws_teardown", "-e", "confirm=other")
    assert code == 2 and "[teardown.confirm]" in said and server.changes == before
    code, said = checkout.play("aws_teardown", "-e", "confirm=orders", "--limit", "kafka-03")
    assert code == 0, said
    assert len(ec2.describe_instances(Filters=RUNNING)["Reservations"]) == 2
    code, said = checkout.play("aws_teardown", "-e", "confirm=orders")
    assert code == 0, said
    assert ec2.describe_instances(Filters=RUNNING)["Reservations"] == []
    assert ec2.describe_volumes()["Volumes"] == []
    listed = checkout.listed()
    assert "ansible_host" not in listed["_meta"]["hostvars"]["kafka-01"]


def test_in_kraft_mode_controllers_get_machines_and_reach_one_another(checkout, ec2):
    """kafka-01 is both, kafka-02 a broker, controller-01 no broker."""
    hosts = {f"kafka-0{number}": {"kafka_broker_id": number} for number in (1, 2)}
    voters = {"kafka-01": {}, "controller-01": {"kafka_broker_id": 3}}
    groups = {"kafka": {"hosts": hosts}, "controllers": {"hosts": voters}}
    (checkout.inventory / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups}}))
    checkout.edit("all/cluster", kafka_metadata="kraft", kafka_controller_port=9099)
    said = checkout.provision("--diff")
    assert "rule tcp 9099 from members" in said and "rule tcp 2181" not in said, said
    tags = [
        {each["Key"]: each["Value"] for each in machine["Tags"]}
        for reservation in ec2.describe_instances(Filters=RUNNING)["Reservations"]
        for machine in reservation["Instances"]
    ]
    assert {each["Name"]: each["kafkaops:groups"] for each in tags} == {
        "kafka-01": "controllers kafka",
        "kafka-02": "kafka",
        "controller-01": "controllers",
    }
    assert "changed=1" not in checkout.provision()
    code, said = checkout.play("aws_teardown", "-e", "confirm=orders")
    assert code == 0 and not ec2.describe_instances(Filters=RUNNING)["Reservations"], said


def test_a_teardown_that_is_killed_is_finished_by_the_next(checkout, ec2, server):
    checkout.provision()
    server.fall_silent(server.changes + 2)
    words = ["ansible-playbook", "-i", str(checkout.inventory), "playbooks/aws_teardown.yml"]
    environment = {**os.environ, "KAFKAOPS_HOME": str(checkout.home), "ANSIBLE_FORCE_COLOR": "0"}
    with subprocess.Popen(
        [str(BIN / words[0]), *words[1:], "-e", "confirm=orders"],
        cwd=CHECKOUT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as killed:
        assert server.silent.wait(120)
        # its module, too, which has a session of its own and would go on when it is answered
        kill_run(killed, "tree")
    server.go_on.set()
    left = len(ec2.describe_instances(Filters=RUNNING)["Reservations"])
    assert 0 < left < 3
    code, said = checkout.play("aws_teardown", "-e", "confirm=orders")
    assert code == 0, said
    assert ec2.describe_instances(Filters=RUNNING)["Reservations"] == []
    assert ec2.describe_volumes()["Volumes"] == [] and ec2.describe_key_pairs()["KeyPairs"] == []
    code, said = checkout.play("aws_teardown", "-e", "confirm=orders")
    assert code == 0 and "changed=1" not in said, said


def test_a_machine_is_compared_with_its_order(checkout):
    """This machine stands for all three: it has no 96 cores."""
    checkout.edit("all/machines", aws_type="m5.24xlarge")
    here = ["-e", "ansible_connection=local", "-e", "ansible_become=false"]
    code, said = checkout.play(
        "aws_provision", *here, "-e", f"ansible_python_interpreter={sys.executable}"
    )
    assert code == 2 and said.count("[aws.unlike_order] kafka-0") >= 3, said
    assert "cores, 96 were ordered" in said


def test_a_run_with_limit_makes_one_machine_and_keeps_all_rules(checkout, ec2):
    checkout.provision("--limit", "kafka-02")
    (only,) = ec2.describe_instances(Filters=RUNNING)["Reservations"]
    tags = {each["Key"]: each["Value"] for each in only["Instances"][0]["Tags"]}
    assert tags["Name"] == "kafka-02" and tags["kafkaops:groups"] == "kafka zookeeper"
    said = checkout.provision("--diff")
    assert "rule " not in said and "kafka-01:" in said


def test_what_is_wrong_in_the_inventory_is_refused_before_ec2_is_asked(checkout, server):
    checkout.edit("all/machines", aws_image="", aws_sources={"brokers": ["members"]})
    code, said = checkout.play("aws_provision")
    assert code == 2 and server.actions["DescribeSubnets"] == 0
    assert "[aws.bad_order] kafka-01, kafka-02, kafka-03: aws_image=''" in said
    assert (
        "kafka_listeners[1].audience=clients" in said
        and "kafka_listeners[1].audience=admin" in said
    )


def test_groups_come_from_the_tags_where_no_file_names_the_hosts(checkout):
    checkout.provision()
    (checkout.inventory / "hosts.yml").unlink()
    source = checkout.inventory / "aws.yml"
    source.write_text(
        source.read_text().replace("groups_from_tags: false", "groups_from_tags: true")
    )
    listed = checkout.listed()
    names = ["kafka-01", "kafka-02", "kafka-03"]
    assert sorted(listed["kafka"]["hosts"]) == sorted(listed["zookeeper"]["hosts"]) == names

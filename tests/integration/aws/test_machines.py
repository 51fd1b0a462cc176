# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""aws_machines against an EC2 over HTTP: order, nothing twice, meddling, kills, limits, teardown."""

from __future__ import annotations

import os
import stat

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws import key_file
from tests.support.run_module import Background, run_module

REGION = "eu-central-1"
CLUSTER = [{"Name": "tag:kafkaops:cluster", "Values": ["orders"]}]
RULES = [
    {"ports": "22", "sources": ["203.0.113.7/32"], "purpose": "ssh"},
    {"ports": "9092", "sources": ["network"], "purpose": "listener CLIENTS"},
    {"ports": "9093", "sources": ["members"], "purpose": "listener INTERNAL"},
]
STATED = {
    (22, "203.0.113.7/32"),
    (9092, "172.31.0.0/16"),
    (9093, "members"),
}


class Cluster:
    """The options of a cluster of some machines, and what EC2 has of it."""

    def __init__(self, ec2, image, directory):
        self.ec2 = ec2
        self.key_file = directory / "keys" / "orders.pem"
        self.options = {
            "cluster": "orders",
            "region": REGION,
            "key_name": "orders",
            "key_file": str(self.key_file),
            "rules": RULES,
            "operation_timeout": 20,
        }
        self.image = image

    def machine(self, number, **changes):
        return {
            "name": f"kafka-{number}",
            "type": "t3.medium",
            "image": self.image,
            "root_volume": {"size": "20GiB"},
            "volumes": [{"device": "/dev/sdf", "size": "100GiB"}],
            "groups": ["kafka"],
            "public_address": True,
            "tags": {"owner": "me"},
            **changes,
        }

    def arguments(self, count=3, **changes):
        machines = [self.machine(each + 1) for each in range(count)]
        return {**self.options, "machines": machines, **changes}

    def run(self, check=False, **changes):
        return run_module("aws_machines", self.arguments(**changes), check)

    def end(self, check=False, **changes):
        wanted = {k: v for k, v in self.options.items() if k != "rules"}
        return run_module("aws_machines", {**wanted, "state": "absent", **changes}, check)

    def instances(self):
        """{name: what EC2 says} of the living machines; no name may occur twice."""
        found = {}
        for reservation in self.ec2.describe_instances(Filters=CLUSTER)["Reservations"]:
            for each in reservation["Instances"]:
                if each["State"]["Name"] not in ("terminated", "shutting-down"):
                    name = tags(each)["kafkaops:host"]
                    assert name not in found, f"two of {name}"
                    found[name] = each
        return found

    def group(self):
        (found,) = self.ec2.describe_security_groups(Filters=CLUSTER)["SecurityGroups"]
        return found["GroupId"]

    def rules(self):
        """{(port, source): id} of what comes in."""
        group = self.group()
        wanted = [{"Name": "group-id", "Values": [group]}]
        found = {}
        for each in self.ec2.describe_security_group_rules(Filters=wanted)["SecurityGroupRules"]:
            if not each["IsEgress"]:
                source = each.get("CidrIpv4") or each["ReferencedGroupInfo"]["GroupId"]
                source = "members" if source == group else source
                found[each["FromPort"], source] = each["SecurityGroupRuleId"]
        return found


def tags(item):
    return {each["Key"]: each["Value"] for each in item.get("Tags", ())}


@pytest.fixture
def cluster(ec2, image, tmp_path):
    return Cluster(ec2, image, tmp_path)


def test_an_order_is_shown_then_carried_out_then_done(cluster, server):
    shown = cluster.run(check=True)
    assert shown.changed and server.changes == 0 and not cluster.key_file.exists()
    made = cluster.run()
    assert not made.failed and made.plan == shown.plan and made.diff == shown.diff
    assert set(cluster.rules()) == STATED
    machines = cluster.instances()
    zones = {each["Placement"]["AvailabilityZone"] for each in machines.values()}
    assert len(machines) == len(zones) == 3
    one = machines["kafka-1"]
    assert one["InstanceType"] == "t3.medium" and one["KeyName"] == "orders"
    assert one["MetadataOptions"]["HttpTokens"] == "required"
    assert tags(one)["Name"] == "kafka-1" and tags(one)["owner"] == "me"
    assert one["PublicIpAddress"] and tags(one)["kafkaops:groups"] == "kafka"
    ends = {
        each["DeviceName"]: each["Ebs"]["DeleteOnTermination"]
        for each in one["BlockDeviceMappings"]
    }
    assert ends == {"/dev/sda1": True, "/dev/sdf": False}
    assert stat.S_IMODE(os.stat(cluster.key_file).st_mode) == 0o600
    first, _second, _third = made.machines
    assert first["ordered"] == {"cores": 2, "memory_bytes": 4 * 2**30, "volume_gib": [20, 100]}
    assert first["public_address"] == one["PublicIpAddress"] and first["state"] == "running"
    before = server.changes
    again = cluster.run()
    assert not again.changed and again.kinds == [] and server.changes == before
    assert again.foreign_rules == []


def test_the_number_of_requests_does_not_grow_with_the_machines(cluster):
    counts = []
    for count in (1, 12):
        assert not cluster.run(count=count).failed
        counts.append(cluster.run(check=True, count=count).requests)
    assert counts[0] == counts[1] < 15


def test_what_somebody_else_changed_is_shown_and_put_right(cluster, ec2):
    cluster.run()
    machines, rules = cluster.instances(), cluster.rules()
    ids = {name: each["InstanceId"] for name, each in machines.items()}
    ec2.stop_instances(InstanceIds=[ids["kafka-1"]])
    ec2.terminate_instances(InstanceIds=[ids["kafka-2"]])
    ec2.delete_tags(Resources=[ids["kafka-3"]], Tags=[{"Key": "kafkaops:host"}])
    group = cluster.group()
    ec2.revoke_security_group_ingress(GroupId=group, SecurityGroupRuleIds=[rules[9093, "members"]])
    foreign = {
        "IpProtocol": "tcp",
        "FromPort": 3389,
        "ToPort": 3389,
        "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
    }
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[foreign])
    shown = cluster.run(check=True)
    done = cluster.run()
    assert done.plan == shown.plan and not done.failed
    assert set(done.kinds) == {
        ("start", "kafka-1"),
        ("make_machine", "kafka-2"),
        ("tag", "kafka-3"),
        ("open", "rule tcp 9093 from members"),
    }
    assert "tcp 3389 from 0.0.0.0/0" in str(done.warnings)
    assert set(cluster.rules()) == STATED | {(3389, "0.0.0.0/0")}
    # the kept volume of the one that ended is told
    assert "of a former machine" in str(done.plan)
    after = cluster.instances()
    assert [after[each]["State"]["Name"] for each in sorted(after)] == ["running"] * 3
    assert after["kafka-1"]["InstanceId"] == ids["kafka-1"] != after["kafka-2"]["InstanceId"]
    again = cluster.run()
    assert not again.changed and again.foreign_rules == ["tcp 3389 from 0.0.0.0/0"]
    consent = cluster.run(allow=["foreign_rules"])
    assert consent.kinds == [("close", "rule tcp 3389 from 0.0.0.0/0")]
    assert set(cluster.rules()) == STATED


def test_rules_follow_the_order(cluster):
    cluster.run()
    other = [*RULES[:2], {"ports": "9094", "sources": ["members"]}]
    done = cluster.run(rules=other)
    assert done.kinds == [
        ("open", "rule tcp 9094 from members"),
        ("close", "rule tcp 9093 from members"),
    ]
    assert set(cluster.rules()) == STATED - {(9093, "members")} | {(9094, "members")}


def test_another_type_is_refused_and_nothing_is_done(cluster, ec2, server):
    cluster.run()
    (instance,) = [cluster.instances()["kafka-2"]["InstanceId"]]
    ec2.stop_instances(InstanceIds=[instance])
    ec2.modify_instance_attribute(InstanceId=instance, InstanceType={"Value": "t3.large"})
    before = server.changes
    refused = cluster.run()
    assert refused.failed and refused.checks == [("aws.differs", "kafka-2")]
    assert "has type t3.large" in refused.msg and server.changes == before


def test_a_key_that_others_may_read_is_mended_and_said(cluster):
    cluster.run()
    cluster.key_file.chmod(0o644)
    shown = cluster.run(check=True)
    assert stat.S_IMODE(os.stat(cluster.key_file).st_mode) == 0o644
    done = cluster.run()
    assert shown.kinds == done.kinds == [("mend_key", f"key file {cluster.key_file}")]
    assert stat.S_IMODE(os.stat(cluster.key_file).st_mode) == 0o600
    assert "0644" in str(done.warnings)
    assert not cluster.run().changed


def test_a_key_that_is_not_the_pairs_is_refused(cluster):
    cluster.run()
    cluster.key_file.unlink()
    assert cluster.run().checks == [("aws.no_key",)]
    other = cluster.key_file.with_name("other.pem")
    key_file.make(str(other), "other")
    assert cluster.run(key_file=str(other)).checks == [("aws.key_differs",)]


# 1 key pair, 2 group, 3-5 rules, 6-8 machines
@pytest.mark.parametrize("number", [1, 2, 4, 6, 8])
def test_a_run_that_is_killed_half_way_is_finished_by_the_next(cluster, server, number):
    server.fall_silent(number)
    killed = Background("aws_machines", cluster.arguments())
    assert server.silent.wait(60)
    killed.kill()
    server.go_on.set()
    assert server.changes == number
    done = cluster.run()
    # the key's file was made before the first call
    assert not done.failed and len(done.kinds) == 8 - number
    assert set(cluster.rules()) == STATED and len(cluster.instances()) == 3
    assert not cluster.run().changed


def test_a_machine_that_cannot_be_seen_yet_is_not_made_twice(cluster, server):
    """EC2 may tell of a machine only later; then its token does."""
    server.fall_silent(7)
    killed = Background("aws_machines", cluster.arguments())
    assert server.silent.wait(60)
    killed.kill()
    server.go_on.set()
    server.hide_instances = True
    blind = cluster.run(operation_timeout=0)
    assert blind.failed and "not there" in blind.msg
    server.hide_instances = False
    assert server.actions["RunInstances"] == 5 and len(server.tokens) == 3
    assert len(cluster.instances()) == 3 and not cluster.run().changed


def test_a_token_of_a_machine_that_has_ended_is_not_used_again(cluster, ec2, server):
    cluster.run()
    first = cluster.instances()["kafka-1"]["InstanceId"]
    ec2.terminate_instances(InstanceIds=[first])
    before = server.actions["RunInstances"]
    assert not cluster.run().failed
    # the first request was refused, because of the token
    assert server.actions["RunInstances"] == before + 2
    assert cluster.instances()["kafka-1"]["InstanceId"] != first


def test_a_limit_of_the_account_is_told_and_the_next_run_goes_on(cluster, server):
    server.fail("RunInstances", 2, "VcpuLimitExceeded", "You have requested more vCPU capacity.")
    limited = cluster.run()
    (failed,) = limited.failed_items
    assert limited.failed and failed["name"] == "kafka-2" and failed["code"] == "VcpuLimitExceeded"
    assert "[aws.limit]" in failed["error"] and "Service Quotas" in limited.msg
    assert sorted(cluster.instances()) == ["kafka-1", "kafka-3"]
    done = cluster.run()
    assert done.kinds == [("make_machine", "kafka-2")] and not done.failed
    # it is where it would have been
    zones = {each["Placement"]["AvailabilityZone"] for each in cluster.instances().values()}
    assert len(zones) == 3


def test_without_the_group_no_machine_is_made(cluster, server):
    denied = "You are not authorized to perform this operation."
    server.fail("CreateSecurityGroup", 1, "UnauthorizedOperation", denied)
    done = cluster.run()
    assert done.failed and cluster.instances() == {} and done.changed
    assert "may not do ec2:CreateSecurityGroup" in done.msg and "not tried" in done.msg


@pytest.mark.parametrize(
    "changes, check",
    [
        ({"image": "ami-00000000000000000"}, "aws.no_image"),
        ({"type": "t3.enormous"}, "aws.no_type"),
        ({"subnet": "subnet-00000000000000000"}, "aws.no_subnet"),
        ({"root_volume": {"size": "8GiB"}}, "aws.too_small"),
        ({"cores": 4}, "aws.too_small"),
    ],
)
def test_what_cannot_be_had_is_refused_before_anything(cluster, server, changes, check):
    refused = cluster.run(machines=[cluster.machine(1, **changes)])
    assert refused.failed and [each[0] for each in refused.checks] == [check]
    assert server.changes == 0 and not cluster.key_file.exists()


@pytest.mark.parametrize(
    "variables, options, words",
    [
        (
            {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None},
            {},
            "[aws.credentials] no AWS credentials",
        ),
        ({"AWS_PROFILE": "nobody"}, {}, "[aws.credentials] the AWS profile"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, {}, "[aws.unreachable] EC2 does not answer"),
        ({}, {"region": None}, "[aws.region] no region is set"),
    ],
)
def test_who_does_not_reach_ec2_is_told_why_in_one_sentence(
    cluster, monkeypatch, variables, options, words
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    refused = cluster.run(**options)
    assert refused.failed and not refused.changed
    assert refused.msg.startswith(words) and "Remedy: " in refused.msg and "\n" not in refused.msg


def test_credentials_that_aws_does_not_accept(cluster, server):
    said = "AWS was not able to validate the provided access credentials"
    server.fail("DescribeSubnets", 1, "AuthFailure", said)
    refused = cluster.run()
    assert refused.failed and refused.msg.startswith("[aws.credentials] AWS does not accept")


def test_a_teardown_names_the_volumes_and_takes_what_is_ours(cluster, ec2, server):
    cluster.run()
    other = run_module("aws_machines", {**cluster.arguments(1), "cluster": "other", "key_file": ""})
    assert not other.failed, other.msg
    before = server.changes
    shown = cluster.end(check=True)
    assert shown.changed and server.changes == before
    said = str(shown.diff["before"])
    assert "20 GiB gp3" in said and "100 GiB" in said and said.count("vol-") == 6
    done = cluster.end()
    assert not done.failed and done.plan == shown.plan
    assert cluster.instances() == {} and done.machines == []
    assert ec2.describe_volumes(Filters=CLUSTER)["Volumes"] == []
    assert ec2.describe_security_groups(Filters=CLUSTER)["SecurityGroups"] == []
    assert ec2.describe_key_pairs()["KeyPairs"] == [] and cluster.key_file.exists()
    theirs = [{"Name": "tag:kafkaops:cluster", "Values": ["other"]}]
    assert len(ec2.describe_volumes(Filters=theirs)["Volumes"]) == 2
    assert len(ec2.describe_security_groups(Filters=theirs)["SecurityGroups"]) == 1
    assert not cluster.end().changed


def test_a_teardown_names_what_the_inventory_calls_otherwise_now(cluster, ec2):
    """The key pair of an order whose inventory had another aws_key_name, and a group that carries the tag."""
    cluster.run()
    tags = [{"Key": "kafkaops:cluster", "Value": CLUSTER[0]["Values"][0]}]
    for kind, make, name in (
        ("key-pair", ec2.create_key_pair, "KeyName"),
        ("security-group", ec2.create_security_group, "GroupName"),
    ):
        more = {} if kind == "key-pair" else {"Description": "once"}
        make(**{name: "once"}, **more, TagSpecifications=[{"ResourceType": kind, "Tags": tags}])
    done = cluster.end()
    assert not done.failed and cluster.instances() == {}
    said = " ".join(map(str, done.values.get("warnings", ())))
    assert "key pair once stays" in said and "security group once (sg-" in said, said
    (group,) = ec2.describe_security_groups(Filters=CLUSTER)["SecurityGroups"]
    ec2.delete_security_group(GroupId=group["GroupId"])
    ec2.delete_key_pair(KeyName="once")


# machines, their volumes, group, key pair
TEARDOWN_CALLS = 8


@pytest.mark.parametrize("number", [1, 4, 7, TEARDOWN_CALLS])
def test_a_teardown_that_is_killed_half_way_is_finished_by_the_next(cluster, ec2, server, number):
    cluster.run()
    other = run_module("aws_machines", {**cluster.arguments(1), "cluster": "other", "key_file": ""})
    assert not other.failed, other.msg
    before = server.changes
    server.fall_silent(before + number)
    wanted = {key: value for key, value in cluster.options.items() if key != "rules"}
    killed = Background("aws_machines", {**wanted, "state": "absent"})
    assert server.silent.wait(60)
    killed.kill()
    server.go_on.set()
    assert server.changes == before + number
    done = cluster.end()
    assert not done.failed, done.msg
    assert server.changes == before + TEARDOWN_CALLS
    assert done.changed == (number < TEARDOWN_CALLS)
    assert cluster.instances() == {} and ec2.describe_key_pairs()["KeyPairs"] == []
    assert ec2.describe_volumes(Filters=CLUSTER)["Volumes"] == []
    assert ec2.describe_security_groups(Filters=CLUSTER)["SecurityGroups"] == []
    theirs = [{"Name": "tag:kafkaops:cluster", "Values": ["other"]}]
    assert len(ec2.describe_volumes(Filters=theirs)["Volumes"]) == 2
    assert not cluster.end().changed


def test_a_teardown_of_one_host_leaves_the_others(cluster):
    cluster.run()
    done = cluster.end(only=["kafka-2"])
    assert not done.failed and sorted(cluster.instances()) == ["kafka-1", "kafka-3"]
    assert set(cluster.rules()) == STATED


def test_a_foreign_volume_and_a_foreign_machine_are_spared(cluster, ec2, server):
    cluster.run()
    one = cluster.instances()["kafka-1"]
    zone = one["Placement"]["AvailabilityZone"]
    volume = ec2.create_volume(AvailabilityZone=zone, Size=5)["VolumeId"]
    ec2.attach_volume(VolumeId=volume, InstanceId=one["InstanceId"], Device="/dev/sdz")
    guest = ec2.run_instances(
        ImageId=cluster.image,
        InstanceType="t3.micro",
        MinCount=1,
        MaxCount=1,
        SecurityGroupIds=[cluster.group()],
        SubnetId=one["SubnetId"],
    )["Instances"][0]["InstanceId"]
    assert f"not ordered: {volume}" in str(cluster.run().warnings)
    done = cluster.end()
    assert not done.failed and guest in str(done.warnings)
    left = [each["VolumeId"] for each in ec2.describe_volumes()["Volumes"]]
    assert volume in left and cluster.group()
    states = ec2.describe_instances(InstanceIds=[guest])["Reservations"][0]["Instances"][0]["State"]
    assert states["Name"] == "running"

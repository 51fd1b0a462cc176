# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""EC2 by boto3: read what is there, make and delete. The only importer of boto3.

Private to this collection. Every call goes through `_call`, which counts it and turns what EC2 says into
one sentence. Region, credentials, proxy and endpoint (AWS_ENDPOINT_URL) are boto3's own business.
"""

from __future__ import annotations

import os
import traceback
from typing import (
    Any,
    Collection,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.errors import problem_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import (
    CLUSTER_TAG,
    MEMBERS,
    Group,
    Image,
    Instance,
    KeyPair,
    Machine,
    MachineType,
    Order,
    Rule,
    SeenRule,
    SeenVolume,
    Subnet,
    Volume,
    own_tags,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.order import of_group
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.placement import client_token

IMPORT_ERROR: Optional[str] = None
try:
    import boto3
    import botocore.config
    import botocore.exceptions
except ImportError:
    IMPORT_ERROR = traceback.format_exc()

CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 10, 60, 4
FILTER_VALUES = 200  # what EC2 takes in one filter
# How often a machine may have been made and ended under one order while EC2 still remembers.
GENERATIONS = 50
TERMINATED_TOKEN = "IdempotentInstanceTerminated"


class Ec2Client:
    """One region of EC2. `requests` counts the calls."""

    def __init__(self, region: Optional[str] = None):
        self._region = region
        self._ec2: Any = None
        self.requests = 0

    def connect(self) -> None:
        """Make the client; contacts nobody yet. Raises an AdminError."""
        config = {
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
            "retries": {"mode": "standard", "total_max_attempts": ATTEMPTS},
        }
        try:
            self._ec2 = boto3.session.Session().client(
                "ec2",
                # boto3 itself reads AWS_DEFAULT_REGION only
                region_name=self._region or os.environ.get("AWS_REGION") or None,
                config=botocore.config.Config(**config),
            )
        except (botocore.exceptions.BotoCoreError, ValueError) as error:
            raise AdminError(problem_of(type(error).__name__, str(error), "Connect")) from error

    @property
    def region(self) -> str:
        """The region that boto3 found."""
        return str(self._ec2.meta.region_name)

    def _call(self, action: str, method: str, **arguments: Any) -> Any:
        self.requests += 1
        try:
            return getattr(self._ec2, method)(**arguments)
        except botocore.exceptions.ClientError as error:
            said = error.response.get("Error", {})
            code, text = said.get("Code", ""), said.get("Message", str(error))
            raise AdminError(problem_of(code, text, action), code=code) from error
        except botocore.exceptions.BotoCoreError as error:
            code = type(error).__name__
            raise AdminError(problem_of(code, str(error), action), code=code) from error

    def _all(self, action: str, method: str, key: str, **arguments: Any) -> Iterator[Any]:
        """Every item of an answer that comes in pages."""
        while True:
            answer = self._call(action, method, **arguments)
            yield from answer.get(key, ())
            if not answer.get("NextToken"):
                return
            arguments["NextToken"] = answer["NextToken"]

    # ------------------------------------------------------------ reading

    def fetch_instances(self, name: str, values: Sequence[str]) -> Tuple[Instance, ...]:
        """The machines that pass a filter of EC2, ended ones included, by id."""
        found = [
            _instance(each)
            for reservation in self._all(
                "DescribeInstances",
                "describe_instances",
                "Reservations",
                Filters=_filters(name, values),
            )
            for each in reservation["Instances"]
        ]
        return tuple(sorted(found, key=lambda each: each.id))

    def fetch_volumes(self, cluster: str, instances: Sequence[Instance]) -> Tuple[SeenVolume, ...]:
        """The volumes with the cluster's tag, and all that are attached to its machines."""
        alive = [each.id for each in instances if each.alive]
        ending = {volume for each in instances if each.alive for volume in each.ending_volumes}
        asked = [_filters(f"tag:{CLUSTER_TAG}", [cluster])]
        for start in range(0, len(alive), FILTER_VALUES):
            asked.append(_filters("attachment.instance-id", alive[start : start + FILTER_VALUES]))
        found = {
            each["VolumeId"]: _volume(each, ending)
            for filters in asked
            for each in self._all("DescribeVolumes", "describe_volumes", "Volumes", Filters=filters)
            if each.get("State") not in ("deleting", "deleted")
        }
        return tuple(found[name] for name in sorted(found))

    def fetch_subnets(self, order: Order) -> Tuple[Subnet, ...]:
        """The ordered subnets, or the default one of each zone; sorted by zone."""
        named = sorted({*order.subnets, *(each.subnet for each in order.machines if each.subnet)})
        placed = bool(order.machines) and all(each.subnet for each in order.machines)
        defaults = not order.subnets and not placed
        asked = [_filters("subnet-id", named)] if named else []
        asked += [_filters("default-for-az", ["true"])] if defaults else []
        found = {
            each["SubnetId"]: Subnet(each["SubnetId"], each["AvailabilityZone"], each["VpcId"])
            for filters in asked
            for each in self._all("DescribeSubnets", "describe_subnets", "Subnets", Filters=filters)
        }
        return tuple(sorted(found.values(), key=lambda each: (each.zone, each.id)))

    def fetch_network_addresses(self, network: str) -> Tuple[str, ...]:
        """The address ranges of a network, sorted."""
        answer = self._call("DescribeVpcs", "describe_vpcs", Filters=_filters("vpc-id", [network]))
        found = [
            each[key]
            for one in answer["Vpcs"]
            for key, ranges in (
                ("CidrBlock", one.get("CidrBlockAssociationSet")),
                ("Ipv6CidrBlock", one.get("Ipv6CidrBlockAssociationSet")),
            )
            for each in ranges or ()
        ]
        return tuple(sorted(found))

    def fetch_group(self, order: Order, network: Optional[str]) -> Optional[Group]:
        """The cluster's security group with its rules; else one of that name in the network."""
        found = [
            Group(each["GroupId"], each.get("VpcId", ""), _tags(each))
            for each in self._all(
                "DescribeSecurityGroups",
                "describe_security_groups",
                "SecurityGroups",
                Filters=_filters("group-name", [order.group_name]),
            )
        ]
        ours = [each for each in found if each.tags.get(CLUSTER_TAG) == order.cluster]
        near = [each for each in found if network and each.network == network]
        group = next(iter([*ours, *near]), None)
        if group is None:
            return None
        rules = self._all(
            "DescribeSecurityGroupRules",
            "describe_security_group_rules",
            "SecurityGroupRules",
            Filters=_filters("group-id", [group.id]),
        )
        seen = tuple(_rule(each, group.id, order.cluster) for each in rules if not each["IsEgress"])
        return Group(group.id, group.network, group.tags, seen)

    def fetch_key_pair(self, name: str) -> Optional[KeyPair]:
        """A key pair with its public half."""
        answer = self._call(
            "DescribeKeyPairs",
            "describe_key_pairs",
            Filters=_filters("key-name", [name]),
            IncludePublicKey=True,
        )
        pairs = [
            KeyPair(each["KeyName"], each.get("PublicKey", "").strip(), _tags(each))
            for each in answer["KeyPairs"]
        ]
        return next(iter(pairs), None)

    def fetch_renamed(self, order: Order) -> Tuple[str, ...]:
        """Groups and key pairs with the cluster's tag under other names than the order's, as text."""
        tagged = _filters(f"tag:{CLUSTER_TAG}", [order.cluster])
        groups = self._all(
            "DescribeSecurityGroups", "describe_security_groups", "SecurityGroups", Filters=tagged
        )
        pairs = self._call("DescribeKeyPairs", "describe_key_pairs", Filters=tagged)["KeyPairs"]
        found = [
            f"security group {each['GroupName']} ({each['GroupId']})"
            for each in groups
            if each["GroupName"] != order.group_name
        ]
        found += [
            f"key pair {each['KeyName']}" for each in pairs if each["KeyName"] != order.key_name
        ]
        return tuple(sorted(found))

    def fetch_images(self, ids: Iterable[str]) -> Dict[str, Image]:
        """Those of the images that exist, by id."""
        wanted = sorted(filter(None, set(ids)))
        if not wanted:
            return {}
        found = self._all(
            "DescribeImages", "describe_images", "Images", Filters=_filters("image-id", wanted)
        )
        return {each["ImageId"]: _image(each) for each in found}

    def fetch_types(self, names: Iterable[str]) -> Dict[str, MachineType]:
        """Those of the types of machines that the region has, by name."""
        wanted = sorted(filter(None, set(names)))
        if not wanted:
            return {}
        found = self._all(
            "DescribeInstanceTypes",
            "describe_instance_types",
            "InstanceTypes",
            Filters=_filters("instance-type", wanted),
        )
        return {
            each["InstanceType"]: MachineType(
                each["InstanceType"],
                each["VCpuInfo"]["DefaultVCpus"],
                each["MemoryInfo"]["SizeInMiB"] * 2**20,
            )
            for each in found
        }

    # ------------------------------------------------------------ changing

    def import_key_pair(self, order: Order, public: str) -> None:
        """Give EC2 the public half of the key."""
        self._call(
            "ImportKeyPair",
            "import_key_pair",
            KeyName=order.key_name,
            PublicKeyMaterial=public.encode("utf-8"),
            TagSpecifications=_tagged(["key-pair"], {CLUSTER_TAG: order.cluster}),
        )

    def create_group(self, order: Order, network: str) -> str:
        """Make the security group, with its tag in the same request. Returns its id."""
        answer = self._call(
            "CreateSecurityGroup",
            "create_security_group",
            GroupName=order.group_name,
            Description=f"Kafka cluster {order.cluster}, managed by kafkaops.cluster",
            VpcId=network,
            TagSpecifications=_tagged(
                ["security-group"], {CLUSTER_TAG: order.cluster, "Name": order.group_name}
            ),
        )
        return str(answer["GroupId"])

    def open_rule(self, group: str, cluster: str, rule: Rule, purpose: str) -> None:
        """Let traffic in; that the rule is ours stands in its tag."""
        permission: Dict[str, Any] = {
            "IpProtocol": rule.protocol,
            "FromPort": rule.first,
            "ToPort": rule.last,
        }
        text = {"Description": _description(purpose)} if purpose else {}
        if rule.source == MEMBERS or rule.source.startswith("sg-"):
            source = group if rule.source == MEMBERS else rule.source
            permission["UserIdGroupPairs"] = [{"GroupId": source, **text}]
        elif rule.source.startswith("pl-"):
            permission["PrefixListIds"] = [{"PrefixListId": rule.source, **text}]
        elif ":" in rule.source:
            permission["Ipv6Ranges"] = [{"CidrIpv6": rule.source, **text}]
        else:
            permission["IpRanges"] = [{"CidrIp": rule.source, **text}]
        self._call(
            "AuthorizeSecurityGroupIngress",
            "authorize_security_group_ingress",
            GroupId=group,
            IpPermissions=[permission],
            TagSpecifications=_tagged(["security-group-rule"], {CLUSTER_TAG: cluster}),
        )

    def close_rules(self, group: str, rules: Sequence[str]) -> None:
        """Delete rules by their ids."""
        self._call(
            "RevokeSecurityGroupIngress",
            "revoke_security_group_ingress",
            GroupId=group,
            SecurityGroupRuleIds=list(rules),
        )

    def create_machine(
        self, order: Order, machine: Machine, subnet: str, image: Image, group: str
    ) -> str:
        """Start one machine, with tags and token in the same request. Returns its id.

        A token under which a machine was made that has ended meanwhile is not used again.
        """
        request = launch_request(order, machine, subnet, image, group)
        token = client_token(order.cluster, machine.name, request)
        for generation in range(GENERATIONS):
            try:
                answer = self._call(
                    "RunInstances",
                    "run_instances",
                    ClientToken=f"{token}-{generation}" if generation else token,
                    **request,
                )
            except AdminError as error:
                if error.details.get("code") != TERMINATED_TOKEN or generation == GENERATIONS - 1:
                    raise
            else:
                return str(answer["Instances"][0]["InstanceId"])
        raise AssertionError("the last attempt returns or raises")

    def start_machine(self, instance: str) -> None:
        """Start a stopped machine."""
        self._call("StartInstances", "start_instances", InstanceIds=[instance])

    def tag(self, resource: str, tags: Mapping[str, str]) -> None:
        """Set tags; others stay."""
        pairs = _pairs(tags)
        self._call("CreateTags", "create_tags", Resources=[resource], Tags=pairs)

    def set_groups(self, instance: str, groups: Sequence[str]) -> None:
        """Put a machine into exactly these security groups."""
        self._call(
            "ModifyInstanceAttribute",
            "modify_instance_attribute",
            InstanceId=instance,
            Groups=list(groups),
        )

    def end_machines(self, instances: Sequence[str]) -> None:
        """Terminate machines."""
        self._call("TerminateInstances", "terminate_instances", InstanceIds=list(instances))

    def delete_volume(self, volume: str) -> None:
        """Delete a volume that is attached to nothing."""
        self._call("DeleteVolume", "delete_volume", VolumeId=volume)

    def delete_group(self, group: str) -> None:
        """Delete a security group that nothing uses."""
        self._call("DeleteSecurityGroup", "delete_security_group", GroupId=group)

    def delete_key_pair(self, name: str) -> None:
        """Delete the public half of a key."""
        self._call("DeleteKeyPair", "delete_key_pair", KeyName=name)


# ---------------------------------------------------------------- our values in EC2's form


def launch_request(
    order: Order, machine: Machine, subnet: str, image: Image, group: str
) -> Dict[str, Any]:
    """What RunInstances is asked for, without the token."""
    tags = own_tags(order, machine)
    request: Dict[str, Any] = {
        "ImageId": machine.image,
        "InstanceType": machine.type,
        "MinCount": 1,
        "MaxCount": 1,
        "NetworkInterfaces": [
            {
                "DeviceIndex": 0,
                "SubnetId": subnet,
                "Groups": [group],
                "AssociatePublicIpAddress": machine.public_address,
                "DeleteOnTermination": True,
            }
        ],
        "BlockDeviceMappings": [_mapping(each, image) for each in (machine.root, *machine.volumes)],
        # Tokens for the machine's own credentials, so that a confused program hands out none.
        "MetadataOptions": {"HttpTokens": "required"},
        "TagSpecifications": _tagged(["instance", "volume"], tags),
    }
    if order.key_name:
        request["KeyName"] = order.key_name
    if machine.user_data:
        request["UserData"] = machine.user_data
    return request


def _mapping(volume: Volume, image: Image) -> Dict[str, Any]:
    ebs: Dict[str, Any] = {
        "VolumeSize": volume.size_gib,
        "VolumeType": volume.type,
        "DeleteOnTermination": not volume.keep,
    }
    if volume.encrypted:
        ebs["Encrypted"] = True
    if volume.iops:
        ebs["Iops"] = volume.iops
    if volume.throughput:
        ebs["Throughput"] = volume.throughput
    return {"DeviceName": volume.device or image.root_device, "Ebs": ebs}


def _filters(name: str, values: Sequence[str]) -> List[Dict[str, Any]]:
    return [{"Name": name, "Values": list(values)}]


def _pairs(tags: Mapping[str, str]) -> List[Dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def _tagged(kinds: Sequence[str], tags: Mapping[str, str]) -> List[Dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": _pairs(tags)} for kind in kinds]


def _description(text: str) -> str:
    """EC2 takes few signs in a rule's description, and 255 of them."""
    allowed = "._-:/()#,@[]+=&;{}!$* "
    return "".join(sign for sign in text if sign.isalnum() or sign in allowed)[:255]


# ---------------------------------------------------------------- EC2's answers as our values


def _tags(item: Mapping[str, Any]) -> Dict[str, str]:
    return {each["Key"]: each["Value"] for each in item.get("Tags") or ()}


def _instance(item: Mapping[str, Any]) -> Instance:
    interfaces = item.get("NetworkInterfaces") or ()
    groups = {each["GroupId"] for one in interfaces for each in one.get("Groups") or ()}
    groups |= {each["GroupId"] for each in item.get("SecurityGroups") or ()}
    return Instance(
        id=item["InstanceId"],
        state=item["State"]["Name"],
        type=item["InstanceType"],
        image=item.get("ImageId", ""),
        subnet=item.get("SubnetId", ""),
        zone=(item.get("Placement") or {}).get("AvailabilityZone", ""),
        key_name=item.get("KeyName", ""),
        root_device=item.get("RootDeviceName", ""),
        groups=tuple(sorted(groups)),
        ending_volumes=tuple(
            each["Ebs"]["VolumeId"]
            for each in item.get("BlockDeviceMappings") or ()
            if (each.get("Ebs") or {}).get("DeleteOnTermination")
        ),
        private_address=item.get("PrivateIpAddress", ""),
        public_address=item.get("PublicIpAddress", ""),
        public_dns=item.get("PublicDnsName", ""),
        tags=_tags(item),
    )


def _volume(item: Mapping[str, Any], ending: Collection[str]) -> SeenVolume:
    attached = next(iter(item.get("Attachments") or ()), {})
    return SeenVolume(
        id=item["VolumeId"],
        size_gib=item["Size"],
        type=item.get("VolumeType", ""),
        encrypted=bool(item.get("Encrypted")),
        iops=item.get("Iops"),
        throughput=item.get("Throughput"),
        device=attached.get("Device", ""),
        machine=attached.get("InstanceId", ""),
        ends_with_machine=item["VolumeId"] in ending,
        tags=_tags(item),
    )


def _image(item: Mapping[str, Any]) -> Image:
    root = item.get("RootDeviceName", "")
    sizes = [
        (each.get("Ebs") or {}).get("VolumeSize", 0)
        for each in item.get("BlockDeviceMappings") or ()
        if each.get("DeviceName") == root
    ]
    return Image(item["ImageId"], root, max(sizes, default=0))


def _rule(item: Mapping[str, Any], group: str, cluster: str) -> SeenRule:
    referenced = (item.get("ReferencedGroupInfo") or {}).get("GroupId")
    found = item.get("CidrIpv4") or item.get("CidrIpv6") or item.get("PrefixListId") or referenced
    rule = Rule(
        item["IpProtocol"],
        item.get("FromPort", -1),
        item.get("ToPort", -1),
        of_group(group, str(found)),
    )
    ours = _tags(item).get(CLUSTER_TAG) == cluster
    return SeenRule(item["SecurityGroupRuleId"], rule, item.get("Description", ""), ours)

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What EC2 and its library say, as one sentence with the remedy. Pure.

Private to this collection. Codes are those of EC2's API, and names of botocore's exceptions, for
which no request reached EC2.
"""

from __future__ import annotations

import re
from typing import Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# (codes as a regular expression, id, reason, remedy); the first row that fits counts. {action} is the call,
# {text} are EC2's words.
_TABLE: Tuple[Tuple[str, str, str, str], ...] = (
    (
        r"NoCredentialsError|CredentialRetrievalError|PartialCredentialsError|NoAuthTokenError",
        "aws.credentials",
        "no AWS credentials were found: {text}",
        "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in with `aws sso login`",
    ),
    (
        r"ProfileNotFound|ConfigNotFound|ConfigParseError",
        "aws.credentials",
        "the AWS profile cannot be read: {text}",
        "name one of the profiles in ~/.aws/config in AWS_PROFILE",
    ),
    (
        r".*(?:Expired|TokenRefreshRequired|SSOTokenLoadError|SSOError|TokenRetrievalError).*",
        "aws.credentials",
        "the AWS login has expired: {text}",
        "log in again, for example with `aws sso login`",
    ),
    (
        r"AuthFailure|UnrecognizedClientException|InvalidClientTokenId|SignatureDoesNotMatch|InvalidAccessKeyId"
        r"|IncompleteSignature|MissingAuthenticationToken|OptInRequired",
        "aws.credentials",
        "AWS does not accept the credentials: {text}",
        "correct the access key, and the clock of this machine if it is wrong",
    ),
    (
        r"UnauthorizedOperation|AccessDenied.*|UnauthorizedAccess",
        "aws.denied",
        "these credentials may not do ec2:{action}: {text}",
        "let an administrator of the account allow ec2:{action} for them",
    ),
    (
        r"NoRegionError|InvalidRegionError",
        "aws.region",
        "no region is set: {text}",
        "set aws_region, or AWS_REGION",
    ),
    (
        r"EndpointConnectionError|ConnectTimeoutError|ReadTimeoutError|ConnectionClosedError|SSLError|ProxyConnectionError"
        r"|ConnectionError|HTTPClientError",
        "aws.unreachable",
        "EC2 does not answer: {text}",
        "correct aws_region, AWS_ENDPOINT_URL or HTTPS_PROXY, or let this machine reach EC2",
    ),
    (
        r"InvalidAMIID\..*|InvalidParameterValue\.Image",
        "aws.no_image",
        "there is no such image in this region for these credentials: {text}",
        "set aws_image to the id of an image of this region; ids differ from region to region",
    ),
    (
        r"InvalidInstanceType|InvalidParameterValue\.InstanceType",
        "aws.no_type",
        "there is no such type of machine in this region: {text}",
        "set aws_type to a type that the region has, such as m7i.large",
    ),
    (
        r"InvalidSubnetI[Dd]\..*|InvalidSubnet|InvalidVpcID\..*",
        "aws.no_subnet",
        "there is no such subnet: {text}",
        "set aws_subnets to ids of subnets of this region",
    ),
    (
        r"RequestLimitExceeded|Throttling.*",
        "aws.busy",
        "EC2 asks for fewer requests: {text}",
        "try it again in a minute; it goes on from here",
    ),
    (
        r".*LimitExceeded|.*QuotaExceeded|MaxIOPSLimitExceeded|ResourceCountExceeded",
        "aws.limit",
        "a limit of the account is reached: {text}",
        "end what is not needed, or ask for a higher limit in Service Quotas; then run it again, it goes on from here",
    ),
    (
        r"InsufficientInstanceCapacity|InsufficientHostCapacity|InsufficientFreeAddressesInSubnet|Unsupported",
        "aws.capacity",
        "EC2 has no room for this machine there: {text}",
        "choose another type or other subnets, or try it again later; it goes on from here",
    ),
    (
        r"OperationNotPermitted",
        "aws.protected",
        "EC2 protects it: {text}",
        "switch the termination protection off if it is to go",
    ),
)


def problem_of(code: str, text: str, action: str, subjects: Tuple[str, ...] = ()) -> Problem:
    """The problem behind an error of EC2; `action` is the call, as EC2 names it (RunInstances)."""
    words = " ".join(str(text).split()).rstrip(".") or code
    for pattern, check, reason, remedy in _TABLE:
        if re.fullmatch(pattern, code):
            return Problem(
                check,
                reason.format(action=action, text=words),
                remedy.format(action=action, text=words),
                subjects,
            )
    return Problem(
        "aws.failed",
        f"{action} failed: {code}: {words}",
        "do what EC2's words say, then run it again; it goes on from here",
        subjects,
    )

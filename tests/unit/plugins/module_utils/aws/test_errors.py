# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What EC2 says becomes one sentence with an id of the catalogue and a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.errors import _TABLE, problem_of

CATALOGUE = yaml.safe_load(
    (Path(__file__).resolve().parents[5] / "meta" / "problems.yml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    "code, check",
    [
        ("NoCredentialsError", "aws.credentials"),
        ("ExpiredToken", "aws.credentials"),
        ("RequestExpired", "aws.credentials"),
        ("AuthFailure", "aws.credentials"),
        ("ProfileNotFound", "aws.credentials"),
        ("UnauthorizedOperation", "aws.denied"),
        ("NoRegionError", "aws.region"),
        ("EndpointConnectionError", "aws.unreachable"),
        ("InvalidAMIID.NotFound", "aws.no_image"),
        ("InvalidAMIID.Malformed", "aws.no_image"),
        ("InvalidInstanceType", "aws.no_type"),
        ("InvalidSubnetID.NotFound", "aws.no_subnet"),
        ("InstanceLimitExceeded", "aws.limit"),
        ("VcpuLimitExceeded", "aws.limit"),
        ("RulesPerSecurityGroupLimitExceeded", "aws.limit"),
        # no limit of the account: it is over in a moment
        ("RequestLimitExceeded", "aws.busy"),
        ("InsufficientInstanceCapacity", "aws.capacity"),
        ("OperationNotPermitted", "aws.protected"),
        ("SomethingNew", "aws.failed"),
    ],
)
def test_each_code_has_its_sentence(code, check):
    problem = problem_of(code, "Their own\nwords.", "RunInstances", ("kafka-1",))
    assert problem.check == check and check in CATALOGUE
    assert "Their own words. Remedy: " in problem.line() and "{" not in problem.line()
    assert check not in ("aws.denied", "aws.failed") or "RunInstances" in problem.line()


def test_every_row_is_in_the_catalogue():
    assert {check for _codes, check, _reason, _remedy in _TABLE} <= set(CATALOGUE)

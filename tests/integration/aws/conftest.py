# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""moto's EC2 on 127.0.0.1, and the modules that talk to it by real boto3."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import boto3
import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(CHECKOUT))

from tests.support import collection_finder  # noqa: E402
from tests.support.ec2_server import Ec2Server  # noqa: E402

collection_finder.install()

PORT = int(os.environ.get("KAFKAOPS_TEST_PORT_BASE", "20200")) + 1200
REGION = "eu-central-1"
# Nothing of this machine's own AWS settings, and no look at a metadata service.
SETTINGS = {
    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{PORT}",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1",
}


@pytest.fixture(scope="session")
def running():
    """The server of all tests."""
    with Ec2Server(PORT) as server:
        yield server


@pytest.fixture
def server(running, monkeypatch):
    """The server, in which nothing is of anybody."""
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    import requests

    requests.post(f"{running.endpoint}/moto-api/reset", timeout=30)
    running.forget()
    yield running
    running.go_on.set()


@pytest.fixture
def ec2(server):
    """A client that is not ours, to look and to interfere."""
    return boto3.client("ec2", region_name=REGION)


@pytest.fixture
def image(ec2):
    """The id of an image that moto has; its root volume needs 15 GiB."""
    return next(
        each["ImageId"]
        for each in ec2.describe_images()["Images"]
        if each["RootDeviceName"] == "/dev/sda1"
    )

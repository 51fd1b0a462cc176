# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""moto's EC2 on 127.0.0.1, and the modules that talk to it by real boto3."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import boto3
import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(CHECKOUT))

from tests.support import collection_finder  # noqa: E402
from tests.support.ec2_server import Ec2Server  # noqa: E402

collection_finder.install()

BIN = Path(sys.executable).parent
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


@pytest.fixture(scope="session")
def images(running):
    """The ids of the images that moto has, from its own files, whose root volume needs 15 GiB.

    To tell all of them takes it more than a second, so it is asked once.
    """
    client = boto3.client(
        "ec2",
        region_name=REGION,
        endpoint_url=running.endpoint,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    found = client.describe_images()["Images"]
    return [each["ImageId"] for each in found if each["RootDeviceName"] == "/dev/sda1"]


@pytest.fixture
def image(server, images):
    """One of them."""
    return images[0]


class Checkout:
    """A copy of inventories/aws with an image that moto has and a key of its own."""

    def __init__(self, directory, image):
        self.inventory = directory / "inventory"
        self.home = directory / "home"
        self.key_file = directory / "orders.pem"
        shutil.copytree(CHECKOUT / "inventories" / "aws", self.inventory)
        self.edit(
            "all/machines", aws_image=image, aws_type="t3.micro", aws_key_file=str(self.key_file)
        )

    def edit(self, name, **variables):
        path = self.inventory / "group_vars" / f"{name}.yml"
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        path.write_text(yaml.safe_dump({**found, **variables}), encoding="utf-8")

    def command(self, name, *arguments):
        return subprocess.run(
            [str(BIN / name), "-i", str(self.inventory), *arguments],
            cwd=CHECKOUT,
            env={
                **os.environ,
                "KAFKAOPS_HOME": str(self.home),
                "ANSIBLE_FORCE_COLOR": "0",
                "COLUMNS": "400",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def play(self, playbook, *arguments):
        done = self.command("ansible-playbook", f"playbooks/{playbook}.yml", *arguments)
        return done.returncode, done.stdout

    def listed(self):
        """The inventory as ansible-inventory tells it, without its marks of what came from outside."""

        def bare(item):
            return item["__ansible_unsafe"] if set(item) == {"__ansible_unsafe"} else item

        return json.loads(self.command("ansible-inventory", "--list").stdout, object_hook=bare)

    def provision(self, *arguments):
        code, said = self.play("aws_provision", "-e", "aws_reach=false", *arguments)
        assert code == 0, said
        return said


@pytest.fixture
def checkout(tmp_path, image):
    return Checkout(tmp_path, image)

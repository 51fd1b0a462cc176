# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a broker and a server are started with: garbage collector, crash files, environment, secrets."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.edge import SPEC
from tests.support.role_variables import evaluated, generation_of

ROOT = Path(__file__).resolve().parents[3]
PRODUCTS = ("kafka", "zookeeper")


def generation(product, **given):
    """The generation that the role stages, with variables of an inventory."""
    named = {f"{product}_{name}": value for name, value in given.items()}
    return generation_of(product, named)


def options(product, **given):
    """What the JVM is given, with variables of an inventory."""
    staged = generation(product, **given)
    return staged["default_options"] + staged["jvm_options"]


def shown(staged):
    """Everything of a generation that the module's log and -vvv show."""
    hidden = ("secrets", "secret_environment")
    return json.dumps({key: value for key, value in staged.items() if key not in hidden})


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_garbage_collector_of_the_product(product):
    given = options(product)
    assert "-XX:+UseG1GC" in given and "-XX:MaxGCPauseMillis=20" in given
    assert "-XX:InitiatingHeapOccupancyPercent=35" in given


@pytest.mark.parametrize("product, heap", [("kafka", "512m"), ("zookeeper", "128m")])
def test_a_small_host_has_small_heaps(product, heap):
    """Whatever stands in the inventory wins."""
    given = generation_of(product, {"kafkaops_profile": "small"})
    given = given["default_options"] + given["jvm_options"]
    assert {f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseSerialGC"} <= set(given)
    assert not {each for each in given if "G1" in each or "MaxGCPauseMillis" in each}
    given = generation_of(product, {"kafkaops_profile": "small", f"{product}_heap": "300m"})
    assert "-Xmx300m" in given["jvm_options"] + given["default_options"]


@pytest.mark.parametrize("product", PRODUCTS)
def test_another_collector_replaces_ours(product):
    """Java refuses to start with two."""
    given = options(product, jvm_options=["-XX:+UseZGC", "-Xlog:async"])
    assert "-XX:+UseZGC" in given and "-Xlog:async" in given
    assert "-XX:+UseG1GC" not in given and "-XX:MaxGCPauseMillis=20" not in given
    given = options(product, gc_options=["-XX:+UseSerialGC"])
    assert "-XX:+UseSerialGC" in given and "-XX:+UseG1GC" not in given


@pytest.mark.parametrize("product", PRODUCTS)
def test_what_nobody_has_chosen_is_no_reason_to_restart(product):
    """Anything else is, also the choice of nothing."""
    staged = generation(product)
    assert staged["default_options"] == [
        f"-XX:ErrorFile=/var/log/{product}/jvm-crash.log",
        *evaluated(product, f"{product}_gc_options"),
        "-XX:+HeapDumpOnOutOfMemoryError",
        f"-XX:HeapDumpPath=/var/log/{product}/heap-dump.hprof",
    ]
    for name, value in [
        ("gc_options", ["-XX:+UseSerialGC"]),
        ("gc_options", []),
        ("heap_dump_file", "/data/dump"),
        ("heap_dump_file", ""),
    ]:
        chosen = generation(product, **{name: value})
        assert chosen["jvm_options"] != staged["jvm_options"], (name, value)
        assert not set(chosen["jvm_options"]) & set(chosen["default_options"])


def test_a_server_started_by_hand_has_the_same_options():
    launcher = (ROOT / "roles/jvm_service/files/launcher/launch").read_text()
    branch = re.search(r"^ +daemon\)(.*?);;", launcher, re.DOTALL | re.MULTILINE)[1]
    for product in PRODUCTS:
        assert re.findall(r"-XX:\S+\w", branch) == evaluated(product, f"{product}_gc_options")


@pytest.mark.parametrize("product", PRODUCTS)
def test_files_of_a_crash_have_one_name_each(product):
    """A name with the process id would be a new file at each of a row of crashes."""
    logs = f"/var/log/{product}"
    given = options(product)
    assert "-XX:+ExitOnOutOfMemoryError" in given
    assert f"-XX:ErrorFile={logs}/jvm-crash.log" in given
    dump = given.index("-XX:+HeapDumpOnOutOfMemoryError")
    assert given[dump + 1] == f"-XX:HeapDumpPath={logs}/heap-dump.hprof"
    without = [text for text in options(product, heap_dump_file="") if "Dump" in text]
    assert without == ["-XX:-HeapDumpOnOutOfMemoryError"]


@pytest.mark.parametrize("product", PRODUCTS)
def test_options_with_a_password_are_in_a_file(product):
    secret = "-Djavax.net.ssl.keyStorePassword=hunter 2"
    agent = "-javaagent:/a.jar=user=x,password=hunter3"
    staged = generation(product, jvm_options=[secret, "-Dmine=yes", agent])
    assert "hunter" not in shown(staged)
    assert "-Dmine=yes" in staged["jvm_options"]
    assert f"@/etc/{product}/current/jvm.options" in staged["jvm_options"]
    assert staged["secrets"]["jvm.options"] == f'"{secret}"\n"{agent}"\n'
    staged = generation(product, jvm_options=["-Dmine=yes"])
    assert "jvm.options" not in json.dumps(staged)


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("option", ["-Dmy.password=hunter2", '-Dmy.password=hunter2 "quoted"'])
def test_ansible_writes_no_secret_into_the_system_log(product, option, monkeypatch):
    """It hides the text of a secret in the text of all parameters, where quotes and lines' ends look otherwise."""
    given = {
        f"{product}_jvm_options": [option],
        f"{product}_config": {"ssl.keystore.password": "hunter3"},
        f"{product}_environment": {"MY_PASSWORD": "hunter\n'4'"},
    }
    place = dict.fromkeys(("config_dir", "state_dir", "log_dir"), "/tmp/x")
    staging = evaluated(product, f"__{product}_staging", given)
    logged = []
    monkeypatch.setattr(
        basic.AnsibleModule, "log", lambda _self, *told, **more: logged.append(f"{told} {more}")
    )
    with patch_module_args({"name": "x", "manager": "systemd", **place, **staging}):
        basic.AnsibleModule(argument_spec=SPEC)
    text = "".join(logged)
    assert "Invoked with" in text and "hunter" not in text, text


@pytest.mark.skipif(not shutil.which("java"), reason="no Java")
def test_java_reads_the_file_as_it_was_written(tmp_path):
    value = 'a "b" \\c #d\'e'
    text = generation("kafka", jvm_options=[f"-Dmy.password={value}"])["secrets"]["jvm.options"]
    (tmp_path / "jvm.options").write_text(text)
    said = subprocess.run(
        ["java", f"@{tmp_path}/jvm.options", "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    assert f"my.password = {value}\n" in said


def test_passwords_of_zookeeper_are_no_part_of_what_is_shown():
    settings = {"ssl.quorum.keyStore.password": "hunter2", "initLimit": 30}
    staged = generation("zookeeper", config=settings)
    assert "hunter" not in shown(staged)
    assert "initLimit=30\n" in staged["files"]["zoo.cfg"]
    assert staged["secrets"]["zoo.cfg"] == "ssl.quorum.keyStore.password=hunter2\n"


def test_a_password_in_an_address_is_no_part_of_what_is_shown():
    staged = generation(
        "kafka", listeners=[{"name": "A", "port": 1}], config={"a.url": "http://bob:hunter2@x/"}
    )
    assert "hunter" not in shown(staged) and "hunter2" in staged["secrets"]["server.properties"]


@pytest.mark.parametrize("product", PRODUCTS)
def test_environment(product):
    given = {"AWS_REGION": "eu-1", "AWS_SECRET_ACCESS_KEY": "hunter2", "DEBUG": True, "N": 3}
    staged = generation(product, environment=given)
    assert staged["environment"] == {"AWS_REGION": "eu-1", "DEBUG": "true", "N": "3"}
    assert staged["secret_environment"] == {"AWS_SECRET_ACCESS_KEY": "hunter2"}
    assert "hunter" not in shown(staged)

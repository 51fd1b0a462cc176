# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection options: code and documentation tell the same, addresses have one form."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.kafkaops.cluster.plugins.doc_fragments.disks import (
    ModuleDocFragment as Disks,
)
from ansible_collections.kafkaops.cluster.plugins.doc_fragments.fence import (
    ModuleDocFragment as Fence,
)
from ansible_collections.kafkaops.cluster.plugins.doc_fragments.kafka import ModuleDocFragment
from ansible_collections.kafkaops.cluster.plugins.doc_fragments.progress import (
    ModuleDocFragment as Progress,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoints
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice import (
    info as advice_info,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (
    DISK_OPTIONS,
    FENCE_OPTIONS,
    connection_from,
    kafka_argument_spec,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster import (
    info as cluster_info,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster import (
    tables as cluster_tables,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs import broker_settings
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs import (
    resource as configs,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    parse_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups import (
    info as groups_info,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups import (
    resource as groups,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.leaders import (
    resource as leaders,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves import moving
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas import (
    resource as quotas,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.records import (
    resource as records,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention import (
    plan as plan_retention,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention import (
    resource as retention,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.options import (
    GATE_OPTIONS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics import items
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics import (
    resource as topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.voters import (
    resource as voters,
)
from tests.support.run_module import run_module

FRAGMENT = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]
PROGRESS = yaml.safe_load(Progress.DOCUMENTATION)["options"]


def documented(name):
    """The options that a module documents itself, with that of the fragment for what takes long."""
    module = importlib.import_module(f"ansible_collections.kafkaops.cluster.plugins.modules.{name}")
    found = yaml.safe_load(module.DOCUMENTATION)
    more = (
        PROGRESS if "kafkaops.cluster.progress" in found["extends_documentation_fragment"] else {}
    )
    return {**found["options"], **more}


def compare(specification, documentation, path=""):
    """Every option has the documented type, default, choices and environment variable."""
    assert set(specification) == set(documentation), path
    for name, option in specification.items():
        text = documentation[name]
        for key in ("type", "elements", "choices"):
            assert option.get(key) == text.get(key), f"{path}{name}.{key}"
        assert option.get("default") == text.get("default"), f"{path}{name}"
        assert bool(option.get("required")) == bool(text.get("required")), f"{path}{name}"
        for variable in (option.get("fallback") or ((), ()))[1]:
            assert f"E({variable})" in str(text["description"]), f"{path}{name}"
        if "options" in option:
            compare(option["options"], text["suboptions"], f"{path}{name}.")


def test_the_fragment_documents_the_connection():
    compare(kafka_argument_spec(), FRAGMENT)


def test_the_fragment_documents_the_run_and_its_lock():
    compare(FENCE_OPTIONS, yaml.safe_load(Fence.DOCUMENTATION)["options"])


def test_the_fragment_documents_the_disks():
    compare(DISK_OPTIONS, yaml.safe_load(Disks.DOCUMENTATION)["options"])


@pytest.mark.parametrize(
    "name, options",
    [
        ("kafka_topics", topics.TOPIC_OPTIONS),
        ("kafka_cluster_info", cluster_info.OPTIONS),
        ("kafka_retention", retention.RETENTION_OPTIONS),
        ("kafka_topics_info", cluster_tables.TOPICS_INFO_OPTIONS),
        ("kafka_log_dirs_info", cluster_tables.LOG_DIRS_INFO_OPTIONS),
        ("kafka_reassignment", moving.OPTIONS),
        ("kafka_records", records.RECORD_OPTIONS),
        ("kafka_broker_gate", GATE_OPTIONS),
        ("kafka_broker_settings", broker_settings.OPTIONS),
        ("kafka_configs", configs.CONFIGS_OPTIONS),
        ("kafka_configs_info", configs.INFO_OPTIONS),
        ("kafka_quotas", quotas.QUOTA_OPTIONS),
        ("kafka_consumer_groups", groups.GROUP_OPTIONS),
        ("kafka_consumer_groups_info", groups_info.OPTIONS),
        ("kafka_leader_election", leaders.ELECTION_OPTIONS),
        ("kafka_partition_advice", advice_info.ADVICE_OPTIONS),
        ("kafka_voters", voters.VOTER_OPTIONS),
    ],
)
def test_modules_document_their_own(name, options):
    compare(options, documented(name))


def test_a_topic_has_the_same_options_wherever_it_is_declared():
    """Those of the module, those that are read, and those of the role's variable."""
    specs = Path(__file__).parents[5] / "roles" / "kafka" / "meta" / "argument_specs.yml"
    entries = yaml.safe_load(specs.read_text(encoding="utf-8"))["argument_specs"]
    of_the_role = entries["main"]["options"]["kafka_topics"]["options"]
    of_the_module = topics.TOPIC_OPTIONS["topics"]["options"]
    assert set(of_the_role) == set(of_the_module) == set(items._ITEM_KEYS)
    for name, option in of_the_role.items():
        for key in ("choices", "default", "required"):
            assert option.get(key) == of_the_module[name].get(key), name


def test_a_policy_has_the_same_options_wherever_it_is_declared():
    """Those of the module, those that are read, and those of the role's variable."""
    specs = Path(__file__).parents[5] / "roles" / "kafka" / "meta" / "argument_specs.yml"
    entries = yaml.safe_load(specs.read_text(encoding="utf-8"))["argument_specs"]
    of_the_role = entries["main"]["options"]["kafka_retention_policies"]["options"]
    of_the_module = retention.RETENTION_OPTIONS["policies"]["options"]
    assert set(of_the_role) == set(of_the_module) == set(plan_retention._POLICY_KEYS)


def test_every_connection_option_has_a_variable():
    spec = kafka_argument_spec()
    assert [name for name, option in spec.items() if "fallback" not in option] == ["cluster_id"]


@pytest.mark.parametrize("given", [None, "", "SCRAM-SHA-512"])
def test_a_variable_that_is_set_to_nothing_says_nothing(monkeypatch, given):
    """A choice or a truth value would be refused, and there is no other way for a task to hide a variable."""
    for option in kafka_argument_spec().values():
        for name in (option.get("fallback") or ((), ()))[1]:
            monkeypatch.delenv(name, raising=False)
            if given is not None:
                monkeypatch.setenv(name, "")
    if given:
        monkeypatch.setenv("KAFKA_SASL_MECHANISM", given)
    result = ArgumentSpecValidator(kafka_argument_spec()).validate({"bootstrap_servers": "a:1"})
    assert not result.error_messages
    found = {name: value for name, value in result.validated_parameters.items() if value}
    assert found.pop("sasl_mechanism", None) == (given or None)
    assert found == {
        "bootstrap_servers": ["a:1"],
        "security_protocol": "PLAINTEXT",
        "ssl_check_hostname": True,
        "timeout": 30.0,
    }


def test_no_exported_connection_reaches_a_cluster_that_is_thrown_away():
    """Neither the rows, nor the run that deploys it, nor the judge."""
    read = {
        name
        for option in kafka_argument_spec().values()
        for name in (option.get("fallback") or ((), ()))[1]
    }
    playbooks = Path(__file__).parents[5] / "playbooks"
    playbook = (playbooks / "guarantees.yml").read_text(encoding="utf-8")
    hidden = playbook.partition("__guarantees_hidden:\n")[2].partition(" block:")[0]
    assert set(re.findall(r"- (KAFKA_\w+)", hidden)) == read
    for name in ("guarantee", "guarantees_judge"):
        tasks = (playbooks / "tasks" / f"{name}.yml").read_text(encoding="utf-8")
        assert 'environment: "{{ __guarantees_own }}"' in tasks
    assert "{{ __guarantees_own | combine(" in playbook


def test_secrets_and_only_secrets_are_hidden():
    hidden = [name for name, option in kafka_argument_spec().items() if option.get("no_log")]
    assert sorted(hidden) == ["sasl_password", "ssl_key", "ssl_key_password"]


ADDRESSES = [
    (["a:1"], (("a", 1),)),
    (["a:1,b:2", "c:3"], (("a", 1), ("b", 2), ("c", 3))),
    ([" a:1 , b:2 ,"], (("a", 1), ("b", 2))),
    (["[::1]:9092"], (("::1", 9092),)),
    (["10.0.0.1:65535"], (("10.0.0.1", 65535),)),
]


@pytest.mark.parametrize("texts, pairs", ADDRESSES)
def test_addresses(texts, pairs):
    assert parse_addresses(texts) == pairs
    assert parse_addresses([endpoints(pairs)]) == pairs


@pytest.mark.parametrize(
    "text",
    ["", ",", "a", "a:", ":1", "a:0", "a:65536", "a:b", "http://a:1", "::1:9092", "a:1/x", "a b:1"],
)
def test_what_is_no_address(text):
    with pytest.raises(AdminError, match=r"^\[bootstrap_servers.form\]"):
        parse_addresses([text])


def parameters(**options):
    """A module's parameters, as they are if nothing is said."""
    plain = {name: option.get("default") for name, option in kafka_argument_spec().items()}
    return {**plain, "bootstrap_servers": ["a:1"], **options}


def test_connection_from_parameters():
    connection = connection_from(parameters(timeout=3.0, sasl_username="u"))
    assert connection.bootstrap == "a:1" and connection.timeout == 3.0
    assert connection.sasl_username == "u" and connection.security_protocol == "PLAINTEXT"


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), 3601, 1e12, float("inf")])
def test_a_timeout_must_be_positive_and_one_that_the_library_takes(seconds):
    with pytest.raises(AdminError, match=r"^\[options.range\] timeout=.*at most 3600 seconds"):
        connection_from(parameters(timeout=seconds))


@pytest.mark.parametrize("option", ["ssl_ca", "ssl_certificate", "ssl_key"])
def test_a_file_that_is_not_there_is_named(option):
    options = {"security_protocol": "SSL", option: "/nowhere/x.pem"}
    with pytest.raises(AdminError, match=rf"^\[options.file\] {option}.*no such file") as caught:
        connection_from(parameters(**options))
    # What stands where a key's path belongs may be the key itself.
    assert ("/nowhere/x.pem" in str(caught.value)) is (option != "ssl_key")
    connection_from(parameters(**{**options, "security_protocol": "PLAINTEXT"}))


def test_files_and_pem_text_are_accepted(tmp_path):
    (tmp_path / "ca.pem").write_text("x")
    text = "-----BEGIN CERTIFICATE-----"
    for value in (str(tmp_path / "ca.pem"), str(tmp_path), text):
        connection_from(parameters(security_protocol="SSL", ssl_ca=value))


@pytest.mark.parametrize(
    ("options", "refused"),
    [({"spread": True}, False), ({"spread": True, "drain_directories": ["/data"]}, True)],
    ids=["between brokers", "a directory without its broker"],
)
def test_what_belongs_to_disks_is_asked_for_with_disks_alone(options, refused):
    """A default counted as given: every move between brokers was refused."""
    arguments = {"bootstrap_servers": "127.0.0.1:1", "timeout": 1, **options}
    result = run_module("kafka_reassignment", arguments)
    assert result.failed and ("missing parameter" in result.msg) is refused, result.msg

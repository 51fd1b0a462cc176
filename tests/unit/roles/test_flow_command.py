# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of the validation job, from the role's variables."""

from __future__ import annotations

import shlex

import pytest

from tests.support.role_variables import evaluated

# What a run has before its command is made.
RUN = {
    "__flow_validation_dir": {"path": "/reports/A/20260101T000000Z"},
    "__flow_validation_run": "20260101T000000Z",
    "kafka_cluster_name": "A",
    "flow_validation_bootstrap_servers": "one:9092",
}


def command(**given):
    return evaluated("flow_validation", "__flow_validation_argv", {**RUN, **given})


@pytest.mark.parametrize(
    "given,words",
    [
        ({}, ["--master=local[*, 4]", "--ledger=/reports/A/20260101T000000Z/ledger"]),
        (
            {"flow_validation_ledger_dir": "hdfs://nn:8020/proofs"},
            ["--ledger=hdfs://nn:8020/proofs/A-20260101T000000Z"],
        ),
        ({"flow_validation_producers": 12}, ["--producers=12"]),
        ({"flow_validation_replication_factor": 2}, ["--replication-factor=2"]),
        ({"flow_validation_compression": "zstd"}, ["--producer-property=compression.type=zstd"]),
        (
            {"flow_validation_producer_properties": {"linger.ms": 5, "batch.size": 100000}},
            ["--producer-property=batch.size=100000", "--producer-property=linger.ms=5"],
        ),
        (
            {"flow_validation_spark_settings": {"spark.executor.memory": "1g"}},
            ["--spark-config=/reports/A/20260101T000000Z/.client-spark.properties"],
        ),
    ],
)
def test_a_variable_becomes_an_option(given, words):
    assert set(words) <= set(command(**given))


def test_what_is_not_given_is_no_option():
    said = " ".join(command())
    for option in ("--spark-config", "--producers", "--producer-property", "--replication-factor"):
        assert option not in said


def test_settings_of_spark_are_written_where_the_command_looks():
    settings = {"spark.hadoop.fs.s3a.secret.key": "secret"}
    given = {**RUN, "flow_validation_spark_settings": settings}
    *_others, last = evaluated("flow_validation", "__flow_validation_clients", given)
    assert last == {"name": "-spark", "properties": settings}
    assert "secret" not in " ".join(command(flow_validation_spark_settings=settings))


def test_a_steady_run_ends_with_its_playbook_and_any_other_has_a_limit():
    (beside,) = [each for each in command(flow_validation_duration="10m") if "--beside" in each]
    assert int(beside.partition("=")[2]) > 1
    assert not [each for each in command() if "--beside" in each]
    elsewhere = {"flow_validation_duration": "10m", "kafka_admin_host": "another"}
    assert not [each for each in command(**elsewhere) if "--beside" in each]
    given = {**RUN, "flow_validation_duration": "10m", "flow_validation_timeout_seconds": 60}
    assert int(evaluated("flow_validation", "__flow_validation_limit", given)) == 660


def said_again(**given):
    (again,) = [each for each in command(**given) if each.startswith("--again=")]
    return again.removeprefix("--again=")


PLAIN = "flow_validation_ledger=/reports/A/20260101T000000Z/ledger"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["playbooks/validate.yml", "-e", PLAIN]),
        (
            {"ansible_inventory_sources": ["/i/a b", "/i/prod"]},
            ["-i", "/i/a b", "-i", "/i/prod", "playbooks/validate.yml", "-e", PLAIN],
        ),
        (
            {"flow_validation_ledger": "/r/it's mine/l"},
            ["playbooks/validate.yml", "-e", '{"flow_validation_ledger": "/r/it\'s mine/l"}'],
        ),
    ],
    ids=["plain", "inventories", "quotes"],
)
def test_the_command_that_judges_again_can_be_typed(given, expected):
    assert shlex.split(said_again(**given)) == ["ansible-playbook", *expected]

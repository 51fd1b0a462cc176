# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The systemd unit that a role writes, and the logging configuration beside it."""

from __future__ import annotations

import xml.etree.ElementTree

import pytest
import yaml

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.unit import (
    mount_units,
    sandbox,
    unit_word,
)
from tests.support.role_variables import FACTS, generation_of

PRODUCTS = ("kafka", "zookeeper")


def unit(product, **given):
    """The unit's settings, (section, key) -> values."""
    named = {f"{product}_{name}": value for name, value in given.items()}
    text = generation_of(product, named)["unit_text"]
    section, found = "", {}
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key, _equals, value = line.partition("=")
            found.setdefault((section, key), []).append(value)
    return found


def test_a_broker_starts_without_one_of_its_disks():
    """Kafka takes a failed log directory out of use; the unit must let it."""
    found = unit("kafka", log_dirs=["/data/1/kafka", "/data/2/kafka"])
    mounts = [
        "data.mount",
        "data-1.mount",
        "data-1-kafka.mount",
        "data-2.mount",
        "data-2-kafka.mount",
    ]
    assert [name for name in found["Unit", "Wants"] if name.endswith(".mount")] == mounts
    assert set(mounts) < set(found["Unit", "After"])
    assert found["Unit", "RequiresMountsFor"] == ["/var/log/kafka"]
    assert {"-/data/1/kafka", "-/data/2/kafka"} < set(found["Service", "ReadWritePaths"])


@pytest.mark.parametrize(
    "product, data", [("kafka", "/var/lib/kafka/data"), ("zookeeper", "/var/lib/zookeeper")]
)
def test_nothing_starts_without_its_only_disk(product, data):
    """It would start with an empty directory."""
    assert unit(product)["Unit", "RequiresMountsFor"] == [f"/var/log/{product} {data}"]


@pytest.mark.parametrize("product", PRODUCTS)
def test_nothing_is_killed(product):
    found = unit(product)
    assert found["Service", "SendSIGKILL"] == ["no"]
    assert found["Service", "TimeoutStopSec"] == ["300"]


@pytest.mark.parametrize("product", PRODUCTS)
def test_settings_of_the_inventory_come_last(product):
    given = {
        "Service": {"OOMScoreAdjust": -500, "ExecStartPre": ["/bin/a", "/bin/b"]},
        "Unit": {"OnFailure": "x.service"},
    }
    found = unit(product, unit_options=given)
    assert found["Service", "OOMScoreAdjust"] == ["-500"]
    assert found["Service", "ExecStartPre"][-2:] == ["/bin/a", "/bin/b"]
    assert found["Unit", "OnFailure"] == ["x.service"]


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_start_begins_with_a_small_console_log(product):
    """While the service runs, its launcher sees to it: test_generation.py."""
    (before,) = unit(product)["Service", "ExecStartPre"]
    assert f"/var/log/{product}/console.log -size +10M" in before


@pytest.mark.parametrize("product", PRODUCTS)
def test_systemd_opens_no_file_in_a_directory_of_the_account(product):
    assert not [key for key in unit(product) if key[1].startswith("Standard")]


@pytest.mark.parametrize(
    "path, expected",
    [
        ("/", []),
        ("/data/my-disk", ["data.mount", r"data-my\x2ddisk.mount"]),
        ("/.hidden/ü", [r"\x2ehidden.mount", r"\x2ehidden-\xc3\xbc.mount"]),
    ],
)
def test_names_of_mount_units(path, expected):
    assert mount_units([path]) == expected


def test_words_of_a_unit():
    assert unit_word("/var/log/kafka") == "/var/log/kafka"
    assert unit_word("/a b/50%") == '"/a b/50%%"'
    assert unit_word("/a:b") == '"/a:b"'  # it would part the source of a bind mount from its target


# ---------------------------------------------------------------- what a unit sees, and may write

USUAL = {"ReadWritePaths": "/var/log/kafka /data/kafka"}


@pytest.mark.parametrize("product", PRODUCTS)
def test_usual_places_need_no_hole_in_the_sandbox(product):
    service = {
        key: lines for (section, key), lines in unit(product).items() if section == "Service"
    }
    assert service["ProtectHome"] == ["yes"] and service["RuntimeDirectory"] == [product]
    assert not [key for key in service if "Bind" in key or key == "TemporaryFileSystem"]
    assert "BindPaths" not in generation_of(product, {})["service"]


HIDDEN_OTHERWISE = ["TemporaryFileSystem=/home:ro", "InaccessiblePaths=-/root -/run/user"]


@pytest.mark.parametrize(
    "places, lines, paths",
    [
        (
            {},
            ["ReadWritePaths=/var/log/kafka", "ReadWritePaths=-/data/kafka", "ProtectHome=yes"],
            USUAL,
        ),
        (
            {"data": ["/home/kafka/data"]},
            ["ReadWritePaths=/var/log/kafka", *HIDDEN_OTHERWISE, "BindPaths=-/home/kafka/data"],
            {"ReadWritePaths": "/var/log/kafka", "BindPaths": "/home/kafka/data"},
        ),
        (
            {"writes": ["/home/a b/logs"], "reads": ["/etc/kafka", "/home/opt/kafka"]},
            [
                "ReadWritePaths=-/data/kafka",
                *HIDDEN_OTHERWISE,
                'BindPaths="/home/a b/logs"',
                "BindReadOnlyPaths=/home/opt/kafka",
            ],
            {
                "ReadWritePaths": "/data/kafka",
                "BindPaths": "/home/a b/logs",
                "BindReadOnlyPaths": "/home/opt/kafka",
            },
        ),
        (
            {"reads": ["/root/jdk", "/homes/jdk", "/root/jdk"]},
            [
                *("ReadWritePaths=/var/log/kafka", "ReadWritePaths=-/data/kafka"),
                *("TemporaryFileSystem=/root:ro", "InaccessiblePaths=-/home -/run/user"),
                "BindReadOnlyPaths=/root/jdk",
            ],
            {**USUAL, "BindReadOnlyPaths": "/root/jdk"},
        ),
        # a unit has a /tmp of its own: what is not bound there goes when it stops
        (
            {"data": ["/tmp/data"], "state_dir": "/var/tmp/state"},
            [
                *("ReadWritePaths=/var/log/kafka", "ProtectHome=yes"),
                *("BindPaths=/var/tmp/state", "BindPaths=/tmp/data"),
            ],
            {"ReadWritePaths": "/var/log/kafka", "BindPaths": "/var/tmp/state /tmp/data"},
        ),
        (
            {"state_dir": "/srv/kafka/state"},
            [
                *("ReadWritePaths=/var/log/kafka", "ReadWritePaths=/srv/kafka/state"),
                *("ReadWritePaths=-/data/kafka", "ProtectHome=yes"),
            ],
            {"ReadWritePaths": "/var/log/kafka /srv/kafka/state /data/kafka"},
        ),
        (
            {"dumps": "/srv/dumps/kafka.hprof", "class_data": "/srv/class-data"},
            [
                *("ReadWritePaths=/var/log/kafka", "ReadWritePaths=-/data/kafka"),
                *(
                    "ReadWritePaths=-/srv/dumps",
                    "ReadWritePaths=-/srv/class-data",
                    "ProtectHome=yes",
                ),
            ],
            {"ReadWritePaths": "/var/log/kafka /data/kafka /srv/dumps /srv/class-data"},
        ),
        # what may be written already, and what a unit must not have as a whole
        (
            {"dumps": "/var/log/kafka/dumps/kafka.hprof", "class_data": "/data/kafka"},
            ["ReadWritePaths=/var/log/kafka", "ReadWritePaths=-/data/kafka", "ProtectHome=yes"],
            USUAL,
        ),
        (
            {"dumps": "/kafka.hprof", "class_data": "/tmp"},
            ["ReadWritePaths=/var/log/kafka", "ReadWritePaths=-/data/kafka", "ProtectHome=yes"],
            USUAL,
        ),
    ],
)
def test_a_unit_sees_and_writes_what_the_variables_name(places, lines, paths):
    given = {
        "writes": ["/var/log/kafka"],
        "data": ["/data/kafka"],
        "reads": ["/etc/kafka"],
        "state_dir": "/run/kafka",
        "dumps": "",
        "class_data": "",
        **places,
    }
    found = sandbox(**given)
    assert (found["lines"], found["paths"]) == (lines, paths)


@pytest.mark.parametrize(
    "state_dir, runtime",
    [
        ("/run/kafka", "kafka"),
        ("/run/kafkaops/kafka-1/", "kafkaops/kafka-1"),
        ("/var/run/kafka", "kafka"),
        ("/run/user/1000/kafka", ""),
        ("/runs/kafka", ""),
        ("/var/lib/kafka-run", ""),
    ],
)
def test_systemd_makes_the_directory_of_the_state_below_run(state_dir, runtime):
    """It is empty after a boot. Elsewhere the role has made it."""
    assert sandbox([], [], [], state_dir)["runtime"] == runtime
    made = unit("kafka", state_dir=state_dir).get(("Service", "RuntimeDirectory"), [""])
    assert made == [runtime]


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_unit_of_a_product_below_home(product):
    """Its files, its releases and its Java are seen, all else below /home is not."""
    variables = ("config_dir", "install_dir", "application_log_dir")
    given = {name: f"/home/k/{name}" for name in variables}
    found = unit(product, **given)
    assert found["Service", "TemporaryFileSystem"] == ["/home:ro"]
    assert ("Service", "ProtectHome") not in found
    assert found["Service", "BindPaths"] == ["/home/k/application_log_dir"]
    assert found["Service", "BindReadOnlyPaths"] == ["/home/k/config_dir", "/home/k/install_dir"]
    named = {f"{product}_{name}": value for name, value in given.items()}
    java = {"java_effective_home": "/root/jdk"}
    staged = generation_of(product, {**named, **java})
    assert "BindReadOnlyPaths=/root/jdk" in staged["unit_text"]
    assert staged["service"]["BindReadOnlyPaths"].endswith(" /root/jdk")


def test_a_home_that_is_a_whole_place_is_not_laid_open():
    """The preflight refuses it."""
    found = sandbox([], [], ["/home"], "/run/kafka")
    assert found["lines"] == ["ProtectHome=yes"]


def test_levels_of_single_loggers_of_kafka():
    given = {
        "kafka.controller": "debug",
        "kafka.request.logger": False,
        "kafka.zk.KafkaZkClient": "ERROR",
    }
    staged = generation_of("kafka", {"kafka_loggers": given})
    lines = staged["files"]["log4j.properties"].splitlines()
    levels = dict(line.split("=", 1) for line in lines if line.startswith("log4j.logger."))
    assert levels["log4j.logger.kafka.controller"] == "DEBUG"
    assert levels["log4j.logger.kafka.request.logger"] == "OFF"
    assert levels["log4j.logger.kafka.zk.KafkaZkClient"] == "INFO", "the guard reads it"
    assert levels["log4j.logger.kafka.server.BrokerLifecycleManager"] == "INFO", "in KRaft mode"
    # the file is no reason to restart, so that the option has to be one
    assert any("kafka.controller=DEBUG" in text for text in staged["jvm_options"])
    plain = generation_of("kafka", {})
    assert "kafkaops.loggers" not in str(plain["jvm_options"])


RECOVERY = ("kafka.log.LogManager", "kafka.log.LogLoader")


@pytest.mark.parametrize(
    "given, expected",
    [
        ({}, {}),
        ({"kafka_log_level": "DEBUG"}, {}),
        ({"kafka_log_level": "WARN"}, dict.fromkeys(RECOVERY, "INFO")),
        ({"kafka_loggers": {RECOVERY[0]: "ERROR"}}, {RECOVERY[0]: "INFO"}),
        ({"kafka_loggers": {RECOVERY[0]: False}}, {RECOVERY[0]: "INFO"}),
        (
            {"kafka_log_level": "ERROR", "kafka_loggers": {RECOVERY[0]: "debug"}},
            {RECOVERY[0]: "DEBUG", RECOVERY[1]: "INFO"},
        ),
    ],
)
def test_log_recovery_is_told_whatever_the_level(given, expected):
    """Each such line gives a start more time."""
    staged = generation_of("kafka", given)
    lines = staged["files"]["log4j.properties"].splitlines()
    levels = dict(line.split("=", 1) for line in lines if line.startswith("log4j.logger."))
    found = {name: levels.get(f"log4j.logger.{name}") for name in RECOVERY}
    assert {name: level for name, level in found.items() if level} == expected


@pytest.mark.parametrize("own", ["ERROR", "TRACE", None])
def test_log_recovery_is_told_by_kafka_4(own):
    name = "org.apache.kafka.storage.internals.log.LogLoader"
    given = {"kafka_log_level": "WARN", "kafka_loggers": {name: own} if own else {}}
    staged = generation_of("kafka", {**given, **KAFKA_4})
    loggers = yaml.safe_load(staged["files"]["log4j2.yaml"])["Configuration"]["Loggers"]["Logger"]
    levels = [
        (each["name"], each["level"])
        for each in loggers
        if "kafka.log." in each["name"] or each["name"] == name
    ]
    assert sorted(levels) == [
        ("kafka.log.LogLoader", "INFO"),
        ("kafka.log.LogManager", "INFO"),
        (name, "TRACE" if own == "TRACE" else "INFO"),
    ]


KAFKA_4 = {
    "kafka_version": "4.3.1",
    "kafka_metadata": "kraft",
    "jvm_service_archives": {"kafka-4.3.1": {"name": "product-1"}},
    "kafkaops_preflight": {
        **FACTS["kafkaops_preflight"],
        "quorums": {
            "one": {
                "roles": ["broker", "controller"],
                "bind": "",
                "address": "one",
                "port": 9093,
                "controllers": [{"address": "one", "port": 9093}],
            }
        },
    },
}

# A broker that has its metadata in ZooKeeper still, and is known to controllers.
MIGRATES = {
    "kafkaops_phase": "migration",
    "groups": {"kafka": ["one"]},
    "kafkaops_preflight": {
        **FACTS["kafkaops_preflight"],
        "quorums": {
            "one": {**KAFKA_4["kafkaops_preflight"]["quorums"]["one"], "roles": ["broker"]}
        },
        "migration": {
            "kafka": {
                "nodes": [],
                "servers": [],
                "chroot": "/kafka",
                "inner": {"name": "INNER", "protocol": "PLAINTEXT"},
                "line": "3.9",
            }
        },
    },
}


def test_the_guard_of_each_mode():
    """A change of it is no reason to restart."""
    of_kraft = ["registration.py", "quorum_wire.py", "hanging.py", "metadata_log.py", "fencing.py"]
    of_both = [*of_kraft, "migrating.py"]
    modes = (({}, ["registration.py"]), (KAFKA_4, of_kraft), (MIGRATES, of_both))
    for given, files in modes:
        staged = generation_of("kafka", given)
        assert [name for name in staged["files"] if name.endswith(".py")] == files
        assert staged["guard"][0] == files[-1] and "--keep" not in staged["guard"]
        assert set(files) <= set(staged["unwatched"])
        kept = generation_of("kafka", {"kafka_fast_failover": False, **given})
        assert kept["guard"] == [*staged["guard"], "--keep"]
        assert staged["guard_beside"] == []
        hanging = generation_of("kafka", {"kafka_fence_hanging_seconds": 3, **given})
        assert hanging["guard_beside"] == (["hanging"] if given is KAFKA_4 else [])
        assert ("--hanging-seconds" in hanging["guard"]) is (given is KAFKA_4)


@pytest.mark.parametrize("own", ["ERROR", None])
def test_the_guard_finds_registrations_in_the_log_of_kafka_4(own):
    """Under the name that the class has there; of two entries with one name log4j2 would take either."""
    name = "org.apache.kafka.server.BrokerLifecycleManager"
    given = {"kafka.controller": "DEBUG", **({name: own} if own else {})}
    staged = generation_of("kafka", {"kafka_loggers": given, **KAFKA_4})
    loggers = yaml.safe_load(staged["files"]["log4j2.yaml"])["Configuration"]["Loggers"]["Logger"]
    assert [each["level"] for each in loggers if each["name"] == name] == ["INFO"]
    assert [each["level"] for each in loggers if each["name"] == "kafka.controller"] == ["DEBUG"]


def test_levels_of_single_loggers_of_zookeeper():
    given = {"org.apache.zookeeper.server": "WARN"}
    staged = generation_of("zookeeper", {"zookeeper_loggers": given})
    root = xml.etree.ElementTree.fromstring(staged["files"]["logback.xml"])
    assert [(item.get("name"), item.get("level")) for item in root.iter("logger")] == [
        *given.items()
    ]
    assert any("org.apache.zookeeper.server=WARN" in text for text in staged["jvm_options"])


@pytest.mark.parametrize("product", PRODUCTS)
def test_what_an_operator_chooses_is_a_setting_of_the_generation(product):
    """Its change is a reason to restart; that of the unit's text alone is not."""
    given = {f"{product}_unit_options": {"Service": {"OOMScoreAdjust": -500}}}
    service = generation_of(product, given)["service"]
    assert service["Service"] == {"OOMScoreAdjust": -500}
    found = unit(product, unit_options=given[f"{product}_unit_options"])
    for name in ("User", "LimitNOFILE", "TimeoutStopSec"):
        assert found["Service", name] == [str(service[name])]
    paths = " ".join(path.lstrip("-") for path in found["Service", "ReadWritePaths"])
    assert service["ReadWritePaths"] == paths

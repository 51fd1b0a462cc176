# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the preflight has found done is not asked again, and whatever differs is."""

from __future__ import annotations

import pytest

from tests.support.role_variables import evaluated, generation_of

PATH, SHA512 = "/opt/kafka/releases/kafka_2.13-3.9.2", "ab" * 64
ARCHIVE = {"name": "kafka_2.13-3.9.2", "sha512": SHA512}
ACCOUNT = {"name": "kafka", "group": "kafka", "uid": 998}
NOT_ASKED = [None, {}, {"facts": None}, {"facts": {"kafka": None, "zookeeper": None, "java": None}}]


def known(name, collected, **given):
    """The variable of the role jvm_service after a preflight that has collected this."""
    about = {} if collected is None else {"kafkaops_preflight_collected": collected}
    return evaluated("jvm_service", name, {**about, **given})


def is_release_known(collected):
    """Whether the preflight has seen the archive installed."""
    given = {"jvm_service_archive": ARCHIVE, "jvm_service_install_dir": "/opt/kafka"}
    return known("__jvm_service_release_known", collected, **given)


@pytest.mark.parametrize(
    ("path", "sha512", "expected"),
    [
        (PATH, SHA512, True),
        (PATH, "cd" * 64, False),
        (f"{PATH}-{SHA512[:12]}", SHA512, False),
        (f"/srv{PATH}", SHA512, False),
    ],
    ids=["usual", "other archive", "beside", "other directory"],
)
def test_a_release_that_is_installed(path, sha512, expected):
    releases = [{"path": "/opt/kafka/releases/old", "sha512": "ef" * 64}]
    releases.append({"path": path, "sha512": sha512})
    facts = {"kafka": {"releases": releases}, "zookeeper": None}
    assert is_release_known({"facts": facts}) is expected


@pytest.mark.parametrize("collected", NOT_ASKED)
def test_without_facts_nothing_is_known(collected):
    assert is_release_known(collected) is False
    assert known("__jvm_service_java_known", collected) == ""
    assert known("__jvm_service_account_known", collected, jvm_service_account="kafka") is False


@pytest.mark.parametrize(
    ("differs", "expected"),
    [
        ({}, True),
        ({"name": "other"}, False),
        ({"group": "users"}, False),
        ({"uid": 1042}, True),
    ],
)
def test_an_account_that_is_there(differs, expected):
    facts = {"kafka": None, "zookeeper": {"account": {**ACCOUNT, **differs}}}
    given = {"jvm_service_account": "kafka"}
    assert known("__jvm_service_account_known", {"facts": facts}, **given) is expected


@pytest.mark.parametrize("product", ["kafka", "zookeeper"])
def test_the_java_that_was_found_is_the_one_that_starts(product):
    collected = {"facts": {"java": {"home": "/usr/lib/jvm/found"}, "kafka": None}}
    given = {"kafkaops_preflight_collected": collected}
    generation = generation_of(product, given)
    assert generation["java_home"] == "/usr/lib/jvm/found"
    without = generation_of(product, {})
    assert without["java_home"] == "/usr/lib/jvm/java"


RELEASE = {"path": PATH, "sha512": SHA512}
ALL = {"java": {"home": "/jdk"}, "kafka": {"account": ACCOUNT, "releases": [RELEASE]}}


@pytest.mark.parametrize(
    ("facts", "account", "expected"),
    [
        (ALL, "kafka", True),
        (ALL, "other", False),
        ({**ALL, "java": {"home": ""}}, "kafka", False),
        ({**ALL, "java": None}, "kafka", False),
        ({**ALL, "kafka": {"account": ACCOUNT, "releases": []}}, "kafka", False),
        ({**ALL, "kafka": {"releases": [RELEASE]}}, "kafka", False),
        ({**ALL, "kafka": {"releases": [RELEASE]}}, "", True),
    ],
    ids=["all", "account", "java", "no java", "release", "no account", "account not wanted"],
)
def test_nothing_is_installed_only_if_all_of_it_is_there(facts, account, expected):
    given = {"jvm_service_archive": ARCHIVE, "jvm_service_install_dir": "/opt/kafka"}
    found = known("__jvm_service_installed", {"facts": facts}, jvm_service_account=account, **given)
    assert bool(found) is expected


@pytest.mark.parametrize(
    ("noted", "path"),
    [({}, PATH), ({"other": "/x"}, PATH), ({ARCHIVE["name"]: f"{PATH}-beside"}, f"{PATH}-beside")],
)
def test_the_release_is_where_this_run_has_put_it_or_where_it_was_found(noted, path):
    given = {"jvm_service_archives": {"kafka-3.9.2": ARCHIVE}, "kafka_version": "3.9.2"}
    more = {"kafka_install_dir": "/opt/kafka", "jvm_service_releases": noted}
    assert evaluated("kafka", "__kafka_release", {**given, **more}) == path

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks, the list given to Ivy, proxies and Java: what decides before any network is used."""

import importlib.util
import json
from xml.etree import ElementTree

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import Progress
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply import distribution
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply.ivy import (
    find_ivy,
    find_java,
    ivy_module,
    ivy_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply.jar_lock import (
    Jar,
    load_lock,
    lock_names,
    parse_lock,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply.truststore import (
    proxy_flags,
)

DIGEST = "a" * 128


def test_without_pyspark_there_is_no_ivy(monkeypatch):
    """As where ansible-playbook runs with another Python than requirements.txt was installed for."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ProblemError, match=r"^\[ivy.missing\] distribution_source=maven: PySpark"):
        find_ivy()


def entry(**changes):
    jar = {"group": "g", "artifact": "a", "version": "1", "size_bytes": 3, "sha512": DIGEST}
    return {**jar, **changes}


def lock_text(*entries):
    head = {"schema": 1, "name": "kafka_2.13-3.9.2", "product": "kafka", "version": "3.9.2"}
    return json.dumps({**head, "artifacts": list(entries)}).encode()


@pytest.mark.parametrize("name", lock_names(distribution.LOCKS))
def test_committed_lock_is_whole_and_has_the_main_jar(name):
    lock = load_lock(distribution.LOCKS, name)
    assert lock.name == name
    files = {jar.filename for jar in lock.jars}
    assert f"{name}.jar" in files
    # a server without a binding logs nothing at all
    assert any(
        file.startswith(("slf4j-reload4j", "log4j-slf4j", "logback-classic")) for file in files
    )


def test_locks_for_all_promised_versions():
    assert set(lock_names(distribution.LOCKS)) >= {
        "kafka_2.13-3.8.1",
        "kafka_2.13-3.9.2",
        "kafka_2.13-4.3.1",
        "zookeeper-3.8.6",
        "zookeeper-3.9.5",
    }


def test_jar_names_follow_maven():
    jar = Jar("io.netty", "epoll", "4.1", DIGEST, 1, "linux-x86_64")
    assert jar.filename == "epoll-4.1-linux-x86_64.jar"
    assert jar.cache_path == "io.netty/epoll-4.1-linux-x86_64.jar"
    assert str(jar) == "io.netty:epoll:4.1:linux-x86_64"


@pytest.mark.parametrize(
    "text, reason",
    [
        (b"", "Expecting value"),
        (lock_text(entry())[:-20], "JSONDecodeError"),
        (b'{"name": "x"}', "artifacts"),
        (lock_text(), "no jar"),
        (lock_text(entry(), entry(group="h")), "a-1.jar is listed twice"),
        (lock_text(entry(sha512="abc")), "128 hex digits"),
        (lock_text(entry(sha512="A" * 128)), "128 hex digits"),
        (lock_text(entry(artifact="../../etc/passwd")), "not a coordinate"),
        (lock_text(entry(group="a..b")), "not a coordinate"),
        (lock_text(entry(version="")), "not a coordinate"),
        (lock_text(entry(classifier="x/y")), "not a coordinate"),
        (lock_text(entry(size_bytes="many")), "ValueError"),
    ],
)
def test_a_damaged_lock_is_refused_by_name(text, reason):
    with pytest.raises(ProblemError) as error:
        parse_lock(text, "some.json")
    assert error.value.problem.check == "lock.damaged"
    assert "some.json" in str(error.value)
    assert reason in str(error.value)


@pytest.mark.parametrize(
    "product, version", [("kafka", "3.9.9"), ("kafka", "latest"), ("zookeeper", "3.4.14")]
)
def test_unknown_version_lists_the_known_ones(product, version, tmp_path):
    request = distribution.Request(product=product, version=version, cache_dir=str(tmp_path))
    with pytest.raises(ProblemError) as error:
        distribution.obtain(request, Progress(emit=print))
    assert error.value.problem.check == "version.unknown"
    assert f"{product}_version={version}" in str(error.value)
    assert {"kafka": "kafka_2.13-3.9.2", "zookeeper": "zookeeper-3.9.5"}[product] in str(
        error.value
    )
    assert list(tmp_path.iterdir()) == []


def test_ivy_module_lists_exactly_the_jars_and_groups_classifiers():
    jars = [
        Jar("io.netty", "ssl", "2", DIGEST, 1),
        Jar("io.netty", "ssl", "2", DIGEST, 1, "linux-x86_64"),
        Jar("a&b", "c", "1", DIGEST, 1),
    ]
    root = ElementTree.fromstring(ivy_module(jars))
    dependencies = root.findall("./dependencies/dependency")
    assert [item.get("name") for item in dependencies] == ["ssl", "c"]
    assert {item.get("transitive") for item in dependencies} == {"false"}
    classifier = "{http://ant.apache.org/ivy/maven}classifier"
    assert [item.get(classifier) for item in dependencies[0]] == [None, "linux-x86_64"]
    assert dependencies[1].get("org") == "a&b"


def test_a_mirror_is_the_resolvers_root_and_otherwise_no_address_is_written():
    plain = ElementTree.fromstring(ivy_settings("/c")).find("./resolvers/ibiblio")
    assert plain.get("root") is None
    assert (plain.get("usepoms"), plain.get("checksums")) == ("false", "")
    assert "://" not in ivy_settings("/c")
    mirrored = ElementTree.fromstring(ivy_settings("/c", "https://m.example/r?a=1&b"))
    assert mirrored.find("./resolvers/ibiblio").get("root") == "https://m.example/r?a=1&b/"


@pytest.mark.parametrize(
    "environment, flags",
    [
        ({}, []),
        ({"no_proxy": "a"}, []),
        (
            {"https_proxy": "http://p.example:3128"},
            ["-Dhttps.proxyHost=p.example", "-Dhttps.proxyPort=3128"],
        ),
        ({"HTTP_PROXY": "p:81"}, ["-Dhttp.proxyHost=p", "-Dhttp.proxyPort=81"]),
        (
            {"http_proxy": "http://p", "no_proxy": "a.example, .b.example"},
            [
                "-Dhttp.proxyHost=p",
                "-Dhttp.proxyPort=80",
                "-Dhttp.nonProxyHosts=a.example|*.b.example",
            ],
        ),
    ],
)
def test_proxy_variables_reach_java(environment, flags):
    assert proxy_flags(environment) == flags


def make_java(home):
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    return str(java)


def test_java_is_looked_for_in_order(tmp_path):
    given, home, path = (make_java(tmp_path / name) for name in ("given", "home", "path"))
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path" / "bin")}
    assert find_java(str(tmp_path / "given"), environment) == given
    assert find_java("", environment) == home
    assert find_java("", {**environment, "JAVA_HOME": "/nowhere"}) == path


def test_a_wrong_java_home_is_named(tmp_path):
    with pytest.raises(
        ProblemError, match=f"java_home={tmp_path}: there is no executable bin/java"
    ):
        find_java(str(tmp_path), {})


def test_no_java_at_all_says_what_to_do(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("glob.glob", lambda pattern: [])
    with pytest.raises(ProblemError, match=r"\[java.missing\].*Remedy: install a JRE"):
        find_java("", {"PATH": ""})

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one search for a Java: where, in which order, and of which version."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from ansible_collections.kafkaops.cluster.plugins.module_utils import java


def make_java(home, version, release=True):
    """A home whose Java has this version; without a release file only `java -version` tells it."""
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    binary.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return str(home)


def test_the_range_is_that_of_the_role_and_of_the_job():
    """What only data can say there is said once more here."""
    root = pathlib.Path(__file__).resolve().parents[4]
    defaults = yaml.safe_load((root / "roles/java/defaults/main.yml").read_text(encoding="utf-8"))
    assert (defaults["java_minimum"], defaults["java_maximum"]) == (java.MINIMUM, java.MAXIMUM)
    job = (root / "roles/flow_validation/files/flow/engine/connector.py").read_text(
        encoding="utf-8"
    )
    assert f"JAVA_VERSIONS = {java.FOR_SPARK}" in job


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch):
    """No Java of this machine."""
    monkeypatch.setattr(java.glob, "glob", lambda pattern: [])
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)


@pytest.mark.parametrize(
    "version, release",
    [("17.0.15", 17), ("1.8.0_402", 8), ("21", 21), ("25-ea", 25), ("x", None), (None, None)],
)
def test_the_feature_release_of_a_version(version, release):
    assert java.major(version) == release


@pytest.mark.parametrize("release", [True, False])
def test_the_version_is_that_of_the_release_file_else_of_java_itself(tmp_path, release):
    assert java.version_of(make_java(tmp_path / "home", "17.0.15", release)) == "17.0.15"
    assert java.version_of(str(tmp_path / "nowhere")) is None


def test_the_first_java_in_the_range_is_found_and_others_are_named(tmp_path):
    old = make_java(tmp_path / "old", "11.0.2")
    right = make_java(tmp_path / "right", "21.0.1")
    environment = {"JAVA_HOME": old, "PATH": f"/nowhere:{right}/bin"}
    found = java.find(17, 23, environment=environment)
    assert (found["home"], found["version"], found["source"]) == (right, "21.0.1", "PATH")
    assert found["seen"] == [f"{old} (11.0.2)"]
    assert java.find(8, 23, environment=environment)["source"] == "JAVA_HOME"
    assert java.find(22, 23, environment=environment)["home"] is None


def test_a_java_that_is_given_is_the_only_one(tmp_path):
    """Falling back to another one would hide a mistake."""
    old = make_java(tmp_path / "old", "11.0.2")
    environment = {"JAVA_HOME": make_java(tmp_path / "right", "21.0.1"), "PATH": ""}
    assert java.find(17, 23, java_home=old, environment=environment)["home"] is None

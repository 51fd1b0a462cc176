# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new release of the collection alone makes no host restart pending.

started_by_earlier_release.json holds what commit dd2b922 wrote beside the configuration of an instance
of systemd (its meaning), with the inventory that it was given. A change of it is no way to make this pass.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.edge import GENERATION
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.generation import (
    changed_settings,
    fingerprint,
    reasons,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.states import generation
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.systemd import Systemd
from tests.support.role_variables import evaluated

EARLIER = json.loads((Path(__file__).parent / "started_by_earlier_release.json").read_text())
PRODUCTS = ("kafka", "zookeeper")


def wanted(product, **given):
    """The meaning of what today's role stages for the same inventory."""
    inventory = {**EARLIER[product]["inventory"], **given}
    staged = evaluated(product, f"__{product}_staging", inventory)
    defaults = {name: option.get("default") for name, option in GENERATION.items()}
    params = {
        "name": product,
        "manager": "systemd",
        "config_dir": f"/etc/{product}",
        "log_dir": f"/var/log/{product}",
        "ready": [],
        "generation": {**defaults, **staged["generation"]},
        "secrets": staged["secrets"],
    }
    return generation(params, Systemd(lambda *_words, **_more: (0, "", ""), "")).meaning()


@pytest.mark.parametrize("product", PRODUCTS)
def test_nothing_is_pending_for_what_an_earlier_release_has_started(product):
    started = EARLIER[product]["meaning"]
    assert fingerprint(started) != fingerprint(wanted(product)), "stored in another form"
    assert reasons(started, wanted(product)) == []
    assert changed_settings(started, wanted(product)) == {}


@pytest.mark.parametrize("product", PRODUCTS)
def test_what_an_operator_changes_is_pending(product):
    started = EARLIER[product]["meaning"]
    for name, value, reason in [
        ("gc_options", ["-XX:+UseParallelGC"], "jvm options (unset) -> -XX:+UseParallelGC"),
        ("heap_dump_file", "", "jvm options (unset) -> -XX:-HeapDumpOnOutOfMemoryError"),
        ("unit_options", {"Service": {"Nice": 5}}, "service: Service.Nice (unset) -> 5"),
    ]:
        if name == "gc_options" and product == "zookeeper":
            continue  # its inventory has chosen another collector
        assert reasons(started, wanted(product, **{f"{product}_{name}": value})) == [reason]
    options = ["-Djavax.net.ssl.keyStorePassword=another", "-Dmine=yes"]
    if product == "kafka":
        found = reasons(started, wanted(product, kafka_jvm_options=options))
        assert found == ["jvm.options changed"]


def test_defaults_of_a_later_release_are_told_and_not_counted():
    now = wanted("kafka")
    later = {**now, "default_options": ["-XX:+UseZGC"]}
    assert "-XX:+UseG1GC" in now["default_options"]
    assert fingerprint(now) == fingerprint(later) and reasons(now, later) == []
    assert changed_settings(now, later) == {}

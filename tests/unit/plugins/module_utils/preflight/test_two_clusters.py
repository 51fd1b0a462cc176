# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two clusters that share the groups of an inventory: with --limit a run is about one of them."""

from __future__ import annotations

import pytest

from tests.unit.plugins.module_utils.preflight.good_inventory import good, merge, verdict_of

OF_ZOOKEEPER = [f"{kind}-{number}" for kind in ("kafka", "zookeeper") for number in (1, 2, 3)]
OF_KRAFT = ["kafka-4", "kafka-5", "kafka-6"]


def both():
    """The good inventory, and a KRaft cluster of three combined nodes, neither deployed yet."""
    hosts = {
        name: {
            "ansible_host": f"{name}.example.com",
            "kafka_cluster_name": "payments",
            "kafka_metadata": "kraft",
            "kafka_version": "4.3.1",
        }
        for name in OF_KRAFT
    }
    voters = {"hosts": {name: {} for name in OF_KRAFT}}
    return merge(good(), {"all": {"children": {"kafka": {"hosts": hosts}, "controllers": voters}}})


# as a playbook runs the preflight; the cluster that it is run for; what it would say of the other one
RUNS = {
    "scale_controllers": (
        {"voters_change": True, "leaving": set()},
        OF_KRAFT,
        "quorum.no_controllers",
    ),
    "dynamic_quorum": ({"becomes_dynamic": True}, OF_KRAFT, "quorum.no_controllers"),
    "migrate_to_kraft": ({"migrates": True}, OF_KRAFT, "migration.inventory"),
    "migrate_to_kraft of the other": ({"migrates": True}, OF_ZOOKEEPER, "migration.combined"),
    "scale_zookeeper": (
        {"fit_for": (), "purpose": "keep"},
        OF_ZOOKEEPER,
        "metadata.not_yet",
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_for_one_cluster_is_not_refused_for_the_other(name, tmp_path):
    run, mine, check = RUNS[name]
    whole = {each.check: each.subjects for each in verdict_of(both(), tmp_path, **run).errors}
    assert check in whole and not set(whole[check]) & set(mine)
    away = {each: {"in_play": False} for each in [*OF_ZOOKEEPER, *OF_KRAFT] if each not in mine}
    limited = verdict_of(both(), tmp_path, raw=away, **run)
    assert not [each for each in limited.errors if not set(each.subjects) <= set(mine)]
    # what is wrong with its own is said
    own = {each.check for each in limited.errors}
    assert {name for name, hosts in whole.items() if set(hosts) <= set(mine)} <= own


def test_site_beside_a_cluster_that_is_not_deployed_yet(tmp_path):
    away = {each: {"in_play": False} for each in OF_KRAFT}
    assert not verdict_of(both(), tmp_path, raw=away).errors
    # one node of it makes it part of the run
    del away["kafka-4"]
    (refused,) = verdict_of(both(), tmp_path, raw=away).errors
    assert refused.check == "quorum.unformatted" and refused.subjects == ("kafka-5", "kafka-6")


def test_a_run_for_no_member_may_be_about_any(tmp_path):
    """As one for the hosts of clients alone."""
    away = {each: {"in_play": False} for each in [*OF_ZOOKEEPER, *OF_KRAFT]}
    run = {"raw": away, "fit_for": (), "purpose": "keep"}
    (refused,) = verdict_of(both(), tmp_path, **run).errors
    assert refused.check == "metadata.not_yet"

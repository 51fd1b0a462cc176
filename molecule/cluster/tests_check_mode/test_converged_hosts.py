# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode on a converged cluster: nothing to do is said as such, and a change as the run would do it."""

from tests.support.nodes import ADDRESSES, changed, play, state_of


def test_nothing_to_do_is_nothing():
    before = {name: state_of(name) for name in ADDRESSES}
    said = play("site.yml", "--check", "--diff", "-e", "flow_validation=never", inventory="cluster")
    assert set(changed(said).values()) == {0}, said
    assert {name: state_of(name) for name in ADDRESSES} == before


def test_a_change_is_shown_and_not_made():
    before = {name: state_of(name) for name in ADDRESSES}
    said = play(
        *("site.yml", "--check", "--diff", "-e", "flow_validation=never"),
        *("-e", '{"kafka_config": {"num.network.threads": 5}}'),
        inventory="cluster",
    )
    assert set(changed(said)) == set(ADDRESSES) and all(changed(said).values())
    assert said.count("-num.network.threads=3") == said.count("+num.network.threads=5") == 3
    assert said.count("num.network.threads 3 -> 5: changed without a restart") == 3
    assert {name: state_of(name) for name in ADDRESSES} == before

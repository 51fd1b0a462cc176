# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode on a converged cluster: nothing to do is said as such, and a change as the run would do it."""

from tests.support.nodes import ADDRESSES, changed, play, state_of


def test_a_change_is_shown_and_not_made_and_nothing_to_do_is_nothing():
    """The setting of one broker: of the two others nothing may be announced."""
    before = {name: state_of(name) for name in ADDRESSES}
    threads = "{{ 5 if inventory_hostname == 'ko-node-2' else 3 }}"
    said = play(
        *("site.yml", "--check", "--diff", "-e", "flow_validation=never"),
        *("-e", f'{{"kafka_config": {{"num.network.threads": "{threads}"}}}}'),
        inventory="cluster",
    )
    announced = changed(said)
    assert set(announced) == set(ADDRESSES) and announced["ko-node-2"] > 0
    assert announced["ko-node-1"] == announced["ko-node-3"] == 0, said
    assert said.count("-num.network.threads=3") == said.count("+num.network.threads=5") == 1
    assert said.count("num.network.threads 3 -> 5: changed without a restart") == 1
    assert {name: state_of(name) for name in ADDRESSES} == before

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode on hosts that have nothing: neither the account nor, on one of them, Java."""

from tests.support.nodes import ADDRESSES, host, play, state_of


def test_the_plan_is_told_and_nothing_is_done():
    before = {name: state_of(name) for name in ADDRESSES}
    said = play("site.yml", "--check", "--diff", inventory="cluster")
    recap = said.rpartition("PLAY RECAP")[2]
    for name in ADDRESSES:
        (line,) = [line for line in recap.splitlines() if line.startswith(name)]
        assert "failed=0" in line and "changed=0 " not in line, line
        assert not host(name).user("kafka").exists
        assert not host(name).file("/etc/kafka").exists and not host(name).file("/opt/kafka").exists
    shown = [line.strip() for line in said.splitlines()]
    for line in ("+broker.id=1", "+broker.id=2", "+broker.id=3", "+dataDir=/var/lib/zookeeper"):
        assert line in shown, line
    # topics are planned against an empty cluster
    assert any(line.startswith("+") and "orders" in line for line in shown)
    assert {name: state_of(name) for name in ADDRESSES} == before

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A firewall between two hosts that have nothing yet: told before anything is started."""

from tests.support.node_containers import inside
from tests.support.nodes import ADDRESSES, host, listening, play


def test_what_would_not_be_reached_is_refused_and_nothing_is_started():
    rule = f"INPUT -s {ADDRESSES['ko-node-2']} -p tcp --dport 9092 -j DROP"
    inside("ko-node-1", f"iptables -A {rule}")
    try:
        said = play("site.yml", "-e", "flow_validation=never", inventory="cluster", code=2)
    finally:
        inside("ko-node-1", f"iptables -D {rule}")
    told = " ".join(said.split())
    where = f"listener INTERNAL of ko-node-1={ADDRESSES['ko-node-1']}:9092"
    assert f"[reach.port] ko-node-2: {where}: timed out. Remedy: let this host through" in told
    assert "Nothing was started. One of the connections does not come about" in told
    for name in ADDRESSES:
        assert not host(name).process.filter(comm="java")
        ports = {port for _address, port in listening(host(name))}
        assert not ports & {2181, 2888, 3888, 9092}, "what listened in their place has ended"

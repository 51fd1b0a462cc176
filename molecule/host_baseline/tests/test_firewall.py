# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firewall, tried by connections: `ko-node-1` has nftables, `ko-node-2` firewalld, and `ko-node-3` is a client
and a ZooKeeper server."""

from __future__ import annotations

import json

import pytest

from tests.support import firewalls
from tests.support.node_containers import begin, inside, wait_for
from tests.support.nodes import ADDRESSES, CHECKOUT, changed, host, listening, play

FIREWALL = str(CHECKOUT / "molecule" / "host_baseline" / "firewall.yml")
NFT, FIREWALLD, CLIENT = ADDRESSES
BROKERS, CLIENTS, FOREIGN_OPEN, FOREIGN_DROPPED = 9092, 9093, 9999, 9998
FOLLOWERS = 2888
INTERNAL = {
    "name": "INTERNAL",
    "port": BROKERS,
    "audience": ["brokers"],
    "advertised": "{{ ansible_host }}",
}
# the second listener is gone
WITHOUT_CLIENTS = ("-e", json.dumps({"kafka_listeners": [INTERNAL]}))
LISTEN = """
import selectors, socket
waiting = selectors.DefaultSelector()
for port in {ports}:
    server = socket.create_server(("", port))
    waiting.register(server, selectors.EVENT_READ)
while True:
    for key, _events in waiting.select():
        key.fileobj.accept()[0].close()
"""


def ours(name):
    """Return the name of what is ours in a node's firewall."""
    return firewalls.name_of("firewalled", name)


def tried(source, target, port):
    """Return what a node sees of another one's port: open, refused or dropped."""
    return firewalls.tried(source, ADDRESSES[target], port)


def ruleset(name):
    """Return what the node's firewall says of our ports, as it prints it."""
    return firewalls.ruleset(name, ours(name), firewalld=name == FIREWALLD)


def foreign(name):
    """Return the rules of somebody else."""
    if name == NFT:
        return inside(name, "nft list table inet of_somebody")
    return inside(name, "firewall-cmd --list-all-zones; firewall-cmd --permanent --list-all-zones")


@pytest.fixture(scope="module", autouse=True)
def servers():
    """Somebody who listens at every port that is tried."""
    ports = (2181, FOLLOWERS, BROKERS, CLIENTS, FOREIGN_OPEN, FOREIGN_DROPPED)
    for name in (NFT, FIREWALLD):
        program = LISTEN.format(ports=ports)
        begin(name, f"exec python3 - <<'PROGRAM'\n{program}\nPROGRAM")
    for name in (NFT, FIREWALLD):
        wait_for(
            lambda name=name: set(ports) <= {port for _address, port in listening(host(name))},
            *(30, name, "somebody listens at every port"),
        )


@pytest.mark.parametrize(
    "source, target, port, seen",
    [
        (CLIENT, NFT, CLIENTS, "open"),
        (CLIENT, FIREWALLD, CLIENTS, "open"),
        (CLIENT, NFT, BROKERS, "refused"),
        (CLIENT, FIREWALLD, BROKERS, "refused"),
        (CLIENT, NFT, 2181, "open"),
        (CLIENT, NFT, FOLLOWERS, "open"),
        (NFT, FIREWALLD, BROKERS, "open"),
        (NFT, FIREWALLD, CLIENTS, "refused"),
        (FIREWALLD, NFT, BROKERS, "open"),
        (FIREWALLD, NFT, 2181, "open"),
        (FIREWALLD, NFT, FOLLOWERS, "refused"),
        (FIREWALLD, NFT, CLIENTS, "refused"),
        # a host reaches itself
        (NFT, NFT, CLIENTS, "open"),
        (FIREWALLD, FIREWALLD, CLIENTS, "open"),
        # what somebody else has said of another port
        (CLIENT, FIREWALLD, FOREIGN_OPEN, "open"),
        (CLIENT, NFT, FOREIGN_DROPPED, "dropped"),
        (CLIENT, NFT, FOREIGN_OPEN, "open"),
        (CLIENT, NFT, 22, "open"),
        (CLIENT, FIREWALLD, 22, "open"),
    ],
)
def test_who_is_let_in_where(source, target, port, seen):
    assert tried(source, target, port) == seen


def test_with_limit_a_host_gets_all_its_rules_and_the_others_are_left_alone():
    """Whom a host lets in is said by the whole inventory, also of hosts that the run is without."""
    before = {name: sorted(ruleset(name).split()) for name in (NFT, FIREWALLD)}
    rule = f'rule priority="2" port port="{BROKERS}" protocol="tcp" reject'
    inside(FIREWALLD, f"firewall-cmd -q --policy={ours(FIREWALLD)} --remove-rich-rule='{rule}'")
    inside(NFT, f"nft flush table inet {ours(NFT)}")
    said = play(FIREWALL, "--limit", NFT, inventory="host_baseline")
    assert changed(said) == {NFT: 1}
    assert sorted(ruleset(NFT).split()) == before[NFT]
    assert tried(FIREWALLD, NFT, BROKERS) == "open" and tried(CLIENT, NFT, CLIENTS) == "open"
    assert sorted(ruleset(FIREWALLD).split()) != before[FIREWALLD]
    assert changed(play(FIREWALL, "--limit", NFT, inventory="host_baseline")) == {NFT: 0}

    play(FIREWALL, "--limit", FIREWALLD, inventory="host_baseline")
    assert {name: sorted(ruleset(name).split()) for name in before} == before


def test_what_is_changed_by_hand_is_put_right_and_what_is_not_stated_any_more_goes_last():
    before = {name: foreign(name) for name in (NFT, FIREWALLD)}
    rule = f'rule priority="2" port port="{BROKERS}" protocol="tcp" reject'
    inside(FIREWALLD, f"firewall-cmd -q --policy={ours(FIREWALLD)} --remove-rich-rule='{rule}'")
    inside(NFT, f"nft flush table inet {ours(NFT)}")
    assert tried(CLIENT, NFT, BROKERS) == "open"

    said = play(FIREWALL, "--check", "--diff", *WITHOUT_CLIENTS, inventory="host_baseline")
    assert set(changed(said).values()) == {1}
    # firewalld forgot one line; of nftables nothing was left, and the unit would have loaded it again
    assert f"+tcp {BROKERS} from anybody else: refused" in said
    assert f"-tcp {CLIENTS} from {ADDRESSES[CLIENT]}" in said
    assert tried(CLIENT, NFT, BROKERS) == "open"

    keep = ("-e", "host_baseline_firewall_keep=true")
    said = play(FIREWALL, *keep, *WITHOUT_CLIENTS, inventory="host_baseline")
    assert set(changed(said).values()) == {1}
    assert [tried(CLIENT, name, BROKERS) for name in (NFT, FIREWALLD)] == ["refused", "refused"]
    # whoever is connected to what still runs there stays so
    assert tried(CLIENT, FIREWALLD, CLIENTS) == "open"

    said = play(FIREWALL, *WITHOUT_CLIENTS, inventory="host_baseline")
    assert changed(said)[FIREWALLD] == 1
    assert not [name for name in (NFT, FIREWALLD) if str(CLIENTS) in ruleset(name)]
    # the zone's own word holds for it again
    assert tried(CLIENT, FIREWALLD, CLIENTS) == "refused"
    assert {name: foreign(name) for name in (NFT, FIREWALLD)} == before


def test_our_rules_come_back_with_those_of_the_distribution():
    """Debian's own unit flushes everything first, also Docker's rules: names come back when the node restarts."""
    inside(NFT, "systemctl restart nftables")
    assert tried(CLIENT, NFT, BROKERS) == "refused"
    inside(FIREWALLD, "firewall-cmd -q --reload")
    assert tried(CLIENT, FIREWALLD, BROKERS) == "refused"


def test_all_that_is_ours_goes_and_what_a_killed_run_has_left_is_finished():
    zones = foreign(FIREWALLD)
    said = play(FIREWALL, "-e", "part=unfirewall", inventory="host_baseline")
    assert set(changed(said).values()) == {1}
    assert foreign(FIREWALLD) == zones and not ruleset(FIREWALLD).strip()
    for name in (NFT, FIREWALLD):
        # firewalld keeps a copy of what it has deleted
        assert not inside(name, f"find /etc -name '{ours(name)}*' ! -name '*.old'").strip()
    assert "No such file" in inside(NFT, f"nft list table inet {ours(NFT)} 2>&1", check=False)

    # killed between the file and its loading, and between the policy and the reload
    inside(NFT, f"mkdir -p /etc/kafkaops && echo half >/etc/kafkaops/{ours(NFT)}.nft")
    inside(FIREWALLD, f"firewall-cmd -q --permanent --new-policy={ours(FIREWALLD)}")
    said = play(FIREWALL, inventory="host_baseline")
    assert set(changed(said).values()) == {1}
    for name, port in ((NFT, CLIENTS), (FIREWALLD, CLIENTS)):
        assert tried(CLIENT, name, port) == "open" and tried(CLIENT, name, BROKERS) == "refused"
    assert foreign(FIREWALLD) == zones

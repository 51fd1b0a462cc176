# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports and sources: as texts of the firewalls and back, and what a run opens and closes."""

from __future__ import annotations

import ipaddress
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.firewall import bring, nftables
from ansible_collections.kafkaops.cluster.plugins.module_utils.firewall import firewalld as fwd
from ansible_collections.kafkaops.cluster.plugins.module_utils.firewall.openings import (
    CLOSED,
    NOTHING,
    Opening,
    State,
    canonical,
    ports_of,
    read_openings,
    state_lines,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError

NAME = "kafkaops-1f2e3d4c"
addresses = st.one_of(
    st.ip_addresses().map(str),
    st.tuples(st.ip_addresses(v=4), st.integers(0, 32)).map(
        lambda pair: str(ipaddress.ip_network(pair, strict=False))
    ),
    st.tuples(st.ip_addresses(v=6), st.integers(0, 128)).map(
        lambda pair: str(ipaddress.ip_network(pair, strict=False))
    ),
).map(canonical)
ports = st.dictionaries(st.integers(1, 65535), st.frozensets(addresses, max_size=3), max_size=4)


def openings_of(wanted):
    return tuple(Opening(port, wanted[port], f"listener P{port}") for port in sorted(wanted))


@pytest.mark.parametrize(
    "text, meant",
    [
        ("192.0.2.7", "192.0.2.7"),
        (" 192.0.2.7/32 ", "192.0.2.7"),
        ("192.0.2.0/24", "192.0.2.0/24"),
        ("2001:DB8::1", "2001:db8::1"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("192.0.2.7/24", None),
        ("kafka-1.example.com", None),
        ("", None),
    ],
)
def test_a_source_is_written_in_one_way_or_refused(text, meant):
    if meant is None:
        with pytest.raises(ValueError):
            canonical(text)
    else:
        assert canonical(text) == meant


def test_openings_of_one_port_are_one():
    items = [
        {"port": 9092, "sources": ["192.0.2.7"], "purpose": "a"},
        {"port": 9092, "sources": ["192.0.2.7/32", "192.0.2.8"], "purpose": "b"},
    ]
    assert read_openings(items) == (Opening(9092, frozenset(["192.0.2.7", "192.0.2.8"]), "a; b"),)


# ---------------------------------------------------------------- texts, and back


@given(ports)
def test_the_file_of_nftables_says_what_was_wanted(wanted):
    text = nftables.table_text(NAME, "orders/kafka-1", openings_of(wanted))
    assert nftables.ports_in_text(text) == wanted
    # no way to name another table, or to cut off somebody from a port of others
    assert text.count("table ") == text.count(f"table inet {NAME}")
    assert "policy accept;" in text and "flush" not in text
    refused = [line for line in text.splitlines() if "reject" in line]
    assert len(refused) == len(wanted) and all(" dport " in line for line in refused)


def test_a_purpose_cannot_end_its_comment():
    text = nftables.table_text(NAME, "x\ny", [Opening(1, frozenset(["::1"]), 'a" drop\n"\\')])
    assert 'accept comment "a  drop   "' in text and "\ny" not in text


def match(left, right):
    return {"match": {"op": "==", "left": left, "right": right}}


LO = {"expr": [match({"meta": {"key": "iifname"}}, "lo"), {"accept": None}]}
CHAIN = {"hook": "input", "type": "filter", "policy": "accept", "prio": -1, "name": "input"}


def dport(port):
    return match({"payload": {"protocol": "tcp", "field": "dport"}}, port)


def saddr(value, protocol="ip"):
    return match({"payload": {"protocol": protocol, "field": "saddr"}}, value)


def accept(source, port):
    return {"expr": [source, dport(port), {"accept": None}]}


def reject(port):
    return {"expr": [dport(port), {"reject": {"type": "tcp reset"}}]}


def listed(*rules, **chain):
    items = [{"metainfo": {}}, {"table": {"name": NAME}}, {"chain": {**CHAIN, **chain}}]
    return {"nftables": [*items, *({"rule": each} for each in rules)]}


EVERY = match({"meta": {"key": "nfproto"}}, "ipv6")
SIX = saddr({"prefix": {"addr": "2001:db8::", "len": 64}}, "ip6")
OPEN = {9092: frozenset(["192.0.2.7"])}


@pytest.mark.parametrize(
    "ruleset, seen, intact",
    [
        (listed(LO, accept(saddr("192.0.2.7"), 9092), reject(9092)), OPEN, True),
        (listed(LO, accept(SIX, 1), reject(1)), {1: frozenset(["2001:db8::/64"])}, True),
        (listed(LO, accept(EVERY, 1), reject(1)), {1: frozenset(["::/0"])}, True),
        (listed(LO, reject(1)), {1: frozenset()}, True),
        # somebody took a rule away, or added one
        (listed(accept(saddr("192.0.2.7"), 9092), reject(9092)), OPEN, False),
        (listed(LO, accept(saddr("192.0.2.7"), 9092)), OPEN, False),
        (listed(LO, reject(9092), accept(saddr("192.0.2.7"), 9092)), {9092: frozenset()}, False),
        (listed(LO, {"expr": [{"drop": None}]}), CLOSED, False),
        (listed(LO, {"expr": []}), CLOSED, False),
        (listed(LO, policy="drop"), CLOSED, False),
        (listed(LO, prio=10), CLOSED, False),
        ({"nftables": [{"table": {"name": NAME}}]}, CLOSED, False),
        ({}, CLOSED, False),
    ],
)
def test_what_a_table_of_nftables_does(ruleset, seen, intact):
    assert nftables.ports_in_ruleset(ruleset) == (seen, intact)


def test_who_drops_what_we_open():
    chains = [
        {**CHAIN, "family": "inet", "table": "filter", "policy": "drop"},
        {**CHAIN, "family": "ip", "table": "other"},
        {**CHAIN, "family": "ip", "table": "x", "hook": "forward", "policy": "drop"},
        {"family": "ip", "table": "x", "name": "no_hook"},
    ]
    told = nftables.foreign_drops({"nftables": [{"chain": each} for each in chains]})
    assert told == ["inet filter input"]


ESTABLISHED = [match({"ct": {"key": "state"}}, "established"), {"accept": None}]
COUNTED = {"counter": {"packets": 1, "bytes": 60}}
PROHIBITED = {"reject": {"type": "icmp", "expr": "host-prohibited"}}


@pytest.mark.parametrize(
    "last, closed",
    [
        ([PROHIBITED], True),
        ([COUNTED, PROHIBITED], True),
        ([COUNTED, {"xt": {"type": "target", "name": "REJECT"}}], True),
        ([{"log": {"prefix": "refused"}}, {"drop": None}], True),
        ([COUNTED, {"xt": None}], False),  # of this nft nobody knows what it is
        ([{"accept": None}], False),
        ([{"jump": {"target": "more"}}], False),
        ([match({"meta": {"key": "iifname"}}, "eth1"), {"drop": None}], False),
        (None, False),
    ],
)
def test_a_chain_that_ends_by_turning_all_away_is_told_like_one_with_that_policy(last, closed):
    """As iptables' service writes it, on RPM-based hosts: policy accept, and a last rule that rejects."""
    chain = {**CHAIN, "family": "ip", "table": "filter", "name": "INPUT", "policy": "accept"}
    rules = [] if last is None else [{"rule": {"expr": each}} for each in (ESTABLISHED, last)]
    answers = {
        ("list", "chains"): [{"chain": chain}, {"chain": {**chain, "hook": "output"}}],
        ("list", "chain", "ip", "filter", "INPUT"): [{"chain": chain}, *rules],
    }

    def run(words):
        return 0, json.dumps({"nftables": answers[tuple(words[2:])]}), ""

    told = nftables.Nftables(NAME, "orders", run, "nft").warnings()
    assert [each.partition(" drops")[0] for each in told] == ["chain ip filter INPUT"] * closed


def as_listed(rules, **fields):
    shape = {**fwd.SHAPE, **{key.replace("_", "-"): value for key, value in fields.items()}}
    head = [f"{NAME} (active)", *(f"  {key}: {value}" for key, value in shape.items())]
    return "\n".join([*head, "  services: ", "  rich rules: ", *(f"\t{each}" for each in rules)])


@given(ports)
def test_the_rules_of_firewalld_say_what_was_wanted(wanted):
    seen = fwd.Listed(as_listed(fwd.rich_rules(wanted)))
    assert seen.ports() == wanted and seen.is_intact
    text = fwd.policy_text("orders/<kafka>&", wanted)
    assert text.count("<rule ") == len(fwd.rich_rules(wanted))
    assert "orders/&lt;kafka&gt;&amp;" in text and 'target="CONTINUE"' in text


@pytest.mark.parametrize(
    "rules, fields",
    [
        (['rule service name="ssh" drop'], {}),
        ([fwd.rich_rules(OPEN)[0]], {}),
        (fwd.rich_rules(OPEN), {"ingress_zones": "public"}),
        (fwd.rich_rules(OPEN), {"priority": "100"}),
        (fwd.rich_rules(OPEN), {"ports": "1/tcp"}),
    ],
)
def test_a_policy_that_somebody_changed_is_not_intact(rules, fields):
    assert not fwd.Listed(as_listed(rules, **fields)).is_intact


ZONES = "public (active)\n  target: default\n  interfaces: eth0\n  services: ssh\n\nhome\n  services: \n"


@pytest.mark.parametrize(
    "now, found",
    [
        (ZONES, []),
        (ZONES.replace("eth0", ""), []),
        (ZONES.replace("(active)", "(default, active)"), []),
        (ZONES.replace("ssh", "ssh http"), ["public"]),
        (ZONES + "\nwork\n  services: \n", ["work"]),
        (ZONES + f"\n{NAME} (active)\n  services: http\n", []),
        # of another cluster on this machine: with rules, and what is left of one without
        (ZONES + "\nkafkaops-00000000 (active)\n  rich rules: \n", []),
        (ZONES + "\nkafkaops-00000000\n\trule port\n", ["kafkaops-00000000"]),
    ],
)
def test_what_a_reload_would_forget(now, found):
    assert fwd.unwritten(fwd.comparable(now, NAME), fwd.comparable(ZONES, NAME)) == found


# ---------------------------------------------------------------- what a run does


WANTED = (Opening(9092, frozenset(["192.0.2.7"]), "listener INTERNAL"),)
OLD = {9093: frozenset(["192.0.2.9"])}
BOTH = {**OPEN, **OLD}


@pytest.mark.parametrize(
    "kind, chosen, seen, keep, after, stale",
    [
        ("nftables", "nftables", NOTHING, False, OPEN, False),
        ("nftables", "nftables", State(BOTH, BOTH), False, OPEN, False),
        ("nftables", "nftables", State(OLD, OLD), True, BOTH, True),
        ("nftables", "nftables", State(OLD, OLD, False), True, BOTH, True),
        ("nftables", "nftables", State(OPEN, OPEN), True, OPEN, False),
        # the sources, too, are kept until whoever needs them is gone
        (
            *("nftables", "nftables", State({9092: frozenset(["192.0.2.1"])}, CLOSED), True),
            *({9092: frozenset(["192.0.2.1", "192.0.2.7"])}, True),
        ),
        ("firewalld", "nftables", State(OLD, OLD), False, CLOSED, False),
        ("firewalld", "none", State(OLD, OLD), False, CLOSED, False),
        ("firewalld", "none", NOTHING, True, CLOSED, False),
    ],
)
def test_a_step(kind, chosen, seen, keep, after, stale):
    step = bring.step(kind, chosen, seen, WANTED, keep)
    assert (step.after, step.stale) == (State(after, after), stale)
    assert step.changes == (seen != State(after, after))


def test_the_firewall_that_is_not_chosen_any_more_goes_last():
    step = bring.step("firewalld", "nftables", State(OLD, OLD), WANTED, keep=True)
    assert not step.changes and step.stale


@given(ports, ports, st.booleans())
def test_a_second_step_changes_nothing_and_without_keeping_what_is_stated_holds(seen, wanted, keep):
    openings = openings_of(wanted)
    first = bring.step("nftables", "nftables", State(seen, seen), openings, keep)
    second = bring.step("nftables", "nftables", first.after, openings, keep)
    assert not second.changes and second.stale == first.stale
    last = bring.step("nftables", "nftables", second.after, openings, keep=False)
    assert last.after.now == last.after.boot == ports_of(openings) and not last.stale
    if keep:
        assert all(seen[port] <= first.after.now[port] for port in seen)


class Remembered:
    """A firewall that is a variable."""

    def __init__(self, kind, state=NOTHING, unusable=None, refused=None):
        self.kind, self.seen, self.problem, self.calls = kind, state, unusable, []
        self.refused = refused

    def unusable(self):
        return self.problem

    def state(self):
        return self.seen

    def warnings(self):
        return [f"{self.kind} warns"]

    def refuse(self):
        if self.refused:
            raise ProblemError(self.refused)

    def apply(self, openings):
        self.calls.append("apply")
        self.seen = State(ports_of(openings), ports_of(openings))

    def remove(self):
        self.calls.append("remove")
        self.seen = NOTHING


def test_it_is_shown_in_check_mode_and_done_otherwise():
    one, other = Remembered("firewalld", State(OLD, CLOSED)), Remembered("nftables")
    both = (one, other)
    said = bring.bring("nftables", both, WANTED, keep=False, check_mode=True)
    assert said["changed"] and not (one.calls or other.calls)
    assert [each["after_header"] for each in said["diff"]] == ["nftables", "firewalld"]
    assert "tcp 9092 from 192.0.2.7 (listener INTERNAL)\n" in said["diff"][0]["after"]
    assert "after a boot: nothing\n" in said["diff"][1]["before"]
    assert said["warnings"] == ["nftables warns"]
    done = bring.bring("nftables", both, WANTED, keep=False, check_mode=False)
    assert done == said and (one.calls, other.calls) == (["remove"], ["apply"])
    again = bring.bring("nftables", both, WANTED, keep=False, check_mode=False)
    assert not again["changed"] and again["diff"] == [] and one.calls == ["remove"]


def test_check_mode_refuses_what_the_run_would():
    """firewalld is reloaded for a new policy, and would forget what somebody has not written down."""
    unwritten = Problem("host.firewall_unwritten", "reloaded", "keep it")
    one = Remembered("firewalld", refused=unwritten)
    with pytest.raises(ProblemError, match="host.firewall_unwritten"):
        bring.bring("firewalld", (one,), WANTED, keep=False, check_mode=True)
    # nothing is to be done, so that nothing is reloaded
    done = Remembered("firewalld", State(OPEN, OPEN), refused=unwritten)
    assert not bring.bring("firewalld", (done,), WANTED, keep=False, check_mode=True)["changed"]

    def run(words):
        """A firewalld without our policy, and a port that is open until it is reloaded."""
        if words[1] == "--permanent":
            return 0, ZONES if "--list-all-zones" in words else "", ""
        return 0, ZONES.replace("ssh", "ssh http") if "--list-all-zones" in words else "", ""

    with pytest.raises(ProblemError, match="not written down: public"):
        fwd.Firewalld(NAME, "x", run, "/usr/bin/firewall-cmd").refuse()


def test_a_firewall_that_is_not_there_is_refused_before_anything_is_changed():
    class Run:
        calls = []

        def __call__(self, words):
            self.calls.append(words)
            return 1, "", ""

    gone = fwd.Firewalld(NAME, "x", Run(), None)
    other = Remembered("nftables", State(OLD, OLD))
    with pytest.raises(ProblemError, match=r"\[host.firewall\].*not installed"):
        bring.bring("firewalld", (gone, other), WANTED, keep=False, check_mode=False)
    assert other.calls == []
    stopped = fwd.Firewalld(NAME, "x", Run(), "/usr/bin/firewall-cmd")
    assert "enable --now" in stopped.unusable().line()
    assert "nftables" in nftables.Nftables(NAME, "x", Run(), None).unusable().line()


def test_what_the_firewall_refuses_is_told_in_its_own_words():
    def run(words):
        """firewalld takes no change: its files are on a disk that is read only."""
        return (0, "", "") if "--state" in words else (13, "", "Error: Read-only file system\n")

    daemon = fwd.Firewalld(NAME, "x", run, "/usr/bin/firewall-cmd")
    with pytest.raises(ProblemError, match=r"\[host.firewall_failed\].*Read-only file system"):
        daemon.apply(WANTED)


def test_lines_of_a_state_that_somebody_changed():
    told = state_lines(State(OPEN, OPEN, intact=False), {9092: "listener INTERNAL"})
    assert told[:2] == [
        "tcp 9092 from 192.0.2.7 (listener INTERNAL)",
        "tcp 9092 from anybody else: refused",
    ]
    assert told[2].startswith("not as it was written")
    json.dumps(told)

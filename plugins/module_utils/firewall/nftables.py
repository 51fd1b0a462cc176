# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""nftables: a table of our own with one chain, replaced as a whole, and a unit that loads it at boot.

The chain accepts by default and names our ports alone, so that it can cut off nobody from another port.
It keeps no state: a source that is taken away loses its connections at once. No other table is read or
written but to see who else drops packets.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.commands import (
    Run,
    run_or_refuse,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    read_text,
    remove,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.firewall.openings import (
    CLOSED,
    Opening,
    Ports,
    State,
    is_everybody,
    is_ipv6,
    order,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# Reason and remedy.
ABSENT = ("there is no program nft", "install the package nftables")
RULES_DIR = "/etc/kafkaops"
UNIT_DIR = "/etc/systemd/system"
FAMILY, CHAIN = "inet", "input"
# Before the chains of others, so that what we refuse is refused whatever they accept.
PRIORITY = -1
EVERYBODY = {"ipv4": "0.0.0.0/0", "ipv6": "::/0"}
RULE = re.compile(
    r"(?:(?:ip6? saddr (?P<source>\S+)|meta nfproto (?P<family>ipv[46])) )?"
    r"tcp dport (?P<port>\d+) (?P<verdict>accept|reject)"
)


# ---------------------------------------------------------------- pure


def table_text(name: str, label: str, openings: Sequence[Opening]) -> str:
    """The file that replaces the table, in one transaction."""
    rules = ['iifname "lo" accept']
    for each in openings:
        comment = re.sub(r'["\\\n]', " ", each.purpose)[:120]
        tail = f' comment "{comment}"' if comment else ""
        for source in sorted(each.sources, key=order):
            rules.append(f"{_from(source)} tcp dport {each.port} accept{tail}")
    rules += [f"tcp dport {each.port} reject with tcp reset" for each in openings]
    body = "\n".join(f"\t\t{rule}" for rule in rules)
    return (
        f"# Written by kafkaops.cluster: the ports of {' '.join(label.split())}.\n"
        f"table {FAMILY} {name}\n"
        f"delete table {FAMILY} {name}\n"
        f"table {FAMILY} {name} {{\n"
        f"\tchain {CHAIN} {{\n"
        f"\t\ttype filter hook input priority {PRIORITY}; policy accept;\n"
        f"{body}\n"
        "\t}\n"
        "}\n"
    )


def _from(source: str) -> str:
    family = "ip6" if is_ipv6(source) else "ip"
    if is_everybody(source):
        return f"meta nfproto {'ipv6' if is_ipv6(source) else 'ipv4'}"
    return f"{family} saddr {source}"


def ports_in_text(text: Optional[str]) -> Ports:
    """What a file of `table_text` opens, as far as it can be read; CLOSED where there is none."""
    found: Dict[int, FrozenSet[str]] = {}
    for line in (text or "").splitlines():
        match = RULE.match(line.strip())
        if match:
            source = match["source"] or EVERYBODY.get(match["family"] or "")
            port, more = int(match["port"]), frozenset([source] if source else [])
            found[port] = found.get(port, frozenset()) | more
    return found


def ports_in_ruleset(listed: Mapping[str, Any]) -> Tuple[Ports, bool]:
    """(what a table opens, whether it is exactly as `table_text` writes it), from `nft -j list table`."""
    items = listed.get("nftables") or []
    chains = [each["chain"] for each in items if "chain" in each]
    hooks = {"hook": "input", "type": "filter", "policy": "accept", "prio": PRIORITY}
    intact = len(chains) == 1 and all(chains[0].get(key) == hooks[key] for key in hooks)
    intact = intact and not any({"set", "map"} & set(each) for each in items)
    rules = [_read_rule(each["rule"].get("expr") or []) for each in items if "rule" in each]
    intact = intact and bool(rules) and rules[0] == ("accept", "lo", None)
    found: Dict[int, FrozenSet[str]] = {}
    refused = set()
    for rule in rules[1:] if intact else rules:
        verdict, source, port = rule or ("", "", None)
        if port is None or port in refused:
            # whatever it is, it is not ours, or it has no effect
            intact = False
        elif verdict == "accept":
            found[port] = found.get(port, frozenset()) | frozenset([source])
        else:
            refused.add(port)
            found.setdefault(port, frozenset())
    return found, intact and refused == set(found)


def _read_rule(
    expressions: Sequence[Mapping[str, Any]],
) -> Optional[Tuple[str, str, Optional[int]]]:
    """(verdict, source, port) of one rule; "lo" is the source that is the machine itself."""
    source: str = ""
    port: Optional[int] = None
    for each in expressions[:-1]:
        match = each.get("match") or {}
        left, right = match.get("left") or {}, match.get("right")
        payload, meta = left.get("payload") or {}, (left.get("meta") or {}).get("key")
        if match.get("op") != "==":
            return None
        if meta == "iifname" and right == "lo":
            source = "lo"
        elif meta == "nfproto" and right in EVERYBODY:
            source = EVERYBODY[right]
        elif payload.get("field") == "saddr" and payload.get("protocol") in ("ip", "ip6"):
            prefix = right.get("prefix") if isinstance(right, Mapping) else None
            source = f"{prefix['addr']}/{prefix['len']}" if prefix else str(right)
        elif payload == {"protocol": "tcp", "field": "dport"} and isinstance(right, int):
            port = right
        else:
            return None
    last = expressions[-1] if expressions else {}
    if "accept" in last and source:
        return "accept", source, port
    if (last.get("reject") or {}).get("type") == "tcp reset" and not source:
        return "reject", "", port
    return None


def foreign_drops(listed: Mapping[str, Any]) -> List[str]:
    """Chains of other tables that drop each packet they do not accept, from `nft -j list chains`."""
    chains = [each["chain"] for each in listed.get("nftables") or [] if "chain" in each]
    return sorted(
        f"{each['family']} {each['table']} {each['name']}"
        for each in chains
        if each.get("hook") == "input" and each.get("policy") == "drop"
    )


def foreign_inputs(listed: Mapping[str, Any]) -> List[Tuple[str, str, str]]:
    """(family, table, name) of chains for what comes in whose policy lets all in, from `nft -j list chains`."""
    chains = [each["chain"] for each in listed.get("nftables") or [] if "chain" in each]
    return sorted(
        (each["family"], each["table"], each["name"])
        for each in chains
        if each.get("hook") == "input" and each.get("policy") != "drop"
    )


def ends_closed(listed: Mapping[str, Any]) -> bool:
    """Whether the last rule of a chain turns away all that came so far, from `nft -j list chain`.

    So end the chains that iptables' services write, whose policy is to accept.
    """
    rules = [each["rule"] for each in listed.get("nftables") or [] if "rule" in each]
    last = rules[-1].get("expr") or [] if rules else []
    told = [each for each in last if "counter" not in each and "log" not in each]
    if len(told) != 1:
        return False  # it asks for something first
    extension = told[0].get("xt") or {}
    return "drop" in told[0] or "reject" in told[0] or extension.get("name") in ("DROP", "REJECT")


def unit_text(name: str, label: str, nft: str, rules: str) -> str:
    """The unit that loads the table: at boot, and whenever nftables.service has loaded its own anew."""
    return (
        "# Written by kafkaops.cluster.\n"
        "[Unit]\n"
        f"Description=Ports of {' '.join(label.split())}, table {FAMILY} {name}\n"
        "DefaultDependencies=no\n"
        "Wants=network-pre.target\n"
        "Before=network-pre.target shutdown.target\n"
        "Conflicts=shutdown.target\n"
        "After=local-fs.target nftables.service\n"
        "PartOf=nftables.service\n"
        "ReloadPropagatedFrom=nftables.service\n"
        "\n[Service]\n"
        "Type=oneshot\n"
        "RemainAfterExit=yes\n"
        f"ExecStart={nft} -f {rules}\n"
        f"ExecReload={nft} -f {rules}\n"
        "\n[Install]\n"
        "WantedBy=sysinit.target nftables.service\n"
    )


# ---------------------------------------------------------------- the host's


class Nftables:
    """The table of one inventory name on this host. `run`: words to (exit code, output, errors)."""

    kind = "nftables"

    def __init__(
        self,
        name: str,
        label: str,
        run: Run,
        nft: Optional[str],
        rules_dir: str = RULES_DIR,
        unit_dir: str = UNIT_DIR,
    ):
        self._name, self._label, self._run, self._nft = name, label, run, nft
        self._rules = os.path.join(rules_dir, f"{name}.nft")
        self._unit = os.path.join(unit_dir, f"{name}.service")

    def unusable(self) -> Optional[Problem]:
        """Why it cannot be used on this host, None where it can."""
        if self._nft:
            return None
        return Problem("host.firewall", *ABSENT, (), *_SETTING)

    def state(self) -> State:
        """What holds now, and after a boot."""
        now, intact = CLOSED, True
        if self._nft:
            # A table that does not exist is an error, and so is a kernel without nftables: then
            # nothing of ours is in effect, and loading it will say why.
            code, out, _err = self._run([self._nft, "-j", "list", "table", FAMILY, self._name])
            if code == 0:
                now, intact = ports_in_ruleset(_read_json(out))
        text, unit = read_text(self._rules), read_text(self._unit)
        boot = ports_in_text(text)
        if text is not None or unit is not None:
            openings = [Opening(port, boot[port]) for port in sorted(boot)]
            bare = table_text(self._name, self._label, openings).splitlines()
            intact = intact and _without_comments(text or "") == _without_comments("\n".join(bare))
            intact = intact and unit == self._unit_text()
            for word in ("is-enabled", "is-active"):
                asked = ["systemctl", word, "--quiet", f"{self._name}.service"]
                intact = intact and self._run(asked)[0] == 0
        return State(now, boot, intact)

    def warnings(self) -> List[str]:
        """What keeps a port closed that we open."""
        code, out, _err = self._run([str(self._nft), "-j", "list", "chains"])
        chains = _read_json(out) if code == 0 else {}
        closed = [" ".join(each) for each in foreign_inputs(chains) if self._ends_closed(each)]
        return [
            f"chain {each} drops what it does not accept itself: open the ports there, too"
            for each in sorted([*foreign_drops(chains), *closed])
        ]

    def _ends_closed(self, chain: Sequence[str]) -> bool:
        code, out, _err = self._run([str(self._nft), "-j", "list", "chain", *chain])
        return code == 0 and ends_closed(_read_json(out))

    def refuse(self) -> None:
        """Refuse nothing: loading the table is one transaction."""

    def apply(self, openings: Sequence[Opening]) -> None:
        """Bring exactly these into effect, now and after a boot. Raises ProblemError, OSError."""
        text = table_text(self._name, self._label, openings)
        os.makedirs(os.path.dirname(self._rules), mode=0o755, exist_ok=True)
        write_atomically(self._rules, text, mode=0o644)
        if read_text(self._unit) != self._unit_text():
            write_atomically(self._unit, self._unit_text(), mode=0o644)
        # Loaded here first, where it can say what is wrong; the unit loads it once more, the same.
        self._must([str(self._nft), "-f", self._rules])
        self._must(["systemctl", "daemon-reload"])
        self._must(["systemctl", "enable", "--quiet", f"{self._name}.service"])
        self._must(["systemctl", "restart", f"{self._name}.service"])

    def remove(self) -> None:
        """Remove the table, its file and its unit; what is not there is no error."""
        if os.path.exists(self._unit):
            self._run(["systemctl", "disable", "--now", "--quiet", f"{self._name}.service"])
            remove(self._unit)
            self._must(["systemctl", "daemon-reload"])
        if os.path.exists(self._rules):
            remove(self._rules)
        if self._nft and self._run([self._nft, "list", "table", FAMILY, self._name])[0] == 0:
            self._must([self._nft, "delete", "table", FAMILY, self._name])

    def _unit_text(self) -> str:
        return unit_text(self._name, self._label, str(self._nft), self._rules)

    def _must(self, words: List[str]) -> None:
        run_or_refuse(self._run, words, "host.firewall_failed", *_SETTING)


_SETTING = ("host_baseline_firewall", "nftables")


def _without_comments(text: str) -> List[str]:
    return [re.sub(r' comment "[^"]*"$', "", line) for line in text.splitlines()]


def _read_json(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""firewalld: a policy of our own, from any zone to the host, before the zones' own rules.

What a zone says stays, and so does whoever it lets in, at every port that is not ours. A policy comes
into effect only by a reload, which forgets what was never written down: so there is one when the policy
is made, none later, and none at all while that would take a rule away from somebody.
"""

from __future__ import annotations

import os
import re
from typing import Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple
from xml.sax.saxutils import escape

from ansible_collections.kafkaops.cluster.plugins.module_utils.commands import (
    Run,
    run_or_refuse,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
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
    ports_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError

# Reason and remedy.
ABSENT = ("firewalld is not installed", "install and start the package firewalld")
STOPPED = ("firewalld does not run", "systemctl enable --now firewalld")
POLICIES_DIR = "/etc/firewalld/policies"
# Before the zones' own rules; of those that come with firewalld, -15000 lets IPv6 find its neighbours.
PRIORITY = -100
SHAPE = {
    "priority": str(PRIORITY),
    "target": "CONTINUE",
    "ingress-zones": "ANY",
    "egress-zones": "HOST",
}
# Within the policy: first who may, then nobody else.
ACCEPT, REFUSE = 1, 2
OF_US = re.compile(r"kafkaops-[0-9a-f]{8}")
RULE = re.compile(
    r'rule priority="(?P<priority>\d+)"(?: family="(?P<family>ipv[46])")?'
    r'(?: source address="(?P<source>[^"]+)")? port port="(?P<port>\d+)" protocol="tcp" '
    r"(?P<verdict>accept|reject)"
)


# ---------------------------------------------------------------- pure


def rich_rules(ports: Ports) -> List[str]:
    """The rules of the policy, as firewall-cmd prints them."""
    accepted, refused = [], []
    for port in sorted(ports):
        tail = f'port port="{port}" protocol="tcp"'
        for source in sorted(ports[port], key=order):
            family = f'family="{"ipv6" if is_ipv6(source) else "ipv4"}"'
            address = "" if is_everybody(source) else f' source address="{source}"'
            accepted.append(f'rule priority="{ACCEPT}" {family}{address} {tail} accept')
        refused.append(f'rule priority="{REFUSE}" {tail} reject')
    return accepted + refused


def policy_text(label: str, ports: Ports) -> str:
    """The policy's file, with all its rules."""
    found = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<policy priority="{PRIORITY}" target="CONTINUE">',
        f"  <short>kafkaops.cluster: {escape(label)}</short>",
        "  <description>Written by kafkaops.cluster, which removes what is not stated.</description>",
        '  <ingress-zone name="ANY"/>',
        '  <egress-zone name="HOST"/>',
    ]
    for port in sorted(ports):
        element = f'<port port="{port}" protocol="tcp"/>'
        for source in sorted(ports[port], key=order):
            family = "ipv6" if is_ipv6(source) else "ipv4"
            address = "" if is_everybody(source) else f'<source address="{source}"/>'
            found.append(
                f'  <rule priority="{ACCEPT}" family="{family}">{address}{element}<accept/></rule>'
            )
        found.append(f'  <rule priority="{REFUSE}">{element}<reject/></rule>')
    return "\n".join([*found, "</policy>", ""])


class Listed:
    """A policy as `firewall-cmd --list-all` prints it."""

    def __init__(self, text: str) -> None:
        self.rules: List[str] = []
        fields: Dict[str, str] = {}
        for line in text.splitlines():
            key, colon, value = line.strip().partition(":")
            if line.strip().startswith("rule "):
                self.rules.append(line.strip())
            elif colon:
                fields[key] = value.strip()
        others = ("services", "ports", "protocols", "forward-ports", "source-ports", "icmp-blocks")
        # Whether it is as we make it, but for the rules.
        self.is_shaped = all(fields.get(key) == value for key, value in SHAPE.items()) and not any(
            fields.get(key) for key in others
        )

    def ports(self) -> Ports:
        """What it opens, as far as it can be read."""
        return self._read()[0]

    @property
    def is_intact(self) -> bool:
        """Whether it is exactly as we make it."""
        return self._read()[1]

    def _read(self) -> Tuple[Ports, bool]:
        found: Dict[int, FrozenSet[str]] = {}
        refused, intact = set(), self.is_shaped
        for text in self.rules:
            match = RULE.fullmatch(text)
            if not match:
                intact = False
                continue
            port = int(match["port"])
            more: FrozenSet[str] = frozenset()
            if match["verdict"] == "reject":
                refused.add(port)
            else:
                everybody = "::/0" if match["family"] == "ipv6" else "0.0.0.0/0"
                more = frozenset([match["source"] or everybody])
            found[port] = found.get(port, frozenset()) | more
        return found, intact and refused == set(found)


def comparable(text: str, ours: str) -> Dict[str, Tuple[str, ...]]:
    """What a reload could change, of the zones or policies that `--list-all-...` prints, without our policy.

    Which interfaces a zone has is kept by a reload, and the headings say what is in use. A policy of this
    collection without a rule is what `remove` has left.
    """
    found: Dict[str, List[str]] = {}
    name = ""
    for line in text.splitlines():
        if line and not line[0].isspace():
            name = line.split("(")[0].strip()
            found[name] = []
        elif line.strip() and name and not line.strip().startswith("interfaces:"):
            found[name].append(line.strip())
    return {
        key: tuple(sorted(told))
        for key, told in found.items()
        if key != ours and not (OF_US.fullmatch(key) and not any("rule " in each for each in told))
    }


def unwritten(now: Mapping[str, Sequence[str]], boot: Mapping[str, Sequence[str]]) -> List[str]:
    """The names whose settings are not those that are written down."""
    return sorted(name for name in {*now, *boot} if now.get(name, ()) != boot.get(name, ()))


def _is_loaded_anew(now: Optional[Listed]) -> bool:
    """Whether bringing the policy into effect takes a reload: it is not there, or not in our shape."""
    return now is None or not now.is_shaped


# ---------------------------------------------------------------- the host's


class Firewalld:
    """The policy of one inventory name on this host. `run`: words to (exit code, output, errors)."""

    kind = "firewalld"

    def __init__(
        self,
        name: str,
        label: str,
        run: Run,
        firewall_cmd: Optional[str],
        policies_dir: str = POLICIES_DIR,
        scratch_dir: str = "/run",
    ):
        self._name, self._label, self._run, self._cmd = name, label, run, firewall_cmd
        self._file = os.path.join(policies_dir, f"{name}.xml")
        self._scratch = os.path.join(scratch_dir, f"{name}.xml")
        self._running: Optional[bool] = None

    def unusable(self) -> Optional[Problem]:
        """Why it cannot be used on this host, None where it can."""
        if self._is_running():
            return None
        return Problem("host.firewall", *(STOPPED if self._cmd else ABSENT), (), *_SETTING)

    def state(self) -> State:
        """What holds now, and after a boot."""
        if not self._is_running():
            return State(CLOSED, CLOSED, intact=not os.path.exists(self._file))
        now, boot = self._listed(), self._listed("--permanent")
        # In effect it may stay without a rule, until somebody reloads: that is nothing.
        intact = (now is None or now.is_intact) and (boot is None or boot.is_intact)
        if boot is not None and (now is None or not boot.rules):
            intact = False
        return State(now.ports() if now else CLOSED, boot.ports() if boot else CLOSED, intact)

    def warnings(self) -> List[str]:
        """What keeps a port closed that we open: nothing, since the policy comes before the zones."""
        return []

    def refuse(self) -> None:
        """Raise ProblemError for what `apply` refuses before it changes anything."""
        if _is_loaded_anew(self._listed()):
            self._refuse_to_forget()

    def apply(self, openings: Sequence[Opening]) -> None:
        """Bring exactly these into effect, now and after a boot. Raises ProblemError, OSError."""
        ports = ports_of(openings)
        now, boot = self._listed(), self._listed("--permanent")
        reload = _is_loaded_anew(now)
        if reload:
            self._refuse_to_forget()
        if boot is None or not boot.is_shaped:
            if boot is not None:
                self._must("--permanent", f"--delete-policy={self._name}")
            write_atomically(self._scratch, policy_text(self._label, ports), mode=0o600)
            try:
                source = f"--new-policy-from-file={self._scratch}"
                self._must("--permanent", source, f"--name={self._name}")
            finally:
                remove(self._scratch)
        else:
            self._change(boot.rules, ports, "--permanent")
        if reload:
            self._must("--reload")
        else:
            self._change(now.rules if now else (), ports)

    def remove(self) -> None:
        """Remove the policy; in effect it stays until the next reload, without a rule."""
        if not self._is_running():
            remove(self._file)
            return
        now, boot = self._listed(), self._listed("--permanent")
        if boot is not None:
            self._must("--permanent", f"--delete-policy={self._name}")
        self._change(now.rules if now else (), CLOSED)

    def _change(self, seen: Sequence[str], ports: Ports, *where: str) -> None:
        """Add what is missing, then remove what is too much; `where`: `--permanent`, or nothing."""
        wanted = rich_rules(ports)
        for option, rules in (
            ("--add-rich-rule", [each for each in wanted if each not in seen]),
            ("--remove-rich-rule", [each for each in seen if each not in wanted]),
        ):
            if rules:
                words = [f"{option}={each}" for each in rules]
                self._must(*where, f"--policy={self._name}", *words)

    def _refuse_to_forget(self) -> None:
        """Raise ProblemError if a reload would forget a rule of somebody else, such as the one for ssh."""
        found: List[str] = []
        for what, ours in (("--list-all-zones", ""), ("--list-all-policies", self._name)):
            now = comparable(self._must(what), ours)
            found += unwritten(now, comparable(self._must("--permanent", what), ours))
        for what in ("--get-all-chains", "--get-all-rules", "--get-all-passthroughs"):
            if self._must("--direct", what) != self._must("--permanent", "--direct", what):
                found.append(f"direct rules ({what})")
        for name in self._must("--get-ipsets").split():
            entries = ("--ipset=" + name, "--get-entries")
            if self._must(*entries) != self._try("--permanent", *entries)[1]:
                found.append(f"ipset {name}")
        if found:
            reason = (
                "firewalld has to be reloaded once, which would forget what is in effect and not "
                f"written down: {', '.join(found)}"
            )
            remedy = "firewall-cmd --runtime-to-permanent keeps it, firewall-cmd --reload drops it"
            raise ProblemError(Problem("host.firewall_unwritten", reason, remedy, (), *_SETTING))

    def _listed(self, *where: str) -> Optional[Listed]:
        if self._name not in self._must(*where, "--get-policies").split():
            return None
        return Listed(self._must(*where, f"--policy={self._name}", "--list-all"))

    def _is_running(self) -> bool:
        if self._running is None:
            self._running = bool(self._cmd) and self._try("--state")[0] == 0
        return self._running

    def _try(self, *words: str) -> Tuple[int, str, str]:
        return self._run([str(self._cmd), *words])

    def _must(self, *words: str) -> str:
        command, called = [str(self._cmd), *words], f"firewall-cmd {words[0]}"
        return run_or_refuse(self._run, command, "host.firewall_failed", *_SETTING, called=called)


_SETTING = ("host_baseline_firewall", "firewalld")

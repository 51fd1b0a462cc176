# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ACLs as a Resource: what the runner needs to know to reconcile them; and what the info module returns.

Private to this collection. The glue between `plan`, which decides, and `client`, which does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.client import (
    GONE,
    THERE,
    AclClient,
    Views,
    in_dispute,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.items import (
    ACL_ITEM,
    NO_AUTHORIZER,
    OPERATIONS_SINCE,
    Binding,
    items_of,
    parse_acls,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.plan import (
    ACL_PURGE_OPTION,
    CONSENTS,
    CREATE,
    EVERYONE,
    AclPolicy,
    AclSnapshot,
    acl_purge_from,
    apply_to,
    chosen,
    plan_acls,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    OAUTHBEARER,
    Connection,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.purge import patterns_from
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import some

ANONYMOUS = "User:ANONYMOUS"


def policy_from(params: Mapping[str, Any], connection: Connection) -> AclPolicy:
    """The AclPolicy of a module's parameters; AdminError for a pattern that cannot be one."""
    principal = params["own_principal"] or own_principal(connection)
    return AclPolicy(frozenset(params["allow"]), acl_purge_from(params["purge"]), principal)


def own_principal(connection: Connection) -> Optional[str]:
    """Who a connection is for the brokers; None with a certificate or a token, whose name they may map."""
    if connection.sasl_mechanism == OAUTHBEARER:
        return None
    if connection.security_protocol.startswith("SASL"):
        return f"User:{connection.sasl_username}"
    if connection.security_protocol == "SSL" and connection.ssl_certificate:
        return None
    return ANONYMOUS


class Acls(Resource):
    """The declared ACLs of one task."""

    def __init__(self, client: AclClient, params: Mapping[str, Any]):
        self.client = client
        self.policy = policy_from(params, client.connection)
        self.desired, self.refusals = parse_acls(params["acls"])
        self._everyone: Optional[bool] = params["allow_everyone_if_no_acl_found"]
        self._moot: List[Change] = []

    def read(self) -> AclSnapshot:
        """All bindings, and what this very user may do; five requests, and one to each broker.

        For in ZooKeeper mode the one that was asked for all may not have heard of what has been done.
        """
        metadata = self.client.fetch_metadata()
        bindings = self.client.fetch_bindings()
        rights = self.client.fetch_own_rights()
        everyone = self._everyone
        if everyone is None and metadata.brokers:
            config = self.client.fetch_broker_config(metadata.brokers[0].id)
            # Its value is hidden, since Kafka does not know the settings of an authorizer. Whether
            # there is one is not.
            everyone = False if config is not None and EVERYONE not in config else None
        concerned = {each.binding for each in self.desired}
        newer = any(each.operation in OPERATIONS_SINCE for each in concerned)
        release = self.client.fetch_release() if newer else ()
        snapshot = AclSnapshot(bindings, "ALTER" in rights, everyone, metadata.cluster_id, release)
        concerned.update(_binding(each) for each in self.plan(snapshot).changes)
        # Who is asked for an operation that he does not know does not answer at all.
        concerned = {each for each in concerned if snapshot.knows(each)}
        views = self.client.fetch_agreed_views(concerned) if concerned else {}
        for view in list(views.values())[:1]:
            snapshot = replace(snapshot, bindings=bindings - concerned | view)
        return snapshot

    def plan(self, snapshot: AclSnapshot) -> Plan:
        """The plan, and every item that could not be read."""
        return plan_acls(self.desired, snapshot, self.policy).refusing(self.refusals)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Add, then remove; what somebody else has done since the plan is not ours.

        Brokers do not tell whether an ACL that is created was there before, so they are asked first. And in
        ZooKeeper mode one that has not heard of a removal says that it has made it, so they are waited for.
        """
        subjects = {_binding(change): change for change in changes}
        views = self.client.fetch_agreed_views(subjects, deadline).values()
        added, removed, failures = [], [], []
        for binding, change in subjects.items():
            creates = change.kind == CREATE
            if views and all((binding in view) == creates for view in views):
                words = THERE if creates else GONE
                failures.append(Failure(change.subject, words, change.kind, moot=True))
            else:
                (added if creates else removed).append(binding)
        failures += self.client.create(added, deadline) + self.client.delete(removed, deadline)
        moot = {(each.subject, each.kind) for each in failures if each.moot}
        self._moot = [each for each in changes if (each.subject, each.kind) in moot]
        return failures

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """What not every live broker knows yet: in ZooKeeper mode one learns after another."""
        found: Dict[str, str] = {}
        subjects = {_binding(change): change for change in changes}
        for broker, view in self.client.fetch_views(subjects).items():
            for binding, change in subjects.items():
                there = binding in view
                if there != (change.kind == CREATE):
                    state = "still there" if there else "not there yet"
                    found[change.subject] = f"{state} on broker {broker}"
        return found

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns: the declared bindings as they are now, or would be."""
        after = apply_to(outcome.snapshot.bindings, [*self._moot, *outcome.changed])
        declared = {wanted.binding for wanted in self.desired}
        return {
            "cluster_id": outcome.snapshot.cluster_id,
            "acls": items_of(after & declared),
        }


def _binding(change: Change) -> Binding:
    return Binding(**(change.after or change.before))


def read_acls(client: AclClient, params: Mapping[str, Any]) -> Dict[str, Any]:
    """What kafka_acls_info returns: what brokers have, with who lacks what of it."""
    principals = patterns_from("principals", params["principals"])
    resources = patterns_from("resources", params["resources"])
    client.connect()
    metadata = client.fetch_metadata()
    views: Views = {}
    try:
        views = client.look(lambda bindings: frozenset(chosen(bindings, principals, resources)))
    except AdminError as error:
        if error.problem != NO_AUTHORIZER or not params["missing_ok"]:
            raise
    found: FrozenSet[Binding] = frozenset().union(*views.values())
    differing = [
        {"broker": broker, "lacks": items_of(found - view)}
        for broker, view in sorted(views.items())
        if found - view
    ]
    warnings = []
    if differing:
        subjects = sorted(each.subject for each in in_dispute(views))
        brokers = ", ".join(str(each["broker"]) for each in differing)
        warnings.append(f"not known to broker {brokers}, but to others: {some(subjects)}")
    return {
        "cluster_id": metadata.cluster_id,
        "acls": items_of(found),
        "binding_count": len(found),
        "differing": differing,
        "warnings": warnings,
    }


# The modules' own options; their documentation is in the modules.
ACL_OPTIONS = dict(
    acls=dict(type="list", elements="dict", required=True, options=ACL_ITEM),
    allow=dict(type="list", elements="str", choices=list(CONSENTS), default=[]),
    purge=ACL_PURGE_OPTION,
    allow_everyone_if_no_acl_found=dict(type="bool"),
    own_principal=dict(type="str"),
    operation_timeout=dict(type="float", default=300.0),
)
ACL_INFO_OPTIONS = dict(
    principals=dict(type="list", elements="str"),
    resources=dict(type="list", elements="str"),
    missing_ok=dict(type="bool", default=False),
)

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SCRAM users as a Resource: through the brokers of a running cluster.

Private to this collection. The glue between `plan`, which decides, and `client`, which does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    Connection,
    parse_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.client import UserClient
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.items import (
    ALWAYS,
    DELETE,
    ON_CREATE,
    USER_ITEM,
    Credential,
    Desired,
    Key,
    Trial,
    parse_users,
    subject_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.plan import (
    CONSENTS,
    UNTRIED,
    UserPolicy,
    UserSnapshot,
    apply_to,
    left_of,
    plan_users,
    to_try,
)

LOGIN_PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")


def login_connection(params: Mapping[str, Any], connection: Connection) -> Optional[Connection]:
    """Where passwords are tried: at `login`, else at the connection itself if it speaks SASL."""
    login = params["login"]
    if login:
        encrypted = connection.security_protocol.endswith("SSL")
        return replace(
            connection,
            addresses=parse_addresses(login["bootstrap_servers"], "login.bootstrap_servers"),
            security_protocol=login["security_protocol"] or LOGIN_PROTOCOLS[encrypted],
            ssl_ca=login["ssl_ca"] or connection.ssl_ca,
        )
    return connection if connection.security_protocol in LOGIN_PROTOCOLS else None


class Users(Resource):
    """The declared SCRAM users of one task."""

    def __init__(self, client: UserClient, params: Mapping[str, Any]):
        connection = client.connection
        own = None
        if connection.security_protocol.startswith("SASL"):
            own = (connection.sasl_username or "", connection.sasl_mechanism or "")
        self.client = client
        self.policy = UserPolicy(
            params["update_password"] == ALWAYS, frozenset(params["allow"]), own
        )
        self.desired, self.refusals = parse_users(params["users"])
        self._by_subject = {subject_of(each.key): each for each in self.desired.present}
        client.passwords.update({name: each.password for name, each in self._by_subject.items()})
        self._where = login_connection(params, connection)
        # What there was when it was planned, and when the changes were made.
        self._stored: Mapping[Key, int] = {}
        self._found: Optional[Mapping[Key, int]] = None

    def read(self) -> UserSnapshot:
        """All credentials, and what this very user may do; four requests."""
        metadata = self.client.fetch_metadata()
        rights = self.client.fetch_own_rights()
        stored = self.client.fetch_credentials(rights)
        self._stored = stored
        return UserSnapshot(stored, {}, "ALTER" in rights, metadata.cluster_id)

    def plan(self, snapshot: UserSnapshot) -> Plan:
        """The plan, after a login for each password that may be another one."""
        unread = bool(self.refusals)
        asked = [] if unread else to_try(self.desired, snapshot.stored, self.policy)
        plan = plan_users(self.desired, replace(snapshot, trials=self._trials(asked)), self.policy)
        if unread:
            # Nothing was tried: what the plan says of passwords would be beside the point.
            refusals = [each for each in plan.refusals if each.check != UNTRIED]
            return Plan(plan.changes, (*self.refusals, *refusals), plan.warnings)
        return plan

    def _trials(self, credentials: Sequence[Credential]) -> Mapping[Key, Trial]:
        if not credentials:
            return {}
        if self._where is None:
            protocol = self.client.connection.security_protocol
            untried = Trial(None, f"the connection speaks {protocol}, by which nobody logs in")
            return {each.key: untried for each in credentials}
        return self.client.try_logins(self._where, credentials)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Write, then remove; go on with the new password where it is that of this very user.

        Brokers overwrite what they have. So they are asked once more: a user whom somebody else has made since
        the plan has his password, unless it is to be the declared one whatever it is now.
        """
        stored = self._found = self.client.fetch_credentials()
        others = {
            subject_of(key)
            for key in {*stored, *self._stored}
            if stored.get(key) != self._stored.get(key)
        }
        wanted = [
            self._by_subject[change.subject]
            for change in changes
            if change.subject in others and change.kind != DELETE
        ]
        asked = to_try(Desired(tuple(wanted)), stored, self.policy)
        snapshot = UserSnapshot(stored, self._trials(asked))
        left, failures = left_of(changes, others, Desired(tuple(wanted)), snapshot, self.policy)
        self.made = {change.subject: change for change in left}
        changes = [self._whole(change, stored) for change in left]
        failures += self.client.change_credentials(changes, deadline)
        failed = {failure.subject for failure in failures}
        own = subject_of(self.policy.own) if self.policy.own else ""
        for change in changes:
            if change.subject == own and change.kind != DELETE and own not in failed:
                self.client.log_in_with(self._by_subject[own].password)
        return failures

    @staticmethod
    def _whole(change: Change, stored: Mapping[Key, int]) -> Change:
        """A change with the iterations that are written: of a new password those of the old one."""
        if change.kind == DELETE or "iterations" in change.after:
            return change
        user, _blank, mechanism = change.subject.rpartition(" ")
        iterations = stored[(user, mechanism)]
        return replace(change, after={**change.after, "iterations": iterations})

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """What is not there yet, and passwords that are not accepted yet."""
        stored = self.client.fetch_credentials()
        found: Dict[str, str] = {}
        written: List[Credential] = []
        for change in changes:
            user, _blank, mechanism = change.subject.rpartition(" ")
            there = stored.get((user, mechanism))
            if change.kind == DELETE:
                if there is not None:
                    found[change.subject] = "still there"
            elif there is None or there != change.after.get("iterations", there):
                found[change.subject] = "not there yet"
            else:
                written.append(self._by_subject[change.subject])
        if self._where is not None and written:
            for key, trial in self.client.try_logins_everywhere(self._where, written).items():
                if trial.fits is False:
                    found[subject_of(key)] = "the password is not accepted yet by every broker"
        return found

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns: the declared users as they are now, or would be."""
        stored = outcome.snapshot.stored if self._found is None else self._found
        after = apply_to(stored, outcome.changed)
        names = {user for user, _mechanism in (each.key for each in self.desired.present)}
        names |= {user for user, _mechanism in self.desired.absent} | self.desired.all_of
        users: Dict[str, Dict[str, int]] = {}
        for user, mechanism in sorted(after):
            if user in names:
                users.setdefault(user, {})[mechanism] = after[(user, mechanism)]
        return {
            "cluster_id": outcome.snapshot.cluster_id,
            "users": _described(users),
        }


def read_users(client: UserClient) -> Dict[str, Any]:
    """What kafka_users_info returns: every user with the iterations of each of its credentials."""
    client.connect()
    metadata = client.fetch_metadata()
    users: Dict[str, Dict[str, int]] = {}
    for (user, mechanism), iterations in sorted(
        client.fetch_credentials(client.fetch_own_rights()).items()
    ):
        users.setdefault(user, {})[mechanism] = iterations
    return {"cluster_id": metadata.cluster_id, "users": _described(users)}


def _described(users: Mapping[str, Mapping[str, int]]) -> List[Dict[str, Any]]:
    return [{"name": name, "iterations": dict(found)} for name, found in users.items()]


# The module's own options; their documentation is in the module.
USER_OPTIONS = dict(
    users=dict(
        type="list",
        elements="dict",
        required=True,
        options=USER_ITEM,
    ),
    update_password=dict(type="str", choices=[ALWAYS, ON_CREATE], default=ALWAYS, no_log=False),
    login=dict(
        type="dict",
        options=dict(
            bootstrap_servers=dict(type="list", elements="str", required=True),
            security_protocol=dict(type="str", choices=list(LOGIN_PROTOCOLS)),
            ssl_ca=dict(type="str"),
        ),
    ),
    allow=dict(type="list", elements="str", choices=list(CONSENTS), default=[]),
    operation_timeout=dict(type="float", default=60.0),
)

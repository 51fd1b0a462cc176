# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first SCRAM credentials as a Resource: straight into ZooKeeper, before any broker runs.

Private to this collection. `plan` decides, as for kafka_users. ZooKeeper has the hashes, so that
whether a password fits is computed instead of tried.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.zookeeper import (
    ZookeeperClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.items import (
    Credential,
    Desired,
    Key,
    Trial,
    subject_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.plan import (
    UserPolicy,
    UserSnapshot,
    plan_users,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.scram import (
    HASHES,
    credential,
    iterations_of,
    matches,
)


class FirstCredentials(Resource):
    """Passwords of users, by all of these mechanisms."""

    def __init__(
        self,
        client: ZookeeperClient,
        users: Mapping[str, str],
        mechanisms: Sequence[str],
        check_mode: bool,
    ):
        self.client = client
        self.desired = Desired(
            tuple(
                Credential(user, each, users[user]) for user in sorted(users) for each in mechanisms
            )
        )
        self._by_subject = {subject_of(each.key): each for each in self.desired.present}
        self._check_mode = check_mode
        self._assumed = False

    def connect(self) -> None:
        """Reach a server; in check mode nobody has to be there before the first installation."""
        try:
            self.client.__enter__()
        except AdminError as error:
            if error.reachable or not self._check_mode:
                raise
            self._assumed = True

    def read(self) -> UserSnapshot:
        """The stored credentials of the declared users, each with whether it fits."""
        stored: Dict[Key, int] = {}
        trials: Dict[Key, Trial] = {}
        configs: Dict[str, Mapping[str, str]] = {}
        for each in () if self._assumed else self.desired.present:
            if each.user not in configs:
                configs[each.user] = self.client.user_config(each.user)
            text = configs[each.user].get(each.mechanism)
            if text:
                stored[each.key] = iterations_of(text)
                trials[each.key] = Trial(matches(text, each.password, each.mechanism))
        return UserSnapshot(stored, trials)

    def plan(self, snapshot: UserSnapshot) -> Plan:
        """The plan."""
        return plan_users(self.desired, snapshot, UserPolicy())

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Write the credentials of one user at a time; who cannot be written does not stop the rest."""
        by_user: Dict[str, List[Change]] = {}
        for change in changes:
            by_user.setdefault(self._by_subject[change.subject].user, []).append(change)
        failures: List[Failure] = []
        for user, mine in by_user.items():
            try:
                config = self.client.user_config(user)
                for change in mine:
                    each = self._by_subject[change.subject]
                    config[each.mechanism] = credential(
                        each.password, each.mechanism, os.urandom(18)
                    )
                self.client.write_user_config(user, config)
            except AdminError as error:
                failures += [Failure(each.subject, error.message, each.kind) for each in mine]
                if not self.client.connected:
                    rest = list(by_user)[list(by_user).index(user) + 1 :]
                    failures += [
                        Failure(each.subject, "ZooKeeper did not answer any more", each.kind)
                        for other in rest
                        for each in by_user[other]
                    ]
                    break
        return failures

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """What ZooKeeper does not show as it was written."""
        trials = self.read().trials
        return {
            change.subject: "not there yet"
            for change in changes
            if not trials.get(self._by_subject[change.subject].key, Trial(False)).fits
        }

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns beside the plan."""
        return {"written": [change.subject for change in outcome.changed]}

    def close(self) -> None:
        """End the connection."""
        self.client.__exit__()


# The module's own options; their documentation is in the module.
FIRST_OPTIONS = dict(
    zookeeper=dict(type="str", required=True),
    mechanisms=dict(type="list", elements="str", required=True, choices=sorted(HASHES)),
    users=dict(type="dict", required=True, no_log=True),
    timeout=dict(type="int", default=30),
)

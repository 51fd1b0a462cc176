# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SCRAM credentials through the brokers, and logins that find out whether a password fits.

Private to this collection. The protocol tells which mechanisms a user has, with how many iterations, and
neither salt nor key.
"""

from __future__ import annotations

import concurrent.futures
import itertools
from dataclasses import replace
from typing import Any, Collection, Dict, List, Mapping, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.connection import (
    ClusterConnection,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
    BATCH,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    PythonClient,
    send,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.reach import CREDENTIALS
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    FinalError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.items import (
    DELETE,
    KINDS,
    MECHANISMS,
    Credential,
    Key,
    Trial,
)

try:
    from confluent_kafka.admin import (
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )
    from kafka.errors import for_code
    from kafka.protocol.admin import DescribeUserScramCredentialsRequest
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

# The protocol's numbers.
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
LOGINS_AT_ONCE = 8
LOGIN_SECONDS = 10.0


class UserClient(PythonClient):
    """One cluster, for kafka_users. `passwords` are those of the credentials that may be written."""

    def __init__(self, connection: Connection, **rest: Any):
        super().__init__(connection, **rest)
        self.passwords: Dict[str, str] = {}

    def fetch_credentials(self, own_rights: Collection[str] = ("DESCRIBE",)) -> Dict[Key, int]:
        """Iterations of every stored credential; one request, whatever the number of users.

        FinalError without the right, which has to be known beforehand: librdkafka 2.16.0 aborts the
        process when a broker refuses this request as a whole, and kafka-python waits until its timeout.
        So it is kafka-python that sends it.
        """
        what, rights = "reading credentials", "Describe on the cluster"
        if "DESCRIBE" not in own_rights:
            raise FinalError(self._failed(what, "the user may not", f"grant it {rights}"))
        return self.ask(what, _described, rights)

    def change_credentials(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Write and remove credentials, BATCH in a request; those that the cluster refused.

        Each mechanism is a request of its own: KRaft controllers take a user once in a request only.
        """
        failures: List[Failure] = []
        for kind, mechanism in itertools.product(KINDS, MECHANISMS):
            chosen = [
                change
                for change in changes
                if change.kind == kind and change.subject.endswith(f" {mechanism}")
            ]
            for start in range(0, len(chosen), BATCH):
                failures += self._batch(kind, chosen[start : start + BATCH], deadline, False)
        return failures

    def _submit(
        self, kind: str, changes: Sequence[Change], timeout: float, validate_only: bool
    ) -> Dict[str, Any]:
        """Send one request; subject to the future of its user."""
        alterations: List[Any] = []
        users = {}
        for change in changes:
            user, _blank, name = change.subject.rpartition(" ")
            users[change.subject] = user
            mechanism = ScramMechanism[name.replace("-", "_")]
            if kind == DELETE:
                alterations.append(UserScramCredentialDeletion(user, mechanism))
                continue
            info = ScramCredentialInfo(mechanism, change.after["iterations"])
            password = self.passwords[change.subject].encode()
            alterations.append(UserScramCredentialUpsertion(user, info, password))
        futures = self._admin.alter_user_scram_credentials(alterations, request_timeout=timeout)
        return {subject: futures[user] for subject, user in users.items()}

    def log_in_with(self, password: str) -> None:
        """Go on with a new password of this very user."""
        self.connection = replace(self.connection, sasl_password=password)
        self._renew()

    def try_logins(
        self, where: Connection, credentials: Sequence[Credential]
    ) -> Mapping[Key, Trial]:
        """Log in once with each credential; a Trial for each. Several at once."""
        self.requests["logins"] += len(credentials)
        with concurrent.futures.ThreadPoolExecutor(LOGINS_AT_ONCE) as pool:
            trials = list(pool.map(lambda each: _trial(where, each), credentials))
        return {each.key: trial for each, trial in zip(credentials, trials)}

    def try_logins_everywhere(
        self, where: Connection, credentials: Sequence[Credential]
    ) -> Mapping[Key, Trial]:
        """The same at each address by itself: brokers learn of a password one after another.

        A password fits where no broker that answers refuses it.
        """
        found: Dict[Key, Trial] = {}
        for address in where.addresses:
            for key, trial in self.try_logins(
                replace(where, addresses=(address,)), credentials
            ).items():
                if trial.fits is not None and (key not in found or trial.fits is False):
                    found[key] = trial
        return found


def _trial(where: Connection, credential: Credential) -> Trial:
    """Log in at the first address that answers."""
    untried = Trial(None, "no address is given")
    for address in where.addresses:
        # One address: with several the client would ask the others, too, before it believes a refusal.
        alone = replace(
            where,
            addresses=(address,),
            sasl_mechanism=credential.mechanism,
            sasl_username=credential.user,
            sasl_password=credential.password,
            timeout=min(where.timeout, LOGIN_SECONDS),
        )
        client = ClusterConnection(alone)
        try:
            client.connect()
            return Trial(True)
        except AdminError as error:
            if error.problem.check == CREDENTIALS and client.mechanism_offered:
                return Trial(False)
            untried = Trial(None, f"{alone.bootstrap}: {error.problem.reason}")
            if error.reachable:
                return untried
    return untried


def _described(admin: Any) -> Dict[Key, int]:
    """Every stored credential; raises kafka-python's error."""
    response = send(admin, DescribeUserScramCredentialsRequest(users=None))
    if response.error_code:
        raise for_code(response.error_code)(response.error_message)
    return {
        (result.user, _MECHANISMS[info.mechanism]): info.iterations
        for result in response.results
        for info in result.credential_infos
        if info.mechanism in _MECHANISMS
    }

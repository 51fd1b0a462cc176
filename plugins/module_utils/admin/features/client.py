# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PythonClient, and what finalised features of a KRaft cluster need.

Private to this collection. librdkafka has no call for features. kafka-python has one for each of both
requests; here the messages are sent as they are, because its calls leave out the broker's own words.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    PythonClient,
    raise_for,
    send,
    send_to_each,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    FinalError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.features import (
    METADATA,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

try:
    from kafka.errors import AuthorizationError, for_code
    from kafka.protocol.admin import UpdateFeaturesRequest
    from kafka.protocol.metadata import ApiVersionsRequest
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

READING = "no right but to connect"
WRITING = "Alter on the cluster"
UPGRADE_ONLY = 1


class FeaturesClient(PythonClient):
    """One cluster, for the module of features."""

    def fetch_levels(self, brokers: Iterable[int]) -> Dict[int, Dict[str, int]]:
        """The finalised features as each of these brokers knows them; one request each.

        Those that do not answer are left out. AdminError if none does, FinalError if the cluster has none.
        """
        asked = sorted(brokers)

        def call(admin: Any) -> Dict[int, Dict[str, int]]:
            self.requests["describe_features"] += len(asked)
            found = {}
            for broker, answer in send_to_each(admin, _question, asked).items():
                if not isinstance(answer, BaseException):
                    raise_for(answer.error_code)
                    found[broker] = {
                        each.name: each.max_version_level
                        for each in answer.finalized_features or ()
                    }
            if not found:
                raise OSError("no broker answers")
            return found

        told = self.ask("reading features", call, READING)
        if not any(METADATA in levels for levels in told.values()):
            raise FinalError(
                Problem(
                    "cluster.read",
                    "these brokers finalise no features: their cluster keeps its metadata in ZooKeeper",
                    "raise features of a cluster in KRaft mode only",
                    (self.connection.bootstrap,),
                )
            )
        return told

    def raise_levels(
        self, changes: Sequence[Change], deadline: float, validate_only: bool = False
    ) -> List[Failure]:
        """Raise features in one request; those that failed. With `validate_only` they are only judged.

        Kafka 4 raises all of them or none; its refusal is that of each.
        """
        seconds = max(deadline - self._clock(), 1.0)
        request = UpdateFeaturesRequest(
            timeout_ms=int(seconds * 1000),
            feature_updates=[_update(each) for each in changes],
            validate_only=validate_only,
            min_version=1,
        )

        def call(admin: Any) -> Mapping[str, Any]:
            self.requests["update_features"] += 1
            answer = send(admin, request)
            failed = {
                each.feature: (each.error_code, each.error_message)
                for each in answer.results or ()
                if each.error_code
            }
            code = answer.error_code
            error = for_code(code) if code else None
            if error and (issubclass(error, AuthorizationError) or getattr(error, "retriable", 0)):
                raise_for(code, answer.error_message)
            if code and not failed:
                failed = {each.subject: (code, answer.error_message) for each in changes}
            return failed

        try:
            failed = self.ask("raising features", call, WRITING, seconds)
        except AdminError as error:
            if validate_only:
                raise
            return [Failure(each.subject, error.problem.reason, each.kind) for each in changes]
        return [
            Failure(
                each.subject,
                " ".join(
                    (failed[each.subject][1] or for_code(failed[each.subject][0]).__name__).split()
                ),
                each.kind,
                getattr(for_code(failed[each.subject][0]), "message", ""),
            )
            for each in changes
            if each.subject in failed
        ]


def _question() -> Any:
    return ApiVersionsRequest(
        client_software_name="kafkaops", client_software_version="1", min_version=3
    )


def _update(change: Change) -> Any:
    return UpdateFeaturesRequest.FeatureUpdateKey(
        feature=change.subject,
        max_version_level=change.after["level"],
        allow_downgrade=False,
        upgrade_type=UPGRADE_ONLY,
    )

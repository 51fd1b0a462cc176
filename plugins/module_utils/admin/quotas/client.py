# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PythonClient, and what client quotas need.

Private to this collection. librdkafka has no call for quotas, and kafka-python knows the messages only.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import BATCH
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    Answer,
    PythonClient,
    raise_for,
    send,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    Change,
    Failure,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.entities import (
    DEFAULT,
    KINDS,
    Entity,
    Limits,
    entity_of,
    operations,
)

try:
    from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

READING = "DescribeConfigs on the cluster"
WRITING = "AlterConfigs on the cluster"
_OPTIONS = {name: option for option, name in KINDS.items()}


class QuotasClient(PythonClient):
    """One cluster, for the modules of client quotas."""

    def fetch_quotas(
        self, brokers: Sequence[Optional[int]] = (None,)
    ) -> List[Dict[Entity, Limits]]:
        """All quotas, as each of these brokers tells them; None: any one. One request each."""

        def call(admin: Any) -> List[Dict[Entity, Limits]]:
            found = []
            for broker in brokers:
                self.requests["describe_quotas"] += 1
                request = DescribeClientQuotasRequest(components=[], strict=False)
                answer = send(admin, request, broker)
                raise_for(answer.error_code, answer.error_message)
                found.append(_quotas_of(answer.entries or ()))
            return found

        return self.ask("reading quotas", call, READING)

    def alter_quotas(
        self, changes: Sequence[Change], deadline: float, validate_only: bool = False
    ) -> List[Failure]:
        """Make changes, in batches; those that failed. With `validate_only` they are only judged."""
        failures: List[Failure] = []

        def call(batch: Mapping[str, Change], admin: Any) -> Dict[str, Answer]:
            self.requests["alter_quotas"] += 1
            answer = send(admin, _request(batch.values(), validate_only))
            return {
                _entity(entry.entity).subject: (entry.error_code, entry.error_message)
                for entry in answer.entries
            }

        for start in range(0, len(changes), BATCH):
            batch = {change.subject: change for change in changes[start : start + BATCH]}
            failed = self.ask_for_each("altering quotas", batch, call, WRITING, deadline)
            failures += [
                Failure(subject, words, batch[subject].kind, code)
                for subject, (words, code) in sorted(failed.items())
            ]
        return failures


def _request(changes: Any, validate_only: bool) -> Any:
    entry = AlterClientQuotasRequest.EntryData
    return AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[
                    entry.EntityData(
                        entity_type=KINDS[kind], entity_name=None if name == DEFAULT else name
                    )
                    for kind, name in entity_of(change.subject).parts.items()
                ],
                ops=[
                    entry.OpData(key=key, value=float(value or 0), remove=value is None)
                    for key, value in operations(change).items()
                ],
            )
            for change in changes
        ],
        validate_only=validate_only,
    )


def _entity(parts: Any) -> Entity:
    return Entity(
        **{
            _OPTIONS[part.entity_type]: DEFAULT if part.entity_name is None else part.entity_name
            for part in parts
        }
    )


def _quotas_of(entries: Any) -> Dict[Entity, Limits]:
    """The answer's entries; kinds that we do not know, and who is really called <default>, are left out."""
    return {
        _entity(entry.entity): {each.key: each.value for each in entry.values}
        for entry in entries
        if all(
            part.entity_type in _OPTIONS and part.entity_name != DEFAULT for part in entry.entity
        )
        and entry.values
    }

# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PythonClient, and the two requests by which voters of a KRaft cluster's quorum come and go.

Private to this collection. Neither library has them. kafka-python makes messages of Kafka's schemas, which it
reads from files of its own; the hook by which it corrects one of them (`json_patch`) gives it ours. Any
broker hands the requests on to the active controller.
"""

from __future__ import annotations

import functools
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    Answer,
    PythonClient,
    send,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quorum import Quorum, uuid_of

WRITING = "Alter on the cluster"
# What a broker waits for the addition to be decided; a request may be repeated.
ADD_MS = 10000
DUPLICATE_VOTER, VOTER_NOT_FOUND = 126, 127
# Of Kafka's schemas, version 0 of each, which all that have a dynamic quorum speak.
_VOTER = [("ClusterId", "string"), ("VoterId", "int32"), ("VoterDirectoryId", "uuid")]
_LISTENER = [("Name", "string"), ("Host", "string"), ("Port", "uint16")]
_ANSWER = [("ThrottleTimeMs", "int32"), ("ErrorCode", "int16"), ("ErrorMessage", "string")]
_NULLABLE = ("ClusterId", "ErrorMessage")


class VotersClient(PythonClient):
    """One cluster, for the module of voters."""

    def fetch_voters(self) -> Tuple[Optional[str], Quorum]:
        """(id of the cluster, its quorum): one request each."""
        metadata = self.fetch_metadata()
        places = [(each.host, each.port) for each in metadata.brokers]
        return metadata.cluster_id, self.fetch_quorum(places)

    def add_voter(
        self,
        cluster_id: str,
        node: int,
        directory: str,
        place: Tuple[str, str, int],
        deadline: float,
    ) -> Optional[Tuple[str, str]]:
        """Let a node vote that follows; None if it does now, else (Kafka's words, name of the error).

        `place`: name, host and port of its listener. A repetition does no harm.
        """

        def request() -> Any:
            add, _remove = _messages()
            name, host, port = place
            return add(
                cluster_id=cluster_id,
                timeout_ms=ADD_MS,
                voter_id=node,
                voter_directory_id=uuid_of(directory),
                listeners=[add.Listener(name=name, host=host, port=port)],
            )

        return self._sent("adding a voter", node, request, DUPLICATE_VOTER, deadline)

    def remove_voter(
        self, cluster_id: str, node: int, directory: str, deadline: float
    ) -> Optional[Tuple[str, str]]:
        """Take the vote of a node; as `add_voter`."""

        def request() -> Any:
            _add, remove = _messages()
            return remove(
                cluster_id=cluster_id, voter_id=node, voter_directory_id=uuid_of(directory)
            )

        return self._sent("removing a voter", node, request, VOTER_NOT_FOUND, deadline)

    def _sent(
        self, what: str, node: int, request: Any, done: int, deadline: float
    ) -> Optional[Tuple[str, str]]:
        """`done`: the error by which Kafka says that there is nothing left to do; the caller looks."""

        def call(_pending: Mapping[int, Any], admin: Any) -> Dict[int, Answer]:
            answer = send(admin, request())
            code = answer.error_code
            return {node: (0 if code == done else code, answer.error_message)}

        return self.ask_for_each(what, {node: None}, call, WRITING, deadline).get(node)


@functools.lru_cache(maxsize=None)
def _messages() -> Tuple[Any, Any]:
    """The requests (AddRaftVoter, RemoveRaftVoter); their answers are known to kafka-python afterwards."""
    listeners = _field("Listeners", "[]Listener", fields=[_field(*each) for each in _LISTENER])
    cluster, *voter = [_field(*each) for each in _VOTER]
    answer = [_field(*each) for each in _ANSWER]
    made = []
    for key, name, fields in (
        (80, "AddRaftVoter", [cluster, _field("TimeoutMs", "int32"), *voter, listeners]),
        (81, "RemoveRaftVoter", [cluster, *voter]),
    ):
        made.append(_message(key, f"{name}Request", "request", fields))
        made.append(_message(key, f"{name}Response", "response", answer))
    # The registry of answers holds them weakly.
    _KEPT.extend(made)
    return made[0], made[2]


_KEPT: List[Any] = []


def _field(name: str, kind: str, **more: Any) -> Dict[str, Any]:
    nullable = {"nullableVersions": "0+"} if name in _NULLABLE else {}
    return {"name": name, "type": kind, "versions": "0+", **nullable, **more}


def _message(key: int, name: str, kind: str, fields: List[Dict[str, Any]]) -> Any:
    from kafka.protocol.api_message import ApiMessage

    schema = {
        "apiKey": key,
        "type": kind,
        "name": name,
        "validVersions": "0",
        "flexibleVersions": "0+",
        "fields": fields,
    }
    # By this name it reads a file, whatever is in there.
    file_name = f"UpdateFeatures{kind.capitalize()}"
    body = {"json_patch": classmethod(lambda cls, _read: schema), "__slots__": ()}
    return type(ApiMessage)(file_name, (ApiMessage,), body)

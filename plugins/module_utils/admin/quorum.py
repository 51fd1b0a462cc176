# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The quorum of controllers that keeps the metadata of a KRaft cluster, and questions about it.

Private to this collection. Pure: no I/O, no clock. All times are of the leader's clock, in ms since
1970: it alone writes them, its own time included, so that no clocks are compared.

May voter v be stopped now? The rule:

| state                                                        | verdict                       |
|--------------------------------------------------------------|-------------------------------|
| the leader is not known                                      | wait                          |
| the voters are not those that are expected                   | never: nobody waits for that  |
| v does not fetch                                             | go: its stop takes no vote    |
| without v a majority of the voters is caught up              | go                            |
| one voter, which is v                                        | go, and it is said            |
| otherwise                                                    | wait                          |

The last also holds for a v that is behind: while it fetches it may be the one that catches up, and after its
restart it would begin anew.

The leader goes on listing a dead voter, with lag 0 and its last fetch: so a voter counts only while
its fetches are recent. It fetches at least every half second (`controller.quorum.fetch`), and two
seconds without a fetch are what Kafka itself takes for its absence.
"""

from __future__ import annotations

import base64
import uuid
from dataclasses import dataclass
from typing import Any, Collection, Dict, List, Mapping, Optional, Tuple, Union

FETCHED_MS = 2000
CAUGHT_UP_MS = 3000
NOBODY = -1
NO_LEADER = "the quorum of controllers has no leader"
# It says so, or it is why nobody answers: a broker hands the question on to the leader.
NOT_TOLD = "no leader of the quorum of controllers answers"


@dataclass(frozen=True)
class Replica:
    """A node that keeps the metadata. `end`: its log end offset, -1 unknown; `fetched` and `caught_up`: when

    it did so last, -1 unknown. Of the leader `fetched` is unknown, and `caught_up` is the present time.
    `directory`: id of the directory where it keeps them, as Kafka writes it; "" in a static quorum.
    """

    id: int
    end: int = -1
    fetched: int = -1
    caught_up: int = -1
    directory: str = ""


@dataclass(frozen=True)
class Quorum:
    """The quorum as its leader tells it; `leader` is NOBODY while there is none."""

    leader: int = NOBODY
    epoch: int = 0
    voters: Tuple[Replica, ...] = ()
    observers: Tuple[Replica, ...] = ()

    @property
    def head(self) -> Optional[Replica]:
        """The leader among the voters, None where it is not known."""
        return next((each for each in self.voters if each.id == self.leader), None)

    @property
    def static(self) -> bool:
        """Whether the voters stand in the configuration: only those of a dynamic quorum have directory ids."""
        return any(not each.directory for each in self.voters)

    @property
    def now(self) -> int:
        """The leader's time when it answered, -1 where it is not known."""
        return self.head.caught_up if self.head else -1

    def elsewhere(self, voter: Replica) -> str:
        """The directory with which a node follows that votes with another one; "" where it votes with its own.

        Such as one that was formatted anew: its vote went with the disk.
        """
        if not voter.directory or self.keeps_up(voter):
            return ""
        own = [each for each in self.observers if each.id == voter.id and self.fetches(each)]
        return next((each.directory for each in own if each.directory != voter.directory), "")

    def lag(self, replica: Replica) -> Optional[int]:
        """How many metadata records a node lacks, None where that is not known."""
        if self.head is None or replica.end < 0 or self.head.end < 0:
            return None
        return max(0, self.head.end - replica.end)

    def fetches(self, replica: Replica) -> bool:
        """Whether a voter leads, or has fetched a moment ago, however far behind it is."""
        if replica.id == self.leader:
            return True
        return 0 <= replica.fetched and 0 <= self.now <= replica.fetched + FETCHED_MS

    def keeps_up(self, replica: Replica) -> bool:
        """Whether a voter counts: it leads, or has fetched and was caught up a moment ago."""
        if replica.id == self.leader:
            return True
        return (
            self.fetches(replica)
            and replica.caught_up >= 0
            and self.now - replica.caught_up <= CAUGHT_UP_MS
        )

    def to_dict(self) -> Dict[str, Any]:
        """As returned to the playbook; ages in ms, None where they are not known."""
        return {
            "leader": None if self.leader == NOBODY else self.leader,
            "epoch": self.epoch,
            "voters": [self._told(each) for each in self.voters],
            "observers": [self._told(each) for each in self.observers],
        }

    def _told(self, replica: Replica) -> Dict[str, Any]:
        return {
            "id": replica.id,
            "lag": self.lag(replica),
            "fetched_ms_ago": None if replica.id == self.leader else self._age(replica.fetched),
            "caught_up_ms_ago": self._age(replica.caught_up),
            "keeps_up": self.keeps_up(replica),
            "directory": replica.directory,
            "elsewhere": self.elsewhere(replica) if replica in self.voters else "",
        }

    def _age(self, moment: int) -> Optional[int]:
        return None if moment < 0 or self.now < 0 else max(0, self.now - moment)


def uuid_text(given: Union[uuid.UUID, str, None]) -> str:
    """A UUID as Kafka writes it, 22 characters of base64; "" for none."""
    found = uuid.UUID(given) if isinstance(given, str) else given
    if found is None or not found.int:
        return ""
    return base64.urlsafe_b64encode(found.bytes).decode("ascii").rstrip("=")


def uuid_of(text: str) -> uuid.UUID:
    """The UUID that Kafka writes so. ValueError where it is none."""
    return uuid.UUID(bytes=base64.urlsafe_b64decode(f"{text}=="))


def quorum_of(answer: Mapping[str, Any]) -> Quorum:
    """The Quorum of one partition of a DescribeQuorum answer. ValueError where it has an error."""
    if answer.get("error"):
        raise ValueError(str(answer["error"]))

    def replicas(key: str) -> Tuple[Replica, ...]:
        found = [
            Replica(
                int(each["replica_id"]),
                int(each["log_end_offset"]),
                int(each.get("last_fetch_timestamp", -1)),
                int(each.get("last_caught_up_timestamp", -1)),
                uuid_text(each.get("replica_directory_id")),
            )
            for each in answer.get(key) or ()
        ]
        return tuple(sorted(found, key=lambda each: each.id))

    leader = int(answer["leader_id"])
    return Quorum(
        leader if leader >= 0 else NOBODY,
        int(answer["leader_epoch"]),
        replicas("current_voters"),
        replicas("observers"),
    )


# ---------------------------------------------------------------- may a voter stop


def other_voters(quorum: Quorum, expected: Collection[int]) -> str:
    """In words, how the voters differ from those that are expected; "" if they do not."""
    there = {each.id for each in quorum.voters}
    if there == set(expected):
        return ""
    return f"the voters of the quorum are {_ids(there)}, and the inventory has {_ids(expected)}"


def held_back(quorum: Quorum, node: int) -> List[str]:
    """Why this node may not be stopped for the quorum's sake; an empty list if it may.

    A node without a vote is held back only while there is no leader.
    """
    if quorum.head is None:
        return [NO_LEADER]
    own = next((each for each in quorum.voters if each.id == node), None)
    if own is None or not quorum.fetches(own) or len(quorum.voters) == 1:
        return []
    others = [each for each in quorum.voters if each.id != node]
    behind = [each for each in others if not quorum.keeps_up(each)]
    needed = len(quorum.voters) // 2 + 1
    if len(others) - len(behind) >= needed:
        return []
    told = ", ".join(f"{each.id} ({_why_behind(quorum, each)})" for each in behind)
    which = "" if quorum.keeps_up(own) else ", which fetches and may be catching up,"
    return [
        f"without node {node}{which} {len(others) - len(behind)} of {len(quorum.voters)} voters keep up, and"
        f" {needed} are a majority{': ' if told else ''}{told}"
    ]


def without_quorum(quorum: Quorum, node: int) -> str:
    """In words, that nothing in the cluster changes while this node is away; "" where others decide."""
    if [each.id for each in quorum.voters] != [node]:
        return ""
    return f"nothing in the cluster changes while node {node} restarts: it is the only voter"


def other_directory(voted: str, own: str) -> str:
    """In words, that a node does not have the directory it votes with."""
    return f"it votes with directory {voted}, and its disk has {own}"


def _why_behind(quorum: Quorum, replica: Replica) -> str:
    own = quorum.elsewhere(replica)
    if own:
        replaced = f"playbooks/replace_broker.yml -e broker={replica.id} gives it back its vote"
        return f"{other_directory(replica.directory, own)}: {replaced}"
    fetched, lag = quorum.now - replica.fetched, quorum.lag(replica)
    if replica.fetched < 0:
        return "it has not fetched"
    if fetched > FETCHED_MS:
        return f"its last fetch was {fetched / 1000:.1f} s ago"
    return f"it lacks {lag} records" if lag else "it was not caught up lately"


def _ids(ids: Collection[int]) -> str:
    return ", ".join(map(str, sorted(ids))) or "none"


def cut_off(
    unreached: Collection[str],
    voters: Collection[str],
    reached: Collection[str],
    restarted: Collection[str] = (),
    keep_up: Optional[Collection[str]] = None,
    is_reached: bool = True,
) -> List[str]:
    """Voters for whose sake another one, which is not among `reached`, may not restart; all by their hosts, sorted.

    `unreached`: those that it has tried in vain, though they ran; `restarted`: in this run; `keep_up`: by the quorum's
    account, None where nobody tells; `is_reached`: whether one of the others reaches it.

    | it                                                         | for the sake of               |
    |------------------------------------------------------------|-------------------------------|
    | is reached by nobody: its restart may be the cure          | nobody                        |
    | does not reach one that has restarted, or that keeps up    | that one: only its port fails |
    | is no majority with those that it reaches                  | all of them                   |
    | does not reach others: they have died, or end at each start| nobody: the gate counts them  |
    """
    if not is_reached:
        return []
    if len(reached) + 1 < len(voters) // 2 + 1:
        return sorted(unreached)
    return sorted(set(unreached) & {*restarted, *(keep_up or ())})


# ---------------------------------------------------------------- is a voter back


class Return:
    """Whether voters are back: each has fetched, after the first look, all that there was at that look.

    The caller makes it after the start of the last of them. The moment is the leader's own, so it is
    taken anew where another one leads: what a former leader has written is of another clock.
    """

    def __init__(self, voters: Collection[int]):
        self._voters = sorted(voters)
        self._term: Tuple[int, int] = (NOBODY, -1)
        self._since = self._end = 0

    def unmet(self, quorum: Quorum) -> List[str]:
        """What is missing as of this look, in sentences."""
        head = quorum.head
        if head is None:
            return [NO_LEADER]
        if (quorum.leader, quorum.epoch) != self._term:
            self._term = (quorum.leader, quorum.epoch)
            self._since, self._end = quorum.now, head.end
        voters = {each.id: each for each in quorum.voters}
        reasons = []
        for node in self._voters:
            voter = voters.get(node)
            if voter is None:
                reasons.append(f"node {node} is not a voter of the quorum")
            elif node == quorum.leader:
                continue
            elif voter.fetched <= self._since:
                reasons.append(f"voter {node} has not fetched from leader {quorum.leader} yet")
            elif voter.end < self._end:
                reasons.append(
                    f"voter {node} lacks {self._end - voter.end} records of leader {quorum.leader}"
                )
        return reasons

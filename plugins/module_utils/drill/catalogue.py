# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What drills there are: each as a value, with its row of the field's scenarios. Pure.

Private to this collection. `cast` says who is hit on a given cluster, `verdict` what came of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import did_you_mean
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    ProblemError,
    refusal,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_duration

ALL = "all"
# Names of everything that a drill makes in a cluster begin so.
PREFIX = "kafkaops-drill-"
# The group that begins to read while a replica is away that min ISR needs: the topic with this behind.
MEANWHILE = "meanwhile"
# What is done: a broker is killed or stopped, a member of a group is killed or closed, a topic is made anew,
# members of the quorum that keeps the metadata are stopped; several groups read, more and more consumers work,
# consumers are killed between work and commit, processes between writing and commit, partitions grow.
KILL, STOP, MEMBER_KILL, MEMBER_CLOSE, RECREATE = (
    "kill",
    "stop",
    "member_kill",
    "member_close",
    "recreate",
)
BROADCAST, QUEUE, COMMITS, ONCE, GROW = (
    "broadcast",
    "task_queue",
    "commit_modes",
    "exactly_once",
    "grow",
)
# When a consumer of the drill of commits commits, and the two ways of the one of transactions.
AUTOMATIC, AFTER, BEFORE = "automatic", "after", "before"
TRANSACTIONAL, PLAIN = "transactional", "plain"
QUORUM = "quorum"
LEADER, FOLLOWER, CONTROLLER, COORDINATOR = "leader", "follower", "controller", "coordinator"
# A broker's words for fewer replicas in sync than min.insync.replicas.
NOT_ENOUGH = ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
# Of a producer that tries once: nobody has said whether it was written.
UNKNOWN = ("MSG_TIMED_OUT", "REQUEST_TIMED_OUT")
# Of the groups that drills make; Kafka's default is 45 s, too long to wait for.
SESSION_SECONDS, HEARTBEAT_SECONDS = 10, 1


@dataclass(frozen=True)
class Drill:
    """One drill. `part` is the victim's part in the cluster, "" where no broker is touched.

    `pause_seconds` is the longest pause that is still as expected: of acknowledgements, or of what is
    delivered to a group. The PySpark judge reads the topics of each; `proven`: it also writes meanwhile, and
    judges that.
    """

    name: str
    row: str
    case: str
    fault: str
    part: str
    expected: str
    pause_seconds: float
    proven: bool = False
    min_brokers: int = 1
    partitions: int = 1
    # about how long it takes on a local cluster that has little else to do, for what is said before
    seconds: float = 60.0
    # its groups are the topic with these behind; none: the topic's name alone
    members: Tuple[str, ...] = ("1", "2")
    # whether `all` does it
    of_all: bool = True
    # programs copy its topic meanwhile, with transactions and without, to topics that lie as it does
    copied: bool = False

    @property
    def topic(self) -> str:
        """The topic of the drill's own."""
        return PREFIX + self.name.replace("_", "-")

    @property
    def groups(self) -> Tuple[str, ...]:
        """The groups of the drill's own."""
        return tuple(f"{self.topic}-{each}" for each in self.members) or (self.topic,)

    @property
    def hits_broker(self) -> bool:
        """Whether the drill stops or kills a broker."""
        return self.fault in (KILL, STOP)

    @property
    def below_min_isr(self) -> bool:
        """Whether the drill takes a replica away that min ISR needs."""
        return self.fault == STOP and self.part == FOLLOWER

    @property
    def example(self) -> str:
        """The program of examples/ that the drill runs; empty for none."""
        if self.fault in (MEMBER_KILL, MEMBER_CLOSE):
            return "consumer.py"
        return "producer.py" if self.part == LEADER and not self.copied else ""

    @property
    def hits_quorum(self) -> bool:
        """Whether the drill takes the quorum away that keeps the metadata."""
        return self.fault == QUORUM

    @property
    def hits_zookeeper(self) -> bool:
        """Whether the drill stops ZooKeeper servers."""
        return self.hits_quorum and self.part != CONTROLLER

    @property
    def hits_controllers(self) -> bool:
        """Whether the drill stops controllers that are not brokers."""
        return self.hits_quorum and self.part == CONTROLLER

    def fits(self, kraft: bool, apart: bool) -> bool:
        """Whether a cluster has whom it hits. `apart`: none of its controllers is a broker."""
        return not (self.hits_zookeeper and kraft or self.hits_controllers and not apart)

    def to_dict(self) -> Dict[str, Any]:
        """As the playbook takes it."""
        return {
            "name": self.name,
            "row": self.row,
            "case": self.case,
            "fault": self.fault,
            "part": self.part,
            "expected": self.expected,
            "proven": self.proven,
            "hits_broker": self.hits_broker,
            "hits_quorum": self.hits_quorum,
            # whose tasks stop and start a member of the quorum
            "member_role": "zookeeper" if self.hits_zookeeper else "kafka",
            "seconds": self.seconds,
            "example": self.example,
            "topic": self.topic,
            "groups": list(self.groups),
            "copied": self.copied,
        }


# ZooKeeper's session lasts 18 s by default; where the host deregisters a dead broker, it takes 2 s.
_DEAD_SECONDS = 30.0

DRILLS: Tuple[Drill, ...] = (
    Drill(
        "leader_stopped",
        "S2",
        "a leader is stopped, and started again",
        STOP,
        LEADER,
        "another leads; nothing lost; then all as before",
        10.0,
        proven=True,
        min_brokers=2,
        seconds=70.0,
    ),
    Drill(
        "leader_killed",
        "S23",
        "a leader dies",
        KILL,
        LEADER,
        "another leads; nothing lost; then all as before",
        _DEAD_SECONDS,
        proven=True,
        min_brokers=2,
        seconds=65.0,
    ),
    Drill(
        "follower_killed",
        "S22",
        "a follower dies",
        KILL,
        FOLLOWER,
        "same leader; nothing lost; ISR shrinks and is full again",
        _DEAD_SECONDS,
        proven=True,
        min_brokers=2,
        seconds=65.0,
    ),
    Drill(
        "controller_killed",
        "S4",
        "the controller dies",
        KILL,
        CONTROLLER,
        "another controller; same leader; nothing lost",
        _DEAD_SECONDS,
        proven=True,
        min_brokers=2,
        seconds=65.0,
    ),
    Drill(
        "coordinator_lost",
        "S28",
        "the coordinator of a group dies",
        KILL,
        COORDINATOR,
        "another broker coordinates, and the group commits again; nothing lost",
        _DEAD_SECONDS,
        proven=True,
        min_brokers=2,
        seconds=65.0,
    ),
    Drill(
        "below_min_isr",
        "S27",
        "a replica is away, and min ISR needs it",
        STOP,
        FOLLOWER,
        "writes refused, reads go on; accepted again afterwards",
        # as long as the replica is away
        120.0,
        min_brokers=2,
        seconds=50.0,
    ),
    Drill(
        "consumer_killed",
        "S24",
        "a consumer of a group dies",
        MEMBER_KILL,
        "",
        f"the other takes over after the session of {SESSION_SECONDS} s; nothing lost",
        SESSION_SECONDS + 15.0,
        partitions=4,
        members=(),
        seconds=50.0,
    ),
    Drill(
        "consumer_closed",
        "S24",
        "a consumer leaves its group",
        MEMBER_CLOSE,
        "",
        "the other takes over at once; nothing lost, nothing twice",
        SESSION_SECONDS * 0.8,
        partitions=4,
        members=(),
        seconds=40.0,
    ),
    Drill(
        "topic_recreated",
        "S36",
        "a topic is deleted and made anew under its groups",
        RECREATE,
        "",
        "a group that was away reads all of the new topic",
        60.0,
        seconds=20.0,
    ),
    Drill(
        "broadcast",
        "S1",
        "several groups read one topic",
        BROADCAST,
        "",
        "each group gets all, once",
        10.0,
        members=("1", "2", "3", "4", "5"),
        seconds=25.0,
    ),
    Drill(
        "task_queue",
        "S5, S21",
        "one consumer after the other joins a group that is behind",
        QUEUE,
        "",
        "one: the backlog grows; two: it stays; three: it drains; fourth idle; each task once; a key, a partition",
        60.0,
        partitions=3,
        members=(),
        seconds=65.0,
    ),
    Drill(
        "commit_modes",
        "S14",
        "consumers die that commit before their work, after it, and automatically",
        COMMITS,
        "",
        "before: some lost, none twice; after: none lost, some twice; automatic: counted",
        SESSION_SECONDS + 30.0,
        members=(AUTOMATIC, AFTER, BEFORE),
        seconds=40.0,
    ),
    Drill(
        "exactly_once",
        "S26",
        "processes that read and write die before they commit",
        ONCE,
        "",
        "with transactions: none lost, none twice; without: none lost, some twice",
        SESSION_SECONDS + 30.0,
        members=(TRANSACTIONAL, PLAIN),
        seconds=65.0,
    ),
    Drill(
        "copies_leader_killed",
        "S26",
        "the leader of what programs read and write dies",
        KILL,
        LEADER,
        "with transactions: none lost, none twice; at least once: none lost, twice counted",
        _DEAD_SECONDS,
        min_brokers=2,
        seconds=60.0,
        members=("1", TRANSACTIONAL, PLAIN),
        copied=True,
        # on a quiet machine its transactional program was seen to hang after the kill, and to delay all the others
        of_all=False,
    ),
    Drill(
        "partitions_grown",
        "S29",
        "a topic gets more partitions under a group that lags",
        GROW,
        "",
        "idle consumers get work, the lag falls; nothing lost; keys move",
        60.0,
        partitions=2,
        members=(),
        seconds=45.0,
    ),
    Drill(
        "zookeeper_quorum",
        "S25",
        "ZooKeeper servers are away, one more after the other, until there is no quorum",
        QUORUM,
        "",
        "nothing lost; without a quorum a new topic and a leader change wait, and happen when one is back",
        10.0,
        proven=True,
        min_brokers=2,
        seconds=85.0,
    ),
    Drill(
        "controllers_quorum",
        "S25",
        "controllers are away, one more after the other, until there is no quorum",
        QUORUM,
        CONTROLLER,
        "nothing lost; without a quorum a new topic and a leader change wait, and happen when one is back",
        10.0,
        proven=True,
        min_brokers=2,
        seconds=85.0,
    ),
)
_BY_NAME = {each.name: each for each in DRILLS}
# What results (drill.json) call drills, by which they are chosen, too.
SHORT = {
    "broadcast": "broadcast",
    "leader_stop": "leader_stopped",
    "leader_kill": "leader_killed",
    "follower_kill": "follower_killed",
    "controller_kill": "controller_killed",
    "consumer_kill": "consumer_killed",
    "consumer_close": "consumer_closed",
    "zookeeper_kill": "zookeeper_quorum",
    "controllers_kill": "controllers_quorum",
    "coordinator_kill": "coordinator_lost",
    "task_queue": "task_queue",
    "groups": "task_queue",
    "commits": "commit_modes",
    "exactly_once": "exactly_once",
    "copies_leader_kill": "copies_leader_killed",
    "recreate": "topic_recreated",
    "growth": "partitions_grown",
    "min_isr": "below_min_isr",
}
# What costs records is not a drill of a user's cluster: the parts of playbooks/guarantees.yml that show it.
THROWN_AWAY = {"acks": ("acks", "flush", "disk", "unclean", "groups"), "flap": ("flaps",)}


def drill_of(name: str) -> Drill:
    """The drill of this name; KeyError if there is none."""
    return _BY_NAME[name]


def short_names(name: str) -> List[str]:
    """What results call a drill, or a part of the guarantees; a name that neither has stays."""
    found = [short for short, long in SHORT.items() if long == name]
    found += [short for short, parts in THROWN_AWAY.items() if name in parts]
    return found or [name]


def chosen(text: str, kraft: bool = False, apart: bool = False) -> List[Drill]:
    """The drills that `name`, `a,b` or `all` names, in this order, each once; those of a quorum are the last.

    Each may have its short name. `kraft`: the cluster has no ZooKeeper; `apart`: it has controllers, none of which
    is a broker. `all` is without those that hit what is not there. Raises ProblemError, with all names that exist,
    for an unknown one or none, and for one that hits what is not there.
    """
    given = [part.strip() for part in str(text).split(",") if part.strip()]
    elsewhere = next((name for name in given if name in THROWN_AWAY), "")
    if elsewhere:
        raise refusal(
            "drill.elsewhere",
            f"drill={text}",
            f"{elsewhere} may cost records, and is shown on a cluster that is thrown away",
            f"run playbooks/guarantees.yml -e guarantees={','.join(THROWN_AWAY[elsewhere])}",
        )
    names = list(dict.fromkeys(SHORT.get(name, name) for name in given))
    if ALL in names:
        names = [each.name for each in DRILLS if each.of_all and each.fits(kraft, apart)]
    unknown = [name for name in names if name not in _BY_NAME]
    if unknown or not names:
        hint = did_you_mean(unknown[0], [*_BY_NAME, *SHORT]) if unknown else ""
        raise refusal(
            "drill.unknown",
            f"drill={text}",
            f"there is no such drill{hint}" if unknown else "no drill is named",
            f"choose of {', '.join(_BY_NAME)}; several with commas, or {ALL}",
        )
    drills = [_BY_NAME[name] for name in names]
    for each in drills:
        if not each.fits(kraft, apart):
            raise _nobody(each, f"drill={text}", kraft, apart)
    # those of a quorum in a play of their own, which is the last
    return sorted(drills, key=lambda each: each.hits_quorum)


def _nobody(drill: Drill, setting: str, kraft: bool, apart: bool) -> ProblemError:
    """Why a cluster has nobody whom a drill of a quorum hits, and what can be run instead."""
    of_one = "leave it out; controller_killed kills the leader of the controllers"
    if drill.hits_zookeeper:
        return refusal(
            "drill.no_zookeeper",
            setting,
            f"{drill.name} stops ZooKeeper servers, and the cluster is in KRaft mode",
            "run controllers_quorum instead" if apart else of_one,
        )
    where = (
        "here controllers are brokers, whose replicas would be away, too"
        if kraft
        else "the cluster has its metadata in ZooKeeper"
    )
    return refusal(
        "drill.no_controllers",
        setting,
        f"{drill.name} stops controllers that are not brokers, and {where}",
        of_one if kraft else "run zookeeper_quorum instead",
    )


# What is left may be shorter than the catalogue says by this at most: drills that could not begin have taken no time.
_LEAST_OF_EXPECTED = 0.5


def progress_line(drills: Sequence[Drill], name: str, seconds: float = 0.0) -> str:
    """What is said before one of them: which one it is, and about how long this and the others take.

    `seconds`: how long those before it have taken, by which this cluster is faster or slower; 0: unknown.
    """
    number = [each.name for each in drills].index(name)
    expected = sum(each.seconds for each in drills[:number])
    pace = max(_LEAST_OF_EXPECTED, seconds / expected) if seconds and expected else 1.0
    left = sum(each.seconds for each in drills[number:]) * pace
    return f"drill {number + 1} of {len(drills)}, about {approximate_duration(left)} left"


def drill_lines() -> List[str]:
    """A line for each drill, for people who ask what there is."""
    width = max(map(len, _BY_NAME))
    return [f"{each.name.ljust(width)}  {each.case} ({each.row})" for each in DRILLS]

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The run's files: plan, attempts, ledger, verdict. Readers find whole files or none.

LEDGER/part-*.parquet   the ledger (schema.LEDGER_COLUMNS); names with _ are invisible to Parquet
readers
LEDGER/_plan.json       what was to be done, and where partitions stood before and after
LEDGER/_attempts/*.json what each attempt at a produce task knows, kept up to date while it runs
LEDGER/_attempts/*.ranges of an attempt that has many ranges the first ones, each written once
LEDGER/_attempts/leaders who led, and where partitions stood, kept up to date while it produces
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Callable, Optional

from flow.messages import stack_trace
from flow.messages.failure import CannotRun, disk_is_full
from flow.messages.output import note
from flow.record import place
from flow.record.ledger import Attempt, Row
from flow.record.partition import Partition
from flow.record.schema import LEDGER_COLUMNS, LEDGER_DDL
from flow.record.timing import CREATED
from flow.record.transactions import Layout

PLAN = "_plan.json"
# In the directory of the results, where the ledger is not there as well: what is known of the run without it.
RUN, TOLD_OF_RUN = "run.json", ("topic", "created", "ledger", "run_id")
_CHECKSUM = "sha256"  # in the plan and in files of attempts: of all that stands beside it
# Keys that came later than the checksum: where they are, it must be.
_LATER_IN_PLAN, _LATER_IN_ATTEMPTS = "cleared", "parts"
ATTEMPTS = "_attempts"
_WATCHED = f"{ATTEMPTS}/leaders"
_DRAFT = "_draft"
# All that a run writes into its ledger's directory, in which there may have been other things before.
_OF_A_LEDGER = re.compile(
    rf"(?:{_DRAFT}|{ATTEMPTS}|{re.escape(PLAN)}(?:\.\w+\.part)?|part-.*\.parquet)\Z"
)


@dataclass
class Plan:
    """Fixed before the first write; `after` is filled in when producing has ended."""

    run_id: str
    cluster_id: str
    topic: str
    created: bool  # the topic is ours to delete
    records: int
    record_size: int
    partitions: int
    producers: int
    brokers: dict  # id -> address
    replication: int
    min_isr: int
    planned_replication: int  # 0: nobody has said
    planned_min_isr: int  # 0: nobody has said
    started: str
    before: dict  # partition -> Partition
    after: dict = field(default_factory=dict)
    produce_error: Optional[str] = None
    timestamp_type: str = CREATED  # the topic's message.timestamp.type
    produce_seconds: float = 0.0  # how long the produce step took; 0 if it was killed
    groups: list = field(default_factory=list)  # consumer groups that committed at `before`'s ends
    listeners: list = field(default_factory=list)  # tried besides the run's, as in verdict.json
    transaction_records: int = 0  # of a partition in each transaction; 0: no transactions
    transaction_timeout: float = 0.0  # seconds after which the cluster aborts one that nobody ends
    ledger_rows: Optional[int] = None  # how many, once producing has ended; and `digest` of them
    ledger_digest: str = ""
    beside: bool = False  # keys, headers and timestamps are known; not in ledgers of older versions
    elections: list = field(default_factory=list)  # leadership.Elections while it produced
    batch_bytes: int = 0  # the longest batch that the topic takes; 0: as long as clients make them
    topic_id: str = ""  # "" where the cluster gives none
    removed: str = ""  # when the run deleted its topic, after a pass
    keeps: dict = field(
        default_factory=dict
    )  # the topic's settings that let records go: name -> value
    expected_brokers: int = 0  # 0: nobody has said
    leaving_brokers: list = field(default_factory=list)  # ids: on purpose, while the run writes
    probes: list = field(default_factory=list)  # probes.kept of the run's
    cleared: str = ""  # when `leftovers --remove` deleted its topic
    settings: dict = field(default_factory=dict)  # the job's own; `settings` of verdict.json
    cluster: dict = field(default_factory=dict)  # what kind it is; `cluster` of verdict.json
    leadership: dict = field(default_factory=dict)  # leadership.Watch.told, while it produced
    seen: dict = field(default_factory=dict)  # `after` of one that was killed: with_watched

    def transactions(self) -> Optional[Layout]:
        """How the records are divided into transactions; None if they are not."""
        if not self.transaction_records:
            return None
        return Layout(self.transaction_records, self.partitions, self.producers, self.records)

    def first_offsets(self) -> dict:
        """partition -> where the run's records begin."""
        return {number: position.end for number, position in self.before.items()}

    def last_seen(self) -> dict:
        """partition -> Partition when producing ended, or when the run was killed, a moment before."""
        return self.after or self.seen

    def to_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict) -> "Plan":
        brokers = {int(k): v for k, v in data["brokers"].items()}
        moments = {name: _partitions(data.get(name, {})) for name in ("before", "after", "seen")}
        return cls(**{**data, **moments, "brokers": brokers})


def _partitions(of: dict) -> dict:
    """number -> Partition, of what JSON made of it."""
    return {
        int(n): Partition(**{**p, "replicas": tuple(p["replicas"]), "isr": tuple(p["isr"])})
        for n, p in of.items()
    }


def of_run(plan: Plan, ledger: str) -> dict:
    """The content of RUN."""
    known = (plan.topic, plan.created, ledger, plan.run_id)
    return dict(zip(TOLD_OF_RUN, known))


def attempt_name(producer: int, attempt: int) -> str:
    """The file of an attempt at a produce task, below the ledger."""
    return f"{ATTEMPTS}/{producer:05d}-{attempt:05d}.json"


def part_of(attempt: Attempt, acked: dict) -> dict:
    """The next file of acknowledged ranges, partition -> ranges, that the attempt has beside its own."""
    where = {"producer": attempt.producer, "attempt": attempt.attempt, "run_id": attempt.run_id}
    return {**where, "part": attempt.parts, "acked": acked}


def name_of(told: dict) -> str:
    """The file, below the ledger, of an attempt's JSON, or of a `part_of` it."""
    name = attempt_name(told["producer"], told["attempt"])
    return _part_name(name, told["part"]) if "part" in told else name


def _part_name(name: str, number: int) -> str:
    return f"{name.removesuffix('.json')}-{number:05d}.ranges"


def sealed(told: dict, indent: Optional[int] = None) -> str:
    """JSON of it, and its own checksum in it."""
    plain = json.loads(json.dumps(told))
    return json.dumps({**plain, _CHECKSUM: _checksum(plain)}, indent=indent) + "\n"


class AnotherVersion(CannotRun):
    """What a ledger says is what was written, and this version does not understand it. `topic`: of its run, "" if it
    does not even say that.
    """

    def __init__(self, ledger: str, name: str, told: dict):
        super().__init__(
            f"the ledger {ledger} was written by another version of the job, and this one does not understand its"
            f" {name}; judge it with that one"
        )
        self.topic = str(told.get("topic", ""))


def _understood(make: Callable[[dict], Any], text: str, later: str, ledger: str, name: str) -> Any:
    """What `make` makes of what `_unsealed` gives. AnotherVersion if it cannot, of what is sealed and whole."""
    told = _unsealed(text, later)
    try:
        return make(told)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if _CHECKSUM not in json.loads(text):
            raise
        raise AnotherVersion(ledger, name, told) from error


def _unsealed(text: str, later: str) -> dict:
    """What `sealed` has made JSON of. ValueError if it was changed since, or if the checksum is gone; only a
    file that has not the key `later` is of a version that gave none.
    """
    told = json.loads(text)
    expected = told.pop(_CHECKSUM, None)
    if expected is None and later in told:
        raise ValueError("its SHA-256 is gone")
    if expected is not None and expected != _checksum(told):
        raise ValueError("what it says is not what was written, by its own SHA-256")
    return told


def new_ledger(ledger: str) -> bool:
    """An empty ledger directory; refuses one that is in use, since a ledger is evidence. Returns whether
    there was nothing of that name before.
    """
    try:
        at = place.of(ledger)
        if PLAN in at.names() or _attempt_files(at):
            raise CannotRun(f"{ledger} holds the ledger of another run; give an empty directory")
        new = not at.exists()
        at.make(ATTEMPTS)
        return new
    except FileExistsError as error:
        raise CannotRun(f"{ledger} is a file; give an empty directory") from error
    except OSError as error:
        raise CannotRun(
            f"the ledger cannot be written: {error}; make room or give the right there, or give another --ledger"
        ) from error


def take_back(ledger: str, new: bool, run_id: str = "") -> bool:
    """Remove what `new_ledger` has made, and the directory if it is `new`, unless something else is there.
    With `run_id` also what that run has written down: nothing of it was acknowledged. False if that could
    not be done.
    """
    with contextlib.suppress(OSError, CannotRun):
        at = place.of(ledger)
        names = at.names()
        empty = names == [ATTEMPTS] and not at.names(ATTEMPTS)
        if empty or (run_id and names == [ATTEMPTS, PLAN] and load_plan(ledger).run_id == run_id):
            for name in [""] if new else names:
                at.remove(name)
        return True
    return False


def remove_ledger(ledger: str) -> None:
    """Remove what runs have written there, and the directory if it holds nothing else. OSError if any of that stays."""
    at = place.of(ledger)
    for name in filter(_OF_A_LEDGER.match, at.names()):
        at.remove(name)
    left = at.names()
    if stay := list(filter(_OF_A_LEDGER.match, left)):
        raise OSError(f"{', '.join(stay)} could not be removed")
    if not left:
        at.remove("")


def first_plan(ledger: str, plan: Plan) -> None:
    """`save_plan` of a run that begins to write. CannotRun if another run has begun with this ledger since
    `new_ledger`.
    """
    at = place.of(ledger)
    try:
        at.make(ATTEMPTS)  # one that was refused meanwhile may have taken it back, as its own
        at.claim(PLAN)
    except FileExistsError as error:
        raise CannotRun(
            f"{ledger} has become the ledger of another run meanwhile; give each run one of its own"
        ) from error
    try:
        save_plan(ledger, plan)
    except BaseException:  # of an empty one nobody could tell whose it is
        at.remove(PLAN)
        raise


def save_plan(ledger: str, plan: Plan) -> None:
    """Write LEDGER/_plan.json."""
    place.of(ledger).write(PLAN, sealed(plan.to_json(), indent=1))


def _checksum(told: dict) -> str:
    """SHA-256 of what JSON has read."""
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def load_plan(ledger: str) -> Plan:
    """Read LEDGER/_plan.json; CannotRun if this is no ledger, AnotherVersion if it is of another version."""
    try:
        text = place.of(ledger).read(PLAN)
        plan = _understood(Plan.from_json, text, _LATER_IN_PLAN, ledger, PLAN)
    except FileNotFoundError as error:
        raise CannotRun(f"{ledger} is not a ledger: it has no {PLAN}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CannotRun(_damaged(ledger, f"{PLAN} cannot be read ({error})")) from error
    wanted = set(range(plan.partitions))
    if not (wanted <= set(plan.before) and wanted <= set(plan.after or plan.before)):
        raise CannotRun(_damaged(ledger, f"{PLAN} lacks partitions"))
    return plan


def save_watched(ledger: str, told: dict) -> None:
    """Keep what leadership.Watch.kept tells, for a run that may be killed."""
    place.of(ledger).write(_WATCHED, sealed(told))


def with_watched(ledger: str, plan: Plan) -> Plan:
    """The plan with what was kept, if the run did not come to its end. Without that an election that was not
    clean may be told as something else, and nothing else changes.
    """
    if plan.after:
        return plan
    try:
        told = _unsealed(place.of(ledger).read(_WATCHED), "last")
        elections, leadership = list(told["elections"]), dict(told["leadership"])
        return replace(
            plan, elections=elections, leadership=leadership, seen=_partitions(told["last"])
        )
    except (OSError, CannotRun, ValueError, KeyError, TypeError, AttributeError):
        return plan


def _damaged(ledger: str, what: str) -> str:
    return (
        f"the ledger {ledger} is damaged: {what}; nothing can be judged by it. Restore it from a copy,"
        " or run the job again with a new one"
    )


def _attempt_files(at: place.Place) -> list:
    """Names of the files of attempts."""
    return [name for name in at.names(ATTEMPTS) if name.endswith(".json")]


def load_attempts(ledger: str, broken: bool = False, run_id: str = "", parts: bool = True) -> list:
    """All attempts that got to run, whether they ended well or not. Without `parts` their first ranges are
    left where they are: that costs as much however long they run.

    A file that cannot be read is CannotRun. With `broken` it is an attempt of which nothing is known
    but that it ran: it may have written anything twice. With `run_id`, one of another run is CannotRun. So is one by
    another name than its own, always: a copy, whose records would count twice.
    """
    at = place.of(ledger)
    found = []
    for name in _attempt_files(at):
        try:
            text = at.read(f"{ATTEMPTS}/{name}")
            of = f"{ATTEMPTS}/{name}"
            attempt = _understood(Attempt.from_json, text, _LATER_IN_ATTEMPTS, ledger, of)
            if run_id and attempt.run_id not in ("", run_id):
                raise CannotRun(_damaged(ledger, f"_attempts/{name} is of another run"))
            if of != (own := attempt_name(attempt.producer, attempt.attempt)):
                raise CannotRun(
                    f"the ledger {ledger} is damaged: {of} is a copy of {own}, by which its records would count twice;"
                    f" remove it, or give it that name if {own} is gone, then judge again"
                )
            found.append(_with_parts(at, attempt) if parts and attempt.parts else attempt)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            numbers = name[: -len(".json")].split("-")
            if not (broken and len(numbers) == 2 and all(each.isdigit() for each in numbers)):
                raise CannotRun(
                    _damaged(ledger, f"_attempts/{name} cannot be read ({error})")
                ) from error
            found.append(Attempt(int(numbers[0]), int(numbers[1]), False, {}))
    return found


def _with_parts(at: place.Place, attempt: Attempt) -> Attempt:
    """The attempt with what stands in its other files. OSError, ValueError, KeyError or CannotRun if they are not
    there, or not what they were.
    """
    name, found = attempt_name(attempt.producer, attempt.attempt), []
    for number in range(attempt.parts):
        part = _unsealed(at.read(_part_name(name, number)), "part")
        if part != part_of(replace(attempt, parts=number), part["acked"]):
            raise ValueError(f"part {number} is of another attempt")
        found.append({int(n): ranges for n, ranges in part["acked"].items()})
    return attempt.with_parts(found)


def with_lost(attempts: list, rows: list) -> list:
    """The attempts, and those of which the ledger has rows but no file is left: as one that is broken."""
    known = {(each.producer, each.attempt) for each in attempts}
    lost = sorted({(row.producer, row.attempt) for row in rows} - known)
    return [*attempts, *(Attempt(producer, attempt, False, {}) for producer, attempt in lost)]


def digest(rows: list) -> str:
    """Of ledger rows, in whatever order: SHA-256, as hexadecimal digits."""
    texts = {text: json.dumps(text) for row in rows for text in (row.outcome, row.error)}
    lines = sorted(_line(row, texts) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _line(row: Row, texts: dict) -> str:
    """The row's values as a list in JSON. texts: of strings, since there are few of them, and perhaps millions
    of rows.
    """
    offsets = f"{row.first_offset}, {row.last_offset}"
    if row.first_offset is None or row.last_offset is None:
        offsets = offsets.replace("None", "null")
    return (
        f"[{row.producer}, {row.attempt}, {row.partition}, {texts[row.outcome]}, {row.first_sequence},"
        f" {row.last_sequence}, {offsets}, {texts[row.error]}]"
    )


def rows_frame(spark, plan: Plan, rows: list):
    """Ledger rows as a DataFrame of the documented columns."""
    names = [name for name, _ in LEDGER_COLUMNS]
    of_run = {"run_id": plan.run_id, "topic": plan.topic}
    data = [tuple(of_run[n] if n in of_run else getattr(r, n) for n in names) for r in rows]
    return spark.createDataFrame(data, LEDGER_DDL)


def save_ledger(spark, ledger: str, plan: Plan, rows: list) -> None:
    """Write the Parquet; visible only when it is whole. CannotRun if that cannot be done: then the files of
    the attempts tell the same.
    """
    full = "the disk is full where Spark keeps what it works on (SPARK_LOCAL_DIRS)"
    try:
        frame = rows_frame(spark, plan, rows).coalesce(1)
        full = "its disk is full"
        _save_frame(frame, ledger)
    except CannotRun:
        raise
    except Exception as error:
        why = f"{full}; make room there" if disk_is_full(error) else stack_trace.reason(str(error))
        raise CannotRun(
            f"the Parquet of the ledger {ledger} could not be written: {why}; `job.py verify --ledger"
            f" {ledger}` judges by its _attempts, which are whole"
        ) from error
    finally:
        with contextlib.suppress(Exception):
            place.of(ledger).remove(_DRAFT)


def _save_frame(frame, ledger: str) -> None:
    at = place.of(ledger)
    at.remove(_DRAFT)
    frame.write.parquet(f"{at.address}/{_DRAFT}")
    written = [name for name in at.names(_DRAFT) if name.endswith(".parquet")]
    if not written:  # by an executor elsewhere, into a directory of its own
        raise CannotRun(
            f"the ledger's Parquet is not in {ledger}: Spark's executors do not share that directory"
            " with this machine; give a --ledger that all of them see, such as hdfs://..."
        )
    for name in written:
        at.move(f"{_DRAFT}/{name}", name)


def load_ledger(spark, ledger: str, plan: Plan) -> list:
    """Ledger rows, as many as the plan says and those that it says.

    Of a run that was killed they are in its attempts' files alone. Those are also the second
    witness where the Parquet is gone or damaged; CannotRun where both contradict the plan.
    """
    trouble = "there is no Parquet in it"
    if any(name.endswith(".parquet") for name in place.of(ledger).names()):
        try:
            rows = _read_parquet(spark, ledger, plan)
        except CannotRun:
            raise
        except Exception as error:
            trouble = f"its Parquet cannot be read ({stack_trace.reason(str(error))})"
        else:
            if plan.ledger_rows is None or digest(rows) == plan.ledger_digest:
                return rows
            trouble = f"its Parquet has {len(rows):,} rows, not the {plan.ledger_rows:,} of the run"
            if len(rows) == plan.ledger_rows:
                trouble = "its Parquet has other rows than the run wrote"
    attempts = load_attempts(ledger, run_id=plan.run_id)
    rows = [row for attempt in attempts for row in attempt.rows()]
    if plan.ledger_rows is not None and digest(rows) != plan.ledger_digest:
        raise CannotRun(_damaged(ledger, f"{trouble}, and its _attempts do not tell the rest"))
    note(f"note: of the ledger {ledger} {trouble}: judged by its _attempts")
    return rows


def _read_parquet(spark, ledger: str, plan: Plan) -> list:
    frame = spark.read.parquet(place.of(ledger).address)
    rows = []
    for found in frame.collect():
        data = found.asDict()
        if data.pop("run_id") != plan.run_id:
            raise CannotRun(f"{ledger} mixes the ledgers of several runs")
        data.pop("topic")
        rows.append(Row(**data))
    return rows

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs leave, and what of it may go: never somebody else's, never what is written to."""

import fcntl
import json
import os
import shutil
import tempfile
import time
import uuid

import job
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from flow import steps
from flow.engine import session
from flow.messages.output import write_json
from flow.prepare import leftovers
from flow.prepare.leftovers import BUSY_SECONDS, FOREIGN_SECONDS, Report
from flow.record import files, own_names, place
from flow.write.client_settings import named_files
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.disturbing import make_whole
from tests.spark.test_edges_pure import plan_of
from tests.support.outside import create_topics, wait_until

NOW = 2_000_000_000.0
DAY = 86_400.0
OLD_VERSION = "kafkaops-flow-fedcba987654"  # its digits are no time


def named(began):
    """The topic of a run that began then."""
    return own_names.own(own_names.new_run_id(began, "f" * 32))


OURS = named(NOW - 3 * DAY)


def report(path="/r/20330101T000000Z", age=3 * DAY, **more):
    return Report(path, NOW - age, **more)


def kept(ages, reports=(), older=DAY):
    """name -> why it is kept."""
    return {each.name: each.kept for each in leftovers.decide(ages, reports, NOW, older)}


@given(
    st.text(max_size=40)
    | st.from_regex(r"kafkaops-flow-[a-z0-9-]{0,20}\n?")
    | st.from_regex(r"kafkaops-flow-([0-9a-f]{4}){2,6}(-min-isr)?\n?")
)
def test_only_names_that_runs_give_are_ours(name):
    rest = name.removeprefix("kafkaops-flow-")
    number, _dash, probe = rest.partition("-")
    made = (
        name != rest
        and len(number) in (12, 20)  # the former of older versions
        and set(number) <= set("0123456789abcdef")
        and (rest == number or probe in ("min-isr", "compaction", "retention"))
    )
    assert leftovers.is_ours(name) is made
    assert (name in kept({name: 9 * DAY})) is made


@pytest.mark.parametrize(
    "age, reports, why",
    [
        (2 * DAY, [], ""),
        (None, [], ""),
        (DAY / 2, [], "it is too young"),
        (2 * DAY, [report(topic=OURS, made_topic=False)], "somebody else made it"),
        (2 * DAY, [report(topic=OURS)], ""),
        (2 * DAY, [report(topic=OURS, ended=False, touched=NOW - 5)], "a run is writing to it"),
        (2 * DAY, [report(topic=OURS, ended=False, touched=NOW - BUSY_SECONDS - 1)], ""),
    ],
)
@pytest.mark.parametrize("suffix", ["", "-compaction"])
def test_what_of_our_topics_may_go(age, reports, why, suffix):
    assert kept({OURS + suffix: age}, reports)[OURS + suffix].startswith(why)
    assert bool(kept({OURS + suffix: age}, reports)[OURS + suffix]) is bool(why)


@pytest.mark.parametrize(
    "seconds, stays",
    [(-300, True), (0, True), (5, True), (FOREIGN_SECONDS - 1, True), (FOREIGN_SECONDS + 1, False)],
)
@pytest.mark.parametrize("older", [0, 1, 600])
@pytest.mark.parametrize("empty", [True, False])
def test_what_a_run_elsewhere_has_just_made_or_written_stays(seconds, stays, older, empty):
    """Also where its clock goes before ours, and whatever a person calls old."""
    topic = named(NOW - seconds) if empty else OURS
    age = None if empty else max(0.0, seconds)
    assert bool(kept({topic: age}, older=older)[topic]) is stays
    if seconds > older:  # it is known here that the run is over
        ended = report(topic=topic)
        assert kept({topic: age}, [ended], older=older)[topic] == ""


def test_an_empty_topic_whose_age_nobody_can_know_stays():
    assert "delete it yourself" in kept({OLD_VERSION: None}, older=0)[OLD_VERSION]
    (found,) = leftovers.decide({}, [], NOW, 0, {OURS: "partitions [0] have no leader"})
    assert found.kept == "its age is not known: partitions [0] have no leader"


@given(st.floats(1.77e9, 2.5e9), st.uuids())
def test_the_name_of_a_run_tells_when_it_began(began, chance):
    run_id = own_names.new_run_id(began, chance.hex)
    assert len(bytes.fromhex(run_id)) == 16 and run_id[12:] == chance.hex[12:]
    topic = own_names.own(run_id)
    assert leftovers.is_ours(topic) and leftovers.is_ours(topic[: -len("00000000")])
    for more in (topic, own_names.own(run_id, "retention")):
        assert own_names.began(more, began) == pytest.approx(began, abs=0.001)
    assert own_names.began(topic, began - 2 * DAY) is None


def test_two_runs_of_one_millisecond_share_no_name():
    """Neither topics nor, in a topic of others, groups and transactional ids."""
    one, other = (own_names.new_run_id(NOW, digit * 32) for digit in "0f")
    for more in ([], ["retention"], [0]):
        assert own_names.own(one, *more) != own_names.own(other, *more)
    topic = own_names.own(one)
    assert own_names.run_topic(own_names.own(one, "retention")) == topic
    assert [own_names.began(own_names.own(each), NOW) for each in (one, other)] == [NOW, NOW]


@pytest.mark.parametrize(
    "found, why",
    [
        (report(), ""),
        (report(age=60), "it is too young"),
        (report(latest=True), "it is the latest"),
        (report(ended=False, touched=NOW - 5), "its run goes on"),
        (report(topic=OURS, made_topic=False), "it says who made its topic"),
        (report(topic="orders", made_topic=False), ""),
    ],
)
def test_what_of_reports_may_go(found, why):
    assert kept({}, [found]) == {found.path: why}


def test_reports_are_directories_of_runs_and_nothing_else(tmp_path):
    for name in ("20260101T000000Z", "20260102T000000Z", "notes", "20260103T000000Z.bak"):
        (tmp_path / name).mkdir()
    (tmp_path / "20260104T000000Z").symlink_to(tmp_path / "notes")
    (tmp_path / "inspections" / "20260105T000000Z").mkdir(parents=True)
    (tmp_path / "20260102T000000Z" / "verdict.json").write_text("{}")
    (tmp_path / "latest").symlink_to("20260102T000000Z")
    found = {os.path.basename(each.path): each for each in leftovers.reports_below(str(tmp_path))}
    assert set(found) == {"20260101T000000Z", "20260102T000000Z", "20260105T000000Z"}
    assert found["20260102T000000Z"].latest and found["20260102T000000Z"].ended
    assert not found["20260101T000000Z"].ended and found["20260101T000000Z"].touched > 0
    assert leftovers.reports_below(str(tmp_path / "absent")) == []


@pytest.mark.parametrize("where", ["there", "there, of another run", "gone", "hdfs"])
def test_a_ledger_elsewhere_is_known_by_its_report_and_goes_with_it(tmp_path, where):
    """And so is its topic: that of a run that is writing stays, whatever its age."""
    reports, ledger = tmp_path / "reports", tmp_path / "ledgers" / "A-1"
    old, busy = reports / "20330101T000000Z", reports / "20330102T000000Z"
    told = "hdfs://nn/A-1" if where == "hdfs" else str(ledger)
    plan = plan_of(topic=OURS)
    for directory in (old, busy):
        write_json(str(directory / "run.json"), files.of_run(plan, told))
        for name in (directory / "run.json", directory):
            os.utime(name, (NOW - 3 * DAY, NOW - 3 * DAY))
    (old / "verdict.json").write_text("{}")
    os.utime(busy, (NOW - 5, NOW - 5))
    if where.startswith("there"):
        other = {"run_id": "cd" * 16} if "another" in where else {}
        files.save_plan(str(ledger), plan_of(topic=OURS, **other))
    known = leftovers.reports_below(str(reports))
    assert kept({OURS: 9 * DAY}, known)[OURS] == "a run is writing to it"
    shutil.rmtree(busy)
    known = leftovers.reports_below(str(reports))
    found = leftovers.decide({}, known, NOW, DAY)
    assert [(each.kind, each.name) for each in found] == [("report", str(old)), ("ledger", told)]
    assert ("only Spark can open it" in found[1].kept) is (where == "hdfs")
    leftovers._note(known, OURS, "now")
    if where == "there":
        assert files.load_plan(str(ledger)).cleared == "now"
    assert leftovers.remove(None, found, known) == set()
    assert not old.exists() and ledger.exists() is ("another" in where)


def report_of(directory, name, plan, ledger):
    """The report of a run whose ledger is elsewhere."""
    write_json(str(directory / name / "run.json"), files.of_run(plan, str(ledger)))
    (directory / name / "verdict.json").write_text("{}")
    return directory / name


def test_of_a_directory_of_others_only_the_ledger_goes(tmp_path):
    """Anybody may have given his home as a ledger's directory."""
    home, plan = tmp_path / "home", plan_of(topic=OURS)
    home.mkdir()
    (home / "thesis").write_text("years of work")
    files.new_ledger(str(home))
    files.first_plan(str(home), plan)
    (home / "part-0.parquet").write_text("")
    old = report_of(tmp_path / "reports", "20330101T000000Z", plan, home)
    os.utime(old / "run.json", (NOW - 3 * DAY, NOW - 3 * DAY))
    known = leftovers.reports_below(str(tmp_path / "reports"))
    found = leftovers.decide({}, known, NOW, DAY)
    assert [each.kept for each in found] == ["", ""]
    assert leftovers.remove(None, found, known) == set()
    assert os.listdir(home) == ["thesis"] and not old.exists()


def test_the_ledger_of_a_report_that_stays_stays_where_an_older_one_was(tmp_path):
    reports, ledger, young = tmp_path / "reports", tmp_path / "l", plan_of(run_id="cd" * 16)
    files.save_plan(str(ledger), young)
    old = report_of(reports, "20330101T000000Z", plan_of(run_id="ab" * 16), ledger)
    stays = report_of(reports, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(NOW)), young, ledger)
    known = leftovers.reports_below(str(reports))
    found = leftovers.decide({}, known, NOW, DAY)
    assert leftovers.remove(None, found, known) == set()
    assert not old.exists() and stays.exists()
    assert files.load_plan(str(ledger)).run_id == young.run_id


def test_a_directory_of_others_with_the_name_of_a_run_is_no_report(tmp_path):
    (tmp_path / "20330101T000000Z").mkdir()
    (tmp_path / "20330101T000000Z" / "dump.sql").write_text("")
    assert leftovers.reports_below(str(tmp_path)) == []


@pytest.mark.parametrize("inside", [True, False])
def test_where_a_ledger_is_stands_in_the_report_if_it_is_not_there(tmp_path, inside):
    ledger = tmp_path / "out" / "ledger" if inside else tmp_path / "out2" / "ledger"
    assert place.is_in(ledger.as_uri(), str(tmp_path / "out")) is inside
    assert place.is_in(os.path.relpath(ledger), str(tmp_path / "out")) is inside
    assert place.whole(os.path.relpath(ledger)) == str(ledger)
    assert not place.is_in("hdfs://nn/out/ledger", str(tmp_path / "out"))


def of_rows(directory, name, over=True, age=3 * DAY):
    """A table of drills or guarantees with its page, as a playbook leaves it."""
    directory.mkdir(exist_ok=True)
    for path, text in (
        (directory / f"{name}.json", json.dumps({"over": over, "drills": []})),
        (directory / f"{name}.html", "a page"),
    ):
        path.write_text(text)
        os.utime(path, (NOW - age, NOW - age))
    return directory / f"{name}.json"


def test_drills_their_proofs_and_guarantees_are_reports_too(tmp_path):
    old, goes_on, last = (
        of_rows(tmp_path / "drills", name, over, age)
        for name, over, age in (
            ("20330101T000000Z", True, 3 * DAY),
            ("20330102T000000Z", False, BUSY_SECONDS - 1),
            ("20330103T000000Z", True, 3 * DAY),
        )
    )
    only = of_rows(tmp_path / "guarantees", "20330101T000000Z")
    proof = tmp_path / "drills" / "20330101T000001Z"
    proof.mkdir()
    (proof / "verdict.json").write_text("{}")
    (tmp_path / "drills" / "20330101T000002Z.json").write_text("{")
    (tmp_path / "drills" / "20330101T000003Z.json").symlink_to(old)
    (tmp_path / "drills" / "mine.json").write_text("{}")
    found = leftovers.decide({}, leftovers.reports_below(str(tmp_path)), NOW, DAY)
    assert {each.name: each.kept for each in found} == {
        str(old): "",
        str(proof): "",
        str(tmp_path / "drills" / "20330101T000002Z.json"): "",
        str(goes_on): "its run goes on",
        str(last): "it is the latest",
        str(only): "it is the latest",
    }
    # there are no topics among them, so no cluster is asked
    assert leftovers.remove(None, found) == set()
    assert sorted(os.listdir(tmp_path / "drills")) == [
        "20330101T000003Z.json",
        "20330102T000000Z.html",
        "20330102T000000Z.json",
        "20330103T000000Z.html",
        "20330103T000000Z.json",
        "mine.json",
    ]


def test_an_age_without_a_unit_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        job.arguments(["leftovers", "--bootstrap-servers=a:1", "--output=o", "--older-than=7"])
    assert ended.value.code == 3 and "'7' is not a clear duration" in capsys.readouterr().err


def test_a_topic_of_a_run_elsewhere_is_never_removed_and_a_dead_broker_is_no_obstacle(
    cluster, tmp_path, capfd
):
    """Three topics that hold nothing: of a colleague's run that begins just now, of one that is long over,
    and of one whose only replica is on a broker that is down.
    """
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    wait_until(lambda: len(admin.list_topics(timeout=30).brokers) == 3, 60, "all have registered")
    now = time.time()
    just, old, dark = (
        own_names.own(own_names.new_run_id(now - ago, uuid.uuid4().hex))
        for ago in (1, 3 * DAY, 4 * DAY)
    )
    new = [NewTopic(just, 3, 3), NewTopic(old, 3, 3), NewTopic(dark, 1, replica_assignment=[[1]])]
    create_topics({"bootstrap.servers": cluster.bootstrap_servers}, new)

    def listed(*options):
        where = [f"--bootstrap-servers={cluster.bootstrap_servers}", f"--output={tmp_path}"]
        capfd.readouterr()
        assert steps.leftovers(job.arguments(["leftovers", *where, *options])) == 0
        found = json.loads(capfd.readouterr().out)["found"]
        return {each["name"]: each["kept"] for each in found if each["name"] in (just, old, dark)}

    try:
        # Nobody knows yet that it is dark: its leader is asked, and librdkafka tells of no answer as of no record.
        cluster.broker_instances[1].kill()
        found = listed("--older-than=1s", "--remove")
        assert "another host" in found[just] and found[old] == ""
        assert found[dark] == "its age is not known: partitions [0] have no leader"
        assert {just, dark} <= set(admin.list_topics(timeout=30).topics)
    finally:
        make_whole(cluster)
    wait_until(
        lambda: old not in admin.list_topics(timeout=30).topics, 60, "its last replica is gone"
    )
    # brokers hear of the new leader one after another
    wait_until(lambda: listed("--remove").get(dark) == "", 60, "it has a leader again")
    admin.delete_topics([just])[just].result(30)


@pytest.mark.parametrize("topic", ["kafkaops-flow-019a00000000", ""])
def test_what_a_newer_version_has_written_stays(tmp_path, topic):
    """Whether the topic is somebody else's, or still needed, only that version knows."""
    there = tmp_path / "20330101T000000Z"
    (there / "ledger").mkdir(parents=True)
    told = {"topic": topic, "invented": 1, "cleared": ""}
    (there / "ledger" / files.PLAN).write_text(files.sealed(told))
    (there / "verdict.json").touch()
    (found,) = leftovers.reports_below(str(tmp_path))
    assert (found.topic, found.strange) == (topic, True)
    kept = {
        each.kept
        for each in leftovers.decide({"kafkaops-flow-019a00000000": 30 * DAY}, [found], NOW, DAY)
    }
    assert kept == {"another version of the job wrote its ledger; remove it with that one"}


# -- files on the machine of the job


def test_the_directory_of_a_killed_run_goes_with_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("killed", "held", "older-release", "empty"):
        (tmp_path / f"kafkaops-flow-{name}").mkdir()
    (tmp_path / "kafkaops-flow-older-release" / "flow.zip").touch()
    for name in ("killed", "held"):
        (tmp_path / f"kafkaops-flow-{name}" / session.IN_USE).write_text("")
    (tmp_path / "kafkaops-flow-link").symlink_to(tmp_path / "kafkaops-flow-killed")
    with open(tmp_path / "kafkaops-flow-held" / session.IN_USE, "r+", encoding="ascii") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with session.work_directory():
            for name in ("killed", "empty"):
                assert (tmp_path / f"kafkaops-flow-{name}").is_dir(), "it is young"
        with session.work_directory(lambda: time.time() + session.YOUNG_SECONDS + 1) as mine:
            there = {each.name for each in tmp_path.iterdir()}
    kept_ones = {f"kafkaops-flow-{name}" for name in ("held", "older-release", "link")}
    assert there == {*kept_ones, os.path.basename(mine)} and not os.path.exists(mine)


def test_keys_that_settings_name_are_on_no_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with named_files({"ssl.key.location": "KEY", "ssl.ca.location": "CA" * 99999}) as places:
        found = {key: open(path, encoding="utf-8").read() for key, path in places.items()}
        assert found == {"ssl.key.location": "KEY", "ssl.ca.location": "CA" * 99999}
        assert os.listdir(tmp_path) == []
    assert not any(os.path.exists(path) for path in places.values())

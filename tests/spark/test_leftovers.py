# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs leave, and what of it may go: never somebody else's, never what is written to."""

import os

import job
import pytest
from flow.prepare import leftovers
from flow.prepare.leftovers import BUSY_SECONDS, Report
from hypothesis import given
from hypothesis import strategies as st

NOW = 2_000_000_000.0
OURS = "kafkaops-flow-0123456789ab"
DAY = 86_400.0


def report(path="/r/20330101T000000Z", age=3 * DAY, **more):
    return Report(path, NOW - age, **more)


def kept(ages, reports=(), older=DAY):
    """name -> why it is kept."""
    return {each.name: each.kept for each in leftovers.decide(ages, reports, NOW, older)}


@given(st.text(max_size=40) | st.from_regex(r"kafkaops-flow-[a-z0-9-]{0,20}\n?"))
def test_only_names_that_runs_give_are_ours(name):
    rest = name.removeprefix("kafkaops-flow-")
    number, _dash, probe = rest.partition("-")
    made = (
        name != rest
        and len(number) == 12
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
        (None, [report(ended=False, touched=NOW - 5)], "it is empty, and a run has just begun"),
    ],
)
@pytest.mark.parametrize("suffix", ["", "-compaction"])
def test_what_of_our_topics_may_go(age, reports, why, suffix):
    assert kept({OURS + suffix: age}, reports)[OURS + suffix].startswith(why)
    assert bool(kept({OURS + suffix: age}, reports)[OURS + suffix]) is bool(why)


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


def test_an_age_without_a_unit_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        job.arguments(["leftovers", "--bootstrap-servers=a:1", "--output=o", "--older-than=7"])
    assert ended.value.code == 3 and "'7' is not a clear duration" in capsys.readouterr().err

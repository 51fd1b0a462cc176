# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What playbooks/watch.yml makes of a status that nobody writes any more."""

from __future__ import annotations

import base64
import json

import pytest

from tests.support.role_variables import refusal

OLD, ENDED = "Refuse a status that is old", "Refuse the status of a process that has ended"


def said(age, status, task=OLD, **more):
    """What the task refuses with."""
    document = {"alarms": {}, "counts": {"acknowledged": 5, "arrived": 5, "lost": 0}, **status}
    content = base64.b64encode(json.dumps(document).encode()).decode()
    given = {
        "__flow_validation_watch_status": {"content": content},
        "__flow_validation_watch_runs": {
            "running": True,
            "sign_age_seconds": age,
            "last_lines": "could not run: topic kafkaops-watch was deleted",
        },
        "__flow_validation_watch_made": {"path": "/srv/watch"},
        **more,
    }
    return refusal("flow_validation", "watch.yml", task, given)


@pytest.mark.parametrize(
    "age, status",
    [(5, {}), (299, {}), (700, {"old_after_seconds": 1200}), (5, {"alarms": {"loss": "1 lost"}})],
)
def test_what_is_written_still_is_taken(age, status):
    assert said(age, status) == ""


def test_what_is_old_is_refused_with_what_the_process_has_said():
    text = said(172800, {"old_after_seconds": 300})
    assert text.startswith("[validation.watch_old] /srv/watch/status.json: it is of 172800 s ago")
    assert "no alarm then" in text and "topic kafkaops-watch was deleted" in text
    assert "1 lost then" in said(172800, {"alarms": {"loss": "1 lost"}})


def test_where_nothing_is_known_nothing_is_refused():
    """In check mode, and where nothing was to be started."""
    assert said(0, {}, __flow_validation_watch_runs={"running": True}) == ""
    assert said(9999, {}, __flow_validation_watch_status={}) == ""


@pytest.mark.parametrize(
    "why, told",
    [("no Java is found", "has ended: no Java is found; "), ("", "has ended: in order; ")],
)
def test_what_has_ended_is_refused_although_it_was_written_just_now(why, told):
    """As each start does that ends at once, which its service manager repeats for ever."""
    text = said(3, {"ended": {"at": 1.0, "why": why}}, task=ENDED)
    assert (
        text.startswith("[validation.watch_ended] /srv/watch/status.json: its process ")
        and told in text
    )
    assert "topic kafkaops-watch was deleted" in text


@pytest.mark.parametrize("status", [{}, {"ended": None}])
def test_what_runs_is_not_refused(status):
    """Nor is what an earlier release has written."""
    assert said(3, status, task=ENDED) == ""
    assert said(3, {}, task=ENDED, __flow_validation_watch_status={}) == ""

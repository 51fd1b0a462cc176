# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""That Ctrl-C ends examples/page_views.py as SIGTERM does, although PySpark takes it for itself."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
PLACE = Path(__file__).resolve().parents[3] / "examples" / "page_views.py"


class Query:
    """A query that goes on until it is stopped; then it notes it."""

    def __init__(self):
        self.isActive, self.stopped = True, False

    def stop(self):
        self.stopped = True

    def exception(self):
        return None


class Session:
    """As much of Spark as `main` asks for; each step of a chain returns itself."""

    def __init__(self, number):
        self.number, self.query = number, Query()
        self.readStream = self.writeStream = self.builder = self

    def __getattr__(self, _name):
        return lambda *_words, **_more: self

    def getOrCreate(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as SparkContext does
        return self

    def start(self):
        os.kill(os.getpid(), self.number)
        return self.query


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_query_in_order(monkeypatch, number):
    spec = importlib.util.spec_from_file_location("example_page_views", PLACE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    session = Session(number)
    monkeypatch.setattr(example, "SparkSession", session)
    monkeypatch.setattr(example, "options_of", lambda *_words: {})
    monkeypatch.setattr(example, "counted", lambda records: records)
    monkeypatch.setattr(sys, "argv", ["page_views.py", "client.properties", "views", "/nowhere"])
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        example.main()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert session.query.stopped

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What examples/producer.py makes of its input, and of a line that librdkafka refuses."""

from __future__ import annotations

import io
import sys
import threading

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer


def test_a_line_that_is_too_large_is_named_and_the_next_ones_are_sent(example, capsys):
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    deliveries = example.Deliveries()
    for line in (b"one", b"large " + b"x" * 2**21, b"two"):
        example.send(producer, "orders", line, deliveries)
    assert (deliveries.taken, deliveries.failed) == (3, 1)
    said = capsys.readouterr().err
    assert said.startswith("not acknowledged: 'large xxx") and "too large" in said
    assert len(said) < 300
    producer.purge()


class Refusing:
    """A producer that has ended."""

    def produce(self, *_words, **_more):
        raise KafkaException(KafkaError(KafkaError._FATAL))


def test_what_concerns_every_line_ends_it_and_the_line_is_named(example, capsys):
    deliveries = example.Deliveries()
    with pytest.raises(KafkaException):
        example.send(Refusing(), "orders", b"one", deliveries)
    assert (deliveries.taken, deliveries.failed) == (1, 1)
    assert capsys.readouterr().err.startswith("not acknowledged: 'one'")


@pytest.fixture
def given(monkeypatch):
    """A function that makes bytes the standard input, as a UTF-8 locale opens it."""

    def give(raw):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw, encoding="utf-8"))

    return give


class Noted:
    """A producer of a cluster that acknowledges everything."""

    def __init__(self, settings):
        self.settings, self.sent, self.waiting = settings, [], []
        self.flushed = False

    def produce(self, _topic, key, value, on_delivery):
        self.sent.append((key, value))
        self.waiting.append(on_delivery)

    def poll(self, _seconds):
        pass

    def flush(self, _seconds):
        self.flushed = True
        for each in self.waiting:
            each(None, None)


class Broken(io.RawIOBase):
    """A line, and then a disk that cannot be read."""

    def __init__(self):
        super().__init__()
        self.lines = [b"one\n"]

    def readable(self):
        return True

    def readinto(self, buffer):
        if not self.lines:
            raise OSError(5, "Input/output error")
        line = self.lines.pop()
        buffer[: len(line)] = line
        return len(line)


@pytest.fixture
def run(example, monkeypatch, tmp_path):
    """A function that runs it to its end; returns the exit code, and the producer."""
    made = []

    def begin(settings):
        made.append(Noted(settings))
        return made[-1]

    monkeypatch.setattr(example, "Producer", begin)
    monkeypatch.setattr(example.signal, "signal", lambda *_: None)
    settings = tmp_path / "librdkafka.json"
    settings.write_text('{"bootstrap.servers": "127.0.0.1:1"}')
    monkeypatch.setattr(sys, "argv", ["producer.py", str(settings), "orders"])
    return lambda: (example.main(), made[-1])


def test_a_line_may_have_any_bytes(run, given):
    given(io.BytesIO(b"one\ncaf\xe9\tcr\xe8me\r\n\nthree"))
    code, producer = run()
    pairs = [(b"caf\xe9", b"cr\xe8me"), (None, b""), (None, b"three")]
    assert producer.sent == [(None, b"one"), *pairs]
    assert code == 0


def test_an_input_that_breaks_ends_it_with_an_error_and_all_that_was_taken_is_delivered(
    run, given, capsys
):
    given(io.BufferedReader(Broken()))
    code, producer = run()
    assert (code, producer.sent, producer.flushed) == (1, [(None, b"one")], True)
    said = capsys.readouterr().err
    assert "cannot go on: [Errno 5] Input/output error" in said
    assert said.endswith("1 of 1 records acknowledged\n")


def test_an_error_that_nobody_thought_of_ends_it_after_the_delivery_too(
    example, run, given, monkeypatch
):
    made = []
    monkeypatch.setattr(
        example, "Producer", lambda settings: made.append(Noted(settings)) or made[0]
    )
    monkeypatch.setattr(example, "send", lambda *_: 1 / 0)
    given(io.BytesIO(b"one\n"))
    with pytest.raises(ZeroDivisionError):
        run()
    assert made[0].flushed


def test_a_line_that_is_no_text_is_named(example, capsys):
    example.Deliveries().about(b"caf\xe9")(KafkaError(KafkaError._MSG_TIMED_OUT), None)
    assert capsys.readouterr().err.startswith(r"not acknowledged: 'caf\\xe9'")


def test_a_signal_ends_it_while_nothing_comes(example, given):
    given(io.BytesIO(b""))
    stopped = threading.Event()
    stopped.set()
    assert not list(example.lines_until(stopped))


def test_a_key_lies_where_a_java_client_puts_it(example, run, given):
    given(io.BytesIO(b""))
    assert run()[1].settings["partitioner"] == "murmur2_random"
    # librdkafka knows it
    Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, **example.SAFE})

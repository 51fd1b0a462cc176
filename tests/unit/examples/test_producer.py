# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What examples/producer.py makes of a line that librdkafka refuses."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer


def test_a_line_that_is_too_large_is_named_and_the_next_ones_are_sent(example, capsys):
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    deliveries = example.Deliveries()
    for line in ("one", "large " + "x" * 2**21, "two"):
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
        example.send(Refusing(), "orders", "one", deliveries)
    assert (deliveries.taken, deliveries.failed) == (1, 1)
    assert capsys.readouterr().err.startswith("not acknowledged: 'one'")

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a broker is looked for: what the argument specs call optional may be left out."""

from pathlib import Path

import jinja2
import pytest
import yaml

VARIABLES = Path(__file__).resolve().parents[3] / "roles" / "kafka" / "vars" / "main.yml"


def address_to_wait_for(listener):
    """The host at which the role waits for a broker with this first listener."""
    text = yaml.safe_load(VARIABLES.read_text())["__kafka_ready_broker"]["host"]
    expression = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=True)
    return expression.from_string(text).render(kafka_listeners=[listener])


@pytest.mark.parametrize(
    "listener, expected",
    [
        ({"name": "CLIENTS", "port": 9092}, "127.0.0.1"),
        ({"name": "CLIENTS", "port": 9092, "bind": ""}, "127.0.0.1"),
        ({"name": "CLIENTS", "port": 9092, "bind": "10.0.0.1"}, "10.0.0.1"),
    ],
)
def test_a_listener_without_an_address_is_looked_for_on_loopback(listener, expected):
    assert address_to_wait_for(listener) == expected

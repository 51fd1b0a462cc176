# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What the files say that the command line names: settings of clients and of Spark."""

from __future__ import annotations

import argparse
import os
from typing import Optional

from flow.engine import session
from flow.messages.failure import CannotRun
from flow.prepare import client, listeners


def _read_properties(path: str, what: str) -> dict:
    try:
        with open(path, encoding="utf-8") as file:
            return client.parse_properties(file.read())
    except OSError as error:
        raise CannotRun(f"the {what} cannot be read: {error}") from error
    except UnicodeDecodeError as error:
        raise CannotRun(
            f"the {what} cannot be read: {path} is not UTF-8 ({error}); write it as that, or with \\uXXXX for what is"
            " not ASCII"
        ) from error


# Where brokers allow that, clients that write, and Java's that read, make a topic anew that its owner has deleted.
_MAKES_TOPICS = "allow.auto.create.topics"


def clients_settings(servers: str, config: Optional[str]) -> tuple:
    """(properties for librdkafka, properties for Java) of a file of client properties, and the
    servers. None of these clients makes a topic that is not there.
    """
    properties = {}
    if config:
        properties = whole_paths(_read_properties(config, "client settings"))
    try:
        for_python = client.for_librdkafka(properties)
        for_java = client.for_java(properties)
    except ValueError as error:
        raise CannotRun(str(error)) from error
    for_python = {"bootstrap.servers": servers, **for_python, _MAKES_TOPICS: False}
    return for_python, {**for_java, _MAKES_TOPICS: "false"}


def whole_paths(properties: dict) -> dict:
    """The same, with the whole paths of files that are named by a path from here, where Spark's JVM is not."""
    return {
        key: (
            os.path.abspath(value)
            if key.endswith((".location", ".keytab")) and os.path.exists(value)
            else value
        )
        for key, value in properties.items()
    }


def spark_settings(options: argparse.Namespace) -> dict:
    """A person's settings of Spark; CannotRun if the file cannot be read, or has one that is ours."""
    if not options.spark_config:
        return {}
    given = _read_properties(options.spark_config, "settings of Spark")
    session.merged(given, {})
    return given


def other_listeners(options: argparse.Namespace) -> list:
    """The listeners.Listeners of the command line."""
    configs = options.listener_config
    return [
        listeners.Listener(
            name, clients_settings(servers, configs.get(name, options.command_config))[0]
        )
        for name, servers in options.listener.items()
    ]

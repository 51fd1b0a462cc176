# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""An account without a name: a container that is run as any number, which nobody has written into its list of accounts.

Java then takes "?" for the account's home and name, and Hadoop, by which Spark writes files, cannot log in.
"""

from __future__ import annotations

import os
import pwd
from typing import Any

NAME = "kafkaops"


def is_nameless() -> bool:
    """Whether the account of this process has no name."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return True
    return False


def flags(home: str) -> list:
    """Java's options for a nameless account, none for another one; `home`: a directory it may write to."""
    return [f'"-Duser.home={home}"', f"-Duser.name={NAME}"] if is_nameless() else []


def log_in() -> None:
    """Log a nameless account in to Hadoop, in the JVM that Spark will run in."""
    if not is_nameless():
        return
    from pyspark import SparkContext

    os.environ.setdefault("SPARK_USER", NAME)  # Spark asks Hadoop only where it is missing
    SparkContext._ensure_initialized()
    java: Any = SparkContext._jvm
    hadoop = java.org.apache.hadoop.security.UserGroupInformation
    hadoop.setLoginUser(hadoop.createRemoteUser(os.environ["SPARK_USER"]))

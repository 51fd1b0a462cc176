# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The line that says why, out of what Spark makes of a failure."""

from __future__ import annotations

import re

_LONGEST = 300
# the exception of a Python task: the first line behind its frames, which are indented
_OF_PYTHON = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)*(\S.*)")
_WORKER_GONE = re.compile(r"Python worker exited unexpectedly[^.:\n]*")
_CAUSE = re.compile(r"^Caused by: (.+)", re.MULTILINE)
# Py4J's own first line names a method of Spark; what Java says comes after it, if Java still answers.
_CALL = re.compile(r"\s*An error occurred while calling \S+\s*(?:: )?")
JAVA_GONE = (
    "Java ended while it worked; see whether the kernel killed it (memory), or its hs_err_pid*.log"
)


def first_line(text: str) -> str:
    """The first line that says anything, at most 300 characters of it."""
    return next((line for line in text.splitlines() if line.strip()), "no message")[:_LONGEST]


def reason(text: str) -> str:
    """Of str(exception): what a Python task raised, or that its process was gone, or the deepest of
    Java's causes; else the first line that Py4J did not add. At most 300 characters.
    """
    if python := _OF_PYTHON.search(text):
        found = python[1]
    elif gone := _WORKER_GONE.search(text):
        found = gone[0]
    elif causes := _CAUSE.findall(text):
        found = causes[-1]
    elif call := _CALL.match(text):
        said = text[call.end() :]
        found = first_line(said.lstrip()) if said.strip() else JAVA_GONE
    else:
        found = first_line(text.lstrip())
    return found.strip()[:_LONGEST]

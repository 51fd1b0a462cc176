# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Files that somebody else reads, whole ones or none; and what is said on the way, if anybody can hear it."""

from __future__ import annotations

import json
import os
import secrets
import sys
from contextlib import suppress
from typing import Mapping, Optional, TextIO


def say(text: str) -> None:
    """A line on standard output, for whoever started the job."""
    _line(sys.stdout, text)


def note(text: str) -> None:
    """A line on standard error: what is no result."""
    _line(sys.stderr, text)


def _line(stream: Optional[TextIO], text: str) -> None:
    """A full disk, a reader or a terminal that is gone: none of them changes what was found."""
    if stream is not None:
        with suppress(OSError, ValueError):  # the latter of a stream that was closed
            stream.write(f"{text}\n")
            stream.flush()


def give_up_unsaid() -> None:
    """Before the process ends: what could not be said is forgotten, else Python makes it the exit code 120."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)


def write(path: str, text: str) -> None:
    """Replace the file, of a directory that is made if need be, in one step."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_all({path: text})


def write_all(texts: Mapping[str, str]) -> None:
    """Replace files (path -> text), in this order. None of them before there was room for all; an
    OSError names the file.
    """
    # of its own: another run may replace the same file
    drafts = {path: f"{path}.{secrets.token_hex(4)}.part" for path in texts}
    try:
        for path, draft in drafts.items():
            try:
                _save(draft, texts[path])
            except OSError as error:
                error.filename = error.filename or path  # write() and close() do not say
                raise
        for path, draft in drafts.items():
            os.replace(draft, path)
    except OSError:
        for draft in drafts.values():
            with suppress(OSError):
                os.remove(draft)
        raise


def _save(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def remove(path: str) -> None:
    """Remove the file; one that is gone already, by another run's hand, is no matter."""
    with suppress(FileNotFoundError):
        os.remove(path)


def write_json(path: str, data: dict) -> None:
    """Replace the file in one step."""
    write(path, as_json(data))


def read_json(path: str) -> dict:
    """What `write_json` has put there; empty if there is no such file."""
    with suppress(FileNotFoundError):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return {}


def as_json(data: dict) -> str:
    """As files for other programs have it."""
    return json.dumps(data, indent=1, sort_keys=False) + "\n"

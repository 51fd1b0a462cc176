# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Files that somebody else reads: whole ones or none."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Mapping


def write(path: str, text: str) -> None:
    """Replace the file, of a directory that is made if need be, in one step."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_all({path: text})


def write_all(texts: Mapping[str, str]) -> None:
    """Replace files (path -> text), in this order. None of them before there was room for all; an
    OSError names the file.
    """
    drafts = {path: f"{path}.part" for path in texts}
    try:
        for path, draft in drafts.items():
            try:
                _save(draft, texts[path])
            except OSError as error:
                error.filename = error.filename or path  # write() and close() do not say
                raise
    except OSError:
        for draft in drafts.values():
            with suppress(OSError):
                os.remove(draft)
        raise
    for path, draft in drafts.items():
        os.replace(draft, path)


def _save(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


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

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Files that somebody else reads: whole ones or none."""

from __future__ import annotations

import json
import os


def write(path: str, text: str) -> None:
    """Replace the file in one step."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)


def write_json(path: str, data: dict) -> None:
    """Replace the file in one step."""
    write(path, json.dumps(data, indent=1, sort_keys=False) + "\n")

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads verdict.json and inspection.json as somebody else would: by their published schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

_SCHEMAS = Path(__file__).resolve().parents[2] / "roles/flow_validation/files/flow/present"


def read(path) -> dict:
    """A verdict.json or inspection.json that is as its schema says; else jsonschema's ValidationError."""
    path = Path(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    check(document, path.stem)
    return document


def check(document: dict, kind: str = "verdict") -> None:
    """Raise jsonschema's ValidationError unless the document is as the schema of its kind says, and has
    no key that the schema does not know: others must allow those, but what we write is described.
    """
    schema = of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    for each in (schema, _closed(schema)):
        jsonschema.Draft202012Validator(each).validate(json.loads(json.dumps(document)))


def _closed(schema: Any) -> Any:
    """The schema without the promise that keys may be added."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if closed.get("additionalProperties") is True:
        closed["additionalProperties"] = False
    return closed


def of(kind: str) -> dict:
    """The published schema: of a `verdict` or an `inspection`."""
    return json.loads((_SCHEMAS / f"{kind}.schema.json").read_text(encoding="utf-8"))

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads verdict.json and inspection.json as somebody else would: by their published schemas."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

_SCHEMAS = Path(__file__).resolve().parents[2] / "roles/flow_validation/files/flow/present"


def read(path) -> dict:
    """A verdict.json or inspection.json that is as its schema says; else jsonschema's ValidationError."""
    path = Path(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    check(document, path.stem)
    return document


def check(document: dict, kind: str = "verdict") -> None:
    """Raise jsonschema's ValidationError unless the document is as the schema of its kind says."""
    schema = of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(json.dumps(document)))


def of(kind: str) -> dict:
    """The published schema: of a `verdict` or an `inspection`."""
    return json.loads((_SCHEMAS / f"{kind}.schema.json").read_text(encoding="utf-8"))

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads verdict.json as somebody else would: by its published schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

SCHEMA = (
    Path(__file__).resolve().parents[2] / "roles/flow_validation/files/flow/verdict.schema.json"
)


def read(path) -> dict:
    """A verdict.json that is as its schema says; else jsonschema's ValidationError."""
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    check(document)
    return document


def check(document: dict) -> None:
    """Raise jsonschema's ValidationError unless the document is as the schema says."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(json.dumps(document)))

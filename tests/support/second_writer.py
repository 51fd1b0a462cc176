# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody else who changes the cluster in the moment in which nobody can lock it: before the first write."""

from __future__ import annotations


def before_writing(monkeypatch, kind, act):
    """`act` runs after the plan and the validation of a Resource of this kind, before its first write."""
    really = kind.apply

    def apply(resource, changes, deadline):
        act()
        return really(resource, changes, deadline)

    monkeypatch.setattr(kind, "apply", apply)

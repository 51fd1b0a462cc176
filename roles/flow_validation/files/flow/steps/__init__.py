# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The order of things. Each mode of job.py is a function here."""

from flow.steps.modes import compare, fetch, index, inspect, leftovers, produce, run, verify

__all__ = ["compare", "fetch", "index", "inspect", "leftovers", "produce", "run", "verify"]

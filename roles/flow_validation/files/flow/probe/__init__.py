# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Promises of the cluster that are tried beside a run, each with a topic of its own."""

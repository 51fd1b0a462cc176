# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The parts of the flow validation: everything but arguments, files and the order of steps (job.py)."""

# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The parts of the flow validation; job.py beside this package only reads arguments."""

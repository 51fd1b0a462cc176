# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What must come out again: the form of a record, the plan of the run, and its ledger."""

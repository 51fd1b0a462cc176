# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Reading the topic back and comparing it with the ledger: the answer to the question."""

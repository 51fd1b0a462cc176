# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Before the first write: the cluster as the job sees it, its topic, listeners and disks."""

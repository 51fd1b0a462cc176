# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The streaming proof: a canary writes, a stream-stream join compares what was acknowledged with what came."""

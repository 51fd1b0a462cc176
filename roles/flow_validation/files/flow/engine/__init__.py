# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What starts Spark and its Java, with the connector to Kafka. Nothing here judges."""

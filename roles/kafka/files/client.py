# SPDX-License-Identifier: GPL-3.0-or-later
"""Says which brokers a client of this listener finds. Needs: pip install confluent-kafka"""

import json
import os
from pathlib import Path

from confluent_kafka.admin import AdminClient

os.chdir(Path(__file__).resolve().parent)  # settings may name files beside this one
client = AdminClient(json.loads(Path("librdkafka.json").read_text()))
cluster = client.list_topics(timeout=30)
print(f"cluster {cluster.cluster_id}")
for broker in sorted(cluster.brokers.values(), key=lambda each: each.id):
    print(f"broker {broker.id} at {broker.host}, port {broker.port}")

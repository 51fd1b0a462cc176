# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that has both products: each is staged with its own release, whenever in the run that is."""

from __future__ import annotations

import pytest

from tests.support.role_variables import evaluated

NAMES = {"kafka": "kafka_2.13-3.9.2", "zookeeper": "zookeeper-3.9.5"}
INSTALLED = {
    "jvm_service_archives": {
        "kafka-3.9.2": {"name": NAMES["kafka"]},
        "zookeeper-3.9.5": {"name": NAMES["zookeeper"]},
    },
    "jvm_service_releases": {
        name: f"/opt/{product}/releases/{name}" for product, name in NAMES.items()
    },
}


@pytest.mark.parametrize("product", NAMES)
def test_each_product_has_its_own(product):
    found = evaluated(product, f"__{product}_release", INSTALLED)
    assert found == f"/opt/{product}/releases/{NAMES[product]}"

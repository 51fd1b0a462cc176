# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A right on the cluster that a user has for the time of a test."""

from __future__ import annotations

import contextlib

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)


@contextlib.contextmanager
def right_on_the_cluster(admin, user: str, operation: AclOperation):
    """Give a user a right by a client that is not ours, and take it away again.

    Brokers learn of it one after another.
    """
    # The client library calls the cluster a broker.
    where = (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL)
    what = (f"User:{user}", "*", operation, AclPermissionType.ALLOW)
    for future in admin.create_acls([AclBinding(*where, *what)]).values():
        future.result(30)
    try:
        yield
    finally:
        for future in admin.delete_acls([AclBindingFilter(*where, *what)]).values():
            future.result(30)

# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes `ansible_collections.kafkaops.cluster` mean this checkout, under plain pytest."""

import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def install() -> None:
    """Put Ansible's own finder in front; a bundled `ansible_collections` package would win else."""
    if any(type(finder).__name__ == "_AnsibleCollectionFinder" for finder in sys.meta_path):
        return
    from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder

    _AnsibleCollectionFinder(paths=[str(CHECKOUT / "collections"), *sys.path])._install()

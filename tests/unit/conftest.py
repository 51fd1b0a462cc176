# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make `ansible_collections.kafkaops.cluster` importable from the checkout under plain pytest."""

import os
import sys

from hypothesis import settings

if not any(type(finder).__name__ == "_AnsibleCollectionFinder" for finder in sys.meta_path):
    from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder

    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    # PYTHONPATH does not do it: a bundled `ansible_collections` package would win.
    _AnsibleCollectionFinder(paths=[os.path.join(root, "collections"), *sys.path])._install()

# How long an example takes says how busy the machine is.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
